//! References that some clients put before the text of a prompt: files, pages, symbols and others.
//!
//! The text then starts with a region, a quote in Markdown, in exactly this form:
//!
//! ```text
//! ^> \*\*上下文资料\*\*\n(?:> \n)?((?:> - .+\n)+)\n
//! ```
//!
//! `.` is that of JavaScript: any character except LF, CR, U+2028 and U+2029. There is at most one
//! region, and only at the start; a region in any other form is plain text. The entry may list the
//! same references in its field `contexts` ([`User::contexts`](crate::entry::User::contexts)).
//!
//! ```
//! use transcript_format::context_refs::Region;
//!
//! let prompt = "> **上下文资料**\n> \n> - 📄 `src/main.rs`\n> - 💻 终端输出 (12行) ⚠️\n\nWhy does it fail?";
//! let (region, text) = Region::split(prompt).ok_or("no region")?;
//! let references: Vec<&str> = region.references().collect();
//! assert_eq!(references, ["📄 `src/main.rs`", "💻 终端输出 (12行) ⚠️"]);
//! assert_eq!(text, "Why does it fail?");
//! assert_eq!([region.text(), text].concat(), prompt);
//! # Ok::<(), &str>(())
//! ```

use crate::object::Str;
use crate::schema::schema;

const HEADER: &str = "> **上下文资料**\n";
const SPACER: &str = "> \n";
const ITEM: &str = "> - ";

/// The line ends that the `.` of the grammar does not match.
const LINE_ENDS: [char; 4] = ['\n', '\r', '\u{2028}', '\u{2029}'];

/// The references before the text of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region<'a> {
    text: &'a str,
    // Invariant: at least one line, each an item of the grammar.
    items: &'a str,
}

impl<'a> Region<'a> {
    /// Splits a prompt into the region at its start and the text after it. Returns `None` when the
    /// prompt does not start with a region.
    #[must_use]
    pub fn split(prompt: &'a str) -> Option<(Self, &'a str)> {
        let body = prompt.strip_prefix(HEADER)?;
        let items = body.strip_prefix(SPACER).unwrap_or(body);
        let mut rest = items;
        while let Some(after) = after_item(rest) {
            rest = after;
        }
        let items = &items[..items.len() - rest.len()];
        let text = rest.strip_prefix('\n').filter(|_| !items.is_empty())?;
        let region = Self {
            text: &prompt[..prompt.len() - text.len()],
            items,
        };
        Some((region, text))
    }

    /// Returns the region as it is in the prompt, with the blank line after it.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the references in order, at least one: each starts with a mark for its kind, such as
    /// `📄` for a file.
    pub fn references(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let items = self.items.split_terminator('\n');
        items.map(|item| item.strip_prefix(ITEM).unwrap_or(item))
    }
}

/// Returns the text after the item at the start of `text`; `None` if there is none.
fn after_item(text: &str) -> Option<&str> {
    let item = text.strip_prefix(ITEM)?;
    let (item, rest) = item.split_at(item.find(LINE_ENDS)?);
    rest.strip_prefix('\n').filter(|_| !item.is_empty())
}

schema! {
    /// One element of the field `contexts` of a prompt.
    Context {
        type_name: Str<'a> = "type", "the kind, such as `FileReference`";
        path: Str<'a> = "path", "the path as it is shown";
        full_path: Str<'a> = "fullPath", "the absolute path";
        display_type: Str<'a> = "displayType", "its presentation, such as `TAG`";
    }
}
