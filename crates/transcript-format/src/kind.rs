//! The names of the format: entry types, system subtypes, attachment types and progress types.
//!
//! Every known name is listed once. Readers must tolerate unknown names, so each enum has an
//! `Other` and is non-exhaustive; the raw line keeps the name itself.

use crate::named;
use crate::object::{Object, Str};
use crate::title::TitleSource;

macro_rules! names {
    ($(#[$meta:meta])* $vis:vis enum $Enum:ident { $($Variant:ident = $name:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        $vis enum $Enum {
            /// An unknown name, or no name at all.
            // First, so that its code is 0: that is the code of an entry whose kind has no second name.
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

macro_rules! kinds {
    ($(#[$meta:meta])* $vis:vis enum $Enum:ident { $($Variant:ident = $name:literal => $row:expr,)* }) => {
        names! { $(#[$meta])* $vis enum $Enum { $($Variant = $name,)* } }

        impl $Enum {
            // `Other` has the discriminant 0, so the rows start with that of unknown kinds. A variant without a row
            // cannot be written, so the index is always in range.
            const ROWS: &'static [KindRow] = &[KindRow::UNKNOWN, $($row,)*];

            /// Returns the row of this kind in the table of kinds.
            #[must_use]
            pub const fn row(self) -> &'static KindRow {
                &Self::ROWS[self as usize]
            }
        }
    };
}

/// The role of the lines of a kind in a session: one row of the table of kinds.
///
/// All code that asks one of these questions reads the row, so that a new kind is a row and a line among the fixtures.
/// `docs/fields.md` has the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindRow {
    /// Whether the lines are entries of the chain.
    pub place: ChainRole,
    /// The lines that count: each, the last one, or new ones. A compaction of the file moves the others out of it.
    pub counts: Counts,
    /// The entry that the line refers to, and the field with the reference.
    pub link: Link,
    /// The member with the text of the line, if it has one text.
    pub text: Option<&'static str>,
    /// Whether an empty text removes what earlier lines gave; else lines with an empty text do not count.
    pub clears: bool,
    /// The source of the title of the session, if the text is one.
    pub title: Option<TitleSource>,
    /// Whether lists of sessions read the text.
    pub is_listed: bool,
    /// The content that the search reads.
    pub search: SearchedContent,
    /// The form in which the conversation shows the line.
    pub shown: DisplayForm,
}

named! {
    /// Whether lines of a kind are entries of the chain.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum ChainRole {
        /// Messages of the conversation.
        Message = "message",
        /// Entries of the chain that are not messages.
        Context = "context",
        /// Entries of the chain that the tree passes over (CHAIN-2).
        Progress = "progress",
        /// Metadata lines, messages of the stream protocol and lines that are not known.
        Outside = "outside",
    }
}

/// The lines of a kind that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Counts {
    /// Every line.
    Each,
    /// The last line. Clients repeat it at the end of a turn, so that it is near the end of the file, where
    /// readers look (META-1).
    Last,
    /// Every line that is not the same as the one before it, among all lines with this kind in the column.
    New(EntryKind),
}

named! {
    /// The entry that lines of a kind refer to.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Link {
        /// The entry before it, in `parentUuid`.
        Parent = "parent",
        /// The leaf of a conversation, in `leafUuid`.
        Leaf = "leaf",
        /// Entries that do not count any more.
        Tombstones = "tombstones",
    }
}

named! {
    /// The content of a line that the search reads.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum SearchedContent {
        /// None: the search does not find the lines.
        Nothing = "-",
        /// The blocks of the message.
        Blocks = "blocks",
        /// The attachment, as it was sent.
        Attachment = "attachment",
        /// The content, of the subtypes that a person or a model wrote.
        Content = "content",
        /// The text, as a title.
        Title = "title",
        /// The text, as a summary.
        Summary = "summary",
        /// The text, as a prompt in the queue.
        Queued = "queued",
    }
}

named! {
    /// The form in which the conversation shows lines of a kind.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum DisplayForm {
        /// An item for each block of the message.
        Blocks = "blocks",
        /// Context that the client added to the conversation.
        Attachment = "attachment",
        /// A note of the client.
        Note = "note",
        /// A part of the call that it reports on.
        UnderCall = "under its call",
        /// Not at all.
        Nowhere = "-",
    }
}

