//! The session that an address names.

use std::path::PathBuf;

use serde::Deserialize;
use transcript_ops::{Context, Selection};
use transcript_reader::SessionFile;

/// The names in the address of a session.
#[derive(Debug, Deserialize)]
pub(crate) struct SessionAddress {
    pub(crate) project: String,
    pub(crate) id: String,
    pub(crate) agent: Option<String>,
}

/// Finds the file that an address names, among those that are listed: no path is made of the address.
pub(crate) fn find(context: &Context, named: &SessionAddress) -> Option<(SessionFile, PathBuf)> {
    let mut files = context.files(&Selection::default()).ok()?;
    let is_asked = |file: &SessionFile| file.project == named.project && file.id == named.id;
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
