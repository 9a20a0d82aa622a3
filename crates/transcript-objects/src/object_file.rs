//! Objects that are open for reading.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use object_store::{GetOptions, GetRange, ObjectMeta};
use transcript_storage::{Identity, Metadata, ReadFile, TemporaryFile};

use crate::store::{Store, metadata};

/// The minimum length of a range that is read, in bytes. A request takes as long as the transfer of about as much.
const MIN_READ: u64 = 64 << 10;
/// The maximum length of a range that is read ahead, in bytes.
const MAX_READ_AHEAD: u64 = 8 << 20;

/// An object that is open for reading.
///
/// Nothing is read twice: ranges are kept, in a file without a name on this machine once there is more than one range. Ranges are
/// read ahead: at least 64 KiB, a quarter of the bytes that were read already, and twice as much each time that a read continues the one before it.
/// An object that another program replaces while it is read is an error, unless nothing of it was read yet.
pub(crate) struct ObjectFile {
    store: Arc<Store>,
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    meta: ObjectMeta,
    /// The identity that a list had, for a file that was opened without a request.
    listed: Option<Identity>,
    is_read: bool,
    /// The last range, unless it is in the file with the others.
    start: u64,
    bytes: Vec<u8>,
    /// All ranges, if there are several.
    kept: Option<KeptRanges>,
    /// The number of bytes that were read.
    read: u64,
    /// Where the last range ends, and the length of the next one, if it continues that.
    end: u64,
    ahead: u64,
}

/// Ranges of an object in a file of this machine.
struct KeptRanges {
    file: TemporaryFile,
    reader: Arc<dyn ReadFile>,
    len: u64,
    /// By where they start in the object: their lengths, and where they are in the file.
    ranges: BTreeMap<u64, (u64, u64)>,
}

impl KeptRanges {
    fn new() -> io::Result<Self> {
        let file = TemporaryFile::new()?;
        Ok(Self {
            reader: file.reader()?,
            file,
            len: 0,
            ranges: BTreeMap::new(),
        })
    }

    fn add(&mut self, start: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        let len = bytes.len() as u64;
        self.ranges.insert(start, (len, self.len));
        self.len += len;
        Ok(())
    }

    /// Reads what is kept from `offset` on, at most to the end of a range.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let Some((start, (len, at))) = self.ranges.range(..=offset).next_back() else {
            return Ok(0);
        };
        let within = offset - start;
        let left = usize::try_from(len.saturating_sub(within)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        self.reader.fill(at + within, &mut buffer[..wanted])
    }

    /// Returns where the next range after `offset` starts.
    fn next(&self, offset: u64) -> Option<u64> {
        let mut after = self.ranges.range(offset + 1..);
        after.next().map(|(start, _)| *start)
    }
}

// Without the bytes, which are part of a conversation.
impl fmt::Debug for ObjectFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectFile").field(&self.path).finish()
    }
}

impl ObjectFile {
    pub(crate) fn new(store: Arc<Store>, path: PathBuf, meta: ObjectMeta) -> Self {
        Self::of(store, path, meta, None)
    }

    /// Opens an object of which a list had these properties, and its identity.
    pub(crate) fn listed(
        store: Arc<Store>,
        path: PathBuf,
        meta: ObjectMeta,
        identity: Identity,
    ) -> Self {
        Self::of(store, path, meta, Some(identity))
    }

    fn of(store: Arc<Store>, path: PathBuf, meta: ObjectMeta, listed: Option<Identity>) -> Self {
        let state = State {
            meta,
            listed,
            is_read: false,
            start: 0,
            bytes: Vec::new(),
            kept: None,
            read: 0,
            end: 0,
            ahead: MIN_READ,
        };
        Self {
            store,
            path,
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic of another thread leaves a range that is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Copies what is kept from `offset` on.
    fn copy_kept(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let from = offset.checked_sub(self.start);
        let from = from.and_then(|from| usize::try_from(from).ok());
        let last = from.and_then(|from| self.bytes.get(from..));
        match (last.unwrap_or_default(), &self.kept) {
            ([], Some(kept)) => kept.read(offset, buffer),
            (last, _) => {
                let len = last.len().min(buffer.len());
                buffer[..len].copy_from_slice(&last[..len]);
                Ok(len)
            }
        }
    }

    /// Keeps a range. Where the machine has no room for files, only the last one is kept.
    fn keep(&mut self, start: u64, bytes: Vec<u8>) {
        let before = (self.start, std::mem::take(&mut self.bytes));
        self.read += bytes.len() as u64;
        self.end = start + bytes.len() as u64;
        if self.kept.is_none() && !before.1.is_empty() {
            self.kept = KeptRanges::new().ok();
            if let Some(kept) = &mut self.kept
                && kept.add(before.0, &before.1).is_err()
            {
                self.kept = None;
            }
        }
        let kept = self.kept.as_mut();
        if kept.is_none_or(|kept| kept.add(start, &bytes).is_err()) {
            self.kept = None;
            (self.start, self.bytes) = (start, bytes);
        }
    }

    /// Reads a range that starts at `offset`, or before it: what is near the end is read as a whole, as the index of a pack is
    /// there.
    fn read(&mut self, store: &Store, offset: u64, len: u64) -> io::Result<()> {
        let is_next = self.read > 0 && offset == self.end;
        self.ahead = if is_next {
            self.ahead * 2
        } else {
            self.read / 4
        };
        self.ahead = self.ahead.clamp(MIN_READ, MAX_READ_AHEAD);
        loop {
            let size = self.meta.size;
            if offset >= size {
                return Ok(());
            }
            let start = offset.min(size.saturating_sub(MIN_READ));
            let next = self.kept.as_ref().and_then(|kept| kept.next(offset));
            let end = offset.saturating_add(len.max(self.ahead)).min(size);
            let end = end.min(next.unwrap_or(size));
            let options = GetOptions {
                if_match: self.meta.e_tag.clone(),
                range: Some(GetRange::Bounded(start..end)),
                ..GetOptions::default()
            };
            match store.get(&self.meta.location, options) {
                Ok((meta, bytes)) => {
                    let is_first = !std::mem::replace(&mut self.is_read, true);
                    let is_same = meta.size == self.meta.size;
                    if self.listed.take().is_some() {
                        self.meta = meta;
                    }
                    if is_first && !is_same {
                        // The list that named it is older than the object.
                        continue;
                    }
                    self.keep(start, bytes);
                    return Ok(());
                }
                // The list that named it is older than the object.
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy && !self.is_read => {
                    self.meta = store.head(&self.meta.location)?;
                    self.is_read = true;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl ReadFile for ObjectFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let mut state = self.state();
        match state.copy_kept(offset, buffer)? {
            0 => {
                state.read(&self.store, offset, buffer.len() as u64)?;
                state.copy_kept(offset, buffer)
            }
            copied => Ok(copied),
        }
    }

    fn metadata(&self) -> io::Result<Metadata> {
        let state = self.state();
        let mut known = metadata(&state.meta);
        known.identity = state.listed.unwrap_or(known.identity);
        Ok(known)
    }
}
