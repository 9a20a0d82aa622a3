//! Stage 3: turns the entries of a path into the messages of the request that continues it.

use serde_json::{Map, Value};
use transcript_format::texts::MEDIA_TOO_LARGE;
use transcript_format::{client_tools, texts};

use super::blocks::text_block;
use super::path::{Path, path};
use super::step::{Kind, MessageId, Step};
use super::version::Version;
use super::{js, lines, messages, reminders, rendered, repair};

/// The messages that the client sends when it resumes a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// `role` and `content` of each message, content always a list of blocks; `None` when the
    /// client refuses.
    pub messages: Option<Vec<Value>>,
    /// The reason why the client refuses to resume.
    pub refusal: Option<String>,
}

/// The parameters of a request besides the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'o> {
    /// The new prompt.
    pub prompt: Option<&'o str>,
    /// The model that gets the request: thinking that another model signed is omitted, and newer
    /// models get reminders as messages of their own. The default is the model of the last answer that
    /// is not synthetic.
    pub model: Option<&'o str>,
    /// The version of the client, such as `2.1.331`. The default is that of the newest line that has
    /// one.
    pub version: Option<&'o str>,
    /// The time of the request in milliseconds since 1970, for the age of memories. The default is
    /// the time at which the attachment with the memories was written.
    pub now: Option<i64>,
}

/// Returns the request that the client would send for the file `bytes` and a new `prompt` to `model`.
pub fn vendor_request(bytes: &[u8], prompt: Option<&str>, model: Option<&str>) -> Request {
    let options = Options {
        prompt,
        model,
        ..Options::default()
    };
    vendor_request_with(bytes, &options)
}

/// Returns the request that the client would send for the file `bytes`. What the client would add for
/// the new prompt (date, token count) is not included.
pub fn vendor_request_with(bytes: &[u8], options: &Options<'_>) -> Request {
    let lines = lines::parse(bytes);
    let version = options.version.and_then(Version::parse);
    let version = version.unwrap_or_else(|| Version::of(&lines));
    let path = path(&lines, version);
    match refusal(&path) {
        Some(refusal) => Request {
            messages: None,
            refusal: Some(refusal),
        },
        None => Request {
            messages: Some(request_messages(&path, version, options)),
            refusal: None,
        },
    }
}

/// Returns why the client refuses to resume.
fn refusal(path: &Path) -> Option<String> {
    if path.is_subagent {
        // The client finds no conversation in the file of a subagent (LEAF-19).
        return Some("all messages are on sidechains".to_owned());
    }
    let mut entries = path
        .entries
        .iter()
        .filter_map(|entry| entry.value.as_object());
    let failure = entries.find_map(reminders::failure).map(str::to_owned);
    path.refusal.clone().or(failure)
}

fn request_messages(path: &Path, version: Version, options: &Options<'_>) -> Vec<Value> {
    let model = options
        .model
        .map(str::to_owned)
        .or_else(|| last_model(path));
    let is_newer = model.as_deref().is_some_and(wants_system_role);
    let reader = Reader {
        version,
        is_newer,
        now: options.now,
        recorded_tools: recorded_tools(path),
        referred_tools: referred_tools(path),
    };

    let mut steps: Vec<Step> = path
        .entries
        .iter()
        .filter_map(|entry| reader.step(entry.value.as_object()?))
        .collect();
    repair::repair(&mut steps);
    if let Some(prompt) = options.prompt {
        steps.push(Step::user(vec![text_block(prompt)]));
    }
    bubble_up(&mut steps);
    remove_rejected_media(&mut steps);
    steps.retain(|step| step.kind != Kind::Silent);
    drop_foreign_thinking(&mut steps, model.as_deref());

    let mut messages = messages::merge(steps, is_newer);
    messages::drop_blank_user_texts(&mut messages);
    messages::calls_last(&mut messages);
    messages::pair(messages)
        .into_iter()
        .map(|message| js::with_doubles(messages::without_nuls(messages::finish(message))))
        .collect()
}

// ---------------------------------------------------------------------------------------------
// Steps: the entries that matter, one by one
// ---------------------------------------------------------------------------------------------

/// The parameters of steps besides the entries.
struct Reader {
    version: Version,
    /// Whether the request goes to one of the newer models.
    is_newer: bool,
    now: Option<i64>,
    /// The tools that the session itself records (MSG-14).
    recorded_tools: Vec<String>,
    /// The tools that results of the path refer to.
    referred_tools: Vec<String>,
}

impl Reader {
    /// `None` for entries that have no effect on the request.
    fn step(&self, entry: &Map<String, Value>) -> Option<Step> {
        let flag = |name: &str| entry.get(name) == Some(&Value::Bool(true));
        let message = entry.get("message").unwrap_or(&Value::Null);
        let mut step = Step {
            kind: Kind::Silent,
            id: MessageId::Own,
            blocks: Vec::new(),
            is_plain_string: false,
            parts: Vec::new(),
            entry: entry.clone(),
        };
        match entry.get("type")?.as_str()? {
            "user" => {
                let blocks = self.user_blocks(entry, &message["content"]);
                // A user line with an empty list as its content is not sent.
                if !flag("isVirtual") && !blocks.is_empty() {
                    step.kind = Kind::User;
                    step.is_plain_string = message["content"].is_string();
                    step.blocks = blocks;
                }
            }
            "assistant" if flag("isVirtual") => return None,
            "assistant" => {
                let is_synthetic = message["model"] == "<synthetic>";
                step.kind = if flag("isApiErrorMessage") && is_synthetic {
                    Kind::ApiError
                } else {
                    Kind::Assistant
                };
                step.blocks = blocks(&message["content"]);
                step.id = match message.get("id") {
                    None | Some(Value::Null) if entry.contains_key("requestId") => {
                        MessageId::Missing
                    }
                    None | Some(Value::Null) => MessageId::Own,
                    Some(id) => MessageId::Given(id.clone()),
                };
            }
            "system" => {
                let is_command = entry.get("subtype") == Some(&"local_command".into());
                // The output that only the person sees is not sent (MSG-6).
                if is_command && !flag("isDisplayOnly") && entry.contains_key("content") {
                    step.kind = Kind::LocalCommand;
                    step.blocks = blocks(&entry["content"]);
                    step.is_plain_string = entry["content"].is_string();
                }
            }
            "attachment" => {
                if !self.lacks_tools_for(entry) {
                    step.parts = reminders::parts(entry, self.now);
                }
                if !step.parts.is_empty() {
                    step.kind = Kind::Reminder;
                }
            }
            _ => return None,
        }
        Some(step)
    }

