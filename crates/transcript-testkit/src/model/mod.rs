//! The slow model: the steps of the real client (2.1.331) from a transcript to a request.
//!
//! Three stages, each a pure function of the one before:
//! [`lines`] (bytes → JSON objects), [`path`] (objects → the entries of the conversation) and
//! [`request`] (entries → the messages that are sent). An id such as LEAF-10 is a rule
//! of `docs/client-behaviour.md`. Beside them stands [`search`], the search of `docs/search.md`.

pub mod lines;
pub mod path;
pub mod request;
pub mod search;

mod blocks;
mod js;
mod messages;
mod reminders;
mod rendered;
mod repair;
mod step;
mod story;
mod time;
mod version;

pub use path::{Path, PathEntry, vendor_path};
pub use request::{Options, Request, vendor_request, vendor_request_with};
pub use story::story_lines;
