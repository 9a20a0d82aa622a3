//! Conversions that were made: each is made once for the same source files, and few are kept.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use transcript_storage::{FileKind, Identity, Metadata, ReadDisk};

use super::catalogue::Shown;
use crate::codex::{Codex, Files};
use crate::conversation::Conversation;
use crate::dialect::Policy;
use crate::entries::{Entries, Subject};
use crate::source::Store;
use crate::{Agent, Error, dialect};

/// The number of conversions that are kept. The sizes of all are.
const MAX_KEPT: usize = 8;

/// How long the list of rollouts is used: a list of sessions converts many, and each would list all files again.
const MAX_AGE: Duration = Duration::from_secs(2);

/// A session as a file.
#[derive(Debug)]
pub(super) struct Converted {
    pub(super) entries: Entries,
    /// The offset of the end of each line.
    pub(super) ends: Vec<u64>,
}

impl Converted {
    pub(super) fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or_default()
    }
}

/// What is known about a file after its conversion was dropped.
#[derive(Clone, Debug)]
struct Known {
    /// The state of the source files that it was made from.
    sources: Vec<(PathBuf, Option<Metadata>)>,
    len: u64,
    /// The hash of all its bytes.
    hash: u64,
    /// How often it was not its earlier self with lines appended.
    generation: u32,
}

#[derive(Debug, Default)]
struct Slot {
    known: Option<Known>,
    converted: Option<Arc<Converted>>,
}

/// The conversions of one home folder.
#[derive(Debug)]
pub(super) struct Conversions {
    disk: Arc<dyn ReadDisk>,
    agent: Agent,
    home: PathBuf,
    policy: Policy,
    slots: Mutex<HashMap<String, Arc<Mutex<Slot>>>>,
    /// The slots that have a conversion, the one that was used last at the end.
    kept: Mutex<Vec<(String, Arc<Mutex<Slot>>)>>,
    /// The rollouts of Codex, and when they were listed.
    rollouts: Mutex<Option<(Instant, Arc<Files>)>>,
}

impl Conversions {
    pub(super) fn new(
        disk: Arc<dyn ReadDisk>,
        agent: Agent,
        home: PathBuf,
        policy: Policy,
    ) -> Self {
        Self {
            disk,
            agent,
            home,
            policy,
            slots: Mutex::default(),
            kept: Mutex::default(),
            rollouts: Mutex::default(),
        }
    }

    /// Returns a session as a file, as its source files are now.
    pub(super) fn convert(&self, shown: &Shown) -> io::Result<Arc<Converted>> {
        let slot = self.slot(shown);
        let converted = self.refreshed(&mut lock(&slot), shown)?;
        self.keep(shown, slot);
        Ok(converted)
    }

    /// Returns the properties of the file of a session.
    pub(super) fn metadata(&self, shown: &Shown) -> io::Result<Metadata> {
        let slot = self.slot(shown);
        let mut locked = lock(&slot);
        let is_known = locked
            .known
            .as_ref()
            .is_some_and(|known| self.is_current(known));
        if !is_known {
            self.refreshed(&mut locked, shown)?;
        }
        let known = locked.known.clone();
        drop(locked);
        if !is_known {
            self.keep(shown, slot);
        }
        let known = known.ok_or(io::ErrorKind::NotFound)?;
        Ok(known.metadata(shown))
    }

    fn slot(&self, shown: &Shown) -> Arc<Mutex<Slot>> {
        Arc::clone(lock(&self.slots).entry(shown.id.clone()).or_default())
    }

    fn refreshed(&self, slot: &mut Slot, shown: &Shown) -> io::Result<Arc<Converted>> {
        let is_current = slot
            .known
            .as_ref()
            .is_some_and(|known| self.is_current(known));
        if let Some(converted) = slot.converted.as_ref().filter(|_| is_current) {
            return Ok(Arc::clone(converted));
        }
        // Looked at before they are read: what changes meanwhile makes them differ.
        let mut sources = self.state_of(shown.files.iter().chain(&self.side_files(shown)));
        let conversation = self.read(shown).map_err(io_error)?;
        let others: Vec<PathBuf> = conversation
            .sources
            .iter()
            .map(|source| source.path.clone())
            .filter(|path| sources.iter().all(|(known, _)| known != path))
            .collect();
        sources.extend(self.state_of(others.iter()));
        let entries = Entries::new(conversation, shown.subject());
        let before = slot.known.as_ref();
        let (ends, hash, continues) = measure(&entries, before).map_err(io_error)?;
        let generation = match before {
            Some(before) => before.generation + u32::from(!continues),
            None => 0,
        };
        let converted = Arc::new(Converted { entries, ends });
        slot.known = Some(Known {
            sources,
            len: converted.len(),
            hash,
            generation,
        });
        slot.converted = Some(Arc::clone(&converted));
        Ok(converted)
    }

