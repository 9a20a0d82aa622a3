//! The start of the value of a name, and its syntax.

use crate::class::{ALNUM, Class};
use crate::value::named::{NamedValue, ValueSyntax};
use crate::wrap::after_prefix;

const BLANK_CHARS: Class = Class::of(" \t");
/// Calls that return their argument, or a hash of it.
const PASSING_CALLS: [&str; 26] = [
    "some",
    "ok",
    "just",
    "md5",
    "sha1",
    "sha2",
    "sha256",
    "crypt",
    "hash",
    "hash_password",
    "password",
    "hashpw",
    "hashsync",
    "b64encode",
    "b64decode",
    "atob",
    "btoa",
    "base64encode",
    "str",
    "string",
    "bytes",
    "from",
    "secretstr",
    "secretstring",
    "strdup",
    "unhexlify",
];
impl NamedValue<'_> {
    /// Returns where the value starts, and how it stands there.
    pub(super) fn position(&self) -> Option<(usize, ValueSyntax)> {
        let before = self.before();
        let mut at = self.name.end;
        let quote = self.byte(at).filter(|_| self.is_quote(at));
        let is_quoted = quote.is_some() && before == quote;
        // `"password:"`: the quote behind the colon ends the text.
        let is_text = matches!(before, Some(b'"' | b'\'')) && self.byte(at + 1) == before;
        if is_text && self.byte(at) == Some(b':') {
            return None;
        }
        if is_quoted {
            at += 1;
        } else if quote.is_some() {
            return self.after_text(at);
        } else if quote.is_none() && self.byte(at) == Some(b'?') && self.is_quote(at + 1) {
            // A question.
            return self.after_text(at + 1);
        }
        // `config["name"]`, `[name] => value`, `name[] = "value"`.
        let opened = self.name.start.checked_sub(1 + usize::from(is_quoted));
        let is_indexed = opened.and_then(|at| self.byte(at)) == Some(b'[');
        if is_indexed && self.byte(at) == Some(b']') {
            at += 1;
        } else if self.byte(at) == Some(b'[') {
            let end = self.skip(at + 1, Class::of("0123456789"));
            at = if self.byte(end) == Some(b']') {
                end + 1
            } else {
                at
            };
        }
        if self.byte(at) == Some(b'?') && self.byte(at + 1) != Some(b'?') {
            at += 1;
        }
        // Bold, and then the colon: `**password**: value`, `**password:** value`.
        let bold = self.skip(at, Class::of("*_"));
        if bold > at + 1 && self.byte(bold) == Some(b':') {
            at = bold;
        }
        let after = self.skip(at, BLANK_CHARS);
        let is_flag = self.is_flag();
        match self.byte(after)? {
            b'=' => {
                let end = self.skip(after, Class::of("=>~"));
                let value = self.skip(end, BLANK_CHARS);
                let is_tight = after == at && value == end;
                let way = match is_tight {
                    true if self.is_constant() && !is_quoted => ValueSyntax::Shell,
                    true if is_flag => ValueSyntax::Word,
                    _ => ValueSyntax::Equals,
                };
                Some((value, way))
            }
            b':' => {
                if self.byte(after + 1) == Some(b'=') {
                    return Some((self.skip(after + 2, BLANK_CHARS), ValueSyntax::Equals));
                }
                if self.byte(after + 1) == Some(b':') {
                    return None;
                }
                let value = self.skip(after + 1, Class::of(" \t*"));
                Some((value, ValueSyntax::Colon))
            }
            b'<' if self.starts(after, "<- ") => {
                Some((self.skip(after + 2, BLANK_CHARS), ValueSyntax::Equals))
            }
            b'!' if self.starts(after, "!=") => {
                Some((self.skip(after, Class::of("!= \t")), ValueSyntax::Equals))
            }
            // `<key>name</key>`, and then `<string>value</string>`.
            b'<' if before == Some(b'>') && self.starts(after, "</") => {
                let close = self
                    .line_after(after, 32)
                    .iter()
                    .position(|byte| *byte == b'>')?;
                let (value, way) = self.text_of_tag(after + close);
                (self.byte(value - 1) == Some(b'>')).then_some((value, way))
            }
            // `Unseal Key 1: value`.
            b'1'..=b'9' if after > at && self.starts(after + 1, ": ") => {
                Some((self.skip(after + 2, BLANK_CHARS), ValueSyntax::Near))
            }
            b'|' if self.byte(after + 1) == Some(b'|') => {
                Some((self.skip(after + 2, Class::of("= \t")), ValueSyntax::Equals))
            }
            b'?' if self.starts(after, "??") => {
                Some((self.skip(after + 2, Class::of("= \t")), ValueSyntax::Equals))
            }
            // `ENV.fetch("NAME") { "value" }`, `ENV["NAME"] || "value"`.
            b')' if is_quoted => {
                let open = self.skip(after + 1, BLANK_CHARS);
                let value = self.skip(open, Class::of("{|? \t"));
                (value > open && self.is_quote(value)).then_some((value, ValueSyntax::Equals))
            }
            b',' if is_quoted => {
                let opened = opened.and_then(|at| self.byte(at));
                let value = self.skip(after + 1, Class::of(" \t\n"));
                let is_call = opened == Some(b'(') && self.is_quote(value);
                self.attribute(at - 1)
                    .or_else(|| is_call.then_some((value, ValueSyntax::Call)))
            }
            b',' => self.attribute(at),
            b'(' => {
                let value = self.skip(after + 1, BLANK_CHARS);
                self.is_quote(value).then_some((value, ValueSyntax::Call))
            }
            b'>' if before == Some(b'<') || self.is_in_tag() => Some(self.text_of_tag(after)),
            b'|' if !is_flag => Some((self.skip(after + 1, BLANK_CHARS), ValueSyntax::Column)),
            0xe2 if self.text[after..].starts_with("\u{2502}".as_bytes()) => {
                Some((self.skip(after + 3, BLANK_CHARS), ValueSyntax::Column))
            }
            0xe2 if self.text[after..].starts_with("\u{2192}".as_bytes()) => {
                Some((self.skip(after + 3, BLANK_CHARS), ValueSyntax::Near))
            }
            b'-' if after > at && self.starts(after, "- ") => {
                Some((self.skip(after + 1, BLANK_CHARS), ValueSyntax::Near))
            }
            // `Password { get; set; } = "…"`.
            // `textbox "Password" [ref=e12]: value`.
            b'[' if is_quoted && after > at => {
                let line = self.line_after(after, 48);
                let sign = memchr::memmem::find(line, b"]: ")?;
                Some((after + sign + 3, ValueSyntax::Colon))
            }
            b'{' if self.starts(after, "{ get;") => {
                let line = self.line_after(after, 64);
                let sign = memchr::memmem::find(line, b"} = ")?;
                Some((after + sign + 4, ValueSyntax::Equals))
            }
            // `<Pass encoding="base64">`.
            _ if before == Some(b'<') && after > at => {
                let end = self
                    .line_after(after, 64)
                    .iter()
                    .position(|byte| b"<>".contains(byte))?;
                (self.byte(after + end) == Some(b'>')).then(|| self.text_of_tag(after + end))
            }
            // An answer of Redis: `1) "name"`, `2) "value"`.
            b'\r' | b'\n' if is_quoted => {
                let number = self.skip_space(after);
                let value = self.skip(number, Class::of("0123456789) "));
                let is_answer = value > number && self.byte(value - 1) == Some(b' ');
                (is_answer && self.is_quote(value)).then_some((value, ValueSyntax::Equals))
            }
            // `? name`, and on the next line `: value`.
            b'\r' | b'\n' if !is_quoted => self.attribute(at).or_else(|| {
                let next = self.skip_space(after);
                let is_key = self.line_before(64).ends_with(b"? ");
                let is_value = is_key && self.starts(next, ": ");
                is_value.then(|| (self.skip(next + 1, BLANK_CHARS), ValueSyntax::Colon))
            }),
            _ if is_quoted => self.attribute(at - 1),
            0xe6 if self.behind_copula(after).is_some() => {
                Some((self.behind_copula(after)?, ValueSyntax::Sentence))
            }
            _ if after == at => None,
            // `name "value";`.
            b'"' if after > at && !self.view.is_outer_quote(after) && !self.is_at_line_start() => {
                Some((after, ValueSyntax::Near))
            }
            // `password 'value'` of SQL.
            b'\'' if self.name.len() < 12 => Some((after, ValueSyntax::Word)),
            _ if is_flag => Some((after, ValueSyntax::Word)),
            _ if self.is_macro() => self.is_quote(after).then_some((after, ValueSyntax::Word)),
            _ if self.is_setting() => Some((self.behind_option(after), ValueSyntax::Word)),
            // `var name string = "…"`.
            _ if self.typed(after).is_some() => self.typed(after),
            _ if self.behind_copula(after).is_some() => {
                let value = self.behind_copula(after)?;
                Some((self.skip(value, Class::of(": ")), ValueSyntax::Sentence))
            }
            // A column of a table, or a setting without a sign.
            _ if self.is_at_line_start() => Some((after, ValueSyntax::Column)),
            _ => None,
        }
    }

    /// Returns what belongs to a text that the name ends, and whose quote is at `at`: a value, or the key of several words.
    fn after_text(&self, at: usize) -> Option<(usize, ValueSyntax)> {
        let sign = self.skip(at + 1, BLANK_CHARS);
        let value = self.skip(sign, Class::of(":=> \t"));
        let is_key = value > sign && self.is_quote(value) && !self.view.is_outer_quote(value);
        let is_json_key =
            value > sign && self.view.is_outer_quote(value) && self.view.is_outer_quote(at);
        // The answer to a question is a value.
        let way = match self.byte(at - 1) {
            Some(b'?') => ValueSyntax::Equals,
            _ => ValueSyntax::Near,
        };
        self.attribute(at)
            .or_else(|| (is_key || is_json_key).then_some((value, way)))
    }

    /// Returns the text behind a type at `at` and an equals sign.
    fn typed(&self, at: usize) -> Option<(usize, ValueSyntax)> {
        let end = self.skip(at, ALNUM.or(Class::of("*[]_.")));
        let sign = self.skip(end, BLANK_CHARS);
        let value = self.skip(sign + 1, BLANK_CHARS);
        let is_typed = end > at && self.byte(sign) == Some(b'=') && self.is_quote(value);
        is_typed.then_some((value, ValueSyntax::Equals))
    }

    /// Returns the position after `is`, `is now` and the like at `at`.
    fn behind_copula(&self, at: usize) -> Option<usize> {
        const COPULAS: [&str; 13] = [
            "is ",
            "is:",
            "to ",
            "was ",
            "ist ",
            "lautet ",
            "es ",
            "est ",
            "era ",
            "\u{e9} ",
            "\u{e8} ",
            "\u{662f} ",
            "\u{662f}",
        ];
        const NOW_WORDS: [&str; 3] = ["now ", "jetzt ", "ahora "];
        let word = COPULAS.iter().find(|word| self.starts(at, word))?;
        let value = self.skip(at + word.len(), BLANK_CHARS);
        let now = NOW_WORDS.iter().find(|word| self.starts(value, word));
        Some(value + now.map_or(0, |word| word.len()))
    }

    /// Returns whether the name is an option: with two hyphens, or a long one with one hyphen.
    fn is_flag(&self) -> bool {
        let before = &self.text[..self.name.start];
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'"' | b'\'');
        let is_long = self.name.len() >= 5;
        let is_single = before
            .strip_suffix(b"-")
            .is_some_and(|rest| rest.last().is_some_and(is_blank));
        before.ends_with(b"--") || is_long && is_single
    }

    /// Returns where the value of an option starts that is at `at`, as in `secret set NAME --body value`.
    fn behind_option(&self, at: usize) -> usize {
        const OPTION_CHARS: Class = ALNUM.or(Class::of("-"));
        let end = self.skip(at, OPTION_CHARS);
        let value = self.skip(end, Class::of(" ="));
        if self.starts(at, "-") && value > end {
            value
        } else {
            at
        }
    }

    /// Returns the value of an attribute or key `value` behind a name that is itself the value of another one:
    /// `key="name" value="…"`, `"name": "NAME", "value": "…"`, `<property name="NAME">…`.
    fn attribute(&self, at: usize) -> Option<(usize, ValueSyntax)> {
        const SEPARATOR_CHARS: Class = Class::of("\"' \t\r,-+");
        let mut between = self.skip(at, SEPARATOR_CHARS);
        if self.byte(between) == Some(b'\n') {
            between = after_prefix(self.text, between + 1);
        }
        let words = ["value", "parametervalue"].into_iter();
        let mut words = words.filter(|word| between > at && self.starts(between, word));
        let word = between + words.next()?.len();
        let sign = self.skip(word, Class::of("\"' \t"));
        matches!(self.byte(sign)?, b'=' | b':')
            .then(|| (self.skip(sign + 1, Class::of(" \t")), ValueSyntax::Colon))
    }

    /// Returns whether the name is in a tag of XML, at its end.
    fn is_in_tag(&self) -> bool {
        let before = &self.text[self.name.start.saturating_sub(64)..self.name.start];
        let open = before.iter().rposition(|byte| *byte == b'<');
        open.is_some_and(|open| {
            !before[open..].contains(&b'>') && before.get(open + 1) != Some(&b'/')
        })
    }

    /// Returns where the text of a tag starts whose `>` is at `at`: within a tag that says only that it is a value.
    fn text_of_tag(&self, at: usize) -> (usize, ValueSyntax) {
        let text = self.skip_space(at + 1);
        let tags = ["<value>", "<string>"];
        let tag = tags.iter().find(|tag| self.starts(text, tag));
        let text = text + tag.map_or(0, |tag| tag.len());
        (text + usize::from(self.is_quote(text)), ValueSyntax::Tag)
    }

    /// Returns whether the name is that of a macro of C: its value is a text, or none of its own.
    fn is_macro(&self) -> bool {
        self.line_before(64).trim_ascii_end().ends_with(b"#define")
    }

    /// Returns whether the words before the name say that it is being set.
    fn is_setting(&self) -> bool {
        let before = String::from_utf8_lossy(self.line_before(200)).to_ascii_lowercase();
        let marks = [' ', '\t', '\u{2192}', ':', '"', '\'', '+', '-', '>'];
        let word = before.trim_end().rsplit(marks).next().unwrap_or_default();
        let is_set = matches!(
            word,
            "set"
                | "env"
                | "setx"
                | "config"
                | "export"
                | "setenv"
                | "#define"
                | "define"
                | "x"
                | "gx"
                | "ux"
                | "lx"
        ) || before.contains(" config set ");
        is_set
            || self.is_in_netrc()
            || before.contains("requirepass")
            || before.contains("masterauth")
    }

    /// Returns whether a machine and a login stand before the name, as in `.netrc`.
    pub(super) fn is_in_netrc(&self) -> bool {
        let around = &self.text[self.name.start.saturating_sub(200)..self.name.start];
        let has = |word: &str| memchr::memmem::find(around, word.as_bytes()).is_some();
        has("login ") && (has("machine ") || has("\ndefault ")) || {
            let line = self.line_before(200);
            memchr::memmem::find(line, b"login ").is_some()
        }
    }

    /// Returns where a value starts behind what stands before its quote: a type, a tag of YAML, a prefix, a call.
    pub(super) fn behind_type(&self, at: usize, way: ValueSyntax) -> (usize, ValueSyntax) {
        let (mut at, mut way) = (at, way);
        let first = self.byte(at).unwrap_or_default();
        // `password: string = "…"`.
        if way == ValueSyntax::Colon && first.is_ascii_alphabetic() || first == b'&' {
            const TYPE_CHARS: Class = ALNUM.or(Class::of("_<>&.[]|'"));
            let end = self.skip(at, TYPE_CHARS);
            let sign = self.skip(end, BLANK_CHARS);
            let value = self.skip(sign + 1, BLANK_CHARS);
            if sign > end && self.byte(sign) == Some(b'=') && self.is_quote(value) {
                (at, way) = (value, ValueSyntax::Equals);
            }
        }
        // `&anchor value`, `!!str value`.
        if way == ValueSyntax::Colon && matches!(self.byte(at), Some(b'&' | b'!')) {
            let end = self.skip(at + 1, ALNUM.or(Class::of("_-!")));
            let is_tag = first == b'&' || self.starts(at, "!!") || self.starts(at, "!unsafe");
            if is_tag && end > at + 1 && self.byte(end) == Some(b' ') {
                at = self.skip(end, BLANK_CHARS);
            }
        }
        // `Some("…")`, `MD5('…')`.
        let path = self.skip(at, ALNUM.or(Class::of("_.:")));
        if path > at && self.byte(path) == Some(b'(') {
            let call = String::from_utf8_lossy(&self.text[at..path]).to_ascii_lowercase();
            let last = call.rsplit(['.', ':']).next().unwrap_or_default();
            let value = self.skip(path + 1, Class::of(" bN"));
            if PASSING_CALLS.contains(&last) && self.is_quote(value) {
                at = value;
            }
        }
        // The next line of `var_dump`: `string(9) "…"`.
        if way == ValueSyntax::Equals && matches!(self.byte(at), Some(b'\r' | b'\n')) {
            let next = self.skip_space(at);
            let value = self.skip(next, Class::of("string(0123456789) "));
            if self.starts(next, "string(") && self.byte(value) == Some(b'"') {
                at = value;
            }
        }
        // `b"…"`, `@"…"`, `$'…'`, `N'…'`.
        let is_prefix = matches!(
            self.byte(at),
            Some(b'b' | b'r' | b'f' | b'@' | b'$' | b'u' | b'N')
        );
        if is_prefix && matches!(self.byte(at + 1), Some(b'"' | b'\'')) {
            at += 1;
        }
        (at, way)
    }
}
