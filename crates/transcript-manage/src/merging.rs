//! Merges two copies of one session that were continued apart (see `docs/moving.md`).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, Hash, RandomState};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memmem;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use transcript_format::ids::Uuid;
use transcript_format::make;
use transcript_format::scan::Flags;
use transcript_format::time;
use transcript_reader::{EntryNo, EntryRef, Id, Source};
use transcript_resume::Policy;
use transcript_storage::outside_names::check_folders;
use transcript_storage::{Disk, NewFile, ReadDisk, RealDisk, SideFile, folder_of};

use crate::copying::{self, CreatedFiles, NotCopied};
use transcript_session::History;
use transcript_session::{Error, ErrorKind};

const BLOCK_SIZE: usize = 256 << 10;

/// The result of [`merge`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Merged {
    /// The new file.
    pub out: PathBuf,
    /// The number of entries in it that were in the files: the sum of the next three.
    pub entries: u64,
    /// The number of entries that only the first file had.
    pub from_a: u64,
    /// The number of entries that only the second file had.
    pub from_b: u64,
    /// The number of entries that both files had.
    pub both: u64,
    /// The entries that have the same uuid in both files and other content. Both are in the new file,
    /// that of the first file first.
    pub conflicts: Vec<Conflict>,
    /// The number of findings about damage in the first and in the second file. The damaged bytes
    /// are in the new file.
    pub findings: [usize; 2],
    /// The uuid of the entry at which the conversation continues.
    pub leaf: Option<String>,
    /// Files beside the two sessions that are not beside the new one: links, and those that may hold credentials.
    pub not_copied: Vec<NotCopied>,
}

/// Two entries with the same uuid and other content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Conflict {
    /// The uuid.
    pub uuid: String,
    /// The line in the first file, counted from 1.
    pub line_a: u64,
    /// The line in the second file, counted from 1.
    pub line_b: u64,
}

/// Merges two copies of one session, such as those of two machines, into the new file `out`.
///
/// Every line of both is in it once, byte for byte, those of `a` in their order. Lines with the same entry are one, however
/// they are written: its id, its parent and its content count, not the folder, the version or the order of the keys; the line
/// with more keys is written. Both branches of the
/// conversation can be reached, and it continues where the newer copy alone would, under each policy.
/// Subagents and side files of both go to the folder of `out`. Neither `a` nor `b` is changed, and
/// `out` appears complete or not at all.
///
/// ```
/// # use transcript_session::{Draft, Session, SessionOptions};
/// # let folder = tempfile::tempdir()?;
/// # let path = |name: &str| folder.path().join(name).join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
/// # let (a, b, out) = (path("a"), path("b"), path("out"));
/// # let session = Session::create(&a, &SessionOptions::new())?;
/// # session.append(Draft::user("Which years have a leap day?"))?;
/// # session.sync()?;
/// # std::fs::create_dir(b.parent().ok_or("a folder")?)?;
/// # std::fs::create_dir(out.parent().ok_or("a folder")?)?;
/// # std::fs::copy(&a, &b)?;
/// # session.append(Draft::user("And 1900?"))?;
/// # session.close()?;
/// let merged = transcript_manage::merge(&a, &b, &out)?;
/// assert_eq!((merged.both, merged.from_a, merged.from_b), (1, 1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Read`]; [`ErrorKind::Exists`] when `out` exists; [`ErrorKind::OtherSession`] when the
/// files have neither a session id nor an entry in common; [`ErrorKind::SideFiles`] when a side file
/// has the same name in both and other content, and neither continues the other;
/// [`ErrorKind::Fork`] when `out` cannot be written.
pub fn merge(a: &Path, b: &Path, out: &Path) -> Result<Merged, Error> {
    merge_on(&(Arc::new(RealDisk) as _), [a, b], &RealDisk, out)
}

