//! Entries that other clients would not find.

use std::collections::HashSet;

use transcript_reader::{Bodies, EntryRef};
use transcript_resume::Tree;
use transcript_writer::{Draft, EntryId, ResumePoint};

use crate::error::Error;
use crate::history::History;
use crate::resume_point::entry_id;

/// Returns the entries of the conversation that exist only on damaged lines, to be written again,
/// each on its own line: the client skips a damaged line or reads only its first object (FILE-1,
/// FILE-2), and so loses the links to everything before it. Removes these entries from `known`,
/// because the writer does not accept an entry that the file already has.
///
/// Each keeps the parent that its line names; if that is lost, it becomes a child of the previous
/// entry of the conversation.
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
                // No entry that could be written would be its ancestor, so it is not rewritten.
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
