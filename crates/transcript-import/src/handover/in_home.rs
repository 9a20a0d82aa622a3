//! A planned hand-over in the home folder of its client.

use std::io::{self, Write};

use crate::Error;

use super::conversion::Conversion;
use super::edit::Edit;
use super::files::{Extra, FileChange};
use super::home::Home;
use super::new_session::project_of;
use super::options::Options;
use super::source_item::Items;
use super::target::Target;
use super::writing::Writing;

impl<'a> Conversion<'a> {
    /// As [`plan`](Self::plan), for a session in a home folder: Gemini CLI has names for working folders there.
    ///
    /// # Errors
    /// When an item or the names cannot be read.
    pub fn plan_in(
        items: &'a dyn Items,
        target: Target,
        options: &Options,
        home: Home<'_>,
    ) -> Result<Self, Error> {
        let mut options = options.clone();
        if target == Target::Gemini && options.project.is_none() {
            let own = project_of(&options.cwd);
            options.project = Some(home.project(&options.cwd, &own)?);
        }
        Self::plan(items, target, &options)
    }

    /// Returns the files that [`write_in`](Self::write_in) writes, that with the conversation first. Nothing is written.
    ///
    /// # Errors
    /// As [`write_in`](Self::write_in).
    pub fn changes_in(&self, home: Home<'_>) -> Result<Vec<FileChange>, Error> {
        self.check_absent(home)?;
        let mut changes = vec![self.main_change(home)?];
        let files = self.files();
        for extra in files.before.iter().chain(&files.after) {
            changes.extend(Edit::of(extra, home)?.as_ref().map(change_of));
        }
        Ok(changes)
    }

    /// Writes the session into a home folder, and returns the files that are new or longer, that with the conversation first.
    ///
    /// The file with the conversation appears complete or not at all, behind everything that the client needs to find it, and no
    /// file is overwritten; small files that list the sessions of a client get a line or a member more. When something fails,
    /// nothing of it stays.
    ///
    /// # Errors
    /// [`Error::Io`] when an item cannot be read, the file exists ([`AlreadyExists`](io::ErrorKind::AlreadyExists)), or the system
    /// fails.
    pub fn write_in(&self, home: Home<'_>) -> Result<Vec<FileChange>, Error> {
        self.check_absent(home)?;
        let mut writing = Writing::new(home);
        let written = self.write_files(home, &mut writing);
        if written.is_err() {
            writing.undo();
        }
        written
    }

    fn write_files(
        &self,
        home: Home<'_>,
        writing: &mut Writing<'_>,
    ) -> Result<Vec<FileChange>, Error> {
        let main = home.path.join(&self.files().main);
        let mut changes = Vec::new();
        add_extras(&self.files().before, home, writing, &mut changes)?;
        let mut len = 0;
        writing.create(&main, |to| {
            let mut counted = Counted { to, len: 0 };
            self.write_at(&main, &mut counted)?;
            len = counted.len;
            Ok(())
        })?;
        let main = FileChange {
            path: main,
            bytes: len,
            is_new: true,
        };
        changes.insert(0, main);
        add_extras(&self.files().after, home, writing, &mut changes)?;
        Ok(changes)
    }

    fn check_absent(&self, home: Home<'_>) -> Result<(), Error> {
        let main = home.path.join(&self.files().main);
        if home.disk.has_name(&main) {
            return Err(Error::at(&main)(io::ErrorKind::AlreadyExists.into()));
        }
        Ok(())
    }

    fn main_change(&self, home: Home<'_>) -> Result<FileChange, Error> {
        let mut counted = Counted {
            to: &mut io::sink(),
            len: 0,
        };
        self.write_to(&mut counted)?;
        Ok(FileChange {
            path: home.path.join(&self.files().main),
            bytes: counted.len,
            is_new: true,
        })
    }
}

fn add_extras(
    extras: &[Extra],
    home: Home<'_>,
    writing: &mut Writing<'_>,
    changes: &mut Vec<FileChange>,
) -> Result<(), Error> {
    for extra in extras {
        if let Some(edit) = Edit::of(extra, home)? {
            writing.apply(&edit)?;
            changes.push(change_of(&edit));
        }
    }
    Ok(())
}

fn change_of(edit: &Edit) -> FileChange {
    FileChange {
        path: edit.path.clone(),
        bytes: edit.added_len() as u64,
        is_new: edit.is_new(),
    }
}

/// Counts the bytes that are written.
struct Counted<'w> {
    to: &'w mut dyn Write,
    len: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.len += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
