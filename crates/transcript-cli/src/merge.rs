//! `transcript merge`: joins two copies of one session.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;
use transcript_engine::ErrorKind;
use transcript_engine::wire::{MergeReport, NotCopiedRecord};
use transcript_ops::Failure;
use transcript_storage::RealDisk;

use crate::progress::Progress;
use crate::ui::Ui;
use crate::{continuation, exit, record, session};

/// Merge two copies of a session
///
/// For copies that were continued apart, on two machines for example. The new file has every line of both, once. Both branches of the conversation are kept, and it
/// continues where the newer one ended. Subagents and side files are merged as well. A and B are not changed.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The first copy, whose order of lines is kept
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The second copy
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Path of the new file
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    transcript_engine::ignore_file_size_signal();
    let [a, b] = [&args.a, &args.b].map(|argument| session::find(ui, argument));
    let (a, b) = (a?, b?);
    let context = session::context(ui);
    context.check_own(&a)?;
    context.check_own(&b)?;
    let progress = Progress::start(ui);
    let merged = transcript_engine::merge_on(&ui.disk(), [&a, &b], &RealDisk, &args.out);
    drop(progress);
    let merged = match merged {
        Ok(merged) => merged,
        Err(error) if error.kind() == ErrorKind::SideFiles => {
            let files = error.candidates().iter();
            let list: String = files
                .map(|path| format!("\n  {}", path.display()))
                .collect();
            let message = format!("{error}:{list}");
            let failure = Failure::from(&error);
            return Err(failure.with_message(message).into());
        }
        Err(error) => return Err(error.into()),
    };
    for conflict in &merged.conflicts {
        let uuid = ui.escaping.escape(&conflict.uuid);
        let (a, b) = (conflict.line_a, conflict.line_b);
        ui.warn(&format!(
            "{uuid} differs: line {a} of the first file, line {b} of the second; both are kept"
        ));
    }
    for (count, path) in merged.findings.iter().zip([&args.a, &args.b]) {
        if *count > 0 {
            let path = ui.whole_path(path);
            ui.note(&format!(
                "{path}: findings: {count}; damaged bytes are kept"
            ));
        }
    }
    let not_copied = NotCopiedRecord::of(&merged.not_copied);
    warn_of(ui, &not_copied);
    let mut out = io::stdout().lock();
    if args.json {
        record::write(&mut out, &MergeReport::new(&merged))?;
    } else {
        let (path, entries, both) = (ui.whole_path(&merged.out), merged.entries, merged.both);
        let (a, b) = (merged.from_a, merged.from_b);
        writeln!(
            out,
            "{path}: {entries} entries: {both} of both, {a} of the first only, {b} of the second only"
        )?;
        continuation::note(ui, std::slice::from_ref(&merged.out));
    }
    Ok(exit::done_if(not_copied.is_empty()))
}

/// Prints the files that were not copied.
pub(crate) fn warn_of(ui: &Ui, not_copied: &[NotCopiedRecord]) {
    for file in not_copied {
        let text = format!("not copied: {}", file.reason);
        ui.report(Failure::new("not-copied", text).in_file(&file.path));
    }
}
