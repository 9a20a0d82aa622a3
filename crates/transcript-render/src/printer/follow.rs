//! Prints conversations while they are written: each entry as it arrives, results below their calls.

mod label;
mod open_calls;

use std::collections::HashMap;
use std::io::{self, Write};
use std::mem;
use std::path::{Path, PathBuf};

use transcript_format::finding::Finding;
use transcript_format::names::agent_of;
use transcript_format::object::Raw;
use transcript_format::tool_result::ToolUseResult;
use transcript_format::units::grouped;
use transcript_reader::{EntryNo, Index, Preserved};
use transcript_resume::items::ItemKind;

use super::{PrintState, RenderItem, RenderItems, TextPrinter};
use crate::Result;
use crate::blocks::input;
use crate::conversation::{CompactionPosition, salvaged};
use crate::options::{RenderOptions, Tools};
use crate::parsed_entry::ParsedEntry;
use label::Label;
use open_calls::{OpenCall, OpenCalls};

/// Prints the events of one or several sessions.
///
/// Keeps only the state that later output depends on: a little for each session, and the inputs of open calls.
pub struct FollowPrinter<'o> {
    printer: TextPrinter<'o>,
    scope: FollowScope,
    states: HashMap<ConversationKey, ConversationState>,
    /// The conversation that was printed last.
    last: Option<ConversationKey>,
}

/// The scope of the output: one session or several, subagents, whole turns.
#[derive(Clone, Copy, Debug)]
pub struct FollowScope {
    /// Whether there may be several sessions, so that each needs a label.
    pub several: bool,
    /// Whether subagents are printed.
    pub sidechains: bool,
    /// Whether whole turns are printed, so that totals can be computed.
    pub whole_turns: bool,
}

/// An event of a followed file that is not an entry.
#[derive(Clone, Copy, Debug)]
pub enum FileEvent<'e> {
    /// The file exists, perhaps again.
    Opened,
    /// A line is damaged.
    Damaged(&'e Finding),
    /// The file became shorter; it is printed again.
    Truncated,
    /// Another file took its name; it is printed from its start.
    Replaced,
    /// The file was removed.
    Gone {
        /// The bytes of a last line that was never completed.
        torn: u64,
    },
}

/// A change of a conversation by an entry.
#[derive(Clone, Copy, Debug)]
pub enum Change<'e> {
    /// It does not follow the previous leaf.
    Moved {
        /// The previous leaf.
        from: Option<&'e str>,
        /// The entry that both follow; `None` for a new root.
        fork: Option<&'e str>,
    },
    /// It removed an entry.
    Tombstoned {
        /// The removed entry.
        uuid: &'e str,
    },
    /// The turn is over.
    TurnEnded,
}

/// An entry that was just written.
#[derive(Clone, Copy)]
pub struct NewEntry<'e> {
    /// Its text.
    pub parsed: &'e ParsedEntry<'e>,
    /// Its line in the file, if known.
    pub line: Option<u64>,
    /// Whether it was salvaged from a damaged line.
    pub is_salvaged: bool,
    /// Whether it belongs to a subagent in the file of another conversation.
    pub is_of_agent: bool,
    /// Whether it is printed. If not, its calls are recorded: their results may be wanted.
    pub is_wanted: bool,
    /// Its changes of the conversation.
    pub changes: &'e [Change<'e>],
}

/// Identifies a conversation: that of a file, or of a subagent in it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ConversationKey {
    path: PathBuf,
    agent: Option<String>,
}

/// The state of a printed conversation.
struct ConversationState {
    label: Label,
    /// The number of conversations that were known before.
    number: usize,
    printed: PrintState,
    cwd: Option<String>,
    calls: OpenCalls,
    /// The last printed call, and the number of lines on the page at that time.
    under: Option<(String, u64)>,
    /// The last printed damaged line.
    damaged: Option<u64>,
}

