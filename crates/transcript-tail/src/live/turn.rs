//! Tracks open calls, and whether the turn is over.
//!
//! Prompts, answers and ends of turns are defined as for the state of a listed
//! session (`docs/listing.md`, "State").

use std::collections::{BTreeMap, HashMap, VecDeque};

use transcript_format::kind::{EntryKind, SystemKind};
use transcript_format::object::Object;
use transcript_format::scan::{Envelope, Flags, Text, Tool, ToolRole};
use transcript_format::texts::{is_synthetic, may_start_with};
use transcript_reader::{EntryRef, MessageKey, Prompt};

use crate::change::ChangeKind;

/// The maximum number of results that are kept because they arrived before their calls.
const MAX_EARLY: usize = 64;

/// The calls and the end of a turn. Entries are named by their offsets.
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
    answer: Option<u64>,
    /// The entry that ended the turn, and its message.
    end: Option<(u64, Option<MessageKey>)>,
}

#[derive(Debug)]
struct OpenCall {
    id: Box<str>,
    offset: u64,
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

/// The role of an entry in the turn.
#[derive(Debug)]
pub(super) enum TurnLine {
    Nothing,
    /// A line of an answer, or a result of the provider.
    Answer(AnswerLine),
    /// The results of calls.
    Results(Vec<Box<str>>),
    /// A prompt of a person.
    Prompt,
    /// An interrupt of a person, or an API error.
    Break,
    /// A line that is written at the end of an answer.
    EndOfAnswer,
    /// A `turn_duration` line.
    EndOfTurn,
}

#[derive(Debug)]
pub(super) struct AnswerLine {
    /// In the order of the line.
    tools: Vec<ToolLine>,
    /// It has text or the like and no call of the client.
    is_answer: bool,
    /// It says that the answer is complete.
    is_end: bool,
}

#[derive(Debug)]
enum ToolLine {
    Call {
        id: Box<str>,
        name: Option<Box<str>>,
    },
    Result(Box<str>),
}

impl TurnLine {
    /// Reads an entry from its line.
    pub(super) fn of(entry: &Envelope<'_>, text: &str) -> Self {
        if entry.flags().contains(Flags::META) && entry.kind().is_message() {
            return Self::Nothing;
        }
        match entry.kind() {
            EntryKind::Assistant => Self::of_answer(entry),
            EntryKind::User => Self::of_user(entry, text),
            EntryKind::System => match SystemKind::from_code(entry.sub_code()) {
                SystemKind::StopHookSummary => Self::EndOfAnswer,
                SystemKind::TurnDuration => Self::EndOfTurn,
                _ => Self::Nothing,
            },
            _ => Self::Nothing,
        }
    }

    fn of_answer(entry: &Envelope<'_>) -> Self {
        let flags = entry.flags();
        if flags.contains(Flags::API_ERROR) {
            return Self::Break;
        }
        // Of thoughts alone nothing is read, nor of a body with too many parts.
        let is_read = (entry.tools().len() > 0 || flags.contains(Flags::HAS_TEXT))
            && !flags.contains(Flags::TOO_MANY);
        let text = entry.last_text().filter(|_| is_read);
        let may_be_synthetic =
            |text: &Text<'_>| text.raw().first().copied().is_none_or(may_start_with);
        if text.is_some_and(|text| may_be_synthetic(&text) && is_synthetic(&text.decode())) {
            return Self::Nothing;
        }
        let tool = |tool: Tool<'_>| {
            let id: Box<str> = tool.id.decode().into();
            match tool.role {
                ToolRole::Use | ToolRole::ServerUse => {
                    let name = tool.name.filter(|_| is_read);
                    let name = name.map(|name| name.decode().into());
                    ToolLine::Call { id, name }
                }
                ToolRole::Result | ToolRole::ServerResult => ToolLine::Result(id),
            }
        };
        let is_answer = flags.intersects(Flags::HAS_TEXT | Flags::HAS_OTHER_BLOCK);
        let stop = entry.stop_reason().filter(|_| is_read);
        Self::Answer(AnswerLine {
            tools: entry.tools().map(tool).collect(),
            is_answer: is_answer && !flags.contains(Flags::HAS_TOOL_USE),
            is_end: stop.is_some_and(|stop| !matches!(&*stop.bytes(), b"tool_use" | b"pause_turn")),
        })
    }

