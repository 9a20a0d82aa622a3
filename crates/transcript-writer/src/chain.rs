//! Determines the parent of the next entry. Only entries in the file count.

use std::collections::HashMap;
use std::sync::Arc;

use transcript_format::kind::EntryKind;
use transcript_storage::Fingerprint;

use crate::draft::{Draft, EntryId, Parent, Pin};
use crate::error::ErrorKind;
use crate::ids::EntryIds;

/// The state of a session as a reader found it: the writer never reads a history itself.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ResumePoint {
    /// The ids of all entries.
    pub uuids: EntryIds,
    /// The entry where the main conversation continues.
    pub leaf: Option<EntryId>,
    /// The same for each agent whose entries are in the file as a sidechain. Sidechains without an
    /// agent id have the empty name.
    pub agent_leaves: HashMap<String, EntryId>,
    /// The calls without a result: the id of the call, and the entry that makes it.
    pub calls: HashMap<String, EntryId>,
    /// The entries that the last compaction of the main conversation preserved.
    pub kept: EntryIds,
    /// Whether a `last-prompt` line names the end of the conversation. The pin is cleared when an
    /// entry is added elsewhere.
    pub is_pinned: bool,
    /// Whether the conversation would end elsewhere without that line, as after a rewind.
    pub is_rewound: bool,
    /// Whether some reader would stay at the pin after an entry was added below the leaf, because it
    /// does not find a way from there up to the pinned entry. The next entry of the main conversation
    /// then gets a pin of its own.
    pub needs_pin: bool,
    /// The last line of each [kind of state](EntryKind::is_state) and the offset of its first byte,
    /// for [`end_turn`](crate::Writer::end_turn). Lines of other kinds are ignored.
    pub state: Vec<(Draft, u64)>,
    /// The fingerprint of the bytes that were read, to recognize the file. Without it the file is not
    /// checked.
    pub fingerprint: Option<Fingerprint>,
}

/// The state of the chains of one file.
#[derive(Debug)]
pub(crate) struct Chains {
    known: EntryIds,
    /// The last entry of the main chain, and those of the agents.
    leaf: Option<EntryId>,
    agent_leaves: HashMap<Box<str>, EntryId>,
    calls: HashMap<Box<str>, EntryId>,
    main: MainChain,
    /// The changes by the current batch, to undo them if it cannot be written.
    journal: Vec<ChainChange>,
}

/// The state of the main conversation besides its leaf.
#[derive(Clone, Debug, Default)]
struct MainChain {
    /// The entries that the last compaction preserved.
    kept: Arc<EntryIds>,
    /// Entries with open calls that are not part of the conversation any more.
    left: Arc<EntryIds>,
    is_pinned: bool,
    is_rewound: bool,
    /// An entry was added where the pin does not lead.
    has_left_pin: bool,
    /// A pin holds, and some reader does not follow it to the leaf.
    needs_pin: bool,
    /// An entry was added while that was so.
    is_unseen: bool,
}

/// The pin that a batch needs after its entries, so that every reader continues from the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NewPin {
    /// None leads past them: the pin is cleared.
    Clear,
    /// This entry ends the conversation.
    At(EntryId),
}

#[derive(Debug)]
enum ChainChange {
    Known(EntryId),
    Leaf(Option<Box<str>>, Option<EntryId>),
    Call(Box<str>, Option<EntryId>),
    MainChain(MainChain),
}

/// The parent of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChainPosition {
    pub(crate) parent: Option<EntryId>,
    /// The entry with the call that it answers.
    pub(crate) source: Option<EntryId>,
}

impl Chains {
    pub(crate) fn new(known: ResumePoint) -> Self {
        let agents = known.agent_leaves.into_iter();
        let calls = known.calls.into_iter();
        Self {
            known: known.uuids,
            leaf: known.leaf,
            agent_leaves: agents.map(|(agent, leaf)| (agent.into(), leaf)).collect(),
            calls: calls.map(|(call, entry)| (call.into(), entry)).collect(),
            main: MainChain {
                kept: Arc::new(known.kept),
                is_pinned: known.is_pinned,
                is_rewound: known.is_rewound,
                needs_pin: known.needs_pin,
                ..MainChain::default()
            },
            journal: Vec::new(),
        }
    }

    pub(crate) fn leaf(&self) -> Option<&EntryId> {
        self.leaf.as_ref()
    }

    pub(crate) fn knows(&self, id: &EntryId) -> bool {
        self.known.contains(id)
    }

    /// Returns whether the last compaction preserved the entry: its successor is a child of the
    /// summary.
    pub(crate) fn is_kept(&self, id: &EntryId) -> bool {
        self.main.kept.contains(id)
    }

