//! Finds and opens the session named on the command line.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use jiff::Zoned;
use transcript_engine::{Error, ErrorKind, History, MIN_PREFIX, SessionRow};
use transcript_ops::context::{LATEST, Listed};
use transcript_ops::{Failure, FindError, FoundBy, FoundSession};
use transcript_reader::{SessionFile, Source, subagents_on};
use transcript_render::{and_more, cut_text, minute};
use transcript_storage::{ReadDisk, ReadFile, RealDisk, TemporaryFile};

use crate::archive;
use crate::progress::Progress;
pub(crate) use crate::roots::{
    context, follow_policy, one_root, one_root_or_home, root_folders, roots,
};
use crate::ui::Ui;

/// The maximum number of listed matches of an ambiguous name.
const MAX_LISTED_MATCHES: usize = 20;
/// The maximum width of a listed match, in columns.
const MAX_MATCH_WIDTH: usize = 160;

/// Reads the session that `argument` names (see [`find_in`]), or standard input for `-`. What shows the
/// progress is returned as well, for what the command does before its first output.
pub(crate) fn open(
    ui: &Ui,
    argument: &Path,
    project: Option<&Path>,
) -> Result<(History, Progress)> {
    let source = source(ui, argument, project)?;
    let progress = Progress::start(ui);
    Ok((progress.read(source)?, progress))
}

/// Opens the session that `argument` names, or standard input for `-`.
pub(crate) fn source(ui: &Ui, argument: &Path, project: Option<&Path>) -> Result<Source> {
    let source = if argument == Path::new("-") {
        let spooled = spool(io::stdin().lock())?;
        Source::from_file(spooled, Path::new("-"))?
    } else {
        Source::open_on(&ui.disk(), &find_in(ui, argument, project)?.path)?
    };
    source.check_messages()?;
    Ok(source)
}

/// Returns the file that `argument` names: an existing path, else `latest`, else the id of a session
/// or the start of one.
pub(crate) fn find(ui: &Ui, argument: &Path) -> Result<PathBuf> {
    Ok(find_in(ui, argument, None)?.path)
}

/// Finds a session that is to be written to, as [`find`] does. One that is only archived is an error.
pub(crate) fn find_on_disk(ui: &Ui, argument: &Path) -> Result<PathBuf> {
    let path = find(ui, argument)?;
    context(ui).check_own(&path)?;
    if !RealDisk.exists(&path) {
        // How to put it back was said when it was found.
        let text = "the session is only in the archive";
        let archived = Failure::new("not-here", text).in_file(argument);
        return Err(archived
            .with_next("restore it before you write to it")
            .into());
    }
    Ok(path)
}

/// Finds a session as [`find`] does; an id and `latest` only among those of the project, if one is given.
/// Prints the path that was found, unless it was given.
pub(crate) fn find_in(ui: &Ui, argument: &Path, project: Option<&Path>) -> Result<FoundSession> {
    let found = context(ui).find(argument, project);
    let found = found.map_err(|error| not_found(ui, argument, project, error))?;
    let path = found.path.display();
    match found.by {
        FoundBy::Name => ui.note(&format!("found: {path}")),
        FoundBy::Latest => ui.note(&format!("latest: {path}")),
        FoundBy::Archive => {
            archive::warn_of_problems(ui);
            let id = found.path.file_stem().unwrap_or_default();
            let id = id.to_string_lossy();
            ui.note(&format!(
                "archived: {path} (`transcript restore {id}` restores it)"
            ));
        }
        FoundBy::Path | FoundBy::Id => {}
    }
    Ok(found)
}

/// Returns the error for a session that was not found, with advice.
fn not_found(ui: &Ui, argument: &Path, project: Option<&Path>, error: FindError) -> anyhow::Error {
    let text = argument.to_string_lossy();
    // What is long enough and no id may be a title.
    let is_title = text.len() >= MIN_PREFIX;
    let is_missing = |error: &Error| {
        error.kind() == ErrorKind::NoSuchSession || error.kind() == ErrorKind::NotAnId && is_title
    };
    match error {
        // The reason why there is no root.
        FindError::NoStore => {
            let reason = roots(ui).err();
            reason.unwrap_or_else(|| Failure::from(FindError::NoStore).into())
        }
        FindError::Session(error) if is_missing(&error) => match (roots(ui), project) {
            (Err(error), _) => error,
            (Ok(_), Some(named)) => {
                let named = named.display();
                let text = format!("{text}: no such session in a project `{named}`");
                let next = "`transcript list --by project` shows the projects";
                not_in_roots(ui, text).with_next(next).into()
            }
            (Ok(_), None) if text == LATEST => {
                let text = format!("no sessions yet in {}", root_folders(ui));
                not_in_roots(ui, text).into()
            }
            (Ok(_), None) => no_such_session(ui, &text).into(),
        },
        FindError::Session(error) => explained(ui, &text, &error).into(),
        FindError::InSeveralRoots { roots, paths, .. } => {
            let list = matches(ui, &paths);
            let failure = Failure::new("ambiguous", format!("{text} is in several roots:{list}"));
            let roots = roots.join(" or --root ");
            failure
                .with_next(format!("choose one with --root {roots}"))
                .into()
        }
        error => Failure::from(error).into(),
    }
}

