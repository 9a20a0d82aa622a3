//! Finds the whole entries that stand in damaged bytes, and makes them readable.
//!
//! What a power cut, a killed writer or another program leaves in a line: NULs, a byte order mark,
//! a torn entry with a whole one glued behind it, raw control bytes, bytes that are not UTF-8, an
//! entry spread over several lines by raw line feeds (`facts/reliability.md` 5, `facts/pains.md` 6
//! and 11). [`objects`] says where whole entries stand, [`repaired_text`] gives their text.
//!
//! # What counts as an entry
//!
//! An object of a type that [`EntryKind`] knows, nested 127 levels at most. The hard part is what
//! is none: entries of type `progress` hold whole entries, and where one of them is torn, those
//! still stand in the line. From the start of an object the bytes are read until JSON allows no
//! further; up to there everything is consistent, so whatever object stands before that place is a
//! part of the torn one. Only what starts there is another entry. One case is left to doubt: an
//! object in a place for a value that ends right where the reading ends. A nested entry cut behind
//! its last byte looks like that, and so does an entry glued to one that was torn in front of a
//! value. Nested entries have no `sessionId` (none of 167 in the corpus does), so the object is
//! taken when it has one.
//!
//! Time is linear in the length of the bytes: the search goes on where the reading ended.

use std::ops::Range;

use memchr::{memchr, memchr2, memmem};

use crate::kind::EntryKind;
use crate::object::Object;
use crate::scan::{Envelope, Scanner};

/// Returns the places of the entries that stand whole in damaged bytes, in their order.
///
/// `bytes` is a line that does not scan, or several in a row with the newlines between them. No two
/// places overlap; each starts with `{` and ends behind `}`, and its [`repaired_text`]ed text scans. The
/// uuid of each stands in the bytes as it does in the text: no id is made up.
///
/// ```
/// use transcript_format::salvage::{repaired_text, objects};
///
/// let line = b"{\"type\":\"user\",\"uu{\"type\":\"user\",\"uuid\":\"u2\"}\0\0";
/// let found = objects(line);
/// assert_eq!(found, [18..45]);
/// assert_eq!(repaired_text(&line[found[0].clone()]), r#"{"type":"user","uuid":"u2"}"#);
/// ```
#[must_use]
pub fn objects(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut search = Search::new(bytes);
    search.run();
    search.found
}

/// Returns the places of [`objects`], and those of torn entries that still say who they are: up to
/// the last whole member of an object that has lost its end, where `type`, `uuid`, `parentUuid` and
/// `isSidechain` stand before that: without them it could be taken for an entry of another place.
/// Clients write the message before the uuid, so what is lost is as a rule the time and the
/// version; [`repaired_text`] closes the object.
#[must_use]
pub fn entries(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut search = Search::new(bytes);
    search.run();
    let mut found = search.found;
    found.append(&mut search.torn);
    found.sort_unstable_by_key(|place| place.start);
    found
}

/// Returns the offset right behind the object that `bytes` start with, white space and NULs aside,
/// as long as its tokens are in order.
#[must_use]
pub fn end_of_object(bytes: &[u8]) -> Option<usize> {
    let start = skip(bytes, 0);
    if bytes.get(start) != Some(&b'{') {
        return None;
    }
    Walk::new(bytes, start).object().ok()
}

