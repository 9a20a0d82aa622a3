//! Puts a new file in the place of another one, of which no byte is lost.
//!
//! The names of the two files are exchanged in one step, so at every moment the name leads to the
//! old or to the new file, and the old one keeps its bytes and its times under another name. It is
//! not done while a process has the old file open for writing: its appends would go to a file
//! without readers. A lease shows whether there is one. If a process opens the old file at the same
//! moment, its file gets the name back, and nothing that it appends is lost.
//!
//! A kill in the middle leaves the new file, or the old one, under a third name: `repairing-N` or
//! `undoing-N` is appended (`returning-N` while a repair is rolled back), with N the number (inode) of
//! the file that had the name before. The number shows whether the exchange had happened; the next
//! call finishes it or cleans up.
//!
//! An error in the middle can leave the same states, so the next step depends on where the old
//! file is, and not on which call failed: a call may fail although it did its work. Before the
//! exchange the new file is removed. After it nothing is ever removed: the file that lost its name
//! gets its final one, and the error says where it is ([`ExchangeError::Stopped`]).
//!
//! A file system of Linux that cannot exchange two names gets there in three steps: the old file gets
//! a second name, which has `.old` appended to the third one; the new file is renamed over the old
//! one; the second name becomes the third. Here, too, the name always leads to one of the two.
//!
//! Other systems do not say whether a process writes to a file, so nothing is replaced there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::time::Duration;

use crate::clients::Client;
use crate::exchange_error::{ExchangeError, ExchangeState, Replace};
use crate::fault;
use crate::file::{Metadata, folder_of};
use crate::new_file::NewFile;
use crate::real_disk::RealDisk;

/// The suffix for the name of a file that was replaced.
const REPLACED_SUFFIX: &str = "before-repair";

/// The suffix for the name of a repaired file that was replaced by the original again.
const UNDONE_SUFFIX: &str = "repaired";

/// The suffix of the third name, for the second name of a file.
const SECOND_NAME_SUFFIX: &str = ".old";

/// The maximum number of checks whether a process still writes to a file that it opened while the names were
/// exchanged, and the pause between them.
#[cfg(target_os = "linux")]
const MAX_CHECKS: u32 = 200;
#[cfg(target_os = "linux")]
const CHECK_PAUSE: Duration = Duration::from_millis(10);
/// The number of checks in a row that must find the old file closed before it is left alone. An `open` that looked up
/// the name before the exchange can be interrupted for tens of milliseconds on a machine with much to do.
#[cfg(target_os = "linux")]
const MIN_QUIET_CHECKS: u32 = 20;
/// The maximum number of files of one session that may have lost their name.
const MAX_KEPT_FILES: u32 = 10_000;

/// The suffixes that the names have during and after an exchange.
struct NameSuffixes {
    /// For the file that is to get the name, and then for the one that had it.
    third: &'static str,
    /// The suffix of that name while an exchange is rolled back.
    back: &'static str,
    /// For the file that lost its name.
    lost_name: &'static str,
    /// For the file that got the name and lost it again.
    came_back: &'static str,
}

const REPAIR_SUFFIXES: NameSuffixes = NameSuffixes {
    third: "repairing",
    back: "returning",
    lost_name: REPLACED_SUFFIX,
    came_back: UNDONE_SUFFIX,
};

const UNDO_SUFFIXES: NameSuffixes = NameSuffixes {
    third: "undoing",
    back: "undoing",
    lost_name: UNDONE_SUFFIX,
    came_back: REPLACED_SUFFIX,
};

/// An implementation of [`Replace`] for the file system of this machine.
#[derive(Debug)]
pub(crate) struct Replacement {
    path: PathBuf,
    old: OldFile,
}

impl Replacement {
    /// Takes the lock of the file at `path`, and finishes what a killed process began.
    ///
    /// # Errors
    /// [`ExchangeError`]; the file is unchanged.
    pub(crate) fn begin(path: &Path) -> Result<Self, ExchangeError> {
        check_client(path)?;
        let (path, old) = (path.to_owned(), OldFile::open(path)?);
        Ok(Self { path, old })
    }
}

impl Replace for Replacement {
    fn put(self: Box<Self>, new: NewFile, read: &Metadata) -> Result<PathBuf, ExchangeError> {
        let Self { path, old } = &*self;
        // The inode of the old file is a part of the name, by which the next process knows what a kill interrupted.
        let other = with(
            path,
            &format!("{}-{}", REPAIR_SUFFIXES.third, number(read)?),
        );
        new.keep(&other)?;
        let put = old.put(path, &other, read, &REPAIR_SUFFIXES);
        put.map_err(|error| match error {
            ExchangeFailure::After(error) => error,
            ExchangeFailure::Before(error) => remove_unused(&other, error),
        })
    }
}

