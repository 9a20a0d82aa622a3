//! Copies of files that appear complete or not at all.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memmem;
use transcript_format::object::Object;
use transcript_reader::all_subagents_on;
use transcript_storage::outside_names::{NameRefusal, check_side_file, safe_mode};
use transcript_storage::{
    Disk, FileKind, Metadata, NewFile, ReadDisk, ReadFile, RealDisk, folder_of,
    remove_folder_with_content,
};
use uuid::Uuid;

use transcript_session::Error;

const BLOCK: usize = 256 << 10;
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

/// Looks at a file or folder in the folder of a session. Refuses one that is not copied, by its path from that folder on or by
/// what it is.
pub(crate) fn checked(
    disk: &dyn ReadDisk,
    path: &Path,
    below: &Path,
) -> io::Result<Result<Metadata, NameRefusal>> {
    let found = disk.link_metadata(path)?;
    Ok(match (check_side_file(below), found.kind) {
        (Err(refusal), _) => Err(refusal),
        (Ok(()), FileKind::File | FileKind::Folder) => Ok(found),
        // A link may lead anywhere, also to what its owner never meant to hand on.
        (Ok(()), FileKind::Link | FileKind::Other) => Err(NameRefusal::Special),
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
                true => transcript_storage::remove_folder(path),
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
    each_line_of(fs::File::open(path)?, each)
}

fn each_line_of(file: impl Read, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(BLOCK, file);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        each(line.strip_suffix(b"\n").unwrap_or(&line))?;
        line.clear();
    }
    Ok(())
}

/// The namespace of the ids of copies. It must never change.
const COPIES: Uuid = Uuid::from_u128(0x6f0c_41f5_8e3b_4f0e_9d52_7c1a_b8e6_3d94);

/// Returns the id of the copy of a session at another place: always the same, with every version of this program.
pub(crate) fn derived_id(id: &str, place: &Path) -> String {
    let place: PathBuf = place.components().collect();
    let name = [id.as_bytes(), b"\0", &bytes_of(&place)].concat();
    Uuid::new_v5(&COPIES, &name).to_string()
}

#[cfg(unix)]
fn bytes_of(path: &Path) -> Cow<'_, [u8]> {
    use std::os::unix::ffi::OsStrExt;
    Cow::Borrowed(path.as_os_str().as_bytes())
}

#[cfg(not(unix))]
fn bytes_of(path: &Path) -> Cow<'_, [u8]> {
    Cow::Owned(path.to_string_lossy().into_owned().into_bytes())
}

