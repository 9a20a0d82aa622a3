//! What decides a session besides its own files, as a number that changes with it.

use std::collections::HashMap;
use std::hash::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The state of what decides a session besides its own files: rows of a database, the index of titles, the files of other sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Version {
    pub(crate) hash: u64,
    /// When the session last changed, in milliseconds since 1970, if that is known from elsewhere than its files.
    pub(crate) updated: Option<i64>,
}

impl Version {
    /// Returns the version of values.
    pub(crate) fn of(values: &impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        values.hash(&mut hasher);
        Self {
            hash: hasher.finish(),
            updated: None,
        }
    }

    /// Returns a time that is that of the last change up to a millisecond, and another one for each version.
    pub(crate) fn modified(&self) -> Option<SystemTime> {
        const NANOS_OF_MILLI: u64 = 1_000_000;
        let millis = u64::try_from(self.updated?).ok()?;
        let nanos = Duration::from_nanos(self.hash % NANOS_OF_MILLI);
        UNIX_EPOCH.checked_add(Duration::from_millis(millis) + nanos)
    }
}

/// The versions of sessions, by their ids.
pub(crate) type Versions = HashMap<String, Version>;
