//! The files in the folder of a session, as they are on a disk.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::ReadDisk;
use crate::file::FileKind;
use crate::session_layout::SessionLayout;

/// One thing that a walk over the folder of a session finds.
#[derive(Debug)]
#[non_exhaustive]
pub enum SideFile<'w> {
    /// A file, a link, or something else that is not a folder.
    File(&'w Path, FileKind),
    /// A folder. It is entered if the caller says so.
    Folder(&'w Path),
    /// A folder that cannot be read, wholly or in part.
    Problem(&'w Path, io::Error),
}

impl SessionLayout {
    /// Returns the stored results of a session, sorted by name. What is not a regular file is none, links are not followed, and
    /// what cannot be read has none.
    #[must_use]
    pub fn stored_results(&self, disk: &dyn ReadDisk, session: &Path) -> Vec<PathBuf> {
        let folder = self.results(session);
        let found = disk.link_metadata(&folder);
        if !found.is_ok_and(|found| found.is_folder()) {
            return Vec::new();
        }
        let entries = disk.list(&folder).into_iter().flatten().flatten();
        let files = entries.filter(|entry| entry.kind == FileKind::File);
        let mut names: Vec<_> = files.map(|entry| entry.name).collect();
        names.sort_unstable();
        names.iter().map(|name| folder.join(name)).collect()
    }

    /// Walks over the files in the folder of a session, or at a path `below` it, as deep as [`MAX_DEPTH`](Self::MAX_DEPTH) says;
    /// sorted by name in each folder. Links in it are not followed. `visit` says whether a folder is entered.
    ///
    /// # Errors
    /// The errors of `visit`.
    pub fn walk<E>(
        &self,
        disk: &dyn ReadDisk,
        (folder, below): (&Path, &str),
        visit: &mut dyn FnMut(SideFile<'_>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let depth = Self::MAX_DEPTH.saturating_sub(Path::new(below).iter().count());
        // A path that is joined with an empty one ends with a separator, which errors would show.
        let start = match below {
            "" => folder.to_owned(),
            below => folder.join(below),
        };
        walk(disk, &start, depth, visit)
    }

    /// Walks over all that is in a folder, however deep, as [`walk`](Self::walk) does: for moves and copies of a
    /// session, which must not omit anything.
    ///
    /// # Errors
    /// The errors of `visit`.
    pub fn walk_all<E>(
        &self,
        disk: &dyn ReadDisk,
        folder: &Path,
        visit: &mut dyn FnMut(SideFile<'_>) -> Result<bool, E>,
    ) -> Result<(), E> {
        walk(disk, folder, usize::MAX, visit)
    }
}

fn walk<E>(
    disk: &dyn ReadDisk,
    folder: &Path,
    depth: usize,
    visit: &mut dyn FnMut(SideFile<'_>) -> Result<bool, E>,
) -> Result<(), E> {
    let mut entries = Vec::new();
    match disk.list(folder) {
        Err(error) => _ = visit(SideFile::Problem(folder, error))?,
        Ok(found) => {
            for entry in found {
                match entry {
                    Ok(entry) => entries.push(entry),
                    Err(error) => _ = visit(SideFile::Problem(folder, error))?,
                }
            }
        }
    }
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    for entry in entries {
        let path = folder.join(entry.name);
        if entry.kind != FileKind::Folder {
            visit(SideFile::File(&path, entry.kind))?;
        } else if visit(SideFile::Folder(&path))? && depth > 0 {
            walk(disk, &path, depth - 1, visit)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryDisk;

    const SESSION: &str = "/p/s.jsonl";

    fn walked(disk: &MemoryDisk, enter: impl Fn(&Path) -> bool) -> Vec<String> {
        let folder = SessionLayout::CLIENT.folder(Path::new(SESSION));
        let mut names = Vec::new();
        let walked = SessionLayout::CLIENT.walk(disk, (&folder, ""), &mut |found| {
            let (path, is_entered) = match found {
                SideFile::File(path, _) => (path, false),
                SideFile::Folder(path) => (path, enter(path)),
                SideFile::Problem(path, error) => {
                    return Err(format!("{}: {error}", path.display()));
                }
            };
            names.push(path.strip_prefix(&folder).unwrap().display().to_string());
            Ok(is_entered)
        });
        walked.map(|()| names).unwrap_or_else(|error| vec![error])
    }

    #[test]
    fn a_walk_is_sorted_and_enters_what_the_caller_says() {
        let disk = MemoryDisk::new();
        for name in ["b", "a/z", "a/y", "c/x"] {
            disk.put(format!("/p/s/{name}"), "");
        }
        assert_eq!(
            walked(&disk, |_| true),
            ["a", "a/y", "a/z", "b", "c", "c/x"]
        );
        assert_eq!(
            walked(&disk, |path| path.ends_with("c")),
            ["a", "b", "c", "c/x"]
        );
        let missing = walked(&MemoryDisk::new(), |_| true);
        assert!(missing[0].starts_with("/p/s: "), "{missing:?}");
    }

    #[test]
    fn a_walk_ends_at_the_limit() {
        let disk = MemoryDisk::new();
        let deep = |folders: usize| format!("/p/s/{}file", "d/".repeat(folders));
        disk.put(deep(SessionLayout::MAX_DEPTH), "");
        disk.put(deep(SessionLayout::MAX_DEPTH + 1), "");
        let names = walked(&disk, |_| true);
        assert_eq!(
            names.iter().filter(|name| name.ends_with("file")).count(),
            1
        );
        let mut all = 0;
        let walked: Result<(), ()> =
            SessionLayout::CLIENT.walk_all(&disk, Path::new("/p/s"), &mut |found| {
                all += usize::from(matches!(found, SideFile::File(..)));
                Ok(true)
            });
        assert_eq!((walked, all), (Ok(()), 2));
        let mut below = 0;
        let walked: Result<(), ()> =
            SessionLayout::CLIENT.walk(&disk, (Path::new("/p/s"), "d"), &mut |found| {
                below += usize::from(matches!(found, SideFile::File(..)));
                Ok(true)
            });
        assert_eq!(
            (walked, below),
            (Ok(()), 1),
            "the limit is that of the session"
        );
    }

    #[test]
    fn stored_results_are_only_files_sorted_by_name() {
        let disk = MemoryDisk::new();
        for name in ["b.txt", "a.txt", "more/c.txt"] {
            disk.put(format!("/p/s/tool-results/{name}"), "");
        }
        let found = SessionLayout::CLIENT.stored_results(&disk, Path::new(SESSION));
        let folder = Path::new("/p/s/tool-results");
        assert_eq!(found, [folder.join("a.txt"), folder.join("b.txt")]);
        let none = SessionLayout::CLIENT.stored_results(&disk, Path::new("/p/t.jsonl"));
        assert!(none.is_empty());
    }
}
