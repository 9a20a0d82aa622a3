//! The output of `verify --json`.

use serde::{Deserialize, Serialize};
use transcript_verify::{
    LocatedFinding, RebuiltRequests, Report, RequestDifference, VersionRequests,
};

use super::resume::severity;
use super::{Name, SCHEMA};

/// The findings of one session: a line of `verify --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct VerifyRecord {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Always `verify`.
    pub kind: Name,
    /// The path of the file; `-` for standard input.
    pub path: String,
    /// The id of the session; `None` if no entry names one.
    pub session_id: Option<String>,
    /// The number of physical lines.
    pub lines: u64,
    /// The number of objects on them that may count as entries.
    pub entries: u64,
    /// Whether the file is in the stream form, as the output of the SDK (`stream-json`) is; `vendor`
    /// then means the same as `recover`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stream_form: bool,
    /// The agent that wrote the session, such as `codex`; absent for Claude Code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The number of messages of the conversation.
    pub conversation: u64,
    /// The number of these that each policy shows.
    pub visible: VisibleRecord,
    /// The number of messages of other conversations that either policy shows.
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct VisibleRecord {
    /// Under policy `vendor`, that of the client.
    pub vendor: u64,
    /// Under policy `recover`.
    pub recover: u64,
}

/// Whether a strict provider accepts the request of each policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PolicyLintRecord {
    /// That of the client.
    pub vendor: bool,
    /// That under policy `recover`.
    pub recover: bool,
}

/// A finding of `verify --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// The number of recorded requests that are reproduced from the entries alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RebuiltRequestsRecord {
    /// The number of recorded requests.
    pub recorded: u64,
    /// The number with the same messages when they are built from the entries alone.
    pub reproduced: u64,
    /// The same for each version of a client, ordered by version.
    pub versions: Vec<VersionRequestsRecord>,
}

/// The number of recorded requests of one version of a client that are reproduced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct VersionRequestsRecord {
    /// The version; `None` if the lines name none.
    pub version: Option<String>,
    /// The number of recorded requests.
    pub recorded: u64,
    /// The number of reproduced requests.
    pub reproduced: u64,
    /// The number of requests that extend one that is not in the file, so that they cannot be compared.
    pub unknown: u64,
    /// The first that is not reproduced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<RequestDifferenceRecord>,
}

/// A recorded request that is not reproduced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RequestDifferenceRecord {
    /// The path of the file.
    pub path: String,
    /// The number of the line that records the request, from 1.
    pub line: Option<u64>,
    /// The offset of that line.
    pub offset: u64,
    /// The id of the request.
    pub request: Option<String>,
    /// `missing-message`, `extra-message`, `different-hash`, `no-conversation` or `unusable-body`.
    pub reason: Name,
    /// The first message that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<DifferentMessageRecord>,
}

/// A message of a recorded request that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DifferentMessageRecord {
    /// Its place, from 0.
    pub index: u64,
    /// `user`, `assistant` or `system`; `None` if it was recorded as a hash alone.
    pub role: Option<Name>,
    /// The line of the entry that it comes from; of a missing message, of the last entry before it.
    pub line: Option<u64>,
    /// The uuid of that entry.
    pub uuid: Option<String>,
}

/// The recorded requests of all files: the last line of `verify --requests --json` with several of
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct VerifySumRecord {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Always `sum`.
    pub kind: Name,
    /// The number of files that were verified.
    pub files: u64,
    /// The recorded requests.
    pub requests: RebuiltRequestsRecord,
}

impl VerifySumRecord {
    /// Describes the sum of the reports about this many files.
    #[must_use]
    pub fn new(files: u64, requests: &RebuiltRequests) -> Self {
        Self {
            schema: SCHEMA,
            kind: "sum".into(),
            files,
            requests: RebuiltRequestsRecord::new(requests),
        }
    }
}

impl RebuiltRequestsRecord {
    /// Describes recorded requests.
    #[must_use]
    pub fn new(requests: &RebuiltRequests) -> Self {
        Self {
            recorded: requests.recorded() as u64,
            reproduced: requests.reproduced() as u64,
            versions: requests
                .versions
                .iter()
                .map(VersionRequestsRecord::new)
                .collect(),
        }
    }
}

impl VersionRequestsRecord {
    fn new(requests: &VersionRequests) -> Self {
        Self {
            version: requests.version.clone(),
            recorded: requests.recorded as u64,
            reproduced: requests.reproduced as u64,
            unknown: requests.unknown as u64,
            first: requests.first.as_ref().map(RequestDifferenceRecord::new),
        }
    }
}

impl RequestDifferenceRecord {
    fn new(difference: &RequestDifference) -> Self {
        let message = difference.message.as_ref();
        Self {
            path: difference.path.to_string_lossy().into_owned(),
            line: difference.line,
            offset: difference.offset,
            request: difference.request.clone(),
            reason: difference.reason.name().into(),
            message: message.map(|message| DifferentMessageRecord {
                index: message.index as u64,
                role: message.role.map(|role| role.name().into()),
                line: message.entry.as_ref().and_then(|entry| entry.line),
                uuid: message.entry.as_ref().and_then(|entry| entry.uuid.clone()),
            }),
        }
    }
}

impl VerifyRecord {
    /// Describes a report.
    #[must_use]
    pub fn new(report: &Report) -> Self {
        let measure = &report.measure;
        Self {
            schema: SCHEMA,
            kind: "verify".into(),
            path: report.path.to_string_lossy().into_owned(),
            session_id: report.session_id.clone(),
            lines: report.lines,
            entries: report.entries as u64,
            stream_form: report.is_stream_form,
            agent: report.agent.clone(),
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
            requests: report.requests.as_ref().map(RebuiltRequestsRecord::new),
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
