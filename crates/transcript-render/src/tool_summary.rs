//! Summaries of tool calls for people: subject and outcome.

use std::borrow::Cow;

use transcript_format::object::{Object, Raw};
use transcript_format::tool_result::ToolUseResult;
use transcript_format::units::{self, grouped};
use transcript_resume::items::{ItemMarks, LoadedItem};

use crate::blocks::plain_text;
use crate::diff::{Diff, patched_files};
use crate::escape::Escaping;
use crate::tools::{self, PATH_KEYS, ToolUse, from, use_of};
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
        let input = input.and_then(Raw::object);
        let does = use_of(tool, input.as_ref());
        let has_failed = result.item().marks().contains(ItemMarks::FAILED);
        if has_failed || !has_outcome(does) || does == ToolUse::Patch && !is_applied(result) {
            return Self::Text;
        }
        let output = match result.tool_use_result() {
            Some(ToolUseResult::Object(output)) => Some(output),
            _ => None,
        };
        Self::of(does, input.as_ref(), output.as_ref())
    }

    /// Derives the outcome from the `input` of a call and its `toolUseResult`, which is more precise if
    /// it exists.
    fn of(does: ToolUse, input: Option<&Object<'_>>, output: Option<&Object<'_>>) -> Self {
        let shown = match does {
            ToolUse::Todos => todos(output, "newTodos").or_else(|| {
                let mut lists = ["todos", "plan", "items"].into_iter();
                lists.find_map(|key| todos(input, key))
            }),
            does if has_outcome(does) => change(does, input, output).map(Self::Diff),
            _ => None,
        };
        shown.unwrap_or(Self::Text)
    }
}

/// Returns whether calls of this use have an outcome other than a text.
fn has_outcome(does: ToolUse) -> bool {
    matches!(
        does,
        ToolUse::Todos | ToolUse::Edit | ToolUse::Write | ToolUse::Patch
    )
}

/// Returns whether the result of a patch says that it was applied. Agents do not mark results of patches that were not.
fn is_applied(result: &LoadedItem<'_>) -> bool {
    let content = result.object().and_then(|block| block.field("content"));
    let text = content.map(plain_text).unwrap_or_default();
    text.trim().is_empty() || text.to_ascii_lowercase().contains("success")
}

/// Returns a to-do list: objects, or lines of Markdown.
fn todos(object: Option<&Object<'_>>, key: &str) -> Option<CallOutcome> {
    let value = object?.get(key)?;
    if let Some(text) = value.str() {
        let todos: Vec<Todo> = text.lines().filter_map(todo_of_line).collect();
        return (!todos.is_empty()).then_some(CallOutcome::Todos(todos));
    }
    let todos = value.array()?.into_iter().filter_map(|todo| {
        let todo = todo.object()?;
        let state = match &*todo.str("status")? {
            "completed" | "done" => TodoState::Done,
            "in_progress" => TodoState::UnderWay,
            _ => TodoState::Open,
        };
        let mut texts = ["content", "step", "description", "title", "text"].into_iter();
        let text = texts.find_map(|key| todo.str(key))?;
        Some(Todo {
            state,
            text: text.into_owned(),
        })
    });
    Some(CallOutcome::Todos(todos.collect()))
}

fn todo_of_line(line: &str) -> Option<Todo> {
    let item = line.trim_start().strip_prefix(['-', '*'])?.trim_start();
    let (mark, text) = item.strip_prefix('[')?.split_once(']')?;
    let state = match mark {
        "x" | "X" => TodoState::Done,
        "-" | "~" | ">" => TodoState::UnderWay,
        _ => TodoState::Open,
    };
    Some(Todo {
        state,
        text: text.trim().to_owned(),
    })
}

/// Returns the change of a file: the patch that the client computed, else a diff of the texts of
/// the call.
fn change(does: ToolUse, input: Option<&Object<'_>>, output: Option<&Object<'_>>) -> Option<Diff> {
    let hunks = output.and_then(|output| output.array("structuredPatch"));
    let hunks: Vec<Object<'_>> = objects(hunks.unwrap_or_default());
    if !hunks.is_empty() {
        return Some(Diff::of_patch(&hunks));
    }
    let input = input?;
    match does {
        ToolUse::Write => {
            let old = output.and_then(|output| output.str("originalFile"));
            Diff::of_texts(&old.unwrap_or_default(), &tools::content(input)?)
        }
        ToolUse::Patch => Diff::of_patch_text(&tools::patch(input)?),
        ToolUse::Edit => {
            let edits = match input.array("edits") {
                Some(edits) => objects(edits),
                None => vec![input.clone()],
            };
            let mut whole = Diff::default();
            for edit in edits {
                let (old, new) = tools::edit(&edit)?;
                whole.append(Diff::of_texts(&old, &new)?);
            }
            Some(whole)
        }
        _ => None,
    }
}

