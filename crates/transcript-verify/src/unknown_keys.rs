//! Reports keys of message lines that the format does not know.

use transcript_format::finding::Code;
use transcript_format::known_keys::KeyPlace;
use transcript_reader::{Index, UnknownKey};
use transcript_redact::Redactor;

use crate::located_finding::LocatedFinding;

/// Returns a finding for each key and each version of a client, at its first line.
pub(crate) fn findings(index: &Index) -> impl Iterator<Item = LocatedFinding> {
    index.unknown_keys().iter().map(|key| LocatedFinding {
        line: Some(key.line),
        offset: key.offset,
        len: key.len,
        ..LocatedFinding::of_file(Code::UnknownKey, detail(key))
    })
}

fn detail(key: &UnknownKey) -> String {
    // A name that is not a plain one, or looks like a secret, could be content.
    let name = key.name.as_deref();
    let name = name.filter(|name| Redactor::new().find(name.as_bytes()).is_empty());
    let name = name.unwrap_or("(other)");
    let what = match key.place {
        KeyPlace::Message => format!("the key message.{name}"),
        KeyPlace::Attachment => format!("the key attachment.{name}"),
        KeyPlace::AttachmentType => format!("the attachment type {name}"),
        _ => format!("the key {name}"),
    };
    let of_client = key
        .version
        .as_deref()
        .map(|version| format!(" of Claude Code {version}"));
    format!(
        "{what} on {}{} (first at line {}) is not known to this version; the request that the client \
         makes may differ",
        lines(key),
        of_client.unwrap_or_default(),
        key.line,
    )
}

fn lines(key: &UnknownKey) -> String {
    match key.lines {
        1 => format!("1 {} line", key.kind.name()),
        lines => format!("{lines} {} lines", key.kind.name()),
    }
}
