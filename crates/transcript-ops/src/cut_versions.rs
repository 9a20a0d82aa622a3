//! Earlier versions of archived files of other agents that have something which a later one lacks.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use transcript_archive::ArchiveDisk;
use transcript_import::{EarlierHome, EarlierHomes};

/// The maximum number of earlier versions of a session that are read. Some agents write a whole file again at each turn.
const MAX_VERSIONS: usize = 64;
/// The ending of databases. Each version of one is another one, with all sessions of the home folder: these have no cuts.
const DATABASE_ENDING: &str = "db";

/// The versions of the files of an archive after which a file was cut or written over.
#[derive(Debug)]
pub(crate) struct CutVersions(Arc<ArchiveDisk>);

impl CutVersions {
    pub(crate) fn of(archive: &Arc<ArchiveDisk>) -> Self {
        Self(Arc::clone(archive))
    }

    /// Returns when the last version of a file before each cut was captured.
    fn times(&self, file: &Path) -> Vec<SystemTime> {
        let versions = self.0.versions(file).unwrap_or_default();
        let pairs = versions.windows(2).filter_map(|pair| match pair {
            [before, after] if after.kept < before.whole => Some(before.captured),
            _ => None,
        });
        pairs.collect()
    }
}

impl EarlierHomes for CutVersions {
    fn of_files(&self, home: &Path, files: &[PathBuf]) -> Vec<EarlierHome> {
        let is_database =
            |file: &&PathBuf| file.extension().is_some_and(|end| end == DATABASE_ENDING);
        let files = files.iter().filter(|file| !is_database(file));
        let mut times: Vec<SystemTime> = files.flat_map(|file| self.times(file)).collect();
        times.sort_unstable();
        times.dedup();
        let latest = times.into_iter().rev().take(MAX_VERSIONS);
        let earlier = latest.filter_map(|time| {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            Some(EarlierHome {
                path: self.0.as_of(home, time)?,
                version: since.as_millis().to_string(),
            })
        });
        earlier.collect()
    }
}
