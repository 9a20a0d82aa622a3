//! One session: its entries, its request, and documents of it.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::json;
use tempfile::NamedTempFile;
use transcript_engine::catalog::usage::{CallPrices, Prices};
use transcript_engine::places::is_file_of_session;
use transcript_engine::redact::{OwnRules, RedactOptions, RedactedDisk, Redactor};
use transcript_engine::wire::{
    EntryRecord, ReplayEnd, ReplayHead, ReplayRecord, ResumeRefusal, ResumeReport,
};
use transcript_engine::{ErrorKind, History, PathState, Policy, ReadEnd, Usage};
use transcript_format::client_version::ClientVersion;
use transcript_page::{PageFile, write_page};
use transcript_reader::{Bodies, Source, subagents_on};
use transcript_render::{
    CallPrice, Escaping, Header, RenderOptions, SessionPart, ShownFile, ShownSession, Tools,
    WantedParts, explain, tokens_in_words, write_markdown,
};
use transcript_resume::items::{Cut, Origin};
use transcript_resume::request;
use transcript_resume::{ConversationPath, Tree};

use crate::failure::Failure;
use crate::fit::FitOptions;
use crate::out::{Out, Result};
use crate::provider::ProviderOption;
use crate::sessions::{NoOthers, Place, PolicyName};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntriesOptions {
    session: String,
    #[serde(default)]
    policy: PolicyName,
    /// Only what the model sees: nothing that compactions removed.
    #[serde(default)]
    context: bool,
    #[serde(default)]
    raw_entries: bool,
    #[serde(flatten)]
    place: Place,
    #[serde(flatten)]
    _others: NoOthers,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestOptions {
    session: String,
    #[serde(default)]
    policy: PolicyName,
    prompt: Option<String>,
    model: Option<String>,
    /// The tools of the request.
    tools: Option<Vec<String>>,
    /// The version of the client whose rules hold.
    client_version: Option<String>,
    /// The last entry of the conversation to continue, by its uuid.
    leaf: Option<String>,
    #[serde(flatten)]
    fit: FitOptions,
    #[serde(flatten)]
    provider: ProviderOption,
    /// Reads the whole file, also where its end is enough.
    #[serde(default)]
    full: bool,
    #[serde(flatten)]
    place: Place,
    #[serde(flatten)]
    _others: NoOthers,
}

/// What is redacted beside secrets, and what is kept.
#[derive(Debug, Deserialize)]
struct RedactDetails {
    /// Whether e-mail addresses are replaced, too.
    #[serde(default)]
    emails: bool,
    /// Whether the names of people in paths are replaced, too.
    #[serde(default)]
    names: bool,
    /// Names whose values are replaced, too.
    #[serde(default)]
    also: Vec<String>,
    /// Kinds, names and values that are kept.
    #[serde(default)]
    keep: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExportOptions {
    session: String,
    format: Format,
    out: PathBuf,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    policy: PolicyName,
    /// Whether secrets are replaced.
    redact: Option<bool>,
    #[serde(flatten)]
    details: RedactDetails,
    /// Whether thinking is added; a page has it, folded.
    #[serde(default)]
    thinking: bool,
    /// Whether subagents are added; a page has them, folded.
    #[serde(default)]
    sidechains: bool,
    /// Whether a page has no subagents, branches, thinking and lines.
    #[serde(default)]
    conversation_only: bool,
    /// Whether a page has the lines of the session, which `transcript import` reads.
    lines: Option<bool>,
    /// Whether nothing in a page is compressed.
    #[serde(default)]
    plain: bool,
    #[serde(flatten)]
    place: Place,
    #[serde(flatten)]
    _others: NoOthers,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Html,
    Markdown,
}

/// Returns the path to show, and the tree that it is of.
fn path<'h>(
    history: &'h History,
    policy: Policy,
    context: bool,
) -> (Tree<'h>, ConversationPath, usize) {
    let tree = history.tree(policy);
    let path = tree.path();
    if context {
        return (tree, path, 0);
    }
    let tree = tree.unspliced();
    let story = tree.story(&path);
    let chapters = story.chapters.len();
    (tree, story.path, chapters)
}

pub(crate) fn entries(options: &EntriesOptions, out: &mut Out) -> Result<()> {
    let history = History::read(options.place.open(&options.session)?)?;
    let (tree, path, chapters) = path(&history, options.policy.into(), options.context);
    let mut head = ReplayHead::new(&history, &tree, &path);
    if !options.context {
        head = head.with_chapters(chapters);
    }
    out.record(&ReplayRecord::Session(head))?;
    let index = history.index();
    let mut bodies = Bodies::new(history.source());
    let mut line = Vec::new();
    for entry in &path.entries {
        let entry_ref = index.entry(entry.entry_no());
        let body = bodies.get(&entry_ref)?;
        line.clear();
        EntryRecord::new(index, &entry_ref, body.text, entry, options.raw_entries)
            .write(&mut line, |json| json.into())?;
        out.json(&line)?;
    }
    let findings = explain::findings(&tree, &path).len();
    out.record(&ReplayRecord::End(ReplayEnd::new(findings, &path)))
}

pub(crate) fn request(options: &RequestOptions, out: &mut Out) -> Result<()> {
    let path = options.place.find(&options.session)?;
    let disk = options.place.disk()?;
    let opened = Source::open_on(&disk, &path).map_err(transcript_engine::Error::from);
    let history = match opened.and_then(|source| read_for_request(options, source)) {
        Ok(history) => history,
        Err(error) => {
            let ErrorKind::Read(transcript_reader::ErrorKind::OtherFormat(name)) = error.kind()
            else {
                return Err(error.into());
            };
            let reason = format!("not a transcript but {name}");
            return out.record(&ResumeRefusal::new(&path, options.policy.into(), reason));
        }
    };
    if !write_request(options, &history, out)? {
        let whole = History::read(history.into_source())?;
        write_request(options, &whole, out)?;
    }
    Ok(())
}

/// Reads the end of a session if it is enough, else the whole file.
fn read_for_request(
    options: &RequestOptions,
    source: Source,
) -> std::result::Result<History, transcript_engine::Error> {
    source.check_messages()?;
    // What names an entry may be before the last compaction.
    if options.full || options.leaf.is_some() {
        return History::read(source);
    }
    match History::read_end(source)? {
        ReadEnd::ReadAll(source, _) => History::read(source),
        ReadEnd::Enough(end) => Ok(end),
    }
}

/// Writes the request that the history makes. Returns false if more than that has to be read for it.
fn write_request(options: &RequestOptions, history: &History, out: &mut Out) -> Result<bool> {
    let mut tree = history.tree(options.policy.into());
    if let Some(version) = &options.client_version {
        let version = ClientVersion::from_str(version);
        let version =
            version.map_err(|error| Failure::options(format!("clientVersion: {error}")))?;
        tree = tree.for_client(Some(version));
    }
    let mut request_options = request::RequestOptions::new()
        .now(now_millis())
        .provider(options.provider.get(options.policy.into())?)
        .long_blocks_in(history.source());
    if let Some(prompt) = &options.prompt {
        request_options = request_options.prompt(prompt);
    }
    if let Some(model) = &options.model {
        request_options = request_options.model(model);
    }
    if let Some(tools) = &options.tools {
        request_options = request_options.tools(tools);
    }
    if let Some(leaf) = &options.leaf {
        request_options = request_options.leaf(entry(history, leaf)?);
    }
    let fit = options.fit.limit(options.policy.into())?;
    if let Some(limit) = fit {
        request_options = request_options.fit(limit);
    }
    let mut bodies = Bodies::new(history.source());
    let built = request_options.request_with_state(&tree, &mut bodies)?;
    let (request, state, usage): (_, PathState, Vec<Usage>) = built;
    if !history.is_enough_for(&request) {
        return Ok(false);
    }
    let findings = explain::findings(&tree, &request.path);
    let describe = |decision: &_| explain::describe(tree.index(), decision);
    let report = ResumeReport::new(
        history,
        &tree,
        &request,
        (&state, &usage),
        &findings,
        describe,
    );
    let window = request
        .model
        .as_deref()
        .and_then(transcript_engine::context_window);
    let report = report.with_limits(&request, window, fit);
    let mut text = Vec::new();
    report.write(&mut text, &request.messages, |json| json.into())?;
    out.json(&text)?;
    Ok(true)
}

/// Returns the current time in milliseconds since 1970.
fn now_millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis().try_into().unwrap_or(i64::MAX))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RedactArguments {
    text: String,
    /// Whether the text is a line of a transcript, which stays JSON.
    #[serde(default)]
    line: bool,
    #[serde(flatten)]
    details: RedactDetails,
    #[serde(flatten)]
    _others: NoOthers,
}

