//! The paths of a session that a replay shows, with their items.

use transcript_reader::{Bodies, EntryNo, Index, Source};
use transcript_resume::items::{Displays, ItemList};
use transcript_resume::{ConversationPath, Decision};

use crate::Result;
use crate::words::count;

/// A path of a session with its items.
pub struct Conversation<'s> {
    pub(crate) source: &'s Source,
    pub(crate) index: &'s Index,
    pub(crate) display: ItemList,
    /// The number of entries.
    pub(crate) entries: usize,
    /// The title above it; `None` for the main conversation.
    pub(crate) title: Option<String>,
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
        Ok(Self {
            source,
            index,
            display: displays.display(path, &mut Bodies::new(source))?,
            entries: path.entries.len(),
            title,
        })
    }

    /// Returns the items.
    pub fn display(&self) -> &ItemList {
        &self.display
    }

    /// Returns whether there is nothing to print.
    pub fn is_empty(&self) -> bool {
        self.display.items().is_empty()
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
