//! Pieces of a conversation, as they are or compressed.

use std::io::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use maud::html;
use transcript_render::{Piece, Prompt};

/// A level above this takes much longer and saves little.
const LEVEL: u32 = 6;

/// A piece that may be compressed.
pub(crate) struct PackedPiece {
    html: String,
    /// The HTML, deflated, in Base64.
    packed: Option<String>,
    height: u32,
    pub(crate) prompts: Vec<Prompt>,
}

impl PackedPiece {
    pub(crate) fn new(piece: Piece, is_packed: bool) -> Self {
        let packed = is_packed.then(|| pack(piece.html.as_bytes()));
        Self {
            packed,
            html: piece.html,
            height: piece.height,
            prompts: piece.prompts,
        }
    }

    /// Returns the element of the piece.
    pub(crate) fn element(&self, is_first: bool) -> String {
        match self.packed.as_ref().filter(|_| !is_first) {
            Some(packed) => format!(
                "<section class=\"piece\"\n data-height=\"{}\" data-packed=\"{packed}\"></section>",
                self.height
            ),
            None => format!("<section class=\"piece\">\n{}</section>", self.html),
        }
    }
}

/// Deflates bytes, and encodes the result in Base64. Browsers can inflate this without a script of ours.
pub(crate) fn pack(bytes: &[u8]) -> String {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(LEVEL));
    // Memory can always be written.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    BASE64_STANDARD.encode(written.unwrap_or_default())
}

/// The number of prompts in a piece of the list.
const PROMPTS_PER_PIECE: usize = 50;

/// A prompt, and the number of the piece that contains it.
pub(crate) type PlacedPrompt = (usize, Prompt);

/// Returns the list of prompts.
pub(crate) fn prompts(prompts: &[PlacedPrompt], is_packed: bool) -> String {
    let mut list = String::new();
    for (number, chunk) in prompts.chunks(PROMPTS_PER_PIECE).enumerate() {
        let items = html! {
            @for (piece, prompt) in chunk {
                li { a href=(format!("#{}", prompt.id)) data-in=(piece) { (prompt.text) } }
            }
        };
        if is_packed && number > 0 {
            let (packed, count) = (pack(items.0.as_bytes()), chunk.len());
            list.push_str(&format!(
                "<ol class=\"piece\"\n data-rows=\"{count}\" data-packed=\"{packed}\"></ol>"
            ));
        } else {
            list.push_str(&format!("<ol>{}</ol>", items.0));
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::DeflateDecoder;

    use super::*;

    #[test]
    fn a_packed_piece_is_the_deflated_html() {
        let html = "<p>a & b</p>".repeat(10_000);
        let piece = Piece {
            html: html.clone(),
            height: 7,
            ..Piece::default()
        };
        let piece = PackedPiece::new(piece, true);
        assert!(piece.element(true).contains(&html));
        let element = piece.element(false);
        let (_, packed) = element.split_once("data-packed=\"").unwrap();
        let (packed, _) = packed.split_once('"').unwrap();
        let packed = BASE64_STANDARD.decode(packed).unwrap();
        let mut inflated = String::new();
        DeflateDecoder::new(&packed[..])
            .read_to_string(&mut inflated)
            .unwrap();
        assert!(inflated == html);
    }
}
