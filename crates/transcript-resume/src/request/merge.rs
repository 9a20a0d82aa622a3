//! Turns steps into messages: lines of one answer are joined, consecutive user entries are joined,
//! reminders are folded into the last result or added after it.

use std::sync::Arc;

use hashbrown::HashMap;
use transcript_format::object::Raw;
use transcript_messages::block::{ApiTool, kind_of, with_newline};
use transcript_messages::text::{js_trim, quoted, wrapped};
use transcript_messages::{Block, BlockKind, Log, Message, OmissionReason, Role};

use transcript_reader::Policy;

use super::reminders::{is_attribution, unwrapped};
use super::step::{Reminder, Step, StepKind};

/// A message that is still growing.
#[derive(Debug)]
struct Draft {
    role: Role,
    /// Whether it contains a user entry, not only reminders.
    has_line: bool,
    blocks: Vec<Block>,
    /// Apart, as few messages have any.
    moved: Option<Box<MovedBlocks>>,
    is_merged: bool,
}

#[derive(Debug, Default)]
struct MovedBlocks {
    /// The results that a merge moved to the front.
    front: Vec<Block>,
    /// Reminders to fold into the last result. This happens once, when all are known, as each fold
    /// rewrites the whole result.
    folded: Vec<Block>,
}

impl Draft {
    fn new(role: Role, blocks: Vec<Block>) -> Self {
        Self {
            role,
            has_line: false,
            blocks,
            moved: None,
            is_merged: false,
        }
    }

    /// Returns the message, once nothing more is merged: its results are at the front (MSG-4).
    fn finish(mut self) -> Message {
        self.fold();
        if let Some(moved) = self.moved {
            self.blocks.splice(0..0, moved.front);
        }
        if self.is_merged {
            self.blocks.iter_mut().for_each(Block::unlink_from_string);
        }
        Message::new(self.role, self.blocks)
    }

    /// Returns whether it separates answers: after it an answer starts again, even if one with its
    /// id precedes it (MSG-1).
    fn separates_answers(&self) -> bool {
        self.role == Role::User && self.has_line && !self.has_results()
    }

    fn has_results(&self) -> bool {
        let is_result = |block: &Block| block.kind() == BlockKind::ToolResult;
        let moved = self.moved.as_ref();
        moved.is_some_and(|moved| !moved.front.is_empty()) || self.blocks.iter().any(is_result)
    }

    /// Folds the waiting reminders into the last result.
    fn fold(&mut self) {
        let moved = self.moved.as_mut();
        let folded = moved.map(|moved| std::mem::take(&mut moved.folded));
        let folded = folded.unwrap_or_default();
        if !folded.is_empty()
            && let Some(result) = self.last_mut(|block| !is_attribution(block))
        {
            fold(result, &folded);
        }
    }

    fn last_mut(&mut self, wanted: impl Fn(&Block) -> bool) -> Option<&mut Block> {
        let front = self.moved.as_mut().map(|moved| &mut moved.front);
        let blocks = front.into_iter().flatten().chain(&mut self.blocks);
        blocks.rev().find(|block| wanted(block))
    }

    fn moved(&mut self) -> &mut MovedBlocks {
        self.moved.get_or_insert_default()
    }
}

pub(super) fn merge(
    steps: Vec<Step>,
    system_role: bool,
    policy: Policy,
    log: &mut Log,
) -> Vec<Message> {
    let mut merge = Merge {
        policy,
        drafts: Vec::new(),
        system_reminders: Vec::new(),
        answers: HashMap::new(),
        earlier_answers: HashMap::new(),
        checked: 0,
        last_without_result: None,
    };
    for step in steps {
        match step.kind {
            StepKind::Assistant => merge.add_assistant(step),
            // An API error is not sent, but has already stopped reminders; the prompts around it
            // merge (ERR-1).
            StepKind::ApiError => log.omit(step.origin(), OmissionReason::ApiError),
            StepKind::Silent => {}
            StepKind::User | StepKind::LocalCommand => merge.add_user(step.blocks),
            StepKind::Reminder => {
                let reminder = step.reminder.map_or_else(Reminder::default, |boxed| *boxed);
                if system_role && reminder.is_for_older_models {
                    // It is about tools that newer models do not have.
                } else if system_role && reminder.is_for_system_role {
                    merge.system_reminders.push(reminder.parts);
                } else if system_role && reminder.is_file {
                    // Newer models get a file as if the user had written it (NOTE-7).
                    merge.add_parts(reminder.parts, Merge::add_user_blocks);
                } else {
                    merge.add_reminder(reminder.parts);
                }
            }
        }
    }
    merge.flush();
    // In a list of their own: the one of the drafts is several times as large.
    let mut messages = Vec::with_capacity(merge.drafts.len());
    messages.extend(merge.drafts.into_iter().map(Draft::finish));
    messages
}

struct Merge {
    policy: Policy,
    drafts: Vec<Draft>,
    /// If reminders are sent as system messages: those of the turn, which follow its user message
    /// (NOTE-6).
    system_reminders: Vec<Vec<Vec<Block>>>,
    /// The answers since the last user message that has no tool result, by their id.
    answers: HashMap<Arc<str>, usize>,
    /// The answers before that message, by their id.
    earlier_answers: HashMap<Arc<str>, usize>,
    /// The number of drafts that are complete and were checked for separating answers.
    checked: usize,
    /// The last of them that is a user message without a result.
    last_without_result: Option<usize>,
}

