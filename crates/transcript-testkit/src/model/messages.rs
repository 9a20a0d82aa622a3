//! Stage 4: turns the steps of a conversation into the messages of the request.

use std::collections::HashSet;

use serde_json::{Value, json};
use transcript_format::texts::{CALL_REPEATED, NO_CONTENT, ORPHAN_REMOVED, RESULT_MISSING};

use super::blocks::{is_thinking, text_block};
use super::step::{Kind, MessageId, Step};
use super::{js, reminders, rendered};

/// A message of the request while it is built.
#[derive(Clone, Debug)]
pub(super) struct Message {
    role: &'static str,
    id: MessageId,
    blocks: Vec<Value>,
    /// Whether this user message contains only reminders so far.
    only_reminders: bool,
    /// Whether the content is still the plain string of one user line.
    is_plain_string: bool,
}

impl Message {
    fn new(role: &'static str, blocks: Vec<Value>) -> Message {
        Message {
            role,
            id: MessageId::Own,
            blocks,
            only_reminders: false,
            is_plain_string: false,
        }
    }

    fn holds_result(&self) -> bool {
        self.blocks.iter().any(is_result)
    }
}

fn is_result(block: &Value) -> bool {
    block["type"] == "tool_result"
}

// ---------------------------------------------------------------------------------------------
// Merging
// ---------------------------------------------------------------------------------------------

/// Merges the steps into messages. With `system_role` the reminders go into messages of role
/// `system` (the role form), otherwise into the user messages (the text form).
pub(super) fn merge(steps: Vec<Step>, system_role: bool) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    // In the role form: the reminders of the turn, which are sent after its user message.
    let mut waiting: Vec<Vec<Value>> = Vec::new();
    for step in steps {
        match step.kind {
            Kind::Assistant => match message_of_line(&messages, &step.id) {
                Some(at) => messages[at].blocks.extend(step.blocks),
                None => {
                    send_waiting(&mut messages, &mut waiting);
                    let mut message = Message::new("assistant", step.blocks);
                    message.id = step.id;
                    messages.push(message);
                }
            },
            Kind::ApiError | Kind::Silent => {}
            Kind::User | Kind::LocalCommand => {
                add_user(&mut messages, step.blocks, step.is_plain_string);
            }
            Kind::Reminder
                if system_role && reminders::is_for_system_role(&step.entry, &step.parts) =>
            {
                waiting.push(step.parts.concat());
            }
            Kind::Reminder
                if system_role && reminders::is_file(&step.entry) && is_user_turn(&messages) =>
            {
                // In the role form the texts of a file are merged like user lines, with a line feed
                // between texts, and are never folded into a result (NOTE-7).
                for blocks in step.parts {
                    add_user(&mut messages, blocks, false);
                }
            }
            Kind::Reminder => add_reminder(&mut messages, step.parts),
        }
    }
    send_waiting(&mut messages, &mut waiting);
    messages
}

/// Returns the message that an assistant line belongs to: the last one before it with the same id.
/// Results, reminders and other answers may come between them, but after a user message without a
/// result the same id begins a new message (MSG-1).
fn message_of_line(messages: &[Message], id: &MessageId) -> Option<usize> {
    for (at, message) in messages.iter().enumerate().rev() {
        match message.role {
            "assistant" if message.id.is_same(id) => return Some(at),
            // A line without an id does not look past reminders (MSG-2).
            "user" if message.holds_result() => {}
            "user" if !message.only_reminders || *id == MessageId::Missing => return None,
            _ => {}
        }
    }
    None
}

/// Returns whether the last message is a user message, which the next step can join.
fn is_user_turn(messages: &[Message]) -> bool {
    messages
        .last()
        .is_some_and(|message| message.role == "user")
}

/// Sends the reminders that wait for the end of the turn: as one message of role `system`, without
/// their wrappers. In a turn without a user message they are sent as one reminder (NOTE-7).
fn send_waiting(messages: &mut Vec<Message>, waiting: &mut Vec<Vec<Value>>) {
    let reminders: Vec<Vec<Value>> = std::mem::take(waiting);
    if reminders.is_empty() {
        return;
    }
    let texts: Vec<String> = reminders
        .iter()
        .map(|blocks| reminders::system_text(blocks))
        .filter(|text| !js::trim(text).is_empty())
        .collect();
    let text = texts.join("\n\n");
    if text.is_empty() {
        return;
    }
    if is_user_turn(messages) {
        messages.push(Message::new("system", vec![text_block(&text)]));
    } else {
        add_reminder(messages, vec![vec![text_block(&rendered::wrap(&text))]]);
    }
}

