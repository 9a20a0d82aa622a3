//! Writes conversations as one HTML page that needs nothing else: no script, no request.
//!
//! Text of a transcript reaches the page through [`maud`], which escapes it, or as Markdown whose HTML is shown as text and
//! whose images are links. The page forbids scripts and requests by its policy as well.

use std::collections::HashSet;
use std::io::Write;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd};
use transcript_format::content::Block;
use transcript_format::kind::{AttachmentKind, SystemKind};
use transcript_format::object::Raw;
use transcript_reader::{EntryNo, EntryRef};
use transcript_resume::Usage;
use transcript_resume::items::{
    GroupKind, GroupRole, Item, ItemKind, ItemMarks, LoadedItem, Speaker,
};

use crate::Result;
use crate::blocks::{attachment_line, block_line, input, plain_text, result_text};
use crate::compaction;
use crate::conversation::{Conversation, PartPrinter, Parts, gap};
use crate::escape::Escaping;
use crate::export::tokens;
use crate::header::Header;
use crate::moment::clock;
use crate::options::{RenderOptions, Tools};
use crate::text::cut_text;
use crate::tool_summary::{self, CallOutcome, TodoState, grouped, size};
use crate::view::Shown;
use crate::words::count;

const STYLE: &str = include_str!("html/page.css");
/// The hash of [`STYLE`] in the policy of the page. A test compares them.
const STYLE_HASH: &str = "sha256-wqfWVzH0tOcMbIb3/zGOf3J3JtGRz1vN/DAbfO4Z3Kk=";
/// Longer texts are shown as they are: parsing some Markdown takes quadratic time.
const LONGEST_MARKDOWN: usize = 64 << 10;
/// So much of a result is on the page, in bytes.
const LONGEST_RESULT: usize = 64 << 10;
/// A diff of up to so many lines is open at first.
const SHORT_DIFF: usize = 60;
/// So much of a prompt is in the list of prompts, in characters.
const PROMPT: usize = 80;
/// The types of images that are on the page. Others may contain scripts.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Writes all conversations as a page: the main one, followed by its subagents, then the others.
///
/// # Errors
/// When a body cannot be read, or the output not be written.
pub fn write(
    out: &mut dyn Write,
    conversations: &[Conversation<'_>],
    header: &Header,
    usage: &[Usage],
    options: &RenderOptions,
) -> Result<()> {
    let Some(main) = conversations.first() else {
        return Ok(());
    };
    let page = Page {
        options,
        escaping: options.escaping,
    };
    // The end of the page is written after the conversation, which may be long.
    let whole = page.frame(main, header, usage).into_string();
    let (start, end) = whole.split_once(CONTENT).unwrap_or((&whole, ""));
    out.write_all(start.as_bytes())?;
    let mut writer = Writer::new(out, &page);
    for (number, conversation) in conversations.iter().enumerate() {
        writer.prefix = match number {
            0 => String::new(),
            number => format!("c{number}-"),
        };
        writer.conversation(conversation)?;
    }
    let prompts = std::mem::take(&mut writer.prompts);
    let (end, rest) = end.split_once(PROMPTS).unwrap_or((end, ""));
    out.write_all(end.as_bytes())?;
    out.write_all(page.prompts(&prompts).into_string().as_bytes())?;
    out.write_all(rest.as_bytes())?;
    out.write_all(b"\n")?;
    Ok(())
}

/// What stands for the conversation and the prompts in the frame of the page. Text of a transcript cannot contain it, as
/// its brackets are escaped.
const CONTENT: &str = "<!--content-->";
const PROMPTS: &str = "<!--prompts-->";

/// A prompt, and the id of its place.
struct Prompt {
    id: String,
    text: String,
}

struct Page<'o> {
    options: &'o RenderOptions,
    escaping: Escaping,
}

