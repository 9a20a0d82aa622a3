//! Bytes that identify the content of a file up to an offset.

use std::fmt;
use std::sync::Arc;

/// The number of bytes kept from the start of a file.
pub const HEAD_LEN: usize = 256;
/// The number of bytes kept before the offset. The parts that distinguish two lines, the uuid and
/// the time, are followed by some hundred bytes that are the same on each line, so the usual 64
/// bytes would not include them.
pub const TAIL_LEN: usize = 1024;

/// The first 256 bytes of a file and the last 1,024 before an offset.
///
/// Two files with the same fingerprint at the same offset are considered equal up to that offset.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Fingerprint {
    offset: u64,
    head: Arc<Vec<u8>>,
    tail: LastBytes,
}

/// The last bytes of a sequence, at most 1,024.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LastBytes {
    bytes: [u8; TAIL_LEN],
    len: usize,
}

impl Default for LastBytes {
    fn default() -> Self {
        Self {
            bytes: [0; TAIL_LEN],
            len: 0,
        }
    }
}

// Omits the bytes, because they are part of a conversation.
impl fmt::Debug for LastBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fingerprint")
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

impl LastBytes {
    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Appends bytes to the sequence.
    pub fn push(&mut self, bytes: &[u8]) {
        let new = &bytes[bytes.len().saturating_sub(TAIL_LEN)..];
        let kept = self.len.min(TAIL_LEN - new.len());
        self.bytes.copy_within(self.len - kept..self.len, 0);
        self.bytes[kept..kept + new.len()].copy_from_slice(new);
        self.len = kept + new.len();
    }

    fn keep_last(&mut self, max_len: usize) {
        let cut = self.len.saturating_sub(max_len);
        self.bytes.copy_within(cut..self.len, 0);
        // Equality compares the whole array, so the bytes after the end must be equal, too.
        self.bytes[self.len - cut..].fill(0);
        self.len -= cut;
    }
}

impl Fingerprint {
    /// Returns the fingerprint at offset 0, which every file has.
    #[must_use]
    pub fn start() -> Self {
        Self::default()
    }

    /// Reads the fingerprint of a file at `offset`. `read_at` fills a buffer from an offset on and
    /// returns the number of bytes read.
    ///
    /// # Errors
    /// The errors of `read_at`.
    pub fn read<E>(
        offset: u64,
        mut read_at: impl FnMut(u64, &mut [u8]) -> Result<usize, E>,
    ) -> Result<Self, E> {
        let mut read = |start: u64, max_len: usize| {
            let wanted = (offset - start).min(max_len as u64) as usize;
            let mut bytes = vec![0; wanted];
            let read = read_at(start, &mut bytes)?;
            bytes.truncate(read);
            Ok(bytes)
        };
        let head = Arc::new(read(0, HEAD_LEN)?);
        let mut tail = LastBytes::default();
        tail.push(&read(offset.saturating_sub(TAIL_LEN as u64), TAIL_LEN)?);
        Ok(Self { offset, head, tail })
    }

    /// Returns the fingerprint at the end of a file with these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut fingerprint = Self::start();
        fingerprint.push(bytes);
        fingerprint
    }

    /// Returns the offset in bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the first bytes of the file.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the bytes before the offset.
    #[must_use]
    pub fn tail(&self) -> &[u8] {
        self.tail.bytes()
    }

    /// Advances the offset over these bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.tail.push(bytes);
        // If bytes were skipped before the head was complete, it stays short.
        if self.head.len() as u64 == self.offset && self.head.len() < HEAD_LEN {
            let room = HEAD_LEN - self.head.len();
            Arc::make_mut(&mut self.head).extend(bytes.iter().take(room));
        }
        self.offset += bytes.len() as u64;
    }

    /// Advances the offset by `len` bytes of which only the last ones are known.
    pub fn skip(&mut self, len: u64, last: &LastBytes) {
        self.offset += len;
        self.tail.push(last.bytes());
    }

    /// Drops all but the first `head` and the last `tail` bytes.
    pub fn shorten(&mut self, head: usize, tail: usize) {
        Arc::make_mut(&mut self.head).truncate(head);
        self.tail.keep_last(tail);
    }

    /// Returns whether a file has this fingerprint at the offset. Takes constant memory.
    ///
    /// # Errors
    /// The errors of `read_at`, which works as for [`read`](Self::read).
    pub fn matches<E>(
        &self,
        mut read_at: impl FnMut(u64, &mut [u8]) -> Result<usize, E>,
    ) -> Result<bool, E> {
        let mut buffer = [0; TAIL_LEN];
        let start = self.offset - self.tail.len as u64;
        for (at, bytes) in [(0, self.head()), (start, self.tail())] {
            let buffer = &mut buffer[..bytes.len()];
            if !bytes.is_empty() && (read_at(at, buffer)? < bytes.len() || buffer != bytes) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn reader(bytes: &[u8]) -> impl FnMut(u64, &mut [u8]) -> Result<usize, Infallible> + '_ {
        |offset, buffer| {
            let rest = bytes.get(offset as usize..).unwrap_or_default();
            let read = rest.len().min(buffer.len());
            buffer[..read].copy_from_slice(&rest[..read]);
            Ok(read)
        }
    }

    /// Returns bytes that vary with their position.
    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at * 7 + at / 256) as u8).collect()
    }

    #[test]
    fn pushing_bytes_gives_the_same_fingerprint_as_reading_the_file() {
        for len in [0, 1, 255, 256, 257, 1023, 1024, 1025, 5000] {
            let bytes = bytes(len);
            let Ok(read) = Fingerprint::read(len as u64, reader(&bytes));
            for step in [1, 7, 300, 2000] {
                let mut pushed = Fingerprint::start();
                for piece in bytes.chunks(step) {
                    pushed.push(piece);
                }
                assert!(pushed == read, "{len} bytes, {step} at a time");
            }
        }
    }

    #[test]
    fn a_change_is_detected_exactly_in_the_kept_bytes() {
        let bytes = bytes(3000);
        let fingerprint = Fingerprint::of(&bytes);
        assert_eq!(fingerprint.matches(reader(&bytes)), Ok(true));
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            let is_remembered = at < HEAD_LEN || at >= bytes.len() - TAIL_LEN;
            assert_eq!(
                fingerprint.matches(reader(&other)),
                Ok(!is_remembered),
                "{at}"
            );
        }
        assert_eq!(fingerprint.matches(reader(&bytes[..2999])), Ok(false));
    }

    #[test]
    fn a_shortened_fingerprint_compares_less_and_equals_one_built_that_short() {
        let bytes = bytes(3000);
        let mut short = Fingerprint::of(&bytes);
        short.shorten(10, 20);
        assert_eq!((short.head(), short.tail()), (&bytes[..10], &bytes[2980..]));
        let mut last = LastBytes::default();
        last.push(&bytes[2980..]);
        let mut skipped = Fingerprint::of(&bytes[..10]);
        skipped.shorten(10, 0);
        skipped.skip(2990, &last);
        assert!(short == skipped);
        let mut other = bytes.clone();
        other[2979] ^= 1;
        assert_eq!(short.matches(reader(&other)), Ok(true));
        other[2980] ^= 1;
        assert_eq!(short.matches(reader(&other)), Ok(false));
    }
}
