//! Calls of the system.
//!
//! The only module of the crate with `unsafe`: system calls that the standard library does not
//! have.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;
#[cfg(unix)]
use std::time::{Duration, UNIX_EPOCH};

use crate::file::{FileKind, Identity, Metadata, ReadFile};

#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

pub(crate) use platform::status;
pub use platform::{ignore_file_size_signal, reports_changes};
#[cfg(unix)]
pub(crate) use unix::{
    Access, create_at, has_writer, is_remote, make_folders, open_at, refuse_public_folder,
    rename_without_replacing, set_mode, sync_folder,
};
#[cfg(target_os = "linux")]
pub(crate) use unix::{Lease, is_unknown_flag};

impl ReadFile for fs::File {
    #[cfg(unix)]
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buffer, offset)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        Ok(metadata(&Self::metadata(self)?))
    }
}

/// Sets the time of the last change of a file or folder, which need not be writable.
pub(crate) fn set_modified(path: &Path, modified: SystemTime) -> io::Result<()> {
    set_modified_of(&fs::File::open(path)?, modified)
}

/// Sets the time of the last change. The time of the last access is set to its own value, too: many file systems in user space
/// report success for a change of one of them alone, and do nothing.
pub(crate) fn set_modified_of(file: &fs::File, modified: SystemTime) -> io::Result<()> {
    let accessed = file.metadata()?.accessed().unwrap_or(modified);
    let times = fs::FileTimes::new().set_accessed(accessed);
    file.set_times(times.set_modified(modified))
}

pub(crate) fn metadata(found: &fs::Metadata) -> Metadata {
    #[cfg(unix)]
    let (number, changed, mode) = {
        use std::os::unix::fs::MetadataExt;
        let seconds = u64::try_from(found.ctime()).ok().map(Duration::from_secs);
        let nanos = u64::try_from(found.ctime_nsec())
            .ok()
            .map(Duration::from_nanos);
        let since = seconds.zip(nanos).map(|(seconds, nanos)| seconds + nanos);
        let changed = since.and_then(|since| UNIX_EPOCH.checked_add(since));
        (
            Some((found.dev(), found.ino())),
            changed,
            Some(found.mode() & 0o7777),
        )
    };
    // The standard library has no stable file id for Windows; the creation time replaces it.
    #[cfg(not(unix))]
    let (number, changed, mode) = (None, None, None);
    Metadata {
        kind: kind(found.file_type()),
        len: found.len(),
        modified: found.modified().ok(),
        changed,
        mode,
        identity: Identity::of_file(number, found.created().ok()),
    }
}

pub(crate) fn kind(of: fs::FileType) -> FileKind {
    if of.is_file() {
        FileKind::File
    } else if of.is_dir() {
        FileKind::Folder
    } else if of.is_symlink() {
        FileKind::Link
    } else {
        FileKind::Other
    }
}
