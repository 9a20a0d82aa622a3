//! `system` entries: what the client says, on disk and on the wire, by subtype.
//!
//! The fields stand in the entry itself, so every view here is over the whole entry.

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
        /// how much it matters: `info`, `notice`, `suggestion`, `warning`, `error`.
        level: Str<'a> = "level";
    }
}

impl<'a> System<'a> {
    /// Returns what `subtype` names; [`SystemKind::Other`] when it is unknown or absent.
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
    /// What a `system` entry says, by subtype: first those on disk (corpus.md 7.3), then those of
    /// the stream protocol (sdk.md 7).
    SystemBody by SystemKind {
        /// The conversation before was replaced by a summary; a root of the chain.
        CompactBoundary {
            /// what was compacted and what was kept.
            compact_metadata: CompactMetadata<'a> = "compactMetadata";
        }

        /// Old tool results were cleared; the chain goes through it.
        MicrocompactBoundary {
            /// what was cleared.
            microcompact_metadata: MicrocompactMetadata<'a> = "microcompactMetadata";
        }

        /// Entries were cut out.
        SnipBoundary {
            /// what was cut out.
            snip_metadata: SnipMetadata<'a> = "snipMetadata";
        }

        /// A slash command that ran in the client, or its output; sent to the model as user text.
        LocalCommand {
            /// the command.
            command_run: CommandRun<'a> = "commandRun";
        }

        /// A notice.
        Informational {
            /// whether a hook stopped the turn.
            prevent_continuation: bool = "preventContinuation";
            /// what the notice is about.
            tag: Str<'a> = "tag";
        }

        /// A request failed and is sent again.
        ApiError {
            /// what failed; its form changed over the versions.
            error: ApiFailure<'a> = "error";
            /// what caused the error in the network.
            cause: NetworkCause<'a> = "cause";
            /// the milliseconds until the next attempt.
            retry_in_ms: f64 = "retryInMs";
            /// the number of the attempt, from 1.
            retry_attempt: u64 = "retryAttempt";
            /// how many attempts there are at most.
            max_retries: u64 = "maxRetries";
            /// what made the request.
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

        /// What the hooks at the end of a turn did.
        StopHookSummary {
            /// how many hooks ran.
            hook_count: u64 = "hookCount";
            /// the hooks.
            hook_infos: Vec<HookInfo<'a>> = "hookInfos";
            /// what they reported as errors.
            hook_errors: Vec<Str<'a>> = "hookErrors";
            /// what they want the model to know.
            hook_additional_context: Vec<Raw<'a>> = "hookAdditionalContext";
            /// the name of the group of hooks.
            hook_label: Str<'a> = "hookLabel";
            /// whether they stopped the turn.
            prevented_continuation: bool = "preventedContinuation";
            /// why they stopped it.
            stop_reason: Str<'a> = "stopReason";
            /// whether they wrote something.
            has_output: bool = "hasOutput";
            /// how long they took together, in milliseconds.
            total_duration_ms: u64 = "totalDurationMs";
        }

        /// What happened while the person was away, in `content`.
        AwaySummary {}

        /// The session can be reached from elsewhere.
        BridgeStatus {
            /// the address.
            url: Str<'a> = "url";
            /// a hint to update.
            upgrade_nudge: Str<'a> = "upgradeNudge";
        }

        /// A scheduled task started, named in `content`.
        ScheduledTaskFire {}

        /// The model refused and another one goes on.
        ModelRefusalFallback {
            /// the model that refused.
            original_model: Str<'a> = "originalModel";
            /// the model that goes on.
            fallback_model: Str<'a> = "fallbackModel";
            /// to which side the model changes.
            direction: Str<'a> = "direction";
            /// how much of the conversation it concerns.
            scope: Str<'a> = "scope";
            /// what made the model change.
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

        /// The model refused and no other one goes on.
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

        /// Commands that were refused are now permitted.
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
            /// how many tools ran.
            tool_count: u64 = "toolCount";
            /// how many hooks ran.
            hook_count: u64 = "hookCount";
            /// how often the permission classifier ran.
            classifier_count: u64 = "classifierCount";
            /// how often the configuration was written.
            config_write_count: u64 = "configWriteCount";
        }

        /// An event of another client's user interface.
        UiTelemetry {
            /// the event.
            system_payload: Object<'a> = "systemPayload";
        }

        /// Who wrote which part of the files, by another client.
        AttributionSnapshot {
            /// the snapshot.
            system_payload: Object<'a> = "systemPayload";
        }

        /// The session as it is at the start of a turn (wire).
        Init {
            /// where the API key comes from.
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
            /// what the client can do.
            capabilities: Raw<'a> = "capabilities";
            /// the effort.
            effort: Raw<'a> = "effort";
            /// how the conversation is shown.
            view_mode: Str<'a> = "view_mode";
        }

        /// What the client is doing (wire).
        Status {
            /// `compacting`, `requesting` or `null`.
            status: Str<'a> = "status";
            /// the permission mode.
            permission_mode: Str<'a> = "permissionMode";
            /// how the compaction ended.
            compact_result: Str<'a> = "compact_result";
            /// why the compaction failed.
            compact_error: Str<'a> = "compact_error";
        }

        /// A request is sent again (wire).
        ApiRetry {
            /// the number of the attempt, from 1.
            attempt: u64 = "attempt";
            /// how many attempts there are at most.
            max_retries: u64 = "max_retries";
            /// the milliseconds until the attempt.
            retry_delay_ms: f64 = "retry_delay_ms";
            /// the HTTP status of the error.
            error_status: u64 = "error_status";
            /// what failed.
            error: Raw<'a> = "error";
            /// whether there was no reply at all.
            no_response: Raw<'a> = "no_response";
        }

        /// What a slash command wrote, in `content` (wire).
        LocalCommandOutput {}

        /// A notification (wire).
        Notification {
            /// what it replaces, when shown again.
            key: Str<'a> = "key";
            /// the text.
            text: Str<'a> = "text";
            /// how much it matters.
            priority: Str<'a> = "priority";
            /// its colour.
            color: Str<'a> = "color";
            /// the milliseconds that it is shown.
            timeout_ms: u64 = "timeout_ms";
        }

        /// Memories were put into the context (wire).
        MemoryRecall {
            /// how they were chosen.
            mode: Str<'a> = "mode";
            /// the memories.
            memories: Vec<Raw<'a>> = "memories";
        }

        /// A tool call was refused (wire).
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
            /// what the model is told.
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
            /// the task in a few words.
            description: Str<'a> = "description";
            /// what it was asked.
            prompt: Str<'a> = "prompt";
            /// the type of task.
            task_type: Str<'a> = "task_type";
            /// the kind of subagent.
            subagent_type: Str<'a> = "subagent_type";
            /// whether it runs in the background.
            is_backgrounded: bool = "is_backgrounded";
            /// how deep it is nested; 1 under the main conversation.
            spawn_depth: u64 = "spawn_depth";
            /// the task that started it.
            parent_task_id: Str<'a> = "parent_task_id";
            /// the workflow that it belongs to.
            workflow_name: Str<'a> = "workflow_name";
            /// whether it has no place in the transcript.
            skip_transcript: bool = "skip_transcript";
            /// whether it runs by itself.
            ambient: bool = "ambient";
        }

        /// A background task goes on (wire).
        TaskProgress {
            /// the task.
            task_id: Str<'a> = "task_id";
            /// the task in a few words.
            description: Str<'a> = "description";
            /// what it used so far.
            usage: TaskUsage<'a> = "usage";
            /// the tool it used last.
            last_tool_name: Str<'a> = "last_tool_name";
            /// what it did so far.
            summary: Str<'a> = "summary";
        }

        /// Something about a background task changed (wire).
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
            /// why.
            reason: Str<'a> = "reason";
            /// the file with its output.
            output_file: Str<'a> = "output_file";
            /// what it did.
            summary: Str<'a> = "summary";
            /// what it used.
            usage: TaskUsage<'a> = "usage";
            /// where its results are.
            resource_links: Vec<Raw<'a>> = "resource_links";
        }

