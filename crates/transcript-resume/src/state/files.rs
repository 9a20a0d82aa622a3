//! The files that the model has read or written, as the results of tools and attachments say.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use transcript_format::attachment::{Attachment, AttachmentBody, File, SelectedLinesInIde};
use transcript_format::object::{Object, Str};
use transcript_format::tool_result::{Read, Write};

/// The kind of access by which the model knows a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FileAccess {
    /// A tool read it, or the client added its text to the conversation.
    #[default]
    Read,
    /// A tool wrote or changed it.
    Write,
}

/// A file that the model knows, by its last access. What no line contains is `None`.
///
/// A client that resumes a session needs it for tools that change only files that were read, and for
/// notes about files that have changed since: compare [`timestamp`](Self::timestamp) with the time of
/// the file. The text itself is not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct KnownFile {
    /// The path as the line has it, usually an absolute one.
    pub path: String,
    /// Whether the last access read or wrote it.
    pub access: FileAccess,
    /// The id of the call; `None` if the client added the text by itself, as for a mentioned file.
    pub call: Option<String>,
    /// The uuid of the entry with the result or the attachment.
    pub uuid: Option<String>,
    /// The number of its line, from 1; `None` if only the end of the file was read.
    pub line: Option<u64>,
    /// Its time, as written in the file.
    pub timestamp: Option<String>,
    /// The first line of the file that the model was shown, from 1. A change of a file keeps the range
    /// that was known before it.
    pub start_line: Option<u64>,
    /// The number of lines that it was shown.
    pub num_lines: Option<u64>,
    /// The number of lines of the whole file.
    pub total_lines: Option<u64>,
    /// Whether it was shown, or wrote, the whole file. After a change of a part: whether it knew the
    /// whole file before.
    pub is_whole: bool,
    /// Whether the text is still in the context: no compaction and no microcompaction has removed it.
    pub in_context: bool,
}

/// The position of an access in the session.
#[derive(Clone, Debug, Default)]
pub(super) struct AccessPosition {
    pub(super) call: Option<String>,
    pub(super) uuid: Option<String>,
    pub(super) line: Option<u64>,
    pub(super) timestamp: Option<String>,
}

/// The lines of a file that the model was shown.
#[derive(Clone, Copy, Debug, Default)]
struct ShownLines {
    start_line: Option<u64>,
    num_lines: Option<u64>,
    total_lines: Option<u64>,
    is_whole: bool,
}

impl ShownLines {
    const WHOLE: Self = Self {
        start_line: None,
        num_lines: None,
        total_lines: None,
        is_whole: true,
    };

    /// Reads the result of a `Read`; `None` for a stub that only refers to an earlier text.
    fn of_read(read: &Read<'_>) -> Option<Self> {
        match read.kind().as_deref() {
            Some("file_unchanged") => None,
            // The pages of a document, as images in files of their own.
            Some("parts") => Some(Self::default()),
            Some("text") | None => {
                let file = read.file()?;
                let (start, shown) = (file.start_line(), file.num_lines());
                let total = file.total_lines();
                let is_whole = match (shown, total) {
                    (Some(shown), Some(total)) => start.unwrap_or(1) <= 1 && shown >= total,
                    _ => false,
                };
                Some(Self {
                    start_line: start,
                    num_lines: shown,
                    total_lines: total,
                    is_whole,
                })
            }
            Some(_) => Some(Self::WHOLE),
        }
    }

    /// Returns the range of a text that is the whole file.
    fn of_text(text: &str) -> Self {
        let lines = text.lines().count() as u64;
        Self {
            start_line: Some(1),
            num_lines: Some(lines),
            total_lines: Some(lines),
            is_whole: true,
        }
    }
}

/// The access of a line to a file, and the part of the file that it shows.
enum LineAccess {
    /// The model was shown this.
    Shown(FileAccess, ShownLines),
    /// The text that the model was shown before is still right, or was updated.
    Same(FileAccess),
    /// The client only names the file: its text is not in the conversation any more.
    Named,
}

