//! Lists sessions: one row each, from the start and the end of the file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use transcript_format::ids::Uuid;
use transcript_format::kind::EntryKind;
use transcript_format::metadata::CustomTitle;
use transcript_format::names::{
    is_key_of, is_project, is_windows, named_after, project_key, repository_of, same_path,
};
use transcript_format::object::Object;
use transcript_format::scan::{Flags, Scanner};
use transcript_format::time;
use transcript_format::title::{self, TitleLines, TitleSource};
use transcript_format::unicode::comparable;
use transcript_storage::{ReadDisk, RealDisk, parallel};

use crate::bodies::Bodies;
use crate::discover::{SessionFile, SessionFiles, folder_names, worktrees};
use crate::error::Error;
use crate::index::Index;
use crate::prompt::{Prompt, shorten};
use crate::session_state::SessionState;
use crate::source::{Source, real_disk};
use crate::subagents::subagents_on;
use crate::summary_scan::{self, HeadScan, ScanRange, SettingsScan, TailScan};

/// The number of bytes that clients scan at either end (LIST-1).
const CLIENT_SCAN_LEN: u64 = title::TITLE_SCAN_LEN;
/// Files up to this size are read as a whole.
const WHOLE_FILE_LIMIT: u64 = 16 << 10;
/// The maximum distance of a setting from the end.
const MAX_SETTING_DISTANCE: u64 = 512 << 10;
/// The maximum distance of a title of a person from the end. Only this is searched for beyond [`MAX_SETTING_DISTANCE`].
const MAX_TITLE_DISTANCE: u64 = 4 << 20;
/// The number of bytes that are searched for it at a time.
const TITLE_SEARCH_LEN: u64 = 512 << 10;
/// Longer lines are not titles.
const MAX_TITLE_LINE: u64 = 16 << 10;
/// The maximum distance of a prompt or message from its end of the file.
const MAX_SCAN_DISTANCE: u64 = 8 << 20;
/// The maximum size of a side file.
const MAX_SIDE_FILE: u64 = 64 << 10;

/// One session of a list. Values that the file does not have are `None`; [`Listing`] documents how
/// far each of them is searched for.
///
/// Serialized, it has the values of a row about the content of its file, without the file and its folder;
/// [`SessionRow::of_stored`] makes a row of that. Names that are missing are unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionRow {
    /// The name of the file without `.jsonl`.
    #[serde(skip)]
    pub session_id: String,
    /// The file.
    #[serde(skip)]
    pub path: PathBuf,
    /// Whether [`Self::path`] exists. If only files of subagents are left, folder, branch and times
    /// are those of the last subagent, and the rest is unknown.
    #[serde(skip)]
    pub has_file: bool,
    /// The name of its folder.
    #[serde(skip)]
    pub project: String,
    /// The folder that the session belongs to: the one that its project folder is named after, if lines name it. Else
    /// the one that it moved to, else the one that it started in. Clients find it only there: see [`Self::continued_in`].
    pub cwd: Option<String>,
    /// The folder that its last `relocated` line names.
    #[serde(skip)]
    pub relocated: Option<String>,
    /// The folder that it had before it entered the worktree in which it is, as its last `worktree-state` line says.
    pub before_worktree: Option<String>,
    /// The title, by the rule of [`TitleLines`].
    pub title: Option<String>,
    /// The source of the title.
    pub title_source: Option<TitleSource>,
    /// The first prompt that a person wrote, without the references before it, on one line and truncated
    /// to 200 UTF-16 units; else the first slash command.
    pub first_prompt: Option<String>,
    /// The last prompt: of the last `last-prompt` line, else the last one in the last 64 KiB; that one as
    /// well if the line shows only the references before it.
    pub last_prompt: Option<String>,
    /// The summary that the SDKs show for the session: the title, else the `last-prompt` line, else the text of a `summary`
    /// line, else the first prompt; on one line and truncated as these (LIST-1).
    pub summary: Option<String>,
    /// The modification time of the file, in milliseconds since 1970.
    pub file_millis: Option<i64>,
    /// The last text of the last answer, on one line and truncated to 200 UTF-16 units, if the session ended
    /// with it.
    pub last_answer: Option<String>,
    /// The time of the first line that has a time.
    pub created: Option<String>,
    /// The time of the last message; without messages, the modification time of the file.
    pub modified: Option<String>,
    /// Whether [`Self::modified`] is the time of a message.
    pub has_conversation: bool,
    /// When the session was forked, by the time of its file; only if no message was added since.
    pub forked: Option<String>,
    /// The model of the last answer, if it is among the lines that are read.
    pub model: Option<String>,
    /// The number of entries of the conversation: of a file up to 16 KiB all of them, else those that the
    /// client counted at the end of the last turn, if that is in the last 64 KiB.
    pub messages: Option<u64>,
    /// The length of the file.
    pub bytes: u64,
    /// The branch that the last entry names.
    pub branch: Option<String>,
    /// The tag.
    pub tag: Option<String>,
    /// The number of subagents with a file.
    #[serde(skip)]
    pub subagents: usize,
    /// The state in which it ended.
    #[serde(serialize_with = "state_name", deserialize_with = "state_named")]
    pub state: Option<SessionState>,
    /// Whether it is archived: `None` if it was never archived, `false` also if a person wrote a prompt since.
    pub archived: Option<bool>,
    /// The entrypoint of the client that wrote the first entries: `cli`, `sdk-py`, …
    pub entrypoint: Option<String>,
    /// Whether the entries at the start of the file are all of a subagent.
    pub is_sidechain: bool,
}

