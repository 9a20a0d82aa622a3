//! The usage in a part of a file: the lines of answers, tool calls, searches and totals.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::num::{NonZeroU64, NonZeroU128};

use serde::{Deserialize, Serialize};
use transcript_format::answers::{Above, AnswerLines, FormNames, LineEnds, Links, is_turn};
use transcript_format::ids::is_message_id_of_api;
use transcript_format::object::{Object, Raw};
use transcript_format::scan::Body;
use transcript_format::time;

use crate::sidecar::hash;

/// Larger counts are not believed: no number of JSON is sure to hold them.
const MAX_COUNT: u64 = 1 << 53;
/// The model of answers that no model gave.
const SYNTHETIC_MODEL: &str = "<synthetic>";

/// The number of a name in [`Names`], from 1; 0 for none.
pub(super) type NameNumber = u32;

/// Names that occur many times.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    numbers: HashMap<Box<str>, NameNumber>,
    pub(super) all: Vec<Box<str>>,
}

impl Names {
    /// Returns the number of a name; 0 for the empty one.
    pub(super) fn number(&mut self, name: &str) -> NameNumber {
        if name.is_empty() {
            return 0;
        }
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.all.push(name.into());
        // No store exceeds the range.
        let number = NameNumber::try_from(self.all.len()).unwrap_or(0);
        self.numbers.insert(name.into(), number);
        number
    }

