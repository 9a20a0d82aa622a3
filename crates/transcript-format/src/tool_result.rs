//! `toolUseResult`: the data that a tool returned, in the form of the tool.
//!
//! The line does not name the tool. The name is in the `tool_use` block whose id is the `tool_use_id`
//! of the result. [`ToolUseResult::output`] needs that name; [`ToolUseResult::guess`] infers the tool
//! from the keys of the data.

use crate::content::{Block, Content};
use crate::object::{FromRaw, JsonKind, Object, Raw, Str};
use crate::schema::schema;
use crate::usage::Usage;

/// The three forms of a `toolUseResult`.
#[derive(Clone, Debug)]
pub enum ToolUseResult<'a> {
    /// A text, usually of an error, a rejection or an interruption.
    Text(Str<'a>),
    /// Blocks, from MCP tools.
    Blocks(Vec<Block<'a>>),
    /// An object in the form of the tool.
    Object(Object<'a>),
}

impl<'a> ToolUseResult<'a> {
    /// Returns the view for the tool of this name; `None` when the result is not an object.
    #[must_use]
    pub fn output(&self, tool: &str) -> Option<ToolOutput<'a>> {
        match self {
            Self::Object(object) => Some(ToolOutput::new(tool, object.clone())),
            Self::Text(_) | Self::Blocks(_) => None,
        }
    }

    /// Returns the view that the keys of the result suggest; `None` if the result is not an object.
    #[must_use]
    pub fn guess(&self) -> Option<ToolOutput<'a>> {
        let Self::Object(object) = self else {
            return None;
        };
        let (tool, _) = RESULT_SHAPES
            .iter()
            .find(|(_, keys)| keys.iter().all(|key| object.get(key).is_some()))
            .unwrap_or(&("", &[]));
        self.output(tool)
    }
}

/// The keys that identify a tool; the first row that matches counts.
const RESULT_SHAPES: &[(&str, &[&str])] = &[
    ("MultiEdit", &["filePath", "edits"]),
    ("Edit", &["filePath", "oldString", "newString"]),
    ("Write", &["filePath", "content", "structuredPatch"]),
    ("Read", &["type", "file"]),
    ("BashOutput", &["shellId", "stdout"]),
    ("Bash", &["stdout", "interrupted"]),
    ("Grep", &["mode", "filenames"]),
    ("Glob", &["filenames", "truncated"]),
    ("TodoWrite", &["oldTodos", "newTodos"]),
    ("Agent", &["agentId", "prompt"]),
    ("Agent", &["totalDurationMs", "totalToolUseCount"]),
    ("TaskOutput", &["retrieval_status"]),
    ("TaskUpdate", &["taskId", "updatedFields"]),
    ("WebFetch", &["url", "codeText"]),
    ("WebSearch", &["query", "results"]),
    ("AskUserQuestion", &["questions", "answers"]),
    ("ExitPlanMode", &["plan", "isAgent"]),
    ("NotebookEdit", &["new_source", "edit_mode"]),
    ("Skill", &["commandName", "success"]),
    ("ToolSearch", &["matches", "total_deferred_tools"]),
    ("KillShell", &["shell_id", "message"]),
    ("TaskStop", &["task_id", "message"]),
    ("LSP", &["operation", "filePath"]),
    ("Workflow", &["runId", "scriptPath"]),
    ("TaskList", &["tasks"]),
    ("TaskCreate", &["task"]),
];

impl<'a> FromRaw<'a> for ToolUseResult<'a> {
    fn from_raw(raw: Raw<'a>) -> Option<Self> {
        match raw.kind() {
            JsonKind::String => raw.str().map(Self::Text),
            JsonKind::Array => Vec::from_raw(raw).map(Self::Blocks),
            JsonKind::Object => raw.object().map(Self::Object),
            _ => None,
        }
    }
}

