//! Decides where a name from outside may be written, and with which mode.
//!
//! Archives, pages and folders of other machines name files. What is restored, imported, exported, merged or copied is
//! written only as these functions allow: a name has the shape of a file that belongs to a session
//! ([`check_name`]), the way to it leads through no link ([`check_folders`]), the file can do no more than its owner
//! could ([`safe_mode`]), and only regular files are replaced ([`output_at`]).
//!
//! Captures use the same shapes, so that every captured file can be restored.

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::disk::ReadDisk;
use crate::file::FileKind;
use crate::session_layout::SessionLayout;

/// The name of the folder of projects, next to which there are others.
pub const PROJECTS: &str = "projects";
/// Files of a session in deeper folders are not looked at.
const MAX_DEPTH: usize = SessionLayout::MAX_DEPTH;

/// The reason why a name is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameRefusal {
    /// It leads out of its folder, is absolute, or has a part that is not a name.
    Unsafe,
    /// No file of a session has such a name.
    NoSession,
    /// A file of that name may hold credentials.
    Credentials,
    /// A folder on the way is a link, or no folder.
    Link(LinkOrFile),
    /// It is a link itself, a pipe or a device.
    Special,
}

/// The kind of a file that is in the place of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkOrFile {
    /// A symbolic link.
    Link,
    /// Something else that is not a folder.
    Other,
}

impl fmt::Display for NameRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsafe => "the name leads out of its folder, or is not a name on every system",
            Self::NoSession => "no file of a session has such a name",
            Self::Credentials => "a file of that name may hold credentials",
            Self::Special => "it is a link, a pipe or a device",
            Self::Link(LinkOrFile::Link) => "a folder on the way to it is a link",
            Self::Link(LinkOrFile::Other) => "what is on the way to it is not a folder",
        })
    }
}

impl std::error::Error for NameRefusal {}

/// Checks a name below the folder of the client, with `/` between its parts: it is that of a file of a session.
///
/// These are `projects/PROJECT/*.jsonl`, `projects/PROJECT/ID/**`, `tasks/ID/**`, `file-history/ID/**` and
/// `todos/ID*.json`, of which none may hold credentials.
///
/// # Errors
/// [`NameRefusal`], by the name alone.
///
/// ```
/// use transcript_storage::outside_names::check_name;
///
/// let id = "1999463e-ee08-4b08-99d5-2d9a36fd8293";
/// assert!(check_name(&format!("projects/-work/{id}.jsonl")).is_ok());
/// assert!(check_name(&format!("file-history/{id}/a1@v2")).is_ok());
/// assert!(check_name("settings.json").is_err());
/// assert!(check_name("projects/../settings.jsonl").is_err());
/// ```
pub fn check_name(name: &str) -> Result<(), NameRefusal> {
    let parts: Vec<&str> = name.split('/').collect();
    if !parts.iter().all(|part| is_plain(part)) {
        return Err(NameRefusal::Unsafe);
    }
    let has_shape = match &parts[..] {
        [PROJECTS, _, file] => has_end(file, ".jsonl"),
        [PROJECTS, _, id, below @ ..] => is_session_name(id) && below.len() <= MAX_DEPTH + 1,
        ["tasks" | "file-history", id, below @ ..] => {
            is_session_name(id) && !below.is_empty() && below.len() <= MAX_DEPTH + 1
        }
        ["todos", file] => file.get(..36).is_some_and(is_session_name) && has_end(file, ".json"),
        _ => false,
    };
    if !has_shape || parts.iter().any(|part| is_temporary(part)) {
        return Err(NameRefusal::NoSession);
    }
    if parts.iter().any(|part| may_hold_credentials(part)) {
        Err(NameRefusal::Credentials)
    } else {
        Ok(())
    }
}

fn has_end(name: &str, end: &str) -> bool {
    name.strip_suffix(end).is_some_and(|stem| !stem.is_empty())
}

/// Checks the path of a file below the folder of a session, from that folder on.
///
/// # Errors
/// [`NameRefusal`], by the name alone.
pub fn check_side_file(below: &Path) -> Result<(), NameRefusal> {
    let parts: Vec<_> = below.components().collect();
    let is_normal = |part: &Component<'_>| matches!(part, Component::Normal(_));
    let names = || parts.iter().map(|part| part.as_os_str().to_string_lossy());
    if parts.is_empty() || !parts.iter().all(is_normal) || !names().all(|name| is_plain(&name)) {
        return Err(NameRefusal::Unsafe);
    }
    if parts.len() > MAX_DEPTH + 1 || names().any(|name| is_temporary(&name)) {
        return Err(NameRefusal::NoSession);
    }
    if names().any(|name| may_hold_credentials(&name)) {
        Err(NameRefusal::Credentials)
    } else {
        Ok(())
    }
}

