//! The text of a block of any type, for display and for the search.
//!
//! Some types contain their text under names of their own: the results of the tools that the API runs
//! (web search and fetch, code execution, tool search, advisor), search results, documents, and the
//! summary of a compaction. Types that are not known yet show all their strings.

use std::borrow::Cow;

use crate::object::{JsonKind, Object, Raw, Str};

/// The depth of values that are looked at.
const MAX_DEPTH: u32 = 32;

/// Members whose strings say nothing to a reader: names of types, ids, and encrypted data.
const UNREADABLE_MEMBERS: &[&str] = &[
    "type",
    "id",
    "tool_use_id",
    "file_id",
    "signature",
    "encrypted_content",
    "encrypted_index",
    "encrypted_stdout",
    "media_type",
    "cache_control",
    "caller",
    "citations",
    "retrieved_at",
];

/// Returns the text of a block, of a list of them, or of a string: its parts joined by line feeds.
/// Empty for images and other binary data.
///
/// ```
/// use transcript_format::block_text::block_text;
/// use transcript_format::object::Raw;
///
/// let block = r#"{"type":"web_search_result","title":"Otters","url":"https://a.example","encrypted_content":"x"}"#;
/// assert_eq!(block_text(Raw::parse(block)?), "Otters\nhttps://a.example");
/// # Ok::<(), transcript_format::object::ParseObjectError>(())
/// ```
#[must_use]
pub fn block_text(block: Raw<'_>) -> Str<'_> {
    let mut text = None;
    add(block, &mut text, MAX_DEPTH);
    text.unwrap_or(Cow::Borrowed(""))
}

fn add<'a>(raw: Raw<'a>, text: &mut Option<Str<'a>>, depth: u32) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    match raw.kind() {
        JsonKind::String => add_text(raw.str().unwrap_or_default(), text),
        JsonKind::Array => {
            let items = raw.array().unwrap_or_default();
            items.into_iter().for_each(|item| add(item, text, depth));
        }
        JsonKind::Object => {
            if let Some(object) = raw.object() {
                add_object(&object, text, depth);
            }
        }
        _ => {}
    }
}

fn add_object<'a>(object: &Object<'a>, text: &mut Option<Str<'a>>, depth: u32) {
    let kind = object.str("type").unwrap_or_default();
    match &*kind {
        "text" if object.str("text").is_some() => {
            return add_text(object.str("text").unwrap_or_default(), text);
        }
        "image" | "redacted_thinking" | "base64" | "file" => return,
        _ => {}
    }
    for (name, value) in object.members() {
        if !UNREADABLE_MEMBERS.contains(&&**name) {
            add(*value, text, depth);
        }
    }
}

fn add_text<'a>(more: Str<'a>, text: &mut Option<Str<'a>>) {
    if more.is_empty() {
        return;
    }
    match text {
        None => *text = Some(more),
        Some(text) => {
            let text = text.to_mut();
            text.push('\n');
            text.push_str(&more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(block: &str) -> String {
        block_text(Raw::parse(block).unwrap()).into_owned()
    }

    #[test]
    fn each_type_of_block_has_the_text_that_a_reader_would_see() {
        for (block, text) in [
            (r#""as it is""#, "as it is"),
            (r#"{"type":"text","text":"one"}"#, "one"),
            (
                r#"{"type":"advisor_tool_result","tool_use_id":"s","content":{"type":"advisor_result","text":"advice"}}"#,
                "advice",
            ),
            (
                r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","url":"https://a.example","title":"Otters","encrypted_content":"x","page_age":null}]}"#,
                "https://a.example\nOtters",
            ),
            (
                r#"{"type":"web_search_tool_result","tool_use_id":"s","content":{"type":"web_search_tool_result_error","error_code":"too_many"}}"#,
                "too_many",
            ),
            (
                r#"{"type":"web_fetch_tool_result","tool_use_id":"s","content":{"type":"web_fetch_result","url":"https://a.example","retrieved_at":"2026","content":{"type":"document","source":{"type":"text","media_type":"text/plain","data":"page"},"title":"T"}}}"#,
                "https://a.example\npage\nT",
            ),
            (
                r#"{"type":"code_execution_tool_result","tool_use_id":"s","content":{"type":"code_execution_result","stdout":"out","stderr":"err","return_code":0,"content":[]}}"#,
                "out\nerr",
            ),
            (
                r#"{"type":"tool_search_tool_result","tool_use_id":"s","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"Read"}]}}"#,
                "Read",
            ),
            (
                r#"{"type":"search_result","source":"https://a.example","title":"T","content":[{"type":"text","text":"found"}],"citations":{"enabled":true}}"#,
                "https://a.example\nT\nfound",
            ),
            (
                r#"{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","data":"QUJD"}}]},"title":"T"}"#,
                "a\nT",
            ),
            (
                r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QUJD"}}"#,
                "",
            ),
            (r#"{"type":"compaction","content":"so far"}"#, "so far"),
            (
                r#"{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"mcp"}}"#,
                "file:///a\ntext/plain\nmcp",
            ),
            (
                r#"{"type":"of_tomorrow","what":["new",1,{"deep":"er"}]}"#,
                "new\ner",
            ),
            (
                r#"{"type":"image","source":{"type":"base64","data":"QUJD"}}"#,
                "",
            ),
            ("null", ""),
        ] {
            assert_eq!(of(block), text, "{block}");
        }
    }

    #[test]
    fn deep_values_end() {
        let deep = format!("{}\"x\"{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(of(&deep), "");
    }
}
