//! Pairs calls and results: each call gets exactly one result, in the message after it, and each
//! result has its call in the message before (TURN-2 to TURN-4). Then finishes each message.

use std::collections::{HashMap, HashSet};

use transcript_format::object::Raw;

use super::block::{Block, BlockKind, kind_of, text_of};
use super::lint::Rule;
use super::merge::Draft;
use super::{Log, OmissionReason, Role, SyntheticKind, js_trim};
use crate::texts;

pub(super) fn pair(drafts: Vec<Draft>, log: &mut Log) -> Vec<Draft> {
    let mut pairing = Pairing {
        paired: Vec::with_capacity(drafts.len()),
        seen: HashSet::new(),
        open: HashMap::new(),
        log,
    };
    for mut draft in drafts {
        draft.move_results_to_front();
        match draft.role {
            Role::Assistant => {
                put_calls_last(&mut draft);
                pairing.add_assistant(draft);
            }
            Role::User => {
                drop_blank_texts(&mut draft, pairing.log);
                pairing.add_user(draft);
            }
            Role::System => pairing.paired.push(draft),
        }
    }
    pairing.close();
    let mut paired = pairing.paired;
    for draft in &mut paired {
        finish(draft, log);
    }
    paired
}

struct Pairing<'l> {
    paired: Vec<Draft>,
    /// The ids of all calls so far.
    seen: HashSet<Box<str>>,
    /// The calls of the message before that have no result yet: id, place in the message, entry.
    open: HashMap<Box<str>, (usize, Option<u32>)>,
    log: &'l mut Log,
}

impl Pairing<'_> {
    fn add_assistant(&mut self, mut draft: Draft) {
        self.close();
        let first = draft.blocks.first().map(entry_of);
        let served = served_calls(&draft.blocks);
        draft.blocks.retain(|block| match block.kind() {
            // A call with an id that was used before is dropped (TURN-4).
            BlockKind::ToolUse => {
                let id = block.call_id().unwrap_or_default();
                let is_new = self.seen.insert(id.into());
                if is_new {
                    let place = self.open.len();
                    self.open.insert(id.into(), (place, entry_of(block)));
                } else {
                    self.log.omit(entry_of(block), OmissionReason::RepeatedCall);
                }
                is_new
            }
            // Calls of tools of the API that have no result (MSG-17).
            BlockKind::ServerToolUse => {
                let is_served = block.call_id().is_none_or(|id| served.contains(id));
                if !is_served {
                    self.log.omit(entry_of(block), OmissionReason::ServerCall);
                }
                is_served
            }
            _ => true,
        });
        if let Some(entry) = first
            && draft.blocks.is_empty()
        {
            let block = Block::assistant_placeholder(texts::CALL_REPEATED);
            self.log
                .add_synthetic(SyntheticKind::RepeatedCall, Role::Assistant, &block, entry);
            draft.blocks.push(block);
        }
        self.paired.push(draft);
    }

    fn add_user(&mut self, mut draft: Draft) {
        let first = draft.blocks.first().and_then(entry_of);
        draft.blocks.retain(|block| {
            if block.kind() != BlockKind::ToolResult {
                return true;
            }
            let call = block.call_id().and_then(|id| self.open.remove(id));
            if call.is_none() {
                // An orphan (TURN-3), or the second result of a call (TURN-4).
                self.log.omit(entry_of(block), OmissionReason::OrphanResult);
            }
            call.is_some()
        });
        let missing = self.missing_results();
        draft.blocks.splice(0..0, missing);
        if draft.blocks.is_empty() {
            let (kind, text) = if self.paired.is_empty() {
                (SyntheticKind::OrphanRemoved, texts::ORPHAN_REMOVED)
            } else {
                (SyntheticKind::NoContent, texts::NO_CONTENT)
            };
            let block = Block::text(text);
            self.log.add_synthetic(kind, Role::User, &block, first);
            draft.blocks.push(block);
        }
        self.paired.push(draft);
    }

    /// Adds a user message with the missing results, for calls that no user message follows.
    fn close(&mut self) {
        if !self.open.is_empty() {
            let missing = self.missing_results();
            self.paired.push(Draft::new(Role::User, missing));
        }
    }

    fn missing_results(&mut self) -> Vec<Block> {
        let mut open: Vec<_> = self.open.drain().collect();
        open.sort_unstable_by_key(|(_, (place, _))| *place);
        let missing = open.into_iter().map(|(id, (_, entry))| {
            let block = Block::failed_result(&id, texts::RESULT_MISSING);
            self.log
                .add_synthetic(SyntheticKind::MissingResult, Role::User, &block, entry);
            block
        });
        missing.collect()
    }
}

pub(super) fn entry_of(block: &Block) -> Option<u32> {
    block.entry().map(|entry| entry as u32)
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
fn drop_blank_texts(draft: &mut Draft, log: &mut Log) {
    if draft.role != Role::User || draft.is_string() {
        return;
    }
    let first = draft.blocks.first().and_then(entry_of);
    draft.blocks.retain(|block| {
        let is_blank = block.kind() == BlockKind::Text
            && block
                .text_field()
                .is_some_and(|text| js_trim(&text).is_empty());
        if is_blank {
            log.omit(entry_of(block), OmissionReason::Refused(Rule::BlankText));
        }
        !is_blank
    });
    if draft.blocks.is_empty() {
        let block = Block::text(texts::NO_CONTENT);
        log.add_synthetic(SyntheticKind::NoContent, Role::User, &block, first);
        draft.blocks.push(block);
    }
}

/// Finishes a message: placeholders, renamed tools, failed results as text.
pub(super) fn finish(draft: &mut Draft, log: &mut Log) {
    if draft.role == Role::Assistant {
        if draft.blocks.is_empty() {
            let block = Block::assistant_placeholder(texts::NO_CONTENT);
            log.add_synthetic(SyntheticKind::NoContent, Role::Assistant, &block, None);
            draft.blocks.push(block);
        }
        // An empty text next to another block is not sent (MSG-11).
        draft.blocks.retain(|block| !is_empty_text(block));
    }
    for block in &mut draft.blocks {
        match block.kind() {
            BlockKind::ToolUse => rename_task(block),
            BlockKind::ToolResult => text_only(block),
            _ => {}
        }
    }
}

fn is_empty_text(block: &Block) -> bool {
    block.kind() == BlockKind::Text && block.text_field().as_deref() == Some("")
}

/// Moves the calls of an answer after its other blocks. A thinking block that follows another one,
/// ignoring calls, stays after the calls before it (MSG-5).
pub(super) fn put_calls_last(draft: &mut Draft) {
    let mut sorted = Vec::with_capacity(draft.blocks.len());
    let mut calls = Vec::new();
    let mut follows_thinking = false;
    for block in draft.blocks.drain(..) {
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
    draft.blocks = sorted;
}

/// Renames the one tool whose name changed (MSG-15).
fn rename_task(call: &mut Block) {
    let name = call
        .object()
        .and_then(|call| Some(call.get("name")?.str()?.into_owned()));
    if name.as_deref() == Some("Task") {
        call.set("name", "\"Agent\"");
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
