//! The search of a file, in pieces and by several threads.
//!
//! A line of up to [`MAX_WHOLE_LINE_LEN`] bytes is searched as a whole. A longer one is searched in pieces with some text around
//! each, so that memory does not grow with the length of a line. A secret that continues where its piece ends, such as a
//! key of any length, is followed from there.

use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::{memchr, memchr_iter};
use transcript_storage::parallel::{self, Limits};

use crate::search::{Person, Search, Secret};
use crate::view::View;
use crate::{keys, search};

/// The size of the pieces in which a file is searched, in bytes.
const PIECE_LEN: u64 = 1 << 20;
/// The maximum length of a line that is always searched as a whole, in bytes. Longer lines may be searched in pieces.
const MAX_WHOLE_LINE_LEN: u64 = 64 << 10;
/// The number of bytes that are read before a piece of a long line, and after it.
const CONTEXT_BEFORE_LEN: u64 = 8 << 10;
const CONTEXT_AFTER_LEN: u64 = 8 << 10;

/// A secret in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Located {
    /// Its kind for people, such as `GitHub token`.
    pub kind: &'static str,
    /// The number of the line, from 1.
    pub line: u64,
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Whether it is a number of JSON, which has no quotes: its mask needs them.
    pub is_bare: bool,
}

impl Located {
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.len
    }
}

/// The secrets of a file, by offset, and the counts of the search.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Scan {
    /// The secrets, which do not overlap.
    pub secrets: Vec<Located>,
    /// Values that look like secrets, and are left.
    pub left: Vec<Located>,
    /// The number of e-mail addresses that are left.
    pub emails: u64,
    /// The number of names in paths that are left.
    pub homes: u64,
    /// The number of line feeds in the searched bytes.
    pub lines: u64,
    /// The number of bytes that were searched.
    pub bytes: u64,
}

/// A file, or whatever else has bytes at offsets.
pub trait Bytes: Sync {
    /// Reads bytes from an offset on, up to the end of the buffer or of the file. Returns their number.
    ///
    /// # Errors
    /// When the system fails to read.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl<F: Fn(u64, &mut [u8]) -> io::Result<usize> + Sync> Bytes for F {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self(offset, buffer)
    }
}

/// The content type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// JSON Lines: nothing goes from one line to the next.
    Lines,
    /// Text, in which a secret can have several lines.
    Text,
}

impl Content {
    /// Returns the content type of a file of this name.
    #[must_use]
    pub fn of(path: &std::path::Path) -> Self {
        let is_lines = path
            .extension()
            .is_some_and(|end| end.eq_ignore_ascii_case("jsonl"));
        if is_lines { Self::Lines } else { Self::Text }
    }
}

/// Options of the search of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'o> {
    /// The content type of the file.
    pub(crate) content: Content,
    /// The number of threads, as for [`parallel::threads`].
    pub(crate) threads: Option<NonZeroUsize>,
    /// Counts the bytes that were searched.
    pub(crate) counter: Option<&'o AtomicU64>,
}

/// Searches the bytes of a file between two offsets, the first of which starts a line.
pub(crate) fn scan(
    search: &Search,
    file: &dyn Bytes,
    range: Range<u64>,
    options: Options<'_>,
) -> io::Result<Scan> {
    let pieces =
        usize::try_from((range.end - range.start).div_ceil(PIECE_LEN)).unwrap_or(usize::MAX);
    let limits = Limits {
        threads: match pieces {
            // Starting threads costs more than searching a few megabytes.
            0..4 => Some(NonZeroUsize::MIN),
            _ => options.threads,
        },
        ..Limits::default()
    };
    let maker = || {
        let mut reader = Reader {
            search,
            file,
            range: range.clone(),
            buffer: Vec::new(),
            view: view_of(options.content),
            is_text: options.content == Content::Text,
        };
        let range = &range;
        move |number| {
            let piece = reader.piece(number as u64);
            if let Some(counter) = options.counter {
                let start = range.start + number as u64 * PIECE_LEN;
                counter.fetch_add(PIECE_LEN.min(range.end - start), Ordering::Relaxed);
            }
            piece
        }
    };
    let mut found = Vec::with_capacity(pieces);
    // In order, since the lines of a piece count from the end of the one before.
    parallel::in_order_within(limits, 0..pieces, maker, |_, piece| {
        found.push(piece?);
        io::Result::Ok(())
    })?;
    joined(file, range, found, options.content)
}

