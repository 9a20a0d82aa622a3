//! The session functions of the official SDKs, as operations.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use transcript_reader::SessionRow;

use crate::context::{Context, PolicyName};
use crate::failure::Failure;
use crate::sdk::{
    ListOptions, MessageError, MessageOptions, SdkMessage, SdkSessions, created_millis,
};
use crate::sink::{Result, Sink, Stop};

/// Which sessions are listed: options.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListArguments {
    limit: Option<i64>,
    #[serde(default)]
    offset: i64,
    include_worktrees: Option<bool>,
    include_programmatic: Option<bool>,
    directory: Option<PathBuf>,
    #[serde(default)]
    policy: PolicyName,
}

/// A session: options.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SdkArguments {
    session_id: String,
    directory: Option<PathBuf>,
    #[serde(default)]
    policy: PolicyName,
}

/// Which messages are read: options.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageArguments {
    session_id: String,
    agent_id: Option<String>,
    limit: Option<i64>,
    #[serde(default)]
    offset: i64,
    #[serde(default)]
    compacted: bool,
    #[serde(default)]
    include_system_messages: bool,
    directory: Option<PathBuf>,
    #[serde(default)]
    policy: PolicyName,
}

/// The new title of a session: options.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenameArguments {
    session_id: String,
    title: String,
    directory: Option<PathBuf>,
    #[serde(default)]
    policy: PolicyName,
}

/// The new tag of a session: options.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TagArguments {
    session_id: String,
    tag: Option<String>,
    directory: Option<PathBuf>,
    #[serde(default)]
    policy: PolicyName,
}

/// Whether a session is archived: options.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchivedArguments {
    session_id: String,
    archived: bool,
    directory: Option<PathBuf>,
    #[serde(default)]
    policy: PolicyName,
}

/// Which part of a session is copied: options.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForkArguments {
    session_id: String,
    up_to_message_id: Option<String>,
    title: Option<String>,
    directory: Option<PathBuf>,
    #[serde(default)]
    policy: PolicyName,
}

/// The copy of a session.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForkedSession<'a> {
    /// Its id.
    session_id: &'a str,
}

/// A session as the SDKs describe it. Times are in milliseconds since 1970.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionInfo<'a> {
    session_id: &'a str,
    summary: &'a str,
    last_modified: i64,
    file_size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom_title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    git_branch: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    archived: Option<bool>,
}

/// The sessions of the store, as the SDKs look for them.
struct Sdk<'a> {
    sessions: SdkSessions,
    directory: Option<&'a Path>,
}

impl<'a> Sdk<'a> {
    fn new(
        context: &Context,
        directory: Option<&'a PathBuf>,
        policy: PolicyName,
    ) -> std::result::Result<Self, Failure> {
        let sessions = SdkSessions::new(context.store()?.clone()).policy(policy.into());
        // The SDKs take an empty path for none.
        let directory = directory.filter(|directory| !directory.as_os_str().is_empty());
        Ok(Self {
            sessions,
            directory: directory.map(PathBuf::as_path),
        })
    }

    /// A session that names no folder is in the one that was asked for.
    fn in_directory(&self, mut row: SessionRow) -> SessionRow {
        let asked = || Some(self.directory?.to_string_lossy().into_owned());
        row.cwd = row.cwd.or_else(asked);
        row
    }
}

/// Returns a number that is not below 0; the SDKs take other numbers for 0.
fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

impl ListArguments {
    pub(crate) fn run(&self, context: &Context, sink: &mut dyn Sink) -> Result<()> {
        let sdk = Sdk::new(context, self.directory.as_ref(), self.policy)?;
        let options = ListOptions {
            directory: sdk.directory.map(ToOwned::to_owned),
            limit: self.limit.map(count),
            offset: count(self.offset),
            include_worktrees: self.include_worktrees.unwrap_or(true),
            include_programmatic: self.include_programmatic.unwrap_or(true),
        };
        let mut rows = sdk.sessions.list(&options)?.into_iter();
        rows.try_for_each(|row| sink.record(&SessionInfo::new(&sdk.in_directory(row))))
    }
}

impl SdkArguments {
    pub(crate) fn info(&self, context: &Context, sink: &mut dyn Sink) -> Result<()> {
        let sdk = self.sdk(context)?;
        let row = sdk.sessions.info(&self.session_id, sdk.directory)?;
        row.map_or(Ok(()), |row| {
            sink.record(&SessionInfo::new(&sdk.in_directory(row)))
        })
    }

