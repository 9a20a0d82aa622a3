//! Work for many items on several threads, of which the calling one is the first.
//!
//! [`map`] returns all results. [`in_order`] passes each one on as soon as all before it were, and keeps only a few that are
//! ahead, so memory does not grow with the number of items. In both the results are in the order of the items, a panic
//! is passed on to the caller, and fewer threads do all the work if the system refuses to start one.
//!
//! ```
//! use transcript_storage::parallel;
//!
//! let lengths = parallel::map(&["one", "three"], None, || |word: &&str| word.len());
//! assert_eq!(lengths, [3, 5]);
//! ```

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

/// The maximum number of threads unless a number is set.
const MAX_THREADS: usize = 16;
/// The maximum number of items for each thread that are begun and not passed on, unless a number is set.
const ITEMS_AHEAD_PER_THREAD: usize = 2;

/// Returns the number of threads for some items: as `set`, or one for each processor, at most 16; never more than items.
#[must_use]
pub fn threads(set: Option<NonZeroUsize>, items: usize) -> usize {
    match items {
        0 | 1 => 1,
        _ => set.map_or_else(processors, NonZeroUsize::get).min(items),
    }
}

/// Returns the number of processors, at most [`MAX_THREADS`]. Asking the system costs several system calls, and a program that
/// follows files reads many small ones: it is asked once, and only when there are several items.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| {
        let all = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        all.min(MAX_THREADS)
    })
}

/// The limits of [`in_order_within`]: the number of its threads, and how far they work ahead.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The number of threads, as for [`threads`].
    pub threads: Option<NonZeroUsize>,
    /// The maximum number of items that are begun and not passed on; by default two for each thread.
    pub ahead: Option<NonZeroUsize>,
}

/// Returns the result for each item. Each thread makes results with a function that `maker` returns, which may keep buffers from
/// one item to the next.
pub fn map<'i, T: Sync, R: Send, M: FnMut(&'i T) -> R>(
    items: &'i [T],
    threads: Option<NonZeroUsize>,
    maker: impl Fn() -> M + Sync,
) -> Vec<R> {
    let mut all = Vec::with_capacity(items.len());
    let limits = Limits {
        threads,
        ahead: Some(NonZeroUsize::MAX),
    };
    let maker = || {
        let mut make = maker();
        move |number: usize| make(&items[number])
    };
    let done = in_order_within(limits, 0..items.len(), maker, |_, made| {
        all.push(made);
        Ok::<(), Infallible>(())
    });
    match done {
        Ok(()) => all,
    }
}

/// Calls `take` on this thread with each of `numbers` and its result, in order. See [`map`] for `maker`.
///
/// # Errors
/// The first of `take`, which ends it.
pub fn in_order<R: Send, E, M: FnMut(usize) -> R>(
    numbers: Range<usize>,
    maker: impl Fn() -> M + Sync,
    take: impl FnMut(usize, R) -> Result<(), E>,
) -> Result<(), E> {
    in_order_within(Limits::default(), numbers, maker, take)
}

/// Does the same as [`in_order`], within `limits`.
///
/// # Errors
/// The first of `take`, which ends it.
pub fn in_order_within<R: Send, E, M: FnMut(usize) -> R>(
    limits: Limits,
    numbers: Range<usize>,
    maker: impl Fn() -> M + Sync,
    mut take: impl FnMut(usize, R) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads(limits.threads, numbers.len());
    let queue = Queue {
        state: Mutex::new(PoolState {
            next: numbers.start,
            left: numbers,
            made: BTreeMap::new(),
            waiting: 0,
        }),
        changed: Condvar::new(),
        ahead: limits
            .ahead
            .map_or(ITEMS_AHEAD_PER_THREAD * threads, NonZeroUsize::get),
    };
    let work = || {
        let mut make = None;
        while let Some(number) = queue.begin() {
            let made = || make.get_or_insert_with(&maker)(number);
            // Caught, as the caller waits for this item.
            queue.add(number, catch_unwind(AssertUnwindSafe(made)));
        }
    };
    thread::scope(|scope| {
        let _stopper = Stopper(&queue);
        for _ in 1..threads {
            _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        let mut make = None;
        while let Some((number, made)) = queue.next() {
            match made {
                Some(made) => take(number, made.unwrap_or_else(|panic| resume_unwind(panic)))?,
                None => queue.add(number, Ok(make.get_or_insert_with(&maker)(number))),
            }
        }
        Ok(())
    })
}

/// The items to process, and the results that were not taken yet.
struct Queue<R> {
    state: Mutex<PoolState<R>>,
    changed: Condvar,
    /// The maximum number of items that are begun and not taken.
    ahead: usize,
}

struct PoolState<R> {
    /// The numbers that no thread has begun.
    left: Range<usize>,
    /// The number that is taken next.
    next: usize,
    made: BTreeMap<usize, thread::Result<R>>,
    /// The number of threads that wait for a change.
    waiting: usize,
}

/// Ends the other threads when the caller returns early, also by a panic.
struct Stopper<'q, R>(&'q Queue<R>);

impl<R> Drop for Stopper<'_, R> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.left.start = state.left.end;
        self.0.notify(&state);
    }
}

