//! Where following stands in a file, and how to know the file again.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use memchr::memchr;
use sha2::{Digest, Sha256};
use transcript_format::fingerprint::{Fingerprint, HEAD_LEN, TAIL_LEN, Tail};
use transcript_reader::{Error, Source};

/// A place behind a newline, and the bytes by which the file is known again (`facts/reliability.md`
/// 4, T9).
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Place {
    /// All before it was told.
    known: Fingerprint,
    /// How many lines that is, when they were counted.
    lines: Option<u64>,
    /// How much of what the line here says was told: a damaged one may say several things.
    told: u32,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("offset", &self.offset())
            .field("lines", &self.lines)
            .finish_non_exhaustive()
    }
}

impl Place {
    /// The start of a file.
    pub(crate) fn start() -> Self {
        Self {
            lines: Some(0),
            ..Self::default()
        }
    }

    /// The place at `offset` in a file as it is now.
    pub(crate) fn at(source: &Source, offset: u64) -> Result<Self, Error> {
        Ok(Self {
            known: Fingerprint::read(offset, |at, buffer| source.read_at(at, buffer))?,
            lines: (offset == 0).then_some(0),
            told: 0,
        })
    }

    pub(crate) fn offset(&self) -> u64 {
        self.known.offset()
    }

    /// The number of the line that starts here.
    pub(crate) fn line(&self) -> Option<u64> {
        self.lines.map(|lines| lines + 1)
    }

    pub(crate) fn set_lines(&mut self, lines: Option<u64>) {
        self.lines = lines;
    }

    pub(crate) fn lines(&self) -> Option<u64> {
        self.lines
    }

    /// How much of what the line here says was told.
    pub(crate) fn told(&self) -> u32 {
        self.told
    }

    /// More of what the line here says was told, but not all.
    pub(crate) fn tell(&mut self) {
        self.told += 1;
    }

    /// Moves behind a line, which is given without its newline.
    pub(crate) fn pass(&mut self, line: &[u8]) {
        self.known.push(line);
        self.known.push(b"\n");
        self.told = 0;
        self.lines = self.lines.map(|lines| lines + 1);
    }

    /// Moves behind a line of `len` bytes that was not kept. `last` are its last ones, with the newline.
    pub(crate) fn pass_unseen(&mut self, len: u64, last: &Tail) {
        self.known.skip(len + 1, last);
        self.told = 0;
        self.lines = self.lines.map(|lines| lines + 1);
    }

    /// Whether the file holds before this place what was told of it.
    pub(crate) fn holds(&self, source: &Source) -> Result<bool, Error> {
        self.known.matches(|at, buffer| source.read_at(at, buffer))
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            offset: self.offset(),
            lines: self.lines,
            told: self.told,
            head: Print::of(self.known.head()),
            tail: Print::of(self.known.tail()),
        }
    }
}

/// Whether `bytes` stand at `offset`. Takes a constant amount of memory.
pub(crate) fn has(source: &Source, offset: u64, bytes: &[u8]) -> Result<bool, Error> {
    let mut buffer = [0; 4096];
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

/// Whether a newline stands in `range`. Takes a constant amount of memory.
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

/// A place in a file to go on from later, also in another process. It holds no text of the file.
///
/// As text (`Display`, [`FromStr`]) it has one line. Store it together with what was made of the
/// events before it, and each line counts once, whenever the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    offset: u64,
    lines: Option<u64>,
    told: u32,
    head: Print,
    tail: Print,
}

/// The length and the hash of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Print {
    len: usize,
    hash: [u8; 8],
}

impl Print {
    fn of(bytes: &[u8]) -> Self {
        let mut hash = [0; 8];
        hash.copy_from_slice(&Sha256::digest(bytes)[..8]);
        Self {
            len: bytes.len(),
            hash,
        }
    }
}

impl Checkpoint {
    /// Returns the offset of the first byte that was not told, in bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The place, if the file is still the one of the checkpoint.
    pub(crate) fn place(&self, source: &Source) -> Result<Option<Place>, Error> {
        let mut place = Place::at(source, self.offset)?;
        // Where the checkpoint knows less than the file can say now, less is compared.
        place.known.shorten(self.head.len, self.tail.len);
        let known = &place.known;
        let is_same = Print::of(known.head()) == self.head && Print::of(known.tail()) == self.tail;
        place.lines = self.lines;
        place.told = self.told;
        Ok(is_same.then_some(place))
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
        write!(f, ":{}", self.told)
    }
}

/// The text is not that of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotACheckpoint;

impl fmt::Display for NotACheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a checkpoint of this version")
    }
}

impl std::error::Error for NotACheckpoint {}

impl FromStr for Checkpoint {
    type Err = NotACheckpoint;

    fn from_str(text: &str) -> Result<Self, NotACheckpoint> {
        parse(text).ok_or(NotACheckpoint)
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
        (len <= most).then_some(Print { len, hash })
    };
    let (head, tail) = (print(HEAD_LEN)?, print(TAIL_LEN)?);
    let told = parts.next()?.parse().ok()?;
    let longest = tail.len.max(head.len) as u64;
    (parts.next().is_none() && longest <= offset).then_some(Checkpoint {
        offset,
        lines,
        told,
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

    /// A file of lines that grow, and the place behind all of them.
    fn passed(lines: usize) -> (Vec<u8>, Place) {
        let (mut bytes, mut place) = (Vec::new(), Place::start());
        for number in 0..lines {
            let line = "x".repeat(number * 7);
            bytes.extend(line.as_bytes());
            bytes.push(b'\n');
            place.pass(line.as_bytes());
        }
        (bytes, place)
    }

    #[test]
    fn a_place_that_lines_were_passed_to_is_the_one_that_is_read_off_the_file() {
        for lines in 0..40 {
            let (bytes, mut place) = passed(lines);
            let read = Place::at(&source(&bytes), bytes.len() as u64).unwrap();
            assert!(place.holds(&source(&bytes)).unwrap());
            assert_eq!(place.lines(), Some(lines as u64));
            place.set_lines(read.lines());
            assert_eq!(place, read, "{lines}");
        }
    }

    #[test]
    fn a_change_of_any_remembered_byte_is_seen_and_of_the_others_not() {
        let (bytes, place) = passed(40);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            let is_seen = at < HEAD_LEN || at >= bytes.len() - TAIL_LEN;
            assert_eq!(!place.holds(&source(&other)).unwrap(), is_seen, "{at}");
            let known = place.checkpoint().place(&source(&other)).unwrap();
            assert_eq!(known.is_none(), is_seen, "{at}");
        }
        assert!(!place.holds(&source(&bytes[..bytes.len() - 1])).unwrap());
    }

    #[test]
    fn a_checkpoint_survives_being_text_and_other_texts_are_none() {
        for lines in [0, 1, 5, 40] {
            let (bytes, mut place) = passed(lines);
            if lines > 1 {
                place.tell();
            }
            let text = place.checkpoint().to_string();
            let read: Checkpoint = text.parse().unwrap();
            assert_eq!(read, place.checkpoint());
            assert_eq!(read.place(&source(&bytes)).unwrap(), Some(place));
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
            assert_eq!(text.parse::<Checkpoint>(), Err(NotACheckpoint), "{text}");
        }
    }
}
