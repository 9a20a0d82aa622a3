//! Builds the next request from a path: under policy `vendor` the one that the client (2.1.329)
//! would send, under `recover` one that a strict provider accepts.
//!
//! Start with [`RequestOptions::request`]. The passes run in the order in which the client was
//! observed to apply them: read the entries as steps, drop what was never finished and complete the
//! last turn, add the new prompt, move reminders to the front of their turn, remove rejected media
//! and thinking of other models, merge entries into messages, pair calls with results, finish each
//! message. The rules are MSG, NOTE, TURN and ERR of `docs/client-behaviour.md`; comments cite
//! their ids.
//!
//! Under [`Policy::Recover`] no entry is dropped for a call without a result, and `strict` replaces
//! the pairing: [`lint()`] finds no problem in its output. It attaches the results that exist
//! before it makes any synthetic ones, repairs blocks where that is possible, and reports what it
//! added and omitted in [`Request::synthetic`] and [`Request::omissions`]. A conversation that
//! needs none of this is sent as under [`Policy::Vendor`].
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
//! What the client adds for the new prompt (date, tool lists, token counts) is not in the
//! transcript and so not in the request; neither is the empty `system` message with the effort that
//! newer models get. Attachments without a stored text are rendered as far as the text of the
//! client is known; others are omitted.

mod block;
pub mod builder;
mod estimate;
mod image;
mod lint;
mod media;
mod merge;
mod pair;
pub mod recorded;
mod references;
mod reminders;
mod repair;
mod step;
mod strict;
mod thinking;

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use transcript_format::kind::{EntryKind, SystemKind};
use transcript_format::object::Raw;
use transcript_format::scan::Flags;
use transcript_reader::{Bodies, EntryRef, Error};

use crate::path::{ConversationPath, Refusal};
use crate::state::{PathState, Usage};
use crate::tree::{Policy, Tree};
pub use block::{Block, BlockKind};
pub use estimate::TokenEstimate;
pub use lint::{Lint, Problem, Rule, lint};
use merge::Draft;
use step::{Reading, Step, StepContext, StepKind};

/// Provides the bodies of entries, so that this module does not have to read a file.
pub trait BodySource {
    /// Why a body cannot be read.
    type Error;

    /// Returns the text of `entry_ref`: one JSON object, or anything else when the file no longer
    /// contains it; the entry then counts as missing.
    ///
    /// # Errors
    /// When it cannot be read. The request is then abandoned.
    fn body(&mut self, entry_ref: &EntryRef<'_>) -> Result<&str, Self::Error>;
}

impl<B: BodySource> BodySource for &mut B {
    type Error = B::Error;

    fn body(&mut self, entry_ref: &EntryRef<'_>) -> Result<&str, Self::Error> {
        (**self).body(entry_ref)
    }
}

impl BodySource for Bodies<'_> {
    type Error = Error;

    fn body(&mut self, entry_ref: &EntryRef<'_>) -> Result<&str, Error> {
        self.get(entry_ref).map(|body| body.text)
    }
}

/// The options of a request.
#[derive(Clone, Debug, Default)]
pub struct RequestOptions {
    prompt: Option<String>,
    model: Option<String>,
    leaf: Option<usize>,
    at: Option<usize>,
    is_live: bool,
    tools: Option<BTreeSet<String>>,
}

impl RequestOptions {
    /// Requests the conversation without a new prompt.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `text` as the next user message.
    #[must_use]
    pub fn prompt(mut self, text: impl Into<String>) -> Self {
        self.prompt = Some(text.into());
        self
    }

    /// Requests the answer to the last message: a turn without an answer stays open. By default
    /// such a turn counts as abandoned, and [`SyntheticKind::NoResponse`] ends it, as in a client
    /// that resumes a session (TURN-5).
    #[must_use]
    pub fn live(mut self) -> Self {
        self.is_live = true;
        self
    }

    /// Names the model that gets the request. Thinking that another model signed is omitted
    /// (MSG-10), and newer models get reminders as `system` messages (NOTE-6). By default it is the
    /// model of the last real answer on the path (MSG-19).
    #[must_use]
    pub fn model(mut self, id: impl Into<String>) -> Self {
        self.model = Some(id.into());
        self
    }

