//! The agents whose sessions are read.

use std::fmt;
use std::str::FromStr;

/// An agent whose sessions are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Agent {
    /// Codex.
    Codex,
    /// Pi.
    Pi,
    /// Qwen Code.
    Qwen,
    /// Gemini CLI.
    Gemini,
    /// Copilot CLI.
    Copilot,
    /// OpenCode.
    OpenCode,
    /// The desktop program of Claude.
    ClaudeDesktop,
}

impl Agent {
    /// All agents.
    pub const ALL: [Self; 7] = [
        Self::Codex,
        Self::Pi,
        Self::Qwen,
        Self::Gemini,
        Self::Copilot,
        Self::OpenCode,
        Self::ClaudeDesktop,
    ];

    /// Returns the name that people give on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Pi => "pi",
            Self::Qwen => "qwen",
            Self::Gemini => "gemini",
            Self::Copilot => "copilot",
            Self::OpenCode => "opencode",
            Self::ClaudeDesktop => "claude-desktop",
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Codex => "Codex",
            Self::Pi => "Pi",
            Self::Qwen => "Qwen Code",
            Self::Gemini => "Gemini CLI",
            Self::Copilot => "Copilot CLI",
            Self::OpenCode => "OpenCode",
            Self::ClaudeDesktop => "Claude Desktop",
        })
    }
}

/// The name is not that of an [`Agent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of an agent")]
pub struct UnknownAgent;

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(name: &str) -> Result<Self, UnknownAgent> {
        let is_named = |agent: &Self| agent.name() == name;
        Self::ALL.into_iter().find(is_named).ok_or(UnknownAgent)
    }
}
