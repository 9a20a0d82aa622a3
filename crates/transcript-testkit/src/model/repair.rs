//! Unfinished turns: what the client drops from the entries of a path, and what it adds, before
//! they become messages.

use std::collections::HashSet;

use serde_json::json;

use super::request::{Kind, MessageId, Step};

/// Result of a call that was running when the session ended.
const INTERRUPTED: &str = "[Tool call interrupted: the session ended before this call's result was \
                           recorded, so its outcome is unknown. Check whether it took effect \
                           before relying on it or running it again.]";

/// Answer that stands for a turn that was never answered.
const NO_RESPONSE: &str = "No response requested.";

/// Drops the calls that never got a result. Returns the ids of those that are to be completed
/// instead: the calls of the last message, when nothing but results and reminders follows it.
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
        // In the middle a line goes when it has calls and none of them has a result; its text
        // goes as well (42-26). A line with an answered call stays (42-27).
        calls.is_empty() || unanswered.len() < calls.len()
    });
    open
}

/// The lines of the last message, when it is the last thing that happened; else none.
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
            // A result belongs to the turn; any other user line (91-50…53) and an API error
            // (91-56) ends it.
            Kind::User if !step.ids("tool_result", "tool_use_id").is_empty() => {}
            Kind::User | Kind::ApiError => break,
        }
    }
    Vec::new()
}

/// Drops the lines that hold nothing but thoughts when their message has no line that says more
/// (43-03, 43-04).
fn drop_lone_thoughts(steps: &mut Vec<Step>) {
    let ids_that_say_more: Vec<MessageId> = steps
        .iter()
        .filter(|step| step.kind == Kind::Assistant && !step.is_thinking())
        .map(|step| step.id.clone())
        .collect();
    steps.retain(|step| {
        let says_more = |id: &MessageId| id.is_same_given(&step.id);
        !step.is_thinking() || ids_that_say_more.iter().any(says_more)
    });
}

/// Makes the steps of a resumed conversation end with an answer.
pub(super) fn repair(steps: &mut Vec<Step>) {
    let open = open_calls(steps);
    drop_lone_thoughts(steps);
    // A line of blank text is not sent, whatever else its message says (43-05, 43-10).
    steps.retain(|step| !step.is_blank());
    // The results of interrupted calls come after the real ones (91-58).
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

/// Where "No response requested." goes. The last step that is neither a reminder nor a system line
/// decides: when it is a user line, the answer to it is missing, and this text stands for it, behind
/// the line and the reminders that follow it, before a system line (91-c8, 41-13). A command that
/// the user ran by hand needs no answer.
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

/// Whether the conversation ends with a command that the user ran by hand: the caveat line, then
/// the line that names the command, then its output as a user or a system line (91-c3, 91-c4,
/// 91-c7). The client may have been stopped in between: the output may be missing, and the command.
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
