//! Blocks and attachments in a line, for whoever shows them.

use transcript_format::content::{Block, Content};
use transcript_format::kind::AttachmentKind;
use transcript_format::object::{Object, Raw};
use transcript_reader::Said;
use transcript_resume::display::Drawn;

use crate::escape::without_colours;
use crate::story::{self, bytes};

/// A command as it was typed.
pub(crate) fn typed(said: &Said<'_>) -> Option<String> {
    match said {
        Said::Command { name, arguments } => Some(format!("{name} {arguments}").trim().to_owned()),
        Said::Shell(command) => Some(format!("! {command}")),
        _ => None,
    }
}

/// The input of a call.
pub(crate) fn input<'b>(block: &Block<'b>) -> Option<Raw<'b>> {
    match block {
        Block::ToolUse(call) => call.input(),
        other => other.raw().object()?.get("input"),
    }
}

/// What a result says, other blocks than text as their name in brackets.
pub(crate) fn result_text(drawn: &Drawn<'_>) -> String {
    let block = drawn.block();
    let content = match &block {
        Some(Block::ToolResult(result)) => result.content(),
        Some(other) => other
            .raw()
            .object()
            .and_then(|object| object.read("content")),
        None => None,
    };
    let text = content
        .map(|content| plain_text(&content))
        .unwrap_or_default();
    // The client wraps what it refuses by itself, for the model.
    let refusal = text.strip_prefix("<tool_use_error>");
    let refusal = refusal.and_then(|text| text.strip_suffix("</tool_use_error>"));
    without_colours(refusal.unwrap_or(&text)).into_owned()
}

/// The text of a message or a result; other blocks as a line in brackets.
pub(crate) fn plain_text(content: &Content<'_>) -> String {
    if let Some(text) = content.as_text() {
        return text.to_owned();
    }
    let blocks = content.blocks().iter().map(|block| match block {
        Block::Text(text) => text.text().unwrap_or_default().into_owned(),
        other => block_line(other),
    });
    blocks.collect::<Vec<_>>().join("\n")
}

/// `[image image/png, 1.2 KB]`: the type of a block, and the size of what it holds.
pub(crate) fn block_line(block: &Block<'_>) -> String {
    let name = block.name().unwrap_or_default();
    let source = match block {
        Block::Image(image) => image.source(),
        Block::Document(document) => document.source(),
        _ => None,
    };
    let Some(source) = source else {
        return format!("[{name}]");
    };
    let mut line = format!("[{name}");
    if let Some(kind) = source.media_type() {
        line.push_str(&format!(" {kind}"));
    }
    if let Some(data) = source.data() {
        let is_base64 = source.kind().as_deref() == Some("base64");
        // Four characters of base64 are three bytes; the padding is none.
        let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
        let len = if is_base64 {
            (data.len() / 4 * 3).saturating_sub(padding)
        } else {
            data.len()
        };
        line.push_str(&format!(", {}", bytes(len as u64)));
    } else if let Some(url) = source.url() {
        line.push_str(&format!(" {url}"));
    }
    line.push(']');
    line
}

/// What an attachment says happened; nothing for reminders.
pub(crate) fn attachment_line(
    kind: Option<AttachmentKind>,
    attachment: &Object<'_>,
    cwd: Option<&str>,
) -> Option<String> {
    let text = |name: &str| attachment.str(name).unwrap_or_default();
    let path = ["displayPath", "filename", "path"];
    let path = path.iter().find_map(|name| attachment.str(name));
    let path = path.unwrap_or_default();
    let path = story::from(cwd, &path);
    Some(match kind? {
        AttachmentKind::File | AttachmentKind::Directory | AttachmentKind::NestedMemory => {
            format!("attached {path}")
        }
        AttachmentKind::EditedTextFile | AttachmentKind::EditedImageFile => {
            format!("changed on disk: {path}")
        }
        AttachmentKind::HookBlockingError
        | AttachmentKind::HookNonBlockingError
        | AttachmentKind::HookCancelled
        | AttachmentKind::HookStoppedContinuation => {
            format!("hook {} failed or stopped the turn", text("hookName"))
        }
        AttachmentKind::HookSystemMessage => text("content").into_owned(),
        _ => return None,
    })
}
