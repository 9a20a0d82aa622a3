//! An open transcript file.

use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use transcript_storage::{Metadata, ReadDisk, ReadFile, RealDisk};

use crate::error::{Error, ErrorKind};
use crate::formats;

/// The length of the start of a file that shows its format, in bytes.
const HEAD_LEN: usize = 4096;

/// A regular file, open for reading, with its length at that time; or bytes in memory.
///
/// Nothing is locked and nothing is written. Reads are positioned, so threads can share a source. A
/// clone reads the same open file.
#[derive(Clone, Debug)]
pub struct Source {
    data: Data,
    path: PathBuf,
    len: u64,
    modified: Option<SystemTime>,
}

#[derive(Clone, Debug)]
enum Data {
    File {
        file: Arc<dyn ReadFile>,
        disk: Arc<dyn ReadDisk>,
    },
    Bytes(Arc<[u8]>),
}

impl Source {
    /// Opens `path` without blocking: a pipe, a device or a directory is rejected at once, as is a
    /// file that starts like UTF-16, a compressed file or another binary format.
    ///
    /// # Errors
    ///
    /// Any [`ErrorKind`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_on(&real_disk(), path)
    }

    /// Opens `path` on `disk`, as [`Self::open`] does on the disk of this machine.
    ///
    /// # Errors
    ///
    /// Any [`ErrorKind`].
    pub fn open_on(disk: &Arc<dyn ReadDisk>, path: &Path) -> Result<Self, Error> {
        Self::open_unchecked(disk, path)?.checked()
    }

    /// Opens `path` without reading: the caller passes its start to [`Self::check_start`].
    pub(crate) fn open_unchecked(disk: &Arc<dyn ReadDisk>, path: &Path) -> Result<Self, Error> {
        match disk.open_to_read(path) {
            Ok(file) => Self::of(file, Arc::clone(disk), path),
            // Sockets cannot be opened at all, and folders not on every system.
            Err(_) if disk.metadata(path).is_ok_and(|found| !found.is_file()) => {
                Err(Error::new(ErrorKind::NotAFile, path))
            }
            Err(error) => Err(Error::io(path, None, error)),
        }
    }

    /// Creates a source from an open file of this machine that may have no name; `path` is used in error messages.
    ///
    /// # Errors
    ///
    /// As for [`Self::open`].
    pub fn from_file(file: Arc<dyn ReadFile>, path: &Path) -> Result<Self, Error> {
        Self::of(file, real_disk(), path)?.checked()
    }

    fn of(file: Arc<dyn ReadFile>, disk: Arc<dyn ReadDisk>, path: &Path) -> Result<Self, Error> {
        let metadata = file
            .metadata()
            .map_err(|error| Error::io(path, None, error))?;
        if !metadata.is_file() {
            return Err(Error::new(ErrorKind::NotAFile, path));
        }
        Ok(Self {
            data: Data::File { file, disk },
            path: path.to_owned(),
            len: metadata.len,
            modified: metadata.modified,
        })
    }

    fn checked(self) -> Result<Self, Error> {
        let mut head = [0; HEAD_LEN];
        let read = self.read_at(0, &mut head)?;
        self.check_start(&head[..read])?;
        Ok(self)
    }

    /// Rejects other formats by the start of the file, of which 4 KiB are looked at.
    pub(crate) fn check_start(&self, start: &[u8]) -> Result<(), Error> {
        let head = &start[..start.len().min(HEAD_LEN)];
        let other = match other_format(head) {
            Some(_) if self.holds_an_entry_early()? => None,
            other => other,
        };
        match other_agent(head).or(other) {
            Some(name) => Err(Error::new(ErrorKind::OtherFormat(name), &self.path)),
            None => Ok(()),
        }
    }

    /// Checks that it is a session: that there is an entry, or a part of one, and that the messages have a supported form.
    /// Sessions of Qwen Code look like transcripts, but their messages have `parts` in place of `content`, so no entry could
    /// be shown. Reads up to the first entry. A file in which nothing was written is accepted.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OtherFormat`] with the name of the format, or an I/O error.
    pub fn check_messages(&self) -> Result<(), Error> {
        let mut head = [0; HEAD_LEN];
        let read = self.read_at(0, &mut head)?;
        let dense = dense(&head[..read]);
        let has = |text: &str| memchr::memmem::find(&dense, text.as_bytes()).is_some();
        let holds = |key: &str| {
            let of = |role: &str| has(&format!("\"message\":{{\"role\":\"{role}\",\"{key}\":"));
            ["user", "model", "assistant"].into_iter().any(of)
        };
        // A transcript may contain such a message as data, but then it also has messages of its
        // own.
        if holds("parts") && !holds("content") && !has("\"role\":\"assistant\"") {
            let name = "a Qwen Code session, which transcript does not read yet";
            return Err(Error::new(ErrorKind::OtherFormat(name), &self.path));
        }
        match formats::without_entry(|at, buffer| self.read_at(at, buffer))? {
            Some(name) => Err(Error::new(ErrorKind::OtherFormat(name), &self.path)),
            None => Ok(()),
        }
    }

    /// Creates a source from bytes in memory, such as one line of a file; `path` is used in error
    /// messages.
    #[must_use]
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>, path: &Path) -> Self {
        let bytes = bytes.into();
        Self {
            len: bytes.len() as u64,
            data: Data::Bytes(bytes),
            path: path.to_owned(),
            modified: None,
        }
    }

    /// Sets [`Self::len`] to the current length of the file, and returns its metadata. `None` for
    /// bytes in memory.
    ///
    /// # Errors
    ///
    /// For I/O errors.
    pub fn refresh(&mut self) -> Result<Option<Metadata>, Error> {
        let Data::File { file, .. } = &self.data else {
            return Ok(None);
        };
        let metadata = file.metadata();
        let metadata = metadata.map_err(|error| Error::io(&self.path, None, error))?;
        self.len = metadata.len;
        self.modified = metadata.modified;
        Ok(Some(metadata))
    }

    /// Returns whether a line near the start begins an object. Damage can prepend arbitrary bytes:
    /// a failing disk leaves whole pages of other files.
    fn holds_an_entry_early(&self) -> Result<bool, Error> {
        let mut head = vec![0; 64 << 10];
        let read = self.read_at(0, &mut head)?;
        Ok(memchr::memmem::find(&head[..read], b"\n{\"").is_some())
    }

    /// Returns the disk of the file; for bytes in memory, that of this machine.
    #[must_use]
    pub fn disk(&self) -> Arc<dyn ReadDisk> {
        match &self.data {
            Data::File { disk, .. } => Arc::clone(disk),
            Data::Bytes(_) => real_disk(),
        }
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the length in bytes at the time of opening, or of the last
    /// [`refresh`](Self::refresh).
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the file was empty when it was opened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the modification time at the time of opening, if the system reports one.
    #[must_use]
    pub fn modified(&self) -> Option<SystemTime> {
        self.modified
    }

    /// Fills `buffer` from `offset` on, up to [`Self::len`]. Returns the number of bytes read,
    /// which is smaller than the buffer only at that end, or when the file shrank.
    ///
    /// # Errors
    ///
    /// For I/O errors.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let left = self.len.saturating_sub(offset);
        let wanted = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let mut done = 0;
        while done < wanted {
            let at = offset + done as u64;
            match self.data.read_once(at, &mut buffer[done..wanted]) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io(&self.path, Some(at), error)),
            }
        }
        Ok(done)
    }

    /// Reads the bytes of `range`; fewer where the file ends.
    ///
    /// # Errors
    /// For I/O errors.
    pub fn bytes(&self, range: Range<u64>) -> Result<Vec<u8>, Error> {
        let len = range.end.min(self.len).saturating_sub(range.start);
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        let read = self.read_at(range.start, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Reads the bytes of `range` in blocks of at most `max_len` bytes, and calls `each` with the offset of each block.
    /// Returns where reading ended: earlier if the file is shorter.
    ///
    /// # Errors
    /// For I/O errors, and what `each` returns.
    pub fn each_block<E: From<Error>>(
        &self,
        range: Range<u64>,
        max_len: usize,
        mut each: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let fits = |left: u64| usize::try_from(left).map_or(max_len, |left| left.min(max_len));
        let mut block = vec![0; fits(range.end.saturating_sub(range.start))];
        let mut at = range.start;
        while at < range.end {
            let read = self.read_at(at, &mut block[..fits(range.end - at)])?;
            if read == 0 {
                break;
            }
            each(at, &block[..read])?;
            at += read as u64;
        }
        Ok(at)
    }
}

impl Data {
    fn read_once(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File { file, .. } => file.read_at(offset, buffer),
            Self::Bytes(bytes) => {
                let start = usize::try_from(offset)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                (&bytes[start..]).read(buffer)
            }
        }
    }
}

