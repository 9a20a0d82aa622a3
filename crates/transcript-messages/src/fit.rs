//! Omits the oldest parts of a request until it fits the context window of a model.

use std::collections::{BTreeSet, HashSet};
use std::iter::Peekable;

use transcript_format::texts;
use transcript_format::units::size;

use super::block::{Block, BlockKind};
use super::estimate::TokenEstimate;
use super::log::{Log, OmissionReason, SyntheticKind};
use super::media::{Medium, media_of, note_text, replace_by_notes};
use super::message::{Joined, Message, Role};
use super::text::quoted;

/// The maximum length of messages, and the turns that are never omitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FitLimit {
    /// The maximum number of tokens, as [`TokenEstimate`] counts them.
    pub tokens: u64,
    /// The number of turns at the end that stay as they are. A turn starts with a prompt and lasts until the next one.
    /// With 0, only the last prompt and the last answer with its results do.
    pub turns: usize,
}

/// The origins of blocks, which only the caller knows.
pub trait Origins {
    /// Returns its position in the session, such as `line 12`, for the note that replaces it.
    fn place(&self, origin: usize) -> String;

    /// Returns whether it is a prompt, with which a turn starts.
    fn is_prompt(&self, origin: usize) -> bool;

    /// Returns whether it is a summary of what came before, which is never omitted.
    fn is_summary(&self, origin: usize) -> bool;
}

/// Results with fewer tokens are not replaced: the note would be as long.
const MIN_RESULT_TOKENS: u64 = 64;
/// The maximum size of a note, in tokens.
const MAX_NOTE_TOKENS: u64 = 64;
/// A request that is too long is cut to its limit minus one part; the limit has this number of parts.
const LIMIT_PARTS: u64 = 8;

/// Omits parts of a request that [`make_strict`](super::make_strict) made, until it is within the limit or
/// nothing more may be omitted. Returns the tokens of the rest; more than the limit if that could not be reached.
///
/// In this order, and each only as far as needed: images and documents, the oldest first; results, the oldest first;
/// whole turns from the start. A note in the place of each says where it is. Calls and their results stay together, and
/// a request that was accepted before is accepted after.
///
/// The requests of a growing conversation start with the same messages as often as possible, for which a provider has a
/// cache. A request is therefore cut as it would have been while it grew: the first request beyond the limit is cut to
/// seven eighths of it, and its cut stays until the conversation has grown by the eighth, and so on. What follows from
/// this: a request may be up to an eighth shorter than needed, and what counts as one of the last turns is decided when
/// the conversation is cut.
pub fn fit(
    messages: &mut Vec<Message>,
    limit: FitLimit,
    origins: &dyn Origins,
    log: &mut Log,
) -> u64 {
    let tokens = tokens_of_blocks(messages);
    let total = sum_of_all(&tokens);
    if total <= limit.tokens {
        return total;
    }
    let media = media_of(messages);
    let ends = ends_of_requests(messages);
    let mut fitting = RequestFitter {
        total: 0,
        goal: limit.tokens - limit.tokens / LIMIT_PARTS,
        len: 0,
        media: media.into_iter().peekable(),
        next_result: 0,
        prompts: Vec::new(),
        turns: Vec::new(),
        answers: Vec::new(),
        removed: Vec::new(),
        tokens,
        messages,
        limit,
        origins,
        log,
    };
    for end in ends {
        fitting.grow(end);
        if fitting.total > limit.tokens {
            fitting.omit_media();
            fitting.omit_results();
            fitting.omit_turns();
        }
    }
    fitting.remove_turns();
    fitting.total
}

/// Returns the numbers of messages of all requests by which a conversation grew, in order: an answer follows each but the
/// last.
fn ends_of_requests(messages: &[Message]) -> Vec<usize> {
    let is_answer = |at: usize| messages[at].role == Role::Assistant;
    let is_end = |end: &usize| {
        if *end == messages.len() {
            true
        } else {
            !is_answer(end - 1) && is_answer(*end)
        }
    };
    (1..=messages.len()).filter(is_end).collect()
}

