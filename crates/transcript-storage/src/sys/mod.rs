//! The file system of this machine.
//!
//! The only module of the crate with `unsafe`: system calls that the standard library does not
//! have.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{RealDisk, ignore_file_size_signal};
#[cfg(unix)]
pub(crate) use unix::{refuse_public_folder, set_mode, sync_folder};
#[cfg(windows)]
pub use windows::{RealDisk, ignore_file_size_signal};
