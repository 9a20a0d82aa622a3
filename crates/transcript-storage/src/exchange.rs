//! Puts a new file in the place of another one, of which no byte is lost.
//!
//! The names of the two files are exchanged in one step, so at every moment the name leads to the
//! old or to the new file, and the old one keeps its bytes and its times under another name. It is
//! not done while a process has the old file open for writing: what that process appends would go
//! to a file that nobody reads. A lease shows whether there is one. If a process opens the old file
//! at the same moment, its file gets the name back, and nothing that it appends is lost.
//!
//! A kill in the middle leaves the new file, or the old one, under a third name: `repairing-N` or
//! `undoing-N` is appended, with N the number (inode) of the file that had the name before. The
//! number shows whether the exchange had happened; the next call finishes it or cleans up.
//!
//! A file system of Linux that cannot exchange two names gets there in three steps: the old file gets
//! a second name, which has `.old` appended to the third one; the new file is renamed over the old
//! one; the second name becomes the third. Here, too, the name always leads to one of the two.
//!
//! Other systems do not say whether a process writes to a file, so nothing is replaced there.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::time::Duration;

use crate::clients::Client;
use crate::disk::Metadata;
use crate::new_file::NewFile;

/// What is appended to the name of a file that was replaced.
const REPLACED: &str = "before-repair";

/// What is appended to the name of a file whose replacement was undone.
const UNDONE: &str = "repaired";

/// What is appended to the third name for the second name of a file.
const SECOND: &str = ".old";

/// How often, and how long apart, to look whether a process still writes to a file that it opened
/// while the names were exchanged.
#[cfg(target_os = "linux")]
const ATTEMPTS: u32 = 200;
#[cfg(target_os = "linux")]
const PAUSE: Duration = Duration::from_millis(10);
/// How often in turn nobody may have the old file open before it is left alone. An `open` that looked up the
/// name before the exchange can be interrupted for tens of milliseconds on a machine with much to do.
#[cfg(target_os = "linux")]
const QUIET: u32 = 20;

/// Why a file was not replaced; it is unchanged then.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExchangeError {
    /// A process has the file open for writing, or holds its lock.
    Busy,
    /// This process, a client, has registered the session of the file and runs.
    Running(u32),
    /// The file is not the one that was read, or it has changed since.
    Changed,
    /// There is no earlier file to restore.
    NothingToUndo,
    /// The system cannot exchange two files, or does not say whether a process writes.
    Unsupported,
    /// The system failed.
    Io(io::Error),
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => write!(f, "a process has the file open for writing"),
            Self::Running(process) => write!(f, "process {process} runs it; end it first"),
            Self::Changed => write!(f, "the file has changed since it was read"),
            Self::NothingToUndo => write!(f, "there is no earlier file to restore"),
            Self::Unsupported => write!(
                f,
                "this system cannot exchange two files, or does not say whether a process writes to one"
            ),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ExchangeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ExchangeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Gives `new` the name `path`. The old file, which must still be as `read` says, gets
/// `.before-repair` appended to its name, and a number if that name is taken. Returns its path.
///
/// # Errors
/// [`ExchangeError`]; the old file then has its name, and the new one is gone.
pub fn put_in_place(new: NewFile, path: &Path, read: &Metadata) -> Result<PathBuf, ExchangeError> {
    check_client(path)?;
    finish_exchange(path)?;
    let old = Old::open(path)?;
    let other = with(path, &format!("repairing-{}", number(read)?));
    new.keep(&other)?;
    let exchanged = old.exchange(path, &other, read);
    if let Err(error) = exchanged {
        fs::remove_file(&other)?;
        return Err(error);
    }
    keep_as(&other, path, REPLACED)
}

/// Gives the file that was last replaced its name again. The file in its place gets `.repaired`
/// appended to its name, and a number if that name is taken. Returns its path.
///
/// # Errors
/// [`ExchangeError`]; both files then have their names.
pub fn undo(path: &Path) -> Result<PathBuf, ExchangeError> {
    check_client(path)?;
    finish_exchange(path)?;
    let names = (0..).map(|number| numbered(path, REPLACED, number));
    let last = names.take_while(|name| name.exists()).last();
    let last = last.ok_or(ExchangeError::NothingToUndo)?;
    let old = Old::open(path)?;
    let metadata = crate::disk::ReadFile::metadata(&old.0)?;
    let other = with(path, &format!("undoing-{}", number(&metadata)?));
    rename_new(&last, &other)?;
    if let Err(error) = old.exchange(path, &other, &metadata) {
        rename_new(&other, &last)?;
        return Err(error);
    }
    keep_as(&other, path, UNDONE)
}

