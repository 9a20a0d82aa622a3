//! The entries of a conversation before its last compaction, as far as the state needs them.

use std::collections::HashSet;

use transcript_format::kind::{AttachmentKind, EntryKind};
use transcript_format::scan::{Flags, ToolRole};
use transcript_reader::{ConversationPath, EntryNo, EntryRef, Index};

use super::sweep::Sweep;

/// Returns the boundary of the compaction that `path` starts at; `None` without one, and if only the
/// end of the file was read.
pub(super) fn boundary(index: &Index, path: &ConversationPath) -> Option<EntryNo> {
    let on_path = path.entries.iter().map(|entry| entry.entry_no());
    let boundary = on_path
        .filter(|entry| index.entry(*entry).is_boundary())
        .max();
    boundary.filter(|_| index.starts_at() == 0)
}

/// Returns the entries above a boundary, in file order, that have results of calls, texts of files, or
/// a text of the person or of the client; none of those on the path.
pub(super) fn entries(lines: &Sweep<'_>, boundary: EntryNo) -> Vec<EntryNo> {
    let index = lines.index();
    let mut above = HashSet::new();
    let mut calls = HashSet::new();
    let mut next = Some(boundary);
    // Links may form a cycle.
    while let Some(entry_no) = next.filter(|entry_no| above.insert(*entry_no)) {
        let entry = index.entry(entry_no);
        let made = entry
            .tools()
            .iter()
            .filter(|end| end.role() == ToolRole::Use);
        calls.extend(made.map(|end| end.key()));
        next = before(index, &entry);
    }
    let counts = |entry: &EntryRef<'_>| match entry.kind() {
        // The results of parallel calls are beside the chain.
        EntryKind::User => {
            let mut ends = entry.tools().iter();
            above.contains(&entry.number())
                || ends.any(|end| end.role() == ToolRole::Result && calls.contains(&end.key()))
        }
        EntryKind::Attachment => above.contains(&entry.number()) && has_file(entry),
        _ => false,
    };
    let entries = (0..boundary.get()).map(|number| index.entry(EntryNo::new(number)));
    let entries = entries.filter(|entry| {
        !entry.flags().contains(Flags::SIDECHAIN) && !lines.is_on_path(entry) && counts(entry)
    });
    entries.map(|entry| entry.number()).collect()
}

/// Returns whether the text of an entry may be about a file, a commit or the model: most are not, and
/// need not be parsed.
pub(super) fn may_mention_work(body: &str) -> bool {
    const SEARCHED_TEXTS: [&str; 6] = [
        "\"filePath\"",
        "\"gitOperation\"",
        "\"notebook_path\"",
        "\"attachment\"",
        "/model</command-name>",
        "Set model to ",
    ];
    SEARCHED_TEXTS.iter().any(|sign| body.contains(sign))
}

/// Returns the entry that the conversation continued from: the parent, or for a boundary the one that
/// it names.
fn before(index: &Index, entry: &EntryRef<'_>) -> Option<EntryNo> {
    let names = index.boundary(entry.number());
    let named = names.into_iter().flat_map(|names| {
        let ends = [names.logical_parent, names.ends[1]];
        ends.into_iter().flatten()
    });
    let mut ids = entry.parent().into_iter().chain(named);
    ids.find_map(|id| index.with_uuid(id).next())
}

fn has_file(entry: &EntryRef<'_>) -> bool {
    matches!(
        entry.attachment_kind(),
        Some(
            AttachmentKind::File
                | AttachmentKind::NestedMemory
                | AttachmentKind::SelectedLinesInIde
                | AttachmentKind::PlanFileReference
                | AttachmentKind::EditedTextFile
                | AttachmentKind::CompactFileReference
        )
    )
}
