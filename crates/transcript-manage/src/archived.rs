//! Lists archived sessions by the summaries that were stored when they were captured.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use transcript_archive::ArchiveDisk;
use transcript_format::context_refs;
use transcript_reader::{Listing, SessionFile, SessionFiles, SessionRow};
use transcript_session::Error;
use transcript_storage::{ReadDisk, RealDisk};

use crate::copying::same_start;
use crate::session_sets::add_archived;

/// Describes a session for [`CaptureOptions::summarize`](transcript_archive::CaptureOptions::summarize), so that
/// [`RootArchive::list`] need not read it.
#[must_use]
pub fn summarize(path: &Path) -> Vec<u8> {
    // Without a summary the session is read.
    serde_json::to_vec(&row_of(path)).unwrap_or_default()
}

/// Describes sessions as [`summarize`] does, and says that they are of the folder of projects `root`.
pub fn summarize_of(root: &Path) -> impl Fn(&Path) -> Vec<u8> + Send + Sync + use<> {
    let root = real(root).to_str().map(str::to_owned);
    move |path| {
        let summary = Summary {
            root: root.as_deref(),
            row: row_of(path),
        };
        serde_json::to_vec(&summary).unwrap_or_default()
    }
}

fn row_of(path: &Path) -> SessionRow {
    let disk: Arc<dyn ReadDisk> = Arc::new(RealDisk);
    SessionRow::of_file(&disk, &SessionFile::at(&*disk, path))
}

/// The summary of a session. That of earlier versions has no root.
#[derive(Serialize)]
struct Summary<'s> {
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<&'s str>,
    #[serde(flatten)]
    row: SessionRow,
}

/// The part of a summary that says whose the session is.
#[derive(Deserialize)]
struct SummaryRoot {
    root: Option<PathBuf>,
}

/// Returns a folder with its links resolved, if it is there.
fn real(folder: &Path) -> PathBuf {
    RealDisk
        .real_path(folder)
        .unwrap_or_else(|_| folder.to_owned())
}

/// The archived sessions of another agent, which a disk shows as files of our own format.
pub trait ArchivedHome: Debug + Send + Sync {
    /// Returns the name of the agent.
    fn agent(&self) -> &str;

    /// Returns the disk that shows the sessions.
    fn disk(&self) -> Arc<dyn ReadDisk>;

    /// Returns the folders with sessions: that of the newest versions, then those of earlier captures that have sessions which
    /// no later one has.
    ///
    /// # Errors
    /// When the archive cannot be read.
    fn folders(&self) -> io::Result<Vec<PathBuf>>;
}

/// An archive, and the root whose sessions are meant. Earlier versions captured every root in the same archive.
///
/// A session is of another root only if there is proof: its capture names that root, and the folder of the root is still there;
/// or its capture names none, and another root has its project folder while this one does not. So a copy of an archive on
/// another machine has its sessions in every root, and so has what other machines captured in the same archive: folders that they name
/// are theirs.
#[derive(Clone, Debug)]
pub struct RootArchive {
    disk: Arc<ArchiveDisk>,
    /// The root; without one, all sessions are meant.
    root: Option<PathBuf>,
    others: Vec<PathBuf>,
    /// The sessions of another agent that are meant, in place of those of Claude Code.
    home: Option<Arc<dyn ArchivedHome>>,
}

impl RootArchive {
    /// Takes all sessions of an archive.
    #[must_use]
    pub fn new(disk: Arc<ArchiveDisk>) -> Self {
        Self {
            disk,
            root: None,
            others: Vec::new(),
            home: None,
        }
    }

    /// Takes the sessions of another agent.
    #[must_use]
    pub fn of_home(disk: Arc<ArchiveDisk>, home: Arc<dyn ArchivedHome>) -> Self {
        Self {
            home: Some(home),
            ..Self::new(disk)
        }
    }

