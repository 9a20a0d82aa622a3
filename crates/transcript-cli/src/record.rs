//! Prints the records of [`wire`].

use std::io::{self, Write};

use anyhow::Result;
use serde::Serialize;
use transcript_ops::wire;
use transcript_ops::{Sink, Stop};

use crate::ui::Ui;

/// Writes `record` as one line.
pub(crate) fn write(out: &mut dyn Write, record: &impl Serialize) -> Result<()> {
    let mut line = wire::text(record)?;
    line.push('\n');
    out.write_all(line.as_bytes())?;
    Ok(())
}

/// Calls `run`, which runs an operation, with a sink that prints each record as one line.
pub(crate) fn print<T>(
    ui: &Ui,
    out: &mut dyn Write,
    run: impl FnOnce(&mut dyn Sink) -> Result<T, Stop>,
) -> Result<T> {
    let mut lines = Lines {
        out,
        is_terminal: ui.is_json_shown(),
        failed: None,
    };
    let done = run(&mut lines);
    match (done, lines.failed) {
        (_, Some(error)) => Err(error.into()),
        (Ok(done), None) => Ok(done),
        (Err(Stop::Failed(failure)), None) => Err(failure.into()),
        (Err(Stop::Closed), None) => Err(io::Error::from(io::ErrorKind::BrokenPipe).into()),
    }
}

struct Lines<'o> {
    out: &'o mut dyn Write,
    is_terminal: bool,
    /// The error after which nothing more can be written.
    failed: Option<io::Error>,
}

impl Lines<'_> {
    fn keep(&mut self, written: io::Result<()>) -> Result<(), Stop> {
        written.map_err(|error| {
            self.failed = Some(error);
            Stop::Closed
        })
    }
}

impl Sink for Lines<'_> {
    fn json(&mut self, record: &[u8]) -> Result<(), Stop> {
        let record = record.trim_ascii_end();
        let written = self.out.write_all(record);
        let written = written.and_then(|()| self.out.write_all(b"\n"));
        self.keep(written)
    }

    fn long_json(
        &mut self,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Stop> {
        let written = write(self.out);
        self.keep(written)
    }

    fn is_terminal(&self) -> bool {
        self.is_terminal
    }
}
