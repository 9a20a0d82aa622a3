//! Writes conversations as a Markdown document.

use std::collections::HashSet;
use std::fmt::Display;
use std::io::Write;

use transcript_format::kind::{AttachmentKind, SystemKind};
use transcript_format::object::Raw;
use transcript_reader::{Bodies, EntryNo};
use transcript_resume::Usage;
use transcript_resume::items::{
    GroupKind, GroupRole, Item, ItemKind, ItemMarks, ItemReader, LoadedItem, Speaker,
};

use crate::Result;
use crate::blocks::{attachment_line, block_line, input, plain_text, result_text};
use crate::compaction;
use crate::conversation::{Conversation, gap};
use crate::escape::Escaping;
use crate::header::Header;
use crate::markup;
use crate::options::{RenderOptions, Tools};
use crate::tool_summary::{self, CallOutcome, TodoState, grouped, size};
use crate::view::Shown;

/// How many lines of a result the short form shows.
const RESULT_LINES: usize = 10;

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
        let mut writer = Writer {
            out,
            options,
            escaping: options.escaping,
            speaker: None,
            cwd: None,
            seen: HashSet::new(),
        };
        writer.conversation(conversation)?;
    }
    Ok(())
}

/// Writes title and facts of the session as a list.
fn head(
    out: &mut dyn Write,
    main: &Conversation<'_>,
    header: &Header,
    usage: &[Usage],
    escaping: Escaping,
) -> Result<()> {
    let id = header.session_id.as_deref().unwrap_or("without an id");
    let session = format!("Session {}", markup::inline(escaping, id));
    match &header.title {
        Some(title) => writeln!(out, "# {}\n\n- {session}", markup::inline(escaping, title))?,
        None => writeln!(out, "# {session}\n")?,
    }
    for (label, value) in [
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
    if !usage.is_empty() {
        let sum = |of: fn(&Usage) -> Option<u64>| {
            let counts = usage.iter().filter_map(of);
            counts.fold(0, u64::saturating_add)
        };
        let cached = sum(|usage| usage.cache_read_input_tokens);
        let input = sum(|usage| usage.input_tokens)
            .saturating_add(sum(|usage| usage.cache_creation_input_tokens))
            .saturating_add(cached);
        let output = sum(|usage| usage.output_tokens);
        let [input, cached, output] = [input, cached, output].map(grouped);
        writeln!(out, "- {input} tokens in ({cached} cached), {output} out")?;
    }
    let (entries, lines) = (main.entries as u64, main.index.line_count());
    let [entries, lines] = [entries, lines].map(grouped);
    let policy = header.policy;
    writeln!(out, "- {entries} entries of {lines} lines, policy {policy}")?;
    Ok(())
}

struct Writer<'o> {
    out: &'o mut dyn Write,
    options: &'o RenderOptions,
    escaping: Escaping,
    /// The last printed speaker.
    speaker: Option<&'static str>,
    cwd: Option<String>,
    /// The entries of which something was written.
    seen: HashSet<EntryNo>,
}