/// Returns the disk of this machine.
pub(crate) fn real_disk() -> Arc<dyn ReadDisk> {
    Arc::new(RealDisk)
}

/// Returns the head without white space. Quotes within strings have a backslash before them, so a
/// quoted name or value in the result belongs to the object or a nested one, never to the text of a
/// message.
fn dense(head: &[u8]) -> Vec<u8> {
    let is_dense = |byte: &u8| !byte.is_ascii_whitespace();
    head.iter().copied().filter(is_dense).collect()
}

/// Returns the name of the format if the head is that of a session of another agent.
fn other_agent(head: &[u8]) -> Option<&'static str> {
    let looks_like_claude = |head: &[u8]| memchr::memmem::find(head, b"\"parentUuid\":").is_some();
    // The first test of these is the fast path for transcripts.
    if !head.trim_ascii_start().starts_with(b"{") || looks_like_claude(head) {
        return None;
    }
    let dense = dense(head);
    let has = |text: &str| memchr::memmem::find(&dense, text.as_bytes()).is_some();
    const ROLLOUT: [&str; 5] = [
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
    ];
    let is_rollout = |kind: &str| has(&format!("\"type\":\"{kind}\",\"payload\":{{"));
    if looks_like_claude(&dense) {
        None
    } else if ROLLOUT.iter().any(|kind| is_rollout(kind)) {
        Some("a Codex rollout, which transcript does not read yet")
    } else if has("\"projectHash\":\"") && has("\"sessionId\":\"") && has("\"startTime\":\"") {
        Some("a Gemini session, which transcript does not read yet")
    } else {
        None
    }
}

