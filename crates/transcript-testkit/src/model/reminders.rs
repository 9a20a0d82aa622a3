//! The texts of attachments: what the client tells the model about its surroundings.

use serde_json::{Map, Value, json};

/// Start of the one reminder that is never folded into a tool result. The client knows it by its
/// text; the flag `renderedBesideToolResult` is not read (91-a3, 91-c0, 91-f1).
const ATTRIBUTION: &str = "<system-reminder>\nAttribution for git commits and pull requests you \
                           create from here on";

/// What an attachment is sent as: a list of messages, each a list of text blocks. Empty when
/// nothing is sent.
pub(super) fn parts(entry: &Map<String, Value>) -> Vec<Vec<Value>> {
    // The text that was sent the first time counts, whatever the attachment says now (44-83).
    stored_parts(entry).unwrap_or_else(|| {
        let texts = entry
            .get("attachment")
            .map(rendered_anew)
            .unwrap_or_default();
        texts
            .iter()
            .map(|text| vec![text_block(&wrap(text))])
            .collect()
    })
}

/// The parts under `rendered`; `None` when there are none or one is not all text (91-a1, 91-a2).
fn stored_parts(entry: &Map<String, Value>) -> Option<Vec<Vec<Value>>> {
    let rendered = entry
        .get("rendered")?
        .as_array()
        .filter(|parts| !parts.is_empty())?;
    rendered
        .iter()
        .map(|part| match &part["content"] {
            Value::String(text) => Some(vec![text_block(text)]),
            Value::Array(blocks) => {
                let all_text = blocks.iter().all(|block| block["type"] == "text");
                all_text.then(|| blocks.clone())
            }
            _ => None,
        })
        .collect()
}

/// Whether a reminder goes into a `role: system` message in the role form. Without a stored role
/// all do but the files that the user mentioned.
pub(super) fn is_for_system_role(entry: &Map<String, Value>) -> bool {
    match entry.get("renderedRole").and_then(Value::as_str) {
        Some(role) => role != "user",
        None => {
            let attachment = entry.get("attachment").unwrap_or(&Value::Null);
            attachment["type"] != "file" && attachment["type"] != "directory"
        }
    }
}

pub(super) fn is_attribution(block: &Value) -> bool {
    block["text"]
        .as_str()
        .is_some_and(|text| text.starts_with(ATTRIBUTION))
}

pub(super) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn wrap(text: &str) -> String {
    format!("<system-reminder>\n{text}\n</system-reminder>")
}

/// The text of a reminder without its wrapper.
pub(super) fn unwrapped(text: &str) -> &str {
    let inner = text
        .trim_end_matches('\n')
        .strip_prefix("<system-reminder>\n");
    inner
        .and_then(|text| text.strip_suffix("\n</system-reminder>"))
        .unwrap_or(text)
}

