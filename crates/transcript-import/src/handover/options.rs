//! What a hand-over needs to know beside the conversation.

/// What a hand-over needs to know beside the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The working folder of the new session, an absolute path.
    pub cwd: String,
    /// Its title.
    pub title: Option<String>,
    /// What its ids are made from beside the conversation, the target and the other options: such as the id of the conversation.
    pub seed: String,
    /// When the new session begins if none of the items has a time, in milliseconds since 1970. Ids do not depend on it.
    pub start: i64,
    /// When it is written, in milliseconds since 1970: Gemini CLI deletes sessions that were not written for a month. When it begins, if
    /// that is not given: then equal conversations give equal bytes at any time.
    pub written: Option<i64>,
    /// Of Gemini CLI: the name that it has for the working folder, if it has one. [`handover`](super::handover) looks for it.
    pub project: Option<String>,
    /// Of ATIF: the name of the agent that had the conversation.
    pub agent: Option<String>,
}
