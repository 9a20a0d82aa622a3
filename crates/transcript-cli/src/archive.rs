//! Finds the archives of the roots.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result};
use transcript_engine::RootArchive;
use transcript_engine::archive::Archive;
use transcript_ops::Failure;
use transcript_ops::roots::RootPlace;
use transcript_render::count;

use crate::roots;
use crate::ui::Ui;

/// The maximum number of problems of an archive that are named.
const MAX_NAMED_PROBLEMS: usize = 3;

/// Returns whether one of the roots has an archive.
pub(crate) fn exists(ui: &Ui) -> bool {
    roots::context(ui).archives().next().is_some()
}

/// Fails if no root has an archive.
pub(crate) fn check(ui: &Ui) -> Result<()> {
    if !exists(ui) {
        // The error says what to do, and its kind is that of every other command.
        let folder = folder(&roots::roots(ui)?.places[0])?;
        Archive::open_with(folder, &ui.archive_options()?)?;
    }
    Ok(())
}

/// Returns the folder of the archive of a root.
pub(crate) fn folder(place: &RootPlace) -> Result<&Path> {
    let folder = place.archive.as_deref();
    folder.context("cannot find the data folder; name the archive with --archive DIR")
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

/// Names the parts of the archives that cannot be read. Returns whether there is any.
pub(crate) fn warn_of_problems(ui: &Ui) -> bool {
    let context = roots::context(ui);
    let mut seen = HashSet::new();
    let mut has_problems = false;
    for archive in context.archives().map(RootArchive::disk) {
        if let Ok(opened) = archive.archive()
            && seen.insert(archive.folder())
        {
            has_problems |= warn(ui, opened);
        }
    }
    has_problems
}

/// Says how many archived sessions are of other roots.
pub(crate) fn note_others(ui: &Ui) -> Result<()> {
    let others = roots::context(ui).archived_of_others();
    let others = others.map_err(Failure::from)?;
    if others > 0 {
        let others = count(others, "archived session");
        ui.note(&format!(
            "{others} of other roots omitted; --root names a root"
        ));
    }
    Ok(())
}
