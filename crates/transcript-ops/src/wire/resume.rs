//! The output of `resume --json`.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use transcript_format::finding::{Code, Finding, Severity};
use transcript_messages::{Message, Problem, StoredReader};
use transcript_reader::{EntryNo, Index};
use transcript_resume::request::{Fit, Request, RequestTokens};
use transcript_resume::{ConversationPath, Decision, PathState, Policy, Tree, Usage};

use super::location::uuid;
use super::text::{Json, around_value, text};
use super::{EntryLocation, Name, SCHEMA};
use transcript_session::History;

/// The state and the request with which a client continues a session: the only object of `resume --json`.
///
/// Everything from `provider` on is empty when the file is of another format ([`ResumeRefusal`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResumeReport<'a> {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Always `resume`.
    pub kind: Name,
    /// The id of the session; `None` if no entry names one.
    pub session_id: Option<String>,
    /// The path of the file; `-` for standard input.
    pub path: String,
    /// The policy that chose the path: `recover` or `vendor`.
    pub policy: Name,
    /// The scope of findings and state: `file`, or `tail` if the end of the file was enough for the
    /// conversation.
    pub scope: Name,
    /// Whether a client would continue the session. If not, there are no messages.
    pub resumable: bool,
    /// The reason why it is not resumable, for people; absent if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// The uuid of the last entry of the path; `None` if there is no conversation.
    pub leaf: Option<String>,
    /// The model that the request is meant for; `None` if no model ever answered.
    pub model: Option<Cow<'a, str>>,
    /// The provider that accepts the request: `messages`, `converse` or `vertex`.
    #[serde(default)]
    pub provider: Name,
    /// The messages of the next request, oldest first, verbatim. A report that is about to be
    /// written has none: see [`write`](Self::write).
    #[serde(default)]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Vec<super::api_message::ApiMessage>")
    )]
    pub messages: Vec<Json<'a>>,
    /// The uuids of the entries of the path, oldest first.
    #[serde(default)]
    pub entries: EntryUuids<'a>,
    /// The blocks that are not in the file, in the order of the messages within each rule.
    #[serde(default)]
    pub synthetic: Vec<SyntheticRecord<'a>>,
    /// The entries of the path that are not sent, or only in part.
    #[serde(default)]
    pub omitted: Vec<OmissionRecord>,
    /// The decisions that led to the path, in the order in which they were made.
    #[serde(default)]
    pub decisions: Vec<DecisionRecord>,
    /// The findings about the file and the path, by offset.
    #[serde(default)]
    pub findings: Vec<FindingRecord>,
    /// The state of the session at the leaf.
    #[serde(default)]
    pub state: Cow<'a, PathState>,
    /// Whether a strict provider would accept the request.
    #[serde(default)]
    pub lint: LintRecord,
    /// The tokens of the request.
    #[serde(default)]
    pub tokens: TokensRecord,
    /// The tokens of the answers.
    #[serde(default)]
    pub usage: UsageRecord<'a>,
}

impl<'a> ResumeReport<'a> {
    /// Describes `request`, which was built from `tree` with this state and usage. `findings` are those of the file and of the
    /// path of the request, by offset; `describe` says in words what a decision was.
    #[must_use]
    pub fn new(
        history: &History,
        tree: &Tree<'a>,
        request: &'a Request,
        (state, usage): (&'a PathState, &'a [Usage]),
        findings: &[Finding],
        describe: impl Fn(&Decision) -> String,
    ) -> Self {
        let index = tree.index();
        let path = &request.path;
        let RequestDiagnostics { synthetic, omitted } = RequestDiagnostics::new(index, request);
        let decisions = path.decisions.iter();
        Self {
            schema: SCHEMA,
            kind: "resume".into(),
            session_id: history.session_id(),
            // A path that is not UTF-8 must not make the whole report fail.
            path: history.source().path().to_string_lossy().into_owned(),
            policy: tree.policy().name().into(),
            scope: history.scope().into(),
            resumable: request.is_resumable(),
            reason: path.refusal.map(|refusal| refusal.reason().into()),
            leaf: path.leaf.and_then(|leaf| uuid(index, leaf)),
            model: request.model.as_deref().map(Cow::Borrowed),
            provider: request.provider.name().into(),
            // `write` adds them. Here they would be in memory twice: those of a session of 1 GB have 435 MB.
            messages: Vec::new(),
            entries: EntryUuids::from_path(index, path),
            synthetic,
            omitted,
            decisions: decisions
                .map(|decision| DecisionRecord {
                    kind: decision.name().into(),
                    entry: EntryLocation::new(index, decision.entry()),
                    detail: describe(decision),
                })
                .collect(),
            findings: findings.iter().map(FindingRecord::new).collect(),
            state: Cow::Borrowed(state),
            lint: LintRecord::new(index, request),
            // The caller knows the window of the model, and adds them with `with_limits`.
            tokens: TokensRecord::default(),
            usage: UsageRecord {
                scope: "path".into(),
                models: Cow::Borrowed(usage),
            },
        }
    }

