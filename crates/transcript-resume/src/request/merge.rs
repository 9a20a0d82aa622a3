//! From steps to messages: lines of one answer join, users in a row join, reminders go into the
//! last result or beside it.

use std::collections::HashMap;
use std::rc::Rc;

use transcript_format::object::Raw;

use super::block::{ApiTool, Block, BlockKind, kind_of, quoted, with_newline};
use super::reminders::{is_attribution, unwrapped};
use super::step::{Step, StepKind};
use super::{Log, OmissionReason, Role, js_trim};
use crate::tree::Policy;

/// A message that still grows.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) role: Role,
    /// Whether a line of the user is in it, not only reminders.
    has_line: bool,
    /// The results that a merge moved to the front.
    front: Vec<Block>,
    pub(super) blocks: Vec<Block>,
    /// Reminders that go into the last result. They are put there at once, as each time the whole
    /// result is written again.
    folded: Vec<Block>,
    is_merged: bool,
}

impl Draft {
    pub(super) fn new(role: Role, blocks: Vec<Block>) -> Self {
        Self {
            role,
            has_line: false,
            front: Vec::new(),
            blocks,
            folded: Vec::new(),
            is_merged: false,
        }
    }

    /// Adds the blocks of a message that follows.
    pub(super) fn append(&mut self, blocks: Vec<Block>) {
        self.is_merged = true;
        self.blocks.extend(blocks);
    }

    pub(super) fn into_blocks(mut self) -> Vec<Block> {
        if self.is_merged {
            self.blocks.iter_mut().for_each(Block::unlink_from_string);
        }
        self.blocks
    }

    /// Puts the results where they belong: nothing merges any more.
    pub(super) fn move_results_to_front(&mut self) {
        self.fold();
        if !self.front.is_empty() {
            let rest = std::mem::take(&mut self.blocks);
            self.blocks = std::mem::take(&mut self.front);
            self.blocks.extend(rest);
        }
    }

    /// Whether an answer behind it starts over, although one with its id stands before it.
    fn parts_answers(&self) -> bool {
        let is_result = |block: &Block| block.kind() == BlockKind::ToolResult;
        self.role == Role::User
            && self.has_line
            && self.front.is_empty()
            && !self.blocks.iter().any(is_result)
    }

    /// Whether the content is the string that it was in the transcript.
    pub(super) fn is_string(&self) -> bool {
        !self.is_merged && matches!(&*self.blocks, [block] if block.as_plain().is_some())
    }

    /// Puts the reminders that wait for it into the last result.
    fn fold(&mut self) {
        let folded = std::mem::take(&mut self.folded);
        if !folded.is_empty()
            && let Some(result) = self.last_mut(|block| !is_attribution(block))
        {
            fold(result, &folded);
        }
    }

    fn last_mut(&mut self, wanted: impl Fn(&Block) -> bool) -> Option<&mut Block> {
        let blocks = self.front.iter_mut().chain(&mut self.blocks);
        blocks.rev().find(|block| wanted(block))
    }
}

pub(super) fn merge(
    steps: Vec<Step>,
    system_role: bool,
    policy: Policy,
    log: &mut Log,
) -> Vec<Draft> {
    let mut merge = Merge {
        policy,
        drafts: Vec::new(),
        asides: Vec::new(),
        answers: HashMap::new(),
        parted: HashMap::new(),
        checked: 0,
    };
    for step in steps {
        match step.kind {
            StepKind::Assistant => merge.add_assistant(step),
            StepKind::ApiError => log.left_out(step.entry, OmissionReason::ApiError),
            StepKind::User | StepKind::LocalCommand => merge.add_user(step.blocks),
            StepKind::Reminder if system_role && step.is_for_system_role => {
                merge.asides.push(step.parts);
            }
            // Newer models get a file as if the user had said it.
            StepKind::Reminder if system_role && step.is_file => {
                merge.add_parts(step.parts, Merge::add_user_blocks);
            }
            StepKind::Reminder => merge.add_reminder(step.parts),
        }
    }
    merge.flush();
    merge.drafts
}

struct Merge {
    policy: Policy,
    drafts: Vec<Draft>,
    /// In the role form: the reminders of the turn, sent behind its user message.
    asides: Vec<Vec<Vec<Block>>>,
    /// The answers since the last message of the user without a result, by their id.
    answers: HashMap<Rc<str>, usize>,
    /// The answers before that.
    parted: HashMap<Rc<str>, usize>,
    /// How many drafts can no longer part answers.
    checked: usize,
}

