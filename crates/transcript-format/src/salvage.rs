//! Finds complete entries in damaged bytes and repairs their text.
//!
//! A power cut, a killed writer or another program can leave in a line: NULs, a byte order mark, a
//! torn entry with a complete one glued to it, raw control bytes, bytes that are not UTF-8, or an
//! entry spread over several lines by raw line feeds. [`objects`] returns the places of complete
//! entries, [`repaired_text`] their text.
//!
//! # What counts as an entry
//!
//! An object of a type that [`EntryKind`] knows, nested at most 127 levels. Nested objects must not
//! be mistaken for entries: entries of type `progress` contain complete entries, which remain in
//! the line when the outer entry is torn.
//!
//! The search therefore parses from the start of an object up to the first token that JSON does not
//! allow. The bytes before that place are consistent, so an object among them is part of the torn
//! entry; only an object that starts at that place is an entry of its own.
//!
//! One ambiguous case remains: an object in the place of a value that ends exactly where the
//! parsing stopped. It can be a nested entry with the cut directly after it, or an entry glued to
//! one that was torn before a value. Nested entries do not have a `sessionId` (checked on real
//! files), so the object counts as an entry if it has one.
//!
//! Time is linear in the number of bytes, because the search continues where the parsing stopped.

use std::ops::Range;

use memchr::{memchr, memchr2, memmem};

use crate::kind::EntryKind;
use crate::object::Object;
use crate::scan::{Envelope, Flags, Scanner};

/// Returns the places of the complete entries in damaged bytes, in order.
///
/// `bytes` is a line that does not scan, or several consecutive ones with the newlines between
/// them. The places do not overlap; each starts with `{` and ends after `}`, and its
/// [`repaired_text`] scans. The uuid of each entry is in the bytes exactly as in the text: repairs
/// never change an id.
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
    let mut search = Search::new(bytes, Entries::default());
    search.run();
    search.found
}

