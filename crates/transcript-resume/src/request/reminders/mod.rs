//! The texts of attachments: what the client reports to the model about its environment (NOTE-1).

mod changes;
mod escape;
mod fields;
mod files;
mod modes;
mod queued;
mod rendered;
mod stored;
mod work;

use transcript_format::attachment_texts::{ATTRIBUTION, REMINDER_END, REMINDER_START};
use transcript_format::kind::AttachmentKind as Kind;
use transcript_format::object::{Object, Raw};
use transcript_format::time;
use transcript_messages::text::wrapped;
use transcript_messages::{Block, BlockKind, Log, Role, SyntheticKind, within_limits};

pub(super) use self::escape::brackets;
use self::fields::Fields;
pub(super) use self::queued::notification;
use self::rendered::{Piece, Rendered};

/// Returns whether a block is the one reminder that is never folded into a tool result (NOTE-5).
pub(super) fn is_attribution(block: &Block) -> bool {
    block.kind() == BlockKind::Text
        && block.json().contains("Attribution for git commits")
        && block
            .text_field()
            .is_some_and(|text| text.starts_with(ATTRIBUTION))
}

/// Returns what an attachment is sent as: a list of messages, each a list of texts and images. Empty
/// when nothing is sent.
///
/// `now` is the time of the request in milliseconds, from which the client counts the age of
/// memories; by default that at which the attachment was written.
pub(super) fn parts(
    object: &Object<'_>,
    origin: Option<usize>,
    now: Option<i64>,
    log: &mut Log,
) -> Vec<Vec<Block>> {
    // The text that was sent the first time counts, whatever the attachment contains (NOTE-1).
    if let Some(contents) = stored::contents(object) {
        return stored::parts(contents, origin);
    }
    let attachment = attachment(object);
    let Rendered { parts, is_own } =
        rendered::rendered(&attachment, now.or_else(|| written_at(object)));
    let parts: Vec<Vec<Block>> = parts
        .into_iter()
        .map(|pieces| blocks(&pieces, origin, log))
        .collect();
    if is_own {
        for block in parts.iter().flatten() {
            log.add_synthetic(SyntheticKind::Reminder, Role::User, block, origin);
        }
    }
    parts
}

/// Returns the blocks of one message.
fn blocks(pieces: &[Piece], origin: Option<usize>, log: &mut Log) -> Vec<Block> {
    let is_alone = pieces.len() == 1;
    let mut block = |piece: &Piece| {
        let block = match piece {
            Piece::Text(text) if is_alone => Block::plain_text(&wrapped(text)),
            Piece::Text(text) => Block::text(&wrapped(text)),
            Piece::Image(json) => Block::read(Raw::parse(json).ok()?),
        };
        Some(within_limits(block.with_origin(origin), log))
    };
    pieces.iter().filter_map(&mut block).collect()
}

/// Returns whether a reminder is about tools that newer models do not have.
pub(super) fn is_for_older_models(object: &Object<'_>) -> bool {
    kind(object) == Kind::TaskReminder && stored::contents(object).is_none()
}

/// Returns whether the client fails on an attachment, which ends the resume (NOTE-9).
pub(super) fn is_unusable(object: &Object<'_>) -> bool {
    let attachment = attachment(object);
    let lacks = |key: &str| attachment.get(key).is_none_or(Raw::is_null);
    let is_unusable = match attachment.kind() {
        Kind::NestedMemory | Kind::SelectedLinesInIde => lacks("content"),
        Kind::RelevantMemories => attachment.get("memories").and_then(Raw::array).is_none(),
        Kind::HookBlockingError => lacks("blockingError"),
        _ => false,
    };
    is_unusable && stored::contents(object).is_none()
}

/// Returns the time in milliseconds at which an attachment was written.
fn written_at(object: &Object<'_>) -> Option<i64> {
    let timestamp = object.get("timestamp")?.str()?;
    time::millis(timestamp.as_bytes())
}

/// Returns whether a reminder goes into a `role: system` message in the role form. Without a stored
/// role all do, except stored files that the user mentioned, and reminders with an image (NOTE-6).
pub(super) fn is_for_system_role(object: &Object<'_>) -> bool {
    let is_mentioned_file = || matches!(kind(object), Kind::File | Kind::Directory);
    if stored::contents(object).is_none() {
        return !rendered::holds_image(&attachment(object));
    }
    match object.get("renderedRole").and_then(Raw::str) {
        Some(role) => role != "user",
        None => !is_mentioned_file(),
    }
}

/// Returns whether a stored reminder contains a file, a folder or a memory file (NOTE-7).
pub(super) fn is_file(object: &Object<'_>) -> bool {
    matches!(
        kind(object),
        Kind::File | Kind::Directory | Kind::NestedMemory
    ) && stored::contents(object).is_some()
}

fn attachment<'o>(object: &Object<'o>) -> Fields<'o> {
    Fields::of(object.get("attachment"))
}

fn kind(object: &Object<'_>) -> Kind {
    attachment(object).kind()
}

pub(super) fn unwrapped(text: &str) -> &str {
    let inner = text.trim_end_matches('\n').strip_prefix(REMINDER_START);
    inner
        .and_then(|text| text.strip_suffix(REMINDER_END))
        .unwrap_or(text)
}
