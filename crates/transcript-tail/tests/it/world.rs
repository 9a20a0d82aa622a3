//! A session file on a real file system, and all files that ever had its name.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The files by number, their contents, and which of them has the name.
pub(crate) struct World {
    folder: TempDir,
    pub(crate) path: PathBuf,
    pub(crate) files: Vec<Shadow>,
    /// The file that has the name.
    pub(crate) named: Option<usize>,
    /// How often the folder was moved.
    moves: usize,
}

pub(crate) struct Shadow {
    file: File,
    /// Another name of the file.
    other: Option<PathBuf>,
    pub(crate) bytes: Vec<u8>,
}

impl World {
    pub(crate) fn new(folder: TempDir) -> Self {
        fs::create_dir(folder.path().join("other")).unwrap();
        fs::create_dir(folder.path().join("project")).unwrap();
        Self {
            path: folder.path().join("project").join("s1.jsonl"),
            folder,
            files: Vec::new(),
            named: None,
            moves: 0,
        }
    }

    fn project(&self) -> &Path {
        self.path.parent().unwrap()
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join("other").join(name)
    }

    /// Creates a file at `path`.
    fn make(&mut self, path: &Path, other: Option<PathBuf>, bytes: &[u8]) -> usize {
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create_new(true).open(path).unwrap();
        file.write_all(bytes).unwrap();
        let bytes = bytes.to_vec();
        self.files.push(Shadow { file, other, bytes });
        self.files.len() - 1
    }

    /// Creates a file elsewhere, which keeps that name.
    pub(crate) fn make_beside(&mut self, bytes: &[u8]) -> usize {
        let path = self.beside(&format!("f{}", self.files.len()));
        self.make(&path, Some(path.clone()), bytes)
    }

    /// Creates a file with the name, which must be free.
    pub(crate) fn create(&mut self, bytes: &[u8]) -> usize {
        fs::create_dir_all(self.project()).unwrap();
        // A dangling symbolic link may have the name.
        let _ = fs::remove_file(&self.path);
        let number = self.make(&self.path.clone(), None, bytes);
        self.named = Some(number);
        number
    }

    pub(crate) fn append(&mut self, number: usize, bytes: &[u8]) {
        let shadow = &mut self.files[number];
        shadow.file.write_all(bytes).unwrap();
        shadow.bytes.extend(bytes);
    }

    /// Truncates a file.
    pub(crate) fn cut(&mut self, number: usize, len: usize) {
        let shadow = &mut self.files[number];
        shadow.file.set_len(len as u64).unwrap();
        shadow.bytes.truncate(len);
    }

    /// Overwrites bytes of a file.
    pub(crate) fn overwrite(&mut self, number: usize, at: usize, bytes: &[u8]) {
        let shadow = &mut self.files[number];
        // On Linux, positioned writes to a file that is open for appending go to its end.
        let path = format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&shadow.file)
        );
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(bytes, at as u64).unwrap();
        shadow.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Atomically gives the name to another file; the previous one loses it.
    pub(crate) fn swap_in(&mut self, number: usize, by: Link) {
        fs::create_dir_all(self.project()).unwrap();
        let other = self.files[number].other.clone().unwrap();
        let step = self.beside("step");
        match by {
            Link::Move => {
                fs::rename(&other, &self.path).unwrap();
                self.files[number].other = None;
            }
            Link::Hard => {
                fs::hard_link(&other, &step).unwrap();
                fs::rename(&step, &self.path).unwrap();
                // Renaming does nothing when both are names of one file.
                let _ = fs::remove_file(&step);
            }
            Link::Symbolic => {
                symlink(&other, &step).unwrap();
                fs::rename(&step, &self.path).unwrap();
            }
        }
        self.named = Some(number);
    }

    /// Removes the name; the file is elsewhere then.
    pub(crate) fn move_away(&mut self) -> Option<usize> {
        let number = self.named.take()?;
        let other = self.beside(&format!("moved{}-{number}", self.files.len()));
        if self.files[number].other.is_none() {
            fs::rename(&self.path, &other).unwrap();
            self.files[number].other = Some(other);
        } else {
            // The file keeps its other name, and the link to it is removed.
            fs::remove_file(&self.path).unwrap();
        }
        Some(number)
    }

    pub(crate) fn has_other_name(&self, number: usize) -> bool {
        self.files[number].other.is_some()
    }

    pub(crate) fn delete(&mut self) {
        if self.named.take().is_some() {
            fs::remove_file(&self.path).unwrap();
        }
    }

    pub(crate) fn delete_folder(&mut self) {
        self.named = None;
        fs::remove_dir_all(self.project()).unwrap();
    }

    pub(crate) fn has_folder(&self) -> bool {
        self.project().is_dir()
    }

    /// Renames the folder; returns the new name.
    pub(crate) fn move_folder_away(&mut self) -> PathBuf {
        self.moves += 1;
        let other = self.folder.path().join(format!("elsewhere{}", self.moves));
        fs::rename(self.project(), &other).unwrap();
        self.named = None;
        other
    }

    /// Renames the folder back, including the file with the name in it.
    pub(crate) fn move_folder_back(&mut self, other: &Path, named: Option<usize>) {
        fs::rename(other, self.project()).unwrap();
        self.named = named;
    }
}

/// How a file gets the name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Link {
    Move,
    Hard,
    Symbolic,
}
