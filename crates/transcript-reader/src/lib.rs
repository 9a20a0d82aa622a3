//! Reads sessions: an index over a transcript file, the tree of its entries, and the path of its
//! conversation.
//!
//! Start with [`Source::open`], then [`Index::load`]: it reads the file once, in small buffers
//! and never through a memory map, and keeps at most 96 bytes for each line. The index has every
//! entry in file order, including duplicates and objects salvaged from damaged lines, and a
//! [finding](transcript_format::finding) for every line that does not scan. It does not follow
//! links. [`GrowingIndex`] is the same index while the file grows.
//!
//! [`Tree::new`] links the entries of an index under a [`Policy`], which says which duplicate counts
//! and what replaces a missing parent; [`Tree::path`] walks from the leaf to the start of the
//! conversation, and reports the reason for each step. Neither reads a file or a clock: the same
//! index always gives the same path. [`LiveConversation`] has the same path while the file grows.
//!
//! The rules of [`Policy::Vendor`] are those of clients 2.1.329 and 2.1.331 as observed from outside.
//! They are listed in `docs/client-behaviour.md`; comments cite their ids, as in (LEAF-1). The tests
//! compare the results with an independent, slow model of these rules.
//!
//! Bodies stay in the file. [`Bodies`] loads the JSON of single entries by their offset.
//!
//! ```no_run
//! use transcript_reader::{Index, Policy, Source, Tree};
//!
//! let source = Source::open("session.jsonl".as_ref())?;
//! let index = Index::load(&source)?;
//! let tree = Tree::new(&index, Policy::Recover);
//! for entry in tree.path().entries {
//!     let entry_ref = index.entry(entry.entry_no());
//!     println!("{} {:?}", entry_ref.line(), entry_ref.kind());
//! }
//! for finding in index.findings() {
//!     eprintln!("byte {}: {}", finding.offset, finding.code.as_str());
//! }
//! # Ok::<(), transcript_reader::Error>(())
//! ```
//!
//! # Limitations
//!
//! The file is read up to its length when it was opened. Message and tool ids are kept as keyed
//! 64-bit hashes: two different ids have the same hash with a probability of 2^-64.

mod bodies;
mod body_source;
mod build;
mod damaged_lines;
mod discover;
mod error;
mod file_end;
mod fork_names;
mod formats;
mod growing;
mod growing_file;
mod index;
mod interner;
mod listing;
mod live;
mod message_text;
mod other_files;
mod partial_index;
mod path;
mod prompt;
mod session_state;
mod source;
mod store_walk;
mod subagents;
mod summary_scan;
pub mod tail_first;
mod tree;
mod unknown_keys;

pub use bodies::{Bodies, BodyText};
pub use body_source::BodySource;
pub use build::LoadOptions;
pub use discover::{SessionFile, SessionFiles};
pub use error::{Error, ErrorKind};
pub use file_end::{EndOptions, FileEnd};
pub use growing::GrowingIndex;
pub use growing_file::{FileChange, GrowingFile};
pub use index::{
    Boundary, EntryMarks, EntryNo, EntryRef, Id, Index, MessageKey, Preserved, RequestKey, ToolEnd,
    ToolKey, is_stream_form,
};
pub use listing::{Listing, SessionRow, project_folders, title_beside};
pub use live::{LiveConversation, LiveState};
pub use message_text::{DividedText, MessageText, question};
pub use other_files::OtherFiles;
pub use path::{
    BranchOff, Chapter, ConversationPath, OmittedCalls, PathEntry, Refusal, Story, Via,
};
pub use prompt::{Prompt, shorten};
pub use session_state::SessionState;
pub use source::Source;
pub use store_walk::{WalkedFile, walk_store};
pub use subagents::{
    Subagent, all_subagents_on, own_subagents_on, session_of_subagent, subagents_on,
};
pub use transcript_storage::SessionLayout;
pub use transcript_storage::parallel::in_order;
pub use tree::answers::is_turn;
pub use tree::branches::{Branch, BranchStart, Branches, Sidechain, is_prompt};
pub use tree::decision::{Confidence, Decision, Evidence, GapReason, LeafReason, SpliceForm};
pub use tree::timeline::is_queued;
pub use tree::{KeptEntries, NodeId, Parent, Policy, Tree};
pub use unknown_keys::UnknownKey;

/// The README, as a doctest, so that its examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
