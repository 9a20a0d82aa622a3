//! Token usage of answers: each counts once, over any number of files.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use transcript_format::ids::is_message_id_of_api;
use transcript_format::kind::EntryKind;
use transcript_format::object::{Object, Raw, Str};
use transcript_format::usage;
use transcript_reader::{BodySource, EntryRef, Index};

/// The model named on answers that no model gave.
pub(crate) const NO_MODEL: &str = "<synthetic>";

/// The usage of the answers of one model. What none of them reports is `None`, never 0.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Usage {
    /// The model; `None` for answers that name none.
    pub model: Option<String>,
    /// The number of answers.
    pub answers: u64,
    /// Input tokens outside of the cache.
    pub input_tokens: Option<u64>,
    /// Tokens of the answers.
    pub output_tokens: Option<u64>,
    /// Input tokens written to the cache. Some clients report only the numbers for each lifetime;
    /// then it is the sum of those.
    pub cache_creation_input_tokens: Option<u64>,
    /// Input tokens read from the cache.
    pub cache_read_input_tokens: Option<u64>,
    /// Tokens written to the cache for five minutes.
    #[serde(rename = "ephemeral5mInputTokens")]
    pub ephemeral_5m_input_tokens: Option<u64>,
    /// Tokens written to the cache for an hour.
    #[serde(rename = "ephemeral1hInputTokens")]
    pub ephemeral_1h_input_tokens: Option<u64>,
    /// Searches of the web by the API.
    pub web_search_requests: Option<u64>,
    /// Price in US dollars, in files of old clients (`costUSD`).
    #[serde(rename = "costUSD")]
    pub cost_usd: Option<f64>,
    /// Milliseconds that the answers took, in files of old clients (`durationMs`).
    pub duration_ms: Option<u64>,
}

/// Sums up the usage of the answers of paths and files.
///
/// The lines of one answer repeat its usage, the first of them often with lower counts; forks,
/// continued sessions and the files of subagents contain copies of whole answers. An answer is
/// therefore identified by its `message.id`, wherever it is, and each of its counts is the highest
/// of its lines. An id that is not of the form of the API may be the same for several answers:
/// there the request, the line, its parent, or its content and time identify it. One without an id
/// is identified by the uuid of its line. Answers that no model gave do not count.
///
/// Add the files of one question: a session and its subagents, or every session of a project. The
/// usage that a file adds to those before it is the difference of [`Self::models`]; with the oldest
/// file first, a copy counts for the session that it was copied from. About 200 bytes are kept for
/// each answer.
///
/// ```
/// use transcript_format::object::Object;
/// use transcript_resume::UsageTotals;
///
/// let line = r#"{"type":"assistant","message":{"id":"m1","model":"m","usage":{"output_tokens":9}}}"#;
/// let mut totals = UsageTotals::new();
/// totals.add(&Object::parse(line)?);
/// totals.add(&Object::parse(&line.replace('9', "159"))?);
/// assert_eq!(totals.models()[0].output_tokens, Some(159));
/// # Ok::<(), transcript_format::object::ParseObjectError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct UsageTotals {
    /// In order of first appearance, so that sums of prices do not depend on hashing.
    answers: Vec<Answer>,
    places: HashMap<Box<str>, usize>,
    last_model: Option<Arc<str>>,
}

/// The highest counts among the lines of one answer.
#[derive(Clone, Debug, Default)]
struct Answer {
    model: Option<Arc<str>>,
    counts: Counts,
    cost_usd: Option<f64>,
    /// Of an answer without a `requestId`: the name of the parent of its first line, which was not
    /// added.
    line_before: Option<Box<str>>,
}

/// The counts of [`Usage`] in order.
type Counts = [Option<u64>; 8];

impl UsageTotals {
    /// Starts with no usage.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds every answer of a file, including those of abandoned branches and of sidechains, which
    /// were paid for. Copies inside `progress` lines do not count.
    ///
    /// # Errors
    /// Those of `bodies`.
    pub fn add_file<B: BodySource>(
        &mut self,
        index: &Index,
        bodies: &mut B,
    ) -> Result<(), B::Error> {
        self.add_entries(index.entries(), bodies)
    }