impl Page<'_> {
    fn frame(&self, main: &Conversation<'_>, header: &Header, usage: &[Usage]) -> Markup {
        let line = |text: &str| self.escaping.one_line(text);
        let id = header.session_id.as_deref().map(line);
        let title = header.title.as_deref().map(line);
        let title = title.or_else(|| id.as_ref().map(|id| format!("Session {id}")));
        let title = title.unwrap_or_else(|| "Session".to_owned());
        let policy = format!(
            "default-src 'none'; style-src '{STYLE_HASH}'; img-src data:; base-uri 'none'; form-action 'none'"
        );
        let mut facts: Vec<String> = header.place().map(|fact| line(&fact)).collect();
        facts.extend(id.map(|id| format!("session {id}")));
        facts.extend(tokens(usage));
        facts.push(count(main.entries, "entry"));
        facts.extend(main.chapters_in_words());
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="referrer" content="no-referrer";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    a.skip href="#conversation" { "Skip to the conversation" }
                    header {
                        h1 { (title) }
                        ul.facts { @for fact in &facts { li { (fact) } } }
                    }
                    main #conversation { (PreEscaped(CONTENT)) }
                    (PreEscaped(PROMPTS))
                }
            }
        }
    }

    fn prompts(&self, prompts: &[Prompt]) -> Markup {
        html! {
            @if !prompts.is_empty() {
                nav aria-label="Prompts" {
                    h2 { (count(prompts.len(), "prompt")) }
                    ol {
                        @for prompt in prompts {
                            li { a href=(format!("#{}", prompt.id)) { (prompt.text) } }
                        }
                    }
                }
            }
        }
    }

    /// Text as the Markdown that agents and people write.
    fn markdown(&self, text: &str) -> Markup {
        let text = self.escaping.escape(text.trim());
        if text.len() > LONGEST_MARKDOWN {
            return html! { pre { (text) } };
        }
        let mut page = String::with_capacity(text.len() * 2);
        let options =
            Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
        pulldown_cmark::html::push_html(&mut page, safe(Parser::new_ext(&text, options)));
        PreEscaped(page)
    }
}

/// Makes HTML text, images links, and links that do not lead to the web the text that they have.
fn safe<'t>(events: impl Iterator<Item = Event<'t>>) -> impl Iterator<Item = Event<'t>> {
    let is_web = |url: &str| {
        let starts = ["https://", "http://", "mailto:"];
        let mut starts = starts.into_iter();
        starts.any(|start| {
            let of = url.get(..start.len());
            of.is_some_and(|of| of.eq_ignore_ascii_case(start))
        })
    };
    // Of each link and image around, whether it is a link on the page.
    let mut around: Vec<bool> = Vec::new();
    events.filter_map(move |event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        Event::Start(Tag::Image { dest_url, .. } | Tag::Link { dest_url, .. }) => {
            let is_link = is_web(&dest_url) && !around.contains(&true);
            around.push(is_link);
            is_link.then(|| Event::Start(link(dest_url)))
        }
        Event::End(TagEnd::Image | TagEnd::Link) => {
            let is_link = around.pop().unwrap_or(false);
            is_link.then_some(Event::End(TagEnd::Link))
        }
        event => Some(event),
    })
}

