//! Adds the content of files to packs, and describes files.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use memchr::memrchr;
use transcript_storage::{Metadata, ReadFile};

use crate::catalogue::{Piece, VersionId};
use crate::error::Error;
use crate::live_files::LiveFile;
use crate::packer::Packer;
use crate::record::{BaseVersion, FileState, Hash, Hasher};

/// The minimum age of the last change of a file. A younger file may change again without a new modification time.
const SETTLED_AGE: Duration = Duration::from_secs(2);
/// The size of reads, in bytes.
const READ_SIZE: usize = 2 << 20;
/// The size of the parts of a file that are compared with its earlier version, in bytes. Each read is a number of them.
const PART_LEN: usize = 1 << 20;
/// The minimum length of an addition that is searched for lines that are stored already, in bytes.
const MIN_SEARCHED_ADDITION: u64 = 4 << 10;
/// Lines are cut into parts of this size where files have longer ones, in bytes.
const MAX_LINE_LEN: usize = 32 << 20;

/// The reason why a file was not added.
pub(crate) enum Problem {
    OfFile(Error),
    OfArchive(Error),
}

/// Returns what a version says about the one that it continues.
pub(crate) fn base_version(
    packer: &mut Packer<'_>,
    from: Option<(VersionId, u64)>,
) -> io::Result<Option<BaseVersion>> {
    let Some((id, keep)) = from else {
        return Ok(None);
    };
    let archive = packer.archive();
    let partial = archive.version(id).map_or(0, |version| version.partial);
    let pieces = archive.pieces(id)?;
    let lines = archive.lines_before(&pieces, keep, partial)?;
    Ok(Some(BaseVersion {
        pack: packer.refer_to(id.pack),
        version: id.version,
        keep,
        lines,
    }))
}

/// Reads a file from an offset up to `len`. Returns the number of bytes after the last line feed, or `None` if the file
/// is shorter.
pub(crate) fn read_file(
    packer: &mut Packer<'_>,
    live: &dyn ReadFile,
    file: &LiveFile,
    start: u64,
    len: u64,
    done: Option<&AtomicU64>,
    buffer: &mut Vec<u8>,
) -> Result<Option<u64>, Problem> {
    let is_lines = file.name.ends_with(".jsonl");
    let earlier = if is_lines {
        None
    } else {
        packer.archive().readable_pieces(&file.name)
    };
    let search = start == 0 || len - start >= MIN_SEARCHED_ADDITION;
    let mut at = start;
    let mut partial = 0;
    // Bytes that stay in the buffer are the start of a line, which the next read continues.
    buffer.clear();
    while at < len {
        let kept = buffer.len();
        let wanted = usize::try_from(len - at).map_or(READ_SIZE, |left| left.min(READ_SIZE));
        buffer.resize(kept + wanted, 0);
        let read = live.fill(at, &mut buffer[kept..]);
        let read = read.map_err(|error| Problem::OfFile(Error::io(&file.path, error)));
        let read = read?;
        if read < wanted {
            return Ok(None);
        }
        at += read as u64;
        if let Some(done) = done {
            done.fetch_add(read as u64, Ordering::Relaxed);
        }
        let end = memrchr(b'\n', &buffer[kept..]);
        partial = match end {
            Some(end) => (read - end - 1) as u64,
            None => partial + read as u64,
        };
        let whole = match end {
            _ if at == len || !is_lines => buffer.len(),
            Some(end) => kept + end + 1,
            // A line without an end must not fill the memory.
            None if buffer.len() >= MAX_LINE_LEN => buffer.len(),
            None => continue,
        };
        let added = if is_lines {
            packer.add_lines(&buffer[..whole], search)
        } else {
            let offset = at - buffer.len() as u64;
            add_bytes(packer, &buffer[..whole], offset, earlier.as_deref())
        };
        added.map_err(Problem::OfArchive)?;
        buffer.drain(..whole);
    }
    Ok(Some(partial.min(len)))
}

/// Adds bytes of a file that is not lines. `earlier` has the parts of the version before it.
fn add_bytes(
    packer: &mut Packer<'_>,
    bytes: &[u8],
    offset: u64,
    earlier: Option<&[Piece]>,
) -> Result<(), Error> {
    let Some(pieces) = earlier else {
        return packer.add_bytes(bytes);
    };
    for (number, part) in (0..).zip(bytes.chunks(PART_LEN)) {
        let at = offset + number * PART_LEN as u64;
        match packer.archive().alike(pieces, at, part) {
            Some((slices, prefix)) => packer.add_alike(part, &slices, prefix)?,
            None => packer.add_bytes(part)?,
        }
    }
    Ok(())
}

/// Returns the hash of the first `len` bytes of a file.
pub(crate) fn fingerprint(file: &dyn ReadFile, len: u64) -> io::Result<Hash> {
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; READ_SIZE];
    let mut at = 0;
    while at < len {
        let wanted = usize::try_from(len - at).map_or(READ_SIZE, |left| left.min(READ_SIZE));
        let read = file.fill(at, &mut buffer[..wanted])?;
        if read < wanted {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        hasher.update(&buffer[..read]);
        at += read as u64;
    }
    Ok(hasher.finish())
}

/// Returns the properties of a file that show whether it was changed.
pub(crate) fn state_of(metadata: &Metadata, now: SystemTime) -> FileState {
    let parts = |time: SystemTime| match time.duration_since(UNIX_EPOCH) {
        Ok(since) => (
            i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            since.subsec_nanos(),
        ),
        Err(before) => {
            // Nanoseconds count forward from the second before.
            let before = before.duration();
            let seconds = i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
            match before.subsec_nanos() {
                0 => (-seconds, 0),
                nanos => (-seconds - 1, 1_000_000_000 - nanos),
            }
        }
    };
    let is_older = |time: SystemTime| now.duration_since(time).is_ok_and(|age| age > SETTLED_AGE);
    let times = [metadata.modified, metadata.changed];
    FileState {
        modified: metadata.modified.map(parts),
        changed: metadata.changed.map(parts),
        mode: metadata.mode,
        number: metadata.identity.number(),
        is_settled: times.iter().flatten().all(|time| is_older(*time)) && times[0].is_some(),
    }
}
