//! Text that fits the terminal.

use unicode_width::UnicodeWidthStr;

/// Breaks a text at spaces into lines of at most `columns`, unless a word is longer. An empty text is one line.
pub(crate) fn lines(text: &str, columns: Option<usize>) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (mut end, start) = (text.len(), text.len() - text.trim_start().len());
        // By width and not by length: letters of some scripts take two columns.
        while columns.is_some_and(|columns| text[..end].width() > columns) {
            // A word that is longer, such as a path, stays whole, so that it can be copied.
            let Some(space) = text[..end].rfind(' ').filter(|space| *space > start) else {
                break;
            };
            end = space;
        }
        let (line, after) = text.split_at(end);
        let after = after.trim_start();
        rest = Some(after).filter(|after| !after.is_empty());
        Some(line)
    })
}