/// Merges two copies of one session on `disk`, such as that of an archive, into a new file on the disk `to`, as [`merge`] does on
/// the disk of this machine.
///
/// # Errors
/// As [`merge`].
pub fn merge_on(
    disk: &Arc<dyn ReadDisk>,
    [a, b]: [&Path; 2],
    to: &dyn Disk,
    out: &Path,
) -> Result<Merged, Error> {
    let failed = |error| Error::placing(ErrorKind::Fork, out, error);
    if to.has_name(out) {
        return Err(Error::new(ErrorKind::Exists, out));
    }
    let histories = [History::open_on(disk, a)?, History::open_on(disk, b)?];
    for history in &histories {
        history.source().check_messages()?;
    }
    let ids = histories.each_ref().map(History::session_id);
    // With random keys, no file can be made so that two of its lines get one hash.
    let hashers = [RandomState::new(), RandomState::new()];
    let [of_a, of_b] = histories;
    // A fork that a client made has the same entries with another session id.
    let is_fork = ids[0] != ids[1];
    let sessions = ids.each_ref().map(|id| id.as_deref().filter(|_| is_fork));
    let mut files = [
        InputFile::of(of_a, sessions[0], &hashers)?,
        InputFile::of(of_b, sessions[1], &hashers)?,
    ];
    // If one file has all entries of the other byte for byte, there is nothing to find by meaning, and parsing
    // each line of both is slow.
    if differ(&files) {
        for (file, session) in files.iter_mut().zip(sessions) {
            file.compare_by_meaning(session, &hashers)?;
        }
    }
    let order = MergeOrder::of(&files);
    if order.both == 0 && is_fork {
        return Err(Error::new(ErrorKind::OtherSession, b));
    }
    let (side_files, not_copied) = side_files(&**disk, [a, b], to, out)?;
    let newest = &files[order.newest];
    let leaf = leaf_of(&newest.history, Policy::Recover);
    to.remove_stale(folder_of(out));
    let mut file = to.new_file(out).map_err(failed)?;
    let is_ended = order.write(&files, &mut file, &failed)?;
    // Only reading the new file tells where its conversation continues, before it gets its name.
    let written = Source::from_file(file.reader().map_err(failed)?, out)?;
    let written = History::read(written)?;
    let policies = [Policy::Vendor, Policy::Recover];
    // The policies may have differed before.
    let is_kept = |policy: &Policy| leaf_of(&written, *policy) == leaf_of(&newest.history, *policy);
    // A pin of the other branch may hold the conversation (LEAF-10); a later pin wins.
    if leaf.is_some() && !policies.iter().all(is_kept) {
        let line = make::last_prompt(None, leaf.as_deref(), false);
        let line = match &ids[order.newest] {
            Some(id) => line.session_id(id).text(),
            None => line.text(),
        };
        let newline = if is_ended { "" } else { "\n" };
        writeln!(file, "{newline}{line}").map_err(failed)?;
    }
    drop(written);
    // The session gets its name last: a kill before that leaves side files, but never a part of a session.
    let mut made = CreatedFiles::on(to);
    for (from, name) in &side_files {
        write_side_file((&**disk, from), (to, name), &mut made).map_err(|error| {
            made.remove(match error.kind() {
                io::ErrorKind::AlreadyExists => Error::side_files(out, vec![name.clone()]),
                _ => Error::io(ErrorKind::Fork, name, error),
            })
        })?;
    }
    let kept = file.keep(out);
    kept.map_err(|error| made.remove(failed(error)))?;
    Ok(Merged {
        out: out.to_owned(),
        entries: order.both + order.own[0] + order.own[1],
        from_a: order.own[0],
        from_b: order.own[1],
        both: order.both,
        conflicts: conflicts(&files),
        findings: files
            .each_ref()
            .map(|file| file.history.index().findings().len()),
        leaf,
        not_copied,
    })
}

/// One of the two files, and its lines.
struct InputFile {
    history: History,
    lines: Vec<Line>,
}

/// A line, without its bytes. Equal lines have equal hashes; 128 bits, so that others do not.
struct Line {
    start: u64,
    /// The offset after its newline.
    end: u64,
    /// Once either file has lines that the other lacks: of what makes an entry the same, however it is written.
    hash: (u64, u64),
    /// The number of members of the object, if it was counted.
    members: usize,
    /// The entries on it, as a range of the index: one, unless it is damaged or no entry at all.
    entries: Range<usize>,
    has_uuid: bool,
    is_blank: bool,
}

impl InputFile {
    fn of(
        history: History,
        session: Option<&str>,
        hashers: &[RandomState; 2],
    ) -> Result<Self, Error> {
        let lines = lines_of(&history, session, hashers)?;
        Ok(Self { history, lines })
    }

    /// Gives lines that say the same, written differently, the same hash.
    fn compare_by_meaning(
        &mut self,
        session: Option<&str>,
        hashers: &[RandomState; 2],
    ) -> Result<(), Error> {
        let mut lines = self.lines.iter_mut();
        each_line(self.history.source(), &mut |_, _, bytes| {
            if let (Some(line), Some((text, members))) = (lines.next(), meaning(bytes, session)) {
                line.hash = hash(hashers, text);
                line.members = members;
            }
        })
    }

