//! `attachment` entries: context that the client adds to the conversation, by type.
//!
//! From 2.1.329 on an entry carries the text sent to the model in `rendered`; a resume sends that
//! text and does not render the attachment again (NOTE-1).

use crate::kind::AttachmentKind;
use crate::object::{Object, Raw, Str};
use crate::tool_result::{Read, TaskItem};
use crate::view::{view, views};

view! {
    /// An `attachment` entry.
    Attachment {
        /// the context; [`Attachment::body`] returns it by type.
        attachment: Object<'a> = "attachment";
        /// the texts sent to the model.
        rendered: Vec<Rendered<'a>> = "rendered";
        /// the role of its message: `user` or `system`.
        rendered_role: Str<'a> = "renderedRole";
        /// whether it stays a separate text next to tool results.
        rendered_beside_tool_result: bool = "renderedBesideToolResult";
    }

    /// One text sent to the model for an attachment.
    Rendered {
        /// the text, wrapped in `<system-reminder>`; rarely blocks.
        content: crate::content::Content<'a> = "content";
    }
}

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

views! {
    /// The `attachment` of an entry, by its type.
    AttachmentBody by AttachmentKind {
        /// The callable subagents changed.
        AgentListingDelta {
            /// the new ones.
            added_types: Vec<Str<'a>> = "addedTypes";
            /// the lines that describe them.
            added_lines: Vec<Str<'a>> = "addedLines";
            /// the ones that are gone.
            removed_types: Vec<Str<'a>> = "removedTypes";
            /// those built into the client.
            built_in_types: Vec<Str<'a>> = "builtInTypes";
            /// those of plugins built into the client.
            built_in_plugin_types: Vec<Str<'a>> = "builtInPluginTypes";
            /// whether it is the first list.
            is_initial: bool = "isInitial";
            /// whether the model is asked to call several at once.
            show_concurrency_note: bool = "showConcurrencyNote";
        }

        /// The person mentioned a subagent.
        AgentMention {
            /// the subagent.
            agent_type: Str<'a> = "agentType";
        }

        /// A mentioned file that the model has already read.
        AlreadyReadFile {
            /// the file.
            filename: Str<'a> = "filename";
            /// the path as it is shown.
            display_path: Str<'a> = "displayPath";
            /// the content that was read.
            content: Read<'a> = "content";
        }

        /// The output of a hook that ran in the background.
        AsyncHookResponse {
            /// the run of the hook.
            process_id: Str<'a> = "processId";
            /// the event and its matcher.
            hook_name: Str<'a> = "hookName";
            /// the event.
            hook_event: Str<'a> = "hookEvent";
            /// the tool.
            tool_name: Str<'a> = "toolName";
            /// the answer in structured form.
            response: Object<'a> = "response";
            /// the output.
            stdout: Str<'a> = "stdout";
            /// the errors.
            stderr: Str<'a> = "stderr";
            /// the exit code.
            exit_code: i64 = "exitCode";
        }

        /// Auto mode, in which the model works without asking, is on.
        AutoMode {
            /// the level of detail: `full` or `sparse`.
            reminder_type: Str<'a> = "reminderType";
            /// whether the person was asked.
            auto_mode_consent_flow: bool = "autoModeConsentFlow";
            /// whether commands come before other tools.
            bash_first: bool = "bashFirst";
            /// whether permissions are bypassed.
            bypass: bool = "bypass";
            /// whether the model is only guided.
            steer_only: bool = "steerOnly";
        }

        /// Auto mode ended.
        AutoModeExit {}

        /// A command wrote output (an old form).
        BashProgress {}

        /// The remaining budget of the session.
        BudgetUsd {
            /// the US dollars spent.
            used: f64 = "used";
            /// the US dollars allowed.
            total: f64 = "total";
            /// the US dollars left.
            remaining: f64 = "remaining";
        }

        /// The tools that a slash command or skill permits.
        CommandPermissions {
            /// the tools.
            allowed_tools: Vec<Str<'a>> = "allowedTools";
            /// the model it asks for.
            model: Str<'a> = "model";
        }

        /// A file that was read before a compaction and is too large to include again.
        CompactFileReference {
            /// the file.
            filename: Str<'a> = "filename";
            /// the path as it is shown.
            display_path: Str<'a> = "displayPath";
        }

        /// A reminder that compaction is automatic.
        CompactionReminder {}

        /// The pet next to the input box.
        CompanionIntro {
            /// its name.
            name: Str<'a> = "name";
            /// its species.
            species: Str<'a> = "species";
        }

        /// A reminder to save context.
        ContextEfficiency {}

        /// A reminder with its own text.
        CriticalSystemReminder {
            /// the text.
            content: Str<'a> = "content";
        }

        /// The client's notes about the session.
        CurrentSessionMemory {
            /// the memory.
            content: Str<'a> = "content";
            /// its file.
            path: Str<'a> = "path";
            /// its size in tokens.
            token_count: u64 = "tokenCount";
        }

        /// The date.
        Date {
            /// the date, as `2026-11-22`.
            date: Str<'a> = "date";
        }

        /// The date changed.
        DateChange {
            /// the date, as `2026-11-22`.
            new_date: Str<'a> = "newDate";
        }

        /// The searchable tools changed.
        DeferredToolsDelta {
            /// the new ones.
            added_names: Vec<Str<'a>> = "addedNames";
            /// the lines that describe them.
            added_lines: Vec<Str<'a>> = "addedLines";
            /// the ones that are gone.
            removed_names: Vec<Str<'a>> = "removedNames";
            /// the ones that are back.
            readded_names: Vec<Str<'a>> = "readdedNames";
            /// the ones that are not sent.
            wire_hidden_names: Vec<Str<'a>> = "wireHiddenNames";
            /// the MCP servers that are not connected yet.
            pending_mcp_servers: Vec<Str<'a>> = "pendingMcpServers";
            /// the MCP servers that the person has to sign in to.
            needs_auth_mcp_servers: Vec<Str<'a>> = "needsAuthMcpServers";
            /// the MCP servers that failed.
            failed_mcp_servers: Vec<Raw<'a>> = "failedMcpServers";
        }

        /// The diagnostics of an editor or compiler.
        Diagnostics {
            /// the files.
            files: Vec<FileDiagnostics<'a>> = "files";
            /// whether the diagnostics are new.
            is_new: bool = "isNew";
        }

        /// A mentioned folder.
        Directory {
            /// the folder.
            path: Str<'a> = "path";
            /// its contents.
            content: Str<'a> = "content";
            /// the path as it is shown.
            display_path: Str<'a> = "displayPath";
        }

        /// A skill that was found during the session.
        DynamicSkill {
            /// the folder.
            skill_dir: Str<'a> = "skillDir";
            /// the skills.
            skill_names: Vec<Str<'a>> = "skillNames";
            /// the path as it is shown.
            display_path: Str<'a> = "displayPath";
        }

        /// An image that changed on disk.
        EditedImageFile {
            /// the file.
            filename: Str<'a> = "filename";
            /// the image.
            content: Read<'a> = "content";
        }

        /// A file that changed on disk.
        EditedTextFile {
            /// the file.
            filename: Str<'a> = "filename";
            /// the path as it is shown.
            display_path: Str<'a> = "displayPath";
            /// the changed lines with their numbers.
            snippet: Str<'a> = "snippet";
        }

        /// The computer and the working folder.
        Environment {
            /// the values.
            snapshot: EnvironmentSnapshot<'a> = "snapshot";
        }

        /// A mentioned file.
        File {
            /// the file.
            filename: Str<'a> = "filename";
            /// the path as it is shown.
            display_path: Str<'a> = "displayPath";
            /// the content that was read.
            content: Read<'a> = "content";
            /// the wrapping of a saved copy.
            saved_copy_framing: Object<'a> = "savedCopyFraming";
        }

        /// Whether the goal of the session is met.
        GoalStatus {
            /// the goal.
            condition: Str<'a> = "condition";
            /// whether the goal is met.
            met: bool = "met";
            /// whether the entry only marks the existence of a goal.
            sentinel: bool = "sentinel";
        }

        /// Context that a hook adds for the model.
        HookAdditionalContext {
            /// the texts.
            content: Vec<Str<'a>> = "content";
            /// the event and its matcher.
            hook_name: Str<'a> = "hookName";
            /// the event.
            hook_event: Str<'a> = "hookEvent";
            /// the tool call or the run of the hook.
            tool_use_id: Str<'a> = "toolUseID";
        }

        /// A hook blocked something.
        HookBlockingError {
            /// the error text of the hook.
            blocking_error: BlockingError<'a> = "blockingError";
            /// the event and its matcher.
            hook_name: Str<'a> = "hookName";
            /// the event.
            hook_event: Str<'a> = "hookEvent";
            /// the tool call or the run of the hook.
            tool_use_id: Str<'a> = "toolUseID";
        }

        /// A hook was cancelled.
        HookCancelled {
            /// the command.
            command: Str<'a> = "command";
            /// the duration, in milliseconds.
            duration_ms: u64 = "durationMs";
            /// the event and its matcher.
            hook_name: Str<'a> = "hookName";
            /// the event.
            hook_event: Str<'a> = "hookEvent";
            /// the tool call or the run of the hook.
            tool_use_id: Str<'a> = "toolUseID";
        }

        /// A hook failed and the turn continued.
        HookNonBlockingError {
            /// the command.
            command: Str<'a> = "command";
            /// the duration, in milliseconds.
            duration_ms: u64 = "durationMs";
            /// the exit code.
            exit_code: i64 = "exitCode";
            /// the output.
            stdout: Str<'a> = "stdout";
            /// the errors.
            stderr: Str<'a> = "stderr";
            /// the event and its matcher.
            hook_name: Str<'a> = "hookName";
            /// the event.
            hook_event: Str<'a> = "hookEvent";
            /// the tool call or the run of the hook.
            tool_use_id: Str<'a> = "toolUseID";
        }

        /// A hook decided about a permission.
        HookPermissionDecision {
            /// the decision.
            decision: Str<'a> = "decision";
            /// the event.
            hook_event: Str<'a> = "hookEvent";
            /// the tool call.
            tool_use_id: Str<'a> = "toolUseID";
        }

        /// A hook ended the turn.
        HookStoppedContinuation {
            /// the reason.
            message: Str<'a> = "message";
            /// the event and its matcher.
            hook_name: Str<'a> = "hookName";
            /// the event.
            hook_event: Str<'a> = "hookEvent";
            /// the tool call or the run of the hook.
            tool_use_id: Str<'a> = "toolUseID";
        }

        /// A hook ran.
        HookSuccess {
            /// the text sent to the model.
            content: Str<'a> = "content";
            /// the command.
            command: Str<'a> = "command";
            /// the duration, in milliseconds.
            duration_ms: u64 = "durationMs";
            /// the exit code.
            exit_code: i64 = "exitCode";
            /// the output.
            stdout: Str<'a> = "stdout";
            /// the errors.
            stderr: Str<'a> = "stderr";
            /// the event and its matcher.
            hook_name: Str<'a> = "hookName";
            /// the event.
            hook_event: Str<'a> = "hookEvent";
            /// the tool call or the run of the hook.
            tool_use_id: Str<'a> = "toolUseID";
        }

        /// A message of a hook for the person.
        HookSystemMessage {
            /// the text.
            content: Str<'a> = "content";
            /// the event and its matcher.
            hook_name: Str<'a> = "hookName";
            /// the event.
            hook_event: Str<'a> = "hookEvent";
            /// the tool call or the run of the hook.
            tool_use_id: Str<'a> = "toolUseID";
        }

        /// The instructions of the project.
        Instructions {
            /// the instructions.
            content: Raw<'a> = "content";
        }

        /// The skills used before a compaction.
        InvokedSkills {
            /// the skills.
            skills: Vec<Skill<'a>> = "skills";
        }

        /// The turn ended because it took too many steps.
        MaxTurnsReached {
            /// the steps allowed.
            max_turns: u64 = "maxTurns";
            /// the steps taken.
            turn_count: u64 = "turnCount";
        }

        /// The instructions of MCP servers changed.
        McpInstructionsDelta {
            /// the new servers.
            added_names: Vec<Str<'a>> = "addedNames";
            /// their instructions.
            added_blocks: Vec<Str<'a>> = "addedBlocks";
            /// the servers that are gone.
            removed_names: Vec<Str<'a>> = "removedNames";
        }

        /// A mentioned resource of an MCP server.
        McpResource {
            /// the server.
            server: Str<'a> = "server";
            /// the address.
            uri: Str<'a> = "uri";
            /// the name.
            name: Str<'a> = "name";
            /// its content, with `contents`.
            content: Object<'a> = "content";
        }

        /// The answering model.
        Model {
            /// the model.
            identity: ModelIdentity<'a> = "identity";
            /// the text sent to the model.
            text: Str<'a> = "text";
        }

        /// A memory file of the folder in which the model works.
        NestedMemory {
            /// the file.
            path: Str<'a> = "path";
            /// the path as it is shown.
            display_path: Str<'a> = "displayPath";
            /// its content.
            content: MemoryFile<'a> = "content";
        }

        /// The file that is open in the editor.
        OpenedFileInIde {
            /// the file.
            filename: Str<'a> = "filename";
        }

        /// The output style.
        OutputStyle {
            /// the style.
            style: Str<'a> = "style";
        }

        /// The output tokens spent.
        OutputTokenUsage {
            /// those of the turn.
            turn: u64 = "turn";
            /// those of the session.
            session: u64 = "session";
            /// those allowed.
            budget: u64 = "budget";
        }

        /// A mentioned PDF that is too large to include.
        PdfReference {
            /// the file.
            filename: Str<'a> = "filename";
            /// the path as it is shown.
            display_path: Str<'a> = "displayPath";
            /// the number of pages.
            page_count: u64 = "pageCount";
            /// its size in bytes.
            file_size: u64 = "fileSize";
        }

        /// The plan, after a compaction.
        PlanFileReference {
            /// the file.
            plan_file_path: Str<'a> = "planFilePath";
            /// the plan.
            plan_content: Str<'a> = "planContent";
        }

        /// Plan mode, in which the model only plans, is on.
        PlanMode {
            /// the level of detail: `full` or `sparse`.
            reminder_type: Str<'a> = "reminderType";
            /// whether the text is for a subagent.
            is_sub_agent: bool = "isSubAgent";
            /// the file for the plan.
            plan_file_path: Str<'a> = "planFilePath";
            /// whether a plan exists.
            plan_exists: bool = "planExists";
        }

        /// Plan mode ended.
        PlanModeExit {
            /// the file for the plan.
            plan_file_path: Str<'a> = "planFilePath";
            /// whether a plan exists.
            plan_exists: bool = "planExists";
        }

        /// Plan mode was re-entered.
        PlanModeReentry {
            /// the file for the plan.
            plan_file_path: Str<'a> = "planFilePath";
        }

        /// The system prompt, as sent until the next compaction.
        PromptSnapshot {
            /// the system prompt.
            system_prompt: Vec<Str<'a>> = "systemPrompt";
            /// the tools.
            tools: Raw<'a> = "tools";
            /// how context is rendered.
            context_rendering: Str<'a> = "contextRendering";
            /// whether reminders are folded into tool results.
            reminder_fold: bool = "reminderFold";
            /// whether the inputs of tool calls are sent as received.
            echo_wire_tool_inputs: bool = "echoWireToolInputs";
        }

        /// A prompt or notification that arrived while the model worked.
        QueuedCommand {
            /// the text or blocks.
            prompt: crate::content::Content<'a> = "prompt";
            /// `prompt` or `task-notification`.
            command_mode: Str<'a> = "commandMode";
            /// the sender.
            origin: crate::entry::Origin<'a> = "origin";
            /// whether the client wrote it.
            is_meta: bool = "isMeta";
            /// the id that it had in the queue.
            source_uuid: Str<'a> = "source_uuid";
            /// the time it was queued.
            timestamp: Str<'a> = "timestamp";
            /// the numbers of the pasted images.
            image_paste_ids: Vec<u64> = "imagePasteIds";
        }

        /// A notice that only a part of a file was read.
        ReadTruncationNotice {
            /// the text.
            banner: Str<'a> = "banner";
            /// the tool call.
            tool_use_id: Str<'a> = "toolUseID";
        }

        /// Memories that may be relevant.
        RelevantMemories {
            /// the memories.
            memories: Vec<Memory<'a>> = "memories";
        }

        /// The rules for signing commits and pull requests.
        RemoteSessionChange {
            /// the address of the session.
            url: Str<'a> = "url";
            /// the trailer for commits.
            commit: Str<'a> = "commit";
            /// the line for pull requests.
            pr: Str<'a> = "pr";
            /// whether the model is told how to send files.
            send_user_file_hint: bool = "sendUserFileHint";
            /// whether the trailer is prescribed.
            managed_commit: bool = "managedCommit";
            /// whether the line is prescribed.
            managed_pr: bool = "managedPr";
        }

        /// The lines selected in the editor.
        SelectedLinesInIde {
            /// the editor.
            ide_name: Str<'a> = "ideName";
            /// the file.
            filename: Str<'a> = "filename";
            /// the path as it is shown.
            display_path: Str<'a> = "displayPath";
            /// the first line.
            line_start: u64 = "lineStart";
            /// the last line.
            line_end: u64 = "lineEnd";
            /// the lines.
            content: Str<'a> = "content";
        }

        /// More context of the session.
        SessionContext {
            /// the context.
            context: Object<'a> = "context";
        }

        /// Skills that may be relevant.
        SkillDiscovery {
            /// the skills.
            skills: Vec<Skill<'a>> = "skills";
            /// the reason of the choice.
            signal: Str<'a> = "signal";
            /// their source.
            source: Str<'a> = "source";
        }

        /// The available skills.
        SkillListing {
            /// the lines that describe them.
            content: Str<'a> = "content";
            /// their number.
            skill_count: u64 = "skillCount";
            /// whether it is the first list.
            is_initial: bool = "isInitial";
            /// their names.
            names: Vec<Str<'a>> = "names";
            /// a digest of each.
            digests: Vec<Str<'a>> = "digests";
        }

        /// The result of the turn in the requested form.
        StructuredOutput {
            /// the result.
            data: Raw<'a> = "data";
            /// the tool call that gave it.
            tool_use_id: Str<'a> = "toolUseID";
        }

        /// A reminder of the tasks.
        TaskReminder {
            /// the tasks.
            content: Vec<TaskItem<'a>> = "content";
            /// the number of tasks.
            item_count: u64 = "itemCount";
        }

        /// A background task, after a compaction.
        TaskStatus {
            /// the task.
            task_id: Str<'a> = "taskId";
            /// the type of task.
            task_type: Str<'a> = "taskType";
            /// the status.
            status: Str<'a> = "status";
            /// a short description of the task.
            description: Str<'a> = "description";
            /// its activity since then.
            delta_summary: Str<'a> = "deltaSummary";
            /// the file with its output.
            output_file_path: Str<'a> = "outputFilePath";
        }

        /// The team that the session belongs to.
        TeamContext {
            /// the agent.
            agent_id: Str<'a> = "agentId";
            /// its name.
            agent_name: Str<'a> = "agentName";
            /// the team.
            team_name: Str<'a> = "teamName";
            /// the file of the team.
            team_config_path: Str<'a> = "teamConfigPath";
            /// the file of its tasks.
            task_list_path: Str<'a> = "taskListPath";
        }

        /// Messages of teammates.
        TeammateMailbox {
            /// the messages.
            messages: Vec<TeammateMessage<'a>> = "messages";
        }

        /// Teammates that ended.
        TeammateShutdownBatch {
            /// their number.
            count: u64 = "count";
        }

        /// The to-do list, in older clients.
        Todo {
            /// the items.
            content: Vec<crate::tool_result::Todo<'a>> = "content";
            /// the number of items.
            item_count: u64 = "itemCount";
            /// the occasion, such as `post-compact`.
            context: Str<'a> = "context";
        }

        /// A reminder of the to-do list.
        TodoReminder {
            /// the items.
            content: Vec<crate::tool_result::Todo<'a>> = "content";
            /// the number of items.
            item_count: u64 = "itemCount";
        }

        /// The tokens of the context.
        TokenUsage {
            /// those used.
            used: u64 = "used";
            /// the total.
            total: u64 = "total";
            /// the remaining tokens.
            remaining: u64 = "remaining";
        }

        /// The number of remaining tokens.
        TotalTokensReminder {
            /// the text sent to the model.
            text: Str<'a> = "text";
        }

        /// The highest effort was switched on.
        UltraEffortEnter {
            /// the level of detail: `full` or `sparse`.
            reminder_type: Str<'a> = "reminderType";
        }

        /// The highest effort was switched off.
        UltraEffortExit {}

        /// Memories in older clients.
        UltraMemory {
            /// the memories.
            content: Str<'a> = "content";
        }

        /// The effort that a word of the prompt requests.
        UltrathinkEffort {
            /// the effort.
            level: Str<'a> = "level";
        }

        /// A reminder to check the plan.
        VerifyPlanReminder {}

        /// The prompt asks for a workflow.
        WorkflowKeywordRequest {}
    }
}

