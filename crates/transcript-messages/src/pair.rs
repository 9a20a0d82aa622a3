//! Pairs calls and results: each call gets exactly one result, in the message after it, and each
//! result has its call in the message before (TURN-2 to TURN-4). Then finishes each message.

use std::collections::{HashMap, HashSet};

use transcript_format::object::Raw;
use transcript_format::texts;

use super::block::{Block, BlockKind, MESSAGE_TOOL, RENAMED_TOOL, kind_of, text_of};
use super::log::{Log, OmissionReason, SyntheticKind};
use super::message::{Message, Role};
use super::rule::Rule;
use super::text::{js_trim, quoted};

/// Pairs the calls and results of `messages` as the client does, and finishes each message.
#[must_use]
pub fn pair(messages: Vec<Message>, log: &mut Log) -> Vec<Message> {
    let mut pairing = Pairing {
        paired: Vec::with_capacity(messages.len()),
        seen: HashSet::new(),
        open: HashMap::new(),
        log,
    };
    for mut message in messages {
        match message.role {
            Role::Assistant => {
                put_calls_last(&mut message);
                pairing.add_assistant(message);
            }
            Role::User => {
                drop_blank_texts(&mut message, pairing.log);
                pairing.add_user(message);
            }
            Role::System => pairing.paired.push(message),
        }
    }
    pairing.close();
    let mut paired = pairing.paired;
    for message in &mut paired {
        finish(message, log);
    }
    paired
}

struct Pairing<'l> {
    paired: Vec<Message>,
    /// The ids of all calls so far.
    seen: HashSet<Box<str>>,
    /// The calls of the message before that have no result yet: id, place in the message, origin.
    open: HashMap<Box<str>, (usize, Option<usize>)>,
    log: &'l mut Log,
}

impl Pairing<'_> {
    fn add_assistant(&mut self, mut message: Message) {
        self.close();
        let first = message.blocks.first().map(Block::origin);
        let served = served_calls(&message.blocks);
        message.blocks.retain(|block| match block.kind() {
            // A call with an id that was used before is dropped (TURN-4).
            BlockKind::ToolUse => {
                let id = block.call_id().unwrap_or_default();
                let is_new = self.seen.insert(id.into());
                if is_new {
                    let place = self.open.len();
                    self.open.insert(id.into(), (place, block.origin()));
                } else {
                    self.log.omit(block.origin(), OmissionReason::RepeatedCall);
                }
                is_new
            }
            // Calls of tools of the API that have no result (MSG-17).
            BlockKind::ServerToolUse => {
                let is_served = block.call_id().is_none_or(|id| served.contains(id));
                if !is_served {
                    self.log.omit(block.origin(), OmissionReason::ServerCall);
                }
                is_served
            }
            _ => true,
        });
        if let Some(origin) = first
            && message.blocks.is_empty()
        {
            let block = Block::assistant_placeholder(texts::CALL_REPEATED);
            self.log
                .add_synthetic(SyntheticKind::RepeatedCall, Role::Assistant, &block, origin);
            message.blocks.push(block);
        }
        self.paired.push(message);
    }

    fn add_user(&mut self, mut message: Message) {
        let first = message.blocks.first().and_then(Block::origin);
        message.blocks.retain(|block| {
            if block.kind() != BlockKind::ToolResult {
                return true;
            }
            let call = block.call_id().and_then(|id| self.open.remove(id));
            if call.is_none() {
                // An orphan (TURN-3), or the second result of a call (TURN-4).
                self.log.omit(block.origin(), OmissionReason::OrphanResult);
            }
            call.is_some()
        });
        let missing = self.missing_results();
        message.blocks.splice(0..0, missing);
        if message.blocks.is_empty() {
            let (kind, text) = if self.paired.is_empty() {
                (SyntheticKind::OrphanRemoved, texts::ORPHAN_REMOVED)
            } else {
                (SyntheticKind::NoContent, texts::NO_CONTENT)
            };
            let block = Block::text(text);
            self.log.add_synthetic(kind, Role::User, &block, first);
            message.blocks.push(block);
        }
        self.paired.push(message);
    }

    /// Adds a user message with the missing results, for calls that no user message follows.
    fn close(&mut self) {
        if !self.open.is_empty() {
            let missing = self.missing_results();
            self.paired.push(Message::new(Role::User, missing));
        }
    }

    fn missing_results(&mut self) -> Vec<Block> {
        let mut open: Vec<_> = self.open.drain().collect();
        open.sort_unstable_by_key(|(_, (place, _))| *place);
        let missing = open.into_iter().map(|(id, (_, origin))| {
            let block = Block::failed_result(&id, texts::RESULT_MISSING);
            self.log
                .add_synthetic(SyntheticKind::MissingResult, Role::User, &block, origin);
            block
        });
        missing.collect()
    }
}