impl SessionRow {
    fn new(disk: &dyn ReadDisk, file: &SessionFile) -> Self {
        Self {
            session_id: file.id.clone(),
            path: file.path.clone(),
            has_file: true,
            project: file.project.clone(),
            subagents: file.agents(disk),
            ..Self::default()
        }
    }

    /// Returns the row of a session of which nothing but its files is known.
    #[must_use]
    pub fn unread(disk: &dyn ReadDisk, file: &SessionFile) -> Self {
        Self::new(disk, file)
    }

    /// Returns the row of `file` with the stored values about its content.
    #[must_use]
    pub fn of_stored(disk: &dyn ReadDisk, file: &SessionFile, stored: Self) -> Self {
        let row = Self::new(disk, file);
        Self {
            session_id: row.session_id,
            path: row.path,
            has_file: row.has_file,
            project: row.project,
            subagents: row.subagents,
            ..stored
        }
    }

    /// Reads the row of one session, as [`Listing`] does for many. Values that cannot be read remain unknown.
    #[must_use]
    pub fn of_file(disk: &Arc<dyn ReadDisk>, file: &SessionFile) -> Self {
        Self::read(disk, file, &mut Scratch::default()).0
    }

    /// Reads the row of the session whose file is `path`, as [`Self::of_file`] does on the disk of this machine.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        let disk = real_disk();
        Self::of_file(&disk, &SessionFile::at(&*disk, path))
    }

    /// Returns the folder in which a client has to be started to find the session by its id. `None` if none would find it:
    /// the file is not named after an id, or [`Self::home`] is unknown.
    #[must_use]
    pub fn continued_in(&self) -> Option<&str> {
        self.home()
            .filter(|_| self.has_file && self.is_named_by_id())
    }

    /// Returns whether the file is named after an id.
    fn is_named_by_id(&self) -> bool {
        Uuid::parse(self.session_id.to_ascii_lowercase().as_bytes()).is_some()
    }

    /// Returns the folder that its project folder is named after. `None` if it is in no project folder, or if no line names
    /// that folder.
    #[must_use]
    pub fn home(&self) -> Option<&str> {
        named_after(&self.project, self.cwd.as_deref())
    }

    /// Returns the title, if a person or a model gave it: only that is a title for the SDKs.
    #[must_use]
    pub fn given_title(&self) -> Option<&str> {
        let is_summary = self.title_source == Some(TitleSource::Summary);
        self.title.as_deref().filter(|_| !is_summary)
    }

    /// Returns [`Self::modified`] in milliseconds since 1970.
    #[must_use]
    pub fn modified_millis(&self) -> Option<i64> {
        time::millis(self.modified.as_deref()?.as_bytes())
    }

    /// Returns the time by which rows are sorted, in milliseconds since 1970: when the session was
    /// forked, else [`Self::modified`]. In place of a time that is not over yet, which a clock that is ahead wrote, the time of the
    /// file counts: else the session would stay the newest until then.
    #[must_use]
    pub fn order_millis(&self) -> Option<i64> {
        let forked = self.forked.as_deref();
        let forked = forked.and_then(|forked| time::millis(forked.as_bytes()));
        let now = millis(SystemTime::now());
        let modified = self.modified_millis().map(|time| match self.file_millis {
            Some(file) if Some(time) > now => time.min(file),
            _ => time,
        });
        forked.max(modified)
    }

    /// Reads the first prompt as a whole, to tell sessions apart that start alike. `None` if it is not
    /// within the first 64 KiB of the file, or cannot be read.
    #[must_use]
    pub fn whole_first_prompt(&self) -> Option<String> {
        let source = Source::open(&self.path).ok()?;
        let mut bytes = Bytes::default();
        let start = bytes.read(&source, 0, CLIENT_SCAN_LEN).ok()?;
        summary_scan::whole_first_prompt(start)
    }

    /// Reads the row of a session; values that cannot be read remain unknown.
    fn read(
        disk: &Arc<dyn ReadDisk>,
        file: &SessionFile,
        scratch: &mut Scratch,
    ) -> (Self, Option<Error>) {
        let mut row = Self::new(&**disk, file);
        let error = Source::open_unchecked(disk, &file.path).and_then(|source| {
            row.fill(file, &source, scratch)?;
            if row.is_without_content() {
                source.check_messages()?;
            }
            Ok(())
        });
        let error = error.err();
        if error.is_some() {
            row.fill_from_metadata(&**disk);
        }
        (row, error)
    }

    /// Returns whether nothing was found by which a file is known to hold an entry.
    fn is_without_content(&self) -> bool {
        let texts = [
            &self.created,
            &self.cwd,
            &self.title,
            &self.summary,
            &self.branch,
        ];
        texts.into_iter().all(Option::is_none) && !self.has_conversation
    }

    /// Reads the row of a session without its own file, from the last subagent.
    fn read_orphan(
        disk: &Arc<dyn ReadDisk>,
        file: &SessionFile,
        scratch: &mut Scratch,
    ) -> (Self, Option<Error>) {
        let mut row = Self::new(&**disk, file);
        let agents = subagents_on(disk, &file.path)
            .unwrap_or_default()
            .into_iter();
        let modified = |path: &Path| disk.metadata(path).ok()?.modified;
        let last = agents.max_by_key(|agent| modified(&agent.path));
        let source = last.map(|agent| Source::open_unchecked(disk, &agent.path));
        let filled = source.map(|source| row.fill(file, &source?, scratch));
        // The prompt of a subagent was not written by a person.
        let row = Self {
            has_file: false,
            has_conversation: false,
            bytes: 0,
            first_prompt: None,
            last_prompt: None,
            state: None,
            messages: None,
            ..row
        };
        (row, filled.and_then(Result::err))
    }

    fn fill(
        &mut self,
        file: &SessionFile,
        source: &Source,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        self.bytes = source.len();
        let Scratch { bytes, scanner } = scratch;
        bytes.forget();
        // One read in place of several windows: all of them are within these bytes then.
        if source.len() <= MAX_SETTING_DISTANCE {
            bytes.read(source, 0, source.len())?;
        }
        source.check_start(bytes.read(source, 0, CLIENT_SCAN_LEN)?)?;
        let mut head = read_head(source, bytes, scanner)?;
        // In a small file the tail scan reads the first lines as well; a second scan would find nothing else.
        let start = match source.len() {
            0..=MAX_SETTING_DISTANCE => SettingsScan::default(),
            _ => SettingsScan::read(scanner, bytes.read(source, 0, CLIENT_SCAN_LEN)?),
        };
        let mut tail = read_tail(source, bytes, scanner, head.is_sidechain())?;
        // Only the title of a person: clients repeat other settings at the end of each turn (META-1).
        if tail.settings.text(EntryKind::CustomTitle).is_none() {
            let title = far_title(source, bytes, scanner)?;
            tail.settings.or_text(EntryKind::CustomTitle, || title);
        }
        // After that of the far end, as the later line of a setting counts.
        tail.settings = tail.settings.or(start);
        self.is_sidechain = head.is_sidechain();
        self.state = tail.state();
        self.model = tail.model.take();
        self.last_answer = tail.last_answer();
        self.messages = tail.messages;
        if source.len() <= WHOLE_FILE_LIMIT {
            let all = bytes.read(source, 0, source.len())?;
            self.messages = Some(summary_scan::entries(scanner, all, head.is_sidechain()));
        }
        // The last message is a copy with the time of the original: a fork is as new as its file.
        if tail.is_copied {
            self.forked = source.modified().and_then(time_text);
        }
        let lines = TitleLines {
            custom: tail.settings.take(EntryKind::CustomTitle),
            is_near: tail.title_is_near,
            ai: tail.settings.take(EntryKind::AiTitle),
        };
        let summaries = std::mem::take(&mut tail.settings.summaries);
        let title = lines.title(
            || side_title(source, file),
            || own_summary(source, scratch, summaries),
        )?;
        (self.title, self.title_source) = title.unzip();
        let tag = tail.settings.take(EntryKind::Tag);
        self.tag = tag.filter(|tag| !tag.is_empty());
        self.before_worktree = tail.settings.before_worktree();
        self.branch = tail.settings.branch.take();
        self.relocated = tail.settings.take(EntryKind::Relocated);
        self.cwd = self.find_home(source, head.cwd.take(), scratch)?;
        self.created = head.created.take();
        self.entrypoint = head.entrypoint.take();
        self.first_prompt = head.first_prompt();
        let noted = tail.settings.text(EntryKind::LastPrompt).map(shorten);
        let noted = noted.or_else(|| tail.summary.take());
        // The order of the SDKs, whose lists show the same line.
        let noted = self.given_title().map(str::to_owned).or(noted);
        self.summary = noted.or_else(|| self.first_prompt.clone());
        self.last_prompt = tail.last_prompt();
        self.file_millis = source.modified().and_then(millis);
        self.modified = tail.modified;
        let last_message = self.modified_millis();
        // Some programs write messages without times.
        self.has_conversation = last_message.is_some() || self.first_prompt.is_some();
        self.archived = archived(source, file, last_message);
        // Without a message the list still needs a time to sort by.
        if last_message.is_none() {
            self.modified = source.modified().and_then(time_text);
        }
        Ok(())
    }

    /// Returns the folder that the session belongs to; `first` is the one that it started in. A client changes the
    /// folder of its lines with every `cd`, and leaves the file where it is.
    fn find_home(
        &self,
        source: &Source,
        first: Option<String>,
        scratch: &mut Scratch,
    ) -> Result<Option<String>, Error> {
        let recorded = [&self.relocated, &first].into_iter().flatten();
        let home = named_after(&self.project, recorded.map(String::as_str)).map(str::to_owned);
        if home.is_some() || first.is_none() || !is_project(&self.project) {
            return Ok(home.or_else(|| self.relocated.clone()).or(first));
        }
        let Scratch { bytes, scanner } = scratch;
        // The first line may name a folder that the client had changed to before; another line names the one of the project.
        let mut others = summary_scan::folders(scanner, bytes.read(source, 0, CLIENT_SCAN_LEN)?);
        let end = source.len().saturating_sub(CLIENT_SCAN_LEN);
        others.extend(summary_scan::folders(
            scanner,
            bytes.read(source, end, CLIENT_SCAN_LEN)?,
        ));
        let home = named_after(&self.project, others.iter().map(String::as_str));
        let home = home.map(str::to_owned);
        Ok(home.or_else(|| self.relocated.clone()).or(first))
    }

    fn fill_from_metadata(&mut self, disk: &dyn ReadDisk) {
        if let Ok(found) = disk.metadata(&self.path) {
            self.bytes = found.len;
            self.file_millis = found.modified.and_then(millis);
            self.modified = found.modified.and_then(time_text);
        }
    }
}

