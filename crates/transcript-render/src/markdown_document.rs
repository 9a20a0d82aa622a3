//! Writes conversations as a Markdown document.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Display;
use std::io::Write;

use transcript_format::kind::{AttachmentKind, SystemKind};
use transcript_format::object::Raw;
use transcript_format::units::grouped;
use transcript_reader::{Bodies, EntryNo, EntryRef, Index, Source, in_order};
use transcript_resume::items::{GroupKind, GroupRole, Item, ItemKind, ItemMarks, LoadedItem};
use transcript_resume::{ConversationPath, Usage, UsageTotals};

use crate::Result;
use crate::blocks::{attachment_line, block_lines, input, plain_text, result_text};
use crate::compaction;
use crate::conversation::{Conversation, PartPrinter, Parts, gap};
use crate::escape::Escaping;
use crate::header::Header;
use crate::markup;
use crate::moment::clock;
use crate::options::{RenderOptions, Tools};

use crate::tool_summary::{self, CallOutcome, TodoState, size};
use crate::view::ShownText;
use crate::words::noun;

/// The name above texts of a person.
const PERSON_HEADING: &str = "User";
/// The number of entries that a thread sums up at a time.
const ENTRIES_PER_TASK: usize = 1024;
/// The maximum number of lines of a result in the short form.
const MAX_RESULT_LINES: usize = 10;

/// Writes all conversations: the main one, followed by its subagents, then the others.
///
/// # Errors
/// When a body cannot be read, or the output not be written.
pub fn write(
    out: &mut dyn Write,
    conversations: &[Conversation<'_>],
    header: &Header,
    usage: &[Usage],
    options: &RenderOptions,
) -> Result<()> {
    let Some(main) = conversations.first() else {
        return Ok(());
    };
    head(out, main, header, usage, options.escaping)?;
    for conversation in conversations {
        Writer::new(out, options).conversation(conversation)?;
    }
    Ok(())
}

/// Sums up the usage of the answers of `path`, by model ordered by name.
///
/// # Errors
/// When a body cannot be read.
pub fn usage(source: &Source, index: &Index, path: &ConversationPath) -> Result<Vec<Usage>> {
    // Threads read chunks, and `append` joins their totals in order: a message whose lines are in two chunks counts
    // once.
    let chunks: Vec<_> = path.entries.chunks(ENTRIES_PER_TASK).collect();
    let read = |number: usize| {
        let mut totals = UsageTotals::new();
        let entries = chunks[number].iter();
        let entries = entries.map(|entry| index.entry(entry.entry_no()));
        totals.add_entries(entries, &mut Bodies::new(source))?;
        Result::Ok(totals)
    };
    let mut whole = UsageTotals::new();
    in_order(
        0..chunks.len(),
        || read,
        |_, totals| {
            whole.append(totals?);
            Result::Ok(())
        },
    )?;
    Ok(whole.models())
}

/// Writes title and facts of the session as a list.
fn head(
    out: &mut dyn Write,
    main: &Conversation<'_>,
    header: &Header,
    usage: &[Usage],
    escaping: Escaping,
) -> Result<()> {
    // Titles, folders and ids come from the file and may contain markup, so each of them is escaped.
    let id = header.session_id.as_deref().unwrap_or("without an id");
    let session = format!("Session {}", markup::inline(escaping, id));
    match &header.title {
        Some(title) => writeln!(out, "# {}\n\n- {session}", markup::inline(escaping, title))?,
        None => writeln!(out, "# {session}\n")?,
    }
    for (label, value) in [
        ("Agent", &header.maker),
        ("Folder", &header.folder),
        ("Branch", &header.branch),
        ("Model", &header.model),
    ] {
        if let Some(value) = value {
            writeln!(out, "- {label} {}", markup::code(escaping, value))?;
        }
    }
    if let Some(times) = &header.times {
        writeln!(out, "- {times}")?;
    }
    if let Some(tokens) = tokens(usage) {
        writeln!(out, "- {tokens}")?;
    }
    let (entries, lines) = (main.entries as u64, main.index.line_count());
    let [entries, lines] = [entries, lines].map(grouped);
    let policy = header.policy;
    writeln!(out, "- {entries} entries of {lines} lines, policy {policy}")?;
    if let Some(chapters) = main.chapters_in_words() {
        writeln!(out, "- {chapters}")?;
    }
    Ok(())
}

/// Sums up the tokens of all models in words; `None` if there are none.
#[must_use]
pub fn tokens(usage: &[Usage]) -> Option<String> {
    if usage.is_empty() {
        return None;
    }
    let sum = |of: fn(&Usage) -> Option<u64>| {
        let counts = usage.iter().filter_map(of);
        counts.fold(0, u64::saturating_add)
    };
    // `input_tokens` are only those that were neither read from nor written to the cache; people expect all of the
    // input.
    let cached = sum(|usage| usage.cache_read_input_tokens);
    let input = sum(|usage| usage.input_tokens)
        .saturating_add(sum(|usage| usage.cache_creation_input_tokens))
        .saturating_add(cached);
    let output = sum(|usage| usage.output_tokens);
    let [input, cached, output] = [input, cached, output].map(grouped);
    Some(format!("{input} tokens in ({cached} cached), {output} out"))
}

struct Writer<'o> {
    out: &'o mut dyn Write,
    options: &'o RenderOptions,
    escaping: Escaping,
    /// The last printed speaker.
    speaker: Option<&'static str>,
    /// The time of the current entry.
    time: Option<String>,
    /// Whether the turn of the current entry started with something that is omitted.
    is_after_hidden: bool,
    cwd: Option<String>,
    /// The entries of which something was written.
    seen: HashSet<EntryNo>,
}

