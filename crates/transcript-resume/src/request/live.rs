//! The request of a conversation that grows.
//!
//! Most passes look at a message and the adjacent ones, so a conversation can be divided where nothing
//! connects its two sides: the messages of the first side are made once and kept, and only what
//! follows them goes through the passes again. The two sides of such a *cut*
//!
//! - share no message id and no call id, and each call of the first side has its result there,
//! - meet where no messages are joined: an answer follows a user message, or a prompt (with the
//!   reminders before it) follows an answer,
//! - contain no thinking of one model partly with its text and partly without: what happens to
//!   that depends on all of it.
//!
//! The messages are also made for one model. When the path of the first side changes, when the
//! model changes, or when a later entry breaks one of these conditions, the path is read again.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use transcript_messages::{
    Block, BlockKind, FRESH_ID_PREFIX, Log, Message, Part, Role, within_request_limits,
};
use transcript_reader::{
    BodySource, ConversationPath, EntryNo, Index, LiveConversation, PathEntry, Policy,
};

use super::load::read_entry;
use super::recorded_usage::{RecordedTokens, since_boundary};
use super::repair::may_be_silent;
use super::step::{Rules, Step, StepContext, StepKind};
use super::thinking::Thought;
use super::{Request, RequestOptions};

/// The request of a [`LiveConversation`], kept up to date: each body of the path is read once.
///
/// The messages, the model, the synthetic blocks and the omissions are those of
/// [`RequestOptions::request`] for a load of the lines so far; only the order of omissions and
/// synthetic blocks may differ. The path lists no decisions.
///
/// Takes the memory of the messages, and 16 bytes for each message id and call. A request takes
/// time in proportion to the entries since the last one or two exchanges with the model, and to the
/// number of messages, which are not copied; with [`RequestOptions::fit`], to their length.
#[derive(Debug)]
pub struct LiveRequest {
    options: RequestOptions,
    settled: SettledPart,
    /// The entries of the path after the settled ones.
    rest: Vec<ReadEntry>,
    /// The models of all entries that were read.
    models: StepContext<'static>,
    /// The rules by which they were read.
    rules: Rules,
    /// Whether the conversation may be divided; false when its parts turned out to be connected.
    may_settle: bool,
    hasher: RandomState,
    full_reads: u64,
}

/// The part of the conversation whose messages are made.
#[derive(Debug, Default)]
struct SettledPart {
    entries: Vec<EntryNo>,
    messages: Vec<Message>,
    log: Log,
    /// Hashes of the ids and signatures that connect entries.
    ids: HashSet<u64>,
    /// It was divided at an answer, not only at prompts.
    is_cut_at_answer: bool,
    thoughts: Thoughts,
    models: StepContext<'static>,
    /// The model that the messages are for.
    model: Option<Arc<str>>,
}

/// For each model: whether it has signed thinking without a text, and with one.
#[derive(Clone, Debug, Default)]
struct Thoughts(HashMap<Option<Arc<str>>, [bool; 2]>);

#[derive(Clone, Debug)]
struct ReadEntry {
    number: EntryNo,
    step: Option<Step>,
    stored: Vec<Box<str>>,
    log: Log,
    /// The model that it names as that of the answer.
    answerer: Option<Arc<str>>,
    /// The token counts that it has.
    recorded: Option<RecordedTokens>,
    is_salvaged: bool,
}

/// The conversation cannot be divided where it was.
enum NotDivisible {
    /// The messages are for another model.
    ByModel,
    ByEntries,
}

impl LiveRequest {
    /// Returns the request of an empty conversation. [`RequestOptions::leaf`] and
    /// [`RequestOptions::at`] have no effect.
    #[must_use]
    pub fn new(options: RequestOptions) -> Self {
        Self {
            options,
            settled: SettledPart::default(),
            rest: Vec::new(),
            models: StepContext::default(),
            rules: Rules::default(),
            may_settle: true,
            hasher: RandomState::new(),
            full_reads: 0,
        }
    }

