//! What a follower waits for.

use std::path::Path;

use transcript_format::content::{Block, Content};
use transcript_format::entry::Entry;
use transcript_format::kind::EntryKind;
use transcript_format::names::agent_of;
use transcript_format::object::{FromRaw, Object};
use transcript_tail::{ChangeKind, Event};

/// What is to be on disk.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Until {
    /// The entry with this uuid, in upper or lower case.
    Uuid(String),
    /// A message with a text that starts so, white space before it aside.
    Text(String),
    /// The end of a turn.
    TurnEnd,
}

impl Until {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let parsed = match text.split_once(':') {
            Some(("uuid", uuid)) => some(uuid.trim()).map(Self::Uuid),
            Some(("text", text)) => some(text.trim_start()).map(Self::Text),
            None if text == "turn-end" => Some(Self::TurnEnd),
            _ => None,
        };
        parsed.ok_or_else(|| "expected uuid:UUID, text:PREFIX or turn-end".to_owned())
    }

    /// Whether `event`, of the file at `path`, is what is waited for.
    pub(crate) fn is_met(&self, path: &Path, event: &Event) -> bool {
        match (self, event) {
            (Self::TurnEnd, Event::Change(change)) => {
                matches!(change.kind, ChangeKind::TurnEnded { .. })
            }
            (Self::Uuid(uuid), Event::Entry(entry)) => {
                let entry = Entry::parse(&entry.text).ok();
                let found = entry.as_ref().and_then(|entry| entry.object().str("uuid"));
                found.is_some_and(|found| found.eq_ignore_ascii_case(uuid))
            }
            (Self::Text(start), Event::Entry(entry)) => {
                let entry = Entry::parse(&entry.text).ok();
                entry.is_some_and(|entry| says(&entry, start, is_subagent(path)))
            }
            _ => false,
        }
    }
}

/// Whether a message of the conversation has a text that starts with `start`.
fn says(entry: &Entry<'_>, start: &str, subagents_count: bool) -> bool {
    let is_message = matches!(entry.kind(), EntryKind::User | EntryKind::Assistant);
    let is_sidechain = |object: &Object<'_>| {
        let flag = object.get("isSidechain");
        flag.and_then(|flag| flag.bool()) == Some(true)
    };
    if !is_message || is_sidechain(entry.object()) && !subagents_count {
        return false;
    }
    let message = entry.object().object("message");
    let content = message.and_then(|message| message.get("content"));
    let Some(content) = content.and_then(Content::from_raw) else {
        return false;
    };
    let starts = |text: &str| text.trim_start().starts_with(start);
    if let Some(text) = content.as_text() {
        return starts(text);
    }
    content.blocks().iter().any(|block| match block {
        Block::Text(text) => text.text().is_some_and(|text| starts(&text)),
        _ => false,
    })
}

fn is_subagent(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(agent_of).is_some()
}
