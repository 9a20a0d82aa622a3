//! Tells conversations while they are written: each entry when it comes, results under their calls.

mod calls;
mod label;

use std::collections::HashMap;
use std::mem;
use std::path::{Path, PathBuf};

use anyhow::Result;
use transcript_format::finding::Finding;
use transcript_format::names::agent_of;
use transcript_format::object::{Object, Raw};
use transcript_format::tool_result::ToolUseResult;
use transcript_reader::{Index, Preserved};
use transcript_resume::display::ItemKind;
use transcript_tail::{ChangeKind, Entry, Event, Reset};

use super::{Piece, Pieces, Teller, Told, Tools};
use crate::blocks::input;
use crate::conversation::{salvaged, the_line};
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
                live.changed(voice, change)?;
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
        told?;
        self.teller.page.flush()?;
        Ok(())
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
            if wanted && place == 0 {
                if single.entry.is_salvaged && (piece.line.is_none() || voice.damaged != piece.line)
                {
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
                _ if wanted => self.other(voice, piece)?,
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
        let about = self.teller.about(&tool, input);
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
    fn other(&mut self, voice: &mut Voice, piece: Piece<'_>) -> Result<()> {
        let call = names_call(piece).filter(|call| self.is_under(voice, call));
        let Some(call) = call.filter(|_| self.teller.wanted.tools != Tools::None) else {
            return self.teller.item(piece);
        };
        self.teller.page.indent(2);
        self.teller.item(piece)?;
        self.teller.page.pop();
        voice.under = Some((call, self.teller.page.lines()));
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
    fn changed(&mut self, voice: &mut Voice, change: &ChangeKind) -> Result<()> {
        match change {
            ChangeKind::Tombstoned { uuid } => {
                let text = format!("entry {} was taken back", short(uuid));
                self.teller.marker(&text)
            }
            ChangeKind::TurnEnded { .. } => {
                voice.calls.clear();
                self.teller.end_turn()
            }
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

/// The call that an entry names as the one that it belongs to.
fn names_call(piece: Piece<'_>) -> Option<String> {
    let entry = piece.drawn.entry()?;
    let text = |object: &Object<'_>, name| object.str(name).map(|text| text.into_owned());
    let attachment = entry.object().object("attachment");
    let of_attachment = attachment.and_then(|attachment| text(&attachment, "toolUseID"));
    of_attachment
        .or_else(|| text(entry.object(), "sourceToolUseID"))
        .or_else(|| text(entry.object(), "toolUseID"))
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
    format!(
        "{}: {} ({}) · {} bytes at byte {}",
        the_line(finding.line),
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