fn state_name<S: Serializer>(state: &Option<SessionState>, out: S) -> Result<S::Ok, S::Error> {
    state.map(SessionState::name).serialize(out)
}

/// Reads a state by its name. Another one, of a later version, is unknown.
fn state_named<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SessionState>, D::Error> {
    let name = Option::<String>::deserialize(from)?;
    let mut all = SessionState::ALL.into_iter();
    Ok(all.find(|state| Some(state.name()) == name.as_deref()))
}

/// All sessions of a projects folder, the newest conversation first; a fork without new entries counts
/// as new when it was made.
///
/// Only small files are read as a whole. Each value is searched for only in these places:
///
/// | value | place |
/// | --- | --- |
/// | first prompt, working folder, creation | the first 64 KiB, or as much as needed, up to 8 MiB |
/// | time of the last message, state | the last 64 KiB, or as much as needed, up to 8 MiB |
/// | model, number of entries | the lines that are read for the other values; of a file up to 16 KiB all lines are counted |
/// | titles, summaries, tag, branch, last prompt, relocation | the last 64 KiB if a title of the person is there, else the last 512 KiB; then the first 64 KiB |
/// | title of the person | the last 4 MiB as well |
/// | leaf of a summary that is a title | the last 8 MiB |
/// | agents, side files | names in the folder of the session; side files up to 64 KiB |
///
/// A session of 2 GB therefore takes as long as one of a few MB. Lines are framed and scanned; of a
/// damaged line the complete entries in it count.
#[derive(Debug)]
#[non_exhaustive]
pub struct Listing {
    /// One row for each session, without exceptions: sessions without a prompt, of a subagent only,
    /// empty ones, and those of which only subagents are left are included.
    pub rows: Vec<SessionRow>,
    /// The errors. A session whose file cannot be read has a row all the same.
    pub problems: Vec<Error>,
    disk: Arc<dyn ReadDisk>,
}

