//! Memory files: instructions of the user and the project, in layers, merged into one text for the
//! section `memory` of a [`SystemPrompt`](crate::builder::SystemPrompt).
//!
//! The caller gives the texts, or [`MemoryReader`] reads the files of [`MemoryPlaces`].
//!
//! ```
//! use transcript_session::memory::{MemoryLayer, MemoryLayers};
//!
//! let merged = MemoryLayers::new()
//!     .add(MemoryLayer::Project, "/work/CLAUDE.md", "Use tabs.")
//!     .add(MemoryLayer::User, "/home/ada/.claude/CLAUDE.md", "Be short.")
//!     .merge();
//! assert_eq!(merged.text, "Be short.\n\nUse tabs.");
//! ```

use std::collections::HashMap;
use std::env;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use transcript_storage::{Identity, Metadata, ReadDisk, is_absent};

/// The size of the largest memory file that is read, in bytes.
pub const MAX_MEMORY_FILE: u64 = 1 << 20;

/// The owner of the instructions in a memory file. Later layers come later in the merged text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryLayer {
    /// Instructions of the organization, for all users of the machine.
    Managed,
    /// Instructions of the user, for all projects.
    User,
    /// Instructions of the project, for everyone who works on it.
    Project,
    /// Instructions of the user for the project.
    Local,
}

/// A memory file and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryFile {
    /// Its layer.
    pub layer: MemoryLayer,
    /// Its path. Nothing opens it here.
    pub path: PathBuf,
    /// Its content.
    pub text: Arc<str>,
}

/// The texts of memory files.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct MemoryLayers {
    files: Vec<MemoryFile>,
    separator: String,
    has_directives: bool,
}

/// One text made of all layers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergedMemory {
    /// The texts, with separators between them.
    pub text: String,
    /// The files that the text is made of, in its order.
    pub files: Vec<PathBuf>,
    /// The files before one that overrides them.
    pub overridden: Vec<PathBuf>,
}

impl Default for MemoryLayers {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            separator: "\n\n".to_owned(),
            has_directives: false,
        }
    }
}

impl MemoryLayers {
    /// Returns layers without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file. Those of one layer keep the order in which they are added.
    pub fn add(
        mut self,
        layer: MemoryLayer,
        path: impl Into<PathBuf>,
        text: impl Into<Arc<str>>,
    ) -> Self {
        self.files.push(MemoryFile {
            layer,
            path: path.into(),
            text: text.into(),
        });
        self
    }

    /// Sets the text between two files; an empty line by default.
    pub fn separator(mut self, separator: &str) -> Self {
        separator.clone_into(&mut self.separator);
        self
    }

    /// Sets whether the first line of a file that is not blank may be a directive; it is not part of
    /// the text then. After `@override` the file replaces all files before it, after `@append` it
    /// follows them, as without a directive. Off by default: no client is known to document these
    /// directives, and their meaning here is that of this project.
    pub fn directives(mut self, are_read: bool) -> Self {
        self.has_directives = are_read;
        self
    }

    /// Joins the texts: managed, user, project, local. White space around a text is removed, and
    /// blank files are omitted.
    #[must_use]
    pub fn merge(&self) -> MergedMemory {
        let mut files: Vec<&MemoryFile> = self.files.iter().collect();
        // A stable sort: the files of one layer keep their order.
        files.sort_by_key(|file| file.layer);
        let (mut texts, mut used, mut overridden) = (Vec::new(), Vec::new(), Vec::new());
        for file in files {
            let (text, overrides) = if self.has_directives {
                directive(file.text.trim())
            } else {
                (file.text.trim(), false)
            };
            if overrides {
                texts.clear();
                overridden.append(&mut used);
            }
            if !text.is_empty() {
                texts.push(text);
                used.push(file.path.clone());
            }
        }
        MergedMemory {
            text: texts.join(&self.separator),
            files: used,
            overridden,
        }
    }
}

/// Returns the text without its directive, and whether the directive is `@override`.
fn directive(text: &str) -> (&str, bool) {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    match first.trim_end() {
        "@override" => (rest.trim_start(), true),
        "@append" => (rest.trim_start(), false),
        _ => (text, false),
    }
}

/// The paths at which memory files are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct MemoryPlaces(Vec<(MemoryLayer, PathBuf)>);

impl MemoryPlaces {
    /// Returns no places.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a place. Those of one layer keep the order in which they are added.
    pub fn add(mut self, layer: MemoryLayer, path: impl Into<PathBuf>) -> Self {
        self.0.push((layer, path.into()));
        self
    }

