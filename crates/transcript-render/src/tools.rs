//! The tools of all agents: what a call does, whatever its agent calls it and its fields.
//!
//! One table for the terminal, documents and pages, so that a shell call looks like a shell call and an edit like a diff in each.

use std::borrow::Cow;

use transcript_format::object::{JsonKind, Object, Raw};

/// What the call of a tool does, as far as it is shown in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolUse {
    /// Runs a command.
    Shell,
    /// Reads a file.
    Read,
    /// Writes a whole file.
    Write,
    /// Replaces parts of a file.
    Edit,
    /// Changes files by a patch.
    Patch,
    /// Writes a to-do list, or a plan.
    Todos,
    /// Something else.
    Other,
}

/// The names of tools, in lower case and without the marks between words.
const TOOLS: [(&str, ToolUse); 39] = [
    ("bash", ToolUse::Shell),
    ("powershell", ToolUse::Shell),
    ("shell", ToolUse::Shell),
    ("shellcommand", ToolUse::Shell),
    ("localshell", ToolUse::Shell),
    ("localshellcall", ToolUse::Shell),
    ("containerexec", ToolUse::Shell),
    ("exec", ToolUse::Shell),
    ("execcommand", ToolUse::Shell),
    ("execute", ToolUse::Shell),
    ("runshellcommand", ToolUse::Shell),
    ("runcommand", ToolUse::Shell),
    ("runterminalcmd", ToolUse::Shell),
    ("read", ToolUse::Read),
    ("readfile", ToolUse::Read),
    ("view", ToolUse::Read),
    ("viewfile", ToolUse::Read),
    ("write", ToolUse::Write),
    ("writefile", ToolUse::Write),
    ("create", ToolUse::Write),
    ("createfile", ToolUse::Write),
    ("edit", ToolUse::Edit),
    ("editfile", ToolUse::Edit),
    ("multiedit", ToolUse::Edit),
    ("replace", ToolUse::Edit),
    ("searchreplace", ToolUse::Edit),
    ("strreplace", ToolUse::Edit),
    ("strreplaceeditor", ToolUse::Edit),
    ("strreplacebasededittool", ToolUse::Edit),
    ("applypatch", ToolUse::Patch),
    ("patch", ToolUse::Patch),
    ("todo", ToolUse::Todos),
    ("todos", ToolUse::Todos),
    ("todowrite", ToolUse::Todos),
    ("writetodos", ToolUse::Todos),
    ("settodolist", ToolUse::Todos),
    ("updatetodo", ToolUse::Todos),
    ("updatetodos", ToolUse::Todos),
    ("updateplan", ToolUse::Todos),
];

/// The fields with the command of a shell call.
const COMMAND_KEYS: [&str; 3] = ["command", "cmd", "script"];
/// The fields with the path of a file or folder.
pub(crate) const PATH_KEYS: [&str; 8] = [
    "file_path",
    "filePath",
    "absolute_path",
    "notebook_path",
    "path",
    "dir_path",
    "directory",
    "file",
];
/// The fields with the text of a patch; a call whose input is only a text has it in the last one.
const PATCH_KEYS: [&str; 3] = ["patch", "patchText", "input"];
/// The fields with the texts before and after an edit.
const EDIT_KEYS: [(&str, &str); 5] = [
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("old_str", "new_str"),
    ("oldText", "newText"),
    ("old_text", "new_text"),
];
/// The fields with the whole text of a file.
const CONTENT_KEYS: [&str; 3] = ["content", "file_text", "contents"];
/// The first line of a patch in the form of Codex.
pub(crate) const PATCH_START: &str = "*** Begin Patch";

