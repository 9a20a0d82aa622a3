//! Facts in the results of calls besides their content: denials, commits.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use transcript_format::object::{Object, Raw, Str};
use transcript_format::scan::Body;
use transcript_format::texts;

/// A call that was denied. A client that resumes the session need not ask again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Denial {
    /// The id of the call.
    pub call: Option<String>,
    /// The tool; `None` if the call is not on the path.
    pub tool: Option<String>,
    /// The kind of the denial: the `toolDenialKind` of the line, or the kind that [`texts::denial`] finds in
    /// its text.
    pub kind: String,
    /// The reason, in the words of the person or of the classifier.
    pub reason: Option<String>,
    /// The number of the line of the result, from 1; `None` if only the end of the file was read.
    pub line: Option<u64>,
    /// Its time, as written in the file.
    pub timestamp: Option<String>,
}

/// The result of a call in an entry.
pub(super) struct ResultBlock<'a> {
    pub(super) call: Option<Str<'a>>,
    pub(super) is_error: bool,
    content: Option<Raw<'a>>,
}

impl<'a> ResultBlock<'a> {
    /// Returns the results in an entry; clients write one in each.
    pub(super) fn all<'b>(body: &'b Body<'a>) -> impl Iterator<Item = Self> + use<'a, 'b> {
        let blocks = body.blocks.iter().flatten();
        let blocks = blocks.filter_map(|(_, block)| block.as_ref());
        let results = blocks.filter(|block| block.str("type").as_deref() == Some("tool_result"));
        results.map(|block| Self {
            call: block.str("tool_use_id"),
            is_error: block.bool("is_error") == Some(true),
            content: block.get("content"),
        })
    }

    /// Returns its text, the first one of several.
    fn text(&self) -> Option<Str<'a>> {
        let content = self.content?;
        content.str().or_else(|| {
            let mut blocks = content.array()?.into_iter();
            blocks.find_map(|block| block.object()?.str("text"))
        })
    }

    /// Returns how the call was denied, and why; `None` if it was not. `named` is the
    /// `toolDenialKind` of the entry.
    pub(super) fn denial(&self, named: Option<&str>) -> Option<(String, Option<String>)> {
        if !self.is_error && named.is_none() {
            return None;
        }
        let text = self.text();
        let denial = text.as_deref().and_then(texts::denial);
        let kind = named.or(denial.map(|(kind, _)| kind))?;
        let reason = denial.and_then(|(_, reason)| reason);
        Some((kind.to_owned(), reason.map(str::to_owned)))
    }
}

/// A call without a result so far.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) tool: Option<String>,
    /// The file that it reads.
    pub(super) file: Option<String>,
}

/// The calls without a result so far, by id.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(HashMap<String, OpenCall>);

impl OpenCalls {
    /// Adds the calls of an answer.
    pub(super) fn add(&mut self, body: &Body<'_>) {
        let blocks = body.blocks.iter().flatten();
        for block in blocks.filter_map(|(_, block)| block.as_ref()) {
            if block.str("type").as_deref() != Some("tool_use") {
                continue;
            }
            let Some(id) = block.str("id") else { continue };
            let tool = block.str("name");
            let file = match tool.as_deref() {
                Some("Read") => block
                    .object("input")
                    .and_then(|input| input.str("file_path")),
                _ => None,
            };
            let call = OpenCall {
                tool: tool.map(Str::into_owned),
                file: file.map(Str::into_owned),
            };
            self.0.insert(id.into_owned(), call);
        }
    }

    /// Removes the call that has a result now.
    pub(super) fn remove_answered(&mut self, call: Option<&str>) -> Option<OpenCall> {
        self.0.remove(call?)
    }
}

/// Returns whether the result of a command names a new commit: one that was amended replaces another.
pub(super) fn is_commit(result: &Object<'_>) -> bool {
    let commit = result
        .object("gitOperation")
        .and_then(|operation| operation.object("commit"));
    commit.is_some_and(|commit| commit.str("kind").as_deref() != Some("amended"))
}
