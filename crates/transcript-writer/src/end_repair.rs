//! What a kill or a full disk leaves at the end of a file, and what is done about it when the file
//! is opened.

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

use crate::file::{Disk, File};

/// What opening a file did to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repair {
    /// The last line was whole but for its newline, which was added.
    Completed {
        /// Where the line starts.
        offset: u64,
    },
    /// The last line was torn, or the lines of a compaction were not all there. Their bytes were
    /// saved in a file beside it and cut off.
    Cut {
        /// Where it started.
        offset: u64,
        /// Its length in bytes.
        len: u64,
        /// Where its bytes are now.
        saved: PathBuf,
    },
    /// The last line was damaged and stays as it is. It ends with a newline now, or gets one with
    /// the next write.
    Sealed {
        /// Where it starts.
        offset: u64,
        /// Its length in bytes, without the newline.
        len: u64,
        /// Why it was not cut off.
        why: Kept,
    },
}

/// Why a damaged last line stays in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kept {
    /// Another process may still be writing it.
    OtherWriter,
    /// A whole entry stands in it.
    HoldsEntry,
    /// It is longer than any line that readers take, 64 MiB: a copy of it would fill the disk.
    TooLong,
    /// The system did not let its bytes be saved in another file, or cut off.
    Failed(io::ErrorKind),
}

impl Repair {
    /// Returns where the last line starts.
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
    /// Whether it ends with a newline or is empty; otherwise the next write has to start with one.
    pub(crate) is_ended: bool,
    pub(crate) repair: Option<Repair>,
}

/// Where no lease tells whether somebody writes, the file has to keep its length for this long.
const STABLE: Duration = Duration::from_millis(250);

const BLOCK: u64 = 64 << 10;

/// Readers skip longer lines, so that nothing is to be found in them.
const LONGEST: u64 = DEFAULT_LINE_CAP as u64;

/// Makes the file end with a newline. The lock is held; `is_alone` says whether nobody else has the
/// file open for writing, if that is known.
///
/// A damaged line never fails the opening: what cannot be cut off stays, and what cannot be ended
/// now is ended by the next write.
pub(crate) fn repair_end(
    file: &dyn File,
    disk: &dyn Disk,
    path: &Path,
    is_alone: Option<bool>,
) -> io::Result<EndRepair> {
    let len = file.status()?.len;
    let tail = last_line(file, len)?;
    if len - tail > LONGEST {
        return end_line(file, len, sealed(tail..len, Kept::TooLong));
    }
    let line = read(file, tail, len)?;
    let is_whole = Scanner::new().scan(&line).is_ok();
    let batch = torn_batch(file, tail, &line, is_whole)?;
    if batch.is_none() && tail == len {
        return Ok(EndRepair {
            len,
            is_ended: true,
            repair: None,
        });
    }
    if batch.is_none() && is_whole {
        return end_line(file, len, Repair::Completed { offset: tail });
    }
    let start = batch.unwrap_or(tail);
    let why = if batch.is_none() && has_entry(&line) {
        Kept::HoldsEntry
    } else if !is_alone.map_or_else(|| is_stable(file, len), Ok)? {
        Kept::OtherWriter
    } else {
        drop(line);
        match cut(file, disk, path, start..len)? {
            Ok(repair) => {
                return Ok(EndRepair {
                    len: start,
                    is_ended: true,
                    repair: Some(repair),
                });
            }
            Err(why) => why,
        }
    };
    let repair = sealed(start..len, why);
    if tail == len {
        return Ok(EndRepair {
            len,
            is_ended: true,
            repair: Some(repair),
        });
    }
    end_line(file, len, repair)
}

fn sealed(line: Range<u64>, why: Kept) -> Repair {
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
        tracing::warn!(%error, "the next write has to end the last line");
    }
    Ok(EndRepair {
        len: if ended.is_ok() {
            file.status()?.len
        } else {
            len
        },
        is_ended: ended.is_ok(),
        repair: Some(repair),
    })
}

