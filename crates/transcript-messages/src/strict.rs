//! Makes messages that a strict provider accepts ([`super::lint()`]) and keeps as much of the
//! conversation as that allows.
//!
//! It replaces `pair`. Blocks are repaired where possible, existing results are moved to where they
//! belong, and only then is anything omitted or added.

use std::collections::BTreeSet;

use hashbrown::{HashMap, HashSet};
use transcript_format::object::{JsonKind, Object, Raw};
use transcript_format::texts;

use super::block::{ApiTool, Block, BlockKind, kind_of};
use super::log::{Log, OmissionReason, Synthetic, SyntheticKind};
use super::message::{Joined, Message, Role};
use super::provider::Provider;
use super::rule::Rule;
use super::text::{is_space, quoted, safe, wrapped};
use super::{lint, media, pair};

/// Makes messages that a strict provider of the Messages API accepts: repairs blocks, attaches each result to its call,
/// makes the missing ones, joins adjacent messages of one role.
#[must_use]
pub fn make_strict(messages: Vec<Message>, log: &mut Log) -> Vec<Message> {
    make_strict_part(messages, Part::WHOLE, Provider::Messages, log)
}

/// The part of a conversation that messages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Nothing comes before them.
    pub is_start: bool,
    /// Nothing comes after them.
    pub is_end: bool,
}

impl Part {
    /// All of it.
    pub const WHOLE: Self = Self {
        is_start: true,
        is_end: true,
    };
}

/// Like [`make_strict`] for a provider, and for a part of a conversation. What concerns the start or the end of the
/// conversation is only done at the start or the end of it.
///
/// The messages keep the form of the Messages API. [`lint_for`](super::lint_for) has no objection to them, except to the
/// size and the images of the whole request ([`within_request_limits`](super::within_request_limits)).
#[must_use]
pub fn make_strict_part(
    mut messages: Vec<Message>,
    part: Part,
    provider: Provider,
    log: &mut Log,
) -> Vec<Message> {
    messages.retain(|message| !message.blocks.is_empty());
    for message in &mut messages {
        if message.role == Role::Assistant {
            pair::put_calls_last(message);
        }
        pair::finish(message, log);
    }
    repair_messages(messages, part, provider, log)
}

/// Like [`make_strict_part`], without the client's own changes to messages.
pub(super) fn repair_messages(
    mut messages: Vec<Message>,
    part: Part,
    provider: Provider,
    log: &mut Log,
) -> Vec<Message> {
    for message in &mut messages {
        if message.role == Role::System && !provider.limits().has_system_role {
            *message = as_reminder(message);
        }
        repair_blocks(message, provider, log);
    }
    // Each pass below can remove a whole message, and the ones before and after it are then of one role.
    let messages = attach_results(join(messages), provider, log);
    let mut messages = join(messages);
    for message in &mut messages {
        drop_unpaired_api_tools(message, log);
        drop_last_thoughts(message, log);
    }
    let mut messages = join(messages);
    media::within_message_limits(&mut messages, provider, log);
    for message in &mut messages {
        add_text_to_document(message, provider, log);
    }
    if part.is_start {
        start_with_user(&mut messages, log);
    }
    if part.is_end {
        trim_end(&mut messages);
    }
    // A later pass may have dropped the answer that an earlier one reported.
    if !messages.iter().any(is_synthetic_answer) {
        let is_other = |one: &Synthetic| one.kind != SyntheticKind::NoResponse;
        log.synthetic.retain(is_other);
    }
    messages
}

// ---------------------------------------------------------------------------------------------
// Blocks
// ---------------------------------------------------------------------------------------------

/// Repairs or drops the blocks that are refused wherever they are.
fn repair_blocks(message: &mut Message, provider: Provider, log: &mut Log) {
    let blocks = std::mem::take(&mut *message.blocks);
    let repaired = blocks.into_iter();
    *message.blocks = repaired
        .filter_map(|block| repair(block, message.role, provider, log))
        .collect();
}

