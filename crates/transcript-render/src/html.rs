//! Writes conversations as HTML, in pieces of whole items: the content of a page, without the page around it.
//!
//! Text of a transcript gets there through [`maud`], which escapes it, or as Markdown whose HTML is shown as text and whose
//! images are links. No piece has a script, an event handler, a style or anything that makes a request.

mod markdown;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use maud::{Markup, html};
use transcript_format::content::Block;
use transcript_format::entry::Entry;
use transcript_format::kind::{AttachmentKind, EntryKind, SystemKind};
use transcript_format::object::Raw;
use transcript_format::units::{self, dollars, duration, grouped};
use transcript_format::work;
use transcript_reader::{Bodies, EntryNo, EntryRef, Source};
use transcript_resume::items::{
    GroupKind, GroupRole, Item, ItemKind, ItemMarks, LoadedItem, Nesting, Speaker, starts_turn,
};

use crate::Result;
use crate::blocks::{attachment_line, block_line, block_lines, input, plain_text, result_text};
use crate::compaction;
use crate::conversation::{Conversation, PartPrinter, Parts, gap};
use crate::escape::Escaping;
use crate::moment::clock;
use crate::options::{RenderOptions, Tools};
use crate::text::cut_text;
use crate::tool_summary::{self, CallOutcome, TodoState, size};
use crate::view::ShownText;
use crate::words::count;

/// The target size of a piece, in bytes. A piece ends before the first item after this length.
const PIECE_LEN: usize = 48 << 10;
/// The maximum length of a result or an input that is shown, in bytes.
const MAX_RESULT_LEN: usize = 64 << 10;
/// The maximum number of lines of a diff that is open at first.
const MAX_OPEN_DIFF_LINES: usize = 60;
/// The maximum length of a prompt in the list of prompts, in characters.
const MAX_PROMPT_CHARS: usize = 80;
/// The maximum depth at which a subagent is shown inside its caller. Deeper ones follow the conversation.
const MAX_NESTING: usize = 8;
/// The types of images that are shown. Others may contain scripts.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The conversations of a page: the main one, followed by its subagents in the order of `nesting`, followed by the branches that leave
/// it.
#[derive(Clone, Copy)]
pub struct HtmlConversations<'a> {
    /// The conversation, its subagents and its branches.
    pub conversations: &'a [Conversation<'a>],
    /// The places of the subagents.
    pub nesting: &'a Nesting,
    /// For each branch, the entry after which it leaves; `None` for one with its own root.
    pub branches: &'a [Option<EntryNo>],
}

impl HtmlConversations<'_> {
    /// Returns the numbers of the branches that leave after each entry.
    fn leaving(&self) -> HashMap<EntryNo, Vec<usize>> {
        let mut leaving: HashMap<EntryNo, Vec<usize>> = HashMap::new();
        let first = self.conversations.len() - self.branches.len();
        for (number, from) in (first..).zip(self.branches) {
            if let Some(from) = from {
                leaving.entry(*from).or_default().push(number);
            }
        }
        leaving
    }
}

/// Whole items as HTML.
#[derive(Debug, Default)]
pub struct Piece {
    /// The HTML.
    pub html: String,
    /// The prompts of the main conversation in it.
    pub prompts: Vec<Prompt>,
    /// About how high it is on a wide screen, in CSS pixels.
    pub height: u32,
}

/// A prompt, and the id of its element.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// The id.
    pub id: String,
    /// The start of its text.
    pub text: String,
}

/// A part of a page. Parts come in the order of the page.
#[derive(Debug)]
pub enum PagePart<P> {
    /// Opens or closes an element around pieces.
    Markup(String),
    /// A piece.
    Piece(P),
}

/// Writes conversations. `pack` is called with each piece, by any thread; `take` with the results of `pack`, in order, by this
/// one.
///
/// # Errors
/// When a body cannot be read; those of `take`.
pub fn write<P: Send>(
    shown: &HtmlConversations<'_>,
    options: &RenderOptions,
    pack: &(dyn Fn(Piece) -> P + Sync),
    take: &mut dyn FnMut(PagePart<P>) -> Result<()>,
) -> Result<()> {
    let mut writer = Writer::new(shown, options, pack, take);
    // Branches and subagents are written where they belong on the way, and noted in `placed`.
    writer.conversation(0, 0)?;
    // Subagents that are not shown at their call, and branches without an entry to leave from, follow the conversation.
    let subagents = shown.conversations.len() - shown.branches.len();
    for number in 1..subagents {
        if !writer.placed.contains(&number) {
            writer.subagent(number, 0)?;
        }
    }
    for number in subagents..shown.conversations.len() {
        if !writer.placed.contains(&number) {
            writer.fork(&[number], 0)?;
        }
    }
    writer.end_piece()
}

/// Writes a part of a conversation [in parts](Conversation::in_parts).
///
/// # Errors
/// When a body cannot be read.
///
/// # Panics
/// When the conversation has no such part.
pub fn write_part(
    conversation: &Conversation<'_>,
    part: usize,
    options: &RenderOptions,
) -> Result<Piece> {
    let nesting = Nesting::default();
    let shown = HtmlConversations {
        conversations: &[],
        nesting: &nesting,
        branches: &[],
    };
    let mut whole = Piece::default();
    let mut take = |part: PagePart<Piece>| {
        if let PagePart::Piece(piece) = part {
            whole.html.push_str(&piece.html);
            whole.prompts.extend(piece.prompts);
            whole.height += piece.height;
        }
        Ok(())
    };
    let pack = |piece| piece;
    let mut writer = Writer::new(&shown, options, &pack, &mut take);
    conversation.print_part(part, |list| writer.part(conversation, list, part))?;
    writer.end_piece()?;
    Ok(whole)
}

type TakePart<'o, P> = &'o mut dyn FnMut(PagePart<P>) -> Result<()>;

struct Writer<'o, 'p, P> {
    shown: &'p HtmlConversations<'p>,
    options: &'p RenderOptions,
    escaping: Escaping,
    pack: &'p (dyn Fn(Piece) -> P + Sync),
    take: TakePart<'o, P>,
    piece: Piece,
    cwd: Option<String>,
    /// The entries of which something was written.
    seen: HashSet<EntryNo>,
    /// The prefix of the ids of a subagent or a branch.
    prefix: String,
    /// The id of the entry that is being written.
    entry_id: String,
    /// The same, until something of the entry is written.
    new_id: Option<String>,
    turn: TurnTotals,
    /// The conversations that have got their place.
    placed: HashSet<usize>,
    /// The branches that leave after each entry.
    leaving: HashMap<EntryNo, Vec<usize>>,
}

/// Writes the parts of a conversation.
struct PartWriter<'w, 'o, 'p, P> {
    writer: &'w mut Writer<'o, 'p, P>,
    conversation: &'w Conversation<'w>,
}

