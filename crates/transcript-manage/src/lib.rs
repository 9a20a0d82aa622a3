//! Commands on the files of sessions: moves a project, merges copies, repairs and salvages damaged
//! files, and finds the sessions of folders and archives.
//!
//! Nothing is overwritten, and no command removes the only copy of a line. Each function says what
//! a kill in between leaves; the same call finishes it.

#[cfg(feature = "archive")]
mod archived;
mod copying;
mod merging;
mod moving;
mod repair_files;
mod salvage_files;
pub mod session_sets;

#[cfg(feature = "archive")]
pub use archived::{ArchivedHome, RootArchive, summarize, summarize_of};
pub use copying::NotCopied;
pub use merging::{Conflict, Merged, merge, merge_on};
pub use moving::{MoveOptions, MoveRefusal, MovedFile, Moves, RefusedMove, move_project};
pub use repair_files::{SessionRepair, undo_repair, undo_repair_on};
pub use salvage_files::SessionSalvage;

#[cfg(feature = "archive")]
pub use transcript_archive as archive;
pub use transcript_redact as redact;
pub use transcript_verify as verify;
