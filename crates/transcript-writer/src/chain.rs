//! Which entry the next one hangs under. Only what is in the file counts.

use std::collections::{HashMap, HashSet};

use transcript_format::kind::EntryKind;

use crate::draft::{Draft, EntryId, Parent};
use crate::error::ErrorKind;

/// What a reader found in a session: the writer never reads a history itself.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Known {
    /// The ids of all entries.
    pub uuids: HashSet<EntryId>,
    /// The entry that the main conversation goes on from.
    pub leaf: Option<EntryId>,
    /// The same for each agent whose entries are in the file as a sidechain; sidechains without an
    /// agent are those of the agent with the empty name.
    pub agent_leaves: HashMap<String, EntryId>,
    /// The calls that have no result yet: the id of the call, and the entry that makes it.
    pub calls: HashMap<String, EntryId>,
    /// How to know the file again. Without it the file is taken as it is.
    pub anchor: Option<Anchor>,
}

/// The end of a file as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Its length in bytes.
    pub len: u64,
    /// The bytes before that, 64 at most.
    pub tail: Vec<u8>,
}

/// The state of the chains of one file.
#[derive(Debug)]
pub(crate) struct Chains {
    known: HashSet<EntryId>,
    /// The last entry of the main chain, and those of the agents'.
    leaf: Option<EntryId>,
    agent_leaves: HashMap<Box<str>, EntryId>,
    calls: HashMap<Box<str>, EntryId>,
    /// What the batch that is not written yet changed, so that it can be taken back.
    journal: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Known(EntryId),
    Leaf(Option<Box<str>>, Option<EntryId>),
    Call(Box<str>, Option<EntryId>),
}

/// Where an entry hangs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) parent: Option<EntryId>,
    /// The entry with the call that it answers.
    pub(crate) source: Option<EntryId>,
}

impl Chains {
    pub(crate) fn new(known: Known) -> Self {
        let agents = known.agent_leaves.into_iter();
        let calls = known.calls.into_iter();
        Self {
            known: known.uuids,
            leaf: known.leaf,
            agent_leaves: agents.map(|(agent, leaf)| (agent.into(), leaf)).collect(),
            calls: calls.map(|(call, entry)| (call.into(), entry)).collect(),
            journal: Vec::new(),
        }
    }

    pub(crate) fn leaf(&self) -> Option<&EntryId> {
        self.leaf.as_ref()
    }

    fn leaf_of(&self, chain: Option<&str>) -> Option<&EntryId> {
        match chain {
            None => self.leaf.as_ref(),
            Some(agent) => self.agent_leaves.get(agent),
        }
    }

    /// Sets the last entry of a chain; returns the one before.
    fn set_leaf(&mut self, chain: Option<&str>, leaf: Option<EntryId>) -> Option<EntryId> {
        match (chain, leaf) {
            (None, leaf) => std::mem::replace(&mut self.leaf, leaf),
            (Some(agent), Some(leaf)) => self.agent_leaves.insert(agent.into(), leaf),
            (Some(agent), None) => self.agent_leaves.remove(agent),
        }
    }

    /// Takes `draft` as the next entry, for now.
    pub(crate) fn place(&mut self, draft: &Draft) -> Result<Place, ErrorKind> {
        if !draft.kind.is_chain() {
            return Ok(Place::default());
        }
        let source = draft.results.iter().find_map(|call| self.calls.get(call));
        let source = source.cloned();
        let parent = match &draft.parent {
            Parent::Root => None,
            Parent::Entry(parent) => {
                if !self.known.contains(parent) {
                    return Err(ErrorKind::UnknownParent);
                }
                Some(parent.clone())
            }
            // A result hangs under its own call, wherever the chain has got to.
            Parent::Chain => source
                .clone()
                .or_else(|| self.leaf_of(draft.chain.as_deref()).cloned()),
        };
        if let Some(uuid) = &draft.uuid {
            if !self.known.insert(uuid.clone()) {
                return Err(ErrorKind::RepeatedUuid);
            }
            self.journal.push(Change::Known(uuid.clone()));
            // Nothing hangs under a progress line.
            if draft.kind != EntryKind::Progress {
                let before = self.set_leaf(draft.chain.as_deref(), Some(uuid.clone()));
                self.journal.push(Change::Leaf(draft.chain.clone(), before));
            }
            for call in &draft.calls {
                let before = self.calls.insert(call.clone(), uuid.clone());
                self.journal.push(Change::Call(call.clone(), before));
            }
        }
        for call in &draft.results {
            if let Some(entry) = self.calls.remove(call) {
                self.journal.push(Change::Call(call.clone(), Some(entry)));
            }
        }
        Ok(Place { parent, source })
    }

    /// A point to take the changes back to.
    pub(crate) fn mark(&self) -> usize {
        self.journal.len()
    }

    /// Takes back what was done since `mark`: it did not get into the file.
    pub(crate) fn undo(&mut self, mark: usize) {
        while self.journal.len() > mark {
            match self.journal.pop() {
                Some(Change::Known(uuid)) => {
                    self.known.remove(&uuid);
                }
                Some(Change::Leaf(chain, leaf)) => {
                    self.set_leaf(chain.as_deref(), leaf);
                }
                Some(Change::Call(call, Some(entry))) => {
                    self.calls.insert(call, entry);
                }
                Some(Change::Call(call, None)) => {
                    self.calls.remove(&call);
                }
                None => break,
            }
        }
    }

    /// What was placed is in the file.
    pub(crate) fn commit(&mut self) {
        self.journal.clear();
    }

    /// Another process wrote these.
    pub(crate) fn learn(&mut self, ids: Vec<EntryId>) {
        self.known.extend(ids);
    }
}
