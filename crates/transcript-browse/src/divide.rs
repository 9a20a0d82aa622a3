//! Divides a conversation into parts, which are laid out one by one.

use std::collections::HashSet;
use std::ops::Range;

use transcript_format::scan::ToolRole;
use transcript_reader::{Index, ToolKey};
use transcript_resume::ConversationPath;
use transcript_resume::items::starts_turn;

/// A part ends before the next prompt when it has this many bytes, and before any message when it
/// has eight times as many.
const MIN_PART_LEN: u64 = 64 << 10;

/// Divides a path into parts. Each has at least [`MIN_PART_LEN`] bytes and, if possible, starts with a
/// prompt; no part starts between a call and its result, unless there is none. Reads no bodies.
pub(crate) fn divide(index: &Index, path: &ConversationPath) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut start, mut size) = (0, 0);
    let mut open: HashSet<ToolKey> = HashSet::new();
    let mut message = None;
    for (place, entry) in path.entries.iter().enumerate() {
        let entry_ref = index.entry(entry.entry_no());
        let is_turn = starts_turn(&entry_ref);
        if is_turn {
            open.clear();
        }
        let is_new = entry_ref.kind().is_message()
            && (entry_ref.message().is_none() || entry_ref.message() != message);
        let ends = (is_turn && size >= MIN_PART_LEN)
            || (is_new && open.is_empty() && size >= 8 * MIN_PART_LEN)
            || size >= 64 * MIN_PART_LEN;
        if ends && place > start {
            parts.push(start..place);
            (start, size) = (place, 0);
            open.clear();
        }
        size += entry_ref.byte_len();
        message = entry_ref.message();
        for end in entry_ref.tools() {
            match end.role() {
                ToolRole::Use | ToolRole::ServerUse => open.insert(end.key()),
                _ => open.remove(&end.key()),
            };
        }
    }
    if start < path.entries.len() {
        parts.push(start..path.entries.len());
    }
    parts
}
