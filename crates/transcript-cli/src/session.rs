//! Finds and opens the session named on the command line.

use std::collections::HashSet;
use std::env;
use std::fs::File;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use jiff::Zoned;
use transcript_engine::{
    EntryId, EntryMatch, Error, ErrorKind, History, Index, SessionRow, Store, entries_named,
};
use transcript_reader::{Source, subagents_on};
use transcript_render::{clock, cut_text};

use crate::archive;
use crate::progress::Progress;
use crate::ui::Ui;

/// How many matches of an ambiguous name are listed.
const MATCHES: usize = 20;
/// The widest match, in columns.
const MATCH: usize = 160;

/// Returns the store: `--root`, or the default folder of the client.
pub(crate) fn store(ui: &Ui) -> Result<Store> {
    let root = ui.root.as_ref();
    // The default folder may not exist yet (the client creates it); an explicit --root must.
    if let Some(missing) = root.filter(|root| !root.exists()) {
        bail!("--root: {}: no such directory", missing.display());
    }
    let store = root.map(Store::new).or_else(Store::from_env);
    store.context("cannot find the home directory; name the projects folder with --root DIR")
}

/// Reads the session that `argument` names (see [`find`]), or standard input for `-`. What shows the
/// progress is returned as well, for what the command does before its first output.
pub(crate) fn open(ui: &Ui, argument: &Path) -> Result<(History, Progress)> {
    open_in(ui, argument, None)
}

/// Reads the session of a project, as [`open`] does.
pub(crate) fn open_in(
    ui: &Ui,
    argument: &Path,
    project: Option<&Path>,
) -> Result<(History, Progress)> {
    let source = source_in(ui, argument, project)?;
    let progress = Progress::start(ui);
    Ok((progress.read(source)?, progress))
}

/// Opens the session that `argument` names.
pub(crate) fn source(ui: &Ui, argument: &Path) -> Result<Source> {
    source_in(ui, argument, None)
}

fn source_in(ui: &Ui, argument: &Path, project: Option<&Path>) -> Result<Source> {
    let source = if argument == Path::new("-") {
        let spooled = spool(io::stdin().lock())?;
        Source::from_file(spooled, Path::new("-"))?
    } else {
        Source::open_on(&ui.disk(), &find_in(ui, argument, project)?)?
    };
    source.check_messages()?;
    Ok(source)
}

/// Returns the file that `argument` names: an existing path, else `latest`, else the id of a session
/// or the start of one.
pub(crate) fn find(ui: &Ui, argument: &Path) -> Result<PathBuf> {
    find_in(ui, argument, None)
}

/// Finds a session that is to be written to, as [`find`] does. One that is only archived is an error.
pub(crate) fn find_on_disk(ui: &Ui, argument: &Path) -> Result<PathBuf> {
    let path = find(ui, argument)?;
    if !path.exists() {
        // How to put it back was said when it was found.
        bail!(
            "{}: the session is only archived, and cannot be written to before it is restored",
            argument.display()
        );
    }
    Ok(path)
}

/// Finds a session as [`find`] does; an id and `latest` only among those of the project at this path.
pub(crate) fn find_in(ui: &Ui, argument: &Path, project: Option<&Path>) -> Result<PathBuf> {
    if argument.exists()
        || ui
            .disk()
            .metadata(argument)
            .is_ok_and(|found| found.is_file())
    {
        return Ok(argument.to_owned());
    }
    let text = argument.to_string_lossy();
    if text == "latest" && project.is_none() {
        return latest(ui);
    }
    if is_path(argument) {
        // It may be the name of a file in the store, or a title.
        let store = store(ui).ok().filter(|_| project.is_none());
        let Some(path) = store.and_then(|store| store.find_named(&text).ok()) else {
            bail!("{}: no such file", argument.display());
        };
        ui.note(&format!("found: {}", path.display()));
        return Ok(path);
    }
    let store = match store(ui) {
        Ok(store) => store,
        // The whole folder may be gone.
        Err(error) => return archived(ui, &text, project)?.ok_or(error),
    };
    let found = match project {
        Some(project) => store.find_in(project, &text),
        None => store.find_named(&text),
    };
    let path = match found {
        // What is gone may be archived.
        Err(error) if matches!(error.kind(), ErrorKind::NoSuchSession) => {
            archived(ui, &text, project)?.ok_or(error)
        }
        found => found,
    };
    let path = path.map_err(|error| match error.kind() {
        ErrorKind::NoSuchSession => no_such(&store, &text),
        _ => explained(ui, &text, error),
    })?;
    if text == "latest" {
        ui.note(&format!("latest: {}", path.display()));
    }
    Ok(path)
}

/// Finds an archived session, unless those of a project are asked for.
fn archived(ui: &Ui, text: &str, project: Option<&Path>) -> Result<Option<PathBuf>> {
    if project.is_some() {
        return Ok(None);
    }
    let found = archive::find(ui, text)?;
    if let Some(path) = &found {
        let id = path.file_stem().unwrap_or_default().to_string_lossy();
        ui.note(&format!(
            "archived: {} (`transcript restore {id}` puts it back)",
            path.display()
        ));
    }
    Ok(found)
}

/// Splits `SESSION:LINE`, as `search` prints it, unless a file has this name.
pub(crate) fn with_line(argument: &Path) -> Option<(PathBuf, u64)> {
    let (session, line) = argument.to_str()?.rsplit_once(':')?;
    let is_number = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    if session.is_empty() || !is_number || argument.exists() {
        return None;
    }
    Some((session.into(), line.parse().ok()?))
}

