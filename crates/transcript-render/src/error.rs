//! Why a conversation cannot be printed.

use std::fmt;
use std::io;

/// A failure to read a body or to write the text.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The output cannot be written.
    Output(io::Error),
    /// The session cannot be read.
    Session(transcript_reader::Error),
}

/// The result of a printer.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    fn inner(&self) -> &(dyn std::error::Error + 'static) {
        match self {
            Self::Output(error) => error,
            Self::Session(error) => error,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.inner(), f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner().source()
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<transcript_reader::Error> for Error {
    fn from(error: transcript_reader::Error) -> Self {
        Self::Session(error)
    }
}
