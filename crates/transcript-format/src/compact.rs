//! The metadata of compact boundaries (`compactMetadata`).

use crate::object::{Raw, Str};
use crate::schema::schema;

schema! {
    /// The `compactMetadata` of a `compact_boundary`.
    CompactMetadata {
        trigger: Str<'a> = "trigger", "what triggered it: `manual` or `auto`";
        pre_tokens: u64 = "preTokens", "the tokens of the context before";
        post_tokens: u64 = "postTokens", "the tokens of the context after";
        duration_ms: u64 = "durationMs", "how long it took, in milliseconds";
        cumulative_dropped_tokens: u64 = "cumulativeDroppedTokens", "the tokens that all compactions of the session dropped so far";
        preserved_segment: PreservedSegment<'a> = "preservedSegment", "the preserved entries, by the first and the last one; the only form in 2.1.90";
        preserved_messages: PreservedMessages<'a> = "preservedMessages", "the preserved entries as a list; takes precedence over the segment (COMPACT-3)";
        pre_compact_discovered_tools: Vec<Str<'a>> = "preCompactDiscoveredTools", "the tools that were loaded before";
        pre_compact_organizations_cover_start: bool = "preCompactOrganizationsCoverStart", "whether the organizations before the compaction are known from the start";
        running_turn_prompt: Raw<'a> = "runningTurnPrompt", "the prompt of the turn that an automatic compaction interrupted";
    }

    /// The entries preserved across a boundary, by the first and the last one.
    PreservedSegment {
        head_uuid: Str<'a> = "headUuid", "the first preserved entry";
        anchor_uuid: Str<'a> = "anchorUuid", "the entry that the first one now follows: the summary or the boundary (COMPACT-4)";
        tail_uuid: Str<'a> = "tailUuid", "the last preserved entry";
    }

    /// The entries preserved across a boundary, as a list.
    PreservedMessages {
        anchor_uuid: Str<'a> = "anchorUuid", "the entry that the first one now follows: the summary or the boundary (COMPACT-4)";
        uuids: Vec<Str<'a>> = "uuids", "the preserved entries in order";
        all_uuids: Vec<Str<'a>> = "allUuids", "the preserved entries and those that were filtered out or never written";
    }

    /// The `microcompactMetadata` of a `microcompact_boundary`: old tool results were cleared.
    MicrocompactMetadata {
        trigger: Str<'a> = "trigger", "what triggered it: `auto`";
        pre_tokens: u64 = "preTokens", "the tokens of the context before";
        tokens_saved: u64 = "tokensSaved", "the tokens that were saved";
        compacted_tool_ids: Vec<Str<'a>> = "compactedToolIds", "the tool calls whose results were cleared";
        cleared_attachment_uuids: Vec<Str<'a>> = "clearedAttachmentUUIDs", "the attachments that were cleared";
    }

    /// The `snipMetadata` of a `snip_boundary`, which only 2.1.90 honours.
    SnipMetadata { removed_uuids: Vec<Str<'a>> = "removedUuids", "the removed entries"; }
}
