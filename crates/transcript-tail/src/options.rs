//! How to follow.

use transcript_format::lines::DEFAULT_LINE_CAP;

use crate::start::{StartAt, Trailing};

/// How a [`Follower`](crate::Follower) or a [`Watcher`](crate::Watcher) works.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    pub(crate) start: StartAt,
    pub(crate) line_cap: usize,
    pub(crate) has_events: bool,
    pub(crate) has_changes: bool,
    pub(crate) trailing: Trailing,
    pub(crate) is_once: bool,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl FollowOptions {
    /// From the first byte, with events of the system, lines up to 64 MiB, and without
    /// [changes](Self::changes).
    #[must_use]
    pub fn new() -> Self {
        Self {
            start: StartAt::Beginning,
            line_cap: DEFAULT_LINE_CAP,
            has_events: true,
            has_changes: false,
            trailing: Trailing::Pending,
            is_once: false,
        }
    }

    /// Sets where to start in files that are there already.
    #[must_use]
    pub fn start(mut self, start: StartAt) -> Self {
        self.start = start;
        self
    }

    /// Sets what a last line without a newline is; [`Trailing::Pending`] by default.
    #[must_use]
    pub fn trailing(mut self, trailing: Trailing) -> Self {
        self.trailing = trailing;
        self
    }

    /// Reads each file once, up to the end that it has when it is opened, and follows nothing: a
    /// follower has nothing more to say then, whatever happens to the file. A last line without a
    /// newline is an entry when it is [whole](Trailing::Whole), else a [finding](crate::EventKind::Damaged).
    ///
    /// A file that is cut or overwritten while it is read is [reset](crate::EventKind::Reset) and read
    /// once more; the second time reading ends there.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.is_once = true;
        self.trailing(Trailing::Whole)
    }

    /// Sets the longest line that is kept, in bytes. A longer one is told as a finding and passed in
    /// constant memory.
    #[must_use]
    pub fn line_cap(mut self, bytes: usize) -> Self {
        self.line_cap = bytes;
        self
    }

    /// Looks every 1 to 100 ms and asks the system for no events. They are asked for by default, and
    /// where they do not come it is found out: this is for who knows, or runs out of watches.
    #[must_use]
    pub fn poll_only(mut self) -> Self {
        self.has_events = false;
        self
    }

    /// Tells with each entry what it [changed](crate::ConversationChange) in the conversation. What stands before
    /// the start is read, too, and memory grows with the entries: [`LivePath`](crate::LivePath) says
    /// by how much.
    #[must_use]
    pub fn changes(mut self) -> Self {
        self.has_changes = true;
        self
    }
}
