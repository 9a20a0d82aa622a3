//! The files with sessions in the home folder of another agent, on the disk.

use std::path::Path;

use transcript_storage::{Disk, FileKind, ReadDisk};

use crate::agent_files::{AGENTS, FileRole, may_lead, role_of};
use crate::error::{AtPath, Error};
use crate::live_files::{ASIDE_PREFIX, LiveDatabase, LiveFiles, not_utf8, own_name};

/// Finds the files of an agent in its home folder, after files that a killed prune put aside got their names back. No link below
/// the folder is followed: one may lead anywhere, and the agents whose sessions are read here make none.
pub(crate) fn find_home(disk: &dyn Disk, agent: &str, home: &Path) -> Result<LiveFiles, Error> {
    LiveFiles::after_aside(disk, &|| {
        let mut walk = HomeWalk {
            disk,
            agent,
            found: LiveFiles::default(),
        };
        walk.folder(home, "").at(home)?;
        let mut found = walk.found;
        found.files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        found.databases.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    })
}

struct HomeWalk<'w> {
    disk: &'w dyn ReadDisk,
    agent: &'w str,
    found: LiveFiles,
}

impl HomeWalk<'_> {
    /// Adds what is in a folder. `below` is its path below the home folder, with a slash at its end; empty for the home folder.
    fn folder(&mut self, folder: &Path, below: &str) -> std::io::Result<()> {
        for entry in self.disk.list(folder)? {
            let entry = entry?;
            let path = folder.join(&entry.name);
            let Some(name) = entry.name.to_str() else {
                self.found.problems.push(not_utf8(&path));
                continue;
            };
            let is_aside = name.starts_with(ASIDE_PREFIX);
            let below = format!("{below}{}", if is_aside { own_name(name) } else { name });
            match (entry.kind, role_of(self.agent, &below)) {
                (FileKind::Folder, _) if may_lead(self.agent, &below) => {
                    if let Err(error) = self.folder(&path, &format!("{below}/")) {
                        self.found.problems.push(Error::io(&path, error));
                    }
                }
                (FileKind::File, Some(_)) if is_aside => self.found.aside.push(path),
                (FileKind::File, Some(FileRole::Database)) => {
                    let name = self.name(&below);
                    self.found.databases.push(LiveDatabase { path, name });
                }
                (FileKind::File, Some(_)) => {
                    let name = self.name(&below);
                    self.found.add(self.disk, &path, name, entry.metadata);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the path in the archive.
    fn name(&self, below: &str) -> String {
        format!("{AGENTS}/{}/{below}", self.agent)
    }
}
