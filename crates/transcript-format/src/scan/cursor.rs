//! Walks the tokens of one line of JSON, left to right, without recursion.

use std::ops::Range;

use super::error::{ScanError, ScanErrorKind};
use super::simd::{BlockCarry, Quotes, WINDOW, index};
use super::text::Text;

/// The maximum nesting depth, the same as that of `serde_json`.
const MAX_DEPTH: u32 = 127;

type ScanResult<T = ()> = Result<T, ScanError>;

/// The place of the content of a string in its line. Lines are shorter than 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(super) fn new(start: usize, end: usize) -> Self {
        Self {
            start: start as u32,
            end: end as u32,
        }
    }

    pub(super) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    #[inline(always)]
    pub(super) fn of(self, line: &[u8]) -> &[u8] {
        &line[self.start as usize..self.end as usize]
    }

    #[inline(always)]
    pub(super) fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// Buffers of a scan; reused from line to line.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    quotes: Quotes,
    /// Whether to avoid instructions beyond the build's baseline.
    pub(super) plain: bool,
}

/// A position in a line, and the quotes of the window that was indexed last.
pub(super) struct Cursor<'l, 's> {
    line: &'l [u8],
    /// The next byte to read. Never inside a string.
    pos: usize,
    scratch: &'s mut Scratch,
    /// The next quote to use, as an index into those of the window.
    next_quote: usize,
    /// The start of the next window.
    next_window: usize,
    carry: BlockCarry,
    /// The first byte that is not allowed in a string, in the windows so far.
    fault: Option<ScanError>,
}

impl<'l, 's> Cursor<'l, 's> {
    pub(super) fn new(line: &'l [u8], scratch: &'s mut Scratch) -> Self {
        scratch.quotes.len = 0;
        let mut cursor = Self {
            line,
            pos: 0,
            scratch,
            next_quote: 0,
            next_window: 0,
            carry: BlockCarry::default(),
            fault: None,
        };
        cursor.index_window();
        cursor
    }

    /// Indexes the next window. Returns false if there is none.
    fn index_window(&mut self) -> bool {
        let start = self.next_window;
        if start >= self.line.len() {
            return false;
        }
        let Scratch { quotes, plain } = &mut *self.scratch;
        let fault = index(self.line, start, &mut self.carry, quotes, *plain);
        self.fault = self.fault.or(fault);
        self.next_quote = 0;
        self.next_window += WINDOW;
        true
    }

    /// Consumes the next quote that opens or closes a string, and returns its position.
    #[inline(always)]
    fn take_quote(&mut self) -> Option<usize> {
        while self.next_quote == self.scratch.quotes.len {
            if !self.index_window() {
                return None;
            }
        }
        let place = self.scratch.quotes.get(self.next_quote);
        self.next_quote += 1;
        Some(place as usize)
    }

    /// Returns whether a lone surrogate or a NUL escape has been seen so far.
    #[inline(always)]
    pub(super) fn odd_escapes(&self) -> (bool, bool) {
        let is_passed = |at: Option<u32>| at.is_some_and(|at| (at as usize) < self.pos);
        let odd = self.carry.odd;
        (is_passed(odd.lone_surrogate), is_passed(odd.nul))
    }

    #[inline(always)]
    pub(super) fn pos(&self) -> usize {
        self.pos
    }

    /// Returns the next byte, 0 at the end of the line. No token starts with 0.
    #[inline(always)]
    pub(super) fn peek(&self) -> u8 {
        self.line.get(self.pos).copied().unwrap_or(0)
    }

    #[inline(always)]
    pub(super) fn skip_space(&mut self) {
        // Fast path: writers put no white space between tokens.
        if self.peek() <= b' ' {
            self.skip_run_of_space();
        }
    }

