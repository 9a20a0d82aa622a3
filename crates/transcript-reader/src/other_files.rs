//! Searches other files for entries that one file references but does not contain.
//!
//! A fork copies entries with their uuids, and a subagent's file repeats some entries of its
//! parent. An entry that is missing here may therefore exist there, with a link to its parent.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use transcript_storage::{FileKind, ReadDisk};

use crate::index::{Id, Index};
use crate::source::Source;

/// The maximum number of bytes of other files that are read.
const MAX_BYTES: u64 = 512 << 20;
/// The maximum depth of files below the folder of a session.
const MAX_DEPTH: usize = 4;

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
    let is_subagents = |folder: &&Path| folder.file_name().is_some_and(|name| name == "subagents");
    if let Some(session) = path.ancestors().find(is_subagents).and_then(Path::parent) {
        files.push(session.with_extension("jsonl"));
        collect(disk, session, MAX_DEPTH, &mut files);
    } else {
        collect(disk, &path.with_extension(""), MAX_DEPTH, &mut files);
        let age = |path: &Path| disk.metadata(path).ok()?.modified;
        let own = age(&path);
        let distance = |path: &PathBuf| {
            let (own, other) = (own?, age(path)?);
            own.duration_since(other)
                .or_else(|_| other.duration_since(own))
                .ok()
        };
        let mut siblings = Vec::new();
        collect(disk, folder, 0, &mut siblings);
        siblings.sort_by_cached_key(|path| (distance(path).is_none(), distance(path)));
        files.extend(siblings);
    }
    files.retain(|other| *other != path);
    files
}

/// Adds the transcripts in `folder` and up to `depth` folders below it, sorted by name.
fn collect(disk: &dyn ReadDisk, folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = disk.list(folder) else {
        return;
    };
    let mut paths: Vec<_> = entries
        .flatten()
        .map(|entry| (folder.join(entry.name), entry.kind))
        .collect();
    paths.sort_by(|a, b| a.0.cmp(&b.0));
    for (path, kind) in paths {
        let is_folder = kind == FileKind::Folder;
        if is_folder && depth > 0 {
            collect(disk, &path, depth - 1, files);
        } else if !is_folder
            && path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
        {
            files.push(path);
        }
    }
}
