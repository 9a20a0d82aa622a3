//! The session functions of the official SDKs, as operations.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use transcript_reader::SessionRow;
use transcript_session::Error;

use crate::context::{Context, FindError, PolicyName};
use crate::failure::Failure;
use crate::sdk::{
    ListOptions, MessageError, MessageOptions, SdkMessage, SdkSessions, created_millis,
};
use crate::sink::{Result, Sink, Stop};

/// The options for listing sessions.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListArguments {
    /// The maximum number of sessions; all by default.
    limit: Option<i64>,
    /// The number of sessions at the start to skip.
    #[serde(default)]
    offset: i64,
    /// Whether the other worktrees of the repository count as the project.
    #[serde(default = "yes")]
    include_worktrees: bool,
    /// Whether sessions that programs started through an SDK are included.
    #[serde(default = "yes")]
    include_programmatic: bool,
    /// The folder of a project; all projects by default.
    directory: Option<PathBuf>,
}

/// A session: options.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SdkArguments {
    /// The id of the session.
    session_id: String,
    /// The folder of a project; the sessions of its other worktrees are found, too. All projects by default.
    directory: Option<PathBuf>,
}

/// The options for reading messages.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageArguments {
    /// The id of the session.
    session_id: String,
    /// The maximum number of messages; all by default.
    limit: Option<i64>,
    /// The number of messages at the start to skip.
    #[serde(default)]
    offset: i64,
    /// Whether messages before the last compaction, which the model no longer sees, are included.
    #[serde(default)]
    compacted: bool,
    /// Whether system entries between the messages are included, such as the boundaries of compactions; they have no
    /// `message`.
    #[serde(default)]
    include_system_messages: bool,
    /// The folder of a project; the sessions of its other worktrees are found, too. All projects by default.
    directory: Option<PathBuf>,
    /// The rules that choose the conversation: with all that evidence gives back, or exactly as the client does.
    #[serde(default)]
    policy: PolicyName,
}

/// The options for reading messages of a subagent.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubagentMessageArguments {
    /// The id of the session.
    session_id: String,
    /// The id of the subagent; without one there are no messages.
    agent_id: Option<String>,
    /// The maximum number of messages; all by default.
    limit: Option<i64>,
    /// The number of messages at the start to skip.
    #[serde(default)]
    offset: i64,
    /// Has no effect: the option of `getSessionMessages`.
    #[serde(default)]
    compacted: bool,
    /// Whether system entries between the messages are included, such as the boundaries of compactions; they have no
    /// `message`.
    #[serde(default)]
    include_system_messages: bool,
    /// The folder of a project; the sessions of its other worktrees are found, too. All projects by default.
    directory: Option<PathBuf>,
    /// The rules that choose the conversation: with all that evidence gives back, or exactly as the client does.
    #[serde(default)]
    policy: PolicyName,
}

/// The new title of a session: options.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenameArguments {
    /// The id of the session.
    session_id: String,
    /// The title.
    title: String,
    /// The folder of a project; the sessions of its other worktrees are found, too. All projects by default.
    directory: Option<PathBuf>,
}

/// The new tag of a session: options.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TagArguments {
    /// The id of the session.
    session_id: String,
    /// The tag; without one it is cleared.
    tag: Option<String>,
    /// The folder of a project; the sessions of its other worktrees are found, too. All projects by default.
    directory: Option<PathBuf>,
}

/// Whether a session is archived: options.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchivedArguments {
    /// The id of the session.
    session_id: String,
    /// Whether it is archived.
    archived: bool,
    /// The folder of a project; the sessions of its other worktrees are found, too. All projects by default.
    directory: Option<PathBuf>,
}

/// The options of a fork: the part of the session to copy.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForkArguments {
    /// The id of the session.
    session_id: String,
    /// The last entry to copy; the leaf of the conversation by default.
    up_to_message_id: Option<String>,
    /// The title of the copy; that of the session with ` (fork)` by default.
    title: Option<String>,
    /// The folder of a project; the sessions of its other worktrees are found, too. All projects by default.
    directory: Option<PathBuf>,
    /// The rules that choose the conversation: with all that evidence gives back, or exactly as the client does.
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
    /// All roots.
    fn all(
        context: &Context,
        directory: Option<&'a PathBuf>,
    ) -> std::result::Result<Vec<Self>, Failure> {
        // The SDKs take an empty path for none.
        let directory = directory.filter(|directory| !directory.as_os_str().is_empty());
        let directory = directory.map(PathBuf::as_path);
        let roots = context.stores()?.map(|store| Self {
            sessions: SdkSessions::new(store.clone()),
            directory,
        });
        Ok(roots.collect())
    }

    /// The root that has the session; if none has it, the first one, which says so.
    fn with(
        id: &str,
        context: &Context,
        directory: Option<&'a PathBuf>,
    ) -> std::result::Result<Self, Failure> {
        let mut roots = Self::all(context, directory)?;
        if roots.len() > 1 {
            let found = roots.iter().map(|root| root.has(id));
            let found = found.collect::<std::result::Result<Vec<bool>, _>>()?;
            let mut with = (0..roots.len()).filter(|at| found[*at]);
            let at = with.next().unwrap_or_default();
            if with.next().is_some() {
                let names = context.roots().iter().zip(found).filter(|(_, has)| *has);
                let names = names.map(|(root, _)| root.name.to_string());
                return Err(FindError::InSeveralRoots {
                    id: id.to_owned(),
                    roots: names.collect(),
                    paths: Vec::new(),
                }
                .into());
            }
            roots.swap(0, at);
        }
        Ok(roots.swap_remove(0))
    }

    fn has(&self, id: &str) -> std::result::Result<bool, Error> {
        let has_file = self.sessions.find(id, self.directory)?.is_some();
        Ok(has_file || !self.sessions.subagents(id, self.directory)?.is_empty())
    }

    fn policy(mut self, policy: PolicyName) -> Self {
        self.sessions = self.sessions.policy(policy.into());
        self
    }

    /// A session that names no folder is in the one that was asked for.
    fn in_directory(&self, mut row: SessionRow) -> SessionRow {
        let asked = || Some(self.directory?.to_string_lossy().into_owned());
        row.cwd = row.cwd.or_else(asked);
        row
    }
}

