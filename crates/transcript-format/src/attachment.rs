//! `attachment` entries: context that the client adds to the conversation, by type.
//!
//! From 2.1.329 on an entry carries the text sent to the model in `rendered`; a resume sends that
//! text and does not render the attachment again (NOTE-1).

use crate::content::{Content, Origin};
use crate::kind::AttachmentKind;
use crate::object::{Object, Raw, Str};
use crate::schema::schema;
use crate::tool_result::{Read, TaskItem, Todo};

impl<'a> Attachment<'a> {
    /// Returns the kind that `attachment.type` names; [`AttachmentKind::Other`] if unknown or
    /// absent.
    #[must_use]
    pub fn kind(&self) -> AttachmentKind {
        let name = self
            .attachment()
            .and_then(|attachment| attachment.str("type"));
        name.map_or(AttachmentKind::Other, |name| {
            AttachmentKind::from_name(&name)
        })
    }

    /// Returns the view of `attachment` by its type.
    #[must_use]
    pub fn body(&self) -> Option<AttachmentBody<'a>> {
        self.attachment()
            .map(|attachment| AttachmentBody::new(self.kind(), attachment))
    }
}

schema! {
    /// An `attachment` entry.
    Attachment {
        attachment: Object<'a> = "attachment", "the context; `Attachment::body` returns it by type";
        rendered: Vec<Rendered<'a>> = "rendered", "the texts sent to the model";
        rendered_in_human_turn: Vec<Rendered<'a>> = "renderedInHumanTurn", "on notifications of background tasks: other texts, for a turn that a prompt of the person is in; a resume sends those of `rendered`";
        rendered_role: Str<'a> = "renderedRole", "the role of its message: `user` or `system`";
        rendered_beside_tool_result: bool = "renderedBesideToolResult", "whether it stays a separate text next to tool results";
    }

    /// One text sent to the model for an attachment.
    Rendered {
        content: Content<'a> = "content", "the text, wrapped in `<system-reminder>`; rarely blocks";
    }

    /// The error of a blocking hook.
    BlockingError {
        blocking_error: Str<'a> = "blockingError", "the text";
        command: Str<'a> = "command", "the command";
    }

    /// The diagnostics of one file.
    FileDiagnostics {
        uri: Str<'a> = "uri", "the file";
        diagnostics: Vec<Diagnostic<'a>> = "diagnostics", "the complaints";
    }

    /// One diagnostic, in the form of the language server protocol.
    Diagnostic {
        message: Str<'a> = "message", "the text";
        severity: Str<'a> = "severity", "`Error`, `Warning`, `Info` or `Hint`";
        range: Object<'a> = "range", "the place: `start` and `end`, each with `line` and `character` from 0";
        source: Str<'a> = "source", "the tool that complains";
        code: Raw<'a> = "code", "the code of the complaint";
    }

    /// The computer and the working folder.
    EnvironmentSnapshot {
        working_directory: Str<'a> = "workingDirectory", "the working folder";
        additional_working_directories: Vec<Str<'a>> = "additionalWorkingDirectories", "additional folders";
        is_git_repo: bool = "isGitRepo", "whether the folder is a git repository";
        is_worktree: bool = "isWorktree", "whether the folder is a worktree";
        platform: Str<'a> = "platform", "the operating system, such as `linux`";
        os_version: Str<'a> = "osVersion", "the version of the system";
        shell: Str<'a> = "shell", "the shell";
    }

    /// A model.
    ModelIdentity {
        model_id: Str<'a> = "modelId", "its id";
        marketing_name: Str<'a> = "marketingName", "its name";
        knowledge_cutoff: Str<'a> = "knowledgeCutoff", "the end of its knowledge";
    }

    /// A memory file.
    MemoryFile {
        path: Str<'a> = "path", "the file";
        kind: Str<'a> = "type", "its scope, such as `Project`";
        content: Str<'a> = "content", "the text sent to the model";
        raw_content: Str<'a> = "rawContent", "the content of the file";
        content_differs_from_disk: bool = "contentDiffersFromDisk", "whether the two differ";
        globs: Vec<Str<'a>> = "globs", "the paths that it is for";
    }

    /// A memory that may be relevant.
    Memory {
        path: Str<'a> = "path", "the file";
        content: Str<'a> = "content", "its content";
        header: Str<'a> = "header", "the line above it";
    }

    /// A skill.
    Skill {
        name: Str<'a> = "name", "its name";
        path: Str<'a> = "path", "its file";
        description: Str<'a> = "description", "its purpose";
        content: Str<'a> = "content", "its text";
    }

    /// The definition of a tool that a search found.
    DeferredTool {
        name: Str<'a> = "name", "the tool";
        description: Str<'a> = "description", "its description for the model";
        input_schema: Object<'a> = "input_schema", "the JSON Schema of its input";
        defer_loading: bool = "defer_loading", "whether the definition is loaded only by a search";
    }

    /// A tool that is no longer available.
    RetractedTool {
        name: Str<'a> = "name", "the tool";
        cause: Str<'a> = "cause", "the reason, such as `not_configured`";
    }

    enum AttachmentBody "The `attachment` of an entry, by its type." by AttachmentKind {
        /// The callable subagents changed.
        AgentListingDelta {
            added_types: Vec<Str<'a>> = "addedTypes", "the new ones";
            added_lines: Vec<Str<'a>> = "addedLines", "the lines that describe them";
            removed_types: Vec<Str<'a>> = "removedTypes", "the ones that are gone";
            built_in_types: Vec<Str<'a>> = "builtInTypes", "those built into the client";
            built_in_plugin_types: Vec<Str<'a>> = "builtInPluginTypes", "those of plugins built into the client";
            is_initial: bool = "isInitial", "whether it is the first list";
            show_concurrency_note: bool = "showConcurrencyNote", "whether the model is asked to call several at once";
        }

        /// The person mentioned a subagent.
        AgentMention { agent_type: Str<'a> = "agentType", "the subagent"; }

        /// The output of a hook that ran in the background.
        AsyncHookResponse {
            hook_name: Str<'a> = "hookName", "the event and its matcher";
            hook_event: Str<'a> = "hookEvent", "the event";
            response: Object<'a> = "response", "the answer in structured form";
        }

        /// Auto mode, in which the model works without asking, is on.
        AutoMode {
            reminder_type: Str<'a> = "reminderType", "the level of detail: `full` or `sparse`";
            auto_mode_consent_flow: bool = "autoModeConsentFlow", "whether the person was asked";
            bash_first: bool = "bashFirst", "whether commands come before other tools";
            bypass: bool = "bypass", "whether permissions are bypassed";
            steer_only: bool = "steerOnly", "whether the model is only guided";
            bash_first_steer: Str<'a> = "bashFirstSteer", "how strongly commands are preferred, such as `relaxed`";
            finish_exposed_work: bool = "finishExposedWork", "a setting of the mode; only `false` was seen";
        }

        /// The remaining budget of the session.
        BudgetUsd {
            used: f64 = "used", "the US dollars spent";
            total: f64 = "total", "the US dollars allowed";
            remaining: f64 = "remaining", "the US dollars left";
        }

        /// The tools that a slash command or skill permits.
        CommandPermissions {
            allowed_tools: Vec<Str<'a>> = "allowedTools", "the tools";
            model: Str<'a> = "model", "the model it asks for";
        }

        /// A file that was read before a compaction and is too large to include again.
        CompactFileReference {
            filename: Str<'a> = "filename", "the file";
            display_path: Str<'a> = "displayPath", "the path as it is shown";
        }

        /// A reminder with its own text.
        CriticalSystemReminder { content: Str<'a> = "content", "the text"; }

        /// The date.
        Date { date: Str<'a> = "date", "the date, as `2026-11-22`"; }

        /// The date changed.
        DateChange { new_date: Str<'a> = "newDate", "the date, as `2026-11-22`"; }

        /// The searchable tools changed.
        DeferredToolsDelta {
            added_names: Vec<Str<'a>> = "addedNames", "the new ones";
            added_lines: Vec<Str<'a>> = "addedLines", "the lines that describe them";
            removed_names: Vec<Str<'a>> = "removedNames", "the ones that are gone";
            readded_names: Vec<Str<'a>> = "readdedNames", "the ones that are back";
            wire_hidden_names: Vec<Str<'a>> = "wireHiddenNames", "the ones that are not sent";
            pending_mcp_servers: Vec<Str<'a>> = "pendingMcpServers", "the MCP servers that are not connected yet";
            needs_auth_mcp_servers: Vec<Str<'a>> = "needsAuthMcpServers", "the MCP servers that the person has to sign in to";
            failed_mcp_servers: Vec<Raw<'a>> = "failedMcpServers", "the MCP servers that failed";
            retracted_tools: Vec<RetractedTool<'a>> = "retractedTools", "why tools are gone";
            cause_neutral: bool = "causeNeutral", "whether the text names no cause";
        }

        /// The definitions of tools that a search found (ToolSearch); sent with no text of their own.
        DeferredToolsRecord {
            entries: Vec<DeferredTool<'a>> = "entries", "the tools";
        }

        /// The diagnostics of an editor or compiler.
        Diagnostics {
            files: Vec<FileDiagnostics<'a>> = "files", "the files";
            is_new: bool = "isNew", "whether the diagnostics are new";
        }

        /// A mentioned folder.
        Directory {
            path: Str<'a> = "path", "the folder";
            content: Str<'a> = "content", "its contents";
            display_path: Str<'a> = "displayPath", "the path as it is shown";
        }

        /// A file that changed on disk.
        EditedTextFile {
            filename: Str<'a> = "filename", "the file";
            snippet: Str<'a> = "snippet", "the changed lines with their numbers";
        }

        /// The computer and the working folder.
        Environment { snapshot: EnvironmentSnapshot<'a> = "snapshot", "the values"; }

        /// A mentioned file.
        File {
            filename: Str<'a> = "filename", "the file";
            display_path: Str<'a> = "displayPath", "the path as it is shown";
            content: Read<'a> = "content", "the content that was read";
            saved_copy_framing: Object<'a> = "savedCopyFraming", "the wrapping of a saved copy";
            truncated: bool = "truncated", "whether only the beginning was read";
        }

        /// Context that a hook adds for the model.
        HookAdditionalContext {
            content: Vec<Str<'a>> = "content", "the texts";
            hook_name: Str<'a> = "hookName", "the event and its matcher";
            hook_event: Str<'a> = "hookEvent", "the event";
            tool_use_id: Str<'a> = "toolUseID", "the tool call or the run of the hook";
        }

        /// A hook blocked something.
        HookBlockingError {
            blocking_error: BlockingError<'a> = "blockingError", "the error text of the hook";
            hook_name: Str<'a> = "hookName", "the event and its matcher";
            hook_event: Str<'a> = "hookEvent", "the event";
        }

        /// A hook was cancelled.
        HookCancelled {
            hook_name: Str<'a> = "hookName", "the event and its matcher";
            hook_event: Str<'a> = "hookEvent", "the event";
            tool_use_id: Str<'a> = "toolUseID", "the tool call or the run of the hook";
        }

        /// A hook failed and the turn continued.
        HookNonBlockingError {
            command: Str<'a> = "command", "the command";
            duration_ms: u64 = "durationMs", "the duration, in milliseconds";
            exit_code: i64 = "exitCode", "the exit code";
            stdout: Str<'a> = "stdout", "the output";
            stderr: Str<'a> = "stderr", "the errors";
            hook_name: Str<'a> = "hookName", "the event and its matcher";
            hook_event: Str<'a> = "hookEvent", "the event";
            tool_use_id: Str<'a> = "toolUseID", "the tool call or the run of the hook";
        }

        /// A hook ended the turn.
        HookStoppedContinuation {
            message: Str<'a> = "message", "the reason";
            hook_name: Str<'a> = "hookName", "the event and its matcher";
            hook_event: Str<'a> = "hookEvent", "the event";
        }

        /// A hook ran.
        HookSuccess {
            content: Str<'a> = "content", "the text sent to the model";
            command: Str<'a> = "command", "the command";
            duration_ms: u64 = "durationMs", "the duration, in milliseconds";
            exit_code: i64 = "exitCode", "the exit code";
            stdout: Str<'a> = "stdout", "the output";
            stderr: Str<'a> = "stderr", "the errors";
            hook_name: Str<'a> = "hookName", "the event and its matcher";
            hook_event: Str<'a> = "hookEvent", "the event";
            tool_use_id: Str<'a> = "toolUseID", "the tool call or the run of the hook";
        }

        /// A message of a hook for the person.
        HookSystemMessage {
            content: Str<'a> = "content", "the text";
            hook_name: Str<'a> = "hookName", "the event and its matcher";
            hook_event: Str<'a> = "hookEvent", "the event";
            tool_use_id: Str<'a> = "toolUseID", "the tool call or the run of the hook";
        }

        /// The skills used before a compaction.
        InvokedSkills { skills: Vec<Skill<'a>> = "skills", "the skills"; }

        /// The turn ended because it took too many steps.
        MaxTurnsReached {
            max_turns: u64 = "maxTurns", "the steps allowed";
            turn_count: u64 = "turnCount", "the steps taken";
        }

        /// The instructions of MCP servers changed.
        McpInstructionsDelta {
            added_names: Vec<Str<'a>> = "addedNames", "the new servers";
            added_blocks: Vec<Str<'a>> = "addedBlocks", "their instructions";
            removed_names: Vec<Str<'a>> = "removedNames", "the servers that are gone";
        }

        /// A mentioned resource of an MCP server.
        McpResource {
            server: Str<'a> = "server", "the server";
            uri: Str<'a> = "uri", "the address";
            name: Str<'a> = "name", "the name";
            content: Object<'a> = "content", "its content, with `contents`";
        }

        /// The answering model.
        Model {
            identity: ModelIdentity<'a> = "identity", "the model";
            text: Str<'a> = "text", "the text sent to the model";
        }

        /// A memory file of the folder in which the model works.
        NestedMemory {
            path: Str<'a> = "path", "the file";
            display_path: Str<'a> = "displayPath", "the path as it is shown";
            content: MemoryFile<'a> = "content", "its content";
        }

        /// The file that is open in the editor.
        OpenedFileInIde { filename: Str<'a> = "filename", "the file"; }

        /// The output style.
        OutputStyle { style: Str<'a> = "style", "the style"; }

        /// The output tokens spent.
        OutputTokenUsage {
            turn: u64 = "turn", "those of the turn";
            session: u64 = "session", "those of the session";
            budget: u64 = "budget", "those allowed";
        }

        /// A mentioned PDF that is too large to include.
        PdfReference {
            filename: Str<'a> = "filename", "the file";
            display_path: Str<'a> = "displayPath", "the path as it is shown";
            page_count: u64 = "pageCount", "the number of pages";
            file_size: u64 = "fileSize", "its size in bytes";
        }

        /// The plan, after a compaction.
        PlanFileReference {
            plan_file_path: Str<'a> = "planFilePath", "the file";
            plan_content: Str<'a> = "planContent", "the plan";
        }

        /// Plan mode, in which the model only plans, is on.
        PlanMode {
            reminder_type: Str<'a> = "reminderType", "the level of detail: `full` or `sparse`";
            is_sub_agent: bool = "isSubAgent", "whether the text is for a subagent";
            plan_file_path: Str<'a> = "planFilePath", "the file for the plan";
            plan_exists: bool = "planExists", "whether a plan exists";
        }

        /// Plan mode ended.
        PlanModeExit {
            plan_file_path: Str<'a> = "planFilePath", "the file for the plan";
            plan_exists: bool = "planExists", "whether a plan exists";
        }

        /// Plan mode was re-entered.
        PlanModeReentry { plan_file_path: Str<'a> = "planFilePath", "the file for the plan"; }

        /// The system prompt, as sent until the next compaction.
        PromptSnapshot {
            system_prompt: Vec<Str<'a>> = "systemPrompt", "the system prompt";
            context_rendering: Str<'a> = "contextRendering", "how context is rendered";
            reminder_fold: bool = "reminderFold", "whether reminders are folded into tool results";
            echo_wire_tool_inputs: bool = "echoWireToolInputs", "whether the inputs of tool calls are sent as received";
            tools: Raw<'a> = "tools", "the tools of the request, as a list";
            cli_prefix: Str<'a> = "cliPrefix", "the sentence before the system prompt";
            inline_tools: bool = "inlineTools", "a setting of requests to newer models; only `false` was seen";
            kept_reminders: bool = "keptReminders", "a setting of requests to newer models; only `false` was seen";
            system_turns: bool = "systemTurns", "whether reminders are `system` messages (NOTE-6)";
            tool_change_header: bool = "toolChangeHeader", "a setting of requests to newer models; only `true` was seen";
        }

        /// A prompt or notification that arrived while the model worked.
        QueuedCommand {
            prompt: Content<'a> = "prompt", "the text or blocks";
            command_mode: Str<'a> = "commandMode", "`prompt` or `task-notification`";
            origin: Origin<'a> = "origin", "the sender";
            is_meta: bool = "isMeta", "whether the client wrote it";
            source_uuid: Str<'a> = "source_uuid", "the id that it had in the queue";
            delivery_id: Str<'a> = "delivery_id", "the id of its delivery from the queue";
            row_source: Str<'a> = "rowSource", "where it comes from: `local` for a prompt, `recorded` for a notification of a task; changes no request (2.1.331)";
            run_id: Str<'a> = "runId", "on notifications of a task: the run of the task";
            timestamp: Str<'a> = "timestamp", "when it entered the queue";
        }

        /// Memories that may be relevant.
        RelevantMemories { memories: Vec<Memory<'a>> = "memories", "the memories"; }

        /// The rules for signing commits and pull requests.
        RemoteSessionChange {
            url: Str<'a> = "url", "the address of the session";
            commit: Str<'a> = "commit", "the trailer for commits";
            pr: Str<'a> = "pr", "the line for pull requests";
            send_user_file_hint: bool = "sendUserFileHint", "whether the model is told how to send files";
            managed_commit: bool = "managedCommit", "whether the trailer is prescribed";
            managed_pr: bool = "managedPr", "whether the line is prescribed";
        }

        /// The lines selected in the editor.
        SelectedLinesInIde {
            ide_name: Str<'a> = "ideName", "the editor";
            filename: Str<'a> = "filename", "the file";
            display_path: Str<'a> = "displayPath", "the path as it is shown";
            line_start: u64 = "lineStart", "the first line";
            line_end: u64 = "lineEnd", "the last line";
            content: Str<'a> = "content", "the lines";
        }

        /// More context of the session.
        SessionContext { context: Object<'a> = "context", "the context"; }

        /// The available skills.
        SkillListing {
            content: Str<'a> = "content", "the lines that describe them";
            skill_count: u64 = "skillCount", "their number";
            is_initial: bool = "isInitial", "whether it is the first list";
            names: Vec<Str<'a>> = "names", "their names";
            digests: Vec<Str<'a>> = "digests", "a digest of each";
        }

        /// The result of the turn, in the structure that the caller requested.
        StructuredOutput { data: Raw<'a> = "data", "the result"; }

        /// A reminder of the tasks.
        TaskReminder {
            content: Vec<TaskItem<'a>> = "content", "the tasks";
            item_count: u64 = "itemCount", "the number of tasks";
        }

        /// A background task, after a compaction.
        TaskStatus {
            task_id: Str<'a> = "taskId", "the task";
            task_type: Str<'a> = "taskType", "the type of task";
            status: Str<'a> = "status", "the status";
            description: Str<'a> = "description", "a short description of the task";
            output_file_path: Str<'a> = "outputFilePath", "the file with its output";
            delta_summary: Str<'a> = "deltaSummary", "what is new since the last status";
        }

        /// A reminder of the to-do list.
        TodoReminder {
            content: Vec<Todo<'a>> = "content", "the items";
            item_count: u64 = "itemCount", "the number of items";
        }

        /// The tokens of the context.
        TokenUsage {
            used: u64 = "used", "those used";
            total: u64 = "total", "the total";
            remaining: u64 = "remaining", "the remaining tokens";
        }

        /// The number of remaining tokens.
        TotalTokensReminder { text: Str<'a> = "text", "the text sent to the model"; }

        /// The highest effort was switched on.
        UltraEffortEnter {
            reminder_type: Str<'a> = "reminderType", "the level of detail: `full` or `sparse`";
        }
    }
}
