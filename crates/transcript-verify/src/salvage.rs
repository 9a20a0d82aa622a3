//! Gathers a session from its other files when its own file is missing or stopped growing.
//!
//! Nothing is invented: the entries of subagents are copied as they are, with a note that says where
//! they come from, and the texts of results where their call is known.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use transcript_format::finding::{Code, Severity};
use transcript_format::ids::Uuid;
use transcript_format::json::ObjectBuf;
use transcript_format::kind::EntryKind;
use transcript_format::make::{self, ENGINE_VERSION, ToolResult};
use transcript_format::object::{Object, Raw};
use transcript_format::scan::{Flags, ToolRole};
use transcript_format::time;
use transcript_reader::{
    Bodies, EntryNo, EntryRef, Error, ErrorKind, Index, Source, Subagent, ToolKey, all_subagents_on,
};
use transcript_storage::{FileKind, ReadDisk, SessionLayout, SideFile as Side, is_absent};

use crate::options::VerifyOptions;
use crate::repair::{Action, ActionKind, Health, new_source};
use crate::session::verify_source;
use crate::store::{CLIENT_AGENTS, behind};

/// The key of our own fields in an entry, those of a salvage, and those with old values.
const ENGINE_KEY: &str = "transcriptEngine";
const SALVAGED_KEY: &str = "salvaged";
const OLD_VALUES_KEY: &str = "was";
/// The folder of results that were too long for a line.
const RESULTS_FOLDER: &str = SessionLayout::CLIENT.results;
/// A longer file is named and not copied: no reader takes a line of more than 64 MiB.
const MAX_RESULT_LEN: u64 = 16 << 20;
const BLOCK_SIZE: usize = 256 << 10;

/// A session that was gathered from the other files of a damaged or missing one. It is in memory or in a temporary file only.
#[derive(Debug)]
pub struct Salvage {
    session: PathBuf,
    is_absent: bool,
    actions: Vec<Action>,
    salvaged: Source,
    before: Health,
    after: Health,
}

impl Salvage {
    /// Gathers the session at `session` on `disk` from all of its files, if its own file is missing, has no
    /// messages, or is more than an hour older than they are. `now` is the time of the salvage (ISO
    /// 8601), `new_id` returns an id that it never returned before. Returns `None` when there is
    /// nothing to salvage.
    ///
    /// # Errors
    /// When a file cannot be read, or a temporary file cannot be written.
    pub fn new(
        disk: &Arc<dyn ReadDisk>,
        session: &Path,
        now: &str,
        new_id: &mut dyn FnMut() -> Uuid,
    ) -> Result<Option<Self>, Error> {
        let own = match Source::open_on(disk, session) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            source => Some(SessionPart::of_session(source?)?),
        };
        let agents = all_subagents_on(disk, session)?;
        let is_current = |own: &SessionPart| {
            let modified = own.source.modified();
            let has_messages = own.index.entries().any(|entry| entry.kind().is_message());
            has_messages && behind(disk, &own.index, session, &agents, modified).is_none()
        };
        if own.as_ref().is_some_and(is_current) {
            return Ok(None);
        }
        let mut gathered = GatheredFiles::new(disk, session, own, &agents)?;
        gathered.find_calls()?;
        if gathered.is_empty() {
            return Ok(None);
        }
        let before = match gathered.own() {
            Some(own) => health(&own.source)?,
            None => Health::default(),
        };
        let mut actions = Vec::new();
        let salvaged = new_source(session, gathered.len(), |out| {
            gathered.write(now, new_id, out, &mut actions)
        })?;
        Ok(Some(Self {
            session: session.to_owned(),
            is_absent: gathered.own().is_none(),
            actions,
            before,
            after: health(&salvaged)?,
            salvaged,
        }))
    }

    /// Returns the path of the session, which may be missing.
    #[must_use]
    pub fn session(&self) -> &Path {
        &self.session
    }

    /// Returns whether the file of the session is missing, and not only behind.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.is_absent
    }

    /// Returns the actions, one for each gathered file.
    #[must_use]
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Returns the health of the file of the session.
    #[must_use]
    pub fn before(&self) -> Health {
        self.before
    }

    /// Returns the health of the new file.
    #[must_use]
    pub fn after(&self) -> Health {
        self.after
    }

    /// Returns the new file, which has no name yet.
    #[must_use]
    pub fn salvaged(&self) -> &Source {
        &self.salvaged
    }
}

