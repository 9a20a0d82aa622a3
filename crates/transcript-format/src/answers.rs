//! Says which lines are one answer where their `message.id` does not.
//!
//! A client writes an answer as several lines, and other files have copies of them. An id that
//! [has the form of the API](crate::ids::is_message_id_of_api) is that of one answer. Others may be
//! absent, the same for all answers, or numbered in each session, and so may the `requestId`. Then the
//! links between the lines of a file decide ([`AnswerLines`]): a line belongs to the answer that is above
//! it, and a prompt or a result between them proves that it is another one. Copies in other files have a
//! line, or content and time, in common ([`AnswerCopies`]).
//!
//! All names are hashes that the caller makes, 0 for none.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::object::Object;
use crate::scan::Body;

/// Returns whether an entry that is not an answer starts another one: a prompt, also one from the queue, or the result of a call.
///
/// ```
/// use transcript_format::answers::is_turn;
/// use transcript_format::scan::Body;
///
/// let of = |entry| Body::parse(entry).map(|body| is_turn(&body));
/// assert!(of(r#"{"type":"user","message":{"content":"Which years have a leap day?"}}"#)?);
/// assert!(!of(r#"{"type":"user","isMeta":true,"message":{"content":"A reminder."}}"#)?);
/// assert!(!of(r#"{"type":"system","subtype":"informational"}"#)?);
/// # Ok::<(), transcript_format::object::ParseObjectError>(())
/// ```
#[must_use]
pub fn is_turn(body: &Body<'_>) -> bool {
    let entry = &body.object;
    match entry.str("type").as_deref() {
        Some("user") => {
            let blocks = body.blocks.iter().flatten();
            let mut blocks = blocks.filter_map(|(_, block)| block.as_ref());
            entry.bool("isMeta") != Some(true)
                || blocks.any(|block| block.str("type").as_deref() == Some("tool_result"))
        }
        Some("attachment") => entry
            .object("attachment")
            .is_some_and(|attachment| attachment.str("type").as_deref() == Some("queued_command")),
        _ => false,
    }
}

/// The names of members that differ between the forms of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormNames {
    /// The session.
    pub session: &'static str,
    /// The subagent. In the stream form, it has the name of the call that started it.
    pub agent: &'static str,
    /// The request.
    pub request: &'static str,
}

impl FormNames {
    const CLIENT: Self = Self {
        session: "sessionId",
        agent: "agentId",
        request: "requestId",
    };
    const STREAM: Self = Self {
        session: "session_id",
        agent: "parent_tool_use_id",
        request: "request_id",
    };

    /// Returns those of an entry.
    #[must_use]
    pub fn of(entry: &Object<'_>) -> Self {
        let has = |key| entry.str(key).is_some_and(|text| !text.is_empty());
        let is_of_client = entry.get("parentUuid").is_some()
            || has(Self::CLIENT.session)
            || !has(Self::STREAM.session);
        if is_of_client {
            Self::CLIENT
        } else {
            Self::STREAM
        }
    }

    /// Returns whether they are those of the stream form.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        *self == Self::STREAM
    }

    /// Returns the links of the entry, as hashes by `hash`.
    #[must_use]
    pub fn links(&self, entry: &Object<'_>, hash: impl Fn(&[u8]) -> u64) -> Links {
        /// The prefix of the name of a lane. No uuid starts with it.
        const LANE_PREFIX: &[u8] = b"\0lane";
        let text = |key| entry.str(key).unwrap_or_default();
        let of = |key| match &*text(key) {
            "" => 0,
            text => hash(text.as_bytes()).max(1),
        };
        let is_side = entry.bool("isSidechain") == Some(true);
        let agent = text(self.agent);
        let lane = [LANE_PREFIX, &[u8::from(is_side)], agent.as_bytes()].concat();
        Links {
            line: of("uuid"),
            parent: of("parentUuid"),
            lane: hash(&lane).max(1),
        }
    }
}

/// The links of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Links {
    /// Its uuid.
    pub line: u64,
    /// Its `parentUuid`.
    pub parent: u64,
    /// The conversation or the subagent that it is of. No line has the same name.
    pub lane: u64,
}

