//! Hands a conversation over to another client: writes a session that the client lists, opens and continues with the same texts,
//! calls, results and images, and reports what it omits.
//!
//! Start from [`handover`], or from [`Conversion::plan`] to see the report and the paths before anything is written. The items
//! come from a [`Conversation`](crate::Conversation) of another agent, from the messages of a request of Claude Code
//! ([`RequestItems`]), or from any other implementation of [`Items`].
//!
//! ```
//! use std::path::Path;
//! use transcript_import::NodeKind;
//! use transcript_import::handover::{Home, Options, SourceItem, Target, handover};
//! use transcript_storage::MemoryDisk;
//!
//! let prompt = SourceItem {
//!     text: "How far is the moon?".to_owned(),
//!     ..SourceItem::new(NodeKind::User)
//! };
//! let thought = SourceItem {
//!     text: "About 384,400 km.".to_owned(),
//!     ..SourceItem::new(NodeKind::Reasoning)
//! };
//! let disk = MemoryDisk::new();
//! let home = Home { disk: &disk, path: Path::new("/home/.codex") };
//! let options = Options {
//!     cwd: "/work".to_owned(),
//!     seed: "session-1".to_owned(),
//!     start: 1_795_885_200_000,
//!     ..Options::default()
//! };
//! let written = handover(&vec![prompt, thought], Target::Codex, &options, home)?;
//! assert!(written.files[0].starts_with("/home/.codex/sessions/2026/11/28"));
//! assert_eq!(written.report.counts["reasoning"], 1);
//! # Ok::<(), transcript_import::Error>(())
//! ```
//!
//! [`Target::FILES`] are not clients: a trajectory or a list of updates for other programs, which [`items_of_trajectory`] and
//! [`items_of_updates`] read again.
//!
//! Read the modules in this order: `source_item`, `live_items`, `request_items` and `options` are what goes in, `report` and `files` what comes out;
//! `rules` says what a client can hold; `plan` reads the items once and decides what is written, with `head`, `order` and
//! `call_names`; a room for each target writes them when they are read again, through `output`; `conversion` joins the two;
//! `in_home`, `home`, `edit` and `writing` put the files on a disk.
//!
//! # Limitations
//!
//! - Only what goes to the model is handed over, not the branches.
//! - Pi, Qwen Code and Copilot CLI have one record for a response: its texts are in memory at once.
//! - OpenCode keeps its sessions in a database, and is not a target.
//! - Images that are kept in files or at addresses are counted and not written.

mod acp;
mod atif;
mod call_names;
mod claude_code;
mod codex;
mod conversion;
mod copilot;
mod edit;
mod files;
mod gemini;
mod gemini_parts;
mod head;
mod home;
mod in_home;
mod live_items;
mod new_session;
mod options;
mod order;
mod output;
mod pi;
mod plan;
mod qwen;
mod report;
mod request_items;
mod rules;
mod seed;
mod source_item;
mod target;
mod whole_response;
mod writing;
mod written;

pub use acp::items_of_updates;
pub use atif::items_of_trajectory;
pub use conversion::Conversion;
pub use files::{Extra, FileChange, Files};
pub use home::Home;
pub use live_items::NodeItems;
pub use options::Options;
pub use report::{Added, Addition, Change, Changed, LossReport, Omitted, Reason};
pub use request_items::{RequestItems, item_of_block};
pub use source_item::{Image, Items, SourceItem};
pub use target::{Target, UnknownTarget};
pub use written::{Written, handover};
