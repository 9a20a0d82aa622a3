//! Reads the sessions of other agents: Codex, Pi, Qwen Code, Gemini CLI, Copilot CLI, OpenCode and
//! Claude Desktop.
//!
//! A [`Dialect`] finds the sessions in the home folder of an agent and reads one as a [`Conversation`]: the nodes that go to the
//! model with the next prompt in the order of the agent, everything else in branches that say why it does not, and a map of all
//! bytes. Start from [`dialect`].
//!
//! ```
//! use std::path::Path;
//! use transcript_import::{Agent, BranchKind, Policy, Store, dialect};
//! use transcript_storage::MemoryDisk;
//!
//! let disk = MemoryDisk::new();
//! let message = |id, parent, text| {
//!     format!(r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{{"role":"user","content":"{text}"}}}}"#)
//! };
//! let lines = [
//!     r#"{"type":"session","id":"s1"}"#.to_owned(),
//!     message("a", "null", "the first prompt"),
//!     message("b", "\"a\"", "the prompt of a branch"),
//!     message("c", "\"a\"", "the prompt after going back"),
//! ];
//! disk.put("/home/.pi/agent/sessions/--w--/now_s1.jsonl", lines.join("\n"));
//!
//! let store = Store { disk: &disk, path: Path::new("/home/.pi/agent") };
//! let conversation = dialect(Agent::Pi).read(store, "s1", Policy::Recover)?;
//! assert_eq!(conversation.live.len(), 2);
//! let last = conversation.content(conversation.live[1])?;
//! assert_eq!(last.text.as_deref(), Some("the prompt after going back"));
//! assert_eq!(conversation.branches[0].kind, BranchKind::Rewound);
//! # Ok::<(), transcript_import::Error>(())
//! ```
//!
//! Read the modules in this order:
//!
//! 1. `agent`, `dialect` and `dialects` have the agents, what each format answers, and the list of formats; `source` finds and opens files.
//! 2. `conversation` has the values that a reading makes, `node_ids` ids of its nodes, `place` and `text` where their texts lie, `content` and `contents` how
//!    these are read again, `items` their JSON.
//! 3. `lines` reads the records of JSON Lines, also from damaged lines, and maps each byte; `escapes` and `strings` have strings of
//!    JSON, `ids` ids.
//!    `earlier` adds what earlier versions of a session had.
//!    `document` reads a file that is one JSON document, `sqlite` a database, and `gaps` completes the map of its rows.
//! 4. `tree` follows parents, `parts` and `value` read contents, `calls` completes calls: what several dialects share.
//! 5. `codex`, `pi`, `qwen`, `gemini`, `copilot`, `opencode` and `desktop` have the rules of one agent each. `docs/import.md` of the
//!    repository describes them.
//! 6. [`handover`] writes a conversation for another client. `docs/handover.md` of the repository describes what each can hold.
//!
//! # Limitations
//!
//! - Texts stay in their files: memory grows with the number of records, by some hundred bytes each, and not with their length. A
//!   conversation keeps its files open; those after the first 256, compressed ones, and lines that are not UTF-8 or had to be
//!   repaired have their texts in memory. One line is in memory while it is read.
//! - [`Conversation::content`] fails when a file was overwritten in place. It never returns other bytes: each text has a checksum of
//!   32 bits. A file that grows, or whose name another file takes, changes nothing.
//! - Where images lie among the texts of a message is not kept.
//! - When a session of one file grows and is read again, nodes that lie in its whole lines keep their [`NodeId`]. Made nodes come
//!   after them and do not, and neither do the nodes after an event of Codex whose item was not yet written, and after a torn line.
//! - Whether another session still holds what this one removed is known for Codex only, whose files refer to each other.
//! - Without the feature `zstd`, files that Codex compressed are as if they were not there.
//! - Without the feature `sqlite`, databases cannot be read: those of OpenCode are an error, that of Copilot CLI is as if it were not
//!   there. With it, a database is copied once for all sessions that are read, as long as it does not change, and long texts of
//!   sessions of a whole one are copied into a file without a name.

mod agent;
mod calls;
mod clock;
mod codex;
mod content;
mod contents;
mod conversation;
mod copilot;
mod desktop;
mod dialect;
mod dialects;
mod disk;
mod document;
mod earlier;
mod entries;
mod error;
mod escapes;
mod gaps;
mod gemini;
pub mod handover;
mod ids;
mod items;
mod lines;
mod node;
mod node_ids;
mod nodes;
mod opencode;
mod parts;
mod pi;
mod place;
mod qwen;
mod record_id;
mod shared;
mod source;
#[cfg(feature = "sqlite")]
mod sqlite;
mod state;
mod strings;
mod text;
mod time;
mod tree;
mod value;
mod version;

pub use agent::{Agent, UnknownAgent};
pub use codex::Codex;
pub use content::{Content, Image, ImageData, Input, StoredContent};
pub use conversation::{
    Branch, BranchKind, Conversation, Damage, DamageKind, Holds, Metadata, Part, Source,
};
pub use copilot::Copilot;
pub use desktop::ClaudeDesktop;
pub use dialect::{Dialect, Policy, Session};
pub use dialects::{agent_of_file, dialect};
pub use disk::{EarlierHome, EarlierHomes, ImportDisk, ShownConversation, home_of_file};
pub use entries::{Entries, Subject};
pub use error::Error;
pub use gemini::Gemini;
pub use lines::LINE_CAP;
pub use node::{Node, NodeKind, Usage};
pub use node_ids::{NodeId, NodeIds};
pub use opencode::OpenCode;
pub use pi::Pi;
pub use place::{Place, SourceId};
pub use qwen::Qwen;
pub use record_id::RecordId;
pub use source::Store;
pub use text::{Piece, Stored, StoredForm, Text};
pub use time::Time;
pub use transcript_format::imported::IMPORTED_KEY;

/// The README, as a doctest, so that its examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
