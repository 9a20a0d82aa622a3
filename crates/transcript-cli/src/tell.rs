//! Tells a conversation in plain text.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use anstyle::Style;
use anyhow::Result;
use clap::ValueEnum;
use transcript_format::content::{Block, Content, ToolUse};
use transcript_format::entry::Entry;
use transcript_format::kind::{AttachmentKind, EntryKind, SystemKind};
use transcript_format::object::Object;
use transcript_format::scan::{Flags, ToolRole};
use transcript_reader::{Bodies, Candidate, Preserved, ToolKey};
use transcript_resume::{Decision, Path, Policy};
use transcript_session::History;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::escape::{escape, one_line};
use crate::screen::Styles;

/// How much of tool calls is told.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Tools {
    /// Inputs and results whole
    Full,
    /// A line for the call, the first lines of the result
    Short,
    /// Nothing
    None,
}

/// How wide a line that sums something up may get.
const SUMMARY_WIDTH: usize = 100;
/// How many lines of a result the short form shows.
const RESULT_LINES: usize = 4;

/// Writes the entries of a path for a person.
pub(crate) struct Teller<'s> {
    session: &'s History,
    path: &'s Path,
    policy: Policy,
    styles: Styles,
    thinking: bool,
    tools: Tools,
    /// The entry on the path that answers each call.
    answers: HashMap<ToolKey, usize>,
    /// Results that were told under their call.
    told: HashSet<ToolKey>,
    /// What to say before an entry, by candidate.
    gaps: HashMap<usize, String>,
    /// Who spoke last, so that a name stands once above what one speaker says in a row.
    speaker: Option<Speaker>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Speaker {
    Person,
    Agent,
    Client,
    Summary,
}

impl<'s> Teller<'s> {
    pub(crate) fn new(
        session: &'s History,
        path: &'s Path,
        policy: Policy,
        styles: Styles,
        thinking: bool,
        tools: Tools,
    ) -> Self {
        let mut teller = Self {
            session,
            path,
            policy,
            styles,
            thinking,
            tools,
            answers: HashMap::new(),
            told: HashSet::new(),
            gaps: HashMap::new(),
            speaker: None,
        };
        for entry in &path.entries {
            let candidate = session.index().candidate(entry.candidate());
            for tool in candidate
                .tools()
                .iter()
                .filter(|tool| tool.role() == ToolRole::Result)
            {
                teller
                    .answers
                    .entry(tool.key())
                    .or_insert(entry.candidate());
            }
        }
        teller.gaps = teller.find_gaps();
        teller
    }

    /// Where the path jumps or starts in the middle, in words.
    fn find_gaps(&self) -> HashMap<usize, String> {
        let line = |entry: u32| self.session.index().candidate(entry as usize).line();
        let gaps = self.path.decisions.iter().filter_map(|decision| match *decision {
            Decision::Relink { entry, parent, gap_millis } => Some((
                entry,
                format!(
                    "the parent of line {} is lost; goes on from line {}, {gap_millis} ms before it",
                    line(entry),
                    line(parent)
                ),
            )),
            Decision::Bridge { entry, parent, evidence } => Some((
                entry,
                format!(
                    "the parent of line {} is lost; goes on from line {} ({})",
                    line(entry),
                    line(parent),
                    evidence.confidence().name()
                ),
            )),
            Decision::Gap { entry, reason, hidden } => {
                let hidden = match hidden {
                    0 => String::new(),
                    1 => ": 1 message before it is not shown".to_owned(),
                    many => format!(": {many} messages before it are not shown"),
                };
                Some((
                    entry,
                    format!("the parent of line {} is lost; {}{hidden}", line(entry), reason.words()),
                ))
            }
            Decision::Salvage { entry } => {
                Some((entry, format!("line {} is damaged; this was brought back from it", line(entry))))
            }
            Decision::Truncated { entry } => Some((
                entry,
                format!("what came before line {} cannot be reached: its parent is lost", line(entry)),
            )),
            Decision::Cycle { entry } => {
                Some((entry, format!("the parent of line {} forms a cycle and is ignored", line(entry))))
            }
            _ => None,
        });
        // The first decision on an entry says most.
        let mut said = HashMap::new();
        for (entry, text) in gaps {
            said.entry(entry as usize).or_insert(text);
        }
        said
    }

