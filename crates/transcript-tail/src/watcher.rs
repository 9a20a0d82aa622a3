//! Follows many files: a project, all projects, or a session with its subagents.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use transcript_format::names::TranscriptFile;
use transcript_reader::{Error, ErrorKind, WalkedFile, subagents_on, walk_store};
use transcript_storage::crew::Task;
use transcript_storage::{Metadata, ReadDisk, SessionLayout, WatchedFolder};

use crate::event::FollowEvent;
use crate::followed_file::FollowedFile;
use crate::follower::Stopper;
use crate::hints::{FsWatch, PollBackoff, left};
use crate::live::ConversationState;
use crate::notifier::{Hints, Notifier};
use crate::options::FollowOptions;
use crate::source::{self, Polling, Source};
use crate::start::StartAt;

/// The idle time after which a file is polled no more often than the folders.
const ACTIVE_TIME: Duration = Duration::from_secs(10);
/// The maximum number of files that are kept open.
const MAX_OPEN: usize = 64;
/// The maximum number of events of one file in a row while other files have events.
const MAX_EVENTS_IN_A_ROW: usize = 64;

/// Follows all sessions of a folder, or one session with its subagents; files that are created
/// later are followed from their first byte.
///
/// The promises of [`Follower`](crate::Follower) hold for each file; events of different files are
/// in no order. A file that is [`Gone`](crate::EventKind::Gone) is forgotten, and
/// [opened](crate::EventKind::Open) at its start if it appears again. At most 64 files are kept
/// open: if another file is replaced while it is closed, lines written since its last poll are
/// lost.
///
/// ```no_run
/// use transcript_tail::{EventKind, FollowOptions, StartAt, Watcher};
///
/// let mut watcher = Watcher::new(&FollowOptions::new().start(StartAt::End));
/// watcher.add_folder("/home/ada/.claude/projects".as_ref());
/// for event in watcher {
///     let event = event?;
///     if let EventKind::Entry(entry) = event.kind {
///         println!("{}: {} bytes", event.path.display(), entry.len);
///     }
/// }
/// # Ok::<(), transcript_tail::Error>(())
/// ```
#[derive(Debug)]
pub struct Watcher {
    targets: Vec<Target>,
    concerned: Arc<Mutex<ConcernedFolders>>,
    options: FollowOptions,
    files: HashMap<Arc<Path>, WatchedFile>,
    /// The files to poll, each once.
    ready: VecDeque<Arc<Path>>,
    /// The files that may be open, in the order in which they were opened or found in use.
    open: VecDeque<Arc<Path>>,
    /// The number of events that the first of them has emitted in a row.
    in_a_row: usize,
    /// Errors of folders.
    errors: VecDeque<Error>,
    reported_errors: HashSet<PathBuf>,
    watch: FsWatch,
    notifier: Notifier,
    backoff: PollBackoff,
    by_hint: Option<bool>,
    waits: Option<Instant>,
    /// When names have not changed for a while.
    settled: Instant,
    /// The time of the next scan of the folders.
    next_scan: Instant,
    last_scan: Instant,
    /// The duration of the last scan.
    scan_cost: Duration,
    is_first_scan: bool,
}

#[derive(Clone, Debug)]
enum Target {
    /// All transcripts below a folder.
    Folder(PathBuf),
    /// A session with its subagents.
    Session(PathBuf),
    /// A single file.
    File(PathBuf),
}

/// The folders whose changes concern the targets. Other programs may be busy in the same watched folders.
#[derive(Debug, Default)]
struct ConcernedFolders {
    /// The targets, and the folders of sessions. What is below them concerns them.
    own: HashSet<PathBuf>,
    /// The folders above them.
    above: HashSet<PathBuf>,
}

impl ConcernedFolders {
    fn add(&mut self, target: &Target) {
        let (Target::Folder(path) | Target::Session(path) | Target::File(path)) = target;
        self.own.insert(path.clone());
        if let Target::Session(path) = target {
            self.own.insert(path.with_extension(""));
        }
        self.above
            .extend(path.ancestors().skip(1).map(Path::to_owned));
    }

    fn is(&self, path: &Path) -> bool {
        self.above.contains(path) || path.ancestors().any(|above| self.own.contains(above))
    }
}

