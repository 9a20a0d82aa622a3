//! Classifies the text of user lines. Clients wrap commands, their output, and messages of their
//! own to the model in tags.

use transcript_format::texts::is_synthetic;

/// Tags of output that clients show to the person; the content is used without the tag.
const PRINTED: [&str; 4] = [
    "local-command-stdout",
    "local-command-stderr",
    "bash-stdout",
    "bash-stderr",
];

/// The text of a user line, classified by its author. This is the only rule for what counts as
/// typed by a person; lists, turns, trees and printed conversations all use it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Said<'t> {
    /// A text that a person wrote, unchanged.
    Prompt(&'t str),
    /// A slash command of the client.
    Command {
        /// Its name, with the slash.
        name: &'t str,
        /// The text after the name.
        arguments: &'t str,
    },
    /// A command that the person ran in a shell.
    Shell(&'t str),
    /// The person stopped the turn.
    Interrupt,
    /// A text of the client: output, without its tag, or a message to the model.
    Client(&'t str),
    /// No text, or a fixed text that a client writes in place of one.
    Nothing,
}

impl<'t> Said<'t> {
    /// Classifies the complete text of a user line.
    #[must_use]
    pub fn of(text: &'t str) -> Self {
        let start = text.trim();
        if let Some(name) = element(start, "command-name") {
            let arguments = element(start, "command-args").unwrap_or_default();
            return Self::Command { name, arguments };
        }
        if let Some(command) = element(start, "bash-input") {
            return Self::Shell(command);
        }
        if start.starts_with("[Request interrupted by user") {
            return Self::Interrupt;
        }
        if start.is_empty() || is_synthetic(start) {
            return Self::Nothing;
        }
        let Some(name) = wrapper(start) else {
            return Self::Prompt(text);
        };
        let reported = match name {
            "task-notification" => element(start, "summary"),
            name if PRINTED.contains(&name) => printed(start),
            _ => None,
        };
        Self::Client(reported.unwrap_or(text))
    }
}

/// Returns the name of the tag in which a client wrapped the text. Names with a dash or an
/// underscore are those of clients. Other names may be HTML written by a person, which other text
/// follows; so they only count if the whole text is one element.
fn wrapper(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('<')?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_'))?;
    let (name, rest) = rest.split_at(end);
    let is_tag = name.starts_with(|c: char| c.is_ascii_lowercase()) && rest.starts_with(['>', ' ']);
    let is_of_client = || {
        let is_alone = rest.find('>') == Some(rest.len() - 1);
        name.contains(['-', '_']) || is_alone || rest.ends_with(&format!("</{name}>"))
    };
    (is_tag && is_of_client()).then_some(name)
}

/// Returns what was printed; `None` for output of two kinds, which only the tags tell apart.
fn printed(text: &str) -> Option<&str> {
    let outputs = PRINTED.iter().filter_map(|name| element(text, name));
    let mut outputs = outputs.filter(|output| !output.is_empty());
    let first = outputs.next().unwrap_or_default();
    outputs.next().is_none().then_some(first)
}

/// Returns the content of the first element of this name.
fn element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let inner = rest.split_once(&format!("</{name}>"));
    Some(inner.map_or(rest, |(inner, _)| inner).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_their_output_are_not_prompts() {
        let command = "<command-name>/compact</command-name>\n <command-args>all</command-args>";
        let (name, arguments) = ("/compact", "all");
        assert_eq!(Said::of(command), Said::Command { name, arguments });
        let shell = "<bash-input>a </b </bash-input>";
        assert_eq!(Said::of(shell), Said::Shell("a </b"));
        let printed = "<local-command-stdout>Compacted</local-command-stdout>";
        assert_eq!(Said::of(printed), Said::Client("Compacted"));
        let failed = "<bash-stdout></bash-stdout><bash-stderr>no such file</bash-stderr>";
        assert_eq!(Said::of(failed), Said::Client("no such file"));
        let both = "<bash-stdout>one</bash-stdout><bash-stderr>two</bash-stderr>";
        assert_eq!(Said::of(both), Said::Client(both));
        let ended = "<task-notification>\n<summary>Built</summary>\n</task-notification>\nSee it.";
        assert_eq!(Said::of(ended), Said::Client("Built"));
        let stopped = "[Request interrupted by user for tool use]";
        assert_eq!(Said::of(stopped), Said::Interrupt);
    }

    #[test]
    fn texts_of_clients_are_not_prompts() {
        for text in [
            "<local-command-caveat>x</local-command-caveat>",
            "<system-reminder>\nnote</system-reminder>",
            "<teammate-message id=\"a\">hi</teammate-message>",
            "<ide_opened_file>The user opened the file a.rs.</ide_opened_file>",
            "<tick>",
            "<note>x</note>",
        ] {
            assert_eq!(Said::of(text), Said::Client(text));
        }
        for text in ["", " \n ", "Continue from where you left off."] {
            assert_eq!(Said::of(text), Said::Nothing, "{text:?}");
        }
    }

    #[test]
    fn a_person_may_write_tags() {
        for text in [
            "<Button> does not work",
            "<div>x</div> is not centred",
            "<b",
            "<3",
            "a < b",
            "<user's own",
            "Why <b>?",
            " indented",
        ] {
            assert_eq!(Said::of(text), Said::Prompt(text));
        }
    }
}
