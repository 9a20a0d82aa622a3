//! Small helpers for files and locks.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use transcript_storage::{Disk, File};

/// Describes a file for [`CaptureOptions::summarize`].
pub(crate) type Summarize = dyn Fn(&Path) -> Vec<u8> + Send + Sync;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The mutexes guard caches, which a panic of another thread does not invalidate.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Appends all bytes.
pub(crate) fn append_all(file: &dyn File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.append(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Removes a file that may not exist.
pub(crate) fn remove_if_there(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
