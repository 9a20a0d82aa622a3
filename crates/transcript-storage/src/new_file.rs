//! Files that appear complete or not at all.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::fault;
use crate::file::{ReadFile, folder_of};

/// A new file of a disk that is not that of this machine, before it has a name: what such a disk implements for [`NewFile`].
/// When it is dropped, nothing is left of it.
pub trait UnnamedFile: std::fmt::Debug + Send {
    /// Appends bytes; returns how many were written, which may be fewer.
    ///
    /// # Errors
    /// When the disk fails.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// As [`NewFile::set_properties`].
    ///
    /// # Errors
    /// When the disk fails.
    fn set_properties(&self, modified: Option<SystemTime>, mode: Option<u32>) -> io::Result<()>;

    /// As [`NewFile::reader`].
    ///
    /// # Errors
    /// When the disk fails.
    fn reader(&self) -> io::Result<Arc<dyn ReadFile>>;

    /// As [`NewFile::keep`].
    ///
    /// # Errors
    /// The same.
    fn keep(self: Box<Self>, path: &Path) -> io::Result<()>;

    /// As [`NewFile::replace`].
    ///
    /// # Errors
    /// The same.
    fn replace(self: Box<Self>, path: &Path) -> io::Result<()>;
}

/// A new file that only its owner can access, and that is invisible until it is [kept](Self::keep).
/// When it is dropped, or the process is killed, nothing is left of it.
///
/// On a file system without unnamed files it has a name that starts with `.transcript-` in the same
/// folder until then. A kill leaves that file behind; [`remove_stale`](Self::remove_stale) removes
/// it.
#[derive(Debug)]
pub struct NewFile(NewFileKind);

#[derive(Debug)]
enum NewFileKind {
    #[cfg(target_os = "linux")]
    Unnamed(File),
    Named(tempfile::NamedTempFile),
    OfDisk(Box<dyn UnnamedFile>),
}

/// The prefixes of temporary names; the second is that of older versions.
const TEMPORARY_PREFIXES: [&str; 2] = [".transcript-", ".fork-"];

/// The number of random characters after the prefix.
const RANDOM_CHARS: usize = 6;

/// The age from which an unlocked temporary file counts as left by a killed process.
const MIN_STALE_AGE: Duration = Duration::from_secs(60);

/// Runs of NULs of this size become holes in the file.
const HOLE_LEN: usize = 64 << 10;

impl NewFile {
    /// Creates a file in the folder of `path`, the name that it will get.
    ///
    /// # Errors
    /// When the system fails; when everybody may write to the folder and it is not the caller's.
    pub fn beside(path: &Path) -> io::Result<Self> {
        #[cfg(unix)]
        crate::sys::refuse_public_folder(path)?;
        Self::output_beside(path)
    }

    /// As [`beside`](Self::beside), for a file that is not a session: in any folder.
    ///
    /// # Errors
    /// When the system fails.
    pub fn output_beside(path: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(file) = unnamed(folder_of(path)) {
            crate::sys::set_mode(&file, 0o600)?;
            return Ok(Self(NewFileKind::Unnamed(file)));
        }
        Self::named(folder_of(path))
    }

    fn named(folder: &Path) -> io::Result<Self> {
        let file = temporary_names().tempfile_in(folder)?;
        #[cfg(unix)]
        crate::sys::set_mode(file.as_file(), 0o600)?;
        // The lock marks the file as in use; without it only its age distinguishes it from a stale
        // file.
        let _ = file.as_file().try_lock();
        Ok(Self(NewFileKind::Named(file)))
    }

    /// A new file of another disk than that of this machine.
    #[must_use]
    pub fn of_disk(file: Box<dyn UnnamedFile>) -> Self {
        Self(NewFileKind::OfDisk(file))
    }

    /// Returns the file of this machine, or the file object of another disk.
    fn file(&self) -> Result<&File, &dyn UnnamedFile> {
        match &self.0 {
            #[cfg(target_os = "linux")]
            NewFileKind::Unnamed(file) => Ok(file),
            NewFileKind::Named(file) => Ok(file.as_file()),
            NewFileKind::OfDisk(file) => Err(&**file),
        }
    }

