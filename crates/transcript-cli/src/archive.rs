//! Finds the archive, and the sessions in it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use transcript_engine::MIN_PREFIX;
use transcript_engine::archive::Archive;
use transcript_engine::session_sets::archived_sessions;
use transcript_format::names::is_id;
use transcript_ops::Failure;
use transcript_reader::SessionFiles;
use transcript_storage::{ReadDisk, RealDisk};

use crate::ui::Ui;

/// The maximum number of problems of an archive that are named.
const MAX_NAMED_PROBLEMS: usize = 3;

/// Returns whether there is an archive.
pub(crate) fn exists(ui: &Ui) -> bool {
    ui.archive_folder()
        .is_ok_and(|folder| RealDisk.exists(&folder.join("archive.json")))
}

/// Returns the archive.
pub(crate) fn opened(ui: &Ui) -> Result<&Archive> {
    if !exists(ui) {
        // The error says what to do, and its kind is that of every other command.
        Archive::open_with(&ui.archive_folder()?, &ui.archive_options()?)?;
    }
    Ok(ui.archive_disk().archive()?)
}

/// Names the parts of an archive that cannot be read: their sessions are missing in every result. Returns whether there is
/// any.
pub(crate) fn warn(ui: &Ui, archive: &Archive) -> bool {
    let problems = archive.problems();
    for problem in problems.iter().take(MAX_NAMED_PROBLEMS) {
        ui.report(problem);
    }
    if problems.len() > MAX_NAMED_PROBLEMS {
        let more = problems.len() - MAX_NAMED_PROBLEMS;
        ui.warn(&format!(
            "… and {more} more; `transcript verify --archive` lists all"
        ));
    }
    !problems.is_empty()
}

/// Names the parts of the archive that cannot be read, if there is an archive.
pub(crate) fn warn_of_problems(ui: &Ui) {
    if let Ok(archive) = ui.archive_disk().archive() {
        warn(ui, archive);
    }
}

/// Returns the archived sessions.
fn sessions(ui: &Ui) -> Result<SessionFiles> {
    let disk = ui.archive_disk();
    warn(ui, disk.archive()?);
    Ok(archived_sessions(disk)?)
}

/// Finds an archived session by its id or the start of one. `None` if there is none, or no archive.
pub(crate) fn find(ui: &Ui, id: &str) -> Result<Option<PathBuf>> {
    if !is_id(id) || id.len() < MIN_PREFIX || !exists(ui) {
        return Ok(None);
    }
    let sessions = sessions(ui)?;
    let found = sessions.matching(id);
    let paths: Vec<&Path> = found.iter().map(|file| file.path.as_path()).collect();
    match &paths[..] {
        [] => Ok(None),
        [one] => Ok(Some((*one).to_owned())),
        _ => {
            let list: String = paths
                .iter()
                .map(|path| format!("\n  {}", path.display()))
                .collect();
            let count = paths.len();
            let text = format!("{id} is ambiguous: {count} archived sessions match:{list}");
            Err(Failure::new("ambiguous", text)
                .with_next("give more characters of the id")
                .into())
        }
    }
}

/// Returns the folder of the projects, and the path in it, of a session in the archive.
pub(crate) fn path_below_projects(ui: &Ui, path: &Path) -> Option<PathBuf> {
    let projects = ui.archive_disk().projects();
    path.strip_prefix(projects).ok().map(Path::to_owned)
}
