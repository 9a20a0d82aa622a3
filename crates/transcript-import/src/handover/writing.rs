//! Files of a new session on a disk: all of them, or none when something fails.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::Error;

use super::edit::{Edit, EditKind};
use super::home::Home;

/// The length of the buffer of the file with the conversation, in bytes.
const BUFFER_LEN: usize = 256 << 10;

/// The files of a hand-over while they are written.
pub(super) struct Writing<'h> {
    home: Home<'h>,
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
    /// Files with new text, and the old one; `None` if there was no file.
    replaced: Vec<(PathBuf, Option<String>)>,
}

impl<'h> Writing<'h> {
    pub(super) fn new(home: Home<'h>) -> Self {
        Self {
            home,
            folders: Vec::new(),
            files: Vec::new(),
            replaced: Vec::new(),
        }
    }

    /// Writes a file that appears complete or not at all.
    pub(super) fn create(
        &mut self,
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.create_folder_of(path)?;
        let file = self.home.disk.new_file(path).map_err(Error::at(path))?;
        let mut buffer = BufWriter::with_capacity(BUFFER_LEN, file);
        write(&mut buffer)?;
        let file = buffer.into_inner().map_err(io::IntoInnerError::into_error);
        let kept = file.and_then(|file| file.keep(path));
        kept.map_err(Error::at(path))?;
        self.files.push(path.to_owned());
        Ok(())
    }

    pub(super) fn apply(&mut self, edit: &Edit) -> Result<(), Error> {
        let path = &edit.path;
        match &edit.kind {
            EditKind::Create(text) => self.create(path, |to| {
                to.write_all(text.as_bytes()).map_err(Error::at(path))
            }),
            EditKind::Append { bytes, .. } => self.append(path, bytes).map_err(Error::at(path)),
            EditKind::Replace { old, new } => {
                self.create_folder_of(path)?;
                self.replace(path, new).map_err(Error::at(path))?;
                self.replaced.push((path.clone(), old.clone()));
                Ok(())
            }
        }
    }

    /// Removes the new files and folders, and puts the old texts back. Whatever cannot be removed stays. Appended lines come last, and one that
    /// fails is removed at once.
    pub(super) fn undo(self) {
        let disk = self.home.disk;
        for path in self.files.iter().rev() {
            let _ = disk.remove(path);
        }
        for (path, old) in self.replaced.iter().rev() {
            let _ = match old {
                Some(old) => self.replace(path, old),
                None => disk.remove(path),
            };
        }
        for folder in self.folders.iter().rev() {
            let _ = disk.remove_folder(folder);
        }
    }

    fn create_folder_of(&mut self, path: &Path) -> Result<(), Error> {
        let folder = path.parent().unwrap_or(self.home.path);
        let above = folder.ancestors();
        let missing = above.take_while(|folder| !self.home.disk.exists(folder));
        let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        let created = self.home.disk.create_folder(folder);
        missing.reverse();
        self.folders.append(&mut missing);
        created.map_err(Error::at(folder))
    }

    /// Appends a line in one write. Nothing of it stays when that fails.
    fn append(&self, path: &Path, line: &[u8]) -> io::Result<()> {
        let opened = self.home.disk.open(path, true)?;
        let file = &opened.file;
        let len = if opened.is_new { 0 } else { file.status()?.len };
        let appended = file.append(line).and_then(|written| {
            if written < line.len() {
                return Err(io::ErrorKind::WriteZero.into());
            }
            file.sync()
        });
        if appended.is_err() {
            let _ = if opened.is_new {
                self.home.disk.remove(path)
            } else {
                file.truncate(len)
            };
        }
        appended
    }

    /// Puts a small file in the place of another one, or of none.
    fn replace(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut file = self.home.disk.new_file(path)?;
        file.write_all(text.as_bytes())?;
        file.replace(path)
    }
}