    pub(crate) fn tell(mut self, out: &mut impl Write) -> Result<()> {
        let mut bodies = Bodies::new(self.session.source());
        self.head(out)?;
        for entry in &self.path.entries {
            let candidate = self.session.index().candidate(entry.candidate());
            if let Some(gap) = self.gaps.remove(&entry.candidate()) {
                self.marker(out, &gap)?;
            }
            let text = bodies.get(&candidate)?.text.to_owned();
            match Entry::parse(&text) {
                Ok(body) => self.entry(out, &candidate, &body, &mut bodies)?,
                Err(_) => self.marker(out, &format!("line {} cannot be read", candidate.line()))?,
            }
        }
        Ok(())
    }

    fn head(&self, out: &mut impl Write) -> Result<()> {
        let id = self
            .session
            .session_id()
            .unwrap_or_else(|| "without an id".to_owned());
        let (shown, lines) = (self.path.entries.len(), self.session.index().line_count());
        let dim = self.styles.dim;
        writeln!(
            out,
            "{dim}session {} · {shown} entries of {lines} lines · policy {}{dim:#}",
            one_line(&id),
            self.policy.name()
        )?;
        Ok(())
    }

    fn entry(
        &mut self,
        out: &mut impl Write,
        candidate: &Candidate<'_>,
        entry: &Entry<'_>,
        bodies: &mut Bodies<'_>,
    ) -> Result<()> {
        match candidate.kind() {
            EntryKind::User => self.user(out, candidate, entry),
            EntryKind::Assistant => self.assistant(out, candidate, entry, bodies),
            EntryKind::System => self.system(out, candidate, entry),
            EntryKind::Attachment => self.attachment(out, candidate, entry),
            _ => Ok(()),
        }
    }

    fn user(
        &mut self,
        out: &mut impl Write,
        candidate: &Candidate<'_>,
        entry: &Entry<'_>,
    ) -> Result<()> {
        let speaker = if candidate.flags().contains(Flags::COMPACT_SUMMARY) {
            Speaker::Summary
        } else if candidate.flags().contains(Flags::META) {
            Speaker::Client
        } else {
            Speaker::Person
        };
        let mut answers = candidate
            .tools()
            .iter()
            .filter(|tool| tool.role() == ToolRole::Result);
        match entry.message().and_then(|message| message.content()) {
            Some(Content::Text(text)) => self.say(out, speaker, candidate, &text)?,
            Some(content) => {
                for block in content.blocks() {
                    match block {
                        Block::ToolResult(result) => {
                            let key = answers.next().map(|tool| tool.key());
                            if key.is_none_or(|key| !self.told.contains(&key)) {
                                self.result(out, result.is_error(), result.content().as_ref())?;
                            }
                        }
                        other => self.block(out, speaker, candidate, other)?,
                    }
                }
            }
            None => {}
        }
        Ok(())
    }

    fn assistant(
        &mut self,
        out: &mut impl Write,
        candidate: &Candidate<'_>,
        entry: &Entry<'_>,
        bodies: &mut Bodies<'_>,
    ) -> Result<()> {
        if candidate.flags().contains(Flags::API_ERROR) {
            let text = entry
                .message()
                .and_then(|message| message.content())
                .map(|c| plain_text(&c));
            return self.alarm(out, &text.unwrap_or_default());
        }
        let mut calls = candidate
            .tools()
            .iter()
            .filter(|tool| tool.role() == ToolRole::Use);
        match entry.message().and_then(|message| message.content()) {
            Some(Content::Text(text)) => self.say(out, Speaker::Agent, candidate, &text)?,
            Some(content) => {
                for block in content.blocks() {
                    match block {
                        Block::ToolUse(call) => {
                            self.name(out, Speaker::Agent, candidate)?;
                            self.call(out, call, calls.next().map(|tool| tool.key()), bodies)?;
                        }
                        other => self.block(out, Speaker::Agent, candidate, other)?,
                    }
                }
            }
            None => {}
        }
        Ok(())
    }

