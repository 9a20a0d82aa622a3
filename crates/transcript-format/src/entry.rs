//! One entry of a transcript: the raw line, its envelope, and a typed view of its body.
//!
//! [`Entry::parse`] reads the top-level members of a line and nothing below them. The accessors of
//! [`Entry`] are the envelope: ids, flags and places that entries of every kind may carry.
//! [`Entry::body`] returns the view for the kind of the entry; the views of messages are in this
//! module, the others in [`system`](crate::system), [`attachment`](crate::attachment),
//! [`progress`](crate::progress), [`metadata`](crate::metadata) and [`wire`](crate::wire).
//!
//! To add a field, add a row to the table of its kind. A field without a row can still be read
//! through [`Entry::object`].

use crate::attachment::Attachment;
use crate::compact::SummarizeMetadata;
use crate::content::Message;
use crate::context_refs::Context;
use crate::kind::EntryKind;
use crate::metadata::Metadata;
use crate::object::{FromRaw, Object, ParseObjectError, Raw, Str};
use crate::progress::Progress;
use crate::system::System;
use crate::tool_result::{Todo, ToolUseResult};
use crate::view::{fields, view};
use crate::wire::Wire;

/// One entry: a raw line and its top-level members.
///
/// ```
/// use transcript_format::entry::{Body, Entry};
///
/// let line = r#"{"type":"user","uuid":"u1","message":{"role":"user","content":"hi"},"new":1e999}"#;
/// let entry = Entry::parse(line)?;
/// assert_eq!(entry.uuid().as_deref(), Some("u1"));
/// assert_eq!(entry.text(), line);
/// let Body::User(user) = entry.body() else { unreachable!() };
/// assert_eq!(user.message().and_then(|message| message.role()).as_deref(), Some("user"));
/// # Ok::<(), transcript_format::object::ParseObjectError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Entry<'a>(Object<'a>);

impl<'a> Entry<'a> {
    /// Reads the members of one line. Values of known fields may have any type.
    ///
    /// # Errors
    /// [`ParseObjectError`] when the line is not exactly one JSON object.
    pub fn parse(line: &'a str) -> Result<Self, ParseObjectError> {
        Object::parse(line).map(Self)
    }

    /// Returns the entry byte for byte, without white space around it.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.0.text()
    }

    /// Returns the underlying object, which also has the fields without an accessor.
    #[must_use]
    pub fn object(&self) -> &Object<'a> {
        &self.0
    }

    /// Returns the kind that `type` names; [`EntryKind::Other`] when it is unknown or absent.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        self.type_name()
            .map_or(EntryKind::Other, |name| EntryKind::from_name(&name))
    }

    /// Returns the view for the kind of the entry.
    #[must_use]
    pub fn body(&self) -> Body<'a> {
        let object = self.0.clone();
        match self.kind() {
            EntryKind::User => Body::User(object.into()),
            EntryKind::Assistant => Body::Assistant(object.into()),
            EntryKind::System => Body::System(object.into()),
            EntryKind::Attachment => Body::Attachment(object.into()),
            EntryKind::Progress => Body::Progress(object.into()),
            kind if Metadata::knows(kind) => Body::Metadata(Metadata::new(kind, object)),
            kind if Wire::knows(kind) => Body::Wire(Wire::new(kind, object)),
            _ => Body::Other(object.raw()),
        }
    }

    /// Returns the message of a `user` or `assistant` entry.
    #[must_use]
    pub fn message(&self) -> Option<Message<'a>> {
        if self.kind().is_message() {
            self.0.read("message")
        } else {
            None
        }
    }
}

impl<'a> From<Object<'a>> for Entry<'a> {
    fn from(object: Object<'a>) -> Self {
        Self(object)
    }
}

impl<'a> FromRaw<'a> for Entry<'a> {
    fn from_raw(raw: Raw<'a>) -> Option<Self> {
        raw.object().map(Self)
    }
}

