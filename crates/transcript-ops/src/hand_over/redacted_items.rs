//! Items without what looks like a secret.

use std::cell::RefCell;
use std::collections::BTreeMap;

use transcript_format::json::Json;
use transcript_format::object::Raw;
use transcript_import::Error;
use transcript_import::handover::{Items, SourceItem};
use transcript_redact::Redactor;

/// Items without what looks like a secret. Images are as they were.
pub(super) struct RedactedItems<'i> {
    items: &'i dyn Items,
    redactor: &'i Redactor,
    /// The number of secrets of each item that has some. Items are read more than once.
    found: RefCell<BTreeMap<usize, u64>>,
}

impl<'i> RedactedItems<'i> {
    pub(super) fn new(items: &'i dyn Items, redactor: &'i Redactor) -> Self {
        Self {
            items,
            redactor,
            found: RefCell::default(),
        }
    }

    /// Returns the number of secrets in the items that were read.
    pub(super) fn found_count(&self) -> u64 {
        self.found.borrow().values().sum()
    }
}

impl Items for RedactedItems<'_> {
    fn count(&self) -> usize {
        self.items.count()
    }

    fn item(&self, at: usize) -> Result<SourceItem, Error> {
        let mut item = self.items.item(at)?;
        let mut count = 0u64;
        for text in [&mut item.text, &mut item.output] {
            count += self.redactor.find_text(text.as_bytes()).len() as u64;
            *text = self.redactor.redact_text(text);
        }
        if let Some(input) = &mut item.input {
            count += self.redactor.find(input.text().as_bytes()).len() as u64;
            let redacted = self.redactor.redact_line(input.text());
            // JSON without its secrets is JSON; were it not, nothing of the input may leave.
            *input = Raw::parse(&redacted).map_or_else(|_| Json::null(), Json::from);
        }
        if count > 0 {
            self.found.borrow_mut().insert(at, count);
        }
        Ok(item)
    }
}