/// Gives the file that was last replaced its name again. The file in its place gets `.repaired`
/// appended to its name, and a number if that name is taken. Returns its path.
///
/// # Errors
/// [`ExchangeError`]. With [`Stopped`](ExchangeError::Stopped) it says where both files are. With any other both have
/// their names; with [`LeftOver`](ExchangeError::LeftOver) the earlier file is under a temporary name, and the next call
/// gives it its own again.
pub(crate) fn undo(path: &Path) -> Result<PathBuf, ExchangeError> {
    check_client(path)?;
    let old = OldFile::open(path)?;
    // The highest number is the last repair; a gap ends the search, as numbers are given in order.
    let names = (0..).map(|number| numbered(path, REPLACED_SUFFIX, number));
    let last = names.take_while(|name| name.exists()).last();
    let last = last.ok_or(ExchangeError::NothingToUndo)?;
    let metadata = crate::file::ReadFile::metadata(&old.0)?;
    let other = with(
        path,
        &format!("{}-{}", UNDO_SUFFIXES.third, number(&metadata)?),
    );
    let put = match rename_new(&last, &other) {
        Ok(()) => old.put(path, &other, &metadata, &UNDO_SUFFIXES),
        Err(error) => Err(ExchangeFailure::Before(error.into())),
    };
    put.map_err(|error| match error {
        ExchangeFailure::After(error) => error,
        ExchangeFailure::Before(error) if fs::symlink_metadata(&other).is_err() => error,
        ExchangeFailure::Before(error) => match rename_new(&other, &last) {
            Ok(()) => error,
            Err(_) if fs::symlink_metadata(&last).is_ok() => error,
            Err(_) => ExchangeError::LeftOver {
                left: other,
                error: Box::new(error),
            },
        },
    })
}

/// The reason why a file was not put in the place of another one.
enum ExchangeFailure {
    /// The old file has its name; the new one is where it was.
    Before(ExchangeError),
    /// Nothing is left to do.
    After(ExchangeError),
}

/// Removes a new file that does not get the name.
fn remove_unused(path: &Path, error: ExchangeError) -> ExchangeError {
    let removed = fault::call(|| fs::remove_file(path));
    let is_left = removed.is_err() && fs::symlink_metadata(path).is_ok();
    if is_left {
        ExchangeError::LeftOver {
            left: path.to_owned(),
            error: Box::new(error),
        }
    } else {
        error
    }
}

/// Refuses while a client runs the session: it continues from the conversation in its memory.
fn check_client(path: &Path) -> Result<(), ExchangeError> {
    let running = Client::of_session(&RealDisk, path).running;
    running.map_or(Ok(()), |process| Err(ExchangeError::Running(process)))
}

/// Finishes what a killed process began, as every call of [`Replacement::begin`] and [`undo`] does first.
///
/// # Errors
/// [`ExchangeError::Replacing`] while another process is at it; when the system fails. Then each file is under the name
/// that it had, or under its final one, and the next call continues.
pub(crate) fn finish_exchange(path: &Path) -> Result<(), ExchangeError> {
    if unfinished(path)?.is_empty() {
        return Ok(());
    }
    finish_locked(path, &OldFile::lock(path)?)
}

/// A file under a third name.
struct UnfinishedExchange {
    path: PathBuf,
    names: &'static NameSuffixes,
    /// Whether it has the name that is used while an exchange is rolled back.
    is_back: bool,
    /// The number of the file that had the name; `None` for a second name.
    before: Option<u64>,
}

