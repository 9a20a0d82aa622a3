//! Findings about the surroundings of a session: its folder, its subagents, its project, and the times and modes of the
//! files.
//!
//! Names and modes matter only in the store of a client, so they are checked only in folders that are
//! named like projects.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aho_corasick::AhoCorasick;
use transcript_format::entry::Entry;
use transcript_format::finding::Code;
use transcript_format::ids::Uuid;
use transcript_format::kind::EntryKind;
use transcript_format::names::{self, agent_of, is_id, is_key_of};
use transcript_format::object::{Object, Raw};
use transcript_format::scan::Flags;
use transcript_reader::{
    Bodies, EntryRef, Error, Index, Source, Subagent, WalkedFile, subagents_on, walk_store,
};
use transcript_storage::{Metadata, ReadDisk, RealDisk};

use crate::conversation::ConversationMeasure;
use crate::located_finding::LocatedFinding;
use crate::options::VerifyOptions;
use crate::report::{PolicyLint, Report};
use crate::secrets;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The time after the last entry of a session in which its subagents wrote, from which its writer counts as stopped.
const STALLED_LAG: Duration = Duration::from_secs(60 * 60);
/// The number of days after which the client deletes sessions, unless its settings say otherwise.
const CLEANUP_DAYS: u64 = 30;
/// The maximum number of messages at each end of a file whose working folder is read.
const MAX_FOLDERS: usize = 50;
/// The number of bytes at the end of a subagent's file that are read for the time of its last
/// entry.
const MAX_TAIL: u64 = 256 << 10;
/// The maximum length of the settings of a client, in bytes.
const MAX_SETTINGS: usize = 4 << 20;
/// Agents that the client starts itself, without a call.
pub(crate) const CLIENT_AGENTS: [&str; 2] = ["acompact", "aprompt_suggestion"];

/// Returns the findings about the files and folders next to a session.
pub(crate) fn findings(
    disk: &Arc<dyn ReadDisk>,
    index: &Index,
    source: &Source,
    options: &VerifyOptions,
) -> Result<Vec<LocatedFinding>, Error> {
    let path = source.path();
    let Ok(metadata) = disk.metadata(path) else {
        return Ok(Vec::new());
    };
    let modified = metadata.modified;
    let messages = || index.entries().filter(|entry| entry.kind().is_message());
    let is_empty = messages().next().is_none();
    let last = last_of(index.entries());
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let is_agent = name.is_some_and(|name| agent_of(&name).is_some());
    let mut found = Vec::new();
    let mut add = |code, detail: String| found.push(LocatedFinding::of_file(code, detail));
    let project = path.parent().filter(|folder| is_project(folder));
    // Access rights and deletions by the client matter in its own store only, not in a copy elsewhere.
    let store = project.and_then(|project| {
        let folder = disk.metadata(project).ok()?;
        folder.identity.is_known().then_some((project, folder))
    });
    if let Some((_, folder)) = &store {
        let of_folder = open_mode(folder);
        let modes = [("file", open_mode(&metadata)), ("folder", of_folder)];
        let modes = modes
            .iter()
            .filter_map(|(of, mode)| Some(format!("{of} {:04o}", (*mode)?)));
        let modes: Vec<String> = modes.collect();
        if !modes.is_empty() {
            add(
                Code::Mode,
                format!("other users can access this session ({})", modes.join(", ")),
            );
        }
    }
    // The rest is about sessions: the client lists, names and deletes a subagent with its session.
    if is_agent {
        return Ok(found);
    }
    let mut bodies = Bodies::new(source);
    if let Some(project) = project {
        if is_empty {
            let detail = match metadata.len {
                0 => "the file is empty",
                _ => "the file has no messages",
            };
            add(Code::Stub, detail.to_owned());
        }
        let days = store.and_then(|(project, _)| days_left(&**disk, project, modified));
        if let Some(days) = days.filter(|days| *days <= options.sweep_days.into()) {
            let detail = match days {
                0 => "Claude Code deletes the file when it is started next".to_owned(),
                1 => "Claude Code deletes the file tomorrow".to_owned(),
                days => format!("Claude Code deletes the file in {days} days"),
            };
            add(Code::Sweep, detail);
        }
        if let (Some(last), Some(modified)) = (last, modified)
            && distance(last, modified) > DAY
        {
            let days = distance(last, modified).as_secs() / DAY.as_secs();
            let side = if modified > last { "after" } else { "before" };
            add(
                Code::FileTime,
                format!("the file was modified {days} days {side} its last entry"),
            );
        }
        if !is_empty && !is_named_after(project, index, &mut bodies)? {
            add(
                Code::WrongFolder,
                "no entry was written in the folder that the project is named after".to_owned(),
            );
        }
    }
    // Without a folder of its own a session has no files of new clients, and those of old ones are in
    // the folder of all sessions, which would be read for each of them.
    let has_folder = disk.is_folder(&path.with_extension(""));
    let agents = if has_folder {
        subagents_on(disk, path).unwrap_or_default()
    } else {
        Vec::new()
    };
    if let Some(later) = behind(disk, index, path, &agents, modified) {
        let hours = later.as_secs_f64() / 3600.0;
        add(
            Code::Stalled,
            format!("files of the session are {hours:.1} hours newer than its last message"),
        );
    }
    if let Some(source_id) = forked_from(index, &mut bodies)?
        && disk
            .metadata(&path.with_file_name(format!("{source_id}.jsonl")))
            .is_err()
    {
        add(
            Code::ForkSource,
            "the session that it was copied from is not in its folder".to_owned(),
        );
    }
    if !agents.is_empty() {
        found.extend(of_agents(&**disk, index, &mut bodies, &agents)?);
    }
    if has_folder {
        found.extend(secrets::in_stored_results(&**disk, path)?);
    }
    Ok(found)
}

