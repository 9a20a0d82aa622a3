//! The background threads of a process: they read, write and sync while the callers do something else.
//!
//! A session or a follow has no thread of its own, however many there are: it has [tasks](Task), whose steps the crew
//! runs. The crew has five threads at most, which are started when there is work for them, and one that keeps the
//! time. They end with the last task. While nothing is to be done, none of them wakes up.
//!
//! No task keeps another one from running:
//!
//! - A step does a bounded amount of work. After that it is the turn of those that wait longer.
//! - Each [kind of work](Work) has at most two or three threads at a time, and a thread is left for writes and one for
//!   syncs: other steps may wait for these, these wait for no other step.
//! - The system may take any time for a call, as when a disk does not respond. If work has to wait because of steps that take
//!   longer than 250 ms, these no longer count, and other threads take their place. The threads that are too many end
//!   as soon as the system responds.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[cfg(not(shuttle))]
use crate::per_process::PerProcess;
use crate::threads::{AtomicUsize, Builder, Condvar, Instant, Mutex, MutexGuard, lock, wait};

/// The maximum number of threads that run steps, apart from those that the system keeps.
const MAX_THREADS: usize = 5;

/// The maximum time that a step keeps others waiting.
const MAX_STEP_TIME: Duration = Duration::from_millis(250);

/// The kind of work that the steps of a task do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// They write to a file, and wait for nothing but the file.
    Write,
    /// They sync a file.
    Sync,
    /// They run the command of a caller. They may wait for writes and syncs.
    Command,
    /// They read files.
    Read,
}

impl Work {
    const ALL: [Self; 4] = [Self::Write, Self::Sync, Self::Command, Self::Read];

    /// The maximum number of threads that do it at a time. Syncs of several files take little longer than one, as they share what
    /// the file system does for all.
    fn max_threads(self) -> usize {
        match self {
            Self::Sync => 3,
            Self::Write | Self::Command | Self::Read => 2,
        }
    }

    /// Whether a thread is reserved for it.
    fn is_reserved(self) -> bool {
        matches!(self, Self::Write | Self::Sync)
    }

    /// The time that a thread looks for more work before it sleeps: a caller that got an answer often asks again at once,
    /// and to wake a thread takes longer than to write an entry.
    fn linger(self) -> Duration {
        match self {
            Self::Write => Duration::from_micros(20),
            Self::Command => Duration::from_micros(100),
            Self::Sync | Self::Read => Duration::ZERO,
        }
    }
}

/// The time of the next step of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, until the task is woken.
    Wait,
    /// A step at this time, or when the task is woken.
    At(Instant),
    /// Another step, after those of others that wait.
    Again,
    /// Nothing any more.
    End,
}

type StepFn = Box<dyn FnMut(&Task) -> Next + Send>;

/// Work that is done in steps, one at a time, by whichever thread of the crew is free. Clones are the same task.
///
/// It lasts until a step returns [`Next::End`] or panics, or [`Task::end`] is called; then what its steps own is
/// dropped. Dropping this handle ends nothing.
#[derive(Clone)]
pub struct Task {
    id: u64,
    crew: Arc<Crew>,
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Task").field(&self.id).finish()
    }
}

#[derive(Default)]
struct Crew {
    state: Mutex<CrewState>,
    /// Notified when a thread has something to do, or must end.
    work: Condvar,
    /// Notified when the thread that keeps the time must look again.
    time: Condvar,
    /// The number of tasks that wait for a thread; changed with the lock, read without it.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct CrewState {
    last: u64,
    /// Counts the tasks that had to wait for a thread.
    turn: u64,
    tasks: HashMap<u64, Entry>,
    /// The tasks that wait for a thread, by kind, each with its turn.
    ready: [VecDeque<(u64, u64)>; 4],
    timers: BTreeSet<(Instant, u64)>,
    running: HashMap<u64, Running>,
    /// The number of threads that do work of a kind, without those that the system keeps.
    busy: [usize; 4],
    /// All threads that run steps.
    threads: usize,
    /// The number of them that the system keeps.
    kept: usize,
    /// The number of them that sleep.
    idle: usize,
    /// The number of them that look for more to do before they sleep.
    lingering: usize,
    has_clock: bool,
    /// The time at which the thread that keeps the time looks again.
    looks_at: Option<Instant>,
}

