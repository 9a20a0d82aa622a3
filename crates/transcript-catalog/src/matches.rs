//! The matches of a scan.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use transcript_format::scan::Envelope;
use transcript_format::time;

use crate::texts::Unit;

/// A unit that matches: its position, and the values by which hits are ordered and copies are joined.
#[derive(Clone, Debug)]
pub(crate) struct Match {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) file: u32,
    pub(crate) key: CopyKey,
    /// `i64::MIN` if unknown.
    pub(crate) millis: i64,
    pub(crate) score: f32,
    /// Whether the entry names the session of its file.
    pub(crate) is_own: bool,
    /// Whether its bytes are to be repaired before they are read.
    pub(crate) is_salvaged: bool,
}

/// The key that copies of an entry share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyKey {
    /// Hashes of its uuid and of that of its original; of something else that is the same for copies if it
    /// has none. One of them is equal.
    pub(crate) ids: [u64; 2],
    /// A hash of its type and its texts, which is equal.
    pub(crate) content: u64,
}

/// The hashes of one search.
#[derive(Debug, Default)]
pub(crate) struct Hashes(RandomState);

impl Hashes {
    pub(crate) fn of(&self, value: impl Hash) -> u64 {
        self.0.hash_one(value)
    }

    pub(crate) fn key(&self, file: usize, envelope: &Envelope<'_>, unit: &Unit<'_>) -> CopyKey {
        let uuid = envelope.uuid();
        let uuid = uuid.map(|uuid| self.of(uuid.bytes().as_ref()));
        let origin = unit.origin.as_deref();
        let origin = origin.map(|origin| self.of(origin.as_bytes()));
        let id = uuid.unwrap_or_else(|| self.of((file, origin)));
        let mut content = self.0.build_hasher();
        envelope.kind().hash(&mut content);
        for text in &unit.texts {
            (text.field, text.block, &text.text).hash(&mut content);
        }
        CopyKey {
            ids: [id, origin.unwrap_or(id)],
            content: content.finish(),
        }
    }
}

pub(crate) fn millis_of(envelope: &Envelope<'_>) -> Option<i64> {
    time::millis(&envelope.timestamp()?.bytes())
}
