//! The fixed texts that clients write in place of a person or a model.
//!
//! A transcript holds them as user lines, tool results and answers, and nothing else marks most of
//! them. No prompt is ever one of them, and an export for training must not take one for what a
//! tool said. Sources: `facts/rig.md` 7 and 8, and the rejections as they stand in real sessions.

/// Answer that stands for a turn that was never answered.
pub const NO_RESPONSE: &str = "No response requested.";

/// Result of a call that was running when the session ended.
pub const CALL_INTERRUPTED: &str = "[Tool call interrupted: the session ended before this call's \
                                    result was recorded, so its outcome is unknown. Check whether \
                                    it took effect before relying on it or running it again.]";

/// Result of a call in the middle of a conversation whose own result is lost.
pub const RESULT_MISSING: &str = "[Tool result missing due to internal error]";

/// What stands before a history that starts with an answer. Not a text of the client.
pub const START_MISSING: &str = "[The start of this conversation is missing]";

/// Name of a called tool whose name is lost. Not a text of the client.
pub const UNKNOWN_TOOL: &str = "unknown_tool";

/// What is left of a first message of which all results are orphans.
pub const ORPHAN_REMOVED: &str = "[Orphaned tool result removed due to conversation resume]";

/// What is left of an answer whose only call has an id that was used before.
pub const CALL_REPEATED: &str = "[Tool use interrupted]";

/// What stands in a message without content.
pub const NO_CONTENT: &str = "(no content)";

/// What comes after a result that refers to a tool.
pub const TOOL_LOADED: &str = "Tool loaded.";

/// What is left of a result of references to tools that are gone.
pub const TOOL_REFERENCES_REMOVED: &str = "[Tool references removed - tools no longer available]";

/// What is left of a result whose image or document was refused by the API.
pub const MEDIA_REJECTED: &str = "(media removed — rejected by API)";

/// Start of the text that replaces an image or document that is too large to be sent.
pub const MEDIA_TOO_LARGE: &str = "[media left out: ";

/// Texts that are written whole.
const WHOLE: &[&str] = &[
    NO_RESPONSE,
    RESULT_MISSING,
    START_MISSING,
    ORPHAN_REMOVED,
    CALL_REPEATED,
    NO_CONTENT,
    TOOL_LOADED,
    TOOL_REFERENCES_REMOVED,
    MEDIA_REJECTED,
    "[Request interrupted by user]",
    "[Request interrupted by user for tool use]",
    "Continue from where you left off.",
    "[Your previous response had no visible output. Please continue and produce a user-visible \
     response.]",
];

/// Texts that something may follow: a reason, or what the person wrote.
const STARTS: &[&str] = &[
    "[Tool call interrupted: ",
    MEDIA_TOO_LARGE,
    // A person said no: in the dialog, by Esc, or by Esc in a dialog without a tool.
    "The user doesn't want to proceed with this tool use. The tool use was rejected",
    "The user doesn't want to take this action right now.",
    // The same for a subagent, which nobody can ask.
    "Permission for this tool use was denied. The tool use was rejected",
    // The classifier of the automatic mode said no.
    "Permission for this action was denied by the Claude Code auto mode classifier.",
    "Permission for this action has been denied.",
    // The client asks the model to go on (rig 8).
    "Your response above was cut off mid-stream. Resume directly from where it stops",
    "Output token limit hit. ",
];

/// Returns whether `text` is one that a client writes by itself: an interrupt, a cancelled call, a
/// rejection by the person, for a subagent or by the classifier, or a placeholder for something
/// that is missing.
///
/// `text` is the whole text of a user line, a tool result or an answer. White space around it does
/// not count.
///
/// ```
/// use transcript_format::texts::is_synthetic;
///
/// assert!(is_synthetic("[Request interrupted by user]"));
/// assert!(!is_synthetic("What does [Request interrupted by user] mean?"));
/// ```
#[must_use]
pub fn is_synthetic(text: &str) -> bool {
    let text = text.trim();
    WHOLE.contains(&text) || STARTS.iter().any(|start| text.starts_with(start))
}

/// Returns whether the text of a tool result was made up because the real result is missing: the
/// tool may have run, what it said is not known.
///
/// Rejections are no placeholders: that a person said no is what happened.
#[must_use]
pub fn is_placeholder_result(text: &str) -> bool {
    let text = text.trim();
    let whole = [RESULT_MISSING, NO_CONTENT, MEDIA_REJECTED];
    whole.contains(&text)
        || text.starts_with("[Tool call interrupted: ")
        || text.starts_with(MEDIA_TOO_LARGE)
}