    pub(crate) fn subagents(&self, context: &Context, sink: &mut dyn Sink) -> Result<()> {
        let sdk = self.sdk(context)?;
        let agents = sdk.sessions.subagents(&self.session_id, sdk.directory)?;
        agents.iter().try_for_each(|agent| sink.record(agent))
    }

    pub(crate) fn delete(&self, context: &Context) -> Result<()> {
        let sdk = self.sdk(context)?;
        Ok(sdk.sessions.delete(&self.session_id, sdk.directory)?)
    }

    fn sdk(&self, context: &Context) -> std::result::Result<Sdk<'_>, Failure> {
        Sdk::new(context, self.directory.as_ref(), self.policy)
    }
}

impl RenameArguments {
    pub(crate) fn run(&self, context: &Context) -> Result<()> {
        let sdk = Sdk::new(context, self.directory.as_ref(), self.policy)?;
        let (id, title) = (&self.session_id, &self.title);
        Ok(sdk.sessions.rename(id, title, sdk.directory)?)
    }
}

impl TagArguments {
    pub(crate) fn run(&self, context: &Context) -> Result<()> {
        let sdk = Sdk::new(context, self.directory.as_ref(), self.policy)?;
        let (id, tag) = (&self.session_id, self.tag.as_deref());
        Ok(sdk.sessions.tag(id, tag, sdk.directory)?)
    }
}

impl ArchivedArguments {
    pub(crate) fn run(&self, context: &Context) -> Result<()> {
        let sdk = Sdk::new(context, self.directory.as_ref(), self.policy)?;
        let (id, archived) = (&self.session_id, self.archived);
        Ok(sdk.sessions.set_archived(id, archived, sdk.directory)?)
    }
}

impl ForkArguments {
    pub(crate) fn run(&self, context: &Context, sink: &mut dyn Sink) -> Result<()> {
        let sdk = Sdk::new(context, self.directory.as_ref(), self.policy)?;
        let (last, title) = (self.up_to_message_id.as_deref(), self.title.as_deref());
        let id = &self.session_id;
        let id = sdk.sessions.fork(id, sdk.directory, last, title)?;
        sink.record(&ForkedSession { session_id: &id })
    }
}

impl MessageArguments {
    /// Writes the messages of the session.
    pub(crate) fn run(&self, context: &Context, sink: &mut dyn Sink) -> Result<()> {
        if self.agent_id.is_some() {
            return Err(Failure::options("there is no option `agentId`").into());
        }
        self.messages(context, sink, None)
    }

    /// Writes the messages of a subagent; without the id of one there are none.
    pub(crate) fn of_subagent(&self, context: &Context, sink: &mut dyn Sink) -> Result<()> {
        let agent = self.agent_id.as_deref();
        agent.map_or(Ok(()), |agent| self.messages(context, sink, Some(agent)))
    }

    fn messages(&self, context: &Context, sink: &mut dyn Sink, agent: Option<&str>) -> Result<()> {
        let Sdk {
            sessions,
            directory,
        } = Sdk::new(context, self.directory.as_ref(), self.policy)?;
        let options = MessageOptions {
            limit: self.limit.map(count),
            offset: count(self.offset),
            compacted: self.compacted,
            system: self.include_system_messages,
        };
        let mut each = |message: SdkMessage<'_>| sink.message(&message);
        let id = &*self.session_id;
        let read = match agent {
            None => sessions.messages(id, directory, &options, &mut each),
            Some(agent) => sessions.subagent_messages((id, agent), directory, &options, &mut each),
        };
        read.map_err(|error| match error {
            MessageError::Session(error) => Stop::from(error),
            MessageError::Stopped(stop) => stop,
        })
    }
}

impl<'a> SessionInfo<'a> {
    fn new(row: &'a SessionRow) -> Self {
        Self {
            session_id: &row.session_id,
            summary: row.summary.as_deref().unwrap_or_default(),
            last_modified: row.file_millis.unwrap_or_default(),
            file_size: row.bytes,
            custom_title: row.given_title(),
            first_prompt: row.first_prompt.as_deref(),
            git_branch: row.branch.as_deref(),
            cwd: row.cwd.as_deref(),
            tag: row.tag.as_deref(),
            created_at: created_millis(row),
            archived: row.archived,
        }
    }
}
