//! The escapes with which the client keeps the text of others from ending the tags around a reminder.

use transcript_messages::text::is_js_space;

const TAG_NAME: &str = "system-reminder";

/// Replaces closing tags as a whole: in messages of others, names and paths.
pub(super) fn closing_tags(text: &str) -> String {
    replaced(text, |inside| {
        let (is_closing, rest) = tag_name(inside)?;
        let rest = rest.trim_start_matches(is_js_space).strip_prefix('>')?;
        is_closing.then_some(("&lt;/system-reminder&gt;", rest))
    })
}

/// Replaces the bracket of closing tags: in files.
pub(super) fn brackets_of_closing_tags(text: &str) -> String {
    replaced(text, |inside| {
        let (is_closing, _) = tag_name(inside)?;
        is_closing.then_some(("&lt;", inside))
    })
}

/// Replaces the bracket of all tags: in the output of hooks.
pub(in crate::request) fn brackets(text: &str) -> String {
    replaced(text, |inside| tag_name(inside).map(|_| ("&lt;", inside)))
}

/// Puts a backslash into all tags: in memories.
pub(super) fn backslashes(text: &str) -> String {
    replaced(text, |inside| tag_name(inside).map(|_| ("<\\", inside)))
}

/// Replaces brackets. `replacement` gets the text behind a bracket, and returns what replaces the
/// bracket and the text with which to go on.
fn replaced<'t>(
    text: &'t str,
    replacement: impl Fn(&'t str) -> Option<(&'static str, &'t str)>,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once('<') {
        out.push_str(before);
        let (replaced, after) = replacement(inside).unwrap_or(("<", inside));
        out.push_str(replaced);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Reads the inside of a reminder tag, in any case and with any white space: whether it is a closing
/// tag, and the text behind the name.
fn tag_name(inside: &str) -> Option<(bool, &str)> {
    let start = inside.trim_start_matches(is_js_space);
    let slashed = start.strip_prefix('/');
    let start = slashed.map_or(start, |start| start.trim_start_matches(is_js_space));
    let (name, rest) = start.split_at_checked(TAG_NAME.len())?;
    name.eq_ignore_ascii_case(TAG_NAME)
        .then_some((slashed.is_some(), rest))
}