/// Refuses while a client runs the session: it continues from what it has in memory.
fn check_client(path: &Path) -> Result<(), ExchangeError> {
    let running = Client::of_session(path).running;
    running.map_or(Ok(()), |process| Err(ExchangeError::Running(process)))
}

/// Finishes what a killed process began, as every call of [`put_in_place`] and [`undo`] does first.
///
/// # Errors
/// When the system fails.
pub fn finish_exchange(path: &Path) -> Result<(), ExchangeError> {
    for (began, kept) in [("repairing-", REPLACED), ("undoing-", UNDONE)] {
        let Some(name) = with(path, began).file_name().map(OsString::from) else {
            continue;
        };
        for entry in fs::read_dir(crate::new_file::folder_of(path))? {
            let entry = entry?;
            let found = entry.file_name();
            let rest = found
                .as_encoded_bytes()
                .strip_prefix(name.as_encoded_bytes());
            if rest.is_some_and(|rest| rest.ends_with(SECOND.as_bytes())) {
                finish_replacement(&entry.path(), path, kept)?;
                continue;
            }
            let Some(before) = rest.and_then(|rest| std::str::from_utf8(rest).ok()?.parse().ok())
            else {
                continue;
            };
            let other = entry.path();
            let metadata = crate::disk::ReadFile::metadata(&fs::File::open(&other)?)?;
            let was_exchanged = number(&metadata)? == before;
            if was_exchanged {
                keep_as(&other, path, kept)?;
            } else if kept == UNDONE {
                keep_as(&other, path, REPLACED)?;
            } else {
                // Made from the old file, which has its name.
                fs::remove_file(&other)?;
            }
        }
    }
    Ok(())
}

/// Finishes a replacement in three steps: `second` is the second name of the file that had `path`.
fn finish_replacement(second: &Path, path: &Path, kept: &str) -> Result<(), ExchangeError> {
    let identity = |path: &Path| -> io::Result<_> {
        Ok(crate::disk::ReadFile::metadata(&fs::File::open(path)?)?.identity)
    };
    match identity(path)? == identity(second)? {
        // It was not replaced yet.
        true => fs::remove_file(second)?,
        false => _ = keep_as(second, path, kept)?,
    }
    Ok(())
}

fn with(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    name.into()
}

fn numbered(path: &Path, what: &str, number: u32) -> PathBuf {
    match number {
        0 => with(path, what),
        number => with(path, &format!("{what}.{number}")),
    }
}

fn number(metadata: &Metadata) -> Result<u64, ExchangeError> {
    let number = metadata.identity.number;
    number
        .map(|(_, number)| number)
        .ok_or(ExchangeError::Unsupported)
}

/// Renames `from` to the first free name of this kind.
fn keep_as(from: &Path, path: &Path, what: &str) -> Result<PathBuf, ExchangeError> {
    for number in 0.. {
        let name = numbered(path, what, number);
        match rename_new(from, &name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            renamed => return Ok(renamed.map(|()| name)?),
        }
    }
    Err(ExchangeError::Unsupported)
}

/// What is known about a file that lost its name.
#[cfg(target_os = "linux")]
struct Growth {
    /// What is before this offset is in the file that has the name.
    moved: u64,
    /// How often in turn nobody had it open.
    quiet: u32,
}

#[cfg(target_os = "linux")]
impl Growth {
    fn after(len: u64) -> Self {
        Self {
            moved: len,
            quiet: 0,
        }
    }
}

/// The file that has the name now, open for reading, with its lock.
struct Old(fs::File);

