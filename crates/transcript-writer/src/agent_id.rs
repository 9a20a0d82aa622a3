//! The id of a subagent, and the paths of its files: `SESSION/subagents/agent-ID.jsonl`, and the
//! metadata next to it (see `docs/format.md`, "Files").

use std::fmt;
use std::path::{Path, PathBuf};

use transcript_format::names::is_id;
use transcript_storage::SessionLayout;

/// The id of a subagent. It is safe as part of a file name: letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AgentId(Box<str>);

/// The reason why a text is not a valid agent id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the id of an agent is 1 to 128 letters, digits, `-` and `_`")]
pub struct InvalidAgentId;

impl AgentId {
    /// Parses an id.
    ///
    /// # Errors
    /// When it is empty, too long, has another character, or is a device name.
    pub fn new(id: &str) -> Result<Self, InvalidAgentId> {
        if !is_id(id) {
            return Err(InvalidAgentId);
        }
        Ok(Self(id.into()))
    }

    /// Returns the id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path of the agent's file in the session at `session`.
    #[must_use]
    pub fn path(&self, session: &Path) -> PathBuf {
        self.sibling(session, "jsonl")
    }

    /// Returns the path of the agent's metadata file.
    #[must_use]
    pub fn meta_path(&self, session: &Path) -> PathBuf {
        self.sibling(session, "meta.json")
    }

    fn sibling(&self, session: &Path, ending: &str) -> PathBuf {
        let folder = SessionLayout::CLIENT.subagents(session);
        folder.join(format!("agent-{}.{ending}", self.0))
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