/// The tokens, cost and time since the last prompt.
#[derive(Default)]
struct TurnTotals {
    /// By the id of the message: its lines repeat its usage, the first ones often with lower counts.
    calls: HashMap<Box<str>, CallUsage>,
    /// The times of the first and the last entry.
    times: Option<(i64, i64)>,
}

#[derive(Clone, Copy, Default)]
struct CallUsage {
    input: u64,
    cached: u64,
    output: u64,
    /// In billionths of a dollar, where it is known.
    cost: Option<u128>,
}

impl<'o, 'p, P: Send> Writer<'o, 'p, P> {
    fn new(
        shown: &'p HtmlConversations<'p>,
        options: &'p RenderOptions,
        pack: &'p (dyn Fn(Piece) -> P + Sync),
        take: TakePart<'o, P>,
    ) -> Self {
        Self {
            shown,
            options,
            escaping: options.escaping,
            pack,
            take,
            piece: Piece::default(),
            cwd: None,
            seen: HashSet::new(),
            prefix: String::new(),
            entry_id: String::new(),
            new_id: None,
            turn: TurnTotals::default(),
            placed: HashSet::new(),
            leaving: shown.leaving(),
        }
    }

    fn put(&mut self, markup: Markup, height: usize) {
        self.piece.html.push_str(&markup.into_string());
        self.piece.html.push('\n');
        let height = u32::try_from(height).unwrap_or(u32::MAX);
        self.piece.height = self.piece.height.saturating_add(height);
    }

    fn end_piece(&mut self) -> Result<()> {
        if self.piece.html.is_empty() {
            return Ok(());
        }
        let piece = std::mem::take(&mut self.piece);
        // `pack` compresses, so it runs on the thread that wrote the piece; only `take` is called in order.
        (self.take)(PagePart::Piece((self.pack)(piece)))
    }

    /// Opens or closes an element around pieces.
    fn around(&mut self, markup: String) -> Result<()> {
        self.end_piece()?;
        (self.take)(PagePart::Markup(markup))
    }

    fn conversation(&mut self, number: usize, depth: usize) -> Result<()> {
        let conversations = self.shown.conversations;
        let conversation = &conversations[number];
        match &conversation.parts {
            Some(parts) => self.parts(conversation, parts)?,
            None => self.list(conversation, number, depth)?,
        }
        self.end_turn();
        for inner in self.shown.nesting.under(number, None) {
            self.subagent(*inner, depth)?;
        }
        Ok(())
    }

    /// Writes the parts of a conversation. Other threads write them into memory.
    fn parts(&mut self, conversation: &Conversation<'_>, parts: &Parts<'_>) -> Result<()> {
        let (shown, options, pack) = (self.shown, self.options, self.pack);
        let mut printer = PartWriter {
            writer: self,
            conversation,
        };
        conversation.print_parts(parts, &mut printer, |part, _, number| {
            let mut parts = Vec::new();
            let mut take = |part| {
                parts.push(part);
                Ok(())
            };
            let mut writer = Writer::new(shown, options, pack, &mut take);
            writer.part(conversation, part, number)?;
            writer.end_piece()?;
            Ok(parts)
        })
    }

    /// Writes a part, which may start and end within a turn.
    fn part(
        &mut self,
        conversation: &Conversation<'_>,
        part: &Conversation<'_>,
        number: usize,
    ) -> Result<()> {
        let Some(parts) = &conversation.parts else {
            self.list(part, 0, 0)?;
            self.end_turn();
            return Ok(());
        };
        // A turn may start in an earlier part, so its totals need the usage of the entries before this part.
        let index = conversation.index;
        let first = parts.first(number, index);
        if first.is_some_and(|first| !starts_turn(&first)) {
            let mut bodies = Bodies::new(conversation.source);
            for entry in parts.before(number, index) {
                if starts_turn(&entry) {
                    break;
                }
                if entry.kind() == EntryKind::Assistant
                    && let Ok(body) = Entry::parse(bodies.get(&entry)?.text)
                {
                    self.turn.add(&body, &entry, self.options);
                }
            }
        }
        self.list(part, 0, 0)?;
        // The totals are printed below the last part of the turn, and only there.
        let next = (number + 1 < parts.len()).then(|| parts.first(number + 1, index));
        if next.flatten().is_none_or(|next| starts_turn(&next)) {
            self.end_turn();
        }
        self.turn = TurnTotals::default();
        Ok(())
    }

    /// Writes a subagent below the call that started it.
    fn subagent(&mut self, number: usize, depth: usize) -> Result<()> {
        if depth >= MAX_NESTING || !self.placed.insert(number) {
            return Ok(());
        }
        let child = &self.shown.conversations[number];
        let title = child.title.as_deref().unwrap_or("subagent");
        let title = format!("{title} · {}", count(child.entries, "entry"));
        let title = html! { summary { (self.escaping.one_line(&title)) } };
        self.inner("conversation", &title, number, depth)
    }

    /// Writes a fork: the branches that leave here. While one is open, the style of the page hides what follows.
    fn fork(&mut self, branches: &[usize], depth: usize) -> Result<()> {
        let new: Vec<usize> = branches
            .iter()
            .copied()
            .filter(|branch| self.placed.insert(*branch))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        self.around("<div class=\"fork\">\n".to_owned())?;
        for number in new {
            let branch = &self.shown.conversations[number];
            let entries = count(branch.entries, "entry");
            let reason = branch.branch_reason.as_deref();
            let reason = reason.map(|reason| self.escaping.one_line(reason));
            let facts = [reason, Some(entries), self.first_text(branch)?];
            let facts: Vec<String> = facts.into_iter().flatten().collect();
            let title = html! {
                summary {
                    span.go { "Another branch leaves here · " (facts.join(" · ")) }
                    span.back { "Back to the conversation" }
                }
            };
            self.inner("branch", &title, number, depth)?;
        }
        self.around("</div>\n".to_owned())
    }

    /// Returns the start of the first text of a conversation.
    fn first_text(&self, conversation: &Conversation<'_>) -> Result<Option<String>> {
        let items = conversation.display.items();
        let Some(place) = items.iter().position(|item| item.kind() == ItemKind::Text) else {
            return Ok(None);
        };
        let mut reader = conversation.reader();
        let text = reader.item(place)?.text().unwrap_or_default();
        let first = text.lines().find(|line| !line.trim().is_empty());
        Ok(first.map(|line| cut_text(&self.escaping.one_line(line), MAX_PROMPT_CHARS)))
    }

