//! Messages of a request.

use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::de::Error as _;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use transcript_format::named;
use transcript_format::object::{JsonKind, Raw};

use super::block::Block;
use super::stored::StoredReader;

named! {
    /// The author of a message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Role {
        /// The person, and the client on their behalf: tool results, reminders.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// Reminders, for newer models.
        System = "system",
    }
}

/// One message of a request.
///
/// Serialises as `{"role", "content"}`; content is a string when it was one and nothing was merged
/// into it, else a list of blocks (MSG-18). Is deserialized from the same, with the text of each
/// block byte for byte; other fields, as replies of the API have, are ignored. A clone shares the
/// blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub(super) role: Role,
    pub(super) blocks: Blocks,
}

/// A piece of the JSON of a message.
enum Part<'m> {
    Text(&'m str),
    Block(&'m Block),
}

/// The blocks of a message, shared by its clones, so that a long conversation can be cloned for each
/// request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blocks(Arc<Vec<Block>>);

impl Deref for Blocks {
    type Target = Vec<Block>;

    fn deref(&self) -> &Vec<Block> {
        &self.0
    }
}

impl DerefMut for Blocks {
    fn deref_mut(&mut self) -> &mut Vec<Block> {
        Arc::make_mut(&mut self.0)
    }
}

impl Message {
    /// Makes a message of these blocks.
    #[must_use]
    pub fn new(role: Role, blocks: Vec<Block>) -> Self {
        let blocks = Blocks(Arc::new(blocks));
        Self { role, blocks }
    }

    /// Returns the author.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the blocks; one for content that is a string.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the message as JSON. The result is the same as that of serialising it, but the
    /// blocks are not parsed again.
    #[must_use]
    pub fn json(&self) -> String {
        let parts = self.parts().map(|part| match part {
            Part::Text(text) => text,
            Part::Block(block) => block.json(),
        });
        parts.collect()
    }

    /// Calls `write` with the pieces of [`Self::json`] in order. Blocks that stayed in their file are
    /// read with `reader`.
    ///
    /// # Errors
    /// The errors of `write` and of [`StoredReader::json`].
    pub fn write(
        &self,
        reader: &mut StoredReader,
        mut write: impl FnMut(&str) -> io::Result<()>,
    ) -> io::Result<()> {
        self.parts().try_for_each(|part| match part {
            Part::Text(text) => write(text),
            Part::Block(block) => write(reader.json(block)?),
        })
    }

    fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let role = [r#"{"role":""#, self.role.name(), r#"","content":"#];
        let text = self.only_string();
        let blocks = match text {
            Some(_) => &[],
            None => self.blocks(),
        };
        let blocks = blocks.iter().enumerate().flat_map(|(at, block)| {
            let comma = if at > 0 { "," } else { "" };
            [Part::Text(comma), Part::Block(block)]
        });
        let (open, close) = match text {
            Some(text) => (text, "}"),
            None => ("[", "]}"),
        };
        let start = role.into_iter().chain([open]).map(Part::Text);
        start.chain(blocks).chain([Part::Text(close)])
    }

    /// Returns the string that is the whole content, as JSON.
    pub(super) fn only_string(&self) -> Option<&str> {
        match self.blocks.as_slice() {
            [block] => block.as_plain(),
            _ => None,
        }
    }
}

/// A message to which others are joined. The content of more than one is a list.
pub(super) struct Joined {
    pub(super) message: Message,
    is_list: bool,
}

impl Joined {
    pub(super) fn new(message: Message) -> Self {
        Self {
            message,
            is_list: false,
        }
    }

    pub(super) fn append(&mut self, mut other: Message) {
        let blocks = &mut self.message.blocks;
        if !std::mem::replace(&mut self.is_list, true) {
            blocks.iter_mut().for_each(Block::unlink_from_string);
        }
        other.blocks.iter_mut().for_each(Block::unlink_from_string);
        blocks.append(&mut other.blocks);
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut message = serializer.serialize_struct("Message", 2)?;
        message.serialize_field("role", &self.role)?;
        match self.only_string().and_then(|text| Raw::parse(text).ok()) {
            Some(text) => message.serialize_field("content", &text)?,
            None => message.serialize_field("content", self.blocks())?,
        }
        message.end()
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Fields {
            role: Role,
            content: Box<RawValue>,
        }
        let Fields { role, content } = Fields::deserialize(deserializer)?;
        let content = Raw::parse(content.get()).map_err(D::Error::custom)?;
        let blocks = match content.kind() {
            JsonKind::String => vec![Block::of_string(content.text())],
            _ => {
                let blocks = content.array().ok_or_else(|| {
                    D::Error::custom("the content is neither a string nor a list of blocks")
                })?;
                blocks.into_iter().map(Block::verbatim).collect()
            }
        };
        Ok(Self::new(role, blocks))
    }
}
