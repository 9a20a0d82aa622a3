//! Stage 3: the entries of a path → the messages of the request that continues it.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::path::{Path, vendor_path};
use super::{reminders, repair};
use reminders::text_block;

/// The messages that the client sends when it resumes a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// `role` and `content` of each message, content always a list of blocks; `None` when the
    /// client refuses.
    pub messages: Option<Vec<Value>>,
    /// Why the client refuses to resume.
    pub refusal: Option<String>,
}

/// Returns the request that the client would send for the file `bytes` and a new `prompt`.
///
/// `model` is the model that gets the request: thoughts that another model signed are left out,
/// and newer models get reminders as messages of their own. Without it, the model of the last real
/// answer is meant. What the client would add for the new prompt (date, token count) is not here.
pub fn vendor_request(bytes: &[u8], prompt: Option<&str>, model: Option<&str>) -> Request {
    let path = vendor_path(bytes);
    if path.refusal.is_some() {
        return Request {
            messages: None,
            refusal: path.refusal,
        };
    }
    let model = model.map(str::to_owned).or_else(|| last_model(&path));

    let mut steps: Vec<Step> = path
        .entries
        .iter()
        .filter_map(|entry| Step::new(entry.value.as_object()?))
        .collect();
    repair::repair(&mut steps);
    if let Some(prompt) = prompt {
        steps.push(Step::user(vec![text_block(prompt)]));
    }
    bubble_up(&mut steps);
    remove_rejected_media(&mut steps);
    drop_foreign_thinking(&mut steps, model.as_deref());
    let messages = merge(steps, model.as_deref().is_some_and(wants_system_role));
    let messages = pair(messages);
    let messages = messages
        .into_iter()
        .map(|message| without_nuls(finish(message)))
        .collect();
    Request {
        messages: Some(messages),
        refusal: None,
    }
}

// ---------------------------------------------------------------------------------------------
// Steps: the entries that matter, one by one
// ---------------------------------------------------------------------------------------------

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    User,
    Assistant,
    /// An assistant line that reports a failed request: not sent, but it ends a turn.
    ApiError,
    /// The output of a command that the user ran by hand, written as a system line.
    LocalCommand,
    /// An attachment with a text.
    Reminder,
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) kind: Kind,
    /// The id of the message that an assistant line is a part of.
    pub(super) id: Option<String>,
    blocks: Vec<Value>,
    /// The messages of a reminder.
    parts: Vec<Vec<Value>>,
    entry: Map<String, Value>,
}

impl Step {
    /// `None` for entries that are never sent.
    fn new(entry: &Map<String, Value>) -> Option<Step> {
        let flag = |name: &str| entry.get(name) == Some(&Value::Bool(true));
        if flag("isVirtual") {
            return None;
        }
        let message = entry.get("message").unwrap_or(&Value::Null);
        let mut step = Step {
            kind: Kind::User,
            id: None,
            blocks: blocks(&message["content"]),
            parts: Vec::new(),
            entry: entry.clone(),
        };
        match entry.get("type")?.as_str()? {
            // A user line with an empty list is not sent (43-11).
            "user" => (!step.blocks.is_empty()).then_some(step),
            "assistant" => {
                step.kind = if flag("isApiErrorMessage") {
                    Kind::ApiError
                } else {
                    Kind::Assistant
                };
                step.id = message["id"].as_str().map(str::to_owned);
                Some(step)
            }
            "system" => {
                step.kind = Kind::LocalCommand;
                step.blocks = blocks(entry.get("content")?);
                (entry.get("subtype")? == "local_command").then_some(step)
            }
            "attachment" => {
                step.kind = Kind::Reminder;
                step.parts = reminders::parts(entry);
                (!step.parts.is_empty()).then_some(step)
            }
            _ => None,
        }
    }

    pub(super) fn user(blocks: Vec<Value>) -> Step {
        Step {
            kind: Kind::User,
            id: None,
            blocks,
            parts: Vec::new(),
            entry: Map::new(),
        }
    }

