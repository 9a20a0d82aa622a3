//! A session of Copilot CLI: a log of events.

use transcript_format::ids::Uuid;
use transcript_format::json::{Json, ObjectBuf};

use crate::Error;

use super::files::{Extra, Files};
use super::head::Head;
use super::new_session::NewSession;
use super::order::Step;
use super::output::{Output, input_object};
use super::rules::{ImagesOfResults, Order, Rules, Summaries, prompt_text};
use super::source_item::SourceItem;
use super::whole_response::WholeResponse;

pub(super) const RULES: Rules = Rules {
    holds_reasoning: true,
    sends_empty: false,
    is_nothing: str::is_empty,
    sends_repeated_results: false,
    holds_string_inputs: false,
    holds_errors: true,
    accepts_any_error: true,
    // Images are files beside the log.
    holds_images: false,
    images_of_results: ImagesOfResults::Nowhere,
    order: Order::ResultsBehindCalls,
    joins_prompts: false,
    summaries: Summaries::Nowhere,
    is_command: |_| false,
    begins_with_prompt: false,
    completes_calls: true,
    adds_answer: false,
    id_separator: None,
};

/// The version of Copilot CLI in whose format the session is.
const VERSION: &str = "1.0.102";

/// The title of a session without one: Copilot CLI needs a name.
const DEFAULT_TITLE: &str = "Session of another agent";

/// Returns the files of a session.
pub(super) fn files(session: &NewSession) -> Files {
    let folder = format!("session-state/{}", session.id);
    let title = session.title.as_deref().unwrap_or(DEFAULT_TITLE);
    // Quoted in the form of JSON, which is one of those of YAML.
    let quoted = |text: &str| Json::from(text).text().to_owned();
    let started = session.started();
    let text = format!(
        "id: {}\ncwd: {}\nclient_name: transcript\nname: {}\nuser_named: {}\nsummary_count: 0\nfork_count: 0\ncreated_at: {started}\nupdated_at: {started}\n",
        session.id,
        quoted(&session.cwd),
        quoted(title),
        session.title.is_some(),
    );
    let workspace = Extra::File {
        path: format!("{folder}/workspace.yaml").into(),
        text,
    };
    Files {
        main: format!("{folder}/events.jsonl").into(),
        before: vec![workspace],
        after: Vec::new(),
    }
}

/// Writes the session.
pub(super) fn write(out: &mut Output<'_>) -> Result<(), Error> {
    let session = out.session;
    let mut events = Events {
        first: session.seed.uuid("entries"),
        last: None,
        count: 0,
    };
    let started = session.started();
    let start = ObjectBuf::new()
        .with("sessionId", session.id)
        .with("version", 1u64)
        .with("producer", "transcript")
        .with("copilotVersion", VERSION)
        .with("startTime", &*started)
        .with("context", ObjectBuf::new().with("cwd", &*session.cwd));
    out.line(&events.event("session.start", start, &started))?;
    for step in &out.plan.steps {
        match step {
            Step::Prompt(at) | Step::Summary(at) => {
                let item = out.item(*at)?;
                let time = out.time(&item);
                let text = prompt_text(item, out.rules);
                let data = ObjectBuf::new()
                    .with("content", &*text)
                    .with("transformedContent", &*text)
                    .with("messageId", events.next_id("prompt"));
                out.line(&events.event("user.message", data, &time))?;
            }
            Step::Response(items) => write_response(out, &mut events, items)?,
            Step::Results(items) => {
                for at in items {
                    let item = out.item(*at)?;
                    let time = out.time(&item);
                    let (key, field) = if item.is_error {
                        ("error", "message")
                    } else {
                        ("result", "content")
                    };
                    let data = ObjectBuf::new()
                        .with("toolCallId", &*out.head(*at).call_id)
                        .with("success", !item.is_error)
                        .with(key, ObjectBuf::new().with(field, &*item.output));
                    out.line(&events.event("tool.execution_complete", data, &time))?;
                }
            }
        }
    }
    Ok(())
}

fn write_response(out: &mut Output<'_>, events: &mut Events, items: &[usize]) -> Result<(), Error> {
    let response = WholeResponse::read(out, items, request_of)?;
    let data = ObjectBuf::new()
        .with("messageId", events.next_id("answer"))
        .with("content", &*response.text)
        .with("toolRequests", Json::array(response.calls))
        .with_some("reasoningText", response.thought.as_deref());
    let time = out.clock.next_text(response.time);
    out.line(&events.event("assistant.message", data, &time))
}

fn request_of(head: &Head, item: &SourceItem) -> ObjectBuf {
    ObjectBuf::new()
        .with("toolCallId", &*head.call_id)
        .with("name", &*head.name)
        .with("arguments", input_object(item))
        .with("type", "function")
}

/// The log while it is written.
struct Events {
    first: Uuid,
    last: Option<Uuid>,
    count: u64,
}

impl Events {
    fn event(&mut self, kind: &str, data: ObjectBuf, time: &str) -> ObjectBuf {
        self.count += 1;
        let id = self.first.child(self.count);
        ObjectBuf::new()
            .with("type", kind)
            .with("data", data)
            .with("id", id)
            .with("timestamp", time)
            .with("parentId", Json::from(self.last.replace(id)))
    }

    /// Returns the id of the message of the next event.
    fn next_id(&self, what: &str) -> Json {
        Json::id(format_args!("{what}-{}", self.first.child(self.count + 1)))
    }
}