#[cfg(target_os = "linux")]
impl Old {
    fn open(path: &Path) -> Result<Self, ExchangeError> {
        let (file, _) = crate::sys::open_at(path, crate::sys::Access::Read)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(fs::TryLockError::WouldBlock) => Err(ExchangeError::Busy),
            Err(fs::TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Checks that the file at `path` is this one, and as it was when it was read.
    fn check(&self, path: &Path, read: &Metadata) -> Result<(), ExchangeError> {
        let now = crate::disk::ReadFile::metadata(&self.0)?;
        let named = crate::disk::ReadFile::metadata(&fs::File::open(path)?)?;
        if now != *read || named.identity != read.identity {
            return Err(ExchangeError::Changed);
        }
        Ok(())
    }

    /// Takes the lease, which proves that no process writes.
    fn lease(&self) -> Result<crate::sys::Lease<'_>, ExchangeError> {
        let lease = crate::sys::Lease::take(&self.0).ok_or(ExchangeError::Unsupported)?;
        lease.ok_or(ExchangeError::Busy)
    }

    /// Exchanges the names of this file, which is at `path`, and of `other`.
    fn exchange(&self, path: &Path, other: &Path, read: &Metadata) -> Result<(), ExchangeError> {
        let lease = self.lease()?;
        self.check(path, read)?;
        let new = fs::File::open(other)?;
        let new_len = crate::disk::ReadFile::metadata(&new)?.len;
        exchange_names(path, other)?;
        drop(lease);
        let new = Self(new);
        // A process that looked up the name before the exchange may open the old file now. Then its
        // file has to have the name, unless another process opened the new one.
        let mut growth = Growth::after(read.len);
        for _ in 0..ATTEMPTS {
            if self.is_left(&mut growth, path)? {
                return Ok(crate::sys::sync_folder(path)?);
            }
            // What was moved to the new file would come back twice.
            if growth.quiet == 0
                && growth.moved == read.len
                && let Ok(lease) = new.lease()
            {
                exchange_names(path, other)?;
                drop(lease);
                new.leave(new_len, path)?;
                return Err(ExchangeError::Busy);
            }
            std::thread::sleep(PAUSE);
        }
        Err(io::Error::from(io::ErrorKind::TimedOut).into())
    }

    /// Waits until this file, which was as long as `len` when it lost its name, is left alone.
    fn leave(&self, len: u64, path: &Path) -> Result<(), ExchangeError> {
        let mut growth = Growth::after(len);
        for _ in 0..ATTEMPTS {
            if self.is_left(&mut growth, path)? {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        Err(io::Error::from(io::ErrorKind::TimedOut).into())
    }

    /// Looks whether a process has this file open, which lost its name, and moves what was appended to it
    /// to the one that has the name now. Returns whether nobody had it open for long enough.
    fn is_left(&self, growth: &mut Growth, path: &Path) -> io::Result<bool> {
        let lease = self.lease();
        if lease.is_ok() {
            growth.moved = self.move_growth(growth.moved, path)?;
        }
        growth.quiet = if lease.is_ok() { growth.quiet + 1 } else { 0 };
        Ok(growth.quiet == QUIET)
    }

    /// Appends what was appended to this file after `len`, when it had lost its name, to the one
    /// that has it now. Returns its length.
    fn move_growth(&self, len: u64, path: &Path) -> io::Result<u64> {
        use crate::disk::{Disk, ReadFile};
        let now = ReadFile::metadata(&self.0)?.len;
        let mut bytes = vec![0; now.saturating_sub(len) as usize];
        if bytes.is_empty() {
            return Ok(now);
        }
        self.0.fill(len, &mut bytes)?;
        let file = crate::sys::RealDisk.open(path, false)?.file;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            rest = &rest[file.append(rest)?..];
        }
        file.sync()?;
        Ok(now)
    }
}

#[cfg(target_os = "linux")]
fn exchange_names(one: &Path, other: &Path) -> Result<(), ExchangeError> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    #[cfg(test)]
    if tests::CANNOT_EXCHANGE.get() {
        return replace_name(one, other);
    }
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => replace_name(one, other),
        Err(error) => Err(ExchangeError::Io(error.into())),
    }
}

/// Exchanges two names in three steps. What has the name `one` has it until `other` is renamed over
/// it; a file system without second names cannot do that.
#[cfg(target_os = "linux")]
fn replace_name(one: &Path, other: &Path) -> Result<(), ExchangeError> {
    let second = with(other, &SECOND[1..]);
    fs::hard_link(one, &second).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported => ExchangeError::Unsupported,
        _ => ExchangeError::Io(error),
    })?;
    if let Err(error) = fs::rename(other, one) {
        fs::remove_file(&second)?;
        return Err(error.into());
    }
    Ok(fs::rename(&second, other)?)
}

/// Renames a file unless the name is taken, and makes that survive a power cut.
#[cfg(target_os = "linux")]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?;
    crate::sys::sync_folder(to)
}

#[cfg(not(target_os = "linux"))]
impl Old {
    fn open(_path: &Path) -> Result<Self, ExchangeError> {
        Err(ExchangeError::Unsupported)
    }

    fn exchange(&self, _path: &Path, _other: &Path, _read: &Metadata) -> Result<(), ExchangeError> {
        Err(ExchangeError::Unsupported)
    }
}

