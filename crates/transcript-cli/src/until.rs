//! What a follower waits for.

use transcript_format::content::Block;
use transcript_format::entry::Entry;
use transcript_tail::{self as tail, ChangeKind};

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

    /// Whether it is there with `entry`. No text of a subagent is waited for in the file of another
    /// conversation.
    pub(crate) fn is_met(&self, entry: &tail::Entry, is_of_agent: bool) -> bool {
        let parsed = Entry::parse(&entry.text).ok();
        match self {
            Self::TurnEnd => {
                let mut changes = entry.changes.iter().map(|change| &change.kind);
                changes.any(|change| matches!(change, ChangeKind::TurnEnded { .. }))
            }
            Self::Uuid(uuid) => {
                let found = parsed.as_ref().and_then(|entry| entry.object().str("uuid"));
                found.is_some_and(|found| found.eq_ignore_ascii_case(uuid))
            }
            Self::Text(start) => !is_of_agent && parsed.is_some_and(|entry| says(&entry, start)),
        }
    }
}

/// Whether a message has a text that starts with `start`.
fn says(entry: &Entry<'_>, start: &str) -> bool {
    let Some(content) = entry.message().and_then(|message| message.content()) else {
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
