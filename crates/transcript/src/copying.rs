//! Copies of files that appear complete or not at all.

use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use memchr::memmem;
use transcript_format::object::Object;
use transcript_storage::outside_names::{NameRefusal, check_side_file, safe_mode};
use transcript_storage::{NewFile, folder_of};

use crate::error::Error;

use transcript_reader::subagents;

/// The keys of a line of a subagent that can name an entry of the session.
const OF_ENTRY: [&str; 5] = [
    "parentUuid",
    "logicalParentUuid",
    "sourceToolAssistantUUID",
    "leafUuid",
    "messageId",
];

/// A file beside a session that was not copied with it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotCopied {
    /// The file, where it is.
    pub path: PathBuf,
    /// Why.
    pub refusal: NameRefusal,
}

/// Returns why a file or folder in the folder of a session is not copied, by its path from that folder on and by what it is.
pub(crate) fn refusal(path: &Path, below: &Path) -> io::Result<Option<NameRefusal>> {
    let kind = fs::symlink_metadata(path)?.file_type();
    Ok(match check_side_file(below) {
        Err(refusal) => Some(refusal),
        // A link may lead anywhere, also to what its owner never meant to hand on.
        Ok(()) if !kind.is_dir() && !kind.is_file() => Some(NameRefusal::Special),
        Ok(()) => None,
    })
}

/// Files and folders that were made, to be removed when what they belong to fails.
#[derive(Debug, Default)]
pub(crate) struct Made(Vec<PathBuf>);

impl Made {
    /// Creates a folder and those above it.
    pub(crate) fn create_folder(&mut self, folder: &Path) -> io::Result<()> {
        let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let missing: Vec<_> = folder.ancestors().take_while(is_missing).collect();
        for folder in missing.into_iter().rev() {
            fs::create_dir(folder)?;
            self.add(folder);
        }
        Ok(())
    }

    pub(crate) fn add(&mut self, path: &Path) {
        self.0.push(path.to_owned());
    }

    /// Removes them. Returns the error, which then names what is left.
    pub(crate) fn remove(&self, error: Error) -> Error {
        let mut left = Vec::new();
        for path in self.0.iter().rev() {
            let removed = match path.is_dir() {
                true => fs::remove_dir(path),
                false => fs::remove_file(path),
            };
            if removed.is_err() && fs::symlink_metadata(path).is_ok() {
                left.push(path.clone());
            }
        }
        error.with_left_over(left)
    }
}

/// Calls `each` for every line of a file, without its newline.
pub(crate) fn each_line(
    path: &Path,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(256 << 10, fs::File::open(path)?);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        each(line.strip_suffix(b"\n").unwrap_or(&line))?;
        line.clear();
    }
    Ok(())
}

/// Returns the id of the copy of a session at another place: always the same.
pub(crate) fn derived_id(id: &str, place: &Path) -> String {
    let half = |number: u8| {
        let mut hasher = DefaultHasher::new();
        (number, id, place).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    let bytes = ((half(0) << 64) | half(1)).to_be_bytes();
    uuid::Builder::from_random_bytes(bytes)
        .into_uuid()
        .to_string()
}

/// Copies a session with its folder to `to`, under the id that `to` names, and adds `line`. The file
/// of the session comes last; what an interrupted call left is completed. Returns what is not copied.
///
/// # Errors
/// When the system fails. The copy of the session is not there then, except when only the sync of its folder or the setting of its
/// time failed; side files may be, and the same call completes them.
pub(crate) fn copy_session(from: &Path, to: &Path, line: &str) -> io::Result<Vec<NotCopied>> {
    let ids = Ids::new(stem(from), stem(to));
    let not_copied = copy_side_files(from, to, &ids)?;
    copy_file(from, to, &ids, Some(line))?;
    Ok(not_copied)
}

/// Copies the folder of a session and its subagents for the session at `to`. What is there stays. Returns what is not copied.
///
/// # Errors
/// When the system fails; a part of the files may be there then.
pub(crate) fn copy_side_files(from: &Path, to: &Path, ids: &Ids) -> io::Result<Vec<NotCopied>> {
    let (old_folder, new_folder) = (from.with_extension(""), to.with_extension(""));
    let mut not_copied = Vec::new();
    if old_folder.is_dir() {
        copy_folder(
            (&old_folder, &new_folder),
            Path::new(""),
            ids,
            &mut not_copied,
        )?;
    }
    let agents = subagents(from).map_err(|error| io::Error::other(error.to_string()))?;
    for agent in agents
        .iter()
        .filter(|agent| folder_of(&agent.path) == folder_of(from))
    {
        // Where clients have looked first since 2.1.2.
        let folder = new_folder.join("subagents");
        fs::create_dir_all(&folder)?;
        for path in [agent.path.clone(), agent.path.with_extension("meta.json")] {
            if let (true, Some(name)) = (path.is_file(), path.file_name()) {
                copy_file(&path, &folder.join(name), ids, None)?;
            }
        }
    }
    Ok(not_copied)
}

/// What lines of a copy have new names for.
pub(crate) struct Ids {
    old: String,
    new: String,
    /// The new ids of entries of the session, by the old ones.
    pub(crate) entries: HashMap<String, String>,
}

impl Ids {
    /// Those of a copy of a session under another id.
    pub(crate) fn new(old: String, new: String) -> Self {
        Self {
            old,
            new,
            entries: HashMap::new(),
        }
    }
}

pub(crate) fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

fn copy_folder(
    (old, new): (&Path, &Path),
    below: &Path,
    ids: &Ids,
    not_copied: &mut Vec<NotCopied>,
) -> io::Result<()> {
    let (from, to) = (old.join(below), new.join(below));
    fs::create_dir_all(&to)?;
    fs::set_permissions(&to, permissions(&fs::metadata(&from)?))?;
    for entry in fs::read_dir(&from)? {
        let name = entry?.file_name();
        let (path, below) = (from.join(&name), below.join(&name));
        if let Some(refusal) = refusal(&path, &below)? {
            not_copied.push(NotCopied { path, refusal });
        } else if path.is_dir() {
            copy_folder((old, new), &below, ids, not_copied)?;
        } else {
            copy_file(&path, &to.join(name), ids, None)?;
        }
    }
    Ok(())
}

/// Returns what a copy of a file or folder allows: no more than is safe for what comes from outside.
fn permissions(of: &fs::Metadata) -> fs::Permissions {
    let permissions = of.permissions();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::Permissions::from_mode(safe_mode(permissions.mode()))
    }
    #[cfg(not(unix))]
    permissions
}

