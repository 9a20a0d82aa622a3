//! Constructors of `system` entries: notices of the client, by subtype.

use std::fmt;

use super::NewEntry;
use crate::json::{Json, ObjectBuf};
use crate::kind::{EntryKind, SystemKind};
use crate::named;

named! {
    /// The severity of a notice.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Level {
        /// `info`
        Info = "info",
        /// `notice`
        Notice = "notice",
        /// `suggestion`
        Suggestion = "suggestion",
        /// `warning`
        Warning = "warning",
        /// `error`
        Error = "error",
    }
}

impl From<Level> for Json {
    fn from(level: Level) -> Self {
        level.name().into()
    }
}

named! {
    /// The trigger of a compaction.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Trigger {
        /// `manual`: the person.
        Manual = "manual",
        /// `auto`: the client, because the context was full.
        Auto = "auto",
    }
}

impl From<Trigger> for Json {
    fn from(trigger: Trigger) -> Self {
        trigger.name().into()
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
#[must_use]
pub struct Compaction(ObjectBuf);

impl Compaction {
    /// `pre_tokens`: the tokens of the context before.
    pub fn new(trigger: Trigger, pre_tokens: u64) -> Self {
        let metadata = ObjectBuf::new()
            .with("trigger", trigger)
            .with("preTokens", pre_tokens);
        Self(metadata)
    }

    /// A compaction of which neither the trigger nor the tokens are known, as in sessions of other agents: a made figure would be shown as a fact.
    pub fn unknown() -> Self {
        Self(ObjectBuf::new())
    }

    /// Sets the tokens of the context after.
    pub fn post_tokens(self, tokens: u64) -> Self {
        self.with("postTokens", tokens)
    }

    /// Sets the duration, in milliseconds.
    pub fn duration_ms(self, milliseconds: u64) -> Self {
        self.with("durationMs", milliseconds)
    }

    /// Sets the tokens that all compactions of the session dropped so far.
    pub fn cumulative_dropped_tokens(self, tokens: u64) -> Self {
        self.with("cumulativeDroppedTokens", tokens)
    }

    /// Sets the entries that are preserved word for word, in order. They follow `anchor`, usually
    /// the summary. `preservedSegment`, the only form known to older clients, is derived from them.
    ///
    /// Without entries no field is written, because to clients an empty list differs from an absent
    /// one (COMPACT-6). Readers ignore the list when one of the entries is not in the file
    /// (COMPACT-5).
    pub fn kept<T: fmt::Display>(self, anchor: impl fmt::Display, entries: &[T]) -> Self {
        self.kept_of(anchor, entries, entries)
    }

    /// Like [`Self::kept`]; `all` also has the entries between them that are not sent.
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
    pub fn with(mut self, key: &'static str, value: impl Into<Json>) -> Self {
        self.0.set(key, value);
        self
    }
}

/// Creates the boundary of a compaction: a root of the chain, before the summary (COMPACT-1).
/// `logical_parent` is the leaf of the conversation before.
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

/// Creates a slash command that ran in the client, or its output, in the tags of the client. The
/// model sees it as user text (MSG-6).
pub fn local_command(content: &str) -> NewEntry {
    system(SystemKind::LocalCommand)
        .with("content", content)
        .with("level", Level::Info)
        .with("isMeta", false)
}

/// Creates a notice for the person.
pub fn informational(content: &str, level: Level) -> NewEntry {
    system(SystemKind::Informational)
        .with("content", content)
        .with("isMeta", false)
        .with("level", level)
}

/// Creates the duration of a turn, in milliseconds, with the number of messages after it.
pub fn turn_duration(duration_ms: u64, message_count: u64) -> NewEntry {
    system(SystemKind::TurnDuration)
        .with("durationMs", duration_ms)
        .with("messageCount", message_count)
        .with("isMeta", false)
}

/// Creates a `system` entry of any other subtype; [`NewEntry::with`] adds its fields.
pub fn system(subtype: SystemKind) -> NewEntry {
    NewEntry::new(EntryKind::System).with("subtype", subtype.name())
}

fn ids<T: fmt::Display>(ids: &[T]) -> Json {
    Json::array(ids.iter().map(Json::id))
}