/// Returns by how much the other files of a session are newer than its last message, if its writer
/// has stopped.
pub(crate) fn behind(
    disk: &Arc<dyn ReadDisk>,
    index: &Index,
    path: &Path,
    agents: &[Subagent],
    modified: Option<SystemTime>,
) -> Option<Duration> {
    // The last message and not the last entry: a client that stopped writing messages may still write metadata.
    let message = last_of(index.entries().filter(|entry| entry.kind().is_message()))?;
    let newest = newest_beside(disk, path, agents, last_of(index.entries()), modified)?;
    let later = newest.duration_since(message).ok()?;
    (later > STALLED_LAG).then_some(later)
}

fn last_of<'i>(entries: impl Iterator<Item = EntryRef<'i>>) -> Option<SystemTime> {
    entries.filter_map(|entry| time(entry.millis()?)).max()
}

fn time(millis: i64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(millis).ok()?))
}

fn distance(one: SystemTime, other: SystemTime) -> Duration {
    let later = one
        .duration_since(other)
        .or_else(|_| other.duration_since(one));
    later.unwrap_or_default()
}

/// Returns whether a folder is named like a project.
fn is_project(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.is_some_and(names::is_project)
}

/// Returns the mode if it gives others any rights.
fn open_mode(metadata: &Metadata) -> Option<u32> {
    let mode = metadata.mode? & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}

/// Returns the number of days until the client deletes a file of this age; `None` if its settings
/// do not say.
fn days_left(disk: &dyn ReadDisk, project: &Path, modified: Option<SystemTime>) -> Option<u64> {
    let kept = cleanup_days_on(disk, project.parent()?.parent()?)?;
    Some(days_until_deleted(kept, modified?))
}

/// Returns after how many days the client deletes sessions, by the settings in its folder; `None` if it does not, or
/// if that depends on its version.
#[must_use]
pub fn cleanup_days(config: &Path) -> Option<u64> {
    cleanup_days_on(&RealDisk, config)
}

fn cleanup_days_on(disk: &dyn ReadDisk, config: &Path) -> Option<u64> {
    let setting = |name: &str| {
        let text = disk.read(&config.join(name), MAX_SETTINGS).ok()?;
        let text = String::from_utf8(text).ok()?;
        Object::parse(&text).ok()?.u64("cleanupPeriodDays")
    };
    let kept = setting("settings.local.json").or_else(|| setting("settings.json"));
    let kept = kept.unwrap_or(CLEANUP_DAYS);
    // The meaning of 0 depends on the version of the client, so it gives no number of days.
    (kept > 0).then_some(kept)
}