/// Copies a file with its times and, as far as that is [safe](safe_mode), its mode. The lines of a session get the new id.
fn copy_file(from: &Path, to: &Path, ids: &Ids, line: Option<&str>) -> io::Result<()> {
    let metadata = fs::metadata(from)?;
    let mut file = BufWriter::with_capacity(256 << 10, NewFile::beside(to)?);
    if from
        .extension()
        .is_some_and(|extension| extension == "jsonl")
    {
        let mut is_first = true;
        each_line(from, &mut |line| {
            if !std::mem::take(&mut is_first) {
                file.write_all(b"\n")?;
            }
            file.write_all(&with_new_id(line, ids))
        })?;
        // A last line without one is torn, or is still being written.
        if !is_first && (line.is_some() || ends_with_newline(from)?) {
            file.write_all(b"\n")?;
        }
    } else {
        io::copy(&mut fs::File::open(from)?, &mut file)?;
    }
    if let Some(line) = line {
        writeln!(file, "{line}")?;
    }
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    match file.keep(to) {
        // An interrupted call made it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && line.is_none() => {}
        kept => kept?,
    }
    let copy = fs::File::options().append(true).open(to)?;
    copy.set_modified(metadata.modified()?)?;
    copy.set_permissions(permissions(&metadata))
}

fn ends_with_newline(path: &Path) -> io::Result<bool> {
    let mut file = fs::File::open(path)?;
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == [b'\n'])
}

/// Returns a line with the new ids where it names its session, or an entry of it. Other bytes stay.
fn with_new_id(line: &[u8], ids: &Ids) -> Vec<u8> {
    let replaced = || {
        if ids.entries.is_empty() {
            memmem::find(line, ids.old.as_bytes()).filter(|_| ids.old != ids.new)?;
        }
        let text = std::str::from_utf8(line).ok()?;
        let mut text = text.to_owned();
        for key in ["sessionId", "session_id"] {
            let object = Object::parse(&text).ok()?;
            if object.str(key).is_some_and(|id| *id == *ids.old) {
                text = object.with(key, &format!("\"{}\"", ids.new));
            }
        }
        for key in OF_ENTRY.iter().filter(|_| !ids.entries.is_empty()) {
            let object = Object::parse(&text).ok()?;
            if let Some(new) = object.str(key).and_then(|id| ids.entries.get(&*id)) {
                text = object.with(key, &format!("\"{new}\""));
            }
        }
        Some(text.into_bytes())
    };
    replaced().unwrap_or_else(|| line.to_owned())
}

/// Returns whether the shorter of two files is the start of the longer one.
pub(crate) fn is_prefix(a: &Path, b: &Path) -> io::Result<bool> {
    let mut files = [a, b].map(|path| fs::File::open(path).map(BufReader::new));
    let [Ok(a), Ok(b)] = &mut files else {
        let [a, b] = files;
        a?;
        b?;
        return Ok(false);
    };
    loop {
        let (left, right) = (a.fill_buf()?, b.fill_buf()?);
        let len = left.len().min(right.len());
        if len == 0 {
            return Ok(true);
        }
        if left[..len] != right[..len] {
            return Ok(false);
        }
        a.consume(len);
        b.consume(len);
    }
}

/// Writes the bytes of `from` to a new file.
pub(crate) fn copy_bytes(from: &Path, to: &Path) -> io::Result<()> {
    let mut file = NewFile::beside(to)?;
    io::copy(&mut fs::File::open(from)?, &mut file)?;
    file.keep(to)
}
