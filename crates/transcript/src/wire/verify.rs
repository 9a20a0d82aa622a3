//! The output of `verify --json`.

use serde::{Deserialize, Serialize};
use transcript_verify::{LocatedFinding, Report};

use super::resume::severity;
use super::{Name, SCHEMA};

/// What is wrong with one session: a line of `verify --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct VerifyRecord {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// The path of the file; `-` for standard input.
    pub path: String,
    /// The id of the session; `None` if no entry names one.
    pub session_id: Option<String>,
    /// The number of physical lines.
    pub lines: u64,
    /// The number of objects on them that may count as entries.
    pub entries: u64,
    /// How many messages the conversation has.
    pub conversation: u64,
    /// How many of these each policy shows.
    pub visible: VisibleRecord,
    /// How many messages of other conversations either policy shows.
    pub foreign: u64,
    /// Whether a strict provider accepts the request of each policy.
    pub lint: PolicyLintRecord,
    /// `clean`, `noted`, `damaged` or `lossy`.
    pub verdict: Name,
    /// Everything that is wrong or worth knowing, by offset; what is about no line comes first.
    pub findings: Vec<VerifyFindingRecord>,
    /// The requests that the file records about itself; only with `--requests`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<RebuiltRequestsRecord>,
}

/// A number of messages under each policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VisibleRecord {
    /// Under policy `vendor`, that of the client.
    pub vendor: u64,
    /// Under policy `recover`.
    pub recover: u64,
}

/// Whether a strict provider accepts the request of each policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PolicyLintRecord {
    /// That of the client.
    pub vendor: bool,
    /// That under policy `recover`.
    pub recover: bool,
}

/// A finding of `verify --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerifyFindingRecord {
    /// The code, such as `L-TORN-TAIL`; `docs/findings.md` explains each.
    pub code: Name,
    /// `note` or `damage`.
    pub severity: Name,
    /// The number of the line, from 1; `None` if it is about no single line.
    pub line: Option<u64>,
    /// The offset of the first byte that it is about.
    pub offset: u64,
    /// The number of bytes that it is about.
    pub len: u64,
    /// The uuid of the entry that starts there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// The finding, in words; never quotes the file.
    pub detail: Name,
}

/// How many recorded requests were built again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RebuiltRequestsRecord {
    /// How many the file records.
    pub recorded: u64,
    /// How many have the same messages when they are built from the entries alone.
    pub reproduced: u64,
}

impl VerifyRecord {
    /// Describes a report.
    #[must_use]
    pub fn new(report: &Report) -> Self {
        let measure = &report.measure;
        Self {
            schema: SCHEMA,
            path: report.path.to_string_lossy().into_owned(),
            session_id: report.session_id.clone(),
            lines: report.lines,
            entries: report.entries as u64,
            conversation: measure.conversation as u64,
            visible: VisibleRecord {
                vendor: measure.vendor as u64,
                recover: measure.recover as u64,
            },
            foreign: measure.foreign as u64,
            lint: PolicyLintRecord {
                vendor: report.lint.vendor,
                recover: report.lint.recover,
            },
            verdict: report.verdict().name().into(),
            findings: report
                .findings
                .iter()
                .map(VerifyFindingRecord::new)
                .collect(),
            requests: report.requests.map(|requests| RebuiltRequestsRecord {
                recorded: requests.recorded as u64,
                reproduced: requests.reproduced as u64,
            }),
        }
    }
}

impl VerifyFindingRecord {
    /// Describes a finding.
    #[must_use]
    pub fn new(finding: &LocatedFinding) -> Self {
        Self {
            code: finding.code.as_str().into(),
            severity: severity(finding.code),
            line: finding.line,
            offset: finding.offset,
            len: finding.len,
            uuid: finding.uuid.clone(),
            detail: finding.detail.clone(),
        }
    }
}