/// Returns the ids of the calls that are answered in the same message.
fn served_calls(blocks: &[Block]) -> HashSet<Box<str>> {
    let is_use =
        |block: &&Block| matches!(block.kind(), BlockKind::ToolUse | BlockKind::ServerToolUse);
    let results = blocks.iter().filter(|block| !is_use(block));
    results.filter_map(Block::call_id).map(Box::from).collect()
}

/// Drops the blank text blocks of a user message with block content; a string is sent as it is
/// (MSG-12).
fn drop_blank_texts(message: &mut Message, log: &mut Log) {
    if message.role != Role::User || message.only_string().is_some() {
        return;
    }
    let first = message.blocks.first().and_then(Block::origin);
    message.blocks.retain(|block| {
        let is_blank = block.kind() == BlockKind::Text
            && !block.is_sound()
            && block
                .text_field()
                .is_some_and(|text| js_trim(&text).is_empty());
        if is_blank {
            log.omit(block.origin(), OmissionReason::Refused(Rule::BlankText));
        }
        !is_blank
    });
    if message.blocks.is_empty() {
        let block = Block::text(texts::NO_CONTENT);
        log.add_synthetic(SyntheticKind::NoContent, Role::User, &block, first);
        message.blocks.push(block);
    }
}

/// Finishes a message: placeholders, renamed tools, failed results as text.
pub(super) fn finish(message: &mut Message, log: &mut Log) {
    if message.role == Role::Assistant {
        if message.blocks.is_empty() {
            let block = Block::assistant_placeholder(texts::NO_CONTENT);
            log.add_synthetic(SyntheticKind::NoContent, Role::Assistant, &block, None);
            message.blocks.push(block);
        }
        // An empty text next to another block is not sent (MSG-11).
        message.blocks.retain(|block| !is_empty_text(block));
    }
    message.blocks.iter_mut().for_each(Block::print_numbers);
    for block in message.blocks.iter_mut().filter(|block| !block.is_sound()) {
        match block.kind() {
            BlockKind::ToolUse => correct_call(block),
            BlockKind::ToolResult => text_only(block),
            _ => {}
        }
    }
}

fn is_empty_text(block: &Block) -> bool {
    block.kind() == BlockKind::Text
        && !block.is_sound()
        && block.text_field().as_deref() == Some("")
}

/// Moves the calls of an answer after its other blocks. A thinking block that follows another one,
/// ignoring calls, stays after the calls before it (MSG-5).
pub(super) fn put_calls_last(message: &mut Message) {
    if message
        .blocks
        .is_sorted_by_key(|block| block.kind() == BlockKind::ToolUse)
    {
        return;
    }
    let mut sorted = Vec::with_capacity(message.blocks.len());
    let mut calls = Vec::new();
    let mut follows_thinking = false;
    for block in message.blocks.drain(..) {
        if block.kind() == BlockKind::ToolUse {
            calls.push(block);
            continue;
        }
        if block.is_thinking() && follows_thinking {
            sorted.append(&mut calls);
        }
        // An empty text is not sent.
        if !is_empty_text(&block) {
            follows_thinking = block.is_thinking();
        }
        sorted.push(block);
    }
    sorted.append(&mut calls);
    *message.blocks = sorted;
}

/// Renames the tool `Task` to `Agent`, the only one that changed its name (MSG-15), and takes out of a
/// message to another agent what the client writes into the call itself (MSG-21).
fn correct_call(call: &mut Block) {
    const CLIENT_FIELDS: [&str; 6] = [
        "type",
        "recipient",
        "recipient_kind",
        "content",
        "request_id",
        "approve",
    ];
    let Some(object) = call.object() else {
        return;
    };
    let name = object.get("name").and_then(Raw::str);
    if name.as_deref() == Some(RENAMED_TOOL) {
        call.set("name", "\"Agent\"");
    } else if name.as_deref() == Some(MESSAGE_TOOL)
        && let Some(input) = object.get("input").and_then(Raw::object)
        && input.get("to").is_some()
        && input.get("message").is_some()
    {
        let kept = input
            .members()
            .iter()
            .filter(|(name, _)| !CLIENT_FIELDS.contains(&&**name));
        let kept: Vec<String> = kept
            .map(|(name, value)| format!("{}:{}", quoted(name), value.text()))
            .collect();
        call.set("input", &format!("{{{}}}", kept.join(",")));
    }
}

/// Sends a failed result that holds media as one text (MSG-13).
pub(super) fn text_only(result: &mut Block) {
    let Some(object) = result.object() else {
        return;
    };
    if object.get("is_error").and_then(Raw::bool) != Some(true) {
        return;
    }
    let Some(blocks) = object.get("content").and_then(Raw::array) else {
        return;
    };
    if blocks
        .iter()
        .all(|block| kind_of(*block) == BlockKind::Text)
    {
        return;
    }
    let texts: Vec<_> = blocks.into_iter().filter_map(text_of).collect();
    let content = match &*texts {
        [] => "[]".to_owned(),
        texts => format!("[{}]", Block::text(&texts.join("\n\n")).json()),
    };
    result.set("content", &content);
}
