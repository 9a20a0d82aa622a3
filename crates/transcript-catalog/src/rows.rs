//! The rows of a list, kept in the cache folder: for sessions whose files are made when they are read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use transcript_reader::{Listing, SessionFiles, SessionRow};
use transcript_storage::ReadDisk;

use crate::cache::{SETTLED_AGE, is_older};
use crate::sidecar::{FileVersion, Piece, Record, Records, Sidecar, SidecarKind, StoredPiece};

/// The values of rows as JSON. The magic changes with their meaning.
const SIDECAR_KIND: SidecarKind = SidecarKind {
    magic: "transcript rows 2",
    extension: "rows",
    older: &[],
};

/// A session that was looked up.
struct LookedUp {
    state: FileVersion,
    /// Whether a later change of its file would show.
    is_settled: bool,
    /// The bytes that its record takes; 0 if its row has to be read.
    kept: u64,
}

/// Lists these sessions, which are below `root`. Rows of files that have not changed are taken from `cache`, and new ones are kept
/// there. A cache that cannot be read or written is as if there were none.
#[must_use]
pub fn list(files: SessionFiles, disk: &Arc<dyn ReadDisk>, root: &Path, cache: &Path) -> Listing {
    let real = disk.real_path(root);
    let sidecar = Sidecar::of(SIDECAR_KIND, cache, real.as_deref().unwrap_or(root));
    let records = sidecar.read(|row| serde_json::from_slice::<SessionRow>(row).ok());
    let now = SystemTime::now();
    let looked_up: Mutex<HashMap<PathBuf, LookedUp>> = Mutex::default();
    let listing = Listing::of_known(files, &|file| {
        let found = disk.metadata(&file.path).ok()?;
        let state = FileVersion::of(&found);
        let known = name_in(root, &file.path).and_then(|name| row_of(&records, name, state));
        let looked = LookedUp {
            state,
            is_settled: is_older(found.modified, now, SETTLED_AGE),
            kept: known.map_or(0, |(_, len)| len),
        };
        let mut looked_up = looked_up.lock().unwrap_or_else(PoisonError::into_inner);
        looked_up.insert(file.path.clone(), looked);
        known.map(|(row, _)| SessionRow::of_stored(&**disk, file, row.clone()))
    });
    let looked_up = looked_up
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    keep(&sidecar, &records, &listing, &looked_up, disk, root);
    listing
}

/// Returns the kept row of a file in this state, and the bytes that its record takes.
fn row_of<'r>(
    records: &'r Records<StoredPiece<Option<SessionRow>>>,
    name: &str,
    state: FileVersion,
) -> Option<(&'r SessionRow, u64)> {
    let chain = records.chain(name.as_bytes());
    let newest = chain.first()?;
    let is_valid = newest.record.is_settled && newest.record.state == state;
    let row = newest.record.pieces.first()?.kept.as_ref();
    Some((row.filter(|_| is_valid)?, newest.len))
}

/// Keeps the rows that were read. Those that could not be read are read again the next time.
fn keep(
    sidecar: &Sidecar,
    records: &Records<StoredPiece<Option<SessionRow>>>,
    listing: &Listing,
    looked_up: &HashMap<PathBuf, LookedUp>,
    disk: &Arc<dyn ReadDisk>,
    root: &Path,
) {
    let problems: Vec<&Path> = listing
        .problems
        .iter()
        .map(|problem| problem.path())
        .collect();
    let mut bytes = Vec::new();
    let mut valid: u64 = looked_up.values().map(|looked| looked.kept).sum();
    for row in &listing.rows {
        let looked = looked_up.get(&row.path);
        let new =
            looked.filter(|looked| looked.kept == 0 && looked.is_settled && looked.state.len > 0);
        let (Some(looked), Some(name)) = (new, name_in(root, &row.path)) else {
            continue;
        };
        let Ok(payload) = serde_json::to_vec(row) else {
            continue;
        };
        if problems.contains(&&*row.path) {
            continue;
        }
        let record = Record {
            path: name.as_bytes().to_vec(),
            state: looked.state,
            is_settled: true,
            is_damaged: false,
            base: 0,
            keep: 0,
            pieces: vec![Piece {
                start: 0,
                end: looked.state.len,
                content: 0,
                payload,
            }],
        };
        record.write(&mut bytes);
    }
    if bytes.is_empty() || sidecar.check_writable().is_err() {
        return;
    }
    let mut end = records.end;
    valid += bytes.len() as u64;
    let written = sidecar.append(&mut end, &bytes);
    if written.is_ok() && valid <= end / 2 {
        let is_known = |name: &[u8]| {
            let name = std::str::from_utf8(name).map(|name| root.join(name));
            name.is_ok_and(|path| looked_up.contains_key(&path))
        };
        // Without it the file has more than it needs.
        let _ = sidecar.shrink(&**disk, is_known);
    }
}

/// Returns the path of a file below the root; `None` for paths that are not kept.
fn name_in<'p>(root: &Path, path: &'p Path) -> Option<&'p str> {
    path.strip_prefix(root).ok()?.to_str()
}
