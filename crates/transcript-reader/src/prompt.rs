//! What of a user line a person typed, for lists (`facts/sdk.md` 4).

use transcript_format::object::{Object, Raw};
use transcript_format::texts::is_synthetic;

/// How much of a prompt is shown, in UTF-16 units as clients count.
const MAX_UNITS: usize = 200;

/// What a user line holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Prompt {
    /// What a person wrote, on one line and cut at 200 UTF-16 units.
    Text(String),
    /// The name of a command of the client.
    Command(String),
    /// The person stopped the turn.
    Interrupt,
    /// Nothing that a person wrote.
    Nothing,
}

impl Prompt {
    /// Reads the first text of a user line that a person wrote; else the command.
    #[must_use]
    pub fn of(line: &Object<'_>) -> Self {
        let content = line
            .object("message")
            .and_then(|message| message.get("content"));
        let Some(content) = content else {
            return Self::Nothing;
        };
        if let Some(text) = content.str() {
            return Self::of_text(&text);
        }
        let blocks = content.array().unwrap_or_default();
        let texts = blocks.into_iter().filter_map(|block| {
            let block = block
                .object()
                .filter(|block| block.str("type").as_deref() == Some("text"));
            block?.get("text").and_then(Raw::str)
        });
        let mut other = Self::Nothing;
        for text in texts {
            match (Self::of_text(&text), &other) {
                (prompt @ Self::Text(_), _) => return prompt,
                (prompt, Self::Nothing) => other = prompt,
                _ => {}
            }
        }
        other
    }

    fn of_text(text: &str) -> Self {
        let text = text.trim();
        if let Some(name) = within(text, "<command-name>", "</command-name>") {
            return Self::Command(name.trim().to_owned());
        }
        if let Some(command) = within(text, "<bash-input>", "</bash-input>") {
            return Self::Text(format!("! {}", shorten(command)));
        }
        if text.starts_with("[Request interrupted by user") {
            return Self::Interrupt;
        }
        if text.is_empty() || is_wrapped(text) || is_synthetic(text) {
            return Self::Nothing;
        }
        Self::Text(shorten(text))
    }
}

/// Whether the text starts with a tag in lower case: clients wrap what they write themselves so.
fn is_wrapped(text: &str) -> bool {
    let Some(tag) = text.strip_prefix('<') else {
        return false;
    };
    let end = tag.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_'));
    tag.starts_with(|c: char| c.is_ascii_lowercase())
        && end.is_some_and(|end| tag[end..].starts_with(['>', ' ']))
}

fn within<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(open)?;
    Some(rest.split_once(close)?.0)
}

/// Puts a text on one line and cuts it where a list would.
pub(crate) fn shorten(text: &str) -> String {
    let text = text.replace('\n', " ");
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
    fn what_clients_write_by_themselves_is_no_prompt() {
        for text in [
            "",
            " \n ",
            "<local-command-stdout>on</local-command-stdout>",
            "<system-reminder>\nnote</system-reminder>",
            "<teammate-message id=\"a\">hi</teammate-message>",
            "<tick>",
            "Continue from where you left off.",
        ] {
            assert_eq!(Prompt::of_text(text), Prompt::Nothing, "{text:?}");
        }
        for text in ["<Button> does not work", "<3", "a < b", "<user's own", "<b"] {
            assert_eq!(Prompt::of_text(text), Prompt::Text(text.into()));
        }
    }

    #[test]
    fn a_prompt_is_put_on_one_line_and_cut_at_200_units_without_splitting_a_character() {
        let text = Prompt::of_text(&format!(" a\nb {}", "🦉".repeat(120)));
        let expected = format!("a b {}…", "🦉".repeat(98));
        assert_eq!(text, Prompt::Text(expected));
        assert_eq!(shorten(&"x".repeat(200)), "x".repeat(200));
    }

    #[test]
    fn of_several_texts_the_first_that_a_person_wrote_counts() {
        let line = r#"{"message":{"content":[{"type":"image"},{"type":"text","text":"<command-name>/c</command-name>"},
            {"type":"text","text":"<x>y</x>"},{"type":"text","text":"why?"}]}}"#;
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
}
