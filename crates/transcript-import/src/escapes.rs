//! Escaped text, chunk by chunk: where it can be cut, and what its characters are.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};

use transcript_format::object::unescape;

/// The number of bytes of a chunk.
pub(crate) const CHUNK_LEN: usize = 64 << 10;

/// Returns how many of `bytes`, which begin JSON or the body of a JSON string, can be used without what follows: they end with
/// a whole character, not within an escape, and not between two surrogates.
pub(crate) fn whole_len(bytes: &[u8]) -> usize {
    let mut end = before_torn_escape(bytes);
    if end == bytes.len() {
        end = before_torn_character(bytes);
    }
    before_open_surrogate(bytes, end)
}

/// The length of an escape of a code unit.
const UNIT_LEN: usize = 6;

/// Returns the length without the escape that is not whole at the end.
fn before_torn_escape(bytes: &[u8]) -> usize {
    let len = bytes.len();
    let mut last = len.saturating_sub(UNIT_LEN)..len;
    let Some(start) = last.rfind(|at| starts_escape(bytes, *at)) else {
        return len;
    };
    let is_unit = bytes.get(start + 1) == Some(&b'u');
    let end = start + if is_unit { UNIT_LEN } else { 2 };
    if end > len { start } else { len }
}

/// Returns whether an escape starts at a place: an even number of backslashes comes before its own.
fn starts_escape(bytes: &[u8], at: usize) -> bool {
    let before = bytes[..at].iter().rev();
    bytes[at] == b'\\' && before.take_while(|byte| **byte == b'\\').count() % 2 == 0
}

/// Returns the length without the escape of a high surrogate directly before `end`, which may have a partner after it.
fn before_open_surrogate(bytes: &[u8], end: usize) -> usize {
    let Some(start) = end.checked_sub(UNIT_LEN) else {
        return end;
    };
    let is_high = matches!(
        &bytes[start..end],
        [
            b'\\',
            b'u',
            b'd' | b'D',
            b'8' | b'9' | b'a' | b'b' | b'A' | b'B',
            ..
        ]
    );
    if is_high && starts_escape(bytes, start) {
        start
    } else {
        end
    }
}

/// Returns the length without the character that is not whole at the end.
fn before_torn_character(bytes: &[u8]) -> usize {
    let mut last = bytes.len().saturating_sub(4)..bytes.len();
    let start = last.rfind(|at| bytes[*at] & 0xc0 != 0x80);
    let Some(start) = start else {
        return bytes.len();
    };
    match std::str::from_utf8(&bytes[start..]) {
        Err(error) if error.error_len().is_none() => start,
        _ => bytes.len(),
    }
}

/// Returns the text of the body of a JSON string, in chunks.
pub(crate) fn decoded(body: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let mut rest = body;
    std::iter::from_fn(move || next_chunk(&mut rest))
}

/// Reads the text of the body of a JSON string as bytes.
pub(crate) struct DecodedReader<'b> {
    /// The body after the chunk.
    rest: &'b str,
    chunk: Cow<'b, str>,
    /// The number of bytes of the chunk that were read.
    read: usize,
}

impl<'b> DecodedReader<'b> {
    pub(crate) fn of(body: &'b str) -> Self {
        Self {
            rest: body,
            chunk: Cow::Borrowed(""),
            read: 0,
        }
    }
}

impl Read for DecodedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.chunk.len() {
            self.chunk = next_chunk(&mut self.rest).unwrap_or_default();
            self.read = 0;
        }
        let count = (&self.chunk.as_bytes()[self.read..]).read(buffer)?;
        self.read += count;
        Ok(count)
    }
}

/// Takes a chunk from the start of the body of a JSON string, and returns its text.
fn next_chunk<'b>(rest: &mut &'b str) -> Option<Cow<'b, str>> {
    if rest.is_empty() {
        return None;
    }
    let mut len = rest.len();
    if len > CHUNK_LEN {
        len = whole_len(&rest.as_bytes()[..CHUNK_LEN]);
    }
    let (chunk, after) = rest.split_at_checked(len).unwrap_or((*rest, ""));
    *rest = after;
    Some(unescape(chunk))
}

/// Returns the beginning of the text of the body of a JSON string: some hundred characters, or all there are.
pub(crate) fn decoded_start(body: &str) -> Cow<'_, str> {
    const LEN: usize = 512;
    if body.len() <= LEN {
        return unescape(body);
    }
    let len = whole_len(&body.as_bytes()[..LEN]);
    unescape(body.get(..len).unwrap_or(body))
}

/// The characters beyond ASCII that [`Json`](transcript_format::json::Json) escapes: some readers split lines at them.
const LINE_ENDS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// Returns the length of a text as the body of a string of [`Json`](transcript_format::json::Json).
pub(crate) fn escaped_len(text: &str) -> u64 {
    let more = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 1,
        0..0x20 => 5,
        _ => 0,
    });
    text.len() as u64 + more.sum::<u64>() + of_line_ends(text)
}

/// Returns how many bytes more the escapes of line ends take.
fn of_line_ends(text: &str) -> u64 {
    if !may_have_line_ends(text.as_bytes()) {
        return 0;
    }
    let ends = text.matches(LINE_ENDS);
    ends.map(|end| (UNIT_LEN - end.len()) as u64).sum()
}