impl<R> Queue<R> {
    fn lock(&self) -> MutexGuard<'_, PoolState<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, mut state: MutexGuard<'s, PoolState<R>>) -> MutexGuard<'s, PoolState<R>> {
        state.waiting += 1;
        let state = self.changed.wait(state);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    /// Wakes the threads that wait, if there are any: most changes need no system call.
    fn notify(&self, state: &PoolState<R>) {
        if state.waiting > 0 {
            self.changed.notify_all();
        }
    }

    /// Returns the number of an item to make, as soon as not too many wait to be taken; `None` if there are no more.
    fn begin(&self) -> Option<usize> {
        let mut state = self.lock();
        while !state.left.is_empty() && state.left.start - state.next >= self.ahead {
            state = self.wait(state);
        }
        state.left.next()
    }

    fn add(&self, number: usize, made: thread::Result<R>) {
        let mut state = self.lock();
        state.made.insert(number, made);
        // Only the caller takes, and only the next one.
        if number == state.next {
            self.notify(&state);
        }
    }

    /// Returns the result for the next item, or without it the number of an item that the caller makes meanwhile; `None` when all
    /// are taken.
    fn next(&self) -> Option<(usize, Option<thread::Result<R>>)> {
        let mut state = self.lock();
        loop {
            let next = state.next;
            if let Some(made) = state.made.remove(&next) {
                state.next += 1;
                self.notify(&state);
                return Some((next, Some(made)));
            }
            if next == state.left.start && state.left.is_empty() {
                return None;
            }
            if !state.left.is_empty() && state.left.start - next < self.ahead {
                return state.left.next().map(|number| (number, None));
            }
            state = self.wait(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Barrier, mpsc};

    use super::*;

    fn of(threads: usize, ahead: usize) -> Limits {
        Limits {
            threads: NonZeroUsize::new(threads),
            ahead: NonZeroUsize::new(ahead),
        }
    }

    #[test]
    fn results_are_in_the_order_of_the_items_with_any_number_of_threads() {
        let items: Vec<usize> = (0..1_000).collect();
        let expected: Vec<usize> = items.iter().map(|item| 2 * item).collect();
        for threads in 0..8 {
            let twice = map(&items, NonZeroUsize::new(threads), || |item| 2 * item);
            assert_eq!(twice, expected);
        }
        assert_eq!(map(&[], None, || |item: &usize| *item), []);
    }

    #[test]
    fn an_error_ends_the_work() {
        for threads in 1..4 {
            let mut taken = Vec::new();
            let ended = in_order_within(
                of(threads, 0),
                5..1_000,
                || |number| 2 * number,
                |number, made| {
                    assert_eq!(made, 2 * number);
                    taken.push(number);
                    match number {
                        70 => Err("enough"),
                        _ => Ok(()),
                    }
                },
            );
            assert_eq!(ended, Err("enough"));
            assert_eq!(taken, (5..=70).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_thread_works_further_ahead_than_the_limit() {
        let taken = AtomicUsize::new(0);
        for (threads, ahead) in [(1, 1), (2, 1), (4, 3), (3, 0)] {
            let most = match ahead {
                0 => ITEMS_AHEAD_PER_THREAD * threads,
                ahead => ahead,
            };
            taken.store(0, Ordering::SeqCst);
            let make = |number| {
                assert!(number < taken.load(Ordering::SeqCst) + most + 1);
                number
            };
            let take = |number, made| {
                assert_eq!(number, made);
                taken.store(number + 1, Ordering::SeqCst);
                Ok::<(), Infallible>(())
            };
            assert_eq!(
                in_order_within(of(threads, ahead), 0..500, || make, take),
                Ok(())
            );
        }
    }

    #[test]
    fn the_caller_gets_the_panic_of_a_thread() {
        for threads in 1..4 {
            let taken = Cell::new(0);
            let all = || {
                let make = |number: usize| match number {
                    40 => resume_unwind(Box::new("forty")),
                    _ => number,
                };
                in_order_within(
                    of(threads, 0),
                    0..100,
                    || make,
                    |_, made| {
                        taken.set(made + 1);
                        Ok::<(), Infallible>(())
                    },
                )
            };
            let panic = catch_unwind(AssertUnwindSafe(all)).unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"forty"));
            assert!(taken.get() <= 40);
        }
    }

    #[test]
    fn the_calling_thread_and_the_others_work_at_the_same_time() {
        let both = Barrier::new(2);
        let own = thread::current().id();
        let make = |_: &usize| {
            both.wait();
            thread::current().id()
        };
        let ids = map(&[0, 1], NonZeroUsize::new(2), || make);
        assert_eq!(ids.iter().filter(|id| **id == own).count(), 1);
    }

    #[test]
    fn a_slow_item_holds_up_only_those_that_are_too_far_ahead() {
        let (all_others, wait) = mpsc::channel();
        let wait = Mutex::new(wait);
        let make = |number: usize| match number {
            // Ends only after the last one that may be begun before it is taken.
            0 => wait.lock().unwrap().recv().unwrap(),
            9 => all_others.send(()).unwrap(),
            _ => {}
        };
        let done = in_order_within(of(2, 10), 0..20, || make, |_, ()| Ok::<(), Infallible>(()));
        assert_eq!(done, Ok(()));
    }

    #[test]
    fn one_item_needs_no_other_thread_and_nothing_of_the_system() {
        assert_eq!(threads(None, 0), 1);
        assert_eq!(threads(NonZeroUsize::new(9), 1), 1);
        assert_eq!(threads(NonZeroUsize::new(9), 4), 4);
        assert_eq!(threads(NonZeroUsize::new(9), 40), 9);
        assert!((1..=MAX_THREADS).contains(&threads(None, 1_000)));
    }
}