impl Merge {
    /// Joins the lines of one message, also across results, reminders and other answers between
    /// them, but not across user text (MSG-1). Lines without an id are merged as if they had the
    /// same one (MSG-2). Different messages in a row stay separate.
    fn add_assistant(&mut self, step: Step) {
        for (at, draft) in self.drafts.iter().enumerate().skip(self.checked) {
            if draft.role == Role::User && !draft.has_results() {
                self.last_without_result = Some(at);
            }
        }
        if self.drafts[self.checked..]
            .iter()
            .any(Draft::separates_answers)
        {
            self.earlier_answers.extend(self.answers.drain());
        }
        // A line without an id does not look past a message of reminders (MSG-2).
        if step.message_id().is_none()
            && let Some(at) = self.answers.get(&step.merge_key())
            && Some(*at) < self.last_without_result
        {
            self.answers.remove(&step.merge_key());
        }
        // A result of the API's own tools has to be in the message of its call.
        if self.policy == Policy::Recover
            && let Some(at) = self.earlier_answers.get(&step.merge_key())
            && step.message_id().is_some()
            && step.blocks.iter().any(is_api_result)
        {
            self.drafts[*at].blocks.extend(step.blocks);
            return;
        }
        // A line of an earlier answer does not end the turn.
        if let Some(at) = self.answers.get(&step.merge_key()) {
            self.drafts[*at].blocks.extend(step.blocks);
        } else {
            self.flush();
            self.answers.insert(step.merge_key(), self.drafts.len());
            self.drafts.push(Draft::new(Role::Assistant, step.blocks));
        }
        // Only the last draft still grows.
        self.checked = self.drafts.len() - 1;
    }

    /// Joins consecutive user entries: the earlier text gets a line feed where two texts meet
    /// (MSG-3), and the results move to the front (MSG-4).
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
        // Once merged, the part after the front contains no more results.
        let so_far = if message.is_merged {
            Vec::new()
        } else {
            std::mem::take(&mut message.blocks)
        };
        message.is_merged = true;
        for block in so_far.into_iter().chain(blocks) {
            if block.kind() == BlockKind::ToolResult {
                message.moved().front.push(block);
            } else {
                message.blocks.push(block);
            }
        }
    }

    /// Adds a reminder to the user message before it: inside the last result when that is the last
    /// block (NOTE-3), else as a block.
    fn add_reminder(&mut self, parts: Vec<Vec<Block>>) {
        self.add_parts(parts, |merge, blocks| {
            if let Some(message) = merge.user_message() {
                if blocks.iter().any(|block| block.kind() != BlockKind::Text) {
                    // A reminder with an image is not folded, nor is what follows it (NOTE-11).
                    message.fold();
                    message.blocks.extend(blocks);
                    return;
                }
                for block in blocks {
                    add_reminder_block(message, block);
                }
            }
        });
    }

    /// Adds each part of a reminder to the user message before it with `join`. For a reminder that
    /// opens the turn, each part becomes a message (NOTE-8).
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

    /// Ends a turn: its system reminders become one message, or, in a turn without a user message, one
    /// reminder in text form (NOTE-7).
    fn flush(&mut self) {
        let reminders = std::mem::take(&mut self.system_reminders);
        let texts = reminders.iter().map(|parts| {
            let texts = parts.iter().flatten().filter_map(Block::text_field);
            let texts: Vec<String> = texts.map(|text| unwrapped(&text).to_owned()).collect();
            texts.join("\n")
        });
        let texts: Vec<String> = texts.filter(|text| !js_trim(text).is_empty()).collect();
        if texts.is_empty() {
            return;
        }
        let text = texts.join("\n\n");
        if self.user_message().is_some() {
            let block = Block::plain_text(&text);
            self.drafts.push(Draft::new(Role::System, vec![block]));
        } else {
            let first = reminders.iter().flatten().flatten().next();
            let block = Block::plain_text(&wrapped(&text));
            self.add_reminder(vec![vec![block.with_origin(first.and_then(Block::origin))]]);
        }
    }
}

fn add_reminder_block(message: &mut Draft, block: Block) {
    // The attribution reminder is placed after the results and does not prevent later reminders
    // from being folded into them (NOTE-5).
    if !is_attribution(&block) {
        let is_open =
            |last: &mut Block| last.kind() == BlockKind::ToolResult && takes_reminders(last);
        let follows = message
            .moved
            .as_ref()
            .is_some_and(|moved| !moved.folded.is_empty());
        if follows
            || message
                .last_mut(|block| !is_attribution(block))
                .is_some_and(is_open)
        {
            message.moved().folded.push(block);
            return;
        }
        message.fold();
    }
    message.blocks.push(block);
}

pub(super) fn is_api_result(block: &Block) -> bool {
    matches!(block.api_tool(), Some((ApiTool::Result, _)))
}

/// Returns whether reminders may be folded into a result: not without content, nor with a search
/// result or a reference to a tool (NOTE-4).
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

/// Folds reminders into a result (NOTE-3).
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

/// Appends a text to the content. White space at both ends of the content is trimmed only here
/// (NOTE-3).
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

/// Returns the list `blocks` with `added` appended; a text before an added one gets a line feed.
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
        Draft::new(Role::User, vec![Block::read(raw).with_origin(Some(1))])
    }

    /// Folds reminders into a result; with `at_once` the whole result is rewritten for each of
    /// them.
    fn folded(content: &str, reminders: &[&str], at_once: bool) -> String {
        let mut message = message(content);
        for reminder in reminders {
            add_reminder_block(&mut message, Block::text(reminder));
            if at_once {
                message.fold();
            }
        }
        let message = message.finish();
        let json: Vec<&str> = message.blocks().iter().map(Block::json).collect();
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
        // Proves that the counter detects the repeated work.
        assert!(cost(true) > 200, "{}", cost(true));
    }
}
