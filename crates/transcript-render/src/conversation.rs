//! The paths of a session that a replay shows, with their items.

use std::ops::Range;

use transcript_format::units::grouped;
use transcript_reader::{Bodies, EntryNo, EntryRef, Index, Source, in_order};
use transcript_resume::items::{
    Cut, Displays, HeldBodies, HeldTexts, ItemKind, ItemList, ItemReader, NamedCall,
};
use transcript_resume::{ConversationPath, Decision, Tree};

use crate::Result;
use crate::view::ShownText;
use crate::words::{count, noun};

/// A path of a session with its items.
pub struct Conversation<'s> {
    pub(crate) source: &'s Source,
    pub(crate) index: &'s Index,
    pub(crate) display: ItemList,
    /// The bodies of a part.
    held: HeldBodies<'s>,
    /// In place of the list: the path in parts, of which each gets a list when it is printed.
    pub(crate) parts: Option<Parts<'s>>,
    /// The number of entries.
    pub(crate) entries: usize,
    /// The number of messages that the model sees.
    pub(crate) in_context: usize,
    /// The boundaries that closed the chapters of a story; `None` of a path that starts with the
    /// last compaction.
    chapters: Option<&'s [EntryNo]>,
    /// The title above it; `None` for the main conversation.
    pub(crate) title: Option<String>,
    /// The reason why a branch is not in the conversation, in a word, if that is known.
    pub(crate) branch_reason: Option<String>,
}

impl<'s> Conversation<'s> {
    /// Builds the conversation along `path`, a path of the tree that `displays` belongs to. The main
    /// conversation of a session has no `title`.
    ///
    /// # Errors
    /// When a body cannot be read.
    pub fn new(
        source: &'s Source,
        index: &'s Index,
        displays: &mut Displays<'_, '_>,
        path: &ConversationPath,
        title: Option<String>,
    ) -> Result<Self> {
        Self::with_bodies(source, index, displays, path, HeldBodies::default(), title)
    }

    fn with_bodies(
        source: &'s Source,
        index: &'s Index,
        displays: &mut Displays<'_, '_>,
        path: &ConversationPath,
        held: HeldBodies<'s>,
        title: Option<String>,
    ) -> Result<Self> {
        Ok(Self {
            display: displays.display_held(path, &held, &mut Bodies::new(source))?,
            held,
            title,
            ..Self::of(source, index, path)
        })
    }

    fn of(source: &'s Source, index: &'s Index, path: &ConversationPath) -> Self {
        let seen = path.entries.iter().filter(|entry| entry.in_context);
        let seen = seen.filter(|entry| index.entry(entry.entry_no()).kind().is_message());
        Self {
            source,
            index,
            display: ItemList::default(),
            held: HeldBodies::default(),
            parts: None,
            entries: path.entries.len(),
            in_context: seen.count(),
            chapters: None,
            title: None,
            branch_reason: None,
        }
    }

    /// Makes it a story whose chapters these boundaries closed, in order: compactions then have the
    /// number of their chapter.
    #[must_use]
    pub fn with_chapters(mut self, boundaries: &'s [EntryNo]) -> Self {
        self.chapters = Some(boundaries);
        self
    }

    /// Gives a branch the reason why it is not in the conversation, in a word.
    #[must_use]
    pub(crate) fn with_branch_reason(mut self, reason: Option<&str>) -> Self {
        self.branch_reason = reason.map(str::to_owned);
        self
    }

    /// Makes a conversation without subagents of which [`ReplayPrinter`](crate::ReplayPrinter)
    /// or [`write_html`](crate::write_html) prints the first items before the last ones are read, with
    /// parts that start as `cut` says: only a page may have some within turns. The path is one of `tree`.
    ///
    /// # Errors
    /// When a body cannot be read.
    pub fn in_parts(
        source: &'s Source,
        index: &'s Index,
        tree: &'s Tree<'s>,
        path: &ConversationPath,
        cut: Cut,
    ) -> Result<Self> {
        Self::in_parts_again(source, index, tree, path, cut, &mut KnownCalls::default())
    }

