//! The file of a session and its index, which grows with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_format::lines::{DEFAULT_LINE_CAP, Framer};
use transcript_reader::{Error, GrowingIndex, Index, OtherFiles, Source};
use transcript_resume::{Policy, Tree};
use transcript_storage::{Content, ReadDisk};

/// The number of bytes that are read at a time.
const BLOCK: usize = 1 << 20;

/// A file that may grow.
pub(super) struct LiveFile {
    pub(super) seen: SeenFile,
    pub(super) source: Source,
    pub(super) index: LiveIndex,
    /// The offset up to which the index has it.
    indexed: u64,
    /// How often something else was in the file.
    pub(super) replaced: u32,
    /// Entries that are missing in this file and may be in others of the session.
    pub(super) others: Option<OtherFiles>,
}

/// What was seen of a file.
pub(super) struct SeenFile {
    disk: Arc<dyn ReadDisk>,
    path: PathBuf,
    content: Content,
    /// Whether it was found that something else is in the file now.
    is_other: bool,
}

impl SeenFile {
    /// Returns whether the file grew or holds something else. Of a large file a part is compared at a time, so that
    /// it takes some calls until a change in its middle is noticed. One that cannot be looked at counts as unchanged: a
    /// file may be moved away and back.
    pub(super) fn has_changed(&mut self, source: &Source) -> bool {
        let Ok(found) = self.disk.metadata(&self.path) else {
            return false;
        };
        if self.content.is_untouched(&found) {
            return false;
        }
        if found.len != source.len() {
            return true;
        }
        let read_at = |at, buffer: &mut [u8]| source.read_at(at, buffer);
        // What cannot be read is read again by the update, and then it is an error.
        self.is_other = !self.content.is_start_of(&found, read_at).unwrap_or(false);
        self.content.set_seen(found);
        self.is_other
    }
}

/// The index of a file: loaded by several threads at first, and built line by line once the file grows.
pub(super) enum LiveIndex {
    Loaded(Box<Index>),
    Growing(Box<(GrowingIndex, Framer)>),
}

impl LiveIndex {
    pub(super) fn get(&mut self) -> &Index {
        match self {
            Self::Loaded(index) => index,
            Self::Growing(growing) => growing.0.index(),
        }
    }
}

impl LiveFile {
    pub(super) fn open(disk: &Arc<dyn ReadDisk>, path: &Path) -> Result<Self, Error> {
        let mut source = Source::open_on(disk, path)?;
        let mut content = Content::start();
        if let Some(found) = source.refresh()? {
            content.set_seen(found);
        }
        let index = Index::load(&source)?;
        let missing = Tree::new(&index, Policy::Recover).missing_parents();
        let search = || OtherFiles::search(&source, &index, &missing);
        let others = (!missing.is_empty()).then(search);
        source.each_block(0..source.len(), BLOCK, |at, bytes| {
            content.push(at, bytes);
            Ok::<_, Error>(())
        })?;
        Ok(Self {
            indexed: source.len(),
            seen: SeenFile {
                disk: Arc::clone(disk),
                path: path.to_owned(),
                content,
                is_other: false,
            },
            source,
            index: LiveIndex::Loaded(Box::new(index)),
            replaced: 0,
            others: others.filter(|others| !others.is_empty()),
        })
    }

    /// Reads what was appended, or everything if something else is in the file. Returns whether that is so.
    pub(super) fn update(&mut self) -> Result<bool, Error> {
        // A file that is moved away may come back.
        if let Ok(found) = self.seen.disk.metadata(&self.seen.path) {
            let (source, content) = (&self.source, &mut self.seen.content);
            let read_at = |at, buffer: &mut [u8]| source.read_at(at, buffer);
            if self.seen.is_other || !content.is_start_of(&found, read_at)? {
                let replaced = self.replaced + 1;
                *self = Self::open(&self.seen.disk, &self.seen.path)?;
                self.replaced = replaced;
                return Ok(true);
            }
            content.set_seen(found);
        }
        self.source.refresh()?;
        let len = self.source.len();
        if len == self.indexed {
            return Ok(false);
        }
        if let LiveIndex::Loaded(_) = self.index {
            let growing = GrowingIndex::new(&self.seen.path);
            let framer = Framer::starting_at(0, DEFAULT_LINE_CAP);
            self.index = LiveIndex::Growing(Box::new((growing, framer)));
            self.indexed = 0;
        }
        let LiveIndex::Growing(growing) = &mut self.index else {
            return Ok(false);
        };
        let (index, framer) = &mut **growing;
        let content = &mut self.seen.content;
        let new = self.indexed..len;
        self.indexed = self.source.each_block(new, BLOCK, |at, bytes| {
            content.push(at, bytes);
            let mut rest = bytes;
            while let Some(line) = framer.next(&mut rest) {
                index.push(line);
            }
            Ok::<_, Error>(())
        })?;
        Ok(false)
    }
}
