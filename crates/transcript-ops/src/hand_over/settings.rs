//! The options of a hand-over.

use std::path::PathBuf;

use serde::Deserialize;
use transcript_redact::Redactor;

use crate::context::PolicyName;
use crate::conversation_end::ConversationEnd;

/// The names of the agents that a session can be handed over to.
pub const AGENTS: [&str; 6] = ["claude-code", "codex", "pi", "qwen", "gemini", "copilot"];

/// The names of the formats of files for other programs.
pub const FILE_FORMATS: [&str; 2] = ["atif", "acp"];

/// The session to hand over, and what becomes of it: options.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HandOverSettings {
    /// The session of any agent: a path, an id, the start of one, a title, the id of a subagent, or `latest`; or a file in ATIF or ACP.
    pub session: PathBuf,
    /// The agent that gets it, or the format of a file.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["claude-code", "codex", "pi", "qwen", "gemini", "copilot", "atif", "acp"])))]
    pub to: String,
    /// The rules that choose the conversation: with all that evidence gives back, or exactly as the agent does.
    #[serde(default)]
    pub policy: PolicyName,
    /// The last entry of the conversation, which may be on another branch: its uuid, the start of one, or its line.
    pub leaf: Option<String>,
    /// The entry of the conversation after which the rest is omitted.
    pub at: Option<String>,
    /// The title of the new session; that of the session by default.
    pub title: Option<String>,
    /// The working folder of the new session; that of the session by default, or else the present one.
    pub cwd: Option<PathBuf>,
    /// The home folder of the agent that gets it, such as `~/.codex`, which must exist; that of this user by default. A file in a format needs a
    /// folder.
    pub target_home: Option<PathBuf>,
    /// Whether the new session is written; else the record says what would be. No file is overwritten.
    #[serde(default)]
    pub write: bool,
    /// Whether what looks like a secret is replaced.
    #[serde(default)]
    pub redact: bool,
    /// The line of `SESSION:LINE`, as in [`ConversationEnd`].
    #[serde(skip)]
    pub line: Option<u64>,
    /// Replaces secrets, in place of that of [`Self::redact`].
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub redactor: Option<Redactor>,
    /// Whether the home folder is created if it does not exist.
    #[serde(skip)]
    pub creates_home: bool,
}

impl HandOverSettings {
    /// Returns the end of the conversation.
    #[must_use]
    pub fn end(&self) -> ConversationEnd {
        ConversationEnd {
            leaf: self.leaf.clone(),
            at: self.at.clone(),
            line: self.line,
        }
    }
}
