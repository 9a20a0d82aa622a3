//! Copies of files that appear complete or not at all.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memmem;
use transcript_format::object::Object;
use transcript_reader::all_subagents_on;
use transcript_storage::outside_names::{NameRefusal, check_side_file, safe_mode};
use transcript_storage::{
    Disk, FileKind, Metadata, ReadDisk, ReadFile, Reader, SessionLayout, SideFile, folder_of,
};
use uuid::Uuid;

use transcript_session::Error;

const BLOCK_SIZE: usize = 256 << 10;
/// The keys of a line of a subagent that can name an entry of the session.
const ENTRY_ID_KEYS: [&str; 5] = [
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
    /// The reason.
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
        // A link may lead anywhere, also to a file that its owner never meant to share.
        (Ok(()), FileKind::Link | FileKind::Other) => Err(NameRefusal::Special),
    })
}

/// Returns the folders that do not exist yet of a folder and those above it, from the top.
fn missing_folders<'f>(disk: &dyn Disk, folder: &'f Path) -> Vec<&'f Path> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !disk.exists(folder);
    let mut missing: Vec<_> = folder.ancestors().take_while(is_missing).collect();
    missing.reverse();
    missing
}

/// Creates a folder and those above it, with the mode that the system gives. They may exist.
fn create_folders(disk: &dyn Disk, folder: &Path) -> io::Result<()> {
    for folder in missing_folders(disk, folder) {
        match disk.create_new_folder(folder, None) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => created?,
        }
    }
    if disk.is_folder(folder) {
        Ok(())
    } else {
        // A file has the name, and the error of the disk says so.
        disk.create_new_folder(folder, None)
    }
}

/// Files and folders that were made on a disk, to be removed when what they belong to fails.
#[derive(Debug)]
pub(crate) struct CreatedFiles<'d> {
    disk: &'d dyn Disk,
    paths: Vec<PathBuf>,
}

impl<'d> CreatedFiles<'d> {
    pub(crate) fn on(disk: &'d dyn Disk) -> Self {
        let paths = Vec::new();
        Self { disk, paths }
    }

    /// Creates a folder and those above it.
    pub(crate) fn create_folder(&mut self, folder: &Path) -> io::Result<()> {
        for folder in missing_folders(self.disk, folder) {
            self.disk.create_new_folder(folder, None)?;
            self.add(folder);
        }
        Ok(())
    }

    pub(crate) fn add(&mut self, path: &Path) {
        self.paths.push(path.to_owned());
    }

    /// Removes them. Returns the error, which then names what is left.
    pub(crate) fn remove(&self, error: Error) -> Error {
        let mut left = Vec::new();
        for path in self.paths.iter().rev() {
            let removed = if self.disk.is_folder(path) {
                self.disk.remove_folder(path)
            } else {
                self.disk.remove(path)
            };
            if removed.is_err() && self.disk.has_name(path) {
                left.push(path.clone());
            }
        }
        error.with_left_over(left)
    }
}

/// Calls `each` for every line of a file, without its newline.
pub(crate) fn each_line(
    disk: &dyn ReadDisk,
    path: &Path,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    each_line_of(Reader::new(disk.open_to_read(path)?), each)
}

fn each_line_of(file: Reader, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(BLOCK_SIZE, file);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        each(line.strip_suffix(b"\n").unwrap_or(&line))?;
        line.clear();
    }
    Ok(())
}

/// The namespace of the ids of copies. It must never change.
const COPY_ID_NAMESPACE: Uuid = Uuid::from_u128(0x6f0c_41f5_8e3b_4f0e_9d52_7c1a_b8e6_3d94);