fn repair(mut block: Block, role: Role, provider: Provider, log: &mut Log) -> Option<Block> {
    // A result in an assistant message is moved to the user message of its call later.
    let role = match block.kind() {
        BlockKind::ToolResult => Role::User,
        _ => role,
    };
    let mut faults = lint::faults(&block, role, provider);
    // Whether a text is missing shows only with all others in view; the caller decides that.
    faults.retain(|rule| *rule != Rule::EmptiedThinking);
    for rule in &faults {
        log.omit(block.origin(), OmissionReason::Refused(*rule));
    }
    let is_call = block.kind() == BlockKind::ToolUse && role == Role::Assistant;
    match faults.first() {
        None => return Some(block),
        Some(_) if block.kind() == BlockKind::ToolResult => {
            repair_result(&mut block, provider, log);
        }
        Some(_) if is_call => repair_call(&mut block, &faults, provider),
        Some(Rule::UnusableMedia | Rule::MediaTooLarge | Rule::MediaType | Rule::MediaAddress) => {
            return Some(repair_media(block, role, provider, log));
        }
        Some(Rule::ApiTool) => return api_tool_note(&block, role, log),
        Some(Rule::NoBlock) => return bare_text(&block),
        Some(_) => return None,
    }
    Some(block)
}

/// Gives a call a name, or one that the provider accepts in place of its own, and gives it an object as its input. Its id is handled by [`attach_results`].
fn repair_call(call: &mut Block, faults: &[Rule], provider: Provider) {
    if faults.contains(&Rule::CallName) {
        let name = call
            .object()
            .and_then(|call| Some(call.str("name")?.into_owned()));
        let name = name.filter(|name| !name.is_empty());
        let name = name.map(|name| provider.limits().tool_name_for(&name));
        call.set(
            "name",
            &quoted(name.as_deref().unwrap_or(texts::UNKNOWN_TOOL)),
        );
    }
    if faults.contains(&Rule::CallInput) {
        let input = call.object().map(|call| as_input(call.get("input")));
        call.set("input", &input.unwrap_or_default());
    }
}

/// Returns an input that is not an object, as an object.
fn as_input(input: Option<Raw<'_>>) -> String {
    let Some(input) = input.filter(|input| !input.is_null()) else {
        return "{}".to_owned();
    };
    match input.str() {
        // Line feeds between the members would break requests that are written one per line.
        Some(text) if Object::parse(&text).is_ok() => safe(&text.replace(['\n', '\r'], " ")).into(),
        _ => format!("{{\"input\":{}}}", input.text()),
    }
}

/// Turns the content of a result into a text, or a list of texts and media.
fn repair_result(result: &mut Block, provider: Provider, log: &mut Log) {
    let origin = result.origin();
    let Some(object) = result.object() else {
        return;
    };
    let content = object.get("content");
    let mut repaired = match content.map(Raw::kind) {
        Some(JsonKind::Array) => {
            let blocks = content.and_then(Raw::array).unwrap_or_default().into_iter();
            let blocks: Vec<String> = blocks
                .filter_map(|raw| repair_nested(raw, origin, provider, log))
                .collect();
            format!("[{}]", blocks.join(","))
        }
        Some(JsonKind::String) => content.map(Raw::text).unwrap_or_default().to_owned(),
        None | Some(JsonKind::Null) => "\"\"".to_owned(),
        Some(_) => quoted(content.map(Raw::text).unwrap_or_default()),
    };
    let is_error = object.get("is_error").and_then(Raw::bool) == Some(true);
    if is_error && matches!(&*repaired, "[]" | "\"\"") {
        let note = Block::text(texts::NO_CONTENT);
        log.add_synthetic(SyntheticKind::NoContent, Role::User, &note, origin);
        repaired = format!("[{}]", note.json());
    }
    result.set("content", &repaired);
}

