//! The texts that the client renders for attachments without stored texts (NOTE-9).

mod changes;
pub(super) mod escape;
mod files;
mod modes;
mod parts;
mod queued;
mod work;

use serde_json::Value;
use transcript_format::attachment_texts::{self as texts, filled};
use transcript_format::texts::NO_CONTENT;

pub(super) use self::parts::{Part, wrap};
use self::parts::{field, given, part};
pub(super) use self::queued::notification;
use super::js;

/// Returns the messages for an attachment. Empty for a type that is not listed: nothing is sent for
/// it, or its text depends on more than the attachment. `now` is the time of the request in
/// milliseconds.
pub(super) fn parts(attachment: &Value, now: Option<i64>) -> Vec<Part> {
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
    filled(texts::HOOK_TEXT, &[("text", &escape::brackets(text))])
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
        "compact_file_reference" => {
            filled(texts::FILE_OF_SUMMARY, &[("filename", &name("filename"))])
        }
        "selected_lines_in_ide" => selected_lines(attachment),
        "opened_file_in_ide" => filled(texts::FILE_OPENED, &[("filename", &name("filename"))]),
        "nested_memory" => {
            let content = &attachment["content"];
            let [path, text] = ["path", "content"].map(|name| js::text(content.get(name)));
            escape::backslashes(&filled(
                texts::MEMORY_FILE,
                &[("path", &path), ("content", &text)],
            ))
        }
        "plan_mode" => modes::plan_mode(attachment),
        "plan_mode_exit" => modes::plan_mode_exit(attachment),
        "plan_mode_reentry" => modes::plan_mode_reentry(attachment),
        "plan_file_reference" => modes::plan_file(attachment),
        "auto_mode" => modes::auto_mode(attachment),
        "auto_mode_exit" => texts::AUTO_MODE_EXIT.to_owned(),
        "ultrathink_effort" => texts::ULTRATHINK.to_owned(),
        "ultra_effort_enter" => modes::ultra_effort(attachment).to_owned(),
        "ultra_effort_exit" => texts::ULTRA_EFFORT_EXIT.to_owned(),
        "workflow_keyword_request" => texts::WORKFLOW_KEYWORD.to_owned(),
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
            filled(texts::SKILLS, &[("skills", &field("content"))])
        }
        "output_style" => {
            attachment["style"]
                .as_str()
                .filter(|style| !style.is_empty())?;
            filled(texts::OUTPUT_STYLE, &[("style", &name("style"))])
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
            filled(texts::DATE, &[("date", &field("date"))])
        }
        "date_change" => filled(texts::DATE_CHANGE, &[("date", &field("newDate"))]),
        "hook_blocking_error" => {
            let error = &attachment["blockingError"];
            let [command, text] =
                ["command", "blockingError"].map(|name| js::text(error.get(name)));
            escape::brackets(&filled(
                texts::HOOK_BLOCKING_ERROR,
                &[
                    ("hook", &field("hookName")),
                    ("command", &command),
                    ("error", &text),
                ],
            ))
        }
        "hook_success" => return hook_success(attachment),
        "hook_additional_context" => {
            let context = attachment["content"]
                .as_array()
                .filter(|list| !list.is_empty())?;
            let context: Vec<String> = context.iter().map(|text| js::text(Some(text))).collect();
            escape::brackets(&filled(
                texts::HOOK_CONTEXT,
                &[
                    ("hook", &field("hookName")),
                    ("context", &context.join("\n")),
                ],
            ))
        }
        "hook_stopped_continuation" => escape::brackets(&filled(
            texts::HOOK_STOPPED,
            &[("hook", &field("hookName")), ("message", &field("message"))],
        )),
        "token_usage" => filled(
            texts::TOKEN_USAGE,
            &[
                ("used", &field("used")),
                ("total", &field("total")),
                ("remaining", &field("remaining")),
            ],
        ),
        "budget_usd" => filled(
            texts::BUDGET_USD,
            &[
                ("used", &field("used")),
                ("total", &field("total")),
                ("remaining", &field("remaining")),
            ],
        ),
        "agent_mention" => filled(texts::AGENT_MENTION, &[("agent", &field("agentType"))]),
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
    Some(filled(
        texts::MODEL,
        &[
            ("name", &self::field(identity, "marketingName")),
            ("id", &self::field(identity, "modelId")),
            ("cutoff", &self::field(identity, "knowledgeCutoff")),
        ],
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
        escape::brackets(&filled(
            texts::HOOK_SUCCESS,
            &[("hook", &field(attachment, "hookName")), ("output", output)],
        ))
    })
}

fn selected_lines(attachment: &Value) -> String {
    const MAX_SELECTION_LEN: usize = 2000;
    let mut content = field(attachment, "content");
    if js::length(&content) > MAX_SELECTION_LEN {
        content = js::start(&content, MAX_SELECTION_LEN) + "\n... (truncated)";
    }
    filled(
        texts::LINES_SELECTED,
        &[
            ("start", &field(attachment, "lineStart")),
            ("end", &field(attachment, "lineEnd")),
            ("filename", &escape::name(&attachment["filename"])),
            ("content", &content),
        ],
    )
}