        /// The background tasks; the list replaces the one before (wire).
        BackgroundTasksChanged {
            /// the tasks.
            tasks: Vec<Object<'a>> = "tasks";
        }

        /// A hook started (wire).
        HookStarted {
            /// the run of the hook.
            hook_id: Str<'a> = "hook_id";
            /// the event and what it matched.
            hook_name: Str<'a> = "hook_name";
            /// the event.
            hook_event: Str<'a> = "hook_event";
        }

        /// A hook wrote something (wire).
        HookProgress {
            /// the run of the hook.
            hook_id: Str<'a> = "hook_id";
            /// the event and what it matched.
            hook_name: Str<'a> = "hook_name";
            /// the event.
            hook_event: Str<'a> = "hook_event";
            /// the output so far.
            stdout: Str<'a> = "stdout";
            /// the errors so far.
            stderr: Str<'a> = "stderr";
            /// both.
            output: Str<'a> = "output";
        }

        /// A hook ended (wire).
        HookResponse {
            /// the run of the hook.
            hook_id: Str<'a> = "hook_id";
            /// the event and what it matched.
            hook_name: Str<'a> = "hook_name";
            /// the event.
            hook_event: Str<'a> = "hook_event";
            /// the output.
            stdout: Str<'a> = "stdout";
            /// the errors.
            stderr: Str<'a> = "stderr";
            /// both.
            output: Str<'a> = "output";
            /// the exit code.
            exit_code: i64 = "exit_code";
            /// how it ended.
            outcome: Str<'a> = "outcome";
        }

