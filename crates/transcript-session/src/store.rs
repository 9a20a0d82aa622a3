//! Where sessions are: a folder of projects, each a folder of sessions (`facts/sdk.md` 1).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use transcript_format::ids::Uuid;
use transcript_format::names::project_key;

use crate::error::{Error, ErrorKind};

/// A folder that holds projects. It knows names and reads no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// Takes the folder that holds the projects. It need not be there yet.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Takes the folder that the real client uses: `projects` in `$CLAUDE_CONFIG_DIR`, else in
    /// `.claude` in the home folder. `None` when neither is set.
    #[must_use]
    pub fn from_env() -> Option<Self> {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty());
        let config = set("CLAUDE_CONFIG_DIR").map(PathBuf::from);
        let config = config.or_else(|| Some(PathBuf::from(set("HOME")?).join(".claude")))?;
        Some(Self::new(config.join("projects")))
    }

    /// Returns the folder that holds the projects.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder of the sessions that work in `cwd`. Links are followed first, so that one
    /// folder is one project by whatever name it is called.
    #[must_use]
    pub fn project(&self, cwd: &Path) -> PathBuf {
        let real = fs::canonicalize(cwd).or_else(|_| std::path::absolute(cwd));
        let real = real.unwrap_or_else(|_| cwd.to_owned());
        self.root.join(project_key(&real.to_string_lossy()))
    }

    /// Returns the path of a session that works in `cwd` and does not exist yet: its id is drawn at
    /// random. No file is made.
    #[must_use]
    pub fn new_session(&self, cwd: &Path) -> PathBuf {
        let id = uuid::Uuid::new_v4();
        self.project(cwd).join(format!("{id}.jsonl"))
    }

    /// Finds the session `id` in any of the projects. Files without a byte are passed over, as the
    /// clients do.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnId`], so that no text becomes a path that is not the name of a session;
    /// [`ErrorKind::NoSuchSession`].
    pub fn find(&self, id: &str) -> Result<PathBuf, Error> {
        if Uuid::parse(id.to_ascii_lowercase().as_bytes()).is_none() {
            return Err(Error::new(ErrorKind::NotAnId, &self.root));
        }
        let name = format!("{id}.jsonl");
        let projects = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut sessions = projects.map(|project| project.path().join(&name));
        let is_session = |path: &PathBuf| {
            path.metadata()
                .is_ok_and(|found| found.is_file() && found.len() > 0)
        };
        let found = sessions.find(is_session);
        found.ok_or_else(|| Error::new(ErrorKind::NoSuchSession, &self.root))
    }
}
