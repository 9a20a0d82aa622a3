//! Makes requests.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use transcript_messages::{
    Block, BlockStore, Log, Message, OmissionReason, Part, Provider, make_strict_part, pair,
    within_request_limits,
};
use transcript_reader::{BodySource, ConversationPath, EntryNo, Policy, Refusal, Tree};

use super::load::{InFile, Loaded};
use super::recorded_usage::{RecordedUsage, since_boundary};
use super::references::wants_system_role;
use super::step::{Rules, Step, StepContext, StepKind, origin};
use super::{Request, RequestOptions};
use super::{answers, media, merge, references, repair, thinking};
use crate::state::{PathState, StateReader, Usage};

impl RequestOptions {
    /// Returns the request for the conversation of `tree`.
    ///
    /// Each body of the path is requested once, and only the parts that are sent are kept. When
    /// bodies turn out to be unusable their entries count as missing and the path is computed
    /// again, until all bodies of a path are usable.
    ///
    /// # Errors
    /// The errors of `bodies`.
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
    /// The errors of `bodies`.
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
                recorded: since_boundary(loaded.recorded.found(), &path, tree.index()),
                path,
                provider: match policy {
                    Policy::Vendor => Provider::Messages,
                    _ => self.provider,
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
        let mut path = path.unwrap_or_else(|| {
            let mut path = ConversationPath::default();
            path.refusal = Some(Refusal::NoConversation);
            path
        });
        if tree.policy() == Policy::Vendor && self.leaf.is_none() && tree.has_only_sidechains() {
            path.refusal = path.refusal.or(Some(Refusal::OnlySidechains));
        }
        path
    }

    /// Turns the steps of a conversation into messages, or those of a part of it.
    pub(super) fn messages(
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
pub(super) fn messages(
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
        _ => make_strict_part(messages, part, provider, log),
    }
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