    pub(super) fn assistant(blocks: Vec<Value>) -> Step {
        Step {
            kind: Kind::Assistant,
            ..Step::user(blocks)
        }
    }

    /// Ids in `field` of the blocks of type `block_type`.
    pub(super) fn ids(&self, block_type: &str, field: &str) -> Vec<String> {
        let blocks = self
            .blocks
            .iter()
            .filter(|block| block["type"] == block_type);
        blocks
            .filter_map(|block| block[field].as_str())
            .map(str::to_owned)
            .collect()
    }

    /// Whether an assistant line holds thoughts and nothing else.
    pub(super) fn is_thinking(&self) -> bool {
        self.kind == Kind::Assistant
            && !self.blocks.is_empty()
            && self.blocks.iter().all(is_thinking)
    }

    /// Whether an assistant line holds blank text and nothing else.
    pub(super) fn is_blank(&self) -> bool {
        self.kind == Kind::Assistant && !self.blocks.is_empty() && self.blocks.iter().all(is_blank)
    }

    /// The first text.
    pub(super) fn text(&self) -> Option<&str> {
        self.blocks.first()?["text"].as_str()
    }

    fn model(&self) -> Option<&str> {
        self.entry.get("message")?["model"].as_str()
    }
}

/// Content as a list of blocks.
fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![text_block(text)],
        Value::Array(blocks) => blocks.iter().cloned().map(within_limits).collect(),
        _ => Vec::new(),
    }
}

/// Images of more than 5 MB, PDFs of more than 32 MB and text documents of more than 5 MB are sent
/// as a note: the API would refuse this request and all after it (issue 3, pains 10).
fn within_limits(mut block: Value) -> Value {
    if block["type"] == "tool_result"
        && let Some(content) = block["content"].as_array_mut()
    {
        for inner in content {
            *inner = note_if_too_large(inner.take());
        }
    }
    note_if_too_large(block)
}

fn note_if_too_large(block: Value) -> Value {
    const MB: usize = 1024 * 1024;
    let source = &block["source"];
    let data = source["data"].as_str().unwrap_or_default();
    let is_base64 = source["type"] == "base64";
    let limit = match (block["type"].as_str(), is_base64) {
        (Some("image"), _) => 5,
        (Some("document"), true) => 32,
        (Some("document"), false) => 5,
        _ => return block,
    };
    let len = if is_base64 {
        data.trim_end_matches('=').len() * 3 / 4
    } else {
        data.len()
    };
    if len <= limit * MB {
        return block;
    }
    text_block(&format!(
        "[media left out: {}, {:.1} MB, more than the {limit} MB that the API takes]",
        source["media_type"].as_str().unwrap_or_default(),
        len as f64 / MB as f64
    ))
}

