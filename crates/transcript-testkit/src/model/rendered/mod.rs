//! The texts that the client renders for attachments without stored texts (NOTE-9).

mod changes;
pub(super) mod escape;
mod files;
mod modes;
mod queued;
mod work;

use serde_json::Value;
use transcript_format::texts::NO_CONTENT;

pub(super) use self::queued::notification;
use super::js;
use super::reminders::text_block;

/// A message that is sent for an attachment.
pub(super) type Part = Vec<Value>;

/// Returns the messages for an attachment. Empty for a type that is not listed: nothing is sent for
/// it, or its text depends on more than the attachment. `now` is the time of the request in
/// milliseconds.
pub(super) fn parts(attachment: &Value, now: i64) -> Vec<Part> {
    match attachment["type"].as_str().unwrap_or_default() {
        "file" => files::file(attachment),
        "directory" => files::directory(attachment),
        "queued_command" => vec![queued::queued_command(attachment)],
        "mcp_resource" => vec![work::mcp_resource(attachment)],
        "relevant_memories" => work::memories(attachment, now),
        "async_hook_response" => {
            let response = &attachment["response"];
            let context = &response["hookSpecificOutput"]["additionalContext"];
            [&response["systemMessage"], context]
                .into_iter()
                .filter_map(Value::as_str)
                .filter(|text| !text.is_empty())
                .map(|text| part(&escape::brackets(text)))
                .collect()
        }
        _ => text(attachment).iter().map(|text| part(text)).collect(),
    }
}

/// Returns the output of a hook with the sentence that the client puts before it (MSG-23).
pub(super) fn hook_text(text: &str) -> String {
    format!(
        "The text below is the output of a hook, not a message from the user.\n{}",
        escape::brackets(text)
    )
}

/// Returns why the client fails on an attachment, which ends the resume.
pub(super) fn failure(attachment: &Value) -> Option<&'static str> {
    let is_unusable = match attachment["type"].as_str()? {
        "nested_memory" => attachment["content"].is_null(),
        "relevant_memories" => !attachment["memories"].is_array(),
        "hook_blocking_error" => attachment["blockingError"].is_null(),
        "selected_lines_in_ide" => attachment["content"].is_null(),
        _ => false,
    };
    is_unusable.then_some("the client cannot render an attachment")
}

/// Returns the text for the types that are sent as one.
fn text(attachment: &Value) -> Option<String> {
    let field = |name: &str| field(attachment, name);
    let name = |name: &str| escape::name(&attachment[name]);
    Some(match attachment["type"].as_str()? {
        "edited_text_file" => files::edited_text(attachment),
        "pdf_reference" => files::pdf_reference(attachment),
        "compact_file_reference" => format!(
            "Note: {} was read before the last conversation was summarized, but the contents are \
             too large to include. Use Read tool if you need to access it.",
            name("filename")
        ),
        "selected_lines_in_ide" => selected_lines(attachment),
        "opened_file_in_ide" => format!(
            "The user opened the file {} in the IDE. This may or may not be related to the \
             current task.",
            name("filename")
        ),
        "nested_memory" => {
            let content = &attachment["content"];
            let [path, text] = ["path", "content"].map(|name| js::text(content.get(name)));
            escape::backslashes(&format!("Contents of {path}:\n\n{text}"))
        }
        "plan_mode" => modes::plan_mode(attachment),
        "plan_mode_exit" => modes::plan_mode_exit(attachment),
        "plan_mode_reentry" => modes::plan_mode_reentry(attachment),
        "plan_file_reference" => modes::plan_file(attachment),
        "auto_mode" => modes::auto_mode(attachment),
        "auto_mode_exit" => modes::AUTO_MODE_EXIT.to_owned(),
        "ultrathink_effort" => modes::ULTRATHINK.to_owned(),
        "ultra_effort_enter" => modes::ultra_effort(attachment).to_owned(),
        "ultra_effort_exit" => modes::ULTRA_EFFORT_EXIT.to_owned(),
        "workflow_keyword_request" => modes::WORKFLOW_KEYWORD.to_owned(),
        "task_reminder" => return work::task_reminder(attachment),
        "task_status" => work::task_status(attachment),
        "invoked_skills" => return work::invoked_skills(attachment),
        "diagnostics" => return work::diagnostics(attachment),
        "output_token_usage" => work::output_tokens(attachment),
        "agent_listing_delta" => return changes::agents(attachment),
        "mcp_instructions_delta" => return changes::server_instructions(attachment),
        "deferred_tools_delta" => return changes::deferred_tools(attachment),
        "skill_listing" => {
            given(attachment, "content")?;
            format!(
                "The following skills are available for use with the Skill tool:\n\n{}",
                field("content")
            )
        }
        "output_style" => {
            attachment["style"]
                .as_str()
                .filter(|style| !style.is_empty())?;
            format!(
                "{} output style is active. Remember to follow the specific guidelines for this \
                 style.",
                name("style")
            )
        }
        // An empty reminder is sent with the placeholder of empty content.
        "critical_system_reminder" => match given(attachment, "content") {
            Some(_) => field("content"),
            None => NO_CONTENT.to_owned(),
        },
        "model" => model(attachment)?,
        "total_tokens_reminder" => field("text"),
        "date" => {
            attachment.get("date")?;
            format!("Today's date is {}.", field("date"))
        }
        "date_change" => format!(
            "The date has changed. Today's date is now {}. No need to announce the new date — the \
             user's own clock shows it.",
            field("newDate")
        ),
        "hook_blocking_error" => {
            let error = &attachment["blockingError"];
            let [command, text] =
                ["command", "blockingError"].map(|name| js::text(error.get(name)));
            escape::brackets(&format!(
                "{} hook blocking error from command: \"{command}\": {text}",
                field("hookName")
            ))
        }
        "hook_success" => return hook_success(attachment),
        "hook_additional_context" => {
            let texts = attachment["content"]
                .as_array()
                .filter(|list| !list.is_empty())?;
            let texts: Vec<String> = texts.iter().map(|text| js::text(Some(text))).collect();
            escape::brackets(&format!(
                "{} hook additional context: {}",
                field("hookName"),
                texts.join("\n")
            ))
        }
        "hook_stopped_continuation" => escape::brackets(&format!(
            "{} hook stopped continuation: {}",
            field("hookName"),
            field("message")
        )),
        "token_usage" => format!(
            "Token usage: {}/{}; {} remaining",
            field("used"),
            field("total"),
            field("remaining")
        ),
        "budget_usd" => format!(
            "USD budget: ${}/${}; ${} remaining",
            field("used"),
            field("total"),
            field("remaining")
        ),
        "agent_mention" => format!(
            "The user has expressed a desire to invoke the agent \"{}\". Please invoke the agent \
             appropriately, passing in the required context to it. ",
            field("agentType")
        ),
        _ => return None,
    })
}

