//! The JSON records of `tail`.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use transcript_engine::wire::{EntryRecord, TailRecord};
use transcript_render::ParsedEntry;
use transcript_tail::{EventKind, FollowedEntry};

use crate::record;
use crate::ui::Ui;

/// Writes one record per event.
pub(super) struct Json<'o> {
    pub(super) ui: &'o Ui,
    pub(super) out: &'o mut dyn Write,
    /// Whether to write a record when a file is opened.
    pub(super) opens: bool,
    /// Whether to write records of the changes that entries make.
    pub(super) changes: bool,
    pub(super) raw_entries: bool,
}

impl Json<'_> {
    /// Writes an event that is not an entry.
    pub(super) fn event(&mut self, path: &Path, event: &EventKind) -> Result<()> {
        match TailRecord::of_event(path, event) {
            Some(TailRecord::Open(_)) if !self.opens => Ok(()),
            Some(record) => record::write(self.out, &record),
            None => Ok(()),
        }
    }

    /// Writes the record of an entry if it is wanted, and the changes that the entry made.
    pub(super) fn entry(
        &mut self,
        path: &Path,
        entry: &FollowedEntry,
        record: Option<EntryRecord<'_>>,
        is_of_agent: bool,
    ) -> Result<()> {
        if let Some(mut record) = record {
            record.line = entry.line;
            record.offset = entry.offset;
            record.len = entry.len;
            if entry.is_salvaged {
                record.via = vec!["salvage".into()];
            } else if record.parent_uuid.is_some() {
                record.via = vec!["parent".into()];
            }
            record.path = Some(path.to_string_lossy());
            record.sidechain = is_of_agent;
            record.write(self.out, |json| self.ui.verbatim(json))?;
        }
        if self.changes {
            for change in &entry.changes {
                if let Some(record) = TailRecord::of_change(path, change) {
                    record::write(self.out, &record)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the record of any entry; its place in the file is set later.
pub(super) fn record_of<'a>(parsed: &'a ParsedEntry<'_>, raw_entry: bool) -> EntryRecord<'a> {
    let index = parsed.index();
    let entry_ref = parsed.entry_ref();
    let id = |id: Option<transcript_reader::Id>| id.map(|id| index.id_text(id));
    let mut record = EntryRecord::of_body(parsed.text(), raw_entry);
    record.uuid = id(entry_ref.and_then(|one| one.uuid()));
    record.parent_uuid = id(entry_ref.and_then(|one| one.parent()));
    record
}
