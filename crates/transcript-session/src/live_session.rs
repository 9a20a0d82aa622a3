//! The conversation of an open session and its request, kept up to date with the file.

use std::path::Path;

use transcript_format::lines::{DEFAULT_LINE_CAP, Framed, Framer};
use transcript_reader::{Bodies, Index, Source};
use transcript_resume::LiveConversation;
use transcript_resume::request::{LiveRequest, Request};
use transcript_storage::Content;

use crate::error::Error;
use crate::options::SessionOptions;

/// How much is read at once, in bytes.
const CHUNK: usize = 256 << 10;

/// Reads each line of the file once.
#[derive(Debug)]
pub(crate) struct LiveSession {
    source: Source,
    content: Content,
    live: LiveConversation,
    request: LiveRequest,
    /// The start of the first line that was not complete when it was read.
    offset: u64,
}

impl LiveSession {
    /// Opens the session at `path`. Nothing is read yet.
    ///
    /// # Errors
    /// When it is not a regular file or the system fails to read.
    pub(crate) fn open(path: &Path, options: &SessionOptions) -> Result<Self, Error> {
        let mut source = Source::open_on(&options.read_disk(), path)?;
        let mut content = Content::start();
        if let Some(found) = source.refresh()? {
            content.set_seen(found);
        }
        let request = options.request().live();
        Ok(Self {
            source,
            content,
            live: LiveConversation::new(path),
            request: LiveRequest::new(request),
            offset: 0,
        })
    }

    /// Returns whether the path still leads to this file, and everything that was read is still in it.
    pub(crate) fn is_current(&mut self, path: &Path) -> bool {
        let Ok(found) = self.source.disk().metadata(path) else {
            return false;
        };
        let source = &self.source;
        let is_start = self
            .content
            .is_start_of(&found, |at, buffer| source.read_at(at, buffer));
        self.content.set_seen(found);
        // What cannot be read is read again, and then it is an error.
        is_start.unwrap_or(false)
    }

    /// Returns the request for the file as it is now; `None` when only a load of the whole file
    /// knows it, because it depends on other files or a body cannot be used.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn request(&mut self) -> Result<Option<Request>, Error> {
        self.read_new_lines()?;
        if self.live.has_missing_parents() {
            return Ok(None);
        }
        let mut bodies = Bodies::new(&self.source);
        Ok(self.request.request(&mut self.live, &mut bodies)?)
    }

    /// Returns the index that the numbers in a request refer to.
    pub(crate) fn index(&mut self) -> &Index {
        self.live.index()
    }

    fn read_new_lines(&mut self) -> Result<(), Error> {
        self.source.refresh()?;
        let mut framer = Framer::starting_at(self.offset, DEFAULT_LINE_CAP);
        let (content, live, offset) = (&mut self.content, &mut self.live, &mut self.offset);
        let new = *offset..self.source.len();
        self.source.each_block(new, CHUNK, |at, bytes| {
            content.push(at, bytes);
            let mut rest = bytes;
            while let Some(line) = framer.next(&mut rest) {
                *offset = end_of(&line);
                live.push(line);
            }
            Ok::<_, Error>(())
        })?;
        if let Some(line) = framer.finish() {
            self.live.push(line);
        }
        Ok(())
    }
}

/// Returns the offset after a line and its newline.
fn end_of(line: &Framed<'_>) -> u64 {
    match line {
        Framed::Line(line) => line.offset + line.bytes.len() as u64 + 1,
        Framed::TooLong { offset, len, .. } => offset + len + 1,
    }
}
