//! Cache files in the user's cache folder with values about files of sessions, one of each
//! kind for each project folder (docs/search.md).
//!
//! A file starts with a header that names its kind and its folder. Records follow, each with a
//! checksum. A record is about one file of the folder: which file it was, and the results for
//! each piece of it. A later record about the same file replaces it, or continues it. Whatever is
//! not a whole record of this version ends the file: a reader ignores it, and the next writer
//! cuts it off.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use transcript_storage::{Disk, File, Metadata, ReadDisk, ReadFile, RealDisk};

use crate::fuse::mix;

/// The format of a cache file: its magic, its extension, and the formats that it replaced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SidecarKind {
    /// The first bytes of the file. They change with the format.
    pub(crate) magic: &'static str,
    /// The end of its name. If the content of the file cannot be made again, it changes with the format, too, so
    /// that no format is written over another.
    pub(crate) extension: &'static str,
    /// The kinds that it replaced and that are still read, the newest first.
    pub(crate) older: &'static [OlderKind],
}

/// A kind that another one replaced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OlderKind {
    pub(crate) kind: SidecarKind,
    /// Makes a payload of the kind that replaced it; `None` if the payload is damaged.
    pub(crate) convert: fn(&[u8]) -> Option<Vec<u8>>,
}

/// The length and the checksum before a record.
const RECORD_HEADER_LEN: usize = 12;
/// The maximum length of a record, in bytes.
const MAX_RECORD_LEN: usize = 64 << 20;
/// The size of reads, in bytes.
const READ_SIZE: usize = 1 << 20;
/// The maximum length of a header, in bytes.
const MAX_HEADER_LEN: usize = 16 << 10;
/// The minimum length of a file that is worth a rewrite, in bytes.
const MIN_REWRITE_LEN: u64 = 64 << 10;

/// The state of a file in which its filters are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileVersion {
    /// A hash of the identity.
    identity: u64,
    pub(crate) len: u64,
    /// In nanoseconds since 1970; 0 if unknown.
    modified: u64,
    /// The same of the last change of a property. It shows a change even if the time of the content was
    /// set to what it was.
    changed: u64,
}

impl FileVersion {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            identity: hash(&metadata.identity.to_bytes()),
            len: metadata.len,
            modified: metadata.modified.map_or(0, nanos),
            changed: metadata.changed.map_or(0, nanos),
        }
    }

    /// Returns whether it is the same file, which may have changed.
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

/// Returns the nanoseconds since 1970; 0 for times before it.
fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or_default()
}

/// The cache entry of a part of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The checksum of its bytes.
    pub(crate) content: u64,
    /// The cached value, as its format encodes it.
    pub(crate) payload: Vec<u8>,
}

/// A piece as it is kept in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredPiece<K> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) content: u64,
    pub(crate) kept: K,
}

/// The cache record of one file of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record<P> {
    /// The path in the folder.
    pub(crate) path: Vec<u8>,
    pub(crate) state: FileVersion,
    /// Whether the file had not changed for some time when it was read, so that another change would
    /// have given it another time.
    pub(crate) is_settled: bool,
    /// Whether a line is damaged. Then the pieces are valid in this state only.
    pub(crate) is_damaged: bool,
    /// The checksum of the record that it continues, 0 if it continues none.
    pub(crate) base: u64,
    /// The pieces of the base that start before this offset are kept.
    pub(crate) keep: u64,
    pub(crate) pieces: Vec<P>,
}

impl Record<Piece> {
    /// Appends the record with its frame. Returns its checksum.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> u64 {
        let start = out.len();
        out.extend([0; RECORD_HEADER_LEN]);
        out.extend((self.path.len() as u32).to_le_bytes());
        out.extend(&self.path);
        let FileVersion {
            identity,
            len,
            modified,
            changed,
        } = self.state;
        let flags = u64::from(self.is_settled) | u64::from(self.is_damaged) << 1;
        for number in [
            identity, len, modified, changed, flags, self.base, self.keep,
        ] {
            out.extend(number.to_le_bytes());
        }
        for piece in &self.pieces {
            for number in [piece.start, piece.end, piece.content] {
                out.extend(number.to_le_bytes());
            }
            out.extend((piece.payload.len() as u32).to_le_bytes());
            out.extend(&piece.payload);
        }
        let checksum = hash(&out[start + RECORD_HEADER_LEN..]);
        let len = (out.len() - start - RECORD_HEADER_LEN) as u32;
        out[start..start + 4].copy_from_slice(&len.to_le_bytes());
        out[start + 4..start + RECORD_HEADER_LEN].copy_from_slice(&checksum.to_le_bytes());
        checksum
    }
}

