//! The updates by which an agent replays a session in the Agent Client Protocol, version 1: one notification a line.

use transcript_format::json::{Json, ObjectBuf};
use transcript_format::object::{Object, Raw};

use crate::Error;
use crate::node::NodeKind;
use crate::strings::{objects, string};

use super::files::{Extra, Files};
use super::new_session::NewSession;
use super::order::Step;
use super::output::{Output, input_object};
use super::rules::{ImagesOfResults, Order, Rules, Summaries};
use super::source_item::{Image, SourceItem};

pub(super) const RULES: Rules = Rules {
    holds_reasoning: true,
    sends_empty: false,
    is_nothing: str::is_empty,
    sends_repeated_results: false,
    holds_string_inputs: true,
    holds_errors: true,
    accepts_any_error: true,
    holds_images: true,
    images_of_results: ImagesOfResults::Inside,
    order: Order::Stored,
    joins_prompts: false,
    summaries: Summaries::Nowhere,
    is_command: |_| false,
    begins_with_prompt: false,
    completes_calls: false,
    adds_answer: false,
    id_separator: None,
};

/// Returns the file of the notifications.
pub(super) fn files(session: &NewSession) -> Files {
    Files {
        main: format!("{}.jsonl", session.id).into(),
        before: Vec::<Extra>::new(),
        after: Vec::new(),
    }
}

/// Writes the notifications.
pub(super) fn write(out: &mut Output<'_>) -> Result<(), Error> {
    if let Some(title) = &out.session.title {
        let update = update("session_info_update").with("title", &**title);
        write_update(out, update)?;
    }
    for at in out.plan.steps.iter().flat_map(Step::items) {
        let item = out.item(*at)?;
        let head = out.head(*at);
        match head.kind {
            NodeKind::ToolCall => {
                let input = if head.is_string {
                    item.input.unwrap_or_else(Json::null)
                } else {
                    input_object(&item)
                };
                let update = update("tool_call")
                    .with("toolCallId", &*head.call_id)
                    .with("title", &*head.name)
                    .with("kind", "other")
                    .with("status", "pending")
                    .with("rawInput", input);
                write_update(out, update)?;
            }
            NodeKind::ToolResult => {
                let status = if item.is_error { "failed" } else { "completed" };
                let content = blocks(out, &item.output, &item).into_iter();
                let content = content.map(|block| {
                    let content = ObjectBuf::new().with("type", "content");
                    Json::from(content.with("content", block))
                });
                let update = update("tool_call_update")
                    .with("toolCallId", &*head.call_id)
                    .with("status", status)
                    .with("content", Json::array(content));
                write_update(out, update)?;
            }
            kind => {
                let id = out.session.seed.uuid("messages").child(*at as u64);
                for block in blocks(out, &item.text, &item) {
                    let update = update(chunk_of(kind))
                        .with("messageId", id)
                        .with("content", block);
                    write_update(out, update)?;
                }
            }
        }
    }
    Ok(())
}

fn chunk_of(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Assistant => "agent_message_chunk",
        NodeKind::Reasoning => "agent_thought_chunk",
        _ => "user_message_chunk",
    }
}

fn update(kind: &str) -> ObjectBuf {
    ObjectBuf::new().with("sessionUpdate", kind)
}

fn write_update(out: &mut Output<'_>, update: ObjectBuf) -> Result<(), Error> {
    let parameters = ObjectBuf::new()
        .with("sessionId", out.session.id)
        .with("update", update);
    let notification = ObjectBuf::new()
        .with("jsonrpc", "2.0")
        .with("method", "session/update")
        .with("params", parameters);
    out.line(&notification)
}

/// Returns a text, if there is one, and the images of an item as blocks.
fn blocks(out: &Output<'_>, text: &str, item: &SourceItem) -> Vec<Json> {
    let block = ObjectBuf::new().with("type", "text").with("text", text);
    let block = (!text.is_empty()).then(|| block.into());
    let images = out.images(item).map(|image| {
        let block = ObjectBuf::new()
            .with("type", "image")
            .with("mimeType", &*image.media_type);
        Json::from(block.with("data", &*image.data))
    });
    block.into_iter().chain(images).collect()
}

/// Returns the items of updates, one notification a line. Chunks that follow each other are one message, unless their `messageId` is
/// another. Lines that are not updates are skipped.
#[must_use]
pub fn items_of_updates(lines: &str) -> Vec<SourceItem> {
    let mut reading = Updates::default();
    for line in lines.split('\n') {
        let line = Object::parse(line).ok();
        let parameters = line.and_then(|line| line.object("params"));
        if let Some(update) = parameters.and_then(|parameters| parameters.object("update")) {
            reading.read(&update);
        }
    }
    reading.items
}

/// The items so far.
#[derive(Default)]
struct Updates {
    items: Vec<SourceItem>,
    /// The kind and the id of the message to which the next chunk may belong.
    open: Option<(NodeKind, Option<String>)>,
}

impl Updates {
    fn read(&mut self, update: &Object<'_>) {
        let kind = match update.str("sessionUpdate").as_deref() {
            Some("user_message_chunk") => NodeKind::User,
            Some("agent_message_chunk") => NodeKind::Assistant,
            Some("agent_thought_chunk") => NodeKind::Reasoning,
            Some("tool_call") => {
                self.call(update);
                return self.result(update);
            }
            Some("tool_call_update") => return self.result(update),
            _ => return,
        };
        let message = Some((kind, string(update, "messageId")));
        if self.open != message {
            self.items.push(SourceItem::new(kind));
            self.open = message;
        }
        let block = update.object("content");
        if let (Some(item), Some(block)) = (self.items.last_mut(), block) {
            match image_of(&block) {
                Some(image) => item.images.push(image),
                None => item.text.push_str(&block.str("text").unwrap_or_default()),
            }
        }
    }

    fn call(&mut self, update: &Object<'_>) {
        self.open = None;
        self.items.push(SourceItem {
            name: string(update, "title"),
            call_id: string(update, "toolCallId"),
            input: update.get("rawInput").map(Json::from),
            ..SourceItem::new(NodeKind::ToolCall)
        });
    }

    /// Reads the result of a call that ended: texts and images, or else whatever the tool returned.
    fn result(&mut self, update: &Object<'_>) {
        let status = update.str("status");
        let is_error = status.as_deref() == Some("failed");
        if !is_error && status.as_deref() != Some("completed") {
            return;
        }
        self.open = None;
        let blocks = objects(update.get("content")).filter_map(|content| content.object("content"));
        let (mut texts, mut images) = (Vec::new(), Vec::new());
        for block in blocks {
            match image_of(&block) {
                Some(image) => images.push(image),
                None => texts.extend(string(&block, "text")),
            }
        }
        let raw = update.get("rawOutput").filter(|_| texts.is_empty());
        texts.extend(raw.map(text_of));
        self.items.push(SourceItem {
            call_id: string(update, "toolCallId"),
            output: texts.join("\n"),
            is_error,
            images,
            ..SourceItem::new(NodeKind::ToolResult)
        });
    }
}

fn text_of(raw: Raw<'_>) -> String {
    match raw.str() {
        Some(text) => text.into_owned(),
        None => raw.text().to_owned(),
    }
}

fn image_of(block: &Object<'_>) -> Option<Image> {
    Some(Image {
        media_type: string(block, "mimeType")?,
        data: string(block, "data").filter(|_| block.str("type").as_deref() == Some("image"))?,
    })
}
