//! The records of a running function: a queue between the thread of the function and the reader.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use transcript_storage::crew::{Next as Then, Task, Work};

use transcript_ops::Failure;

/// The number of bytes that a function is ahead of its reader: enough that neither waits for the other's thread to be run,
/// which on a busy machine takes longer than a batch.
const MAX_AHEAD: usize = 16 << 20;

/// The next batch; `None` after the last.
pub type Next = Result<Option<Vec<u8>>, Failure>;

type Waiter = Box<dyn FnOnce(Next) + Send>;

/// The records of a function, in batches.
///
/// A batch is the length of its first part (4 bytes, little-endian), the first part, and the rest: a JSON array
/// of records, and the texts that these name by their places.
pub struct Records {
    shared: Arc<Shared>,
    process: u32,
}

/// The end of the queue that the function has.
#[derive(Clone)]
pub(crate) struct Sender {
    shared: Arc<Shared>,
}

/// The error of a send whose reader is gone.
#[derive(Debug)]
pub(crate) struct Closed;

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    batches: VecDeque<Vec<u8>>,
    /// The bytes of the batches.
    queued: usize,
    waiter: Option<Waiter>,
    end: Option<Result<(), Failure>>,
    is_closed: bool,
    is_ready: bool,
    ready: Vec<Box<dyn FnOnce() + Send>>,
    /// Runs the steps of the function, if it has no thread of its own.
    task: Option<Task>,
    /// Whether the task waits until there is room.
    waits_for_room: bool,
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").finish_non_exhaustive()
    }
}

impl Records {
    /// Runs `function` on a thread of its own.
    pub(crate) fn spawn(
        function: impl FnOnce(&Sender) -> Result<(), Failure> + Send + 'static,
    ) -> Result<Self, Failure> {
        let (records, sender) = Self::new();
        let run = move || {
            let result = catch_unwind(AssertUnwindSafe(|| function(&sender)));
            sender.end(result.unwrap_or_else(|panic| Err(Failure::panic(&*panic))));
        };
        let thread = thread::Builder::new().name("transcript".into());
        thread.spawn(run)?;
        Ok(records)
    }

    /// Runs a function that waits most of the time, in steps and without a thread of its own. It has ended when a step
    /// returns a result.
    pub(crate) fn in_steps<F>(
        make: impl FnOnce(Sender) -> F,
        mut step: impl FnMut(&mut F, &Task) -> ControlFlow<Result<(), Failure>, Then> + Send + 'static,
    ) -> Result<Self, Failure>
    where
        F: Send + 'static,
    {
        let (records, sender) = Self::new();
        let mut function = make(sender.clone());
        let run = move |task: &Task| {
            if sender.shared.lock().is_closed {
                return Then::End;
            }
            let done = catch_unwind(AssertUnwindSafe(|| step(&mut function, task)));
            match done.unwrap_or_else(|panic| ControlFlow::Break(Err(Failure::panic(&*panic)))) {
                ControlFlow::Continue(next) => next,
                ControlFlow::Break(result) => {
                    sender.end(result);
                    Then::End
                }
            }
        };
        let task = Task::new(Work::Read, run)?;
        records.shared.lock().task = Some(task.clone());
        task.wake();
        Ok(records)
    }

    fn new() -> (Self, Sender) {
        let shared = Arc::new(Shared::default());
        let sender = Sender {
            shared: Arc::clone(&shared),
        };
        let records = Self {
            shared,
            process: process::id(),
        };
        (records, sender)
    }

    /// Waits for the next batch.
    ///
    /// # Errors
    /// The failure of the function, once.
    pub fn wait(&self) -> Next {
        loop {
            if let Some(next) = self.wait_for(Duration::from_secs(3600)) {
                return next;
            }
        }
    }

