//! Removes live files, and only with a proof that the archive has them.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use transcript_storage::Metadata;

use crate::agent_files;
use crate::archive::Archive;
use crate::catalogue::VersionId;
use crate::error::{AtPath, Error, ErrorKind};
use crate::file_content::state_of;
use crate::home_files::find_home;
use crate::live_files::{LiveFile, LiveFiles, aside};
use crate::machines::on_machine;
use crate::names::{project_of, session_of};

/// The size of reads, in bytes.
const READ_SIZE: usize = 1 << 20;
/// The default minimum age of a version before its file may be removed.
const DEFAULT_HOLD: Duration = Duration::from_secs(7 * 86_400);

/// Options that select the live files to remove.
#[derive(Clone, Debug)]
pub struct PruneOptions {
    older_than: Duration,
    hold: Duration,
    removes: bool,
}

impl Default for PruneOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl PruneOptions {
    /// A dry run: returns the sessions that were not changed for 30 days and could be removed, and removes nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            older_than: Duration::from_secs(30 * 86_400),
            hold: DEFAULT_HOLD,
            removes: false,
        }
    }

    /// Takes sessions of which no file was changed for at least this time.
    #[must_use]
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = age;
        self
    }

    /// Removes only versions captured at least this time ago; the default is seven days. A shorter time leaves less of it to notice that
    /// the archive itself is lost.
    #[must_use]
    pub fn hold(mut self, time: Duration) -> Self {
        self.hold = time;
        self
    }

    /// Removes the files.
    #[must_use]
    pub fn remove(mut self, removes: bool) -> Self {
        self.removes = removes;
        self
    }
}

/// The result of a prune: the files that were removed, or could be.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Pruned {
    /// The sessions of which all files are proved to be in the archive. They are removed, if that was asked for.
    pub sessions: Vec<PrunedSession>,
    /// The sessions that are old enough and stay, with the reason.
    pub kept: Vec<KeptSession>,
    /// The errors of the system.
    pub problems: Vec<Error>,
}

/// A session that was removed, or could be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrunedSession {
    /// Its own file; if that is gone already, another one.
    pub path: PathBuf,
    /// The number of its files.
    pub files: u64,
    /// The number of their bytes.
    pub bytes: u64,
}

/// A session that stays.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptSession {
    /// The file for which there is no proof.
    pub path: PathBuf,
    /// Why.
    pub reason: KeepReason,
}

/// The reason why a file stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeepReason {
    /// It is not in the archive.
    NotArchived,
    /// It was captured too recently.
    Held,
    /// It differs from its last captured version.
    Changed,
    /// The archive does not give back its bytes.
    Unreadable,
    /// A process has it open for writing, or the system does not say.
    Open,
}

impl KeepReason {
    /// Returns the name of the reason, as the command prints it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NotArchived => "not archived",
            Self::Held => "captured less than seven days ago",
            Self::Changed => "changed since it was captured",
            Self::Unreadable => "the archive does not give it back",
            Self::Open => "open",
        }
    }
}

/// The reason why a file is not removed.
enum NotRemoved {
    Keep(KeepReason),
    Failed(Error),
}

impl From<Error> for NotRemoved {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Archive {
    /// Removes the files of old sessions in `root`, or, in a dry run, only names them. A file is removed only if its newest version was
    /// captured long enough ago, the archive gives back exactly its bytes, which are read and compared now, its time and its mode, and
    /// no process has it open for writing. The own file of a session goes last, and only if all others may go.
    ///
    /// A kill leaves a file removed, or there, or there under a name that starts with `.pruned-`, which the next capture or prune
    /// gives its name again; in the archive it is in any case.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`](crate::ErrorKind::Busy), [`ErrorKind::Encrypted`](crate::ErrorKind::Encrypted); when `root` cannot be read.
    pub fn prune(&mut self, root: &Path, options: &PruneOptions) -> Result<Pruned, Error> {
        self.check_readable()?;
        let _lock = self.lock()?;
        self.refresh()?;
        let live = LiveFiles::find_all(&*self.disk, root)?.on_machine(&self.layout);
        // The files next to the projects belong to the session of that id.
        let mut sessions: BTreeMap<&str, Vec<&LiveFile>> = BTreeMap::new();
        for file in &live.files {
            sessions
                .entry(session_of(&file.name))
                .or_default()
                .push(file);
        }
        let sessions = sessions.into_iter();
        let sessions = sessions.map(|(id, mut files)| {
            files.sort_by_key(|file| is_own(file, id));
            files
        });
        let mut pruned = self.prune_sessions(sessions.collect(), options);
        pruned.problems.extend(live.problems);
        Ok(pruned)
    }

