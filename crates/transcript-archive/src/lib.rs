//! Keeps every version of sessions in packs, and reads them as if they were files (docs/archive.md).
//!
//! A capture stores the changes since the last one: [`Archive::capture`]. A pack is never changed after it
//! was written, so a folder that is synced with other machines works as an archive. [`ArchiveDisk`] shows
//! the newest versions as files, for everything that reads through
//! [`ReadDisk`](transcript_storage::ReadDisk).
//!
//! ```no_run
//! use transcript_archive::{Archive, CaptureOptions};
//!
//! let mut archive = Archive::open_or_create("archive".as_ref())?;
//! let captured = archive.capture("projects".as_ref(), &CaptureOptions::new())?;
//! println!("{} sessions, {} bytes", captured.sessions, captured.stored);
//! # Ok::<(), transcript_archive::Error>(())
//! ```

mod agent_files;
mod alike;
mod archive;
mod capture;
mod catalogue;
mod check;
mod cipher;
#[cfg(test)]
mod corrupt_index_tests;
mod database;
mod encryption;
mod error;
mod file_content;
mod files;
mod frame;
mod home_files;
mod layout;
mod limits;
mod lines;
mod live_files;
mod machines;
mod moved;
mod names;
mod pack;
mod packer;
mod prune;
mod read_disk;
mod read_disks;
mod record;
mod repack;
mod restore;
mod restore_home;

pub use archive::{Archive, ArchiveOptions, Buckets};
pub use capture::{CaptureOptions, Captured, LiveSession};
pub use check::{Check, CheckOptions, Damage, Loss};
pub use encryption::{Identities, Recipient};
pub use error::{Error, ErrorKind, Existing};
pub use prune::{KeepReason, KeptSession, PruneOptions, Pruned, PrunedSession};
pub use read_disk::{ArchiveDisk, FileVersion};
pub use read_disks::ArchiveDisks;
pub use restore::{RestoreOptions, Restored};

/// The README, as a doctest, so that its examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