/// Returns a text without its secrets, and how many of each kind it had.
pub(crate) fn redact(arguments: &RedactArguments, out: &mut Out) -> Result<()> {
    let RedactArguments { text, line, .. } = arguments;
    let redactor = arguments.details.redactor();
    let (masked, found) = match line {
        true => (redactor.redact_line(text), redactor.find(text.as_bytes())),
        false => (
            redactor.redact_text(text),
            redactor.find_text(text.as_bytes()),
        ),
    };
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for secret in found {
        *kinds.entry(secret.kind).or_default() += 1;
    }
    out.record(&json!({ "text": masked, "kinds": kinds }))
}

impl RedactDetails {
    fn redactor(&self) -> Redactor {
        let mut own = OwnRules::default();
        self.also.iter().for_each(|name| own.add_name(name));
        self.keep.iter().for_each(|kept| own.add_kept(kept));
        let options = RedactOptions::new().emails(self.emails).homes(self.names);
        Redactor::with(options.own(own))
    }
}

fn entry(
    history: &History,
    name: &str,
) -> std::result::Result<transcript_engine::EntryNo, Failure> {
    let index = history.index();
    let found = transcript_engine::entries_named(index, name);
    let id = match &found[..] {
        [one] => index.id(&one.id.to_string()),
        _ => None,
    };
    let number = id.and_then(|id| index.with_uuid(id).last());
    let path = history.source().path();
    number.ok_or_else(|| {
        Failure::new(
            "unknown-entry",
            format!("no entry, or several, have the name {name}"),
        )
        .at(path)
    })
}

