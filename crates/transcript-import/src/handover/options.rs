//! What a hand-over needs to know beside the conversation.

/// What a hand-over needs to know beside the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The working folder of the new session, an absolute path.
    pub cwd: String,
    /// Its title.
    pub title: Option<String>,
    /// What its ids are made from, such as the id of the conversation that is handed over. Equal conversations, options and targets
    /// give equal bytes.
    pub seed: String,
    /// The present time, in milliseconds since 1970: when the new session begins, and the time of items that have none.
    pub now: i64,
    /// Of Gemini CLI: the name that it has for the working folder, if it has one. [`handover`](super::handover) looks for it.
    pub project: Option<String>,
    /// Of ATIF: the name of the agent that had the conversation.
    pub agent: Option<String>,
}