view! {
    /// The error of a blocking hook.
    BlockingError {
        /// the text.
        blocking_error: Str<'a> = "blockingError";
        /// the command.
        command: Str<'a> = "command";
    }

    /// The diagnostics of one file.
    FileDiagnostics {
        /// the file.
        uri: Str<'a> = "uri";
        /// the complaints.
        diagnostics: Vec<Diagnostic<'a>> = "diagnostics";
    }

    /// One diagnostic, in the form of the language server protocol.
    Diagnostic {
        /// the text.
        message: Str<'a> = "message";
        /// `Error`, `Warning`, `Info` or `Hint`.
        severity: Str<'a> = "severity";
        /// the place: `start` and `end`, each with `line` and `character` from 0.
        range: Object<'a> = "range";
        /// the tool that complains.
        source: Str<'a> = "source";
        /// the code of the complaint.
        code: Raw<'a> = "code";
    }

    /// The computer and the working folder.
    EnvironmentSnapshot {
        /// the working folder.
        working_directory: Str<'a> = "workingDirectory";
        /// additional folders.
        additional_working_directories: Vec<Str<'a>> = "additionalWorkingDirectories";
        /// whether the folder is a git repository.
        is_git_repo: bool = "isGitRepo";
        /// whether the folder is a worktree.
        is_worktree: bool = "isWorktree";
        /// the operating system, such as `linux`.
        platform: Str<'a> = "platform";
        /// the version of the system.
        os_version: Str<'a> = "osVersion";
        /// the shell.
        shell: Str<'a> = "shell";
    }

    /// A model.
    ModelIdentity {
        /// its id.
        model_id: Str<'a> = "modelId";
        /// its name.
        marketing_name: Str<'a> = "marketingName";
        /// the end of its knowledge.
        knowledge_cutoff: Str<'a> = "knowledgeCutoff";
    }

    /// A memory file.
    MemoryFile {
        /// the file.
        path: Str<'a> = "path";
        /// its scope, such as `Project`.
        kind: Str<'a> = "type";
        /// the text sent to the model.
        content: Str<'a> = "content";
        /// the content of the file.
        raw_content: Str<'a> = "rawContent";
        /// whether the two differ.
        content_differs_from_disk: bool = "contentDiffersFromDisk";
        /// the paths that it is for.
        globs: Vec<Str<'a>> = "globs";
    }

    /// A memory that may be relevant.
    Memory {
        /// the file.
        path: Str<'a> = "path";
        /// its content.
        content: Str<'a> = "content";
        /// the line above it.
        header: Str<'a> = "header";
        /// the time of the last change, in milliseconds since 1970.
        mtime_ms: f64 = "mtimeMs";
    }

    /// A skill.
    Skill {
        /// its name.
        name: Str<'a> = "name";
        /// its file.
        path: Str<'a> = "path";
        /// its purpose.
        description: Str<'a> = "description";
        /// its text.
        content: Str<'a> = "content";
    }

    /// A message of a teammate.
    TeammateMessage {
        /// the teammate.
        from: Str<'a> = "from";
        /// the text.
        text: Str<'a> = "text";
        /// the time it was sent.
        timestamp: Str<'a> = "timestamp";
        /// the colour of the teammate.
        color: Str<'a> = "color";
    }
}
