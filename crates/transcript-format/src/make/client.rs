//! Constructors for actions of a person in a client other than a prompt: interrupts, rejections,
//! commands and their output.

use super::message::{ToolResult, meta, text_content, tool_result, user, user_message};
use super::{InvalidRegion, NewEntry};
use crate::context_refs::{self, Reference};
use crate::tags::{Output, Tag, Tagged};
use crate::texts::{
    CANCELLED, CAVEAT, INTERRUPTED, INTERRUPTED_FOR_TOOL_USE, RejectedBy, Rejection,
};

/// Creates the entry after the person stopped a turn; `for_tool_use` if they did so while a tool ran or
/// waited for permission. The results of the calls are entries before it.
pub fn interrupt(for_tool_use: bool) -> NewEntry {
    user_message(text_content(if for_tool_use {
        INTERRUPTED_FOR_TOOL_USE
    } else {
        INTERRUPTED
    }))
}

/// Creates the result of a call that was not permitted.
///
/// ```
/// use transcript_format::make;
/// use transcript_format::texts::{RejectedBy, Rejection};
///
/// let rejection = Rejection::new(RejectedBy::Person, Some("Use the branch."));
/// let entry = make::rejection("toolu_01", rejection);
/// # assert!(entry.text().contains(r#"the user said:\nUse the branch.","is_error":true}]"#));
/// ```
pub fn rejection(call: &str, rejection: Rejection<'_>) -> NewEntry {
    let text = rejection.to_string();
    let output = match rejection {
        Rejection {
            by: RejectedBy::Person,
            reason: None,
        } => "User rejected tool use".to_owned(),
        _ => format!("Error: {text}"),
    };
    failed(call, &text, &output)
}

/// Creates the result of a call that the person cancelled in a dialog that is not about a tool.
pub fn cancelled(call: &str) -> NewEntry {
    failed(call, CANCELLED, &format!("Error: {CANCELLED}"))
}

fn failed(call: &str, text: &str, output: &str) -> NewEntry {
    tool_result(ToolResult::text(call, text).failed()).with("toolUseResult", output)
}

/// Creates the note before a slash command that runs in the client. When a conversation ends with it,
/// the command and its output, it needs no answer (TURN-6).
pub fn command_caveat() -> NewEntry {
    meta(&Tag::LocalCommandCaveat.element(CAVEAT))
}

/// Creates a slash command that ran in the client, as user text; `name` with or without its slash.
/// [`local_command`](super::local_command) is the same as a system entry.
///
/// ```
/// use transcript_format::make;
///
/// let [caveat, command, output] = [
///     make::command_caveat(),
///     make::command("/cost", ""),
///     make::command_output("Total cost: $0.55", ""),
/// ];
/// # assert!(command.text().contains("<command-name>/cost</command-name>"));
/// # assert!(output.text().contains("<local-command-stdout>Total cost: $0.55</local-command-stdout>"));
/// ```
pub fn command(name: &str, arguments: &str) -> NewEntry {
    let name = name.strip_prefix('/').unwrap_or(name);
    tagged(&Tagged::Command {
        name: format!("/{name}").into(),
        arguments: arguments.into(),
    })
}

/// Creates the output of a slash command.
pub fn command_output(stdout: &str, stderr: &str) -> NewEntry {
    tagged(&Tagged::CommandOutput(Output {
        stdout: stdout.into(),
        stderr: stderr.into(),
    }))
}

/// Creates a command that the person ran in a shell, without the `!` before it.
pub fn shell(command: &str) -> NewEntry {
    tagged(&Tagged::Shell(command.into()))
}

/// Creates the output of a shell command.
pub fn shell_output(stdout: &str, stderr: &str) -> NewEntry {
    tagged(&Tagged::ShellOutput(Output {
        stdout: stdout.into(),
        stderr: stderr.into(),
    }))
}

/// Creates a note that the person added to the memory, without the `#` before it.
pub fn memory_note(note: &str) -> NewEntry {
    tagged(&Tagged::MemoryNote(note.into()))
}

fn tagged(text: &Tagged<'_>) -> NewEntry {
    user(&text.to_string())
}

/// Creates a prompt with references before its text.
///
/// # Errors
/// As [`context_refs::prompt`].
pub fn user_with_references(
    references: &[Reference<'_>],
    text: &str,
) -> Result<NewEntry, InvalidRegion> {
    Ok(user(&context_refs::prompt(references, text)?))
}
