//! A session as one HTML file.

use std::io::Write;

use transcript_format::units::grouped;
use transcript_reader::Source;
use transcript_render::{
    Escaping, Header, HtmlConversations, PagePart, Piece, RenderOptions, write_html,
};

use crate::frame::{self, Head};
use crate::piece::{self, PackedPiece, PlacedPrompt};
use crate::{Error, Result, assets, lines};

/// The pages of smaller sessions are not compressed: they can be read where scripts are off.
const MAX_PLAIN: u64 = 4 << 20;

/// A page to write.
pub struct PageFile<'a> {
    /// The conversations to show.
    pub shown: HtmlConversations<'a>,
    /// The facts about the session.
    pub header: &'a Header,
    /// More facts, such as its tokens.
    pub facts: Vec<String>,
    /// The rendering of items.
    pub options: &'a RenderOptions,
    /// The same of texts in the header.
    pub escaping: Escaping,
    /// The number of bytes of what is shown: the pieces of large sessions are compressed.
    pub bytes: u64,
    /// Whether nothing may be compressed, so that everything can be read where scripts are off.
    pub is_plain: bool,
    /// The file of the session, for [`read_lines`](crate::read_lines); `None` leaves its lines out.
    pub lines: Option<&'a Source>,
}

/// Writes a page.
///
/// # Errors
/// When the session cannot be read, or the page not be written.
pub fn write_page(out: &mut dyn Write, page: &PageFile<'_>) -> Result<()> {
    let is_packed = !page.is_plain && page.bytes > MAX_PLAIN;
    let line = |text: &str| page.escaping.one_line(text);
    let id = page.header.session_id.as_deref().map(line);
    let title = page.header.title.as_deref().map(line);
    let title = title.or_else(|| id.as_ref().map(|id| format!("Session {id}")));
    let title = title.unwrap_or_else(|| "Session".to_owned());
    let mut facts: Vec<String> = page.header.place().map(|fact| line(&fact)).collect();
    facts.extend(id.map(|id| format!("session {id}")));
    facts.extend(page.facts.iter().cloned());
    if let Some(main) = page.shown.conversations.first() {
        facts.extend(main.facts());
    }
    let head = Head {
        title: &title,
        facts: &facts,
        policy: &assets::policy(),
        no_script: is_packed.then_some(
            "Most of this long session is compressed, and scripts are off: only its start is shown. \
             Allow scripts for this file (it makes no request), or export the session with --plain.",
        ),
        menu: None,
        is_live: false,
    };
    out.write_all(head.start().as_bytes())?;
    let mut prompts: Vec<PlacedPrompt> = Vec::new();
    let mut pieces = 0;
    let pack = |piece: Piece| PackedPiece::new(piece, is_packed);
    let mut take = |part: PagePart<PackedPiece>| {
        match part {
            PagePart::Markup(markup) => out.write_all(markup.as_bytes())?,
            PagePart::Piece(piece) => {
                out.write_all(piece.element(pieces == 0).as_bytes())?;
                let placed = piece.prompts.into_iter();
                prompts.extend(placed.map(|prompt| (pieces, prompt)));
                pieces += 1;
            }
        }
        Ok(())
    };
    write_html(&page.shown, page.options, &pack, &mut take)?;
    let list = piece::prompts(&prompts, is_packed);
    let count = match prompts.len() {
        1 => "1 prompt".to_owned(),
        many => format!("{} prompts", grouped(many as u64)),
    };
    let end = frame::end(&list, &count);
    out.write_all(end.as_bytes())?;
    if let Some(source) = page.lines {
        lines::write(out, source)?;
    }
    out.write_all(frame::LAST.as_bytes()).map_err(Error::Io)
}