/// A request that grows, and the parts that are omitted from it.
struct RequestFitter<'a> {
    /// The messages of the last request. Media and results are replaced in them; turns are removed at the end.
    messages: &'a mut Vec<Message>,
    /// The tokens of each block of each message.
    tokens: Vec<Vec<u64>>,
    limit: FitLimit,
    /// The tokens to which a request beyond the limit is cut.
    goal: u64,
    /// The number of messages of the request so far.
    len: usize,
    /// The tokens of these, without the removed ones, and with the notes.
    total: u64,
    /// The images and documents that were not looked at.
    media: Peekable<std::vec::IntoIter<Medium>>,
    /// The first message whose results were not looked at.
    next_result: usize,
    /// The positions of prompts in the request so far.
    prompts: Vec<usize>,
    /// The positions at which the rest may begin if turns are removed before it.
    turns: Vec<usize>,
    /// The positions of answers.
    answers: Vec<usize>,
    /// The removed messages, in order.
    removed: Vec<Removed>,
    origins: &'a dyn Origins,
    log: &'a mut Log,
}

/// Messages in whose place a note is sent.
#[derive(Clone, Copy)]
struct Removed {
    start: usize,
    end: usize,
    tokens: u64,
}

impl Removed {
    /// Returns by how many tokens a request gets shorter; 0 for a few words, which stay, as a note would be longer.
    fn gain(&self) -> u64 {
        self.tokens.saturating_sub(MAX_NOTE_TOKENS)
    }
}