    /// Names the tools of the request: references to others, which a tool search left, are removed,
    /// as the API refuses them (MSG-14). By default [`Policy::Vendor`] assumes the tools that the
    /// client has without options, and [`Policy::Recover`] keeps every reference.
    #[must_use]
    pub fn tools<I>(mut self, names: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Ends the conversation at this entry instead of the leaf that the policy chooses.
    #[must_use]
    pub fn leaf(mut self, entry_no: usize) -> Self {
        self.leaf = Some(entry_no);
        self
    }

    /// Stops after this entry of the path. When it is not on the path there is no conversation.
    #[must_use]
    pub fn at(mut self, entry_no: usize) -> Self {
        self.at = Some(entry_no);
        self
    }

    /// Returns the request for the conversation of `tree`.
    ///
    /// Each body of the path is requested once, and only the parts that are sent are kept. When
    /// bodies turn out to be unusable their entries count as missing and the path is computed
    /// again, until all bodies of a path are usable.
    ///
    /// # Errors
    /// Those of `bodies`.
    pub fn request<B: BodySource>(
        &self,
        tree: &Tree<'_>,
        bodies: &mut B,
    ) -> Result<Request, B::Error> {
        let span = tracing::debug_span!(
            "build_request",
            policy = tree.policy().name(),
            messages = tracing::field::Empty,
        );
        let _entered = span.enter();
        let mut lost = HashSet::new();
        loop {
            let pruned = (!lost.is_empty()).then(|| tree.without(&lost));
            let tree = pruned.as_ref().unwrap_or(tree);
            let mut log = Log::default();
            for entry_ref in &lost {
                log.omit(Some(*entry_ref), OmissionReason::UnusableBody);
            }
            let path = self.path(tree);
            if path.refusal.is_some() {
                return Ok(Request::refused(path, log));
            }
            let loaded = Loaded::new(tree, &path, bodies, &mut log)?;
            if loaded.unusable.is_empty() {
                let request = self.finish(tree, bodies, path, loaded, log)?;
                span.record("messages", request.messages.len());
                return Ok(request);
            }
            lost.extend(loaded.unusable);
        }
    }

    fn path(&self, tree: &Tree<'_>) -> ConversationPath {
        let path = match self.leaf {
            None => Some(tree.path()),
            Some(leaf) => tree.node(leaf).map(|leaf| tree.path_to_leaf(leaf)),
        };
        let path = path.and_then(|mut path| match self.at {
            Some(at) => path.cut_after(at).then_some(path),
            None => Some(path),
        });
        path.unwrap_or_else(|| ConversationPath {
            refusal: Some(Refusal::NoConversation),
            ..ConversationPath::default()
        })
    }

    fn finish<B: BodySource>(
        &self,
        tree: &Tree<'_>,
        bodies: &mut B,
        path: ConversationPath,
        loaded: Loaded,
        mut log: Log,
    ) -> Result<Request, B::Error> {
        let Loaded {
            mut steps,
            names,
            stored_thoughts,
            ..
        } = loaded;
        let asked = self.model.as_deref().map(Rc::from);
        let model: Option<Rc<str>> = asked.or(names.last_answerer);
        let (state, usage) = names.record.finish(tree.index(), &path, bodies)?;
        let policy = tree.policy();
        references::resolve(&mut steps, self.tools.as_ref(), policy, &mut log);
        if policy == Policy::Recover {
            thinking::drop_emptied(&mut steps, stored_thoughts, &mut log);
        }
        let open = repair::drop_unfinished(&mut steps, policy, &mut log);
        repair::complete_calls(&mut steps, &open, &mut log);
        if !self.is_live {
            repair::complete_turn(&mut steps, &mut log);
        }
        if let Some(prompt) = &self.prompt {
            steps.push(Step::user(Block::plain_text(prompt)));
        }
        Ok(Request {
            path,
            messages: messages(steps, model.as_deref(), policy, &mut log),
            model: model.map(|model| model.as_ref().into()),
            synthetic: log.synthetic,
            omissions: log.omissions,
            state,
            usage,
        })
    }
}

/// Turns steps into messages.
fn messages(steps: Vec<Step>, model: Option<&str>, policy: Policy, log: &mut Log) -> Vec<Message> {
    let mut steps = bubble_up(steps);
    media::remove_rejected(&mut steps, log);
    thinking::drop_foreign(&mut steps, model, log);
    let drafts = merge::merge(steps, model.is_some_and(wants_system_role), policy, log);
    let drafts = match policy {
        Policy::Vendor => pair::pair(drafts, log),
        Policy::Recover => strict::make_strict(drafts, log),
    };
    drafts.into_iter().map(Message::from).collect()
}

/// The steps of a path, and the entries that could not be used.
struct Loaded {
    steps: Vec<Step>,
    names: StepContext,
    /// Signatures of thinking that another line of the same entry has with a text.
    stored_thoughts: HashSet<Box<str>>,
    unusable: Vec<u32>,
}

impl Loaded {
    fn new<B: BodySource>(
        tree: &Tree<'_>,
        path: &ConversationPath,
        bodies: &mut B,
        log: &mut Log,
    ) -> Result<Self, B::Error> {
        let mut loaded = Self {
            steps: Vec::with_capacity(path.entries.len()),
            names: StepContext::default(),
            stored_thoughts: HashSet::new(),
            unusable: Vec::new(),
        };
        for entry in &path.entries {
            let entry_ref = tree.index().entry(entry.entry_no());
            if !may_be_sent(&entry_ref) {
                continue;
            }
            let number = entry_ref.number() as u32;
            if entry_ref.flags().contains(Flags::TOO_MANY) {
                log.omit(Some(number), OmissionReason::TooMany);
                continue;
            }
            let body = bodies.body(&entry_ref)?;
            match Step::read(body, &entry_ref, &mut loaded.names, log) {
                Ok(Reading::Step(step)) => {
                    if tree.policy() == Policy::Recover && tree.index().has_repeated_uuids() {
                        let stored =
                            thinking::stored_with_text(&step.blocks, &entry_ref, tree, bodies)?;
                        loaded.stored_thoughts.extend(stored);
                    }
                    loaded.steps.push(step);
                }
                Ok(Reading::Unsent) => {}
                Ok(Reading::Virtual) => log.omit(Some(number), OmissionReason::Virtual),
                Ok(Reading::Empty) => log.omit(Some(number), OmissionReason::Empty),
                Err(step::Unusable) => loaded.unusable.push(number),
            }
        }
        Ok(loaded)
    }
}

/// Returns whether the body has to be read: of system entries only the output of commands is sent
/// (MSG-6).
pub(crate) fn may_be_sent(entry_ref: &EntryRef<'_>) -> bool {
    match entry_ref.kind() {
        EntryKind::User | EntryKind::Assistant | EntryKind::Attachment => true,
        EntryKind::System => entry_ref.system_kind() == Some(SystemKind::LocalCommand),
        _ => false,
    }
}

/// Returns whether a model gets reminders as `role: system` messages: models after 4.7 do (NOTE-6).
fn wants_system_role(model: &str) -> bool {
    let mut numbers = model.split('-').filter_map(|part| part.parse::<u32>().ok());
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    // A minor version of more than two digits is a date.
    (major, if minor > 99 { 0 } else { minor }) >= (4, 8)
}

/// Moves reminders up to the front of their user turn: before the user texts, but neither before a
/// result nor before any assistant entry, sent or not (NOTE-2).
fn bubble_up(steps: Vec<Step>) -> Vec<Step> {
    let mut moved = Vec::with_capacity(steps.len());
    let mut passed = Vec::new();
    for step in steps {
        match step.kind {
            StepKind::Reminder => moved.push(step),
            StepKind::LocalCommand => passed.push(step),
            StepKind::User if !step.has_results() => passed.push(step),
            StepKind::User | StepKind::Assistant | StepKind::ApiError => {
                moved.append(&mut passed);
                moved.push(step);
            }
        }
    }
    moved.append(&mut passed);
    moved
}

/// Trims white space as JavaScript defines it: U+FEFF is, U+0085 is not (NOTE-3).
fn js_trim(text: &str) -> &str {
    text.trim_matches(|c: char| c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}'))
}

/// Returns whether a text is blank, or the client's placeholder for an empty message (MSG-8).
fn is_blank_text(text: &str) -> bool {
    js_trim(text).is_empty() || text == crate::texts::NO_CONTENT
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
    /// The synthetic blocks, in the order of the messages within each pass.
    pub synthetic: Vec<Synthetic>,
    /// The parts of the path that could have been sent and were not.
    pub omissions: Vec<Omission>,
    /// The settings of the session. Empty when a client would not resume.
    pub state: PathState,
    /// The tokens of the answers on the path, by model, ordered by name.
    pub usage: Vec<Usage>,
}

impl Request {
    fn refused(path: ConversationPath, log: Log) -> Self {
        Self {
            path,
            omissions: log.omissions,
            ..Self::default()
        }
    }

