//! Whether the value of a name is a secret.

use std::ops::Range;

use crate::class::{ALNUM, Class};
use crate::names::Trust;
use crate::random::{
    is_camel, is_cased, is_dense, is_mixed, is_name_like, is_tangled, is_uuid, looks_random,
};
use crate::value::extent::unwrapped;
use crate::value::named::{NamedValue, Value, ValueSyntax};
use crate::value::stand_in::{
    has_label_word, is_algorithm, is_code, is_identifier, is_known_word, is_label, is_reference,
    is_type, stands_for_one,
};
use crate::wrap::after_prefix;

/// The maximum length of the start of a value by which it is classified, in bytes.
const MAX_CLASSIFIED_LEN: usize = 4 << 10;
/// The minimum length of a name of several words that may be a sentence, in bytes.
const MIN_SENTENCE_LEN: usize = 20;

impl NamedValue<'_> {
    /// Returns the value at `at` if it is a secret.
    pub(super) fn classify(&self, at: usize, way: ValueSyntax) -> Option<Value> {
        let first = self.byte(at)?;
        // Of a session, only the cookie is a secret.
        if self.meaning.kind == "session"
            && matches!(
                way,
                ValueSyntax::Colon | ValueSyntax::Column | ValueSyntax::Sentence
            )
        {
            return None;
        }
        // A block, or a value on the next line.
        let sign = self.skip(at, Class::of("|>-+"));
        let next_line = self.next_line(sign).filter(|_| way == ValueSyntax::Colon);
        if let Some(next) = next_line {
            // `kubectl describe` prints a rule below a name, and the value below the rule.
            let line = self.line_after(next, 80).trim_ascii();
            let is_rule = !line.is_empty() && line.iter().all(|byte| *byte == b'-');
            let below = is_rule.then(|| self.next_line(next + self.line_after(next, 80).len()));
            let next = after_prefix(self.text, below.flatten().unwrap_or(next));
            let value = self.bare(next, ValueSyntax::Colon);
            let is_block = sign > at;
            let is_line = matches!(
                self.byte(value.end),
                None | Some(b'\n' | b'\r' | b'"' | b'`')
            );
            let text = &self.text[value.clone()];
            let is_secret = is_line
                && (looks_random(text)
                    || (is_block || is_rule)
                        && is_mixed(text)
                        && text.len() >= 6
                        && !stands_for_one(text));
            return is_secret.then_some(Value {
                range: value,
                is_bare_json: false,
                is_sure: true,
            });
        }
        if way != ValueSyntax::Tag && matches!(first, b'"' | b'\'' | b'`') {
            if self.ends_text(at) {
                return None;
            }
            // Three quotes, as in Python and TOML.
            let count = self.text[at..]
                .iter()
                .take(3)
                .take_while(|byte| **byte == first)
                .count();
            let start = at + if count == 3 { 3 } else { 1 };
            let range = match way {
                ValueSyntax::Near | ValueSyntax::Cell => self.short_text(start, at)?,
                _ => self.quoted(start, at)?,
            };
            let range = self.within_quotes(range);
            let part = range.start..range.end.min(range.start + MAX_CLASSIFIED_LEN);
            let value = unwrapped(&self.text[part]);
            let is_sure = self.is_quoted_secret(&value, way)?;
            return Some(Value {
                range,
                is_bare_json: false,
                is_sure,
            });
        }
        if self.meaning.kind == "seed phrase" {
            let words = self.words(at);
            return words.map(|range| Value {
                range,
                is_bare_json: false,
                is_sure: true,
            });
        }
        let range = self.to_next_lines(self.bare(at, way), way);
        // Nothing else is in the column, and on the line.
        let next = self.byte(range.end);
        let is_column = matches!(next, None | Some(b'\n' | b'\r' | b'"' | b'|'))
            || self.starts(range.end, " |")
            || self.starts(range.end, " \u{2502}")
            || self.starts(range.end, "  ");
        if way == ValueSyntax::Column && !is_column {
            return None;
        }
        let end = range.end + usize::from(self.is_quote(range.end));
        if way == ValueSyntax::Tag && !self.text[end..].starts_with(b"</") {
            return None;
        }
        if let Some((range, is_sure)) = self.phrase(&range, way) {
            return Some(Value {
                range,
                is_bare_json: false,
                is_sure,
            });
        }
        let is_sure = self.is_bare_secret(&range, way)?;
        let name_quote = self.name.end;
        let is_bare_json = way == ValueSyntax::Colon && self.view.is_outer_quote(name_quote);
        Some(Value {
            range,
            is_bare_json,
            is_sure,
        })
    }

    /// Returns the words of a password that is a line of several ones: surely one with a number.
    fn phrase(&self, first: &Range<usize>, way: ValueSyntax) -> Option<(Range<usize>, bool)> {
        const MAX_PHRASE_LEN: usize = 80;
        // Without a blank before `=` it is a setting of a shell, and the words after the value are a command.
        let is_spaced = way == ValueSyntax::Colon
            || way == ValueSyntax::Equals && self.byte(self.name.end) == Some(b' ');
        let is_setting = is_spaced && self.is_at_line_start();
        let is_password = self.meaning.kind == "password" && self.meaning.trust == Trust::Name;
        if !is_setting || !is_password || self.byte(first.end) != Some(b' ') {
            return None;
        }
        let line = self
            .line_after(first.start, MAX_PHRASE_LEN + 1)
            .trim_ascii_end();
        let comment = line
            .windows(2)
            .position(|pair| matches!(pair, b" #" | b" ;" | b" /"));
        let line = line[..comment.unwrap_or(line.len())].trim_ascii_end();
        let is_letter =
            |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii() || *byte == b'-';
        let words = line.split(|byte| *byte == b' ');
        let count = words.clone().count();
        let is_phrase = (2..=8).contains(&count)
            && line.len() <= MAX_PHRASE_LEN
            && words
                .clone()
                .all(|word| !word.is_empty() && word.iter().all(is_letter));
        if !is_phrase || has_label_word(line) {
            return None;
        }
        let has_number = line.iter().any(u8::is_ascii_digit) && line[0].is_ascii_lowercase();
        Some((first.start..first.start + line.len(), has_number))
    }

    /// Returns a range without the quotes that are in it: `'"value"'`.
    fn within_quotes(&self, range: Range<usize>) -> Range<usize> {
        let is_quoted = range.len() > 2
            && self.is_quote(range.start)
            && self.byte(range.end - 1) == self.byte(range.start);
        if is_quoted {
            range.start + 1..range.end - 1
        } else {
            range
        }
    }

    /// Returns whether a value in quotes is a secret: surely, or perhaps.
    pub(super) fn is_quoted_secret(&self, value: &[u8], way: ValueSyntax) -> Option<bool> {
        if self.meaning.trust == Trust::Always {
            return (!value.is_empty() && !is_reference(value)).then_some(true);
        }
        if value.is_empty() || stands_for_one(value) || is_reference(value) {
            return None;
        }
        if self.is_random(value) {
            return Some(true);
        }
        if matches!(way, ValueSyntax::Near | ValueSyntax::Cell) {
            return self.is_near_secret(value, way);
        }
        let is_pass = self.meaning.kind == "password" && self.meaning.trust == Trust::NameAndForm;
        let is_weak = is_pass
            && matches!(
                way,
                ValueSyntax::Call | ValueSyntax::Word | ValueSyntax::Sentence | ValueSyntax::Column
            );
        if self.meaning.trust == Trust::Form || is_weak && !is_tangled(value) {
            return None;
        }
        let is_constant = self.is_constant();
        let is_password = self.meaning.kind == "password";
        if value.iter().all(u8::is_ascii_digit) {
            return (is_password && value.len() >= 4).then_some(true);
        }
        let has_blank = value.iter().any(u8::is_ascii_whitespace);
        if self.meaning.kind == "seed phrase" {
            let words = value.split(|byte| *byte == b' ');
            let is_phrase = value
                .iter()
                .all(|byte| byte.is_ascii_lowercase() || *byte == b' ');
            return (is_phrase && words.count() >= 12).then_some(true);
        }
        let is_letters = value.iter().all(u8::is_ascii_alphabetic) && !is_cased(value);
        if way == ValueSyntax::Call && (value.contains(&b'/') || is_letters && !is_password) {
            return None;
        }
        // A prompt, or a label.
        if has_blank
            && (way == ValueSyntax::Call || value.starts_with(b" ") || value.ends_with(b": "))
        {
            return None;
        }
        if has_blank {
            let is_shell = way == ValueSyntax::Shell || is_constant;
            let max = if is_shell { MAX_CLASSIFIED_LEN } else { 200 };
            if self.meaning.trust != Trust::Name || value.len() > max {
                return None;
            }
            // A command has options.
            let is_command = memchr::memmem::find(value, b" -").is_some();
            return match (is_shell, is_label(value) || is_command) {
                (true, _) | (_, false) => Some(true),
                // Words that say nothing about a field may be a phrase, or another text.
                _ => (is_password && !has_label_word(value)).then_some(false),
            };
        }
        if is_mixed(value) {
            let min = match self.meaning.trust {
                Trust::Name if is_password => 4,
                Trust::Name => 6,
                _ => 8,
            };
            let is_name = self.meaning.trust != Trust::Name && is_name_like(value);
            return (value.len() >= min && !is_name).then_some(true);
        }
        // Letters alone. A word may be one that names something.
        let is_title = value[0].is_ascii_uppercase()
            && value[1..]
                .iter()
                .all(|byte| byte.is_ascii_lowercase() || !byte.is_ascii());
        let is_word = value.iter().all(|byte| byte.is_ascii_alphabetic());
        match way {
            ValueSyntax::Shell if self.meaning.trust == Trust::Name => {
                (value.len() >= 4).then_some(true)
            }
            ValueSyntax::Shell => (value.len() >= 12).then_some(true),
            _ if is_constant && self.meaning.trust == Trust::Name => {
                (value.len() >= 4 && is_word).then_some(true)
            }
            _ if is_cased(value) => Some(true),
            // Some words with hyphens, or one that may be a label.
            _ if is_password
                && self.meaning.trust == Trust::Name
                && !is_word
                && value.len() >= 12 =>
            {
                let is_phrase = |byte: &u8| byte.is_ascii_lowercase() || b"-_".contains(byte);
                Some(value.iter().all(is_phrase))
            }
            _ if is_password && is_word && self.is_of_system() && !is_known_word(value) => {
                (value.len() >= 5).then_some(true)
            }
            _ if is_password
                && self.meaning.trust == Trust::Name
                && is_title
                && is_word
                && value.len() >= 8 =>
            {
                Some(false)
            }
            // A sentence without blanks.
            _ if is_word && is_camel(value) && value.len() >= MIN_SENTENCE_LEN => Some(false),
            _ if is_title
                || !is_word
                || is_camel(value)
                || !value.iter().any(u8::is_ascii_lowercase) =>
            {
                None
            }
            _ if is_password => Some(value.len() >= 8 || value.len() >= 6 && !is_known_word(value)),
            _ => (value.len() >= 8).then_some(value.len() >= 12),
        }
    }

    /// Returns whether a value is a user and a password, as in `BASIC_AUTH=user:password`.
    fn is_user_and_password(&self, value: &[u8]) -> bool {
        let Some(colon) = memchr::memchr(b':', value) else {
            return false;
        };
        let (user, password) = (&value[..colon], &value[colon + 1..]);
        let is_pair = is_identifier(user) && password.len() >= 6 && is_mixed(password);
        self.meaning.kind == "credential"
            && is_pair
            && password.iter().all(u8::is_ascii_graphic)
            && !password.iter().any(|byte| b"/:".contains(byte))
            && !password.starts_with(b"$")
            && !stands_for_one(password)
    }

    /// Returns whether a value is a secret that stands somewhere near: only if no word and no name is like it. In the
    /// column of a name, less is enough.
    fn is_near_secret(&self, value: &[u8], way: ValueSyntax) -> Option<bool> {
        let value = value.trim_ascii();
        // A line that continues, or the name of something that the name of the value is part of.
        let lower = value.to_ascii_lowercase();
        let is_own_name = is_identifier(value)
            && ["key", "token", "secret", "password"]
                .iter()
                .any(|word| memchr::memmem::find(&lower, word.as_bytes()).is_some());
        if value.contains(&b'\n') || is_own_name {
            return None;
        }
        let is_cell = way == ValueSyntax::Cell
            && self.meaning.trust == Trust::Name
            && value.len() >= 6
            && is_mixed(value)
            && !is_name_like(value);
        (is_cell || self.meaning.trust != Trust::Form && is_tangled(value)).then_some(true)
    }

    /// Returns whether a quote at `at` ends the text that the name is in, as in `'Password: '`.
    fn ends_text(&self, at: usize) -> bool {
        let mark = self.text[at];
        let before = self.line_before(200);
        let quotes = before.iter().filter(|byte| **byte == mark).count();
        let is_end = self
            .byte(at + 1)
            .is_none_or(|byte| byte.is_ascii_whitespace() || b"),;+]}|:".contains(&byte));
        // The quote that ends a text within JSON.
        let next = self.skip(at + 2, Class::of(" "));
        let is_json = mark == b'"'
            && matches!(self.byte(at + 1), Some(b',' | b']' | b'}'))
            && matches!(
                self.byte(next),
                None | Some(b'"' | b'[' | b'{' | b']' | b'}' | b',' | b'\n')
            );
        is_json || quotes % 2 == 1 && is_end && !self.is_quote(self.name.end)
    }

    /// Returns whether a value looks random. A UUID does under a name that says what it is.
    pub(super) fn is_random(&self, value: &[u8]) -> bool {
        let is_name = self.meaning.trust != Trust::Form || self.meaning.kind == "secret";
        if self.is_user_and_password(value) || is_name && self.is_constant() && is_dense(value) {
            return true;
        }
        let is_id = self.meaning.kind == "client id";
        let is_number = is_id && value.len() >= 16 && value.iter().all(u8::is_ascii_digit);
        // `key: cache-linux-0af3…`: a key of something that is stored.
        let words = value
            .iter()
            .take_while(|byte| byte.is_ascii_lowercase())
            .count();
        let name = &self.text[self.name.clone()];
        if name.eq_ignore_ascii_case(b"key") && words >= 2 && value.get(words) == Some(&b'-') {
            return false;
        }
        let is_other_id = is_uuid(value)
            && self.meaning.trust == Trust::Form
            && !self.is_key()
            && !is_id
            && !(self.is_constant() && self.meaning.kind == "credential");
        is_number || looks_random(value) && !is_other_id
    }

    /// Returns whether the name is that of a password of a program, such as `db_password`, and no label of a form.
    fn is_of_system(&self) -> bool {
        const SYSTEM_NAMES: [&str; 24] = [
            "db",
            "database",
            "root",
            "mysql",
            "postgres",
            "pg",
            "redis",
            "mongo",
            "mongodb",
            "smtp",
            "mail",
            "ftp",
            "ssh",
            "ldap",
            "keystore",
            "truststore",
            "store",
            "datasource",
            "jdbc",
            "rabbitmq",
            "sudo",
            "become",
            "vault",
            "wifi",
        ];
        let name = String::from_utf8_lossy(&self.text[self.name.clone()]).to_ascii_lowercase();
        let mut words = name.split(|character: char| !character.is_ascii_alphanumeric());
        words.any(|word| {
            SYSTEM_NAMES.iter().any(|system| {
                word == *system
                    || word
                        .strip_prefix(system)
                        .is_some_and(|rest| rest.starts_with("pass"))
            })
        })
    }

    /// Returns whether the name is one that only passwords have, and no result of a test or folder.
    fn is_abbreviated(&self) -> bool {
        self.text[self.name.clone()].eq_ignore_ascii_case(b"pw")
    }

    /// Returns whether the name ends with the word `key`.
    pub(super) fn is_key(&self) -> bool {
        let name = &self.text[self.name.clone()];
        let end = name.len().checked_sub(3).map(|at| &name[at..]);
        end.is_some_and(|end| end.eq_ignore_ascii_case(b"key"))
    }

    /// Returns whether a value without quotes is a secret: surely, or perhaps.
    pub(super) fn is_bare_secret(&self, range: &Range<usize>, way: ValueSyntax) -> Option<bool> {
        let value = &*unwrapped(&self.text[range.clone()]);
        if self.meaning.trust == Trust::Always {
            return (!value.is_empty() && !is_reference(value)).then_some(true);
        }
        if value.is_empty() || stands_for_one(value) || is_reference(value) {
            return None;
        }
        let next = self.byte(range.end);
        let is_call = matches!(next, Some(b'(' | b'['))
            && value
                .iter()
                .all(|byte| ALNUM.has(*byte) || b"_.:".contains(byte));
        // `kSecret = XXH3_kSecret`: a name for another one.
        let lower = value.to_ascii_lowercase();
        let name = self.text[self.name.clone()].to_ascii_lowercase();
        let is_alias = is_identifier(value)
            && (name.ends_with(&lower)
                || lower.ends_with(b"key")
                || ["secret", "password", "token"]
                    .iter()
                    .any(|word| memchr::memmem::find(&lower, word.as_bytes()).is_some()));
        if is_call || way != ValueSyntax::Shell && (is_alias || is_code(value)) {
            return None;
        }
        let is_password = self.meaning.kind == "password";
        // Results of tests, and names of folders.
        if self.meaning.trust == Trust::NameAndForm
            && is_password
            && !matches!(way, ValueSyntax::Equals | ValueSyntax::Shell)
            && (self.is_constant() || !is_tangled(value))
            && !(self.is_abbreviated()
                && is_mixed(value)
                && value.len() >= 6
                && !is_name_like(value))
        {
            return None;
        }
        if self.is_random(value) {
            return Some(true);
        }
        if matches!(way, ValueSyntax::Near | ValueSyntax::Cell) {
            return self.is_near_secret(value, way);
        }
        if self.meaning.trust == Trust::Form || value.len() < 3 {
            return None;
        }
        let is_constant = self.is_constant();
        if value
            .iter()
            .all(|byte| byte.is_ascii_digit() || b".,-+%".contains(byte))
        {
            let is_whole = value.iter().all(u8::is_ascii_digit) && value.len() >= 4;
            let is_line =
                self.is_at_line_start() && next.is_none_or(|next| b"\n\r".contains(&next));
            let is_setting = matches!(
                way,
                ValueSyntax::Shell | ValueSyntax::Colon | ValueSyntax::Tag | ValueSyntax::Word
            ) || is_line;
            let is_name = is_password && self.meaning.trust == Trust::Name && is_setting;
            // The comma of the next member, not of the next number.
            let is_member = self.view.is_outer_quote(self.name.end);
            return (is_name && is_whole && (is_member || next != Some(b','))).then_some(true);
        }
        if way == ValueSyntax::Word && is_password && self.is_in_netrc() {
            return (value.len() >= 4).then_some(true);
        }
        if way == ValueSyntax::Shell {
            let is_word = value.iter().all(u8::is_ascii_alphabetic);
            let min = if is_word && self.meaning.trust != Trust::Name {
                12
            } else {
                4
            };
            return (value.len() >= min || is_password).then_some(true);
        }
        let is_mixed = is_mixed(value) && !is_type(value);
        let has_digit = value.iter().any(u8::is_ascii_digit);
        let before = self.before();
        let is_start = self.is_at_line_start();
        let is_listed = matches!(before, Some(b';' | b'?' | b'&'));
        let is_setting = way == ValueSyntax::Equals && (is_listed || is_start);
        let ends_line = next.is_none_or(|next| b"\n\r\"'<".contains(&next));
        let min = if is_password { 4 } else { 8 };
        let is_word = value.iter().all(u8::is_ascii_alphabetic);
        match way {
            ValueSyntax::Sentence if !has_digit || is_algorithm(value) => None,
            ValueSyntax::Column if !is_mixed || !has_digit || value.len() < 6 => None,
            ValueSyntax::Sentence if is_password && is_mixed => (value.len() >= 6).then_some(true),
            _ if is_mixed => (value.len() >= min && !is_name_like(value)).then_some(true),
            _ if is_cased(value) => Some(true),
            ValueSyntax::Tag if is_password => {
                (value.len() >= 4 && !is_label(value)).then_some(true)
            }
            ValueSyntax::Colon
                if is_constant && ends_line && is_word && self.meaning.trust == Trust::Name =>
            {
                // Not the name of a type, in capital letters.
                let has_lower = value.iter().any(u8::is_ascii_lowercase);
                let min = if is_password { 4 } else { 6 };
                (value.len() >= min && has_lower).then_some(true)
            }
            // Some words with hyphens between them.
            ValueSyntax::Colon
                if is_password
                    && self.meaning.trust == Trust::Name
                    && is_start
                    && ends_line
                    && !is_word
                    && value.len() >= 12
                    && value
                        .iter()
                        .all(|byte| byte.is_ascii_lowercase() || *byte == b'-') =>
            {
                let count = value.split(|byte| *byte == b'-').count();
                (count >= 3).then_some(count >= 4)
            }
            ValueSyntax::Colon
                if is_password
                    && self.meaning.trust == Trust::Name
                    && is_start
                    && ends_line
                    && is_word
                    && !is_known_word(value) =>
            {
                (value.len() >= 8 && !is_camel(value) && value.iter().any(u8::is_ascii_lowercase))
                    .then_some(value[0].is_ascii_lowercase())
            }
            ValueSyntax::Equals
                if is_setting
                    && is_word
                    && (is_listed || !is_camel(value))
                    && (ends_line || next == Some(b';') || next == Some(b'&')) =>
            {
                (self.meaning.trust == Trust::Name && value.len() >= 8).then_some(true)
            }
            ValueSyntax::Sentence | ValueSyntax::Tag | ValueSyntax::Call => None,
            _ => (is_word && value.len() >= 12 && !is_camel(value)).then_some(false),
        }
    }
}
