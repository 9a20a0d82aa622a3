//! The largest values that an archive may state. No capture writes more: an index that states more was made to
//! exhaust the memory or the time of its reader, and is refused.

use crate::record::{Coding, Frame, PackIndex, Version};

/// The maximum length of the content of a frame, in bytes: twice the longest line that is stored in one piece. The same holds for a prefix.
pub(crate) const MAX_FRAME_LEN: u64 = 64 << 20;
/// The maximum stored length of a frame, in bytes: content that does not compress grows a little.
const MAX_STORED_FRAME_LEN: u64 = MAX_FRAME_LEN + (1 << 20);
/// The maximum length of the index of a pack, in bytes, uncompressed.
pub(crate) const MAX_INDEX_LEN: usize = 64 << 20;
/// The maximum number of versions of a file that continue each other. The next one is stored as a whole.
pub(crate) const MAX_VERSION_CHAIN: usize = 1 << 14;
/// A pack ends when its index, its features or its summaries have this length, in bytes: each of them is read at once.
pub(crate) const FULL_INDEX_LEN: usize = MAX_INDEX_LEN / 2;
/// The maximum number of parts of a file that are searched for in other files. The rest is stored as it is, in few parts.
pub(crate) const MAX_EXTENTS: usize = 200_000;

/// The maximum number of bytes that the index takes for a frame, a version, a position or a slice, without their variable parts.
const MAX_FRAME_RECORD_LEN: usize = 48;
const MAX_VERSION_RECORD_LEN: usize = 160;
const MAX_POSITION_LEN: usize = 11;
const MAX_SLICE_LEN: usize = 20;

/// Returns the maximum number of bytes that a frame takes in an index.
pub(crate) fn frame_len(coding: &Coding) -> usize {
    match coding {
        Coding::Prefix(slices) => MAX_FRAME_RECORD_LEN + MAX_SLICE_LEN * slices.len(),
        _ => MAX_FRAME_RECORD_LEN,
    }
}

/// Returns the maximum number of bytes that a version takes in an index.
pub(crate) fn version_len(version: &Version) -> usize {
    MAX_VERSION_RECORD_LEN + version.path.len() + MAX_SLICE_LEN * version.extents.len()
}

/// Returns the maximum number of bytes that an index takes in the index of a pack that replaces its pack.
pub(crate) fn joined_len(index: &PackIndex) -> usize {
    let frames = index.frames.iter();
    let frames: usize = frames
        .map(|frame| frame_len(&frame.coding) + MAX_POSITION_LEN)
        .sum();
    let versions: usize = index.versions.iter().map(version_len).sum();
    let replaced = index.replaces.iter();
    let replaced: usize = replaced
        .map(|replaced| MAX_FRAME_RECORD_LEN + MAX_POSITION_LEN * replaced.frames.len())
        .sum();
    frames
        + versions
        + replaced
        + MAX_VERSION_RECORD_LEN
        + MAX_SLICE_LEN * (index.packs.len() + index.copies.len())
}

/// Checks the values of an index against the limits.
///
/// # Errors
/// Names the value that exceeds a limit, and the frame or version that has it.
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
        ("content", frame.len.into(), MAX_FRAME_LEN),
        ("stored content", frame.stored.into(), MAX_STORED_FRAME_LEN),
        ("a prefix", prefix, MAX_FRAME_LEN),
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
