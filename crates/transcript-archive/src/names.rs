//! The project and the session of a path in an archive: `projects/PROJECT/SESSION.jsonl` and the files next to it.

use transcript_storage::outside_names::is_session_name;

use crate::agent_files;
use crate::machines::on_machine;

/// Returns the project of a file, by its path in the archive.
pub(crate) fn project_of(name: &str) -> Option<&str> {
    let (_, name) = on_machine(name);
    name.strip_prefix("projects/")?.split('/').next()
}

/// Returns the machine and the project of a file.
pub(crate) fn place_of_project(name: &str) -> (Option<&str>, Option<&str>) {
    (on_machine(name).0, project_of(name))
}

/// Returns the session of a file, by its path in the archive: all files that are captured belong to one.
pub(crate) fn session_of(name: &str) -> &str {
    if let Some((agent, below)) = agent_files::in_home(name) {
        return agent_files::session_of(agent, below);
    }
    let mut parts = on_machine(name).1.split('/');
    let area = parts.next().unwrap_or_default();
    if area == "projects" {
        let _project = parts.next();
    }
    let part = parts.next().unwrap_or_default();
    part.get(..36)
        .filter(|id| is_session_name(id))
        .unwrap_or_else(|| part.strip_suffix(".jsonl").unwrap_or(part))
}

/// Returns whether a path in the archive is that of the own file of a session.
pub(crate) fn is_own(name: &str) -> bool {
    let id = below_project(name).and_then(|file| file.strip_suffix(".jsonl"));
    id.is_some_and(is_session_name)
}

/// Returns whether `own` is the own file of the session that a file belongs to.
pub(crate) fn is_own_of(own: &str, name: &str) -> bool {
    is_own(own)
        && place_of_project(own) == place_of_project(name)
        && session_of(own) == session_of(name)
}

/// Returns the path below the project.
pub(crate) fn below_project(name: &str) -> Option<&str> {
    let (_, name) = on_machine(name);
    let (_, below) = name.strip_prefix("projects/")?.split_once('/')?;
    Some(below)
}
