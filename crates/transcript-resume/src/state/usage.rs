//! Token usage of answers: each counts once, over any number of files.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use transcript_format::answers::{
    self, Above, AnswerCopies, AnswerLines, AnswerMark, FormNames, Links,
};
use transcript_format::ids::is_message_id_of_api;
use transcript_format::kind::EntryKind;
use transcript_format::object::{Object, Raw, Str};
use transcript_format::scan::Body;
use transcript_format::{time, usage};
use transcript_reader::{BodySource, EntryRef, Index, is_turn};

/// The model named on answers that no model gave.
pub(crate) const NO_MODEL: &str = "<synthetic>";

/// The usage of the answers of one model. What none of them reports is `None`, never 0.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
/// of its lines. An id that is not of the form of the API may be absent, or the same for several
/// answers: there the links between lines decide, and what copies have in common, as in
/// [`transcript_format::answers`]. On a path, where entries are omitted, a line whose parent is not
/// there follows the last answer, prompt or result. Answers that no model gave do not count.
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
    answers: Vec<AnswerCounts>,
    /// The answers whose id is unique.
    places: HashMap<Box<str>, usize>,
    others: AmbiguousAnswers,
    last_model: Option<Arc<str>>,
}

/// The index of answers whose id may be that of others; it distinguishes them by links and content.
#[derive(Clone, Debug, Default)]
struct AmbiguousAnswers {
    /// The lines of the last file from the first such answer on.
    lines: AnswerLines,
    copies: AnswerCopies,
    /// Their positions in `answers`.
    places: Vec<usize>,
    /// The number of files before the last one.
    file: u32,
    /// Whether the last file has such an answer.
    needs_all: bool,
    /// Whether a turn was before the first one.
    has_turn: bool,
}

impl AmbiguousAnswers {
    fn next_file(&mut self) {
        self.lines.clear();
        self.file += 1;
        (self.needs_all, self.has_turn) = (false, false);
    }
}

/// The fields of the first line of an answer whose id may be that of others. Texts are hashes, 0 for none.
#[derive(Clone, Copy, Debug)]
struct FirstLine {
    file: u32,
    /// The same for all answers without an id.
    id: u64,
    request: u64,
    line: u64,
    /// The line that it is a copy of, or itself.
    first_line: u64,
    /// The line above it, else the lane, if they were not read.
    unread: [u64; 2],
    content: u64,
    time: Option<i64>,
}

impl FirstLine {
    /// Returns whether a line that belongs to the same answer by its links has the same id and no other request.
    fn is_with(&self, line: &Self) -> bool {
        let requests = [self.request, line.request];
        self.id == line.id && (requests.contains(&0) || requests[0] == requests[1])
    }

    fn marks(&self) -> Vec<AnswerMark> {
        let with_id = |text: u64| (text != 0).then(|| hash(&(self.id, text)));
        let last_line = (self.line != self.first_line).then_some(self.line);
        let content = with_id(self.content);
        // The surest first. The content alone is not a mark: two conversations can have the same words.
        let found = [
            with_id(self.first_line).map(AnswerMark::Line),
            last_line.and_then(with_id).map(AnswerMark::Line),
            content
                .zip(self.time)
                .map(|(content, time)| AnswerMark::Content(content, time)),
            content
                .filter(|_| self.request != 0)
                .map(|content| AnswerMark::Request(content, self.request)),
        ];
        found.into_iter().flatten().collect()
    }
}