    /// A block that is neither a call nor a result.
    fn block(
        &mut self,
        out: &mut impl Write,
        speaker: Speaker,
        candidate: &Candidate<'_>,
        block: &Block<'_>,
    ) -> Result<()> {
        match block {
            Block::Text(text) => {
                self.say(out, speaker, candidate, &text.text().unwrap_or_default())
            }
            Block::Thinking(thinking) => {
                let text = thinking.thinking().unwrap_or_default();
                if self.thinking && !text.trim().is_empty() {
                    self.name(out, speaker, candidate)?;
                    return self.indented(out, self.styles.dim, "  ~ ", &text);
                }
                Ok(())
            }
            other => {
                self.name(out, speaker, candidate)?;
                let name = other.name().unwrap_or_default();
                self.indented(
                    out,
                    self.styles.dim,
                    "  ",
                    &format!("[{name}{}]", media(other)),
                )
            }
        }
    }

    /// A call with its result below it, wherever that stands on the path.
    fn call(
        &mut self,
        out: &mut impl Write,
        call: &ToolUse<'_>,
        key: Option<ToolKey>,
        bodies: &mut Bodies<'_>,
    ) -> Result<()> {
        if self.tools != Tools::None {
            let name = call.name().unwrap_or_default();
            let input = call
                .input()
                .map(|input| input.text().to_owned())
                .unwrap_or_default();
            let tool = self.styles.tool;
            let summary = match self.tools {
                Tools::Full => escape(&input).into_owned(),
                _ => cut(&one_line(&input_summary(call)), SUMMARY_WIDTH),
            };
            writeln!(out, "  {tool}> {}{tool:#} {summary}", one_line(&name))?;
        }
        let Some(key) = key else { return Ok(()) };
        let Some(answer) = self.answers.get(&key).copied() else {
            if self.tools != Tools::None {
                self.indented(out, self.styles.dim, "    ", "(no result)")?;
            }
            return Ok(());
        };
        let candidate = self.session.index().candidate(answer);
        let text = bodies.get(&candidate)?.text.to_owned();
        let Ok(entry) = Entry::parse(&text) else {
            return Ok(());
        };
        let content = entry.message().and_then(|message| message.content());
        let blocks = content.as_ref().map(Content::blocks).unwrap_or_default();
        for block in blocks {
            if let Block::ToolResult(result) = block
                && result.tool_use_id() == call.id()
            {
                self.told.insert(key);
                self.result(out, result.is_error(), result.content().as_ref())?;
            }
        }
        Ok(())
    }

    fn result(
        &mut self,
        out: &mut impl Write,
        is_error: Option<bool>,
        content: Option<&Content<'_>>,
    ) -> Result<()> {
        if self.tools == Tools::None {
            return Ok(());
        }
        let text = content.map(plain_text).unwrap_or_default();
        let style = if is_error == Some(true) {
            self.styles.error
        } else {
            self.styles.dim
        };
        let shown = match self.tools {
            Tools::Full => text,
            _ => first_lines(&text),
        };
        let shown = if shown.trim().is_empty() {
            "(empty)".to_owned()
        } else {
            shown
        };
        self.indented(out, style, "    ", &shown)
    }

    fn system(
        &mut self,
        out: &mut impl Write,
        candidate: &Candidate<'_>,
        entry: &Entry<'_>,
    ) -> Result<()> {
        let content = entry.object().str("content").unwrap_or_default();
        match candidate.system_kind() {
            Some(SystemKind::CompactBoundary) => self.boundary(out, candidate, entry.object()),
            Some(SystemKind::MicrocompactBoundary) => self.marker(out, "old tool results cleared"),
            Some(SystemKind::ApiError) => self.alarm(out, "API error, the client tried again"),
            Some(SystemKind::TurnDuration | SystemKind::StopHookSummary) => Ok(()),
            _ if content.trim().is_empty() => Ok(()),
            _ => self.say(out, Speaker::Client, candidate, &content),
        }
    }

