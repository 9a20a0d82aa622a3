//! Requests made by hand: messages are put together, continue a session if there is one, and become
//! the body of a call of the Messages API.
//!
//! ```
//! use transcript_format::object::Object;
//! use transcript_messages::builder::{MessageList, MessageBuilder, RequestSettings};
//!
//! let mut talk = MessageList::new();
//! talk.user("Which files are here?")?;
//! let input = Object::parse(r#"{"command":"ls"}"#)?;
//! talk.push(MessageBuilder::assistant().tool_use("toolu_1", "Bash", &input))?;
//! talk.push(MessageBuilder::user().tool_result("toolu_1", "Cargo.toml"))?;
//! talk.user("Show me the first one.")?;
//!
//! let built = talk.build()?;
//! assert_eq!(built.messages.len(), 3);
//! println!("{} was merged; about {} tokens", built.notes.len(), built.estimate().tokens);
//! let body = built.to_request(&RequestSettings::new("claude-sonnet-5", 1024).stream(true));
//! # assert!(Object::parse(&body)?.array("messages").is_some_and(|all| all.len() == 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The result passes [`lint`](super::lint()): the passes of [`make_strict`](super::make_strict)
//! make repairs that have only one reasonable form, adjacent messages of one role are joined, and
//! [`BuiltMessages::notes`] lists these changes. Errors are only pairs that do not fit (a result
//! without its call, a call without its result, an id that is used twice) and media that the API
//! refuses.
//!
//! [`SystemPrompt`] is the other half of a request: named sections that become one text, within a
//! limit of tokens, and a [fingerprint](PromptFingerprint) to compare it with a later one.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use transcript_format::json::{Json, ObjectBuf};
use transcript_format::object::{JsonKind, Object, Raw};

use super::block::{Block, BlockKind};
use super::estimate::TokenEstimate;
use super::log::{Log, OmissionReason, SyntheticKind};
use super::media;
use super::message::{Joined, Message, Role};
use super::provider::{Limits, Provider};
use super::rule::Rule;
use super::strict::Part;
use super::text::safe;
use super::{image, pair, strict};

pub use super::prompt::{
    AssembledPrompt, GitContext, OmittedSection, PromptChanges, PromptFingerprint, PromptSection,
    SectionFingerprint, SystemPrompt, text_hash,
};

/// The limits for blocks that are added to a message.
const LIMITS: &Limits = Provider::Messages.limits();

/// One message under construction.
///
/// Blocks keep the order in which they are added, except that results of tools are sent first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct MessageBuilder {
    role: Role,
    blocks: Vec<Block>,
}

impl MessageBuilder {
    /// Starts a user message.
    pub fn user() -> Self {
        Self::new(Role::User)
    }

    /// Starts an assistant message.
    pub fn assistant() -> Self {
        Self::new(Role::Assistant)
    }

    fn new(role: Role) -> Self {
        Self {
            role,
            blocks: Vec::new(),
        }
    }

    /// Adds a text. A text of white space only is omitted when the conversation is built.
    pub fn text(self, text: &str) -> Self {
        self.with(Block::plain_text(text))
    }

    /// Adds an image: PNG, JPEG, GIF or WebP, known by its first bytes.
    ///
    /// # Errors
    /// [`Error::UnknownImage`], and [`Error::TooLarge`] over 5 MiB of base64, which are 3.75 MiB of the image.
    pub fn image(self, bytes: &[u8]) -> Result<Self, Error> {
        let media_type = image::media_type(bytes).ok_or(Error::UnknownImage)?;
        // The limit of the API counts the base64, which is four thirds of the image.
        check_len(bytes.len().div_ceil(3) * 4, LIMITS.image_text)?;
        let source = base64_source(media_type, bytes);
        Ok(self.with_media("image", BlockKind::Image, source))
    }

    /// Adds an image that is base64 already.
    ///
    /// # Errors
    /// The errors of [`Self::image`]; [`Error::NotBase64`]; and
    /// [`Error::DataUrl`] when the data starts with `data:`.
    pub fn image_base64(self, data: &str) -> Result<Self, Error> {
        refuse_data_url(data)?;
        // Before it is decoded: a text beyond the limit is refused without a second copy in memory.
        check_len(data.len(), LIMITS.image_text)?;
        let bytes = STANDARD.decode(data).map_err(|_| Error::NotBase64)?;
        self.image(&bytes)
    }

