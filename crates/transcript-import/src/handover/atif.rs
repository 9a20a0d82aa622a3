//! A trajectory in the Agent Trajectory Interchange Format, version 1.7: one JSON document.

use transcript_format::json::{Json, ObjectBuf};
use transcript_format::object::{Object, Raw};
use transcript_format::time;

use crate::Error;
use crate::node::NodeKind;
use crate::strings::{objects, string};

use super::files::{Extra, Files};
use super::head::Head;
use super::new_session::{NewSession, UNKNOWN};
use super::order::{Step, with_results};
use super::output::{Output, input_object};
use super::rules::{ImagesOfResults, Order, Rules, Summaries};
use super::source_item::SourceItem;
use super::whole_response::WholeResponse;

pub(super) const RULES: Rules = Rules {
    holds_reasoning: true,
    sends_empty: false,
    is_nothing: str::is_empty,
    sends_repeated_results: false,
    holds_string_inputs: false,
    holds_errors: false,
    accepts_any_error: true,
    // Images are files beside the document.
    holds_images: false,
    images_of_results: ImagesOfResults::Nowhere,
    order: Order::ResultsBehindCalls,
    joins_prompts: false,
    summaries: Summaries::Nowhere,
    is_command: |_| false,
    begins_with_prompt: false,
    completes_calls: false,
    adds_answer: false,
    id_separator: None,
};

/// The version of the format.
const VERSION: &str = "ATIF-v1.7";

/// Returns the file of a trajectory.
pub(super) fn files(session: &NewSession) -> Files {
    Files {
        main: format!("{}.json", session.id).into(),
        before: Vec::<Extra>::new(),
        after: Vec::new(),
    }
}

/// Writes the document.
pub(super) fn write(out: &mut Output<'_>) -> Result<(), Error> {
    let session = out.session;
    let agent = ObjectBuf::new()
        .with("name", &*session.agent)
        .with("version", UNKNOWN);
    let start = ObjectBuf::new()
        .with("schema_version", VERSION)
        .with("session_id", session.id)
        .with("agent", agent)
        .with_some("notes", session.title.as_deref())
        .text();
    out.text(&start[..start.len() - 1])?;
    out.text(",\"steps\":[")?;
    let mut number = 0u64;
    for (step, results) in with_results(&out.plan.steps) {
        let step = match step {
            Step::Prompt(at) | Step::Summary(at) => {
                let item = out.item(*at)?;
                let step = start_of(out, &mut number, "user", item.time);
                step.with("message", &*item.text)
            }
            Step::Response(items) => response(out, &mut number, items, results)?,
            // They are part of the response before them.
            Step::Results(_) => continue,
        };
        out.text(if number > 1 { "," } else { "" })?;
        out.text(&step.text())?;
    }
    out.text("]}\n")
}

fn start_of(out: &mut Output<'_>, number: &mut u64, source: &str, time: Option<i64>) -> ObjectBuf {
    *number += 1;
    ObjectBuf::new()
        .with("step_id", *number)
        .with("timestamp", &*out.clock.next_text(time))
        .with("source", source)
}

/// Returns a step of the agent. Its texts, and those of its results, are in memory at once.
fn response(
    out: &mut Output<'_>,
    number: &mut u64,
    items: &[usize],
    results: &[usize],
) -> Result<ObjectBuf, Error> {
    let response = WholeResponse::read(out, items, call_of)?;
    let mut observed = Vec::new();
    for at in results {
        let result = ObjectBuf::new()
            .with("source_call_id", &*out.head(*at).call_id)
            .with("content", &*out.item(*at)?.output);
        observed.push(Json::from(result));
    }
    let list = |values: Vec<Json>| {
        Some(values)
            .filter(|values| !values.is_empty())
            .map(Json::array)
    };
    let observation = list(observed).map(|results| ObjectBuf::new().with("results", results));
    let step = start_of(out, number, "agent", response.time);
    Ok(step
        .with("message", &*response.text)
        .with_some("reasoning_content", response.thought.as_deref())
        .with_some("tool_calls", list(response.calls))
        .with_some("observation", observation))
}

fn call_of(head: &Head, item: &SourceItem) -> ObjectBuf {
    ObjectBuf::new()
        .with("tool_call_id", &*head.call_id)
        .with("function_name", &*head.name)
        .with("arguments", input_object(item))
}

/// Returns the items of a trajectory of any version, or `None` when the text is not one. Images are counted: their data is in files or
/// at addresses.
#[must_use]
pub fn items_of_trajectory(document: &str) -> Option<Vec<SourceItem>> {
    let document = Object::parse(document).ok()?;
    let is_trajectory = document.str("schema_version")?.starts_with("ATIF-v");
    let steps = document.array("steps").filter(|_| is_trajectory)?;
    let steps = steps.into_iter().filter_map(Raw::object);
    Some(steps.flat_map(|step| items_of_step(&step)).collect())
}

fn items_of_step(step: &Object<'_>) -> Vec<SourceItem> {
    let time = step.str("timestamp");
    let time = time.and_then(|time| time::millis(time.as_bytes()));
    let kind = match step.str("source").as_deref() {
        Some("user") => NodeKind::User,
        Some("agent") => NodeKind::Assistant,
        _ => NodeKind::Context,
    };
    let model = string(step, "model_name");
    let of_kind = |kind| SourceItem {
        time,
        model: model.clone(),
        ..SourceItem::new(kind)
    };
    let mut items = Vec::new();
    if let Some(text) = string(step, "reasoning_content") {
        items.push(SourceItem {
            text,
            ..of_kind(NodeKind::Reasoning)
        });
    }
    let (text, unknown_images) = step.get("message").map(content_of).unwrap_or_default();
    if !text.is_empty() || unknown_images > 0 {
        items.push(SourceItem {
            text,
            unknown_images,
            ..of_kind(kind)
        });
    }
    items.extend(objects(step.get("tool_calls")).map(|call| SourceItem {
        name: string(&call, "function_name"),
        call_id: string(&call, "tool_call_id"),
        input: call.get("arguments").map(Json::from),
        ..of_kind(NodeKind::ToolCall)
    }));
    let observation = step.object("observation");
    let results = observation.and_then(|observation| observation.get("results"));
    items.extend(objects(results).map(|result| {
        let (output, unknown_images) = result.get("content").map(content_of).unwrap_or_default();
        SourceItem {
            call_id: string(&result, "source_call_id"),
            output,
            unknown_images,
            ..of_kind(NodeKind::ToolResult)
        }
    }));
    items
}

/// Returns the text of a content, which is a string or a list of parts, and the number of its images.
fn content_of(content: Raw<'_>) -> (String, usize) {
    if let Some(text) = content.str() {
        return (text.into_owned(), 0);
    }
    let parts: Vec<Object<'_>> = objects(Some(content)).collect();
    let texts: Vec<String> = parts
        .iter()
        .filter_map(|part| string(part, "text"))
        .collect();
    let is_image = |part: &&Object<'_>| part.str("type").is_some_and(|kind| kind == "image");
    (texts.join("\n"), parts.iter().filter(is_image).count())
}
