//! Builds the next request from a path: under policy `vendor` the one that the client
//! would send, under `recover` one that a strict provider accepts.
//!
//! Start with [`RequestOptions::request`]. The passes run in the order in which the client was
//! observed to apply them: read the entries as steps, drop what was never finished and complete the
//! last turn, add the new prompt, move reminders to the front of their turn, remove rejected media
//! and thinking of other models, merge entries into messages, pair calls with results, finish each
//! message. The rules are MSG, NOTE, TURN and ERR of `docs/client-behaviour.md`; comments cite
//! their ids.
//!
//! Under [`Policy::Recover`] no entry is dropped for a call without a result, and
//! [`make_strict`](transcript_messages::make_strict) replaces the pairing: [`lint()`](transcript_messages::lint()) finds no problem in its output. It
//! attaches the results that exist before it makes any synthetic ones, repairs blocks where that is
//! possible, and reports what it added and omitted in [`Request::synthetic`] and
//! [`Request::omissions`]. A conversation that needs none of this is sent as under
//! [`Policy::Vendor`].
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

mod answers;
mod fit;
mod frames;
mod live;
mod media;
mod merge;
pub mod recorded;
mod recorded_usage;
mod references;
mod reminders;
mod repair;
mod step;
mod thinking;

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use transcript_format::kind::{EntryKind, SystemKind};
use transcript_format::scan::Flags;
use transcript_messages::builder::RequestSettings;
use transcript_messages::text::js_trim;
use transcript_messages::{
    Block, BlockStore, Lint, Log, Message, Omission, OmissionReason, Part, Provider, Synthetic,
    lint_for, make_strict_part, pair, within_request_limits,
};
use transcript_reader::{Bodies, EntryNo, EntryRef, Error, Index, Source, in_order};

use crate::path::{ConversationPath, PathEntry, Refusal};
use crate::state::{PathState, StateReader, Usage};
use crate::tree::{Policy, Tree};
pub use fit::{Fit, RequestTokens};
use fit::{RecordedTokens, Scale};
pub use live::LiveRequest;
pub use media::{RefusedMedia, refused_media};
use recorded_usage::RecordedUsage;
use step::{Reading, Rules, Step, StepContext, StepKind};

/// Provides the bodies of entries, so that this module does not have to read a file.
pub trait BodySource {
    /// Why a body cannot be read.
    type Error: Send;

    /// Returns the text of `entry_ref`: one JSON object, or anything else when the file no longer
    /// contains it; the entry then counts as missing.
    ///
    /// # Errors
    /// When it cannot be read. The request is then abandoned.
    fn body(&mut self, entry_ref: &EntryRef<'_>) -> Result<&str, Self::Error>;

    /// Returns the file that the bodies are in, if it is one: the title of a session may be beside it, or before the part
    /// that an index has.
    fn file(&self) -> Option<&Source> {
        None
    }

    /// Calls `take` with what `read` returns for each number below `count`, in order. `read` gets a
    /// source of the same bodies: this one, or one for each of several threads that are a few
    /// numbers ahead.
    ///
    /// # Errors
    /// The first of `take`, which ends it.
    fn in_parts<T: Send>(
        &mut self,
        count: usize,
        read: impl Fn(usize, &mut Self) -> T + Sync,
        mut take: impl FnMut(T) -> Result<(), Self::Error>,
    ) -> Result<(), Self::Error>
    where
        Self: Sized,
    {
        (0..count).try_for_each(|number| take(read(number, self)))
    }
}

impl<B: BodySource> BodySource for &mut B {
    type Error = B::Error;

    fn body(&mut self, entry_ref: &EntryRef<'_>) -> Result<&str, Self::Error> {
        (**self).body(entry_ref)
    }

    fn file(&self) -> Option<&Source> {
        (**self).file()
    }
}

impl BodySource for Bodies<'_> {
    type Error = Error;

    fn body(&mut self, entry_ref: &EntryRef<'_>) -> Result<&str, Error> {
        self.get(entry_ref).map(|body| body.text)
    }

    fn file(&self) -> Option<&Source> {
        Some(self.source())
    }

