//! The output of `repair --json`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use transcript_verify::repair::{Action, Compaction, Health, Repair};
use transcript_verify::salvage::Salvage;

use super::{Name, NotCopiedRecord, PolicyLintRecord, SCHEMA, VisibleRecord};

/// The plan or result of a repair, with the state of the session before and after: the only object of
/// `repair --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RepairReport {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Always `repair`.
    pub kind: Name,
    /// The path of the session.
    pub path: PathBuf,
    /// The changes; empty when there is nothing to repair.
    pub plan: Vec<ActionRecord>,
    /// The state of the session.
    pub before: HealthRecord,
    /// The state of the repaired session.
    pub after: HealthRecord,
    /// The reason why the session is not repaired, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Name>,
    /// The path of the repaired session, if it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<PathBuf>,
    /// The folder in which a client continues the session, or the copy that was written; missing if no client finds that
    /// file by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The path of the old file, if it was replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<PathBuf>,
    /// The lines that are moved to the archive; only with `--compact`, and if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted: Option<CompactedRecord>,
    /// The files in the folder of the session that were not copied to that of the repaired one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_copied: Vec<NotCopiedRecord>,
}

/// The lines that `--compact` moves to an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompactedRecord {
    /// The number of lines that are moved.
    pub lines: usize,
    /// The bytes of the session before.
    pub before: u64,
    /// The bytes after.
    pub after: u64,
    /// The same by the type of lines, the type of which most bytes are moved first.
    pub types: Vec<TypeSizeRecord>,
}

/// The lines of one type before and after a compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TypeSizeRecord {
    /// The type; empty for unknown ones.
    #[serde(rename = "type")]
    pub kind: Name,
    /// The number of lines that are moved.
    pub lines: usize,
    /// The bytes before.
    pub before: u64,
    /// The bytes after.
    pub after: u64,
}

/// One change of a repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ActionRecord {
    /// The code of the defect.
    pub code: Name,
    /// The line in the old file; `null` for one that was made.
    pub line: Option<u64>,
    /// The name of the action, for example `salvage`.
    pub action: Name,
    /// A short description.
    pub detail: String,
}

/// The state of a session: the messages that it shows, and whether a provider accepts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HealthRecord {
    /// The messages of the conversation.
    pub conversation: u64,
    /// The number of them that each policy shows.
    pub visible: VisibleRecord,
    /// Whether a strict provider accepts the request of each policy.
    pub lint: PolicyLintRecord,
}

impl RepairReport {
    /// Describes a repair.
    #[must_use]
    pub fn new(repair: &Repair) -> Self {
        let (path, health) = (repair.original().path(), [repair.before(), repair.after()]);
        let compaction = repair.compaction();
        Self {
            refused: repair.refusal().map(|refusal| refusal.name().into()),
            compacted: compaction.map(|moved| CompactedRecord::of(moved, repair.repaired().len())),
            ..Self::planned(path, repair.actions(), &health)
        }
    }

    /// Describes a salvage, as the repair of a session whose file is missing or behind.
    #[must_use]
    pub fn from_salvage(salvage: &Salvage) -> Self {
        let health = [salvage.before(), salvage.after()];
        Self::planned(salvage.session(), salvage.actions(), &health)
    }

    fn planned(path: &Path, actions: &[Action], [before, after]: &[Health; 2]) -> Self {
        Self {
            schema: SCHEMA,
            kind: "repair".into(),
            path: path.to_owned(),
            plan: actions.iter().map(ActionRecord::of).collect(),
            before: HealthRecord::of(before),
            after: HealthRecord::of(after),
            refused: None,
            out: None,
            cwd: None,
            old: None,
            compacted: None,
            not_copied: Vec::new(),
        }
    }
}

impl CompactedRecord {
    fn of(compaction: &Compaction, after: u64) -> Self {
        let types = compaction.sizes().iter().map(|size| TypeSizeRecord {
            kind: size.kind.name().into(),
            lines: size.lines,
            before: size.before,
            after: size.after,
        });
        Self {
            lines: compaction.moved().len(),
            before: compaction.base().len(),
            after,
            types: types.collect(),
        }
    }
}

impl ActionRecord {
    fn of(action: &Action) -> Self {
        Self {
            code: action.code.as_str().into(),
            line: action.line,
            action: action.action.name().into(),
            detail: action.detail.clone(),
        }
    }
}

impl HealthRecord {
    fn of(health: &Health) -> Self {
        Self {
            conversation: health.shown.conversation as u64,
            visible: VisibleRecord {
                vendor: health.shown.vendor as u64,
                recover: health.shown.recover as u64,
            },
            lint: PolicyLintRecord {
                vendor: health.vendor_lint,
                recover: health.recover_lint,
            },
        }
    }
}
