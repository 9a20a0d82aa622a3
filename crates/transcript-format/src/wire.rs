//! Messages of the stream protocol that are not written to a file.
//!
//! `user`, `assistant` and `system` messages of the stream use the views of the entries: accessors
//! find their snake_case fields under the names on disk.

use crate::kind::EntryKind;
use crate::object::{Object, Raw, Str};
use crate::usage::Usage;
use crate::view::{view, views};

views! {
    /// A message of the stream protocol, by its type.
    Wire by EntryKind {
        /// The end of a turn.
        Result {
            /// `success`, or `error_during_execution`, `error_max_turns`, `error_max_budget_usd`,
            /// `error_max_structured_output_retries`.
            subtype: Str<'a> = "subtype";
            /// whether the turn failed.
            is_error: bool = "is_error";
            /// the last text of the model.
            result: Str<'a> = "result";
            /// the errors.
            errors: Vec<Raw<'a>> = "errors";
            /// the duration, in milliseconds.
            duration_ms: u64 = "duration_ms";
            /// the time spent in the API, in milliseconds.
            duration_api_ms: u64 = "duration_api_ms";
            /// the milliseconds to the first token.
            ttft_ms: f64 = "ttft_ms";
            /// the turns.
            num_turns: u64 = "num_turns";
            /// the turns that wait.
            queued_turn_count: u64 = "queued_turn_count";
            /// the number of the result in the session.
            result_index: u64 = "result_index";
            /// the reason why the last reply ended.
            stop_reason: Str<'a> = "stop_reason";
            /// the reason why the turn ended.
            terminal_reason: Str<'a> = "terminal_reason";
            /// the cost of the session in US dollars, including the time before a resume.
            total_cost_usd: f64 = "total_cost_usd";
            /// the token counts of the turn.
            usage: Usage<'a> = "usage";
            /// the usage by model: read a member as [`ModelUsage`](crate::usage::ModelUsage).
            model_usage: Object<'a> = "modelUsage";
            /// the tool calls that were refused.
            permission_denials: Vec<PermissionDenial<'a>> = "permission_denials";
            /// the result in the requested form.
            structured_output: Raw<'a> = "structured_output";
            /// a tool call that the caller should run.
            deferred_tool_use: Raw<'a> = "deferred_tool_use";
            /// the HTTP status of an API error.
            api_error_status: u64 = "api_error_status";
            /// whether fast mode is on.
            fast_mode_state: Raw<'a> = "fast_mode_state";
            /// the sender of the prompt.
            origin: crate::entry::Origin<'a> = "origin";
            /// the prompt that was answered.
            user_message_uuid: Str<'a> = "user_message_uuid";
            /// the prompts that were answered.
            user_message_uuids: Vec<Str<'a>> = "user_message_uuids";
            /// the reason why the client could not start.
            startup_failure_reason: Str<'a> = "startup_failure_reason";
            /// the configuration file that could not be read.
            invalid_config_file: Raw<'a> = "invalid_config_file";
        }

        /// An event of the API's own stream.
        StreamEvent {
            /// the event.
            event: Object<'a> = "event";
            /// the tool call that started the subagent.
            parent_tool_use_id: Str<'a> = "parent_tool_use_id";
            /// the milliseconds to the first token.
            ttft_ms: f64 = "ttft_ms";
        }

        /// A request is starting.
        StreamRequestStart {}

        /// A short summary of several tool calls.
        ToolUseSummary {
            /// the text.
            summary: Str<'a> = "summary";
            /// the tool calls.
            tool_use_ids: Vec<Str<'a>> = "precedingToolUseIds" | "toolUseIds";
        }

        /// A tool is running.
        ToolProgress {
            /// the tool call.
            tool_use_id: Str<'a> = "tool_use_id";
            /// the tool.
            tool_name: Str<'a> = "tool_name";
            /// the tool call that started the subagent.
            parent_tool_use_id: Str<'a> = "parent_tool_use_id";
            /// the seconds since the start.
            elapsed_time_seconds: f64 = "elapsed_time_seconds";
            /// the background task.
            task_id: Str<'a> = "task_id";
        }

        /// A suggestion for the next prompt.
        PromptSuggestion {
            /// the prompt.
            suggestion: Str<'a> = "suggestion";
        }

        /// The person is signing in.
        AuthStatus {
            /// whether it is still in progress.
            is_authenticating: bool = "isAuthenticating";
            /// the text shown.
            output: Raw<'a> = "output";
            /// the reason of a failure.
            error: Str<'a> = "error";
        }

        /// The limits of the account changed.
        RateLimitEvent {
            /// the limits.
            rate_limit_info: Object<'a> = "rate_limit_info";
        }

        /// The active goal of the session.
        ActiveGoal {
            /// the goal; `null` when there is none.
            value: Raw<'a> = "value";
        }

        /// The conversation starts over.
        ConversationReset {
            /// the new conversation.
            new_conversation_id: Str<'a> = "new_conversation_id";
            /// `clear`, `plan_mode_exit`, `fresh_session` or `onboarding`.
            trigger: Str<'a> = "trigger";
            /// the prompt that did it.
            user_message_uuid: Str<'a> = "user_message_uuid";
        }

        /// Lines for a session store.
        TranscriptMirror {
            /// the file that they were written to.
            file_path: Str<'a> = "filePath";
            /// the entries.
            entries: Vec<Raw<'a>> = "entries";
        }

        /// A request between client and SDK.
        ControlRequest {
            /// the request.
            request_id: Str<'a> = "request_id";
            /// the request, with its `subtype`.
            request: Object<'a> = "request";
        }

        /// The response to a control request.
        ControlResponse {
            /// the response, with `subtype` and `request_id`.
            response: Object<'a> = "response";
        }

        /// A control request that no longer needs a response.
        ControlCancelRequest {
            /// the request.
            request_id: Str<'a> = "request_id";
        }

        /// A keep-alive message.
        KeepAlive {}
    }
}

view! {
    /// A tool call that was rejected.
    PermissionDenial {
        /// the tool.
        tool_name: Str<'a> = "tool_name";
        /// the call.
        tool_use_id: Str<'a> = "tool_use_id";
        /// the input.
        tool_input: Raw<'a> = "tool_input";
    }
}