#[derive(Debug)]
struct WatchedFile {
    followed: FollowedFile,
    is_ready: bool,
    /// Whether it is among those that may be open.
    is_counted: bool,
    /// The time of the last event.
    active: Instant,
    /// The time of the last event that is known to the order in which files are closed.
    used: Instant,
    /// The state of the file at the last scan, by which a change is detected without opening it.
    seen: Option<Metadata>,
}

impl Watcher {
    /// Creates a watcher of nothing. The options apply to all files that are added; their
    /// [`StartAt`] only to files that exist when following begins.
    #[must_use]
    pub fn new(options: &FollowOptions) -> Self {
        let (notifier, now) = (Notifier::default(), Instant::now());
        let concerned = Arc::new(Mutex::new(ConcernedFolders::default()));
        let watch = if options.has_events() {
            let (concerned, layout) = (Arc::clone(&concerned), options.disk.layout());
            FsWatch::new(&options.disk, &notifier, move |are_names, path, hints| {
                let concerned = concerned.lock().unwrap_or_else(PoisonError::into_inner);
                // Folders above the targets are watched, too, and other programs write there. Their events must not wake
                // a thread.
                if concerned.is(path) {
                    collect_hints(layout, are_names, path, hints);
                }
            })
        } else {
            FsWatch::off(&options.disk)
        };
        Self {
            targets: Vec::new(),
            concerned,
            options: options.clone(),
            files: HashMap::new(),
            ready: VecDeque::new(),
            open: VecDeque::new(),
            in_a_row: 0,
            errors: VecDeque::new(),
            reported_errors: HashSet::new(),
            watch,
            notifier,
            backoff: PollBackoff::new(options.has_events()),
            by_hint: None,
            waits: None,
            settled: now,
            next_scan: now,
            last_scan: now,
            scan_cost: Duration::ZERO,
            is_first_scan: true,
        }
    }

    /// Adds all transcripts in a folder of projects or of one project, including those of
    /// subagents. The folder need not exist yet. Symbolic links are followed.
    pub fn add_folder(&mut self, path: &Path) {
        self.add(Target::Folder(absolute(path)));
    }

    /// Adds a session and its subagents. The file need not exist yet.
    pub fn add_session(&mut self, path: &Path) {
        self.add(Target::Session(absolute(path)));
    }

    /// Adds one file. It need not exist yet.
    pub fn add_file(&mut self, path: &Path) {
        self.add(Target::File(absolute(path)));
    }

    /// Adds one file with its own start instead of that of the [options](FollowOptions::start).
    /// Also add its session to follow the subagents.
    pub fn add_file_at(&mut self, path: &Path, start: StartAt) {
        let path = absolute(path);
        self.follow(path.clone(), start);
        self.mark_ready(&path);
        self.add(Target::File(path));
    }

