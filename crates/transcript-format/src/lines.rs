//! Splits bytes into lines, with absolute offsets and without I/O.
//!
//! Only byte `0x0A` ends a line. Other Unicode line separators do not count, and a CR before the LF
//! stays part of the line (JSON treats it as white space). [`Framer`] reads forward and accepts
//! chunks of any size; [`BackwardFramer`] reads the same file from its end. Both return the same
//! lines and keep an unterminated line separate.
//!
//! Memory: one partial line, at most the cap. A line longer than the cap is counted, not kept.

use memchr::{memchr, memrchr};

/// The maximum size of a subagent's metadata file: 1 MiB. Larger files are not read.
pub const AGENT_META_CAP: usize = 1 << 20;

/// The default cap on the length of a line: 64 MiB.
pub const DEFAULT_LINE_CAP: usize = 64 << 20;

/// One step of framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framed<'a> {
    /// A complete line.
    Line(Line<'a>),
    /// A line longer than the cap. Its bytes were not kept.
    TooLong {
        /// The offset of its first byte from the start of the file.
        offset: u64,
        /// Its length in bytes, without the newline.
        len: u64,
        /// Whether it ends with a newline.
        terminated: bool,
    },
}

/// The bytes of one line and their place in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The offset of the first byte from the start of the file.
    pub offset: u64,
    /// The bytes without the newline.
    pub bytes: &'a [u8],
    /// Whether a newline follows; false only for the last line of a file.
    pub terminated: bool,
}

/// Frames a file forward.
///
/// ```
/// use transcript_format::lines::{Framed, Framer};
///
/// let mut framer = Framer::new();
/// let mut seen = Vec::new();
/// for chunk in [&b"{}\n{\"a\""[..], b":1}\ntorn"] {
///     let mut rest = chunk;
///     while let Some(framed) = framer.next(&mut rest) {
///         if let Framed::Line(line) = framed {
///             seen.push((line.offset, line.bytes.to_vec()));
///         }
///     }
/// }
/// assert_eq!(seen, [(0, b"{}".to_vec()), (3, b"{\"a\":1}".to_vec())]);
/// assert_eq!(framer.pending(), 4);
/// ```
#[derive(Debug)]
pub struct Framer {
    cap: usize,
    /// The start of the current line.
    offset: u64,
    /// The bytes of the current line from earlier chunks; at most `cap`.
    carry: Vec<u8>,
    /// The length so far of a line that exceeded the cap; its bytes are gone.
    overlong: Option<u64>,
    /// The line in `carry` was returned and can be dropped.
    carry_is_spent: bool,
}

impl Default for Framer {
    fn default() -> Self {
        Self::new()
    }
}

impl Framer {
    /// Returns a framer for the start of a file, with [`DEFAULT_LINE_CAP`].
    #[must_use]
    pub fn new() -> Self {
        Self::starting_at(0, DEFAULT_LINE_CAP)
    }

    /// Returns a framer for `offset`, which must be the start of a line; keeps lines of up to `cap`
    /// bytes.
    #[must_use]
    pub fn starting_at(offset: u64, cap: usize) -> Self {
        Self {
            cap,
            offset,
            carry: Vec::new(),
            overlong: None,
            carry_is_spent: false,
        }
    }

    /// Returns the next line that ends in `input` and moves `input` past it.
    ///
    /// Returns `None` when all of `input` has been consumed and no further line ends in it.
    pub fn next<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Option<Framed<'a>> {
        if self.carry_is_spent {
            self.carry.clear();
            self.carry_is_spent = false;
        }
        let Some(end) = memchr(b'\n', input) else {
            self.absorb(input);
            *input = &[];
            return None;
        };
        let (piece, rest) = input.split_at(end);
        *input = &rest[1..];
        let offset = self.offset;
        if self.carry.is_empty() && self.overlong.is_none() && piece.len() <= self.cap {
            self.offset += piece.len() as u64 + 1;
            return Some(Framed::Line(Line {
                offset,
                bytes: piece,
                terminated: true,
            }));
        }
        self.absorb(piece);
        let framed = self.take(true);
        Some(framed)
    }

    /// Returns the last line if it has no newline. Call it once, after all input.
    pub fn finish(&mut self) -> Option<Framed<'_>> {
        if self.pending() == 0 {
            return None;
        }
        Some(self.take(false))
    }

    /// Returns the number of bytes consumed of a line without its newline.
    #[must_use]
    pub fn pending(&self) -> u64 {
        match self.overlong {
            Some(len) => len,
            None if self.carry_is_spent => 0,
            None => self.carry.len() as u64,
        }
    }

    /// Returns the bytes of the unterminated line; empty when it exceeded the cap.
    #[must_use]
    pub fn partial(&self) -> &[u8] {
        if self.carry_is_spent {
            return &[];
        }
        &self.carry
    }

    /// Returns the offset of the start of the current, unterminated line.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn absorb(&mut self, piece: &[u8]) {
        if let Some(len) = &mut self.overlong {
            *len += piece.len() as u64;
        } else if self.carry.len() + piece.len() > self.cap {
            self.overlong = Some((self.carry.len() + piece.len()) as u64);
            self.carry = Vec::new();
        } else {
            self.carry.extend_from_slice(piece);
        }
    }

    fn take(&mut self, terminated: bool) -> Framed<'_> {
        let offset = self.offset;
        let newline = u64::from(terminated);
        if let Some(len) = self.overlong.take() {
            self.offset += len + newline;
            return Framed::TooLong {
                offset,
                len,
                terminated,
            };
        }
        self.offset += self.carry.len() as u64 + newline;
        self.carry_is_spent = true;
        Framed::Line(Line {
            offset,
            bytes: &self.carry,
            terminated,
        })
    }
}