    /// Adds an image that the API fetches.
    ///
    /// # Errors
    /// [`Error::DataUrl`] for a `data:` address.
    pub fn image_url(self, url: &str) -> Result<Self, Error> {
        let source = url_source(url)?;
        Ok(self.with_media("image", BlockKind::Image, source))
    }

    /// Adds a document: a PDF, known by its first bytes, or else text in UTF-8.
    ///
    /// # Errors
    /// [`Error::UnknownDocument`] when it is neither or empty, and [`Error::TooLarge`] over 32 MB
    /// for a PDF, 5 MB for a text.
    pub fn document(self, bytes: &[u8]) -> Result<Self, Error> {
        let source = if bytes.starts_with(b"%PDF-") {
            check_len(bytes.len(), LIMITS.pdf)?;
            base64_source("application/pdf", bytes)
        } else {
            let text = std::str::from_utf8(bytes).ok();
            let text = text.filter(|text| !text.is_empty());
            let text = text.ok_or(Error::UnknownDocument)?;
            check_len(bytes.len(), LIMITS.text_document)?;
            source("text")
                .with("media_type", "text/plain")
                .with("data", text)
        };
        Ok(self.with_media("document", BlockKind::Document, source))
    }

    /// Adds a PDF that the API fetches.
    ///
    /// # Errors
    /// [`Error::DataUrl`] for a `data:` address.
    pub fn document_url(self, url: &str) -> Result<Self, Error> {
        let source = url_source(url)?;
        Ok(self.with_media("document", BlockKind::Document, source))
    }

    /// Adds a call of a tool.
    pub fn tool_use(self, id: &str, name: &str, input: &Object<'_>) -> Self {
        let call = ObjectBuf::new()
            .with("type", "tool_use")
            .with("id", id)
            .with("name", name)
            .with("input", input.raw());
        self.with(made(&call, BlockKind::ToolUse, Some(id)))
    }

    /// Adds the result of a tool.
    pub fn tool_result(self, id: &str, text: &str) -> Self {
        self.with_result(id, &result(id).with("content", text))
    }

    /// Adds the result of a tool: the texts, images and documents of `content`.
    pub fn tool_result_of(self, id: &str, content: &Self) -> Self {
        let blocks = content.blocks.iter().map(Block::json);
        let blocks = blocks.filter_map(|json| Raw::parse(json).ok());
        let content = Json::array(blocks.map(Json::from));
        self.with_result(id, &result(id).with("content", content))
    }

    /// Adds the result of a call that failed, with the reason.
    pub fn tool_error(self, id: &str, text: &str) -> Self {
        self.with_result(id, &result(id).with("content", text).with("is_error", true))
    }

    /// Adds content in the form of the API, such as that of its reply: a text, or a list of blocks.
    /// The blocks stay as they are, except that `cache_control` is removed, and that failed results
    /// keep only their texts, as the API accepts no more.
    pub fn content(mut self, content: Raw<'_>) -> Self {
        match content.array() {
            Some(blocks) => {
                self.blocks.extend(blocks.into_iter().map(Block::read));
            }
            None if content.kind() == JsonKind::String => {
                self.blocks.push(Block::plain(content));
            }
            None => self.blocks.push(Block::read(content)),
        }
        for block in &mut self.blocks {
            if block.kind() == BlockKind::ToolResult {
                pair::text_only(block);
            }
        }
        self
    }

