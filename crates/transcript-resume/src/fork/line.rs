//! Changes single members of a line and leaves every other byte unchanged.

use transcript_format::json::Json;
use transcript_format::object::{Object, Raw};

/// A change to a value.
pub(super) enum Edit {
    /// It stays.
    Keep,
    /// It is replaced by this JSON.
    Set(String),
    /// It is removed, with its key.
    Remove,
}

impl Edit {
    pub(super) fn set(value: &Json) -> Self {
        Self::Set(value.text().to_owned())
    }
}

/// Returns the text of `object` with its members changed by `edit`, and `more` appended.
pub(super) fn edited(
    object: &Object<'_>,
    mut edit: impl FnMut(&str, Raw<'_>) -> Edit,
    more: &[(&str, Json)],
) -> String {
    let text = object.text();
    let values = object.members().iter().map(|(key, value)| {
        let edit = edit(key, *value);
        (*value, edit)
    });
    let (mut out, end) = edited_values(text, values);
    for (key, value) in more {
        if out.len() > 1 {
            out.push(',');
        }
        out = out + "\"" + key + "\":" + value.text();
    }
    out + &text[end..]
}

/// Returns the text of the list `raw` with its elements changed by `edit`.
pub(super) fn edited_list(raw: Raw<'_>, mut edit: impl FnMut(Raw<'_>) -> Edit) -> Option<String> {
    let elements = raw.array()?;
    let values = elements.into_iter().map(|element| (element, edit(element)));
    let (out, end) = edited_values(raw.text(), values);
    Some(out + &raw.text()[end..])
}

/// Returns the text of an object or a list without the part after its last value, and where that
/// part starts. `values` are those of `text`, in order.
fn edited_values<'a>(text: &str, values: impl Iterator<Item = (Raw<'a>, Edit)>) -> (String, usize) {
    let mut out = String::with_capacity(text.len());
    out += &text[..1];
    let mut end = 1;
    for (value, edit) in values {
        // The value is a slice of the text, so the distance of the two is its place. A comma,
        // unless it is the first one, and the key precede it.
        let start = value.text().as_ptr() as usize - text.as_ptr() as usize;
        let lead = &text[end..start];
        end = start + value.text().len();
        let new = match &edit {
            Edit::Remove => continue,
            Edit::Keep => value.text(),
            Edit::Set(new) => new,
        };
        let is_first = out.len() == 1;
        out += if is_first { without_comma(lead) } else { lead };
        out += new;
    }
    (out, end)
}

/// Returns the text before the first value that is left.
fn without_comma(lead: &str) -> &str {
    match lead.trim_ascii_start().strip_prefix(',') {
        Some(key) => key.trim_ascii_start(),
        None => lead,
    }
}
