//! The bytes of one line.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hasher};

use transcript_format::imported::IMPORTED_KEY;
use transcript_format::json::{Json, ObjectBuf};
use transcript_format::kind::EntryKind;
use transcript_format::make::{self, Compaction, NewEntry};
use transcript_format::object::{JsonKind, Raw};
use transcript_format::time;
use uuid::Uuid;

use super::ids::{ResponseNodes, line_id, response_id};
use super::plan::{Line, Planned, Standing, UnknownRecords, What};
use crate::Error;
use crate::content::{Content, Image, ImageData};
use crate::conversation::{Conversation, Damage, NodeId};
use crate::node::{Node, NodeKind, Usage};
use crate::place::Place;
use crate::text::Text;

/// The type of an image when its record names none.
const DEFAULT_MEDIA_TYPE: &str = "image/png";

/// The model of an answer when its record names none.
const UNKNOWN_MODEL: &str = "unknown";

pub(super) fn write(plan: &Planned, at: usize, to: &mut Vec<u8>) -> Result<(), Error> {
    let entry = entry(Writing {
        plan,
        at,
        outline: None,
    })?;
    to.extend_from_slice(entry.text().as_bytes());
    to.push(b'\n');
    Ok(())
}

/// Returns the length of a line with its line feed, and adds what distinguishes its bytes from others to a hash. No text of the
/// conversation is read for it, except for the inputs of calls.
pub(super) fn measure(plan: &Planned, at: usize, hash: &mut impl Hasher) -> Result<u64, Error> {
    let outline = Outline::default();
    let entry = entry(Writing {
        plan,
        at,
        outline: Some(&outline),
    })?;
    let text = entry.text();
    hash.write(text.as_bytes());
    hash.write_u64(outline.hash.borrow().finish());
    Ok(text.len() as u64 + outline.more.get() + 1)
}

fn entry(writing: Writing<'_>) -> Result<NewEntry, Error> {
    let plan = writing.plan;
    let line = plan.lines[writing.at];
    let of = &plan.conversation;
    let engine_line = || make::engine_line(&ObjectBuf::new());
    let (entry, imported) = match line.what {
        What::Head => (engine_line(), writing.head()),
        What::Title => {
            let title = of.metadata.title.as_deref().unwrap_or_default();
            (make::custom_title(title), writing.of_agent())
        }
        What::Refusal => {
            let reason = of.refusal.unwrap_or_default();
            let refusal = writing.of_agent().with("refusal", reason);
            (engine_line(), refusal)
        }
        What::Damage(number) => {
            let damage = of.damage.get(number as usize);
            (engine_line(), writing.damage(damage))
        }
        What::Unknown(number) => {
            let records = plan.unknown.get(number as usize);
            (engine_line(), writing.unknown(records))
        }
        What::BranchEnd(kind, first) => {
            let branch = writing.of_agent().with("branch", kind.name());
            let from = writing.id(first).to_string();
            (engine_line(), branch.with("from", &*from))
        }
        What::Pin(leaf) => {
            let pin = make::last_prompt(None, Some(writing.id(leaf)), true);
            (pin, writing.of_agent())
        }
        What::Boundary => (writing.boundary(line), writing.of_agent()),
        What::Node(id, standing) => writing.node(line, id, standing)?,
    };
    let entry = entry.session_id(&plan.session_id);
    Ok(entry.with(IMPORTED_KEY, imported))
}

/// What a line has without its texts: a character stands for each of them.
#[derive(Default)]
struct Outline {
    /// The number of bytes that the texts take beyond those characters.
    more: Cell<u64>,
    /// The hash of the texts.
    hash: RefCell<DefaultHasher>,
}

impl Outline {
    /// Returns what stands for a text.
    fn text(&self, text: &Text) -> String {
        const STAND_IN: &str = "x";
        if text.is_empty() {
            return String::new();
        }
        let more = text.written_len() - STAND_IN.len() as u64;
        self.more.set(self.more.get() + more);
        text.add_to(&mut *self.hash.borrow_mut());
        STAND_IN.to_owned()
    }
}

/// A line while it is written.
#[derive(Clone, Copy)]
struct Writing<'e> {
    plan: &'e Planned,
    at: usize,
    /// If only its length is wanted.
    outline: Option<&'e Outline>,
}

