//! `system` entries: notices of the client, by subtype.
//!
//! Their fields are members of the entry itself, so every view here covers the whole entry.

use crate::compact::{CompactMetadata, MicrocompactMetadata, SnipMetadata};
use crate::kind::SystemKind;
use crate::object::{Object, Raw, Str};
use crate::schema::schema;

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

schema! {
    /// A `system` entry: the fields that all subtypes share.
    System {
        subtype: Str<'a> = "subtype", "the name of the subtype, as written";
        content: Str<'a> = "content", "the text";
        level: Str<'a> = "level", "the severity: `info`, `notice`, `suggestion`, `warning`, `error`";
    }

    /// The failure of a request.
    ApiFailure {
        status: u64 = "status", "the HTTP status";
        request_id: Str<'a> = "requestID" | "requestId", "the request id that the API gave";
        message: Str<'a> = "message", "the message";
        formatted: Str<'a> = "formatted", "the message as it is shown";
        connection: Connection<'a> = "connection", "details of the connection";
        is_network_down: bool = "isNetworkDown", "whether there was no network at all";
        rate_limits: Raw<'a> = "rateLimits", "the limits that were reached";
        no_response: Raw<'a> = "noResponse", "whether there was no reply at all";
    }

    /// A connection that failed.
    Connection {
        code: Str<'a> = "code", "the code, such as `ECONNRESET`";
        message: Str<'a> = "message", "the message";
        is_ssl_error: bool = "isSSLError", "whether the encryption failed";
    }

    /// A command that the person ran.
    CommandRun {
        command: Str<'a> = "command", "its name, without the slash";
        args: Str<'a> = "args", "the text after the name";
    }

    /// One hook that ran.
    HookInfo {
        command: Str<'a> = "command", "the command";
        duration_ms: u64 = "durationMs", "the duration, in milliseconds";
    }

    /// An MCP server, as it was when a turn started.
    McpServer {
        name: Str<'a> = "name", "its name";
        status: Str<'a> = "status", "`connected`, `failed`, `needs-auth`, `pending`, `disabled`";
    }

    /// The usage of a task.
    TaskUsage {
        total_tokens: u64 = "total_tokens", "the number of tokens";
        tool_uses: u64 = "tool_uses", "the number of tool calls";
        duration_ms: u64 = "duration_ms", "the duration, in milliseconds";
    }

    /// The changed fields of a task.
    TaskPatch {
        status: Str<'a> = "status", "its status";
        description: Str<'a> = "description", "its description";
        end_time: Raw<'a> = "end_time", "when it ended";
        total_paused_ms: u64 = "total_paused_ms", "how long it was paused, in milliseconds";
        error: Str<'a> = "error", "the error it ended with";
        is_backgrounded: bool = "is_backgrounded", "whether it runs in the background";
    }

    enum SystemBody "The content of a `system` entry, by subtype." by SystemKind {
        /// The conversation before was replaced by a summary; a root of the chain (COMPACT-1).
        CompactBoundary {
            compact_metadata: CompactMetadata<'a> = "compactMetadata", "the details, with the preserved entries";
        }

        /// Old tool results were cleared; the chain continues through it (COMPACT-2).
        MicrocompactBoundary {
            microcompact_metadata: MicrocompactMetadata<'a> = "microcompactMetadata", "the details";
        }

        /// Entries were removed.
        SnipBoundary { snip_metadata: SnipMetadata<'a> = "snipMetadata", "the removed entries"; }

        /// A request failed and is retried.
        ApiError {
            error: ApiFailure<'a> = "error", "the failure; its form varies by version";
            retry_in_ms: f64 = "retryInMs", "the milliseconds until the next attempt";
            retry_attempt: u64 = "retryAttempt", "the number of the attempt, from 1";
            max_retries: u64 = "maxRetries", "the maximum number of attempts";
            source: Str<'a> = "source", "the source of the request";
        }

        /// The command of a person, or its output; sent as user text (MSG-6).
        LocalCommand {
            is_display_only: bool = "isDisplayOnly", "whether the entry is only shown and not sent, such as the coloured output of `/context`";
            command_run: CommandRun<'a> = "commandRun", "the command that was run";
            context_usage: Object<'a> = "contextUsage", "the numbers that `/context` shows";
        }

        /// The duration of a turn.
        TurnDuration {
            duration_ms: u64 = "durationMs", "the time, in milliseconds";
            message_count: u64 = "messageCount", "the messages of the conversation";
            pending_workflow_count: u64 = "pendingWorkflowCount", "the workflows that still run";
        }

        /// The effects of the hooks at the end of a turn.
        StopHookSummary {
            hook_count: u64 = "hookCount", "the number of hooks";
            hook_infos: Vec<HookInfo<'a>> = "hookInfos", "the hooks";
            hook_errors: Vec<Str<'a>> = "hookErrors", "the errors they reported";
            hook_additional_context: Vec<Raw<'a>> = "hookAdditionalContext", "the context they add for the model";
            failed_hook_error_indexes: Vec<u64> = "failedHookErrorIndexes", "which of the errors are of hooks that failed";
            prevented_continuation: bool = "preventedContinuation", "whether they stopped the turn";
            stop_reason: Str<'a> = "stopReason", "the reason for stopping it";
            has_output: bool = "hasOutput", "whether they wrote output";
        }

        /// The session can be reached remotely.
        BridgeStatus { url: Str<'a> = "url", "the address"; }

        /// The model refused and another one continues.
        ModelRefusalFallback {
            original_model: Str<'a> = "originalModel", "the model that refused";
            fallback_model: Str<'a> = "fallbackModel", "the model that continues";
            direction: Str<'a> = "direction", "the direction of the change";
            scope: Str<'a> = "scope", "what the change applies to";
            trigger: Str<'a> = "trigger", "the reason for the change";
            request_id: Str<'a> = "requestId", "the request that was refused";
            api_refusal_category: Str<'a> = "apiRefusalCategory", "the category of the refusal";
            api_refusal_explanation: Str<'a> = "apiRefusalExplanation", "the explanation of the refusal";
            refused_user_message_uuid: Str<'a> = "refusedUserMessageUuid", "the prompt that was refused";
            retracted_message_uuids: Vec<Str<'a>> = "retractedMessageUuids", "the entries that no longer count";
        }

        /// The model refused and no other one continues.
        ModelRefusalNoFallback {
            original_model: Str<'a> = "originalModel", "the model that refused";
            request_id: Str<'a> = "requestId", "the request that was refused";
            refused_user_message_uuid: Str<'a> = "refusedUserMessageUuid", "the prompt that was refused";
            retracted_message_uuids: Vec<Str<'a>> = "retractedMessageUuids", "the entries that no longer count";
        }

        /// A note of the client.
        Informational {
            prevent_continuation: bool = "preventContinuation", "whether the turn was stopped";
            tag: Str<'a> = "tag", "the kind of note";
        }

        /// Memory files were written.
        MemorySaved { written_paths: Vec<Str<'a>> = "writtenPaths", "the files"; }

        /// Commands that were denied are permitted now.
        PermissionRetry { commands: Vec<Str<'a>> = "commands", "the commands"; }

        /// Measurements of a request and its turn.
        ApiMetrics {
            ttft_ms: f64 = "ttftMs", "the milliseconds until the first token";
            otps: f64 = "otps", "the output tokens per second";
            is_p50: bool = "isP50", "whether the numbers are medians";
            turn_duration_ms: f64 = "turnDurationMs", "how long the turn took, in milliseconds";
            tool_duration_ms: f64 = "toolDurationMs", "how long its tools took";
            hook_duration_ms: f64 = "hookDurationMs", "how long its hooks took";
            classifier_duration_ms: f64 = "classifierDurationMs", "how long the permission classifier took";
            tool_count: u64 = "toolCount", "the number of tool calls";
            hook_count: u64 = "hookCount", "the number of hooks";
            classifier_count: u64 = "classifierCount", "the number of calls of the classifier";
            config_write_count: u64 = "configWriteCount", "how often the settings were written";
        }

        /// In the stream form, the start of a turn: the settings of the client. Not in files of clients.
        Init {
            api_key_source: Str<'a> = "apiKeySource", "where the API key comes from";
            claude_code_version: Str<'a> = "claude_code_version", "the version of the client";
            cwd: Str<'a> = "cwd", "the working folder";
            tools: Vec<Str<'a>> = "tools", "the names of the tools";
            mcp_servers: Vec<McpServer<'a>> = "mcp_servers", "the MCP servers";
            model: Str<'a> = "model", "the model";
            permission_mode: Str<'a> = "permissionMode", "the permission mode";
            slash_commands: Vec<Str<'a>> = "slash_commands", "the names of the commands";
            output_style: Str<'a> = "output_style", "the output style";
            skills: Vec<Raw<'a>> = "skills", "the skills";
            plugins: Vec<Raw<'a>> = "plugins", "the plugins";
            agents: Vec<Raw<'a>> = "agents", "the types of subagents";
            betas: Vec<Str<'a>> = "betas", "the beta features of the API";
            capabilities: Raw<'a> = "capabilities", "what the client supports";
            effort: Raw<'a> = "effort", "the effort";
            view_mode: Str<'a> = "view_mode", "the mode of the view";
        }

        /// In the stream form, the current work of the client.
        Status {
            status: Str<'a> = "status", "`compacting`, `requesting`; `null` when it is done";
            permission_mode: Str<'a> = "permissionMode", "the permission mode, when it changed";
            compact_result: Str<'a> = "compact_result", "how a compaction ended";
            compact_error: Str<'a> = "compact_error", "why a compaction failed";
        }

        /// In the stream form, a request failed and is retried.
        ApiRetry {
            attempt: u64 = "attempt", "the number of the attempt, from 1";
            max_retries: u64 = "max_retries", "the maximum number of attempts";
            retry_delay_ms: f64 = "retry_delay_ms", "the milliseconds until the next attempt";
            error_status: u64 = "error_status", "the HTTP status";
            error: Raw<'a> = "error", "the error";
            no_response: Raw<'a> = "no_response", "whether there was no reply at all";
        }

        /// In the stream form, a message to the person.
        Notification {
            key: Str<'a> = "key", "what it is about; a later one with the same key replaces it";
            text: Str<'a> = "text", "the text";
            priority: Str<'a> = "priority", "the priority";
            color: Str<'a> = "color", "the colour";
            timeout_ms: u64 = "timeout_ms", "how long it is shown, in milliseconds";
        }

        /// In the stream form, memories that were added to the context.
        MemoryRecall {
            mode: Str<'a> = "mode", "how they were found";
            memories: Vec<Raw<'a>> = "memories", "the memories";
        }

        /// In the stream form, a tool call that was not permitted.
        PermissionDenied {
            tool_name: Str<'a> = "tool_name", "the tool";
            tool_use_id: Str<'a> = "tool_use_id", "the call";
            agent_id: Str<'a> = "agent_id", "the subagent that made it";
            decision_reason_type: Str<'a> = "decision_reason_type", "the kind of reason";
            decision_reason: Str<'a> = "decision_reason", "the reason";
            message: Str<'a> = "message", "the message";
        }

        /// In the stream form, a task started: a subagent, a workflow, a command in the background.
        TaskStarted {
            task_id: Str<'a> = "task_id", "its id";
            run_id: Str<'a> = "run_id", "the id of the run of its workflow";
            tool_use_id: Str<'a> = "tool_use_id", "the call that started it";
            description: Str<'a> = "description", "its description";
            prompt: Str<'a> = "prompt", "its prompt";
            task_type: Str<'a> = "task_type", "the kind of task";
            subagent_type: Str<'a> = "subagent_type", "the type of the subagent";
            is_backgrounded: bool = "is_backgrounded", "whether it runs in the background";
            spawn_depth: u64 = "spawn_depth", "the nesting depth; 1 directly under the main conversation";
            parent_task_id: Str<'a> = "parent_task_id", "the task that started it";
            workflow_name: Str<'a> = "workflow_name", "the name of its workflow";
            skip_transcript: bool = "skip_transcript", "whether it is omitted from the conversation";
            ambient: bool = "ambient", "whether it belongs to no turn";
        }

        /// In the stream form, how far a task is.
        TaskProgress {
            task_id: Str<'a> = "task_id", "its id";
            description: Str<'a> = "description", "its description";
            usage: TaskUsage<'a> = "usage", "what it used so far";
            last_tool_name: Str<'a> = "last_tool_name", "the last tool that it called";
            summary: Str<'a> = "summary", "what it did";
        }

        /// In the stream form, a change of a task.
        TaskUpdated {
            task_id: Str<'a> = "task_id", "its id";
            patch: TaskPatch<'a> = "patch", "what changed";
        }

        /// In the stream form, the end of a task.
        TaskNotification {
            task_id: Str<'a> = "task_id", "its id";
            status: Str<'a> = "status", "`completed`, `failed` or `stopped`";
            reason: Str<'a> = "reason", "why it ended";
            output_file: Str<'a> = "output_file", "the file with its output";
            summary: Str<'a> = "summary", "what it did";
            usage: TaskUsage<'a> = "usage", "what it used";
            resource_links: Vec<Raw<'a>> = "resource_links", "links to its results";
        }

        /// In the stream form, the tasks that run in the background; replaces the list before.
        BackgroundTasksChanged { tasks: Vec<Raw<'a>> = "tasks", "the tasks"; }

        /// In the stream form, a hook started.
        HookStarted {
            hook_id: Str<'a> = "hook_id", "the id of the run";
            hook_name: Str<'a> = "hook_name", "the hook";
            hook_event: Str<'a> = "hook_event", "the event that it runs on";
        }

        /// In the stream form, the output of a hook so far.
        HookProgress {
            hook_id: Str<'a> = "hook_id", "the id of the run";
            hook_name: Str<'a> = "hook_name", "the hook";
            hook_event: Str<'a> = "hook_event", "the event that it runs on";
            stdout: Str<'a> = "stdout", "its standard output";
            stderr: Str<'a> = "stderr", "its standard error";
            output: Str<'a> = "output", "both together";
        }

        /// In the stream form, the end of a hook.
        HookResponse {
            hook_id: Str<'a> = "hook_id", "the id of the run";
            hook_name: Str<'a> = "hook_name", "the hook";
            hook_event: Str<'a> = "hook_event", "the event that it ran on";
            stdout: Str<'a> = "stdout", "its standard output";
            stderr: Str<'a> = "stderr", "its standard error";
            output: Str<'a> = "output", "both together";
            exit_code: i64 = "exit_code", "its exit code";
            outcome: Str<'a> = "outcome", "how it ended";
        }

        /// In the stream form, the state of the session.
        SessionStateChanged { state: Str<'a> = "state", "`idle`, `running` or `requires_action`"; }

        /// In the stream form, the title of the session.
        SessionTitleChanged { title: Str<'a> = "title", "the title"; }

        /// In the stream form, something that could not be written to the disk.
        SessionWritesLost {
            error_code: Str<'a> = "error_code", "the error of the system, such as `ENOSPC`";
            lost: Raw<'a> = "lost", "the lost data";
            transcript_session_ids: Vec<Str<'a>> = "transcript_session_ids", "the sessions it belongs to";
        }

        /// In the stream form, the end of the client.
        WorkerShuttingDown { reason: Str<'a> = "reason", "why it ends"; }

        /// In the stream form, the commands there are.
        CommandsChanged { commands: Vec<Raw<'a>> = "commands", "the commands"; }

        /// In the stream form, files that were stored.
        FilesPersisted {
            files: Vec<Raw<'a>> = "files", "the files";
            failed: Vec<Raw<'a>> = "failed", "those that could not be stored";
            processed_at: Str<'a> = "processed_at", "when they were stored";
        }

        /// In the stream form, the person answered a question of an MCP server.
        ElicitationComplete {
            mcp_server_name: Str<'a> = "mcp_server_name", "the server";
            elicitation_id: Str<'a> = "elicitation_id", "the id of the question";
        }

        /// In the stream form, the installation of a plugin.
        PluginInstall {
            status: Str<'a> = "status", "how far it is";
            name: Str<'a> = "name", "the plugin";
            error: Str<'a> = "error", "why it failed";
        }

        /// In the stream form, how many tokens the model has thought so far.
        ThinkingTokens {
            estimated_tokens: u64 = "estimated_tokens", "the number of tokens, as an estimate";
            estimated_tokens_delta: u64 = "estimated_tokens_delta", "how many more than before";
        }

        /// In the stream form, the progress of a request of the program that runs the client.
        ControlRequestProgress {
            request_id: Str<'a> = "request_id", "the id of the request";
            status: Str<'a> = "status", "how far it is";
            attempt: u64 = "attempt", "the number of the attempt";
        }

        /// In the stream form, entries that the SDK could not copy to a store. Made by the SDK.
        MirrorError {
            error: Str<'a> = "error", "the error";
            key: Raw<'a> = "key", "the session, as the store names it";
        }

        /// An event of another client's user interface.
        UiTelemetry { system_payload: Object<'a> = "systemPayload", "the event"; }

        /// The authorship of each part of the files, by another client.
        AttributionSnapshot { system_payload: Object<'a> = "systemPayload", "the snapshot"; }
    }
}
