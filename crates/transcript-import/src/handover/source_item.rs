//! The conversation that is handed over: items, one at a time.

use transcript_format::json::Json;

use crate::Error;
use crate::node::NodeKind;

/// One item of the conversation that is handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceItem {
    /// What it is.
    pub kind: NodeKind,
    /// The text of a message, thought or summary.
    pub text: String,
    /// The name of the tool.
    pub name: Option<String>,
    /// The id of the call.
    pub call_id: Option<String>,
    /// The input of a call: a string when the model wrote no JSON.
    pub input: Option<Json>,
    /// The text of a result.
    pub output: String,
    /// Whether a result reports a failure.
    pub is_error: bool,
    /// Its images.
    pub images: Vec<Image>,
    /// The number of images whose data is not known.
    pub unknown_images: usize,
    /// Its time, in milliseconds since 1970.
    pub time: Option<i64>,
    /// The number of parts of a result that are neither texts nor images, such as references to tools: their JSON is in the text.
    pub parts_as_text: usize,
    /// The model that wrote it.
    pub model: Option<String>,
    /// Whether the tokens of its response are known.
    pub has_usage: bool,
    /// Whether it is a thought that its maker signed or encrypted.
    pub has_signature: bool,
    /// Whether it is a prompt that the agent and not the person wrote, such as the text of a skill. It is handed over as a prompt.
    pub is_of_agent: bool,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its type, such as `image/png`.
    pub media_type: String,
    /// Its bytes in base64.
    pub data: String,
}

impl Image {
    /// Returns it as an address that holds its bytes.
    pub(super) fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.data)
    }
}

impl SourceItem {
    /// Returns an item without content.
    #[must_use]
    pub fn new(kind: NodeKind) -> Self {
        Self {
            kind,
            text: String::new(),
            name: None,
            call_id: None,
            input: None,
            output: String::new(),
            is_error: false,
            images: Vec::new(),
            unknown_images: 0,
            time: None,
            parts_as_text: 0,
            model: None,
            has_usage: false,
            has_signature: false,
            is_of_agent: false,
        }
    }
}

/// The items of a conversation, in the order in which they go to the model.
///
/// A hand-over reads each item twice and holds one at a time, so its memory does not depend on how long the texts are. Both times an
/// item must be the same.
pub trait Items {
    /// Returns the number of items.
    fn count(&self) -> usize;

    /// Returns the item with a number below [`count`](Self::count).
    ///
    /// # Errors
    /// When it cannot be read.
    fn item(&self, at: usize) -> Result<SourceItem, Error>;
}

impl Items for &[SourceItem] {
    fn count(&self) -> usize {
        self.len()
    }

    fn item(&self, at: usize) -> Result<SourceItem, Error> {
        Ok(self[at].clone())
    }
}

impl Items for Vec<SourceItem> {
    fn count(&self) -> usize {
        self.len()
    }

    fn item(&self, at: usize) -> Result<SourceItem, Error> {
        Ok(self[at].clone())
    }
}