fn health(source: &Source) -> Result<Health, Error> {
    let report = verify_source(source, &VerifyOptions::new())?;
    Ok(Health {
        shown: report.measure,
        vendor_lint: report.lint.vendor,
        recover_lint: report.lint.recover,
    })
}

/// One conversation of the session: its own, or that of a subagent.
struct SessionPart {
    /// Its path below the folder of the session, with `/` between its parts; its name, if it is
    /// elsewhere.
    file: String,
    source: Source,
    index: Index,
    /// Whether it is that of the session.
    is_own: bool,
    /// Whether the client started the agent itself, with a part of the conversation of the session.
    is_of_client: bool,
    /// The call that started it.
    call: Option<String>,
}

impl SessionPart {
    fn of_session(source: Source) -> Result<Self, Error> {
        source.check_messages()?;
        Ok(Self {
            file: String::new(),
            index: Index::load(&source)?,
            source,
            is_own: true,
            is_of_client: false,
            call: None,
        })
    }

    fn of_agent(disk: &Arc<dyn ReadDisk>, folder: &Path, agent: &Subagent) -> Result<Self, Error> {
        let source = Source::open_on(disk, &agent.path)?;
        let meta = agent.meta();
        let call = meta.as_ref().and_then(|meta| meta.tool_use_id());
        Ok(Self {
            file: name_below(folder, &agent.path),
            index: Index::load(&source)?,
            source,
            is_own: false,
            is_of_client: CLIENT_AGENTS
                .iter()
                .any(|start| agent.id.starts_with(start)),
            call: call.map(Into::into),
        })
    }

    fn last(&self) -> Option<i64> {
        self.index
            .entries()
            .filter_map(|entry| entry.millis())
            .max()
    }
}

/// The end of a call: the number of the part, and the entry.
type CallEnd = (usize, EntryNo);

/// The state of the call whose result is in a file of its own.
enum KnownCall {
    /// Nothing.
    Unknown,
    /// It has no result in any file.
    Open(CallEnd, String),
    /// This entry has its result, with the start of the text.
    Answered(String),
}

struct SideFile {
    file: String,
    path: PathBuf,
    bytes: u64,
    modified: Option<i64>,
    call: KnownCall,
}

struct GatheredFiles {
    id: String,
    parts: Vec<SessionPart>,
    files: Vec<SideFile>,
    disk: Arc<dyn ReadDisk>,
}

impl GatheredFiles {
    fn new(
        disk: &Arc<dyn ReadDisk>,
        session: &Path,
        own: Option<SessionPart>,
        agents: &[Subagent],
    ) -> Result<Self, Error> {
        let folder = session.with_extension("");
        let mut parts = Vec::new();
        for agent in agents {
            parts.push(SessionPart::of_agent(disk, &folder, agent)?);
        }
        // A file of subagents alone continues with the last one.
        parts.sort_by_key(SessionPart::last);
        // The session is part 0: `write_own` looks up the results of its calls under this number.
        parts.splice(0..0, own);
        let read: HashSet<&Path> = agents.iter().map(|agent| agent.path.as_path()).collect();
        let mut files = side_files(&**disk, &folder, &read)?;
        files.sort_by(|a, b| a.file.cmp(&b.file));
        let id = session.file_stem().unwrap_or_default();
        Ok(Self {
            id: id.to_string_lossy().into_owned(),
            disk: Arc::clone(disk),
            parts,
            files,
        })
    }

    fn own(&self) -> Option<&SessionPart> {
        self.parts.first().filter(|part| part.is_own)
    }

