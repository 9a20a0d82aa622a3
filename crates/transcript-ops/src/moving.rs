//! Sessions that follow a working folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use transcript_format::unicode::comparable;
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

/// The maximum number of folders that are named in place of one.
const MAX_ALIKE: usize = 3;

/// Says that no session worked in a folder, and names the folders of sessions that look like it.
#[must_use]
pub fn no_session_in(context: &Context, folder: &Path) -> Failure {
    let text = format!("no session was written in {}", folder.display());
    let failure = Failure::new("not-found", text).at(folder);
    let listing = context.store().ok().and_then(|store| store.list().ok());
    let rows = listing.map(|listing| listing.rows).unwrap_or_default();
    let alike = rows.iter().filter_map(|row| row.cwd.as_deref());
    let alike: BTreeSet<&str> = alike
        .filter(|cwd| is_alike(Path::new(cwd), folder))
        .collect();
    let alike: Vec<&str> = alike.into_iter().take(MAX_ALIKE).collect();
    if alike.is_empty() {
        return failure.with_next("`transcript list` shows the folders");
    }
    failure.with_next(format!("did you mean {}?", alike.join(" or ")))
}

/// Returns whether two folders have the same name, one that is a part of the other's, or one that lacks at most two letters
/// of the other's; in any case.
fn is_alike(one: &Path, other: &Path) -> bool {
    let name = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        comparable(&name.to_string_lossy())
    };
    let (one, other) = (name(one), name(other));
    let is_part = |part: &str, whole: &str| part.len() > 2 && whole.contains(part);
    one == other
        || is_part(&one, &other)
        || is_part(&other, &one)
        || lacks_few(&one, &other)
        || lacks_few(&other, &one)
}

/// Returns whether `short` is `long` without one or two letters.
fn lacks_few(short: &str, long: &str) -> bool {
    let mut letters = long.chars();
    let is_in_order = short
        .chars()
        .all(|letter| letters.any(|other| other == letter));
    let lacking = long.chars().count().saturating_sub(short.chars().count());
    is_in_order && lacking <= 2 && short.len() > 2
}

/// Moves sessions, and writes the record of the move.
pub(crate) fn move_sessions(
    settings: &MoveSettings,
    context: &Context,
    sink: &mut dyn Sink,
) -> sink::Result<()> {
    sink.record(&MoveReport::new(&settings.run(context)?))
}
