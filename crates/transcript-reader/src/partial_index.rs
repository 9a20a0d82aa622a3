//! The index of consecutive lines, which the indexes of a file are made of.

use memchr::memmem;
use transcript_format::author::Author;
use transcript_format::client_version::ClientVersion;
use transcript_format::finding::{Code, Finding};
use transcript_format::ids::Uuid;
use transcript_format::kind::{EntryKind, Link, SystemKind};
use transcript_format::lines::{Framed, Line};
use transcript_format::metadata::TranscriptEngine;
use transcript_format::object::{Object, Raw};
use transcript_format::salvage;
use transcript_format::scan::{Envelope, Flags, ScanError, ScanErrorKind, Scanner, Text};
use transcript_format::tags::Tag;
use transcript_format::texts;
use transcript_format::time;

use crate::index::{
    Boundary, EntryMarks, EntryNo, Id, Index, NO_TIME, Preserved, Record, SideTables, ToolEnd,
    message_hash,
};
use crate::interner::Interner;

/// The index of some consecutive lines. Line numbers are relative to the first of them.
#[derive(Debug, Default)]
pub(crate) struct PartialIndex {
    pub(crate) records: Vec<Record>,
    pub(crate) tools: Vec<ToolEnd>,
    pub(crate) side: SideTables,
    pub(crate) boundaries: Vec<Boundary>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) lines: u64,
    pub(crate) blank_lines: u64,
}

impl PartialIndex {
    pub(crate) fn add(&mut self, framed: Framed<'_>, scanner: &mut Scanner) {
        self.lines += 1;
        match framed {
            Framed::TooLong { offset, len, .. } => {
                self.find(
                    Code::TooLong,
                    Some(self.lines),
                    offset,
                    len,
                    "longer than the line limit",
                );
            }
            Framed::Line(line) => self.add_line(line, scanner),
        }
    }

    /// Adds an undamaged line that a newline ends and that `envelope` is the scan of.
    pub(crate) fn add_entry(&mut self, line: Line<'_>, envelope: &Envelope<'_>) {
        self.lines += 1;
        let len = line.bytes.len();
        self.push(envelope, line.offset, line.bytes, len, EntryMarks::empty());
    }

    /// Adds the entry that the client reads from a line, and the findings about the line.
    fn add_line(&mut self, line: Line<'_>, scanner: &mut Scanner) {
        // The client reads the first line without its mark (FILE-4); the offset of the entry is after the mark.
        if let Some(unmarked) = without_mark(line, scanner) {
            let detail = "a byte order mark precedes the first line";
            self.find(Code::Bom, Some(self.lines), 0, unmarked.offset, detail);
            return self.add_line(unmarked, scanner);
        }
        let mut marks = EntryMarks::empty();
        marks.set(EntryMarks::UNTERMINATED, !line.terminated);
        let error = match scanner.scan(line.bytes) {
            Ok(envelope) => {
                if !line.terminated {
                    self.find_line(Code::Unterminated, line, "no newline ends the last line");
                }
                return self.push(&envelope, line.offset, line.bytes, line.bytes.len(), marks);
            }
            Err(error) => error,
        };
        match error.kind {
            // Blank lines mean nothing (FILE-5).
            ScanErrorKind::Blank => self.blank_lines += 1,
            // The client reads the first object and loses the rest (FILE-2); the salvage looks at the rest later.
            ScanErrorKind::Trailing => {
                self.find_glued(line, error.at);
                if let Ok(envelope) = scanner.scan_first(line.bytes) {
                    let end = envelope.end();
                    self.push(
                        &envelope,
                        line.offset,
                        line.bytes,
                        end,
                        marks | EntryMarks::GLUED,
                    );
                }
            }
            ScanErrorKind::Utf8 => {
                self.find_line(Code::Utf8, line, error.kind.reason());
                self.add_lossy(line, scanner, marks | EntryMarks::LOSSY);
            }
            _ => self.find_line(code_of(error, line), line, error.kind.reason()),
        }
    }

