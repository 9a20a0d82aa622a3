//! Finds and opens the session named on the command line.

use std::env;
use std::fs::File;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use transcript::{Error, ErrorKind, History, Store};
use transcript_reader::Source;

use crate::progress;
use crate::ui::Ui;

/// Returns the store: `--root`, or the default folder of the client.
pub(crate) fn store(ui: &Ui) -> Result<Store> {
    let root = ui.root.as_ref();
    // The default folder may not exist yet (the client creates it); an explicit --root must.
    if let Some(missing) = root.filter(|root| !root.exists()) {
        bail!("--root: {}: no such directory", missing.display());
    }
    let store = root.map(Store::new).or_else(Store::from_env);
    store.context("cannot find the home directory; name the projects folder with --root DIR")
}

/// Reads the session that `argument` names (see [`find`]), or standard input for `-`.
pub(crate) fn open(ui: &Ui, argument: &Path) -> Result<History> {
    progress::read(ui, source(ui, argument)?)
}

/// Opens the session that `argument` names.
pub(crate) fn source(ui: &Ui, argument: &Path) -> Result<Source> {
    let source = if argument == Path::new("-") {
        let spooled = spool(io::stdin().lock())?;
        Source::from_file(spooled, Path::new("-"))?
    } else {
        Source::open(&find(ui, argument)?)?
    };
    source.check_messages()?;
    Ok(source)
}

/// Returns the file that `argument` names: an existing path, else `latest`, else the id of a session
/// or the start of one.
pub(crate) fn find(ui: &Ui, argument: &Path) -> Result<PathBuf> {
    if argument.exists() {
        return Ok(argument.to_owned());
    }
    let text = argument.to_string_lossy();
    if text == "latest" {
        return latest(ui);
    }
    let is_path = argument.extension().is_some() || argument.components().count() != 1;
    if is_path {
        bail!("{}: no such file", argument.display());
    }
    store(ui)?
        .find(&text)
        .map_err(|error| explained(&text, error))
}

fn latest(ui: &Ui) -> Result<PathBuf> {
    let here = env::current_dir().context("cannot determine the current directory")?;
    let path = store(ui)?.latest(&here)?;
    ui.note(&format!("latest: {}", path.display()));
    Ok(path)
}

/// Lists the sessions that an ambiguous id prefix matches.
fn explained(id: &str, error: Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::Ambiguous => {
            let paths = error.candidates().iter();
            let list: String = paths
                .map(|path| format!("\n  {}", path.display()))
                .collect();
            let count = error.candidates().len();
            anyhow!("{id} is ambiguous: {count} sessions match:{list}")
        }
        _ => anyhow!(error).context(format!("{id}: no such file or session")),
    }
}

/// Copies a stream to a temporary file that has no name and that only we can read, so that it can
/// be read with random access.
fn spool(mut input: impl io::Read) -> Result<File> {
    let mut file =
        tempfile::tempfile().context("cannot create a temporary file for standard input")?;
    io::copy(&mut input, &mut file).context("cannot copy standard input to a temporary file")?;
    file.rewind().context("cannot read the temporary file")?;
    Ok(file)
}