    fn of_user(entry: &Envelope<'_>, text: &str) -> Self {
        let flags = entry.flags();
        if flags.contains(Flags::HAS_TOOL_RESULT) {
            let ids = entry.tools().map(|tool| tool.id.decode().into());
            return Self::Results(ids.collect());
        }
        if flags.contains(Flags::COMPACT_SUMMARY) {
            return Self::Nothing;
        }
        match Object::parse(text).map(|line| Prompt::of(&line)) {
            Ok(Prompt::Interrupt) => Self::Break,
            Ok(Prompt::Text(_) | Prompt::Media) => Self::Prompt,
            _ => Self::Nothing,
        }
    }
}

/// The effect of an entry on the turn.
#[derive(Debug)]
pub(super) enum TurnUpdate {
    Call(ChangeKind),
    /// The turn is over with this entry.
    Ended(Option<u64>),
}

impl TurnTracker {
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &str> {
        self.open.values().map(|call| &*call.id)
    }

    /// Drops the open calls whose entries do not satisfy `stays`.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(u64) -> bool) {
        let by_id = &mut self.by_id;
        self.open.retain(|_, call| {
            let stays = stays(call.offset);
            if !stays {
                by_id.remove(&call.id);
            }
            stays
        });
    }

    /// Drops the calls of entries that were tombstoned.
    pub(super) fn forget(&mut self, is_gone: impl Fn(u64) -> bool) {
        self.retain(|offset| !is_gone(offset));
        self.answer.take_if(|offset| is_gone(*offset));
        if self.end.take_if(|(offset, _)| is_gone(*offset)).is_some() {
            self.is_over = false;
        }
    }

    /// Adds an entry of the conversation.
    pub(super) fn add(
        &mut self,
        entry: &EntryRef<'_>,
        line: TurnLine,
        updates: &mut Vec<TurnUpdate>,
    ) {
        match line {
            TurnLine::Nothing => {}
            TurnLine::Answer(line) => self.add_answer(entry, line, updates),
            TurnLine::Results(ids) => {
                for id in ids {
                    self.close_call(&id, updates);
                }
                self.answer = None;
            }
            TurnLine::Prompt => self.begin(updates),
            TurnLine::Break => self.end(Some(entry), updates),
            TurnLine::EndOfAnswer => self.end_with_answer(updates),
            TurnLine::EndOfTurn if self.answer.is_some() => self.end_with_answer(updates),
            TurnLine::EndOfTurn => self.end(None, updates),
        }
    }

    /// Handles a `last-prompt` line: clients write it at the end of a turn, and 2.1.329 also in the
    /// middle of one (META-2).
    pub(super) fn add_last_prompt(&mut self, updates: &mut Vec<TurnUpdate>) {
        self.end_with_answer(updates);
    }

    fn add_answer(
        &mut self,
        entry: &EntryRef<'_>,
        line: AnswerLine,
        updates: &mut Vec<TurnUpdate>,
    ) {
        let message = entry.message();
        self.is_over &= message.is_some() && self.end.is_some_and(|(_, end)| end == message);
        for tool in line.tools {
            match tool {
                ToolLine::Call { id, name } => self.open_call(&id, name, entry.offset(), updates),
                ToolLine::Result(id) => self.close_call(&id, updates),
            }
        }
        self.answer = line.is_answer.then_some(entry.offset());
        if line.is_end {
            self.end_with_answer(updates);
            self.end = self.end.map(|(offset, _)| (offset, message));
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
        let is_end = !self.is_over && self.open.is_empty();
        if let Some(answer) = self.answer.filter(|_| is_end) {
            self.is_over = true;
            self.end = Some((answer, None));
            updates.push(TurnUpdate::Ended(Some(answer)));
        }
    }

    /// Ends the turn, whatever is open.
    fn end(&mut self, entry: Option<&EntryRef<'_>>, updates: &mut Vec<TurnUpdate>) {
        self.open.clear();
        self.by_id.clear();
        self.answer = None;
        if !std::mem::replace(&mut self.is_over, true) {
            self.end = entry.map(|entry| (entry.offset(), entry.message()));
            updates.push(TurnUpdate::Ended(entry.map(EntryRef::offset)));
        }
    }

    fn open_call(
        &mut self,
        id: &str,
        name: Option<Box<str>>,
        offset: u64,
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
            offset,
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
}
