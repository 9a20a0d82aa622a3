#![doc = include_str!("../README.md")]

mod disk;
mod fingerprint;
mod new_file;
mod sys;

pub use disk::{Disk, File, Identity, Opened, Status};
pub use fingerprint::{Fingerprint, HEAD_LEN, LastBytes, TAIL_LEN};
pub use new_file::NewFile;
pub use sys::{RealDisk, ignore_file_size_signal};