    /// Makes a conversation [in parts](Self::in_parts), of a file that may have grown since `known` was used before: what is
    /// known of it is not read again.
    ///
    /// # Errors
    /// When a body cannot be read.
    pub fn in_parts_again(
        source: &'s Source,
        index: &'s Index,
        tree: &'s Tree<'s>,
        path: &ConversationPath,
        cut: Cut,
        known: &mut KnownCalls,
    ) -> Result<Self> {
        // Calls of the whole path are found first, because a part can have the result of a call in an earlier one.
        let displays = Displays::new(tree);
        let start = known.keep(path);
        let ranges: Vec<_> = (start..path.entries.len())
            .step_by(ENTRIES_PER_TASK)
            .collect();
        let read = |number: usize| -> Result<_> {
            let end = path.entries.len().min(ranges[number] + ENTRIES_PER_TASK);
            let mut named = Vec::new();
            displays.calls_named(path, ranges[number]..end, &mut named, || {
                Bodies::new(source)
            })?;
            Ok(named)
        };
        in_order(
            0..ranges.len(),
            || read,
            |_, read| -> Result<()> {
                // In the order of the entries, in which `divide` reads them.
                known.named.extend(read?);
                Ok(())
            },
        )?;
        let entries = path.entries.iter();
        known.entries = entries.map(|entry| entry.entry_no()).collect();
        let sizes = match cut {
            Cut::AtPrompts => PART_LENGTHS,
            Cut::Anywhere => SMALL_PART_LENGTHS,
        };
        let paths = displays.divide(path, sizes, &known.named, cut);
        Ok(Self {
            parts: Some(Parts { displays, paths }),
            ..Self::of(source, index, path)
        })
    }

    /// Prints parts in order with `printer`. Other threads `make` them ahead, for most printers only
    /// those that start a turn; a part that the printer cannot use is printed again.
    pub(crate) fn print_parts<P: PartPrinter>(
        &self,
        parts: &Parts<'_>,
        printer: &mut P,
        make: impl Fn(&Conversation<'_>, &EntryRef<'_>, usize) -> Result<P::Made> + Sync,
    ) -> Result<()> {
        let mut displays = parts.displays.clone();
        let mut print = |printer: &mut P, number| {
            self.with_part((parts, number), &mut displays, |part| {
                printer.print(part, number)
            })
        };
        // The first page is read while the others are printed.
        print(printer, 0)?;
        printer.flush()?;
        let maker = || {
            let (make, mut displays) = (&make, parts.displays.clone());
            move |number| {
                // Only a part whose first item is a prompt, and not a large one.
                let first = parts.first(number, self.index)?;
                if parts.is_large(number, self.index) {
                    return None;
                }
                let made = self.with_part((parts, number), &mut displays, |part| {
                    let fits = P::TAKES_ANY_PART || part.starts_turn(&first)?;
                    fits.then(|| make(part, &first, number)).transpose()
                });
                // An error occurs again when this part is printed in its turn, and is then returned.
                made.ok()?
            }
        };
        in_order(1..parts.len(), maker, |number, made: Option<P::Made>| {
            let first = parts.first(number, self.index);
            if let (Some(made), Some(first)) = (made, first)
                && printer.append(&first, made)?
            {
                return Ok(());
            }
            print(printer, number)
        })
    }