    /// Returns the request that continues the conversation. `None` when the body of an entry cannot
    /// be used, because the file changed or is damaged there: then only
    /// [`RequestOptions::request`] knows the path.
    ///
    /// # Errors
    /// The errors of `bodies`.
    pub fn request<B: BodySource>(
        &mut self,
        live: &mut LiveConversation,
        bodies: &mut B,
    ) -> Result<Option<Request>, B::Error> {
        let leaf = live.leaf();
        let mut path = ConversationPath::default();
        path.entries = live.path().to_vec();
        path.leaf = leaf;
        let index = live.index();
        if path.entries.is_empty() {
            // An empty session may be continued or not; that is not a question of its path.
            return Ok(None);
        }
        loop {
            if !self.read(&path.entries, index, bodies)? {
                self.reset();
                return Ok(None);
            }
            match self.build() {
                Ok((mut messages, mut log)) => {
                    within_request_limits(&mut messages, self.options.provider, &mut log);
                    let mut request = Request {
                        messages,
                        model: self.model().as_deref().map(Into::into),
                        synthetic: log.synthetic,
                        omissions: log.omissions,
                        recorded: since_boundary(self.models.recorded.found(), &path, index),
                        path,
                        provider: self.options.provider,
                        scale: None,
                        has_margin: false,
                    };
                    if let Some(limit) = self.options.fit {
                        request.fit(limit, index);
                    }
                    return Ok(Some(request));
                }
                Err(NotDivisible::ByModel) => self.reset(),
                Err(NotDivisible::ByEntries) => {
                    self.reset();
                    self.may_settle = false;
                }
            }
        }
    }

    /// Returns how often the whole path was read.
    #[must_use]
    pub fn full_reads(&self) -> u64 {
        self.full_reads
    }

    fn reset(&mut self) {
        self.settled = SettledPart::default();
        self.rest.clear();
        self.models = StepContext::default();
        self.may_settle = true;
    }

    fn model(&self) -> Option<Arc<str>> {
        let asked = self.options.model.as_deref().map(Arc::from);
        asked.or_else(|| self.models.last_answerer.clone())
    }

    /// Reads the entries of the path that are new. Returns false when one cannot be used.
    fn read<B: BodySource>(
        &mut self,
        path: &[PathEntry],
        index: &Index,
        bodies: &mut B,
    ) -> Result<bool, B::Error> {
        let rules = Rules::of_index(index);
        let is_settled = self.rules == rules
            && path.len() >= self.settled.entries.len()
            && path
                .iter()
                .zip(&self.settled.entries)
                .all(|(entry, settled)| entry.entry_no() == *settled);
        if !is_settled {
            self.reset();
            self.rules = rules;
        }
        let after = &path[self.settled.entries.len()..];
        let is_continued = after.len() >= self.rest.len()
            && after
                .iter()
                .zip(&self.rest)
                .all(|(entry, read)| entry.entry_no() == read.number);
        if !is_continued {
            self.rest.clear();
            self.models = self.settled.models.models();
        }
        if self.settled.entries.is_empty() && self.rest.is_empty() {
            self.full_reads += 1;
        }
        for entry in &after[self.rest.len()..] {
            let entry_ref = index.entry(entry.entry_no());
            let mut log = Log::default();
            let names = &mut self.models;
            names.rules = rules;
            names.now = self.options.now;
            names.answerer = None;
            let read = read_entry(&entry_ref, index, Policy::Recover, names, bodies, &mut log)?;
            let Ok(read) = read else {
                return Ok(false);
            };
            let (step, stored) =
                read.map_or((None, Vec::new()), |(step, stored)| (Some(step), stored));
            self.rest.push(ReadEntry {
                number: entry.entry_no(),
                step,
                stored,
                log,
                answerer: self.models.answerer.take(),
                recorded: self.models.recorded_by(entry.entry_no()),
                is_salvaged: entry_ref.is_salvaged(),
            });
        }
        Ok(true)
    }