/// Returns whether two bytes are the end of a line end. Most texts have characters beyond ASCII and no line ends, so all bytes of a block
/// are compared without a branch, many at once.
fn may_have_line_ends(bytes: &[u8]) -> bool {
    const BLOCK_LEN: usize = 4 << 10;
    let is_end = |first: u8, second: u8| {
        (first == 0xc2) & (second == 0x85) | (first == 0x80) & (second & 0xfe == 0xa8)
    };
    let next = bytes.get(1..).unwrap_or_default().chunks(BLOCK_LEN);
    bytes.chunks(BLOCK_LEN).zip(next).any(|(block, next)| {
        let pairs = block.iter().zip(next);
        pairs.fold(false, |found, (first, second)| {
            found | is_end(*first, *second)
        })
    })
}

/// Returns the length of the body of a JSON string after its text was read and escaped again: writers differ in what they
/// escape.
pub(crate) fn rewritten_len(body: &str) -> u64 {
    // Most bodies have the escapes that are written here, too.
    if !body.contains("\\u") && !body.contains("\\/") {
        return body.len() as u64 + of_line_ends(body);
    }
    decoded(body).map(|chunk| escaped_len(&chunk)).sum()
}

/// Identifies a text by its characters, without the white space around it. It is made of chunks, so that the text is never in
/// memory as a whole.
#[derive(Default)]
pub(crate) struct Fingerprint {
    hasher: DefaultHasher,
    has_begun: bool,
    /// White space that belongs to the text if something follows it.
    space: String,
}

impl Fingerprint {
    pub(crate) fn of_body(body: &str) -> u64 {
        let mut fingerprint = Self::default();
        decoded(body).for_each(|chunk| fingerprint.add(&chunk));
        fingerprint.finish()
    }

    pub(crate) fn add(&mut self, text: &str) {
        let text = if self.has_begun {
            text
        } else {
            text.trim_start()
        };
        let inner = text.trim_end();
        if !inner.is_empty() {
            self.has_begun = true;
            self.hasher.write(self.space.as_bytes());
            self.space.clear();
            self.hasher.write(inner.as_bytes());
        }
        self.space.push_str(&text[inner.len()..]);
    }

    pub(crate) fn finish(&self) -> u64 {
        self.hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use transcript_format::json::Json;

    use super::*;

    const BODIES: [&str; 6] = [
        r"plain",
        r"a\nb\\c\\\u0041\u00e9",
        r"\ud83d\ude42\ud83d\ude42 \ud83d x",
        r"\\\\\\\\ud83d\\\\",
        "é🙂\u{2028}日本語",
        r#"\"\/\b\f\r\t\u12"#,
    ];

    #[test]
    fn chunks_of_any_length_are_the_whole() {
        for body in BODIES {
            let body = body.repeat(3);
            for len in 1..body.len() {
                let cut = whole_len(&body.as_bytes()[..len]);
                assert!(cut <= len && cut + 12 > len, "{body} {len}");
                let (start, rest) = body.split_at(cut);
                let parts = unescape(start).into_owned() + &unescape(rest);
                assert_eq!(parts, unescape(&body), "{body} {len}");
            }
        }
    }

    #[test]
    fn long_bodies_decode_in_chunks() {
        for body in BODIES {
            let body = body.repeat(CHUNK_LEN / 4);
            let chunks: Vec<Cow<'_, str>> = decoded(&body).collect();
            assert!(chunks.len() > 1);
            assert_eq!(chunks.concat(), unescape(&body));
        }
    }

    #[test]
    fn the_length_is_that_of_the_escaped_text() {
        let text: String = (0..0x250)
            .chain(0x2020..0x2030)
            .filter_map(char::from_u32)
            .collect();
        assert_eq!(
            escaped_len(&text),
            Json::from(&*text).text().len() as u64 - 2
        );
    }

    #[test]
    fn line_ends_count_at_every_place() {
        for end in LINE_ENDS {
            for before in (0..80).chain(4090..4100) {
                let text = format!("{}{end}é", "a".repeat(before));
                let len = Json::from(&*text).text().len() as u64 - 2;
                assert_eq!((escaped_len(&text), rewritten_len(&text)), (len, len));
            }
        }
    }

    #[test]
    fn the_length_of_a_body_is_that_of_its_text_escaped_again() {
        for body in BODIES
            .map(str::to_owned)
            .into_iter()
            .chain(BODIES.map(|body| body.repeat(CHUNK_LEN / 4)))
        {
            let json = Json::from(&*unescape(&body));
            assert_eq!(
                rewritten_len(&body),
                json.text().len() as u64 - 2,
                "{body:.40}"
            );
        }
    }

    #[test]
    fn a_fingerprint_is_that_of_the_text_without_space_around_it() {
        let of = |parts: &[&str]| {
            let mut fingerprint = Fingerprint::default();
            parts.iter().for_each(|part| fingerprint.add(part));
            fingerprint.finish()
        };
        assert_eq!(of(&[" a b\n"]), of(&["", "a", " ", "b", "\t"]));
        assert_ne!(of(&["a b"]), of(&["ab"]));
        assert_ne!(of(&["a"]), of(&["b"]));
    }
}
