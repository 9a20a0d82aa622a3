//! Sets of ids. A session has many, and the writer keeps all of them.

use std::collections::HashSet;

use crate::draft::EntryId;

/// A set of entry ids. Takes 16 bytes for each uuid, plus the free space of a hash table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryIds {
    uuids: HashSet<u128>,
    /// Ids of older tools that are not uuids.
    odd: HashSet<Box<str>>,
}

impl EntryIds {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an id; returns false if the set already has it.
    pub fn insert(&mut self, id: EntryId) -> bool {
        match id {
            EntryId::Uuid(uuid) => self.uuids.insert(uuid.0),
            EntryId::Odd(text) => self.odd.insert(text),
        }
    }

    /// Removes an id; returns false if the set does not have it.
    pub fn remove(&mut self, id: &EntryId) -> bool {
        match id {
            EntryId::Uuid(uuid) => self.uuids.remove(&uuid.0),
            EntryId::Odd(text) => self.odd.remove(text),
        }
    }

    /// Returns whether the set has the id.
    #[must_use]
    pub fn contains(&self, id: &EntryId) -> bool {
        match id {
            EntryId::Uuid(uuid) => self.uuids.contains(&uuid.0),
            EntryId::Odd(text) => self.odd.contains(text),
        }
    }

    /// Returns the number of ids.
    #[must_use]
    pub fn len(&self) -> usize {
        self.uuids.len() + self.odd.len()
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Extend<EntryId> for EntryIds {
    fn extend<I: IntoIterator<Item = EntryId>>(&mut self, ids: I) {
        for id in ids {
            self.insert(id);
        }
    }
}

impl FromIterator<EntryId> for EntryIds {
    fn from_iter<I: IntoIterator<Item = EntryId>>(ids: I) -> Self {
        let mut set = Self::new();
        set.extend(ids);
        set
    }
}
