//! Tokens and cost of sessions (docs/usage.md): requests, each counted once over all files, and sums of them.
//!
//! ```no_run
//! use transcript_catalog::Catalog;
//! use transcript_catalog::usage::{By, Prices, Report, UsageOptions};
//!
//! let catalog = Catalog::open("projects".as_ref())?;
//! let usage = catalog.usage(&UsageOptions::new());
//! let prices = Prices::embedded();
//! let rows = usage.rows(&Report::by(&[By::Month, By::Model]), &prices);
//! for row in rows {
//!     println!("{} {}: {:?}", row.keys[0], row.keys[1], row.sums.cost);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod branches;
mod call;
mod formats;
mod options;
mod part;
mod prices;
mod read;
mod report;
mod requests;
mod sums;
mod tokens;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use transcript_format::lines::AGENT_META_CAP;
use transcript_format::metadata::AgentMetadata;
use transcript_format::object::Object;
use transcript_format::scan::utf8;
use transcript_reader::Error;
use transcript_storage::{Disk, ReadDisk, RealDisk};

pub use call::CallPrices;
pub use prices::{ModelPrices, Prices, PricesError, Terms};
pub use report::{
    Block, By, ClientTotal, ContextSize, Key, ModelTotal, Rate, Report, RootNames, Row, Rows, Sums,
    sort_by_cost, sort_rows,
};
pub use tokens::Tokens;

use self::formats::SIDECAR_KIND;
pub use self::options::UsageOptions;
use self::part::Part;
use self::read::{UsageCache, UsageLines};
use self::requests::{PartOwner, Request, Requests};
use crate::files::{Catalog, FileRole};

/// The name of the marker file in a cache folder whose records of deleted files must stay.
const KEEP_DELETED_FILE: &str = "usage.keep";

/// Returns whether the requests of deleted files stay in this cache folder, also when a reader without [`UsageOptions::keep_deleted`] writes to it.
#[must_use]
pub fn keeps_deleted(cache: &Path) -> bool {
    RealDisk.exists(&cache.join(KEEP_DELETED_FILE))
}