impl Merge {
    /// The lines of one message become one message again, also across results, reminders and other
    /// answers between them (case 42-21), but not across what the user said. Lines without an id
    /// are merged as if they had the same one. Different messages in a row stay apart (case 43-02).
    fn add_assistant(&mut self, step: Step) {
        self.flush();
        if self.drafts[self.checked..].iter().any(Draft::parts_answers) {
            self.parted.extend(self.answers.drain());
        }
        // What the API's own tools gave has to stand with their call.
        if self.policy == Policy::Recover
            && let Some(at) = self.parted.get(&step.merge_key)
            && step.message_id.is_some()
            && step.blocks.iter().any(is_api_result)
        {
            self.drafts[*at].blocks.extend(step.blocks);
            return;
        }
        let at = *self
            .answers
            .entry(step.merge_key)
            .or_insert(self.drafts.len());
        match self.drafts.get_mut(at) {
            Some(answer) => answer.blocks.extend(step.blocks),
            None => self.drafts.push(Draft::new(Role::Assistant, step.blocks)),
        }
        // Only the last one still grows.
        self.checked = self.drafts.len() - 1;
    }

    /// Users in a row become one message: the earlier text gets a line end where two texts meet,
    /// the results move to the front.
    fn add_user(&mut self, blocks: Vec<Block>) {
        self.add_user_blocks(blocks);
        if let Some(message) = self.user_message() {
            message.has_line = true;
        }
    }

    fn add_user_blocks(&mut self, blocks: Vec<Block>) {
        let Some(message) = self.user_message() else {
            self.drafts.push(Draft::new(Role::User, blocks));
            return;
        };
        message.fold();
        if blocks
            .first()
            .is_some_and(|block| block.kind() == BlockKind::Text)
            && let Some(last) = message.last_mut(|_| true)
        {
            last.end_with_newline();
        }
        // Once merged, what comes after the front holds no results any more.
        let so_far = if message.is_merged {
            Vec::new()
        } else {
            std::mem::take(&mut message.blocks)
        };
        message.is_merged = true;
        for block in so_far.into_iter().chain(blocks) {
            if block.kind() == BlockKind::ToolResult {
                message.front.push(block);
            } else {
                message.blocks.push(block);
            }
        }
    }

    /// A reminder joins the user message before it: inside of the last result when that is the
    /// last block, else as a block.
    fn add_reminder(&mut self, parts: Vec<Vec<Block>>) {
        self.add_parts(parts, |merge, blocks| {
            if let Some(message) = merge.user_message() {
                for block in blocks {
                    add_reminder_block(message, block);
                }
            }
        });
    }

    /// Adds each part of a reminder to the user message before it with `join`. A reminder that opens
    /// the turn makes a message of each of its parts (case 91-a0).
    fn add_parts(&mut self, parts: Vec<Vec<Block>>, join: impl Fn(&mut Self, Vec<Block>)) {
        let opens = self.user_message().is_none();
        for blocks in parts {
            if opens {
                self.drafts.push(Draft::new(Role::User, blocks));
            } else {
                join(self, blocks);
            }
        }
    }

    fn user_message(&mut self) -> Option<&mut Draft> {
        self.drafts
            .last_mut()
            .filter(|message| message.role == Role::User)
    }

    /// Ends a turn. Reminders for a turn in which the user has no message are one themselves.
    fn flush(&mut self) {
        let asides = std::mem::take(&mut self.asides);
        if asides.is_empty() {
            return;
        }
        if self.user_message().is_none() {
            asides
                .into_iter()
                .for_each(|parts| self.add_reminder(parts));
            return;
        }
        let texts = asides.iter().flatten().flatten();
        let texts = texts.filter_map(Block::text_field);
        let texts: Vec<String> = texts.map(|text| unwrapped(&text).to_owned()).collect();
        let block = Block::plain_text(&texts.join("\n\n"));
        self.drafts.push(Draft::new(Role::System, vec![block]));
    }
}

fn add_reminder_block(message: &mut Draft, block: Block) {
    // The attribution reminder stands beside the results, and does not keep later ones out.
    if !is_attribution(&block) {
        let is_open =
            |last: &mut Block| last.kind() == BlockKind::ToolResult && takes_reminders(last);
        let follows = !message.folded.is_empty();
        if follows
            || message
                .last_mut(|block| !is_attribution(block))
                .is_some_and(is_open)
        {
            message.folded.push(block);
            return;
        }
        message.fold();
    }
    message.blocks.push(block);
}

fn is_api_result(block: &Block) -> bool {
    matches!(block.api_tool(), Some((ApiTool::Result, _)))
}

