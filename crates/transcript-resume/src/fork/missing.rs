//! Calls on a path that no entry of it answers.
//!
//! `recover` makes a result for each of them again in each request. A copy has to contain that
//! result: a client that reads a call without one drops the line with all its text (TURN-2).

use std::collections::HashSet;

use transcript_format::content::{Block, Content, Message};
use transcript_format::cut_reply;
use transcript_format::json::{Json, ObjectBuf};
use transcript_format::kind::EntryKind;
use transcript_format::object::Object;
use transcript_format::scan::{Flags, ToolRole};
use transcript_reader::{BodySource, ConversationPath, EntryNo, EntryRef, Index, ToolKey, Tree};

use super::links::{entries, links};
use crate::texts;

/// A result that no entry of a path has.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MissingResults {
    /// The last line of the message that makes the calls.
    pub after: EntryNo,
    /// The ids of the calls.
    pub calls: Vec<String>,
    /// The user line with the results, without the members that tie it to a place.
    pub line: ObjectBuf,
}

/// Returns the results that `path` lacks, in its order.
///
/// # Errors
/// The errors of `bodies`.
pub fn missing_results<B: BodySource>(
    tree: &Tree<'_>,
    path: &ConversationPath,
    bodies: &mut B,
) -> Result<Vec<MissingResults>, B::Error> {
    let index = tree.index();
    let entries = entries(index, path);
    let open = unanswered(index, &entries);
    let mut found = Vec::new();
    if open.is_empty() {
        return Ok(found);
    }
    let (_, ends) = links(tree, &entries, &open);
    let mut missing = None;
    for (place, entry) in entries.iter().enumerate() {
        let line = index.entry(*entry);
        note(&mut missing, &line, &open, bodies.body(&line)?);
        if ends.contains(&place)
            && let Some((calls, line)) = missing.take()
        {
            found.push(MissingResults {
                after: *entry,
                calls: calls.into_iter().map(|call| call.id).collect(),
                line,
            });
        }
    }
    Ok(found)
}

/// Calls without a result, and the line that answers them.
pub(super) type Open = (Vec<OpenCall>, ObjectBuf);

/// A call without a result.
#[derive(Clone, Debug)]
pub(super) struct OpenCall {
    id: String,
    has_cut_input: bool,
}

/// Adds the calls of `line` that are in `open` to those of the message so far.
pub(super) fn note(
    missing: &mut Option<Open>,
    line: &EntryRef<'_>,
    open: &HashSet<ToolKey>,
    body: &str,
) {
    if open.is_empty() || line.kind() != EntryKind::Assistant {
        return;
    }
    let ids = ids(line, body, open);
    if ids.is_empty() {
        return;
    }
    let mut calls = missing.take().map_or(Vec::new(), |(calls, _)| calls);
    let has_cut_input = Object::parse(body).is_ok_and(|body| cut_reply::has_cut_call(&body));
    calls.extend(ids.into_iter().map(|id| OpenCall { id, has_cut_input }));
    let line = results(&calls, body);
    *missing = Some((calls, line));
}

/// Returns the calls of `entries` without a result among them, except those of a last message that
/// only results and reminders follow: every client completes these itself (TURN-1).
pub(super) fn unanswered(index: &Index, entries: &[EntryNo]) -> HashSet<ToolKey> {
    let ends = |role: ToolRole| {
        let lines = entries.iter().map(|entry| index.entry(*entry));
        lines.flat_map(move |line| line.tool_keys(role))
    };
    let mut open: HashSet<ToolKey> = ends(ToolRole::Use).collect();
    for result in ends(ToolRole::Result) {
        open.remove(&result);
    }
    if open.is_empty() {
        return open;
    }
    if let Some(last) = last_answer(index, entries) {
        let is_of_last = |line: &EntryRef<'_>| {
            line.number() == last.number()
                || (line.kind() == EntryKind::Assistant
                    && line.message().is_some()
                    && line.message() == last.message())
        };
        let lines = entries.iter().map(|entry| index.entry(*entry));
        for line in lines.filter(is_of_last) {
            for call in line.tools() {
                open.remove(&call.key());
            }
        }
    }
    open
}

/// Returns the last line of the answer in which the conversation stopped, if it did.
fn last_answer<'i>(index: &'i Index, entries: &[EntryNo]) -> Option<EntryRef<'i>> {
    let lines = entries.iter().rev();
    for line in lines.map(|entry| index.entry(*entry)) {
        let is_shown_only = line.flags().contains(Flags::VIRTUAL);
        let is_result = line.flags().contains(Flags::HAS_TOOL_RESULT);
        match line.kind() {
            EntryKind::Assistant if line.flags().contains(Flags::API_ERROR) => return None,
            EntryKind::Assistant if !is_shown_only => return Some(line),
            EntryKind::User if !is_shown_only && !is_result => return None,
            _ => {}
        }
    }
    None
}

/// Returns the ids of the calls of `line` that are in `open`; `body` is that of the line.
fn ids(line: &EntryRef<'_>, body: &str, open: &HashSet<ToolKey>) -> Vec<String> {
    let calls = line.tools().iter();
    let mut calls = calls.filter(|end| end.role() == ToolRole::Use);
    let is_open = |call: Option<&transcript_reader::ToolEnd>| {
        call.is_some_and(|call| open.contains(&call.key()))
    };
    let body = Object::parse(body).ok();
    let message = body.and_then(|body| body.read::<Message<'_>>("message"));
    let Some(Content::Blocks(blocks)) = message.and_then(|message| message.content()) else {
        return Vec::new();
    };
    let ids = blocks.iter().filter_map(|block| match block {
        Block::ToolUse(call) => call.id(),
        _ => None,
    });
    ids.filter(|_| is_open(calls.next()))
        .map(|id| id.into_owned())
        .collect()
}

/// Returns the user line with the results for `calls`, without the members that tie it to a
/// place. Where and by what it was written is copied from `body`.
fn results(calls: &[OpenCall], body: &str) -> ObjectBuf {
    let results = calls.iter().map(|call| {
        let text = if call.has_cut_input {
            texts::CALL_CUT
        } else {
            texts::RESULT_MISSING
        };
        let result = ObjectBuf::new()
            .with("type", "tool_result")
            .with("tool_use_id", call.id.as_str())
            .with("content", text)
            .with("is_error", true);
        Json::from(result)
    });
    let message = ObjectBuf::new()
        .with("role", "user")
        .with("content", Json::array(results));
    let mut line = ObjectBuf::new()
        .with("type", "user")
        .with("message", message);
    if let Ok(body) = Object::parse(body) {
        for key in ["timestamp", "userType", "cwd", "version", "gitBranch"] {
            if let Some(value) = body.get(key) {
                line = line.with(key, value);
            }
        }
    }
    line
}