/// Merges consecutive user lines into one message. Where two texts meet, the earlier one gets a line
/// feed; results move to the front (MSG-3, MSG-4).
fn add_user(messages: &mut Vec<Message>, blocks: Vec<Value>, is_plain_string: bool) {
    let Some(message) = messages.last_mut().filter(|message| message.role == "user") else {
        let mut message = Message::new("user", blocks);
        message.is_plain_string = is_plain_string;
        messages.push(message);
        return;
    };
    if blocks.first().is_some_and(|block| block["type"] == "text") {
        end_with_newline(&mut message.blocks);
    }
    message.blocks.extend(blocks);
    let (results, others): (Vec<Value>, Vec<Value>) = std::mem::take(&mut message.blocks)
        .into_iter()
        .partition(is_result);
    message.blocks = [results, others].concat();
    message.only_reminders = false;
    message.is_plain_string = false;
}

fn end_with_newline(blocks: &mut [Value]) {
    if let Some(last) = blocks.last_mut()
        && last["type"] == "text"
        && let Some(text) = last["text"].as_str()
    {
        last["text"] = format!("{text}\n").into();
    }
}

/// Adds a reminder to the user message before it: within the last result if that is the last block,
/// otherwise as a block. Each part of a reminder that opens the turn becomes a message (NOTE-8).
fn add_reminder(messages: &mut Vec<Message>, parts: Vec<Vec<Value>>) {
    let opens = !is_user_turn(messages);
    for blocks in parts {
        match messages.last_mut() {
            Some(message) if !opens => {
                message.is_plain_string = false;
                if blocks.iter().any(|block| block["type"] != "text") {
                    // A reminder with an image is not folded, nor is what follows it (NOTE-11).
                    message.blocks.extend(blocks);
                    continue;
                }
                for block in blocks {
                    add_reminder_block(message, block);
                }
            }
            _ => {
                let mut message = Message::new("user", blocks);
                message.only_reminders = true;
                messages.push(message);
            }
        }
    }
}

fn add_reminder_block(message: &mut Message, block: Value) {
    // The attribution reminder is not folded, and does not stop the folding of later ones (NOTE-5).
    let last = message
        .blocks
        .iter_mut()
        .rev()
        .find(|block| !reminders::is_attribution(block));
    match last {
        Some(last) if takes_reminders(last) && !reminders::is_attribution(&block) => {
            fold(last, block);
        }
        _ => message.blocks.push(block),
    }
}

/// Returns whether reminders are folded into this block: into any result except one whose content
/// is null or contains a search result or a tool reference (NOTE-4).
fn takes_reminders(block: &Value) -> bool {
    let is_closed =
        |inner: &Value| inner["type"] == "search_result" || inner["type"] == "tool_reference";
    is_result(block)
        && block.get("content") != Some(&Value::Null)
        && !block["content"]
            .as_array()
            .is_some_and(|list| list.iter().any(is_closed))
}

fn fold(result: &mut Value, block: Value) {
    if let Some(content) = result["content"].as_array_mut() {
        end_with_newline(content);
        content.push(block);
        return;
    }
    // White space at both ends is trimmed only here (NOTE-3).
    let content = js::trim(result["content"].as_str().unwrap_or_default());
    let text = block["text"].as_str().unwrap_or_default();
    let folded = if content.is_empty() {
        text.to_owned()
    } else {
        format!("{content}\n\n{text}")
    };
    result["content"] = folded.into();
}

// ---------------------------------------------------------------------------------------------
// Cleaning
// ---------------------------------------------------------------------------------------------

/// Removes blank texts of a user message; if nothing is left, a placeholder replaces them. The plain
/// string of a single line is sent unchanged (MSG-12).
pub(super) fn drop_blank_user_texts(messages: &mut [Message]) {
    let is_blank = |block: &Value| {
        let text = block["text"].as_str();
        block["type"] == "text" && text.is_some_and(|text| js::trim(text).is_empty())
    };
    for message in messages {
        if message.role != "user" || message.is_plain_string {
            continue;
        }
        message.blocks.retain(|block| !is_blank(block));
        if message.blocks.is_empty() {
            message.blocks.push(text_block(NO_CONTENT));
        }
    }
}

/// Moves the calls of an assistant message after its other blocks. When a thought follows
/// another one, not counting calls, the calls before it stay before it (MSG-5).
pub(super) fn calls_last(messages: &mut [Message]) {
    for message in messages {
        if message.role != "assistant" {
            continue;
        }
        let mut sorted: Vec<Value> = Vec::new();
        let mut calls: Vec<Value> = Vec::new();
        let mut last_was_thought = false;
        for block in std::mem::take(&mut message.blocks) {
            if block["type"] == "tool_use" {
                calls.push(block);
                continue;
            }
            let is_thought = is_thinking(&block);
            if is_thought && last_was_thought {
                sorted.append(&mut calls);
            }
            last_was_thought = is_thought;
            sorted.push(block);
        }
        sorted.append(&mut calls);
        message.blocks = sorted;
    }
}

// ---------------------------------------------------------------------------------------------
// Calls and results
// ---------------------------------------------------------------------------------------------

