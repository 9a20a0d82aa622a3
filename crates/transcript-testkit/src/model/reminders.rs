//! The texts of attachments, by which the client informs the model about its environment.

use serde_json::{Map, Value, json};

/// Start of the one reminder that is never folded into a tool result. The client recognizes it by its
/// text; it does not read the flag `renderedBesideToolResult` (NOTE-5).
const ATTRIBUTION: &str = "<system-reminder>\nAttribution for git commits and pull requests you \
                           create from here on";

/// Returns what is sent for an attachment: a list of messages, each a list of text blocks. Empty when
/// nothing is sent.
pub(super) fn parts(entry: &Map<String, Value>) -> Vec<Vec<Value>> {
    // The text that was sent the first time counts, whatever the other fields contain (NOTE-1).
    stored_parts(entry).unwrap_or_else(|| {
        let texts = entry
            .get("attachment")
            .map(rendered_texts)
            .unwrap_or_default();
        texts
            .iter()
            .map(|text| vec![text_block(&wrap(text))])
            .collect()
    })
}

/// Returns the parts under `rendered`; `None` when there are none, or one contains another block than
/// text (NOTE-1).
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

/// Returns whether the user chose the content of an attachment: a file, a folder, or a memory file
/// that came with one.
pub(super) fn is_file(entry: &Map<String, Value>) -> bool {
    let kind = entry
        .get("attachment")
        .and_then(|attachment| attachment["type"].as_str());
    matches!(kind, Some("file" | "directory" | "nested_memory"))
}

/// Returns whether a reminder goes into a `role: system` message in the role form. Without a stored
/// role all do, except the files that the user mentioned.
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

/// Returns the text of a reminder without the tags around it, which are on lines of their own. Any
/// other text is returned unchanged.
pub(super) fn without_wrapper(text: &str) -> &str {
    let open = "<system-reminder>\n";
    let close = "\n</system-reminder>";
    let body = text.trim_end_matches('\n');
    if body.len() >= open.len() + close.len() && body.starts_with(open) && body.ends_with(close) {
        &body[open.len()..body.len() - close.len()]
    } else {
        text
    }
}

/// Returns a paragraph for each file, with a line for each diagnostic.
fn diagnostics(attachment: &Value) -> String {
    let none = Vec::new();
    let list = |value: &Value| value.as_array().unwrap_or(&none).clone();
    let mut paragraphs = Vec::new();
    for file in list(&attachment["files"]) {
        let path = file["uri"].as_str().unwrap_or_default();
        let mut lines = vec![format!(
            "{}:",
            &path[path.rfind('/').map_or(0, |at| at + 1)..]
        )];
        for found in list(&file["diagnostics"]) {
            let start = &found["range"]["start"];
            let place = |key: &str| start[key].as_u64().unwrap_or(0).saturating_add(1);
            let mut line = format!(
                "  {} [Line {}:{}] {}",
                match found["severity"].as_str().unwrap_or_default() {
                    "Error" => "✘",
                    other => other,
                },
                place("line"),
                place("character"),
                found["message"].as_str().unwrap_or_default()
            );
            match found.get("code") {
                Some(Value::String(code)) => line += &format!(" [{code}]"),
                Some(code) => line += &format!(" [{code}]"),
                None => {}
            }
            if let Some(source) = found["source"].as_str() {
                line += &format!(" ({source})");
            }
            lines.push(line);
        }
        paragraphs.push(lines.join("\n"));
    }
    let all = paragraphs.join("\n\n");
    format!(
        "<new-diagnostics>The following new diagnostic issues were detected:\n\n{all}</new-diagnostics>"
    )
}

