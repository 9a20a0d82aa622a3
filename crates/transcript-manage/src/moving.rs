//! Moves the sessions of a working folder that was moved or renamed (see `docs/moving.md`).

use std::collections::HashSet;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use transcript_format::json::ObjectBuf;
use transcript_format::kind::EntryKind;
use transcript_format::make;
use transcript_format::names::{self, is_key_of, is_windows, project_key, rest_below};
use transcript_format::object::Object;
use transcript_reader::{Listing, SessionRow, all_subagents_on};
use transcript_storage::{
    Client, Disk, File, FileKind, ReadDisk, RealDisk, SideFile, folder_of, is_absent,
};

use crate::copying;
use transcript_session::Store;
use transcript_session::{Error, ErrorKind};

/// The options of [`move_project`].
#[derive(Clone, Copy, Debug, Default)]
pub struct MoveOptions {
    copy: bool,
    undo: bool,
    dry_run: bool,
}

impl MoveOptions {
    /// Moves the sessions of the old folder to the new one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves the sessions where they are and writes copies with new ids for the new folder.
    #[must_use]
    pub fn copy(mut self) -> Self {
        self.copy = true;
        self
    }

    /// Takes an earlier move of the same two folders back: only sessions that it moved.
    #[must_use]
    pub fn undo(mut self) -> Self {
        self.undo = true;
        self
    }

    /// Changes nothing; the answer is what would be done.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }
}

/// The result of [`move_project`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Moves {
    /// The sessions that were moved or copied, by path.
    pub moved: Vec<MovedFile>,
    /// The sessions that were not, and why. They are as they were.
    pub refused: Vec<RefusedMove>,
    /// Files and folders that do not belong to the sessions of the old folder and were left, by path.
    pub left: Vec<PathBuf>,
}

/// A session in a new place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MovedFile {
    /// The file before.
    pub from: PathBuf,
    /// The file now; equal to [`Self::from`] if only the recorded folder had to change.
    pub to: PathBuf,
    /// The id of the session; of a copy, its new id.
    pub session_id: String,
    /// The working folder that the session names now.
    pub cwd: String,
}

/// A session that was not moved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedMove {
    /// Its file.
    pub path: PathBuf,
    /// Its id.
    pub session_id: String,
    /// The reason.
    pub reason: MoveRefusal,
    /// More about it: the file in the way, or the error of the system.
    pub detail: String,
}

/// The reason why a session was not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MoveRefusal {
    /// A file at the new place has a name that is needed.
    Exists,
    /// A process has the session open, or a running client has it.
    Busy,
    /// The session is a symbolic link, or a file that cannot be appended to.
    Unusable,
    /// The system failed. The same call finishes the move later.
    Failed,
}

impl MoveRefusal {
    /// Returns the stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exists => "exists",
            Self::Busy => "busy",
            Self::Unusable => "unusable",
            Self::Failed => "failed",
        }
    }
}

/// Moves the sessions of the working folder `old`, and of folders below it, to the project of
/// `new`, with their subagents and side files. The folders themselves need not exist.
///
/// Nothing is overwritten. A kill leaves each session complete at the old or the new place, and
/// the same call finishes the move. The lines of a session stay; one `relocated` line, as clients
/// write it, is appended, and moving back removes it again. Times and modes of files stay.
///
/// ```
/// use std::path::Path;
/// use transcript_manage::{MoveOptions, move_project};
/// use transcript_session::Store;
/// # use transcript_session::{Draft, Session, SessionOptions};
/// # let folder = tempfile::tempdir()?;
/// # let store = Store::new(folder.path().join("projects"));
/// # let (old, new) = (folder.path().join("old"), folder.path().join("new"));
/// # let options = SessionOptions::new().cwd(old.to_string_lossy());
/// # let session = Session::create(&store.new_session_path(&old), &options)?;
/// # session.append(Draft::user("Which years have a leap day?"))?;
/// # session.close()?;
/// let done = move_project(&store, &old, &new, MoveOptions::new())?;
/// assert_eq!(done.moved.len(), 1);
/// assert!(done.moved[0].to.starts_with(store.project(&new)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ErrorKind::BelowItself`] when `new` is `old` or below it; [`ErrorKind::Read`] when the folder
/// of projects cannot be read. What concerns one session is in [`Moves::refused`].
pub fn move_project(
    store: &Store,
    old: &Path,
    new: &Path,
    options: MoveOptions,
) -> Result<Moves, Error> {
    move_in_steps(store, old, new, options, &|| Ok(()))
}

