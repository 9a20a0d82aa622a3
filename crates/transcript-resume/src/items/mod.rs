//! A path as a person sees it: one item for each block, and tool calls with all that belongs to
//! them.
//!
//! [`ItemList::new`] reads each body of a path once and keeps no text of it: an [`Item`] contains
//! the place of its block, and an [`ItemReader`] fetches the text when it is shown. Items are in
//! display order:
//!
//! - Everything that belongs to a call is a [`CallGroup`] at the place of the call, in the order of
//!   [`GroupRole`]: the call, the hooks before it, its progress, its results, the hooks after it,
//!   and what the client added for it. The result may be anywhere on the path.
//! - All other items are in the order of the path. A result that answers no call of the path is one
//!   of those ([`ItemMarks::ORPHAN`]), and a call without a result is a group without one
//!   ([`ItemMarks::UNANSWERED`]).
//!
//! Nothing of the path is omitted: what a client hides is included and marked
//! ([`ItemMarks::HIDDEN`]), as is an entry whose body cannot be used ([`ItemKind::Unusable`]).
//! Every block of every entry of the path is exactly one item. Tombstoned entries are not on a path
//! under [`Policy::Recover`](crate::Policy::Recover); under `vendor` they are, with
//! [`ItemMarks::TOMBSTONED`].
//!
//! Progress lines are on no path. The children of an entry of the path are shown: in the group of
//! the call that they name, else after that entry. Those whose parent is missing are shown when
//! they name a call of the path.
//!
//! The ids of items, [`Item::id`], are those that the client gives to the items it shows.
//!
//! Subagents have item lists of their own, from their own files or from the sidechains of an old
//! one ([`sidechains`]); [`Nesting`] records which call started which.
//!
//! ```no_run
//! use transcript_reader::{Bodies, Index, Source};
//! use transcript_resume::items::{ItemList, ItemReader};
//! use transcript_resume::{Policy, Tree};
//!
//! let source = Source::open("session.jsonl".as_ref())?;
//! let index = Index::load(&source)?;
//! let tree = Tree::new(&index, Policy::Recover);
//! let display = ItemList::new(&tree, &tree.path(), &mut Bodies::new(&source))?;
//! let mut item_reader = ItemReader::new(&display, &index, Bodies::new(&source));
//! for (place, item) in display.items().iter().enumerate() {
//!     let loaded = item_reader.item(place)?;
//!     println!("{} {:?}: {}", item.id(), item.kind(), loaded.text().unwrap_or_default());
//! }
//! # Ok::<(), transcript_reader::Error>(())
//! ```

mod build;
mod displays;
mod id;
mod item_reader;
mod nesting;
mod order;
mod parts;

use std::ops::Range;

use bitflags::bitflags;
use transcript_format::kind::EntryKind;
use transcript_reader::{Decision, EntryNo, SpliceForm};

pub use displays::Displays;
pub use id::ItemId;
pub use item_reader::{HeldBodies, HeldTexts, ItemReader, LoadedItem};
pub use nesting::{Nesting, NestingStep, SubagentOrigin, sidechains};
pub use parts::{Cut, NamedCall, starts_turn};
pub use transcript_reader::is_queued;

/// The items of a path in display order.
///
/// Takes about 100 bytes for each block, and the ids and names of its calls, but never their texts.
#[derive(Debug, Default)]
pub struct ItemList {
    items: Vec<Item>,
    groups: Vec<CallGroup>,
    /// In the order of the file.
    compactions: Vec<CompactionItem>,
    /// The decisions about the path, by entry.
    decisions: Vec<Decision>,
    /// Hash of the first text of the path: the prompt of a subagent.
    prompt: Option<u64>,
}

/// The unit of display: a block of a message, an entry of another kind, or a line of progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    id: ItemId,
    entry_no: EntryNo,
    /// The number of the block in its message.
    block: u32,
    /// The range of the block in the body.
    span: Span,
    marks: ItemMarks,
    /// [`NONE`] when it is part of no group.
    group: u32,
    kind: ItemKind,
    entry: EntryKind,
    part: GroupRole,
    speaker: Speaker,
}

/// A part of a body, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Span {
    start: u32,
    len: u32,
}

const NONE: u32 = u32::MAX;

