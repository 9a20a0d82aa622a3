//! Exit codes as specified in `docs/cli.md`.

/// Done.
pub(crate) const DONE: u8 = 0;
/// Done, and the answer is no.
pub(crate) const NO: u8 = 1;
/// Wrong usage, not found, unreadable, or an I/O failure.
pub(crate) const FAILED: u8 = 2;
/// `verify`: the client would show less of a conversation than there is.
pub(crate) const LOSSY: u8 = 3;

/// The code of a command that did all that was asked, or not all of it.
pub(crate) fn done_if(is_done: bool) -> u8 {
    if is_done { DONE } else { NO }
}
