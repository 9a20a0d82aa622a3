//! Assembles a message from the events of a streamed reply of the Messages API.
//!
//! [`Sse`] turns bytes into events, [`Accumulator`] events into a message, and [`Input`] tracks the
//! input of a call. Every byte is examined a bounded number of times, and it makes no difference
//! how the bytes are split into pieces.
//!
//! ```
//! use transcript_format::make;
//! use transcript_format::object::Object;
//! use transcript_messages::stream::{Accumulator, StreamOutcome, Sse};
//!
//! # let bytes = br#"
//! # data: {"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[],"usage":{}}}
//! #
//! # data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
//! #
//! # data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"29.53 days"}}
//! #
//! # data: {"type":"message_stop"}
//! #
//! # "#;
//! # let network = bytes.chunks(7);
//! let mut sse = Sse::new();
//! let mut reply = Accumulator::new();
//! for bytes in network {
//!     sse.push(bytes, |_, data| {
//!         reply.event(data);
//!     });
//! }
//! sse.finish(|_, data| {
//!     reply.event(data);
//! });
//! match reply.finish() {
//!     StreamOutcome::Whole(reply) => {
//!         let entries = make::assistant(&Object::parse(reply.message())?)?;
//!         assert_eq!(entries.len(), 1);
//!     }
//!     StreamOutcome::Partial(reply, _) => println!("cut: {:?}", reply.blocks()),
//!     StreamOutcome::Nothing(why) => println!("{why:?}"),
//!     _ => {}
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block;
mod input;
mod sse;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use transcript_format::json::{Json, ObjectBuf};
use transcript_format::object::{Object, Raw};
use transcript_format::texts::NO_CONTENT;

pub use block::BlockState;
use block::{Block, BlockEnd};
pub use input::Input;
pub use sse::Sse;

/// Assembles one message from the events of its stream.
///
/// It never fails. Blocks of any type are kept with all their fields. A delta of an unknown type,
/// or for a block that is not open, is kept outside the message ([`Reply::aside`]), and so is an event
/// of an unknown type or without one, as platforms send for metadata and requests of tools. Pings, known
/// events where they are not valid, and all events after the end are ignored. After an event that is not JSON the message is not
/// whole, as a part of it is lost.
#[derive(Clone, Debug, Default)]
pub struct Accumulator {
    message: Option<ObjectBuf>,
    blocks: Vec<Block>,
    /// The positions of the open blocks, by their index in the stream.
    open: BTreeMap<u64, usize>,
    aside: Vec<String>,
    end: Option<End>,
    /// An event before the end of the message was not JSON.
    is_torn: bool,
}

#[derive(Clone, Debug)]
enum End {
    Stop,
    Error(String),
}

/// The effect of an event. Blocks are counted from 0 in the order in which they started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StreamStep {
    /// The message started.
    Start,
    /// This block started.
    BlockStart(usize),
    /// This block grew.
    Delta(usize),
    /// This block is complete.
    BlockStop(usize),
    /// The stop reason and the token counts arrived.
    MessageDelta,
    /// The message is complete.
    Stop,
    /// The stream ended with an error.
    Error,
    /// No effect: a ping, an unknown event, or one that is not valid at this point.
    Nothing,
}

/// The result of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamOutcome {
    /// The complete message.
    Whole(Reply),
    /// The part of the message that arrived, with at least one non-empty block. Clients mark
    /// entries made of it with `isAbortedMidStream` and do not run its calls.
    Partial(Reply, Abort),
    /// No content that could be kept.
    Nothing(Abort),
}

/// The reason why a stream ended before the end of its message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Abort {
    /// The API reported an error: its JSON, with `type` and `message`.
    Error(String),
    /// The stream ended without an error.
    Cut,
}

/// A message that was streamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    message: String,
    blocks: Vec<BlockState>,
    aside: Vec<String>,
    is_whole: bool,
}