    /// Writes a conversation inside of another one.
    fn inner(&mut self, class: &str, title: &Markup, number: usize, depth: usize) -> Result<()> {
        self.around(format!("<details class=\"{class}\">{}\n", title.0))?;
        // The inner conversation has its own turn, folder and entries; those of the outer one continue below it.
        let outer = (
            // An entry can be in several conversations of the page, and an id must be on it once.
            std::mem::replace(&mut self.prefix, format!("{number}.")),
            std::mem::take(&mut self.turn),
            std::mem::take(&mut self.seen),
            self.cwd.clone(),
            self.new_id.take(),
        );
        self.conversation(number, depth + 1)?;
        (self.prefix, self.turn, self.seen, self.cwd, self.new_id) = outer;
        self.around("</details>\n".to_owned())
    }

    fn list(&mut self, conversation: &Conversation<'_>, number: usize, depth: usize) -> Result<()> {
        let display = &conversation.display;
        let mut item_reader = conversation.reader();
        let forks = self.forks(conversation);
        self.seen.clear();
        // The call of the current group.
        let mut call: Option<String> = None;
        for (place, item) in display.items().iter().enumerate() {
            let loaded = item_reader.item(place)?;
            let entry_ref = conversation.index.entry(item.entry_no());
            let group = item.group();
            // A piece never ends between a call and its result, which are one element of the page.
            let is_start = !matches!(group, Some((_, GroupRole::Result)));
            if is_start && self.piece.html.len() >= PIECE_LEN {
                self.anchor();
                self.end_piece()?;
            }
            self.before(conversation, item, &loaded);
            let nested = match group {
                Some((group, GroupRole::Result)) => self.shown.nesting.under(number, Some(group)),
                _ => &[],
            };
            // The subagent is between its call and its result.
            for child in nested {
                if !self.shown.conversations.is_empty() {
                    self.subagent(*child, depth)?;
                }
            }
            match group.map(|(group, part)| (&display.groups()[group], part)) {
                Some((group, GroupRole::Opening)) if group.kind() == GroupKind::Hooks => {}
                Some((group, GroupRole::Opening)) => {
                    let block = loaded.block();
                    let raw = block.as_ref().and_then(input);
                    let is_open = item.marks().contains(ItemMarks::UNANSWERED);
                    self.call(group.tool(), raw, is_open);
                    call = raw.map(|raw| raw.text().to_owned());
                }
                Some((group, GroupRole::Result)) => {
                    let raw = call.as_deref().and_then(|text| Raw::parse(text).ok());
                    self.result(group.tool(), item, &loaded, raw, conversation.source);
                }
                _ => self.item(conversation, item, &loaded, &entry_ref),
            }
            // A call without a result has its subagent all the same.
            if let Some((group, GroupRole::Opening)) = group
                && item.marks().contains(ItemMarks::UNANSWERED)
            {
                for child in self.shown.nesting.under(number, Some(group)) {
                    self.subagent(*child, depth)?;
                }
            }
            if let Some(branches) = forks.get(&place) {
                self.anchor();
                self.fork(branches, depth)?;
            }
        }
        self.anchor();
        Ok(())
    }

    /// Returns the branches that leave this conversation, by the place of the item that they follow.
    fn forks(&self, conversation: &Conversation<'_>) -> HashMap<usize, Vec<usize>> {
        let mut forks: HashMap<usize, Vec<usize>> = HashMap::new();
        let items = conversation.display.items();
        if self.leaving.is_empty() {
            return forks;
        }
        // Counted for the test that placing branches takes linear time.
        work::add(items.len());
        let in_group =
            |item: &Item| matches!(item.group(), Some((_, role)) if role != GroupRole::Opening);
        let mut seen = HashSet::new();
        // The end of the items that belong to one, because nothing may come between a call and its result.
        let mut end = items.len();
        for (place, item) in items.iter().enumerate().rev() {
            if !items.get(place + 1).is_some_and(in_group) {
                end = place;
            }
            // The last item of each entry.
            if seen.insert(item.entry_no())
                && let Some(branches) = self.leaving.get(&item.entry_no())
            {
                work::add(branches.len());
                forks.entry(end).or_default().extend(branches);
            }
        }
        forks
            .values_mut()
            .for_each(|branches| branches.sort_unstable());
        forks
    }

    /// Writes the place of an entry of which nothing is shown.
    fn anchor(&mut self) {
        if let Some(id) = self.new_id.take() {
            self.put(html! { span id=(id) {} }, 0);
        }
    }

    /// Writes the totals, the gap and the anchor above an entry.
    fn before(&mut self, conversation: &Conversation<'_>, item: &Item, loaded: &LoadedItem<'_>) {
        let entry_ref = conversation.index.entry(item.entry_no());
        let id = match entry_ref.uuid() {
            Some(uuid) => conversation.index.id_text(uuid),
            None => format!("line-{}", entry_ref.line()),
        };
        let is_part = |c: &char| c.is_ascii_alphanumeric() || "-_".contains(*c);
        // The id comes from the file: it must not end the attribute, and not fill the page.
        let id: String = id.chars().filter(is_part).take(64).collect();
        self.entry_id = format!("{}{id}", self.prefix);
        if !self.seen.insert(item.entry_no()) {
            return;
        }
        self.anchor();
        if starts_turn(&entry_ref) || item.marks().contains(ItemMarks::AFTER_HIDDEN) {
            self.put_turn();
        }
        // Lines of progress are not entries of the conversation.
        let has_place = entry_ref.kind() != EntryKind::Progress;
        self.new_id = has_place.then(|| self.entry_id.clone());
        let decisions = conversation.display.decisions(item);
        let mut gaps = decisions
            .iter()
            .filter_map(|decision| gap(conversation.index, decision));
        if let Some(gap) = gaps.next() {
            let gap = self.escaping.one_line(&gap);
            self.put(html! { p.gap { (gap) } }, 60);
        }
        let Some(entry) = loaded.entry() else {
            return;
        };
        if let Some(cwd) = entry.object().str("cwd")
            && self.cwd.as_deref() != Some(&*cwd)
        {
            self.cwd = Some(cwd.into_owned());
        }
        // A turn ends where the next prompt is written, so the prompt belongs to none yet.
        if entry_ref.kind() == EntryKind::Assistant {
            self.turn.add(&entry, &entry_ref, self.options);
        }
    }

    /// Writes the totals of the turn.
    fn end_turn(&mut self) {
        self.anchor();
        self.put_turn();
    }

    fn put_turn(&mut self) {
        if let Some(line) = std::mem::take(&mut self.turn).line() {
            self.put(html! { p.turn { (line) } }, 30);
        }
    }

