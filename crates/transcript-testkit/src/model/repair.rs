//! Unfinished turns: the entries that the client drops from a path, and those that it adds, before
//! they become messages.

use std::collections::HashSet;

use serde_json::json;
use transcript_format::texts::{CALL_INTERRUPTED, NO_RESPONSE};

use super::step::{Kind, MessageId, Step};

/// Drops the calls without a result. Returns the ids of the calls that get a synthetic result instead:
/// those of the last message, when only results and reminders follow it.
fn open_calls(steps: &mut Vec<Step>) -> Vec<String> {
    let answered = answered(steps);
    let last_message = lines_of_last_message(steps);
    let open_turn = start_of_open_turn(steps, &answered);

    let mut open = Vec::new();
    let mut index = 0;
    steps.retain(|step| {
        let at = index;
        index += 1;
        if step.kind != Kind::Assistant {
            return true;
        }
        if last_message.contains(&at) {
            let calls = step.ids("tool_use", "id").into_iter();
            open.extend(calls.filter(|id| !answered.contains(id)));
            return true;
        }
        // Elsewhere a line is dropped with its text if none of its calls has a result. A line with
        // an answered call stays (TURN-2), and so do the calls of an interrupted turn (TURN-8).
        !is_open(step, &answered) || open_turn.is_some_and(|start| at > start)
    });
    open
}

/// Returns the ids of the calls that have a result.
fn answered(steps: &[Step]) -> HashSet<String> {
    let results = steps.iter();
    results
        .flat_map(|step| step.ids("tool_result", "tool_use_id"))
        .collect()
}

/// Returns whether an assistant line has calls, none of which has a result.
fn is_open(step: &Step, answered: &HashSet<String>) -> bool {
    let calls = step.ids("tool_use", "id");
    step.kind == Kind::Assistant
        && !calls.is_empty()
        && calls.iter().all(|id| !answered.contains(id))
}

/// Returns where the last turn starts, its last user line without a result, if that turn was
/// interrupted: it has a result or an attachment, and no text or error of the model ends it (TURN-8).
fn start_of_open_turn(steps: &[Step], answered: &HashSet<String>) -> Option<usize> {
    let is_user = |step: &Step| step.entry.get("type") == Some(&"user".into());
    let start = steps
        .iter()
        .rposition(|step| is_user(step) && !step.is_result())?;
    let turn = &steps[start + 1..];
    let is_interrupted = turn
        .iter()
        .any(|step| step.is_result() || step.is_attachment());
    let says_something = |step: &&Step| match step.kind {
        Kind::Assistant => !is_open(step, answered) && !step.is_thinking() && !step.is_blank(),
        Kind::ApiError | Kind::User => true,
        Kind::LocalCommand | Kind::Reminder | Kind::Silent => false,
    };
    let last = turn.iter().rev().find(says_something);
    let ends_with_result = last.is_none_or(|step| step.kind == Kind::User);
    (is_interrupted && ends_with_result).then_some(start)
}

/// Returns the lines of the last message, or none when something else follows it.
fn lines_of_last_message(steps: &[Step]) -> Vec<usize> {
    for (index, step) in steps.iter().enumerate().rev() {
        match step.kind {
            // Lines that are not sent are not the last message.
            Kind::Assistant if step.is_thinking() || step.is_blank() => {}
            Kind::Assistant => {
                // Lines without an id are one message only within a turn (MSG-2).
                let prompt = steps[..index]
                    .iter()
                    .rposition(|step| step.kind == Kind::User && !step.is_result());
                let is_near = |at: usize| prompt.is_none_or(|prompt| at > prompt);
                let is_same = |at: usize| match step.id {
                    MessageId::Missing => is_near(at) && steps[at].id == MessageId::Missing,
                    _ => steps[at].id.is_same_given(&step.id),
                };
                let is_line =
                    |&at: &usize| at == index || (steps[at].kind == Kind::Assistant && is_same(at));
                return (0..steps.len()).filter(is_line).collect();
            }
            // Several messages for one attachment end the turn (TURN-1).
            Kind::Reminder if step.parts.len() > 1 => break,
            Kind::Reminder | Kind::LocalCommand => {}
            Kind::Silent if step.is_system() || step.is_attachment() => {}
            // A result belongs to the turn; any other user line, and an API error, ends it
            // (TURN-1).
            Kind::User if step.is_result() => {}
            Kind::User | Kind::ApiError | Kind::Silent => break,
        }
    }
    Vec::new()
}