schema! {
    /// A file that was read; its fields depend on its kind.
    ReadFile {
        file_path: Str<'a> = "filePath", "the path";
        content: Str<'a> = "content", "the lines that were read";
        num_lines: u64 = "numLines", "the number of lines that were read";
        start_line: u64 = "startLine", "the first line that was read, from 1";
        total_lines: u64 = "totalLines", "the total number of lines";
        base64: Str<'a> = "base64", "an image or PDF, in base64";
        media_type: Str<'a> = "type", "the media type of `base64`";
        original_size: u64 = "originalSize", "the size of the file in bytes";
        dimensions: Object<'a> = "dimensions", "the size of the image in pixels";
    }

    /// One place of a change, as in a unified diff.
    Hunk {
        old_start: u64 = "oldStart", "the first line before, from 1";
        old_lines: u64 = "oldLines", "the lines before";
        new_start: u64 = "newStart", "the first line after, from 1";
        new_lines: u64 = "newLines", "the lines after";
        lines: Vec<Str<'a>> = "lines", "the lines, each with ` `, `+` or `-` before it";
    }

    /// One of several replacements.
    TextEdit {
        old_string: Str<'a> = "old_string", "the text before";
        new_string: Str<'a> = "new_string", "the text after";
        replace_all: bool = "replace_all", "whether every occurrence was replaced";
    }

    /// One item of the to-do list.
    Todo {
        content: Str<'a> = "content", "the task";
        status: Str<'a> = "status", "`pending`, `in_progress` or `completed`";
        active_form: Str<'a> = "activeForm", "the text shown while it is in progress";
        id: Str<'a> = "id", "its id, in older clients";
    }

    /// A task of the task list.
    TaskItem {
        id: Str<'a> = "id", "its id";
        subject: Str<'a> = "subject", "the task";
        description: Str<'a> = "description", "the details";
        active_form: Str<'a> = "activeForm", "the text shown while it is in progress";
        status: Str<'a> = "status", "`pending`, `in_progress` or `completed`";
        blocks: Vec<Str<'a>> = "blocks", "the tasks that wait for it";
        blocked_by: Vec<Str<'a>> = "blockedBy", "the tasks that it waits for";
    }

    /// An operation of a command in git.
    GitOperation {
        commit: Object<'a> = "commit", "the commit: `kind`, `sha`";
        push: Object<'a> = "push", "the push: `branch`";
        pr: Object<'a> = "pr", "the pull request: `action`, `number`, `url`";
    }

    /// The activity of a subagent.
    ToolStats {
        read_count: u64 = "readCount", "the files it read";
        search_count: u64 = "searchCount", "the searches";
        bash_count: u64 = "bashCount", "the commands";
        edit_file_count: u64 = "editFileCount", "the files it changed";
        lines_added: u64 = "linesAdded", "the lines it added";
        lines_removed: u64 = "linesRemoved", "the lines it removed";
        other_tool_count: u64 = "otherToolCount", "the calls of other tools";
    }

    /// A question to the person.
    Question {
        question: Str<'a> = "question", "the question";
        header: Str<'a> = "header", "a short label of the question";
        options: Vec<QuestionOption<'a>> = "options", "the answers to choose from";
        multi_select: bool = "multiSelect", "whether several answers may be chosen";
    }

    /// One answer to choose from.
    QuestionOption {
        label: Str<'a> = "label", "the answer";
        description: Str<'a> = "description", "its meaning";
    }

    /// The status of a task before and after.
    StatusChange {
        from: Str<'a> = "from", "the status before";
        to: Str<'a> = "to", "the status after";
    }

    enum ToolOutput "The result of a tool, by the name of the tool." by name {
        /// A command ran.
        Bash = "Bash" | "PowerShell" {
            stdout: Str<'a> = "stdout", "the output";
            stderr: Str<'a> = "stderr", "the errors";
            interrupted: bool = "interrupted", "whether the person stopped it";
            is_image: bool = "isImage", "whether the output is an image";
            no_output_expected: bool = "noOutputExpected", "whether no output is expected";
            return_code_interpretation: Str<'a> = "returnCodeInterpretation", "the meaning of the exit code";
            background_task_id: Str<'a> = "backgroundTaskId", "the background task that continues it";
            persisted_output_path: Str<'a> = "persistedOutputPath", "the file with the whole output";
            persisted_output_size: u64 = "persistedOutputSize", "the size of that file in bytes";
            git_operation: GitOperation<'a> = "gitOperation", "the operation in git";
            stale_read_file_state_hint: Str<'a> = "staleReadFileStateHint", "a hint that files read earlier have changed";
        }

        /// A file was read.
        Read = "Read" {
            kind: Str<'a> = "type", "the kind of file: `text`, `image`, `notebook`, `pdf`, …";
            file: ReadFile<'a> = "file", "the file";
        }

        /// Text in a file was replaced.
        Edit = "Edit" {
            file_path: Str<'a> = "filePath", "the file";
            old_string: Str<'a> = "oldString", "the text before";
            new_string: Str<'a> = "newString", "the text after";
            original_file: Str<'a> = "originalFile", "the whole file before; `null` for a new file";
            structured_patch: Vec<Hunk<'a>> = "structuredPatch", "the change";
            user_modified: bool = "userModified", "whether the person changed the new text";
            replace_all: bool = "replaceAll", "whether every occurrence was replaced";
            stale_recovered: bool = "staleRecovered", "whether the file had changed since it was read";
        }

        /// Several texts in a file were replaced.
        MultiEdit = "MultiEdit" {
            file_path: Str<'a> = "filePath", "the file";
            edits: Vec<TextEdit<'a>> = "edits", "the replacements";
            original_file_contents: Str<'a> = "originalFileContents", "the whole file before";
            structured_patch: Vec<Hunk<'a>> = "structuredPatch", "the change";
            user_modified: bool = "userModified", "whether the person changed the new text";
        }

        /// A file was written.
        Write = "Write" {
            kind: Str<'a> = "type", "`create` or `update`";
            file_path: Str<'a> = "filePath", "the file";
            content: Str<'a> = "content", "the whole file after";
            original_file: Str<'a> = "originalFile", "the whole file before; `null` for a new file";
            structured_patch: Vec<Hunk<'a>> = "structuredPatch", "the change";
            user_modified: bool = "userModified", "whether the person changed the text";
        }

        /// A text search.
        Grep = "Grep" {
            mode: Str<'a> = "mode", "the form of the list: `content`, `files_with_matches` or `count`";
            filenames: Vec<Str<'a>> = "filenames", "the files";
            num_files: u64 = "numFiles", "the number of files";
            content: Str<'a> = "content", "the lines";
            num_lines: u64 = "numLines", "the number of lines";
            num_matches: u64 = "numMatches", "the number of matches";
            total_files: u64 = "totalFiles", "the total number of files";
            total_lines: u64 = "totalLines", "the total number of lines";
            applied_limit: u64 = "appliedLimit", "the maximum number of listed results";
        }

        /// A file search.
        Glob = "Glob" {
            filenames: Vec<Str<'a>> = "filenames", "the files";
            num_files: u64 = "numFiles", "the number of files";
            duration_ms: u64 = "durationMs", "the duration, in milliseconds";
            truncated: bool = "truncated", "whether the list is truncated";
            total_matches: u64 = "totalMatches", "the total number of files";
            count_is_complete: bool = "countIsComplete", "whether that number is exact";
        }

        /// The to-do list was written.
        TodoWrite = "TodoWrite" {
            old_todos: Vec<Todo<'a>> = "oldTodos", "the list before";
            new_todos: Vec<Todo<'a>> = "newTodos", "the list after";
        }

        /// A subagent ran or was started (`Task` up to 2.1.62, `Agent` from then on).
        Agent = "Agent" | "Task" {
            status: Str<'a> = "status", "`completed`, `async_launched`, `teammate_spawned`, …";
            agent_id: Str<'a> = "agentId", "the id of the subagent, which is part of the name of its file";
            agent_type: Str<'a> = "agentType", "the kind of subagent";
            prompt: Str<'a> = "prompt", "its prompt";
            description: Str<'a> = "description", "a short description of the task";
            content: Content<'a> = "content", "its answer";
            is_async: bool = "isAsync", "whether it runs in the background";
            output_file: Str<'a> = "outputFile", "the file with its output";
            can_read_output_file: bool = "canReadOutputFile", "whether the model may read that file";
            can_continue_agent: bool = "canContinueAgent", "whether it can be continued";
            total_duration_ms: u64 = "totalDurationMs", "the duration, in milliseconds";
            total_tokens: u64 = "totalTokens", "the tokens of its last request";
            total_tool_use_count: u64 = "totalToolUseCount", "the number of its tool calls";
            usage: Usage<'a> = "usage", "the token counts of its last request";
            tool_stats: ToolStats<'a> = "toolStats", "its activity";
            tools_used: Vec<Str<'a>> = "toolsUsed", "the tools it used";
            resolved_model: Str<'a> = "resolvedModel", "the model that answered";
        }

        /// A page was fetched.
        WebFetch = "WebFetch" {
            url: Str<'a> = "url", "the page";
            code: u64 = "code", "the HTTP status";
            code_text: Str<'a> = "codeText", "the text of the status";
            bytes: u64 = "bytes", "the size in bytes";
            result: Str<'a> = "result", "the text sent to the model";
            duration_ms: u64 = "durationMs", "the duration, in milliseconds";
        }

        /// The web was searched.
        WebSearch = "WebSearch" {
            query: Str<'a> = "query", "the query";
            results: Vec<Raw<'a>> = "results", "texts and lists of results: an object has `tool_use_id` and `content`";
            duration_seconds: f64 = "durationSeconds", "the duration, in seconds";
        }

        /// Questions to the person.
        AskUserQuestion = "AskUserQuestion" {
            questions: Vec<Question<'a>> = "questions", "the questions";
            answers: Object<'a> = "answers", "the answers by question";
            annotations: Object<'a> = "annotations", "notes by question";
        }

        /// A plan was presented.
        ExitPlanMode = "ExitPlanMode" {
            plan: Str<'a> = "plan", "the plan";
            file_path: Str<'a> = "filePath", "its file";
            is_agent: bool = "isAgent", "whether a subagent wrote it";
        }

        /// The output of a background command (up to 2.0.x).
        BashOutput = "BashOutput" {
            shell_id: Str<'a> = "shellId", "the shell";
            command: Str<'a> = "command", "the command";
            status: Str<'a> = "status", "`running`, `completed`, `failed`, `killed`";
            exit_code: i64 = "exitCode", "the exit code; `null` while it runs";
            stdout: Str<'a> = "stdout", "the new output";
            stderr: Str<'a> = "stderr", "the new errors";
            stdout_lines: u64 = "stdoutLines", "the number of output lines";
            stderr_lines: u64 = "stderrLines", "the number of error lines";
            timestamp: Str<'a> = "timestamp", "the time";
        }

        /// A background command was stopped.
        KillShell = "KillShell" | "KillBash" {
            message: Str<'a> = "message", "the text sent to the model";
            shell_id: Str<'a> = "shell_id", "the shell";
            success: bool = "success", "whether it was stopped";
        }

        /// A skill or slash command was loaded.
        Skill = "Skill" | "SlashCommand" {
            command_name: Str<'a> = "commandName", "its name";
            success: bool = "success", "whether it was loaded";
        }

        /// A tool search.
        ToolSearch = "ToolSearch" {
            query: Str<'a> = "query", "the query";
            matches: Vec<Str<'a>> = "matches", "the tools that were found";
            total_deferred_tools: u64 = "total_deferred_tools", "the number of searchable tools";
        }

        /// A task was added to the list.
        TaskCreate = "TaskCreate" | "TaskGet" { task: TaskItem<'a> = "task", "the task"; }

        /// A task of the list was changed.
        TaskUpdate = "TaskUpdate" {
            task_id: Str<'a> = "taskId", "the task";
            success: bool = "success", "whether it was changed";
            updated_fields: Vec<Str<'a>> = "updatedFields", "the fields that changed";
            status_change: StatusChange<'a> = "statusChange", "the status before and after";
            verification_nudge_needed: bool = "verificationNudgeNeeded", "whether the model is asked to check its work";
        }

        /// The task list.
        TaskList = "TaskList" { tasks: Vec<TaskItem<'a>> = "tasks", "the tasks"; }

        /// A workflow was started.
        Workflow = "Workflow" {
            status: Str<'a> = "status", "the status";
            task_id: Str<'a> = "taskId", "the background task";
            task_type: Str<'a> = "taskType", "the type of task";
            workflow_name: Str<'a> = "workflowName", "the workflow";
            run_id: Str<'a> = "runId", "the run";
            summary: Str<'a> = "summary", "its description";
            transcript_dir: Str<'a> = "transcriptDir", "the folder with the files of its subagents";
            script_path: Str<'a> = "scriptPath", "its script";
        }

        /// A request to a language server.
        Lsp = "LSP" {
            operation: Str<'a> = "operation", "the operation";
            file_path: Str<'a> = "filePath", "the file";
            result: Str<'a> = "result", "the answer";
            result_count: u64 = "resultCount", "the number of results";
            file_count: u64 = "fileCount", "the number of files with results";
        }
    }
}
