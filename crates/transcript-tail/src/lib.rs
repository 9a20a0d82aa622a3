//! Follows transcripts while they are written.

#[cfg(feature = "async")]
mod asynchronous;
mod event;
mod follower;
mod hints;
mod judge;
mod live;
mod options;
mod place;
mod start;
mod tailed;
mod tale;
mod watcher;

#[cfg(feature = "async")]
pub use asynchronous::Events;
pub use event::{Entry, Event, Reset, Told};
pub use follower::{Follower, Stopper};
pub use live::{Change, ChangeKind, LivePath};
pub use options::Options;
pub use place::{Checkpoint, NotACheckpoint};
pub use start::{Start, offset_of_last};
pub use transcript_reader::{Error, ErrorKind};
pub use watcher::Watcher;
