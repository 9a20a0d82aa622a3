//! Shared by all of these tests.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use transcript_tail::{EventKind, FollowEvent, Follower};
use transcript_testkit::rng::Rng;

/// Returns how many times longer than usual the tests are to run.
pub(crate) fn soak() -> usize {
    number("TRANSCRIPT_SOAK").map_or(1, |n| n.max(1) as usize)
}

/// Returns `short`, or in a soak run `long` times the requested factor.
pub(crate) fn often(short: usize, long: usize) -> usize {
    if soak() == 1 { short } else { soak() * long }
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

/// Returns a folder on a disk, where writes are split at the end of a page and inode numbers are
/// reused.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Returns a folder in memory if there is one, because truncating and replacing many files takes
/// long on a disk.
pub(crate) fn fast_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| folder())
}

/// Returns a folder on a disk and the path of a session in it.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let folder = folder();
    let path = folder.path().join("s1.jsonl");
    (folder, path)
}

pub(crate) fn append(path: &Path, bytes: &[u8]) {
    appender(path).write_all(bytes).unwrap();
}

/// Opens a file for appending, and creates it if it is missing.
pub(crate) fn appender(path: &Path) -> File {
    let mut options = OpenOptions::new();
    options.append(true).create(true).open(path).unwrap()
}

/// Returns the line of an entry, of `len` bytes with its newline where possible. Its number is near
/// its start and at its end.
pub(crate) fn line(number: usize, len: usize) -> String {
    let start = format!("{{\"type\":\"user\",\"uuid\":\"u{number}\",\"text\":\"");
    let end = format!("\",\"n\":{number}}}\n");
    let room = len.saturating_sub(start.len() + end.len());
    start + &"x".repeat(room) + &end
}

/// Returns all events that there are now.
pub(crate) fn drain(follower: &mut Follower) -> Vec<FollowEvent> {
    std::iter::from_fn(|| follower.try_next().unwrap()).collect()
}

/// Returns the numbers of the entries, by their uuids.
pub(crate) fn numbers<'a>(emitted: impl IntoIterator<Item = &'a FollowEvent>) -> Vec<usize> {
    let entries = emitted
        .into_iter()
        .filter_map(|emitted| match &emitted.kind {
            EventKind::Entry(entry) => Some(number_of(&entry.text)),
            _ => None,
        });
    entries.collect()
}

pub(crate) fn number_of(text: &str) -> usize {
    let (_, rest) = text.split_once("\"uuid\":\"u").unwrap();
    rest.split('"').next().unwrap().parse().unwrap()
}

/// Returns whether the command `words` works here.
pub(crate) fn works(words: &[&str]) -> bool {
    let command = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    command.is_ok_and(|status| status.success())
}

/// The environment variable with the task of a child process.
const TASK: &str = "TRANSCRIPT_TAIL_TASK";

/// Returns a command that runs this binary again with `child` as its only test, with the task and
/// its arguments; `prefix` is the command line of another program that runs it.
pub(crate) fn child_of(prefix: &[&str], task: &str, words: &[&str]) -> Command {
    let binary = std::env::current_exe().unwrap();
    let mut command = match prefix {
        [] => Command::new(&binary),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(&binary);
            command
        }
    };
    command
        .args(["child::child", "--exact", "--nocapture", "--test-threads=1"])
        .env(TASK, [&[task], words].concat().join("\n"))
        .env("RUST_BACKTRACE", "0");
    command
}

/// Returns the task of this process and its arguments, if it is a child.
pub(crate) fn task() -> Option<Vec<String>> {
    let task = std::env::var(TASK).ok()?;
    Some(task.split('\n').map(str::to_owned).collect())
}

/// Signals the end of something, also when a test fails, so that no thread runs forever.
pub(crate) struct Done<'a>(pub(crate) &'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A child that is killed at the end of the test, whatever happens.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        Self(command.stdout(Stdio::piped()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
