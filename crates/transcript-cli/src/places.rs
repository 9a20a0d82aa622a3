//! Finds the sessions of commands that work on many.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use transcript::catalog::Catalog;
use transcript_format::names::{agent_of, project_key};
use transcript_reader::{SessionFile, SessionFiles, session_of_subagent};
use transcript_storage::{ReadDisk, RealDisk};

use crate::session;
use crate::ui::Ui;

/// How many folders below the one that is named are looked at.
const MAX_DEPTH: usize = 8;

/// Finds the sessions at these places: files, folders, and ids; all sessions if there are none. With `project`
/// only those of the project at this path.
pub(crate) fn catalog(ui: &Ui, places: &[PathBuf], project: Option<&Path>) -> Result<Catalog> {
    let disk: Arc<dyn ReadDisk> = Arc::new(RealDisk);
    let mut files = SessionFiles::on(Arc::clone(&disk));
    if places.is_empty() {
        let store = session::store(ui)?;
        // The folder need not exist before the first session.
        if store.root().exists() {
            files = SessionFiles::in_root(store.root())?;
        }
        if let Some(project) = project {
            let listing = store.list()?;
            let rows = listing.of_project(project, true);
            let paths: HashSet<&Path> = rows.iter().map(|row| &*row.path).collect();
            let ids: HashSet<&str> = rows.iter().map(|row| &*row.session_id).collect();
            let is_of = |file: &SessionFile| paths.contains(&*file.path);
            files.sessions.retain(is_of);
            files.orphans.retain(is_of);
            // Nothing in them names the folder.
            let key = project_key(&project.to_string_lossy());
            files.leftovers.retain(|file| file.project == key);
            files.agents.retain(|path| {
                let session = session_of_subagent(&disk, path);
                session.is_some_and(|session| ids.contains(&*session))
            });
        }
    }
    let mut seen = HashSet::new();
    for place in places {
        if place.is_dir() {
            if project.is_some() {
                bail!("--project: {} is a folder", place.display());
            }
            add_folder(&disk, place, MAX_DEPTH, &mut seen, &mut files)
                .with_context(|| place.display().to_string())?;
        } else {
            if place == Path::new("-") {
                bail!("standard input is not a session of a project");
            }
            let path = session::find_in(ui, place, project)?;
            if seen.insert(path.clone()) {
                files.sessions.push(SessionFile::at(&*disk, &path));
            }
        }
    }
    for problem in &files.problems {
        ui.note(&format!("transcript: {problem}"));
    }
    Ok(Catalog::of(&disk, files))
}

/// Adds the sessions in a folder and in those below it; the folders of sessions belong to them.
fn add_folder(
    disk: &Arc<dyn ReadDisk>,
    folder: &Path,
    depth: usize,
    seen: &mut HashSet<PathBuf>,
    files: &mut SessionFiles,
) -> io::Result<()> {
    let mut paths = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<PathBuf>>>()?;
    paths.sort();
    for path in &paths {
        if path.is_dir() {
            let session = PathBuf::from(format!("{}.jsonl", path.display()));
            if depth > 0 && !session.exists() && !path.is_symlink() {
                add_folder(disk, path, depth - 1, seen, files)?;
            }
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.ends_with(".jsonl") || !path.is_file() || !seen.insert(path.clone()) {
            continue;
        }
        match agent_of(&name) {
            Some(_) => files.agents.push(path.clone()),
            None => files.sessions.push(SessionFile::at(&**disk, path)),
        }
    }
    Ok(())
}