/// Returns the id of the copy of a session at another place: always the same, with every version of this program.
pub(crate) fn derived_id(id: &str, place: &Path) -> String {
    let place: PathBuf = place.components().collect();
    let name = [id.as_bytes(), b"\0", &bytes_of(&place)].concat();
    Uuid::new_v5(&COPY_ID_NAMESPACE, &name).to_string()
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

/// Copies a session on `disk` with its folder to `to` on the same disk, under the id that `to` names, and adds `line`. The
/// file of the session comes last; an incomplete copy of a killed call is completed. Returns the files that are not copied.
///
/// # Errors
/// When the system fails. The copy is not there then, and nothing of its folder, unless a killed call had made that; what
/// cannot be removed, the error names.
pub(crate) fn copy_session(
    disk: &Arc<dyn Disk>,
    from: &Path,
    to: &Path,
    line: &str,
) -> io::Result<Vec<NotCopied>> {
    let copying = Copying {
        from: &(Arc::clone(disk) as _),
        to: &**disk,
        ids: &Ids::new(stem(from), stem(to)),
    };
    let folder = to.with_extension("");
    let is_begun = disk.has_name(&folder);
    let copied = copying.side_files(from, to).and_then(|not_copied| {
        copying.file(from, to, Some(line))?;
        Ok(not_copied)
    });
    copied.map_err(|error| {
        if is_begun {
            error
        } else {
            remove_folder(&**disk, &folder, error)
        }
    })
}

/// Removes a folder that was made for a copy which failed. Returns the error, which then names what is left.
fn remove_folder(disk: &dyn Disk, folder: &Path, error: io::Error) -> io::Error {
    match disk.remove_folder_with_content(folder) {
        Err(_) if disk.has_name(folder) => {
            let what = format!("{error}; {} cannot be removed", folder.display());
            io::Error::new(error.kind(), what)
        }
        _ => error,
    }
}

/// The ids that lines of a copy replace.
pub(crate) struct Ids {
    old: String,
    new: String,
    /// The new ids of entries of the session, by the old ones.
    pub(crate) entries: HashMap<String, String>,
}

impl Ids {
    /// Creates the ids of a copy of a session under another id.
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

/// Copies the side files of a session to a disk.
pub(crate) struct Copying<'c> {
    /// The disk of the session.
    pub(crate) from: &'c Arc<dyn ReadDisk>,
    /// The disk of the copy.
    pub(crate) to: &'c dyn Disk,
    pub(crate) ids: &'c Ids,
}

impl Copying<'_> {
    /// Copies the folder of a session and its subagents for the session at `to`. Existing files stay. Returns those that are not
    /// copied.
    ///
    /// # Errors
    /// When the system fails; a part of the files may be there then.
    pub(crate) fn side_files(&self, from: &Path, to: &Path) -> io::Result<Vec<NotCopied>> {
        let (old_folder, new_folder) = (from.with_extension(""), to.with_extension(""));
        let mut not_copied = Vec::new();
        if self.from.has_folder(&old_folder)? {
            self.folder(&old_folder, &new_folder, &mut not_copied)?;
        }
        let agents = all_subagents_on(self.from, from)
            .map_err(|error| io::Error::other(error.to_string()))?;
        for agent in agents
            .iter()
            .filter(|agent| folder_of(&agent.path) == folder_of(from))
        {
            // Where clients have looked first since 2.1.2.
            let folder = SessionLayout::CLIENT.subagents(to);
            create_folders(self.to, &folder)?;
            for path in [agent.path.clone(), agent.path.with_extension("meta.json")] {
                let Some(name) = path.file_name() else {
                    continue;
                };
                match checked(&**self.from, &path, Path::new(name)) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    found => match found? {
                        Ok(found) if found.is_file() => {
                            self.file(&path, &folder.join(name), None)?;
                        }
                        Ok(_) => {}
                        Err(refusal) => not_copied.push(NotCopied { path, refusal }),
                    },
                }
            }
        }
        Ok(not_copied)
    }

    fn folder(&self, old: &Path, new: &Path, not_copied: &mut Vec<NotCopied>) -> io::Result<()> {
        let create = |to: &Path, mode: Option<u32>| {
            create_folders(self.to, to)?;
            self.to.set_properties(to, None, mode.map(safe_mode))
        };
        create(new, self.from.metadata(old)?.mode)?;
        let layout = self.from.layout();
        layout.walk_all(&**self.from, old, &mut |found| {
            let path = match found {
                SideFile::File(path, _) | SideFile::Folder(path) => path,
                SideFile::Problem(_, error) => return Err(error),
                _ => return Ok(false),
            };
            let below = path.strip_prefix(old).map_err(io::Error::other)?;
            let to = new.join(below);
            match checked(&**self.from, path, below)? {
                Err(refusal) => not_copied.push(NotCopied {
                    path: path.to_owned(),
                    refusal,
                }),
                Ok(found) if found.is_folder() => {
                    create(&to, found.mode)?;
                    return Ok(true);
                }
                Ok(_) => self.file(path, &to, None)?,
            }
            Ok(false)
        })
    }

    /// Copies a file with its times and, as far as that is [safe](safe_mode), its mode. The lines of a session get the new
    /// id.
    fn file(&self, from: &Path, to: &Path, line: Option<&str>) -> io::Result<()> {
        let source = self.from.open_to_read(from)?;
        let metadata = source.metadata()?;
        let mut file = BufWriter::with_capacity(BLOCK_SIZE, self.to.new_file(to)?);
        if from
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            let is_ended = ends_with_newline(&*source, &metadata)?;
            let mut is_first = true;
            each_line_of(Reader::new(source), &mut |line| {
                if !std::mem::take(&mut is_first) {
                    file.write_all(b"\n")?;
                }
                file.write_all(&with_new_id(line, self.ids))
            })?;
            // A last line without one is torn, or is still being written.
            if !is_first && (line.is_some() || is_ended) {
                file.write_all(b"\n")?;
            }
        } else {
            let mut source = BufReader::with_capacity(BLOCK_SIZE, Reader::new(source));
            io::copy(&mut source, &mut file)?;
        }
        if let Some(line) = line {
            writeln!(file, "{line}")?;
        }
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        // Before the file gets its name: with its name it counts as complete, and no later call
        // would set them.
        file.set_properties(metadata.modified, metadata.mode.map(safe_mode))?;
        match file.keep(to) {
            // A killed call made it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && line.is_none() => Ok(()),
            kept => kept,
        }
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
        for key in ENTRY_ID_KEYS.iter().filter(|_| !ids.entries.is_empty()) {
            let object = Object::parse(&text).ok()?;
            if let Some(new) = object.str(key).and_then(|id| ids.entries.get(&*id)) {
                text = object.with(key, &format!("\"{new}\""));
            }
        }
        Some(text.into_bytes())
    };
    replaced().unwrap_or_else(|| line.to_owned())
}