impl RequestFitter<'_> {
    /// Adds the messages up to `end`.
    fn grow(&mut self, end: usize) {
        for at in self.len..end {
            self.total += sum(&self.tokens[at]);
            let message = &self.messages[at];
            match message.role {
                Role::Assistant => self.answers.push(at),
                Role::User if !has_results(message) => self.turns.push(at),
                _ => {}
            }
            if self.is_prompt(at) {
                self.prompts.push(at);
            }
        }
        self.len = end;
    }

    fn is_too_long(&self) -> bool {
        self.total > self.goal
    }

    fn omit_media(&mut self) {
        let (start, end) = (self.end_of_removed(), self.first_kept());
        let mut replaced = Vec::new();
        let mut total = self.total;
        while total > self.goal
            && let Some(medium) = self.media.next_if(|medium| medium.message < end)
        {
            if medium.message < start {
                continue;
            }
            let block = &self.messages[medium.message].blocks[medium.block];
            let what = if medium.is_image {
                "an image"
            } else {
                "a document"
            };
            let place = self.place(block.origin());
            let why = format!("{what}, to fit the context window{place}");
            let note = TokenEstimate::of_text(&note_text(&why)).tokens;
            // A note in the place of a tiny image would be longer.
            if medium.tokens.is_none_or(|tokens| tokens > note) {
                total = (total + note).saturating_sub(medium.tokens.unwrap_or(0));
                replaced.push((medium, why));
            }
        }
        let places = replaced.iter();
        let places = places.map(|(medium, _)| (medium.message, medium.block));
        let places: BTreeSet<(usize, usize)> = places.collect();
        let reason = OmissionReason::ContextWindow;
        replace_by_notes(self.messages, replaced, reason, self.log);
        for (message, block) in places {
            self.count_again(message, block);
        }
    }

    fn omit_results(&mut self) {
        let end = self.first_kept();
        self.next_result = self.next_result.max(self.end_of_removed());
        while self.is_too_long() && self.next_result < end {
            let at = self.next_result;
            for number in 0..self.messages[at].blocks.len() {
                let is_result = self.messages[at].blocks[number].kind() == BlockKind::ToolResult;
                if is_result && self.is_too_long() && self.tokens[at][number] >= MIN_RESULT_TOKENS {
                    self.omit_result(at, number);
                }
            }
            // The rest of its results may be omitted later.
            self.next_result += usize::from(self.is_too_long());
        }
    }

    fn omit_result(&mut self, at: usize, number: usize) {
        let block = &self.messages[at].blocks[number];
        let (origin, len) = (block.origin(), size(block.json_len() as u64));
        let note = format!("{}a result of {len}{}]", texts::OMITTED, self.place(origin));
        self.messages[at].blocks[number].set("content", &quoted(&note));
        self.count_again(at, number);
        self.log.omit(origin, OmissionReason::ContextWindow);
        let (kind, note) = (SyntheticKind::OmissionNote, Block::text(&note));
        self.log.add_synthetic(kind, Role::User, &note, origin);
    }

    /// Omits turns from the start; if no turn has to stay, also the first answers of the last one.
    fn omit_turns(&mut self) {
        let start = usize::from(self.starts_with_summary());
        let last_prompt = self.prompts.last().copied();
        let end = match self.limit.turns {
            0 => last_prompt.unwrap_or(0),
            _ => self.first_kept(),
        };
        while self.is_too_long()
            && let Some(to) = self.next_place(&self.turns, start, end)
        {
            self.omit(start, to);
        }
        if self.limit.turns > 0 {
            return;
        }
        let behind_prompt = last_prompt.map_or(start, |prompt| prompt + 1);
        while self.is_too_long()
            && let Some(to) = self.next_place(&self.answers, behind_prompt, self.first_kept())
        {
            self.omit(behind_prompt, to);
        }
    }

    /// Returns the first of these places behind `start`, and behind all that is removed, up to `end`.
    fn next_place(&self, places: &[usize], start: usize, end: usize) -> Option<usize> {
        let start = start.max(self.end_of_removed());
        let next = places.partition_point(|place| *place <= start);
        places.get(next).copied().filter(|place| *place <= end)
    }

    /// Omits the messages from `start` to `end`, with all that is removed behind `start`.
    fn omit(&mut self, start: usize, end: usize) {
        let (mut counted, mut tokens) = (start, 0);
        while let Some(inner) = self.removed.pop_if(|removed| removed.start >= start) {
            self.total += inner.gain();
            if inner.start == start {
                (counted, tokens) = (inner.end, inner.tokens);
            }
        }
        tokens += sum_of_all(&self.tokens[counted..end]);
        let removed = Removed { start, end, tokens };
        self.total -= removed.gain();
        self.removed.push(removed);
    }

    fn end_of_removed(&self) -> usize {
        self.removed.last().map_or(0, |removed| removed.end)
    }

    /// Removes the turns that are omitted, and puts notes in their places.
    fn remove_turns(&mut self) {
        let removed: Vec<Removed> = std::mem::take(&mut self.removed);
        let removed: Vec<Removed> = removed.into_iter().filter(|one| one.gain() > 0).collect();
        if removed.is_empty() {
            return;
        }
        let origins_of = |removed: &Removed| {
            let messages = &self.messages[removed.start..removed.end];
            let blocks = messages.iter().flat_map(Message::blocks);
            let mut origins: Vec<usize> = blocks.filter_map(Block::origin).collect();
            origins.sort_unstable();
            origins.dedup();
            origins
        };
        let origins: Vec<Vec<usize>> = removed.iter().map(origins_of).collect();
        // The synthetic blocks that were added for them, and the omissions of their parts, are removed with them.
        let gone: HashSet<usize> = origins.iter().flatten().copied().collect();
        let reason = OmissionReason::ContextWindow;
        self.log
            .synthetic
            .retain(|made| made.origin.is_none_or(|origin| !gone.contains(&origin)));
        self.log
            .omissions
            .retain(|omission| omission.reason != reason || !gone.contains(&omission.origin));
        let mut messages = std::mem::take(self.messages).into_iter();
        let mut number = 0;
        for (removed, origins) in removed.iter().zip(origins) {
            self.append(messages.by_ref().take(removed.start - number));
            let count = removed.end - removed.start;
            messages.by_ref().take(count).for_each(drop);
            number = removed.end;
            let note = self.note_of(count, &origins);
            self.total = self.total - MAX_NOTE_TOKENS + TokenEstimate::of(&note).tokens;
            for origin in origins {
                self.log.omit(Some(origin), reason);
            }
            let before = self.messages.last();
            let origin = before.and_then(|before| before.blocks.last()?.origin());
            let kind = SyntheticKind::OmissionNote;
            self.log.add_synthetic(kind, Role::User, &note, origin);
            self.append([Message::new(Role::User, vec![note])]);
        }
        self.append(messages);
    }

    /// Appends messages; the first is joined to the last one if both are of the user.
    fn append(&mut self, messages: impl IntoIterator<Item = Message>) {
        let mut messages = messages.into_iter();
        let Some(first) = messages.next() else { return };
        let is_user = |message: &mut Message| message.role == Role::User;
        match self.messages.pop_if(is_user) {
            Some(last) if first.role == Role::User => {
                let mut joined = Joined::new(last);
                joined.append(first);
                self.messages.push(joined.message);
            }
            last => self.messages.extend(last.into_iter().chain([first])),
        }
        self.messages.extend(messages);
    }

    /// Returns the note in the place of messages with blocks of these origins.
    fn note_of(&self, count: usize, origins: &[usize]) -> Block {
        let place = match origins {
            [first, .., last] => {
                let last = self.origins.place(*last);
                format!(", {} to {last} of the session", self.origins.place(*first))
            }
            one => self.place(one.first().copied()),
        };
        Block::text(&format!("{}{count} messages{place}]", texts::OMITTED))
    }

    /// Returns the number of the first message that stays as it is.
    fn first_kept(&self) -> usize {
        let first = match self.limit.turns.checked_sub(1) {
            Some(later) => self.prompts.iter().nth_back(later).copied(),
            None => self.answers.last().copied().or(self.len.checked_sub(1)),
        };
        first.unwrap_or(0)
    }

    fn is_prompt(&self, at: usize) -> bool {
        let message = &self.messages[at];
        let mut origins = message.blocks.iter().filter_map(Block::origin);
        message.role == Role::User && origins.any(|origin| self.origins.is_prompt(origin))
    }

    fn starts_with_summary(&self) -> bool {
        let first = self.messages.first().map(Message::blocks);
        let mut origins = first.into_iter().flatten().filter_map(Block::origin);
        origins.any(|origin| self.origins.is_summary(origin))
    }

    /// Returns where a block is, as the end of a note.
    fn place(&self, origin: Option<usize>) -> String {
        origin.map_or_else(String::new, |origin| {
            format!(", {} of the session", self.origins.place(origin))
        })
    }

    fn count_again(&mut self, at: usize, number: usize) {
        let tokens = TokenEstimate::of(&self.messages[at].blocks[number]).tokens;
        let before = std::mem::replace(&mut self.tokens[at][number], tokens);
        self.total = self.total - before + tokens;
    }
}

fn has_results(message: &Message) -> bool {
    let mut kinds = message.blocks.iter().map(Block::kind);
    kinds.any(|kind| kind == BlockKind::ToolResult)
}

fn sum(tokens: &[u64]) -> u64 {
    tokens.iter().sum()
}

fn sum_of_all(tokens: &[Vec<u64>]) -> u64 {
    tokens.iter().map(|of_message| sum(of_message)).sum()
}

/// Estimates the tokens of each block of each message.
fn tokens_of_blocks(messages: &[Message]) -> Vec<Vec<u64>> {
    let tokens = |block: &Block| TokenEstimate::of(block).tokens;
    let messages = messages.iter();
    messages
        .map(|message| message.blocks.iter().map(tokens).collect())
        .collect()
}
