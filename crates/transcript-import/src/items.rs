//! A conversation as provider-neutral items.

use serde::Serialize;
use serde::ser::Serializer;
use transcript_format::json::Json;
use transcript_format::object::Raw;

use crate::Error;
use crate::conversation::{BranchKind, Conversation, NodeId, NodeKind};

/// A conversation as items, which serialize as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Items {
    /// The version of this form: 1.
    pub schema: u32,
    /// What goes to the model, in its order.
    pub live: Vec<Item>,
    /// The branches that a compaction did not cause.
    pub branches: Vec<Vec<Item>>,
    /// What summaries took the place of.
    pub compacted: Vec<Item>,
}

/// A node as an item; what it does not have is omitted.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// `user`, `assistant`, `reasoning`, `tool_call`, `tool_result`, `summary` or `context`.
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_json")]
    input: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    error: bool,
    #[serde(skip_serializing_if = "is_zero")]
    images: usize,
}

impl NodeKind {
    /// Returns its name in items.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Reasoning => "reasoning",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
            Self::Summary => "summary",
            Self::Context => "context",
        }
    }
}

impl Conversation {
    /// Returns the conversation as items.
    ///
    /// # Errors
    /// When a content cannot be read.
    pub fn items(&self) -> Result<Items, Error> {
        let items = |ids: &[NodeId]| -> Result<Vec<Item>, Error> {
            ids.iter().map(|id| self.item(*id)).collect()
        };
        let (mut branches, mut compacted) = (Vec::new(), Vec::new());
        for branch in &self.branches {
            let of_branch = items(&branch.nodes)?;
            if branch.kind == BranchKind::Compacted {
                compacted.extend(of_branch);
            } else {
                branches.push(of_branch);
            }
        }
        Ok(Items {
            schema: 1,
            live: items(&self.live)?,
            branches,
            compacted,
        })
    }

    fn item(&self, id: NodeId) -> Result<Item, Error> {
        let content = self.content(id)?.into_owned();
        Ok(Item {
            kind: self.node(id).kind.name(),
            text: content.text,
            name: content.name,
            call_id: content.call_id,
            input: content.input,
            output: content.output,
            error: content.is_error,
            images: content.images,
        })
    }
}

fn as_json<S: Serializer>(input: &Option<Json>, serializer: S) -> Result<S::Ok, S::Error> {
    let raw = input
        .as_ref()
        .and_then(|input| Raw::parse(input.text()).ok());
    raw.serialize(serializer)
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &usize) -> bool {
    *value == 0
}