    /// Removes files of old sessions in the home folder of another agent, as [`prune`](Self::prune) does. Only the files in `groups`
    /// are looked at, and the files beside them that belong to the same session. All files of a group go, or none: a session may
    /// need those of another one. What several sessions share stays, and so do databases.
    ///
    /// # Errors
    /// As there; [`ErrorKind::UnknownAgent`](crate::ErrorKind::UnknownAgent).
    pub fn prune_home(
        &mut self,
        agent: &str,
        home: &Path,
        groups: &[Vec<PathBuf>],
        options: &PruneOptions,
    ) -> Result<Pruned, Error> {
        if !agent_files::is_known(agent) {
            return Err(Error::new(ErrorKind::UnknownAgent, home));
        }
        self.check_readable()?;
        let _lock = self.lock()?;
        self.refresh()?;
        let live = find_home(&*self.disk, agent, home)?.on_machine(&self.layout);
        let is_of_session = |file: &&LiveFile| {
            let below = agent_files::in_home(&file.name).map(|(_, below)| below);
            let role = below.and_then(|below| agent_files::role_of(agent, below));
            role == Some(agent_files::FileRole::Session)
        };
        let files: Vec<&LiveFile> = live.files.iter().filter(is_of_session).collect();
        let numbered = groups.iter().enumerate();
        let numbered =
            numbered.flat_map(|(number, paths)| paths.iter().map(move |at| (at, number)));
        let group_of: HashMap<&PathBuf, usize> = numbered.collect();
        let mut of_session = HashMap::<&str, usize>::new();
        for file in &files {
            if let Some(number) = group_of.get(&file.path) {
                of_session.insert(session_of(&file.name), *number);
            }
        }
        let mut sessions = BTreeMap::<usize, Vec<&LiveFile>>::new();
        for file in &files {
            let own = group_of.get(&file.path);
            if let Some(number) = own.or_else(|| of_session.get(session_of(&file.name))) {
                sessions.entry(*number).or_default().push(file);
            }
        }
        let mut pruned = self.prune_sessions(sessions.into_values().collect(), options);
        pruned.problems.extend(live.problems);
        Ok(pruned)
    }

    /// Removes the files of sessions that are old and proved, each in the order of its files.
    fn prune_sessions(&self, sessions: Vec<Vec<&LiveFile>>, options: &PruneOptions) -> Pruned {
        let now = SystemTime::now();
        let mut pruned = Pruned::default();
        for files in sessions {
            let is_old = |file: &&LiveFile| {
                let modified = file.metadata.modified;
                let age = modified.and_then(|modified| now.duration_since(modified).ok());
                age.is_some_and(|age| age >= options.older_than)
            };
            if !files.iter().all(is_old) {
                continue;
            }
            match self.prune_session(&files, now, options) {
                Ok(session) => pruned.sessions.push(session),
                Err((path, NotRemoved::Keep(reason))) => {
                    pruned.kept.push(KeptSession { path, reason });
                }
                Err((_, NotRemoved::Failed(error))) => pruned.problems.push(error),
            }
        }
        pruned
    }

    fn prune_session(
        &self,
        files: &[&LiveFile],
        now: SystemTime,
        options: &PruneOptions,
    ) -> Result<PrunedSession, (PathBuf, NotRemoved)> {
        let mut session = PrunedSession {
            path: PathBuf::new(),
            files: 0,
            bytes: 0,
        };
        let mut proved = Vec::new();
        for file in files {
            let proof = self.prove(file, now, options);
            let version = proof.map_err(|stop| (file.path.clone(), stop))?;
            proved.push((file, version));
            session.path.clone_from(&file.path);
            session.files += 1;
            session.bytes += file.metadata.len;
        }
        if options.removes {
            for (file, version) in proved {
                let removed = self.remove_proved(file, version);
                removed.map_err(|stop| (file.path.clone(), stop))?;
            }
        }
        Ok(session)
    }

