//! Prints the items of a conversation one by one, each folded or not, as styled lines.

use std::ops::Range;

use anstyle::{AnsiColor, Color, Style};
use transcript_format::object::Raw;
use transcript_reader::EntryNo;
use transcript_resume::items::{GroupRole, Item, ItemKind, Nesting, Speaker};

use super::replay::ReplayPrinter;
use super::{RenderItems, TextPrinter};
use crate::Result;
use crate::blocks::input;
use crate::conversation::Conversation;
use crate::options::{RenderOptions, Tools};
use crate::pace::Pace;
use crate::words::{count, more_lines};

/// The maximum number of lines of a folded text that are shown.
const MAX_FOLDED_LINES: usize = 3;

/// The detail in which an item is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Nothing.
    Hidden,
    /// Its first lines; of a call one line, and one of its result.
    #[default]
    Folded,
    /// All of it.
    Whole,
}

/// A line in parts of one style each. Escaped: it has no control character, unless text is printed
/// [raw](crate::Escaping::Raw).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StyledLine {
    /// The parts from left to right.
    pub spans: Vec<(Style, String)>,
}

/// A block of a page: an item, a call with all that belongs to it, or a branch.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintedBlock {
    /// The places of its items in the list of the conversation; empty for a branch.
    pub items: Range<usize>,
    /// For a branch, its number among those that were passed.
    pub branch: Option<usize>,
    /// Its lines. The gap and the rule above it are among them; a hidden block has none.
    pub lines: Range<usize>,
}

/// A branch that leaves a conversation.
#[derive(Clone, Debug)]
pub struct BranchNote {
    /// The entry after which it leaves.
    pub from: EntryNo,
    /// Its title.
    pub title: String,
    /// The number of its conversation, if it is to be shown.
    pub shown: Option<usize>,
}

