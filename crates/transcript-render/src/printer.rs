//! Prints the items of a conversation on a page.

mod calls;
mod folded;
mod follow;
mod replay;
mod turn;
mod turn_stats;

use std::borrow::Cow;
use std::io::Write;

use transcript_format::block_text::block_text;
use transcript_format::context_refs::Region;
use transcript_format::kind::{AttachmentKind, SystemKind};
use transcript_reader::{Bodies, EntryRef, MessageText, Source};
use transcript_resume::items::{CompactionItem, Item, ItemKind, ItemReader, LoadedItem, Speaker};

use crate::Result;
use crate::blocks::{attachment_line, block_line, plain_text};
use crate::compaction;
use crate::conversation::{CompactionPosition, Conversation, the_line};
use crate::markdown;
use crate::options::{RenderOptions, Tools};
use crate::styles::Styles;
use crate::text::{Page, Span, width};
use crate::view::ShownText;
use turn_stats::TurnStats;

pub use folded::{
    BranchNote, Detail, PrintedBlock, StyledLine, call_line, is_folded_at_first, print_blocks,
};
pub use follow::{Change, FileEvent, FollowPrinter, FollowScope, NewEntry};
pub use replay::ReplayPrinter;

/// The width of the column with the names of speakers.
const NAME_WIDTH: usize = 11;
/// The minimum width of a page with a column for names. On a narrower one each name is on its own line.
const MIN_NAME_COLUMN_WIDTH: usize = 60;

/// Prints conversation items for people, one after the other.
///
/// [`ReplayPrinter`] and [`FollowPrinter`] choose the items and their order.
pub(crate) struct TextPrinter<'o> {
    styles: Styles,
    options: RenderOptions,
    page: Page<'o>,
    is_narrow: bool,
    /// The working directory of the session, from the last entry that has one.
    cwd: Option<String>,
    printed: PrintState,
    /// The number of margins at the level where speaker names are printed.
    names: usize,
    /// Line and id of an entry of which nothing is printed yet.
    entry_name: Option<String>,
}

/// An item with facts about its entry.
#[derive(Clone, Copy)]
struct RenderItem<'a> {
    loaded: LoadedItem<'a>,
    entry_ref: EntryRef<'a>,
    /// The line number, if known.
    line: Option<u64>,
    compaction: Option<&'a CompactionItem>,
    place: CompactionPosition,
    /// The file of the session, if results that are stored beside it can be read.
    source: Option<&'a Source>,
}

impl<'a> RenderItem<'a> {
    fn item(&self) -> &'a Item {
        self.loaded.item()
    }
}

/// Loads the items of a conversation.
struct RenderItems<'c> {
    conversation: &'c Conversation<'c>,
    item_reader: ItemReader<'c, Bodies<'c>>,
}

impl<'c> RenderItems<'c> {
    fn new(conversation: &'c Conversation<'c>) -> Self {
        Self {
            conversation,
            item_reader: conversation.reader(),
        }
    }

    /// The item at `place` of the display.
    fn at(&mut self, place: usize) -> Result<RenderItem<'_>> {
        let loaded = self.item_reader.item(place)?;
        let item = loaded.item();
        let entry_ref = self.conversation.index.entry(item.entry_no());
        Ok(RenderItem {
            loaded,
            entry_ref,
            line: Some(entry_ref.line()),
            compaction: self.conversation.display.compaction(item),
            place: self.conversation.place_of(item.entry_no()),
            source: Some(self.conversation.source),
        })
    }
}

/// The state after the last printed item: it decides about names, gaps and rules above the next item.
#[derive(Clone, Default, PartialEq)]
struct PrintState {
    /// The last speaker: the name is printed once for consecutive items of one speaker.
    speaker: Option<&'static str>,
    /// The time of the last answer or result.
    answered: Option<i64>,
    /// The last printed day.
    day: String,
    /// Whether the last thing printed was a rule.
    is_ruled: bool,
    turn: Option<TurnStats>,
}

impl<'o> TextPrinter<'o> {
    fn new(out: &'o mut dyn Write, options: &RenderOptions) -> Self {
        let page = Page::new(out, options.width);
        Self {
            styles: options.styles(),
            options: options.clone(),
            is_narrow: page.columns() < MIN_NAME_COLUMN_WIDTH,
            page,
            cwd: None,
            printed: PrintState::default(),
            names: 0,
            entry_name: None,
        }
    }

