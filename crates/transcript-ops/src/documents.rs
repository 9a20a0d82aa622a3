//! Documents of a session: a page, Markdown, and what is printed for people.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use transcript_catalog::usage::{CallPrices, Prices};
use transcript_manage::session_sets::is_file_of_session;
use transcript_page::{PageFile, write_page};
use transcript_reader::{Index, Source, subagents_on};
use transcript_redact::RedactedDisk;
use transcript_render::{
    CallPrice, Escaping, Header, OrderedConversations, RenderOptions, SessionPart, ShownFile,
    ShownSession, Tools, tokens_in_words, usage, write_markdown,
};
use transcript_resume::items::{Cut, SubagentOrigin};
use transcript_resume::{ConversationPath, Policy, Usage};
use transcript_session::History;
use transcript_storage::{NewFile, ReadDisk, RealDisk, folder_of};

use crate::context::{Context, PolicyName};
use crate::conversation_end::ConversationEnd;
use crate::entries::Conversation;
use crate::failure::Failure;
use crate::redact::redactor;
use crate::sink::{Result, Sink};

/// The reason why there is no document.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A body cannot be read, or the document not be written.
    #[error(transparent)]
    Render(#[from] transcript_render::Error),
    /// The same of a page.
    #[error(transparent)]
    Page(#[from] transcript_page::Error),
    /// The entries to show cannot be chosen.
    #[error("{0}")]
    Select(Box<dyn std::error::Error + Send + Sync>),
}

/// The form of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(Serialize, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DocumentFormat {
    /// A self-contained HTML page.
    Html,
    /// Markdown.
    Markdown,
    /// Lines for a terminal.
    #[default]
    #[serde(skip)]
    Text,
}

/// The settings of a document.
#[derive(Clone, Debug, Default)]
pub struct DocumentSettings {
    /// Its form.
    pub format: DocumentFormat,
    /// The rendering of its items.
    pub render: RenderOptions,
    /// The escaping of texts of the session.
    pub escaping: Escaping,
    /// Whether the conversation is read as a whole, not in parts: subagents are below their calls, and pauses are known.
    pub is_whole: bool,
    /// Whether nothing in a page is compressed.
    pub is_plain: bool,
    /// Whether a page has the lines of the session.
    pub has_lines: bool,
}

/// Chooses entries of a conversation: a front end may show only some.
pub type SelectEntries<'s> =
    &'s dyn Fn(&Source, &Index, &mut ConversationPath) -> std::result::Result<(), Error>;

/// A document of a session.
pub struct Document<'d> {
    /// The conversations to show.
    pub shown: OrderedConversations<'d>,
    /// The facts about the session.
    pub header: Header,
    /// The token counts of the answers; empty in text for people.
    usage: Vec<Usage>,
    settings: DocumentSettings,
    source: &'d Source,
    bytes: u64,
}

/// The session of a subagent, which has a file of its own.
pub type Subagent = (SubagentOrigin, History);