/// Frames a file from its end: the last line first.
///
/// Feed it adjacent chunks, starting with the end of the file. It returns the same lines as
/// [`Framer`], in reverse order.
#[derive(Debug)]
pub struct BackwardFramer {
    cap: usize,
    /// The offset of the first byte that was consumed.
    start: u64,
    /// The pieces of the current line, in reverse order.
    pieces: Vec<Vec<u8>>,
    /// Their length. If it exceeded the cap, `pieces` is empty.
    len: u64,
    overlong: bool,
    terminated: bool,
    /// Whether input has reached the end of a line: the end of the file or a newline.
    started: bool,
    whole: Vec<u8>,
}

impl BackwardFramer {
    /// Returns a framer for the end of a file of `file_len` bytes; keeps lines up to `cap` bytes.
    #[must_use]
    pub fn new(file_len: u64, cap: usize) -> Self {
        Self {
            cap,
            start: file_len,
            pieces: Vec::new(),
            len: 0,
            overlong: false,
            terminated: false,
            started: false,
            whole: Vec::new(),
        }
    }

    /// Returns the last line that starts in `input` and removes it from `input`.
    ///
    /// Returns `None` when all of `input` has been consumed and no further line starts in it.
    pub fn next<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Option<Framed<'a>> {
        loop {
            let Some(newline) = memrchr(b'\n', input) else {
                self.absorb(input);
                *input = &[];
                return None;
            };
            let (rest, piece) = (&input[..newline], &input[newline + 1..]);
            *input = rest;
            if !self.started && piece.is_empty() {
                // A newline at the end of the file ends the last line and does not start another.
                self.start -= 1;
                self.started = true;
                self.terminated = true;
                continue;
            }
            return Some(self.take(piece, true));
        }
    }

    /// Returns the first line of the file. Call it once, after all input.
    pub fn finish(&mut self) -> Option<Framed<'_>> {
        if !self.started {
            return None;
        }
        Some(self.take(&[], false))
    }

    fn absorb(&mut self, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        self.started = true;
        self.start -= piece.len() as u64;
        self.len += piece.len() as u64;
        if self.overlong || self.len > self.cap as u64 {
            self.overlong = true;
            self.pieces = Vec::new();
        } else {
            self.pieces.push(piece.to_vec());
        }
    }

    /// Completes the current line at its start. `newline_before`: whether a newline precedes it.
    fn take<'a, 'i: 'a>(&'a mut self, piece: &'i [u8], newline_before: bool) -> Framed<'a> {
        let terminated = std::mem::replace(&mut self.terminated, true);
        let zero_copy = self.len == 0 && piece.len() <= self.cap;
        if !zero_copy {
            self.absorb(piece);
        } else {
            self.start -= piece.len() as u64;
        }
        self.started = true;
        let offset = self.start;
        self.start -= u64::from(newline_before);
        let len = std::mem::take(&mut self.len);
        if std::mem::take(&mut self.overlong) {
            return Framed::TooLong {
                offset,
                len,
                terminated,
            };
        }
        if zero_copy {
            return Framed::Line(Line {
                offset,
                bytes: piece,
                terminated,
            });
        }
        self.whole.clear();
        for piece in self.pieces.drain(..).rev() {
            self.whole.extend_from_slice(&piece);
        }
        Framed::Line(Line {
            offset,
            bytes: &self.whole,
            terminated,
        })
    }
}