    /// Reads a session. No other file is looked at, except by Codex, whose files refer to each other.
    fn read(&self, shown: &Shown) -> Result<Conversation, Error> {
        let only = match &shown.files[..] {
            [file] => file,
            _ => &self.home,
        };
        let store = |path| Store {
            disk: &*self.disk,
            path,
        };
        match self.agent {
            Agent::Codex => {
                let (files, store) = (self.rollouts()?, store(&self.home));
                Codex::read_of(&files, store, &shown.id, self.policy)
            }
            agent => dialect(agent).read(store(only), &shown.id, self.policy),
        }
    }

    /// Returns the rollouts of the home folder of Codex, as they were a short time ago.
    fn rollouts(&self) -> Result<Arc<Files>, Error> {
        let mut known = lock(&self.rollouts);
        if let Some((time, files)) = &*known
            && time.elapsed() < MAX_AGE
        {
            return Ok(Arc::clone(files));
        }
        let store = Store {
            disk: &*self.disk,
            path: &self.home,
        };
        let files = Arc::new(Files::of(store)?);
        *known = Some((Instant::now(), Arc::clone(&files)));
        Ok(files)
    }

    /// Drops the conversion that was used longest ago if there are too many.
    fn keep(&self, shown: &Shown, slot: Arc<Mutex<Slot>>) {
        let dropped = {
            let mut kept = lock(&self.kept);
            kept.retain(|(id, _)| *id != shown.id);
            kept.push((shown.id.clone(), slot));
            (kept.len() > MAX_KEPT).then(|| kept.remove(0))
        };
        // Outside of the lock: another thread may be converting into the slot, and waits for nothing here.
        if let Some((_, slot)) = dropped {
            lock(&slot).converted = None;
        }
    }

    fn is_current(&self, known: &Known) -> bool {
        let paths = known.sources.iter().map(|(path, _)| path);
        self.state_of(paths) == known.sources
    }

    fn state_of<'p>(
        &self,
        paths: impl Iterator<Item = &'p PathBuf>,
    ) -> Vec<(PathBuf, Option<Metadata>)> {
        let state = |path: &PathBuf| (path.clone(), self.disk.metadata(path).ok());
        paths.map(state).collect()
    }

    /// Returns the files beside those of a session that say something about it, such as its title.
    fn side_files(&self, shown: &Shown) -> Vec<PathBuf> {
        let folder = shown.files.first().and_then(|file| file.parent());
        match self.agent {
            Agent::Codex => vec![self.home.join("session_index.jsonl")],
            Agent::Copilot => folder
                .map(|folder| folder.join("workspace.yaml"))
                .into_iter()
                .collect(),
            _ => Vec::new(),
        }
    }
}

impl Known {
    fn metadata(&self, shown: &Shown) -> Metadata {
        let sources = self.sources.iter().filter_map(|(_, metadata)| *metadata);
        let newest = sources.clone().max_by_key(|source| source.modified);
        let first = self
            .sources
            .iter()
            .find(|(path, _)| shown.files.first() == Some(path));
        let number = first.and_then(|(_, found)| found.as_ref()?.identity.number());
        Metadata {
            kind: FileKind::File,
            len: self.len,
            modified: newest.and_then(|newest| newest.modified),
            changed: sources.filter_map(|source| source.changed).max(),
            mode: None,
            identity: Identity::of_file(number, Some(created(shown, self.generation))),
        }
    }
}

/// Returns a time that distinguishes the file of a session from its source and from its own earlier self, whose number it has.
fn created(shown: &Shown, generation: u32) -> SystemTime {
    let mut hasher = DefaultHasher::new();
    hasher.write(shown.id.as_bytes());
    // In the first second of 1970, in which no real file was created.
    let nanos = hasher.finish() % 1_000_000;
    UNIX_EPOCH + Duration::from_nanos(nanos * 1000 + u64::from(generation % 1000))
}

/// Writes all lines once, and returns where each ends, the hash of all bytes, and whether the file continues what it was before.
fn measure(entries: &Entries, before: Option<&Known>) -> Result<(Vec<u64>, u64, bool), Error> {
    let mut ends = Vec::with_capacity(entries.len());
    let mut hasher = DefaultHasher::new();
    let mut continues = before.is_none_or(|before| before.len == 0);
    let mut line = Vec::new();
    let mut end = 0;
    for at in 0..entries.len() {
        line.clear();
        entries.write(at, &mut line)?;
        hasher.write(&line);
        end += line.len() as u64;
        ends.push(end);
        continues |=
            before.is_some_and(|before| before.len == end && before.hash == hasher.finish());
    }
    Ok((ends, hasher.finish(), continues))
}

impl Shown {
    fn subject(&self) -> Subject<'_> {
        Subject {
            session_id: &self.session_id,
            agent_id: self.agent_id.as_deref(),
            elsewhere: &self.of_subagents,
        }
    }
}

/// A panic of another thread leaves at most a conversion that is made again.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn io_error(error: Error) -> io::Error {
    match error {
        Error::Io { error, path } => {
            io::Error::new(error.kind(), format!("{}: {error}", Path::display(&path)))
        }
        error @ Error::NoSession { .. } => io::Error::new(io::ErrorKind::NotFound, error),
        error => io::Error::other(error),
    }
}
