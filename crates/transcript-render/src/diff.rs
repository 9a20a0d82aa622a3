//! File changes as diffs.

use std::io;

use similar::{Algorithm, ChangeTag, TextDiff};
use transcript_format::object::Object;

use crate::styles::Styles;
use crate::text::{Page, Span};
use crate::words::more_lines;

/// The changes of a file, or of several.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Diff {
    hunks: Vec<Hunk>,
    pub(crate) added: usize,
    pub(crate) removed: usize,
}

#[derive(Debug, Default, PartialEq)]
struct Hunk {
    /// The file, where the changes are those of several.
    file: Option<String>,
    /// The number of the first line, if the place of the change is known.
    start: Option<u64>,
    lines: Vec<(char, String)>,
}

/// The number of lines that are shown around a change.
const CONTEXT_LINES: usize = 2;
/// Longer texts are not compared, because the time can grow with the product of both lengths.
const MAX_LINES: usize = 4_000;
/// No file has a line with this number.
const MAX_LINE_NUMBER: u64 = 1_000_000_000;

/// The last line of a patch in the form of Codex.
const PATCH_END: &str = "*** End Patch";

/// What a patch does with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileChange {
    Add,
    Update,
    Delete,
    Move,
}

impl FileChange {
    fn word(self) -> &'static str {
        match self {
            Self::Add => " (new)",
            Self::Delete => " (deleted)",
            Self::Move => " (new name)",
            Self::Update => "",
        }
    }
}

/// Returns the file that a line of a patch names, and what becomes of it.
fn file_of_line(line: &str) -> Option<(&str, FileChange)> {
    let (does, file) = line.strip_prefix("*** ")?.split_once(": ")?;
    let does = match does {
        "Add File" => FileChange::Add,
        "Update File" => FileChange::Update,
        "Delete File" => FileChange::Delete,
        "Move to" => FileChange::Move,
        _ => return None,
    };
    Some((file.trim(), does))
}

/// Returns the files that a patch in the form of Codex changes, in their order.
pub(crate) fn patched_files(patch: &str) -> Vec<&str> {
    let files = patch.lines().filter_map(file_of_line);
    files.map(|(file, _)| file).collect()
}

impl Diff {
    /// The `structuredPatch` of a tool result: hunks of lines that start with `+`, `-` or a space.
    pub(crate) fn of_patch(hunks: &[Object<'_>]) -> Self {
        let mut diff = Self::default();
        for hunk in hunks {
            let mut lines = Vec::new();
            for line in hunk.array("lines").unwrap_or_default() {
                let line = line.str().unwrap_or_default();
                let (mark, text) = match line.chars().next() {
                    Some(mark @ ('+' | '-')) => (mark, &line[1..]),
                    Some(' ') => (' ', &line[1..]),
                    // "\ No newline at end of file"
                    _ => (' ', &*line),
                };
                lines.push((mark, text.to_owned()));
            }
            diff.push(Hunk {
                file: None,
                start: hunk.u64("newStart").filter(|line| *line < MAX_LINE_NUMBER),
                lines,
            });
        }
        diff
    }

    /// Compares two texts; `None` if they are too long.
    pub(crate) fn of_texts(old: &str, new: &str) -> Option<Self> {
        if old.lines().count() + new.lines().count() > MAX_LINES {
            return None;
        }
        let compared = TextDiff::configure()
            .algorithm(Algorithm::Patience)
            .diff_lines(old, new);
        let mut diff = Self::default();
        for group in compared.grouped_ops(CONTEXT_LINES) {
            let changes = group.iter().flat_map(|op| compared.iter_changes(op));
            let lines = changes.map(|change| {
                let mark = match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                };
                (
                    mark,
                    change.value().trim_end_matches(['\n', '\r']).to_owned(),
                )
            });
            diff.push(Hunk {
                file: None,
                start: None,
                lines: lines.collect(),
            });
        }
        Some(diff)
    }

