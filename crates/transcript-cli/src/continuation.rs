//! The command that continues a session in Claude Code, which every command shows in the same words.

use std::path::{Path, PathBuf};

use transcript_engine::SessionRow;

use crate::ui::{Ui, in_quotes};

/// Returns a word for a shell; `None` if it is not safe to paste.
pub(crate) fn shell_word(ui: &Ui, text: &str) -> Option<String> {
    let is_shown = !text.contains(char::is_control) && ui.escaping.escape(text) == *text;
    is_shown.then(|| in_quotes(text))
}

/// Returns the line about a command.
pub(crate) fn line(command: &str) -> String {
    format!("to continue: {command}")
}

/// Returns the command that continues the session of a row. `None` for files that Claude Code does not find: outside of the
/// folder that is named after their working folder, or with another name than an id.
pub(crate) fn command(ui: &Ui, row: &SessionRow) -> Option<String> {
    let folder = shell_word(ui, row.continued_in()?)?;
    Some(format!("cd {folder} && claude --resume {}", row.session_id))
}

/// Notes how to continue the sessions in these files: the one, or one of several in the same folder.
pub(crate) fn note(ui: &Ui, sessions: &[PathBuf]) {
    let row = |path: &Path| SessionRow::at(path);
    let command = match sessions {
        [] => None,
        [one] => command(ui, &row(one)),
        [first, rest @ ..] => {
            let first = row(first);
            let folder = first.continued_in();
            let is_same = |path: &PathBuf| row(path).continued_in() == folder;
            let folder = folder.filter(|_| rest.iter().all(is_same));
            let folder = folder.and_then(|folder| shell_word(ui, folder));
            folder.map(|folder| format!("cd {folder} && claude --resume"))
        }
    };
    if let Some(command) = command {
        ui.note(&line(&command));
    }
}