/// The kinds of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItemKind {
    /// A text: the content of a message that is one string, or a `text` block.
    Text,
    /// A `thinking` or `redacted_thinking` block.
    Thinking,
    /// A call: of a tool of the client, or of one that the API runs.
    Call,
    /// The result of one.
    Result,
    /// An `image` or `document` block.
    Media,
    /// A block of any other type.
    Block,
    /// A message without a block.
    Empty,
    /// A compact boundary; [`ItemList::compaction`] has its details.
    Compaction,
    /// A `system` entry of another kind.
    System,
    /// An `attachment` entry.
    Attachment,
    /// A `progress` line.
    Progress,
    /// The body of the entry cannot be used: it is not a JSON object, or belongs to another entry.
    Unusable,
    /// The entry has more parts than are read ([`MAX_PARTS`]); its content is not shown.
    ///
    /// [`MAX_PARTS`]: transcript_format::object::MAX_PARTS
    TooMany,
}

/// The author of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Speaker {
    /// The author of prompts: the person, or what started a subagent.
    Person,
    /// The model.
    Agent,
    /// A tool.
    Tool,
    /// The client: attachments, system entries, and messages that it wrote itself.
    Client,
    /// The summary of the compacted conversation.
    Summary,
}

/// The part that an item plays in its group, in display order. Items of the same part keep the
/// order of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum GroupRole {
    /// The head of the group: the call, or the summary of the hooks that ran at the end of a turn.
    Opening,
    /// A hook that ran before the tool: of the event `PreToolUse` or `PermissionRequest`.
    Before,
    /// A line of progress. Subagents are shown after these.
    Progress,
    /// A result: the first one, and with [`ItemMarks::REPEATED`] more.
    Result,
    /// Any other hook.
    After,
    /// Any other entry that names the call: the body of a skill, a notice.
    Added,
}

impl GroupRole {
    /// All parts in order.
    pub const ORDER: [Self; 6] = [
        Self::Opening,
        Self::Before,
        Self::Progress,
        Self::Result,
        Self::After,
        Self::Added,
    ];
}

bitflags! {
    /// Properties of an item.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct ItemMarks: u32 {
        /// `isMeta`: the client wrote it, not the person.
        const META = 1;
        /// `isVirtual`: shown only, never sent to the model.
        const VIRTUAL = 1 << 1;
        /// `isVisibleInTranscriptOnly`: sent to the model, not shown in the conversation.
        const TRANSCRIPT_ONLY = 1 << 2;
        /// `teamName`: it belongs to a teammate.
        const TEAM = 1 << 3;
        /// A failed request: an answer that reports one, or the system entry of an attempt.
        const API_ERROR = 1 << 4;
        /// A [fixed text](crate::texts::is_synthetic) that a client wrote by itself.
        const SYNTHETIC = 1 << 5;
        /// The summary of a compaction.
        const SUMMARY = 1 << 6;
        /// It belongs to a subagent, in a file of a main conversation.
        const SIDECHAIN = 1 << 7;
        /// An engine line removed the entry. Only under policy `vendor`.
        const TOMBSTONED = 1 << 8;
        /// From before a compaction, which preserved it word for word.
        const KEPT = 1 << 9;
        /// Salvaged from a damaged line.
        const SALVAGED = 1 << 10;
        /// Added from outside the chain: another line of its message, or a result.
        const SIBLING = 1 << 11;
        /// The parent of the entry is missing and was replaced. Only on the first block of the
        /// entry; [`ItemList::decisions`] has the evidence.
        const BRIDGED = 1 << 12;
        /// The parent of the entry is missing: the path starts here, and earlier entries are not
        /// shown. Only on the first block of the entry; [`ItemList::decisions`] has the reason.
        const GAP = 1 << 13;
        /// A result of a failed call.
        const FAILED = 1 << 14;
        /// A call without a result on the path.
        const UNANSWERED = 1 << 15;
        /// A result of a call that is not on the path.
        const ORPHAN = 1 << 16;
        /// A result of a call that has one already.
        const REPEATED = 1 << 17;
        /// The only result of its entry: `toolUseResult` is about it.
        const ONLY_RESULT = 1 << 18;
        /// A turn starts with it in what is shown, as what is before it was omitted
        /// ([`PathEntry::after_hidden`](crate::PathEntry::after_hidden)).
        const AFTER_HIDDEN = 1 << 19;
        /// Its line says that a person wrote it.
        const TYPED = 1 << 20;
        /// Everything that the client does not show in a conversation.
        const HIDDEN = Self::META.bits() | Self::VIRTUAL.bits() | Self::TRANSCRIPT_ONLY.bits()
            | Self::TEAM.bits();
    }
}

impl Item {
    /// Returns its id. No two items of a list have the same one, and it stays the same when the
    /// conversation continues.
    #[must_use]
    pub fn id(&self) -> &ItemId {
        &self.id
    }

