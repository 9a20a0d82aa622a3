//! What a hand-over is made of while it is written, for the rooms of the targets.

use std::io::{self, Write};

use transcript_format::json::{Json, ObjectBuf};

use crate::Error;
use crate::node::NodeKind;

use super::head::Head;
use super::new_session::{Clock, NewSession};
use super::plan::Plan;
use super::rules::{Rules, is_accepted};
use super::source_item::{Image, Items, SourceItem};

/// The conversation, and where it is written.
pub(super) struct Output<'a> {
    pub(super) items: &'a dyn Items,
    pub(super) plan: &'a Plan,
    pub(super) session: &'a NewSession,
    pub(super) rules: &'a Rules,
    pub(super) clock: Clock,
    pub(super) to: &'a mut dyn Write,
    /// Adds the path to what the system says.
    pub(super) error: &'a dyn Fn(io::Error) -> Error,
}

impl Output<'_> {
    /// Writes a record as a line.
    pub(super) fn line(&mut self, record: &ObjectBuf) -> Result<(), Error> {
        self.text(&record.text())?;
        self.text("\n")
    }

    /// Writes a part of a line.
    pub(super) fn text(&mut self, text: &str) -> Result<(), Error> {
        self.to.write_all(text.as_bytes()).map_err(self.error)
    }

    pub(super) fn item(&self, at: usize) -> Result<SourceItem, Error> {
        self.items.item(at)
    }

    pub(super) fn head(&self, at: usize) -> &Head {
        &self.plan.heads[at]
    }

    /// Returns the time of the next record, which is that of an item.
    pub(super) fn time(&mut self, item: &SourceItem) -> String {
        self.clock.next_text(item.time)
    }

    /// Returns the images of an item that are written.
    pub(super) fn images<'i>(
        &self,
        item: &'i SourceItem,
    ) -> impl Iterator<Item = &'i Image> + use<'i> {
        let count = super::rules::carried_images(item, self.rules);
        item.images.iter().filter(is_accepted).take(count)
    }
}

/// Returns the input of a call as an object.
pub(super) fn input_object(item: &SourceItem) -> Json {
    match &item.input {
        None => ObjectBuf::new().into(),
        Some(input) if input.is_null() => ObjectBuf::new().into(),
        Some(input) if input.text().starts_with('{') => input.clone(),
        Some(input) => ObjectBuf::new().with("input", input.clone()).into(),
    }
}

/// Returns whether an item is a call.
pub(super) fn is_call(head: &Head) -> bool {
    head.kind == NodeKind::ToolCall
}
