//! Writes repaired sessions to files.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_format::ids::Uuid;
use transcript_format::json::{Json, ObjectBuf};
use transcript_reader::{Bodies, Id, Index, Source, subagents_on};
use transcript_resume::fork::with_new_ids;
use transcript_storage::{
    Metadata, NewFile, ReadDisk, RealDisk, finish_exchange, folder_of, put_in_place, undo,
};
use transcript_verify::repair::Repair;

use crate::copying::{self, Ids, stem};
use crate::error::{Error, ErrorKind};

const BLOCK: usize = 256 << 10;

/// A repair of a session, planned and proved ([`Repair`]); nothing is written until it is asked for.
#[derive(Debug)]
pub struct SessionRepair {
    repair: Repair,
    disk: Arc<dyn ReadDisk>,
    path: PathBuf,
    read: Metadata,
}

impl SessionRepair {
    /// Plans the repair of the session at `path`. Nothing is written, except for a temporary file
    /// without a name if the session is larger than 64 MiB.
    ///
    /// ```
    /// use transcript::SessionRepair;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let message = r#""message":{"role":"user","content":"Is 1900 a leap year?"}"#;
    /// # std::fs::write(&path, format!("{{\"type\":\"us{{\"type\":\"user\",\"uuid\":\"u1\",\"parentUuid\":null,\"sessionId\":\"s\",\"timestamp\":\"2026-11-20T10:00:00.000Z\",{message}}}\n"))?;
    /// let repair = SessionRepair::plan(&path)?;
    /// for action in repair.details().actions() {
    ///     println!("{:?}: {} {}", action.line, action.action.name(), action.detail);
    /// }
    /// let (before, after) = (repair.details().before(), repair.details().after());
    /// assert_eq!((before.shown.vendor, after.shown.vendor), (0, 1));
    /// repair.write(&path.with_extension("repaired.jsonl"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn plan(path: &Path) -> Result<Self, Error> {
        Self::plan_on(&(Arc::new(RealDisk) as _), path)
    }

    /// Plans the repair of the session at `path` on `disk`, such as that of an archive, as [`plan`](Self::plan) does on
    /// the disk of this machine. What is not on that disk can be written elsewhere, but not replaced.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn plan_on(disk: &Arc<dyn ReadDisk>, path: &Path) -> Result<Self, Error> {
        let mut source = Source::open_on(disk, path)?;
        let read = source.refresh()?;
        let read = read.expect("a file that was opened has properties");
        let now = format!("{:.3}", jiff::Timestamp::now());
        let mut new_id = || Uuid(uuid::Uuid::new_v4().as_u128());
        Ok(Self {
            repair: Repair::new(source, &now, &mut new_id)?,
            disk: Arc::clone(disk),
            path: path.to_owned(),
            read,
        })
    }

    /// Also moves lines that no resume needs to an archive, when it is proved that the session
    /// resumes as before ([`Repair::compact`]). [`Self::write`] and [`Self::replace`] write the
    /// archive.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn compact(mut self) -> Result<Self, Error> {
        self.repair.compact()?;
        Ok(self)
    }

    /// Returns the plan: what would be changed, and what the session shows before and after.
    #[must_use]
    pub fn details(&self) -> &Repair {
        &self.repair
    }

    /// Writes the repaired session as a new file, which only its owner can access. The folder of the
    /// session and its subagents are copied to the folder that belongs to `out`. What is not part
    /// of it is written beside it: bytes that are no entries to `.lost`, appended to the name, with a
    /// map of their places in `.lost.json`, and the entries of other sessions to `.foreign`. Lines that
    /// a [compaction](Self::compact) moved are in `.archive`, with a map in `.archive.json`.
    ///
    /// # Errors
    /// [`ErrorKind::RepairRefused`] when the repair is not proved, [`ErrorKind::Exists`] when the
    /// file or that folder exists, [`ErrorKind::Repair`] when it cannot be written.
    pub fn write(&self, out: &Path) -> Result<(), Error> {
        let repaired = self.repair.repaired();
        let id = stem(&self.path);
        let ids = Ids::new(id.clone(), id);
        self.publish(out, &ids, &|file| copy(repaired, 0, repaired.len(), file))
    }

    fn publish(
        &self,
        out: &Path,
        ids: &Ids,
        write: &dyn Fn(&mut dyn Write) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.check()?;
        if out.exists() {
            return Err(Error::new(ErrorKind::Exists, out));
        }
        let file = write_file(out, write)?;
        let folder = self.copy_side_files(out, ids)?;
        let undo_copy = || {
            if let Some(folder) = &folder {
                let _ = fs::remove_dir_all(folder);
            }
        };
        let beside = self.write_rest(out).inspect_err(|_| undo_copy())?;
        let kept = file.keep(out).inspect_err(|_| {
            remove(&beside);
            undo_copy();
        });
        kept.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::new(ErrorKind::Exists, out),
            _ => Error::repair(out, error),
        })
    }

    /// Copies the folder of the session and its subagents, so that the copy is the whole session.
    /// Returns the new folder, if there is anything to copy.
    fn copy_side_files(&self, out: &Path, ids: &Ids) -> Result<Option<PathBuf>, Error> {
        let folder = out.with_extension("");
        let has_folder = self.disk.is_folder(&self.path.with_extension(""));
        if folder == out || (!has_folder && subagents_on(&self.disk, &self.path)?.is_empty()) {
            return Ok(None);
        }
        if fs::symlink_metadata(&folder).is_ok() {
            return Err(Error::new(ErrorKind::Exists, &folder));
        }
        match copying::copy_side_files(&self.disk, &self.path, out, ids) {
            Ok(()) => Ok(Some(folder)),
            Err(error) => {
                let _ = fs::remove_dir_all(&folder);
                Err(Error::repair(&folder, error))
            }
        }
    }

    /// Writes the repaired session as one with a new id, with new ids for all entries. Returns its
    /// path and its id. Without `out` it is next to the old one, named after the new id; if the name
    /// of `out` is a uuid, that is the id. The folder of the session and its subagents are copied to
    /// the folder of the new one; lines of subagents get the new id, and the new ids of the entries
    /// that they name.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_as_new(&self, out: Option<&Path>) -> Result<(PathBuf, Uuid), Error> {
        let new_id = || Uuid(uuid::Uuid::new_v4().as_u128());
        let named = out.and_then(|out| Uuid::parse(out.file_stem()?.as_encoded_bytes()));
        let session = named.unwrap_or_else(new_id);
        let next_to_old = || -> Result<PathBuf, Error> {
            self.check_is_here()?;
            Ok(self.path.with_file_name(format!("{session}.jsonl")))
        };
        let out = out.map_or_else(next_to_old, |out| Ok(out.to_owned()))?;
        let repaired = self.repair.repaired();
        let index = Index::load(repaired)?;
        let with_id = index.entries().filter_map(|entry| entry.uuid());
        let ids: HashMap<Id, Uuid> = with_id.map(|id| (id, new_id())).collect();
        let old = index.own_session().unwrap_or_default();
        let to = session.to_string();
        let mut of_files = Ids::new(stem(&self.path), to.clone());
        let new_ids = ids.iter();
        of_files.entries = new_ids
            .map(|(id, new)| (index.id_text(*id), new.to_string()))
            .collect();
        let write = |file: &mut dyn Write| {
            let mut bodies = Bodies::new(repaired);
            let mut end = 0;
            for entry in index.entries() {
                copy(repaired, end, entry.offset(), file)?;
                end = entry.offset() + entry.byte_len();
                match with_new_ids(&index, bodies.get(&entry)?.text, &ids, (old, &to)) {
                    Some(line) => file
                        .write_all(line.as_bytes())
                        .map_err(|error| Error::repair(&out, error))?,
                    None => copy(repaired, entry.offset(), end, file)?,
                }
            }
            copy(repaired, end, repaired.len(), file)
        };
        self.publish(&out, &of_files, &write)?;
        Ok((out, session))
    }

    /// Puts the repaired session in the place of the old file, which gets `.before-repair` appended
    /// to its name and keeps its bytes and times. Returns its path; `None` when there is nothing to
    /// repair. At every moment the name refers to the old or to the new file.
    ///
    /// # Errors
    /// [`ErrorKind::RepairRefused`] when the repair is not proved, when a process has the file open
    /// for writing, or when it has changed since it was read; [`ErrorKind::CannotReplace`] on systems
    /// other than Linux; [`ErrorKind::NotHere`] when the file is on another disk, such as an archive;
    /// [`ErrorKind::Repair`] when the system fails.
    pub fn replace(&self) -> Result<Option<PathBuf>, Error> {
        self.check()?;
        self.check_is_here()?;
        if self.repair.is_empty() {
            let finished = finish_exchange(&self.path);
            finished.map_err(|error| Error::exchange(&self.path, error))?;
            return Ok(None);
        }
        let repaired = self.repair.repaired();
        let file = write_file(&self.path, |file| copy(repaired, 0, repaired.len(), file))?;
        let beside = self.write_rest(&self.path)?;
        let replaced = put_in_place(file, &self.path, &self.read);
        let replaced = replaced.inspect_err(|_| remove(&beside));
        replaced
            .map(Some)
            .map_err(|error| Error::exchange(&self.path, error))
    }

    fn check(&self) -> Result<(), Error> {
        let refusal = self.repair.refusal();
        refusal.map_or(Ok(()), |refusal| {
            Err(Error::repair_refused(&self.path, refusal))
        })
    }

    /// Checks that the file can be replaced: that of an archive, say, cannot.
    fn check_is_here(&self) -> Result<(), Error> {
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::new(ErrorKind::NotHere, &self.path))
            }
            _ => Ok(()),
        }
    }

    /// Writes what the repaired session does not contain. Returns the paths.
    fn write_rest(&self, path: &Path) -> Result<Vec<PathBuf>, Error> {
        let original = self.repair.original();
        let mut written = Vec::new();
        let mut keep = |what: &str, write: &dyn Fn(&mut dyn Write) -> Result<(), Error>| {
            let path = free_name(path, what);
            let file = write_file(&path, write)?;
            file.keep(&path)
                .map_err(|error| Error::repair(&path, error))?;
            written.push(path);
            Ok::<(), Error>(())
        };
        if !self.repair.lost().is_empty() {
            keep("lost", &|out| {
                for lost in self.repair.lost() {
                    copy(original, lost.range.start, lost.range.end, out)?;
                }
                Ok(())
            })?;
            keep("lost.json", &|out| {
                let mut at = 0;
                for lost in self.repair.lost() {
                    let len = lost.range.end - lost.range.start;
                    let line = ObjectBuf::new()
                        .with("offset", lost.range.start)
                        .with("len", len)
                        .with("code", Json::from(lost.code.as_str()))
                        .with("at", at);
                    at += len;
                    writeln!(out, "{}", line.text()).map_err(|error| Error::repair(path, error))?;
                }
                Ok(())
            })?;
        }
        if let Some(compaction) = self.repair.compaction() {
            keep("archive", &|out| {
                for line in compaction.moved() {
                    copy(compaction.base(), line.range.start, line.range.end, out)?;
                }
                Ok(())
            })?;
            keep("archive.json", &|out| {
                let mut at = 0;
                for moved in compaction.moved() {
                    let len = moved.range.end - moved.range.start;
                    let line = ObjectBuf::new()
                        .with("line", moved.line)
                        .with("offset", moved.range.start)
                        .with("len", len)
                        .with("type", moved.kind.name())
                        .with("why", moved.why.name())
                        .with("at", at);
                    at += len;
                    writeln!(out, "{}", line.text()).map_err(|error| Error::repair(path, error))?;
                }
                Ok(())
            })?;
        }
        if self.repair.foreign().next().is_some() {
            keep("foreign", &|out| {
                for entry in self.repair.foreign() {
                    copy(
                        original,
                        entry.offset(),
                        entry.offset() + entry.byte_len(),
                        out,
                    )?;
                    out.write_all(b"\n")
                        .map_err(|error| Error::repair(path, error))?;
                }
                Ok(())
            })?;
        }
        Ok(written)
    }
}

