//! The totals of the current turn.

use std::collections::HashMap;

use transcript_reader::{EntryNo, MessageKey};

/// The totals since the last prompt.
#[derive(Clone, Default, PartialEq)]
pub(super) struct TurnStats {
    /// The entry that started it, and its line.
    pub(super) first: Option<(EntryNo, Option<u64>)>,
    pub(super) millis: Option<i64>,
    pub(super) calls: usize,
    pub(super) answers: HashMap<MessageKey, Tokens>,
}

/// Tokens of an answer: the largest number of any of its lines for each count.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) cached: u64,
    pub(super) output: u64,
}

impl TurnStats {
    pub(super) fn is_quiet(&self) -> bool {
        self.answers.is_empty() && self.calls == 0
    }
}