    /// Takes the sessions of the folder of projects `root`; `others` are those of this user that are known as well.
    #[must_use]
    pub fn of(disk: Arc<ArchiveDisk>, root: &Path, others: &[PathBuf]) -> Self {
        let root = real(root);
        let mut others: Vec<PathBuf> = others.iter().map(|other| real(other)).collect();
        others.retain(|other| *other != root);
        Self {
            disk,
            root: Some(root),
            others,
            home: None,
        }
    }

    /// Returns the name of the agent whose sessions are meant; `None` for Claude Code.
    #[must_use]
    pub fn agent(&self) -> Option<&str> {
        self.home.as_ref().map(|home| home.agent())
    }

    /// Returns whether a path leads to the sessions, in their newest or in earlier versions.
    #[must_use]
    pub fn leads_to(&self, path: &Path) -> bool {
        match self.agent() {
            Some(agent) => self.disk.below_home(agent, path).is_some(),
            None => self.disk.below_projects(path).is_some(),
        }
    }

    /// Returns the path below the projects folder where the file of an archived session was; `None` for other agents, whose files
    /// have another form.
    #[must_use]
    pub fn place_of(&self, path: &Path) -> Option<PathBuf> {
        self.disk
            .below_projects(path)
            .filter(|_| self.home.is_none())
    }

    /// Returns the disk on which the archive has sessions as files.
    #[must_use]
    pub fn disk(&self) -> &Arc<ArchiveDisk> {
        &self.disk
    }

    /// Returns whether an archived session is of the root; `session` is the path of its file on the [disk](Self::disk).
    #[must_use]
    pub fn has(&self, session: &Path) -> bool {
        let Some(root) = &self.root else { return true };
        if self.disk.is_of_other_machine(session) {
            return true;
        }
        let named = self.disk.summary(session);
        let named = named.and_then(|json| serde_json::from_slice::<SummaryRoot>(&json).ok()?.root);
        match named {
            Some(named) if named == *root => true,
            Some(named) if RealDisk.is_folder(&named) => false,
            _ => self.has_project(session),
        }
    }

    /// Returns whether the project folder of an archived file may be of the root.
    fn has_project(&self, file: &Path) -> bool {
        let (Some(root), Some(project)) = (&self.root, file.parent().and_then(Path::file_name))
        else {
            return true;
        };
        if self.disk.is_of_other_machine(file) {
            return true;
        }
        let is_in = |root: &Path| RealDisk.is_folder(&root.join(project));
        is_in(root) || !self.others.iter().any(|other| is_in(other))
    }

    /// Returns the archived sessions of the root; none if there is no archive.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn sessions(&self) -> Result<SessionFiles, transcript_reader::Error> {
        if let Some(home) = &self.home {
            return sessions_of(&**home, &self.disk);
        }
        let disk: Arc<dyn ReadDisk> = Arc::clone(&self.disk) as _;
        let mut files = SessionFiles::on(Arc::clone(&disk));
        for projects in projects_of(&self.disk)? {
            if disk.metadata(&projects).is_ok() {
                add_longer(&mut files, SessionFiles::in_root_on(&disk, &projects)?);
            }
        }
        files.sessions.retain(|file| self.has(&file.path));
        // Of these nothing but the project is known.
        let has_project = |file: &SessionFile| self.has_project(&file.path);
        files.orphans.retain(has_project);
        files.leftovers.retain(has_project);
        files.agents.retain(|path| self.has_project(path));
        Ok(files)
    }

    /// Lists the archived sessions of the root, newest conversation first. Only those are read that were captured without a
    /// summary.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn list(&self) -> Result<Listing, Error> {
        let mut files = self.sessions()?;
        let mut rows = Vec::new();
        files.sessions.retain(|file| {
            let row = known_row(&self.disk, file);
            rows.extend(row);
            rows.last()
                .is_none_or(|row: &SessionRow| row.path != file.path)
        });
        let mut listing = Listing::of(files);
        listing.add(rows, Vec::new());
        Ok(listing)
    }

    /// Adds archived sessions of the root whose files are gone to a list of those that are there. Both are on `disk`.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn add_to(&self, listing: &mut Listing, disk: &dyn ReadDisk) -> Result<(), Error> {
        let mut archived = self.list()?;
        // A session is listed once: its file says more than the archive.
        let name = |row: &SessionRow| (row.project.clone(), row.session_id.clone());
        let live: HashSet<_> = listing.rows.iter().map(name).collect();
        archived.rows.retain(|row| !live.contains(&name(row)));
        // A session that was moved since it was captured is there under its id.
        let mut ids = HashMap::<&str, Vec<&Path>>::new();
        for row in listing.rows.iter().filter(|row| row.has_file) {
            ids.entry(&row.session_id).or_default().push(&row.path);
        }
        archived.rows.retain(|row| {
            let files = ids.get(&*row.session_id).into_iter().flatten();
            !files
                .into_iter()
                .any(|live| starts_like(disk, live, &row.path).unwrap_or(false))
        });
        listing.add(archived.rows, archived.problems);
        Ok(())
    }
}

