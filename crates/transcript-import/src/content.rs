//! The contents of nodes: as they are stored, and as they are read.

use transcript_format::json::Json;

use crate::text::Text;

/// The content of a node, read from its sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The text of a message, thought or summary.
    pub text: Option<String>,
    /// The name of the tool.
    pub name: Option<String>,
    /// The id of the call.
    pub call_id: Option<String>,
    /// The input of a call: a string when the model wrote no JSON.
    pub input: Option<Json>,
    /// The text of a result.
    pub output: Option<String>,
    /// Whether a result reports a failure.
    pub is_error: bool,
    /// The images of a message or result, in their order. Where among the texts they were is not known. Their data is not read.
    pub images: Vec<Image>,
}

/// The content of a node, with texts that stay in their sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredContent {
    /// The text of a message, thought or summary.
    pub text: Option<Text>,
    /// The name of the tool.
    pub name: Option<Box<str>>,
    /// The id of the call.
    pub call_id: Option<Box<str>>,
    /// The input of a call.
    pub input: Option<Input>,
    /// The text of a result.
    pub output: Option<Text>,
    /// Whether a result reports a failure.
    pub is_error: bool,
    /// The images of a message or result, in their order.
    pub images: Box<[Image]>,
}

impl StoredContent {
    pub(crate) fn text(text: Text) -> Self {
        Self {
            text: Some(text),
            ..Self::default()
        }
    }
}

/// The input of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A JSON value: this text is JSON.
    Json(Text),
    /// A text, of a tool that takes one or of a model that wrote no JSON.
    Text(Text),
}

/// An image of a message or result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its type, such as `image/png`, if the record names it.
    pub media_type: Option<Box<str>>,
    /// Where its bytes are.
    pub data: ImageData,
}

/// Where the bytes of an image are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageData {
    /// In the record, in Base64.
    Base64(Text),
    /// At a URL.
    Url(Text),
    /// In a file.
    Path(Text),
    /// The record does not contain them.
    Unknown,
}
