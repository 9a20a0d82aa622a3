//! The messages of a session, with what has no row of its own any more.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use transcript_format::object::Object;

use super::message::{Message, MessagePart, add_part, count_steps, hold};
use super::rows::Row;
use super::texts::RowTexts;
use crate::conversation::{BranchKind, Conversation, DamageKind, Holds, NodeId};
use crate::ids::Id;
use crate::node::Usage;

/// The messages with rows, while those without are sorted in.
///
/// A message without a row was deleted from a whole database. In a damaged one it was lost, unless an event says that it was
/// removed, and a removed one may still have a row.
pub(super) struct Merged {
    live: Vec<Message>,
    /// The places of the live messages, by their ids.
    places: HashMap<Id, usize>,
    /// Messages without a row, and those that were removed.
    past: HashMap<Arc<str>, Message>,
    is_damaged: bool,
    removed: HashMap<String, u32>,
    /// The nodes of each removal, by their parts.
    deleted: BTreeMap<u32, BTreeMap<PartKey, DeletedPart>>,
    /// The ids of parts that have rows and no message.
    lost: HashSet<String>,
}

/// What is known of a deleted part: its nodes, and the tokens of the step that ends with it.
#[derive(Default)]
struct DeletedPart {
    nodes: Vec<NodeId>,
    step: Option<Usage>,
}

/// The place of a part in a conversation: the time and the id of its message, and its own id.
type PartKey = (i64, String, String);

impl Merged {
    pub(super) fn new(
        messages: Vec<Message>,
        past: Vec<Message>,
        removed: HashMap<String, u32>,
        is_damaged: bool,
    ) -> Self {
        let past = past
            .into_iter()
            .map(|message| (message.id.clone(), message));
        let ids = messages.iter().zip(0..);
        let ids = ids.map(|(message, at)| (Id::of(&message.id), at));
        let mut merged = Self {
            places: ids.filter(|_| !is_damaged).collect(),
            live: Vec::new(),
            past: past.collect(),
            is_damaged,
            removed,
            deleted: BTreeMap::new(),
            lost: HashSet::new(),
        };
        if is_damaged {
            messages
                .into_iter()
                .for_each(|message| merged.add_message(message));
        } else {
            merged.live = messages;
        }
        merged
    }

    /// Adds a message that has a row in a damaged database.
    fn add_message(&mut self, mut message: Message) {
        let removal = self.removed.get(&*message.id).copied();
        for part in std::mem::take(&mut message.parts) {
            let own = self.removed.get(&*part.id);
            match own.copied().or(removal) {
                None => message.parts.push(part),
                Some(removal) => self.delete(removal, key(&message, &part.id), part),
            }
        }
        if removal.is_none() {
            self.places.insert(Id::of(&message.id), self.live.len());
            self.live.push(message);
        } else {
            self.past.insert(message.id.clone(), message);
        }
    }

    fn delete(&mut self, removal: u32, key: PartKey, part: MessagePart) {
        let removal = self.deleted.entry(removal).or_default();
        let deleted = removal.entry(key).or_default();
        deleted.nodes.extend(part.nodes);
        deleted.step = deleted.step.or(part.step.map(|step| *step));
    }

    /// Adds parts with rows whose messages have none.
    pub(super) fn add_lost(&mut self, to: &mut Conversation, texts: &mut RowTexts, rows: Vec<Row>) {
        let mut by_message: BTreeMap<String, Vec<Row>> = BTreeMap::new();
        for row in rows {
            to.report(row.place, DamageKind::LostParent);
            self.lost.insert(row.id.clone());
            by_message.entry(row.of.clone()).or_default().push(row);
        }
        for rows in by_message.into_values() {
            rows.iter()
                .for_each(|row| self.add_part(to, texts, row, &rows));
        }
    }

    /// Adds a part that only an event holds.
    pub(super) fn add_past(&mut self, to: &mut Conversation, texts: &mut RowTexts, row: &Row) {
        if self.lost.contains(&row.id) {
            hold(to, row.place, Holds::Raw("message.part.updated".into()));
        } else {
            self.add_part(to, texts, row, std::slice::from_ref(row));
        }
    }

    /// Adds one of the parts that are known of a message.
    fn add_part(&mut self, to: &mut Conversation, texts: &mut RowTexts, row: &Row, known: &[Row]) {
        let removal = self.removed.get(&row.id).or(self.removed.get(&row.of));
        let of_whole = (!self.is_damaged).then_some(u32::MAX);
        let removal = removal.copied().or(of_whole);
        let message = match self.places.get(&Id::of(&row.of)) {
            Some(place) => &mut self.live[*place],
            None => {
                let past = self.past.entry(row.of.as_str().into());
                past.or_insert_with(|| stand_in(&row.of, known))
            }
        };
        let Some(part) = add_part(to, texts, message, row) else {
            return;
        };
        let Some(removal) = removal else {
            message.parts.push(part);
            return;
        };
        let key = key(message, &part.id);
        self.delete(removal, key, part);
    }

    /// Returns the live messages in their order, and adds the deleted ones as branches.
    pub(super) fn finish(mut self, to: &mut Conversation) -> Vec<Message> {
        for parts in self.deleted.into_values() {
            let mut by_message: BTreeMap<&str, Vec<&DeletedPart>> = BTreeMap::new();
            for ((_, message, _), part) in &parts {
                by_message.entry(message).or_default().push(part);
            }
            for (message, parts) in by_message {
                let usage = self
                    .past
                    .get(message)
                    .and_then(|past| past.usage.as_deref().copied());
                let parts = parts.iter().map(|part| (&*part.nodes, part.step));
                count_steps(to, parts, usage);
            }
            let nodes = parts.into_values().flat_map(|part| part.nodes).collect();
            to.branch(BranchKind::Deleted, nodes);
        }
        // Parts that were lost and not removed belong to messages that were lost and not removed.
        let restored = self.past.into_values();
        self.live
            .extend(restored.filter(|message| !message.parts.is_empty()));
        for message in &mut self.live {
            message.parts.sort_by(|a, b| a.id.cmp(&b.id));
        }
        self.live
            .sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        self.live
    }
}

fn key(message: &Message, part: &str) -> PartKey {
    (message.created, message.id.to_string(), part.to_owned())
}

/// Returns a message for parts whose own is missing. Who said it shows in what only the model writes.
fn stand_in(id: &str, parts: &[Row]) -> Message {
    let is_of_model = |row: &Row| {
        let part = Object::parse(&row.data).ok();
        let kind = part.as_ref().and_then(|part| part.str("type"));
        let has_time = part.as_ref().is_some_and(|part| part.get("time").is_some());
        match kind.as_deref() {
            Some("text") => has_time,
            Some("file" | "subtask" | "compaction" | "agent") => false,
            _ => true,
        }
    };
    let created = parts.iter().map(|row| row.order).min().unwrap_or_default();
    Message::stand_in(id, created, parts.iter().any(is_of_model))
}
