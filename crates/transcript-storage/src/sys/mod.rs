//! The file system of this machine.
//!
//! The only module of the crate with `unsafe`: system calls that the standard library does not
//! have.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{DirEntry, Entries, FileKind, Identity, Metadata, ReadDisk, ReadFile};

#[cfg(unix)]
pub use unix::ignore_file_size_signal;
#[cfg(unix)]
pub(crate) use unix::{refuse_public_folder, set_mode, sync_folder};
#[cfg(windows)]
pub use windows::ignore_file_size_signal;

/// The file system of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl ReadDisk for RealDisk {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            // Opening a pipe for reading would wait for a writer.
            options.custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
        }
        Ok(Arc::new(options.open(path)?))
    }

    fn list(&self, folder: &Path) -> io::Result<Entries> {
        let entries = fs::read_dir(folder)?;
        Ok(Box::new(entries.map(|entry| {
            let entry = entry?;
            Ok(DirEntry {
                name: entry.file_name(),
                kind: entry.file_type().map_or(FileKind::Other, kind),
            })
        })))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        Ok(metadata(&fs::metadata(path)?))
    }

    fn link_metadata(&self, path: &Path) -> io::Result<Metadata> {
        Ok(metadata(&fs::symlink_metadata(path)?))
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }
}

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

fn metadata(found: &fs::Metadata) -> Metadata {
    #[cfg(unix)]
    let number = {
        use std::os::unix::fs::MetadataExt;
        Some((found.dev(), found.ino()))
    };
    // The standard library has no stable file id for Windows; the creation time replaces it.
    #[cfg(not(unix))]
    let number = None;
    Metadata {
        kind: kind(found.file_type()),
        len: found.len(),
        modified: found.modified().ok(),
        identity: Identity {
            number,
            created: found.created().ok(),
        },
    }
}

fn kind(of: fs::FileType) -> FileKind {
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
