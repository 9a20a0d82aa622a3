//! The files that belong to sessions, on the disk.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use transcript_storage::outside_names::{
    PROJECTS, is_session_name, is_temporary, may_hold_credentials,
};
use transcript_storage::{Disk, FileKind, Metadata, ReadDisk, SideFile};

use crate::error::{AtPath, Error};
use crate::layout::Layout;

/// The prefix and the suffix of the name of a file while `prune` removes it.
pub(crate) const ASIDE_PREFIX: &str = ".pruned-";
const ASIDE_SUFFIX: &str = ".aside";

/// A file to capture.
#[derive(Clone, Debug)]
pub(crate) struct LiveFile {
    pub(crate) path: PathBuf,
    /// The path in the archive.
    pub(crate) name: String,
    pub(crate) metadata: Metadata,
}

/// A database to capture: it and what lies beside it are one moment of it together.
#[derive(Clone, Debug)]
pub(crate) struct LiveDatabase {
    pub(crate) path: PathBuf,
    /// The path in the archive.
    pub(crate) name: String,
}

impl LiveDatabase {
    /// Returns its length in bytes, as far as that is known.
    pub(crate) fn len(&self, disk: &dyn ReadDisk) -> u64 {
        disk.metadata(&self.path).map_or(0, |found| found.len)
    }
}

/// The files to capture, and the problems of finding them.
#[derive(Debug, Default)]
pub(crate) struct LiveFiles {
    /// Sorted by name. Databases and what lies beside them are not among them.
    pub(crate) files: Vec<LiveFile>,
    /// Sorted by name.
    pub(crate) databases: Vec<LiveDatabase>,
    /// The errors of files that cannot be captured.
    pub(crate) problems: Vec<Error>,
    /// Files that a killed prune put aside.
    pub(crate) aside: Vec<PathBuf>,
    /// The number of files that are omitted as they may hold credentials.
    pub(crate) denied: usize,
}

/// A name in a folder, with the metadata of its target if the list had them.
type ListedName = (String, Option<Metadata>);

impl LiveFiles {
    /// Finds the files of sessions as [`find`](Self::find) does, after files that a killed prune put aside got their names back.
    pub(crate) fn find_all(disk: &dyn Disk, root: &Path) -> Result<Self, Error> {
        Self::after_aside(disk, &|| Self::find(disk, root))
    }

    /// Gives the files the paths in the archive that those of this machine have.
    pub(crate) fn on_machine(mut self, layout: &Layout) -> Self {
        if !layout.machine.is_empty() {
            let of_files = self.files.iter_mut().map(|file| &mut file.name);
            let of_databases = self.databases.iter_mut().map(|database| &mut database.name);
            for name in of_files.chain(of_databases) {
                name.insert_str(0, &layout.machine);
            }
        }
        self
    }

    /// Finds files with `find`, after files that a killed prune put aside got their names back.
    pub(crate) fn after_aside(
        disk: &dyn Disk,
        find: &dyn Fn() -> Result<Self, Error>,
    ) -> Result<Self, Error> {
        let found = find()?;
        if found.aside.is_empty() {
            return Ok(found);
        }
        let mut problems = Vec::new();
        for path in &found.aside {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Err(error) = disk.rename_new(path, &path.with_file_name(own_name(&name))) {
                problems.push(Error::io(path, error));
            }
        }
        let mut found = find()?;
        found.problems.extend(problems);
        Ok(found)
    }

    /// Finds the files of the sessions of all projects in `root`, and those of the same sessions in the folders next to
    /// it: `tasks`, `file-history` and `todos`.
    pub(crate) fn find(disk: &dyn ReadDisk, root: &Path) -> Result<Self, Error> {
        let mut found = Self::default();
        let mut folders = Vec::new();
        for (name, known) in found.entries(disk, root).at(root)? {
            let path = root.join(&name);
            if found.is_folder(disk, &path, known) {
                folders.push((path, format!("{PROJECTS}/{name}")));
            }
        }
        for (path, name) in folders {
            found.add_project(disk, &path, &name);
        }
        // Below another name the folders next to it may be anything.
        let above = root.parent().filter(|_| root.ends_with(PROJECTS));
        for area in ["tasks", "file-history"] {
            let Some(folder) = above.map(|above| above.join(area)) else {
                break;
            };
            for (name, _) in found.entries_next_to(disk, &folder) {
                if is_session_name(&name) {
                    found.add_below(disk, &folder.join(&name), &format!("{area}/{name}"));
                }
            }
        }
        if let Some(folder) = above.map(|above| above.join("todos")) {
            for (name, known) in found.entries_next_to(disk, &folder) {
                let is_ours = name.get(..36).is_some_and(is_session_name);
                if is_ours && name.ends_with(".json") {
                    found.add(disk, &folder.join(&name), format!("todos/{name}"), known);
                }
            }
        }
        found.files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Returns whether something is a folder. An error is a problem: what is in it would be missing.
    fn is_folder(&mut self, disk: &dyn ReadDisk, path: &Path, known: Option<Metadata>) -> bool {
        match known.map_or_else(|| disk.metadata(path), Ok) {
            Ok(found) => found.is_folder(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => {
                self.problems.push(Error::io(path, error));
                false
            }
        }
    }

    /// Returns the names in a folder that need not exist.
    fn entries_next_to(&mut self, disk: &dyn ReadDisk, folder: &Path) -> Vec<ListedName> {
        match self.entries(disk, folder) {
            Ok(names) => names,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    self.problems.push(Error::io(folder, error));
                }
                Vec::new()
            }
        }
    }

