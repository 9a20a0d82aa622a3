//! The commands of a session for event loops, which wait for nothing.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use transcript_engine::{Draft, stream};
use transcript_storage::crew::{Next, Task, Work};

use crate::session_handle::{Reply, SessionHandle, appended};
use crate::stream_reply::StreamReply;
use transcript_ops::Failure;

/// The maximum time that [`SessionQueue::ask`] waits for an answer: an append takes less, and to wake an event loop
/// takes more.
const MAX_WAIT: Duration = Duration::from_micros(50);

/// One answer out of this number is passed through the event loop: a program that appends in a loop and is always answered at once
/// would keep everything else in the event loop waiting.
const EVENT_LOOP_TURN: usize = 50;

/// The maximum number of commands of one session before it is the turn of another.
const MAX_BATCH: usize = 1_000;

type Callback = Box<dyn FnOnce(Reply) + Send>;

/// Runs the commands of a session in order, as a task of the [crew](transcript_storage::crew); those that wait together are
/// run together.
#[derive(Debug)]
pub struct SessionQueue {
    jobs: Arc<Jobs>,
    handle: Arc<SessionHandle>,
    task: Task,
    asked: AtomicUsize,
}

#[derive(Debug, Default)]
struct Jobs {
    waiting: Mutex<Waiting>,
    /// The commands that were added and have no answer yet.
    unanswered: AtomicUsize,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    /// The answers to appends that had to be synced.
    synced: Option<Vec<Reply>>,
    /// The session was closed, and the task has ended.
    is_closed: bool,
}

struct Job {
    work: JobWork,
    then: Callback,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").finish_non_exhaustive()
    }
}

enum JobWork {
    Command(String),
    Reply(Option<stream::Reply>),
}

impl SessionQueue {
    /// Makes the queue of a session.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn new(handle: Arc<SessionHandle>) -> Result<Self, Failure> {
        let jobs = Arc::new(Jobs::default());
        let mut runner = Runner {
            jobs: Arc::clone(&jobs),
            handle: Arc::clone(&handle),
            taken: VecDeque::new(),
            syncing: None,
        };
        let task = Task::new(Work::Command, move |task| runner.step(task))?;
        Ok(Self {
            jobs,
            handle,
            task,
            asked: AtomicUsize::new(0),
        })
    }

    /// Returns the session.
    #[must_use]
    pub fn handle(&self) -> &Arc<SessionHandle> {
        &self.handle
    }

    /// Runs a command, and calls `then` with its answer on a thread of the crew.
    pub fn run(&self, command: String, then: impl FnOnce(Reply) + Send + 'static) {
        self.add(JobWork::Command(command), Box::new(then));
    }

    /// Runs a command, and returns its answer if it is there within 50 µs. Else, and for one of 50 calls in any case,
    /// returns nothing, and `then` is called with the answer on a thread of the crew. A command never waits here
    /// while others have no answer yet.
    pub fn ask(&self, command: String, then: impl FnOnce(Reply) + Send + 'static) -> Option<Reply> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let is_busy = self.jobs.unanswered.load(Ordering::Acquire) > 0;
        if is_busy || asked % EVENT_LOOP_TURN == EVENT_LOOP_TURN - 1 {
            self.run(command, then);
            return None;
        }
        let slot = Arc::new(AnswerSlot::default());
        let theirs = Arc::clone(&slot);
        self.run(command, move |reply| theirs.fill(reply));
        slot.wait(then)
    }

    /// Appends a streamed reply, and calls `then` with the answer on a thread of the crew.
    pub fn append_reply(&self, reply: &StreamReply, then: impl FnOnce(Reply) + Send + 'static) {
        self.add(JobWork::Reply(reply.reply()), Box::new(then));
    }

    fn add(&self, work: JobWork, then: Callback) {
        // A forked child has no thread to run the task, or to release a lock that was held.
        if let Err(failure) = self.handle.check_process() {
            return then(Err(failure));
        }
        let job = Job { work, then };
        let mut waiting = self.jobs.lock();
        if waiting.is_closed {
            drop(waiting);
            // Of a session that was closed every command ends at once.
            return (job.then)(job.work.run(&self.handle));
        }
        self.jobs.unanswered.fetch_add(1, Ordering::AcqRel);
        waiting.jobs.push_back(job);
        drop(waiting);
        self.task.wake();
    }
}