    fn in_parts<T: Send>(
        &mut self,
        count: usize,
        read: impl Fn(usize, &mut Self) -> T + Sync,
        mut take: impl FnMut(T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let source = self.source();
        let maker = || {
            let mut bodies = Bodies::new(source);
            let read = &read;
            move |number| Some(read(number, &mut bodies))
        };
        in_order(0..count, maker, |number, made| {
            take(made.unwrap_or_else(|| read(number, self)))
        })
    }
}

/// The file that long blocks stay in.
#[derive(Debug)]
struct InFile {
    source: Source,
    /// A block could not be read again.
    is_lost: Arc<AtomicBool>,
}

impl BlockStore for InFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.source
            .read_at(offset, buffer)
            .map_err(io::Error::other)
    }

    fn lost(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
    }
}

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
    /// as the API refuses them (MSG-14). By default [`Policy::Vendor`] assumes the tools that the
    /// client has without options, and [`Policy::Recover`] keeps every reference.
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

    /// Omits what is too much for a context window.
    pub fn fit(mut self, limit: Fit) -> Self {
        self.fit = Some(limit);
        self
    }

    /// Says who gets the request: under [`Policy::Recover`] this provider accepts it. By default that is the Messages API.
    /// The messages have the form of the Messages API in any case; to convert them is up to the caller. Under
    /// [`Policy::Vendor`] it has no effect.
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
        let (request, _) = self.build(tree, bodies, |_| None)?;
        Ok(request)
    }

    /// Returns the request, the settings of the session, and the tokens of the answers on the path
    /// by model, ordered by name, from one reading of the bodies. The settings are empty when a
    /// client would not resume.
    ///
    /// # Errors
    /// Those of `bodies`.
    pub fn request_with_state<B: BodySource>(
        &self,
        tree: &Tree<'_>,
        bodies: &mut B,
    ) -> Result<(Request, PathState, Vec<Usage>), B::Error> {
        let reader = |path: &ConversationPath| Some(StateReader::new(tree.index(), path));
        let (request, record) = self.build(tree, bodies, reader)?;
        let (mut state, usage) = match record {
            Some(record) => record.finish(bodies)?,
            None => Default::default(),
        };
        let omitted = request.omissions.iter();
        let omitted = omitted.filter(|one| one.reason == OmissionReason::ContextWindow);
        let index = tree.index();
        let omitted = omitted.filter_map(|one| index.entry(EntryNo::new(one.origin)).uuid());
        state.forget_texts_of(&omitted.map(|id| index.id_text(id)).collect());
        Ok((request, state, usage))
    }

    fn build<'i, B: BodySource>(
        &self,
        tree: &Tree<'i>,
        bodies: &mut B,
        reader: impl Fn(&ConversationPath) -> Option<StateReader<'i>>,
    ) -> Result<(Request, Option<StateReader<'i>>), B::Error> {
        let span = tracing::debug_span!(
            "build_request",
            policy = tree.policy().name(),
            messages = tracing::field::Empty,
        );
        let _entered = span.enter();
        let mut lost = HashSet::new();
        let is_lost = Arc::new(AtomicBool::new(false));
        loop {
            let pruned = (!lost.is_empty()).then(|| tree.without(&lost));
            let tree = pruned.as_ref().unwrap_or(tree);
            let mut log = Log::default();
            for entry_no in &lost {
                log.omit(origin(*entry_no), OmissionReason::UnusableBody);
            }
            let mut path = self.path(tree);
            if path.refusal.is_some() {
                return Ok((Request::refused(path, log), None));
            }
            // If the file changes meanwhile, all that is needed is read at once.
            let source = self.long_blocks_in.as_ref();
            let source = source.filter(|_| !is_lost.swap(false, Ordering::Relaxed));
            let store = || {
                let (source, is_lost) = (source?.clone(), Arc::clone(&is_lost));
                Some(Arc::new(InFile { source, is_lost }) as Arc<dyn BlockStore>)
            };
            let context = || {
                let mut context = StepContext::new(Rules::of(tree), self.now, store());
                if self.fit.is_none() {
                    context.recorded = RecordedUsage::of_last();
                }
                context
            };
            let mut loaded = Loaded::new(tree, &path, &context, reader(&path), bodies, &mut log)?;
            if !loaded.unusable.is_empty() {
                lost.extend(loaded.unusable);
                continue;
            }
            if tree.policy() == Policy::Vendor && loaded.steps.iter().any(|step| step.is_unusable) {
                path.refusal = Some(Refusal::UnusableAttachment);
                return Ok((Request::refused(path, log), None));
            }
            let asked = self.model.as_deref().map(Arc::from);
            let model: Option<Arc<str>> = asked.or(loaded.names.last_answerer);
            let stored = loaded.stored_thoughts;
            let part = Part::WHOLE;
            let policy = tree.policy();
            let model = model.as_deref();
            let mut messages = self.messages(loaded.steps, stored, model, policy, part, &mut log);
            if policy == Policy::Recover {
                within_request_limits(&mut messages, self.provider, &mut log);
            }
            let mut request = Request {
                messages,
                model: model.map(Into::into),
                synthetic: log.synthetic,
                omissions: log.omissions,
                recorded: fit::since_boundary(loaded.recorded.found(), &path, tree.index()),
                path,
                provider: match policy {
                    Policy::Recover => self.provider,
                    Policy::Vendor => Provider::Messages,
                },
                scale: None,
                has_margin: false,
            };
            if let Some(limit) = self.fit.filter(|_| policy == Policy::Recover) {
                request.fit(limit, tree.index());
            }
            if is_lost.load(Ordering::Relaxed) {
                continue;
            }
            span.record("messages", request.messages.len());
            return Ok((request, loaded.names.record));
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
        let mut path = path.unwrap_or_else(|| ConversationPath {
            refusal: Some(Refusal::NoConversation),
            ..ConversationPath::default()
        });
        if tree.policy() == Policy::Vendor && self.leaf.is_none() && tree.has_only_sidechains() {
            path.refusal = path.refusal.or(Some(Refusal::OnlySidechains));
        }
        path
    }

    /// Turns the steps of a conversation into messages, or those of a part of it.
    fn messages(
        &self,
        mut steps: Vec<Step>,
        stored_thoughts: HashSet<Box<str>>,
        model: Option<&str>,
        policy: Policy,
        part: Part,
        log: &mut Log,
    ) -> Vec<Message> {
        references::resolve(&mut steps, self.tools.as_ref(), model, policy, log);
        if policy == Policy::Recover {
            answers::set_apart(&mut steps);
            thinking::drop_unsigned(&mut steps, log);
            thinking::drop_emptied(&mut steps, stored_thoughts, log);
        }
        let open = repair::drop_unfinished(&mut steps, policy, log);
        if part.is_end {
            repair::complete_calls(&mut steps, &open, self.is_live, policy, log);
            if !self.is_live {
                repair::complete_turn(&mut steps, log);
            }
            if let Some(prompt) = &self.prompt {
                steps.push(Step::user(Block::plain_text(prompt)));
            }
        }
        messages(steps, model, policy, part, self.provider, log)
    }
}

