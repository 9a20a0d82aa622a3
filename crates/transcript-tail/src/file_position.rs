//! Positions in followed files, and how a file is recognized later.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use memchr::memchr;
use transcript_reader::{Error, Source};
use transcript_storage::{Fingerprint, HEAD_LEN, LastBytes, TAIL_LEN};

/// A position after a newline, with a fingerprint of the bytes before it, by which the file is
/// recognized.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct FilePosition {
    /// The fingerprint of everything before the position, which was emitted.
    known: Fingerprint,
    /// The number of lines before the position, if counted.
    lines: Option<u64>,
    /// The number of emitted events of the line at the position: a damaged line may have several.
    emitted: u32,
}

impl fmt::Debug for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilePosition")
            .field("offset", &self.offset())
            .field("lines", &self.lines)
            .finish_non_exhaustive()
    }
}

impl FilePosition {
    /// Returns the start of a file.
    pub(crate) fn start() -> Self {
        Self {
            lines: Some(0),
            ..Self::default()
        }
    }

    /// Returns the position at `offset` of a file as it is now.
    pub(crate) fn at(source: &Source, offset: u64) -> Result<Self, Error> {
        Ok(Self {
            known: Fingerprint::read(offset, |at, buffer| source.read_at(at, buffer))?,
            lines: (offset == 0).then_some(0),
            emitted: 0,
        })
    }

    pub(crate) fn offset(&self) -> u64 {
        self.known.offset()
    }

    /// Returns the number of the line that starts here.
    pub(crate) fn line(&self) -> Option<u64> {
        self.lines.map(|lines| lines + 1)
    }

    pub(crate) fn set_lines(&mut self, lines: Option<u64>) {
        self.lines = lines;
    }

    pub(crate) fn lines(&self) -> Option<u64> {
        self.lines
    }

    /// Returns how many events of the line here were emitted.
    pub(crate) fn emitted(&self) -> u32 {
        self.emitted
    }

    /// Counts one more emitted event of the line here.
    pub(crate) fn count_emitted(&mut self) {
        self.emitted += 1;
    }

    /// Moves past a line, given without its newline.
    pub(crate) fn advance(&mut self, line: &[u8]) {
        self.known.push(line);
        self.known.push(b"\n");
        self.emitted = 0;
        self.lines = self.lines.map(|lines| lines + 1);
    }

    /// Moves past a line of `len` bytes that was not kept. `last` are its last bytes, with the
    /// newline.
    pub(crate) fn advance_unread(&mut self, len: u64, last: &LastBytes) {
        self.known.skip(len + 1, last);
        self.emitted = 0;
        self.lines = self.lines.map(|lines| lines + 1);
    }

    /// Returns whether the part of the file before this position still has the emitted bytes.
    pub(crate) fn matches(&self, source: &Source) -> Result<bool, Error> {
        self.known.matches(|at, buffer| source.read_at(at, buffer))
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            offset: self.offset(),
            lines: self.lines,
            emitted: self.emitted,
            head: BytesFingerprint::of(self.known.head()),
            tail: BytesFingerprint::of(self.known.tail()),
        }
    }
}

/// Returns whether `bytes` are at `offset`. Uses constant memory.
pub(crate) fn has(source: &Source, offset: u64, bytes: &[u8]) -> Result<bool, Error> {
    let mut buffer = [0; 16 << 10];
    let mut at = offset;
    for piece in bytes.chunks(buffer.len()) {
        let buffer = &mut buffer[..piece.len()];
        if source.read_at(at, buffer)? < piece.len() || buffer != piece {
            return Ok(false);
        }
        at += piece.len() as u64;
    }
    Ok(true)
}

/// Returns whether there is a newline in `range`. Uses constant memory.
pub(crate) fn has_newline(source: &Source, range: Range<u64>) -> Result<bool, Error> {
    let mut buffer = vec![0; 64 << 10];
    let mut at = range.start;
    while at < range.end {
        let wanted = buffer.len().min((range.end - at) as usize);
        let read = source.read_at(at, &mut buffer[..wanted])?;
        if memchr(b'\n', &buffer[..read]).is_some() {
            return Ok(true);
        }
        if read == 0 {
            break;
        }
        at += read as u64;
    }
    Ok(false)
}

/// A position in a file from which to continue later, also in another process. It contains no text
/// of the file.
///
/// As text (`Display`, [`FromStr`]) it is one line. If it is stored together with the results of
/// the events before it, each line is processed exactly once, whenever the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    offset: u64,
    lines: Option<u64>,
    emitted: u32,
    head: BytesFingerprint,
    tail: BytesFingerprint,
}

/// The length and the hash of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BytesFingerprint {
    len: usize,
    hash: [u8; 8],
}

impl BytesFingerprint {
    fn of(bytes: &[u8]) -> Self {
        let mut hash = [0; 8];
        hash.copy_from_slice(&hmac_sha256::Hash::hash(bytes)[..8]);
        Self {
            len: bytes.len(),
            hash,
        }
    }
}

