//! The state in which a session ended.

use transcript_format::named;

named! {
    /// The state in which a session ended, by the last lines of its file. Only file order counts: a rewind that
    /// nothing followed is not detected. Entries that the client added (`isMeta`), commands of the
    /// client and their output are ignored.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum SessionState {
        /// The last message is an answer without an open call, or a manual compaction.
        Finished = "finished",
        /// Waiting for the person: the last answer ends with a question mark, a tool that asks the
        /// person (`AskUserQuestion`, `ExitPlanMode`) has no result, or the person interrupted the
        /// turn.
        Waiting = "waiting",
        /// The last answer has a call without a result. The tool may be running or waiting for
        /// permission.
        OpenCall = "open-call",
        /// A prompt or results without an answer, an answer with only thinking, an API error, or an
        /// automatic compaction in the middle of a turn.
        Stalled = "stalled",
    }
}

impl SessionState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Finished, Self::Waiting, Self::OpenCall, Self::Stalled];
}