    /// Updates working directory and token counts from an entry. Called before its items are printed.
    fn note_entry(&mut self, rendered: RenderItem<'_>) {
        let Some(entry) = rendered.loaded.entry() else {
            return;
        };
        let cwd = entry.object().str("cwd");
        // Most entries repeat the folder, so it is copied only when it changes.
        if cwd.is_some() && cwd.as_deref() != self.cwd.as_deref() {
            self.cwd = cwd.map(Cow::into_owned);
        }
        self.count(&rendered.entry_ref, || rendered.loaded.message());
    }

    /// Prints an item that is not a call.
    fn item(&mut self, rendered: RenderItem<'_>) -> Result<()> {
        match rendered.item().kind() {
            ItemKind::Text => self.said(rendered),
            ItemKind::Thinking => self.thinking(&rendered.loaded),
            ItemKind::Media | ItemKind::Block => {
                let block = rendered.loaded.block();
                if rendered.item().speaker() == Speaker::Person {
                    // A prompt may start with an image.
                    self.start_turn(&rendered.entry_ref, rendered.line)?;
                }
                // The name comes before the check, so that a block without a readable form still shows whose it is.
                self.name(name_of(rendered.item()))?;
                let Some(block) = block else {
                    return Ok(());
                };
                self.dim(&block_line(&block))?;
                let text = block_text(block.raw());
                match self.options.tools {
                    Tools::Full if !text.trim().is_empty() => {
                        Ok(self.page.text(self.styles.plain, text.trim_end())?)
                    }
                    _ => Ok(()),
                }
            }
            // The call of this result is not on the path, or has another result already.
            ItemKind::Result => {
                self.name("tool")?;
                self.result("", rendered, None, None)
            }
            ItemKind::Compaction => self.compaction(rendered),
            ItemKind::System => self.system(rendered),
            ItemKind::Attachment => self.attachment(rendered),
            ItemKind::Unusable => {
                self.marker(&format!("{} cannot be read", the_line(rendered.line)))
            }
            ItemKind::TooMany => {
                let line = the_line(rendered.line);
                self.marker(&format!("{line} has too many elements to be shown"))
            }
            _ => Ok(()),
        }
    }

    /// Prints a text according to its speaker.
    fn said(&mut self, rendered: RenderItem<'_>) -> Result<()> {
        let text = rendered.loaded.text().unwrap_or_default();
        self.said_text(rendered, &text)
    }

    fn said_text(&mut self, rendered: RenderItem<'_>, text: &str) -> Result<()> {
        match ShownText::of(rendered.item(), text) {
            // The person's words first. Notes that the client put around them follow as its own, or they would be read
            // as typed.
            ShownText::Prompt(said) => {
                self.prompt(rendered, said.words)?;
                for note in [said.before, said.after] {
                    if !note.trim().is_empty() {
                        self.aside("client", note)?;
                    }
                }
            }
            ShownText::Command(command) => {
                self.start_turn(&rendered.entry_ref, rendered.line)?;
                self.name("user")?;
                self.page.text(self.styles.code, &command)?;
            }
            ShownText::Answer => {
                self.page.gap();
                self.name("assistant")?;
                // Only texts of the model are Markdown. A prompt is shown as it was typed.
                markdown::write(&mut self.page, self.styles, text)?;
                self.page.gap();
            }
            ShownText::Summary => {
                self.name("summary")?;
                markdown::write(&mut self.page, self.styles, text)?;
            }
            ShownText::Aside(kind, text) => self.aside(kind, &text)?,
            ShownText::Alarm => self.alarm(text)?,
            ShownText::Nothing => {}
        }
        Ok(())
    }

    fn prompt(&mut self, rendered: RenderItem<'_>, prompt: &str) -> Result<()> {
        self.start_turn(&rendered.entry_ref, rendered.line)?;
        self.name("user")?;
        let region = Region::split(prompt);
        let text = region.map_or(prompt, |(_, text)| text);
        for reference in region.iter().flat_map(|(region, _)| region.references()) {
            let reference = reference.to_string();
            self.page.short(&[Span::new(self.styles.dim, &reference)])?;
        }
        Ok(self.page.text(self.styles.plain, text.trim_end())?)
    }

