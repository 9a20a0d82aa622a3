//! Ids of records, small enough that each one can be kept.

use std::hash::{DefaultHasher, Hash, Hasher};

use transcript_format::object::Object;

/// An id of a record or a call, as a hash of 64 bits: equal ids have equal hashes, and that two of some millions of different ids
/// have the same is less likely than an error of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(u64);

impl Id {
    pub(crate) fn of(id: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// Returns the id in the field `key`.
    pub(crate) fn in_field(object: &Object<'_>, key: &str) -> Option<Self> {
        object.str(key).map(|id| Self::of(&id))
    }
}
