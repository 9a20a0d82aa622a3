//! Unix: `O_APPEND`, `flock`, leases on Linux.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::fault;
use crate::file::{Status, folder_of};

/// Renames a file, if nothing has the new name. Not every file system knows the flag for that (NFS, FUSE): there the file has
/// both names for a moment, and a kill can leave both.
///
/// # Errors
/// As [`AlreadyExists`](io::ErrorKind::AlreadyExists) when something has the new name; when the system fails. The file has
/// the old name then, unless the call failed after it did its work: then it has the new one. If the old name cannot be
/// removed, the new one is; if that fails, too, the file has both.
pub(crate) fn rename_without_replacing(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if !fault::knows_no_flag() {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        let rename = || Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?);
        match fault::call(rename) {
            Err(error) if is_unknown_flag(&error) => {}
            renamed => return renamed,
        }
    }
    fault::call(|| fs::hard_link(from, to))?;
    fault::call(|| fs::remove_file(from)).inspect_err(|_| {
        // Only while it is one of two names.
        if fs::symlink_metadata(from).is_ok() {
            let _ = fault::call(|| fs::remove_file(to));
        }
    })
}

/// Returns whether a file system does not know a flag of `renameat2`: `EINVAL`, `ENOSYS`, `ENOTSUP`.
#[cfg(target_os = "linux")]
pub(crate) fn is_unknown_flag(error: &io::Error) -> bool {
    let number = error.raw_os_error();
    matches!(number, Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP))
}

#[derive(Clone, Copy)]
pub(crate) enum Access {
    Read,
    Append,
}

fn options() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    // Without O_NONBLOCK, a pipe in place of the file would block the caller.
    options.custom_flags(libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options
}

/// Opens an existing file, if it is a regular file that has one name and belongs to the caller.
/// Also returns whether other users may write to it.
pub(crate) fn open_at(path: &Path, access: Access) -> io::Result<(fs::File, bool)> {
    let refused = |reason: String| io::Error::new(io::ErrorKind::InvalidInput, reason);
    let special = "it is a pipe, a socket or a device";
    let mut options = options();
    options.read(true);
    if matches!(access, Access::Append) {
        options.append(true);
    }
    let file = options
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => {
                refused("it is a symbolic link; name the file that it leads to".to_owned())
            }
            Some(libc::EISDIR) => refused("it is a folder".to_owned()),
            Some(libc::ENXIO | libc::EOPNOTSUPP) => refused(special.to_owned()),
            _ => error,
        })?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(refused("it is a folder".to_owned()));
    }
    if !metadata.is_file() {
        return Err(refused(special.to_owned()));
    }
    if metadata.nlink() == 0 {
        // It was deleted while it was opened.
        return Err(io::ErrorKind::NotFound.into());
    }
    let names = match metadata.nlink() {
        1 => 1,
        names => names_now(&file).unwrap_or(names),
    };
    if names > 1 {
        return Err(refused(format!(
            "the file has {names} hard links; copy it and append to the copy"
        )));
    }
    if metadata.uid() != user() {
        let owner = metadata.uid();
        return Err(refused(format!(
            "it belongs to another user (uid {owner}); append as that user, or to a copy"
        )));
    }
    Ok((file, metadata.mode() & 0o022 != 0))
}

/// Asks the file system itself how many names a file has: those in user space are asked once a second otherwise, and a name that
/// was removed just now would still be counted.
#[cfg(target_os = "linux")]
fn names_now(file: &fs::File) -> Option<u64> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    let found = statx(file, c"", flags, StatxFlags::NLINK).ok()?;
    Some(found.stx_nlink.into())
}

#[cfg(not(target_os = "linux"))]
fn names_now(_file: &fs::File) -> Option<u64> {
    None
}

/// Creates a file, for its owner only (FILE-14); `None` when another process created it right
/// before.
pub(crate) fn create_at(path: &Path) -> io::Result<Option<fs::File>> {
    make_folders(path)?;
    refuse_public_folder(path)?;
    let made = options()
        .read(true)
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match made {
        Ok(file) => {
            set_mode(&file, 0o600)?;
            file.sync_all()?;
            sync_folder(path)?;
            Ok(Some(file))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}

/// Refuses to create a file where another user could replace it: in a folder that everybody may
/// write to, unless the folder is the caller's own or is like `/tmp` (owned by root, sticky).
pub(crate) fn refuse_public_folder(path: &Path) -> io::Result<()> {
    let folder = fs::metadata(folder_of(path))?;
    let is_public = folder.mode() & 0o002 != 0;
    let is_kept_by_root = folder.uid() == 0 && folder.mode() & 0o1000 != 0;
    if is_public && folder.uid() != user() && !is_kept_by_root {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "everybody may write to its folder, which belongs to another user (uid {}); use a \
                 folder of your own",
                folder.uid()
            ),
        ));
    }
    Ok(())
}

/// Sets the mode if it differs: a umask may have removed permissions of the owner, too.
pub(crate) fn set_mode(file: &fs::File, mode: u32) -> io::Result<()> {
    if file.metadata()?.mode() & 0o777 == mode {
        return Ok(());
    }
    file.set_permissions(fs::Permissions::from_mode(mode))
}

/// Creates the missing folders of `path`, and makes their names survive a power cut.
pub(crate) fn make_folders(path: &Path) -> io::Result<()> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let above = path.ancestors().skip(1);
    let missing: Vec<&Path> = above.take_while(is_missing).collect();
    for folder in missing.into_iter().rev() {
        match fs::DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(()) => fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?,
        }
        sync_folder(folder)?;
    }
    Ok(())
}