impl Reply {
    /// Returns the message as JSON, in the form of a reply that was not streamed. It has at least
    /// one block and no empty ones. In a partial message `stop_reason` is usually `null`.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns how complete each block of the content is.
    #[must_use]
    pub fn blocks(&self) -> &[BlockState] {
        &self.blocks
    }

    /// Returns the deltas that could not be applied to the message, and the events of unknown types,
    /// unchanged, in their order. An event that was wrapped is unwrapped.
    #[must_use]
    pub fn aside(&self) -> &[String] {
        &self.aside
    }

    /// Returns whether the message arrived to its end. If not, its last block may be a part.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns the calls of tools to run, in their order: none unless the message [is
    /// whole](Self::is_whole), and none whose input did not arrive completely, as when the model
    /// reached its limit of tokens within it.
    #[must_use]
    pub fn tool_calls(&self) -> Vec<ToolCall> {
        self.calls(|state| self.is_whole && state == BlockState::Whole)
    }

    /// Returns the calls that [`tool_calls`](Self::tool_calls) leaves out, to show them. They must not
    /// run: their input may be a part of what the model wrote, closed so that it is JSON.
    #[must_use]
    pub fn partial_calls(&self) -> Vec<ToolCall> {
        self.calls(|state| !self.is_whole || state != BlockState::Whole)
    }

    fn calls(&self, is_wanted: impl Fn(BlockState) -> bool) -> Vec<ToolCall> {
        let Ok(message) = Object::parse(&self.message) else {
            return Vec::new();
        };
        let blocks = message.array("content").into_iter().flatten();
        let calls = blocks.zip(&self.blocks).filter_map(|(block, state)| {
            let block = block.object()?;
            let is_call = block.str("type").as_deref() == Some("tool_use");
            (is_call && is_wanted(*state)).then_some(())?;
            Some(ToolCall {
                id: block.str("id")?.into_owned(),
                name: block.str("name")?.into_owned(),
                input: block.get("input").map_or("{}", Raw::text).to_owned(),
                state: *state,
            })
        });
        calls.collect()
    }
}

/// A call in a [`Reply`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCall {
    /// The id that the result names.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The input: a JSON object as the model wrote it. Of a call whose `state` is not
    /// [`Whole`](BlockState::Whole), the part that arrived.
    pub input: String,
    /// The completeness of the input.
    pub state: BlockState,
}

/// Returns a JSON text in the frame of AWS streams: an object with the text in base64 under `bytes`
/// within `chunk`, as the client sends its events and [`Accumulator::event`] reads those of the
/// service. The text itself is not checked.
///
/// ```
/// use transcript_messages::stream;
///
/// assert_eq!(stream::wrap("{}"), r#"{"chunk":{"bytes":"e30="}}"#);
/// ```
#[must_use]
pub fn wrap(json: &str) -> String {
    let bytes = ObjectBuf::new().with("bytes", &*STANDARD.encode(json));
    ObjectBuf::new().with("chunk", bytes).text()
}

impl Accumulator {
    /// Returns an accumulator before the first event.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies an event: its JSON, or an object that contains it in base64 under `bytes`, directly
    /// or within `chunk`, as AWS wraps events.
    pub fn event(&mut self, json: &str) -> StreamStep {
        if self.end.is_some() {
            return StreamStep::Nothing;
        }
        let Ok(event) = Object::parse(json) else {
            return self.tear(json);
        };
        match unwrapped(&event) {
            None => self.apply_event(&event),
            Some(json) => match Object::parse(&json) {
                Ok(event) => self.apply_event(&event),
                Err(_) => self.tear(&json),
            },
        }
    }

    /// Notes that something of the message is lost, unless all of it had arrived: bytes
    /// received after a gap may look whole.
    fn tear(&mut self, event: &str) -> StreamStep {
        let is_mark = matches!(event.trim_ascii(), "" | "[DONE]");
        if !is_mark && self.stop_reason().is_none() {
            self.is_torn = true;
            for place in self.open.values() {
                self.blocks[*place].is_torn = true;
            }
        }
        StreamStep::Nothing
    }

