//! Tells conversations while they are written: each entry when it comes, results under their calls.

mod calls;
mod label;

use std::collections::HashMap;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};

use anyhow::Result;
use transcript_format::finding::Finding;
use transcript_format::names::agent_of;
use transcript_format::object::Raw;
use transcript_format::tool_result::ToolUseResult;
use transcript_reader::{Index, Preserved};
use transcript_resume::display::ItemKind;
use transcript_tail::{ChangeKind, Entry, Event, Reset};

use super::{Piece, Pieces, Teller, Told, Tools};
use crate::blocks::input;
use crate::conversation::salvaged;
use crate::single::Single;
use crate::story::grouped;
use calls::{Call, Calls};
use label::Label;

/// Tells what happens in one or several sessions.
///
/// It keeps nothing of what was told but how it goes on: a few words a session, and the inputs of the
/// calls that are open.
pub(crate) struct Live<'o> {
    teller: Teller<'o>,
    scope: Scope,
    voices: HashMap<Key, Voice>,
    /// Who was told last.
    last: Option<Key>,
}

/// What is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    /// Whether there may be more than one session: each gets a label.
    pub(crate) several: bool,
    /// Whether what subagents do is told.
    pub(crate) sidechains: bool,
    /// Whether all of a turn is told, so that it can be summed up.
    pub(crate) whole_turns: bool,
}

/// One conversation: that of a file, or of a subagent in it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    path: PathBuf,
    agent: Option<String>,
}

/// How far a conversation was told.
struct Voice {
    label: Label,
    /// How many were known before.
    number: usize,
    told: Told,
    cwd: Option<String>,
    calls: Calls,
    /// The call that was told last, and how many lines the page had then.
    under: Option<(String, u64)>,
    /// The damaged line that was told last.
    damaged: Option<u64>,
}

impl<'o> Live<'o> {
    pub(crate) fn new(mut teller: Teller<'o>, scope: Scope) -> Self {
        teller.push_names();
        Self {
            teller,
            scope,
            voices: HashMap::new(),
            last: None,
        }
    }

    /// Tells an event of the file at `path` that is no entry.
    pub(crate) fn event(&mut self, path: &Path, event: &Event) -> Result<()> {
        let key = Key::of_file(path);
        if let Event::Reset { .. } = event {
            self.voices.retain(|voice, _| voice.path != path);
        }
        let is_known = self.voices.contains_key(&key);
        self.speak(key, None, |live, voice| match event {
            // A new one tells itself by its label.
            Event::Open { .. } if is_known => live.teller.marker("the file is there again"),
            Event::Bad(finding) => {
                voice.damaged = finding.line;
                live.teller.marker(&bad(finding))
            }
            Event::Reset { reason, .. } => live.teller.marker(reset(*reason)),
            Event::Gone { torn, .. } => live.teller.marker(&gone(*torn)),
            _ => Ok(()),
        })
    }

    /// Tells an entry of the file at `path`, or of a subagent in it. One that is not `wanted` is only
    /// looked at: its calls may get results that are.
    pub(crate) fn entry(
        &mut self,
        path: &Path,
        single: &Single<'_>,
        is_of_agent: bool,
        wanted: bool,
    ) -> Result<()> {
        let mut key = Key::of_file(path);
        if is_of_agent {
            let agent = single.candidate().and_then(|one| one.agent());
            key.agent = Some(agent.unwrap_or_default().to_owned());
        }
        self.speak(key, Some(single), |live, voice| {
            let changes = single.entry.changes.iter().map(|change| &change.kind);
            for change in changes.clone() {
                live.moved(change)?;
            }
            live.items(voice, single, wanted)?;
            for change in changes {
                live.changed(change)?;
            }
            if !live.scope.whole_turns {
                live.teller.told.turn = None;
            }
            Ok(())
        })
    }

