//! Real processes that are killed, stopped and starved while they append.
//!
//! The child process is this binary itself, run again with [`driver::child`] as its only test. It
//! reports acknowledgements on standard output, so they are known outside of it. Most tests run a
//! second time with a naive writer (the line, then the newline, no lock), which must break the same
//! promise: a test that cannot fail shows nothing.
//!
//! `TRANSCRIPT_SOAK=n` makes the tests n times longer, `TRANSCRIPT_SEED=n` repeats a run.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::print_stdout, reason = "the counts are the result")]

mod driver;
mod full;
mod kill;
mod lease;
mod ledger;
mod limit;
mod many;
mod place;
mod stop;
mod support;
mod sync;
mod syscall;
mod torn;
