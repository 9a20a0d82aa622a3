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
//! - Each complete line is emitted once and in order, with its offset. An unfinished line is held
//!   back, and [counted](Follower::pending_bytes). A damaged line is a finding and does not end
//!   following.
//! - A file that is truncated, replaced, moved, deleted, or created later is reported as such. A
//!   writer that rolls back a line that it could not finish causes no event.
//! - With a [`Checkpoint`] a later process continues at the position of this one: each line is
//!   processed exactly once, if the checkpoint is stored together with the results.
//! - Files are opened for reading only. Nothing is locked.
//!
//! `docs/tail.md` of the project lists the tests of each promise.
//!
//! # Limitations
//!
//! Lines that are written and rolled back between two polls are not seen. An entry that raw line
//! feeds split into several lines is reported as damaged lines. A file that is truncated and
//! refilled with the same bytes counts as unchanged.

#[cfg(feature = "async")]
mod asynchronous;
mod change;
mod event;
mod file_cursor;
mod file_position;
mod followed_file;
mod follower;
mod hints;
mod hub;
mod last_turn;
mod line_classifier;
mod live;
mod notifier;
mod options;
mod source;
mod start;
mod watcher;

#[cfg(feature = "async")]
pub use asynchronous::Events;
pub use change::{ChangeKind, ConversationChange};
pub use event::{EventKind, FollowEvent, FollowedEntry, Reset};
pub use file_position::{Checkpoint, ParseCheckpointError};
pub use follower::{Follower, Stopper};
pub use live::{ConversationState, LiveEntry};
pub use options::FollowOptions;
pub use source::Polling;
pub use start::{StartAt, Trailing, offset_of_last};
pub use transcript_reader::{Error, ErrorKind};
pub use watcher::Watcher;

/// The README, as a doctest, so that its examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
