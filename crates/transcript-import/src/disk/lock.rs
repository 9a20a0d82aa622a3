//! Locks of values that a panic of another thread leaves whole.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a value. A panic of another thread leaves at most a conversion or a list that is made again.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
