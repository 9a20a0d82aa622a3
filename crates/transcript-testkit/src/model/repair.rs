//! Unfinished turns: what the client drops from the entries of a path, and what it adds, before
//! they become messages (rig 7).

use std::collections::HashSet;

use serde_json::json;

use super::request::{Kind, Step};

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
                            && step.id.is_some()
                            && steps[at].id == step.id)
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

/// Drops the lines that hold nothing but thoughts, or nothing but blank text, when their message
/// has no line that says more (43-03, 43-04, 43-05, 43-10).
fn drop_silent(steps: &mut Vec<Step>, is_silent: impl Fn(&Step) -> bool) {
    let spoken: HashSet<String> = steps
        .iter()
        .filter(|step| step.kind == Kind::Assistant && !is_silent(step))
        .filter_map(|step| step.id.clone())
        .collect();
    steps.retain(|step| !is_silent(step) || step.id.as_ref().is_some_and(|id| spoken.contains(id)));
}

/// Makes the steps of a resumed conversation end with an answer.
pub(super) fn repair(steps: &mut Vec<Step>) {
    let open = open_calls(steps);
    drop_silent(steps, Step::is_thinking);
    drop_silent(steps, Step::is_blank);
    // The results of interrupted calls stand behind the real ones (91-58).
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

/// Where "No response requested." goes: behind the last user entry and its reminders, when no
/// assistant line follows it (91-c8). System lines do not count, reminders neither (41-13).
fn place_of_sentinel(steps: &[Step]) -> Option<usize> {
    let counts = |step: &Step| !matches!(step.kind, Kind::Reminder | Kind::LocalCommand);
    let last = steps.iter().rposition(counts)?;
    if steps[last].kind != Kind::User || ends_a_local_command(steps) {
        return None;
    }
    let reminders = steps[last + 1..]
        .iter()
        .take_while(|step| step.kind == Kind::Reminder)
        .count();
    Some(last + 1 + reminders)
}

/// Whether the conversation ends with a command that the user ran by hand: the caveat line, the
/// command, its output as a user or a system line (91-c3, 91-c4, 91-c7).
fn ends_a_local_command(steps: &[Step]) -> bool {
    let mut rest = steps
        .iter()
        .rev()
        .filter(|step| step.kind != Kind::Reminder)
        .peekable();
    let mut next_starts_with = |start: &str| {
        rest.next_if(|step| step.text().is_some_and(|text| text.starts_with(start)))
            .is_some()
    };
    next_starts_with("<local-command-stdout>")
        && next_starts_with("<command-name>")
        && next_starts_with("<local-command-caveat>")
}