/// Finds an archived session by its id or the start of one. Returns its path in the archive, and its root.
pub(crate) fn find_archived(ui: &Ui, id: &str) -> Result<Option<(PathBuf, PathBuf)>> {
    let context = context(ui);
    let found = context.find_archived(id);
    let found = found.map_err(|error| match error {
        FindError::Session(error) if error.kind() == ErrorKind::Ambiguous => {
            // A path is of no use here.
            let failure = explained(ui, id, &error);
            failure.with_next("give more characters of the id").into()
        }
        error => not_found(ui, Path::new(id), None, error),
    })?;
    Ok(found.and_then(|path| {
        let root = context.root_at(&path)?.store.root().to_owned();
        Some((path, root))
    }))
}

/// Splits `SESSION:LINE`, as `search` prints it, unless a file has this name.
pub(crate) fn with_line(argument: &Path) -> Option<(PathBuf, u64)> {
    let (session, line) = argument.to_str()?.rsplit_once(':')?;
    let is_number = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    if session.is_empty() || !is_number || RealDisk.exists(argument) {
        return None;
    }
    Some((session.into(), line.parse().ok()?))
}

/// Describes the subagents of a session that have files of their own: id, type and task. Empty if they
/// cannot be listed.
pub(crate) fn agents(ui: &Ui, session: &Path) -> Vec<String> {
    if session == Path::new("-") {
        return Vec::new();
    }
    let agents = subagents_on(&ui.disk(), session).unwrap_or_default();
    let agents = agents.iter().map(|agent| {
        let meta = agent.meta();
        let kind = meta.as_ref().and_then(|meta| meta.agent_type());
        let task = meta.as_ref().and_then(|meta| meta.description());
        let parts = [Some(agent.id.as_str().into()), kind, task];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        parts.join(" · ")
    });
    agents.collect()
}

/// Says that the roots in use have no session at all.
pub(crate) fn note_no_sessions(ui: &Ui) {
    ui.note(&format!("no sessions yet in {}", root_folders(ui)));
}

/// The failure of a search in the roots that are in use; names the folder if there is only one.
pub(crate) fn not_in_roots(ui: &Ui, text: String) -> Failure {
    let failure = Failure::new("not-found", text);
    match context(ui).store() {
        Ok(store) => failure.at(store.root()),
        Err(_) => failure,
    }
}

/// Says that no session has an id, and of how many.
fn no_such_session(ui: &Ui, id: &str) -> Failure {
    let folders = root_folders(ui);
    let listing = context(ui).listing(Listed::Live);
    let count = listing.map_or(0, |listing| listing.rows.len());
    if count == 0 {
        let text = format!("{id}: no such file or session: no sessions yet in {folders}");
        return not_in_roots(ui, text);
    }
    let text = format!(
        "{id}: no such file or session: none of the {count} in {folders} has this id or title"
    );
    let next = "`transcript list` shows them, `transcript list --text TEXT` those with a text";
    not_in_roots(ui, text).with_next(next)
}

/// Lists the sessions that an ambiguous id matches, so that one can be chosen.
fn explained(ui: &Ui, id: &str, error: &Error) -> Failure {
    if error.kind() == ErrorKind::NotAnId {
        let text = format!("{id}: no such file, and too short for the id of a session");
        let failure = Failure::new("not-an-id", text).at(error.path());
        return failure.with_next("give at least its first 4 letters or digits");
    }
    if error.kind() != ErrorKind::Ambiguous {
        return error.into();
    }
    let list = matches(ui, error.candidates());
    let count = error.candidates().len();
    let text = format!("{id} is ambiguous: {count} sessions match:{list}");
    Failure::new("ambiguous", text)
        .at(error.path())
        .with_next("name one with more characters of its id, or with its path")
}

/// Describes sessions, each on a line of its own.
fn matches(ui: &Ui, paths: &[PathBuf]) -> String {
    let disk = ui.disk();
    let row = |path: &PathBuf| SessionRow::of_file(&disk, &SessionFile::at(&*disk, path));
    let rows: Vec<_> = paths.iter().map(row).collect();
    let ids: HashSet<&str> = rows.iter().map(|row| &*row.session_id).collect();
    let zone = Zoned::now().time_zone().clone();
    let list = rows.iter().map(|row| {
        // Copies of a session in other projects have the same id.
        let mut name = row.session_id.clone();
        if ids.len() < rows.len() {
            name = row.path.display().to_string();
        }
        let time = minute(row.order_millis(), &zone);
        let folder = row.cwd.as_deref().map(|cwd| ui.render.below_home(cwd));
        let title = row.title.as_ref().or(row.first_prompt.as_ref()).cloned();
        let parts = [Some(name), time, folder, title].into_iter().flatten();
        let parts: Vec<_> = parts.map(|part| ui.escaping.one_line(&part)).collect();
        format!("\n  {}", cut_text(&parts.join("  "), MAX_MATCH_WIDTH))
    });
    let list: String = list.take(MAX_LISTED_MATCHES).collect();
    let count = rows.len();
    let more = match and_more(count, MAX_LISTED_MATCHES) {
        more if more.is_empty() => more,
        more => format!("\n  …{more}"),
    };
    format!("{list}{more}")
}

/// Copies a stream to a temporary file that has no name and that only we can read, so that it can
/// be read with random access.
fn spool(mut input: impl io::Read) -> Result<Arc<dyn ReadFile>> {
    let mut file =
        TemporaryFile::new().context("cannot create a temporary file for standard input")?;
    io::copy(&mut input, &mut file).context("cannot copy standard input to a temporary file")?;
    Ok(file.into_reader())
}
