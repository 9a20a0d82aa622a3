//! Options that choose what a command shows: the same ones, with the same meaning, for every command.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use transcript_ops::selection::{EntryOptions, EntrySelection, RoleName};

/// Options of every command that shows sessions or entries.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Filter {
    /// Only entries (of `list`: sessions) with this text, ignoring case
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Only from TIME on: 2026-01-31, 2026-01-31T12:00:00Z, 2h, 3d, yesterday
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only up to TIME
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only sessions of the project at PATH, in any of its worktrees; or of the projects with this in their path
    #[arg(long, value_name = "PATH")]
    pub(crate) project: Option<PathBuf>,
    /// Only entries (of `list`: sessions) of this git branch
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,
    /// Also show subagents
    #[arg(long)]
    pub(crate) sidechains: bool,
    /// Only the last N
    #[arg(short = 'n', long = "limit", value_name = "N")]
    pub(crate) last: Option<usize>,
}

/// Options of commands that read entries.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct EntryFilter {
    /// Only entries with one of these roles
    #[arg(long, value_enum, value_name = "ROLE")]
    pub(crate) role: Vec<Role>,
    /// Only calls of one of these tools, and their results
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Vec<String>,
    #[command(flatten)]
    pub(crate) common: Filter,
}

/// The author of an entry.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Role {
    /// A person, or Claude Code in a person's place
    User,
    /// The agent: its text and its calls
    Assistant,
    /// Results of calls
    Tool,
    /// Claude Code: system entries and attachments
    System,
}

impl EntryFilter {
    /// Returns the options of operations.
    pub(crate) fn options(&self) -> EntryOptions {
        let common = self.common.clone();
        let role = self.role.iter().map(|role| match role {
            Role::User => RoleName::User,
            Role::Assistant => RoleName::Assistant,
            Role::Tool => RoleName::Tool,
            Role::System => RoleName::System,
        });
        EntryOptions {
            role: role.collect(),
            tool: self.tool.clone(),
            text: common.text,
            since: common.since,
            until: common.until,
            branch: common.branch,
            last: common.last,
        }
    }

    pub(crate) fn selection(&self) -> Result<EntrySelection> {
        Ok(self.options().selection()?)
    }
}
