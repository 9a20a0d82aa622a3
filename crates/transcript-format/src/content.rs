//! Messages and the blocks of their content, in the forms of the Messages API.
//!
//! Blocks without a view are kept unchanged. That includes blocks of other APIs that have no `type`
//! but a single key that names them, such as `{"cachePoint": …}`; see [`Block::name`].

use std::borrow::Cow;

use crate::object::{FromRaw, JsonKind, Object, Raw, Str};
use crate::schema::schema;
use crate::usage::Usage;

/// The content of a message, a tool result or a document.
#[derive(Clone, Debug)]
pub enum Content<'a> {
    /// A plain string.
    Text(Str<'a>),
    /// An array of blocks.
    Blocks(Vec<Block<'a>>),
    /// One block without an array around it, as in results of tools that the API runs.
    One(Block<'a>),
}

impl<'a> Content<'a> {
    /// Returns the text when the content is a plain string.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Blocks(_) | Self::One(_) => None,
        }
    }

    /// Returns the blocks; none when the content is a plain string.
    #[must_use]
    pub fn blocks(&self) -> &[Block<'a>] {
        match self {
            Self::Text(_) => &[],
            Self::Blocks(blocks) => blocks,
            Self::One(block) => std::slice::from_ref(block),
        }
    }
}

impl<'a> FromRaw<'a> for Content<'a> {
    fn from_raw(raw: Raw<'a>) -> Option<Self> {
        match raw.kind() {
            JsonKind::String => raw.str().map(Self::Text),
            JsonKind::Array => Vec::from_raw(raw).map(Self::Blocks),
            JsonKind::Object => Block::from_raw(raw).map(Self::One),
            _ => None,
        }
    }
}

impl<'a> Block<'a> {
    /// Returns the name of the block: its `type`, or its key if it has only one.
    #[must_use]
    pub fn name(&self) -> Option<Str<'a>> {
        let object = self.raw().object()?;
        object.str("type").or_else(|| match object.members() {
            [(key, _)] => Some(key.clone()),
            _ => None,
        })
    }
}

/// Every element becomes a block of some kind, so that an invalid element does not hide the others.
impl<'a> FromRaw<'a> for Block<'a> {
    fn from_raw(raw: Raw<'a>) -> Option<Self> {
        Some(raw.object().map_or(Self::Other(raw), Self::from))
    }
}

impl<'a> From<Object<'a>> for Block<'a> {
    fn from(object: Object<'a>) -> Self {
        Self::new(&object.str("type").unwrap_or(Cow::Borrowed("")), object)
    }
}