    fn entries(&self, line: &Line) -> impl Iterator<Item = EntryRef<'_>> {
        let index = self.history.index();
        line.entries
            .clone()
            .map(|number| index.entry(EntryNo::new(number)))
    }

    /// Returns the time of the newest message of the main conversation on these lines; 0 for one
    /// without a time.
    fn newest<'l>(&'l self, lines: impl Iterator<Item = &'l Line>) -> Option<i64> {
        let entries = lines.flat_map(|line| self.entries(line));
        let messages = entries
            .filter(|entry| entry.kind().is_message() && !entry.flags().contains(Flags::SIDECHAIN));
        messages.map(|entry| entry.millis().unwrap_or(0)).max()
    }

    /// Returns a key for the uuid of an entry, the same in both files.
    fn key(&self, id: Id) -> IdKey {
        match id {
            Id::Uuid(uuid) => IdKey::Uuid(uuid.0),
            Id::Odd(_) => IdKey::Odd(self.history.index().id_text(id)),
        }
    }
}

/// Reads the lines of a file. The id of the `session` does not count when lines are compared.
fn lines_of(
    history: &History,
    session: Option<&str>,
    hashers: &[RandomState; 2],
) -> Result<Vec<Line>, Error> {
    let own = session.map(|id| format!("\"sessionId\":\"{id}\""));
    let own = own.as_deref().map(memmem::Finder::new);
    let mut lines = Vec::new();
    let mut entries = history.index().entries().peekable();
    let mut number = 0;
    let mut add = |start: u64, end: u64, bytes: &[u8]| {
        let first = number;
        let mut has_uuid = false;
        while let Some(entry) = entries.next_if(|entry| entry.offset() < end) {
            has_uuid |= entry.uuid().is_some();
            number += 1;
        }
        let without_id = own.as_ref().and_then(|own| {
            // In a text the quotes are escaped, so this can only be a member.
            let at = own.find(bytes)?;
            Some([&bytes[..at], &bytes[at + own.needle().len()..]].concat())
        });
        let bytes = without_id.as_deref().unwrap_or(bytes);
        lines.push(Line {
            start,
            end,
            hash: hash(hashers, bytes),
            members: 0,
            entries: first..number,
            has_uuid,
            is_blank: bytes.trim_ascii().is_empty(),
        });
    };
    each_line(history.source(), &mut add)?;
    Ok(lines)
}

/// Passes the lines of a file to `add`, each with its start and the offset after its newline.
fn each_line(source: &Source, add: &mut dyn FnMut(u64, u64, &[u8])) -> Result<(), Error> {
    let (mut start, mut carry) = (0, Vec::new());
    let all = 0..source.len();
    let at = source.each_block(all, BLOCK_SIZE, |mut at, bytes| {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            at += piece.len() as u64;
            carry.extend_from_slice(piece);
            if let Some(line) = carry.strip_suffix(b"\n") {
                add(start, at, line);
                carry.clear();
                start = at;
            }
        }
        Ok::<_, Error>(())
    })?;
    if !carry.is_empty() {
        add(start, at, &carry);
    }
    Ok(())
}

fn hash(hashers: &[RandomState; 2], value: impl Hash) -> (u64, u64) {
    (hashers[0].hash_one(&value), hashers[1].hash_one(&value))
}

/// Returns whether either file has entries that the other has not, byte for byte.
fn differ(files: &[InputFile; 2]) -> bool {
    let hashes = files.each_ref().map(|file| {
        let lines = file.lines.iter().filter(|line| line.has_uuid);
        lines.map(|line| line.hash).collect::<HashSet<_>>()
    });
    !hashes[0].is_subset(&hashes[1]) && !hashes[1].is_subset(&hashes[0])
}

