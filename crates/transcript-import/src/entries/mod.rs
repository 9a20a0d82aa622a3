//! A conversation as a file of our own format: one line for each message, linked by parents, so that every reader of that format reads it.
//!
//! - The live nodes are one chain. A compaction stands on it as a boundary and a summary, with what it replaced above it.
//! - All other nodes are branches. Each is a child of the node of the chain before it, in the order of the records; those of subagents are
//!   sidechains.
//! - Every line has its origin: the agent, the file, the offset and the length of the record that it was made from.
//! - Damage and unknown records are engine lines at their place.
//!
//! The same conversation always makes the same bytes, ids included. When the agent appends to its file, lines are appended
//! here, too, unless the new records change older ones: a compaction that keeps messages, a new title, tokens that are
//! counted later than the message.

mod chain;
mod ids;
mod line;
mod plan;

use std::hash::Hasher;
use std::path::PathBuf;

use crate::Error;
use crate::conversation::{Conversation, NodeId};

use ids::Repeats;
use plan::{Planned, What};

/// What the lines of a conversation are of.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The session that its lines name.
    pub session_id: &'a str,
    /// The id of the subagent whose conversation it is.
    pub agent_id: Option<&'a str>,
    /// Sources that are shown elsewhere, such as those of subagents with a file of their own: their nodes get no lines.
    pub elsewhere: &'a [PathBuf],
}

/// The lines of a conversation. Only their order is kept; each is written when it is asked for.
#[derive(Debug)]
pub struct Entries(Planned);

impl Entries {
    /// Puts the nodes of a conversation into the order of lines.
    #[must_use]
    pub fn new(conversation: Conversation, subject: Subject<'_>) -> Self {
        let (lines, unknown) = plan::plan(&conversation, subject.elsewhere);
        Self(Planned {
            repeats: Repeats::of(&conversation),
            conversation,
            session_id: subject.session_id.to_owned(),
            agent_id: subject.agent_id.map(str::to_owned),
            lines,
            unknown,
        })
    }

    /// Returns the conversation.
    #[must_use]
    pub fn conversation(&self) -> &Conversation {
        &self.0.conversation
    }

    /// Returns the number of lines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.lines.len()
    }

    /// Returns whether there are no lines.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.lines.is_empty()
    }

    /// Returns the length of a line in bytes, with its line feed, and adds what distinguishes it from other lines to `hash`. Texts that
    /// stay in their sources are not read for it.
    ///
    /// # Errors
    /// When the input of a call cannot be read.
    ///
    /// # Panics
    /// When there are not as many lines.
    pub fn measure(&self, line: usize, hash: &mut impl Hasher) -> Result<u64, Error> {
        line::measure(&self.0, line, hash)
    }

    /// Returns the node that a line shows; `None` for a line about something else, such as a title, and when there are not as many lines.
    #[must_use]
    pub fn node_of(&self, line: usize) -> Option<NodeId> {
        match self.0.lines.get(line)?.what {
            What::Node(id, _) => Some(id),
            _ => None,
        }
    }

    /// Appends a line, with its line feed.
    ///
    /// # Errors
    /// When a content cannot be read.
    ///
    /// # Panics
    /// When there are not as many lines.
    pub fn write(&self, line: usize, to: &mut Vec<u8>) -> Result<(), Error> {
        line::write(&self.0, line, to)
    }
}
