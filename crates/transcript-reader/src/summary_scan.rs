//! Scans the first and the last lines of a file for a summary of the session.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::LazyLock;

use memchr::memmem;
use transcript_format::compact::CompactMetadata;
use transcript_format::content::{Block, Content, Message};
use transcript_format::context_refs;
use transcript_format::kind::{EntryKind, SystemKind};
use transcript_format::lines::{BackwardFramer, DEFAULT_LINE_CAP, Framed, Framer, Line};
use transcript_format::object::Object;
use transcript_format::salvage::{objects, repaired_text};
use transcript_format::scan::{Envelope, Flags, Scanner, ToolRole};
use transcript_format::texts::is_synthetic;
use transcript_format::title::TitleSource;

use crate::message_text::question;
use crate::prompt::{Prompt, shorten};
use crate::session_state::SessionState;

/// The summary of the first lines.
#[derive(Debug, Default)]
pub(crate) struct HeadScan {
    pub(crate) cwd: Option<String>,
    pub(crate) created: Option<String>,
    pub(crate) entrypoint: Option<String>,
    /// For entries of the conversation, and for those of subagents in the same file.
    main: FirstPrompt,
    sidechain: FirstPrompt,
}

/// The start of a conversation.
#[derive(Debug, Default)]
struct FirstPrompt {
    has_entries: bool,
    /// The first text that a person wrote.
    prompt: Option<String>,
    /// The first slash command.
    command: Option<String>,
}

impl HeadScan {
    /// Reads the lines of `bytes` until all fields are known. A last line without a newline counts
    /// only if the file `ends` there.
    pub(crate) fn read(scanner: &mut Scanner, bytes: &[u8], ends: bool) -> Self {
        let mut head = Self::default();
        let mut framer = Framer::new();
        let mut rest = bytes;
        while !head.is_complete()
            && let Some(framed) = framer.next(&mut rest)
        {
            head.add(scanner, framed);
        }
        // At the end of a window the last line is torn by the window, not by the writer: it is read with the next one.
        if !head.is_complete()
            && ends
            && let Some(framed) = framer.finish()
        {
            head.add(scanner, framed);
        }
        head
    }

    /// Returns whether all fields are known, so that more lines would not change anything.
    fn is_complete(&self) -> bool {
        self.main.prompt.is_some() && self.has_place_and_time()
    }

    /// Returns whether no more lines need to be read. This is weaker than [`Self::is_complete`]: if
    /// these lines have a command but no prompt, the session started with the command; and if all
    /// of them belong to subagents, so does the rest.
    pub(crate) fn is_enough(&self) -> bool {
        let start = self.start();
        (start.prompt.is_some() || start.command.is_some()) && self.has_place_and_time()
    }

    fn has_place_and_time(&self) -> bool {
        self.cwd.is_some() && self.created.is_some()
    }

    /// Returns whether the conversation is that of a subagent.
    pub(crate) fn is_sidechain(&self) -> bool {
        self.sidechain.has_entries && !self.main.has_entries
    }

    /// Returns the first text that a person wrote, else the first slash command.
    pub(crate) fn first_prompt(&self) -> Option<String> {
        let start = self.start();
        start.prompt.clone().or_else(|| start.command.clone())
    }

    fn start(&self) -> &FirstPrompt {
        if self.is_sidechain() {
            &self.sidechain
        } else {
            &self.main
        }
    }

    fn add(&mut self, scanner: &mut Scanner, framed: Framed<'_>) {
        if let Framed::Line(line) = framed {
            for_each_object(scanner, line.bytes, false, |object| self.add_entry(object));
        }
    }