    /// Prints one part.
    pub(crate) fn print_part(
        &self,
        number: usize,
        print: impl FnOnce(&Conversation<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(parts) = &self.parts else {
            return print(self);
        };
        let mut displays = parts.displays.clone();
        self.with_part((parts, number), &mut displays, print)
    }

    /// Returns the entries of each part; of a conversation that is not [in parts](Self::in_parts), none.
    pub fn part_paths(&self) -> &[ConversationPath] {
        self.parts.as_ref().map_or(&[], |parts| &parts.paths)
    }

    /// Returns the number of entries, and the note about chapters, for a header.
    #[must_use]
    pub fn facts(&self) -> Vec<String> {
        let entries = grouped(self.entries as u64);
        let mut facts = vec![format!("{entries} {}", noun(self.entries, "entry"))];
        facts.extend(self.chapters_in_words());
        facts
    }

    /// Calls `print` with a part and its items. The bodies of a part are read and parsed once,
    /// except for those of a large one.
    fn with_part<T>(
        &self,
        (parts, number): (&Parts<'_>, usize),
        displays: &mut Displays<'_, '_>,
        print: impl FnOnce(&Conversation<'_>) -> Result<T>,
    ) -> Result<T> {
        let path = &parts.paths[number];
        let (source, index) = (self.source, self.index);
        let read = || HeldTexts::read(index, path, &mut Bodies::new(source));
        // Parsed bodies take a few times the space of the texts, and threads hold several parts at once.
        let is_held = !parts.is_large(number, index);
        let texts = is_held.then(read).transpose()?;
        let held = texts.as_ref().map(HeldBodies::parse).unwrap_or_default();
        let part = Conversation::with_bodies(source, index, displays, path, held, None)?;
        print(&Conversation {
            chapters: self.chapters,
            ..part
        })
    }

    /// Returns the position of the compaction at the boundary `entry_no` in this conversation.
    pub(crate) fn place_of(&self, entry_no: EntryNo) -> CompactionPosition {
        let Some(boundaries) = self.chapters else {
            return CompactionPosition::Start;
        };
        match boundaries.binary_search(&entry_no) {
            Ok(at) => CompactionPosition::Chapter(at + 1, boundaries.len() + 1),
            Err(_) => CompactionPosition::Within,
        }
    }

    /// Returns whether entries that compactions removed are shown as well.
    pub(crate) fn is_story(&self) -> bool {
        self.chapters.is_some()
    }

    /// Returns the note about chapters for the header, if there are several.
    pub(crate) fn chapters_in_words(&self) -> Option<String> {
        let closed = self.chapters.filter(|closed| !closed.is_empty())?;
        let (chapters, seen) = (closed.len() + 1, grouped(self.in_context as u64));
        let messages = noun(self.in_context, "message");
        Some(format!(
            "{chapters} chapters, {seen} {messages} in the context"
        ))
    }

    /// Returns a reader of the items.
    pub(crate) fn reader(&self) -> ItemReader<'_, Bodies<'_>> {
        let reader = ItemReader::new(&self.display, self.index, Bodies::new(self.source));
        reader.holding(&self.held)
    }

    /// Returns whether the first item is the text of this entry, a prompt or a command of a person,
    /// and names the working folder: what is printed from there on depends little on what is above.
    pub(crate) fn starts_turn(&self, first: &EntryRef<'_>) -> Result<bool> {
        let Some(item) = self.display.items().first() else {
            return Ok(false);
        };
        let is_first = item.entry_no() == first.number() && item.group().is_none();
        if item.kind() != ItemKind::Text || !is_first {
            return Ok(false);
        }
        let mut reader = self.reader();
        let loaded = reader.item(0)?;
        let text = loaded.text().unwrap_or_default();
        let is_prompt = matches!(
            ShownText::of(item, &text),
            ShownText::Prompt(_) | ShownText::Command(_)
        );
        // The folder from before a part is not known.
        let entry = loaded.entry();
        let has_cwd = entry.is_some_and(|entry| entry.object().str("cwd").is_some());
        Ok(is_prompt && has_cwd)
    }

    /// Returns the items; none of a conversation [in parts](Self::in_parts).
    pub fn display(&self) -> &ItemList {
        &self.display
    }

    /// Returns whether there is nothing to print.
    pub fn is_empty(&self) -> bool {
        self.display.items().is_empty() && self.parts.is_none()
    }
}

/// A cache of the calls that the entries of a path name.
#[derive(Debug, Default)]
pub struct KnownCalls {
    entries: Vec<EntryNo>,
    /// In the order of the entries.
    named: Vec<NamedCall>,
}

impl KnownCalls {
    /// Keeps the part that is valid for the start of `path`, and returns the index of the first entry after it.
    fn keep(&mut self, path: &ConversationPath) -> usize {
        let same = self.entries.iter().zip(&path.entries);
        let same = same.take_while(|(known, entry)| **known == entry.entry_no());
        // Lines of progress may have come below the last entries.
        let kept = same.count().saturating_sub(ENTRIES_PER_TASK);
        let named = self.named.partition_point(|call| call.place() < kept);
        self.named.truncate(named);
        kept
    }
}

/// Prints the parts of a conversation.
pub(crate) trait PartPrinter {
    /// A part that was printed into memory.
    type Made: Send;

    /// Whether other threads may make parts that do not start a turn.
    const TAKES_ANY_PART: bool = false;

    /// Prints the part with this number.
    fn print(&mut self, part: &Conversation<'_>, number: usize) -> Result<()>;

    /// Appends a part that starts with `first`. Returns false if the output before it changes the part.
    fn append(&mut self, first: &EntryRef<'_>, made: Self::Made) -> Result<bool>;

    /// Flushes the output.
    fn flush(&mut self) -> Result<()>;
}

/// The position of a compaction in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompactionPosition {
    /// The start of the shown conversation.
    Start,
    /// The end of this chapter of a story, counted from 1, and the number of chapters.
    Chapter(usize, usize),
    /// Anywhere else.
    Within,
}

/// The sizes of the first part of a conversation and of later ones, in bytes.
const PART_LENGTHS: Range<u64> = 16 << 10..512 << 10;

/// The same of a page, whose last part is written again while it grows.
const SMALL_PART_LENGTHS: Range<u64> = 16 << 10..128 << 10;

/// The number of entries in which a thread looks for calls at a time.
const ENTRIES_PER_TASK: usize = 1024;

/// A part with more bytes is not printed into memory.
const MAX_PART: u64 = 2 << 20;

/// The parts of a conversation, at least one.
pub(crate) struct Parts<'s> {
    pub(crate) displays: Displays<'s, 's>,
    paths: Vec<ConversationPath>,
}

impl Parts<'_> {
    pub(crate) fn len(&self) -> usize {
        self.paths.len()
    }

    /// Returns the first entry of a part.
    pub(crate) fn first<'i>(&self, part: usize, index: &'i Index) -> Option<EntryRef<'i>> {
        let first = self.paths[part].entries.first();
        first.map(|entry| index.entry(entry.entry_no()))
    }

