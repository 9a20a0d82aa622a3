//! Unfinished turns: drops entries of a path that were never finished, and adds what completes the
//! last turn, before entries become messages (TURN-1, TURN-2, TURN-5).

use hashbrown::HashSet;
use transcript_format::kind::EntryKind;
use transcript_format::object::Str;
use transcript_format::tags::Tag;
use transcript_format::texts;
use transcript_messages::text::js_trim;
use transcript_messages::{Block, BlockKind, Log, OmissionReason, Role, SyntheticKind};

use transcript_reader::Policy;

use super::step::{Step, StepKind};

/// A call of the last answer without a result.
pub(super) struct OpenCall {
    id: Box<str>,
    has_cut_input: bool,
}

impl OpenCall {
    /// Returns what its result is, and what that says. Other clients know of no cut input.
    fn result(&self, is_live: bool, policy: Policy) -> (SyntheticKind, &'static str) {
        match (self.has_cut_input && policy == Policy::Recover, is_live) {
            (true, _) => (SyntheticKind::CutCall, texts::CALL_CUT),
            (false, true) => (SyntheticKind::PendingResult, texts::CALL_PENDING),
            (false, false) => (SyntheticKind::InterruptedResult, texts::CALL_INTERRUPTED),
        }
    }
}

/// Drops unfinished steps. Returns the calls to complete.
pub(super) fn drop_unfinished(
    steps: &mut Vec<Step>,
    policy: Policy,
    log: &mut Log,
) -> Vec<OpenCall> {
    let open = drop_open_calls(steps, policy, log);
    if policy == Policy::Recover {
        drop_empty(steps, log);
    }
    drop_lone_thoughts(steps, log);
    drop_blank_lines(steps, log);
    open
}

/// Adds results for the calls `open`: they were interrupted, or in a session that is open
/// (`is_live`), they are running.
pub(super) fn complete_calls(
    steps: &mut Vec<Step>,
    open: &[OpenCall],
    is_live: bool,
    policy: Policy,
    log: &mut Log,
) {
    // The results of interrupted calls come after the real ones (TURN-1). All are logged after the
    // same entry, as the steps that are added here have none.
    let after = steps.iter().rev().find_map(Step::origin);
    for call in open {
        let (kind, text) = call.result(is_live, policy);
        let block = Block::failed_result(&call.id, text);
        log.add_synthetic(kind, Role::User, &block, after);
        steps.push(Step::user(block));
    }
}

/// Makes the conversation end with an answer: adds a sentence to a turn without one (TURN-5).
pub(super) fn complete_turn(steps: &mut Vec<Step>, log: &mut Log) {
    if let Some(at) = place_of_sentinel(steps) {
        let block = Block::text(texts::NO_RESPONSE);
        let after = steps[..at].iter().rev().find_map(Step::origin);
        log.add_synthetic(SyntheticKind::NoResponse, Role::Assistant, &block, after);
        steps.insert(at, Step::assistant(block));
    }
}

/// Drops the entries whose calls never got a result. The calls of the last message are kept and
/// returned. [`Policy::Recover`] keeps all entries: their calls get results later, and the text
/// next to a call is not lost.
fn drop_open_calls(steps: &mut Vec<Step>, policy: Policy, log: &mut Log) -> Vec<OpenCall> {
    let answered: HashSet<&str> = steps.iter().flat_map(Step::results).collect();
    let last_message = LastMessage::of(steps);
    let open_turn = start_of_open_turn(steps, &answered);
    let mut open = Vec::new();
    let mut keep = Vec::with_capacity(steps.len());
    for (at, step) in steps.iter().enumerate() {
        let is_line = step.kind == StepKind::Assistant;
        let unanswered = || step.calls().filter(|id| !answered.contains(id));
        if is_line && last_message.has(at, step) {
            open.extend(unanswered().map(|id| OpenCall {
                id: id.into(),
                has_cut_input: step.has_cut_call(),
            }));
            keep.push(true);
        } else {
            // Elsewhere an entry is dropped, with its text, when it has calls and none of them has
            // a result. An entry with an answered call stays (TURN-2), and so does one of an
            // interrupted turn (TURN-8).
            let is_interrupted = open_turn.is_some_and(|start| at > start);
            let is_kept = is_interrupted || !is_open(step, &answered);
            keep.push(policy == Policy::Recover || !is_line || is_kept);
        }
    }
    drop((answered, last_message));
    retain(steps, keep, OmissionReason::UnansweredCall, log);
    open
}