fields! {
    Entry {
        /// the name of the kind, as written.
        type_name: Str<'a> = "type";
        /// the id of the entry; unique in a file, but forked files repeat it.
        uuid: Str<'a> = "uuid";
        /// the id of the entry before it in the chain; `null` at a root.
        parent_uuid: Str<'a> = "parentUuid";
        /// on a boundary: the leaf of the conversation before it (COMPACT-1); the file often has no
        /// line of that id.
        logical_parent_uuid: Str<'a> = "logicalParentUuid";
        /// when the entry was made, RFC 3339 in UTC; not necessarily in file order.
        timestamp: Str<'a> = "timestamp";
        /// the session of the file; rewritten in copies.
        session_id: Str<'a> = "sessionId";
        /// next to `sessionId`: the session that a copied entry comes from; on the wire without
        /// `sessionId`: the session itself.
        origin_session_id: Str<'a> = "session_id";
        /// the entry this one is a copy of.
        forked_from: ForkedFrom<'a> = "forkedFrom";
        /// whether the entry belongs to a subagent or another branch outside the conversation.
        is_sidechain: bool = "isSidechain";
        /// whether the client made the entry, not the person.
        is_meta: bool = "isMeta";
        /// whether the entry is only shown and never sent to the model (MSG-6).
        is_virtual: bool = "isVirtual";
        /// the subagent that the entry belongs to.
        agent_id: Str<'a> = "agentId";
        /// the name that a teammate has in its team.
        agent_name: Str<'a> = "agentName";
        /// the colour that a teammate is shown in.
        agent_color: Str<'a> = "agentColor";
        /// the team of a teammate.
        team_name: Str<'a> = "teamName";
        /// on the wire: the kind of subagent.
        subagent_type: Str<'a> = "subagentType";
        /// on the wire: a short description of the subagent's task.
        task_description: Str<'a> = "taskDescription";
        /// the tool call that this entry is about; on `progress`, the run of the hook or subagent.
        tool_use_id: Str<'a> = "toolUseID" | "toolUseId";
        /// the tool call that started the subagent or hook.
        parent_tool_use_id: Str<'a> = "parentToolUseID" | "parentToolUseId";
        /// the prompt that the entry was made under; subagents have that of their caller.
        prompt_id: Str<'a> = "promptId";
        /// the kind of user: `external` for everyone outside of the vendor.
        user_type: Str<'a> = "userType";
        /// the program: `cli`, `sdk-cli`, `sdk-ts`, `sdk-py`, `claude-vscode`, …
        entrypoint: Str<'a> = "entrypoint";
        /// the kind of session, `bg` for a background one.
        session_kind: Str<'a> = "sessionKind";
        /// the working folder at that time.
        cwd: Str<'a> = "cwd";
        /// the branch of the working folder, `HEAD` outside of a repository.
        git_branch: Str<'a> = "gitBranch";
        /// the version of the client that wrote the line.
        version: Str<'a> = "version";
        /// a readable name for the conversation, used for its plan file.
        slug: Str<'a> = "slug";
        /// the fields that this project adds to entries.
        transcript_engine: Object<'a> = "transcriptEngine";
    }
}