pub(crate) fn export(options: &ExportOptions, out: &mut Out) -> Result<()> {
    let path = options.place.find(&options.session)?;
    let mut disk = options.place.disk()?;
    let redactor = options.details.redactor();
    let redacted = options.redact.unwrap_or(true);
    let redacted = redacted.then(|| Arc::new(RedactedDisk::new(Arc::clone(&disk), redactor)));
    if let Some(redacted) = &redacted {
        disk = Arc::clone(redacted) as _;
    }
    let source = Source::open_on(&disk, &path)?;
    source.check_messages()?;
    if is_file_of_session(&disk, &path, &options.out) {
        let refused = "the session that is exported; name another file";
        return Err(Failure::options(refused).in_file(&options.out).into());
    }
    let history = History::read(source)?;
    // If the files of subagents cannot be listed, the conversation itself is still exported.
    let found = match options.wanted().sidechains {
        true => subagents_on(&disk, &path).unwrap_or_default(),
        false => Vec::new(),
    };
    let agents = found.iter().map(|agent| {
        let history = History::read(Source::open_on(&disk, &agent.path)?)?;
        Ok((Origin::from(agent), history))
    });
    let agents = agents.collect::<Result<Vec<_>>>()?;
    options.write(|file| write_document(options, &history, &agents, file))?;
    let redactions = redacted.map_or(0, |disk| disk.redactions().secrets.len());
    out.record(&json!({ "path": options.out.to_string_lossy(), "redactions": redactions }))
}

impl ExportOptions {
    fn is_page(&self) -> bool {
        matches!(self.format, Format::Html)
    }

