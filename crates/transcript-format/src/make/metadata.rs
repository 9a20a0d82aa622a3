//! Constructors of entries other than messages: context, progress, session state, engine lines.

use std::fmt;

use super::{ENGINE_VERSION, NewEntry};
use crate::json::{Json, ObjectBuf};
use crate::kind::EntryKind;
use crate::object::Object;

/// Creates an attachment: context that the client adds to the conversation, as an object with a
/// `type` ([`AttachmentKind`](crate::kind::AttachmentKind)). `rendered` are the texts sent to the
/// model; a resume sends them again instead of rendering the attachment again (NOTE-1).
#[must_use]
pub fn attachment(attachment: &Object<'_>, rendered: &[&str]) -> NewEntry {
    let texts = rendered
        .iter()
        .map(|text| ObjectBuf::new().with("content", *text).into());
    let entry = NewEntry::new(EntryKind::Attachment).with("attachment", attachment.raw());
    if rendered.is_empty() {
        return entry;
    }
    entry
        .with("rendered", Json::array(texts))
        .with("renderedRole", "system")
}

/// Creates a status of a running tool or hook: an object with a `type`
/// ([`ProgressKind`](crate::kind::ProgressKind)). Clients up to 2.1.81 wrote them.
#[must_use]
pub fn progress(data: &Object<'_>, tool_use_id: &str, parent_tool_use_id: &str) -> NewEntry {
    NewEntry::new(EntryKind::Progress)
        .with("data", data.raw())
        .with("toolUseID", tool_use_id)
        .with("parentToolUseID", parent_tool_use_id)
}

/// Creates a metadata line of any other kind; [`NewEntry::with`] adds its fields.
#[must_use]
pub fn metadata(kind: EntryKind) -> NewEntry {
    NewEntry::new(kind)
}

/// Creates a `last-prompt` line: the last prompt of the person, and the leaf of the conversation.
/// `explicit` marks a leaf that was chosen, as after a rewind; with the uuid of zeros it clears the
/// pin (LEAF-6).
#[must_use]
pub fn last_prompt(
    prompt: Option<&str>,
    leaf: Option<impl fmt::Display>,
    explicit: bool,
) -> NewEntry {
    metadata(EntryKind::LastPrompt)
        .with_some("lastPrompt", prompt)
        .with_some("leafUuid", leaf.map(Json::id))
        .with_some("explicit", explicit.then_some(true))
}

/// Creates the title given by the person.
#[must_use]
pub fn custom_title(title: &str) -> NewEntry {
    metadata(EntryKind::CustomTitle).with("customTitle", title)
}

/// Creates the title given by a model.
#[must_use]
pub fn ai_title(title: &str) -> NewEntry {
    metadata(EntryKind::AiTitle).with("aiTitle", title)
}

/// Creates the title of older clients, for the conversation that ends at `leaf`.
#[must_use]
pub fn summary(title: &str, leaf: impl fmt::Display) -> NewEntry {
    metadata(EntryKind::Summary)
        .with("summary", title)
        .with("leafUuid", Json::id(leaf))
}

/// Creates a tag; an empty one clears the tag.
#[must_use]
pub fn tag(tag: &str) -> NewEntry {
    metadata(EntryKind::Tag).with("tag", tag)
}

/// Creates the mode of the session, such as `normal`.
#[must_use]
pub fn mode(mode: &str) -> NewEntry {
    metadata(EntryKind::Mode).with("mode", mode)
}

/// Creates the permission mode of the session.
#[must_use]
pub fn permission_mode(mode: &str) -> NewEntry {
    metadata(EntryKind::PermissionMode).with("permissionMode", mode)
}

/// Creates the name of the session among its agents.
#[must_use]
pub fn agent_name(name: &str) -> NewEntry {
    metadata(EntryKind::AgentName).with("agentName", name)
}

/// A change of the queue of prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueOperation<'a> {
    /// This prompt was queued.
    Enqueue(&'a str),
    /// The first prompt left the queue for the model.
    Dequeue,
    /// A prompt was removed from the queue.
    Remove,
    /// The prompts were moved back to the input box, as this text.
    PopAll(&'a str),
}

/// Creates the line of a prompt that entered or left the queue while the model worked.
#[must_use]
pub fn queue_operation(operation: QueueOperation<'_>, timestamp: &str) -> NewEntry {
    let (name, content) = match operation {
        QueueOperation::Enqueue(prompt) => ("enqueue", Some(prompt)),
        QueueOperation::Dequeue => ("dequeue", None),
        QueueOperation::Remove => ("remove", None),
        QueueOperation::PopAll(prompts) => ("popAll", Some(prompts)),
    };
    metadata(EntryKind::QueueOperation)
        .with("operation", name)
        .with("timestamp", timestamp)
        .with_some("content", content)
}

/// Creates a link to a pull request created in the session.
#[must_use]
pub fn pr_link(number: u64, url: &str, repository: &str, timestamp: &str) -> NewEntry {
    metadata(EntryKind::PrLink)
        .with("prNumber", number)
        .with("prUrl", url)
        .with("prRepository", repository)
        .with("timestamp", timestamp)
}

/// Creates a snapshot of the files before the prompt `message_id`: `backups` by path. The line is
/// written before the prompt. An update names the snapshot that it replaces.
#[must_use]
pub fn file_history_snapshot(
    message_id: impl fmt::Display,
    backups: &Object<'_>,
    timestamp: &str,
    updates: Option<&str>,
) -> NewEntry {
    let message_id = Json::id(message_id);
    let of = updates.map_or_else(|| message_id.clone(), Json::from);
    let snapshot = ObjectBuf::new()
        .with("messageId", of)
        .with("trackedFileBackups", backups.raw())
        .with("timestamp", timestamp);
    metadata(EntryKind::FileHistorySnapshot)
        .with("messageId", message_id)
        .with("snapshot", snapshot)
        .with("isSnapshotUpdate", updates.is_some())
}

/// Creates an engine line, which other readers ignore.
#[must_use]
pub fn engine_line(fields: &ObjectBuf) -> NewEntry {
    let mut entry = metadata(EntryKind::TranscriptEngine).with("v", ENGINE_VERSION);
    for (key, value) in fields.members() {
        entry = entry.with(key.to_owned(), value.clone());
    }
    entry
}

/// Creates a tombstone, which removes an entry from the conversation. It is an engine line, because
/// both SDKs ignore the vendor's `tombstone` entries; the removed entry stays in the file.
#[must_use]
pub fn tombstone(uuid: impl fmt::Display) -> NewEntry {
    engine_line(&ObjectBuf::new().with("tombstone", Json::id(uuid)))
}
