//! The output of `export --json-report`.

use serde::{Deserialize, Serialize};

use super::SCHEMA;
use transcript_redact::Redaction;

/// A redaction: its kind and its place, never the value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RedactionRecord {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// The file.
    pub path: String,
    /// The number of the line, from 1.
    pub line: u64,
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Its kind, for people.
    pub kind: String,
    /// The name of the rule that found it: the kind, with hyphens.
    pub rule: String,
}

impl RedactionRecord {
    /// Describes a redaction.
    #[must_use]
    pub fn new(redaction: &Redaction) -> Self {
        let words = redaction.kind.split(' ').map(str::to_ascii_lowercase);
        let words: Vec<_> = words.collect();
        Self {
            schema: SCHEMA,
            path: redaction.path.to_string_lossy().into_owned(),
            line: redaction.line,
            offset: redaction.offset,
            len: redaction.len,
            kind: redaction.kind.to_owned(),
            rule: words.join("-"),
        }
    }
}