    /// Returns the conversation of a file up to the emitted events; `None` for a file that is not
    /// followed, and without [`FollowOptions::changes`].
    #[must_use]
    pub fn live(&mut self, path: &Path) -> Option<ConversationState<'_>> {
        self.files.get_mut(path)?.followed.live()
    }

    fn add(&mut self, target: Target) {
        let mut concerned = self
            .concerned
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        concerned.add(&target);
        drop(concerned);
        self.targets.push(target);
        self.next_scan = self.last_scan;
    }

    /// Returns the next event, if there is one now.
    ///
    /// # Errors
    /// When an existing file or folder cannot be read; each error is returned once, and the other
    /// files are still followed.
    pub fn try_next(&mut self) -> Result<Option<FollowEvent>, Error> {
        if self.next_scan <= Instant::now() {
            self.scan();
        }
        if let Some(error) = self.errors.pop_front() {
            return Err(error);
        }
        while let Some(path) = self.ready.front().cloned() {
            let Some(file) = self.files.get_mut(&path) else {
                self.ready.pop_front();
                continue;
            };
            match file.followed.next() {
                Ok(Some(emitted)) => {
                    file.active = Instant::now();
                    file.followed.forget_error();
                    self.in_a_row += 1;
                    // A file with a gigabyte of old lines must not delay the new lines of all others.
                    if self.in_a_row >= MAX_EVENTS_IN_A_ROW {
                        self.in_a_row = 0;
                        self.ready.rotate_left(1);
                    }
                    return Ok(Some(emitted));
                }
                Ok(None) => self.mark_idle(&path),
                Err(error) => {
                    let is_new = file.followed.is_new_error(&error);
                    self.mark_idle(&path);
                    if is_new {
                        return Err(error);
                    }
                }
            }
        }
        Ok(None)
    }

    /// Waits for the next event, at most for `timeout`. Returns `None` when there was none, or when
    /// the watcher was [stopped](Stopper).
    ///
    /// # Errors
    /// As [`try_next`](Self::try_next).
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<FollowEvent>, Error> {
        source::next_within(self, timeout)
    }

    /// Returns the next event to a task of the crew, which needs no thread while there is none. A watcher is asked by
    /// one task only.
    ///
    /// # Errors
    /// As [`try_next`](Self::try_next).
    pub fn poll_in(&mut self, task: &Task) -> Result<Polling, Error> {
        source::poll_in(self, task)
    }

    /// Returns a handle that ends the waiting from another thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(self.notifier.clone())
    }

    /// Returns the followed files, in no order.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(|path| &**path)
    }

    fn apply_hints(&mut self, hints: &Hints) {
        if hints.all {
            // In a folder that is new, files may have been made before the system was asked to watch it.
            self.settled = Instant::now() + PollBackoff::HINTED_PAUSE;
            // Limits the time spent on scans when there are many events.
            self.next_scan = self.last_scan + self.scan_cost * 10;
        }
        for path in &hints.paths {
            if self.mark_ready(path) {
                continue;
            }
            if self.is_wanted(path) {
                // A hint for an unknown file means that it was created after following began, so all of its lines are
                // new.
                self.follow(path.clone(), StartAt::Beginning);
                self.mark_ready(path);
            } else if self.has_sessions() {
                self.next_scan = self.last_scan + self.scan_cost * 10;
            }
        }
        // The pause is over without a hint. A file that changed a moment ago may change again before its event arrives.
        if hints.is_empty() {
            let active = |(path, file): (&Arc<Path>, &WatchedFile)| {
                (file.active.elapsed() < ACTIVE_TIME).then(|| Arc::clone(path))
            };
            let active: Vec<_> = self.files.iter().filter_map(active).collect();
            for path in active {
                self.mark_ready(&path);
            }
        }
    }

    /// Returns whether a new file is one of those of a watched folder. Subagents of a watched
    /// session are found by the next scan of its folder.
    fn is_wanted(&self, path: &Path) -> bool {
        self.targets.iter().any(|target| match target {
            Target::Folder(folder) => {
                let below = path.strip_prefix(folder).ok().and_then(Path::to_str);
                below.is_some_and(is_transcript)
            }
            Target::Session(_) | Target::File(_) => false,
        })
    }

    fn has_sessions(&self) -> bool {
        let is_session = |target: &Target| matches!(target, Target::Session(_));
        self.targets.iter().any(is_session)
    }

    /// Follows a file, unless it is followed already.
    fn follow(&mut self, path: PathBuf, start: StartAt) -> &mut WatchedFile {
        let path: Arc<Path> = Arc::from(path);
        let options = &self.options;
        let file = self.files.entry(Arc::clone(&path));
        file.or_insert_with(|| WatchedFile {
            followed: FollowedFile::new(path, &options.clone().start(start)),
            is_ready: false,
            is_counted: false,
            active: Instant::now(),
            used: Instant::now(),
            seen: None,
        })
    }

    /// Schedules a file for polling; returns whether it is followed.
    fn mark_ready(&mut self, path: &Path) -> bool {
        let Some((path, _)) = self.files.get_key_value(path) else {
            return false;
        };
        let path = Arc::clone(path);
        if let Some(file) = self.files.get_mut(&path)
            && !std::mem::replace(&mut file.is_ready, true)
        {
            self.ready.push_back(path);
        }
        true
    }

    /// Removes the first of the ready files, because it has nothing new.
    fn mark_idle(&mut self, path: &Path) {
        self.ready.pop_front();
        self.in_a_row = 0;
        let Some(file) = self.files.get_mut(path) else {
            return;
        };
        file.is_ready = false;
        let is_absent = file.followed.cursor().is_absent();
        // A session that was deleted, or had another name. With the old name again it is a new file.
        if is_absent && !self.is_named(path) {
            self.files.remove(path);
            return;
        }
        let Some(file) = self.files.get_mut(path) else {
            return;
        };
        if file.followed.cursor().is_open() && !std::mem::replace(&mut file.is_counted, true) {
            file.used = file.active;
            self.open.push_back(Arc::from(path));
        }
        self.close_oldest();
    }

    /// Closes files while too many are open: each time the first one in the order in which they were opened that was
    /// not used since.
    fn close_oldest(&mut self) {
        while self.open.len() > MAX_OPEN
            // Thousands of sessions would use up the descriptors of the process. A closed file is opened again for its
            // next event.
            && let Some(path) = self.open.pop_front()
        {
            let Some(file) = self.files.get_mut(&path) else {
                continue;
            };
            if file.followed.cursor().is_open() && file.active > file.used {
                file.used = file.active;
                self.open.push_back(path);
                continue;
            }
            file.is_counted = false;
            // One that has events is closed when it has none any more.
            if !file.is_ready {
                file.followed.cursor().close();
            }
        }
    }

    /// Returns whether a file was requested by its own path, so that following continues while it
    /// is missing.
    fn is_named(&self, path: &Path) -> bool {
        self.targets.iter().any(|target| match target {
            Target::Folder(_) => false,
            Target::Session(named) | Target::File(named) => named == path,
        })
    }

    /// Scans the folders for files that are new, have changed, or are gone.
    fn scan(&mut self) {
        let began = Instant::now();
        // Before the scan: a file that is created in between is then found by the scan or reported by an event.
        self.watch_folders();
        let mut found = FolderScan::new(Arc::clone(&self.options.disk));
        for target in &self.targets {
            found.add(target);
        }
        for error in found.errors {
            // Each scan meets the same folder again; its error is returned once.
            if self.reported_errors.insert(error.path().to_owned()) {
                self.errors.push_back(error);
            }
        }
        let start = if std::mem::take(&mut self.is_first_scan) {
            self.options.start
        } else {
            StartAt::Beginning
        };
        let mut missing: HashSet<Arc<Path>> = self.files.keys().cloned().collect();
        for (path, known) in found.files {
            missing.remove(&*path);
            let seen = known.or_else(|| self.options.disk.metadata(&path).ok());
            let file = self.follow(path.clone(), start);
            // Without properties nothing proves that it is unchanged, so it is polled.
            if seen.is_none() || seen != file.seen {
                file.seen = seen;
                self.mark_ready(&path);
            }
        }
        // A poll finds out that a file is gone, and emits the event.
        for path in missing {
            self.mark_ready(&path);
        }
        // Whatever the number of files, scans take a thousandth of the time, or a hundredth without
        // events.
        self.last_scan = Instant::now();
        self.scan_cost = self.last_scan - began;
        self.next_scan = self.last_scan
            + match self.backoff.hinted_pause() {
                Some(pause) => (self.scan_cost * 1000).max(pause),
                None => (self.scan_cost * 100).max(PollBackoff::MAX_PAUSE),
            };
        if self.settled > began {
            let soon = self.settled.max(self.last_scan + self.scan_cost * 10);
            self.next_scan = self.next_scan.min(soon);
        }
    }

    fn watch_folders(&mut self) {
        if !self.watch.is_on() {
            return;
        }
        let targets = &self.targets;
        let is_sure = self.watch.keep(|disk| folders_of(disk, targets));
        self.backoff.trust(is_sure);
    }
}

