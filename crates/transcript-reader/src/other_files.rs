//! Looks in the other files of a session for entries that one file names and does not hold.
//!
//! A fork copies entries with their uuids, and a subagent's file repeats some of its parent's: an
//! entry that was lost here may stand there, and name its parent (`facts/pains.md` 3 and 20).

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::index::{Id, Index};
use crate::source::Source;

/// How many bytes of other files are looked at.
const MAX_BYTES: u64 = 512 << 20;
/// How far below the folder of a session its files may stand.
const MAX_DEPTH: usize = 4;

/// What other files say about the ids that one file misses.
#[derive(Debug, Default)]
pub struct OtherFiles {
    links: HashMap<Id, Option<Id>>,
}

impl OtherFiles {
    /// Looks for `missing` in the files beside `source`: those of its subagents and of the session
    /// that it is a subagent of, then other sessions of the project, those of about the same age
    /// first, until all are found or 512 MiB were read. Files that cannot be read are passed over.
    #[must_use]
    pub fn search(source: &Source, index: &Index, missing: &[Id]) -> Self {
        let mut others = Self::default();
        let mut left = MAX_BYTES;
        for path in sibling_files(source.path()) {
            if others.links.len() == missing.len() {
                break;
            }
            let Ok(other) = Source::open(&path) else {
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

    /// Returns what is above `missing`: the nearest entry that the file itself holds, or `None`
    /// when the other file leads to no such entry. Nothing when no other file holds it.
    #[must_use]
    pub fn parent_of(&self, missing: Id) -> Option<Option<Id>> {
        self.links.get(&missing).copied()
    }
}

/// Follows parents in `other` until one that `index` holds. `None` when `other` does not hold
/// `from`, `Some(None)` when its parents lead elsewhere.
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

/// The files that may hold what `path` misses, the likeliest first.
fn sibling_files(path: &Path) -> Vec<PathBuf> {
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
        collect(session, MAX_DEPTH, &mut files);
    } else {
        collect(&path.with_extension(""), MAX_DEPTH, &mut files);
        let age = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
        let own = age(&path);
        let distance = |path: &PathBuf| {
            let (own, other) = (own?, age(path)?);
            own.duration_since(other)
                .or_else(|_| other.duration_since(own))
                .ok()
        };
        let mut siblings = Vec::new();
        collect(folder, 0, &mut siblings);
        siblings.sort_by_cached_key(|path| (distance(path).is_none(), distance(path)));
        files.extend(siblings);
    }
    files.retain(|other| *other != path);
    files
}

/// Adds the transcripts in `folder` and down to `depth` folders below it, in the order of their
/// names.
fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let is_folder = fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
        if is_folder && depth > 0 {
            collect(&path, depth - 1, files);
        } else if !is_folder
            && path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
        {
            files.push(path);
        }
    }
}
