//! The names of the format: entry types, system subtypes, attachment types and progress types.
//!
//! Every known name is listed once. Readers must tolerate unknown names, so each enum has an
//! `Other` and is non-exhaustive; the raw line keeps the name itself.

macro_rules! names {
    ($(#[$meta:meta])* $vis:vis enum $Enum:ident { $($Variant:ident = $name:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        $vis enum $Enum {
            /// An unknown name, or no name at all.
            #[default]
            Other,
            $(#[doc = concat!("`", $name, "`")] $Variant,)*
        }

        impl $Enum {
            /// Every known kind, in the order of the list; `Other` is not in it.
            pub const ALL: &'static [Self] = &[$(Self::$Variant,)*];

            /// Returns the kind called `name`, [`Self::Other`] when it is unknown.
            #[must_use]
            pub fn from_name(name: &str) -> Self {
                Self::from_bytes(name.as_bytes())
            }

            /// Like [`Self::from_name`], for bytes that are not decoded.
            #[must_use]
            pub fn from_bytes(name: &[u8]) -> Self {
                $(
                    if name == $name.as_bytes() {
                        return Self::$Variant;
                    }
                )*
                Self::Other
            }

            /// Returns the name as written in a transcript; empty for [`Self::Other`].
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    Self::Other => "",
                    $(Self::$Variant => $name,)*
                }
            }

            /// Returns the kind whose discriminant is `code`; unknown codes are [`Self::Other`].
            #[must_use]
            pub fn from_code(code: u8) -> Self {
                match code {
                    0 => Self::Other,
                    n => Self::ALL.get(usize::from(n) - 1).copied().unwrap_or(Self::Other),
                }
            }
        }
    };
}

names! {
    /// The `type` of an entry.
    ///
    /// The five kinds for which [`EntryKind::is_chain`] holds carry `uuid` and `parentUuid` and
    /// form the chain; all others are metadata or wire messages.
    pub enum EntryKind {
        User = "user",
        Assistant = "assistant",
        System = "system",
        Attachment = "attachment",
        Progress = "progress",
        LastPrompt = "last-prompt",
        Summary = "summary",
        CustomTitle = "custom-title",
        AiTitle = "ai-title",
        AgentName = "agent-name",
        AgentColor = "agent-color",
        AgentSetting = "agent-setting",
        Tag = "tag",
        Mode = "mode",
        PermissionMode = "permission-mode",
        QueueOperation = "queue-operation",
        FileHistorySnapshot = "file-history-snapshot",
        FileHistoryDelta = "file-history-delta",
        ContentReplacement = "content-replacement",
        Relocated = "relocated",
        WorktreeState = "worktree-state",
        PrLink = "pr-link",
        FrameLink = "frame-link",
        BridgeSession = "bridge-session",
        ToolsUsed = "tools-used",
        CostState = "cost-state",
        AtisLatch = "atis-latch",
        ApiRequest = "api-request",
        ApiRequestBlob = "api-request-blob",
        ApiRequestShape = "api-request-shape",
        TaskSummary = "task-summary",
        MarbleOrigamiCommit = "marble-origami-commit",
        MarbleOrigamiSnapshot = "marble-origami-snapshot",
        SpeculationAccept = "speculation-accept",
        Tombstone = "tombstone",
        SnipBoundary = "snip_boundary",
        AgentMetadata = "agent_metadata",
        TranscriptEngine = "transcriptEngine",
        Result = "result",
        StreamEvent = "stream_event",
        StreamRequestStart = "stream_request_start",
        ToolUseSummary = "tool_use_summary",
        ToolProgress = "tool_progress",
        PromptSuggestion = "prompt_suggestion",
        AuthStatus = "auth_status",
        RateLimitEvent = "rate_limit_event",
        ActiveGoal = "active_goal",
        ConversationReset = "conversation_reset",
        TranscriptMirror = "transcript_mirror",
        ControlRequest = "control_request",
        ControlResponse = "control_response",
        ControlCancelRequest = "control_cancel_request",
        KeepAlive = "keep_alive",
    }
}

impl EntryKind {
    /// Returns whether entries of this kind are part of the chain.
    #[must_use]
    pub const fn is_chain(self) -> bool {
        matches!(
            self,
            Self::User | Self::Assistant | Self::System | Self::Attachment | Self::Progress
        )
    }

    /// Returns whether lines of this kind carry session state: the last line counts, and clients
    /// repeat it at the end of a turn, so that it is near the end of the file, where readers look.
    #[must_use]
    pub const fn is_state(self) -> bool {
        matches!(
            self,
            Self::LastPrompt
                | Self::CustomTitle
                | Self::AiTitle
                | Self::AgentName
                | Self::AgentColor
                | Self::AgentSetting
                | Self::Tag
                | Self::Mode
                | Self::PermissionMode
                | Self::Relocated
                | Self::WorktreeState
                | Self::ToolsUsed
                | Self::CostState
                | Self::AtisLatch
        )
    }

    /// Returns whether entries of this kind hold a message of the conversation.
    #[must_use]
    pub const fn is_message(self) -> bool {
        matches!(self, Self::User | Self::Assistant)
    }
}

