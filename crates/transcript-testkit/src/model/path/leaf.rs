//! The leaf: the entry at which the conversation ends.

use std::collections::HashSet;

use serde_json::Value;

use super::compaction::Tail;
use super::graph::{Graph, Kind, key, kind};
use super::siblings::{loose_lines_of, members, results};
use crate::model::lines::Line;

/// Returns the last tip of the file, where a tip is an entry of the main chain whose children are all
/// attachments (LEAF-1, LEAF-2). If a cycle leaves no tip, it is the last line (LEAF-4). `None` if the
/// file has no line of the main chain.
fn last_tip(graph: &Graph) -> Option<usize> {
    let mut has_child = vec![false; graph.entries.len()];
    for index in 0..graph.entries.len() {
        let entry = &graph.entries[index];
        if let Some(parent) = graph.parent(index)
            && entry.kind != Kind::Attachment
            && !entry.is_sidechain
        {
            has_child[parent] = true;
        }
    }
    let on_main_chain: Vec<usize> = (0..graph.entries.len())
        .filter(|&index| !graph.entries[index].is_sidechain)
        .collect();
    let mut tips = on_main_chain.iter().filter(|&&index| !has_child[index]);
    tips.next_back().or(on_main_chain.last()).copied()
}

/// Returns the leaf without a pin: the last tip. If it has no message above it, for example a boundary,
/// it is the last of the `ends`, or the newest message (LEAF-3, LEAF-14). In a file without a message
/// the last tip counts as it is (LEAF-16).
fn unpinned_leaf(graph: &Graph, ends: Option<&HashSet<usize>>) -> Option<usize> {
    let last = last_tip(graph)?;
    if graph.has_message_above(last) || !graph.has_message() {
        return Some(last);
    }
    match ends {
        Some(ends) => ends.iter().max().copied(),
        None => newest_message(graph),
    }
}

/// Returns the message of the main chain with the greatest timestamp; of equal ones the first.
fn newest_message(graph: &Graph) -> Option<usize> {
    let mut newest: Option<usize> = None;
    for (index, entry) in graph.entries.iter().enumerate() {
        if entry.is_sidechain || !entry.is_message() {
            continue;
        }
        if newest.is_none_or(|newest| entry.millis > graph.entries[newest].millis) {
            newest = Some(index);
        }
    }
    newest
}

/// Returns the leaf of the file; `None` if no line can be one. The error says why the client refuses.
pub(super) fn leaf(
    graph: &Graph,
    lines: &[Line],
    tail: Tail,
) -> Result<Option<usize>, &'static str> {
    // After a compaction that keeps entries the client looks for the ends of the conversation first.
    let ends = match tail {
        Tail::None => None,
        Tail::Kept => Some(ends(graph)),
    };
    if let Some(leaf) = pinned_leaf(graph, lines, ends.as_ref()) {
        return Ok(Some(leaf));
    }
    let ends = ends.as_ref();
    if ends.is_some_and(HashSet::is_empty) && graph.has_message() {
        return Err("no message is the end of a conversation");
    }
    Ok(unpinned_leaf(graph, ends))
}

/// Returns the messages of the main chain that no other message follows, directly or through other
/// entries. Messages of a sidechain count as followers (LEAF-18).
fn ends(graph: &Graph) -> HashSet<usize> {
    let messages = || (0..graph.entries.len()).filter(|&index| graph.entries[index].is_message());
    let followed: HashSet<usize> = messages()
        .filter_map(|index| {
            let mut above = graph.ancestors(index).into_iter().skip(1);
            above.find(|&above| graph.entries[above].is_message())
        })
        .collect();
    messages()
        .filter(|index| !graph.entries[*index].is_sidechain && !followed.contains(index))
        .collect()
}

/// Returns the leaf that the pin, the last `last-prompt` line, names. `None` when there is no pin, or
/// when it gives way to the leaf that the file has without it. If there are `ends`, the pin has to be
/// one of them (LEAF-18).
fn pinned_leaf(graph: &Graph, lines: &[Line], ends: Option<&HashSet<usize>>) -> Option<usize> {
    let (at, pin) = lines.iter().enumerate().rev().find_map(|(at, line)| {
        let is_pin = line.object.get("type") == Some(&"last-prompt".into());
        let uuid = line.object.get("leafUuid").filter(|uuid| uuid.is_string());
        uuid.filter(|_| is_pin).map(|uuid| (at, uuid))
    })?;
    let explicit = lines[at].object.get("explicit") == Some(&Value::Bool(true));
    let after = &lines[at + 1..];
    // Any boundary after the pin removes it, whatever else the boundary line contains (LEAF-13).
    if after.iter().any(is_boundary_line) {
        return None;
    }
    // Ignored if unknown, such as the uuid of zeros, or leading to no message (LEAF-6, LEAF-7).
    let pin = graph
        .place(&pin.to_string())
        .filter(|&pin| graph.has_message_above(pin))?;

    let followers: Vec<usize> = after
        .iter()
        .filter(|line| kind(&line.object).is_some())
        .filter_map(|line| graph.place(&key(&line.object)))
        .filter(|&index| !graph.entries[index].is_sidechain)
        .collect();
    if explicit && followers.is_empty() {
        // The user chose the place (LEAF-11).
        return Some(pin);
    }
    if ends.is_some_and(|ends| !ends.contains(&pin)) {
        return None;
    }
    let leaf = match followers.last() {
        // If the last later line is a descendant of the pin, the path ends there, even if that line
        // is a repeated one or other later lines are not descendants (LEAF-8). A line without a
        // parent is not a descendant.
        Some(&last) => last,
        // At the end of the file, the pin gives way to the last tip if that is a descendant
        // (LEAF-8).
        None => unpinned_leaf(graph, ends)?,
    };
    if !lies_on_chain(graph, pin, leaf) {
        // On another branch the chain ends at the pin (LEAF-10).
        return Some(pin);
    }
    (!followers.is_empty()).then_some(leaf)
}

fn is_boundary_line(line: &Line) -> bool {
    line.object.get("type") == Some(&"system".into())
        && line.object.get("subtype") == Some(&"compact_boundary".into())
}

/// Returns whether `index` is an ancestor of `leaf`, by links of the file alone. The lines of a
/// message, the results of its calls and the loose lines around them count as ancestors when one of the
/// lines is one (LEAF-12).
fn lies_on_chain(graph: &Graph, index: usize, leaf: usize) -> bool {
    let children = graph.children();
    graph.ancestors(leaf).into_iter().any(|above| {
        let members = members(graph, above);
        let results = results(graph, &members);
        let is_loose = || loose_lines_of(graph, &children, &members, &results).contains(&index);
        above == index || members.contains(&index) || results.contains(&index) || is_loose()
    })
}
