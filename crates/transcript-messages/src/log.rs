//! The additions and omissions of passes over messages.

use transcript_format::named;

use super::block::Block;
use super::message::Role;
use super::rule::Rule;

/// A block of a request that is not in the transcript: a pass, or the caller, added it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Synthetic {
    /// The kind of block.
    pub kind: SyntheticKind,
    /// The role of the message that it is in.
    pub role: Role,
    /// The block as it was made; a reminder may have been folded into it later.
    pub block: Block,
    /// The origin of the block that it follows, or that it replaces; `None` at the very start.
    pub origin: Option<usize>,
}

named! {
    /// Kinds of synthetic blocks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum SyntheticKind {
        /// The result of a call that the end of the session interrupted (TURN-1).
        InterruptedResult = "interrupted-result",
        /// The result of a call in the last answer whose input was cut with the stream of its reply.
        CutCall = "cut-call",
        /// A note in place of the result of a call that is still running, in the request of an open
        /// session.
        PendingResult = "pending-result",
        /// The answer to a turn that was never answered (TURN-5).
        NoResponse = "no-response",
        /// The result of an earlier call whose own is lost (TURN-2).
        MissingResult = "missing-result",
        /// The first user message, when the history starts with an answer.
        MissingStart = "missing-start",
        /// The rest of an answer whose call has an id that was used before (TURN-4).
        RepeatedCall = "repeated-call",
        /// The rest of a message without content (MSG-8).
        NoContent = "no-content",
        /// The rest of a first message all of whose results are orphans (TURN-3).
        OrphanRemoved = "orphan-removed",
        /// A note in place of an image or document that is too large.
        MediaNote = "media-note",
        /// A text after a result that refers to a tool (MSG-14).
        ToolLoaded = "tool-loaded",
        /// A text of ours for an attachment whose text in the client is not known.
        Reminder = "reminder",
        /// The texts of a result of a tool of the API, where the provider does not run that tool.
        ApiToolNote = "api-tool-note",
        /// A text beside a document, where the provider wants one.
        DocumentText = "document-text",
        /// A note in place of a result, or of the start of the conversation, that was omitted to fit the context
        /// window.
        OmissionNote = "omission-note",
    }
}

impl SyntheticKind {
    /// Returns whether the client writes it to the file before it continues, each as the child of
    /// the one before, the first as the child of [`Synthetic::origin`] (TURN-7). The others are made
    /// again for each request.
    #[must_use]
    pub const fn is_persisted(self) -> bool {
        matches!(
            self,
            Self::InterruptedResult | Self::CutCall | Self::NoResponse
        )
    }
}

/// A block that is not sent, or not completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Omission {
    /// Its origin.
    pub origin: usize,
    /// The reason.
    pub reason: OmissionReason,
    /// The origin of the evidence for it, such as the error of the API that names the image; `None` if the block itself
    /// shows it.
    pub evidence: Option<usize>,
}

/// The reason why something is not sent. Reasons that are about an entry are for callers that make messages of
/// entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OmissionReason {
    /// The body cannot be read; the entry counts as missing.
    UnusableBody,
    /// The entry is only displayed.
    Virtual,
    /// The entry has no blocks.
    Empty,
    /// The entry has more parts than are read
    /// ([`MAX_PARTS`](transcript_format::object::MAX_PARTS)).
    TooMany,
    /// The entry reports a failed request.
    ApiError,
    /// The entry makes calls, and none of them has a result.
    UnansweredCall,
    /// The message has only thinking or blank text.
    Silent,
    /// Another model signed the thinking.
    ForeignThinking,
    /// The API refused the image or document.
    RejectedMedia,
    /// The image or document is too large.
    OversizedMedia,
    /// The image or document is within its own limits, and beyond those of the whole request.
    RequestLimit,
    /// It was omitted to [fit](super::fit()) the context window.
    ContextWindow,
    /// A result without a call before it.
    OrphanResult,
    /// A call with an id that was used before.
    RepeatedCall,
    /// A call of a tool of the API without a result in the same message.
    ServerCall,
    /// A reference to a tool that is not in the request.
    ToolReference,
    /// A strict provider refuses the block, or the part of it that was changed: its id, name, input
    /// or content.
    Refused(Rule),
}

impl OmissionReason {
    /// Returns the stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnusableBody => "unusable-body",
            Self::Virtual => "virtual",
            Self::Empty => "empty",
            Self::TooMany => "too-many-parts",
            Self::ApiError => "api-error",
            Self::UnansweredCall => "unanswered-call",
            Self::Silent => "silent",
            Self::ForeignThinking => "foreign-thinking",
            Self::RejectedMedia => "rejected-media",
            Self::OversizedMedia => "oversized-media",
            Self::RequestLimit => "request-limit",
            Self::ContextWindow => "context-window",
            Self::OrphanResult => "orphan-result",
            Self::RepeatedCall => "repeated-call",
            Self::ServerCall => "server-call",
            Self::ToolReference => "tool-reference",
            Self::Refused(rule) => rule.name(),
        }
    }
}

/// The additions and omissions of the passes.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The synthetic blocks, in the order of the messages within each pass.
    pub synthetic: Vec<Synthetic>,
    /// The content that was not sent, with the reasons.
    pub omissions: Vec<Omission>,
}

impl Log {
    /// Adds an omission; none for a block without an origin, which a pass made itself.
    pub fn omit(&mut self, origin: Option<usize>, reason: OmissionReason) {
        self.omit_by(origin, reason, None);
    }

    /// Adds an omission for which there is evidence elsewhere.
    pub fn omit_by(
        &mut self,
        origin: Option<usize>,
        reason: OmissionReason,
        evidence: Option<usize>,
    ) {
        if let Some(origin) = origin {
            self.omissions.push(Omission {
                origin,
                reason,
                evidence,
            });
        }
    }

    /// Appends what later messages added and omitted.
    pub fn append(&mut self, other: Self) {
        self.synthetic.extend(other.synthetic);
        self.omissions.extend(other.omissions);
    }

    /// Adds a synthetic block.
    pub fn add_synthetic(
        &mut self,
        kind: SyntheticKind,
        role: Role,
        block: &Block,
        origin: Option<usize>,
    ) {
        self.synthetic.push(Synthetic {
            kind,
            role,
            block: block.clone(),
            origin,
        });
    }
}
