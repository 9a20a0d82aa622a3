//! Classifies user lines for lists: prompt, command, interrupt, or nothing typed by a person.

use transcript_format::author::Author;
use transcript_format::content::{Block, Content, Message};
use transcript_format::object::Object;

use crate::message_text::{MessageText, question};

/// The maximum length of a shown prompt, in UTF-16 units, as clients count.
const MAX_UNITS: usize = 200;

/// The part of a user line that a person typed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Prompt {
    /// A text without the references before it, on one line and truncated to 200 UTF-16 units.
    Text(String),
    /// The name of a slash command of the client.
    Command(String),
    /// The person stopped the turn.
    Interrupt,
    /// An image or a document, without a text of a person.
    Media,
    /// Nothing typed by a person.
    Nothing,
}

impl Prompt {
    /// Returns the first text that a person wrote; if there is none, the command or interrupt.
    #[must_use]
    pub fn of(line: &Object<'_>) -> Self {
        let mut other = Self::Nothing;
        let text = Self::find(line, |text| match (Self::of_text(&text), &other) {
            (prompt @ Self::Text(_), _) => Some(prompt),
            (prompt, Self::Nothing) => {
                other = prompt;
                None
            }
            _ => None,
        });
        match text.unwrap_or(other) {
            Self::Nothing if is_media(line) => Self::Media,
            prompt => prompt,
        }
    }

    /// Passes the texts of a user line to `take`, classified, until it returns something.
    pub fn find<T>(
        line: &Object<'_>,
        mut take: impl FnMut(MessageText<'_>) -> Option<T>,
    ) -> Option<T> {
        let author = Author::of(line);
        let message = line.read::<Message<'_>>("message")?;
        match message.content()? {
            Content::Text(text) => take(MessageText::by(author, &text)),
            Content::Blocks(blocks) => blocks.iter().find_map(|block| match block {
                Block::Text(block) => take(MessageText::by(author, &block.text()?)),
                _ => None,
            }),
            Content::One(_) => None,
        }
    }

    /// Returns the first text that a person wrote as a whole.
    pub(crate) fn whole(line: &Object<'_>) -> Option<String> {
        Self::find(line, |text| match text {
            MessageText::Prompt(text) => Some(question(text).into_owned()),
            _ => None,
        })
    }

    /// Returns whether a user line starts a turn: a person asks something, in text or with an image
    /// alone.
    #[must_use]
    pub fn starts_turn(line: &Object<'_>) -> bool {
        matches!(Self::of(line), Self::Text(_) | Self::Media)
    }

    /// Returns whether a person typed the line: it starts a turn or is a command.
    #[must_use]
    pub fn is_typed(line: &Object<'_>) -> bool {
        matches!(
            Self::of(line),
            Self::Command(_) | Self::Text(_) | Self::Media
        )
    }

    fn of_text(text: &MessageText<'_>) -> Self {
        match text {
            MessageText::Prompt(text) => Self::Text(shorten(&question(text))),
            MessageText::Shell(command) => Self::Text(format!("! {}", shorten(command))),
            MessageText::Command { name, .. } => Self::Command(name.clone().into_owned()),
            MessageText::Interrupt => Self::Interrupt,
            MessageText::Client(_) | MessageText::Nothing => Self::Nothing,
        }
    }
}

/// Returns whether the line may be the image, or the document, of a person.
fn is_media(line: &Object<'_>) -> bool {
    has_other_block(line) && Author::of(line) != Author::Other
}

/// Returns whether the message has a block other than texts and results: an image, a document.
fn has_other_block(line: &Object<'_>) -> bool {
    let message = line.object("message");
    let blocks = message.and_then(|message| message.array("content"));
    blocks.into_iter().flatten().any(|block| {
        let block = block.object();
        let kind = block.as_ref().and_then(|block| block.str("type"));
        kind.is_some_and(|kind| kind != "text" && kind != "tool_result")
    })
}

/// Puts a text on one line and truncates it for a list, at 200 UTF-16 units.
#[must_use]
pub fn shorten(text: &str) -> String {
    let text = text.replace("\r\n", " ").replace(['\n', '\r'], " ");
    let text = text.trim();
    let mut units = 0;
    let cut = text.char_indices().find(|(_, c)| {
        units += c.len_utf16();
        units > MAX_UNITS
    });
    match cut {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_put_on_one_line_and_cut_at_200_units_without_splitting_a_character() {
        let text = Prompt::of_text(&MessageText::Prompt(&format!(" a\nb {}", "🦉".repeat(120))));
        let expected = format!("a b {}…", "🦉".repeat(98));
        assert_eq!(text, Prompt::Text(expected));
        assert_eq!(shorten(&"x".repeat(200)), "x".repeat(200));
        assert_eq!(shorten("a\r\nb\rc\n"), "a b c");
    }

    #[test]
    fn first_human_text_wins() {
        let line = r#"{"message":{"content":[{"type":"image"},{"type":"text","text":"<command-name>/c</command-name>"},
            {"type":"text","text":"<tick>y</tick>"},{"type":"text","text":"why?"}]}}"#;
        assert_eq!(
            Prompt::of(&Object::parse(line).unwrap()),
            Prompt::Text("why?".into())
        );
        let line = r#"{"message":{"content":"<command-message>c</command-message><command-name>/c</command-name>"}}"#;
        assert_eq!(
            Prompt::of(&Object::parse(line).unwrap()),
            Prompt::Command("/c".into())
        );
        let line = r#"{"message":{"content":"<bash-input>ls</bash-input>"}}"#;
        assert_eq!(
            Prompt::of(&Object::parse(line).unwrap()),
            Prompt::Text("! ls".into())
        );
    }

    #[test]
    fn author_of_a_line_counts_for_its_texts_and_images() {
        let of = |line: &str| Prompt::of(&Object::parse(line).unwrap());
        let image = r#"{"message":{"content":[{"type":"image"}]}}"#;
        assert_eq!(of(image), Prompt::Media);
        let image = r#"{"origin":{"kind":"peer"},"message":{"content":[{"type":"image"}]}}"#;
        assert_eq!(of(image), Prompt::Nothing);
        let hook = r#"{"origin":{"kind":"hook"},"message":{"content":"Check it."}}"#;
        assert_eq!(of(hook), Prompt::Nothing);
        let typed = r#"{"promptSource":"typed","message":{"content":"<tick>1</tick>"}}"#;
        assert_eq!(of(typed), Prompt::Text("<tick>1</tick>".into()));
    }
}
