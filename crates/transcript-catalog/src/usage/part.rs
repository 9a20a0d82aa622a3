//! What a part of a file says about usage: the lines of answers, and what belongs to them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::num::{NonZeroU64, NonZeroU128};

use serde::{Deserialize, Serialize};
use transcript_format::ids::is_message_id_of_api;
use transcript_format::object::{Object, Raw};
use transcript_format::scan::Body;
use transcript_format::time;

use crate::sidecar::hash;

/// Larger counts are not believed: no number of JSON is sure to hold them.
const MAX_COUNT: u64 = 1 << 53;
/// The model of answers that no model gave.
const SYNTHETIC: &str = "<synthetic>";

/// The number of a name in [`Names`], from 1; 0 for none.
pub(super) type Name = u32;

/// Names that occur many times.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    numbers: HashMap<Box<str>, Name>,
    pub(super) all: Vec<Box<str>>,
}

impl Names {
    /// Returns the number of a name; 0 for the empty one.
    pub(super) fn number(&mut self, name: &str) -> Name {
        if name.is_empty() {
            return 0;
        }
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.all.push(name.into());
        // No store has so many names.
        let number = Name::try_from(self.all.len()).unwrap_or(0);
        self.numbers.insert(name.into(), number);
        number
    }

    pub(super) fn get(&self, name: Name) -> Option<&str> {
        let at = (name as usize).checked_sub(1)?;
        self.all.get(at).map(|name| &**name)
    }
}

/// A count, one larger than it is, so that an unknown one takes no more room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub(super) struct Count(NonZeroU64);

impl Count {
    pub(super) fn new(count: u64) -> Option<Self> {
        NonZeroU64::new(count.checked_add(1)?).map(Self)
    }
}

/// Returns the count, 0 if it is not known.
pub(super) fn known(count: Option<Count>) -> u64 {
    count.map_or(0, |count| count.0.get() - 1)
}

/// The counts of `usage` as they are in the file; `None` for those that are not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Counts {
    pub(super) input: Option<Count>,
    pub(super) output: Option<Count>,
    pub(super) cache_write: Option<Count>,
    pub(super) cache_write_5m: Option<Count>,
    pub(super) cache_write_1h: Option<Count>,
    pub(super) cache_read: Option<Count>,
    pub(super) web_search: Option<Count>,
    pub(super) web_fetch: Option<Count>,
}

impl Counts {
    pub(super) fn read(usage: &Object<'_>) -> Self {
        let lifetimes = usage.object("cache_creation");
        let tools = usage.object("server_tool_use");
        let nested = |object: &Option<Object<'_>>, key| count(object.as_ref()?, key);
        Self {
            input: count(usage, "input_tokens"),
            output: count(usage, "output_tokens"),
            cache_write: count(usage, "cache_creation_input_tokens"),
            cache_write_5m: nested(&lifetimes, "ephemeral_5m_input_tokens"),
            cache_write_1h: nested(&lifetimes, "ephemeral_1h_input_tokens"),
            cache_read: count(usage, "cache_read_input_tokens"),
            web_search: nested(&tools, "web_search_requests"),
            web_fetch: nested(&tools, "web_fetch_requests"),
        }
    }

    /// Returns the larger of each count.
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cache_write: self.cache_write.max(other.cache_write),
            cache_write_5m: self.cache_write_5m.max(other.cache_write_5m),
            cache_write_1h: self.cache_write_1h.max(other.cache_write_1h),
            cache_read: self.cache_read.max(other.cache_read),
            web_search: self.web_search.max(other.web_search),
            web_fetch: self.web_fetch.max(other.web_fetch),
        }
    }
}

fn count(object: &Object<'_>, key: &str) -> Option<Count> {
    let count = object.get(key)?.u64().filter(|count| *count <= MAX_COUNT);
    count.and_then(Count::new)
}

/// A step of a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Step {
    /// Whether its counts can be part of those of the request.
    pub(super) is_message: bool,
    pub(super) model: Name,
    pub(super) counts: Counts,
}

/// The steps of the line with the most output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Steps {
    pub(super) output: Option<Count>,
    pub(super) list: Vec<Step>,
}

impl Steps {
    fn read(names: &mut Names, usage: &Object<'_>, output: Option<Count>) -> Self {
        let list = usage.array("iterations").unwrap_or_default();
        let steps = list.into_iter().filter_map(|step| {
            let step = step.object()?;
            let kind = text(&step, "type");
            Some(Step {
                is_message: !matches!(&*kind, "compaction" | "advisor_message"),
                model: names.number(&text(&step, "model")),
                counts: Counts::read(&step),
            })
        });
        Self {
            output,
            list: steps.collect(),
        }
    }