/// Reads the record; `see` converts the payload of each piece to the value that is kept.
fn parse<K>(mut bytes: &[u8], see: &mut impl FnMut(&[u8]) -> K) -> Option<Record<StoredPiece<K>>> {
    let bytes = &mut bytes;
    let path_len = u32::from_le_bytes(split_array(bytes)?) as usize;
    let path = split_slice(bytes, path_len)?.to_vec();
    let [identity, len, modified, changed, flags, base, keep] = numbers(bytes)?;
    let state = FileVersion {
        identity,
        len,
        modified,
        changed,
    };
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let [start, end, content] = numbers(bytes)?;
        let len = u32::from_le_bytes(split_array(bytes)?) as usize;
        // A piece has bytes. Anything else is damage that the checksum did not show.
        if start >= end {
            return None;
        }
        pieces.push(StoredPiece {
            start,
            end,
            content,
            kept: see(split_slice(bytes, len)?),
        });
    }
    Some(Record {
        path,
        state,
        is_settled: flags & 1 == 1,
        is_damaged: flags & 2 == 2,
        base,
        keep,
        pieces,
    })
}

pub(crate) fn numbers<const N: usize>(bytes: &mut &[u8]) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = u64::from_le_bytes(split_array(bytes)?);
    }
    Some(numbers)
}

fn split_array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

fn split_slice<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (first, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(first)
}

/// A record as it was read, with its checksum and its length in the file.
#[derive(Debug)]
pub(crate) struct FoundRecord<P> {
    pub(crate) record: Record<P>,
    pub(crate) checksum: u64,
    /// The bytes that it takes with its frame.
    pub(crate) len: u64,
}

/// The records of a file, in order, by path.
#[derive(Debug)]
pub(crate) struct Records<P> {
    of_paths: HashMap<Vec<u8>, Vec<FoundRecord<P>>>,
    /// The offset after the last of them.
    pub(crate) end: u64,
}

impl<P> Records<P> {
    /// Returns the paths that have records.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.of_paths.keys().map(|path| &**path)
    }

    /// Returns the records that are valid about a path, the newest first: it, the one that it
    /// continues, and so on. Empty if one of them is missing.
    pub(crate) fn chain(&self, path: &[u8]) -> Vec<&FoundRecord<P>> {
        let mut chain: Vec<&FoundRecord<P>> = Vec::new();
        for found in self.of_paths.get(path).into_iter().flatten().rev() {
            let next = chain.last();
            // By checksum and not by position, so that records of two processes can be mixed in one file.
            if next.is_none_or(|next| next.record.base == found.checksum) {
                chain.push(found);
                if found.record.base == 0 {
                    return chain;
                }
            }
        }
        Vec::new()
    }
}

/// A file of records.
#[derive(Debug)]
pub(crate) struct Sidecar {
    kind: SidecarKind,
    path: PathBuf,
    /// The folder that it is about.
    folder: PathBuf,
}

impl Sidecar {
    /// Returns the file in `cache` that is about `folder`.
    pub(crate) fn of(kind: SidecarKind, cache: &Path, folder: &Path) -> Self {
        // A hash, because a path can be longer than a name may be. The header has the path, in case of a collision.
        let name = hash(folder.as_os_str().as_encoded_bytes());
        Self {
            kind,
            path: cache.join(format!("{name:016x}.{}", kind.extension)),
            folder: folder.to_owned(),
        }
    }

    fn header(&self) -> Vec<u8> {
        let folder = self.folder.as_os_str().as_encoded_bytes();
        let mut header = [self.kind.magic.as_bytes(), b"\n", folder, b"\n"].concat();
        let checksum = hash(&header);
        header.extend(checksum.to_le_bytes());
        header
    }

