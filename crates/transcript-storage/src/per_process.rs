//! Values of which each process has one of its own, also a child that it forks.

use std::process;
use std::sync::OnceLock;

/// A value of this process. A child that was forked gets one of its own, as it has none of the threads of its parent, one of
/// which may have held a lock.
///
/// ```
/// use transcript_storage::PerProcess;
///
/// static COUNT: PerProcess<std::sync::atomic::AtomicU64> = PerProcess::new();
/// COUNT.get().fetch_add(1, std::sync::atomic::Ordering::Relaxed);
/// ```
#[derive(Debug)]
pub struct PerProcess<T>(OnceLock<Box<Value<T>>>);

#[derive(Debug)]
struct Value<T> {
    process: u32,
    value: T,
    of_child: PerProcess<T>,
}

impl<T: Default> PerProcess<T> {
    /// Returns one without a value.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns the value, which is made when it is asked for first.
    pub fn get(&self) -> &T {
        let make = || {
            Box::new(Value {
                process: process::id(),
                value: T::default(),
                of_child: Self::new(),
            })
        };
        let mut found = self.0.get_or_init(make);
        // Only the last one can be that of this process: the number of one that has ended is given again.
        while let Some(child) = found.of_child.0.get() {
            found = child;
        }
        if found.process != process::id() {
            found = found.of_child.0.get_or_init(make);
        }
        &found.value
    }
}

impl<T: Default> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}