    /// Proves that the archive has a file, and returns the version.
    fn prove(
        &self,
        file: &LiveFile,
        now: SystemTime,
        options: &PruneOptions,
    ) -> Result<VersionId, NotRemoved> {
        let newest = self.catalogue.newest(&file.name);
        let id = newest.ok_or(NotRemoved::Keep(KeepReason::NotArchived))?;
        let age = now.duration_since(self.captured(id)).unwrap_or_default();
        if age < options.hold {
            return Err(NotRemoved::Keep(KeepReason::Held));
        }
        // Its time and mode come back with its bytes, or it is not the same file.
        let archived = self.version(id).map(|version| version.state.restored());
        if archived != Some(state_of(&file.metadata, now).restored()) {
            return Err(NotRemoved::Keep(KeepReason::Changed));
        }
        self.compare_whole(&file.path, id)?;
        self.check_closed(&file.path)?;
        Ok(id)
    }

    /// Compares every byte of a file with a version, which is read from the packs.
    fn compare_whole(&self, path: &Path, id: VersionId) -> Result<(), NotRemoved> {
        let changed = || NotRemoved::Keep(KeepReason::Changed);
        let version = self
            .version(id)
            .ok_or(NotRemoved::Keep(KeepReason::NotArchived))?;
        let file = self.disk.open_to_read(path).at(path)?;
        if file.metadata().at(path)?.len != version.len {
            return Err(changed());
        }
        let pieces = self.pieces(id);
        let pieces = pieces.map_err(|_| NotRemoved::Keep(KeepReason::Unreadable))?;
        let (mut one, mut other) = (vec![0; READ_SIZE], vec![0; READ_SIZE]);
        let mut at = 0;
        while at < version.len {
            let read = self.fill(&pieces, at, &mut one);
            let read = read.map_err(|_| NotRemoved::Keep(KeepReason::Unreadable))?;
            if read == 0 {
                return Err(NotRemoved::Keep(KeepReason::Unreadable));
            }
            let live = file.fill(at, &mut other[..read]).at(path)?;
            if one[..read] != other[..live] {
                return Err(changed());
            }
            at += read as u64;
        }
        Ok(())
    }

    /// Refuses a file that a process has open for writing.
    fn check_closed(&self, path: &Path) -> Result<(), NotRemoved> {
        let opened = self.disk.open(path, false);
        let open = NotRemoved::Keep(KeepReason::Open);
        match opened {
            Ok(opened) if opened.has_other_writer == Some(false) => Ok(()),
            Ok(_) => Err(open),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(open),
            Err(error) => Err(Error::io(path, error).into()),
        }
    }

    /// Removes a file that was proved, unless it changed in the meantime.
    ///
    /// # Errors
    /// The file has its name then. If it cannot get that back, the error names the other one, and the next capture or prune
    /// gives it back.
    fn remove_proved(&self, file: &LiveFile, id: VersionId) -> Result<(), NotRemoved> {
        let path = &file.path;
        // Under another name no process opens it; one that has it open is seen then.
        let aside = aside(path);
        let is_same = |found: &Metadata| {
            let known = &file.metadata;
            (found.len, found.modified, found.mode, found.identity)
                == (known.len, known.modified, known.mode, known.identity)
        };
        let remove = || -> Result<(), NotRemoved> {
            self.disk.rename_new(path, &aside).at(path)?;
            self.check_closed(&aside)?;
            let found = self.disk.metadata(&aside).at(&aside)?;
            if !is_same(&found) {
                return Err(NotRemoved::Keep(KeepReason::Changed));
            }
            self.compare_whole(&aside, id)?;
            Ok(self.disk.remove(&aside).at(&aside)?)
        };
        remove().or_else(|stop| {
            // A call may have failed after it did its work, so this depends on where the file is.
            let there = self.disk.identity(&aside).at(&aside)?;
            if there == Some(file.metadata.identity) {
                self.disk.rename_new(&aside, path).at(&aside)?;
            }
            Err(stop)
        })
    }
}

/// Returns whether a file is the own file of the session of this id.
fn is_own(file: &LiveFile, id: &str) -> bool {
    let project = project_of(&file.name);
    let (_, name) = on_machine(&file.name);
    project.is_some_and(|project| name == format!("projects/{project}/{id}.jsonl"))
}
