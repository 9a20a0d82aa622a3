//! A session on a thread of its own, for event loops.

use std::iter;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use transcript::stream;

use crate::failure::Failure;
use crate::session_handle::{Reply, SessionHandle};
use crate::stream_reply::StreamReply;

/// How long [`SessionThread::ask`] waits for an answer: an append takes less, and to wake an event loop takes more.
const WAIT: Duration = Duration::from_micros(50);

/// One of so many answers is passed through the event loop: a program that appends in a loop and is always answered at once
/// would keep everything else in the event loop waiting.
const TURN_EVERY: usize = 50;

/// How long the thread looks for another command before it sleeps: to be woken takes longer than to run one.
const LINGER: Duration = Duration::from_micros(100);

type Then = Box<dyn FnOnce(Reply) + Send>;

/// Runs the commands of a session in order, on a thread of its own; those that wait together are run together.
#[derive(Debug)]
pub struct SessionThread {
    /// `None` after the session was closed and the thread has ended.
    commands: Arc<Mutex<Option<Sender<Job>>>>,
    handle: Arc<SessionHandle>,
    /// The commands that were added and have no answer yet.
    unanswered: Arc<AtomicUsize>,
    asked: AtomicUsize,
}

struct Job {
    work: Work,
    then: Then,
}

enum Work {
    Command(String),
    Reply(Option<stream::Reply>),
}

impl SessionThread {
    /// Starts the thread of a session.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(handle: Arc<SessionHandle>) -> Result<Self, Failure> {
        let (sender, jobs) = mpsc::channel();
        let commands = Arc::new(Mutex::new(Some(sender)));
        let unanswered = Arc::new(AtomicUsize::new(0));
        let (served, count) = (Arc::clone(&handle), Arc::clone(&unanswered));
        let open = Arc::downgrade(&commands);
        let thread = thread::Builder::new().name("transcript".into());
        thread.spawn(move || serve(&served, &jobs, &count, &open))?;
        Ok(Self {
            commands,
            handle,
            unanswered,
            asked: AtomicUsize::new(0),
        })
    }

    /// Returns the session.
    #[must_use]
    pub fn handle(&self) -> &Arc<SessionHandle> {
        &self.handle
    }

    /// Runs a command, and calls `then` with its answer on the thread of the session.
    pub fn run(&self, command: String, then: impl FnOnce(Reply) + Send + 'static) {
        self.add(Work::Command(command), Box::new(then));
    }

    /// Runs a command, and returns its answer if it is there within 50 µs. Else, and for one of 50 calls in any case,
    /// returns nothing, and `then` is called with the answer on the thread of the session. A command never waits here
    /// while others have no answer yet.
    pub fn ask(&self, command: String, then: impl FnOnce(Reply) + Send + 'static) -> Option<Reply> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let is_busy = self.unanswered.load(Ordering::Acquire) > 0;
        if is_busy || asked % TURN_EVERY == TURN_EVERY - 1 {
            self.run(command, then);
            return None;
        }
        let slot = Arc::new(Slot::default());
        let theirs = Arc::clone(&slot);
        self.run(command, move |reply| theirs.fill(reply));
        slot.wait(then)
    }

    /// Appends a streamed reply, and calls `then` with the answer on the thread of the session.
    pub fn append_reply(&self, reply: &StreamReply, then: impl FnOnce(Reply) + Send + 'static) {
        self.add(Work::Reply(reply.reply()), Box::new(then));
    }

    fn add(&self, work: Work, then: Then) {
        if let Err(failure) = self.handle.check_process() {
            return then(Err(failure));
        }
        let job = Job { work, then };
        let commands = self.commands.lock();
        let commands = commands.unwrap_or_else(PoisonError::into_inner);
        let unsent = match &*commands {
            Some(sender) => {
                self.unanswered.fetch_add(1, Ordering::AcqRel);
                sender.send(job).err().map(|unsent| unsent.0)
            }
            None => Some(job),
        };
        drop(commands);
        if let Some(job) = unsent {
            // Of a session that was closed every command ends at once.
            (job.then)(match job.work {
                Work::Command(command) => self.handle.run(&command),
                Work::Reply(reply) => self.handle.append_received(reply.as_ref()),
            });
        }
    }
}

/// Waits for the next job; `None` after the last.
fn next(jobs: &Receiver<Job>) -> Option<Job> {
    let start = Instant::now();
    while start.elapsed() < LINGER {
        match jobs.try_recv() {
            Ok(job) => return Some(job),
            Err(TryRecvError::Empty) => std::hint::spin_loop(),
            Err(TryRecvError::Disconnected) => return None,
        }
    }
    jobs.recv().ok()
}