/// A part of a conversation, written into memory by another thread.
struct WrittenPart {
    text: Vec<u8>,
    speaker: Option<&'static str>,
    cwd: Option<String>,
}

impl<'o> Writer<'o> {
    fn new(out: &'o mut dyn Write, options: &'o RenderOptions) -> Self {
        Self {
            out,
            options,
            escaping: options.escaping,
            speaker: None,
            time: None,
            is_after_hidden: false,
            cwd: None,
            seen: HashSet::new(),
        }
    }

    fn conversation(&mut self, conversation: &Conversation<'_>) -> Result<()> {
        if let Some(title) = &conversation.title {
            let title = markup::inline(self.escaping, title);
            self.block(format_args!("---\n\n# {title}"))?;
        }
        match &conversation.parts {
            Some(parts) => self.parts(conversation, parts),
            None => self.list(conversation),
        }
    }

    /// Writes the parts of a conversation. Other threads write them into memory, each with the name
    /// of the person above its prompt.
    fn parts(&mut self, conversation: &Conversation<'_>, parts: &Parts<'_>) -> Result<()> {
        let options = self.options;
        conversation.print_parts(parts, self, |part, _, _| {
            let mut text = Vec::new();
            let mut writer = Writer::new(&mut text, options);
            // Without a speaker before it, so it starts with the name of the person. That is right for each part, which
            // starts with a prompt.
            writer.list(part)?;
            let (speaker, cwd) = (writer.speaker, writer.cwd);
            Ok(WrittenPart { text, speaker, cwd })
        })
    }

    fn list(&mut self, conversation: &Conversation<'_>) -> Result<()> {
        let display = &conversation.display;
        let mut item_reader = conversation.reader();
        // Another conversation can have entries with the same numbers.
        self.seen.clear();
        // The call of the current group.
        let mut call: Option<String> = None;
        for (place, item) in display.items().iter().enumerate() {
            let loaded = item_reader.item(place)?;
            self.before(conversation, item, &loaded)?;
            let group = item
                .group()
                .map(|(group, part)| (&display.groups()[group], part));
            match group {
                // Hooks at the end of a turn have no call; only what failed is shown, as items of their own.
                Some((group, GroupRole::Opening)) if group.kind() == GroupKind::Hooks => {}
                Some((group, GroupRole::Opening)) => {
                    let block = loaded.block();
                    let raw = block.as_ref().and_then(input);
                    self.call(group.tool(), raw)?;
                    call = raw.map(|raw| raw.text().to_owned());
                    if item.marks().contains(ItemMarks::UNANSWERED)
                        && self.options.tools != Tools::None
                    {
                        self.block("*No result.*")?;
                    }
                }
                Some((group, GroupRole::Result)) => {
                    let raw = call.as_deref().and_then(|text| Raw::parse(text).ok());
                    self.result(group.tool(), item, &loaded, raw, conversation.source)?;
                }
                _ => self.item(conversation, item, &loaded)?,
            }
        }
        Ok(())
    }