/// The model that answers.
fn model(attachment: &Value) -> Option<String> {
    if let Some(text) = attachment["text"].as_str() {
        return Some(text.to_owned());
    }
    let identity = attachment
        .get("identity")
        .filter(|identity| identity.is_object())?;
    Some(format!(
        "You are powered by the model named {}. The exact model ID is {}. Assistant knowledge cutoff \
         is {}.",
        self::field(identity, "marketingName"),
        self::field(identity, "modelId"),
        self::field(identity, "knowledgeCutoff")
    ))
}

/// The output of a hook. Only that of these events is meant for the model.
fn hook_success(attachment: &Value) -> Option<String> {
    const EVENTS: [&str; 3] = ["SessionStart", "UserPromptSubmit", "UserPromptExpansion"];
    let event = attachment["hookEvent"].as_str()?;
    let output = attachment["content"]
        .as_str()
        .filter(|text| !text.is_empty())?;
    EVENTS.contains(&event).then(|| {
        escape::brackets(&format!(
            "{} hook success: {output}",
            field(attachment, "hookName")
        ))
    })
}

fn selected_lines(attachment: &Value) -> String {
    const LIMIT: usize = 2000;
    let mut content = field(attachment, "content");
    if js::length(&content) > LIMIT {
        content = js::start(&content, LIMIT) + "\n... (truncated)";
    }
    format!(
        "The user selected the lines {} to {} from {}:\n{content}\n\nThis may or may not be related \
         to the current task.",
        field(attachment, "lineStart"),
        field(attachment, "lineEnd"),
        escape::name(&attachment["filename"])
    )
}

fn field(object: &Value, name: &str) -> String {
    js::text(object.get(name))
}

/// Returns a field that counts as true.
fn given<'v>(object: &'v Value, name: &str) -> Option<&'v Value> {
    object.get(name).filter(|value| js::is_truthy(value))
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().map_or_else(Vec::new, |list| {
        list.iter().filter_map(Value::as_str).collect()
    })
}

pub(super) fn wrap(text: &str) -> String {
    format!("<system-reminder>\n{text}\n</system-reminder>")
}

/// Returns a message with one text.
fn part(text: &str) -> Part {
    vec![text_block(&wrap(text))]
}

/// Returns a message with blocks, each text of which becomes a reminder.
fn wrapped(mut blocks: Vec<Value>) -> Part {
    for block in &mut blocks {
        if let Some(text) = block["text"].as_str() {
            *block = text_block(&wrap(text));
        }
    }
    blocks
}
