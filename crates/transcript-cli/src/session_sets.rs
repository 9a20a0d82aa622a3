//! Finds the sessions of commands that work on many.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use transcript_engine::catalog::Catalog;
use transcript_storage::{ReadDisk, RealDisk};

use crate::ui::Ui;
use crate::{archive, session};

/// Returns the paths of the named files, folders and ids; none if all sessions are meant.
pub(crate) fn paths(
    ui: &Ui,
    places: &[PathBuf],
    project: Option<&Path>,
    all: bool,
) -> Result<Vec<PathBuf>> {
    if places.is_empty() {
        session::roots(ui)?;
        if all && archive::exists(ui) {
            archive::warn_of_problems(ui);
        }
    }
    let find = |place: &PathBuf| {
        if RealDisk.is_folder(place) {
            return Ok(place.clone());
        }
        if place == Path::new("-") {
            bail!("standard input is not a session of a project");
        }
        Ok(session::find_in(ui, place, project)?.path)
    };
    places.iter().map(find).collect()
}

/// Names the files and folders that cannot be read.
pub(crate) fn note_problems(ui: &Ui, catalog: &Catalog) {
    for problem in catalog.problems() {
        ui.report(problem);
    }
}
