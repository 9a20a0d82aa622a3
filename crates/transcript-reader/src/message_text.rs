//! Classifies the text of user lines. Clients wrap commands, their output, and messages of their
//! own to the model in tags. A person may write tags as well: only those of
//! [`tags`](transcript_format::tags) are of clients.

use std::borrow::Cow;

use transcript_format::author::Author;
use transcript_format::context_refs::Region;
use transcript_format::tags::{Tag, Tagged};
use transcript_format::texts::{is_interrupt, is_synthetic};

/// The text of a user line, classified by its author. This is the only rule for what counts as
/// typed by a person; lists, turns, trees and printed conversations all use it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageText<'t> {
    /// A text that a person wrote, unchanged but for [the notes](DividedText) of the client around it.
    Prompt(&'t str),
    /// A slash command of the client.
    Command {
        /// Its name, with the slash.
        name: Cow<'t, str>,
        /// The text after the name.
        arguments: Cow<'t, str>,
    },
    /// A command that the person ran in a shell.
    Shell(Cow<'t, str>),
    /// The person stopped the turn.
    Interrupt,
    /// A text of the client: output, without its tag, or a message to the model.
    Client(Cow<'t, str>),
    /// No text, or a fixed text that a client writes in place of one.
    Nothing,
}

impl<'t> MessageText<'t> {
    /// Classifies the complete text of a user line without an author.
    #[must_use]
    pub fn of(text: &'t str) -> Self {
        Self::by(Author::Unknown, text)
    }

    /// Classifies the complete text of a user line of this author.
    #[must_use]
    pub fn by(author: Author, text: &'t str) -> Self {
        let DividedText { words, .. } = DividedText::of(text);
        let start = words.trim();
        match Tagged::read(start) {
            Some(Tagged::Command { name, arguments }) => {
                let [name, arguments] = [name, arguments].map(trimmed);
                return Self::Command { name, arguments };
            }
            Some(Tagged::Shell(command)) => return Self::Shell(trimmed(command)),
            _ => {}
        }
        if is_interrupt(start) {
            return Self::Interrupt;
        }
        if text.trim().is_empty() || is_synthetic(start) {
            return Self::Nothing;
        }
        let output = Tag::PRINTED.iter().find(|tag| starts_with(start, **tag));
        let message = Tag::MESSAGES.iter().find(|tag| starts_with(start, **tag));
        let reported = match (output, message) {
            (Some(_), _) => printed(start),
            (None, Some(Tag::TaskNotification)) => summary(start).map(Cow::Borrowed),
            _ => None,
        };
        let is_of_client = match author {
            // A person may quote a message of the client.
            Author::Person => output.is_some() || start.is_empty(),
            Author::Other => true,
            _ => output.is_some() || message.is_some() || start.is_empty(),
        };
        if is_of_client {
            Self::Client(reported.unwrap_or(Cow::Borrowed(text)))
        } else {
            Self::Prompt(words)
        }
    }

    /// Returns the input that a person typed, as it is shown in one piece: a prompt without
    /// [its references](question), a command with its arguments, a command of the shell after `! `.
    #[must_use]
    pub fn typed(&self) -> Option<Cow<'t, str>> {
        match self {
            Self::Prompt(text) => Some(question(text)),
            Self::Command { name, arguments } if arguments.is_empty() => Some(name.clone()),
            Self::Command { name, arguments } => Some(format!("{name} {arguments}").into()),
            Self::Shell(command) => Some(format!("! {command}").into()),
            Self::Interrupt | Self::Client(_) | Self::Nothing => None,
        }
    }
}

/// Returns the question of a prompt: the text after the [references](Region) at its start, or the references
/// themselves if nothing follows them.
#[must_use]
pub fn question(prompt: &str) -> Cow<'_, str> {
    match Region::split(prompt) {
        Some((region, text)) if text.trim().is_empty() => {
            let references: Vec<String> = region.references().map(|one| one.to_string()).collect();
            references.join(", ").into()
        }
        Some((_, text)) => text.into(),
        None => prompt.into(),
    }
}