/// Makes every call precede exactly one result, and every result follow its call.
pub(super) fn pair(messages: Vec<Message>) -> Vec<Message> {
    let mut seen: HashSet<String> = HashSet::new();
    let mut paired: Vec<Message> = Vec::new();
    // The calls of the previous message that do not have a result yet.
    let mut open: Vec<String> = Vec::new();
    for mut message in messages {
        match message.role {
            "assistant" => {
                close(&mut paired, &mut open);
                let had_blocks = !message.blocks.is_empty();
                let served = server_results(&message.blocks);
                message.blocks.retain(|block| match block["type"].as_str() {
                    // A call with a repeated id is dropped (TURN-4).
                    Some("tool_use") => {
                        let id = block["id"].as_str().unwrap_or_default().to_owned();
                        let is_new = seen.insert(id.clone());
                        if is_new {
                            open.push(id);
                        }
                        is_new
                    }
                    Some("server_tool_use" | "mcp_tool_use") => {
                        served.contains(&block["id"].to_string())
                    }
                    _ => true,
                });
                if had_blocks && message.blocks.is_empty() {
                    message.blocks.push(synthetic(CALL_REPEATED));
                }
                paired.push(message);
            }
            "user" => {
                message.blocks.retain(|block| {
                    if block["type"] != "tool_result" {
                        return true;
                    }
                    // An orphan, or the second result of a call, is dropped.
                    let at = open
                        .iter()
                        .position(|id| block["tool_use_id"] == id.as_str());
                    at.map(|at| open.remove(at)).is_some()
                });
                let missing = std::mem::take(&mut open);
                message
                    .blocks
                    .splice(0..0, missing.iter().map(|id| missing_result(id)));
                if message.blocks.is_empty() {
                    message.blocks.push(text_block(if paired.is_empty() {
                        ORPHAN_REMOVED
                    } else {
                        NO_CONTENT
                    }));
                }
                paired.push(message);
            }
            _ => paired.push(message),
        }
    }
    close(&mut paired, &mut open);
    paired
}

/// Adds a user message with the missing results after calls that none follows.
fn close(paired: &mut Vec<Message>, open: &mut Vec<String>) {
    if !open.is_empty() {
        let blocks = std::mem::take(open)
            .iter()
            .map(|id| missing_result(id))
            .collect();
        paired.push(Message::new("user", blocks));
    }
}

fn missing_result(id: &str) -> Value {
    json!({
        "type": "tool_result",
        "tool_use_id": id,
        "content": RESULT_MISSING,
        "is_error": true,
    })
}

/// Returns the ids of the server calls that have a result in the same message.
fn server_results(blocks: &[Value]) -> HashSet<String> {
    let results = blocks.iter().filter(|block| block["type"] != "tool_use");
    results
        .map(|block| block["tool_use_id"].to_string())
        .collect()
}

/// Returns a synthetic text block of an assistant message (MSG-8, TURN-4).
fn synthetic(text: &str) -> Value {
    json!({"type": "text", "text": text, "citations": []})
}

/// Makes the last changes to a message, and returns it as JSON.
pub(super) fn finish(mut message: Message) -> Value {
    if message.role == "assistant" {
        if message.blocks.is_empty() {
            message.blocks.push(synthetic(NO_CONTENT));
        }
        message
            .blocks
            .retain(|block| block["type"] != "text" || block["text"] != "");
    }
    for block in &mut message.blocks {
        if block["type"] == "tool_use" && block["name"] == "Task" {
            // The one tool that was renamed (MSG-15).
            block["name"] = "Agent".into();
        }
        if block["type"] == "tool_use" && block["name"] == "SendMessage" {
            drop_written_fields(&mut block["input"]);
        }
        if block["type"] == "tool_result" && block["is_error"] == true {
            text_only(block);
        }
    }
    json!({"role": message.role, "content": message.blocks})
}

/// Takes the fields out of a message to another agent that the client itself writes into it (MSG-21).
fn drop_written_fields(input: &mut Value) {
    let Some(input) = input.as_object_mut() else {
        return;
    };
    if input.contains_key("to") && input.contains_key("message") {
        for name in [
            "type",
            "recipient",
            "recipient_kind",
            "content",
            "request_id",
            "approve",
        ] {
            input.remove(name);
        }
    }
}

/// Replaces NULs by U+FFFD, because a service that stores the text may end it at a NUL (fixture
/// `pains/11-nul-escape.jsonl`).
pub(super) fn without_nuls(value: Value) -> Value {
    match value {
        Value::String(text) => text.replace('\0', "\u{fffd}").into(),
        Value::Array(list) => list.into_iter().map(without_nuls).collect(),
        Value::Object(object) => {
            let fields = object.into_iter();
            let fields =
                fields.map(|(key, value)| (key.replace('\0', "\u{fffd}"), without_nuls(value)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}

/// Reduces a failed result to its texts, joined to one text if it has other blocks (MSG-13).
fn text_only(result: &mut Value) {
    let Some(content) = result["content"].as_array() else {
        return;
    };
    if content.iter().all(|block| block["type"] == "text") {
        return;
    }
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|block| block["text"].as_str())
        .collect();
    result["content"] = if texts.is_empty() {
        json!([])
    } else {
        json!([text_block(&texts.join("\n\n"))])
    };
}