    /// Takes the list of a later line if that has more output.
    pub(super) fn follow(&mut self, later: Self) {
        if !later.list.is_empty() && (self.list.is_empty() || later.output > self.output) {
            *self = later;
        }
    }
}

/// The call of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct ToolCall {
    /// A hash of its id.
    #[serde(with = "postcard::fixint::le")]
    pub(super) id: u64,
    pub(super) tool: Name,
}

/// An id as 16 bytes: as a number of variable length it would take more, and more time.
pub(super) mod id_bytes {
    use std::num::NonZeroU128;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde passes references")]
    pub(crate) fn serialize<S: Serializer>(
        id: &Option<NonZeroU128>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        id.map_or(0, NonZeroU128::get)
            .to_le_bytes()
            .serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<NonZeroU128>, D::Error> {
        let bytes = <[u8; 16]>::deserialize(deserializer)?;
        Ok(NonZeroU128::new(u128::from_le_bytes(bytes)))
    }
}

/// Hashes that show which copies with one `message.id` are one answer; 0 for what is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Marks {
    /// `requestId`.
    #[serde(with = "postcard::fixint::le")]
    pub(super) request: u64,
    /// The uuid of the first line, or of the line that it is a copy of.
    #[serde(with = "postcard::fixint::le")]
    pub(super) first_line: u64,
    #[serde(with = "postcard::fixint::le")]
    pub(super) last_line: u64,
    /// The parent of the first line.
    #[serde(with = "postcard::fixint::le")]
    pub(super) line_before: u64,
    /// The content of the first line.
    #[serde(with = "postcard::fixint::le")]
    pub(super) content: u64,
}

/// What the first line of a copy says, which stands for all of it, and what all its lines say together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Copy {
    /// A hash of `message.id`, or of the uuid without one; `None` if the line is a request of its own.
    #[serde(with = "id_bytes")]
    pub(super) id: Option<NonZeroU128>,
    /// Whether the id has the form of those that the API gives, which are unique.
    pub(super) is_of_api: bool,
    pub(super) marks: Marks,
    /// Of the first line, in bytes.
    pub(super) offset: u64,
    /// Of the first line.
    pub(super) first_time: Time,
    /// The earliest.
    pub(super) time: Time,
    pub(super) is_forked: bool,
    pub(super) is_sidechain: bool,
    /// Whether the first line names the session of its file.
    pub(super) is_own: bool,
    pub(super) has_stop: bool,
    pub(super) counts: Counts,
    pub(super) model: Name,
    pub(super) service_tier: Name,
    pub(super) inference_geo: Name,
    pub(super) speed: Name,
    pub(super) agent: Name,
    pub(super) git_branch: Name,
    /// In nano-dollars.
    pub(super) reported: Option<Count>,
    /// Whether this is no request, but the result of a run without any, which reports its cost.
    #[serde(skip)]
    pub(super) is_result: bool,
    pub(super) calls: Vec<ToolCall>,
    pub(super) steps: Steps,
    /// What results in the same file say about searches, which is not known yet when a part is read.
    #[serde(skip)]
    pub(super) client_searches: u64,
    /// Whether it has become a part of another copy.
    #[serde(skip)]
    pub(super) is_merged: bool,
}

impl Copy {
    /// Adds later lines of the same file.
    pub(super) fn follow(&mut self, later: Self) {
        self.time = self.time.min(later.time);
        self.has_stop |= later.has_stop;
        self.counts = self.counts.max(later.counts);
        for (mine, last) in [
            (&mut self.service_tier, later.service_tier),
            (&mut self.inference_geo, later.inference_geo),
            (&mut self.speed, later.speed),
        ] {
            if last != 0 {
                *mine = last;
            }
        }
        if self.model == 0 {
            self.model = later.model;
        }
        self.reported = self.reported.max(later.reported);
        if self.marks.request == 0 {
            self.marks.request = later.marks.request;
        }
        self.marks.last_line = later.marks.last_line;
        add_calls(&mut self.calls, later.calls);
        self.steps.follow(later.steps);
        let searches = self.client_searches.saturating_add(later.client_searches);
        self.client_searches = searches;
    }