    /// Returns the names in a folder, sorted.
    fn entries(&mut self, disk: &dyn ReadDisk, folder: &Path) -> io::Result<Vec<ListedName>> {
        let mut names = Vec::new();
        for entry in disk.list(folder)? {
            let entry = entry?;
            // The metadata of a link are not those of its target.
            let known = entry.metadata.filter(|_| entry.kind != FileKind::Link);
            match entry.name.into_string() {
                Ok(name) => names.push((name, known)),
                Err(name) => self.problems.push(not_utf8(&folder.join(name))),
            }
        }
        names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(names)
    }

    fn add_project(&mut self, disk: &dyn ReadDisk, folder: &Path, name: &str) {
        let names = match self.entries(disk, folder) {
            Ok(names) => names,
            Err(error) => return self.problems.push(Error::io(folder, error)),
        };
        for (file, known) in names {
            let path = folder.join(&file);
            let below = format!("{name}/{file}");
            if disk.layout().id_of(&file).is_some() || file.starts_with(ASIDE_PREFIX) {
                self.add(disk, &path, below, known);
            } else if is_session_name(&file) && self.is_folder(disk, &path, known) {
                self.add_below(disk, &path, &below);
            }
        }
    }

    /// Adds all files in a folder of a session.
    fn add_below(&mut self, disk: &dyn ReadDisk, folder: &Path, name: &str) {
        let walked: Result<(), Infallible> = disk.layout().walk(disk, (folder, ""), &mut |found| {
            let (path, kind) = match found {
                SideFile::Folder(path) => (path, FileKind::Folder),
                SideFile::File(path, kind) => (path, kind),
                SideFile::Problem(path, error) => {
                    self.problems.push(Error::io(path, error));
                    return Ok(false);
                }
                _ => return Ok(false),
            };
            let Some(below) = names_below(folder, path) else {
                self.problems.push(not_utf8(path));
                return Ok(false);
            };
            // A link may lead anywhere.
            if kind == FileKind::File {
                self.add(disk, path, format!("{name}/{below}"), None);
            }
            Ok(kind == FileKind::Folder)
        });
        let Ok(()) = walked;
    }

    pub(crate) fn add(
        &mut self,
        disk: &dyn ReadDisk,
        path: &Path,
        name: String,
        known: Option<Metadata>,
    ) {
        let file = name.rsplit('/').next().unwrap_or(&name);
        if file.starts_with(ASIDE_PREFIX) {
            return self.aside.push(path.to_owned());
        }
        if may_hold_credentials(file) {
            self.denied += 1;
            return;
        }
        if is_temporary(file) {
            return;
        }
        match known.map_or_else(|| disk.metadata(path), Ok) {
            Ok(metadata) if metadata.is_file() => self.files.push(LiveFile {
                path: path.to_owned(),
                name,
                metadata,
            }),
            Ok(_) => {}
            // It was deleted just now, unless it is a link that leads nowhere.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !disk.has_name(path) => {}
            Err(error) => self.problems.push(Error::io(path, error)),
        }
    }
}

/// Returns the path below a folder with `/` between its names; `None` if one is not UTF-8.
fn names_below(folder: &Path, path: &Path) -> Option<String> {
    let below = path.strip_prefix(folder).ok()?;
    let names: Option<Vec<&str>> = below.iter().map(OsStr::to_str).collect();
    Some(names?.join("/"))
}

pub(crate) fn not_utf8(path: &Path) -> Error {
    let what = "the name is not UTF-8; the file is not captured";
    Error::io(path, io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// Returns the name that a file had before it was put aside.
pub(crate) fn own_name(aside: &str) -> &str {
    let name = aside.strip_prefix(ASIDE_PREFIX).unwrap_or(aside);
    name.strip_suffix(ASIDE_SUFFIX).unwrap_or(name)
}

/// Returns the name of a file while it is removed, which no client takes for a session.
pub(crate) fn aside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{ASIDE_PREFIX}{name}{ASIDE_SUFFIX}"))
}
