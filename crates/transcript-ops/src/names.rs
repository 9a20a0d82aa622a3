//! The names of sessions, entries and projects, to choose from while a person types. Only a few files are read, whatever the
//! number of sessions.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use transcript_manage::session_sets::add_archived;
use transcript_reader::{SessionFile, SessionFiles, SessionRow};
use transcript_session::{MIN_PREFIX, Policy};

use crate::context::{Context, Selection};
use crate::failure::Failure;

/// The number of characters of an id that are enough for most sessions.
const SHORT_ID_LEN: usize = 8;
/// The length up to which a session is read for the names of its entries, in bytes.
const MAX_READ_LEN: u64 = 16 << 20;

/// A session to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionName {
    /// The start of its id: as much as no other session has, and at least eight characters.
    pub name: String,
    /// The title, or else the first prompt.
    pub title: String,
}

/// An entry to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryName {
    /// The number of its line.
    pub line: u64,
    /// The start of its text.
    pub preview: String,
}

/// Returns the sessions of all roots whose ids start with `start`, those whose files were changed last first, at most `count`.
#[must_use]
pub fn session_names(context: &Context, start: &str, count: usize) -> Vec<SessionName> {
    names(context, &session_files(context), start, count)
}

/// Returns the sessions of the archives whose ids start with `start`, as [`session_names`] does.
#[must_use]
pub fn archived_names(context: &Context, start: &str, count: usize) -> Vec<SessionName> {
    let mut files = SessionFiles::on(Arc::clone(context.read_disk()));
    for archived in context.archives().filter_map(|one| one.sessions().ok()) {
        add_archived(&mut files, archived);
    }
    names(context, &files, start, count)
}

fn names(context: &Context, files: &SessionFiles, start: &str, count: usize) -> Vec<SessionName> {
    let is_named = |file: &&SessionFile| {
        let id = file.id.as_bytes().get(..start.len());
        id.is_some_and(|id| id.eq_ignore_ascii_case(start.as_bytes()))
    };
    let named = newest_first(context, files.sessions.iter().filter(is_named));
    let shown = named.into_iter().take(count).map(|file| {
        let row = SessionRow::of_file(context.read_disk(), file);
        SessionName {
            name: short_name(files, &file.id, start.len()),
            title: row.title.or(row.first_prompt).unwrap_or_default(),
        }
    });
    shown.collect()
}

/// Returns the start of an id that no other session has, at least as long as the typed start.
fn short_name(files: &SessionFiles, id: &str, typed: usize) -> String {
    let least = typed.max(SHORT_ID_LEN).max(MIN_PREFIX);
    let short = id.get(..least).unwrap_or(id);
    match files.matching(short).len() {
        1 => short.to_owned(),
        _ => id.to_owned(),
    }
}

/// Returns the prompts of the conversation of a session, the newest first, at most `count`. None if the file is too long to be
/// read while a person waits.
///
/// # Errors
/// When there is no such session, or it cannot be read.
pub fn entry_names(
    context: &Context,
    session: &Path,
    count: usize,
) -> Result<Vec<EntryName>, Failure> {
    let source = context.open(session)?;
    if source.len() > MAX_READ_LEN {
        return Ok(Vec::new());
    }
    let history = context.read(source)?;
    let entries = history.entries(Policy::Recover)?;
    let path = history.tree(Policy::Recover).path();
    let placed = path.entries.iter().zip(entries).rev();
    let prompts = placed.filter(|(_, entry)| entry.is_prompt).take(count);
    let named = prompts.map(|(place, entry)| EntryName {
        line: history.index().entry(place.entry_no()).line(),
        preview: entry.preview,
    });
    Ok(named.collect())
}

/// Returns the folders of the projects, that of the session whose file was changed last first.
#[must_use]
pub fn project_names(context: &Context) -> Vec<String> {
    let files = session_files(context);
    let mut newest = HashMap::new();
    let sorted = newest_first(context, files.sessions.iter());
    for (place, file) in sorted.into_iter().enumerate() {
        newest.entry(&*file.project).or_insert((place, file));
    }
    let mut newest: Vec<_> = newest.into_values().collect();
    newest.sort_by_key(|(place, _)| *place);
    let folders = newest.into_iter().filter_map(|(_, file)| {
        let row = SessionRow::of_file(context.read_disk(), file);
        row.home().map(str::to_owned)
    });
    folders.collect()
}

/// Returns the sessions of all roots; none if they cannot be listed.
fn session_files(context: &Context) -> SessionFiles {
    context.files(&Selection::default()).unwrap_or_default()
}

/// Returns the files that are not empty, those that were changed last first.
fn newest_first<'f>(
    context: &Context,
    files: impl Iterator<Item = &'f SessionFile>,
) -> Vec<&'f SessionFile> {
    let dated = files.filter_map(|file| {
        let metadata = file.metadata;
        let metadata = metadata.or_else(|| context.read_disk().metadata(&file.path).ok())?;
        (metadata.len > 0).then_some((metadata.modified, file))
    });
    let mut dated: Vec<_> = dated.collect();
    dated.sort_by_key(|(modified, file)| (Reverse(*modified), &file.path));
    dated.into_iter().map(|(_, file)| file).collect()
}
