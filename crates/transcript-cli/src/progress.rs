//! A progress bar on standard error for reading large files.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use transcript::History;
use transcript_reader::{LoadOptions, Source};

use crate::ui::Ui;

/// Faster reads show no bar.
const SHOW_AFTER: Duration = Duration::from_secs(1);
/// Faster searches show nothing.
const WAIT_SHOW_AFTER: Duration = Duration::from_millis(300);
/// How often the bar is drawn.
const TICK: Duration = Duration::from_millis(100);

/// Reads a session; shows a bar if that takes long and standard error is a terminal.
pub(crate) fn read(ui: &Ui, source: Source) -> Result<History> {
    let (counter, total) = (Arc::new(AtomicU64::new(0)), source.len());
    let options = LoadOptions::new().count_bytes(Arc::clone(&counter));
    Ok(during(ui, Some(total), &counter, || {
        History::read_with(source, &options)
    })?)
}

/// Does `work`, which adds the bytes that it reads to `counter`; shows a bar if that takes long and
/// standard error is a terminal. Without a `total` the bar has no end.
pub(crate) fn during<T>(
    ui: &Ui,
    total: Option<u64>,
    counter: &AtomicU64,
    work: impl FnOnce() -> T,
) -> T {
    if ui.quiet || !io::stderr().is_terminal() {
        return work();
    }
    thread::scope(|scope| {
        let (done, watched) = channel();
        scope.spawn(move || show(total, counter, &watched));
        let result = work();
        // Dropping this end of the channel removes the bar.
        drop(done);
        result
    })
}

/// Does `work`; says so if that takes a moment and standard error is a terminal.
pub(crate) fn waiting<T>(ui: &Ui, doing: &'static str, work: impl FnOnce() -> T) -> T {
    if ui.quiet || !io::stderr().is_terminal() {
        return work();
    }
    thread::scope(|scope| {
        let (done, watched) = channel::<()>();
        scope.spawn(move || {
            let pause = |time| matches!(watched.recv_timeout(time), Err(RecvTimeoutError::Timeout));
            if !pause(WAIT_SHOW_AFTER) {
                return;
            }
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{msg} {spinner} {elapsed}") {
                bar.set_style(style);
            }
            bar.set_message(doing);
            while pause(TICK) {
                bar.tick();
            }
            bar.finish_and_clear();
        });
        let result = work();
        // Dropping this end of the channel removes the line.
        drop(done);
        result
    })
}

fn show(total: Option<u64>, counter: &AtomicU64, done: &Receiver<()>) {
    let pause = |time| matches!(done.recv_timeout(time), Err(RecvTimeoutError::Timeout));
    if !pause(SHOW_AFTER) {
        return;
    }
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    let form = match total {
        Some(_) => "reading {wide_bar} {binary_bytes} of {binary_total_bytes}, {eta} left",
        None => "reading {spinner} {binary_bytes}",
    };
    if let Ok(style) = ProgressStyle::with_template(form) {
        bar.set_style(style.progress_chars("━━─"));
    }
    loop {
        let read = counter.load(Ordering::Relaxed);
        bar.set_position(total.map_or(read, |total| read.min(total)));
        if !pause(TICK) {
            return bar.finish_and_clear();
        }
    }
}
