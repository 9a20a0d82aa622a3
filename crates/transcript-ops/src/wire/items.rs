//! A session as items that no provider has for itself alone.

use serde::{Deserialize, Serialize};

use super::text::Json;
use super::{Name, SCHEMA};

/// A session of any agent as items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ItemsRecord {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Always `items`.
    #[serde(default = "kind")]
    pub kind: Name,
    /// The items that go to the model with the next prompt, in their order.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<SessionItem>"))]
    pub live: Json<'static>,
    /// The items of each branch and subagent.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Vec<SessionItem>>"))]
    pub branches: Json<'static>,
    /// The items that summaries took the place of.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<SessionItem>"))]
    pub compacted: Json<'static>,
}

impl ItemsRecord {
    /// Reads the object that [`write_items`](crate::items::write_items) writes; `None` for anything else.
    #[must_use]
    pub fn read(text: &[u8]) -> Option<Self> {
        let record: Self = serde_json::from_slice(text).ok()?;
        (record.schema == SCHEMA).then_some(record)
    }
}

fn kind() -> Name {
    "items".into()
}

/// A message, or one block of it.
#[cfg(feature = "schema")]
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionItem {
    /// `user`, `assistant`, `reasoning`, `tool_call`, `tool_result`, `summary` or `context`.
    pub kind: Name,
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The name of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The id of the call that it makes or answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The input of the call: an object, or a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<serde_json::Value>,
    /// The text of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<bool>,
    /// The number of images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<u64>,
}
