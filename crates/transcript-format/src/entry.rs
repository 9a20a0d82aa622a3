//! One entry of a transcript: the kept line, its envelope, and a typed view of its body.
//!
//! [`Entry::parse`] reads the top-level members of a line and nothing below them. The accessors of
//! [`Entry`] are the envelope: ids, flags and places that entries of every kind may carry
//! (sdk.md 2, corpus.md 7.1). [`Entry::body`] gives the view for the kind of the entry; messages
//! have theirs here, the other kinds in [`system`](crate::system),
//! [`attachment`](crate::attachment), [`progress`](crate::progress),
//! [`metadata`](crate::metadata) and [`wire`](crate::wire).
//!
//! A new field is one more row in the table of its kind. A field that has no row is still there:
//! see [`Entry::object`].

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

/// One entry: a kept line and its top-level members.
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
    /// Reads the members of one line; the values of known fields may have any type.
    ///
    /// # Errors
    /// [`ParseObjectError`] when the line is not exactly one JSON object.
    pub fn parse(line: &'a str) -> Result<Self, ParseObjectError> {
        Object::parse(line).map(Self)
    }

    /// Returns the entry as it stands in the line, byte for byte, without white space around it.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.0.text()
    }

    /// Returns the object itself, with the fields that have no accessor.
    #[must_use]
    pub fn object(&self) -> &Object<'a> {
        &self.0
    }

    /// Returns what `type` names; [`EntryKind::Other`] when it is unknown or absent.
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
        /// the id of the entry; unique in a file, not across files (corpus.md 5).
        uuid: Str<'a> = "uuid";
        /// the id of the entry before it in the chain; `null` at a root.
        parent_uuid: Str<'a> = "parentUuid";
        /// on a boundary: the leaf of the conversation before it; often names a line that was never
        /// written (corpus.md 4).
        logical_parent_uuid: Str<'a> = "logicalParentUuid";
        /// when the entry was made, RFC 3339 in UTC; not in the order of the file.
        timestamp: Str<'a> = "timestamp";
        /// the session of the file; rewritten in copies (corpus.md 5).
        session_id: Str<'a> = "sessionId";
        /// beside `sessionId`: the session a copied entry comes from (corpus.md 5); on the wire
        /// alone: the session itself.
        origin_session_id: Str<'a> = "session_id";
        /// the entry this one is a copy of.
        forked_from: ForkedFrom<'a> = "forkedFrom";
        /// whether the entry belongs to a subagent or another branch outside the conversation.
        is_sidechain: bool = "isSidechain";
        /// whether the client made the entry, not the person.
        is_meta: bool = "isMeta";
        /// whether the entry is only shown and never sent to the model (rig.md 6).
        is_virtual: bool = "isVirtual";
        /// the subagent that the entry belongs to.
        agent_id: Str<'a> = "agentId";
        /// the name that a teammate has in its team.
        agent_name: Str<'a> = "agentName";
        /// the colour that a teammate is shown in.
        agent_color: Str<'a> = "agentColor";
        /// the team of a teammate.
        team_name: Str<'a> = "teamName";
        /// what kind of subagent it is, on the wire.
        subagent_type: Str<'a> = "subagentType";
        /// what the subagent was asked for in a few words, on the wire.
        task_description: Str<'a> = "taskDescription";
        /// the tool call that this entry is about; on `progress`, the run of the hook or subagent.
        tool_use_id: Str<'a> = "toolUseID" | "toolUseId";
        /// the tool call that started the subagent or hook.
        parent_tool_use_id: Str<'a> = "parentToolUseID" | "parentToolUseId";
        /// the prompt that the entry was made under; subagents have that of their caller.
        prompt_id: Str<'a> = "promptId";
        /// who typed: always `external` outside of the vendor.
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
        /// the fields that this engine adds to lines of its own (design.md 3.9).
        transcript_engine: Object<'a> = "transcriptEngine";
    }
}

