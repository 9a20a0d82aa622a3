//! Files without their secrets, for everything that reads sessions to show them to others.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use transcript_storage::{
    Entries, Identity, LocalDisk, Metadata, ReadDisk, ReadFile, Reporter, SessionLayout,
};

use crate::Redactor;
use crate::mask::mask;
use crate::scan::{Content, Located, Options, Scan, scan};

/// A disk that shows another one, on which masks replace secrets: whatever is made of a file, in any format, lacks
/// the same.
///
/// Lines keep their numbers. Offsets are those of the file as it is shown, in which each line is as long as its masks
/// make it.
pub struct RedactedDisk {
    disk: Arc<dyn ReadDisk>,
    redactor: Redactor,
    is_live: bool,
    files: Mutex<BTreeMap<PathBuf, Arc<SharedRedaction>>>,
}

/// A redacted secret: its kind and its position in the original file, never its value.
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
    /// Its kind for people, such as `GitHub token`.
    pub kind: &'static str,
}

/// The redactions of a session, the values that were left, and the size of the searched files.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Redactions {
    /// The redacted secrets, by file and offset.
    pub secrets: Vec<Redaction>,
    /// Values that look like secrets and were left.
    pub left: Vec<Redaction>,
    /// The number of e-mail addresses that were left.
    pub emails: u64,
    /// The number of names in paths that were left.
    pub homes: u64,
    /// The number of files that were searched.
    pub files: usize,
    /// The number of their lines.
    pub lines: u64,
    /// The number of their bytes.
    pub bytes: u64,
}

/// Redactions of one kind in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindInFile<'r> {
    /// Their kind for people.
    pub kind: &'static str,
    /// The file.
    pub path: &'r Path,
    /// Their number.
    pub count: usize,
    /// The numbers of their lines, in order, each once.
    pub lines: Vec<u64>,
}

/// Groups redactions by kind and file, the most frequent first.
#[must_use]
pub fn by_kind(redactions: &[Redaction]) -> Vec<KindInFile<'_>> {
    let mut groups: BTreeMap<(&'static str, &Path), KindInFile<'_>> = BTreeMap::new();
    for found in redactions {
        let (kind, path) = (found.kind, found.path.as_path());
        let group = groups.entry((kind, path)).or_insert_with(|| KindInFile {
            kind,
            path,
            count: 0,
            lines: Vec::new(),
        });
        group.count += 1;
        if group.lines.last() != Some(&found.line) {
            group.lines.push(found.line);
        }
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups
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
    /// Shows `disk` without the secrets that `redactor` finds. A file is searched when it is opened, and bytes that are appended
    /// later are not shown.
    #[must_use]
    pub fn new(disk: Arc<dyn ReadDisk>, redactor: Redactor) -> Self {
        Self {
            disk,
            redactor,
            is_live: false,
            files: Mutex::default(),
        }
    }

    /// The same, which also shows bytes that are appended to a file later.
    #[must_use]
    pub fn live(disk: Arc<dyn ReadDisk>, redactor: Redactor) -> Self {
        Self {
            is_live: true,
            ..Self::new(disk, redactor)
        }
    }

    /// Returns the redactions in the files that were opened.
    #[must_use]
    pub fn redactions(&self) -> Redactions {
        let files = lock(&self.files);
        let mut all = Redactions::default();
        for (path, shared) in &*files {
            let shown = shared.get();
            let redaction = |found: &Located| Redaction {
                path: path.clone(),
                line: found.line,
                offset: found.offset,
                len: found.len,
                kind: found.kind,
            };
            all.secrets.extend(shown.scan.secrets.iter().map(redaction));
            all.left.extend(shown.scan.left.iter().map(redaction));
            all.emails += shown.scan.emails;
            all.homes += shown.scan.homes;
            all.files += 1;
            // A last line without a line feed is a line, too.
            all.lines += shown.scan.lines + u64::from(!shown.ends_line);
            all.bytes += shown.scan.bytes;
        }
        all
    }

    /// Returns the redacted content of a file, and searches the file if it was not opened before.
    fn shared(
        &self,
        path: &Path,
        file: &dyn ReadFile,
        found: &Metadata,
    ) -> io::Result<Arc<SharedRedaction>> {
        let known = lock(&self.files).get(path).map(Arc::clone);
        if let Some(known) = known.filter(|known| known.get().identity == found.identity) {
            let shown = known.get();
            // Nothing has changed, or an end that is not shown was added.
            let is_same = shown.scan.bytes == found.len && shown.modified == found.modified;
            if self.is_live || is_same {
                known.look(&self.redactor, file, found)?;
                return Ok(known);
            }
        }
        let content = Content::of(path);
        let shown = RedactedContent::new(&self.redactor, file, content, found, None)?;
        let shown = Mutex::new(Arc::new(shown));
        let shared = Arc::new(SharedRedaction { content, shown });
        lock(&self.files).insert(path.to_owned(), Arc::clone(&shared));
        Ok(shared)
    }

    /// Returns properties with the length that is shown, if the file was opened before.
    fn with_shown_len(&self, path: &Path, found: Metadata) -> io::Result<Metadata> {
        let known = lock(&self.files).get(path).map(Arc::clone);
        let Some(known) = known.filter(|known| known.get().identity == found.identity) else {
            return Ok(found);
        };
        // The length must be that of the masked text. A caller that trusts the real one would read past the end.
        if self.is_live && known.is_other(&found) {
            let file = self.disk.open_to_read(path)?;
            let found = file.metadata()?;
            known.look(&self.redactor, &*file, &found)?;
        }
        let len = known.get().len_of(found.len);
        Ok(Metadata { len, ..found })
    }
}

/// The redacted content of a file, shared by all its open files.
struct SharedRedaction {
    content: Content,
    shown: Mutex<Arc<RedactedContent>>,
}

impl SharedRedaction {
    fn get(&self) -> Arc<RedactedContent> {
        Arc::clone(&lock(&self.shown))
    }

    fn is_other(&self, found: &Metadata) -> bool {
        let shown = self.get();
        shown.scan.bytes != found.len || shown.modified != found.modified
    }

    /// Searches the file again if it has changed.
    fn look(&self, redactor: &Redactor, file: &dyn ReadFile, found: &Metadata) -> io::Result<()> {
        // Locked during the search: another reader that needs the same part waits instead of searching it as well.
        let mut shown = lock(&self.shown);
        if shown.scan.bytes != found.len || shown.modified != found.modified {
            *shown = Arc::new(RedactedContent::new(
                redactor,
                file,
                self.content,
                found,
                Some(&shown),
            )?);
        }
        Ok(())
    }
}

impl ReadDisk for RedactedDisk {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let file = self.disk.open_to_read(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Ok(file);
        }
        let shared = self.shared(path, &*file, &found)?;
        // An open file that is not live keeps its length: bytes that were not searched are never shown.
        let redactor = self.is_live.then(|| self.redactor.clone());
        Ok(Arc::new(RedactedFile {
            file,
            shared,
            redactor,
        }))
    }

    fn list(&self, folder: &Path) -> io::Result<Entries> {
        let entries = self.disk.list(folder)?;
        // The redacted file has another length, which is known only after a search. So the list has no metadata of files.
        Ok(Box::new(entries.map(|entry| {
            let mut entry = entry?;
            entry.metadata = entry.metadata.filter(|found| !found.is_file());
            Ok(entry)
        })))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.with_shown_len(path, self.disk.metadata(path)?)
    }

    fn local(&self) -> Option<&dyn LocalDisk> {
        self.disk.local().map(|_| self as _)
    }

    fn layout(&self) -> SessionLayout {
        self.disk.layout()
    }

    fn reporter(&self) -> Reporter {
        self.disk.reporter()
    }
}

