//! Messages and the blocks of their content, in the forms of the Messages API.
//!
//! Blocks without a view are kept unchanged. That includes blocks of other APIs that have no `type`
//! but a single key that names them, such as `{"cachePoint": …}`; see [`Block::name`].

use std::borrow::Cow;

use crate::object::{FromRaw, JsonKind, Raw, Str};
use crate::usage::Usage;
use crate::view::{view, views};

view! {
    /// The `message` of a `user` or `assistant` entry.
    Message {
        /// the id that the API gave; the entries of one reply share it.
        id: Str<'a> = "id";
        /// the type, always `message`.
        kind: Str<'a> = "type";
        /// `user`, `assistant`, or `system` in recorded requests.
        role: Str<'a> = "role";
        /// the model; `<synthetic>` when the client wrote the reply itself.
        model: Str<'a> = "model";
        /// the content.
        content: Content<'a> = "content";
        /// why the reply ended; `null` on all but the last entry of a reply.
        stop_reason: Str<'a> = "stop_reason";
        /// the sequence that ended the reply.
        stop_sequence: Str<'a> = "stop_sequence";
        /// more details about the end of the reply.
        stop_details: Raw<'a> = "stop_details";
        /// the token counts.
        usage: Usage<'a> = "usage";
        /// the container that code ran in.
        container: Raw<'a> = "container";
        /// what the API cleared from the context.
        context_management: Raw<'a> = "context_management";
        /// why the cache was missed, and similar data.
        diagnostics: Raw<'a> = "diagnostics";
    }
}

/// Content: of a message, a tool result or a document.
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
        Some(match raw.object() {
            Some(object) => Self::new(&object.str("type").unwrap_or(Cow::Borrowed("")), object),
            None => Self::Other(raw),
        })
    }
}

views! {
    /// One block of content, by its `type`.
    Block by name {
        /// Text.
        Text = "text" {
            /// the text.
            text: Str<'a> = "text";
            /// the sources of the text.
            citations: Vec<Citation<'a>> = "citations";
            /// the cache breakpoint after the block.
            cache_control: Raw<'a> = "cache_control";
        }

        /// An image.
        Image = "image" {
            /// where the image is.
            source: Source<'a> = "source";
            /// the cache breakpoint after the block.
            cache_control: Raw<'a> = "cache_control";
        }

        /// A document.
        Document = "document" {
            /// where the document is.
            source: Source<'a> = "source";
            /// its title.
            title: Str<'a> = "title";
            /// the context of the document, for the model.
            context: Str<'a> = "context";
            /// whether the model may cite it.
            citations: Raw<'a> = "citations";
            /// the cache breakpoint after the block.
            cache_control: Raw<'a> = "cache_control";
        }

        /// A call of a tool that the client runs.
        ToolUse = "tool_use" {
            /// the id that the result names.
            id: Str<'a> = "id";
            /// the tool.
            name: Str<'a> = "name";
            /// the input; an object, rarely a string of JSON.
            input: Raw<'a> = "input";
            /// the caller: the model, or code that it wrote.
            caller: Raw<'a> = "caller";
            /// the cache breakpoint after the block.
            cache_control: Raw<'a> = "cache_control";
        }

        /// The result of a tool call.
        ToolResult = "tool_result" {
            /// the call.
            tool_use_id: Str<'a> = "tool_use_id";
            /// the part of the result that the model sees.
            content: Content<'a> = "content";
            /// whether the call failed.
            is_error: bool = "is_error";
            /// the cache breakpoint after the block.
            cache_control: Raw<'a> = "cache_control";
        }

        /// Thinking.
        Thinking = "thinking" {
            /// the text; may be empty.
            thinking: Str<'a> = "thinking";
            /// the signature that the API requires when the block is sent back.
            signature: Str<'a> = "signature";
        }

        /// Thinking that is not shown.
        RedactedThinking = "redacted_thinking" {
            /// the encrypted thinking.
            data: Str<'a> = "data";
        }

        /// A call of a tool that the API runs.
        ServerToolUse = "server_tool_use" {
            /// the id that the result names.
            id: Str<'a> = "id";
            /// the tool.
            name: Str<'a> = "name";
            /// the input.
            input: Raw<'a> = "input";
            /// the caller: the model, or code that it wrote.
            caller: Raw<'a> = "caller";
        }

        /// The result of a tool that the API ran.
        ServerToolResult = "web_search_tool_result"
            | "web_fetch_tool_result"
            | "code_execution_tool_result"
            | "bash_code_execution_tool_result"
            | "text_editor_code_execution_tool_result"
            | "tool_search_tool_result"
            | "advisor_tool_result" {
            /// the call.
            tool_use_id: Str<'a> = "tool_use_id";
            /// the results, or one result or error.
            content: Content<'a> = "content";
            /// the caller: the model, or code that it wrote.
            caller: Raw<'a> = "caller";
        }

        /// One result of a web search.
        WebSearchResult = "web_search_result" {
            /// the page.
            url: Str<'a> = "url";
            /// its title.
            title: Str<'a> = "title";
            /// its age.
            page_age: Str<'a> = "page_age";
            /// the content for the model.
            encrypted_content: Str<'a> = "encrypted_content";
        }

        /// A fetched page.
        WebFetchResult = "web_fetch_result" {
            /// the page.
            url: Str<'a> = "url";
            /// the page as a document.
            content: Content<'a> = "content";
            /// when it was fetched.
            retrieved_at: Str<'a> = "retrieved_at";
        }

        /// The output of code or of a command.
        CodeExecutionResult = "code_execution_result"
            | "encrypted_code_execution_result"
            | "bash_code_execution_result" {
            /// the output.
            stdout: Str<'a> = "stdout";
            /// the encrypted output.
            encrypted_stdout: Str<'a> = "encrypted_stdout";
            /// the errors.
            stderr: Str<'a> = "stderr";
            /// the exit code.
            return_code: i64 = "return_code";
            /// the created files.
            content: Content<'a> = "content";
        }

        /// A file that code created.
        CodeExecutionOutput = "code_execution_output" | "bash_code_execution_output" {
            /// the file.
            file_id: Str<'a> = "file_id";
        }

        /// The result of the API's text editor.
        TextEditorResult = "text_editor_code_execution_view_result"
            | "text_editor_code_execution_create_result"
            | "text_editor_code_execution_str_replace_result" {
            /// the viewed text.
            content: Str<'a> = "content";
            /// the kind of file: `text`, `image`, `pdf`.
            file_type: Str<'a> = "file_type";
            /// whether the file existed before.
            is_file_update: bool = "is_file_update";
            /// the lines of the view.
            num_lines: u64 = "num_lines";
            /// the first line of the view, from 1.
            start_line: u64 = "start_line";
            /// the lines of the file.
            total_lines: u64 = "total_lines";
            /// the first replaced line.
            old_start: u64 = "old_start";
            /// the replaced lines.
            old_lines: u64 = "old_lines";
            /// the first new line.
            new_start: u64 = "new_start";
            /// the new lines.
            new_lines: u64 = "new_lines";
            /// the changed lines.
            lines: Vec<Str<'a>> = "lines";
        }

        /// The tools found by a tool search.
        ToolSearchResult = "tool_search_tool_search_result" {
            /// the tools.
            tool_references: Vec<Block<'a>> = "tool_references";
        }

        /// The answer of an advisor model.
        AdvisorResult = "advisor_result" | "advisor_redacted_result" {
            /// the answer.
            text: Str<'a> = "text";
            /// the answer for the model alone.
            encrypted_content: Str<'a> = "encrypted_content";
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
            /// the error code.
            error_code: Str<'a> = "error_code";
            /// the description of the error.
            error_message: Str<'a> = "error_message";
        }

        /// A call of a tool of an MCP server that the API is connected to.
        McpToolUse = "mcp_tool_use" {
            /// the id that the result names.
            id: Str<'a> = "id";
            /// the tool.
            name: Str<'a> = "name";
            /// the server.
            server_name: Str<'a> = "server_name";
            /// the input.
            input: Raw<'a> = "input";
        }

        /// The result of an MCP tool that the API called.
        McpToolResult = "mcp_tool_result" {
            /// the call.
            tool_use_id: Str<'a> = "tool_use_id";
            /// the result.
            content: Content<'a> = "content";
            /// whether the call failed.
            is_error: bool = "is_error";
        }

        /// One result of a search that the client ran.
        SearchResult = "search_result" {
            /// its source.
            source: Str<'a> = "source";
            /// its title.
            title: Str<'a> = "title";
            /// its text blocks.
            content: Content<'a> = "content";
            /// whether the model may cite it.
            citations: Raw<'a> = "citations";
            /// the cache breakpoint after the block.
            cache_control: Raw<'a> = "cache_control";
        }

        /// A file for the container in which code runs.
        ContainerUpload = "container_upload" {
            /// the file.
            file_id: Str<'a> = "file_id";
        }

        /// A tool that a search found and that is to be loaded.
        ToolReference = "tool_reference" {
            /// the tool.
            tool_name: Str<'a> = "tool_name";
        }

        /// A notice that another model continues the reply.
        Fallback = "fallback" {
            /// the model before.
            from: ModelRef<'a> = "from";
            /// the model after.
            to: ModelRef<'a> = "to";
        }
    }
}