/// Returns the number of days until the client deletes a file that was changed at this time, if it keeps sessions for
/// `kept` days.
#[must_use]
pub fn days_until_deleted(kept: u64, modified: SystemTime) -> u64 {
    let age = SystemTime::now()
        .duration_since(modified)
        .unwrap_or_default();
    kept.saturating_sub(age.as_secs() / DAY.as_secs())
}

/// Returns whether the session belongs to the folder that the project is named after: it was moved there, or a message
/// was written there.
fn is_named_after(project: &Path, index: &Index, bodies: &mut Bodies<'_>) -> Result<bool, Error> {
    let name = project
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let of_kind = |entry: &EntryRef<'_>| entry.kind().is_message();
    let messages = || index.entries().filter(of_kind);
    let moves = index
        .entries()
        .rev()
        .filter(|entry| entry.kind() == EntryKind::Relocated);
    // Both ends, because a session can start in one folder and continue in another, and all bodies would take too long.
    let ends = messages()
        .take(MAX_FOLDERS)
        .chain(messages().rev().take(MAX_FOLDERS));
    let mut is_known = false;
    for entry in moves.take(1).chain(ends) {
        let Ok(line) = Entry::parse(bodies.get(&entry)?.text) else {
            continue;
        };
        let moved = line.object().str("relocatedCwd");
        if let Some(folder) = moved.or_else(|| line.cwd()) {
            is_known = true;
            if is_key_of(name, &folder) {
                return Ok(true);
            }
        }
    }
    Ok(!is_known)
}

/// Returns the time of the newest file of a session, besides its own: of the last entry of each
/// subagent, and of the files of results, where times are those of the writer.
fn newest_beside(
    disk: &Arc<dyn ReadDisk>,
    path: &Path,
    agents: &[Subagent],
    last: Option<SystemTime>,
    modified: Option<SystemTime>,
) -> Option<SystemTime> {
    let of_agent = |agent: &Subagent| {
        let source = Source::open_on(disk, &agent.path).ok()?;
        // Times grow within a file, so the newest one is near its end.
        let mut tail = vec![0; source.len().min(MAX_TAIL) as usize];
        let read = source
            .read_at(source.len() - tail.len() as u64, &mut tail)
            .ok()?;
        // The first line is incomplete; times of the others are all that is needed.
        let index = Index::load(&Source::from_bytes(&tail[..read], &agent.path)).ok()?;
        last_of(index.entries())
    };
    // A copy of a folder has new times.
    let are_times_kept = last
        .zip(modified)
        .is_some_and(|(last, modified)| distance(last, modified) <= DAY);
    let results = if are_times_kept {
        disk.layout().stored_results(&**disk, path)
    } else {
        Vec::new()
    };
    let results = results
        .iter()
        .filter_map(|file| disk.link_metadata(file).ok()?.modified);
    agents.iter().filter_map(of_agent).chain(results).max()
}

/// Returns the id of the session that the first message was copied from.
fn forked_from(index: &Index, bodies: &mut Bodies<'_>) -> Result<Option<String>, Error> {
    let Some(first) = index.entries().find(|entry| entry.kind().is_message()) else {
        return Ok(None);
    };
    let line = Object::parse(bodies.get(&first)?.text).ok();
    let from = line.as_ref().and_then(|line| line.object("forkedFrom"));
    let id = from.and_then(|from| Some(from.str("sessionId")?.into_owned()));
    Ok(id.filter(|id| is_id(id)))
}