impl<'o> FollowPrinter<'o> {
    /// Prints the entries of `scope`.
    pub fn new(out: &'o mut dyn Write, options: &RenderOptions, scope: FollowScope) -> Self {
        let mut printer = TextPrinter::new(out, options);
        printer.push_names();
        Self {
            printer,
            scope,
            states: HashMap::new(),
            last: None,
        }
    }

    /// Prints an event of the file at `path` that is not an entry.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn event(&mut self, path: &Path, event: FileEvent<'_>) -> Result<()> {
        let key = ConversationKey::of_file(path);
        // The lines that are printed next are not those of the states, with their open calls and times.
        if let FileEvent::Truncated | FileEvent::Replaced = event {
            self.states.retain(|state, _| state.path != path);
        }
        let is_known = self.states.contains_key(&key);
        self.print_in(key, None, |follow_printer, state| match event {
            // A new file is announced by its label.
            FileEvent::Opened if is_known => follow_printer.printer.marker("the file exists again"),
            FileEvent::Opened => Ok(()),
            FileEvent::Damaged(finding) => {
                // An entry that is salvaged from this line needs no second note about it.
                state.damaged = finding.line;
                follow_printer.printer.marker(&bad(finding))
            }
            FileEvent::Truncated => follow_printer
                .printer
                .marker("the file became shorter; printing it again from its start"),
            FileEvent::Replaced => follow_printer
                .printer
                .marker("the file was replaced; printing the new one from its start"),
            FileEvent::Gone { torn } => follow_printer.printer.marker(&gone(torn)),
        })
    }

    /// Prints an entry of the file at `path`, or of a subagent in it.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn entry(&mut self, path: &Path, entry: NewEntry<'_>) -> Result<()> {
        let mut key = ConversationKey::of_file(path);
        if entry.is_of_agent {
            // The file of a session can have entries of subagents, too. Each subagent is a conversation with a label of
            // its own.
            let agent = entry.parsed.entry_ref().and_then(|one| one.agent());
            key.agent = Some(agent.unwrap_or_default().to_owned());
        }
        self.print_in(key, Some(entry.parsed), |follow_printer, state| {
            // A move is printed above the entry that moved the conversation, all other changes below the entry.
            for change in entry.changes {
                follow_printer.moved(*change)?;
            }
            follow_printer.items(state, entry)?;
            for change in entry.changes {
                follow_printer.changed(*change)?;
            }
            if !follow_printer.scope.whole_turns {
                follow_printer.printer.printed.turn = None;
            }
            Ok(())
        })
    }

    /// Prints the totals of unfinished turns. Called at the end of the output.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn finish(&mut self) -> Result<()> {
        let mut open: Vec<_> = self.states.iter().collect();
        open.retain(|(key, state)| state.printed.turn.is_some() && key.is_of_file());
        // The map has no order; the totals come in the order in which the conversations started.
        open.sort_by_key(|(_, state)| state.number);
        let open: Vec<_> = open.into_iter().map(|(key, _)| key.clone()).collect();
        for key in open {
            self.print_in(key, None, |follow_printer, _| {
                follow_printer.printer.end_turn()
            })?;
        }
        Ok(())
    }

    /// Prints a part of one conversation, below its label if another conversation was printed before.
    fn print_in(
        &mut self,
        key: ConversationKey,
        parsed: Option<&ParsedEntry<'_>>,
        print: impl FnOnce(&mut Self, &mut ConversationState) -> Result<()>,
    ) -> Result<()> {
        let number = self.states.len();
        // Taken out of the map, because printing needs both the printer and the state.
        let known = self.states.remove(&key);
        let mut state = known.unwrap_or_else(|| ConversationState::new(&key, number));
        if let Some(parsed) = parsed {
            state.label.learn(parsed);
        }
        // A single session does not need a label.
        let may_be_other = self.scope.several || self.scope.sidechains && key.agent.is_some();
        let is_only_conversation = !may_be_other && self.last.is_none() && key.is_of_file();
        // Events of several files alternate. Below a label the speaker is named again, even if it is the same as before.
        if self.last.as_ref() != Some(&key) && !is_only_conversation {
            state.printed.speaker = None;
            let style = self.printer.styles.label(state.number);
            let label = state.label.line(style);
            self.printer.page.label(Some(label));
        }
        self.exchange(&mut state);
        let before = self.printer.page.lines();
        let printed = print(self, &mut state);
        self.exchange(&mut state);
        self.printer.page.label(None);
        // An entry of which nothing is shown does not end the part of another conversation, so that needs no new label.
        if self.printer.page.lines() > before {
            self.last = Some(key.clone());
        }
        self.states.insert(key, state);
        printed
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.printer.page.flush()
    }

    fn exchange(&mut self, state: &mut ConversationState) {
        mem::swap(&mut self.printer.printed, &mut state.printed);
        mem::swap(&mut self.printer.cwd, &mut state.cwd);
    }

    fn items(&mut self, state: &mut ConversationState, new: NewEntry<'_>) -> Result<()> {
        let (parsed, wanted) = (new.parsed, new.is_wanted);
        let conversation = parsed.conversation()?;
        let mut render_items = RenderItems::new(&conversation);
        for (place, item) in conversation.display.items().iter().enumerate() {
            let mut rendered = render_items.at(place)?;
            rendered.line = new.line;
            if place == 0 {
                let is_known = rendered.line.is_some() && rendered.line == state.damaged;
                if wanted && new.is_salvaged && !is_known {
                    self.printer.marker(&salvaged(rendered.line))?;
                }
                // Also for entries that are not wanted: totals of a turn count all of its entries.
                self.printer.note_entry(rendered);
            }
            match item.kind() {
                ItemKind::Call => self.call(state, rendered, wanted)?,
                // Also for results that are not wanted, or their calls would stay open for ever.
                ItemKind::Result => match state.calls.close(&result_id(rendered)) {
                    Some(call) if wanted => self.result(state, &call, rendered)?,
                    None if wanted => {
                        // A fast tool can finish before the line of its call is written. The result is printed at once and, when
                        // the call is known, a second time below the call.
                        state.calls.keep_early(&result_id(rendered), parsed.text());
                        self.printer.item(rendered)?;
                    }
                    _ => {}
                },
                ItemKind::Compaction => self.compaction(state, rendered, parsed, wanted)?,
                _ if wanted => self.other(state, rendered, parsed)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn call(
        &mut self,
        state: &mut ConversationState,
        rendered: RenderItem<'_>,
        wanted: bool,
    ) -> Result<()> {
        let block = rendered.loaded.block();
        let object = block.as_ref().and_then(|block| block.raw().object());
        let text = |name: &str| object.as_ref().and_then(|object| object.str(name));
        let (id, tool) = (text("id"), text("name").unwrap_or_default());
        let input = block.as_ref().and_then(input);
        if wanted {
            self.printer.call(&tool, input)?;
        }
        let Some(id) = id else { return Ok(()) };
        if wanted {
            state.under = Some((id.to_string(), self.printer.page.lines()));
        }
        let about = self.printer.call_summary(&tool, input).join(" ⏎ ");
        let called = rendered.entry_ref.millis();
        state
            .calls
            .open(OpenCall::new(&id, &tool, &about, called), input);
        match state.calls.take_early(&id) {
            Some(result) => self.early_result(state, &id, &result),
            None => Ok(()),
        }
    }

    /// Prints a result that was written before its call a second time, after the call: how to show
    /// it depends on the call.
    fn early_result(&mut self, state: &mut ConversationState, id: &str, text: &str) -> Result<()> {
        let parsed = ParsedEntry::read(text)?;
        let conversation = parsed.conversation()?;
        let mut render_items = RenderItems::new(&conversation);
        for (place, item) in conversation.display.items().iter().enumerate() {
            if item.kind() != ItemKind::Result {
                continue;
            }
            let rendered = render_items.at(place)?;
            if result_id(rendered) == id
                && let Some(call) = state.calls.close(id)
            {
                self.result(state, &call, rendered)?;
            }
        }
        Ok(())
    }

    fn result(
        &mut self,
        state: &mut ConversationState,
        call: &OpenCall,
        rendered: RenderItem<'_>,
    ) -> Result<()> {
        let is_printed = self.printer.options.tools != Tools::None;
        if is_printed {
            if !self.is_under(state, &call.id) {
                // Something was printed since the call, so the result names it again.
                self.printer.call_again(&call.tool, &call.about)?;
            }
            self.printer.page.indent(2);
        }
        if !self.scope.sidechains
            && let Some(agent) = started(rendered)
        {
            self.printer.hidden_agent(&agent)?;
        }
        let input = call.input.as_deref();
        let input = input.and_then(|text| Raw::parse(text).ok());
        self.printer
            .answer(&call.tool, rendered, input, call.millis)?;
        if is_printed {
            self.printer.page.pop();
            state.under = Some((call.id.clone(), self.printer.page.lines()));
        }
        Ok(())
    }

    /// Prints an item that is neither a call nor a result. An item that belongs to the call above
    /// is indented below it.
    fn other(
        &mut self,
        state: &mut ConversationState,
        rendered: RenderItem<'_>,
        parsed: &ParsedEntry<'_>,
    ) -> Result<()> {
        let call = parsed.names_call();
        let call = call.filter(|call| self.is_under(state, call));
        let Some(call) = call.filter(|_| self.printer.options.tools != Tools::None) else {
            return self.printer.item(rendered);
        };
        self.printer.page.indent(2);
        self.printer.item(rendered)?;
        self.printer.page.pop();
        state.under = Some((call.to_owned(), self.printer.page.lines()));
        Ok(())
    }

    /// Returns whether nothing was printed since this call or its result.
    fn is_under(&self, state: &ConversationState, call: &str) -> bool {
        let lines = self.printer.page.lines();
        let under = state.under.as_ref();
        under.is_some_and(|(under, at)| under == call && *at == lines)
    }

    /// Prints a boundary from its own fields; the preserved entries are not looked up.
    fn compaction(
        &mut self,
        state: &mut ConversationState,
        rendered: RenderItem<'_>,
        parsed: &ParsedEntry<'_>,
        wanted: bool,
    ) -> Result<()> {
        // The conversation continues from the summary, so calls from before the boundary get no results.
        state.calls.clear();
        if !wanted {
            return Ok(());
        }
        let kept = kept(parsed.index());
        let compaction = rendered.compaction.map(|compaction| {
            let mut said = compaction.clone();
            // Facts that need the path are unknown here: only one entry at a time is read.
            (said.kept, said.is_keeping_ignored, said.hidden) = (kept, false, None);
            said
        });
        self.printer.item(RenderItem {
            compaction: compaction.as_ref(),
            place: CompactionPosition::Within,
            ..rendered
        })
    }

    /// Prints a note above an entry that does not follow the previous leaf.
    fn moved(&mut self, change: Change<'_>) -> Result<()> {
        let Change::Moved { from, fork } = change else {
            return Ok(());
        };
        self.printer.end_turn()?;
        let left = from.map(|from| format!(", leaving {}", short(from)));
        let start = match fork {
            Some(fork) => format!("continues from {}", short(fork)),
            None => "starts a new root".to_owned(),
        };
        let text = format!("another branch: {start}{}", left.unwrap_or_default());
        self.printer.marker(&text)
    }

    /// Prints the other changes that an entry made, after the entry itself.
    fn changed(&mut self, change: Change<'_>) -> Result<()> {
        match change {
            Change::Tombstoned { uuid } => {
                let text = format!("entry {} was tombstoned", short(uuid));
                self.printer.marker(&text)
            }
            // A result may still arrive.
            Change::TurnEnded => self.printer.end_turn(),
            Change::Moved { .. } => Ok(()),
        }
    }
}

impl ConversationKey {
    fn of_file(path: &Path) -> Self {
        let name = path.file_name().and_then(|name| name.to_str());
        Self {
            path: path.to_owned(),
            agent: name.and_then(agent_of).map(str::to_owned),
        }
    }

    /// Returns whether this is the conversation of a file, and not of a subagent in the file of
    /// another one.
    fn is_of_file(&self) -> bool {
        Self::of_file(&self.path) == *self
    }
}

impl ConversationState {
    fn new(key: &ConversationKey, number: usize) -> Self {
        Self {
            label: Label::new(&key.path, key.agent.as_deref(), key.is_of_file()),
            number,
            printed: PrintState::default(),
            cwd: None,
            calls: OpenCalls::default(),
            under: None,
            damaged: None,
        }
    }
}

/// Returns the id of the call that a result belongs to.
fn result_id(rendered: RenderItem<'_>) -> String {
    let raw = rendered.loaded.raw().and_then(Raw::object);
    let id = raw.and_then(|raw| raw.str("tool_use_id"));
    id.unwrap_or_default().into_owned()
}

/// Returns the id of the subagent that a result reports on.
fn started(rendered: RenderItem<'_>) -> Option<String> {
    let Some(ToolUseResult::Object(object)) = rendered.loaded.tool_use_result() else {
        return None;
    };
    let agent = object.str("agentId").filter(|agent| !agent.is_empty())?;
    Some(agent.into_owned())
}

/// Returns the number of entries that a boundary preserves, by its own fields.
fn kept(index: &Index) -> u32 {
    let boundary = index.boundary(EntryNo::default());
    match boundary.map(|boundary| &boundary.preserved) {
        Some(Preserved::List { uuids, .. }) => u32::try_from(uuids.len()).unwrap_or(u32::MAX),
        _ => 0,
    }
}

/// Shortens an id to its start, which distinguishes the entries of a session.
fn short(id: &str) -> String {
    id.chars().take(8).collect()
}

/// Describes a finding without quoting the line.
fn bad(finding: &Finding) -> String {
    let line = finding.line.map(|line| format!("line {line}: "));
    format!(
        "{}{} ({}) · {} bytes at byte {}",
        line.unwrap_or_default(),
        finding.detail,
        finding.code.as_str(),
        grouped(finding.len),
        grouped(finding.offset),
    )
}

fn gone(torn: u64) -> String {
    match torn {
        0 => "the file is gone".to_owned(),
        torn => format!("the file is gone · {} bytes of a torn line", grouped(torn)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "/p/-home-ada/0a1b2c3d-0000-4000-8000-000000000001.jsonl";
    const TWO: &str = "/p/-home-bob/5e6f7a8b-0000-4000-8000-000000000002.jsonl";
    const AGENT: &str =
        "/p/-home-ada/0a1b2c3d-0000-4000-8000-000000000001/subagents/agent-x1.jsonl";

    /// Returns the text of a page after `print`.
    fn page(several: bool, print: impl FnOnce(&mut FollowPrinter<'_>)) -> String {
        let mut out = Vec::new();
        let options = RenderOptions::new().width(60);
        let scope = FollowScope {
            several,
            sidechains: true,
            whole_turns: true,
        };
        print(&mut FollowPrinter::new(&mut out, &options, scope));
        String::from_utf8(out).unwrap()
    }

    fn print(follow_printer: &mut FollowPrinter<'_>, path: &str, lines: &str) {
        for (number, text) in (1..).zip(lines.lines()) {
            let parsed = ParsedEntry::read(text).unwrap();
            let entry = NewEntry {
                parsed: &parsed,
                line: Some(number),
                is_salvaged: false,
                is_of_agent: false,
                is_wanted: true,
                changes: &[],
            };
            follow_printer.entry(path.as_ref(), entry).unwrap();
        }
    }

    #[cfg(debug_assertions)]
    #[test]
    fn a_line_is_parsed_once_however_many_blocks_it_has() {
        use transcript_format::work;
        let cost = |blocks: usize| {
            let block = r#"{"type":"text","text":"words"}"#;
            let content = vec![block; blocks].join(",");
            let line = format!(
                r#"{{"type":"assistant","uuid":"a","message":{{"role":"assistant","content":[{content}]}}}}"#
            );
            let before = work::done();
            page(false, |follow_printer| print(follow_printer, ONE, &line));
            (work::done() - before) / line.len() as u64
        };
        let (few, many) = (cost(20), cost(2_000));
        assert!(many <= 2 * few.max(10), "{few} and {many} times its length");
    }

    fn said(text: &str) -> String {
        format!(
            r#"{{"type":"assistant","uuid":"{text}","cwd":"/home/ada/tides","message":{{"role":"assistant","content":"{text}"}}}}"#
        )
    }

    #[test]
    fn a_label_is_printed_where_another_session_starts() {
        let shown = page(true, |follow_printer| {
            print(follow_printer, ONE, &said("A1."));
            print(follow_printer, ONE, &said("A2."));
            // These print nothing.
            follow_printer
                .event(TWO.as_ref(), FileEvent::Opened)
                .unwrap();
            print(follow_printer, TWO, r#"{"type":"mode","mode":"normal"}"#);
            print(follow_printer, ONE, &said("A3."));
            print(follow_printer, AGENT, &said("B1."));
            print(
                follow_printer,
                TWO,
                r#"{"type":"custom-title","customTitle":"Tides"}"#,
            );
            print(follow_printer, TWO, &said("C1."));
            print(follow_printer, ONE, &said("A4."));
        });
        insta::assert_snapshot!(shown);
    }

    #[test]
    fn a_single_session_has_no_label() {
        let shown = page(false, |follow_printer| {
            print(follow_printer, ONE, &said("Alone."));
        });
        assert_eq!(shown, "assistant  Alone.\n");
    }

    #[test]
    fn file_events_are_markers() {
        let shown = page(false, |follow_printer| {
            let mut event = |event| follow_printer.event(ONE.as_ref(), event).unwrap();
            event(FileEvent::Opened);
            event(FileEvent::Gone { torn: 0 });
            event(FileEvent::Opened);
            event(FileEvent::Truncated);
            event(FileEvent::Replaced);
            event(FileEvent::Gone { torn: 1234 });
            event(FileEvent::Damaged(&Finding {
                code: transcript_format::finding::Code::Nul,
                line: None,
                offset: 12_345,
                len: 4096,
                detail: "the line holds NUL bytes",
            }));
        });
        insta::assert_snapshot!(shown);
    }

    #[test]
    fn changes_of_the_conversation_are_printed() {
        let shown = page(false, |follow_printer| {
            let calls = r#"{"type":"user","uuid":"u","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"Go."}}
{"type":"assistant","uuid":"a","timestamp":"2026-01-01T00:00:02Z","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":7,"output_tokens":2}}}"#;
            print(follow_printer, ONE, calls);
            let mut state = follow_printer
                .states
                .remove(&ConversationKey::of_file(ONE.as_ref()))
                .unwrap();
            follow_printer.exchange(&mut state);
            follow_printer.changed(Change::TurnEnded).unwrap();
            assert!(state.calls.close("t").is_some());
            follow_printer.changed(Change::TurnEnded).unwrap();
            for (from, fork) in [(Some("1a2b3c4d-0000"), Some("5e6f7a8b-0000")), (None, None)] {
                follow_printer.moved(Change::Moved { from, fork }).unwrap();
            }
            let uuid = "\u{1b}[2J-0000";
            follow_printer.changed(Change::Tombstoned { uuid }).unwrap();
        });
        insta::assert_snapshot!(shown);
    }

    #[test]
    fn a_result_before_its_call_is_printed_at_once_and_again_under_the_call() {
        let result = r#"{"type":"user","uuid":"r","timestamp":"2026-01-01T00:00:05Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"The file has been updated."}]},"toolUseResult":{"structuredPatch":[{"newStart":1,"lines":["-old","+new"]}]}}"#;
        let call = r#"{"type":"assistant","uuid":"a","timestamp":"2026-01-01T00:00:02Z","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Edit","input":{"file_path":"tides.rs"}}]}}"#;
        let shown = page(false, |follow_printer| {
            print(follow_printer, ONE, &format!("{result}\n{call}"));
        });
        insta::assert_snapshot!(shown);
    }
}
