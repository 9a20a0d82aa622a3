//! All dialects.

use std::path::Path;

use transcript_format::object::Object;
use transcript_storage::ReadDisk;

use crate::codex::Codex;
use crate::copilot::Copilot;
use crate::desktop::ClaudeDesktop;
use crate::dialect::Dialect;
use crate::gemini::Gemini;
use crate::opencode::OpenCode;
use crate::pi::Pi;
use crate::qwen::Qwen;
use crate::source::{Store, name_of};
use crate::{Agent, Error, document, lines};

/// Returns the dialect of an agent.
#[must_use]
pub fn dialect(agent: Agent) -> &'static dyn Dialect {
    match agent {
        Agent::Codex => &Codex,
        Agent::Pi => &Pi,
        Agent::Qwen => &Qwen,
        Agent::Gemini => &Gemini,
        Agent::Copilot => &Copilot,
        Agent::OpenCode => &OpenCode,
        Agent::ClaudeDesktop => &ClaudeDesktop,
    }
}

/// Returns the agent that wrote a file, by its first record, or of a database by its name; `None` when no agent that is known
/// here did.
///
/// # Errors
/// [`Error::Io`] when the system fails.
pub fn agent_of_file(disk: &dyn ReadDisk, path: &Path) -> Result<Option<Agent>, Error> {
    const DATABASE_BEGIN: &[u8] = b"SQLite format 3\0";
    let store = Store { disk, path };
    let begin = disk
        .read(path, DATABASE_BEGIN.len())
        .map_err(Error::at(path))?;
    if begin == DATABASE_BEGIN {
        let is_of_opencode = name_of(path).starts_with("opencode");
        return Ok(is_of_opencode.then_some(Agent::OpenCode));
    }
    let agent_of = |record: &Object<'_>| {
        let mut agents = Agent::ALL.into_iter();
        agents.find(|agent| dialect(*agent).begins_file(record))
    };
    if name_of(path).ends_with(".json") {
        return document::begin(store, path, agent_of);
    }
    lines::first(store, path, agent_of)
}
