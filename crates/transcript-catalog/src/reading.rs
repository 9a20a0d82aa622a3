//! Reads the lines and entries of files.

use memchr::{memchr, memrchr};
use transcript_format::lines::DEFAULT_LINE_CAP;
use transcript_format::scan::{Envelope, Scanner, utf8};
use transcript_reader::{Bodies, Error, Index, Source};

/// The size of reads, in bytes: small enough to stay in a cache of the processor.
const BUFFER_SIZE: usize = 256 << 10;

/// The span of an entry in its file, in bytes.
pub(crate) struct EntrySpan {
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

/// Passes all entries of a file of which a line passes `wants` to `see`; some others may be passed
/// as well. If a line is damaged, all is read again as the index has it, with a new `T`.
pub(crate) fn entries<T: Default>(
    source: &Source,
    wants: impl Fn(&[u8]) -> bool,
    mut see: impl FnMut(&mut T, EntrySpan, &str, &Envelope<'_>),
) -> Result<T, Error> {
    let mut made = T::default();
    let (mut scanner, mut buffer) = (Scanner::new(), Vec::new());
    let is_whole = for_each_block(source, 0, source.len(), &mut buffer, |offset, bytes| {
        let mut at = 0;
        while at < bytes.len() {
            let end = memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |len| at + len);
            let line = &bytes[at..end];
            let place = EntrySpan {
                offset: offset + at as u64,
                len: u32::try_from(line.len()).unwrap_or(u32::MAX),
            };
            at = end + 1;
            if line.trim_ascii().is_empty() || !wants(line) {
                continue;
            }
            if line.len() > DEFAULT_LINE_CAP {
                return false;
            }
            let (Ok(envelope), Some(text)) = (scanner.scan(line), utf8(line)) else {
                return false;
            };
            see(&mut made, place, text, &envelope);
        }
        true
    })?;
    if !is_whole {
        made = T::default();
        for_each_in_index(source, |place, text, envelope| {
            see(&mut made, place, text, envelope);
        })?;
    }
    Ok(made)
}

/// Passes all entries that the index has to `see`.
pub(crate) fn for_each_in_index(
    source: &Source,
    mut see: impl FnMut(EntrySpan, &str, &Envelope<'_>),
) -> Result<Index, Error> {
    let index = Index::load(source)?;
    let (mut bodies, mut scanner) = (Bodies::new(source), Scanner::new());
    for entry in index.entries() {
        let text = bodies.get(&entry)?.text;
        if let Ok(envelope) = scanner.scan(text.as_bytes()) {
            let place = EntrySpan {
                offset: entry.offset(),
                len: u32::try_from(entry.byte_len()).unwrap_or(u32::MAX),
            };
            see(place, text, &envelope);
        }
    }
    Ok(index)
}

/// Passes the lines that start in `start..end` to `see`, as blocks of whole lines, until it returns
/// false. Returns whether it never did and no line was too long. The first line of a part belongs
/// to it only if a line feed precedes it.
pub(crate) fn for_each_block(
    source: &Source,
    start: u64,
    end: u64,
    buffer: &mut Vec<u8>,
    mut see: impl FnMut(u64, &[u8]) -> bool,
) -> Result<bool, Error> {
    // From the byte before the part, to see whether a line starts with it.
    let mut offset = start.saturating_sub(1);
    let mut is_in_line = start > 0;
    let mut filled = 0;
    buffer.resize(buffer.len().max(BUFFER_SIZE), 0);
    while offset < end {
        if filled == buffer.len() {
            if filled > DEFAULT_LINE_CAP {
                return Ok(false);
            }
            buffer.resize((2 * filled).min(DEFAULT_LINE_CAP + BUFFER_SIZE), 0);
        }
        // Up to the end of the part, and of the line after that little by little.
        let beyond = (end - offset).max(filled as u64 + (16 << 10));
        let most = usize::try_from(beyond)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let read = source.read_at(
            offset + filled as u64,
            &mut buffer[filled..most.max(filled + 1)],
        )?;
        let is_end = read == 0;
        let seen = filled;
        filled += read;
        if is_in_line && !is_end && memchr(b'\n', &buffer[..filled]).is_none() {
            // The rest of a line of the part before.
            offset += filled as u64;
            filled = 0;
            continue;
        }
        let lines = if is_end {
            filled
        } else if let Some(last) = memrchr(b'\n', &buffer[seen..filled]) {
            seen + last + 1
        } else {
            continue;
        };
        let mut first = 0;
        if is_in_line {
            let feed = memchr(b'\n', &buffer[..lines]);
            first = feed.map_or(lines, |feed| feed + 1);
            is_in_line = feed.is_none();
        }
        // Lines that start at the end or after it belong to the next part.
        let mut block = &buffer[first..lines];
        let left = end.saturating_sub(offset + first as u64);
        if (block.len() as u64) > left {
            let left = left as usize;
            // The line in which the part ends is the last one, unless it starts there.
            let last = match left {
                0 => 0,
                _ => memchr(b'\n', &block[left - 1..]).map_or(block.len(), |len| left + len),
            };
            block = &block[..last.min(block.len())];
        }
        if !block.is_empty() && !see(offset + first as u64, block) {
            return Ok(false);
        }
        if is_end {
            break;
        }
        buffer.copy_within(lines..filled, 0);
        filled -= lines;
        offset += lines as u64;
    }
    Ok(true)
}
