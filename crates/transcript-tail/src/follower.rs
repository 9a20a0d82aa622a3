//! Follows one file.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use transcript_reader::Error;

use crate::event::{EventKind, FollowEvent};
use crate::file_position::Checkpoint;
use crate::followed_file::FollowedFile;
use crate::hints::{FsWatch, Notifier, PollBackoff, deadline, left};
use crate::live::LivePath;
use crate::options::FollowOptions;

/// Follows one session: waits for what is written to its file, and tells it line by line.
///
/// Each whole line is told once and in order; what comes after the last newline is not told before
/// its newline comes, unless [`FollowOptions::trailing`] or [`FollowOptions::once`] asks for it. The file need not be there yet, and may be cut, replaced, moved and deleted. It is
/// opened for reading only, and never locked.
///
/// As an iterator it blocks until something happens, and ends when it is [stopped](Stopper). An error
/// is told once; asking again waits until the file can be read.
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
    /// Whether a hint woke us last; `None` before we waited.
    by_hint: Option<bool>,
}

impl Follower {
    /// Starts to follow the file at `path`. Nothing is read yet.
    #[must_use]
    pub fn new(path: &Path, options: &FollowOptions) -> Self {
        // A path without a folder is in the one that we are in, and stays there.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let notifier = Notifier::default();
        let watch = if options.has_events {
            let names = WatchedNames::of(&path);
            FsWatch::new(&notifier, move |event, hints| {
                hints.all |= event.paths.iter().any(|path| names.may_concern(path));
            })
        } else {
            FsWatch::off()
        };
        let mut follower = Self {
            followed: FollowedFile::new(Arc::from(path), options),
            watch,
            notifier,
            backoff: PollBackoff::new(options.has_events),
            by_hint: None,
        };
        follower.watch_folders();
        follower
    }

    /// Returns what comes next, if it is there by now.
    ///
    /// # Errors
    /// When the file is there and cannot be read. The next call tries again.
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

    /// Waits for what comes next, no longer than `timeout`. `None` when nothing came, or when this was
    /// [stopped](Stopper).
    ///
    /// # Errors
    /// As [`try_next`](Self::try_next); the same error is told once, until something else happens.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<FollowEvent>, Error> {
        let deadline = deadline(timeout);
        loop {
            if self.notifier.is_stopped() {
                return Ok(None);
            }
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
            let left = left(deadline);
            if left.is_zero() {
                return Ok(None);
            }
            let hints = self.notifier.wait(self.backoff.pause().min(left));
            self.by_hint = Some(!hints.is_empty());
            if hints.is_empty() {
                self.watch_folders();
            }
        }
    }

    /// Returns the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.followed.path()
    }

    /// Returns the offset behind the last line that was told, in bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.checkpoint().offset()
    }

    /// Returns how many bytes come after the last newline, as of the last look: the start of a line
    /// that is being written, or was torn.
    #[must_use]
    pub fn pending_bytes(&self) -> u64 {
        self.followed.pending()
    }

    /// Returns the place to go on from after what was told so far.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        self.followed.checkpoint()
    }

    /// Returns the conversation, as far as it was told; `None` without [`FollowOptions::changes`].
    #[must_use]
    pub fn live(&self) -> Option<&LivePath> {
        self.followed.live()
    }

    /// Returns what ends the waiting from another thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(self.notifier.clone())
    }

    /// Asks for events of the folder of the file, or of the nearest above it that is there, and of that of
    /// the file that a link leads to.
    fn watch_folders(&mut self) {
        if !self.watch.is_on() {
            return;
        }
        let path = self.followed.path();
        let mut folders: Vec<_> = FsWatch::above(path).into_iter().collect();
        if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
            && let Ok(real) = fs::canonicalize(path)
        {
            folders.extend(FsWatch::above(&real));
            folders.dedup();
        }
        self.watch.keep(&folders);
    }
}

impl Iterator for Follower {
    type Item = Result<FollowEvent, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let notifier = self.notifier.clone();
        notifier.until_stopped(|| self.next_within(Duration::MAX))
    }
}

/// Ends the waiting of a [`Follower`] or a [`Watcher`](crate::Watcher), from any thread. Clones are the
/// same one; dropping it does nothing.
#[derive(Clone, Debug)]
pub struct Stopper(pub(crate) Notifier);

impl Stopper {
    /// Ends it: who waits gets `None`, and so does every later call.
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
    fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            real: fs::canonicalize(path).ok(),
        }
    }

    /// Some systems tell real paths, others those that were asked for: names are compared. A name that
    /// stands anywhere in the path may be that of a folder that has come.
    fn may_concern(&self, changed: &Path) -> bool {
        let Some(name) = changed.file_name() else {
            return true;
        };
        let stands_in = |path: &Path| path.iter().any(|part: &OsStr| part == name);
        stands_in(&self.path) || self.real.as_deref().is_some_and(stands_in)
    }
}
