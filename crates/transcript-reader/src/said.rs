//! Classifies the text of user lines. Clients wrap commands, their output, and messages of their
//! own to the model in tags. A person may write tags as well: only those in the lists here are of
//! clients.

use transcript_format::author::Author;
use transcript_format::texts::is_synthetic;

/// Tags of output that clients show to the person; the content is used without the tag.
const PRINTED: [&str; 4] = [
    "local-command-stdout",
    "local-command-stderr",
    "bash-stdout",
    "bash-stderr",
];

/// Tags of messages that clients write in place of a person. What follows them is of the client as well.
const MESSAGES: [&str; 9] = [
    "task-notification",
    "teammate-message",
    "cross-session-message",
    // Never without attributes; `<channel>` is a person's own.
    "channel source",
    "tick",
    "bash-notification",
    "user-memory-input",
    "mcp-resource-update",
    "mcp-polling-update",
];

/// Tags of notes that clients put before or after the words of a person, in one text.
const NOTES: [&str; 10] = [
    "system-reminder",
    "local-command-caveat",
    "ide_opened_file",
    "ide_selection",
    "ide_diagnostics",
    "ide_context",
    "new-diagnostics",
    "user-prompt-submit-hook",
    "session-start-hook",
    "persisted-output",
];

/// The text of a user line, classified by its author. This is the only rule for what counts as
/// typed by a person; lists, turns, trees and printed conversations all use it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Said<'t> {
    /// A text that a person wrote, unchanged but for [the notes](Words) of the client around it.
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
    /// Classifies the complete text of a user line that does not say who wrote it.
    #[must_use]
    pub fn of(text: &'t str) -> Self {
        Self::by(Author::Unknown, text)
    }

    /// Classifies the complete text of a user line of this author.
    #[must_use]
    pub fn by(author: Author, text: &'t str) -> Self {
        let Words { words, .. } = Words::of(text);
        let start = words.trim();
        if start.starts_with("<command-")
            && let Some(name) = element(start, "command-name")
        {
            let arguments = element(start, "command-args").unwrap_or_default();
            return Self::Command { name, arguments };
        }
        if start.starts_with("<bash-input>")
            && let Some(command) = element(start, "bash-input")
        {
            return Self::Shell(command);
        }
        if start.starts_with("[Request interrupted by user") {
            return Self::Interrupt;
        }
        if text.trim().is_empty() || is_synthetic(start) {
            return Self::Nothing;
        }
        let output = PRINTED.iter().find(|name| starts_with(start, name));
        let message = MESSAGES.iter().find(|name| starts_with(start, name));
        let reported = match (output, message) {
            (Some(_), _) => printed(start),
            (None, Some(&"task-notification")) => element(start, "summary"),
            _ => None,
        };
        let is_of_client = match author {
            // A person may quote a message of the client.
            Author::Person => output.is_some() || start.is_empty(),
            Author::Other => true,
            _ => output.is_some() || message.is_some() || start.is_empty(),
        };
        match is_of_client {
            true => Self::Client(reported.unwrap_or(text)),
            false => Self::Prompt(words),
        }
    }
}

/// A text of a user line, divided into the words of a person and the notes of the client around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'t> {
    /// The notes before the words.
    pub before: &'t str,
    /// The words; the whole text if there are no notes.
    pub words: &'t str,
    /// The notes after the words.
    pub after: &'t str,
}

impl<'t> Words<'t> {
    /// Divides a text. Only whole elements count as notes.
    #[must_use]
    pub fn of(text: &'t str) -> Self {
        let mut start = text.trim_start();
        while let Some(rest) = NOTES.iter().find_map(|name| after_note(start, name)) {
            start = rest.trim_start();
        }
        let mut words = start.trim_end();
        while let Some(rest) = NOTES.iter().find_map(|name| before_note(words, name)) {
            words = rest.trim_end();
        }
        let [has_before, has_after] = [
            start.len() < text.trim_start().len(),
            words.len() < start.trim_end().len(),
        ];
        // Without notes the white space around the words stays.
        let from = if has_before {
            text.len() - start.len()
        } else {
            0
        };
        let to = match has_after {
            true => text.len() - start.len() + words.len(),
            false => text.len(),
        };
        Self {
            before: &text[..from],
            words: &text[from..to.max(from)],
            after: &text[to.max(from)..],
        }
    }
}

