//! The fixed texts that clients write in place of a person or a model.
//!
//! A transcript contains them as user lines, tool results and answers, and most of them can only be
//! recognized by their text. They are never prompts of a person, and an export for training must
//! not mistake them for the output of a tool. They were observed in requests of the client and, for
//! the rejections, in real sessions.

/// Answer to a prompt that was never answered (TURN-5).
pub const NO_RESPONSE: &str = "No response requested.";

/// Result of a call that was running when the session ended (TURN-1).
pub const CALL_INTERRUPTED: &str = "[Tool call interrupted: the session ended before this call's \
                                    result was recorded, so its outcome is unknown. Check whether \
                                    it took effect before relying on it or running it again.]";

/// Result of a call whose input was cut with the stream of its reply
/// ([`cut_reply`](crate::cut_reply)). Not a text of the client.
pub const CALL_CUT: &str = "[Tool call not run: the reply was cut off before the input of this call \
                            was complete, and the input above is only the part that arrived. Make \
                            the call again if it is still needed.]";

/// Stands for the result of a call that is running while another request is made. Not a text of the
/// client.
pub const CALL_PENDING: &str = "[Tool call pending: its result has not been recorded yet, so its \
                                outcome is unknown. Check whether it took effect before relying on \
                                it or running it again.]";

/// Result of a call in the middle of a conversation whose own result is lost (TURN-2).
pub const RESULT_MISSING: &str = "[Tool result missing due to internal error]";

/// Placeholder before a history that starts with an answer. Not a text of the client.
pub const START_MISSING: &str = "[The start of this conversation is missing]";

/// Placeholder for the lost name of a called tool. Not a text of the client.
pub const UNKNOWN_TOOL: &str = "unknown_tool";

/// Placeholder for a first message whose results are all orphans (TURN-3).
pub const ORPHAN_REMOVED: &str = "[Orphaned tool result removed due to conversation resume]";

/// Placeholder for an answer whose only call repeats an earlier id (TURN-4).
pub const CALL_REPEATED: &str = "[Tool use interrupted]";

/// Placeholder for empty content (MSG-8, MSG-12).
pub const NO_CONTENT: &str = "(no content)";

/// Text after a result that refers to a tool (MSG-14).
pub const TOOL_LOADED: &str = "Tool loaded.";

/// Placeholder for a result whose references name only removed tools (MSG-14).
pub const TOOL_REFERENCES_REMOVED: &str = "[Tool references removed - tools no longer available]";

/// Placeholder for a result whose image or document the API rejected (ERR-4).
pub const MEDIA_REJECTED: &str = "(media removed — rejected by API)";

/// Start of the text that replaces an image or document that is too large to send.
pub const MEDIA_TOO_LARGE: &str = "[media left out: ";

/// Start of the text that replaces what was omitted to fit the context window.
pub const OMITTED: &str = "[omitted to fit the context window: ";

/// Texts that are compared as a whole.
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

/// Texts that may be followed by a reason or by feedback of the person.
const STARTS: &[&str] = &[
    "[Tool call interrupted: ",
    "[Tool call not run: ",
    "[Tool call pending: ",
    MEDIA_TOO_LARGE,
    OMITTED,
    // Rejected by the person: in the dialog, with Esc, or with Esc in a dialog without a tool.
    "The user doesn't want to proceed with this tool use. The tool use was rejected",
    "The user doesn't want to take this action right now.",
    // The same in a subagent, where no person can be asked.
    "Permission for this tool use was denied. The tool use was rejected",
    // Rejected by the classifier of the automatic mode.
    "Permission for this action was denied by the Claude Code auto mode classifier.",
    "Permission for this action has been denied.",
    // The client asks the model to continue.
    "Your response above was cut off mid-stream. Resume directly from where it stops",
    "Output token limit hit. ",
];

/// Returns whether `text` is one that clients write themselves: an interrupt, a cancelled call, a
/// rejection (by the person, in a subagent or by the classifier), or a placeholder for something
/// that is missing.
///
/// `text` is the whole text of a user line, a tool result or an answer. White space around it is
/// ignored.
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

/// Returns whether a text can be [synthetic](is_synthetic) whose JSON string starts with this byte
/// after the quote.
#[must_use]
pub fn may_start_with(first: u8) -> bool {
    // An escape, or a character that may be white space, can precede any text.
    let is_plain = first.is_ascii_graphic() && first != b'\\';
    let mut texts = WHOLE.iter().chain(STARTS);
    !is_plain || texts.any(|text| text.as_bytes().first() == Some(&first))
}

/// Returns whether the text of a tool result is synthetic because the real result is missing: the
/// tool may have run, but its output is unknown.
///
/// Rejections are not placeholders: the rejection is what really happened.
#[must_use]
pub fn is_placeholder_result(text: &str) -> bool {
    let text = text.trim();
    let whole = [RESULT_MISSING, NO_CONTENT, MEDIA_REJECTED];
    whole.contains(&text)
        || text.starts_with("[Tool call interrupted: ")
        || text.starts_with("[Tool call not run: ")
        || text.starts_with("[Tool call pending: ")
        || text.starts_with(MEDIA_TOO_LARGE)
        || text.starts_with(OMITTED)
}

/// How a call was denied, by the fixed start of its result; the first one that fits counts.
const DENIALS: [(&str, &str); 5] = [
    (
        "The user doesn't want to proceed with this tool use. The tool use was rejected",
        "user-rejected",
    ),
    (
        "The user doesn't want to take this action right now.",
        "user-rejected",
    ),
    (
        "Permission for this tool use was denied. The tool use was rejected",
        "subagent-denied",
    ),
    (
        "Permission for this action was denied by the Claude Code auto mode classifier.",
        "auto-mode-denied",
    ),
    ("Permission for this action has been denied.", "denied"),
];

/// What a client puts around the reason of a denial: before it and, if it is not the end of the text, after it.
const REASONS: [(&str, &str); 2] = [
    ("the user said:\n", "\n\nNote: The user's next message may"),
    ("Reason: ", ". If you have other tasks"),
];

/// Returns how the result of a tool says that its call was denied, and why: `user-rejected` (by the
/// person, as clients write it to `toolDenialKind`), `subagent-denied`, `auto-mode-denied` (by the
/// classifier) or `denied`. `None` for other results.
#[must_use]
pub fn denial(text: &str) -> Option<(&'static str, Option<&str>)> {
    let text = text.trim();
    let (start, kind) = DENIALS.iter().find(|(start, _)| text.starts_with(start))?;
    let rest = &text[start.len()..];
    let reason = REASONS.iter().find_map(|(before, after)| {
        let (_, reason) = rest.split_once(before)?;
        let reason = reason.split_once(after).map_or(reason, |(own, _)| own);
        Some(reason.trim()).filter(|reason| !reason.is_empty())
    });
    Some((kind, reason))
}
