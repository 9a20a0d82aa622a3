//! The text of a line as a person reads it, with the way back to the bytes of the line.
//!
//! A line contains text that was escaped once by its JSON, and often again by the program that printed it: JSON within
//! JSON, percent signs in addresses, entities in HTML, colours of a terminal. A [`View`] has all of it decoded, whatever
//! the depth, and knows where each byte of it stands in the line.

use std::ops::Range;

use memchr::memchr3;

/// Text that was decoded, and the places of its bytes.
#[derive(Debug, Default)]
pub(crate) struct View {
    text: Vec<u8>,
    /// The starts of runs whose bytes are next to each other both here and in the line. A run of no bytes marks
    /// something that was omitted.
    runs: Vec<VerbatimRun>,
    end: u32,
    /// Whether it is text of several lines, and not a line of JSON.
    is_text: bool,
}

#[derive(Clone, Copy, Debug)]
struct VerbatimRun {
    at: u32,
    raw: u32,
}

impl View {
    /// A view of text that is not JSON, such as a result that is kept in a file of its own.
    pub(crate) fn of_text() -> Self {
        Self {
            is_text: true,
            ..Self::default()
        }
    }

    /// Decodes a line, a part of one, or a text.
    pub(crate) fn decode(&mut self, raw: &[u8]) {
        self.text.clear();
        self.runs.clear();
        self.end = to_u32(raw.len());
        let mut at = 0;
        while let Some(found) = memchr3(b'\\', b'%', b'&', &raw[at..]) {
            let special = at + found;
            let unit = match raw[special] {
                b'\\' => escape(raw, special),
                b'%' => percent(raw, special),
                _ => entity(raw, special),
            };
            match unit {
                Some((character, len)) => {
                    self.text.extend_from_slice(&raw[at..special]);
                    self.push(character, special, special + len);
                    at = special + len;
                }
                None => {
                    self.text.extend_from_slice(&raw[at..=special]);
                    at = special + 1;
                }
            }
        }
        self.text.extend_from_slice(&raw[at..]);
    }

    /// Adds what a range of the line stands for.
    fn push(&mut self, character: Unit, start: usize, end: usize) {
        self.runs.push(VerbatimRun {
            at: to_u32(self.text.len()),
            raw: to_u32(start),
        });
        match character {
            Unit::Byte(byte) => self.text.push(byte),
            Unit::Char(character) => {
                let mut utf8 = [0; 4];
                let utf8 = character.encode_utf8(&mut utf8);
                self.text.extend_from_slice(utf8.as_bytes());
            }
            Unit::Nothing => {}
        }
        self.runs.push(VerbatimRun {
            at: to_u32(self.text.len()),
            raw: to_u32(end),
        });
    }

    /// The decoded text.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns where the byte at `at` starts in the line.
    pub(crate) fn raw_start(&self, at: usize) -> usize {
        if at >= self.text.len() {
            return self.end as usize;
        }
        let next = self.runs.partition_point(|run| run.at as usize <= at);
        match next.checked_sub(1).map(|last| self.runs[last]) {
            Some(run) => run.raw as usize + (at - run.at as usize),
            None => at,
        }
    }

    /// Returns which byte of the text starts at `raw` in the line.
    pub(crate) fn at_raw(&self, raw: usize) -> usize {
        let next = self.runs.partition_point(|run| run.raw as usize <= raw);
        match next.checked_sub(1).map(|last| self.runs[last]) {
            Some(run) => run.at as usize + (raw - run.raw as usize),
            None => raw,
        }
    }

    /// Returns where the byte before `end` ends in the line.
    pub(crate) fn raw_end(&self, end: usize) -> usize {
        let next = self.runs.partition_point(|run| (run.at as usize) < end);
        match self.runs.get(next) {
            Some(run) if run.at as usize == end => run.raw as usize,
            _ => self.raw_start(end - 1) + 1,
        }
    }

    /// Returns the bytes of the line that a range stands for.
    pub(crate) fn raw(&self, range: &Range<usize>) -> Range<usize> {
        if range.is_empty() {
            self.raw_start(range.start)..self.raw_start(range.start)
        } else {
            self.raw_start(range.start)..self.raw_end(range.end)
        }
    }

    /// Returns whether something that is not a text, such as a colour, stands before the byte at `at`.
    pub(crate) fn is_cut_before(&self, at: usize) -> bool {
        at == 0 || self.raw_end(at) != self.raw_start(at)
    }

    /// Returns how deep the quote at `at` is escaped: its bytes in the line.
    pub(crate) fn depth(&self, at: usize) -> usize {
        self.raw_end(at + 1) - self.raw_start(at)
    }

    /// Returns the last quote in a range that starts or ends a string of the line itself.
    pub(crate) fn last_outer_quote(&self, range: Range<usize>) -> Option<usize> {
        if self.is_text {
            return None;
        }
        let mut end = range.end;
        let mut next = self.runs.partition_point(|run| (run.at as usize) < end);
        loop {
            // Of the two runs of a unit, the first is the decoded text, and the second the verbatim text after it.
            let (start, is_plain) = match next.checked_sub(1) {
                Some(last) => (self.runs[last].at as usize, last % 2 == 1),
                None => (0, true),
            };
            let from = start.max(range.start);
            let quote = memchr::memrchr(b'"', &self.text[from.min(end)..end]);
            match quote.filter(|_| is_plain) {
                Some(quote) => return Some(from + quote),
                None if start <= range.start => return None,
                None => (end, next) = (start, next - 1),
            }
        }
    }