/// Returns what killed processes left, second names first.
fn unfinished(path: &Path) -> Result<Vec<UnfinishedExchange>, ExchangeError> {
    let Some(name) = path.file_name() else {
        return Ok(Vec::new());
    };
    let kinds = [
        (REPAIR_SUFFIXES.third, &REPAIR_SUFFIXES, false),
        (REPAIR_SUFFIXES.back, &REPAIR_SUFFIXES, true),
        (UNDO_SUFFIXES.third, &UNDO_SUFFIXES, false),
    ];
    let mut unfinished = Vec::new();
    for entry in fault::call(|| fs::read_dir(folder_of(path)))? {
        let entry = entry?;
        let found = entry.file_name();
        let rest = found
            .as_encoded_bytes()
            .strip_prefix(name.as_encoded_bytes())
            .and_then(|rest| std::str::from_utf8(rest.strip_prefix(b".")?).ok());
        let Some(rest) = rest else {
            continue;
        };
        for (third, names, is_back) in kinds {
            let Some(number) = rest
                .strip_prefix(third)
                .and_then(|rest| rest.strip_prefix('-'))
            else {
                continue;
            };
            let is_second = number.ends_with(SECOND_NAME_SUFFIX);
            let before = number.parse().ok();
            if is_second || before.is_some() {
                unfinished.push(UnfinishedExchange {
                    path: entry.path(),
                    names,
                    is_back,
                    before,
                });
            }
        }
    }
    // Second names first: while a file has two, its third name does not show how far the exchange got.
    unfinished.sort_by_key(|unfinished| unfinished.before.is_some());
    Ok(unfinished)
}

/// As [`finish_exchange`], for the process that has the lock of the file.
fn finish_locked(path: &Path, old: &OldFile) -> Result<(), ExchangeError> {
    if !old.is_at(path)? {
        return Err(ExchangeError::Changed);
    }
    for unfinished in unfinished(path)? {
        let UnfinishedExchange {
            path: other,
            names,
            is_back,
            before,
        } = &unfinished;
        let is_same = old.is_at(other)?;
        // A process that replaces a file holds its lock, also when it has lost its name.
        let _lock = if is_same {
            None
        } else {
            match OldFile::lock(other) {
                Err(ExchangeError::Busy) => return Err(ExchangeError::Replacing),
                lock => Some(lock?),
            }
        };
        let Some(before) = before else {
            match is_same {
                // It was not replaced yet.
                true => fault::call(|| fs::remove_file(other))?,
                false if *is_back => _ = keep_as(other, path, names.came_back)?,
                false => _ = keep_as(other, path, names.lost_name)?,
            }
            continue;
        };
        // The number in the third name is that of the file that had the name before: where it is now shows whether the two were exchanged.
        let was_exchanged = number(&metadata_at(other)?)? == *before;
        let has_name = number(&metadata_at(path)?)? == *before;
        if was_exchanged && !has_name {
            keep_as(other, path, names.lost_name)?;
        } else if names.third == REPAIR_SUFFIXES.third && !*is_back && has_name {
            // Made from the old file, which has its name.
            fault::call(|| fs::remove_file(other))?;
        } else {
            keep_as(other, path, names.came_back)?;
        }
    }
    Ok(())
}

fn metadata_at(path: &Path) -> io::Result<Metadata> {
    use crate::disk::ReadDisk;
    fault::call(|| RealDisk.link_metadata(path))
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
    let number = metadata.identity.number();
    number
        .map(|(_, number)| number)
        .ok_or(ExchangeError::Unsupported)
}

/// Returns whether a file that lost its name has its final one.
fn is_final(at: &Path, path: &Path, names: &NameSuffixes) -> bool {
    let mut last = (0..MAX_KEPT_FILES).map(|number| numbered(path, names.lost_name, number));
    last.any(|name| name == at)
}