impl LocalDisk for RedactedDisk {
    fn link_metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.with_shown_len(path, self.disk.link_metadata(path)?)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.disk.real_path(path)
    }
}

/// The redacted content of a file: its masks, and the state for which they are valid.
struct RedactedContent {
    identity: Identity,
    modified: Option<SystemTime>,
    /// The bytes at the end of the file: they are the same if the file has only grown.
    tail: Vec<u8>,
    scan: Scan,
    /// The offset of the last line in the file.
    last_line: u64,
    ends_line: bool,
    /// The masks, by place.
    masks: Vec<Mask>,
}

struct Mask {
    /// The offset in the file after the replaced bytes.
    end: u64,
    /// The offset of the mask in the redacted content.
    shown: u64,
    text: String,
}

impl RedactedContent {
    /// The number of bytes by which a file is recognized that has grown.
    const TAIL_LEN: u64 = 4 << 10;

    /// Searches a file; only the bytes after `known` if nothing else has changed.
    fn new(
        redactor: &Redactor,
        file: &dyn ReadFile,
        content: Content,
        found: &Metadata,
        known: Option<&Self>,
    ) -> io::Result<Self> {
        let tail = |end: u64| -> io::Result<Vec<u8>> {
            let start = end.saturating_sub(Self::TAIL_LEN);
            let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(0)];
            let read = file.fill(start, &mut bytes)?;
            bytes.truncate(read);
            Ok(bytes)
        };
        let known = match known {
            Some(known)
                // A secret in a text can have several lines, so that an addition can complete one. In a line it cannot.
                if content == Content::Lines
                    && known.scan.bytes < found.len
                    && tail(known.scan.bytes)? == known.tail =>
            {
                Some(known)
            }
            _ => None,
        };
        // From the last line on, which may have been incomplete, with half of a secret in it.
        let start = known.map_or(0, |known| known.last_line);
        let read = |offset: u64, buffer: &mut [u8]| file.fill(offset, buffer);
        let options = Options {
            content,
            threads: None,
            counter: None,
        };
        let mut new = scan(redactor.search(), &read, start..found.len, options)?;
        if let Some(known) = known {
            let before = known.scan.lines;
            let shifted = |list: &[Located]| {
                list.iter()
                    .map(|found| Located {
                        line: found.line + before,
                        ..*found
                    })
                    .collect::<Vec<_>>()
            };
            let kept = |list: &[Located]| {
                list.iter()
                    // The last line was searched again, with its secrets.
                    .filter(|found| found.offset < start)
                    .copied()
                    .collect::<Vec<_>>()
            };
            new.secrets = [kept(&known.scan.secrets), shifted(&new.secrets)].concat();
            new.left = [kept(&known.scan.left), shifted(&new.left)].concat();
            new.lines += before;
            // Those of the last line are counted once more, if it had some.
            new.emails += known.scan.emails;
            new.homes += known.scan.homes;
            new.bytes = found.len;
        }
        let last = last_line(file, start, found.len)?;
        Ok(Self {
            identity: found.identity,
            modified: found.modified,
            tail: tail(found.len)?,
            masks: masks(&new.secrets),
            scan: new,
            last_line: last,
            ends_line: last == found.len,
        })
    }

    /// Returns the length of the redacted content of a file of this length.
    fn len_of(&self, len: u64) -> u64 {
        let len = len.min(self.scan.bytes);
        let before = self.masks.partition_point(|mask| mask.end <= len);
        match before.checked_sub(1).map(|last| &self.masks[last]) {
            Some(mask) => mask.shown_end() + (len - mask.end),
            None => len,
        }
    }

    /// Fills a buffer from an offset of the redacted content.
    fn fill(&self, file: &dyn ReadFile, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.len_of(self.scan.bytes);
        let wanted = usize::try_from(len.saturating_sub(offset))
            .map_or(buffer.len(), |left| left.min(buffer.len()));
        let mut done = 0;
        // The first mask that ends behind the offset.
        let mut next = self
            .masks
            .partition_point(|mask| mask.shown_end() <= offset);
        while done < wanted {
            let at = offset + done as u64;
            let mask = self.masks.get(next);
            if let Some(mask) = mask.filter(|mask| mask.shown <= at) {
                let rest = &mask.text.as_bytes()[(at - mask.shown) as usize..];
                let len = rest.len().min(wanted - done);
                buffer[done..done + len].copy_from_slice(&rest[..len]);
                done += len;
                next += usize::from(len == rest.len());
                continue;
            }
            // Between two masks the file itself is read, at the offset that corresponds to the shown one.
            let until = mask.map_or(len, |mask| mask.shown);
            let part =
                usize::try_from(until - at).map_or(wanted - done, |part| part.min(wanted - done));
            let before = next.checked_sub(1).map(|last| &self.masks[last]);
            let in_file = before.map_or(at, |mask| mask.end + (at - mask.shown_end()));
            let read = file.fill(in_file, &mut buffer[done..done + part])?;
            done += read;
            if read < part {
                break;
            }
        }
        Ok(done)
    }
}