/// Drops lines with only thoughts if their message has no other line (MSG-9).
fn drop_lone_thoughts(steps: &mut Vec<Step>) {
    let ids_with_more: Vec<MessageId> = steps
        .iter()
        .filter(|step| step.kind == Kind::Assistant && !step.is_thinking())
        .map(|step| step.id.clone())
        .collect();
    steps.retain(|step| {
        let has_more = |id: &MessageId| id.is_same_given(&step.id);
        !step.is_thinking() || ids_with_more.iter().any(has_more)
    });
}

/// Makes the steps of a resumed conversation end with an answer.
pub(super) fn repair(steps: &mut Vec<Step>) {
    let open = open_calls(steps);
    drop_lone_thoughts(steps);
    // A line of blank text is not sent, whatever else its message contains (MSG-11).
    steps.retain(|step| !step.is_blank());
    // The results of interrupted calls follow the real ones (TURN-1).
    for id in open {
        steps.push(Step::user(vec![json!({
            "type": "tool_result", "tool_use_id": id, "content": CALL_INTERRUPTED, "is_error": true,
        })]));
    }
    if let Some(at) = place_of_sentinel(steps, &answered(steps)) {
        steps.insert(
            at,
            Step::assistant(vec![json!({"type": "text", "text": NO_RESPONSE})]),
        );
    }
}

/// Returns the place of "No response requested." (TURN-5). The last step that is neither an attachment
/// nor a system line decides: if it is a user line, its answer is missing, and this text replaces it,
/// after the line and the reminders that follow it, before a system line. The same holds for an open
/// call, and for an error with attachments after it. A command that the user ran by hand does not need
/// an answer (TURN-6), nor does a summary with attachments after it (TURN-9).
fn place_of_sentinel(steps: &[Step], answered: &HashSet<String>) -> Option<usize> {
    let mut place = steps.len();
    let mut attached = false;
    for (index, step) in steps.iter().enumerate().rev() {
        let needs_answer = match step.kind {
            Kind::Reminder | Kind::Silent => {
                attached |= step.is_attachment();
                continue;
            }
            Kind::LocalCommand => {
                place = index;
                continue;
            }
            Kind::User if ends_with_hand_run_command(steps) => false,
            Kind::User => !(attached && step.is_summary()),
            Kind::Assistant | Kind::ApiError if step.is_error() => attached,
            Kind::Assistant => is_open(step, answered),
            Kind::ApiError => false,
        };
        return needs_answer.then_some(place);
    }
    // Attachments alone are a turn without an answer, too.
    let last = steps.iter().rposition(Step::is_attachment);
    last.map(|last| last + 1)
}

/// Returns whether the conversation ends with a command that the user ran by hand: the caveat line,
/// then the line that names the command, then its output as a user or a system line. The client may
/// have stopped before it wrote the output, or the command (TURN-6).
fn ends_with_hand_run_command(steps: &[Step]) -> bool {
    let mut lines: Vec<&Step> = steps
        .iter()
        .filter(|step| !matches!(step.kind, Kind::Reminder | Kind::Silent))
        .collect();
    let ends_with = |lines: &[&Step], start: &str| {
        let text = lines.last().and_then(|step| step.text());
        text.is_some_and(|text| text.starts_with(start))
    };
    for optional in ["<local-command-stdout>", "<command-name>"] {
        if ends_with(&lines, optional) {
            lines.pop();
        }
    }
    ends_with(&lines, "<local-command-caveat>")
}
