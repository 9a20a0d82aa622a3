//! Appends entries to transcripts, such that acknowledged entries survive crashes.
//!
//! ```no_run
//! use std::path::Path;
//! use transcript_writer::{Draft, ResumePoint, WriterOptions};
//!
//! let writer = WriterOptions::new()
//!     .create()
//!     .cwd("/home/ada/src")
//!     .open(Path::new("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl"), ResumePoint::default())?;
//! let prompt = writer.append(Draft::user("Which years have a leap day?"))?;
//! println!("{} bytes at {}", prompt.len, prompt.offset);
//! writer.close()?;
//! # Ok::<(), transcript_writer::Error>(())
//! ```
//!
//! # What a crash may lose
//!
//! | acknowledged by | lost by a kill of the process | lost by a power cut |
//! | --- | --- | --- |
//! | [`Writer::append`] | never | entries that the [`SyncPolicy`] has not synced yet |
//! | [`Writer::queue`] | entries queued in the last 100 ms | the same |
//! | [`Writer::flush`] | never | entries not synced yet |
//! | [`Writer::sync`], [`Writer::close`] | never | never, if the disk does not lie |
//!
//! `docs/durability.md` of the project lists the whole contract, with the test of each row.
//!
//! # Signals
//!
//! - A limit on the size of files (`ulimit -f`, `RLIMIT_FSIZE`) sends `SIGXFSZ`, which ends the
//!   process in the middle of a write: nothing is acknowledged then, and the next opening repairs
//!   the end of the file. A program that calls [`transcript_storage::ignore_file_size_signal`] when
//!   it starts gets [`ErrorKind::Full`] instead.
//! - On Linux, opening a session asks the kernel whether another process has the file open for
//!   writing. When one opens it at that very moment, the kernel sends us `SIGURG`, which is ignored
//!   unless the program has a handler for it.

mod agent_id;
mod agents;
#[cfg(feature = "async")]
pub mod asynchronous;
mod chain;
mod draft;
mod edit;
mod end_repair;
mod error;
mod ids;
mod log;
mod metadata_cache;
mod options;
mod record;
mod sync;
mod writer;

pub use agent_id::{AgentId, InvalidAgentId};
pub use agents::AgentMeta;
pub use chain::ResumePoint;
pub use draft::{Draft, EntryId, InvalidEntry, InvalidEntryId};
pub use edit::{Compacted, TurnEnd};
pub use end_repair::{KeptReason, Repair};
pub use error::{Error, ErrorKind};
pub use ids::EntryIds;
pub use options::{OnBusy, SyncPolicy, WriterOptions};
pub use record::{RecordOptions, RecordOutcome, SkipReason, Skipped, Tombstoned};
pub use sync::Rescue;
pub use writer::{Stats, Ticket, Writer, Written};

/// The README, as a doctest, so that its examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
