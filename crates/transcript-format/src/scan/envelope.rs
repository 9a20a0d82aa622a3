//! The envelope: the fields of a line that are needed for linking entries.

use std::ops::Range;

use bitflags::bitflags;

use super::cursor::{Cursor, Scratch, Span};
use super::error::{ScanError, ScanErrorKind};
use super::text::Text;
use crate::kind::{AttachmentKind, EntryKind, ProgressKind, SystemKind};
use crate::known_keys::{self, KeyPlace};
use crate::object::MAX_PARTS;

bitflags! {
    /// Properties of one line, one bit each.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Flags: u32 {
        /// `isSidechain` is true, or in the stream form `parent_tool_use_id` is set: the entry belongs
        /// to a subagent.
        const SIDECHAIN = 1;
        /// `teamName` is set: the entry belongs to a teammate.
        const TEAM = 1 << 1;
        /// `isMeta` is true: written by the client, not by a person.
        const META = 1 << 2;
        /// `isCompactSummary` is true.
        const COMPACT_SUMMARY = 1 << 3;
        /// `isVisibleInTranscriptOnly` is true.
        const TRANSCRIPT_ONLY = 1 << 4;
        /// `isVirtual` is true.
        const VIRTUAL = 1 << 5;
        /// `isApiErrorMessage` is true.
        const API_ERROR = 1 << 6;
        /// `explicit` is true (of a `last-prompt` line).
        const EXPLICIT = 1 << 7;
        /// A name that the envelope reads is repeated at the top level of the object.
        const DUPLICATE_NAME = 1 << 8;
        /// A name that the envelope reads has a value of an unexpected type.
        const ODD_VALUE = 1 << 9;
        /// The message has a `text` block or is a string.
        const HAS_TEXT = 1 << 10;
        /// The message has a `thinking` or `redacted_thinking` block.
        const HAS_THINKING = 1 << 11;
        /// The message has a `tool_use` block.
        const HAS_TOOL_USE = 1 << 12;
        /// The message has a `tool_result` block.
        const HAS_TOOL_RESULT = 1 << 13;
        /// The message has a block of any other type.
        const HAS_OTHER_BLOCK = 1 << 14;
        /// `uuid` is `null`.
        const UUID_NULL = 1 << 15;
        /// `uuid` is the empty string.
        const UUID_EMPTY = 1 << 16;
        /// `uuid` is not a string.
        const UUID_ODD = 1 << 17;
        /// `parentUuid` is present but neither a string nor a root marker: it names no entry.
        const PARENT_ODD = 1 << 18;
        /// A string holds a surrogate escape without its partner; it reads as U+FFFD.
        const LONE_SURROGATE = 1 << 19;
        /// A string holds `\u0000`.
        const NUL_ESCAPE = 1 << 20;
        /// `parentUuid` is absent, or empty. Clients write `null` for a root, so the parent was probably
        /// lost.
        const PARENT_ABSENT = 1 << 21;
        /// The entry or its message has more than [`MAX_PARTS`] members, or the message has more
        /// blocks than that: its body cannot be read.
        ///
        /// [`MAX_PARTS`]: crate::object::MAX_PARTS
        const TOO_MANY = 1 << 22;
        /// A user entry that a client wrote by itself: a notification, a request to continue, the
        /// message of a hook. Not set by the scanner, which does not read texts, but by the index.
        const AUTOMATIC = 1 << 23;
        /// The line is one of the output of the SDK, `stream-json`: it has `session_id` and neither
        /// `sessionId` nor `parentUuid`.
        const STREAM_FORM = 1 << 24;
        /// [`Self::SIDECHAIN`] is set by `parent_tool_use_id` alone, which a client that reads a file
        /// does not know.
        const SIDECHAIN_OF_STREAM = 1 << 25;
        /// `parentUuid` is the empty string: [`Self::PARENT_ABSENT`] is set as well.
        const PARENT_EMPTY = 1 << 26;
        /// `imported` is an object: the line was made from the session of another agent.
        const IMPORTED = 1 << 27;
    }
}

/// The kind of value at `message.content`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ContentKind {
    /// The entry has no `message` object.
    #[default]
    NoMessage,
    /// The content is absent or `null`.
    Null,
    /// A string.
    Text,
    /// An array.
    Blocks,
    /// A value of another kind.
    Odd,
}

/// One side of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool<'a> {
    /// The side.
    pub role: ToolRole,
    /// The id that call and result share.
    pub id: Text<'a>,
    /// The `name` of the tool, of a call.
    pub name: Option<Text<'a>>,
}

