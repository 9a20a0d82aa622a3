//! Shared by all of these tests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;
use transcript_testkit::rng::Rng;

/// Returns how many times longer than usual the tests are to run.
pub(crate) fn soak() -> usize {
    number("TRANSCRIPT_SOAK").map_or(1, |n| n.max(1) as usize)
}

/// Returns random numbers for the test `name`, and prints how to reproduce them.
pub(crate) fn rng(name: &str) -> Rng {
    let seed = number("TRANSCRIPT_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("{name}: TRANSCRIPT_SEED={seed}");
    Rng::new(seed)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Makes the tests of this binary run one after another.
///
/// While a child process is being started it holds a copy of each open file of this process for a
/// moment, until it executes its own program. A lease is refused then, and an open session looks as
/// if another process wrote to it.
pub(crate) fn serial() -> MutexGuard<'static, ()> {
    static SERIAL: Mutex<()> = Mutex::new(());
    SERIAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a folder on a disk, where writes are split at the end of a page.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Returns a folder in memory if there is one, because syncing many small files takes long on a
/// disk.
pub(crate) fn fast_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| folder())
}

/// Returns whether the command `words` works here.
pub(crate) fn works(words: &[&str]) -> bool {
    Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Returns whether strace can trace a child here; otherwise prints why the test is skipped.
pub(crate) fn has_strace() -> bool {
    let has = works(&["strace", "-f", "-qq", "-o", "/dev/null", "true"]);
    if !has {
        println!("skipped: no strace, or it is not allowed");
    }
    has
}

/// Returns the permission bits of `path`.
pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Returns the other files in the folder of `path`.
pub(crate) fn beside(path: &Path) -> Vec<PathBuf> {
    fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|other| other != path)
        .collect()
}
