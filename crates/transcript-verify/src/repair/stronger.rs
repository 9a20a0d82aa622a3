//! Later steps of a repair, for files of which the client still shows something else than policy
//! `recover` after the first one.

use std::collections::HashSet;

use transcript_format::finding::Code;
use transcript_format::json::{Json, ObjectBuf};
use transcript_format::kind::EntryKind;
use transcript_format::make;
use transcript_format::object::Object;
use transcript_reader::{Bodies, EntryNo, EntryRef, Error, Preserved};
use transcript_resume::{ConversationPath, KeptEntries, NodeId, Parent, Tree};

use super::action::ActionKind;
use super::plan::{Planner, RepairStep};

impl Planner<'_> {
    /// Writes the decisions of `recover` besides the links of single entries: removed entries, where
    /// the conversation starts and ends (at the entry with the id `leaf`), and the entries that a compaction
    /// kept.
    pub(super) fn decided(
        &self,
        vendor: (&Tree<'_>, &ConversationPath),
        leaf: Option<&str>,
        now: &str,
    ) -> Result<RepairStep, Error> {
        let mut step = RepairStep::default();
        self.remove_tombstoned(&mut step);
        self.start_at_gap(&mut step);
        self.name_kept_entries(&mut step, vendor.0)?;
        let is_leaf = |path| self.leaf_id(path).as_deref() == leaf;
        let leaf = leaf.and_then(|leaf| self.reading.entry(leaf));
        if let Some(leaf) = leaf.filter(|_| !is_leaf(&self.path) || !is_leaf(vendor.1)) {
            self.pin(&mut step, &leaf)?;
        }
        self.date_leaf(&mut step, now);
        Ok(step)
    }

    /// Links the entries `path` one below the other, and nothing else to them. `path` are the ids
    /// of the conversation, oldest first; results that were `made` follow their calls.
    pub(super) fn chain(
        &self,
        path: &[String],
        made: &HashSet<String>,
    ) -> Result<RepairStep, Error> {
        let mut step = RepairStep::default();
        self.remove_tombstoned(&mut step);
        let index = &self.reading.index;
        let node = |id: &String| self.tree.entry_node(index.with_uuid(index.id(id)?).next()?);
        let made: Vec<NodeId> = made.iter().filter_map(node).collect();
        let follows = |node: NodeId| {
            let mut made = made.iter();
            let is_below =
                |made: &&NodeId| self.tree.parent_before_splice(**made).node() == Some(node);
            made.find(is_below).copied()
        };
        let nodes = path.iter().filter_map(node);
        let mut nodes: Vec<NodeId> = nodes
            .flat_map(|node| [Some(node), follows(node)])
            .flatten()
            .collect();
        // A compaction that was interrupted ended nothing, but the client would start there
        // (COMPACT-2).
        let is_boundary = |node: &NodeId| self.tree.entry(*node).is_boundary();
        let first = nodes.first().copied();
        let interrupted: Vec<NodeId> = nodes
            .extract_if(.., |node| is_boundary(node) && Some(*node) != first)
            .collect();
        for node in interrupted {
            if self.tree.entry(node).parent().is_some() {
                self.link(&mut step, node, None, Code::Fork);
            }
        }
        let mut above = None;
        for node in &nodes {
            let named = self.tree.entry(*node).parent();
            if named != above.and_then(|above| self.tree.entry(above).uuid()) {
                let code = match named {
                    Some(id) if index.with_uuid(id).next().is_some() => Code::Fork,
                    _ => Code::Dangling,
                };
                self.link(&mut step, *node, above, code);
            }
            above = Some(*node);
        }
        let last = self.tree.nodes().rev().find(is_boundary);
        if let Some(boundary) = last {
            self.name_entries(&mut step, boundary, None, &[])?;
            let on_path: HashSet<NodeId> = nodes.iter().copied().collect();
            self.lead_out(&mut step, boundary, &on_path);
        }
        Ok(step)
    }

    /// Leaves tombstoned entries out, which the client would show.
    fn remove_tombstoned(&self, step: &mut RepairStep) {
        let nodes = self.tree.nodes();
        for node in nodes.filter(|node| self.tree.is_tombstoned(*node)) {
            let entry = self.tree.entry(node).number();
            step.lose(self, entry, Code::Leaf, "a tombstone removed it");
        }
        for entry in self.reading.index.entries() {
            let node = entry.uuid().and_then(|id| self.tree.node_with_uuid(id));
            let is_superseded = node
                .is_some_and(|node| self.tree.entry(node).number() > entry.number())
                && self.tree.entry_node(entry.number()).is_some()
                && entry.kind() != EntryKind::Progress
                && self.reading.index.has_repeated_uuids();
            if is_superseded {
                let detail = "a tombstone removed it, and it was written again";
                step.lose(self, entry.number(), Code::Repeated, detail);
            }
        }
        if !step.lost.is_empty() {
            self.links(step, true);
        }
    }

    /// Makes the first entry a root if its parent is missing: the client would look for another one
    /// by time (CHAIN-3).
    fn start_at_gap(&self, step: &mut RepairStep) {
        for entry in &self.path.entries {
            let node = self.tree.node(entry.entry_no());
            let lost = node.filter(|node| self.tree.parent(*node) == Parent::Lost);
            if let Some(node) = lost {
                self.link(step, node, None, Code::Dangling);
            }
        }
    }

    fn name_kept_entries(&self, step: &mut RepairStep, vendor: &Tree<'_>) -> Result<(), Error> {
        let names = |tree: &Tree<'_>, kept: &KeptEntries| {
            let line = |node: NodeId| tree.entry(node).number();
            let entries: Vec<_> = kept.entries.iter().map(|node| line(*node)).collect();
            (line(kept.boundary), kept.anchor.map(line), entries)
        };
        let theirs = vendor.kept_entries().map(|kept| names(vendor, kept));
        match self.tree.kept_entries() {
            Some(kept) if Some(names(&self.tree, kept)) != theirs => {
                let entries = kept.entries.iter();
                let ids = entries.filter_map(|node| self.id(step, *node));
                let ids: Vec<String> = ids.collect();
                self.name_entries(step, kept.boundary, kept.anchor, &ids)
            }
            _ => Ok(()),
        }
    }

    /// Makes a boundary name these entries, in both forms.
    pub(super) fn name_entries(
        &self,
        step: &mut RepairStep,
        boundary: NodeId,
        anchor: Option<NodeId>,
        ids: &[String],
    ) -> Result<(), Error> {
        let entry = self.tree.entry(boundary);
        let named = self.reading.index.boundary(entry.number());
        let names_nothing = named.is_none_or(|named| named.preserved == Preserved::Nothing);
        let clears = self.tree.clearing_boundary() == Some(boundary);
        if ids.is_empty() && names_nothing && !clears {
            return Ok(());
        }
        let mut bodies = Bodies::new(&self.reading.source);
        let body = Object::parse(bodies.get(&entry)?.text).ok();
        let metadata = body.and_then(|body| body.object("compactMetadata"));
        let mut new = metadata
            .as_ref()
            .map_or_else(ObjectBuf::new, ObjectBuf::from);
        let anchor = Json::from(anchor.and_then(|anchor| self.id(step, anchor)).as_deref());
        let list = ObjectBuf::new().with("anchorUuid", anchor.clone()).with(
            "uuids",
            Json::array(ids.iter().map(|id| Json::from(id.as_str()))),
        );
        // A boundary that names no entries removes those before it, unless it has a segment, and be it
        // one without ends (COMPACT-12).
        match ids {
            [] => new.set("preservedMessages", Json::null()),
            _ => new.set("preservedMessages", list),
        }
        let ends = ids.first().zip(ids.last());
        let segment = ends.map(|(head, tail)| {
            let ends = ObjectBuf::new().with("headUuid", head.as_str());
            ends.with("anchorUuid", anchor)
                .with("tailUuid", tail.as_str())
        });
        new.set("preservedSegment", segment.unwrap_or_default());
        step.changes
            .set(self.place(boundary), "compactMetadata", new);
        let detail = match ids.len() {
            0 => "names no preserved entries: they are linked".to_owned(),
            count => format!("names the {count} entries that it preserves"),
        };
        step.act(
            self,
            entry.number(),
            Code::Segment,
            ActionKind::Splice,
            &detail,
        );
        Ok(())
    }

    /// Makes a boundary name the end of the conversation before it, if it names an entry that now
    /// follows it.
    fn lead_out(&self, step: &mut RepairStep, boundary: NodeId, on_path: &HashSet<NodeId>) {
        let entry = self.tree.entry(boundary);
        let named = self.reading.index.boundary(entry.number());
        let named = named.and_then(|named| self.tree.node_with_uuid(named.logical_parent?));
        let Some(named) = named.filter(|named| on_path.contains(named)) else {
            return;
        };
        let above = |node: &NodeId| self.tree.parent_before_splice(*node).node();
        let mut above = std::iter::successors(Some(named), above).take(self.reading.index.len());
        let end = above.find(|node| !on_path.contains(node));
        let value = end.and_then(|end| self.id(step, end));
        step.changes.set(
            entry.number(),
            "logicalParentUuid",
            Json::from(value.as_deref()),
        );
        let detail = "names the end of the conversation before it";
        step.act(
            self,
            entry.number(),
            Code::LogicalCycle,
            ActionKind::Parent,
            detail,
        );
    }

    /// Adds a `last-prompt` line that names the leaf (LEAF-11).
    fn pin(&self, step: &mut RepairStep, leaf: &EntryRef<'_>) -> Result<(), Error> {
        let Some(id) = self.reading.uuid(leaf) else {
            return Ok(());
        };
        let mut entries = self.reading.index.entries().rev();
        let last = entries.find(|entry| entry.kind() == EntryKind::LastPrompt);
        let mut bodies = Bodies::new(&self.reading.source);
        let body = match &last {
            Some(last) => Object::parse(bodies.get(last)?.text).ok(),
            None => None,
        };
        let prompt = body.as_ref().and_then(|body| body.str("lastPrompt"));
        let session = leaf.session().or(self.reading.index.own_session());
        let line = make::last_prompt(prompt.as_deref(), Some(id), true);
        let line = match session {
            Some(session) => line.session_id(session),
            None => line,
        };
        step.changes.end.push(line.text());
        let detail = "a last-prompt line ends the conversation here";
        step.act(self, leaf.number(), Code::Leaf, ActionKind::Pin, detail);
        Ok(())
    }

    /// Gives the leaf a time: the client refuses a session without (LEAF-17).
    fn date_leaf(&self, step: &mut RepairStep, now: &str) {
        let leaf = self.path.leaf.map(|leaf| self.reading.index.entry(leaf));
        if let Some(leaf) = leaf.filter(|leaf| leaf.millis().is_none()) {
            step.changes.set(leaf.number(), "timestamp", now);
            let detail = "the time of the repair, as the line has none";
            step.act(self, leaf.number(), Code::Shape, ActionKind::Text, detail);
        }
    }

    fn leaf_id(&self, path: &ConversationPath) -> Option<String> {
        let leaf = path
            .leaf
            .map(|leaf: EntryNo| self.reading.index.entry(leaf));
        leaf.and_then(|leaf| self.reading.uuid(&leaf))
    }
}
