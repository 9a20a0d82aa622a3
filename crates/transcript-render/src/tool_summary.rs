//! Summaries of tool calls for people: subject and outcome.

use transcript_format::object::{Object, Raw};
use transcript_format::tool_result::ToolUseResult;
use transcript_format::units::{self, grouped};
use transcript_resume::items::{ItemMarks, LoadedItem};

use crate::diff::Diff;
use crate::escape::Escaping;
use crate::words::noun;

/// The outcome of a call, in the most informative form.
#[derive(Debug, PartialEq)]
pub(crate) enum CallOutcome {
    /// A changed file.
    Diff(Diff),
    /// A to-do list that was written.
    Todos(Vec<Todo>),
    /// The text of the result.
    Text,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Todo {
    pub(crate) state: TodoState,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TodoState {
    Done,
    UnderWay,
    Open,
}

impl TodoState {
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Self::Done => "☑",
            Self::UnderWay => "▶",
            Self::Open => "☐",
        }
    }
}

impl CallOutcome {
    /// Derives the outcome of a call from its input and its result. A failed call has no outcome
    /// but its text.
    pub(crate) fn of_result(tool: &str, input: Option<Raw<'_>>, result: &LoadedItem<'_>) -> Self {
        if result.item().marks().contains(ItemMarks::FAILED) || !has_outcome(tool) {
            return Self::Text;
        }
        let output = match result.tool_use_result() {
            Some(ToolUseResult::Object(output)) => Some(output),
            _ => None,
        };
        let input = input.and_then(Raw::object);
        Self::of(tool, input.as_ref(), output.as_ref())
    }

    /// Derives the outcome from the `input` of a call and its `toolUseResult`, which is more precise if
    /// it exists.
    fn of(tool: &str, input: Option<&Object<'_>>, output: Option<&Object<'_>>) -> Self {
        let shown = match tool {
            "TodoWrite" => todos(output, "newTodos").or_else(|| todos(input, "todos")),
            _ => change(tool, input, output).map(Self::Diff),
        };
        shown.unwrap_or(Self::Text)
    }
}

/// Returns whether the calls of a tool have an outcome other than a text.
fn has_outcome(tool: &str) -> bool {
    matches!(tool, "TodoWrite" | "Edit" | "MultiEdit" | "Write")
}

fn todos(object: Option<&Object<'_>>, key: &str) -> Option<CallOutcome> {
    let todos = object?.array(key)?.into_iter().filter_map(|todo| {
        let todo = todo.object()?;
        let state = match &*todo.str("status")? {
            "completed" => TodoState::Done,
            "in_progress" => TodoState::UnderWay,
            _ => TodoState::Open,
        };
        Some(Todo {
            state,
            text: todo.str("content")?.into_owned(),
        })
    });
    Some(CallOutcome::Todos(todos.collect()))
}

/// Returns the change of a file: the patch that the client computed, else a diff of the texts of
/// the call.
fn change(tool: &str, input: Option<&Object<'_>>, output: Option<&Object<'_>>) -> Option<Diff> {
    if !has_outcome(tool) {
        return None;
    }
    let hunks = output.and_then(|output| output.array("structuredPatch"));
    let hunks: Vec<Object<'_>> = objects(hunks.unwrap_or_default());
    if !hunks.is_empty() {
        return Some(Diff::of_patch(&hunks));
    }
    let input = input?;
    if tool == "Write" {
        let old = output.and_then(|output| output.str("originalFile"));
        return Diff::of_texts(&old.unwrap_or_default(), &input.str("content")?);
    }
    let edits = match input.array("edits") {
        Some(edits) => objects(edits),
        None => vec![input.clone()],
    };
    let mut whole = Diff::default();
    for edit in edits {
        let (old, new) = (edit.str("old_string")?, edit.str("new_string")?);
        whole.append(Diff::of_texts(&old, &new)?);
    }
    Some(whole)
}

fn objects<'a>(values: Vec<Raw<'a>>) -> Vec<Object<'a>> {
    values.into_iter().filter_map(Raw::object).collect()
}

/// Returns the subject of a call: the field that describes it best, else the whole input. Paths are
/// relative to `cwd`, the working directory of the session.
pub(crate) fn call_summary(input: Option<Raw<'_>>, cwd: Option<&str>) -> String {
    const PATHS: [&str; 3] = ["file_path", "notebook_path", "path"];
    const SUBJECT_KEYS: [&str; 11] = [
        "command",
        "file_path",
        "notebook_path",
        "pattern",
        "url",
        "query",
        "description",
        "path",
        "skill",
        "subject",
        "taskId",
    ];
    let Some(raw) = input else {
        return String::new();
    };
    let telling = raw.object().and_then(|input| {
        SUBJECT_KEYS.iter().find_map(|name| {
            let text = input.str(name)?;
            let text = if PATHS.contains(name) {
                from(cwd, &text)
            } else {
                &text
            };
            Some(text.to_owned())
        })
    });
    match telling {
        Some(text) => text,
        None if raw.text() == "{}" => String::new(),
        None => raw.text().to_owned(),
    }
}

