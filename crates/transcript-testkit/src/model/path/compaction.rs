//! The entries from before a compaction that stay on the path.

use std::collections::HashSet;

use serde_json::Value;

use super::graph::{Entry, Graph};

/// Whether the last boundary of a file keeps entries from before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// It keeps some of them.
    Kept,
    /// It keeps none, or there is no boundary.
    None,
}

/// The entries that a boundary keeps, oldest first, and their anchor: the summary or the boundary.
/// The anchor is missing when the client was killed before it wrote the summary.
struct Kept {
    uuids: Vec<String>,
    anchor: Option<String>,
}

/// Returns the preserved entries: those of the list if there is one, even an empty one (COMPACT-3,
/// COMPACT-6), else those from the tail up to the head of the segment. `None` if nothing is
/// preserved, or one of the entries is missing (COMPACT-5).
fn kept(graph: &Graph, metadata: &Value) -> Option<Kept> {
    let list = &metadata["preservedMessages"];
    let segment = &metadata["preservedSegment"];
    let (anchor, uuids) = if list["uuids"].is_array() {
        let uuids: Option<Vec<String>> = list["uuids"].as_array()?.iter().map(text_key).collect();
        (text_key(&list["anchorUuid"]), uuids?)
    } else {
        (
            text_key(&segment["anchorUuid"]),
            segment_uuids(graph, segment)?,
        )
    };
    let is_there = |key: &String| graph.place(key).is_some();
    if uuids.is_empty() || !uuids.iter().all(is_there) {
        return None;
    }
    Some(Kept {
        uuids,
        anchor: anchor.filter(is_there),
    })
}

/// Returns the key for a uuid that is a text. A `null` names no entry, although it may be the uuid of
/// an entry.
fn text_key(value: &Value) -> Option<String> {
    value.is_string().then(|| value.to_string())
}

fn segment_uuids(graph: &Graph, segment: &Value) -> Option<Vec<String>> {
    let head = graph.place(&text_key(&segment["headUuid"])?)?;
    let tail = graph.place(&text_key(&segment["tailUuid"])?)?;
    let mut line = graph.ancestors(tail);
    let length = line.iter().position(|&index| index == head)? + 1;
    line.truncate(length);
    Some(
        line.into_iter()
            .rev()
            .map(|index| graph.entries[index].key.clone())
            .collect(),
    )
}

/// Moves the entries that the last boundary keeps after its anchor; the children of the anchor become
/// children of their tail. Without the anchor they start the conversation. Everything else before the
/// boundary is removed.
///
/// A boundary with an empty list removes everything before it as well, and so does one without a list or
/// segment, if an earlier boundary has one, valid or not (COMPACT-12).
pub(super) fn splice(graph: &mut Graph) -> Tail {
    let Some(boundary) = graph.entries.iter().rposition(Entry::is_boundary) else {
        return Tail::None;
    };
    let metadata = graph.entries[boundary].object.get("compactMetadata");
    let Some(Kept { uuids, anchor }) = metadata.and_then(|metadata| kept(graph, metadata)) else {
        let last = &graph.entries[boundary];
        let mut earlier = graph.entries[..boundary].iter();
        let follows_list = !names_kept_entries(last)
            && earlier.any(|entry| entry.is_boundary() && names_kept_entries(entry));
        if has_empty_list(last) || follows_list {
            let gone = graph.entries[..boundary].iter();
            graph.remove(&gone.map(|entry| entry.key.clone()).collect());
        }
        return Tail::None;
    };
    let tail = &uuids[uuids.len() - 1];

    let stays = |key: &String| uuids.contains(key) || anchor.as_ref() == Some(key);
    let gone: HashSet<String> = graph.entries[..boundary]
        .iter()
        .filter(|entry| !stays(&entry.key))
        .map(|entry| entry.key.clone())
        .collect();
    graph.remove(&gone);
    for entry in &mut graph.entries {
        // A rewind to an entry that was removed follows the tail, also when the anchor is the
        // boundary (COMPACT-7).
        if entry
            .parent
            .as_ref()
            .is_some_and(|parent| anchor.as_ref() == Some(parent) || gone.contains(parent))
        {
            entry.parent = Some(tail.clone());
        }
    }
    let mut parent = anchor.as_ref();
    for uuid in &uuids {
        let place = graph.places[uuid];
        graph.entries[place].parent = parent.cloned();
        parent = Some(uuid);
    }
    Tail::Kept
}

/// Returns whether a boundary has a list or a segment of entries that it keeps.
fn names_kept_entries(boundary: &Entry) -> bool {
    let metadata = boundary.object.get("compactMetadata");
    metadata.is_some_and(|metadata| {
        metadata["preservedMessages"]["uuids"].is_array()
            || metadata["preservedSegment"].is_object()
    })
}

fn has_empty_list(boundary: &Entry) -> bool {
    let metadata = boundary.object.get("compactMetadata");
    let list = metadata.and_then(|metadata| metadata["preservedMessages"]["uuids"].as_array());
    list.is_some_and(Vec::is_empty)
}

/// Cuts the chain at its last boundary, where the conversation starts (COMPACT-2).
pub(super) fn cut_at_boundary(graph: &Graph, chain: &mut Vec<usize>) {
    if let Some(at) = chain
        .iter()
        .rposition(|&index| graph.entries[index].is_boundary())
    {
        chain.drain(..at);
    }
}