/// Returns the text that identifies an entry wherever it is written, and the number of its members: its id, its place, its time
/// and its content, in one order and without the spaces between. The folder, the branch, the version of the client and other keys
/// around them and in the message differ after a move, or when a newer client writes the session again. `None` for what is not a whole entry.
fn meaning(line: &[u8], session: Option<&str>) -> Option<(String, usize)> {
    let Value::Object(mut line) = serde_json::from_slice(line).ok()? else {
        return None;
    };
    let mut members = line.len();
    if line.get("uuid").is_some_and(Value::is_string) {
        let is_nothing = |value: &Value| value.is_null() || *value == "" || *value == false;
        line.retain(|key, value| IDENTIFYING_FIELDS.contains(&&**key) && !is_nothing(value));
        // One time has several forms.
        if let Some(time) = line.get_mut("timestamp")
            && let Some(millis) = time.as_str().and_then(|text| time::millis(text.as_bytes()))
        {
            *time = millis.into();
        }
        if let Some(Value::Object(message)) = line.get_mut("message") {
            members += message.len();
            // A text alone is written as it is, or as a block.
            if let Some(content) = message.get_mut("content")
                && content.is_string()
            {
                *content = json!([{"type": "text", "text": content}]);
            }
            message.retain(|key, value| {
                IDENTIFYING_MESSAGE_FIELDS.contains(&&**key) && !is_nothing(value)
            });
            if let Some(Value::Object(usage)) = message.get_mut("usage") {
                usage.retain(|key, _| IDENTIFYING_USAGE_FIELDS.contains(&&**key));
            }
        }
    } else if session.is_some() && line.get("sessionId").and_then(Value::as_str) == session {
        line.remove("sessionId");
    }
    line.sort_keys();
    line.values_mut().for_each(Value::sort_all_objects);
    Some((serde_json::to_string(&line).ok()?, members))
}

/// The members by which an entry with a uuid is the same.
const IDENTIFYING_FIELDS: [&str; 15] = [
    "timestamp",
    "type",
    "subtype",
    "uuid",
    "parentUuid",
    "logicalParentUuid",
    "isSidechain",
    "isMeta",
    "isCompactSummary",
    "message",
    "content",
    "attachment",
    "data",
    "toolUseResult",
    "compactMetadata",
];

/// The members by which its message is the same; newer clients and APIs add others.
const IDENTIFYING_MESSAGE_FIELDS: [&str; 7] = [
    "id",
    "role",
    "model",
    "content",
    "stop_reason",
    "stop_sequence",
    "usage",
];

/// The counts by which the usage of a message is the same.
const IDENTIFYING_USAGE_FIELDS: [&str; 4] = [
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
];

#[derive(PartialEq, Eq, Hash)]
enum IdKey {
    Uuid(u128),
    Odd(String),
}

/// The lines of the merged file: their sources and their order.
struct MergeOrder {
    /// Ranges of lines: the number of the file, and the lines of it.
    parts: Vec<(usize, Range<usize>)>,
    /// The file with the newer end of the conversation.
    newest: usize,
    /// The number of entries that both have.
    both: u64,
    /// The numbers of entries that only one has.
    own: [u64; 2],
}

impl MergeOrder {
    fn of(files: &[InputFile; 2]) -> Self {
        let [a, b] = files;
        let mut in_a: HashMap<(u64, u64), Vec<usize>> = HashMap::new();
        for (at, line) in a.lines.iter().enumerate() {
            in_a.entry(line.hash).or_default().push(at);
        }
        let mut used: HashMap<(u64, u64), usize> = HashMap::new();
        let mut is_common = vec![false; a.lines.len()];
        // The lines that only B has, each with the line of A that it follows.
        let mut own: Vec<(Option<usize>, usize)> = Vec::new();
        let mut seen = HashSet::new();
        // The lines of A in whose place those of B are written: they have more members.
        let mut instead = BTreeMap::new();
        let (mut anchor, mut fork) = (None, (None, 0));
        for (at, line) in b.lines.iter().enumerate() {
            let of_a = in_a.get(&line.hash).map_or(&[][..], |all| all);
            let count = used.entry(line.hash).or_default();
            // An entry counts once; lines of state are written again and again, and the last counts.
            let place = if line.has_uuid {
                of_a.first()
            } else {
                of_a.get(*count)
            };
            *count += 1;
            if let Some(place) = place {
                let all = if line.has_uuid {
                    of_a
                } else {
                    std::slice::from_ref(place)
                };
                all.iter().for_each(|at| is_common[*at] = true);
                if line.has_uuid && line.members > a.lines[*place].members {
                    instead.insert(*place, at);
                }
                anchor = Some(*place);
                // Lines of state repeat in both branches, so they do not tell where the copies part.
                if line.has_uuid {
                    fork = (anchor, own.len());
                }
            } else if !line.is_blank && (!line.has_uuid || seen.insert(line.hash)) {
                own.push((anchor, at));
            }
        }
        let of_a = a
            .lines
            .iter()
            .zip(&is_common)
            .filter(|(_, common)| !**common);
        let newest_a = a.newest(of_a.clone().map(|(line, _)| line));
        let newest_b = b.newest(own.iter().map(|(_, at)| &b.lines[*at]));
        let newest = usize::from(newest_b > newest_a);
        // Everything after the last common entry of B is its branch: it stays in one piece.
        let (last_common, before) = fork;
        // Clients take the last tip in file order (LEAF-1), so the newer branch must end the file.
        let end = match newest {
            0 => last_common,
            _ => a.lines.len().checked_sub(1),
        };
        own[before..]
            .iter_mut()
            .for_each(|(anchor, _)| *anchor = end);
        own.sort_by_key(|(anchor, at)| (*anchor, *at));
        let sum = |file: &InputFile, lines: &mut dyn Iterator<Item = usize>| -> u64 {
            lines.map(|at| file.lines[at].entries.len() as u64).sum()
        };
        let split = |wanted: bool| (0..a.lines.len()).filter(move |at| is_common[*at] == wanted);
        let counts = [
            sum(a, &mut split.clone()(true)),
            sum(a, &mut split(false)),
            sum(b, &mut own.iter().map(|(_, at)| *at)),
        ];
        Self {
            parts: with_others(parts(a.lines.len(), &own), &instead),
            newest,
            both: counts[0],
            own: [counts[1], counts[2]],
        }
    }

