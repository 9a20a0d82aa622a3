//! The messages of a request of Claude Code as items.

use std::cell::RefCell;

use transcript_format::json::{Json, ObjectBuf};
use transcript_format::object::{Object, Raw};

use crate::Error;
use crate::node::NodeKind;
use crate::strings::{objects, string};

use super::source_item::{Image, Items, SourceItem};

/// The messages of a request of Claude Code as items: one for each block.
///
/// `message` returns the JSON of a message by its number: an object with `role` and `content`. One message is held at a time.
pub struct RequestItems<M> {
    message: M,
    /// The message of each item, and its place in it.
    places: Vec<(usize, usize)>,
    /// The number and the items of the message that was read last.
    last: RefCell<(usize, Vec<SourceItem>)>,
}

impl<M: Fn(usize) -> Result<String, Error>> RequestItems<M> {
    /// Reads `count` messages once, to see how many items they have.
    ///
    /// # Errors
    /// When a message cannot be read.
    pub fn of(count: usize, message: M) -> Result<Self, Error> {
        let mut places = Vec::new();
        for number in 0..count {
            let items = items_of(&message(number)?);
            places.extend((0..items.len()).map(|at| (number, at)));
        }
        Ok(Self {
            message,
            places,
            last: RefCell::new((usize::MAX, Vec::new())),
        })
    }
}

impl<M: Fn(usize) -> Result<String, Error>> Items for RequestItems<M> {
    fn count(&self) -> usize {
        self.places.len()
    }

    fn item(&self, at: usize) -> Result<SourceItem, Error> {
        let (number, place) = self.places[at];
        let mut last = self.last.borrow_mut();
        if last.0 != number {
            *last = (number, items_of(&(self.message)(number)?));
        }
        let item = last.1.get(place).cloned();
        Ok(item.unwrap_or_else(|| SourceItem::new(NodeKind::Context)))
    }
}

/// Returns the items of a message. A block of an unknown type is context: nothing that a person or the model said.
fn items_of(message: &str) -> Vec<SourceItem> {
    let Ok(message) = Object::parse(message) else {
        return Vec::new();
    };
    let role = message.str("role").unwrap_or_default();
    let Some(content) = message.get("content") else {
        return Vec::new();
    };
    let kind = match &*role {
        "user" => NodeKind::User,
        "assistant" => NodeKind::Assistant,
        _ => NodeKind::Context,
    };
    if let Some(text) = content.str() {
        return vec![of_text(kind, text.into_owned())];
    }
    let blocks = objects(Some(content));
    blocks.map(|block| item_of(&block, kind)).collect()
}

/// Returns one block of a message of Claude Code as an item: its JSON, which may be a string. `kind` is that of a text: `User` or `Assistant`, by
/// the role of the message. A block of an unknown type is context: nothing that a person or the model said.
#[must_use]
pub fn item_of_block(block: &str, kind: NodeKind) -> SourceItem {
    if let Ok(block) = Object::parse(block) {
        return item_of(&block, kind);
    }
    let text = Raw::parse(block).ok().and_then(Raw::str);
    of_text(kind, text.unwrap_or_default().into_owned())
}

fn item_of(block: &Object<'_>, kind: NodeKind) -> SourceItem {
    let text = |key| string(block, key).unwrap_or_default();
    match block.str("type").as_deref() {
        Some("text") => of_text(kind, text("text")),
        Some("thinking") => SourceItem {
            has_signature: block.str("signature").is_some_and(|text| !text.is_empty()),
            ..of_text(NodeKind::Reasoning, text("thinking"))
        },
        Some("redacted_thinking") => SourceItem {
            has_signature: true,
            ..SourceItem::new(NodeKind::Reasoning)
        },
        Some("tool_use") => SourceItem {
            name: string(block, "name"),
            call_id: string(block, "id"),
            input: block.get("input").map(Json::from),
            ..SourceItem::new(NodeKind::ToolCall)
        },
        Some("tool_result") => result_of(block),
        // The types of documents are not those of images: the report says that they are omitted.
        Some("image" | "document") => of_image(SourceItem::new(kind), block),
        _ => of_text(NodeKind::Context, block.text().to_owned()),
    }
}

fn of_text(kind: NodeKind, text: String) -> SourceItem {
    SourceItem {
        text,
        ..SourceItem::new(kind)
    }
}

fn result_of(block: &Object<'_>) -> SourceItem {
    let mut result = SourceItem {
        call_id: string(block, "tool_use_id"),
        is_error: block.bool("is_error") == Some(true),
        ..SourceItem::new(NodeKind::ToolResult)
    };
    let content = block.get("content");
    if let Some(text) = content.and_then(Raw::str) {
        result.output = text.into_owned();
        return result;
    }
    let mut texts = Vec::new();
    for part in objects(content) {
        match part.str("type").as_deref() {
            Some("image") => result = of_image(result, &part),
            Some("text") => texts.extend(string(&part, "text")),
            // Such as a reference to a tool: its JSON says what it is.
            _ => {
                result.parts_as_text += 1;
                texts.push(ObjectBuf::from(&part).text());
            }
        }
    }
    result.output = texts.join("\n");
    result
}

/// Returns an item with one more image. Only those whose bytes are in the message have data.
fn of_image(mut item: SourceItem, block: &Object<'_>) -> SourceItem {
    let source = block.object("source");
    let image = source.and_then(|source| {
        Some(Image {
            media_type: string(&source, "media_type")?,
            data: string(&source, "data")?,
        })
    });
    match image {
        Some(image) => item.images.push(image),
        None => item.unknown_images += 1,
    }
    item
}