/// The body of an entry, by its kind.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Body<'a> {
    /// A prompt, a tool result or a message that the client wrote.
    User(User<'a>),
    /// A reply of the model, usually one block of it.
    Assistant(Assistant<'a>),
    /// A message of the client.
    System(System<'a>),
    /// Context that is added to the conversation.
    Attachment(Attachment<'a>),
    /// A status of a running tool or hook.
    Progress(Progress<'a>),
    /// State of the session outside the chain.
    Metadata(Metadata<'a>),
    /// A message of the stream protocol that is not part of a file.
    Wire(Wire<'a>),
    /// A kind without a view, kept unchanged.
    Other(Raw<'a>),
}

view! {
    /// A `user` entry: a prompt, a tool result or a message that the client wrote.
    ///
    /// Like every view of a body it does not repeat the fields of the envelope.
    User {
        /// the message.
        message: Message<'a> = "message";
        /// the result in the form of the tool; the model never sees it.
        tool_use_result: ToolUseResult<'a> = "toolUseResult";
        /// the data that an MCP server returned in addition to its content.
        mcp_meta: McpMeta<'a> = "mcpMeta";
        /// the assistant entry with the call of this result; usually equal to `parentUuid`.
        source_tool_assistant_uuid: Str<'a> = "sourceToolAssistantUUID";
        /// the tool call that a client-written message (the body of a skill) belongs to.
        source_tool_use_id: Str<'a> = "sourceToolUseID";
        /// whether this is the summary after a boundary.
        is_compact_summary: bool = "isCompactSummary";
        /// whether the conversation view hides the entry; it is sent regardless (MSG-7).
        is_visible_in_transcript_only: bool = "isVisibleInTranscriptOnly";
        /// what a partial compaction summarized.
        summarize_metadata: SummarizeMetadata<'a> = "summarizeMetadata";
        /// the prompts of the running turn that a summary covers.
        summarized_turn_prompt_uuids: Vec<Str<'a>> = "summarizedTurnPromptUuids";
        /// the permission mode at that time.
        permission_mode: Str<'a> = "permissionMode";
        /// how the tool call was permitted.
        permission_decision: PermissionDecision<'a> = "permissionDecision";
        /// how the tool call was rejected.
        tool_denial_kind: Str<'a> = "toolDenialKind";
        /// the feedback of the person on rejecting the call.
        user_feedback: Str<'a> = "userFeedback";
        /// whether the tool ran in a sandbox.
        sandboxed: bool = "sandboxed";
        /// whether the result ends the turn.
        tool_ends_turn: bool = "toolEndsTurn";
        /// the source of the prompt: `sdk`, `system`, …
        prompt_source: Str<'a> = "promptSource";
        /// what started the turn.
        turn_origin: Str<'a> = "turnOrigin";
        /// the position of the turn in the session.
        turn_position: TurnPosition<'a> = "turnPosition";
        /// whether the entry accompanies the prompt of a turn.
        turn_companion: bool = "turnCompanion";
        /// who sent the prompt.
        origin: Origin<'a> = "origin";
        /// the priority that a queued prompt had.
        queue_priority: Str<'a> = "queuePriority";
        /// whether the attachments of a queued prompt were omitted.
        queue_skip_attachments: bool = "queueSkipAttachments";
        /// the numbers of the pasted images.
        image_paste_ids: Vec<u64> = "imagePasteIds";
        /// the to-do list at that time.
        todos: Vec<Todo<'a>> = "todos";
        /// the references of the person; some clients also write them before the text.
        contexts: Vec<Context<'a>> = "contexts";
        /// the requested amount of thinking (up to 2.1.45).
        thinking_metadata: ThinkingMetadata<'a> = "thinkingMetadata";
        /// the plan that the prompt executes.
        plan_content: Str<'a> = "planContent";
        /// lines for the permission classifier.
        classifier_meta_lines: Str<'a> = "classifierMetaLines";
        /// whether the client was shut down during the turn.
        interrupted_by_shutdown: bool = "interruptedByShutdown";
        /// the API message that was interrupted.
        interrupted_message_id: Str<'a> = "interruptedMessageId";
        /// on the wire: whether the client made the message.
        is_synthetic: bool = "isSynthetic";
        /// on the wire: whether the message was sent before.
        is_replay: bool = "isReplay";
        /// on the wire: the priority in the queue.
        priority: Str<'a> = "priority";
        /// on the wire: whether the model should answer.
        should_query: bool = "shouldQuery";
        /// on the wire: whether a client composed the message.
        client_composed: bool = "clientComposed";
        /// on the wire: pasted text.
        pasted_content: Raw<'a> = "pastedContent";
        /// on the wire: pastes inside the text.
        inline_pastes: Raw<'a> = "inlinePastes";
        /// on the wire: the files of a replayed message.
        file_attachments: Raw<'a> = "fileAttachments";
    }

    /// An `assistant` entry: a reply of the model, usually one block of it.
    Assistant {
        /// the message; all entries of one reply share `message.id` and `usage`.
        message: Message<'a> = "message";
        /// the request id that the API assigned.
        request_id: Str<'a> = "requestId";
        /// the `id` of the `api-request` line that records the request (REQ-1).
        request_ref: Str<'a> = "requestRef";
        /// the session that made the request, in copies.
        request_session_id: Str<'a> = "requestSessionId";
        /// the index of the block in the reply.
        api_block_index: u64 = "apiBlockIndex";
        /// the requested model.
        requested_model: Str<'a> = "requestedModel";
        /// the requested lifetime of the prompt cache.
        prompt_cache_requested: Str<'a> = "promptCacheRequested";
        /// the milliseconds that the input of the call took to arrive.
        tool_input_stream_ms: u64 = "toolInputStreamMs";
        /// how long the model was thinking, in milliseconds.
        thinking_duration_ms: u64 = "thinkingDurationMs";
        /// how the thinking is shown.
        thinking_display: Str<'a> = "thinkingDisplay";
        /// the requested effort.
        effort: Str<'a> = "effort";
        /// the effort requested for this turn only.
        per_turn_effort: Str<'a> = "perTurnEffort";
        /// what made the request.
        made_by: Str<'a> = "madeBy";
        /// whether the client was interrupted while the reply arrived.
        is_aborted_mid_stream: bool = "isAbortedMidStream";
        /// whether the text is an API error written by the client; it is not sent again (ERR-1).
        is_api_error_message: bool = "isApiErrorMessage";
        /// the kind of API error, such as `server_error` or `invalid_request`.
        error: Str<'a> = "error";
        /// the API's description of the error.
        error_details: Str<'a> = "errorDetails";
        /// the kind of API error in older clients.
        api_error: Str<'a> = "apiError";
        /// the HTTP status of the error.
        api_error_status: u64 = "apiErrorStatus";
        /// the error type that the API returned.
        api_error_type: Str<'a> = "apiErrorType";
        /// whether the error may disappear without action.
        api_error_is_transient: bool = "apiErrorIsTransient";
        /// whether sending the request again cannot help.
        resend_cannot_cure: bool = "resendCannotCure";
        /// whether the failed reply had no tool call.
        failed_response_had_no_tool_call: bool = "failedResponseHadNoToolCall";
        /// whether a resume removes the media of the nearest user entry that has any (ERR-3).
        heals_distinct_carrier: bool = "healsDistinctCarrier";
        /// the entries that this one replaces.
        supersedes: Vec<Str<'a>> = "supersedes";
        /// the advisor model.
        advisor_model: Str<'a> = "advisorModel";
        /// the subagent that the reply is counted for.
        attribution_agent: Str<'a> = "attributionAgent";
        /// the skill that the reply is counted for.
        attribution_skill: Str<'a> = "attributionSkill";
        /// the plugin that the reply is counted for.
        attribution_plugin: Str<'a> = "attributionPlugin";
        /// the MCP server that the reply is counted for.
        attribution_mcp_server: Str<'a> = "attributionMcpServer";
        /// the MCP tool that the reply is counted for.
        attribution_mcp_tool: Str<'a> = "attributionMcpTool";
        /// on the wire: the prompt that is answered.
        user_message_uuid: Str<'a> = "userMessageUuid";
        /// on the wire: the prompts that are answered.
        user_message_uuids: Vec<Str<'a>> = "userMessageUuids";
        /// on the wire: why the reply continues an earlier one.
        resume_reason: Str<'a> = "resumeReason";
        /// on the wire: whether the reply was aborted.
        aborted: bool = "aborted";
        /// on the wire: how full the context is.
        context_usage: Raw<'a> = "contextUsage";
        /// on the wire: the usage.
        usage_report: Raw<'a> = "usageReport";
        /// on the wire: whether the reply continues interrupted thinking.
        resumed_from_incomplete_thinking: bool = "resumedFromIncompleteThinking";
    }

    /// The entry that a copy was made from.
    ForkedFrom {
        /// the session of the original.
        session_id: Str<'a> = "sessionId";
        /// the id of the original.
        message_uuid: Str<'a> = "messageUuid";
    }

    /// Data that an MCP server returned in addition to its content.
    McpMeta {
        /// the metadata of the protocol.
        meta: Raw<'a> = "_meta";
        /// the result in structured form.
        structured_content: Raw<'a> = "structuredContent";
    }

    /// Who sent a prompt.
    Origin {
        /// `human`, `channel`, `peer`, `task-notification`, `coordinator`, …
        kind: Str<'a> = "kind";
        /// the kind of task notification.
        subkind: Str<'a> = "subkind";
        /// the address of the sender.
        from: Str<'a> = "from";
        /// the name of the sender.
        name: Str<'a> = "name";
        /// the message as it was sent.
        body: Str<'a> = "body";
        /// the task of the sender.
        sender_task_id: Str<'a> = "senderTaskId";
    }

    /// How a tool call was permitted.
    PermissionDecision {
        /// the decision: `allow`, `deny`, `ask`.
        decision: Str<'a> = "decision";
        /// who decided.
        source: Str<'a> = "source";
        /// the kind of reason.
        reason_type: Str<'a> = "reasonType";
    }

    /// The position of a turn in a session.
    TurnPosition {
        /// the number of the prompt, from 0.
        prompt_index: u64 = "promptIndex";
        /// the number of the turn, from 0.
        turn_index: u64 = "turnIndex";
    }

    /// The requested amount of thinking (up to 2.1.45).
    ThinkingMetadata {
        /// the level, such as `high` or `none`.
        level: Str<'a> = "level";
        /// whether thinking was disabled.
        disabled: bool = "disabled";
        /// the maximum number of thinking tokens.
        max_thinking_tokens: u64 = "maxThinkingTokens";
        /// the words of the prompt that requested it.
        triggers: Vec<ThinkingTrigger<'a>> = "triggers";
    }

    /// A word of a prompt that asks for thinking.
    ThinkingTrigger {
        /// the index of its first UTF-16 code unit.
        start: u64 = "start";
        /// the index after its last UTF-16 code unit.
        end: u64 = "end";
        /// the word.
        text: Str<'a> = "text";
    }
}
