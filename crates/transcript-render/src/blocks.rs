//! Blocks and attachments as one line of text.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use transcript_format::block_text::block_text;
use transcript_format::content::Block;
use transcript_format::entry::Entry;
use transcript_format::kind::AttachmentKind;
use transcript_format::object::{FromRaw, JsonKind, Object, Raw};
use transcript_format::units;
use transcript_reader::{SessionLayout, Source};
use transcript_resume::items::LoadedItem;

use crate::escape::Escaping;
use crate::tools;

/// Returns the input of a call.
pub(crate) fn input<'b>(block: &Block<'b>) -> Option<Raw<'b>> {
    match block {
        Block::ToolUse(call) => call.input(),
        other => other.raw().object()?.get("input"),
    }
}

/// Returns the text of a result. One that the client stored in a file beside the session is read
/// from `stored_in`, the file of the session; without it, and where the file is missing, it is the
/// preview in the line.
pub(crate) fn result_text<'b>(
    loaded: &LoadedItem<'b>,
    escaping: Escaping,
    stored_in: Option<&Source>,
) -> Cow<'b, str> {
    let content = loaded.object().and_then(|block| block.field("content"));
    let text = content.map_or(Cow::Borrowed(""), |content| {
        content.str().unwrap_or_else(|| plain_text(content).into())
    });
    let stored = stored_in.and_then(|source| stored_text(source, &text, loaded));
    let text = stored.map_or(text, Cow::Owned);
    // The client wraps its own refusals in a tag for the model.
    let refusal = text.strip_prefix("<tool_use_error>");
    let refusal = refusal.and_then(|text| text.strip_suffix("</tool_use_error>"));
    match (escaping.without_colours(refusal.unwrap_or(&text)), refusal) {
        (Cow::Borrowed(_), None) => text,
        (shown, _) => Cow::Owned(shown.into_owned()),
    }
}

/// Returns the text of a result that is too large for its line, and that the client stored in a file
/// beside the session, or beside the one that the entry was copied from. The line names a path on the machine of the client:
/// only its last part counts.
fn stored_text(source: &Source, preview: &str, loaded: &LoadedItem<'_>) -> Option<String> {
    const START: &str = "<persisted-output>";
    const FOLDER: &str = SessionLayout::CLIENT.results;
    const MAX_LEN: usize = 64 << 20;
    let rest = preview.trim_start().strip_prefix(START)?;
    let line = rest.lines().find(|line| line.contains(FOLDER))?;
    let (_, path) = line.rsplit_once(FOLDER)?;
    let name = path.trim_start_matches(['/', '\\']).trim_end();
    let own = Some(name)
        .filter(|name| is_name(name))
        .map(|_| folder_of_session(source.disk().layout(), source.path()))?;
    let disk = source.disk();
    let read = |session: &Path| {
        let path = session.join(FOLDER).join(name);
        // A link may lead out of the folder. Of a file that is larger the preview is shown, which names it.
        let found = disk.link_metadata(&path).ok()?;
        let is_read = found.is_file() && found.len <= MAX_LEN as u64;
        is_read.then(|| disk.read(&path, MAX_LEN).ok())?
    };
    let bytes = read(&own).or_else(|| read(&folder_of_origin(&own, loaded)?))?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the folder of the session that an entry was copied from, in the project of `own`, the folder of its session.
fn folder_of_origin(own: &Path, loaded: &LoadedItem<'_>) -> Option<PathBuf> {
    let entry = loaded.entry()?;
    let origin = entry.object().object("forkedFrom")?;
    let session = origin.str("sessionId").filter(|id| is_name(id))?;
    Some(own.parent()?.join(&*session))
}

/// Returns whether a text names a file or a folder, and nothing outside of the folder that it is in.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(['/', '\\', ':']) && text != ".." && text != "."
}

/// Returns the folder beside the session that a file belongs to: the file of a subagent is in a folder of that.
fn folder_of_session(layout: SessionLayout, path: &Path) -> PathBuf {
    let around = layout.folder_around(path).map(Path::to_owned);
    around.unwrap_or_else(|| layout.folder(path))
}

/// Returns the text of a message or a result; blocks without a text are a line in brackets.
pub fn plain_text(content: Raw<'_>) -> String {
    if let Some(text) = content.str() {
        return text.into_owned();
    }
    let mut text = String::new();
    for (at, raw) in blocks(content).into_iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        // One at a time: a list can have a million.
        match Block::from_raw(raw) {
            Some(Block::Text(block)) => text.push_str(&block.text().unwrap_or_default()),
            Some(block) => match block_text(raw) {
                own if own.trim().is_empty() => text.push_str(&block_line(&block)),
                own => text.push_str(&own),
            },
            None => text.push_str(&block_text(raw)),
        }
    }
    text
}

/// Returns the content of a message; `None` for entries of other kinds.
pub fn message_content<'a>(entry: &Entry<'a>) -> Option<Raw<'a>> {
    let is_message = entry.kind().is_message();
    let message = entry.object().object("message").filter(|_| is_message);
    message?.field("content")
}

/// Returns the blocks of a content as raw JSON, because a parsed view of each would take many times
/// its size.
pub fn blocks(content: Raw<'_>) -> Vec<Raw<'_>> {
    match content.kind() {
        JsonKind::Object => vec![content],
        _ => content.array().unwrap_or_default(),
    }
}

/// `[image png, 1.2 KB]`: the type of a block, and the size of what it holds.
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
        let is_named = |rest: &&str| kind.strip_suffix(rest) == Some(&*format!("{name}/"));
        let rest = kind.split_once('/').map(|(_, rest)| rest);
        let kind = rest.filter(is_named).unwrap_or(&kind);
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
        line.push_str(&format!(", {}", units::size(len as u64)));
    } else if let Some(url) = source.url() {
        line.push_str(&format!(" {url}"));
    }
    line.push(']');
    line
}

/// Returns the line of a block, and its text below.
pub(crate) fn block_lines(block: &Block<'_>) -> String {
    let line = block_line(block);
    match block_text(block.raw()).trim_end() {
        "" => line,
        text => format!("{line}\n{text}"),
    }
}

/// Describes the event that an attachment records; `None` for reminders.
pub(crate) fn attachment_line(
    kind: Option<AttachmentKind>,
    attachment: &Object<'_>,
    cwd: Option<&str>,
) -> Option<String> {
    let text = |name: &str| attachment.str(name).unwrap_or_default();
    let path = ["displayPath", "filename", "path"];
    let path = path.iter().find_map(|name| attachment.str(name));
    let path = path.unwrap_or_default();
    let path = tools::from(cwd, &path);
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
