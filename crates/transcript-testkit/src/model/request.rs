//! Stage 3: turns the entries of a path into the messages of the request that continues it.

use serde_json::{Map, Value};

use super::messages::{self, is_blank, is_thinking};
use super::path::{Path, vendor_path};
use super::reminders::text_block;
use super::{reminders, repair};

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
/// `model` is the model that gets the request: thinking that another model signed is omitted, and
/// newer models get reminders as messages of their own. The default is the model of the last answer
/// that is not synthetic. What the client would add for the new prompt (date, token count) is not
/// included.
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

    let system_role = model.as_deref().is_some_and(wants_system_role);
    let mut messages = messages::merge(steps, system_role);
    messages::drop_blank_user_texts(&mut messages);
    messages::calls_last(&mut messages);
    let messages = messages::pair(messages)
        .into_iter()
        .map(|message| messages::without_nuls(messages::finish(message)))
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

/// Identifies the assistant message that a line is a part of.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MessageId {
    /// The value of `message.id`.
    Given(Value),
    /// The line does not have an id. Such lines merge as if they shared one (MSG-2).
    Missing,
    /// A synthetic message of the client; no other line belongs to it.
    Own,
}

impl MessageId {
    pub(super) fn is_same(&self, other: &MessageId) -> bool {
        *self != MessageId::Own && self == other
    }

    /// Returns whether two lines are parts of one message. For open calls and lone thoughts, where
    /// this is used, a line without an id is a message of its own (MSG-2).
    pub(super) fn is_same_given(&self, other: &MessageId) -> bool {
        matches!(self, MessageId::Given(_)) && self == other
    }
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) kind: Kind,
    /// The message that an assistant line is a part of.
    pub(super) id: MessageId,
    pub(super) blocks: Vec<Value>,
    /// The content of a user line was a string, not a list of blocks.
    pub(super) is_plain_string: bool,
    /// The messages of a reminder.
    pub(super) parts: Vec<Vec<Value>>,
    pub(super) entry: Map<String, Value>,
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
            id: MessageId::Own,
            blocks: blocks(&message["content"]),
            is_plain_string: message["content"].is_string(),
            parts: Vec::new(),
            entry: entry.clone(),
        };
        match entry.get("type")?.as_str()? {
            // A user line with an empty list as its content is not sent.
            "user" => {
                load_tools(&mut step.blocks);
                (!step.blocks.is_empty()).then_some(step)
            }
            "assistant" => {
                step.kind = if flag("isApiErrorMessage") {
                    Kind::ApiError
                } else {
                    Kind::Assistant
                };
                step.id = match message.get("id") {
                    None | Some(Value::Null) => MessageId::Missing,
                    Some(id) => MessageId::Given(id.clone()),
                };
                Some(step)
            }
            "system" => {
                step.kind = Kind::LocalCommand;
                step.blocks = blocks(entry.get("content")?);
                step.is_plain_string = entry["content"].is_string();
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
            id: MessageId::Own,
            blocks,
            is_plain_string: false,
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

    /// Returns whether an assistant line contains only thoughts.
    pub(super) fn is_thinking(&self) -> bool {
        self.kind == Kind::Assistant
            && !self.blocks.is_empty()
            && self.blocks.iter().all(is_thinking)
    }

    /// Returns whether an assistant line contains only blank text.
    pub(super) fn is_blank(&self) -> bool {
        self.kind == Kind::Assistant && !self.blocks.is_empty() && self.blocks.iter().all(is_blank)
    }

    /// Returns the first text.
    pub(super) fn text(&self) -> Option<&str> {
        self.blocks.first()?["text"].as_str()
    }

    fn model(&self) -> Option<&str> {
        self.entry.get("message")?["model"].as_str()
    }
}

/// Returns content as a list of blocks.
fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![text_block(text)],
        Value::Array(blocks) => blocks.iter().cloned().map(within_limits).collect(),
        _ => Vec::new(),
    }
}

/// Images of more than 5 MB, PDFs of more than 32 MB and text documents of more than 5 MB are sent
/// as a note, because the API would reject this request and all after it (fixture
/// `pains/10-large-image.jsonl`).
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

/// Returns the model of the last answer that is not synthetic.
fn last_model(path: &Path) -> Option<String> {
    path.entries.iter().rev().find_map(|entry| {
        let model = entry.value["message"]["model"].as_str()?;
        (entry.value["type"] == "assistant" && model != "<synthetic>").then(|| model.to_owned())
    })
}

/// The tools of the client that a tool search can name: those that its sessions list as loaded on
/// demand, and those that are always loaded. The tools depend on how the client was started; these
/// are the tools of a start without options.
const TOOLS: [&str; 22] = [
    "Agent",
    "Bash",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EnterWorktree",
    "ExitWorktree",
    "Monitor",
    "NotebookEdit",
    "Read",
    "SendMessage",
    "Skill",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskStop",
    "TaskUpdate",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Write",
];

/// Removes references to tools that the client does not have from the results of a tool search. A
/// result with nothing else gets a text about the removal. A line that still refers to a tool gets a
/// final text that the tool was loaded (MSG-14).
fn load_tools(blocks: &mut Vec<Value>) {
    let is_reference = |block: &Value| block["type"] == "tool_reference";
    let mut loads = false;
    for result in blocks
        .iter_mut()
        .filter(|block| block["type"] == "tool_result")
    {
        let Some(content) = result["content"].as_array_mut() else {
            continue;
        };
        let before = content.len();
        content.retain(|block| {
            !is_reference(block) || TOOLS.iter().any(|tool| block["tool_name"] == *tool)
        });
        if content.is_empty() && before > 0 {
            content.push(text_block(
                "[Tool references removed - tools no longer available]",
            ));
        }
        loads |= content.iter().any(is_reference);
    }
    if loads {
        blocks.push(text_block("Tool loaded."));
    }
}

/// Returns whether a model gets reminders as messages of role `system`: the models newer than 4.7 do
/// (NOTE-6). The version is the first number in the name and the number directly after it:
/// `claude-opus-4-8` is 4.8; `claude-opus-4-20250514` is 4.0, since eight digits are a date.
fn wants_system_role(model: &str) -> bool {
    let Some(start) = model.find(|c: char| c.is_ascii_digit()) else {
        return false;
    };
    let mut numbers = model[start..].split(['-', '.']).map(|part| {
        let end = part
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(part.len());
        &part[..end]
    });
    let major: u32 = numbers
        .next()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0);
    let minor = numbers.next().filter(|digits| digits.len() <= 2);
    let minor: u32 = minor.and_then(|digits| digits.parse().ok()).unwrap_or(0);
    major > 4 || (major == 4 && minor > 7)
}

/// Moves reminders to the front of their user turn: before the user texts, but not before a result,
/// nor before any assistant line, sent or not (NOTE-2).
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

/// Removes an image or a document that the API rejected from the line that contained it.
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
    // A prompt with nothing left is not sent (ERR-4).
    steps.retain(|step| step.kind != Kind::User || !step.blocks.is_empty());
}

/// Returns the lines that carried the rejected media: the user line right before the error, and
/// while that is a meta line, also the one before it (ERR-2). With `healsDistinctCarrier`, the nearest
/// user line that has such media (ERR-3).
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

/// Removes thoughts that another model signed, and lines that contained nothing else (MSG-10).
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