fn view_of(content: Content) -> View {
    match content {
        Content::Lines => View::default(),
        Content::Text => View::of_text(),
    }
}

/// The secrets of a piece; the lines count from its start.
#[derive(Debug, Default)]
struct Piece {
    feeds: u64,
    secrets: Vec<(Located, Option<OpenSecret>)>,
    left: Vec<Located>,
    emails: u64,
    homes: u64,
}

/// The kind of a secret that continues after the end of its piece.
#[derive(Clone, Copy, Debug)]
enum OpenSecret {
    /// A private key.
    Key,
    /// A value in quotes: the quote, and how deep it is escaped.
    Quoted(u8, usize),
}

/// Puts the pieces together: counts the lines, and joins secrets that overlap or continue.
fn joined(
    file: &dyn Bytes,
    range: Range<u64>,
    pieces: Vec<Piece>,
    content: Content,
) -> io::Result<Scan> {
    let mut scan = Scan {
        bytes: range.end - range.start,
        ..Scan::default()
    };
    let mut found = Vec::new();
    for piece in pieces {
        let before = scan.lines + 1;
        found.extend(piece.secrets.into_iter().map(|(secret, open)| {
            (
                Located {
                    line: secret.line + before,
                    ..secret
                },
                open,
            )
        }));
        scan.left.extend(piece.left.into_iter().map(|left| Located {
            line: left.line + before,
            ..left
        }));
        scan.emails += piece.emails;
        scan.homes += piece.homes;
        scan.lines += piece.feeds;
    }
    found.sort_by_key(|(secret, _)| secret.offset);
    for (mut secret, open) in found {
        if let Some(open) = open {
            // The start of a key or of a value in quotes was seen; all of it up to its end must be masked.
            secret.len = end_of(file, secret.end(), range.end, open, content)? - secret.offset;
        }
        match scan.secrets.last_mut() {
            Some(last) if secret.offset < last.end() => {
                // Two pieces saw parts of the same secret.
                last.len = last.end().max(secret.end()) - last.offset;
            }
            _ => scan.secrets.push(secret),
        }
    }
    let secrets = &scan.secrets;
    // A value that looked like a secret can turn out to be inside of one that continues.
    scan.left.retain(|left| {
        let next = secrets.partition_point(|secret| secret.end() <= left.offset);
        secrets
            .get(next)
            .is_none_or(|secret| secret.offset >= left.end())
    });
    Ok(scan)
}

/// Returns where a secret ends that continues at `at`.
fn end_of(
    file: &dyn Bytes,
    at: u64,
    limit: u64,
    open: OpenSecret,
    content: Content,
) -> io::Result<u64> {
    let mut at = at;
    let mut view = view_of(content);
    let mut buffer = Vec::new();
    while at < limit {
        let wanted = PIECE_LEN.min(limit - at);
        buffer.resize(usize::try_from(wanted).unwrap_or(usize::MAX), 0);
        let read = file.read(at, &mut buffer)?;
        let bytes = &buffer[..read];
        let line = match content {
            Content::Lines => memchr(b'\n', bytes).unwrap_or(read),
            Content::Text => read,
        };
        view.decode(&bytes[..line]);
        let (end, is_whole) = match open {
            OpenSecret::Key => keys::rest(&view),
            OpenSecret::Quoted(quote, depth) => search::rest_of_value(&view, quote, depth),
        };
        let end = at + view.raw(&(0..end)).end as u64;
        // Ends with the line as well, as no secret of JSON Lines goes over it.
        if is_whole || line < read || read == 0 || end == at {
            return Ok(end);
        }
        at = end;
    }
    Ok(at)
}

/// Reads and searches pieces.
struct Reader<'r> {
    search: &'r Search,
    file: &'r dyn Bytes,
    range: Range<u64>,
    buffer: Vec<u8>,
    view: View,
    is_text: bool,
}

