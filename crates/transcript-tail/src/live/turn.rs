//! Tracks open calls, and whether the turn is over.
//!
//! What counts as a prompt, as an answer and as an end is defined as for the state of a listed
//! session (`docs/listing.md`, "State").

use std::collections::{BTreeMap, HashMap, VecDeque};

use transcript_format::kind::{EntryKind, SystemKind};
use transcript_format::object::{Object, Raw};
use transcript_format::scan::{Envelope, Flags, ToolRole};
use transcript_format::texts::is_synthetic;
use transcript_reader::Prompt;

use super::ChangeKind;

/// The maximum number of results that are kept because they arrived before their calls.
const MAX_EARLY: usize = 64;

#[derive(Debug)]
pub(super) struct TurnTracker {
    /// The open calls in the order in which they were opened.
    open: BTreeMap<u64, OpenCall>,
    by_id: HashMap<Box<str>, u64>,
    count: u64,
    early: VecDeque<Box<str>>,
    is_over: bool,
    /// The last line of an answer that may be complete: since then there were only entries that end
    /// a turn.
    answer: Option<u32>,
    /// The entry that ended the turn, and its `message`.
    end: Option<(u32, u32)>,
}

#[derive(Debug)]
struct OpenCall {
    id: Box<str>,
    node: u32,
}

impl Default for TurnTracker {
    fn default() -> Self {
        Self {
            open: BTreeMap::new(),
            by_id: HashMap::new(),
            count: 0,
            early: VecDeque::new(),
            is_over: true,
            answer: None,
            end: None,
        }
    }
}

/// An entry of the conversation.
#[derive(Clone, Copy)]
pub(super) struct TurnInput<'a> {
    pub(super) node: u32,
    pub(super) entry: &'a Envelope<'a>,
    pub(super) text: &'a str,
    /// A hash of its `message.id`; 0 for none.
    pub(super) message: u32,
}

/// The effect of an entry on the turn.
#[derive(Debug)]
pub(super) enum TurnUpdate {
    Call(ChangeKind),
    /// The turn is over with this entry.
    Ended(Option<u32>),
}

impl TurnTracker {
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &str> {
        self.open.values().map(|call| &*call.id)
    }

