//! A read-only index over one transcript file.
//!
//! Start with [`Source::open`], then [`Index::load`]: it reads the file once, in small buffers
//! and never through a memory map, and keeps at most 96 bytes for each line. The index has every
//! entry in file order, including duplicates and objects salvaged from damaged lines, and a
//! [finding](transcript_format::finding) for every line that does not scan. It does not follow
//! links: which duplicate counts and what replaces a missing parent depends on a policy.
//! [`GrowingIndex`] is the same index while the file grows.
//!
//! Bodies stay in the file. [`Bodies`] loads the JSON of single entries by their offset.
//!
//! ```no_run
//! use transcript_reader::{Index, Source};
//!
//! let source = Source::open("session.jsonl".as_ref())?;
//! let index = Index::load(&source)?;
//! for entry_ref in index.entries() {
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
mod index;
mod interner;
mod listing;
mod ordered;
mod other_files;
mod partial_index;
mod prompt;
mod said;
mod session_state;
mod source;
mod store_walk;
mod subagents;
mod summary_scan;
mod unknown_keys;

pub use bodies::{Bodies, BodyText};
pub use body_source::BodySource;
pub use build::LoadOptions;
pub use discover::{SessionFile, SessionFiles};
pub use error::{Error, ErrorKind};
pub use file_end::{EndOptions, FileEnd};
pub use growing::GrowingIndex;
pub use index::{
    Boundary, EntryMarks, EntryNo, EntryRef, Id, Index, MessageKey, Preserved, RequestKey, ToolEnd,
    ToolKey, is_stream_form,
};
pub use listing::{Listing, SessionRow, project_folders, title_beside};
pub use ordered::in_order;
pub use other_files::OtherFiles;
pub use prompt::{Prompt, shorten};
pub use said::{Said, Words, question};
pub use session_state::SessionState;
pub use source::Source;
pub use store_walk::{Walked, walk_store};
pub use subagents::{
    Subagent, all_subagents_on, own_subagents_on, session_of_subagent, subagents_on,
};
pub use unknown_keys::UnknownKey;
