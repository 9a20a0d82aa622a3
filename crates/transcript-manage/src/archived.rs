//! Lists archived sessions by the summaries that were stored when they were captured.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use transcript_archive::ArchiveDisk;
use transcript_format::context_refs;
use transcript_reader::{Listing, SessionFile, SessionFiles, SessionRow};
use transcript_session::Error;
use transcript_storage::{ReadDisk, RealDisk};

use crate::copying::same_start;

/// Describes a session for [`CaptureOptions::summarize`](transcript_archive::CaptureOptions::summarize), so that
/// [`list_archived`] need not read it.
#[must_use]
pub fn summarize(path: &Path) -> Vec<u8> {
    let disk: Arc<dyn ReadDisk> = Arc::new(RealDisk);
    let row = SessionRow::of_file(&disk, &SessionFile::at(&*disk, path));
    // Without a summary the session is read.
    serde_json::to_vec(&row).unwrap_or_default()
}

/// Lists the archived sessions, newest conversation first. Only those are read that were captured without a summary.
///
/// # Errors
/// When the archive cannot be read.
pub fn list_archived(disk: &Arc<ArchiveDisk>) -> Result<Listing, Error> {
    let shared: Arc<dyn ReadDisk> = Arc::clone(disk) as _;
    let projects = disk.projects();
    if shared.metadata(&projects).is_err() {
        return Ok(Listing::of(SessionFiles::on(shared)));
    }
    let mut files = SessionFiles::in_root_on(&shared, &projects)?;
    let mut rows = Vec::new();
    files.sessions.retain(|file| {
        let row = known_row(disk, file);
        rows.extend(row);
        rows.last()
            .is_none_or(|row: &SessionRow| row.path != file.path)
    });
    let mut listing = Listing::of(files);
    listing.add(rows, Vec::new());
    Ok(listing)
}

/// Adds archived sessions whose files are gone to a list of those that are there.
///
/// # Errors
/// When the archive cannot be read.
pub fn add_archived(listing: &mut Listing, disk: &Arc<ArchiveDisk>) -> Result<(), Error> {
    let mut archived = list_archived(disk)?;
    // A session is listed once: its file says more than the archive.
    let name = |row: &SessionRow| (row.project.clone(), row.session_id.clone());
    let live: HashSet<_> = listing.rows.iter().map(name).collect();
    archived.rows.retain(|row| !live.contains(&name(row)));
    // A session that was moved since it was captured is there under its id.
    let mut ids = HashMap::<&str, Vec<&Path>>::new();
    for row in listing.rows.iter().filter(|row| row.has_file) {
        ids.entry(&row.session_id).or_default().push(&row.path);
    }
    let shared: Arc<dyn ReadDisk> = Arc::clone(disk) as _;
    archived.rows.retain(|row| {
        let files = ids.get(&*row.session_id).into_iter().flatten();
        !files
            .into_iter()
            .any(|live| starts_like(&*shared, live, &row.path).unwrap_or(false))
    });
    listing.add(archived.rows, archived.problems);
    Ok(())
}

/// Returns whether a file starts with all bytes of another one.
fn starts_like(disk: &dyn ReadDisk, file: &Path, other: &Path) -> io::Result<bool> {
    let (file, other) = (disk.open_to_read(file)?, disk.open_to_read(other)?);
    same_start(&*file, &*other, other.metadata()?.len)
}

/// Returns the row of a session by its summary, if that is about the bytes that are archived.
fn known_row(disk: &ArchiveDisk, file: &SessionFile) -> Option<SessionRow> {
    let row: SessionRow = serde_json::from_slice(&disk.summary(&file.path)?).ok()?;
    if row.bytes != disk.metadata(&file.path).ok()?.len {
        return None;
    }
    // Earlier versions kept the references before a prompt in place of the question.
    let is_flattened = |prompt: &String| context_refs::is_flattened(prompt);
    if row.first_prompt.as_ref().is_some_and(is_flattened)
        || row.last_prompt.as_ref().is_some_and(is_flattened)
    {
        return None;
    }
    Some(SessionRow::of_stored(disk, file, row))
}
