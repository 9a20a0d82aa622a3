//! A finding with its entry.

use std::borrow::Cow;

use transcript_format::finding::{Code, Finding};
use transcript_reader::EntryRef;

/// A finding, its place and its entry. It never quotes the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocatedFinding {
    /// The kind of finding.
    pub code: Code,
    /// The 1-based number of the physical line; `None` when it is about no single line.
    pub line: Option<u64>,
    /// The offset of the defect from the start of the file, in bytes.
    pub offset: u64,
    /// The number of bytes.
    pub len: u64,
    /// The uuid of the entry that starts there.
    pub uuid: Option<String>,
    /// The reason, with the numbers of this case.
    pub detail: Cow<'static, str>,
}

impl LocatedFinding {
    /// A finding about the file as a whole, or about files next to it.
    pub(crate) fn of_file(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            line: None,
            offset: 0,
            len: 0,
            uuid: None,
            detail: detail.into(),
        }
    }

    /// A finding about an entry.
    pub(crate) fn of_entry(
        code: Code,
        entry: &EntryRef<'_>,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            line: entry.known_line(),
            offset: entry.offset(),
            len: entry.byte_len(),
            ..Self::of_file(code, detail)
        }
    }
}

impl From<Finding> for LocatedFinding {
    fn from(finding: Finding) -> Self {
        Self {
            line: finding.line,
            offset: finding.offset,
            len: finding.len,
            ..Self::of_file(finding.code, finding.detail)
        }
    }
}