    /// Returns whether nothing is left of the conversation of the session itself. Its subagents then
    /// take its place: a client does not open a session of which all messages are of subagents.
    fn is_headless(&self) -> bool {
        let is_of_session = |entry: EntryRef<'_>| {
            entry.kind().is_message() && !entry.flags().contains(Flags::SIDECHAIN)
        };
        let own = self.own();
        !own.is_some_and(|own| own.index.entries().any(is_of_session))
    }

    fn is_empty(&self) -> bool {
        let mut agents = self.parts.iter().filter(|part| !part.is_own);
        let mut calls = self.files.iter().map(|file| &file.call);
        agents.all(|agent| agent.index.is_empty())
            && calls.all(|call| matches!(call, KnownCall::Unknown))
    }

    /// Returns about how many bytes the new file has.
    fn len(&self) -> u64 {
        let parts = self.parts.iter().map(|part| part.source.len());
        parts.chain(self.files.iter().map(|file| file.bytes)).sum()
    }

    /// Finds the calls that the files of results belong to: by the id in the name, or by the result
    /// that names the file.
    fn find_calls(&mut self) -> Result<(), Error> {
        let mut ends: HashMap<(ToolKey, ToolRole), CallEnd> = HashMap::new();
        for (number, part) in self.parts.iter().enumerate() {
            for entry in part.index.entries() {
                for end in entry.tools() {
                    let place = (number, entry.number());
                    // A subagent that was forked from another one repeats its calls; the first copy gets the result.
                    ends.entry((end.key(), end.role())).or_insert(place);
                }
            }
        }
        let named = self.named_by_results()?;
        let parts = &self.parts;
        for side in &mut self.files {
            let Some(name) = side
                .file
                .strip_prefix(RESULTS_FOLDER)
                .map(|name| &name[1..])
            else {
                continue;
            };
            let stem = name.split('.').next().unwrap_or_default();
            // The client names the file of a result after the call. Other names are known only from a result that refers
            // to them.
            let key = ToolKey::of(stem);
            let open = ends.get(&(key, ToolRole::Use)).copied();
            side.call = match (ends.contains_key(&(key, ToolRole::Result)), open) {
                // The entry has the start of the text only: the client writes long results to the file.
                (true, _) => KnownCall::Answered(stem.to_owned()),
                (false, Some(place)) if is_last(&parts[place.0], place.1) => {
                    KnownCall::Open(place, stem.to_owned())
                }
                // An entry already follows the call. A result after the call would start a second branch.
                (false, Some(_)) => KnownCall::Answered(stem.to_owned()),
                (false, None) => named
                    .get(name)
                    .map_or(KnownCall::Unknown, |id| KnownCall::Answered(id.clone())),
            };
        }
        Ok(())
    }

    /// Returns the calls whose results name a file, by its name.
    fn named_by_results(&self) -> Result<HashMap<String, String>, Error> {
        let mut named = HashMap::new();
        if self.files.is_empty() {
            return Ok(named);
        }
        for part in &self.parts {
            let mut bodies = Bodies::new(&part.source);
            let results = part.index.entries();
            for entry in results.filter(|entry| entry.flags().contains(Flags::HAS_TOOL_RESULT)) {
                let text = bodies.get(&entry)?.text;
                // Bodies can have megabytes, and few of them name a file, so only those are parsed.
                if memchr::memmem::find(text.as_bytes(), RESULTS_FOLDER.as_bytes()).is_none() {
                    continue;
                }
                let Some(line) = Object::parse(text).ok() else {
                    continue;
                };
                let message = line.object("message");
                let blocks = message.and_then(|message| message.get("content")?.array());
                for block in blocks.into_iter().flatten().filter_map(Raw::object) {
                    let Some(id) = block.str("tool_use_id") else {
                        continue;
                    };
                    for name in names_in(block.text()) {
                        named.entry(name).or_insert_with(|| id.clone().into_owned());
                    }
                }
            }
        }
        Ok(named)
    }

    /// Writes the new file: the session as it is, a marker with its sources, the subagents, the results,
    /// and a title.
    fn write(
        &self,
        now: &str,
        new_id: &mut dyn FnMut() -> Uuid,
        out: &mut dyn Write,
        actions: &mut Vec<Action>,
    ) -> Result<(), Error> {
        let code = match self.own() {
            Some(_) => Code::Stalled,
            None => Code::Absent,
        };
        let mut out = LineWriter {
            path: self
                .parts
                .first()
                .map_or(Path::new("-"), |part| part.source.path()),
            out,
        };
        let mut act = |action, detail| {
            actions.push(Action {
                code,
                line: None,
                uuid: None,
                action,
                detail,
            });
        };
        // Each result is written directly after the line of its call, so all of them are made before the first line is.
        let mut made = self.results_of_open_calls(new_id)?;
        let mut seen = HashSet::new();
        if let Some(own) = self.own() {
            self.write_own(own, &mut made, &mut out)?;
            seen.extend(uuids(own));
            let count = own.index.len();
            act(
                ActionKind::Salvage,
                format!("the session: {count} entries, as they are"),
            );
        }
        // The bytes of the session come first and stay as they are; everything that was added follows this line.
        out.line(&self.marker(now))?;
        // Of all parts, before any of them is written: an entry can continue one of a part that comes later.
        let known: HashSet<String> = self.parts.iter().flat_map(uuids).collect();
        for (number, part) in self
            .parts
            .iter()
            .enumerate()
            .filter(|(_, part)| !part.is_own)
        {
            let (written, repeated) =
                self.write_agent((number, part), &known, &mut seen, &mut made, &mut out)?;
            let mut detail = format!("{}: {written} entries", part.file);
            if self.is_headless() {
                detail.push_str(", a conversation of the session");
            }
            if repeated > 0 {
                detail.push_str(&format!(", {repeated} more are there already"));
            }
            let damage = part.index.findings().iter();
            let damage = damage.filter(|finding| finding.code.severity() == Severity::Damage);
            match damage.count() {
                0 => {}
                count => detail.push_str(&format!(", {count} findings about damage")),
            }
            act(ActionKind::Salvage, detail);
        }
        for side in &self.files {
            let file = &side.file;
            let detail = match (&side.call, side.text(&*self.disk)?) {
                (KnownCall::Open(..), Some(_)) => {
                    act(
                        ActionKind::Answer,
                        format!("{file}: the result of an open call"),
                    );
                    continue;
                }
                (KnownCall::Answered(call), Some(text)) => {
                    let salvaged = ObjectBuf::new()
                        .with("file", file.as_str())
                        .with("toolUseId", call.as_str())
                        .with("text", text.as_str());
                    out.line(&self.engine_line(salvaged))?;
                    format!("{file}: the whole text of a result")
                }
                (KnownCall::Unknown, _) => {
                    format!("{file}: only named, as nothing says what it is of")
                }
                (_, None) => format!("{file}: only named, as it is not text or too long"),
            };
            act(ActionKind::Salvage, detail);
        }
        let title = make::custom_title(&self.title()?);
        out.line(&title.session_id(&self.id).text())
    }

    /// Writes the session as it is, with the results of its open calls.
    fn write_own(
        &self,
        own: &SessionPart,
        made: &mut Made,
        out: &mut LineWriter<'_>,
    ) -> Result<(), Error> {
        let mut end = 0;
        for entry in own.index.entries() {
            let Some(lines) = made.remove(&(0, entry.number())) else {
                continue;
            };
            let line_end = entry.offset() + entry.byte_len();
            out.copy(&own.source, end, line_end)?;
            for line in lines {
                out.write(b"\n")?;
                out.write(line.as_bytes())?;
            }
            end = line_end;
        }
        out.copy(&own.source, end, own.source.len())?;
        // A line that was cut stays as it is. Without this line feed the marker would be glued to it, and lost with it.
        let mut last = [b'\n'];
        let len = own.source.len();
        if len > 0 {
            own.source.read_at(len - 1, &mut last)?;
        }
        match last {
            [b'\n'] => Ok(()),
            _ => out.write(b"\n"),
        }
    }

    /// Writes the entries of a subagent. Returns how many, and how many were there already.
    fn write_agent(
        &self,
        (number, part): (usize, &SessionPart),
        known: &HashSet<String>,
        seen: &mut HashSet<String>,
        made: &mut Made,
        out: &mut LineWriter<'_>,
    ) -> Result<(usize, usize), Error> {
        let mut bodies = Bodies::new(&part.source);
        let (mut written, mut repeated) = (0, 0);
        for entry in part.index.entries() {
            let id = entry.uuid().map(|id| part.index.id_text(id));
            if id.is_some_and(|id| !seen.insert(id)) {
                repeated += 1;
                continue;
            }
            let parent = entry.parent().map(|id| part.index.id_text(id));
            // Only here a missing parent is expected. Elsewhere it is damage and stays named, so that policy `recover`
            // finds it.
            let is_first = written == 0 || part.is_of_client;
            // The lines of the client's own agents continue the conversation of the session, which
            // may be lost.
            let is_lost = is_first && parent.is_some_and(|parent| !known.contains(&parent));
            // An entry of a damaged line can have raw line feeds, which would end the new line in the middle of it.
            let text = bodies.get(&entry)?.text.replace(['\n', '\r'], " ");
            out.line(&part.noted(&entry, text, is_lost, self.is_headless()))?;
            written += 1;
            for line in made.remove(&(number, entry.number())).unwrap_or_default() {
                out.line(&line)?;
            }
        }
        Ok((written, repeated))
    }

    /// Makes the results of open calls whose texts are there, as lines after those of the calls.
    fn results_of_open_calls(&self, new_id: &mut dyn FnMut() -> Uuid) -> Result<Made, Error> {
        let mut made = Made::new();
        for side in &self.files {
            let (KnownCall::Open(place, id), Some(text)) = (&side.call, side.text(&*self.disk)?)
            else {
                continue;
            };
            let part = &self.parts[place.0];
            let call = part.index.entry(place.1);
            let mut bodies = Bodies::new(&part.source);
            let body = bodies.get(&call)?.text;
            let fields = Object::parse(body).ok();
            let salvaged = ObjectBuf::new().with("file", side.file.as_str());
            let engine = ObjectBuf::new()
                .with("made", "salvaged-result")
                .with(SALVAGED_KEY, salvaged);
            // A result is never earlier than its call, even if the time of its file is.
            let time = side.modified.max(call.millis()).and_then(time::text);
            let parent = call.uuid().map(|id| part.index.id_text(id));
            let is_sidechain = call.flags().contains(Flags::SIDECHAIN);
            let mut line = make::tool_result(ToolResult::text(id, &text))
                // As its call, which becomes an entry of the session if that has no messages of its own.
                .with("isSidechain", is_sidechain && !self.is_headless())
                .uuid(new_id())
                .parent(parent.as_deref())
                .with("sourceToolAssistantUUID", parent.as_deref())
                .engine(&engine);
            if let Some(time) = time {
                line = line.timestamp(&time);
            }
            for key in [
                "agentId",
                "userType",
                "cwd",
                "sessionId",
                "version",
                "gitBranch",
            ] {
                let value = fields.as_ref().and_then(|fields| fields.get(key));
                line = match value {
                    Some(value) => line.with(key, value),
                    None => line,
                };
            }
            made.entry(*place).or_default().push(line.text());
        }
        Ok(made)
    }

    /// Returns the marker, a line that lists the sources of the file.
    fn marker(&self, now: &str) -> String {
        let agents = self.parts.iter().filter(|part| !part.is_own).map(|part| {
            ObjectBuf::new()
                .with("file", part.file.as_str())
                .with("entries", part.index.len() as u64)
                .with_some("toolUseId", part.call.as_deref())
        });
        let files = self.files.iter().map(|side| {
            ObjectBuf::new()
                .with("file", side.file.as_str())
                .with("bytes", side.bytes)
                .with_some(
                    "toolUseId",
                    match &side.call {
                        KnownCall::Unknown => None,
                        KnownCall::Open(_, id) | KnownCall::Answered(id) => Some(id.as_str()),
                    },
                )
        });
        let why = match self.own() {
            Some(_) => "stalled",
            None => "absent",
        };
        let files: Vec<_> = agents.chain(files).map(Into::into).collect();
        let salvaged = ObjectBuf::new()
            .with("session", why)
            .with("at", now)
            .with("files", transcript_format::json::Json::array(files));
        self.engine_line(salvaged)
    }

    fn engine_line(&self, salvaged: ObjectBuf) -> String {
        let line = make::engine_line(&ObjectBuf::new().with(SALVAGED_KEY, salvaged));
        line.session_id(&self.id).text()
    }

    /// Returns the title of the session, or one that names its sources.
    fn title(&self) -> Result<String, Error> {
        let mut title = None;
        if let Some(own) = self.own() {
            let mut bodies = Bodies::new(&own.source);
            // In this order, so that the title of the person replaces that of the client.
            for kind in [EntryKind::AiTitle, EntryKind::CustomTitle] {
                let mut lines = own.index.entries().rev();
                if let Some(line) = lines.find(|line| line.kind() == kind) {
                    let line = Object::parse(bodies.get(&line)?.text).ok();
                    let text = line.and_then(|line| Some(kind.text_of(&line)?.into_owned()));
                    title = text.filter(|text| !text.trim().is_empty()).or(title);
                }
            }
        }
        let agents = self.parts.iter().filter(|part| !part.is_own).count();
        let start: String = self.id.chars().take(8).collect();
        let agents = match agents {
            1 => "a subagent".to_owned(),
            count => format!("{count} subagents"),
        };
        Ok(title.map_or_else(
            || format!("Session {start}, salvaged from {agents}"),
            |title| format!("{title} (salvaged)"),
        ))
    }
}

