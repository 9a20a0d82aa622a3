//! JSON that arrives in pieces: detects whether it is complete, and closes it when it is not.

use std::iter;

use transcript_format::object::Raw;

/// The input of a tool call that is being streamed.
///
/// Every byte is examined once. The input is complete exactly when its text is one JSON value; an
/// incomplete one can be closed after any byte.
///
/// ```
/// use transcript_messages::stream::Input;
///
/// let mut input = Input::new();
/// input.push(r#"{"path":"moon.rs","lines":[1,2"#);
/// assert!(!input.is_complete());
/// assert_eq!(input.closed(), r#"{"path":"moon.rs","lines":[1]}"#);
/// input.push("4]}");
/// assert!(input.is_complete());
/// ```
#[derive(Clone, Debug)]
pub struct Input {
    text: String,
    state: ParserState,
    /// The open containers, 1 for objects and 0 for arrays; the innermost is the lowest bit.
    open: u128,
    depth: u32,
    /// The text up to here becomes JSON by adding a quote (if `in_value`) and closing containers.
    keep: usize,
    in_value: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParserState {
    /// A value is expected.
    Value,
    /// After `[`.
    ValueOrEnd,
    /// After a comma in an object.
    Key,
    /// After `{`.
    KeyOrEnd,
    Colon,
    AfterValue,
    Text,
    Escape,
    /// After `\u`: the value of the digits so far, and their number.
    Unit(u16, u8),
    /// After a high surrogate; the next character decides whether it is paired.
    High,
    /// The rest of `true`, `false` or `null`.
    Literal(&'static [u8]),
    Number(Number),
    /// Not JSON, and no further bytes can change that.
    Broken,
}

/// The last part of a number that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    E,
    Sign,
    Exponent,
}

impl Number {
    fn is_whole(self) -> bool {
        matches!(
            self,
            Self::Zero | Self::Integer | Self::Fraction | Self::Exponent
        )
    }

    /// Returns the state after `byte`; `None` when it is not part of the number.
    fn next(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Minus, b'0') => Self::Zero,
            (Self::Minus | Self::Integer, b'0'..=b'9') => Self::Integer,
            (Self::Zero | Self::Integer, b'.') => Self::Point,
            (Self::Point | Self::Fraction, b'0'..=b'9') => Self::Fraction,
            (Self::Zero | Self::Integer | Self::Fraction, b'e' | b'E') => Self::E,
            (Self::E, b'+' | b'-') => Self::Sign,
            (Self::E | Self::Sign | Self::Exponent, b'0'..=b'9') => Self::Exponent,
            _ => return None,
        })
    }
}

/// The maximum nesting of an input: a line has 127 levels, and four of them are around the input.
const MAX_DEPTH: u32 = 123;

impl Default for Input {
    fn default() -> Self {
        Self::new()
    }
}

impl Input {
    /// Returns an empty input.
    #[must_use]
    pub fn new() -> Self {
        Self {
            text: String::new(),
            state: ParserState::Value,
            open: 0,
            depth: 0,
            keep: 0,
            in_value: false,
        }
    }

    /// Appends the next piece.
    pub fn push(&mut self, piece: &str) {
        let mut at = self.text.len();
        self.text.push_str(piece);
        while at < self.text.len() && self.state != ParserState::Broken {
            at = self.step(at);
        }
    }

