//! What the command says of itself: the layout of all helps, their examples, and the topics of `transcript help`.

pub(crate) mod examples;
pub(crate) mod layout;
pub(crate) mod page;
// Only the full form has all commands of the page.
#[cfg(all(test, feature = "browse", feature = "serve"))]
pub(crate) mod synopses;
pub(crate) mod texts;
pub(crate) mod topics;