/// Returns whether one of two files is the start of the other.
pub(crate) fn is_prefix(a: (&dyn ReadDisk, &Path), b: (&dyn ReadDisk, &Path)) -> io::Result<bool> {
    let (a, b) = (a.0.open_to_read(a.1)?, b.0.open_to_read(b.1)?);
    let len = a.metadata()?.len.min(b.metadata()?.len);
    same_start(&*a, &*b, len)
}

/// Returns whether two files have the same first `len` bytes.
pub(crate) fn same_start(a: &dyn ReadFile, b: &dyn ReadFile, len: u64) -> io::Result<bool> {
    let (mut one, mut two) = (vec![0; BLOCK_SIZE], vec![0; BLOCK_SIZE]);
    let mut at = 0;
    while at < len {
        let part = usize::try_from(len - at).map_or(BLOCK_SIZE, |left| left.min(BLOCK_SIZE));
        let read = [a.fill(at, &mut one[..part])?, b.fill(at, &mut two[..part])?];
        if read != [part; 2] || one[..part] != two[..part] {
            return Ok(false);
        }
        at += part as u64;
    }
    Ok(true)
}

/// Writes the bytes of a file to a new one, each on its disk.
pub(crate) fn copy_bytes(
    (disk, from): (&dyn ReadDisk, &Path),
    (other, to): (&dyn Disk, &Path),
) -> io::Result<()> {
    let mut file = other.new_file(to)?;
    let from = Reader::new(disk.open_to_read(from)?);
    io::copy(&mut BufReader::with_capacity(BLOCK_SIZE, from), &mut file)?;
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