/// The role of a block in a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToolRole {
    /// A `tool_use` block.
    Use,
    /// A `tool_result` block.
    Result,
    /// A call that the API runs itself: `server_tool_use`, `mcp_tool_use`.
    ServerUse,
    /// The result of such a call: `web_search_tool_result` and similar blocks.
    ServerResult,
}

/// The place of a tool id in its line.
#[derive(Clone, Copy, Debug)]
struct ToolSpan {
    role: ToolRole,
    id: Span,
    name: Option<Span>,
}

/// A name that the envelope does not read, and the object that has it.
#[derive(Clone, Copy, Debug)]
struct NameSpan {
    place: KeyPlace,
    name: Span,
}

/// The names of one line that the envelope does not read.
#[derive(Debug, Default)]
struct OtherNames {
    names: Vec<NameSpan>,
}

/// The envelope of one line; borrows from the line and from the [`Scanner`].
///
/// Absent, `null`, empty and wrongly typed ids are all `None`. A wrong type also sets
/// [`Flags::ODD_VALUE`]; for `uuid` the flags distinguish all four cases.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'a> {
    line: &'a [u8],
    parts: &'a Parts,
    tools: &'a [ToolSpan],
    /// `None` unless the scanner was asked for them.
    others: Option<&'a OtherNames>,
}

/// The places of the parts of an [`Envelope`] in the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Parts {
    end: usize,
    kind: EntryKind,
    kind_name: Option<Span>,
    subtype: Option<Span>,
    attachment_type: Option<Span>,
    progress_type: Option<Span>,
    uuid: Option<Span>,
    parent_uuid: Option<Span>,
    logical_parent_uuid: Option<Span>,
    leaf_uuid: Option<Span>,
    source_tool_assistant_uuid: Option<Span>,
    session_id: Option<Span>,
    stream_session_id: Option<Span>,
    agent_id: Option<Span>,
    parent_tool_use_id: Option<Span>,
    timestamp: Option<Span>,
    client_version: Option<Span>,
    message: Option<Span>,
    message_id: Option<Span>,
    request_id: Option<Span>,
    stop_reason: Option<Span>,
    last_text: Option<Span>,
    content: ContentKind,
    flags: Flags,
}

/// The fields of an [`Envelope`] apart from its tools and unknown keys, to be kept with a copy of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvelopeFields(Parts);

impl EnvelopeFields {
    /// Returns the envelope of `line`, which must be the line that was scanned; `None` if it is
    /// shorter. The envelope has no tools.
    #[must_use]
    pub fn of<'a>(&'a self, line: &'a [u8]) -> Option<Envelope<'a>> {
        // A shorter line cannot be the one that was scanned: its spans would be out of range.
        (self.0.end <= line.len()).then_some(Envelope {
            line,
            parts: &self.0,
            tools: &[],
            others: None,
        })
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])* #[must_use] pub fn $name(&self) -> Option<Text<'a>> {
            self.parts.$name.map(|span| self.text(span))
        })*
    };
}

impl<'a> Envelope<'a> {
    ids! {
        /// `type`, as written in the line.
        kind_name;
        /// `uuid`.
        uuid;
        /// `parentUuid`.
        parent_uuid;
        /// `logicalParentUuid`, of a compact boundary.
        logical_parent_uuid;
        /// `leafUuid`, of `last-prompt` and `summary` lines.
        leaf_uuid;
        /// `sourceToolAssistantUUID`, of tool results.
        source_tool_assistant_uuid;
        /// `sessionId`; in the [stream form](Flags::STREAM_FORM) `session_id`.
        session_id;
        /// `agentId`; in the [stream form](Flags::STREAM_FORM) `parent_tool_use_id`, the call that
        /// started the subagent.
        agent_id;
        /// `timestamp`.
        timestamp;
        /// `version`: that of the client which wrote the line.
        client_version;
        /// `message.id`.
        message_id;
        /// `requestId`: the call of the API that an answer came from.
        request_id;
        /// `message.stop_reason`.
        stop_reason;
        /// The content of the message if it is a string, else the text of its last `text` block.
        last_text;
    }