/// Renames `from` to the first free name of this kind. A kill may have left the file with both names: then it loses
/// the first one.
///
/// # Errors
/// When the system fails; the file is under one of the names then, or under both.
fn keep_as(from: &Path, path: &Path, what: &str) -> io::Result<PathBuf> {
    let identity = metadata_at(from)?.identity;
    for number in 0..MAX_KEPT_FILES {
        let name = numbered(path, what, number);
        // Without replacing: a file of an earlier repair under this name must stay.
        match rename_new(from, &name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if metadata_at(&name)?.identity == identity {
                    fault::call(|| fs::remove_file(from))?;
                    #[cfg(unix)]
                    crate::sys::sync_folder(path)?;
                    return Ok(name);
                }
            }
            renamed => return renamed.map(|()| name),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Renames a file unless the name is taken, and makes that survive a power cut.
///
/// # Errors
/// As [`rename_without_replacing`](crate::sys::rename_without_replacing); after a sync that failed the file has the
/// new name.
#[cfg(unix)]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    crate::sys::rename_without_replacing(from, to)?;
    crate::sys::sync_folder(to)
}

#[cfg(not(unix))]
fn rename_new(_from: &Path, _to: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The file that has the name now, open for reading, with its lock. Every process takes it that replaces the file, or
/// appends to it through this crate.
#[derive(Debug)]
struct OldFile(fs::File);

impl OldFile {
    /// Opens the file at `path` and takes its lock.
    fn lock(path: &Path) -> Result<Self, ExchangeError> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            // A pipe in place of the file would block the caller.
            options.custom_flags(libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK);
        }
        let file = fault::call(|| options.open(path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(fs::TryLockError::WouldBlock) => Err(ExchangeError::Busy),
            Err(fs::TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Returns whether this file has a name.
    fn is_at(&self, path: &Path) -> io::Result<bool> {
        let own = crate::file::ReadFile::metadata(&self.0)?.identity;
        match metadata_at(path) {
            Ok(found) => Ok(found.identity == own),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Exchanges the names of this file, which is at `path`, and of `other`, and gives this one its final name. Returns
    /// that.
    ///
    /// After an error the files are looked for under all names, since a call may fail after it did its work.
    fn put(
        &self,
        path: &Path,
        other: &Path,
        read: &Metadata,
        names: &NameSuffixes,
    ) -> Result<PathBuf, ExchangeFailure> {
        let number = number(read).map_err(ExchangeFailure::Before)?;
        let back = with(path, &format!("{}-{number}", names.back));
        let exchanged = self.exchange(path, other, &back, read);
        let kept = exchanged.and_then(|()| Ok(keep_as(other, path, names.lost_name)?));
        kept.map_err(|error| self.give_final_names(error, path, [other, &back], names))
    }

    /// Gives files their final names after an error, whatever that was. Nothing is removed but a second name.
    fn give_final_names(
        &self,
        error: ExchangeError,
        path: &Path,
        [other, back]: [&Path; 2],
        names: &NameSuffixes,
    ) -> ExchangeFailure {
        let stopped = |state, other, error| {
            let error = Box::new(error);
            ExchangeFailure::After(ExchangeError::Stopped {
                state,
                other,
                error,
            })
        };
        let find = || self.find(path, [other, back], names);
        let at = match find() {
            Ok(Some(at)) => at,
            _ => return stopped(ExchangeState::Unknown, other.to_owned(), error),
        };
        if at != path {
            // Under its final name, if it can get that.
            let kept = if is_final(&at, path, names) {
                Some(at.clone())
            } else {
                keep_as(&at, path, names.lost_name).ok()
            };
            let kept = kept.or_else(|| find().ok()?).unwrap_or(at);
            return stopped(ExchangeState::Exchanged, kept, error);
        }
        let second = with(other, &SECOND_NAME_SUFFIX[1..]);
        if self.is_at(&second).is_ok_and(|is_at| is_at) {
            return ExchangeFailure::Before(remove_unused(&second, error));
        }
        if back == other || fs::symlink_metadata(back).is_err() {
            return ExchangeFailure::Before(error);
        }
        let kept = keep_as(back, path, names.came_back);
        let kept = kept.unwrap_or_else(|_| back.to_owned());
        stopped(ExchangeState::RolledBack, kept, error)
    }

    /// Returns which of the names that it can have in an exchange this file has.
    fn find(
        &self,
        path: &Path,
        thirds: [&Path; 2],
        names: &NameSuffixes,
    ) -> io::Result<Option<PathBuf>> {
        let seconds = thirds.map(|third| with(third, &SECOND_NAME_SUFFIX[1..]));
        let [other, back] = thirds.map(Path::to_owned);
        let known = [path.to_owned(), other, back].into_iter().chain(seconds);
        let last = (0..MAX_KEPT_FILES).map(|number| numbered(path, names.lost_name, number));
        for name in known.chain(last) {
            if self.is_at(&name)? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }
}

/// The state of a file that lost its name: a process may still append to it.
#[cfg(target_os = "linux")]
struct GrowthCheck {
    /// The offset up to which its bytes were copied to the file that has the name now.
    moved: u64,
    /// The number of checks in a row that found it closed.
    quiet: u32,
}

#[cfg(target_os = "linux")]
impl GrowthCheck {
    fn after(len: u64) -> Self {
        Self {
            moved: len,
            quiet: 0,
        }
    }
}

#[cfg(target_os = "linux")]
impl OldFile {
    /// Opens the file, and finishes what a killed process began.
    fn open(path: &Path) -> Result<Self, ExchangeError> {
        use crate::sys::{Access, open_at};
        let old = match Self::lock(path) {
            Err(ExchangeError::Busy) if !unfinished(path)?.is_empty() => {
                return Err(ExchangeError::Replacing);
            }
            // Its error tells a missing file from a folder or a link at `path`.
            Err(ExchangeError::Io(error)) => {
                open_at(path, Access::Read)?;
                return Err(error.into());
            }
            old => old?,
        };
        finish_locked(path, &old)?;
        open_at(path, Access::Read)?;
        if old.is_at(path)? {
            Ok(old)
        } else {
            Err(ExchangeError::Changed)
        }
    }

    /// Checks that the file at `path` is this one, and as it was when it was read.
    fn check(&self, path: &Path, read: &Metadata) -> Result<(), ExchangeError> {
        let now = fault::call(|| crate::file::ReadFile::metadata(&self.0))?;
        if now != *read || metadata_at(path)?.identity != read.identity {
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
    ///
    /// # Errors
    /// In any state: this file may have `path`, `other`, `back`, or a second name of them.
    fn exchange(
        &self,
        path: &Path,
        other: &Path,
        back: &Path,
        read: &Metadata,
    ) -> Result<(), ExchangeError> {
        let lease = self.lease()?;
        self.check(path, read)?;
        let new = fault::call(|| fs::File::open(other))?;
        let new_len = crate::file::ReadFile::metadata(&new)?.len;
        exchange_names(path, other)?;
        drop(lease);
        if !self.is_at(other)? {
            // The name went to another file right before.
            exchange_names(path, other)?;
            return Err(ExchangeError::Changed);
        }
        let new = Self(new);
        // A process that looked up the name before the exchange may open the old file now. Then its
        // file has to have the name, unless another process opened the new one.
        let mut growth = GrowthCheck::after(read.len);
        for _ in 0..MAX_CHECKS {
            if self.is_closed(&mut growth, path)? {
                return Ok(crate::sys::sync_folder(path)?);
            }
            // Only while nothing was copied to the new file: the copied lines would be in the old file twice.
            if growth.quiet == 0
                && growth.moved == read.len
                && let Ok(lease) = new.lease()
            {
                if back != other {
                    rename_new(other, back)?;
                }
                exchange_names(path, back)?;
                drop(lease);
                new.wait_until_closed(new_len, path)?;
                if back != other {
                    rename_new(back, other)?;
                }
                return Err(ExchangeError::Busy);
            }
            fault::pause(CHECK_PAUSE);
        }
        Err(still_open())
    }

    /// Waits until this file, which was as long as `len` when it lost its name, has been closed by all writers.
    fn wait_until_closed(&self, len: u64, path: &Path) -> Result<(), ExchangeError> {
        let mut growth = GrowthCheck::after(len);
        for _ in 0..MAX_CHECKS {
            if self.is_closed(&mut growth, path)? {
                return Ok(());
            }
            fault::pause(CHECK_PAUSE);
        }
        Err(still_open())
    }

    /// Checks whether a process has this file open, which lost its name, and moves the bytes that were appended to
    /// it to the file that has the name now. Returns whether it was closed in enough checks in a row.
    fn is_closed(&self, growth: &mut GrowthCheck, path: &Path) -> io::Result<bool> {
        let lease = self.lease();
        if lease.is_ok() {
            growth.moved = self.move_growth(growth.moved, path)?;
        }
        growth.quiet = if lease.is_ok() { growth.quiet + 1 } else { 0 };
        Ok(growth.quiet == MIN_QUIET_CHECKS)
    }

    /// Moves the bytes that were appended to this file after `len`, when it had lost its name, to the one
    /// that has it now. Returns its length.
    ///
    /// # Errors
    /// When the system fails; none of these bytes are in the other file then, unless that cannot be truncated either.
    fn move_growth(&self, len: u64, path: &Path) -> io::Result<u64> {
        use crate::disk::Disk;
        use crate::file::ReadFile;
        let now = ReadFile::metadata(&self.0)?.len;
        let mut bytes = vec![0; now.saturating_sub(len) as usize];
        if bytes.is_empty() {
            return Ok(now);
        }
        if fault::call(|| self.0.fill(len, &mut bytes))? < bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let file = fault::call(|| RealDisk.open(path, false))?.file;
        let start = file.status()?.len;
        let mut rest = &bytes[..];
        let mut append = || -> io::Result<()> {
            while !rest.is_empty() {
                match fault::call(|| file.append(rest)) {
                    Ok(written) => rest = &rest[written..],
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            fault::call(|| file.sync())
        };
        append().inspect_err(|_| {
            // A part of a line would be joined with the next one of a client. Only our own bytes are cut.
            let mut added = vec![0; bytes.len() + 1];
            let added = file.fill(start, &mut added).map(|len| &added[..len]);
            if added.is_ok_and(|added| bytes.starts_with(added)) {
                let _ = file.truncate(start);
            }
        })?;
        Ok(now)
    }
}

/// A process opened the old file at the moment of the exchange, another one the new file, and neither closes it.
#[cfg(target_os = "linux")]
fn still_open() -> ExchangeError {
    let what = "a process keeps the file open that lost its name";
    io::Error::new(io::ErrorKind::TimedOut, what).into()
}

/// Exchanges two names, in one step or in three.
///
/// # Errors
/// The names are as before, or exchanged; or `one` leads to what `other` led to, which has that name no more, and what had
/// `one` is under the second name of `other`.
#[cfg(target_os = "linux")]
fn exchange_names(one: &Path, other: &Path) -> Result<(), ExchangeError> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    if fault::knows_no_flag() {
        return replace_name(one, other);
    }
    let exchange = || Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?);
    match fault::call(exchange) {
        Err(error) if crate::sys::is_unknown_flag(&error) => replace_name(one, other),
        exchanged => Ok(exchanged?),
    }
}

/// Exchanges two names in three steps. What has the name `one` has it until `other` is renamed over
/// it; a file system without second names cannot do that.
///
/// # Errors
/// As [`exchange_names`].
#[cfg(target_os = "linux")]
fn replace_name(one: &Path, other: &Path) -> Result<(), ExchangeError> {
    let second = with(other, &SECOND_NAME_SUFFIX[1..]);
    let linked = fault::call(|| fs::hard_link(one, &second));
    linked.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported => ExchangeError::Unsupported,
        _ => ExchangeError::Io(error),
    })?;
    if let Err(error) = fault::call(|| fs::rename(other, one)) {
        // Only while it is the second name: else it is the only one of the old file.
        let identity = |path| metadata_at(path).map(|found| found.identity);
        if let (Ok(named), Ok(linked)) = (identity(one), identity(&second))
            && named == linked
        {
            let _ = fault::call(|| fs::remove_file(&second));
        }
        return Err(error.into());
    }
    Ok(fault::call(|| fs::rename(&second, other))?)
}

#[cfg(not(target_os = "linux"))]
impl OldFile {
    fn open(_path: &Path) -> Result<Self, ExchangeError> {
        Err(ExchangeError::Unsupported)
    }

    fn exchange(
        &self,
        _path: &Path,
        _other: &Path,
        _back: &Path,
        _read: &Metadata,
    ) -> Result<(), ExchangeError> {
        Err(ExchangeError::Unsupported)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use std::io::Write;

    use super::*;
    use crate::fault::{self, Fault};

    /// Calls `test` as it is, and on a file system that knows no flag of `renameat2`.
    fn on_all_systems(test: impl Fn()) {
        for knows_no_flag in [false, true] {
            fault::set_knows_no_flag(knows_no_flag);
            test();
        }
        fault::set_knows_no_flag(false);
    }

    fn put_in_place(new: NewFile, path: &Path, read: &Metadata) -> Result<PathBuf, ExchangeError> {
        Box::new(Replacement::begin(path)?).put(new, read)
    }

    fn new_file(path: &Path, bytes: &[u8]) -> NewFile {
        let mut file = NewFile::beside(path).unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn read(path: &Path) -> Metadata {
        crate::file::ReadFile::metadata(&fs::File::open(path).unwrap()).unwrap()
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
    fn old_file_stays_as_it_was_and_is_restored_by_undo() {
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
    fn appends_to_the_file_that_lost_its_name_are_moved() {
        on_all_systems(|| {
            let folder = tempfile::tempdir().unwrap();
            let (path, other) = (folder.path().join("s.jsonl"), folder.path().join("other"));
            fs::write(&path, "old\n").unwrap();
            fs::write(&other, "new\n").unwrap();
            let old = OldFile::open(&path).unwrap();
            exchange_names(&path, &other).unwrap();
            fs::write(&other, "old\nlate\n").unwrap();
            assert_eq!(old.move_growth(4, &path).unwrap(), 9);
            assert_eq!(old.move_growth(9, &path).unwrap(), 9);
            assert_eq!(fs::read(&path).unwrap(), b"new\nlate\n");
        });
    }

    #[test]
    fn exchange_of_a_killed_process_is_finished_or_removed() {
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
        assert_same(&with(&path, REPLACED_SUFFIX), old);

        // The same while it is undone.
        let (kept, other) = (with(&path, REPLACED_SUFFIX), temporary("undoing"));
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
        assert_same(&with(&path, REPLACED_SUFFIX), old);

        // The same while it is undone.
        let kept = with(&path, REPLACED_SUFFIX);
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

    /// The bytes of the two sessions.
    const OLD: &[u8] = b"old\n";
    const NEW: &[u8] = b"new, and longer\n";

    /// A folder in memory, if there is such a file system: thousands of syncs take a minute on a disk.
    fn fast_folder() -> tempfile::TempDir {
        let memory = tempfile::tempdir_in("/dev/shm");
        memory.or_else(|_| tempfile::tempdir()).unwrap()
    }

    /// Fails every call of `run` in turn, with and without its work done, and those after it, on all systems. `check` gets
    /// the path of the session.
    fn fail_every_call(prepare: impl Fn(&Path), run: impl Fn(&Path), check: impl Fn(&Path, Fault)) {
        on_all_systems(|| {
            for (is_done, calls) in [(false, 1), (true, 1), (false, 2), (true, 2), (false, 1000)] {
                for after in 0.. {
                    let folder = fast_folder();
                    let path = folder.path().join("s.jsonl");
                    prepare(&path);
                    let fault = Fault {
                        after,
                        is_done,
                        calls,
                    };
                    if !fault.run(|| run(&path)) {
                        assert!(after > 2, "no call failed");
                        break;
                    }
                    check(&path, fault);
                }
            }
        });
    }

    /// Returns the names of the files with these bytes, without that of the session.
    fn named(path: &Path, bytes: &[u8]) -> Vec<String> {
        let folder = folder_of(path);
        let mut found = names(folder);
        found.retain(|name| fs::read(folder.join(name)).unwrap() == bytes);
        found
            .iter()
            .map(|name| name.strip_prefix("s.jsonl").unwrap().to_owned())
            .collect()
    }

    fn put(path: &Path) -> Result<PathBuf, ExchangeError> {
        put_in_place(new_file(path, NEW), path, &read(path))
    }

    /// Asserts that an error says where both files are, and that nothing is left over without a word.
    fn assert_said(path: &Path, error: &ExchangeError, fault: Fault, [before, after]: [&[u8]; 2]) {
        let now = fs::read(path).unwrap();
        match error {
            ExchangeError::Stopped { state, other, .. } => {
                let [named, unnamed] = match state {
                    ExchangeState::Exchanged => [after, before],
                    _ => [&now[..], if now == before { after } else { before }],
                };
                assert_eq!(now, named, "{fault:?}: {error}");
                // A file that could not be looked at is still under one of the two names that the error can mean.
                if *state == ExchangeState::Exchanged {
                    assert_eq!(fs::read(other).unwrap(), unnamed, "{fault:?}: {error}");
                }
            }
            _ => assert_eq!(now, before, "{fault:?}: {error}"),
        }
    }

    #[test]
    fn any_failing_call_of_a_replacement_leaves_the_old_file_whole() {
        let said = std::cell::RefCell::new(None);
        fail_every_call(
            |path| fs::write(path, OLD).unwrap(),
            |path| *said.borrow_mut() = put_in_place(new_file(path, NEW), path, &read(path)).err(),
            |path, fault| {
                assert_ne!(named(path, OLD), [""; 0], "{fault:?}: the old file is gone");
                let error = said.take();
                if let Some(error) = &error {
                    assert_said(path, error, fault, [OLD, NEW]);
                }
                let is_named = matches!(
                    error,
                    Some(ExchangeError::LeftOver { .. } | ExchangeError::Stopped { .. })
                );
                if fault.calls == 1 && !is_named {
                    let left = names(folder_of(path));
                    let kept: &[&str] = match error {
                        Some(_) => &["s.jsonl"],
                        None => &["s.jsonl", "s.jsonl.before-repair"],
                    };
                    assert_eq!(left, kept, "{fault:?}: {error:?}");
                }
                // The next one finishes or cleans up.
                finish_exchange(path).unwrap();
                let left = names(folder_of(path));
                match &fs::read(path).unwrap()[..] {
                    OLD => assert_eq!(left, ["s.jsonl"], "{fault:?}: {error:?}"),
                    _ => {
                        assert_eq!(
                            left,
                            ["s.jsonl", "s.jsonl.before-repair"],
                            "{fault:?}: {error:?}"
                        );
                        undo(path).unwrap();
                        assert_eq!(fs::read(path).unwrap(), OLD, "{fault:?}");
                    }
                }
            },
        );
    }

    #[test]
    fn any_failing_call_of_an_undo_leaves_both_files_whole() {
        let said = std::cell::RefCell::new(None);
        fail_every_call(
            |path| {
                fs::write(path, OLD).unwrap();
                put(path).unwrap();
            },
            |path| *said.borrow_mut() = undo(path).err(),
            |path, fault| {
                assert_ne!(
                    named(path, OLD),
                    [""; 0],
                    "{fault:?}: the earlier file is gone"
                );
                assert_ne!(
                    named(path, NEW),
                    [""; 0],
                    "{fault:?}: the repaired file is gone"
                );
                let error = said.take();
                if let Some(error) = &error {
                    assert_said(path, error, fault, [NEW, OLD]);
                }
                finish_exchange(path).unwrap();
                let other = match &fs::read(path).unwrap()[..] {
                    OLD => "s.jsonl.repaired",
                    _ => "s.jsonl.before-repair",
                };
                assert_eq!(
                    names(folder_of(path)),
                    ["s.jsonl", other],
                    "{fault:?}: {error:?}"
                );
            },
        );
    }

    #[test]
    fn call_after_a_failed_one_finishes_the_exchange() {
        let third =
            |path: &Path, what| with(path, &format!("{what}-{}", number(&read(path)).unwrap()));
        let states: [&dyn Fn(&Path); 6] = [
            // Not exchanged, and exchanged.
            &|path| fs::write(third(path, "repairing"), NEW).unwrap(),
            &|path| {
                let other = third(path, "repairing");
                fs::write(&other, NEW).unwrap();
                exchange_names(path, &other).unwrap();
            },
            // Linked, and replaced.
            &|path| {
                let other = third(path, "repairing");
                fs::write(&other, NEW).unwrap();
                fs::hard_link(path, with(&other, "old")).unwrap();
            },
            &|path| {
                let other = third(path, "repairing");
                fs::write(&other, NEW).unwrap();
                fs::hard_link(path, with(&other, "old")).unwrap();
                fs::rename(other, path).unwrap();
            },
            // Named twice.
            &|path| {
                let other = third(path, "repairing");
                fs::write(&other, NEW).unwrap();
                exchange_names(path, &other).unwrap();
                fs::hard_link(&other, with(path, REPLACED_SUFFIX)).unwrap();
            },
            // Rolled back: a process may have appended to the new one.
            &|path| fs::write(third(path, "returning"), NEW).unwrap(),
        ];
        for (at, state) in states.iter().enumerate() {
            fail_every_call(
                |path| {
                    fs::write(path, OLD).unwrap();
                    state(path);
                },
                |path| _ = finish_exchange(path),
                |path, fault| {
                    assert_ne!(named(path, OLD), [""; 0], "{at}, {fault:?}");
                    finish_exchange(path).unwrap();
                    let kept: &[&str] = match at {
                        0 | 2 => &["s.jsonl"],
                        5 => &["s.jsonl", "s.jsonl.repaired"],
                        _ => &["s.jsonl", "s.jsonl.before-repair"],
                    };
                    assert_eq!(names(folder_of(path)), kept, "{at}, {fault:?}");
                },
            );
        }
    }

    #[test]
    fn a_file_that_another_process_replaces_is_left_to_it() {
        on_all_systems(|| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("s.jsonl");
            fs::write(&path, OLD).unwrap();
            let metadata = read(&path);
            let other = with(&path, &format!("repairing-{}", number(&metadata).unwrap()));
            let first = OldFile::open(&path).unwrap();
            new_file(&path, NEW).keep(&other).unwrap();
            // Before the exchange, and after it.
            let replacing = |result| matches!(result, Err(ExchangeError::Replacing));
            assert!(replacing(put(&path)) && replacing(undo(&path)));
            exchange_names(&path, &other).unwrap();
            assert!(replacing(put(&path)) && replacing(undo(&path)));
            assert!(matches!(
                finish_exchange(&path),
                Err(ExchangeError::Replacing)
            ));
            assert_eq!(fs::read(&other).unwrap(), OLD);
            drop(first);
            finish_exchange(&path).unwrap();
            assert_eq!(names(folder.path()), ["s.jsonl", "s.jsonl.before-repair"]);
        });
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
                            std::thread::sleep(CHECK_PAUSE);
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
