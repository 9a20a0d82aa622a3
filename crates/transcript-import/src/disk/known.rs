//! What is known about the file of a session after its conversion was dropped.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use transcript_storage::{FileKind, Identity, Metadata, ReadDisk};

use super::shown::Shown;
use crate::Error;
use crate::entries::Entries;
use crate::state::FileState;
use crate::version::Version;

/// The file of a session, as it was made last.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Known {
    /// The files that it was made from, as they were before.
    sources: Vec<FileState>,
    /// What else decided it.
    version: Option<Version>,
    pub(super) len: u64,
    /// The hash of all its lines.
    hash: u64,
    /// How often it was not its earlier self with lines appended.
    generation: u32,
}

impl Known {
    /// Measures the lines of a file. Returns where each ends as well.
    pub(super) fn of(
        entries: &Entries,
        sources: Vec<FileState>,
        version: Option<Version>,
        before: Option<&Self>,
    ) -> Result<(Self, Vec<u64>), Error> {
        let mut ends = Vec::with_capacity(entries.len());
        let mut hasher = DefaultHasher::new();
        let mut continues = before.is_none_or(|before| before.len == 0);
        let mut end = 0;
        for at in 0..entries.len() {
            end += entries.measure(at, &mut hasher)?;
            ends.push(end);
            continues |=
                before.is_some_and(|before| before.len == end && before.hash == hasher.finish());
        }
        let generation = match before {
            Some(before) => before.generation + u32::from(!continues),
            None => 0,
        };
        let known = Self {
            sources,
            version,
            len: end,
            hash: hasher.finish(),
            generation,
        };
        Ok((known, ends))
    }

    /// Returns whether the file is still what it would be made as now.
    pub(super) fn is_current(&self, disk: &dyn ReadDisk, shown: &Shown) -> bool {
        self.version == shown.version
            && shown.read_files().all(|file| self.has_source(file))
            && self.sources.iter().all(|source| source.is_current(disk))
    }

    fn has_source(&self, file: &Path) -> bool {
        self.sources.iter().any(|source| source.path == file)
    }

    /// Returns whether a change of a file that it was made from would show in another process.
    pub(super) fn is_settled(&self, now: SystemTime) -> bool {
        self.sources.iter().all(|source| source.is_settled(now))
    }

    /// Returns the properties of the file.
    pub(super) fn metadata(&self, shown: &Shown) -> Metadata {
        let of_version = self.version.and_then(|version| version.modified());
        let newest = self.sources.iter().filter_map(FileState::modified).max();
        let first = self.sources.iter().find(|source| {
            let file = shown.files.first();
            file == Some(&source.path)
        });
        Metadata {
            kind: FileKind::File,
            len: self.len,
            modified: of_version.or(newest),
            changed: self.sources.iter().filter_map(FileState::changed).max(),
            mode: None,
            identity: Identity::of_file(
                first.and_then(|first| first.version?.number),
                Some(created(shown, self.generation)),
            ),
        }
    }
}

/// Returns a time that distinguishes the file of a session from its source and from its own earlier self, whose number it has.
fn created(shown: &Shown, generation: u32) -> SystemTime {
    let mut hasher = DefaultHasher::new();
    hasher.write(shown.key.as_bytes());
    // In the first second of 1970, in which no real file was created.
    let nanos = hasher.finish() % 1_000_000;
    UNIX_EPOCH + Duration::from_nanos(nanos * 1000 + u64::from(generation % 1000))
}

/// Returns the files that a session was read from: those that are known before, and `others`, each once.
pub(super) fn all_sources(
    before: Vec<FileState>,
    others: Vec<PathBuf>,
    disk: &dyn ReadDisk,
) -> Vec<FileState> {
    let mut all = before;
    for path in others {
        if all.iter().all(|known| known.path != path) {
            all.push(FileState::of(disk, &path));
        }
    }
    all
}