/// Returns the folders in which something may happen to the targets, each once.
fn folders_of(disk: &dyn ReadDisk, targets: &[Target]) -> Vec<WatchedFolder> {
    let recursive = |path: &Path| WatchedFolder {
        path: path.to_owned(),
        is_recursive: true,
    };
    let mut folders = Vec::new();
    for target in targets {
        match target {
            Target::Folder(path) if disk.is_folder(path) => {
                folders.push(recursive(path));
                folders.extend(FsWatch::above(disk, path).take(1));
            }
            Target::Folder(path) | Target::File(path) => {
                folders.extend(FsWatch::above(disk, path));
            }
            Target::Session(path) => {
                folders.extend(FsWatch::above(disk, path));
                let own = path.with_extension("");
                if disk.is_folder(&own) {
                    folders.push(recursive(&own));
                }
            }
        }
    }
    let mut seen = HashSet::new();
    folders.retain(|folder| seen.insert(folder.clone()));
    folders
}

impl Source for Watcher {
    fn poll(&mut self) -> Result<Option<FollowEvent>, Error> {
        let emitted = self.try_next()?;
        if emitted.is_some() {
            let is_whole = self.watch.is_whole();
            self.backoff
                .found(self.by_hint.map(|by_hint| by_hint && is_whole));
        }
        Ok(emitted)
    }