    fn item(
        &mut self,
        conversation: &Conversation<'_>,
        item: &Item,
        loaded: &LoadedItem<'_>,
        entry_ref: &EntryRef<'_>,
    ) {
        match item.kind() {
            ItemKind::Text => self.said(item, &loaded.text().unwrap_or_default(), entry_ref),
            ItemKind::Thinking => {
                let text = self.options.thinking.then(|| loaded.text()).flatten();
                if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
                    let text = markdown::markup(&text, self.escaping);
                    let id = self.new_id.take();
                    self.put(
                        html! {
                            div.item.thinking id=[id] {
                                details { summary { "thinking" } div.text { (text) } }
                            }
                        },
                        40,
                    );
                }
            }
            ItemKind::Media | ItemKind::Block => {
                if let Some(block) = loaded.block() {
                    self.block(&block, item.speaker(), entry_ref);
                }
            }
            ItemKind::Result => self.result("", item, loaded, None, conversation.source),
            ItemKind::Compaction => {
                let time = self.time(entry_ref, "%Y-%m-%d %H:%M");
                let text = compaction::in_document(
                    conversation.display.compaction(item),
                    conversation.place_of(item.entry_no()),
                    time.as_deref(),
                );
                let text = self.escaping.one_line(&text);
                let id = self.new_id.take();
                self.put(html! { div.chapter id=[id] { (text) } }, 110);
            }
            ItemKind::System => {
                let entry = loaded.entry();
                let content = entry.and_then(|entry| entry.object().str("content"));
                match entry_ref.system_kind() {
                    Some(SystemKind::ApiError) => {
                        self.aside("error", "API error, Claude Code tried again");
                    }
                    Some(SystemKind::TurnDuration | SystemKind::StopHookSummary) => {}
                    _ => self.aside("system", &content.unwrap_or_default()),
                }
            }
            ItemKind::Attachment => self.attachment(item, loaded, entry_ref),
            ItemKind::Unusable => {
                let text = format!("Line {} cannot be read.", entry_ref.line());
                let id = self.new_id.take();
                self.put(html! { p.gap id=[id] { (text) } }, 60);
            }
            ItemKind::TooMany => {
                let line = entry_ref.line();
                let text = format!("Line {line} has too many elements to be shown.");
                let id = self.new_id.take();
                self.put(html! { p.gap id=[id] { (text) } }, 60);
            }
            _ => {}
        }
    }

    fn attachment(&mut self, item: &Item, loaded: &LoadedItem<'_>, entry_ref: &EntryRef<'_>) {
        let entry = loaded.entry();
        let Some(attachment) = entry.and_then(|entry| entry.object().object("attachment")) else {
            return;
        };
        let kind = entry_ref.attachment_kind();
        if kind == Some(AttachmentKind::QueuedCommand) {
            let prompt = attachment.get("prompt").map(plain_text);
            return self.said(item, &prompt.unwrap_or_default(), entry_ref);
        }
        // The content of an unknown kind may be anything: only its name and size are shown.
        if kind.is_none_or(|kind| kind == AttachmentKind::Other) {
            let name = attachment.str("type").unwrap_or_default();
            let size = units::size(entry_ref.byte_len());
            let text = format!("attachment of an unknown kind omitted: {name}, {size}");
            let text = self.escaping.one_line(&text);
            return self.aside("attachment", &text);
        }
        let line = attachment_line(kind, &attachment, self.cwd.as_deref());
        self.aside("attachment", &line.unwrap_or_default());
    }

    fn time(&self, entry_ref: &EntryRef<'_>, form: &str) -> Option<String> {
        let time = clock(entry_ref.millis()?, &self.options.zone)?;
        Some(time.strftime(form).to_string())
    }

    fn said(&mut self, item: &Item, text: &str, entry_ref: &EntryRef<'_>) {
        let mut text = text.trim();
        let mut notes = ["", ""];
        let markup = |text| markdown::markup(text, self.escaping);
        let (class, who, shown) = match ShownText::of(item, text) {
            ShownText::Prompt(said) => {
                (text, notes) = (said.words.trim(), [said.before, said.after]);
                // As it was typed: logs and commands are not Markdown.
                ("person", "User", self.typed(text))
            }
            ShownText::Command(command) => {
                let command = self.escaping.escape(&command).into_owned();
                ("person", "User", html! { pre { code { (command) } } })
            }
            ShownText::Answer => ("answer", "Assistant", markup(text)),
            ShownText::Summary => ("summary", "Summary", markup(text)),
            ShownText::Aside(what, text) => return self.aside(what, &text),
            ShownText::Alarm => return self.aside("error", text),
            ShownText::Nothing => return,
        };
        if item.speaker() == Speaker::Person && class == "person" {
            // A command starts a turn as well.
            let id = self.new_id.take();
            self.put_turn();
            self.new_id = id;
            let first = text.lines().find(|line| !line.trim().is_empty());
            let line = self.escaping.one_line(first.unwrap_or_default());
            // Only the prompts of the main conversation are in the list.
            if self.prefix.is_empty() {
                self.piece.prompts.push(Prompt {
                    id: self.entry_id.clone(),
                    text: cut_text(&line, MAX_PROMPT_CHARS),
                });
            }
        }
        // An estimate of the height on the page, in pixels, before the browser has laid it out.
        let height = 70 + lines(text) * 25;
        self.article(class, who, &shown, height, entry_ref);
        for note in notes {
            self.aside("client", note);
        }
    }

    /// Returns the text of a person, with its lines and blanks.
    fn typed(&self, text: &str) -> Markup {
        html! { div.typed { (self.escaping.escape(text)) } }
    }

    /// Writes a text with the name of its author.
    fn article(
        &mut self,
        class: &str,
        who: &str,
        shown: &Markup,
        height: usize,
        entry_ref: &EntryRef<'_>,
    ) {
        let time = self.time(entry_ref, "%H:%M");
        let whole = self.time(entry_ref, "%Y-%m-%d %H:%M:%S");
        let place = format!("#{}", self.entry_id);
        let id = self.new_id.take();
        self.put(
            html! {
                article class=(format!("item {class}")) id=[id] {
                    div.who {
                        b { (who) }
                        @if let Some(time) = &time {
                            a href=(place) title=[&whole] { (time) }
                        }
                    }
                    div.text { (shown) }
                }
            },
            height,
        );
    }

    fn aside(&mut self, what: &str, text: &str) {
        let text = self.escaping.without_colours(text);
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let text = self.escaping.escape(text).into_owned();
        let id = self.new_id.take();
        // Notes of the client are often longer than the conversation: long ones are folded.
        let is_long = text.len() > 200 || text.lines().count() > 2;
        self.put(
            html! {
                div.item.aside id=[id] {
                    @if is_long {
                        details { summary { (what) } pre { (text) } }
                    } @else {
                        div.text { (text) }
                    }
                }
            },
            40,
        );
    }

    /// An image, or the name of something else.
    fn block(&mut self, block: &Block<'_>, speaker: Speaker, entry_ref: &EntryRef<'_>) {
        let line = self.escaping.one_line(&block_line(block));
        match image(block) {
            Some((kind, data)) => {
                let url = format!("data:{kind};base64,{data}");
                let image = html! { img src=(url) alt=(line) loading="lazy"; };
                // An image of a person often precedes the text of the prompt.
                match speaker {
                    Speaker::Person => self.article("person media", "User", &image, 430, entry_ref),
                    _ => {
                        let id = self.new_id.take();
                        self.put(html! { div.item id=[id] { (image) } }, 400);
                    }
                }
            }
            None => self.aside("block", &block_lines(block)),
        }
    }

    fn call(&mut self, tool: &str, input: Option<Raw<'_>>, is_open: bool) {
        if self.options.tools == Tools::None {
            return;
        }
        let escaping = self.escaping;
        let about = tool_summary::about_lines(tool, input, self.cwd.as_deref(), escaping);
        let tool = escaping.one_line(tool);
        let raw = input.map(|raw| escaping.escape(cut(raw.text())).into_owned());
        let id = self.new_id.take();
        let is_full = self.options.tools == Tools::Full;
        let height = 30 + 20 * about.len().saturating_sub(1) + 24 * usize::from(is_full);
        self.put(
            html! {
                div.item.call id=[id] {
                    @match &about[..] {
                        [] => div.tool { b { (tool) } },
                        [line] => div.tool { b { (tool) } " " (line) },
                        lines => {
                            div.tool { b { (tool) } }
                            pre { (lines.join("\n")) }
                        }
                    }
                    @if let (true, Some(raw)) = (is_full, &raw) {
                        details { summary { "input" } pre { (raw) } }
                    }
                    @if is_open { p.gap { "No result." } }
                }
            },
            height,
        );
    }

    fn result(
        &mut self,
        tool: &str,
        item: &Item,
        loaded: &LoadedItem<'_>,
        input: Option<Raw<'_>>,
        source: &Source,
    ) {
        if self.options.tools == Tools::None {
            return;
        }
        let has_failed = item.marks().contains(ItemMarks::FAILED);
        let escaping = self.escaping;
        let mut height = 34;
        let shown = match CallOutcome::of_result(tool, input, loaded) {
            CallOutcome::Diff(diff) => {
                let text = diff.to_text();
                let (added, removed) = (diff.added, diff.removed);
                let is_short = added + removed <= MAX_OPEN_DIFF_LINES;
                if is_short {
                    height += 20 * text.lines().count();
                }
                html! {
                    details open[is_short] {
                        summary { (format!("+{added} −{removed}")) }
                        pre.diff { @for run in diff_runs(cut(&text)) { (diff_run(escaping, run)) } }
                    }
                }
            }
            CallOutcome::Todos(todos) => {
                height += 25 * todos.len();
                html! {
                    ul.todos {
                        @for todo in &todos {
                            li.done[todo.state == TodoState::Done] {
                                (todo.state.mark()) " " (escaping.one_line(&todo.text))
                            }
                        }
                    }
                }
            }
            CallOutcome::Text => {
                let stored_in = (self.options.tools == Tools::Full).then_some(source);
                let text = result_text(loaded, escaping, stored_in);
                let text = text.trim_end();
                if text.is_empty() && !has_failed {
                    return;
                }
                let shown = cut(text);
                if has_failed {
                    height += 20 * lines(shown);
                }
                let word = if has_failed { "failed" } else { "result" };
                html! {
                    details open[has_failed] {
                        summary { (word) " · " (size(text)) }
                        pre { (escaping.escape(shown)) }
                        @if shown.len() < text.len() {
                            p.gap { "⋯ " (units::size((text.len() - shown.len()) as u64)) " more" }
                        }
                    }
                }
            }
        };
        let images = images(loaded);
        height += 400 * images.len();
        let id = self.new_id.take();
        self.put(
            html! {
                div class=(if has_failed { "item result failed" } else { "item result" }) id=[id] {
                    (shown)
                    @for (kind, data) in &images {
                        img src=(format!("data:{kind};base64,{data}")) alt="image of a result" loading="lazy";
                    }
                }
            },
            height,
        );
    }
}

