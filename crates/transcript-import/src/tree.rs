//! Walks over parents, for the dialects whose records name the record before them.

use std::collections::HashMap;

use crate::conversation::{Conversation, DamageKind};
use crate::dialect::Policy;
use crate::ids::Id;
use crate::place::Place;

/// A record that names its parent.
pub(crate) struct Link {
    pub(crate) id: Id,
    pub(crate) parent: Option<Id>,
    pub(crate) place: Place,
}

/// The records of a file with their parents.
pub(crate) struct Tree<'a> {
    links: Vec<&'a Link>,
    /// Of a repeated id, the last record counts.
    by_id: HashMap<Id, usize>,
}

/// The records from a root to a leaf.
pub(crate) struct Path {
    /// Their places in the list of records, root first.
    pub(crate) records: Vec<usize>,
    /// Whether the parents form a circle.
    pub(crate) is_cycle: bool,
}

impl<'a> Tree<'a> {
    pub(crate) fn new(links: impl Iterator<Item = &'a Link>) -> Self {
        let links: Vec<&Link> = links.collect();
        let by_id = links.iter().enumerate().map(|(at, link)| (link.id, at));
        Self {
            by_id: by_id.collect(),
            links,
        }
    }

    /// Returns the parent of a record.
    fn parent(&self, at: usize) -> Parent {
        match self.links[at].parent {
            None => Parent::None,
            Some(id) => match self.by_id.get(&id) {
                Some(parent) => Parent::At(*parent),
                None => Parent::Lost,
            },
        }
    }

    /// Returns the path that ends at `leaf`, and reports lost parents and circles.
    ///
    /// To recover, the record before it in the file stands in for a lost parent: agents append each record directly after its
    /// parent, unless somebody went back, and then the parent is an older record that is rarely the lost one.
    pub(crate) fn path(&self, leaf: usize, policy: Policy, to: &mut Conversation) -> Path {
        let mut seen = Seen::of(self.links.len());
        let mut records = Vec::new();
        let mut is_cycle = false;
        let mut next = Some(leaf);
        while let Some(at) = next {
            seen.add(at);
            records.push(at);
            let damage = match self.parent(at) {
                Parent::None => break,
                Parent::At(parent) if !seen.has(parent) => {
                    next = Some(parent);
                    continue;
                }
                Parent::At(_) => DamageKind::ParentCycle,
                Parent::Lost => DamageKind::LostParent,
            };
            is_cycle |= damage == DamageKind::ParentCycle;
            to.report(self.links[at].place, damage);
            next = seen.last_without(at).filter(|_| policy == Policy::Recover);
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
                Parent::None | Parent::Lost => None,
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

/// The records that a walk has seen.
struct Seen {
    /// For each record the one before it that may not be seen yet, as far as that is known; its own number if it is not seen. Numbers
    /// begin with 1, and 0 stands for none.
    before: Vec<usize>,
}

impl Seen {
    fn of(count: usize) -> Self {
        Self {
            before: (0..=count).collect(),
        }
    }

    fn has(&self, at: usize) -> bool {
        self.before[at + 1] != at + 1
    }

    fn add(&mut self, at: usize) {
        self.before[at + 1] = at;
    }

    /// Returns the last record before `at` that is not seen. Steps over seen ones are remembered, so that the time of all calls together
    /// grows with the number of records.
    fn last_without(&mut self, at: usize) -> Option<usize> {
        let mut found = at;
        while self.before[found] != found {
            found = self.before[found];
        }
        let mut step = at;
        while step != found {
            step = std::mem::replace(&mut self.before[step], found);
        }
        found.checked_sub(1)
    }
}

enum Parent {
    None,
    At(usize),
    Lost,
}
