//! `transcript repair --salvage`: gathers what is left of a session.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use transcript_engine::wire::RepairReport;
use transcript_engine::{ErrorKind, SessionSalvage};

use transcript_storage::{ReadDisk, RealDisk};

use crate::health::{refuse, write_health};
use crate::progress::Progress;
use crate::ui::Ui;
use crate::{exit, record, session};

pub(crate) fn run(ui: &Ui, argument: &Path, out: Option<&Path>, json: bool) -> Result<u8> {
    let path = find(ui, argument)?;
    session::context(ui).check_own(&path)?;
    let progress = Progress::start(ui);
    let planned = SessionSalvage::plan_on(&ui.disk(), &path);
    drop(progress);
    let salvage = match planned {
        Err(error) if error.kind() == ErrorKind::NothingToSalvage => return refuse(ui, &error),
        planned => planned?,
    };
    let mut report = RepairReport::from_salvage(salvage.details());
    if let Some(out) = out {
        match salvage.write(out) {
            Err(error) if error.kind() == ErrorKind::Exists => return refuse(ui, &error),
            written => written?,
        }
        report.out = Some(out.to_owned());
    }
    let mut stdout = io::stdout().lock();
    if json {
        record::write(&mut stdout, &report)?;
        return Ok(exit::DONE);
    }
    for action in salvage.details().actions() {
        let (code, name) = (action.code.as_str(), action.action.name());
        writeln!(stdout, "{name} ({code}): {}", action.detail)?;
    }
    write_health(ui, &mut stdout, "before", &salvage.details().before())?;
    write_health(ui, &mut stdout, "after ", &salvage.details().after())?;
    match out {
        Some(out) => writeln!(stdout, "the salvaged session is {}", out.display())?,
        None => writeln!(stdout, "nothing was written; --out FILE writes the session")?,
    }
    Ok(exit::DONE)
}

/// Returns the path of the session that `argument` names, which may be that of a missing file: by
/// the file, the folder of the session, or its id.
fn find(ui: &Ui, argument: &Path) -> Result<PathBuf> {
    if RealDisk.is_folder(argument) {
        return Ok(argument.with_extension("jsonl"));
    }
    if RealDisk.is_folder(&argument.with_extension("")) {
        return Ok(argument.to_owned());
    }
    session::find(ui, argument).or_else(|error| {
        let roots = session::roots(ui)?.roots.iter();
        let mut found = roots
            .filter_map(|root| SessionSalvage::find(&root.store, &argument.to_string_lossy()).ok());
        found.next().ok_or(error)
    })
}

/// Returns whether the file of the session is missing, and its folder is there.
pub(crate) fn is_absent(ui: &Ui, argument: &Path) -> bool {
    find(ui, argument).is_ok_and(|path| ui.disk().metadata(&path).is_err())
}
