//! Detects that the reader of our output is gone, even while there is nothing to write.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use transcript_tail::Stopper;

/// Returns whether the reader of our output is gone: `transcript … | head` exits quietly.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        // These are transparent: the chain does not have what they hold.
        let render = match cause.downcast_ref() {
            Some(transcript_page::Error::Render(render)) => Some(render),
            _ => cause.downcast_ref(),
        };
        let io = match (render, cause.downcast_ref()) {
            (Some(transcript_render::Error::Output(io)), _) => Some(io),
            (_, Some(transcript_page::Error::Io(io))) => Some(io),
            _ => cause.downcast_ref::<io::Error>(),
        };
        io.is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Whether the reader of standard output is gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closed(Arc<AtomicBool>);

impl Closed {
    /// Calls `stopper` once the reader of standard output is gone. Only pipes and sockets have a
    /// reader. On systems without the check, the next write fails instead.
    pub(crate) fn stops(stopper: Stopper) -> Self {
        let closed = Self::default();
        let shown = closed.clone();
        // Without the thread the next write detects it; nothing else changes.
        let _ = std::thread::Builder::new()
            .name("closed".to_owned())
            .spawn(move || {
                if wait() {
                    shown.0.store(true, Ordering::Release);
                    stopper.stop();
                }
            });
        closed
    }

    pub(crate) fn is(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Waits until standard output has no reader. Returns false if it is not a pipe or socket, or if the
/// system cannot report this.
#[cfg(unix)]
fn wait() -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let out = std::io::stdout();
    loop {
        // Errors and disconnects (POLLHUP) are reported even if no event is requested.
        let mut polled = [PollFd::new(&out, PollFlags::empty())];
        match poll(&mut polled, None) {
            Ok(_) => {
                let shown = polled[0].revents();
                return shown.intersects(PollFlags::ERR | PollFlags::HUP);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(not(unix))]
fn wait() -> bool {
    false
}
