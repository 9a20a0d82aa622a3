//! The truth about a damaged session: the entries that its bytes still prove.
//!
//! A destroyed link leaves a gap. The entries above the gap are proved if a careful person could
//! find where the link led: the torn line still shows both ids; the entry below answers a call, or
//! belongs to an API message, on the path above; or the previous message of the file is the one
//! above, and the two are not both prompts. Two prompts in a row can be a prompt that was rewound
//! before it was answered (fixtures `pains/03-*`), or a conversation that lost an answer.
//! Nothing else about rewinds can be proved: without the first line of a new branch, the file is
//! the same as that of a conversation without a rewind.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::healthy::{Healthy, Line, Role};
use super::mutations::{Damage, Loss};
use crate::model;

/// The entries that a path of one damaged session must show (`uuids`) and may show (`unproven`).
pub(super) struct Truth {
    pub(super) uuids: Vec<String>,
    pub(super) unproven: HashSet<String>,
}

/// Whether the bytes prove which entry is above a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    Proved,
    /// The true path above the gap may be shown, but nothing else.
    TruePathOnly,
    /// Any entry before it in the file may be its parent.
    Open,
}

pub(super) fn truth(healthy: &Healthy, damage: &Damage) -> Truth {
    let mut truth = match &damage.loss {
        Loss::Nothing => Truth::of_path(healthy, &healthy.path),
        Loss::Lines { gone, linked } => without_lines(healthy, gone, linked),
        Loss::Links { touched, exchanged } => without_links(healthy, touched, *exchanged),
        Loss::Order => in_another_order(healthy, &damage.bytes, &damage.order),
        Loss::Pointers { unproven } => {
            let path = healthy.path.iter().copied();
            let path: Vec<usize> = path.filter(|line| !unproven.contains(line)).collect();
            let mut truth = Truth::of_path(healthy, &path);
            truth.may_show(healthy, unproven.iter().copied());
            truth
        }
    };
    // A path may show the messages of the undamaged path that are neither lost nor proved.
    truth.may_show(healthy, healthy.path.iter().copied());
    for uuid in &truth.uuids {
        truth.unproven.remove(uuid);
    }
    truth
}

impl Truth {
    fn of_path(healthy: &Healthy, path: &[usize]) -> Self {
        Self {
            uuids: healthy.uuids(path),
            unproven: HashSet::new(),
        }
    }

    fn may_show(&mut self, healthy: &Healthy, lines: impl Iterator<Item = usize>) {
        let lines: Vec<usize> = lines.collect();
        self.unproven.extend(healthy.uuids(&lines));
    }
}

/// Returns the truth when the lines `gone` were destroyed. Both ids of those in `linked` are still
/// readable.
fn without_lines(healthy: &Healthy, gone: &HashSet<usize>, linked: &HashSet<usize>) -> Truth {
    if gone.is_empty() {
        return Truth::of_path(healthy, &healthy.path);
    }
    let repaired = repaired(healthy, gone);
    let path = model::vendor_path(&repaired);
    let leaf = path
        .leaf
        .as_ref()
        .and_then(|leaf| healthy.line_of.get(leaf));
    let Some(leaf) = leaf.filter(|_| path.refusal.is_none()) else {
        return Truth::of_path(healthy, &[]);
    };
    let mut path: Vec<usize> = path.entries.iter().map(|entry| entry.line - 1).collect();
    let place = places(&path);

    let mut truth = Truth::of_path(healthy, &[]);
    let mut from = 0;
    for gap in gaps(healthy, *leaf, &path, gone) {
        let is_linked = gap.parent.is_some_and(|parent| linked.contains(&parent));
        let proof = if is_linked {
            Proof::Proved
        } else {
            proof(healthy, &gap, gone, &path, true)
        };
        if proof != Proof::Proved {
            from = from.max(place[&gap.below]);
        }
        if proof == Proof::Open {
            truth.may_show(healthy, 0..gap.below);
        }
    }
    truth.may_show(healthy, path[..from].iter().copied());
    path.drain(..from);

    // The undamaged path gives the order. Entries that were lost together with the destroyed lines
    // are not on it.
    let shown: HashSet<usize> = path.iter().copied().collect();
    let was: HashSet<usize> = healthy.path.iter().copied().collect();
    if shown.is_subset(&was) {
        let is_orphan = |line: usize| from == 0 && answers_a_lost_call(healthy, line, gone);
        let kept = healthy.path.iter().copied();
        path = kept
            .filter(|line| shown.contains(line) || is_orphan(*line))
            .collect();
    }
    truth.uuids = healthy.uuids(&path);
    truth
}

