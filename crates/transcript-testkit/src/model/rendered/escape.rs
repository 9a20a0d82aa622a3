//! The escapes of the client that keep foreign text from ending the tags around a reminder.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use crate::model::js;

static CLOSING: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)<\s*/\s*system-reminder\s*>"));
static CLOSING_START: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)<(\s*/\s*system-reminder)"));
static TAG_START: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)<(\s*/?\s*system-reminder)"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is valid")
}

/// Replaces closing tags as a whole: in messages of others, names and paths.
pub(in crate::model) fn closing_tags(text: &str) -> String {
    let closing = CLOSING.replace_all(text, "&lt;/system-reminder&gt;");
    closing.into_owned()
}

/// Replaces the bracket of closing tags: in files.
pub(super) fn brackets_of_closing_tags(text: &str) -> String {
    let bracket = |found: &Captures<'_>| format!("&lt;{}", &found[1]);
    CLOSING_START.replace_all(text, bracket).into_owned()
}

/// Replaces the bracket of all tags: in the output of hooks.
pub(super) fn brackets(text: &str) -> String {
    let bracket = |found: &Captures<'_>| format!("&lt;{}", &found[1]);
    TAG_START.replace_all(text, bracket).into_owned()
}

/// Puts a backslash into all tags: in memories.
pub(super) fn backslashes(text: &str) -> String {
    let backslash = |found: &Captures<'_>| format!("<\\{}", &found[1]);
    TAG_START.replace_all(text, backslash).into_owned()
}

/// Returns the name or path in a field; a missing one is empty.
pub(super) fn name(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        value => closing_tags(&js::text(Some(value))),
    }
}
