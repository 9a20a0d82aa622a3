//! Sessions for programs to embed: start a session, or continue one, even when its file is damaged.
//!
//! ```no_run
//! use transcript_engine::{Draft, SessionOptions, Session, Store};
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
//! use transcript_engine::{History, SessionOptions};
//!
//! let history = History::open(Path::new("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl"))?;
//! let request = history.request(&SessionOptions::new())?;
//! println!("{} messages", request.messages.len());
//! for usage in history.usage()? {
//!     println!("{:?}: {:?} tokens of output", usage.model, usage.output_tokens);
//! }
//! # Ok::<(), transcript_engine::Error>(())
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
//! use transcript_engine::follow::{EventKind, FollowOptions, Follower};
//! # use transcript_engine::{Draft, Session, SessionOptions};
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
//! use transcript_engine::{Draft, Session, SessionOptions, lint};
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

#[cfg(feature = "search")]
pub use transcript_catalog as catalog;
pub use transcript_manage::*;
#[cfg(feature = "ops")]
pub use transcript_ops::{sdk, serve, wire};
pub use transcript_session::*;

/// The README of the repository and that of the crate, as doctests, so that their examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../README.md")]
struct Readme;