    /// Returns the first quote in a range that starts or ends a string of the line itself.
    pub(crate) fn first_outer_quote(&self, range: Range<usize>) -> Option<usize> {
        if self.is_text {
            return None;
        }
        let mut start = range.start;
        let mut next = self.runs.partition_point(|run| run.at as usize <= start);
        while start < range.end {
            let is_plain = next % 2 == 0;
            let end = self
                .runs
                .get(next)
                .map_or(self.text.len(), |run| run.at as usize);
            let end = end.min(range.end);
            let quote = memchr::memchr(b'"', &self.text[start..end.max(start)]);
            if let Some(quote) = quote.filter(|_| is_plain) {
                return Some(start + quote);
            }
            (start, next) = (end.max(start), next + 1);
            if next > self.runs.len() {
                break;
            }
        }
        None
    }

    /// Returns whether the byte at `at` is a quote that starts or ends a string of the line itself.
    pub(crate) fn is_outer_quote(&self, at: usize) -> bool {
        !self.is_text && self.text.get(at) == Some(&b'"') && self.depth(at) == 1
    }
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[derive(Clone, Copy)]
enum Unit {
    Byte(u8),
    Char(char),
    /// A colour, or another order to a terminal.
    Nothing,
}

/// Decodes backslashes and what they escape. How many there are does not matter: each level of JSON doubles them.
fn escape(raw: &[u8], at: usize) -> Option<(Unit, usize)> {
    const MAX_BACKSLASHES: usize = 64;
    let slashes = raw[at..].iter().take(MAX_BACKSLASHES);
    let count = slashes.take_while(|byte| **byte == b'\\').count();
    let next = at + count;
    let byte = raw.get(next).copied().unwrap_or(b' ');
    let one = |byte| Some((Unit::Byte(byte), count + 1));
    match byte {
        b'n' => one(b'\n'),
        b'r' => one(b'\r'),
        b't' => one(b'\t'),
        b'/' | b'\'' | b'`' | b'$' => one(byte),
        // An even number escapes itself, and the quote ends the string.
        b'"' if count % 2 == 1 => one(b'"'),
        // Whatever it is, an escape of JSON is one unit: no mask may start in the middle of one.
        b'u' => {
            let number = hex(raw.get(next + 1..next + 5)?)?;
            let order = sequence(raw, next + 5).filter(|_| number == 0x1b);
            match (order, char::from_u32(number)) {
                (Some(len), _) => Some((Unit::Nothing, count + 5 + len)),
                (None, Some(found)) => Some((Unit::Char(found), count + 5)),
                // Half of a pair.
                (None, None) => Some((Unit::Char(char::REPLACEMENT_CHARACTER), count + 5)),
            }
        }
        b'b' | b'f' if count % 2 == 1 => one(b' '),
        b'x' => match hex(raw.get(next + 1..next + 3)?)? {
            0x1b => sequence(raw, next + 3).map(|len| (Unit::Nothing, count + 3 + len)),
            number @ 0x20..0x7f => Some((Unit::Byte(u8::try_from(number).ok()?), count + 3)),
            _ => None,
        },
        b'e' => sequence(raw, next + 1).map(|len| (Unit::Nothing, count + 1 + len)),
        b'0' if raw[next..].starts_with(b"033") => {
            sequence(raw, next + 3).map(|len| (Unit::Nothing, count + 3 + len))
        }
        _ if count > 1 => Some((Unit::Byte(b'\\'), count)),
        _ => None,
    }
}

/// Returns the length of an order to a terminal behind its escape character, such as `[32m`.
fn sequence(raw: &[u8], at: usize) -> Option<usize> {
    const MAX_PARAMETERS: usize = 32;
    let rest = raw.get(at..)?;
    // A link or a title, up to its end character.
    if rest.starts_with(b"]") {
        const MAX_TITLE_LEN: usize = 2 << 10;
        let rest = &rest[..rest.len().min(MAX_TITLE_LEN)];
        let end = memchr::memmem::find(rest, b"u0007").map(|end| end + 5);
        return end.filter(|end| !rest[..*end].contains(&b'"'));
    }
    let rest = rest.strip_prefix(b"[")?;
    let end = rest.iter().take(MAX_PARAMETERS);
    let end = end.take_while(|byte| matches!(byte, 0x20..=0x3f)).count();
    rest.get(end)
        .filter(|byte| byte.is_ascii_alphabetic())
        .map(|_| end + 2)
}

/// Decodes a character of an address, such as `%3D`, or `%253D` of one within another.
fn percent(raw: &[u8], at: usize) -> Option<(Unit, usize)> {
    let mut digits = at + 1;
    while raw[digits..].starts_with(b"25") && hex(raw.get(digits + 2..digits + 4)?).is_some() {
        digits += 2;
    }
    let number = hex(raw.get(digits..digits + 2)?)?;
    let byte = u8::try_from(number).ok()?;
    let is_text = matches!(byte, 0x20..0x7f | b'\n' | b'\r' | b'\t');
    is_text.then_some((Unit::Byte(byte), digits + 2 - at))
}

/// Decodes an entity, such as `&quot;`, or `&amp;quot;` of one within another.
fn entity(raw: &[u8], at: usize) -> Option<(Unit, usize)> {
    const NAMED_ENTITIES: [(&[u8], u8); 7] = [
        (b"quot;", b'"'),
        (b"lt;", b'<'),
        (b"gt;", b'>'),
        (b"apos;", b'\''),
        (b"nbsp;", b' '),
        (b"equals;", b'='),
        (b"colon;", b':'),
    ];
    let mut name = at + 1;
    while raw[name..].starts_with(b"amp;") {
        name += 4;
    }
    let is_named = |(text, _): &&(&[u8], u8)| raw[name..].starts_with(text);
    if let Some((text, byte)) = NAMED_ENTITIES.iter().find(is_named) {
        return Some((Unit::Byte(*byte), name + text.len() - at));
    }
    if let Some(number) = raw[name..].strip_prefix(b"#") {
        let end = number.iter().take(8).position(|byte| *byte == b';')?;
        let text = std::str::from_utf8(&number[..end]).ok()?;
        let code = match text.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => text.parse().ok()?,
        };
        return char::from_u32(code).map(|found| (Unit::Char(found), name + end + 2 - at));
    }
    (name > at + 1).then_some((Unit::Byte(b'&'), name - at))
}

