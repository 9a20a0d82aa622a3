//! The fixed texts that clients write in place of a person or a model: one table, by which they are
//! recognized and written.
//!
//! A transcript contains them as user lines, tool results and answers, and most of them can only be
//! recognized by their text. They are never prompts of a person, and an export for training must
//! not mistake them for the output of a tool. They were observed in requests of the client and, for
//! the rejections, in real sessions.
//!
//! [`make`](crate::make) has constructors of the lines with them, and [`tags`](crate::tags) the texts
//! in tags.

mod rejection;

pub use rejection::{RejectedBy, Rejection};

/// A row of the table.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// The whole text, or its start.
    text: &'static str,
    /// Whether something may follow `text`, such as a reason or the feedback of a person.
    is_start: bool,
    /// Whether it stands for a result of a tool that is missing.
    is_lost_result: bool,
}

/// Declares the table. A row has the name of a constant, how a text is compared with it (`whole` or by
/// its `start`; `lost` if it stands for a missing result), and the text. After a `+` follows what is
/// written behind the start, and not compared.
macro_rules! texts {
    ($($(#[doc = $doc:literal])+ $NAME:ident = $($how:ident)+, $text:literal $(+ $rest:literal)?;)+) => {
        $($(#[doc = $doc])+ pub const $NAME: &str = concat!($text $(, $rest)?);)+

        const TABLE: &[Row] = &[$(texts!(@row $($how)+, $text)),+];
    };
    (@row whole, $text:literal) => { Row { text: $text, is_start: false, is_lost_result: false } };
    (@row start, $text:literal) => { Row { text: $text, is_start: true, is_lost_result: false } };
    (@row lost whole, $text:literal) => { Row { text: $text, is_start: false, is_lost_result: true } };
    (@row lost start, $text:literal) => { Row { text: $text, is_start: true, is_lost_result: true } };
}

texts! {
    /// Answer to a prompt that was never answered (TURN-5).
    NO_RESPONSE = whole, "No response requested.";

    /// User text after the person stopped the turn.
    INTERRUPTED = whole, "[Request interrupted by user]";

    /// User text after the person stopped the turn while a tool ran or waited for permission.
    INTERRUPTED_FOR_TOOL_USE = whole, "[Request interrupted by user for tool use]";

    /// Result of a call that the person cancelled with Esc, in a dialog that is not about a tool.
    CANCELLED = start, "The user doesn't want to take this action right now.";

    /// Start of the result of a call that the person rejected ([`Rejection`]).
    REJECTED_BY_PERSON = start,
        "The user doesn't want to proceed with this tool use. The tool use was rejected";

    /// Start of the result of a rejected call in a subagent, where no person can be asked
    /// ([`Rejection`]).
    REJECTED_IN_SUBAGENT = start,
        "Permission for this tool use was denied. The tool use was rejected";

    /// Start of the result of a call that the classifier of the automatic mode rejected
    /// ([`Rejection`]).
    REJECTED_AUTOMATICALLY = start,
        "Permission for this action was denied by the Claude Code auto mode classifier.";

    /// Start of the same result in a shorter form, which is read and not written.
    REJECTED_AUTOMATICALLY_SHORT = start, "Permission for this action has been denied.";

    /// Result of a call that was running when the session ended (TURN-1).
    CALL_INTERRUPTED = lost start, "[Tool call interrupted: " + "the session ended before this call's \
        result was recorded, so its outcome is unknown. Check whether it took effect before relying \
        on it or running it again.]";

    /// Result of a call whose input was cut with the stream of its reply
    /// ([`cut_reply`](crate::cut_reply)). Not a text of the client.
    CALL_CUT = lost start, "[Tool call not run: " + "the reply was cut off before the input of this call \
        was complete, and the input above is only the part that arrived. Make the call again if it is \
        still needed.]";

    /// Stands for the result of a call that is running while another request is made. Not a text of
    /// the client.
    CALL_PENDING = lost start, "[Tool call pending: " + "its result has not been recorded yet, so its \
        outcome is unknown. Check whether it took effect before relying on it or running it again.]";

    /// Result of a call in the middle of a conversation whose own result is lost (TURN-2).
    RESULT_MISSING = lost whole, "[Tool result missing due to internal error]";

    /// Placeholder before a history that starts with an answer. Not a text of the client.
    START_MISSING = whole, "[The start of this conversation is missing]";

    /// Placeholder for a first message whose results are all orphans (TURN-3).
    ORPHAN_REMOVED = whole, "[Orphaned tool result removed due to conversation resume]";

    /// Placeholder for an answer whose only call repeats an earlier id (TURN-4).
    CALL_REPEATED = whole, "[Tool use interrupted]";

    /// Placeholder for empty content (MSG-8, MSG-12). The API rejects empty text blocks.
    NO_CONTENT = lost whole, "(no content)";

    /// Text after a result that refers to a tool (MSG-14).
    TOOL_LOADED = whole, "Tool loaded.";

    /// Placeholder for a result whose references name only removed tools (MSG-14).
    TOOL_REFERENCES_REMOVED = whole,
        "[Tool references removed - tools no longer available]";

    /// Placeholder for a result whose image or document the API rejected (ERR-4).
    MEDIA_REJECTED = lost whole, "(media removed — rejected by API)";

    /// Start of the text that replaces an image or document that is too large to send.
    MEDIA_TOO_LARGE = lost start, "[media left out: ";

    /// Start of the text that replaces content that was omitted to fit the context window. Not a text of the client.
    OMITTED = lost start, "[omitted to fit the context window: ";

    /// Start of the text in place of the result of a tool that the API ran itself, for a provider that does not run it. Not
    /// a text of the client.
    API_TOOL_RESULT = start, "[result of a tool that the API ran: ";

    /// Text beside a document, for a provider that wants one. Not a text of the client.
    DOCUMENT = whole, "(a document without a text)";

    /// Asks the model to continue a turn that ended before it was done.
    CONTINUE = whole, "Continue from where you left off.";

    /// Asks the model to continue after an answer that shows nothing.
    NO_VISIBLE_OUTPUT = whole, "[Your previous response had no visible output. Please continue and \
        produce a user-visible response.]";

    /// Start of the text that asks the model to continue an answer whose stream broke.
    ANSWER_CUT = start,
        "Your response above was cut off mid-stream. Resume directly from where it stops";

    /// Start of the text that asks the model to continue an answer that reached the limit of tokens.
    OUTPUT_LIMIT_HIT = start, "Output token limit hit. ";
}

/// Content of the note before a command that ran in the client, which is recognized by its
/// [tag](crate::tags::Tag::LocalCommandCaveat).
pub const CAVEAT: &str = "The command below was run directly in Claude Code, not sent to you as a \
                          request, and its output goes straight to the user. It's recorded here as \
                          context for later messages.";

/// Placeholder for the lost name of a called tool. Not a text of the client.
pub const UNKNOWN_TOOL: &str = "unknown_tool";

impl Row {
    fn matches(&self, text: &str) -> bool {
        if self.is_start {
            text.starts_with(self.text)
        } else {
            text == self.text
        }
    }
}

/// Returns whether the person stopped the turn with this user text: one of [`INTERRUPTED`] and
/// [`INTERRUPTED_FOR_TOOL_USE`], or another that starts as both do.
#[must_use]
pub fn is_interrupt(text: &str) -> bool {
    text.trim_start()
        .starts_with("[Request interrupted by user")
}

/// Returns how the result of a tool says that its call was denied, and why: `user-rejected` (by the
/// person, as clients write it to `toolDenialKind`), `subagent-denied`, `auto-mode-denied` (by the
/// classifier) or `denied`. `None` for other results.
#[must_use]
pub fn denial(text: &str) -> Option<(&'static str, Option<&str>)> {
    /// The start of the note that newer clients append to the feedback of a person.
    const NOTE: &str = "\n\nNote: The user's next message may";
    let text = text.trim();
    let dialog = TABLE.iter().find(|row| CANCELLED.starts_with(row.text));
    if dialog.is_some_and(|row| row.matches(text)) {
        return Some(("user-rejected", None));
    }
    let rejection = Rejection::read(text)?;
    let kind = match rejection.by {
        RejectedBy::Person => "user-rejected",
        RejectedBy::Subagent => "subagent-denied",
        RejectedBy::Automatic if text.starts_with(REJECTED_AUTOMATICALLY_SHORT) => "denied",
        RejectedBy::Automatic => "auto-mode-denied",
    };
    let reason = rejection.reason.map(|reason| {
        let end = reason.find(NOTE).unwrap_or(reason.len());
        reason[..end].trim()
    });
    Some((kind, reason.filter(|reason| !reason.is_empty())))
}

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
    TABLE.iter().any(|row| row.matches(text))
}

/// Returns whether a text can be [synthetic](is_synthetic) whose JSON string starts with this byte
/// after the quote.
#[must_use]
pub fn may_start_with(first: u8) -> bool {
    // An escape, or a character that may be white space, can precede any text.
    let is_plain = first.is_ascii_graphic() && first != b'\\';
    let mut rows = TABLE.iter();
    !is_plain || rows.any(|row| row.text.as_bytes().first() == Some(&first))
}

/// Returns whether the text of a tool result is synthetic because the real result is missing: the
/// tool may have run, but its output is unknown.
///
/// Rejections are not placeholders: the rejection is what really happened.
#[must_use]
pub fn is_placeholder_result(text: &str) -> bool {
    let text = text.trim();
    let mut rows = TABLE.iter().filter(|row| row.is_lost_result);
    rows.any(|row| row.matches(text))
}