    fn thinking(&mut self, loaded: &LoadedItem<'_>) -> Result<()> {
        if !self.options.thinking {
            return Ok(());
        }
        let text = loaded.text().unwrap_or_default();
        if text.trim().is_empty() {
            return Ok(());
        }
        self.name("assistant")?;
        // The bar marks thinking where colours and italics are not shown.
        let bar = vec![Span::new(self.styles.dim, "~ ")];
        self.page.push(bar.clone(), bar);
        let style = self.styles.italic(self.styles.dim);
        self.page.text(style, text.trim())?;
        self.page.pop();
        self.page.gap();
        Ok(())
    }

    /// Prints a compaction as a ruled line with its facts.
    fn compaction(&mut self, rendered: RenderItem<'_>) -> Result<()> {
        self.end_turn()?;
        let text = compaction::ruled(rendered.compaction, rendered.place);
        // The boundary at the start of the path is only where the shown part begins, so it has no time and no line.
        if rendered.place == CompactionPosition::Start {
            return self.rule('═', &text, "");
        }
        let time = self.time(rendered.entry_ref.millis());
        let text = if time.is_empty() {
            text
        } else {
            format!("{time} · {text}")
        };
        let line = rendered.line.map(|line| format!("line {line}"));
        self.rule('═', &text, &line.unwrap_or_default())
    }

    fn system(&mut self, rendered: RenderItem<'_>) -> Result<()> {
        let entry = rendered.loaded.entry();
        let content = entry.and_then(|entry| entry.object().str("content"));
        let content = content.unwrap_or_default();
        match rendered.entry_ref.system_kind() {
            Some(SystemKind::MicrocompactBoundary) => self.marker("old tool results cleared"),
            Some(SystemKind::ApiError) => self.alarm("API error, Claude Code tried again"),
            // Statistics of Claude Code about a turn; the printer has totals of its own.
            Some(SystemKind::TurnDuration | SystemKind::StopHookSummary) => Ok(()),
            _ if content.trim().is_empty() => Ok(()),
            _ => match MessageText::of(&content) {
                MessageText::Client(text) => self.aside("client", &text),
                // No person writes a system entry, even if its text looks like a prompt.
                MessageText::Prompt(_) => self.aside("client", &content),
                said => {
                    let typed = said.typed();
                    self.aside("client", typed.as_deref().unwrap_or(&content))
                }
            },
        }
    }

    /// Prints a line for an attachment that records an event. Others are reminders for the model.
    fn attachment(&mut self, rendered: RenderItem<'_>) -> Result<()> {
        let entry = rendered.loaded.entry();
        let attachment = entry.and_then(|entry| entry.object().object("attachment"));
        let Some(attachment) = attachment else {
            return Ok(());
        };
        let kind = rendered.entry_ref.attachment_kind();
        // A prompt that was typed while the model worked: the client writes it as an attachment.
        if kind == Some(AttachmentKind::QueuedCommand) {
            let prompt = attachment.get("prompt");
            let prompt = prompt.map(plain_text).unwrap_or_default();
            return self.said_text(rendered, &prompt);
        }
        match attachment_line(kind, &attachment, self.cwd.as_deref()) {
            Some(printed) => self.dim(&format!("+ {}", self.one_line(&printed))),
            None => Ok(()),
        }
    }

    fn push_names(&mut self) {
        let columns = if self.is_narrow { 2 } else { NAME_WIDTH };
        self.page.indent(columns);
        self.names = self.page.depth();
    }

    /// Prints the name of the speaker, unless it is the same as before. Items within a call have no
    /// name.
    fn name(&mut self, name: &'static str) -> Result<()> {
        // Inside a call the margin is deeper than the column of names, and a name would break it.
        if self.printed.speaker == Some(name) || self.page.depth() != self.names {
            return self.entry_name();
        }
        self.printed.speaker = Some(name);
        let style = match name {
            "user" => self.styles.person,
            "assistant" => self.styles.agent,
            _ => self.styles.dim,
        };
        // A rule already separates the item from the one before.
        if !std::mem::take(&mut self.printed.is_ruled) {
            self.page.gap();
        }
        let label = Span::new(style, name);
        if self.is_narrow {
            self.page.pop();
            self.page.line(&[label])?;
            self.push_names();
        } else {
            let space = NAME_WIDTH.saturating_sub(width(std::slice::from_ref(&label)));
            self.page.head(vec![label, Span::plain(&" ".repeat(space))]);
        }
        self.entry_name()
    }

