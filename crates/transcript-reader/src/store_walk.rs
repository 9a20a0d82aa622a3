//! Walks over folders of sessions, with the one rule for links.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};

use transcript_format::ids::Uuid;
use transcript_storage::{FileKind, Metadata, ReadDisk, SessionLayout};

use crate::error::{Error, ErrorKind};

/// The depth that is left at the folder of a session: the limit counts from there again.
const MAX_SESSION_DEPTH: usize = SessionLayout::MAX_DEPTH + 1;

/// A file or folder that a walk meets.
#[derive(Debug)]
#[non_exhaustive]
pub enum WalkedFile<'w> {
    /// A regular file, or a link to one.
    File {
        /// The file.
        path: &'w Path,
        /// Its properties, if the list of its folder had them.
        metadata: Option<Metadata>,
    },
    /// A folder, or a link to one. It is entered if the caller says so.
    Folder {
        /// The folder.
        path: &'w Path,
        /// Whether a file next to it is named like the session of which this would be the folder.
        has_session: bool,
    },
    /// A folder that cannot be read, a link that leads nowhere, or something else that is named like a session.
    Problem(Error),
}

/// The rule for links: those in a folder of projects and in a project are followed, and whatever they lead to counts
/// once, under its own name if it is found by that as well. Those in the folder of a session are not followed.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// The real paths of folders that were entered.
    folders: HashSet<PathBuf>,
    /// The real paths of files that a link leads to.
    files: HashSet<PathBuf>,
}

impl Links {
    /// Returns whether a folder with this real path counts, which it does once.
    pub(crate) fn enter(&mut self, real: PathBuf) -> bool {
        self.folders.insert(real)
    }

    /// Returns whether a file that a link leads to counts. Asked when all folders are entered that are not links.
    pub(crate) fn add_linked_file(&mut self, layout: SessionLayout, real: PathBuf) -> bool {
        let is_found = layout.has_ending(&real)
            && real
                .parent()
                .is_some_and(|folder| self.folders.contains(folder));
        !is_found && self.files.insert(real)
    }
}

/// Walks over the files in `top` and up to [`SessionLayout::MAX_DEPTH`] folders below it, and as many below the folder of a
/// session. Links in a folder of projects and in a project are followed, those in the folder of a session are not, and
/// everything counts once. `visit` says whether a folder is
/// entered. What is in one folder is sorted by name; links come last.
///
/// # Errors
/// When `top` cannot be read; later ones are [problems](WalkedFile::Problem).
pub fn walk_store(
    disk: &dyn ReadDisk,
    top: &Path,
    visit: &mut dyn FnMut(WalkedFile<'_>) -> bool,
) -> Result<(), Error> {
    let mut walk = Walk {
        disk,
        links: Links::default(),
        waiting: VecDeque::new(),
        visit,
    };
    let real = disk.real_path(top).unwrap_or_else(|_| top.to_owned());
    walk.links.enter(real.clone());
    walk.folder(top, &real, SessionLayout::MAX_DEPTH, false)?;
    while let Some((link, depth)) = walk.waiting.pop_front() {
        walk.link(&link, depth);
    }
    Ok(())
}

struct Walk<'w> {
    disk: &'w dyn ReadDisk,
    links: Links,
    /// Links, each with the depth that is left below it.
    waiting: VecDeque<(PathBuf, usize)>,
    visit: &'w mut dyn FnMut(WalkedFile<'_>) -> bool,
}

impl Walk<'_> {
    fn folder(
        &mut self,
        folder: &Path,
        real: &Path,
        depth: usize,
        is_of_session: bool,
    ) -> Result<(), Error> {
        let failed = |error| Error::io(folder, None, error);
        let mut entries = Vec::new();
        for entry in self.disk.list(folder).map_err(failed)? {
            entries.push(entry.map_err(failed)?);
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let names: HashSet<_> = entries.iter().map(|entry| entry.name.clone()).collect();
        for entry in entries {
            let path = folder.join(&entry.name);
            match entry.kind {
                FileKind::File => {
                    let (path, metadata) = (&*path, entry.metadata);
                    _ = (self.visit)(WalkedFile::File { path, metadata });
                }
                FileKind::Folder => {
                    let session = self.disk.layout().session_of(Path::new(&entry.name));
                    let real = real.join(&entry.name);
                    let has_session = names.contains(session.as_os_str());
                    let starts_session = has_session || is_named_by_id(&path);
                    let depth = if starts_session && !is_of_session {
                        MAX_SESSION_DEPTH
                    } else {
                        depth
                    };
                    let is_of_session = is_of_session || starts_session;
                    self.enter(&path, &real, depth, has_session, is_of_session);
                }
                FileKind::Link if !is_of_session => self.waiting.push_back((path, depth)),
                FileKind::Other if self.disk.layout().has_ending(&path) => {
                    self.problem(Error::new(ErrorKind::NotAFile, &path));
                }
                FileKind::Link | FileKind::Other => {}
            }
        }
        Ok(())
    }

    fn enter(
        &mut self,
        path: &Path,
        real: &Path,
        depth: usize,
        has_session: bool,
        is_of_session: bool,
    ) {
        let is_wanted = (self.visit)(WalkedFile::Folder { path, has_session });
        if is_wanted
            && depth > 0
            && self.links.enter(real.to_owned())
            && let Err(error) = self.folder(path, real, depth - 1, is_of_session)
        {
            self.problem(error);
        }
    }

    fn link(&mut self, path: &Path, depth: usize) {
        let found = self.disk.real_path(path);
        let found = found.and_then(|real| Ok((self.disk.metadata(&real)?.kind, real)));
        match found {
            Ok((FileKind::Folder, real)) if !self.links.folders.contains(&real) => {
                let has_session = self.disk.exists(&self.disk.layout().session_of(path));
                let is_of_session = has_session || is_named_by_id(path);
                let depth = if is_of_session {
                    MAX_SESSION_DEPTH
                } else {
                    depth
                };
                self.enter(path, &real, depth, has_session, is_of_session);
            }
            Ok((FileKind::File, real)) => {
                if self.links.add_linked_file(self.disk.layout(), real) {
                    let metadata = None;
                    _ = (self.visit)(WalkedFile::File { path, metadata });
                }
            }
            Ok((FileKind::Other, _)) if self.disk.layout().has_ending(path) => {
                self.problem(Error::new(ErrorKind::NotAFile, path));
            }
            Ok(_) => {}
            Err(error) => self.problem(Error::io(path, None, error)),
        }
    }

    fn problem(&mut self, error: Error) {
        _ = (self.visit)(WalkedFile::Problem(error));
    }
}

/// Returns whether a folder has the name of a session.
fn is_named_by_id(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    Uuid::parse(name.as_encoded_bytes()).is_some()
}
