//! Rebuilds sessions from their other files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_format::ids::Uuid;
use transcript_format::names::is_id;
use transcript_storage::{Disk, FileKind, ReadDisk, RealDisk};
use transcript_verify::salvage::Salvage;

use crate::repair_files::{copy, write_file};
use transcript_session::{Error, ErrorKind};
use transcript_session::{MIN_PREFIX, Store};

/// A session rebuilt from its other files, when its own file is missing or stopped growing
/// ([`Salvage`]). Only [`write`](Self::write) writes anything.
#[derive(Debug)]
pub struct SessionSalvage(Salvage);

impl SessionSalvage {
    /// Rebuilds the session at `path`, a file that may be missing. Nothing is
    /// written, except for a temporary file without a name if there are more than 64 MiB.
    ///
    /// ```
    /// use transcript_manage::SessionSalvage;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let agents = path.with_extension("").join("subagents");
    /// # std::fs::create_dir_all(&agents)?;
    /// # std::fs::write(agents.join("agent-a1.jsonl"), r#"{"type":"user","uuid":"u1","parentUuid":null,"isSidechain":true,"agentId":"a1","message":{"role":"user","content":"Find the next comet."}}"#)?;
    /// let salvage = SessionSalvage::plan(&path)?;
    /// for action in salvage.details().actions() {
    ///     println!("{}", action.detail);
    /// }
    /// # assert_eq!(salvage.details().actions()[0].detail, "subagents/agent-a1.jsonl: 1 entries, a conversation of the session");
    /// salvage.write(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NothingToSalvage`] when the session is as new as its other files, or they have
    /// nothing; [`ErrorKind::Read`].
    pub fn plan(path: &Path) -> Result<Self, Error> {
        Self::plan_on(&(Arc::new(RealDisk) as _), path)
    }

    /// Rebuilds the session at `path` on `disk`, as [`plan`](Self::plan) does on the disk of this machine.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn plan_on(disk: &Arc<dyn ReadDisk>, path: &Path) -> Result<Self, Error> {
        let now = format!("{:.3}", jiff::Timestamp::now());
        let mut new_id = || Uuid(uuid::Uuid::new_v4().as_u128());
        let salvage = Salvage::new(disk, path, &now, &mut new_id)?;
        let salvage = salvage.ok_or_else(|| Error::new(ErrorKind::NothingToSalvage, path))?;
        Ok(Self(salvage))
    }

    /// Finds a session of which only the folder is left, by its id, or by a prefix of at least 4
    /// characters. Returns the path that its file would have.
    ///
    /// # Errors
    /// As [`Store::find`].
    pub fn find(store: &Store, id: &str) -> Result<PathBuf, Error> {
        let root = store.root();
        if !is_id(id) || id.len() < MIN_PREFIX {
            return Err(Error::new(ErrorKind::NotAnId, root));
        }
        let mut found = Vec::new();
        let disk = &**store.disk();
        for project in folders(disk, root) {
            let name = |path: &PathBuf| path.file_name()?.to_str().map(str::to_owned);
            let is_it = |path: &PathBuf| {
                let name = name(path).filter(|name| Uuid::parse(name.as_bytes()).is_some());
                name.is_some_and(|name| name.starts_with(id))
            };
            let of_project = folders(disk, &project).filter(is_it);
            found.extend(of_project.map(|folder| folder.with_extension("jsonl")));
        }
        found.sort();
        match found.len() {
            0 => Err(Error::new(ErrorKind::NoSuchSession, root)),
            1 => Ok(found.remove(0)),
            _ => Err(Error::ambiguous(root, found)),
        }
    }

    /// Returns the plan, with the state of the session before and after.
    #[must_use]
    pub fn details(&self) -> &Salvage {
        &self.0
    }

    /// Writes it as a new file, which only its owner can access.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`] when the file exists, [`ErrorKind::Repair`] when it cannot be written.
    pub fn write(&self, out: &Path) -> Result<(), Error> {
        self.write_on(&RealDisk, out)
    }

    /// Writes it as a new file on `disk`, as [`write`](Self::write) does on the disk of this machine.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_on(&self, disk: &dyn Disk, out: &Path) -> Result<(), Error> {
        if disk.has_name(out) {
            return Err(Error::new(ErrorKind::Exists, out));
        }
        let salvaged = self.0.salvaged();
        let file = write_file(disk, out, |file| copy(salvaged, 0, salvaged.len(), file))?;
        let kept = file.keep(out);
        kept.map_err(|error| Error::placing(ErrorKind::Repair, out, error))
    }
}

fn folders(disk: &dyn Disk, folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = disk.list(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.kind == FileKind::Folder);
    folders.map(|entry| folder.join(entry.name))
}
