//! Follows one file.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use transcript_reader::Error;

use crate::event::{Event, Told};
use crate::hints::{Bell, Patience, Watch, deadline, left};
use crate::live::LivePath;
use crate::options::Options;
use crate::place::Checkpoint;
use crate::tale::Tale;

/// Follows one session: waits for what is written to its file, and tells it line by line.
///
/// Each whole line is told once and in order; what stands behind the last newline is not told before
/// its newline comes, unless [`Options::trailing`] or [`Options::once`] asks for it. The file need not be there yet, and may be cut, replaced, moved and deleted. It is
/// opened for reading only, and never locked.
///
/// As an iterator it blocks until something happens, and ends when it is [stopped](Stopper). An error
/// is told once; asking again waits until the file can be read.
///
/// ```
/// use transcript_tail::{Event, Follower, Options};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("session.jsonl");
/// # std::fs::write(&path, "{\"type\":\"user\",\"uuid\":\"u1\"}\n{\"type\":\"us")?;
/// let mut follower = Follower::new(&path, &Options::new());
/// while let Some(told) = follower.try_next()? {
///     if let Event::Entry(entry) = &told.event {
///         println!("byte {}: {}", entry.offset, entry.text);
///         std::fs::write(folder.path().join("checkpoint"), told.checkpoint().to_string())?;
///     }
/// }
/// assert_eq!(follower.offset(), 28);
/// assert_eq!(follower.pending_bytes(), 11);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Follower {
    tale: Tale,
    watch: Watch,
    bell: Bell,
    patience: Patience,
    /// Whether a hint woke us last; `None` before we waited.
    by_hint: Option<bool>,
}

impl Follower {
    /// Starts to follow the file at `path`. Nothing is read yet.
    #[must_use]
    pub fn new(path: &Path, options: &Options) -> Self {
        // A path without a folder is in the one that we are in, and stays there.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let bell = Bell::default();
        let watch = if options.has_events {
            let names = Names::of(&path);
            Watch::new(&bell, move |event, hints| {
                hints.all |= event.paths.iter().any(|path| names.may_concern(path));
            })
        } else {
            Watch::off()
        };
        let mut follower = Self {
            tale: Tale::new(Arc::from(path), options),
            watch,
            bell,
            patience: Patience::new(options.has_events),
            by_hint: None,
        };
        follower.watch_folders();
        follower
    }

    /// Returns what comes next, if it is there by now.
    ///
    /// # Errors
    /// When the file is there and cannot be read. The next call tries again.
    pub fn try_next(&mut self) -> Result<Option<Told>, Error> {
        let told = self.tale.next()?;
        if let Some(told) = &told
            && matches!(
                told.event,
                Event::Open { .. } | Event::Gone { .. } | Event::Reset { .. }
            )
        {
            self.watch_folders();
        }
        Ok(told)
    }

    /// Waits for what comes next, no longer than `timeout`. `None` when nothing came, or when this was
    /// [stopped](Stopper).
    ///
    /// # Errors
    /// As [`try_next`](Self::try_next); the same error is told once, until something else happens.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<Told>, Error> {
        let deadline = deadline(timeout);
        loop {
            if self.bell.is_stopped() {
                return Ok(None);
            }
            match self.try_next() {
                Ok(Some(told)) => {
                    let is_whole = self.watch.is_whole();
                    self.patience
                        .found(self.by_hint.map(|by_hint| by_hint && is_whole));
                    return Ok(Some(told));
                }
                Ok(None) => self.tale.forget_error(),
                Err(error) if self.tale.is_new_error(&error) => return Err(error),
                Err(_) => {}
            }
            let left = left(deadline);
            if left.is_zero() {
                return Ok(None);
            }
            let hints = self.bell.wait(self.patience.pause().min(left));
            self.by_hint = Some(!hints.is_empty());
            if hints.is_empty() {
                self.watch_folders();
            }
        }
    }

    /// Returns the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.tale.path()
    }

    /// Returns the offset behind the last line that was told, in bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.checkpoint().offset()
    }

    /// Returns how many bytes stand behind the last newline, as of the last look: the start of a line
    /// that is being written, or was torn.
    #[must_use]
    pub fn pending_bytes(&self) -> u64 {
        self.tale.pending()
    }

    /// Returns the place to go on from after what was told so far.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        self.tale.checkpoint()
    }

    /// Returns the conversation, as far as it was told; `None` without [`Options::changes`].
    #[must_use]
    pub fn live(&self) -> Option<&LivePath> {
        self.tale.live()
    }

    /// Returns what ends the waiting from another thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(self.bell.clone())
    }

    /// Asks for events of the folder of the file, or of the nearest above it that is there, and of that of
    /// the file that a link leads to.
    fn watch_folders(&mut self) {
        if !self.watch.is_on() {
            return;
        }
        let path = self.tale.path();
        let mut folders: Vec<_> = Watch::above(path).into_iter().collect();
        if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
            && let Ok(real) = fs::canonicalize(path)
        {
            folders.extend(Watch::above(&real));
            folders.dedup();
        }
        self.watch.keep(&folders);
    }
}

impl Iterator for Follower {
    type Item = Result<Told, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let bell = self.bell.clone();
        bell.until_stopped(|| self.next_within(Duration::MAX))
    }
}

/// Ends the waiting of a [`Follower`] or a [`Watcher`](crate::Watcher), from any thread. Clones are the
/// same one; dropping it does nothing.
#[derive(Clone, Debug)]
pub struct Stopper(pub(crate) Bell);

impl Stopper {
    /// Ends it: who waits gets `None`, and so does every later call.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// The names of files and folders whose changes may concern a file.
struct Names {
    path: PathBuf,
    real: Option<PathBuf>,
}

impl Names {
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
