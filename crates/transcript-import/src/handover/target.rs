//! The clients that a conversation can be handed over to.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A client that a conversation can be handed over to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Target {
    /// Claude Code.
    ClaudeCode,
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
    /// Not a client, but a file for other programs: a trajectory in the Agent Trajectory Interchange Format, version 1.7.
    Atif,
    /// Not a client, but a file for other programs: the updates of a session in the Agent Client Protocol, version 1.
    Acp,
}

impl Target {
    /// All clients.
    pub const ALL: [Self; 6] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Pi,
        Self::Qwen,
        Self::Gemini,
        Self::Copilot,
    ];

    /// The forms of files for other programs.
    pub const FILES: [Self; 2] = [Self::Atif, Self::Acp];

    /// Returns the name that people give on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Pi => "pi",
            Self::Qwen => "qwen",
            Self::Gemini => "gemini",
            Self::Copilot => "copilot",
            Self::Atif => "atif",
            Self::Acp => "acp",
        }
    }

    /// Returns the folder of its sessions, from the home folder of the person; nothing for a file that has no place of its own.
    #[must_use]
    pub const fn home(self) -> &'static str {
        match self {
            Self::ClaudeCode => ".claude",
            Self::Codex => ".codex",
            Self::Pi => ".pi/agent",
            Self::Qwen => ".qwen",
            Self::Gemini => ".gemini",
            Self::Copilot => ".copilot",
            Self::Atif | Self::Acp => "",
        }
    }

    /// Returns the variable that names its home folder where that is not the usual one; `None` if it has no such variable.
    #[must_use]
    pub const fn home_variable(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode => Some("CLAUDE_CONFIG_DIR"),
            Self::Codex => Some("CODEX_HOME"),
            Self::Pi => Some("PI_CODING_AGENT_DIR"),
            Self::Qwen | Self::Gemini | Self::Copilot | Self::Atif | Self::Acp => None,
        }
    }

    /// Returns the words of the command that continues a session, in the working folder of the session; none for a file.
    #[must_use]
    pub fn command(self, session_id: &str) -> Vec<String> {
        let words = match self {
            Self::ClaudeCode => vec!["claude", "--resume", session_id],
            Self::Codex => vec!["codex", "resume", session_id],
            Self::Pi => vec!["pi", "--session", session_id],
            Self::Qwen => vec!["qwen", "--resume", session_id],
            Self::Gemini => vec!["gemini", "--resume", session_id],
            Self::Copilot => return vec!["copilot".to_owned(), format!("--resume={session_id}")],
            Self::Atif | Self::Acp => Vec::new(),
        };
        words.into_iter().map(str::to_owned).collect()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Pi => "Pi",
            Self::Qwen => "Qwen Code",
            Self::Gemini => "Gemini CLI",
            Self::Copilot => "Copilot CLI",
            Self::Atif => "ATIF",
            Self::Acp => "ACP",
        })
    }
}

/// The name is not that of a [`Target`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a client that a conversation can be handed over to")]
pub struct UnknownTarget;

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(name: &str) -> Result<Self, UnknownTarget> {
        let is_named = |target: &Self| target.name() == name;
        let mut all = Self::ALL.into_iter().chain(Self::FILES);
        all.find(is_named).ok_or(UnknownTarget)
    }
}