/// Lines that are written after an entry.
type Made = BTreeMap<CallEnd, Vec<String>>;

impl SessionPart {
    /// Returns the text of an entry with the place that it comes from. It becomes a root if its parent
    /// `is_lost`, and an entry of the main conversation if it `is_of_session` now; the old values are
    /// kept.
    fn noted(
        &self,
        entry: &EntryRef<'_>,
        text: String,
        is_lost: bool,
        is_of_session: bool,
    ) -> String {
        let place = ObjectBuf::new()
            .with("file", self.file.as_str())
            .with("line", entry.line());
        let Ok(object) = Object::parse(&text) else {
            return text;
        };
        let is_promoted = is_of_session && entry.flags().contains(Flags::SIDECHAIN);
        let changes = [
            ("parentUuid", "null", is_lost),
            ("isSidechain", "false", is_promoted),
        ];
        let changes = changes.iter().filter(|(.., is_made)| *is_made);
        let own = object.object(ENGINE_KEY);
        let own = own.map_or_else(
            || ObjectBuf::new().with("v", ENGINE_VERSION),
            |own| (&own).into(),
        );
        let mut own = own.with(SALVAGED_KEY, place);
        // A session that is salvaged twice keeps the values that the client wrote, not those of the first salvage.
        if own.get(OLD_VALUES_KEY).is_none() {
            let old = changes.clone();
            let old = old.filter_map(|(key, ..)| Some((*key, object.get(key)?)));
            let was = old.fold(ObjectBuf::new(), |was, (key, value)| was.with(key, value));
            if was.members().len() > 0 {
                own = own.with(OLD_VALUES_KEY, was);
            }
        }
        let noted = object.with(ENGINE_KEY, &own.text());
        changes.fold(noted, |text, (key, value, _)| {
            let changed = Object::parse(&text).map(|object| object.with(key, value));
            changed.unwrap_or(text)
        })
    }
}