    fn before(
        &mut self,
        conversation: &Conversation<'_>,
        item: &Item,
        loaded: &LoadedItem<'_>,
    ) -> Result<()> {
        // Calls and results of one line each alternate: their entries are parsed once all the same.
        if !self.seen.insert(item.entry_no()) {
            return Ok(());
        }
        self.is_after_hidden = item.marks().contains(ItemMarks::AFTER_HIDDEN);
        // The next prompt is another one, with its own time.
        if self.is_after_hidden || self.speaker == Some(PERSON_HEADING) {
            self.speaker = None;
        }
        let entry_ref = conversation.index.entry(item.entry_no());
        self.time = entry_ref
            .millis()
            .and_then(|at| clock(at, &self.options.zone))
            .map(|time| time.strftime("%Y-%m-%d %H:%M").to_string());
        let decisions = conversation.display.decisions(item);
        let mut gaps = decisions
            .iter()
            .filter_map(|decision| gap(conversation.index, decision));
        if let Some(gap) = gaps.next() {
            self.speaker = None;
            let gap = markup::inline(self.escaping, &gap);
            self.block(format_args!("*··· {gap} ···*"))?;
        }
        let entry = loaded.entry();
        let cwd = entry.as_ref().and_then(|entry| entry.object().str("cwd"));
        if cwd.is_some() && cwd.as_deref() != self.cwd.as_deref() {
            self.cwd = cwd.map(Cow::into_owned);
        }
        Ok(())
    }