/// The line that the model has the text of a file from: a call, or the uuid of an attachment.
type TextOrigin = String;

#[derive(Debug)]
struct FileState {
    place: AccessPosition,
    access: FileAccess,
    shown: ShownLines,
    origin: Option<TextOrigin>,
    in_context: bool,
    /// The order of the last accesses.
    at: usize,
}

/// The files after the lines so far.
#[derive(Debug, Default)]
pub(super) struct KnownFiles {
    files: HashMap<String, FileState>,
    accesses: usize,
}

impl KnownFiles {
    /// Reads the result of a tool. `asked_for` is the path in the input of the call, for results that
    /// do not repeat it.
    pub(super) fn add_result(
        &mut self,
        result: &Object<'_>,
        asked_for: Option<&str>,
        place: impl FnOnce() -> AccessPosition,
    ) {
        // Most results are of other tools: do not look for each key in turn.
        let is_of_files = |key: &str| matches!(key, "file" | "filePath" | "notebook_path");
        if !result.members().iter().any(|(key, _)| is_of_files(key)) {
            return;
        }
        if result.get("file").is_some() {
            let read = Read::from(result.clone());
            let own = read.file().and_then(|file| file.file_path());
            let Some(path) = own.or(asked_for.map(Str::Borrowed)) else {
                return;
            };
            let access = match ShownLines::of_read(&read) {
                Some(shown) => LineAccess::Shown(FileAccess::Read, shown),
                None => LineAccess::Same(FileAccess::Read),
            };
            return self.add(&path, access, place);
        }
        if let Some(path) = result.str("notebook_path") {
            if result.str("error").is_none_or(|error| error.is_empty()) {
                self.add(&path, LineAccess::Same(FileAccess::Write), place);
            }
            return;
        }
        let Some(path) = result.str("filePath") else {
            return;
        };
        let has = |key| result.get(key).is_some();
        if has("oldString") || has("edits") {
            self.add(&path, LineAccess::Same(FileAccess::Write), place);
        } else if has("content") && has("structuredPatch") {
            let content = Write::from(result.clone()).content();
            let shown = content.map_or(ShownLines::WHOLE, |content| ShownLines::of_text(&content));
            self.add(&path, LineAccess::Shown(FileAccess::Write, shown), place);
        }
    }

    /// Reads an attachment: the text of a file that the client added, or the name of one.
    pub(super) fn add_attachment(
        &mut self,
        entry: &Object<'_>,
        place: impl FnOnce() -> AccessPosition,
    ) {
        let Some(body) = Attachment::from(entry.clone()).body() else {
            return;
        };
        let read = |shown| LineAccess::Shown(FileAccess::Read, shown);
        let (path, access) = match body {
            AttachmentBody::File(file) => (path_of(&file), access_of_file(&file)),
            AttachmentBody::NestedMemory(memory) => {
                let content = memory.content();
                let shown = content.map_or(ShownLines::default(), |memory| {
                    let text = memory.content();
                    let mut shown =
                        text.map_or(ShownLines::WHOLE, |text| ShownLines::of_text(&text));
                    shown.is_whole &= memory.content_differs_from_disk() != Some(true);
                    shown
                });
                (memory.path(), read(shown))
            }
            AttachmentBody::SelectedLinesInIde(lines) => (lines.filename(), read(selected(&lines))),
            AttachmentBody::PlanFileReference(plan) => {
                let text = plan.plan_content();
                let shown = text.map_or(ShownLines::WHOLE, |text| ShownLines::of_text(&text));
                (plan.plan_file_path(), read(shown))
            }
            AttachmentBody::EditedTextFile(file) => {
                (file.filename(), LineAccess::Same(FileAccess::Read))
            }
            AttachmentBody::CompactFileReference(file) => (file.filename(), LineAccess::Named),
            _ => return,
        };
        if let Some(path) = path {
            self.add(&path, access, place);
        }
    }