    /// Writes `bytes`, with holes in place of long runs of NULs: holes read as NULs and take no
    /// space.
    ///
    /// # Errors
    /// When the system fails.
    pub fn write_sparse(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut file = match self.file() {
            Ok(file) => file,
            Err(_) => return self.write_all(bytes),
        };
        for block in bytes.chunks(HOLE_LEN) {
            if block.len() == HOLE_LEN && block.iter().all(|byte| *byte == 0) {
                file.seek(SeekFrom::Current(HOLE_LEN as i64))?;
            } else {
                file.write_all(block)?;
            }
        }
        let end = file.stream_position()?;
        file.set_len(end)
    }

    /// Gives the file the time, and the mode, that it is to have when it is [kept](Self::keep).
    ///
    /// # Errors
    /// When the system fails.
    pub fn set_properties(
        &self,
        modified: Option<SystemTime>,
        mode: Option<u32>,
    ) -> io::Result<()> {
        let file = match self.file() {
            Ok(file) => file,
            Err(file) => return file.set_properties(modified, mode),
        };
        if let Some(modified) = modified {
            fault::call(|| crate::sys::set_modified_of(file, modified))?;
        }
        #[cfg(unix)]
        if let Some(mode) = mode {
            fault::call(|| crate::sys::set_mode(file, mode))?;
        }
        #[cfg(not(unix))]
        let _ = mode;
        Ok(())
    }

    /// Returns another handle of the file, to read the written bytes.
    ///
    /// # Errors
    /// When the system fails.
    pub fn reader(&self) -> io::Result<Arc<dyn ReadFile>> {
        match self.file() {
            Ok(file) => Ok(Arc::new(file.try_clone()?)),
            Err(file) => file.reader(),
        }
    }

