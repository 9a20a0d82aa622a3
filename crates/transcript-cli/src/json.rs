//! Verbatim JSON of a transcript. What is made here, [`wire`](transcript::wire) escapes.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use transcript::wire;

use crate::escape;

/// Returns JSON of a transcript: verbatim for programs, escaped on a terminal.
pub(crate) fn verbatim(json: &str) -> Cow<'_, str> {
    static IS_SHOWN: OnceLock<bool> = OnceLock::new();
    match *IS_SHOWN.get_or_init(|| io::stdout().is_terminal()) && !escape::is_off() {
        true => wire::escaped(json),
        false => Cow::Borrowed(json),
    }
}