impl<'e> Writing<'e> {
    fn of(self) -> &'e Conversation {
        &self.plan.conversation
    }

    /// Returns the id of a line. For the length any id does; where the line comes from is a part of it as well.
    fn id(self, at: u32) -> Uuid {
        if let Some(outline) = self.outline {
            outline.hash.borrow_mut().write_u32(at);
            return Uuid::nil();
        }
        let line = self.plan.lines.get(at as usize);
        let (kind, origin) = match line.map(|line| (line.what, line.parent)) {
            Some((What::Node(id, _), _)) => {
                ("node", self.plan.repeats.origin_of(self.of(), id, at))
            }
            // A boundary follows from the line before it.
            Some((What::Boundary, Some(parent))) => return self.boundary_id(parent),
            _ => ("line", super::ids::Origin::Made(at)),
        };
        line_id(self.of(), &self.plan.session_id, kind, origin)
    }

    fn boundary_id(self, parent: u32) -> Uuid {
        let origin = match self.plan.lines.get(parent as usize).map(|line| line.what) {
            Some(What::Node(id, _)) => self.plan.repeats.origin_of(self.of(), id, parent),
            _ => super::ids::Origin::Made(parent),
        };
        line_id(self.of(), &self.plan.session_id, "boundary", origin)
    }

    fn of_agent(self) -> ObjectBuf {
        ObjectBuf::new().with("agent", self.of().agent.name())
    }

    fn head(self) -> ObjectBuf {
        let metadata = &self.of().metadata;
        self.of_agent()
            .with("session", &*metadata.id)
            .with_some("version", metadata.version.as_deref())
            .with_some("forkedFrom", metadata.forked_from.as_deref())
            .with_some("subagentOf", metadata.subagent_of.as_deref())
    }

    fn damage(self, damage: Option<&Damage>) -> ObjectBuf {
        match damage {
            Some(damage) => self
                .at_place(damage.place)
                .with("damage", damage.kind.name()),
            None => self.of_agent(),
        }
    }

    fn unknown(self, records: Option<&UnknownRecords>) -> ObjectBuf {
        let Some(records) = records else {
            return self.of_agent();
        };
        let mut types = ObjectBuf::new();
        for (name, count) in &records.types {
            types.set(name.clone(), *count);
        }
        self.at_place(records.place).with("unknown", types)
    }

    fn at_place(self, place: Place) -> ObjectBuf {
        let source = self.of().source(place.source);
        self.of_agent()
            .with("file", &*source.path.to_string_lossy())
            .with("offset", place.offset)
            .with("length", place.len)
    }

    fn boundary(self, line: Line) -> NewEntry {
        let above = line.parent.map(|parent| self.id(parent));
        let entry = make::compact_boundary(above, Compaction::unknown());
        self.enveloped(entry, line, Standing::Said)
    }

    fn node(
        self,
        line: Line,
        id: NodeId,
        standing: Standing,
    ) -> Result<(NewEntry, ObjectBuf), Error> {
        let node = self.of().node(id);
        let content = self.content(id)?;
        let entry = if node.kind.is_of_model() {
            self.answer(line, node, &content)
        } else {
            self.message(line, node, &content, standing)?
        };
        let parent = line.parent.map(|parent| self.id(parent));
        let entry = self.enveloped(entry.parent(parent), line, standing);
        let origin = match self.stored_place(node) {
            Some(place) => self.at_place(place),
            None => self.of_agent(),
        };
        Ok((entry, origin))
    }

    /// Returns what a line says of the content of a node.
    fn content(self, id: NodeId) -> Result<Content, Error> {
        let Some(outline) = self.outline else {
            return self.of().content(id);
        };
        let (kind, stored) = (self.of().node(id).kind, self.of().stored(id));
        let is_call = kind == NodeKind::ToolCall;
        let text = stored.text.filter(|_| !is_call);
        let has_output = !self.of().node(id).kind.is_of_model() && text.is_none();
        let output = stored.output.filter(|_| has_output);
        let input = stored.input.filter(|_| is_call);
        Ok(Content {
            text: text.map(|text| outline.text(text)),
            name: stored.name.map(str::to_owned),
            call_id: stored.call_id.map(str::to_owned),
            input: input.map(|input| self.of().input(input)).transpose()?,
            output: output.map(|output| outline.text(output)),
            is_error: stored.is_error,
            images: stored.images.to_vec(),
        })
    }

    fn text(self, text: &Text) -> Result<String, Error> {
        match self.outline {
            Some(outline) => Ok(outline.text(text)),
            None => self.of().text(text),
        }
    }

    /// Returns where a node lies; of a summary that the agent puts into a message of its own, where the summary does.
    fn stored_place(self, node: Node<'_>) -> Option<Place> {
        let of_part = || {
            let parts = node.made_of.iter().map(|part| self.of().node(*part));
            let mut summaries = parts.filter(|part| part.kind == NodeKind::Summary);
            summaries.find_map(|summary| summary.origin)
        };
        node.origin.or_else(of_part)
    }

    /// Adds what every entry of the chain has.
    fn enveloped(self, entry: NewEntry, line: Line, standing: Standing) -> NewEntry {
        let metadata = &self.of().metadata;
        let time = time::text(line.millis).unwrap_or_default();
        let at = u32::try_from(self.at).unwrap_or(u32::MAX);
        let entry = match (standing, &self.plan.agent_id) {
            (_, Some(agent)) => entry.sidechain(agent),
            (Standing::Sidechain(number), None) => entry.sidechain(&format!("{number:08x}")),
            _ => entry.with("isSidechain", false),
        };
        let entry = entry
            .uuid(self.id(at))
            .timestamp(&time)
            .with("userType", "external");
        let with = |entry: NewEntry, key: &'static str, value: &Option<String>| match value {
            Some(value) => entry.with(key, &**value),
            None => entry,
        };
        let entry = with(entry, "cwd", &metadata.cwd);
        with(entry, "version", &metadata.version)
    }

    /// Returns a message that goes to the model.
    fn message(
        self,
        line: Line,
        node: Node<'_>,
        content: &Content,
        standing: Standing,
    ) -> Result<NewEntry, Error> {
        let text = content.text.as_deref().or(content.output.as_deref());
        let text = text.unwrap_or_default();
        let call = content.call_id.as_ref().filter(|_| line.answers);
        let images = match (call, node.kind) {
            (Some(_), _) | (None, NodeKind::User) => self.images(content)?,
            _ => None,
        };
        if let Some(call) = call {
            let result = match images {
                None => make::ToolResult::text(call, text),
                Some(images) => make::ToolResult::blocks(call, &raw(&with_text(&images, text))),
            };
            let failed = content.is_error.then(|| result.clone().failed());
            return Ok(make::tool_result(failed.unwrap_or(result)));
        }
        if let Some(images) = images {
            return Ok(make::user_blocks(&raw(&with_text(&images, text))));
        }
        Ok(match (node.kind, standing) {
            (_, Standing::Summary) => make::compact_summary(text),
            (NodeKind::User, Standing::Said | Standing::Sidechain(_)) => make::user(text),
            _ => make::meta(text),
        })
    }

    /// Returns the images of a content as blocks; `None` if it has none.
    fn images(self, content: &Content) -> Result<Option<Vec<Json>>, Error> {
        let images = content.images.iter().map(|image| self.image(image));
        let images = images.collect::<Result<Vec<_>, _>>()?;
        Ok((!images.is_empty()).then_some(images))
    }

    /// Returns an image as a block; as a text when the record does not have its bytes.
    fn image(self, image: &Image) -> Result<Json, Error> {
        let source = match &image.data {
            ImageData::Base64(data) => ObjectBuf::new()
                .with("type", "base64")
                .with(
                    "media_type",
                    image.media_type.as_deref().unwrap_or(DEFAULT_MEDIA_TYPE),
                )
                .with("data", &*self.text(data)?),
            ImageData::Url(url) => ObjectBuf::new()
                .with("type", "url")
                .with("url", &*self.text(url)?),
            ImageData::Path(path) => {
                let text = format!("[image: {}]", self.text(path)?);
                return Ok(text_block(&text).into());
            }
            ImageData::Unknown => return Ok(text_block("[image]").into()),
        };
        let block = ObjectBuf::new()
            .with("type", "image")
            .with("source", source);
        Ok(block.into())
    }

    /// Returns a line of a response.
    fn answer(self, line: Line, node: Node<'_>, content: &Content) -> NewEntry {
        let text = content.text.as_deref().unwrap_or_default();
        let block = match node.kind {
            NodeKind::Reasoning => ObjectBuf::new()
                .with("type", "thinking")
                .with("thinking", text)
                .with("signature", ""),
            NodeKind::ToolCall => self.call(content),
            _ => text_block(text),
        };
        let model = node.model.or(self.of().metadata.model.as_deref());
        let usage = node.usage.map(|usage| usage_json(*usage));
        // Tokens are counted when a response is complete, and until then the reason of its end is unknown.
        let end = match node.kind {
            NodeKind::ToolCall => "tool_use",
            _ => "end_turn",
        };
        let stop_reason = Json::from(usage.is_some().then_some(end));
        let message = ObjectBuf::new()
            .with("model", model.unwrap_or(UNKNOWN_MODEL))
            .with("id", &*self.response(line))
            .with("type", "message")
            .with("role", "assistant")
            .with("content", Json::array([block.into()]))
            .with("stop_reason", stop_reason)
            .with("stop_sequence", Json::null())
            .with_some("usage", usage);
        make::metadata(EntryKind::Assistant).with("message", message)
    }

    fn response(self, line: Line) -> String {
        let lines = self.plan.lines.get(line.response as usize..);
        let lines = lines.unwrap_or_default().iter();
        // Notes can stand between the lines of a response.
        let nodes = lines.filter_map(|line| match line.what {
            What::Node(id, _) => Some((line.response, id)),
            _ => None,
        });
        let mut own = nodes.take_while(|(response, _)| *response == line.response);
        let Some((_, first)) = own.next() else {
            return String::new();
        };
        let is_last = |id: &NodeId| self.of().node(*id).usage.is_some();
        let last = std::iter::once(first)
            .chain(own.map(|(_, id)| id))
            .find(is_last);
        let origin = self.plan.repeats.origin_of(self.of(), first, line.response);
        response_id(self.of(), ResponseNodes { first, last }, origin)
    }

    fn call(self, content: &Content) -> ObjectBuf {
        let at = u32::try_from(self.at).unwrap_or(u32::MAX);
        let id = match &content.call_id {
            Some(id) => Cow::Borrowed(&**id),
            None => Cow::Owned(format!("toolu_{}", self.id(at).simple())),
        };
        ObjectBuf::new()
            .with("type", "tool_use")
            .with("id", &*id)
            .with("name", content.name.as_deref().unwrap_or_default())
            .with("input", input_object(content.input.as_ref()))
    }
}

