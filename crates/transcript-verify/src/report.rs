//! The report about one session.

use std::path::PathBuf;

use transcript_format::finding::{Code, Severity};
use transcript_format::named;
use transcript_resume::Refusal;

use crate::conversation::ConversationMeasure;
use crate::located_finding::LocatedFinding;
use crate::recorded_requests::RebuiltRequests;

/// The findings about one file, and the losses of a resume.
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
    /// The agent that wrote the session, such as `codex`; `None` for Claude Code. Of another agent, `vendor` means the same as
    /// `recover` everywhere.
    pub agent: Option<String>,
    /// The number of messages that each policy shows.
    pub measure: ConversationMeasure,
    /// The reason why the client would not resume the session.
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

named! {
    /// The severity of the worst finding, in ascending order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Verdict {
        /// No findings, except about calls that are running, and records of another agent that are not known.
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
            .filter(|code| !matches!(code, Code::Running | Code::ImportUnknown))
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
