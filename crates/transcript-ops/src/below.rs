//! Sessions that are in one folder, wherever links lead.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use transcript_reader::{SessionFile, SessionFiles};
use transcript_storage::{ReadDisk, folder_of};

/// A test whether paths are in a folder, which follows symbolic links.
pub(crate) struct FolderScope<'d> {
    disk: &'d dyn ReadDisk,
    folder: Option<PathBuf>,
}

impl<'d> FolderScope<'d> {
    pub(crate) fn new(disk: &'d dyn ReadDisk, folder: &Path) -> Self {
        let folder = disk.real_path(folder).ok();
        Self { disk, folder }
    }

    pub(crate) fn contains(&self, path: &Path) -> bool {
        let real = self.disk.real_path(path).ok();
        real.zip(self.folder.as_ref())
            .is_some_and(|(path, folder)| path.starts_with(folder))
    }

    /// Removes sessions whose file, project or folder is a link that leads out of the folder.
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
