#![doc = include_str!("../README.md")]

mod disk;
mod fingerprint;
mod memory;
mod new_file;
mod sys;

pub use disk::{
    DirEntry, Disk, Entries, File, FileKind, Identity, Metadata, Opened, ReadDisk, ReadFile, Status,
};
pub use fingerprint::{Fingerprint, HEAD_LEN, LastBytes, TAIL_LEN};
pub use memory::{MemoryDisk, entries_below};
pub use new_file::NewFile;
pub use sys::{RealDisk, ignore_file_size_signal};