    /// Returns the places of Claude Code for work in `cwd`, a folder of the project at `root`:
    ///
    /// - managed: `CLAUDE.md` in the system's folder for it, such as `/etc/claude-code`;
    /// - user: `CLAUDE.md` in `config`, the folder that is usually `~/.claude`;
    /// - project: `CLAUDE.md` and `.claude/CLAUDE.md` in each folder from `root` down to `cwd`;
    /// - local: `CLAUDE.local.md` in the same folders.
    ///
    /// If `cwd` is not below `root`, it is the only folder.
    pub fn standard(config: &Path, root: &Path, cwd: &Path) -> Self {
        let mut folders: Vec<&Path> = if cwd.starts_with(root) {
            cwd.ancestors()
                .take_while(|folder| folder.starts_with(root))
                .collect()
        } else {
            vec![cwd]
        };
        folders.reverse();
        let managed = match env::consts::OS {
            "macos" => "/Library/Application Support/ClaudeCode",
            "windows" => r"C:\Program Files\ClaudeCode",
            _ => "/etc/claude-code",
        };
        let mut places = Self::new()
            .add(MemoryLayer::Managed, Path::new(managed).join("CLAUDE.md"))
            .add(MemoryLayer::User, config.join("CLAUDE.md"));
        for folder in folders {
            places = places
                .add(MemoryLayer::Project, folder.join("CLAUDE.md"))
                .add(
                    MemoryLayer::Project,
                    folder.join(".claude").join("CLAUDE.md"),
                )
                .add(MemoryLayer::Local, folder.join("CLAUDE.local.md"));
        }
        places
    }

    /// Returns the places in the order in which they were added.
    #[must_use]
    pub fn paths(&self) -> &[(MemoryLayer, PathBuf)] {
        &self.0
    }
}

/// Reads memory files from a disk. A file is read again when it is another file, or its size or
/// times changed.
#[derive(Debug)]
pub struct MemoryReader {
    disk: Arc<dyn ReadDisk>,
    known: HashMap<PathBuf, (FileState, Arc<str>)>,
}

/// The identity, length and time of a file, by which the cache sees that it changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileState {
    identity: Identity,
    len: u64,
    modified: SystemTime,
    changed: Option<SystemTime>,
}

impl FileState {
    /// Returns the stamp of a file; `None` where the system does not report the time of the last
    /// change.
    fn of(found: &Metadata) -> Option<Self> {
        Some(Self {
            identity: found.identity,
            len: found.len,
            modified: found.modified?,
            changed: found.changed,
        })
    }
}

/// The memory files that were found.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReadMemory {
    /// Their texts.
    pub layers: MemoryLayers,
    /// The files that are there and could not be read.
    pub problems: Vec<MemoryProblem>,
}

/// A memory file that could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub struct MemoryProblem {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub error: io::Error,
}

impl fmt::Display for MemoryProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.error)
    }
}

impl MemoryReader {
    /// Reads from `disk`.
    #[must_use]
    pub fn on(disk: Arc<dyn ReadDisk>) -> Self {
        Self {
            disk,
            known: HashMap::new(),
        }
    }

    /// Reads the files at `places` that are there. Those that were read before and did not change are
    /// not opened again; files at other places are forgotten.
    pub fn read(&mut self, places: &MemoryPlaces) -> ReadMemory {
        let mut layers = MemoryLayers::new();
        let mut problems = Vec::new();
        let mut known = HashMap::new();
        for (layer, path) in places.paths() {
            match self.file(path) {
                Ok((stamp, text)) => {
                    layers = layers.add(*layer, path, Arc::clone(&text));
                    if let Some(stamp) = stamp {
                        known.insert(path.clone(), (stamp, text));
                    }
                }
                Err(error) if is_absent(&error) => {}
                Err(error) => problems.push(MemoryProblem {
                    path: path.clone(),
                    error,
                }),
            }
        }
        self.known = known;
        ReadMemory { layers, problems }
    }

    fn file(&self, path: &Path) -> io::Result<(Option<FileState>, Arc<str>)> {
        let found = self.disk.metadata(path)?;
        // Before the file is read: a change during that is seen the next time.
        let stamp = FileState::of(&found);
        if let (Some(stamp), Some((known, text))) = (&stamp, self.known.get(path))
            && stamp == known
        {
            return Ok((Some(stamp.clone()), Arc::clone(text)));
        }
        let refused = |why| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        if !found.is_file() {
            return refused("not a regular file");
        }
        let most = usize::try_from(MAX_MEMORY_FILE).unwrap_or(usize::MAX);
        let bytes = self.disk.read(path, most.saturating_add(1))?;
        if bytes.len() > most {
            return refused("a memory file of more than 1 MiB is not read");
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok((stamp, text.into())),
            Err(_) => refused("not UTF-8"),
        }
    }
}