/// Saves the last bytes of the file in another one and cuts them off, or says why they stay.
fn cut(
    file: &dyn File,
    disk: &dyn Disk,
    path: &Path,
    torn: Range<u64>,
) -> io::Result<Result<Repair, Kept>> {
    let bytes = read(file, torn.start, torn.end)?;
    let saved = match write_side_file(disk, &side_file(path, "torn", torn.start), &bytes) {
        Ok(saved) => saved,
        Err(error) => return Ok(Err(Kept::Failed(error.kind()))),
    };
    // A copy of what stays is of no use.
    let keep = |why| {
        if let Err(error) = disk.remove(&saved) {
            tracing::warn!(%error, "a copy that is not needed could not be removed");
        }
        Ok(Err(why))
    };
    // Somebody without the lock may have gone on writing since.
    if file.status()?.len != torn.end {
        return keep(Kept::OtherWriter);
    }
    if let Err(error) = file.truncate(torn.start)
        && file.status()?.len != torn.start
    {
        return keep(Kept::Failed(error.kind()));
    }
    file.sync()?;
    Ok(Ok(Repair::Cut {
        offset: torn.start,
        len: torn.end - torn.start,
        saved,
    }))
}

/// How many lines a compaction writes at most: the boundary, the summary, and one that lifts a pin.
const COMPACTION_LINES: u64 = 3;

/// Where the boundary of a compaction starts whose write did not get to its end: it says how many
/// lines that write has. `tail` is where the part without a newline starts.
///
/// It was not acknowledged. It is cut off although it is whole: to readers the last boundary of a
/// file is the one that says what is kept, even one that leads to no summary (case 45-20).
fn torn_batch(file: &dyn File, tail: u64, torn: &[u8], is_whole: bool) -> io::Result<Option<u64>> {
    let mut lines = u64::from(is_whole);
    if is_whole && batch_lines(torn).is_some_and(|all| lines < all) {
        return Ok(Some(tail));
    }
    let mut end = tail;
    while end > 0 && lines + 1 < COMPACTION_LINES {
        let start = last_line(file, end - 1)?;
        lines += 1;
        if end - start > LONGEST {
            return Ok(None);
        }
        if batch_lines(&read(file, start, end - 1)?).is_some_and(|all| lines < all) {
            return Ok(Some(start));
        }
        end = start;
    }
    Ok(None)
}

/// How many lines the write of a boundary has, as [`Writer::compact`](crate::Writer::compact) says.
fn batch_lines(line: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(line).ok()?;
    // Most lines are none; they are not parsed for it.
    if !line.contains("\"compact_boundary\"") {
        return None;
    }
    let entry = Object::parse(line).ok()?;
    let is_boundary = entry.str("subtype").as_deref() == Some(SystemKind::CompactBoundary.name());
    let lines = entry.object("transcriptEngine")?.u64("lines");
    lines.filter(|_| is_boundary)
}

/// Whether readers may find a whole entry in a damaged line: at its start, behind NULs or a byte
/// order mark, or as its end. Such a line is not cut: what
/// is a child of the entry would lose its parent.
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

/// Writes a side file, under another name when there is one of that name with other bytes: one with
/// the same bytes was left by a process that died right behind this. Returns where it is.
pub(crate) fn write_side_file(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    // Each is a line that was torn at the same place. Something else is wrong where there are more.
    const NAMES: u32 = 10;
    for number in 0..NAMES {
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

/// Whether a file holds these bytes, and keeps them and its name over a power cut.
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

/// `SESSION.jsonl.torn-812`
pub(crate) fn side_file(path: &Path, what: &str, offset: u64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{what}-{offset}"));
    PathBuf::from(name)
}

fn is_stable(file: &dyn File, len: u64) -> io::Result<bool> {
    std::thread::sleep(STABLE);
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

/// Where the last line starts that has no newline; `len` when there is none.
fn last_line(file: &dyn File, len: u64) -> io::Result<u64> {
    let mut end = len;
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        let block = read(file, start, end)?;
        if let Some(at) = memrchr(b'\n', &block) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Reads from `from` to `to`, all of it or nothing.
pub(crate) fn read(file: &dyn File, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; (to - from) as usize];
    if read_into(file, from, &mut bytes)? < bytes.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

/// Fills `buffer` from `from` on; returns how many bytes were there.
pub(crate) fn read_into(file: &dyn File, from: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(from + done as u64, &mut buffer[done..]) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