impl Default for Listing {
    fn default() -> Self {
        Self::of(SessionFiles::default())
    }
}

impl Listing {
    /// Reads all sessions below `root`, several files at a time.
    ///
    /// # Errors
    /// When `root` cannot be read.
    pub fn read(root: &Path) -> Result<Self, Error> {
        Self::read_on(&real_disk(), root)
    }

    /// Reads all sessions below `root` on `disk`, as [`Self::read`] does on the disk of this
    /// machine.
    ///
    /// # Errors
    /// When `root` cannot be read.
    pub fn read_on(disk: &Arc<dyn ReadDisk>, root: &Path) -> Result<Self, Error> {
        Ok(Self::of(SessionFiles::in_root_on(disk, root)?))
    }

    /// Reads these sessions, several files at a time.
    #[must_use]
    pub fn of(files: SessionFiles) -> Self {
        Self::of_known(files, &|_| None)
    }

    /// Reads these sessions, several files at a time, except for those whose rows `known` has.
    #[must_use]
    pub fn of_known(
        files: SessionFiles,
        known: &(dyn Fn(&SessionFile) -> Option<SessionRow> + Sync),
    ) -> Self {
        let mut listing = Self {
            rows: Vec::with_capacity(files.sessions.len()),
            problems: files.problems,
            disk: files.disk,
        };
        let disk = &listing.disk;
        let sessions = parallel(&files.sessions, |file, scratch| match known(file) {
            Some(row) => (row, None),
            None => SessionRow::read(disk, file, scratch),
        });
        let orphans = parallel(&files.orphans, |file, scratch| {
            SessionRow::read_orphan(disk, file, scratch)
        });
        for (row, problem) in sessions.into_iter().chain(orphans) {
            listing.rows.push(row);
            listing.problems.extend(problem);
        }
        listing.count_agents_next_to(&files.agents);
        listing.sort();
        listing
    }

