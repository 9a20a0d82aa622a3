//! One session: its entries, its request, and documents of it.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use transcript::wire::{
    EntryRecord, ReplayEnd, ReplayHead, ReplayRecord, ResumeRefusal, ResumeReport,
};
use transcript::{History, PathState, Policy, ReadEnd, RedactedDisk, Redactor, Usage};
use transcript_page::{PageFile, write_page};
use transcript_reader::{Bodies, Source};
use transcript_render::{
    Conversation, Escaping, Header, HtmlConversations, RenderOptions, Tools, explain,
    tokens_in_words, write_markdown,
};
use transcript_resume::items::{Cut, Nesting};
use transcript_resume::request;
use transcript_resume::{ConversationPath, Tree};

use crate::failure::Failure;
use crate::out::{Out, Result};
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
    /// The last entry of the conversation to continue, by its uuid.
    leaf: Option<String>,
    /// Reads the whole file, also where its end is enough.
    #[serde(default)]
    full: bool,
    #[serde(flatten)]
    place: Place,
    #[serde(flatten)]
    _others: NoOthers,
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
    redact: Option<bool>,
    #[serde(default)]
    thinking: bool,
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

pub(crate) fn entries(options: &EntriesOptions, out: &mut Out<'_>) -> Result<()> {
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

pub(crate) fn request(options: &RequestOptions, out: &mut Out<'_>) -> Result<()> {
    let path = options.place.find(&options.session)?;
    let source = Source::open_on(&options.place.disk()?, &path)?;
    if let Err(error) = source.check_messages() {
        let transcript_reader::ErrorKind::OtherFormat(name) = error.kind() else {
            return Err(error.into());
        };
        let reason = format!("not a transcript but {name}");
        return out.record(&ResumeRefusal::new(&path, options.policy.into(), reason));
    }
    // What names an entry may be before the last compaction.
    if options.full || options.leaf.is_some() {
        return write_request(options, &History::read(source)?, out).map(|_| ());
    }
    let source = match History::read_end(source)? {
        ReadEnd::ReadAll(source, _) => source,
        ReadEnd::Enough(end) => match write_request(options, &end, out)? {
            true => return Ok(()),
            false => end.into_source(),
        },
    };
    write_request(options, &History::read(source)?, out).map(|_| ())
}

/// Writes the request that the history makes. Returns false if more than that has to be read for it.
fn write_request(options: &RequestOptions, history: &History, out: &mut Out<'_>) -> Result<bool> {
    let tree = history.tree(options.policy.into());
    let mut request_options = request::RequestOptions::new().long_blocks_in(history.source());
    if let Some(prompt) = &options.prompt {
        request_options = request_options.prompt(prompt);
    }
    if let Some(model) = &options.model {
        request_options = request_options.model(model);
    }
    if let Some(leaf) = &options.leaf {
        request_options = request_options.leaf(entry(history, leaf)?);
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
    let mut text = Vec::new();
    report.write(&mut text, &request.messages, |json| json.into())?;
    out.json(&text)?;
    Ok(true)
}

fn entry(history: &History, name: &str) -> std::result::Result<transcript::EntryNo, Failure> {
    let index = history.index();
    let found = transcript::entries_named(index, name);
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

pub(crate) fn export(options: &ExportOptions, out: &mut Out<'_>) -> Result<()> {
    let disk = options.place.disk()?;
    let found = options.place.find(&options.session)?;
    let redactor = Redactor::new();
    let redacted = options.redact.unwrap_or(true);
    let redacted = redacted.then(|| Arc::new(RedactedDisk::new(Arc::clone(&disk), redactor)));
    let source = match &redacted {
        Some(redacted) => Source::open_on(&(Arc::clone(redacted) as _), &found)?,
        None => Source::open_on(&disk, &found)?,
    };
    source.check_messages()?;
    let history = History::read(source)?;
    let (tree, path, _) = path(&history, options.policy.into(), false);
    let mut file = OpenOptions::new();
    let file = match options.force {
        true => file.write(true).create(true).truncate(true),
        false => file.write(true).create_new(true),
    };
    let file = file.open(&options.out).map_err(|error| {
        let failure = Failure::from(error).at(&options.out);
        match options.out.exists() && !options.force {
            true => Failure {
                kind: "exists".into(),
                ..failure
            },
            false => failure,
        }
    })?;
    let mut file = BufWriter::new(file);
    write_document(options, &history, (&tree, &path), &mut file)
        .map_err(|error| Failure::new("export-failed", error).at(&options.out))?;
    file.flush()?;
    let redactions = redacted.map_or(0, |disk| disk.redactions().len());
    out.record(&json!({ "path": options.out, "redactions": redactions }))
}

fn write_document(
    options: &ExportOptions,
    history: &History,
    (tree, path): (&Tree<'_>, &ConversationPath),
    file: &mut dyn Write,
) -> std::result::Result<(), String> {
    let words = |error: &dyn std::error::Error| error.to_string();
    let (source, index) = (history.source(), history.index());
    let is_page = matches!(options.format, Format::Html);
    let render = RenderOptions::new()
        .escaping(Escaping::Visible)
        .thinking(options.thinking || is_page)
        .tools(Tools::Short);
    let header = Header::read(source, history.session_id(), tree, path, &render)
        .map_err(|error| words(&error))?;
    let cut = if is_page {
        Cut::Anywhere
    } else {
        Cut::AtPrompts
    };
    let shown =
        Conversation::in_parts(source, index, tree, path, cut).map_err(|error| words(&error))?;
    let usage = transcript_render::usage(source, index, path).map_err(|error| words(&error))?;
    let shown = [shown];
    if !is_page {
        return write_markdown(file, &shown, &header, &usage, &render)
            .map_err(|error| words(&error));
    }
    let nesting = Nesting::default();
    let page = PageFile {
        shown: HtmlConversations {
            conversations: &shown,
            nesting: &nesting,
            branches: &[],
        },
        header: &header,
        facts: tokens_in_words(&usage).into_iter().collect(),
        options: &render,
        escaping: Escaping::Visible,
        bytes: source.len(),
        is_plain: false,
        lines: None,
    };
    write_page(file, &page).map_err(|error| words(&error))
}