impl Drop for SessionQueue {
    fn drop(&mut self) {
        if self.handle.check_process().is_ok() {
            // The commands that were given are run, then the task ends.
            self.jobs.lock().is_closed = true;
            self.task.wake();
        }
    }
}

impl JobWork {
    fn run(&self, handle: &SessionHandle) -> Reply {
        match self {
            Self::Command(command) => handle.run(command),
            Self::Reply(reply) => handle.append_received(reply.as_ref()),
        }
    }
}

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task of a session.
struct Runner {
    jobs: Arc<Jobs>,
    handle: Arc<SessionHandle>,
    /// The jobs that it took from the queue and has not run yet.
    taken: VecDeque<Job>,
    /// The callers that wait for a sync. Later callers are answered after them.
    syncing: Option<Vec<Callback>>,
}

impl Runner {
    /// Runs commands that wait, appends together where they can be.
    fn step(&mut self, task: &Task) -> Next {
        let mut waiting = self.jobs.lock();
        if let Some(thens) = self.syncing.take() {
            let Some(replies) = waiting.synced.take() else {
                self.syncing = Some(thens);
                return Next::Wait;
            };
            drop(waiting);
            let answers = thens.into_iter().zip(replies);
            answers.for_each(|(then, reply)| self.answer(then, reply));
            waiting = self.jobs.lock();
        }
        let room = MAX_BATCH.saturating_sub(self.taken.len());
        let count = room.min(waiting.jobs.len());
        self.taken.extend(waiting.jobs.drain(..count));
        drop(waiting);
        while !self.taken.is_empty() {
            let (batches, thens) = self.take_appends();
            if batches.is_empty() {
                if let Some(job) = self.taken.pop_front() {
                    self.answer(job.then, job.work.run(&self.handle));
                }
                continue;
            }
            let (jobs, task) = (Arc::clone(&self.jobs), task.clone());
            let synced = move |replies| {
                jobs.lock().synced = Some(replies);
                task.wake();
            };
            match self.handle.append_each(batches, synced) {
                Some(replies) => {
                    let answers = thens.into_iter().zip(replies);
                    answers.for_each(|(then, reply)| self.answer(then, reply));
                }
                None => {
                    self.syncing = Some(thens);
                    return Next::Wait;
                }
            }
        }
        let is_closed = self.handle.is_closed();
        let mut waiting = self.jobs.lock();
        waiting.is_closed |= is_closed;
        match waiting.jobs.is_empty() {
            false => Next::Again,
            true if waiting.is_closed => Next::End,
            true => Next::Wait,
        }
    }

    /// Takes the appends that come first.
    fn take_appends(&mut self) -> (Vec<Vec<Draft>>, Vec<Callback>) {
        let (mut batches, mut thens) = (Vec::new(), Vec::new());
        while let Some(Job {
            work: JobWork::Command(command),
            ..
        }) = self.taken.front()
            && let Some(drafts) = appended(command)
        {
            batches.push(drafts);
            thens.extend(self.taken.pop_front().map(|job| job.then));
        }
        (batches, thens)
    }

    fn answer(&self, then: Callback, reply: Reply) {
        self.jobs.unanswered.fetch_sub(1, Ordering::AcqRel);
        // The callback may panic; the commands after this one are run all the same.
        let _ = catch_unwind(AssertUnwindSafe(|| then(reply)));
    }
}

/// Runs something once on a thread of the crew, as what opens a session.
///
/// # Errors
/// When no thread can be started.
pub fn run_once(run: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let mut run = Some(run);
    let task = Task::new(Work::Command, move |_| {
        if let Some(run) = run.take() {
            run();
        }
        Next::End
    })?;
    task.wake();
    Ok(())
}

/// The receiver of the answer to a command: the caller while it waits, later to its callback.
#[derive(Default)]
struct AnswerSlot {
    is_full: AtomicBool,
    content: Mutex<SlotContent>,
}

#[derive(Default)]
enum SlotContent {
    #[default]
    Empty,
    Reply(Reply),
    Callback(Callback),
}

