//! The model that the person chose, and the one that the client changed to.

use serde::{Deserialize, Serialize};
use transcript_format::object::{Object, Str};
use transcript_format::system::ModelRefusalFallback;
use transcript_reader::{EntryRef, MessageText};

/// The start of the output of the command `/model` when it changed the model.
const MODEL_SET_PREFIX: &str = "Set model to ";

/// The end of that output for the default model: no model is chosen any more.
const DEFAULT_MODEL_SUFFIX: &str = "(default)";

/// A change to another model because the one that was asked refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelFallback {
    /// The model that refused.
    pub original_model: Option<String>,
    /// The model that continued.
    pub fallback_model: Option<String>,
    /// The reason, such as `refusal`.
    pub trigger: Option<String>,
    /// The number of the line, from 1; `None` if only the end of the file was read.
    pub line: Option<u64>,
    /// Its time, as written in the file.
    pub timestamp: Option<String>,
}

impl ModelFallback {
    pub(super) fn read(line: &EntryRef<'_>, body: Object<'_>) -> Self {
        let timestamp = owned(body.str("timestamp"));
        let change = ModelRefusalFallback::from(body);
        Self {
            original_model: owned(change.original_model()),
            fallback_model: owned(change.fallback_model()),
            trigger: owned(change.trigger()),
            line: line.known_line(),
            timestamp,
        }
    }
}

/// The model that the last command `/model` chose.
#[derive(Debug, Default)]
pub(super) struct ModelChoice {
    /// The argument of a command whose output has not come yet.
    asked: Option<String>,
    /// `Some(None)` after a return to the default.
    chosen: Option<Option<String>>,
}

impl ModelChoice {
    /// Reads the text of a user line, or of a command of the client.
    pub(super) fn add(&mut self, text: &str) {
        match MessageText::of(text) {
            MessageText::Command { name, arguments } => {
                let asked = (name == "/model").then(|| arguments.trim());
                self.asked = asked.map(str::to_owned);
            }
            MessageText::Client(output) => {
                let shown = without_styles(&output);
                if let Some(name) = shown.trim().strip_prefix(MODEL_SET_PREFIX) {
                    let asked = self.asked.take().filter(|asked| !asked.is_empty());
                    let is_default = name.trim_end().ends_with(DEFAULT_MODEL_SUFFIX);
                    let name = asked.unwrap_or_else(|| name.trim().to_owned());
                    self.chosen = Some((!is_default).then_some(name));
                }
            }
            _ => {}
        }
    }

    /// Returns the model, in the words of the person or of the client; `earlier` is the choice before
    /// the last compaction.
    pub(super) fn finish(self, earlier: Self) -> Option<String> {
        self.chosen.or(earlier.chosen).flatten()
    }
}

/// Returns a text without the sequences that set colours and weights in a terminal.
fn without_styles(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut shown, part| {
        let codes = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        shown.push_str(codes.strip_prefix('m').unwrap_or(part));
        shown
    })
}

fn owned(text: Option<Str<'_>>) -> Option<String> {
    text.map(Str::into_owned)
}