    /// Adds rows, and errors.
    pub fn add(&mut self, rows: Vec<SessionRow>, problems: Vec<Error>) {
        self.rows.extend(rows);
        self.problems.extend(problems);
        self.sort();
    }

    fn sort(&mut self) {
        // Of copies of one session, clients find the one that is named after its id.
        self.rows.sort_by_cached_key(|row| {
            let time = std::cmp::Reverse(row.order_millis());
            (time, !row.is_named_by_id(), row.path.clone())
        });
    }

    /// Returns the rows of the project at `path`, the newest first: the sessions that work there
    /// according to their lines, and those in the project folder that do not work in another folder
    /// with the same key. Links are followed. With `with_worktrees`, also those of the other
    /// worktrees of the repository: of those that a client made, or that a session says it entered, also when they are gone.
    #[must_use]
    pub fn of_project(&self, path: &Path, with_worktrees: bool) -> Vec<&SessionRow> {
        let real = |path: &Path| real(&*self.disk, path);
        let places = project_places(&*self.disk, path, with_worktrees);
        let mut known = HashMap::new();
        // Compared as text, by the rules of `same_path`: worktrees that are gone have no real path.
        let names: Vec<_> = places.iter().map(|place| place.to_string_lossy()).collect();
        let is_place = |path: &Path| {
            let path = path.to_string_lossy();
            names.iter().any(|name| same_path(name, &path))
        };
        let mut is_one = |cwd: &str| {
            *known.entry(cwd.to_owned()).or_insert_with(|| {
                let repository = repository_of(cwd).filter(|_| with_worktrees);
                is_place(&real(Path::new(cwd)))
                    || repository.is_some_and(|path| is_place(&real(Path::new(path))))
            })
        };
        let is_in_folder = |row: &SessionRow| {
            let is_key = |path: &str| is_key_of(&row.project, path);
            // `/a-b` and `/a/b` have one key (FILE-13): the folder of the row decides if it has that key, too.
            names.iter().any(|name| is_key(name)) && !row.cwd.as_deref().is_some_and(is_key)
        };
        let rows = self.rows.iter();
        rows.filter(|row| {
            let before = row.before_worktree.as_ref().filter(|_| with_worktrees);
            let folders = [&row.cwd, &row.relocated].into_iter().flatten();
            folders.chain(before).any(|folder| is_one(folder)) || is_in_folder(row)
        })
        .collect()
    }