    /// Returns the number of its entry in the index.
    #[must_use]
    pub fn entry_no(&self) -> EntryNo {
        self.entry_no
    }

    /// Returns the number of the block in its message; 0 for an item without blocks.
    #[must_use]
    pub fn block(&self) -> usize {
        self.block as usize
    }

    /// Returns its kind.
    #[must_use]
    pub fn kind(&self) -> ItemKind {
        self.kind
    }

    /// Returns its properties.
    #[must_use]
    pub fn marks(&self) -> ItemMarks {
        self.marks
    }

    /// Returns its author.
    #[must_use]
    pub fn speaker(&self) -> Speaker {
        self.speaker
    }

    /// Returns the number of its group and its part in it.
    #[must_use]
    pub fn group(&self) -> Option<(usize, GroupRole)> {
        (self.group != NONE).then_some((self.group as usize, self.part))
    }
}

/// A call and all items that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallGroup {
    kind: GroupKind,
    id: Box<str>,
    tool: Box<str>,
    items: Range<u32>,
    agent: Option<Box<str>>,
    /// Hash of the prompt of a subagent.
    prompt: Option<u64>,
}

/// The kinds of heads of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupKind {
    /// A call of a tool of the client.
    Call,
    /// A call of a tool that the API runs.
    ApiCall,
    /// The `stop_hook_summary` of the hooks at the end of a turn.
    Hooks,
}

impl CallGroup {
    /// Returns what kind of head it has.
    #[must_use]
    pub fn kind(&self) -> GroupKind {
        self.kind
    }

    /// Returns the id of the call, or of the run of the hooks; empty when it has none. Several
    /// calls may have the same id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the name of the tool, which the views of `toolUseResult` need; empty when it has
    /// none.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns the places of its items in [`ItemList::items`]; the first one is the head.
    #[must_use]
    pub fn items(&self) -> Range<usize> {
        self.items.start as usize..self.items.end as usize
    }

    /// Returns the subagent that the result or the progress of the call names.
    #[must_use]
    pub fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }
}

/// The details of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionItem {
    /// The number of the boundary entry.
    pub boundary: EntryNo,
    /// The number of the entry with the summary: the first one on the path, before any other
    /// boundary.
    pub summary: Option<EntryNo>,
    /// Its trigger: `manual` or `auto`.
    pub trigger: Option<Box<str>>,
    /// The tokens of the context before.
    pub pre_tokens: Option<u64>,
    /// The tokens of the context after.
    pub post_tokens: Option<u64>,
    /// Its duration, in milliseconds.
    pub duration_millis: Option<u64>,
    /// The number of entries that were preserved word for word ([`ItemMarks::KEPT`]).
    pub kept: u32,
    /// The field in which the boundary names them; `None` when it names none.
    pub form: Option<SpliceForm>,
    /// The boundary names preserved entries that are missing, so none was preserved.
    pub is_keeping_ignored: bool,
    /// The number of messages of the conversation before the boundary, and before those that it follows,
    /// are summarized: all except the preserved ones. `None` when the path does not start here.
    pub hidden: Option<u32>,
}

impl ItemList {
    /// Returns the items in display order.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns the groups in the order of their first items.
    #[must_use]
    pub fn groups(&self) -> &[CallGroup] {
        &self.groups
    }

    /// Returns the compactions in file order.
    #[must_use]
    pub fn compactions(&self) -> &[CompactionItem] {
        &self.compactions
    }

    /// Returns the details of the compaction whose boundary is the entry of `item`.
    #[must_use]
    pub fn compaction(&self, item: &Item) -> Option<&CompactionItem> {
        let boundary = |compaction: &CompactionItem| compaction.boundary;
        let at = self
            .compactions
            .binary_search_by_key(&item.entry_no(), boundary);
        at.ok().map(|at| &self.compactions[at])
    }

    /// Returns the decisions of the path about the entry of `item`, in the order in which they were
    /// made: gaps, bridges, salvaged entries.
    #[must_use]
    pub fn decisions(&self, item: &Item) -> &[Decision] {
        about(&self.decisions, item.entry_no)
    }
}

/// Returns the decisions about `entry`; `decisions` are in the order of entries.
fn about(decisions: &[Decision], entry: EntryNo) -> &[Decision] {
    let start = decisions.partition_point(|decision| decision.entry() < entry);
    let own = &decisions[start..];
    &own[..own.partition_point(|decision| decision.entry() == entry)]
}