    /// Adds a line with bytes that are not UTF-8. As in the client, they become U+FFFD (FILE-3).
    fn add_lossy(&mut self, line: Line<'_>, scanner: &mut Scanner, marks: EntryMarks) {
        let text = String::from_utf8_lossy(line.bytes);
        if let Ok(envelope) = scanner.scan(text.as_bytes()) {
            if !line.terminated {
                self.find_line(Code::Unterminated, line, "no newline ends the last line");
            }
            return self.push(
                &envelope,
                line.offset,
                text.as_bytes(),
                line.bytes.len(),
                marks,
            );
        }
        // The end has to be found in the bytes of the file: U+FFFD takes three bytes, so offsets in the text are others.
        if let Ok(envelope) = scanner.scan_first(text.as_bytes())
            && let Some(end) = salvage::end_of_object(line.bytes)
        {
            self.find_glued(line, end);
            self.push(
                &envelope,
                line.offset,
                text.as_bytes(),
                end,
                marks | EntryMarks::GLUED,
            );
        }
    }

    /// Adds an object of the current line (number `self.lines`). `text` is the scanned text, `len`
    /// the number of bytes that the object takes in the file.
    pub(crate) fn push(
        &mut self,
        envelope: &Envelope<'_>,
        offset: u64,
        text: &[u8],
        len: usize,
        mut marks: EntryMarks,
    ) {
        let kind = envelope.kind();
        let odd = &mut self.side.odd_ids;
        let (uuid, uuid_marks) = pack(envelope.uuid(), odd, EntryMarks::UUID, EntryMarks::ODD_UUID);
        let (link, link_marks) = match kind.row().link {
            Link::Tombstones => self.take_tombstones(&text[..envelope.end()]),
            Link::Leaf => pack(
                envelope.leaf_uuid(),
                odd,
                EntryMarks::LINK,
                EntryMarks::ODD_LINK,
            ),
            _ => pack(
                envelope.parent_uuid(),
                odd,
                EntryMarks::LINK,
                EntryMarks::ODD_LINK,
            ),
        };
        let millis = envelope
            .timestamp()
            .and_then(|time| time::millis(&time.bytes()));
        marks |= uuid_marks | link_marks;
        let version = envelope.client_version();
        let version = version.and_then(|version| ClientVersion::parse(version.raw()));
        // The last version that a line names: where versions of the client differ, that one resumes the session.
        self.side.client_version = version.or(self.side.client_version);
        // All tool ends are in one list, each record has its start there: a list for each record would be an allocation.
        let tools = self.tools.len() as u32;
        self.tools.extend(
            envelope
                .tools()
                .map(|tool| ToolEnd::new(tool.role, &tool.id.bytes())),
        );
        let sub = envelope.sub_code();
        if kind == EntryKind::System && sub == SystemKind::CompactBoundary as u8 {
            self.push_boundary(envelope, &text[..envelope.end()]);
        }
        let mut report = |flag: Flags, code, detail| {
            if envelope.flags().contains(flag) {
                self.findings.push(Finding {
                    code,
                    line: Some(self.lines),
                    offset,
                    len: len as u64,
                    detail,
                });
            }
        };
        report(
            Flags::LONE_SURROGATE,
            Code::Surrogate,
            "unpaired surrogate escape, read as U+FFFD",
        );
        report(
            Flags::NUL_ESCAPE,
            Code::NulEscape,
            "a string holds U+0000 as an escape",
        );
        report(
            Flags::TOO_MANY,
            Code::TooMany,
            "more members or blocks than are read; the content is neither shown nor sent",
        );
        let odd_shape = if envelope.flags().contains(Flags::DUPLICATE_NAME) {
            Some("a known key appears more than once; the last value counts")
        } else if envelope.flags().contains(Flags::ODD_VALUE) {
            Some("a known key has a value of an unexpected type and is ignored")
        } else {
            None
        };
        if let Some(detail) = odd_shape {
            self.find(Code::Shape, Some(self.lines), offset, len as u64, detail);
        }
        let place = (self.lines, offset, len as u64);
        self.side.unknown_keys.add(envelope, place);
        self.records.push(Record {
            uuid,
            link,
            offset,
            time: millis.unwrap_or(NO_TIME),
            message: message_hash(
                envelope.message_id().map(|id| id.bytes()).as_deref(),
                envelope.request_id().map(|id| id.bytes()).as_deref(),
            ),
            len: len as u32,
            line: u32::try_from(self.lines).unwrap_or(u32::MAX),
            flags: envelope.flags() | automatic(envelope, &text[..envelope.end()]),
            tools,
            session: number(envelope.session_id(), &mut self.side.sessions),
            agent: number(envelope.agent_id(), &mut self.side.agents),
            kind,
            sub,
            marks,
            content: envelope.content(),
        });
    }

