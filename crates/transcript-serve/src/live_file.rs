//! The file of a session and its index, which grows with it.

use std::path::Path;
use std::sync::Arc;

use transcript_reader::{Error, FileChange, GrowingFile, GrowingIndex, Index, OtherFiles};
use transcript_resume::{Policy, Tree};
use transcript_storage::ReadDisk;

/// A file that may grow.
pub(crate) struct LiveFile {
    disk: Arc<dyn ReadDisk>,
    pub(crate) file: GrowingFile,
    pub(crate) index: LiveIndex,
    /// The number of times that the content of the file was replaced.
    pub(crate) replaced: u32,
    /// Entries that are missing in this file and may be in others of the session.
    pub(crate) others: Option<OtherFiles>,
}

/// The index of a file: loaded by several threads at first, and built line by line once the file grows.
pub(crate) enum LiveIndex {
    Loaded(Box<Index>),
    Growing(Box<GrowingIndex>),
}

impl LiveIndex {
    pub(crate) fn get(&mut self) -> &Index {
        match self {
            Self::Loaded(index) => index,
            Self::Growing(growing) => growing.index(),
        }
    }
}

impl LiveFile {
    pub(crate) fn open(disk: &Arc<dyn ReadDisk>, path: &Path) -> Result<Self, Error> {
        let mut file = GrowingFile::open(disk, path)?;
        let source = file.source();
        let index = Index::load(source)?;
        let missing = Tree::new(&index, Policy::Recover).missing_parents();
        let others = (!missing.is_empty()).then(|| OtherFiles::search(source, &index, &missing));
        file.remember()?;
        Ok(Self {
            disk: Arc::clone(disk),
            file,
            index: LiveIndex::Loaded(Box::new(index)),
            replaced: 0,
            others: others.filter(|others| !others.is_empty()),
        })
    }

    /// Reads the appended lines, or everything if the content of the file was replaced. Returns whether it was.
    pub(crate) fn update(&mut self) -> Result<bool, Error> {
        match self.file.change() {
            // A file that is moved away may come back.
            FileChange::None | FileChange::Gone => return Ok(false),
            FileChange::Grown => {}
            FileChange::Other => {
                let replaced = self.replaced + 1;
                *self = Self::open(&self.disk, self.file.source().path())?;
                self.replaced = replaced;
                return Ok(true);
            }
        }
        if let LiveIndex::Loaded(_) = self.index {
            let growing = GrowingIndex::new(self.file.source().path());
            self.index = LiveIndex::Growing(Box::new(growing));
        }
        if let LiveIndex::Growing(index) = &mut self.index {
            self.file.read_lines(|line| index.push(line))?;
        }
        Ok(false)
    }
}

/// Returns whether a file grew or holds something else. One that cannot be looked at counts as unchanged: a file may be moved
/// away and back.
pub(crate) fn has_changed(file: &mut GrowingFile) -> bool {
    matches!(file.change(), FileChange::Grown | FileChange::Other)
}
