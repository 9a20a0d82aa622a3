//! Errors of printing a conversation.

use std::io;

/// A failure to read a body or to write the text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// The session cannot be read.
    #[error(transparent)]
    Session(#[from] transcript_reader::Error),
}

/// The result of a printer.
pub type Result<T> = std::result::Result<T, Error>;
