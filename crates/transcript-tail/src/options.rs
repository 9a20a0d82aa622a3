//! Options for following files.

use std::sync::Arc;

use transcript_format::lines::DEFAULT_LINE_CAP;
use transcript_storage::{ReadDisk, RealDisk, Reporter};

use crate::start::{StartAt, Trailing};

/// Options of a [`Follower`](crate::Follower) or a [`Watcher`](crate::Watcher).
#[derive(Clone, Debug)]
pub struct FollowOptions {
    pub(crate) disk: Arc<dyn ReadDisk>,
    pub(crate) start: StartAt,
    pub(crate) line_cap: usize,
    pub(crate) has_events: bool,
    pub(crate) has_changes: bool,
    pub(crate) is_quick: bool,
    pub(crate) trailing: Trailing,
    pub(crate) is_once: bool,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl FollowOptions {
    /// From the first byte, with file-system events, lines up to 64 MiB, and without
    /// [changes](Self::changes).
    #[must_use]
    pub fn new() -> Self {
        Self {
            disk: Arc::new(RealDisk),
            start: StartAt::Beginning,
            line_cap: DEFAULT_LINE_CAP,
            has_events: true,
            has_changes: false,
            is_quick: false,
            trailing: Trailing::Pending,
            is_once: false,
        }
    }

    /// Sets the disk of the files; that of this machine by default. One that does not
    /// [report](ReadDisk::reporter) its changes is [polled](Self::poll_only).
    #[must_use]
    pub fn disk(mut self, disk: Arc<dyn ReadDisk>) -> Self {
        self.disk = disk;
        self
    }

    /// Returns whether events are used, and there can be any.
    pub(crate) fn has_events(&self) -> bool {
        self.has_events && !matches!(self.disk.reporter(), Reporter::Unavailable)
    }

    /// Sets where to start in files that already exist.
    #[must_use]
    pub fn start(mut self, start: StartAt) -> Self {
        self.start = start;
        self
    }

    /// Sets how to treat a last line without a newline; [`Trailing::Pending`] by default.
    #[must_use]
    pub fn trailing(mut self, trailing: Trailing) -> Self {
        self.trailing = trailing;
        self
    }

    /// Reads each file once, up to the end that it has when it is opened, and does not follow it:
    /// after that a follower emits nothing, whatever happens to the file. A last line without a
    /// newline is an entry if it is [complete](Trailing::Whole), else a
    /// [finding](crate::EventKind::Damaged).
    ///
    /// A file that is truncated or overwritten during that is [reset](crate::EventKind::Reset) and
    /// read once more; a second change ends the reading.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.is_once = true;
        self.trailing(Trailing::Whole)
    }

    /// Sets the maximum length of a line, in bytes. A longer one is reported as a finding and
    /// skipped in constant memory.
    #[must_use]
    pub fn line_cap(mut self, bytes: usize) -> Self {
        self.line_cap = bytes;
        self
    }

    /// Polls every 1 to 100 ms and does not subscribe to file-system events. By default events are
    /// used, and it is detected when they do not work; this option is for systems where that is
    /// known, or that are short of watches.
    #[must_use]
    pub fn poll_only(mut self) -> Self {
        self.has_events = false;
        self
    }

    /// Emits with each entry the [changes](crate::ConversationChange) of the conversation. The part
    /// before the start is read too, and memory grows with the entries, as
    /// [`ConversationState`](crate::ConversationState) describes.
    #[must_use]
    pub fn changes(mut self) -> Self {
        self.has_changes = true;
        self
    }

    /// Emits the entries that are in a large file before the part above them is read, if their
    /// [changes](Self::changes) depend on their turn only. That part is read when events are asked
    /// for after that; with [`Self::once`] it is not. Until then lines have no numbers, and the
    /// [state](crate::ConversationState) is that of the turn.
    #[must_use]
    pub fn quick_start(mut self) -> Self {
        self.is_quick = true;
        self
    }
}
