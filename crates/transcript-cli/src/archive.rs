//! Finds the archive, and the sessions in it.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use transcript::archive::{Archive, ArchiveOptions, Identities};
use transcript::places::archived_sessions;
use transcript::{Listing, MIN_PREFIX, data_folder, list_archived};
use transcript_format::names::is_id;
use transcript_reader::SessionFiles;

use crate::ui::Ui;

/// The maximum number of problems of an archive that are named.
const NAMED: usize = 3;

/// Returns the folder of the archive: `--archive`, else `$TRANSCRIPT_ARCHIVE`, else in the data folder of the user.
pub(crate) fn folder(ui: &Ui) -> Result<PathBuf> {
    if let Some(Some(folder)) = &ui.archive {
        return std::path::absolute(folder).with_context(|| folder.display().to_string());
    }
    let set = env::var_os("TRANSCRIPT_ARCHIVE").filter(|folder| !folder.is_empty());
    if let Some(folder) = set {
        return std::path::absolute(&folder).context("$TRANSCRIPT_ARCHIVE");
    }
    let folder = data_folder().map(|folder| folder.join("archive"));
    folder.context("cannot find the data folder; name the archive with --archive DIR")
}

/// Returns how the archive is opened: with the keys of `--identity` or `$TRANSCRIPT_IDENTITY`.
pub(crate) fn options(ui: &Ui) -> Result<ArchiveOptions> {
    let mut options = ArchiveOptions::new();
    if let Some(folder) = data_folder() {
        options = options.local_folder(&folder.join("archives"));
    }
    let set = env::var_os("TRANSCRIPT_IDENTITY").filter(|file| !file.is_empty());
    if let Some(file) = ui.identity.clone().or(set.map(PathBuf::from)) {
        options = options.identities(Identities::read(&file)?);
    }
    Ok(options)
}

/// Returns whether there is an archive.
pub(crate) fn exists(ui: &Ui) -> bool {
    folder(ui).is_ok_and(|folder| folder.join("archive.json").exists())
}

/// Names what of an archive cannot be read: the sessions in it are as if they were not there. Returns whether there is
/// something.
pub(crate) fn warn(ui: &Ui, archive: &Archive) -> bool {
    let problems = archive.problems();
    for problem in problems.iter().take(NAMED) {
        ui.complain(&anyhow!("{problem}"));
    }
    if problems.len() > NAMED {
        let more = problems.len() - NAMED;
        ui.warn(&format!(
            "transcript: … and {more} more; `transcript verify --archive` lists all"
        ));
    }
    !problems.is_empty()
}

/// Returns the archived sessions.
pub(crate) fn sessions(ui: &Ui) -> Result<SessionFiles> {
    let disk = ui.archive_disk();
    warn(ui, disk.archive()?);
    Ok(archived_sessions(disk)?)
}

/// Lists the archived sessions.
pub(crate) fn list(ui: &Ui) -> Result<Listing> {
    let disk = ui.archive_disk();
    warn(ui, disk.archive()?);
    Ok(list_archived(disk)?)
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
            bail!(
                "{id} is ambiguous: {} archived sessions match:{list}",
                paths.len()
            )
        }
    }
}

/// Returns the folder of the projects, and the path in it, of a session in the archive.
pub(crate) fn path_below_projects(ui: &Ui, path: &Path) -> Option<PathBuf> {
    let projects = ui.archive_disk().projects();
    path.strip_prefix(projects).ok().map(Path::to_owned)
}
