//! The JSON records of `tail`.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use transcript_render::ParsedEntry;
use transcript_resume::Via;
use transcript_tail::{ChangeKind, ConversationChange, EventKind, FollowedEntry};

use crate::record::{self, EntryRecord};
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

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum TailRecord<'a> {
    Open {
        path: &'a str,
        offset: u64,
    },
    Bad {
        line: Option<u64>,
        offset: u64,
        len: u64,
        code: &'static str,
        detail: &'static str,
        path: &'a str,
    },
    Reset {
        reason: &'static str,
        path: &'a str,
        offset: u64,
    },
    Gone {
        path: &'a str,
        offset: u64,
        torn: u64,
    },
    Moved {
        from: Option<&'a str>,
        fork: Option<&'a str>,
        to: Option<&'a str>,
        path: &'a str,
        offset: u64,
    },
    Boundary(ChangeRecord<'a>),
    CallOpened(CallRecord<'a>),
    CallClosed(CallRecord<'a>),
    Tombstoned(ChangeRecord<'a>),
    TurnEnd(ChangeRecord<'a>),
}

/// A change that concerns one entry.
#[derive(Serialize)]
struct ChangeRecord<'a> {
    uuid: Option<&'a str>,
    path: &'a str,
    offset: u64,
}

#[derive(Serialize)]
struct CallRecord<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    path: &'a str,
    offset: u64,
}

impl Json<'_> {
    /// Writes an event that is not an entry.
    pub(super) fn event(&mut self, path: &Path, event: &EventKind) -> Result<()> {
        let path = &path.to_string_lossy();
        let record = match event {
            EventKind::Open { offset } if self.opens => TailRecord::Open {
                path,
                offset: *offset,
            },
            EventKind::Damaged(finding) => TailRecord::Bad {
                line: finding.line,
                offset: finding.offset,
                len: finding.len,
                code: finding.code.as_str(),
                detail: finding.detail,
                path,
            },
            EventKind::Reset { reason, offset } => TailRecord::Reset {
                reason: reason.name(),
                path,
                offset: *offset,
            },
            EventKind::Gone { offset, torn } => TailRecord::Gone {
                path,
                offset: *offset,
                torn: *torn,
            },
            _ => return Ok(()),
        };
        record::write(self.out, &record)
    }

    /// Writes an entry if it is `wanted`, and the changes that it made.
    pub(super) fn entry(
        &mut self,
        path: &Path,
        entry: &FollowedEntry,
        parsed: &ParsedEntry<'_>,
        is_of_agent: bool,
        wanted: bool,
    ) -> Result<()> {
        let path = &path.to_string_lossy();
        if wanted {
            let mut record = entry_record(path, entry, parsed);
            record.is_sidechain = is_of_agent;
            record.write(self.ui, self.out, self.raw_entries)?;
        }
        if self.changes {
            for change in &entry.changes {
                if let Some(record) = change_record(path, change) {
                    record::write(self.out, &record)?;
                }
            }
        }
        Ok(())
    }
}

fn entry_record<'a>(
    path: &'a str,
    entry: &FollowedEntry,
    parsed: &'a ParsedEntry<'_>,
) -> EntryRecord<'a> {
    let index = parsed.index();
    let entry_ref = parsed.entry_ref();
    let id = |id: Option<transcript_reader::Id>| id.map(|id| index.id_text(id));
    let parent_uuid = id(entry_ref.and_then(|one| one.parent()));
    EntryRecord {
        line: entry.line,
        offset: entry.offset,
        len: entry.len,
        uuid: id(entry_ref.and_then(|one| one.uuid())),
        via: match (entry.is_salvaged, &parent_uuid) {
            (true, _) => Via::SALVAGE,
            (false, Some(_)) => Via::PARENT,
            (false, None) => Via::empty(),
        },
        parent_uuid,
        text: parsed.text(),
        path: Some(path),
        is_sidechain: false,
    }
}

fn change_record<'a>(path: &'a str, change: &'a ConversationChange) -> Option<TailRecord<'a>> {
    let offset = change.offset;
    let named = |uuid: Option<&'a str>| ChangeRecord { uuid, path, offset };
    let call = |id, name| CallRecord {
        id,
        name,
        path,
        offset,
    };
    Some(match &change.kind {
        ChangeKind::Moved { from, fork, to } => TailRecord::Moved {
            from: from.as_deref(),
            fork: fork.as_deref(),
            to: to.as_deref(),
            path,
            offset,
        },
        ChangeKind::Boundary { uuid } => TailRecord::Boundary(named(uuid.as_deref())),
        ChangeKind::CallOpened { id, name } => TailRecord::CallOpened(call(id, name.as_deref())),
        ChangeKind::CallClosed { id } => TailRecord::CallClosed(call(id, None)),
        ChangeKind::Tombstoned { uuid } => TailRecord::Tombstoned(named(Some(uuid))),
        ChangeKind::TurnEnded { uuid } => TailRecord::TurnEnd(named(uuid.as_deref())),
        _ => return None,
    })
}
