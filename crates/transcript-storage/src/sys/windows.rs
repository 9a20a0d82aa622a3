//! Windows. Never run yet (see `docs/durability.md`).

use std::fs;
use std::io;
use std::path::Path;

use crate::file::Status;

/// Returns whether the system reports every change in a folder to its watchers. It is not known.
#[must_use]
pub fn reports_changes(_folder: &Path) -> bool {
    false
}

/// Does nothing, because Windows does not have this signal.
pub fn ignore_file_size_signal() {}

pub(crate) fn status(file: &fs::File) -> io::Result<Status> {
    Ok(Status {
        len: file.metadata()?.len(),
        is_linked: true,
    })
}