fn link(dest_url: CowStr<'_>) -> Tag<'_> {
    Tag::Link {
        link_type: pulldown_cmark::LinkType::Inline,
        dest_url,
        title: CowStr::Borrowed(""),
        id: CowStr::Borrowed(""),
    }
}

struct Writer<'o, 'p> {
    out: &'o mut dyn Write,
    page: &'p Page<'p>,
    cwd: Option<String>,
    /// The entries of which something was written.
    seen: HashSet<EntryNo>,
    prompts: Vec<Prompt>,
    /// What the ids of a subagent or a branch start with.
    prefix: String,
    /// The id of the entry that is being written.
    entry_id: String,
    /// The same, until something of the entry is written.
    new_id: Option<String>,
}

/// A part of a conversation, written into memory by another thread.
struct WrittenPart {
    text: Vec<u8>,
    cwd: Option<String>,
    prompts: Vec<Prompt>,
}

impl<'o, 'p> Writer<'o, 'p> {
    fn new(out: &'o mut dyn Write, page: &'p Page<'p>) -> Self {
        Self {
            out,
            page,
            cwd: None,
            seen: HashSet::new(),
            prompts: Vec::new(),
            prefix: String::new(),
            entry_id: String::new(),
            new_id: None,
        }
    }

    fn put(&mut self, markup: &Markup) -> Result<()> {
        self.out.write_all(markup.0.as_bytes())?;
        Ok(self.out.write_all(b"\n")?)
    }

    fn conversation(&mut self, conversation: &Conversation<'_>) -> Result<()> {
        let Some(title) = &conversation.title else {
            return match &conversation.parts {
                Some(parts) => self.parts(conversation, parts),
                None => self.list(conversation),
            };
        };
        let title = html! { summary { (self.page.escaping.one_line(title)) } };
        write!(self.out, "<details class=\"conversation\">{}", title.0)?;
        // Only the prompts of the main conversation are in the list.
        let prompts = self.prompts.len();
        self.list(conversation)?;
        self.prompts.truncate(prompts);
        Ok(self.out.write_all(b"</details>\n")?)
    }

    /// Writes the parts of a conversation. Other threads write them into memory.
    fn parts(&mut self, conversation: &Conversation<'_>, parts: &Parts<'_>) -> Result<()> {
        let page = self.page;
        conversation.print_parts(parts, self, |part, _, _| {
            let mut text = Vec::new();
            let mut writer = Writer::new(&mut text, page);
            writer.list(part)?;
            let (cwd, prompts) = (writer.cwd, writer.prompts);
            Ok(WrittenPart { text, cwd, prompts })
        })
    }

    fn list(&mut self, conversation: &Conversation<'_>) -> Result<()> {
        let display = &conversation.display;
        let mut item_reader = conversation.reader();
        self.seen.clear();
        // The call of the current group.
        let mut call: Option<String> = None;
        for (place, item) in display.items().iter().enumerate() {
            let loaded = item_reader.item(place)?;
            let entry_ref = conversation.index.entry(item.entry_no());
            self.before(conversation, item, &loaded)?;
            let group = item
                .group()
                .map(|(group, part)| (&display.groups()[group], part));
            match group {
                Some((group, GroupRole::Opening)) if group.kind() == GroupKind::Hooks => {}
                Some((group, GroupRole::Opening)) => {
                    let block = loaded.block();
                    let raw = block.as_ref().and_then(input);
                    let is_open = item.marks().contains(ItemMarks::UNANSWERED);
                    self.call(group.tool(), raw, is_open)?;
                    call = raw.map(|raw| raw.text().to_owned());
                }
                Some((group, GroupRole::Result)) => {
                    let raw = call.as_deref().and_then(|text| Raw::parse(text).ok());
                    self.result(group.tool(), item, &loaded, raw)?;
                }
                _ => self.item(conversation, item, &loaded, &entry_ref)?,
            }
        }
        self.anchor()
    }

    /// Writes the place of an entry of which nothing is shown.
    fn anchor(&mut self) -> Result<()> {
        match self.new_id.take() {
            Some(id) => self.put(&html! { span id=(id) {} }),
            None => Ok(()),
        }
    }

    /// Writes what precedes an entry.
    fn before(
        &mut self,
        conversation: &Conversation<'_>,
        item: &Item,
        loaded: &LoadedItem<'_>,
    ) -> Result<()> {
        let entry_ref = conversation.index.entry(item.entry_no());
        let id = match entry_ref.uuid() {
            Some(uuid) => conversation.index.id_text(uuid),
            None => format!("line-{}", entry_ref.line()),
        };
        let is_part = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        let id: String = id.chars().filter(is_part).take(64).collect();
        self.entry_id = format!("{}{id}", self.prefix);
        if !self.seen.insert(item.entry_no()) {
            return Ok(());
        }
        self.anchor()?;
        self.new_id = Some(self.entry_id.clone());
        let decisions = conversation.display.decisions(item);
        let mut gaps = decisions
            .iter()
            .filter_map(|decision| gap(conversation.index, decision));
        if let Some(gap) = gaps.next() {
            let gap = self.page.escaping.one_line(&gap);
            self.put(&html! { p.gap { (gap) } })?;
        }
        let entry = loaded.entry();
        let cwd = entry.as_ref().and_then(|entry| entry.object().str("cwd"));
        if let Some(cwd) = cwd {
            self.cwd = Some(cwd.into_owned());
        }
        Ok(())
    }

    fn item(
        &mut self,
        conversation: &Conversation<'_>,
        item: &Item,
        loaded: &LoadedItem<'_>,
        entry_ref: &EntryRef<'_>,
    ) -> Result<()> {
        match item.kind() {
            ItemKind::Text => self.said(item, &loaded.text().unwrap_or_default(), entry_ref),
            ItemKind::Thinking => {
                let is_shown = self.page.options.thinking;
                let text = is_shown.then(|| loaded.text()).flatten();
                let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
                    return Ok(());
                };
                let text = self.page.markdown(&text);
                let id = self.new_id.take();
                self.put(&html! {
                    div.item.thinking id=[id] {
                        details { summary { "thinking" } div.text { (text) } }
                    }
                })
            }
            ItemKind::Media | ItemKind::Block => match loaded.block() {
                Some(block) => self.block(&block),
                None => Ok(()),
            },
            ItemKind::Result => self.result("", item, loaded, None),
            ItemKind::Compaction => {
                let time = self.time(entry_ref, "%Y-%m-%d %H:%M");
                let text = compaction::in_document(
                    conversation.display.compaction(item),
                    conversation.place_of(item.entry_no()),
                    time.as_deref(),
                );
                let text = self.page.escaping.one_line(&text);
                let id = self.new_id.take();
                self.put(&html! { div.chapter id=[id] { (text) } })
            }
            ItemKind::System => {
                let entry = loaded.entry();
                let content = entry.and_then(|entry| entry.object().str("content"));
                match entry_ref.system_kind() {
                    Some(SystemKind::ApiError) => {
                        self.aside("error", "API error, the client tried again")
                    }
                    Some(SystemKind::TurnDuration | SystemKind::StopHookSummary) => Ok(()),
                    _ => self.aside("system", &content.unwrap_or_default()),
                }
            }
            ItemKind::Attachment => {
                let entry = loaded.entry();
                let attachment = entry.and_then(|entry| entry.object().object("attachment"));
                let Some(attachment) = attachment else {
                    return Ok(());
                };
                if entry_ref.attachment_kind() == Some(AttachmentKind::QueuedCommand) {
                    let prompt = attachment.get("prompt");
                    let prompt = prompt.map(plain_text).unwrap_or_default();
                    return self.said(item, &prompt, entry_ref);
                }
                let kind = entry_ref.attachment_kind();
                let line = attachment_line(kind, &attachment, self.cwd.as_deref());
                self.aside("attachment", &line.unwrap_or_default())
            }
            ItemKind::Unusable => {
                let text = format!("Line {} cannot be read.", entry_ref.line());
                let id = self.new_id.take();
                self.put(&html! { p.gap id=[id] { (text) } })
            }
            ItemKind::TooMany => {
                let text = format!(
                    "Line {} has too many elements to be shown.",
                    entry_ref.line()
                );
                let id = self.new_id.take();
                self.put(&html! { p.gap id=[id] { (text) } })
            }
            _ => Ok(()),
        }
    }

    fn time(&self, entry_ref: &EntryRef<'_>, form: &str) -> Option<String> {
        let time = clock(entry_ref.millis()?, &self.page.options.zone)?;
        Some(time.strftime(form).to_string())
    }

    fn said(&mut self, item: &Item, text: &str, entry_ref: &EntryRef<'_>) -> Result<()> {
        let text = text.trim();
        let (class, who, shown) = match Shown::of(item, text) {
            Shown::Prompt => ("person", "User", self.page.markdown(text)),
            Shown::Command(command) => {
                let command = self.page.escaping.escape(&command).into_owned();
                ("person", "User", html! { pre { code { (command) } } })
            }
            Shown::Answer => ("answer", "Assistant", self.page.markdown(text)),
            Shown::Summary => ("summary", "Summary", self.page.markdown(text)),
            Shown::Aside(what, text) => return self.aside(what, text),
            Shown::Alarm => return self.aside("error", text),
            Shown::Nothing => return Ok(()),
        };
        if item.speaker() == Speaker::Person && class == "person" {
            let first = text.lines().find(|line| !line.trim().is_empty());
            let line = self.page.escaping.one_line(first.unwrap_or_default());
            self.prompts.push(Prompt {
                id: self.entry_id.clone(),
                text: cut_text(&line, PROMPT),
            });
        }
        let time = self.time(entry_ref, "%H:%M");
        let whole = self.time(entry_ref, "%Y-%m-%d %H:%M:%S");
        let place = format!("#{}", self.entry_id);
        let id = self.new_id.take();
        self.put(&html! {
            article class=(format!("item {class}")) id=[id] {
                div.who {
                    b { (who) }
                    @if let Some(time) = &time {
                        a href=(place) title=[&whole] { (time) }
                    }
                }
                div.text { (shown) }
            }
        })
    }

    fn aside(&mut self, what: &str, text: &str) -> Result<()> {
        let text = self.page.escaping.without_colours(text);
        let text = text.trim();
        if text.is_empty() {
            return Ok(());
        }
        let text = self.page.escaping.escape(text).into_owned();
        let id = self.new_id.take();
        let is_long = text.len() > 200 || text.lines().count() > 2;
        self.put(&html! {
            div.item.aside id=[id] {
                @if is_long {
                    details { summary { (what) } pre { (text) } }
                } @else {
                    div.text { (text) }
                }
            }
        })
    }

    /// An image, or the name of something else.
    fn block(&mut self, block: &Block<'_>) -> Result<()> {
        let line = self.page.escaping.one_line(&block_line(block));
        if let Block::Image(image) = block
            && let Some(source) = image.source()
            && let (Some(kind), Some(data)) = (source.media_type(), source.data())
            && IMAGES.contains(&&*kind)
            && data
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
        {
            let url = format!("data:{kind};base64,{data}");
            let id = self.new_id.take();
            return self
                .put(&html! { div.item id=[id] { img src=(url) alt=(line) loading="lazy"; } });
        }
        self.aside("block", &line)
    }

    fn call(&mut self, tool: &str, input: Option<Raw<'_>>, is_open: bool) -> Result<()> {
        if self.page.options.tools == Tools::None {
            return Ok(());
        }
        let escaping = self.page.escaping;
        let about = tool_summary::about_lines(tool, input, self.cwd.as_deref(), escaping);
        let tool = escaping.one_line(tool);
        let raw = input.map(|raw| escaping.escape(cut(raw.text())).into_owned());
        let id = self.new_id.take();
        let is_full = self.page.options.tools == Tools::Full;
        self.put(&html! {
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
        })
    }

    fn result(
        &mut self,
        tool: &str,
        item: &Item,
        loaded: &LoadedItem<'_>,
        input: Option<Raw<'_>>,
    ) -> Result<()> {
        if self.page.options.tools == Tools::None {
            return Ok(());
        }
        let has_failed = item.marks().contains(ItemMarks::FAILED);
        let class = if has_failed {
            "item result failed"
        } else {
            "item result"
        };
        let escaping = self.page.escaping;
        let shown = match CallOutcome::of_result(tool, input, loaded) {
            CallOutcome::Diff(diff) => {
                let text = diff.to_text();
                let (added, removed) = (diff.added, diff.removed);
                let is_short = added + removed <= SHORT_DIFF;
                html! {
                    details open[is_short] {
                        summary { (format!("+{added} −{removed}")) }
                        pre.diff { @for line in cut(&text).lines() { (diff_line(escaping, line)) } }
                    }
                }
            }
            CallOutcome::Todos(todos) => html! {
                ul.todos {
                    @for todo in &todos {
                        li.done[todo.state == TodoState::Done] {
                            (todo.state.mark()) " " (escaping.one_line(&todo.text))
                        }
                    }
                }
            },
            CallOutcome::Text => {
                let text = result_text(loaded, escaping);
                let text = text.trim_end();
                if text.is_empty() && !has_failed {
                    return Ok(());
                }
                let shown = cut(text);
                let word = if has_failed { "failed" } else { "result" };
                html! {
                    details open[has_failed] {
                        summary { (word) " · " (size(text)) }
                        pre { (escaping.escape(shown)) }
                        @if shown.len() < text.len() {
                            p.gap { (grouped((text.len() - shown.len()) as u64)) " more bytes" }
                        }
                    }
                }
            }
        };
        let images = images(loaded);
        let id = self.new_id.take();
        self.put(&html! {
            div class=(class) id=[id] {
                (shown)
                @for (kind, data) in &images {
                    img src=(format!("data:{kind};base64,{data}")) alt="image of a result" loading="lazy";
                }
            }
        })
    }
}