impl TurnTotals {
    /// Adds the usage of a line of an answer.
    fn add(&mut self, entry: &Entry<'_>, entry_ref: &EntryRef<'_>, options: &RenderOptions) {
        if let Some(at) = entry_ref.millis() {
            let (first, last) = self.times.unwrap_or((at, at));
            self.times = Some((first.min(at), last.max(at)));
        }
        let Some(message) = entry.object().object("message") else {
            return;
        };
        let Some(usage) = message.object("usage") else {
            return;
        };
        // A line without the id of a message is a call of its own.
        let id = message.str("id").or_else(|| entry.object().str("uuid"));
        let model = message.str("model").unwrap_or_default();
        let number = |name| usage.u64(name).unwrap_or(0);
        let cached = number("cache_read_input_tokens");
        let call = CallUsage {
            input: number("input_tokens")
                .saturating_add(number("cache_creation_input_tokens"))
                .saturating_add(cached),
            cached,
            output: number("output_tokens"),
            cost: options
                .price
                .as_ref()
                .and_then(|price| price.of(&model, &usage)),
        };
        let known = self.calls.entry(id.unwrap_or(Cow::Borrowed("")).into());
        let known = known.or_default();
        known.input = known.input.max(call.input);
        known.cached = known.cached.max(call.cached);
        known.output = known.output.max(call.output);
        known.cost = known.cost.max(call.cost);
    }

    /// Returns the sums in words.
    fn line(&self) -> Option<String> {
        let sum = |of: fn(&CallUsage) -> u64| {
            let counts = self.calls.values().map(of);
            counts.fold(0, u64::saturating_add)
        };
        let [input, cached, output] = [
            sum(|call| call.input),
            sum(|call| call.cached),
            sum(|call| call.output),
        ];
        if input == 0 && output == 0 {
            return None;
        }
        let [input, cached, output] = [input, cached, output].map(grouped);
        let mut line = format!("{input} tokens in ({cached} cached), {output} out");
        // Without the price of one of them, the sum is not known.
        let costs: Option<Vec<u128>> = self.calls.values().map(|call| call.cost).collect();
        if let Some(costs) = costs {
            let sum = costs.into_iter().fold(0, u128::saturating_add);
            line.push_str(&format!(" · {}", dollars(sum)));
        }
        if let Some((first, last)) = self.times
            && last > first
        {
            line.push_str(&format!(" · {}", duration((last - first).unsigned_abs())));
        }
        Some(line)
    }
}

/// Returns about how many lines a text takes on the page.
fn lines(text: &str) -> usize {
    text.lines().map(|line| 1 + line.len() / 90).sum()
}

