//! Server-sent events: turns bytes into events.

use memchr::{memchr, memchr2};

/// Parses the bytes of a `text/event-stream`, regardless of how they are split into pieces.
///
/// Lines end with LF, CR or CRLF; a byte order mark before the first one is skipped; several `data`
/// lines are joined with LF; comments, ids and unknown fields are ignored. Bytes that are not UTF-8
/// are read as U+FFFD.
///
/// ```
/// use transcript_messages::stream::Sse;
///
/// let mut events = Vec::new();
/// let mut sse = Sse::new();
/// for piece in [&b"event: ping\r"[..], b"\ndata: {\"type\":", b"\"ping\"}\r\n\r\n"] {
///     sse.push(piece, |name, data| events.push(format!("{name} {data}")));
/// }
/// assert_eq!(events, [r#"ping {"type":"ping"}"#]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Sse {
    /// The current, unterminated line.
    line: Vec<u8>,
    /// Whether the last byte was a CR, so that an LF now belongs to it.
    after_cr: bool,
    /// Whether the first line has ended.
    started: bool,
    name: String,
    /// The data lines, each followed by an LF.
    data: Vec<u8>,
}

impl Sse {
    /// Returns a parser before the first byte.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Consumes the next bytes and passes each event that they complete to `take`: its name, which
    /// may be empty, and its data.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&str, &str)) {
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', rest) else {
                self.line.extend_from_slice(rest);
                return;
            };
            self.after_cr = rest[end] == b'\r';
            if self.line.is_empty() {
                self.end_line(&rest[..end], &mut take);
            } else {
                self.line.extend_from_slice(&rest[..end]);
                let mut line = std::mem::take(&mut self.line);
                self.end_line(&line, &mut take);
                line.clear();
                self.line = line;
            }
            rest = &rest[end + 1..];
        }
    }

    /// Ends the stream. An event without the final blank line is passed on, too: some servers omit
    /// that line, and an event that was really cut is not valid JSON and will be ignored.
    pub fn finish(mut self, mut take: impl FnMut(&str, &str)) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.end_line(&line, &mut take);
        }
        self.dispatch(&mut take);
    }

    fn end_line(&mut self, line: &[u8], take: &mut impl FnMut(&str, &str)) {
        let line = if !std::mem::replace(&mut self.started, true) {
            line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            return self.dispatch(take);
        }
        let (field, value) = match memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            _ => {}
        }
    }

    fn dispatch(&mut self, take: &mut impl FnMut(&str, &str)) {
        if let Some(data) = self.data.strip_suffix(b"\n") {
            take(&self.name, &String::from_utf8_lossy(data));
        }
        self.data.clear();
        self.name.clear();
    }
}
