//! What `repair`, with and without `--salvage`, says about a session.

use std::io::Write;

use anyhow::{Result, anyhow};
use transcript_engine::verify::repair::Health;
use transcript_engine::{Error, ErrorKind};

use crate::exit;
use crate::ui::Ui;

/// Says why nothing was written, and what to do.
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
    ui.complain(&anyhow!("{error}; {way_out}"));
    Ok(exit::NO)
}

/// Writes what a session shows, before or after a repair.
pub(crate) fn write_health(out: &mut dyn Write, when: &str, health: &Health) -> Result<()> {
    let shown = &health.shown;
    let accepted = |is_accepted| if is_accepted { "accepted" } else { "refused" };
    writeln!(
        out,
        "{when}: the client shows {} of {} messages, recover {}; request of the client {}, of recover {}",
        shown.vendor,
        shown.conversation,
        shown.recover,
        accepted(health.vendor_lint),
        accepted(health.recover_lint),
    )?;
    Ok(())
}
