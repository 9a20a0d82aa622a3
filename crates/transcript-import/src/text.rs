//! Texts that stay in their files: pieces that are held in memory, and pieces of which only the place is known.

use std::hash::Hasher;
use std::mem;

use transcript_format::object::unescape;

use crate::escapes::{escaped_len, rewritten_len};
use crate::place::{Place, SourceId};

/// A text, as pieces one after the other. [`Conversation::text`](crate::Conversation::text) reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(Pieces);

/// Most texts have one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pieces {
    One(Piece),
    Many(Box<[Piece]>),
}

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// It is short, or its source cannot be read at an offset.
    Held(Box<str>),
    /// It lies in a source.
    Stored(Stored),
}

/// A piece of a text that lies in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    offset: u64,
    len: u32,
    /// Its length as the body of a JSON string, after it was read and escaped again.
    written_len: u32,
    /// The checksum of its bytes, so that other bytes are never taken for them.
    checksum: u32,
    source: u16,
    form: StoredForm,
}

/// How the text of a piece lies in its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredForm {
    /// As the body of a JSON string, between its quotes: with escapes. It can be copied into another JSON string as it is, except
    /// that other parsers refuse surrogates without their partners.
    StringBody,
    /// As it is: the text is a JSON value.
    Json,
}

impl Stored {
    /// The maximum number of sources in which texts are stored; those of later sources are held.
    pub(crate) const MAX_SOURCES: usize = 256;

    /// Describes `bytes`, which lie at an offset of a source. `None` if they are longer than any record.
    pub(crate) fn new(
        source: SourceId,
        offset: u64,
        bytes: &str,
        form: StoredForm,
    ) -> Option<Self> {
        let written_len = match form {
            StoredForm::StringBody => rewritten_len(bytes),
            StoredForm::Json => escaped_len(bytes),
        };
        Some(Self {
            offset,
            len: u32::try_from(bytes.len()).ok()?,
            written_len: u32::try_from(written_len).ok()?,
            checksum: crc32fast::hash(bytes.as_bytes()),
            source: u16::try_from(source.index()).ok()?,
            form,
        })
    }

    /// Returns the bytes in the source.
    #[must_use]
    pub fn place(&self) -> Place {
        Place {
            source: SourceId::at(usize::from(self.source)),
            offset: self.offset,
            len: self.len.into(),
        }
    }

    /// Returns how the text lies there.
    #[must_use]
    pub fn form(&self) -> StoredForm {
        self.form
    }

    pub(crate) fn checksum(&self) -> u32 {
        self.checksum
    }
}

impl Text {
    /// Returns a text in memory.
    #[must_use]
    pub fn held(text: &str) -> Self {
        Self(Pieces::One(Piece::Held(text.into())))
    }

    /// Returns a text of one piece that lies in a source.
    pub(crate) fn stored(stored: Stored) -> Self {
        Self(Pieces::One(Piece::Stored(stored)))
    }

    /// Returns the pieces in their order.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        match &self.0 {
            Pieces::One(piece) => std::slice::from_ref(piece),
            Pieces::Many(pieces) => pieces,
        }
    }

    /// Returns whether it has no characters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces().iter().all(|piece| match piece {
            Piece::Held(text) => text.is_empty(),
            Piece::Stored(stored) => stored.len == 0,
        })
    }

    /// Returns its length in bytes as the body of a JSON string, which is what
    /// [`Conversation::write_escaped`](crate::Conversation::write_escaped) writes. No source is read for it.
    #[must_use]
    pub fn escaped_len(&self) -> u64 {
        let lens = self.pieces().iter().map(|piece| match piece {
            Piece::Held(text) => escaped_len(text),
            Piece::Stored(stored) => match stored.form {
                StoredForm::StringBody => stored.len.into(),
                StoredForm::Json => stored.written_len.into(),
            },
        });
        lens.sum()
    }

    /// Returns its length in bytes as the body of a JSON string, after it was read and escaped again. No source is read for it.
    pub(crate) fn written_len(&self) -> u64 {
        let lens = self.pieces().iter().map(|piece| match piece {
            Piece::Held(text) => escaped_len(text),
            Piece::Stored(stored) => stored.written_len.into(),
        });
        lens.sum()
    }

    /// Adds what distinguishes its bytes from others to a hash. No source is read for it.
    pub(crate) fn add_to(&self, hash: &mut impl Hasher) {
        for piece in self.pieces() {
            match piece {
                Piece::Held(text) => hash.write(text.as_bytes()),
                Piece::Stored(stored) => {
                    hash.write_u32(stored.checksum);
                    hash.write_u32(stored.len);
                }
            }
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::held(text)
    }
}

/// Puts a text together.
#[derive(Default)]
pub(crate) struct TextBuilder {
    pieces: Vec<Piece>,
    /// The end of the text so far, if it is held.
    held: String,
}

impl TextBuilder {
    /// Adds characters.
    pub(crate) fn held(mut self, text: &str) -> Self {
        self.held.push_str(text);
        self
    }

    /// Adds a text.
    pub(crate) fn text(mut self, text: &Text) -> Self {
        for piece in text.pieces() {
            match piece {
                Piece::Held(text) => self.held.push_str(text),
                Piece::Stored(stored) => {
                    self.end_held();
                    self.pieces.push(Piece::Stored(*stored));
                }
            }
        }
        self
    }

    fn end_held(&mut self) {
        if !self.held.is_empty() {
            let held = mem::take(&mut self.held);
            self.pieces.push(Piece::Held(held.into()));
        }
    }

    pub(crate) fn finish(mut self) -> Text {
        self.end_held();
        let mut pieces = self.pieces;
        match (pieces.len(), pieces.pop()) {
            (1, Some(piece)) => Text(Pieces::One(piece)),
            (_, None) => Text::held(""),
            (_, Some(last)) => {
                pieces.push(last);
                Text(Pieces::Many(pieces.into()))
            }
        }
    }
}

/// Returns texts as one, with `between` between them.
pub(crate) fn joined<'t>(texts: impl IntoIterator<Item = &'t Text>, between: &str) -> Text {
    let mut builder = TextBuilder::default();
    for (number, text) in texts.into_iter().enumerate() {
        if number > 0 {
            builder = builder.held(between);
        }
        builder = builder.text(text);
    }
    builder.finish()
}

/// Returns the text of the body of a JSON string, held in memory.
pub(crate) fn held_body(body: &str) -> Text {
    Text::held(&unescape(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory grows with the number of texts, so their size counts.
    #[test]
    fn a_text_is_small() {
        assert_eq!(size_of::<Option<Text>>(), 24);
    }
}
