//! `system` entries: notices of the client, on disk and on the wire, by subtype.
//!
//! Their fields are members of the entry itself, so every view here covers the whole entry.

use crate::compact::{CompactMetadata, MicrocompactMetadata, SnipMetadata};
use crate::kind::SystemKind;
use crate::object::{Object, Raw, Str};
use crate::view::{view, views};

view! {
    /// A `system` entry: the fields that all subtypes share.
    System {
        /// the name of the subtype, as written.
        subtype: Str<'a> = "subtype";
        /// the text.
        content: Str<'a> = "content";
        /// the severity: `info`, `notice`, `suggestion`, `warning`, `error`.
        level: Str<'a> = "level";
    }
}

impl<'a> System<'a> {
    /// Returns the kind that `subtype` names; [`SystemKind::Other`] when it is unknown or absent.
    #[must_use]
    pub fn kind(&self) -> SystemKind {
        self.subtype()
            .map_or(SystemKind::Other, |name| SystemKind::from_name(&name))
    }

    /// Returns the view for the subtype.
    #[must_use]
    pub fn body(&self) -> SystemBody<'a> {
        SystemBody::new(self.kind(), self.object().clone())
    }
}

views! {
    /// The content of a `system` entry, by subtype: first those on disk, then those of the stream
    /// protocol.
    SystemBody by SystemKind {
        /// The conversation before was replaced by a summary; a root of the chain (COMPACT-1).
        CompactBoundary {
            /// the details, with the preserved entries.
            compact_metadata: CompactMetadata<'a> = "compactMetadata";
        }

        /// Old tool results were cleared; the chain continues through it (COMPACT-2).
        MicrocompactBoundary {
            /// the details.
            microcompact_metadata: MicrocompactMetadata<'a> = "microcompactMetadata";
        }

        /// Entries were removed.
        SnipBoundary {
            /// the removed entries.
            snip_metadata: SnipMetadata<'a> = "snipMetadata";
        }

        /// A slash command that ran in the client, or its output; sent as user text (MSG-6).
        LocalCommand {
            /// the command.
            command_run: CommandRun<'a> = "commandRun";
        }

        /// A notice.
        Informational {
            /// whether a hook stopped the turn.
            prevent_continuation: bool = "preventContinuation";
            /// the subject of the notice.
            tag: Str<'a> = "tag";
        }

        /// A request failed and is retried.
        ApiError {
            /// the failure; its form varies by version.
            error: ApiFailure<'a> = "error";
            /// the cause of the network error.
            cause: NetworkCause<'a> = "cause";
            /// the milliseconds until the next attempt.
            retry_in_ms: f64 = "retryInMs";
            /// the number of the attempt, from 1.
            retry_attempt: u64 = "retryAttempt";
            /// the maximum number of attempts.
            max_retries: u64 = "maxRetries";
            /// the source of the request.
            source: Str<'a> = "source";
        }

        /// How long a turn took.
        TurnDuration {
            /// the time, in milliseconds.
            duration_ms: u64 = "durationMs";
            /// the messages of the conversation.
            message_count: u64 = "messageCount";
            /// the subagents that still run.
            pending_background_agent_count: u64 = "pendingBackgroundAgentCount";
            /// the workflows that still run.
            pending_workflow_count: u64 = "pendingWorkflowCount";
        }

        /// The effects of the hooks at the end of a turn.
        StopHookSummary {
            /// the number of hooks.
            hook_count: u64 = "hookCount";
            /// the hooks.
            hook_infos: Vec<HookInfo<'a>> = "hookInfos";
            /// the errors they reported.
            hook_errors: Vec<Str<'a>> = "hookErrors";
            /// the context they add for the model.
            hook_additional_context: Vec<Raw<'a>> = "hookAdditionalContext";
            /// the name of the group of hooks.
            hook_label: Str<'a> = "hookLabel";
            /// whether they stopped the turn.
            prevented_continuation: bool = "preventedContinuation";
            /// the reason for stopping it.
            stop_reason: Str<'a> = "stopReason";
            /// whether they wrote output.
            has_output: bool = "hasOutput";
            /// their total duration, in milliseconds.
            total_duration_ms: u64 = "totalDurationMs";
        }

        /// A summary of the time the person was away, in `content`.
        AwaySummary {}

        /// The session can be reached remotely.
        BridgeStatus {
            /// the address.
            url: Str<'a> = "url";
            /// a hint to update.
            upgrade_nudge: Str<'a> = "upgradeNudge";
        }

        /// A scheduled task started, named in `content`.
        ScheduledTaskFire {}

        /// The model refused and another one continues.
        ModelRefusalFallback {
            /// the model that refused.
            original_model: Str<'a> = "originalModel";
            /// the model that continues.
            fallback_model: Str<'a> = "fallbackModel";
            /// the direction of the change.
            direction: Str<'a> = "direction";
            /// the part of the conversation concerned.
            scope: Str<'a> = "scope";
            /// the reason for the change.
            trigger: Str<'a> = "trigger";
            /// the request that was refused.
            request_id: Str<'a> = "requestId";
            /// the category of the refusal.
            api_refusal_category: Str<'a> = "apiRefusalCategory";
            /// the explanation of the refusal.
            api_refusal_explanation: Str<'a> = "apiRefusalExplanation";
            /// the prompt that was refused.
            refused_user_message_uuid: Str<'a> = "refusedUserMessageUuid";
            /// the entries that no longer count.
            retracted_message_uuids: Vec<Str<'a>> = "retractedMessageUuids";
        }

        /// The model refused and no other one continues.
        ModelRefusalNoFallback {
            /// the model that refused.
            original_model: Str<'a> = "originalModel";
            /// the request that was refused.
            request_id: Str<'a> = "requestId";
            /// the prompt that was refused.
            refused_user_message_uuid: Str<'a> = "refusedUserMessageUuid";
            /// the entries that no longer count.
            retracted_message_uuids: Vec<Str<'a>> = "retractedMessageUuids";
        }

        /// The client wrote to its memory files.
        MemorySaved {
            /// the files.
            written_paths: Vec<Str<'a>> = "writtenPaths";
        }

        /// Commands that were rejected are now permitted.
        PermissionRetry {
            /// the commands.
            commands: Vec<Str<'a>> = "commands";
        }

        /// The person stopped all subagents.
        AgentsKilled {}

        /// How fast the API and the tools of a turn were (known from public type listings only).
        ApiMetrics {
            /// the milliseconds to the first token.
            ttft_ms: f64 = "ttftMs";
            /// the output tokens per second.
            otps: f64 = "otps";
            /// whether the numbers are medians over several requests.
            is_p50: bool = "isP50";
            /// the milliseconds spent in the turn.
            turn_duration_ms: f64 = "turnDurationMs";
            /// the milliseconds spent in tools.
            tool_duration_ms: f64 = "toolDurationMs";
            /// the milliseconds spent in hooks.
            hook_duration_ms: f64 = "hookDurationMs";
            /// the milliseconds spent in the permission classifier.
            classifier_duration_ms: f64 = "classifierDurationMs";
            /// the number of tools that ran.
            tool_count: u64 = "toolCount";
            /// the number of hooks that ran.
            hook_count: u64 = "hookCount";
            /// the number of runs of the permission classifier.
            classifier_count: u64 = "classifierCount";
            /// the number of writes of the configuration.
            config_write_count: u64 = "configWriteCount";
        }

        /// An event of another client's user interface.
        UiTelemetry {
            /// the event.
            system_payload: Object<'a> = "systemPayload";
        }

        /// The authorship of each part of the files, by another client.
        AttributionSnapshot {
            /// the snapshot.
            system_payload: Object<'a> = "systemPayload";
        }

        /// The session at the start of a turn (wire).
        Init {
            /// the source of the API key.
            api_key_source: Str<'a> = "apiKeySource";
            /// the version of the client.
            claude_code_version: Str<'a> = "claude_code_version";
            /// the working folder.
            cwd: Str<'a> = "cwd";
            /// the tools.
            tools: Vec<Str<'a>> = "tools";
            /// the MCP servers, each with `name` and `status`.
            mcp_servers: Vec<Object<'a>> = "mcp_servers";
            /// the model.
            model: Str<'a> = "model";
            /// the permission mode.
            permission_mode: Str<'a> = "permissionMode";
            /// the slash commands.
            slash_commands: Vec<Str<'a>> = "slash_commands";
            /// the output style.
            output_style: Str<'a> = "output_style";
            /// the skills.
            skills: Vec<Raw<'a>> = "skills";
            /// the plugins.
            plugins: Vec<Raw<'a>> = "plugins";
            /// the subagents.
            agents: Vec<Raw<'a>> = "agents";
            /// the beta features of the API.
            betas: Vec<Str<'a>> = "betas";
            /// the capabilities of the client.
            capabilities: Raw<'a> = "capabilities";
            /// the effort.
            effort: Raw<'a> = "effort";
            /// the presentation of the conversation.
            view_mode: Str<'a> = "view_mode";
        }

        /// The current activity of the client (wire).
        Status {
            /// `compacting`, `requesting` or `null`.
            status: Str<'a> = "status";
            /// the permission mode.
            permission_mode: Str<'a> = "permissionMode";
            /// the outcome of the compaction.
            compact_result: Str<'a> = "compact_result";
            /// the reason why the compaction failed.
            compact_error: Str<'a> = "compact_error";
        }

        /// A request is retried (wire).
        ApiRetry {
            /// the number of the attempt, from 1.
            attempt: u64 = "attempt";
            /// the maximum number of attempts.
            max_retries: u64 = "max_retries";
            /// the milliseconds until the attempt.
            retry_delay_ms: f64 = "retry_delay_ms";
            /// the HTTP status of the error.
            error_status: u64 = "error_status";
            /// the failure.
            error: Raw<'a> = "error";
            /// whether there was no reply at all.
            no_response: Raw<'a> = "no_response";
        }

        /// The output of a slash command, in `content` (wire).
        LocalCommandOutput {}

        /// A notification (wire).
        Notification {
            /// the notification that it replaces.
            key: Str<'a> = "key";
            /// the text.
            text: Str<'a> = "text";
            /// the priority.
            priority: Str<'a> = "priority";
            /// its colour.
            color: Str<'a> = "color";
            /// the milliseconds that it is shown.
            timeout_ms: u64 = "timeout_ms";
        }

        /// Memories were put into the context (wire).
        MemoryRecall {
            /// the method of selection.
            mode: Str<'a> = "mode";
            /// the memories.
            memories: Vec<Raw<'a>> = "memories";
        }

        /// A tool call was rejected (wire).
        PermissionDenied {
            /// the tool.
            tool_name: Str<'a> = "tool_name";
            /// the call.
            tool_use_id: Str<'a> = "tool_use_id";
            /// the subagent.
            agent_id: Str<'a> = "agent_id";
            /// the kind of reason.
            decision_reason_type: Str<'a> = "decision_reason_type";
            /// the reason.
            decision_reason: Str<'a> = "decision_reason";
            /// the text sent to the model.
            message: Str<'a> = "message";
        }

        /// A background task started (wire).
        TaskStarted {
            /// the task.
            task_id: Str<'a> = "task_id";
            /// the run of the task.
            run_id: Str<'a> = "run_id";
            /// the tool call that started it.
            tool_use_id: Str<'a> = "tool_use_id";
            /// a short description of the task.
            description: Str<'a> = "description";
            /// the prompt.
            prompt: Str<'a> = "prompt";
            /// the type of task.
            task_type: Str<'a> = "task_type";
            /// the kind of subagent.
            subagent_type: Str<'a> = "subagent_type";
            /// whether it runs in the background.
            is_backgrounded: bool = "is_backgrounded";
            /// the nesting depth; 1 directly under the main conversation.
            spawn_depth: u64 = "spawn_depth";
            /// the task that started it.
            parent_task_id: Str<'a> = "parent_task_id";
            /// the workflow that it belongs to.
            workflow_name: Str<'a> = "workflow_name";
            /// whether the transcript does not contain it.
            skip_transcript: bool = "skip_transcript";
            /// whether it runs on its own.
            ambient: bool = "ambient";
        }

        /// A background task made progress (wire).
        TaskProgress {
            /// the task.
            task_id: Str<'a> = "task_id";
            /// a short description of the task.
            description: Str<'a> = "description";
            /// the usage so far.
            usage: TaskUsage<'a> = "usage";
            /// the tool it used last.
            last_tool_name: Str<'a> = "last_tool_name";
            /// the activity so far.
            summary: Str<'a> = "summary";
        }

        /// A field of a background task changed (wire).
        TaskUpdated {
            /// the task.
            task_id: Str<'a> = "task_id";
            /// the fields that changed.
            patch: TaskPatch<'a> = "patch";
        }

        /// A background task ended (wire).
        TaskNotification {
            /// the task.
            task_id: Str<'a> = "task_id";
            /// `completed`, `failed` or `stopped`.
            status: Str<'a> = "status";
            /// the reason.
            reason: Str<'a> = "reason";
            /// the file with its output.
            output_file: Str<'a> = "output_file";
            /// a summary of its activity.
            summary: Str<'a> = "summary";
            /// the usage.
            usage: TaskUsage<'a> = "usage";
            /// the place of its results.
            resource_links: Vec<Raw<'a>> = "resource_links";
        }

        /// The background tasks; replaces the previous list (wire).
        BackgroundTasksChanged {
            /// the tasks.
            tasks: Vec<Object<'a>> = "tasks";
        }

        /// A hook started (wire).
        HookStarted {
            /// the run of the hook.
            hook_id: Str<'a> = "hook_id";
            /// the event and its matcher.
            hook_name: Str<'a> = "hook_name";
            /// the event.
            hook_event: Str<'a> = "hook_event";
        }

        /// A hook wrote output (wire).
        HookProgress {
            /// the run of the hook.
            hook_id: Str<'a> = "hook_id";
            /// the event and its matcher.
            hook_name: Str<'a> = "hook_name";
            /// the event.
            hook_event: Str<'a> = "hook_event";
            /// the output so far.
            stdout: Str<'a> = "stdout";
            /// the errors so far.
            stderr: Str<'a> = "stderr";
            /// both combined.
            output: Str<'a> = "output";
        }

        /// A hook ended (wire).
        HookResponse {
            /// the run of the hook.
            hook_id: Str<'a> = "hook_id";
            /// the event and its matcher.
            hook_name: Str<'a> = "hook_name";
            /// the event.
            hook_event: Str<'a> = "hook_event";
            /// the output.
            stdout: Str<'a> = "stdout";
            /// the errors.
            stderr: Str<'a> = "stderr";
            /// both combined.
            output: Str<'a> = "output";
            /// the exit code.
            exit_code: i64 = "exit_code";
            /// the outcome.
            outcome: Str<'a> = "outcome";
        }

        /// The session started or stopped working (wire).
        SessionStateChanged {
            /// `idle`, `running` or `requires_action`.
            state: Str<'a> = "state";
        }

        /// The title of the session changed (wire).
        SessionTitleChanged {
            /// the title.
            title: Str<'a> = "title";
        }

        /// Lines were lost because the disk is full (wire).
        SessionWritesLost {
            /// `ENOSPC` or `EDQUOT`.
            error_code: Str<'a> = "error_code";
            /// the number of lost writes, by file: `transcript`, `global_config`.
            lost: Raw<'a> = "lost";
            /// the sessions that lost lines.
            transcript_session_ids: Vec<Str<'a>> = "transcript_session_ids";
        }

        /// The client is shutting down (wire).
        WorkerShuttingDown {
            /// the reason.
            reason: Str<'a> = "reason";
        }

        /// The slash commands; replaces the previous list (wire).
        CommandsChanged {
            /// the commands.
            commands: Vec<Raw<'a>> = "commands";
        }

        /// Files were uploaded (wire).
        FilesPersisted {
            /// the files.
            files: Vec<Raw<'a>> = "files";
            /// the files that were not.
            failed: Vec<Raw<'a>> = "failed";
            /// the time.
            processed_at: Str<'a> = "processed_at";
        }

        /// A question of an MCP server was answered (wire).
        ElicitationComplete {
            /// the server.
            mcp_server_name: Str<'a> = "mcp_server_name";
            /// the question.
            elicitation_id: Str<'a> = "elicitation_id";
        }

        /// A plugin is being installed (wire).
        PluginInstall {
            /// the progress.
            status: Str<'a> = "status";
            /// the plugin.
            name: Str<'a> = "name";
            /// the reason of a failure.
            error: Str<'a> = "error";
        }

        /// The model is thinking (wire).
        ThinkingTokens {
            /// the tokens so far, estimated.
            estimated_tokens: u64 = "estimated_tokens";
            /// the tokens since the last such message.
            estimated_tokens_delta: u64 = "estimated_tokens_delta";
        }

        /// A control request made progress (wire).
        ControlRequestProgress {
            /// the request.
            request_id: Str<'a> = "request_id";
            /// the progress.
            status: Str<'a> = "status";
            /// the number of the attempt.
            attempt: u64 = "attempt";
        }

        /// A mirror failed; sent by the SDK, never by the client (wire).
        MirrorError {
            /// the reason.
            error: Str<'a> = "error";
            /// the session that was to be mirrored.
            key: Raw<'a> = "key";
        }
    }
}

