//! The state that a writer needs to continue a session.

use std::collections::{HashMap, HashSet};

use transcript_format::kind::EntryKind;
use transcript_format::scan::{Flags, Scanner, ToolRole};
use transcript_reader::{Bodies, EntryNo, EntryRef, Id, Index, Preserved, Source};
use transcript_resume::{ConversationPath, LeafReason, NodeId, Parent, Policy, Tree, Via};
use transcript_storage::Fingerprint;
use transcript_writer::{Draft, EntryId, EntryIds, ResumePoint, Tombstoned};

use crate::error::Error;
use crate::history::History;

impl History {
    /// Returns the state that a writer needs to continue at the end of `tree`, which must be a tree of
    /// this history. Reads only the bodies of entries with calls that have no result.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn resume_point(&self, tree: &Tree<'_>) -> Result<ResumePoint, Error> {
        let (source, index) = (self.source(), self.index());
        let path = tree.path();
        let mut known = ResumePoint::default();
        known.uuids = index
            .entries()
            .filter_map(|entry_ref| entry_id(&entry_ref, index))
            .collect();
        known.leaf = leaf(index, &path);
        known.agent_leaves = agent_leaves(index);
        known.calls = open_calls(source, index, &path)?;
        known.kept = kept(index, &path);
        known.is_pinned = index
            .entries()
            .any(|entry_ref| entry_ref.leaf_uuid().is_some());
        known.is_rewound = matches!(tree.leaf(), Some((_, LeafReason::Pinned)));
        known.needs_pin = known.is_pinned && is_hidden(tree, known.leaf.as_ref());
        known.state = state(source, index)?;
        known.fingerprint = Some(Fingerprint::read(index.byte_count(), |at, buffer| {
            source.read_at(at, buffer)
        })?);
        Ok(known)
    }
}

/// Returns the last line of each kind of session state.
fn state(source: &Source, index: &Index) -> Result<Vec<(Draft, u64)>, Error> {
    let mut bodies = Bodies::new(source);
    let mut seen = HashSet::new();
    let mut state = Vec::new();
    for line in index.entries().rev() {
        if line.kind().is_state() && seen.insert(line.kind()) {
            let body = bodies.get(&line)?;
            // A line that changed on disk since it was indexed is skipped: the fingerprint will
            // detect the change.
            state.extend(Draft::copy(body.text).map(|draft| (draft, line.offset())));
        }
    }
    Ok(state)
}

/// Returns the entry that the next one becomes a child of: the last one of the path, including
/// attachments below the leaf, because with a child next to them they would no longer be sent
/// (CHAIN-10). Parallel siblings do not count, as they are outside the chain. An entry without an
/// id cannot be a parent, so its nearest ancestor with an id is returned.
fn leaf(index: &Index, path: &ConversationPath) -> Option<EntryId> {
    let entries = path.entries.iter().rev();
    let mut of_chain = entries.filter(|entry| entry.via != Via::SIBLING);
    of_chain.find_map(|entry| entry_id(&index.entry(entry.entry_no()), index))
}

/// Returns whether readers under the other policy do not see an entry that is added below `leaf`: they
/// end the conversation elsewhere, and no link in the file leads from `leaf` up to the pinned entry,
/// so that the pin holds (LEAF-8, LEAF-10).
fn is_hidden(tree: &Tree<'_>, leaf: Option<&EntryId>) -> bool {
    let index = tree.index();
    let other = match tree.policy() {
        Policy::Vendor => Policy::Recover,
        _ => Policy::Vendor,
    };
    let other = Tree::new(index, other);
    let end = |tree: &Tree<'_>| Some(tree.entry(tree.leaf()?.0).number());
    if end(tree) == end(&other) {
        return false;
    }
    let mut lines = index.entries().rev();
    // A boundary after the line clears the pin (LEAF-13).
    let last = lines.find(|line| line.is_boundary() || line.leaf_uuid().is_some());
    let pin = last.filter(|line| line.kind() == EntryKind::LastPrompt);
    let Some(pin) = pin.and_then(|pin| other.node_with_uuid(pin.leaf_uuid()?)) else {
        return false;
    };
    let leaf = leaf.and_then(|leaf| other.node_with_uuid(index.id(&leaf.to_string())?));
    let above = |node: &NodeId| match other.parent(*node) {
        Parent::Node(above) => Some(above),
        Parent::Root | Parent::Lost => None,
    };
    // As many steps as there are entries, as links may form a cycle.
    let mut way_up = std::iter::successors(leaf, above).take(index.len());
    !way_up.any(|node| node == pin)
}

