//! Puts archived files back, and never over a file.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use transcript_storage::outside_names::{place_of, safe_mode};
use transcript_storage::{Disk, ReadDisk, is_absent, parallel};

use crate::agent_files::in_home;
use crate::archive::Archive;
use crate::catalogue::{Piece, VersionId};
use crate::error::{AtPath, Error, ErrorKind, Existing};
use crate::files::{append_all, remove_if_there};
use crate::machines::on_machine;
use crate::names::{is_own, is_own_of, project_of, session_of};
use crate::read_disk::modified;
use crate::record::hash;

/// The maximum number of sessions that are restored in parallel. Most of the time is spent waiting for the disk.
const MAX_PARALLEL_SESSIONS: NonZeroUsize = NonZeroUsize::new(8).unwrap();
/// The size of writes, in bytes.
const WRITE_SIZE: usize = 1 << 20;

/// Options that select the sessions to restore.
#[derive(Clone, Debug, Default)]
pub struct RestoreOptions {
    sessions: Option<Vec<(String, String)>>,
    pub(crate) files: Option<Vec<String>>,
    pub(crate) as_of: Option<SystemTime>,
    pub(crate) machine: Option<String>,
    renewed: Option<(SystemTime, SystemTime)>,
}

impl RestoreOptions {
    /// Restores all sessions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Restores only these sessions: the names of their project folders, and their ids.
    #[must_use]
    pub fn sessions(mut self, sessions: Vec<(String, String)>) -> Self {
        self.sessions = Some(sessions);
        self
    }

    /// Restores only these files of an agent, by their paths below its home folder with `/` between names, what is in folders of
    /// these names, and files that all sessions need, if they are gone.
    #[must_use]
    pub fn files(mut self, files: Vec<String>) -> Self {
        self.files = Some(files);
        self
    }

    /// Restores only what this machine captured, from an archive in a bucket. Otherwise a session that several machines captured is that
    /// of the machine with the longest file of it, and of files as long, that which was captured last.
    #[must_use]
    pub fn machine(mut self, name: &str) -> Self {
        self.machine = Some(name.to_owned());
        self
    }

    /// Returns whether a file is of a machine that is meant.
    pub(crate) fn is_of_machine(&self, name: &str) -> bool {
        let (machine, _) = on_machine(name);
        self.machine.is_none() || self.machine.as_deref() == machine
    }

    /// Restores each file as it was captured last until then; not at all if it was captured only later.
    #[must_use]
    pub fn as_of(mut self, time: SystemTime) -> Self {
        self.as_of = Some(time);
        self
    }

    /// Gives files that were last changed before the time `oldest` the time `now`. Clients delete sessions by the times of
    /// their files.
    #[must_use]
    pub fn renew(mut self, oldest: SystemTime, now: SystemTime) -> Self {
        self.renewed = Some((oldest, now));
        self
    }

    /// Returns the time that a file gets.
    fn time(&self, modified: Option<SystemTime>) -> Option<SystemTime> {
        match self.renewed {
            Some((oldest, now)) if modified.is_some_and(|modified| modified < oldest) => Some(now),
            _ => modified,
        }
    }
}

/// The result of a restore.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Restored {
    /// The files of sessions that were written; of another agent, all its files.
    pub sessions: Vec<PathBuf>,
    /// The number of all files that were written.
    pub files: u64,
    /// The number of their bytes.
    pub bytes: u64,
    /// The number of files that were there already, with the same bytes.
    pub present: u64,
    /// The number of files that belong next to the folder of projects, and were omitted because the one to write to has
    /// another name than `projects`.
    pub omitted: u64,
    /// The files that were not restored, and the reasons. Of a session whose own file is refused nothing is restored.
    pub problems: Vec<Error>,
    /// The folders that were missing for files which were not restored, each after those below it.
    pub(crate) unused: Vec<PathBuf>,
}

impl Restored {
    /// Adds the result of another restore.
    pub fn add(&mut self, other: Self) {
        self.sessions.extend(other.sessions);
        self.files += other.files;
        self.bytes += other.bytes;
        self.present += other.present;
        self.omitted += other.omitted;
        self.problems.extend(other.problems);
        self.unused.extend(other.unused);
    }
}

/// A project, if the files are in one, and the id of a session.
type SessionKey<'a> = (Option<&'a str>, &'a str);

/// Returns the project and the session of a file, by its path in the archive.
fn key_of(name: &str) -> SessionKey<'_> {
    (project_of(name), session_of(name))
}

