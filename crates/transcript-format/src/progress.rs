//! `progress` entries: status of running tools and hooks, written by 2.1.11 to 2.1.81.
//!
//! They are nodes of the chain: later entries may be their children (CHAIN-2).

use crate::kind::ProgressKind;
use crate::object::{Object, Raw, Str};
use crate::schema::schema;

impl<'a> Progress<'a> {
    /// Returns the kind that `data.type` names; [`ProgressKind::Other`] if unknown or absent.
    #[must_use]
    pub fn kind(&self) -> ProgressKind {
        let name = self.data().and_then(|data| data.str("type"));
        name.map_or(ProgressKind::Other, |name| ProgressKind::from_name(&name))
    }

    /// Returns the view of `data` by its type.
    #[must_use]
    pub fn body(&self) -> Option<ProgressBody<'a>> {
        self.data().map(|data| ProgressBody::new(self.kind(), data))
    }
}

schema! {
    /// A `progress` entry.
    Progress { data: Object<'a> = "data", "the status; `Progress::body` returns it by type"; }

    enum ProgressBody "The `data` of a `progress` entry, by its type." by ProgressKind {
        /// A subagent wrote an entry.
        AgentProgress {
            agent_id: Str<'a> = "agentId", "the subagent";
            message: Object<'a> = "message", "a complete copy of the subagent's entry, with its uuid in the subagent's file";
            normalized_messages: Vec<Raw<'a>> = "normalizedMessages", "the messages that the client shows";
            prompt: Str<'a> = "prompt", "the prompt of the subagent";
        }

        /// A command wrote output.
        BashProgress {
            output: Str<'a> = "output", "the last lines of the output";
            full_output: Str<'a> = "fullOutput", "the output so far";
            elapsed_time_seconds: f64 = "elapsedTimeSeconds", "the seconds since the start";
            total_lines: u64 = "totalLines", "the lines of the output so far";
            total_bytes: u64 = "totalBytes", "the bytes of the output so far";
            timeout_ms: u64 = "timeoutMs", "the milliseconds after which the command is stopped";
            task_id: Str<'a> = "taskId", "the background task";
        }

        /// A hook is running.
        HookProgress {
            hook_event: Str<'a> = "hookEvent", "the event, such as `PostToolUse`";
            hook_name: Str<'a> = "hookName", "the event and its matcher, such as `PostToolUse:Read`";
            command: Str<'a> = "command", "the command that runs";
        }

        /// An MCP tool is running.
        McpProgress {
            status: Str<'a> = "status", "`started`, `completed` or `failed`";
            server_name: Str<'a> = "serverName", "the server";
            tool_name: Str<'a> = "toolName", "the tool";
            elapsed_time_ms: u64 = "elapsedTimeMs", "the milliseconds since the start";
        }

        /// A web search continues with another query.
        QueryUpdate { query: Str<'a> = "query", "the query"; }

        /// A web search has results.
        SearchResultsReceived {
            query: Str<'a> = "query", "the query";
            result_count: u64 = "resultCount", "the number of results";
        }
    }
}