    /// Settles the entries before the last cut, and makes the messages of the others.
    fn build(&mut self) -> Result<(Vec<Message>, Log), NotDivisible> {
        let model = self.model();
        if !self.settled.entries.is_empty() && self.settled.model != model {
            return Err(NotDivisible::ByModel);
        }
        let mut thoughts = self.settled.thoughts.clone();
        for step in self.rest.iter().filter_map(|entry| entry.step.as_ref()) {
            let is_connected = !self.settled.entries.is_empty()
                && (step.heals_distinct_carrier
                    || (is_unnamed(step) && self.settled.is_cut_at_answer)
                    || self.ids(step).any(|id| self.settled.ids.contains(&id)));
            thoughts.add(step);
            if is_connected {
                return Err(NotDivisible::ByEntries);
            }
        }
        let is_divisible = self.may_settle
            && !thoughts.are_mixed()
            && self.rest.iter().all(|entry| {
                let heals = |step: &Step| step.heals_distinct_carrier;
                entry.stored.is_empty() && !entry.step.as_ref().is_some_and(heals)
            });
        if !is_divisible && !self.settled.entries.is_empty() {
            return Err(NotDivisible::ByEntries);
        }
        if is_divisible && let Some(cut) = self.last_cut() {
            self.settle(cut, model.clone())?;
        }
        let (rest, rest_log) = self.make(self.rest.clone(), true, model.as_deref());
        if !self.settled.entries.is_empty() {
            self.settled.check_seam(&rest)?;
        }
        let mut messages = Vec::with_capacity(self.settled.messages.len() + rest.len());
        messages.extend_from_slice(&self.settled.messages);
        messages.extend(rest);
        let mut log = self.settled.log.clone();
        log.append(rest_log);
        Ok((messages, log))
    }

    /// Makes the messages of these entries, which follow the settled ones.
    fn make(&self, read: Vec<ReadEntry>, is_end: bool, model: Option<&str>) -> (Vec<Message>, Log) {
        let (mut steps, mut stored, mut log) = (Vec::new(), HashSet::new(), Log::default());
        for entry in read {
            steps.extend(entry.step);
            stored.extend(entry.stored);
            log.append(entry.log);
        }
        let part = Part {
            is_start: self.settled.entries.is_empty(),
            is_end,
        };
        let options = &self.options;
        let messages = options.messages(steps, stored, model, Policy::Recover, part, &mut log);
        (messages, log)
    }

    /// Settles the entries before `cut`.
    fn settle(&mut self, cut: usize, model: Option<Arc<str>>) -> Result<(), NotDivisible> {
        let next = self.rest[cut].step.as_ref();
        let is_at_answer = next.is_some_and(|step| step.kind == StepKind::Assistant);
        let read: Vec<ReadEntry> = self.rest.drain(..cut).collect();
        let numbers: Vec<EntryNo> = read.iter().map(|entry| entry.number).collect();
        for entry in &read {
            if let Some(step) = &entry.step {
                let ids: Vec<u64> = self.ids(step).collect();
                self.settled.ids.extend(ids);
                self.settled.thoughts.add(step);
            }
            if let Some(model) = &entry.answerer {
                self.settled.models.answered_by(model, entry.is_salvaged);
            }
            self.settled.models.recorded.extend(entry.recorded);
        }
        let (messages, log) = self.make(read, false, model.as_deref());
        if self.settled.entries.is_empty() {
            // If nothing is sent, the start of the conversation is still open.
            let is_synthetic = |block: &Block| block.origin().is_none();
            let mut blocks = messages.iter().flat_map(Message::blocks);
            if has_fresh_id(&messages) || blocks.all(is_synthetic) {
                return Err(NotDivisible::ByEntries);
            }
        } else {
            self.settled.check_seam(&messages)?;
        }
        self.settled.entries.extend(numbers);
        self.settled.messages.extend(messages);
        self.settled.log.append(log);
        self.settled.model = model;
        self.settled.is_cut_at_answer |= is_at_answer;
        Ok(())
    }

    /// Returns hashes of the ids and signatures that connect a step with others.
    fn ids<'s>(&'s self, step: &'s Step) -> impl Iterator<Item = u64> + 's {
        let of_message = step.message_id().map(|id| self.hasher.hash_one((0, &*id)));
        let calls = step.blocks.iter().filter_map(Block::call_id);
        let thoughts = step.blocks.iter().filter_map(Thought::read);
        let signatures = thoughts.map(|thought| self.hasher.hash_one((2, &*thought.signature)));
        let calls = calls.map(|id| self.hasher.hash_one((1, id)));
        of_message.into_iter().chain(calls).chain(signatures)
    }

