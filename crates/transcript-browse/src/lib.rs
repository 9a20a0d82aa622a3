//! The full-screen view of sessions: projects and sessions on the left, the conversation on the
//! right.
//!
//! [`browse`] runs until the person leaves, and says what to do next. Inside, `app` is a state machine
//! without files and terminal, `view` draws its state, and `runtime` connects it with the keyboard, a
//! thread that has the session open (`session`, asked and answering in `messages`) and one that lists
//! the others. A conversation is laid out in parts (`parts`) around the screen (`document`), so that
//! its length does not matter.
//!
//! Text reaches the screen through `transcript-render` alone, which escapes it.

mod app;
mod copy;
mod divide;
mod document;
mod find;
mod finder;
mod list;
mod messages;
mod needle;
mod paint;
mod parts;
mod reach;
mod results;
mod runtime;
mod search;
mod session;
mod signals;
#[cfg(test)]
mod tests;
mod view;

pub use runtime::{BrowseEnd, BrowseOptions, browse};