/// Calls `before` before each change of the file system.
fn move_in_steps(
    store: &Store,
    old: &Path,
    new: &Path,
    options: MoveOptions,
    before: &dyn Fn() -> io::Result<()>,
) -> Result<Moves, Error> {
    let (old, new) = (Folder::at(old), Folder::at(new));
    // After the move its sessions would be below the old folder again: each call would move them deeper.
    if old.rest(&new.real().to_string_lossy()).is_some() {
        return Err(Error::new(ErrorKind::BelowItself, new.real()));
    }
    let listing = store.list()?;
    let mut done = Moves::default();
    let (plans, mut left) = if options.undo {
        let plans = plans_back(store, &listing, &old, &new, &mut done.refused);
        (plans, Vec::new())
    } else {
        plans(store.root(), &listing, &old, &new)
    };
    let disk = store.disk();
    let steps = MoveSteps { disk, before };
    for plan in &plans {
        let result = match (options.copy, options.dry_run) {
            (true, dry_run) => copy(disk, plan, dry_run, &mut left),
            (false, true) => plan.check(disk).map(|_| plan.to.clone()),
            (false, false) => plan.carry_out(&steps).map(|()| plan.to.clone()),
        };
        match result {
            Ok(to) => done.moved.push(MovedFile {
                session_id: id_of(&to),
                from: plan.from.clone(),
                to,
                cwd: plan.cwd.clone(),
            }),
            Err(Refused(reason, detail)) => done.refused.push(RefusedMove {
                path: plan.from.clone(),
                session_id: id_of(&plan.from),
                reason,
                detail,
            }),
        }
    }
    if !options.dry_run && !options.copy {
        let source = if options.undo { &new } else { &old };
        left.extend(steps.remove_empty_projects(store.root(), source, &plans));
    }
    left.extend(memory_folders(&**disk, &plans));
    left.sort();
    left.dedup();
    done.left = left;
    Ok(done)
}

/// A working folder under the names that sessions may have recorded: first with all links resolved,
/// as clients do, then as given.
struct Folder(Vec<PathBuf>);

impl Folder {
    fn at(path: &Path) -> Self {
        // Of another machine: it has no links here.
        let text = path.to_string_lossy();
        if cfg!(not(windows)) && is_windows(&text) {
            let text = names::plain(&text);
            let short = text.trim_end_matches(['\\', '/']);
            let is_root = !is_windows(short);
            return Self(vec![if is_root { &*text } else { short }.into()]);
        }
        let given = plain(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        let mut names = vec![real_path(&given)];
        if !names.contains(&given) {
            names.push(given);
        }
        Self(names)
    }

    fn real(&self) -> &Path {
        &self.0[0]
    }

    /// Returns the path of `cwd` below this folder; an empty path for the folder itself.
    fn rest(&self, cwd: &str) -> Option<PathBuf> {
        let rests = self.0.iter();
        let mut rests = rests.filter_map(|name| rest_below(&name.to_string_lossy(), cwd));
        Some(rests.next()?.into_iter().collect())
    }

    fn below(&self, rest: &Path) -> PathBuf {
        below(self.real(), rest)
    }

    /// Returns whether `project` is the project folder of `rest` below this folder.
    fn has_key(&self, project: &str, rest: &Path) -> bool {
        let mut names = self.0.iter();
        names.any(|name| is_key_of(project, &below(name, rest).to_string_lossy()))
    }
}

/// Joins without a slash at the end.
fn below(folder: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() {
        return folder.to_owned();
    }
    let text = folder.to_string_lossy();
    if cfg!(windows) || !is_windows(&text) {
        return folder.join(rest);
    }
    let separator = if text.contains('\\') { "\\" } else { "/" };
    let parts = rest.iter().map(|part| part.to_string_lossy());
    let parts = std::iter::once(text.trim_end_matches(['\\', '/']).into()).chain(parts);
    PathBuf::from(parts.collect::<Vec<_>>().join(separator))
}

/// Removes `..` and slashes at the end: an absolute path may have both.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
    }
    plain
}

