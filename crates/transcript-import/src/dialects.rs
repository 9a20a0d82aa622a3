//! All dialects.

use std::path::Path;

use transcript_storage::ReadDisk;

use crate::codex::Codex;
use crate::copilot::Copilot;
use crate::dialect::Dialect;
use crate::gemini::Gemini;
use crate::pi::Pi;
use crate::qwen::Qwen;
use crate::source::Store;
use crate::{Agent, Error, lines};

/// Returns the dialect of an agent.
#[must_use]
pub fn dialect(agent: Agent) -> &'static dyn Dialect {
    match agent {
        Agent::Codex => &Codex,
        Agent::Pi => &Pi,
        Agent::Qwen => &Qwen,
        Agent::Gemini => &Gemini,
        Agent::Copilot => &Copilot,
    }
}

/// Returns the agent that wrote a file, by its first record; `None` when no agent that is known here did.
///
/// # Errors
/// [`Error::Io`] when the system fails.
pub fn agent_of_file(disk: &dyn ReadDisk, path: &Path) -> Result<Option<Agent>, Error> {
    let store = Store { disk, path };
    lines::first(store, path, |record| {
        let mut agents = Agent::ALL.into_iter();
        agents.find(|agent| dialect(*agent).begins_file(record))
    })
}
