//! One entry of a file, parsed on its own.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::path::Path;

use transcript_format::entry;
use transcript_format::object::{Object, Str};
use transcript_reader::{EntryRef, Index, LoadOptions, Prompt, Source};
use transcript_resume::items::Displays;
use transcript_resume::{Policy, Tree, is_prompt};

use crate::Result;
use crate::conversation::Conversation;

/// A followed entry, parsed as a session of one line.
///
/// The links and line numbers of that session are therefore meaningless.
pub struct ParsedEntry<'e> {
    /// The text of the entry without newlines.
    text: Cow<'e, str>,
    source: Source,
    index: Index,
    /// Computed once for all blocks of the entry.
    named_call: OnceCell<Option<String>>,
}

impl<'e> ParsedEntry<'e> {
    /// Parses the text of an entry.
    ///
    /// # Errors
    /// Never in practice: the text is in memory.
    pub fn read(text: &'e str) -> Result<Self> {
        // An object that was spread over several lines still has line feeds between its values.
        let text = if text.contains('\n') {
            Cow::Owned(text.replace('\n', " "))
        } else {
            Cow::Borrowed(text)
        };
        let source = Source::from_bytes(text.as_bytes(), Path::new("-"));
        let index = LoadOptions::new().threads(1).load(&source)?;
        Ok(Self {
            text,
            source,
            index,
            named_call: OnceCell::new(),
        })
    }

    /// Returns the index record; `None` if the line is not an entry.
    pub fn entry_ref(&self) -> Option<EntryRef<'_>> {
        self.index.entries().next()
    }

    /// Returns the index of the one line.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Returns the text of the entry, salvaged if need be, on one line.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the body.
    pub fn body(&self) -> Option<entry::Entry<'_>> {
        entry::Entry::parse(&self.text).ok()
    }

    /// Returns whether a person wrote the entry, so that a turn starts with it.
    pub fn is_prompt(&self) -> bool {
        let may_be_one = self.entry_ref().is_some_and(|one| is_prompt(&one));
        may_be_one
            && self
                .body()
                .is_some_and(|body| Prompt::starts_turn(body.object()))
    }

    /// Returns the items of the entry; none for metadata.
    ///
    /// # Errors
    /// Never in practice: the text is in memory.
    pub fn conversation(&self) -> Result<Conversation<'_>> {
        let tree = Tree::new(&self.index, Policy::Recover);
        let node = self.entry_ref().and_then(|one| tree.node(one.number()));
        let path = node.map(|node| tree.path_to_leaf(node)).unwrap_or_default();
        Conversation::new(
            &self.source,
            &self.index,
            &mut Displays::new(&tree),
            &path,
            None,
        )
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
    pub fn str(&self, name: &str) -> Option<Str<'_>> {
        self.body()?.object().get(name)?.str()
    }
}