/// Reads hexadecimal digits.
fn hex(digits: &[u8]) -> Option<u32> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    digits
        .iter()
        .try_fold(0, |number, byte| Some(number << 4 | digit(byte)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(raw: &str) -> String {
        let mut view = View::default();
        view.decode(raw.as_bytes());
        String::from_utf8(view.text().to_vec()).unwrap()
    }

    #[test]
    fn text_is_decoded_whatever_escaped_it() {
        for (raw, text) in [
            (r"a\nb\\nc\\\\nd", "a\nb\nc\nd"),
            (r#"\"a\" \\\"b\\\""#, r#""a" "b""#),
            (r"\u0067hp_ \\u003d \u00e4", "ghp_ = \u{e4}"),
            ("a%3Db%253Dc 100% 5%zz", "a=b=c 100% 5%zz"),
            ("&quot;a&amp;quot; &#39;b&#x27; &c", "\"a\" 'b' &c"),
            (r"\u001b[01;31mghp_\u001b[m\u001b[Kabc", "ghp_abc"),
            (r"\x1b[0mA \033[1mB \e[2mC", "A B C"),
            (r"C:\\dir\\", r"C:\dir\"),
            (r"\d \\d", r"\d \d"),
        ] {
            assert_eq!(decoded(raw), text, "{raw}");
        }
    }

    #[test]
    fn a_quote_after_an_even_number_of_backslashes_ends_the_string() {
        let mut view = View::default();
        view.decode(br#""C:\\","b\"c""#);
        let text = view.text();
        let outer: Vec<usize> = (0..text.len())
            .filter(|at| view.is_outer_quote(*at))
            .collect();
        assert_eq!(text, br#""C:\","b"c""#);
        assert_eq!(outer, [0, 4, 6, 10]);
        for from in 0..=text.len() {
            for to in from..=text.len() {
                let within = || outer.iter().copied().filter(|at| (from..to).contains(at));
                assert_eq!(
                    view.first_outer_quote(from..to),
                    within().next(),
                    "{from}..{to}"
                );
                assert_eq!(
                    view.last_outer_quote(from..to),
                    within().next_back(),
                    "{from}..{to}"
                );
            }
        }
    }

    #[test]
    fn each_byte_leads_back_to_what_it_stands_for() {
        let raw = br#"{"a":"x\u001b[1my\\n\u00e4z%3D"}"#;
        let mut view = View::default();
        view.decode(raw);
        let text = String::from_utf8(view.text().to_vec()).unwrap();
        assert_eq!(text, "{\"a\":\"xy\n\u{e4}z=\"}");
        let raw_of = |part: &str| {
            let at = text.find(part).unwrap();
            let range = view.raw(&(at..at + part.len()));
            std::str::from_utf8(&raw[range]).unwrap()
        };
        assert_eq!(raw_of("x"), "x");
        assert_eq!(raw_of("y"), "y");
        assert_eq!(raw_of("\n"), r"\\n");
        assert_eq!(raw_of("\u{e4}"), r"\u00e4");
        assert_eq!(raw_of("z="), "z%3D");
        assert_eq!(raw_of("="), "%3D");
        assert_eq!(raw_of("xy"), r"x\u001b[1my");
        assert!(view.is_cut_before(text.find('y').unwrap()));
        assert!(!view.is_cut_before(text.find('x').unwrap()));
        assert_eq!(view.raw(&(text.len()..text.len())), raw.len()..raw.len());
    }
}