    /// A compaction as a ruled line with what is known of it.
    fn boundary(
        &mut self,
        out: &mut impl Write,
        candidate: &Candidate<'_>,
        entry: &Object<'_>,
    ) -> Result<()> {
        let metadata = entry.object("compactMetadata");
        let trigger = metadata
            .as_ref()
            .and_then(|metadata| metadata.str("trigger"));
        let tokens = metadata
            .as_ref()
            .and_then(|metadata| metadata.u64("preTokens"));
        let mut text = "compacted".to_owned();
        if let Some(trigger) = trigger {
            text.push_str(&format!(" ({})", one_line(&trigger)));
        }
        if let Some(tokens) = tokens {
            text.push_str(&format!(", {tokens} tokens before"));
        }
        let preserved = self
            .session
            .index()
            .boundary(candidate.number())
            .map(|b| &b.preserved);
        match preserved {
            Some(Preserved::List { uuids, .. }) => {
                text.push_str(&format!(", {} entries kept word for word", uuids.len()));
            }
            Some(Preserved::Segment { .. }) => text.push_str(", the end kept word for word"),
            _ => {}
        }
        self.speaker = None;
        let dim = self.styles.dim;
        let rule = "─".repeat(60_usize.saturating_sub(text.width()));
        writeln!(out, "\n{dim}── {text} {rule}{dim:#}")?;
        Ok(())
    }

    /// Attachments are reminders for the model; those that say what happened get a line.
    fn attachment(
        &mut self,
        out: &mut impl Write,
        candidate: &Candidate<'_>,
        entry: &Entry<'_>,
    ) -> Result<()> {
        let Some(attachment) = entry.object().object("attachment") else {
            return Ok(());
        };
        let text = |name: &str| attachment.str(name).unwrap_or_default();
        let path = attachment
            .str("displayPath")
            .or_else(|| attachment.str("filename"))
            .or_else(|| attachment.str("path"))
            .unwrap_or_default();
        let told = match candidate.attachment_kind() {
            Some(AttachmentKind::QueuedCommand) => {
                let prompt = attachment.get("prompt").and_then(|prompt| {
                    use transcript_format::object::FromRaw;
                    Content::from_raw(prompt)
                });
                let prompt = prompt.map(|prompt| plain_text(&prompt)).unwrap_or_default();
                return self.say(out, Speaker::Person, candidate, &prompt);
            }
            Some(
                AttachmentKind::File | AttachmentKind::Directory | AttachmentKind::NestedMemory,
            ) => {
                format!("attached {path}")
            }
            Some(AttachmentKind::EditedTextFile | AttachmentKind::EditedImageFile) => {
                format!("changed on disk: {path}")
            }
            Some(
                AttachmentKind::HookBlockingError
                | AttachmentKind::HookNonBlockingError
                | AttachmentKind::HookCancelled
                | AttachmentKind::HookStoppedContinuation,
            ) => format!("hook {} failed or stopped the turn", text("hookName")),
            Some(AttachmentKind::HookSystemMessage) => text("content").into_owned(),
            _ => return Ok(()),
        };
        self.indented(
            out,
            self.styles.dim,
            "  + ",
            &cut(&one_line(&told), SUMMARY_WIDTH),
        )
    }

    fn say(
        &mut self,
        out: &mut impl Write,
        speaker: Speaker,
        candidate: &Candidate<'_>,
        text: &str,
    ) -> Result<()> {
        self.name(out, speaker, candidate)?;
        let style = match speaker {
            Speaker::Person | Speaker::Agent => Style::new(),
            Speaker::Client | Speaker::Summary => self.styles.dim,
        };
        self.indented(out, style, "  ", text)
    }

