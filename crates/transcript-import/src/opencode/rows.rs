//! The rows of one session, whatever they are read from.

use transcript_format::object::Object;
use transcript_format::salvage;

use crate::Error;
use crate::conversation::Conversation;
use crate::node::Usage;
use crate::place::{Place, SourceId};
use crate::strings::string;

/// A row of a table, or a file that stands for one.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) place: Place,
    pub(super) id: String,
    /// The type of an event; the message of a part; empty for a message.
    pub(super) of: String,
    /// When a message was made, in milliseconds; the number of an event.
    pub(super) order: i64,
    pub(super) data: String,
    /// Whether its text was UTF-8.
    pub(super) is_utf8: bool,
}

/// Where the rows of a session come from.
pub(super) trait Rows {
    /// Why a row cannot be read.
    type Error: From<Error>;

    /// Returns whether rows may be missing, or be back that were deleted.
    fn is_damaged(&self) -> bool;

    /// Returns the row of the session, and what it says, if that can be read.
    fn session(&mut self) -> Result<Option<(Place, Option<Info>)>, Self::Error>;

    /// Returns the sources that files with texts of rows and of events can belong to; `None` when all rows are in memory. Otherwise
    /// the JSON of a row can be dropped and [loaded](Self::load) again.
    fn text_sources(&self) -> Option<[SourceId; 2]> {
        None
    }

    /// Returns the places of its messages, oldest first.
    fn messages(&mut self) -> Result<Vec<Place>, Self::Error>;

    /// Returns a message; `None` when it is gone.
    fn message(&mut self, place: Place) -> Result<Option<Row>, Self::Error>;

    /// Returns a row with its JSON.
    fn load(&mut self, row: Row) -> Result<Row, Self::Error> {
        Ok(row)
    }

    /// Calls `take` with each part of a message, in their order.
    fn parts(&mut self, message: &str, take: &mut dyn FnMut(Row)) -> Result<(), Self::Error>;

    /// Returns the parts of the session whose offsets are not among these, which are in order: their messages are missing.
    fn lost_parts(&mut self, known: &[u64]) -> Result<Vec<Row>, Self::Error>;

    /// Calls `take` with each event, oldest first.
    fn events(&mut self, take: &mut dyn FnMut(Row)) -> Result<(), Self::Error>;

    /// Adds the rows of the session in other tables to the conversation, and what there is to say about the damage.
    fn others(&mut self, to: &mut Conversation) -> Result<(), Self::Error>;
}

/// Messages that are in memory, the next one at the end.
pub(super) struct Messages(Vec<Row>);

impl Messages {
    /// Puts messages into the order of their times.
    pub(super) fn new(mut messages: Vec<Row>) -> Self {
        messages.sort_by(|a, b| (b.order, &b.id).cmp(&(a.order, &a.id)));
        Self(messages)
    }

    pub(super) fn places(&self) -> Vec<Place> {
        self.0.iter().rev().map(|row| row.place).collect()
    }

    /// Takes a message; they are asked for in their order.
    pub(super) fn take(&mut self, place: Place) -> Option<Row> {
        let at = self.0.iter().rposition(|row| row.place == place)?;
        Some(self.0.remove(at))
    }
}

/// What a session says about itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Info {
    pub(super) parent: Option<String>,
    pub(super) directory: Option<String>,
    pub(super) title: Option<String>,
    pub(super) version: Option<String>,
    pub(super) model: Option<String>,
    pub(super) created: Option<String>,
    pub(super) updated: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) revert: Option<Revert>,
    pub(super) forked_from: Option<String>,
}

/// From where on a session is reverted.
#[derive(Clone, Debug)]
pub(super) struct Revert {
    pub(super) message: String,
    /// The first part of the message that is reverted; without one, all of the message is.
    pub(super) part: Option<String>,
}

impl Info {
    /// Reads the JSON of a session, as files and events have it.
    pub(super) fn of_json(info: &Object<'_>) -> Self {
        let time = info.object("time");
        let time = |key| time.as_ref().and_then(|time| time.i64(key));
        Self {
            parent: string(info, "parentID"),
            directory: string(info, "directory"),
            title: string(info, "title"),
            version: string(info, "version"),
            model: info.object("model").and_then(|model| string(&model, "id")),
            created: time("created").map(|time| time.to_string()),
            updated: time("updated").map(|time| time.to_string()),
            usage: info.object("tokens").map(|tokens| usage(&tokens)),
            revert: info
                .object("revert")
                .and_then(|revert| Revert::of_json(&revert)),
            forked_from: None,
        }
    }
}

impl Revert {
    pub(super) fn of_json(revert: &Object<'_>) -> Option<Self> {
        Some(Self {
            message: string(revert, "messageID")?,
            part: string(revert, "partID"),
        })
    }
}

/// Returns the tokens of a message or of a step of it. Older versions count thoughts as a part of the output, newer ones apart: the total
/// shows which. Versions without a total count them as a part.
pub(super) fn usage(tokens: &Object<'_>) -> Usage {
    let number = |of: &Object<'_>, key: &str| of.u64(key).unwrap_or_default();
    let cache = tokens.object("cache");
    let of_cache = |key| {
        cache
            .as_ref()
            .map(|cache| number(cache, key))
            .unwrap_or_default()
    };
    let usage = Usage {
        input: number(tokens, "input"),
        output: number(tokens, "output"),
        cache_read: of_cache("read"),
        cache_write: of_cache("write"),
        reasoning: number(tokens, "reasoning"),
    };
    let all = usage.of_separate_thoughts();
    let sum = [all.output, all.cache_read, all.cache_write];
    let sum = sum.into_iter().fold(all.input, u64::saturating_add);
    if number(tokens, "total") >= sum {
        all
    } else {
        usage
    }
}

/// Returns the JSON of a row, closed where it was torn; `None` when none begins there.
pub(super) fn repaired(data: &str) -> Option<String> {
    salvage::closed_text(data.trim_start().as_bytes())
}
