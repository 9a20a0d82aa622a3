//! The texts of attachments: reports of the client to the model about its environment (NOTE-1).

mod changes;
mod escape;
mod fields;
mod files;
mod modes;
mod piece;
mod queued;
mod rendered;
mod stored;
mod work;

use transcript_format::attachment_texts::{ATTRIBUTION, REMINDER_END, REMINDER_START};
use transcript_format::kind::AttachmentKind as Kind;
use transcript_format::object::{Object, Raw};
use transcript_format::time;
use transcript_messages::text::wrapped;
use transcript_messages::{Block, BlockKind, Log, Role, SyntheticKind, within_limits};

pub(super) use self::escape::brackets;
use self::fields::Fields;
use self::piece::Piece;
pub(super) use self::queued::{is_medium as is_sent_of_queued, notification};
use self::rendered::Rendered;

/// Returns whether a block is the one reminder that is never folded into a tool result (NOTE-5).
pub(super) fn is_attribution(block: &Block) -> bool {
    block.kind() == BlockKind::Text
        && block.json().contains("Attribution for git commits")
        && block
            .text_field()
            .is_some_and(|text| text.starts_with(ATTRIBUTION))
}

/// The attachment of an entry, which is parsed once.
pub(super) struct Attachment<'o, 'a> {
    entry: &'o Object<'a>,
    fields: Fields<'a>,
    kind: Kind,
    /// The documents of a queued prompt are sent like its images.
    sends_documents: bool,
    /// The texts that were sent the first time; they count, whatever the attachment contains (NOTE-1).
    stored: Option<Vec<Raw<'a>>>,
}

impl<'o, 'a> Attachment<'o, 'a> {
    pub(super) fn of(entry: &'o Object<'a>, sends_documents: bool) -> Self {
        let fields = Fields::of(entry.get("attachment"));
        Self {
            entry,
            kind: fields.kind(),
            fields,
            sends_documents,
            stored: stored::contents(entry),
        }
    }

    /// Returns its messages: a list, each a list of texts and images. Empty when
    /// nothing is sent.
    ///
    /// `now` is the time of the request in milliseconds, from which the client counts the age of
    /// memories; by default that at which the attachment was written.
    pub(super) fn parts(
        &self,
        origin: Option<usize>,
        now: Option<i64>,
        log: &mut Log,
    ) -> Vec<Vec<Block>> {
        if let Some(contents) = &self.stored {
            return stored::parts(contents, origin);
        }
        let now = now.or_else(|| self.written_at());
        let Rendered { parts, is_own } =
            rendered::rendered(&self.fields, now, self.sends_documents);
        let parts: Vec<Vec<Block>> = parts
            .into_iter()
            .map(|pieces| blocks(&pieces, origin, log))
            .collect();
        if is_own {
            for block in parts.iter().flatten() {
                log.add_synthetic(SyntheticKind::Reminder, Role::User, block, origin);
            }
        }
        parts
    }

    /// Returns whether a reminder is about tools that newer models do not have.
    pub(super) fn is_for_older_models(&self) -> bool {
        self.kind == Kind::TaskReminder && self.stored.is_none()
    }

    /// Returns whether the client fails on it, which ends the resume (NOTE-9).
    pub(super) fn is_unusable(&self) -> bool {
        let lacks = |key: &str| self.fields.get(key).is_none_or(Raw::is_null);
        let is_unusable = match self.kind {
            Kind::NestedMemory | Kind::SelectedLinesInIde => lacks("content"),
            Kind::RelevantMemories => self.fields.get("memories").and_then(Raw::array).is_none(),
            Kind::HookBlockingError => lacks("blockingError"),
            _ => false,
        };
        is_unusable && self.stored.is_none()
    }

    /// Returns the time in milliseconds at which it was written.
    fn written_at(&self) -> Option<i64> {
        let timestamp = self.entry.get("timestamp")?.str()?;
        time::millis(timestamp.as_bytes())
    }

    /// Returns whether a reminder goes into a `role: system` message in the role form. Without a stored
    /// role all do, except stored files that the user mentioned, and reminders with an image (NOTE-6).
    pub(super) fn is_for_system_role(&self) -> bool {
        if self.stored.is_none() {
            return !rendered::holds_media(&self.fields, self.sends_documents);
        }
        match self.entry.get("renderedRole").and_then(Raw::str) {
            Some(role) => role != "user",
            None => !matches!(self.kind, Kind::File | Kind::Directory),
        }
    }

    /// Returns whether a stored reminder contains a file, a folder or a memory file (NOTE-7).
    pub(super) fn is_file(&self) -> bool {
        let is_file = matches!(self.kind, Kind::File | Kind::Directory | Kind::NestedMemory);
        is_file && self.stored.is_some()
    }

    /// Returns the tools that it records with their definitions, as those that a tool search may find (MSG-14).
    pub(super) fn recorded_tools(&self) -> Vec<String> {
        match &*self.fields.str("type") {
            "deferred_tools_record" => recorded_tools(self.fields.get("entries")),
            _ => Vec::new(),
        }
    }
}

/// Returns the tools in a record of definitions that a tool search may find (MSG-14).
fn recorded_tools(entries: Option<Raw<'_>>) -> Vec<String> {
    let tools = entries.and_then(Raw::array).unwrap_or_default();
    let name = |tool: Raw<'_>| {
        let tool = tool.object()?;
        let schema = tool.get("input_schema")?.object()?;
        let is_complete = tool.get("defer_loading").and_then(Raw::bool) == Some(true)
            && schema.get("type")?.str()? == "object";
        let name = tool.get("name")?.str()?;
        is_complete.then(|| name.into_owned())
    };
    tools.into_iter().filter_map(name).collect()
}

/// Returns the blocks of one message.
fn blocks(pieces: &[Piece], origin: Option<usize>, log: &mut Log) -> Vec<Block> {
    let is_only_piece = pieces.len() == 1;
    let mut block = |piece: &Piece| {
        let block = match piece {
            Piece::Text(text) if is_only_piece => Block::plain_text(&wrapped(text)),
            Piece::Text(text) => Block::text(&wrapped(text)),
            Piece::Media(json) => Block::read(Raw::parse(json).ok()?),
        };
        Some(within_limits(block.with_origin(origin), log))
    };
    pieces.iter().filter_map(&mut block).collect()
}

pub(super) fn unwrapped(text: &str) -> &str {
    let inner = text.trim_end_matches('\n').strip_prefix(REMINDER_START);
    inner
        .and_then(|text| text.strip_suffix(REMINDER_END))
        .unwrap_or(text)
}