    /// Returns the blocks of a user line, with the frames that the client puts around texts that are
    /// not of the user.
    fn user_blocks(&self, entry: &Map<String, Value>, content: &Value) -> Vec<Value> {
        let flag = |name: &str| entry.get(name) == Some(&Value::Bool(true));
        let mut blocks = blocks(content);
        let is_text = matches!(&blocks[..], [block] if block["type"] == "text");
        if self.version.wraps_own_notes() && flag("isMeta") && is_text {
            let text = blocks[0]["text"].as_str().unwrap_or_default().to_owned();
            let mut framed = None;
            if flag("hookText") {
                framed = Some(rendered::wrap(&rendered::hook_text(&text)));
            }
            if flag("ownNote") {
                framed = Some(rendered::wrap(framed.as_deref().unwrap_or(&text)));
            }
            if let Some(framed) = framed {
                blocks = vec![text_block(&framed)];
            }
        }
        if entry.get("origin").unwrap_or(&Value::Null)["kind"] == "task-notification" {
            blocks = notification(blocks);
        }
        let is_known = |name: &str| {
            client_tools::is_known(name, self.is_newer, |tool| {
                self.referred_tools.iter().any(|referred| referred == tool)
            }) || self.recorded_tools.iter().any(|tool| tool == name)
        };
        load_tools(&mut blocks, is_known);
        blocks
    }

    /// Returns whether an attachment is about tools that a newer model does not have.
    fn lacks_tools_for(&self, entry: &Map<String, Value>) -> bool {
        let attachment = entry.get("attachment").unwrap_or(&Value::Null);
        let is_stored = reminders::stored_parts(entry).is_some();
        self.is_newer && !is_stored && attachment["type"] == "task_reminder"
    }
}

/// Returns the blocks of a line about a background task: its texts as one reminder, then its other
/// blocks (NOTE-10).
fn notification(blocks: Vec<Value>) -> Vec<Value> {
    let (texts, others): (Vec<Value>, Vec<Value>) = blocks
        .into_iter()
        .partition(|block| block["type"] == "text");
    let texts: Vec<&str> = texts
        .iter()
        .filter_map(|block| block["text"].as_str())
        .collect();
    let text = rendered::wrap(&rendered::notification(&texts.join("\n")));
    std::iter::once(text_block(&text)).chain(others).collect()
}

/// Returns the names of the tools that results of the path refer to.
fn referred_tools(path: &Path) -> Vec<String> {
    let lists = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let entries = path.entries.iter();
    let blocks = entries.flat_map(|entry| lists(&entry.value["message"]["content"]));
    let results = blocks.filter(|block| block["type"] == "tool_result");
    let inner = results.flat_map(|result| lists(&result["content"]));
    let references = inner.filter(|block| block["type"] == "tool_reference");
    references
        .filter_map(|block| block["tool_name"].as_str().map(str::to_owned))
        .collect()
}

/// Returns the names of the tools that attachments of the path record with their definitions.
fn recorded_tools(path: &Path) -> Vec<String> {
    let attachments = path.entries.iter().map(|entry| &entry.value["attachment"]);
    let records = attachments.filter(|attachment| attachment["type"] == "deferred_tools_record");
    let tools = records.flat_map(|record| record["entries"].as_array().into_iter().flatten());
    let is_complete =
        |tool: &&Value| tool["input_schema"]["type"] == "object" && tool["defer_loading"] == true;
    tools
        .filter(is_complete)
        .filter_map(|tool| tool["name"].as_str().map(str::to_owned))
        .collect()
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
        "{MEDIA_TOO_LARGE}{}, {:.1} MB, more than the {limit} MB that the API takes]",
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

/// Removes references to tools that the client does not have from the results of a tool search. A
/// result with nothing else gets a text about the removal. A line that still refers to a tool gets a
/// final text that the tool was loaded (MSG-14).
fn load_tools(blocks: &mut Vec<Value>, is_known: impl Fn(&str) -> bool) {
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
            !is_reference(block) || block["tool_name"].as_str().is_some_and(&is_known)
        });
        if content.is_empty() && before > 0 {
            content.push(text_block(texts::TOOL_REFERENCES_REMOVED));
        }
        loads |= content.iter().any(is_reference);
    }
    if loads {
        blocks.push(text_block(texts::TOOL_LOADED));
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
            Kind::LocalCommand | Kind::Silent => false,
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
        let media = match text {
            "Image was too large. Try resizing the image or using a different approach." => "image",
            "PDF is password protected. Try using a CLI tool to extract or convert the PDF."
            | "The PDF file was not valid. Try converting it to text first (e.g., pdftotext)." => {
                "document"
            }
            _ => continue,
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
        if step.kind == Kind::Silent && !step.is_system() {
            continue;
        }
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
                content.push(text_block(texts::MEDIA_REJECTED));
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
