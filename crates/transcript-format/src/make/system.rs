//! Constructors of `system` entries: notices of the client, by subtype.

use std::fmt;

use super::NewEntry;
use crate::json::{Json, ObjectBuf};
use crate::kind::{EntryKind, SystemKind};
use crate::object::Raw;

/// The severity of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Level {
    /// `info`
    Info,
    /// `notice`
    Notice,
    /// `suggestion`
    Suggestion,
    /// `warning`
    Warning,
    /// `error`
    Error,
}

impl From<Level> for Json {
    fn from(level: Level) -> Self {
        Self::from(match level {
            Level::Info => "info",
            Level::Notice => "notice",
            Level::Suggestion => "suggestion",
            Level::Warning => "warning",
            Level::Error => "error",
        })
    }
}

/// What triggered a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// `manual`: the person.
    Manual,
    /// `auto`: the client, because the context was full.
    Auto,
}

impl From<Trigger> for Json {
    fn from(trigger: Trigger) -> Self {
        Self::from(match trigger {
            Trigger::Manual => "manual",
            Trigger::Auto => "auto",
        })
    }
}

/// The details of a compaction: the `compactMetadata` of its boundary.
///
/// ```
/// use transcript_format::make::{Compaction, Trigger};
///
/// let compaction = Compaction::new(Trigger::Auto, 167_204)
///     .post_tokens(2_310)
///     .kept("summary", &["first", "last"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction(ObjectBuf);

impl Compaction {
    /// `pre_tokens`: the tokens of the context before.
    #[must_use]
    pub fn new(trigger: Trigger, pre_tokens: u64) -> Self {
        let metadata = ObjectBuf::new()
            .with("trigger", trigger)
            .with("preTokens", pre_tokens);
        Self(metadata)
    }

    /// Sets the tokens of the context after.
    #[must_use]
    pub fn post_tokens(self, tokens: u64) -> Self {
        self.with("postTokens", tokens)
    }

    /// Sets the duration, in milliseconds.
    #[must_use]
    pub fn duration_ms(self, milliseconds: u64) -> Self {
        self.with("durationMs", milliseconds)
    }

    /// Sets the tokens that all compactions of the session dropped so far.
    #[must_use]
    pub fn cumulative_dropped_tokens(self, tokens: u64) -> Self {
        self.with("cumulativeDroppedTokens", tokens)
    }

    /// Sets the entries that are preserved word for word, in order. They follow `anchor`, usually
    /// the summary. `preservedSegment`, the only form known to older clients, is derived from them.
    ///
    /// Without entries no field is written, because to clients an empty list differs from an absent
    /// one (COMPACT-6). Readers ignore the list when one of the entries is not in the file
    /// (COMPACT-5).
    #[must_use]
    pub fn kept<T: fmt::Display>(self, anchor: impl fmt::Display, entries: &[T]) -> Self {
        self.kept_of(anchor, entries, entries)
    }

    /// Like [`Self::kept`]; `all` also has the entries between them that are not sent.
    #[must_use]
    pub fn kept_of<T: fmt::Display>(
        self,
        anchor: impl fmt::Display,
        entries: &[T],
        all: &[T],
    ) -> Self {
        let (Some(head), Some(tail)) = (entries.first(), entries.last()) else {
            return self;
        };
        let anchor = Json::id(anchor);
        let segment = ObjectBuf::new()
            .with("headUuid", Json::id(head))
            .with("anchorUuid", anchor.clone())
            .with("tailUuid", Json::id(tail));
        let messages = ObjectBuf::new()
            .with("anchorUuid", anchor)
            .with("uuids", ids(entries))
            .with("allUuids", ids(all));
        self.with("preservedSegment", segment)
            .with("preservedMessages", messages)
    }

    /// Sets any other field.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<Json>) -> Self {
        self.0.set(key, value);
        self
    }
}

/// Creates the boundary of a compaction: a root of the chain, before the summary (COMPACT-1).
/// `logical_parent` is the leaf of the conversation before.
#[must_use]
pub fn compact_boundary(
    logical_parent: Option<impl fmt::Display>,
    compaction: Compaction,
) -> NewEntry {
    system(SystemKind::CompactBoundary)
        .parent(None::<&str>)
        .with_some("logicalParentUuid", logical_parent.map(Json::id))
        .with("content", "Conversation compacted")
        .with("isMeta", false)
        .with("level", Level::Info)
        .with("compactMetadata", compaction.0)
}