/// Returns whether the text starts with an element of this name, or is a tag without a content.
fn starts_with(text: &str, name: &str) -> bool {
    let Some(rest) = after_open(text, name) else {
        return false;
    };
    let name = name.split(' ').next().unwrap_or(name);
    rest.find('>') == Some(rest.len() - 1) || rest.contains(&format!("</{name}>"))
}

/// Returns what follows the start of a tag of this name.
fn after_open<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let rest = text.strip_prefix('<')?.strip_prefix(name)?;
    rest.starts_with(['>', ' ', '=']).then_some(rest)
}

/// Returns what follows the note of this name with which the text starts.
fn after_note<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let rest = after_open(text, name)?;
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let first = rest.find(&close)? + close.len();
    // A note may quote another one. If its tags do not match, it ends with the first that could.
    let (mut depth, mut at) = (1, 0);
    while let Some(end) = rest[at..].find(&close) {
        depth += rest[at..at + end].matches(&open).count();
        depth -= 1;
        at += end + close.len();
        if depth == 0 {
            return Some(&rest[at..]);
        }
    }
    Some(&rest[first..])
}

/// Returns what is before the note of this name with which the text ends. Hints of editors may follow on the same line;
/// other notes only count at the start of a line, as a person may write of them.
fn before_note<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let inner = text.strip_suffix(&format!("</{name}>"))?;
    let at = inner.rfind(&format!("<{name}"))?;
    after_open(&inner[at..], name)?;
    let before = &text[..at];
    let is_apart = name.starts_with("ide_") || before.trim_end_matches([' ', '\t']).ends_with('\n');
    (is_apart || before.trim().is_empty()).then_some(before)
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
            "<channel source=\"a\">hi</channel>",
            "<ide_opened_file>The user opened the file a.rs.</ide_opened_file>",
            "<tick>",
            "<system-reminder>a</system-reminder>\n<ide_selection>b</ide_selection>",
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
            "<task>\nCount the owls.\n</task>",
            "<my_tag>x</my_tag> Fix it",
            "<bug-report>x</bug-report>",
            "<note>x</note>",
            "<channel>x</channel>",
            "<system-reminder> is everywhere",
            "What is <command-name>/clear</command-name>?",
            "Why does it say <system-reminder>x</system-reminder>",
        ] {
            assert_eq!(Said::of(text), Said::Prompt(text));
            assert_eq!(Said::by(Author::Person, text), Said::Prompt(text));
            assert_eq!(Said::by(Author::Other, text), Said::Client(text));
        }
    }

    #[test]
    fn notes_of_the_client_are_no_part_of_the_words() {
        let note = "<system-reminder>\nnote\n</system-reminder>";
        let hint = "<ide_opened_file>a.rs</ide_opened_file>";
        for (text, words) in [
            (format!("{note}\n{hint}\n Fix it \n"), "Fix it \n"),
            (format!(" Fix it {hint}"), " Fix it"),
            (format!("Fix it\n{note}\n{hint}\n"), "Fix it"),
            (format!("{hint} <task>x</task>\n{note}"), "<task>x</task>"),
            (
                "<system-reminder>a <system-reminder>b</system-reminder> c</system-reminder> Fix it".to_owned(),
                "Fix it",
            ),
            (
                "<system-reminder>a <system-reminder> b</system-reminder> Fix it".to_owned(),
                "Fix it",
            ),
        ] {
            for author in [Author::Person, Author::Unknown] {
                assert_eq!(Said::by(author, &text), Said::Prompt(words), "{text:?}");
            }
            let Words {
                before,
                words,
                after,
            } = Words::of(&text);
            assert_eq!(format!("{before}{words}{after}"), text);
        }
        let text = format!("{note}\n<command-name>/x</command-name>");
        let (name, arguments) = ("/x", "");
        assert_eq!(Said::of(&text), Said::Command { name, arguments });
    }

    #[test]
    fn a_person_may_quote_a_message_of_the_client_but_not_a_note_around_nothing() {
        let quoted = "<task-notification>x</task-notification>";
        assert_eq!(Said::by(Author::Person, quoted), Said::Prompt(quoted));
        let note = "<system-reminder>x</system-reminder>";
        assert_eq!(Said::by(Author::Person, note), Said::Client(note));
        assert_eq!(Said::by(Author::Other, "Go on."), Said::Client("Go on."));
        assert_eq!(Said::by(Author::Other, " "), Said::Nothing);
    }
}