struct Entry {
    work: Work,
    /// `None` while it runs.
    step: Option<StepFn>,
    is_ready: bool,
    /// A step is due at this time.
    timer: Option<Instant>,
    /// It was woken while it ran.
    is_woken: bool,
}

struct Running {
    work: Work,
    since: Instant,
    is_kept: bool,
}

impl Task {
    /// Adds a task, which its steps get. The first step is run when it is [woken](Self::wake).
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn new(work: Work, step: impl FnMut(&Self) -> Next + Send + 'static) -> io::Result<Self> {
        Self::of(crew(), work, Box::new(step))
    }

    fn of(crew: Arc<Crew>, work: Work, step: StepFn) -> io::Result<Self> {
        let mut state = crew.lock();
        if !state.has_clock {
            crew.start_clock(&mut state)?;
        }
        // Here, where the caller gets the error: a task without any thread would never run.
        if state.threads == state.kept {
            crew.start_thread(&mut state)?;
        }
        state.last += 1;
        let id = state.last;
        let entry = Entry {
            work,
            step: Some(step),
            is_ready: false,
            timer: None,
            is_woken: false,
        };
        state.tasks.insert(id, entry);
        drop(state);
        Ok(Self { id, crew })
    }

    /// Has a step run soon. That step sees all changes made before this call.
    pub fn wake(&self) {
        let mut state = self.crew.lock();
        self.crew.make_ready(&mut state, self.id);
        self.crew.start_worker(&mut state);
    }

    /// Has a step run at this time, or earlier if one is due earlier.
    pub fn wake_at(&self, time: Instant) {
        let mut state = self.crew.lock();
        self.crew.set_timer(&mut state, self.id, time);
    }

    /// Ends the task. A step that runs is finished.
    pub fn end(&self) {
        let mut state = self.crew.lock();
        let ended = self.crew.remove(&mut state, self.id);
        drop(state);
        // It may own anything, other tasks too.
        drop(ended);
    }
}

impl CrewState {
    fn clear_timer(&mut self, id: u64) {
        if let Some(entry) = self.tasks.get_mut(&id)
            && let Some(time) = entry.timer.take()
        {
            self.timers.remove(&(time, id));
        }
    }

    /// Returns whether a thread may do work of this kind now.
    fn has_room(&self, work: Work) -> bool {
        // One thread each stays free for writes and syncs: commands that wait for these would block all of them.
        let is_missing = |other: &&Work| {
            **other != work && other.is_reserved() && self.busy[**other as usize] == 0
        };
        let reserved = Work::ALL.iter().filter(is_missing).count();
        let busy: usize = self.busy.iter().sum();
        self.busy[work as usize] < work.max_threads() && busy + 1 + reserved <= MAX_THREADS
    }

    /// Returns the kind of the task that has waited longest, of those for which there may be a thread.
    fn next(&self) -> Option<Work> {
        let waiting = Work::ALL.into_iter().filter_map(|work| {
            let (turn, _) = self.ready[work as usize].front()?;
            self.has_room(work).then_some((*turn, work))
        });
        waiting.min_by_key(|(turn, _)| *turn).map(|(_, work)| work)
    }

    /// The maximum time that a step may keep others waiting: less where it is not the first, as a disk that does not respond
    /// may have many files.
    fn limit(&self) -> Duration {
        let kept = u32::try_from(self.kept / MAX_THREADS).unwrap_or(u32::MAX - 1);
        MAX_STEP_TIME / (1 + kept)
    }

    /// Leaves the threads whose step takes too long to that step, so that others can start. Returns the time of the next check.
    fn release_slow_threads(&mut self, now: Instant) -> Option<Instant> {
        let limit = self.limit();
        let mut next: Option<Instant> = None;
        for running in self.running.values_mut().filter(|running| !running.is_kept) {
            let due = running.since + limit;
            if due <= now {
                running.is_kept = true;
                self.busy[running.work as usize] -= 1;
                self.kept += 1;
            } else {
                next = Some(next.map_or(due, |next| next.min(due)));
            }
        }
        next
    }
}