/// Compares the subagents that calls started with those that have a file.
fn of_agents(
    disk: &dyn ReadDisk,
    index: &Index,
    bodies: &mut Bodies<'_>,
    agents: &[Subagent],
) -> Result<Vec<LocatedFinding>, Error> {
    const MAX_AGENT: usize = 64 << 20;
    let mut found = Vec::new();
    let ids: Vec<&str> = agents.iter().map(|agent| agent.id.as_str()).collect();
    let mut mentioned: BTreeSet<usize> = BTreeSet::new();
    let search = AhoCorasick::new(&ids).ok();
    let mut look = |text: &[u8], own: Option<usize>| {
        for found in search
            .iter()
            .flat_map(|search| search.find_overlapping_iter(text))
        {
            if Some(found.pattern().as_usize()) != own {
                mentioned.insert(found.pattern().as_usize());
            }
        }
    };
    for entry in index.entries() {
        let text = bodies.get(&entry)?.text;
        // An id anywhere in a line is enough: clients name subagents in different fields, and a mention is not an orphan.
        look(text.as_bytes(), None);
        let is_result =
            entry.kind() == EntryKind::User && entry.flags().contains(Flags::HAS_TOOL_RESULT);
        if !is_result || memchr::memmem::find(text.as_bytes(), b"\"agentId\"").is_none() {
            continue;
        }
        let line = Object::parse(text).ok();
        let result = line.as_ref().and_then(|line| line.object("toolUseResult"));
        let id = result
            .as_ref()
            .and_then(|result| result.get("agentId").and_then(Raw::str));
        if let Some(id) = id
            && !ids.contains(&&*id)
        {
            let detail = "the file of the subagent that the call started is missing";
            found.push(LocatedFinding::of_entry(Code::MissingAgent, &entry, detail));
        }
    }
    for (own, agent) in agents.iter().enumerate() {
        let found = disk.metadata(&agent.path);
        // A subagent can be started by another one, which only that one's file shows.
        let is_small = found.is_ok_and(|found| found.len <= MAX_AGENT as u64);
        if is_small && let Ok(bytes) = disk.read(&agent.path, MAX_AGENT) {
            look(&bytes, Some(own));
        }
    }
    let calls = |agent: &Subagent| {
        agent
            .meta()
            .is_some_and(|meta| meta.tool_use_id().is_some())
    };
    let orphans = agents.iter().enumerate().filter(|(own, agent)| {
        let is_of_client = CLIENT_AGENTS
            .iter()
            .any(|start| agent.id.starts_with(start));
        !mentioned.contains(own) && agent.run.is_none() && !is_of_client && !calls(agent)
    });
    match orphans.count() {
        0 => {}
        count => {
            let detail = format!(
                "{count} of {} files of subagents belong to no call",
                agents.len()
            );
            found.push(LocatedFinding::of_file(Code::OrphanAgent, detail));
        }
    }
    Ok(found)
}

/// Returns the names of the other files of a folder that are the same session: they start with the same entry of the same
/// session. A client finds only the file that is named after the id.
fn beside(disk: &Arc<dyn ReadDisk>, files: &[PathBuf]) -> HashMap<PathBuf, Vec<String>> {
    let id_of = |path: &Path| {
        let stem = path.file_stem().and_then(|stem| stem.to_str())?;
        Uuid::parse(stem.to_ascii_lowercase().as_bytes())
    };
    let in_project = |path: &&PathBuf| path.parent().is_some_and(is_project);
    let is_agent = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| agent_of(name).is_some())
    };
    let mut sessions: HashMap<(&Path, FirstEntry), Vec<&PathBuf>> = HashMap::new();
    let other = |path: &&PathBuf| in_project(path) && !is_agent(path) && id_of(path).is_none();
    for path in files.iter().filter(other) {
        if let (Some(folder), Some(start)) = (path.parent(), FirstEntry::of(disk, path)) {
            let own = || folder.join(format!("{}.jsonl", start.session));
            let copies = sessions.entry((folder, start.clone())).or_insert_with(|| {
                // The file with the id as its name is compared only if there is a copy, so that few files are opened.
                let own = files.binary_search(&own()).ok().map(|at| &files[at]);
                let own = own.filter(|path| FirstEntry::of(disk, path).as_ref() == Some(&start));
                own.into_iter().collect()
            });
            copies.push(path);
        }
    }
    let mut beside = HashMap::new();
    for copies in sessions.values().filter(|copies| copies.len() > 1) {
        for path in copies {
            let others = copies.iter().filter(|other| *other != path);
            let names = others.filter_map(|other| other.file_name());
            let names = names
                .map(|name| name.to_string_lossy().into_owned())
                .collect();
            beside.insert((*path).clone(), names);
        }
    }
    beside
}

/// The first entry of a file that has an id.
#[derive(Clone, PartialEq, Eq, Hash)]
struct FirstEntry {
    session: String,
    entry: String,
}

