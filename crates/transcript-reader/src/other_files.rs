//! Searches other files for entries that one file references but does not contain.
//!
//! A fork copies entries with their uuids, and a subagent's file repeats some entries of its
//! parent. An entry that is missing here may therefore exist there, with a link to its parent.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};

use transcript_storage::{FileKind, ReadDisk, SideFile};

use crate::index::{Id, Index};
use crate::source::Source;

/// The maximum number of bytes of other files that are read.
const MAX_BYTES: u64 = 512 << 20;

/// The links that other files have for entries missing from one file.
#[derive(Debug, Default)]
pub struct OtherFiles {
    links: HashMap<Id, Option<Id>>,
}

impl OtherFiles {
    /// Searches for `missing` in related files: first those of its subagents, or of the session
    /// that it is a subagent of; then other sessions of the project, closest in age first. Stops
    /// when all are found or 512 MiB were read. Files that cannot be read are skipped.
    #[must_use]
    pub fn search(source: &Source, index: &Index, missing: &[Id]) -> Self {
        let mut others = Self::default();
        let mut left = MAX_BYTES;
        let disk = source.disk();
        for path in sibling_files(&*disk, source.path()) {
            if others.links.len() == missing.len() {
                break;
            }
            let Ok(other) = Source::open_on(&disk, &path) else {
                continue;
            };
            let Some(rest) = left.checked_sub(other.len()) else {
                continue;
            };
            left = rest;
            if let Ok(other) = Index::load(&other) {
                others.add(index, &other, missing);
            }
        }
        others
    }

    fn add(&mut self, index: &Index, other: &Index, missing: &[Id]) {
        for id in missing {
            if self.links.get(id).is_some_and(Option::is_some) {
                continue;
            }
            let Some(there) = other.id(&index.id_text(*id)) else {
                continue;
            };
            if let Some(link) = link_back(index, other, there) {
                self.links.insert(*id, link);
            }
        }
    }

    /// Returns whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Returns the nearest ancestor of `missing` that the file itself contains. `Some(None)` means
    /// that another file has the entry but no such ancestor, `None` that no other file has it.
    #[must_use]
    pub fn parent_of(&self, missing: Id) -> Option<Option<Id>> {
        self.links.get(&missing).copied()
    }
}

/// Follows parents in `other` to an entry that `index` contains. `None` when `other` does not
/// contain `from`, `Some(None)` when its ancestors are not in `index`.
fn link_back(index: &Index, other: &Index, from: Id) -> Option<Option<Id>> {
    let entry = |id: Id| other.with_uuid(id).next().map(|line| other.entry(line));
    let mut at = entry(from)?;
    for _ in 0..other.len() {
        let Some(parent) = at.parent() else { break };
        let here = index.id(&other.id_text(parent));
        if let Some(here) = here.filter(|id| index.with_uuid(*id).next().is_some()) {
            return Some(Some(here));
        }
        let Some(above) = entry(parent) else { break };
        at = above;
    }
    Some(None)
}

/// Returns the files that may contain entries missing from `path`, the most likely ones first.
fn sibling_files(disk: &dyn ReadDisk, path: &Path) -> Vec<PathBuf> {
    let Ok(path) = std::path::absolute(path) else {
        return Vec::new();
    };
    let Some(folder) = path.parent() else {
        return Vec::new();
    };
    let mut files = Vec::new();
    let layout = disk.layout();
    if let Some(session) = layout.folder_around(&path) {
        files.push(layout.session_of(session));
        add_side_files(disk, session, &mut files);
    } else {
        add_side_files(disk, &layout.folder(&path), &mut files);
        let age = |path: &Path| disk.metadata(path).ok()?.modified;
        let own = age(&path);
        let distance = |path: &PathBuf| {
            let (own, other) = (own?, age(path)?);
            own.duration_since(other)
                .or_else(|_| other.duration_since(own))
                .ok()
        };
        let mut siblings = transcripts_in(disk, folder);
        siblings.sort_by_cached_key(|path| (distance(path).is_none(), distance(path)));
        files.extend(siblings);
    }
    files.retain(|other| *other != path);
    files
}

/// Adds the transcripts in the folder of a session. What cannot be read is omitted.
fn add_side_files(disk: &dyn ReadDisk, folder: &Path, files: &mut Vec<PathBuf>) {
    let layout = disk.layout();
    let walked: Result<(), Infallible> = layout.walk(disk, (folder, ""), &mut |found| {
        match found {
            SideFile::Folder(_) => return Ok(true),
            SideFile::File(path, _) if layout.has_ending(path) => files.push(path.to_owned()),
            _ => {}
        }
        Ok(false)
    });
    let Ok(()) = walked;
}

/// Returns the transcripts in a folder of sessions, sorted by name.
fn transcripts_in(disk: &dyn ReadDisk, folder: &Path) -> Vec<PathBuf> {
    let entries = disk.list(folder).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.kind != FileKind::Folder);
    let paths = files.map(|entry| folder.join(entry.name));
    let mut paths: Vec<_> = paths
        .filter(|path| disk.layout().has_ending(path))
        .collect();
    paths.sort();
    paths
}
