//! Reads the envelope of one line and checks the line's structure, in one pass.
//!
//! The pass sees every byte once in blocks of 64 (quotes, backslashes and control bytes become bit
//! masks, with AVX2 where the machine has it) and then walks only the tokens outside of strings.
//! Grammar, nesting, escapes, control bytes and UTF-8 of the whole line are checked; nothing is
//! decoded, allocated or recursed into. What linking needs comes out as an [`Envelope`].
//!
//! # Where it differs from `serde_json`
//!
//! A line that `serde_json::Value` reads as an object scans, with the same values. The other way
//! round there are two differences, each a value that is kept as text and never read here:
//!
//! - numbers out of range scan (`1e999`): their grammar is right;
//! - lone surrogate escapes scan (`"\ud83d"`): JavaScript tools write them, and [`Text::decode`]
//!   shows U+FFFD for them.
//!
//! Nesting is limited to 127 levels, as `serde_json` limits it.
//!
//! Duplicate keys: the last one counts, also when it is of another kind than the first.

mod cursor;
mod envelope;
mod simd;
mod text;

pub use cursor::{ScanError, ScanErrorKind};
pub use envelope::{ContentKind, Envelope, Flags, Scanner, Tool, ToolRole};
pub use text::Text;