/// Sets whether the requests of deleted files stay in this cache folder, also when a reader without [`UsageOptions::keep_deleted`] writes to it.
///
/// # Errors
/// When the cache folder cannot be written.
pub fn set_keeps_deleted(cache: &Path, keeps: bool) -> io::Result<()> {
    let path = cache.join(KEEP_DELETED_FILE);
    if keeps {
        RealDisk.create_folder(cache)?;
        return RealDisk.open_cache(&path).map(drop);
    }
    match RealDisk.remove(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Returns whether a cache folder has something about usage that this build may use without reading sessions.
#[must_use]
pub fn is_kept(cache: &Path) -> bool {
    let mut files = RealDisk.list(cache).into_iter().flatten().flatten();
    files.any(|file| {
        let extension = Path::new(&file.name).extension();
        extension.is_some_and(|extension| extension == SIDECAR_KIND.extension)
    })
}

/// The requests of sessions, each once.
#[derive(Debug)]
pub struct Usage<'c> {
    catalog: &'c Catalog,
    files: Vec<OwnerFile>,
    requests: Requests,
    unread: u64,
    bytes: u64,
    problems: Vec<Error>,
    /// The sessions of files that were omitted.
    skipped: HashSet<Arc<str>>,
    /// Freed with the rest, as a process that ends need not free it.
    _cache: Option<UsageCache<'c>>,
}

/// A file that owns requests.
#[derive(Debug)]
struct OwnerFile {
    path: PathBuf,
    session: Arc<str>,
    project: Arc<str>,
    /// The subagent whose file it is.
    agent: Option<Arc<str>>,
    session_number: u32,
    /// The number of the file of its session, if that is not gone.
    session_file: Option<u32>,
    is_deleted: bool,
    agent_type: OnceLock<Option<Arc<str>>>,
}

impl OwnerFile {
    fn agent_type(&self, catalog: &Catalog) -> Option<Arc<str>> {
        self.agent.as_ref()?;
        let read = || {
            let path = self.path.with_extension("meta.json");
            let bytes = catalog.disk.read(&path, AGENT_META_CAP).ok()?;
            let object = Object::parse(utf8(&bytes)?).ok()?;
            let kind = AgentMetadata::from(object).agent_type()?;
            (!kind.is_empty()).then(|| Arc::from(&*kind))
        };
        self.agent_type.get_or_init(read).clone()
    }
}

impl Catalog {
    /// Reads the requests of all sessions. Files that cannot be read are [`Usage::problems`].
    #[must_use]
    pub fn usage(&self, options: &UsageOptions) -> Usage<'_> {
        let mut files = self.owner_files();
        let wanted = (0..self.files.len()).filter(|file| {
            let file = &self.files[*file];
            let is_old = options
                .changed_since
                .zip(file.modified)
                .is_some_and(|(since, modified)| modified < since);
            !matches!(file.kind, FileRole::Result(_)) && !is_old
        });
        let wanted: Vec<usize> = wanted.collect();
        let cache = options.cache.as_deref().map(|folder| {
            let mut cache = read::open_cache(folder, self);
            if !options.deleted_of.is_empty() || keeps_deleted(folder) {
                // Also for a caller that does not count them: writing the cache must not drop what `--keep-sums` promised to
                // keep.
                cache.keep_gone();
            }
            for root in &options.deleted_of {
                cache.add_gone_folders(SIDECAR_KIND, folder, root);
            }
            cache
        });
        let mut read = read::read_files(self, &wanted, options, cache.as_ref());
        if let Some(cache) = cache.as_ref().filter(|_| !options.deleted_of.is_empty()) {
            self.add_deleted(cache, &mut files, &mut read);
        }
        let mut paths: Vec<usize> = (0..files.len()).collect();
        // By bytes, so that the owner of a request is the same on every system and with any locale.
        paths.sort_unstable_by_key(|file| files[*file].path.as_os_str().as_encoded_bytes());
        let mut ranks = vec![0; files.len()];
        for (rank, file) in (0..).zip(paths) {
            ranks[file] = rank;
        }
        let mut requests = Requests::new(files.len());
        for (file, _, part) in read.parts {
            let place = PartOwner {
                file: file as u32,
                session: files[file].session_number,
                is_subagent: files[file].agent.is_some(),
                rank: ranks[file],
            };
            requests.add(place, part);
        }
        // After all files are added: an owner can be in the last of them.
        requests.merge();
        let skipped = read.skipped.iter();
        let skipped = skipped.map(|file| Arc::clone(&files[*file].session));
        let skipped = skipped.collect();
        Usage {
            catalog: self,
            files,
            requests,
            unread: read.unread,
            bytes: read.bytes,
            problems: read.problems,
            skipped,
            _cache: cache,
        }
    }

    /// Adds the cached usage of deleted files.
    fn add_deleted(
        &self,
        cache: &UsageCache<'_>,
        files: &mut Vec<OwnerFile>,
        read: &mut UsageLines,
    ) {
        // The number of each session, and that of its file.
        let mut sessions = HashMap::<(Arc<str>, Arc<str>), _>::new();
        for file in files.iter() {
            let key = (Arc::clone(&file.project), Arc::clone(&file.session));
            sessions.insert(key, (file.session_number, file.session_file));
        }
        let mut session_number = self.sessions.len() as u32;
        cache.for_each_gone(|folder, name, payloads| {
            let path = folder.join(name);
            // The file is gone, so its session and its agent are known from its name only.
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            // `SESSION.jsonl`, or `SESSION/subagents/agent-ID.jsonl`.
            let (session, agent) = match name.split_once('/') {
                Some((session, _)) => (session, Some(stem.strip_prefix("agent-").unwrap_or(&stem))),
                None => (&*stem, None),
            };
            let project = folder.file_name().unwrap_or_default().to_string_lossy();
            let (project, session): (Arc<str>, Arc<str>) = (project.into(), session.into());
            let key = (Arc::clone(&project), Arc::clone(&session));
            let (number, session_file) = *sessions.entry(key).or_insert_with(|| {
                session_number += 1;
                (session_number, None)
            });
            let file = files.len();
            files.push(OwnerFile {
                session,
                project,
                agent: agent.map(Arc::from),
                session_number: number,
                // A deleted session is its own file; a deleted subagent belongs to the file of its session if that is
                // there.
                session_file: session_file.or((agent.is_none()).then_some(file as u32)),
                is_deleted: true,
                agent_type: OnceLock::new(),
                path: path.clone(),
            });
            let parts = payloads.iter().filter_map(|payload| Part::read(payload));
            read.parts.extend(parts.map(|part| (file, 0, part)));
        });
    }

    fn owner_files(&self) -> Vec<OwnerFile> {
        let names = self.sessions.iter().map(|session| {
            let id: Arc<str> = session.id.as_str().into();
            (id, Arc::<str>::from(session.project.as_str()))
        });
        let names: Vec<_> = names.collect();
        let mut own = vec![None; self.sessions.len()];
        for (number, file) in (0..).zip(&self.files) {
            if file.kind == FileRole::Session {
                own[file.session] = Some(number);
            }
        }
        let files = self.files.iter().map(|file| {
            let (session, project) = names[file.session].clone();
            OwnerFile {
                path: file.path.clone(),
                session,
                project,
                agent: match &file.kind {
                    FileRole::Subagent(id) => Some(id.as_str().into()),
                    _ => None,
                },
                session_number: file.session as u32,
                session_file: own[file.session],
                is_deleted: false,
                agent_type: OnceLock::new(),
            }
        });
        files.collect()
    }
}