#[cfg(not(target_os = "linux"))]
fn rename_new(_from: &Path, _to: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use std::cell::Cell;
    use std::io::Write;

    use super::*;

    thread_local! {
        /// Whether this thread is on a file system that cannot exchange two names.
        pub(super) static CANNOT_EXCHANGE: Cell<bool> = const { Cell::new(false) };
    }

    /// Calls `test` as it is, and on a file system that cannot exchange two names.
    fn on_all_systems(test: impl Fn()) {
        for cannot in [false, true] {
            CANNOT_EXCHANGE.set(cannot);
            test();
        }
        CANNOT_EXCHANGE.set(false);
    }

    fn new_file(path: &Path, bytes: &[u8]) -> NewFile {
        let mut file = NewFile::beside(path).unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn read(path: &Path) -> Metadata {
        crate::disk::ReadFile::metadata(&fs::File::open(path).unwrap()).unwrap()
    }

    /// Asserts that the file is as it was. The time of the last change also changes with the name.
    fn assert_same(path: &Path, mut before: Metadata) {
        let after = read(path);
        before.changed = after.changed;
        assert_eq!(after, before);
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_old_file_stays_as_it_was_and_comes_back() {
        on_all_systems(|| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("s.jsonl");
            fs::write(&path, "old\n").unwrap();
            let old = read(&path);
            let kept = put_in_place(new_file(&path, b"new\n"), &path, &old).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new\n");
            assert_same(&kept, old);
            assert_eq!(names(folder.path()), ["s.jsonl", "s.jsonl.before-repair"]);

            let second = read(&path);
            let again = put_in_place(new_file(&path, b"newer\n"), &path, &second).unwrap();
            assert_eq!(again, folder.path().join("s.jsonl.before-repair.1"));
            undo(&path).unwrap();
            assert_same(&path, second);
            undo(&path).unwrap();
            assert_same(&path, old);
            assert!(matches!(undo(&path), Err(ExchangeError::NothingToUndo)));
            let left = names(folder.path());
            assert_eq!(left, ["s.jsonl", "s.jsonl.repaired", "s.jsonl.repaired.1"]);
        });
    }

    #[test]
    fn a_file_that_changed_or_is_being_written_stays() {
        on_all_systems(|| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("s.jsonl");
            fs::write(&path, "old\n").unwrap();
            let metadata = read(&path);
            let put = || put_in_place(new_file(&path, b"new\n"), &path, &metadata);
            let mut writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
            assert!(matches!(put(), Err(ExchangeError::Busy)));
            writer.write_all(b"more\n").unwrap();
            drop(writer);
            // A plain rename would lose this line.
            assert!(matches!(put(), Err(ExchangeError::Changed)));
            assert_eq!(fs::read(&path).unwrap(), b"old\nmore\n");
            let reader = fs::File::open(&path).unwrap();
            reader.lock().unwrap();
            assert!(matches!(put(), Err(ExchangeError::Busy)));
            drop(reader);
            fs::rename(&path, folder.path().join("moved")).unwrap();
            fs::write(&path, "old\n").unwrap();
            assert!(matches!(put(), Err(ExchangeError::Changed)));
            assert_eq!(fs::read(&path).unwrap(), b"old\n");
            assert_eq!(names(folder.path()), ["moved", "s.jsonl"]);
        });
    }

    #[test]
    fn what_is_appended_to_the_file_that_lost_its_name_is_moved() {
        on_all_systems(|| {
            let folder = tempfile::tempdir().unwrap();
            let (path, other) = (folder.path().join("s.jsonl"), folder.path().join("other"));
            fs::write(&path, "old\n").unwrap();
            fs::write(&other, "new\n").unwrap();
            let old = Old::open(&path).unwrap();
            exchange_names(&path, &other).unwrap();
            fs::write(&other, "old\nlate\n").unwrap();
            assert_eq!(old.move_growth(4, &path).unwrap(), 9);
            assert_eq!(old.move_growth(9, &path).unwrap(), 9);
            assert_eq!(fs::read(&path).unwrap(), b"new\nlate\n");
        });
    }

    #[test]
    fn what_a_killed_process_left_is_finished_or_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let temporary =
            |what: &str| with(&path, &format!("{what}-{}", number(&read(&path)).unwrap()));
        fs::write(&path, "old\n").unwrap();
        let old = read(&path);

        // Killed before the exchange, and after it.
        let other = temporary("repairing");
        fs::write(&other, "new\n").unwrap();
        finish_exchange(&path).unwrap();
        assert_eq!(names(folder.path()), ["s.jsonl"]);
        fs::write(&other, "new\n").unwrap();
        exchange_names(&path, &other).unwrap();
        finish_exchange(&path).unwrap();
        assert_eq!(names(folder.path()), ["s.jsonl", "s.jsonl.before-repair"]);
        assert_same(&with(&path, REPLACED), old);

        // The same while it is undone.
        let (kept, other) = (with(&path, REPLACED), temporary("undoing"));
        fs::rename(&kept, &other).unwrap();
        finish_exchange(&path).unwrap();
        assert_eq!(names(folder.path()), ["s.jsonl", "s.jsonl.before-repair"]);
        fs::rename(&kept, &other).unwrap();
        exchange_names(&path, &other).unwrap();
        finish_exchange(&path).unwrap();
        assert_eq!(names(folder.path()), ["s.jsonl", "s.jsonl.repaired"]);
        assert_same(&path, old);
    }

    #[test]
    fn a_replacement_that_was_killed_is_finished_or_undone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        fs::write(&path, "old\n").unwrap();
        let old = read(&path);
        let other = with(&path, &format!("repairing-{}", number(&old).unwrap()));
        let second = with(&other, "old");

        // Killed when the old file had its second name, and when the new one had replaced it.
        fs::write(&other, "new\n").unwrap();
        fs::hard_link(&path, &second).unwrap();
        finish_exchange(&path).unwrap();
        assert_eq!(names(folder.path()), ["s.jsonl"]);
        assert_eq!(fs::read(&path).unwrap(), b"old\n");
        fs::write(&other, "new\n").unwrap();
        fs::hard_link(&path, &second).unwrap();
        fs::rename(&other, &path).unwrap();
        finish_exchange(&path).unwrap();
        assert_eq!(names(folder.path()), ["s.jsonl", "s.jsonl.before-repair"]);
        assert_eq!(fs::read(&path).unwrap(), b"new\n");
        assert_same(&with(&path, REPLACED), old);

        // The same while it is undone.
        let kept = with(&path, REPLACED);
        let other = with(&path, &format!("undoing-{}", number(&read(&path)).unwrap()));
        let second = with(&other, "old");
        fs::rename(&kept, &other).unwrap();
        fs::hard_link(&path, &second).unwrap();
        finish_exchange(&path).unwrap();
        assert_eq!(names(folder.path()), ["s.jsonl", "s.jsonl.before-repair"]);
        assert_eq!(fs::read(&path).unwrap(), b"new\n");
        fs::rename(&kept, &other).unwrap();
        fs::hard_link(&path, &second).unwrap();
        fs::rename(&other, &path).unwrap();
        finish_exchange(&path).unwrap();
        assert_eq!(names(folder.path()), ["s.jsonl", "s.jsonl.repaired"]);
        assert_same(&path, old);
    }

    #[test]
    fn nothing_is_left_when_a_replacement_fails() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("s.jsonl"), folder.path().join("other"));
        fs::write(&path, "old\n").unwrap();
        assert!(matches!(
            replace_name(&path, &other),
            Err(ExchangeError::Io(_))
        ));
        assert_eq!(names(folder.path()), ["s.jsonl"]);
    }

    /// A process that appends numbered lines in bursts, each with an `open` of its own as the client
    /// does, while the file is replaced again and again.
    #[test]
    fn no_line_of_a_process_that_appends_is_lost() {
        on_all_systems(|| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("s.jsonl");
            fs::write(&path, "").unwrap();
            const LINES: u32 = 1_600;
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| {
                    for number in 0..LINES {
                        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
                        file.write_all(format!("{number}\n").as_bytes()).unwrap();
                        if number % 32 == 0 {
                            std::thread::sleep(PAUSE);
                        }
                    }
                });
                while !writer.is_finished() {
                    let metadata = read(&path);
                    let bytes = fs::read(&path).unwrap();
                    if bytes.len() as u64 == metadata.len {
                        let _ = put_in_place(new_file(&path, &bytes), &path, &metadata);
                    }
                }
            });
            let text = fs::read_to_string(&path).unwrap();
            let mut numbers: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
            numbers.sort_unstable();
            let lost = (0..LINES).filter(|number| numbers.binary_search(number).is_err());
            let lost: Vec<u32> = lost.collect();
            assert_eq!(lost, [0; 0], "lost, of {LINES}");
            assert_eq!(numbers.len(), LINES as usize, "lines that are there twice");
        });
    }
}