/// Returns whether a part of a path is a plain name, on every system.
#[must_use]
pub fn is_plain(part: &str) -> bool {
    let is_stream = cfg!(windows) && part.contains(':');
    !matches!(part, "" | "." | "..") && !part.contains(['/', '\\', '\0']) && !is_stream
}

/// Returns whether a name is that of a session, a UUID.
#[must_use]
pub fn is_session_name(name: &str) -> bool {
    name.len() == 36
        && name.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Returns whether a file may hold credentials, by its name.
#[must_use]
pub fn may_hold_credentials(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    const CREDENTIAL_NAMES: [&str; 9] = [
        ".credentials.json",
        "credentials.json",
        "auth.json",
        "oauth_creds.json",
        "agent.db",
        ".env",
        ".netrc",
        ".npmrc",
        ".pgpass",
    ];
    const CREDENTIAL_SUFFIXES: [&str; 6] =
        [".vscdb", ".pem", ".key", ".p12", ".pfx", ".keychain-db"];
    CREDENTIAL_NAMES.contains(&&*name)
        || CREDENTIAL_SUFFIXES.iter().any(|end| name.ends_with(end))
        || name.starts_with(".env.")
        || name.starts_with("id_rsa")
        || name.starts_with("id_ed25519")
        || name.starts_with("id_ecdsa")
}

/// Returns whether a file is one of ours that is not complete.
#[must_use]
pub fn is_temporary(name: &str) -> bool {
    [".transcript-", ".new-", ".pruned-"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Returns the mode that a file from outside may get: it sets no user, and only its owner may change it.
#[must_use]
pub fn safe_mode(mode: u32) -> u32 {
    mode & 0o777 & !0o022
}

/// Returns where a file of a session is written, by its name as [`check_name`] has it. Files that are not in a project go next
/// to `root`, the folder of projects; `None` if that is not named `projects`, because anything may be next to it then.
///
/// # Errors
/// [`NameRefusal`]; as an error of the system when a folder on the way cannot be looked at.
pub fn place_of(
    disk: &dyn ReadDisk,
    root: &Path,
    name: &str,
) -> io::Result<Result<Option<PathBuf>, NameRefusal>> {
    if let Err(refusal) = check_name(name) {
        return Ok(Err(refusal));
    }
    let in_project = name.strip_prefix(PROJECTS);
    let (base, below) = match in_project.and_then(|below| below.strip_prefix('/')) {
        Some(below) => (root, below),
        None => match root.parent().filter(|_| root.ends_with(PROJECTS)) {
            Some(above) => (above, name),
            None => return Ok(Ok(None)),
        },
    };
    let path = base.join(below);
    let checked = check_folders(disk, base, &path)?;
    Ok(checked.map(|()| Some(path)))
}

/// Checks that the folders between `base` and a path below it are folders, as far as they exist. `base` itself may be a
/// link: the caller named it.
///
/// # Errors
/// [`NameRefusal::Link`], and [`NameRefusal::Unsafe`] when the path is not below `base`; as an error of the system when a
/// folder cannot be looked at.
pub fn check_folders(
    disk: &dyn ReadDisk,
    base: &Path,
    path: &Path,
) -> io::Result<Result<(), NameRefusal>> {
    let Ok(below) = path.strip_prefix(base) else {
        return Ok(Err(NameRefusal::Unsafe));
    };
    let mut folder = base.to_owned();
    let folders = below.parent().into_iter().flat_map(Path::components);
    for part in folders {
        folder.push(part);
        let kind = match disk.link_metadata(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ok(())),
            found => found?.kind,
        };
        let in_place = match kind {
            FileKind::Folder => continue,
            FileKind::Link => LinkOrFile::Link,
            _ => LinkOrFile::Other,
        };
        return Ok(Err(NameRefusal::Link(in_place)));
    }
    Ok(Ok(()))
}

/// The kind of an output that a person named.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputKind {
    /// Nothing is there.
    New,
    /// A regular file: a new one may be renamed over it. The path has no link at its end.
    File(PathBuf),
    /// A pipe, a terminal or another stream, which is opened and written to: nothing is replaced.
    Stream,
}

/// Returns the kind of the file at the path of an output. A link to a regular file stays, and the file is the output.
///
/// # Errors
/// As [`InvalidInput`](io::ErrorKind::InvalidInput), with a sentence, when it is a folder, a disk, a socket or a link that leads
/// nowhere; when the system fails.
pub fn output_at(path: &Path) -> io::Result<OutputKind> {
    let refused = |what| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    let found = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(OutputKind::New),
        found => found?,
    };
    if found.is_file() {
        return Ok(OutputKind::File(path.to_owned()));
    }
    let target = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return refused("it is a link that leads nowhere; nothing was written");
        }
        target => target?,
    };
    if target.is_dir() {
        return refused("it is a folder; nothing was written");
    }
    if target.is_file() {
        // `/dev/stdout` leads to a file that is open already, and is to be written as it is.
        const OPEN: [&str; 5] = [
            "/dev/fd",
            "/dev/stdout",
            "/dev/stderr",
            "/dev/stdin",
            "/proc",
        ];
        let is_of_system = OPEN.iter().any(|of| path.starts_with(of));
        return if is_of_system {
            Ok(OutputKind::Stream)
        } else {
            Ok(OutputKind::File(std::fs::canonicalize(path)?))
        };
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = target.file_type();
        if kind.is_block_device() {
            return refused("it is a disk; nothing was written");
        }
        if kind.is_socket() {
            return refused("it is a socket; nothing was written");
        }
    }
    Ok(OutputKind::Stream)
}

