//! The output of `keep --json`, `restore --json`, `prune --json` and `verify --archive --json`.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use transcript_archive::{
    Captured, Check, Damage, KeptSession, Loss, Pruned, PrunedSession, Restored,
};
use transcript_storage::{ReadDisk, RealDisk};

use super::{Name, SCHEMA};

/// The result of `keep`: its only object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct KeepReport {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Always `keep`.
    pub kind: Name,
    /// The name of the root, if several roots are in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The agent whose sessions were captured; absent for Claude Code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The number of sessions of which something was captured; of another agent, the number of files and databases.
    pub captured: u64,
    /// The number of bytes that were not archived before.
    pub bytes: u64,
    /// The number of bytes that were added to the archive.
    pub stored: u64,
    /// The number of sessions that did not change; of another agent, the number of files and databases.
    pub unchanged: u64,
    /// The number of files that are never captured, as they may hold credentials.
    pub denied: u64,
    /// The sessions that the client deletes soon.
    pub at_risk: Vec<AtRiskRecord>,
    /// The files that could not be captured, with the reasons.
    pub problems: Vec<String>,
}

/// A session that the client deletes soon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AtRiskRecord {
    /// The name of the file without `.jsonl`.
    pub session_id: String,
    /// The number of days until then; 0 if it is deleted when the client is started next.
    pub days: u64,
}