/// Returns what a call does.
pub(crate) fn use_of(tool: &str, input: Option<&Object<'_>>) -> ToolUse {
    let known = TOOLS.iter().find(|(name, _)| is_named(tool, name));
    let known = known.map_or(ToolUse::Other, |(_, does)| *does);
    match (known, input) {
        // Some versions of Codex have no other way to change a file.
        (ToolUse::Shell, Some(input)) if is_patch_command(input) => ToolUse::Patch,
        // One tool for several uses.
        (ToolUse::Edit, Some(input)) => match input.str("command").as_deref() {
            Some("view") => ToolUse::Read,
            Some("create") => ToolUse::Write,
            _ => known,
        },
        _ => known,
    }
}

/// Returns whether a tool has a name of the table, in any case and with any marks between its words.
fn is_named(tool: &str, name: &str) -> bool {
    let letters = tool.bytes().filter(|byte| !b"_-. ".contains(byte));
    letters
        .map(|byte| byte.to_ascii_lowercase())
        .eq(name.bytes())
}

/// Returns the command of a shell call. Of a list that starts a shell it is the script.
pub(crate) fn command<'a>(input: &Object<'a>) -> Option<Cow<'a, str>> {
    COMMAND_KEYS.iter().find_map(|key| {
        let value = input.get(key)?;
        match value.kind() {
            JsonKind::String => value.str(),
            JsonKind::Array => words_of(value).map(Cow::Owned),
            _ => None,
        }
    })
}

fn words_of(list: Raw<'_>) -> Option<String> {
    let words = list.array()?.into_iter().map(Raw::str);
    let words: Vec<Cow<'_, str>> = words.collect::<Option<_>>()?;
    match &words[..] {
        [shell, option, script] if is_shell(shell) && is_script_option(option) => {
            Some(script.to_string())
        }
        words => Some(words.join(" ")),
    }
}

fn is_shell(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    ["sh", "bash", "zsh", "dash", "fish", "pwsh", "powershell"].contains(&name)
}

fn is_script_option(option: &str) -> bool {
    ["-c", "-lc", "-ic", "-lic", "-Command"].contains(&option)
}

fn is_patch_command(input: &Object<'_>) -> bool {
    command(input).is_some_and(|command| {
        command.trim_start().starts_with("apply_patch") && command.contains(PATCH_START)
    })
}

/// Returns the text of a patch.
pub(crate) fn patch<'a>(input: &Object<'a>) -> Option<Cow<'a, str>> {
    let own = PATCH_KEYS.iter().find_map(|key| input.str(key));
    own.or_else(|| command(input))
}

/// Returns the whole text of a file that a call writes.
pub(crate) fn content<'a>(input: &Object<'a>) -> Option<Cow<'a, str>> {
    CONTENT_KEYS.iter().find_map(|key| input.str(key))
}

/// Returns the text before an edit and the one after it.
pub(crate) fn edit<'a>(edit: &Object<'a>) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
    EDIT_KEYS
        .iter()
        .find_map(|(old, new)| Some((edit.str(old)?, edit.str(new)?)))
}

/// Returns a path relative to `cwd`.
pub(crate) fn from<'p>(cwd: Option<&str>, path: &'p str) -> &'p str {
    let inside = cwd.and_then(|cwd| path.strip_prefix(cwd)?.strip_prefix('/'));
    inside.filter(|inside| !inside.is_empty()).unwrap_or(path)
}

