//! The seam through which tests fail a system call that changes or looks at names.
//!
//! Outside of tests everything here only calls the function that it wraps.

use std::io;
#[cfg(any(test, target_os = "linux"))]
use std::time::Duration;

/// Makes a system call that may fail.
#[cfg(not(test))]
#[inline]
pub(crate) fn call<T>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    make()
}

/// Returns whether the file system is to be taken for one that knows no flag of `renameat2`.
#[cfg(all(not(test), target_os = "linux"))]
#[inline]
pub(crate) fn knows_no_flag() -> bool {
    false
}

#[cfg(all(not(test), target_os = "linux"))]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
pub(crate) use with_faults::{Fault, call, knows_no_flag, pause, set_knows_no_flag};

#[cfg(test)]
mod with_faults {
    use std::cell::Cell;

    use super::{Duration, io};

    thread_local! {
        static KNOWS_NO_FLAG: Cell<bool> = const { Cell::new(false) };
        static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
    }

    /// A call that fails, on this thread.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Fault {
        /// The number of calls before it.
        pub(crate) after: u32,
        /// It does its work and fails then, as a network file system does when an answer is lost.
        pub(crate) is_done: bool,
        /// The number of calls that fail, from that one on.
        pub(crate) calls: u32,
    }

    impl Fault {
        /// Runs `test` with the fault. Returns whether it was reached.
        pub(crate) fn run(self, test: impl FnOnce()) -> bool {
            FAULT.set(Some(self));
            test();
            FAULT.take().is_some_and(|left| left.calls < self.calls)
        }

        /// Counts a call; returns whether it fails.
        fn count(&mut self) -> bool {
            if self.after > 0 {
                self.after -= 1;
                return false;
            }
            let fails = self.calls > 0;
            self.calls = self.calls.saturating_sub(1);
            fails
        }
    }

    pub(crate) fn call<T>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let Some(mut fault) = FAULT.get() else {
            return make();
        };
        let fails = fault.count();
        FAULT.set(Some(fault));
        let failed = || io::Error::other("a test failed the call");
        match fails {
            false => make(),
            true if fault.is_done => make().and_then(|_| Err(failed())),
            true => Err(failed()),
        }
    }

    pub(crate) fn knows_no_flag() -> bool {
        KNOWS_NO_FLAG.get()
    }

    pub(crate) fn set_knows_no_flag(knows: bool) {
        KNOWS_NO_FLAG.set(knows);
    }

    /// Does not wait while a call fails, so that a test can fail each of hundreds.
    pub(crate) fn pause(time: Duration) {
        if FAULT.get().is_none() {
            std::thread::sleep(time);
        }
    }
}