    /// Returns whether the end of the conversation was chosen by a rewind, and no entry follows it
    /// yet.
    pub(crate) fn is_rewound(&self) -> bool {
        self.main.is_rewound
    }

    /// Returns whether the draft has a result for an open call.
    pub(crate) fn has_call_of(&self, draft: &Draft) -> bool {
        self.call_of(draft).is_some()
    }

    /// Returns whether this call of the conversation, or of a subagent, has no result yet.
    pub(crate) fn is_open(&self, call: &str) -> bool {
        let entry = self.calls.get(call);
        entry.is_some_and(|entry| !self.main.left.contains(entry))
    }

    fn call_of(&self, draft: &Draft) -> Option<&EntryId> {
        let mut calls = draft.results.iter().filter_map(|call| self.calls.get(call));
        calls.find(|entry| draft.chain.is_some() || !self.main.left.contains(entry))
    }

    /// Returns whether a pin must be cleared when the conversation starts over.
    pub(crate) fn root_leaves_pin(&self) -> bool {
        self.main.is_pinned && self.leaf.is_some()
    }

    /// Continues the conversation after `leaf`.
    pub(crate) fn rewind(&mut self, leaf: Option<EntryId>) {
        self.abandon_calls(leaf.as_slice());
        self.leaf = leaf;
        self.main.is_rewound = true;
    }

    /// Abandons the open calls of entries that were withdrawn.
    pub(crate) fn abandon_withdrawn(&mut self, withdrawn: &[EntryId]) {
        let mut left = EntryIds::clone(&self.main.left);
        left.extend(withdrawn.iter().cloned());
        self.main.left = Arc::new(left);
    }

    /// Checks that the last entries of the conversation, oldest first, can be removed so that it ends
    /// at `parent`.
    pub(crate) fn check_last(
        &self,
        entries: &[EntryId],
        parent: Option<&EntryId>,
    ) -> Result<(), ErrorKind> {
        let is_wrong = |parent| !self.knows(parent) || entries.contains(parent);
        if !entries.iter().all(|entry| self.knows(entry)) || parent.is_some_and(is_wrong) {
            return Err(ErrorKind::UnknownEntry);
        }
        if entries.last() == self.leaf() {
            Ok(())
        } else {
            Err(ErrorKind::NotTheLeaf)
        }
    }

    /// Returns the pin that the entries since the last call need, if they need one.
    pub(crate) fn take_new_pin(&mut self) -> Option<NewPin> {
        let has_left_pin = std::mem::take(&mut self.main.has_left_pin);
        let is_unseen = std::mem::take(&mut self.main.is_unseen);
        match (has_left_pin, is_unseen) {
            (true, _) => Some(NewPin::Clear),
            (false, true) => self.leaf.clone().map(NewPin::At),
            (false, false) => None,
        }
    }

    /// Abandons the open calls that are not in `stay`: their results become children of the current
    /// leaf instead of the call, because a child of the call would lead back to the abandoned
    /// branch.
    fn abandon_calls(&mut self, stay: &[EntryId]) {
        let open = self.calls.values().filter(|entry| !stay.contains(entry));
        self.main.left = Arc::new(open.cloned().collect());
    }

    fn change_main(&mut self, change: impl FnOnce(&mut MainChain)) {
        self.journal.push(ChainChange::MainChain(self.main.clone()));
        change(&mut self.main);
    }

    fn leaf_of(&self, chain: Option<&str>) -> Option<&EntryId> {
        match chain {
            None => self.leaf.as_ref(),
            Some(agent) => self.agent_leaves.get(agent),
        }
    }

    /// Sets the last entry of a chain; returns the previous one.
    fn set_leaf(&mut self, chain: Option<&str>, leaf: Option<EntryId>) -> Option<EntryId> {
        match (chain, leaf) {
            (None, leaf) => std::mem::replace(&mut self.leaf, leaf),
            (Some(agent), Some(leaf)) => self.agent_leaves.insert(agent.into(), leaf),
            (Some(agent), None) => self.agent_leaves.remove(agent),
        }
    }

