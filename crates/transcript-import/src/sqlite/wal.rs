//! The log of changes beside a database: which of its frames count.
//!
//! A frame is a new version of one page. SQLite uses frames up to the last one that ends a change, and stops at the first one
//! whose sum is wrong; the changes after it are lost to SQLite, and not to a reader of what lies there.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use transcript_storage::ReadFile;

pub(super) const HEADER_LEN: usize = 32;
const FRAME_HEADER_LEN: usize = 24;

/// The frames of a log that count.
#[derive(Debug)]
pub(super) struct Wal {
    pub(super) page_len: usize,
    /// The offset of the newest version of each page, by its number.
    pub(super) pages: HashMap<u32, u64>,
    /// The number of pages of the database after the last change; 0 without one.
    pub(super) page_count: u32,
    /// The offset of the first frame whose sum is wrong, if complete changes follow it.
    pub(super) damaged_at: Option<u64>,
    /// From where later changes can be read; `None` when SQLite sees no change, now or later.
    pub(super) end: Option<End>,
}

/// The end of the last change that SQLite sees.
#[derive(Clone, Debug)]
pub(super) struct End {
    /// The first bytes of the log, which has others after it began again.
    pub(super) header: [u8; HEADER_LEN],
    offset: u64,
    sum: [u32; 2],
}

/// Reads a log, or what it has after the end of a change; `None` when it has no header, or has begun again after that change.
pub(super) fn read(file: &Arc<dyn ReadFile>, after: Option<&End>) -> io::Result<Option<Wal>> {
    let mut header = [0; HEADER_LEN];
    let page_len = match file.fill(0, &mut header)? {
        HEADER_LEN => number(&header, 8) as usize,
        _ => return Ok(None),
    };
    let is_other = after.is_some_and(|after| after.header != header);
    if is_other || !is_page_len(page_len) {
        return Ok(None);
    }
    let mut log = Log::new(page_len, header);
    if let Some(after) = after {
        log.end = after.clone();
    }
    log.sum = log.end.sum;
    let mut offset = log.end.offset;
    let mut frame = vec![0; FRAME_HEADER_LEN + page_len];
    let len = file.metadata()?.len;
    while offset + frame.len() as u64 <= len {
        // After a wrong sum no sum can be right. What follows is mostly what is left of an earlier log: its heads are enough.
        let wanted = match log.wrong {
            None => &mut frame[..],
            Some(_) => &mut frame[..FRAME_HEADER_LEN],
        };
        if file.fill(offset, wanted)? < wanted.len() {
            break;
        }
        log.frame(offset, wanted);
        offset += frame.len() as u64;
    }
    Ok(Some(log.finish()))
}

/// A log while it is read.
struct Log {
    page_len: usize,
    is_big_endian: bool,
    /// Changes with every reset of the log; frames with another one are older.
    salts: [u8; 8],
    sum: [u32; 2],
    end: End,
    frames: Vec<Frame>,
    /// The number of frames up to the last change that SQLite sees.
    seen: usize,
    /// Whether the sum of the header is right; without it SQLite ignores the log.
    has_header: bool,
    /// The first frame whose sum is wrong: its offset, and the number of frames before it.
    wrong: Option<(u64, usize)>,
}

struct Frame {
    page: u32,
    offset: u64,
    /// The number of pages of the database, in a frame that ends a change; 0 in others.
    page_count: u32,
}

impl Log {
    fn new(page_len: usize, header: [u8; HEADER_LEN]) -> Self {
        let mut log = Self {
            page_len,
            is_big_endian: header[3] & 1 == 1,
            salts: array(&header, 16),
            sum: [0; 2],
            end: End {
                header,
                offset: HEADER_LEN as u64,
                sum: [0; 2],
            },
            frames: Vec::new(),
            seen: 0,
            has_header: true,
            wrong: None,
        };
        log.sum = log.sum_of(&header[..24]);
        log.end.sum = log.sum;
        if !log.is_sum(&header, 24) {
            log.has_header = false;
            log.wrong = Some((0, 0));
        }
        log
    }

    fn frame(&mut self, offset: u64, frame: &[u8]) {
        if self.wrong.is_none() {
            let sum = self.sum;
            self.sum = self.sum_of(&frame[..8]);
            self.sum = self.sum_of(&frame[FRAME_HEADER_LEN..]);
            let is_right = self.is_sum(frame, 16) && array(frame, 8) == self.salts;
            if !is_right {
                self.sum = sum;
                self.wrong = Some((offset, self.frames.len()));
            }
        }
        let page = number(frame, 0);
        if page == 0 || array(frame, 8) != self.salts {
            return;
        }
        self.frames.push(Frame {
            page,
            offset: offset + FRAME_HEADER_LEN as u64,
            page_count: number(frame, 4),
        });
        let is_end = number(frame, 4) != 0;
        if is_end && self.wrong.is_none() {
            self.seen = self.frames.len();
            self.end.offset = offset + (FRAME_HEADER_LEN + self.page_len) as u64;
            self.end.sum = self.sum;
        }
    }

    fn finish(mut self) -> Wal {
        let last = self.frames.iter().rposition(|frame| frame.page_count != 0);
        let last = last.map_or(0, |last| last + 1);
        // Without a change after it, a wrong sum is that of a frame that was being written.
        let wrong = self.wrong.filter(|(_, frames)| last > *frames);
        let counted = if wrong.is_some() { last } else { self.seen };
        self.frames.truncate(counted);
        Wal {
            page_len: self.page_len,
            pages: self
                .frames
                .iter()
                .map(|frame| (frame.page, frame.offset))
                .collect(),
            page_count: self.frames.last().map_or(0, |frame| frame.page_count),
            damaged_at: wrong.map(|(offset, _)| offset),
            end: self.has_header.then_some(self.end),
        }
    }

    /// Returns the sum so far with these bytes added.
    fn sum_of(&self, bytes: &[u8]) -> [u32; 2] {
        let [mut first, mut second] = self.sum;
        for pair in bytes.chunks_exact(8) {
            let word = |at| {
                let word: [u8; 4] = array(pair, at);
                if self.is_big_endian {
                    u32::from_be_bytes(word)
                } else {
                    u32::from_le_bytes(word)
                }
            };
            first = first.wrapping_add(word(0)).wrapping_add(second);
            second = second.wrapping_add(word(4)).wrapping_add(first);
        }
        [first, second]
    }

    fn is_sum(&self, bytes: &[u8], at: usize) -> bool {
        self.sum == [number(bytes, at), number(bytes, at + 4)]
    }
}

/// Returns bytes at a place that is within the bytes.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

/// Returns whether a page of a database can have this length in bytes.
pub(super) fn is_page_len(len: usize) -> bool {
    len.is_power_of_two() && (512..=1 << 16).contains(&len)
}