    fn item(
        &mut self,
        conversation: &Conversation<'_>,
        item: &Item,
        loaded: &LoadedItem<'_>,
    ) -> Result<()> {
        let entry_ref = conversation.index.entry(item.entry_no());
        match item.kind() {
            ItemKind::Text => self.said(item, &loaded.text().unwrap_or_default()),
            ItemKind::Thinking => {
                let is_shown = self.options.thinking;
                let text = is_shown.then(|| loaded.text()).flatten();
                let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
                    return Ok(());
                };
                self.head("Assistant")?;
                self.quote(&text)
            }
            ItemKind::Media | ItemKind::Block => {
                let line = loaded.block().map(|block| block_lines(&block));
                self.aside("", &line.unwrap_or_default())
            }
            ItemKind::Result => self.result("", item, loaded, None, conversation.source),
            // After the rule, names start again, so that a reader who jumps there sees one.
            ItemKind::Compaction => {
                self.speaker = None;
                let time = entry_ref.millis();
                let time = time.and_then(|at| clock(at, &self.options.zone));
                let time = time.map(|time| time.strftime("%Y-%m-%d %H:%M").to_string());
                let text = compaction::in_document(
                    conversation.display.compaction(item),
                    conversation.place_of(item.entry_no()),
                    time.as_deref(),
                );
                let text = markup::inline(self.escaping, &text);
                self.block(format_args!("---\n\n*{text}*"))
            }
            ItemKind::System => {
                let entry = loaded.entry();
                let content = entry.and_then(|entry| entry.object().str("content"));
                match entry_ref.system_kind() {
                    Some(SystemKind::ApiError) => {
                        self.aside("", "API error, Claude Code tried again")
                    }
                    // Statistics, which the totals at the top replace.
                    Some(SystemKind::TurnDuration | SystemKind::StopHookSummary) => Ok(()),
                    _ => self.aside("", &content.unwrap_or_default()),
                }
            }
            ItemKind::Attachment => {
                let entry = loaded.entry();
                let attachment = entry.and_then(|entry| entry.object().object("attachment"));
                let Some(attachment) = attachment else {
                    return Ok(());
                };
                if entry_ref.attachment_kind() == Some(AttachmentKind::QueuedCommand) {
                    let prompt = attachment.get("prompt");
                    let prompt = prompt.map(plain_text);
                    return self.said(item, &prompt.unwrap_or_default());
                }
                let kind = entry_ref.attachment_kind();
                let line = attachment_line(kind, &attachment, self.cwd.as_deref());
                self.aside("", &line.unwrap_or_default())
            }
            ItemKind::Unusable => {
                self.aside("", &format!("Line {} cannot be read.", entry_ref.line()))
            }
            ItemKind::TooMany => {
                let line = entry_ref.line();
                self.aside(
                    "",
                    &format!("Line {line} has too many elements to be shown."),
                )
            }
            _ => Ok(()),
        }
    }

    fn said(&mut self, item: &Item, text: &str) -> Result<()> {
        let text = text.trim();
        match ShownText::of(item, text) {
            ShownText::Prompt(said) => {
                self.head(PERSON_HEADING)?;
                // Text of a person is quoted: it was not written as part of a document.
                let words = markup::typed(self.escaping, said.words.trim());
                self.block(markup::quoted(&words))?;
                self.aside("client", said.before)?;
                return self.aside("client", said.after);
            }
            ShownText::Command(command) => {
                self.head(PERSON_HEADING)?;
                return self.block(markup::code(self.escaping, &command));
            }
            ShownText::Answer => self.head("Assistant")?,
            ShownText::Summary => self.head("Summary")?,
            ShownText::Aside(kind, text) => return self.aside(kind, &text),
            ShownText::Alarm => return self.aside("error", text),
            ShownText::Nothing => return Ok(()),
        }
        self.block(markup::blocks(self.escaping, text))
    }

    fn call(&mut self, tool: &str, input: Option<Raw<'_>>) -> Result<()> {
        if self.options.tools == Tools::None {
            return Ok(());
        }
        self.head("Assistant")?;
        let name = format!("**{}**", markup::inline(self.escaping, tool));
        if self.options.tools == Tools::Full {
            self.block(name)?;
            // As it is in the file, so that it can be copied and parsed.
            return self.fenced("json", input.map_or("", Raw::text));
        }
        let about = tool_summary::about_lines(tool, input, self.cwd.as_deref(), self.escaping);
        match &about[..] {
            [] => self.block(name),
            [line] => {
                let line = markup::code(self.escaping, line);
                self.block(format_args!("{name} {line}"))
            }
            lines => {
                self.block(name)?;
                if !self.short("sh", lines)? {
                    let count = grouped(lines.len() as u64);
                    self.block(format_args!("*… {count} lines in all*"))?;
                }
                Ok(())
            }
        }
    }

    fn result(
        &mut self,
        tool: &str,
        item: &Item,
        loaded: &LoadedItem<'_>,
        input: Option<Raw<'_>>,
        source: &Source,
    ) -> Result<()> {
        if self.options.tools == Tools::None {
            return Ok(());
        }
        let failed = item.marks().contains(ItemMarks::FAILED);
        match CallOutcome::of_result(tool, input, loaded) {
            CallOutcome::Diff(diff) => self.fenced("diff", &diff.to_text()),
            CallOutcome::Todos(todos) => {
                writeln!(self.out)?;
                for todo in todos {
                    let mark = match todo.state {
                        TodoState::Done => "x",
                        _ => " ",
                    };
                    let text = markup::inline(self.escaping, &todo.text);
                    writeln!(self.out, "- [{mark}] {text}")?;
                }
                Ok(())
            }
            CallOutcome::Text => {
                // A long result is in a file of its own. Its start, which the entry has, is enough for the short form.
                let stored_in = (self.options.tools == Tools::Full).then_some(source);
                let text = result_text(loaded, self.escaping, stored_in);
                // One more than are shown, so that it is seen that there are more.
                let lines = text
                    .trim_end()
                    .lines()
                    .take(self.most_lines().saturating_add(1));
                let lines: Vec<&str> = lines.collect();
                if failed {
                    self.block("Failed:")?;
                }
                if !self.short("text", &lines)? {
                    self.block(format_args!("*… {} in all*", size(&text)))?;
                }
                Ok(())
            }
        }
    }

    fn head(&mut self, speaker: &'static str) -> Result<()> {
        if self.speaker != Some(speaker) {
            self.speaker = Some(speaker);
            let is_first = speaker == PERSON_HEADING || self.is_after_hidden;
            let time = self.time.clone().filter(|_| is_first);
            let time = time.map_or(String::new(), |time| format!(" · {time}"));
            self.block(format_args!("## {speaker}{time}"))?;
        }
        Ok(())
    }

    /// Writes a text that is neither a prompt nor an answer on one line, with its origin; with `--tools
    /// full` as a whole.
    fn aside(&mut self, kind: &str, text: &str) -> Result<()> {
        let text = &*self.escaping.without_colours(text);
        let text = text.trim();
        if text.is_empty() {
            return Ok(());
        }
        let first = text.lines().next().unwrap_or_default();
        let more = text.lines().count() - 1;
        let lead = if kind.is_empty() {
            String::new()
        } else {
            format!("{kind}: ")
        };
        let first = markup::inline(self.escaping, &format!("{lead}{first}"));
        match (more, self.options.tools) {
            (0, _) => self.block(format_args!("*{first}*")),
            (_, Tools::Full) => {
                self.block(format_args!("*{}*", lead.trim_end()))?;
                self.quote(text)
            }
            _ => self.block(format_args!("*{first}* · +{more} {}", noun(more, "line"))),
        }
    }

    fn quote(&mut self, text: &str) -> Result<()> {
        self.block(markup::quoted(&markup::blocks(self.escaping, text)))
    }

    fn most_lines(&self) -> usize {
        match self.options.tools {
            Tools::Full => usize::MAX,
            _ => MAX_RESULT_LINES,
        }
    }

    /// Writes the first lines of a text as code, or all of them with `--tools full`.
    fn short(&mut self, language: &str, lines: &[impl AsRef<str>]) -> Result<bool> {
        let most = lines.len().min(self.most_lines());
        let shown: Vec<&str> = lines[..most].iter().map(AsRef::as_ref).collect();
        self.fenced(language, &shown.join("\n"))?;
        Ok(most == lines.len())
    }

    fn fenced(&mut self, language: &str, text: &str) -> Result<()> {
        self.block(markup::fenced(self.escaping, language, text))
    }

    /// Writes a block of the document, after a blank line.
    fn block(&mut self, text: impl Display) -> Result<()> {
        Ok(writeln!(self.out, "\n{text}")?)
    }
}

