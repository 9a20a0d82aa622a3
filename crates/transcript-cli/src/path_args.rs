//! Options that choose a conversation of a session.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use transcript_engine::History;
use transcript_ops::ConversationEnd;
use transcript_ops::hand_over::HandOverSettings;
use transcript_resume::Policy;

use crate::ui::Ui;
use crate::{continuation, session};

/// Options that choose a path.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PathArgs {
    /// The rules that choose the conversation
    #[arg(long, value_enum, default_value_t = PolicyName::Recover)]
    policy: PolicyName,
    /// End the conversation at this entry, which may be on another branch: a line number, a uuid, or the
    /// start of one
    #[arg(long, value_name = "ENTRY", conflicts_with = "at")]
    leaf: Option<String>,
    /// Stop after this entry of the conversation
    #[arg(long, value_name = "ENTRY")]
    at: Option<String>,
    /// The line of `SESSION:LINE`: like `leaf`, but of a line that is not part of a conversation, such
    /// as a title, the last entry before it is taken.
    #[arg(skip)]
    line: Option<u64>,
}

/// The name of a policy.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum PolicyName {
    /// Recover what can be proved
    #[default]
    Recover,
    /// Do exactly what Claude Code does with the file
    Vendor,
}

impl From<PolicyName> for transcript_ops::PolicyName {
    fn from(name: PolicyName) -> Self {
        match name {
            PolicyName::Recover => Self::Recover,
            PolicyName::Vendor => Self::Vendor,
        }
    }
}

impl PolicyName {
    pub(crate) fn policy(self) -> Policy {
        transcript_ops::PolicyName::from(self).into()
    }
}

impl PathArgs {
    /// Takes the line from `SESSION:LINE`, unless an option names an entry.
    pub(crate) fn take_line(&mut self, session: &mut PathBuf) {
        if !self.names_an_entry()
            && let Some((path, line)) = session::with_line(session)
        {
            (*session, self.line) = (path, Some(line));
        }
    }

    pub(crate) fn policy(&self) -> Policy {
        self.policy.policy()
    }

    /// Returns whether `--leaf` or `--at` names an entry, which may be anywhere in the file.
    pub(crate) fn names_an_entry(&self) -> bool {
        self.leaf.is_some() || self.at.is_some() || self.line.is_some()
    }

    /// Returns the shell command that continues the conversation in the client, which only finds the
    /// sessions of the folder that it is started in. It continues a whole session: from an entry that is
    /// named, a fork. `None` for names that are not safe to paste into a shell,
    /// and `None` for files that no client finds: outside of the folder that is named after their working folder, or with
    /// another name than an id.
    pub(crate) fn continue_command(&self, ui: &Ui, session: &History) -> Option<String> {
        let word = |text: &str| continuation::shell_word(ui, text);
        let file = session.source().path();
        // No client finds the session of another agent.
        if file == Path::new("-") || session.index().is_imported() {
            return None;
        }
        let row = session.row();
        let line = self.line.map(|line| line.to_string());
        let Some(entry) = self.at.as_ref().or(self.leaf.as_ref()).or(line.as_ref()) else {
            return continuation::command(ui, &row);
        };
        let folder = word(row.home()?)?;
        let file = std::path::absolute(file).ok()?;
        let (file, entry) = (word(file.to_str()?)?, word(entry)?);
        let fork = format!("transcript fork {file} --at {entry}");
        Some(format!("cd {folder} && claude --resume \"$({fork})\""))
    }

    /// Chooses the same conversation for a hand-over.
    pub(crate) fn choose_for(&self, settings: &mut HandOverSettings) {
        settings.policy = self.policy.into();
        settings.leaf.clone_from(&self.leaf);
        settings.at.clone_from(&self.at);
        settings.line = self.line;
    }

    /// Returns the end of the conversation.
    pub(crate) fn end(&self) -> ConversationEnd {
        ConversationEnd {
            leaf: self.leaf.clone(),
            at: self.at.clone(),
            line: self.line,
        }
    }
}
