//! An entry in the output of `replay` and `tail`.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use transcript_format::entry::Entry;
use transcript_format::kind::EntryKind;
use transcript_format::object::Str;
use transcript_reader::{EntryRef, Index};
use transcript_resume::Via;

use super::text::{Json, around_value, text};
use super::{Name, ReplayRecord};

/// An entry. In the output of `replay` it is one of the path; in that of `tail` it may be any line
/// with an object, including titles, modes and other metadata.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EntryRecord<'a> {
    /// The number of its line, from 1; `None` if the lines before were not read.
    pub line: Option<u64>,
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// The number of bytes that it takes in the file, without the newline.
    pub len: u64,
    /// Its uuid; `None` if it has none.
    pub uuid: Option<String>,
    /// The parent that the entry itself names, even if the path reached it in another way; `None` if
    /// it names none.
    pub parent_uuid: Option<String>,
    /// Its type, such as `user`; new values may be added. `None` if the line cannot be parsed.
    pub r#type: Option<Str<'a>>,
    /// The subtype of a `system` entry; `None` for any other.
    pub subtype: Option<Str<'a>>,
    /// Its time as in the file; `None` if it has none.
    pub timestamp: Option<Str<'a>>,
    /// Its message, verbatim; `None` if it has none, or if the line cannot be parsed.
    pub message: Option<Json<'a>>,
    /// How it came onto the path: `parent`, `sibling`, `splice`, `bridge`, `salvage`. Of `tail` what
    /// the line alone shows: `salvage`, or `parent` if it names one.
    pub via: Vec<Name>,
    /// The absolute path of the file; only in the output of `tail`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Cow<'a, str>>,
    /// Whether it belongs to a subagent in the file of another conversation; only in the output of
    /// `tail`, and absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sidechain: bool,
    /// The whole entry, verbatim; only with `--raw-entries`, and absent if the line cannot be parsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<Json<'a>>,
}

impl<'a> EntryRecord<'a> {
    /// Returns the record of an entry with its body. With `raw_entry` it contains the whole entry.
    #[must_use]
    pub fn new(
        index: &Index,
        entry_ref: &EntryRef<'_>,
        body: &'a str,
        via: Via,
        raw_entry: bool,
    ) -> Self {
        let id_text = |id| index.id_text(id);
        Self {
            line: Some(entry_ref.line()),
            offset: entry_ref.offset(),
            len: entry_ref.byte_len(),
            uuid: entry_ref.uuid().map(id_text),
            parent_uuid: entry_ref.parent().map(id_text),
            via: via.names().map(Name::Borrowed).collect(),
            ..Self::of_body(body, raw_entry)
        }
    }

    /// Returns a record with the fields that the body has; the others are empty.
    #[must_use]
    pub fn of_body(body: &'a str, raw_entry: bool) -> Self {
        // The scanner accepts a few lines that the parser rejects; they are printed without a body.
        let Ok(entry) = Entry::parse(body) else {
            return Self::default();
        };
        let object = entry.object();
        let text_of = |name: &str| object.get(name).and_then(|value| value.str());
        let is_system = entry.kind() == EntryKind::System;
        Self {
            r#type: text_of("type"),
            subtype: text_of("subtype").filter(|_| is_system),
            timestamp: text_of("timestamp"),
            message: object.get("message").map(Json::from),
            entry: raw_entry.then(|| Json::new(entry.text())),
            ..Self::default()
        }
    }

    /// Writes the record as one line: like [`text`], but verbatim values pass through `verbatim` and
    /// are copied; serializing would parse every byte again.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(
        mut self,
        out: &mut dyn Write,
        verbatim: impl Fn(&str) -> Cow<'_, str>,
    ) -> io::Result<()> {
        let (message, entry) = (self.message.take(), self.entry.take());
        let line = text(&ReplayRecord::Entry(self))?;
        let (head, tail) = around_value(&line, "\"message\":", "null");
        out.write_all(head.as_bytes())?;
        let message = message.as_ref().map_or("null", Json::text);
        out.write_all(verbatim(message).as_bytes())?;
        match entry {
            Some(entry) => {
                out.write_all(tail.strip_suffix('}').unwrap_or(tail).as_bytes())?;
                out.write_all(b",\"entry\":")?;
                out.write_all(verbatim(entry.text()).as_bytes())?;
                out.write_all(b"}")?;
            }
            None => out.write_all(tail.as_bytes())?,
        }
        out.write_all(b"\n")
    }
}