    /// Returns the text received so far.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the text is exactly one JSON value, nested at most 123 levels.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.depth == 0
            && match self.state {
                ParserState::AfterValue => true,
                ParserState::Number(number) => number.is_whole(),
                _ => false,
            }
    }

    /// Returns whether no further bytes can make the text valid JSON.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.state == ParserState::Broken
    }

    /// Returns the text received so far, closed: open strings, arrays and objects end here, and
    /// incomplete parts (an escape, a number, a literal, a key without its value) are omitted. If
    /// nothing is left, returns the empty object. Of a broken input, uses the part before the
    /// error.
    #[must_use]
    pub fn closed(&self) -> String {
        if self.is_complete() {
            return self.text.trim_ascii().to_owned();
        }
        if self.keep == 0 {
            return "{}".to_owned();
        }
        let closers = (0..self.depth).map(|level| match self.open >> level & 1 {
            1 => '}',
            _ => ']',
        });
        let quote = iter::once('"').filter(|_| self.in_value);
        let kept = self.text[..self.keep].trim_ascii_start();
        kept.chars().chain(quote).chain(closers).collect()
    }

    /// Returns the value, if it is complete.
    #[must_use]
    pub fn value(&self) -> Option<Raw<'_>> {
        Raw::parse(&self.text).ok().filter(|_| self.is_complete())
    }

    /// Processes the byte at `at` and returns where to continue.
    fn step(&mut self, at: usize) -> usize {
        let byte = self.text.as_bytes()[at];
        match self.state {
            ParserState::Text => return self.skip_text(at),
            // The surrogate is not followed by an escape, so it stays unpaired: go on with this byte
            // as ordinary text.
            ParserState::High if !matches!(byte, b'"' | b'\\') => {
                self.state = ParserState::Text;
                return at;
            }
            // This byte ends the number and is not part of it.
            ParserState::Number(number) if number.next(byte).is_none() => {
                if number.is_whole() {
                    self.end_value(at);
                } else {
                    self.state = ParserState::Broken;
                }
                return at;
            }
            _ => {}
        }
        let end = at + 1;
        self.state = match (self.state, byte) {
            (ParserState::High, b'"') => {
                self.end_string(end);
                return end;
            }
            (ParserState::High, _) => ParserState::Escape,
            (ParserState::Escape, b'u') => ParserState::Unit(0, 0),
            (ParserState::Escape, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.keep_text(end);
                ParserState::Text
            }
            (ParserState::Unit(unit, count), _) => self.unit(unit, count, byte, end),
            (ParserState::Literal([expected]), _) if byte == *expected => {
                self.end_value(end);
                return end;
            }
            (ParserState::Literal([expected, rest @ ..]), _) if byte == *expected => {
                ParserState::Literal(rest)
            }
            (ParserState::Number(number), _) => number
                .next(byte)
                .map_or(ParserState::Broken, ParserState::Number),
            (state, b' ' | b'\t' | b'\n' | b'\r') if is_between_tokens(state) => state,
            (ParserState::Key | ParserState::KeyOrEnd, b'"') => ParserState::Text,
            (ParserState::Colon, b':') => ParserState::Value,
            (ParserState::KeyOrEnd, b'}') | (ParserState::ValueOrEnd, b']') => {
                self.close(end);
                return end;
            }
            (ParserState::AfterValue, b'}' | b']') if self.depth > 0 && closes(self.open, byte) => {
                self.close(end);
                return end;
            }
            (ParserState::AfterValue, b',') if self.depth > 0 => match self.open & 1 {
                1 => ParserState::Key,
                _ => ParserState::Value,
            },
            (ParserState::Value | ParserState::ValueOrEnd, _) => self.start_value(byte, end),
            _ => ParserState::Broken,
        };
        end
    }

    fn start_value(&mut self, byte: u8, end: usize) -> ParserState {
        match byte {
            b'"' => {
                self.in_value = true;
                self.keep_text(end);
                ParserState::Text
            }
            b'{' | b'[' if self.depth < MAX_DEPTH => {
                self.open = self.open << 1 | u128::from(byte == b'{');
                self.depth += 1;
                self.keep = end;
                if byte == b'{' {
                    ParserState::KeyOrEnd
                } else {
                    ParserState::ValueOrEnd
                }
            }
            b't' => ParserState::Literal(b"rue"),
            b'f' => ParserState::Literal(b"alse"),
            b'n' => ParserState::Literal(b"ull"),
            b'-' => ParserState::Number(Number::Minus),
            b'0' => ParserState::Number(Number::Zero),
            b'1'..=b'9' => ParserState::Number(Number::Integer),
            _ => ParserState::Broken,
        }
    }

    /// Skips text in a string up to its end, an escape, or the end of the received text.
    fn skip_text(&mut self, at: usize) -> usize {
        let rest = &self.text.as_bytes()[at..];
        let plain = rest
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
        let end = at + plain.unwrap_or(rest.len());
        if end > at {
            self.keep_text(end);
        }
        match self.text.as_bytes().get(end) {
            None => return end,
            Some(b'"') => self.end_string(end + 1),
            Some(b'\\') => self.state = ParserState::Escape,
            Some(_) => self.state = ParserState::Broken,
        }
        end + 1
    }

    fn unit(&mut self, unit: u16, count: u8, byte: u8, end: usize) -> ParserState {
        let Some(digit) = char::from(byte).to_digit(16) else {
            return ParserState::Broken;
        };
        // A hexadecimal digit has four bits.
        let unit = unit << 4 | digit as u16;
        match (count, unit) {
            (3, 0xD800..=0xDBFF) => ParserState::High,
            (3, _) => {
                self.keep_text(end);
                ParserState::Text
            }
            _ => ParserState::Unit(unit, count + 1),
        }
    }

    /// Marks `end` as a place where a string value may be cut; a key may not be cut.
    fn keep_text(&mut self, end: usize) {
        if self.in_value {
            self.keep = end;
        }
    }

    fn end_string(&mut self, end: usize) {
        if self.in_value {
            self.end_value(end);
        } else {
            self.state = ParserState::Colon;
        }
    }

    fn close(&mut self, end: usize) {
        self.open >>= 1;
        self.depth -= 1;
        self.end_value(end);
    }

    fn end_value(&mut self, end: usize) {
        self.in_value = false;
        self.keep = end;
        self.state = ParserState::AfterValue;
    }
}

fn is_between_tokens(state: ParserState) -> bool {
    matches!(
        state,
        ParserState::Value
            | ParserState::ValueOrEnd
            | ParserState::Key
            | ParserState::KeyOrEnd
            | ParserState::Colon
            | ParserState::AfterValue
    )
}

fn closes(open: u128, byte: u8) -> bool {
    byte == if open & 1 == 1 { b'}' } else { b']' }
}