/// Returns whether the line is a result whose call is lost, and with it the place of the result in
/// the chain: the lost line is its parent, and also that of the next entry of the path.
fn answers_a_lost_call(healthy: &Healthy, line: usize, gone: &HashSet<usize>) -> bool {
    !gone.contains(&line)
        && !healthy.lines[line].is_prompt()
        && healthy.lines[line].role == Role::User
        && healthy.lines[line]
            .parent
            .is_some_and(|parent| gone.contains(&parent))
}

fn places(path: &[usize]) -> HashMap<usize, usize> {
    path.iter()
        .enumerate()
        .map(|(at, line)| (*line, at))
        .collect()
}

/// A link of the chain that can no longer be followed.
struct Gap {
    /// The nearest entry of the path below the gap.
    below: usize,
    /// The lost line that the file names as the parent.
    parent: Option<usize>,
}

/// Returns the gaps above the leaf and above the end of a preserved segment.
fn gaps(healthy: &Healthy, leaf: usize, path: &[usize], gone: &HashSet<usize>) -> Vec<Gap> {
    let mut ends = vec![leaf];
    if let Some(boundary) = path.iter().find(|line| healthy.lines[**line].is_boundary()) {
        let metadata = &healthy.lines[*boundary].value["compactMetadata"];
        let segment = metadata
            .get("preservedSegment")
            .and_then(|segment| healthy.segment(segment));
        if metadata["preservedMessages"].is_null()
            && let Some(kept) = segment
        {
            ends.extend(kept.into_iter().rev().find(|line| !gone.contains(line)));
        }
    }
    let place = places(path);
    let mut gaps = Vec::new();
    for end in ends {
        let mut below = end;
        for line in healthy.ancestors(end) {
            // Progress lines are in the chain, but not on the path.
            if place.contains_key(&line) {
                below = line;
            }
            let parent = healthy.lines[line].parent;
            let is_gap = parent.is_some_and(|parent| gone.contains(&parent));
            let ends_path = healthy.lines[line].is_boundary() && place.contains_key(&line);
            if is_gap && !ends_path && !gone.contains(&line) {
                gaps.push(Gap { below, parent });
            }
            if ends_path {
                break;
            }
        }
    }
    gaps.retain(|gap| place.contains_key(&gap.below));
    gaps
}

/// Returns whether the bytes prove which entry is above a gap.
fn proof(
    healthy: &Healthy,
    gap: &Gap,
    gone: &HashSet<usize>,
    path: &[usize],
    doubts_prompts: bool,
) -> Proof {
    let place = places(path);
    let line = &healthy.lines[gap.below];
    let at = place[&gap.below];
    let above = path[..at].iter().map(|line| &healthy.lines[*line]);
    if opens_with_summary(healthy, &path[at..]) {
        return Proof::Proved;
    }
    let answers = line.block_ids("tool_result", "tool_use_id");
    let id = line.value["message"]["id"].as_str();
    let belongs = |above: &Line| {
        !above.block_ids("tool_use", "id").is_disjoint(&answers)
            || (above.role == Role::Assistant
                && id.is_some()
                && above.value["message"]["id"].as_str() == id)
    };
    if above.clone().any(belongs) {
        return Proof::Proved;
    }

    let is_there = |line: &usize| !gone.contains(line);
    // An entry below the gap cannot be above it as well, wherever it is in the file.
    let is_below = |line: &usize| place.get(line).is_some_and(|place| *place >= at);
    let before = (0..gap.below)
        .rev()
        .filter(is_there)
        .find(|line| healthy.lines[*line].counts() && !is_below(line));
    let Some(before) = before else {
        return if at == 0 {
            Proof::Proved
        } else {
            Proof::TruePathOnly
        };
    };
    let between = (before..gap.below).filter(is_there);
    if let Some(boundary) = between
        .rev()
        .find(|line| healthy.lines[*line].is_boundary() && !healthy.lines[*line].is_sidechain)
    {
        return if !place.contains_key(&boundary) {
            Proof::Open
        } else if is_anchor(healthy, gap.parent, boundary) {
            Proof::Proved
        } else {
            Proof::TruePathOnly
        };
    }
    let is_above = place.get(&before).is_some_and(|before| *before < at);
    let is_prompt_after_prompt = line.is_prompt() && healthy.lines[before].is_prompt();
    if !is_above || (doubts_prompts && is_prompt_after_prompt) {
        return Proof::Open;
    }
    Proof::Proved
}

/// Returns whether the first message of `path` is the summary of a compaction: the history ends
/// there, whatever precedes it in the file.
fn opens_with_summary(healthy: &Healthy, path: &[usize]) -> bool {
    let first = path
        .iter()
        .map(|line| &healthy.lines[*line])
        .find(|line| line.is_message());
    first.is_some_and(|line| line.value["isCompactSummary"] == true)
}

