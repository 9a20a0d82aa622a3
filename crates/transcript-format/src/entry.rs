//! One entry of a transcript: the raw line, its envelope, and a typed view of its body.
//!
//! [`Entry::parse`] reads the top-level members of a line and nothing below them. The accessors of
//! [`Entry`] are the envelope: ids, flags and places that entries of every kind may carry.
//! [`Entry::body`] returns the view for the kind of the entry; the views of messages are in this
//! module, the others in [`system`], [`attachment`],
//! [`progress`] and [`metadata`]. Messages of the stream protocol
//! that are not part of a file have no view.
//!
//! To add a field, add a row to the table of its kind. A field without a row can still be read
//! through [`Entry::object`].

use crate::attachment::Attachment;
use crate::content::{Message, Origin};
use crate::context_refs::Context;
use crate::kind::EntryKind;
use crate::metadata::Metadata;
use crate::object::{FromRaw, Object, ParseObjectError, Raw, Str};
use crate::progress::Progress;
use crate::schema::{View, schema};
use crate::stream_messages::StreamMessage;
use crate::system::System;
use crate::tool_result::{Todo, ToolUseResult};
use crate::{
    attachment, compact, content, context_refs, metadata, progress, stream_messages, system,
    tool_result, usage,
};

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
            kind if StreamMessage::knows(kind) => Body::Stream(StreamMessage::new(kind, object)),
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