names! {
    /// The `subtype` of a `system` entry, on disk or on the wire.
    pub enum SystemKind {
        CompactBoundary = "compact_boundary",
        MicrocompactBoundary = "microcompact_boundary",
        SnipBoundary = "snip_boundary",
        LocalCommand = "local_command",
        LocalCommandOutput = "local_command_output",
        Informational = "informational",
        ApiError = "api_error",
        ApiRetry = "api_retry",
        ApiMetrics = "api_metrics",
        TurnDuration = "turn_duration",
        StopHookSummary = "stop_hook_summary",
        AwaySummary = "away_summary",
        BridgeStatus = "bridge_status",
        ScheduledTaskFire = "scheduled_task_fire",
        ModelRefusalFallback = "model_refusal_fallback",
        ModelRefusalNoFallback = "model_refusal_no_fallback",
        MemorySaved = "memory_saved",
        MemoryRecall = "memory_recall",
        PermissionRetry = "permission_retry",
        PermissionDenied = "permission_denied",
        AgentsKilled = "agents_killed",
        UiTelemetry = "ui_telemetry",
        AttributionSnapshot = "attribution_snapshot",
        Init = "init",
        Status = "status",
        Notification = "notification",
        TaskStarted = "task_started",
        TaskProgress = "task_progress",
        TaskUpdated = "task_updated",
        TaskNotification = "task_notification",
        BackgroundTasksChanged = "background_tasks_changed",
        HookStarted = "hook_started",
        HookProgress = "hook_progress",
        HookResponse = "hook_response",
        SessionStateChanged = "session_state_changed",
        SessionTitleChanged = "session_title_changed",
        SessionWritesLost = "session_writes_lost",
        WorkerShuttingDown = "worker_shutting_down",
        CommandsChanged = "commands_changed",
        FilesPersisted = "files_persisted",
        ElicitationComplete = "elicitation_complete",
        PluginInstall = "plugin_install",
        ThinkingTokens = "thinking_tokens",
        ControlRequestProgress = "control_request_progress",
        MirrorError = "mirror_error",
    }
}

names! {
    /// The `attachment.type` of an `attachment` entry.
    pub enum AttachmentKind {
        AgentListingDelta = "agent_listing_delta",
        AgentMention = "agent_mention",
        AlreadyReadFile = "already_read_file",
        AsyncHookResponse = "async_hook_response",
        AutoMode = "auto_mode",
        AutoModeExit = "auto_mode_exit",
        BashProgress = "bash_progress",
        BudgetUsd = "budget_usd",
        CommandPermissions = "command_permissions",
        CompactFileReference = "compact_file_reference",
        CompactionReminder = "compaction_reminder",
        CompanionIntro = "companion_intro",
        ContextEfficiency = "context_efficiency",
        CriticalSystemReminder = "critical_system_reminder",
        CurrentSessionMemory = "current_session_memory",
        Date = "date",
        DateChange = "date_change",
        DeferredToolsDelta = "deferred_tools_delta",
        DeferredToolsRecord = "deferred_tools_record",
        Diagnostics = "diagnostics",
        Directory = "directory",
        DynamicSkill = "dynamic_skill",
        EditedImageFile = "edited_image_file",
        EditedTextFile = "edited_text_file",
        Environment = "environment",
        File = "file",
        GoalStatus = "goal_status",
        HookAdditionalContext = "hook_additional_context",
        HookBlockingError = "hook_blocking_error",
        HookCancelled = "hook_cancelled",
        HookNonBlockingError = "hook_non_blocking_error",
        HookPermissionDecision = "hook_permission_decision",
        HookStoppedContinuation = "hook_stopped_continuation",
        HookSuccess = "hook_success",
        HookSystemMessage = "hook_system_message",
        Instructions = "instructions",
        InvokedSkills = "invoked_skills",
        MaxTurnsReached = "max_turns_reached",
        McpInstructionsDelta = "mcp_instructions_delta",
        McpResource = "mcp_resource",
        Model = "model",
        NestedMemory = "nested_memory",
        OpenedFileInIde = "opened_file_in_ide",
        OutputStyle = "output_style",
        OutputTokenUsage = "output_token_usage",
        PdfReference = "pdf_reference",
        PlanFileReference = "plan_file_reference",
        PlanMode = "plan_mode",
        PlanModeExit = "plan_mode_exit",
        PlanModeReentry = "plan_mode_reentry",
        PromptSnapshot = "prompt_snapshot",
        QueuedCommand = "queued_command",
        ReadTruncationNotice = "read_truncation_notice",
        RelevantMemories = "relevant_memories",
        RemoteSessionChange = "remote_session_change",
        SelectedLinesInIde = "selected_lines_in_ide",
        SessionContext = "session_context",
        SkillDiscovery = "skill_discovery",
        SkillListing = "skill_listing",
        StructuredOutput = "structured_output",
        TaskReminder = "task_reminder",
        TaskStatus = "task_status",
        TeamContext = "team_context",
        TeammateMailbox = "teammate_mailbox",
        TeammateShutdownBatch = "teammate_shutdown_batch",
        Todo = "todo",
        TodoReminder = "todo_reminder",
        TokenUsage = "token_usage",
        TotalTokensReminder = "total_tokens_reminder",
        UltraEffortEnter = "ultra_effort_enter",
        UltraEffortExit = "ultra_effort_exit",
        UltraMemory = "ultramemory",
        UltrathinkEffort = "ultrathink_effort",
        VerifyPlanReminder = "verify_plan_reminder",
        WorkflowKeywordRequest = "workflow_keyword_request",
    }
}

names! {
    /// The `data.type` of a `progress` entry (clients up to 2.1.81 wrote them).
    pub enum ProgressKind {
        AgentProgress = "agent_progress",
        BashProgress = "bash_progress",
        HookProgress = "hook_progress",
        McpProgress = "mcp_progress",
        QueryUpdate = "query_update",
        SearchResultsReceived = "search_results_received",
        WaitingForTask = "waiting_for_task",
    }
}