fn is_thinking(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

/// The model of the last answer that a model gave.
fn last_model(path: &Path) -> Option<String> {
    path.entries.iter().rev().find_map(|entry| {
        let model = entry.value["message"]["model"].as_str()?;
        (entry.value["type"] == "assistant" && model != "<synthetic>").then(|| model.to_owned())
    })
}

/// Whether a model gets reminders as `role: system` messages: those after 4.7 do.
fn wants_system_role(model: &str) -> bool {
    let mut numbers = model.split('-').filter_map(|part| part.parse::<u32>().ok());
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    // A minor number of eight digits is a date.
    (major, if minor > 99 { 0 } else { minor }) >= (4, 8)
}

/// Moves reminders up to the front of their user turn: before the user texts, but not before a
/// result, nor before any assistant line, sent or not (rig 6; 91-95, 91-98).
fn bubble_up(steps: &mut Vec<Step>) {
    for index in 0..steps.len() {
        if steps[index].kind != Kind::Reminder {
            continue;
        }
        let stops = |step: &Step| match step.kind {
            Kind::Assistant | Kind::ApiError | Kind::Reminder => true,
            Kind::User => !step.ids("tool_result", "tool_use_id").is_empty(),
            Kind::LocalCommand => false,
        };
        let to = steps[..index]
            .iter()
            .rposition(stops)
            .map_or(0, |stop| stop + 1);
        let step = steps.remove(index);
        steps.insert(to, step);
    }
}

// ---------------------------------------------------------------------------------------------
// Lines that lose blocks
// ---------------------------------------------------------------------------------------------

/// After an error about an image or a document the line that carried it is sent without (rig 8).
fn remove_rejected_media(steps: &mut Vec<Step>) {
    for error in 0..steps.len() {
        if steps[error].kind != Kind::ApiError {
            continue;
        }
        let text = steps[error].text().unwrap_or_default();
        let media = if text.starts_with("Image was too large. Try resizing") {
            "image"
        } else if text.starts_with("PDF is password protected")
            || text.starts_with("The PDF file was not valid")
        {
            "document"
        } else {
            continue;
        };
        for carrier in carriers(&steps[..error], media, &steps[error]) {
            strip_media(&mut steps[carrier].blocks, media);
        }
    }
    // A prompt of which nothing is left is not sent (91-f0).
    steps.retain(|step| step.kind != Kind::User || !step.blocks.is_empty());
}

/// The lines that carried the rejected media: the user line right before the error, and as long as
/// that is a meta line the one before it (91-21). With `healsDistinctCarrier` the nearest user line
/// that has such media (91-f2).
fn carriers(before: &[Step], media: &str, error: &Step) -> Vec<usize> {
    let flag = |step: &Step, name: &str| step.entry.get(name) == Some(&Value::Bool(true));
    if flag(error, "healsDistinctCarrier") {
        let carries = |step: &Step| step.kind == Kind::User && has(step, media);
        return before.iter().rposition(carries).into_iter().collect();
    }
    let mut carriers = Vec::new();
    for (index, step) in before.iter().enumerate().rev() {
        if step.kind == Kind::User {
            carriers.push(index);
        }
        if step.kind != Kind::User || !flag(step, "isMeta") {
            break;
        }
    }
    carriers
}

fn has(step: &Step, media: &str) -> bool {
    let mut blocks = step.blocks.clone();
    strip_media(&mut blocks, media);
    blocks != step.blocks
}

fn strip_media(blocks: &mut Vec<Value>, media: &str) {
    blocks.retain(|block| block["type"] != media);
    for block in blocks {
        if block["type"] == "tool_result"
            && let Some(content) = block["content"].as_array_mut()
            && content.iter().any(|inner| inner["type"] == media)
        {
            content.retain(|inner| inner["type"] != media);
            if content.is_empty() {
                content.push(text_block("(media removed — rejected by API)"));
            }
        }
    }
}

/// Thoughts that another model signed are not sent, nor lines that held nothing else (43-09,
/// 91-70…72).
fn drop_foreign_thinking(steps: &mut Vec<Step>, model: Option<&str>) {
    steps.retain_mut(|step| {
        if step.kind != Kind::Assistant || step.model().is_none() || step.model() == model {
            return true;
        }
        let before = step.blocks.len();
        step.blocks.retain(|block| !is_signed(block));
        before == step.blocks.len() || !step.blocks.is_empty()
    });
}

fn is_signed(block: &Value) -> bool {
    let signature = block["signature"].as_str().unwrap_or_default();
    block["type"] == "redacted_thinking" || (block["type"] == "thinking" && !signature.is_empty())
}

// ---------------------------------------------------------------------------------------------
// Messages
// ---------------------------------------------------------------------------------------------

#[derive(Clone, Debug)]
struct Message {
    role: &'static str,
    id: Option<String>,
    blocks: Vec<Value>,
}

fn merge(steps: Vec<Step>, system_role: bool) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    // In the role form: the reminders of the turn, sent behind its user message.
    let mut asides: Vec<String> = Vec::new();
    for step in steps {
        match step.kind {
            Kind::Assistant => {
                flush(&mut messages, &mut asides);
                add_assistant(&mut messages, step);
            }
            Kind::ApiError => {}
            Kind::User | Kind::LocalCommand => add_user(&mut messages, step.blocks),
            Kind::Reminder if system_role && reminders::is_for_system_role(&step.entry) => {
                let texts = step
                    .parts
                    .iter()
                    .flatten()
                    .filter_map(|block| block["text"].as_str());
                asides.extend(texts.map(|text| reminders::unwrapped(text).to_owned()));
            }
            // In the role form only right behind the result (44-84), not behind another reminder (15).
            Kind::Reminder => add_reminder(&mut messages, step.parts, asides.is_empty()),
        }
    }
    flush(&mut messages, &mut asides);
    messages
}