    /// Returns whether the client would resume the session.
    #[must_use]
    pub fn is_resumable(&self) -> bool {
        self.path.refusal.is_none()
    }

    /// Returns the body of the call of the API: `settings` and the messages, as JSON.
    #[must_use]
    pub fn body(&self, settings: &crate::builder::RequestSettings) -> String {
        settings.body(&self.messages)
    }
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The person, and the client on their behalf: tool results, reminders.
    User,
    /// The model.
    Assistant,
    /// Reminders, for newer models.
    System,
}

impl Role {
    /// Returns the name in a request.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
        }
    }
}

/// One message of a request.
///
/// Serialises as `{"role", "content"}`; content is a string when it was one in the transcript and
/// nothing was merged into it, else a list of blocks (MSG-18).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    role: Role,
    blocks: Vec<Block>,
}

impl Message {
    /// Returns the author.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the blocks; one for content that is a string.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the message as JSON. The result is the same as that of serialising it, but the
    /// blocks are not parsed again.
    #[must_use]
    pub fn json(&self) -> String {
        let role = self.role.name();
        let mut json = format!(r#"{{"role":"{role}","content":"#);
        match self.only_string() {
            Some(text) => json += text,
            None => {
                json.push('[');
                for (at, block) in self.blocks.iter().enumerate() {
                    if at > 0 {
                        json.push(',');
                    }
                    json += block.json();
                }
                json.push(']');
            }
        }
        json.push('}');
        json
    }

    /// Returns the string that is the whole content, as JSON.
    fn only_string(&self) -> Option<&str> {
        match self.blocks.as_slice() {
            [block] => block.as_plain(),
            _ => None,
        }
    }
}

impl From<Draft> for Message {
    fn from(draft: Draft) -> Self {
        Self {
            role: draft.role,
            blocks: draft.into_blocks(),
        }
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut message = serializer.serialize_struct("Message", 2)?;
        message.serialize_field("role", self.role.name())?;
        match self.only_string().and_then(|text| Raw::parse(text).ok()) {
            Some(text) => message.serialize_field("content", &text)?,
            None => message.serialize_field("content", &self.blocks)?,
        }
        message.end()
    }
}

/// A block of a request that is not in the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Synthetic {
    /// The kind of block.
    pub kind: SyntheticKind,
    /// The role of the message that it is in.
    pub role: Role,
    /// The block as it was made; a reminder may have been folded into it later.
    pub block: Block,
    /// The entry that it follows, or that it replaces; `None` at the very start.
    pub entry: Option<usize>,
}

