//! A file that grows, and whether it is still the one that was read.

use std::path::Path;
use std::sync::Arc;

use transcript_format::lines::{Framed, Framer, Line};
use transcript_storage::{Content, ReadDisk};

use crate::error::Error;
use crate::source::Source;

/// The size of reads, in bytes.
const CHUNK_SIZE: usize = 256 << 10;

/// A file of which each line is read once, and everything that was read is known again.
///
/// A file that another process rewrites in place keeps its name, its identity and perhaps its length; the entries made
/// of its lines are wrong all the same. So all that was read is [compared](Content) when something happened to the file, and not its
/// ends alone: lines of one session end alike. A reader that comes back to a file, such as an open session or the live page,
/// asks [`change`](Self::change) before the next lines.
///
/// ```
/// use std::path::Path;
/// use std::sync::Arc;
/// use transcript_reader::{FileChange, GrowingFile};
/// use transcript_storage::{Disk, MemoryDisk, ReadDisk};
///
/// let (disk, path) = (MemoryDisk::new(), Path::new("/s.jsonl"));
/// disk.put(path, "{\"a\":1}\n{\"b\":");
/// let shown: Arc<dyn ReadDisk> = Arc::new(disk.clone());
/// let mut file = GrowingFile::open(&shown, path)?;
/// let mut lines = 0;
/// file.read_lines(|_| lines += 1)?;
/// assert_eq!((lines, file.unfinished().is_some()), (1, true));
///
/// let other = disk.open(path, false)?.file;
/// other.append(b"2}\n")?;
/// assert_eq!(file.change(), FileChange::Grown);
/// file.read_lines(|_| lines += 1)?;
/// assert_eq!(lines, 2);
///
/// other.truncate(0)?;
/// other.append(b"{\"a\":9}\n{\"b\":2}\n")?;
/// assert_eq!(file.change(), FileChange::Other);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GrowingFile {
    source: Source,
    content: Content,
    /// Whether the content was found to be replaced.
    is_other: bool,
    framer: Framer,
}

/// The change of a [`GrowingFile`] since it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// No change, as far as the file was compared: each call compares a part of a large file.
    None,
    /// Bytes were appended.
    Grown,
    /// Another file has the name, or the content was replaced: the file must be opened again.
    Other,
    /// No file has the name, or its properties cannot be read. A file may be moved away and back.
    Gone,
}

impl GrowingFile {
    /// Opens `path` on `disk`. Nothing is read yet but the start, by which the format is recognized.
    ///
    /// # Errors
    /// As for [`Source::open`].
    pub fn open(disk: &Arc<dyn ReadDisk>, path: &Path) -> Result<Self, Error> {
        let mut source = Source::open_on(disk, path)?;
        let mut content = Content::start();
        // Properties from before the first read: what happens to the file after it is noticed.
        if let Some(found) = source.refresh()? {
            content.set_seen(found);
        }
        Ok(Self {
            source,
            content,
            is_other: false,
            framer: Framer::new(),
        })
    }

    /// Returns the open file, with its length when it was last read.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns what happened to the file since it was read. One that cannot be compared is another one: opening it again
    /// gives the error.
    pub fn change(&mut self) -> FileChange {
        let source = &self.source;
        let Ok(found) = source.disk().metadata(source.path()) else {
            return FileChange::Gone;
        };
        if !self.is_other && !self.content.is_untouched(&found) {
            let read_at = |at, buffer: &mut [u8]| source.read_at(at, buffer);
            let is_start = self.content.is_start_of(&found, read_at);
            self.is_other = !is_start.unwrap_or(false);
            self.content.set_seen(found);
        }
        if self.is_other {
            FileChange::Other
        } else if found.len > self.content.offset() {
            FileChange::Grown
        } else {
            FileChange::None
        }
    }

    /// Reads the file for [`change`](Self::change), up to its length when it was opened. For a caller that has read its lines
    /// in another way; [`read_lines`](Self::read_lines) still starts with the first one.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn remember(&mut self) -> Result<(), Error> {
        let content = &mut self.content;
        chunks(&self.source, content.offset(), |at, bytes| {
            content.push(at, bytes);
        })
    }

    /// Calls `each` with the lines that were completed since the last call.
    ///
    /// # Errors
    /// When the file cannot be read; the lines before that were read.
    pub fn read_lines(&mut self, mut each: impl FnMut(Framed<'_>)) -> Result<(), Error> {
        self.source.refresh()?;
        let (content, framer) = (&mut self.content, &mut self.framer);
        let start = framer.offset() + framer.pending();
        chunks(&self.source, start, |at, bytes| {
            content.push(at, bytes);
            let mut rest = bytes;
            while let Some(line) = framer.next(&mut rest) {
                each(line);
            }
        })
    }

    /// Returns the line at the end that has no newline yet, as far as it was read.
    #[must_use]
    pub fn unfinished(&self) -> Option<Framed<'_>> {
        let (offset, len) = (self.framer.offset(), self.framer.pending());
        let (bytes, terminated) = (self.framer.partial(), false);
        if len == 0 {
            return None;
        }
        // Of a line above the limit the bytes are not kept.
        Some(if bytes.is_empty() {
            Framed::TooLong {
                offset,
                len,
                terminated,
            }
        } else {
            Framed::Line(Line {
                offset,
                bytes,
                terminated,
            })
        })
    }
}

/// Reads a file from an offset to its end.
fn chunks(source: &Source, start: u64, mut each: impl FnMut(u64, &[u8])) -> Result<(), Error> {
    let left = usize::try_from(source.len().saturating_sub(start)).unwrap_or(CHUNK_SIZE);
    let mut buffer = vec![0; left.min(CHUNK_SIZE)];
    let mut at = start;
    loop {
        let read = source.read_at(at, &mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        each(at, &buffer[..read]);
        at += read as u64;
    }
}
