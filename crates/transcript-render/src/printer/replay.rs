//! Prints recorded conversations: each call with its whole group below.

use std::io::Write;

use transcript_format::kind::EntryKind;
use transcript_format::object::Raw;
use transcript_format::scan::ToolRole;
use transcript_format::units::grouped;
use transcript_reader::{EntryNo, EntryRef, Index, ToolEnd};
use transcript_resume::Policy;
use transcript_resume::items::{
    GroupKind, GroupRole, Item, ItemKind, ItemList, ItemMarks, Nesting, Speaker,
};

use super::{PrintState, RenderItem, RenderItems, TextPrinter};
use crate::Result;
use crate::blocks::input;
use crate::conversation::{Conversation, PartPrinter, Parts, gap};
use crate::explain::short_name;
use crate::header::Header;
use crate::options::{RenderOptions, Tools};

use crate::pace::Pace;
use crate::text::{PageState, Span, width};
use crate::words::noun;

/// Nested subagents are printed down to this depth.
const MAX_NESTED: usize = 8;
/// The maximum distance of the last answer before a part, in entries.
const MAX_BACK: usize = 1000;

/// Prints recorded conversations.
pub struct ReplayPrinter<'s, 'o> {
    pub(super) printer: TextPrinter<'o>,
    /// The main conversation first, then its subagents.
    pub(super) conversations: &'s [Conversation<'s>],
    nesting: Nesting,
    pace: Pace<'o>,
    /// The last printed entry of each conversation.
    last: LastPrinted,
}

/// A part of a conversation, printed into memory by another thread.
pub(crate) struct PrintedPart {
    /// The state that it was printed from: after the name above its first prompt.
    start: (PrintState, PageState),
    lines: Vec<u8>,
    end: (PrintState, PageState),
    cwd: Option<String>,
    last: LastPrinted,
}

impl PrintedPart {
    /// Prints a part whose first item is a prompt. `answered` is the time of the last answer before.
    fn print(
        part: &Conversation<'_>,
        first: &EntryRef<'_>,
        answered: Option<i64>,
        options: &RenderOptions,
    ) -> Result<Self> {
        let (mut lines, mut sleep, mut above) = (Vec::new(), |_| {}, std::io::sink());
        let start = {
            let mut printer = TextPrinter::new(&mut above, options);
            printer.push_names();
            // The pause above a prompt depends on the answer before it, which is in an earlier part.
            printer.printed.answered = answered;
            printer.begin(first)?;
            (printer.printed, printer.page.state())
        };
        let pace = Pace::new(None, &mut sleep);
        let mut replay = ReplayPrinter::new(&mut lines, options, &[], Nesting::default(), pace);
        let printer = &mut replay.printer;
        printer.push_names();
        // The name above the prompt is printed when the parts are joined, since it depends on the part before. Only its
        // state counts.
        printer.page.append(&[], start.1.clone())?;
        printer.printed = start.0.clone();
        replay.list(part, 0, 0)?;
        let end = (replay.printer.printed, replay.printer.page.state());
        let (cwd, last) = (replay.printer.cwd, replay.last);
        Ok(Self {
            start,
            lines,
            end,
            cwd,
            last,
        })
    }
}

/// Returns the time of an entry that is an answer or has results.
fn answered(entry: EntryRef<'_>) -> Option<i64> {
    let is_result = |end: &ToolEnd| matches!(end.role(), ToolRole::Result | ToolRole::ServerResult);
    let is_answer = entry.kind() == EntryKind::Assistant || entry.tools().iter().any(is_result);
    entry.millis().filter(|_| is_answer)
}

impl TextPrinter<'_> {
    /// Prints the rule and the name above a prompt.
    fn begin(&mut self, prompt: &EntryRef<'_>) -> Result<()> {
        self.entry_name = None;
        self.start_turn(prompt, Some(prompt.line()))?;
        self.name("user")
    }
}

/// The last printed entry of a conversation.
#[derive(Default)]
struct LastPrinted {
    entry_no: Option<EntryNo>,
    is_kept: bool,
}

