//! The paths of the files of a session.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The paths of the files of a session, from the path of its own file: the one place that knows the names in the folder of a
/// session, and how deep it is looked.
///
/// The own file is `ID.jsonl`. The folder `ID` beside it has the files of subagents, results that are too long for a line, and
/// whatever else the client puts there.
///
/// A layout belongs to the disk that the sessions are on ([`ReadDisk::layout`](crate::ReadDisk::layout)), and whatever reads
/// sessions asks the disk. A disk that shows the sessions of another agent says how that agent names its files; what
/// cannot be said in these terms, such as a folder for each day in place of projects, it shows under other paths. What
/// writes sessions writes them as the client does.
///
/// ```
/// use std::path::Path;
/// use transcript_storage::SessionLayout;
///
/// let session = Path::new("/projects/-work/1999463e.jsonl");
/// let folder = SessionLayout::CLIENT.subagents(session);
/// assert_eq!(folder, Path::new("/projects/-work/1999463e/subagents"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLayout {
    /// The ending of the names of own files and those of subagents, without the dot.
    pub ending: &'static str,
    /// The folder of subagents, in that of the session.
    pub subagents: &'static str,
    /// The folder of stored results, in that of the session.
    pub results: &'static str,
}

impl SessionLayout {
    /// The layout of the client.
    pub const CLIENT: Self = Self {
        ending: "jsonl",
        subagents: "subagents",
        results: "tool-results",
    };

    /// The limit on depth, everywhere: of projects below a folder of projects, and of files below the folder of a session.
    /// Folders below it are not looked at.
    pub const MAX_DEPTH: usize = 12;

    /// Returns the folder of a session.
    #[must_use]
    pub fn folder(&self, session: &Path) -> PathBuf {
        session.with_extension("")
    }

    /// Returns the own file of the session whose folder this is.
    #[must_use]
    pub fn session_of(&self, folder: &Path) -> PathBuf {
        let mut path = folder.as_os_str().to_owned();
        path.push(".");
        path.push(self.ending);
        path.into()
    }

    /// Returns the folder of the subagents of a session.
    #[must_use]
    pub fn subagents(&self, session: &Path) -> PathBuf {
        self.folder(session).join(self.subagents)
    }

    /// Returns the folder of the stored results of a session.
    #[must_use]
    pub fn results(&self, session: &Path) -> PathBuf {
        self.folder(session).join(self.results)
    }

    /// Returns the folder of the session in which the file of a subagent is; `None` for other files.
    #[must_use]
    pub fn folder_around<'f>(&self, file: &'f Path) -> Option<&'f Path> {
        let is_subagents = |folder: &&Path| folder.file_name() == Some(OsStr::new(self.subagents));
        file.ancestors().skip(1).find(is_subagents)?.parent()
    }

    /// Returns the id of the session whose own file has this name; `None` for other files.
    #[must_use]
    pub fn id_of<'n>(&self, name: &'n str) -> Option<&'n str> {
        name.strip_suffix(self.ending)?.strip_suffix('.')
    }

    /// Returns whether a file is named like a session or a subagent.
    #[must_use]
    pub fn has_ending(&self, file: &Path) -> bool {
        file.extension().is_some_and(|end| end == self.ending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_from_a_session_to_its_files_and_back() {
        let layout = SessionLayout::CLIENT;
        let session = Path::new("/p/s.jsonl");
        let folder = layout.folder(session);
        assert_eq!(layout.session_of(&folder), session);
        assert_eq!(layout.results(session), Path::new("/p/s/tool-results"));
        let agent = layout.subagents(session).join("workflows/w/agent-a.jsonl");
        assert_eq!(layout.folder_around(&agent), Some(&*folder));
        assert_eq!(layout.folder_around(session), None);
        assert!(layout.has_ending(&agent) && !layout.has_ending(&folder));
        assert_eq!(layout.id_of("s.jsonl"), Some("s"));
        assert_eq!(
            (layout.id_of("sjsonl"), layout.id_of("s.json")),
            (None, None)
        );
    }
}