    /// Writes who speaks, unless that one spoke last.
    fn name(
        &mut self,
        out: &mut impl Write,
        speaker: Speaker,
        candidate: &Candidate<'_>,
    ) -> Result<()> {
        if self.speaker == Some(speaker) {
            return Ok(());
        }
        self.speaker = Some(speaker);
        let (name, style) = match speaker {
            Speaker::Person => ("user", self.styles.person),
            Speaker::Agent => ("assistant", self.styles.agent),
            Speaker::Client => ("client", self.styles.dim),
            Speaker::Summary => ("summary of what came before", self.styles.person),
        };
        let dim = self.styles.dim;
        writeln!(
            out,
            "\n{style}{name}{style:#} {dim}· line {}{dim:#}",
            candidate.line()
        )?;
        Ok(())
    }

    fn marker(&mut self, out: &mut impl Write, text: &str) -> Result<()> {
        self.speaker = None;
        let dim = self.styles.dim;
        writeln!(out, "\n{dim}··· {} ···{dim:#}", one_line(text))?;
        Ok(())
    }

    fn alarm(&mut self, out: &mut impl Write, text: &str) -> Result<()> {
        self.indented(
            out,
            self.styles.error,
            "  ! ",
            &cut(&one_line(text), SUMMARY_WIDTH),
        )
    }

    /// Text with `indent` before each line; the first indent may hold a mark.
    fn indented(&self, out: &mut impl Write, style: Style, indent: &str, text: &str) -> Result<()> {
        let mut lead = indent.to_owned();
        for line in escape(text.trim_end()).split('\n') {
            writeln!(out, "{lead}{style}{}{style:#}", line.trim_end())?;
            lead = " ".repeat(indent.len());
        }
        Ok(())
    }
}

/// The text of a message or a result; other blocks as their name in brackets.
fn plain_text(content: &Content<'_>) -> String {
    if let Some(text) = content.as_text() {
        return text.to_owned();
    }
    let blocks = content.blocks().iter().map(|block| match block {
        Block::Text(text) => text.text().unwrap_or_default().into_owned(),
        other => format!("[{}{}]", other.name().unwrap_or_default(), media(other)),
    });
    blocks.collect::<Vec<_>>().join("\n")
}

/// Type and size of an image or a document.
fn media(block: &Block<'_>) -> String {
    let source = match block {
        Block::Image(image) => image.source(),
        Block::Document(document) => document.source(),
        _ => None,
    };
    let Some(source) = source else {
        return String::new();
    };
    let kind = source.media_type().unwrap_or_default();
    match source.data() {
        // Four characters of base64 are three bytes.
        Some(data) => format!(" {kind}, {} bytes", data.len() / 4 * 3),
        None => format!(" {kind}"),
    }
}

/// What a call is about: the one field that names it, else the whole input.
fn input_summary(call: &ToolUse<'_>) -> String {
    const TELLING: [&str; 9] = [
        "command",
        "file_path",
        "notebook_path",
        "pattern",
        "url",
        "query",
        "description",
        "path",
        "skill",
    ];
    let Some(input) = call.input() else {
        return String::new();
    };
    let telling = input.object().and_then(|input| {
        TELLING
            .iter()
            .find_map(|name| input.str(name).map(|text| text.into_owned()))
    });
    telling.unwrap_or_else(|| input.text().to_owned())
}

fn first_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().split('\n').collect();
    let mut shown: Vec<String> = lines
        .iter()
        .take(RESULT_LINES)
        .map(|line| cut(line, SUMMARY_WIDTH))
        .collect();
    if lines.len() > RESULT_LINES {
        let more = lines.len() - RESULT_LINES;
        shown.push(format!("… {more} more lines, {} bytes in all", text.len()));
    }
    shown.join("\n")
}

/// The start of a line, at most `width` columns of it.
pub(crate) fn cut(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < width
    };
    line.chars().take_while(fits).chain(['…']).collect()
}
