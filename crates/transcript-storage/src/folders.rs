//! Removes folders, also on file systems in user space.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// The prefix of the names that FUSE gives to files that were removed while open, until it hears that the file was closed: some time after the call
/// that closed it.
const HIDDEN_PREFIX: &str = ".fuse_hidden";
/// The pauses between the tries, in milliseconds.
const PAUSES_MS: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Removes an empty folder. One in which only files are left that were removed is empty soon, and is waited for.
///
/// # Errors
/// When it is not empty, or the system fails.
pub(crate) fn remove_folder(path: &Path) -> io::Result<()> {
    once_empty(path, || fs::remove_dir(path))
}

/// Removes a folder and everything in it, as [`remove_folder`] does.
///
/// # Errors
/// When the system fails.
pub(crate) fn remove_folder_with_content(path: &Path) -> io::Result<()> {
    once_empty(path, || fs::remove_dir_all(path))
}

fn once_empty(path: &Path, remove: impl Fn() -> io::Result<()>) -> io::Result<()> {
    let is_hidden = |entry: io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with(HIDDEN_PREFIX)
        })
    };
    let is_empty_soon = || fs::read_dir(path).is_ok_and(|mut left| left.all(is_hidden));
    for pause in PAUSES_MS {
        match remove() {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && is_empty_soon() => {
                thread::sleep(Duration::from_millis(pause));
            }
            done => return done,
        }
    }
    remove()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_files_that_are_removed_but_still_open_is_waited_for() -> io::Result<()> {
        for remove in [remove_folder, remove_folder_with_content] {
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("made");
            fs::create_dir(&path)?;
            let hidden = path.join(".fuse_hidden0000000100000001");
            fs::write(&hidden, "")?;
            let release = thread::spawn(move || {
                thread::sleep(Duration::from_millis(20));
                // The other one may have removed it.
                let _ = fs::remove_file(hidden);
            });
            remove(&path)?;
            assert!(!path.exists());
            release.join().expect("the thread ends");
        }
        Ok(())
    }

    #[test]
    fn a_folder_that_is_in_use_stays() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("s.jsonl"), "")?;
        fs::write(folder.path().join(".fuse_hidden0000000100000001"), "")?;
        let error = remove_folder(folder.path()).expect_err("it is not empty");
        assert_eq!(error.kind(), io::ErrorKind::DirectoryNotEmpty);
        assert!(folder.path().join("s.jsonl").exists());
        Ok(())
    }
}
