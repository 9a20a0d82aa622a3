//! Exit codes, as `docs/cli.md` promises them.

/// Done.
pub(crate) const DONE: u8 = 0;
/// Wrong usage, not found, unreadable, or an I/O failure.
pub(crate) const FAILED: u8 = 2;