impl Mask {
    fn shown_end(&self) -> u64 {
        self.shown + self.text.len() as u64
    }
}

/// Returns the masks of secrets, and where each is shown.
fn masks(secrets: &[Located]) -> Vec<Mask> {
    let (mut in_file, mut in_shown) = (0, 0);
    let masks = secrets.iter().map(|secret| {
        let text = mask(secret.kind, secret.is_bare);
        // Masks have other lengths than secrets, so the difference of both offsets adds up.
        let shown = in_shown + (secret.offset - in_file);
        (in_file, in_shown) = (secret.end(), shown + text.len() as u64);
        Mask {
            end: secret.end(),
            shown,
            text,
        }
    });
    masks.collect()
}

/// Returns where the last line of a file starts: at its end, if a line feed is there.
fn last_line(file: &dyn ReadFile, start: u64, end: u64) -> io::Result<u64> {
    const READ_STEP_LEN: u64 = 64 << 10;
    let mut buffer = Vec::new();
    let mut to = end;
    while to > start {
        // Backwards in steps, because the last line can be long.
        let from = to.saturating_sub(READ_STEP_LEN).max(start);
        buffer.resize((to - from) as usize, 0);
        let read = file.fill(from, &mut buffer)?;
        if let Some(feed) = memchr::memrchr(b'\n', &buffer[..read]) {
            return Ok(from + feed as u64 + 1);
        }
        to = from;
    }
    Ok(start)
}

struct RedactedFile {
    file: Arc<dyn ReadFile>,
    shared: Arc<SharedRedaction>,
    /// Searches appended bytes, if they are shown.
    redactor: Option<Redactor>,
}

impl fmt::Debug for RedactedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedactedFile").finish_non_exhaustive()
    }
}

impl ReadFile for RedactedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.shared.get().fill(&*self.file, offset, buffer)?;
        if read > 0 || buffer.is_empty() || self.redactor.is_none() {
            return Ok(read);
        }
        // There may be more by now.
        self.metadata()?;
        self.shared.get().fill(&*self.file, offset, buffer)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        let found = self.file.metadata()?;
        if let Some(redactor) = &self.redactor {
            self.shared.look(redactor, &*self.file, &found)?;
        }
        let len = self.shared.get().len_of(found.len);
        Ok(Metadata { len, ..found })
    }
}