/// The body of an entry, by its kind.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Body<'a> {
    /// A prompt, a tool result or a message that the client made up.
    User(User<'a>),
    /// A reply of the model, as a rule one block of it.
    Assistant(Assistant<'a>),
    /// A message of the client.
    System(System<'a>),
    /// Context that is added to the conversation.
    Attachment(Attachment<'a>),
    /// A state of a running tool or hook.
    Progress(Progress<'a>),
    /// State of the session outside the chain.
    Metadata(Metadata<'a>),
    /// A message of the stream protocol that is not part of a file.
    Wire(Wire<'a>),
    /// A kind that has no view; kept as it is.
    Other(Raw<'a>),
}

view! {
    /// A `user` entry: a prompt, a tool result or a message that the client made up.
    ///
    /// Like every view of a body it leaves out what the envelope has.
    User {
        /// the message.
        message: Message<'a> = "message";
        /// what the tool returned, in the form of the tool; the model never sees it.
        tool_use_result: ToolUseResult<'a> = "toolUseResult";
        /// what an MCP server returned beside its content.
        mcp_meta: McpMeta<'a> = "mcpMeta";
        /// the assistant entry whose call this is the result of; equals `parentUuid` as a rule.
        source_tool_assistant_uuid: Str<'a> = "sourceToolAssistantUUID";
        /// the tool call that a made-up message (the body of a skill) belongs to.
        source_tool_use_id: Str<'a> = "sourceToolUseID";
        /// whether this is the summary after a boundary.
        is_compact_summary: bool = "isCompactSummary";
        /// whether the entry is hidden in the conversation; it is sent to the model all the same.
        is_visible_in_transcript_only: bool = "isVisibleInTranscriptOnly";
        /// what a partial compaction summed up.
        summarize_metadata: SummarizeMetadata<'a> = "summarizeMetadata";
        /// the prompts of the running turn that a summary covers.
        summarized_turn_prompt_uuids: Vec<Str<'a>> = "summarizedTurnPromptUuids";
        /// the permission mode at that time.
        permission_mode: Str<'a> = "permissionMode";
        /// how the tool call was permitted.
        permission_decision: PermissionDecision<'a> = "permissionDecision";
        /// how the tool call was refused.
        tool_denial_kind: Str<'a> = "toolDenialKind";
        /// what the person wrote when refusing the call.
        user_feedback: Str<'a> = "userFeedback";
        /// whether the tool ran in a sandbox.
        sandboxed: bool = "sandboxed";
        /// whether the result ends the turn.
        tool_ends_turn: bool = "toolEndsTurn";
        /// where the prompt comes from: `sdk`, `system`, …
        prompt_source: Str<'a> = "promptSource";
        /// what started the turn.
        turn_origin: Str<'a> = "turnOrigin";
        /// where in the session the turn stands.
        turn_position: TurnPosition<'a> = "turnPosition";
        /// whether the entry goes along with the prompt of a turn.
        turn_companion: bool = "turnCompanion";
        /// who sent the prompt.
        origin: Origin<'a> = "origin";
        /// the priority that a queued prompt had.
        queue_priority: Str<'a> = "queuePriority";
        /// whether attachments were left out for a queued prompt.
        queue_skip_attachments: bool = "queueSkipAttachments";
        /// the numbers of the pasted images.
        image_paste_ids: Vec<u64> = "imagePasteIds";
        /// the to-do list at that time.
        todos: Vec<Todo<'a>> = "todos";
        /// what the person referred to; some clients put it before the text, too.
        contexts: Vec<Context<'a>> = "contexts";
        /// how much the model was to think (up to 2.1.45).
        thinking_metadata: ThinkingMetadata<'a> = "thinkingMetadata";
        /// the plan that the prompt carries out.
        plan_content: Str<'a> = "planContent";
        /// lines for the permission classifier.
        classifier_meta_lines: Str<'a> = "classifierMetaLines";
        /// whether the client was shut down during the turn.
        interrupted_by_shutdown: bool = "interruptedByShutdown";
        /// the API message that was interrupted.
        interrupted_message_id: Str<'a> = "interruptedMessageId";
        /// on the wire: whether the client made the message.
        is_synthetic: bool = "isSynthetic";
        /// on the wire: whether the message is one that was sent before.
        is_replay: bool = "isReplay";
        /// on the wire: the priority in the queue.
        priority: Str<'a> = "priority";
        /// on the wire: whether the model is to answer.
        should_query: bool = "shouldQuery";
        /// on the wire: whether a client composed the message.
        client_composed: bool = "clientComposed";
        /// on the wire: pasted text.
        pasted_content: Raw<'a> = "pastedContent";
        /// on the wire: pastes inside the text.
        inline_pastes: Raw<'a> = "inlinePastes";
        /// on the wire: files that go with a replayed message.
        file_attachments: Raw<'a> = "fileAttachments";
    }

    /// An `assistant` entry: a reply of the model, as a rule one block of it.
    Assistant {
        /// the message; all entries of one reply share `message.id` and `usage`.
        message: Message<'a> = "message";
        /// the request id that the API gave.
        request_id: Str<'a> = "requestId";
        /// the `request-request` entry of the request (rig.md 2).
        request_ref: Str<'a> = "requestRef";
        /// the session that made the request, in copies.
        request_session_id: Str<'a> = "requestSessionId";
        /// the index of the block in the reply.
        api_block_index: u64 = "apiBlockIndex";
        /// the model that was asked for.
        requested_model: Str<'a> = "requestedModel";
        /// the lifetime of the prompt cache that was asked for.
        prompt_cache_requested: Str<'a> = "promptCacheRequested";
        /// the milliseconds that the input of the call took to arrive.
        tool_input_stream_ms: u64 = "toolInputStreamMs";
        /// the milliseconds that the model thought.
        thinking_duration_ms: u64 = "thinkingDurationMs";
        /// how the thinking is shown.
        thinking_display: Str<'a> = "thinkingDisplay";
        /// the effort that was asked for.
        effort: Str<'a> = "effort";
        /// the effort that was asked for in this turn only.
        per_turn_effort: Str<'a> = "perTurnEffort";
        /// what made the request.
        made_by: Str<'a> = "madeBy";
        /// whether the client was cut off while the reply came in.
        is_aborted_mid_stream: bool = "isAbortedMidStream";
        /// whether the text is an API error that the client wrote; it is not sent again (rig.md 8).
        is_api_error_message: bool = "isApiErrorMessage";
        /// the kind of API error, such as `server_error` or `invalid_request`.
        error: Str<'a> = "error";
        /// what the API said about the error.
        error_details: Str<'a> = "errorDetails";
        /// the kind of API error in older clients.
        api_error: Str<'a> = "apiError";
        /// the HTTP status of the error.
        api_error_status: u64 = "apiErrorStatus";
        /// the error type that the API gave.
        api_error_type: Str<'a> = "apiErrorType";
        /// whether the error may go away by itself.
        api_error_is_transient: bool = "apiErrorIsTransient";
        /// whether sending the request again cannot help.
        resend_cannot_cure: bool = "resendCannotCure";
        /// whether the failed reply had no tool call.
        failed_response_had_no_tool_call: bool = "failedResponseHadNoToolCall";
        /// whether the nearest user entry with an image is cleaned on resume (rig.md 8).
        heals_distinct_carrier: bool = "healsDistinctCarrier";
        /// the entries that this one replaces.
        supersedes: Vec<Str<'a>> = "supersedes";
        /// the model that advised.
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
        /// on the wire: why the reply goes on with an earlier one.
        resume_reason: Str<'a> = "resumeReason";
        /// on the wire: whether the reply was cut off.
        aborted: bool = "aborted";
        /// on the wire: how full the context is.
        context_usage: Raw<'a> = "contextUsage";
        /// on the wire: what was used.
        usage_report: Raw<'a> = "usageReport";
        /// on the wire: whether the reply goes on with thinking that was cut off.
        resumed_from_incomplete_thinking: bool = "resumedFromIncompleteThinking";
    }

    /// The entry that a copy was made from.
    ForkedFrom {
        /// the session of the original.
        session_id: Str<'a> = "sessionId";
        /// the id of the original.
        message_uuid: Str<'a> = "messageUuid";
    }

    /// What an MCP server returned beside its content.
    McpMeta {
        /// the metadata of the protocol.
        meta: Raw<'a> = "_meta";
        /// the result in structured form.
        structured_content: Raw<'a> = "structuredContent";
    }

    /// Who sent a prompt.
    Origin {
        /// `human`, `channel`, `peer`, `task-notification`, `coordinator`, … (sdk.md 7).
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

    /// Where in a session a turn stands.
    TurnPosition {
        /// the number of the prompt, from 0.
        prompt_index: u64 = "promptIndex";
        /// the number of the turn, from 0.
        turn_index: u64 = "turnIndex";
    }

    /// How much the model was to think (up to 2.1.45).
    ThinkingMetadata {
        /// the level, such as `high` or `none`.
        level: Str<'a> = "level";
        /// whether thinking was switched off.
        disabled: bool = "disabled";
        /// the most tokens that may be spent.
        max_thinking_tokens: u64 = "maxThinkingTokens";
        /// the words of the prompt that asked for it.
        triggers: Vec<ThinkingTrigger<'a>> = "triggers";
    }

    /// A word of a prompt that asks for thinking.
    ThinkingTrigger {
        /// the index of its first UTF-16 code unit.
        start: u64 = "start";
        /// the index behind its last UTF-16 code unit.
        end: u64 = "end";
        /// the word.
        text: Str<'a> = "text";
    }
}
