//! Sets of sessions: those in a folder, those of a project, and archived ones whose files are gone.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_format::names::{agent_of, is_key_of};
use transcript_reader::{Listing, SessionFile, SessionFiles, session_of_subagent, subagents_on};
use transcript_storage::ReadDisk;

/// How many folders below the one that is named are looked at.
const MAX_DEPTH: usize = 8;

/// Adds archived sessions whose files are gone. Of a session that is there, nothing is read from the archive.
pub fn add_archived(files: &mut SessionFiles, archived: SessionFiles) {
    let name = |file: &SessionFile| (file.project.clone(), file.id.clone());
    let live: HashSet<_> = files.sessions.iter().map(name).collect();
    let is_gone = |file: &SessionFile| !live.contains(&name(file));
    let of = |found: Vec<SessionFile>| found.into_iter().filter(is_gone);
    files.sessions.extend(of(archived.sessions));
    // What is left of a session on the disk is archived, too.
    files.orphans.extend(of(archived.orphans));
    files.leftovers.extend(of(archived.leftovers));
    let known: HashSet<_> = files.agents.iter().map(|path| below_root(path)).collect();
    let agents = archived.agents.into_iter();
    let agents: Vec<_> = agents
        .filter(|path| !known.contains(&below_root(path)))
        .collect();
    files.agents.extend(agents);
    let gone: HashSet<_> = files.sessions.iter().map(name).collect();
    files.orphans.retain(|file| !gone.contains(&name(file)));
    files.leftovers.retain(|file| !gone.contains(&name(file)));
}

/// Returns the names of a file and of its folder.
fn below_root(path: &Path) -> (Option<OsString>, Option<OsString>) {
    let folder = path.parent().and_then(Path::file_name);
    (folder.map(Into::into), path.file_name().map(Into::into))
}

/// Returns whether `file` is the file of a session or of one of its subagents, also by way of links: what is made from them
/// must not be written there.
#[must_use]
pub fn is_file_of_session(disk: &Arc<dyn ReadDisk>, session: &Path, file: &Path) -> bool {
    let Ok(real) = fs::canonicalize(file) else {
        return false;
    };
    let is_real = |own: &Path| fs::canonicalize(own).is_ok_and(|own| own == real);
    is_real(session) || {
        let agents = subagents_on(disk, session).unwrap_or_default();
        agents.iter().any(|agent| is_real(&agent.path))
    }
}

/// Keeps the sessions of the project at a path, which are rows of `listing`.
pub fn keep_project(
    disk: &Arc<dyn ReadDisk>,
    files: &mut SessionFiles,
    listing: &Listing,
    project: &Path,
) {
    let rows = listing.of_project(project, true);
    let paths: HashSet<&Path> = rows.iter().map(|row| &*row.path).collect();
    let ids: HashSet<&str> = rows.iter().map(|row| &*row.session_id).collect();
    let is_of = |file: &SessionFile| paths.contains(&*file.path);
    files.sessions.retain(is_of);
    files.orphans.retain(is_of);
    // Nothing in them names the folder.
    let project = project.to_string_lossy();
    files
        .leftovers
        .retain(|file| is_key_of(&file.project, &project));
    files.agents.retain(|path| {
        let session = session_of_subagent(disk, path);
        session.is_some_and(|session| ids.contains(&*session))
    });
}

/// Adds the sessions in a folder and in those below it, up to 8 levels down, that are not in `seen` yet; the
/// folders of sessions belong to them.
///
/// # Errors
/// When a folder cannot be read.
pub fn add_folder(
    disk: &Arc<dyn ReadDisk>,
    folder: &Path,
    seen: &mut HashSet<PathBuf>,
    files: &mut SessionFiles,
) -> io::Result<()> {
    add_folders(disk, folder, MAX_DEPTH, seen, files)
}

fn add_folders(
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
                add_folders(disk, path, depth - 1, seen, files)?;
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
