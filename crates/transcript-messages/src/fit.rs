//! Omits the oldest parts of a request until it fits the context window of a model.

use std::collections::BTreeSet;

use transcript_format::texts;
use transcript_format::units::size;

use super::block::{Block, BlockKind};
use super::estimate::TokenEstimate;
use super::log::{Log, OmissionReason, SyntheticKind};
use super::media::{media_of, note_text, replace_by_notes};
use super::message::{Joined, Message, Role};
use super::text::quoted;

/// How long messages may be, and what is never omitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FitLimit {
    /// The maximum number of tokens, as [`TokenEstimate`] counts them.
    pub tokens: u64,
    /// The number of turns at the end that stay as they are. A turn starts with a prompt and lasts until the next one.
    /// With 0, only the last prompt and the last answer with its results do.
    pub turns: usize,
}

/// What the caller knows about the origins of blocks.
pub trait Origins {
    /// Returns where it is in the session, such as `line 12`, for the note in its place.
    fn place(&self, origin: usize) -> String;

    /// Returns whether it is a prompt, with which a turn starts.
    fn is_prompt(&self, origin: usize) -> bool;

    /// Returns whether it is a summary of what came before, which is never omitted.
    fn is_summary(&self, origin: usize) -> bool;
}

/// Results with fewer tokens are not replaced: the note would be as long.
const MIN_RESULT: u64 = 64;
/// What a note takes, at most.
const NOTE: u64 = 64;

/// Omits parts of a request that [`make_strict`](super::make_strict) made, until it is within the limit or
/// nothing more may be omitted. Returns the tokens of the rest; more than the limit if that could not be reached.
///
/// In this order, and each only as far as needed: images and documents, the oldest first; results, the oldest first;
/// whole turns from the start. A note in the place of each says where it is. Calls and their results stay together, and
/// what was accepted before is accepted after.
pub fn fit(
    messages: &mut Vec<Message>,
    limit: FitLimit,
    origins: &dyn Origins,
    log: &mut Log,
) -> u64 {
    let tokens = tokens_of_blocks(messages);
    let mut fitting = Fitting {
        total: tokens.iter().map(|of_message| sum(of_message)).sum(),
        tokens,
        messages,
        limit,
        origins,
        log,
    };
    fitting.omit_media();
    fitting.omit_results();
    fitting.omit_turns();
    fitting.total
}

struct Fitting<'a> {
    messages: &'a mut Vec<Message>,
    /// The tokens of each block of each message.
    tokens: Vec<Vec<u64>>,
    /// Their sum.
    total: u64,
    limit: FitLimit,
    origins: &'a dyn Origins,
    log: &'a mut Log,
}