/// Resolves the links of the part of a path that exists: a folder that was renamed does not. Working folders are those of this
/// machine, wherever the sessions are.
fn real_path(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (RealDisk.real_path(above), path.strip_prefix(above)) {
            let real = real.to_string_lossy();
            return below(Path::new(&*names::plain(&real)), rest);
        }
    }
    path.to_owned()
}

/// The planned move or copy of one session.
struct Plan {
    from: PathBuf,
    to: PathBuf,
    /// The folder that the session names now, or belongs to if it names none.
    was: String,
    /// The folder that it is to name.
    cwd: String,
    has_file: bool,
}

/// Returns the plans to move from `old` to `new`, and the sessions next to those that stay.
fn plans(root: &Path, listing: &Listing, old: &Folder, new: &Folder) -> (Vec<Plan>, Vec<PathBuf>) {
    let (mut plans, mut left) = (Vec::new(), Vec::new());
    for row in &listing.rows {
        match destination(row, listing, old, new) {
            Destination::Elsewhere => {}
            Destination::Stays => left.push(row.path.clone()),
            Destination::Project(project) => {
                let rest = recorded(row).and_then(|cwd| old.rest(cwd));
                let was = recorded(row).map(str::to_owned);
                plans.push(Plan {
                    from: row.path.clone(),
                    to: moved_to(root, row, &project),
                    was: was.unwrap_or_else(|| old.real().to_string_lossy().into_owned()),
                    cwd: text(&new.below(&rest.unwrap_or_default())),
                    has_file: row.has_file,
                });
            }
        }
    }
    (each_once(plans), left)
}

/// Returns the plans to undo the moves from `old` to `new`. A file that cannot be read may have been moved as well: it is
/// refused.
fn plans_back(
    store: &Store,
    listing: &Listing,
    old: &Folder,
    new: &Folder,
    refused: &mut Vec<RefusedMove>,
) -> Vec<Plan> {
    let mut plans = Vec::new();
    for row in listing.rows.iter().filter(|row| row.has_file) {
        let is_here = recorded(row).is_some_and(|cwd| new.rest(cwd).is_some());
        // The record is in the lines of a session: only those are read that can be at the new place.
        if !is_here && !new.has_key(&row.project, Path::new("")) {
            continue;
        }
        let mark = match MoveRecord::last_in(&**store.disk(), &row.path) {
            Ok(Some(mark)) => mark,
            Ok(None) => continue,
            Err(error) => {
                refused.push(RefusedMove {
                    path: row.path.clone(),
                    session_id: id_of(&row.path),
                    reason: MoveRefusal::Failed,
                    detail: error.to_string(),
                });
                continue;
            }
        };
        // Its last move was another one, which this call must not undo.
        if old.rest(&mark.from).is_none() || new.rest(&mark.to).is_none() {
            continue;
        }
        plans.push(Plan {
            from: row.path.clone(),
            to: moved_to(store.root(), row, &mark.project),
            was: mark.to,
            cwd: mark.from,
            has_file: true,
        });
    }
    each_once(plans)
}

/// Drops the plan of a name at the new place when the name at the old place still exists: the move
/// was interrupted.
fn each_once(mut plans: Vec<Plan>) -> Vec<Plan> {
    // A plan that moves comes first: for the linked name at the new place nothing is left to do but the record,
    // and the old name would stay.
    plans.sort_by_key(|plan| (plan.from == plan.to, plan.from.clone()));
    let mut targets = HashSet::new();
    plans.retain(|plan| targets.insert(plan.to.clone()));
    plans.sort_by(|a, b| a.from.cmp(&b.from));
    plans
}

/// Returns the folder that the last move wrote down, even if the file is back at its old place: a call that undoes the
/// move may have been killed.
fn recorded(row: &SessionRow) -> Option<&str> {
    row.relocated.as_deref().or(row.cwd.as_deref())
}

fn moved_to(root: &Path, row: &SessionRow, project: &str) -> PathBuf {
    if project == row.project {
        return row.path.clone();
    }
    root.join(project)
        .join(row.path.file_name().unwrap_or_default())
}

