//! Builds the next request from a path: under policy `vendor` the one that the client
//! would send, under `recover` one that a strict provider accepts.
//!
//! Start with [`RequestOptions::request`]. The passes run in the order in which the client was
//! observed to apply them: read the entries as steps, drop unfinished ones and complete the
//! last turn, add the new prompt, move reminders to the front of their turn, remove rejected media
//! and thinking of other models, merge entries into messages, pair calls with results, finish each
//! message. The rules are MSG, NOTE, TURN and ERR of `docs/client-behaviour.md`; comments cite
//! their ids.
//!
//! Under [`Policy::Recover`](crate::Policy::Recover) no entry is dropped for a call without a result, and
//! [`make_strict`](transcript_messages::make_strict) replaces the pairing: [`lint()`](transcript_messages::lint()) finds no problem in its output. It
//! attaches the results that exist before it makes any synthetic ones, repairs blocks where that is
//! possible, and reports what it added and omitted in [`Request::synthetic`] and
//! [`Request::omissions`]. A conversation that needs none of this is sent as under
//! [`Policy::Vendor`](crate::Policy::Vendor).
//!
//! ```no_run
//! use transcript_reader::{Bodies, Index, Source};
//! use transcript_resume::{Policy, Tree, request};
//!
//! let source = Source::open("session.jsonl".as_ref())?;
//! let index = Index::load(&source)?;
//! let tree = Tree::new(&index, Policy::Vendor);
//! let request = request::RequestOptions::new()
//!     .prompt("Go on.")
//!     .request(&tree, &mut Bodies::new(&source))?;
//! if request.is_resumable() {
//!     for message in &request.messages {
//!         println!("{} with {} blocks", message.role().name(), message.blocks().len());
//!     }
//! }
//! # Ok::<(), transcript_reader::Error>(())
//! ```
//!
//! # Limitations
//!
//! The additions of the client for the new prompt (date, tool lists, token counts) are not in the
//! transcript and so not in the request; neither is the empty `system` message with the effort that
//! newer models get. Attachments without a stored text are rendered as far as the text of the
//! client is known; others are omitted.

mod answers;
mod build;
mod fit;
mod frames;
mod live;
mod load;
mod media;
mod merge;
pub mod recorded;
mod recorded_usage;
mod references;
mod reminders;
mod repair;
mod step;
mod thinking;
mod tokens;

use std::collections::BTreeSet;

use transcript_messages::builder::RequestSettings;
use transcript_messages::{Lint, Log, Message, Omission, Provider, Synthetic, lint_for};
pub use transcript_reader::BodySource;
use transcript_reader::{ConversationPath, EntryNo, Source};

use fit::Scale;
pub use fit::{Fit, RequestTokens};
pub use live::LiveRequest;
pub use media::{RefusedMedia, refused_media};
use recorded_usage::RecordedTokens;

/// The options of a request.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct RequestOptions {
    prompt: Option<String>,
    model: Option<String>,
    leaf: Option<EntryNo>,
    at: Option<EntryNo>,
    is_live: bool,
    tools: Option<BTreeSet<String>>,
    long_blocks_in: Option<Source>,
    now: Option<i64>,
    fit: Option<Fit>,
    provider: Provider,
}

impl RequestOptions {
    /// Requests the conversation without a new prompt.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `text` as the next user message.
    pub fn prompt(mut self, text: impl Into<String>) -> Self {
        self.prompt = Some(text.into());
        self
    }

    /// Requests the answer to the last message: a turn without an answer stays open, and a call
    /// without a result is pending, not interrupted. By default
    /// such a turn counts as abandoned, and a synthetic answer
    /// ([`NoResponse`](transcript_messages::SyntheticKind::NoResponse)) ends it, as in a client that
    /// resumes a session (TURN-5).
    pub fn live(mut self) -> Self {
        self.is_live = true;
        self
    }

