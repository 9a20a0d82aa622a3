//! JSON records of entries.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;
use transcript_format::entry::Entry;
use transcript_format::kind::EntryKind;
use transcript_format::object::Raw;
use transcript_reader::{EntryRef, Index};
use transcript_resume::Via;

use crate::json;
use crate::ui::Ui;

/// An entry as `replay` and `tail` write it.
pub(crate) struct EntryRecord<'a> {
    pub(crate) line: Option<u64>,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) uuid: Option<String>,
    pub(crate) parent_uuid: Option<String>,
    /// The body.
    pub(crate) text: &'a str,
    pub(crate) via: Via,
    /// The path of the file, for commands that print several files.
    pub(crate) path: Option<&'a str>,
    /// Whether to write `sidechain`: the entry belongs to a subagent in the file of another conversation.
    pub(crate) is_sidechain: bool,
}

/// The fields before the verbatim parts.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "entry", rename_all = "camelCase")]
struct Head<'a> {
    line: Option<u64>,
    offset: u64,
    len: u64,
    uuid: Option<&'a str>,
    parent_uuid: Option<&'a str>,
    r#type: Option<&'a str>,
    subtype: Option<&'a str>,
    timestamp: Option<&'a str>,
}

impl<'a> EntryRecord<'a> {
    /// Creates the record of an entry of `index` with its body.
    pub(crate) fn new(
        index: &Index,
        entry_ref: &EntryRef<'_>,
        text: &'a str,
        via: Via,
    ) -> EntryRecord<'a> {
        let id_text = |id| index.id_text(id);
        Self {
            line: Some(entry_ref.line()),
            offset: entry_ref.offset(),
            len: entry_ref.byte_len(),
            uuid: entry_ref.uuid().map(id_text),
            parent_uuid: entry_ref.parent().map(id_text),
            text,
            via,
            path: None,
            is_sidechain: false,
        }
    }

    /// Writes the record as one line, with the whole raw entry if `with_entry`.
    pub(crate) fn write(&self, ui: &Ui, out: &mut dyn Write, with_entry: bool) -> Result<()> {
        // The scanner accepts a few lines that the parser rejects; they are written without a body.
        let body = Entry::parse(self.text).ok();
        let object = body.as_ref().map(Entry::object);
        let text_of = |name: &str| object?.get(name)?.str();
        let kind = text_of("type");
        let is_system = body.as_ref().map(Entry::kind) == Some(EntryKind::System);
        let subtype = text_of("subtype").filter(|_| is_system);
        let timestamp = text_of("timestamp");
        let message = object.and_then(|object| object.get("message"));
        let mut line = json::text(&Head {
            line: self.line,
            offset: self.offset,
            len: self.len,
            uuid: self.uuid.as_deref(),
            parent_uuid: self.parent_uuid.as_deref(),
            r#type: kind.as_deref(),
            subtype: subtype.as_deref(),
            timestamp: timestamp.as_deref(),
        })?;
        // Copy verbatim parts directly; a serializer would validate every byte again.
        line.pop();
        line.push_str(",\"message\":");
        out.write_all(line.as_bytes())?;
        out.write_all(ui.verbatim(message.map_or("null", Raw::text)).as_bytes())?;
        line.clear();
        line.push_str(",\"via\":");
        line.push_str(&json::text(&self.via.names().collect::<Vec<_>>())?);
        if let Some(path) = self.path {
            line.push_str(",\"path\":");
            line.push_str(&json::text(&path)?);
        }
        if self.is_sidechain {
            line.push_str(",\"sidechain\":true");
        }
        if let Some(body) = body.as_ref().filter(|_| with_entry) {
            line.push_str(",\"entry\":");
            out.write_all(line.as_bytes())?;
            out.write_all(ui.verbatim(body.text()).as_bytes())?;
            line.clear();
        }
        line.push_str("}\n");
        out.write_all(line.as_bytes())?;
        Ok(())
    }
}

/// Writes `record` as one line.
pub(crate) fn write(out: &mut dyn Write, record: &impl Serialize) -> Result<()> {
    let mut line = json::text(record)?;
    line.push('\n');
    out.write_all(line.as_bytes())?;
    Ok(())
}
