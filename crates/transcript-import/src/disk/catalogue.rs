//! Which sessions a home folder has, and the path under which each is shown.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use transcript_format::names::{is_id, project_key};
use transcript_storage::SessionLayout;
use uuid::Uuid;

use super::head::Head;
use crate::dialect::Session;
use crate::source::Store;
use crate::{Agent, Error, dialect};

/// The project of sessions whose working folder is unknown.
const UNKNOWN_PROJECT: &str = "unknown";

/// A session, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// The id of the agent.
    pub(super) id: String,
    /// Its files.
    pub(super) files: Vec<PathBuf>,
    /// The id of the session that its lines name: of a subagent, that of the session which started it.
    pub(super) session_id: String,
    /// The id of the subagent that it is.
    pub(super) agent_id: Option<String>,
    /// Files of subagents that are shown as files of their own.
    pub(super) of_subagents: Vec<PathBuf>,
}

/// The sessions of a home folder, by their paths below it.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    pub(super) shown: BTreeMap<PathBuf, Shown>,
}

impl Catalogue {
    pub(super) fn read(store: Store<'_>, agent: Agent) -> Result<Self, Error> {
        let mut sessions: Vec<(Session, Head)> = Vec::new();
        let mut seen = HashSet::new();
        for session in dialect(agent).sessions(store)? {
            if seen.insert(session.id.clone()) {
                let head = Head::of(store, agent, &session)?;
                sessions.push((session, head));
            }
        }
        let by_id = sessions.iter().enumerate();
        let by_id: HashMap<&str, usize> = by_id.map(|(at, (own, _))| (&*own.id, at)).collect();
        let mut files_of_subagents: HashMap<usize, Vec<PathBuf>> = HashMap::new();
        let mut tops = Vec::with_capacity(sessions.len());
        for (at, (session, _)) in sessions.iter().enumerate() {
            let top = top_of(&sessions, &by_id, at);
            tops.push(top);
            if top != at {
                let files = files_of_subagents.entry(top).or_default();
                files.extend(session.files.iter().cloned());
            }
        }
        let mut shown = BTreeMap::new();
        for (at, (session, _)) in sessions.iter().enumerate() {
            let (top, head) = &sessions[tops[at]];
            let project = head.cwd.as_deref().map(project_key);
            let project = project.filter(|project| !project.is_empty());
            let project = PathBuf::from(project.as_deref().unwrap_or(UNKNOWN_PROJECT));
            let layout = SessionLayout::CLIENT;
            let session_id = file_id(&top.id);
            let own = layout.session_of(&project.join(&session_id));
            let agent_id = (tops[at] != at).then(|| file_id(&session.id));
            let path = match &agent_id {
                Some(agent) => {
                    layout.session_of(&layout.subagents(&own).join(format!("agent-{agent}")))
                }
                None => own,
            };
            let entry = Shown {
                id: session.id.clone(),
                files: session.files.clone(),
                session_id,
                agent_id,
                of_subagents: files_of_subagents.remove(&at).unwrap_or_default(),
            };
            shown.insert(path, entry);
        }
        Ok(Self { shown })
    }

    /// Returns the path of the session that a file belongs to.
    pub(super) fn path_of(&self, file: &Path) -> Option<&Path> {
        let mut shown = self.shown.iter();
        let found = shown.find(|(_, shown)| shown.files.iter().any(|own| own == file));
        found.map(|(path, _)| &**path)
    }
}

/// Returns the session that started a subagent, or the one that started that one; a session that is not a subagent itself.
fn top_of(sessions: &[(Session, Head)], by_id: &HashMap<&str, usize>, at: usize) -> usize {
    let mut top = at;
    let mut seen = HashSet::from([at]);
    while let Some(parent) = &sessions[top].1.subagent_of
        && let Some(&next) = by_id.get(&**parent)
        && seen.insert(next)
    {
        top = next;
    }
    top
}

/// Returns an id as the name of a file: itself, if it can be one.
fn file_id(id: &str) -> String {
    match is_id(id) {
        _ if id.starts_with("agent-") => {
            Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_bytes()).to_string()
        }
        is_name if is_name => id.to_owned(),
        _ => Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_bytes()).to_string(),
    }
}