    fn with(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    fn with_media(self, type_name: &str, kind: BlockKind, source: ObjectBuf) -> Self {
        let media = ObjectBuf::new()
            .with("type", type_name)
            .with("source", source);
        self.with(made(&media, kind, None))
    }

    fn with_result(self, id: &str, result: &ObjectBuf) -> Self {
        self.with(made(result, BlockKind::ToolResult, Some(id)))
    }
}

fn made(object: &ObjectBuf, kind: BlockKind, id: Option<&str>) -> Block {
    let json = object.text();
    // Lone surrogates and NULs of the caller would make some providers refuse the request.
    let json = match safe(&json) {
        Cow::Borrowed(_) => json,
        Cow::Owned(safe) => safe,
    };
    Block::new(json, kind, id.map(Box::from))
}

fn result(id: &str) -> ObjectBuf {
    ObjectBuf::new()
        .with("type", "tool_result")
        .with("tool_use_id", id)
}

fn source(kind: &str) -> ObjectBuf {
    ObjectBuf::new().with("type", kind)
}

fn base64_source(media_type: &str, bytes: &[u8]) -> ObjectBuf {
    source("base64")
        .with("media_type", media_type)
        .with("data", &*STANDARD.encode(bytes))
}

fn url_source(url: &str) -> Result<ObjectBuf, Error> {
    refuse_data_url(url)?;
    Ok(source("url").with("url", url))
}

fn refuse_data_url(text: &str) -> Result<(), Error> {
    // The scheme of an address has no case: `DATA:` is the same.
    let scheme = text.trim_start().get(..5);
    if scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")) {
        return Err(Error::DataUrl);
    }
    Ok(())
}

fn check_len(len: usize, limit: usize) -> Result<(), Error> {
    if len > limit {
        return Err(Error::TooLarge);
    }
    Ok(())
}

/// The ids of calls.
type Ids = HashSet<Box<str>>;

/// A conversation to which messages are added.
#[derive(Clone, Debug, Default)]
pub struct MessageList {
    pushed: Vec<(Role, Vec<Block>)>,
    /// The ids of all calls.
    calls: Ids,
    /// The ids of calls without a result so far; only the last assistant message can have any.
    open: Ids,
}

impl MessageList {
    /// Starts an empty conversation.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Continues from `messages`, such as those of a session that is resumed.
    ///
    /// # Errors
    /// The errors of [`Self::push`]. Messages in which [`lint`](super::lint()) finds no problem cause none.
    pub fn resume(messages: &[Message]) -> Result<Self, Error> {
        let mut conversation = Self::new();
        for message in messages {
            conversation.push(MessageBuilder {
                role: message.role,
                blocks: message.blocks().to_vec(),
            })?;
        }
        Ok(conversation)
    }

    /// Adds a user text.
    ///
    /// # Errors
    /// The errors of [`Self::push`].
    pub fn user(&mut self, text: &str) -> Result<(), Error> {
        self.push(MessageBuilder::user().text(text))
    }

    /// Adds an assistant text.
    ///
    /// # Errors
    /// The errors of [`Self::push`].
    pub fn assistant(&mut self, text: &str) -> Result<(), Error> {
        self.push(MessageBuilder::assistant().text(text))
    }

    /// Adds a message. One of the same role as the last is joined to it when the conversation is
    /// built, and a user message after a `system` message is joined to the user message before
    /// that.
    ///
    /// # Errors
    /// [`Error::Pair`] when the id of a call was used before, a result has no open call, or an
    /// assistant message follows a call without a result; [`Error::TooLarge`]. The conversation is
    /// then unchanged.
    pub fn push(&mut self, message: MessageBuilder) -> Result<(), Error> {
        let MessageBuilder { role, blocks } = message;
        // All checks come before the first change, so that an error leaves the conversation as it was.
        let is_too_large = |block: &Block| media::is_too_large(block, Provider::Messages);
        if blocks.iter().any(is_too_large) {
            return Err(Error::TooLarge);
        }
        let (calls, answered) = self.pair(role, &blocks)?;
        self.open.extend(calls.iter().cloned());
        self.calls.extend(calls);
        for id in &answered {
            self.open.remove(id);
        }
        self.pushed.push((role, blocks));
        Ok(())
    }

    /// Pairs the calls and results of a message. Returns the ids of its calls, and of those that it
    /// answers.
    fn pair(&self, role: Role, blocks: &[Block]) -> Result<(Ids, Ids), Error> {
        let is_answer = role == Role::Assistant;
        // A second assistant message in a row is joined to the first one: results may still follow both.
        if is_answer && self.pushed.last().is_some_and(|last| last.0 != role) {
            self.check_answered()?;
        }
        let (mut calls, mut answered) = (Ids::new(), Ids::new());
        for block in blocks {
            let id = block.call_id().unwrap_or_default();
            match block.kind() {
                BlockKind::ToolUse
                    if is_answer && (self.calls.contains(id) || !calls.insert(id.into())) =>
                {
                    return Err(Error::pair(Rule::RepeatedCall, id));
                }
                BlockKind::ToolResult => {
                    let is_open = self.open.contains(id) || calls.contains(id);
                    if !is_open || !answered.insert(id.into()) {
                        let is_answered = self.calls.contains(id) || calls.contains(id);
                        let rule = if is_answered {
                            Rule::RepeatedResult
                        } else {
                            Rule::OrphanResult
                        };
                        return Err(Error::pair(rule, id));
                    }
                }
                _ => {}
            }
        }
        Ok((calls, answered))
    }