/// The highest counts among the lines of one answer.
#[derive(Clone, Debug, Default)]
struct AnswerCounts {
    model: Option<Arc<str>>,
    counts: Counts,
    cost_usd: Option<f64>,
    /// If its id may be that of others.
    origin: Option<Box<FirstLine>>,
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
    /// The errors of `bodies`.
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
    /// The errors of `bodies`.
    pub fn add_entries<'i, B: BodySource>(
        &mut self,
        entries: impl Iterator<Item = EntryRef<'i>>,
        bodies: &mut B,
    ) -> Result<(), B::Error> {
        for entry in entries {
            // The first entry of another file: links lead to lines of one file only.
            if entry.number().get() == 0 {
                self.others.next_file();
            }
            if entry.kind() == EntryKind::Assistant {
                if let Ok(body) = Object::parse(bodies.body(&entry)?) {
                    self.add(&body);
                }
            // Most files have only ids of the API: then no body but those of answers is read.
            } else if !self.others.needs_all {
                self.others.has_turn |= is_turn(entry);
            } else if let Ok(body) = Body::parse(bodies.body(&entry)?) {
                self.add_link(&body);
            }
        }
        Ok(())
    }

    /// Adds an entry that is not an answer.
    pub(super) fn add_link(&mut self, body: &Body<'_>) {
        let others = &mut self.others;
        let is_turn = answers::is_turn(body);
        if !others.needs_all {
            others.has_turn |= is_turn;
            return;
        }
        let links = links(&body.object);
        if is_turn {
            others.lines.add_turn(links);
        } else {
            others.lines.add_other(links);
        }
    }

    /// Adds the lines that were added to `later`, as if they were added here.
    pub fn append(&mut self, later: Self) {
        let mut ids: Vec<Option<Box<str>>> = vec![None; later.answers.len()];
        for (id, place) in later.places {
            ids[place] = Some(id);
        }
        let file = self.others.file;
        let mut places = Vec::with_capacity(ids.len());
        // A turn between the two parts: a first line without a parent there belongs to no answer of this part.
        if later.others.has_turn && later.others.file == 0 {
            self.others.lines.end_lanes();
        }
        for (id, mut more) in ids.into_iter().zip(later.answers) {
            let origin = more.origin.take();
            let place = match (id, origin) {
                (Some(id), _) => self.place_of(&id),
                (None, Some(mut origin)) => {
                    let unread = match origin.file {
                        0 => origin.unread.map(|name| self.others.lines.find(name)),
                        _ => [None; 2],
                    };
                    let own = match origin.file {
                        0 => self.others.lines.answer(origin.line),
                        _ => None,
                    };
                    origin.file += file;
                    let above = unread.into_iter().flatten().next();
                    let known = own.map(Above::Answer).into_iter().chain(above);
                    self.place_of_other(*origin, known)
                }
                (None, None) => self.new_place(),
            };
            places.push(place);
            let answer = &mut self.answers[place];
            if answer.model.is_none() {
                answer.model = more.model;
            }
            // The first lines of an answer have the counts that were known when it started: the largest is the final one.
            for (most, count) in answer.counts.iter_mut().zip(more.counts) {
                *most = (*most).max(count);
            }
            if let Some(cost) = more.cost_usd {
                answer.cost_usd = Some(answer.cost_usd.unwrap_or(0.0).max(cost));
            }
        }
        // Last, as the positions of all answers of the later part are needed for its links.
        let (others, later) = (&mut self.others, later.others);
        if later.file > 0 {
            others.next_file();
            others.file = file + later.file;
        }
        others.needs_all |= later.needs_all;
        others.has_turn |= later.has_turn;
        let number = |there: u32| number(*places.get(there as usize)?);
        others.lines.append(later.lines.ends(), number);
    }

    /// Adds one `assistant` line.
    pub fn add(&mut self, line: &Object<'_>) {
        if let Some(message) = line.object("message") {
            self.add_message(line, &message);
        }
    }

    /// Like [`Self::add`], for a line whose message was already read.
    pub(super) fn add_message(&mut self, line: &Object<'_>, message: &Object<'_>) {
        let model = text(message.str("model"));
        let usage = message.read("usage");
        let cost_usd = line
            .get("costUSD")
            .and_then(Raw::f64)
            .filter(|cost| *cost >= 0.0);
        let is_of_model = model.as_deref() != Some(NO_MODEL);
        // Not an answer that was paid for; but the line is still a link between others.
        if !is_of_model || (usage.is_none() && cost_usd.is_none()) {
            if self.others.needs_all {
                if is_of_model {
                    self.others.lines.add_other(links(line));
                } else {
                    self.others.lines.add_turn(links(line));
                }
            }
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
        let id = text(message.str("id"));
        let of_api = id.as_deref().filter(|id| is_message_id_of_api(id));
        // An id of the API is that of one answer, whatever the links are; forks and subagents copy it.
        let (place, links) = match of_api {
            Some(id) if !self.others.needs_all => return self.place_of(id),
            Some(id) => (self.place_of(id), links(line)),
            None => {
                let links = links(line);
                (self.place_of_line(line, message, links), links)
            }
        };
        if let Some(number) = number(place) {
            self.others.lines.add_answer(links, number);
        }
        place
    }

    /// Returns the place of the answer of a line whose id may be that of others.
    fn place_of_line(&mut self, line: &Object<'_>, message: &Object<'_>, links: Links) -> usize {
        let named = FormNames::of(line);
        let id = text(message.str("id"));
        // A line without an id, a uuid and a parent cannot be recognized again: it is an answer of its own.
        let is_linked = id.is_some() || links.parent != 0 || named.is_stream();
        if !is_linked && links.line == 0 {
            return self.new_place();
        }
        let lines = &mut self.others.lines;
        let own = lines.answer(links.line).map(Above::Answer);
        let mut above = is_linked.then(|| lines.above(links));
        let mut unread = [0; 2];
        if let Some(Above::Unread(name)) = above {
            // On a path, the entry above may be omitted.
            let in_lane = Links { parent: 0, ..links };
            above = Some(lines.above(in_lane)).filter(|_| lines.find(name).is_none());
            unread[0] = name;
            if let Some(Above::Unread(lane)) = above {
                unread[1] = if self.others.has_turn { 0 } else { lane };
            }
            // Another line below it is another answer.
            if links.parent != 0 {
                lines.add_other(Links {
                    line: name,
                    ..links
                });
            }
        }
        let copied = line.object("forkedFrom");
        let copied = copied.map_or(0, |from| hash_of(from.str("messageUuid")));
        let origin = FirstLine {
            file: self.others.file,
            id: hash_of(id),
            request: hash_of(line.str(named.request)),
            line: links.line,
            first_line: if copied == 0 { links.line } else { copied },
            unread,
            content: message
                .get("content")
                .map_or(0, |content| hash(content.text())),
            time: time::millis(line.str("timestamp").unwrap_or_default().as_bytes()),
        };
        // From here on the links of all lines of this file count, as prompts and results separate answers.
        self.others.needs_all = true;
        self.place_of_other(origin, own.into_iter().chain(above))
    }

    /// Returns the place of the first of these answers above a line that it can belong to, else that of its copy in
    /// another file, else a new one.
    fn place_of_other(&mut self, origin: FirstLine, above: impl Iterator<Item = Above>) -> usize {
        for above in above {
            let Above::Answer(number) = above else {
                continue;
            };
            let place = number as usize;
            if let Some(first) = &mut self.answers[place].origin
                && first.is_with(&origin)
            {
                // Later lines must be compared with the `requestId` that any line of the answer has.
                if first.request == 0 {
                    first.request = origin.request;
                }
                return place;
            }
        }
        let number = self.others.copies.add(origin.file, &origin.marks());
        if let Some(place) = self.others.places.get(number as usize) {
            return *place;
        }
        let place = self.new_place();
        self.others.places.push(place);
        self.answers[place].origin = Some(Box::new(origin));
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
        self.answers.push(AnswerCounts::default());
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

fn links(line: &Object<'_>) -> Links {
    FormNames::of(line).links(line, hash)
}

/// Returns a hash of a text, 0 for none.
fn hash_of(field: Option<Str<'_>>) -> u64 {
    text(field).map_or(0, |text| hash(text.as_bytes()).max(1))
}

fn hash(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the number of the answer at a place.
fn number(place: usize) -> Option<u32> {
    u32::try_from(place).ok()
}
