//! Which rollouts a store has, and how they are chained.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use transcript_format::object::Object;

use crate::Error;
use crate::dialect::Session;
use crate::lines;
use crate::source::{Store, name_of};
use crate::version::{Version, Versions};

use super::titles::Titles;

/// The folders of rollouts in the home folder.
pub(super) const FOLDERS: [&str; 2] = ["sessions", "archived_sessions"];

/// The endings of the names of rollouts that can be read: one that cannot must not hide the others.
const ENDINGS: &[&str] = if cfg!(feature = "zstd") {
    &[".jsonl", ".jsonl.zst"]
} else {
    &[".jsonl"]
};

/// The length of an id in the name of a file.
const ID_LEN: usize = 36;

/// Up to which ordinal a thread of the store holds a file; `Some(None)` when one holds all of it.
pub(super) type Held = Option<Option<u64>>;

/// The rollouts of a store.
#[derive(Debug)]
pub(crate) struct Files {
    pub(super) all: Vec<Rollout>,
    /// The file at which each thread continues: the newest that a revert began, or its first one.
    heads: BTreeMap<String, usize>,
    /// The file to which a base with each id refers.
    named: HashMap<String, usize>,
    /// What the threads of the store hold of each file.
    pub(super) held: Vec<Held>,
}

/// A rollout, as its name and its first record describe it.
#[derive(Debug)]
pub(super) struct Rollout {
    pub(super) path: PathBuf,
    /// The id of the thread.
    pub(super) thread: String,
    /// The id of the file, to which bases refer: that of the thread for its first file.
    pub(super) file: String,
    pub(super) base: Option<Base>,
}

/// The records that come before those of a file.
#[derive(Clone, Debug)]
pub(super) struct Base {
    /// The id of the file that has them.
    pub(super) file: String,
    /// The first ordinal of that file that does not belong to them.
    pub(super) end: u64,
}

/// A part of a chain: a file up to an ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) file: usize,
    pub(super) end: Option<u64>,
}

/// The files of a thread, oldest first.
pub(super) struct Chain {
    pub(super) segments: Vec<Segment>,
    /// Whether a base is missing or comes back to itself.
    pub(super) is_broken: bool,
}

impl Files {
    pub(crate) fn of(store: Store<'_>) -> Result<Self, Error> {
        let paths = store.files(&FOLDERS, ENDINGS)?;
        let all = paths.into_iter().map(|path| Rollout::of(store, path));
        Ok(Self::new(all.collect()))
    }

    fn new(all: Vec<Rollout>) -> Self {
        let mut files = Self {
            heads: BTreeMap::new(),
            named: HashMap::new(),
            held: Vec::new(),
            all,
        };
        for (at, rollout) in files.all.iter().enumerate() {
            let head = files.heads.entry(rollout.thread.clone()).or_insert(at);
            if rollout.continues() >= files.all[*head].continues() {
                *head = at;
            }
            // Codex reads the plain file when there is a compressed one as well.
            let named = files.named.entry(rollout.file.clone()).or_insert(at);
            if rollout.is_plain() >= files.all[*named].is_plain() {
                *named = at;
            }
        }
        files.held = files.held_by_threads();
        files
    }

    pub(super) fn sessions(&self) -> Vec<Session> {
        let mut sessions: Vec<Session> = Vec::new();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for rollout in &self.all {
            let place = *places.entry(&rollout.thread).or_insert_with(|| {
                sessions.push(Session {
                    id: rollout.thread.clone(),
                    files: Vec::new(),
                });
                sessions.len() - 1
            });
            sessions[place].files.push(rollout.path.clone());
        }
        sessions
    }

    /// Returns the file at which a thread continues.
    pub(super) fn head(&self, thread: &str) -> Option<usize> {
        self.heads.get(thread).copied()
    }

    /// Returns what comes before the records of a file, if its base is there.
    fn before(&self, file: usize) -> Option<Segment> {
        let base = self.all[file].base.as_ref()?;
        Some(Segment {
            file: *self.named.get(&base.file)?,
            end: Some(base.end),
        })
    }

    pub(super) fn chain(&self, head: usize) -> Chain {
        let mut segments = vec![Segment {
            file: head,
            end: None,
        }];
        let mut seen = BTreeSet::from([head]);
        let mut last = head;
        while let Some(segment) = self
            .before(last)
            .filter(|segment| seen.insert(segment.file))
        {
            last = segment.file;
            segments.push(segment);
        }
        segments.reverse();
        Chain {
            segments,
            is_broken: self.all[last].base.is_some(),
        }
    }

