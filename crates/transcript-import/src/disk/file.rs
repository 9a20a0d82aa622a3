//! A session as an open file: its lines are written when they are read.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use transcript_storage::{Metadata, ReadFile};

use super::conversions::{Converted, io_error};
use super::home::Home;
use super::lock::lock;

/// The length of lines that are kept together, in bytes.
const BLOCK_LEN: usize = 256 << 10;

/// An open session.
#[derive(Debug)]
pub(super) struct SessionAsFile {
    home: Arc<Home>,
    /// Its path below the home folder.
    below: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    converted: Arc<Converted>,
    block: Block,
}

/// Lines that follow each other, as bytes.
#[derive(Debug, Default)]
struct Block {
    start: u64,
    bytes: Vec<u8>,
}

impl SessionAsFile {
    pub(super) fn open(home: &Arc<Home>, below: &Path) -> io::Result<Self> {
        let converted = home.convert(below)?;
        let block = Block::default();
        Ok(Self {
            home: Arc::clone(home),
            below: below.to_owned(),
            state: Mutex::new(State { converted, block }),
        })
    }
}

impl ReadFile for SessionAsFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = lock(&self.state);
        let State { converted, block } = &mut *state;
        if !block.has(offset) {
            block.load(converted, offset)?;
        }
        let from = usize::try_from(offset.saturating_sub(block.start)).unwrap_or(usize::MAX);
        let bytes = block.bytes.get(from..).unwrap_or_default();
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        Ok(count)
    }

    /// The file grows with its source: what is read afterwards is what these properties describe.
    fn metadata(&self) -> io::Result<Metadata> {
        let metadata = self.home.metadata(&self.below)?;
        let mut state = lock(&self.state);
        if metadata.len != state.converted.len() {
            state.converted = self.home.convert(&self.below)?;
            state.block = Block::default();
        }
        Ok(metadata)
    }
}

impl Block {
    fn has(&self, offset: u64) -> bool {
        (self.start..self.start + self.bytes.len() as u64).contains(&offset)
    }

    /// Loads the line at an offset, and those after it.
    fn load(&mut self, of: &Converted, offset: u64) -> io::Result<()> {
        let first = of.ends.partition_point(|end| *end <= offset);
        self.start = match first.checked_sub(1) {
            Some(before) => of.ends[before],
            None => 0,
        };
        self.bytes.clear();
        for line in first..of.ends.len() {
            of.entries.write(line, &mut self.bytes).map_err(io_error)?;
            if self.bytes.len() >= BLOCK_LEN {
                break;
            }
        }
        Ok(())
    }
}