    /// Returns the rows of the project that a person names: by its path as [`Self::of_project`] does, with all worktrees; else by
    /// the name of its folder below the folder of projects; else those of all projects that have `name` as a part of their
    /// path, in any case.
    #[must_use]
    pub fn of_project_named(&self, name: &Path) -> Vec<&SessionRow> {
        let Some(part) = self.part_of_name(name) else {
            return self.of_project(name, true);
        };
        let is_one = |row: &&SessionRow| is_named(&row.project, row.cwd.as_deref(), &part);
        let is_whole = |row: &&SessionRow| Path::new(&row.project) == name;
        let found: Vec<_> = self.rows.iter().filter(is_whole).collect();
        if found.is_empty() {
            return self.rows.iter().filter(is_one).collect();
        }
        found
    }

    /// Returns whether a folder below the folder of projects is that of the project that a person names.
    #[must_use]
    pub fn is_folder_of_project(&self, folder: &str, name: &Path) -> bool {
        match self.part_of_name(name) {
            Some(part) => is_named(folder, None, &part),
            None => is_key_of(folder, &name.to_string_lossy()),
        }
    }

    /// Returns the text that is a part of the names of projects; `None` for a path: one that starts at the root, or is there.
    fn part_of_name(&self, name: &Path) -> Option<String> {
        let text = name.to_string_lossy();
        let is_path = name.has_root() || is_windows(&text) || text.starts_with(['.', '~']);
        let is_part = !is_path && !text.is_empty() && self.disk.metadata(name).is_err();
        is_part.then(|| comparable(&text))
    }

    /// Returns the session with the newest conversation in the project at `path`, without its other
    /// worktrees; if the project has none, the newest of all. Sessions without messages are
    /// considered only if there are no others, empty files never.
    #[must_use]
    pub fn latest(&self, path: &Path) -> Option<&SessionRow> {
        let here = self.of_project(path, false);
        let newest = |has_conversation: bool| {
            let counts =
                |row: &&SessionRow| row.bytes > 0 && (row.has_conversation || !has_conversation);
            let here = here.iter().copied().find(counts);
            here.or_else(|| self.rows.iter().find(counts))
        };
        newest(true).or_else(|| newest(false))
    }

    /// Counts the agent files of clients before 2.1.2, which are next to the session that their
    /// lines name.
    fn count_agents_next_to(&mut self, agents: &[PathBuf]) {
        let mut counts = HashMap::<(PathBuf, String), usize>::new();
        let sessions = parallel(agents, |path, scratch| {
            let source = Source::open_on(&self.disk, path).ok()?;
            let head = scratch.bytes.read(&source, 0, CLIENT_SCAN_LEN).ok()?;
            Some((path.parent()?.to_owned(), summary_scan::session_id(head)?))
        });
        for session in sessions.into_iter().flatten() {
            *counts.entry(session).or_default() += 1;
        }
        if counts.is_empty() {
            return;
        }
        for row in &mut self.rows {
            let folder = row.path.parent().unwrap_or(Path::new("")).to_owned();
            let count = counts.get(&(folder, row.session_id.clone()));
            row.subagents += count.copied().unwrap_or(0);
        }
    }
}

/// Reads the start of the file in growing windows, until the first prompt is known.
fn read_head(source: &Source, bytes: &mut Bytes, scanner: &mut Scanner) -> Result<HeadScan, Error> {
    let mut size = CLIENT_SCAN_LEN;
    loop {
        let head = HeadScan::read(scanner, bytes.read(source, 0, size)?, size >= source.len());
        if head.is_enough() || size >= source.len().min(MAX_SCAN_DISTANCE) {
            return Ok(head);
        }
        // Few steps, as each of them scans from the start again.
        size = (size * 8).min(MAX_SCAN_DISTANCE);
    }
}

/// Reads the end of the file in growing windows; most sessions need only the first one. A line that
/// begins before a window belongs to the next window.
fn read_tail(
    source: &Source,
    bytes: &mut Bytes,
    scanner: &mut Scanner,
    is_sidechain: bool,
) -> Result<TailScan, Error> {
    let from_end = |size| source.len().saturating_sub(size);
    let reach = ScanRange {
        near: from_end(CLIENT_SCAN_LEN),
        far: from_end(MAX_SETTING_DISTANCE),
    };
    let mut tail = TailScan::default();
    let mut end = source.len();
    for size in [CLIENT_SCAN_LEN, MAX_SETTING_DISTANCE, MAX_SCAN_DISTANCE] {
        let start = from_end(size);
        // The byte before shows whether a line starts here.
        let before = start.saturating_sub(1);
        let window = bytes.read(source, before, end - before)?;
        let cut = match start {
            0 => 0,
            _ => memchr::memchr(b'\n', window).map_or(window.len(), |newline| newline + 1),
        };
        tail.read(
            scanner,
            &window[cut..],
            before + cut as u64,
            reach,
            is_sidechain,
        );
        let has_settings = tail.has_near_title() || size >= MAX_SETTING_DISTANCE;
        if tail.is_complete() && has_settings || start == 0 {
            break;
        }
        // The next window ends where the lines of this one started, so no line is scanned twice.
        end = before + cut as u64;
    }
    Ok(tail)
}

