//! A session of Qwen Code: a tree that is one path, with messages in the form of the Gemini API.

use transcript_format::ids::Uuid;
use transcript_format::json::{Json, ObjectBuf};
use transcript_format::names::project_key;

use crate::Error;
use crate::node::NodeKind;

use super::files::{Extra, Files};
use super::gemini_parts::{call_part, prompt_parts, result_parts, text_part};
use super::new_session::NewSession;
use super::order::Step;
use super::output::{Output, is_call};
use super::rules::{ImagesOfResults, Order, Rules, Summaries};

pub(super) const RULES: Rules = Rules {
    holds_reasoning: true,
    sends_empty: false,
    is_nothing: str::is_empty,
    sends_repeated_results: false,
    holds_string_inputs: false,
    holds_errors: true,
    accepts_any_error: true,
    holds_images: true,
    images_of_results: ImagesOfResults::Beside,
    order: Order::ResultsBehindResponse,
    joins_prompts: true,
    summaries: Summaries::AtStart,
    is_command: |_| false,
    begins_with_prompt: false,
    completes_calls: true,
    adds_answer: false,
    id_separator: None,
};

/// The version of Qwen Code in whose format the session is.
const VERSION: &str = "0.24.4";

/// Returns the files of a session.
pub(super) fn files(session: &NewSession) -> Files {
    let project = project_key(&session.cwd);
    Files {
        main: format!("projects/{project}/chats/{}.jsonl", session.id).into(),
        before: Vec::<Extra>::new(),
        after: Vec::new(),
    }
}

/// Writes the session.
pub(super) fn write(out: &mut Output<'_>) -> Result<(), Error> {
    let mut chain = Chain {
        session: out.session,
        first: out.session.seed.uuid("entries"),
        last: None,
        entries: 0,
    };
    if let Some(title) = &out.session.title {
        let payload = ObjectBuf::new().with("customTitle", &**title);
        let time = out.session.started();
        let record = chain.record("system", "system", &time);
        let record = record.with("subtype", "custom_title");
        out.line(&record.with("systemPayload", payload))?;
    }
    for step in &out.plan.steps {
        match step {
            Step::Prompt(at) => {
                let item = out.item(*at)?;
                let time = out.time(&item);
                let message = message("user", prompt_parts(out, item));
                let record = chain.record("user", "real_user", &time);
                out.line(&record.with("message", message))?;
            }
            Step::Summary(at) => {
                let item = out.item(*at)?;
                let time = out.time(&item);
                let history = message("user", [text_part(&item.text)]);
                let payload =
                    ObjectBuf::new().with("compressedHistory", Json::array([history.into()]));
                let record = chain.record("system", "system", &time);
                let record = record.with("subtype", "chat_compression");
                out.line(&record.with("systemPayload", payload))?;
            }
            Step::Response(items) => write_response(out, &mut chain, items)?,
            Step::Results(items) => {
                for at in items {
                    let item = out.item(*at)?;
                    let time = out.time(&item);
                    let head = out.head(*at);
                    let message = message("user", result_parts(out, head, &item));
                    let status = if item.is_error { "error" } else { "success" };
                    let about = ObjectBuf::new()
                        .with("callId", &*head.call_id)
                        .with("status", status);
                    let record = chain.record("tool_result", "tool_result", &time);
                    let record = record.with("message", message);
                    out.line(&record.with("toolCallResult", about))?;
                }
            }
        }
    }
    Ok(())
}

fn write_response(
    out: &mut Output<'_>,
    chain: &mut Chain<'_>,
    items: &[usize],
) -> Result<(), Error> {
    // A response is one record, so its texts are in memory at once.
    let mut parts = Vec::new();
    let mut time = None;
    for at in items {
        let item = out.item(*at)?;
        let head = out.head(*at);
        time = time.or(item.time);
        parts.push(match head.kind {
            _ if is_call(head) => call_part(head, &item),
            NodeKind::Reasoning => ObjectBuf::new()
                .with("text", &*item.text)
                .with("thought", true)
                .into(),
            _ => text_part(&item.text),
        });
    }
    let time = out.clock.next_text(time);
    let record = chain.record("assistant", "assistant_output", &time);
    out.line(&record.with("message", message("model", parts)))
}

fn message(role: &str, parts: impl IntoIterator<Item = Json>) -> ObjectBuf {
    ObjectBuf::new()
        .with("role", role)
        .with("parts", Json::array(parts))
}

/// The chain of records while it is written.
struct Chain<'a> {
    session: &'a NewSession,
    first: Uuid,
    last: Option<Uuid>,
    entries: u64,
}

impl Chain<'_> {
    /// Returns the start of the next record.
    fn record(&mut self, kind: &str, provenance: &str, time: &str) -> ObjectBuf {
        self.entries += 1;
        let uuid = self.first.child(self.entries);
        ObjectBuf::new()
            .with("uuid", uuid)
            .with("parentUuid", Json::from(self.last.replace(uuid)))
            .with("sessionId", self.session.id)
            .with("timestamp", time)
            .with("type", kind)
            .with("provenance", provenance)
            .with("cwd", &*self.session.cwd)
            .with("version", VERSION)
    }
}
