//! What is reported about one session.

use std::borrow::Cow;
use std::path::PathBuf;

use transcript_format::finding::{Code, Finding, Severity};
use transcript_format::named;
use transcript_reader::EntryRef;
use transcript_resume::Refusal;

use crate::conversation::ConversationMeasure;
use crate::recorded_requests::RebuiltRequests;

/// What is wrong with one file, and what a resume would lose.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The file.
    pub path: PathBuf,
    /// The id of the session: the name of the file, else the first id that a line names.
    pub session_id: Option<String>,
    /// The number of physical lines.
    pub lines: u64,
    /// The number of objects on them that may count as entries.
    pub entries: usize,
    /// Whether the file is in the stream form: the output of the SDK (`stream-json`), or messages
    /// without ids. No client reads it, so `vendor` means the same as `recover` everywhere.
    pub is_stream_form: bool,
    /// How much of the conversation each policy shows.
    pub measure: ConversationMeasure,
    /// Why the client would not resume the session.
    pub refusal: Option<Refusal>,
    /// Whether the request of each policy is accepted.
    pub lint: PolicyLint,
    /// Everything that is wrong or worth knowing, by offset. Findings about the file as a whole and
    /// those next to it come first, with neither line nor bytes.
    pub findings: Vec<LocatedFinding>,
    /// The requests that the file records about itself, if they were to be rebuilt.
    pub requests: Option<RebuiltRequests>,
}

/// Whether the requests of both policies are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyLint {
    /// The request of the client, by its API, which joins adjacent messages of one role.
    pub vendor: bool,
    /// The request under policy `recover`, by a strict provider, which does not.
    pub recover: bool,
}

/// A finding, its place and its entry. It never quotes the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocatedFinding {
    /// The kind of finding.
    pub code: Code,
    /// The 1-based number of the physical line; `None` when it is about no single line.
    pub line: Option<u64>,
    /// The byte offset of what it is about from the start of the file.
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

named! {
    /// How bad it is. The order is that of severity.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Verdict {
        /// No findings, except about calls that are running.
        Clean = "clean",
        /// There are findings, and nothing needs to be done.
        Noted = "noted",
        /// Bytes or entries are damaged; a resume works all the same.
        Damaged = "damaged",
        /// The client would show less of the conversation than the file has, or would not resume it.
        Lossy = "lossy",
    }
}

impl Report {
    /// Returns the verdict, which follows from everything else.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let codes = self.findings.iter().map(|finding| finding.code);
        let severities: Vec<Severity> = codes
            .filter(|code| *code != Code::Running)
            .map(Code::severity)
            .collect();
        let is_refused = self.refusal.is_some() && self.measure.conversation > 0;
        if self.measure.is_lossy() || is_refused {
            Verdict::Lossy
        } else if severities.is_empty() {
            Verdict::Clean
        } else if severities.contains(&Severity::Damage) {
            Verdict::Damaged
        } else {
            Verdict::Noted
        }
    }
}
