//! Opens the files of subagents and writes their metadata.

use std::path::Path;

use transcript_format::json::ObjectBuf;
use transcript_format::lines::AGENT_META_CAP;

use crate::agent_id::AgentId;
use crate::chain::ResumePoint;
use crate::error::{Error, ErrorKind};
use crate::options::WriterOptions;
use crate::writer::Writer;

/// Metadata of an agent. Readers use the call that started it and its parent agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct AgentMeta(ObjectBuf);

impl AgentMeta {
    /// Creates the metadata of an agent of the type `agent_type`, started by the call
    /// `tool_use_id`.
    pub fn new(agent_type: &str, tool_use_id: &str) -> Self {
        let meta = ObjectBuf::new()
            .with("agentType", agent_type)
            .with("toolUseId", tool_use_id);
        Self(meta)
    }

    /// Sets the description of the agent's task.
    pub fn description(self, description: &str) -> Self {
        Self(self.0.with("description", description))
    }

    /// Sets the agent that started it, if the session itself did not.
    pub fn parent(self, agent: &AgentId) -> Self {
        Self(self.0.with("parentAgentId", agent.as_str()))
    }
}

impl WriterOptions {
    /// Opens the file of an agent of the session at `session`, and creates it if it is missing. It
    /// is a conversation of its own: its entries are marked as a sidechain of that agent and carry
    /// the id of the session.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_agent(
        &self,
        session: &Path,
        agent: &AgentId,
        known: ResumePoint,
    ) -> Result<Writer, Error> {
        let mut options = self.clone().create();
        let stem = session.file_stem().map(|stem| stem.to_string_lossy());
        options.session_id = options.session_id.or(stem.map(Into::into));
        options.agent = Some(agent.clone());
        options.open(&agent.path(session), known)
    }

    /// Writes the metadata of an agent and replaces the previous metadata: a crash leaves one or
    /// the other, complete. On return it survives a power cut. The file is accessible to its owner
    /// only.
    ///
    /// # Errors
    /// When it is longer than readers accept, 1 MiB, or the system fails; the previous metadata
    /// stays.
    pub fn write_agent_meta(
        &self,
        session: &Path,
        agent: &AgentId,
        meta: &AgentMeta,
    ) -> Result<(), Error> {
        let path = agent.meta_path(session);
        let new = path.with_extension(format!("json.{}.new", (self.ids)()));
        let text = meta.0.text();
        if text.len() > AGENT_META_CAP {
            return Err(Error::new(ErrorKind::InvalidEntry, &path));
        }
        let replaced = self.disk.replace(&path, &new, text.as_bytes());
        replaced.map_err(|error| Error::io(&path, error))
    }
}
