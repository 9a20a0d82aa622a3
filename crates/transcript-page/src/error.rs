//! The errors of pages.

use std::io;

/// The error of writing or reading a page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The output cannot be written, or the page not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The session cannot be read.
    #[error(transparent)]
    Render(#[from] transcript_render::Error),
    /// The session cannot be read.
    #[error(transparent)]
    Reader(#[from] transcript_reader::Error),
    /// The page contains no lines.
    #[error("not a page made by `transcript export --html` (or made with --no-lines)")]
    NoLines,
    /// The page continued after the maximum number of bytes.
    #[error("the page is longer than {0} bytes, the limit")]
    TooLong(u64),
    /// The lines in the page are damaged.
    #[error("the lines in the page are damaged at byte {offset}: {reason}")]
    Damaged {
        /// The byte offset in the page.
        offset: u64,
        /// The defect.
        reason: &'static str,
    },
}

/// A result with an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