/// Returns the last title of a person that is further from the end than other settings are searched for.
fn far_title(
    source: &Source,
    bytes: &mut Bytes,
    scanner: &mut Scanner,
) -> Result<Option<String>, Error> {
    let search_start = source.len().saturating_sub(MAX_TITLE_DISTANCE);
    let mut end = source.len().saturating_sub(MAX_SETTING_DISTANCE);
    while end > search_start {
        let start = end.saturating_sub(TITLE_SEARCH_LEN).max(search_start);
        // A line may lie across the start of the part that was searched before.
        let len = (end - start) + MAX_TITLE_LINE;
        let title = SettingsScan::last_title(scanner, bytes.read(source, start, len)?);
        if title.is_some() {
            return Ok(title);
        }
        end = start;
    }
    Ok(None)
}

/// Returns the title in the side file of a session.
fn side_title(source: &Source, file: &SessionFile) -> Option<String> {
    let title = side_file(source, file, "custom-title.json")?;
    let title = CustomTitle::from(Object::parse(&title).ok()?);
    Some(title.custom_title()?.into_owned())
}

/// Returns the title in the side file of the session in this file (`custom-title.json`).
#[must_use]
pub fn title_beside(source: &Source) -> Option<String> {
    side_title(source, &SessionFile::at(&*source.disk(), source.path()))
}

/// Returns the first of these summaries, each with its leaf, that is one of this conversation: older clients wrote those of
/// others at the start of a file.
fn own_summary(
    source: &Source,
    scratch: &mut Scratch,
    summaries: Vec<(String, String)>,
) -> Result<Option<String>, Error> {
    // Only older clients wrote summaries: the search for their leaves reads up to 8 MiB.
    if summaries.is_empty() {
        return Ok(None);
    }
    let Scratch { bytes, scanner } = scratch;
    let start = source.len().saturating_sub(MAX_SCAN_DISTANCE);
    let leaves = summaries.iter().map(|(_, leaf)| leaf.as_str()).collect();
    let found = summary_scan::uuids(
        scanner,
        bytes.read(source, start, MAX_SCAN_DISTANCE)?,
        &leaves,
    );
    let mut summaries = summaries.into_iter();
    let own = summaries.find(|(_, leaf)| found.contains(leaf));
    Ok(own.map(|(summary, _)| summary))
}

/// Reads the side file in which clients note that a session is archived. A prompt takes it out of the archive; an answer
/// that was still being written does not.
fn archived(source: &Source, file: &SessionFile, last_message: Option<i64>) -> Option<bool> {
    let text = side_file(source, file, "archived.json")?;
    let mark = Object::parse(&text).ok()?;
    let at = time::millis(mark.str("at")?.as_bytes())?;
    let is_archived = mark.bool("archived")?;
    let is_newer = last_message.is_some_and(|last| last > at);
    // The whole file is read only if something was written after the mark.
    Some(is_archived && !(is_newer && is_prompted_after(source, at)))
}

/// Returns whether a person wrote a prompt after this time, in milliseconds since 1970. Reads the whole file.
fn is_prompted_after(source: &Source, at: i64) -> bool {
    let not_typed =
        Flags::META | Flags::SIDECHAIN | Flags::COMPACT_SUMMARY | Flags::HAS_TOOL_RESULT;
    let Ok(index) = Index::load(source) else {
        return false;
    };
    let mut bodies = Bodies::new(source);
    let mut newer = index.entries().rev().filter(|entry| {
        entry.kind() == EntryKind::User
            && !entry.flags().intersects(not_typed)
            && entry.millis().is_some_and(|time| time > at)
    });
    newer.any(|entry| {
        let body = bodies.get(&entry);
        let object = body.ok().and_then(|body| Object::parse(body.text).ok());
        object.is_some_and(|object| matches!(Prompt::of(&object), Prompt::Text(_)))
    })
}

fn side_file(session: &Source, file: &SessionFile, name: &str) -> Option<String> {
    if !file.has_folder {
        return None;
    }
    let disk = session.disk();
    let source = Source::open_on(&disk, &file.folder(disk.layout()).join(name)).ok()?;
    let mut bytes = vec![0; usize::try_from(source.len().min(MAX_SIDE_FILE)).ok()?];
    let read = source.read_at(0, &mut bytes).ok()?;
    bytes.truncate(read);
    String::from_utf8(bytes).ok()
}

