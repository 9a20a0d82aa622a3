//! A session of Pi: a tree that is one path.

use transcript_format::json::{Json, ObjectBuf};

use crate::Error;

use super::files::{Extra, Files};
use super::new_session::NewSession;
use super::order::Step;
use super::output::{Output, input_object, is_call};
use super::rules::{ImagesOfResults, Order, Rules, Summaries, prompt_text};
use super::source_item::{Image, SourceItem};

pub(super) const RULES: Rules = Rules {
    holds_reasoning: false,
    sends_empty: true,
    is_nothing: str::is_empty,
    sends_repeated_results: false,
    holds_string_inputs: false,
    holds_errors: true,
    accepts_any_error: true,
    holds_images: true,
    images_of_results: ImagesOfResults::Inside,
    order: Order::ResultsBehindResponse,
    joins_prompts: false,
    summaries: Summaries::Anywhere,
    is_command: |_| false,
    begins_with_prompt: false,
    completes_calls: true,
    adds_answer: false,
    id_separator: None,
};

/// The version of the format.
const FORMAT: u64 = 3;

/// The maker, the interface and the model of answers of another agent. Pi has no model of this name, so it continues with its own.
const MODEL: &str = "handover";

/// Returns the files of a session.
pub(super) fn files(session: &NewSession) -> Files {
    let folder = session.cwd.trim_start_matches(['/', '\\']);
    let folder = folder.replace(['/', '\\', ':'], "-");
    let time = session.started().replace([':', '.'], "-");
    Files {
        main: format!("sessions/--{folder}--/{time}_{}.jsonl", session.id).into(),
        before: Vec::<Extra>::new(),
        after: Vec::new(),
    }
}

/// Writes the session.
pub(super) fn write(out: &mut Output<'_>) -> Result<(), Error> {
    let session = out.session;
    let header = ObjectBuf::new()
        .with("type", "session")
        .with("version", FORMAT)
        .with("id", session.id)
        .with("timestamp", &*session.started())
        .with("cwd", &*session.cwd);
    out.line(&header)?;
    let mut path = Path::new(session);
    for (number, step) in out.plan.steps.iter().enumerate() {
        match step {
            Step::Prompt(at) => {
                let item = out.item(*at)?;
                let content = content(out, &prompt_text(item.clone(), out.rules), &item);
                let message = ObjectBuf::new()
                    .with("role", "user")
                    .with("content", content);
                write_message(out, &mut path, message, item.time)?;
            }
            Step::Summary(at) => {
                let item = out.item(*at)?;
                let kind = if number == 0 {
                    "compaction"
                } else {
                    "branch_summary"
                };
                let time = out.time(&item);
                let entry = path.entry(kind, &time).with("summary", &*item.text);
                let about = path.about(kind);
                let entry = about.members().fold(entry, |entry, (key, value)| {
                    entry.with(key.to_owned(), value.clone())
                });
                out.line(&entry)?;
            }
            Step::Response(items) => write_response(out, &mut path, items)?,
            Step::Results(items) => {
                for at in items {
                    let item = out.item(*at)?;
                    let head = out.head(*at);
                    let message = ObjectBuf::new()
                        .with("role", "toolResult")
                        .with("toolCallId", &*head.call_id)
                        .with("toolName", &*head.name)
                        .with("content", content(out, &item.output, &item))
                        .with("isError", item.is_error);
                    write_message(out, &mut path, message, item.time)?;
                }
            }
        }
    }
    let Some(title) = &session.title else {
        return Ok(());
    };
    let time = out.clock.next_text(None);
    out.line(&path.entry("session_info", &time).with("name", &**title))
}

fn write_response(out: &mut Output<'_>, path: &mut Path, items: &[usize]) -> Result<(), Error> {
    // A response is one record, so its texts are in memory at once.
    let mut parts = Vec::new();
    let mut time = None;
    for at in items {
        let item = out.item(*at)?;
        let head = out.head(*at);
        time = time.or(item.time);
        let part = if is_call(head) {
            ObjectBuf::new()
                .with("type", "toolCall")
                .with("id", &*head.call_id)
                .with("name", &*head.name)
                .with("arguments", input_object(&item))
        } else {
            ObjectBuf::new()
                .with("type", "text")
                .with("text", &*item.text)
        };
        parts.push(Json::from(part));
    }
    let has_calls = items.iter().any(|at| is_call(out.head(*at)));
    let message = ObjectBuf::new()
        .with("role", "assistant")
        .with("content", Json::array(parts))
        .with("api", MODEL)
        .with("provider", MODEL)
        .with("model", MODEL)
        .with("usage", no_tokens())
        .with("stopReason", if has_calls { "toolUse" } else { "stop" });
    write_message(out, path, message, time)
}

fn write_message(
    out: &mut Output<'_>,
    path: &mut Path,
    message: ObjectBuf,
    time: Option<i64>,
) -> Result<(), Error> {
    let millis = out.clock.next(time);
    let message = message.with("timestamp", millis.unsigned_abs());
    let time = super::new_session::text_of(millis);
    out.line(&path.entry("message", &time).with("message", message))
}

fn content(out: &Output<'_>, text: &str, item: &SourceItem) -> Json {
    let images: Vec<Json> = out.images(item).map(image_part).collect();
    let has_text = !text.is_empty() || images.is_empty();
    let part = has_text.then(|| {
        ObjectBuf::new()
            .with("type", "text")
            .with("text", text)
            .into()
    });
    Json::array(part.into_iter().chain(images))
}

fn image_part(image: &Image) -> Json {
    ObjectBuf::new()
        .with("type", "image")
        .with("data", &*image.data)
        .with("mimeType", &*image.media_type)
        .into()
}

fn no_tokens() -> ObjectBuf {
    let mut cost = ObjectBuf::new();
    for key in ["input", "output", "cacheRead", "cacheWrite", "total"] {
        cost.set(key, 0u64);
    }
    let mut tokens = ObjectBuf::new();
    for key in ["input", "output", "cacheRead", "cacheWrite", "totalTokens"] {
        tokens.set(key, 0u64);
    }
    tokens.with("cost", cost)
}

/// The path of entries while it is written.
struct Path {
    first: u32,
    entries: u32,
    last: Option<String>,
}

impl Path {
    fn new(session: &NewSession) -> Self {
        Self {
            first: session.seed.number("entries"),
            entries: 0,
            last: None,
        }
    }

    /// Returns the start of the next entry.
    fn entry(&mut self, kind: &str, time: &str) -> ObjectBuf {
        // An odd factor takes different numbers to different ids.
        const FACTOR: u32 = 0x9E37_79B1;
        let id = self.first.wrapping_add(self.entries.wrapping_mul(FACTOR));
        self.entries += 1;
        let id = format!("{id:08x}");
        let parent = Json::from(self.last.replace(id.clone()).as_deref());
        ObjectBuf::new()
            .with("type", kind)
            .with("id", &*id)
            .with("parentId", parent)
            .with("timestamp", time)
    }

    /// Returns the fields of the last entry, a summary. A compaction keeps no entries before it: there are none.
    fn about(&self, kind: &str) -> ObjectBuf {
        let last = self.last.as_deref();
        if kind == "compaction" {
            return ObjectBuf::new()
                .with("firstKeptEntryId", last)
                .with("tokensBefore", 0u64);
        }
        ObjectBuf::new().with("fromId", "root")
    }
}