    fn add_entry(&mut self, object: &ScannedEntry<'_>) {
        let entry = &object.entry;
        if self.created.is_none() {
            self.created = entry.timestamp().map(|time| time.decode().into_owned());
        }
        // The search for the name is cheap, the parse of a long line is not; most lines have no field that is still needed.
        if self.cwd.is_none() && has(object.text, &CWD) {
            self.cwd = object.string("cwd").filter(|cwd| !cwd.is_empty());
        }
        if self.entrypoint.is_none() && has(object.text, &ENTRYPOINT) {
            self.entrypoint = object.string("entrypoint");
        }
        let is_sidechain = entry.flags().contains(Flags::SIDECHAIN);
        // A file can start with a subagent although it is a conversation: which of both it is shows only later.
        let start = if is_sidechain {
            &mut self.sidechain
        } else {
            &mut self.main
        };
        start.has_entries |= entry.kind().is_message();
        if start.prompt.is_some() || !is_prompt(entry, is_sidechain) {
            return;
        }
        match object.prompt() {
            Some(Prompt::Text(text)) => start.prompt = Some(text),
            Some(Prompt::Command(name)) if start.command.is_none() => start.command = Some(name),
            _ => {}
        }
    }
}

/// Returns the working folders that the lines of `bytes` name, each once, in the order of the lines.
pub(crate) fn folders(scanner: &mut Scanner, bytes: &[u8]) -> Vec<String> {
    let mut folders: Vec<String> = Vec::new();
    let (mut framer, mut rest) = (Framer::new(), bytes);
    while let Some(framed) = framer.next(&mut rest) {
        let Framed::Line(line) = framed else {
            continue;
        };
        if !has(line.bytes, &CWD) {
            continue;
        }
        for_each_object(scanner, line.bytes, false, |object| {
            let cwd = object.string("cwd").filter(|cwd| !cwd.is_empty());
            folders.extend(cwd.filter(|cwd| !folders.contains(cwd)));
        });
    }
    folders
}

/// Returns those of `wanted` that are uuids of entries in `bytes`.
pub(crate) fn uuids(
    scanner: &mut Scanner,
    bytes: &[u8],
    wanted: &HashSet<&str>,
) -> HashSet<String> {
    let mut found = HashSet::new();
    let (mut framer, mut rest) = (Framer::new(), bytes);
    let mut see = |framed: Framed<'_>| {
        let Framed::Line(line) = framed else {
            return;
        };
        for_each_object(scanner, line.bytes, false, |object| {
            let uuid = object.entry.uuid().map(|uuid| uuid.decode().into_owned());
            found.extend(uuid.filter(|uuid| wanted.contains(uuid.as_str())));
        });
    };
    while let Some(framed) = framer.next(&mut rest) {
        see(framed);
    }
    if let Some(framed) = framer.finish() {
        see(framed);
    }
    found
}

/// Returns the first prompt among the lines of `bytes` as a whole.
pub(crate) fn whole_first_prompt(bytes: &[u8]) -> Option<String> {
    let (mut scanner, mut framer) = (Scanner::new(), Framer::new());
    let (mut rest, mut prompt) = (bytes, None);
    while prompt.is_none()
        && let Some(framed) = framer.next(&mut rest)
    {
        let Framed::Line(line) = framed else {
            continue;
        };
        for_each_object(&mut scanner, line.bytes, false, |object| {
            let is_side = object.entry.flags().contains(Flags::SIDECHAIN);
            if prompt.is_none() && is_prompt(&object.entry, is_side) {
                prompt = object.parsed().and_then(Prompt::whole);
            }
        });
    }
    prompt
}

/// Returns the session that the first entry of `bytes` names.
pub(crate) fn session_id(bytes: &[u8]) -> Option<String> {
    let mut scanner = Scanner::new();
    let mut rest = bytes;
    let mut framer = Framer::new();
    while let Some(framed) = framer.next(&mut rest) {
        if let Framed::Line(line) = framed
            && let Ok(entry) = scanner.scan(line.bytes)
            && let Some(id) = entry.session_id()
        {
            return Some(id.decode().into_owned());
        }
    }
    None
}

/// Session state; for each field the last line counts.
#[derive(Debug, Default)]
pub(crate) struct SettingsScan {
    /// The last text of each kind that lists read.
    texts: Vec<(EntryKind, String)>,
    /// The texts of `summary` lines with their leaves, the last line first.
    pub(crate) summaries: Vec<(String, String)>,
    pub(crate) branch: Option<String>,
    /// The folder that the session had before it entered a worktree, if it is in one.
    before_worktree: Option<Option<String>>,
}