impl Checkpoint {
    /// Returns the offset of the first byte that was not emitted.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the position, if the file is still that of the checkpoint.
    pub(crate) fn position(&self, source: &Source) -> Result<Option<FilePosition>, Error> {
        let mut position = FilePosition::at(source, self.offset)?;
        // The checkpoint may have a shorter fingerprint than the file has now; then less is
        // compared.
        position.known.shorten(self.head.len, self.tail.len);
        let known = &position.known;
        let is_same = BytesFingerprint::of(known.head()) == self.head
            && BytesFingerprint::of(known.tail()) == self.tail;
        position.lines = self.lines;
        position.emitted = self.emitted;
        Ok(is_same.then_some(position))
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1:{}:", self.offset)?;
        match self.lines {
            Some(lines) => write!(f, "{lines}")?,
            None => f.write_str("-")?,
        }
        for print in [self.head, self.tail] {
            let hash = u64::from_be_bytes(print.hash);
            write!(f, ":{}:{hash:016x}", print.len)?;
        }
        write!(f, ":{}", self.emitted)
    }
}

/// The text is not that of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseCheckpointError;

impl fmt::Display for ParseCheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a checkpoint of this version; follow the file from its start")
    }
}

impl std::error::Error for ParseCheckpointError {}

impl FromStr for Checkpoint {
    type Err = ParseCheckpointError;

    fn from_str(text: &str) -> Result<Self, ParseCheckpointError> {
        parse(text).ok_or(ParseCheckpointError)
    }
}

fn parse(text: &str) -> Option<Checkpoint> {
    let mut parts = text.trim().split(':');
    if parts.next()? != "1" {
        return None;
    }
    let offset = parts.next()?.parse().ok()?;
    let lines = match parts.next()? {
        "-" => None,
        lines => Some(lines.parse().ok()?),
    };
    let mut print = |most: usize| {
        let len = parts.next()?.parse().ok()?;
        let hash = u64::from_str_radix(parts.next()?, 16).ok()?.to_be_bytes();
        (len <= most).then_some(BytesFingerprint { len, hash })
    };
    let (head, tail) = (print(HEAD_LEN)?, print(TAIL_LEN)?);
    let emitted = parts.next()?.parse().ok()?;
    let longest = tail.len.max(head.len) as u64;
    (parts.next().is_none() && longest <= offset).then_some(Checkpoint {
        offset,
        lines,
        emitted,
        head,
        tail,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn source(bytes: &[u8]) -> Source {
        Source::from_bytes(bytes, Path::new("a.jsonl"))
    }

    /// Returns a file of lines of growing length, and the position after all of them.
    fn passed(lines: usize) -> (Vec<u8>, FilePosition) {
        let (mut bytes, mut position) = (Vec::new(), FilePosition::start());
        for number in 0..lines {
            let line = "x".repeat(number * 7);
            bytes.extend(line.as_bytes());
            bytes.push(b'\n');
            position.advance(line.as_bytes());
        }
        (bytes, position)
    }

    #[test]
    fn a_place_that_lines_were_passed_to_is_the_one_that_is_read_off_the_file() {
        for lines in 0..40 {
            let (bytes, mut position) = passed(lines);
            let read = FilePosition::at(&source(&bytes), bytes.len() as u64).unwrap();
            assert!(position.matches(&source(&bytes)).unwrap());
            assert_eq!(position.lines(), Some(lines as u64));
            position.set_lines(read.lines());
            assert_eq!(position, read, "{lines}");
        }
    }

    #[test]
    fn a_change_of_any_remembered_byte_is_seen_and_of_the_others_not() {
        let (bytes, position) = passed(40);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            let is_seen = at < HEAD_LEN || at >= bytes.len() - TAIL_LEN;
            assert_eq!(!position.matches(&source(&other)).unwrap(), is_seen, "{at}");
            let known = position.checkpoint().position(&source(&other)).unwrap();
            assert_eq!(known.is_none(), is_seen, "{at}");
        }
        assert!(
            !position
                .matches(&source(&bytes[..bytes.len() - 1]))
                .unwrap()
        );
    }

    #[test]
    fn checkpoint_survives_being_text_and_other_texts_are_refused() {
        for lines in [0, 1, 5, 40] {
            let (bytes, mut position) = passed(lines);
            if lines > 1 {
                position.count_emitted();
            }
            let text = position.checkpoint().to_string();
            let read: Checkpoint = text.parse().unwrap();
            assert_eq!(read, position.checkpoint());
            assert_eq!(read.position(&source(&bytes)).unwrap(), Some(position));
        }
        let texts = [
            "",
            "1",
            "2:0:0:0:0:0:0:0",
            "1:0:0:0:0:0:0",
            "1:5:-:300:0:2:0:0",
            "1:5:-:6:0:2:0:0",
            "1:0:0:0:0:0:0:0:0",
        ];
        for text in texts {
            assert_eq!(
                text.parse::<Checkpoint>(),
                Err(ParseCheckpointError),
                "{text}"
            );
        }
    }
}
