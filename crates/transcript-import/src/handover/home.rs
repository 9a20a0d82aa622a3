//! The home folder of a client, on a disk.

use std::io;
use std::path::Path;

use transcript_format::object::Object;
use transcript_storage::Disk;

use crate::Error;

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

impl Home<'_> {
    /// Returns the name that Gemini CLI gave to a working folder, or else one that no other folder has.
    pub(super) fn project(self, cwd: &str, own: &str) -> Result<String, Error> {
        let text = self.text(&self.path.join("projects.json"))?;
        let known = text.as_deref().and_then(|text| Object::parse(text).ok());
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

    /// Reads a small file; `None` for a missing one.
    pub(super) fn text(self, path: &Path) -> Result<Option<String>, Error> {
        match self.disk.read(path, MAX_SMALL_FILE) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::at(path)(error)),
        }
    }
}