/// Returns the folders of projects of an archive: in a bucket, one for each machine.
fn projects_of(disk: &ArchiveDisk) -> Result<Vec<PathBuf>, transcript_reader::Error> {
    let failed = |error| transcript_reader::Error::io(disk.folder(), None, error);
    disk.all_projects().map_err(failed)
}

/// Adds the sessions of another machine. Of one that both have, the longer file stays, as sessions grow and the clocks of machines
/// differ.
fn add_longer(files: &mut SessionFiles, others: SessionFiles) {
    let len = |file: &SessionFile| file.metadata.map_or(0, |metadata| metadata.len);
    let name = |file: &SessionFile| (file.project.clone(), file.id.clone());
    let lens: HashMap<_, u64> = others
        .sessions
        .iter()
        .map(|file| (name(file), len(file)))
        .collect();
    let is_longest = |file: &SessionFile| {
        lens.get(&name(file))
            .is_none_or(|other| *other <= len(file))
    };
    files.sessions.retain(is_longest);
    add_archived(files, others);
    files
        .sessions
        .sort_by(|one, other| one.path.cmp(&other.path));
}

/// Returns the archived sessions of another agent. One that several captures have is that of the last one.
fn sessions_of(
    home: &dyn ArchivedHome,
    archive: &ArchiveDisk,
) -> Result<SessionFiles, transcript_reader::Error> {
    let disk = home.disk();
    let mut files = SessionFiles::on(Arc::clone(&disk));
    let folders = home.folders();
    let folders =
        folders.map_err(|error| transcript_reader::Error::io(archive.folder(), None, error))?;
    for folder in folders {
        if disk.metadata(&folder).is_ok() {
            add_archived(&mut files, SessionFiles::in_root_on(&disk, &folder)?);
        }
    }
    Ok(files)
}

/// Returns whether a file starts with all bytes of another one.
fn starts_like(disk: &dyn ReadDisk, file: &Path, other: &Path) -> io::Result<bool> {
    let (file, other) = (disk.open_to_read(file)?, disk.open_to_read(other)?);
    same_start(&*file, &*other, other.metadata()?.len)
}

/// Returns the row of a session by its summary, if that is about the bytes that are archived.
fn known_row(disk: &ArchiveDisk, file: &SessionFile) -> Option<SessionRow> {
    let row: SessionRow = serde_json::from_slice(&disk.summary(&file.path)?).ok()?;
    if row.bytes != disk.metadata(&file.path).ok()?.len {
        return None;
    }
    // Earlier versions kept the references before a prompt in place of the question.
    let is_flattened = |prompt: &String| context_refs::is_flattened(prompt);
    if row.first_prompt.as_ref().is_some_and(is_flattened)
        || row.last_prompt.as_ref().is_some_and(is_flattened)
    {
        return None;
    }
    Some(SessionRow::of_stored(disk, file, row))
}