/// Returns the id that a copy got up to version 0.1.0, from a hash that the standard library may change: only to find copies
/// that were made then, never to name a new one.
pub(crate) fn derived_id_before(id: &str, place: &Path) -> String {
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

/// A file of a disk, read from its start.
struct FromStart {
    file: Arc<dyn ReadFile>,
    at: u64,
}

impl FromStart {
    fn open(disk: &dyn ReadDisk, path: &Path) -> io::Result<Self> {
        let file = disk.open_to_read(path)?;
        Ok(Self { file, at: 0 })
    }
}

impl Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(self.at, buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Copies a session on `disk` with its folder to `to`, under the id that `to` names, and adds `line`. The file
/// of the session comes last; what a killed call left is completed. Returns what is not copied.
///
/// # Errors
/// When the system fails. The copy is not there then, and nothing of its folder, unless a killed call had made that; what
/// cannot be removed, the error names.
pub(crate) fn copy_session(
    disk: &Arc<dyn ReadDisk>,
    from: &Path,
    to: &Path,
    line: &str,
) -> io::Result<Vec<NotCopied>> {
    let ids = Ids::new(stem(from), stem(to));
    let folder = to.with_extension("");
    let is_begun = fs::symlink_metadata(&folder).is_ok();
    let copied = copy_side_files(disk, from, to, &ids).and_then(|not_copied| {
        copy_file(&**disk, from, to, &ids, Some(line))?;
        Ok(not_copied)
    });
    copied.map_err(|error| match is_begun {
        true => error,
        false => remove_folder(&folder, error),
    })
}

/// Removes a folder that was made for a copy which failed. Returns the error, which then names what is left.
fn remove_folder(folder: &Path, error: io::Error) -> io::Error {
    match remove_folder_with_content(folder) {
        Err(_) if fs::symlink_metadata(folder).is_ok() => {
            let what = format!("{error}; {} cannot be removed", folder.display());
            io::Error::new(error.kind(), what)
        }
        _ => error,
    }
}

/// Copies the folder of a session on `disk` and its subagents for the session at `to`. What is there stays. Returns what is not
/// copied.
///
/// # Errors
/// When the system fails; a part of the files may be there then.
pub(crate) fn copy_side_files(
    disk: &Arc<dyn ReadDisk>,
    from: &Path,
    to: &Path,
    ids: &Ids,
) -> io::Result<Vec<NotCopied>> {
    let (old_folder, new_folder) = (from.with_extension(""), to.with_extension(""));
    let mut not_copied = Vec::new();
    if disk.has_folder(&old_folder)? {
        let folders = (&*old_folder, &*new_folder);
        copy_folder(&**disk, folders, Path::new(""), ids, &mut not_copied)?;
    }
    let agents =
        all_subagents_on(disk, from).map_err(|error| io::Error::other(error.to_string()))?;
    for agent in agents
        .iter()
        .filter(|agent| folder_of(&agent.path) == folder_of(from))
    {
        // Where clients have looked first since 2.1.2.
        let folder = new_folder.join("subagents");
        fs::create_dir_all(&folder)?;
        for path in [agent.path.clone(), agent.path.with_extension("meta.json")] {
            let Some(name) = path.file_name() else {
                continue;
            };
            match checked(&**disk, &path, Path::new(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                found => match found? {
                    Ok(found) if found.is_file() => {
                        copy_file(&**disk, &path, &folder.join(name), ids, None)?;
                    }
                    Ok(_) => {}
                    Err(refusal) => not_copied.push(NotCopied { path, refusal }),
                },
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
    disk: &dyn ReadDisk,
    (old, new): (&Path, &Path),
    below: &Path,
    ids: &Ids,
    not_copied: &mut Vec<NotCopied>,
) -> io::Result<()> {
    let (from, to) = (old.join(below), new.join(below));
    fs::create_dir_all(&to)?;
    let mode = disk.metadata(&from)?.mode;
    RealDisk.set_properties(&to, None, mode.map(safe_mode))?;
    for entry in disk.list(&from)? {
        let name = entry?.name;
        let (path, below) = (from.join(&name), below.join(&name));
        match checked(disk, &path, &below)? {
            Err(refusal) => not_copied.push(NotCopied { path, refusal }),
            Ok(found) if found.is_folder() => {
                copy_folder(disk, (old, new), &below, ids, not_copied)?;
            }
            Ok(_) => copy_file(disk, &path, &to.join(name), ids, None)?,
        }
    }
    Ok(())
}

/// Copies a file with its times and, as far as that is [safe](safe_mode), its mode. The lines of a session get the new id.
fn copy_file(
    disk: &dyn ReadDisk,
    from: &Path,
    to: &Path,
    ids: &Ids,
    line: Option<&str>,
) -> io::Result<()> {
    let source = FromStart::open(disk, from)?;
    let metadata = source.file.metadata()?;
    let mut file = BufWriter::with_capacity(BLOCK, NewFile::beside(to)?);
    if from
        .extension()
        .is_some_and(|extension| extension == "jsonl")
    {
        let is_ended = ends_with_newline(&*source.file, &metadata)?;
        let mut is_first = true;
        each_line_of(source, &mut |line| {
            if !std::mem::take(&mut is_first) {
                file.write_all(b"\n")?;
            }
            file.write_all(&with_new_id(line, ids))
        })?;
        // A last line without one is torn, or is still being written.
        if !is_first && (line.is_some() || is_ended) {
            file.write_all(b"\n")?;
        }
    } else {
        io::copy(&mut BufReader::with_capacity(BLOCK, source), &mut file)?;
    }
    if let Some(line) = line {
        writeln!(file, "{line}")?;
    }
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    // Before it has its name: after that it is whole, and nobody would set them any more.
    file.set_properties(metadata.modified, metadata.mode.map(safe_mode))?;
    match file.keep(to) {
        // A killed call made it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && line.is_none() => Ok(()),
        kept => kept,
    }
}

fn ends_with_newline(file: &dyn ReadFile, metadata: &Metadata) -> io::Result<bool> {
    let mut last = [0];
    let read = match metadata.len.checked_sub(1) {
        Some(at) => file.fill(at, &mut last)?,
        None => 0,
    };
    Ok(last[..read] == [b'\n'])
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

/// Returns whether the shorter of two files, each on its disk, is the start of the longer one.
pub(crate) fn is_prefix(a: (&dyn ReadDisk, &Path), b: (&dyn ReadDisk, &Path)) -> io::Result<bool> {
    let mut files = [a, b].map(|(disk, path)| FromStart::open(disk, path).map(BufReader::new));
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
pub(crate) fn copy_bytes(disk: &dyn ReadDisk, from: &Path, to: &Path) -> io::Result<()> {
    let mut file = NewFile::beside(to)?;
    let from = FromStart::open(disk, from)?;
    io::copy(&mut BufReader::with_capacity(BLOCK, from), &mut file)?;
    file.keep(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_copy_never_changes() {
        let id = "1999463e-ee08-4b08-99d5-2d9a36fd8293";
        let place = Path::new("/home/me/.claude/projects/-work").join(format!("{id}.jsonl"));
        let made = derived_id(id, &place);
        assert_eq!(made, "d9129be2-ad1c-5166-a904-951844fc3826");
        let other = derived_id("2999463e-ee08-4b08-99d5-2d9a36fd8293", &place);
        assert_ne!(made, other);
        assert_ne!(made, derived_id(id, Path::new("/elsewhere")));
    }
}
