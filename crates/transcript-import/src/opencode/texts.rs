//! The texts of rows, in a file without a name: of a database only one row at a time is in memory.

use std::io::{self, BufWriter, Write};

use transcript_format::object::Raw;
use transcript_storage::TemporaryFile;

use crate::Error;
use crate::conversation::Conversation;
use crate::lines::MAX_HELD_LEN;
use crate::place::SourceId;
use crate::strings::body_of;
use crate::text::{Stored, StoredForm, Text, held_body};

/// The number of bytes that are written at once.
const BUFFER_LEN: usize = 256 << 10;

/// Takes texts of rows. They can be read again after [`finish`](Self::finish).
pub(super) struct RowTexts {
    /// The source that the file becomes that of; `None` when all texts are held.
    source: Option<SourceId>,
    file: Option<BufWriter<TemporaryFile>>,
    len: u64,
    failure: Option<io::Error>,
}

impl RowTexts {
    /// Holds all texts in memory.
    pub(super) fn held() -> Self {
        Self::of(None)
    }

    /// Writes texts into a file that becomes that of a source, or holds them if there is none.
    pub(super) fn of(source: Option<SourceId>) -> Self {
        Self {
            source,
            file: None,
            len: 0,
            failure: None,
        }
    }

    /// Returns the text of a string; `None` for another value.
    pub(super) fn text(&mut self, value: Raw<'_>) -> Option<Text> {
        body_of(value).map(|body| self.body(body))
    }

    /// Returns the text of the body of a string.
    pub(super) fn body(&mut self, body: &str) -> Text {
        let stored = self.stored(body, StoredForm::StringBody);
        stored.unwrap_or_else(|| held_body(body))
    }

    /// Returns a JSON value as a text.
    pub(super) fn json(&mut self, json: &str) -> Text {
        let stored = self.stored(json, StoredForm::Json);
        stored.unwrap_or_else(|| Text::held(json))
    }

    fn stored(&mut self, bytes: &str, form: StoredForm) -> Option<Text> {
        let source = self.source.filter(|_| bytes.len() > MAX_HELD_LEN)?;
        let stored = Stored::new(source, self.len, bytes, form)?;
        match self.write(bytes) {
            Ok(()) => Some(Text::stored(stored)),
            Err(error) => {
                self.failure.get_or_insert(error);
                None
            }
        }
    }

    fn write(&mut self, bytes: &str) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let new = BufWriter::with_capacity(BUFFER_LEN, TemporaryFile::new()?);
                self.file.insert(new)
            }
        };
        file.write_all(bytes.as_bytes())?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Makes the texts readable.
    pub(super) fn finish(self, to: &mut Conversation) -> Result<(), Error> {
        let Some(source) = self.source else {
            return Ok(());
        };
        let source = &mut to.sources[source.index()];
        let at = source.path.clone();
        if let Some(failure) = self.failure {
            return Err(Error::at(&at)(failure));
        }
        if let Some(file) = self.file {
            let file = file
                .into_inner()
                .map_err(|error| Error::at(&at)(error.into_error()))?;
            source.file = Some(file.into_reader());
        }
        Ok(())
    }
}