    fn check_answered(&self) -> Result<(), Error> {
        // The least id: a set has no order, and the error should be the same each time.
        match self.open.iter().min() {
            Some(id) => Err(Error::pair(Rule::MissingResult, id)),
            None => Ok(()),
        }
    }

    /// Builds the messages of a request. More messages can be added afterwards.
    ///
    /// White space at the end of a last answer is removed. A conversation that starts with an
    /// answer gets a user message before it.
    ///
    /// # Errors
    /// [`Error::Pair`] when a call has no result, and [`Error::NothingToSend`] when no block is
    /// left.
    pub fn build(&self) -> Result<BuiltMessages, Error> {
        self.check_answered()?;
        let mut origins = Vec::new();
        let mut log = Log::default();
        let mut messages = strict::repair_messages(
            self.messages(&mut origins),
            Part::WHOLE,
            Provider::Messages,
            &mut log,
        );
        let mut notes = notes(&log, &origins);
        let mut is_empty = true;
        for (at, message) in messages.iter_mut().enumerate() {
            // The passes move, join and drop blocks: only their origins show from which push they are.
            let mut parts = BTreeSet::new();
            for block in message.blocks.iter_mut() {
                let origin = block.origin().and_then(|number| origins.get(number));
                block.set_origin(origin.and_then(|origin| origin.given));
                parts.extend(origin.map(|origin| origin.pushed));
            }
            // Messages of synthetic blocks alone would send nothing of the caller.
            is_empty &= parts.is_empty();
            let kind = NoteKind::Merged { message: at };
            notes.extend(
                parts
                    .into_iter()
                    .skip(1)
                    .map(|pushed| BuildNote { pushed, kind }),
            );
        }
        if is_empty {
            return Err(Error::NothingToSend);
        }
        // A stable sort: the notes about one push stay in the order of the passes.
        notes.sort_by_key(|note| note.pushed);
        Ok(BuiltMessages { messages, notes })
    }

    /// Returns the messages, with adjacent ones of one role joined. Each block gets its place in
    /// `origins` as its origin, by which it is recognized after the passes.
    fn messages(&self, origins: &mut Vec<BlockOrigin>) -> Vec<Message> {
        let mut joined: Vec<Joined> = Vec::with_capacity(self.pushed.len());
        for (pushed, (role, blocks)) in self.pushed.iter().enumerate() {
            // Copies: more messages can be pushed after this call, and another request built.
            let mut blocks = blocks.clone();
            for block in &mut blocks {
                let given = block.origin();
                block.set_origin(Some(origins.len()));
                origins.push(BlockOrigin { pushed, given });
            }
            let message = Message::new(*role, blocks);
            match joined.last_mut().filter(|last| last.message.role == *role) {
                Some(last) => last.append(message),
                None => joined.push(Joined::new(message)),
            }
        }
        joined.into_iter().map(|joined| joined.message).collect()
    }
}

/// The origin of a block.
struct BlockOrigin {
    pushed: usize,
    /// The origin that it was pushed with.
    given: Option<usize>,
}

/// Returns the changes that the passes made, as notes on the messages that were pushed.
fn notes(log: &Log, origins: &[BlockOrigin]) -> Vec<BuildNote> {
    let pushed = |number: usize| origins.get(number).map_or(0, |origin| origin.pushed);
    let omitted = log.omissions.iter().map(|omission| BuildNote {
        pushed: pushed(omission.origin),
        kind: NoteKind::LeftOut(omission.reason),
    });
    let synthetic = log.synthetic.iter().map(|synthetic| BuildNote {
        pushed: synthetic.origin.map_or(0, pushed),
        kind: NoteKind::MadeUp(synthetic.kind),
    });
    omitted.chain(synthetic).collect()
}

/// Messages that a strict provider accepts, and the changes that made them so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltMessages {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// The differences from the messages that were pushed, in the order of the pushes.
    pub notes: Vec<BuildNote>,
}