    /// Returns the type of the entry.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        self.parts.kind
    }

    fn text(&self, span: Span) -> Text<'a> {
        Text::new(span.of(self.line))
    }

    /// Returns the place of the value of `message` in the line, of whatever kind it is.
    #[must_use]
    pub fn message(&self) -> Option<Range<usize>> {
        self.parts.message.map(Span::range)
    }

    /// Returns the fields, to be kept with a copy of the line.
    #[must_use]
    pub fn fields(&self) -> EnvelopeFields {
        EnvelopeFields(*self.parts)
    }

    /// Returns the second name of the entry: `subtype` of a system entry, `attachment.type` of an
    /// attachment, `data.type` of a progress entry.
    #[must_use]
    pub fn sub_name(&self) -> Option<Text<'a>> {
        let span = match self.kind() {
            EntryKind::Attachment => self.parts.attachment_type,
            EntryKind::Progress => self.parts.progress_type,
            _ => self.parts.subtype,
        };
        span.map(|span| self.text(span))
    }

    /// Returns the code of [`Self::sub_name`] in the enum that belongs to [`Self::kind`]:
    /// [`SystemKind`], [`AttachmentKind`] or [`ProgressKind`]; 0 for every other kind.
    #[must_use]
    pub fn sub_code(&self) -> u8 {
        let Some(name) = self.sub_name() else {
            return 0;
        };
        let name = name.bytes();
        match self.kind() {
            EntryKind::System => SystemKind::from_bytes(&name) as u8,
            EntryKind::Attachment => AttachmentKind::from_bytes(&name) as u8,
            EntryKind::Progress => ProgressKind::from_bytes(&name) as u8,
            _ => 0,
        }
    }

    /// Returns the kind of value at `message.content`.
    #[must_use]
    pub fn content(&self) -> ContentKind {
        self.parts.content
    }

    /// Returns the flags.
    #[must_use]
    pub fn flags(&self) -> Flags {
        self.parts.flags
    }

    /// Returns the tool calls and results of the message, in order.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = Tool<'a>> + use<'a> {
        let line = self.line;
        self.tools.iter().map(move |span| Tool {
            role: span.role,
            id: Text::new(span.id.of(line)),
            name: span.name.map(|name| Text::new(name.of(line))),
        })
    }

    /// Returns the keys of a message line that this version of the format does not know, as
    /// [`known_keys`] defines them, in order; a repeated one is returned
    /// again. None unless the scanner is one [`with_unknown_keys`](Scanner::with_unknown_keys).
    ///
    /// [`known_keys`]: crate::known_keys
    pub fn unknown_keys(&self) -> impl Iterator<Item = (KeyPlace, Text<'a>)> + use<'a> {
        let (envelope, kind) = (*self, self.kind());
        let attachment = match kind {
            EntryKind::Attachment => AttachmentKind::from_code(self.sub_code()),
            _ => AttachmentKind::Other,
        };
        let is_checked =
            known_keys::is_checked(kind) && !self.flags().contains(Flags::PARENT_ABSENT);
        let others = self.others.filter(|_| is_checked);
        let new_type = self.sub_name().filter(|_| {
            let is_new = kind == EntryKind::Attachment && attachment == AttachmentKind::Other;
            is_new && others.is_some()
        });
        let names = others.into_iter().flat_map(|others| &others.names);
        let unknown = names.filter_map(move |span| {
            let name = envelope.text(span.name);
            let is_known = known_keys::is_known(kind, attachment, span.place, &name.bytes());
            (!is_known).then_some((span.place, name))
        });
        new_type
            .map(|name| (KeyPlace::AttachmentType, name))
            .into_iter()
            .chain(unknown)
    }

    /// Returns the offset in the line directly after the object.
    #[must_use]
    pub fn end(&self) -> usize {
        self.parts.end
    }

    /// Returns the envelope if only white space follows the object.
    fn alone(self) -> Result<Self, ScanError> {
        let rest = &self.line[self.end()..];
        match rest
            .iter()
            .position(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
        {
            None => Ok(self),
            Some(at) => Err(ScanError {
                kind: ScanErrorKind::Trailing,
                at: self.end() + at,
            }),
        }
    }
}

/// Scans lines; reuses its buffers from line to line.
///
/// ```
/// use transcript_format::kind::EntryKind;
/// use transcript_format::scan::Scanner;
///
/// let mut scanner = Scanner::new();
/// let line = br#"{"parentUuid":null,"type":"user","message":{"role":"user","content":"hi"},"uuid":"u1"}"#;
/// let envelope = scanner.scan(line)?;
/// assert_eq!(envelope.kind(), EntryKind::User);
/// assert_eq!(envelope.uuid().map(|id| id.decode()).as_deref(), Some("u1"));
/// assert!(envelope.parent_uuid().is_none());
/// # Ok::<(), transcript_format::scan::ScanError>(())
/// ```
#[derive(Debug, Default)]
pub struct Scanner {
    parts: Parts,
    tools: Vec<ToolSpan>,
    others: Option<OtherNames>,
    scratch: Scratch,
}

impl Scanner {
    /// Returns a scanner that uses the fastest instructions of the machine.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a scanner that uses no instruction beyond the build's baseline; for comparison.
    #[must_use]
    pub fn without_simd() -> Self {
        let mut scanner = Self::default();
        scanner.scratch.plain = true;
        scanner
    }

    /// Returns a scanner whose envelopes have [`Envelope::unknown_keys`]. It reads each line once,
    /// as every scanner does, and looks up the names that the envelope does not need.
    #[must_use]
    pub fn with_unknown_keys() -> Self {
        Self {
            others: Some(OtherNames::default()),
            ..Self::default()
        }
    }

    /// Scans a line that must be exactly one object, apart from white space around it.
    ///
    /// # Errors
    ///
    /// Returns the error in the line and its offset; [`ScanErrorKind::Trailing`] when a complete
    /// object is followed by more bytes (see [`Self::scan_first`]).
    pub fn scan<'a>(&'a mut self, line: &'a [u8]) -> Result<Envelope<'a>, ScanError> {
        self.scan_first(line)?.alone()
    }

    /// Scans a line that is known to be UTF-8, as [`Self::scan`] does.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::scan`].
    pub fn scan_text<'a>(&'a mut self, line: &'a str) -> Result<Envelope<'a>, ScanError> {
        self.read(line.as_bytes())?.alone()
    }

    /// Scans the object at the start of a line and ignores the bytes after it.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::scan`], without `Trailing`.
    pub fn scan_first<'a>(&'a mut self, line: &'a [u8]) -> Result<Envelope<'a>, ScanError> {
        let envelope = self.read(line)?;
        // After the scan, as most lines are UTF-8, and only of the object: garbage after it is another finding.
        let object = &line[..envelope.end()];
        if simdutf8::basic::from_utf8(object).is_err() {
            let at = std::str::from_utf8(object).map_or_else(|bad| bad.valid_up_to(), str::len);
            return Err(ScanError {
                kind: ScanErrorKind::Utf8,
                at,
            });
        }
        Ok(envelope)
    }

    fn read<'a>(&'a mut self, line: &'a [u8]) -> Result<Envelope<'a>, ScanError> {
        let Self {
            parts,
            tools,
            others,
            scratch,
        } = self;
        read(line, parts, tools, others.as_mut(), scratch)?;
        Ok(Envelope {
            line,
            parts,
            tools,
            others: others.as_ref(),
        })
    }
}

/// Reads the object at the start of `line`.
fn read(
    line: &[u8],
    parts: &mut Parts,
    tools: &mut Vec<ToolSpan>,
    mut others: Option<&mut OtherNames>,
    scratch: &mut Scratch,
) -> ScanResult {
    // The buffers are reused from line to line: an allocation for each line would take longer than the scan.
    *parts = Parts::default();
    tools.clear();
    if let Some(others) = &mut others {
        others.names.clear();
    }
    // Offsets are kept in 32 bits; the cap on a line is far below that.
    if u32::try_from(line.len()).is_err() {
        return Err(ScanError {
            kind: ScanErrorKind::Syntax,
            at: u32::MAX as usize,
        });
    }
    let mut reader = Reader {
        cursor: Cursor::new(line, scratch),
        parts,
        tools,
        others,
    };
    reader.cursor.skip_space();
    match reader.cursor.peek() {
        b'{' => reader.top()?,
        _ => return Err(reader.no_object()),
    }
    reader.parts.end = reader.cursor.pos();
    let (surrogate, nul) = reader.cursor.odd_escapes();
    reader.parts.flags.set(Flags::LONE_SURROGATE, surrogate);
    reader.parts.flags.set(Flags::NUL_ESCAPE, nul);
    Ok(())
}

struct Reader<'l, 't> {
    cursor: Cursor<'l, 't>,
    parts: &'t mut Parts,
    tools: &'t mut Vec<ToolSpan>,
    others: Option<&'t mut OtherNames>,
}

type ScanResult<T = ()> = Result<T, ScanError>;

impl<'l> Reader<'l, '_> {
    /// Keeps a name that the envelope does not read, if it was asked for.
    #[inline(always)]
    fn other(&mut self, place: KeyPlace, name: &'l [u8]) {
        if let Some(others) = &mut self.others
            // A crafted line may not take more memory than a body could have.
            && others.names.len() < MAX_PARTS
        {
            let name = self.cursor.span_of(name);
            others.names.push(NameSpan { place, name });
        }
    }

    /// Forgets the names in an object that is there again.
    #[inline(always)]
    fn forget_others(&mut self, place: KeyPlace) {
        if let Some(others) = &mut self.others {
            others.names.retain(|name| name.place != place);
        }
    }

    /// Reads the value of a member of the entry that the envelope does not need.
    #[inline(always)]
    fn other_member(&mut self, name: &'l [u8]) -> ScanResult {
        self.other(KeyPlace::Entry, name);
        self.cursor.skip_value(1)
    }

    #[cold]
    fn no_object(&mut self) -> ScanError {
        let at = self.cursor.pos();
        if self.cursor.peek() == 0 && self.cursor.unexpected().kind == ScanErrorKind::Incomplete {
            return ScanError {
                kind: ScanErrorKind::Blank,
                at,
            };
        }
        match self.cursor.skip_value(0) {
            Ok(()) => ScanError {
                kind: ScanErrorKind::NotObject,
                at,
            },
            Err(error) => error,
        }
    }

    #[inline(always)]
    fn top(&mut self) -> ScanResult {
        let mut seen = 0u32;
        let mut members = 0;
        let mut more = self.cursor.open_object()?;
        while more {
            members += 1;
            let known = self.member()?;
            // Only of names that the envelope reads: which of two values counts matters for no other.
            if known != 0 && seen & known != 0 {
                self.parts.flags |= Flags::DUPLICATE_NAME;
            }
            seen |= known;
            more = self.cursor.more(b'}')?;
        }
        let names_parent = seen & (1 << Member::ParentUuid as u32) != 0;
        // Clients write the member on every entry, `null` for a root: without it, the line is of the stream form, or damaged.
        if !names_parent {
            self.parts.flags |= Flags::PARENT_ABSENT;
            if self.parts.session_id.is_none() {
                self.read_as_stream_form();
            }
        }
        self.check_parts(members);
        Ok(())
    }

    /// Takes the session and the subagent from the names that they have in the stream form, if the
    /// line is of that form.
    fn read_as_stream_form(&mut self) {
        let parts = &mut *self.parts;
        let named = |span: Option<Span>| span.filter(|span| !span.is_empty());
        parts.session_id = named(parts.stream_session_id);
        if parts.session_id.is_none() {
            return;
        }
        parts.flags |= Flags::STREAM_FORM;
        if let Some(call) = named(parts.parent_tool_use_id) {
            // Kept apart from the flag of the line: the client, which does not know this name, sees no sidechain.
            if !parts.flags.contains(Flags::SIDECHAIN) {
                parts.flags |= Flags::SIDECHAIN | Flags::SIDECHAIN_OF_STREAM;
            }
            parts.agent_id = parts.agent_id.or(Some(call));
        }
    }

    /// Reads one member of the entry. Returns a bit for its name, 0 for unknown names.
    #[inline(always)]
    fn member(&mut self) -> ScanResult<u32> {
        let name = self.cursor.name()?;
        // A name may be written with escapes. Clients never do, so that is tried last.
        let Some(known) = Member::from_bytes(name).or_else(|| escaped(name, Member::from_bytes))
        else {
            self.other_member(name)?;
            return Ok(0);
        };
        match known {
            Member::Uuid => self.uuid()?,
            Member::ParentUuid => self.parent_uuid()?,
            Member::Type => {
                self.parts.kind_name = self.id()?;
                let name = self.parts.kind_name.map(|name| self.cursor.text(name));
                self.parts.kind = name.map_or(EntryKind::Other, |name| {
                    EntryKind::from_bytes(&name.bytes())
                });
            }
            Member::Timestamp => self.parts.timestamp = self.id()?,
            // It links nothing, so it may be there twice.
            Member::Version => {
                self.parts.client_version = self.text_or_skip(1)?;
                return Ok(0);
            }
            Member::SessionId => self.parts.session_id = self.id()?,
            // In a file of a client these two say nothing about the links.
            Member::StreamSessionId => {
                self.parts.stream_session_id = self.text_or_skip(1)?;
                return Ok(0);
            }
            Member::ParentToolUseId => {
                self.parts.parent_tool_use_id = self.text_or_skip(1)?;
                return Ok(0);
            }
            Member::IsSidechain => self.flag(Flags::SIDECHAIN)?,
            Member::Message => {
                let start = self.cursor.pos();
                self.message()?;
                self.parts.message = Some(Span::new(start, self.cursor.pos()));
            }
            Member::Subtype => self.parts.subtype = self.id()?,
            Member::AgentId => self.parts.agent_id = self.id()?,
            Member::IsMeta => self.flag(Flags::META)?,
            Member::TeamName => {
                let team = self.id()?;
                self.parts.flags.set(Flags::TEAM, team.is_some());
            }
            Member::IsCompactSummary => self.flag(Flags::COMPACT_SUMMARY)?,
            Member::IsVisibleInTranscriptOnly => self.flag(Flags::TRANSCRIPT_ONLY)?,
            Member::IsVirtual => self.flag(Flags::VIRTUAL)?,
            Member::IsApiErrorMessage => self.flag(Flags::API_ERROR)?,
            Member::Explicit => self.flag(Flags::EXPLICIT)?,
            Member::Imported => {
                let is_object = self.cursor.peek() == b'{';
                self.cursor.skip_value(1)?;
                self.parts.flags.set(Flags::IMPORTED, is_object);
            }
            Member::LeafUuid => self.parts.leaf_uuid = self.text_or_skip(1)?,
            Member::RequestId => self.parts.request_id = self.text_or_skip(1)?,
            Member::LogicalParentUuid => self.parts.logical_parent_uuid = self.id()?,
            Member::SourceToolAssistantUuid => self.parts.source_tool_assistant_uuid = self.id()?,
            Member::Attachment => {
                self.forget_others(KeyPlace::Attachment);
                self.parts.attachment_type = self.inner_type(Some(KeyPlace::Attachment))?;
            }
            Member::Data => self.parts.progress_type = self.inner_type(None)?,
        }
        Ok(1 << known as u32)
    }

    /// Reads the entry's id. The flags distinguish the kinds of invalid ids: the client treats all
    /// entries with `null` as one entry, and all without a uuid as another.
    #[inline(always)]
    fn uuid(&mut self) -> ScanResult {
        let first = self.cursor.peek();
        self.parts.uuid = self.id()?;
        let missing = match (self.parts.uuid, first) {
            (Some(_), _) => Flags::empty(),
            (None, b'n') => Flags::UUID_NULL,
            (None, b'"') => Flags::UUID_EMPTY,
            (None, _) => Flags::UUID_ODD,
        };
        // The member may be repeated; the last value counts, and so do its flags.
        self.parts.flags -= Flags::UUID_NULL | Flags::UUID_EMPTY | Flags::UUID_ODD;
        self.parts.flags |= missing;
        Ok(())
    }

    /// Reads the parent's id. For the client `null`, `false` and the empty string mark a root (FILE-9).
    #[inline(always)]
    fn parent_uuid(&mut self) -> ScanResult {
        // The first byte shows the kind of value; the span alone does not tell an empty string from `null`.
        let first = self.cursor.peek();
        self.parts.parent_uuid = self.id()?;
        let is_empty = first == b'"' && self.parts.parent_uuid.is_none();
        let flags = &mut self.parts.flags;
        flags.set(Flags::PARENT_ABSENT | Flags::PARENT_EMPTY, is_empty);
        flags.set(Flags::PARENT_ODD, !matches!(first, b'"' | b'n' | b'f'));
        Ok(())
    }

    /// Reads an id or name: a non-empty string. Everything else counts as absent.
    #[inline(always)]
    fn id(&mut self) -> ScanResult<Option<Span>> {
        match self.cursor.peek() {
            b'"' => Ok(Some(self.cursor.string()?).filter(|span| !span.is_empty())),
            byte => {
                // `null` is how clients write an absent id; any other value is worth a finding.
                if byte != b'n' {
                    self.parts.flags |= Flags::ODD_VALUE;
                    self.cursor.skip_value(1)?;
                    return Ok(None);
                }
                self.cursor.scalar()?;
                Ok(None)
            }
        }
    }

    /// Reads a flag; only `true` sets it.
    #[inline(always)]
    fn flag(&mut self, flag: Flags) -> ScanResult {
        let first = self.cursor.peek();
        if !matches!(first, b't' | b'f' | b'n') {
            self.parts.flags |= Flags::ODD_VALUE;
        }
        self.cursor.skip_value(1)?;
        // Set or cleared: a repeated member overrides the one before.
        self.parts.flags.set(flag, first == b't');
        Ok(())
    }

    /// Reads the `type` of an object inside the entry. Its other names are kept for `place`.
    #[inline(always)]
    fn inner_type(&mut self, place: Option<KeyPlace>) -> ScanResult<Option<Span>> {
        if self.cursor.peek() != b'{' {
            self.cursor.skip_value(1)?;
            return Ok(None);
        }
        let mut kind = None;
        let mut more = self.cursor.open_object()?;
        while more {
            let (name, known) = self.inner_name()?;
            match known {
                Some(Inner::Type) => kind = self.text_or_skip(2)?,
                _ => {
                    if let Some(place) = place {
                        self.other(place, name);
                    }
                    self.cursor.skip_value(2)?;
                }
            }
            more = self.cursor.more(b'}')?;
        }
        Ok(kind)
    }

    #[inline(always)]
    fn text_or_skip(&mut self, depth: u32) -> ScanResult<Option<Span>> {
        // Values of other types are skipped without a finding: newer clients may write them.
        if self.cursor.peek() == b'"' {
            return self.cursor.string().map(Some);
        }
        self.cursor.skip_value(depth)?;
        Ok(None)
    }

    #[inline(always)]
    fn message(&mut self) -> ScanResult {
        self.parts.message_id = None;
        self.parts.stop_reason = None;
        // `message` may be repeated; only the last one counts.
        self.forget_content(ContentKind::NoMessage);
        self.forget_others(KeyPlace::Message);
        if self.cursor.peek() != b'{' {
            return self.cursor.skip_value(1);
        }
        self.parts.content = ContentKind::Null;
        let mut members = 0;
        let mut more = self.cursor.open_object()?;
        while more {
            members += 1;
            let (name, known) = self.inner_name()?;
            match known {
                Some(Inner::Id) => self.parts.message_id = self.text_or_skip(2)?,
                Some(Inner::ContentKind) => self.content()?,
                Some(Inner::StopReason) => self.parts.stop_reason = self.text_or_skip(2)?,
                _ => {
                    self.other(KeyPlace::Message, name);
                    self.cursor.skip_value(2)?;
                }
            }
            more = self.cursor.more(b'}')?;
        }
        self.check_parts(members);
        Ok(())
    }

    fn check_parts(&mut self, parts: usize) {
        // The line is an entry all the same, with its links: only its body is not read.
        if parts > MAX_PARTS {
            self.parts.flags |= Flags::TOO_MANY;
        }
    }

    fn forget_content(&mut self, content: ContentKind) {
        self.parts.content = content;
        self.parts.last_text = None;
        self.parts.flags -= Flags::HAS_TEXT
            | Flags::HAS_THINKING
            | Flags::HAS_TOOL_USE
            | Flags::HAS_TOOL_RESULT
            | Flags::HAS_OTHER_BLOCK;
        // Tools of content that does not count would connect entries that have nothing in common.
        self.tools.clear();
    }

    #[inline(always)]
    fn content(&mut self) -> ScanResult {
        self.forget_content(ContentKind::Odd);
        match self.cursor.peek() {
            b'"' => {
                self.parts.content = ContentKind::Text;
                self.parts.flags |= Flags::HAS_TEXT;
                self.parts.last_text = Some(self.cursor.string()?);
                Ok(())
            }
            // Blocks are read here although they are content: their calls and results connect entries.
            b'[' => {
                self.parts.content = ContentKind::Blocks;
                let mut blocks = 0;
                let mut more = self.cursor.open_array()?;
                while more {
                    blocks += 1;
                    self.cursor.skip_space();
                    self.block()?;
                    more = self.cursor.more(b']')?;
                }
                self.check_parts(blocks);
                Ok(())
            }
            byte => {
                if byte == b'n' {
                    self.parts.content = ContentKind::Null;
                }
                self.cursor.skip_value(2)
            }
        }
    }

    /// Reads one element of the content: its type, and the id that links a call to its result.
    #[inline(always)]
    fn block(&mut self) -> ScanResult {
        if self.cursor.peek() != b'{' {
            self.parts.flags |= Flags::HAS_OTHER_BLOCK;
            return self.cursor.skip_value(3);
        }
        let (mut kind, mut id, mut tool_use_id) = (None, None, None);
        let (mut name, mut text) = (None, None);
        let mut members = 0;
        let mut more = self.cursor.open_object()?;
        while more {
            members += 1;
            match self.inner_name()?.1 {
                Some(Inner::Type) => kind = self.text_or_skip(4)?,
                Some(Inner::Id) => id = self.text_or_skip(4)?,
                Some(Inner::ToolUseId) => tool_use_id = self.text_or_skip(4)?,
                Some(Inner::Name) => name = self.text_or_skip(4)?,
                Some(Inner::Text) => text = self.text_or_skip(4)?,
                _ => self.cursor.skip_value(4)?,
            }
            more = self.cursor.more(b'}')?;
        }
        let kind = kind.map(|kind| self.cursor.text(kind).bytes());
        let (flag, role, id) = match kind.as_deref().unwrap_or_default() {
            b"text" => (Flags::HAS_TEXT, None, None),
            b"thinking" | b"redacted_thinking" => (Flags::HAS_THINKING, None, None),
            b"tool_use" => (Flags::HAS_TOOL_USE, Some(ToolRole::Use), id),
            b"tool_result" => (Flags::HAS_TOOL_RESULT, Some(ToolRole::Result), tool_use_id),
            b"server_tool_use" | b"mcp_tool_use" => {
                (Flags::HAS_OTHER_BLOCK, Some(ToolRole::ServerUse), id)
            }
            other if other.ends_with(b"_tool_result") => (
                Flags::HAS_OTHER_BLOCK,
                Some(ToolRole::ServerResult),
                tool_use_id,
            ),
            _ => (Flags::HAS_OTHER_BLOCK, None, None),
        };
        self.parts.flags |= flag;
        if members > MAX_PARTS {
            // Nothing but the type and the ids of such a block is read.
            name = None;
        } else if flag == Flags::HAS_TEXT {
            self.parts.last_text = text;
        }
        if let (Some(role), Some(id)) = (role, id) {
            self.tools.push(ToolSpan { role, id, name });
        }
        Ok(())
    }

    /// Reads the name of a member of an object inside the entry, and looks it up.
    #[inline(always)]
    fn inner_name(&mut self) -> ScanResult<(&'l [u8], Option<Inner>)> {
        let name = self.cursor.name()?;
        let known = Inner::from_bytes(name).or_else(|| escaped(name, Inner::from_bytes));
        Ok((name, known))
    }
}