/// Prints the first of `conversations` with the subagents that `nesting` puts below its calls, and
/// a line for each of `branches`. `detail` says how much of each item is shown; for a call and what
/// belongs to it, the call is asked about. Subagents are shown below calls that are shown whole, and
/// are folded themselves.
///
/// # Errors
/// When a body cannot be read.
pub fn print_blocks(
    conversations: &[Conversation<'_>],
    nesting: Nesting,
    branches: &[BranchNote],
    options: &RenderOptions,
    detail: &dyn Fn(&Item) -> Detail,
) -> Result<(Vec<StyledLine>, Vec<PrintedBlock>)> {
    let (mut text, mut sleep) = (Vec::new(), |_| {});
    let mut blocks = Vec::new();
    let pace = Pace::new(None, &mut sleep);
    let mut replay = ReplayPrinter::new(&mut text, options, conversations, nesting, pace);
    replay.printer.push_names();
    replay.blocks(branches, detail, &mut blocks)?;
    let end = replay.printer.page.lines();
    replay.printer.end_turn()?;
    let total = replay.printer.page.lines();
    drop(replay);
    if let Some(last) = blocks.last_mut().filter(|_| total > end) {
        let last: &mut PrintedBlock = last;
        last.lines.end = usize::try_from(total).unwrap_or(usize::MAX);
    }
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().map(styled_line).collect();
    Ok(fold(lines, blocks, &conversations[0], detail))
}

impl ReplayPrinter<'_, '_> {
    fn blocks(
        &mut self,
        branches: &[BranchNote],
        detail: &dyn Fn(&Item) -> Detail,
        blocks: &mut Vec<PrintedBlock>,
    ) -> Result<()> {
        let conversations = self.conversations;
        let conversation = &conversations[0];
        let display = &conversation.display;
        let mut render_items = RenderItems::new(conversation);
        let mut place = 0;
        while let Some(item) = display.items().get(place) {
            let start = self.lines();
            self.before(conversation, render_items.at(place)?)?;
            let wanted = detail(item);
            self.printer.options.tools = match wanted {
                Detail::Hidden => Tools::None,
                Detail::Folded => Tools::Short,
                Detail::Whole => Tools::Full,
            };
            self.printer.options.thinking = wanted != Detail::Hidden;
            let group = item.group().filter(|(_, role)| *role == GroupRole::Opening);
            let end = match group {
                Some((group, _)) => {
                    self.group((0, 0), group, &mut render_items)?;
                    display.groups()[group].items().end.max(place + 1)
                }
                None if item.kind() == ItemKind::Thinking && wanted == Detail::Folded => {
                    self.folded_thought(&mut render_items, place)?;
                    place + 1
                }
                None => {
                    self.printer.item(render_items.at(place)?)?;
                    place + 1
                }
            };
            blocks.push(PrintedBlock {
                items: place..end,
                branch: None,
                lines: start..self.lines(),
            });
            let entries = display.items()[place..end].iter().map(Item::entry_no);
            let mut entries: Vec<EntryNo> = entries.collect();
            entries.dedup();
            // Only after the last block of an entry, so that each branch is shown once.
            let next = display.items().get(end).map(Item::entry_no);
            entries.retain(|entry| Some(*entry) != next);
            for (number, branch) in branches.iter().enumerate() {
                if entries.contains(&branch.from) {
                    let start = self.lines();
                    self.branch(branch)?;
                    blocks.push(PrintedBlock {
                        items: 0..0,
                        branch: Some(number),
                        lines: start..self.lines(),
                    });
                }
            }
            place = end;
        }
        Ok(())
    }

    fn branch(&mut self, branch: &BranchNote) -> Result<()> {
        match branch.shown {
            Some(number) => {
                self.printer.options.tools = Tools::Short;
                self.subagent(number, 0)
            }
            None => self.printer.dim(&format!("├ {}", branch.title)),
        }
    }

    /// Prints one line for a thought.
    fn folded_thought(&mut self, items: &mut RenderItems<'_>, place: usize) -> Result<()> {
        let rendered = items.at(place)?;
        let text = rendered.loaded.text().unwrap_or_default();
        let lines = text.trim().lines().count();
        if lines == 0 {
            return Ok(());
        }
        self.printer.name("assistant")?;
        let note = format!("~ thought · {}", count(lines, "line"));
        self.printer.dim(&note)
    }

    fn lines(&self) -> usize {
        usize::try_from(self.printer.page.lines()).unwrap_or(usize::MAX)
    }
}

/// Cuts texts that are folded.
fn fold(
    mut lines: Vec<StyledLine>,
    mut blocks: Vec<PrintedBlock>,
    conversation: &Conversation<'_>,
    detail: &dyn Fn(&Item) -> Detail,
) -> (Vec<StyledLine>, Vec<PrintedBlock>) {
    let items = conversation.display.items();
    let mut kept = Vec::with_capacity(lines.len());
    for block in &mut blocks {
        let start = kept.len();
        let item = items
            .get(block.items.start)
            .filter(|_| block.branch.is_none());
        let printed = &mut lines[block.lines.clone()];
        let wanted = item.map_or(Detail::Whole, detail);
        let is_text =
            item.is_some_and(|item| item.kind() == ItemKind::Text && item.group().is_none());
        // The rule above a text, its name and an empty line do not count as lines of the text.
        let most = MAX_FOLDED_LINES + 3;
        match wanted {
            Detail::Hidden if is_text => {}
            Detail::Folded if is_text && printed.len() > most + 1 => {
                let margin = printed[most].margin();
                let more = more_lines(printed.len() - most);
                kept.extend(printed[..most].iter_mut().map(std::mem::take));
                let style = Style::new().dimmed();
                kept.push(StyledLine {
                    spans: vec![(Style::new(), " ".repeat(margin)), (style, more)],
                });
            }
            _ => kept.extend(printed.iter_mut().map(std::mem::take)),
        }
        block.lines = start..kept.len();
    }
    (kept, blocks)
}

impl StyledLine {
    /// Returns the text without styles.
    #[must_use]
    pub fn text(&self) -> String {
        self.spans.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Returns the number of spaces that it starts with.
    fn margin(&self) -> usize {
        let first = self.spans.first().map_or("", |(_, text)| text);
        first.len() - first.trim_start_matches(' ').len()
    }
}

/// Reads the styles of a printed line. The printed text is escaped, so that each escape sequence is
/// one that [`TextStyle`](crate::TextStyle) wrote.
fn styled_line(line: &str) -> StyledLine {
    let mut spans = Vec::new();
    let mut style = Style::new();
    for (number, part) in line.split("\u{1b}[").enumerate() {
        let text = match part.split_once('m').filter(|_| number > 0) {
            Some((codes, text)) => {
                style = changed(style, codes);
                text
            }
            None => part,
        };
        if !text.is_empty() {
            spans.push((style, text.to_owned()));
        }
    }
    StyledLine { spans }
}

fn changed(style: Style, codes: &str) -> Style {
    const COLOURS: [AnsiColor; 8] = [
        AnsiColor::Black,
        AnsiColor::Red,
        AnsiColor::Green,
        AnsiColor::Yellow,
        AnsiColor::Blue,
        AnsiColor::Magenta,
        AnsiColor::Cyan,
        AnsiColor::White,
    ];
    codes
        .split(';')
        .fold(style, |style, code| match code.parse::<usize>() {
            Ok(0) | Err(_) => Style::new(),
            Ok(1) => style.bold(),
            Ok(2) => style.dimmed(),
            Ok(3) => style.italic(),
            Ok(4) => style.underline(),
            Ok(9) => style.strikethrough(),
            Ok(code @ 30..=37) => style.fg_color(Some(Color::Ansi(COLOURS[code - 30]))),
            Ok(_) => style,
        })
}

/// Returns the name of a tool and the subject of its call, on one line, as a page shows it.
#[must_use]
pub fn call_line(
    tool: &str,
    block: Option<&transcript_format::content::Block<'_>>,
    options: &RenderOptions,
) -> String {
    let mut nothing = std::io::sink();
    let printer = TextPrinter::new(&mut nothing, options);
    let input: Option<Raw<'_>> = block.and_then(input);
    let about = printer.call_summary(tool, input);
    format!("{} {}", printer.one_line(tool), about.join("\n"))
        .trim()
        .to_owned()
}

/// Returns whether a text is folded unless the reader asks for it: a summary, or what the client
/// wrote.
#[must_use]
pub fn is_folded_at_first(item: &Item) -> bool {
    let is_said = matches!(item.speaker(), Speaker::Person | Speaker::Agent);
    item.kind() != ItemKind::Text || item.group().is_some() || !is_said
}