    /// Says whether the request fits the context window of its model, if that is known, and what it was made to fit.
    #[must_use]
    pub fn with_limits(mut self, request: &Request, window: Option<u64>, fit: Option<Fit>) -> Self {
        self.tokens = TokensRecord::new(&request.tokens(), window, fit);
        // To the API it is a problem like any other: a request that is too long is refused.
        if self.tokens.over.is_some() {
            self.lint.ok = false;
            self.lint.problems.push(ProblemRecord::context_window());
        }
        self
    }

    /// Writes the report as one line with `messages`, which are written one by one so that they are
    /// not in memory twice. Verbatim messages pass through `verbatim`.
    ///
    /// # Errors
    /// Those of `out`, and of [`Message::write`].
    pub fn write(
        mut self,
        out: &mut dyn Write,
        messages: &[Message],
        verbatim: impl Fn(&str) -> Cow<'_, str>,
    ) -> io::Result<()> {
        // Those of a report that was parsed; the list has to be empty to be found below.
        self.messages.clear();
        let report = text(&self)?;
        // The fields before it are texts and numbers: in a text the quotes of this name would be escaped.
        let (head, tail) = around_value(&report, "\"messages\":", "[]");
        out.write_all(head.as_bytes())?;
        write_messages(out, messages, verbatim)?;
        out.write_all(tail.as_bytes())?;
        out.write_all(b"\n")
    }
}

/// The request that continues an open session.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RequestRecord<'a> {
    /// The model.
    pub model: Option<&'a str>,
    /// The provider that gets the request.
    pub provider: &'a str,
    /// Whether there is a conversation to continue.
    pub resumable: bool,
    /// Whether a strict provider accepts the messages, and they fit the context window of the model if that is known.
    pub accepted: bool,
    /// The length of the request.
    pub tokens: TokensRecord,
    /// The messages, in the form of the API.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Vec<super::api_message::ApiMessage>")
    )]
    pub messages: Json<'a>,
    /// The synthetic and the omitted parts of the request.
    #[serde(flatten)]
    pub diagnostics: RequestDiagnostics<'a>,
}

/// The differences between a request and the file: synthetic and omitted parts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RequestDiagnostics<'a> {
    /// As [`ResumeReport::synthetic`].
    pub synthetic: Vec<SyntheticRecord<'a>>,
    /// As [`ResumeReport::omitted`].
    pub omitted: Vec<OmissionRecord>,
}

impl<'a> RequestDiagnostics<'a> {
    /// Returns them for a request of entries of `index`.
    #[must_use]
    pub fn new(index: &Index, request: &'a Request) -> Self {
        let synthetic = request.synthetic.iter();
        let omissions = request.omissions.iter();
        Self {
            synthetic: synthetic
                .map(|synthetic| SyntheticRecord {
                    kind: synthetic.kind.name().into(),
                    role: synthetic.role.name().into(),
                    block: Json::new(synthetic.block.json()),
                    entry: EntryLocation::new(index, synthetic.origin.map(EntryNo::new)),
                    persist: synthetic.kind.is_persisted(),
                })
                .collect(),
            omitted: omissions
                .map(|omission| OmissionRecord {
                    reason: omission.reason.name().into(),
                    entry: EntryLocation::new(index, EntryNo::new(omission.origin)),
                    evidence: omission
                        .evidence
                        .map(|evidence| EntryLocation::new(index, EntryNo::new(evidence))),
                })
                .collect(),
        }
    }
}

/// Writes the messages as one JSON array without a newline, as `resume --request` does.
///
/// # Errors
/// Those of `out`, and of [`Message::write`].
pub fn write_messages(
    out: &mut dyn Write,
    messages: &[Message],
    verbatim: impl Fn(&str) -> Cow<'_, str>,
) -> io::Result<()> {
    out.write_all(b"[")?;
    // One for all: neighbouring blocks of a file come from the same buffer.
    let mut reader = StoredReader::default();
    for (at, message) in messages.iter().enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        message.write(&mut reader, |part| out.write_all(verbatim(part).as_bytes()))?;
    }
    out.write_all(b"]")
}