impl Writer<'_> {
    fn conversation(&mut self, conversation: &Conversation<'_>) -> Result<()> {
        if let Some(title) = &conversation.title {
            let title = markup::inline(self.escaping, title);
            self.block(format_args!("---\n\n# {title}"))?;
        }
        let display = &conversation.display;
        let bodies = Bodies::new(conversation.source);
        let mut item_reader = ItemReader::new(display, conversation.index, bodies);
        // The call of the current group.
        let mut call: Option<String> = None;
        for (place, item) in display.items().iter().enumerate() {
            let loaded = item_reader.item(place)?;
            self.before(conversation, item, &loaded)?;
            let group = item
                .group()
                .map(|(group, part)| (&display.groups()[group], part));
            match group {
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
                    self.result(group.tool(), item, &loaded, raw)?;
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
        if let Some(cwd) = entry.as_ref().and_then(|entry| entry.object().str("cwd")) {
            self.cwd = Some(cwd.into_owned());
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
                let text = loaded.text().unwrap_or_default();
                if self.options.thinking && !text.trim().is_empty() {
                    self.head("Assistant")?;
                    self.quote(&text)?;
                }
                Ok(())
            }
            ItemKind::Media | ItemKind::Block => {
                let line = loaded.block().map(|block| block_line(&block));
                self.aside(&line.unwrap_or_default())
            }
            ItemKind::Result => self.result("", item, loaded, None),
            ItemKind::Compaction => {
                self.speaker = None;
                let text = compaction::in_document(conversation.display.compaction(item));
                self.block(format_args!("---\n\n*{text}*"))
            }
            ItemKind::System => {
                let entry = loaded.entry();
                let content = entry.and_then(|entry| entry.object().str("content"));
                match entry_ref.system_kind() {
                    Some(SystemKind::ApiError) => self.aside("API error, the client tried again"),
                    Some(SystemKind::TurnDuration | SystemKind::StopHookSummary) => Ok(()),
                    _ => self.aside(&content.unwrap_or_default()),
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
                self.aside(&line.unwrap_or_default())
            }
            ItemKind::Unusable => self.aside(&format!("Line {} cannot be read.", entry_ref.line())),
            ItemKind::TooMany => {
                let line = entry_ref.line();
                self.aside(&format!("Line {line} has too many elements to be shown."))
            }
            _ => Ok(()),
        }
    }

    fn said(&mut self, item: &Item, text: &str) -> Result<()> {
        let text = text.trim();
        match Shown::of(item, text) {
            Shown::Prompt => self.head("User")?,
            Shown::Command(command) => {
                self.head("User")?;
                return self.block(markup::code(self.escaping, &command));
            }
            Shown::Answer => self.head("Assistant")?,
            Shown::Summary => self.head("Summary")?,
            Shown::Aside(_, text) => return self.aside(text),
            Shown::Alarm => return self.aside(text),
            Shown::Nothing => return Ok(()),
        }
        let blocks = markup::blocks(self.escaping, text);
        // Text of a person is quoted: it was not written as part of a document.
        self.block(match item.speaker() {
            Speaker::Person => markup::quoted(&blocks),
            _ => blocks,
        })
    }

    fn call(&mut self, tool: &str, input: Option<Raw<'_>>) -> Result<()> {
        if self.options.tools == Tools::None {
            return Ok(());
        }
        self.head("Assistant")?;
        let name = format!("**{}**", markup::inline(self.escaping, tool));
        if self.options.tools == Tools::Full {
            self.block(name)?;
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
                let text = result_text(loaded, self.escaping);
                let lines: Vec<&str> = text.trim_end().lines().collect();
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
            self.block(format_args!("## {speaker}"))?;
        }
        Ok(())
    }

    fn aside(&mut self, text: &str) -> Result<()> {
        let text = &*self.escaping.without_colours(text);
        let text = text.trim();
        if text.is_empty() {
            return Ok(());
        }
        self.quote(text)
    }

    fn quote(&mut self, text: &str) -> Result<()> {
        self.block(markup::quoted(&markup::blocks(self.escaping, text)))
    }

    /// Writes the first lines of a text as code, or all of them with `--tools full`.
    fn short(&mut self, language: &str, lines: &[impl AsRef<str>]) -> Result<bool> {
        let most = match self.options.tools {
            Tools::Full => lines.len(),
            _ => lines.len().min(RESULT_LINES),
        };
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

#[cfg(test)]
mod tests {
    #[cfg(debug_assertions)]
    #[test]
    fn parallel_calls_of_one_line_are_exported_in_linear_time() {
        use super::*;
        use std::path::Path;
        use transcript_format::work;
        use transcript_reader::{Index, Source};
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
            let mut writer = Writer {
                out: &mut out,
                options: &RenderOptions::new().tools(Tools::Full),
                escaping: Escaping::Visible,
                speaker: None,
                cwd: None,
                seen: HashSet::new(),
            };
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
