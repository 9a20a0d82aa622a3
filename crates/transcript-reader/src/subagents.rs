//! Finds the files of the subagents of a session.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_format::entry::Entry;
use transcript_format::lines::AGENT_META_CAP;
use transcript_format::metadata::AgentMetadata;
use transcript_format::names::agent_of;
use transcript_format::object::Object;
use transcript_storage::{FileKind, ReadDisk, SideFile, is_absent};

use crate::error::Error;
use crate::source::Source;

/// The maximum length of an id, as in the writer.
const MAX_ID: usize = 128;
/// The maximum length of a first line that is searched for its session, in bytes.
const MAX_FIRST_LINE: usize = 16 << 20;

/// The file of a subagent, and its metadata file next to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subagent {
    /// Its id, from the name of the file: 1 to 128 letters, digits, `-` and `_`.
    pub id: String,
    /// Its file.
    pub path: PathBuf,
    /// The workflow run that it belongs to: the folder below `subagents/workflows`.
    pub run: Option<String>,
    meta: Option<String>,
}

impl Subagent {
    /// Returns the subagent whose file this is; `None` if it is not named like one. `own` is the folder that may contain
    /// `workflows`.
    fn at(path: &Path, own: &Path) -> Option<Self> {
        Some(Self {
            id: agent_id(path)?.to_owned(),
            run: run_of(path, own),
            path: path.to_owned(),
            meta: None,
        })
    }

    /// Returns the content of `agent-ID.meta.json`. `None` if the file is missing, not an object,
    /// or larger than 1 MiB.
    #[must_use]
    pub fn meta(&self) -> Option<AgentMetadata<'_>> {
        let object = Object::parse(self.meta.as_deref()?).ok()?;
        Some(object.into())
    }
}

/// Returns the subagents of the session whose file on `disk` is `session`, each id once.
///
/// First come those in `ID/subagents` and the folders below it, where newer clients write them,
/// also for subagents of subagents. Then come those that clients up to 2.1.1 wrote next to the
/// session's file; they belong to the session that their first line names. Within a folder they are
/// sorted by name, and the first file with an id counts. Links are not followed, and files with
/// other names are ignored.
///
/// # Errors
/// When a folder exists and cannot be read, or it cannot be seen whether it does. Session or metadata files that cannot be read are not
/// an error.
pub fn subagents_on(disk: &Arc<dyn ReadDisk>, session: &Path) -> Result<Vec<Subagent>, Error> {
    find(disk, session, |path| Ok(session_of_subagent(disk, path)))
}

/// As [`subagents_on`], for copies and moves, which must not omit any.
///
/// # Errors
/// As [`subagents_on`]; also when a file next to the session, which may be one of them, cannot be read.
pub fn all_subagents_on(disk: &Arc<dyn ReadDisk>, session: &Path) -> Result<Vec<Subagent>, Error> {
    find(disk, session, |path| first_session(disk, path))
}

fn find(
    disk: &Arc<dyn ReadDisk>,
    session: &Path,
    session_of: impl Fn(&Path) -> Result<Option<String>, Error>,
) -> Result<Vec<Subagent>, Error> {
    let mut found = own_subagents_on(disk, session)?;
    let id = session.file_stem().and_then(|stem| stem.to_str());
    if let (Some(folder), Some(id)) = (session.parent(), id) {
        for agent in next_to(&**disk, folder)? {
            if session_of(&agent.path)?.as_deref() == Some(id) {
                found.push(agent);
            }
        }
    }
    let mut ids = HashSet::new();
    found.retain(|agent| ids.insert(agent.id.clone()));
    for agent in &mut found {
        agent.meta = read_meta(&**disk, &agent.path.with_extension("meta.json"));
    }
    Ok(found)
}

/// Returns the subagents in the folder of a session, without their metadata: all files in it, even if
/// several have the same id.
///
/// # Errors
/// As [`subagents_on`].
pub fn own_subagents_on(disk: &Arc<dyn ReadDisk>, session: &Path) -> Result<Vec<Subagent>, Error> {
    let mut found = Vec::new();
    each_own(&**disk, session, &mut |path| {
        found.push(path?);
        Ok(())
    })?;
    let own = disk.layout().subagents(session);
    let found = found.iter();
    Ok(found.filter_map(|path| Subagent::at(path, &own)).collect())
}