/// Brings back the file that was last replaced by [`SessionRepair::replace`]. The repaired one gets
/// `.repaired` appended to its name; what was appended to it since is only there. Returns its path.
///
/// # Errors
/// [`ErrorKind::RepairRefused`] when there is no such file, or a process has the repaired one open
/// for writing; [`ErrorKind::Repair`] when the system fails.
pub fn undo_repair(path: &Path) -> Result<PathBuf, Error> {
    undo(path).map_err(|error| Error::exchange(path, error))
}

pub(crate) fn write_file(
    path: &Path,
    write: impl Fn(&mut dyn Write) -> Result<(), Error>,
) -> Result<NewFile, Error> {
    let failed = |error| Error::repair(path, error);
    NewFile::remove_stale(folder_of(path));
    let file = NewFile::beside(path).map_err(failed)?;
    let mut file = BufWriter::with_capacity(BLOCK, file);
    write(&mut file)?;
    file.into_inner()
        .map_err(|error| failed(error.into_error()))
}

/// Removes files of which the bytes are still in the session.
fn remove(beside: &[PathBuf]) {
    for path in beside {
        let _ = fs::remove_file(path);
    }
}

/// Copies the bytes from `from` to `to`.
pub(crate) fn copy(source: &Source, from: u64, to: u64, out: &mut dyn Write) -> Result<(), Error> {
    let mut block = vec![0; BLOCK.min((to - from) as usize)];
    let mut at = from;
    while at < to {
        let wanted = block.len().min((to - at) as usize);
        if source.read_at(at, &mut block[..wanted])? < wanted {
            return Err(Error::repair(
                source.path(),
                io::ErrorKind::UnexpectedEof.into(),
            ));
        }
        let written = out.write_all(&block[..wanted]);
        written.map_err(|error| Error::repair(source.path(), error))?;
        at += wanted as u64;
    }
    Ok(())
}

/// Returns `path` with `what` appended to its name, and a number if that name is taken.
fn free_name(path: &Path, what: &str) -> PathBuf {
    let named = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        match number {
            0 => name.push(format!(".{what}")),
            number => name.push(format!(".{number}.{what}")),
        }
        PathBuf::from(name)
    };
    let mut names = (0..).map(named);
    names
        .find(|name| !name.exists())
        .unwrap_or_else(|| named(0))
}