    /// Reads all records; none if there is no such file, or it is about something else.
    pub(crate) fn read<K>(&self, mut see: impl FnMut(&[u8]) -> K) -> Records<StoredPiece<K>> {
        let mut records = Records {
            of_paths: HashMap::new(),
            end: 0,
        };
        // A cache that cannot be read counts as empty, and never fails the search.
        if let Some(file) = open_to_read(&self.path) {
            let _ = self.each(&*file, |bytes, checksum, end| {
                let Some(record) = parse(bytes, &mut see) else {
                    return false;
                };
                let found = FoundRecord {
                    checksum,
                    len: (bytes.len() + RECORD_HEADER_LEN) as u64,
                    record,
                };
                let path = found.record.path.clone();
                records.of_paths.entry(path).or_default().push(found);
                records.end = end;
                true
            });
        }
        records
    }

    /// Passes the bytes of each record, its checksum and where it ends to `see`, until it returns false.
    /// Returns where the last one ends, 0 if the header is not that of this file.
    fn each(
        &self,
        file: &dyn ReadFile,
        mut see: impl FnMut(&[u8], u64, u64) -> bool,
    ) -> io::Result<u64> {
        let header = self.header();
        let size = file.metadata()?.len;
        let mut buffer = vec![0; READ_SIZE.min(usize::try_from(size).unwrap_or(READ_SIZE))];
        let (mut filled, mut at, mut offset) = (0, 0, 0);
        let mut read_to = 0;
        let mut needed = header.len();
        let mut is_first = true;
        loop {
            while filled - at < needed {
                buffer.copy_within(at..filled, 0);
                (filled, at) = (filled - at, 0);
                if needed > buffer.len() {
                    buffer.resize(needed, 0);
                }
                let read = file.read_at(read_to, &mut buffer[filled..])?;
                if read == 0 {
                    return Ok(offset);
                }
                filled += read;
                read_to += read as u64;
            }
            if is_first {
                if buffer[..header.len()] != header {
                    return Ok(0);
                }
                (is_first, at, offset, needed) =
                    (false, header.len(), header.len() as u64, RECORD_HEADER_LEN);
                continue;
            }
            let mut bytes = &buffer[at..filled];
            let (Some(len), Some(checksum)) = (split_array(&mut bytes), split_array(&mut bytes))
            else {
                return Ok(offset);
            };
            let (len, checksum) = (
                u32::from_le_bytes(len) as usize,
                u64::from_le_bytes(checksum),
            );
            let end = offset + (RECORD_HEADER_LEN + len) as u64;
            // No room is made for a length that is not true.
            if len > MAX_RECORD_LEN || end > size {
                return Ok(offset);
            }
            let Some(record) = bytes.get(..len) else {
                needed = RECORD_HEADER_LEN + len;
                continue;
            };
            // Records after a damaged one are not used, because their offsets are not certain.
            if hash(record) != checksum || !see(record, checksum, end) {
                return Ok(offset);
            }
            (at, offset, needed) = (at + RECORD_HEADER_LEN + len, end, RECORD_HEADER_LEN);
        }
    }

    /// Appends records. `known` is where the records end as far as the caller knows; it is where they end
    /// afterwards. If another process writes at this moment, nothing is written.
    pub(crate) fn append(&self, known: &mut u64, bytes: &[u8]) -> io::Result<()> {
        let Some(file) = self.open_to_write()? else {
            return Ok(());
        };
        let len = file.metadata()?.len;
        if *known == 0 || len != *known {
            // Another process has written, or the end is damaged.
            // Appending after a damaged end would hide all new records.
            *known = self.each(&*file, |_, _, _| true)?;
            file.truncate(*known)?;
        }
        let header = if *known == 0 {
            self.header()
        } else {
            Vec::new()
        };
        let written = append_all(&*file, &header).and_then(|()| append_all(&*file, bytes));
        if written.is_err() {
            // The disk is full: the old records are kept.
            file.truncate(*known)?;
        } else {
            *known += (header.len() + bytes.len()) as u64;
        }
        written
    }