/// Returns the texts that client 2.1.329 renders for an attachment without stored texts. A type that
/// is not listed sends nothing, or its text depends on more than the attachment.
fn rendered_texts(attachment: &Value) -> Vec<String> {
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
        // What the client sends for files other than texts is not known.
        "file" if !["text", "null"].contains(&plain(&attachment["content"]["type"]).as_str()) => {
            Vec::new()
        }
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
                 {{\"command\":{},\"description\":{}}}",
                json!(format!("ls {}", text("path"))),
                json!(format!("Lists files in {}", text("path")))
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
        "diagnostics" => one(diagnostics(attachment)),
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
        // Only the output of these two events is meant for the model.
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
        "agent_listing_delta" => one(agents(attachment)),
        "agent_mention" => one(format!(
            "The user has expressed a desire to invoke the agent \"{}\". Please invoke the agent \
             appropriately, passing in the required context to it. ",
            text("agentType")
        )),
        "async_hook_response" => {
            let response = &attachment["response"];
            let context = &response["hookSpecificOutput"]["additionalContext"];
            let texts = [&response["systemMessage"], context].into_iter();
            let texts = texts
                .filter_map(Value::as_str)
                .filter(|text| !text.is_empty());
            texts.map(str::to_owned).collect()
        }
        "auto_mode_exit" => one(
            "## Exited Auto Mode\n\nYou have exited auto mode. The user may now \
                                 want to interact more directly. You should ask clarifying \
                                 questions when the approach is ambiguous rather than making \
                                 assumptions."
                .to_owned(),
        ),
        "mcp_instructions_delta" => one(mcp_instructions(attachment)),
        "mcp_resource" => {
            let contents = attachment["content"]["contents"].as_array();
            let contents = contents.into_iter().flatten();
            let mut texts = vec!["Full contents of resource:".to_owned()];
            texts.extend(contents.filter_map(|content| Some(content["text"].as_str()?.to_owned())));
            texts.push(
                "Do NOT read this resource again unless you think it may have changed, since you \
                 already have the full contents."
                    .to_owned(),
            );
            texts
        }
        "output_token_usage" => one(format!(
            "Output tokens — turn: {} / {} · session: {}",
            attachment["turn"], attachment["budget"], attachment["session"]
        )),
        // The end of this text is inferred: with it the text has the length that was seen.
        "pdf_reference" => one(format!(
            "PDF file: {} ({} pages, {} bytes). This PDF is too large to read all at once. You \
             MUST use the Read tool with the pages parameter to read specific page ranges (e.g., \
             pages: \"1-5\"). Do NOT call Read without the pages parameter or it will fail. Start \
             by reading the first few pages to understand the structure, then read more as \
             needed. Maximum 20 pages per request.",
            text("filename"),
            attachment["pageCount"],
            attachment["fileSize"]
        )),
        "relevant_memories" => {
            let memories = attachment["memories"].as_array().into_iter().flatten();
            let memories: Vec<String> = memories
                .map(|memory| {
                    let text = |field: &str| memory[field].as_str().unwrap_or_default();
                    format!("{}\n\n{}", text("header"), text("content"))
                })
                .collect();
            one(format!(
                "Retrieved for possible relevance — use only if it actually applies to what the \
                 user asked.\n\n{}",
                memories.join("\n\n")
            ))
        }
        "task_status" => one(format!(
            "Task {} (type: {}) (status: {}) (description: {}) Read the output file to retrieve \
             the result: {}",
            text("taskId"),
            text("taskType"),
            text("status"),
            text("description"),
            text("outputFilePath")
        )),
        "ultrathink_effort" => one(
            "The user included the keyword \"ultrathink\", requesting deeper \
                                    reasoning on this turn. Reason as thoroughly as the task \
                                    warrants."
                .to_owned(),
        ),
        _ => our_words(attachment).into_iter().collect(),
    }
}

/// Returns a string without its quotes, any other value as JSON.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The client sends a text for these, of which only the start is known; this text replaces it.
fn our_words(attachment: &Value) -> Option<String> {
    let text = |field: &str| attachment[field].as_str().unwrap_or_default();
    Some(match text("type") {
        "auto_mode" => {
            "Auto mode is active. Work on without stopping for clarifying questions.".to_owned()
        }
        "deferred_tools_delta" => {
            let text = deferred_tools(attachment);
            return (!text.is_empty()).then_some(text);
        }
        "invoked_skills" => {
            let mut all = "These skills were invoked earlier in this session. Do not run them \
                           again; their guidelines still hold."
                .to_owned();
            for skill in attachment["skills"].as_array().into_iter().flatten() {
                let text = |field: &str| skill[field].as_str().unwrap_or_default();
                all += &format!("\n\n### Skill: {}\n\n{}", text("name"), text("content"));
            }
            all
        }
        "plan_mode" => format!(
            "Plan mode is active. Make no edits but to the plan file {}, and run nothing that \
             changes the system.",
            text("planFilePath")
        ),
        "plan_mode_reentry" => format!(
            "Plan mode is active again. Read the plan of before in {} first.",
            text("planFilePath")
        ),
        "task_reminder" => "The task tools have not been used for a while. Use them if they help \
                            with the current work."
            .to_owned(),
        _ => return None,
    })
}

const AMBIENT: &str = "This is ambient context — do not narrate it to the user unless they ask or \
                       it is directly relevant to their request.";

fn agents(attachment: &Value) -> String {
    let added = strings(&attachment["addedLines"]);
    if attachment["isInitial"] == true {
        return format!(
            "Available agent types for the Agent tool:\n{}",
            added.join("\n")
        );
    }
    let mut parts = Vec::new();
    if !added.is_empty() {
        parts.push(format!(
            "New agent types are now available for the Agent tool:\n{}",
            added.join("\n")
        ));
    }
    let removed: Vec<String> = strings(&attachment["removedTypes"])
        .into_iter()
        .map(|name| format!("- {name}"))
        .collect();
    if !removed.is_empty() {
        parts.push(format!(
            "The following agent types are no longer available:\n{}",
            removed.join("\n")
        ));
    }
    parts.push(AMBIENT.to_owned());
    parts.join("\n\n")
}

fn mcp_instructions(attachment: &Value) -> String {
    let mut parts = Vec::new();
    let added = strings(&attachment["addedBlocks"]);
    if !added.is_empty() {
        parts.push(format!(
            "# MCP Server Instructions\n\nThe following MCP servers have provided instructions for \
             how to use their tools and resources:\n\n{}",
            added.join("\n\n")
        ));
    }
    let removed = strings(&attachment["removedNames"]);
    if !removed.is_empty() {
        parts.push(format!(
            "The following MCP servers have disconnected. Their instructions above no longer \
             apply:\n{}",
            removed.join("\n")
        ));
    }
    parts.push(AMBIENT.to_owned());
    parts.join("\n\n")
}

/// The text about new tools is that of the client. Of the text after the list of removed tools only
/// the start is known.
fn deferred_tools(attachment: &Value) -> String {
    let mut parts = Vec::new();
    let added = strings(&attachment["addedLines"]);
    if !added.is_empty() {
        parts.push(format!(
            "The following deferred tools are now available via ToolSearch. Their schemas are NOT \
             loaded — calling them directly will fail with InputValidationError. Use ToolSearch \
             with query \"select:<name>[,<name>...]\" to load tool schemas before calling \
             them:\n{}",
            added.join("\n")
        ));
    }
    let removed = strings(&attachment["removedNames"]);
    if !removed.is_empty() {
        parts.push(format!(
            "The following deferred tools are no longer available in this session:\n{}",
            removed.join("\n")
        ));
    }
    parts.join("\n\n")
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
        // Our own wording after the first sentence: the rest of the client's text is not known.
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