fn flush(messages: &mut Vec<Message>, asides: &mut Vec<String>) {
    if !asides.is_empty() {
        let text = std::mem::take(asides).join("\n\n");
        messages.push(Message {
            role: "system",
            id: None,
            blocks: vec![text_block(&text)],
        });
    }
}

/// The lines of one message become one message again, also across the results between them
/// (42-21); different messages in a row stay apart (43-02).
fn add_assistant(messages: &mut Vec<Message>, step: Step) {
    let last = messages
        .iter_mut()
        .rev()
        .find(|message| message.role == "assistant");
    match last {
        Some(message) if message.id.is_some() && message.id == step.id => {
            message.blocks.extend(step.blocks);
        }
        _ => messages.push(Message {
            role: "assistant",
            id: step.id,
            blocks: step.blocks,
        }),
    }
}

/// Users in a row become one message: the earlier text gets a line end where two texts meet, the
/// results move to the front (rig 6).
fn add_user(messages: &mut Vec<Message>, blocks: Vec<Value>) {
    let Some(message) = messages.last_mut().filter(|message| message.role == "user") else {
        messages.push(Message {
            role: "user",
            id: None,
            blocks,
        });
        return;
    };
    if blocks.first().is_some_and(|block| block["type"] == "text") {
        end_with_newline(&mut message.blocks);
    }
    let all = std::mem::take(&mut message.blocks)
        .into_iter()
        .chain(blocks);
    let (results, others): (Vec<Value>, Vec<Value>) =
        all.partition(|block| block["type"] == "tool_result");
    message.blocks = results;
    message.blocks.extend(others);
}

fn end_with_newline(blocks: &mut [Value]) {
    if let Some(last) = blocks.last_mut()
        && last["type"] == "text"
        && let Some(text) = last["text"].as_str()
    {
        last["text"] = format!("{text}\n").into();
    }
}

/// A reminder joins the user message before it: inside of the last result when that is the last
/// block, else as a block. One that opens the turn makes a message of each of its parts (91-a0).
fn add_reminder(messages: &mut Vec<Message>, parts: Vec<Vec<Value>>, may_fold: bool) {
    let opens = messages.last().is_none_or(|message| message.role != "user");
    for blocks in parts {
        match messages.last_mut() {
            Some(message) if !opens => {
                blocks
                    .into_iter()
                    .for_each(|block| add_reminder_block(message, block, may_fold));
            }
            _ => messages.push(Message {
                role: "user",
                id: None,
                blocks,
            }),
        }
    }
}

fn add_reminder_block(message: &mut Message, block: Value, may_fold: bool) {
    // The attribution reminder stands beside the results, and does not keep later ones out.
    let last = message
        .blocks
        .iter_mut()
        .rev()
        .find(|block| !reminders::is_attribution(block));
    match last {
        Some(last)
            if may_fold && last["type"] == "tool_result" && !reminders::is_attribution(&block) =>
        {
            fold(last, block);
        }
        _ => message.blocks.push(block),
    }
}

