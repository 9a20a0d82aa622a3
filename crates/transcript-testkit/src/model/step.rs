//! The entries that matter for a request, one by one.

use serde_json::{Map, Value};

use super::blocks::{is_blank, is_thinking};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    User,
    Assistant,
    /// An assistant line that reports a failed request: not sent, but it ends a turn.
    ApiError,
    /// The output of a command that the user ran by hand, written as a system line.
    LocalCommand,
    /// An attachment with a text.
    Reminder,
    /// A line that is not sent, although it counts for the lines around it: another system line, an
    /// attachment without a text, a user line that is empty or virtual.
    Silent,
}

/// Identifies the assistant message that a line is a part of.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MessageId {
    /// The value of `message.id`.
    Given(Value),
    /// The line does not have an id, but a `requestId`. Such lines merge as if they shared one (MSG-2).
    Missing,
    /// A synthetic message of the client, or a line with neither; no other line belongs to it.
    Own,
}

impl MessageId {
    pub(super) fn is_same(&self, other: &MessageId) -> bool {
        *self != MessageId::Own && self == other
    }

    /// Returns whether two lines are parts of one message. For open calls and lone thoughts, where
    /// this is used, a line without an id is a message of its own (MSG-2).
    pub(super) fn is_same_given(&self, other: &MessageId) -> bool {
        matches!(self, MessageId::Given(_)) && self == other
    }
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) kind: Kind,
    /// The message that an assistant line is a part of.
    pub(super) id: MessageId,
    pub(super) blocks: Vec<Value>,
    /// The content of a user line was a string, not a list of blocks.
    pub(super) is_plain_string: bool,
    /// The messages of a reminder.
    pub(super) parts: Vec<Vec<Value>>,
    pub(super) entry: Map<String, Value>,
}

impl Step {
    pub(super) fn user(blocks: Vec<Value>) -> Step {
        Step {
            kind: Kind::User,
            id: MessageId::Own,
            blocks,
            is_plain_string: false,
            parts: Vec::new(),
            entry: Map::new(),
        }
    }

    pub(super) fn assistant(blocks: Vec<Value>) -> Step {
        Step {
            kind: Kind::Assistant,
            ..Step::user(blocks)
        }
    }

    /// Ids in `field` of the blocks of type `block_type`.
    pub(super) fn ids(&self, block_type: &str, field: &str) -> Vec<String> {
        let blocks = self
            .blocks
            .iter()
            .filter(|block| block["type"] == block_type);
        blocks
            .filter_map(|block| block[field].as_str())
            .map(str::to_owned)
            .collect()
    }

    pub(super) fn is_system(&self) -> bool {
        self.entry.get("type") == Some(&"system".into())
    }

    pub(super) fn is_attachment(&self) -> bool {
        self.entry.get("type") == Some(&"attachment".into())
    }

    /// Returns whether an assistant line reports a failed request.
    pub(super) fn is_error(&self) -> bool {
        self.entry.get("isApiErrorMessage") == Some(&Value::Bool(true))
    }

    /// Returns whether a user line is the summary of a compaction.
    pub(super) fn is_summary(&self) -> bool {
        self.entry.get("isCompactSummary") == Some(&Value::Bool(true))
    }

    /// Returns whether a user line has a result.
    pub(super) fn is_result(&self) -> bool {
        self.kind == Kind::User && !self.ids("tool_result", "tool_use_id").is_empty()
    }

    /// Returns whether an assistant line contains only thoughts.
    pub(super) fn is_thinking(&self) -> bool {
        self.kind == Kind::Assistant
            && !self.blocks.is_empty()
            && self.blocks.iter().all(is_thinking)
    }

    /// Returns whether an assistant line contains only blank text.
    pub(super) fn is_blank(&self) -> bool {
        self.kind == Kind::Assistant && !self.blocks.is_empty() && self.blocks.iter().all(is_blank)
    }

    /// Returns the first text.
    pub(super) fn text(&self) -> Option<&str> {
        self.blocks.first()?["text"].as_str()
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.entry.get("message")?["model"].as_str()
    }
}
