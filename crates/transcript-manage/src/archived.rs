//! Lists archived sessions by what was kept when they were captured.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use transcript_archive::ArchiveDisk;
use transcript_format::context_refs;
use transcript_format::title::TitleSource;
use transcript_reader::{Listing, SessionFile, SessionFiles, SessionRow, SessionState};
use transcript_storage::{ReadDisk, RealDisk};

use transcript_session::Error;

/// The states that a summary may name. Another one, of a later version, is unknown.
const STATES: [SessionState; 4] = [
    SessionState::Finished,
    SessionState::Waiting,
    SessionState::OpenCall,
    SessionState::Stalled,
];

/// What a [`SessionRow`] says about the content of a session. Names that are missing are unknown.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Summary {
    cwd: Option<String>,
    before_worktree: Option<String>,
    title: Option<String>,
    title_source: Option<TitleSource>,
    first_prompt: Option<String>,
    last_prompt: Option<String>,
    summary: Option<String>,
    file_millis: Option<i64>,
    last_answer: Option<String>,
    created: Option<String>,
    modified: Option<String>,
    has_conversation: bool,
    forked: Option<String>,
    model: Option<String>,
    messages: Option<u64>,
    bytes: u64,
    branch: Option<String>,
    tag: Option<String>,
    state: Option<String>,
    archived: Option<bool>,
    entrypoint: Option<String>,
    is_sidechain: bool,
}

/// Describes a session for [`CaptureOptions::summarize`](transcript_archive::CaptureOptions::summarize), so that
/// [`list_archived`] need not read it.
#[must_use]
pub fn summarize(path: &Path) -> Vec<u8> {
    let disk: Arc<dyn ReadDisk> = Arc::new(RealDisk);
    let row = SessionRow::of_file(&disk, &SessionFile::at(&*disk, path));
    let summary = Summary {
        cwd: row.cwd,
        before_worktree: row.before_worktree,
        title: row.title,
        title_source: row.title_source,
        first_prompt: row.first_prompt,
        last_prompt: row.last_prompt,
        summary: row.summary,
        file_millis: row.file_millis,
        last_answer: row.last_answer,
        created: row.created,
        modified: row.modified,
        has_conversation: row.has_conversation,
        forked: row.forked,
        model: row.model,
        messages: row.messages,
        bytes: row.bytes,
        branch: row.branch,
        tag: row.tag,
        state: row.state.map(|state| state.name().to_owned()),
        archived: row.archived,
        entrypoint: row.entrypoint,
        is_sidechain: row.is_sidechain,
    };
    // Without a summary the session is read.
    serde_json::to_vec(&summary).unwrap_or_default()
}

/// Lists the archived sessions, newest conversation first. Only those are read that were captured without a summary.
///
/// # Errors
/// When the archive cannot be read.
pub fn list_archived(disk: &Arc<ArchiveDisk>) -> Result<Listing, Error> {
    let shared: Arc<dyn ReadDisk> = Arc::clone(disk) as _;
    let projects = disk.projects();
    if shared.metadata(&projects).is_err() {
        return Ok(Listing::of(SessionFiles::on(shared)));
    }
    let mut files = SessionFiles::in_root_on(&shared, &projects)?;
    let mut rows = Vec::new();
    files.sessions.retain(|file| {
        let row = known_row(disk, file);
        rows.extend(row);
        rows.last()
            .is_none_or(|row: &SessionRow| row.path != file.path)
    });
    let mut listing = Listing::of(files);
    listing.add(rows, Vec::new());
    Ok(listing)
}

/// Adds archived sessions whose files are gone to a list of those that are there.
///
/// # Errors
/// When the archive cannot be read.
pub fn add_archived(listing: &mut Listing, disk: &Arc<ArchiveDisk>) -> Result<(), Error> {
    let mut archived = list_archived(disk)?;
    // A session is listed once: its file says more than the archive.
    let name = |row: &SessionRow| (row.project.clone(), row.session_id.clone());
    let live: HashSet<_> = listing.rows.iter().map(name).collect();
    archived.rows.retain(|row| !live.contains(&name(row)));
    // A session that was moved since it was captured is there under its id.
    let mut ids = HashMap::<&str, Vec<&Path>>::new();
    for row in listing.rows.iter().filter(|row| row.has_file) {
        ids.entry(&row.session_id).or_default().push(&row.path);
    }
    let shared: Arc<dyn ReadDisk> = Arc::clone(disk) as _;
    archived.rows.retain(|row| {
        let files = ids.get(&*row.session_id).into_iter().flatten();
        !files
            .into_iter()
            .any(|live| starts_like(&*shared, live, &row.path).unwrap_or(false))
    });
    listing.add(archived.rows, archived.problems);
    Ok(())
}

/// Returns whether a file starts with all bytes of another one.
fn starts_like(disk: &dyn ReadDisk, file: &Path, other: &Path) -> io::Result<bool> {
    const READ: usize = 256 << 10;
    let (file, other) = (disk.open_to_read(file)?, disk.open_to_read(other)?);
    let len = other.metadata()?.len;
    let (mut one, mut two) = (vec![0; READ], vec![0; READ]);
    let mut at = 0;
    while at < len {
        let part = usize::try_from(len - at).map_or(READ, |left| left.min(READ));
        let read = [
            file.fill(at, &mut one[..part])?,
            other.fill(at, &mut two[..part])?,
        ];
        if read != [part, part] || one[..part] != two[..part] {
            return Ok(false);
        }
        at += part as u64;
    }
    Ok(true)
}

/// Returns the row of a session by its summary, if that is about the bytes that are archived.
fn known_row(disk: &ArchiveDisk, file: &SessionFile) -> Option<SessionRow> {
    let summary: Summary = serde_json::from_slice(&disk.summary(&file.path)?).ok()?;
    if summary.bytes != disk.metadata(&file.path).ok()?.len {
        return None;
    }
    // Earlier versions kept the references before a prompt in place of the question.
    let prompts = [&summary.first_prompt, &summary.last_prompt];
    if prompts
        .into_iter()
        .flatten()
        .any(|prompt| context_refs::is_flattened(prompt))
    {
        return None;
    }
    let mut row = SessionRow::unread(disk, file);
    row.cwd = summary.cwd;
    row.before_worktree = summary.before_worktree;
    row.title = summary.title;
    row.title_source = summary.title_source;
    row.first_prompt = summary.first_prompt;
    row.last_prompt = summary.last_prompt;
    row.summary = summary.summary;
    row.file_millis = summary.file_millis;
    row.last_answer = summary.last_answer;
    row.created = summary.created;
    row.modified = summary.modified;
    row.has_conversation = summary.has_conversation;
    row.forked = summary.forked;
    row.model = summary.model;
    row.messages = summary.messages;
    row.bytes = summary.bytes;
    row.branch = summary.branch;
    row.tag = summary.tag;
    row.state = STATES
        .into_iter()
        .find(|state| Some(state.name()) == summary.state.as_deref());
    row.archived = summary.archived;
    row.entrypoint = summary.entrypoint;
    row.is_sidechain = summary.is_sidechain;
    Some(row)
}
