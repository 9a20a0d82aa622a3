//! Unix: `O_APPEND`, `flock`, leases on Linux.

use std::fs;
use std::io::{self, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use crate::file::{Disk, File, Identity, Opened, Status};

/// The file system of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, create: bool) -> io::Result<Opened> {
        // Asked before our own handle for writing exists, as that would count too.
        let (is_new, has_other_writer) = match open_at(path, Access::Read) {
            Ok(file) => (false, has_writer(&file)),
            Err(error) if create && error.kind() == io::ErrorKind::NotFound => (true, Some(true)),
            Err(error) => return Err(error),
        };
        let (file, is_new) = if is_new {
            create_at(path)?
        } else {
            (open_at(path, Access::Append)?, false)
        };
        // Whoever made it in between has it open.
        let has_other_writer = if is_new {
            Some(false)
        } else {
            has_other_writer
        };
        let is_remote = is_remote(&file);
        Ok(Opened {
            file: Arc::new(RealFile(file)),
            is_new,
            has_other_writer,
            is_remote,
        })
    }

    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        match fs::symlink_metadata(path) {
            Ok(metadata) => Ok(Some(identity(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn sync_name(&self, path: &Path) -> io::Result<()> {
        sync_folder(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)?;
        sync_folder(to)
    }

    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        make_folders(path)?;
        let mut file = options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        set_mode(&file, 0o600)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        sync_folder(path)
    }
}

#[derive(Clone, Copy)]
enum Access {
    Read,
    Append,
}

fn options() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    // A pipe in place of the file must not make the caller wait.
    options.custom_flags(libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options
}

/// Opens what is there, if it is a regular file of the caller with one name.
fn open_at(path: &Path, access: Access) -> io::Result<fs::File> {
    let mut options = options();
    options.read(true);
    if matches!(access, Access::Append) {
        options.append(true);
    }
    let file = options.open(path).map_err(|error| {
        // A symbolic link under O_NOFOLLOW, a folder, a pipe without a reader, a socket.
        match error.raw_os_error() {
            Some(libc::ELOOP | libc::EISDIR | libc::ENXIO | libc::EOPNOTSUPP) => {
                io::Error::new(io::ErrorKind::InvalidInput, error)
            }
            _ => error,
        }
    })?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.nlink() != 1 || metadata.uid() != user() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(file)
}

/// Makes a file, unless somebody else did so right before.
fn create_at(path: &Path) -> io::Result<(fs::File, bool)> {
    make_folders(path)?;
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
            Ok((file, true))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok((open_at(path, Access::Append)?, false))
        }
        Err(error) => Err(error),
    }
}

/// A umask may have taken away from the owner, too.
fn set_mode(file: &fs::File, mode: u32) -> io::Result<()> {
    if file.metadata()?.mode() & 0o777 == mode {
        return Ok(());
    }
    file.set_permissions(fs::Permissions::from_mode(mode))
}

/// Makes the folders above `path` that are not there, and makes their names survive.
fn make_folders(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path
        .ancestors()
        .skip(1)
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .collect();
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
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::File::open(folder)?.sync_all()
}

fn identity(metadata: &fs::Metadata) -> Identity {
    Identity {
        device: metadata.dev(),
        file: metadata.ino(),
    }
}

/// Asks for nothing but length and names: a kernel that is asked for the times of a file has to
/// write them anew with the next write, which costs as much again as the question.
#[cfg(target_os = "linux")]
fn status(file: &fs::File) -> io::Result<Status> {
    let mut answer = std::mem::MaybeUninit::<libc::statx>::zeroed();
    #[expect(unsafe_code, reason = "not in the standard library")]
    // SAFETY: the descriptor is open as long as `file` is borrowed, the path is a C string that
    // lives for ever, and the pointer leads to room for one `statx`, for which zeros are a value.
    let answer = unsafe {
        let result = libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_NLINK | libc::STATX_SIZE,
            answer.as_mut_ptr(),
        );
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        answer.assume_init()
    };
    Ok(Status {
        len: answer.stx_size,
        is_linked: answer.stx_nlink > 0,
    })
}

#[cfg(not(target_os = "linux"))]
fn status(file: &fs::File) -> io::Result<Status> {
    let metadata = file.metadata()?;
    Ok(Status {
        len: metadata.len(),
        is_linked: metadata.nlink() > 0,
    })
}

fn user() -> u32 {
    #[expect(unsafe_code, reason = "not in the standard library")]
    // SAFETY: takes nothing, touches no memory of ours and cannot fail.
    unsafe {
        libc::geteuid()
    }
}

/// Whether anybody has the file open for writing. A lease for reading is refused then.
#[cfg(target_os = "linux")]
fn has_writer(file: &fs::File) -> Option<bool> {
    let lease = |kind: libc::c_int| {
        #[expect(unsafe_code, reason = "not in the standard library")]
        // SAFETY: the descriptor is open as long as `file` is borrowed; the call takes no pointer.
        unsafe {
            libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind)
        }
    };
    if lease(libc::F_RDLCK) == 0 {
        lease(libc::F_UNLCK);
        return Some(false);
    }
    let is_open = io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN);
    is_open.then_some(true)
}

#[cfg(not(target_os = "linux"))]
fn has_writer(_file: &fs::File) -> Option<bool> {
    None
}

/// Whether the file is on a network or in user space, by the magic number of the file system.
#[cfg(target_os = "linux")]
fn is_remote(file: &fs::File) -> bool {
    let mut status = std::mem::MaybeUninit::<libc::statfs>::uninit();
    #[expect(unsafe_code, reason = "not in the standard library")]
    // SAFETY: the descriptor is open as long as `file` is borrowed, and the pointer leads to room
    // for one `statfs`, which the call fills when it returns 0.
    let kind = unsafe {
        if libc::fstatfs(file.as_raw_fd(), status.as_mut_ptr()) != 0 {
            return false;
        }
        status.assume_init().f_type
    };
    // The width differs between systems.
    is_remote_kind(kind as i64)
}

#[cfg(not(target_os = "linux"))]
fn is_remote(_file: &fs::File) -> bool {
    false
}

/// NFS, SMB, CIFS, SMB2, FUSE, 9p, Ceph, AFS, Coda, NCP, Lustre.
#[cfg(target_os = "linux")]
fn is_remote_kind(kind: i64) -> bool {
    const REMOTE: [i64; 11] = [
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
    REMOTE.contains(&(kind & 0xFFFF_FFFF))
}

#[derive(Debug)]
struct RealFile(fs::File);

impl File for RealFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn position(&self) -> io::Result<u64> {
        // With O_APPEND each write moves the position of the handle to its own end.
        (&self.0).stream_position()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn status(&self) -> io::Result<Status> {
        status(&self.0)
    }

    fn identity(&self) -> io::Result<Identity> {
        Ok(identity(&self.0.metadata()?))
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.0.try_lock() {
            Ok(()) => Ok(true),
            Err(fs::TryLockError::WouldBlock) => Ok(false),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }
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
        // Some kernels give the number with its sign.
        assert!(is_remote_kind(i64::from(0xFF53_4D42_u32.cast_signed())));
    }
}
