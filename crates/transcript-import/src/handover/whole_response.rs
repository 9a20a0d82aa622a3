//! A response as one record, for targets in which it is at most a thought, a text and calls.

use transcript_format::json::{Json, ObjectBuf};

use crate::Error;
use crate::node::NodeKind;

use super::head::Head;
use super::output::Output;
use super::source_item::SourceItem;

/// A response. Its texts are in memory at once.
#[derive(Default)]
pub(super) struct WholeResponse {
    pub(super) text: String,
    pub(super) thought: Option<String>,
    pub(super) calls: Vec<Json>,
    /// The time of its first item that has one.
    pub(super) time: Option<i64>,
}

impl WholeResponse {
    /// Reads the items of a response; `call` writes a call.
    pub(super) fn read(
        out: &Output<'_>,
        items: &[usize],
        call: fn(&Head, &SourceItem) -> ObjectBuf,
    ) -> Result<Self, Error> {
        let mut response = Self::default();
        for at in items {
            let item = out.item(*at)?;
            let head = out.head(*at);
            response.time = response.time.or(item.time);
            match head.kind {
                NodeKind::Reasoning => response.thought = Some(item.text),
                NodeKind::ToolCall => response.calls.push(call(head, &item).into()),
                _ => response.text = item.text,
            }
        }
        Ok(response)
    }
}