    /// Sums up the turns that are under way: nothing follows.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let mut open: Vec<_> = self.voices.iter().collect();
        open.retain(|(key, voice)| voice.told.turn.is_some() && key.is_of_file());
        open.sort_by_key(|(_, voice)| voice.number);
        let open: Vec<_> = open.into_iter().map(|(key, _)| key.clone()).collect();
        for key in open {
            self.speak(key, None, |live, _| live.teller.end_turn())?;
        }
        Ok(())
    }

    /// Tells something of one conversation, below its label when another one was told before.
    fn speak(
        &mut self,
        key: Key,
        single: Option<&Single<'_>>,
        tell: impl FnOnce(&mut Self, &mut Voice) -> Result<()>,
    ) -> Result<()> {
        let number = self.voices.len();
        let known = self.voices.remove(&key);
        let mut voice = known.unwrap_or_else(|| Voice::new(&key, number));
        if let Some(single) = single {
            voice.label.learn(single);
        }
        // The first one of a single session needs none.
        let may_be_other = self.scope.several || self.scope.sidechains && key.agent.is_some();
        let is_alone = !may_be_other && self.last.is_none() && key.is_of_file();
        if self.last.as_ref() != Some(&key) && !is_alone {
            voice.told.speaker = None;
            let style = self.teller.styles.label(voice.number);
            let label = voice.label.line(style);
            self.teller.page.label(Some(label));
        }
        self.exchange(&mut voice);
        let before = self.teller.page.lines();
        let told = tell(self, &mut voice);
        self.exchange(&mut voice);
        self.teller.page.label(None);
        if self.teller.page.lines() > before {
            self.last = Some(key.clone());
        }
        self.voices.insert(key, voice);
        told
    }

    /// Writes what was told.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.teller.page.flush()
    }

    fn exchange(&mut self, voice: &mut Voice) {
        mem::swap(&mut self.teller.told, &mut voice.told);
        mem::swap(&mut self.teller.cwd, &mut voice.cwd);
    }

    fn items(&mut self, voice: &mut Voice, single: &Single<'_>, wanted: bool) -> Result<()> {
        let conversation = single.conversation()?;
        let mut pieces = Pieces::new(&conversation);
        for (place, item) in conversation.display.items().iter().enumerate() {
            let mut piece = pieces.at(place)?;
            piece.line = single.entry.line;
            if place == 0 {
                let is_known = piece.line.is_some() && piece.line == voice.damaged;
                if wanted && single.entry.is_salvaged && !is_known {
                    self.teller.marker(&salvaged(piece.line))?;
                }
                if let Some(entry) = piece.drawn.entry() {
                    self.teller.enter(&piece.candidate, &entry);
                }
            }
            match item.kind() {
                ItemKind::Call => self.call(voice, piece, wanted)?,
                ItemKind::Result => match voice.calls.close(&result_id(piece)) {
                    Some(call) if wanted => self.result(voice, &call, piece)?,
                    None if wanted => {
                        voice.calls.keep_early(&result_id(piece), single.entry);
                        self.teller.item(piece)?;
                    }
                    _ => {}
                },
                ItemKind::Compaction => self.compaction(voice, piece, single, wanted)?,
                _ if wanted => self.other(voice, piece, single)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn call(&mut self, voice: &mut Voice, piece: Piece<'_>, wanted: bool) -> Result<()> {
        let block = piece.drawn.block();
        let object = block.as_ref().and_then(|block| block.raw().object());
        let text = |name: &str| object.as_ref().and_then(|object| object.str(name));
        let (id, tool) = (text("id"), text("name").unwrap_or_default());
        let input = block.as_ref().and_then(input);
        if wanted {
            self.teller.call(&tool, input)?;
        }
        let Some(id) = id else { return Ok(()) };
        if wanted {
            voice.under = Some((id.to_string(), self.teller.page.lines()));
        }
        let about = self.teller.about(&tool, input).join(" ⏎ ");
        let called = piece.candidate.millis();
        voice
            .calls
            .open(Call::new(&id, &tool, &about, called), input);
        match voice.calls.take_early(&id) {
            Some(result) => self.early_result(voice, &id, &result),
            None => Ok(()),
        }
    }

    /// Tells a result again that was written before its call: only now it is known what it says.
    fn early_result(&mut self, voice: &mut Voice, id: &str, entry: &Entry) -> Result<()> {
        let single = Single::read(entry)?;
        let conversation = single.conversation()?;
        let mut pieces = Pieces::new(&conversation);
        for (place, item) in conversation.display.items().iter().enumerate() {
            if item.kind() != ItemKind::Result {
                continue;
            }
            let piece = pieces.at(place)?;
            if result_id(piece) == id
                && let Some(call) = voice.calls.close(id)
            {
                self.result(voice, &call, piece)?;
            }
        }
        Ok(())
    }

    fn result(&mut self, voice: &mut Voice, call: &Call, piece: Piece<'_>) -> Result<()> {
        let is_told = self.teller.wanted.tools != Tools::None;
        if is_told {
            if !self.is_under(voice, &call.id) {
                self.teller.call_again(&call.tool, &call.about)?;
            }
            self.teller.page.indent(2);
        }
        if !self.scope.sidechains
            && let Some(agent) = started(piece)
        {
            self.teller.hidden_agent(&agent)?;
        }
        let input = call.input.as_deref();
        let input = input.and_then(|text| Raw::parse(text).ok());
        self.teller.answer(&call.tool, piece, input, call.millis)?;
        if is_told {
            self.teller.page.pop();
            voice.under = Some((call.id.clone(), self.teller.page.lines()));
        }
        Ok(())
    }

    /// What is neither a call nor its result; what belongs to the call above it stands under that.
    fn other(&mut self, voice: &mut Voice, piece: Piece<'_>, single: &Single<'_>) -> Result<()> {
        let call = single.names_call();
        let call = call.filter(|call| self.is_under(voice, call));
        let Some(call) = call.filter(|_| self.teller.wanted.tools != Tools::None) else {
            return self.teller.item(piece);
        };
        self.teller.page.indent(2);
        self.teller.item(piece)?;
        self.teller.page.pop();
        voice.under = Some((call.to_owned(), self.teller.page.lines()));
        Ok(())
    }

    /// Whether nothing was told since this call or its result.
    fn is_under(&self, voice: &Voice, call: &str) -> bool {
        let lines = self.teller.page.lines();
        let under = voice.under.as_ref();
        under.is_some_and(|(under, at)| under == call && *at == lines)
    }

    /// A boundary is told by what it says itself: what it keeps is not looked for.
    fn compaction(
        &mut self,
        voice: &mut Voice,
        piece: Piece<'_>,
        single: &Single<'_>,
        wanted: bool,
    ) -> Result<()> {
        voice.calls.clear();
        if !wanted {
            return Ok(());
        }
        let kept = kept(single.history().index());
        let compaction = piece.compaction.map(|compaction| {
            let mut said = compaction.clone();
            (said.kept, said.is_keeping_ignored, said.hidden) = (kept, false, None);
            said
        });
        self.teller.item(Piece {
            compaction: compaction.as_ref(),
            ..piece
        })
    }

    /// Says above an entry that it does not follow what was told last.
    fn moved(&mut self, change: &ChangeKind) -> Result<()> {
        let ChangeKind::Moved { from, fork, .. } = change else {
            return Ok(());
        };
        self.teller.end_turn()?;
        let left = from
            .as_ref()
            .map(|from| format!(", {} is left", short(from)));
        let goes_on = match fork {
            Some(fork) => format!("goes on from {}", short(fork)),
            None => "starts anew".to_owned(),
        };
        let text = format!("another branch: {goes_on}{}", left.unwrap_or_default());
        self.teller.marker(&text)
    }

    /// What else an entry changed; what it says itself was told.
    fn changed(&mut self, change: &ChangeKind) -> Result<()> {
        match change {
            ChangeKind::Tombstoned { uuid } => {
                let text = format!("entry {} was taken back", short(uuid));
                self.teller.marker(&text)
            }
            // A result may come still.
            ChangeKind::TurnEnded { .. } => self.teller.end_turn(),
            _ => Ok(()),
        }
    }
}

impl Key {
    fn of_file(path: &Path) -> Self {
        let name = path.file_name().and_then(|name| name.to_str());
        Self {
            path: path.to_owned(),
            agent: name.and_then(agent_of).map(str::to_owned),
        }
    }

    /// Whether it is what a file is about, and not a subagent in the file of another conversation.
    fn is_of_file(&self) -> bool {
        Self::of_file(&self.path) == *self
    }
}

impl Voice {
    fn new(key: &Key, number: usize) -> Self {
        Self {
            label: Label::new(&key.path, key.agent.as_deref(), key.is_of_file()),
            number,
            told: Told::default(),
            cwd: None,
            calls: Calls::default(),
            under: None,
            damaged: None,
        }
    }
}

/// The id of the call that a result belongs to.
fn result_id(piece: Piece<'_>) -> String {
    let raw = piece.drawn.raw().and_then(Raw::object);
    let id = raw.and_then(|raw| raw.str("tool_use_id"));
    id.unwrap_or_default().into_owned()
}

/// The subagent that a result is about.
fn started(piece: Piece<'_>) -> Option<String> {
    let Some(ToolUseResult::Object(object)) = piece.drawn.tool_use_result() else {
        return None;
    };
    let agent = object.str("agentId").filter(|agent| !agent.is_empty())?;
    Some(agent.into_owned())
}

/// How many entries a boundary says that it keeps.
fn kept(index: &Index) -> u32 {
    match index.boundary(0).map(|boundary| &boundary.preserved) {
        Some(Preserved::List { uuids, .. }) => u32::try_from(uuids.len()).unwrap_or(u32::MAX),
        _ => 0,
    }
}

/// The start of an id, which tells entries of a session apart.
fn short(id: &str) -> String {
    id.chars().take(8).collect()
}

/// What is wrong with a line, without a word of it.
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

fn reset(reason: Reset) -> &'static str {
    match reason {
        Reset::Truncated => "the file became shorter; it is told from its start again",
        _ => "another file has its place; it is told from its start",
    }
}

fn gone(torn: u64) -> String {
    match torn {
        0 => "the file is gone".to_owned(),
        torn => format!("the file is gone · {} bytes of a torn line", grouped(torn)),
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;
    use crate::screen::Styles;
    use crate::single::entries;
    use crate::tell::Wanted;
    use crate::text::Page;

    const ONE: &str = "/p/-home-ada/0a1b2c3d-0000-4000-8000-000000000001.jsonl";
    const TWO: &str = "/p/-home-bob/5e6f7a8b-0000-4000-8000-000000000002.jsonl";
    const AGENT: &str =
        "/p/-home-ada/0a1b2c3d-0000-4000-8000-000000000001/subagents/agent-x1.jsonl";

    /// What is on a page after `tell`.
    fn page(several: bool, tell: impl FnOnce(&mut Live<'_>)) -> String {
        let mut out = Vec::new();
        let wanted = Wanted {
            thinking: false,
            tools: Tools::Short,
        };
        let page = Page::new(&mut out, 60);
        let teller = Teller::new(Styles::default(), wanted, TimeZone::UTC, page);
        let scope = Scope {
            several,
            sidechains: true,
            whole_turns: true,
        };
        tell(&mut Live::new(teller, scope));
        String::from_utf8(out).unwrap()
    }

    fn tell(live: &mut Live<'_>, path: &str, lines: &str) {
        for entry in entries(lines) {
            let single = Single::read(&entry).unwrap();
            live.entry(path.as_ref(), &single, false, true).unwrap();
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
            let entry = entries(&line).remove(0);
            let before = work::done();
            page(false, |live| {
                let single = Single::read(&entry).unwrap();
                live.entry(ONE.as_ref(), &single, false, true).unwrap();
            });
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
    fn a_label_stands_where_another_session_is_told() {
        let shown = page(true, |live| {
            tell(live, ONE, &said("A1."));
            tell(live, ONE, &said("A2."));
            // Nothing is to be seen of these.
            live.event(TWO.as_ref(), &Event::Open { offset: 0 })
                .unwrap();
            tell(live, TWO, r#"{"type":"mode","mode":"normal"}"#);
            tell(live, ONE, &said("A3."));
            tell(live, AGENT, &said("B1."));
            tell(
                live,
                TWO,
                r#"{"type":"custom-title","customTitle":"Tides"}"#,
            );
            tell(live, TWO, &said("C1."));
            tell(live, ONE, &said("A4."));
        });
        insta::assert_snapshot!(shown);
    }

    #[test]
    fn a_single_session_has_no_label() {
        let shown = page(false, |live| tell(live, ONE, &said("Alone.")));
        assert_eq!(shown, "assistant  Alone.\n");
    }

    #[test]
    fn what_happens_to_a_file_is_a_marker() {
        let shown = page(false, |live| {
            let mut event = |event| live.event(ONE.as_ref(), &event).unwrap();
            event(Event::Open { offset: 0 });
            event(Event::Gone { offset: 9, torn: 0 });
            event(Event::Open { offset: 0 });
            event(Event::Reset {
                reason: Reset::Truncated,
                offset: 900,
            });
            event(Event::Reset {
                reason: Reset::Replaced,
                offset: 900,
            });
            event(Event::Gone {
                offset: 9,
                torn: 1234,
            });
            event(Event::Bad(Finding {
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
    fn what_changes_in_the_conversation_is_told() {
        let shown = page(false, |live| {
            let calls = r#"{"type":"user","uuid":"u","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"Go."}}
{"type":"assistant","uuid":"a","timestamp":"2026-01-01T00:00:02Z","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":7,"output_tokens":2}}}"#;
            tell(live, ONE, calls);
            let mut voice = live.voices.remove(&Key::of_file(ONE.as_ref())).unwrap();
            live.exchange(&mut voice);
            let id = |id: &str| Some(Box::from(id));
            let moved = |from, fork| ChangeKind::Moved {
                from,
                fork,
                to: id("0f0f0f0f-1"),
            };
            let ended = ChangeKind::TurnEnded { uuid: None };
            live.changed(&ended).unwrap();
            assert!(voice.calls.close("t").is_some());
            live.changed(&ended).unwrap();
            live.moved(&moved(id("1a2b3c4d-0000"), id("5e6f7a8b-0000")))
                .unwrap();
            live.moved(&moved(None, None)).unwrap();
            let uuid = Box::from("\u{1b}[2J-0000");
            live.changed(&ChangeKind::Tombstoned { uuid }).unwrap();
        });
        insta::assert_snapshot!(shown);
    }

    #[test]
    fn a_result_before_its_call_is_told_at_once_and_again_under_the_call() {
        let result = r#"{"type":"user","uuid":"r","timestamp":"2026-01-01T00:00:05Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"The file has been updated."}]},"toolUseResult":{"structuredPatch":[{"newStart":1,"lines":["-old","+new"]}]}}"#;
        let call = r#"{"type":"assistant","uuid":"a","timestamp":"2026-01-01T00:00:02Z","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Edit","input":{"file_path":"tides.rs"}}]}}"#;
        let shown = page(false, |live| tell(live, ONE, &format!("{result}\n{call}")));
        insta::assert_snapshot!(shown);
    }
}
