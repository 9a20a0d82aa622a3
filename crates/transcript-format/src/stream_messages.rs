//! Messages of the SDK that are not entries: they are in the output of the SDK (`stream-json`), and in
//! no file of a client.
//!
//! Entries (`user`, `assistant`, `system`) have the same views in this form as on disk.

use crate::content::Origin;
use crate::kind::EntryKind;
use crate::object::{Object, Raw, Str};
use crate::schema::schema;
use crate::usage::Usage;

schema! {
    /// A tool call that was not permitted.
    PermissionDenial {
        tool_name: Str<'a> = "tool_name", "the tool";
        tool_use_id: Str<'a> = "tool_use_id", "the call";
        tool_input: Raw<'a> = "tool_input", "its input";
    }

    /// The message that a tombstone removes, as far as it identifies it.
    TombstonedMessage {
        type_name: Str<'a> = "type", "the `type` of the message";
        uuid: Str<'a> = "uuid", "its id";
    }

    enum StreamMessage "A message of the SDK that is not an entry, by its type. Its id and session are in the envelope." by EntryKind {
        /// The end of a run of the model: of one prompt, with all its tool calls.
        Result {
            subtype: Str<'a> = "subtype", "`success`, `error_during_execution`, `error_max_turns`, `error_max_budget_usd` or `error_max_structured_output_retries`";
            is_error: bool = "is_error", "whether the run failed";
            result: Str<'a> = "result", "the text of the last answer";
            structured_output: Raw<'a> = "structured_output", "the answer in the form that was asked for";
            errors: Vec<Raw<'a>> = "errors", "the errors";
            duration_ms: u64 = "duration_ms", "how long it took, in milliseconds";
            duration_api_ms: u64 = "duration_api_ms", "how long the API took, in milliseconds";
            ttft_ms: f64 = "ttft_ms", "the milliseconds until the first token";
            num_turns: u64 = "num_turns", "the number of turns";
            queued_turn_count: u64 = "queued_turn_count", "the number of prompts that wait";
            result_index: u64 = "result_index", "the number of the result";
            stop_reason: Str<'a> = "stop_reason", "why the model stopped";
            terminal_reason: Str<'a> = "terminal_reason", "why the run ended, such as `completed`, `max_turns` or `aborted_tools`";
            total_cost_usd: f64 = "total_cost_usd", "the cost of the process so far, in US dollars; a session that is resumed continues its total";
            usage: Usage<'a> = "usage", "the tokens of the run";
            model_usage: Object<'a> = "modelUsage", "the usage by model: read a member as `ModelUsage`";
            permission_denials: Vec<PermissionDenial<'a>> = "permission_denials", "the tool calls that were not permitted";
            deferred_tool_use: Raw<'a> = "deferred_tool_use", "the call that the run waits for";
            api_error_status: u64 = "api_error_status", "the HTTP status of the error";
            fast_mode_state: Raw<'a> = "fast_mode_state", "the state of the fast mode";
            origin: Origin<'a> = "origin", "the sender of the prompt";
            user_message_uuid: Str<'a> = "user_message_uuid", "the prompt";
            user_message_uuids: Vec<Str<'a>> = "user_message_uuids", "the prompts, if they are several";
            startup_failure_reason: Str<'a> = "startup_failure_reason", "why the client could not start";
            invalid_config_file: Raw<'a> = "invalid_config_file", "the file of settings that cannot be read";
        }

        /// An event of the API while a message arrives.
        StreamEvent {
            event: Object<'a> = "event", "the event, as the API sends it";
            parent_tool_use_id: Str<'a> = "parent_tool_use_id", "the call that started the subagent whose message it is";
            ttft_ms: f64 = "ttft_ms", "the milliseconds until the first token";
        }

        /// A short summary of some tool calls.
        ToolUseSummary {
            summary: Str<'a> = "summary", "the words";
            preceding_tool_use_ids: Vec<Str<'a>> = "preceding_tool_use_ids" | "toolUseIds", "the calls";
        }

        /// A tool that runs.
        ToolProgress {
            tool_use_id: Str<'a> = "tool_use_id", "the call";
            tool_name: Str<'a> = "tool_name", "the tool";
            parent_tool_use_id: Str<'a> = "parent_tool_use_id", "the call that started the subagent which made this one";
            elapsed_time_seconds: f64 = "elapsed_time_seconds", "for how long, in seconds";
            task_id: Str<'a> = "task_id", "the task";
        }

        /// A message that no longer counts: a part of an answer that a fallback to another model withdrew.
        Tombstone { message: TombstonedMessage<'a> = "message", "the message"; }

        /// A prompt that the person may want to send next.
        PromptSuggestion { suggestion: Str<'a> = "suggestion", "the prompt"; }

        /// Whether the client is logging in.
        AuthStatus {
            is_authenticating: bool = "isAuthenticating", "whether it is";
            output: Raw<'a> = "output", "the output so far";
            error: Str<'a> = "error", "why it failed";
        }

        /// A change of the limits of the API.
        RateLimitEvent { rate_limit_info: Object<'a> = "rate_limit_info", "the limits"; }

        /// The conversation started again, as by `/clear`.
        ConversationReset {
            new_conversation_id: Str<'a> = "new_conversation_id", "the session that follows";
            trigger: Str<'a> = "trigger", "`clear`, `plan_mode_exit`, `fresh_session` or `onboarding`";
            user_message_uuid: Str<'a> = "user_message_uuid", "the prompt that caused it";
        }
    }
}