/// Returns the JSON text that damaged bytes stand for: NULs are taken out, control bytes within
/// strings escaped, bytes that are not UTF-8 replaced by U+FFFD, and a last brace that is missing
/// is added.
///
/// Nothing but the bytes decides the result. Bytes that are in order come back as they are.
#[must_use]
pub fn repaired_text(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    let (mut in_string, mut escaped) = (false, false);
    let mut depth = 0_i64;
    for byte in bytes.iter().copied().filter(|byte| *byte != 0) {
        // What comes after a backslash ends no string, and a control byte there is past help.
        let is_plain = !std::mem::take(&mut escaped);
        match byte {
            b'"' if is_plain => in_string = !in_string,
            b'\\' if is_plain => escaped = in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth -= 1,
            0..0x20 if is_plain && in_string => {
                push_escape(&mut out, byte);
                continue;
            }
            _ => {}
        }
        out.push(byte);
    }
    if depth == 1 && !in_string && out.first() == Some(&b'{') {
        out.push(b'}');
    }
    match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

fn push_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'\n' => out.extend(b"\\n"),
        b'\r' => out.extend(b"\\r"),
        b'\t' => out.extend(b"\\t"),
        _ => {
            out.extend(b"\\u00");
            out.extend([byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]));
        }
    }
}

/// The search for entries, left to right.
struct Search<'b> {
    bytes: &'b [u8],
    scanner: Scanner,
    found: Vec<Range<usize>>,
    /// What is left of torn entries.
    torn: Vec<Range<usize>>,
    /// How many bytes all walks together went over.
    #[cfg(test)]
    walked: usize,
}

/// Where an object may start.
#[derive(Clone, Copy)]
struct Start {
    at: usize,
    /// It stands where a nested object may stand, as far as one can tell.
    may_be_nested: bool,
}

impl<'b> Search<'b> {
    fn new(bytes: &'b [u8]) -> Self {
        Self {
            bytes,
            scanner: Scanner::new(),
            found: Vec::new(),
            torn: Vec::new(),
            #[cfg(test)]
            walked: 0,
        }
    }

    fn run(&mut self) {
        let mut next = self.next_start(0);
        while let Some(start) = next {
            let mut walk = Walk::new(self.bytes, start.at);
            let outcome = walk.object();
            #[cfg(test)]
            {
                self.walked += walk.at - start.at;
            }
            next = match outcome {
                Ok(end) => {
                    self.consider(start.at..end, start.may_be_nested);
                    self.next_start(end)
                }
                // Whatever follows may be deeper still.
                Err(Stop::TooDeep) => None,
                Err(Stop::Token) => {
                    if walk.members_end > start.at {
                        self.consider_torn(start.at..walk.members_end, start.may_be_nested);
                    }
                    if let Some(last) = walk.last_object
                        && skip(self.bytes, last.end) == walk.at
                    {
                        self.consider(last, true);
                    }
                    self.restart(start.at, walk.at)
                }
            };
        }
    }

    /// Where to go on when the object at `from` cannot go on at `at`.
    fn restart(&self, from: usize, at: usize) -> Option<Start> {
        // Torn within a string: the first quote of the next entry seemed to end that string.
        let behind_quote = trim(&self.bytes[..at], |byte| byte == 0);
        if let Some(before_quote) = behind_quote.strip_suffix(b"\"")
            && let Some(before) = trim(before_quote, is_skipped).strip_suffix(b"{")
            && before.len() > from
        {
            return Some(Start {
                at: before.len(),
                may_be_nested: false,
            });
        }
        if self.opens_an_object(at) {
            // JSON allows no object here, so it is no part of the one before.
            return Some(Start {
                at,
                may_be_nested: false,
            });
        }
        self.next_start(at)
    }

    /// The next `{"` from `from` on, in bytes of which nothing is known.
    fn next_start(&self, from: usize) -> Option<Start> {
        let mut at = from;
        loop {
            at += memchr(b'{', self.bytes.get(at..)?)?;
            if self.opens_an_object(at) {
                let before = trim(&self.bytes[..at], is_skipped).last();
                return Some(Start {
                    at,
                    may_be_nested: matches!(before, Some(b':' | b',' | b'[')),
                });
            }
            at += 1;
        }
    }

    fn opens_an_object(&self, at: usize) -> bool {
        self.bytes.get(at) == Some(&b'{') && self.bytes.get(skip(self.bytes, at + 1)) == Some(&b'"')
    }