impl KindRow {
    /// The row of a kind that is not known: a line outside the chain that always stays, and that nothing else is read from.
    pub const UNKNOWN: Self = Self {
        place: ChainRole::Outside,
        counts: Counts::Each,
        link: Link::Parent,
        text: None,
        clears: false,
        title: None,
        is_listed: false,
        search: SearchedContent::Nothing,
        shown: DisplayForm::Nowhere,
    };

    const MESSAGE: Self = Self {
        place: ChainRole::Message,
        search: SearchedContent::Blocks,
        shown: DisplayForm::Blocks,
        ..Self::UNKNOWN
    };

    const PROGRESS: Self = Self {
        place: ChainRole::Progress,
        shown: DisplayForm::UnderCall,
        ..Self::UNKNOWN
    };

    const QUEUED: Self = Self {
        search: SearchedContent::Queued,
        ..Self::UNKNOWN
    };

    /// A kind of which the last line counts.
    const STATE: Self = Self {
        counts: Counts::Last,
        ..Self::UNKNOWN
    };

    /// A kind of state with one text.
    const fn setting(text: &'static str) -> Self {
        Self::STATE.text(text)
    }

    /// Entries of the chain that are not messages.
    const fn context(search: SearchedContent, shown: DisplayForm) -> Self {
        Self {
            place: ChainRole::Context,
            search,
            shown,
            ..Self::UNKNOWN
        }
    }

    const fn text(self, member: &'static str) -> Self {
        Self {
            text: Some(member),
            ..self
        }
    }

    const fn title(self, source: TitleSource) -> Self {
        Self {
            title: Some(source),
            search: match source {
                TitleSource::Custom | TitleSource::Ai => SearchedContent::Title,
                TitleSource::Summary => SearchedContent::Summary,
            },
            ..self
        }
    }

    /// An empty text counts.
    const fn clears(self) -> Self {
        Self {
            clears: true,
            ..self
        }
    }

    const fn listed(self) -> Self {
        Self {
            is_listed: true,
            ..self
        }
    }

    const fn names(self, link: Link) -> Self {
        Self { link, ..self }
    }

    /// A kind whose lines count if they are new among those of `kind`.
    const fn new_among(kind: EntryKind) -> Self {
        Self {
            counts: Counts::New(kind),
            ..Self::UNKNOWN
        }
    }
}

