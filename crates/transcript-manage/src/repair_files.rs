//! Writes repaired sessions to files.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use transcript_format::ids::Uuid;
use transcript_format::json::{Json, ObjectBuf};
use transcript_reader::{Bodies, Id, Index, Source, all_subagents_on};
use transcript_resume::fork::with_new_ids;
use transcript_storage::{Disk, Metadata, NewFile, ReadDisk, RealDisk, folder_of};
use transcript_verify::repair::Repair;

use crate::copying::{Copying, CreatedFiles, Ids, NotCopied, same_start, stem};
use transcript_session::{Error, ErrorKind};

const BLOCK_SIZE: usize = 256 << 10;

/// A repair of a session, planned and proved ([`Repair`]); nothing is written until it is asked for.
#[derive(Debug)]
pub struct SessionRepair {
    repair: Repair,
    disk: Arc<dyn ReadDisk>,
    /// The disk to write to.
    target: Arc<dyn Disk>,
    path: PathBuf,
    read: Metadata,
    not_copied: Mutex<Vec<NotCopied>>,
}

impl SessionRepair {
    /// Plans the repair of the session at `path`. Nothing is written, except for a temporary file
    /// without a name if the session is larger than 64 MiB.
    ///
    /// ```
    /// use transcript_manage::SessionRepair;
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
    /// the disk of this machine. A session that is not on the disk [written to](Self::write_to) can be written there, but not
    /// replaced.
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
            target: Arc::new(RealDisk),
            path: path.to_owned(),
            read,
            not_copied: Mutex::default(),
        })
    }

    /// Writes to `disk`; to that of this machine by default.
    #[must_use]
    pub fn write_to(mut self, disk: Arc<dyn Disk>) -> Self {
        self.target = disk;
        self
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

    /// Returns the files that the last call that wrote a copy omitted from the folder of the copy: links, and files that may hold
    /// credentials.
    #[must_use]
    pub fn not_copied(&self) -> Vec<NotCopied> {
        let not_copied = self.not_copied.lock();
        not_copied.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes the repaired session as a new file, which only its owner can access. The folder of the
    /// session and its subagents are copied to the folder that belongs to `out`. What is not part
    /// of it is written beside it: bytes that are not entries to `.lost`, appended to the name, with a
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
        let disk = &*self.target;
        if disk.exists(out) {
            return Err(Error::new(ErrorKind::Exists, out));
        }
        let file = write_file(disk, out, write)?;
        let folder = self.copy_side_files(out, ids)?;
        let undo_copy = |error| match &folder {
            Some(folder) => remove_folder(disk, folder, error),
            None => error,
        };
        let beside = self.write_rest(out).map_err(undo_copy)?;
        let kept = file.keep(out);
        kept.map_err(|error| {
            undo_copy(beside.remove(Error::placing(ErrorKind::Repair, out, error)))
        })
    }

    /// Copies the folder of the session and its subagents, so that the copy is the whole session.
    /// Returns the new folder, if there is anything to copy.
    fn copy_side_files(&self, out: &Path, ids: &Ids) -> Result<Option<PathBuf>, Error> {
        let folder = out.with_extension("");
        let own = self.path.with_extension("");
        let has_folder = self.disk.has_folder(&own);
        let has_folder = has_folder.map_err(|error| Error::repair(&own, error))?;
        if folder == out || (!has_folder && all_subagents_on(&self.disk, &self.path)?.is_empty()) {
            return Ok(None);
        }
        // After an error the folder is removed, so it has to be one that was made here.
        let created = self.target.create_new_folder(&folder, None);
        created.map_err(|error| Error::placing(ErrorKind::Repair, &folder, error))?;
        let copying = Copying {
            from: &self.disk,
            to: &*self.target,
            ids,
        };
        match copying.side_files(&self.path, out) {
            Ok(not_copied) => {
                let known = self.not_copied.lock();
                *known.unwrap_or_else(PoisonError::into_inner) = not_copied;
                Ok(Some(folder))
            }
            Err(error) => {
                let error = Error::repair(&folder, error);
                Err(remove_folder(&*self.target, &folder, error))
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
    /// [`ErrorKind::Repair`] when the system fails: the old file has its name then, and nothing is left
    /// but what the error names. [`ErrorKind::RepairStopped`] when it fails later: no file is removed then, and
    /// [`Error::other_file`] has the old bytes.
    pub fn replace(&self) -> Result<Option<PathBuf>, Error> {
        self.check()?;
        self.check_is_here()?;
        if self.repair.is_empty() {
            let finished = self.target.finish_replacement(&self.path);
            finished.map_err(|error| Error::exchange(&self.path, error))?;
            return Ok(None);
        }
        let repaired = self.repair.repaired();
        let disk = &*self.target;
        let file = write_file(disk, &self.path, |file| {
            copy(repaired, 0, repaired.len(), file)
        })?;
        let replacement = disk.begin_replacement(&self.path);
        let replacement = replacement.map_err(|error| Error::exchange(&self.path, error))?;
        // With the lock: another repair would write the same files, or remove them.
        let beside = self.write_rest(&self.path)?;
        let replaced = replacement.put(file, &self.read);
        replaced.map(Some).map_err(|error| {
            // The bytes are still in the session, unless it was replaced.
            let is_unchanged = error.is_unchanged();
            let error = Error::exchange(&self.path, error);
            if is_unchanged {
                beside.remove(error)
            } else {
                error
            }
        })
    }

    fn check(&self) -> Result<(), Error> {
        let refusal = self.repair.refusal();
        refusal.map_or(Ok(()), |refusal| {
            Err(Error::repair_refused(&self.path, refusal.words()))
        })
    }

    /// Checks that the file can be replaced: that of an archive, say, cannot.
    fn check_is_here(&self) -> Result<(), Error> {
        match self.target.link_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::new(ErrorKind::NotHere, &self.path))
            }
            _ => Ok(()),
        }
    }

    /// Writes the lines that the repaired session does not contain.
    ///
    /// # Errors
    /// [`ErrorKind::Repair`]; the written files are removed then, except for those that the error names.
    fn write_rest(&self, path: &Path) -> Result<CreatedFiles<'_>, Error> {
        let mut beside = CreatedFiles::on(&*self.target);
        match self.add_rest(path, &mut beside) {
            Ok(()) => Ok(beside),
            Err(error) => Err(beside.remove(error)),
        }
    }

    fn add_rest(&self, path: &Path, beside: &mut CreatedFiles<'_>) -> Result<(), Error> {
        let files = self.rest(path)?;
        // Files and their maps have the same number. A repair that failed, or was undone, may have left the same files.
        let mut number = 0;
        let is_present = loop {
            let state = |(what, file): &(&str, NewFile)| {
                let path = beside_name(path, what, number);
                if !self.target.has_name(&path) {
                    return Ok(None);
                }
                has_same_bytes(file, &*self.target, &path).map(Some)
            };
            let states: io::Result<Vec<Option<bool>>> = files.iter().map(state).collect();
            let states = states.map_err(|error| Error::repair(path, error))?;
            if !states.contains(&Some(false)) {
                break states;
            }
            number += 1;
        };
        for ((what, file), is_present) in files.into_iter().zip(is_present) {
            if is_present.is_some() {
                continue;
            }
            let path = beside_name(path, what, number);
            let kept = file.keep(&path);
            kept.map_err(|error| Error::repair(&path, error))?;
            beside.add(&path);
        }
        Ok(())
    }

    /// Returns the files that the repaired session needs beside it, with what is appended to their names.
    fn rest(&self, path: &Path) -> Result<Vec<(&'static str, NewFile)>, Error> {
        let original = self.repair.original();
        let mut files = Vec::new();
        let mut keep = |what, write: &dyn Fn(&mut dyn Write) -> Result<(), Error>| {
            files.push((what, write_file(&*self.target, path, write)?));
            Ok::<(), Error>(())
        };
        if !self.repair.lost().is_empty() {
            let lost = self.repair.lost().iter().map(|lost| {
                let line = place_in_source(ObjectBuf::new(), &lost.range);
                let line = line.with("code", Json::from(lost.code.as_str()));
                (lost.range.clone(), line)
            });
            let lost: Vec<_> = lost.collect();
            keep("lost", &|out| copy_parts(original, &lost, out))?;
            keep("lost.json", &|out| write_map(path, &lost, out))?;
        }
        if let Some(compaction) = self.repair.compaction() {
            let moved = compaction.moved().iter().map(|moved| {
                let line = ObjectBuf::new().with("line", moved.line);
                let line = place_in_source(line, &moved.range);
                let line = line.with("type", moved.kind.name());
                (moved.range.clone(), line.with("why", moved.why.name()))
            });
            let moved: Vec<_> = moved.collect();
            keep("archive", &|out| copy_parts(compaction.base(), &moved, out))?;
            keep("archive.json", &|out| write_map(path, &moved, out))?;
        }
        if self.repair.foreign().next().is_some() {
            keep("foreign", &|out| {
                for entry in self.repair.foreign() {
                    let end = entry.offset() + entry.byte_len();
                    copy(original, entry.offset(), end, out)?;
                    out.write_all(b"\n")
                        .map_err(|error| Error::repair(path, error))?;
                }
                Ok(())
            })?;
        }
        Ok(files)
    }
}