/// Creates the mark of a place where old results were cleared from the context: those of the calls
/// `tool_use_ids`, which saved `tokens_saved` of `pre_tokens`.
#[must_use]
pub fn microcompact_boundary(
    pre_tokens: u64,
    tokens_saved: u64,
    tool_use_ids: &[&str],
    attachments: &[&str],
) -> NewEntry {
    let metadata = ObjectBuf::new()
        .with("trigger", Trigger::Auto)
        .with("preTokens", pre_tokens)
        .with("tokensSaved", tokens_saved)
        .with("compactedToolIds", ids(tool_use_ids))
        .with("clearedAttachmentUUIDs", ids(attachments));
    system(SystemKind::MicrocompactBoundary)
        .with("content", "Context microcompacted")
        .with("isMeta", false)
        .with("level", Level::Info)
        .with("microcompactMetadata", metadata)
}

/// Creates a slash command that ran in the client, or its output, in the tags of the client. The
/// model sees it as user text (MSG-6).
#[must_use]
pub fn local_command(content: &str) -> NewEntry {
    system(SystemKind::LocalCommand)
        .with("content", content)
        .with("level", Level::Info)
        .with("isMeta", false)
}

/// Creates a notice for the person.
#[must_use]
pub fn informational(content: &str, level: Level) -> NewEntry {
    system(SystemKind::Informational)
        .with("content", content)
        .with("isMeta", false)
        .with("level", level)
}

/// Creates a notice that a request failed and is retried, as attempt `attempt` (from 1) of
/// `max_retries`, after `retry_in_ms` milliseconds. The form of `error` varies by version.
#[must_use]
pub fn api_error(error: Raw<'_>, retry_in_ms: f64, attempt: u64, max_retries: u64) -> NewEntry {
    system(SystemKind::ApiError)
        .with("level", Level::Error)
        .with("error", error)
        .with("retryInMs", retry_in_ms)
        .with("retryAttempt", attempt)
        .with("maxRetries", max_retries)
}

/// Creates the duration of a turn, in milliseconds, with the number of messages after it.
#[must_use]
pub fn turn_duration(duration_ms: u64, message_count: u64) -> NewEntry {
    system(SystemKind::TurnDuration)
        .with("durationMs", duration_ms)
        .with("messageCount", message_count)
        .with("isMeta", false)
}

/// The effects of the hooks at the end of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopHooks {
    hooks: Vec<Json>,
    errors: Vec<Json>,
    stopped: Option<Json>,
    has_output: bool,
}

impl StopHooks {
    /// Returns a summary without hooks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a hook that ran `command` for `duration_ms` milliseconds.
    #[must_use]
    pub fn ran(mut self, command: &str, duration_ms: u64) -> Self {
        let hook = ObjectBuf::new()
            .with("command", command)
            .with("durationMs", duration_ms);
        self.hooks.push(hook.into());
        self
    }

    /// Adds an error that a hook reported.
    #[must_use]
    pub fn failed(mut self, error: &str) -> Self {
        self.errors.push(error.into());
        self
    }

    /// Records that the hooks stopped the turn.
    #[must_use]
    pub fn stopped(mut self, reason: &str) -> Self {
        self.stopped = Some(reason.into());
        self
    }

    /// Records that the hooks wrote output.
    #[must_use]
    pub fn wrote(mut self) -> Self {
        self.has_output = true;
        self
    }
}

/// Creates the summary of the hooks at the end of a turn; `tool_use_id` is the id of their run.
#[must_use]
pub fn stop_hook_summary(hooks: StopHooks, tool_use_id: &str) -> NewEntry {
    system(SystemKind::StopHookSummary)
        .with("hookCount", hooks.hooks.len() as u64)
        .with("hookInfos", Json::array(hooks.hooks))
        .with("hookErrors", Json::array(hooks.errors))
        .with("preventedContinuation", hooks.stopped.is_some())
        .with("stopReason", hooks.stopped.unwrap_or_else(|| "".into()))
        .with("hasOutput", hooks.has_output)
        .with("level", Level::Suggestion)
        .with("toolUseID", tool_use_id)
}

/// Creates a `system` entry of any other subtype; [`NewEntry::with`] adds its fields.
#[must_use]
pub fn system(subtype: SystemKind) -> NewEntry {
    NewEntry::new(EntryKind::System).with("subtype", subtype.name())
}

fn ids<T: fmt::Display>(ids: &[T]) -> Json {
    Json::array(ids.iter().map(Json::id))
}
