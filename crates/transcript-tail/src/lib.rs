//! Follows transcripts while they are written.

mod event;
mod live;

pub use event::{Entry, Event, Reset};
pub use live::{Change, ChangeKind, LivePath, PathEntry};
pub use transcript_reader::{Error, ErrorKind};
