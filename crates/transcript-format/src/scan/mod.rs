//! Reads the envelope of one line and checks the line's structure, in one pass.
//!
//! The pass sees every byte once in blocks of 64 (quotes, backslashes and control bytes become bit
//! masks, with AVX2 where the machine has it) and then walks only the tokens outside of strings.
//! Grammar, nesting, escapes, control bytes and UTF-8 of the whole line are checked; nothing is
//! decoded, allocated or recursed into. What linking needs comes out as an [`Envelope`].
//!
//! # Where it differs from `serde_json`
//!
//! A line that `serde_json` reads as an object scans, with the same values. The other way round,
//! four kinds of lines scan that `serde_json::Value` refuses:
//!
//! - numbers out of range (`1e999`): their grammar is right and their text is kept;
//! - lone surrogate escapes (`"\ud83d"`): JavaScript tools write them, [`Text::decode`] shows U+FFFD;
//! - a name or string that is only moved, never read, may hold either of them;
//! - nesting is limited to 127 levels, counted as `serde_json` does, so there is no difference here.
//!
//! Duplicate keys: the last one counts, also when it is of another kind than the first.

mod cursor;
mod envelope;
mod simd;
mod text;

pub use cursor::{ScanError, ScanErrorKind};
pub use envelope::{Content, Envelope, Flags, Scanner, Tool, ToolRole};
pub use text::Text;
