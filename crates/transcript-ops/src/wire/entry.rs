//! An entry in the output of `replay` and `tail`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use transcript_format::entry::Entry;
use transcript_format::kind::{EntryKind, Link};
use transcript_format::object::Str;
use transcript_format::scan::{Envelope, Flags, Text};
use transcript_reader::{EntryRef, Index};
use transcript_resume::PathEntry;
use transcript_session::{ConversationEntry, StoryEntry};

use super::Name;
use super::text::Json;

/// An entry. In the output of `replay` it is one of the path; in that of `tail` it may be any line
/// with an object, including titles, modes and other metadata.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The link that put it onto the path: `parent`, `sibling`, `splice`, `bridge`, `salvage`. Of `tail` what
    /// the line alone shows: `salvage`, or `parent` if it names one.
    pub via: Vec<Name>,
    /// Whether the model sees the entry when the conversation continues; absent in the output of
    /// `tail`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_context: Option<bool>,
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
    /// The position after this entry, to continue there; only of the operations `follow` and `watch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
}

impl<'a> EntryRecord<'a> {
    /// Returns the record of an entry of a path with its body. With `raw_entry` it contains the whole entry.
    #[must_use]
    pub fn new(
        index: &Index,
        entry_ref: &EntryRef<'_>,
        body: &'a str,
        entry: &PathEntry,
        raw_entry: bool,
    ) -> Self {
        let id_text = |id| index.id_text(id);
        Self {
            line: Some(entry_ref.line()),
            offset: entry_ref.offset(),
            len: entry_ref.byte_len(),
            uuid: entry_ref.uuid().map(id_text),
            parent_uuid: entry_ref.parent().map(id_text),
            via: entry.via.names().map(Name::Borrowed).collect(),
            in_context: Some(entry.in_context),
            ..Self::from_body(body, raw_entry)
        }
    }

    /// Returns a record with the fields that the body has; the others are empty.
    #[must_use]
    pub fn from_body(body: &'a str, raw_entry: bool) -> Self {
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

    /// Returns the record of an undamaged line that `envelope` is the scan of: that of
    /// [`Self::from_body`] and the ids. The line is parsed only for what the envelope does not have.
    #[must_use]
    pub fn from_line(line: &'a str, envelope: &Envelope<'a>, raw_entry: bool) -> Self {
        let decoded = |text: Option<Text<'a>>| text.map(|text| text.decode());
        let is_system = envelope.kind() == EntryKind::System;
        let names = (decoded(envelope.kind_name()), decoded(envelope.timestamp()));
        let subtype = decoded(envelope.sub_name()).filter(|_| is_system);
        let is_known = !raw_entry
            && !envelope.flags().contains(Flags::TOO_MANY)
            && is_system == subtype.is_some();
        let record = match names {
            // In an envelope, an empty name looks like none.
            (Some(kind), Some(timestamp)) if is_known => Self {
                r#type: Some(kind),
                subtype,
                timestamp: Some(timestamp),
                message: envelope
                    .message()
                    .and_then(|place| line.get(place))
                    .map(Json::new),
                ..Self::default()
            },
            _ => Self::from_body(line, raw_entry),
        };
        let has_parent = envelope.kind().row().link == Link::Parent;
        let parent = envelope.parent_uuid().filter(|_| has_parent);
        Self {
            uuid: decoded(envelope.uuid()).map(Cow::into_owned),
            parent_uuid: decoded(parent).map(Cow::into_owned),
            ..record
        }
    }
}

/// An entry as the command `entries` lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EntryPreview<'e> {
    /// Its uuid; `None` if it has none.
    pub uuid: Option<String>,
    /// Its type, such as `user`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The role of its message.
    pub role: Option<&'static str>,
    /// Whether it is a prompt of a person.
    pub is_prompt: bool,
    /// The start of its text.
    pub preview: &'e str,
    /// The tokens of the context of this answer, as the API counted them.
    pub context_tokens: Option<u64>,
    /// The tokens of this answer, as the API counted them.
    pub output_tokens: Option<u64>,
}

impl<'e> EntryPreview<'e> {
    /// Lists an entry.
    #[must_use]
    pub fn new(entry: &'e ConversationEntry) -> Self {
        Self {
            uuid: entry.id.as_ref().map(ToString::to_string),
            kind: entry.kind.name(),
            role: entry.role.map(|role| role.name()),
            is_prompt: entry.is_prompt,
            preview: &entry.preview,
            context_tokens: entry.context_tokens,
            output_tokens: entry.output_tokens,
        }
    }
}

/// An entry as the command `story` lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StoryPreview<'e> {
    /// The entry.
    #[serde(flatten)]
    pub entry: EntryPreview<'e>,
    /// The number of its chapter, from 0. Each one after the first starts with the boundary of a compaction.
    pub chapter: usize,
    /// Whether the model sees it when the conversation continues.
    pub in_context: bool,
}

impl<'e> StoryPreview<'e> {
    /// Lists an entry.
    #[must_use]
    pub fn new(story: &'e StoryEntry) -> Self {
        Self {
            entry: EntryPreview::new(&story.entry),
            chapter: story.chapter,
            in_context: story.in_context,
        }
    }
}

#[cfg(test)]
mod tests {
    use transcript_format::scan::Scanner;

    use super::*;

    #[test]
    fn the_record_of_a_scanned_line_is_that_of_its_body() {
        let values = [
            "null",
            "\"\"",
            "7",
            "\"x\"",
            r#""\ud83d\u0041""#,
            r#"{ "a" : [ 1e999 ] }"#,
            "\"system\"",
            "\"user\"",
        ];
        let names = [
            "type",
            "subtype",
            "timestamp",
            "message",
            "uuid",
            "parentUuid",
        ];
        let mut scanner = Scanner::new();
        let mut count = 0;
        for kind in [
            "user",
            "system",
            "summary",
            "last-prompt",
            "transcriptEngine",
            "",
        ] {
            for name in names {
                for value in values {
                    for line in [
                        format!(r#"{{"type":"{kind}","{name}":{value}}}"#),
                        format!(
                            r#" {{"timestamp":"t","type":"{kind}","subtype":"s", "{name}" : {value} }} "#
                        ),
                        format!(
                            r#"{{"{name}":{value},"timestamp":"t","message":{value},"type":"{kind}"}}"#
                        ),
                    ] {
                        count += 1;
                        let Ok(envelope) = scanner.scan_text(&line) else {
                            panic!("{line}");
                        };
                        let body = Entry::parse(&line).unwrap();
                        let id = |name| body.object().str(name).filter(|id| !id.is_empty());
                        let kind = body.kind();
                        let leads = matches!(
                            kind,
                            EntryKind::LastPrompt
                                | EntryKind::Summary
                                | EntryKind::TranscriptEngine
                        );
                        for raw in [false, true] {
                            let expected = EntryRecord {
                                uuid: id("uuid").map(Cow::into_owned),
                                parent_uuid: id("parentUuid")
                                    .filter(|_| !leads)
                                    .map(Cow::into_owned),
                                ..EntryRecord::from_body(&line, raw)
                            };
                            assert_eq!(
                                EntryRecord::from_line(&line, &envelope, raw),
                                expected,
                                "{line}"
                            );
                        }
                    }
                }
            }
        }
        assert_eq!(count, 864);
    }
}