    pub(super) fn get(&self, name: NameNumber) -> Option<&str> {
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
pub(super) struct RequestStep {
    /// Whether its counts can be part of those of the request.
    pub(super) is_message: bool,
    pub(super) model: NameNumber,
    pub(super) counts: Counts,
}

/// The steps of the line with the most output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct RequestSteps {
    pub(super) output: Option<Count>,
    pub(super) list: Vec<RequestStep>,
}

impl RequestSteps {
    fn read(names: &mut Names, usage: &Object<'_>, output: Option<Count>) -> Self {
        let list = usage.array("iterations").unwrap_or_default();
        let steps = list.into_iter().filter_map(|step| {
            let step = step.object()?;
            let kind = text(&step, "type");
            Some(RequestStep {
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
    pub(super) tool: NameNumber,
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

/// Hashes that show which copies are one answer where the id does not; 0 for unknown ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Marks {
    /// `requestId`.
    #[serde(with = "postcard::fixint::le")]
    pub(super) request: u64,
    /// The uuid of the first line, or of the line that it is a copy of.
    #[serde(with = "postcard::fixint::le")]
    pub(super) first_line: u64,
    /// The uuid of the last line.
    #[serde(with = "postcard::fixint::le")]
    pub(super) last_line: u64,
    /// The line above the first one, or its lane, if that is in an earlier part of the file.
    #[serde(with = "postcard::fixint::le")]
    pub(super) line_before: u64,
    /// The content of the first line.
    #[serde(with = "postcard::fixint::le")]
    pub(super) content: u64,
}

/// One copy of an answer: the values of its first line, which count for all of them, and the sums of all its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Copy {
    /// A hash of `message.id`, the same for all without one; `None` if the line is a request of its own.
    #[serde(with = "id_bytes")]
    pub(super) id: Option<NonZeroU128>,
    /// Whether no other answer has the id: it has the form of those that the API gives.
    pub(super) is_unique: bool,
    pub(super) marks: Marks,
    /// Of the first line, in bytes.
    pub(super) offset: u64,
    /// Of the first line.
    pub(super) first_time: LineTime,
    /// The earliest.
    pub(super) time: LineTime,
    pub(super) is_forked: bool,
    pub(super) is_sidechain: bool,
    /// Whether the first line names the session of its file.
    pub(super) is_own: bool,
    pub(super) has_stop: bool,
    pub(super) counts: Counts,
    pub(super) model: NameNumber,
    pub(super) service_tier: NameNumber,
    pub(super) inference_geo: NameNumber,
    pub(super) speed: NameNumber,
    pub(super) agent: NameNumber,
    pub(super) git_branch: NameNumber,
    /// In nano-dollars.
    pub(super) reported: Option<Count>,
    /// Whether this is not a request, but the result of a run without any, which reports its cost.
    #[serde(skip)]
    pub(super) is_result: bool,
    pub(super) calls: Vec<ToolCall>,
    pub(super) steps: RequestSteps,
    /// The number of searches that results in the same file report. It is not known yet when a part is read.
    #[serde(skip)]
    pub(super) client_searches: u64,
    /// Whether it has become a part of another copy.
    #[serde(skip)]
    pub(super) is_merged: bool,
}

impl Copy {
    /// Returns whether a line that belongs to the same answer by its links has the same id and no other `requestId`.
    pub(super) fn is_with(&self, line: &Self) -> bool {
        let requests = [self.marks.request, line.marks.request];
        self.id.is_some()
            && self.id == line.id
            // A line without a `requestId` contradicts no other.
            && (requests.contains(&0) || requests[0] == requests[1])
    }

    /// Adds later lines of the same file.
    pub(super) fn follow(&mut self, later: Self) {
        self.time = self.time.min(later.time);
        self.has_stop |= later.has_stop;
        // The first lines of an answer have the counts from its start; the last ones have the final counts.
        self.counts = self.counts.max(later.counts);
        for (mine, last) in [
            (&mut self.service_tier, later.service_tier),
            (&mut self.inference_geo, later.inference_geo),
            (&mut self.speed, later.speed),
        ] {
            // The last line that has a value counts; a line without one leaves it.
            if last != 0 {
                *mine = last;
            }
        }
        // The first model stays. Other models of the same request are side calls.
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
    pub(super) fn for_each_name(&mut self, mut change: impl FnMut(&mut NameNumber)) {
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
pub(super) struct LineTime(i64);

impl Default for LineTime {
    fn default() -> Self {
        Self(i64::MAX)
    }
}

impl LineTime {
    pub(super) fn get(self) -> Option<i64> {
        (self != Self::default()).then_some(self.0)
    }
}

/// The total that the client counted: a `cost-state` entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct ClientCount {
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
    pub(super) time: LineTime,
    /// In nano-dollars.
    pub(super) cost: u64,
}

/// The usage in a part of a file.
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
    pub(super) counted: Option<ClientCount>,
    /// In order.
    pub(super) run_totals: Vec<RunTotal>,
    /// The lines below which an answer can continue in the next parts of the file, and what is above each. None as long as
    /// no answer was read whose id may be that of others.
    pub(super) lines: Vec<LineAbove>,
    /// The last line of each lane, for the same.
    pub(super) lanes: Vec<LineAbove>,
}

/// The hash of a line or lane, and what is above it. The numbers of answers are the places of their copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct LineAbove {
    #[serde(with = "postcard::fixint::le")]
    pub(super) line: u64,
    pub(super) above: Above,
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
    /// The copy of each answer whose id is unique.
    places: HashMap<NonZeroU128, usize>,
    /// The links that show which lines belong to one of the other answers.
    lines: AnswerLines,
    /// Whether all lines say something, as an answer was read whose id may be that of others.
    needs_all: bool,
}

/// A line is not a JSON object.
#[derive(Debug)]
pub(super) struct DamagedLine;

impl Reader {
    /// Starts with a range of a file. `needs_all` says whether an answer before it has an id that may be that of others.
    pub(super) fn start(&mut self, needs_all: bool) {
        self.take();
        self.needs_all = needs_all;
    }

    /// Returns whether the lines that follow have to be read even if they say nothing about usage.
    pub(super) fn needs_all(&self) -> bool {
        self.needs_all
    }

    /// Returns the part so far, and starts the next part of the file.
    pub(super) fn take(&mut self) -> Part {
        self.places.clear();
        let LineEnds { lines, lanes } = self.lines.ends();
        self.lines.clear();
        let ends = |ends: Vec<(u64, Above)>| {
            let ends = ends.into_iter();
            ends.map(|(line, above)| LineAbove { line, above })
                .collect()
        };
        let mut part = std::mem::take(&mut self.part);
        part.names = std::mem::take(&mut self.names).all;
        (part.lines, part.lanes) = (ends(lines), ends(lanes));
        part
    }

    /// Reads one entry of a file of the session with the id `session`.
    pub(super) fn read(
        &mut self,
        text: &str,
        offset: u64,
        session: &str,
    ) -> Result<(), DamagedLine> {
        let body = Body::parse(text).map_err(|_| DamagedLine)?;
        match &*self::text(&body.object, "type") {
            "assistant" => self.read_answer(&body, offset, session),
            "user" => {
                self.read_link(&body);
                self.read_searches(&body);
            }
            "cost-state" => self.part.counted = Some(ClientCount::read(&body.object)),
            "result" => self.read_result(&body.object, offset),
            kind => {
                self.read_link(&body);
                if kind == "system" && self::text(&body.object, "subtype") == "compact_boundary" {
                    self.part.boundaries.push((offset, millis(&body.object)));
                }
            }
        }
        Ok(())
    }

    fn read_result(&mut self, entry: &Object<'_>, offset: u64) {
        if let Some(cost) = nano_dollars(entry.get("total_cost_usd")) {
            self.part.run_totals.push(RunTotal {
                offset,
                session: hash(text(entry, "session_id").as_bytes()),
                line: mark(&text(entry, "uuid")),
                time: millis(entry).map_or_else(LineTime::default, LineTime),
                cost,
            });
        }
    }

    /// Reads an entry that is not an answer.
    fn read_link(&mut self, body: &Body<'_>) {
        if self.needs_all {
            let links = FormNames::of(&body.object).links(&body.object, hash);
            if is_turn(body) {
                self.lines.add_turn(links);
            } else {
                self.lines.add_other(links);
            }
        }
    }

    fn read_answer(&mut self, body: &Body<'_>, offset: u64, session: &str) {
        let entry = &body.object;
        let Some(message) = &body.message else {
            return self.read_link(body);
        };
        let usage = message.object("usage");
        let (id, model) = (text(message, "id"), text(message, "model"));
        let named = FormNames::of(entry);
        // A message of the client itself, such as an API error. It cost nothing, and proves that another answer begins.
        if model == SYNTHETIC_MODEL {
            if self.needs_all {
                self.lines.add_turn(named.links(entry, hash));
            }
            return;
        }
        // Neither counted nor identified, so it is only a link between other lines.
        if id.is_empty() && usage.is_none() {
            return self.read_link(body);
        }
        let links = named.links(entry, hash);
        // The order of lines alone shows nothing for those without an id, where lines have parents.
        let is_linked = !id.is_empty() || links.parent != 0 || named.is_stream();
        // Without an id, nothing but its links shows to which answer a line belongs.
        let has_key = !id.is_empty() || links.line != 0 || links.parent != 0;
        let key = has_key.then(|| hash_of_id(&id));
        // Some gateways give one id to all answers. Only ids of the form that the API gives can be trusted.
        let is_unique = is_message_id_of_api(&id);
        let marks = Marks::of(entry, message, &named);
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
            Some(usage) => RequestSteps::read(names, usage, counts.output),
            None => RequestSteps::default(),
        };
        let time = millis(entry).map_or_else(LineTime::default, LineTime);
        let copy = Copy {
            id: key,
            is_unique,
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
        // From here on the links of all lines are needed. Files with ids of the API alone, nearly all, are read without
        // them.
        self.needs_all |= !is_unique;
        let place = self.add(copy, links, is_linked);
        if self.needs_all {
            let number = u32::try_from(place).unwrap_or(u32::MAX);
            self.lines.add_answer(links, number);
        }
    }

    /// Adds a line to the copy of its answer. Returns the place of that.
    fn add(&mut self, mut copy: Copy, links: Links, is_linked: bool) -> usize {
        let new = self.part.copies.len();
        // Lines of one answer need not be adjacent: results of its calls are written between them.
        let place = match copy.id.filter(|_| copy.is_unique) {
            Some(id) => *self.places.entry(id).or_insert(new),
            None => {
                let place = self.place_of(&mut copy, links, is_linked);
                place.unwrap_or(new)
            }
        };
        match self.part.copies.get_mut(place) {
            Some(answer) => answer.follow(copy),
            None => self.part.copies.push(copy),
        }
        place
    }

    /// Returns the copy of the answer that a line belongs to, if its id may be that of others: that of the same line, else
    /// that of the line above it. Otherwise, the copy says where the answer can be in an earlier part.
    fn place_of(&self, copy: &mut Copy, links: Links, is_linked: bool) -> Option<usize> {
        let answer = self.lines.answer(links.line).map(Above::Answer);
        let above = is_linked.then(|| self.lines.above(links));
        let mut above = answer.into_iter().chain(above);
        above.find_map(|above| match above {
            Above::Answer(number) => {
                let place = number as usize;
                self.part.copies[place].is_with(copy).then_some(place)
            }
            Above::Unread(name) => {
                // Parts are read in parallel, and the line above is in another one. `Requests::add` joins them.
                copy.marks.line_before = name;
                None
            }
            Above::Turn => None,
        })
    }

    /// Reads how many searches a result of the client's `WebSearch` made.
    fn read_searches(&mut self, body: &Body<'_>) {
        let result = body.tool_use_result.as_ref();
        let searches = known(result.and_then(|result| count(result, "searchCount")));
        let blocks = body.blocks.iter().flatten();
        let mut blocks = blocks.filter_map(|(_, block)| block.as_ref());
        // Only the first result of a line is that of `toolUseResult`.
        let result = blocks.find(|block| text(block, "type") == "tool_result");
        if let (Some(block), 1..) = (result, searches) {
            let call = hash(text(block, "tool_use_id").as_bytes());
            self.part.searches.push((call, searches));
        }
    }
}

impl ClientCount {
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
        let id = if id.is_empty() {
            // A call without an id is a call of its own.
            hash(format!("\0{offset}:{number}").as_bytes())
        } else {
            hash(id.as_bytes())
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
    // Lines of one answer can repeat its calls.
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

/// Returns a hash of a text, 0 for the empty one.
fn mark(text: &str) -> u64 {
    if text.is_empty() {
        0
    } else {
        hash(text.as_bytes()).max(1)
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
            line_before: 0,
            content: content.map_or(0, |content| mark(content.text())),
        }
    }
}

/// Returns the hash in place of the id of answers without one.
pub(super) fn no_id() -> NonZeroU128 {
    hash_of_id("")
}

/// A hash that no two of the ids of a store share.
fn hash_of_id(id: &str) -> NonZeroU128 {
    let one = [b"id:", id.as_bytes()].concat();
    let other = [b"\xFFid:", id.as_bytes()].concat();
    // 64 bits may collide in a store with billions of ids, and a collision would merge two answers.
    let both = u128::from(hash(&one)) << 64 | u128::from(hash(&other));
    NonZeroU128::new(both).unwrap_or(NonZeroU128::MAX)
}