fn yes() -> bool {
    true
}

/// Returns a number that is not below 0; the SDKs take other numbers for 0.
fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

impl ListArguments {
    pub(crate) fn run(&self, context: &Context, sink: &mut dyn Sink) -> Result<()> {
        let roots = Sdk::all(context, self.directory.as_ref())?;
        let mut options = ListOptions {
            directory: roots[0].directory.map(ToOwned::to_owned),
            limit: self.limit.map(count),
            offset: count(self.offset),
            include_worktrees: self.include_worktrees,
            include_programmatic: self.include_programmatic,
        };
        let (limit, offset) = (options.limit, options.offset);
        if roots.len() > 1 {
            // The part that is asked for is one of all roots.
            (options.limit, options.offset) = (None, 0);
        }
        let mut rows = Vec::new();
        for sdk in &roots {
            let of_root = sdk.sessions.list(&options)?.into_iter();
            rows.extend(of_root.map(|row| sdk.in_directory(row)));
        }
        if roots.len() > 1 {
            rows.sort_by_key(|row| std::cmp::Reverse(row.file_millis));
            rows.drain(..offset.min(rows.len()));
            // The SDKs take 0 for no limit.
            let limit = limit.filter(|limit| *limit > 0);
            rows.truncate(limit.unwrap_or(usize::MAX));
        }
        let mut rows = rows.iter();
        rows.try_for_each(|row| sink.record(&SessionInfo::new(row)))
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
        Sdk::with(&self.session_id, context, self.directory.as_ref())
    }
}

impl RenameArguments {
    pub(crate) fn run(&self, context: &Context) -> Result<()> {
        let sdk = Sdk::with(&self.session_id, context, self.directory.as_ref())?;
        let (id, title) = (&self.session_id, &self.title);
        Ok(sdk.sessions.rename(id, title, sdk.directory)?)
    }
}

impl TagArguments {
    pub(crate) fn run(&self, context: &Context) -> Result<()> {
        let sdk = Sdk::with(&self.session_id, context, self.directory.as_ref())?;
        let (id, tag) = (&self.session_id, self.tag.as_deref());
        Ok(sdk.sessions.tag(id, tag, sdk.directory)?)
    }
}

impl ArchivedArguments {
    pub(crate) fn run(&self, context: &Context) -> Result<()> {
        let sdk = Sdk::with(&self.session_id, context, self.directory.as_ref())?;
        let (id, archived) = (&self.session_id, self.archived);
        Ok(sdk.sessions.set_archived(id, archived, sdk.directory)?)
    }
}

impl ForkArguments {
    pub(crate) fn run(&self, context: &Context, sink: &mut dyn Sink) -> Result<()> {
        let sdk =
            Sdk::with(&self.session_id, context, self.directory.as_ref())?.policy(self.policy);
        let (last, title) = (self.up_to_message_id.as_deref(), self.title.as_deref());
        let id = &self.session_id;
        let id = sdk.sessions.fork(id, sdk.directory, last, title)?;
        sink.record(&ForkedSession { session_id: &id })
    }
}

impl MessageArguments {
    pub(crate) fn run(&self, context: &Context, sink: &mut dyn Sink) -> Result<()> {
        self.messages(context, sink, None)
    }

    fn messages(&self, context: &Context, sink: &mut dyn Sink, agent: Option<&str>) -> Result<()> {
        let Sdk {
            sessions,
            directory,
        } = Sdk::with(&self.session_id, context, self.directory.as_ref())?.policy(self.policy);
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

impl SubagentMessageArguments {
    pub(crate) fn run(&self, context: &Context, sink: &mut dyn Sink) -> Result<()> {
        let Some(agent) = self.agent_id.as_deref() else {
            return Ok(());
        };
        let of_session = MessageArguments {
            session_id: self.session_id.clone(),
            limit: self.limit,
            offset: self.offset,
            compacted: self.compacted,
            include_system_messages: self.include_system_messages,
            directory: self.directory.clone(),
            policy: self.policy,
        };
        of_session.messages(context, sink, Some(agent))
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