/// A text of a user line, divided into the words of a person and the notes of the client around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DividedText<'t> {
    /// The notes before the words.
    pub before: &'t str,
    /// The words; the whole text if there are no notes.
    pub words: &'t str,
    /// The notes after the words.
    pub after: &'t str,
}

impl<'t> DividedText<'t> {
    /// Divides a text. Only whole elements count as notes.
    #[must_use]
    pub fn of(text: &'t str) -> Self {
        let mut start = text.trim_start();
        let notes = || Tag::NOTES.iter().map(|tag| tag.name());
        while let Some(rest) = notes().find_map(|name| after_note(start, name)) {
            start = rest.trim_start();
        }
        let mut words = start.trim_end();
        while let Some(rest) = notes().find_map(|name| before_note(words, name)) {
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
        let to = if has_after {
            text.len() - start.len() + words.len()
        } else {
            text.len()
        };
        Self {
            before: &text[..from],
            words: &text[from..to.max(from)],
            after: &text[to.max(from)..],
        }
    }
}

/// Returns whether the text starts with an element of this tag, or is a tag without a content.
fn starts_with(text: &str, tag: Tag) -> bool {
    let Some(rest) = after_open(text, tag.name()) else {
        return false;
    };
    let name = tag.name().split(' ').next().unwrap_or_default();
    rest.find('>') == Some(rest.len() - 1) || rest.contains(&format!("</{name}>"))
}

/// Returns the text after the start of a tag of this name.
fn after_open<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let rest = text.strip_prefix('<')?.strip_prefix(name)?;
    rest.starts_with(['>', ' ', '=']).then_some(rest)
}

/// Returns the text after the note of this name at its start.
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

/// Returns the text before the note of this name at its end. Hints of editors may follow on the same line;
/// other notes only count at the start of a line, as a person may write of them.
fn before_note<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let inner = text.strip_suffix(&format!("</{name}>"))?;
    let at = inner.rfind(&format!("<{name}"))?;
    after_open(&inner[at..], name)?;
    let before = &text[..at];
    let is_apart = name.starts_with("ide_") || before.trim_end_matches([' ', '\t']).ends_with('\n');
    (is_apart || before.trim().is_empty()).then_some(before)
}

/// Returns the printed text; `None` for output of two kinds, which only the tags tell apart.
fn printed(text: &str) -> Option<Cow<'_, str>> {
    let outputs = Tag::PRINTED.iter().filter_map(|tag| tag.find(text));
    let mut outputs = outputs.map(trimmed).filter(|output| !output.is_empty());
    let first = outputs.next().unwrap_or_default();
    outputs.next().is_none().then_some(first)
}

/// Returns the summary in a notification of a task.
fn summary(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<summary>")?;
    let summary = rest.split_once("</summary>");
    Some(summary.map_or(rest, |(summary, _)| summary).trim())
}