impl SettingsScan {
    /// Reads the complete lines of `bytes`; the last line may be cut.
    pub(crate) fn read(scanner: &mut Scanner, bytes: &[u8]) -> Self {
        let mut settings = Self::default();
        // The window of the caller may end within a line.
        let whole = memchr::memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        backward(&bytes[..whole], 0, |line| {
            settings.add_line(scanner, line.bytes);
            true
        });
        settings
    }

    /// Returns the last title of a person among the complete lines of `bytes`, of which only those are read that may have
    /// one.
    pub(crate) fn last_title(scanner: &mut Scanner, bytes: &[u8]) -> Option<String> {
        let mut settings = Self::default();
        let mut end = bytes.len();
        while settings.text(EntryKind::CustomTitle).is_none() {
            let at = memmem::rfind(&bytes[..end], CUSTOM_TITLE_TYPE)?;
            let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |newline| newline + 1);
            // Without a line feed the line is still being written.
            let line_end = memchr::memchr(b'\n', &bytes[at..]).map(|newline| at + newline);
            if let Some(line_end) = line_end {
                settings.add_line(scanner, &bytes[start..line_end]);
            }
            // Each line is read once, however often it has the name.
            end = start;
        }
        settings.take(EntryKind::CustomTitle)
    }

    /// Returns the text of the last line of a kind that has one. It is empty where that clears what
    /// earlier lines gave.
    pub(crate) fn text(&self, kind: EntryKind) -> Option<&str> {
        let text = self.texts.iter().find(|(known, _)| *known == kind);
        text.map(|(_, text)| text.as_str())
    }

    /// Takes that text.
    pub(crate) fn take(&mut self, kind: EntryKind) -> Option<String> {
        let at = self.texts.iter().position(|(known, _)| *known == kind)?;
        Some(self.texts.swap_remove(at).1)
    }

    /// Adds the text of an earlier line of a kind, unless one is known.
    pub(crate) fn or_text(&mut self, kind: EntryKind, text: impl FnOnce() -> Option<String>) {
        if self.text(kind).is_none() {
            self.texts.extend(text().map(|text| (kind, text)));
        }
    }

    /// Fills unknown fields from those of earlier lines.
    pub(crate) fn or(mut self, earlier: Self) -> Self {
        self.summaries.extend(earlier.summaries);
        for (kind, text) in earlier.texts {
            self.or_text(kind, || Some(text));
        }
        Self {
            summaries: self.summaries,
            texts: self.texts,
            branch: self.branch.or(earlier.branch),
            before_worktree: self.before_worktree.or(earlier.before_worktree),
        }
    }

    /// Takes the folder that the session had before it entered the worktree in which it is.
    pub(crate) fn before_worktree(&mut self) -> Option<String> {
        self.before_worktree.take().flatten()
    }

    /// Adds a line; lines are added from the last to the first. Most lines are entries without any
    /// of these fields, and start as all clients write them: those are not scanned.
    fn add_line(&mut self, scanner: &mut Scanner, line: &[u8]) {
        if starts_other_entry(line) && !self.wants(line) {
            return;
        }
        for_each_object(scanner, line, true, |object| self.add(object));
    }

    /// Returns whether a line that starts like another entry may have an unknown field.
    fn wants(&self, line: &[u8]) -> bool {
        self.branch.is_none() && has(line, &BRANCH) || ends_in_setting(line)
    }

    fn add(&mut self, object: &ScannedEntry<'_>) {
        if self.branch.is_none() && has(object.text, &BRANCH) {
            self.branch = object.string("gitBranch").filter(|name| !name.is_empty());
        }
        let kind = object.entry.kind();
        if kind.row().title == Some(TitleSource::Summary) {
            // All of them: most are of other conversations, and the caller looks for the leaf of each in the file.
            let summary = object.text().zip(object.string("leafUuid"));
            return self.summaries.extend(summary);
        }
        if kind == EntryKind::WorktreeState {
            let original = |line: &Object<'_>| {
                let worktree = line.object("worktreeSession")?;
                Some(worktree.str("originalCwd")?.into_owned())
            };
            // A line without a worktree counts, too: the session has left it, and earlier lines say nothing any more.
            let folder = || object.parsed().and_then(original);
            self.before_worktree.get_or_insert_with(folder);
            return;
        }
        if kind.row().is_listed {
            self.or_text(kind, || object.text());
        }
    }
}

