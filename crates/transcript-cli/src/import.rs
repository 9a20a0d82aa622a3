//! `transcript import`: restores a session from its page.

use std::io::{BufReader, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use transcript_ops::Failure;
use transcript_page::{Error, read_lines};
use transcript_render::count;
use transcript_storage::NamedInput;

use crate::exit;
use crate::pager::Output;
use crate::ui::Ui;

/// Restore a session from an exported page
///
/// The page must be from `export --html` without --no-lines. The lines are those of the session, byte for byte, except for
/// the parts that were redacted in the page.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The page
    page: PathBuf,
    /// The file to write, or - for standard output
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace a file that exists
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    if !Output::can_write(ui, &args.out, args.force)? {
        return Ok(exit::NO);
    }
    let named = || args.page.display().to_string();
    let mut page =
        BufReader::with_capacity(1 << 20, NamedInput::open(&args.page).with_context(named)?);
    let mut out = Output::named(&args.out, args.force)?;
    let read = read_lines(&mut page, &mut out);
    let read = match read {
        Err(Error::NoLines) => {
            let text = Error::NoLines.to_string();
            ui.report(Failure::new("no-lines", text).in_file(&args.page));
            return Ok(exit::NO);
        }
        read => read.with_context(named)?,
    };
    out.flush()?;
    out.finish()?;
    ui.note(&format!("{} imported", count(read.bytes, "byte")));
    Ok(exit::DONE)
}
