//! Tells conversations that are read whole: each call with all that belongs to it below.

use anstyle::Style;
use anyhow::Result;
use transcript_format::object::Raw;
use transcript_resume::display::{
    Display, Item, ItemKind, Marks, Nesting, Part, Speaker, StoryKind,
};

use super::{Piece, Pieces, Teller, Told, Tools};
use crate::blocks::input;
use crate::conversation::{Conversation, gap};
use crate::escape::one_line;
use crate::header::Header;
use crate::pace::Pace;
use crate::story::grouped;
use crate::text::Span;

/// Subagents of subagents are told down to this depth.
const MOST_NESTED: usize = 8;

/// Tells recorded conversations.
pub(crate) struct Recorded<'s, 'o> {
    teller: Teller<'o>,
    /// The main conversation first, then its subagents.
    conversations: &'s [Conversation<'s>],
    nesting: Nesting,
    pace: Pace<'o>,
    /// Where in its conversation it is.
    last: Last,
}

/// What was told last of a conversation.
#[derive(Default)]
struct Last {
    candidate: Option<usize>,
    is_kept: bool,
}

impl<'s, 'o> Recorded<'s, 'o> {
    pub(crate) fn new(
        teller: Teller<'o>,
        conversations: &'s [Conversation<'s>],
        nesting: Nesting,
        pace: Pace<'o>,
    ) -> Self {
        Self {
            teller,
            conversations,
            nesting,
            pace,
            last: Last::default(),
        }
    }

    /// Says which session it is, and from when.
    pub(crate) fn head(&mut self, header: &Header, policy: &str) -> Result<()> {
        let main = &self.conversations[0];
        let id = main.session.session_id();
        let id = id.unwrap_or_else(|| "without an id".to_owned());
        let lines = main.index().line_count();
        self.teller.dim(&format!(
            "session {} · {} entries of {} lines · {policy}",
            one_line(&id),
            grouped(main.entries as u64),
            grouped(lines),
        ))?;
        if let Some(title) = &header.title {
            let style = self.teller.styles.bold(Style::new());
            self.teller
                .page
                .line(&[Span::new(style, &one_line(title))])?;
        }
        match header.place() {
            Some(place) => self.teller.dim(&one_line(&place)),
            None => Ok(()),
        }
    }

    /// Tells the conversation of this number, with what it started below it.
    pub(crate) fn tell(&mut self, number: usize) -> Result<()> {
        let conversation = &self.conversations[number];
        if let Some(title) = &conversation.title {
            self.teller.told = Told::default();
            self.last = Last::default();
            self.teller.rule('═', title, "")?;
            self.teller.page.gap();
        }
        self.teller.push_names();
        self.items(number, 0)?;
        self.teller.end_turn()?;
        for child in self.nesting.under(number, None).to_vec() {
            self.subagent(child, 0)?;
        }
        self.teller.page.pop();
        Ok(())
    }

    fn items(&mut self, number: usize, depth: usize) -> Result<()> {
        let conversation = &self.conversations[number];
        let display = &conversation.display;
        let mut pieces = Pieces::new(conversation);
        let mut place = 0;
        while let Some(item) = display.items().get(place) {
            let story = item.story().filter(|(_, part)| *part == Part::Opening);
            self.before(conversation, pieces.at(place)?)?;
            match story {
                Some((story, _)) => {
                    self.story(number, depth, story, &mut pieces)?;
                    place = display.stories()[story].items().end.max(place + 1);
                }
                None => {
                    self.teller.item(pieces.at(place)?)?;
                    place += 1;
                }
            }
        }
        Ok(())
    }

    /// What holds for all items: gaps above them, times, tokens.
    fn before(&mut self, conversation: &Conversation<'_>, piece: Piece<'_>) -> Result<()> {
        let item = piece.item();
        if self.last.candidate == Some(item.candidate()) {
            return Ok(());
        }
        self.last.candidate = Some(item.candidate());
        for decision in conversation.display.decisions(item) {
            if let Some(text) = gap(conversation.index(), decision) {
                if item.speaker() == Speaker::Person {
                    self.teller.end_turn()?;
                }
                self.teller.marker(&text)?;
                break;
            }
        }
        let is_kept = item.marks().contains(Marks::KEPT);
        if is_kept && !self.last.is_kept {
            self.teller
                .marker("kept word for word from before the compaction")?;
        }
        self.last.is_kept = is_kept;
        self.wait(piece.candidate.millis())?;
        if let Some(entry) = piece.drawn.entry() {
            self.teller.enter(&piece.candidate, &entry);
        }
        Ok(())
    }

    /// With `--speed`, waits until it is the time of an entry.
    fn wait(&mut self, millis: Option<i64>) -> Result<()> {
        let Some(millis) = millis else { return Ok(()) };
        if self.pace.is_timed() {
            self.teller.page.flush()?;
            self.pace.wait_until(millis);
        }
        Ok(())
    }

    /// A call with all that belongs to it.
    fn story(
        &mut self,
        number: usize,
        depth: usize,
        story: usize,
        pieces: &mut Pieces<'_>,
    ) -> Result<()> {
        let display = &self.conversations[number].display;
        let told = &display.stories()[story];
        if told.kind() == StoryKind::Hooks {
            // What ran at the end of a turn; only a hook that failed is worth a line.
            for place in told.items().skip(1) {
                self.teller.item(pieces.at(place)?)?;
            }
            return Ok(());
        }
        let opening = pieces.at(told.items().start)?;
        let called = opening.candidate.millis();
        let is_unanswered = opening.item().marks().contains(Marks::UNANSWERED);
        let input = opening.drawn.block().and_then(|block| input(&block));
        let input = input.map(|raw| raw.text().to_owned());
        let input = input.as_deref().and_then(|text| Raw::parse(text).ok());
        self.teller.call(told.tool(), input)?;
        let is_told = self.teller.wanted.tools != Tools::None;
        if is_told {
            self.teller.page.indent(2);
        }
        let agents = self.nesting.under(number, Some(story)).to_vec();
        let mut parts = told.items().skip(1).peekable();
        while let Some(place) = parts.next_if(|place| part(display, *place) <= Part::Progress) {
            self.belonging(&display.items()[place], place, pieces)?;
        }
        for agent in &agents {
            self.subagent(*agent, depth)?;
        }
        if agents.is_empty()
            && let Some(agent) = told.agent()
        {
            self.teller.hidden_agent(agent)?;
        }
        for place in parts {
            let item = &display.items()[place];
            if item.kind() != ItemKind::Result {
                self.belonging(item, place, pieces)?;
                continue;
            }
            let piece = pieces.at(place)?;
            self.wait(piece.candidate.millis())?;
            self.teller.answer(told.tool(), piece, input, called)?;
        }
        if is_told {
            if is_unanswered {
                self.teller.dim("└ no result")?;
            }
            self.teller.page.pop();
        }
        Ok(())
    }

    /// An item of a story that is neither its call nor its result.
    fn belonging(&mut self, item: &Item, place: usize, pieces: &mut Pieces<'_>) -> Result<()> {
        if self.teller.wanted.tools == Tools::None || item.kind() == ItemKind::Progress {
            return Ok(());
        }
        self.teller.item(pieces.at(place)?)
    }

    /// A subagent, inside of the call that started it.
    fn subagent(&mut self, number: usize, depth: usize) -> Result<()> {
        let child = &self.conversations[number];
        let title = child.title.as_deref().unwrap_or("subagent");
        let told = format!("┌ {title} · {} entries", grouped(child.entries as u64));
        if depth >= MOST_NESTED {
            let told = format!("{told} · nested too deep to be shown");
            return self.teller.dim(&told);
        }
        let teller = &mut self.teller;
        teller.page.gap();
        teller.dim(&told)?;
        let outer = std::mem::take(&mut teller.told);
        let last = std::mem::take(&mut self.last);
        let cwd = teller.cwd.clone();
        let bar = vec![Span::new(teller.styles.dim, "│ ")];
        teller.page.push(bar.clone(), bar);
        let names = teller.names;
        teller.push_names();
        self.items(number, depth + 1)?;
        self.teller.end_turn()?;
        for inner in self.nesting.under(number, None).to_vec() {
            self.subagent(inner, depth + 1)?;
        }
        let teller = &mut self.teller;
        teller.page.pop();
        teller.page.pop();
        teller.dim("└")?;
        // Names that stand above the call stand there still.
        (teller.told, teller.cwd, teller.names) = (outer, cwd, names);
        self.last = last;
        Ok(())
    }
}

fn part(display: &Display, place: usize) -> Part {
    let story = display.items()[place].story();
    story.map_or(Part::Added, |(_, part)| part)
}