/// Returns whether a path that exists is that of a file of a session in `root`, a folder of projects, whatever links lead
/// there: no output replaces it.
#[must_use]
pub fn is_session_in(root: &Path, path: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let (Some(root), Some(path)) = (real(root), real(path)) else {
        return false;
    };
    let below = path.strip_prefix(&root).ok();
    let parts = below.into_iter().flat_map(Path::components);
    let parts: Option<Vec<&str>> = parts.map(|part| part.as_os_str().to_str()).collect();
    match parts.as_deref() {
        Some([_, file]) => has_end(file, ".jsonl"),
        Some([_, id, _, ..]) => is_session_name(id),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryDisk;

    const ID: &str = "1999463e-ee08-4b08-99d5-2d9a36fd8293";

    #[test]
    fn only_the_shapes_that_are_captured_are_written() {
        let good = [
            format!("projects/-work/{ID}.jsonl"),
            "projects/-work/agent-a1.jsonl".to_owned(),
            format!("projects/-work/{ID}/subagents/agent-a1.jsonl"),
            format!("projects/-work/{ID}/tool-results/r.txt"),
            format!("tasks/{ID}/1.json"),
            format!("file-history/{ID}/0a1b@v1"),
            format!("todos/{ID}-agent-{ID}.json"),
        ];
        for name in &good {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        let bad = [
            "",
            "settings.json",
            "settings.local.json",
            "CLAUDE.md",
            "hooks/evil.sh",
            "commands/evil.md",
            "agents/x.md",
            "plugins/a/b",
            "projects",
            "projects/-p",
            "projects/-p/memory/MEMORY.md",
            "projects/-p/x.txt",
            "projects/-p/.jsonl",
            "tasks/x/1.json",
            "todos/x.json",
            "todos",
            "statsig/x",
            "history.jsonl",
        ];
        let bad = bad.map(str::to_owned).into_iter().chain([
            format!("commands/{ID}.md"),
            format!("tasks/{ID}"),
            format!("todos/{ID}/x.json"),
            format!("todos/{ID}.sh"),
            format!("projects/-p/{ID}/.transcript-aaaaaa"),
            format!("projects/-p/{ID}/{}", ["d"; MAX_DEPTH + 2].join("/")),
        ]);
        for name in bad.skip(1) {
            assert_eq!(check_name(&name), Err(NameRefusal::NoSession), "{name}");
        }
        for part in ["..", ".", "", "a\\b", "a\0b"] {
            for name in [
                format!("projects/{part}/{ID}.jsonl"),
                format!("projects/-p/{ID}/{part}/x"),
                format!("tasks/{ID}/{part}"),
                format!("{part}/projects/-p/{ID}.jsonl"),
            ] {
                assert_eq!(check_name(&name), Err(NameRefusal::Unsafe), "{name}");
            }
        }
        for name in [".credentials.json", "ID_RSA", "a.PEM", ".env.local"] {
            let name = format!("projects/-p/{ID}/{name}");
            assert_eq!(check_name(&name), Err(NameRefusal::Credentials), "{name}");
        }
    }

    #[test]
    fn files_next_to_the_projects_need_their_name() {
        let disk = MemoryDisk::new();
        let name = format!("tasks/{ID}/1.json");
        let place = |root| place_of(&disk, Path::new(root), &name).unwrap().unwrap();
        assert_eq!(
            place("/home/projects"),
            Some(PathBuf::from(format!("/home/{name}")))
        );
        assert_eq!(place("/home/back"), None);
    }

    #[test]
    fn a_mode_from_outside_sets_no_user_and_lets_no_other_user_write() {
        for (mode, safe) in [
            (0o4755, 0o755),
            (0o7777, 0o755),
            (0o600, 0o600),
            (0o666, 0o644),
        ] {
            assert_eq!(safe_mode(mode), safe);
        }
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_written_through_a_link() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("projects");
        let outside = folder.path().join("outside");
        for path in [&root.join("-p"), &outside] {
            std::fs::create_dir_all(path).unwrap();
        }
        symlink(&outside, root.join("-l")).unwrap();
        symlink(&outside, root.join("-p").join(ID)).unwrap();
        symlink(&outside, folder.path().join("tasks")).unwrap();
        std::fs::write(root.join("-f"), "").unwrap();
        let place = |name: String| place_of(&crate::real_disk::RealDisk, &root, &name).unwrap();
        for name in [
            format!("projects/-l/{ID}.jsonl"),
            format!("projects/-p/{ID}/tool-results/r.txt"),
            format!("tasks/{ID}/1.json"),
        ] {
            let link = NameRefusal::Link(LinkOrFile::Link);
            assert_eq!(place(name.clone()), Err(link), "{name}");
        }
        let other = NameRefusal::Link(LinkOrFile::Other);
        assert_eq!(place(format!("projects/-f/{ID}.jsonl")), Err(other));
        assert!(place(format!("projects/-p/{ID}.jsonl")).is_ok());
        // The root itself may be one.
        let root = folder.path().join("link");
        symlink(folder.path().join("projects"), &root).unwrap();
        let name = format!("projects/-p/{ID}.jsonl");
        assert!(
            place_of(&crate::real_disk::RealDisk, &root, &name)
                .unwrap()
                .is_ok()
        );
    }

    #[cfg(unix)]
    #[test]
    fn an_output_that_is_not_a_regular_file_is_not_replaced() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        symlink("file", at("link")).unwrap();
        symlink("/dev/null", at("null")).unwrap();
        symlink("nowhere", at("broken")).unwrap();
        std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        assert_eq!(output_at(&at("new")).unwrap(), OutputKind::New);
        assert_eq!(
            output_at(&at("file")).unwrap(),
            OutputKind::File(at("file"))
        );
        let real = std::fs::canonicalize(at("file")).unwrap();
        assert_eq!(output_at(&at("link")).unwrap(), OutputKind::File(real));
        // As `/dev/stdout` is with `> file`: what the shell opened is written to, and no other file gets its name.
        let open = std::fs::File::open(at("file")).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        let opened = PathBuf::from(format!("/proc/self/fd/{number}"));
        let streams = [at("null"), "/dev/null".into(), opened];
        let there = streams.into_iter().filter(|path| path.exists());
        for stream in there {
            assert_eq!(
                output_at(&stream).unwrap(),
                OutputKind::Stream,
                "{stream:?}"
            );
        }
        for refused in [at("broken"), at("socket"), folder.path().to_owned()] {
            let error = output_at(&refused).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{refused:?}");
        }
    }

    #[test]
    fn the_sessions_of_a_store_are_known_whatever_leads_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("projects");
        let own = root.join("-p").join(ID);
        std::fs::create_dir_all(&own).unwrap();
        for path in [
            root.join("-p/notes.md"),
            own.join("r.txt"),
            own.with_extension("jsonl"),
        ] {
            std::fs::write(path, "").unwrap();
        }
        assert!(is_session_in(&root, &own.with_extension("jsonl")));
        assert!(is_session_in(&root, &own.join("r.txt")));
        let dotted = root.join("-p/../-p").join(format!("{ID}.jsonl"));
        assert!(is_session_in(&root, &dotted));
        assert!(!is_session_in(&root, &root.join("-p/notes.md")));
        assert!(!is_session_in(&root, &root.join("-p/missing.jsonl")));
    }
}