/// Returns whether an answer has calls, none of which has a result.
fn is_open(step: &Step, answered: &HashSet<&str>) -> bool {
    let mut calls = step.calls().peekable();
    step.kind == StepKind::Assistant
        && calls.peek().is_some()
        && calls.all(|id| !answered.contains(id))
}

/// Returns where the last turn starts, its last user entry without a result, if that turn was
/// interrupted: it has a result or an attachment, and no text or error of the model ends it (TURN-8).
fn start_of_open_turn(steps: &[Step], answered: &HashSet<&str>) -> Option<usize> {
    let starts_turn = |step: &Step| step.entry_kind == Some(EntryKind::User) && !step.has_results();
    let start = steps.iter().rposition(starts_turn)?;
    let turn = &steps[start + 1..];
    let is_interrupted = turn
        .iter()
        .any(|step| step.has_results() || step.is_attachment());
    let says_something = |step: &&Step| match step.kind {
        StepKind::Assistant => !is_open(step, answered) && !is_thinking(step) && !is_blank(step),
        StepKind::ApiError | StepKind::User => true,
        StepKind::LocalCommand | StepKind::Reminder | StepKind::Silent => false,
    };
    let last = turn.iter().rev().find(says_something);
    let ends_with_result = last.is_none_or(|step| step.kind == StepKind::User);
    (is_interrupted && ends_with_result).then_some(start)
}

/// Drops the steps for which `keep` has false.
fn retain(steps: &mut Vec<Step>, keep: Vec<bool>, reason: OmissionReason, log: &mut Log) {
    let mut keep = keep.into_iter();
    steps.retain(|step| {
        let keep = keep.next() == Some(true);
        if !keep {
            log.omit(step.origin(), reason);
        }
        keep
    });
}

/// Drops answers without any block. The client sends a placeholder for each (MSG-8).
fn drop_empty(steps: &mut Vec<Step>, log: &mut Log) {
    steps.retain(|step| {
        let is_empty = step.kind == StepKind::Assistant && step.blocks.is_empty();
        if is_empty {
            log.omit(step.origin(), OmissionReason::Empty);
        }
        !is_empty
    });
}

/// The message in which the conversation stopped, if it did (TURN-1).
struct LastMessage<'s> {
    last_line: Option<(usize, &'s Step)>,
    /// The start of its turn: after the last user entry without a result.
    turn: usize,
}

impl<'s> LastMessage<'s> {
    fn of(steps: &'s [Step]) -> Self {
        for (at, step) in steps.iter().enumerate().rev() {
            match step.kind {
                // Entries that are not sent are not the last message.
                StepKind::Assistant if is_thinking(step) || is_blank(step) => {}
                StepKind::Assistant => {
                    let starts_turn =
                        |step: &Step| step.kind == StepKind::User && !step.has_results();
                    let turn = steps[..at].iter().rposition(starts_turn);
                    return Self {
                        last_line: Some((at, step)),
                        turn: turn.map_or(0, |prompt| prompt + 1),
                    };
                }
                // Several messages for one attachment end the turn.
                StepKind::Reminder if has_several_parts(step) => break,
                StepKind::Reminder | StepKind::LocalCommand => {}
                StepKind::Silent if step.is_system() || step.is_attachment() => {}
                // A result belongs to the turn; any other user entry and an API error ends it.
                StepKind::User if step.has_results() => {}
                StepKind::User | StepKind::ApiError | StepKind::Silent => break,
            }
        }
        Self {
            last_line: None,
            turn: 0,
        }
    }

    fn has(&self, at: usize, line: &Step) -> bool {
        // Lines without an id are one message only within a turn (MSG-2).
        let is_near = at >= self.turn || line.message_id().is_some();
        self.last_line
            .is_some_and(|(last, step)| last == at || is_near && step.is_of_message(line))
    }
}

