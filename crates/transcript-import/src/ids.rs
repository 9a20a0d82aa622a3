//! Ids of records, small enough that each one can be kept.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU64;

use transcript_format::object::Object;

/// An id of a record or a call, as a hash of 64 bits: equal ids have equal hashes, and that two of some millions of different ids
/// have the same is less likely than an error of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(NonZeroU64);

impl Id {
    pub(crate) fn of(id: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        Self::of_hash(&hasher)
    }

    /// Returns the id of a record together with its bytes: that of a copy is the same.
    pub(crate) fn with_bytes(self, bytes: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0.get());
        hasher.write_u32(crc32fast::hash(bytes));
        Self::of_hash(&hasher)
    }

    fn of_hash(hasher: &DefaultHasher) -> Self {
        Self(NonZeroU64::new(hasher.finish()).unwrap_or(NonZeroU64::MIN))
    }

    /// Returns the id in the field `key`.
    pub(crate) fn in_field(object: &Object<'_>, key: &str) -> Option<Self> {
        object.str(key).map(|id| Self::of(&id))
    }
}
