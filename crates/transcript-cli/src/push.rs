//! `transcript push`: captures one session in the archive.

use std::path::Path;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use transcript_engine::archive::CaptureOptions;
use transcript_ops::Failure;

use crate::keep::{self, machine_name};
use crate::session;
use crate::ui::Ui;

/// Back up one session in an archive
///
/// Does for one session what `keep` does for all: captures what changed since the last time, with its subagents and side files. `pull` restores it on
/// another machine.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The session: a path, an id or the start of one, `latest`, or a title
    #[arg(value_name = "SESSION")]
    session: std::path::PathBuf,
    /// The name of this machine in an archive in a bucket [default: $TRANSCRIPT_MACHINE, or the name of the host]
    #[arg(long, value_name = "NAME", value_parser = machine_name)]
    machine: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    let roots = session::roots(ui)?;
    let found = session::find_in(ui, &args.session, None)?;
    let context = session::context(ui);
    if context.is_archived(&found.path) {
        let text = "the session is only in the archive";
        return Err(Failure::new("not-here", text).in_file(&found.path).into());
    }
    let path = std::path::absolute(&found.path)?;
    let place = roots.places.iter().find(|place| {
        let folder = std::path::absolute(&place.folder);
        folder.is_ok_and(|folder| path.starts_with(folder))
    });
    let place = place.ok_or_else(|| {
        let text = "the session is in none of the folders that are in use";
        let failure = Failure::new("not-found", text).in_file(&found.path);
        failure.with_next("name its folder with --root DIR")
    })?;
    let root = std::path::absolute(&place.folder)?;
    let below = |path: &Path| {
        let names = path.strip_prefix(&root).ok()?.iter();
        let names: Option<Vec<String>> =
            names.map(|name| Some(name.to_str()?.to_owned())).collect();
        names
    };
    let options = match &place.maker {
        Some(_) => {
            let files = context.agent_homes().files_of(&found.path);
            let files = files.with_context(|| found.path.display().to_string())?;
            let files = files.unwrap_or_default();
            let files = files.iter().filter_map(|file| Some(below(file)?.join("/")));
            CaptureOptions::new().files(files.collect())
        }
        None => {
            let id = found.path.file_stem().unwrap_or_default();
            let id = id.to_string_lossy().into_owned();
            let project = below(&path).and_then(|names| names.into_iter().next());
            CaptureOptions::new().sessions(vec![(project.unwrap_or_default(), id)])
        }
    };
    let as_keep = keep::Args::of_session(args.machine.as_deref(), args.json);
    keep::keep_session(ui, &as_keep, place, &options)
}
