//! Sets of sessions: those in a folder, those of a project, and archived ones whose files are gone.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_format::names::agent_of;
use transcript_reader::{
    Listing, SessionFile, SessionFiles, Source, WalkedFile, session_of_subagent, subagents_on,
    walk_store,
};
use transcript_storage::ReadDisk;

/// Adds the sessions of another root.
pub fn add_files(files: &mut SessionFiles, of_root: SessionFiles) {
    files.sessions.extend(of_root.sessions);
    files.problems.extend(of_root.problems);
    files.orphans.extend(of_root.orphans);
    files.leftovers.extend(of_root.leftovers);
    files.agents.extend(of_root.agents);
}

/// Adds archived sessions whose files are gone. Of a session that is there, nothing is read from the archive.
pub fn add_archived(files: &mut SessionFiles, archived: SessionFiles) {
    let name = |file: &SessionFile| (file.project.clone(), file.id.clone());
    let live: HashSet<_> = files.sessions.iter().map(name).collect();
    let is_gone = |file: &SessionFile| !live.contains(&name(file));
    let of = |found: Vec<SessionFile>| found.into_iter().filter(is_gone);
    files.sessions.extend(of(archived.sessions));
    // The archive, too, may have only side files of a session.
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
    let Ok(real) = disk.real_path(file) else {
        return false;
    };
    let is_real = |own: &Path| disk.real_path(own).is_ok_and(|own| own == real);
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
    let rows = listing.of_project_named(project);
    let paths: HashSet<&Path> = rows.iter().map(|row| &*row.path).collect();
    let ids: HashSet<&str> = rows.iter().map(|row| &*row.session_id).collect();
    let is_of = |file: &SessionFile| paths.contains(&*file.path);
    files.sessions.retain(is_of);
    files.orphans.retain(is_of);
    // Nothing in them names the folder.
    files
        .leftovers
        .retain(|file| listing.is_folder_of_project(&file.project, project));
    files.agents.retain(|path| {
        let session = session_of_subagent(disk, path);
        session.is_some_and(|session| ids.contains(&*session))
    });
}

/// Adds the sessions in a folder and in those below it, as [`walk_store`] finds them, that are not in `seen` yet; the
/// folders of sessions belong to them. What is left of sessions whose own files are gone is added as well.
///
/// # Errors
/// When the folder cannot be read; one below it is one of the problems.
pub fn add_folder(
    disk: &Arc<dyn ReadDisk>,
    folder: &Path,
    seen: &mut HashSet<PathBuf>,
    files: &mut SessionFiles,
) -> Result<(), transcript_reader::Error> {
    walk_store(&**disk, folder, &mut |walked| {
        match walked {
            WalkedFile::File { path, .. } => add_file(&**disk, path, seen, files),
            WalkedFile::Folder {
                has_session: true, ..
            } => {}
            WalkedFile::Folder { path, .. } => {
                let session = disk.layout().session_of(path);
                let is_left = SessionFile::at(&**disk, &session).add_rest(files);
                return !is_left;
            }
            WalkedFile::Problem(error) => files.problems.push(error),
            _ => {}
        }
        false
    })
}

/// Adds the session in a file that somebody named, if it is not in `seen` yet. Unlike one of a folder, it must be a session
/// that can be read.
///
/// # Errors
/// When the file cannot be read or is not a session.
pub fn add_named(
    disk: &Arc<dyn ReadDisk>,
    path: &Path,
    seen: &mut HashSet<PathBuf>,
    files: &mut SessionFiles,
) -> Result<(), transcript_reader::Error> {
    Source::open_on(disk, path)?.check_messages()?;
    if seen.insert(path.to_owned()) {
        files.sessions.push(SessionFile::at(&**disk, path));
    }
    Ok(())
}

fn add_file(
    disk: &dyn ReadDisk,
    path: &Path,
    seen: &mut HashSet<PathBuf>,
    files: &mut SessionFiles,
) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !name.ends_with(".jsonl") || !seen.insert(path.to_owned()) {
        return;
    }
    match agent_of(&name) {
        Some(_) => files.agents.push(path.to_owned()),
        None => files.sessions.push(SessionFile::at(disk, path)),
    }
}
