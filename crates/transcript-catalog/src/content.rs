//! A checksum of the bytes of a piece of a file, made while they are read.

use crate::sidecar::hash;

/// The length of a block, in bytes. Each block has a checksum, so parts of any size have the same one.
const CHECKSUM_BLOCK_LEN: usize = 64 << 10;

/// The checksum of a sequence of bytes. It is the same in whatever parts they are added.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// The checksums of the blocks so far.
    blocks: u64,
    /// The start of the next block.
    block: Vec<u8>,
    len: u64,
}

impl Content {
    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Adds the next bytes.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        self.len += bytes.len() as u64;
        while !bytes.is_empty() {
            let room = CHECKSUM_BLOCK_LEN - self.block.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            match now.len() {
                CHECKSUM_BLOCK_LEN => self.add(now),
                _ => self.block.extend_from_slice(now),
            }
            if self.block.len() == CHECKSUM_BLOCK_LEN {
                let block = std::mem::take(&mut self.block);
                self.add(&block);
                // The buffer is used again.
                self.block = block;
                self.block.clear();
            }
            bytes = later;
        }
    }

    fn add(&mut self, block: &[u8]) {
        let both = [self.blocks.to_le_bytes(), hash(block).to_le_bytes()];
        self.blocks = hash(both.as_flattened());
    }

    /// Returns the checksum, and starts again.
    pub(crate) fn finish(&mut self) -> u64 {
        let block = std::mem::take(&mut self.block);
        self.add(&block);
        self.block = block;
        self.block.clear();
        self.len = 0;
        std::mem::take(&mut self.blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(parts: &[&[u8]]) -> u64 {
        let mut content = Content::default();
        parts.iter().for_each(|part| content.push(part));
        content.finish()
    }

    #[test]
    fn the_parts_make_no_difference_and_each_byte_does() {
        for len in [
            0,
            1,
            CHECKSUM_BLOCK_LEN - 1,
            CHECKSUM_BLOCK_LEN,
            CHECKSUM_BLOCK_LEN + 1,
            3 * CHECKSUM_BLOCK_LEN + 7,
        ] {
            let mut bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let whole = content(&[&bytes]);
            for cut in [
                0,
                1.min(len),
                len / 2,
                len.saturating_sub(1),
                len.min(CHECKSUM_BLOCK_LEN),
            ] {
                assert_eq!(
                    content(&[&bytes[..cut], &bytes[cut..]]),
                    whole,
                    "{len} {cut}"
                );
            }
            for at in [0, len / 2, len.saturating_sub(1)] {
                let Some(byte) = bytes.get_mut(at) else {
                    continue;
                };
                *byte ^= 1;
                assert_ne!(content(&[&bytes]), whole, "{len} {at}");
                bytes[at] ^= 1;
            }
            bytes.push(0);
            assert_ne!(content(&[&bytes]), whole, "{len}: one more");
        }
    }
}
