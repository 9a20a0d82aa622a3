//! Sessions that follow a working folder.

use std::path::PathBuf;

use serde::Deserialize;
use transcript_manage::{MoveOptions, Moves, move_project};

use crate::context::Context;
use crate::failure::Failure;
use crate::sink::{self, Sink};
use crate::wire::MoveReport;

/// The options of `move`: the old and the new folder.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MoveSettings {
    /// The folder in which the sessions worked.
    pub old: PathBuf,
    /// The folder in which they are to go on.
    pub new: PathBuf,
    /// Leaves the sessions where they are, and writes copies with new ids.
    #[serde(default)]
    pub copy: bool,
    /// Undoes the same move. Not with `copy`.
    #[serde(default)]
    pub undo: bool,
    /// Changes nothing, and returns what would be moved.
    #[serde(default)]
    pub dry_run: bool,
}

impl MoveSettings {
    /// Moves the sessions.
    ///
    /// # Errors
    /// When an option cannot be used, or the store cannot be read.
    pub fn run(&self, context: &Context) -> Result<Moves, Failure> {
        if self.copy && self.undo {
            return Err(Failure::option("undo", "a copy cannot be undone"));
        }
        let mut options = MoveOptions::new();
        if self.copy {
            options = options.copy();
        }
        if self.undo {
            options = options.undo();
        }
        if self.dry_run {
            options = options.dry_run();
        }
        Ok(move_project(
            context.store()?,
            &self.old,
            &self.new,
            options,
        )?)
    }
}

/// Moves sessions, and writes the record of the move.
pub(crate) fn move_sessions(
    settings: &MoveSettings,
    context: &Context,
    sink: &mut dyn Sink,
) -> sink::Result<()> {
    sink.record(&MoveReport::new(&settings.run(context)?))
}
