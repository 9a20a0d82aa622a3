//! Copies of files that appear complete or not at all.

use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use memchr::memmem;
use transcript_format::object::Object;
use transcript_storage::{NewFile, folder_of};

use transcript_reader::subagents;

/// The keys of a line of a subagent that can name an entry of the session.
const OF_ENTRY: [&str; 5] = [
    "parentUuid",
    "logicalParentUuid",
    "sourceToolAssistantUUID",
    "leafUuid",
    "messageId",
];

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
/// of the session comes last; what an interrupted call left is completed.
pub(crate) fn copy_session(from: &Path, to: &Path, line: &str) -> io::Result<()> {
    let ids = Ids::new(stem(from), stem(to));
    copy_side_files(from, to, &ids)?;
    copy_file(from, to, &ids, Some(line))
}

/// Copies the folder of a session and its subagents for the session at `to`. What is there stays.
pub(crate) fn copy_side_files(from: &Path, to: &Path, ids: &Ids) -> io::Result<()> {
    let (old_folder, new_folder) = (from.with_extension(""), to.with_extension(""));
    if old_folder.is_dir() {
        copy_folder(&old_folder, &new_folder, ids)?;
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
    Ok(())
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

fn copy_folder(from: &Path, to: &Path, ids: &Ids) -> io::Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = fs::metadata(&from)?;
        if kind.is_dir() {
            copy_folder(&from, &to, ids)?;
        } else if kind.is_file() {
            copy_file(&from, &to, ids, None)?;
        }
    }
    Ok(())
}

/// Copies a file with its times and its mode. The lines of a session get the new id.
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
    copy.set_permissions(metadata.permissions())
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