kinds! {
    /// The `type` of an entry. The role of its lines in a session is in its [row](Self::row).
    ///
    /// The five kinds for which [`EntryKind::is_chain`] holds carry `uuid` and `parentUuid` and
    /// form the chain; all others are metadata or wire messages.
    pub enum EntryKind {
        User = "user" => KindRow::MESSAGE,
        Assistant = "assistant" => KindRow::MESSAGE,
        System = "system" => KindRow::context(SearchedContent::Content, DisplayForm::Note),
        Attachment = "attachment" => KindRow::context(SearchedContent::Attachment, DisplayForm::Attachment),
        Progress = "progress" => KindRow::PROGRESS,
        // A pin as well as a setting: the same line says where the conversation ends (LEAF-6).
        LastPrompt = "last-prompt" => KindRow::setting("lastPrompt").listed().names(Link::Leaf),
        // Not a setting: most summaries are of other conversations, and only the leaf of each shows which.
        Summary = "summary" => KindRow::new_among(Self::Summary)
            .text("summary")
            .names(Link::Leaf)
            .title(TitleSource::Summary),
        // An empty title of a person clears the one before (LIST-2), an empty one of a model does not.
        CustomTitle = "custom-title" => KindRow::setting("customTitle").clears().listed().title(TitleSource::Custom),
        AiTitle = "ai-title" => KindRow::setting("aiTitle").listed().title(TitleSource::Ai),
        AgentName = "agent-name" => KindRow::setting("agentName"),
        AgentColor = "agent-color" => KindRow::setting("agentColor"),
        AgentSetting = "agent-setting" => KindRow::setting("agentSetting"),
        Tag = "tag" => KindRow::setting("tag").clears().listed(),
        Mode = "mode" => KindRow::setting("mode"),
        PermissionMode = "permission-mode" => KindRow::setting("permissionMode"),
        // Two equal lines are two events: a compaction of the file must not take one for a copy.
        QueueOperation = "queue-operation" => KindRow::QUEUED.text("content"),
        FileHistorySnapshot = "file-history-snapshot" => KindRow::new_among(Self::FileHistorySnapshot),
        // In one sequence with the snapshots: a delta changes what the next snapshot repeats, so an equal snapshot after
        // it is not a copy.
        FileHistoryDelta = "file-history-delta" => KindRow::new_among(Self::FileHistorySnapshot),
        ContentReplacement = "content-replacement" => KindRow::UNKNOWN,
        Relocated = "relocated" => KindRow::setting("relocatedCwd").listed(),
        WorktreeState = "worktree-state" => KindRow::STATE,
        // Clients repeat links at the end of turns (META-1), but a session may have several: only a line that repeats the one before it is a copy.
        PrLink = "pr-link" => KindRow::new_among(Self::PrLink),
        FrameLink = "frame-link" => KindRow::new_among(Self::FrameLink),
        BridgeSession = "bridge-session" => KindRow::new_among(Self::BridgeSession),
        ToolsUsed = "tools-used" => KindRow::STATE,
        CostState = "cost-state" => KindRow::STATE,
        AtisLatch = "atis-latch" => KindRow::setting("atis"),
        // Answers refer to recorded requests, and `verify --requests` replays them: all lines stay.
        ApiRequest = "api-request" => KindRow::UNKNOWN,
        ApiRequestBlob = "api-request-blob" => KindRow::UNKNOWN,
        ApiRequestShape = "api-request-shape" => KindRow::UNKNOWN,
        TaskSummary = "task-summary" => KindRow::UNKNOWN,
        MarbleOrigamiCommit = "marble-origami-commit" => KindRow::UNKNOWN,
        MarbleOrigamiSnapshot = "marble-origami-snapshot" => KindRow::UNKNOWN,
        SpeculationAccept = "speculation-accept" => KindRow::UNKNOWN,
        Tombstone = "tombstone" => KindRow::UNKNOWN,
        SnipBoundary = "snip_boundary" => KindRow::UNKNOWN,
        AgentMetadata = "agent_metadata" => KindRow::UNKNOWN,
        TranscriptEngine = "transcriptEngine" => KindRow::UNKNOWN.names(Link::Tombstones),
        // From here on: messages of the stream protocol. They are not entries, but programs store them in files.
        Result = "result" => KindRow::UNKNOWN,
        StreamEvent = "stream_event" => KindRow::UNKNOWN,
        StreamRequestStart = "stream_request_start" => KindRow::UNKNOWN,
        ToolUseSummary = "tool_use_summary" => KindRow::UNKNOWN,
        ToolProgress = "tool_progress" => KindRow::UNKNOWN,
        PromptSuggestion = "prompt_suggestion" => KindRow::UNKNOWN,
        AuthStatus = "auth_status" => KindRow::UNKNOWN,
        RateLimitEvent = "rate_limit_event" => KindRow::UNKNOWN,
        ActiveGoal = "active_goal" => KindRow::UNKNOWN,
        ConversationReset = "conversation_reset" => KindRow::UNKNOWN,
        TranscriptMirror = "transcript_mirror" => KindRow::UNKNOWN,
        ControlRequest = "control_request" => KindRow::UNKNOWN,
        ControlResponse = "control_response" => KindRow::UNKNOWN,
        ControlCancelRequest = "control_cancel_request" => KindRow::UNKNOWN,
        KeepAlive = "keep_alive" => KindRow::UNKNOWN,
    }
}

impl EntryKind {
    /// Returns whether entries of this kind are part of the chain.
    #[must_use]
    pub const fn is_chain(self) -> bool {
        !matches!(self.row().place, ChainRole::Outside)
    }

    /// Returns whether entries of this kind are nodes of the tree: those of the chain without
    /// progress, which is passed over (CHAIN-2).
    #[must_use]
    pub const fn is_in_tree(self) -> bool {
        matches!(self.row().place, ChainRole::Message | ChainRole::Context)
    }

    /// Returns whether lines of this kind carry session state: the last line counts.
    #[must_use]
    pub const fn is_state(self) -> bool {
        matches!(self.row().counts, Counts::Last)
    }

    /// Returns whether entries of this kind hold a message of the conversation.
    #[must_use]
    pub const fn is_message(self) -> bool {
        matches!(self.row().place, ChainRole::Message)
    }

    /// Returns the text of a line of this kind, if it is one that counts: some text, or an empty one that clears
    /// what earlier lines gave.
    #[must_use]
    pub fn text_of<'a>(self, line: &Object<'a>) -> Option<Str<'a>> {
        let row = self.row();
        let text = line.str(row.text?)?;
        // Lists look for a text, and the state of a session must agree with them: elsewhere an empty one does not count.
        (row.clears || !text.is_empty()).then_some(text)
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
