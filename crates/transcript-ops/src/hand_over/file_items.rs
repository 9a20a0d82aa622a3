//! Files of other programs that are handed over: trajectories in ATIF, and updates in ACP.

use std::io;
use std::path::Path;

use transcript_format::object::Object;
use transcript_import::handover::{SourceItem, Target, items_of_trajectory, items_of_updates};
use transcript_storage::ReadDisk;

use crate::failure::Failure;

/// The conversation in a file.
pub(super) struct FileItems {
    pub(super) format: Target,
    pub(super) items: Vec<SourceItem>,
    pub(super) session_id: Option<String>,
    pub(super) title: Option<String>,
}

/// The number of bytes in which the first line of a file of updates ends, or which show that it is none.
const MAX_HEAD_LEN: usize = 64 << 10;

/// Reads a file in one of the formats; `None` when there is no such file, and for any other file.
pub(super) fn read(disk: &dyn ReadDisk, path: &Path) -> Result<Option<FileItems>, Failure> {
    let extension = path.extension().unwrap_or_default();
    if extension != "json" && extension != "jsonl" || !disk.is_file(path) {
        return Ok(None);
    }
    let failed = |error: io::Error| Failure::from(error).in_file(path);
    let head = disk.read(path, MAX_HEAD_LEN).map_err(failed)?;
    // A trajectory is one document, whose version may stand at its end.
    if extension == "jsonl" && !is_of_updates(&head) && !begins_trajectory(&head) {
        return Ok(None);
    }
    let text = disk.read(path, usize::MAX).map_err(failed)?;
    let text = String::from_utf8_lossy(&text);
    if is_of_updates(text.as_bytes()) {
        return Ok(Some(of_updates(&text)));
    }
    Ok(items_of_trajectory(&text).map(|items| of_trajectory(&text, items)))
}

/// Returns whether the first line that is not empty is an update. Only its start is looked at when it is long.
fn is_of_updates(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let end = text.iter().position(|byte| *byte == b'\n');
    let first = &text[..end.unwrap_or(text.len())];
    let Ok(first) = std::str::from_utf8(first) else {
        return false;
    };
    match Object::parse(first) {
        Ok(line) => line
            .str("method")
            .is_some_and(|method| method == "session/update"),
        Err(_) => first.starts_with("{\"jsonrpc\"") && first.contains("\"session/update\""),
    }
}

fn begins_trajectory(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    head.trim_start().starts_with('{') && head.contains("\"ATIF-v")
}

fn of_updates(text: &str) -> FileItems {
    let mut lines = text.lines().filter_map(|line| Object::parse(line).ok());
    let parameters = lines.find_map(|line| line.object("params"));
    let session_id = parameters.and_then(|of| of.str("sessionId").map(Into::into));
    let titles = text
        .lines()
        .filter(|line| line.contains("session_info_update"));
    let mut titles = titles.rev().filter_map(|line| {
        let update = Object::parse(line)
            .ok()?
            .object("params")?
            .object("update")?;
        update.str("title").map(Into::into)
    });
    FileItems {
        format: Target::Acp,
        items: items_of_updates(text),
        session_id,
        title: titles.next(),
    }
}

fn of_trajectory(text: &str, items: Vec<SourceItem>) -> FileItems {
    let document = Object::parse(text).ok();
    let string = |key| {
        let value = document.as_ref()?.str(key)?;
        Some(value.into_owned())
    };
    FileItems {
        format: Target::Atif,
        items,
        session_id: string("session_id"),
        title: string("notes"),
    }
}