fn repair_nested(
    raw: Raw<'_>,
    origin: Option<usize>,
    provider: Provider,
    log: &mut Log,
) -> Option<String> {
    match lint::nested_fault(raw, provider) {
        None => Some(raw.text().to_owned()),
        Some(Rule::UnusableMedia | Rule::MediaTooLarge | Rule::MediaType | Rule::MediaAddress) => {
            let media = Block::read(raw).with_origin(origin);
            let media = repair_media(media, Role::User, provider, log);
            Some(media.json().to_owned())
        }
        Some(Rule::NoBlock) => {
            let block = bare_text(&Block::read(raw))?;
            Some(block.json().to_owned())
        }
        Some(_) => {
            let text = text_of_mcp(raw).or_else(|| text_of_foreign(raw, provider))?;
            Some(text.json().to_owned())
        }
    }
}

/// Returns the texts of content that only other providers accept in a result, such as the name of a tool that was found.
fn text_of_foreign(raw: Raw<'_>, provider: Provider) -> Option<Block> {
    let is_known = raw
        .object()
        .is_none_or(|block| provider.limits().knows_in_result(&block));
    let texts = texts_in(raw);
    (!is_known && !texts.is_empty()).then(|| Block::text(&texts))
}

/// Returns a note with the texts of a result of a tool that the provider does not run: later texts of the model rely on them.
/// The call is omitted.
fn api_tool_note(block: &Block, role: Role, log: &mut Log) -> Option<Block> {
    let (ApiTool::Result, _) = block.api_tool()? else {
        return None;
    };
    let result = block.object()?;
    let kind = result.str("type")?;
    let tool = kind.strip_suffix("_tool_result").unwrap_or(&kind);
    let texts = result.get("content").map(texts_in).unwrap_or_default();
    let colon = if texts.is_empty() { "" } else { ":\n" };
    let note = Block::text(&format!("{}{tool}{colon}{texts}]", texts::API_TOOL_RESULT));
    log.add_synthetic(SyntheticKind::ApiToolNote, role, &note, block.origin());
    Some(note.with_origin(block.origin()))
}

/// Returns the texts of content, one on a line, without encrypted and binary data.
fn texts_in(content: Raw<'_>) -> String {
    const SHOWN_MEMBERS: [&str; 11] = [
        "title",
        "url",
        "source",
        "text",
        "content",
        "stdout",
        "stderr",
        "error_code",
        "name",
        "tool_name",
        "cited_text",
    ];
    // No result has more levels.
    const MAX_DEPTH: usize = 8;
    let mut texts = Vec::new();
    let mut rest = vec![(content, 0)];
    while let Some((raw, depth)) = rest.pop() {
        if let Some(text) = raw.str() {
            texts.push(text);
            continue;
        }
        let object = raw.object().filter(|_| depth < MAX_DEPTH);
        let list = raw.array().filter(|_| depth < MAX_DEPTH);
        let is_text = object
            .as_ref()
            .is_some_and(|object| object.str("type").as_deref() == Some("text"));
        let members = object.iter().flat_map(Object::members);
        let shown = members.filter(|(key, value)| {
            let is_shown = SHOWN_MEMBERS.contains(&&**key) || (is_text && *key == "data");
            is_shown || value.kind() != JsonKind::String
        });
        let inner = list.into_iter().flatten();
        let inner: Vec<Raw<'_>> = inner.chain(shown.map(|(_, value)| *value)).collect();
        rest.extend(inner.into_iter().rev().map(|raw| (raw, depth + 1)));
    }
    texts.retain(|text| !text.chars().all(is_space));
    texts.join("\n")
}