/// Returns whether a boundary names the destroyed line `parent` as its anchor.
fn is_anchor(healthy: &Healthy, parent: Option<usize>, boundary: usize) -> bool {
    let uuid = parent.and_then(|parent| healthy.lines[parent].uuid.as_deref());
    let metadata = &healthy.lines[boundary].value["compactMetadata"];
    ["preservedMessages", "preservedSegment"]
        .iter()
        .any(|form| uuid.is_some() && metadata[*form]["anchorUuid"].as_str() == uuid)
}

/// Returns the session without the lines `gone`, with the same line numbers. Children of a destroyed
/// line become children of its nearest ancestor that is left, and the pointers of boundaries are
/// replaced accordingly.
fn repaired(healthy: &Healthy, gone: &HashSet<usize>) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, line) in healthy.lines.iter().enumerate() {
        let mut value = line.value.clone();
        if line.parent.is_some_and(|parent| gone.contains(&parent)) {
            let above = healthy
                .ancestors(at)
                .skip(1)
                .find(|line| !gone.contains(line));
            value["parentUuid"] = json!(above.and_then(|above| healthy.lines[above].uuid.clone()));
        }
        if line.is_boundary() {
            repair_boundary(healthy, &mut value, gone);
        }
        if !line.is_blank() && !gone.contains(&at) {
            out.extend_from_slice(value.to_string().as_bytes());
        }
        out.push(b'\n');
    }
    out
}

fn repair_boundary(healthy: &Healthy, value: &mut Value, gone: &HashSet<usize>) {
    let Some(metadata) = value
        .get_mut("compactMetadata")
        .filter(|metadata| metadata.is_object())
    else {
        return;
    };
    let line = |uuid: &Value| healthy.line_of.get(uuid.as_str()?).copied();
    let is_gone = |uuid: &Value| line(uuid).is_some_and(|line| gone.contains(&line));
    let uuid = |line: usize| json!(healthy.lines[line].uuid);
    for form in ["preservedMessages", "preservedSegment"] {
        let anchor = &metadata[form]["anchorUuid"];
        if is_gone(anchor)
            && let Some(line) = line(anchor)
        {
            // A destroyed summary is replaced by its nearest ancestor, at last its boundary.
            let above = healthy.ancestors(line).find(|line| !gone.contains(line));
            metadata[form]["anchorUuid"] = above.map_or(Value::Null, uuid);
        }
    }
    let uuids = metadata.pointer_mut("/preservedMessages/uuids");
    if let Some(uuids) = uuids.and_then(Value::as_array_mut) {
        uuids.retain(|uuid| !is_gone(uuid));
    }
    if let Some(kept) = healthy.segment(&metadata["preservedSegment"]) {
        let mut kept = kept.into_iter().filter(|line| !gone.contains(line));
        let head = kept.next();
        let tail = kept.next_back().or(head);
        metadata["preservedSegment"]["headUuid"] = head.map_or(Value::Null, uuid);
        metadata["preservedSegment"]["tailUuid"] = tail.map_or(Value::Null, uuid);
    }
}

/// Returns the truth when the parents of the entries `touched` are wrong; all of them are in the
/// chain.
fn without_links(healthy: &Healthy, touched: &[usize], exchanged: bool) -> Truth {
    let place = places(&healthy.path);
    let mut truth = Truth::of_path(healthy, &[]);
    let mut from = 0;
    for line in touched {
        let Some(at) = place.get(line) else { continue };
        let gap = Gap {
            below: *line,
            parent: None,
        };
        match proof(healthy, &gap, &HashSet::new(), &healthy.path, !exchanged) {
            Proof::Proved => continue,
            Proof::TruePathOnly => {}
            Proof::Open => truth.may_show(healthy, 0..*line),
        }
        from = from.max(*at);
    }
    truth.uuids = healthy.uuids(&healthy.path[from..]);
    truth
}

/// Returns the truth when the same lines are in another order. No link is lost, but another tip may
/// be the last of the file: then nothing proves that it is not the leaf. `order` has the original
/// number of each line.
fn in_another_order(healthy: &Healthy, bytes: &[u8], order: &[usize]) -> Truth {
    let path = model::vendor_path(bytes);
    let path: Vec<usize> = path
        .entries
        .iter()
        .map(|entry| order[entry.line - 1])
        .collect();
    let (is, was) = (places(&path), places(&healthy.path));
    let is_same = is.len() == was.len() && is.keys().all(|line| was.contains_key(line));
    let has_leaf = healthy
        .chain
        .first()
        .is_some_and(|leaf| is.contains_key(leaf));
    if is_same || !has_leaf {
        // Results of parallel calls follow the order of the file.
        Truth::of_path(healthy, &path)
    } else {
        Truth::of_path(healthy, &healthy.path)
    }
}