    #[cold]
    fn skip_run_of_space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n') {
            self.pos += 1;
        }
    }

    #[inline(always)]
    pub(super) fn expect(&mut self, byte: u8) -> ScanResult {
        if self.peek() != byte {
            return Err(self.unexpected());
        }
        self.pos += 1;
        Ok(())
    }

    #[cold]
    pub(super) fn unexpected(&self) -> ScanError {
        let at_end = self.pos >= self.line.len();
        let kind = if at_end {
            ScanErrorKind::Incomplete
        } else {
            ScanErrorKind::Syntax
        };
        ScanError { kind, at: self.pos }
    }

    /// Reads a string; the next byte must be its opening quote.
    #[inline(always)]
    pub(super) fn string(&mut self) -> ScanResult<Span> {
        if self.peek() != b'"' {
            return Err(self.unexpected());
        }
        // All quotes before this one are consumed, so the next quote is this one.
        let open = self.take_quote();
        debug_assert_eq!(open, Some(self.pos));
        let start = self.pos + 1;
        let Some(end) = self.take_quote() else {
            return Err(self.endless_string());
        };
        // A window is checked as a whole, so the fault may be in a later string.
        if self.fault.is_some_and(|fault| fault.at < end) {
            return Err(self.endless_string());
        }
        self.pos = end + 1;
        Ok(Span {
            start: start as u32,
            end: end as u32,
        })
    }

    /// Returns the error for a string with an invalid byte or without an end.
    #[cold]
    fn endless_string(&self) -> ScanError {
        let end = ScanError {
            kind: ScanErrorKind::Incomplete,
            at: self.line.len(),
        };
        self.fault.unwrap_or(end)
    }

    /// Moves to the first member of an object, or past the object if it is empty.
    ///
    /// The next byte must be `{`. Returns whether a first member follows.
    #[inline(always)]
    pub(super) fn open_object(&mut self) -> ScanResult<bool> {
        self.expect(b'{')?;
        self.skip_space();
        if self.peek() == b'}' {
            self.pos += 1;
            return Ok(false);
        }
        Ok(true)
    }

    /// Like [`Self::open_object`], for the elements of an array.
    #[inline(always)]
    pub(super) fn open_array(&mut self) -> ScanResult<bool> {
        self.expect(b'[')?;
        self.skip_space();
        if self.peek() == b']' {
            self.pos += 1;
            return Ok(false);
        }
        Ok(true)
    }

    /// Moves from a member or element to the next one, or past `close`. Returns whether one
    /// follows.
    #[inline(always)]
    pub(super) fn more(&mut self, close: u8) -> ScanResult<bool> {
        self.skip_space();
        let byte = self.peek();
        if byte != b',' && byte != close {
            return Err(self.unexpected());
        }
        self.pos += 1;
        Ok(byte == b',')
    }

    /// Reads the name of a member and moves to its value.
    #[inline(always)]
    pub(super) fn name(&mut self) -> ScanResult<&'l [u8]> {
        self.skip_space();
        let name = self.string()?.of(self.line);
        self.skip_space();
        self.expect(b':')?;
        self.skip_space();
        Ok(name)
    }

    /// Returns the text at a span that [`Self::string`] returned.
    pub(super) fn text(&self, span: Span) -> Text<'l> {
        Text::new(span.of(self.line))
    }

    /// Returns the span of a part of the line that this cursor returned.
    pub(super) fn span_of(&self, part: &'l [u8]) -> Span {
        let start = part.as_ptr().addr() - self.line.as_ptr().addr();
        Span::new(start, start + part.len())
    }

    /// Skips one value of any kind that is inside of `depth` containers.
    #[inline(always)]
    pub(super) fn skip_value(&mut self, depth: u32) -> ScanResult {
        match self.peek() {
            b'"' => self.string().map(|_| ()),
            b'{' | b'[' => self.skip_container(depth),
            _ => self.scalar(),
        }
    }

    fn skip_container(&mut self, depth: u32) -> ScanResult {
        // One bit for each open container, the innermost in the lowest bit; set for objects.
        let mut objects = 0u128;
        let mut level = 0;
        loop {
            let opened = match self.peek() {
                b'"' => {
                    self.string()?;
                    false
                }
                byte @ (b'{' | b'[') => {
                    if depth + level == MAX_DEPTH {
                        return Err(ScanError {
                            kind: ScanErrorKind::Depth,
                            at: self.pos,
                        });
                    }
                    let is_object = byte == b'{';
                    let opened = if is_object {
                        self.open_object()?
                    } else {
                        self.open_array()?
                    };
                    if opened {
                        objects = objects << 1 | u128::from(is_object);
                        level += 1;
                        if is_object {
                            self.name()?;
                        }
                    }
                    opened
                }
                _ => {
                    self.scalar()?;
                    false
                }
            };
            if opened {
                continue;
            }
            loop {
                if level == 0 {
                    return Ok(());
                }
                let in_object = objects & 1 == 1;
                if self.more(if in_object { b'}' } else { b']' })? {
                    if in_object {
                        self.name()?;
                    } else {
                        self.skip_space();
                    }
                    break;
                }
                objects >>= 1;
                level -= 1;
            }
        }
    }

    /// Skips a number, `true`, `false` or `null`.
    #[inline(always)]
    pub(super) fn scalar(&mut self) -> ScanResult {
        match self.peek() {
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(self.unexpected()),
        }
    }

    #[inline(always)]
    fn word(&mut self, word: &'static [u8]) -> ScanResult {
        for byte in word {
            self.expect(*byte)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn number(&mut self) -> ScanResult {
        if self.peek() == b'-' {
            self.pos += 1;
        }
        if self.peek() == b'0' {
            self.pos += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == b'.' {
            self.pos += 1;
            self.digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.pos += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.pos += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    #[inline(always)]
    fn digits(&mut self) -> ScanResult {
        if !self.peek().is_ascii_digit() {
            return Err(self.unexpected());
        }
        while self.peek().is_ascii_digit() {
            self.pos += 1;
        }
        Ok(())
    }
}