/// The summary of the last lines.
#[derive(Debug, Default)]
pub(crate) struct TailScan {
    pub(crate) settings: SettingsScan,
    /// Whether a custom title, even an empty one, is within the range that clients scan (LIST-1).
    pub(crate) title_is_near: bool,
    /// The text of the last `summary` line among the near lines.
    pub(crate) summary: Option<String>,
    /// The last prompt among the near lines.
    pub(crate) prompt: Option<String>,
    /// The time of the last message.
    pub(crate) modified: Option<String>,
    /// Whether the last message is a copy that a fork made.
    pub(crate) is_copied: bool,
    /// The model of the last answer.
    pub(crate) model: Option<String>,
    /// The number of entries that the conversation had at the end of its last turn.
    pub(crate) messages: Option<u64>,
    /// Whether the line with that number was seen.
    has_turn_end: bool,
    end: LastTurn,
}

/// The offsets from which on lines are searched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanRange {
    /// Lines that start here or later are within the range that clients scan.
    pub(crate) near: u64,
    /// Lines that start here or later may hold settings.
    pub(crate) far: u64,
}

impl TailScan {
    /// Adds lines from the last one on, as far as needed. `bytes` starts at offset `start` of the
    /// file, and ends there or where the lines that were added before start.
    pub(crate) fn read(
        &mut self,
        scanner: &mut Scanner,
        bytes: &[u8],
        start: u64,
        reach: ScanRange,
        is_sidechain: bool,
    ) {
        backward(bytes, start, |line| {
            self.add(scanner, &line, reach, is_sidechain)
        });
    }

    /// Returns whether earlier lines would not change anything, except for settings within the far
    /// reach.
    pub(crate) fn is_complete(&self) -> bool {
        self.end.is_done && self.modified.is_some()
    }

    /// Returns whether a title of the person is within the range that clients scan. Clients repeat
    /// their other settings there as well (META-1), so no earlier lines are needed for them.
    pub(crate) fn has_near_title(&self) -> bool {
        let title = self.settings.text(EntryKind::CustomTitle);
        self.title_is_near && title.is_some_and(|title| !title.is_empty())
    }

    pub(crate) fn last_answer(&mut self) -> Option<String> {
        self.end.text.take()
    }

    pub(crate) fn state(&self) -> Option<SessionState> {
        self.end.state()
    }

    /// Returns whether no `last-prompt` line has the last question of the person: there is none, or only
    /// references can be told from it.
    fn asks_nothing(&self) -> bool {
        let prompt = self.settings.text(EntryKind::LastPrompt);
        prompt.is_none_or(context_refs::is_flattened)
    }

    /// Takes the last prompt: that of a `last-prompt` line, else the last one among the near lines.
    pub(crate) fn last_prompt(&mut self) -> Option<String> {
        let found = self.prompt.take();
        let noted = self.settings.take(EntryKind::LastPrompt);
        let noted = noted.map(|text| shorten(&question(&text)));
        match noted {
            Some(text) if context_refs::is_flattened(&text) => found.or(Some(text)),
            noted => noted.or(found),
        }
    }