    /// Returns the first target of a tombstone line, as a link, and keeps the others. Later versions
    /// may add fields to such a line, but not change the meaning of these.
    fn take_tombstones(&mut self, text: &[u8]) -> (u128, EntryMarks) {
        let text = String::from_utf8_lossy(text);
        let Some(line) = Object::parse(&text).ok().map(TranscriptEngine::from) else {
            return (0, EntryMarks::empty());
        };
        let listed = line.tombstones().unwrap_or_default();
        let named = line.tombstone().into_iter().chain(listed);
        let odd = &mut self.side.odd_ids;
        let named = named.filter(|named| !named.is_empty());
        let mut named = named.map(|named| intern(&named, odd));
        // The first one fits into the link of the record, which has no parent; a side table has the others.
        let Some(first) = named.next() else {
            return (0, EntryMarks::empty());
        };
        let number = self.records.len() as u32;
        let more = named.map(|id| (number, id));
        self.side.more_tombstones.extend(more);
        self.side.has_tombstones = true;
        pack_id(first, EntryMarks::LINK, EntryMarks::ODD_LINK)
    }

    fn push_boundary(&mut self, envelope: &Envelope<'_>, text: &[u8]) {
        let odd = &mut self.side.odd_ids;
        let text = String::from_utf8_lossy(text);
        let metadata = Object::parse(&text)
            .ok()
            .and_then(|entry| entry.get("compactMetadata")?.object());
        let [list, segment] = ["preservedMessages", "preservedSegment"]
            .map(|name| metadata.as_ref()?.get(name)?.object());
        let logical_parent = envelope.logical_parent_uuid();
        self.boundaries.push(Boundary {
            entry_no: EntryNo::new(self.records.len()),
            logical_parent: logical_parent.map(|id| intern(&id.decode(), odd)),
            preserved: preserved(list.as_ref(), segment.as_ref(), odd),
            ends: ["headUuid", "tailUuid"].map(|name| id_at(segment.as_ref()?, name, odd)),
            segment_anchor: segment
                .as_ref()
                .and_then(|segment| id_at(segment, "anchorUuid", odd)),
        });
    }

    /// Reports the bytes of a line from `at` on, which follow its first object.
    fn find_glued(&mut self, line: Line<'_>, at: usize) {
        let rest = Line {
            offset: line.offset + at as u64,
            bytes: &line.bytes[at..],
            ..line
        };
        self.find_line(Code::Glued, rest, ScanErrorKind::Trailing.reason());
    }

    fn find_line(&mut self, code: Code, line: Line<'_>, detail: &'static str) {
        self.find(
            code,
            Some(self.lines),
            line.offset,
            line.bytes.len() as u64,
            detail,
        );
    }

    pub(crate) fn find(
        &mut self,
        code: Code,
        line: Option<u64>,
        offset: u64,
        len: u64,
        detail: &'static str,
    ) {
        self.findings.push(Finding {
            code,
            line,
            offset,
            len,
            detail,
        });
    }
}

/// Returns the first line without its byte order mark, if it can be read that way. A second mark is
/// not removed (FILE-4).
fn without_mark<'l>(line: Line<'l>, scanner: &mut Scanner) -> Option<Line<'l>> {
    let bytes = line.bytes.strip_prefix(BYTE_ORDER_MARK)?;
    // A mark is one only at the start of the file (FILE-4).
    if line.offset > 0 {
        return None;
    }
    let is_read = match scanner.scan_first(bytes) {
        Ok(_) => true,
        Err(error) => error.kind == ScanErrorKind::Utf8,
    };
    is_read.then_some(Line {
        offset: BYTE_ORDER_MARK.len() as u64,
        bytes,
        ..line
    })
}

/// U+FEFF in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Returns the finding code for a line that does not scan.
fn code_of(error: ScanError, line: Line<'_>) -> Code {
    let first = line.bytes.first();
    match error.kind {
        _ if first == Some(&0) => Code::Nul,
        _ if line.offset == 0 && line.bytes.starts_with(BYTE_ORDER_MARK) => Code::Bom,
        ScanErrorKind::NotObject => Code::NotObject,
        ScanErrorKind::Control => Code::Control,
        ScanErrorKind::Depth => Code::Depth,
        _ if !line.terminated => Code::TornTail,
        _ => Code::TornMid,
    }
}