    /// Calls `change` with all names.
    pub(super) fn for_each_name(&mut self, mut change: impl FnMut(&mut Name)) {
        for name in [
            &mut self.model,
            &mut self.service_tier,
            &mut self.inference_geo,
            &mut self.speed,
            &mut self.agent,
            &mut self.git_branch,
        ] {
            change(name);
        }
        self.calls
            .iter_mut()
            .for_each(|call| change(&mut call.tool));
        self.steps
            .list
            .iter_mut()
            .for_each(|step| change(&mut step.model));
    }
}

/// A time in milliseconds since 1970. An unknown one is later than all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub(super) struct Time(i64);

impl Default for Time {
    fn default() -> Self {
        Self(i64::MAX)
    }
}

impl Time {
    pub(super) fn get(self) -> Option<i64> {
        (self != Self::default()).then_some(self.0)
    }
}

/// What the client counted: a `cost-state` entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Counted {
    /// In nano-dollars.
    pub(super) cost: Option<u64>,
    /// The name, the counts, and the cost in nano-dollars of each model.
    pub(super) models: Vec<(String, Counts, Option<u64>)>,
}

/// The running total of a process of the SDK, as a `result` line reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct RunTotal {
    pub(super) offset: u64,
    /// A hash of its session.
    #[serde(with = "postcard::fixint::le")]
    pub(super) session: u64,
    /// A hash of its uuid; 0 for none.
    #[serde(with = "postcard::fixint::le")]
    pub(super) line: u64,
    pub(super) time: Time,
    /// In nano-dollars.
    pub(super) cost: u64,
}

/// What a part of a file says.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Part {
    /// The names that the copies have numbers of.
    pub(super) names: Vec<Box<str>>,
    /// In the order of their first lines. Lines of one request can be in several parts.
    pub(super) copies: Vec<Copy>,
    /// The number of searches of results, and a hash of the id of the call.
    pub(super) searches: Vec<(u64, u64)>,
    /// The offset and the time of the compaction boundaries.
    pub(super) boundaries: Vec<(u64, Option<i64>)>,
    /// The last one.
    pub(super) counted: Option<Counted>,
    /// In order.
    pub(super) run_totals: Vec<RunTotal>,
}

