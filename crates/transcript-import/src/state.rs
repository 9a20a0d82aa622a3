//! What a file looked like when it was read: so a later look shows whether it has changed since.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use transcript_storage::{Metadata, ReadDisk};

/// The age of the last change from which the properties of a file are sure to show the next one: clocks have a resolution.
const SETTLED_AGE: Duration = Duration::from_secs(2);

/// A file or folder as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileState {
    pub(crate) path: PathBuf,
    /// `None` when nothing was there.
    pub(crate) version: Option<FileVersion>,
}

/// The properties that change with the content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileVersion {
    len: u64,
    /// In nanoseconds since 1970; 0 if unknown.
    modified: u64,
    /// The same of the last change of a property.
    changed: u64,
    /// A hash of the identity.
    identity: u64,
    /// The device, and the number of the file on it.
    pub(crate) number: Option<(u64, u64)>,
}

impl FileState {
    pub(crate) fn of(disk: &dyn ReadDisk, path: &Path) -> Self {
        let found = disk.metadata(path).ok();
        Self {
            path: path.to_owned(),
            version: found.map(|found| FileVersion::of(&found)),
        }
    }

    /// Returns whether the file is as it was.
    pub(crate) fn is_current(&self, disk: &dyn ReadDisk) -> bool {
        Self::of(disk, &self.path) == *self
    }

    /// Returns the time of the last change of the content.
    pub(crate) fn modified(&self) -> Option<SystemTime> {
        time(self.version?.modified)
    }

    /// Returns the time of the last change of the content or of a property.
    pub(crate) fn changed(&self) -> Option<SystemTime> {
        time(self.version?.changed)
    }

    /// Returns whether a change after this state would show.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        let modified = self.modified();
        modified.is_none_or(|time| now.duration_since(time).is_ok_and(|age| age >= SETTLED_AGE))
    }
}

impl FileVersion {
    fn of(found: &Metadata) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(&found.identity.to_bytes());
        Self {
            len: found.len,
            modified: found.modified.map_or(0, nanos),
            changed: found.changed.map_or(0, nanos),
            identity: hasher.finish(),
            number: found.identity.number(),
        }
    }
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or_default()
}

fn time(nanos: u64) -> Option<SystemTime> {
    (nanos > 0).then(|| UNIX_EPOCH + Duration::from_nanos(nanos))
}

/// Returns the states of files and folders.
pub(crate) fn states<'p>(
    disk: &dyn ReadDisk,
    paths: impl IntoIterator<Item = &'p Path>,
) -> Vec<FileState> {
    let paths = paths.into_iter();
    paths.map(|path| FileState::of(disk, path)).collect()
}
