//! Packs: files of zstd frames, in the seekable format of zstd.
//!
//! ```text
//! zstd frame, or skippable frame with one     lines, or something that is not lines
//! …
//! skippable frame 0x184D2A5D                  the index: magic, length, hash, postcard in zstd
//! skippable frame 0x184D2A5E                  the seek table
//! ```
//!
//! Any zstd decompresses the lines, because it skips the rest.

use std::io;

use transcript_storage::ReadFile;

use crate::limits::{self, MAX_INDEX_LEN};
use crate::record::{Hash, PackIndex, hash};

/// The magic number of skippable frames whose content is not lines, such as files in folders.
const HIDDEN_FRAME_MAGIC: u32 = 0x184D_2A5C;
/// The magic number of the skippable frame with the index.
const INDEX_FRAME_MAGIC: u32 = 0x184D_2A5D;
/// The magic number of the skippable frame with the seek table.
const SEEK_TABLE_MAGIC: u32 = 0x184D_2A5E;
/// The magic number at the end of a seek table.
const SEEK_TABLE_END_MAGIC: u32 = 0x8F92_EAB1;
/// The length of the header of a skippable frame.
const SKIPPABLE_HEADER_LEN: usize = 8;
/// The length of the footer after the entries of the seek table.
const SEEK_TABLE_FOOTER_LEN: usize = 9;
/// The length of an entry of the seek table.
const SEEK_TABLE_ENTRY_LEN: usize = 8;
/// The first bytes of an index. The last of them is the version of its format.
const INDEX_MAGIC: &[u8; 8] = b"TRNSCRP1";
/// The compression level of indexes.
const INDEX_COMPRESSION_LEVEL: i32 = 3;

fn skippable(magic: u32, len: usize) -> [u8; SKIPPABLE_HEADER_LEN] {
    let mut header = [0; SKIPPABLE_HEADER_LEN];
    header[..4].copy_from_slice(&magic.to_le_bytes());
    header[4..].copy_from_slice(&(len as u32).to_le_bytes());
    header
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The offsets of the frames of a pack, while it is written.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    end: u64,
    seek_table: Vec<u8>,
}

impl Layout {
    /// Returns the bytes of a frame as they are in the pack, and the offset of the zstd frame. Those of `len` bytes
    /// that are lines are seen by any zstd.
    pub(crate) fn frame(&mut self, frame: Vec<u8>, len: usize, is_lines: bool) -> (Vec<u8>, u64) {
        if is_lines {
            let at = self.end;
            self.add(frame.len(), len);
            return (frame, at);
        }
        let at = self.end + SKIPPABLE_HEADER_LEN as u64;
        let bytes = [&skippable(HIDDEN_FRAME_MAGIC, frame.len())[..], &frame].concat();
        self.add(bytes.len(), 0);
        (bytes, at)
    }

    fn add(&mut self, stored: usize, len: usize) {
        self.end += stored as u64;
        self.seek_table.extend((stored as u32).to_le_bytes());
        self.seek_table.extend((len as u32).to_le_bytes());
    }

    /// Returns the bytes that end a pack, and the section with its index.
    pub(crate) fn finish(mut self, index: &PackIndex) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let section = section(index)?;
        self.add(SKIPPABLE_HEADER_LEN + section.len(), 0);
        let mut bytes = skippable(INDEX_FRAME_MAGIC, section.len()).to_vec();
        bytes.extend(&section);
        bytes.extend(skippable(
            SEEK_TABLE_MAGIC,
            self.seek_table.len() + SEEK_TABLE_FOOTER_LEN,
        ));
        bytes.extend(&self.seek_table);
        bytes.extend(((self.seek_table.len() / SEEK_TABLE_ENTRY_LEN) as u32).to_le_bytes());
        bytes.push(0);
        bytes.extend(SEEK_TABLE_END_MAGIC.to_le_bytes());
        Ok((bytes, section))
    }
}

