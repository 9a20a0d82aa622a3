//! The errors of pages.

use std::io;

/// Why a page was not written or not read.
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
    #[error(
        "the page contains no lines of a session: it is no page of `transcript export --html`, or was written with --no-lines"
    )]
    NoLines,
    /// The page continued after the maximum number of bytes.
    #[error("the page is longer than {0} bytes, as none is: it may never end")]
    TooLong(u64),
    /// The lines in the page are damaged.
    #[error("the lines in the page are damaged at byte {offset}: {reason}")]
    Damaged {
        /// Where, in the page.
        offset: u64,
        /// The defect.
        reason: &'static str,
    },
}

/// A result with an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