/// The answer of `resume --json` for a file that is not a transcript. It can also be parsed as a
/// [`ResumeReport`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResumeRefusal {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Always `resume`.
    pub kind: Name,
    /// Always `None`.
    pub session_id: Option<String>,
    /// The path of the file; `-` for standard input.
    pub path: String,
    /// The policy that was asked for: `recover` or `vendor`.
    pub policy: Name,
    /// Always `file`.
    pub scope: Name,
    /// Always false.
    #[cfg_attr(feature = "schema", schemars(extend("const" = false)))]
    pub resumable: bool,
    /// The format of the file, in words.
    pub reason: String,
    /// Always `None`.
    pub leaf: Option<String>,
    /// Always `None`.
    pub model: Option<String>,
}

impl ResumeRefusal {
    /// Says that the file at `path` has another format.
    #[must_use]
    pub fn new(path: &Path, policy: Policy, reason: String) -> Self {
        Self {
            schema: SCHEMA,
            kind: "resume".into(),
            session_id: None,
            path: path.to_string_lossy().into_owned(),
            policy: policy.name().into(),
            scope: "file".into(),
            resumable: false,
            reason,
            leaf: None,
            model: None,
        }
    }
}

/// The uuids of the entries of a path, oldest first; `None` for an entry without one.
///
/// For a report that is about to be written, they are made one by one.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "Vec<Option<String>>"))]
pub struct EntryUuids<'a>(Uuids<'a>);

#[derive(Clone, Debug)]
enum Uuids<'a> {
    Path(&'a Index, &'a ConversationPath),
    List(Vec<Option<String>>),
}

impl<'a> EntryUuids<'a> {
    fn from_path(index: &'a Index, path: &'a ConversationPath) -> Self {
        Self(Uuids::Path(index, path))
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Uuids::Path(_, path) => path.entries.len(),
            Uuids::List(uuids) => uuids.len(),
        }
    }

    /// Returns whether the path has no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the uuids, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Option<Cow<'_, str>>> {
        (0..self.len()).map(|at| match &self.0 {
            Uuids::Path(index, path) => uuid(index, path.entries[at].entry_no()).map(Cow::Owned),
            Uuids::List(uuids) => uuids[at].as_deref().map(Cow::Borrowed),
        })
    }
}

impl Default for EntryUuids<'_> {
    fn default() -> Self {
        Self(Uuids::List(Vec::new()))
    }
}

impl Serialize for EntryUuids<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Made one by one from the index: a list of texts would need more memory than the path itself.
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for EntryUuids<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(|uuids| Self(Uuids::List(uuids)))
    }
}

/// A block that is not in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SyntheticRecord<'a> {
    /// The kind, such as `missing-result`; `docs/cli.md` has the list.
    pub kind: Name,
    /// The role of its message: `user`, `assistant` or `system`.
    pub role: Name,
    /// The block.
    pub block: Json<'a>,
    /// The entry that it follows or replaces; none at the start.
    #[serde(flatten)]
    pub entry: EntryLocation,
    /// Whether the client writes it to the file before it continues.
    pub persist: bool,
}

/// An entry that is not sent, or only in part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OmissionRecord {
    /// The reason, such as `unanswered-call`; `docs/cli.md` has the list.
    pub reason: Name,
    /// The entry.
    #[serde(flatten)]
    pub entry: EntryLocation,
    /// The entry that is the evidence, such as the error of the API that names an image; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EntryLocation>,
}

/// A step of choosing the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DecisionRecord {
    /// The kind, such as `leaf`; `docs/recover.md` has the list.
    pub kind: Name,
    /// The entry that it is about.
    #[serde(flatten)]
    pub entry: EntryLocation,
    /// The decision with its evidence, for people.
    pub detail: String,
}

/// A defect of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FindingRecord {
    /// The code, such as `L-TORN-TAIL`; `docs/findings.md` explains each.
    pub code: Name,
    /// `note` or `damage`.
    pub severity: Name,
    /// The number of the line, from 1; `None` if the lines before were not read.
    pub line: Option<u64>,
    /// The offset of the first byte that it is about.
    pub offset: u64,
    /// The number of bytes that it is about.
    pub len: u64,
    /// The defect, in words; never quotes the file.
    pub detail: Name,
}

