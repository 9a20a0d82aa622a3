//! The session that an address names.

use std::path::PathBuf;

use serde::Deserialize;
use transcript_ops::{Context, Selection};
use transcript_reader::SessionFile;

/// The names in the address of a session.
#[derive(Debug, Deserialize)]
pub(crate) struct SessionAddress {
    /// The name of the project folder, with that of the root if several are in use ([`folder_name`]).
    pub(crate) project: String,
    pub(crate) id: String,
    pub(crate) agent: Option<String>,
}

/// Returns the name of a project folder in an address, which tells those of several roots apart.
pub(crate) fn folder_name(root: Option<&str>, project: &str) -> String {
    match root {
        Some(root) => format!("{root}@{project}"),
        None => project.to_owned(),
    }
}

/// Finds the file that an address names, among those that are listed: no path is made of the address.
pub(crate) fn find(context: &Context, named: &SessionAddress) -> Option<(SessionFile, PathBuf)> {
    let mut files = context.files(&Selection::default()).ok()?;
    let is_asked = |file: &SessionFile| {
        let folder = || folder_name(context.root_name(&file.path).as_deref(), &file.project);
        file.id == named.id && folder() == named.project
    };
    let at = files.sessions.iter().position(is_asked)?;
    let file = files.sessions.swap_remove(at);
    let path = match &named.agent {
        None => file.path.clone(),
        Some(agent) => {
            let agents = context.agents(&file.path);
            let found = agents.into_iter().find(|found| found.id == *agent);
            found?.path
        }
    };
    Some((file, path))
}
