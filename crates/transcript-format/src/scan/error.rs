//! The reason why a line cannot be scanned.

/// The reason why a line cannot be scanned, and the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} (byte {at} of the line)", .kind.reason())]
pub struct ScanError {
    /// The kind of the error.
    pub kind: ScanErrorKind,
    /// The offset in the line, in bytes.
    pub at: usize,
}

/// The reason why a line is not one JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScanErrorKind {
    /// The line contains only white space.
    Blank,
    /// The line ends inside a value: the rest was never written, or is on another line.
    Incomplete,
    /// A byte that the grammar does not allow at its place.
    Syntax,
    /// The line is a JSON value of another kind.
    NotObject,
    /// More bytes follow after the end of an object.
    Trailing,
    /// A string holds a byte below 0x20.
    Control,
    /// The line holds bytes that are not UTF-8.
    Utf8,
    /// Nested deeper than 127 levels.
    Depth,
}

impl ScanErrorKind {
    /// Returns a short description.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Blank => "the line is blank",
            Self::Incomplete => "the line ends inside a value",
            Self::Syntax => "a byte that JSON does not allow here",
            Self::NotObject => "the line is a JSON value but not an object",
            Self::Trailing => "more bytes follow after the end of an object",
            Self::Control => "a string holds an unescaped control byte",
            Self::Utf8 => "the line holds bytes that are not UTF-8",
            Self::Depth => "nested deeper than 127 levels",
        }
    }
}
