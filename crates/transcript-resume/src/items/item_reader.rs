//! Fetches the texts of items.

use std::collections::HashMap;
use std::ops::Range;

use transcript_format::content::{Block, Message};
use transcript_format::entry::Entry;
use transcript_format::kind::EntryKind;
use transcript_format::object::{FromRaw, JsonKind, Object, Raw, Str};
use transcript_format::scan::{Body, Flags};
use transcript_format::tool_result::ToolUseResult;
use transcript_reader::{BodySource, ConversationPath, EntryNo, Index};

use super::{Item, ItemKind, ItemList, ItemMarks};

/// The maximum size of the bodies that are kept for later items, in bytes.
const MAX_HELD: usize = 16 << 20;

/// The texts of the entries of a path, in memory.
#[derive(Debug)]
pub struct HeldTexts {
    text: String,
    /// By entry.
    places: Vec<(EntryNo, Range<usize>)>,
}

impl HeldTexts {
    /// Reads the bodies of `path`, which must be small enough.
    ///
    /// # Errors
    /// The errors of `bodies`.
    ///
    /// # Panics
    /// When `path` does not belong to `index`.
    pub fn read<B: BodySource>(
        index: &Index,
        path: &ConversationPath,
        bodies: &mut B,
    ) -> Result<Self, B::Error> {
        let mut text = String::new();
        let mut places = Vec::with_capacity(path.entries.len());
        for entry in &path.entries {
            let entry_ref = index.entry(entry.entry_no());
            if !entry_ref.flags().contains(Flags::TOO_MANY) {
                let start = text.len();
                text.push_str(bodies.body(&entry_ref)?);
                places.push((entry_ref.number(), start..text.len()));
            }
        }
        places.sort_unstable_by_key(|(entry, _)| *entry);
        Ok(Self { text, places })
    }
}

/// The bodies of the entries of a path, parsed: for its list and then for the texts of its items.
/// The default holds none, and each is read when it is needed.
#[derive(Debug, Default)]
pub struct HeldBodies<'b> {
    /// By entry: the text, and the body unless the text is not one.
    bodies: Vec<(EntryNo, &'b str, Option<Body<'b>>)>,
}

impl<'b> HeldBodies<'b> {
    /// Parses all bodies.
    #[must_use]
    pub fn parse(texts: &'b HeldTexts) -> Self {
        let bodies = texts.places.iter().map(|(entry, range)| {
            let text = &texts.text[range.clone()];
            (*entry, text, Body::parse(text).ok())
        });
        Self {
            bodies: bodies.collect(),
        }
    }

    /// Returns the text and the body of an entry.
    pub(super) fn get(&self, entry: EntryNo) -> Option<(&'b str, Option<&Body<'b>>)> {
        let place = self.bodies.binary_search_by_key(&entry, |held| held.0);
        let (_, text, body) = &self.bodies[place.ok()?];
        Some((text, body.as_ref()))
    }
}

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
    held: Option<&'d HeldBodies<'d>>,
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
            held: None,
            bodies,
            left,
            kept: HashMap::new(),
            kept_len: 0,
            last: None,
        }
    }

    /// Takes the bodies that `held` has from there.
    #[must_use]
    pub fn holding(self, held: &'d HeldBodies<'d>) -> Self {
        let held = Some(held);
        Self { held, ..self }
    }

    /// Returns the item at `place` in [`ItemList::items`] with its body.
    ///
    /// # Errors
    /// The errors of the bodies.
    ///
    /// # Panics
    /// When there is no such item, or the index belongs to another file.
    pub fn item(&mut self, place: usize) -> Result<LoadedItem<'_>, B::Error> {
        let item = &self.display.items()[place];
        if item.kind == ItemKind::TooMany {
            return Ok(LoadedItem {
                item,
                text: "",
                body: None,
            });
        }
        let held = self.held.and_then(|held| held.get(item.entry_no));
        if let Some((text, body)) = held {
            return Ok(LoadedItem { item, text, body });
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
        let text = self.last.as_ref().map_or("", |(_, text)| text);
        Ok(LoadedItem {
            item,
            text,
            body: None,
        })
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
    text: &'b str,
    /// The body, if it is held.
    body: Option<&'b Body<'b>>,
}

impl<'b> LoadedItem<'b> {
    /// Returns the item.
    #[must_use]
    pub fn item(&self) -> &'b Item {
        self.item
    }

    /// Returns the whole entry. Takes time proportional to its size unless the body is held: use
    /// [`Self::block`] for an entry with many blocks.
    #[must_use]
    pub fn entry(&self) -> Option<Entry<'b>> {
        match self.body {
            Some(body) => {
                (kind_of(body) == self.item.entry).then(|| Entry::from(body.object.clone()))
            }
            None => {
                let entry = Entry::parse(self.text).ok()?;
                (entry.kind() == self.item.entry).then_some(entry)
            }
        }
    }

    /// Returns the message of the entry, if it is one.
    #[must_use]
    pub fn message(&self) -> Option<Message<'b>> {
        match self.body {
            Some(body) if self.item.entry.is_message() => Some(body.message.clone()?.into()),
            Some(_) => None,
            None => self.entry()?.message(),
        }
    }

    /// Returns the block of a message as it is in the line, or the string that is the whole
    /// content.
    #[must_use]
    pub fn raw(&self) -> Option<Raw<'b>> {
        let span = self.item.span;
        // Items that are not blocks have no span.
        if let Some(body) = self.body.filter(|_| span.len > 0) {
            return match self.held_block() {
                Some((raw, _)) => Some(*raw),
                None => body.message.as_ref()?.get("content"),
            };
        }
        let start = span.start as usize;
        Raw::parse(self.text.get(start..start + span.len as usize)?).ok()
    }

    /// Returns the members of the block.
    #[must_use]
    pub fn object(&self) -> Option<Object<'b>> {
        match self.held_block() {
            Some((_, object)) => object.clone(),
            None => self.raw()?.object(),
        }
    }

    fn held_block(&self) -> Option<&'b (Raw<'b>, Option<Object<'b>>)> {
        let blocks = self.body?.blocks.as_ref()?;
        blocks
            .get(self.item.block())
            .filter(|_| self.item.span.len > 0)
    }

    /// Returns the block of a message; content that is a string is [`Block::Other`].
    #[must_use]
    pub fn block(&self) -> Option<Block<'b>> {
        match self.held_block() {
            Some((_, Some(object))) => Some(Block::from(object.clone())),
            Some((raw, None)) => Some(Block::Other(*raw)),
            None => self.raw().and_then(Block::from_raw),
        }
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
        if !is_its_own {
            return None;
        }
        match self.body {
            Some(body) => match &body.tool_use_result {
                Some(object) => Some(ToolUseResult::Object(object.clone())),
                None => body.object.read("toolUseResult"),
            },
            None => Object::parse(self.text).ok()?.read("toolUseResult"),
        }
    }
}

/// Returns the kind that a body names.
pub(super) fn kind_of(body: &Body<'_>) -> EntryKind {
    let name = body.object.str("type");
    name.map_or(EntryKind::Other, |name| EntryKind::from_name(&name))
}