/// Returns the places of the complete records of another format in damaged bytes, as [`objects`] does for entries.
///
/// `is_record` says whether an object is a record of that format. It must refuse what is nested in records, because a torn
/// record leaves its parts behind.
///
/// ```
/// let line = br#"{"id":1,"body":"ab{"id":2,"body":"cd"}{"id":3,"body":{}}"#;
/// let found = transcript_format::salvage::records(line, |object| object.get("id").is_some());
/// assert_eq!(found.len(), 2);
/// ```
#[must_use]
pub fn records(bytes: &[u8], is_record: impl Fn(&Object<'_>) -> bool) -> Vec<Range<usize>> {
    let mut search = Search::new(bytes, Records(is_record));
    search.run();
    search.found
}

/// Returns the places of [`objects`], and those of torn entries that can still be identified.
///
/// A torn entry is an object without its end. It is returned up to its last complete member if that
/// part has `type`, `uuid`, `parentUuid` and `isSidechain`; without these it could end up at a
/// wrong place of the conversation. Clients write the message before the uuid, so usually only the
/// time and the version are lost. [`repaired_text`] closes the object.
#[must_use]
pub fn entries(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut search = Search::new(bytes, Entries::default());
    search.run();
    let mut found = search.found;
    found.append(&mut search.torn);
    found.sort_unstable_by_key(|place| place.start);
    found
}

/// Returns the offset directly after the object at the start of `bytes`, or `None` if its tokens
/// are not valid. White space and NULs before the object are skipped.
#[must_use]
pub fn end_of_object(bytes: &[u8]) -> Option<usize> {
    let start = skip(bytes, 0);
    if bytes.get(start) != Some(&b'{') {
        return None;
    }
    Walk::new(bytes, start).object().ok()
}

/// Returns the repaired JSON text of damaged bytes: NULs are removed, control bytes in strings are
/// escaped, bytes that are not UTF-8 are replaced by U+FFFD, and a missing last brace is added.
///
/// The result depends on the bytes only. Undamaged bytes are returned unchanged.
#[must_use]
pub fn repaired_text(bytes: &[u8]) -> String {
    let (mut text, lacks_brace) = cleaned(bytes);
    if lacks_brace {
        text.push('}');
    }
    text
}

/// Returns the repaired text of damaged bytes, and whether one brace is missing at its end.
fn cleaned(bytes: &[u8]) -> (String, bool) {
    let mut out = Vec::with_capacity(bytes.len());
    let (mut in_string, mut escaped) = (false, false);
    let mut depth = 0_i64;
    for byte in bytes.iter().copied().filter(|byte| *byte != 0) {
        // An escaped quote does not end the string; an escaped control byte cannot be repaired.
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
    let lacks_brace = depth == 1 && !in_string && out.first() == Some(&b'{');
    let text = match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    (text, lacks_brace)
}

/// Returns the text of an object whose end is missing, closed at the place where it was torn: the text of a torn string stays,
/// a torn name, number or word does not. The text is [repaired](repaired_text). `None` if no object starts there.
///
/// ```
/// let torn = br#"{"id":1,"body":{"text":"the first half","n":12"#;
/// let text = transcript_format::salvage::closed_text(torn);
/// assert_eq!(text.as_deref(), Some(r#"{"id":1,"body":{"text":"the first half"}}"#));
/// ```
#[must_use]
pub fn closed_text(bytes: &[u8]) -> Option<String> {
    let (mut text, _) = cleaned(bytes);
    let mut open: Vec<char> = Vec::new();
    // The text up to here is whole but for the closing brackets of `open`.
    let mut whole = 0;
    // Whether the next string is a value, and whether it is being read.
    let (mut is_value, mut in_string) = (false, false);
    let mut escape: Option<usize> = None;
    for (at, c) in text.char_indices() {
        if in_string {
            match escape {
                // Hexadecimal digits follow `\u`.
                Some(start)
                    if at < start + 2 || text[start + 1..].starts_with('u') && at < start + 5 => {}
                _ if c == '\\' => escape = Some(at),
                _ if c == '"' => {
                    (in_string, escape) = (false, None);
                    if is_value {
                        whole = at + 1;
                    }
                }
                _ => escape = None,
            }
            continue;
        }
        match c {
            '"' => in_string = true,
            '{' | '[' => {
                open.push(if c == '{' { '}' } else { ']' });
                whole = at + 1;
                is_value = c == '[';
            }
            '}' | ']' => {
                open.pop().filter(|close| *close == c)?;
                whole = at + 1;
            }
            ',' => {
                whole = at;
                is_value = open.last() == Some(&']');
            }
            ':' => is_value = true,
            _ => {}
        }
        if open.is_empty() {
            break;
        }
    }
    if in_string && is_value {
        // An escape is whole or not there.
        let is_whole = |start: usize| {
            let len = if text[start + 1..].starts_with('u') {
                6
            } else {
                2
            };
            text.len() >= start + len
        };
        whole = escape
            .filter(|start| !is_whole(*start))
            .unwrap_or(text.len());
        text.truncate(whole);
        text.push('"');
    } else {
        text.truncate(whole);
    }
    text.extend(open.iter().rev());
    text.starts_with('{').then_some(text)
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

/// The objects that a search looks for.
trait Wanted {
    /// Returns whether a complete object is wanted. `text` is the repaired text of `bytes`.
    fn is_wanted(&mut self, text: &str, bytes: &[u8], may_be_nested: bool) -> bool;

    /// Returns whether a torn object is wanted. `text` is the repaired text of `bytes`, which end with a complete member.
    fn is_wanted_torn(&mut self, text: &str, bytes: &[u8], may_be_nested: bool) -> bool;
}

/// Entries of a session.
#[derive(Default)]
struct Entries(Scanner);

impl Wanted for Entries {
    fn is_wanted(&mut self, text: &str, bytes: &[u8], may_be_nested: bool) -> bool {
        self.0.scan(text.as_bytes()).is_ok_and(|envelope| {
            envelope.kind() != EntryKind::Other
                && (!may_be_nested || names_session(&envelope))
                && has_intact_uuid(&envelope, bytes)
        })
    }

    /// Entries of the chain whose uuid and link fields are complete.
    fn is_wanted_torn(&mut self, text: &str, bytes: &[u8], may_be_nested: bool) -> bool {
        self.0.scan(text.as_bytes()).is_ok_and(|envelope| {
            envelope.kind().is_chain()
                && envelope.uuid().is_some()
                && has_link_fields(text)
                && (!may_be_nested || names_session(&envelope))
                && has_intact_uuid(&envelope, bytes)
        })
    }
}

/// Records of another format; torn ones are not wanted.
struct Records<F>(F);

impl<F: Fn(&Object<'_>) -> bool> Wanted for Records<F> {
    fn is_wanted(&mut self, text: &str, _: &[u8], _: bool) -> bool {
        Object::parse(text).is_ok_and(|object| (self.0)(&object))
    }

    fn is_wanted_torn(&mut self, _: &str, _: &[u8], _: bool) -> bool {
        false
    }
}

/// The search for objects, left to right.
struct Search<'b, W> {
    bytes: &'b [u8],
    wanted: W,
    found: Vec<Range<usize>>,
    /// The places of torn entries, up to their last complete member.
    torn: Vec<Range<usize>>,
    /// The number of bytes that all walks together visited.
    #[cfg(test)]
    walked: usize,
}

/// An offset at which an object may start.
#[derive(Clone, Copy)]
struct Start {
    at: usize,
    /// Whether it may be nested inside a torn entry.
    may_be_nested: bool,
}

impl<'b, W: Wanted> Search<'b, W> {
    fn new(bytes: &'b [u8], wanted: W) -> Self {
        Self {
            bytes,
            wanted,
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
                // The rest may be nested even deeper, so no object in it can be trusted.
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

    /// Returns where to continue when the object at `from` becomes invalid at `at`.
    fn restart(&self, from: usize, at: usize) -> Option<Start> {
        // Torn within a string: the first quote of the next entry seemed to end that string.
        let up_to_quote = trim(&self.bytes[..at], |byte| byte == 0);
        if let Some(before_quote) = up_to_quote.strip_suffix(b"\"")
            && let Some(before) = trim(before_quote, is_skipped).strip_suffix(b"{")
            && before.len() > from
        {
            return Some(Start {
                at: before.len(),
                may_be_nested: false,
            });
        }
        if self.opens_an_object(at) {
            // JSON does not allow an object here, so it is not part of the one before.
            return Some(Start {
                at,
                may_be_nested: false,
            });
        }
        self.next_start(at)
    }

    /// Returns the next `{"` at or after `from`, in bytes that were not parsed yet.
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

    /// Adds the object to the result if it is wanted.
    fn consider(&mut self, place: Range<usize>, may_be_nested: bool) {
        // A following brace, bracket or comma shows that the object is nested in something. A
        // newline before them shows the opposite, because writers put none inside of an entry.
        let next = self.bytes[place.end..]
            .iter()
            .find(|byte| !matches!(byte, 0 | b' ' | b'\t' | b'\r'));
        if matches!(next, Some(b'}' | b']' | b',')) {
            return;
        }
        let bytes = &self.bytes[place.clone()];
        #[cfg(test)]
        {
            self.walked += bytes.len();
        }
        let text = repaired_text(bytes);
        if self.wanted.is_wanted(&text, bytes, may_be_nested) {
            self.found.push(place);
        }
    }

    /// Adds a torn object to the result if, once repaired, it is an entry of the chain whose uuid
    /// and link fields are complete.
    fn consider_torn(&mut self, place: Range<usize>, may_be_nested: bool) {
        let bytes = &self.bytes[place.clone()];
        #[cfg(test)]
        {
            self.walked += bytes.len();
        }
        let text = repaired_text(bytes);
        if self.wanted.is_wanted_torn(&text, bytes, may_be_nested) {
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

/// Returns whether the entry has a `sessionId`. Messages of the SDK, which have a `session_id`, can be
/// nested in another entry.
fn names_session(envelope: &Envelope<'_>) -> bool {
    envelope.session_id().is_some() && !envelope.flags().contains(Flags::STREAM_FORM)
}

/// Returns whether the damage spared the uuid. A damaged uuid would name no entry, or a wrong one.
fn has_intact_uuid(envelope: &Envelope<'_>, bytes: &[u8]) -> bool {
    envelope
        .uuid()
        .is_none_or(|uuid| memmem::find(bytes, uuid.raw()).is_some())
}

/// Returns whether `byte` is white space between tokens, or NUL, which [`repaired_text`] removes.
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

/// The maximum nesting depth, as in [`crate::scan`].
const MAX_DEPTH: usize = 127;

/// Walks over the tokens of one object. It only finds where tokens end; the scan of the repaired
/// text checks strings and numbers.
struct Walk<'b> {
    bytes: &'b [u8],
    /// After the last token, or at the first one that JSON does not allow.
    at: usize,
    /// The start offsets of the open containers; the byte there shows the kind.
    open: Vec<usize>,
    /// The object that was closed last.
    last_object: Option<Range<usize>>,
    /// The offset after the last member of the outermost object that is certainly complete: a comma
    /// follows it.
    members_end: usize,
}

/// The reason why an object has no end.
enum Stop {
    /// A token that JSON does not allow at its place, or the end of the bytes.
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

    /// Reads the object that starts here. Returns the offset after it.
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

    /// Reads a value, or only the opening bracket of a container. Returns whether it is a
    /// container.
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

    /// Returns the byte that closes the innermost container.
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
            // The byte after the backslash stays in the string; NULs between the two are skipped.
            let nuls = self.bytes[at..].iter().take_while(|byte| **byte == 0);
            at = (at + nuls.count() + 1).min(self.bytes.len());
        }
    }

    /// Reads a number or a word: letters, digits and signs.
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

    /// Returns the first byte of the next token.
    fn peek(&mut self) -> Option<u8> {
        self.at = skip(self.bytes, self.at);
        self.bytes.get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each byte is visited a bounded number of times, for any combination of these pieces.
    #[test]
    fn all_walks_together_visit_each_byte_at_most_four_times() {
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
                    let mut search = Search::new(&bytes, Entries::default());
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
