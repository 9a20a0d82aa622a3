//! The conversation of an open session and its request, kept up to date with the file.

use std::path::Path;

use transcript_reader::{Bodies, FileChange, GrowingFile, Index};
use transcript_resume::LiveConversation;
use transcript_resume::request::{LiveRequest, Request};

use crate::error::Error;
use crate::options::SessionOptions;

/// Reads each line of the file once.
#[derive(Debug)]
pub(crate) struct LiveSession {
    file: GrowingFile,
    live: LiveConversation,
    request: LiveRequest,
}

impl LiveSession {
    /// Opens the session at `path`. Nothing is read yet.
    ///
    /// # Errors
    /// When it is not a regular file or the system fails to read.
    pub(crate) fn open(path: &Path, options: &SessionOptions) -> Result<Self, Error> {
        let request = options.request().live();
        Ok(Self {
            file: GrowingFile::open(&options.read_disk(), path)?,
            live: LiveConversation::new(path),
            request: LiveRequest::new(request),
        })
    }

    /// Returns whether the path still leads to this file, and everything that was read is still in it.
    pub(crate) fn is_current(&mut self) -> bool {
        matches!(self.file.change(), FileChange::None | FileChange::Grown)
    }

    /// Returns the request for the file as it is now; `None` when only a load of the whole file
    /// knows it, because it depends on other files or a body cannot be used.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn request(&mut self) -> Result<Option<Request>, Error> {
        self.file.read_lines(|line| self.live.push(line))?;
        if let Some(line) = self.file.unfinished() {
            self.live.push(line);
        }
        if self.live.has_missing_parents() {
            return Ok(None);
        }
        let mut bodies = Bodies::new(self.file.source());
        Ok(self.request.request(&mut self.live, &mut bodies)?)
    }

    /// Returns the index that the numbers in a request refer to.
    pub(crate) fn index(&mut self) -> &Index {
        self.live.index()
    }
}
