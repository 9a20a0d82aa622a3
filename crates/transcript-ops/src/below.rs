//! Sessions that are in some folders, wherever links lead.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use transcript_reader::{SessionFile, SessionFiles};
use transcript_storage::{ReadDisk, folder_of};

/// A test whether paths are in one of some folders, which follows symbolic links.
pub(crate) struct FolderScope<'d> {
    disk: &'d dyn ReadDisk,
    folders: Vec<PathBuf>,
}

impl<'d> FolderScope<'d> {
    pub(crate) fn new<'p>(disk: &'d dyn ReadDisk, folders: impl Iterator<Item = &'p Path>) -> Self {
        let folders = folders.filter_map(|folder| disk.real_path(folder).ok());
        Self {
            disk,
            folders: folders.collect(),
        }
    }

    pub(crate) fn contains(&self, path: &Path) -> bool {
        let real = self.disk.real_path(path);
        let is_below = |real: PathBuf| self.folders.iter().any(|folder| real.starts_with(folder));
        real.is_ok_and(is_below)
    }

    /// Removes sessions whose file, project or folder is a link that leads out of the folders.
    pub(crate) fn keep(&self, files: &mut SessionFiles) {
        let mut known = HashMap::<PathBuf, bool>::new();
        let mut is_below = |file: &SessionFile| {
            let project = folder_of(&file.path);
            *known
                .entry(project.to_owned())
                .or_insert_with(|| self.contains(project))
                && (!file.is_link || self.contains(&file.path))
        };
        files.sessions.retain(&mut is_below);
        files.orphans.retain(&mut is_below);
        files.leftovers.retain(&mut is_below);
        files.agents.retain(|agent| self.contains(agent));
        let has_folder = |file: &SessionFile| self.contains(&file.path.with_extension(""));
        for session in &mut files.sessions {
            session.has_folder = session.has_folder && has_folder(session);
        }
        files.orphans.retain(has_folder);
        files.leftovers.retain(has_folder);
    }
}
