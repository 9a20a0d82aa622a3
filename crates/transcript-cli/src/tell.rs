//! Tells a conversation on a page.

mod calls;
mod turn;

use anstyle::Style;
use anyhow::Result;
use clap::ValueEnum;
use jiff::tz::TimeZone;
use transcript_format::content::Content;
use transcript_format::context_refs::Region;
use transcript_format::kind::{AttachmentKind, SystemKind};
use transcript_format::object::{FromRaw, Raw};
use transcript_reader::Bodies;
use transcript_resume::display::{
    Display, Drawing, Drawn, Item, ItemKind, Marks, Nesting, Part, Speaker, StoryKind,
};

use crate::blocks::{attachment_line, block_line, input, plain_text};
use crate::conversation::{Conversation, gap};
use crate::escape::one_line;
use crate::markdown;
use crate::moment::precise;
use crate::pace::Pace;
use crate::screen::Styles;
use crate::spoken::Spoken;
use crate::story::grouped;
use crate::text::{Page, Span, width};
use turn::{Turn, between};

/// How much of tool calls is told.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Tools {
    /// Inputs and results whole
    Full,
    /// A line for the call, a line for the result; changes of files and lists of tasks
    Short,
    /// Nothing
    None,
}

/// What of a conversation is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) thinking: bool,
    pub(crate) tools: Tools,
}

/// What took no longer is not worth a number.
const LEAST_TIME: u64 = 100;
/// How many columns the names of speakers take.
const NAMES: usize = 11;
/// On a narrower page names stand on lines of their own.
const LEAST_WIDTH: usize = 60;
/// Subagents of subagents are told down to this depth.
const MOST_NESTED: usize = 8;

type Bodied<'s> = Drawing<'s, Bodies<'s>>;

/// Writes conversations for a person.
pub(crate) struct Teller<'s, 'o> {
    /// The main conversation first, then its subagents.
    conversations: &'s [Conversation<'s>],
    nesting: Nesting,
    styles: Styles,
    wanted: Wanted,
    zone: TimeZone,
    page: Page<'o>,
    is_narrow: bool,
    pace: Pace<'o>,
    /// The folder of the session, from the last entry that named one.
    cwd: Option<String>,
    told: Told,
    /// How many margins there are where names stand.
    names: usize,
}

/// What was told last.
#[derive(Default)]
struct Told {
    /// So that a name stands once above what one speaker says in a row.
    speaker: Option<&'static str>,
    candidate: Option<usize>,
    /// The time of the last answer or result.
    answered: Option<i64>,
    /// The day that was written last.
    day: String,
    is_kept: bool,
    /// Whether a rule was the last thing.
    is_ruled: bool,
    turn: Option<Turn>,
}