/// Turns steps into messages.
fn messages(
    mut steps: Vec<Step>,
    model: Option<&str>,
    policy: Policy,
    part: Part,
    provider: Provider,
    log: &mut Log,
) -> Vec<Message> {
    bubble_up(&mut steps);
    media::remove_rejected(&mut steps, policy, log);
    thinking::drop_foreign(&mut steps, model, log);
    let messages = merge::merge(steps, model.is_some_and(wants_system_role), policy, log);
    match policy {
        Policy::Vendor => pair(messages, log),
        Policy::Recover => make_strict_part(messages, part, provider, log),
    }
}

/// The number of entries of a path that are read at once.
const PART: usize = 256;

/// The steps of a path, and the entries that could not be used.
struct Loaded<'i> {
    steps: Vec<Step>,
    names: StepContext<'i>,
    /// The tokens of the answers that say them.
    recorded: RecordedUsage,
    /// Signatures of thinking that another line of the same entry has with a text.
    stored_thoughts: HashSet<Box<str>>,
    unusable: Vec<EntryNo>,
}

impl<'i> Loaded<'i> {
    /// Reads a path, with a context for each of its parts.
    fn new<B: BodySource>(
        tree: &Tree<'_>,
        path: &ConversationPath,
        context: &(dyn Fn() -> StepContext<'i> + Sync),
        record: Option<StateReader<'i>>,
        bodies: &mut B,
        log: &mut Log,
    ) -> Result<Self, B::Error> {
        let mut loaded = Self {
            steps: Vec::with_capacity(path.entries.len()),
            names: StepContext::default(),
            recorded: context().recorded,
            stored_thoughts: HashSet::new(),
            unusable: Vec::new(),
        };
        if record.is_some() {
            // The state follows from the bodies in their order.
            let mut names = context();
            names.record = record;
            loaded.add(
                PathPart::read(tree, &path.entries, &mut names, bodies)?,
                log,
            );
            loaded.names.record = names.record;
            return Ok(loaded);
        }
        let parts: Vec<&[PathEntry]> = path.entries.chunks(PART).collect();
        let read = |number: usize, bodies: &mut B| {
            let mut names = context();
            PathPart::read(tree, parts[number], &mut names, bodies)
        };
        bodies.in_parts(parts.len(), read, |part| {
            loaded.add(part?, log);
            Ok(())
        })?;
        Ok(loaded)
    }

    /// Adds the next part of the path.
    fn add(&mut self, part: PathPart, log: &mut Log) {
        self.steps.extend(part.steps);
        self.stored_thoughts.extend(part.stored_thoughts);
        self.unusable.extend(part.unusable);
        for (model, is_salvaged) in part.answerers {
            self.names.answered_by(&model, is_salvaged);
        }
        self.recorded.extend(part.recorded);
        log.append(part.log);
    }
}

/// What was read of some entries in a row. It does not depend on what precedes them.
#[derive(Default)]
struct PathPart {
    steps: Vec<Step>,
    stored_thoughts: Vec<Box<str>>,
    unusable: Vec<EntryNo>,
    /// The models that they name as those of answers, and whether on a salvaged line; those that
    /// are the same on lines in a row once.
    answerers: Vec<(Arc<str>, bool)>,
    /// The tokens of the answers that say them.
    recorded: Vec<RecordedTokens>,
    log: Log,
}

impl PathPart {
    fn read<B: BodySource>(
        tree: &Tree<'_>,
        entries: &[PathEntry],
        names: &mut StepContext<'_>,
        bodies: &mut B,
    ) -> Result<Self, B::Error> {
        let mut part = Self::default();
        part.steps.reserve(entries.len());
        for entry in entries {
            let entry_ref = tree.index().entry(entry.entry_no());
            if let Some(record) = &mut names.record
                && may_be_sent(&entry_ref)
            {
                record.read_before(&entry_ref, bodies)?;
            }
            let (index, policy, log) = (tree.index(), tree.policy(), &mut part.log);
            match read_entry(&entry_ref, index, policy, names, bodies, log)? {
                Ok(None) => {}
                Ok(Some((step, stored))) => {
                    part.steps.push(step);
                    part.stored_thoughts.extend(stored);
                }
                Err(step::Unusable) => part.unusable.push(entry_ref.number()),
            }
            let answerer = names.answerer.take();
            let answerer = answerer.map(|model| (model, entry_ref.is_salvaged()));
            if answerer.as_ref() != part.answerers.last() {
                part.answerers.extend(answerer);
            }
        }
        part.recorded = names.recorded.found().to_vec();
        Ok(part)
    }
}

/// A step, and the signatures of thinking that another line of its entry has with a text.
type ReadStep = (Step, Vec<Box<str>>);

/// Reads an entry of a path; `None` for one that is not sent.
///
/// # Errors
/// Those of `bodies`; inside of the result, that the body cannot be used.
fn read_entry<B: BodySource>(
    entry_ref: &EntryRef<'_>,
    index: &Index,
    policy: Policy,
    names: &mut StepContext<'_>,
    bodies: &mut B,
    log: &mut Log,
) -> Result<Result<Option<ReadStep>, step::Unusable>, B::Error> {
    let number = entry_ref.number();
    if !may_be_sent(entry_ref) {
        return Ok(Ok(Some((Step::silent(entry_ref), Vec::new()))));
    }
    if entry_ref.flags().contains(Flags::TOO_MANY) {
        log.omit(origin(number), OmissionReason::TooMany);
        return Ok(Ok(None));
    }
    let step = match Step::read(bodies.body(entry_ref)?, entry_ref, names, log) {
        Ok(Reading::Step(step)) => step,
        Ok(Reading::Virtual) => {
            log.omit(origin(number), OmissionReason::Virtual);
            return Ok(Ok(None));
        }
        Ok(Reading::Silent(step, reason)) => {
            log.omit(origin(number), reason);
            return Ok(Ok(Some((step, Vec::new()))));
        }
        Err(unusable) => return Ok(Err(unusable)),
    };
    let stored = match policy == Policy::Recover && index.has_repeated_uuids() {
        true => thinking::stored_with_text(&step.blocks, entry_ref, index, bodies)?,
        false => Vec::new(),
    };
    Ok(Ok(Some((step, stored))))
}

/// Returns the origin of the blocks of an entry: `transcript_messages` knows only plain numbers.
fn origin(entry_no: EntryNo) -> Option<usize> {
    Some(entry_no.get())
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
fn bubble_up(steps: &mut [Step]) {
    let stops = |step: &Step| match step.kind {
        StepKind::Reminder | StepKind::LocalCommand | StepKind::Silent => false,
        StepKind::User => step.has_results(),
        StepKind::Assistant | StepKind::ApiError => true,
    };
    for turn in steps.split_mut(stops) {
        turn.sort_by_key(|step| step.kind != StepKind::Reminder);
    }
}

/// Returns whether a text is blank, or the client's placeholder for an empty message (MSG-8).
fn is_blank_text(text: &str) -> bool {
    js_trim(text).is_empty() || text == transcript_format::texts::NO_CONTENT
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
    /// The provider whose rules the messages keep; the Messages API under [`Policy::Vendor`].
    pub provider: Provider,
    /// The synthetic blocks, in the order of the messages within each pass. Here and below, an
    /// origin is the plain number of an entry, for [`EntryNo::new`].
    pub synthetic: Vec<Synthetic>,
    /// The parts of the path that could have been sent and were not.
    pub omissions: Vec<Omission>,
    /// What the API counted for the answers that say it.
    recorded: Vec<RecordedTokens>,
    /// How tokens follow from estimates, if the request was made to fit by it.
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
