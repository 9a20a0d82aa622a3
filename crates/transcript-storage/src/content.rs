//! The content of a file up to an offset, by which a rewrite in place is noticed.

use std::hash::{BuildHasher, RandomState};

use crate::file::Metadata;
use crate::fingerprint::Fingerprint;

/// The number of bytes that have one hash.
const BLOCK_LEN: usize = 64 << 10;
/// The maximum number of these blocks that are compared at a time.
const MAX_COMPARED_BLOCKS: usize = 128;

/// The known content of a file, from its start: a [`Fingerprint`], and a hash of each 64 KiB.
///
/// A file that is rewritten in place keeps its identity, perhaps also its length, its start and its end. So all blocks of
/// it are compared, up to 8 MiB at a time: in a larger file, a change of its middle is noticed after a few comparisons.
#[derive(Clone, Debug)]
pub struct Content {
    known: Fingerprint,
    blocks: Vec<u64>,
    /// The bytes after the last whole block.
    rest: Vec<u8>,
    keys: RandomState,
    /// The block to compare next.
    next: usize,
    /// The number of blocks that were not compared since something last happened to the file.
    left: usize,
    seen: Option<Metadata>,
}

impl Default for Content {
    fn default() -> Self {
        Self::start()
    }
}

impl Content {
    /// Returns the content before offset 0.
    #[must_use]
    pub fn start() -> Self {
        Self {
            known: Fingerprint::start(),
            blocks: Vec::new(),
            rest: Vec::new(),
            keys: RandomState::new(),
            next: 0,
            left: 0,
            seen: None,
        }
    }

