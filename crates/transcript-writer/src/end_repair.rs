//! Repairs the end of a file, as a kill or a full disk leaves it, when the file is opened.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use memchr::memrchr;
use transcript_format::kind::SystemKind;
use transcript_format::lines::DEFAULT_LINE_CAP;
use transcript_format::object::Object;
use transcript_format::salvage;
use transcript_format::scan::Scanner;
use transcript_storage::{Disk, File};

/// The repair of the end of a file when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repair {
    /// The last line was complete except for its newline, which was added.
    Completed {
        /// The offset of the line.
        offset: u64,
    },
    /// The last line was torn, or lines of a compaction were missing. The bytes were saved in a
    /// file next to it and truncated.
    Cut {
        /// The offset at which they started.
        offset: u64,
        /// The length in bytes.
        len: u64,
        /// The file with the bytes.
        saved: PathBuf,
    },
    /// The last line was damaged and was kept as it is. It ends with a newline now, or gets one
    /// with the next write.
    Sealed {
        /// The offset of the line.
        offset: u64,
        /// Its length in bytes, without the newline.
        len: u64,
        /// The reason why it was not truncated.
        why: KeptReason,
    },
}

/// The reason why a damaged last line was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeptReason {
    /// Another process may still be writing it.
    OtherWriter,
    /// It contains a complete entry.
    HoldsEntry,
    /// It is longer than any line that readers accept, 64 MiB, and a copy could fill the disk.
    TooLong,
    /// The system did not allow saving its bytes to another file, or truncating.
    Failed(io::ErrorKind),
}

impl Repair {
    /// Returns the offset of the first byte that was repaired.
    #[must_use]
    pub fn offset(&self) -> u64 {
        match self {
            Self::Completed { offset } | Self::Cut { offset, .. } | Self::Sealed { offset, .. } => {
                *offset
            }
        }
    }
}

pub(crate) struct EndRepair {
    /// The length of the file.
    pub(crate) len: u64,
    /// Whether the file ends with a newline or is empty; otherwise the next write must start with a
    /// newline.
    pub(crate) is_ended: bool,
    pub(crate) repair: Option<Repair>,
}

impl EndRepair {
    fn ended(len: u64, repair: Option<Repair>) -> Self {
        Self {
            len,
            is_ended: true,
            repair,
        }
    }
}

/// The time in which the length of the file must not change, without a lease to detect other writers.
const MIN_STABLE_TIME: Duration = Duration::from_millis(250);

const BLOCK_SIZE: u64 = 64 << 10;

/// The maximum length of a line that is searched, in bytes. Readers skip longer ones.
const MAX_SEARCHED_LINE: u64 = DEFAULT_LINE_CAP as u64;

/// Makes the file end with a newline. The caller holds the lock; `is_only_writer` is whether no other
/// process has the file open for writing, if known.
///
/// A damaged line never prevents opening the file: a line that cannot be truncated is kept, and one
/// that cannot be terminated now is terminated by the next write.
pub(crate) fn repair_end(
    file: &dyn File,
    disk: &dyn Disk,
    path: &Path,
    is_only_writer: Option<bool>,
) -> io::Result<EndRepair> {
    let len = file.status()?.len;
    let tail = last_line(file, len)?;
    if len - tail > MAX_SEARCHED_LINE {
        return end_line(file, len, sealed(tail..len, KeptReason::TooLong));
    }
    let line = read(file, tail, len)?;
    let is_whole = Scanner::new().scan(&line).is_ok();
    let batch = torn_batch(file, tail, &line, is_whole)?;
    if batch.is_none() && tail == len {
        return Ok(EndRepair::ended(len, None));
    }
    if batch.is_none() && is_whole {
        return end_line(file, len, Repair::Completed { offset: tail });
    }
    let start = batch.unwrap_or(tail);
    let why = if batch.is_none() && has_entry(&line) {
        KeptReason::HoldsEntry
    } else if !is_only_writer.map_or_else(|| is_stable(file, len), Ok)? {
        KeptReason::OtherWriter
    } else {
        drop(line);
        match cut(file, disk, path, start..len)? {
            Ok(repair) => return Ok(EndRepair::ended(start, Some(repair))),
            Err(why) => why,
        }
    };
    let repair = sealed(start..len, why);
    if tail == len {
        return Ok(EndRepair::ended(len, Some(repair)));
    }
    end_line(file, len, repair)
}

fn sealed(line: Range<u64>, why: KeptReason) -> Repair {
    Repair::Sealed {
        offset: line.start,
        len: line.end - line.start,
        why,
    }
}

/// Adds a newline, now or with the next write.
fn end_line(file: &dyn File, len: u64, repair: Repair) -> io::Result<EndRepair> {
    let ended = append_newline(file);
    if let Err(error) = &ended {
        tracing::warn!(%error, "the last line could not be terminated yet");
    }
    let len = match ended {
        Ok(()) => file.status()?.len,
        Err(_) => len,
    };
    Ok(EndRepair {
        is_ended: ended.is_ok(),
        ..EndRepair::ended(len, Some(repair))
    })
}