fn objects<'a>(values: Vec<Raw<'a>>) -> Vec<Object<'a>> {
    values.into_iter().filter_map(Raw::object).collect()
}

/// The fields that describe a call, the best one first. Of a search it is what is looked for, not where.
const SUBJECT_KEYS: [&str; 20] = [
    "file_path",
    "filePath",
    "absolute_path",
    "notebook_path",
    "pattern",
    "url",
    "query",
    "description",
    "path",
    "dir_path",
    "directory",
    "file",
    "skill",
    "subject",
    "taskId",
    "intent",
    "prompt",
    "message",
    "name",
    "chars",
];

/// Returns the subject of a call: the files that it is about, or its command, or the field that describes it best, else the whole input.
/// Paths are relative to `cwd`, the working directory of the session.
pub(crate) fn call_summary(tool: &str, input: Option<Raw<'_>>, cwd: Option<&str>) -> String {
    let Some(raw) = input else {
        return String::new();
    };
    let object = raw.object();
    let known = object.and_then(|input| subject(use_of(tool, Some(&input)), &input, cwd));
    match known {
        Some(text) => text,
        None if raw.text() == "{}" => String::new(),
        None => raw.text().to_owned(),
    }
}

fn subject(does: ToolUse, input: &Object<'_>, cwd: Option<&str>) -> Option<String> {
    let first_of = |keys: &[&str]| {
        let found = keys.iter().find_map(|key| Some((key, input.str(key)?)));
        let (key, text) = found?;
        let is_path = PATH_KEYS.contains(key);
        Some(from(cwd.filter(|_| is_path), &text).to_owned())
    };
    let of_use = match does {
        ToolUse::Patch => files_of_patch(input, cwd),
        // Some editors have a field `command`, which only names the kind of the edit.
        ToolUse::Read | ToolUse::Write | ToolUse::Edit => first_of(&PATH_KEYS),
        _ => None,
    };
    of_use
        .or_else(|| tools::command(input).map(Cow::into_owned))
        .or_else(|| first_of(&SUBJECT_KEYS))
}

fn files_of_patch(input: &Object<'_>, cwd: Option<&str>) -> Option<String> {
    let patch = tools::patch(input)?;
    let files = patched_files(&patch).into_iter();
    let files: Vec<&str> = files.map(|file| from(cwd, file)).collect();
    (!files.is_empty()).then(|| files.join(", "))
}

