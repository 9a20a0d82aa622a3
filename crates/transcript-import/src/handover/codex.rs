//! A rollout of Codex.
//!
//! Codex sends the response items and lists what the events show, so each visible text is written as both. The model and the
//! provider of the other agent are never written: Codex would ask for the model, and refuse a thread of a provider that is not
//! set up.

use std::borrow::Cow;

use transcript_format::json::{Json, ObjectBuf};

use crate::Error;

use super::files::{Extra, Files};
use super::new_session::NewSession;
use super::order::Step;
use super::output::Output;
use super::rules::{ImagesOfResults, Order, Rules, Summaries, prompt_text};
use super::source_item::SourceItem;

pub(super) const RULES: Rules = Rules {
    holds_reasoning: false,
    sends_empty: true,
    is_nothing: str::is_empty,
    sends_repeated_results: true,
    holds_string_inputs: true,
    holds_errors: false,
    accepts_any_error: true,
    holds_images: true,
    images_of_results: ImagesOfResults::Inside,
    order: Order::Stored,
    joins_prompts: false,
    summaries: Summaries::AfterPrompts,
    is_command: |_| false,
    begins_with_prompt: false,
    completes_calls: true,
    adds_answer: false,
    id_separator: None,
};

/// The version of Codex in whose format the rollout is.
const VERSION: &str = "0.169.0";

/// Returns the files of a thread. It is listed only in the folder of a day.
pub(super) fn files(session: &NewSession) -> Files {
    let started = session.started();
    let (day, second) = (
        started[..10].replace('-', "/"),
        started[..19].replace(':', "-"),
    );
    let title = session.title.as_deref().map(|title| {
        let line = ObjectBuf::new()
            .with("id", session.id)
            .with("thread_name", title)
            .with("updated_at", &*started);
        Extra::Line {
            path: "session_index.jsonl".into(),
            line: line.text(),
        }
    });
    Files {
        main: format!("sessions/{day}/rollout-{second}-{}.jsonl", session.id).into(),
        before: Vec::new(),
        after: title.into_iter().collect(),
    }
}

/// Writes the rollout.
pub(super) fn write(out: &mut Output<'_>) -> Result<(), Error> {
    let session = out.session;
    let meta = ObjectBuf::new()
        .with("id", session.id)
        .with("timestamp", &*session.started())
        .with("cwd", &*session.cwd)
        .with("originator", "transcript")
        .with("cli_version", VERSION)
        .with("source", "cli");
    out.line(&record(&session.started(), "session_meta", meta))?;
    let steps = &out.plan.steps;
    let summary = steps
        .iter()
        .position(|step| matches!(step, Step::Summary(_)));
    for (number, step) in steps.iter().enumerate() {
        for at in step.items() {
            let item = out.item(*at)?;
            let time = out.time(&item);
            let event = event_of(out, &item);
            let response_item = response_item(out, *at, item);
            out.line(&record(&time, "response_item", response_item))?;
            if let Some(event) = event {
                out.line(&record(&time, "event_msg", event))?;
            }
        }
        if let (Step::Summary(at), Some(summary)) = (step, summary.filter(|at| *at == number)) {
            write_compaction(out, &steps[..=summary], *at)?;
        }
    }
    Ok(())
}

/// Writes the record of a compaction. Its history is all that stays of the steps so far: the prompts, and the summary.
fn write_compaction(out: &mut Output<'_>, steps: &[Step], summary: usize) -> Result<(), Error> {
    let item = out.item(summary)?;
    let time = Json::from(&*out.time(&item));
    let message = Json::from(&*item.text);
    let start = format!(
        r#"{{"timestamp":{},"type":"compacted","payload":{{"message":{},"replacement_history":["#,
        time.text(),
        message.text()
    );
    out.text(&start)?;
    for (number, at) in steps.iter().flat_map(Step::items).enumerate() {
        let item = out.item(*at)?;
        let response_item = response_item(out, *at, item).text();
        if number > 0 {
            out.text(",")?;
        }
        out.text(&response_item)?;
    }
    out.text("]}}\n")
}