impl Crew {
    fn lock(&self) -> MutexGuard<'_, CrewState> {
        lock(&self.state)
    }

    fn make_ready(&self, state: &mut CrewState, id: u64) {
        state.clear_timer(id);
        let Some(entry) = state.tasks.get_mut(&id) else {
            return;
        };
        // A task runs one step at a time; woken meanwhile, it gets another one after that.
        if entry.step.is_none() {
            entry.is_woken = true;
        } else if !std::mem::replace(&mut entry.is_ready, true) {
            let work = entry.work as usize;
            state.turn += 1;
            state.ready[work].push_back((state.turn, id));
            self.waiting.fetch_add(1, Ordering::Release);
        }
    }

    fn set_timer(self: &Arc<Self>, state: &mut CrewState, id: u64, time: Instant) {
        let Some(entry) = state.tasks.get_mut(&id) else {
            return;
        };
        if entry.is_ready || entry.timer.is_some_and(|timer| timer <= time) {
            return;
        }
        let earlier = entry.timer.replace(time);
        if entry.step.is_none() {
            // It is set when the step has ended.
            return;
        }
        if let Some(earlier) = earlier {
            state.timers.remove(&(earlier, id));
        }
        state.timers.insert((time, id));
        self.look_at(state, time);
    }

    /// Removes a task. Returns what its steps own, if it does not run.
    fn remove(&self, state: &mut CrewState, id: u64) -> Option<StepFn> {
        state.clear_timer(id);
        let entry = state.tasks.remove(&id)?;
        if entry.is_ready {
            state.ready[entry.work as usize].retain(|(_, ready)| *ready != id);
            self.waiting.fetch_sub(1, Ordering::Release);
        }
        // The last task: all threads end, so that an idle process has none of them.
        if state.tasks.is_empty() {
            self.work.notify_all();
            self.time.notify_all();
        }
        entry.step
    }

    /// Wakes or starts a thread for the tasks that wait, if the limits allow one.
    fn start_worker(self: &Arc<Self>, state: &mut CrewState) {
        if state.next().is_none() {
            if self.waiting.load(Ordering::Relaxed) > 0 {
                // One of the threads may never come back.
                let others = state.running.values().filter(|running| !running.is_kept);
                if let Some(since) = others.map(|running| running.since).min() {
                    self.look_at(state, since + state.limit());
                }
            }
        } else if state.lingering > 0 {
            // It sees that something waits.
        } else if state.idle > 0 {
            self.work.notify_one();
        } else if state.threads - state.kept < MAX_THREADS {
            // Without another thread those that there are do it later.
            let _ = self.start_thread(state);
        }
    }

    /// Has the time looked at then, or earlier.
    fn look_at(self: &Arc<Self>, state: &mut CrewState, time: Instant) {
        if !state.has_clock {
            let _ = self.start_clock(state);
        } else if state.looks_at.is_none_or(|looks_at| time < looks_at) {
            state.looks_at = Some(time);
            self.time.notify_one();
        }
    }

    fn start_thread(self: &Arc<Self>, state: &mut CrewState) -> io::Result<()> {
        let crew = Arc::clone(self);
        let thread = Builder::new().name("transcript".to_owned());
        thread.spawn(move || crew.run())?;
        state.threads += 1;
        Ok(())
    }

    fn start_clock(self: &Arc<Self>, state: &mut CrewState) -> io::Result<()> {
        let crew = Arc::clone(self);
        let thread = Builder::new().name("transcript-time".to_owned());
        thread.spawn(move || crew.keep_time())?;
        state.has_clock = true;
        // It looks at once.
        state.looks_at = Some(Instant::now());
        Ok(())
    }

    /// A thread that runs steps.
    fn run(self: Arc<Self>) {
        let mut state = self.lock();
        loop {
            if let Some((id, step)) = self.take_ready_task(&mut state) {
                state = self.run_step(state, id, step);
            } else if state.tasks.is_empty() || state.threads - state.kept > MAX_THREADS {
                state.threads -= 1;
                return;
            } else {
                state.idle += 1;
                state = wait(&self.work, state, None);
                state.idle -= 1;
            }
        }
    }

    /// Takes the task that has waited longest from the queue.
    fn take_ready_task(self: &Arc<Self>, state: &mut CrewState) -> Option<(u64, StepFn)> {
        let work = state.next()?;
        let (_, id) = state.ready[work as usize].pop_front()?;
        self.waiting.fetch_sub(1, Ordering::Release);
        let entry = state.tasks.get_mut(&id)?;
        entry.is_ready = false;
        let step = entry.step.take()?;
        state.busy[work as usize] += 1;
        let running = Running {
            work,
            since: Instant::now(),
            is_kept: false,
        };
        state.running.insert(id, running);
        // Others may be waiting, too.
        self.start_worker(state);
        Some((id, step))
    }

    fn run_step<'a>(
        self: &'a Arc<Self>,
        state: MutexGuard<'a, CrewState>,
        id: u64,
        mut step: StepFn,
    ) -> MutexGuard<'a, CrewState> {
        drop(state);
        let crew = Arc::clone(self);
        let task = Task { id, crew };
        // The panic hook has reported it. Only this task ends: other sessions share the thread.
        let next = catch_unwind(AssertUnwindSafe(|| step(&task))).unwrap_or(Next::End);
        let mut step = Some(step);
        if next == Next::End {
            // Before the thread counts as free, as this may wait for the system, too.
            discard(step.take());
        }
        let mut state = self.lock();
        let work = self.finish_step(&mut state, id, &mut step, next);
        if step.is_some() {
            // The task was ended meanwhile.
            drop(state);
            discard(step);
            state = self.lock();
        }
        self.start_worker(&mut state);
        let linger = work.map_or(Duration::ZERO, Work::linger);
        if linger.is_zero() || self.waiting.load(Ordering::Relaxed) > 0 {
            return state;
        }
        state.lingering += 1;
        drop(state);
        let start = Instant::now();
        while self.waiting.load(Ordering::Acquire) == 0 && start.elapsed() < linger {
            std::hint::spin_loop();
        }
        let mut state = self.lock();
        state.lingering -= 1;
        state
    }

    /// Records that a step has ended, and keeps it if the task has another one. Returns the kind of its work.
    fn finish_step(
        self: &Arc<Self>,
        state: &mut CrewState,
        id: u64,
        step: &mut Option<StepFn>,
        next: Next,
    ) -> Option<Work> {
        let Running { work, is_kept, .. } = state.running.remove(&id)?;
        if is_kept {
            state.kept -= 1;
        } else {
            state.busy[work as usize] -= 1;
        }
        if next == Next::End {
            self.remove(state, id);
        }
        if let Some(entry) = state.tasks.get_mut(&id) {
            entry.step = step.take();
            let is_woken = std::mem::take(&mut entry.is_woken);
            let timer = entry.timer.take();
            let time = match next {
                Next::At(time) => Some(timer.map_or(time, |timer| timer.min(time))),
                _ => timer,
            };
            if is_woken || next == Next::Again {
                self.make_ready(state, id);
            } else if let Some(time) = time {
                self.set_timer(state, id, time);
            }
        }
        Some(work)
    }

    /// The thread that keeps the time.
    fn keep_time(self: Arc<Self>) {
        let mut state = self.lock();
        while !state.tasks.is_empty() {
            let now = Instant::now();
            while let Some((_, id)) = state.timers.first().filter(|(time, _)| *time <= now) {
                let id = *id;
                self.make_ready(&mut state, id);
            }
            let mut looks_at = state.timers.first().map(|(time, _)| *time);
            if self.waiting.load(Ordering::Relaxed) > 0 && state.next().is_none() {
                let unkept = state.release_slow_threads(now);
                looks_at = looks_at.into_iter().chain(unkept).min();
            }
            self.start_worker(&mut state);
            if state.next().is_some() {
                // No thread could be started, or one has not taken it yet.
                looks_at = looks_at.into_iter().chain([now + MAX_STEP_TIME]).min();
            }
            state.looks_at = looks_at;
            let rest = looks_at.map(|time| time.saturating_duration_since(now));
            state = wait(&self.time, state, rest);
        }
        state.has_clock = false;
    }
}

