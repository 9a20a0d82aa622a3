//! `transcript pull`: restores one session from the archive, to continue it here.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::restore;
use crate::ui::Ui;

/// Restore one session from the archive, to continue it here
///
/// Restores what `push` or `keep` captured on another machine, as `restore` does, with the time of now, so that no client deletes it as old.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The id of an archived session, or the start of one
    #[arg(value_name = "SESSION")]
    session: String,
    /// Restore what this machine captured; by default, that with the longest file
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    let machine = args.machine.as_deref();
    restore::run(
        ui,
        &restore::Args::of_session(&args.session, machine, args.json),
    )
}