/// Returns [`Flags::AUTOMATIC`] for a user entry that a client wrote by itself, as far as the line
/// says so: by its author, or by its text.
fn automatic(envelope: &Envelope<'_>, line: &[u8]) -> Flags {
    let is_prompt =
        envelope.kind() == EntryKind::User && !envelope.flags().contains(Flags::HAS_TOOL_RESULT);
    if !is_prompt {
        return Flags::empty();
    }
    let author = || {
        // A search is cheaper than a parse, and many lines name no author.
        let has = |name: &[u8]| memmem::find(line, name).is_some();
        let is_named = has(b"\"origin\"") || has(b"\"rowSource\"") || has(b"\"promptSource\"");
        let line = str::from_utf8(line).ok().filter(|_| is_named);
        let line = line.and_then(|line| Object::parse(line).ok());
        line.map_or(Author::Unknown, |line| Author::of(&line))
    };
    let is_text_of_client = |text: Text<'_>| {
        let raw = text.raw();
        starts_with_tag_of_client(raw)
            || raw
                .first()
                .is_none_or(|first| texts::may_start_with(*first))
                && texts::is_synthetic(&text.decode())
    };
    let is_automatic = envelope.flags().contains(Flags::META)
        || match author() {
            Author::Other => true,
            // A person may quote a message of the client.
            Author::Person => false,
            _ => envelope.last_text().is_some_and(is_text_of_client),
        };
    if is_automatic {
        Flags::AUTOMATIC
    } else {
        Flags::empty()
    }
}

/// Returns whether a text, as JSON has it, starts with the tag of a message that a client writes in
/// place of a person, or of output.
fn starts_with_tag_of_client(raw: &[u8]) -> bool {
    let Some(rest) = raw.strip_prefix(b"<") else {
        return false;
    };
    // A note for the memory is typed.
    let messages = Tag::MESSAGES
        .iter()
        .filter(|tag| **tag != Tag::UserMemoryInput);
    let mut tags = messages.chain(Tag::PRINTED);
    tags.any(|tag| {
        let rest = rest.strip_prefix(tag.name().as_bytes());
        rest.is_some_and(|rest| matches!(rest.first(), Some(b'>' | b' ' | b'=')))
    })
}

fn preserved(
    list: Option<&Object<'_>>,
    segment: Option<&Object<'_>>,
    odd: &mut Interner,
) -> Preserved {
    // The client only knows the names as written on disk, not their snake_case forms.
    if let Some(list) = list
        && let Some(uuids) = list.get("uuids").and_then(Raw::array)
    {
        let mut id = |uuid: Raw<'_>| Some(intern(&uuid.str()?, odd));
        return Preserved::List {
            uuids: uuids.into_iter().map(&mut id).collect(),
            anchor: id_at(list, "anchorUuid", odd),
        };
    }
    segment.map_or(Preserved::Nothing, |segment| Preserved::Segment {
        anchor: id_at(segment, "anchorUuid", odd),
    })
}

fn id_at(object: &Object<'_>, name: &str, odd: &mut Interner) -> Option<Id> {
    Some(intern(&object.get(name)?.str()?, odd))
}

fn intern(text: &str, odd: &mut Interner) -> Id {
    match Uuid::parse(text.as_bytes()) {
        Some(uuid) => Id::Uuid(uuid),
        None => Id::Odd(odd.number(text)),
    }
}

fn pack(
    text: Option<Text<'_>>,
    odd: &mut Interner,
    there: EntryMarks,
    is_odd: EntryMarks,
) -> (u128, EntryMarks) {
    let Some(text) = text else {
        return (0, EntryMarks::empty());
    };
    // Without decoding: a canonical uuid has no escapes, and nearly all ids are canonical.
    if let Some(uuid) = Uuid::parse(text.raw()) {
        return (uuid.0, there);
    }
    pack_id(intern(&text.decode(), odd), there, is_odd)
}

fn pack_id(id: Id, there: EntryMarks, is_odd: EntryMarks) -> (u128, EntryMarks) {
    match id {
        Id::Uuid(uuid) => (uuid.0, there),
        Id::Odd(number) => (u128::from(number), there | is_odd),
    }
}

/// Renumbers names in file order, after they were numbered in another order.
pub(crate) fn renumber<'r>(names: &mut Interner, numbers: impl Iterator<Item = &'r mut u16>) {
    let old = std::mem::take(names);
    for number in numbers.filter(|number| **number != 0) {
        let name = old.get(u32::from(*number) - 1);
        *number = u16::try_from(names.number(name) + 1).unwrap_or(0);
    }
}