impl Archive {
    /// Writes the newest version of archived files to `root`, a folder of projects, with their times and modes; what lay
    /// next to the projects goes next to `root`, if that is named `projects`. A file that exists is never changed.
    ///
    /// # Errors
    /// [`ErrorKind::Encrypted`]; when `root` cannot be read. Everything else is one of [`Restored::problems`].
    pub fn restore(&self, root: &Path, options: &RestoreOptions) -> Result<Restored, Error> {
        self.check_readable()?;
        let in_use = ids_in(&*self.disk, root)?;
        let mut refused = Vec::new();
        let sessions = self.wanted(root, options, &mut refused);
        let sessions: Vec<_> = sessions.into_iter().collect();
        let all = parallel::map(&sessions, Some(MAX_PARALLEL_SESSIONS), || {
            |session| self.restore_session(root, session, &in_use, options)
        });
        let mut restored = Restored::default();
        for of_session in all {
            restored.add(of_session);
        }
        restored.problems.extend(refused);
        Ok(self.finish_restore(restored))
    }

    /// Removes folders that were made in vain, and sorts the result.
    pub(crate) fn finish_restore(&self, mut restored: Restored) -> Restored {
        // All sessions are restored, so no files are made in them any more.
        for folder in &restored.unused {
            // Fails, as it should, if something is in it.
            let _ = self.disk.remove_folder(folder);
        }
        restored.sessions.sort();
        restored
            .problems
            .sort_by(|one, other| one.path().cmp(other.path()));
        restored
    }

