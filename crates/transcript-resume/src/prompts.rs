//! The system prompts that a session was sent with: the lines that record them, and those that belong
//! to a conversation.
//!
//! Each line has the prompt of the turns up to the next one, and names the last entry of the
//! conversation at that time. A line that names an entry of another branch is about that branch.

use std::collections::HashSet;

use transcript_format::kind::EntryKind;
use transcript_format::metadata::TranscriptEngine;
use transcript_format::object::{Object, Raw};
use transcript_messages::builder::{PromptFingerprint, text_hash};
use transcript_reader::{EntryRef, Id, Index};

use transcript_reader::BodySource;
use transcript_reader::Story;

/// Passes each line that records a system prompt, or the texts of one, to `take`, in the order of
/// the file. Lines that are damaged are omitted.
///
/// # Errors
/// The errors of `bodies`, and of `take`, which end it.
pub fn each_line<B: BodySource, E: From<B::Error>>(
    index: &Index,
    bodies: &mut B,
    mut take: impl FnMut(&EntryRef<'_>, &TranscriptEngine<'_>) -> Result<(), E>,
) -> Result<(), E> {
    for entry in index.entries() {
        if entry.kind() != EntryKind::TranscriptEngine || entry.tombstones().next().is_some() {
            continue;
        }
        if let Ok(line) = Object::parse(bodies.body(&entry)?) {
            take(&entry, &TranscriptEngine::from(line))?;
        }
    }
    Ok(())
}

/// Returns the fingerprint of the prompt that a line records; `None` if it records none, or not as
/// it was written.
#[must_use]
pub fn fingerprint(line: &TranscriptEngine<'_>) -> Option<PromptFingerprint> {
    let prompt = line.object().get("prompt")?;
    serde_json::from_str(prompt.text()).ok()
}

/// Returns whether `value` is the text with this hash: a redaction changes texts, and hashes stay.
#[must_use]
pub fn is_text_of(hash: &str, value: Raw<'_>) -> bool {
    value.str().is_some_and(|text| text_hash(&text) == hash)
}

/// The entries of a conversation, through all of its compactions.
#[derive(Debug)]
pub struct PromptFilter<'i> {
    index: &'i Index,
    entries: HashSet<Id>,
}

impl<'i> PromptFilter<'i> {
    /// Takes the entries of `story`, which is one of `index`.
    #[must_use]
    pub fn new(index: &'i Index, story: &Story) -> Self {
        let entries = story.path.entries.iter();
        let ids = entries.filter_map(|entry| index.entry(entry.entry_no()).uuid());
        Self {
            index,
            entries: ids.collect(),
        }
    }

    /// Returns whether a prompt that was recorded after this entry belongs to the conversation. It
    /// does unless the entry is elsewhere in the file.
    #[must_use]
    pub fn has(&self, after: Option<&str>) -> bool {
        let Some(id) = after.and_then(|after| self.index.id(after)) else {
            return true;
        };
        self.entries.contains(&id) || self.index.with_uuid(id).next().is_none()
    }
}