impl Part {
    /// Returns the bytes that are kept.
    pub(super) fn write(&self) -> Vec<u8> {
        // Only a sequence without a length fails.
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// Reads such bytes; `None` if they are something else.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}

/// Reads the lines of a part of a file.
#[derive(Debug, Default)]
pub(super) struct Reader {
    part: Part,
    names: Names,
    /// The last copy with each id.
    places: HashMap<NonZeroU128, usize>,
    /// The copy of each line, by the id and the hash of its uuid, and by the id and the hash of its
    /// request.
    known: HashMap<(NonZeroU128, u64), usize>,
    /// The end of the last line of an answer, and its copy.
    last: Option<(u64, usize)>,
}

/// A line is not a JSON object.
#[derive(Debug)]
pub(super) struct Damaged;

impl Reader {
    /// Returns what was read, and starts again.
    pub(super) fn take(&mut self) -> Part {
        self.places.clear();
        self.known.clear();
        self.last = None;
        let mut part = std::mem::take(&mut self.part);
        part.names = std::mem::take(&mut self.names).all;
        part
    }

    /// Reads one entry of a file of the session with the id `session`.
    pub(super) fn read(&mut self, text: &str, offset: u64, session: &str) -> Result<(), Damaged> {
        let body = Body::parse(text).map_err(|_| Damaged)?;
        match &*self::text(&body.object, "type") {
            "assistant" => self.read_answer(&body, (offset, text.len()), session),
            "user" => self.read_searches(&body),
            "system" if self::text(&body.object, "subtype") == "compact_boundary" => {
                self.part.boundaries.push((offset, millis(&body.object)));
            }
            "cost-state" => self.part.counted = Some(Counted::read(&body.object)),
            "result" => self.read_result(&body.object, offset),
            _ => {}
        }
        Ok(())
    }

    fn read_result(&mut self, entry: &Object<'_>, offset: u64) {
        if let Some(cost) = nano_dollars(entry.get("total_cost_usd")) {
            self.part.run_totals.push(RunTotal {
                offset,
                session: hash(text(entry, "session_id").as_bytes()),
                line: mark(&text(entry, "uuid")),
                time: millis(entry).map_or_else(Time::default, Time),
                cost,
            });
        }
    }

    fn read_answer(&mut self, body: &Body<'_>, (offset, len): (u64, usize), session: &str) {
        let entry = &body.object;
        let Some(message) = &body.message else {
            return;
        };
        let usage = message.object("usage");
        let (id, model) = (text(message, "id"), text(message, "model"));
        if model == SYNTHETIC || id.is_empty() && usage.is_none() {
            return;
        }
        let uuid = text(entry, "uuid");
        let key = match (id.is_empty(), uuid.is_empty()) {
            (false, _) => Some(wide_hash(b"id:", &id)),
            (true, false) => Some(wide_hash(b"uuid:", &uuid)),
            (true, true) => None,
        };
        let is_of_api = is_message_id_of_api(&id);
        let named = FormNames::of(entry);
        let marks = Marks::of(entry, message, named);
        let names = &mut self.names;
        let counts = usage.as_ref().map(Counts::read).unwrap_or_default();
        let mut of_usage = |key| match &usage {
            Some(usage) => names.number(&text(usage, key)),
            None => 0,
        };
        let (service_tier, inference_geo, speed) = (
            of_usage("service_tier"),
            of_usage("inference_geo"),
            of_usage("speed"),
        );
        let steps = match &usage {
            Some(usage) => Steps::read(names, usage, counts.output),
            None => Steps::default(),
        };
        let time = millis(entry).map_or_else(Time::default, Time);
        let copy = Copy {
            id: key,
            is_of_api,
            marks,
            offset,
            first_time: time,
            time,
            is_forked: entry.object("forkedFrom").is_some(),
            is_sidechain: entry.bool("isSidechain") == Some(true)
                || named.is_stream() && !text(entry, named.agent).is_empty(),
            is_own: text(entry, named.session) == session,
            has_stop: message.str("stop_reason").is_some(),
            counts,
            model: names.number(&model),
            service_tier,
            inference_geo,
            speed,
            agent: names.number(&text(entry, named.agent)),
            git_branch: names.number(&text(entry, "gitBranch")),
            reported: nano_dollars(entry.get("costUSD")).and_then(Count::new),
            is_result: false,
            calls: calls(names, body, offset),
            steps,
            client_searches: 0,
            is_merged: false,
        };
        let new = self.part.copies.len();
        let place = key.and_then(|key| self.place_of(key, &marks, offset));
        match place {
            Some(place) => self.part.copies[place].follow(copy),
            None => self.part.copies.push(copy),
        }
        let place = place.unwrap_or(new);
        self.last = Some((offset + len as u64, place));
        if let Some(key) = key {
            self.places.insert(key, place);
            for mark in [marks.last_line, marks.request]
                .into_iter()
                .filter(|mark| *mark != 0)
            {
                self.known.insert((key, mark), place);
            }
        }
    }

    /// Returns the copy that a line belongs to. Gateways give all answers the same `message.id`, or
    /// number those of each session: a line belongs to the answer with the same id and the same
    /// `requestId`, else to that of the line which it names as its parent, or of the line right
    /// before it.
    fn place_of(&self, key: NonZeroU128, marks: &Marks, offset: u64) -> Option<usize> {
        // A line feed, and a carriage return before it.
        const LINE_END: u64 = 2;
        let last = *self.places.get(&key)?;
        let known = |mark: u64| self.known.get(&(key, mark)).copied();
        let is_other = |place: &usize| {
            let request = self.part.copies[*place].marks.request;
            request != 0 && marks.request != 0 && request != marks.request
        };
        let is_right_before =
            |(end, place): &(u64, usize)| *place == last && offset.saturating_sub(*end) <= LINE_END;
        let before = self.last.filter(is_right_before).map(|(_, place)| place);
        let of_line = known(marks.last_line)
            .or_else(|| known(marks.line_before))
            .or(before);
        known(marks.request).or(of_line.filter(|place| !is_other(place)))
    }

    /// Reads how many searches a result of the client's `WebSearch` made.
    fn read_searches(&mut self, body: &Body<'_>) {
        let result = body.tool_use_result.as_ref();
        let searches = known(result.and_then(|result| count(result, "searchCount")));
        let blocks = body.blocks.iter().flatten();
        let mut blocks = blocks.filter_map(|(_, block)| block.as_ref());
        let result = blocks.find(|block| text(block, "type") == "tool_result");
        if let (Some(block), 1..) = (result, searches) {
            let call = hash(text(block, "tool_use_id").as_bytes());
            self.part.searches.push((call, searches));
        }
    }
}

impl Counted {
    fn read(entry: &Object<'_>) -> Self {
        let models = entry.object("modelUsage");
        let models = models.iter().flat_map(Object::members);
        let models = models.filter_map(|(name, model)| {
            let model = model.object()?;
            let counts = Counts {
                input: count(&model, "inputTokens"),
                output: count(&model, "outputTokens"),
                cache_write: count(&model, "cacheCreationInputTokens"),
                cache_write_5m: count(&model, "cacheCreationEphemeral5mInputTokens"),
                cache_write_1h: count(&model, "cacheCreationEphemeral1hInputTokens"),
                cache_read: count(&model, "cacheReadInputTokens"),
                web_search: count(&model, "webSearchRequests"),
                web_fetch: None,
            };
            Some((name.to_string(), counts, nano_dollars(model.get("costUSD"))))
        });
        Self {
            cost: nano_dollars(entry.get("totalCostUSD")),
            models: models.collect(),
        }
    }
}

fn calls(names: &mut Names, body: &Body<'_>, offset: u64) -> Vec<ToolCall> {
    let blocks = body.blocks.iter().flatten().enumerate();
    let found = blocks.filter_map(|(number, (_, block))| {
        let block = block.as_ref()?;
        let kind = text(block, "type");
        if !matches!(&*kind, "tool_use" | "server_tool_use" | "mcp_tool_use") {
            return None;
        }
        let id = text(block, "id");
        let id = match id.is_empty() {
            false => hash(id.as_bytes()),
            // A call without an id is a call of its own.
            true => hash(format!("\0{offset}:{number}").as_bytes()),
        };
        let tool = names.number(&text(block, "name"));
        Some(ToolCall { id, tool })
    });
    let mut calls = Vec::new();
    add_calls(&mut calls, found.collect());
    calls
}

/// Adds the calls whose id is new.
fn add_calls(calls: &mut Vec<ToolCall>, more: Vec<ToolCall>) {
    if calls.is_empty() && more.len() <= 1 {
        *calls = more;
        return;
    }
    let mut seen: HashSet<u64> = calls.iter().map(|call| call.id).collect();
    calls.extend(more.into_iter().filter(|call| seen.insert(call.id)));
}

/// Returns a member that is a text; the empty text if there is none.
fn text<'a>(object: &Object<'a>, key: &str) -> Cow<'a, str> {
    object.str(key).unwrap_or_default()
}