    /// Writes the file again without the records that were replaced, or whose file is gone, if they
    /// are more than half of it. `is_known` says of a path that its file is there.
    pub(crate) fn shrink(
        &self,
        disk: &dyn ReadDisk,
        is_known: impl Fn(&[u8]) -> bool,
    ) -> io::Result<()> {
        let records = self.read(|_| ());
        let mut kept: Vec<u64> = Vec::new();
        let mut len = 0;
        for path in records.of_paths.keys() {
            if !is_known(path) && !self.has(disk, path) {
                continue;
            }
            for found in records.chain(path) {
                kept.push(found.checksum);
                len += found.len;
            }
        }
        // The caller counts only the files of this search; files of other sessions in the folder are valid, too.
        if records.end < MIN_REWRITE_LEN || 2 * len > records.end {
            return Ok(());
        }
        kept.sort_unstable();
        let Some(file) = self.open_to_write()? else {
            return Ok(());
        };
        let mut bytes = self.header();
        self.each(&*file, |record, checksum, _| {
            // Of two that are the same, one is enough.
            if let Ok(at) = kept.binary_search(&checksum) {
                kept.remove(at);
                bytes.extend((record.len() as u32).to_le_bytes());
                bytes.extend(checksum.to_le_bytes());
                bytes.extend(record);
            }
            true
        })?;
        // A crash leaves a shorter file, whose lost records are made again.
        file.truncate(0)?;
        append_all(&*file, &bytes)
    }

    fn has(&self, disk: &dyn ReadDisk, path: &[u8]) -> bool {
        let path = std::str::from_utf8(path).map(|path| self.folder.join(path));
        path.is_ok_and(|path| disk.metadata(&path).is_ok())
    }

    /// Writes the file with these bytes of records, whatever they are.
    #[cfg(test)]
    pub(crate) fn write_all(&self, records: &[u8]) {
        std::fs::write(&self.path, [&self.header(), records].concat()).unwrap();
    }

    #[cfg(test)]
    pub(crate) fn read_all(&self) -> Vec<u8> {
        std::fs::read(&self.path).unwrap()
    }