fn record(time: &str, kind: &str, payload: ObjectBuf) -> ObjectBuf {
    ObjectBuf::new()
        .with("timestamp", time)
        .with("type", kind)
        .with("payload", payload)
}

/// Returns the event that shows an item.
fn event_of(out: &Output<'_>, item: &SourceItem) -> Option<ObjectBuf> {
    use crate::NodeKind::{Assistant, Summary, User};
    let kind = match item.kind {
        User | Summary => "user_message",
        Assistant => "agent_message",
        _ => return None,
    };
    let images = out.images(item).map(|image| Json::from(&*image.data_url()));
    let images: Vec<Json> = images.collect();
    let text = if images.is_empty() {
        item.text.as_str().into()
    } else {
        without_image_tags(&item.text)
    };
    let images = Some(images).filter(|images| !images.is_empty());
    let event = ObjectBuf::new()
        .with("type", kind)
        .with("message", &*text)
        .with_some("images", images.map(Json::array));
    Some(event)
}

/// Returns the text of a prompt without the tags that Codex puts around images, which it shows as such.
fn without_image_tags(text: &str) -> Cow<'_, str> {
    let is_tag = |line: &str| line.starts_with("<image ") || line == "</image>";
    let lines: Vec<&str> = text.split('\n').filter(|line| !is_tag(line)).collect();
    lines.join("\n").into()
}

fn response_item(out: &Output<'_>, at: usize, item: SourceItem) -> ObjectBuf {
    use crate::NodeKind::{Assistant, ToolCall, ToolResult};
    let head = out.head(at);
    match item.kind {
        Assistant => message("assistant", vec![text_part("output_text", &item.text)]),
        ToolCall if head.is_string => ObjectBuf::new()
            .with("type", "custom_tool_call")
            .with("call_id", &*head.call_id)
            .with("name", &*head.name)
            .with("input", item.input.unwrap_or_else(Json::null)),
        ToolCall => ObjectBuf::new()
            .with("type", "function_call")
            .with("name", &*head.name)
            .with("arguments", super::output::input_object(&item).text())
            .with("call_id", &*head.call_id),
        ToolResult => {
            let is_of_string = head.call.is_some_and(|call| out.head(call).is_string);
            let kind = if is_of_string {
                "custom_tool_call_output"
            } else {
                "function_call_output"
            };
            ObjectBuf::new()
                .with("type", kind)
                .with("call_id", &*head.call_id)
                .with("output", output(out, &item))
        }
        _ => {
            let images = image_parts(out, &item);
            let text = prompt_text(item, out.rules);
            // A prompt that is only an image has no text; one that is nothing keeps its place.
            let has_text = !text.is_empty() || images.is_empty();
            let text = has_text.then(|| text_part("input_text", &text));
            message("user", text.into_iter().chain(images).collect())
        }
    }
}

/// Returns the output of a call: text, or parts if there are images.
fn output(out: &Output<'_>, item: &SourceItem) -> Json {
    let images = image_parts(out, item);
    if images.is_empty() {
        return item.output.as_str().into();
    }
    let text = Some(&item.output).filter(|output| !output.is_empty());
    let text = text.map(|text| text_part("input_text", text));
    Json::array(text.into_iter().chain(images))
}

fn image_parts(out: &Output<'_>, item: &SourceItem) -> Vec<Json> {
    let part = |url: &str| {
        let part = ObjectBuf::new().with("type", "input_image");
        Json::from(part.with("image_url", url))
    };
    out.images(item)
        .map(|image| part(&image.data_url()))
        .collect()
}

fn text_part(kind: &str, text: &str) -> Json {
    ObjectBuf::new()
        .with("type", kind)
        .with("text", text)
        .into()
}

fn message(role: &str, parts: Vec<Json>) -> ObjectBuf {
    ObjectBuf::new()
        .with("type", "message")
        .with("role", role)
        .with("content", Json::array(parts))
}
