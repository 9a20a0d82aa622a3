//! Entries that no other client would find.

use std::collections::HashSet;

use transcript_reader::{Bodies, EntryRef};
use transcript_resume::Tree;
use transcript_writer::{Draft, EntryId, ResumePoint};

use crate::error::Error;
use crate::history::History;
use crate::resume_point::entry_id;

/// Returns the entries of the conversation that stand on damaged lines only, to be written again,
/// each on a line of its own: the real client skips such lines, and with them everything above.
/// They are taken out of what is `known` to be in the file.
///
/// An entry is a child of the one that its line names; where that is lost, under the one before it
/// in the conversation.
pub(crate) fn entries(
    history: &History,
    tree: &Tree<'_>,
    known: &mut ResumePoint,
) -> Result<Vec<Draft>, Error> {
    let index = history.index();
    let path = tree.path();
    let on_path = path
        .entries
        .iter()
        .map(|entry| index.entry(entry.entry_no()));
    if !on_path.clone().any(|entry| entry.is_salvaged()) {
        return Ok(Vec::new());
    }
    let whole: HashSet<EntryId> = index
        .entries()
        .filter(|entry_ref| !entry_ref.is_salvaged())
        .filter_map(|entry_ref| entry_id(&entry_ref, index))
        .collect();
    let is_lost = |entry: &EntryRef<'_>| {
        entry.is_salvaged() && entry_id(entry, index).is_some_and(|id| !whole.contains(&id))
    };
    let mut bodies = Bodies::new(history.source());
    let mut drafts = Vec::new();
    let mut above = None;
    for entry in on_path {
        if is_lost(&entry)
            && let Some(id) = entry_id(&entry, index)
            && let Ok(draft) = Draft::copy(bodies.get(&entry)?.text)
        {
            let parent = entry.parent().map(|id| EntryId::from(&*index.id_text(id)));
            let is_there = parent.as_ref().is_none_or(|id| known.uuids.contains(id));
            let draft = match above.clone() {
                _ if is_there => Some(draft),
                Some(above) => Some(draft.parent(above)),
                // Nothing that could be written would be above it: it stays where it is.
                None => None,
            };
            if let Some(draft) = draft {
                drafts.push(draft);
                known.uuids.remove(&id);
            }
        }
        above = entry_id(&entry, index).or(above);
    }
    Ok(drafts)
}
