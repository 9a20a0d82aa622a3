//! Reads contents from their sources, a chunk at a time.

use std::io::Write;

use transcript_format::json::{Json, with_whole_surrogates, without_line_ends};
use transcript_format::object::{Raw, unescape};

use crate::Error;
use crate::content::{Content, Input, StoredContent};
use crate::conversation::{Conversation, NodeId};
use crate::escapes::{CHUNK_LEN, whole_len};
use crate::text::{Piece, Stored, StoredForm, Text};

impl Conversation {
    /// Returns the content of a node with texts that stay in their sources.
    ///
    /// # Panics
    /// When the id is one of another conversation.
    #[must_use]
    pub fn stored(&self, id: NodeId) -> StoredContent<'_> {
        self.nodes.content(id)
    }

    /// Reads the content of a node.
    ///
    /// # Errors
    /// [`Error::Io`] when a source cannot be read, [`Error::Changed`] when it has other bytes than before.
    pub fn content(&self, id: NodeId) -> Result<Content, Error> {
        let stored = self.stored(id);
        let text = |text: Option<&Text>| text.map(|text| self.text(text)).transpose();
        let input = stored.input.map(|input| self.input(input));
        Ok(Content {
            text: text(stored.text)?,
            name: stored.name.map(str::to_owned),
            call_id: stored.call_id.map(str::to_owned),
            input: input.transpose()?,
            output: text(stored.output)?,
            is_error: stored.is_error,
            images: stored.images.to_vec(),
        })
    }

    /// Reads a text of this conversation.
    ///
    /// # Errors
    /// As [`content`](Self::content).
    pub fn text(&self, text: &Text) -> Result<String, Error> {
        let mut all = String::new();
        self.decode(text, |chunk| {
            all.push_str(chunk);
            Ok(())
        })?;
        Ok(all)
    }

    /// Reads the input of a call.
    ///
    /// # Errors
    /// As [`content`](Self::content).
    pub fn input(&self, input: Input<&Text>) -> Result<Json, Error> {
        Ok(match input {
            Input::Text(text) => Json::from(&*self.text(text)?),
            Input::Json(text) => {
                let text = self.text(text)?;
                Json::from(Raw::parse(&text).ok())
            }
        })
    }

    /// Writes a text as the body of a JSON string, without the quotes. Its length is [`Text::escaped_len`]. At most a chunk of it
    /// is in memory. A surrogate without its partner becomes U+FFFD.
    ///
    /// # Errors
    /// As [`content`](Self::content), and [`Error::Write`]. Part of the text may have been written then.
    pub fn write_escaped(&self, text: &Text, to: &mut dyn Write) -> Result<(), Error> {
        for piece in text.pieces() {
            match piece {
                Piece::Held(text) => write_held(text, to)?,
                Piece::Stored(stored) => self.chunks(stored, |chunk| match stored.form() {
                    // Few texts have escaped code units, so this is the search that is fast.
                    StoredForm::StringBody if !chunk.contains("\\u") => write(to, chunk),
                    StoredForm::StringBody => write(to, &with_whole_surrogates(chunk)),
                    StoredForm::Json => write_held(chunk, to),
                })?,
            }
        }
        Ok(())
    }

    /// Writes the input of a call as a JSON value without line ends. At most a chunk of it is in memory.
    ///
    /// # Errors
    /// As [`write_escaped`](Self::write_escaped).
    pub fn write_input(&self, input: Input<&Text>, to: &mut dyn Write) -> Result<(), Error> {
        match input {
            Input::Text(text) => {
                write(to, "\"")?;
                self.write_escaped(text, to)?;
                write(to, "\"")
            }
            Input::Json(text) => self.write_json(text, to),
        }
    }

    fn write_json(&self, text: &Text, to: &mut dyn Write) -> Result<(), Error> {
        let mut rest = String::new();
        let mut write_valid = |json: &str| {
            let json = with_whole_surrogates(json);
            write(to, &without_line_ends(&json))
        };
        self.decode(text, |chunk| {
            rest.push_str(chunk);
            let len = whole_len(rest.as_bytes());
            write_valid(rest.get(..len).unwrap_or_default())?;
            rest.drain(..len);
            Ok(())
        })?;
        write_valid(&rest)
    }

    /// Calls `each` with the characters of a text, chunk by chunk.
    fn decode(
        &self,
        text: &Text,
        mut each: impl FnMut(&str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for piece in text.pieces() {
            match piece {
                Piece::Held(text) => each(text)?,
                Piece::Stored(stored) => self.chunks(stored, |chunk| match stored.form() {
                    StoredForm::StringBody => each(&unescape(chunk)),
                    StoredForm::Json => each(chunk),
                })?,
            }
        }
        Ok(())
    }

    /// Returns whether a text lies in its source as the body of a JSON string, and this is that body.
    pub(crate) fn is_body(&self, text: &Text, body: &str) -> Result<bool, Error> {
        let [Piece::Stored(stored)] = text.pieces() else {
            return Ok(false);
        };
        let is_whole = stored.place().len == body.len() as u64;
        if stored.form() != StoredForm::StringBody || !is_whole {
            return Ok(false);
        }
        let (mut rest, mut is_same) = (body.as_bytes(), true);
        self.chunks(stored, |chunk| {
            let (start, after) = rest.split_at(chunk.len().min(rest.len()));
            is_same &= start == chunk.as_bytes();
            rest = after;
            Ok(())
        })?;
        Ok(is_same)
    }

    /// Calls `each` with the bytes of a piece, in chunks that can be unescaped separately.
    fn chunks(
        &self,
        stored: &Stored,
        mut each: impl FnMut(&str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let place = stored.place();
        let source = self.source(place.source);
        let changed = || Error::changed(&source.path);
        let file = source.file.as_ref().ok_or_else(changed)?;
        let mut buffer = vec![0; place.len.min(CHUNK_LEN as u64) as usize];
        let mut checksum = crc32fast::Hasher::new();
        let (mut at, mut kept, end) = (place.offset, 0, place.range().end);
        while at < end {
            let wanted = (buffer.len() - kept).min(usize::try_from(end - at).unwrap_or(usize::MAX));
            let filled = kept + wanted;
            let read = file.fill(at, &mut buffer[kept..filled]);
            if read.map_err(Error::at(&source.path))? < wanted {
                return Err(changed());
            }
            checksum.update(&buffer[kept..filled]);
            at += wanted as u64;
            if at == end && checksum.clone().finalize() != stored.checksum() {
                return Err(changed());
            }
            let len = if at == end {
                filled
            } else {
                whole_len(&buffer[..filled])
            };
            each(simdutf8::basic::from_utf8(&buffer[..len]).map_err(|_| changed())?)?;
            buffer.copy_within(len..filled, 0);
            kept = filled - len;
        }
        Ok(())
    }
}

/// Writes text that is in memory as the body of a JSON string.
fn write_held(text: &str, to: &mut dyn Write) -> Result<(), Error> {
    let quoted = Json::from(text);
    let quoted = quoted.text();
    write(to, quoted.get(1..quoted.len() - 1).unwrap_or_default())
}

pub(crate) fn write(to: &mut dyn Write, text: &str) -> Result<(), Error> {
    to.write_all(text.as_bytes())
        .map_err(|error| Error::Write { error })
}