/// Returns the number of a name plus one; 0 for none. Files with more than 65,535 names do not
/// exist in practice; the further names are treated as absent.
fn number(text: Option<Text<'_>>, names: &mut Interner) -> u16 {
    let Some(text) = text else { return 0 };
    let number = names
        .last(&text.bytes())
        .unwrap_or_else(|| names.number(&text.decode()));
    u16::try_from(number + 1).unwrap_or(0)
}

/// Appends the index of the lines that follow those of `index`, except for
/// [`Index::uuids`](Index).
pub(crate) fn append(index: &mut Index, part: PartialIndex) {
    // The first part, or the only one, has the right numbers already.
    if index.lines == 0 {
        return put(index, part);
    }
    let renumber = |names: &Interner, all: &mut Interner| -> Vec<u32> {
        names.texts().map(|text| all.number(text)).collect()
    };
    let odd = renumber(&part.side.odd_ids, &mut index.side.odd_ids);
    let sessions = renumber(&part.side.sessions, &mut index.side.sessions);
    let agents = renumber(&part.side.agents, &mut index.side.agents);
    let narrow = |number: u16, all: &[u32]| match number.checked_sub(1) {
        None => 0,
        Some(number) => u16::try_from(all[usize::from(number)] + 1).unwrap_or(0),
    };
    let rename = |id: Id| match id {
        Id::Odd(number) => Id::Odd(odd[number as usize]),
        uuid => uuid,
    };
    let (first_record, first_tool, first_line) =
        (index.records.len(), index.tools.len(), index.lines);

    index
        .records
        .extend(part.records.into_iter().map(|mut record| {
            record.line = u32::try_from(first_line + u64::from(record.line)).unwrap_or(u32::MAX);
            record.tools += first_tool as u32;
            // Each thread numbered names by its own lines: in the index they are numbered in file order.
            record.session = narrow(record.session, &sessions);
            record.agent = narrow(record.agent, &agents);
            if record.marks.contains(EntryMarks::ODD_UUID) {
                record.uuid = u128::from(odd[record.uuid as usize]);
            }
            if record.marks.contains(EntryMarks::ODD_LINK) {
                record.link = u128::from(odd[record.link as usize]);
            }
            record
        }));
    index.tools.extend(part.tools);
    index.side.has_tombstones |= part.side.has_tombstones;
    let more = part.side.more_tombstones.into_iter();
    let more = more.map(|(number, id)| (number + first_record as u32, rename(id)));
    index.side.more_tombstones.extend(more);
    index.side.client_version = part.side.client_version.or(index.side.client_version);
    let unknown_keys = part.side.unknown_keys;
    index.side.unknown_keys.append(unknown_keys, first_line);
    index
        .boundaries
        .extend(part.boundaries.into_iter().map(|mut boundary| {
            boundary.entry_no = EntryNo::new(first_record + boundary.entry_no.get());
            boundary.logical_parent = boundary.logical_parent.map(rename);
            boundary.ends = boundary.ends.map(|end| end.map(rename));
            boundary.segment_anchor = boundary.segment_anchor.map(rename);
            match &mut boundary.preserved {
                Preserved::Nothing => {}
                Preserved::List { anchor, uuids } => {
                    uuids
                        .iter_mut()
                        .chain([anchor])
                        .for_each(|id| *id = id.map(rename));
                }
                Preserved::Segment { anchor } => *anchor = anchor.map(rename),
            }
            boundary
        }));
    index
        .findings
        .extend(part.findings.into_iter().map(|mut finding| {
            finding.line = finding.line.map(|line| line + first_line);
            finding
        }));
    // Last: the numbers of all lines above start from the count before.
    index.lines += part.lines;
    index.blank_lines += part.blank_lines;
}

/// Returns the parts of an index that a [`PartialIndex`] has, and leaves none.
pub(crate) fn take(index: &mut Index) -> PartialIndex {
    PartialIndex {
        records: std::mem::take(&mut index.records),
        tools: std::mem::take(&mut index.tools),
        side: std::mem::take(&mut index.side),
        boundaries: std::mem::take(&mut index.boundaries),
        findings: std::mem::take(&mut index.findings),
        lines: index.lines,
        blank_lines: index.blank_lines,
    }
}

/// Sets the parts of an index that a [`PartialIndex`] has.
pub(crate) fn put(index: &mut Index, part: PartialIndex) {
    index.records = part.records;
    index.tools = part.tools;
    index.side = part.side;
    index.boundaries = part.boundaries;
    index.findings = part.findings;
    index.lines = part.lines;
    index.blank_lines = part.blank_lines;
}