impl<'s, 'o> ReplayPrinter<'s, 'o> {
    /// Prints `conversations`: the main one first, then its subagents, in the order of `nesting`,
    /// then others.
    pub fn new(
        out: &'o mut dyn Write,
        options: &RenderOptions,
        conversations: &'s [Conversation<'s>],
        nesting: Nesting,
        pace: Pace<'o>,
    ) -> Self {
        Self {
            printer: TextPrinter::new(out, options),
            conversations,
            nesting,
            pace,
            last: LastPrinted::default(),
        }
    }

    /// Prints the header of the session.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn head(&mut self, header: &Header) -> Result<()> {
        let id = header.session_id.as_deref().unwrap_or("without an id");
        let messages = grouped(header.messages as u64);
        let mut session = vec![
            format!("session {id}"),
            format!("{messages} {}", noun(header.messages, "message")),
        ];
        session.extend(self.conversations[0].chapters_in_words());
        session.extend(
            header
                .tokens
                .map(|tokens| format!("{} tokens", grouped(tokens))),
        );
        if header.policy != Policy::Recover.name() {
            session.push(header.policy.to_owned());
        }
        self.facts(session)?;
        if let Some(title) = &header.title {
            let style = self.printer.styles.bold(self.printer.styles.plain);
            let title = Span::new(style, &self.printer.one_line(title));
            self.printer.page.line(&[title])?;
        }
        self.facts(header.place())
    }

    /// Prints facts side by side, on as many lines as they need.
    fn facts(&mut self, facts: impl IntoIterator<Item = String>) -> Result<()> {
        let columns = self.printer.page.columns();
        let mut line = String::new();
        for fact in facts {
            let fact = self.printer.one_line(&fact);
            let longer = format!("{line} · {fact}");
            if line.is_empty() {
                line = fact;
            } else if width(&[Span::plain(&longer)]) <= columns {
                line = longer;
            } else {
                self.printer.dim(&line)?;
                line = fact;
            }
        }
        if line.is_empty() {
            Ok(())
        } else {
            self.printer.dim(&line)
        }
    }

    /// Prints the command that continues the session, on one line, so that it can be copied.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn foot(&mut self, header: &Header) -> Result<()> {
        let Some(command) = &header.command else {
            return Ok(());
        };
        let page = &mut self.printer.page;
        let dim = self.printer.styles.dim;
        let line = format!("\n{dim}to continue:{dim:#} {command}\n");
        let state = page.state();
        // Past the page, which would wrap the line and escape nothing more: a wrapped command cannot be copied.
        Ok(page.append(line.as_bytes(), state)?)
    }

    /// Prints the conversation with this number, with the subagents that it started.
    ///
    /// # Errors
    /// When a body cannot be read, or the output not be written.
    pub fn print(&mut self, number: usize) -> Result<()> {
        let conversation = &self.conversations[number];
        if let Some(title) = &conversation.title {
            // A titled conversation starts like a new output: names and gaps do not depend on the one before.
            self.printer.printed = PrintState::default();
            self.last = LastPrinted::default();
            self.printer.rule('═', title, "")?;
            self.printer.page.gap();
        }
        self.printer.push_names();
        self.items(number, 0)?;
        self.printer.end_turn()?;
        for child in self.nesting.under(number, None).to_vec() {
            self.subagent(child, 0)?;
        }
        self.printer.page.pop();
        Ok(())
    }

    fn items(&mut self, number: usize, depth: usize) -> Result<()> {
        let conversations = self.conversations;
        let conversation = &conversations[number];
        match &conversation.parts {
            Some(parts) => self.parts(conversation, parts),
            None => self.list(conversation, number, depth),
        }
    }

    fn parts(&mut self, conversation: &Conversation<'_>, parts: &Parts<'_>) -> Result<()> {
        let options = self.printer.options.clone();
        conversation.print_parts(parts, self, |part, first, number| {
            let before = parts.before(number, part.index);
            // At most `MAX_BACK` entries, so that parts without answers cost no more than linear time.
            let answered = before.take(MAX_BACK).find_map(answered);
            PrintedPart::print(part, first, answered, &options)
        })
    }

    fn list(&mut self, conversation: &Conversation<'_>, number: usize, depth: usize) -> Result<()> {
        let display = &conversation.display;
        let mut render_items = RenderItems::new(conversation);
        let mut place = 0;
        while let Some(item) = display.items().get(place) {
            let group = item.group().filter(|(_, part)| *part == GroupRole::Opening);
            self.before(conversation, render_items.at(place)?)?;
            match group {
                Some((group, _)) => {
                    self.group((number, depth), group, &mut render_items)?;
                    // A damaged group may be empty; without this the loop would never end.
                    place = display.groups()[group].items().end.max(place + 1);
                }
                None => {
                    self.printer.item(render_items.at(place)?)?;
                    place += 1;
                }
            }
        }
        Ok(())
    }

    /// Prints gaps, times and tokens above an item.
    pub(super) fn before(
        &mut self,
        conversation: &Conversation<'_>,
        rendered: RenderItem<'_>,
    ) -> Result<()> {
        let item = rendered.item();
        // An entry can have many items, and its notes are printed once, above the first one.
        if self.last.entry_no == Some(item.entry_no()) {
            return Ok(());
        }
        self.last.entry_no = Some(item.entry_no());
        self.printer.entry_name = None;
        for decision in conversation.display.decisions(item) {
            if let Some(text) = gap(conversation.index, decision) {
                if item.speaker() == Speaker::Person {
                    self.printer.end_turn()?;
                }
                self.printer.marker(&text)?;
                break;
            }
        }
        if item.marks().contains(ItemMarks::AFTER_HIDDEN) {
            let (entry, line) = (&rendered.entry_ref, rendered.line);
            self.printer.start_after_hidden(entry, line)?;
        }
        let is_kept = item.marks().contains(ItemMarks::KEPT);
        if is_kept && !self.last.is_kept {
            self.printer.marker(if conversation.is_story() {
                "kept word for word by the last compaction: the model still sees this"
            } else {
                "kept word for word from before the compaction"
            })?;
        }
        self.last.is_kept = is_kept;
        self.wait(rendered.entry_ref.millis())?;
        self.printer.note_entry(rendered);
        self.ids(conversation.index, &rendered.entry_ref);
        Ok(())
    }

    /// Prints line and id of an entry, as `--leaf` and `--at` take them, above its first item.
    fn ids(&mut self, index: &Index, entry: &EntryRef<'_>) {
        if self.printer.options.ids {
            self.printer.entry_name = Some(short_name(index, entry));
        }
    }

    /// With `--speed`, waits until the time of an entry.
    fn wait(&mut self, millis: Option<i64>) -> Result<()> {
        let Some(millis) = millis else { return Ok(()) };
        if self.pace.is_timed() {
            // The output so far must be visible during the pause.
            self.printer.page.flush()?;
            self.pace.wait_until(millis);
        }
        Ok(())
    }

    /// Prints a call with its whole group.
    pub(super) fn group(
        &mut self,
        (number, depth): (usize, usize),
        group: usize,
        render_items: &mut RenderItems<'_>,
    ) -> Result<()> {
        let index = render_items.conversation.index;
        let display = &render_items.conversation.display;
        let printed = &display.groups()[group];
        if printed.kind() == GroupKind::Hooks {
            // Hooks at the end of a turn: only a failure is printed.
            for place in printed.items().skip(1) {
                self.printer.item(render_items.at(place)?)?;
            }
            return Ok(());
        }
        let opening = render_items.at(printed.items().start)?;
        let called = opening.entry_ref.millis();
        let is_unanswered = opening.item().marks().contains(ItemMarks::UNANSWERED);
        let input = opening.loaded.block().and_then(|block| input(&block));
        let input = input.map(|raw| raw.text().to_owned());
        let input = input.as_deref().and_then(|text| Raw::parse(text).ok());
        self.printer.call(printed.tool(), input)?;
        let is_shown = self.printer.options.tools != Tools::None;
        if is_shown {
            self.printer.page.indent(2);
        }
        let agents = self.nesting.under(number, Some(group)).to_vec();
        let mut parts = printed.items().skip(1).peekable();
        // In the order of the work: hooks and progress before the subagent, the subagent before the result that it
        // reports.
        while let Some(place) = parts.next_if(|place| part(display, *place) <= GroupRole::Progress)
        {
            self.belonging(&display.items()[place], place, render_items)?;
        }
        for agent in &agents {
            self.subagent(*agent, depth)?;
        }
        if agents.is_empty()
            && let Some(agent) = printed.agent()
        {
            self.printer.hidden_agent(agent)?;
        }
        for place in parts {
            let item = &display.items()[place];
            if item.kind() != ItemKind::Result {
                self.belonging(item, place, render_items)?;
                continue;
            }
            let rendered = render_items.at(place)?;
            self.wait(rendered.entry_ref.millis())?;
            self.ids(index, &rendered.entry_ref);
            self.printer
                .answer(printed.tool(), rendered, input, called)?;
        }
        if is_shown {
            if is_unanswered {
                self.printer.dim("└ no result")?;
            }
            self.printer.page.pop();
        }
        Ok(())
    }

    /// Prints an item of a call group that is neither the call nor its result.
    fn belonging(
        &mut self,
        item: &Item,
        place: usize,
        render_items: &mut RenderItems<'_>,
    ) -> Result<()> {
        if self.printer.options.tools == Tools::None || item.kind() == ItemKind::Progress {
            return Ok(());
        }
        self.printer.item(render_items.at(place)?)
    }

    /// Prints a subagent inside the call that started it.
    pub(super) fn subagent(&mut self, number: usize, depth: usize) -> Result<()> {
        let child = &self.conversations[number];
        let title = child.title.as_deref().unwrap_or("subagent");
        let printed = format!("┌ {title} · {} entries", grouped(child.entries as u64));
        if depth >= MAX_NESTED {
            let printed = format!("{printed} · nested too deep to be shown");
            return self.printer.dim(&printed);
        }
        let printer = &mut self.printer;
        printer.page.gap();
        printer.dim(&printed)?;
        // A subagent has its own speakers and turns. Those of its caller continue below it.
        let outer = std::mem::take(&mut printer.printed);
        let last = std::mem::take(&mut self.last);
        let cwd = printer.cwd.clone();
        let bar = vec![Span::new(printer.styles.dim, "│ ")];
        printer.page.push(bar.clone(), bar);
        let names = printer.names;
        printer.push_names();
        self.items(number, depth + 1)?;
        self.printer.end_turn()?;
        for inner in self.nesting.under(number, None).to_vec() {
            self.subagent(inner, depth + 1)?;
        }
        let printer = &mut self.printer;
        printer.page.pop();
        printer.page.pop();
        printer.dim("└")?;
        // The speaker label above the call is still valid.
        (printer.printed, printer.cwd, printer.names) = (outer, cwd, names);
        self.last = last;
        Ok(())
    }
}

impl PartPrinter for ReplayPrinter<'_, '_> {
    type Made = PrintedPart;

    fn print(&mut self, part: &Conversation<'_>, _number: usize) -> Result<()> {
        self.list(part, 0, 0)
    }

    fn append(&mut self, first: &EntryRef<'_>, made: PrintedPart) -> Result<bool> {
        let printer = &mut self.printer;
        printer.begin(first)?;
        // A part was printed as if nothing before it was kept.
        let is_same = (&printer.printed, &printer.page.state()) == (&made.start.0, &made.start.1)
            && !self.last.is_kept;
        if is_same {
            (printer.printed, printer.cwd) = (made.end.0, made.cwd);
            self.last = made.last;
            printer.page.append(&made.lines, made.end.1)?;
        }
        Ok(is_same)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.printer.page.flush()?)
    }
}

fn part(display: &ItemList, place: usize) -> GroupRole {
    let group = display.items()[place].group();
    group.map_or(GroupRole::Added, |(_, part)| part)
}