/// Returns type and data of an image that can be shown.
fn image<'b>(block: &Block<'b>) -> Option<(String, Cow<'b, str>)> {
    let Block::Image(image) = block else {
        return None;
    };
    let source = image.source()?;
    let (kind, data) = (source.media_type()?, source.data()?);
    // The data becomes a part of an attribute. Other characters could end it and add markup.
    let is_base64 = data
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
    (IMAGE_TYPES.contains(&&*kind) && is_base64).then(|| (kind.into_owned(), data))
}

/// Returns the images of a result.
fn images(loaded: &LoadedItem<'_>) -> Vec<(String, String)> {
    let content = loaded.object().and_then(|block| block.field("content"));
    let blocks = content.map(crate::blocks::blocks).unwrap_or_default();
    let images = blocks.into_iter().filter_map(|raw| {
        let block = transcript_format::object::FromRaw::from_raw(raw)?;
        let (kind, data) = image(&block)?;
        Some((kind, data.into_owned()))
    });
    images.collect()
}

/// Returns the start of a long text.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_RESULT_LEN);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Divides the text of a diff into runs of lines of one kind: an element for each line would be many.
fn diff_runs(text: &str) -> impl Iterator<Item = &str> {
    let kind = |line: &str| match line.as_bytes().first() {
        Some(sign @ (b'+' | b'-')) => *sign,
        _ => b' ',
    };
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = kind(rest.lines().next()?);
        let same = rest
            .split_inclusive('\n')
            .take_while(|line| kind(line) == first);
        let (run, after) = rest.split_at(same.map(str::len).sum());
        rest = after;
        Some(run.trim_end_matches('\n'))
    })
}

fn diff_run(escaping: Escaping, run: &str) -> Markup {
    let class = match run.as_bytes().first() {
        Some(b'+') => "add",
        Some(b'-') => "del",
        _ => "same",
    };
    html! { span class=(class) { (escaping.escape(run)) } }
}

