//! The rows in the pages of a database, without its indexes and its schema: what is left of a damaged one.
//!
//! The pages are those of the database with the newest versions in its log. Rows lie in leaf pages; a long row continues in
//! pages that follow each other as a list.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use transcript_storage::{ReadFile, is_absent};

use super::files::{WAL_ENDING, beside};
use super::wal::{self, Wal};
use crate::Error;
use crate::source::Store;

const HEADER_LEN: usize = 100;
const DEFAULT_PAGE_LEN: usize = 4096;
/// The type of a leaf page of a table.
const LEAF: u8 = 13;
const LEAF_HEADER_LEN: usize = 8;
/// The largest row that is read: 256 MiB. Damaged lengths are larger.
const MAX_ROW_LEN: u64 = 256 << 20;

/// The pages of a database.
#[derive(Debug)]
pub(super) struct Pages {
    file: Arc<dyn ReadFile>,
    /// The length of the file.
    len: u64,
    log: Option<(Arc<dyn ReadFile>, Wal)>,
    page_len: usize,
    /// The bytes of a page that SQLite uses.
    usable: usize,
    count: u32,
    /// The number of pages that the file has.
    in_file: u32,
    /// The number of pages that the header of the database claims.
    claimed: u32,
}

/// What the pages of a damaged database have.
#[derive(Debug)]
pub(super) struct Index {
    /// The numbers of the pages with rows of a session, by its id.
    pub(super) pages_of: HashMap<Vec<u8>, Vec<u32>>,
    pub(super) damage: Vec<PageDamage>,
}

/// A row as it lies in a page.
pub(crate) struct StoredRow {
    pub(crate) rowid: i64,
    pub(crate) values: Vec<Value>,
}

/// A value of a row. Numbers with a fraction and bytes are not needed here.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Integer(i64),
    /// A text, as far as it can be read.
    Text(Vec<u8>),
    Other,
}

/// A damaged part of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageDamage {
    /// The page that begins at this offset of the database.
    Page(u64),
    /// The log of changes from this offset on.
    Log(u64),
    /// The end of the database is missing.
    End,
}

impl Pages {
    pub(super) fn open(store: Store<'_>, path: &Path) -> Result<Self, Error> {
        let file = store.disk.open_to_read(path).map_err(Error::at(path))?;
        let log_path = beside(path, WAL_ENDING);
        let log = match store.disk.open_to_read(&log_path) {
            Err(error) if is_absent(&error) => None,
            file => Some(file.and_then(regular).map_err(Error::at(&log_path))?),
        };
        let file = regular(file).map_err(Error::at(path))?;
        Self::new(file, log).map_err(Error::at(path))
    }

