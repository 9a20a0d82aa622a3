//! Follows transcripts while they are written.
//!
//! Start with a [`Follower`] for one session, or a [`Watcher`] for a session with its subagents, a
//! project, or all projects. Both block as iterators, and with the feature `async` (on by default)
//! both become a stream of [`Events`] for tokio.
//!
//! ```no_run
//! use transcript_tail::{Event, Follower, Options, Start};
//!
//! let options = Options::new().start(Start::End).changes();
//! for told in Follower::new("session.jsonl".as_ref(), &options) {
//!     match told?.event {
//!         Event::Entry(entry) => println!("{} {:?}", entry.text, entry.changes),
//!         Event::Bad(finding) => eprintln!("byte {}: {}", finding.offset, finding.detail),
//!         Event::Reset { reason, .. } => println!("from the start again: {}", reason.name()),
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
pub use live::{Change, ChangeKind, LivePath, PathEntry};
pub use options::Options;
pub use place::{Checkpoint, NotACheckpoint};
pub use start::{Start, Trailing, offset_of_last};
pub use transcript_reader::{Error, ErrorKind};
pub use watcher::Watcher;
