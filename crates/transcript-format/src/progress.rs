//! `progress` entries: status of running tools and hooks, written by 2.1.11 to 2.1.81.
//!
//! They are nodes of the chain: later entries may be their children (CHAIN-2).

use crate::entry::Entry;
use crate::kind::ProgressKind;
use crate::object::{Object, Raw, Str};
use crate::view::{view, views};

view! {
    /// A `progress` entry.
    Progress {
        /// the status; [`Progress::body`] returns it by type.
        data: Object<'a> = "data";
    }
}

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

views! {
    /// The `data` of a `progress` entry, by its type.
    ProgressBody by ProgressKind {
        /// A subagent wrote an entry.
        AgentProgress {
            /// the subagent.
            agent_id: Str<'a> = "agentId";
            /// a complete copy of the subagent's entry, with its uuid in the subagent's file.
            message: Entry<'a> = "message";
            /// the messages that the client shows.
            normalized_messages: Vec<Raw<'a>> = "normalizedMessages";
            /// the prompt of the subagent.
            prompt: Str<'a> = "prompt";
            /// the subagent that is taken up again.
            resume: Str<'a> = "resume";
        }

        /// A command wrote output.
        BashProgress {
            /// the last lines of the output.
            output: Str<'a> = "output";
            /// the output so far.
            full_output: Str<'a> = "fullOutput";
            /// the seconds since the start.
            elapsed_time_seconds: f64 = "elapsedTimeSeconds";
            /// the lines of the output so far.
            total_lines: u64 = "totalLines";
            /// the bytes of the output so far.
            total_bytes: u64 = "totalBytes";
            /// the milliseconds after which the command is stopped.
            timeout_ms: u64 = "timeoutMs";
            /// the background task.
            task_id: Str<'a> = "taskId";
        }

        /// A hook is running.
        HookProgress {
            /// the event, such as `PostToolUse`.
            hook_event: Str<'a> = "hookEvent";
            /// the event and its matcher, such as `PostToolUse:Read`.
            hook_name: Str<'a> = "hookName";
            /// the command that runs.
            command: Str<'a> = "command";
            /// the status text that the person sees.
            status_message: Str<'a> = "statusMessage";
        }

        /// An MCP tool is running.
        McpProgress {
            /// `started`, `completed` or `failed`.
            status: Str<'a> = "status";
            /// the server.
            server_name: Str<'a> = "serverName";
            /// the tool.
            tool_name: Str<'a> = "toolName";
            /// the milliseconds since the start.
            elapsed_time_ms: u64 = "elapsedTimeMs";
        }

        /// A web search continues with another query.
        QueryUpdate {
            /// the query.
            query: Str<'a> = "query";
        }

        /// A web search has results.
        SearchResultsReceived {
            /// the query.
            query: Str<'a> = "query";
            /// the number of results.
            result_count: u64 = "resultCount";
        }

        /// The client is waiting for a background task.
        WaitingForTask {
            /// a short description of the task.
            task_description: Str<'a> = "taskDescription";
            /// the type of task.
            task_type: Str<'a> = "taskType";
        }
    }
}
