//! Makes damaged sessions whole.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use transcript_manage::{SessionRepair, undo_repair_on};
use transcript_reader::{SessionFile, SessionRow};
use transcript_session::{Error, ErrorKind};

use crate::context::Context;
use crate::failure::Failure;
use crate::sink::{Result, Sink};
use crate::wire::{Name, NotCopiedRecord, RepairReport, SCHEMA};

/// The options of `repair`: the session, and the file to write.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RepairSettings {
    /// The session: a path, an id, the start of one, a title, the id of a subagent, or `latest`.
    pub session: PathBuf,
    /// The new file for the repaired session.
    pub out: Option<PathBuf>,
    /// Whether the repaired session is written as a copy with a new session id, and new ids of its entries; without `out` it is
    /// next to the original.
    #[serde(default)]
    pub new_session: bool,
    /// Whether the repaired session gets the place of the old one, which is kept as `SESSION.jsonl.before-repair`.
    #[serde(default)]
    pub keep_id: bool,
    /// Whether lines that no resume needs are moved to an archive beside the repaired session, too. Not with `newSession`.
    #[serde(default)]
    pub compact: bool,
    /// Whether the file that `keepId` replaced is restored, instead of a repair; the repaired one is kept as
    /// `SESSION.jsonl.repaired`.
    #[serde(default)]
    pub undo: bool,
}

/// A repair that was planned, and written if that was asked for.
#[derive(Debug)]
pub struct Repaired {
    /// The plan.
    pub repair: SessionRepair,
    /// Its record.
    pub report: RepairReport,
    /// The reason why it was not written.
    pub refused: Option<Error>,
}

/// Plans the repair of the session at a path, and writes it as the options say.
///
/// # Errors
/// When the session cannot be read, or the repair fails.
pub fn repair_session(
    settings: &RepairSettings,
    context: &Context,
    path: &Path,
) -> std::result::Result<Repaired, Error> {
    let disk = context.live_disk();
    let mut repair = SessionRepair::plan_on(context.read_disk(), path)?.write_to(Arc::clone(disk));
    if settings.compact {
        repair = repair.compact()?;
    }
    let mut report = RepairReport::new(repair.details());
    let done = match &settings.out {
        out if settings.new_session => repair
            .write_as_new(out.as_deref())
            .map(|(path, _)| report.out = Some(path)),
        Some(out) => repair.write(out).map(|()| report.out = Some(out.clone())),
        None if settings.keep_id => repair.replace().map(|old| report.old = old),
        None => Ok(()),
    };
    report.not_copied = NotCopiedRecord::of(&repair.not_copied());
    let written = report.out.as_ref().unwrap_or(&report.path);
    let row = SessionRow::of_file(&(Arc::clone(disk) as _), &SessionFile::at(&**disk, written));
    report.cwd = row.continued_in().map(str::to_owned);
    let refused = match done {
        Err(error) if is_refusal(error.kind()) => Some(error),
        done => done.map(|()| None)?,
    };
    Ok(Repaired {
        repair,
        report,
        refused,
    })
}

/// Returns whether nothing was written, as it must not be: not a failure of the system.
fn is_refusal(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::RepairRefused
            | ErrorKind::Exists
            | ErrorKind::CannotReplace
            | ErrorKind::NotHere
    )
}

/// A repair that was undone.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UndoneRepair<'a> {
    /// The version of the shape: [`SCHEMA`].
    schema: u32,
    /// Always `undo`.
    kind: Name,
    /// The file, as it was before the repair.
    path: Cow<'a, str>,
    /// The path of the repaired file now.
    repaired: Cow<'a, str>,
}

impl<'a> UndoneRepair<'a> {
    /// Describes an undone repair of the file at `path`; the repaired file is `repaired` now.
    #[must_use]
    pub fn new(path: &'a Path, repaired: &'a Path) -> Self {
        Self {
            schema: SCHEMA,
            kind: "undo".into(),
            path: path.to_string_lossy(),
            repaired: repaired.to_string_lossy(),
        }
    }
}

/// Repairs, and writes the record of it.
pub(crate) fn repair(
    settings: &RepairSettings,
    context: &Context,
    sink: &mut dyn Sink,
) -> Result<()> {
    let path = context.find(&settings.session, None)?.path;
    context.check_own(&path)?;
    if settings.undo {
        let repaired = undo_repair_on(&**context.live_disk(), &path)?;
        return sink.record(&UndoneRepair::new(&path, &repaired));
    }
    let repaired = repair_session(settings, context, &path)?;
    match repaired.refused {
        Some(error) => Err(Failure::from(error).into()),
        None => sink.record(&repaired.report),
    }
}