/// Looks up a name that may contain escapes. Known names are plain ASCII.
#[inline(always)]
fn escaped<T>(name: &[u8], look_up: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
    // `id`, the shortest one, has seven bytes when one of them is escaped.
    if name.len() < 7 || !name.contains(&b'\\') {
        return None;
    }
    look_up(&Text::new(name).bytes())
}

macro_rules! names {
    ($(#[$doc:meta])* $Enum:ident { $($len:literal: $($Name:ident = $text:literal)+;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        enum $Enum {
            $($($Name,)*)*
        }

        impl $Enum {
            // The length is compared first: most names of a line are not in the list.
            #[inline(always)]
            fn from_bytes(name: &[u8]) -> Option<Self> {
                match name.len() {
                    $($len => match name {
                        $($text => Some(Self::$Name),)*
                        _ => None,
                    },)*
                    _ => None,
                }
            }
        }
    };
}

names! {
    /// The members of an entry that the envelope reads.
    Member {
        4: Uuid = b"uuid" Type = b"type" Data = b"data";
        6: IsMeta = b"isMeta";
        7: Message = b"message" Subtype = b"subtype" AgentId = b"agentId" Version = b"version";
        8: TeamName = b"teamName" Explicit = b"explicit" LeafUuid = b"leafUuid"
            Imported = b"imported";
        9: Timestamp = b"timestamp" SessionId = b"sessionId" IsVirtual = b"isVirtual" RequestId = b"requestId";
        10: ParentUuid = b"parentUuid" Attachment = b"attachment" StreamSessionId = b"session_id";
        11: IsSidechain = b"isSidechain";
        16: IsCompactSummary = b"isCompactSummary";
        17: IsApiErrorMessage = b"isApiErrorMessage" LogicalParentUuid = b"logicalParentUuid";
        18: ParentToolUseId = b"parent_tool_use_id";
        23: SourceToolAssistantUuid = b"sourceToolAssistantUUID";
        25: IsVisibleInTranscriptOnly = b"isVisibleInTranscriptOnly";
    }
}

names! {
    /// The members of a message and of its blocks that the envelope reads.
    Inner {
        2: Id = b"id";
        4: Type = b"type" Name = b"name" Text = b"text";
        7: ContentKind = b"content";
        11: ToolUseId = b"tool_use_id" StopReason = b"stop_reason";
    }
}
