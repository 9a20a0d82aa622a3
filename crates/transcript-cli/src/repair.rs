//! `transcript repair`: makes a damaged session whole.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use transcript_engine::verify::repair::Repair;
use transcript_engine::{ErrorKind, SessionRow, undo_repair};
use transcript_ops::repair::{RepairSettings, Repaired, UndoneRepair, repair_session};
use transcript_ops::wire::{CompactedRecord, RepairReport};
use transcript_render::TextStyle;

use crate::complaint::failure_of;
use crate::health::{refuse, write_health};
use crate::progress::Progress;
use crate::ui::Ui;
use crate::{continuation, exit, merge, record, salvage, session};

/// Repair a damaged session
///
/// Claude Code then shows the whole conversation. Prints the plan and changes nothing, unless --out or --keep-id is given. The result is checked
/// before it is written: it shows everything that was shown before, and Claude Code shows the same.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Path of a .jsonl file, the id of a session or the start of one, or latest
    #[arg(value_name = "SESSION")]
    session: PathBuf,
    /// Write the repaired session to this new file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["keep_id", "undo"])]
    out: Option<PathBuf>,
    /// Give the copy a new session id, and its entries new ids [default of --out: next to the
    /// original, named after the new id]
    #[arg(long, conflicts_with_all = ["keep_id", "undo"])]
    new_session: bool,
    /// Replace the session with the repaired one; the old file is kept next to it
    #[arg(long, conflicts_with = "undo")]
    keep_id: bool,
    /// Also move lines that no resume needs to an archive next to the repaired session: progress,
    /// settings that later lines replace, copies
    #[arg(long, conflicts_with_all = ["new_session", "undo"])]
    compact: bool,
    /// Restore the file that --keep-id replaced
    #[arg(long)]
    undo: bool,
    /// Rebuild a session whose file is missing or stopped growing, from its subagents and stored
    /// results
    #[arg(long, conflicts_with_all = ["keep_id", "undo", "new_session"])]
    salvage: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    transcript_engine::ignore_file_size_signal();
    if args.session == Path::new("-") {
        bail!("standard input cannot be repaired; save it to a file");
    }
    if args.salvage {
        return salvage::run(ui, &args.session, args.out.as_deref(), args.json);
    }
    let path = session::find(ui, &args.session).map_err(|error| {
        let hint = "its folder exists: --salvage rebuilds the session from it";
        if salvage::is_absent(ui, &args.session) {
            return failure_of(&error).with_next(hint).into();
        }
        error
    })?;
    session::context(ui).check_own(&path)?;
    if args.undo {
        let repaired = match undo_repair(&path) {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::RepairRefused | ErrorKind::CannotReplace
                ) =>
            {
                return refuse(ui, &error);
            }
            undone => undone?,
        };
        if args.json {
            let undone = UndoneRepair::new(&path, &repaired);
            record::write(&mut io::stdout(), &undone)?;
            return Ok(exit::DONE);
        }
        writeln!(
            io::stdout(),
            "restored {}; the repaired session is {}",
            path.display(),
            repaired.display()
        )?;
        continuation::note(ui, &[path]);
        return Ok(exit::DONE);
    }
    let progress = Progress::start(ui);
    let settings = RepairSettings {
        session: path.clone(),
        out: args.out.clone(),
        new_session: args.new_session,
        keep_id: args.keep_id,
        compact: args.compact,
        undo: false,
    };
    let repaired = repair_session(&settings, &session::context(ui), &path);
    drop(progress);
    let Repaired {
        repair,
        report,
        refused,
    } = repaired?;
    let details = repair.details();
    let mut out = io::stdout().lock();
    if args.json {
        record::write(&mut out, &report)?;
    } else {
        print(ui, &mut out, details, &report)?;
    }
    drop(out);
    merge::warn_of(ui, &report.not_copied);
    match refused {
        Some(error) => refuse(ui, &error),
        None => {
            let is_whole = report.not_copied.is_empty() && details.refusal().is_none();
            Ok(exit::done_if(is_whole))
        }
    }
}

fn print(ui: &Ui, out: &mut dyn Write, repair: &Repair, report: &RepairReport) -> Result<()> {
    for action in repair.actions() {
        let place = action
            .line
            .map_or_else(|| "new".to_owned(), |line| format!("line {line}"));
        let (code, action, detail) = (action.code.as_str(), action.action.name(), &action.detail);
        let text = format!("{place}: {action} ({code}): {detail}");
        ui.write_wrapped(out, &text, "  ", TextStyle::default())?;
    }
    if repair.is_empty() && repair.refusal().is_none() {
        writeln!(out, "nothing to repair")?;
    }
    write_health(ui, out, "before", &repair.before())?;
    if let Some(refusal) = repair.refusal() {
        let text = format!("not repaired: {}", refusal.words());
        ui.write_wrapped(out, &text, "  ", TextStyle::default())?;
        return Ok(());
    }
    write_health(ui, out, "after ", &repair.after())?;
    if let Some(compacted) = &report.compacted {
        write_sizes(out, compacted)?;
    }
    if let Some(old) = &report.old {
        writeln!(out, "the old file is {}; --undo restores it", old.display())?;
    } else if report.out.is_none() && !repair.is_empty() {
        let text = "nothing was written; --keep-id replaces the session, --out FILE writes a copy";
        ui.write_wrapped(out, text, "  ", TextStyle::default())?;
        return Ok(());
    }
    let session = report.out.as_ref().unwrap_or(&report.path);
    let command = continuation::command(ui, &SessionRow::at(session));
    if let Some(command) = command.filter(|_| !repair.is_empty()) {
        writeln!(out, "{}", continuation::line(&command))?;
    }
    Ok(())
}

/// Writes the bytes of the types of which lines are moved, and of all of them.
fn write_sizes(out: &mut dyn Write, compacted: &CompactedRecord) -> Result<()> {
    writeln!(
        out,
        "{:22} {:>14} {:>14} {:>12}",
        "bytes", "before", "after", "lines moved"
    )?;
    let CompactedRecord {
        before,
        after,
        lines,
        ..
    } = *compacted;
    let types = compacted.types.iter().filter(|size| size.lines > 0);
    let rows = types.map(|size| (&*size.kind, size.before, size.after, size.lines));
    for (name, before, after, lines) in rows.chain([("all", before, after, lines)]) {
        writeln!(out, "{name:22} {before:>14} {after:>14} {lines:>12}")?;
    }
    Ok(())
}