/// Returns whether the file at `path` is a regular one with the bytes of `file`.
fn has_same_bytes(file: &NewFile, disk: &dyn Disk, path: &Path) -> io::Result<bool> {
    if !disk.link_metadata(path)?.is_file() {
        return Ok(false);
    }
    let (one, two) = (file.reader()?, disk.open_to_read(path)?);
    let len = one.metadata()?.len;
    Ok(len == two.metadata()?.len && same_start(&*one, &*two, len)?)
}

/// A part of a file that is kept, and what the map of the kept parts says about it.
type KeptPart = (Range<u64>, ObjectBuf);

fn place_in_source(line: ObjectBuf, range: &Range<u64>) -> ObjectBuf {
    line.with("offset", range.start)
        .with("len", range.end - range.start)
}

fn copy_parts(source: &Source, parts: &[KeptPart], out: &mut dyn Write) -> Result<(), Error> {
    let mut parts = parts.iter();
    parts.try_for_each(|(range, _)| copy(source, range.start, range.end, out))
}

/// Writes a line for each part, which also says at which byte of the kept parts it starts.
fn write_map(path: &Path, parts: &[KeptPart], out: &mut dyn Write) -> Result<(), Error> {
    let mut at = 0;
    for (range, line) in parts {
        let line = line.clone().with("at", at);
        at += range.end - range.start;
        writeln!(out, "{}", line.text()).map_err(|error| Error::repair(path, error))?;
    }
    Ok(())
}