/// Returns the text of content in the form of MCP, or its kind if it has none.
fn text_of_mcp(raw: Raw<'_>) -> Option<Block> {
    let block = raw.object()?;
    let kind = block.str("type")?;
    if !lint::MCP_KINDS.contains(&&*kind) {
        return None;
    }
    let inner = block.object("resource");
    let part = |key: &str| {
        let inner = inner.as_ref().and_then(|inner| inner.str(key));
        let part = inner.or_else(|| block.str(key));
        part.filter(|part| !part.chars().all(is_space))
    };
    if let Some(text) = part("text") {
        return Some(Block::text(&text));
    }
    let facts = ["name", "uri", "mimeType"].into_iter().filter_map(part);
    let words = std::iter::once(kind).chain(facts);
    let words: Vec<_> = words.collect();
    Some(Block::text(&format!("[{}]", words.join(" "))))
}

/// Replaces images and documents that the Messages API refuses, whatever else is in the request, by notes, and gives images the
/// type that they have: those of a block, or of the content of a result. All else stays as it is.
pub fn without_refused_media(mut block: Block, log: &mut Log) -> Block {
    match block.kind() {
        BlockKind::Image | BlockKind::Document => {
            repair_media(block, Role::User, Provider::Messages, log)
        }
        BlockKind::ToolResult => {
            let origin = block.origin();
            let content = block.object().and_then(|result| {
                let parts = result.get("content")?.array()?;
                let parts = parts.into_iter().map(|raw| match kind_of(raw) {
                    BlockKind::Image | BlockKind::Document => {
                        let media = Block::read(raw).with_origin(origin);
                        let media = repair_media(media, Role::User, Provider::Messages, log);
                        media.json().to_owned()
                    }
                    _ => raw.text().to_owned(),
                });
                Some(format!("[{}]", parts.collect::<Vec<_>>().join(",")))
            });
            if let Some(content) = content {
                block.set("content", &content);
            }
            block
        }
        _ => block,
    }
}

/// Gives an image the type that it has, its Base64 the padding that it lacks, or returns the note in place of media that
/// the provider refuses. Of a document that is a list of texts and images only these are replaced.
fn repair_media(mut media: Block, role: Role, provider: Provider, log: &mut Log) -> Block {
    let raw = Raw::parse(media.json()).ok();
    let Some(fault) = raw.and_then(|raw| media::fault(raw, provider)) else {
        return media;
    };
    let origin = media.origin();
    let source = media.object().and_then(|document| {
        media::source_with_parts(&document, |(_, part)| {
            let fault = media::part_fault(part, provider)?;
            let part = Block::read(part).with_origin(origin);
            Some(without_fault(part, &fault, role, log).json().to_owned())
        })
    });
    match source {
        Some(source) => {
            media.set("source", &source);
            media
        }
        None => without_fault(media, &fault, role, log),
    }
}

/// Corrects an image or document, or returns the note in its place.
fn without_fault(mut media: Block, fault: &media::MediaFault, role: Role, log: &mut Log) -> Block {
    let object = media.object();
    if let Some(source) = object.and_then(|media| fault.corrected_source(&media)) {
        media.set("source", &source);
        return media;
    }
    let note = fault.note();
    log.add_synthetic(SyntheticKind::MediaNote, role, &note, media.origin());
    note.with_origin(media.origin())
}

/// Returns the text of something that is not a block: a string, or an object that lacks its type.
fn bare_text(block: &Block) -> Option<Block> {
    let raw = Raw::parse(block.json()).ok()?;
    let text = raw
        .object()
        .map_or(Some(raw), |object| object.get("text"))?;
    let text = text.str().filter(|text| !text.chars().all(is_space))?;
    Some(Block::text(&text).with_origin(block.origin()))
}

// ---------------------------------------------------------------------------------------------
// Messages
// ---------------------------------------------------------------------------------------------

