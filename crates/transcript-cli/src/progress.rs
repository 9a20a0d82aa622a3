//! Shows on standard error that a command works.

use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use transcript_engine::History;
use transcript_format::units::{duration, size};
use transcript_ops::Context;
use transcript_reader::{LoadOptions, Source};

use crate::ui::Ui;

/// Faster commands show nothing.
const SHOW_AFTER: Duration = Duration::from_millis(300);
/// The interval between two drawings.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);

/// A bar while files are read, and a spinner while anything else is done; neither unless standard
/// error is a terminal. It is removed when this is dropped, which must be before the first output.
pub(crate) struct Progress {
    bytes: Bytes,
    /// The thread that draws ends when its sender is gone.
    shown: Option<(Sender<()>, JoinHandle<()>)>,
}

#[derive(Clone, Default)]
struct Bytes {
    read: Arc<AtomicU64>,
    /// The number that will be read; 0 while it is unknown.
    total: Arc<AtomicU64>,
}

impl Progress {
    pub(crate) fn start(ui: &Ui) -> Self {
        let bytes = Bytes::default();
        let is_shown = !ui.quiet && io::stderr().is_terminal();
        let start = || {
            let (sender, done) = channel();
            let bytes = bytes.clone();
            let thread = thread::Builder::new().spawn(move || bytes.show(&done));
            // Without a thread nothing is shown.
            thread.ok().map(|thread| (sender, thread))
        };
        let shown = is_shown.then(start).flatten();
        Self { bytes, shown }
    }

    /// Returns the number of bytes that were read; the reader of the bytes counts them.
    pub(crate) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes.read)
    }

    /// Shows the progress of an operation with this context.
    pub(crate) fn of(&self, context: Context) -> Context {
        let Bytes { read, total } = self.bytes.clone();
        context.progress(read, total)
    }

    /// Sets how many bytes will be read.
    pub(crate) fn expect(&self, total: u64) {
        self.bytes.total.store(total, Ordering::Relaxed);
    }

    /// Reads a session.
    pub(crate) fn read(&self, source: Source) -> Result<History> {
        self.bytes.read.store(0, Ordering::Relaxed);
        self.expect(source.len());
        let options = LoadOptions::new().count_bytes(self.counter());
        Ok(History::read_with(source, &options)?)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.shown.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

impl Bytes {
    fn show(&self, done: &Receiver<()>) {
        let pause = |time| matches!(done.recv_timeout(time), Err(RecvTimeoutError::Timeout));
        if !pause(SHOW_AFTER) {
            return;
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let mut form = "";
        loop {
            let [read, total] =
                [&self.read, &self.total].map(|bytes| bytes.load(Ordering::Relaxed));
            let next = match (read, total) {
                (0, _) => "working {spinner} {worked}",
                (_, 0) => "reading {spinner} {read}",
                _ if read < total => "reading {wide_bar} {read} of {total}, {rest} left",
                _ => "working {spinner} {worked}",
            };
            if form != next
                && let Ok(style) = ProgressStyle::with_template(next)
            {
                form = next;
                let style = style
                    .with_key("read", key(|bar| size(bar.pos())))
                    .with_key("total", key(|bar| size(bar.len().unwrap_or_default())))
                    .with_key("worked", key(|bar| words(bar.elapsed())))
                    .with_key("rest", key(|bar| words(bar.eta())));
                bar.set_style(style.progress_chars("━━─"));
            }
            bar.set_length(total);
            bar.set_position(read);
            bar.tick();
            if !pause(DRAW_INTERVAL) {
                return bar.finish_and_clear();
            }
        }
    }
}

/// Returns a function that writes a part of the bar.
fn key(
    text: fn(&ProgressState) -> String,
) -> impl Fn(&ProgressState, &mut dyn fmt::Write) + Clone + Send + Sync + 'static {
    move |bar, out| _ = out.write_str(&text(bar))
}

fn words(time: Duration) -> String {
    duration(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
