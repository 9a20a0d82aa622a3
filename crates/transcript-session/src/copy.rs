//! The files of forks.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{self, PathBuf};

use transcript_format::ids::Uuid;
use transcript_reader::Bodies;
use transcript_resume::{Path, Policy, Refusal, Tree, fork};
use transcript_writer::EntryId;

use crate::error::{Error, ErrorKind};
use crate::history::History;

/// Copies the conversation of `history`, up to `at`, to a new session beside it; returns its path.
/// Nobody sees a part of the copy: it gets its name when it is whole and on disk.
pub(crate) fn fork(
    history: &History,
    policy: Policy,
    at: Option<&EntryId>,
) -> Result<PathBuf, Error> {
    let source = history.source().path();
    let refused = |refusal| Error::new(ErrorKind::NotResumable(refusal), source);
    let (tree, path) = match at {
        None => {
            let tree = history.tree(policy);
            let path = tree.path();
            (tree, path)
        }
        Some(at) => path_to(history, policy, at).ok_or(refused(Refusal::NoConversation))?,
    };
    if let Some(refusal) = path.refusal {
        return Err(refused(refusal));
    }
    let new_id = || Uuid(uuid::Uuid::new_v4().as_u128());
    let session = new_id().to_string();
    let copy = source.with_file_name(&session).with_extension("jsonl");
    let options = fork::Options {
        source: history.session_id().unwrap_or_default(),
        session,
        title: None,
        now: format!("{:.3}", jiff::Timestamp::now()),
    };
    let mut file = NewFile::beside(&copy)?;
    let mut write = |line: &str| file.line(line).map_err(|error| Error::fork(&copy, error));
    let mut bodies = Bodies::new(history.source());
    let forked = fork::fork(
        &tree,
        &path,
        &options,
        &mut bodies,
        &mut { new_id },
        &mut write,
    )?;
    if forked.entries == 0 {
        return Err(refused(Refusal::NoConversation));
    }
    file.keep(&copy)
        .map_err(|error| Error::fork(&copy, error))?;
    Ok(copy)
}

/// A file that only its owner can read, and that is gone unless it is kept.
struct NewFile(BufWriter<tempfile::NamedTempFile>);

impl NewFile {
    /// In the folder of `path`, where it can get that name without a copy.
    fn beside(path: &path::Path) -> Result<Self, Error> {
        let file = tempfile::Builder::new()
            .prefix(".fork-")
            .tempfile_in(folder_of(path));
        let file = file.map_err(|error| Error::fork(path, error))?;
        Ok(Self(BufWriter::with_capacity(256 << 10, file)))
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        self.0.write_all(line.as_bytes())?;
        self.0.write_all(b"\n")
    }

    /// Gives it its name, and makes it survive a power cut.
    fn keep(self, path: &path::Path) -> io::Result<()> {
        let file = self
            .0
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        file.persist_noclobber(path)?;
        // Windows has no handle to sync a folder by, and keeps names by itself.
        if cfg!(unix) {
            File::open(folder_of(path))?.sync_all()?;
        }
        Ok(())
    }
}

/// The path that ends at an entry. What a compaction took out is still there in the session as it
/// was before that.
fn path_to<'h>(history: &'h History, policy: Policy, at: &EntryId) -> Option<(Tree<'h>, Path)> {
    let index = history.index();
    let id = index.id(&at.to_string())?;
    let mut tree = history.tree(policy);
    let mut boundaries = index.candidates().rev().filter(|entry| entry.is_boundary());
    loop {
        let mut path = tree.path();
        let mut copies = index.with_uuid(id);
        if copies.any(|candidate| path.cut_after(candidate)) {
            return Some((tree, path));
        }
        if let Some(node) = tree.node_with_uuid(id) {
            let path = tree.path_to_leaf(node);
            return Some((tree, path));
        }
        tree = Tree::before(index, policy, boundaries.next()?.number());
    }
}

fn folder_of(path: &path::Path) -> &path::Path {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(path::Path::new("."))
}
