//! The paths of a session that a replay shows, with their items.

use anyhow::Result;
use transcript::History;
use transcript_reader::{Bodies, Index};
use transcript_resume::items::{Displays, ItemList};
use transcript_resume::{ConversationPath, Decision};

/// A path of a session with its items.
pub(crate) struct Conversation<'s> {
    pub(crate) session: &'s History,
    pub(crate) display: ItemList,
    /// The number of entries.
    pub(crate) entries: usize,
    /// The title above it; `None` for the main conversation.
    pub(crate) title: Option<String>,
}

impl<'s> Conversation<'s> {
    /// Builds the conversation along `path`, a path of the tree that `displays` belongs to.
    pub(crate) fn new(
        session: &'s History,
        displays: &mut Displays<'_, '_>,
        path: &ConversationPath,
        title: Option<String>,
    ) -> Result<Self> {
        Ok(Self {
            session,
            display: displays.display(path, &mut Bodies::new(session.source()))?,
            entries: path.entries.len(),
            title,
        })
    }

    pub(crate) fn index(&self) -> &'s Index {
        self.session.index()
    }
}

/// Describes a decision as a note above an entry: a gap, a bridge, a salvaged entry.
pub(crate) fn gap(index: &Index, decision: &Decision) -> Option<String> {
    let line = |entry: u32| index.entry(entry as usize).line();
    Some(match *decision {
        Decision::Relink {
            entry,
            parent,
            gap_millis,
        } => format!(
            "the parent of line {} is missing; continues from line {}, written {gap_millis} ms before it",
            line(entry),
            line(parent)
        ),
        Decision::Bridge {
            entry,
            parent,
            evidence,
        } => format!(
            "the parent of line {} is missing; continues from line {} ({})",
            line(entry),
            line(parent),
            evidence.confidence().name()
        ),
        Decision::Gap {
            entry,
            reason,
            hidden,
        } => {
            let hidden = match hidden {
                0 => String::new(),
                1 => ": 1 message before it is not shown".to_owned(),
                many => format!(": {many} messages before it are not shown"),
            };
            format!(
                "the parent of line {} is missing; {}{hidden}",
                line(entry),
                reason.words()
            )
        }
        Decision::Salvage { entry } => salvaged(Some(line(entry))),
        Decision::Truncated { entry } => format!(
            "the entries before line {} cannot be reached: its parent is missing",
            line(entry)
        ),
        Decision::Cycle { entry } => format!(
            "the parent of line {} forms a cycle and is ignored",
            line(entry)
        ),
        _ => return None,
    })
}

/// Returns the note above an entry that was salvaged from a damaged line.
pub(crate) fn salvaged(line: Option<u64>) -> String {
    format!(
        "{} is damaged; this entry was salvaged from it",
        the_line(line)
    )
}

/// Names a line, even if its number is not known.
pub(crate) fn the_line(number: Option<u64>) -> String {
    number.map_or("a line".to_owned(), |number| format!("line {number}"))
}