fn trimmed(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use transcript_format::texts::{
        CANCELLED, INTERRUPTED, INTERRUPTED_FOR_TOOL_USE, RejectedBy, Rejection,
    };

    use super::*;

    #[test]
    fn commands_and_their_output_are_not_prompts() {
        let command = "<command-name>/compact</command-name>\n <command-args>all</command-args>";
        let [name, arguments] = ["/compact", "all"].map(Cow::Borrowed);
        assert_eq!(
            MessageText::of(command),
            MessageText::Command { name, arguments }
        );
        let shell = "<bash-input>a </b </bash-input>";
        assert_eq!(MessageText::of(shell), MessageText::Shell("a </b".into()));
        let printed = "<local-command-stdout>Compacted</local-command-stdout>";
        assert_eq!(
            MessageText::of(printed),
            MessageText::Client("Compacted".into())
        );
        let failed = "<bash-stdout></bash-stdout><bash-stderr>no such file</bash-stderr>";
        assert_eq!(
            MessageText::of(failed),
            MessageText::Client("no such file".into())
        );
        let both = "<bash-stdout>one</bash-stdout><bash-stderr>two</bash-stderr>";
        assert_eq!(MessageText::of(both), MessageText::Client(both.into()));
        let ended = "<task-notification>\n<summary>Built</summary>\n</task-notification>\nSee it.";
        assert_eq!(MessageText::of(ended), MessageText::Client("Built".into()));
        let stopped = "[Request interrupted by user for tool use]";
        assert_eq!(MessageText::of(stopped), MessageText::Interrupt);
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
            assert_eq!(MessageText::of(text), MessageText::Client(text.into()));
        }
        for text in ["", " \n ", "Continue from where you left off."] {
            assert_eq!(MessageText::of(text), MessageText::Nothing, "{text:?}");
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
            assert_eq!(MessageText::of(text), MessageText::Prompt(text));
            assert_eq!(
                MessageText::by(Author::Person, text),
                MessageText::Prompt(text)
            );
            assert_eq!(
                MessageText::by(Author::Other, text),
                MessageText::Client(text.into())
            );
        }
    }

    #[test]
    fn notes_of_the_client_are_not_part_of_the_words() {
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
                assert_eq!(MessageText::by(author, &text), MessageText::Prompt(words), "{text:?}");
            }
            let DividedText {
                before,
                words,
                after,
            } = DividedText::of(&text);
            assert_eq!(format!("{before}{words}{after}"), text);
        }
        let text = format!("{note}\n<command-name>/x</command-name>");
        let [name, arguments] = ["/x", ""].map(Cow::Borrowed);
        assert_eq!(
            MessageText::of(&text),
            MessageText::Command { name, arguments }
        );
    }

    #[test]
    fn typed_text_is_shown_in_one_piece() {
        let typed = |text: &str| MessageText::of(text).typed().map(Cow::into_owned);
        let is = |text: &str| Some(text.to_owned());
        let reference = "> **上下文资料**\n> - 📄 `a.rs`\n\n";
        assert_eq!(typed(&format!("{reference}Why?\n")), is("Why?\n"));
        assert_eq!(typed(reference), is("📄 `a.rs`"));
        assert_eq!(typed("<bash-input>ls -l</bash-input>"), is("! ls -l"));
        let command = "<command-name>/model</command-name><command-args> a </command-args>";
        assert_eq!(typed(command), is("/model a"));
        assert_eq!(typed("<command-name>/cost</command-name>"), is("/cost"));
        for text in ["", "[Request interrupted by user]", "<tick>"] {
            assert_eq!(typed(text), None, "{text}");
        }
    }

    #[test]
    fn texts_written_for_a_client_are_classified_as_its_texts() {
        let hostile = "a && b </bash-input> &lt;/command-args> <command-name>/x</command-name>";
        let text = Tagged::Shell(hostile.into()).to_string();
        assert_eq!(MessageText::of(&text), MessageText::Shell(hostile.into()));
        let [name, arguments] = ["/model", hostile].map(Cow::Borrowed);
        let command = Tagged::Command { name, arguments };
        let text = command.to_string();
        let [name, arguments] = ["/model", hostile].map(Cow::Borrowed);
        assert_eq!(
            MessageText::of(&text),
            MessageText::Command { name, arguments }
        );
        let note = Tagged::MemoryNote("Tabs.".into()).to_string();
        assert_eq!(
            MessageText::of(&note),
            MessageText::Client(note.as_str().into())
        );
        for interrupt in [INTERRUPTED, INTERRUPTED_FOR_TOOL_USE] {
            assert_eq!(MessageText::of(interrupt), MessageText::Interrupt);
        }
        for rejection in RejectedBy::ALL.map(|by| Rejection::new(by, Some(hostile))) {
            assert_eq!(
                MessageText::of(&rejection.to_string()),
                MessageText::Nothing
            );
        }
        assert_eq!(MessageText::of(CANCELLED), MessageText::Nothing);
    }

    #[test]
    fn a_person_may_quote_a_message_of_the_client_but_not_a_note_around_nothing() {
        let quoted = "<task-notification>x</task-notification>";
        assert_eq!(
            MessageText::by(Author::Person, quoted),
            MessageText::Prompt(quoted)
        );
        let note = "<system-reminder>x</system-reminder>";
        assert_eq!(
            MessageText::by(Author::Person, note),
            MessageText::Client(note.into())
        );
        assert_eq!(
            MessageText::by(Author::Other, "Go on."),
            MessageText::Client("Go on.".into())
        );
        assert_eq!(MessageText::by(Author::Other, " "), MessageText::Nothing);
    }
}