/// Counts the files of subagents in the folder of a session; those in folders that cannot be read are omitted.
pub(crate) fn count_own(disk: &dyn ReadDisk, session: &Path) -> usize {
    let mut count = 0;
    let counted = each_own(disk, session, &mut |path| {
        let name = path
            .ok()
            .and_then(|path| Some(path.file_name()?.to_owned()));
        let is_agent = name.is_some_and(|name| agent_of(&name.to_string_lossy()).is_some());
        count += usize::from(is_agent);
        Ok(())
    });
    // No error ends it.
    counted.map_or(0, |()| count)
}

/// Passes the files in the folder of the subagents of a session to `each`, and what of it cannot be read. Links are not
/// followed; a folder that is missing has none.
fn each_own(
    disk: &dyn ReadDisk,
    session: &Path,
    each: &mut dyn FnMut(Result<PathBuf, Error>) -> Result<(), Error>,
) -> Result<(), Error> {
    let own = disk.layout().subagents(session);
    let is_folder = match disk.link_metadata(&own) {
        Err(error) if is_absent(&error) => return Ok(()),
        Err(error) => return each(Err(Error::io(&own, None, error))),
        Ok(found) => found.is_folder(),
    };
    if !is_folder {
        return Ok(());
    }
    let layout = disk.layout();
    let folder = layout.folder(session);
    layout.walk(disk, (&folder, layout.subagents), &mut |found| {
        match found {
            SideFile::Folder(_) => return Ok(true),
            SideFile::File(path, FileKind::File) => each(Ok(path.to_owned()))?,
            SideFile::Problem(path, error) if !is_absent(&error) => {
                each(Err(Error::io(path, None, error)))?;
            }
            _ => {}
        }
        Ok(false)
    })
}

/// Returns the files that are named like those of subagents in a folder of sessions, sorted by name.
fn next_to(disk: &dyn ReadDisk, folder: &Path) -> Result<Vec<Subagent>, Error> {
    // A bare file name is relative to the current directory.
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let failed = |error| Error::io(folder, None, error);
    let entries = match disk.list(folder) {
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if entry.kind == FileKind::File {
            names.push(entry.name);
        }
    }
    names.sort_unstable();
    let paths = names.iter().map(|name| folder.join(name));
    Ok(paths
        .filter_map(|path| Subagent::at(&path, folder))
        .collect())
}

/// Returns the id in the name of a subagent's file.
fn agent_id(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let id = name.strip_prefix("agent-")?.strip_suffix(".jsonl")?;
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_id = (1..=MAX_ID).contains(&id.len()) && id.bytes().all(is_safe);
    is_id.then_some(id)
}

/// Returns the folder below `workflows` that contains `path`.
fn run_of(path: &Path, own: &Path) -> Option<String> {
    let below = path.strip_prefix(own.join("workflows")).ok()?;
    let run = below.parent()?.components().next()?;
    Some(run.as_os_str().to_string_lossy().into_owned())
}

fn read_meta(disk: &dyn ReadDisk, path: &Path) -> Option<String> {
    let found = disk.link_metadata(path).ok()?;
    if !found.is_file() || found.len > AGENT_META_CAP as u64 {
        return None;
    }
    String::from_utf8(disk.read(path, AGENT_META_CAP).ok()?).ok()
}

/// Returns the session that the first line of a subagent's file names; `None` also if it cannot be read.
#[must_use]
pub fn session_of_subagent(disk: &Arc<dyn ReadDisk>, path: &Path) -> Option<String> {
    first_session(disk, path).ok()?
}

fn first_session(disk: &Arc<dyn ReadDisk>, path: &Path) -> Result<Option<String>, Error> {
    let source = Source::open_on(disk, path)?;
    let mut head = vec![0; 64 << 10];
    loop {
        let read = source.read_at(0, &mut head)?;
        let end = memchr::memchr(b'\n', &head[..read]);
        if end.is_some() || read < head.len() || head.len() >= MAX_FIRST_LINE {
            let line = String::from_utf8_lossy(&head[..end.unwrap_or(read)]);
            let session = |entry: Entry<'_>| Some(entry.session_id()?.into_owned());
            return Ok(Entry::parse(&line).ok().and_then(session));
        }
        head.resize(head.len() * 2, 0);
    }
}
