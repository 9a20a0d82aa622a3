//! The wait for events, which is the same for a follower and a watcher.

use std::time::{Duration, Instant};

use transcript_reader::Error;
use transcript_storage::crew::{Next, Task};

use crate::event::FollowEvent;
use crate::hints::{deadline, left, together};
use crate::notifier::{Hints, Notifier};

type Polled = Result<Option<FollowEvent>, Error>;

/// A source of events: a follower or a watcher.
pub(crate) trait Source {
    /// Returns the next event, if there is one now. The same error is returned once.
    fn poll(&mut self) -> Polled;

    /// Returns how long to wait after there was none.
    fn pause(&mut self) -> Duration;

    /// Uses the hints that came while it waited.
    fn apply(&mut self, hints: &Hints);

    fn notifier(&self) -> &Notifier;

    /// Until when a task waits.
    fn waits(&mut self) -> &mut Option<Instant>;
}

/// An answer to a task, see [`Follower::poll_in`](crate::Follower::poll_in).
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is returned and taken apart at once"
)]
pub enum Polling {
    /// The next event.
    Event(FollowEvent),
    /// There is none now. The step of the task returns this: the task is woken when there may be one.
    Wait(Next),
    /// It was stopped.
    Stopped,
}

/// Waits for the next event on this thread.
pub(crate) fn next_within(source: &mut impl Source, timeout: Duration) -> Polled {
    let deadline = deadline(timeout);
    loop {
        if source.notifier().is_stopped() {
            return Ok(None);
        }
        if let Some(event) = source.poll()? {
            return Ok(Some(event));
        }
        let left = left(deadline);
        if left.is_zero() {
            return Ok(None);
        }
        let pause = source.pause().min(left);
        let hints = source.notifier().wait(pause);
        source.apply(&hints);
    }
}

/// Returns the next event, or has the task woken when there may be one.
pub(crate) fn poll_in(source: &mut impl Source, task: &Task) -> Result<Polling, Error> {
    source.notifier().wake(task);
    if source.notifier().is_stopped() {
        return Ok(Polling::Stopped);
    }
    // Taken after the notifier knows the task: hints that came before did not wake it, and later ones do.
    let hints = source.notifier().take();
    match source.waits().take() {
        Some(until) if hints.is_empty() && Instant::now() < until => {
            // The task was woken for another reason.
            *source.waits() = Some(until);
            return Ok(Polling::Wait(Next::At(until)));
        }
        None if hints.is_empty() => {}
        _ => source.apply(&hints),
    }
    if let Some(event) = source.poll()? {
        return Ok(Polling::Event(event));
    }
    let until = together(source.pause());
    *source.waits() = Some(until);
    Ok(Polling::Wait(Next::At(until)))
}
