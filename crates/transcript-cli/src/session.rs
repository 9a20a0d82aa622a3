//! Finds and opens the session that the command line names.

use std::fs::File;
use std::io::{self, Seek};
use std::path::Path;

use anyhow::{Context, Result, bail};
use transcript_reader::Source;
use transcript_session::History;

use crate::progress;

/// Reads `argument`: the path of a file, or `-` for standard input.
pub(crate) fn open(argument: &Path) -> Result<History> {
    if argument == Path::new("-") {
        let spooled = spool(io::stdin().lock())?;
        let source = Source::from_file(spooled, Path::new("-"))?;
        return progress::read(source);
    }
    if !argument.exists() {
        bail!(
            "{}: no such file (look-up by session id comes with `transcript list`)",
            argument.display()
        );
    }
    progress::read(Source::open(argument)?)
}

/// Copies a stream to a temporary file that has no name and that only we can read, so that it can
/// be read in any order.
fn spool(mut input: impl io::Read) -> Result<File> {
    let mut file =
        tempfile::tempfile().context("cannot make a temporary file for standard input")?;
    io::copy(&mut input, &mut file).context("cannot copy standard input to a temporary file")?;
    file.rewind().context("cannot read the temporary file")?;
    Ok(file)
}