impl KeepReport {
    /// Describes a capture. `kept` is the number of days for which the client keeps sessions, and the sessions that it
    /// deletes within `within` days are at risk.
    #[must_use]
    pub fn new(captured: &Captured, kept: Option<u64>, within: u64) -> Self {
        let days = |modified: Option<SystemTime>| {
            let days = transcript_verify::days_until_deleted(kept?, modified?);
            (days <= within).then_some(days)
        };
        let at_risk = captured.live.iter().filter_map(|session| {
            Some(AtRiskRecord {
                session_id: session.id.clone(),
                days: days(session.modified)?,
            })
        });
        let mut at_risk: Vec<AtRiskRecord> = at_risk.collect();
        at_risk.sort_by(|one, other| {
            (one.days, &one.session_id).cmp(&(other.days, &other.session_id))
        });
        Self {
            schema: SCHEMA,
            kind: "keep".into(),
            root: None,
            agent: None,
            captured: captured.sessions,
            bytes: captured.bytes,
            stored: captured.stored,
            unchanged: captured.unchanged,
            denied: captured.denied,
            at_risk,
            problems: captured.problems.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The result of `restore`: its only object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RestoreReport {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Always `restore`.
    pub kind: Name,
    /// The paths of the sessions that were restored.
    pub restored: Vec<String>,
    /// The number of files that were written.
    pub files: u64,
    /// The number of their bytes.
    pub bytes: u64,
    /// The number of files that were there already, with the same bytes.
    pub present: u64,
    /// The number of files that belong next to a folder named `projects`, and were omitted because the one to write to has
    /// another name.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
    /// The sessions that the client deletes soon, since their files have their old times.
    #[serde(default)]
    pub at_risk: Vec<AtRiskRecord>,
    /// The files that were not restored, with the reasons.
    pub refused: Vec<RefusedFileRecord>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A file that was not restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RefusedFileRecord {
    /// Its path.
    pub path: String,
    /// The reason.
    pub reason: String,
}

impl RestoreReport {
    /// Describes the restored sessions. `kept` is the number of days for which the client keeps sessions, and those that it
    /// deletes within `within` days are at risk.
    #[must_use]
    pub fn new(restored: &Restored, kept: Option<u64>, within: u64) -> Self {
        let at_risk = restored.sessions.iter().filter_map(|path| {
            let modified = RealDisk.metadata(path).ok()?.modified?;
            let days = transcript_verify::days_until_deleted(kept?, modified);
            (days <= within).then(|| AtRiskRecord {
                session_id: path
                    .file_stem()
                    .map(|stem| stem.to_string_lossy().into_owned())
                    .unwrap_or_default(),
                days,
            })
        });
        let refused = restored.problems.iter().map(|problem| RefusedFileRecord {
            path: problem.path().display().to_string(),
            reason: problem.to_string(),
        });
        let sessions = restored.sessions.iter();
        Self {
            schema: SCHEMA,
            kind: "restore".into(),
            restored: sessions.map(|path| path.display().to_string()).collect(),
            files: restored.files,
            bytes: restored.bytes,
            present: restored.present,
            omitted: restored.omitted,
            at_risk: at_risk.collect(),
            refused: refused.collect(),
        }
    }
}

/// The result of `prune`: its only object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PruneReport {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Always `prune`.
    pub kind: Name,
    /// Whether nothing was removed, as `--yes` was not given.
    pub dry_run: bool,
    /// The sessions that were or would be removed.
    pub pruned: Vec<PrunedRecord>,
    /// The sessions that are old enough and stay.
    pub kept: Vec<KeptRecord>,
    /// The errors of the system.
    pub problems: Vec<String>,
}

/// A session that was or would be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PrunedRecord {
    /// The path of its own file.
    pub path: String,
    /// The number of its files.
    pub files: u64,
    /// The number of their bytes.
    pub bytes: u64,
}

/// A session that stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct KeptRecord {
    /// The file for which there is no proof.
    pub path: String,
    /// The reason.
    pub reason: String,
}

impl PruneReport {
    /// Describes the removed and the kept sessions, or in a dry run those that would be.
    #[must_use]
    pub fn new(pruned: &Pruned, dry_run: bool) -> Self {
        let session = |session: &PrunedSession| PrunedRecord {
            path: session.path.display().to_string(),
            files: session.files,
            bytes: session.bytes,
        };
        let kept = |kept: &KeptSession| KeptRecord {
            path: kept.path.display().to_string(),
            reason: kept.reason.name().to_owned(),
        };
        Self {
            schema: SCHEMA,
            kind: "prune".into(),
            dry_run,
            pruned: pruned.sessions.iter().map(session).collect(),
            kept: pruned.kept.iter().map(kept).collect(),
            problems: pruned.problems.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The result of `verify --archive`: its only object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ArchiveCheckReport {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Always `archive`.
    pub kind: Name,
    /// The folder of the archive.
    pub archive: String,
    /// The number of frames that were read.
    pub frames: u64,
    /// The number of bytes of their content.
    pub bytes: u64,
    /// The parts of the archive that are damaged or missing.
    pub damages: Vec<DamageRecord>,
    /// The parts of archived files that are lost.
    pub losses: Vec<LossRecord>,
}

/// A part of an archive that is damaged or missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DamageRecord {
    /// A pack or a dictionary.
    pub path: String,
    /// The offset of a damaged frame in the pack.
    pub offset: Option<u64>,
    /// The defect, for people.
    pub reason: String,
}

/// A part of an archived file that is lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LossRecord {
    /// The path of the file in the archive.
    pub path: String,
    /// The first line that is lost, or parts of which are.
    pub first_line: u64,
    /// The last one.
    pub last_line: u64,
    /// The offset of the first byte that is lost.
    pub offset: u64,
    /// The number of bytes.
    pub len: u64,
}

impl ArchiveCheckReport {
    /// Describes the damage and the losses of the archive in `folder`.
    #[must_use]
    pub fn new(folder: &std::path::Path, check: &Check) -> Self {
        let damage = |damage: &Damage| DamageRecord {
            path: damage.path.display().to_string(),
            offset: damage.offset,
            reason: damage.reason.clone(),
        };
        let loss = |loss: &Loss| LossRecord {
            path: loss.path.display().to_string(),
            first_line: loss.lines.0,
            last_line: loss.lines.1,
            offset: loss.bytes.0,
            len: loss.bytes.1 - loss.bytes.0,
        };
        Self {
            schema: SCHEMA,
            kind: "archive".into(),
            archive: folder.display().to_string(),
            frames: check.frames,
            bytes: check.bytes,
            damages: check.damages.iter().map(damage).collect(),
            losses: check.losses.iter().map(loss).collect(),
        }
    }
}
