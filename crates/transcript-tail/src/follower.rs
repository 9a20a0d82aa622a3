//! Follows one file.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use transcript_reader::Error;
use transcript_storage::crew::Task;
use transcript_storage::{FileKind, ReadDisk};

use crate::event::{EventKind, FollowEvent};
use crate::file_position::Checkpoint;
use crate::followed_file::FollowedFile;
use crate::hints::{FsWatch, PollBackoff};
use crate::live::ConversationState;
use crate::notifier::{Hints, Notifier};
use crate::options::FollowOptions;
use crate::source::{self, Polling, Source};

/// Follows one session: waits for new lines of its file and emits them.
///
/// Each complete line is emitted once and in order; an unfinished last line is emitted when its
/// newline arrives, or before that if [`FollowOptions::trailing`] or [`FollowOptions::once`] asks
/// for it. The file need not exist yet, and may be truncated, replaced, moved and deleted. It is
/// opened for reading only, and never locked.
///
/// As an iterator it blocks until there is an event, and ends when it is [stopped](Stopper). An
/// error is returned once; the next call waits until the file can be read.
///
/// ```
/// use transcript_tail::{EventKind, Follower, FollowOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("session.jsonl");
/// # std::fs::write(&path, "{\"type\":\"user\",\"uuid\":\"u1\"}\n{\"type\":\"us")?;
/// let mut follower = Follower::new(&path, &FollowOptions::new());
/// while let Some(event) = follower.try_next()? {
///     if let EventKind::Entry(entry) = &event.kind {
///         println!("byte {}: {}", entry.offset, entry.text);
///         std::fs::write(folder.path().join("checkpoint"), event.checkpoint().to_string())?;
///     }
/// }
/// assert_eq!(follower.offset(), 28);
/// assert_eq!(follower.pending_bytes(), 11);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Follower {
    followed: FollowedFile,
    watch: FsWatch,
    notifier: Notifier,
    backoff: PollBackoff,
    /// Whether the last wait ended with a hint; `None` before the first wait.
    by_hint: Option<bool>,
    waits: Option<Instant>,
}

impl Follower {
    /// Creates a follower of the file at `path`. Nothing is read yet.
    #[must_use]
    pub fn new(path: &Path, options: &FollowOptions) -> Self {
        // A relative path stays relative to the working folder of this moment.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let notifier = Notifier::default();
        let watch = if options.has_events() {
            let names = WatchedNames::of(&*options.disk, &path);
            FsWatch::new(&options.disk, &notifier, move |_, path, hints| {
                hints.all |= names.may_concern(path);
            })
        } else {
            FsWatch::off(&options.disk)
        };
        let mut follower = Self {
            followed: FollowedFile::new(Arc::from(path), options),
            watch,
            notifier,
            backoff: PollBackoff::new(options.has_events()),
            by_hint: None,
            waits: None,
        };
        follower.watch_folders();
        follower
    }

    /// Returns the next event, if there is one now.
    ///
    /// # Errors
    /// When the file exists and cannot be read. The next call tries again.
    pub fn try_next(&mut self) -> Result<Option<FollowEvent>, Error> {
        let emitted = self.followed.next()?;
        if let Some(emitted) = &emitted
            && matches!(
                emitted.kind,
                EventKind::Open { .. } | EventKind::Gone { .. } | EventKind::Reset { .. }
            )
        {
            self.watch_folders();
        }
        Ok(emitted)
    }