view! {
    /// A slash command.
    CommandRun {
        /// its name.
        command: Str<'a> = "command";
        /// its arguments.
        args: Str<'a> = "args";
    }

    /// The failure of a request.
    ApiFailure {
        /// the HTTP status.
        status: u64 = "status";
        /// the request id that the API gave.
        request_id: Str<'a> = "requestID" | "requestId";
        /// the message.
        message: Str<'a> = "message";
        /// the message as it is shown.
        formatted: Str<'a> = "formatted";
        /// the body of the reply, with `type`, `error` and `request_id`.
        error: Object<'a> = "error";
        /// the headers of the reply.
        headers: Object<'a> = "headers";
        /// the cause of the network error.
        cause: NetworkCause<'a> = "cause";
        /// details of the connection.
        connection: Connection<'a> = "connection";
        /// whether there was no network at all.
        is_network_down: bool = "isNetworkDown";
        /// the limits that were reached.
        rate_limits: Raw<'a> = "rateLimits";
        /// whether there was no reply at all.
        no_response: Raw<'a> = "noResponse";
    }

    /// The cause of a network error, as Node.js reports it.
    NetworkCause {
        /// the code, such as `ECONNRESET`.
        code: Str<'a> = "code";
        /// the number of the code.
        errno: i64 = "errno";
        /// the address or path.
        path: Str<'a> = "path";
    }

    /// A connection that failed.
    Connection {
        /// the code, such as `ECONNRESET`.
        code: Str<'a> = "code";
        /// the message.
        message: Str<'a> = "message";
        /// whether the encryption failed.
        is_ssl_error: bool = "isSSLError";
    }

    /// One hook that ran.
    HookInfo {
        /// the command.
        command: Str<'a> = "command";
        /// the duration, in milliseconds.
        duration_ms: u64 = "durationMs";
    }

    /// The usage of a background task.
    TaskUsage {
        /// the tokens.
        total_tokens: u64 = "total_tokens";
        /// the tool calls.
        tool_uses: u64 = "tool_uses";
        /// the time, in milliseconds.
        duration_ms: u64 = "duration_ms";
    }

    /// The changed fields of a background task.
    TaskPatch {
        /// the status.
        status: Str<'a> = "status";
        /// a short description of the task.
        description: Str<'a> = "description";
        /// the end time.
        end_time: Raw<'a> = "end_time";
        /// the waiting time, in milliseconds.
        total_paused_ms: u64 = "total_paused_ms";
        /// the reason of a failure.
        error: Str<'a> = "error";
        /// whether it runs in the background.
        is_backgrounded: bool = "is_backgrounded";
    }
}
