//! The lines about a session that `repair` prints, with and without `--salvage`.

use std::io::Write;

use anyhow::Result;
use transcript_engine::verify::repair::Health;
use transcript_engine::{Error, ErrorKind};
use transcript_ops::Failure;
use transcript_render::TextStyle;

use crate::exit;
use crate::ui::Ui;

/// Prints the reason why nothing was written, and advice.
pub(crate) fn refuse(ui: &Ui, error: &Error) -> Result<u8> {
    let way_out = match error.kind() {
        ErrorKind::Exists => "name another file",
        ErrorKind::NotHere => {
            "restore it with `transcript restore`, or write a copy with --out FILE"
        }
        ErrorKind::NothingToSalvage => "look for a backup",
        ErrorKind::CannotReplace => {
            "close the session, write a copy with --out FILE, and rename it; or continue it as a new one with --new-session"
        }
        _ if error.is_retryable() => {
            "close the session and try again, or write a copy with --out FILE"
        }
        _ => "nothing was changed",
    };
    ui.report(Failure::from(error).with_next(way_out));
    Ok(exit::NO)
}

/// Writes the state of a session, before or after a repair.
pub(crate) fn write_health(
    ui: &Ui,
    out: &mut dyn Write,
    when: &str,
    health: &Health,
) -> Result<()> {
    let shown = &health.shown;
    let requests = match (health.vendor_lint, health.recover_lint) {
        (true, true) => "accepts both requests",
        (false, false) => "refuses both requests",
        (true, false) => "accepts the request of Claude Code, and refuses that of transcript",
        (false, true) => "refuses the request of Claude Code, and accepts that of transcript",
    };
    let text = format!(
        "{when}: Claude Code shows {} of {} messages, transcript {}; the API {requests}",
        shown.vendor, shown.conversation, shown.recover,
    );
    Ok(ui.write_wrapped(out, &text, "  ", TextStyle::default())?)
}