    /// Returns the entries before a part, the last one first.
    pub(crate) fn before<'i>(
        &self,
        part: usize,
        index: &'i Index,
    ) -> impl Iterator<Item = EntryRef<'i>> {
        let entries = self.paths[..part].iter().flat_map(|path| &path.entries);
        entries.rev().map(|entry| index.entry(entry.entry_no()))
    }

    /// Returns whether a part is too large to be printed into memory.
    pub(crate) fn is_large(&self, part: usize, index: &Index) -> bool {
        let entries = self.paths[part].entries.iter();
        let sizes = entries.map(|entry| index.entry(entry.entry_no()).byte_len());
        sizes.sum::<u64>() > MAX_PART
    }
}

/// Describes a decision as a note above an entry: a gap, a bridge, a salvaged entry.
pub(crate) fn gap(index: &Index, decision: &Decision) -> Option<String> {
    let number = |entry: EntryNo| index.entry(entry).line();
    let line = number(decision.entry());
    Some(match *decision {
        Decision::Relink {
            parent, gap_millis, ..
        } => format!(
            "the parent of line {line} is missing; continues from line {}, written {gap_millis} ms \
             before it",
            number(parent)
        ),
        Decision::Bridge {
            parent, evidence, ..
        } => {
            let (parent, confidence) = (number(parent), evidence.confidence().name());
            format!(
                "the parent of line {line} is missing; continues from line {parent} ({confidence})"
            )
        }
        Decision::Gap { reason, hidden, .. } => {
            let are = if hidden == 1 { "is" } else { "are" };
            let hidden = match hidden {
                0 => String::new(),
                _ => format!(": {} before it {are} not shown", count(hidden, "message")),
            };
            let reason = reason.words();
            format!("the parent of line {line} is missing; {reason}{hidden}")
        }
        Decision::Salvage { .. } => salvaged(Some(line)),
        Decision::Truncated { .. } => {
            format!("the entries before line {line} cannot be reached: its parent is missing")
        }
        Decision::Cycle { .. } => {
            format!("the parent of line {line} forms a cycle and is ignored")
        }
        _ => return None,
    })
}

/// Returns the note above an entry that was salvaged from a damaged line.
pub(crate) fn salvaged(line: Option<u64>) -> String {
    let line = the_line(line);
    format!("{line} is damaged; this entry was salvaged from it")
}

/// Names a line, even if its number is not known.
pub(crate) fn the_line(number: Option<u64>) -> String {
    number.map_or("a line".to_owned(), |number| format!("line {number}"))
}
