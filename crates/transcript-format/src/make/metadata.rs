//! Constructors of entries other than messages: context, session state, engine lines.

use std::fmt;

use super::{ENGINE_VERSION, NewEntry};
use crate::json::{Json, ObjectBuf};
use crate::kind::EntryKind;
use crate::object::Object;

/// Creates an attachment: context that the client adds to the conversation, as an object with a
/// `type` ([`AttachmentKind`](crate::kind::AttachmentKind)). `rendered` are the texts sent to the
/// model; a resume sends them again instead of rendering the attachment again (NOTE-1).
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

/// Creates a progress entry: the status of a call that is running, as an object with a `type`
/// ([`ProgressKind`](crate::kind::ProgressKind), or one of the caller's own). `tool_use_id` is the run
/// that reports; `parent_tool_use_id` the call that started it, often the same id.
///
/// ```
/// use transcript_format::make;
/// use transcript_format::object::Object;
///
/// let data = Object::parse(r#"{"type":"bash_progress","output":"3 of 9"}"#)?;
/// let entry = make::progress("bash-progress-0", "toolu_01", &data)?;
/// # assert!(entry.text().contains(r#""parentToolUseID":"toolu_01""#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When `data` has no `type`, or an empty one: readers could not know its kind.
pub fn progress(
    tool_use_id: &str,
    parent_tool_use_id: &str,
    data: &Object<'_>,
) -> Result<NewEntry, InvalidProgress> {
    if data.str("type").is_none_or(|kind| kind.is_empty()) {
        return Err(InvalidProgress);
    }
    let entry = NewEntry::new(EntryKind::Progress)
        .with("data", data.raw())
        .with("toolUseID", tool_use_id)
        .with("parentToolUseID", parent_tool_use_id);
    Ok(entry)
}

/// The reason why an object is not the data of a progress entry: its `type` is missing, or not a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the data of a progress entry needs a `type` that is a text")]
pub struct InvalidProgress;

/// Creates a metadata line of any other kind; [`NewEntry::with`] adds its fields.
pub fn metadata(kind: EntryKind) -> NewEntry {
    NewEntry::new(kind)
}

/// Creates a `last-prompt` line: the last prompt of the person, and the leaf of the conversation.
/// `explicit` marks a leaf that was chosen, as after a rewind; with the uuid of zeros it clears the
/// pin (LEAF-6).
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
pub fn custom_title(title: &str) -> NewEntry {
    metadata(EntryKind::CustomTitle).with("customTitle", title)
}

/// Creates the title given by a model.
pub fn ai_title(title: &str) -> NewEntry {
    metadata(EntryKind::AiTitle).with("aiTitle", title)
}

/// Creates a tag; an empty one clears the tag.
pub fn tag(tag: &str) -> NewEntry {
    metadata(EntryKind::Tag).with("tag", tag)
}

/// Creates the mode of the session, such as `normal`.
pub fn mode(mode: &str) -> NewEntry {
    metadata(EntryKind::Mode).with("mode", mode)
}

/// Creates the permission mode of the session.
pub fn permission_mode(mode: &str) -> NewEntry {
    metadata(EntryKind::PermissionMode).with("permissionMode", mode)
}

/// Creates the name of the session among its agents.
pub fn agent_name(name: &str) -> NewEntry {
    metadata(EntryKind::AgentName).with("agentName", name)
}

/// Creates an engine line, which other readers ignore.
pub fn engine_line(fields: &ObjectBuf) -> NewEntry {
    let mut entry = metadata(EntryKind::TranscriptEngine).with("v", ENGINE_VERSION);
    for (key, value) in fields.members() {
        entry = entry.with(key.to_owned(), value.clone());
    }
    entry
}

/// Creates a tombstone, which removes an entry from the conversation. It is an engine line, because
/// both SDKs ignore the vendor's `tombstone` entries; the removed entry stays in the file.
pub fn tombstone(uuid: impl fmt::Display) -> NewEntry {
    engine_line(&ObjectBuf::new().with("tombstone", Json::id(uuid)))
}

/// Creates a tombstone for several entries: one line, of which a crash leaves all or nothing.
pub fn tombstones<I: fmt::Display>(uuids: impl IntoIterator<Item = I>) -> NewEntry {
    let uuids: Vec<Json> = uuids.into_iter().map(Json::id).collect();
    match uuids.as_slice() {
        [uuid] => engine_line(&ObjectBuf::new().with("tombstone", uuid.clone())),
        _ => engine_line(&ObjectBuf::new().with("tombstones", Json::array(uuids))),
    }
}