/// Like [`call_summary`], but line by line, so that a command of two lines is not shown as one. A
/// raw input is one line.
pub(crate) fn about_lines(
    tool: &str,
    input: Option<Raw<'_>>,
    cwd: Option<&str>,
    escaping: Escaping,
) -> Vec<String> {
    if tool == "TodoWrite" {
        return Vec::new();
    }
    let about = call_summary(input, cwd);
    if input.is_some_and(|raw| raw.text() == about) {
        return vec![escaping.one_line(&about)];
    }
    let about = escaping.escape(about.trim());
    let lines = about.lines().map(|line| line.trim_end().to_owned());
    lines.collect()
}

/// Returns a path relative to `cwd`.
pub(crate) fn from<'p>(cwd: Option<&str>, path: &'p str) -> &'p str {
    let inside = cwd.and_then(|cwd| path.strip_prefix(cwd)?.strip_prefix('/'));
    inside.filter(|inside| !inside.is_empty()).unwrap_or(path)
}

/// Describes the size of a text: `1 line · 12 B`.
pub(crate) fn size(text: &str) -> String {
    // Counts in one byte, so that many are compared at a time.
    let ends = |block: &[u8]| {
        block
            .iter()
            .map(|byte| u8::from(*byte == b'\n'))
            .sum::<u8>()
    };
    let blocks = text.trim_end().as_bytes().chunks(255);
    let lines = blocks.map(|block| usize::from(ends(block))).sum::<usize>() + 1;
    let (number, bytes) = (grouped(lines as u64), units::size(text.len() as u64));
    format!("{number} {} · {bytes}", noun(lines, "line"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(tool: &str, input: &str, output: &str) -> CallOutcome {
        let object = |text| Object::parse(text).ok();
        CallOutcome::of(tool, object(input).as_ref(), object(output).as_ref())
    }

    fn counts(tool: &str, input: &str, output: &str) -> (usize, usize) {
        match outcome(tool, input, output) {
            CallOutcome::Diff(diff) => (diff.added, diff.removed),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_patch_of_the_result_wins_over_the_texts_of_the_call() {
        let input = r#"{"file_path":"a","old_string":"1\n2","new_string":"1\n3"}"#;
        let patch = r#"{"structuredPatch":[{"newStart":1,"lines":["+a","+b"]}]}"#;
        assert_eq!(counts("Edit", input, patch), (2, 0));
        assert_eq!(counts("Edit", input, "{}"), (1, 1));
        let edits = r#"{"edits":[{"old_string":"1","new_string":"2"},{"old_string":"a\nb","new_string":""}]}"#;
        assert_eq!(counts("MultiEdit", edits, ""), (1, 3));
        assert_eq!(
            counts(
                "Write",
                r#"{"content":"a\nb\n"}"#,
                r#"{"structuredPatch":[]}"#
            ),
            (2, 0)
        );
        assert_eq!(outcome("Read", input, patch), CallOutcome::Text);
        assert_eq!(outcome("Edit", "{}", "{}"), CallOutcome::Text);
    }

    #[test]
    fn todos_have_states() {
        let input = r#"{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress"},{"content":"c","status":"later"},7]}"#;
        let CallOutcome::Todos(todos) = outcome("TodoWrite", input, "") else {
            panic!("no todos");
        };
        let marks: Vec<&str> = todos.iter().map(|todo| todo.state.mark()).collect();
        assert_eq!(marks, ["☑", "▶", "☐"]);
    }

    #[test]
    fn a_call_is_described_by_its_most_specific_field() {
        let shown = |input: &str| {
            call_summary(
                Object::parse(input).ok().map(|o| o.raw()),
                Some("/home/ada"),
            )
        };
        assert_eq!(shown(r#"{"file_path":"/home/ada/x.rs"}"#), "x.rs");
        assert_eq!(shown(r#"{"file_path":"/home/adam"}"#), "/home/adam");
        assert_eq!(shown(r#"{"command":"ls","description":"List"}"#), "ls");
        assert_eq!(shown(r#"{"n":1}"#), r#"{"n":1}"#);
        assert_eq!(shown("{}"), "");
    }

    #[test]
    fn a_text_has_lines_and_bytes() {
        assert_eq!(size("a\nb\n"), "2 lines · 4 B");
    }
}
