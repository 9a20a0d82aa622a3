//! The output of `move --json` and `merge --json`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Name, SCHEMA};
pub use transcript_manage::Conflict as ConflictRecord;
use transcript_manage::{Merged, Moves, NotCopied};

/// The only object of `move --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MoveReport {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Always `move`.
    pub kind: Name,
    /// The sessions that were moved or copied; with `--dry-run`, that would be.
    pub moved: Vec<MovedSession>,
    /// The sessions that were not.
    pub refused: Vec<RefusedSession>,
    /// Sessions of other folders next to them, and folders that belong to no session.
    pub left: Vec<PathBuf>,
}

/// A session in a new place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MovedSession {
    /// The file before.
    pub from: PathBuf,
    /// The file now; equal to [`Self::from`] if only the recorded folder had to change.
    pub to: PathBuf,
    /// The id of the session; of a copy, its new id.
    pub session_id: String,
    /// The working folder that the session names now.
    pub cwd: String,
}

/// A session that was not moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RefusedSession {
    /// The path of its file.
    pub path: PathBuf,
    /// Its id.
    pub session_id: String,
    /// The reason: `exists`, `busy`, `unusable` or `failed`.
    pub reason: Name,
    /// More about it: the file in the way, or the error of the system.
    pub detail: String,
}

impl MoveReport {
    /// Describes a move.
    #[must_use]
    pub fn new(moves: &Moves) -> Self {
        let refused = moves.refused.iter().map(|refused| RefusedSession {
            path: refused.path.clone(),
            session_id: refused.session_id.clone(),
            reason: refused.reason.name().into(),
            detail: refused.detail.clone(),
        });
        let moved = moves.moved.iter().cloned().map(|moved| MovedSession {
            from: moved.from,
            to: moved.to,
            session_id: moved.session_id,
            cwd: moved.cwd,
        });
        Self {
            schema: SCHEMA,
            kind: "move".into(),
            moved: moved.collect(),
            refused: refused.collect(),
            left: moves.left.clone(),
        }
    }
}

/// The only object of `merge --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MergeReport {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Always `merge`.
    pub kind: Name,
    /// The path of the new file.
    pub out: PathBuf,
    /// The number of entries that were copied: the sum of the next three.
    pub entries: u64,
    /// The number of entries that only the first file had.
    pub from_a: u64,
    /// The number of entries that only the second file had.
    pub from_b: u64,
    /// The number of entries that both had.
    pub both: u64,
    /// The entries with the same uuid and other content.
    pub conflicts: Vec<ConflictRecord>,
    /// The numbers of findings about damage in the first and in the second file.
    pub findings: [usize; 2],
    /// The uuid of the entry at which the conversation continues.
    pub leaf: Option<String>,
    /// The files next to the two copies that were not copied next to the new one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_copied: Vec<NotCopiedRecord>,
}

/// A file beside a session that was not copied with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotCopiedRecord {
    /// Its path.
    pub path: PathBuf,
    /// The reason.
    pub reason: String,
}

impl NotCopiedRecord {
    /// Describes files that were not copied.
    #[must_use]
    pub fn of(not_copied: &[NotCopied]) -> Vec<Self> {
        let describe = |file: &NotCopied| Self {
            path: file.path.clone(),
            reason: file.refusal.to_string(),
        };
        not_copied.iter().map(describe).collect()
    }
}

impl MergeReport {
    /// Describes a merge.
    #[must_use]
    pub fn new(merged: &Merged) -> Self {
        Self {
            schema: SCHEMA,
            kind: "merge".into(),
            out: merged.out.clone(),
            entries: merged.entries,
            from_a: merged.from_a,
            from_b: merged.from_b,
            both: merged.both,
            conflicts: merged.conflicts.clone(),
            findings: merged.findings,
            leaf: merged.leaf.clone(),
            not_copied: NotCopiedRecord::of(&merged.not_copied),
        }
    }
}