/// The nearest entry above another one that matters to the counts: an answer, or the start of another turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum Above {
    /// The answer with this number.
    Answer(u32),
    /// A prompt, a result, or the answer of no model.
    Turn,
    /// A line, or the last line of a lane, that was not read.
    Unread(u64),
}

/// The ends of a part of a file, to which its later parts are linked; in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineEnds {
    /// The lines of answers and those below answers, or below lines that were not read.
    pub lines: Vec<(u64, Above)>,
    /// The last line of each lane.
    pub lanes: Vec<(u64, Above)>,
}

/// The lines of a file, or of a part of it, with the nearest counted entry above each. The order of the lines counts only
/// for those without a parent, which follow the last line of their lane.
///
/// ```
/// use transcript_format::answers::{Above, AnswerLines, Links};
///
/// let mut lines = AnswerLines::default();
/// let links = |line, parent| Links { line, parent, lane: 100 };
/// lines.add_answer(links(2, 1), 0);
/// lines.add_other(links(3, 2));
/// assert_eq!(lines.above(links(4, 3)), Above::Answer(0));
/// lines.add_turn(links(5, 3));
/// assert_eq!(lines.above(links(6, 5)), Above::Turn);
/// ```
#[derive(Clone, Debug, Default)]
pub struct AnswerLines {
    /// Answers, and the entries above other lines; of several lines with one uuid that of the first.
    lines: HashMap<u64, Above>,
    /// The last line of each lane.
    lanes: HashMap<u64, Above>,
}

impl AnswerLines {
    /// Forgets all lines.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.lanes.clear();
    }

    /// Adds a prompt, a result, or an answer of no model.
    pub fn add_turn(&mut self, links: Links) {
        self.add(links.line, Above::Turn);
        self.lanes.insert(links.lane, Above::Turn);
    }

    /// Adds a line of an answer.
    pub fn add_answer(&mut self, links: Links, number: u32) {
        self.add(links.line, Above::Answer(number));
        self.lanes.insert(links.lane, Above::Answer(number));
    }

    /// Adds a line that can be between two lines of an answer.
    pub fn add_other(&mut self, links: Links) {
        self.add(links.line, self.above(links));
    }

    /// Adds turns whose lines are not known.
    pub fn end_lanes(&mut self) {
        self.lanes.values_mut().for_each(|last| *last = Above::Turn);
    }

    /// Returns the answer that has this line, if it was read before.
    #[must_use]
    pub fn answer(&self, line: u64) -> Option<u32> {
        match self.lines.get(&line) {
            Some(Above::Answer(number)) => Some(*number),
            _ => None,
        }
    }

    /// Returns the nearest counted entry above a line.
    #[must_use]
    pub fn above(&self, links: Links) -> Above {
        let Links { parent, lane, .. } = links;
        let (known, name) = match parent {
            0 => (self.lanes.get(&lane), lane),
            _ => (self.lines.get(&parent), parent),
        };
        known.copied().unwrap_or(Above::Unread(name))
    }

    /// Returns the entry above an unread line or lane of a later part of the file, if it is known.
    #[must_use]
    pub fn find(&self, unread: u64) -> Option<Above> {
        let known = self.lines.get(&unread).or_else(|| self.lanes.get(&unread));
        known.copied()
    }

    /// Returns what later parts of the file have to know, in a fixed order: the lines below answers or below lines that were
    /// not read, and the last line of each lane.
    #[must_use]
    pub fn ends(&self) -> LineEnds {
        // A line that is not known is above no answer either.
        let lines = self
            .lines
            .iter()
            .filter(|(_, above)| **above != Above::Turn);
        let mut lines: Vec<_> = lines.map(|(line, above)| (*line, *above)).collect();
        let lanes = self.lanes.iter();
        let mut lanes: Vec<_> = lanes.map(|(lane, above)| (*lane, *above)).collect();
        lines.sort_unstable_by_key(|(line, _)| *line);
        lanes.sort_unstable_by_key(|(lane, _)| *lane);
        LineEnds { lines, lanes }
    }

    /// Adds the [ends](Self::ends) of the next part of the file. `number` gives the number here of an answer there.
    pub fn append(&mut self, later: LineEnds, number: impl Fn(u32) -> Option<u32>) {
        let here = |above: Above| match above {
            Above::Answer(there) => number(there).map_or(Above::Turn, Above::Answer),
            Above::Turn => Above::Turn,
            Above::Unread(name) => self.find(name).unwrap_or(Above::Turn),
        };
        // All of them are below the lines of the parts before this one.
        let lines = later.lines.into_iter();
        let lines: Vec<_> = lines.map(|(line, above)| (line, here(above))).collect();
        let lanes = later.lanes.into_iter();
        let lanes: Vec<_> = lanes.map(|(lane, above)| (lane, here(above))).collect();
        for (line, above) in lines.into_iter().filter(|(_, above)| *above != Above::Turn) {
            self.add(line, above);
        }
        self.lanes.extend(lanes);
    }

    fn add(&mut self, line: u64, above: Above) {
        if line != 0 {
            self.lines.entry(line).or_insert(above);
        }
    }
}