fn fold(result: &mut Value, block: Value) {
    if let Some(content) = result["content"].as_array_mut() {
        end_with_newline(content);
        content.push(block);
        return;
    }
    // Blanks at both ends are cut off only here (91-80, 91-89).
    let content = js_trim(result["content"].as_str().unwrap_or_default());
    let text = block["text"].as_str().unwrap_or_default();
    let folded = if content.is_empty() {
        text.to_owned()
    } else {
        format!("{content}\n\n{text}")
    };
    result["content"] = folded.into();
}

/// Cuts off what JavaScript calls white space: U+FEFF is, U+0085 is not (91-88).
fn js_trim(text: &str) -> &str {
    text.trim_matches(|c: char| c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}'))
}

/// Makes every call stand before exactly one result, and every result behind its call (rig 7).
fn pair(messages: Vec<Message>) -> Vec<Message> {
    let mut seen: HashSet<String> = HashSet::new();
    let mut paired: Vec<Message> = Vec::new();
    // The calls of the message before that have no result yet.
    let mut open: Vec<String> = Vec::new();
    for mut message in messages {
        match message.role {
            "assistant" => {
                close(&mut paired, &mut open);
                let had_blocks = !message.blocks.is_empty();
                let served = server_results(&message.blocks);
                message.blocks.retain(|block| match block["type"].as_str() {
                    // A call with an id that was used before is dropped (42-12).
                    Some("tool_use") => {
                        let id = block["id"].as_str().unwrap_or_default().to_owned();
                        let is_new = seen.insert(id.clone());
                        if is_new {
                            open.push(id);
                        }
                        is_new
                    }
                    Some("server_tool_use") => served.contains(&block["id"].to_string()),
                    _ => true,
                });
                if had_blocks && message.blocks.is_empty() {
                    message.blocks.push(made_up("[Tool use interrupted]"));
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
                        "[Orphaned tool result removed due to conversation resume]"
                    } else {
                        "(no content)"
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

/// Calls that no user message follows get one with the missing results.
fn close(paired: &mut Vec<Message>, open: &mut Vec<String>) {
    if !open.is_empty() {
        let blocks = std::mem::take(open)
            .iter()
            .map(|id| missing_result(id))
            .collect();
        paired.push(Message {
            role: "user",
            id: None,
            blocks,
        });
    }
}

fn missing_result(id: &str) -> Value {
    json!({
        "type": "tool_result",
        "tool_use_id": id,
        "content": "[Tool result missing due to internal error]",
        "is_error": true,
    })
}

/// The ids of the server calls that are answered in the same message.
fn server_results(blocks: &[Value]) -> HashSet<String> {
    let results = blocks.iter().filter(|block| block["type"] != "tool_use");
    results
        .map(|block| block["tool_use_id"].to_string())
        .collect()
}

/// A text block that the client puts into an assistant message (43-10, 42-12).
fn made_up(text: &str) -> Value {
    json!({"type": "text", "text": text, "citations": []})
}

/// The last touch on a message.
fn finish(mut message: Message) -> Value {
    if message.role == "assistant" {
        if message.blocks.is_empty() {
            message.blocks.push(made_up("(no content)"));
        }
        message
            .blocks
            .retain(|block| block["type"] != "text" || block["text"] != "");
    }
    for block in &mut message.blocks {
        if block["type"] == "tool_use" && block["name"] == "Task" {
            // The one tool that was renamed (42-15, 91-02).
            block["name"] = "Agent".into();
        }
        if block["type"] == "tool_result" && block["is_error"] == true {
            text_only(block);
        }
    }
    json!({"role": message.role, "content": message.blocks})
}

/// NULs are not sent (issue 3, pains 11): what stores a text behind the API may end it there.
fn without_nuls(value: Value) -> Value {
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

/// Blank text, or the text that the client makes up for an empty message.
fn is_blank(block: &Value) -> bool {
    let text = block["text"].as_str().unwrap_or("not a text");
    block["type"] == "text" && (js_trim(text).is_empty() || text == "(no content)")
}

/// A failed result that holds media is sent as one text (91-87).
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
    result["content"] = json!([text_block(&texts.join("\n\n"))]);
}