impl Reader<'_> {
    /// Searches the piece with this number.
    fn piece(&mut self, number: u64) -> io::Result<Piece> {
        let start = self.range.start + number * PIECE_LEN;
        let end = (start + PIECE_LEN).min(self.range.end);
        // The line at either end belongs to the piece that it starts in, unless it is long.
        let from = start
            .saturating_sub(CONTEXT_BEFORE_LEN)
            .max(self.range.start);
        let to = (end + MAX_WHOLE_LINE_LEN).min(self.range.end);
        self.buffer
            .resize(usize::try_from(to - from).unwrap_or(usize::MAX), 0);
        let read = self.file.read(from, &mut self.buffer)?;
        let bytes = &self.buffer[..read];
        let local = |offset: u64| usize::try_from(offset - from).map_or(read, |at| at.min(read));
        let boundary = |at: usize, is_end: bool| {
            let near = &bytes[at..read.min(at + MAX_WHOLE_LINE_LEN as usize)];
            match memchr(b'\n', near) {
                _ if is_end || self.is_text => at,
                Some(feed) => at + feed + 1,
                None => at,
            }
        };
        let own_start = boundary(local(start), start == self.range.start);
        let own_end = boundary(local(end), end == self.range.end).max(own_start);
        let is_last = from + read as u64 >= self.range.end;
        let bytes = std::mem::take(&mut self.buffer);
        let mut piece = Piece::default();
        let mut at = own_start;
        while at < own_end {
            let feed = if self.is_text {
                None
            } else {
                memchr(b'\n', &bytes[at..read]).map(|feed| at + feed)
            };
            let line_end = feed.unwrap_or(read);
            let own = at..own_end.min(line_end);
            // Of a long line, and of text, the search needs the context before and after the piece.
            let start = match at == own_start {
                true if self.is_text => 0,
                true => memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |feed| feed + 1),
                false => at,
            };
            let end = line_end.min(own.end + CONTEXT_AFTER_LEN as usize);
            let continues = end < line_end || feed.is_none() && !is_last;
            at = own.end + 1;
            let part = LinePart {
                text: &bytes[start..end],
                offset: from + start as u64,
                own: own.start - start..own.end - start,
                continues,
            };
            self.part(&part, &mut piece);
            piece.feeds += u64::from(feed.is_some_and(|feed| feed < own_end));
        }
        if self.is_text {
            piece.feeds = memchr_iter(b'\n', &bytes[own_start..own_end]).count() as u64;
        }
        self.buffer = bytes;
        Ok(piece)
    }

    /// Searches a line, or a part of a long one or of a text.
    fn part(&mut self, part: &LinePart<'_>, piece: &mut Piece) {
        let found = self.search.find(part.text, &mut self.view);
        let located = |secret: &Secret| {
            let start = secret.range.start;
            let before = &part.text[part.own.start.min(start)..start];
            let feeds = if self.is_text {
                memchr_iter(b'\n', before).count() as u64
            } else {
                piece.feeds
            };
            Located {
                kind: secret.kind,
                line: feeds,
                offset: part.offset + start as u64,
                len: secret.range.len() as u64,
                is_bare: secret.is_bare,
            }
        };
        for secret in &found.secrets {
            let range = &secret.range;
            let is_own = part.own.contains(&range.start);
            // One that starts before may not have been found there.
            if is_own || range.start < part.own.start && range.end > part.own.start {
                let is_open = is_own && part.continues && range.end == part.text.len();
                let open = is_open.then(|| open(&self.view, secret)).flatten();
                piece.secrets.push((located(secret), open));
            }
        }
        let left = found.left.iter();
        // Counts are of the own part only: the piece next to it sees the same text as context.
        let left = left.filter(|secret| part.own.contains(&secret.range.start));
        piece.left.extend(left.map(located));
        for (person, _) in found.people.iter().filter(|(_, at)| part.own.contains(at)) {
            match person {
                Person::Email => piece.emails += 1,
                Person::Home => piece.homes += 1,
            }
        }
    }
}

/// A line, or a part of a long one or of a text.
struct LinePart<'b> {
    /// Its bytes, with some before and behind it.
    text: &'b [u8],
    /// Their offset in the file.
    offset: u64,
    /// The bytes of this part without the context around it.
    own: Range<usize>,
    /// Whether the line continues behind the bytes.
    continues: bool,
}

/// Returns how a secret continues that reaches the end of the text that was searched.
fn open(view: &View, secret: &Secret) -> Option<OpenSecret> {
    if secret.kind == keys::PRIVATE_KEY_KIND {
        return Some(OpenSecret::Key);
    }
    search::open_quote(view, secret.range.start)
        .map(|(quote, depth)| OpenSecret::Quoted(quote, depth))
}