    /// Keeps the object when it is an entry.
    fn consider(&mut self, place: Range<usize>, may_be_nested: bool) {
        // A newline behind the object ends it for good.
        let behind = self.bytes[place.end..]
            .iter()
            .find(|byte| !matches!(byte, 0 | b' ' | b'\t' | b'\r'));
        if matches!(behind, Some(b'}' | b']' | b',')) {
            return;
        }
        let bytes = &self.bytes[place.clone()];
        #[cfg(test)]
        {
            self.walked += bytes.len();
        }
        let text = repaired_text(bytes);
        let is_entry = self.scanner.scan(text.as_bytes()).is_ok_and(|envelope| {
            envelope.kind() != EntryKind::Other
                && (!may_be_nested || envelope.session_id().is_some())
                && has_intact_uuid(&envelope, bytes)
        });
        if is_entry {
            self.found.push(place);
        }
    }

    /// Keeps what is left of an object when that is an entry with a name.
    fn consider_torn(&mut self, place: Range<usize>, may_be_nested: bool) {
        let bytes = &self.bytes[place.clone()];
        #[cfg(test)]
        {
            self.walked += bytes.len();
        }
        let text = repaired_text(bytes);
        let is_entry = self.scanner.scan(text.as_bytes()).is_ok_and(|envelope| {
            envelope.kind().is_chain()
                && envelope.uuid().is_some()
                && has_link_fields(&text)
                && (!may_be_nested || envelope.session_id().is_some())
                && has_intact_uuid(&envelope, bytes)
        });
        if is_entry {
            self.torn.push(place);
        }
    }
}

fn has_link_fields(text: &str) -> bool {
    let entry = Object::parse(text).ok();
    let has = |name| {
        entry
            .as_ref()
            .is_some_and(|entry| entry.get(name).is_some())
    };
    has("parentUuid") && has("isSidechain")
}

/// Whether damage went past the uuid. One with a hole in it would stand for no entry, or for
/// another one.
fn has_intact_uuid(envelope: &Envelope<'_>, bytes: &[u8]) -> bool {
    envelope
        .uuid()
        .is_none_or(|uuid| memmem::find(bytes, uuid.raw()).is_some())
}

/// White space between tokens, and NULs, which [`repaired_text`] takes out.
fn is_skipped(byte: u8) -> bool {
    matches!(byte, 0 | b' ' | b'\t' | b'\r' | b'\n')
}

fn skip(bytes: &[u8], from: usize) -> usize {
    let run = bytes[from..].iter().take_while(|byte| is_skipped(**byte));
    from + run.count()
}

fn trim(bytes: &[u8], is_out: impl Fn(u8) -> bool) -> &[u8] {
    let kept = bytes.iter().rposition(|byte| !is_out(*byte));
    &bytes[..kept.map_or(0, |last| last + 1)]
}

/// The deepest nesting that is read, as in [`crate::scan`].
const MAX_DEPTH: usize = 127;

/// Reads the tokens of one object, and no more of them than where they end: whether strings and
/// numbers are right is left to the scan of the mended text.
struct Walk<'b> {
    bytes: &'b [u8],
    /// Behind the last token, or at the first one that JSON does not allow.
    at: usize,
    /// The containers that are open: where they start. The first byte there says what they are.
    open: Vec<usize>,
    /// The object that ended last.
    last_object: Option<Range<usize>>,
    /// Behind the last member of the outermost object that is known to be whole: a comma follows.
    members_end: usize,
}

/// Why an object has no end.
enum Stop {
    /// A token stands where JSON does not allow it, or the bytes end.
    Token,
    TooDeep,
}

impl<'b> Walk<'b> {
    fn new(bytes: &'b [u8], start: usize) -> Self {
        Self {
            bytes,
            at: start,
            open: Vec::new(),
            last_object: None,
            members_end: start,
        }
    }

