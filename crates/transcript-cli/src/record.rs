//! Prints the records of [`wire`].

use std::io::Write;

use anyhow::Result;
use serde::Serialize;
use transcript_engine::wire;

/// Writes `record` as one line.
pub(crate) fn write(out: &mut dyn Write, record: &impl Serialize) -> Result<()> {
    let mut line = wire::text(record)?;
    line.push('\n');
    out.write_all(line.as_bytes())?;
    Ok(())
}