        /// The session began or stopped to work (wire).
        SessionStateChanged {
            /// `idle`, `running` or `requires_action`.
            state: Str<'a> = "state";
        }

        /// The session has another title (wire).
        SessionTitleChanged {
            /// the title.
            title: Str<'a> = "title";
        }

        /// Lines were lost because the disk is full (wire).
        SessionWritesLost {
            /// `ENOSPC` or `EDQUOT`.
            error_code: Str<'a> = "error_code";
            /// how many writes were lost, by file: `transcript`, `global_config`.
            lost: Raw<'a> = "lost";
            /// the sessions that lost lines.
            transcript_session_ids: Vec<Str<'a>> = "transcript_session_ids";
        }

        /// The client ends (wire).
        WorkerShuttingDown {
            /// why.
            reason: Str<'a> = "reason";
        }

        /// The slash commands; the list replaces the one before (wire).
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
            /// when.
            processed_at: Str<'a> = "processed_at";
        }

        /// A question of an MCP server was answered (wire).
        ElicitationComplete {
            /// the server.
            mcp_server_name: Str<'a> = "mcp_server_name";
            /// the question.
            elicitation_id: Str<'a> = "elicitation_id";
        }

        /// A plugin is installed (wire).
        PluginInstall {
            /// how far it is.
            status: Str<'a> = "status";
            /// the plugin.
            name: Str<'a> = "name";
            /// why it failed.
            error: Str<'a> = "error";
        }

        /// The model thinks (wire).
        ThinkingTokens {
            /// the tokens so far, estimated.
            estimated_tokens: u64 = "estimated_tokens";
            /// the tokens since the last such message.
            estimated_tokens_delta: u64 = "estimated_tokens_delta";
        }

        /// A control request goes on (wire).
        ControlRequestProgress {
            /// the request.
            request_id: Str<'a> = "request_id";
            /// how far it is.
            status: Str<'a> = "status";
            /// the number of the attempt.
            attempt: u64 = "attempt";
        }

        /// A mirror failed; made by the SDK, never by the client (wire).
        MirrorError {
            /// why.
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
        /// what follows it.
        args: Str<'a> = "args";
    }

    /// What failed in a request.
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
        /// what caused the error in the network.
        cause: NetworkCause<'a> = "cause";
        /// what is known of the connection.
        connection: Connection<'a> = "connection";
        /// whether there was no network at all.
        is_network_down: bool = "isNetworkDown";
        /// the limits that were reached.
        rate_limits: Raw<'a> = "rateLimits";
        /// whether there was no reply at all.
        no_response: Raw<'a> = "noResponse";
    }

    /// What caused an error in the network, as Node.js reports it.
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
        /// how long it took, in milliseconds.
        duration_ms: u64 = "durationMs";
    }

    /// What a background task used.
    TaskUsage {
        /// the tokens.
        total_tokens: u64 = "total_tokens";
        /// the tool calls.
        tool_uses: u64 = "tool_uses";
        /// the time, in milliseconds.
        duration_ms: u64 = "duration_ms";
    }

    /// The fields of a background task that changed.
    TaskPatch {
        /// the status.
        status: Str<'a> = "status";
        /// the task in a few words.
        description: Str<'a> = "description";
        /// when it ended.
        end_time: Raw<'a> = "end_time";
        /// how long it waited, in milliseconds.
        total_paused_ms: u64 = "total_paused_ms";
        /// why it failed.
        error: Str<'a> = "error";
        /// whether it runs in the background.
        is_backgrounded: bool = "is_backgrounded";
    }
}