/// Returns whether an argument can only be a path, not the id of a session.
pub(crate) fn is_path(argument: &Path) -> bool {
    argument == Path::new("-")
        || argument.extension().is_some()
        || argument.components().count() != 1
}

fn latest(ui: &Ui) -> Result<PathBuf> {
    let here = env::current_dir().context("cannot determine the current directory")?;
    let store = store(ui)?;
    let path = match store.latest(&here) {
        Err(error) if error.kind() == ErrorKind::NoSuchSession => {
            bail!("no sessions yet in {}", store.root().display())
        }
        path => path?,
    };
    ui.note(&format!("latest: {}", path.display()));
    Ok(path)
}

/// Returns the entry that the value of `option` names: a uuid, the start of one, or a line.
pub(crate) fn find_entry(index: &Index, option: &str, name: &str) -> Result<EntryId> {
    let mut found = entries_named(index, name);
    match found.len() {
        0 => bail!("{option}: {}", no_entry(index, name)),
        1 => Ok(found.remove(0).id),
        count => {
            let shown: String = found.iter().take(MATCHES).map(describe).collect();
            let more = match count.saturating_sub(MATCHES) {
                0 => String::new(),
                more => format!("\n  … and {more} more"),
            };
            bail!("{option}: {name} is ambiguous: {count} entries match:{shown}{more}")
        }
    }
}

/// Says that no entry has this name; of a line what is there.
fn no_entry(index: &Index, name: &str) -> String {
    let Ok(line) = name.parse::<u64>() else {
        return format!(
            "no entry {name}: give the number of its line, or the start of its uuid, at \
             least 4 characters (`transcript replay --ids` shows both)"
        );
    };
    let is_above = |above: &u64| *above < line;
    let mut entries = index.entries().rev();
    let before = entries.find_map(|entry| {
        let above = entry.known_line().filter(is_above);
        above.filter(|_| entry.uuid().is_some())
    });
    let lines = index.line_count();
    let what = match line > lines {
        true => format!("there is no line {line} ({lines} in the file)"),
        false => format!("line {line} is no entry of the conversation"),
    };
    match before {
        Some(before) => format!("{what}; the last entry before it is line {before}"),
        None => what,
    }
}

/// Describes an entry without its content.
fn describe(entry: &EntryMatch) -> String {
    let line = entry.line.map(|line| format!("line {line}"));
    let time = entry
        .millis
        .and_then(|millis| clock(millis, Zoned::now().time_zone()));
    let time = time.map(|time| time.strftime("%Y-%m-%d %H:%M:%S").to_string());
    let parts = [
        line,
        time,
        Some(entry.role.to_owned()),
        Some(entry.id.to_string()),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    format!("\n  {}", parts.join("  "))
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

/// Says that no session has an id, and of how many.
fn no_such(store: &Store, id: &str) -> anyhow::Error {
    let root = store.root().display();
    let count = store.list().map_or(0, |listing| listing.rows.len());
    match count {
        0 => anyhow!("{id}: no such file or session: no sessions yet in {root}"),
        _ => anyhow!(
            "{id}: no such file or session: none of the {count} in {root} has this id or title; `transcript list` shows them, `transcript list --text TEXT` those with a text"
        ),
    }
}

/// Lists the sessions that an ambiguous id matches, so that one can be chosen.
fn explained(ui: &Ui, id: &str, error: Error) -> anyhow::Error {
    if error.kind() != ErrorKind::Ambiguous {
        return anyhow!(error).context(format!("{id}: no such file or session"));
    }
    let rows: Vec<_> = error
        .candidates()
        .iter()
        .map(|path| SessionRow::at(path))
        .collect();
    let ids: HashSet<&str> = rows.iter().map(|row| &*row.session_id).collect();
    let zone = Zoned::now().time_zone().clone();
    let list = rows.iter().map(|row| {
        // Copies of a session in other projects have the same id.
        let name = match ids.len() == rows.len() {
            true => row.session_id.clone(),
            false => row.path.display().to_string(),
        };
        let time = row.order_millis().and_then(|millis| clock(millis, &zone));
        let time = time.map(|time| time.strftime("%Y-%m-%d %H:%M").to_string());
        let folder = row.cwd.as_deref().map(|cwd| ui.render.below_home(cwd));
        let title = row.title.as_ref().or(row.first_prompt.as_ref()).cloned();
        let parts = [Some(name), time, folder, title].into_iter().flatten();
        let parts: Vec<_> = parts.map(|part| ui.escaping.one_line(&part)).collect();
        format!("\n  {}", cut_text(&parts.join("  "), MATCH))
    });
    let list: String = list.take(MATCHES).collect();
    let more = match rows.len().saturating_sub(MATCHES) {
        0 => String::new(),
        more => format!("\n  … and {more} more"),
    };
    let count = rows.len();
    anyhow!("{id} is ambiguous: {count} sessions match:{list}{more}")
}

/// Copies a stream to a temporary file that has no name and that only we can read, so that it can
/// be read with random access.
fn spool(mut input: impl io::Read) -> Result<File> {
    let mut file =
        tempfile::tempfile().context("cannot create a temporary file for standard input")?;
    io::copy(&mut input, &mut file).context("cannot copy standard input to a temporary file")?;
    file.rewind().context("cannot read the temporary file")?;
    Ok(file)
}
