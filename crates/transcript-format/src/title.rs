//! The title of a session: which of its lines counts.
//!
//! Lists read the ends of files, and a conversation reads all lines. Both ask here, so that a session has one title.

use serde::{Deserialize, Serialize};

/// The bytes at the end of a file whose lines count before the side file with the title: all that clients read there
/// (LIST-1, LIST-2).
pub const TITLE_SCAN_LEN: u64 = 64 << 10;

/// The origin of a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TitleSource {
    /// The person gave it (`custom-title`).
    Custom,
    /// A model gave it (`ai-title`).
    Ai,
    /// An older client summarized the conversation (`summary`).
    Summary,
}

/// The lines that give a title. Of each type the last line counts whose value is a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TitleLines {
    /// The last title of a person; an empty one clears those before.
    pub custom: Option<String>,
    /// Whether the line with it starts in the last [`TITLE_SCAN_LEN`] bytes of the file.
    pub is_near: bool,
    /// The last title of a model that is not empty.
    pub ai: Option<String>,
}

impl TitleLines {
    /// Returns the title: that of the person near the end, else that in the side file `custom-title.json`, else that of the person
    /// further up; else that of a model; else the last summary that an older client wrote of this conversation and not of
    /// another one. `side_file` and `summary` are called only if their title may be needed.
    ///
    /// # Errors
    /// The error of `summary`.
    pub fn title<E>(
        self,
        side_file: impl FnOnce() -> Option<String>,
        summary: impl FnOnce() -> Result<Option<String>, E>,
    ) -> Result<Option<(String, TitleSource)>, E> {
        let is_text = |title: &String| !title.is_empty();
        let custom = if self.is_near {
            self.custom
        } else {
            side_file().filter(is_text).or(self.custom)
        };
        let given = [(custom, TitleSource::Custom), (self.ai, TitleSource::Ai)];
        for (title, source) in given {
            if let Some(title) = title.filter(is_text) {
                return Ok(Some((title, source)));
            }
        }
        let summary = summary()?.filter(is_text);
        Ok(summary.map(|title| (title, TitleSource::Summary)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_there_counts() {
        let title = |custom: Option<&str>, is_near, ai: Option<&str>, side: &str, summary: &str| {
            let lines = TitleLines {
                custom: custom.map(str::to_owned),
                is_near,
                ai: ai.map(str::to_owned),
            };
            let some = |text: &str| Some(text.to_owned());
            let title = lines.title(|| some(side), || Ok::<_, ()>(some(summary)));
            title.unwrap().map(|(title, _)| title)
        };
        let expect = |title: Option<String>, expected: &str| {
            assert_eq!(title.unwrap_or_default(), expected);
        };
        expect(title(Some("c"), true, Some("a"), "f", "s"), "c");
        expect(title(Some("c"), false, Some("a"), "f", "s"), "f");
        expect(title(Some("c"), false, Some("a"), "", "s"), "c");
        // An empty title near the end clears that of the side file as well.
        expect(title(Some(""), true, Some("a"), "f", "s"), "a");
        expect(title(Some(""), true, None, "f", "s"), "s");
        expect(title(Some(""), false, None, "f", "s"), "f");
        expect(title(None, false, None, "", "s"), "s");
        expect(title(None, false, None, "", ""), "");
    }
}
