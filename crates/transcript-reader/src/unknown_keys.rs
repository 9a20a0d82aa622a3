//! Keys of message lines that the format does not know, counted while lines are indexed.

use transcript_format::kind::EntryKind;
use transcript_format::known_keys::KeyPlace;
use transcript_format::scan::{Envelope, Text};

/// The maximum number of keys that are counted; further ones are ignored.
const MAX_KEYS: usize = 64;
/// The maximum length of a name or version that is kept. Longer ones could be content.
const MAX_NAME: usize = 40;

/// A key that the format does not know, on the lines of one kind that one version of a client wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownKey {
    /// The kind of the lines.
    pub kind: EntryKind,
    /// The object that the key is in.
    pub place: KeyPlace,
    /// The key, or the type; `None` if it is not a plain name of up to 40 letters, digits, `_` and `-`, as
    /// it could be content.
    pub name: Option<String>,
    /// The version of the client, from the lines; `None` if they name none, or not a plain one.
    pub version: Option<String>,
    /// The number of lines.
    pub lines: u64,
    /// The 1-based number of the first line.
    pub line: u64,
    /// The offset of the entry on that line.
    pub offset: u64,
    /// The number of bytes of that entry.
    pub len: u64,
}

/// The unknown keys of some consecutive lines, in the order of their first lines.
#[derive(Debug, Default)]
pub(crate) struct UnknownKeys(Vec<UnknownKey>);

impl UnknownKeys {
    pub(crate) fn list(&self) -> &[UnknownKey] {
        &self.0
    }

    /// Counts the keys of an entry; `place` is its line, its offset and its length.
    #[inline]
    pub(crate) fn add(&mut self, envelope: &Envelope<'_>, place: (u64, u64, u64)) {
        let mut seen = Vec::new();
        for (key_place, name) in envelope.unknown_keys() {
            // A key that is on the line twice counts once.
            if seen.contains(&(key_place, name)) {
                continue;
            }
            seen.push((key_place, name));
            let (line, offset, len) = place;
            self.count(UnknownKey {
                kind: envelope.kind(),
                place: key_place,
                name: plain(name, |byte| matches!(byte, b'_' | b'-')),
                version: envelope
                    .client_version()
                    .and_then(|version| plain(version, |byte| matches!(byte, b'.' | b'-' | b'+'))),
                lines: 1,
                line,
                offset,
                len,
            });
        }
    }

    /// Adds the keys of the lines that follow `first_line` lines.
    pub(crate) fn append(&mut self, others: Self, first_line: u64) {
        for mut key in others.0 {
            key.line += first_line;
            self.count(key);
        }
    }

    fn count(&mut self, key: UnknownKey) {
        let is_same = |known: &UnknownKey| {
            (known.kind, known.place) == (key.kind, key.place)
                && known.name == key.name
                && known.version == key.version
        };
        match self.0.iter().position(is_same) {
            Some(at) => self.0[at].lines += key.lines,
            None if self.0.len() < MAX_KEYS => self.0.push(key),
            None => {}
        }
    }
}

/// Returns a text of letters, digits and what `is_sign` accepts.
fn plain(text: Text<'_>, is_sign: impl Fn(u8) -> bool) -> Option<String> {
    let text = text.decode();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || is_sign(byte);
    let is_name = (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(is_plain);
    is_name.then(|| text.into_owned())
}