impl AnswerSlot {
    fn fill(&self, reply: Reply) {
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        if let SlotContent::Callback(then) = std::mem::take(&mut *content) {
            drop(content);
            then(reply);
        } else {
            *content = SlotContent::Reply(reply);
            self.is_full.store(true, Ordering::Release);
        }
    }

    /// Returns the answer, or leaves the callback for it.
    fn wait(&self, then: impl FnOnce(Reply) + Send + 'static) -> Option<Reply> {
        let start = Instant::now();
        while !self.is_full.load(Ordering::Acquire) && start.elapsed() < MAX_WAIT {
            std::hint::spin_loop();
        }
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *content) {
            SlotContent::Reply(reply) => Some(reply),
            _ => {
                *content = SlotContent::Callback(Box::new(then));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Returns a new session, and the folder that it is in.
    fn created() -> (tempfile::TempDir, Arc<SessionHandle>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder
            .path()
            .join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
        let options = serde_json::json!({ "mode": "create", "session": path, "cwd": "/" });
        let (session, _) = SessionHandle::open(&options.to_string()).unwrap();
        (folder, Arc::new(session))
    }

    #[test]
    fn the_task_ends_when_the_session_is_closed_and_later_commands_are_answered() {
        let (_folder, session) = created();
        let queue = SessionQueue::new(Arc::clone(&session)).unwrap();
        let (sender, answers) = mpsc::channel();
        for op in ["leaf", "close", "leaf"] {
            let sender = sender.clone();
            let command = format!("{{\"op\":\"{op}\"}}");
            queue.run(command, move |reply| sender.send(reply).unwrap());
        }
        let answered: Vec<_> = answers.iter().take(3).collect();
        assert!(answered[0].is_ok() && answered[1].is_ok());
        assert_eq!(answered[2].as_ref().unwrap_err().kind, "closed");
        // The task gives its part of the session back when it ends.
        let deadline = Instant::now() + Duration::from_secs(10);
        while Arc::strong_count(&session) > 2 {
            assert!(Instant::now() < deadline, "the task does not end");
            std::thread::yield_now();
        }
        let (sender, answers) = mpsc::channel();
        for op in ["close", "leaf"] {
            let sender = sender.clone();
            let command = format!("{{\"op\":\"{op}\"}}");
            queue.run(command, move |reply| sender.send(reply).unwrap());
        }
        assert!(
            answers.recv().unwrap().is_ok(),
            "a second close does nothing"
        );
        assert_eq!(answers.recv().unwrap().unwrap_err().kind, "closed");
    }

    #[test]
    fn each_command_has_one_answer_and_an_event_loop_gets_its_turns() {
        let (_folder, session) = created();
        let queue = SessionQueue::new(session).unwrap();
        let (sender, answers) = mpsc::channel();
        let mut in_a_row = 0;
        for _ in 0..1_000 {
            let sender = sender.clone();
            let command = r#"{"op":"append","user":"x"}"#.to_owned();
            let answer = queue.ask(command, move |reply| sender.send(reply).unwrap());
            in_a_row = if answer.is_some() { in_a_row + 1 } else { 0 };
            assert!(in_a_row < EVENT_LOOP_TURN);
            answer
                .unwrap_or_else(|| answers.recv().unwrap())
                .expect("the entry is written");
        }
        assert!(answers.try_recv().is_err(), "an answer came twice");
        // Commands that arrive while others run are run after them, all that wait at once.
        let wait = 200;
        for _ in 0..wait {
            let sender = sender.clone();
            let command = r#"{"op":"append","user":"y"}"#.to_owned();
            queue.run(command, move |reply| sender.send(reply).unwrap());
        }
        let direct = queue.ask(r#"{"op":"leaf"}"#.to_owned(), move |reply| {
            sender.send(reply).unwrap();
        });
        let answered: Vec<_> = answers
            .iter()
            .take(wait + usize::from(direct.is_none()))
            .collect();
        let leaf = direct.unwrap_or_else(|| answered[wait].clone()).unwrap();
        let last = answered[wait - 1].as_ref().unwrap();
        let uuid = leaf.split('"').rev().nth(1).unwrap();
        assert!(last.contains(uuid), "{last} {leaf}");
    }
}