    /// Waits for the next event, at most for `timeout`. Returns `None` when there was none, or when
    /// the follower was [stopped](Stopper).
    ///
    /// # Errors
    /// As [`try_next`](Self::try_next); the same error is returned once, until something else
    /// happens.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<FollowEvent>, Error> {
        source::next_within(self, timeout)
    }

    /// Returns the next event to a task of the crew, which needs no thread while there is none. A follower is asked by
    /// one task only.
    ///
    /// # Errors
    /// As [`next_within`](Self::next_within).
    pub fn poll_in(&mut self, task: &Task) -> Result<Polling, Error> {
        source::poll_in(self, task)
    }

    /// Returns the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.followed.path()
    }

    /// Returns the offset after the last emitted line, in bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.checkpoint().offset()
    }

    /// Returns the number of bytes after the last newline, as of the last poll: the start of a line
    /// that is being written, or a torn line.
    #[must_use]
    pub fn pending_bytes(&self) -> u64 {
        self.followed.pending()
    }

    /// Returns the position after the events emitted so far.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        self.followed.checkpoint()
    }

    /// Returns the conversation up to the emitted events; `None` without
    /// [`FollowOptions::changes`].
    #[must_use]
    pub fn live(&mut self) -> Option<ConversationState<'_>> {
        self.followed.live()
    }

    /// Returns a handle that ends the waiting from another thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(self.notifier.clone())
    }

    /// Watches the folder of the file, or its nearest existing ancestor, and the folder of the
    /// target if the file is a symbolic link.
    fn watch_folders(&mut self) {
        if !self.watch.is_on() {
            return;
        }
        let path = self.followed.path();
        let is_sure = self.watch.keep(|disk| {
            let mut folders: Vec<_> = FsWatch::above(disk, path).collect();
            if disk
                .link_metadata(path)
                .is_ok_and(|found| found.kind == FileKind::Link)
                && let Ok(real) = disk.real_path(path)
            {
                folders.extend(FsWatch::above(disk, &real));
                folders.dedup();
            }
            folders
        });
        self.backoff.trust(is_sure);
    }
}

impl Source for Follower {
    fn poll(&mut self) -> Result<Option<FollowEvent>, Error> {
        match self.try_next() {
            Ok(Some(emitted)) => {
                let is_whole = self.watch.is_whole();
                self.backoff
                    .found(self.by_hint.map(|by_hint| by_hint && is_whole));
                return Ok(Some(emitted));
            }
            Ok(None) => self.followed.forget_error(),
            Err(error) if self.followed.is_new_error(&error) => return Err(error),
            Err(_) => {}
        }
        Ok(None)
    }

    fn pause(&mut self) -> Duration {
        self.backoff.pause()
    }

    fn apply(&mut self, hints: &Hints) {
        self.by_hint = Some(!hints.is_empty());
        // A folder above a missing file may have been made, in which the file will be.
        if hints.is_empty() || self.followed.cursor().is_absent() {
            self.watch_folders();
        }
    }

    fn notifier(&self) -> &Notifier {
        &self.notifier
    }

    fn waits(&mut self) -> &mut Option<Instant> {
        &mut self.waits
    }
}

impl Iterator for Follower {
    type Item = Result<FollowEvent, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let notifier = self.notifier.clone();
        notifier.until_stopped(|| self.next_within(Duration::MAX))
    }
}

/// Ends the waiting of a [`Follower`] or a [`Watcher`](crate::Watcher), from any thread. Clones
/// have the same effect; dropping it does nothing.
#[derive(Clone, Debug)]
pub struct Stopper(pub(crate) Notifier);

impl Stopper {
    /// Ends the waiting: the current call and every later one return `None`.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// The names of files and folders whose changes may concern a file.
struct WatchedNames {
    path: PathBuf,
    real: Option<PathBuf>,
}

impl WatchedNames {
    fn of(disk: &dyn ReadDisk, path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            real: disk.real_path(path).ok(),
        }
    }

    /// Returns whether a changed path may concern the file. Only names are compared, because some
    /// systems report real paths and others the requested ones. A name anywhere in the path may be
    /// that of a new folder.
    fn may_concern(&self, changed: &Path) -> bool {
        let Some(name) = changed.file_name() else {
            return true;
        };
        let stands_in = |path: &Path| path.iter().any(|part: &OsStr| part == name);
        stands_in(&self.path) || self.real.as_deref().is_some_and(stands_in)
    }
}