impl<'s, 'o> Teller<'s, 'o> {
    pub(crate) fn new(
        conversations: &'s [Conversation<'s>],
        nesting: Nesting,
        styles: Styles,
        wanted: Wanted,
        zone: TimeZone,
        page: Page<'o>,
        pace: Pace<'o>,
    ) -> Self {
        Self {
            conversations,
            nesting,
            styles,
            wanted,
            zone,
            is_narrow: page.columns() < LEAST_WIDTH,
            page,
            pace,
            cwd: None,
            told: Told::default(),
            names: 0,
        }
    }

    /// Says which session it is, and from when.
    pub(crate) fn head(&mut self, policy: &str) -> Result<()> {
        let main = &self.conversations[0];
        let id = main.session.session_id();
        let id = id.unwrap_or_else(|| "without an id".to_owned());
        let lines = main.index().line_count();
        self.dim(&format!(
            "session {} · {} entries of {} lines · {policy}",
            one_line(&id),
            grouped(main.entries as u64),
            grouped(lines),
        ))
    }

    /// Tells the conversation of this number, with what it started below it.
    pub(crate) fn tell(&mut self, number: usize) -> Result<()> {
        let conversation = &self.conversations[number];
        if let Some(title) = &conversation.title {
            self.told = Told::default();
            self.rule('═', title, "")?;
            self.page.gap();
        }
        self.push_names();
        self.items(number, 0)?;
        self.end_turn()?;
        for child in self.nesting.under(number, None).to_vec() {
            self.subagent(child, 0)?;
        }
        self.page.pop();
        Ok(())
    }

    fn items(&mut self, number: usize, depth: usize) -> Result<()> {
        let conversation = &self.conversations[number];
        let display = &conversation.display;
        let bodies = Bodies::new(conversation.session.source());
        let mut drawing = Drawing::new(display, conversation.index(), bodies);
        let mut place = 0;
        while let Some(item) = display.items().get(place) {
            let story = item.story().filter(|(_, part)| *part == Part::Opening);
            match story {
                Some((story, _)) => {
                    self.before(conversation, item, &drawing.item(place)?)?;
                    self.story(number, depth, story, &mut drawing)?;
                    place = display.stories()[story].items().end.max(place + 1);
                }
                None => {
                    let drawn = drawing.item(place)?;
                    self.before(conversation, item, &drawn)?;
                    self.item(conversation, item, &drawn)?;
                    place += 1;
                }
            }
        }
        Ok(())
    }

    /// What holds for all items: gaps above them, times, tokens.
    fn before(
        &mut self,
        conversation: &Conversation<'_>,
        item: &Item,
        drawn: &Drawn<'_>,
    ) -> Result<()> {
        if self.told.candidate == Some(item.candidate()) {
            return Ok(());
        }
        self.told.candidate = Some(item.candidate());
        for decision in conversation.display.decisions(item) {
            if let Some(text) = gap(conversation.index(), decision) {
                if item.speaker() == Speaker::Person {
                    self.end_turn()?;
                }
                self.marker(&text)?;
                break;
            }
        }
        let is_kept = item.marks().contains(Marks::KEPT);
        if is_kept && !self.told.is_kept {
            self.marker("kept word for word from before the compaction")?;
        }
        self.told.is_kept = is_kept;
        let candidate = conversation.index().candidate(item.candidate());
        self.wait(candidate.millis())?;
        let Some(entry) = drawn.entry() else {
            return Ok(());
        };
        if let Some(cwd) = entry.object().str("cwd") {
            self.cwd = Some(cwd.into_owned());
        }
        self.count(&candidate, &entry);
        Ok(())
    }

    /// With `--speed`, waits until it is the time of an entry.
    fn wait(&mut self, millis: Option<i64>) -> Result<()> {
        let Some(millis) = millis else { return Ok(()) };
        if self.pace.is_timed() {
            self.page.flush()?;
            self.pace.wait_until(millis);
        }
        Ok(())
    }

    fn item(
        &mut self,
        conversation: &Conversation<'_>,
        item: &Item,
        drawn: &Drawn<'_>,
    ) -> Result<()> {
        match item.kind() {
            ItemKind::Text => self.said(conversation, item, drawn),
            ItemKind::Thinking => self.thinking(drawn),
            ItemKind::Media | ItemKind::Block => {
                let line = drawn.block().map(|block| block_line(&block));
                self.name(name_of(item))?;
                self.dim(&line.unwrap_or_default())
            }
            // Its call is not on the path, or it stands there a second time.
            ItemKind::Result => {
                self.name("tool")?;
                self.result("", item, drawn, None, None)
            }
            ItemKind::Compaction => self.compaction(&conversation.display, item),
            ItemKind::System => self.system(conversation, item, drawn),
            ItemKind::Attachment => self.attachment(conversation, item, drawn),
            ItemKind::Unusable => {
                let line = conversation.index().candidate(item.candidate()).line();
                self.marker(&format!("line {line} cannot be read"))
            }
            _ => Ok(()),
        }
    }

    /// A text, by who said it.
    fn said(
        &mut self,
        conversation: &Conversation<'_>,
        item: &Item,
        drawn: &Drawn<'_>,
    ) -> Result<()> {
        let text = drawn.text().unwrap_or_default();
        let marks = item.marks();
        if marks.contains(Marks::API_ERROR) {
            return self.alarm(&text);
        }
        if let Some(mark) = hidden(marks) {
            return self.aside(mark, &text);
        }
        match item.speaker() {
            Speaker::Agent => {
                self.name("assistant")?;
                self.page.gap();
                markdown::write(&mut self.page, self.styles, &text)?;
                self.page.gap();
            }
            Speaker::Summary => {
                self.name("summary")?;
                markdown::write(&mut self.page, self.styles, &text)?;
            }
            Speaker::Person => match Spoken::of(&text) {
                Spoken::Prompt(prompt) => self.prompt(conversation, item, prompt)?,
                Spoken::Command(command) => {
                    self.start_turn(conversation, item)?;
                    self.name("user")?;
                    self.page.text(self.styles.code, &command)?;
                }
                Spoken::Client(text) => self.aside("client", text)?,
                Spoken::Nothing if text.trim().is_empty() => {}
                Spoken::Nothing => self.aside("client", &text)?,
            },
            _ => self.aside("client", &text)?,
        }
        Ok(())
    }

    fn prompt(&mut self, conversation: &Conversation<'_>, item: &Item, prompt: &str) -> Result<()> {
        self.start_turn(conversation, item)?;
        self.name("user")?;
        let region = Region::split(prompt);
        let (references, text) = match &region {
            Some((region, text)) => (region.references(), *text),
            None => (&[][..], prompt),
        };
        for reference in references {
            self.page
                .short(&[Span::new(self.styles.dim, &reference.to_string())])?;
        }
        self.page.text(Style::new(), text.trim_end())?;
        Ok(())
    }

    fn thinking(&mut self, drawn: &Drawn<'_>) -> Result<()> {
        let text = drawn.text().unwrap_or_default();
        if !self.wanted.thinking || text.trim().is_empty() {
            return Ok(());
        }
        self.name("assistant")?;
        let bar = vec![Span::new(self.styles.dim, "~ ")];
        self.page.push(bar.clone(), bar);
        let style = self.styles.italic(self.styles.dim);
        self.page.text(style, text.trim())?;
        self.page.pop();
        self.page.gap();
        Ok(())
    }

    /// A call with all that belongs to it.
    fn story(
        &mut self,
        number: usize,
        depth: usize,
        story: usize,
        drawing: &mut Bodied<'_>,
    ) -> Result<()> {
        let conversation = &self.conversations[number];
        let display = &conversation.display;
        let told = &display.stories()[story];
        if told.kind() == StoryKind::Hooks {
            // What ran at the end of a turn; only a hook that failed is worth a line.
            for place in told.items().skip(1) {
                let item = &display.items()[place];
                self.item(conversation, item, &drawing.item(place)?)?;
            }
            return Ok(());
        }
        if let Some(turn) = &mut self.told.turn {
            turn.calls += 1;
        }
        let opening = &display.items()[told.items().start];
        let call = drawing.item(told.items().start)?;
        let input = call.block().and_then(|block| input(&block));
        let input = input.map(|raw| raw.text().to_owned());
        let input = input.as_deref().and_then(|text| Raw::parse(text).ok());
        let is_told = self.wanted.tools != Tools::None;
        if is_told {
            self.name("assistant")?;
            self.call(told.tool(), input)?;
            self.page.indent(2);
        }
        let agents = self.nesting.under(number, Some(story)).to_vec();
        let called = conversation.index().candidate(opening.candidate()).millis();
        let mut parts = told.items().skip(1).peekable();
        while let Some(place) = parts.next_if(|place| part(display, *place) <= Part::Progress) {
            self.belonging(conversation, place, drawing)?;
        }
        for agent in &agents {
            self.subagent(*agent, depth)?;
        }
        if is_told
            && agents.is_empty()
            && let Some(agent) = told.agent()
        {
            self.dim(&format!("├ subagent {agent}; --sidechains shows it"))?;
        }
        for place in parts {
            let item = &display.items()[place];
            if item.kind() != ItemKind::Result {
                self.belonging(conversation, place, drawing)?;
                continue;
            }
            let answered = conversation.index().candidate(item.candidate()).millis();
            self.wait(answered)?;
            self.told.answered = answered.or(self.told.answered);
            let took = between(called, answered).filter(|took| *took >= LEAST_TIME);
            let drawn = drawing.item(place)?;
            if is_told {
                self.result(told.tool(), item, &drawn, input, took)?;
            }
        }
        if is_told {
            if opening.marks().contains(Marks::UNANSWERED) {
                self.dim("└ no result")?;
            }
            self.page.pop();
        }
        Ok(())
    }

    /// An item of a story that is neither its call nor its result.
    fn belonging(
        &mut self,
        conversation: &Conversation<'_>,
        place: usize,
        drawing: &mut Bodied<'_>,
    ) -> Result<()> {
        let item = &conversation.display.items()[place];
        if self.wanted.tools == Tools::None || item.kind() == ItemKind::Progress {
            return Ok(());
        }
        let drawn = drawing.item(place)?;
        self.item(conversation, item, &drawn)
    }

    /// A subagent, inside of the call that started it.
    fn subagent(&mut self, number: usize, depth: usize) -> Result<()> {
        let child = &self.conversations[number];
        let title = child.title.as_deref().unwrap_or("subagent");
        let told = format!("┌ {title} · {} entries", grouped(child.entries as u64));
        if depth >= MOST_NESTED {
            return self.dim(&format!("{told} · nested too deep to be shown"));
        }
        self.page.gap();
        self.dim(&told)?;
        let outer = std::mem::take(&mut self.told);
        let cwd = self.cwd.clone();
        let bar = vec![Span::new(self.styles.dim, "│ ")];
        self.page.push(bar.clone(), bar);
        let names = self.names;
        self.push_names();
        self.items(number, depth + 1)?;
        self.end_turn()?;
        for inner in self.nesting.under(number, None).to_vec() {
            self.subagent(inner, depth + 1)?;
        }
        self.page.pop();
        self.page.pop();
        self.dim("└")?;
        // Names that stand above the call stand there still.
        (self.told, self.cwd, self.names) = (outer, cwd, names);
        Ok(())
    }

    /// A compaction as a ruled line with what is known of it.
    fn compaction(&mut self, display: &Display, item: &Item) -> Result<()> {
        self.end_turn()?;
        let mut text = "compacted".to_owned();
        if let Some(compaction) = display.compaction(item) {
            if let Some(trigger) = &compaction.trigger {
                text.push_str(&format!(" ({trigger})"));
            }
            match (compaction.pre_tokens, compaction.post_tokens) {
                (Some(before), Some(after)) => text.push_str(&format!(
                    " · {} → {} tokens",
                    grouped(before),
                    grouped(after)
                )),
                (Some(before), None) => {
                    text.push_str(&format!(" · {} tokens before", grouped(before)));
                }
                _ => {}
            }
            if let Some(took) = compaction.duration_millis {
                text.push_str(&format!(" · {}", precise(took)));
            }
            match compaction.kept {
                0 if compaction.is_keeping_ignored => text.push_str(" · what it kept is lost"),
                0 => {}
                1 => text.push_str(" · 1 entry kept"),
                kept => text.push_str(&format!(" · {kept} entries kept")),
            }
            if let Some(hidden) = compaction.hidden.filter(|hidden| *hidden > 0) {
                text.push_str(&format!(
                    " · {} entries left behind",
                    grouped(u64::from(hidden))
                ));
            }
        }
        self.rule('═', &text, "")
    }

    fn system(
        &mut self,
        conversation: &Conversation<'_>,
        item: &Item,
        drawn: &Drawn<'_>,
    ) -> Result<()> {
        let candidate = conversation.index().candidate(item.candidate());
        let entry = drawn.entry();
        let content = entry
            .as_ref()
            .and_then(|entry| entry.object().str("content"));
        let content = content.unwrap_or_default();
        match candidate.system_kind() {
            Some(SystemKind::MicrocompactBoundary) => self.marker("old tool results cleared"),
            Some(SystemKind::ApiError) => self.alarm("API error, the client tried again"),
            Some(SystemKind::TurnDuration | SystemKind::StopHookSummary) => Ok(()),
            _ if content.trim().is_empty() => Ok(()),
            _ => match Spoken::of(&content) {
                Spoken::Client(text) => self.aside("client", text),
                Spoken::Command(text) => self.aside("client", &text),
                _ => self.aside("client", &content),
            },
        }
    }

    /// Attachments are reminders for the model; those that say what happened get a line.
    fn attachment(
        &mut self,
        conversation: &Conversation<'_>,
        item: &Item,
        drawn: &Drawn<'_>,
    ) -> Result<()> {
        let entry = drawn.entry();
        let attachment = entry
            .as_ref()
            .and_then(|entry| entry.object().object("attachment"));
        let Some(attachment) = attachment else {
            return Ok(());
        };
        let candidate = conversation.index().candidate(item.candidate());
        if candidate.attachment_kind() == Some(AttachmentKind::QueuedCommand) {
            let prompt = attachment.get("prompt").and_then(Content::from_raw);
            let prompt = prompt.map(|prompt| plain_text(&prompt)).unwrap_or_default();
            return match Spoken::of(&prompt) {
                Spoken::Prompt(prompt) => self.prompt(conversation, item, prompt),
                _ => self.aside("client", &prompt),
            };
        }
        match attachment_line(
            candidate.attachment_kind(),
            &attachment,
            self.cwd.as_deref(),
        ) {
            Some(told) => self.dim(&format!("+ {}", one_line(&told))),
            None => Ok(()),
        }
    }

    fn push_names(&mut self) {
        let columns = if self.is_narrow { 2 } else { NAMES };
        self.page.indent(columns);
        self.names = self.page.depth();
    }

    /// Writes who speaks, unless that one spoke last. What stands within a call needs no name.
    fn name(&mut self, name: &'static str) -> Result<()> {
        if self.told.speaker == Some(name) || self.page.depth() != self.names {
            return Ok(());
        }
        self.told.speaker = Some(name);
        let style = match name {
            "user" => self.styles.person,
            "assistant" => self.styles.agent,
            _ => self.styles.dim,
        };
        if !std::mem::take(&mut self.told.is_ruled) {
            self.page.gap();
        }
        let label = Span::new(style, name);
        if self.is_narrow {
            self.page.pop();
            self.page.line(&[label])?;
            self.push_names();
        } else {
            let space = NAMES.saturating_sub(width(std::slice::from_ref(&label)));
            self.page.head(vec![label, Span::plain(&" ".repeat(space))]);
        }
        Ok(())
    }

    /// A line through the page with a text at its start and one at its end.
    fn rule(&mut self, line: char, text: &str, end: &str) -> Result<()> {
        self.told.speaker = None;
        let is_named = self.page.depth() == self.names && self.names > 0;
        if is_named {
            self.page.pop();
        }
        let run = |columns: usize| line.to_string().repeat(columns);
        let mut left = format!("{} {} ", run(2), one_line(text));
        if text.is_empty() {
            left = run(2);
        }
        let right = match end {
            "" => String::new(),
            end => format!(" {end} {}", run(2)),
        };
        let used = width(&[Span::plain(&left), Span::plain(&right)]);
        self.page.gap();
        match self.page.columns().checked_sub(used) {
            Some(space) => self.dim(&format!("{left}{}{right}", run(space)))?,
            None => {
                let first = vec![Span::new(self.styles.dim, &format!("{} ", run(2)))];
                self.page.push(first, vec![Span::plain("   ")]);
                let end = if end.is_empty() {
                    ""
                } else {
                    &format!(" · {end}")
                };
                self.dim(&format!("{}{end}", one_line(text)))?;
                self.page.pop();
            }
        }
        self.told.is_ruled = true;
        if is_named {
            self.push_names();
        }
        Ok(())
    }

    /// A line about the path.
    fn marker(&mut self, text: &str) -> Result<()> {
        self.told.speaker = None;
        self.page.gap();
        self.dim(&format!("··· {} ···", one_line(text)))?;
        self.page.gap();
        Ok(())
    }

    fn alarm(&mut self, text: &str) -> Result<()> {
        let line = format!("! {}", one_line(text));
        self.page.line(&[Span::new(self.styles.error, &line)])?;
        Ok(())
    }

    /// What is no part of the conversation as the client shows it: a line, or all of it with
    /// `--tools full`.
    fn aside(&mut self, kind: &'static str, text: &str) -> Result<()> {
        self.name(kind)?;
        let text = text.trim();
        let lead = match self.page.depth() == self.names {
            true => String::new(),
            false => format!("{kind}: "),
        };
        if self.wanted.tools == Tools::Full {
            self.page.text(self.styles.dim, &format!("{lead}{text}"))?;
            return Ok(());
        }
        let first = text.lines().next().unwrap_or_default();
        let more = text.lines().count().saturating_sub(1);
        let first = Span::new(self.styles.dim, &format!("{lead}{}", one_line(first)));
        if more == 0 {
            self.page.short(&[first])?;
        } else {
            let more = Span::new(self.styles.dim, &format!("+{more} lines"));
            self.page.both(&[first], &[more])?;
        }
        Ok(())
    }

    fn dim(&mut self, text: &str) -> Result<()> {
        self.page.line(&[Span::new(self.styles.dim, text)])?;
        Ok(())
    }
}

fn part(display: &Display, place: usize) -> Part {
    let story = display.items()[place].story();
    story.map_or(Part::Added, |(_, part)| part)
}

fn name_of(item: &Item) -> &'static str {
    match item.speaker() {
        Speaker::Person => "user",
        Speaker::Agent => "assistant",
        Speaker::Tool => "tool",
        Speaker::Summary => "summary",
        _ => "client",
    }
}

/// Why the client does not show an item.
pub(crate) fn hidden(marks: Marks) -> Option<&'static str> {
    let kinds = [
        (Marks::TOMBSTONED, "taken back"),
        (Marks::VIRTUAL, "virtual"),
        (Marks::TEAM, "team"),
        (Marks::META, "meta"),
    ];
    let found = kinds.into_iter().find(|(mark, _)| marks.contains(*mark));
    // A summary is shown in the transcript only, and it is all there is of what came before.
    let is_hidden = marks.contains(Marks::TRANSCRIPT_ONLY) && !marks.contains(Marks::SUMMARY);
    found
        .map(|(_, name)| name)
        .or(is_hidden.then_some("hidden"))
}
