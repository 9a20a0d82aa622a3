//! Walks over parents, for the dialects whose records name the record before them.

use std::collections::{HashMap, HashSet};

use transcript_format::object::Object;

use crate::conversation::{Conversation, DamageKind};
use crate::dialect::Policy;
use crate::ids::Id;
use crate::place::Place;

/// A record that names its parent.
pub(crate) struct Link {
    pub(crate) id: Id,
    pub(crate) parent: Option<Id>,
    /// The number of its part: those of all records are kept, and have the places.
    part: u32,
}

impl Link {
    /// Makes the link of a record that is being read: its part comes next.
    pub(crate) fn of(record: &Object<'_>, id: Id, parent: &str, to: &Conversation) -> Self {
        Self {
            id,
            parent: Id::in_field(record, parent),
            part: u32::try_from(to.parts.len()).unwrap_or(u32::MAX),
        }
    }

    /// Returns where the record lies.
    fn place(&self, to: &Conversation) -> Option<Place> {
        to.parts.get(self.part as usize).map(|part| part.place)
    }
}

/// The records of a file with their parents.
pub(crate) struct Tree<'a> {
    links: Vec<&'a Link>,
    /// Of a repeated id, the last record counts.
    by_id: HashMap<Id, u32>,
    /// The record that stands in for each lost parent.
    stand_ins: HashMap<Id, Option<usize>>,
    /// The records that can stand in for others: those that do not repeat an id.
    free: Free,
    policy: Policy,
}

/// The records from a root to a leaf.
pub(crate) struct Path {
    /// Their places in the list of records, root first.
    pub(crate) records: Vec<usize>,
    /// Whether the parents form a circle.
    pub(crate) is_cycle: bool,
}

impl<'a> Tree<'a> {
    /// `by_id` has the last record with each id.
    pub(crate) fn new(
        links: impl Iterator<Item = &'a Link>,
        by_id: HashMap<Id, u32>,
        policy: Policy,
    ) -> Self {
        let links: Vec<&Link> = links.collect();
        let mut free = Free::of(links.len());
        let mut repeated = HashSet::new();
        for (at, link) in links.iter().enumerate() {
            let is_last = by_id.get(&link.id).is_none_or(|last| *last as usize == at);
            let is_again = if is_last {
                repeated.contains(&link.id)
            } else {
                !repeated.insert(link.id)
            };
            if is_again {
                free.take(at);
            }
        }
        let mut stand_ins = HashMap::new();
        for (at, link) in links.iter().enumerate() {
            if let Some(lost) = link.parent.filter(|id| !by_id.contains_key(id)) {
                stand_ins
                    .entry(lost)
                    .or_insert_with(|| free.last_before(at));
            }
        }
        Self {
            links,
            by_id,
            stand_ins,
            free,
            policy,
        }
    }

    /// Returns the parent of a record.
    fn parent(&self, at: usize) -> Parent {
        let Some(id) = self.links[at].parent else {
            return Parent::None;
        };
        match self.by_id.get(&id) {
            Some(parent) => Parent::At(*parent as usize),
            None => {
                let stand_in = self.stand_ins.get(&id).copied().flatten();
                Parent::Lost(stand_in.filter(|_| self.policy == Policy::Recover))
            }
        }
    }

    /// Returns the path that ends at `leaf`, and reports lost parents and circles.
    ///
    /// To recover, one record stands in for a lost parent, however many records name it: the one before the first of them. Agents
    /// append a record directly after its parent, and what follows when somebody went back to the parent comes later.
    pub(crate) fn path(&self, leaf: usize, to: &mut Conversation) -> Path {
        let mut free = self.free.clone();
        let mut seen = vec![false; self.links.len()];
        let mut records = Vec::new();
        let mut is_cycle = false;
        let mut next = Some(leaf);
        while let Some(at) = next {
            seen[at] = true;
            free.take(at);
            records.push(at);
            let (damage, stand_in) = match self.parent(at) {
                Parent::None => break,
                Parent::At(parent) if !seen[parent] => {
                    next = Some(parent);
                    continue;
                }
                Parent::At(_) => {
                    let before = at.checked_sub(1);
                    let before = before.filter(|_| self.policy == Policy::Recover);
                    (DamageKind::ParentCycle, before)
                }
                Parent::Lost(stand_in) => (DamageKind::LostParent, stand_in),
            };
            is_cycle |= damage == DamageKind::ParentCycle;
            if let Some(place) = self.links[at].place(to) {
                to.report(place, damage);
            }
            next = stand_in.and_then(|stand_in| free.last_before(stand_in + 1));
        }
        records.reverse();
        Path { records, is_cycle }
    }

    /// Returns the records that are not `taken` in runs, each a parent and its children one after the other.
    pub(crate) fn runs(&self, taken: &[bool]) -> Vec<Vec<usize>> {
        let mut runs: Vec<Vec<usize>> = Vec::new();
        let mut run_of_last: HashMap<usize, usize> = HashMap::new();
        for at in (0..self.links.len()).filter(|at| !taken[*at]) {
            let parent = match self.parent(at) {
                Parent::At(parent) => Some(parent),
                Parent::Lost(stand_in) => stand_in,
                Parent::None => None,
            };
            let run = parent.and_then(|parent| run_of_last.remove(&parent));
            let run = run.unwrap_or(runs.len());
            if run == runs.len() {
                runs.push(Vec::new());
            }
            runs[run].push(at);
            run_of_last.insert(at, run);
        }
        runs
    }
}

/// The records that can still stand in for a lost one.
#[derive(Clone)]
struct Free {
    /// For each record the one before it that may be free, as far as that is known; its own number if it is free. Numbers begin
    /// with 1, and 0 stands for none.
    before: Vec<u32>,
}

impl Free {
    fn of(count: usize) -> Self {
        Self {
            before: (0..=u32::try_from(count).unwrap_or(u32::MAX)).collect(),
        }
    }

    fn take(&mut self, at: usize) {
        self.before[at + 1] = u32::try_from(at).unwrap_or(u32::MAX);
    }

    /// Returns the last free record before `at`. Steps over taken ones are remembered, so that the time of all calls together grows
    /// with the number of records.
    fn last_before(&mut self, at: usize) -> Option<usize> {
        let next = |before: &[u32], at: usize| before[at] as usize;
        let mut found = at;
        while next(&self.before, found) != found {
            found = next(&self.before, found);
        }
        let mut step = at;
        while step != found {
            let after = next(&self.before, step);
            self.before[step] = u32::try_from(found).unwrap_or(u32::MAX);
            step = after;
        }
        found.checked_sub(1)
    }
}

enum Parent {
    None,
    At(usize),
    /// No record has its id. The record that stands in for it, if there is one.
    Lost(Option<usize>),
}