    /// Adds the answers among these entries.
    ///
    /// # Errors
    /// Those of `bodies`.
    pub fn add_entries<'i, B: BodySource>(
        &mut self,
        entries: impl Iterator<Item = EntryRef<'i>>,
        bodies: &mut B,
    ) -> Result<(), B::Error> {
        for line in entries.filter(|line| line.kind() == EntryKind::Assistant) {
            if let Ok(body) = Object::parse(bodies.body(&line)?) {
                self.add(&body);
            }
        }
        Ok(())
    }

    /// Adds what was added to `later`, as if it were added here.
    pub fn append(&mut self, later: Self) {
        let mut names: Vec<Vec<Box<str>>> = vec![Vec::new(); later.answers.len()];
        for (name, place) in later.places {
            names[place].push(name);
        }
        for (names, more) in names.into_iter().zip(later.answers) {
            let mut own = names.iter().chain(&more.line_before);
            let known = own.find_map(|name| self.places.get(name).copied());
            let place = known.unwrap_or_else(|| self.new_place());
            for name in names {
                self.places.entry(name).or_insert(place);
            }
            let answer = &mut self.answers[place];
            if answer.model.is_none() {
                answer.model = more.model;
            }
            for (most, count) in answer.counts.iter_mut().zip(more.counts) {
                *most = (*most).max(count);
            }
            if let Some(cost) = more.cost_usd {
                answer.cost_usd = Some(answer.cost_usd.unwrap_or(0.0).max(cost));
            }
        }
    }

    /// Adds one `assistant` line.
    pub fn add(&mut self, line: &Object<'_>) {
        if let Some(message) = line.object("message") {
            self.add_message(line, &message);
        }
    }

    /// The same for a line whose message was already read.
    pub(super) fn add_message(&mut self, line: &Object<'_>, message: &Object<'_>) {
        let model = text(message.str("model"));
        let usage = message.read("usage");
        let cost_usd = line
            .get("costUSD")
            .and_then(Raw::f64)
            .filter(|cost| *cost >= 0.0);
        if model.as_deref() == Some(NO_MODEL) || (usage.is_none() && cost_usd.is_none()) {
            return;
        }
        let place = self.place(line, message);
        let model = model.map(|model| self.shared(&model));
        let answer = &mut self.answers[place];
        if answer.model.is_none() {
            answer.model = model;
        }
        for (most, count) in answer.counts.iter_mut().zip(counts(usage, line)) {
            *most = (*most).max(count);
        }
        if let Some(cost) = cost_usd {
            answer.cost_usd = Some(answer.cost_usd.unwrap_or(0.0).max(cost));
        }
    }

    /// Returns the place of the answer of a line; a new place for a new one.
    fn place(&mut self, line: &Object<'_>, message: &Object<'_>) -> usize {
        let uuid = text(line.str("uuid"));
        let Some(id) = text(message.str("id")) else {
            // No message has such an id.
            return match uuid {
                Some(uuid) => self.place_of(&format!("\0{uuid}")),
                None => self.new_place(),
            };
        };
        let says_more = |key: &str| text(line.str(key)).is_some();
        if is_message_id_of_api(&id) || !(says_more("uuid") || says_more("requestId")) {
            return self.place_of(&id);
        }
        // A gateway may give all answers one id: a line belongs to the answer that has the same
        // request, the line itself, or its parent.
        let name = |what: &str, text: Str<'_>| format!("{id}\0{what}{text}").into_boxed_str();
        let request = text(line.str("requestId")).map(|request| name("request", request));
        let own = uuid.map(|uuid| name("line", uuid));
        let parent = text(line.str("parentUuid")).map(|parent| name("line", parent));
        let time = text(line.str("timestamp")).unwrap_or_default();
        let content = message.get("content").map_or("", |content| content.text());
        let mut hasher = DefaultHasher::new();
        (&*time, content).hash(&mut hasher);
        let content = hasher.finish().to_string();
        let content = (!time.is_empty()).then(|| name("content", content.into()));
        let names = [request, own, content];
        let known = names.iter().chain([&parent]).flatten();
        let place = known
            .filter_map(|name| self.places.get(name))
            .next()
            .copied();
        let place = place.unwrap_or_else(|| {
            let place = self.new_place();
            self.answers[place].line_before.clone_from(&parent);
            place
        });
        for name in names.into_iter().flatten() {
            self.places.entry(name).or_insert(place);
        }
        place
    }

    fn place_of(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.new_place();
        self.places.insert(name.into(), place);
        place
    }

    fn new_place(&mut self) -> usize {
        self.answers.push(Answer::default());
        self.answers.len() - 1
    }

    /// Returns the name of a model, shared, as most lines in a row have the same one.
    fn shared(&mut self, model: &str) -> Arc<str> {
        match &self.last_model {
            Some(last) if **last == *model => Arc::clone(last),
            _ => Arc::clone(self.last_model.insert(model.into())),
        }
    }

    /// Returns the sums by model, in the order of their names.
    #[must_use]
    pub fn models(&self) -> Vec<Usage> {
        let mut models = BTreeMap::<Option<&str>, (u64, Counts, Option<f64>)>::new();
        for answer in &self.answers {
            let (answers, sums, cost) = models.entry(answer.model.as_deref()).or_default();
            *answers += 1;
            for (sum, count) in sums.iter_mut().zip(answer.counts) {
                if let Some(count) = count {
                    *sum = Some(sum.unwrap_or(0).saturating_add(count));
                }
            }
            if let Some(more) = answer.cost_usd {
                *cost = Some(cost.unwrap_or(0.0) + more);
            }
        }
        let usage = |(model, (answers, sums, cost_usd)): (Option<&str>, (u64, Counts, _))| {
            let [input, output, written, read, minutes, hour, searches, time] = sums;
            Usage {
                model: model.map(str::to_owned),
                answers,
                input_tokens: input,
                output_tokens: output,
                cache_creation_input_tokens: written,
                cache_read_input_tokens: read,
                ephemeral_5m_input_tokens: minutes,
                ephemeral_1h_input_tokens: hour,
                web_search_requests: searches,
                cost_usd,
                duration_ms: time,
            }
        };
        models.into_iter().map(usage).collect()
    }
}

fn counts(usage: Option<usage::Usage<'_>>, line: &Object<'_>) -> Counts {
    let duration = line.get("durationMs").and_then(Raw::u64);
    let Some(usage) = usage else {
        return [None, None, None, None, None, None, None, duration];
    };
    let lifetimes = usage.cache_creation();
    let minutes = lifetimes
        .as_ref()
        .and_then(|of| of.ephemeral_5m_input_tokens());
    let hour = lifetimes.and_then(|of| of.ephemeral_1h_input_tokens());
    let nested = match (minutes, hour) {
        (None, one) | (one, None) => one,
        (Some(minutes), Some(hour)) => Some(minutes.saturating_add(hour)),
    };
    [
        usage.input_tokens(),
        usage.output_tokens(),
        usage.cache_creation_input_tokens().max(nested),
        usage.cache_read_input_tokens(),
        minutes,
        hour,
        usage
            .server_tool_use()
            .and_then(|tools| tools.web_search_requests()),
        duration,
    ]
}

/// A text that is not empty.
fn text(field: Option<Str<'_>>) -> Option<Str<'_>> {
    field.filter(|text| !text.is_empty())
}