    fn pause(&mut self) -> Duration {
        self.backoff.pause().min(left(Some(self.next_scan)))
    }

    fn apply(&mut self, hints: &Hints) {
        self.by_hint = Some(!hints.is_empty());
        self.apply_hints(hints);
    }

    fn notifier(&self) -> &Notifier {
        &self.notifier
    }

    fn waits(&mut self) -> &mut Option<Instant> {
        &mut self.waits
    }
}

impl Iterator for Watcher {
    type Item = Result<FollowEvent, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let notifier = self.notifier.clone();
        notifier.until_stopped(|| self.next_within(Duration::MAX))
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Adds the hints of a change: a transcript was written, or names changed.
fn collect_hints(layout: SessionLayout, are_names: bool, path: &Path, hints: &mut Hints) {
    if layout.has_ending(path) {
        hints.paths.insert(path.to_owned());
    } else {
        // A new or renamed folder can hold transcripts; other files in it cannot be any.
        hints.all |= are_names;
    }
}

/// Collects the transcripts of targets.
struct FolderScan {
    disk: Arc<dyn ReadDisk>,
    /// The files, each with its properties if the list of its folder had them.
    files: Vec<(PathBuf, Option<Metadata>)>,
    errors: Vec<Error>,
}

impl FolderScan {
    fn new(disk: Arc<dyn ReadDisk>) -> Self {
        Self {
            disk,
            files: Vec::new(),
            errors: Vec::new(),
        }
    }

    fn add(&mut self, target: &Target) {
        match target {
            Target::Folder(folder) => self.walk(folder),
            Target::File(path) => self.files.push((path.clone(), None)),
            Target::Session(path) => {
                self.files.push((path.clone(), None));
                match subagents_on(&self.disk, path) {
                    Ok(agents) => self
                        .files
                        .extend(agents.into_iter().map(|agent| (agent.path, None))),
                    Err(error) => self.add_error(error),
                }
            }
        }
    }

    /// Adds the transcripts below a folder.
    fn walk(&mut self, top: &Path) {
        let disk = Arc::clone(&self.disk);
        let below = |path: &Path| Some(path.strip_prefix(top).ok()?.to_str()?.to_owned());
        let walked = walk_store(&*disk, top, &mut |walked| {
            match walked {
                WalkedFile::Folder { path, .. } => {
                    return below(path).is_some_and(|below| may_hold_transcripts(&below));
                }
                WalkedFile::File { path, metadata }
                    if below(path).is_some_and(|below| is_transcript(&below)) =>
                {
                    self.files.push((path.to_owned(), metadata));
                }
                WalkedFile::Problem(error) => self.add_error(error),
                _ => {}
            }
            false
        });
        if let Err(error) = walked {
            self.add_error(error);
        }
    }

    /// Adds the error of a folder. One that is missing may be created later.
    fn add_error(&mut self, error: Error) {
        if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotAFile) {
            self.errors.push(error);
        }
    }
}

/// Returns whether a path relative to a folder of projects, or to a project, is that of a
/// transcript.
fn is_transcript(below: &str) -> bool {
    let below = below.replace(std::path::MAIN_SEPARATOR, "/");
    TranscriptFile::at(&below).is_some() || TranscriptFile::at(&format!("p/{below}")).is_some()
}

/// Returns whether a folder may contain transcripts: projects, sessions, and anything below
/// `subagents`.
fn may_hold_transcripts(below: &str) -> bool {
    let mut parts = below.split(std::path::MAIN_SEPARATOR).skip(1);
    match (parts.next(), parts.next()) {
        (None | Some("subagents"), _) | (_, None | Some("subagents")) => true,
        (Some(_), Some(_)) => false,
    }
}
