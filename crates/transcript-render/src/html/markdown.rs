//! Markdown that agents and people write, as HTML that runs nothing and requests nothing.

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd};

use crate::escape::Escaping;

/// The maximum length of a text that is parsed, in bytes, as some Markdown takes quadratic time. Longer texts are
/// shown as they are.
const MAX_PARSED_LEN: usize = 64 << 10;

/// Returns `text` as HTML.
pub(super) fn markup(text: &str, escaping: Escaping) -> Markup {
    let text = escaping.escape(text.trim());
    if text.len() > MAX_PARSED_LEN {
        return html! { pre { (text) } };
    }
    let mut page = String::with_capacity(text.len() * 2);
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    pulldown_cmark::html::push_html(&mut page, safe(Parser::new_ext(&text, options)));
    PreEscaped(page)
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