impl FirstEntry {
    /// Reads the start of a file.
    fn of(disk: &Arc<dyn ReadDisk>, path: &Path) -> Option<Self> {
        /// The maximum number of bytes that are read.
        const MAX_START: u64 = 256 << 10;
        let source = Source::open_on(disk, path).ok()?;
        let mut bytes = vec![0; source.len().min(MAX_START) as usize];
        let read = source.read_at(0, &mut bytes).ok()?;
        let mut lines = bytes[..read].split(|byte| *byte == b'\n');
        lines.find_map(|line| {
            let line = Object::parse(std::str::from_utf8(line).ok()?).ok()?;
            let (session, entry) = (line.str("sessionId")?, line.str("uuid")?);
            Some(Self {
                session: session.into_owned(),
                entry: entry.into_owned(),
            })
        })
    }
}

/// The sessions in a folder. Only those are opened whose names are not ids.
#[derive(Debug, Default)]
pub(crate) struct FoundSessions {
    /// Their files, sorted by path.
    pub(crate) files: Vec<PathBuf>,
    /// The missing files of sessions whose folder is there.
    pub(crate) absent: Vec<PathBuf>,
    /// The folders that cannot be read.
    pub(crate) problems: Vec<Error>,
    /// For each session that another project has as well: how many others do.
    elsewhere: HashMap<PathBuf, usize>,
    /// For each session that its folder has under other names as well, as programs that sync folders leave them: the names.
    beside: HashMap<PathBuf, Vec<String>>,
}

impl FoundSessions {
    /// Finds the sessions in a folder and those below it.
    pub(crate) fn in_folder(disk: &Arc<dyn ReadDisk>, folder: &Path) -> Result<Self, Error> {
        let mut found = Self::default();
        walk_store(&**disk, folder, &mut |walked| found.add(&**disk, walked))?;
        found.files.sort();
        found.absent.sort();
        let mut paths: HashMap<&str, Vec<&PathBuf>> = HashMap::new();
        for path in &found.files {
            let id = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .filter(|id| is_id(id));
            // A copy outside of a store, such as a backup, is not seen by the client.
            if let (Some(id), true) = (id, path.parent().is_some_and(is_project)) {
                paths.entry(id).or_default().push(path);
            }
        }
        let several = paths.values().filter(|paths| paths.len() > 1);
        let copies =
            several.flat_map(|paths| paths.iter().map(|path| ((*path).clone(), paths.len() - 1)));
        found.elsewhere = copies.collect();
        found.beside = beside(disk, &found.files);
        Ok(found)
    }

    /// Returns the details of findings about copies of a session.
    pub(crate) fn copies(&self, path: &Path) -> impl Iterator<Item = String> {
        let elsewhere = self.elsewhere.get(path);
        let elsewhere =
            elsewhere.map(|others| format!("other projects have {others} sessions with this id; `transcript merge` joins copies"));
        let beside = self.beside.get(path).map(|names| {
            let names = names.join(", ");
            format!(
                "the folder has a copy of the session under another name: {names}; `transcript merge` joins them"
            )
        });
        elsewhere.into_iter().chain(beside)
    }

    fn add(&mut self, disk: &dyn ReadDisk, walked: WalkedFile<'_>) -> bool {
        match walked {
            WalkedFile::File { path, .. } => {
                if disk.layout().has_ending(path) {
                    self.files.push(path.to_owned());
                }
                false
            }
            WalkedFile::Folder { path, has_session } => {
                let layout = disk.layout();
                let name = path.file_name().and_then(|name| name.to_str());
                let name = name.unwrap_or_default();
                let has_files = |name| {
                    let files = disk.list(&path.join(name));
                    files.is_ok_and(|mut files| files.next().is_some())
                };
                if Uuid::parse(name.as_bytes()).is_some()
                    && !has_session
                    // An empty folder has nothing to salvage.
                    && (has_files(layout.subagents) || has_files(layout.results))
                {
                    self.absent.push(layout.session_of(path));
                }
                // It can have thousands of files, none of which is a session.
                name != layout.results
            }
            WalkedFile::Problem(error) => {
                self.problems.push(error);
                false
            }
            _ => false,
        }
    }
}

/// The report of a session whose own file is missing.
pub(crate) fn absent(path: PathBuf) -> Report {
    let detail = "the folder of the session has files, but the session itself is missing";
    let id = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    Report {
        path,
        session_id: id,
        lines: 0,
        entries: 0,
        is_stream_form: false,
        agent: None,
        measure: ConversationMeasure::default(),
        refusal: None,
        lint: PolicyLint::default(),
        findings: vec![LocatedFinding::of_file(Code::Absent, detail)],
        requests: None,
    }
}