    /// Returns whether the message is complete or the stream ended with an error.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Returns the current JSON of a block and its state; `None` while the block is still empty. It
    /// no longer changes after [`StreamStep::BlockStop`].
    #[must_use]
    pub fn block(&self, at: usize) -> Option<(String, BlockState)> {
        let (block, state) = self.blocks.get(at)?.now(self.end_of(at))?;
        Some((block.text().to_owned(), state))
    }

    /// Returns the input of a call as received in pieces so far.
    #[must_use]
    pub fn input(&self, at: usize) -> Option<&Input> {
        self.blocks.get(at)?.input()
    }

    /// Ends the stream and returns its result.
    #[must_use]
    pub fn finish(self) -> StreamOutcome {
        let is_whole = self.is_whole();
        let abort = match &self.end {
            Some(End::Error(error)) => Abort::Error(error.clone()),
            Some(End::Stop) | None => Abort::Cut,
        };
        let Some(mut message) = self.message.clone() else {
            return StreamOutcome::Nothing(abort);
        };
        let blocks = self.blocks.iter().enumerate();
        let blocks = blocks.filter_map(|(at, block)| block.now(self.end_of(at)));
        let (mut content, mut blocks): (Vec<Json>, Vec<BlockState>) = blocks.unzip();
        if content.is_empty() {
            if !is_whole {
                return StreamOutcome::Nothing(abort);
            }
            let placeholder = ObjectBuf::new()
                .with("type", "text")
                .with("text", NO_CONTENT);
            content.push(placeholder.into());
            blocks.push(BlockState::Whole);
        }
        message.set("content", Json::array(content));
        let reply = Reply {
            message: message.text(),
            blocks,
            aside: self.aside,
            is_whole,
        };
        if is_whole {
            StreamOutcome::Whole(reply)
        } else {
            StreamOutcome::Partial(reply, abort)
        }
    }

    /// Returns whether the message is complete. The last event only confirms that; it may be lost.
    fn is_whole(&self) -> bool {
        match self.end {
            _ if self.is_torn => false,
            Some(End::Stop) => self.message.is_some(),
            Some(End::Error(_)) => false,
            None => self.open.is_empty() && self.stop_reason().is_some(),
        }
    }

    fn stop_reason(&self) -> Option<&Json> {
        let reason = self.message.as_ref()?.get("stop_reason")?;
        (!reason.is_null()).then_some(reason)
    }

    /// Returns the end of the block at `at`, as far as it is known.
    fn end_of(&self, at: usize) -> BlockEnd {
        let is_last = at + 1 == self.blocks.len();
        let reason = self.stop_reason().map(Json::text);
        match self.is_whole() {
            _ if is_last && reason.is_some_and(|reason| EARLY_STOP_REASONS.contains(&reason)) => {
                BlockEnd::Early
            }
            true => BlockEnd::OfMessage,
            false => BlockEnd::Open,
        }
    }

    fn apply_event(&mut self, event: &Object<'_>) -> StreamStep {
        match event.str("type").as_deref() {
            Some("message_start") => self.start(event),
            Some("content_block_start") => self.start_block(event),
            Some("content_block_delta") => self.delta(event),
            Some("content_block_stop") => self.stop_block(event),
            Some("message_delta") => self.message_delta(event),
            Some("message_stop") => {
                self.end = Some(End::Stop);
                StreamStep::Stop
            }
            // Proxies send errors without a type.
            Some("error") | None => match event.object("error") {
                Some(error) => {
                    self.end = Some(End::Error(Json::from(error.raw()).text().to_owned()));
                    StreamStep::Error
                }
                None => self.set_aside(event),
            },
            Some("ping") => StreamStep::Nothing,
            Some(_) => self.set_aside(event),
        }
    }

    /// Keeps an event that is not a part of the message.
    fn set_aside(&mut self, event: &Object<'_>) -> StreamStep {
        self.aside.push(event.text().to_owned());
        StreamStep::Nothing
    }