/// Returns the entries that the boundary at the start of the conversation preserves.
fn kept(index: &Index, path: &ConversationPath) -> EntryIds {
    let boundary = path.entries.iter().rev();
    let boundary = boundary
        .map(|entry| entry.entry_no())
        .find(|entry_ref| index.entry(*entry_ref).is_boundary())
        .and_then(|entry_ref| index.boundary(entry_ref));
    match boundary.map(|boundary| &boundary.preserved) {
        Some(Preserved::List { uuids, .. }) => {
            let ids = uuids.iter().flatten();
            ids.map(|id| EntryId::from(&*index.id_text(*id))).collect()
        }
        _ => EntryIds::new(),
    }
}

/// Returns the last entry of each agent.
fn agent_leaves(index: &Index) -> HashMap<String, EntryId> {
    let mut leaves = HashMap::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for entry_ref in index.entries().rev() {
        let is_in_chain = entry_ref.kind().is_in_tree();
        if is_in_chain
            && entry_ref.flags().contains(Flags::SIDECHAIN)
            && let Some(id) = entry_id(&entry_ref, index)
        {
            // Old clients write no agent id.
            let agent = entry_ref.agent().unwrap_or_default();
            if seen.insert(agent) {
                leaves.insert(agent.to_owned(), id);
            }
        }
    }
    leaves
}

/// Returns the calls without a result, with the entries that make them. Calls that the conversation
/// left, by a compaction or a rewind, are not included: a result below such a call would lead back
/// to the abandoned branch.
fn open_calls(
    source: &Source,
    index: &Index,
    path: &ConversationPath,
) -> Result<HashMap<String, EntryId>, Error> {
    let on_path: HashSet<EntryNo> = path.entries.iter().map(|entry| entry.entry_no()).collect();
    let answered: HashSet<_> = ends(index, EntryKind::User, ToolRole::Result).collect();
    let mut calls = HashMap::new();
    let mut bodies = Bodies::new(source);
    let mut scanner = Scanner::new();
    for entry_ref in index.entries() {
        let counts =
            entry_ref.flags().contains(Flags::SIDECHAIN) || on_path.contains(&entry_ref.number());
        let is_open = counts
            && entry_ref.kind() == EntryKind::Assistant
            && entry_ref
                .tools()
                .iter()
                .any(|end| end.role() == ToolRole::Use && !answered.contains(&end.key()));
        if !is_open {
            continue;
        }
        let Some(entry) = entry_id(&entry_ref, index) else {
            continue;
        };
        let body = bodies.get(&entry_ref)?;
        // A line that changed on disk since it was indexed is skipped: the fingerprint will detect
        // the change.
        let Ok(envelope) = scanner.scan(body.text.as_bytes()) else {
            continue;
        };
        for (end, tool) in entry_ref.tools().iter().zip(envelope.tools()) {
            if tool.role == ToolRole::Use && !answered.contains(&end.key()) {
                calls.insert(tool.id.decode().into_owned(), entry.clone());
            }
        }
    }
    Ok(calls)
}

fn ends(
    index: &Index,
    kind: EntryKind,
    role: ToolRole,
) -> impl Iterator<Item = transcript_reader::ToolKey> + '_ {
    let entries = index
        .entries()
        .filter(move |entry_ref| entry_ref.kind() == kind);
    entries
        .flat_map(|entry_ref| entry_ref.tools())
        .filter(move |end| end.role() == role)
        .map(|end| end.key())
}

pub(crate) fn entry_id(entry_ref: &EntryRef<'_>, index: &Index) -> Option<EntryId> {
    Some(match entry_ref.uuid()? {
        Id::Uuid(uuid) => EntryId::from(uuid),
        id @ Id::Odd(_) => EntryId::from(&*index.id_text(id)),
    })
}