    fn add(&mut self, path: &str, access: LineAccess, place: impl FnOnce() -> AccessPosition) {
        if path.is_empty() {
            return;
        }
        let before = self.files.get_mut(path);
        self.accesses += 1;
        let place = place();
        let own = || place.call.clone().or_else(|| place.uuid.clone());
        let mut state = FileState {
            origin: own(),
            place: AccessPosition::default(),
            access: FileAccess::Read,
            shown: ShownLines::default(),
            in_context: true,
            at: self.accesses,
        };
        match (access, before.as_deref()) {
            (LineAccess::Shown(access, shown), _) => {
                state.access = access;
                state.shown = shown;
            }
            (LineAccess::Same(access), Some(before)) => {
                state.access = access;
                state.shown = before.shown;
                state.origin.clone_from(&before.origin);
                state.in_context = before.in_context;
            }
            (LineAccess::Same(access), None) => {
                state.access = access;
                // The text of a change is in the context, the text that a stub refers to is not.
                state.in_context = access == FileAccess::Write;
            }
            // It was known before, and the text may be there.
            (LineAccess::Named, Some(_)) => return,
            (LineAccess::Named, None) => state.in_context = false,
        }
        state.place = place;
        match before {
            Some(before) => *before = state,
            None => {
                self.files.insert(path.to_owned(), state);
            }
        }
    }

    /// Returns the files, the last accessed last; `earlier` are those from before the last compaction.
    /// `cleared` are the calls and attachments whose texts a microcompaction removed.
    pub(super) fn finish(
        self,
        earlier: Self,
        cleared: &BTreeSet<String>,
    ) -> Option<Vec<KnownFile>> {
        let mut earlier = earlier.files;
        let mut files = Vec::with_capacity(earlier.len() + self.files.len());
        for (path, mut state) in self.files {
            let removed = earlier.remove(&path);
            let is_cleared = state
                .origin
                .as_ref()
                .is_some_and(|origin| cleared.contains(origin));
            state.in_context &= !is_cleared;
            // A file that the client only names, or whose change alone is on the path.
            if let Some(before) = removed
                && state.shown.num_lines.is_none()
                && !state.shown.is_whole
            {
                state.shown = before.shown;
                state.in_context = false;
            }
            files.push((true, path, state));
        }
        for (path, mut state) in earlier {
            state.in_context = false;
            files.push((false, path, state));
        }
        files.sort_by_key(|(is_on_path, _, state)| (*is_on_path, state.at));
        let files = files.into_iter().map(|(_, path, state)| KnownFile {
            path,
            access: state.access,
            call: state.place.call,
            uuid: state.place.uuid,
            line: state.place.line,
            timestamp: state.place.timestamp,
            start_line: state.shown.start_line,
            num_lines: state.shown.num_lines,
            total_lines: state.shown.total_lines,
            is_whole: state.shown.is_whole,
            in_context: state.in_context,
        });
        let files: Vec<_> = files.collect();
        (!files.is_empty()).then_some(files)
    }
}

/// Returns the path of a mentioned file: that of the read content, else as it was mentioned.
fn path_of<'a>(file: &File<'a>) -> Option<Str<'a>> {
    let read = file.content().and_then(|read| read.file());
    read.and_then(|file| file.file_path()).or(file.filename())
}

fn access_of_file(file: &File<'_>) -> LineAccess {
    let Some(read) = file.content() else {
        return LineAccess::Named;
    };
    match ShownLines::of_read(&read) {
        Some(mut shown) => {
            shown.is_whole &= file.truncated() != Some(true);
            LineAccess::Shown(FileAccess::Read, shown)
        }
        None => LineAccess::Same(FileAccess::Read),
    }
}

fn selected(lines: &SelectedLinesInIde<'_>) -> ShownLines {
    let (start, end) = (lines.line_start(), lines.line_end());
    let count = start.zip(end).and_then(|(start, end)| {
        let between = end.checked_sub(start)?;
        Some(between.saturating_add(1))
    });
    ShownLines {
        start_line: start,
        num_lines: count,
        ..ShownLines::default()
    }
}