/// Like [`call_summary`], but line by line, so that a command of two lines is not shown as one. A
/// raw input is one line.
pub(crate) fn about_lines(
    tool: &str,
    input: Option<Raw<'_>>,
    cwd: Option<&str>,
    escaping: Escaping,
) -> Vec<String> {
    if use_of(tool, None) == ToolUse::Todos {
        return Vec::new();
    }
    let about = call_summary(tool, input, cwd);
    if input.is_some_and(|raw| raw.text() == about) {
        return vec![escaping.one_line(&about)];
    }
    let about = escaping.escape(about.trim());
    let lines = about.lines().map(|line| line.trim_end().to_owned());
    lines.collect()
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
        let input = object(input);
        CallOutcome::of(
            use_of(tool, input.as_ref()),
            input.as_ref(),
            object(output).as_ref(),
        )
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
                "Tool",
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
    fn edits_of_all_agents_are_diffs() {
        for (tool, input, expected) in [
            (
                "replace",
                r#"{"file_path":"a","old_string":"1","new_string":"2\n3"}"#,
                (2, 1),
            ),
            (
                "edit",
                r#"{"filePath":"a","oldString":"1","newString":"2"}"#,
                (1, 1),
            ),
            ("edit", r#"{"path":"a","old_str":"1","new_str":""}"#, (0, 1)),
            (
                "edit",
                r#"{"path":"a","edits":[{"oldText":"1","newText":"2"},{"oldText":"","newText":"3"}]}"#,
                (2, 1),
            ),
            (
                "str_replace_editor",
                r#"{"command":"str_replace","path":"a","old_str":"1","new_str":"2"}"#,
                (1, 1),
            ),
            (
                "str_replace_editor",
                r#"{"command":"create","path":"a","file_text":"1\n2"}"#,
                (2, 0),
            ),
            ("write", r#"{"filePath":"a","content":"1\n2\n"}"#, (2, 0)),
            ("create", r#"{"path":"a","file_text":"1"}"#, (1, 0)),
            (
                "apply_patch",
                r#"{"input":"*** Begin Patch\n*** Add File: a\n+1\n+2\n*** End Patch"}"#,
                (2, 0),
            ),
            (
                "apply_patch",
                r#"{"patchText":"*** Begin Patch\n*** Update File: a\n-1\n*** End Patch"}"#,
                (0, 1),
            ),
            (
                "shell",
                r#"{"command":["apply_patch","*** Begin Patch\n*** Add File: a\n+1\n*** End Patch"]}"#,
                (1, 0),
            ),
        ] {
            assert_eq!(counts(tool, input, ""), expected, "{tool} {input}");
        }
        for (tool, input) in [
            ("edit", r#"{"path":"a","old_str":"1"}"#),
            ("str_replace_editor", r#"{"command":"view","path":"a"}"#),
            ("apply_patch", r#"{"input":"diff"}"#),
            ("bash", r#"{"command":"ls"}"#),
        ] {
            assert_eq!(
                outcome(tool, input, ""),
                CallOutcome::Text,
                "{tool} {input}"
            );
        }
    }

    #[test]
    fn plans_of_all_agents_are_lists() {
        for (tool, input) in [
            (
                "update_plan",
                r#"{"explanation":"e","plan":[{"step":"a","status":"completed"},{"step":"b","status":"in_progress"},{"step":"c","status":"pending"}]}"#,
            ),
            (
                "write_todos",
                r#"{"todos":[{"description":"a","status":"completed"},{"description":"b","status":"in_progress"},{"description":"c","status":"pending"}]}"#,
            ),
            (
                "todowrite",
                r#"{"todos":[{"id":"1","content":"a","status":"completed"},{"content":"b","status":"in_progress"},{"content":"c","status":"pending"}]}"#,
            ),
            (
                "update_todo",
                r#"{"todos":"- [x] a\n- [-] b\nnot an item\n* [ ] c"}"#,
            ),
        ] {
            let CallOutcome::Todos(todos) = outcome(tool, input, "") else {
                panic!("{tool}");
            };
            let shown = todos
                .iter()
                .map(|todo| format!("{} {}", todo.state.mark(), todo.text));
            assert_eq!(shown.collect::<Vec<_>>(), ["☑ a", "▶ b", "☐ c"], "{tool}");
        }
    }

    #[test]
    fn calls_of_all_agents_are_described_by_their_subject() {
        for (tool, input, expected) in [
            (
                "exec_command",
                r#"{"cmd":"ls","workdir":"/w","description":"d"}"#,
                "ls",
            ),
            (
                "shell",
                r#"{"command":["bash","-lc","a\nb"],"timeout":1}"#,
                "a\nb",
            ),
            (
                "local_shell",
                r#"{"type":"exec","command":["ls","-l"]}"#,
                "ls -l",
            ),
            (
                "str_replace_editor",
                r#"{"command":"view","path":"/w/a.rs"}"#,
                "a.rs",
            ),
            ("read_file", r#"{"absolute_path":"/w/a.rs"}"#, "a.rs"),
            ("read", r#"{"filePath":"/w/a.rs","offset":3}"#, "a.rs"),
            (
                "apply_patch",
                r#"{"input":"*** Begin Patch\n*** Update File: /w/a\n-1\n*** Delete File: b\n*** End Patch"}"#,
                "a, b",
            ),
            ("google_web_search", r#"{"query":"tides"}"#, "tides"),
            ("web_fetch", r#"{"prompt":"read it"}"#, "read it"),
            ("grep", r#"{"pattern":"x","path":"/w/src"}"#, "x"),
            (
                "task",
                r#"{"description":"look","prompt":"long","subagent_type":"g"}"#,
                "look",
            ),
            ("spawn_agent", r#"{"message":"go"}"#, "go"),
        ] {
            let raw = Object::parse(input).unwrap().raw();
            assert_eq!(
                call_summary(tool, Some(raw), Some("/w")),
                expected,
                "{tool}"
            );
        }
    }

    #[test]
    fn a_text_has_lines_and_bytes() {
        assert_eq!(size("a\nb\n"), "2 lines · 4 B");
    }
}