fn text_block(text: &str) -> ObjectBuf {
    ObjectBuf::new().with("type", "text").with("text", text)
}

fn raw(blocks: &[Json]) -> Vec<Raw<'_>> {
    let blocks = blocks.iter().map(|block| Raw::parse(block.text()));
    blocks.filter_map(Result::ok).collect()
}

/// Returns the blocks of a message: its text, if it has one, and its images.
fn with_text(images: &[Json], text: &str) -> Vec<Json> {
    let text = (!text.is_empty()).then(|| text_block(text).into());
    text.into_iter().chain(images.iter().cloned()).collect()
}

/// Returns the input of a call as an object, which the Messages API wants: another value becomes its member `input`.
fn input_object(input: Option<&Json>) -> Json {
    let Some(input) = input.filter(|input| !input.is_null()) else {
        return ObjectBuf::new().into();
    };
    let kind = Raw::parse(input.text()).map(|raw| raw.kind());
    match kind {
        Ok(JsonKind::Object) => input.clone(),
        _ => ObjectBuf::new().with("input", input.clone()).into(),
    }
}

/// Returns tokens as the Messages API counts them.
fn usage_json(usage: Usage) -> ObjectBuf {
    ObjectBuf::new()
        .with("input_tokens", usage.input)
        .with("cache_creation_input_tokens", usage.cache_write)
        .with("cache_read_input_tokens", usage.cache_read)
        .with("output_tokens", usage.output)
}