/// The texts that 2.1.329 makes of an attachment without stored ones (rig, appendix B). Types that
/// are not listed send nothing, or their text depends on more than the attachment.
fn rendered_anew(attachment: &Value) -> Vec<String> {
    let text = |field: &str| attachment[field].as_str().unwrap_or_default();
    let one = |text: String| vec![text];
    match text("type") {
        "queued_command" => one(queued_command(attachment)),
        "edited_text_file" => one(format!(
            "Note: {} changed on disk since you last read it. That's usually deliberate, so take \
             it as the current state rather than reverting it; if the change looks wrong, say so \
             rather than undoing it yourself — otherwise no need to call it out. Here are the \
             relevant changes (shown with line numbers):\n{}",
            text("filename"),
            text("snippet")
        )),
        "file" => {
            let file = &attachment["content"]["file"];
            let first = file["startLine"].as_u64().unwrap_or(1);
            let body = file["content"].as_str().unwrap_or_default();
            let numbered: Vec<String> = body
                .split('\n')
                .zip(first..)
                .map(|(line, number)| format!("{number}\t{line}"))
                .collect();
            vec![
                format!(
                    "Called the Read tool with the following input: {}",
                    json!({"file_path": text("filename")})
                ),
                format!("Result of calling the Read tool:\n{}", numbered.join("\n")),
            ]
        }
        "directory" => vec![
            format!(
                "Called the Bash tool with the following input: \
                 {{\"command\":\"ls {0}\",\"description\":\"Lists files in {0}\"}}",
                text("path")
            ),
            format!("Result of calling the Bash tool:\n{}", text("content")),
        ],
        "compact_file_reference" => one(format!(
            "Note: {} was read before the last conversation was summarized, but the contents are \
             too large to include. Use Read tool if you need to access it.",
            text("filename")
        )),
        "selected_lines_in_ide" => one(format!(
            "The user selected the lines {} to {} from {}:\n{}\n\nThis may or may not be related \
             to the current task.",
            attachment["lineStart"],
            attachment["lineEnd"],
            text("filename"),
            text("content")
        )),
        "opened_file_in_ide" => one(format!(
            "The user opened the file {} in the IDE. This may or may not be related to the \
             current task.",
            text("filename")
        )),
        "nested_memory" => one(format!(
            "Contents of {}:\n\n{}",
            text("path"),
            attachment["content"]["content"]
                .as_str()
                .unwrap_or_default()
        )),
        "plan_mode_exit" => one(
            "## Exited Plan Mode\n\nYou have exited plan mode. You can now \
                                 make edits, run tools, and take actions."
                .to_owned(),
        ),
        "plan_file_reference" => one(format!(
            "A plan file exists from plan mode at: {}\n\nPlan contents:\n\n{}\n\nIf this plan is \
             relevant to the current work and not already complete, continue working on it.",
            text("planFilePath"),
            text("planContent")
        )),
        "skill_listing" => one(format!(
            "The following skills are available for use with the Skill tool:\n\n{}",
            text("content")
        )),
        "output_style" => one(format!(
            "{} output style is active. Remember to follow the specific guidelines for this \
             style.",
            text("style")
        )),
        "critical_system_reminder" => one(text("content").to_owned()),
        "total_tokens_reminder" => one(text("text").to_owned()),
        "date" => one(format!("Today's date is {}.", text("date"))),
        "date_change" => one(format!(
            "The date has changed. Today's date is now {}. No need to announce the new date — the \
             user's own clock shows it.",
            text("newDate")
        )),
        "hook_blocking_error" => one(format!(
            "{} hook blocking error from command: \"{}\": {}",
            text("hookName"),
            attachment["blockingError"]["command"]
                .as_str()
                .unwrap_or_default(),
            attachment["blockingError"]["blockingError"]
                .as_str()
                .unwrap_or_default()
        )),
        // Only the two events whose output is meant for the model.
        "hook_success" if ["SessionStart", "UserPromptSubmit"].contains(&text("hookEvent")) => one(
            format!("{} hook success: {}", text("hookName"), text("content")),
        ),
        "hook_additional_context" => one(format!(
            "{} hook additional context: {}",
            text("hookName"),
            strings(&attachment["content"]).join("\n")
        )),
        "hook_stopped_continuation" => one(format!(
            "{} hook stopped continuation: {}",
            text("hookName"),
            text("message")
        )),
        "token_usage" => one(format!(
            "Token usage: {}/{}; {} remaining",
            attachment["used"], attachment["total"], attachment["remaining"]
        )),
        "budget_usd" => one(format!(
            "USD budget: ${}/${}; ${} remaining",
            attachment["used"], attachment["total"], attachment["remaining"]
        )),
        _ => Vec::new(),
    }
}

fn queued_command(attachment: &Value) -> String {
    let prompt = match &attachment["prompt"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(|block| block["text"].as_str())
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    };
    if attachment["commandMode"] == "task-notification" {
        // Own wording behind the first sentence: the fact file has the client's cut off.
        return format!(
            "[SYSTEM NOTIFICATION - NOT USER INPUT]\nThis is an automated background-task event, \
             NOT a message from the user.\n\n{prompt}"
        );
    }
    format!(
        "The user sent a new message while you were working:\n{prompt}\n\nThis is how Claude Code \
         surfaces messages the user sends mid-turn — within the running turn, often alongside the \
         next tool result, rather than as a separate conversation turn. Address the message above \
         as you continue this turn."
    )
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().map_or_else(Vec::new, |list| {
        list.iter().filter_map(Value::as_str).collect()
    })
}
