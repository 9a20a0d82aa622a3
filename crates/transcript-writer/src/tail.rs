//! What a kill or a full disk leaves at the end of a file, and what is done about it when the file
//! is opened (D12 and D13 of `facts/reliability.md` 3).

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use transcript_format::kind::SystemKind;
use transcript_format::object::Object;
use transcript_format::recover;
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
    /// The last line was damaged, and another process may still write it or a whole entry stands in
    /// it: it was ended with a newline, and stays as it is.
    Sealed {
        /// Where it starts.
        offset: u64,
        /// Its length in bytes, without the newline.
        len: u64,
    },
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

pub(crate) struct Mended {
    /// The length of the file, which ends with a newline or is empty.
    pub(crate) len: u64,
    pub(crate) repair: Option<Repair>,
}

/// Where no lease tells whether somebody writes, the file has to keep its length for this long.
const STABLE: Duration = Duration::from_millis(250);

const BLOCK: u64 = 64 << 10;

/// Makes the file end with a newline. The lock is held; `is_alone` says whether nobody else has the
/// file open for writing, if that is known.
pub(crate) fn mend(
    file: &dyn File,
    disk: &dyn Disk,
    path: &Path,
    is_alone: Option<bool>,
) -> io::Result<Mended> {
    let len = file.status()?.len;
    let tail = last_line(file, len)?;
    let line = read(file, tail, len)?;
    let is_whole = Scanner::new().scan(&line).is_ok();
    let batch = torn_batch(file, tail, &line, is_whole)?;
    if batch.is_none() {
        if tail == len {
            return Ok(Mended { len, repair: None });
        }
        if is_whole {
            append_newline(file)?;
            return Ok(Mended {
                len: len + 1,
                repair: Some(Repair::Completed { offset: tail }),
            });
        }
    }
    let start = batch.unwrap_or(tail);
    let line = read(file, start, len)?;
    let may_cut = batch.is_some() || !holds_an_entry(&line);
    if may_cut && is_alone.map_or_else(|| is_stable(file, len), Ok)? {
        let saved = write_side_file(disk, &side_file(path, "torn", start), &line)?;
        // Somebody without the lock may have gone on writing since.
        if file.status()?.len == len {
            file.truncate(start)?;
            file.sync()?;
            return Ok(Mended {
                len: start,
                repair: Some(Repair::Cut {
                    offset: start,
                    len: len - start,
                    saved,
                }),
            });
        }
    }
    if tail == len {
        return Ok(Mended { len, repair: None });
    }
    append_newline(file)?;
    Ok(Mended {
        len: file.status()?.len,
        repair: Some(Repair::Sealed {
            offset: tail,
            len: len - tail,
        }),
    })
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
/// order mark, or as its end (B3 to B7 of `facts/reliability.md` 5). Such a line is not cut: what
/// hangs under the entry would lose its parent.
fn holds_an_entry(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_start_matches(['\0', '\u{feff}', ' ', '\t', '\r']);
    let text = text.trim_end_matches('\0').as_bytes();
    Scanner::new().scan_first(text).is_ok() || !recover::objects(line).is_empty()
}

/// Writes a side file, under another name when there is one of that name with other bytes: one with
/// the same bytes was left by a process that died right behind this. Returns where it is.
pub(crate) fn write_side_file(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    const NAMES: u32 = 100;
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
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Reads from `from` to `to`, all of it or nothing.
pub(crate) fn read(file: &dyn File, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; (to - from) as usize];
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(from + done as u64, &mut bytes[done..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}