/// Drops empty messages and joins adjacent ones of one role, as the provider of the client does.
///
/// An answer with calls is not joined to the next one, as their results come between. A `system`
/// message that follows no user message becomes one.
fn join(messages: Vec<Message>) -> Vec<Message> {
    let mut joined: Vec<Joined> = Vec::with_capacity(messages.len());
    let mut makes_calls = false;
    for mut message in messages {
        if message.blocks.is_empty() {
            continue;
        }
        let before = joined.last().map(|before| before.message.role);
        if message.role == Role::System && matches!(before, None | Some(Role::Assistant)) {
            message = as_reminder(&message);
        }
        let at = match (before, message.role) {
            // User content comes before the `system` message of the turn.
            (Some(Role::System), Role::User) => joined.len().checked_sub(2),
            (Some(before), role) if before == role => joined.len().checked_sub(1),
            _ => None,
        };
        let is_apart = makes_calls;
        makes_calls = message.role == Role::Assistant && message.blocks.iter().any(is_call);
        match at.and_then(|at| joined.get_mut(at)) {
            // The content after the answer is gone, so that nothing waits for an answer.
            Some(_) if !is_apart && is_synthetic_answer(&message) => {}
            Some(before) if !is_apart => before.append(message),
            _ => joined.push(Joined::new(message)),
        }
    }
    joined.into_iter().map(|joined| joined.message).collect()
}

/// Returns whether this is the "No response requested." of a turn without an answer (TURN-5).
fn is_synthetic_answer(message: &Message) -> bool {
    message.role == Role::Assistant && message.blocks.iter().all(|block| block.origin().is_none())
}

fn is_call(block: &Block) -> bool {
    block.kind() == BlockKind::ToolUse
}

/// Returns a `system` message as one of the user: its texts are reminders, and all else is as it was.
fn as_reminder(system: &Message) -> Message {
    let blocks = system.blocks.iter().map(|block| match block.text_field() {
        Some(text) if block.kind() == BlockKind::Text && !block.is_blank() => {
            Block::text(&wrapped(&text))
        }
        _ => block.clone(),
    });
    Message::new(Role::User, blocks.collect())
}

/// Drops calls of tools of the API without a result in the same message (MSG-17), and such results
/// without their call.
fn drop_unpaired_api_tools(message: &mut Message, log: &mut Log) {
    let unpaired = lint::unpaired_api_tools(&message.blocks);
    drop_at(
        message,
        &unpaired,
        OmissionReason::Refused(Rule::ApiToolPair),
        log,
    );
}

/// Removes thinking from the end of an answer.
fn drop_last_thoughts(message: &mut Message, log: &mut Log) {
    while let Some(thought) = message.blocks.pop_if(|block| block.is_thinking()) {
        log.omit(
            thought.origin(),
            OmissionReason::Refused(Rule::ThinkingLast),
        );
    }
}

/// Adds a text before a document that is sent without one, if the provider wants that.
fn add_text_to_document(message: &mut Message, provider: Provider, log: &mut Log) {
    if let Some(document) = lint::document_without_text(message, provider) {
        let note = Block::text(texts::DOCUMENT);
        let origin = message.blocks[document].origin();
        log.add_synthetic(SyntheticKind::DocumentText, Role::User, &note, origin);
        message.blocks.insert(document, note);
    }
}

/// Adds a user message before a history that starts with an answer, or when nothing is left.
fn start_with_user(messages: &mut Vec<Message>, log: &mut Log) {
    let (kind, text) = match messages.first().map(|message| message.role) {
        Some(Role::User) => return,
        Some(_) => (SyntheticKind::MissingStart, texts::START_MISSING),
        None => (SyntheticKind::NoContent, texts::NO_CONTENT),
    };
    let block = Block::text(text);
    log.add_synthetic(kind, Role::User, &block, None);
    messages.insert(0, Message::new(Role::User, vec![block]));
}

/// Removes white space from the end of a last answer.
fn trim_end(messages: &mut [Message]) {
    let last = messages
        .last_mut()
        .filter(|message| message.role == Role::Assistant);
    let Some(block) = last.and_then(|message| message.blocks.last_mut()) else {
        return;
    };
    let text = block.text_field().unwrap_or_default();
    if block.kind() == BlockKind::Text && text.ends_with(is_space) {
        let trimmed = quoted(text.trim_end_matches(is_space));
        block.set("text", &trimmed);
    }
}

