//! Long output for people goes through a pager, as other commands do it.

use std::env;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const BUFFER: usize = 64 << 10;

/// Where text for people goes.
pub(crate) enum Output {
    Plain(BufWriter<StdoutLock<'static>>),
    Paged(BufWriter<ChildStdin>, Child),
}

impl Output {
    /// Standard output, without a pager.
    pub(crate) fn plain() -> Self {
        Self::Plain(BufWriter::with_capacity(BUFFER, io::stdout().lock()))
    }

    /// The pager when standard output is a terminal, else standard output.
    pub(crate) fn paged() -> Self {
        if !io::stdout().is_terminal() {
            return Self::plain();
        }
        let Some(mut child) = pager().and_then(|mut pager| pager.spawn().ok()) else {
            return Self::plain();
        };
        let Some(input) = child.stdin.take() else {
            return Self::plain();
        };
        ignore_interrupts();
        Self::Paged(BufWriter::with_capacity(BUFFER, input), child)
    }

    /// Writes what is left and waits until the pager is closed. However a pager ends is no error
    /// of ours.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(mut out) => out.flush(),
            Self::Paged(mut input, mut child) => {
                // It may be closed before everything was read.
                let _ = input.flush();
                drop(input);
                let _ = child.wait();
                Ok(())
            }
        }
    }

    /// Whether `error` says that the pager was closed before the end.
    pub(crate) fn is_closed(&self, error: &anyhow::Error) -> bool {
        let closed = |io: &io::Error| io.kind() == io::ErrorKind::BrokenPipe;
        matches!(self, Self::Paged(..)) && error.downcast_ref().is_some_and(closed)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Paged(input, _) => input.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Paged(input, _) => input.flush(),
        }
    }
}

/// `$PAGER`, else `less` in a mode that shows colour and leaves short output on the screen. No
/// shell is involved (`facts/reliability.md` S16): the variable is split at spaces.
fn pager() -> Option<Command> {
    let named = env::var("PAGER").ok();
    let words: Vec<&str> = match &named {
        Some(named) => named.split_whitespace().collect(),
        None => vec!["less"],
    };
    // An empty variable, and the customary `cat`, mean none.
    let (program, arguments) = words
        .split_first()
        .filter(|(program, _)| **program != "cat")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped());
    if env::var_os("LESS").is_none() {
        command.env("LESS", OsString::from("FRX"));
    }
    Some(command)
}

/// Ctrl-C is for the pager: it shares the terminal, and would be left behind alone.
fn ignore_interrupts() {
    // Without it Ctrl-C ends both, which is a nuisance and no more.
    let _ = signal_hook::flag::register(
        signal_hook::consts::SIGINT,
        Arc::new(AtomicBool::new(false)),
    );
}
