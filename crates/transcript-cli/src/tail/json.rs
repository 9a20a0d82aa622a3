//! The JSON records of `tail`.

use std::path::Path;

use anyhow::Result;
use transcript_ops::follow::entry_record;
use transcript_ops::wire::{self, TailRecord};
use transcript_tail::{EventKind, FollowedEntry};

use crate::record::Records;
use crate::ui::Ui;

/// Writes one record per event.
pub(super) struct Json<'o> {
    pub(super) ui: &'o Ui,
    pub(super) out: Records<'o>,
    /// Whether to write a record when a file is opened.
    pub(super) opens: bool,
    /// Whether to write records of the changes that entries make.
    pub(super) changes: bool,
    pub(super) raw_entries: bool,
}

impl Json<'_> {
    /// Writes an event that is not an entry.
    pub(super) fn event(&mut self, path: &Path, event: &EventKind) -> Result<()> {
        match TailRecord::from_event(path, event) {
            Some(TailRecord::Open(_)) if !self.opens => Ok(()),
            Some(record) => self.write(&record),
            None => Ok(()),
        }
    }

    fn write(&mut self, record: &TailRecord<'_>) -> Result<()> {
        let text = wire::text(record)?;
        Ok(self.out.write(|out| writeln!(out, "{text}"))?)
    }

    /// Writes the record of an entry if it is wanted, and the changes that the entry made.
    pub(super) fn entry(
        &mut self,
        path: &Path,
        entry: &FollowedEntry,
        is_wanted: bool,
        is_of_agent: bool,
    ) -> Result<()> {
        if is_wanted {
            let mut record = entry_record(entry, self.raw_entries);
            record.path = Some(path.to_string_lossy());
            record.sidechain = is_of_agent;
            let ui = self.ui;
            self.out
                .write(|out| record.write(out, |json| ui.verbatim(json)))?;
        }
        if self.changes {
            for change in &entry.changes {
                if let Some(record) = TailRecord::from_change(path, change) {
                    self.write(&record)?;
                }
            }
        }
        Ok(())
    }
}