    /// Creates the folder and the file if they are missing.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn check_writable(&self) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            RealDisk.create_folder(folder)?;
        }
        RealDisk.open_cache(&self.path).map(drop)
    }

    /// Opens the file and locks it; `None` if it is locked.
    fn open_to_write(&self) -> io::Result<Option<Arc<dyn File>>> {
        let file = RealDisk.open_cache(&self.path)?;
        // Not waited for: another process writes the cache, and this search only reads it next time.
        let is_locked = file.try_lock().unwrap_or(false);
        Ok(is_locked.then_some(file))
    }

    /// Removes the files next to this one that are about folders which are gone, and those of other versions.
    pub(crate) fn remove_gone(&self, disk: &dyn ReadDisk) {
        let cache = self.cache();
        let current = Self::all(self.kind, cache).into_iter();
        let gone = current.filter(|(_, sidecar)| {
            let folder = sidecar.as_ref().map(|sidecar| &sidecar.folder);
            folder.is_none_or(|folder| !disk.is_folder(folder))
        });
        let older = self.kind.older.iter();
        let older = older.flat_map(|older| Self::all(older.kind, cache));
        for (path, _) in gone.chain(older) {
            // Another process may have removed it.
            let _ = RealDisk.remove(&path);
        }
    }

    /// Returns the files of older kinds about the same folder, the newest first, whether they are there or not.
    pub(crate) fn older(&self) -> impl Iterator<Item = (Self, &'static OlderKind)> {
        let older = self.kind.older.iter();
        older.map(|older| (Self::of(older.kind, self.cache(), &self.folder), older))
    }

    fn cache(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Returns the files of a kind in `cache`; with `None` those that are of another version.
    pub(crate) fn all(kind: SidecarKind, cache: &Path) -> Vec<(PathBuf, Option<Self>)> {
        let entries = RealDisk.list(cache).into_iter().flatten().flatten();
        let paths = entries.map(|entry| cache.join(entry.name));
        let is_of_kind = |path: &PathBuf| {
            let extension = path.extension();
            extension.is_some_and(|extension| extension == kind.extension)
        };
        let read = |path: PathBuf| {
            let mut start = vec![0; MAX_HEADER_LEN];
            let read = open_to_read(&path)?.fill(0, &mut start).ok()?;
            start.truncate(read);
            let mut lines = start.splitn(3, |byte| *byte == b'\n');
            let folder = lines.nth(1);
            let folder = folder.and_then(|folder| std::str::from_utf8(folder).ok());
            let sidecar = folder.map(|folder| Self::of(kind, cache, Path::new(folder)));
            let sidecar = sidecar
                .filter(|sidecar| sidecar.path == path && start.starts_with(&sidecar.header()));
            Some((path, sidecar))
        };
        paths.filter(is_of_kind).filter_map(read).collect()
    }

    /// Returns the folder that it is about.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

fn open_to_read(path: &Path) -> Option<Arc<dyn ReadFile>> {
    let found = RealDisk.link_metadata(path);
    // A link, or a pipe that never ends, in the cache folder is not read.
    let is_file = found.is_ok_and(|found| found.is_file());
    is_file.then(|| RealDisk.open_to_read(path).ok())?
}

fn append_all(file: &dyn File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.append(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A checksum: whatever changes in the bytes changes it. Others than us may choose the bytes, but not to
/// gain anything.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    const LANE_KEYS: [u64; 4] = [
        0x2D35_8DCC_AA6C_78A5,
        0x8BB8_4B93_962E_ACC9,
        0x4B33_A62E_D433_D4A3,
        0x4D5A_2DA5_1DE1_AA47,
    ];
    let mut lanes = [bytes.len() as u64, !(bytes.len() as u64)];
    let mut add = |chunk: &[u8; 32]| {
        let (words, _) = chunk.as_chunks::<8>();
        let word = |at: usize| u64::from_le_bytes(words[at]) ^ LANE_KEYS[at];
        let (a, b, c, d) = (word(0), word(1), word(2), word(3));
        lanes[0] = mix(a ^ lanes[0], b).wrapping_add(a);
        lanes[1] = mix(c ^ lanes[1], d).wrapping_add(c);
    };
    let (chunks, rest) = bytes.as_chunks::<32>();
    chunks.iter().for_each(&mut add);
    let mut last = [0; 32];
    last[..rest.len()].copy_from_slice(rest);
    add(&last);
    mix(lanes[0] ^ LANE_KEYS[0], lanes[1] ^ LANE_KEYS[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record<Piece> {
        let piece = |start: u64| Piece {
            start,
            end: start + 100,
            content: 7,
            payload: vec![1, 2, 3, 4, 2, 0, 1, 0, 5, 6, 7, 8, 9, 10, 11, 12],
        };
        Record {
            path: b"s.jsonl".to_vec(),
            state: FileVersion {
                identity: 1,
                len: 200,
                modified: 2,
                changed: 3,
            },
            is_settled: true,
            is_damaged: false,
            base: 0,
            keep: 0,
            pieces: vec![piece(0), piece(100)],
        }
    }

    /// A process that can write the file can also write the right checksum.
    #[test]
    fn lies_with_the_right_checksum_are_parsed_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let kind = SidecarKind {
            magic: "test",
            extension: "test",
            older: &[],
        };
        let sidecar = Sidecar::of(kind, folder.path(), Path::new("/p"));
        let mut framed = Vec::new();
        record().write(&mut framed);
        let see = |filter: &[u8]| {
            let filter = crate::fuse::Filter::of(filter);
            let found =
                (0..100).filter(|number| filter.is_some_and(|filter| filter.may_have(*number)));
            assert!(found.count() <= 100);
        };
        let read = |body: &[u8], len: u32| {
            let frame = [&len.to_le_bytes()[..], &hash(body).to_le_bytes(), body].concat();
            std::fs::write(&sidecar.path, [sidecar.header(), frame].concat()).unwrap();
            sidecar.read(see).chain(b"s.jsonl").len()
        };
        let body = &framed[RECORD_HEADER_LEN..];
        assert_eq!(read(body, body.len() as u32), 1);
        for at in 0..body.len() {
            for value in [0, 1, 18, 0x7F, 0xFF] {
                let mut changed = body.to_vec();
                changed[at] = value;
                read(&changed, changed.len() as u32);
            }
            read(&body[..at], at as u32);
        }
        for len in [0, 1, body.len() as u32 + 1, MAX_RECORD_LEN as u32, u32::MAX] {
            assert_eq!(read(body, len), 0, "{len}");
        }
    }
}
