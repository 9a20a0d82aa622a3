//! Finds the files of the subagents of a session (`facts/sdk.md` 1, `facts/corpus.md` 6).

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use transcript_format::lines::AGENT_META_CAP;
use transcript_format::metadata::AgentMetadata;
use transcript_format::object::Object;

use crate::error::Error;
use crate::source::Source;

/// How far below `subagents` files are looked for: `workflows/RUN` is two folders down.
const MAX_DEPTH: usize = 4;
/// The longest id, as the writer makes them.
const MAX_ID: usize = 128;
/// The longest first line of a file that is asked for its session, in bytes.
const MAX_FIRST_LINE: usize = 16 << 20;

/// The file of a subagent, and what is said of it beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subagent {
    /// Its id, from the name of the file: 1 to 128 letters, digits, `-` and `_`.
    pub id: String,
    /// Its file.
    pub path: PathBuf,
    /// The run of the workflow that it belongs to: the folder below `subagents/workflows`.
    pub run: Option<String>,
    meta: Option<String>,
}

impl Subagent {
    /// Returns what `agent-ID.meta.json` says. `None` when it is not there, is no object, or is
    /// larger than 1 MiB.
    #[must_use]
    pub fn meta(&self) -> Option<AgentMetadata<'_>> {
        let object = Object::parse(self.meta.as_deref()?).ok()?;
        Some(object.into())
    }
}

/// Returns the subagents of the session whose file is `session`, each id once.
///
/// First those in `ID/subagents` and the folders below it, where newer clients put them, also for
/// subagents of subagents; then those that clients up to 2.1.1 put beside the file, which are the
/// session's when their first line names it. In each folder they come in the order of their names, and
/// the first file with an id counts. Links are not followed, and files with other names are passed
/// over.
///
/// # Errors
/// When a folder is there and cannot be read. A file that cannot be read is passed over, or has no
/// metadata.
pub fn subagents(session: &Path) -> Result<Vec<Subagent>, Error> {
    let own = session.with_extension("").join("subagents");
    let mut found = Vec::new();
    collect(&own, &own, MAX_DEPTH, &mut found)?;
    let id = session.file_stem().and_then(|stem| stem.to_str());
    if let (Some(folder), Some(id)) = (session.parent(), id) {
        let mut beside = Vec::new();
        collect(folder, &own, 0, &mut beside)?;
        beside.retain(|agent| session_of(&agent.path).as_deref() == Some(id));
        found.extend(beside);
    }
    let mut ids = HashSet::new();
    found.retain(|agent| ids.insert(agent.id.clone()));
    for agent in &mut found {
        agent.meta = read_meta(&agent.path.with_extension("meta.json"));
    }
    Ok(found)
}

/// Adds the subagents in `folder` and down to `depth` folders below it, in the order of their names.
/// `own` is the folder that `workflows` may stand in.
fn collect(
    folder: &Path,
    own: &Path,
    depth: usize,
    found: &mut Vec<Subagent>,
) -> Result<(), Error> {
    // The folder of a path without one is the one that we are in.
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let is_folder = fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir());
    if !is_folder && depth > 0 {
        return Ok(());
    }
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|error| Error::io(folder, None, error))?,
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let Ok(kind) = fs::symlink_metadata(&path) else {
            continue;
        };
        if kind.is_dir() && depth > 0 {
            collect(&path, own, depth - 1, found)?;
        } else if kind.is_file()
            && let Some(id) = agent_id(&path)
        {
            found.push(Subagent {
                id: id.to_owned(),
                run: run_of(&path, own),
                path,
                meta: None,
            });
        }
    }
    Ok(())
}

/// The id in the name of a subagent's file.
fn agent_id(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let id = name.strip_prefix("agent-")?.strip_suffix(".jsonl")?;
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_id = (1..=MAX_ID).contains(&id.len()) && id.bytes().all(is_safe);
    is_id.then_some(id)
}

/// The folder below `workflows` that `path` is in.
fn run_of(path: &Path, own: &Path) -> Option<String> {
    let below = path.strip_prefix(own.join("workflows")).ok()?;
    let run = below.parent()?.components().next()?;
    Some(run.as_os_str().to_string_lossy().into_owned())
}

fn read_meta(path: &Path) -> Option<String> {
    let kind = fs::symlink_metadata(path).ok()?;
    if !kind.is_file() || kind.len() > AGENT_META_CAP as u64 {
        return None;
    }
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    file.take(AGENT_META_CAP as u64)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

/// The session that the first line of a file names.
fn session_of(path: &Path) -> Option<String> {
    let source = Source::open(path).ok()?;
    let mut head = vec![0; 64 << 10];
    loop {
        let read = source.read_at(0, &mut head).ok()?;
        let end = memchr::memchr(b'\n', &head[..read]);
        if end.is_some() || read < head.len() || head.len() >= MAX_FIRST_LINE {
            let line = String::from_utf8_lossy(&head[..end.unwrap_or(read)]);
            let session = Object::parse(&line).ok()?.str("sessionId")?.into_owned();
            return Some(session);
        }
        head.resize(head.len() * 2, 0);
    }
}