    /// Reads a patch in the form of Codex: for each file a line with its path, then lines that start with `+`, `-` or a space, in hunks
    /// that `@@` divides. `None` if there is not a change in it.
    pub(crate) fn of_patch_text(patch: &str) -> Option<Self> {
        let files = patched_files(patch);
        let has_several = files.len() > 1;
        let mut diff = Self::default();
        let mut hunk = Hunk::default();
        let mut is_inside = false;
        for line in patch.lines() {
            let named = file_of_line(line);
            let is_end = line.starts_with(PATCH_END);
            if named.is_some() || is_end || line.starts_with("@@") && !hunk.lines.is_empty() {
                diff.push_filled(std::mem::take(&mut hunk));
            }
            is_inside = !is_end && (is_inside || named.is_some());
            if let Some((file, does)) = named {
                let name = || format!("{file}{}", does.word());
                hunk.file = has_several.then(name);
                if does == FileChange::Delete && !has_several {
                    hunk.lines.push((' ', "(deleted)".to_owned()));
                }
            } else if let Some(mark @ ('+' | '-' | ' ')) = line.chars().next().filter(|_| is_inside)
            {
                hunk.lines.push((mark, line[1..].to_owned()));
            }
        }
        diff.push_filled(hunk);
        (!diff.hunks.is_empty()).then_some(diff)
    }

    /// Adds a hunk, unless there is nothing in it.
    fn push_filled(&mut self, hunk: Hunk) {
        if !hunk.lines.is_empty() || hunk.file.is_some() {
            self.push(hunk);
        }
    }

    fn push(&mut self, hunk: Hunk) {
        let count = |mark| hunk.lines.iter().filter(|line| line.0 == mark).count();
        self.added += count('+');
        self.removed += count('-');
        self.hunks.push(hunk);
    }

    /// Appends the changes of `other`.
    pub(crate) fn append(&mut self, other: Self) {
        self.hunks.extend(other.hunks);
        self.added += other.added;
        self.removed += other.removed;
    }

    /// Writes at most `most` lines, and the number of the remaining ones.
    pub(crate) fn write(
        &self,
        page: &mut Page<'_>,
        styles: Styles,
        most: Option<usize>,
    ) -> io::Result<()> {
        let most = most.unwrap_or(usize::MAX);
        let total: usize = self.hunks.iter().map(|hunk| hunk.lines.len()).sum();
        let digits = self.digits();
        let mut shown = 0;
        for (number, hunk) in self.hunks.iter().enumerate() {
            if number > 0 && shown < most {
                page.line(&[Span::new(styles.dim, "⋯")])?;
            }
            if let Some(file) = hunk.file.as_ref().filter(|_| shown < most) {
                page.line(&[Span::new(styles.dim, file)])?;
            }
            let mut at = hunk.start;
            for (mark, text) in &hunk.lines {
                if shown == most {
                    let more = total - shown;
                    return page.line(&[Span::new(styles.dim, &more_lines(more))]);
                }
                shown += 1;
                let style = match mark {
                    '+' => styles.added,
                    '-' => styles.removed,
                    _ => styles.dim,
                };
                let place = match at {
                    Some(line) if *mark != '-' => format!("{line:>digits$} "),
                    _ if digits > 0 => " ".repeat(digits + 1),
                    _ => String::new(),
                };
                if *mark != '-' {
                    at = at.map(|line| line.saturating_add(1));
                }
                // Continuation lines are indented past the mark.
                let first = vec![
                    Span::new(styles.dim, &place),
                    Span::new(style, &format!("{mark} ")),
                ];
                let rest = vec![Span::plain(&" ".repeat(place.len() + 2))];
                page.push(first, rest);
                page.line(&[Span::new(style, text)])?;
                page.pop();
            }
        }
        Ok(())
    }

    /// Returns all lines with their marks.
    pub(crate) fn to_text(&self) -> String {
        let line = |(mark, text): &(char, String)| format!("{mark}{text}\n");
        let mut text = String::new();
        for (number, hunk) in self.hunks.iter().enumerate() {
            match &hunk.file {
                Some(file) => text += &format!("@@ {file}\n"),
                None if number > 0 => text += "@@\n",
                None => {}
            }
            text.extend(hunk.lines.iter().map(line));
        }
        text
    }