    /// Waits for the next batch, at most for this time; `None` if there is none yet.
    pub fn wait_for(&self, timeout: Duration) -> Option<Next> {
        if let Err(failure) = self.check_process() {
            return Some(Err(failure));
        }
        let state = self.shared.lock();
        let is_waiting =
            |state: &mut State| state.batches.is_empty() && state.end.is_none() && !state.is_closed;
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, timeout, is_waiting);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let next = state.next();
        drop(state);
        self.shared.changed.notify_all();
        next
    }

    /// Calls `then` with the next batch, on this thread if there is one, else on the thread of the function when
    /// there is.
    pub fn then(&self, then: impl FnOnce(Next) + Send + 'static) {
        if let Err(failure) = self.check_process() {
            return then(Err(failure));
        }
        let mut state = self.shared.lock();
        let next = match state.next() {
            Some(next) => next,
            None if state.waiter.is_some() => Err(Failure::new(
                "busy",
                "the records are being read by another caller",
            )),
            None => {
                state.waiter = Some(Box::new(then));
                return;
            }
        };
        drop(state);
        self.shared.changed.notify_all();
        then(next);
    }

    /// Waits, at most for this time, until the function has started: what is written to the files that it follows after that
    /// is emitted. Returns whether it has.
    pub fn wait_ready(&self, timeout: Duration) -> bool {
        if self.check_process().is_err() {
            return true;
        }
        let state = self.shared.lock();
        let is_starting = |state: &mut State| !state.has_started();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, timeout, is_starting);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.has_started()
    }

    /// Calls `then` when the function has started, on this thread if it has already.
    pub fn when_ready(&self, then: impl FnOnce() + Send + 'static) {
        if self.check_process().is_ok() {
            let mut state = self.shared.lock();
            if !state.has_started() {
                state.ready.push(Box::new(then));
                return;
            }
        }
        then();
    }

    /// Ends the function. A waiting caller gets no more records.
    pub fn close(&self) {
        // After a fork the lock may be held by a thread that this process does not have.
        if self.process != process::id() {
            return;
        }
        let mut state = self.shared.lock();
        state.is_closed = true;
        state.batches.clear();
        state.queued = 0;
        let (waiter, task) = (state.waiter.take(), state.task.take());
        let ready = std::mem::take(&mut state.ready);
        drop(state);
        self.shared.changed.notify_all();
        ready.into_iter().for_each(|then| then());
        // Its next step is the last: what it has is not dropped here.
        if let Some(task) = task {
            task.wake();
        }
        if let Some(waiter) = waiter {
            waiter(Ok(None));
        }
    }

    /// A child that was forked has no thread that could fill the queue.
    fn check_process(&self) -> Result<(), Failure> {
        if self.process == process::id() {
            Ok(())
        } else {
            Err(Failure::new(
                "forked",
                "these records belong to the parent process; call the function again in the child",
            ))
        }
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        self.close();
    }
}