/// The project of a session after the move.
enum Destination {
    /// It has nothing to do with the old folder.
    Elsewhere,
    /// It looks as if it did, and stays.
    Stays,
    /// In this project folder.
    Project(String),
}

fn destination(row: &SessionRow, listing: &Listing, old: &Folder, new: &Folder) -> Destination {
    let new_project = |rest: &Path| Destination::Project(project_key(&text(&new.below(rest))));
    let top = Path::new("");
    let Some(cwd) = recorded(row) else {
        // Another folder with the same key could be its own.
        let others = listing.rows.iter();
        let mut others = others.filter(|other| other.project == row.project);
        let is_other = |other: &SessionRow| {
            let cwd = recorded(other);
            cwd.is_some_and(|cwd| is_key_of(&row.project, cwd) && old.rest(cwd).is_none())
        };
        return if !old.has_key(&row.project, top) {
            Destination::Elsewhere
        } else if others.any(is_other) {
            Destination::Stays
        } else {
            new_project(top)
        };
    };
    let Some(rest) = old.rest(cwd) else {
        // A project folder that was renamed by hand has sessions with older folders.
        let is_stale = !is_key_of(&row.project, cwd) && !RealDisk.is_folder(Path::new(cwd));
        return if !old.has_key(&row.project, top) {
            Destination::Elsewhere
        } else if is_stale {
            new_project(top)
        } else {
            Destination::Stays
        };
    };
    let bases = || [top].into_iter().chain(rest.ancestors());
    if let Some(base) = bases().find(|base| old.has_key(&row.project, base)) {
        return new_project(base);
    }
    // Moved by hand, or by a call that was killed before its last step.
    if bases().any(|base| new.has_key(&row.project, base)) {
        Destination::Project(row.project.clone())
    } else {
        Destination::Stays
    }
}

/// The reason why a session is not moved, with details.
struct Refused(MoveRefusal, String);

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        let why = match error.kind() {
            io::ErrorKind::CrossesDevices => {
                "the project folders are on different file systems: copy them instead".to_owned()
            }
            _ => error.to_string(),
        };
        Self(MoveRefusal::Failed, why)
    }
}

/// A file or folder and its name at the new place.
struct MovedPath {
    from: PathBuf,
    to: PathBuf,
    is_folder: bool,
}

impl Plan {
    fn carry_out(&self, steps: &MoveSteps<'_>) -> Result<(), Refused> {
        let mut held = None;
        if self.from != self.to {
            let belongings = self.check(steps.disk)?;
            let was_linked = self.is_linked(&**steps.disk)?;
            // Before the first change, so that no other writer comes until the record is in the file.
            if self.has_file && !was_linked {
                held = Some(open(&**steps.disk, &self.from)?);
            }
            let made = NewFolder::of(&**steps.disk, &self.to);
            if let Err(error) = steps.link_all(self, &belongings) {
                if !was_linked {
                    // Whole at the old place; nothing is to be left at the new one.
                    steps.unlink_new(self, &belongings);
                    made.remove();
                }
                return Err(error.into());
            }
            steps.unlink_all(self, &belongings).map_err(|error| {
                let (old, new) = (text(folder_of(&self.from)), text(&self.to));
                let what = format!(
                    "{error}; it is whole at the new place, {new}, and the same command finishes: it removes what is \
                     still in {old}"
                );
                Refused(MoveRefusal::Failed, what)
            })?;
        }
        if !self.has_file {
            return Ok(());
        }
        let file = match held {
            Some(file) => file,
            None => open(&**steps.disk, &self.to)?,
        };
        Ok(self.record(&*file, steps)?)
    }

    /// Returns whether an earlier call was killed after it had made everything at the new place.
    fn is_linked(&self, disk: &dyn Disk) -> io::Result<bool> {
        Ok(self.has_file && same(disk, &self.from, &self.to)?)
    }

