//! Tests of the follow library.
//!
//! `TRANSCRIPT_SOAK=n` makes the long ones longer, `TRANSCRIPT_SEED=n` repeats a run.
//! `docs/tail.md` lists what each of them proves.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::print_stdout, reason = "the counts are the result")]

#[cfg(unix)]
mod bytes;
#[cfg(unix)]
mod child;
#[cfg(unix)]
mod damage;
#[cfg(unix)]
mod events;
mod follower;
#[cfg(unix)]
mod hot;
#[cfg(unix)]
mod kill;
#[cfg(unix)]
mod late;
mod live;
#[cfg(unix)]
mod memory;
#[cfg(unix)]
mod model;
#[cfg(unix)]
mod naive;
mod once;
mod quick;
#[cfg(unix)]
mod readonly;
#[cfg(unix)]
mod replace;
#[cfg(unix)]
mod sequences;
#[cfg(target_os = "linux")]
mod shared;
#[cfg(feature = "async")]
mod streams;
#[cfg(unix)]
mod support;
mod watcher;
mod words;
#[cfg(unix)]
mod world;
