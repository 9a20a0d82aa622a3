//! JSON that stays in the file it was read from, so that a long conversation need not be in memory.

use std::fmt;
use std::hash::BuildHasher;
use std::io;
use std::sync::{Arc, LazyLock, OnceLock};

use hashbrown::DefaultHashBuilder;
use transcript_format::scan::utf8;

use super::estimate::TokenEstimate;

/// The minimum length of JSON that stays in the file, in bytes. The location of one takes as much memory as the
/// JSON of a short block.
pub(super) const MIN_STORED_LEN: usize = 256;
/// The number of bytes that are read ahead.
pub(super) const READ_AHEAD: usize = 256 << 10;

/// A file that the JSON of blocks can be read from again.
pub trait BlockStore: fmt::Debug + Send + Sync {
    /// Fills `buffer` from `offset` on. Returns the number of bytes read, which is smaller than the
    /// buffer only at the end.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Called when JSON is needed that is lost: it cannot be read, or is not the same any more.
    /// The block then reads as `null`, and the request must not be used.
    fn lost(&self);
}

/// The place of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockLocation<'s> {
    /// The file that contains it.
    pub store: &'s Arc<dyn BlockStore>,
    /// The offset of its first byte. Another text at that offset counts as lost.
    pub offset: u64,
}

/// The JSON of a block that is in a file.
#[derive(Clone)]
pub(super) struct Stored {
    store: Arc<dyn BlockStore>,
    offset: u64,
    len: usize,
    /// Shows whether the file still has the same bytes there.
    hash: u64,
    /// Made when the text was read, so that it need not be read again.
    estimate: TokenEstimate,
    /// The text, if a pass looked at it.
    text: OnceLock<Box<str>>,
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored")
            .field("offset", &self.offset)
            .field("len", &self.len)
            .field("text", &self.text.get())
            .finish_non_exhaustive()
    }
}

impl Stored {
    pub(super) fn new(text: &str, estimate: TokenEstimate, place: BlockLocation<'_>) -> Self {
        Self {
            store: Arc::clone(place.store),
            offset: place.offset,
            len: text.len(),
            hash: hash(text.as_bytes()),
            estimate,
            text: OnceLock::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the text was read and kept.
    pub(super) fn is_in_memory(&self) -> bool {
        self.text.get().is_some()
    }

    pub(super) fn estimate(&self) -> TokenEstimate {
        self.estimate
    }

    /// Returns the text, and keeps it from then on.
    pub(super) fn text(&self) -> &str {
        self.text.get_or_init(|| {
            let mut reader = StoredReader::default();
            match reader.read(self, 0) {
                Ok(text) => text.into(),
                Err(_) => {
                    self.store.lost();
                    "null".into()
                }
            }
        })
    }
}

fn hash(bytes: &[u8]) -> u64 {
    static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);
    HASHER.hash_one(bytes)
}

/// Reads the JSON of blocks that are in a file, one after the other, without keeping it.
#[derive(Debug, Default)]
pub struct StoredReader {
    buffer: Vec<u8>,
    /// The file and the offset from which `buffer` was read.
    read: Option<(Arc<dyn BlockStore>, u64)>,
}

impl StoredReader {
    /// Returns the text of a stored block. Reads at least `min_len` bytes if it is not in the buffer.
    pub(super) fn read(&mut self, stored: &Stored, min_len: usize) -> io::Result<&str> {
        let read = self.read.as_ref().and_then(|(store, start)| {
            let from = usize::try_from(stored.offset.checked_sub(*start)?).ok()?;
            let is_in = Arc::ptr_eq(store, &stored.store)
                && from.checked_add(stored.len)? <= self.buffer.len();
            is_in.then_some(from)
        });
        let from = match read {
            Some(from) => from,
            None => {
                self.buffer.resize(stored.len.max(min_len), 0);
                let read = stored.store.read_at(stored.offset, &mut self.buffer)?;
                self.buffer.truncate(read);
                self.read = Some((Arc::clone(&stored.store), stored.offset));
                0
            }
        };
        let bytes = self.buffer.get(from..from + stored.len).unwrap_or_default();
        match utf8(bytes) {
            Some(text) if hash(bytes) == stored.hash => Ok(text),
            _ => Err(io::Error::other("the file was changed while it was read")),
        }
    }
}