    /// Adds a line. Returns whether to continue with the previous one.
    fn add(
        &mut self,
        scanner: &mut Scanner,
        line: &Line<'_>,
        reach: ScanRange,
        side: bool,
    ) -> bool {
        let is_near = line.offset >= reach.near;
        let has_settings = is_near || !self.has_near_title() && line.offset >= reach.far;
        if self.is_complete() && !has_settings {
            return false;
        }
        let wants_prompt = is_near && self.prompt.is_none() && self.asks_nothing();
        // Below, nearly all lines of a large file are skipped by such searches: a scan of each would take most of the time.
        let may_be_prompt = || has(line.bytes, &USER) && !has(line.bytes, &RESULT);
        if self.is_complete()
            && starts_other_entry(line.bytes)
            && !self.settings.wants(line.bytes)
            && (self.has_turn_end || !may_be_duration(line.bytes))
            && !(wants_prompt && may_be_prompt())
        {
            return true;
        }
        for_each_object(scanner, line.bytes, true, |object| {
            let entry = &object.entry;
            if has_settings {
                self.settings.add(object);
            }
            let is_summary = entry.kind().row().title == Some(TitleSource::Summary);
            if is_near && self.summary.is_none() && is_summary {
                self.summary = object.text();
            }
            if wants_prompt
                && is_prompt(entry, side)
                && let Some(Prompt::Text(text)) = object.prompt()
            {
                self.prompt = Some(text);
            }
            self.end.add(object, side);
            if self.modified.is_none() && is_message(entry, side) {
                self.modified = entry.timestamp().map(|time| time.decode().into_owned());
                // A fork copies the times of its messages; lists then sort by the time of the file.
                self.is_copied = has(object.text, &FORKED);
            }
            let is_turn_end = entry.kind() == EntryKind::System
                && entry.sub_code() == SystemKind::TurnDuration as u8;
            // Lines come from the last one on: the first one here is that of the last turn.
            if is_turn_end && !self.has_turn_end {
                self.has_turn_end = true;
                self.messages = object.parsed().and_then(|line| line.u64("messageCount"));
            }
            if self.model.is_none()
                && entry.kind() == EntryKind::Assistant
                && is_message(entry, side)
            {
                self.model = object.model();
            }
        });
        self.title_is_near |= is_near && self.settings.text(EntryKind::CustomTitle).is_some();
        true
    }
}

/// The state of the last turn: the last answer and the entries after it, scanned backward.
#[derive(Debug, Default)]
struct LastTurn {
    last: Option<LastEvent>,
    /// The `message.id` of the last answer, once a line of it has been seen.
    answer: Option<Option<Vec<u8>>>,
    /// The ids of calls with a result.
    answered: HashSet<Vec<u8>>,
    /// The text of the last answer, if it decided the state.
    text: Option<String>,
    has_open_call: bool,
    has_question: bool,
    is_done: bool,
}

#[derive(Clone, Copy, Debug)]
enum LastEvent {
    Answer { asks: bool },
    Unfinished,
    Interrupt,
    Compaction { by_itself: bool },
}

impl LastTurn {
    fn state(&self) -> Option<SessionState> {
        if self.has_question {
            return Some(SessionState::Waiting);
        }
        if self.has_open_call {
            return Some(SessionState::OpenCall);
        }
        Some(match self.last? {
            LastEvent::Answer { asks: true } | LastEvent::Interrupt => SessionState::Waiting,
            LastEvent::Answer { asks: false } | LastEvent::Compaction { by_itself: false } => {
                SessionState::Finished
            }
            LastEvent::Unfinished | LastEvent::Compaction { by_itself: true } => {
                SessionState::Stalled
            }
        })
    }

    fn add(&mut self, object: &ScannedEntry<'_>, is_sidechain: bool) {
        let entry = &object.entry;
        if self.is_done {
            return;
        }
        let is_boundary = entry.kind() == EntryKind::System
            && entry.sub_code() == SystemKind::CompactBoundary as u8;
        if is_boundary {
            self.add_boundary(object);
        } else if is_message(entry, is_sidechain) {
            match entry.kind() {
                EntryKind::Assistant => self.add_answer(object),
                _ => self.add_user(object),
            }
        }
    }

