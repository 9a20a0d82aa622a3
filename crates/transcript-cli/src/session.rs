//! Finds and opens the session that the command line names.

use std::env;
use std::fs::File;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};
use transcript_reader::Source;
use transcript_session::{Error, ErrorKind, History, Store};

use crate::{progress, screen};

/// What the command line says about all sessions; set once, before a command runs.
static STORE_ARGS: OnceLock<StoreArgs> = OnceLock::new();

/// Where sessions are looked up, and what is said about it.
#[derive(Debug, Default)]
pub(crate) struct StoreArgs {
    pub(crate) root: Option<PathBuf>,
    pub(crate) quiet: bool,
}

impl StoreArgs {
    /// Makes this the look-up of the process.
    pub(crate) fn set(self) {
        // `main` calls it once.
        let _ = STORE_ARGS.set(self);
    }
}

/// The folder of projects: that of `--root`, else the client's.
pub(crate) fn store() -> Result<Store> {
    let root = STORE_ARGS
        .get()
        .and_then(|store_args| store_args.root.as_ref());
    // The client's folder comes with its first session; one that is named is meant to be there.
    if let Some(missing) = root.filter(|root| !root.exists()) {
        bail!("--root: {}: no such folder", missing.display());
    }
    let store = root.map(Store::new).or_else(Store::from_env);
    store.context("no home folder is known; say --root DIR")
}

/// Reads the session that `argument` names (see [`find`]), or standard input for `-`.
pub(crate) fn open(argument: &Path) -> Result<History> {
    let source = if argument == Path::new("-") {
        let spooled = spool(io::stdin().lock())?;
        Source::from_file(spooled, Path::new("-"))?
    } else {
        Source::open(&find(argument)?)?
    };
    source.check_messages()?;
    progress::read(source)
}

/// Returns the file that `argument` names: a path that exists, else the id of a session or the
/// start of one, else `latest`.
pub(crate) fn find(argument: &Path) -> Result<PathBuf> {
    if argument.exists() {
        return Ok(argument.to_owned());
    }
    let text = argument.to_string_lossy();
    if text == "latest" {
        return latest();
    }
    let is_path = argument.extension().is_some() || argument.components().count() != 1;
    if is_path {
        bail!("{}: no such file", argument.display());
    }
    store()?
        .find(&text)
        .map_err(|error| explained(&text, error))
}

fn latest() -> Result<PathBuf> {
    let here = env::current_dir().context("the current folder is unknown")?;
    let path = store()?.latest(&here)?;
    if !STORE_ARGS.get().is_some_and(|store_args| store_args.quiet) {
        screen::note(&format!("latest: {}", path.display()));
    }
    Ok(path)
}

/// Says which sessions an id could mean.
fn explained(id: &str, error: Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::Ambiguous => {
            let mut text = format!(
                "{id}: {} sessions have such an id:",
                error.candidates().len()
            );
            for path in error.candidates() {
                text.push_str(&format!("\n  {}", path.display()));
            }
            anyhow!(text)
        }
        _ => anyhow!(error).context(format!("{id}: no such file, and no such session")),
    }
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