/// Saves the last bytes of the file to another file and truncates them, or returns why they stay.
fn cut(
    file: &dyn File,
    disk: &dyn Disk,
    path: &Path,
    torn: Range<u64>,
) -> io::Result<Result<Repair, KeptReason>> {
    let bytes = read(file, torn.start, torn.end)?;
    let saved = match write_side_file(disk, &side_file(path, "torn", torn.start), &bytes) {
        Ok(saved) => saved,
        Err(error) => return Ok(Err(KeptReason::Failed(error.kind()))),
    };
    // The bytes stay in the file, so the copy is not needed.
    let keep = |why| {
        if let Err(error) = disk.remove(&saved) {
            tracing::warn!(%error, "could not remove an unneeded copy");
        }
        Ok(Err(why))
    };
    // A process without the lock may have written more since.
    if file.status()?.len != torn.end {
        return keep(KeptReason::OtherWriter);
    }
    if let Err(error) = file.truncate(torn.start)
        && file.status()?.len != torn.start
    {
        return keep(KeptReason::Failed(error.kind()));
    }
    file.sync()?;
    Ok(Ok(Repair::Cut {
        offset: torn.start,
        len: torn.end - torn.start,
        saved,
    }))
}

/// The maximum number of lines of a compaction: the boundary, the summary, and one that clears a
/// pin.
const MAX_COMPACTION_LINES: u64 = 3;

/// Returns the offset of a compaction boundary whose write is incomplete, according to the number
/// of lines that the boundary states. `tail` is the start of the part without a newline.
///
/// Such a compaction was not acknowledged. It is truncated although the boundary itself is
/// complete: readers use the list of the last boundary of a file, even when it has no summary
/// (COMPACT-8).
fn torn_batch(file: &dyn File, tail: u64, torn: &[u8], is_whole: bool) -> io::Result<Option<u64>> {
    let mut lines = u64::from(is_whole);
    if is_whole && batch_lines(torn).is_some_and(|all| lines < all) {
        return Ok(Some(tail));
    }
    let mut end = tail;
    while end > 0 && lines + 1 < MAX_COMPACTION_LINES {
        let start = last_line(file, end - 1)?;
        lines += 1;
        if end - start > MAX_SEARCHED_LINE {
            return Ok(None);
        }
        if batch_lines(&read(file, start, end - 1)?).is_some_and(|all| lines < all) {
            return Ok(Some(start));
        }
        end = start;
    }
    Ok(None)
}

/// Returns how many lines the write of a boundary has, as recorded by
/// [`Writer::compact`](crate::Writer::compact).
fn batch_lines(line: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(line).ok()?;
    // Avoids parsing other lines.
    if !line.contains("\"compact_boundary\"") {
        return None;
    }
    let entry = Object::parse(line).ok()?;
    let is_boundary = entry.str("subtype").as_deref() == Some(SystemKind::CompactBoundary.name());
    let lines = entry.object("transcriptEngine")?.u64("lines");
    lines.filter(|_| is_boundary)
}

/// Returns whether readers may find a complete entry in a damaged line: at its start, after NULs or
/// a byte order mark, or at its end. Such a line is not truncated, because children of the entry
/// would lose their parent.
fn has_entry(line: &[u8]) -> bool {
    let mut text = line;
    while let [b'\0' | b' ' | b'\t' | b'\r', rest @ ..] | [0xEF, 0xBB, 0xBF, rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b'\0'] = text {
        text = rest;
    }
    Scanner::new().scan_first(text).is_ok() || !salvage::objects(line).is_empty()
}

/// Writes a side file, under another name if that name is taken by a file with other bytes. A file
/// with the same bytes is reused: a process that died right after this call wrote it. Returns the
/// path.
pub(crate) fn write_side_file(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    // Each file is another line that was torn at the same offset, which is rare. If all names are
    // taken, the cause is something else, and the error makes it visible.
    const MAX_NAMES: u32 = 10;
    for number in 0..MAX_NAMES {
        let mut name = path.as_os_str().to_owned();
        if number > 0 {
            name.push(format!(".{number}"));
        }
        match disk.write_new(Path::new(&name), bytes) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if holds(disk, Path::new(&name), bytes) {
                    return Ok(name.into());
                }
            }
            result => return result.map(|()| name.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Returns whether a file contains these bytes, and syncs it and its name.
fn holds(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> bool {
    disk.open(path, false).is_ok_and(|opened| {
        let file = &*opened.file;
        let is_same_len = file
            .status()
            .is_ok_and(|status| status.len == bytes.len() as u64);
        is_same_len
            && read(file, 0, bytes.len() as u64).is_ok_and(|there| there == bytes)
            && file.sync().is_ok()
            && disk.sync_name(path).is_ok()
    })
}

/// Returns a path like `SESSION.jsonl.torn-812`.
pub(crate) fn side_file(path: &Path, what: &str, offset: u64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{what}-{offset}"));
    PathBuf::from(name)
}

fn is_stable(file: &dyn File, len: u64) -> io::Result<bool> {
    std::thread::sleep(MIN_STABLE_TIME);
    Ok(file.status()?.len == len)
}

fn append_newline(file: &dyn File) -> io::Result<()> {
    loop {
        match file.append(b"\n") {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the start of the last line if it has no newline, which the client would write first
/// (FILE-11); `len` if it has one.
fn last_line(file: &dyn File, len: u64) -> io::Result<u64> {
    let mut end = len;
    while end > 0 {
        let start = end.saturating_sub(BLOCK_SIZE);
        let block = read(file, start, end)?;
        if let Some(at) = memrchr(b'\n', &block) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Reads from `from` to `to`, completely or not at all.
pub(crate) fn read(file: &dyn File, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; (to - from) as usize];
    if file.fill(from, &mut bytes)? < bytes.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}
