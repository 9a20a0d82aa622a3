//! Access to files for all crates of transcript, without any knowledge of lines.
//!
//! [`ReadDisk`] and [`ReadFile`] are all that readers need: open, read at an offset, list a folder,
//! properties, real paths. [`Disk`] and [`File`] add what the writer needs: append, truncate, sync,
//! lock, replace. [`RealDisk`] is the file system of this machine, [`MemoryDisk`] one in memory.
//!
//! A [`SessionLayout`] says where the files of a session are.
//!
//! Two names, or a name and an open file, are the same file if their [`Identity`] is equal. A
//! [`Fingerprint`] shows whether a file still has the bytes at both ends of the part that was read, [`Content`] whether it still has
//! all of it; neither its length nor its modification time can show that.
//!
//! The [`crew`] of the process does background work that waits for files, such as the syncs of a session.
//! [`parallel`] does the same work for many items, such as files, on several threads.
//!
//! ```
//! use std::path::Path;
//! use transcript_storage::{Disk, Fingerprint, MemoryDisk, ReadDisk};
//!
//! let (disk, path) = (MemoryDisk::new(), Path::new("/notes.jsonl"));
//! let file = disk.open(path, true)?.file;
//! file.append(b"{}\n")?;
//! let known = Fingerprint::read(3, |at, buffer| file.read_at(at, buffer))?;
//! disk.put(path, "[]\n");
//! let other = disk.open_to_read(path)?;
//! assert!(!known.matches(|at, buffer| other.read_at(at, buffer))?);
//! # Ok::<(), std::io::Error>(())
//! ```

mod changes;
mod clients;
mod content;
pub mod crew;
mod disk;
mod exchange;
mod exchange_error;
mod fault;
mod file;
mod fingerprint;
mod folders;
mod memory;
mod named;
mod new_file;
pub mod outside_names;
pub mod parallel;
mod per_process;
mod real_disk;
mod session_files;
mod session_layout;
mod sys;
mod temporary;
#[doc(hidden)]
pub mod threads;

pub use changes::{
    Change, Changes, Coverage, OnChange, Reporter, Subscribers, Subscription, WatchedFolder,
};
pub use clients::Client;
pub use content::Content;
pub use disk::{DirEntry, Disk, Entries, LocalDisk, Opened, ReadDisk, Space};
pub use exchange_error::{ExchangeError, ExchangeState, Replace};
pub use file::{
    File, FileKind, Identity, Metadata, ReadFile, Reader, Status, folder_of, is_absent,
};
pub use fingerprint::{Fingerprint, HEAD_LEN, LastBytes, TAIL_LEN};
pub use memory::{MemoryDisk, entries_below};
pub use named::{NamedInput, open_stream};
pub use new_file::{NewFile, UnnamedFile};
pub use per_process::PerProcess;
pub use real_disk::RealDisk;
pub use session_files::SideFile;
pub use session_layout::SessionLayout;
pub use sys::{ignore_file_size_signal, reports_changes};
pub use temporary::{TemporaryFile, TemporaryFolder};

/// The README, as a doctest, so that its examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
