//! What stands beside the messages: context, progress, state of the session, our own lines.

use std::fmt;

use super::{ENGINE_VERSION, NewEntry};
use crate::json::{Json, ObjectBuf};
use crate::kind::EntryKind;
use crate::object::Object;

/// Context that the client adds to the conversation: an object with a `type`
/// ([`AttachmentKind`](crate::kind::AttachmentKind)). `rendered` is what the model is sent for it,
/// one text each; a resume sends it again and does not render again (rig.md 2).
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

/// A state of a running tool or hook: an object with a `type`
/// ([`ProgressKind`](crate::kind::ProgressKind)). Clients up to 2.1.81 wrote them.
#[must_use]
pub fn progress(data: &Object<'_>, tool_use_id: &str, parent_tool_use_id: &str) -> NewEntry {
    NewEntry::new(EntryKind::Progress)
        .with("data", data.raw())
        .with("toolUseID", tool_use_id)
        .with("parentToolUseID", parent_tool_use_id)
}

/// State of the session of any other kind; its fields are added by [`NewEntry::with`].
#[must_use]
pub fn metadata(kind: EntryKind) -> NewEntry {
    NewEntry::new(kind)
}

/// What the person wrote last, and the leaf of the conversation. `explicit` says that the leaf was
/// chosen, as after a rewind; the uuid of zeros then lifts the choice (rig.md 4).
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

/// The title that the person gave.
#[must_use]
pub fn custom_title(title: &str) -> NewEntry {
    metadata(EntryKind::CustomTitle).with("customTitle", title)
}

/// The title that a model gave.
#[must_use]
pub fn ai_title(title: &str) -> NewEntry {
    metadata(EntryKind::AiTitle).with("aiTitle", title)
}

/// The title of older clients, of the conversation that ends at `leaf`.
#[must_use]
pub fn summary(title: &str, leaf: impl fmt::Display) -> NewEntry {
    metadata(EntryKind::Summary)
        .with("summary", title)
        .with("leafUuid", Json::id(leaf))
}

/// A tag; the empty one clears it.
#[must_use]
pub fn tag(tag: &str) -> NewEntry {
    metadata(EntryKind::Tag).with("tag", tag)
}

/// The mode of the session, such as `normal`.
#[must_use]
pub fn mode(mode: &str) -> NewEntry {
    metadata(EntryKind::Mode).with("mode", mode)
}

/// The permission mode of the session.
#[must_use]
pub fn permission_mode(mode: &str) -> NewEntry {
    metadata(EntryKind::PermissionMode).with("permissionMode", mode)
}

/// The name of the session among its agents.
#[must_use]
pub fn agent_name(name: &str) -> NewEntry {
    metadata(EntryKind::AgentName).with("agentName", name)
}

/// What happened to the queue of prompts (corpus.md 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueOperation<'a> {
    /// This prompt was queued.
    Enqueue(&'a str),
    /// The first prompt left the queue for the model.
    Dequeue,
    /// A prompt was taken out of the queue.
    Remove,
    /// The prompts went back to the input box, as this text.
    PopAll(&'a str),
}

/// A prompt was queued while the model worked, or left the queue.
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

/// A pull request that came out of the session.
#[must_use]
pub fn pr_link(number: u64, url: &str, repository: &str, timestamp: &str) -> NewEntry {
    metadata(EntryKind::PrLink)
        .with("prNumber", number)
        .with("prUrl", url)
        .with("prRepository", repository)
        .with("timestamp", timestamp)
}

/// The files as they were before the prompt `message_id`: `backups` by path. It stands before the
/// prompt. An update names the snapshot that it replaces.
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

/// A line of this engine, which other readers ignore (design.md 3.9).
#[must_use]
pub fn engine_line(fields: &ObjectBuf) -> NewEntry {
    let mut entry = metadata(EntryKind::TranscriptEngine).with("v", ENGINE_VERSION);
    for (key, value) in fields.members() {
        entry = entry.with(key.to_owned(), value.clone());
    }
    entry
}

/// Says that an entry no longer counts. It is a line of this engine: the `tombstone` of the vendor
/// is heeded by no reader (sdk.md 2), and nothing is ever cut out of a file.
#[must_use]
pub fn tombstone(uuid: impl fmt::Display) -> NewEntry {
    engine_line(&ObjectBuf::new().with("tombstone", Json::id(uuid)))
}
