//! The JSON of the command `transcript`, as types: what `--json` prints, and what `append` reads and
//! answers. `docs/cli.md` specifies each shape and names its type.
//!
//! A program that embeds this crate builds the records from its own values (`new`, `of`) and prints
//! them with [`text()`]. A program that calls the command parses what it prints:
//!
//! ```
//! use transcript_ops::wire::ReplayRecord;
//!
//! let line = r#"{"kind":"end","findings":0,"decisions":7}"#;
//! if let ReplayRecord::End(end) = serde_json::from_str(line)? {
//!     assert_eq!(end.decisions, 7);
//! }
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! A parsed value owns its data, so it can be parsed from any source and outlives the text. Unknown
//! fields are ignored, and records of an unknown kind become `Unknown`: later versions add both.
//! Names that may get new values, such as `state` or `reason`, are strings ([`Name`]).
//!
//! Ids and times are the strings of the file. `line` counts from 1; `offset` and `len` count bytes,
//! and `len` does not include the newline. Parts that are copied from a file ([`Json`]) are verbatim:
//! key order, digits and escapes are those of the file.

#[cfg(feature = "schema")]
mod api_message;
mod append;
mod archive;
mod client;
mod command_error;
mod count;
mod entry;
mod error;
mod fork;
mod hand_over;
mod items;
mod list;
mod location;
mod moving;
mod records;
mod redaction;
mod repair;
mod replay;
mod resume;
mod search;
mod serve;
mod tail;
mod text;
mod tree;
mod usage;
mod verify;

use std::borrow::Cow;

pub use append::{
    Answer, Append, Command, CommandLine, CompactCommand, PromptChangesRecord, PromptCommand,
    PromptSectionRecord, SkippedMessages, ToolResultRecord, WrittenEntries, WrittenEntry,
    WrittenFork,
};
pub use archive::{
    ArchiveCheckReport, AtRiskRecord, DamageRecord, KeepReport, KeptRecord, LossRecord,
    PruneReport, PrunedRecord, RefusedFileRecord, RestoreReport,
};
pub use client::{ClientAction, ReferenceRecord};
pub use command_error::CommandError;
pub use count::CountCommand;
pub use entry::{EntryPreview, EntryRecord, StoryPreview};
pub use error::{ErrorDetails, ErrorRecord};
pub use fork::ForkRecord;
pub use hand_over::{
    AddedItemRecord, ChangedItemRecord, HandOverRecord, HandOverReport, OmittedItemRecord,
    WrittenFileRecord,
};
pub use items::ItemsRecord;
#[cfg(feature = "schema")]
pub use items::SessionItem;
pub use list::SessionRecord;
pub use location::EntryLocation;
pub use moving::{
    ConflictRecord, MergeReport, MoveReport, MovedSession, NotCopiedRecord, RefusedSession,
};
pub use redaction::RedactionRecord;
pub use repair::{ActionRecord, CompactedRecord, HealthRecord, RepairReport, TypeSizeRecord};
pub use replay::{ReplayBranch, ReplayEnd, ReplayHead, ReplayRecord, ReplaySidechain};
pub use resume::{
    DecisionRecord, EntryUuids, FindingRecord, LintRecord, OmissionRecord, ProblemRecord,
    RequestDiagnostics, RequestRecord, ResumeRefusal, ResumeReport, SyntheticRecord, TokensRecord,
    UsageRecord, write_messages,
};
pub use search::{CopyRecord, FoundSession, HitRecord, SearchEnd, SearchRecord};
pub use serve::ServeRecord;
pub use tail::{
    BadRecord, CallRecord, ChangeRecord, GoneRecord, MovedRecord, OpenRecord, ResetRecord,
    TailRecord,
};
pub use text::{Json, escaped, text};
pub use tree::{
    BoundaryRecord, BranchRecord, LeafRecord, LeavesRecord, NamedEntry, RootRecord,
    SidechainRecord, TreeReport,
};
pub use usage::{
    BlockRecord, ClientCostRecord, ClientModelRecord, CostRecord, CostRow, CostSums, CostTotal,
    PricesRecord, StatusRecord,
};
pub use verify::{
    DifferentMessageRecord, PolicyLintRecord, RebuiltRequestsRecord, RequestDifferenceRecord,
    VerifyFindingRecord, VerifyRecord, VerifySumRecord, VersionRequestsRecord, VisibleRecord,
};

/// The value of `schema` in the first object of JSON output. It changes with an incompatible change
/// of any shape.
pub const SCHEMA: u32 = 1;

/// A stable name from a list that may grow: readers must accept unknown ones.
pub type Name = Cow<'static, str>;
