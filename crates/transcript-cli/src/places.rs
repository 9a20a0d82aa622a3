//! Finds the sessions of commands that work on many.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use transcript_engine::catalog::Catalog;
use transcript_engine::places::{add_archived, add_folder, add_named, keep_project};
use transcript_reader::SessionFiles;

use crate::ui::Ui;
use crate::{archive, session};

/// Finds the sessions at these places: files, folders, and ids; all sessions if there are none. With `project`
/// only those of the project at this path. With `all`, also archived sessions whose files are gone.
pub(crate) fn catalog(
    ui: &Ui,
    places: &[PathBuf],
    project: Option<&Path>,
    all: bool,
) -> Result<Catalog> {
    let disk = ui.disk();
    let mut files = SessionFiles::on(Arc::clone(&disk));
    if places.is_empty() {
        let store = session::store(ui)?;
        // The folder need not exist before the first session.
        if store.root().exists() {
            files = SessionFiles::in_root_on(&disk, store.root())?;
        }
        if all && archive::exists(ui) {
            add_archived(&mut files, archive::sessions(ui)?);
        }
        if let Some(project) = project {
            let mut listing = store.list()?;
            if all && archive::exists(ui) {
                transcript_engine::add_archived(&mut listing, ui.archive_disk())?;
            }
            keep_project(&disk, &mut files, &listing, project);
        }
    }
    let mut seen = HashSet::new();
    for place in places {
        if place.is_dir() {
            if project.is_some() {
                bail!("--project: {} is a folder", place.display());
            }
            add_folder(&disk, place, &mut seen, &mut files)
                .with_context(|| place.display().to_string())?;
        } else {
            if place == Path::new("-") {
                bail!("standard input is not a session of a project");
            }
            let path = session::find_in(ui, place, project)?;
            add_named(&disk, &path, &mut seen, &mut files)?;
        }
    }
    for problem in &files.problems {
        ui.note(&format!("transcript: {problem}"));
    }
    Ok(Catalog::of(&disk, files))
}
