//! The form in which a text is shown. Only this module decides whether a person or the client wrote it, for all outputs.

use std::borrow::Cow;

use transcript_format::author::Author;
use transcript_reader::{DividedText, MessageText};
use transcript_resume::items::{Item, ItemMarks, Speaker};

/// A text as a printer shows it.
pub(crate) enum ShownText<'t> {
    /// A person wrote the words; the client put its notes around them.
    Prompt(DividedText<'t>),
    /// A person typed this command.
    Command(String),
    /// The agent wrote it.
    Answer,
    /// It summarizes the entries that a compaction removed.
    Summary,
    /// It is not part of the conversation; with the reason or the origin.
    Aside(&'static str, Cow<'t, str>),
    /// An error of the API.
    Alarm,
    /// There is nothing to show.
    Nothing,
}

impl<'t> ShownText<'t> {
    /// Decides how the text of an item is shown.
    pub(crate) fn of(item: &Item, text: &'t str) -> Self {
        if item.marks().contains(ItemMarks::API_ERROR) {
            return Self::Alarm;
        }
        if let Some(mark) = hidden(item.marks()) {
            return Self::Aside(mark, text.into());
        }
        match item.speaker() {
            Speaker::Agent => Self::Answer,
            Speaker::Summary => Self::Summary,
            Speaker::Person => match MessageText::by(author(item), text) {
                MessageText::Prompt(_) => Self::Prompt(DividedText::of(text)),
                MessageText::Client(text) => Self::Aside("client", text),
                MessageText::Nothing if text.trim().is_empty() => Self::Nothing,
                said => match said.typed() {
                    Some(command) => Self::Command(command.into_owned()),
                    None => Self::Aside("client", text.into()),
                },
            },
            _ => match MessageText::by(Author::Other, text) {
                MessageText::Client(text) => Self::Aside("client", text),
                _ => Self::Aside("client", text.into()),
            },
        }
    }
}

/// Returns the author that the line of an item names.
fn author(item: &Item) -> Author {
    if item.marks().contains(ItemMarks::TYPED) {
        Author::Person
    } else {
        Author::Unknown
    }
}

/// Returns the reason why the client does not show an item.
fn hidden(marks: ItemMarks) -> Option<&'static str> {
    let kinds = [
        (ItemMarks::TOMBSTONED, "tombstoned"),
        (ItemMarks::VIRTUAL, "virtual"),
        (ItemMarks::TEAM, "team"),
        (ItemMarks::META, "meta"),
    ];
    let found = kinds.into_iter().find(|(mark, _)| marks.contains(*mark));
    // A summary is transcript-only too, but it is shown: it replaces everything before it.
    let is_hidden =
        marks.contains(ItemMarks::TRANSCRIPT_ONLY) && !marks.contains(ItemMarks::SUMMARY);
    found
        .map(|(_, name)| name)
        .or(is_hidden.then_some("hidden"))
}
