//! A session of Claude Code.
//!
//! Claude Code finds a conversation by the times and the links of its entries, and joins the entries of a response by the id of
//! the message. So each entry has a time and a parent, and each response an id of its own.

use transcript_format::ids::Uuid;
use transcript_format::json::{Json, ObjectBuf};
use transcript_format::make::{Compaction, NO_CONTENT, NewEntry, Trigger, compact_boundary};
use transcript_format::names::project_key;

use crate::Error;

use super::files::{Extra, Files};
use super::new_session::NewSession;
use super::order::Step;
use super::output::{Output, input_object, is_call};
use super::rules::{ImagesOfResults, Order, Rules, Summaries, is_written_as_error, prompt_text};
use super::source_item::SourceItem;

pub(super) const RULES: Rules = Rules {
    holds_reasoning: false,
    sends_empty: false,
    is_nothing: |text| text.trim().is_empty() || text == NO_CONTENT,
    sends_repeated_results: false,
    holds_string_inputs: false,
    holds_errors: true,
    accepts_any_error: false,
    holds_images: true,
    images_of_results: ImagesOfResults::Inside,
    order: Order::TextsBeforeCalls,
    joins_prompts: true,
    summaries: Summaries::AtStart,
    is_command: |_| false,
    begins_with_prompt: true,
    completes_calls: true,
    adds_answer: true,
    id_separator: None,
};

/// The version of Claude Code in whose format the session is.
const VERSION: &str = "2.1.329";

/// The model of answers that no model of the maker wrote.
const SYNTHETIC_MODEL: &str = "<synthetic>";

/// The result of a call without one.
const MISSING_RESULT: &str = "The result of this call was not recorded.";

/// Returns the files of a session. It is found only in the folder of its working folder.
pub(super) fn files(session: &NewSession) -> Files {
    let project = project_key(&session.cwd);
    Files {
        main: format!("projects/{project}/{}.jsonl", session.id).into(),
        before: Vec::<Extra>::new(),
        after: Vec::new(),
    }
}

/// Writes the session.
pub(super) fn write(out: &mut Output<'_>) -> Result<(), Error> {
    let mut chain = Chain::new(out.session);
    if let Some(Step::Response(items)) = out.plan.steps.first() {
        let first = items.first().map(|at| out.item(*at)).transpose()?;
        let time = out.clock.next_text(first.and_then(|item| item.time));
        let message = ObjectBuf::new()
            .with("role", "user")
            .with("content", NO_CONTENT);
        out.line(&chain.entry("user", message, &time))?;
    }
    for step in &out.plan.steps {
        match step {
            Step::Prompt(at) => {
                let item = out.item(*at)?;
                let content = prompt(out, &item);
                let time = out.time(&item);
                let message = ObjectBuf::new()
                    .with("role", "user")
                    .with("content", content);
                out.line(&chain.entry("user", message, &time))?;
            }
            Step::Summary(at) => {
                let item = out.item(*at)?;
                let time = out.clock.next_text(item.time);
                let boundary = compact_boundary(None::<&str>, Compaction::new(Trigger::Manual, 0));
                out.text(&chain.boundary(boundary, &time))?;
                let time = out.time(&item);
                let message = ObjectBuf::new()
                    .with("role", "user")
                    .with("content", &*item.text);
                let entry = chain.entry("user", message, &time);
                let entry = entry.with("isVisibleInTranscriptOnly", true);
                out.line(&entry.with("isCompactSummary", true))?;
            }
            Step::Response(items) => {
                write_response(out, &mut chain, items)?;
                write_missing_results(out, &mut chain, items)?;
            }
            Step::Results(items) => {
                for at in items {
                    let item = out.item(*at)?;
                    let content = Json::array([result(out, *at, &item)]);
                    let time = out.time(&item);
                    let message = ObjectBuf::new()
                        .with("role", "user")
                        .with("content", content);
                    out.line(&chain.entry("user", message, &time))?;
                }
            }
        }
    }
    let Some(title) = &out.session.title else {
        return Ok(());
    };
    let title = ObjectBuf::new()
        .with("type", "custom-title")
        .with("customTitle", &**title)
        .with("sessionId", out.session.id);
    out.line(&title)
}

/// Writes a response: an entry for each block.
fn write_response(
    out: &mut Output<'_>,
    chain: &mut Chain<'_>,
    items: &[usize],
) -> Result<(), Error> {
    let id = chain.message_id();
    let has_calls = items.iter().any(|at| is_call(out.head(*at)));
    let stop_reason = if has_calls { "tool_use" } else { "end_turn" };
    for (number, at) in items.iter().enumerate() {
        let item = out.item(*at)?;
        let head = out.head(*at);
        let block = if is_call(head) {
            ObjectBuf::new()
                .with("type", "tool_use")
                .with("id", &*head.call_id)
                .with("name", &*head.name)
                .with("input", input_object(&item))
        } else {
            text_block(&item.text)
        };
        let is_last = number + 1 == items.len();
        let message = ObjectBuf::new()
            .with("id", &*id)
            .with("type", "message")
            .with("role", "assistant")
            .with("model", SYNTHETIC_MODEL)
            .with("content", Json::array([block.into()]))
            .with("stop_reason", is_last.then_some(stop_reason))
            .with("stop_sequence", Json::null())
            .with("usage", no_tokens());
        let time = out.time(&item);
        out.line(&chain.entry("assistant", message, &time))?;
    }
    Ok(())
}