impl SideFile {
    /// Returns its text; `None` if it is longer than the limit, or not text.
    ///
    /// # Errors
    /// When it cannot be read: an omission of a salvage would not be noticed.
    fn text(&self, disk: &dyn ReadDisk) -> Result<Option<String>, Error> {
        // Files elsewhere are not texts of results, so the marker names them and nothing is copied.
        if self.bytes > MAX_RESULT_LEN || !self.file.starts_with(RESULTS_FOLDER) {
            return Ok(None);
        }
        let read = disk.read(&self.path, MAX_RESULT_LEN as usize);
        let bytes = read.map_err(|error| Error::io(&self.path, None, error))?;
        Ok(String::from_utf8(bytes).ok())
    }
}

/// Returns whether nothing follows the message that makes a call.
fn is_last(part: &SessionPart, call: EntryNo) -> bool {
    let call = part.index.entry(call);
    let is_of_message = |entry: &EntryRef<'_>| {
        entry.number() == call.number()
            || (entry.message().is_some() && entry.message() == call.message())
    };
    // A message has several lines, and an entry after it may continue any of them.
    let of_message = part.index.entries().filter(is_of_message);
    let ids: HashSet<_> = of_message.filter_map(|entry| entry.uuid()).collect();
    let mut others = part.index.entries().filter(|entry| !is_of_message(entry));
    // A line of its own, to put another one behind it.
    let mut next = [0];
    let end = call.offset() + call.byte_len();
    let is_whole = part
        .source
        .read_at(end, &mut next)
        .is_ok_and(|read| read == 0 || next == [b'\n']);
    call.uuid().is_some()
        && is_whole
        && !others.any(|entry| entry.parent().is_some_and(|parent| ids.contains(&parent)))
}