    /// Returns the offset up to which the content is known.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.known.offset()
    }

    /// Adds the bytes at the offset `at`. Bytes that are known already are not added again.
    pub fn push(&mut self, at: u64, bytes: &[u8]) {
        let known = self.offset().saturating_sub(at);
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let Some(mut bytes) = bytes.get(known..) else {
            return;
        };
        self.known.push(bytes);
        while !bytes.is_empty() {
            let (taken, left) = bytes.split_at(bytes.len().min(BLOCK_LEN - self.rest.len()));
            self.rest.extend_from_slice(taken);
            bytes = left;
            if self.rest.len() == BLOCK_LEN {
                self.blocks.push(self.keys.hash_one(&self.rest[..]));
                self.rest.clear();
            }
        }
    }

    /// Sets the properties that the file had before it was read.
    pub fn set_seen(&mut self, seen: Metadata) {
        self.seen = Some(seen);
    }

    /// Returns whether nothing happened to a file since [`set_seen`](Self::set_seen), as far as its properties say,
    /// and nothing is left to compare.
    #[must_use]
    pub fn is_untouched(&self, found: &Metadata) -> bool {
        self.left == 0 && self.was_seen_as(found)
    }

    /// Returns whether identity, length and times are those that were seen.
    fn was_seen_as(&self, found: &Metadata) -> bool {
        self.seen.is_some_and(|seen| {
            (seen.identity, seen.len, seen.modified, seen.changed)
                == (found.identity, found.len, found.modified, found.changed)
        })
    }

    /// Returns whether a file with these properties is the one that was read, and still begins with the known bytes, as
    /// far as that was compared. Of a file above 8 MiB the rest is compared by the next calls, whether anything happened
    /// to it meanwhile or not; until then it is not [untouched](Self::is_untouched).
    ///
    /// `read_at` works as for [`Fingerprint::read`].
    ///
    /// # Errors
    /// The errors of `read_at`.
    pub fn is_start_of<E>(
        &mut self,
        found: &Metadata,
        mut read_at: impl FnMut(u64, &mut [u8]) -> Result<usize, E>,
    ) -> Result<bool, E> {
        let is_other = self
            .seen
            .is_some_and(|seen| seen.identity != found.identity);
        if is_other || found.len < self.offset() {
            return Ok(false);
        }
        if self.is_untouched(found) {
            return Ok(true);
        }
        if !self.was_seen_as(found) {
            self.left = self.blocks.len();
        }
        if !self.known.matches(&mut read_at)? {
            return Ok(false);
        }
        let mut buffer = vec![0; BLOCK_LEN];
        let rest = &mut buffer[..self.rest.len()];
        let start = (self.blocks.len() * BLOCK_LEN) as u64;
        if read_at(start, rest)? < self.rest.len() || *rest != self.rest[..] {
            return Ok(false);
        }
        for _ in 0..self.left.min(MAX_COMPARED_BLOCKS) {
            let block = self.next % self.blocks.len();
            let read = read_at((block * BLOCK_LEN) as u64, &mut buffer)?;
            if read < BLOCK_LEN || self.keys.hash_one(&buffer[..]) != self.blocks[block] {
                return Ok(false);
            }
            self.next = block + 1;
            self.left -= 1;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use super::*;
    use crate::{MemoryDisk, ReadDisk};

    #[test]
    fn any_byte_that_changes_in_place_is_noticed() -> io::Result<()> {
        let (disk, path) = (MemoryDisk::new(), Path::new("/s.jsonl"));
        for len in [1, 300, 2000, BLOCK_LEN, BLOCK_LEN + 1, 3 * BLOCK_LEN + 5] {
            let bytes: Vec<u8> = (0..len).map(|at| (at * 7 + at / 256) as u8).collect();
            disk.put(path, bytes.clone());
            let mut content = Content::start();
            content.set_seen(disk.metadata(path)?);
            for (number, piece) in bytes.chunks(1000).enumerate() {
                content.push(number as u64 * 1000, piece);
                content.push(number as u64 * 1000, piece);
            }
            assert_eq!(content.offset(), len as u64);
            let mut check = |bytes: &[u8]| {
                let mut found = disk.metadata(path)?;
                // Something was appended.
                found.len += 1;
                content.is_start_of(&found, |at, buffer: &mut [u8]| {
                    let rest = bytes.get(at as usize..).unwrap_or_default();
                    let read = rest.len().min(buffer.len());
                    buffer[..read].copy_from_slice(&rest[..read]);
                    Ok::<_, io::Error>(read)
                })
            };
            assert!(check(&bytes)?);
            for at in (0..len).step_by(97).chain([len - 1]) {
                let mut other = bytes.clone();
                other[at] ^= 1;
                assert!(!check(&other)?, "{len} bytes, {at}");
            }
            assert!(!check(&bytes[..len - 1])?);
        }
        Ok(())
    }

    /// A file that grows once and one that grows all the time.
    #[test]
    fn the_middle_of_a_large_file_is_compared_in_turn() {
        let blocks = 3 * MAX_COMPARED_BLOCKS;
        for (changed, growths) in [(1, 1), (2, 1), (1, 9), (2, 9)] {
            let mut bytes = vec![b'x'; blocks * BLOCK_LEN];
            let mut found = Metadata {
                len: bytes.len() as u64,
                ..Metadata::of_folder_in_memory()
            };
            let mut content = Content::start();
            content.set_seen(found);
            content.push(0, &bytes);
            bytes[changed * MAX_COMPARED_BLOCKS * BLOCK_LEN + 9] = b'y';
            let mut comparisons = 0;
            loop {
                found.len += u64::from(comparisons < growths);
                assert!(!content.is_untouched(&found));
                let Ok(is_start) = content.is_start_of(&found, |at, buffer: &mut [u8]| {
                    let rest = &bytes[at as usize..];
                    buffer.copy_from_slice(&rest[..buffer.len()]);
                    Ok::<_, std::convert::Infallible>(buffer.len())
                });
                content.set_seen(found);
                if !is_start {
                    break;
                }
                comparisons += 1;
            }
            assert_eq!(comparisons, changed);
        }
    }

    #[test]
    fn a_large_file_that_only_grew_is_compared_once() {
        let bytes = vec![b'x'; 3 * MAX_COMPARED_BLOCKS * BLOCK_LEN];
        let mut found = Metadata {
            len: bytes.len() as u64,
            ..Metadata::of_folder_in_memory()
        };
        let mut content = Content::start();
        content.set_seen(found);
        content.push(0, &bytes);
        found.len += 1;
        let mut read = 0;
        for _ in 0..9 {
            let Ok(is_start) = content.is_start_of(&found, |_, buffer: &mut [u8]| {
                read += buffer.len();
                buffer.fill(b'x');
                Ok::<_, std::convert::Infallible>(buffer.len())
            });
            assert!(is_start);
            content.set_seen(found);
        }
        assert!(content.is_untouched(&found));
        assert!(read < bytes.len() + 64 * BLOCK_LEN, "{read}");
    }
}