/// Whether reminders are folded into a result: not into one without content, nor into one that
/// holds a search result or a reference to a tool.
fn takes_reminders(result: &Block) -> bool {
    let Some(object) = result.object() else {
        return false;
    };
    let is_closed = |raw: &Raw<'_>| {
        let kind = raw.object().and_then(|block| block.get("type")?.str());
        matches!(kind.as_deref(), Some("search_result" | "tool_reference"))
    };
    match object.get("content") {
        Some(content) if content.is_null() => false,
        Some(content) => !content.array().unwrap_or_default().iter().any(is_closed),
        None => true,
    }
}

/// Puts reminders into a result.
fn fold(result: &mut Block, reminders: &[Block]) {
    transcript_format::work::add(result.json().len());
    let Some(object) = result.object() else {
        return;
    };
    let content = object.get("content");
    let folded = match content.and_then(Raw::array) {
        Some(blocks) => with_blocks(&blocks, reminders),
        None => {
            let content = content.and_then(Raw::str).unwrap_or_default();
            let folded = reminders
                .iter()
                .fold(content.into_owned(), |content, block| {
                    with_text(content, &block.text_field().unwrap_or_default())
                });
            quoted(&folded)
        }
    };
    result.set("content", &folded);
}

/// The content with one more text. Blanks at both ends of what is there are cut off only here
/// (cases 91-80, 91-89).
fn with_text(mut content: String, text: &str) -> String {
    let trimmed = js_trim(&content);
    if trimmed.is_empty() {
        return text.to_owned();
    }
    let start = trimmed.as_ptr() as usize - content.as_ptr() as usize;
    content.truncate(start + trimmed.len());
    content.drain(..start);
    content.push_str("\n\n");
    content.push_str(text);
    content
}

/// The list `blocks` with `added` behind it; a text before one of these gets a line end (cases 03,
/// 52).
fn with_blocks(blocks: &[Raw<'_>], added: &[Block]) -> String {
    let added = added
        .iter()
        .filter_map(|block| Raw::parse(block.json()).ok());
    let ends = blocks.len().saturating_sub(1);
    let mut list = String::from("[");
    let mut all = blocks.iter().copied().chain(added).enumerate().peekable();
    while let Some((at, raw)) = all.next() {
        let is_before_added = at >= ends && all.peek().is_some();
        if is_before_added && kind_of(raw) == BlockKind::Text {
            list += &with_newline(raw).unwrap_or_else(|| raw.text().to_owned());
        } else {
            list += raw.text();
        }
        if all.peek().is_some() {
            list.push(',');
        }
    }
    list.push(']');
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(content: &str) -> Draft {
        let result = format!(r#"{{"type":"tool_result","tool_use_id":"t","content":{content}}}"#);
        let raw = Raw::parse(&result).expect("test blocks are JSON");
        Draft::new(Role::User, vec![Block::read(raw, 1)])
    }

    /// What becomes of a result when reminders follow it; with `at_once` the whole of it is written
    /// again for each of them.
    fn folded(content: &str, reminders: &[&str], at_once: bool) -> String {
        let mut message = message(content);
        for reminder in reminders {
            add_reminder_block(&mut message, Block::text(reminder));
            if at_once {
                message.fold();
            }
        }
        message.move_results_to_front();
        let json: Vec<&str> = message.blocks.iter().map(Block::json).collect();
        json.join("\n")
    }

    #[test]
    fn reminders_that_are_folded_together_read_as_those_that_are_folded_one_by_one() {
        let contents = [
            r#""""#,
            r#"" \n out \u0000\ufeff""#,
            "null",
            "7",
            "[]",
            r#"[{"type":"text","text":"a"}]"#,
            r#"[{"type":"text","text":"a"},{"type":"image"}]"#,
        ];
        let reminders = [" one \n", "", "two\0", "\u{feff}three", "Attribution", " "];
        for content in contents {
            for count in 0..=reminders.len() {
                let reminders = &reminders[..count];
                let each = folded(content, reminders, true);
                assert_eq!(folded(content, reminders, false), each, "{content} {count}");
            }
        }
    }

    #[cfg(debug_assertions)]
    #[test]
    fn a_result_is_written_once_however_many_reminders_follow_it() {
        use transcript_format::work;
        let reminders = vec!["remember"; 500];
        let cost = |at_once| {
            let before = work::done();
            let len = folded(r#""out""#, &reminders, at_once).len() as u64;
            (work::done() - before) / len
        };
        assert!(cost(false) < 20, "{}", cost(false));
        // The count sees what it is for.
        assert!(cost(true) > 200, "{}", cost(true));
    }
}
