//! Finds and opens the session that the command line names.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use transcript_format::ids::Uuid;
use transcript_reader::{Index, OtherFiles, Source};
use transcript_resume::{Policy, Tree};

/// An open session.
pub(crate) struct Session {
    pub(crate) source: Source,
    pub(crate) index: Index,
    others: OnceCell<OtherFiles>,
}

impl Session {
    /// Opens `argument`: the path of a file, or `-` for standard input.
    pub(crate) fn open(argument: &Path) -> Result<Self> {
        let source = if argument == Path::new("-") {
            Source::from_file(spool(io::stdin().lock())?, Path::new("-"))?
        } else if argument.exists() {
            Source::open(argument)?
        } else {
            bail!(
                "{}: no such file (look-up by session id comes with `transcript list`)",
                argument.display()
            );
        };
        let index = Index::load(&source)?;
        Ok(Self {
            source,
            index,
            others: OnceCell::new(),
        })
    }

    /// Links the entries under `policy`. What `recover` misses is looked for in the files beside.
    pub(crate) fn tree(&self, policy: Policy) -> Tree<'_> {
        let tree = Tree::new(&self.index, policy);
        let missing = tree.missing_parents();
        if missing.is_empty() || self.source.path() == Path::new("-") {
            return tree;
        }
        let search = || OtherFiles::search(&self.source, &self.index, &missing);
        let others = self.others.get_or_init(search);
        if others.is_empty() {
            return tree;
        }
        Tree::with_others(&self.index, others)
    }

    /// The session's id: the name of the file, as its lines may name another session; else what
    /// the first line says that names one.
    pub(crate) fn id(&self) -> Option<String> {
        let stem = self
            .source
            .path()
            .file_stem()
            .and_then(|stem| stem.to_str());
        let named = stem.filter(|stem| Uuid::parse(stem.to_ascii_lowercase().as_bytes()).is_some());
        named
            .map(str::to_owned)
            .or_else(|| self.index.sessions().next().map(str::to_owned))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.source.path().to_owned()
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
