//! Follows transcripts while they are written.
//!
//! Start with a [`Follower`] for one session, or a [`Watcher`] for a session with its subagents, a
//! project, or all projects. Both block as iterators, and with the feature `async` (on by default)
//! both become a stream of [`Events`] for tokio.
//!
//! ```no_run
//! use transcript_tail::{EventKind, Follower, FollowOptions, StartAt};
//!
//! let options = FollowOptions::new().start(StartAt::End).changes();
//! for event in Follower::new("session.jsonl".as_ref(), &options) {
//!     match event?.kind {
//!         EventKind::Entry(entry) => println!("{} {:?}", entry.text, entry.changes),
//!         EventKind::Damaged(finding) => eprintln!("byte {}: {}", finding.offset, finding.detail),
//!         EventKind::Reset { reason, .. } => println!("from the start again: {}", reason.name()),
//!         _ => {}
//!     }
//! }
//! # Ok::<(), transcript_tail::Error>(())
//! ```
//!
//! # Promises
//!
//! - Each whole line is told once and in order, with its offset. What has no newline yet is held, and
//!   [counted](Follower::pending_bytes). A damaged line is a finding and ends nothing.
//! - A file that is cut, replaced, moved, deleted, made again or that comes later is told as such. A
//!   writer that takes back what it could not finish is not noticed.
//! - With a [`Checkpoint`] a later process goes on where this one was: each line counts once, if the
//!   checkpoint is stored together with what was made of the line.
//! - Files are opened for reading only. Nothing is locked.
//!
//! `docs/tail.md` of the project has the test of each (`facts/reliability.md` 4).
//!
//! # Limitations
//!
//! Lines that are written and taken back between two looks were never there for us. Entries that are
//! torn over several lines by raw line feeds are told as damaged lines. Where a file is cut and filled
//! with exactly the bytes that were told, it is the same file.

#[cfg(feature = "async")]
mod asynchronous;
mod event;
mod file_cursor;
mod file_position;
mod followed_file;
mod follower;
mod hints;
mod line_classifier;
mod live;
mod options;
mod start;
mod watcher;

#[cfg(feature = "async")]
pub use asynchronous::Events;
pub use event::{EventKind, FollowEvent, FollowedEntry, Reset};
pub use file_position::{Checkpoint, ParseCheckpointError};
pub use follower::{Follower, Stopper};
pub use live::{ChangeKind, ConversationChange, LiveEntry, LivePath};
pub use options::FollowOptions;
pub use start::{StartAt, Trailing, offset_of_last};
pub use transcript_reader::{Error, ErrorKind};
pub use watcher::Watcher;
