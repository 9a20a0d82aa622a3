//! The version of the client whose rules apply, where versions differ.

use serde_json::Value;

use super::lines::Line;

/// A version of the client. The default is the newest one that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version([u32; 3]);

impl Default for Version {
    fn default() -> Version {
        Version([u32::MAX; 3])
    }
}

impl Version {
    /// Returns the version that a text such as `2.1.331` names.
    pub(super) fn parse(text: &str) -> Option<Version> {
        let mut numbers = text.split('.').map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Version([next()?, next()?, next()?]))
    }

    /// Returns the version of the client that wrote the file: that of the newest line that has one.
    pub(super) fn of(lines: &[Line]) -> Version {
        let texts = lines.iter().rev().filter_map(|line| {
            let text = line.object.get("version").and_then(Value::as_str)?;
            Version::parse(text)
        });
        texts.take(1).next().unwrap_or_default()
    }

    /// Returns whether the client wraps the notes that it wrote itself (MSG-20).
    pub(super) fn wraps_own_notes(self) -> bool {
        self >= Version([2, 1, 331])
    }

    /// Returns whether the client refuses a leaf without a valid time (LEAF-17).
    pub(super) fn needs_time_of_leaf(self) -> bool {
        self <= Version([2, 1, 329])
    }
}