fn uuids(part: &SessionPart) -> impl Iterator<Item = String> + '_ {
    let ids = part.index.entries().filter_map(|entry| entry.uuid());
    ids.map(|id| part.index.id_text(id))
}

/// Returns the names after `tool-results/` in a text.
fn names_in(text: &str) -> impl Iterator<Item = String> + '_ {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let places = memchr::memmem::find_iter(text.as_bytes(), RESULTS_FOLDER.as_bytes());
    places.filter_map(move |at| {
        let rest = text.as_bytes()[at + RESULTS_FOLDER.len()..].strip_prefix(b"/")?;
        let len = rest.iter().take_while(|byte| is_part(byte)).count();
        let name = std::str::from_utf8(&rest[..len]).ok()?;
        // The name may be the end of a sentence.
        Some(name.trim_end_matches('.').to_owned())
    })
}

/// Returns the files in the folder of a session, except for the subagents that were `read` and their metadata. Links are not
/// followed.
///
/// # Errors
/// When a folder that is there, or something in it, cannot be looked at.
fn side_files(
    disk: &dyn ReadDisk,
    folder: &Path,
    read: &HashSet<&Path>,
) -> Result<Vec<SideFile>, Error> {
    let mut files = Vec::new();
    disk.layout().walk(disk, (folder, ""), &mut |found| {
        let path = match found {
            Side::Folder(_) => return Ok(true),
            Side::File(path, FileKind::File) => path,
            Side::Problem(path, error) if !is_absent(&error) => {
                return Err(Error::io(path, None, error));
            }
            _ => return Ok(false),
        };
        let metadata = match disk.link_metadata(path) {
            // A client can remove files while they are listed.
            Err(error) if is_absent(&error) => return Ok(false),
            metadata => metadata.map_err(|error| Error::io(path, None, error))?,
        };
        // `agent-ID.meta.json` belongs to `agent-ID.jsonl`, whose metadata was read with it.
        let agent = path.with_extension("").with_extension("jsonl");
        if !read.contains(path) && !read.contains(&*agent) {
            let modified = metadata.modified;
            let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            files.push(SideFile {
                file: name_below(folder, path),
                bytes: metadata.len,
                modified: modified.and_then(|time| i64::try_from(time.as_millis()).ok()),
                call: KnownCall::Unknown,
                path: path.to_owned(),
            });
        }
        Ok(false)
    })?;
    Ok(files)
}

