//! All rows of one session: its messages in their order, and what it says about itself.

use std::collections::BTreeSet;

use super::events::Events;
use super::merged::Merged;
use super::message::{Message, add_message, hold};
use super::rows::{Info, Revert, Rows};
use crate::conversation::{Conversation, Holds, Usage};

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
    let mut known = BTreeSet::new();
    let mut all = Vec::new();
    let mut lost = Vec::new();
    for row in messages {
        let parts = rows.parts(&row.id)?;
        known.extend(parts.iter().map(|part| part.place));
        match add_message(to, &row, parts) {
            Ok(message) => all.push(message),
            Err(parts) => lost.extend(parts),
        }
    }
    lost.extend(rows.lost_parts(&known)?);
    let mut events = Events::new(to, &all);
    rows.events(&mut |row| events.take(to, &row))?;
    let past = events.finish(to, &all);
    // A damaged database may have it only in the events.
    let info = found.and_then(|(_, info)| info).or(past.info);
    let info = info.unwrap_or_default();
    learn(to, &info, &all);
    let mut merged = Merged::new(all, past.messages, past.removed, rows.is_damaged());
    merged.add_lost(to, lost);
    merged.add_past(to, past.parts);
    rows.others(to)?;
    Ok(Some(Session {
        messages: merged.finish(to),
        revert: info.revert,
    }))
}

/// Takes over what a session says about itself.
fn learn(to: &mut Conversation, info: &Info, messages: &[Message]) {
    let metadata = &mut to.metadata;
    metadata.title.clone_from(&info.title);
    metadata.cwd.clone_from(&info.directory);
    metadata.version.clone_from(&info.version);
    metadata.started.clone_from(&info.created);
    metadata.updated.clone_from(&info.updated);
    metadata.subagent_of.clone_from(&info.parent);
    metadata.forked_from.clone_from(&info.forked_from);
    let mut models = messages.iter().rev().filter_map(|m| m.model.clone());
    metadata.model = info.model.clone().or_else(|| models.next());
    let usages = messages.iter().filter_map(|message| message.usage);
    let sum = usages.fold(Usage::default(), |mut sum, usage| {
        sum += usage;
        sum
    });
    metadata.usage = Some(info.usage.unwrap_or(sum));
}