impl Usage<'_> {
    /// Sums up the requests.
    #[must_use]
    pub fn rows(&self, report: &Report, prices: &Prices) -> Rows {
        let (rows, total, without_time) = self.sum_rows(report, prices);
        Rows {
            rows: rows.into_iter(),
            total,
            without_time,
        }
    }

    /// Returns the blocks of five hours, in order; `now`, in milliseconds since 1970, decides which one is active.
    #[must_use]
    pub fn blocks(&self, report: &Report, prices: &Prices, now: i64) -> Vec<Block> {
        self.sum_blocks(report, prices, now)
    }

    /// Returns the [blocks](Self::blocks) by the text of the key of their row; none if the rows are not those of blocks alone.
    #[must_use]
    pub fn blocks_by_key(
        &self,
        report: &Report,
        prices: &Prices,
        now: i64,
    ) -> HashMap<String, Block> {
        if report.by != [By::Hour5] {
            return HashMap::new();
        }
        let key = |block: &Block| {
            let start = Timestamp::from_millisecond(block.start);
            start.map(|start| start.to_string()).unwrap_or_default()
        };
        let blocks = self.blocks(report, prices, now).into_iter();
        blocks.map(|block| (key(&block), block)).collect()
    }

    /// Compares the sums with the clients' own totals: one element for each session that has one, by id.
    #[must_use]
    pub fn client_totals(&self, prices: &Prices) -> Vec<ClientTotal> {
        let counted = (0usize..)
            .zip(&self.requests.facts)
            .filter_map(|(number, facts)| {
                let file = self.files.get(number)?;
                let counted = facts.counted.as_ref().filter(|_| file.agent.is_none())?;
                let own = u32::try_from(number).ok();
                let (ours, our_models) = self.sum_models(prices, |request| {
                    self.files[request.file as usize].session_file == own
                });
                let mut models: BTreeMap<Arc<str>, ModelTotal> = BTreeMap::new();
                for (name, counts, cost) in &counted.models {
                    let model = model_of(&mut models, name);
                    let tokens = requests::tokens(counts);
                    model.their_tokens = Some(
                        model
                            .their_tokens
                            .unwrap_or_default()
                            .saturating_add(tokens),
                    );
                    let cost = cost.map(u128::from);
                    model.theirs = match (model.theirs, cost) {
                        (Some(one), Some(other)) => Some(one.saturating_add(other)),
                        // Two names of a model that differ in `[1m]` only are one row.
                        (one, other) => one.or(other),
                    };
                }
                for (name, sums) in our_models {
                    model_of(&mut models, &name).ours.add(sums);
                }
                for model in models.values_mut() {
                    if model.ours.unknown_models.is_empty() {
                        model.ours.cost.get_or_insert(0);
                    }
                }
                Some(ClientTotal {
                    session: Arc::clone(&file.session),
                    theirs: counted.cost.map(u128::from),
                    ours,
                    models: models.into_values().collect(),
                })
            });
        let mut counted: Vec<ClientTotal> = counted.collect();
        counted.sort_by(|one, other| one.session.cmp(&other.session));
        counted
    }

    /// Returns the size of the context of a session.
    #[must_use]
    pub fn context_size(&self, session: &str) -> Option<ContextSize> {
        let is_own = |request: &Request<'_>| {
            let file = &self.files[request.file as usize];
            let is_of_agent = file.agent.is_some() || request.copy.is_sidechain;
            !is_of_agent && !request.copy.is_result && *file.session == *session
        };
        let last = self.requests.iter().filter(is_own);
        // By time and not by place: a fork copies requests that are older than its own.
        let last = last.max_by_key(|request| (request.time(), request.copy.offset))?;
        // The last step has the whole context.
        let tokens = last.steps().pop().unwrap_or_else(|| last.tokens());
        Some(ContextSize {
            tokens: tokens.prompt().saturating_add(tokens.output),
            model: self.requests.names.get(last.copy.model).map(Arc::from),
        })
    }

    /// Returns the number of searches of the client's `WebSearch` whose call is not in the file of their result.
    #[must_use]
    pub fn unmatched_searches(&self) -> u64 {
        self.requests.unmatched_searches
    }

    /// Returns the number of requests of which a session has a copy that another session owns.
    #[must_use]
    pub fn copies(&self, session: &str) -> u64 {
        let files = self.files.iter().zip(&self.requests.facts);
        let own = files.filter(|(file, _)| *file.session == *session);
        own.map(|(_, facts)| facts.copies).sum()
    }

    /// Returns whether all files of a session were read, or their cached usage is still valid.
    #[must_use]
    pub fn is_known(&self, session: &str) -> bool {
        !self.skipped.contains(session)
    }

    /// Returns the number of damaged entries that could not be read.
    #[must_use]
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// Returns the files that could not be read.
    #[must_use]
    pub fn problems(&self) -> &[Error] {
        &self.problems
    }

    /// Returns the number of bytes that were read.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes
    }
}

/// Returns the row of a model, by the name without the suffix for the size of its context.
fn model_of<'m>(models: &'m mut BTreeMap<Arc<str>, ModelTotal>, name: &str) -> &'m mut ModelTotal {
    let model: Arc<str> = name.strip_suffix("[1m]").unwrap_or(name).into();
    models.entry(Arc::clone(&model)).or_insert(ModelTotal {
        model,
        their_tokens: None,
        theirs: None,
        ours: Sums::default(),
    })
}