    fn add_boundary(&mut self, object: &ScannedEntry<'_>) {
        self.is_done = true;
        if self.last.is_none() {
            let metadata = |line: &Object<'_>| {
                let metadata = line.read::<CompactMetadata<'_>>("compactMetadata")?;
                Some(metadata.trigger()? == "auto")
            };
            // A person who compacts has finished; the client compacts in the middle of a turn, which then never continued.
            let by_itself = object.parsed().and_then(metadata);
            let by_itself = by_itself.unwrap_or(false);
            self.last = Some(LastEvent::Compaction { by_itself });
        }
    }

    fn add_user(&mut self, object: &ScannedEntry<'_>) {
        let entry = &object.entry;
        let results = entry.tools().filter(|tool| tool.role == ToolRole::Result);
        let before = self.answered.len();
        self.answered
            .extend(results.map(|tool| tool.id.bytes().into_owned()));
        // Results do not end the scan: whether calls are open depends on the answer before them.
        if self.answered.len() > before || entry.flags().contains(Flags::HAS_TOOL_RESULT) {
            self.last.get_or_insert(LastEvent::Unfinished);
            return;
        }
        // The boundary is before its summary in the file, and so comes later here: it decides.
        if entry.flags().contains(Flags::COMPACT_SUMMARY) {
            return;
        }
        let last = match object.prompt() {
            Some(Prompt::Interrupt) => LastEvent::Interrupt,
            Some(Prompt::Text(_) | Prompt::Media) => LastEvent::Unfinished,
            _ => return,
        };
        self.is_done = true;
        self.last.get_or_insert(last);
    }

    fn add_answer(&mut self, object: &ScannedEntry<'_>) {
        let entry = &object.entry;
        let id = entry.message_id().map(|id| id.bytes().into_owned());
        // Lines of one answer have its id in common. Without an id, each line is an answer of its own.
        if self
            .answer
            .as_ref()
            .is_some_and(|answer| *answer != id || id.is_none())
        {
            self.is_done = true;
            return;
        }
        if entry.flags().contains(Flags::API_ERROR) {
            self.last.get_or_insert(LastEvent::Unfinished);
            self.is_done = true;
            return;
        }
        let calls = entry.tools().filter(|tool| tool.role == ToolRole::Use);
        let open: Vec<_> = calls
            .map(|call| call.id.bytes().into_owned())
            .filter(|call| !self.answered.contains(call))
            .collect();
        // The text decides only at the end of the turn; a call without a result decides anywhere in the last answer.
        let needs_text = self.last.is_none() && entry.flags().contains(Flags::HAS_TEXT);
        let blocks = if !open.is_empty() || needs_text {
            Blocks::of(object)
        } else {
            Blocks::default()
        };
        if needs_text && blocks.last_text.as_deref().is_some_and(is_synthetic) {
            // The client added this answer to an unanswered turn, so the turn did not end with it.
            return;
        }
        self.answer.get_or_insert(id);
        if let Some(text) = blocks.last_text.as_deref().filter(|_| needs_text) {
            self.text.get_or_insert(shorten(text));
        }
        self.has_open_call |= !open.is_empty();
        self.has_question |= !open.is_empty() && blocks.asks_person;
        let has_answer = Flags::HAS_TEXT | Flags::HAS_OTHER_BLOCK;
        self.last
            .get_or_insert(if entry.flags().intersects(has_answer) {
                let asks = blocks.last_text.as_deref().is_some_and(is_question);
                LastEvent::Answer { asks }
            } else {
                LastEvent::Unfinished
            });
    }
}

/// The content of an answer that decides its state.
#[derive(Default)]
struct Blocks {
    last_text: Option<String>,
    asks_person: bool,
}

impl Blocks {
    fn of(object: &ScannedEntry<'_>) -> Self {
        let mut blocks = Self::default();
        let content = |line: &Object<'_>| {
            match line.read::<Message<'_>>("message")?.content()? {
                Content::Text(text) => blocks.last_text = Some(text.into_owned()),
                Content::Blocks(all) => all.iter().for_each(|block| blocks.add(block)),
                Content::One(_) => {}
            }
            Some(())
        };
        let _ = object.parsed().and_then(content);
        blocks
    }

    fn add(&mut self, block: &Block<'_>) {
        match block {
            Block::Text(block) => {
                let text = block.object().str("text").filter(|text| !text.is_empty());
                self.last_text = text.map(Cow::into_owned);
            }
            Block::ToolUse(call) => {
                self.asks_person |= call.name().is_some_and(|name| is_asking(&name));
            }
            _ => {}
        }
    }
}