    /// Places `draft` as the next entry, until [`commit`](Self::commit) or [`undo`](Self::undo).
    pub(crate) fn place(&mut self, draft: &Draft) -> Result<ChainPosition, ErrorKind> {
        if draft.withdrawn().is_some() {
            // No reader would honour it.
            return Err(ErrorKind::InvalidEntry);
        }
        if !draft.kind.is_chain() {
            if let Some(pin) = draft.pin {
                self.change_main(|main| {
                    main.is_pinned = pin == Pin::Set;
                    main.needs_pin = false;
                });
            }
            return Ok(ChainPosition::default());
        }
        let is_main = draft.chain.is_none();
        if draft.needs_open_calls && !draft.results().all(|call| self.calls.contains_key(call)) {
            return Err(ErrorKind::AnsweredCall);
        }
        let source = self.call_of(draft).cloned();
        let parent = match &draft.parent {
            Parent::Root => None,
            Parent::Entry(parent) => {
                if !self.known.contains(parent) {
                    return Err(ErrorKind::UnknownParent);
                }
                Some(parent.clone())
            }
            // A result is a child of its own call, even when the chain has advanced since.
            Parent::Chain => source
                .clone()
                .or_else(|| self.leaf_of(draft.chain.as_deref()).cloned()),
        };
        if let Some(uuid) = &draft.uuid {
            if !self.known.insert(uuid.clone()) {
                return Err(ErrorKind::RepeatedUuid);
            }
            self.journal.push(ChainChange::Known(uuid.clone()));
            // A progress line is never a parent.
            if draft.kind != EntryKind::Progress {
                if is_main {
                    self.note_main(draft, parent.as_ref());
                }
                let before = self.set_leaf(draft.chain.as_deref(), Some(uuid.clone()));
                self.journal
                    .push(ChainChange::Leaf(draft.chain.clone(), before));
            }
            for call in &draft.calls {
                let before = self.calls.insert(call.clone(), uuid.clone());
                self.journal.push(ChainChange::Call(call.clone(), before));
            }
        }
        for call in &draft.results {
            if let Some(entry) = self.calls.remove(call) {
                self.journal
                    .push(ChainChange::Call(call.clone(), Some(entry)));
            }
        }
        Ok(ChainPosition { parent, source })
    }

    /// Updates the state of the main conversation, except the leaf, for its next entry.
    fn note_main(&mut self, draft: &Draft, parent: Option<&EntryId>) {
        let leaves_pin =
            self.main.is_pinned && draft.parent != Parent::Chain && parent != self.leaf.as_ref();
        let needs_pin = self.main.needs_pin;
        if leaves_pin || needs_pin || self.main.is_rewound {
            self.change_main(|main| {
                main.is_pinned &= !leaves_pin;
                main.has_left_pin |= leaves_pin;
                main.is_unseen |= needs_pin;
                main.is_rewound = false;
            });
        }
        if let Some(keeps) = &draft.keeps
            && parent.is_none()
        {
            self.journal.push(ChainChange::MainChain(self.main.clone()));
            // A boundary after a pin clears it (LEAF-13).
            self.main.needs_pin = false;
            self.main.is_unseen = false;
            self.main.kept = Arc::new(keeps.iter().cloned().collect());
            self.abandon_calls(keeps);
        }
    }

    /// Returns a point to undo changes to.
    pub(crate) fn mark(&self) -> usize {
        self.journal.len()
    }

    /// Undoes the changes since `mark`, because their lines were not written.
    pub(crate) fn undo(&mut self, mark: usize) {
        while self.journal.len() > mark {
            match self.journal.pop() {
                Some(ChainChange::Known(uuid)) => {
                    self.known.remove(&uuid);
                }
                Some(ChainChange::Leaf(chain, leaf)) => {
                    self.set_leaf(chain.as_deref(), leaf);
                }
                Some(ChainChange::Call(call, Some(entry))) => {
                    self.calls.insert(call, entry);
                }
                Some(ChainChange::Call(call, None)) => {
                    self.calls.remove(&call);
                }
                Some(ChainChange::MainChain(main)) => self.main = main,
                None => break,
            }
        }
    }

    /// Keeps the changes, because their lines are in the file.
    pub(crate) fn commit(&mut self) {
        self.journal.clear();
    }

    /// Adds the ids of entries that another process wrote, and the pin that it wrote last, if any.
    /// Unless that names the leaf, now or before the current batch, it holds against later entries.
    pub(crate) fn note_foreign(&mut self, ids: Vec<EntryId>, pin: Option<&EntryId>) {
        self.known.extend(ids);
        let Some(pin) = pin else {
            return;
        };
        let leaves = self.journal.iter().filter_map(|change| match change {
            ChainChange::Leaf(None, before) => before.as_ref(),
            _ => None,
        });
        let is_leaf = leaves.chain(&self.leaf).any(|leaf| leaf == pin);
        self.main.is_pinned = Pin::of(pin) == Pin::Set;
        self.main.needs_pin = self.main.is_pinned && !is_leaf;
    }
}