    /// Writes the lines. Returns whether the last one ends with a newline.
    fn write(
        &self,
        files: &[InputFile; 2],
        out: &mut NewFile,
        failed: &dyn Fn(io::Error) -> Error,
    ) -> Result<bool, Error> {
        let mut out = BufWriter::with_capacity(BLOCK_SIZE, out);
        let mut last = b'\n';
        for (file, lines) in &self.parts {
            let lines = &files[*file].lines[lines.clone()];
            let (Some(first), Some(end)) = (lines.first(), lines.last()) else {
                continue;
            };
            // After a torn last line; without a newline the next line would be damaged, too.
            if last != b'\n' {
                out.write_all(b"\n").map_err(failed)?;
            }
            let source = files[*file].history.source();
            let read = source.each_block(first.start..end.end, BLOCK_SIZE, |_, bytes| {
                last = bytes[bytes.len() - 1];
                out.write_all(bytes).map_err(failed)
            })?;
            if read < end.end {
                return Err(failed(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        out.flush().map_err(failed)?;
        Ok(last == b'\n')
    }
}

/// Returns the lines of A, and those of B after their anchors.
fn parts(lines_of_a: usize, own: &[(Option<usize>, usize)]) -> Vec<(usize, Range<usize>)> {
    let mut parts: Vec<(usize, Range<usize>)> = Vec::new();
    let mut written = 0;
    for (anchor, at) in own {
        let until = anchor.map_or(0, |anchor| anchor + 1);
        if until > written {
            parts.push((0, written..until));
            written = until;
        }
        match parts.last_mut() {
            Some((1, range)) if range.end == *at => range.end += 1,
            _ => parts.push((1, *at..*at + 1)),
        }
    }
    parts.push((0, written..lines_of_a));
    parts
}

/// Puts lines of B in the place of lines of A.
fn with_others(
    parts: Vec<(usize, Range<usize>)>,
    instead: &BTreeMap<usize, usize>,
) -> Vec<(usize, Range<usize>)> {
    let mut all = Vec::new();
    for (file, mut range) in parts {
        if file == 0 {
            for (at, other) in instead.range(range.clone()) {
                all.push((0, range.start..*at));
                all.push((1, *other..*other + 1));
                range.start = at + 1;
            }
        }
        all.push((file, range));
    }
    all
}

/// Returns the uuid of the end of the conversation.
fn leaf_of(history: &History, policy: Policy) -> Option<String> {
    let index = history.index();
    let leaf = history.tree(policy).path().leaf?;
    Some(index.id_text(index.entry(leaf).uuid()?))
}

fn conflicts(files: &[InputFile; 2]) -> Vec<Conflict> {
    let [a, b] = files;
    let of = |file: &InputFile| -> Vec<(IdKey, usize)> {
        let mut all = Vec::new();
        for (at, line) in file.lines.iter().enumerate() {
            let ids = file.entries(line).filter_map(|entry| entry.uuid());
            all.extend(ids.map(|id| (file.key(id), at)));
        }
        all
    };
    let mut in_a: HashMap<IdKey, Vec<usize>> = HashMap::new();
    for (key, at) in of(a) {
        in_a.entry(key).or_default().push(at);
    }
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for (key, at) in of(b) {
        let line = &b.lines[at];
        let Some(places) = in_a.get(&key) else {
            continue;
        };
        let is_same = places.iter().any(|place| a.lines[*place].hash == line.hash);
        // A line that B repeats is one conflict.
        if !is_same && seen.insert(line.hash) {
            found.push(Conflict {
                uuid: match key {
                    IdKey::Uuid(uuid) => Uuid(uuid).to_string(),
                    IdKey::Odd(text) => text,
                },
                line_a: places[0] as u64 + 1,
                line_b: at as u64 + 1,
            });
        }
    }
    found
}

/// The copies to make, as source and target, and the files that are not copied.
type SideFiles = (Vec<(PathBuf, PathBuf)>, Vec<NotCopied>);

/// Returns the copies to make, as source and target: the side files of both sessions. A file that continues
/// that of the other session counts alone. Also returns the files that are not copied.
fn side_files(
    disk: &dyn ReadDisk,
    sessions: [&Path; 2],
    other: &dyn Disk,
    out: &Path,
) -> Result<SideFiles, Error> {
    let folders = sessions.map(|path| path.with_extension(""));
    let target = out.with_extension("");
    let failed = |error| Error::io(ErrorKind::Fork, &target, error);
    let (mut names, mut not_copied) = (BTreeSet::new(), Vec::new());
    for folder in &folders {
        collect(disk, folder, &mut names, &mut not_copied).map_err(failed)?;
    }
    let (mut files, mut differ) = (Vec::new(), Vec::new());
    for name in names {
        let [of_a, of_b] = folders.each_ref().map(|folder| folder.join(&name));
        // A link has one of the names perhaps, and is not read.
        let len = |path: &Path| len_on(disk, path);
        let from = match (len(&of_a), len(&of_b)) {
            (Some(a), Some(b)) => {
                if !copying::is_prefix((disk, &of_a), (disk, &of_b)).map_err(failed)? {
                    differ.extend([of_a, of_b]);
                    continue;
                }
                if a >= b { of_a } else { of_b }
            }
            (Some(_), None) => of_a,
            (None, _) => of_b,
        };
        let to = target.join(&name);
        let is_taken = other.has_name(&to);
        // A merge that was killed may have left its own copy there: the same bytes are not a conflict.
        if is_taken
            && !(len_on(other, &to) == len(&from)
                && copying::is_prefix((disk, &from), (other, &to)).map_err(failed)?)
        {
            differ.extend([from, to]);
            continue;
        }
        if !is_taken {
            let base = out.parent().unwrap_or(Path::new(""));
            match check_folders(other, base, &to).map_err(failed)? {
                Ok(()) => files.push((from, to)),
                Err(refusal) => not_copied.push(NotCopied {
                    path: from,
                    refusal,
                }),
            }
        }
    }
    if differ.is_empty() {
        Ok((files, not_copied))
    } else {
        Err(Error::side_files(out, differ))
    }
}

/// Returns the length of a regular file.
fn len_on(disk: &dyn ReadDisk, path: &Path) -> Option<u64> {
    let found = disk.link_metadata(path).ok()?;
    found.is_file().then_some(found.len)
}

/// Collects the names of the files below a folder, and what is not copied.
fn collect(
    disk: &dyn ReadDisk,
    root: &Path,
    names: &mut BTreeSet<PathBuf>,
    not_copied: &mut Vec<NotCopied>,
) -> io::Result<()> {
    disk.layout().walk_all(disk, root, &mut |found| {
        let path = match found {
            SideFile::File(path, _) | SideFile::Folder(path) => path,
            SideFile::Problem(_, error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error);
            }
            _ => return Ok(false),
        };
        let name = path.strip_prefix(root).map_err(io::Error::other)?;
        match copying::checked(disk, path, name)? {
            Err(refusal) => not_copied.push(NotCopied {
                path: path.to_owned(),
                refusal,
            }),
            Ok(found) if found.is_folder() => return Ok(true),
            Ok(_) => _ = names.insert(name.to_owned()),
        }
        Ok(false)
    })
}

fn write_side_file(
    from: (&dyn ReadDisk, &Path),
    to: (&dyn Disk, &Path),
    made: &mut CreatedFiles<'_>,
) -> io::Result<()> {
    made.create_folder(folder_of(to.1))?;
    copying::copy_bytes(from, to)?;
    made.add(to.1);
    Ok(())
}
