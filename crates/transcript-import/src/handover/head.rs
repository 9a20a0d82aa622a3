//! What is kept of an item between the two readings.

use crate::node::NodeKind;

/// What is kept of an item from the first reading to the second. Its size does not depend on texts.
pub(super) struct Head {
    pub(super) kind: NodeKind,
    /// The id under which a call, or the call that a result answers, is written.
    pub(super) call_id: String,
    /// The name under which the tool of a call or result is written.
    pub(super) name: String,
    /// Of a call: whether its input is a string that is written as one.
    pub(super) is_string: bool,
    /// Of a call: its results.
    pub(super) results: Vec<usize>,
    /// Of a result: the call that it answers.
    pub(super) call: Option<usize>,
    /// Whether it is written.
    pub(super) is_kept: bool,
    /// The id of the call before the hand-over.
    pub(super) given_id: String,
    /// Whether it has neither text nor images.
    pub(super) is_empty: bool,
}