impl BuiltMessages {
    /// Returns the body of a call of the Messages API, as JSON.
    #[must_use]
    pub fn to_request(&self, settings: &RequestSettings) -> String {
        settings.body(&self.messages)
    }

    /// Estimates the tokens of all messages; system prompt and tools are not included.
    #[must_use]
    pub fn estimate(&self) -> TokenEstimate {
        let blocks = self.messages.iter().flat_map(Message::blocks);
        blocks.map(TokenEstimate::of).sum()
    }
}

/// A change to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildNote {
    /// The message as it was pushed, counted from 0, those of [`MessageList::resume`] included.
    pub pushed: usize,
    /// The change.
    pub kind: NoteKind,
}

/// A change to a message that was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoteKind {
    /// It was joined to the message before it.
    Merged {
        /// The message of [`BuiltMessages::messages`] that it is a part of.
        message: usize,
    },
    /// A block of it, or a part of one, was omitted or changed.
    LeftOut(OmissionReason),
    /// A synthetic block was added in its place, or before it.
    MadeUp(SyntheticKind),
}

/// The settings of a call of the API, apart from the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct RequestSettings(
    // Invariant: not empty.
    ObjectBuf,
);

impl RequestSettings {
    /// Asks `model` for an answer of at most `max_tokens` tokens.
    pub fn new(model: &str, max_tokens: u64) -> Self {
        let settings = ObjectBuf::new().with("model", model);
        Self(settings.with("max_tokens", max_tokens))
    }

    /// Sets the system prompt: a text, a [`SystemPrompt`] that is assembled, or a list of blocks as
    /// [`Raw`].
    pub fn system(mut self, system: impl Into<Json>) -> Self {
        self.0.set("system", system);
        self
    }

    /// Sets the tools: a list, as [`Raw`].
    pub fn tools(mut self, tools: impl Into<Json>) -> Self {
        self.0.set("tools", tools);
        self
    }

    /// Sets whether the answer is streamed.
    pub fn stream(mut self, stream: bool) -> Self {
        self.0.set("stream", stream);
        self
    }

    /// Returns the body of a call of the Messages API with `messages`, as JSON.
    #[must_use]
    pub fn body(&self, messages: &[Message]) -> String {
        let settings = self.0.text();
        // The messages are written as they are: a parse and a print of them would change numbers and escapes.
        let settings = settings.strip_suffix('}').unwrap_or(&settings);
        let messages: Vec<String> = messages.iter().map(Message::json).collect();
        format!("{settings},\"messages\":[{}]}}", messages.join(","))
    }
}

/// The reason why something cannot be sent. Errors contain ids and never quote content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call and its result do not make a pair.
    #[error("{} ({id:?})", .rule.words())]
    Pair {
        /// The broken rule: [`Rule::OrphanResult`], [`Rule::RepeatedResult`], [`Rule::MissingResult`] or
        /// [`Rule::RepeatedCall`].
        rule: Rule,
        /// The id of the call.
        id: Box<str>,
    },
    /// An image or document is larger than the API accepts: 5 MB for an image (6.7 MB as base64) or
    /// a text, 32 MB for a PDF.
    #[error(
        "an image or document is larger than the API accepts: 5 MB for an image (6.7 MB as base64) or \
         a text, 32 MB for a PDF"
    )]
    TooLarge,
    /// The bytes are not a PNG, JPEG, GIF or WebP image.
    #[error("the image is not PNG, JPEG, GIF or WebP")]
    UnknownImage,
    /// The bytes are neither a PDF nor text in UTF-8, or there are none.
    #[error("the document is neither a PDF nor text in UTF-8, or empty")]
    UnknownDocument,
    /// The text is not base64.
    #[error("the image data is not base64")]
    NotBase64,
    /// A `data:` address was given where base64 or the address of a page is expected.
    #[error(
        "a data: address is not accepted: pass the base64 after its comma, or the decoded bytes"
    )]
    DataUrl,
    /// The conversation is empty, or contains only blank text.
    #[error("the conversation has nothing to send; add a text that is not blank")]
    NothingToSend,
}

impl Error {
    fn pair(rule: Rule, id: &str) -> Self {
        let id = id.into();
        Self::Pair { rule, id }
    }
}
