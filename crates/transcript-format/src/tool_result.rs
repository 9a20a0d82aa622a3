//! `toolUseResult`: the data that a tool returned, in the form of the tool.
//!
//! The line does not name the tool; the name is in the `tool_use` block with the id that the result
//! gives as `tool_use_id`. [`ToolUseResult::output`] needs that name, [`ToolUseResult::guess`] does
//! without it.

use crate::content::{Block, Content};
use crate::object::{FromRaw, JsonKind, Object, Raw, Str};
use crate::usage::Usage;
use crate::view::{view, views};

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
        let (tool, _) = SHAPES
            .iter()
            .find(|(_, keys)| keys.iter().all(|key| object.get(key).is_some()))
            .unwrap_or(&("", &[]));
        self.output(tool)
    }
}

/// The keys that identify a tool; the first row that matches counts.
const SHAPES: &[(&str, &[&str])] = &[
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

views! {
    /// The result of a tool, by the name of the tool.
    ToolOutput by name {
        /// A command ran.
        Bash = "Bash" | "PowerShell" {
            /// the output.
            stdout: Str<'a> = "stdout";
            /// the errors.
            stderr: Str<'a> = "stderr";
            /// whether the person stopped it.
            interrupted: bool = "interrupted";
            /// whether the output is an image.
            is_image: bool = "isImage";
            /// whether no output is expected.
            no_output_expected: bool = "noOutputExpected";
            /// the meaning of the exit code.
            return_code_interpretation: Str<'a> = "returnCodeInterpretation";
            /// the milliseconds after which it was stopped.
            timed_out_after_ms: u64 = "timedOutAfterMs";
            /// the background task that continues it.
            background_task_id: Str<'a> = "backgroundTaskId";
            /// whether the client moved it to the background.
            assistant_auto_backgrounded: bool = "assistantAutoBackgrounded";
            /// a hint about the working folder of a background task.
            background_cwd_hint: Str<'a> = "backgroundCwdHint";
            /// the file with the whole output.
            persisted_output_path: Str<'a> = "persistedOutputPath";
            /// the size of that file in bytes.
            persisted_output_size: u64 = "persistedOutputSize";
            /// the operation in git.
            git_operation: GitOperation<'a> = "gitOperation";
            /// whether it ran in a sandbox (1.0.x).
            sandbox: bool = "sandbox";
            /// whether it was allowed to run outside of the sandbox.
            dangerously_disable_sandbox: bool = "dangerouslyDisableSandbox";
            /// a hint that files read earlier have changed.
            stale_read_file_state_hint: Str<'a> = "staleReadFileStateHint";
            /// the output as it is shortened for the model.
            token_saver_output: Str<'a> = "tokenSaverOutput";
        }

        /// A file was read.
        Read = "Read" {
            /// the kind of file: `text`, `image`, `notebook`, `pdf`, …
            kind: Str<'a> = "type";
            /// the file.
            file: ReadFile<'a> = "file";
        }

        /// Text in a file was replaced.
        Edit = "Edit" {
            /// the file.
            file_path: Str<'a> = "filePath";
            /// the text before.
            old_string: Str<'a> = "oldString";
            /// the text after.
            new_string: Str<'a> = "newString";
            /// the whole file before; `null` for a new file.
            original_file: Str<'a> = "originalFile";
            /// the change.
            structured_patch: Vec<Hunk<'a>> = "structuredPatch";
            /// whether the person changed the new text.
            user_modified: bool = "userModified";
            /// whether every occurrence was replaced.
            replace_all: bool = "replaceAll";
            /// whether the file had changed since it was read.
            stale_recovered: bool = "staleRecovered";
            /// whether a timestamp was added to a memory file.
            memdir_stamped: bool = "memdirStamped";
        }

        /// Several texts in a file were replaced.
        MultiEdit = "MultiEdit" {
            /// the file.
            file_path: Str<'a> = "filePath";
            /// the replacements.
            edits: Vec<TextEdit<'a>> = "edits";
            /// the whole file before.
            original_file_contents: Str<'a> = "originalFileContents";
            /// the change.
            structured_patch: Vec<Hunk<'a>> = "structuredPatch";
            /// whether the person changed the new text.
            user_modified: bool = "userModified";
        }

        /// A file was written.
        Write = "Write" {
            /// `create` or `update`.
            kind: Str<'a> = "type";
            /// the file.
            file_path: Str<'a> = "filePath";
            /// the whole file after.
            content: Str<'a> = "content";
            /// the whole file before; `null` for a new file.
            original_file: Str<'a> = "originalFile";
            /// the change.
            structured_patch: Vec<Hunk<'a>> = "structuredPatch";
            /// whether the person changed the text.
            user_modified: bool = "userModified";
            /// whether a timestamp was added to a memory file.
            memdir_stamped: bool = "memdirStamped";
        }

        /// A text search.
        Grep = "Grep" {
            /// the form of the list: `content`, `files_with_matches` or `count`.
            mode: Str<'a> = "mode";
            /// the files.
            filenames: Vec<Str<'a>> = "filenames";
            /// the number of files.
            num_files: u64 = "numFiles";
            /// the lines.
            content: Str<'a> = "content";
            /// the number of lines.
            num_lines: u64 = "numLines";
            /// the number of matches.
            num_matches: u64 = "numMatches";
            /// the total number of files.
            total_files: u64 = "totalFiles";
            /// the total number of lines.
            total_lines: u64 = "totalLines";
            /// the maximum number of listed results.
            applied_limit: u64 = "appliedLimit";
            /// the number of skipped results.
            applied_offset: u64 = "appliedOffset";
        }

        /// A file search.
        Glob = "Glob" {
            /// the files.
            filenames: Vec<Str<'a>> = "filenames";
            /// the number of files.
            num_files: u64 = "numFiles";
            /// the duration, in milliseconds.
            duration_ms: u64 = "durationMs";
            /// whether the list is truncated.
            truncated: bool = "truncated";
            /// the total number of files.
            total_matches: u64 = "totalMatches";
            /// whether that number is exact.
            count_is_complete: bool = "countIsComplete";
        }

        /// The to-do list was written.
        TodoWrite = "TodoWrite" {
            /// the list before.
            old_todos: Vec<Todo<'a>> = "oldTodos";
            /// the list after.
            new_todos: Vec<Todo<'a>> = "newTodos";
        }

        /// A subagent ran or was started (`Task` up to 2.1.62, `Agent` from then on).
        Agent = "Agent" | "Task" {
            /// `completed`, `async_launched`, `teammate_spawned`, …
            status: Str<'a> = "status";
            /// the id of the subagent, which is part of the name of its file.
            agent_id: Str<'a> = "agentId";
            /// the kind of subagent.
            agent_type: Str<'a> = "agentType";
            /// its prompt.
            prompt: Str<'a> = "prompt";
            /// a short description of the task.
            description: Str<'a> = "description";
            /// its answer.
            content: Content<'a> = "content";
            /// whether it runs in the background.
            is_async: bool = "isAsync";
            /// the file with its output.
            output_file: Str<'a> = "outputFile";
            /// whether the model may read that file.
            can_read_output_file: bool = "canReadOutputFile";
            /// whether it can be continued.
            can_continue_agent: bool = "canContinueAgent";
            /// the duration, in milliseconds.
            total_duration_ms: u64 = "totalDurationMs";
            /// the tokens of its last request.
            total_tokens: u64 = "totalTokens";
            /// the number of its tool calls.
            total_tool_use_count: u64 = "totalToolUseCount";
            /// the token counts of its last request.
            usage: Usage<'a> = "usage";
            /// its activity.
            tool_stats: ToolStats<'a> = "toolStats";
            /// the tools it used.
            tools_used: Vec<Str<'a>> = "toolsUsed";
            /// the model that was asked for.
            model: Str<'a> = "model";
            /// the model that answered.
            resolved_model: Str<'a> = "resolvedModel";
            /// the models that answered.
            models_used: Vec<Str<'a>> = "modelsUsed";
            /// the name of a teammate.
            name: Str<'a> = "name";
            /// the team of a teammate.
            team_name: Str<'a> = "team_name";
            /// the id of a teammate.
            teammate_id: Str<'a> = "teammate_id";
            /// the colour of a teammate.
            color: Str<'a> = "color";
            /// whether a teammate must present its plan first.
            plan_mode_required: bool = "plan_mode_required";
        }

        /// The output of a background task.
        TaskOutput = "TaskOutput" | "AgentOutputTool" {
            /// `success`, `timeout`, `not_ready`.
            retrieval_status: Str<'a> = "retrieval_status";
            /// the task with its output.
            task: Object<'a> = "task";
        }

        /// A page was fetched.
        WebFetch = "WebFetch" {
            /// the page.
            url: Str<'a> = "url";
            /// the HTTP status.
            code: u64 = "code";
            /// the text of the status.
            code_text: Str<'a> = "codeText";
            /// the size in bytes.
            bytes: u64 = "bytes";
            /// the text sent to the model.
            result: Str<'a> = "result";
            /// the duration, in milliseconds.
            duration_ms: u64 = "durationMs";
        }

        /// The web was searched.
        WebSearch = "WebSearch" {
            /// the query.
            query: Str<'a> = "query";
            /// texts and lists of results: an object has `tool_use_id` and `content`.
            results: Vec<Raw<'a>> = "results";
            /// the duration, in seconds.
            duration_seconds: f64 = "durationSeconds";
            /// the number of searches.
            search_count: u64 = "searchCount";
        }

        /// Questions to the person.
        AskUserQuestion = "AskUserQuestion" {
            /// the questions.
            questions: Vec<Question<'a>> = "questions";
            /// the answers by question.
            answers: Object<'a> = "answers";
            /// notes by question.
            annotations: Object<'a> = "annotations";
            /// the milliseconds after which nobody was there.
            afk_timeout_ms: u64 = "afkTimeoutMs";
        }

        /// A plan was presented.
        ExitPlanMode = "ExitPlanMode" {
            /// the plan.
            plan: Str<'a> = "plan";
            /// its file.
            file_path: Str<'a> = "filePath";
            /// whether a subagent wrote it.
            is_agent: bool = "isAgent";
            /// whether the person changed it.
            plan_was_edited: bool = "planWasEdited";
        }

        /// Plan mode began.
        EnterPlanMode = "EnterPlanMode" {
            /// the text sent to the model.
            message: Str<'a> = "message";
        }

        /// The output of a background command (up to 2.0.x).
        BashOutput = "BashOutput" {
            /// the shell.
            shell_id: Str<'a> = "shellId";
            /// the command.
            command: Str<'a> = "command";
            /// `running`, `completed`, `failed`, `killed`.
            status: Str<'a> = "status";
            /// the exit code; `null` while it runs.
            exit_code: i64 = "exitCode";
            /// the new output.
            stdout: Str<'a> = "stdout";
            /// the new errors.
            stderr: Str<'a> = "stderr";
            /// the number of output lines.
            stdout_lines: u64 = "stdoutLines";
            /// the number of error lines.
            stderr_lines: u64 = "stderrLines";
            /// the filter for the lines.
            filter_pattern: Str<'a> = "filterPattern";
            /// the time.
            timestamp: Str<'a> = "timestamp";
        }

        /// A background command was stopped.
        KillShell = "KillShell" | "KillBash" {
            /// the text sent to the model.
            message: Str<'a> = "message";
            /// the shell.
            shell_id: Str<'a> = "shell_id";
            /// whether it was stopped.
            success: bool = "success";
        }

        /// A cell of a notebook was changed.
        NotebookEdit = "NotebookEdit" {
            /// the number of the cell.
            cell_number: u64 = "cell_number";
            /// the id of the cell.
            cell_id: Str<'a> = "cell_id";
            /// `code` or `markdown`.
            cell_type: Str<'a> = "cell_type";
            /// `replace`, `insert` or `delete`.
            edit_mode: Str<'a> = "edit_mode";
            /// the language.
            language: Str<'a> = "language";
            /// the cell after.
            new_source: Str<'a> = "new_source";
            /// the error; empty on success.
            error: Str<'a> = "error";
        }

        /// A skill or slash command was loaded.
        Skill = "Skill" | "SlashCommand" {
            /// its name.
            command_name: Str<'a> = "commandName";
            /// whether it was loaded.
            success: bool = "success";
            /// the tools it permits.
            allowed_tools: Vec<Str<'a>> = "allowedTools";
            /// the model it asks for.
            model: Str<'a> = "model";
        }

        /// A tool search.
        ToolSearch = "ToolSearch" {
            /// the query.
            query: Str<'a> = "query";
            /// the tools that were found.
            matches: Vec<Str<'a>> = "matches";
            /// the number of searchable tools.
            total_deferred_tools: u64 = "total_deferred_tools";
        }

        /// A task was added to the list.
        TaskCreate = "TaskCreate" | "TaskGet" {
            /// the task.
            task: TaskItem<'a> = "task";
        }

        /// A task of the list was changed.
        TaskUpdate = "TaskUpdate" {
            /// the task.
            task_id: Str<'a> = "taskId";
            /// whether it was changed.
            success: bool = "success";
            /// the reason for a failure.
            error: Str<'a> = "error";
            /// the fields that changed.
            updated_fields: Vec<Str<'a>> = "updatedFields";
            /// the status before and after.
            status_change: StatusChange<'a> = "statusChange";
            /// whether the model is asked to check its work.
            verification_nudge_needed: bool = "verificationNudgeNeeded";
        }

        /// The task list.
        TaskList = "TaskList" {
            /// the tasks.
            tasks: Vec<TaskItem<'a>> = "tasks";
        }

        /// A background task was stopped.
        TaskStop = "TaskStop" {
            /// the text sent to the model.
            message: Str<'a> = "message";
            /// the task.
            task_id: Str<'a> = "task_id";
            /// the type of task.
            task_type: Str<'a> = "task_type";
            /// the command.
            command: Str<'a> = "command";
        }

        /// A wake-up was scheduled.
        ScheduleWakeup = "ScheduleWakeup" {
            /// the time, in milliseconds since 1970.
            scheduled_for: u64 = "scheduledFor";
            /// the delay in seconds, within the limits.
            clamped_delay_seconds: u64 = "clampedDelaySeconds";
            /// whether the limits changed it.
            was_clamped: bool = "wasClamped";
            /// the number of cancelled earlier wake-ups.
            cancelled_wakeups: u64 = "cancelledWakeups";
            /// whether the loop ended.
            stopped: bool = "stopped";
        }

        /// A workflow was started.
        Workflow = "Workflow" {
            /// the status.
            status: Str<'a> = "status";
            /// the background task.
            task_id: Str<'a> = "taskId";
            /// the type of task.
            task_type: Str<'a> = "taskType";
            /// the workflow.
            workflow_name: Str<'a> = "workflowName";
            /// the run.
            run_id: Str<'a> = "runId";
            /// its description.
            summary: Str<'a> = "summary";
            /// the folder with the files of its subagents.
            transcript_dir: Str<'a> = "transcriptDir";
            /// its script.
            script_path: Str<'a> = "scriptPath";
        }

        /// A request to a language server.
        Lsp = "LSP" {
            /// the operation.
            operation: Str<'a> = "operation";
            /// the file.
            file_path: Str<'a> = "filePath";
            /// the answer.
            result: Str<'a> = "result";
            /// the number of results.
            result_count: u64 = "resultCount";
            /// the number of files with results.
            file_count: u64 = "fileCount";
        }

        /// Output is monitored.
        Monitor = "Monitor" {
            /// the background task.
            task_id: Str<'a> = "taskId";
            /// whether monitoring continues after the first event.
            persistent: bool = "persistent";
            /// the milliseconds after which it ends.
            timeout_ms: u64 = "timeoutMs";
        }

        /// A message was sent to another agent.
        SendMessage = "SendMessage" {
            /// whether it was sent.
            success: bool = "success";
            /// the text sent to the model.
            message: Str<'a> = "message";
            /// the message.
            msg_id: Str<'a> = "msg_id";
            /// the subagent that continues it.
            resumed_agent_id: Str<'a> = "resumedAgentId";
            /// the sender and the recipient.
            routing: Object<'a> = "routing";
        }

        /// The session entered a worktree.
        EnterWorktree = "EnterWorktree" {
            /// the text sent to the model.
            message: Str<'a> = "message";
            /// the folder.
            worktree_path: Str<'a> = "worktreePath";
            /// the branch.
            worktree_branch: Str<'a> = "worktreeBranch";
        }
    }
}

view! {
    /// A file that was read; its fields depend on its kind.
    ReadFile {
        /// the path.
        file_path: Str<'a> = "filePath";
        /// the lines that were read.
        content: Str<'a> = "content";
        /// the number of lines that were read.
        num_lines: u64 = "numLines";
        /// the first line that was read, from 1.
        start_line: u64 = "startLine";
        /// the total number of lines.
        total_lines: u64 = "totalLines";
        /// an image or PDF, in base64.
        base64: Str<'a> = "base64";
        /// the media type of `base64`.
        media_type: Str<'a> = "type";
        /// the size of the file in bytes.
        original_size: u64 = "originalSize";
        /// the size of the image in pixels.
        dimensions: Object<'a> = "dimensions";
        /// the cells of a notebook.
        cells: Vec<Raw<'a>> = "cells";
    }

    /// One place of a change, as in a unified diff.
    Hunk {
        /// the first line before, from 1.
        old_start: u64 = "oldStart";
        /// the lines before.
        old_lines: u64 = "oldLines";
        /// the first line after, from 1.
        new_start: u64 = "newStart";
        /// the lines after.
        new_lines: u64 = "newLines";
        /// the lines, each with ` `, `+` or `-` before it.
        lines: Vec<Str<'a>> = "lines";
    }

    /// One of several replacements.
    TextEdit {
        /// the text before.
        old_string: Str<'a> = "old_string";
        /// the text after.
        new_string: Str<'a> = "new_string";
        /// whether every occurrence was replaced.
        replace_all: bool = "replace_all";
    }

    /// One item of the to-do list.
    Todo {
        /// the task.
        content: Str<'a> = "content";
        /// `pending`, `in_progress` or `completed`.
        status: Str<'a> = "status";
        /// the text shown while it is in progress.
        active_form: Str<'a> = "activeForm";
        /// its id, in older clients.
        id: Str<'a> = "id";
        /// its priority, in older clients.
        priority: Str<'a> = "priority";
    }

    /// A task of the task list.
    TaskItem {
        /// its id.
        id: Str<'a> = "id";
        /// the task.
        subject: Str<'a> = "subject";
        /// the details.
        description: Str<'a> = "description";
        /// the text shown while it is in progress.
        active_form: Str<'a> = "activeForm";
        /// `pending`, `in_progress` or `completed`.
        status: Str<'a> = "status";
        /// the tasks that wait for it.
        blocks: Vec<Str<'a>> = "blocks";
        /// the tasks that it waits for.
        blocked_by: Vec<Str<'a>> = "blockedBy";
        /// the agent that works on it.
        owner: Str<'a> = "owner";
    }

    /// An operation of a command in git.
    GitOperation {
        /// the commit: `kind`, `sha`.
        commit: Object<'a> = "commit";
        /// the push: `branch`.
        push: Object<'a> = "push";
        /// the pull request: `action`, `number`, `url`.
        pr: Object<'a> = "pr";
    }

    /// The activity of a subagent.
    ToolStats {
        /// the files it read.
        read_count: u64 = "readCount";
        /// the searches.
        search_count: u64 = "searchCount";
        /// the commands.
        bash_count: u64 = "bashCount";
        /// the files it changed.
        edit_file_count: u64 = "editFileCount";
        /// the lines it added.
        lines_added: u64 = "linesAdded";
        /// the lines it removed.
        lines_removed: u64 = "linesRemoved";
        /// the calls of other tools.
        other_tool_count: u64 = "otherToolCount";
    }

    /// A question to the person.
    Question {
        /// the question.
        question: Str<'a> = "question";
        /// a short label of the question.
        header: Str<'a> = "header";
        /// the answers to choose from.
        options: Vec<QuestionOption<'a>> = "options";
        /// whether several answers may be chosen.
        multi_select: bool = "multiSelect";
    }

    /// One answer to choose from.
    QuestionOption {
        /// the answer.
        label: Str<'a> = "label";
        /// its meaning.
        description: Str<'a> = "description";
    }

    /// The status of a task before and after.
    StatusChange {
        /// the status before.
        from: Str<'a> = "from";
        /// the status after.
        to: Str<'a> = "to";
    }
}