/// Runs commands until the session is closed, or nobody can give another one.
fn serve(
    handle: &SessionHandle,
    jobs: &Receiver<Job>,
    unanswered: &AtomicUsize,
    open: &Weak<Mutex<Option<Sender<Job>>>>,
) {
    while let Some(first) = next(jobs) {
        run_waiting(first, handle, jobs, unanswered);
        if handle.is_closed() {
            // No more commands come; those that did are answered.
            if let Some(open) = open.upgrade() {
                open.lock().unwrap_or_else(PoisonError::into_inner).take();
            }
        }
    }
}

/// Runs a command, and those that wait with it.
fn run_waiting(first: Job, handle: &SessionHandle, jobs: &Receiver<Job>, unanswered: &AtomicUsize) {
    let answer = |then: Then, reply: Reply| {
        unanswered.fetch_sub(1, Ordering::AcqRel);
        then(reply);
    };
    let mut commands = Vec::new();
    let mut thens = Vec::new();
    let mut reply = None;
    for job in iter::once(first).chain(jobs.try_iter()) {
        match job.work {
            Work::Command(command) => {
                commands.push(command);
                thens.push(job.then);
            }
            Work::Reply(received) => {
                reply = Some((received, job.then));
                break;
            }
        }
    }
    let replies = handle.run_all(&commands);
    for (then, reply) in thens.into_iter().zip(replies) {
        answer(then, reply);
    }
    if let Some((reply, then)) = reply {
        answer(then, handle.append_received(reply.as_ref()));
    }
}

/// Where the answer to a command goes: to the caller while it waits, later to its callback.
#[derive(Default)]
struct Slot {
    is_full: AtomicBool,
    content: Mutex<Content>,
}

#[derive(Default)]
enum Content {
    #[default]
    Empty,
    Reply(Reply),
    Callback(Then),
}

impl Slot {
    fn fill(&self, reply: Reply) {
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        if let Content::Callback(then) = std::mem::take(&mut *content) {
            drop(content);
            then(reply);
        } else {
            *content = Content::Reply(reply);
            self.is_full.store(true, Ordering::Release);
        }
    }

    /// Returns the answer, or leaves the callback for it.
    fn wait(&self, then: impl FnOnce(Reply) + Send + 'static) -> Option<Reply> {
        let start = Instant::now();
        while !self.is_full.load(Ordering::Acquire) && start.elapsed() < WAIT {
            std::hint::spin_loop();
        }
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *content) {
            Content::Reply(reply) => Some(reply),
            _ => {
                *content = Content::Callback(Box::new(then));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
    fn the_thread_ends_when_the_session_is_closed_and_later_commands_are_answered() {
        let (_folder, session) = created();
        let thread = SessionThread::start(Arc::clone(&session)).unwrap();
        let (sender, answers) = mpsc::channel();
        for op in ["leaf", "close", "leaf"] {
            let sender = sender.clone();
            let command = format!("{{\"op\":\"{op}\"}}");
            thread.run(command, move |reply| sender.send(reply).unwrap());
        }
        let answered: Vec<_> = answers.iter().take(3).collect();
        assert!(answered[0].is_ok() && answered[1].is_ok());
        assert_eq!(answered[2].as_ref().unwrap_err().kind, "closed");
        // The thread gives its part of the session back when it ends.
        let deadline = Instant::now() + Duration::from_secs(10);
        while Arc::strong_count(&session) > 2 {
            assert!(Instant::now() < deadline, "the thread does not end");
            thread::yield_now();
        }
        let (sender, answers) = mpsc::channel();
        for op in ["close", "leaf"] {
            let sender = sender.clone();
            let command = format!("{{\"op\":\"{op}\"}}");
            thread.run(command, move |reply| sender.send(reply).unwrap());
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
        let thread = SessionThread::start(session).unwrap();
        let (sender, answers) = mpsc::channel();
        let mut in_a_row = 0;
        for _ in 0..1_000 {
            let sender = sender.clone();
            let command = r#"{"op":"append","user":"x"}"#.to_owned();
            let answer = thread.ask(command, move |reply| sender.send(reply).unwrap());
            in_a_row = if answer.is_some() { in_a_row + 1 } else { 0 };
            assert!(in_a_row < TURN_EVERY);
            answer
                .unwrap_or_else(|| answers.recv().unwrap())
                .expect("the entry is written");
        }
        assert!(answers.try_recv().is_err(), "an answer came twice");
        // What comes while others have no answer yet is run after them, together with what else waits.
        let wait = 200;
        for _ in 0..wait {
            let sender = sender.clone();
            let command = r#"{"op":"append","user":"y"}"#.to_owned();
            thread.run(command, move |reply| sender.send(reply).unwrap());
        }
        let direct = thread.ask(r#"{"op":"leaf"}"#.to_owned(), move |reply| {
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