    /// Names the model that gets the request. Thinking that another model signed is omitted
    /// (MSG-10), and newer models get reminders as `system` messages (NOTE-6). By default it is the
    /// model of the last real answer on the path (MSG-19).
    pub fn model(mut self, id: impl Into<String>) -> Self {
        self.model = Some(id.into());
        self
    }

    /// Names the tools of the request: references to others, which a tool search left, are removed,
    /// as the API refuses them (MSG-14). By default [`Policy::Vendor`](crate::Policy::Vendor) assumes the tools that the
    /// client has without options, and [`Policy::Recover`](crate::Policy::Recover) keeps every reference.
    pub fn tools<I>(mut self, names: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Ends the conversation at this entry instead of the leaf that the policy chooses.
    pub fn leaf(mut self, entry_no: EntryNo) -> Self {
        self.leaf = Some(entry_no);
        self
    }

    /// Stops after this entry of the path. When it is not on the path there is no conversation.
    pub fn at(mut self, entry_no: EntryNo) -> Self {
        self.at = Some(entry_no);
        self
    }

    /// Says when the request is made, in milliseconds since 1970: the client tells the model how old
    /// a memory without a heading is. By default that is its age when it was recalled.
    pub fn now(mut self, millis: i64) -> Self {
        self.now = Some(millis);
        self
    }

    /// Omits the parts beyond a context window.
    pub fn fit(mut self, limit: Fit) -> Self {
        self.fit = Some(limit);
        self
    }

    /// Sets the provider that gets the request: under [`Policy::Recover`](crate::Policy::Recover) this provider accepts it. By default that is the Messages API.
    /// The messages have the form of the Messages API in any case; to convert them is up to the caller. Under
    /// [`Policy::Vendor`](crate::Policy::Vendor) it has no effect.
    pub fn provider(mut self, provider: Provider) -> Self {
        self.provider = provider;
        self
    }

    /// Leaves long blocks in the file, which `source` must be the one of, until they are used. Then
    /// the request takes memory for each entry, whatever its size, but can be used only as long as
    /// the file keeps the bytes: [`Message::write`] fails if they were changed.
    pub fn long_blocks_in(mut self, source: &Source) -> Self {
        self.long_blocks_in = Some(source.clone());
        self
    }
}

/// The request that continues a conversation, and a report of how it was made.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Request {
    /// The path that the messages were made of. It may differ from that of the tree when bodies
    /// turned out to be unusable. If its refusal is set a client would not resume, and there are no
    /// messages.
    pub path: ConversationPath,
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// The model that the request is meant for; `None` when none was named and no model ever
    /// answered.
    pub model: Option<String>,
    /// The provider whose rules the messages keep; the Messages API under [`Policy::Vendor`](crate::Policy::Vendor).
    pub provider: Provider,
    /// The synthetic blocks, in the order of the messages within each pass. Here and below, an
    /// origin is the plain number of an entry, for [`EntryNo::new`].
    pub synthetic: Vec<Synthetic>,
    /// The parts of the path that could have been sent and were not.
    pub omissions: Vec<Omission>,
    /// The token counts of the API, for the answers that have one.
    recorded: Vec<RecordedTokens>,
    /// The factor from estimates to tokens, if the request was made to fit by it.
    scale: Option<Scale>,
    /// It was made to fit with a margin.
    has_margin: bool,
}

impl Request {
    fn refused(path: ConversationPath, log: Log) -> Self {
        Self {
            path,
            omissions: log.omissions,
            ..Self::default()
        }
    }

    /// Returns the objections that its [provider](Self::provider) has to the messages.
    #[must_use]
    pub fn lint(&self) -> Lint {
        lint_for(&self.messages, self.provider)
    }

    /// Returns whether the client would resume the session.
    #[must_use]
    pub fn is_resumable(&self) -> bool {
        self.path.refusal.is_none()
    }

    /// Returns the body of the call of the API: `settings` and the messages, as JSON.
    #[must_use]
    pub fn body(&self, settings: &RequestSettings) -> String {
        settings.body(&self.messages)
    }
}
