//! Reads the envelope of one line and checks the line's structure, in one pass.
//!
//! Every byte is visited once, in blocks of 64 (quotes, backslashes and control bytes become bit
//! masks, with AVX2 if the machine has it); after that only the tokens outside of strings are
//! walked. Grammar, nesting, escapes, control bytes and UTF-8 of the whole line are checked;
//! nothing is decoded or allocated, and there is no recursion. The result is an [`Envelope`].
//!
//! # Differences from `serde_json`
//!
//! A line that `serde_json::Value` reads as an object also scans, with the same values. Two kinds
//! of values scan that `serde_json` rejects; they are kept as text and never interpreted here:
//!
//! - numbers out of range (`1e999`), because their grammar is valid;
//! - lone surrogate escapes (`"\ud83d"`), because JavaScript tools write them; [`Text::decode`]
//!   returns U+FFFD for them.
//!
//! Nesting is limited to 127 levels, as in `serde_json`.
//!
//! Of duplicate keys the last one counts, even if its value has another type than the first.

mod cursor;
mod envelope;
mod error;
pub(crate) mod parts;
mod simd;
mod text;

pub use envelope::{ContentKind, Envelope, EnvelopeFields, Flags, Scanner, Tool, ToolRole};
pub use error::{ScanError, ScanErrorKind};
pub use parts::Body;
pub use text::Text;

/// Returns the bytes as text; `None` if they are not UTF-8. Uses the fastest instructions of the
/// machine, as long lines are checked often.
#[must_use]
pub fn utf8(bytes: &[u8]) -> Option<&str> {
    simdutf8::basic::from_utf8(bytes).ok()
}

/// Returns the number of escapes in `body`, the text between the quotes of a JSON string, if each is two bytes long and
/// stands for an ASCII character; `None` if one of them is `\u`, or the rare `\b`.
///
/// ```
/// # use transcript_format::scan::count_escapes;
/// assert_eq!(count_escapes(r#"C:\\n\n\""#), Some(3));
/// assert_eq!(count_escapes(r"\u0041"), None);
/// ```
#[must_use]
pub fn count_escapes(body: &str) -> Option<usize> {
    simd::count_escapes(body.as_bytes())
}
