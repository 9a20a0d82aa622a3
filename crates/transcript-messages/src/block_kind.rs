//! The kinds of blocks.

use transcript_format::object::{Object, Raw};

/// The kinds of blocks that the rules distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockKind {
    /// `text`
    Text,
    /// `image`
    Image,
    /// `document`
    Document,
    /// `tool_use`
    ToolUse,
    /// `tool_result`
    ToolResult,
    /// `server_tool_use` or `mcp_tool_use`
    ServerToolUse,
    /// `thinking` without a signature.
    Thinking,
    /// `thinking` with a signature, or `redacted_thinking`: only the model that made it accepts it.
    SealedThinking,
    /// Any other block.
    Other,
}

impl BlockKind {
    pub(crate) fn of(object: &Object<'_>) -> Self {
        match object.get("type").and_then(Raw::str).as_deref() {
            Some("text") => Self::Text,
            Some("image") => Self::Image,
            Some("document") => Self::Document,
            Some("tool_use") => Self::ToolUse,
            Some("tool_result") => Self::ToolResult,
            Some("server_tool_use" | "mcp_tool_use") => Self::ServerToolUse,
            Some("redacted_thinking") => Self::SealedThinking,
            Some("thinking") => match object.get("signature").and_then(Raw::str) {
                Some(signature) if !signature.is_empty() => Self::SealedThinking,
                _ => Self::Thinking,
            },
            _ => Self::Other,
        }
    }
}

/// Returns the kind of a value, [`BlockKind::Other`] when it is not a block.
#[must_use]
pub fn kind_of(raw: Raw<'_>) -> BlockKind {
    raw.object()
        .map_or(BlockKind::Other, |object| BlockKind::of(&object))
}