    /// Returns the side files of the session, folders before their content. Refuses
    /// when a name is taken at the new place.
    fn check(&self, disk: &Arc<dyn Disk>) -> Result<Vec<MovedPath>, Refused> {
        let mut all = Vec::new();
        if self.from == self.to {
            return Ok(all);
        }
        let found = disk.link_metadata(&self.from);
        if found.is_ok_and(|found| found.kind == FileKind::Link) {
            let why = "it is a symbolic link; move the file that it leads to".to_owned();
            return Err(Refused(MoveRefusal::Unusable, why));
        }
        let (old, new) = (folder_of(&self.from), folder_of(&self.to));
        let id = id_of(&self.from);
        for entry in disk.list(old)? {
            let name = entry?.name;
            let text = name.to_string_lossy();
            let rest = text.strip_prefix(&*id);
            // The id may be the start of a longer name that is not of this session.
            let is_its = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            if is_its && text != format!("{id}.jsonl") {
                add(&**disk, &mut all, &old.join(&name), &new.join(&name))?;
            }
        }
        let shared: Arc<dyn ReadDisk> = Arc::clone(disk) as _;
        let agents = all_subagents_on(&shared, &self.from)
            .map_err(|error| io::Error::other(error.to_string()))?;
        // Old clients wrote subagents beside the session, and not in its folder.
        for agent in agents.iter().filter(|agent| folder_of(&agent.path) == old) {
            for path in [agent.path.clone(), agent.path.with_extension("meta.json")] {
                if let (Ok(_), Some(name)) = (disk.link_metadata(&path), path.file_name()) {
                    add(&**disk, &mut all, &path, &new.join(name))?;
                }
            }
        }
        let main = self.main();
        // A call that was killed has made a part of it, or has removed a part of the old names.
        let is_first = self.has_file && !self.is_linked(&**disk)?;
        let is_taken = |one: &MovedPath| -> io::Result<bool> {
            let found = match disk.link_metadata(&one.to) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                found => found?,
            };
            match one.is_folder {
                true if !found.is_folder() => Ok(true),
                true if is_first => has_strange_files(&**disk, &one.from, &one.to),
                true => Ok(false),
                false => Ok(!same(&**disk, &one.from, &one.to)?),
            }
        };
        for one in all.iter().chain([&main]) {
            if is_taken(one)? {
                let path = one.to.display().to_string();
                return Err(Refused(MoveRefusal::Exists, path));
            }
        }
        Ok(all)
    }

    fn main(&self) -> MovedPath {
        MovedPath {
            from: self.from.clone(),
            to: self.to.clone(),
            is_folder: false,
        }
    }

    /// Writes down the folder of the session: removes the line of the move that this one undoes,
    /// else appends a line.
    fn record(&self, file: &dyn File, steps: &MoveSteps<'_>) -> io::Result<()> {
        let len = file.status()?.len;
        let (start, last, is_ended) = last_line(file, len)?;
        let mark = MoveRecord::parse(&last).filter(|_| is_ended);
        // An earlier call wrote the record, and was killed or failed after that.
        if mark.as_ref().is_some_and(|mark| mark.to == self.cwd) {
            return Ok(());
        }
        let modified = steps.disk.metadata(&self.to)?.modified;
        let modified = modified.ok_or(io::ErrorKind::Unsupported)?;
        (steps.before)()?;
        match mark {
            // Nothing was written since that move: without its line, and the newline that ended a torn line before
            // it, the file is as it was.
            Some(mark) if mark.from == self.cwd && (mark.at == start || mark.at + 1 == start) => {
                file.truncate(mark.at)?;
            }
            _ => {
                let newline = if len == 0 || is_ended { "" } else { "\n" };
                let line = format!("{newline}{}\n", self.line(len));
                // A part of a line must not stay: the next line would be appended to it.
                if file.append(line.as_bytes())? < line.len() {
                    file.truncate(len)?;
                    return Err(io::ErrorKind::StorageFull.into());
                }
            }
        }
        file.sync()?;
        // Clients delete sessions by this time, and lists are sorted by it.
        steps.disk.set_properties(&self.to, Some(modified), None)
    }

    fn line(&self, len: u64) -> String {
        let project = folder_of(&self.from).file_name().unwrap_or_default();
        let project = if self.from == self.to {
            project_key(&self.was)
        } else {
            project.to_string_lossy().into_owned()
        };
        let moved = ObjectBuf::new()
            .with("from", self.was.as_str())
            .with("project", project.as_str())
            .with("at", len);
        relocated(
            &self.cwd,
            &id_of(&self.to),
            &ObjectBuf::new().with("moved", moved),
        )
    }
}