// ---------------------------------------------------------------------------------------------
// Calls and results
// ---------------------------------------------------------------------------------------------

/// Puts every result right after its call, wherever it was, and makes those that are missing. Calls
/// get new ids where theirs is invalid or was used before; their results follow.
fn attach_results(mut messages: Vec<Message>, provider: Provider, log: &mut Log) -> Vec<Message> {
    let mut calls = Calls::new(&messages, provider);
    for (at, message) in messages.iter_mut().enumerate() {
        calls.name(at, message, log);
        calls.take_results(message);
    }
    let (mut results, unanswered) = calls.finish(log);

    let mut attached: Vec<Message> = Vec::with_capacity(messages.len());
    let mut messages = messages.into_iter().enumerate().peekable();
    while let Some((at, message)) = messages.next() {
        let missing = message.blocks.iter().filter(|block| is_call(block));
        let missing =
            missing.filter(|call| unanswered.contains(call.call_id().unwrap_or_default()));
        let mut blocks: Vec<Block> = missing.map(|call| missing_result(call, log)).collect();
        blocks.append(&mut results[at]);
        attached.push(message);
        if blocks.is_empty() {
            continue;
        }
        let user = messages.next_if(|(_, next)| next.role == Role::User);
        let mut user = user.map_or(Message::new(Role::User, Vec::new()), |(_, user)| user);
        user.blocks.splice(0..0, blocks);
        attached.push(user);
    }
    attached
}

fn missing_result(call: &Block, log: &mut Log) -> Block {
    let text = if call.has_cut_input() {
        texts::CALL_CUT
    } else {
        texts::RESULT_MISSING
    };
    let block = Block::failed_result(call.call_id().unwrap_or_default(), text);
    log.add_synthetic(
        SyntheticKind::MissingResult,
        Role::User,
        &block,
        call.origin(),
    );
    block
}

/// The calls of a conversation and the results that were found for them.
struct Calls {
    provider: Provider,
    /// The ids of calls that a synthetic id could be equal to.
    taken: HashSet<Box<str>>,
    made: usize,
    calls: Vec<Call>,
    /// For each id in the file: the call without a result that the next result answers, in `calls`.
    open: HashMap<Box<str>, Option<usize>>,
    /// The results of each answer, by its place.
    results: Vec<Vec<Block>>,
    /// Results that come before their call, have none, or are the second one.
    early: Vec<Block>,
}

struct Call {
    answer: usize,
    /// Its new id, if the one in the file is invalid or was used before.
    renamed: Option<Box<str>>,
    /// The open call of the same id that is answered after it.
    next: Option<usize>,
}

/// The prefix of the ids that [`make_strict`] gives to calls, each with a number.
pub const FRESH_ID_PREFIX: &str = "recovered_call_";

impl Calls {
    fn new(messages: &[Message], provider: Provider) -> Self {
        let blocks = messages.iter().flat_map(Message::blocks);
        let ids = blocks
            .filter(|block| is_call(block))
            .filter_map(Block::call_id);
        Self {
            provider,
            taken: ids
                .filter(|id| id.starts_with(FRESH_ID_PREFIX))
                .map(Box::from)
                .collect(),
            made: 0,
            calls: Vec::new(),
            open: HashMap::new(),
            results: messages.iter().map(|_| Vec::new()).collect(),
            early: Vec::new(),
        }
    }

