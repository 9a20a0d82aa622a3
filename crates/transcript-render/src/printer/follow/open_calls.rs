//! Calls that wait for their results.

use std::collections::VecDeque;

use transcript_format::object::Raw;

use crate::text::cut_text;

/// The maximum length of a kept input, and of a kept entry, in bytes.
const MAX_INPUT_LEN: usize = 256 << 10;
/// The maximum total size of the kept inputs, in bytes.
const MAX_INPUTS_LEN: usize = 8 << 20;
/// The maximum number of open calls. The oldest one is dropped.
const MAX_CALLS: usize = 256;
/// The maximum length of an id, and of the name of a tool, in bytes.
const MAX_NAME_LEN: usize = 256;
/// The maximum number of results that are kept until their calls arrive.
const MAX_EARLY_RESULTS: usize = 4;
/// The maximum width of the subject of a call above its result, in columns.
const MAX_SUBJECT_WIDTH: usize = 200;

/// The facts about a call that its result needs.
#[derive(Debug, PartialEq)]
pub(super) struct OpenCall {
    pub(super) id: String,
    pub(super) tool: String,
    /// The subject, after the name of the tool.
    pub(super) about: String,
    /// The input, unless it is too long.
    pub(super) input: Option<String>,
    /// The time of the call.
    pub(super) millis: Option<i64>,
}

impl OpenCall {
    pub(super) fn new(id: &str, tool: &str, about: &str, millis: Option<i64>) -> Self {
        Self {
            id: id.to_owned(),
            tool: tool.to_owned(),
            about: cut_text(about, MAX_SUBJECT_WIDTH),
            input: None,
            millis,
        }
    }
}

/// The open calls of one conversation, oldest first.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    open: VecDeque<OpenCall>,
    /// The total size of all inputs, in bytes.
    inputs: usize,
    /// The text of entries with results whose calls have not arrived yet, by call id. A result can
    /// precede its call by a line or two, because fast tools finish while the answer is being
    /// written.
    early: VecDeque<(String, String)>,
}

impl OpenCalls {
    pub(super) fn open(&mut self, mut call: OpenCall, input: Option<Raw<'_>>) {
        if call.id.len() > MAX_NAME_LEN || call.tool.len() > MAX_NAME_LEN {
            return;
        }
        let input = input.map(Raw::text);
        call.input = input
            .filter(|input| {
                input.len() <= MAX_INPUT_LEN && self.inputs + input.len() <= MAX_INPUTS_LEN
            })
            .map(str::to_owned);
        self.inputs += len(&call);
        self.open.push_back(call);
        if self.open.len() > MAX_CALLS {
            self.remove(0);
        }
    }

    /// Removes and returns the call with this id.
    pub(super) fn close(&mut self, id: &str) -> Option<OpenCall> {
        let at = self.open.iter().position(|call| call.id == id)?;
        self.remove(at)
    }

    /// Keeps the entry of a result until its call arrives.
    pub(super) fn keep_early(&mut self, id: &str, text: &str) {
        if id.len() > MAX_NAME_LEN || text.len() > MAX_INPUT_LEN {
            return;
        }
        self.early.push_back((id.to_owned(), text.to_owned()));
        if self.early.len() > MAX_EARLY_RESULTS {
            self.early.pop_front();
        }
    }

    /// Removes and returns the entry with the result of the call with this id.
    pub(super) fn take_early(&mut self, id: &str) -> Option<String> {
        let at = self.early.iter().position(|(early, _)| early == id)?;
        self.early.remove(at).map(|(_, text)| text)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn remove(&mut self, at: usize) -> Option<OpenCall> {
        let call = self.open.remove(at)?;
        self.inputs -= len(&call);
        Some(call)
    }
}

fn len(call: &OpenCall) -> usize {
    call.input.as_ref().map_or(0, String::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(len: usize) -> String {
        format!("\"{}\"", "x".repeat(len))
    }

    fn call(id: usize) -> OpenCall {
        OpenCall::new(&id.to_string(), "Write", " a file", None)
    }

    #[test]
    fn open_calls_without_results_take_bounded_memory() {
        let mut calls = OpenCalls::default();
        let text = input(MAX_INPUT_LEN - 2);
        for id in 0..3 * MAX_CALLS {
            calls.open(call(id), Raw::parse(&text).ok());
            let kept: usize = calls.open.iter().map(len).sum();
            assert_eq!(calls.inputs, kept);
            assert!(
                calls.open.len() <= MAX_CALLS && kept <= MAX_INPUTS_LEN,
                "{id}"
            );
        }
        assert_eq!(calls.close("0"), None);
        assert_eq!(
            calls.close(&(3 * MAX_CALLS - 1).to_string()).unwrap().about,
            " a file"
        );
        calls.clear();
        assert_eq!(calls.inputs, 0);
    }

    #[test]
    fn an_input_that_is_too_long_is_not_kept_and_the_call_is() {
        let mut calls = OpenCalls::default();
        let text = input(MAX_INPUT_LEN);
        calls.open(call(1), Raw::parse(&text).ok());
        calls.open(call(2), Raw::parse("{}").ok());
        assert_eq!(calls.close("1").unwrap().input, None);
        assert_eq!(calls.close("2").unwrap().input.as_deref(), Some("{}"));
        calls.open(OpenCall::new(&input(MAX_NAME_LEN), "Write", "", None), None);
        assert!(calls.open.is_empty());
    }
}
