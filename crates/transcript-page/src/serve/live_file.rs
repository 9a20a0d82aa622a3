//! The file of a session and its index, which grows with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_format::lines::{DEFAULT_LINE_CAP, Framer};
use transcript_reader::{Error, GrowingIndex, Index, OtherFiles, Source};
use transcript_resume::{Policy, Tree};
use transcript_storage::{Identity, ReadDisk};

/// So many bytes are read at a time.
const BLOCK: usize = 1 << 20;
/// So many bytes before the end of what was read are compared before more is read.
const COMPARED: usize = 64;

/// A file that may grow.
pub(super) struct LiveFile {
    pub(super) seen: SeenFile,
    pub(super) source: Source,
    pub(super) index: LiveIndex,
    /// The bytes before the end of what was read.
    end: Vec<u8>,
    /// Entries that are missing in this file and may be in others of the session.
    pub(super) others: Option<OtherFiles>,
}

/// What was seen of a file.
pub(super) struct SeenFile {
    disk: Arc<dyn ReadDisk>,
    path: PathBuf,
    identity: Option<Identity>,
    /// The length up to which it was read.
    len: u64,
}

impl SeenFile {
    /// Returns whether the file is no longer what was read. One that cannot be looked at counts as unchanged: a file may be
    /// moved away and back.
    pub(super) fn has_changed(&self) -> bool {
        let found = self.disk.metadata(&self.path);
        found.is_ok_and(|found| found.len != self.len || Some(found.identity) != self.identity)
    }

    /// Returns whether nothing can have happened to the file but that it grew.
    fn may_have_grown(&self) -> bool {
        let found = self.disk.metadata(&self.path);
        found.is_ok_and(|found| found.len >= self.len && Some(found.identity) == self.identity)
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
        let source = Source::open_on(disk, path)?;
        let index = Index::load(&source)?;
        let missing = Tree::new(&index, Policy::Recover).missing_parents();
        let others = match missing.is_empty() {
            true => None,
            false => Some(OtherFiles::search(&source, &index, &missing)),
        };
        let identity = disk.metadata(path).ok().map(|found| found.identity);
        let mut file = Self {
            seen: SeenFile {
                disk: Arc::clone(disk),
                path: path.to_owned(),
                identity,
                len: source.len(),
            },
            source,
            index: LiveIndex::Loaded(Box::new(index)),
            end: Vec::new(),
            others: others.filter(|others| !others.is_empty()),
        };
        file.end = file.bytes_before(file.seen.len)?;
        Ok(file)
    }

    /// Reads what was appended, or everything if the file is another one. Returns whether it is another one.
    pub(super) fn update(&mut self) -> Result<bool, Error> {
        let is_same = self.seen.may_have_grown() && self.bytes_before(self.seen.len)? == self.end;
        if !is_same {
            *self = Self::open(&self.seen.disk, &self.seen.path)?;
            return Ok(true);
        }
        self.source.refresh()?;
        let len = self.source.len();
        if let LiveIndex::Loaded(_) = self.index {
            let growing = GrowingIndex::new(&self.seen.path);
            let framer = Framer::starting_at(0, DEFAULT_LINE_CAP);
            self.index = LiveIndex::Growing(Box::new((growing, framer)));
            self.seen.len = 0;
        }
        let LiveIndex::Growing(growing) = &mut self.index else {
            return Ok(false);
        };
        let (index, framer) = &mut **growing;
        let mut block = vec![0; BLOCK];
        while self.seen.len < len {
            let wanted = usize::try_from(len - self.seen.len)
                .unwrap_or(BLOCK)
                .min(BLOCK);
            let read = self.source.read_at(self.seen.len, &mut block[..wanted])?;
            if read == 0 {
                break;
            }
            let mut rest = &block[..read];
            while let Some(line) = framer.next(&mut rest) {
                index.push(line);
            }
            self.seen.len += read as u64;
        }
        self.end = self.bytes_before(self.seen.len)?;
        Ok(false)
    }

    fn bytes_before(&self, offset: u64) -> Result<Vec<u8>, Error> {
        let len = offset.min(COMPARED as u64);
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        let read = self.source.read_at(offset - len, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }
}
