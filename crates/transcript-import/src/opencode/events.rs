//! The events of a session: every version of every message and part, also of those that were deleted.
//!
//! The next prompt after a revert deletes the reverted rows. The events stay, and only they have the texts then.

use std::collections::{BTreeMap, HashMap, HashSet};

use transcript_format::object::{Object, Raw};

use super::message::{Message, add_part, hold, json_of};
use super::part;
use super::rows::{Info, Row, Rows, repaired};
use super::texts::RowTexts;
use crate::Error;
use crate::conversation::{BranchKind, Conversation, Holds, NodeId};
use crate::ids::Id;
use crate::strings::string;
use crate::text::Text;

/// What the events say beyond the rows of the messages and parts.
pub(super) struct Events<'m> {
    /// What the session last said about itself.
    info: Option<Info>,
    /// The messages with rows.
    all: &'m [Message],
    messages: HashSet<Id>,
    /// The places of the parts with rows: that of the message, and that in the message.
    current: HashMap<Id, (u32, u32)>,
    /// Of such a part the last version that said something else: its text and its place in the list of versions.
    others: HashMap<Id, (String, usize)>,
    /// The newest version of each message and part without a row.
    past_messages: HashMap<String, Row>,
    past_parts: BTreeMap<String, Row>,
    /// The removals of messages and parts, by the id. Those with one number were made together.
    removed: HashMap<String, u32>,
    removals: u32,
    /// Whether the last event was a removal.
    is_removing: bool,
    /// Versions of parts that say something else than the row does, with the places of the messages; to be [loaded](loaded).
    other_versions: Vec<(u32, Row)>,
    /// Whether the JSON of a row can be loaded again.
    can_load: bool,
    /// Why a text of a part cannot be read.
    failure: Option<Error>,
}

/// What has no row.
pub(super) struct Past {
    pub(super) info: Option<Info>,
    pub(super) messages: Vec<Message>,
    /// Parts of any message, to be [loaded](loaded).
    pub(super) parts: Vec<Row>,
    /// The removals of messages and parts, by the id. Those with one number were made together.
    pub(super) removed: HashMap<String, u32>,
}

impl<'m> Events<'m> {
    /// Begins with the messages that have rows.
    pub(super) fn new(all: &'m [Message], can_load: bool) -> Self {
        let parts = (0..).zip(all).flat_map(|(message, of)| {
            let parts = (0..).zip(&of.parts);
            parts.map(move |(at, part)| (Id::of(&part.id), (message, at)))
        });
        Self {
            info: None,
            all,
            messages: all.iter().map(|message| Id::of(&message.id)).collect(),
            current: parts.collect(),
            others: HashMap::new(),
            past_messages: HashMap::new(),
            past_parts: BTreeMap::new(),
            removed: HashMap::new(),
            removals: 0,
            is_removing: false,
            other_versions: Vec::new(),
            can_load,
            failure: None,
        }
    }

    /// Takes the next event.
    pub(super) fn take(&mut self, to: &mut Conversation, row: &Row) {
        let Some(text) = json_of(to, row) else {
            hold(to, row.place, Holds::Damaged);
            return;
        };
        let Ok(data) = Object::parse(&text) else {
            return;
        };
        let version = row.of.trim_end_matches(|c: char| c.is_ascii_digit());
        let kind = version.strip_suffix('.').unwrap_or(&row.of);
        let is_removal = matches!(kind, "message.removed" | "message.part.removed");
        if is_removal && !self.is_removing {
            self.removals += 1;
        }
        self.is_removing = is_removal;
        let raw = |kind: &str| Holds::Raw(kind.to_owned().into());
        let holds = match kind {
            "session.created" | "session.updated" => {
                let info = data.object("info");
                self.info = info.map(|info| Info::of_json(&info)).or(self.info.take());
                Some(Holds::Metadata("session"))
            }
            "message.updated" => self.message(to, row, &data),
            "message.part.updated" => self.part(to, row, &data),
            "message.removed" => {
                self.remove(&data, "messageID");
                Some(raw(kind))
            }
            "message.part.removed" => {
                self.remove(&data, "partID");
                Some(raw(kind))
            }
            kind if kind.starts_with("session.") => Some(raw(kind)),
            kind => Some(to.unknown(kind)),
        };
        if let Some(holds) = holds {
            hold(to, row.place, holds);
        }
    }

    fn remove(&mut self, data: &Object<'_>, key: &str) {
        if let Some(id) = string(data, key) {
            self.removed.insert(id, self.removals);
        }
    }

    /// Takes a version of a message. Returns what the event holds, unless that is decided by later ones.
    fn message(&mut self, to: &mut Conversation, row: &Row, data: &Object<'_>) -> Option<Holds> {
        let info = data.get("info");
        let id = info.and_then(|info| string(&info.object()?, "id"));
        let (Some(info), Some(id)) = (info, id) else {
            return Some(Holds::Raw("message.updated".into()));
        };
        self.removed.remove(&id);
        if self.messages.contains(&Id::of(&id)) {
            return Some(Holds::Metadata("message"));
        }
        let version = version_of(row, info.text(), id.clone(), String::new());
        if let Some(older) = self.past_messages.insert(id, version) {
            hold(to, older.place, Holds::Metadata("message"));
        }
        None
    }