impl Fitting<'_> {
    fn is_too_long(&self) -> bool {
        self.total > self.limit.tokens
    }

    fn omit_media(&mut self) {
        if !self.is_too_long() {
            return;
        }
        let end = self.first_kept();
        let mut replaced = Vec::new();
        let mut total = self.total;
        for medium in media_of(self.messages) {
            if medium.message >= end || total <= self.limit.tokens {
                break;
            }
            let block = &self.messages[medium.message].blocks[medium.block];
            let what = match medium.is_image {
                true => "an image",
                false => "a document",
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
        for at in 0..self.first_kept() {
            for number in 0..self.messages[at].blocks.len() {
                if !self.is_too_long() {
                    return;
                }
                let is_result = self.messages[at].blocks[number].kind() == BlockKind::ToolResult;
                if is_result && self.tokens[at][number] >= MIN_RESULT {
                    self.omit_result(at, number);
                }
            }
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
        let starts_turn = |message: &Message| message.role == Role::User && !has_results(message);
        if self.limit.turns > 0 {
            self.omit(start, self.first_kept(), starts_turn);
            return;
        }
        let last = self.last_prompt().unwrap_or(0);
        self.omit(start, last, starts_turn);
        let behind_prompt = self.last_prompt().map_or(start, |prompt| prompt + 1);
        let is_answer = |message: &Message| message.role == Role::Assistant;
        self.omit(behind_prompt, self.first_kept(), is_answer);
    }

    /// Omits the messages from `start` to the first place up to `end` where the rest may begin and fits; if it fits
    /// nowhere, to the last place.
    fn omit(&mut self, start: usize, end: usize, may_begin: fn(&Message) -> bool) {
        if !self.is_too_long() {
            return;
        }
        let surplus = self.total - self.limit.tokens + NOTE;
        let (mut removed, mut to) = (0, None);
        for at in start + 1..self.messages.len().min(end + 1) {
            removed += sum(&self.tokens[at - 1]);
            if may_begin(&self.messages[at]) {
                to = Some(at);
                if removed >= surplus {
                    break;
                }
            }
        }
        // A note in the place of a few words would be longer.
        if let Some(to) = to
            && self.tokens[start..to].iter().map(|of| sum(of)).sum::<u64>() > NOTE
        {
            self.remove(start, to);
        }
    }

    /// Removes messages, and puts a note in their place.
    fn remove(&mut self, start: usize, end: usize) {
        let removed: Vec<Message> = self.messages.drain(start..end).collect();
        let tokens: u64 = self.tokens.drain(start..end).map(|of| sum(&of)).sum();
        self.total -= tokens;
        let blocks = removed.iter().flat_map(Message::blocks);
        let mut origins: Vec<usize> = blocks.filter_map(Block::origin).collect();
        origins.sort_unstable();
        origins.dedup();
        // What was made for them, or omitted of them, is gone as well.
        let is_removed = |origin: usize| origins.binary_search(&origin).is_ok();
        let reason = OmissionReason::ContextWindow;
        let log = &mut *self.log;
        log.synthetic
            .retain(|made| !made.origin.is_some_and(is_removed));
        log.omissions
            .retain(|omission| omission.reason != reason || !is_removed(omission.origin));
        for origin in &origins {
            log.omit(Some(*origin), reason);
        }
        let count = removed.len();
        let place = match &origins[..] {
            [first, .., last] => {
                let last = self.origins.place(*last);
                format!(", {} to {last} of the session", self.origins.place(*first))
            }
            one => self.place(one.first().copied()),
        };
        let note = Block::text(&format!("{}{count} messages{place}]", texts::OMITTED));
        let before = start.checked_sub(1).map(|before| &self.messages[before]);
        let origin = before.and_then(|before| before.blocks.last()?.origin());
        let kind = SyntheticKind::OmissionNote;
        self.log.add_synthetic(kind, Role::User, &note, origin);
        self.insert(start, Message::new(Role::User, vec![note]));
    }

    /// Inserts a message of the user, and joins it with those of the user around it.
    fn insert(&mut self, at: usize, message: Message) {
        let is_user = |at: &usize| {
            let message = self.messages.get(*at);
            message.is_some_and(|message| message.role == Role::User)
        };
        let from = at.checked_sub(1).filter(is_user).unwrap_or(at);
        let to = at + usize::from(is_user(&at));
        let mut parts: Vec<Message> = self.messages.drain(from..to).collect();
        parts.insert(at - from, message);
        let mut joined = Joined::new(parts.remove(0));
        parts.into_iter().for_each(|part| joined.append(part));
        let message = joined.message;
        let tokens = tokens_of_blocks(std::slice::from_ref(&message));
        let before: u64 = self.tokens[from..to].iter().map(|of| sum(of)).sum();
        let after: u64 = tokens.iter().map(|of| sum(of)).sum();
        self.total = self.total - before + after;
        self.tokens.splice(from..to, tokens);
        self.messages.insert(from, message);
    }

    /// Returns the number of the first message that stays as it is.
    fn first_kept(&self) -> usize {
        let mut places = (0..self.messages.len()).rev();
        let first = match self.limit.turns.checked_sub(1) {
            Some(later) => places.filter(|at| self.is_prompt(*at)).nth(later),
            None => {
                let last = places.next();
                let is_answer = |message: &Message| message.role == Role::Assistant;
                self.messages.iter().rposition(is_answer).or(last)
            }
        };
        first.unwrap_or(0)
    }

    fn last_prompt(&self) -> Option<usize> {
        (0..self.messages.len())
            .rev()
            .find(|at| self.is_prompt(*at))
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

/// Estimates the tokens of each block of each message.
fn tokens_of_blocks(messages: &[Message]) -> Vec<Vec<u64>> {
    let tokens = |block: &Block| TokenEstimate::of(block).tokens;
    let messages = messages.iter();
    messages
        .map(|message| message.blocks.iter().map(tokens).collect())
        .collect()
}
