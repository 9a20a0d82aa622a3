//! The signals that the view handles. Windows knows only that of Ctrl-C, and no job control.

pub(crate) use platform::{is_suspend, suspend, watch};

#[cfg(unix)]
mod platform {
    use std::io;
    use std::thread;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    /// Calls `take` on a thread with each signal that asks to end or to stop, until it returns false.
    ///
    /// # Errors
    /// When the signals cannot be handled.
    pub(crate) fn watch(take: impl Fn(i32) -> bool + Send + 'static) -> io::Result<()> {
        let mut signals = Signals::new([SIGHUP, SIGTERM, SIGINT, SIGTSTP])?;
        thread::spawn(move || signals.forever().all(take));
        Ok(())
    }

    /// Returns whether the signal asks to stop until the process is continued.
    pub(crate) fn is_suspend(signal: i32) -> bool {
        signal == SIGTSTP
    }

    /// Stops the process until it is continued.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn suspend() -> io::Result<()> {
        emulate_default_handler(SIGTSTP)
    }
}

#[cfg(not(unix))]
mod platform {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use signal_hook::consts::SIGINT;

    /// The interval at which signals are polled, as no signal interrupts a thread here.
    const POLL_INTERVAL: Duration = Duration::from_millis(100);

    /// Calls `take` on a thread with each signal that asks to end, until it returns false.
    ///
    /// # Errors
    /// When the signals cannot be handled.
    pub(crate) fn watch(take: impl Fn(i32) -> bool + Send + 'static) -> io::Result<()> {
        let asked = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGINT, Arc::clone(&asked))?;
        thread::spawn(move || {
            loop {
                thread::sleep(POLL_INTERVAL);
                if asked.swap(false, Ordering::Relaxed) && !take(SIGINT) {
                    break;
                }
            }
        });
        Ok(())
    }

    /// Returns false: no signal asks a process to stop here.
    pub(crate) fn is_suspend(_: i32) -> bool {
        false
    }

    /// Does nothing: processes are not stopped here.
    ///
    /// # Errors
    /// None.
    pub(crate) fn suspend() -> io::Result<()> {
        Ok(())
    }
}