    /// Reads the object that starts here. Returns where it ends.
    fn object(&mut self) -> Result<usize, Stop> {
        loop {
            let opened = self.value()?;
            if opened && self.peek() != Some(self.close()) {
                self.name_in_object()?;
                continue;
            }
            while self.peek() == Some(self.close()) {
                self.at += 1;
                let start = self.open.pop().unwrap_or_default();
                if self.bytes[start] == b'{' {
                    self.last_object = Some(start..self.at);
                }
                if self.open.is_empty() {
                    return Ok(self.at);
                }
            }
            let end = self.at;
            self.expect(b',')?;
            if self.open.len() == 1 {
                self.members_end = end;
            }
            self.name_in_object()?;
        }
    }

    /// Reads a value, of a container only how it opens. Returns whether it is one.
    fn value(&mut self) -> Result<bool, Stop> {
        match self.peek() {
            Some(b'"') => self.string().map(|()| false),
            Some(b'{' | b'[') if self.open.len() == MAX_DEPTH => Err(Stop::TooDeep),
            Some(b'{' | b'[') => {
                self.open.push(self.at);
                self.at += 1;
                Ok(true)
            }
            _ => self.scalar().map(|()| false),
        }
    }

    /// The byte that ends the innermost container.
    fn close(&self) -> u8 {
        match self.open.last() {
            Some(start) if self.bytes[*start] == b'[' => b']',
            _ => b'}',
        }
    }

    fn name_in_object(&mut self) -> Result<(), Stop> {
        if self.close() == b']' {
            return Ok(());
        }
        if self.peek() != Some(b'"') {
            return Err(Stop::Token);
        }
        self.string()?;
        self.expect(b':')
    }

    fn string(&mut self) -> Result<(), Stop> {
        let mut at = self.at + 1;
        loop {
            let Some(mark) = memchr2(b'"', b'\\', &self.bytes[at..]) else {
                self.at = self.bytes.len();
                return Err(Stop::Token);
            };
            at += mark + 1;
            if self.bytes[at - 1] == b'"' {
                self.at = at;
                return Ok(());
            }
            // The byte behind the backslash stays in the string, NULs between the two do not count.
            let nuls = self.bytes[at..].iter().take_while(|byte| **byte == 0);
            at = (at + nuls.count() + 1).min(self.bytes.len());
        }
    }

    /// A number or a word: letters, digits and signs.
    fn scalar(&mut self) -> Result<(), Stop> {
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.\0".contains(byte);
        let len = self.bytes[self.at..].iter().take_while(is_part).count();
        self.at += len;
        if len == 0 { Err(Stop::Token) } else { Ok(()) }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Stop> {
        if self.peek() != Some(byte) {
            return Err(Stop::Token);
        }
        self.at += 1;
        Ok(())
    }

    /// The next byte of a token.
    fn peek(&mut self) -> Option<u8> {
        self.at = skip(self.bytes, self.at);
        self.bytes.get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte is walked over a few times, whatever is built from these pieces.
    #[test]
    fn the_walks_together_go_over_each_byte_a_few_times() {
        let entry = &b"{\"type\":\"user\",\"sessionId\":\"s\",\"message\":{}}"[..];
        let pieces: [&[u8]; 16] = [
            b"{\"",
            b"{",
            b"}",
            b"\"",
            b"{\"a\":",
            b"{\"a\":\"",
            b"{\"a\":[",
            b"[",
            b",",
            b"0,",
            b"\\",
            b"\0",
            b" ",
            b"\n",
            entry,
            b"\"b\":",
        ];
        for first in pieces {
            for second in pieces {
                for third in pieces {
                    let (some, many) = ([first, second].concat(), [second, third].concat());
                    let bytes = [some.repeat(60), many.repeat(2_000), third.repeat(60)].concat();
                    let mut search = Search::new(&bytes);
                    search.run();
                    assert!(
                        search.walked <= 4 * bytes.len(),
                        "{first:?} {second:?} {third:?}: {} bytes, {} walked",
                        bytes.len(),
                        search.walked
                    );
                }
            }
        }
    }
}