    /// Returns the width of the largest line number; 0 if there is none.
    fn digits(&self) -> usize {
        let last = |hunk: &Hunk| Some(hunk.start?.saturating_add(hunk.lines.len() as u64));
        let last = self.hunks.iter().filter_map(last).max();
        last.map_or(0, |last| last.to_string().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(diff: &Diff, most: Option<usize>) -> String {
        let mut out = Vec::new();
        let mut page = Page::new(&mut out, 30);
        diff.write(&mut page, Styles::default(), most).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_patch_is_shown_with_the_numbers_of_the_new_lines() {
        let hunk = r#"{"oldStart":9,"oldLines":2,"newStart":9,"newLines":3,"lines":[" a","-b","+c","+d"]}"#;
        let diff = Diff::of_patch(&[Object::parse(hunk).unwrap()]);
        assert_eq!((diff.added, diff.removed), (2, 1));
        assert_eq!(shown(&diff, None), " 9   a\n   - b\n10 + c\n11 + d\n");
        assert_eq!(shown(&diff, Some(1)), " 9   a\n⋯ 3 more lines\n");
    }

    #[test]
    fn two_texts_are_compared_line_by_line() {
        let old: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let new = old.replace("5\n6\n", "five\n6\n").replace("\n19\n", "\n");
        let diff = Diff::of_texts(&old, &new).unwrap();
        assert_eq!((diff.added, diff.removed), (1, 2));
        insta::assert_snapshot!(shown(&diff, None));
        assert_eq!(Diff::of_texts(&"x\n".repeat(MAX_LINES + 1), ""), None);
    }

    #[test]
    fn a_patch_of_codex_has_the_changes_of_each_file() {
        let patch = "*** Begin Patch\n*** Update File: a.txt\n@@ fn a\n alpha\n-beta\n+gamma\n@@\n-x\n*** Add File: b.txt\n+one\n+\n*** Delete File: c.txt\n*** End Patch\n+after";
        let diff = Diff::of_patch_text(patch).unwrap();
        assert_eq!((diff.added, diff.removed), (3, 2));
        assert_eq!(
            diff.to_text(),
            "@@ a.txt\n alpha\n-beta\n+gamma\n@@\n-x\n@@ b.txt (new)\n+one\n+\n@@ c.txt (deleted)\n"
        );
        let text = shown(&diff, None);
        for line in [
            "a.txt\n",
            "- beta\n",
            "⋯\n",
            "b.txt (new)\n",
            "c.txt (deleted)\n",
        ] {
            assert!(text.contains(line), "{line:?} in {text}");
        }
        assert_eq!(patched_files(patch), ["a.txt", "b.txt", "c.txt"]);
        // The call names the only file.
        let one =
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n-1\n+2\n*** End Patch\nEOF";
        let diff = Diff::of_patch_text(one).unwrap();
        assert_eq!(diff.to_text(), "-1\n+2\n");
        let moved = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-1\n*** End Patch";
        assert!(
            Diff::of_patch_text(moved)
                .unwrap()
                .to_text()
                .contains("@@ b (new name)\n-1\n")
        );
    }

    #[test]
    fn shapes_that_are_not_a_patch_are_not_a_diff() {
        let odd = Object::parse(r#"{"newStart":18446744073709551615,"lines":[1,"","é","+é"]}"#);
        let diff = Diff::of_patch(&[odd.unwrap()]);
        assert_eq!((diff.added, diff.removed), (1, 0));
        assert!(shown(&diff, None).contains("+ é"));
        for text in [
            "",
            "+a\n-b",
            "*** Begin Patch\n*** End Patch",
            "*** Update: x\n+a",
        ] {
            assert_eq!(Diff::of_patch_text(text), None, "{text:?}");
        }
    }
}
