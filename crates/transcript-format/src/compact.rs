//! What a compaction leaves behind: the metadata of boundaries (corpus.md 4, rig.md 9).

use crate::object::{Raw, Str};
use crate::view::view;

view! {
    /// The `compactMetadata` of a `compact_boundary`.
    CompactMetadata {
        /// what started it: `manual` or `auto`.
        trigger: Str<'a> = "trigger";
        /// the tokens of the context before.
        pre_tokens: u64 = "preTokens";
        /// the tokens of the context after.
        post_tokens: u64 = "postTokens";
        /// how long it took, in milliseconds.
        duration_ms: u64 = "durationMs";
        /// the tokens that all compactions of the session dropped so far.
        cumulative_dropped_tokens: u64 = "cumulativeDroppedTokens";
        /// the messages that a partial compaction summed up.
        messages_summarized: u64 = "messagesSummarized";
        /// the entries kept word for word, by their ends; all that 2.1.90 knows.
        preserved_segment: PreservedSegment<'a> = "preservedSegment";
        /// the entries kept word for word, one by one; counts before the segment (rig.md 9).
        preserved_messages: PreservedMessages<'a> = "preservedMessages";
        /// the tools that were loaded before.
        pre_compact_discovered_tools: Vec<Str<'a>> = "preCompactDiscoveredTools";
        /// whether the organizations before the compaction are known from the start.
        pre_compact_organizations_cover_start: bool = "preCompactOrganizationsCoverStart";
        /// the prompt of the turn that an automatic compaction interrupted.
        running_turn_prompt: Raw<'a> = "runningTurnPrompt";
    }

    /// The entries kept across a boundary, by their ends.
    PreservedSegment {
        /// the first kept entry.
        head_uuid: Str<'a> = "headUuid";
        /// the entry that the first one follows from now on: the summary or the boundary.
        anchor_uuid: Str<'a> = "anchorUuid";
        /// the last kept entry.
        tail_uuid: Str<'a> = "tailUuid";
    }

    /// The entries kept across a boundary, one by one.
    PreservedMessages {
        /// the entry that the first one follows from now on: the summary or the boundary.
        anchor_uuid: Str<'a> = "anchorUuid";
        /// the kept entries in order.
        uuids: Vec<Str<'a>> = "uuids";
        /// the kept entries and those that were filtered out or never written.
        all_uuids: Vec<Str<'a>> = "allUuids";
    }

    /// The `microcompactMetadata` of a `microcompact_boundary`: old tool results were cleared.
    MicrocompactMetadata {
        /// what started it: `auto`.
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

    /// The `snipMetadata` of a `snip_boundary`, which 2.1.90 alone honours.
    SnipMetadata {
        /// the entries that no longer count.
        removed_uuids: Vec<Str<'a>> = "removedUuids";
    }

    /// The `summarizeMetadata` of the summary after a partial compaction.
    SummarizeMetadata {
        /// the messages that were summed up.
        messages_summarized: u64 = "messagesSummarized";
        /// `up_to` the chosen message or `from` it on.
        direction: Str<'a> = "direction";
        /// what the person asked the summary to keep.
        user_context: Str<'a> = "userContext";
    }
}
