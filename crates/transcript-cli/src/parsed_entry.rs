//! One entry of a file, read without those around it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::path::Path;

use anyhow::Result;
use transcript_format::entry;
use transcript_format::object::{Object, Str};
use transcript_format::scan::Flags;
use transcript_reader::{EntryRef, LoadOptions, Prompt, Source};
use transcript_resume::items::Displays;
use transcript_resume::{Policy, Tree, is_prompt};
use transcript_session::History;
use transcript_tail::FollowedEntry;

use crate::conversation::Conversation;

/// An entry as it is followed, as a session of one line.
///
/// What is said of that session, such as its links and its line number, says nothing of the file.
pub(crate) struct ParsedEntry<'e> {
    pub(crate) entry: &'e FollowedEntry,
    /// Its text without newlines.
    text: Cow<'e, str>,
    history: History,
    /// Found once for all blocks of the entry.
    named_call: OnceCell<Option<String>>,
}

impl<'e> ParsedEntry<'e> {
    pub(crate) fn read(entry: &'e FollowedEntry) -> Result<Self> {
        // An object that was spread over several lines still has their ends between its values.
        let text = match entry.text.contains('\n') {
            true => Cow::Owned(entry.text.replace('\n', " ")),
            false => Cow::Borrowed(&*entry.text),
        };
        let source = Source::from_bytes(text.as_bytes(), Path::new("-"));
        let history = History::read_with(source, &LoadOptions::new().threads(1))?;
        Ok(Self {
            entry,
            text,
            history,
            named_call: OnceCell::new(),
        })
    }

    /// What is known of it without its body; `None` when it is no object that counts.
    pub(crate) fn entry_ref(&self) -> Option<EntryRef<'_>> {
        self.history.index().entries().next()
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// What stands on its line, or was brought back from there, on one line.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Its body.
    pub(crate) fn body(&self) -> Option<entry::Entry<'_>> {
        entry::Entry::parse(&self.text).ok()
    }

    /// Whether it was written by a subagent.
    pub(crate) fn is_sidechain(&self) -> bool {
        let flags = self.entry_ref().map(|entry_ref| entry_ref.flags());
        flags.is_some_and(|flags| flags.contains(Flags::SIDECHAIN))
    }

    /// Whether a person wrote it, so that a turn starts with it.
    pub(crate) fn is_prompt(&self) -> bool {
        let may_be_one = self.entry_ref().is_some_and(|one| is_prompt(&one));
        may_be_one
            && self
                .body()
                .is_some_and(|body| Prompt::starts_turn(body.object()))
    }

    /// Its items; none of what stands outside the conversation.
    pub(crate) fn conversation(&self) -> Result<Conversation<'_>> {
        let tree = Tree::new(self.history.index(), Policy::Recover);
        let node = self.entry_ref().and_then(|one| tree.node(one.number()));
        let path = node.map(|node| tree.path_to_leaf(node)).unwrap_or_default();
        Conversation::new(&self.history, &mut Displays::new(&tree), &path, None)
    }

    /// The call that the entry names as the one that it belongs to.
    pub(crate) fn names_call(&self) -> Option<&str> {
        let named = self.named_call.get_or_init(|| {
            let body = self.body()?;
            let text = |object: &Object<'_>, name| object.str(name).map(|text| text.into_owned());
            let attachment = body.object().object("attachment");
            let of_attachment = attachment.and_then(|attachment| text(&attachment, "toolUseID"));
            of_attachment
                .or_else(|| text(body.object(), "sourceToolUseID"))
                .or_else(|| text(body.object(), "toolUseID"))
        });
        named.as_deref()
    }

    /// A field of the entry that is a text.
    pub(crate) fn str(&self, name: &str) -> Option<Str<'_>> {
        self.body()?.object().get(name)?.str()
    }
}

/// The entries of a file with these lines.
#[cfg(test)]
pub(crate) fn entries(lines: &str) -> Vec<FollowedEntry> {
    use transcript_tail::{EventKind, FollowOptions, Follower};
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{lines}\n")).unwrap();
    let mut follower = Follower::new(file.path(), &FollowOptions::new().poll_only());
    let shown = std::iter::from_fn(|| follower.try_next().unwrap());
    let entries = shown.filter_map(|shown| match shown.kind {
        EventKind::Entry(entry) => Some(entry),
        _ => None,
    });
    entries.collect()
}