    /// Takes a version of a part. Returns what the event holds, unless that is decided by later ones.
    fn part(&mut self, to: &mut Conversation, row: &Row, data: &Object<'_>) -> Option<Holds> {
        let same = || Some(Holds::Raw("message.part.updated".into()));
        let raw = data.get("part");
        let part = raw.and_then(Raw::object);
        let id = part.as_ref().and_then(|part| string(part, "id"));
        let (Some(raw), Some(part), Some(id)) = (raw, part, id) else {
            return same();
        };
        self.removed.remove(&id);
        let message = string(&part, "messageID").unwrap_or_default();
        let json = if self.can_load { "" } else { raw.text() };
        let version = version_of(row, json, id.clone(), message);
        let own = Id::of(&id);
        let Some((message, at)) = self.current.get(&own).copied() else {
            if let Some(older) = self.past_parts.insert(id, version) {
                hold(to, older.place, Holds::Raw("message.part.updated".into()));
            }
            return None;
        };
        let all = self.all;
        let nodes = &all[message as usize].parts[at as usize].nodes;
        match is_shown(to, nodes, &part) {
            Ok(false) => {}
            Ok(true) => return same(),
            Err(error) => {
                self.failure.get_or_insert(error);
                return same();
            }
        }
        let contents = part::read(&part, true, &mut RowTexts::held()).contents;
        let text = said(
            to,
            contents.iter().filter_map(|(_, content)| content.shown()),
        );
        // Most versions are from before the first text.
        let text = text.unwrap_or_default();
        let of_row = || {
            let contents = nodes.iter().map(|id| to.stored(*id));
            said(
                to,
                contents.filter_map(|content| content.text.or(content.output)),
            )
        };
        if text.is_empty() {
            return same();
        }
        match of_row() {
            Ok(of_row) if of_row.starts_with(&text) => return same(),
            Ok(_) => {}
            Err(error) => {
                self.failure.get_or_insert(error);
                return same();
            }
        }
        match self.others.get_mut(&own) {
            // The text grew while it was written.
            Some((older, at)) if text.starts_with(&**older) => {
                *older = text;
                let older = std::mem::replace(&mut self.other_versions[*at].1, version);
                hold(to, older.place, Holds::Raw("message.part.updated".into()));
            }
            _ => {
                self.others.insert(own, (text, self.other_versions.len()));
                self.other_versions.push((message, version));
            }
        }
        None
    }

    /// Adds the other versions of parts as a branch, and returns the messages and parts without rows.
    pub(super) fn finish<R: Rows>(
        self,
        to: &mut Conversation,
        texts: &mut RowTexts,
        rows: &mut R,
    ) -> Result<Past, R::Error> {
        if let Some(error) = self.failure {
            return Err(error.into());
        }
        let mut superseded = Vec::new();
        for (message, row) in self.other_versions {
            let row = loaded(rows, row)?;
            let part = add_part(to, texts, &self.all[message as usize], &row);
            superseded.extend(part.into_iter().flat_map(|part| part.nodes));
        }
        to.branch(BranchKind::Superseded, superseded);
        let past = self.past_messages.into_values().filter_map(|row| {
            hold(to, row.place, Holds::Metadata("message"));
            let info = Object::parse(&row.data).ok()?;
            let time = info.object("time");
            let created = time.and_then(|time| time.i64("created"));
            Some(Message::of_json(
                to,
                &info,
                &row.id,
                created.unwrap_or_default(),
            ))
        });
        Ok(Past {
            info: self.info,
            messages: past.collect(),
            parts: self.past_parts.into_values().collect(),
            removed: self.removed,
        })
    }
}

/// Returns the version of a message or part that an event holds.
fn version_of(event: &Row, json: &str, id: String, of: String) -> Row {
    Row {
        place: event.place,
        id,
        of,
        order: event.order,
        data: json.to_owned(),
        is_utf8: true,
    }
}

/// Returns the version of a part that an event holds, with its JSON.
pub(super) fn loaded<R: Rows>(rows: &mut R, version: Row) -> Result<Row, R::Error> {
    if !version.data.is_empty() {
        return Ok(version);
    }
    let mut event = rows.load(version)?;
    let part = |json: &str| {
        let data = Object::parse(json).ok()?;
        Some(data.get("part")?.text().to_owned())
    };
    // Its damage was reported when it was read first.
    let found = part(&event.data).or_else(|| part(&repaired(&event.data)?));
    event.data = found.unwrap_or_default();
    Ok(event)
}

/// Returns whether nodes have the text of a version of their part, which most have. No text is in memory for it.
fn is_shown(to: &Conversation, nodes: &[NodeId], part: &Object<'_>) -> Result<bool, Error> {
    let contents = nodes.iter().map(|id| to.stored(*id));
    let mut texts = contents.filter_map(|content| content.text.or(content.output));
    match (texts.next(), texts.next(), part::shown_body(part)) {
        (Some(text), None, Some(body)) => to.is_body(text, body),
        _ => Ok(false),
    }
}

/// Returns all that texts say, to compare versions of a part.
fn said<'a>(to: &Conversation, texts: impl Iterator<Item = &'a Text>) -> Result<String, Error> {
    texts.map(|text| to.text(text)).collect()
}