/// Makes the name `path` survive a power cut.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    fault::call(|| fs::File::open(folder_of(path))?.sync_all())
}

/// Makes a write beyond the limit on the size of files (`ulimit -f`) fail like a full disk.
/// Otherwise the signal `SIGXFSZ` ends the process in the middle of the write.
///
/// This changes the signal for the whole process, so the program has to call it, once, when it
/// starts; the writer never does. A signal handler of the program works as well.
pub fn ignore_file_size_signal() {
    #[expect(unsafe_code, reason = "not in the standard library")]
    // SAFETY: the signal is a valid one that may be ignored, and no handler of ours is installed.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Queries only the length and the number of names: after a query for the times of a file, the
/// kernel has to update them with the next write, which costs as much as the query itself.
#[cfg(target_os = "linux")]
pub(crate) fn status(file: &fs::File) -> io::Result<Status> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let fields = StatxFlags::NLINK | StatxFlags::SIZE;
    let answer = statx(file, c"", AtFlags::EMPTY_PATH, fields)?;
    Ok(Status {
        len: answer.stx_size,
        is_linked: answer.stx_nlink > 0,
    })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn status(file: &fs::File) -> io::Result<Status> {
    let metadata = file.metadata()?;
    Ok(Status {
        len: metadata.len(),
        is_linked: metadata.nlink() > 0,
    })
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns whether any process has the file open for writing: the kernel refuses a read lease then.
#[cfg(target_os = "linux")]
pub(crate) fn has_writer(file: &fs::File) -> Option<bool> {
    let is_taken = Lease::take(file).map(|lease| lease.is_some());
    is_taken.map(|is_taken| !is_taken)
}

/// A read lease: the kernel gives it only while no process has the file open for writing.
///
/// A process that opens the file for writing while we hold the lease blocks until we release it,
/// or, with O_NONBLOCK as we use it, fails with `EWOULDBLOCK`; and the kernel notifies us by a
/// signal. The default signal is `SIGIO`, which ends a process without a handler for it. `SIGURG`
/// is ignored unless the program has a handler, and such programs must expect it at any time.
#[cfg(target_os = "linux")]
pub(crate) struct Lease<'f>(&'f fs::File);

#[cfg(target_os = "linux")]
impl<'f> Lease<'f> {
    /// Takes the lease. `Some(None)` when a process has the file open for writing, `None` when the
    /// system does not say.
    pub(crate) fn take(file: &'f fs::File) -> Option<Option<Self>> {
        // Not in libc for all architectures, but the same on all that Rust supports.
        const F_SETSIG: libc::c_int = 10;
        if control(file, F_SETSIG, libc::SIGURG) != 0 {
            return None;
        }
        if control(file, libc::F_SETLEASE, libc::F_RDLCK) == 0 {
            return Some(Some(Self(file)));
        }
        let is_open = io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN);
        is_open.then_some(None)
    }
}

#[cfg(target_os = "linux")]
impl Drop for Lease<'_> {
    fn drop(&mut self) {
        control(self.0, libc::F_SETLEASE, libc::F_UNLCK);
    }
}

#[cfg(target_os = "linux")]
fn control(file: &fs::File, command: libc::c_int, value: libc::c_int) -> libc::c_int {
    #[expect(unsafe_code, reason = "not in the standard library")]
    // SAFETY: the descriptor is open as long as `file` is borrowed; the calls take no pointer.
    unsafe {
        libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(file), command, value)
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn has_writer(_file: &fs::File) -> Option<bool> {
    None
}

/// Returns whether the system reports every change in a folder to its watchers: on local file systems of Linux, where
/// every change is made through this system. Elsewhere it is not known.
#[must_use]
pub fn reports_changes(folder: &Path) -> bool {
    let is_local = |folder: fs::File| !is_remote(&folder);
    cfg!(target_os = "linux") && fs::File::open(folder).is_ok_and(is_local)
}

/// Returns whether the file is on a network or user-space file system, by its magic number.
#[cfg(target_os = "linux")]
#[cfg_attr(
    target_pointer_width = "64",
    expect(
        clippy::unnecessary_cast,
        reason = "the width of the field differs between systems"
    )
)]
pub(crate) fn is_remote(file: &fs::File) -> bool {
    let status = rustix::fs::fstatfs(file);
    status.is_ok_and(|status| is_remote_kind(status.f_type as i64))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_remote(_file: &fs::File) -> bool {
    false
}

/// NFS, SMB, CIFS, SMB2, FUSE, 9p, Ceph, AFS, Coda, NCP, Lustre.
#[cfg(target_os = "linux")]
fn is_remote_kind(kind: i64) -> bool {
    const REMOTE_FILE_SYSTEMS: [i64; 11] = [
        0x6969,
        0x517B,
        0xFF53_4D42,
        0xFE53_4D42,
        0x6573_5546,
        0x0102_1997,
        0x00C3_6400,
        0x5346_414F,
        0x7375_7245,
        0x564C,
        0x0BD0_0BD0,
    ];
    REMOTE_FILE_SYSTEMS.contains(&(kind & 0xFFFF_FFFF))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn network_and_user_space_file_systems_are_told_from_local_ones() {
        for remote in [0x6969, 0xFF53_4D42, 0x6573_5546] {
            assert!(is_remote_kind(remote), "{remote:x}");
        }
        // ext4, tmpfs, btrfs, xfs, overlay.
        for local in [0xEF53, 0x0102_1994, 0x9123_683E, 0x5846_5342, 0x794C_7630] {
            assert!(!is_remote_kind(local), "{local:x}");
        }
        // Some kernels sign-extend the number.
        assert!(is_remote_kind(i64::from(0xFF53_4D42_u32.cast_signed())));
    }
}
