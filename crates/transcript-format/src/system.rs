//! `system` entries: notices of the client, by subtype.
//!
//! Their fields are members of the entry itself, so every view here covers the whole entry.

use crate::compact::{CompactMetadata, MicrocompactMetadata, SnipMetadata};
use crate::kind::SystemKind;
use crate::object::{Object, Raw, Str};
use crate::schema::schema;

impl<'a> System<'a> {
    /// Returns the kind that `subtype` names; [`SystemKind::Other`] when it is unknown or absent.
    #[must_use]
    pub fn kind(&self) -> SystemKind {
        self.subtype()
            .map_or(SystemKind::Other, |name| SystemKind::from_name(&name))
    }

    /// Returns the view for the subtype.
    #[must_use]
    pub fn body(&self) -> SystemBody<'a> {
        SystemBody::new(self.kind(), self.object().clone())
    }
}

schema! {
    /// A `system` entry: the fields that all subtypes share.
    System {
        subtype: Str<'a> = "subtype", "the name of the subtype, as written";
        content: Str<'a> = "content", "the text";
        level: Str<'a> = "level", "the severity: `info`, `notice`, `suggestion`, `warning`, `error`";
    }

    /// The failure of a request.
    ApiFailure {
        status: u64 = "status", "the HTTP status";
        request_id: Str<'a> = "requestID" | "requestId", "the request id that the API gave";
        message: Str<'a> = "message", "the message";
        formatted: Str<'a> = "formatted", "the message as it is shown";
        connection: Connection<'a> = "connection", "details of the connection";
        is_network_down: bool = "isNetworkDown", "whether there was no network at all";
        rate_limits: Raw<'a> = "rateLimits", "the limits that were reached";
        no_response: Raw<'a> = "noResponse", "whether there was no reply at all";
    }

    /// A connection that failed.
    Connection {
        code: Str<'a> = "code", "the code, such as `ECONNRESET`";
        message: Str<'a> = "message", "the message";
        is_ssl_error: bool = "isSSLError", "whether the encryption failed";
    }

    /// A command that the person ran.
    CommandRun {
        command: Str<'a> = "command", "its name, without the slash";
        args: Str<'a> = "args", "the text after the name";
    }

    /// One hook that ran.
    HookInfo {
        command: Str<'a> = "command", "the command";
        duration_ms: u64 = "durationMs", "the duration, in milliseconds";
    }

    enum SystemBody "The content of a `system` entry, by subtype." by SystemKind {
        /// The conversation before was replaced by a summary; a root of the chain (COMPACT-1).
        CompactBoundary {
            compact_metadata: CompactMetadata<'a> = "compactMetadata", "the details, with the preserved entries";
        }

        /// Old tool results were cleared; the chain continues through it (COMPACT-2).
        MicrocompactBoundary {
            microcompact_metadata: MicrocompactMetadata<'a> = "microcompactMetadata", "the details";
        }

        /// Entries were removed.
        SnipBoundary { snip_metadata: SnipMetadata<'a> = "snipMetadata", "the removed entries"; }

        /// A request failed and is retried.
        ApiError {
            error: ApiFailure<'a> = "error", "the failure; its form varies by version";
            retry_in_ms: f64 = "retryInMs", "the milliseconds until the next attempt";
            retry_attempt: u64 = "retryAttempt", "the number of the attempt, from 1";
            max_retries: u64 = "maxRetries", "the maximum number of attempts";
            source: Str<'a> = "source", "the source of the request";
        }

        /// The command of a person, or its output; sent as user text (MSG-6).
        LocalCommand {
            is_display_only: bool = "isDisplayOnly", "whether the entry is only shown and not sent, such as the coloured output of `/context`";
            command_run: CommandRun<'a> = "commandRun", "the command that was run";
            context_usage: Object<'a> = "contextUsage", "the numbers that `/context` shows";
        }

        /// How long a turn took.
        TurnDuration {
            duration_ms: u64 = "durationMs", "the time, in milliseconds";
            message_count: u64 = "messageCount", "the messages of the conversation";
            pending_workflow_count: u64 = "pendingWorkflowCount", "the workflows that still run";
        }

        /// The effects of the hooks at the end of a turn.
        StopHookSummary {
            hook_count: u64 = "hookCount", "the number of hooks";
            hook_infos: Vec<HookInfo<'a>> = "hookInfos", "the hooks";
            hook_errors: Vec<Str<'a>> = "hookErrors", "the errors they reported";
            hook_additional_context: Vec<Raw<'a>> = "hookAdditionalContext", "the context they add for the model";
            failed_hook_error_indexes: Vec<u64> = "failedHookErrorIndexes", "which of the errors are of hooks that failed";
            prevented_continuation: bool = "preventedContinuation", "whether they stopped the turn";
            stop_reason: Str<'a> = "stopReason", "the reason for stopping it";
            has_output: bool = "hasOutput", "whether they wrote output";
        }

        /// The session can be reached remotely.
        BridgeStatus { url: Str<'a> = "url", "the address"; }

        /// The model refused and another one continues.
        ModelRefusalFallback {
            original_model: Str<'a> = "originalModel", "the model that refused";
            fallback_model: Str<'a> = "fallbackModel", "the model that continues";
            direction: Str<'a> = "direction", "the direction of the change";
            trigger: Str<'a> = "trigger", "the reason for the change";
            request_id: Str<'a> = "requestId", "the request that was refused";
            api_refusal_category: Str<'a> = "apiRefusalCategory", "the category of the refusal";
            api_refusal_explanation: Str<'a> = "apiRefusalExplanation", "the explanation of the refusal";
            refused_user_message_uuid: Str<'a> = "refusedUserMessageUuid", "the prompt that was refused";
            retracted_message_uuids: Vec<Str<'a>> = "retractedMessageUuids", "the entries that no longer count";
        }

        /// An event of another client's user interface.
        UiTelemetry { system_payload: Object<'a> = "systemPayload", "the event"; }

        /// The authorship of each part of the files, by another client.
        AttributionSnapshot { system_payload: Object<'a> = "systemPayload", "the snapshot"; }
    }
}