    /// What is around the conversation is folded on a page.
    fn is_rich(&self) -> bool {
        self.is_page() && !self.conversation_only
    }

    fn wanted(&self) -> WantedParts {
        WantedParts {
            branches: self.is_rich(),
            sidechains: self.sidechains || self.is_rich(),
            context: false,
        }
    }

    /// Writes the document; it gets its name when it is complete.
    fn write(
        &self,
        document: impl FnOnce(&mut dyn Write) -> std::result::Result<(), Box<dyn std::error::Error>>,
    ) -> std::result::Result<(), Failure> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::new("exists", "the file exists"),
            _ => Failure::from(error),
        };
        let failed = |error| failed(error).in_file(&self.out);
        if !self.force && self.out.exists() {
            return Err(failed(io::ErrorKind::AlreadyExists.into()));
        }
        let folder = self.out.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new("."));
        if !folder.is_dir() {
            return Err(Failure::new("not-found", "no such folder").in_file(folder));
        }
        let new = NamedTempFile::new_in(folder).map_err(failed)?;
        let mut file = BufWriter::new(new);
        document(&mut file)
            .map_err(|error| Failure::new("export-failed", error.to_string()).in_file(&self.out))?;
        let new = file
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        new.as_file().sync_all().map_err(failed)?;
        let placed = match self.force {
            true => new.persist(&self.out),
            false => new.persist_noclobber(&self.out),
        };
        placed.map(drop).map_err(|error| failed(error.error))
    }
}

fn write_document(
    options: &ExportOptions,
    history: &History,
    agents: &[(Origin, History)],
    file: &mut dyn Write,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let policy = options.policy.into();
    let tree = history.tree(policy);
    let path = tree.path();
    let tree = tree.unspliced();
    let story = tree.story(&path);
    let chapters: Vec<_> = story.boundaries().collect();
    let main = ShownFile {
        source: history.source(),
        index: history.index(),
        chapters: Some(&chapters),
        escaping: Escaping::Visible,
    };
    let parts = SessionPart::of_story(&tree, &story, options.wanted());
    let is_whole = parts.len() > 1 || !agents.is_empty();
    let cut = match options.is_page() {
        true => Cut::Anywhere,
        false => Cut::AtPrompts,
    };
    let mut shown = ShownSession::read(main, &tree, &parts, (!is_whole).then_some(cut))?;
    for (origin, agent) in agents {
        let tree = agent.tree(policy);
        let path = tree.path();
        let tree = tree.unspliced();
        let path = tree.story(&path).path;
        let file = ShownFile {
            source: agent.source(),
            index: agent.index(),
            ..main
        };
        shown.add_agent(origin.clone(), file, &tree, &path)?;
    }
    let shown = shown.ordered();
    let (source, index) = (history.source(), history.index());
    let render = RenderOptions::new()
        .escaping(Escaping::Visible)
        .thinking(options.thinking || options.is_rich())
        .tools(Tools::Short);
    let id = history.session_id();
    let header = Header::read(source, id, &tree, &story.path, &render)?;
    let usage = transcript_render::usage(source, index, &story.path)?;
    if !options.is_page() {
        return Ok(write_markdown(
            file,
            &shown.conversations,
            &header,
            &usage,
            &render,
        )?);
    }
    let sizes = agents.iter().map(|(_, agent)| agent.source().len());
    let has_lines = options.lines.unwrap_or(true) && !options.conversation_only;
    let page = PageFile {
        shown: shown.html(),
        header: &header,
        facts: tokens_in_words(&usage).into_iter().collect(),
        options: &render.price(call_price()),
        escaping: Escaping::Visible,
        bytes: source.len() + sizes.sum::<u64>(),
        is_plain: options.plain,
        lines: has_lines.then_some(source),
    };
    Ok(write_page(file, &page)?)
}

/// Returns what calls cost by the prices that are part of the program.
fn call_price() -> CallPrice {
    let prices = CallPrices::new(Prices::embedded());
    CallPrice::new(move |model, usage| prices.cost(model, usage))
}