impl FindingRecord {
    /// Describes a finding.
    #[must_use]
    pub fn new(finding: &Finding) -> Self {
        Self {
            code: finding.code.as_str().into(),
            severity: severity(finding.code),
            line: finding.line,
            offset: finding.offset,
            len: finding.len,
            detail: finding.detail.into(),
        }
    }
}

/// Returns the name of the severity of a code.
pub(super) fn severity(code: Code) -> Name {
    match code.severity() {
        Severity::Note => "note".into(),
        // A severity that another version of the crate adds is no reason to look away.
        _ => "damage".into(),
    }
}

/// Whether a strict provider would accept a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LintRecord {
    /// Whether the session is resumable and there are no problems.
    pub ok: bool,
    /// The problems for which a strict provider refuses the request, in the order of the messages.
    pub problems: Vec<ProblemRecord>,
    /// The problems for which some providers may refuse it, in the order of the messages.
    pub warnings: Vec<ProblemRecord>,
}

impl LintRecord {
    fn new(index: &Index, request: &Request) -> Self {
        let lint = request.lint();
        let records = |problems: &[Problem]| {
            let problems = problems.iter().map(|problem| ProblemRecord {
                rule: problem.rule.name().into(),
                message: problem.message.map(|message| message as u64),
                entry: EntryLocation::new(index, problem.origin.map(EntryNo::new)),
                // The same rule may have another limit, and another reason, with each provider.
                detail: problem.rule.words_for(request.provider).into(),
            });
            problems.collect()
        };
        Self {
            // No rule is broken where there are no messages; such a request is not accepted all the same.
            ok: request.is_resumable() && lint.is_ok(),
            problems: records(&lint.problems),
            warnings: records(&lint.warnings),
        }
    }
}

/// The tokens of a request, estimated. Only the API knows the exact number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct TokensRecord {
    /// The tokens of the request: of its messages and, as far as the last answer shows what they took, of the system
    /// prompt and the tools.
    pub request: u64,
    /// The tokens of the messages alone.
    pub messages: u64,
    /// The number of blocks that cannot be estimated, such as PDFs; they are not in the numbers above.
    pub unknown: u64,
    /// The tokens of the last answer of the conversation and its request, as the API counted them; `None` if no answer has the counts.
    pub recorded: Option<u64>,
    /// The context window of the model that the request is meant for; `None` if it is not known, or if an answer took more.
    pub window: Option<u64>,
    /// The safety margin when the request is compared with its limits; in [`Self::over`], but not in the numbers above: a third of
    /// the messages, if the request was made to fit and no answer shows how much the estimate is too low; otherwise 0.
    pub margin: u64,
    /// The excess in tokens of the request, with [`Self::margin`], over the window or over the limit that it was made to fit;
    /// `None` if it is not, or if the window is not known.
    pub over: Option<u64>,
}

impl TokensRecord {
    /// Describes the tokens of a request to a model with this context window, if that is known, which was made to fit a
    /// limit.
    #[must_use]
    pub fn new(tokens: &RequestTokens, window: Option<u64>, fit: Option<Fit>) -> Self {
        // Some sessions have a longer one than their model has by default.
        let is_possible = |window: &u64| tokens.recorded.is_none_or(|most| most <= *window);
        let window = window.filter(is_possible);
        // A caller may ask for more than the window holds, so both limits count, and the stricter one decides.
        let limits = window.map(Fit::window).into_iter().chain(fit);
        let over = limits.map(|limit| limit.surplus(tokens)).max();
        Self {
            request: tokens.request,
            messages: tokens.messages,
            unknown: tokens.unknown as u64,
            recorded: tokens.recorded,
            window,
            margin: tokens.margin,
            over: over.filter(|over| *over > 0),
        }
    }
}

/// A rule that a request breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ProblemRecord {
    /// The rule, such as `emptied-thinking`.
    pub rule: Name,
    /// The number of the message, from 0; `None` for the whole request.
    pub message: Option<u64>,
    /// The entry that the block comes from, if any.
    #[serde(flatten)]
    pub entry: EntryLocation,
    /// The rule in words.
    pub detail: Name,
}

impl ProblemRecord {
    fn context_window() -> Self {
        Self {
            rule: "context-window".into(),
            // All of them together are too long; no entry is to blame.
            message: None,
            entry: EntryLocation::default(),
            detail: "the request is longer than the context window of its model".into(),
        }
    }
}

/// The tokens of the answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct UsageRecord<'a> {
    /// The scope of the counts: `path`.
    pub scope: Name,
    /// The counts by model, ordered by name.
    pub models: Cow<'a, [Usage]>,
}
