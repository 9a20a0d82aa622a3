//! Sessions for programs to embed: start a session, or continue one, even when its file is damaged.
//!
//! ```no_run
//! use transcript_session::{Draft, SessionOptions, Session, Store};
//!
//! let store = Store::from_env().ok_or("no home folder")?;
//! let cwd = std::env::current_dir()?;
//! let options = SessionOptions::new().cwd(cwd.to_string_lossy()).version("0.1.0");
//! let session = Session::create(&store.new_session_path(&cwd), &options)?;
//! session.append(Draft::user("Which years have a leap day?"))?;
//! let reply = r#"{"id":"msg_1","role":"assistant","model":"m","content":[{"type":"text","text":"Most."}]}"#;
//! session.append_all(Draft::assistant(reply)?)?;
//! let path = session.path().to_owned();
//! session.close()?;
//!
//! // Later, even after a crash in between.
//! let resumed = Session::resume(&path, &options)?;
//! for message in &resumed.request.messages {
//!     println!("{}", message.json());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! To read a session without opening it for writing, use its [`History`]:
//!
//! ```no_run
//! use std::path::Path;
//! use transcript_session::{History, SessionOptions};
//!
//! let history = History::open(Path::new("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl"))?;
//! let request = history.request(&SessionOptions::new())?;
//! println!("{} messages", request.messages.len());
//! for usage in history.usage()? {
//!     println!("{:?}: {:?} tokens of output", usage.model, usage.output_tokens);
//! }
//! # Ok::<(), transcript_session::Error>(())
//! ```
//!
//! # What a crash may lose
//!
//! | acknowledged by | lost by a kill of the process | lost by a power cut |
//! | --- | --- | --- |
//! | [`Session::append`], [`append_all`](Session::append_all), [`append_reply`](Session::append_reply), [`record`](Session::record), [`record_prompt`](Session::record_prompt), [`compact`](Session::compact), [`rewind`](Session::rewind), [`tombstone`](Session::tombstone), [`end_turn`](Session::end_turn), [`complete_calls`](Session::complete_calls) | never | what the [`SyncPolicy`] has not synced yet: the last 100 ms |
//! | [`Session::queue`] | the entries queued in the last 100 ms | the same |
//! | [`Session::count`] | the counts since the last [`end_turn`](Session::end_turn); [`count_missed`](Session::count_missed) counts its replies again | the same |
//! | [`Session::resume`] | nothing: the next call adds it again | nothing |
//! | [`Session::fork`], [`agent`](Session::agent) (its metadata) | never | never |
//! | [`Session::sync`], [`close`](Session::close) | never | never, if the disk does not lie |
//!
//! An entry that was not acknowledged is in the file completely or not at all.
//!
//! With the feature `async` (on by default) [`AsyncSession`] is the same for tokio.
//!
//! # Following
//!
//! With the feature `follow` (on by default) [`follow`] reads sessions while they are written:
//! [`follow::Follower`] one session, [`follow::Watcher`] (see [`Store::watch`]) all sessions of a
//! store.
//!
#![cfg_attr(feature = "follow", doc = "```")]
#![cfg_attr(not(feature = "follow"), doc = "```ignore")]
//! use std::time::Duration;
//! use transcript_session::follow::{EventKind, FollowOptions, Follower};
//! # use transcript_session::{Draft, Session, SessionOptions};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
//! # let session = Session::create(&path, &SessionOptions::new())?;
//! # session.append(Draft::user("Which years have a leap day?"))?;
//! # session.close()?;
//! # let mut seen = 0;
//!
//! let mut follower = Follower::new(&path, &FollowOptions::new());
//! while let Some(event) = follower.next_within(Duration::from_millis(200))? {
//!     if let EventKind::Entry(entry) = event.kind {
//!         println!("{}", entry.text);
//!         # seen += 1;
//!     }
//! }
//! # assert_eq!(seen, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Requests
//!
//! [`lint`] returns what a strict provider would refuse in the messages of a [`Request`]:
//!
//! ```
//! use transcript_session::{Draft, Session, SessionOptions, lint};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
//! # let session = Session::create(&path, &SessionOptions::new())?;
//!
//! session.append(Draft::user("Which years have a leap day?"))?;
//! let found = lint(&session.request()?.messages);
//! assert!(found.is_ok(), "{:?}", found.problems);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Tracing
//!
//! Reading, linking, building a request and following open spans of [`tracing`] at the levels
//! `debug` and `trace`; nothing is recorded per line. Without a subscriber they cost nothing.
//!
//! [`tracing`]: https://docs.rs/tracing

#[cfg(feature = "async")]
mod asynchronous;
mod conversation;
mod counters;
mod entry_match;
mod entry_name;
mod error;
mod fork_files;
mod history;
mod live_session;
pub mod memory;
mod options;
mod prompts;
mod resume_point;
mod rewrite_salvaged;
mod session;
mod store;
mod user_folders;
mod window;

#[cfg(feature = "async")]
pub use asynchronous::AsyncSession;
pub use conversation::{ConversationEntry, Keep, StoryEntry};
pub use counters::Counters;
pub use entry_match::EntryMatch;
pub use entry_name::entries_named;
pub use error::{Error, ErrorKind};
pub use history::{History, ReadEnd};
pub use options::{ForkOptions, SessionOptions};
pub use prompts::RecordedPrompt;
pub use session::{Resumed, Session, append_all_then};
pub use store::{MIN_PREFIX, Store};
pub use user_folders::{
    agent_homes, below_home, cache_folder, config_file, data_folder, home_projects_folder,
    named_archive_folder,
};
#[cfg(feature = "search")]
pub use window::context_window;
pub use window::parse_fit;

pub use transcript_format::finding::Finding;
pub use transcript_format::make::{self, Compaction, Trigger};
pub use transcript_format::object::{Object, Raw};
pub use transcript_messages::builder::{self, RequestSettings};
pub use transcript_messages::{
    Block, BlockKind, Lint, Message, Provider, Role, UnknownProvider, lint, lint_for, stream,
};
pub use transcript_reader::{EntryNo, Index, Listing, SessionRow, SessionState, Source};
pub use transcript_resume::request::{Fit, Request, RequestTokens};
pub use transcript_resume::{
    ConversationPath, Costs, Denial, FileAccess, KnownFile, ModelCosts, ModelFallback, PathState,
    Policy, Refusal, TailDependency, Tree, Usage, items,
};
pub use transcript_storage as storage;
pub use transcript_storage::ignore_file_size_signal;
#[cfg(feature = "follow")]
pub use transcript_tail as follow;
pub use transcript_writer::{
    AgentId, AgentMeta, Compacted, Draft, EntryId, InvalidEntry, InvalidEntryId, KeptReason,
    OnBusy, RecordOptions, RecordOutcome, Repair, Rescue, SkipReason, Skipped, SyncPolicy, Ticket,
    TurnEnd, Writer, Written,
};

/// The README, as a doctest, so that its examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
