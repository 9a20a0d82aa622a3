//! Bytes that are nearly those of an earlier version of their file: a program wrote a database or a document in place.
//!
//! They are compressed with what the earlier version had there as prefix, so that a page that changed costs a page.

use crate::archive::Archive;
use crate::catalogue::Piece;
use crate::lines::is_similar;
use crate::record::{Coding, Slice};

/// The minimum length of bytes for which an earlier version is read.
const MIN_LEN: usize = 4 << 10;
/// The maximum length of what the earlier version had there, in bytes. It is in the window of the compressor with the new bytes.
const MAX_PREFIX_LEN: usize = 2 << 20;

/// The content of slices, which are in packs by their numbers in the catalogue.
pub(crate) type Prefix = (Vec<(u32, Slice)>, Vec<u8>);

impl Archive {
    /// Returns what a version had at an offset, as frames without a prefix have it, if `bytes` are nearly that. A part that was
    /// stored with a prefix itself is compared by that.
    pub(crate) fn alike(&self, pieces: &[Piece], at: u64, bytes: &[u8]) -> Option<Prefix> {
        if bytes.len() < MIN_LEN {
            return None;
        }
        let end = at + bytes.len() as u64;
        let first = pieces.partition_point(|piece| piece.end() <= at);
        let pieces = pieces[first..].iter();
        let mut slices: Vec<(u32, Slice)> = Vec::new();
        for piece in pieces.take_while(|piece| piece.at < end) {
            for slice in self.originals(piece, at.max(piece.at), end.min(piece.end()))? {
                if !slices.contains(&slice) {
                    slices.push(slice);
                }
            }
        }
        let len: usize = slices.iter().map(|(_, slice)| slice.len as usize).sum();
        if len > MAX_PREFIX_LEN {
            return None;
        }
        let mut prefix = Vec::with_capacity(len);
        for (pack, slice) in &slices {
            // A damaged part cannot be a base: the bytes are stored again.
            let content = self.content(*pack, slice.frame).ok()?;
            let start = slice.start as usize;
            prefix.extend(content.get(start..start + slice.len as usize)?);
        }
        is_similar(bytes, &prefix).then_some((slices, prefix))
    }

    /// Returns the parts of frames without a prefix that have a part of a piece, or most of it.
    fn originals(&self, piece: &Piece, from: u64, to: u64) -> Option<Vec<(u32, Slice)>> {
        let (pack, frame, start) = piece.place?;
        if !self.is_with_prefix(pack, frame) {
            let within = u32::try_from(from - piece.at).ok()?;
            let slice = Slice {
                pack: 0,
                frame,
                start: start.checked_add(within)?,
                len: u32::try_from(to - from).ok()?,
            };
            return Some(vec![(pack, slice)]);
        }
        let index = &self.catalogue.packs.get(pack as usize)?.index;
        let Coding::Prefix(slices) = &index.frames.get(frame as usize)?.coding else {
            return None;
        };
        let original = |slice: &Slice| {
            let catalogue = &self.catalogue;
            let place = catalogue.referred_place(pack, slice.pack, slice.frame, slice.start);
            let (pack, frame, start) = place?;
            let slice = Slice {
                pack: 0,
                frame,
                start,
                len: slice.len,
            };
            (!self.is_with_prefix(pack, frame)).then_some((pack, slice))
        };
        slices.iter().map(original).collect()
    }
}