impl Conversation<'_> {
    /// Reads the subagents of the session that have files of their own.
    ///
    /// # Errors
    /// When a file cannot be read. If they cannot be listed there are none: the conversation itself is still shown.
    pub fn agents(
        &self,
        context: &Context,
    ) -> std::result::Result<Vec<Subagent>, transcript_session::Error> {
        let disk = context.read_disk();
        let found = subagents_on(disk, self.history.source().path()).unwrap_or_default();
        let agents = found.iter().map(|agent| {
            let source = Source::open_on(disk, &agent.path)?;
            Ok((SubagentOrigin::from(agent), context.read(source)?))
        });
        agents.collect()
    }

    /// Makes a document of these parts of the conversation, and of subagents.
    ///
    /// # Errors
    /// When a body cannot be read; those of `select`.
    pub fn document<'d>(
        &'d self,
        parts: &[SessionPart],
        (agents, policy): (&'d [Subagent], Policy),
        settings: DocumentSettings,
        select: SelectEntries<'_>,
    ) -> std::result::Result<Document<'d>, Error> {
        let history = self.history;
        let (source, index) = (history.source(), history.index());
        let is_page = settings.format == DocumentFormat::Html;
        let is_only_file = parts.len() <= 1 && agents.is_empty();
        let cut = if is_page {
            is_only_file.then_some(Cut::Anywhere)
        } else {
            (is_only_file && !settings.is_whole).then_some(Cut::AtPrompts)
        };
        let main = ShownFile {
            source,
            index,
            chapters: (!self.is_context).then_some(&*self.boundaries),
            escaping: settings.escaping,
        };
        let mut shown = ShownSession::read(main, &self.tree, parts, cut)?;
        for (origin, agent) in agents {
            // As for the main conversation: without `--in-context`, everything that compactions removed is shown, too.
            let mut tree = agent.tree(policy);
            let mut path = tree.path();
            if !self.is_context {
                tree = tree.unspliced();
                path = tree.story(&path).path;
            }
            select(agent.source(), agent.index(), &mut path)?;
            let file = ShownFile {
                source: agent.source(),
                index: agent.index(),
                ..main
            };
            shown.add_agent(origin.clone(), file, &tree, &path)?;
        }
        let path = parts.first().map(|main| &main.path);
        let path = path.unwrap_or(&self.story.path);
        let id = history.session_id();
        let header = Header::read(source, id, &self.tree, path, &settings.render)?;
        let usage = if settings.format == DocumentFormat::Text {
            Vec::new()
        } else {
            usage(source, index, path)?
        };
        let sizes = agents.iter().map(|(_, agent)| agent.source().len());
        Ok(Document {
            shown: shown.ordered(),
            header,
            usage,
            settings,
            source,
            bytes: source.len() + sizes.sum::<u64>(),
        })
    }
}

impl Document<'_> {
    /// Writes a page or Markdown.
    ///
    /// # Errors
    /// When the session cannot be read, or the document not be written.
    pub fn write(&self, out: &mut dyn Write) -> std::result::Result<(), Error> {
        let settings = &self.settings;
        if settings.format != DocumentFormat::Html {
            let (shown, header) = (&self.shown.conversations, &self.header);
            return Ok(write_markdown(
                out,
                shown,
                header,
                &self.usage,
                &settings.render,
            )?);
        }
        let page = PageFile {
            shown: self.shown.html(),
            header: &self.header,
            facts: tokens_in_words(&self.usage).into_iter().collect(),
            options: &settings.render.clone().price(call_price()),
            escaping: settings.escaping,
            bytes: self.bytes,
            is_plain: settings.is_plain,
            lines: settings.has_lines.then_some(self.source),
        };
        Ok(write_page(out, &page)?)
    }
}

/// Returns the prices of calls, from the table that is part of the program.
fn call_price() -> CallPrice {
    let prices = CallPrices::new(Prices::embedded());
    CallPrice::new(move |model, usage| prices.cost(model, usage))
}

/// The document of a session in a file: options.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExportSettings {
    /// The session: a path, an id, the start of one, a title, the id of a subagent, or `latest`.
    session: PathBuf,
    /// The file to write.
    out: PathBuf,
    /// The form of the document: a self-contained HTML page, or Markdown.
    #[serde(default = "page")]
    format: DocumentFormat,
    /// Whether a file that exists is replaced.
    #[serde(default)]
    force: bool,
    /// The rules that choose the conversation: with all that evidence gives back, or exactly as the client does.
    #[serde(default)]
    policy: PolicyName,
    /// Whether what looks like a secret is replaced.
    #[serde(default = "yes")]
    redact: bool,
    /// Whether e-mail addresses are replaced, too.
    #[serde(default)]
    emails: bool,
    /// Whether the names of people in paths are replaced, too.
    #[serde(default)]
    names: bool,
    /// Names whose values are replaced, too, or words.
    #[serde(default)]
    also: Vec<String>,
    /// Kinds, names and values that are kept.
    #[serde(default)]
    keep: Vec<String>,
    /// Whether thinking is added to Markdown; a page has it, folded.
    #[serde(default)]
    thinking: bool,
    /// Whether subagents are added to Markdown; a page has them, folded.
    #[serde(default)]
    sidechains: bool,
    /// Whether a page has no subagents, branches, thinking and lines.
    #[serde(default)]
    conversation_only: bool,
    /// Whether a page has the lines of the session, which `transcript import` reads.
    #[serde(default = "yes")]
    lines: bool,
    /// Whether nothing in a page is compressed, so that all of it can be read without scripts.
    #[serde(default)]
    plain: bool,
}

fn page() -> DocumentFormat {
    DocumentFormat::Html
}