/// Evidence that answers in two files are the same answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnswerMark {
    /// The uuid of a line, or of the line that it is a copy of.
    Line(u64),
    /// The content of the first line and its time, in any unit.
    Content(u64, i64),
    /// The content of the first line and the `requestId`. Gateways number the requests of each session, or give all the
    /// same `requestId`, so it is not enough.
    Request(u64, u64),
    /// The content of the first line, and whether the answer is of a subagent. It shows that a subagent has an answer of
    /// a conversation or of another subagent; two conversations can have the same words.
    Replayed(u64, bool),
}

impl AnswerMark {
    /// Returns the marks of which one shows that an answer with this one is the same.
    fn finds(self) -> impl Iterator<Item = Self> {
        let (own, other) = match self {
            Self::Replayed(content, is_side) => {
                let other = Self::Replayed(content, !is_side);
                (is_side.then_some(self), Some(other))
            }
            _ => (Some(self), None),
        };
        own.into_iter().chain(other)
    }
}

/// Finds copies of answers in other files. Two answers of one file are never one, whatever they have in common.
///
/// ```
/// use transcript_format::answers::{AnswerCopies, AnswerMark};
///
/// let mut copies = AnswerCopies::default();
/// let marks = [AnswerMark::Content(7, 1_000)];
/// assert_eq!([copies.add(0, &marks), copies.add(0, &marks)], [0, 1]);
/// assert_eq!([copies.add(1, &marks), copies.add(1, &marks)], [0, 1]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct AnswerCopies {
    /// Of each answer the last file that has it.
    last_file: Vec<u32>,
    /// The answers with a mark, in order.
    with: HashMap<(AnswerMark, u32), u32>,
    /// For each mark, the number of answers of the last file that have it, and the number of that file.
    counts: HashMap<AnswerMark, (u32, u32)>,
}

impl AnswerCopies {
    /// Adds the next answer of a file, with its marks, the surest first. Returns its number: that of a copy, or the next one.
    pub fn add(&mut self, file: u32, marks: &[AnswerMark]) -> u32 {
        let next = self.last_file.len() as u32;
        let mut places = Vec::with_capacity(marks.len());
        for mark in marks {
            let (last, count) = self.counts.entry(*mark).or_insert((file, 0));
            if *last != file {
                (*last, *count) = (file, 0);
            }
            places.push((*mark, *count));
            *count += 1;
        }
        let known = places.iter().flat_map(|(mark, count)| {
            let finds = mark.finds();
            finds.filter_map(|mark| self.with.get(&(mark, *count)).copied())
        });
        let is_other = |number: &u32| self.last_file[*number as usize] != file;
        let mut known = known.filter(is_other);
        let number = known.next().unwrap_or(next);
        match self.last_file.get_mut(number as usize) {
            Some(last) => *last = file,
            None => self.last_file.push(file),
        }
        for place in places {
            self.with.entry(place).or_insert(number);
        }
        number
    }
}
