//! A streamed reply, as bindings see it.

use serde_json::json;
use serde_json::value::RawValue;
use transcript_engine::stream::{
    Abort, Accumulator, Reply, Sse, StreamOutcome, StreamStep, ToolCall,
};

/// Assembles a message from the events of its stream.
#[derive(Debug, Default)]
pub struct StreamReply {
    accumulator: Accumulator,
    sse: Sse,
}

impl StreamReply {
    /// Returns a reply before the first event.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies an event, as JSON. Returns the name of its effect, and the number of the block that it concerns.
    pub fn event(&mut self, json: &str) -> (&'static str, Option<usize>) {
        match self.accumulator.event(json) {
            StreamStep::Start => ("start", None),
            StreamStep::BlockStart(block) => ("block-start", Some(block)),
            StreamStep::Delta(block) => ("delta", Some(block)),
            StreamStep::BlockStop(block) => ("block-stop", Some(block)),
            StreamStep::MessageDelta => ("message-delta", None),
            StreamStep::Stop => ("stop", None),
            StreamStep::Error => ("error", None),
            _ => ("nothing", None),
        }
    }

    /// Applies the events in the next bytes of a stream of server-sent events, wherever they are cut. Returns whether
    /// the reply is over.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let accumulator = &mut self.accumulator;
        self.sse
            .push(bytes, |_, event| _ = accumulator.event(event));
        self.is_over()
    }

    /// Returns whether the message is complete or the stream ended with an error.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.accumulator.is_over()
    }

    /// Returns the received part of the reply, as a JSON object: `state` is `whole`, `partial` or `nothing`. What is not
    /// whole has names of its own, so that a program that does not look at `state` runs no call with a part of its
    /// input: `partialMessage`, and `partialCalls` for all but the calls to run.
    #[must_use]
    pub fn json(&self) -> String {
        let (state, reply, abort) = match self.accumulator.clone().finish() {
            StreamOutcome::Whole(reply) => ("whole", Some(reply), None),
            StreamOutcome::Partial(reply, abort) => ("partial", Some(reply), Some(abort)),
            StreamOutcome::Nothing(abort) => ("nothing", None, Some(abort)),
            _ => ("nothing", None, None),
        };
        let raw = |json: &str| serde_json::from_str::<Box<RawValue>>(json).ok();
        let error = match abort {
            Some(Abort::Error(error)) => raw(&error),
            _ => None,
        };
        let calls = |calls: Vec<ToolCall>| {
            let calls = calls.into_iter().map(|call| Call {
                input: raw(&call.input),
                id: call.id,
                name: call.name,
            });
            calls.collect::<Vec<_>>()
        };
        let of_reply =
            |of: fn(&Reply) -> Vec<ToolCall>| reply.as_ref().map(of).map_or_else(Vec::new, calls);
        let message = reply.as_ref().and_then(|reply| raw(reply.message()));
        let (message, partial_message) = match state {
            "whole" => (message, None),
            _ => (None, message),
        };
        let shown = StreamReplyRecord {
            state,
            message,
            partial_message,
            error,
            tool_calls: of_reply(Reply::tool_calls),
            partial_calls: of_reply(Reply::partial_calls),
        };
        // Its parts are JSON already.
        serde_json::to_string(&shown).unwrap_or_else(|_| json!({ "state": "nothing" }).to_string())
    }

    /// Returns the part of the message that arrived; `None` if nothing could be kept.
    #[must_use]
    pub fn reply(&self) -> Option<Reply> {
        match self.accumulator.clone().finish() {
            StreamOutcome::Whole(reply) | StreamOutcome::Partial(reply, _) => Some(reply),
            _ => None,
        }
    }
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct StreamReplyRecord {
    state: &'static str,
    message: Option<Box<RawValue>>,
    partial_message: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
    tool_calls: Vec<Call>,
    partial_calls: Vec<Call>,
}

#[derive(serde::Serialize)]
struct Call {
    id: String,
    name: String,
    input: Option<Box<RawValue>>,
}
