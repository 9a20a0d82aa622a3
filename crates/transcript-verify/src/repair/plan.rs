//! The first step of a repair: whole lines, one line for each entry, and the links that policy
//! `recover` decided on.

use std::collections::HashMap;

use transcript_format::finding::{Code, Finding};
use transcript_format::ids::Uuid;
use transcript_format::json::{Json, ObjectBuf};
use transcript_format::kind::EntryKind;
use transcript_format::make::ENGINE_VERSION;
use transcript_format::object::Raw;
use transcript_format::scan::Flags;
use transcript_reader::{Bodies, EntryMarks, EntryNo, EntryRef, Error};
use transcript_resume::fork::missing_results;
use transcript_resume::request::refused_media;
use transcript_resume::{ConversationPath, Decision, NodeId, Parent, Policy, Tree};

use super::action::{Action, ActionKind};
use super::changes::{Changes, Gaps};
use super::reading::Reading;

/// One step of a repair: its actions, and the changes that they are.
#[derive(Debug, Default)]
pub(super) struct RepairStep {
    pub(super) actions: Vec<Action>,
    pub(super) changes: Changes,
    /// Entries whose bytes are not in the new file, and why.
    pub(super) lost: Vec<(EntryNo, Code)>,
    /// Entries of other sessions.
    pub(super) foreign: Vec<EntryNo>,
    /// The ids of entries that had none.
    pub(super) ids: HashMap<EntryNo, Uuid>,
    /// The ids of entries that were made.
    pub(super) made: Vec<Uuid>,
}

impl RepairStep {
    /// Leaves an entry out; its bytes are kept beside the new file.
    pub(super) fn lose(&mut self, planner: &Planner<'_>, entry: EntryNo, code: Code, detail: &str) {
        self.changes.omit(entry);
        self.lost.push((entry, code));
        self.act(planner, entry, code, ActionKind::Move, detail);
    }

    pub(super) fn act(
        &mut self,
        planner: &Planner<'_>,
        entry: EntryNo,
        code: Code,
        action: ActionKind,
        detail: &str,
    ) {
        let entry = planner.reading.index.entry(entry);
        self.actions.push(Action {
            code,
            line: entry.known_line(),
            uuid: planner.reading.uuid(&entry),
            action,
            detail: detail.to_owned(),
        });
    }
}

/// Makes a step for one file.
pub(super) struct Planner<'r> {
    pub(super) reading: &'r Reading,
    pub(super) tree: Tree<'r>,
    pub(super) path: ConversationPath,
}

impl<'r> Planner<'r> {
    pub(super) fn new(reading: &'r Reading) -> Self {
        let tree = reading.tree(Policy::Recover);
        let path = tree.path();
        Self {
            reading,
            tree,
            path,
        }
    }

    /// Plans the changes that leave the conversation as it is.
    pub(super) fn gentle(&self, new_id: &mut dyn FnMut() -> Uuid) -> Result<RepairStep, Error> {
        let mut step = RepairStep::default();
        self.lines(&mut step);
        self.copies(&mut step)?;
        // Lines in the stream form have no links, and need none.
        if !self.tree.is_stream_form() {
            self.ids(&mut step, new_id);
            self.links(&mut step, false);
            self.results(&mut step, new_id)?;
        }
        self.media(&mut step)?;
        Ok(step)
    }

    /// Replaces images and documents that the API refuses: with them it refuses every request of the client.
    fn media(&self, step: &mut RepairStep) -> Result<(), Error> {
        let mut bodies = Bodies::new(&self.reading.source);
        for refused in refused_media(&self.tree, &self.path, &mut bodies)? {
            let Some(node) = self.tree.entry_node(refused.entry) else {
                continue;
            };
            let Ok(value) = Raw::parse(&refused.value) else {
                continue;
            };
            step.changes.set(self.place(node), refused.member, value);
            let detail = if refused.is_by_error {
                "a note in the place of media that the API refused"
            } else {
                "a note in the place of media that the API refuses, or their right form"
            };
            let code = Code::MediaSize;
            step.act(self, refused.entry, code, ActionKind::Media, detail);
        }
        Ok(())
    }

