//! Fetches the texts of items.

use std::collections::HashMap;

use transcript_format::content::Block;
use transcript_format::entry::Entry;
use transcript_format::object::{FromRaw, JsonKind, Object, Raw, Str};
use transcript_format::tool_result::ToolUseResult;
use transcript_reader::{EntryNo, Index};

use super::{Item, ItemKind, ItemList, ItemMarks};
use crate::request::BodySource;

/// How many bytes of bodies are kept for later items.
const MAX_HELD: usize = 16 << 20;

/// Fetches the bodies of the items of one list.
///
/// When the items are requested in order, each body is read once. The body of an entry whose items
/// are not adjacent, as those of parallel calls in one line, is kept until the last of them was
/// loaded. At most 16 MiB are kept, or one body that is longer, and the rest is read again. In any
/// other order the results are the same, but bodies may be read more often.
#[derive(Debug)]
pub struct ItemReader<'d, B> {
    display: &'d ItemList,
    index: &'d Index,
    bodies: B,
    /// For entries that are loaded in several steps: how many items are left.
    left: HashMap<EntryNo, u32>,
    kept: HashMap<EntryNo, String>,
    kept_len: usize,
    /// The entry that was loaded last, with its body.
    last: Option<(EntryNo, String)>,
}

impl<'d, B: BodySource> ItemReader<'d, B> {
    /// Starts reading; `index` and `bodies` are those that `display` was made from.
    #[must_use]
    pub fn new(display: &'d ItemList, index: &'d Index, bodies: B) -> Self {
        let mut left: HashMap<EntryNo, u32> = HashMap::new();
        for run in display.items().chunk_by(|a, b| a.entry_no == b.entry_no) {
            *left.entry(run[0].entry_no).or_default() += 1;
        }
        left.retain(|_, runs| *runs > 1);
        Self {
            display,
            index,
            bodies,
            left,
            kept: HashMap::new(),
            kept_len: 0,
            last: None,
        }
    }

    /// Returns the item at `place` in [`ItemList::items`] with its body.
    ///
    /// # Errors
    /// Those of the bodies.
    ///
    /// # Panics
    /// When there is no such item, or the index belongs to another file.
    pub fn item(&mut self, place: usize) -> Result<LoadedItem<'_>, B::Error> {
        let item = &self.display.items()[place];
        if item.kind == ItemKind::TooMany {
            return Ok(LoadedItem { item, body: "" });
        }
        if self
            .last
            .as_ref()
            .is_none_or(|(last, _)| *last != item.entry_no)
        {
            let body = self.fetch(item)?;
            let last = self.last.replace((item.entry_no, body));
            self.keep(last);
        }
        let body = self.last.as_ref().map_or("", |(_, body)| body);
        Ok(LoadedItem { item, body })
    }

    fn fetch(&mut self, item: &Item) -> Result<String, B::Error> {
        if let Some(kept) = self.kept.remove(&item.entry_no) {
            self.kept_len -= kept.len();
            return Ok(kept);
        }
        let entry_ref = self.index.entry(item.entry_no());
        self.bodies.body(&entry_ref).map(str::to_owned)
    }

    /// Keeps the body of an entry with more items to load.
    fn keep(&mut self, loaded: Option<(EntryNo, String)>) {
        let Some((entry_ref, body)) = loaded else {
            return;
        };
        let Some(left) = self.left.get_mut(&entry_ref) else {
            return;
        };
        *left -= 1;
        if *left == 0 {
            self.left.remove(&entry_ref);
        } else if self.kept.is_empty() || self.kept_len + body.len() <= MAX_HELD {
            // The calls of one long line alternate with the results of another: without one of the
            // two, both would be read again for each call.
            self.kept_len += body.len();
            self.kept.insert(entry_ref, body);
        }
    }
}

/// An item and the body of its entry.
///
/// The views return `None` when the file no longer contains the source of the item.
#[derive(Clone, Copy, Debug)]
pub struct LoadedItem<'b> {
    item: &'b Item,
    body: &'b str,
}

impl<'b> LoadedItem<'b> {
    /// Returns the item.
    #[must_use]
    pub fn item(&self) -> &'b Item {
        self.item
    }

    /// Returns the whole entry. Takes time proportional to its size: use [`Self::block`] for an
    /// entry with many blocks.
    #[must_use]
    pub fn entry(&self) -> Option<Entry<'b>> {
        let entry = Entry::parse(self.body).ok()?;
        (entry.kind() == self.item.entry).then_some(entry)
    }

    /// Returns the block of a message as it is in the line, or the string that is the whole
    /// content.
    #[must_use]
    pub fn raw(&self) -> Option<Raw<'b>> {
        let span = self.item.span;
        let start = span.start as usize;
        Raw::parse(self.body.get(start..start + span.len as usize)?).ok()
    }

    /// Returns the block of a message; content that is a string is [`Block::Other`].
    #[must_use]
    pub fn block(&self) -> Option<Block<'b>> {
        self.raw().and_then(Block::from_raw)
    }

    /// Returns the text of a [text](ItemKind::Text) or [thinking](ItemKind::Thinking) item.
    #[must_use]
    pub fn text(&self) -> Option<Str<'b>> {
        let raw = self.raw()?;
        if raw.kind() == JsonKind::String {
            return raw.str();
        }
        match self.block()? {
            Block::Text(text) => text.text(),
            Block::Thinking(thinking) => thinking.thinking(),
            _ => None,
        }
    }

    /// Returns the result in the tool's own form, for a [result](ItemKind::Result) that is the only
    /// one of its entry. Choose its view by the [name](super::CallGroup::tool) of the tool.
    #[must_use]
    pub fn tool_use_result(&self) -> Option<ToolUseResult<'b>> {
        let is_its_own =
            self.item.kind == ItemKind::Result && self.item.marks.contains(ItemMarks::ONLY_RESULT);
        let entry = is_its_own.then(|| Object::parse(self.body).ok())??;
        entry.read("toolUseResult")
    }
}