/// Kinds of synthetic blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SyntheticKind {
    /// The result of a call that the end of the session interrupted (TURN-1).
    InterruptedResult,
    /// The answer to a turn that was never answered (TURN-5).
    NoResponse,
    /// The result of an earlier call whose own is lost (TURN-2).
    MissingResult,
    /// The first user message, when the history starts with an answer.
    MissingStart,
    /// The rest of an answer whose call has an id that was used before (TURN-4).
    RepeatedCall,
    /// The rest of a message without content (MSG-8).
    NoContent,
    /// The rest of a first message all of whose results are orphans (TURN-3).
    OrphanRemoved,
    /// A note in place of an image or document that is too large.
    MediaNote,
    /// A text after a result that refers to a tool (MSG-14).
    ToolLoaded,
    /// A text of ours for an attachment whose text in the client is not known.
    Reminder,
}

impl SyntheticKind {
    /// Returns the stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InterruptedResult => "interrupted-result",
            Self::NoResponse => "no-response",
            Self::MissingResult => "missing-result",
            Self::MissingStart => "missing-start",
            Self::RepeatedCall => "repeated-call",
            Self::NoContent => "no-content",
            Self::OrphanRemoved => "orphan-removed",
            Self::MediaNote => "media-note",
            Self::ToolLoaded => "tool-loaded",
            Self::Reminder => "reminder",
        }
    }

    /// Returns whether the client writes it to the file before it continues, each as the child of
    /// the one before, the first as the child of [`Synthetic::entry`] (TURN-7). The others are made
    /// again for each request.
    #[must_use]
    pub const fn is_persisted(self) -> bool {
        matches!(self, Self::InterruptedResult | Self::NoResponse)
    }
}

/// An entry of the path that is not sent, or not completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Omission {
    /// The number of the entry.
    pub entry: usize,
    /// Why.
    pub reason: OmissionReason,
}

/// Why something is not sent.
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
            Self::OrphanResult => "orphan-result",
            Self::RepeatedCall => "repeated-call",
            Self::ServerCall => "server-call",
            Self::ToolReference => "tool-reference",
            Self::Refused(rule) => rule.name(),
        }
    }
}

/// What the passes added and omitted.
#[derive(Debug, Default)]
struct Log {
    synthetic: Vec<Synthetic>,
    omissions: Vec<Omission>,
}

impl Log {
    fn omit(&mut self, entry: Option<u32>, reason: OmissionReason) {
        if let Some(entry) = entry {
            let entry = entry as usize;
            self.omissions.push(Omission { entry, reason });
        }
    }

    fn add_synthetic(
        &mut self,
        kind: SyntheticKind,
        role: Role,
        block: &Block,
        entry: Option<u32>,
    ) {
        self.synthetic.push(Synthetic {
            kind,
            role,
            block: block.clone(),
            entry: entry.map(|entry| entry as usize),
        });
    }
}