/// Returns the line of the output of a command that says most: the last one that the command itself printed. Agents put lines of
/// their own around the output.
pub(crate) fn last_line(output: &str) -> Option<&str> {
    const AGENT_LINES: [&str; 8] = [
        "<shellId:",
        "<exited with",
        "</untrusted_context>",
        "Process Group PGID:",
        "Background PIDs:",
        "Signal: (none)",
        "Exit Code: 0",
        "Error: (none)",
    ];
    let lines = output.lines().rev().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty()).peekable();
    let last = lines.peek().copied();
    let own = lines.find(|line| !AGENT_LINES.iter().any(|start| line.starts_with(start)));
    let own = own.map(|line| line.strip_prefix("Output: ").unwrap_or(line));
    own.or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn does(tool: &str, input: &str) -> ToolUse {
        use_of(tool, Object::parse(input).ok().as_ref())
    }

    #[test]
    fn tools_of_all_agents_are_known_by_what_they_do() {
        for tool in [
            "Bash",
            "bash",
            "shell",
            "exec_command",
            "run_shell_command",
            "local_shell",
            "execute",
        ] {
            assert_eq!(does(tool, "{}"), ToolUse::Shell, "{tool}");
        }
        for (tool, expected) in [
            ("Read", ToolUse::Read),
            ("read_file", ToolUse::Read),
            ("write_file", ToolUse::Write),
            ("replace", ToolUse::Edit),
            ("MultiEdit", ToolUse::Edit),
            ("multi-edit", ToolUse::Edit),
            ("str_replace_based_edit_tool", ToolUse::Edit),
            ("apply_patch", ToolUse::Patch),
            ("TodoWrite", ToolUse::Todos),
            ("todo_write", ToolUse::Todos),
            ("update_plan", ToolUse::Todos),
            ("mcp__files__edit", ToolUse::Other),
            ("bashful", ToolUse::Other),
            ("", ToolUse::Other),
        ] {
            assert_eq!(does(tool, "{}"), expected, "{tool}");
        }
    }

    #[test]
    fn one_tool_with_several_uses_is_known_by_its_command() {
        let editor = "str_replace_editor";
        assert_eq!(does(editor, r#"{"command":"view"}"#), ToolUse::Read);
        assert_eq!(does(editor, r#"{"command":"create"}"#), ToolUse::Write);
        assert_eq!(does(editor, r#"{"command":"str_replace"}"#), ToolUse::Edit);
        let patch = r#"{"command":["apply_patch","*** Begin Patch\n*** End Patch"]}"#;
        assert_eq!(does("shell", patch), ToolUse::Patch);
        let script = r#"{"cmd":"apply_patch <<'EOF'\n*** Begin Patch\n*** End Patch\nEOF"}"#;
        assert_eq!(does("exec_command", script), ToolUse::Patch);
        let named = r#"{"cmd":"grep apply_patch '*** Begin Patch'"}"#;
        assert_eq!(does("exec_command", named), ToolUse::Shell);
    }

    #[test]
    fn a_command_is_a_text_or_a_list_of_words() {
        let shown = |input: &str| {
            let input = Object::parse(input).unwrap();
            command(&input).map(Cow::into_owned)
        };
        for (input, expected) in [
            (r#"{"command":"ls -l"}"#, Some("ls -l")),
            (r#"{"cmd":"ls","workdir":"/"}"#, Some("ls")),
            (r#"{"command":["bash","-lc","a && b"]}"#, Some("a && b")),
            (r#"{"command":["/bin/sh","-c","a\nb"]}"#, Some("a\nb")),
            (r#"{"command":["git","-c","x"]}"#, Some("git -c x")),
            (r#"{"command":["ls",7]}"#, None),
            (r#"{"command":{}}"#, None),
            ("{}", None),
        ] {
            assert_eq!(shown(input).as_deref(), expected, "{input}");
        }
    }

    #[test]
    fn lines_that_agents_put_around_an_output_say_nothing() {
        for (output, expected) in [
            ("one\ntwo\n", Some("two")),
            ("ok\n<shellId: 3 completed with exit code 0>", Some("ok")),
            (
                "Command: c\nOutput: built\nError: (none)\nExit Code: 0\nSignal: (none)\nProcess Group PGID: 7",
                Some("built"),
            ),
            (
                "<untrusted_context>\nOutput: o\nProcess Group PGID: 3\n</untrusted_context>",
                Some("o"),
            ),
            ("<html>\n</html>", Some("</html>")),
            ("Exit Code: 1\nSignal: (none)", Some("Exit Code: 1")),
            ("Signal: (none)", Some("Signal: (none)")),
            ("", None),
        ] {
            assert_eq!(last_line(output), expected, "{output:?}");
        }
    }
}
