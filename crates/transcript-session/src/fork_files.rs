//! Writes forks to files.

use std::io::{BufWriter, Write};
use std::path::{self, PathBuf};

use transcript_format::ids::Uuid;
use transcript_format::names::is_key_of;
use transcript_reader::Bodies;
use transcript_resume::{ConversationPath, Policy, Refusal, Tree, fork};
use transcript_storage::{Disk, RealDisk, folder_of};
use transcript_writer::EntryId;

use crate::error::{Error, ErrorKind};
use crate::history::History;
use crate::options::ForkOptions;

impl History {
    /// Copies the conversation into a new session, as [`fork`](transcript_resume::fork) describes.
    /// Returns the path and the session id.
    ///
    /// A crash leaves the complete copy or none; on return it survives a power cut. Also removes
    /// incomplete copies that killed processes left behind (earlier versions, or file systems
    /// without unnamed files).
    ///
    /// ```
    /// use transcript_session::{ForkOptions, History, Policy};
    /// # use transcript_session::{Draft, Session, SessionOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let session = Session::create(&path, &SessionOptions::new())?;
    /// # session.append(Draft::user("Which years have a leap day?"))?;
    /// # session.close()?;
    /// let history = History::open(&path)?;
    /// let (copy, id) = history.fork(Policy::Recover, &ForkOptions::new().title("A copy"))?;
    /// assert_eq!(copy, path.with_file_name(format!("{id}.jsonl")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NotResumable`] when there is no conversation or no such entry,
    /// [`ErrorKind::Exists`] when [`ForkOptions::out`] already exists, [`ErrorKind::Fork`] when the
    /// copy cannot be written.
    pub fn fork(&self, policy: Policy, options: &ForkOptions) -> Result<(PathBuf, Uuid), Error> {
        let ForkOptions {
            at,
            title,
            out,
            folder,
            disk,
        } = options;
        let disk: &dyn Disk = disk.as_deref().unwrap_or(&RealDisk);
        let source = self.source().path();
        let refused = |refusal| Error::new(ErrorKind::NotResumable(refusal), source);
        let (tree, path) = match at {
            None => {
                let tree = self.tree(policy);
                let path = tree.path();
                (tree, path)
            }
            Some(at) => path_to(self, policy, at).ok_or(refused(Refusal::NoConversation))?,
        };
        if let Some(refusal) = path.refusal {
            return Err(refused(refusal));
        }
        let new_id = || Uuid(uuid::Uuid::new_v4().as_u128());
        let named = out.as_deref().and_then(path::Path::file_stem);
        let named = named.and_then(|stem| Uuid::parse(stem.as_encoded_bytes()));
        let session = named.unwrap_or_else(new_id);
        let name = format!("{session}.jsonl");
        let in_folder = || match folder {
            Some(folder) => folder.join(name),
            None => source.with_file_name(name),
        };
        let copy = out.clone().unwrap_or_else(in_folder);
        if disk.exists(&copy) {
            return Err(Error::new(ErrorKind::Exists, &copy));
        }
        // In the folder of another project only its own folder would be right, which is not known.
        let project = folder_of(&copy).file_name().unwrap_or_default();
        let row = self.row();
        let home = row
            .cwd
            .filter(|cwd| is_key_of(&project.to_string_lossy(), cwd));
        let options = fork::ForkOptions {
            home,
            source: self.session_id().unwrap_or_default(),
            session: session.to_string(),
            title: title.clone(),
            now: format!("{:.3}", jiff::Timestamp::now()),
        };
        let failed = |error| Error::placing(ErrorKind::Fork, &copy, error);
        if folder.is_some() {
            disk.create_folder(folder_of(&copy)).map_err(failed)?;
        }
        disk.remove_stale(folder_of(&copy));
        let file = disk.new_file(&copy).map_err(failed)?;
        let mut file = BufWriter::with_capacity(256 << 10, file);
        let mut write = |line: &str| {
            let written = file.write_all(line.as_bytes());
            written.and_then(|()| file.write_all(b"\n")).map_err(failed)
        };
        let mut bodies = Bodies::new(self.source());
        let mut new_id = new_id;
        let forked = fork::fork(&tree, &path, &options, &mut bodies, &mut new_id, &mut write)?;
        if forked.entries == 0 {
            return Err(refused(Refusal::NoConversation));
        }
        let file = file
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        file.keep(&copy).map_err(failed)?;
        Ok((copy, session))
    }
}

/// Returns the path that ends at an entry. An entry that a compaction dropped is found in the tree
/// of the session as it was before that compaction.
fn path_to<'h>(
    history: &'h History,
    policy: Policy,
    at: &EntryId,
) -> Option<(Tree<'h>, ConversationPath)> {
    let index = history.index();
    let id = index.id(&at.to_string())?;
    let mut copies = index.with_uuid(id);
    let boundary = copies.find(|entry_ref| index.entry(*entry_ref).is_boundary());
    if let Some(boundary) = boundary {
        // A fork at the boundary ends with the conversation as it was when the compaction began.
        let tree = Tree::before(index, policy, boundary);
        let path = tree.path();
        return (!path.entries.is_empty()).then_some((tree, path));
    }
    let mut tree = history.tree(policy);
    let mut boundaries = index.entries().rev().filter(|entry| entry.is_boundary());
    loop {
        let mut path = tree.path();
        let mut copies = index.with_uuid(id);
        if copies.any(|entry_ref| path.cut_after(entry_ref)) {
            return Some((tree, path));
        }
        if let Some(node) = tree.node_with_uuid(id) {
            let path = tree.path_to_leaf(node);
            return Some((tree, path));
        }
        tree = Tree::before(index, policy, boundaries.next()?.number());
    }
}