/// Drops entries of answers that hold only blank text (MSG-6, MSG-11).
fn drop_blank_lines(steps: &mut Vec<Step>, log: &mut Log) {
    steps.retain(|step| {
        let is_blank = is_blank(step);
        if is_blank {
            log.omit(step.origin(), OmissionReason::Silent);
        }
        !is_blank
    });
}

/// Drops entries with only thinking, when their message has no other entry (MSG-9).
fn drop_lone_thoughts(steps: &mut Vec<Step>, log: &mut Log) {
    let with_content: HashSet<Str<'_>> = steps
        .iter()
        .filter(|step| step.kind == StepKind::Assistant && !is_thinking(step))
        .filter_map(Step::message_id)
        .collect();
    let is_kept = |step: &Step| {
        let has_content = |id: Str<'_>| with_content.contains(&id);
        !is_thinking(step) || step.message_id().is_some_and(has_content)
    };
    let keep: Vec<bool> = steps.iter().map(is_kept).collect();
    drop(with_content);
    retain(steps, keep, OmissionReason::Silent, log);
}

/// Returns whether an answer may not be sent: an empty one, or one of only thinking or blank text.
pub(super) fn may_be_silent(step: &Step) -> bool {
    step.blocks.is_empty() || is_thinking(step) || is_blank(step)
}

fn is_thinking(step: &Step) -> bool {
    step.kind == StepKind::Assistant
        && !step.blocks.is_empty()
        && step.blocks.iter().all(Block::is_thinking)
}

fn is_blank(step: &Step) -> bool {
    let is_blank = |block: &Block| {
        block.kind() == BlockKind::Text
            && !block.is_sound()
            && block.text_field().is_some_and(|text| is_blank_text(&text))
    };
    step.kind == StepKind::Assistant && !step.blocks.is_empty() && step.blocks.iter().all(is_blank)
}

fn has_several_parts(step: &Step) -> bool {
    let reminder = step.reminder.as_ref();
    reminder.is_some_and(|reminder| reminder.parts.len() > 1)
}

/// Returns the place for "No response requested.", which replaces the missing answer to the last user
/// entry, to an open call, or to an error with attachments after it: before the output of commands
/// that follows (TURN-5). A command that the user ran by hand needs no answer (TURN-6), nor does a
/// summary with attachments after it (TURN-9).
fn place_of_sentinel(steps: &[Step]) -> Option<usize> {
    let answered: HashSet<&str> = steps.iter().flat_map(Step::results).collect();
    let mut place = steps.len();
    let mut has_attachments = false;
    for (at, step) in steps.iter().enumerate().rev() {
        let needs_answer = match step.kind {
            StepKind::Reminder | StepKind::Silent => {
                has_attachments |= step.is_attachment();
                continue;
            }
            StepKind::LocalCommand => {
                place = at;
                continue;
            }
            StepKind::User if ends_a_local_command(steps) => false,
            StepKind::User => !(has_attachments && step.is_summary),
            StepKind::Assistant | StepKind::ApiError if step.is_error => has_attachments,
            StepKind::Assistant => is_open(step, &answered),
            StepKind::ApiError => false,
        };
        return needs_answer.then_some(place);
    }
    // Attachments alone are a turn without an answer, too.
    let last = steps.iter().rposition(Step::is_attachment);
    last.map(|last| last + 1)
}

/// Returns whether the conversation ends with a command that the user ran by hand: the caveat
/// entry, then the command and its output, as user or system entries, as far as they were written
/// (TURN-6).
fn ends_a_local_command(steps: &[Step]) -> bool {
    let mut rest = steps
        .iter()
        .rev()
        .filter(|step| !matches!(step.kind, StepKind::Reminder | StepKind::Silent))
        .peekable();
    let mut next_starts_with = |tag: Tag| {
        let starts = |step: &&Step| {
            let text = step.blocks.first().and_then(Block::text_field);
            text.is_some_and(|text| tag.opens(&text))
        };
        rest.next_if(starts).is_some()
    };
    next_starts_with(Tag::LocalCommandStdout);
    next_starts_with(Tag::CommandName);
    next_starts_with(Tag::LocalCommandCaveat)
}

/// Returns whether a text is blank, or the client's placeholder for an empty message (MSG-8).
fn is_blank_text(text: &str) -> bool {
    js_trim(text).is_empty() || text == texts::NO_CONTENT
}