impl<P: Send> PartPrinter for PartWriter<'_, '_, '_, P> {
    type Made = Vec<PagePart<P>>;

    const TAKES_ANY_PART: bool = true;

    fn print(&mut self, part: &Conversation<'_>, number: usize) -> Result<()> {
        // The ends of pieces must not depend on the thread that wrote a part.
        self.writer.end_piece()?;
        self.writer.part(self.conversation, part, number)?;
        self.writer.end_piece()
    }

    fn append(&mut self, _first: &EntryRef<'_>, made: Self::Made) -> Result<bool> {
        self.writer.end_piece()?;
        for part in made {
            (self.writer.take)(part)?;
        }
        Ok(true)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::path::Path;

    use crate::options::CallPrice;

    use transcript_reader::{Index, Source};
    use transcript_resume::items::{Cut, Displays, SubagentOrigin};
    use transcript_resume::{Policy, Tree};

    /// Texts that try to run scripts, to fetch something or to leave their element.
    const PAYLOADS: [&str; 40] = [
        "<script>alert(1)</script>",
        "</script><script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<svg onload=alert(1)>",
        "<svg><script href=data:,alert(1) />",
        "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
        "<body onload=alert(1)>",
        "<details open ontoggle=alert(1)>",
        "</details></article></main><h1>x</h1>",
        "</title><script>alert(1)</script>",
        "</style><script>alert(1)</script>",
        "<style>*{background:url(https://t.example/)}</style>",
        "<link rel=stylesheet href=https://t.example/>",
        "<meta http-equiv=refresh content='0;url=https://t.example/'>",
        "<base href=https://t.example/>",
        "<form action=https://t.example/><input autofocus onfocus=alert(1)></form>",
        "<a href=javascript:alert(1)>x</a>",
        "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:msgbox(1))",
        "[x](file:///etc/passwd)",
        "[x](//t.example/)",
        "![x](https://t.example/p.png)",
        "![x](data:image/svg+xml;base64,PHN2Zz4=)",
        "![x](x\" onerror=\"alert(1))",
        "[![i](https://t.example/i.png)](https://t.example/)",
        "[x](https://t.example/\"onmouseover=alert(1))",
        "[x]: javascript:alert(1)\n\n[x]",
        "<https://t.example/\"onclick=alert(1)>",
        "<javascript:alert(1)>",
        "`<script>alert(1)</script>`",
        "```html\"><script>alert(1)</script>\nx\n```",
        "<!--content--><script>",
        "<!--prompts--><script>",
        "--><script>alert(1)</script><!--",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "\u{202e}<script>\u{2066}\u{200b}",
        "\u{1b}]8;;https://t.example/\u{7}x\u{1b}]8;;\u{7}<b>",
    ];

    /// Tags with their attributes.
    fn tags(page: &str) -> Vec<(String, Vec<(String, String)>)> {
        let mut tags = Vec::new();
        let mut rest = page;
        while let Some(at) = rest.find('<') {
            rest = &rest[at + 1..];
            let end = rest.find([' ', '>']).unwrap_or(rest.len());
            let name = rest[..end].trim_start_matches('/').to_ascii_lowercase();
            rest = &rest[end..];
            let mut attributes = Vec::new();
            while let Some(after) = rest.strip_prefix(' ') {
                let end = after.find(['=', ' ', '>']).unwrap_or(after.len());
                let attribute = after[..end].to_owned();
                rest = &after[end..];
                let mut value = "";
                if let Some(quoted) = rest.strip_prefix("=\"") {
                    let end = quoted.find('"').unwrap_or(quoted.len());
                    value = &quoted[..end];
                    rest = &quoted[end + 1..];
                }
                attributes.push((attribute, value.to_owned()));
            }
            tags.push((name, attributes));
        }
        tags
    }

    /// The conversation, and the same again as a subagent and as a branch.
    fn page(lines: &str, title: Option<&str>) -> String {
        let source = Source::from_bytes(lines.as_bytes(), Path::new("-"));
        let index = Index::load(&source).unwrap();
        let tree = Tree::new(&index, Policy::Recover);
        let path = tree.path();
        let titled = |title: Option<String>| {
            Conversation::new(&source, &index, &mut Displays::new(&tree), &path, title).unwrap()
        };
        let title = title.unwrap_or("agent").to_owned();
        let shown = [
            titled(None),
            titled(Some(title.clone())),
            titled(Some(title)),
        ];
        let origins = [SubagentOrigin::default()];
        let displays: Vec<_> = shown.iter().map(Conversation::display).collect();
        let nesting = Nesting::new(&displays, &origins);
        let first = index.entries().next().unwrap().number();
        let shown = HtmlConversations {
            conversations: &shown,
            nesting: &nesting,
            branches: &[Some(first)],
        };
        let options = RenderOptions::new()
            .tools(Tools::Full)
            .thinking(true)
            .price(CallPrice::new(|_, _| Some(1_234_567)));
        let mut page = String::new();
        let mut take = |part| {
            page.push_str(&match part {
                PagePart::Markup(markup) => markup,
                PagePart::Piece(piece) => piece,
            });
            Ok(())
        };
        write(&shown, &options, &|piece: Piece| piece.html, &mut take).unwrap();
        page
    }

    /// A conversation with a text wherever one can be.
    fn conversation(text: &str) -> String {
        let text = serde_json::to_string(text).unwrap();
        [
            format!(r#"{{"type":"user","uuid":"u","parentUuid":null,"cwd":{text},"message":{{"role":"user","content":{text}}}}}"#),
            format!(r#"{{"type":"assistant","uuid":"a","parentUuid":"u","message":{{"id":"m","role":"assistant","content":[{{"type":"thinking","thinking":{text}}},{{"type":"text","text":{text}}},{{"type":"tool_use","id":"t","name":{text},"input":{{"command":{text}}}}},{{"type":"tool_use","id":"w","name":"Write","input":{{"file_path":{text},"content":{text}}}}}]}}}}"#),
            format!(r#"{{"type":"user","uuid":"r","parentUuid":"a","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":[{{"type":"text","text":{text}}},{{"type":"image","source":{{"type":"base64","media_type":{text},"data":{text}}}}},{{"type":"image","source":{{"type":"base64","media_type":"image/svg+xml","data":"PHN2Zz4="}}}}]}},{{"type":"tool_result","tool_use_id":"w","is_error":true,"content":{text}}}]}}}}"#),
            format!(r#"{{"type":"user","uuid":"i","parentUuid":"r","message":{{"role":"user","content":[{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":{text}}}}},{{"type":"image","source":{{"type":"base64","media_type":"image/svg+xml","data":"PHN2Zz4="}}}},{{"type":"text","text":{text}}}]}}}}"#),
        ]
        .join("\n")
    }

    #[test]
    fn every_entry_has_its_place() {
        let shown = page(&conversation("x"), None);
        for id in ["u", "a", "r", "i"] {
            assert_eq!(shown.matches(&format!(" id=\"{id}\"")).count(), 1, "{id}");
            for copy in ["1", "2"] {
                let place = format!(" id=\"{copy}.{id}\"");
                assert_eq!(shown.matches(&place).count(), 1, "{place}");
            }
        }
        let empty = concat!(
            r#"{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":"x"}}"#,
            "\n",
            r#"{"type":"assistant","uuid":"a","parentUuid":"u","message":{"id":"m","role":"assistant","content":[{"type":"thinking","thinking":""}]}}"#,
            "\n",
            r#"{"type":"user","uuid":"b","parentUuid":"a","message":{"role":"user","content":"y"}}"#,
        );
        assert!(page(empty, None).contains("<span id=\"a\"></span>"));
    }

    #[test]
    fn no_text_brings_a_tag_an_attribute_or_a_request_of_its_own() {
        const TAGS: &str = "a h1 ul li h2 ol article div b p pre code details summary span img h3 h4 h5 h6 blockquote em \
            strong del hr br table thead tbody tr th td";
        const ATTRIBUTES: &str = "class href id title open alt src loading html";
        let harmless: Vec<String> = tags(&page(&conversation("x"), Some("x")))
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        for payload in PAYLOADS {
            let page = page(&conversation(payload), Some(payload));
            for (name, attributes) in tags(&page) {
                assert!(
                    TAGS.split_whitespace().any(|tag| tag == name),
                    "{payload}: {name}"
                );
                for (attribute, value) in attributes {
                    let is_known = ATTRIBUTES
                        .split_whitespace()
                        .any(|known| known == attribute);
                    assert!(is_known, "{payload}: {name} {attribute}");
                    if attribute == "href" {
                        let is_safe = ["#", "http://", "https://", "mailto:"];
                        let is_safe = is_safe.iter().any(|start| value.starts_with(start));
                        assert!(is_safe, "{payload}: {value}");
                    }
                    if attribute == "src" {
                        assert!(
                            value.starts_with("data:image/png;base64,"),
                            "{payload}: {value}"
                        );
                    }
                }
            }
            // Nothing closes what the page has opened, or opens more.
            for name in ["article", "div", "details"] {
                let count = |page: &str, tag: &str| page.matches(tag).count();
                let (open, close) = (format!("<{name}"), format!("</{name}>"));
                assert_eq!(
                    count(&page, &open),
                    count(&page, &close),
                    "{payload}: {name}"
                );
            }
        }
        assert!(harmless.contains(&"article".to_owned()));
    }

    #[test]
    fn images_of_known_types_are_on_the_page_and_links_work() {
        let lines = concat!(
            r#"{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},{"type":"text","text":"see\n  *this*"}]}}"#,
            "\n",
            r#"{"type":"assistant","uuid":"a","parentUuid":"u","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"see [this](https://a.example/?x=1&y=2) and\n\n| a | b |\n| - | - |\n| 1 | 2 |"}]}}"#,
            "\n"
        );
        let page = page(lines, None);
        assert!(
            page.contains("src=\"data:image/png;base64,iVBORw0KGgo=\""),
            "{page}"
        );
        assert!(
            page.contains("<a href=\"https://a.example/?x=1&amp;y=2\">this</a>"),
            "{page}"
        );
        assert!(page.contains("<td>1</td>"), "{page}");
        // The text of a person is as it was typed.
        assert!(
            page.contains("<div class=\"typed\">see\n  *this*</div>"),
            "{page}"
        );
    }

    #[test]
    fn a_branch_is_where_it_leaves_and_a_subagent_has_a_place() {
        let page = page(&conversation("x"), None);
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
        // The branch leaves after the first entry of three conversations, but has a place once.
        assert_eq!(page.matches("class=\"fork\"").count(), 1);
        assert!(at(" id=\"u\"") < at("class=\"fork\""));
        assert!(at("class=\"fork\"") < at(" id=\"a\""));
        assert_eq!(page.matches("class=\"conversation\"").count(), 1);
    }

    #[cfg(debug_assertions)]
    #[test]
    fn branches_are_placed_in_linear_time() {
        let cost = |branches: usize| {
            let line = |uuid: &str, parent: &str| {
                format!(
                    r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"message":{{"role":"user","content":"p"}}}}"#
                )
            };
            // A branch at each prompt.
            let mut lines = vec![line("m0", "null")];
            for number in 1..=branches {
                let parent = format!("\"m{}\"", number - 1);
                lines.push(line(&format!("b{number}"), &parent));
                lines.push(line(&format!("m{number}"), &parent));
            }
            let source = Source::from_bytes(lines.join("\n").as_bytes(), Path::new("-"));
            let index = Index::load(&source).unwrap();
            let tree = Tree::new(&index, Policy::Recover);
            let path = tree.path();
            let off = tree.branches_off(&path);
            assert_eq!(off.len(), branches);
            let mut displays = Displays::new(&tree);
            let paths = [&path]
                .into_iter()
                .chain(off.iter().map(|branch| &branch.path));
            let shown: Vec<_> = paths
                .map(|path| Conversation::new(&source, &index, &mut displays, path, None).unwrap())
                .collect();
            let from: Vec<_> = off.iter().map(|branch| branch.from).collect();
            let shown = HtmlConversations {
                conversations: &shown,
                nesting: &Nesting::default(),
                branches: &from,
            };
            let options = RenderOptions::new();
            let mut take = |_| Ok(());
            let writer = Writer::new(&shown, &options, &|piece| piece, &mut take);
            let before = work::done();
            let placed: usize = shown
                .conversations
                .iter()
                .map(|one| writer.forks(one).len())
                .sum();
            assert_eq!(placed, branches);
            (work::done() - before) / branches as u64
        };
        let (few, many) = (cost(20), cost(400));
        assert!(many <= 2 * few, "{few} and {many} a branch");
    }

    #[test]
    fn a_turn_ends_with_what_it_used() {
        let answer = |uuid: &str, parent: &str, id: &str, output: u32| {
            format!(
                r#"{{"type":"assistant","uuid":"{uuid}","parentUuid":"{parent}","timestamp":"2026-01-01T00:00:0{output}Z","message":{{"id":"{id}","role":"assistant","model":"m","content":[{{"type":"text","text":"t"}}],"usage":{{"input_tokens":10,"cache_read_input_tokens":1000,"output_tokens":{output}}}}}}}"#
            )
        };
        let prompt = |uuid: &str, parent: &str| {
            format!(
                r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"message":{{"role":"user","content":"p"}}}}"#
            )
        };
        let lines = [
            prompt("p", "null"),
            // Two lines of one call, the first with fewer tokens than it used; then another call.
            answer("a", "p", "m1", 1),
            answer("b", "a", "m1", 5),
            answer("c", "b", "m2", 3),
            prompt("q", "\"c\""),
            answer("d", "q", "m3", 2),
        ];
        let page = page(&lines.join("\n"), None);
        // The part of the page after the branch, which is a copy.
        let page = &page[page.find(" id=\"a\"").unwrap()..];
        let first = "2,020 tokens in (2,000 cached), 8 out · $0.0025 · 4.0 s";
        let second = "1,010 tokens in (1,000 cached), 2 out · $0.0012";
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
        assert!(at("id=\"c\"") < at(first) && at(first) < at("id=\"q\""));
        assert!(at("id=\"d\"") < at(second));
    }

    #[test]
    fn unknown_facts_are_omitted_and_named() {
        let lines = concat!(
            r#"{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":"x"}}"#,
            "\n",
            r#"{"type":"attachment","uuid":"t","parentUuid":"u","attachment":{"type":"of_tomorrow","content":"private"}}"#,
            "\n",
            r#"{"type":"assistant","uuid":"a","parentUuid":"t","message":{"id":"m","role":"assistant","content":[{"type":"new_block","data":"of tomorrow"}]}}"#,
        );
        let page = page(lines, None);
        assert!(!page.contains("private"), "{page}");
        assert!(
            page.contains("attachment of an unknown kind omitted: of_tomorrow"),
            "{page}"
        );
        // A block is content: what it says is shown.
        assert!(page.contains("[new_block]\nof tomorrow"), "{page}");
    }

    /// A long session: few prompts, many calls, some of them in parallel.
    fn long_session() -> String {
        let mut lines = Vec::new();
        let mut parent = "null".to_owned();
        let mut add = |kind: &str, content: String, usage: &str| {
            let uuid = format!("e{}", lines.len());
            lines.push(format!(
                r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":{parent},"cwd":"/w","timestamp":"2026-01-01T00:{:02}:{:02}Z","message":{{"role":"{kind}","content":{content}{usage}}}}}"#,
                lines.len() / 60 % 60,
                lines.len() % 60
            ));
            parent = format!("\"{uuid}\"");
        };
        for turn in 0..400 {
            if turn % 90 == 0 {
                add("user", format!("\"prompt {turn}\""), "");
            }
            let calls: Vec<String> = (0..1 + turn % 3)
                .map(|call| {
                    format!(r#"{{"type":"tool_use","id":"t{turn}-{call}","name":"Bash","input":{{"command":"run {turn}"}}}}"#)
                })
                .collect();
            let usage = format!(
                r#","id":"m{turn}","model":"m","usage":{{"input_tokens":{turn},"output_tokens":7}}"#
            );
            for call in &calls {
                add("assistant", format!("[{call}]"), &usage);
            }
            for call in 0..calls.len() {
                add(
                    "user",
                    format!(
                        r#"[{{"type":"tool_result","tool_use_id":"t{turn}-{call}","content":"{}"}}]"#,
                        "out ".repeat(200)
                    ),
                    "",
                );
            }
        }
        lines.join("\n")
    }

    #[test]
    fn parts_make_the_page_of_the_whole_wherever_they_start() {
        let lines = long_session();
        let source = Source::from_bytes(lines.as_bytes(), Path::new("-"));
        let index = Index::load(&source).unwrap();
        let tree = Tree::new(&index, Policy::Recover);
        let path = tree.path();
        let options = RenderOptions::new().price(CallPrice::new(|_, _| Some(1)));
        let nesting = Nesting::default();
        let written = |conversation: Conversation<'_>| {
            let shown = HtmlConversations {
                conversations: &[conversation],
                nesting: &nesting,
                branches: &[],
            };
            let mut page = String::new();
            let mut take = |part: PagePart<String>| {
                if let PagePart::Piece(piece) = part {
                    page.push_str(&piece);
                }
                Ok(())
            };
            write(&shown, &options, &|piece: Piece| piece.html, &mut take).unwrap();
            page
        };
        let mut displays = Displays::new(&tree);
        let whole = Conversation::new(&source, &index, &mut displays, &path, None).unwrap();
        let whole = written(whole);
        assert_eq!(whole.matches("class=\"turn\"").count(), 5);
        for cut in [Cut::AtPrompts, Cut::Anywhere] {
            let parts = || Conversation::in_parts(&source, &index, &tree, &path, cut).unwrap();
            assert!(written(parts()) == whole, "{cut:?}");
            let parts = parts();
            let count = parts.part_paths().len();
            assert!(count > 2, "{cut:?}: {count}");
            let one_by_one: String = (0..count)
                .map(|part| write_part(&parts, part, &options).unwrap().html)
                .collect();
            assert!(one_by_one == whole, "{cut:?}");
        }
    }

    #[test]
    fn a_diff_has_an_element_for_each_run_of_lines() {
        let runs: Vec<&str> = diff_runs(" a\n-b\n-c\n+d\n\n e\n").collect();
        assert_eq!(runs, [" a", "-b\n-c", "+d", "\n e"]);
        assert_eq!(diff_runs("").count(), 0);
    }
}