/// Returns whether the tool asks the person.
fn is_asking(tool: &str) -> bool {
    matches!(tool, "AskUserQuestion" | "ExitPlanMode")
}

fn is_question(text: &str) -> bool {
    // Markdown and closing quotes may follow the question mark.
    let text = text.trim_end_matches(|c: char| c.is_whitespace() || "*_`)\"'”’»".contains(c));
    text.ends_with(['?', '？', '؟'])
}

/// Returns whether the entry is a message of the conversation that the client did not add.
fn is_message(entry: &Envelope<'_>, is_sidechain: bool) -> bool {
    entry.kind().is_message()
        && !entry.flags().contains(Flags::META)
        && entry.flags().contains(Flags::SIDECHAIN) == is_sidechain
}

/// Returns whether a person may have written the entry.
fn is_prompt(entry: &Envelope<'_>, is_sidechain: bool) -> bool {
    entry.kind() == EntryKind::User
        && is_message(entry, is_sidechain)
        && !entry
            .flags()
            .intersects(Flags::COMPACT_SUMMARY | Flags::HAS_TOOL_RESULT)
}

/// Returns whether the line starts as all clients write entries that are not session state.
fn starts_other_entry(line: &[u8]) -> bool {
    match line.strip_prefix(b"{\"type\":\"").map(kind_of) {
        Some(kind) => !kind.is_state() && !matches!(kind, EntryKind::Summary | EntryKind::Other),
        None => line.starts_with(b"{\"parentUuid\":"),
    }
}

/// Returns whether a metadata object is glued to the end of a torn line. Such objects contain no
/// other object, so the last brace opens it, unless a title contains a brace.
fn ends_in_setting(line: &[u8]) -> bool {
    // One search backward, as this is asked of nearly every line.
    let last = memchr::memrchr(b'{', line).map_or(line, |open| &line[open..]);
    let name = last.strip_prefix(b"{\"type\":\"");
    name.map(kind_of)
        .is_some_and(|kind| kind.is_state() || kind == EntryKind::Summary)
}

/// Returns the kind whose name `text` starts with, up to the quote.
fn kind_of(text: &[u8]) -> EntryKind {
    let end = memchr::memchr(b'"', text).unwrap_or(text.len());
    EntryKind::from_bytes(&text[..end])
}

/// A name, prepared for many searches.
type KeyFinder = LazyLock<memmem::Finder<'static>>;

/// The type of a line with the title of a person.
const CUSTOM_TITLE_TYPE: &[u8] = b"\"custom-title\"";

