//! Names the format of a file without an entry of a session.

use memchr::{memchr, memmem};
use transcript_format::kind::EntryKind;
use transcript_format::scan::Scanner;

use crate::error::Error;

/// The size of reads, in bytes. Of a longer line only the start of this length is looked at.
const READ_SIZE: usize = 64 << 10;
/// The number of bytes within which an entry names its type.
const MIN_TYPED_LEN: usize = 64;

/// Returns the name of the format of a file that has no entry of a session and no part of one; `None` for a session, however
/// damaged, and for a file in which nothing was written. `read_at` reads the file at an offset; it is read up to the first
/// entry.
pub(crate) fn without_entry(
    read_at: impl Fn(u64, &mut [u8]) -> Result<usize, Error>,
) -> Result<Option<&'static str>, Error> {
    let mut scanner = Scanner::new();
    let mut buffer = vec![0; READ_SIZE];
    let mut first: Option<Vec<u8>> = None;
    // Whether the start of the buffer is in a line of which enough was seen.
    let (mut offset, mut filled, mut is_seen) = (0, 0, false);
    loop {
        let read = read_at(offset + filled as u64, &mut buffer[filled..])?;
        filled += read;
        let is_end = filled < READ_SIZE;
        let mut at = 0;
        while at < filled {
            let feed = memchr(b'\n', &buffer[at..filled]).map(|len| at + len);
            if feed.is_none() && !is_end && at > 0 {
                break;
            }
            let line = &buffer[at..feed.unwrap_or(filled)];
            if !is_seen && is_written(line) {
                let is_cut_off = feed.is_none() && is_end;
                let is_spread = first.as_deref().is_some_and(is_spread);
                if has_entry(&mut scanner, line, is_spread) || is_cut_off && is_start(line) {
                    return Ok(None);
                }
                first.get_or_insert_with(|| line.to_vec());
            }
            is_seen = feed.is_none();
            at = feed.map_or(filled, |feed| feed + 1);
        }
        if is_end {
            return Ok(first.as_deref().map(name));
        }
        buffer.copy_within(at..filled, 0);
        (filled, offset) = (filled - at, offset + at as u64);
    }
}

/// Returns whether there is more than blanks and NULs, which a power cut leaves.
fn is_written(line: &[u8]) -> bool {
    !line.iter().all(is_blank)
}

fn is_blank(byte: &u8) -> bool {
    *byte == 0 || byte.is_ascii_whitespace()
}

/// Returns whether the first line only opens a value: one that is spread over the lines below, as no entry is.
fn is_spread(first: &[u8]) -> bool {
    matches!(first.trim_ascii(), b"{" | b"[" | b"[{")
}

/// Returns whether a line is an entry of a session, or unless lines are parts of a value that `is_spread`, has a part of one.
fn has_entry(scanner: &mut Scanner, line: &[u8], is_spread: bool) -> bool {
    if let Ok(envelope) = scanner.scan(line) {
        return envelope.kind() != EntryKind::Other
            || envelope.uuid().is_some()
            || envelope.parent_uuid().is_some();
    }
    if is_spread {
        return false;
    }
    // A part of a torn entry has the start or the end of the object. A list of messages, and prose about entries, have neither.
    let mut written = line.iter().filter(|byte| !is_blank(byte));
    let is_part = written.next() == Some(&b'{') || written.next_back() == Some(&b'}');
    let has = |name: &str| memmem::find(line, name.as_bytes()).is_some();
    let is_list = line.trim_ascii_start().starts_with(b"[");
    (is_part || line.len() == READ_SIZE)
        && !is_list
        && (has("\"parentUuid\":") || has("\"isSidechain\":") || has_kind(line))
}

/// Returns whether a line is the start of an object that was cut off before its type.
fn is_start(line: &[u8]) -> bool {
    line.len() < MIN_TYPED_LEN
        && (line == b"{" || line.starts_with(b"{\""))
        && memchr(b'}', line).is_none()
}

/// Returns whether there is a member `type` of an entry in these bytes.
fn has_kind(bytes: &[u8]) -> bool {
    memmem::find_iter(bytes, b"\"type\":").any(|at| {
        let value = bytes[at + b"\"type\":".len()..].trim_ascii_start();
        let value = value.strip_prefix(b"\"").unwrap_or_default();
        let name = memchr(b'"', value).map(|end| &value[..end]);
        // A value without its closing quote was truncated: it counts if a name of a kind starts with it.
        let is_start = |name: &[u8]| {
            let mut kinds = EntryKind::ALL.iter();
            !name.is_empty() && kinds.any(|kind| kind.name().as_bytes().starts_with(name))
        };
        match name {
            Some(name) => EntryKind::from_bytes(name) != EntryKind::Other,
            None => is_start(value),
        }
    })
}

/// Names the format of a file by its first line.
fn name(line: &[u8]) -> &'static str {
    let line = line.trim_ascii_start();
    let has = |name: &str| memmem::find(line, name.as_bytes()).is_some();
    match line.first() {
        Some(b'[') => "a JSON array, without an entry of a session",
        Some(b'{') if has("\"display\"") && has("\"project\"") => {
            "the prompt history of Claude Code, without an entry of a session; the sessions are in the projects folder next to it"
        }
        Some(b'{') if has("\"role\"") && has("\"content\"") => {
            "a log of messages of an API, without an entry of a session"
        }
        Some(b'{') if line == b"{" || line == b"{\r" => {
            "JSON on several lines, without an entry of a session, which is one line"
        }
        Some(b'{') => "JSON without an entry of a session",
        _ => "text without an entry of a session",
    }
}