    fn new(file: Arc<dyn ReadFile>, log: Option<Arc<dyn ReadFile>>) -> io::Result<Self> {
        let len = file.metadata()?.len;
        let mut header = [0; HEADER_LEN];
        let has_header = file.fill(0, &mut header)? == HEADER_LEN;
        let log = match log {
            Some(log) => wal::read(&log, None)?.map(|wal| (log, wal)),
            None => None,
        };
        let log = log.filter(|(_, wal)| wal.page_count > 0);
        let of_header = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 1 << 16,
            len => usize::from(len),
        };
        let of_log = log.as_ref().map(|(_, wal)| wal.page_len);
        let is_known = has_header && wal::is_page_len(of_header);
        let page_len = of_log.unwrap_or(if is_known {
            of_header
        } else {
            DEFAULT_PAGE_LEN
        });
        let reserved = if is_known { usize::from(header[20]) } else { 0 };
        let in_file = u32::try_from(len.div_ceil(page_len as u64)).unwrap_or(u32::MAX);
        let in_log = log.as_ref().map_or(0, |(_, wal)| wal.page_count);
        let claimed = u32::from_be_bytes([header[28], header[29], header[30], header[31]]);
        Ok(Self {
            file,
            len,
            log,
            page_len,
            usable: page_len - reserved,
            count: in_file.max(in_log),
            in_file,
            claimed: if is_known { claimed } else { 0 },
        })
    }

    /// Returns the length of the database in bytes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn page_len(&self) -> u64 {
        self.page_len as u64
    }

    /// Reads all pages once: where the rows of each session are, of which `session_of` returns the id, and what is damaged.
    pub(super) fn index(
        &self,
        session_of: impl Fn(&[Value]) -> Option<&[u8]>,
    ) -> io::Result<Index> {
        let mut pages_of: HashMap<Vec<u8>, Vec<u32>> = HashMap::new();
        let mut damage = Vec::new();
        let at = self.log.as_ref().and_then(|(_, wal)| wal.damaged_at);
        damage.extend(at.map(PageDamage::Log));
        let free = self.free_pages()?;
        let mut page = Vec::new();
        let mut left = self.budget();
        for number in self.numbers() {
            self.read(number, &mut page)?;
            let is_whole = self.leaf(number, &page, &mut left, &mut |row| {
                let Some(session) = session_of(&row.values) else {
                    return;
                };
                match pages_of.get_mut(session) {
                    Some(pages) if pages.last() == Some(&number) => {}
                    Some(pages) => pages.push(number),
                    None => drop(pages_of.insert(session.to_owned(), vec![number])),
                }
            })?;
            let offset = u64::from(number - 1) * self.page_len as u64;
            if !is_whole && offset < self.len && !free.contains(&number) {
                damage.push(PageDamage::Page(offset));
            }
        }
        if self.count < self.claimed {
            damage.push(PageDamage::End);
        }
        Ok(Index { pages_of, damage })
    }

    /// Calls `take` with each row in some pages, in their order.
    pub(super) fn rows(&self, pages: &[u32], take: &mut impl FnMut(StoredRow)) -> io::Result<()> {
        let mut page = Vec::new();
        let mut left = self.budget();
        for number in pages {
            self.read(*number, &mut page)?;
            self.leaf(*number, &page, &mut left, take)?;
        }
        Ok(())
    }

    /// Returns the numbers of the pages that are somewhere: a log can claim any number of pages.
    fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        let of_log = self.log.iter().flat_map(|(_, wal)| wal.pages.keys());
        let beyond = of_log.copied().filter(|number| *number > self.in_file);
        let beyond: BTreeSet<u32> = beyond.filter(|number| *number <= self.count).collect();
        (1..=self.in_file.min(self.count)).chain(beyond)
    }

    /// Returns how many bytes all rows may have: they share none, except with old versions.
    fn budget(&self) -> u64 {
        const MAX_VERSIONS: u64 = 16;
        let pages = self.numbers().count() as u64;
        pages * self.page_len as u64 * MAX_VERSIONS
    }

    /// Returns the pages that are not in use, as far as their list can be read. They may be empty, and may hold older rows.
    fn free_pages(&self) -> io::Result<HashSet<u32>> {
        let mut free = HashSet::new();
        let mut page = Vec::new();
        self.read(1, &mut page)?;
        let number = |page: &[u8], at: usize| match page.get(at..at + 4) {
            Some(bytes) => u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            None => 0,
        };
        let mut next = number(&page, 32);
        // Each page of the list names others, so a circle ends at the first page that is known.
        while next != 0 && next <= self.count && free.insert(next) {
            self.read(next, &mut page)?;
            let count = number(&page, 4) as usize;
            let most = page.len() / 4 - 2;
            free.extend((0..count.min(most)).map(|at| number(&page, 8 + 4 * at)));
            next = number(&page, 0);
        }
        Ok(free)
    }

    /// Reads a page; what is missing at its end becomes zeros.
    fn read(&self, number: u32, page: &mut Vec<u8>) -> io::Result<()> {
        page.clear();
        page.resize(self.page_len, 0);
        let of_log = self.log.as_ref().and_then(|(file, wal)| {
            let offset = wal.pages.get(&number)?;
            Some((file, *offset))
        });
        let of_file = u64::from(number - 1) * self.page_len as u64;
        let (file, offset) = of_log.unwrap_or((&self.file, of_file));
        file.fill(offset, page)?;
        Ok(())
    }

    /// Takes the rows of a page, if it is a leaf of a table. Returns `false` when the page is damaged. `left` is how many bytes of
    /// rows may still be read.
    fn leaf(
        &self,
        number: u32,
        page: &[u8],
        left: &mut u64,
        take: &mut impl FnMut(StoredRow),
    ) -> io::Result<bool> {
        let start = if number == 1 { HEADER_LEN } else { 0 };
        if page[start] != LEAF {
            return Ok(page.iter().any(|byte| *byte != 0));
        }
        let cells = usize::from(u16::from_be_bytes([page[start + 3], page[start + 4]]));
        let mut is_whole = true;
        let mut offsets = HashSet::new();
        for cell in 0..cells {
            let at = start + LEAF_HEADER_LEN + 2 * cell;
            let pointer = page.get(at..at + 2);
            let offset = pointer.map(|at| usize::from(u16::from_be_bytes([at[0], at[1]])));
            // Each row has a place of its own.
            let offset = offset.filter(|offset| offsets.insert(*offset));
            let bytes = offset.and_then(|offset| page.get(offset..self.usable));
            match bytes
                .map(|bytes| self.cell(bytes, left))
                .transpose()?
                .flatten()
            {
                Some(row) => take(row),
                None => is_whole = false,
            }
        }
        Ok(is_whole)
    }

    /// Reads a row; `None` when no row begins with these bytes.
    fn cell(&self, mut bytes: &[u8], left: &mut u64) -> io::Result<Option<StoredRow>> {
        let (Some(len), Some(rowid)) = (varint(&mut bytes), varint(&mut bytes)) else {
            return Ok(None);
        };
        if len > MAX_ROW_LEN {
            return Ok(None);
        }
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let local = self.local_len(len);
        let Some(start) = bytes.get(..local) else {
            return Ok(None);
        };
        // Rows do not overlap either.
        if *left == 0 {
            return Ok(None);
        }
        *left = left.saturating_sub(local as u64);
        let mut payload = start.to_vec();
        if local < len {
            let Some(next) = bytes.get(local..local + 4) else {
                return Ok(None);
            };
            let next = u32::from_be_bytes([next[0], next[1], next[2], next[3]]);
            self.follow(next, len, left, &mut payload)?;
        }
        let values = values(&payload);
        Ok(values.map(|values| StoredRow {
            rowid: rowid.cast_signed(),
            values,
        }))
    }

    /// Returns how many bytes of a row lie in its own page.
    fn local_len(&self, len: usize) -> usize {
        let most = self.usable - 35;
        if len <= most {
            return len;
        }
        let least = (self.usable - 12) * 32 / 255 - 23;
        let local = least + (len - least) % (self.usable - 4);
        if local <= most { local } else { least }
    }

    /// Appends the rest of a row, up to the first page that is not there.
    fn follow(
        &self,
        mut next: u32,
        len: usize,
        left: &mut u64,
        payload: &mut Vec<u8>,
    ) -> io::Result<()> {
        let mut page = Vec::new();
        // Each page takes from what is left, so a list in a circle ends as well.
        while payload.len() < len && next != 0 && next <= self.count && *left > 0 {
            *left = left.saturating_sub(self.page_len as u64);
            self.read(next, &mut page)?;
            next = u32::from_be_bytes([page[0], page[1], page[2], page[3]]);
            let part = &page[4..self.usable];
            let part = &part[..part.len().min(len - payload.len())];
            payload.extend_from_slice(part);
        }
        Ok(())
    }
}