/// Returns the line with which clients say where a session works now, with our own fields.
fn relocated(cwd: &str, session_id: &str, fields: &ObjectBuf) -> String {
    make::metadata(EntryKind::Relocated)
        .with("relocatedCwd", cwd)
        .session_id(session_id)
        .engine(fields)
        .text()
}

/// The content of our line in a moved session.
struct MoveRecord {
    from: String,
    to: String,
    /// The project folder that the session was in.
    project: String,
    /// The length of the file before the line.
    at: u64,
}

impl MoveRecord {
    fn parse(line: &[u8]) -> Option<Self> {
        let line = Object::parse(std::str::from_utf8(line).ok()?).ok()?;
        let moved = line.object("transcriptEngine")?.object("moved")?;
        let project = moved.str("project")?.into_owned();
        // It becomes part of a path.
        let is_name = Path::new(&project).components().count() == 1
            && matches!(
                Path::new(&project).components().next(),
                Some(Component::Normal(_))
            );
        is_name.then_some(())?;
        Some(Self {
            from: moved.str("from")?.into_owned(),
            to: line.str("relocatedCwd")?.into_owned(),
            project,
            at: moved.u64("at")?,
        })
    }

    /// Returns the last one in a file.
    fn last_in(disk: &dyn Disk, path: &Path) -> io::Result<Option<Self>> {
        let mut found = None;
        copying::each_line(disk, path, &mut |line| {
            // Our line starts with its type; other lines are not parsed, because a session can be large.
            if line.starts_with(b"{\"type\":\"relocated\"") {
                found = Self::parse(line).or(found.take());
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// Returns the offset of the last line, the line, and whether it ends with a newline. A line that is
/// longer than any of ours is cut.
fn last_line(file: &dyn File, len: u64) -> io::Result<(u64, Vec<u8>, bool)> {
    const MAX_TAIL_LEN: u64 = 64 << 10;
    let start = len.saturating_sub(MAX_TAIL_LEN);
    let mut bytes = vec![0; (len - start) as usize];
    let read = file.fill(start, &mut bytes)?;
    bytes.truncate(read);
    let is_ended = bytes.last() == Some(&b'\n');
    if is_ended {
        bytes.pop();
    }
    let line = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    Ok((start + line as u64, bytes.split_off(line), is_ended))
}

/// Opens the file of a session, unless another process works with it.
fn open(disk: &dyn Disk, path: &Path) -> Result<Arc<dyn File>, Refused> {
    let busy = |by: &str| Refused(MoveRefusal::Busy, by.to_owned());
    if let Some(process) = Client::of_session(disk, path).running {
        return Err(busy(&format!("process {process} runs it; end it first")));
    }
    let opened = disk.open(path, false).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => busy("another process opens it"),
        io::ErrorKind::InvalidInput => Refused(MoveRefusal::Unusable, error.to_string()),
        _ => Refused::from(error),
    })?;
    if opened.has_other_writer == Some(true) || !opened.file.try_lock()? {
        return Err(busy("another process writes to it; end it first"));
    }
    Ok(opened.file)
}

/// Adds a file or folder and all that is in it.
fn add(disk: &dyn Disk, all: &mut Vec<MovedPath>, from: &Path, to: &Path) -> io::Result<()> {
    let is_folder = disk.link_metadata(from)?.is_folder();
    let mut push = |path: &Path, is_folder: bool| {
        all.push(MovedPath {
            from: path.to_owned(),
            to: match path.strip_prefix(from) {
                Ok(below) if path != from => to.join(below),
                _ => to.to_owned(),
            },
            is_folder,
        });
    };
    push(from, is_folder);
    if !is_folder {
        return Ok(());
    }
    disk.layout()
        .walk_all(disk, from, &mut |found| match found {
            SideFile::File(path, _) => {
                push(path, false);
                Ok(false)
            }
            SideFile::Folder(path) => {
                push(path, true);
                Ok(true)
            }
            SideFile::Problem(_, error) => Err(error),
            _ => Ok(false),
        })
}

/// Returns whether `to` has something that is not in `from`.
fn has_strange_files(disk: &dyn Disk, from: &Path, to: &Path) -> io::Result<bool> {
    for entry in disk.list(to)? {
        match disk.link_metadata(&from.join(entry?.name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            found => _ = found?,
        }
    }
    Ok(false)
}

/// Returns whether two names lead to the same file. What cannot be looked at is an error and no answer: a name is removed
/// because the other one is there.
fn same(disk: &dyn Disk, a: &Path, b: &Path) -> io::Result<bool> {
    let (a, b) = (disk.identity(a)?, disk.identity(b)?);
    Ok(a.is_some() && a == b)
}

/// The changes of the file system, each preceded by a call that tests let fail.
struct MoveSteps<'b> {
    disk: &'b Arc<dyn Disk>,
    before: &'b dyn Fn() -> io::Result<()>,
}

impl MoveSteps<'_> {
    /// Gives everything a second name at the new place, the file of the session last: as long as it
    /// is missing there, the old place counts.
    ///
    /// # Errors
    /// Everything has its old name then, and a part a new one, too.
    fn link_all(&self, plan: &Plan, belongings: &[MovedPath]) -> io::Result<()> {
        self.make_folder(folder_of(&plan.from), folder_of(&plan.to))?;
        for one in belongings {
            if one.is_folder {
                self.make_folder(&one.from, &one.to)?;
            } else {
                self.link(&one.from, &one.to)?;
            }
        }
        // A power cut must not leave the session at the new place without its side files.
        for folder in belongings.iter().filter(|one| one.is_folder) {
            self.disk.sync_folder(&folder.to)?;
        }
        if plan.has_file {
            self.link(&plan.from, &plan.to)?;
        }
        self.disk.sync_folder(folder_of(&plan.to))
    }

    /// Removes the names at the old place, that of the session last: as long as it is there, the
    /// same call finds the rest.
    ///
    /// # Errors
    /// Everything has its new name then, and a part its old one, too.
    fn unlink_all(&self, plan: &Plan, belongings: &[MovedPath]) -> io::Result<()> {
        // Before anything is removed: that changes the times of the old folders.
        for one in belongings.iter().filter(|one| one.is_folder) {
            self.keep_time(&one.from, &one.to);
        }
        // In reverse, because only an empty folder can be removed.
        for one in belongings.iter().rev() {
            self.remove(one)?;
        }
        if plan.has_file {
            (self.before)()?;
            // Without the name at the new place, this one is the only name of the session.
            if !self.same(&plan.from, &plan.to)? {
                let what = "it is not at the new place; nothing of it was removed";
                return Err(io::Error::other(what));
            }
            self.disk.remove(&plan.from)?;
        }
        self.disk.sync_folder(folder_of(&plan.from))
    }

    /// Removes the new files of an attempt that failed.
    fn unlink_new(&self, plan: &Plan, belongings: &[MovedPath]) {
        let main = [plan.main()];
        for one in main.iter().chain(belongings.iter().rev()) {
            let is_ours = if one.is_folder {
                (self.before)().is_ok()
            } else {
                // A file that cannot be read stays: it may not be ours.
                self.same(&one.from, &one.to).is_ok_and(|same| same) && (self.before)().is_ok()
            };
            let _ = match (is_ours, one.is_folder) {
                (true, true) => self.disk.remove_folder(&one.to),
                (true, false) => self.disk.remove(&one.to),
                (false, _) => Ok(()),
            };
        }
    }

    fn remove(&self, one: &MovedPath) -> io::Result<()> {
        (self.before)()?;
        match one.is_folder {
            // Something was put into it since: it stays, and the next call moves it.
            true => match self.disk.remove_folder(&one.from) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
                removed => removed,
            },
            false if self.same(&one.from, &one.to)? => self.disk.remove(&one.from),
            false => Ok(()),
        }
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.same(from, to)? {
            return Ok(());
        }
        (self.before)()?;
        self.disk.link(from, to)
    }

    /// Makes a folder with the mode of another one.
    fn make_folder(&self, like: &Path, folder: &Path) -> io::Result<()> {
        if self.disk.is_folder(folder) {
            return Ok(());
        }
        (self.before)()?;
        let mode = self.disk.metadata(like)?.mode;
        self.disk.create_new_folder(folder, mode)?;
        self.disk.sync_folder(folder_of(folder))
    }

    /// Gives a folder the time of another one, where the system allows it.
    fn keep_time(&self, like: &Path, folder: &Path) {
        let time = self.disk.metadata(like).map(|found| found.modified);
        let _ = time.and_then(|time| self.disk.set_properties(folder, time, None));
    }

    fn same(&self, a: &Path, b: &Path) -> io::Result<bool> {
        same(&**self.disk, a, b)
    }

    /// Removes the projects that are empty after the move, now or by an earlier call. Returns those that it cannot remove
    /// although they are empty.
    fn remove_empty_projects(&self, root: &Path, source: &Folder, plans: &[Plan]) -> Vec<PathBuf> {
        let moved = plans.iter().filter(|plan| plan.from != plan.to);
        let mut folders: HashSet<PathBuf> =
            moved.map(|plan| folder_of(&plan.from).to_owned()).collect();
        let own = source.0.iter().map(|name| project_key(&text(name)));
        folders.extend(own.map(|key| root.join(key)));
        folders.retain(|folder| {
            let removed = (self.before)().and_then(|()| self.disk.remove_folder(folder));
            // Fails, as it should, if something is left in it.
            let list = || self.disk.list(folder);
            let is_empty = || list().is_ok_and(|mut left| left.next().is_none());
            removed.is_err() && is_empty()
        });
        folders.into_iter().collect()
    }
}

/// The project folder of a session at its new place, if it is not there yet.
struct NewFolder<'p> {
    disk: &'p dyn Disk,
    folder: Option<&'p Path>,
}

