//! All rows of one session: its messages in their order, and what it says about itself.

use super::events::{Events, loaded};
use super::merged::Merged;
use super::message::{Message, MessagePart, add_part, count_steps, hold, read_message};
use super::rows::{Info, Revert, Rows};
use super::texts::RowTexts;
use crate::conversation::{Conversation, Holds};
use crate::node::Usage;

/// A session as its tables have it.
pub(super) struct Session {
    pub(super) messages: Vec<Message>,
    pub(super) revert: Option<Revert>,
}

/// Reads all rows of a session. `None` when there are none.
pub(super) fn read<R: Rows>(
    to: &mut Conversation,
    rows: &mut R,
) -> Result<Option<Session>, R::Error> {
    let found = rows.session()?;
    let messages = rows.messages()?;
    if found.is_none() && messages.is_empty() {
        return Ok(None);
    }
    if let Some((place, _)) = found {
        hold(to, place, Holds::Metadata("session"));
    }
    // The rows of parts with a message.
    let mut known = Vec::new();
    let mut sum = Usage::default();
    let mut all = Vec::new();
    let mut lost = Vec::new();
    let sources = rows.text_sources();
    let mut texts = RowTexts::of(sources.map(|[of_rows, _]| of_rows));
    for place in messages {
        let Some(row) = rows.message(place)? else {
            continue;
        };
        let Some(mut message) = read_message(to, &row) else {
            rows.parts(&row.id, &mut |part| {
                known.push(part.place.offset);
                lost.push(part);
            })?;
            continue;
        };
        let mut parts = Vec::new();
        rows.parts(&row.id, &mut |part| {
            known.push(part.place.offset);
            parts.extend(add_part(to, &mut texts, &message, &part));
        })?;
        let of_parts = parts
            .iter()
            .map(|part: &MessagePart| (&*part.nodes, part.step.as_deref().copied()));
        let usage = message.usage.as_deref().copied();
        count_steps(to, of_parts, usage);
        sum += usage.unwrap_or_default();
        if !rows.is_damaged() {
            // They are counted, and no message of a whole database was deleted and is there.
            message.usage = None;
            parts.iter_mut().for_each(|part| part.step = None);
        }
        parts.shrink_to_fit();
        message.parts = parts;
        all.push(message);
    }
    texts.finish(to)?;
    known.sort_unstable();
    lost.extend(rows.lost_parts(&known)?);
    drop(known);
    let mut events = Events::new(&all, sources.is_some());
    rows.events(&mut |row| events.take(to, &row))?;
    let mut texts = RowTexts::of(sources.map(|[_, of_events]| of_events));
    let past = events.finish(to, &mut texts, rows)?;
    // A damaged database may have it only in the events.
    let info = found.and_then(|(_, info)| info).or(past.info);
    let info = info.unwrap_or_default();
    learn(to, &info, &all, sum);
    let mut merged = Merged::new(all, past.messages, past.removed, rows.is_damaged());
    merged.add_lost(to, &mut texts, lost);
    for row in past.parts {
        let row = loaded(rows, row)?;
        merged.add_past(to, &mut texts, &row);
    }
    texts.finish(to)?;
    rows.others(to)?;
    Ok(Some(Session {
        messages: merged.finish(to),
        revert: info.revert,
    }))
}

/// Takes over what a session says about itself.
fn learn(to: &mut Conversation, info: &Info, messages: &[Message], sum: Usage) {
    let models = messages.iter().rev().filter_map(|message| message.model);
    let model = models.map(|model| to.nodes.named(model).to_owned()).next();
    let metadata = &mut to.metadata;
    metadata.title.clone_from(&info.title);
    metadata.cwd.clone_from(&info.directory);
    metadata.version.clone_from(&info.version);
    metadata.started.clone_from(&info.created);
    metadata.updated.clone_from(&info.updated);
    metadata.subagent_of.clone_from(&info.parent);
    metadata.forked_from.clone_from(&info.forked_from);
    metadata.model = info.model.clone().or(model);
    metadata.usage = Some(info.usage.unwrap_or(sum));
}