/// Writes a result for each call of a response without one: Claude Code would not send the call.
fn write_missing_results(
    out: &mut Output<'_>,
    chain: &mut Chain<'_>,
    items: &[usize],
) -> Result<(), Error> {
    for at in items {
        let head = out.head(*at);
        if !is_call(head) || !head.results.is_empty() {
            continue;
        }
        let result = ObjectBuf::new()
            .with("tool_use_id", &*head.call_id)
            .with("type", "tool_result")
            .with("content", MISSING_RESULT)
            .with("is_error", true);
        let message = ObjectBuf::new()
            .with("role", "user")
            .with("content", Json::array([result.into()]));
        let time = out.clock.next_text(None);
        out.line(&chain.entry("user", message, &time))?;
    }
    Ok(())
}

fn prompt(out: &Output<'_>, item: &SourceItem) -> Json {
    let images: Vec<Json> = out.images(item).map(image_block).collect();
    let text = prompt_text(item.clone(), out.rules);
    if images.is_empty() {
        return text.as_str().into();
    }
    let block = (!text.is_empty()).then(|| text_block(&text).into());
    Json::array(block.into_iter().chain(images))
}

fn result(out: &Output<'_>, at: usize, item: &SourceItem) -> Json {
    let images: Vec<Json> = out.images(item).map(image_block).collect();
    let content = if images.is_empty() {
        item.output.as_str().into()
    } else {
        let block = (!item.output.is_empty()).then(|| text_block(&item.output).into());
        Json::array(block.into_iter().chain(images))
    };
    let is_error = is_written_as_error(item, out.rules).then_some(true);
    ObjectBuf::new()
        .with("tool_use_id", &*out.head(at).call_id)
        .with("type", "tool_result")
        .with("content", content)
        .with_some("is_error", is_error)
        .into()
}

fn text_block(text: &str) -> ObjectBuf {
    ObjectBuf::new().with("type", "text").with("text", text)
}

fn image_block(image: &super::source_item::Image) -> Json {
    let source = ObjectBuf::new()
        .with("type", "base64")
        .with("media_type", &*image.media_type)
        .with("data", &*image.data);
    ObjectBuf::new()
        .with("type", "image")
        .with("source", source)
        .into()
}

fn no_tokens() -> ObjectBuf {
    ObjectBuf::new()
        .with("input_tokens", 0u64)
        .with("output_tokens", 0u64)
        .with("cache_creation_input_tokens", 0u64)
        .with("cache_read_input_tokens", 0u64)
}

/// The chain of entries while it is written.
struct Chain<'a> {
    session: &'a NewSession,
    first: Uuid,
    last: Option<Uuid>,
    entries: u64,
    responses: u64,
}

impl<'a> Chain<'a> {
    fn new(session: &'a NewSession) -> Self {
        Self {
            session,
            first: session.seed.uuid("entries"),
            last: None,
            entries: 0,
            responses: 0,
        }
    }

    /// Returns the id of the next response.
    fn message_id(&mut self) -> String {
        self.responses += 1;
        let response = self.session.seed.uuid("responses").child(self.responses);
        format!("msg_{}", response.to_string().replace('-', ""))
    }

    /// Returns the ids of the next entry and of its parent.
    fn next(&mut self) -> (Uuid, Json) {
        self.entries += 1;
        let uuid = self.first.child(self.entries);
        (uuid, Json::from(self.last.replace(uuid)))
    }

    fn entry(&mut self, kind: &str, message: ObjectBuf, time: &str) -> ObjectBuf {
        let (uuid, parent) = self.next();
        let start = ObjectBuf::new()
            .with("parentUuid", parent)
            .with("isSidechain", false)
            .with("type", kind)
            .with("message", message)
            .with("uuid", uuid)
            .with("timestamp", time);
        self.with_place(start)
    }

    fn with_place(&self, entry: ObjectBuf) -> ObjectBuf {
        entry
            .with("userType", "external")
            .with("cwd", &*self.session.cwd)
            .with("sessionId", self.session.id)
            .with("version", VERSION)
            .with("gitBranch", "")
    }

    fn boundary(&mut self, boundary: NewEntry, time: &str) -> String {
        let (uuid, parent) = self.next();
        let place = self.with_place(ObjectBuf::new());
        let mut entry = boundary
            .with("parentUuid", parent)
            .uuid(uuid)
            .timestamp(time);
        entry = entry.with("isSidechain", false);
        for (key, value) in place.members() {
            entry = entry.with(key.to_owned(), value.clone());
        }
        format!("{}\n", entry.text())
    }
}