fn yes() -> bool {
    true
}

/// Writes a document of a session to a file, and the record of it.
pub(crate) fn export(
    settings: &ExportSettings,
    context: &Context,
    sink: &mut dyn Sink,
) -> Result<()> {
    // Found on the disk as it is: ids and titles are not looked up among texts that were redacted.
    let path = context.find(&settings.session, None)?.path;
    let redactor = redactor(
        settings.emails,
        settings.names,
        &settings.also,
        &settings.keep,
    );
    let redacted = settings
        .redact
        .then(|| Arc::new(RedactedDisk::new(Arc::clone(context.read_disk()), redactor)));
    let mut context = context.clone();
    // From here on nothing is read but through the redactor: no part of the document can contain what another part masks.
    if let Some(redacted) = &redacted {
        context = context.disk(Arc::clone(redacted) as _);
    }
    context.follow_policy(settings.policy);
    let disk = context.read_disk();
    let source = Source::open_on(disk, &path)?;
    // A file of another format would become an empty document, with success.
    source.check_messages()?;
    if is_file_of_session(disk, &path, &settings.out) {
        let refused = "refusing to overwrite the session that is being exported";
        return Err(Failure::options(refused).in_file(&settings.out).into());
    }
    let history = context.read(source)?;
    // A page folds subagents, branches and thinking, so it includes them by default.
    let is_page = settings.format == DocumentFormat::Html;
    let includes_folded_parts = is_page && !settings.conversation_only;
    let (policy, end) = (settings.policy.into(), ConversationEnd::default());
    let conversation = Conversation::new(&history, policy, &end, false)?;
    let has_sidechains = settings.sidechains || includes_folded_parts;
    let agents = if has_sidechains {
        conversation.agents(&context)?
    } else {
        Vec::new()
    };
    let render = RenderOptions::new()
        .escaping(Escaping::Visible)
        .thinking(settings.thinking || includes_folded_parts)
        .tools(Tools::Short);
    let document_settings = DocumentSettings {
        format: settings.format,
        render,
        escaping: Escaping::Visible,
        is_whole: false,
        is_plain: settings.plain,
        // The lines of the session contain the subagents, branches and thoughts that are to be omitted.
        has_lines: settings.lines && !settings.conversation_only,
    };
    write_new(&settings.out, settings.force, |file| {
        let parts = conversation.parts(includes_folded_parts, has_sidechains);
        let select: SelectEntries<'_> = &|_, _, _| Ok(());
        conversation
            .document(&parts, (&agents, policy), document_settings, select)?
            .write(file)
    })?;
    // After the document was made: only then everything that it shows was read, and counted.
    let redactions = redacted.map_or(0, |disk| disk.redactions().secrets.len());
    sink.record(&ExportedDocument {
        path: settings.out.to_string_lossy(),
        redactions,
    })
}

/// A document that was written.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ExportedDocument<'a> {
    /// Its file.
    path: Cow<'a, str>,
    /// The number of secrets that were replaced.
    redactions: usize,
}

/// Writes a file, which gets its name when it is complete.
fn write_new(
    out: &Path,
    replaces: bool,
    document: impl FnOnce(&mut dyn Write) -> std::result::Result<(), Error>,
) -> std::result::Result<(), Failure> {
    let failed = |error: io::Error| {
        let failure = match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::new("exists", "the file exists"),
            _ => Failure::from(error),
        };
        failure.in_file(out)
    };
    // Before the document is made, which may take long. `keep` checks again, for a file that appears meanwhile.
    if !replaces && RealDisk.link_metadata(out).is_ok() {
        return Err(failed(io::ErrorKind::AlreadyExists.into()));
    }
    let folder = folder_of(out);
    // The error of the system would name a temporary file.
    if !RealDisk.is_folder(folder) {
        return Err(Failure::new("not-found", "no such folder").in_file(folder));
    }
    // Without a name until it is complete: a kill or a full disk leaves no half of a document.
    let new = NewFile::output_beside(out).map_err(failed)?;
    let mut file = BufWriter::new(new);
    document(&mut file)
        .map_err(|error| Failure::new("export-failed", error.to_string()).in_file(out))?;
    // Flushes: a full disk may only be seen here.
    let new = file
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    let placed = if replaces {
        new.replace(out)
    } else {
        new.keep(out)
    };
    placed.map_err(failed)
}
