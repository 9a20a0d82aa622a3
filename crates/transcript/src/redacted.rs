//! Files without their secrets, for everything that reads sessions to hand them on.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use transcript_format::redact::{LONGEST, Redactor, mask};
use transcript_storage::{Entries, Metadata, ReadDisk, ReadFile};

/// The size of the pieces in which a file is searched.
const PIECE: u64 = 1 << 20;
/// What precedes a secret decides as well: the number of bytes of it that are read.
const BEFORE: u64 = 128;

/// A disk that shows another one, on which text of the same length replaces secrets: every offset is what it was, and
/// whatever is made of a file, in any format, lacks the same.
///
/// A file is searched when it is opened, and what is appended to it later is not shown.
pub struct RedactedDisk {
    disk: Arc<dyn ReadDisk>,
    redactor: Redactor,
    files: Mutex<BTreeMap<PathBuf, Arc<Searched>>>,
}

/// What was redacted: the kind and the place, never the value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Redaction {
    /// The file.
    pub path: PathBuf,
    /// The number of the line, from 1.
    pub line: u64,
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// What it is, in words, such as `an AWS access key id`.
    pub kind: &'static str,
}

/// What is redacted of a file of this length.
struct Searched {
    len: u64,
    places: Vec<Found>,
}

struct Found {
    line: u64,
    offset: u64,
    len: u64,
    kind: &'static str,
}

impl Found {
    fn end(&self) -> u64 {
        self.offset + self.len
    }
}

impl fmt::Debug for RedactedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedactedDisk").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RedactedDisk {
    /// Shows `disk` without what `redactor` finds.
    #[must_use]
    pub fn new(disk: Arc<dyn ReadDisk>, redactor: Redactor) -> Self {
        Self {
            disk,
            redactor,
            files: Mutex::default(),
        }
    }

    /// Returns what was redacted in the files that were opened, by file and offset.
    #[must_use]
    pub fn redactions(&self) -> Vec<Redaction> {
        let files = lock(&self.files);
        let redactions = files.iter().flat_map(|(path, searched)| {
            searched.places.iter().map(|found| Redaction {
                path: path.clone(),
                line: found.line,
                offset: found.offset,
                len: found.len,
                kind: found.kind,
            })
        });
        redactions.collect()
    }

    fn search(&self, file: &dyn ReadFile) -> io::Result<Searched> {
        let len = file.metadata()?.len;
        let pieces = len.div_ceil(PIECE);
        let next = AtomicU64::new(0);
        let done = Mutex::new(BTreeMap::new());
        let work = || -> io::Result<()> {
            let mut buffer = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= pieces {
                    return Ok(());
                }
                let piece = self.search_piece(file, number * PIECE, len, &mut buffer)?;
                lock(&done).insert(number, piece);
            }
        };
        let threads = match pieces {
            0..4 => 1,
            _ => thread::available_parallelism().map_or(1, usize::from),
        };
        let failed = Mutex::new(None);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    if let Err(error) = work() {
                        *lock(&failed) = Some(error);
                    }
                });
            }
        });
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let mut places: Vec<Found> = Vec::new();
        let mut lines = 1;
        for (feeds, found) in done
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .into_values()
        {
            for mut found in found {
                found.line += lines;
                match places.last_mut() {
                    // It starts in the piece before, or in both.
                    Some(last) if found.offset < last.end() => {
                        last.len = last.end().max(found.end()) - last.offset;
                    }
                    _ => places.push(found),
                }
            }
            lines += feeds;
        }
        Ok(Searched { len, places })
    }

    /// Returns the number of line feeds in a piece, and what starts in it, with the number of line feeds before that.
    fn search_piece(
        &self,
        file: &dyn ReadFile,
        start: u64,
        len: u64,
        buffer: &mut Vec<u8>,
    ) -> io::Result<(u64, Vec<Found>)> {
        let from = start.saturating_sub(BEFORE);
        let end = (start + PIECE).min(len);
        let until = (end + LONGEST as u64).min(len);
        buffer.resize((until - from) as usize, 0);
        let read = file.fill(from, buffer)?;
        let bytes = &buffer[..read];
        let piece = (start - from) as usize..((end - from) as usize).min(read);
        let piece = piece.start.min(piece.end)..piece.end;
        let feeds = |until: usize| memchr::memchr_iter(b'\n', &bytes[piece.start..until]).count();
        let found = self.redactor.find(bytes).into_iter();
        let found = found.filter(|place| piece.contains(&place.offset));
        let found = found.map(|place| Found {
            line: feeds(place.offset) as u64,
            offset: from + place.offset as u64,
            len: place.len as u64,
            kind: place.kind,
        });
        let found = found.collect();
        Ok((feeds(piece.end) as u64, found))
    }
}

