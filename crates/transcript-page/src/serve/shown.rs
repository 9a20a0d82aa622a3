//! The sessions that the server may show.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use transcript_reader::{SessionFile, SessionFiles, Subagent, subagents_on};
use transcript_storage::{ReadDisk, folder_of};

use super::options::ServeOptions;

/// The names in the address of a session.
#[derive(Debug, Deserialize)]
pub(super) struct Named {
    pub(super) project: String,
    pub(super) id: String,
    pub(super) agent: Option<String>,
}

/// Finds the file that an address names, among those that are listed: no path is made of what was asked for.
pub(super) fn find(options: &ServeOptions, named: &Named) -> Option<(SessionFile, PathBuf)> {
    let mut files = sessions_below(options).ok()?;
    let is_asked = |file: &SessionFile| file.project == named.project && file.id == named.id;
    let at = files.sessions.iter().position(is_asked)?;
    let file = files.sessions.swap_remove(at);
    let path = match &named.agent {
        None => file.path.clone(),
        Some(agent) => {
            let agents = agents_below(options, &file);
            let found = agents.into_iter().find(|found| found.id == *agent);
            found?.path
        }
    };
    Some((file, path))
}

/// Finds the sessions that the server may show: those in the folder of projects. A link to a project, of a session, or to the
/// folder of a session, that leads out of it is not followed, whatever asks: a list, a search, usage or an address.
pub(super) fn sessions_below(
    options: &ServeOptions,
) -> Result<SessionFiles, transcript_reader::Error> {
    let mut files = SessionFiles::in_root_on(&options.disk, &options.root)?;
    let below = Below::of(options);
    let mut known = HashMap::<PathBuf, bool>::new();
    let mut is_shown = |file: &SessionFile| {
        let folder = folder_of(&file.path);
        *known
            .entry(folder.to_owned())
            .or_insert_with(|| below.has(folder))
            && (!file.is_link || below.has(&file.path))
    };
    files.sessions.retain(&mut is_shown);
    files.orphans.retain(&mut is_shown);
    files.leftovers.retain(&mut is_shown);
    files.agents.retain(|agent| below.has(agent));
    let has_folder = |file: &SessionFile| below.has(&file.path.with_extension(""));
    for session in &mut files.sessions {
        session.has_folder = session.has_folder && has_folder(session);
    }
    files.orphans.retain(has_folder);
    files.leftovers.retain(has_folder);
    Ok(files)
}

/// Finds the subagents of a session that the server may show.
pub(super) fn agents_below(options: &ServeOptions, session: &SessionFile) -> Vec<Subagent> {
    let below = Below::of(options);
    let agents = subagents_on(&options.disk, &session.path);
    let mut agents = agents.unwrap_or_default();
    agents.retain(|agent| below.has(&agent.path));
    agents
}

/// What is in the folder of projects, wherever links lead.
struct Below<'o> {
    disk: &'o dyn ReadDisk,
    root: Option<PathBuf>,
}

impl<'o> Below<'o> {
    fn of(options: &'o ServeOptions) -> Self {
        let disk = &*options.disk;
        let root = disk.real_path(&options.root).ok();
        Self { disk, root }
    }

    fn has(&self, path: &Path) -> bool {
        let real = self.disk.real_path(path).ok();
        real.zip(self.root.as_ref())
            .is_some_and(|(path, root)| path.starts_with(root))
    }
}