    /// Returns another handle of a file of this machine, for writing.
    ///
    /// # Errors
    /// When the system fails; as [`Unsupported`](io::ErrorKind::Unsupported) for a file of another disk.
    pub fn try_clone(&self) -> io::Result<impl Write + 'static> {
        match self.file() {
            Ok(file) => file.try_clone(),
            Err(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Gives the file its name, which must be in the folder that it was created in, and makes both
    /// survive a power cut.
    ///
    /// # Errors
    /// As [`AlreadyExists`](io::ErrorKind::AlreadyExists) when such a file exists; when the system
    /// fails. Nothing is left of the file then; if it cannot be removed, the error says so.
    pub fn keep(self, path: &Path) -> io::Result<()> {
        if let Ok(file) = self.file() {
            fault::call(|| file.sync_all())?;
        }
        let (file, named) = match self.0 {
            #[cfg(target_os = "linux")]
            NewFileKind::Unnamed(file) => {
                let named = fault::call(|| link(&file, path));
                (file, named)
            }
            #[cfg(unix)]
            NewFileKind::Named(file) => {
                let (file, temporary) = file.into_parts();
                match crate::sys::rename_without_replacing(&temporary, path) {
                    Ok(()) => (file, forget(temporary)),
                    Err(error) => (file, Err(remove_temporary(temporary, error))),
                }
            }
            #[cfg(not(unix))]
            NewFileKind::Named(file) => (file.persist_noclobber(path)?, Ok(())),
            NewFileKind::OfDisk(file) => return file.keep(path),
        };
        let kept = named.and_then(|()| sync_name(&file, path));
        kept.map_err(|error| remove_named(&file, path, error))
    }

    /// Gives the file its name, which may be that of another file: that one is gone then. Makes it survive a power cut.
    ///
    /// # Errors
    /// When the system fails. Nothing is left of the file then, and the other one is unchanged, unless the error says that it is
    /// replaced; if the file cannot be removed, the error says so.
    pub fn replace(self, path: &Path) -> io::Result<()> {
        if let Ok(file) = self.file() {
            fault::call(|| file.sync_all())?;
        }
        let (file, temporary) = match self.0 {
            #[cfg(target_os = "linux")]
            NewFileKind::Unnamed(file) => {
                // Once it has a name, no other call may fail before somebody owns the name.
                let linked = |name: &Path| {
                    let linked = fault::call(|| link(&file, name));
                    linked.map_err(|error| remove_named(&file, name, error))
                };
                let made = temporary_names().make_in(folder_of(path), linked)?;
                (file, made.into_temp_path())
            }
            NewFileKind::Named(file) => file.into_parts(),
            NewFileKind::OfDisk(file) => return file.replace(path),
        };
        if let Err(error) = fault::call(|| fs::rename(&temporary, path)) {
            return Err(remove_temporary(temporary, error));
        }
        forget(temporary)?;
        sync_name(&file, path).map_err(|error| {
            let what = format!("{error}; it is replaced, but may not survive a power cut");
            io::Error::new(error.kind(), what)
        })
    }

    /// Removes the temporary files of killed processes from `folder`. Those of running processes
    /// stay.
    pub fn remove_stale(folder: &Path) {
        let Ok(entries) = fs::read_dir(folder) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name.to_str().is_some_and(is_ours) && is_stale(&entry.path()) {
                // Another process may have removed it.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            #[cfg(target_os = "linux")]
            NewFileKind::Unnamed(file) => file.write(bytes),
            NewFileKind::Named(file) => file.as_file_mut().write(bytes),
            NewFileKind::OfDisk(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Creates a file without a name, if the system can name it later.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    if !Path::new("/proc/self/fd").exists() {
        return None;
    }
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options.custom_flags(libc::O_TMPFILE | libc::O_CLOEXEC);
    // Whatever fails here, a file with a name may work, or fails with a more useful error.
    options.open(folder).ok()
}

#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{AtFlags, CWD, linkat};
    let handle = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, handle, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

fn temporary_names() -> tempfile::Builder<'static, 'static> {
    let mut names = tempfile::Builder::new();
    names.prefix(TEMPORARY_PREFIXES[0]).rand_bytes(RANDOM_CHARS);
    names
}

/// Leaves a temporary name alone: its file has another one now.
fn forget(temporary: tempfile::TempPath) -> io::Result<()> {
    temporary
        .keep()
        .map(drop)
        .map_err(|error| io::Error::other(error.to_string()))
}

/// Removes a file with a temporary name after an error.
fn remove_temporary(temporary: tempfile::TempPath, error: io::Error) -> io::Error {
    let path = temporary.to_path_buf();
    let removed = fault::call(|| temporary.close());
    if removed.is_err() && fs::symlink_metadata(&path).is_ok() {
        not_removed(&path, &error)
    } else {
        error
    }
}

/// Returns an error that also names the file that is left.
fn not_removed(path: &Path, error: &io::Error) -> io::Error {
    let what = format!("{error}; {} cannot be removed, either", path.display());
    io::Error::new(error.kind(), what)
}

/// Removes a file after an error: the caller never learned of it. Only if it has the name: a call may fail after it did its
/// work, and another file may have the name.
fn remove_named(file: &File, path: &Path, error: io::Error) -> io::Error {
    let own = ReadFile::metadata(file).map(|found| found.identity).ok();
    let named = fs::symlink_metadata(path);
    let is_it = named.is_ok_and(|named| own == Some(crate::sys::metadata(&named).identity));
    if is_it && fault::call(|| fs::remove_file(path)).is_err() && fs::symlink_metadata(path).is_ok()
    {
        return not_removed(path, &error);
    }
    error
}

#[cfg(unix)]
fn sync_name(file: &File, path: &Path) -> io::Result<()> {
    // The number of names of the file is part of its metadata, so it has to be synced too.
    fault::call(|| file.sync_all())?;
    crate::sys::sync_folder(path)
}

/// Folders cannot be synced here; the file system makes names durable itself.
#[cfg(not(unix))]
fn sync_name(file: &File, _path: &Path) -> io::Result<()> {
    file.sync_all()
}

fn is_ours(name: &str) -> bool {
    let mut rests = TEMPORARY_PREFIXES
        .iter()
        .filter_map(|prefix| name.strip_prefix(prefix));
    rests.any(|rest| {
        rest.len() == RANDOM_CHARS && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

fn is_stale(path: &Path) -> bool {
    let is_old = |at: SystemTime| at.elapsed().is_ok_and(|age| age > MIN_STALE_AGE);
    let is_file = fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_file() && found.modified().is_ok_and(is_old));
    is_file && File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Both kinds, so that each is tested on every system.
    const KINDS: [fn(&Path) -> NewFile; 2] = [
        |path| NewFile::beside(path).unwrap(),
        |path| NewFile::named(folder_of(path)).unwrap(),
    ];

    #[test]
    fn a_file_gets_its_name_when_it_is_kept_and_never_takes_that_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        for new in KINDS {
            let mut file = new(&path);
            file.write_all(b"whole").unwrap();
            assert!(!path.exists());
            file.keep(&path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"whole");
            for other in KINDS {
                let mut other = other(&path);
                other.write_all(b"other").unwrap();
                let error = other.keep(&path).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            }
            assert_eq!(fs::read(&path).unwrap(), b"whole");
            assert_eq!(names(folder.path()), ["a.jsonl"]);
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_file_is_replaced_or_not_and_nothing_is_left_whatever_fails() {
        for new in KINDS {
            for is_done in [false, true] {
                let (mut after, mut errors) = (0, 0);
                loop {
                    let folder = tempfile::tempdir().unwrap();
                    let path = folder.path().join("page.html");
                    fs::write(&path, b"old").unwrap();
                    let mut file = new(&path);
                    file.write_all(b"new").unwrap();
                    let fault = fault::Fault {
                        after,
                        is_done,
                        calls: 1,
                    };
                    let mut replaced = None;
                    let is_reached = fault.run(|| replaced = Some(file.replace(&path)));
                    let found = fs::read(&path).unwrap();
                    let what = format!("call {after}, done {is_done}: {replaced:?}");
                    match replaced.unwrap() {
                        Ok(()) => assert_eq!(found, b"new", "{what}"),
                        Err(_) => {
                            errors += 1;
                            assert!(found == b"old" || found == b"new", "{what}");
                        }
                    }
                    assert_eq!(names(folder.path()), ["page.html"], "{what}");
                    if !is_reached {
                        break;
                    }
                    after += 1;
                }
                assert!(errors > 2, "{errors} of {after}");
            }
        }
    }

    #[test]
    fn a_file_has_its_time_and_mode_when_it_gets_its_name() {
        for new in KINDS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.jsonl");
            let mut file = new(&path);
            file.write_all(b"whole").unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
            file.set_properties(Some(time), Some(0o400)).unwrap();
            file.keep(&path).unwrap();
            let found = fs::metadata(&path).unwrap();
            assert_eq!(found.modified().unwrap(), time);
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                assert_eq!(found.permissions().mode() & 0o777, 0o400);
            }
        }
    }

    #[test]
    fn dropped_new_file_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for new in KINDS {
            new(&folder.path().join("a.jsonl"))
                .write_all(b"part")
                .unwrap();
        }
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn long_runs_of_nuls_stay_holes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for (before, nuls, behind) in [
            (0, 10 * HOLE_LEN, 0),
            (5, 3 * HOLE_LEN + 7, 9),
            (HOLE_LEN, HOLE_LEN, 1),
        ] {
            let bytes = [vec![b'a'; before], vec![0; nuls], vec![b'z'; behind]].concat();
            let mut file = NewFile::beside(&path).unwrap();
            file.write_sparse(&bytes).unwrap();
            file.keep(&path).unwrap();
            assert!(fs::read(&path).unwrap() == bytes);
            #[cfg(unix)]
            {
                use std::os::unix::fs::MetadataExt;
                let taken = fs::metadata(&path).unwrap().blocks() * 512;
                assert!(
                    taken <= (before + behind + 2 * HOLE_LEN) as u64,
                    "{taken} bytes"
                );
            }
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn only_what_killed_processes_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let old = SystemTime::now() - 2 * MIN_STALE_AGE;
        for name in [
            ".transcript-a1B2c3",
            ".fork-Zz90aa",
            ".fork-notes",
            ".transcript-abc-12",
            "s.jsonl",
        ] {
            File::create(path(name)).unwrap().set_modified(old).unwrap();
        }
        File::create(path(".fork-young1")).unwrap();
        let used = NewFile::named(folder.path()).unwrap();
        used.set_properties(Some(old), None).unwrap();
        NewFile::remove_stale(folder.path());
        let mut left = names(folder.path());
        left.retain(|name| name.as_str() != used_name(&used));
        assert_eq!(
            left,
            [
                ".fork-notes",
                ".fork-young1",
                ".transcript-abc-12",
                "s.jsonl"
            ]
        );
        assert!(path(&used_name(&used)).exists());
    }

    fn used_name(file: &NewFile) -> String {
        match &file.0 {
            NewFileKind::Named(file) => file
                .path()
                .file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned(),
            #[cfg(target_os = "linux")]
            NewFileKind::Unnamed(_) => String::new(),
            NewFileKind::OfDisk(_) => String::new(),
        }
    }
}