    /// Returns the last position but one where the rest can be divided: lines that come late may still join
    /// the entries at the end.
    fn last_cut(&self) -> Option<usize> {
        let steps = self.rest.iter().enumerate();
        let steps: Vec<(usize, &Step)> = steps
            .filter_map(|(at, entry)| Some((at, entry.step.as_ref()?)))
            .filter(|(_, step)| step.kind != StepKind::Silent)
            .collect();
        let mut last_use: HashMap<u64, usize> = HashMap::new();
        for (at, step) in &steps {
            last_use.extend(self.ids(step).map(|id| (id, *at)));
        }
        let is_any_unnamed = steps.iter().any(|(_, step)| is_unnamed(step));
        let mut open: HashSet<&str> = HashSet::new();
        let mut reached = 0;
        let mut cuts = [None; 2];
        for (place, (at, step)) in steps.iter().enumerate() {
            let before = place.checked_sub(1).map(|place| steps[place].1);
            if open.is_empty() && reached < *at {
                let is_cut = match step.kind {
                    // An answer that is not sent does not end the message before it.
                    StepKind::Assistant => {
                        !is_any_unnamed && !may_be_silent(step) && follows_user(&steps[..place])
                    }
                    _ => {
                        before.is_some_and(|before| before.kind == StepKind::Assistant)
                            && starts_turn(&steps[place..])
                    }
                };
                if is_cut {
                    cuts = [Some(*at), cuts[0]];
                }
            }
            for block in &step.blocks {
                match (block.kind(), block.call_id()) {
                    (BlockKind::ToolUse, Some(id)) => _ = open.insert(id),
                    (BlockKind::ToolResult, Some(id)) => _ = open.remove(id),
                    _ => {}
                }
            }
            let ids = self.ids(step).filter_map(|id| last_use.get(&id));
            reached = ids.copied().chain([reached]).max().unwrap_or(reached);
        }
        cuts[1]
    }
}

/// Returns whether the step is an answer without an id. Those of one turn are joined (MSG-2).
fn is_unnamed(step: &Step) -> bool {
    step.kind == StepKind::Assistant && step.message_id().is_none()
}

/// Returns whether the steps end with a user entry and what belongs to it.
fn follows_user(steps: &[(usize, &Step)]) -> bool {
    let is_beside = |kind| matches!(kind, StepKind::Reminder | StepKind::LocalCommand);
    let mut back = steps.iter().rev().map(|(_, step)| step.kind);
    back.find(|kind| !is_beside(*kind)) == Some(StepKind::User)
}

/// Returns whether the steps start with a prompt, after reminders.
fn starts_turn(steps: &[(usize, &Step)]) -> bool {
    let is_beside = |kind| matches!(kind, StepKind::Reminder | StepKind::LocalCommand);
    let first = steps.iter().find(|(_, step)| !is_beside(step.kind));
    // A blank prompt is not sent.
    let says_something = |block: &Block| block.kind() != BlockKind::Text || block.is_sound();
    first.is_some_and(|(_, step)| {
        step.kind == StepKind::User && !step.has_results() && step.blocks.iter().any(says_something)
    })
}

/// Returns whether a call got another id. These are numbered over the whole conversation.
fn has_fresh_id(messages: &[Message]) -> bool {
    let is_fresh = |block: &Block| {
        block
            .call_id()
            .is_some_and(|id| id.starts_with(FRESH_ID_PREFIX))
    };
    messages.iter().flat_map(Message::blocks).any(is_fresh)
}

impl SettledPart {
    /// Checks that no pass would join the first of these messages to the last one.
    fn check_seam(&self, messages: &[Message]) -> Result<(), NotDivisible> {
        let (last, first) = (self.messages.last(), messages.first());
        let (Some(last), Some(first)) = (last, first) else {
            return Err(NotDivisible::ByEntries);
        };
        let is_answer = |message: &Message| message.role() == Role::Assistant;
        let is_apart = is_answer(last) != is_answer(first) && first.role() != Role::System;
        if is_apart && !has_fresh_id(messages) {
            Ok(())
        } else {
            Err(NotDivisible::ByEntries)
        }
    }
}

impl Thoughts {
    fn add(&mut self, step: &Step) {
        for thought in step.blocks.iter().filter_map(Thought::read) {
            self.0.entry(step.model().cloned()).or_default()[usize::from(thought.has_text)] = true;
        }
    }

    fn are_mixed(&self) -> bool {
        self.0.values().any(|found| *found == [true, true])
    }
}