schema! {
    /// The `message` of a `user` or `assistant` entry.
    Message {
        id: Str<'a> = "id", "the id that the API gave; the entries of one reply share it";
        kind: Str<'a> = "type", "the type, always `message`";
        role: Str<'a> = "role", "`user`, `assistant`, or `system` in recorded requests";
        model: Str<'a> = "model", "the model; `<synthetic>` when the client wrote the reply itself";
        content: Content<'a> = "content", "the content";
        stop_reason: Str<'a> = "stop_reason", "why the reply ended; `null` on all but the last entry of a reply";
        stop_sequence: Str<'a> = "stop_sequence", "the sequence that ended the reply";
        stop_details: Raw<'a> = "stop_details", "more details about the end of the reply";
        usage: Usage<'a> = "usage", "the token counts";
        container: Raw<'a> = "container", "the container that code ran in";
        context_management: Raw<'a> = "context_management", "what the API cleared from the context";
        diagnostics: Raw<'a> = "diagnostics", "why the cache was missed, and similar data";
    }

    /// The source of an image or document; its fields depend on [`Source::kind`].
    Source {
        kind: Str<'a> = "type", "`base64`, `url`, `text`, `file` or `content`";
        media_type: Str<'a> = "media_type", "the media type of `data`";
        data: Str<'a> = "data", "the data: base64, or the text itself";
        url: Str<'a> = "url", "the address";
        file_id: Str<'a> = "file_id", "the uploaded file";
        content: Content<'a> = "content", "the blocks that make up the document";
    }

    /// A reference to a model by name.
    ModelRef { model: Str<'a> = "model", "the model"; }

    /// The sender of a prompt.
    Origin {
        kind: Str<'a> = "kind", "`human`, `channel`, `peer`, `task-notification`, `coordinator`, …";
        from: Str<'a> = "from", "the address of the sender";
        name: Str<'a> = "name", "the name of the sender";
        producer: Str<'a> = "producer", "what made a notification, such as `session-task`";
        run_id: Str<'a> = "runId", "the run of the task that a notification is about";
    }

    enum Block "One block of content, by its `type`." by name {
        /// Text.
        Text = "text" {
            text: Str<'a> = "text", "the text";
            citations: Raw<'a> = "citations", "the sources of the text";
        }

        /// An image.
        Image = "image" { source: Source<'a> = "source", "where the image is"; }

        /// A document.
        Document = "document" {
            source: Source<'a> = "source", "where the document is";
            title: Str<'a> = "title", "its title";
            context: Str<'a> = "context", "the context of the document, for the model";
        }

        /// A call of a tool that the client runs.
        ToolUse = "tool_use" {
            id: Str<'a> = "id", "the id that the result names";
            name: Str<'a> = "name", "the tool";
            input: Raw<'a> = "input", "the input; an object, rarely a string of JSON";
            caller: Raw<'a> = "caller", "the caller: the model, or code that it wrote";
        }

        /// The result of a tool call.
        ToolResult = "tool_result" {
            tool_use_id: Str<'a> = "tool_use_id", "the call";
            content: Content<'a> = "content", "the part of the result that the model sees";
            is_error: bool = "is_error", "whether the call failed";
        }

        /// Thinking.
        Thinking = "thinking" {
            thinking: Str<'a> = "thinking", "the text; may be empty";
            signature: Str<'a> = "signature", "the signature that the API requires when the block is sent back";
        }

        /// Thinking that is not shown.
        RedactedThinking = "redacted_thinking" { data: Str<'a> = "data", "the encrypted thinking"; }

        /// A call of a tool that the API runs.
        ServerToolUse = "server_tool_use" {
            id: Str<'a> = "id", "the id that the result names";
            name: Str<'a> = "name", "the tool";
            input: Raw<'a> = "input", "the input";
        }

        /// The result of a tool that the API ran.
        ServerToolResult = "web_search_tool_result"
            | "web_fetch_tool_result"
            | "code_execution_tool_result"
            | "bash_code_execution_tool_result"
            | "text_editor_code_execution_tool_result"
            | "tool_search_tool_result"
            | "advisor_tool_result" {
            tool_use_id: Str<'a> = "tool_use_id", "the call";
            content: Content<'a> = "content", "the results, or one result or error";
        }

        /// One result of a web search.
        WebSearchResult = "web_search_result" {
            url: Str<'a> = "url", "the page";
            title: Str<'a> = "title", "its title";
        }

        /// A fetched page.
        WebFetchResult = "web_fetch_result" {
            url: Str<'a> = "url", "the page";
            content: Content<'a> = "content", "the page as a document";
        }

        /// The output of code or of a command.
        CodeExecutionResult = "code_execution_result"
            | "encrypted_code_execution_result"
            | "bash_code_execution_result" {
            stdout: Str<'a> = "stdout", "the output";
            stderr: Str<'a> = "stderr", "the errors";
            return_code: i64 = "return_code", "the exit code";
        }

        /// The answer of an advisor model.
        AdvisorResult = "advisor_result" | "advisor_redacted_result" {
            text: Str<'a> = "text", "the answer";
            encrypted_content: Str<'a> = "encrypted_content", "the answer for the model alone";
        }

        /// The failure of a tool that the API ran.
        ServerToolError = "web_search_tool_result_error"
            | "web_fetch_tool_result_error"
            | "web_fetch_tool_error"
            | "code_execution_tool_result_error"
            | "bash_code_execution_tool_result_error"
            | "text_editor_code_execution_tool_result_error"
            | "tool_search_tool_result_error"
            | "advisor_tool_result_error" {
            error_code: Str<'a> = "error_code", "the error code";
        }

        /// A call of a tool of an MCP server that the API is connected to.
        McpToolUse = "mcp_tool_use" {
            id: Str<'a> = "id", "the id that the result names";
            name: Str<'a> = "name", "the tool";
            server_name: Str<'a> = "server_name", "the server";
            input: Raw<'a> = "input", "the input";
        }

        /// The result of an MCP tool that the API called.
        McpToolResult = "mcp_tool_result" {
            tool_use_id: Str<'a> = "tool_use_id", "the call";
            content: Content<'a> = "content", "the result";
            is_error: bool = "is_error", "whether the call failed";
        }

        /// One result of a search that the client ran.
        SearchResult = "search_result" {
            source: Str<'a> = "source", "its source";
            title: Str<'a> = "title", "its title";
            content: Content<'a> = "content", "its text blocks";
        }

        /// A file for the container in which code runs.
        ContainerUpload = "container_upload" { file_id: Str<'a> = "file_id", "the file"; }

        /// A tool that a search found and that is to be loaded.
        ToolReference = "tool_reference" { tool_name: Str<'a> = "tool_name", "the tool"; }

        /// A notice that another model continues the reply.
        Fallback = "fallback" {
            from: ModelRef<'a> = "from", "the model before";
            to: ModelRef<'a> = "to", "the model after";
        }
    }
}
