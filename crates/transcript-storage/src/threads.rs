//! The threads, locks and clock of the [crew](crate::crew) and of its callers: those of std, or with `cfg(shuttle)` those of a
//! model checker, so that tests can try schedules that a machine seldom produces.

use std::sync::PoisonError;
use std::time::Duration;

#[cfg(not(shuttle))]
pub use std::{
    sync::atomic::AtomicUsize,
    sync::{Condvar, Mutex, MutexGuard},
    thread::Builder,
    time::Instant,
};

#[cfg(shuttle)]
pub use model::{AtomicUsize, Builder, Condvar, Instant, Mutex, MutexGuard};

/// Locks the mutex, also after a thread panicked while it held it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until the condition is notified, or for `timeout`.
pub fn wait<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    timeout: Option<Duration>,
) -> MutexGuard<'a, T> {
    let Some(timeout) = timeout else {
        let guard = condition.wait(guard);
        return guard.unwrap_or_else(PoisonError::into_inner);
    };
    let waited = condition.wait_timeout(guard, timeout);
    waited.unwrap_or_else(PoisonError::into_inner).0
}

/// Adds what shuttle lacks: a wait with a timeout, and a clock.
#[cfg(shuttle)]
mod model {
    use std::cell::Cell;
    use std::ops::{Add, Deref, DerefMut};
    use std::sync::PoisonError;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use shuttle::rand::{Rng, thread_rng};
    pub use shuttle::sync::atomic::AtomicUsize;
    pub use shuttle::thread::Builder;
    use shuttle::thread::yield_now;

    type LockResult<T> = Result<T, PoisonError<T>>;

    #[derive(Default)]
    pub struct Mutex<T>(shuttle::sync::Mutex<T>);

    /// Knows its mutex, so that a timed wait can release it.
    pub struct MutexGuard<'a, T> {
        mutex: &'a Mutex<T>,
        guard: shuttle::sync::MutexGuard<'a, T>,
    }

    impl<T> Mutex<T> {
        pub fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
            // A panic ends the whole run, so a mutex is never poisoned.
            let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(MutexGuard { mutex: self, guard })
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.guard
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            &mut self.guard
        }
    }

    /// A thread that waits without a timeout is woken by a notification or deadlocks, which shuttle
    /// reports. A thread that waits with a timeout polls for a notification, and times out after a
    /// few polls.
    #[derive(Default)]
    pub struct Condvar {
        inner: shuttle::sync::Condvar,
        notices: AtomicU64,
    }

    impl Condvar {
        pub fn new() -> Self {
            Self::default()
        }

        pub fn notify_one(&self) {
            self.notices.fetch_add(1, Ordering::Relaxed);
            self.inner.notify_one();
        }

        pub fn notify_all(&self) {
            self.notices.fetch_add(1, Ordering::Relaxed);
            self.inner.notify_all();
        }

        pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
            let MutexGuard { mutex, guard } = guard;
            if thread_rng().gen_ratio(1, 16) {
                // A spurious wake-up, as real condition variables have them.
                drop(guard);
                return mutex.lock();
            }
            let guard = self.inner.wait(guard);
            let guard = guard.unwrap_or_else(PoisonError::into_inner);
            Ok(MutexGuard { mutex, guard })
        }

        /// Also returns whether the wait timed out.
        pub fn wait_timeout<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            timeout: Duration,
        ) -> LockResult<(MutexGuard<'a, T>, bool)> {
            let until = Instant::now() + timeout;
            let before = self.notices.load(Ordering::Relaxed);
            let mutex = guard.mutex;
            drop(guard);
            let mut looks = thread_rng().gen_range(0..12);
            let is_over = loop {
                if self.notices.load(Ordering::Relaxed) != before {
                    break false;
                }
                if looks == 0 {
                    until.pass();
                    break true;
                }
                looks -= 1;
                yield_now();
            };
            let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
            Ok((guard, is_over))
        }

        pub fn wait_timeout_while<'a, T>(
            &self,
            mut guard: MutexGuard<'a, T>,
            timeout: Duration,
            mut condition: impl FnMut(&mut T) -> bool,
        ) -> LockResult<(MutexGuard<'a, T>, bool)> {
            let mut is_over = false;
            while condition(&mut guard) && !is_over {
                let waited = self.wait_timeout(guard, timeout);
                (guard, is_over) = waited.unwrap_or_else(PoisonError::into_inner);
            }
            Ok((guard, is_over))
        }
    }

    thread_local! {
        /// All threads of the model run on one thread, so this is one clock for all of them.
        static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    /// The time that passes with each query of the clock.
    const TICK: Duration = Duration::from_micros(10);

    /// A clock that advances only when it is queried or when a wait times out, so that a replayed
    /// schedule gives the same times.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Instant(Duration);

    impl Instant {
        pub fn now() -> Self {
            Self(NOW.get() + TICK).pass()
        }

        pub fn elapsed(self) -> Duration {
            Self::now().saturating_duration_since(self)
        }

        pub fn saturating_duration_since(self, earlier: Self) -> Duration {
            self.0.saturating_sub(earlier.0)
        }

        pub fn checked_add(self, time: Duration) -> Option<Self> {
            self.0.checked_add(time).map(Self)
        }

        /// Advances the clock to this time, if it is later.
        fn pass(self) -> Self {
            NOW.set(NOW.get().max(self.0));
            self
        }
    }

    impl Add<Duration> for Instant {
        type Output = Self;

        fn add(self, time: Duration) -> Self {
            Self(self.0 + time)
        }
    }
}
