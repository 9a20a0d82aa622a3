//! Unfinished turns: what the client drops from the entries of a path, and what it adds, before
//! they become messages.

use std::collections::HashSet;

use serde_json::json;

use super::request::{Kind, MessageId, Step};

/// Result of a call that was running when the session ended.
const INTERRUPTED: &str = "[Tool call interrupted: the session ended before this call's result was \
                           recorded, so its outcome is unknown. Check whether it took effect \
                           before relying on it or running it again.]";

/// The synthetic answer of a turn that was never answered.
const NO_RESPONSE: &str = "No response requested.";

/// Drops the calls without a result. Returns the ids of the calls that get a synthetic result instead:
/// those of the last message, when only results and reminders follow it.
fn open_calls(steps: &mut Vec<Step>) -> Vec<String> {
    let answered: HashSet<String> = steps
        .iter()
        .flat_map(|step| step.ids("tool_result", "tool_use_id"))
        .collect();
    let last_message = lines_of_last_message(steps);

    let mut open = Vec::new();
    let mut index = 0;
    steps.retain(|step| {
        let is_last = last_message.contains(&index);
        index += 1;
        if step.kind != Kind::Assistant {
            return true;
        }
        let calls = step.ids("tool_use", "id");
        let unanswered: Vec<String> = calls
            .iter()
            .filter(|id| !answered.contains(*id))
            .cloned()
            .collect();
        if is_last {
            open.extend(unanswered);
            return true;
        }
        // Elsewhere a line is dropped with its text if none of its calls has a result. A line with
        // an answered call stays (TURN-2).
        calls.is_empty() || unanswered.len() < calls.len()
    });
    open
}

/// Returns the lines of the last message, or none when something else follows it.
fn lines_of_last_message(steps: &[Step]) -> Vec<usize> {
    for (index, step) in steps.iter().enumerate().rev() {
        match step.kind {
            Kind::Assistant => {
                let is_line = |&at: &usize| {
                    at == index
                        || (steps[at].kind == Kind::Assistant
                            && steps[at].id.is_same_given(&step.id))
                };
                return (0..steps.len()).filter(is_line).collect();
            }
            Kind::Reminder | Kind::LocalCommand => {}
            // A result belongs to the turn; any other user line, and an API error, ends it
            // (TURN-1).
            Kind::User if !step.ids("tool_result", "tool_use_id").is_empty() => {}
            Kind::User | Kind::ApiError => break,
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
            "type": "tool_result", "tool_use_id": id, "content": INTERRUPTED, "is_error": true,
        })]));
    }
    if let Some(at) = place_of_sentinel(steps) {
        steps.insert(
            at,
            Step::assistant(vec![json!({"type": "text", "text": NO_RESPONSE})]),
        );
    }
}

/// Returns the place of "No response requested." (TURN-5). The last step that is neither a reminder
/// nor a system line decides: if it is a user line, its answer is missing, and this text replaces it,
/// after the line and the reminders that follow it, before a system line. A command that the user ran
/// by hand does not need an answer (TURN-6).
fn place_of_sentinel(steps: &[Step]) -> Option<usize> {
    let mut place = steps.len();
    for (index, step) in steps.iter().enumerate().rev() {
        match step.kind {
            Kind::Reminder => {}
            Kind::LocalCommand => place = index,
            Kind::User if ends_with_hand_run_command(steps) => return None,
            Kind::User => return Some(place),
            Kind::Assistant | Kind::ApiError => return None,
        }
    }
    None
}

/// Returns whether the conversation ends with a command that the user ran by hand: the caveat line,
/// then the line that names the command, then its output as a user or a system line. The client may
/// have stopped before it wrote the output, or the command (TURN-6).
fn ends_with_hand_run_command(steps: &[Step]) -> bool {
    let mut lines: Vec<&Step> = steps
        .iter()
        .filter(|step| step.kind != Kind::Reminder)
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