    /// Prints line and id of the entry, once.
    fn entry_name(&mut self) -> Result<()> {
        match self.entry_name.take() {
            Some(name) => self.dim(&self.one_line(&name)),
            None => Ok(()),
        }
    }

    /// Prints a rule across the page with a text at its start and one at its end.
    fn rule(&mut self, line: char, text: &str, end: &str) -> Result<()> {
        self.printed.speaker = None;
        let entry_name = self.entry_name.take();
        // A rule spans the whole page, so the column of names ends above it and starts again below it.
        let is_named = self.page.depth() == self.names && self.names > 0;
        if is_named {
            self.page.pop();
        }
        let run = |columns: usize| line.to_string().repeat(columns);
        let left = match text {
            "" => run(2),
            text => format!("{} {} ", run(2), self.one_line(text)),
        };
        let right = match end {
            "" => String::new(),
            end => format!(" {end} {}", run(2)),
        };
        let used = width(&[Span::plain(&left), Span::plain(&right)]);
        self.page.gap();
        match self.page.columns().checked_sub(used) {
            Some(space) => self.dim(&format!("{left}{}{right}", run(space)))?,
            None => {
                // On a page that is too narrow, the text wraps instead of being cut: it may name the line of a
                // compaction.
                let first = vec![Span::new(self.styles.dim, &format!("{} ", run(2)))];
                self.page.push(first, vec![Span::plain("   ")]);
                let text = self.one_line(text);
                match end {
                    "" => self.dim(&text)?,
                    end => self.dim(&format!("{text} · {end}"))?,
                }
                self.page.pop();
            }
        }
        self.printed.is_ruled = true;
        if is_named {
            self.push_names();
        }
        self.entry_name = entry_name;
        Ok(())
    }

    /// Prints a note about the path.
    fn marker(&mut self, text: &str) -> Result<()> {
        self.printed.speaker = None;
        self.page.gap();
        self.dim(&format!("··· {} ···", self.one_line(text)))?;
        self.page.gap();
        Ok(())
    }

    fn alarm(&mut self, text: &str) -> Result<()> {
        self.entry_name()?;
        let line = format!("! {}", self.one_line(text));
        Ok(self.page.line(&[Span::new(self.styles.error, &line)])?)
    }

    /// Prints text that the client does not show as part of the conversation: its first line, or all
    /// of it with `--tools full`.
    fn aside(&mut self, kind: &'static str, text: &str) -> Result<()> {
        self.name(kind)?;
        let text = &*self.styles.escaping.without_colours(text);
        let text = text.trim();
        let lead = if self.page.depth() == self.names {
            String::new()
        } else {
            format!("{kind}: ")
        };
        if self.options.tools == Tools::Full {
            return Ok(self.page.text(self.styles.dim, &format!("{lead}{text}"))?);
        }
        let first = text.lines().next().unwrap_or_default();
        let more = text.lines().count().saturating_sub(1);
        let first = Span::new(self.styles.dim, &format!("{lead}{}", self.one_line(first)));
        if more == 0 {
            self.page.short(&[first])?;
        } else {
            let more = Span::new(self.styles.dim, &format!("+{more} lines"));
            self.page.both(&[first], &[more])?;
        }
        Ok(())
    }

    fn one_line(&self, text: &str) -> String {
        self.styles.escaping.one_line(text)
    }

    fn dim(&mut self, text: &str) -> Result<()> {
        self.entry_name()?;
        Ok(self.page.line(&[Span::new(self.styles.dim, text)])?)
    }
}

fn name_of(item: &Item) -> &'static str {
    match item.speaker() {
        Speaker::Person => "user",
        Speaker::Agent => "assistant",
        Speaker::Tool => "tool",
        Speaker::Summary => "summary",
        _ => "client",
    }
}