    fn start(&mut self, event: &Object<'_>) -> StreamStep {
        let (None, Some(message)) = (&self.message, event.object("message")) else {
            return StreamStep::Nothing;
        };
        for block in message.array("content").unwrap_or_default() {
            if let Some(block) = block.object() {
                let mut block = Block::new(&block);
                block.stopped = true;
                self.blocks.push(block);
            }
        }
        self.message = Some(ObjectBuf::from(&message));
        StreamStep::Start
    }

    fn start_block(&mut self, event: &Object<'_>) -> StreamStep {
        let (Some(index), Some(block)) = (event.u64("index"), event.object("content_block")) else {
            return StreamStep::Nothing;
        };
        if self.message.is_none() {
            return StreamStep::Nothing;
        }
        let place = self.blocks.len();
        self.open.insert(index, place);
        self.blocks.push(Block::new(&block));
        StreamStep::BlockStart(place)
    }

    fn delta(&mut self, event: &Object<'_>) -> StreamStep {
        let place = event.u64("index").and_then(|index| self.open.get(&index));
        if let (Some(&place), Some(delta)) = (place, event.object("delta"))
            && self.blocks[place].apply_delta(&delta)
        {
            return StreamStep::Delta(place);
        }
        self.set_aside(event)
    }

    fn stop_block(&mut self, event: &Object<'_>) -> StreamStep {
        let place = event
            .u64("index")
            .and_then(|index| self.open.remove(&index));
        let Some(place) = place else {
            return StreamStep::Nothing;
        };
        self.blocks[place].stopped = true;
        StreamStep::BlockStop(place)
    }

    fn message_delta(&mut self, event: &Object<'_>) -> StreamStep {
        let Some(message) = &mut self.message else {
            return StreamStep::Nothing;
        };
        let delta = event.object("delta");
        let in_delta = delta.iter().flat_map(|delta| delta.members());
        let siblings = event
            .members()
            .iter()
            .filter(|(key, _)| !matches!(&**key, "type" | "delta" | "usage"));
        for (key, value) in in_delta.chain(siblings) {
            merge(message, key, *value);
        }
        if let Some(later) = event.object("usage") {
            let usage = usage(message.get("usage"), &later);
            message.set("usage", usage);
        }
        StreamStep::MessageDelta
    }
}

/// The stop reasons, as JSON, of messages that do not end where the model would have ended them. A
/// call without any input may then be one that was only begun.
const EARLY_STOP_REASONS: [&str; 3] = [
    "\"max_tokens\"",
    "\"model_context_window_exceeded\"",
    "\"refusal\"",
];

/// Returns the JSON of an event that AWS wrapped.
fn unwrapped(event: &Object<'_>) -> Option<String> {
    let bytes = match event.object("chunk") {
        Some(chunk) => chunk.str("bytes"),
        None => event.str("bytes"),
    };
    let json = STANDARD.decode(bytes?.as_bytes()).ok()?;
    String::from_utf8(json).ok()
}

/// Merges the counts of a later event into those of `message_start`: the later ones are final, but
/// `output_tokens` never decreases.
fn usage(before: Option<&Json>, later: &Object<'_>) -> ObjectBuf {
    let before = before.and_then(|json| Object::parse(json.text()).ok());
    let mut usage = before.as_ref().map(ObjectBuf::from).unwrap_or_default();
    let tokens = before.and_then(|usage| usage.u64("output_tokens"));
    for (key, value) in later.members() {
        if key == "output_tokens" && value.u64() < tokens {
            continue;
        }
        merge(&mut usage, key, *value);
    }
    usage
}

/// Sets `key`, except that `null` does not replace a value.
fn merge(object: &mut ObjectBuf, key: &str, value: Raw<'_>) {
    if !value.is_null() || object.get(key).is_none() {
        object.set(key.to_owned(), value);
    }
}
