//! Real processes that are killed, stopped and starved while they append.
//!
//! The process that is to suffer is this binary itself, run again with [`driver::child`] as its only
//! test. What it acknowledged is known from its standard output, so from outside of it. Most tests
//! run a second time with a writer as people write them (the line, then the newline, no lock), which
//! must break the same promise: a test that cannot fail shows nothing.
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
