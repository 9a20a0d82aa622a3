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

/// The rollouts of a store.
#[derive(Debug)]
pub(crate) struct Files {
    pub(super) all: Vec<Rollout>,
    /// The places of the files of each thread.
    of_threads: HashMap<String, Vec<usize>>,
    /// The places of the files with each id: a compressed one may lie beside a plain one.
    of_ids: HashMap<String, Vec<usize>>,
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
        let all: Vec<Rollout> = all.collect::<Result<_, _>>()?;
        let mut of_threads: HashMap<String, Vec<usize>> = HashMap::new();
        let mut of_ids: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, rollout) in all.iter().enumerate() {
            of_threads
                .entry(rollout.thread.clone())
                .or_default()
                .push(at);
            of_ids.entry(rollout.file.clone()).or_default().push(at);
        }
        Ok(Self {
            all,
            of_threads,
            of_ids,
        })
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

    /// Returns the file at which a thread continues: the newest that a revert began, or its first one.
    pub(super) fn head(&self, thread: &str) -> Option<usize> {
        let of_thread = self.of_threads.get(thread)?.iter();
        let newest = of_thread.max_by_key(|at| {
            let rollout = &self.all[**at];
            let revert = (rollout.file != rollout.thread).then_some(&rollout.file);
            (revert, rollout.is_plain())
        });
        newest.copied()
    }

    /// Returns the file to which a base refers.
    fn named(&self, file: &str) -> Option<usize> {
        let named = self.of_ids.get(file)?.iter();
        // Codex reads the plain file when there is a compressed one as well.
        named.max_by_key(|at| self.all[**at].is_plain()).copied()
    }

    pub(super) fn chain(&self, head: usize) -> Chain {
        let mut segments = vec![Segment {
            file: head,
            end: None,
        }];
        let mut seen = BTreeSet::from([head]);
        let mut base = self.all[head].base.as_ref();
        let mut is_broken = false;
        while let Some(Base { file, end }) = base {
            let Some(file) = self.named(file).filter(|file| seen.insert(*file)) else {
                is_broken = true;
                break;
            };
            segments.push(Segment {
                file,
                end: Some(*end),
            });
            base = self.all[file].base.as_ref();
        }
        segments.reverse();
        Chain {
            segments,
            is_broken,
        }
    }

    /// Returns for each file up to which ordinal a thread of the store holds it; `Some(None)` when one holds all of it.
    pub(super) fn held(&self) -> Vec<Option<Option<u64>>> {
        let mut held = vec![None; self.all.len()];
        for head in self
            .of_threads
            .keys()
            .filter_map(|thread| self.head(thread))
        {
            for Segment { file, end } in self.chain(head).segments {
                let known: &mut Option<Option<u64>> = &mut held[file];
                *known = match (*known, end) {
                    (Some(None), _) | (_, None) => Some(None),
                    (Some(Some(known)), Some(end)) => Some(Some(known.max(end))),
                    (None, Some(end)) => Some(Some(end)),
                };
            }
        }
        held
    }
}

impl Files {
    /// Returns for each thread a number that changes with what decides its session besides its files: which other threads hold
    /// them, and its title.
    pub(crate) fn versions(&self, titles: &Titles) -> Versions {
        let held = self.held();
        let versions = self.of_threads.iter().map(|(thread, files)| {
            let mut files = files.clone();
            let head = self.head(thread);
            let chain = head
                .map(|head| self.chain(head).segments)
                .unwrap_or_default();
            let ends: Vec<Option<u64>> = chain.iter().map(|segment| segment.end).collect();
            files.extend(chain.iter().map(|segment| segment.file));
            let files: Vec<_> = files
                .into_iter()
                .map(|file| (&self.all[file].path, held[file]))
                .collect();
            let version = Version::of(&(files, ends, titles.of(thread)));
            (thread.clone(), version)
        });
        versions.collect()
    }
}

impl Rollout {
    fn of(store: Store<'_>, path: PathBuf) -> Result<Self, Error> {
        let (named_thread, file) = ids_in_name(&path);
        let header = lines::first(store, &path, |line| {
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
        })?;
        let (thread, base) = header.unwrap_or_default();
        let thread = thread.unwrap_or_else(|| named_thread.to_owned());
        // A renamed file has the id of its thread.
        let file = file.map_or_else(|| thread.clone(), str::to_owned);
        Ok(Self {
            thread,
            file,
            base,
            path,
        })
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
