//! A session of Gemini CLI: a log of messages.
//!
//! Gemini CLI finds the folder of a project by a name that it gave to the working folder, and empties a session that it loads in
//! the minute in which it began. So the session begins two minutes before the hand-over.

use transcript_format::ids::Uuid;
use transcript_format::json::{Json, ObjectBuf};

use crate::Error;

use super::files::{Extra, Files};
use super::gemini_parts::{prompt_parts, result_parts};
use super::new_session::NewSession;
use super::order::{Step, with_results};
use super::output::{Output, input_object, is_call};
use super::rules::{ImagesOfResults, Order, Rules, Summaries};

pub(super) const RULES: Rules = Rules {
    holds_reasoning: false,
    sends_empty: false,
    is_nothing: str::is_empty,
    sends_repeated_results: false,
    holds_string_inputs: false,
    holds_errors: true,
    accepts_any_error: true,
    holds_images: true,
    images_of_results: ImagesOfResults::Beside,
    order: Order::ResultsBehindCalls,
    joins_prompts: false,
    summaries: Summaries::Nowhere,
    is_command: |text| text.trim_start().starts_with(['/', '?']),
    begins_with_prompt: false,
    completes_calls: true,
    adds_answer: false,
    // Gemini CLI takes what is before it for the name of the tool.
    id_separator: Some("__"),
};

/// How long before its first item a session begins, in milliseconds.
pub(super) const AGE: i64 = 120_000;

/// Returns the files of a session.
pub(super) fn files(session: &NewSession) -> Files {
    let project = &session.project;
    let minute = session.started()[..16].replace(':', "-");
    let id = session.id.to_string();
    Files {
        main: format!("tmp/{project}/chats/session-{minute}-{}.jsonl", &id[..8]).into(),
        before: vec![
            Extra::Member {
                path: "projects.json".into(),
                object: "projects",
                key: session.cwd.clone(),
                value: project.clone(),
            },
            Extra::File {
                path: format!("tmp/{project}/.project_root").into(),
                text: session.cwd.clone(),
            },
        ],
        after: Vec::new(),
    }
}

/// Writes the session.
pub(super) fn write(out: &mut Output<'_>) -> Result<(), Error> {
    let session = out.session;
    let started = session.started();
    let header = ObjectBuf::new()
        .with("sessionId", session.id)
        .with("projectHash", &*super::seed::hex(&session.cwd))
        .with("startTime", &*started)
        .with("lastUpdated", &*session.written())
        .with("kind", "main");
    out.line(&header)?;
    if let Some(title) = &session.title {
        let set = ObjectBuf::new().with("summary", &**title);
        out.line(&ObjectBuf::new().with("$set", set))?;
    }
    let mut messages = Messages {
        first: session.seed.uuid("entries"),
        count: 0,
    };
    for (step, results) in with_results(&out.plan.steps) {
        match step {
            Step::Prompt(at) | Step::Summary(at) => {
                let item = out.item(*at)?;
                let time = out.time(&item);
                let content = Json::array(prompt_parts(out, item));
                let message = messages.message("user", &time);
                out.line(&message.with("content", content))?;
            }
            Step::Response(items) => write_response(out, &mut messages, items, results)?,
            // They are part of the response before them.
            Step::Results(_) => {}
        }
    }
    Ok(())
}

/// Writes a text and the calls after it, with their results, in one line.
fn write_response(
    out: &mut Output<'_>,
    messages: &mut Messages,
    items: &[usize],
    results: &[usize],
) -> Result<(), Error> {
    let (texts, calls): (Vec<usize>, Vec<usize>) =
        items.iter().partition(|at| !is_call(out.head(**at)));
    let mut text = String::new();
    let mut time = None;
    for at in texts {
        let item = out.item(at)?;
        time = time.or(item.time);
        text = item.text;
    }
    let first = items.first().map(|at| out.item(*at)).transpose()?;
    let time = time.or(first.and_then(|item| item.time));
    let time = out.clock.next_text(time);
    let start = messages.message("gemini", &time);
    let start = start
        .with("content", &*text)
        .with("thoughts", Json::array([]));
    if calls.is_empty() {
        return out.line(&start);
    }
    let start = start.text();
    out.text(&start[..start.len() - 1])?;
    out.text(",\"toolCalls\":[")?;
    for (number, at) in calls.into_iter().enumerate() {
        if number > 0 {
            out.text(",")?;
        }
        let result = results
            .iter()
            .find(|result| out.head(**result).call == Some(at));
        let call = call_of(out, at, result.copied(), &time)?;
        out.text(&call.text())?;
    }
    out.text("]}\n")
}

fn call_of(
    out: &Output<'_>,
    at: usize,
    result: Option<usize>,
    time: &str,
) -> Result<ObjectBuf, Error> {
    let head = out.head(at);
    let call = ObjectBuf::new()
        .with("id", &*head.call_id)
        .with("name", &*head.name)
        .with("args", input_object(&out.item(at)?));
    let Some(result) = result else {
        return Ok(call.with("status", "cancelled").with("timestamp", time));
    };
    let item = out.item(result)?;
    let parts = Json::array(result_parts(out, out.head(result), &item));
    let status = if item.is_error { "error" } else { "success" };
    let call = call.with("result", parts).with("status", status);
    Ok(call.with("timestamp", time))
}

/// The messages while they are written.
struct Messages {
    first: Uuid,
    count: u64,
}

impl Messages {
    /// Returns the start of the next message.
    fn message(&mut self, kind: &str, time: &str) -> ObjectBuf {
        self.count += 1;
        ObjectBuf::new()
            .with("id", self.first.child(self.count))
            .with("timestamp", time)
            .with("type", kind)
    }
}
