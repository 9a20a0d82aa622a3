//! One entry of a file, parsed on its own.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::path::Path;

use anyhow::Result;
use transcript::History;
use transcript_format::entry;
use transcript_format::object::{Object, Str};
use transcript_format::scan::Flags;
use transcript_reader::{EntryRef, LoadOptions, Prompt, Source};
use transcript_resume::items::Displays;
use transcript_resume::{Policy, Tree, is_prompt};
use transcript_tail::FollowedEntry;

use crate::conversation::Conversation;

/// A followed entry, parsed as a session of one line.
///
/// The links and line numbers of that session are therefore meaningless.
pub(crate) struct ParsedEntry<'e> {
    pub(crate) entry: &'e FollowedEntry,
    /// The text of the entry without newlines.
    text: Cow<'e, str>,
    history: History,
    /// Computed once for all blocks of the entry.
    named_call: OnceCell<Option<String>>,
}

impl<'e> ParsedEntry<'e> {
    pub(crate) fn read(entry: &'e FollowedEntry) -> Result<Self> {
        // An object that was spread over several lines still has line feeds between its values.
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

    /// Returns the index record; `None` if the line is not an entry.
    pub(crate) fn entry_ref(&self) -> Option<EntryRef<'_>> {
        self.history.index().entries().next()
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// Returns the text of the entry, salvaged if need be, on one line.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the body.
    pub(crate) fn body(&self) -> Option<entry::Entry<'_>> {
        entry::Entry::parse(&self.text).ok()
    }

    /// Returns whether a subagent wrote the entry.
    pub(crate) fn is_sidechain(&self) -> bool {
        let flags = self.entry_ref().map(|entry_ref| entry_ref.flags());
        flags.is_some_and(|flags| flags.contains(Flags::SIDECHAIN))
    }

    /// Returns whether a person wrote the entry, so that a turn starts with it.
    pub(crate) fn is_prompt(&self) -> bool {
        let may_be_one = self.entry_ref().is_some_and(|one| is_prompt(&one));
        may_be_one
            && self
                .body()
                .is_some_and(|body| Prompt::starts_turn(body.object()))
    }

    /// Returns the items of the entry; none for metadata.
    pub(crate) fn conversation(&self) -> Result<Conversation<'_>> {
        let tree = Tree::new(self.history.index(), Policy::Recover);
        let node = self.entry_ref().and_then(|one| tree.node(one.number()));
        let path = node.map(|node| tree.path_to_leaf(node)).unwrap_or_default();
        Conversation::new(&self.history, &mut Displays::new(&tree), &path, None)
    }

    /// Returns the id of the call that the entry belongs to.
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

    /// Returns a string field of the entry.
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