/// Returns the path below a folder with `/` between its parts.
fn name_below(folder: &Path, path: &Path) -> String {
    let below = path.strip_prefix(folder).ok();
    let name = || path.file_name().unwrap_or_default().as_ref();
    let parts = below.unwrap_or_else(name).components();
    let parts = parts.map(|part| part.as_os_str().to_string_lossy());
    parts.collect::<Vec<_>>().join("/")
}

/// Writes lines.
struct LineWriter<'o> {
    path: &'o Path,
    out: &'o mut dyn Write,
}

impl LineWriter<'_> {
    fn line(&mut self, text: &str) -> Result<(), Error> {
        self.write(text.as_bytes())?;
        self.write(b"\n")
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.out.write_all(bytes);
        written.map_err(|error| Error::io(self.path, None, error))
    }

    fn copy(&mut self, source: &Source, from: u64, to: u64) -> Result<(), Error> {
        let mut block = vec![0; BLOCK_SIZE.min((to - from) as usize)];
        let mut at = from;
        while at < to {
            let wanted = block.len().min((to - at) as usize);
            let read = source.read_at(at, &mut block[..wanted])?;
            if read == 0 {
                // The file was truncated after it was indexed. The new file would silently lack its last lines.
                let error = std::io::ErrorKind::UnexpectedEof.into();
                return Err(Error::io(self.path, Some(at), error));
            }
            self.write(&block[..read])?;
            at += read as u64;
        }
        Ok(())
    }
}
