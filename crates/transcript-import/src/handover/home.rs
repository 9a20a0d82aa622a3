//! Files of a new session on a disk, in the home folder of a client.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use transcript_format::json::Json;
use transcript_format::object::Object;
use transcript_storage::Disk;

use crate::Error;

use super::conversion::Conversion;
use super::files::Extra;

/// The home folder of a client, such as `~/.codex`.
#[derive(Clone, Copy, Debug)]
pub struct Home<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// The folder.
    pub path: &'a Path,
}

/// The greatest length of a small file that is changed, in bytes.
const MAX_SMALL_FILE: usize = 64 << 20;

/// The length of the buffer of the file with the conversation, in bytes.
const BUFFER_LEN: usize = 256 << 10;

impl Home<'_> {
    /// Returns the name that Gemini CLI gave to a working folder, or else one that no other folder has.
    pub(super) fn project(self, cwd: &str, own: &str) -> Result<String, Error> {
        let text = self.text(&self.path.join("projects.json"))?;
        let known = Object::parse(&text).ok();
        let known = known.and_then(|known| known.object("projects"));
        let members = known.as_ref().map(Object::members).unwrap_or_default();
        let names = || {
            members
                .iter()
                .filter_map(|(key, name)| Some((key, name.str()?)))
        };
        if let Some((_, name)) = names().find(|(key, _)| **key == cwd) {
            return Ok(name.into_owned());
        }
        let is_taken = |name: &str| {
            let folder = self.path.join("tmp").join(name);
            names().any(|(_, taken)| taken == name) || self.disk.has_name(&folder)
        };
        let mut numbered = (1..).map(|number| format!("{own}-{number}"));
        let free = Some(own.to_owned()).filter(|own| !is_taken(own));
        Ok(free
            .or_else(|| numbered.find(|name| !is_taken(name)))
            .unwrap_or_else(|| own.to_owned()))
    }

    /// Writes the files, and returns the paths of those that are new or longer, that with the conversation first.
    pub(super) fn write(self, conversion: &Conversion<'_>) -> Result<Vec<PathBuf>, Error> {
        let files = conversion.files();
        let main = self.path.join(&files.main);
        if self.disk.has_name(&main) {
            return Err(Error::at(&main)(io::ErrorKind::AlreadyExists.into()));
        }
        let mut written = vec![main.clone()];
        for extra in &files.before {
            written.extend(self.add(extra)?);
        }
        self.write_new(&main, |to| conversion.write_at(&main, to))?;
        for extra in &files.after {
            written.extend(self.add(extra)?);
        }
        Ok(written)
    }

    /// Writes a file that appears complete or not at all.
    fn write_new(
        self,
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let folder = path.parent().unwrap_or(self.path);
        self.disk.create_folder(folder).map_err(Error::at(folder))?;
        let file = self.disk.new_file(path).map_err(Error::at(path))?;
        let mut buffer = BufWriter::with_capacity(BUFFER_LEN, file);
        write(&mut buffer)?;
        let file = buffer.into_inner().map_err(io::IntoInnerError::into_error);
        let kept = file.and_then(|file| file.keep(path));
        kept.map_err(Error::at(path))
    }

    /// Adds to what a client keeps of its sessions. Returns the path of the file if it changed.
    fn add(self, extra: &Extra) -> Result<Option<PathBuf>, Error> {
        match extra {
            Extra::File { path, text } => {
                let path = self.path.join(path);
                if self.disk.has_name(&path) {
                    return Ok(None);
                }
                self.write_new(&path, |to| {
                    to.write_all(text.as_bytes()).map_err(Error::at(&path))
                })?;
                Ok(Some(path))
            }
            Extra::Line { path, line } => {
                let path = self.path.join(path);
                self.append(&path, line).map_err(Error::at(&path))?;
                Ok(Some(path))
            }
            Extra::Member {
                path,
                object,
                key,
                value,
            } => {
                let path = self.path.join(path);
                let text = self.text(&path)?;
                let Some(text) = with_member(&text, object, key, value) else {
                    return Ok(None);
                };
                self.replace(&path, &text)?;
                Ok(Some(path))
            }
        }
    }

    /// Appends a line in one write. A last line without an end gets one.
    fn append(self, path: &Path, line: &str) -> io::Result<()> {
        let file = self.disk.open(path, true)?.file;
        let len = file.status()?.len;
        let mut last = [b'\n'];
        if len > 0 {
            file.read_at(len - 1, &mut last)?;
        }
        let start = if last == [b'\n'] { "" } else { "\n" };
        let bytes = format!("{start}{line}\n").into_bytes();
        let written = file.append(&bytes)?;
        if written < bytes.len() {
            file.truncate(len)?;
            return Err(io::ErrorKind::WriteZero.into());
        }
        file.sync()
    }

    /// Puts a small file in the place of another one, or of none.
    fn replace(self, path: &Path, text: &str) -> Result<(), Error> {
        let folder = path.parent().unwrap_or(self.path);
        self.disk.create_folder(folder).map_err(Error::at(folder))?;
        let write = || {
            let mut file = self.disk.new_file(path)?;
            file.write_all(text.as_bytes())?;
            file.replace(path)
        };
        write().map_err(Error::at(path))
    }

    /// Reads a small file; a missing one is empty.
    fn text(self, path: &Path) -> Result<String, Error> {
        match self.disk.read(path, MAX_SMALL_FILE) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(Error::at(path)(error)),
        }
    }
}

/// Returns an object with a string in an inner object, or `None` if a string is there.
fn with_member(text: &str, object: &str, key: &str, value: &str) -> Option<String> {
    const NO_MEMBERS: &str = "{}";
    let parsed = |text| Object::parse(text).ok();
    let outer = parsed(text).or_else(|| parsed(NO_MEMBERS))?;
    let inner = outer.object(object).or_else(|| parsed(NO_MEMBERS))?;
    if inner.str(key).is_some() {
        return None;
    }
    let inner = inner.with(key, Json::from(value).text());
    Some(outer.with(object, &inner))
}
