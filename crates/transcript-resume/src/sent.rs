//! Finds the entries of a path that are sent to the model.

use transcript_format::kind::{EntryKind, SystemKind};
use transcript_reader::EntryRef;

/// Returns whether the body has to be read: of system entries only the output of commands is sent
/// (MSG-6).
pub(crate) fn may_be_sent(entry_ref: &EntryRef<'_>) -> bool {
    match entry_ref.kind() {
        EntryKind::User | EntryKind::Assistant | EntryKind::Attachment => true,
        EntryKind::System => entry_ref.system_kind() == Some(SystemKind::LocalCommand),
        _ => false,
    }
}