    /// Returns what the chains of all threads hold. What comes before a file is the same in each chain, so it is looked at once.
    fn held_by_threads(&self) -> Vec<Held> {
        let mut held: Vec<Held> = vec![None; self.all.len()];
        for head in self.heads.values() {
            let mut next = Some(Segment {
                file: *head,
                end: None,
            });
            while let Some(Segment { file, end }) = next {
                let known = held[file];
                held[file] = match (known, end) {
                    (Some(None), _) | (_, None) => Some(None),
                    (Some(Some(known)), Some(end)) => Some(Some(known.max(end))),
                    (None, Some(end)) => Some(Some(end)),
                };
                next = self.before(file).filter(|_| known.is_none());
            }
        }
        held
    }

    /// Returns for each thread a number that changes with what decides its session besides its files: which other threads hold
    /// them, and its title.
    pub(crate) fn versions(&self, titles: &Titles) -> Versions {
        let mut of_threads: BTreeMap<&str, Vec<(&Path, Held)>> = BTreeMap::new();
        for (rollout, held) in self.all.iter().zip(&self.held) {
            let own = of_threads.entry(&rollout.thread).or_default();
            own.push((&rollout.path, *held));
        }
        let chains = self.versions_of_chains();
        let versions = of_threads.into_iter().map(|(thread, own)| {
            let chain = self.head(thread).and_then(|head| chains[head]);
            let version = Version::of(&(own, chain, titles.of(thread)));
            (thread.to_owned(), version)
        });
        versions.collect()
    }

    /// Returns for each file a number that changes with its chain. As for [`Self::held_by_threads`], each file is looked at once.
    fn versions_of_chains(&self) -> Vec<Option<u64>> {
        // A chain that comes back to itself changes with everything.
        let all = Version::of(&self.held).hash;
        let mut known = vec![None; self.all.len()];
        for head in self.heads.values() {
            let mut walk = Vec::new();
            let mut next = Some(*head);
            while let Some(file) = next.filter(|file| known[*file].is_none()) {
                known[file] = Some(all);
                walk.push(file);
                next = self.before(file).map(|segment| segment.file);
            }
            let mut chain = next.and_then(|file| known[file]);
            for file in walk.into_iter().rev() {
                let end = self.before(file).map(|segment| segment.end);
                let path = &self.all[file].path;
                chain = Some(Version::of(&(path, self.held[file], end, chain)).hash);
                known[file] = chain;
            }
        }
        known
    }
}

impl Rollout {
    fn of(store: Store<'_>, path: PathBuf) -> Self {
        let (named_thread, file) = ids_in_name(&path);
        let header = lines::header(store, &path, |line| {
            let payload = line.object("payload")?;
            let is_meta = line.str("type")? == "session_meta";
            is_meta.then(|| {
                let id = payload.str("id").map(String::from);
                (
                    id,
                    payload
                        .object("history_base")
                        .and_then(|base| Base::of(&base)),
                )
            })
        });
        let (thread, base) = header.unwrap_or_default();
        let thread = thread.unwrap_or_else(|| named_thread.to_owned());
        // A renamed file has the id of its thread.
        let file = file.map_or_else(|| thread.clone(), str::to_owned);
        Self {
            thread,
            file,
            base,
            path,
        }
    }

    /// Returns the order of the files of a thread: the greatest is the one at which it continues.
    fn continues(&self) -> (Option<&String>, bool) {
        let revert = (self.file != self.thread).then_some(&self.file);
        (revert, self.is_plain())
    }

    fn is_plain(&self) -> bool {
        !name_of(&self.path).ends_with(".zst")
    }
}

impl Base {
    fn of(base: &Object<'_>) -> Option<Self> {
        Some(Self {
            file: base.str("thread_id")?.into_owned(),
            end: base.u64("end_ordinal_exclusive")?,
        })
    }
}

/// Returns the id of the thread and the id of the file in the name `rollout-<time>-<thread>[_<file>].jsonl[.zst]`; the stem of
/// another name stands for the thread.
fn ids_in_name(path: &Path) -> (&str, Option<&str>) {
    let name = path.file_name().and_then(|name| name.to_str());
    let stem = name
        .and_then(|name| name.split('.').next())
        .unwrap_or_default();
    let (first, file) = match stem.rsplit_once('_') {
        Some((first, file)) if file.len() == ID_LEN => (first, Some(file)),
        _ => (stem, None),
    };
    let thread = first
        .len()
        .checked_sub(ID_LEN)
        .and_then(|at| first.get(at..));
    (thread.unwrap_or(first), file)
}