    /// Returns the files to restore, by project and session. Of a session that was moved, only those of the project that has
    /// all of it. Of different files with one id, that which was captured last: the others are refused.
    fn wanted<'a>(
        &'a self,
        root: &Path,
        options: &RestoreOptions,
        refused: &mut Vec<Error>,
    ) -> BTreeMap<SessionKey<'a>, Vec<(&'a str, VersionId)>> {
        let mut files = Vec::new();
        for (name, versions) in &self.catalogue.files {
            if in_home(name).is_some() || !options.is_of_machine(name) {
                continue;
            }
            let is_early = |version: &&VersionId| {
                let captured = self.captured(**version);
                options.as_of.is_none_or(|time| captured <= time)
            };
            files.extend(
                versions
                    .iter()
                    .rev()
                    .find(is_early)
                    .map(|version| (&**name, *version)),
            );
        }
        let left = self.left_behind(files.iter().copied());
        // The id of a session means the session wherever it was at the time.
        let moved = self.newest_left_behind();
        let is_wanted = |name: &str| {
            options.sessions.as_ref().is_none_or(|wanted| {
                let (project, id) = key_of(name);
                wanted.iter().any(|(of, session)| {
                    session == id
                        && (project.is_none_or(|project| project == of)
                            || moved.iter().any(|own| is_own_of(own, name)))
                })
            })
        };
        files.retain(|(name, _)| is_wanted(name) && !left.contains(name));
        self.retain_one_machine(&mut files);
        let mut owned = HashSet::new();
        let mut last = HashMap::<&str, (&str, VersionId)>::new();
        for own in files.iter().copied().filter(|(name, _)| is_own(name)) {
            owned.insert(key_of(own.0));
            let known = last.entry(session_of(own.0)).or_insert(own);
            if self.captured(known.1) < self.captured(own.1) {
                *known = own;
            }
        }
        let mut sessions = BTreeMap::<SessionKey<'a>, Vec<_>>::new();
        for (name, version) in files {
            let (project, id) = key_of(name);
            let other = last.get(id).map(|(other, _)| *other);
            let is_other = other.is_some_and(|other| project_of(other) != project);
            if !(is_other && owned.contains(&(project, id))) {
                sessions
                    .entry((project, id))
                    .or_default()
                    .push((name, version));
            } else if is_own(name)
                && let (Ok(Some(path)), Some(Ok(Some(other)))) = (
                    self.target(root, name),
                    other.map(|other| self.target(root, other)),
                )
            {
                refused.push(Error::new(ErrorKind::IdInUse(other), &path));
            }
        }
        sessions
    }

    /// Keeps of files that several machines captured at the same place those of one machine: of a session, that with its longest file, as
    /// sessions grow and the clocks of machines differ.
    fn retain_one_machine(&self, files: &mut Vec<(&str, VersionId)>) {
        let rank = |version: VersionId| {
            let len = self.version(version).map_or(0, |version| version.len);
            (len, self.captured(version))
        };
        let mut longest = HashMap::<SessionKey<'_>, (&str, VersionId)>::new();
        for own in files.iter().copied().filter(|(name, _)| is_own(name)) {
            let known = longest.entry(key_of(own.0)).or_insert(own);
            if rank(known.1) < rank(own.1) {
                *known = own;
            }
        }
        let is_chosen = |name: &str| {
            let own = longest.get(&key_of(name));
            own.is_some_and(|own| on_machine(own.0).0 == on_machine(name).0)
        };
        let mut chosen = HashMap::<&str, (&str, VersionId)>::new();
        for file in files.iter().copied() {
            let known = chosen.entry(on_machine(file.0).1).or_insert(file);
            let captured = |file: (&str, VersionId)| (is_chosen(file.0), self.captured(file.1));
            if captured(*known) < captured(file) {
                *known = file;
            }
        }
        files.retain(|file| chosen.get(on_machine(file.0).1) == Some(file));
    }

    /// Restores the files of a session: in a project, or those next to the projects.
    fn restore_session(
        &self,
        root: &Path,
        ((project, id), files): &(SessionKey<'_>, Vec<(&str, VersionId)>),
        in_use: &HashMap<String, Vec<PathBuf>>,
        options: &RestoreOptions,
    ) -> Restored {
        let mut restored = Restored::default();
        let own = project.map(|project| format!("projects/{project}/{id}.jsonl"));
        let is_own = |name: &str| own.as_deref() == Some(on_machine(name).1);
        let mut files = files.clone();
        // The own file of a session comes last: without it, a client does not see the rest.
        files.sort_by_key(|(name, _)| is_own(name));
        if let Some(project) = project {
            // Clients do not resume an id that they find in two projects, so the session there would be lost, too.
            let others = in_use.get(*id).into_iter().flatten();
            let mut others = others.filter(|other| other.parent() != Some(&root.join(project)));
            if let Some(other) = others.next() {
                let path = root.join(project).join(format!("{id}.jsonl"));
                let kind = ErrorKind::IdInUse(other.clone());
                restored.problems.push(Error::new(kind, &path));
                return restored;
            }
            // Refused before anything of the session is written.
            if let Some((name, version)) = files.last().filter(|last| is_own(last.0))
                && let Err(error) = self.target(root, name).and_then(|path| match path {
                    Some(path) => self.existing(&path, *version).map(drop),
                    None => Ok(()),
                })
            {
                restored.problems.push(error);
                return restored;
            }
        }
        for (name, version) in files {
            let path = match self.target(root, name) {
                Ok(Some(path)) => path,
                Ok(None) => {
                    restored.omitted += 1;
                    continue;
                }
                Err(error) => {
                    restored.problems.push(error);
                    continue;
                }
            };
            // Read before the write makes them: a file that fails must leave no empty folders.
            let missing = self.missing_folders(&path);
            match self.restore_file(&path, version, options) {
                Ok(None) => restored.present += 1,
                Ok(Some(bytes)) => {
                    restored.files += 1;
                    restored.bytes += bytes;
                    if is_own(name) {
                        restored.sessions.push(path);
                    }
                }
                Err(error) => {
                    restored.problems.push(error);
                    restored.unused.extend(missing);
                }
            }
        }
        restored
    }

    /// Returns the folders of a file that are not there, each after those below it.
    pub(crate) fn missing_folders(&self, path: &Path) -> Vec<PathBuf> {
        let above = path.ancestors().skip(1);
        let is_missing = |folder: &&Path| {
            let found = self.disk.link_metadata(folder);
            found.is_err_and(|error| is_absent(&error))
        };
        above.take_while(is_missing).map(Path::to_owned).collect()
    }

    /// Returns where a file is restored; `None` if nowhere below this root.
    fn target(&self, root: &Path, name: &str) -> Result<Option<PathBuf>, Error> {
        let in_archive = || self.layout.virtual_path(name);
        let place = place_of(&*self.disk, root, on_machine(name).1);
        place.at(&in_archive())?.map_err(|refusal| {
            let kind = ErrorKind::RefusedName(refusal);
            Error::new(kind, &in_archive())
        })
    }

    /// Returns when a version was captured.
    pub(crate) fn captured(&self, version: VersionId) -> SystemTime {
        let millis = self.version(version).map_or(0, |version| version.captured);
        UNIX_EPOCH + Duration::from_millis(u64::try_from(millis).unwrap_or_default())
    }

    /// Compares a version with the file at a path: no file, or the same bytes.
    pub(crate) fn existing(&self, path: &Path, version: VersionId) -> Result<bool, Error> {
        let found = match self.disk.link_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            found => found.at(path)?,
        };
        let other = |kind| Err(Error::new(ErrorKind::Exists(kind), path));
        let archived = self.version(version).map_or(0, |version| version.len);
        if !found.is_file() || found.len < archived {
            return other(Existing::Other);
        }
        let file = self.disk.open_to_read(path).at(path)?;
        let pieces = self.pieces(version).at(path)?;
        let (mut one, mut two) = (vec![0; WRITE_SIZE], vec![0; WRITE_SIZE]);
        let mut at = 0;
        while at < archived {
            let read = self.fill(&pieces, at, &mut one).at(path)?;
            let of_file = file.fill(at, &mut two[..read]).at(path)?;
            if read == 0 || one[..read] != two[..of_file] {
                return other(Existing::Other);
            }
            at += read as u64;
        }
        if found.len == archived {
            Ok(true)
        } else {
            // A longer file that starts with the archived bytes is the session itself, continued since; it has its own error.
            other(Existing::Longer)
        }
    }

    /// Writes a version to a new file. Returns `None` if it is there already.
    ///
    /// # Errors
    /// Nothing has the name then, or the whole file has it: when only the sync of its folder failed. The temporary file is
    /// gone, unless it cannot be removed; then the next restore of the file removes it.
    pub(crate) fn restore_file(
        &self,
        path: &Path,
        id: VersionId,
        options: &RestoreOptions,
    ) -> Result<Option<u64>, Error> {
        if self.existing(path, id)? {
            return Ok(None);
        }
        let version = self
            .version(id)
            .ok_or_else(|| Error::new(ErrorKind::Damaged("its version is missing".into()), path))?;
        // A name that no client takes for a session. Forks remove such a file if a kill left it here.
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let [a, b, c, ..] = hash(name);
        let new = path.with_file_name(format!(".transcript-{a:02x}{b:02x}{c:02x}"));
        let pieces = self.pieces(id).at(path)?;
        let written = self.write(&new, &pieces, version.len);
        let placed = written.and_then(|()| {
            let state = &version.state;
            // Before the rename, so that no crash leaves a file of this name with the time and mode of the restore.
            self.disk
                .set_properties(
                    &new,
                    options.time(modified(state)),
                    state.mode.map(safe_mode),
                )
                .at(&new)?;
            match self.disk.rename_new(&new, path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    Err(Error::new(ErrorKind::Exists(Existing::Other), path))
                }
                placed => placed.at(path),
            }
        });
        if let Err(error) = placed {
            // The first error is the one to report.
            let _ = remove_if_there(&*self.disk, &new);
            return Err(error);
        }
        Ok(Some(version.len))
    }

    fn write(&self, path: &Path, pieces: &[Piece], len: u64) -> Result<(), Error> {
        // A killed restore leaves this file: its name comes from the hash of the target's name, so it is the same each time.
        remove_if_there(&*self.disk, path).at(path)?;
        let file = self.disk.open(path, true).at(path)?.file;
        let mut at = 0;
        let mut buffer = vec![0; WRITE_SIZE];
        while at < len {
            let read = self.fill(pieces, at, &mut buffer).at(path)?;
            if read == 0 {
                let what = "the end of the file is missing in the archive";
                return Err(Error::new(ErrorKind::Damaged(what.into()), path));
            }
            append_all(&*file, &buffer[..read]).at(path)?;
            at += read as u64;
        }
        file.sync().at(path)
    }
}

/// Returns the files of the sessions in all projects, by id.
fn ids_in(disk: &dyn Disk, root: &Path) -> Result<HashMap<String, Vec<PathBuf>>, Error> {
    let list = |folder: &Path| match ReadDisk::list(disk, folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries
            .at(folder)?
            .collect::<io::Result<Vec<_>>>()
            .at(folder),
    };
    let mut ids = HashMap::<String, Vec<PathBuf>>::new();
    for project in list(root)? {
        let folder = root.join(&project.name);
        if !disk.has_folder(&folder).at(&folder)? {
            continue;
        }
        for file in list(&folder)? {
            let name = file.name.to_string_lossy();
            if let Some(id) = name.strip_suffix(".jsonl") {
                ids.entry(id.to_owned())
                    .or_default()
                    .push(folder.join(&file.name));
            }
        }
    }
    Ok(ids)
}