    /// Gives the calls of a message ids that no other call has.
    fn name(&mut self, answer: usize, message: &mut Message, log: &mut Log) {
        drop_replays(message, log);
        let mut calls = Vec::new();
        for call in message.blocks.iter_mut().filter(|block| is_call(block)) {
            let id: Box<str> = call.call_id().unwrap_or_default().into();
            let is_usable = self.provider.limits().is_call_id(&id);
            let is_repeated = self.open.contains_key(&id);
            if is_repeated && is_usable {
                log.omit(call.origin(), OmissionReason::Refused(Rule::RepeatedCall));
            }
            let renamed = (is_repeated || !is_usable).then(|| self.fresh_id());
            if let Some(renamed) = &renamed {
                call.rename(renamed);
            }
            if !is_repeated {
                self.open.insert(id.clone(), None);
            }
            calls.push((id, renamed));
        }
        // Calls of one message that share an id are answered in order.
        for (id, renamed) in calls.into_iter().rev() {
            let first = self.open.entry(id).or_default();
            let next = first.replace(self.calls.len());
            self.calls.push(Call {
                answer,
                renamed,
                next,
            });
        }
    }

    fn fresh_id(&mut self) -> Box<str> {
        loop {
            self.made += 1;
            let id: Box<str> = format!("{FRESH_ID_PREFIX}{}", self.made).into();
            if self.taken.insert(id.clone()) {
                return id;
            }
        }
    }

    /// Takes the results out of a message and gives each to the nearest call before it.
    fn take_results(&mut self, message: &mut Message) {
        let is_result = |block: &mut Block| block.kind() == BlockKind::ToolResult;
        for block in message.blocks.extract_if(.., is_result) {
            if let Some(block) = self.attach_result(block) {
                self.early.push(block);
            }
        }
    }

    /// Attaches a result to the open call with its id; returns the result when there is none.
    fn attach_result(&mut self, mut result: Block) -> Option<Block> {
        let open = self.open.get_mut(result.call_id().unwrap_or_default());
        let Some(call) = open.and_then(|open| {
            let call = &self.calls[open.take()?];
            *open = call.next;
            Some(call)
        }) else {
            return Some(result);
        };
        if let Some(id) = &call.renamed {
            result.rename(id);
        }
        let results = &mut self.results[call.answer];
        if results.is_empty() {
            // Most answers make one call, and a list would take space for four.
            results.reserve_exact(1);
        }
        results.push(result);
        None
    }

    /// Returns the results of each answer, and the ids of the calls without one.
    fn finish(mut self, log: &mut Log) -> (Vec<Vec<Block>>, HashSet<Box<str>>) {
        for block in std::mem::take(&mut self.early) {
            if let Some(orphan) = self.attach_result(block) {
                log.omit(orphan.origin(), OmissionReason::OrphanResult);
            }
        }
        let mut unanswered = HashSet::new();
        for (id, mut open) in self.open {
            while let Some(at) = open {
                let call = &mut self.calls[at];
                let renamed = call.renamed.take();
                unanswered.insert(renamed.unwrap_or_else(|| id.clone()));
                open = call.next;
            }
        }
        (self.results, unanswered)
    }
}

/// Drops calls that are repeated within one message.
fn drop_replays(message: &mut Message, log: &mut Log) {
    if message.blocks.iter().filter(|block| is_call(block)).count() < 2 {
        return;
    }
    let replays: BTreeSet<usize> = {
        let mut first: HashMap<&str, &Block> = HashMap::new();
        let calls = message.blocks.iter().enumerate();
        let calls = calls.filter(|(_, block)| is_call(block));
        let replays = calls.filter_map(|(place, call)| {
            let first = *first.entry(call.call_id()?).or_insert(call);
            (!std::ptr::eq(first, call) && first.json() == call.json()).then_some(place)
        });
        replays.collect()
    };
    drop_at(message, &replays, OmissionReason::RepeatedCall, log);
}

/// Drops the blocks at `places`.
fn drop_at(message: &mut Message, places: &BTreeSet<usize>, reason: OmissionReason, log: &mut Log) {
    let mut place = 0;
    message.blocks.retain(|block| {
        let is_dropped = places.contains(&place);
        place += 1;
        if is_dropped {
            log.omit(block.origin(), reason);
        }
        !is_dropped
    });
}