    /// Gives each entry a line of its own, without bytes that no reader can use.
    fn lines(&self, step: &mut RepairStep) {
        let index = &self.reading.index;
        for finding in Gaps::new(index).lost() {
            step.actions.push(Action::of_bytes(finding));
        }
        let findings = index.findings();
        let code_at = |entry: &EntryRef<'_>| {
            let is_its = |finding: &&Finding| finding.offset == entry.offset();
            let first = findings.partition_point(|finding| finding.offset < entry.offset());
            let found = findings[first..].iter().take_while(is_its).next();
            found.map_or(Code::TornMid, |finding| finding.code)
        };
        for entry in index.entries() {
            let number = entry.number();
            let none = Default::default();
            let defects = self.reading.defects.get(&number).unwrap_or(&none);
            if defects.is_unusable {
                // The scan accepts some texts that a full parser rejects. No client reads such an entry.
                step.lose(self, number, Code::TornMid, "its text is not JSON");
                continue;
            }
            let mut act = |code, action, detail: &str| step.act(self, number, code, action, detail);
            if entry.is_salvaged() {
                act(code_at(&entry), ActionKind::Salvage, "on a line of its own");
            } else if entry.marks().contains(EntryMarks::LOSSY) {
                act(
                    Code::Utf8,
                    ActionKind::Text,
                    "bytes that are not UTF-8 become U+FFFD",
                );
            }
            if entry.marks().contains(EntryMarks::UNTERMINATED) && !entry.is_salvaged() {
                act(
                    Code::Unterminated,
                    ActionKind::EndLine,
                    "a newline ends the last line",
                );
            }
            if defects.has_surrogate {
                act(
                    Code::Surrogate,
                    ActionKind::Text,
                    "half of a surrogate pair becomes U+FFFD",
                );
            }
            if defects.has_nul {
                act(Code::NulEscape, ActionKind::Text, "U+0000 becomes U+FFFD");
            }
        }
    }

    /// Leaves out repeated lines and entries of other sessions.
    fn copies(&self, step: &mut RepairStep) -> Result<(), Error> {
        let mut bodies = Bodies::new(&self.reading.source);
        for node in self.tree.nodes() {
            let body = self.tree.entry(node);
            if self.tree.is_foreign(node) {
                let copies = self.tree.copies(node);
                let number = [body.number()];
                for line in if copies.is_empty() { &number } else { copies } {
                    step.changes.omit(*line);
                    step.foreign.push(*line);
                    step.act(
                        self,
                        *line,
                        Code::OtherSession,
                        ActionKind::SplitOut,
                        "of another session",
                    );
                }
                continue;
            }
            let [first, later @ ..] = self.tree.copies(node) else {
                continue;
            };
            let text = bodies.get(&body)?.text.to_owned();
            for copy in later {
                step.changes.omit(*copy);
            }
            if *first != body.number() {
                // The first copy decides the place of an entry, the last one its text (FILE-7).
                step.changes.replace(*first, body.number());
            }
            for copy in self.tree.copies(node) {
                if *copy == body.number() {
                    continue;
                }
                let is_same = bodies.get(&self.reading.index.entry(*copy))?.text == text;
                let place = body.line();
                if is_same {
                    let detail = format!("the same as line {place}");
                    step.act(self, *copy, Code::Repeated, ActionKind::Drop, &detail);
                } else {
                    let detail = format!("another version of line {place}, which counts");
                    // Another version can have text that no other line has, so its bytes go to the file of lost bytes.
                    step.lost.push((*copy, Code::Repeated));
                    step.act(self, *copy, Code::Repeated, ActionKind::Move, &detail);
                }
            }
        }
        for entry in self.reading.index.entries() {
            // Progress lines are not nodes of the tree, so its copies do not have them.
            let is_progress = entry.kind() == EntryKind::Progress;
            let first = entry.uuid().filter(|_| is_progress);
            let first = first.and_then(|id| self.reading.index.with_uuid(id).next());
            if let Some(first) = first.filter(|first| *first != entry.number()) {
                let text = bodies
                    .get(&self.reading.index.entry(first))?
                    .text
                    .to_owned();
                if bodies.get(&entry)?.text == text {
                    step.changes.omit(entry.number());
                    let detail = "the same progress line is in the file already";
                    step.act(
                        self,
                        entry.number(),
                        Code::Repeated,
                        ActionKind::Drop,
                        detail,
                    );
                } else {
                    let detail = "its uuid is that of an earlier line";
                    step.lose(self, entry.number(), Code::Repeated, detail);
                }
            }
        }
        Ok(())
    }

    /// Gives an id to entries that have none: the client reads only one of them (FILE-8).
    fn ids(&self, step: &mut RepairStep, new_id: &mut dyn FnMut() -> Uuid) {
        for node in self.tree.nodes() {
            let entry = self.tree.entry(node);
            if entry.uuid().is_none() && !self.tree.is_foreign(node) {
                let id = new_id();
                step.ids.insert(entry.number(), id);
                step.changes.set(entry.number(), "uuid", id);
                step.act(
                    self,
                    entry.number(),
                    Code::NoId,
                    ActionKind::Uuid,
                    &format!("uuid {id}"),
                );
            }
        }
    }

    /// Writes the links that were decided on. Children of tombstoned entries stay where they are
    /// unless `tombstones` are to be applied.
    pub(super) fn links(&self, step: &mut RepairStep, tombstones: bool) {
        for node in self.tree.nodes() {
            if self.tree.is_foreign(node) || (tombstones && self.tree.is_tombstoned(node)) {
                continue;
            }
            let line = self.tree.entry(node);
            let named = self.named(&line);
            let is_below = |named: &NodeId| self.tree.is_tombstoned(*named);
            // The client does not know tombstones. A link around a tombstoned entry changes what it shows.
            if !tombstones && (named.iter().any(is_below) || self.tree.is_tombstoned(node)) {
                continue;
            }
            // Splices are made again by each reader, from the boundary; written as links they would be made twice.
            let parent = match self.tree.parent_before_splice(node) {
                Parent::Node(parent) if named != [parent] => Some(parent),
                Parent::Root if line.parent().is_some() => None,
                // The link was cut.
                Parent::Lost if !named.is_empty() => None,
                Parent::Node(_) | Parent::Root | Parent::Lost => continue,
            };
            let code = match (parent, self.tree.copies(node)) {
                (_, [_, ..]) => Code::Repeated,
                (None, []) => Code::Cycle,
                (Some(_), []) if named.is_empty() => Code::Dangling,
                (Some(_), []) if self.tree.is_stranded(node) => Code::Stranded,
                (Some(_), []) => Code::Cycle,
            };
            self.link(step, node, parent, code);
        }
    }

    /// Makes `node` a child of `parent`, or a root.
    pub(super) fn link(
        &self,
        step: &mut RepairStep,
        node: NodeId,
        parent: Option<NodeId>,
        code: Code,
    ) {
        let place = self.place(node);
        let id = parent.and_then(|parent| self.id(step, parent));
        let value = id.as_deref().map(Json::from);
        step.changes.set(place, "parentUuid", value);
        let why = match self.tree.link_decision(node) {
            Some(Decision::Bridge { evidence, .. }) if parent.is_some() => evidence.words(),
            _ if parent.is_none() => "nothing proves what it follows",
            _ => "as policy recover links it",
        };
        let detail = match parent {
            Some(parent) => format!("child of line {}: {why}", self.tree.entry(parent).line()),
            None => format!("no parent: {why}"),
        };
        step.act(
            self,
            self.tree.entry(node).number(),
            code,
            ActionKind::Parent,
            &detail,
        );
    }

    /// Returns where an entry is written.
    pub(super) fn place(&self, node: NodeId) -> EntryNo {
        let first = self.tree.copies(node).first();
        first.copied().unwrap_or(self.tree.entry(node).number())
    }

    /// Returns the id that the entry has in the new file.
    pub(super) fn id(&self, step: &RepairStep, node: NodeId) -> Option<String> {
        let entry = self.tree.entry(node);
        let new = step.ids.get(&entry.number()).map(Uuid::to_string);
        new.or_else(|| self.reading.uuid(&entry))
    }

    /// Returns the entries that the parent id of a line leads to, past progress lines.
    fn named(&self, line: &EntryRef<'_>) -> Vec<NodeId> {
        let index = &self.reading.index;
        let named = line.parent().into_iter().flat_map(|id| index.with_uuid(id));
        let mut nodes: Vec<_> = named
            .filter_map(|line| self.tree.entry_node(line))
            .collect();
        nodes.dedup();
        nodes
    }

    /// Answers calls without a result: the client drops the line of such a call with all its text
    /// (TURN-2).
    fn results(
        &self,
        step: &mut RepairStep,
        new_id: &mut dyn FnMut() -> Uuid,
    ) -> Result<(), Error> {
        let mut bodies = Bodies::new(&self.reading.source);
        // A result below a preserved call has to be preserved as well.
        let kept = self.tree.kept_entries();
        let mut kept_ids: Vec<_> = kept
            .map_or(&[][..], |kept| &kept.entries)
            .iter()
            .map(|node| (*node, self.id(step, *node), None))
            .collect();
        for missing in missing_results(&self.tree, &self.path, &mut bodies)? {
            let Some(node) = self.tree.entry_node(missing.after) else {
                continue;
            };
            let entry = self.tree.entry(node);
            let id = new_id();
            let engine = ObjectBuf::new()
                .with("v", ENGINE_VERSION)
                .with("made", "missing-result");
            let parent = self.id(step, node);
            let session = entry.session().or(self.reading.index.own_session());
            let line = missing
                .line
                .with("parentUuid", parent.as_deref().map(Json::from))
                .with("isSidechain", entry.flags().contains(Flags::SIDECHAIN))
                .with_some("agentId", entry.agent())
                .with("uuid", id)
                .with_some("sessionId", session)
                .with("transcriptEngine", engine);
            step.changes.insert_after(self.place(node), line.text());
            step.made.push(id);
            if let Some((.., result)) = kept_ids.iter_mut().find(|(kept, ..)| *kept == node) {
                *result = Some(id.to_string());
            }
            // Entries that followed the message follow the new result, else the result would be a branch that ends.
            let on_path = self.path.entries.iter().map(|entry| entry.entry_no());
            let nodes = on_path.filter_map(|entry| self.tree.node(entry));
            for child in nodes.filter(|child| self.tree.parent(*child) == Parent::Node(node)) {
                step.changes.set(self.place(child), "parentUuid", id);
            }
            let detail = match missing.calls.len() {
                1 => "an error as the result of a call".to_owned(),
                count => format!("an error as the result of {count} calls"),
            };
            step.act(
                self,
                entry.number(),
                Code::NoResult,
                ActionKind::Answer,
                &detail,
            );
        }
        match kept {
            Some(kept) if kept_ids.iter().any(|(.., result)| result.is_some()) => {
                let ids = kept_ids.into_iter();
                let ids = ids.flat_map(|(_, id, result)| [id, result]).flatten();
                let ids: Vec<String> = ids.collect();
                self.name_entries(step, kept.boundary, kept.anchor, &ids)
            }
            _ => Ok(()),
        }
    }
}