/// Returns every view of the format with its fields, the envelope first.
pub fn views() -> impl Iterator<Item = &'static View> {
    [
        VIEWS,
        content::VIEWS,
        context_refs::VIEWS,
        usage::VIEWS,
        tool_result::VIEWS,
        system::VIEWS,
        compact::VIEWS,
        attachment::VIEWS,
        progress::VIEWS,
        metadata::VIEWS,
        stream_messages::VIEWS,
    ]
    .into_iter()
    .flatten()
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
    /// A message of the SDK that is not an entry.
    Stream(StreamMessage<'a>),
    /// A kind without a view, kept unchanged.
    Other(Raw<'a>),
}

schema! {
    own
    /// The envelope: fields that entries of every type can have.
    Entry {
        type_name: Str<'a> = "type", "the name of the kind, as written";
        uuid: Str<'a> = "uuid", "the id of the entry; unique in a file, but forked files repeat it";
        parent_uuid: Str<'a> = "parentUuid", "the id of the entry before it in the chain; `null` at a root";
        logical_parent_uuid: Str<'a> = "logicalParentUuid", "on a boundary: the leaf of the conversation before it (COMPACT-1); the file often has no line of that id";
        timestamp: Str<'a> = "timestamp", "when the entry was made, RFC 3339 in UTC; not necessarily in file order";
        session_id: Str<'a> = "sessionId", "the session of the file; rewritten in copies";
        origin_session_id: Str<'a> = "session_id", "next to `sessionId`: the session that a copied entry comes from; on the wire without `sessionId`: the session itself";
        forked_from: ForkedFrom<'a> = "forkedFrom", "the entry this one is a copy of";
        is_sidechain: bool = "isSidechain", "whether the entry belongs to a subagent or another branch outside the conversation";
        is_meta: bool = "isMeta", "whether the client made the entry, not the person";
        is_virtual: bool = "isVirtual", "whether the entry is only shown and never sent to the model (MSG-6)";
        agent_id: Str<'a> = "agentId", "the subagent that the entry belongs to";
        agent_name: Str<'a> = "agentName", "the name that a teammate has in its team";
        team_name: Str<'a> = "teamName", "the team of a teammate";
        tool_use_id: Str<'a> = "toolUseID" | "toolUseId", "the tool call that this entry is about; on `progress`, the run of the hook or subagent";
        parent_tool_use_id: Str<'a> = "parentToolUseID" | "parentToolUseId", "the tool call that started the subagent or hook";
        prompt_id: Str<'a> = "promptId", "the prompt that the entry was made under; subagents have that of their caller";
        user_type: Str<'a> = "userType", "the kind of user: `external` for everyone outside of the vendor";
        entrypoint: Str<'a> = "entrypoint", "the program: `cli`, `sdk-cli`, `sdk-ts`, `sdk-py`, `claude-vscode`, …";
        cwd: Str<'a> = "cwd", "the working folder at that time";
        git_branch: Str<'a> = "gitBranch", "the branch of the working folder, `HEAD` outside of a repository";
        version: Str<'a> = "version", "the version of the client that wrote the line";
        slug: Str<'a> = "slug", "a readable name for the conversation, used for its plan file";
        transcript_engine: Object<'a> = "transcriptEngine", "the fields that this project adds to entries";
        imported: Object<'a> = "imported", "in a line that was made from the session of another agent: the agent, and the `file`, `offset` and `length` of the record";
    }

    /// A `user` entry: a prompt, a tool result or a message that the client wrote.
    ///
    /// Like every view of a body it does not repeat the fields of the envelope.
    User {
        message: Message<'a> = "message", "the message";
        tool_use_result: ToolUseResult<'a> = "toolUseResult", "the result in the form of the tool; the model never sees it";
        mcp_meta: McpMeta<'a> = "mcpMeta", "the data that an MCP server returned in addition to its content";
        source_tool_assistant_uuid: Str<'a> = "sourceToolAssistantUUID", "the assistant entry with the call of this result; usually equal to `parentUuid`";
        source_tool_use_id: Str<'a> = "sourceToolUseID", "the tool call that a client-written message (the body of a skill) belongs to";
        is_compact_summary: bool = "isCompactSummary", "whether this is the summary after a boundary";
        is_visible_in_transcript_only: bool = "isVisibleInTranscriptOnly", "whether the conversation view hides the entry; it is sent regardless (MSG-7)";
        summarized_turn_prompt_uuids: Vec<Str<'a>> = "summarizedTurnPromptUuids", "the prompts of the running turn that a summary covers";
        permission_mode: Str<'a> = "permissionMode", "the permission mode at that time";
        permission_decision: PermissionDecision<'a> = "permissionDecision", "how the tool call was permitted";
        tool_denial_kind: Str<'a> = "toolDenialKind", "how the tool call was rejected";
        sandboxed: bool = "sandboxed", "whether the tool ran in a sandbox";
        prompt_source: Str<'a> = "promptSource", "the source of the prompt: `sdk`, `system`, …";
        turn_origin: Str<'a> = "turnOrigin", "what started the turn";
        turn_position: TurnPosition<'a> = "turnPosition", "the position of the turn in the session";
        origin: Origin<'a> = "origin", "the sender of the prompt";
        image_paste_ids: Vec<u64> = "imagePasteIds", "the numbers of the pasted images";
        todos: Vec<Todo<'a>> = "todos", "the to-do list at that time";
        contexts: Vec<Context<'a>> = "contexts", "the references of the person; some clients also write them before the text";
        thinking_metadata: ThinkingMetadata<'a> = "thinkingMetadata", "the requested amount of thinking (up to 2.1.45)";
        classifier_meta_lines: Str<'a> = "classifierMetaLines", "lines for the permission classifier";
        interrupted_message_id: Str<'a> = "interruptedMessageId", "the API message that was interrupted";
        is_synthetic: bool = "isSynthetic", "on the wire: whether the client made the message";
        row_source: Str<'a> = "rowSource", "where the line comes from: `local` (a prompt or a local command), `recorded` (a notification of a task), `harness` (a note of the client), `hook`; changes no request (2.1.331)";
        turn_companion: bool = "turnCompanion", "on `isMeta` entries: whether the entry belongs to the turn that it is written in, such as the body of a skill; changes no request";
        own_note: bool = "ownNote", "on `isMeta` entries: whether the text is a note of the client, such as the one after an answer that was cut off (2.1.331)";
        hook_text: bool = "hookText", "on `isMeta` entries: whether the text is the output of a hook, which is sent as a reminder (2.1.331)";
        hook_text_lead: Str<'a> = "hookTextLead", "the sentence that the client sends before the output of the hook; with another one here it sends the same";
        queue_skip_attachments: bool = "queueSkipAttachments", "on notifications of background tasks, and on the note before them";
        refused_message_id: Str<'a> = "refusedMessageId", "on the `isMeta` entry after a reply that ended with a refusal: the `message.id` of that reply";
        mcp_call_not_read_only: Str<'a> = "mcpCallNotReadOnly", "why the call of an MCP tool did not count as reading only, such as `no_hint`";
    }

    /// An `assistant` entry: a reply of the model, usually one block of it.
    Assistant {
        message: Message<'a> = "message", "the message; all entries of one reply share `message.id` and `usage`";
        request_id: Str<'a> = "requestId", "the request id that the API assigned";
        request_ref: Str<'a> = "requestRef", "the `id` of the `api-request` line that records the request (REQ-1)";
        request_session_id: Str<'a> = "requestSessionId", "the session that made the request, in copies";
        api_block_index: u64 = "apiBlockIndex", "the index of the block in the reply";
        requested_model: Str<'a> = "requestedModel", "the requested model";
        prompt_cache_requested: Str<'a> = "promptCacheRequested", "the requested lifetime of the prompt cache";
        tool_input_stream_ms: u64 = "toolInputStreamMs", "the milliseconds that the input of the call took to arrive";
        thinking_duration_ms: u64 = "thinkingDurationMs", "how long the model was thinking, in milliseconds";
        thinking_display: Str<'a> = "thinkingDisplay", "how the thinking is shown";
        effort: Str<'a> = "effort", "the requested effort";
        per_turn_effort: Str<'a> = "perTurnEffort", "the effort requested for this turn only";
        made_by: Str<'a> = "madeBy", "what made the request";
        is_api_error_message: bool = "isApiErrorMessage", "whether the text is an API error written by the client; it is not sent again (ERR-1)";
        error: Str<'a> = "error", "the kind of API error, such as `server_error` or `invalid_request`";
        error_details: Str<'a> = "errorDetails", "the API's description of the error";
        api_error: Str<'a> = "apiError", "the kind of API error in older clients";
        api_error_status: u64 = "apiErrorStatus", "the HTTP status of the error";
        api_error_type: Str<'a> = "apiErrorType", "the error type that the API returned";
        failed_response_had_no_tool_call: bool = "failedResponseHadNoToolCall", "whether the failed reply had no tool call";
        heals_distinct_carrier: bool = "healsDistinctCarrier", "whether a resume removes the media of the nearest user entry that has any (ERR-3)";
        advisor_model: Str<'a> = "advisorModel", "the advisor model";
        attribution_agent: Str<'a> = "attributionAgent", "in files of subagents: the kind of subagent that the reply is counted for";
        attribution_skill: Str<'a> = "attributionSkill", "the skill that the reply is counted for";
        attribution_plugin: Str<'a> = "attributionPlugin", "the plugin that the reply is counted for";
        attribution_mcp_server: Str<'a> = "attributionMcpServer", "the MCP server that the reply is counted for";
        attribution_mcp_tool: Str<'a> = "attributionMcpTool", "the MCP tool that the reply is counted for";
    }

    /// The entry that a copy was made from.
    ForkedFrom {
        session_id: Str<'a> = "sessionId", "the session of the original";
        message_uuid: Str<'a> = "messageUuid", "the id of the original";
    }

    /// Data that an MCP server returned in addition to its content.
    McpMeta {
        meta: Raw<'a> = "_meta", "the metadata of the protocol";
        structured_content: Raw<'a> = "structuredContent", "the result in structured form";
    }

    /// The permission of a tool call.
    PermissionDecision {
        decision: Str<'a> = "decision", "the decision: `allow`, `deny`, `ask`";
        source: Str<'a> = "source", "the source of the decision";
        reason_type: Str<'a> = "reasonType", "the kind of reason";
    }

    /// The position of a turn in a session.
    TurnPosition {
        prompt_index: u64 = "promptIndex", "the number of the prompt, from 0";
        turn_index: u64 = "turnIndex", "the number of the turn, from 0";
    }

    /// The requested amount of thinking (up to 2.1.45).
    ThinkingMetadata {
        level: Str<'a> = "level", "the level, such as `high` or `none`";
        disabled: bool = "disabled", "whether thinking was disabled";
        max_thinking_tokens: u64 = "maxThinkingTokens", "the maximum number of thinking tokens";
        triggers: Vec<ThinkingTrigger<'a>> = "triggers", "the words of the prompt that requested it";
    }

    /// A word of a prompt that asks for thinking.
    ThinkingTrigger {
        start: u64 = "start", "the index of its first UTF-16 code unit";
        end: u64 = "end", "the index after its last UTF-16 code unit";
        text: Str<'a> = "text", "the word";
    }
}
