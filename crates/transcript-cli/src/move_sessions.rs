//! `transcript move`: sessions follow a working folder that was moved or renamed.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;
use transcript_engine::Moves;
use transcript_engine::wire::MoveReport;
use transcript_ops::Failure;
use transcript_ops::moving::{MoveSettings, no_session_in};
use transcript_render::count;
use transcript_storage::{ReadDisk, RealDisk};

use crate::progress::Progress;
use crate::ui::Ui;
use crate::{continuation, exit, record, session};

/// Move the sessions of a renamed folder
///
/// Does it after the folder itself was moved or renamed. Sessions of OLD and of folders below it move to the project of NEW, with their subagents and side
/// files, so that Claude Code finds them there. Nothing is overwritten. After an interruption, the
/// same command finishes the move. The folders themselves are not touched.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The folder in which the sessions worked
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The folder in which they will continue
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Keep the sessions where they are, and write copies with new ids
    #[arg(long, conflicts_with = "undo")]
    copy: bool,
    /// Undo what the same command without --undo moved
    #[arg(long)]
    undo: bool,
    /// Change nothing; print what would be moved
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    let settings = MoveSettings {
        old: args.old.clone(),
        new: args.new.clone(),
        copy: args.copy,
        undo: args.undo,
        dry_run: args.dry_run,
    };
    session::one_root(ui)?;
    let progress = Progress::start(ui);
    let context = session::context(ui);
    let moves = settings.run(&context)?;
    drop(progress);
    let mut out = io::stdout().lock();
    if args.json {
        record::write(&mut out, &MoveReport::new(&moves))?;
    } else {
        print(ui, &mut out, &moves, args)?;
    }
    let target = if args.undo { &args.old } else { &args.new };
    if !moves.moved.is_empty() && !RealDisk.is_folder(target) {
        let target = ui.whole_path(target);
        ui.note(&format!(
            "{target} is not a folder yet; Claude Code finds the sessions when it is started there"
        ));
    }
    let is_none = moves.moved.is_empty() && moves.refused.is_empty();
    if is_none {
        let old = if args.undo { &args.new } else { &args.old };
        ui.report(no_session_in(&context, old));
    }
    Ok(exit::done_if(moves.refused.is_empty() && !is_none))
}

fn print(ui: &Ui, out: &mut impl Write, moves: &Moves, args: &Args) -> Result<()> {
    for moved in &moves.moved {
        writeln!(out, "{}  {}", moved.session_id, ui.whole_path(&moved.to))?;
    }
    for refused in &moves.refused {
        let (why, path) = (refused.reason.name(), ui.whole_path(&refused.path));
        let text = format!("not moved ({why}): {path}: {}", refused.detail);
        ui.report(Failure::new(why, text).at(&refused.path));
    }
    for left in &moves.left {
        let left = ui.whole_path(left);
        ui.note(&format!("left where it is: {left}"));
    }
    if moves.moved.is_empty() && moves.refused.is_empty() {
        return Ok(());
    }
    let done = match (args.dry_run, args.copy) {
        (true, true) => "would be copied",
        (true, false) => "would move",
        (false, true) => "copied",
        (false, false) => "moved",
    };
    let sessions = count(moves.moved.len(), "session");
    ui.note(&format!("{sessions} {done}"));
    if !args.dry_run {
        let moved: Vec<_> = moves.moved.iter().map(|moved| moved.to.clone()).collect();
        continuation::note(ui, &moved);
    }
    Ok(())
}
