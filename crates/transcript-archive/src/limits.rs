//! The largest values that an archive may state. No capture writes more: an index that states more was made to
//! exhaust the memory or the time of its reader, and is refused.

use crate::record::{Coding, Frame, PackIndex, Version};

/// The longest content of a frame, in bytes: twice the longest line that is stored in one piece. The same holds for a prefix.
pub(crate) const MAX_FRAME: u64 = 64 << 20;
/// The longest frame as it is stored, in bytes: what does not compress grows a little.
const MAX_STORED: u64 = MAX_FRAME + (1 << 20);
/// The longest index of a pack, in bytes, uncompressed.
pub(crate) const MAX_INDEX: usize = 64 << 20;
/// The most versions of a file that continue each other. The next one is stored as a whole.
pub(crate) const MAX_CHAIN: usize = 1 << 14;
/// A pack ends when its index, or what is kept in one frame about all its files, has this length, in bytes.
pub(crate) const FULL_INDEX: usize = MAX_INDEX / 2;
/// The maximum number of parts of a file that are searched for in other files. The rest is stored as it is, in few parts.
pub(crate) const MAX_EXTENTS: usize = 200_000;

/// The most bytes that the index takes for a frame, a version, a place or a slice, without what varies.
const FRAME: usize = 48;
const VERSION: usize = 160;
const PLACE: usize = 11;
const SLICE: usize = 20;

/// Returns the most bytes that a frame takes in an index.
pub(crate) fn frame_len(coding: &Coding) -> usize {
    match coding {
        Coding::Prefix(slices) => FRAME + SLICE * slices.len(),
        _ => FRAME,
    }
}

/// Returns the most bytes that a version takes in an index.
pub(crate) fn version_len(version: &Version) -> usize {
    VERSION + version.path.len() + SLICE * version.extents.len()
}

/// Returns the most bytes that an index takes in the index of a pack that has everything of its pack.
pub(crate) fn joined_len(index: &PackIndex) -> usize {
    let frames = index.frames.iter();
    let frames: usize = frames.map(|frame| frame_len(&frame.coding) + PLACE).sum();
    let versions: usize = index.versions.iter().map(version_len).sum();
    let replaced = index.replaces.iter();
    let replaced: usize = replaced
        .map(|replaced| FRAME + PLACE * replaced.frames.len())
        .sum();
    frames + versions + replaced + VERSION + SLICE * (index.packs.len() + index.copies.len())
}

/// Checks what an index states.
///
/// # Errors
/// What is beyond a limit, and where.
pub(crate) fn check(index: &PackIndex) -> Result<(), String> {
    index.frames.iter().try_for_each(check_frame)?;
    // Each part of a file has content of its own.
    let mut content: u64 = index.frames.iter().map(|frame| u64::from(frame.len)).sum();
    for (number, version) in index.versions.iter().enumerate() {
        let parts: u64 = version.extents.iter().map(|part| u64::from(part.len)).sum();
        let keep = version.before.map_or(0, |before| before.keep);
        if keep.checked_add(parts) != Some(version.len) {
            return Err(format!(
                "version {number} states {} bytes, and its parts have {parts} after {keep}",
                version.len
            ));
        }
        let Some(left) = content.checked_sub(parts) else {
            return Err(format!(
                "version {number} states {parts} bytes, which is more than its pack has"
            ));
        };
        content = left;
    }
    Ok(())
}

fn check_frame(frame: &Frame) -> Result<(), String> {
    let prefix = match &frame.coding {
        Coding::Prefix(slices) => slices.iter().map(|slice| u64::from(slice.len)).sum(),
        _ => 0,
    };
    for (what, len, most) in [
        ("content", frame.len.into(), MAX_FRAME),
        ("stored content", frame.stored.into(), MAX_STORED),
        ("a prefix", prefix, MAX_FRAME),
    ] {
        if len > most {
            let at = frame.at;
            return Err(format!(
                "the frame at offset {at} states {len} bytes of {what}; the limit is {most}"
            ));
        }
    }
    Ok(())
}
