//! Wakes threads and tasks that wait for changes of files.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use transcript_storage::crew::Task;

/// Hints about files that may have changed.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// The files that the system named.
    pub(crate) paths: HashSet<PathBuf>,
    /// Anything may have changed: hints were lost, or folders or names changed.
    pub(crate) all: bool,
}

impl Hints {
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.all
    }
}

/// Wakes the threads and the task that wait for hints. Clones wake the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notifier(Arc<SharedState>);

#[derive(Debug, Default)]
struct SharedState {
    state: Mutex<NotifierState>,
    notified: Condvar,
}

#[derive(Debug, Default)]
struct NotifierState {
    hints: Hints,
    is_stopped: bool,
    task: Option<Task>,
}

impl Notifier {
    fn lock(&self) -> MutexGuard<'_, NotifierState> {
        // A panic of another thread leaves no inconsistent state here.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn notify(&self, add: impl FnOnce(&mut Hints)) {
        self.change(|state| add(&mut state.hints));
    }

    pub(crate) fn stop(&self) {
        self.change(|state| state.is_stopped = true);
    }

    fn change(&self, change: impl FnOnce(&mut NotifierState)) {
        let mut state = self.lock();
        change(&mut state);
        let task = state.task.clone();
        drop(state);
        self.0.notified.notify_all();
        if let Some(task) = task {
            task.wake();
        }
    }

    /// From now on wakes this task.
    pub(crate) fn wake(&self, task: &Task) {
        self.lock().task.get_or_insert_with(|| task.clone());
    }

    /// Returns the hints so far.
    pub(crate) fn take(&self) -> Hints {
        std::mem::take(&mut self.lock().hints)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// Calls `next` until it returns an item; `None` when it was stopped.
    pub(crate) fn until_stopped<T, E>(
        &self,
        mut next: impl FnMut() -> Result<Option<T>, E>,
    ) -> Option<Result<T, E>> {
        loop {
            match next().transpose() {
                None if self.is_stopped() => return None,
                None => {}
                emitted => return emitted,
            }
        }
    }

    /// Waits for a hint, a stop or the end of the time; returns the hints so far.
    pub(crate) fn wait(&self, time: Duration) -> Hints {
        let is_quiet = |state: &mut NotifierState| state.hints.is_empty() && !state.is_stopped;
        let guard = self.lock();
        let waited = self.0.notified.wait_timeout_while(guard, time, is_quiet);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.hints)
    }
}
