//! A model that follows a script, in place of the network.

use transcript_engine::Request;

/// The scripted model: it calls a tool, and answers once it has the result.
pub(crate) fn answer(request: &Request, body: &str) -> String {
    let last = request
        .messages
        .last()
        .map(|message| message.json())
        .unwrap_or_default();
    let id = body.len();
    let (block, delta) = if last.contains("tool_result") {
        (
            r#"{"type":"text","text":""}"#.to_owned(),
            r#"{"type":"text_delta","text":"366 days."}"#,
        )
    } else {
        let call =
            format!(r#"{{"type":"tool_use","id":"toolu_{id}","name":"Calendar","input":{{}}}}"#);
        (
            call,
            r#"{"type":"input_json_delta","partial_json":"{\"year\":2000}"}"#,
        )
    };
    let events = [
        format!(r#"{{"type":"message_start","message":{{"id":"msg_{id}","role":"assistant","model":"scripted","content":[],"usage":{{"input_tokens":{id}}}}}}}"#),
        format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#),
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#),
        r#"{"type":"content_block_stop","index":0}"#.to_owned(),
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}"#.to_owned(),
        r#"{"type":"message_stop"}"#.to_owned(),
    ];
    events.map(|event| format!("data: {event}\n\n")).concat()
}