/// Returns the name of the format of a file with this head, if it is not a transcript.
fn other_format(head: &[u8]) -> Option<&'static str> {
    let magics: [(&[u8], &str); 10] = [
        (b"\xFF\xFE", "UTF-16 text"),
        (b"\xFE\xFF", "UTF-16 text"),
        (b"\x1F\x8B", "a gzip file"),
        (b"\x28\xB5\x2F\xFD", "a zstd file"),
        (b"BZh", "a bzip2 file"),
        (b"\xFD7zXZ\0", "an xz file"),
        (b"PK\x03\x04", "a zip file"),
        (b"\x7FELF", "a program"),
        (b"SQLite format 3\0", "a SQLite database"),
        (b"%PDF-", "a PDF"),
    ];
    if let Some((_, name)) = magics.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(name);
    }
    // UTF-16 without a byte order mark: every second byte at the start of an object is NUL.
    if head.starts_with(b"{\0\"\0") || head.starts_with(b"\0{\0\"") {
        return Some("UTF-16 text");
    }
    // NULs can be damage of a power cut; writers of JSON never produce other control bytes.
    let is_strange = |byte: &u8| u8::from(matches!(byte, 1..=8 | 14..=31));
    // Sums of bytes are vectorized, and 255 of them do not overflow.
    let sums = head
        .chunks(255)
        .map(|part| part.iter().map(is_strange).sum::<u8>());
    let strange: usize = sums.map(usize::from).sum();
    (strange * 16 > head.len()).then_some("binary data")
}