impl PartPrinter for Writer<'_> {
    type Made = WrittenPart;

    fn print(&mut self, part: &Conversation<'_>, _number: usize) -> Result<()> {
        self.list(part)
    }

    fn append(&mut self, _first: &EntryRef<'_>, made: WrittenPart) -> Result<bool> {
        (self.speaker, self.cwd) = (made.speaker, made.cwd);
        self.out.write_all(&made.text)?;
        Ok(true)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    #[cfg(debug_assertions)]
    #[test]
    fn parallel_calls_of_one_line_are_exported_in_linear_time() {
        use super::*;
        use std::path::Path;
        use transcript_format::work;
        use transcript_resume::items::Displays;
        use transcript_resume::{Policy, Tree};

        let cost = |calls: usize| {
            let list =
                |block: fn(usize) -> String| (0..calls).map(block).collect::<Vec<_>>().join(",");
            let uses = list(|id| {
                format!(r#"{{"type":"tool_use","id":"t{id}","name":"Read","input":{{}}}}"#)
            });
            let results = list(|id| {
                format!(r#"{{"type":"tool_result","tool_use_id":"t{id}","content":"done"}}"#)
            });
            let lines = format!(
                "{{\"type\":\"user\",\"uuid\":\"u\",\"parentUuid\":null,\"message\":{{\"role\":\"user\",\"content\":\"Q\"}}}}\n\
                 {{\"type\":\"assistant\",\"uuid\":\"a\",\"parentUuid\":\"u\",\"message\":{{\"id\":\"m\",\"role\":\"assistant\",\"content\":[{uses}]}}}}\n\
                 {{\"type\":\"user\",\"uuid\":\"r\",\"parentUuid\":\"a\",\"message\":{{\"role\":\"user\",\"content\":[{results}]}}}}\n"
            );
            let source = Source::from_bytes(lines.as_bytes(), Path::new("-"));
            let index = Index::load(&source).unwrap();
            let tree = Tree::new(&index, Policy::Recover);
            let path = tree.path();
            let shown =
                Conversation::new(&source, &index, &mut Displays::new(&tree), &path, None).unwrap();
            let mut out = Vec::new();
            let options = RenderOptions::new().tools(Tools::Full);
            let mut writer = Writer::new(&mut out, &options);
            let before = work::done();
            writer.conversation(&shown).unwrap();
            let work = work::done() - before;
            assert!(String::from_utf8(out).unwrap().matches("done").count() == calls);
            work / lines.len() as u64
        };
        let (few, many) = (cost(20), cost(1_000));
        assert!(many <= 2 * few.max(10), "{few} and {many} times its length");
    }
}