/// Drops the values that the steps of a task own. A panic of their `drop` ends nothing else.
fn discard(step: Option<StepFn>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(step)));
}

#[cfg(not(shuttle))]
fn crew() -> Arc<Crew> {
    static CREW: PerProcess<Arc<Crew>> = PerProcess::new();
    Arc::clone(CREW.get())
}

/// Each run of the model has a crew of its own. It is not dropped with the run, where no lock works any more.
#[cfg(shuttle)]
fn crew() -> Arc<Crew> {
    shuttle::lazy_static! {
        static ref CREW: std::mem::ManuallyDrop<Arc<Crew>> = std::mem::ManuallyDrop::new(Arc::default());
    }
    Arc::clone(&CREW)
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::{self, Receiver};

    use super::*;

    /// A wait that takes longer has failed.
    const LONG: Duration = Duration::from_secs(60);

    /// A crew of its own, as the tests run at the same time.
    #[derive(Default)]
    struct Own(Arc<Crew>);

    impl Own {
        fn task(&self, work: Work, step: impl FnMut(&Task) -> Next + Send + 'static) -> Task {
            Task::of(Arc::clone(&self.0), work, Box::new(step)).unwrap()
        }

        /// Runs a step of new work, and returns what tells that it was.
        fn once(&self, work: Work) -> Receiver<()> {
            let (sender, done) = mpsc::channel();
            let task = self.task(work, move |_| {
                sender.send(()).unwrap();
                Next::End
            });
            task.wake();
            done
        }

        /// Waits until this holds.
        fn until(&self, what: &str, is: impl Fn(&CrewState) -> bool) {
            let start = Instant::now();
            while !is(&self.0.lock()) {
                assert!(start.elapsed() < LONG, "not {what}");
                std::thread::yield_now();
            }
        }
    }

    #[derive(Default)]
    struct Gate {
        is_open: Mutex<bool>,
        opened: Condvar,
    }

    impl Gate {
        fn pass(&self) {
            let is_open = lock(&self.is_open);
            drop(self.opened.wait_while(is_open, |is_open| !*is_open));
        }

        fn open(&self) {
            *lock(&self.is_open) = true;
            self.opened.notify_all();
        }
    }

    #[test]
    fn steps_that_the_system_keeps_stop_no_others() {
        for kept in [Work::Write, Work::Sync, Work::Command, Work::Read] {
            let crew = Own::default();
            let gate = Arc::new(Gate::default());
            // More of them than there are threads.
            for _ in 0..4 * MAX_THREADS {
                let gate = Arc::clone(&gate);
                let task = crew.task(kept, move |_| {
                    gate.pass();
                    Next::End
                });
                task.wake();
            }
            for work in Work::ALL {
                let done = crew.once(work);
                done.recv_timeout(LONG)
                    .expect("it is not kept from running");
            }
            // All of them wait for the system, not for each other.
            crew.until("all running", |state| {
                state.running.len() == 4 * MAX_THREADS
            });
            let idle = crew.task(Work::Read, |_| Next::Wait);
            gate.open();
            crew.until("few threads", |state| {
                state.running.is_empty() && state.threads <= MAX_THREADS && state.kept == 0
            });
            idle.end();
            crew.until("no threads", |state| state.threads == 0 && !state.has_clock);
        }
    }

    #[test]
    fn many_short_steps_take_few_threads_and_each_kind_leaves_room_for_others() {
        let crew = Own::default();
        let steps = Arc::new(AtomicUsize::new(0));
        for number in 0..2_000 {
            let (steps, mut left) = (Arc::clone(&steps), 10);
            let task = crew.task(Work::ALL[number % 4], move |_| {
                steps.fetch_add(1, Ordering::Relaxed);
                left -= 1;
                if left == 0 { Next::End } else { Next::Again }
            });
            task.wake();
            let state = crew.0.lock();
            assert!(state.threads - state.kept <= MAX_THREADS);
            for work in Work::ALL {
                assert!(state.busy[work as usize] <= work.max_threads());
            }
        }
        crew.until("done", |state| state.tasks.is_empty() && state.threads == 0);
        assert_eq!(steps.load(Ordering::Relaxed), 20_000);
    }

    #[test]
    fn steps_that_wait_for_a_sync_leave_a_thread_for_it() {
        let crew = Own::default();
        let synced = Arc::new(Gate::default());
        let (sender, done) = mpsc::channel();
        let waiting = 3 * MAX_THREADS;
        for number in 0..waiting {
            let (synced, sender) = (Arc::clone(&synced), sender.clone());
            let work = [Work::Command, Work::Read][number % 2];
            let task = crew.task(work, move |_| {
                synced.pass();
                sender.send(()).unwrap();
                Next::End
            });
            task.wake();
        }
        let state = crew.0.lock();
        assert!(state.has_room(Work::Sync) && state.has_room(Work::Write));
        drop(state);
        let sync = crew.task(Work::Sync, move |_| {
            synced.open();
            Next::End
        });
        sync.wake();
        for _ in 0..waiting {
            done.recv_timeout(LONG).unwrap();
        }
    }

    #[test]
    fn a_task_that_is_woken_while_it_runs_has_another_step_and_no_two_at_a_time() {
        let crew = Own::default();
        let is_running = AtomicBool::new(false);
        let wakes = Arc::new(AtomicUsize::new(0));
        let (seen, all) = (Arc::clone(&wakes), 3_000);
        let (sender, done) = mpsc::channel();
        let task = crew.task(Work::Read, move |_| {
            assert!(!is_running.swap(true, Ordering::SeqCst));
            let seen = seen.load(Ordering::SeqCst);
            is_running.store(false, Ordering::SeqCst);
            if seen == all {
                sender.send(()).unwrap();
                return Next::End;
            }
            Next::Wait
        });
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..all / 3 {
                        wakes.fetch_add(1, Ordering::SeqCst);
                        task.wake();
                    }
                });
            }
        });
        // The last step sees the changes that were made before the last call.
        done.recv_timeout(LONG).unwrap();
    }

    #[test]
    fn steps_have_their_times_also_those_that_are_set_while_they_run() {
        let crew = Own::default();
        let (sender, done) = mpsc::channel();
        let mut step = 0;
        let task = crew.task(Work::Sync, move |task| {
            step += 1;
            sender.send(step).unwrap();
            let soon = Instant::now() + Duration::from_millis(1);
            match step {
                1 => Next::At(soon),
                2 => {
                    task.wake_at(soon);
                    Next::Wait
                }
                3 => {
                    task.wake_at(soon);
                    Next::At(soon + LONG * 100)
                }
                _ => Next::Wait,
            }
        });
        task.wake_at(Instant::now() + LONG * 100);
        task.wake_at(Instant::now() + Duration::from_millis(1));
        task.wake_at(Instant::now() + LONG * 100);
        for number in 1..=4 {
            assert_eq!(done.recv_timeout(LONG), Ok(number));
        }
        crew.until("no timer", |state| {
            state.timers.is_empty() && state.looks_at.is_none()
        });
        task.end();
        crew.until("no threads", |state| state.threads == 0 && !state.has_clock);
    }

    #[test]
    fn a_task_that_ends_or_panics_drops_what_it_owns_and_the_others_go_on() {
        struct Owned(mpsc::Sender<()>);
        impl Drop for Owned {
            fn drop(&mut self) {
                self.0.send(()).unwrap();
            }
        }
        let crew = Own::default();
        let (sender, dropped) = mpsc::channel();
        let owned = || Owned(sender.clone());
        let (ends, panics, waits, runs) = (owned(), owned(), owned(), owned());
        let ends = crew.task(Work::Read, move |_| {
            let _ = &ends;
            Next::End
        });
        let panics = crew.task(Work::Read, move |_| {
            let _ = &panics;
            std::panic::resume_unwind(Box::new("a defect"));
        });
        let waits = crew.task(Work::Read, move |_| {
            let _ = &waits;
            Next::Wait
        });
        let runs = crew.task(Work::Read, move |task| {
            let _ = &runs;
            task.end();
            Next::Again
        });
        for task in [&ends, &panics, &runs] {
            task.wake();
            dropped.recv_timeout(LONG).unwrap();
            // It is as if it had never been.
            task.wake();
            task.end();
        }
        assert!(dropped.try_recv().is_err());
        waits.end();
        dropped.try_recv().unwrap();
        crew.until("no threads", |state| state.threads == 0 && !state.has_clock);
        crew.once(Work::Write).recv_timeout(LONG).unwrap();
    }
}