impl ReadDisk for RedactedDisk {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let file = self.disk.open_to_read(path)?;
        let searched = Arc::new(self.search(&*file)?);
        lock(&self.files).insert(path.to_owned(), Arc::clone(&searched));
        Ok(Arc::new(RedactedFile { file, searched }))
    }

    fn list(&self, folder: &Path) -> io::Result<Entries> {
        self.disk.list(folder)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.disk.metadata(path)
    }

    fn link_metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.disk.link_metadata(path)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.disk.real_path(path)
    }
}

struct RedactedFile {
    file: Arc<dyn ReadFile>,
    searched: Arc<Searched>,
}

impl fmt::Debug for RedactedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedactedFile").finish_non_exhaustive()
    }
}

impl ReadFile for RedactedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.searched.len.saturating_sub(offset);
        let wanted = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = self.file.read_at(offset, &mut buffer[..wanted])?;
        let end = offset + read as u64;
        let places = &self.searched.places;
        let first = places.partition_point(|place| place.end() <= offset);
        for place in places[first..]
            .iter()
            .take_while(|place| place.offset < end)
        {
            let (from, to) = (place.offset.max(offset), place.end().min(end));
            let part = &mut buffer[(from - offset) as usize..(to - offset) as usize];
            mask(part, (from - place.offset) as usize, place.len as usize);
        }
        Ok(read)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        let found = self.file.metadata()?;
        Ok(Metadata {
            len: found.len.min(self.searched.len),
            ..found
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use transcript_storage::RealDisk;

    const SECRET: &str = concat!("gh", "p_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6");

    #[test]
    fn a_file_reads_the_same_in_any_parts_and_no_part_has_a_secret() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let mut text = String::new();
        let mut expected = Vec::new();
        // Some secrets, and one across the end of each piece.
        for line in 0..9_000_u64 {
            let mut filler = "word ".repeat(60 + (line % 37) as usize);
            let at = text.len() as u64 + 9;
            let across = (at / PIECE + 1) * PIECE - 20;
            let is_near = across - at < 2_000;
            if is_near {
                filler = " ".repeat((across - at) as usize);
            }
            text.push_str(&format!("{{\"text\":\"{filler}"));
            if is_near || line % 500 == 0 {
                expected.push((line + 1, text.len() as u64));
                text.push_str(SECRET);
            }
            text.push_str("\"}\n");
        }
        let is_across = |(_, at): &&(u64, u64)| at / PIECE != (at + 39) / PIECE;
        assert!(expected.iter().filter(is_across).count() >= 2);
        std::fs::write(&path, &text).unwrap();
        let disk = RedactedDisk::new(Arc::new(RealDisk), Redactor::new());
        let file = disk.open_to_read(&path).unwrap();
        let found = disk.redactions();
        let places: Vec<_> = found
            .iter()
            .map(|found| (found.line, found.offset))
            .collect();
        assert_eq!(places, expected);
        let mut whole = vec![0; text.len()];
        assert_eq!(file.fill(0, &mut whole).unwrap(), text.len());
        let shown = String::from_utf8(whole).unwrap();
        assert!(!shown.contains("ghp_") && shown.contains("[redacted"));
        assert_eq!(shown.len(), text.len());
        for size in [1, 7, 4_096] {
            for (_, offset) in expected.iter().take(5) {
                let from = offset - 9;
                let mut part = vec![0; 60];
                let mut at = 0;
                while at < part.len() {
                    let end = (at + size).min(part.len());
                    at += file.read_at(from + at as u64, &mut part[at..end]).unwrap();
                }
                assert_eq!(part, &shown.as_bytes()[from as usize..from as usize + 60]);
            }
        }
        // What is appended later was not searched.
        std::fs::write(&path, format!("{text}{SECRET}")).unwrap();
        assert_eq!(file.metadata().unwrap().len, text.len() as u64);
        assert_eq!(file.read_at(text.len() as u64, &mut [0; 9]).unwrap(), 0);
    }
}