static BRANCH: KeyFinder = LazyLock::new(|| memmem::Finder::new(br#""gitBranch""#));
static CWD: KeyFinder = LazyLock::new(|| memmem::Finder::new(br#""cwd""#));
static ENTRYPOINT: KeyFinder = LazyLock::new(|| memmem::Finder::new(br#""entrypoint""#));
static FORKED: KeyFinder = LazyLock::new(|| memmem::Finder::new(br#""forkedFrom":{"#));
static DURATION: KeyFinder = LazyLock::new(|| memmem::Finder::new(br#""turn_duration""#));
static MODEL: KeyFinder = LazyLock::new(|| memmem::Finder::new(br#""model":""#));
static CONTENT: KeyFinder = LazyLock::new(|| memmem::Finder::new(br#""content""#));
static RESULT: KeyFinder = LazyLock::new(|| memmem::Finder::new(br#""tool_result""#));
static USER: KeyFinder = LazyLock::new(|| memmem::Finder::new(br#""user""#));

/// Returns whether a line may be the end of a turn; such lines are short.
fn may_be_duration(line: &[u8]) -> bool {
    line.len() < 1024 && has(line, &DURATION)
}

/// Counts the entries of the conversation in a whole file.
pub(crate) fn entries(scanner: &mut Scanner, bytes: &[u8], is_sidechain: bool) -> u64 {
    let mut count = 0;
    backward(bytes, 0, |line| {
        for_each_object(scanner, line.bytes, true, |object| {
            let is_side = object.entry.flags().contains(Flags::SIDECHAIN);
            count += u64::from(object.entry.kind().is_chain() && is_side == is_sidechain);
        });
        true
    });
    count
}

/// Returns whether the line may have this name; a cheap test before a costly one.
fn has(line: &[u8], name: &KeyFinder) -> bool {
    name.find(line).is_some()
}

/// An entry of a line, whose text is parsed when a field is read.
struct ScannedEntry<'l> {
    entry: Envelope<'l>,
    text: &'l [u8],
    object: OnceCell<Option<Object<'l>>>,
}

impl<'l> ScannedEntry<'l> {
    fn scan(scanner: &'l mut Scanner, text: &'l [u8]) -> Option<Self> {
        Some(Self {
            entry: scanner.scan(text).ok()?,
            text,
            object: OnceCell::new(),
        })
    }

    fn parsed(&self) -> Option<&Object<'l>> {
        let parse = || Object::parse(std::str::from_utf8(self.text).ok()?).ok();
        self.object.get_or_init(parse).as_ref()
    }

    /// Returns the text of the line, by the table of kinds.
    fn text(&self) -> Option<String> {
        let text = self.entry.kind().text_of(self.parsed()?)?;
        Some(text.into_owned())
    }

    fn string(&self, key: &str) -> Option<String> {
        Some(self.parsed()?.str(key)?.into_owned())
    }

    /// Returns the model of an answer, unless the client made the answer itself. Clients write it before
    /// the content, where nothing else has that name; only other lines are parsed.
    fn model(&self) -> Option<String> {
        let plain = || {
            let start = MODEL.find(self.text)? + MODEL.needle().len();
            let before = CONTENT.find(&self.text[..start]).is_none();
            let end = memchr::memchr2(b'"', b'\\', &self.text[start..])?;
            let is_plain = before && self.text[start + end] == b'"';
            let model = std::str::from_utf8(&self.text[start..start + end]).ok()?;
            is_plain.then(|| model.to_owned())
        };
        let parsed = || Some(self.parsed()?.object("message")?.str("model")?.into_owned());
        let model = plain().or_else(parsed)?;
        // `<synthetic>`: an answer that the client made, as after an error.
        Some(model).filter(|model| !model.is_empty() && !model.starts_with('<'))
    }

    fn prompt(&self) -> Option<Prompt> {
        self.parsed().map(Prompt::of)
    }
}

/// Passes the lines of `bytes`, which start at offset `start` of the file, to `see`, from the last
/// one on, until it returns false.
fn backward(bytes: &[u8], start: u64, mut see: impl FnMut(Line<'_>) -> bool) {
    let mut framer = BackwardFramer::new(start + bytes.len() as u64, DEFAULT_LINE_CAP);
    let mut rest = bytes;
    while let Some(framed) = framer.next(&mut rest) {
        if let Framed::Line(line) = framed
            && !see(line)
        {
            return;
        }
    }
    if let Some(Framed::Line(line)) = framer.finish() {
        see(line);
    }
}

/// Passes the entry of a line to `see`, or the complete entries of a damaged line.
fn for_each_object(
    scanner: &mut Scanner,
    line: &[u8],
    from_the_end: bool,
    mut see: impl FnMut(&ScannedEntry<'_>),
) {
    if let Some(object) = ScannedEntry::scan(scanner, line) {
        return see(&object);
    }
    // A crash glues the next line to a torn one. The caller that goes backward needs the last object first.
    let mut found = objects(line);
    if from_the_end {
        found.reverse();
    }
    for place in found {
        let text = repaired_text(&line[place]);
        if let Some(object) = ScannedEntry::scan(scanner, text.as_bytes()) {
            see(&object);
        }
    }
}