    /// Drops the open calls whose entries do not satisfy `stays`.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(u32) -> bool) {
        let by_id = &mut self.by_id;
        self.open.retain(|_, call| {
            let stays = stays(call.node);
            if !stays {
                by_id.remove(&call.id);
            }
            stays
        });
    }

    /// Drops the calls of entries that were tombstoned.
    pub(super) fn forget(&mut self, is_gone: impl Fn(u32) -> bool) {
        self.retain(|node| !is_gone(node));
        self.answer.take_if(|node| is_gone(*node));
        if self.end.take_if(|(node, _)| is_gone(*node)).is_some() {
            self.is_over = false;
        }
    }

    pub(super) fn add(&mut self, input: TurnInput<'_>, updates: &mut Vec<TurnUpdate>) {
        if input.entry.flags().contains(Flags::META) && input.entry.kind().is_message() {
            return;
        }
        match input.entry.kind() {
            EntryKind::Assistant => self.add_answer(input, updates),
            EntryKind::User => self.add_user(input, updates),
            EntryKind::System => self.add_system(input, updates),
            _ => {}
        }
    }

    /// Handles a `last-prompt` line: clients write it at the end of a turn, and 2.1.329 also in the
    /// middle of one (META-2).
    pub(super) fn add_last_prompt(&mut self, updates: &mut Vec<TurnUpdate>) {
        self.end_with_answer(updates);
    }

    fn add_answer(&mut self, input: TurnInput<'_>, updates: &mut Vec<TurnUpdate>) {
        let flags = input.entry.flags();
        if flags.contains(Flags::API_ERROR) {
            return self.end(Some(input), updates);
        }
        let has_calls = input.entry.tools().len() > 0;
        let has_text = flags.contains(Flags::HAS_TEXT);
        let line = match has_calls || has_text {
            true => AnswerLine::of(input.text),
            false => AnswerLine::default(),
        };
        if line.last_text.is_some_and(|text| is_synthetic(&text)) {
            return;
        }
        let is_same = input.message != 0 && self.end.is_some_and(|(_, key)| key == input.message);
        self.is_over &= is_same;
        let mut names = line.calls.into_iter();
        for tool in input.entry.tools() {
            let id = tool.id.decode();
            match tool.role {
                ToolRole::Use | ToolRole::ServerUse => {
                    let name = names.find(|call| *call.0 == *id).and_then(|call| call.1);
                    self.open_call(&id, name, input.node, updates);
                }
                ToolRole::Result | ToolRole::ServerResult => self.close_call(&id, updates),
            }
        }
        let is_answer = flags.intersects(Flags::HAS_TEXT | Flags::HAS_OTHER_BLOCK);
        self.answer = (is_answer && !flags.contains(Flags::HAS_TOOL_USE)).then_some(input.node);
        let stop = line.stop.as_deref();
        if stop.is_some_and(|stop| !matches!(stop, "tool_use" | "pause_turn")) {
            self.end_with_answer(updates);
            self.end = self.end.map(|(node, _)| (node, input.message));
        }
    }

    fn add_user(&mut self, input: TurnInput<'_>, updates: &mut Vec<TurnUpdate>) {
        let flags = input.entry.flags();
        if flags.contains(Flags::HAS_TOOL_RESULT) {
            for tool in input.entry.tools() {
                self.close_call(&tool.id.decode(), updates);
            }
            self.answer = None;
            return;
        }
        if flags.contains(Flags::COMPACT_SUMMARY) {
            return;
        }
        let prompt = Object::parse(input.text).map(|line| Prompt::of(&line));
        match prompt {
            Ok(Prompt::Interrupt) => self.end(Some(input), updates),
            Ok(Prompt::Text(_)) => self.begin(updates),
            // An image alone is a prompt, too.
            Ok(Prompt::Nothing) if flags.contains(Flags::HAS_OTHER_BLOCK) => self.begin(updates),
            _ => {}
        }
    }

    fn add_system(&mut self, input: TurnInput<'_>, updates: &mut Vec<TurnUpdate>) {
        match SystemKind::from_code(input.entry.sub_code()) {
            SystemKind::StopHookSummary => self.end_with_answer(updates),
            SystemKind::TurnDuration => match self.answer {
                Some(_) => self.end_with_answer(updates),
                None => self.end(None, updates),
            },
            _ => {}
        }
    }

    /// Begins a turn with a prompt. An answer before it that was not marked as complete is
    /// complete.
    fn begin(&mut self, updates: &mut Vec<TurnUpdate>) {
        self.end_with_answer(updates);
        self.open.clear();
        self.by_id.clear();
        (self.is_over, self.answer, self.end) = (false, None, None);
    }

    fn end_with_answer(&mut self, updates: &mut Vec<TurnUpdate>) {
        if let Some(node) = self
            .answer
            .filter(|_| !self.is_over && self.open.is_empty())
        {
            self.is_over = true;
            self.end = Some((node, 0));
            updates.push(TurnUpdate::Ended(Some(node)));
        }
    }

    /// Ends the turn, whatever is open.
    fn end(&mut self, input: Option<TurnInput<'_>>, updates: &mut Vec<TurnUpdate>) {
        self.open.clear();
        self.by_id.clear();
        self.answer = None;
        if !std::mem::replace(&mut self.is_over, true) {
            self.end = input.map(|input| (input.node, input.message));
            updates.push(TurnUpdate::Ended(input.map(|input| input.node)));
        }
    }

    fn open_call(
        &mut self,
        id: &str,
        name: Option<Box<str>>,
        node: u32,
        updates: &mut Vec<TurnUpdate>,
    ) {
        if self.by_id.contains_key(id) {
            return;
        }
        updates.push(TurnUpdate::Call(ChangeKind::CallOpened {
            id: id.into(),
            name,
        }));
        self.count += 1;
        self.by_id.insert(id.into(), self.count);
        let call = OpenCall {
            id: id.into(),
            node,
        };
        self.open.insert(self.count, call);
        if let Some(at) = self.early.iter().position(|early| **early == *id) {
            self.early.remove(at);
            self.close_call(id, updates);
        }
    }

    fn close_call(&mut self, id: &str, updates: &mut Vec<TurnUpdate>) {
        if let Some(number) = self.by_id.remove(id) {
            self.open.remove(&number);
            updates.push(TurnUpdate::Call(ChangeKind::CallClosed { id: id.into() }));
        } else {
            // The result of a fast tool may be written before its call.
            self.early.push_back(id.into());
            if self.early.len() > MAX_EARLY {
                self.early.pop_front();
            }
        }
    }

    /// Returns the memory in bytes.
    pub(super) fn memory(&self) -> usize {
        let ids = self.open.values().map(|call| 2 * call.id.len());
        let early = self.early.iter().map(|id| id.len());
        ids.chain(early).sum::<usize>() + self.by_id.capacity() * size_of::<(Box<str>, u64)>()
    }
}

/// The fields of an answer that the envelope does not have.
#[derive(Default)]
struct AnswerLine<'a> {
    stop: Option<Box<str>>,
    last_text: Option<std::borrow::Cow<'a, str>>,
    /// The id and the tool of each call.
    calls: Vec<(Box<str>, Option<Box<str>>)>,
}

impl<'a> AnswerLine<'a> {
    fn of(text: &'a str) -> Self {
        Self::read(text).unwrap_or_default()
    }

    fn read(text: &'a str) -> Option<Self> {
        let message = Object::parse(text).ok()?.object("message")?;
        let mut line = Self {
            stop: message.str("stop_reason").map(Into::into),
            ..Self::default()
        };
        let content = message.get("content")?;
        line.last_text = content.str();
        for block in content.array().unwrap_or_default() {
            let Some(block) = Raw::object(block) else {
                continue;
            };
            match block.str("type").as_deref() {
                Some("text") => line.last_text = block.str("text"),
                Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                    if let Some(id) = block.str("id") {
                        let name = block.str("name").map(Into::into);
                        line.calls.push((id.into(), name));
                    }
                }
                _ => {}
            }
        }
        Some(line)
    }
}