/// Returns whether `kept` contains a call without its result, or a result without its call. A call
/// that has no result in the file is not split.
pub(crate) fn splits_pair(index: &Index, kept: &[EntryId]) -> bool {
    let kept: HashSet<&EntryId> = kept.iter().collect();
    let (mut calls, mut results) = (HashMap::new(), HashMap::new());
    for entry_ref in index.entries() {
        if entry_ref.flags().contains(Flags::SIDECHAIN) {
            continue;
        }
        let is_kept = entry_id(&entry_ref, index).is_some_and(|id| kept.contains(&id));
        for end in entry_ref.tools() {
            let ends = match end.role() {
                ToolRole::Use => &mut calls,
                ToolRole::Result => &mut results,
                // Call and result are in the same message.
                ToolRole::ServerUse | ToolRole::ServerResult => continue,
            };
            *ends.entry(end.key()).or_insert(false) |= is_kept;
        }
    }
    let other = |call| calls.get(call).copied().unwrap_or_default();
    results
        .iter()
        .any(|(call, is_kept)| other(call) != *is_kept)
}

/// Returns the entry before `entry` on the path of the conversation; its parent when it is not on
/// the path.
pub(crate) fn above(tree: &Tree<'_>, entry: &EntryId) -> Option<EntryId> {
    let index = tree.index();
    let id_of = |number: EntryNo| entry_id(&index.entry(number), index);
    let path = tree.path();
    let on_path = path.entries.iter().map(|entry| id_of(entry.entry_no()));
    let mut on_path = on_path.rev().skip_while(|id| id.as_ref() != Some(entry));
    if on_path.next().is_some() {
        return on_path.flatten().next();
    }
    let number = index.with_uuid(index.id(&entry.to_string())?).last()?;
    let parent = index.entry(number).parent()?;
    Some(EntryId::from(&*index.id_text(parent)))
}

/// Finds the entries with the ids `named` that are in the file, with their offsets. `None`
/// when one is followed in the conversation by an entry that is not among them.
pub(crate) fn tombstoned(tree: &Tree<'_>, named: &[EntryId]) -> Option<Tombstoned> {
    let index = tree.index();
    let mut last_tombstone: HashMap<Id, EntryNo> = HashMap::new();
    last_tombstone.extend(index.tombstones().map(|(line, id)| (id, line)));
    let is_gone = |id: Id| {
        let tombstone = last_tombstone.get(&id);
        tombstone.is_some_and(|line| index.with_uuid(id).all(|copy| copy < *line))
    };
    let mut found = Tombstoned::default();
    let mut left: HashSet<EntryId> = HashSet::new();
    for name in named {
        let id = index.id(&name.to_string());
        let id = id.filter(|id| index.with_uuid(*id).next().is_some());
        match id {
            None => {}
            Some(id) if is_gone(id) => found.already.push(name.clone()),
            Some(_) => _ = left.insert(name.clone()),
        }
    }
    let path = tree.path();
    let on_path = path.entries.iter().rev();
    let mut on_path = on_path
        .filter_map(|entry| entry_id(&index.entry(entry.entry_no()), index))
        .peekable();
    while let Some(entry) = on_path.next_if(|id| left.contains(id)) {
        left.remove(&entry);
        found.last.push(entry);
    }
    found.last.reverse();
    found.parent = on_path.peek().cloned();
    if on_path.any(|id| left.contains(&id)) {
        return None;
    }
    // In the order of the list.
    let aside = named.iter().filter(|id| left.remove(*id));
    found.aside = aside.cloned().collect();
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn last_line_of_each_kind_of_state_is_known() {
        let lines = [
            r#"{"type":"custom-title","customTitle":"Tides","sessionId":"s"}"#,
            r#"{"type":"tag","tag":"sea"}"#,
            r#"{"type":"pr-link","prNumber":7,"sessionId":"s"}"#,
            r#"{"type":"custom-title","customTitle":"","sessionId":"s"}"#,
            r#"{"type":"user","uuid":"u1","message":{"role":"user","content":"x"}}"#,
            r#"{"type":"last-prompt","leafUuid":"u1"}"#,
        ];
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all((lines.join("\n") + "\n").as_bytes())
            .unwrap();
        let history = History::open(file.path()).unwrap();
        let known = history
            .resume_point(&history.tree(Policy::Recover))
            .unwrap();
        let mut state = known.state;
        state.sort_by_key(|(_, offset)| *offset);
        let wanted = [1, 3, 5].map(|at| {
            let before = lines[..at].iter().map(|line| line.len() as u64 + 1);
            (Draft::copy(lines[at]).unwrap(), before.sum())
        });
        assert_eq!(state, wanted);
    }
}