/// Returns the bytes of an index, as packs and the catalogue keep it.
pub(crate) fn section(index: &PackIndex) -> io::Result<Vec<u8>> {
    let bytes = postcard::to_allocvec(index).map_err(io::Error::other)?;
    if bytes.len() > MAX_INDEX_LEN {
        // No reader would accept it.
        return Err(too_long(bytes.len()));
    }
    let packed = zstd::bulk::compress(&bytes, INDEX_COMPRESSION_LEVEL)?;
    let mut section = INDEX_MAGIC.to_vec();
    section.extend((bytes.len() as u64).to_le_bytes());
    section.extend(hash(&packed));
    section.extend(packed);
    Ok(section)
}

/// The length of the header before the compressed index: magic, uncompressed length, hash.
const INDEX_HEADER_LEN: usize = INDEX_MAGIC.len() + 8 + size_of::<Hash>();

/// Reads an index from its section.
pub(crate) fn read_section(section: &[u8]) -> io::Result<PackIndex> {
    let Some((header, packed)) = section.split_at_checked(INDEX_HEADER_LEN) else {
        return Err(damaged("the index is cut off"));
    };
    if &header[..8] != INDEX_MAGIC {
        return Err(damaged("the index has an unknown format"));
    }
    let mut len = [0; 8];
    len.copy_from_slice(&header[8..16]);
    let len = usize::try_from(u64::from_le_bytes(len)).unwrap_or(usize::MAX);
    if hash(packed)[..] != header[16..] {
        return Err(damaged("the index is damaged"));
    }
    if len > MAX_INDEX_LEN {
        return Err(too_long(len));
    }
    let bytes = zstd::bulk::decompress(packed, len)?;
    let index = postcard::from_bytes(&bytes).map_err(|_| damaged("the index is damaged"))?;
    limits::check(&index).map_err(|what| damaged(&what))?;
    Ok(index)
}

fn too_long(len: usize) -> io::Error {
    damaged(&format!(
        "the index states {len} bytes; the limit is {MAX_INDEX_LEN}"
    ))
}

/// Reads the index of a pack. An error says where the index is.
pub(crate) fn read(file: &dyn ReadFile) -> io::Result<PackIndex> {
    let (at, section) = read_index(file)?;
    read_section(&section)
        .map_err(|error| io::Error::new(error.kind(), format!("offset {at}: {error}")))
}

/// Reads the section with the index of a pack; and the offset at which it is.
pub(crate) fn read_index(file: &dyn ReadFile) -> io::Result<(u64, Vec<u8>)> {
    let end = file.metadata()?.len;
    let read = |at: u64, len: usize| -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        match file.fill(at, &mut bytes)? {
            read if read == len => Ok(bytes),
            _ => Err(damaged("the pack is cut off")),
        }
    };
    let u32_at = |bytes: &[u8], at: usize| {
        let mut number = [0; 4];
        number.copy_from_slice(&bytes[at..at + 4]);
        u32::from_le_bytes(number)
    };
    let cut_off = || damaged("the pack is cut off");
    let footer_at = end
        .checked_sub(SEEK_TABLE_FOOTER_LEN as u64)
        .ok_or_else(cut_off)?;
    let footer = read(footer_at, SEEK_TABLE_FOOTER_LEN)?;
    let entries = u32_at(&footer, 0);
    if u32_at(&footer, 5) != SEEK_TABLE_END_MAGIC || entries == 0 {
        return Err(cut_off());
    }
    // The index is the last frame before the seek table.
    let last_at = footer_at
        .checked_sub(SEEK_TABLE_ENTRY_LEN as u64)
        .ok_or_else(cut_off)?;
    let len = u32_at(&read(last_at, SEEK_TABLE_ENTRY_LEN)?, 0) as usize;
    let table = u64::from(entries) * SEEK_TABLE_ENTRY_LEN as u64 + SKIPPABLE_HEADER_LEN as u64;
    let table_at = footer_at.checked_sub(table).ok_or_else(cut_off)?;
    let index_at = table_at.checked_sub(len as u64).ok_or_else(cut_off)?;
    if !(SKIPPABLE_HEADER_LEN..=MAX_INDEX_LEN).contains(&len) {
        return Err(damaged("the seek table is damaged"));
    }
    let frame = read(index_at, len)?;
    if u32_at(&frame, 0) != INDEX_FRAME_MAGIC {
        return Err(damaged("the seek table is damaged"));
    }
    Ok((index_at, frame[SKIPPABLE_HEADER_LEN..].to_vec()))
}
