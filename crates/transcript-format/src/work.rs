//! Counts work in debug builds, so that tests can check its growth without measuring time. Release
//! builds count nothing.

/// Adds to the work of this thread, such as bytes parsed or entries visited.
#[inline(always)]
pub fn add(amount: usize) {
    #[cfg(debug_assertions)]
    counter::DONE.with(|done| done.set(done.get() + amount as u64));
    #[cfg(not(debug_assertions))]
    let _ = amount;
}

/// Returns how much work this thread has done since it started.
#[cfg(debug_assertions)]
#[must_use]
pub fn done() -> u64 {
    counter::DONE.with(std::cell::Cell::get)
}

#[cfg(debug_assertions)]
mod counter {
    use std::cell::Cell;

    thread_local! {
        pub(super) static DONE: Cell<u64> = const { Cell::new(0) };
    }
}
