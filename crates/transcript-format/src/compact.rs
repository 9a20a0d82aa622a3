//! The metadata of compaction boundaries.

use crate::object::{Raw, Str};
use crate::view::view;

view! {
    /// The `compactMetadata` of a `compact_boundary`.
    CompactMetadata {
        /// what triggered it: `manual` or `auto`.
        trigger: Str<'a> = "trigger";
        /// the tokens of the context before.
        pre_tokens: u64 = "preTokens";
        /// the tokens of the context after.
        post_tokens: u64 = "postTokens";
        /// how long it took, in milliseconds.
        duration_ms: u64 = "durationMs";
        /// the tokens that all compactions of the session dropped so far.
        cumulative_dropped_tokens: u64 = "cumulativeDroppedTokens";
        /// the number of messages that a partial compaction summarized.
        messages_summarized: u64 = "messagesSummarized";
        /// the preserved entries, by the first and the last one; the only form in 2.1.90.
        preserved_segment: PreservedSegment<'a> = "preservedSegment";
        /// the preserved entries as a list; takes precedence over the segment (COMPACT-3).
        preserved_messages: PreservedMessages<'a> = "preservedMessages";
        /// the tools that were loaded before.
        pre_compact_discovered_tools: Vec<Str<'a>> = "preCompactDiscoveredTools";
        /// whether the organizations before the compaction are known from the start.
        pre_compact_organizations_cover_start: bool = "preCompactOrganizationsCoverStart";
        /// the prompt of the turn that an automatic compaction interrupted.
        running_turn_prompt: Raw<'a> = "runningTurnPrompt";
    }

    /// The entries preserved across a boundary, by the first and the last one.
    PreservedSegment {
        /// the first preserved entry.
        head_uuid: Str<'a> = "headUuid";
        /// the entry that the first one now follows: the summary or the boundary (COMPACT-4).
        anchor_uuid: Str<'a> = "anchorUuid";
        /// the last preserved entry.
        tail_uuid: Str<'a> = "tailUuid";
    }

    /// The entries preserved across a boundary, as a list.
    PreservedMessages {
        /// the entry that the first one now follows: the summary or the boundary (COMPACT-4).
        anchor_uuid: Str<'a> = "anchorUuid";
        /// the preserved entries in order.
        uuids: Vec<Str<'a>> = "uuids";
        /// the preserved entries and those that were filtered out or never written.
        all_uuids: Vec<Str<'a>> = "allUuids";
    }

    /// The `microcompactMetadata` of a `microcompact_boundary`: old tool results were cleared.
    MicrocompactMetadata {
        /// what triggered it: `auto`.
        trigger: Str<'a> = "trigger";
        /// the tokens of the context before.
        pre_tokens: u64 = "preTokens";
        /// the tokens that were saved.
        tokens_saved: u64 = "tokensSaved";
        /// the tool calls whose results were cleared.
        compacted_tool_ids: Vec<Str<'a>> = "compactedToolIds";
        /// the attachments that were cleared.
        cleared_attachment_uuids: Vec<Str<'a>> = "clearedAttachmentUUIDs";
    }

    /// The `snipMetadata` of a `snip_boundary`, which only 2.1.90 honours.
    SnipMetadata {
        /// the removed entries.
        removed_uuids: Vec<Str<'a>> = "removedUuids";
    }

    /// The `summarizeMetadata` of the summary after a partial compaction.
    SummarizeMetadata {
        /// the number of summarized messages.
        messages_summarized: u64 = "messagesSummarized";
        /// `up_to` the chosen message, or `from` it.
        direction: Str<'a> = "direction";
        /// what the person asked the summary to keep.
        user_context: Str<'a> = "userContext";
    }
}
