//! One entry of a path.

use serde_json::Value;

/// One entry of a [`Path`](super::Path).
#[derive(Clone, Debug)]
pub struct PathEntry {
    /// Number of the physical line, counted from 1.
    pub line: usize,
    /// The entry's uuid, when it is a text.
    pub uuid: Option<String>,
    /// The whole entry.
    pub value: Value,
}
