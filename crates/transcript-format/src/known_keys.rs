//! The keys of message lines that this version of the format knows.
//!
//! The client adds keys to its lines without notice, and some of them change what it sends. The
//! content of such a line is read as before, so the change would go unnoticed: a key that is in no table is therefore
//! reported ([`Code::UnknownKey`]). Checked are `user`, `assistant`, `system` and `attachment` lines: the entry
//! itself, its `message`, and its `attachment`, whose `type` counts as well. Lines without a `parentUuid` are not
//! checked: they are messages of the stream protocol. Known are the keys of [`entry::views`](crate::entry::views) and
//! those that are listed here. Not checked are the blocks of content, which are sent as they are, and results of
//! tools (`toolUseResult`), which the model never sees.
//!
//! [`Code::UnknownKey`]: crate::finding::Code::UnknownKey

use std::sync::LazyLock;

use crate::attachment::{Attachment, AttachmentBody};
use crate::content::Message;
use crate::entry::{Assistant, Entry, User};
use crate::kind::{AttachmentKind, EntryKind, SystemKind};
use crate::named;
use crate::object::is_snake_case_of;
use crate::schema::Field;
use crate::system::{System, SystemBody};

named! {
    /// The object that a key is in.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum KeyPlace {
        /// A member of the entry.
        Entry = "entry",
        /// A member of its `message`.
        Message = "message",
        /// A member of its `attachment`.
        Attachment = "attachment",
        /// Not a key, but the `type` of its `attachment`.
        AttachmentType = "attachment-type",
    }
}

/// Keys that clients are known to write, and that have no accessor.
const KEYS_WITHOUT_ACCESSOR: &[(KeyPlace, &[&str])] = &[
    // In sessions of 1.0.17 to 2.1.331.
    (
        KeyPlace::Entry,
        &[
            "apiErrorIsTransient",
            "cause",
            "hookLabel",
            "interruptedByShutdown",
            "isAbortedMidStream",
            "pendingBackgroundAgentCount",
            "planContent",
            "queuePriority",
            "resendCannotCure",
            "sessionKind",
            "summarizeMetadata",
            "toolEndsTurn",
            "totalDurationMs",
            "upgradeNudge",
            "userFeedback",
        ],
    ),
    (
        KeyPlace::Attachment,
        &[
            "command",
            "displayPath",
            "durationMs",
            "exitCode",
            "imagePasteIds",
            "processId",
            "stderr",
            "stdout",
            "toolName",
            "toolUseID",
        ],
    ),
    // Of the stream protocol, in lines of programs that keep its messages.
    (
        KeyPlace::Entry,
        &[
            "aborted",
            "agentColor",
            "clientComposed",
            "contextUsage",
            "fileAttachments",
            "inlinePastes",
            "isReplay",
            "pastedContent",
            "priority",
            "resumeReason",
            "resumedFromIncompleteThinking",
            "shouldQuery",
            "subagentType",
            "supersedes",
            "taskDescription",
            "usageReport",
            "userMessageUuid",
            "userMessageUuids",
        ],
    ),
    // Other programs write lines of this form, with their own copy of the model and the tokens, and
    // with the content of the message as parts.
    (KeyPlace::Entry, &["model", "usageMetadata"]),
    (KeyPlace::Message, &["parts"]),
    // In copies from which the system prompt was removed.
    (KeyPlace::Attachment, &["redacted"]),
];

/// Returns whether the keys of entries of this kind are checked.
#[must_use]
pub const fn is_checked(kind: EntryKind) -> bool {
    kind.is_in_tree()
}

/// Returns whether a table has the key `name`, on disk or in the stream form, of an entry of this
/// kind. Of an attachment whose type has no table every key counts as known.
#[must_use]
pub fn is_known(kind: EntryKind, attachment: AttachmentKind, place: KeyPlace, name: &[u8]) -> bool {
    static USER: LazyLock<Table> = LazyLock::new(|| Table::new(&[Entry::FIELDS, User::FIELDS]));
    static ASSISTANT: LazyLock<Table> =
        LazyLock::new(|| Table::new(&[Entry::FIELDS, Assistant::FIELDS]));
    static SYSTEM: LazyLock<Table> = LazyLock::new(|| {
        let by_kind = SystemKind::ALL.iter().copied();
        let by_kind = by_kind.filter_map(SystemBody::fields_of);
        let lists: Vec<_> = [Entry::FIELDS, System::FIELDS]
            .into_iter()
            .chain(by_kind)
            .collect();
        Table::new(&lists)
    });
    static ATTACHMENT: LazyLock<Table> =
        LazyLock::new(|| Table::new(&[Entry::FIELDS, Attachment::FIELDS]));
    static MESSAGE: LazyLock<Table> = LazyLock::new(|| Table::new(&[Message::FIELDS]));
    let is_in_table = match (place, kind) {
        (KeyPlace::Message, _) => MESSAGE.has(name),
        (KeyPlace::Attachment, _) => AttachmentBody::fields_of(attachment)
            .is_none_or(|fields| keys(&[fields]).any(|key| is_form_of(key, name))),
        (KeyPlace::AttachmentType, _) => attachment != AttachmentKind::Other,
        (_, EntryKind::User) => USER.has(name),
        (_, EntryKind::Assistant) => ASSISTANT.has(name),
        (_, EntryKind::System) => SYSTEM.has(name),
        (_, EntryKind::Attachment) => ATTACHMENT.has(name),
        _ => true,
    };
    let mut others = KEYS_WITHOUT_ACCESSOR
        .iter()
        .filter(|(there, _)| *there == place);
    is_in_table || others.any(|(_, keys)| keys.iter().any(|key| is_form_of(key, name)))
}

/// Returns whether `name` is `key`, or its form in a stream.
fn is_form_of(key: &str, name: &[u8]) -> bool {
    key.as_bytes() == name
        || std::str::from_utf8(name).is_ok_and(|name| is_snake_case_of(key, name))
}

fn keys(lists: &[&'static [Field]]) -> impl Iterator<Item = &'static str> {
    let fields = lists.iter().copied().flatten();
    fields.flat_map(|field| field.keys).copied()
}

/// The keys of some lists of fields, sorted by length and bytes. Almost every key of a line is in
/// its table as it is, so the stream form is only looked for when it is not.
struct Table(Vec<&'static str>);

impl Table {
    fn new(lists: &[&'static [Field]]) -> Self {
        let mut keys: Vec<&'static str> = keys(lists).collect();
        keys.sort_unstable_by_key(|key| (key.len(), *key));
        Self(keys)
    }

    fn has(&self, name: &[u8]) -> bool {
        let order = |key: &&str| (key.len(), key.as_bytes()).cmp(&(name.len(), name));
        self.0.binary_search_by(order).is_ok() || self.0.iter().any(|key| is_form_of(key, name))
    }
}