view! {
    /// The source of an image or document; its fields depend on [`Source::kind`].
    Source {
        /// `base64`, `url`, `text`, `file` or `content`.
        kind: Str<'a> = "type";
        /// the media type of `data`.
        media_type: Str<'a> = "media_type";
        /// the data: base64, or the text itself.
        data: Str<'a> = "data";
        /// the address.
        url: Str<'a> = "url";
        /// the uploaded file.
        file_id: Str<'a> = "file_id";
        /// the blocks that make up the document.
        content: Content<'a> = "content";
    }

    /// The source of a text; its fields depend on [`Citation::kind`].
    Citation {
        /// `char_location`, `page_location`, `content_block_location`,
        /// `web_search_result_location` or `search_result_location`.
        kind: Str<'a> = "type";
        /// the cited text.
        cited_text: Str<'a> = "cited_text";
        /// the number of the document, from 0.
        document_index: u64 = "document_index";
        /// the title of the document.
        document_title: Str<'a> = "document_title";
        /// the uploaded file.
        file_id: Str<'a> = "file_id";
        /// the first character, from 0.
        start_char_index: u64 = "start_char_index";
        /// the character after the last.
        end_char_index: u64 = "end_char_index";
        /// the first page, from 1.
        start_page_number: u64 = "start_page_number";
        /// the page after the last.
        end_page_number: u64 = "end_page_number";
        /// the first block, from 0.
        start_block_index: u64 = "start_block_index";
        /// the block after the last.
        end_block_index: u64 = "end_block_index";
        /// the number of the search result, from 0.
        search_result_index: u64 = "search_result_index";
        /// the source of the search result.
        source: Str<'a> = "source";
        /// the page.
        url: Str<'a> = "url";
        /// the title of the page.
        title: Str<'a> = "title";
        /// the place in the page, for the API.
        encrypted_index: Str<'a> = "encrypted_index";
    }

    /// A reference to a model by name.
    ModelRef {
        /// the model.
        model: Str<'a> = "model";
    }
}