fn millis(entry: &Object<'_>) -> Option<i64> {
    time::millis(text(entry, "timestamp").as_bytes())
}

/// Returns a price in nano-dollars.
fn nano_dollars(dollars: Option<Raw<'_>>) -> Option<u64> {
    let dollars = dollars?.f64().filter(|dollars| *dollars >= 0.0)?;
    // The conversion saturates.
    Some((dollars * 1e9).round() as u64)
}

/// The names of members that differ between the forms of an entry.
struct FormNames {
    session: &'static str,
    /// In the stream form, a subagent has the name of the call that started it.
    agent: &'static str,
    request: &'static str,
}

impl FormNames {
    const CLIENT: Self = Self {
        session: "sessionId",
        agent: "agentId",
        request: "requestId",
    };
    const STREAM: Self = Self {
        session: "session_id",
        agent: "parent_tool_use_id",
        request: "request_id",
    };

    fn is_stream(&self) -> bool {
        self.session == Self::STREAM.session
    }

    /// Returns those of an entry.
    fn of(entry: &Object<'_>) -> &'static Self {
        let is_of_client = entry.get("parentUuid").is_some()
            || !text(entry, Self::CLIENT.session).is_empty()
            || text(entry, Self::STREAM.session).is_empty();
        match is_of_client {
            true => &Self::CLIENT,
            false => &Self::STREAM,
        }
    }
}

/// Returns a hash of a text, 0 for the empty one.
fn mark(text: &str) -> u64 {
    match text.is_empty() {
        true => 0,
        false => hash(text.as_bytes()).max(1),
    }
}

impl Marks {
    fn of(entry: &Object<'_>, message: &Object<'_>, named: &FormNames) -> Self {
        let of = |key| mark(&text(entry, key));
        let copied = entry.object("forkedFrom");
        let copied = copied.map_or(0, |from| mark(&text(&from, "messageUuid")));
        let content = message.get("content");
        Self {
            request: of(named.request),
            first_line: if copied == 0 { of("uuid") } else { copied },
            last_line: of("uuid"),
            line_before: of("parentUuid"),
            content: content.map_or(0, |content| mark(content.text())),
        }
    }
}

/// A hash that no two of the ids of a store share.
fn wide_hash(kind: &[u8], id: &str) -> NonZeroU128 {
    let one = [kind, id.as_bytes()].concat();
    let other = [b"\xFF", kind, id.as_bytes()].concat();
    let both = u128::from(hash(&one)) << 64 | u128::from(hash(&other));
    NonZeroU128::new(both).unwrap_or(NonZeroU128::MAX)
}
