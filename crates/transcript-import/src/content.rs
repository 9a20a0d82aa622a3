//! The contents of nodes: as they are stored, and as they are read.

use compact_str::CompactString;
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

/// The content of a node, with texts that stay in their sources. It has at most one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredContent<'c> {
    /// The text of a message, thought or summary.
    pub text: Option<&'c Text>,
    /// The name of the tool.
    pub name: Option<&'c str>,
    /// The id of the call.
    pub call_id: Option<&'c str>,
    /// The input of a call.
    pub input: Option<Input<&'c Text>>,
    /// The text of a result.
    pub output: Option<&'c Text>,
    /// Whether a result reports a failure.
    pub is_error: bool,
    /// The images of a message or result, in their order.
    pub images: &'c [Image],
}

/// The content of a node that is added.
#[derive(Debug, Default)]
pub(crate) struct NewContent {
    pub(crate) body: Body,
    pub(crate) name: Option<CompactString>,
    pub(crate) call_id: Option<CompactString>,
    pub(crate) is_error: bool,
    pub(crate) images: Vec<Image>,
}

/// The text of a node.
#[derive(Debug, Default)]
pub(crate) enum Body {
    #[default]
    None,
    /// That of a message, thought or summary.
    Text(Text),
    /// The input of a call.
    Input(Input),
    /// That of a result.
    Output(Text),
}

impl NewContent {
    pub(crate) fn text(text: Text) -> Self {
        Self {
            body: Body::Text(text),
            ..Self::default()
        }
    }

    /// Makes the text that of a result.
    pub(crate) fn into_output(mut self) -> Self {
        self.body = match self.body {
            Body::Text(text) => Body::Output(text),
            Body::None => Body::Output(Text::held("")),
            body => body,
        };
        self
    }

    /// Returns the text of a message, thought or summary.
    pub(crate) fn said(&self) -> Option<&Text> {
        match &self.body {
            Body::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text of a message or a result.
    pub(crate) fn shown(&self) -> Option<&Text> {
        match &self.body {
            Body::Text(text) | Body::Output(text) => Some(text),
            Body::Input(_) | Body::None => None,
        }
    }

    /// As [`said`](Self::said).
    pub(crate) fn into_said(self) -> Option<Text> {
        match self.body {
            Body::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The input of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<T = Text> {
    /// A JSON value: this text is JSON.
    Json(T),
    /// A text, of a tool that takes one or of a model that wrote no JSON.
    Text(T),
}

/// An image of a message or result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its type, such as `image/png`, if the record names it.
    pub media_type: Option<CompactString>,
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