/// Removes a folder that was made. Returns the error, which then names what is left.
fn remove_folder(disk: &dyn Disk, folder: &Path, error: Error) -> Error {
    match disk.remove_folder_with_content(folder) {
        Err(_) if disk.exists(folder) => error.with_left_over(vec![folder.to_owned()]),
        _ => error,
    }
}

/// Brings back the file that was last replaced by [`SessionRepair::replace`]. The repaired one gets
/// `.repaired` appended to its name; lines appended to it since are only there. Returns its path.
///
/// # Errors
/// [`ErrorKind::RepairRefused`] when there is no such file, or a process has the repaired one open
/// for writing; [`ErrorKind::Repair`] when the system fails, and both files have their names then;
/// [`ErrorKind::RepairStopped`] when it fails later: the earlier file has its name again, and [`Error::other_file`] is
/// the repaired one.
pub fn undo_repair(path: &Path) -> Result<PathBuf, Error> {
    undo_repair_on(&RealDisk, path)
}

/// Brings back the file on `disk` that was last replaced, as [`undo_repair`] does on the disk of this machine.
///
/// # Errors
/// As [`undo_repair`].
pub fn undo_repair_on(disk: &dyn Disk, path: &Path) -> Result<PathBuf, Error> {
    let undone = disk.undo_replacement(path);
    undone.map_err(|error| Error::exchange(path, error))
}

pub(crate) fn write_file(
    disk: &dyn Disk,
    path: &Path,
    write: impl Fn(&mut dyn Write) -> Result<(), Error>,
) -> Result<NewFile, Error> {
    let failed = |error| Error::repair(path, error);
    disk.remove_stale(folder_of(path));
    let file = disk.new_file(path).map_err(failed)?;
    let mut file = BufWriter::with_capacity(BLOCK_SIZE, file);
    write(&mut file)?;
    file.into_inner()
        .map_err(|error| failed(error.into_error()))
}

/// Copies the bytes from `from` to `to`.
pub(crate) fn copy(source: &Source, from: u64, to: u64, out: &mut dyn Write) -> Result<(), Error> {
    let failed = |error| Error::repair(source.path(), error);
    let end = source.each_block(from..to, BLOCK_SIZE, |_, bytes| {
        out.write_all(bytes).map_err(failed)
    })?;
    if end < to {
        return Err(failed(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(())
}

/// Returns `path` with `what` appended to its name, and a number unless that is 0.
fn beside_name(path: &Path, what: &str, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    match number {
        0 => name.push(format!(".{what}")),
        number => name.push(format!(".{number}.{what}")),
    }
    name.into()
}