impl Sender {
    /// Hands on a batch; waits while enough of them are not read yet.
    pub(crate) fn send(&self, batch: Vec<u8>) -> Result<(), Closed> {
        let mut state = self.shared.lock();
        loop {
            if state.is_closed {
                return Err(Closed);
            }
            if let Some(waiter) = state.waiter.take() {
                drop(state);
                waiter(Ok(Some(batch)));
                return Ok(());
            }
            // A batch that is longer than the limit is queued alone. A step does not wait: before it there was room.
            let has_room = state.batches.is_empty() || state.queued + batch.len() <= MAX_AHEAD;
            if has_room || state.task.is_some() {
                state.queued += batch.len();
                state.batches.push_back(batch);
                drop(state);
                self.shared.changed.notify_all();
                return Ok(());
            }
            let waited = self.shared.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Says that the function has started.
    pub(crate) fn ready(&self) {
        let mut state = self.shared.lock();
        state.is_ready = true;
        let ready = std::mem::take(&mut state.ready);
        drop(state);
        self.shared.changed.notify_all();
        ready.into_iter().for_each(|then| then());
    }

    /// Returns whether there is room for a batch. If not, the next step is run when there is.
    pub(crate) fn has_room(&self) -> bool {
        let mut state = self.shared.lock();
        let has_room = state.waiter.is_some() || state.queued < MAX_AHEAD;
        state.waits_for_room = !has_room;
        has_room
    }

    fn end(&self, result: Result<(), Failure>) {
        let mut state = self.shared.lock();
        state.end = Some(result);
        let ready = std::mem::take(&mut state.ready);
        let waiter = state.waiter.take();
        let next = waiter.as_ref().and_then(|_| state.next());
        drop(state);
        self.shared.changed.notify_all();
        ready.into_iter().for_each(|then| then());
        if let (Some(waiter), Some(next)) = (waiter, next) {
            waiter(next);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns whether the function has started, or ended.
    fn has_started(&self) -> bool {
        self.is_ready || self.is_closed || self.end.is_some()
    }

    /// Takes the records that can be returned now; `None` if there are none yet.
    fn next(&mut self) -> Option<Next> {
        if self.is_closed {
            return Some(Ok(None));
        }
        if let Some(batch) = self.batches.pop_front() {
            self.queued -= batch.len();
            if self.queued < MAX_AHEAD
                && std::mem::take(&mut self.waits_for_room)
                && let Some(task) = &self.task
            {
                task.wake();
            }
            return Some(Ok(Some(batch)));
        }
        match self.end.as_mut()? {
            Ok(()) => Some(Ok(None)),
            end => std::mem::replace(end, Ok(())).err().map(Err),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_panic_is_a_failure_after_the_records_before_it() {
        let records = Records::spawn(|sender| {
            sender.send(b"found".to_vec()).unwrap();
            panic!("a defect");
        });
        let records = records.unwrap();
        assert_eq!(records.wait().unwrap().as_deref(), Some(&b"found"[..]));
        let failure = records.wait().unwrap_err();
        assert_eq!(failure.kind, "panic");
        assert!(failure.message.contains("a defect"), "{}", failure.message);
        assert_eq!(records.wait().unwrap(), None, "a failure is returned once");
    }

    #[test]
    fn function_stays_within_its_buffer_and_ends_when_the_reader_is_gone() {
        // A batch of any size can be queued, and many small ones are no more bytes than few large ones.
        for (len, ahead) in [(MAX_AHEAD / 64, 64), (MAX_AHEAD, 1), (MAX_AHEAD + 1, 1)] {
            check_ahead(len, ahead);
        }
    }

    fn check_ahead(len: usize, ahead: usize) {
        let sent = Arc::new(AtomicUsize::new(0));
        let (ended, end) = mpsc::channel();
        let counter = Arc::clone(&sent);
        let records = Records::spawn(move |sender| {
            while sender.send(vec![0; len]).is_ok() {
                counter.fetch_add(1, Ordering::SeqCst);
            }
            ended.send(()).unwrap();
            Ok(())
        });
        let records = records.unwrap();
        records.wait().unwrap();
        // Taking one makes room for one more.
        while sent.load(Ordering::SeqCst) < 1 + ahead {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(20));
        assert_eq!(sent.load(Ordering::SeqCst), 1 + ahead);
        drop(records);
        end.recv_timeout(Duration::from_secs(10)).unwrap();
    }

    #[test]
    fn each_waiter_gets_exactly_one_batch_or_the_end() {
        let (go, wait) = mpsc::channel::<()>();
        let records = Records::spawn(move |sender| {
            wait.recv().unwrap();
            let _ = sender.send(b"one".to_vec());
            let _ = wait.recv();
            Ok(())
        });
        let records = records.unwrap();
        let (answers, answer) = mpsc::channel();
        let then = |answers: &mpsc::Sender<Next>| {
            let answers = answers.clone();
            move |next| answers.send(next).unwrap()
        };
        records.then(then(&answers));
        records.then(then(&answers));
        let busy = answer.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(busy.unwrap_err().kind, "busy");
        go.send(()).unwrap();
        let first = answer.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(first.unwrap().as_deref(), Some(&b"one"[..]));
        records.then(then(&answers));
        records.close();
        let end = answer.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(end.unwrap(), None);
    }
}
