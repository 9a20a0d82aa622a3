//! Nodes of a conversation of another agent as items.

use transcript_format::time;

use crate::Error;
use crate::content::ImageData;
use crate::conversation::{Conversation, NodeId};
use crate::time::Time;

use super::source_item::{Image, Items, SourceItem};

/// What another agent would send with the next prompt.
impl Items for Conversation {
    fn count(&self) -> usize {
        self.live.len()
    }

    fn item(&self, at: usize) -> Result<SourceItem, Error> {
        item_of(self, self.live[at])
    }
}

/// Nodes of a conversation of another agent that a person chose, such as a branch, in the order in which they are handed over.
#[derive(Clone, Debug)]
pub struct NodeItems<'c> {
    /// The conversation.
    pub conversation: &'c Conversation,
    /// The nodes.
    pub nodes: Vec<NodeId>,
}

impl Items for NodeItems<'_> {
    fn count(&self) -> usize {
        self.nodes.len()
    }

    fn item(&self, at: usize) -> Result<SourceItem, Error> {
        item_of(self.conversation, self.nodes[at])
    }
}

fn item_of(conversation: &Conversation, id: NodeId) -> Result<SourceItem, Error> {
    let node = conversation.node(id);
    let content = conversation.content(id)?;
    let time = node.time.map(Time::text);
    let mut item = SourceItem {
        text: content.text.unwrap_or_default(),
        name: content.name,
        call_id: content.call_id,
        input: content.input,
        output: content.output.unwrap_or_default(),
        is_error: content.is_error,
        time: time.and_then(|time| time::millis(time.as_bytes())),
        model: node.model.map(str::to_owned),
        has_usage: node.usage.is_some(),
        ..SourceItem::new(node.kind)
    };
    for image in content.images {
        let image = match &image.data {
            ImageData::Base64(data) => {
                image_of(image.media_type.as_deref(), conversation.text(data)?)
            }
            ImageData::Url(url) => of_data_url(&conversation.text(url)?),
            ImageData::Path(_) | ImageData::Unknown => None,
        };
        match image {
            Some(image) => item.images.push(image),
            None => item.unknown_images += 1,
        }
    }
    Ok(item)
}

fn image_of(media_type: Option<&str>, data: String) -> Option<Image> {
    Some(Image {
        media_type: media_type?.to_owned(),
        data,
    })
}

/// Returns the image in an address that holds its bytes.
fn of_data_url(url: &str) -> Option<Image> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    image_of(kind.strip_suffix(";base64"), data.to_owned())
}
