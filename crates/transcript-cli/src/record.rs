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
        out: Records::new(out),
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

/// Writes records, of which the first has the version of the shape.
pub(crate) struct Records<'o> {
    out: &'o mut dyn Write,
    is_started: bool,
}

impl<'o> Records<'o> {
    pub(crate) fn new(out: &'o mut dyn Write) -> Self {
        Self {
            out,
            is_started: false,
        }
    }

    /// Writes the record that `write` writes, with its newline.
    pub(crate) fn write(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.is_started {
            return write(self.out);
        }
        let mut first = Vec::new();
        write(&mut first)?;
        self.is_started = true;
        self.out.write_all(&with_schema(first))
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns a record with the version of the shape, which is among the first fields of those that have one.
fn with_schema(record: Vec<u8>) -> Vec<u8> {
    const FIELD: &[u8] = b"\"schema\":";
    const KIND: &[u8] = b"{\"kind\":\"";
    let after_kind = record.strip_prefix(KIND).and_then(|rest| {
        let end = rest.iter().position(|byte| *byte == b'"')?;
        rest.get(end + 2..)
    });
    let fields = after_kind.or(record.get(1..)).unwrap_or_default();
    if fields.starts_with(FIELD) || !record.starts_with(b"{\"") {
        return record;
    }
    let head = format!("{{\"schema\":{},", wire::SCHEMA);
    [head.as_bytes(), &record[1..]].concat()
}

struct Lines<'o> {
    out: Records<'o>,
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
        let written = self.out.write(|out| {
            out.write_all(record)?;
            out.write_all(b"\n")
        });
        self.keep(written)
    }

    fn long_json(
        &mut self,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Stop> {
        let written = self.out.write(|out| write(out));
        self.keep(written)
    }

    fn is_terminal(&self) -> bool {
        self.is_terminal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_record_has_the_version_of_the_shape_once() {
        for (record, shown) in [
            (
                r#"{"kind":"end","hits":0}"#,
                r#"{"schema":1,"kind":"end","hits":0}"#,
            ),
            (
                r#"{"kind":"row","schema":1,"n":2}"#,
                r#"{"kind":"row","schema":1,"n":2}"#,
            ),
            (
                r#"{"schema":1,"kind":"hit"}"#,
                r#"{"schema":1,"kind":"hit"}"#,
            ),
            (r#"{"line":1}"#, r#"{"schema":1,"line":1}"#),
            ("[]", "[]"),
        ] {
            let mut out = Vec::new();
            let mut records = Records::new(&mut out);
            for _ in 0..2 {
                let line = format!("{record}\n");
                records.write(|out| out.write_all(line.as_bytes())).unwrap();
            }
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text, format!("{shown}\n{record}\n"));
        }
    }
}