/// Returns the images of a result.
fn images(loaded: &LoadedItem<'_>) -> Vec<(String, String)> {
    let content = loaded.object().and_then(|block| block.field("content"));
    let blocks = content.map(crate::blocks::blocks).unwrap_or_default();
    let images = blocks.into_iter().filter_map(|raw| {
        let Some(Block::Image(image)) = transcript_format::object::FromRaw::from_raw(raw) else {
            return None;
        };
        let source = image.source()?;
        let (kind, data) = (source.media_type()?, source.data()?);
        let is_base64 = data
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
        (IMAGES.contains(&&*kind) && is_base64).then(|| (kind.into_owned(), data.into_owned()))
    });
    images.collect()
}

/// Returns the start of a long text.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST_RESULT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn diff_line(escaping: Escaping, line: &str) -> Markup {
    let class = match line.as_bytes().first() {
        Some(b'+') => "add",
        Some(b'-') => "del",
        _ => "same",
    };
    html! { span class=(class) { (escaping.escape(line)) } }
}

impl PartPrinter for Writer<'_, '_> {
    type Made = WrittenPart;

    fn print(&mut self, part: &Conversation<'_>) -> Result<()> {
        self.list(part)
    }

    fn append(&mut self, _first: &EntryRef<'_>, made: WrittenPart) -> Result<bool> {
        if made.cwd.is_some() {
            self.cwd = made.cwd;
        }
        self.prompts.extend(made.prompts);
        self.out.write_all(&made.text)?;
        Ok(true)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::path::Path;

    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use sha2::{Digest, Sha256};
    use transcript_reader::{Index, Source};
    use transcript_resume::items::Displays;
    use transcript_resume::{Policy, Tree};

    /// What tries to run, to fetch something or to leave its place.
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

    fn page(lines: &str, title: Option<&str>) -> String {
        let source = Source::from_bytes(lines.as_bytes(), Path::new("-"));
        let index = Index::load(&source).unwrap();
        let tree = Tree::new(&index, Policy::Recover);
        let path = tree.path();
        let title = title.map(str::to_owned);
        let shown =
            Conversation::new(&source, &index, &mut Displays::new(&tree), &path, None).unwrap();
        let agent = Conversation::new(
            &source,
            &index,
            &mut Displays::new(&tree),
            &path,
            Some(title.clone().unwrap_or_else(|| "agent".into())),
        );
        let header = Header {
            title: title.clone(),
            folder: title.clone(),
            session_id: title,
            ..Header::default()
        };
        let options = RenderOptions::new().tools(Tools::Full).thinking(true);
        let mut out = Vec::new();
        write(&mut out, &[shown, agent.unwrap()], &header, &[], &options).unwrap();
        String::from_utf8(out).unwrap()
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
            assert_eq!(
                shown.matches(&format!(" id=\"c1-{id}\"")).count(),
                1,
                "{id}"
            );
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
    fn the_policy_allows_this_style_alone() {
        let hash = BASE64_STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
        assert_eq!(STYLE_HASH, format!("sha256-{hash}"));
    }

    #[test]
    fn no_text_brings_a_tag_an_attribute_or_a_request_of_its_own() {
        const TAGS: &str = "!doctype html head meta title style body a header h1 ul li main nav h2 ol article div b p pre code \
            details summary span img h3 h4 h5 h6 blockquote em strong del hr br table thead tbody tr th td";
        const ATTRIBUTES: &str = "lang charset http-equiv content name class href id aria-label title open alt src loading html";
        let harmless: Vec<String> = tags(&page(&conversation("x"), Some("x")))
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        for payload in PAYLOADS {
            let page = page(&conversation(payload), Some(payload));
            let start = page.find("</style>").unwrap();
            assert!(page.contains("default-src 'none'"));
            for (name, attributes) in tags(&page[start..]) {
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
            for name in ["article", "main", "header", "nav", "details"] {
                let count = |page: &str, tag: &str| page.matches(tag).count();
                let (open, close) = (format!("<{name}"), format!("</{name}>"));
                assert_eq!(
                    count(&page, &open),
                    count(&page, &close),
                    "{payload}: {name}"
                );
            }
            assert_eq!(page.matches("<main").count(), 1, "{payload}");
        }
        assert!(harmless.contains(&"article".to_owned()));
    }

    #[test]
    fn images_of_known_types_are_on_the_page_and_links_work() {
        let lines = concat!(
            r#"{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},{"type":"text","text":"see [this](https://a.example/?x=1&y=2) and\n\n| a | b |\n| - | - |\n| 1 | 2 |"}]}}"#,
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
        assert!(
            page.contains("<td>1</td>") && page.contains("1 prompt"),
            "{page}"
        );
    }
}