impl<'p> NewFolder<'p> {
    fn of(disk: &'p dyn Disk, file: &'p Path) -> Self {
        let folder = folder_of(file);
        let found = disk.link_metadata(folder);
        let is_new = found.is_err_and(|error| is_absent(&error));
        let folder = is_new.then_some(folder);
        Self { disk, folder }
    }

    /// Removes it after an error, unless it is in use by now.
    fn remove(&self) {
        if let Some(folder) = self.folder {
            let _ = self.disk.remove_folder(folder);
        }
    }
}

/// Copies a session under a new id; returns its path.
fn copy(
    disk: &Arc<dyn Disk>,
    plan: &Plan,
    dry_run: bool,
    left: &mut Vec<PathBuf>,
) -> Result<PathBuf, Refused> {
    let id = id_of(&plan.from);
    // The same id each time, so that the same call finishes a copy that was interrupted.
    let named = |id: &str| plan.to.with_file_name(format!("{id}.jsonl"));
    let old_id = copying::derived_id_before(&id, &plan.to);
    let is_begun = |file: &Path| disk.exists(file) || disk.exists(&file.with_extension(""));
    let new_id = if is_begun(&named(&old_id)) {
        old_id
    } else {
        copying::derived_id(&id, &plan.to)
    };
    let to = named(&new_id);
    if disk.exists(&to) {
        return Err(Refused(
            MoveRefusal::Exists,
            format!("copied before: {}", to.display()),
        ));
    }
    if !dry_run {
        let source = folder_of(&plan.from);
        let steps = MoveSteps {
            disk,
            before: &|| Ok(()),
        };
        let made = NewFolder::of(&**disk, &to);
        let unmake = |_: &io::Error| made.remove();
        let folder = steps.make_folder(source, folder_of(&to));
        folder.inspect_err(unmake)?;
        let copied = ObjectBuf::new()
            .with("from", plan.was.as_str())
            .with("sessionId", id.as_str());
        let fields = ObjectBuf::new().with("copied", copied);
        let line = relocated(&plan.cwd, &new_id, &fields);
        let copied = copying::copy_session(disk, &plan.from, &to, &line);
        let not_copied = copied.inspect_err(unmake)?;
        left.extend(not_copied.into_iter().map(|file| file.path));
    }
    Ok(to)
}

/// The memory of a project belongs to the folder and not to a session.
fn memory_folders(disk: &dyn Disk, plans: &[Plan]) -> impl Iterator<Item = PathBuf> {
    let moved = plans.iter().filter(|plan| plan.from != plan.to);
    let memories = moved.map(|plan| folder_of(&plan.from).join("memory"));
    memories.filter(|folder| disk.exists(folder))
}

fn id_of(path: &Path) -> String {
    text(Path::new(path.file_stem().unwrap_or_default()))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
