//! What is followed, as lines of JSON.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use transcript_resume::Via;
use transcript_tail::{Change, ChangeKind, Event};

use crate::record::{self, EntryRecord};
use crate::single::Single;

/// Writes a record an event.
pub(super) struct Json<'o> {
    pub(super) out: &'o mut dyn Write,
    /// Whether files are told when they come.
    pub(super) opens: bool,
    /// Whether what entries change is told.
    pub(super) changes: bool,
    pub(super) raw_entries: bool,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Record<'a> {
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
    Boundary(Named<'a>),
    CallOpened(Call<'a>),
    CallClosed(Call<'a>),
    Tombstoned(Named<'a>),
    TurnEnd(Named<'a>),
}

/// An entry that something happened to.
#[derive(Serialize)]
struct Named<'a> {
    uuid: Option<&'a str>,
    path: &'a str,
    offset: u64,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    path: &'a str,
    offset: u64,
}

impl Json<'_> {
    /// Writes an event that is no entry.
    pub(super) fn event(&mut self, path: &Path, event: &Event) -> Result<()> {
        let path = &path.to_string_lossy();
        let record = match event {
            Event::Open { offset } if self.opens => Record::Open {
                path,
                offset: *offset,
            },
            Event::Bad(finding) => Record::Bad {
                line: finding.line,
                offset: finding.offset,
                len: finding.len,
                code: finding.code.as_str(),
                detail: finding.detail,
                path,
            },
            Event::Reset { reason, offset } => Record::Reset {
                reason: reason.name(),
                path,
                offset: *offset,
            },
            Event::Gone { offset, torn } => Record::Gone {
                path,
                offset: *offset,
                torn: *torn,
            },
            _ => return Ok(()),
        };
        record::write(self.out, &record)
    }

    /// Writes an entry when it is `wanted`, and what it changed.
    pub(super) fn entry(
        &mut self,
        path: &Path,
        single: &Single<'_>,
        is_of_agent: bool,
        wanted: bool,
    ) -> Result<()> {
        let path = &path.to_string_lossy();
        if wanted {
            let mut record = entry_record(path, single);
            record.is_sidechain = is_of_agent;
            record.write(self.out, self.raw_entries)?;
        }
        if self.changes {
            for change in &single.entry.changes {
                if let Some(record) = change_record(path, change) {
                    record::write(self.out, &record)?;
                }
            }
        }
        Ok(())
    }
}

fn entry_record<'a>(path: &'a str, single: &'a Single<'_>) -> EntryRecord<'a> {
    let index = single.history().index();
    let candidate = single.candidate();
    let id = |id: Option<transcript_reader::Id>| id.map(|id| index.id_text(id));
    let parent_uuid = id(candidate.and_then(|one| one.parent()));
    EntryRecord {
        line: single.entry.line,
        offset: single.entry.offset,
        len: single.entry.len,
        uuid: id(candidate.and_then(|one| one.uuid())),
        via: match (single.entry.is_salvaged, &parent_uuid) {
            (true, _) => Via::SALVAGE,
            (false, Some(_)) => Via::PARENT,
            (false, None) => Via::empty(),
        },
        parent_uuid,
        text: single.text(),
        path: Some(path),
        is_sidechain: false,
    }
}

fn change_record<'a>(path: &'a str, change: &'a Change) -> Option<Record<'a>> {
    let offset = change.offset;
    let named = |uuid: Option<&'a str>| Named { uuid, path, offset };
    let call = |id, name| Call {
        id,
        name,
        path,
        offset,
    };
    Some(match &change.kind {
        ChangeKind::Moved { from, fork, to } => Record::Moved {
            from: from.as_deref(),
            fork: fork.as_deref(),
            to: to.as_deref(),
            path,
            offset,
        },
        ChangeKind::Boundary { uuid } => Record::Boundary(named(uuid.as_deref())),
        ChangeKind::CallOpened { id, name } => Record::CallOpened(call(id, name.as_deref())),
        ChangeKind::CallClosed { id } => Record::CallClosed(call(id, None)),
        ChangeKind::Tombstoned { uuid } => Record::Tombstoned(named(Some(uuid))),
        ChangeKind::TurnEnded { uuid } => Record::TurnEnd(named(uuid.as_deref())),
        _ => return None,
    })
}