/// Refuses what is not a regular file: it has no bytes at an offset.
fn regular(file: Arc<dyn ReadFile>) -> io::Result<Arc<dyn ReadFile>> {
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    let reason = "not a regular file";
    Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
}

/// Reads the values of a row; `None` when its head is damaged. A value whose bytes are missing in part is cut.
fn values(payload: &[u8]) -> Option<Vec<Value>> {
    const MAX_COLUMNS: usize = 2000;
    let mut head = payload;
    let head_len = usize::try_from(varint(&mut head)?).ok()?;
    let mut head = payload.get(payload.len() - head.len()..head_len)?;
    let mut body = payload.get(head_len..)?;
    let mut values = Vec::new();
    while !head.is_empty() {
        let kind = varint(&mut head)?;
        let len = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            _ => (kind - 12) / 2,
        };
        let len = usize::try_from(len).ok()?;
        let (bytes, rest) = body.split_at(len.min(body.len()));
        body = rest;
        values.push(match kind {
            8 => Value::Integer(0),
            9 => Value::Integer(1),
            1..=6 => Value::Integer(integer(bytes)),
            13.. if kind % 2 == 1 => Value::Text(bytes.to_vec()),
            _ => Value::Other,
        });
        if values.len() > MAX_COLUMNS {
            return None;
        }
    }
    Some(values)
}

fn integer(bytes: &[u8]) -> i64 {
    let sign = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let start = if sign { -1 } else { 0 };
    bytes.iter().fold(start, |number: i64, byte| {
        number.wrapping_shl(8) | i64::from(*byte)
    })
}

/// Takes a number of up to nine bytes.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for at in 0..9 {
        let byte = *bytes.get(at)?;
        if at == 8 {
            number = number << 8 | u64::from(byte);
        } else {
            number = number << 7 | u64::from(byte & 0x7f);
        }
        if byte & 0x80 == 0 || at == 8 {
            *bytes = &bytes[at + 1..];
            return Some(number);
        }
    }
    None
}