/// The buffers that a thread reuses from file to file.
#[derive(Debug, Default)]
struct Scratch {
    bytes: Bytes,
    scanner: Scanner,
}

/// A buffer with a part of a file.
#[derive(Debug, Default)]
struct Bytes {
    buffer: Vec<u8>,
    start: u64,
    len: usize,
}

impl Bytes {
    /// Empties the buffer before another file is read.
    fn forget(&mut self) {
        self.len = 0;
    }

    /// Returns `len` bytes from `start` on, fewer only at the end of the file.
    fn read(&mut self, source: &Source, start: u64, len: u64) -> Result<&[u8], Error> {
        let len = len.min(source.len().saturating_sub(start)) as usize;
        let has = self.start <= start && start + len as u64 <= self.start + self.len as u64;
        if !has {
            if self.buffer.len() < len {
                self.buffer.resize(len, 0);
            }
            self.start = start;
            self.len = source.read_at(start, &mut self.buffer[..len])?;
        }
        let from = (start - self.start) as usize;
        Ok(&self.buffer[from..(from + len).min(self.len)])
    }
}

/// Reads these files on several threads.
fn parallel<T: Sync, R: Send>(items: &[T], read: impl Fn(&T, &mut Scratch) -> R + Sync) -> Vec<R> {
    parallel::map(items, None, || {
        let (read, mut scratch) = (&read, Scratch::default());
        move |item| {
            scratch.bytes.forget();
            read(item, &mut scratch)
        }
    })
}

/// Returns whether a project has this part in its path: in its working folder, or in the name of its folder, where each
/// character other than letters and digits is a dash.
fn is_named(folder: &str, cwd: Option<&str>, part: &str) -> bool {
    let folder = comparable(folder);
    cwd.is_some_and(|cwd| comparable(cwd).contains(part))
        || folder.contains(part)
        || folder.contains(&project_key(part))
}

/// Returns the folder at `path` without links, and with `with_worktrees` the other worktrees of its repository.
fn project_places(disk: &dyn ReadDisk, path: &Path, with_worktrees: bool) -> Vec<PathBuf> {
    let own = real(disk, path);
    let text = own.to_string_lossy();
    let repository = repository_of(&text).map(PathBuf::from);
    let others = match (with_worktrees, repository) {
        (false, _) => Vec::new(),
        // The worktree may be gone, and with it what says that it was one.
        (true, Some(repository)) => [
            worktrees(disk, &own),
            worktrees(disk, &repository),
            vec![repository],
        ]
        .concat(),
        (true, None) => worktrees(disk, &own),
    };
    let others = others.into_iter().filter(|place| *place != own);
    std::iter::once(own.clone()).chain(others).collect()
}

/// Returns the folders below `root` on `disk` that are named after the project at `path`, first its own; with
/// `with_worktrees` also those of the other worktrees of its repository, which is on this machine. Folders of other projects may
/// have the same name: only the sessions in them show which project they belong to.
///
/// # Errors
/// When `root` cannot be read.
pub fn project_folders(
    disk: &Arc<dyn ReadDisk>,
    root: &Path,
    path: &Path,
    with_worktrees: bool,
) -> Result<Vec<PathBuf>, Error> {
    let names = folder_names(disk, root)?;
    let mut folders = Vec::new();
    for place in project_places(&RealDisk, path, with_worktrees) {
        let place = place.to_string_lossy();
        let is_new = |folder: &PathBuf| !folders.contains(folder);
        let worktree = format!("{}--claude-worktrees-", project_key(&place));
        let of_place = names.iter().filter(|name| {
            is_key_of(name, &place) || with_worktrees && name.starts_with(&worktree)
        });
        let of_place: Vec<_> = of_place
            .map(|name| root.join(name))
            .filter(is_new)
            .collect();
        folders.extend(of_place);
    }
    Ok(folders)
}

/// Returns the path without links; if it does not exist, the absolute path.
fn real(disk: &dyn ReadDisk, path: &Path) -> PathBuf {
    // Of another machine.
    if cfg!(not(windows)) && is_windows(&path.to_string_lossy()) {
        return path.to_owned();
    }
    let real = disk.real_path(path).or_else(|_| std::path::absolute(path));
    real.unwrap_or_else(|_| path.to_owned())
}

fn time_text(time: SystemTime) -> Option<String> {
    time::text(millis(time)?)
}

fn millis(time: SystemTime) -> Option<i64> {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).ok(),
        Err(before) => Some(-i64::try_from(before.duration().as_millis()).ok()?),
    }
}
