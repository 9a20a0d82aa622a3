//! Sums up requests: the cost of each, and the rows to which it belongs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use transcript_storage::parallel;

use super::branches::Branches;
use super::part::{NameNumber, Names, known};
use super::prices::{ModelPrices, Prices, Terms};
use super::report::{Block, By, Key, Report, RootNames, Row, Sums};
use super::requests::{Request, Requests};
use super::tokens::Tokens;
use super::{OwnerFile, Usage};

/// The length of a block, in milliseconds.
const BLOCK_MILLIS: i64 = 5 * HOUR_MILLIS;
const HOUR_MILLIS: i64 = 3_600_000;
/// The agent of a sidechain without an id.
const UNNAMED_SIDECHAIN: &str = "sidechain";
/// The agent of sessions in no home folder.
const OWN_MAKER: &str = "claude-code";
/// The name of a model that is not named.
const NO_MODEL: &str = "(no model)";

/// One priced call of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct PricedCall {
    pub(super) model: NameNumber,
    tokens: Tokens,
    cost: Option<u128>,
}

/// The prices of the models of some requests.
#[derive(Debug)]
pub(super) struct PriceList<'u> {
    names: &'u Names,
    /// By the number of the name.
    models: Vec<Option<ModelPrices>>,
}

impl<'u> PriceList<'u> {
    pub(super) fn new(requests: &'u Requests, prices: &Prices) -> Self {
        let names = &requests.names;
        let mut is_model = vec![false; names.all.len() + 1];
        for request in requests.iter() {
            // Only names of models are looked up: the same list has the names of tools, branches and tiers.
            is_model[request.copy.model as usize] = true;
            for (model, _) in request.side_calls() {
                is_model[model as usize] = true;
            }
        }
        let find = |(number, is_model): (usize, &bool)| {
            let name = names.get(number as NameNumber).filter(|_| *is_model)?;
            prices.model(name)
        };
        Self {
            names,
            models: is_model.iter().enumerate().map(find).collect(),
        }
    }

    /// Returns the calls of a request: itself, and its side calls.
    fn calls(&self, request: Request<'_>) -> RequestCalls {
        let copy = request.copy;
        let terms = Terms {
            service_tier: self.names.get(copy.service_tier),
            inference_geo: self.names.get(copy.inference_geo),
            speed: self.names.get(copy.speed),
        };
        let price = |model: NameNumber, tokens: &Tokens| {
            if *tokens == Tokens::default() {
                // Nothing that could have a price.
                return Some(0);
            }
            let model = self.models[model as usize].as_ref()?;
            model.cost(tokens, &terms)
        };
        let (tokens, steps) = (request.tokens(), request.steps());
        // The price of a token can depend on the length of the prompt, and each step has a prompt of its own.
        let cost = if steps.is_empty() {
            price(copy.model, &tokens)
        } else {
            steps.iter().try_fold(0u128, |sum, step| {
                // Without the price of one step the cost is unknown: a part of the sum would look like the whole.
                Some(sum.saturating_add(price(copy.model, step)?))
            })
        };
        let own = PricedCall {
            model: copy.model,
            tokens,
            cost,
        };
        let side = request.side_calls().map(|(model, tokens)| PricedCall {
            model,
            tokens,
            cost: price(model, &tokens),
        });
        RequestCalls {
            own,
            side: side.collect(),
        }
    }
}

/// The calls of a request.
#[derive(Debug)]
struct RequestCalls {
    own: PricedCall,
    side: Vec<PricedCall>,
}

impl RequestCalls {
    fn iter(&self) -> impl Iterator<Item = &PricedCall> + Clone {
        [&self.own].into_iter().chain(&self.side)
    }
}

/// Sums that are being made.
#[derive(Clone, Debug, Default)]
pub(super) struct RunningSums {
    sums: Sums,
    /// Numbers of the names of models without a price.
    unknown: BTreeSet<NameNumber>,
    times: Option<(i64, i64)>,
}

/// One of several equal parts; the first ones get one more where it does not come out even.
#[derive(Clone, Copy, Debug)]
struct EqualShare {
    number: u64,
    of: u64,
}

impl EqualShare {
    const ALL: Self = Self { number: 0, of: 1 };

    fn count(self, all: u64) -> u64 {
        all / self.of + u64::from(self.number < all % self.of)
    }

    fn cost(self, all: u128) -> u128 {
        let of = u128::from(self.of);
        all / of + u128::from(u128::from(self.number) < all % of)
    }
}

impl RunningSums {
    fn add<'a>(
        &mut self,
        request: Request<'_>,
        calls: impl Iterator<Item = &'a PricedCall>,
        share: EqualShare,
    ) {
        let sums = &mut self.sums;
        for call in calls {
            let tokens = call
                .tokens
                .zip(Tokens::default(), |all, _| share.count(all));
            sums.tokens = sums.tokens.saturating_add(tokens);
            match call.cost {
                Some(cost) => {
                    let cost = sums.cost.unwrap_or(0).saturating_add(share.cost(cost));
                    sums.cost = Some(cost);
                }
                None => {
                    let all = tokens.prompt().saturating_add(tokens.output);
                    sums.unpriced_tokens = sums.unpriced_tokens.saturating_add(all);
                    // The tokens count all the same. The report names the model, so that the cost is known to be a lower
                    // bound.
                    self.unknown.insert(call.model);
                }
            }
        }
        if let Some(time) = request.time() {
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
        }
    }

    /// Adds the counts that a request has once, however many calls it has.
    fn add_request(&mut self, request: Request<'_>, is_deleted: bool) {
        let sums = &mut self.sums;
        // A `result` line in a file without requests has a cost, but is not a request.
        if !request.copy.is_result {
            sums.requests += 1;
            sums.incomplete += u64::from(request.is_incomplete());
            sums.of_deleted += u64::from(is_deleted);
            sums.web_fetch = sums.web_fetch.saturating_add(request.web_fetch());
        }
        if request.copy.reported.is_some() {
            let reported = request.copy.reported;
            let sum = sums.reported_cost.unwrap_or(0);
            sums.reported_cost = Some(sum.saturating_add(u128::from(known(reported))));
        }
    }

    fn finish(mut self, names: &Names) -> (Sums, Option<(i64, i64)>) {
        // Without calls the cost is 0. With calls of which none has a price it stays unknown, which is never 0.
        if self.unknown.is_empty() {
            self.sums.cost.get_or_insert(0);
        }
        let unknown = self.unknown.into_iter();
        let unknown = unknown.map(|name| Arc::from(names.get(name).unwrap_or(NO_MODEL)));
        self.sums.unknown_models = unknown.collect();
        (self.sums, self.times)
    }
}

/// The numbers of the keys of one kind.
#[derive(Debug, Default)]
struct RowKeys {
    numbers: HashMap<Key, u32>,
    /// Those of keys that a number stands for, which is looked up faster.
    known: HashMap<u64, u32>,
    /// The last one of these, which mostly is the next one, too.
    last: Option<(u64, u32)>,
    all: Vec<Key>,
}

impl RowKeys {
    /// Returns the number of the key that `id` always stands for.
    fn known(&mut self, id: u64, key: impl FnOnce() -> Key) -> u32 {
        // Requests come in the order of files, so nearly all of them have the key of the one before.
        if let Some((_, number)) = self.last.filter(|last| last.0 == id) {
            return number;
        }
        let number = match self.known.get(&id) {
            Some(number) => *number,
            None => self.number(key()),
        };
        self.known.insert(id, number);
        self.last = Some((id, number));
        number
    }

    fn number(&mut self, key: Key) -> u32 {
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.all.push(key.clone());
        self.numbers.insert(key, number);
        number
    }
}

/// The rows that are being made.
#[derive(Debug, Default)]
struct RowSums {
    numbers: HashMap<Box<[u32]>, usize>,
    sums: Vec<RunningSums>,
    /// The last one, which mostly is the next one, too.
    last: (Vec<u32>, usize),
}

impl RowSums {
    fn row(&mut self, key: &[u32]) -> &mut RunningSums {
        let new = self.sums.len();
        // Comparing with the last row is cheaper than a hash of the combined key, and mostly enough.
        if new > 0 && self.last.0 == key {
            return &mut self.sums[self.last.1];
        }
        let number = match self.numbers.get(key) {
            Some(number) => *number,
            None => *self.numbers.entry(key.into()).or_insert(new),
        };
        if number == new {
            self.sums.push(RunningSums::default());
        }
        self.last.0.clear();
        self.last.0.extend(key);
        self.last.1 = number;
        &mut self.sums[number]
    }
}

/// The day, week or month of times, which mostly come in order.
#[derive(Debug)]
struct Period<'z> {
    by: By,
    zone: &'z TimeZone,
    /// The last one: its start, its end and its number.
    last: Option<(i64, i64, u32)>,
}

impl Period<'_> {
    fn number(&mut self, time: Option<i64>, keys: &mut RowKeys) -> u32 {
        let Some(time) = time else {
            return keys.number(Key::None);
        };
        if let Some((start, end, number)) = self.last
            && (start..end).contains(&time)
        {
            return number;
        }
        let Some((first, next)) = self.dates(time) else {
            return keys.number(Key::None);
        };
        let text = match self.by {
            By::Month => first.strftime("%Y-%m").to_string(),
            _ => first.to_string(),
        };
        let number = keys.number(Key::Text(text.into()));
        // The start of a day in the time zone, not 24 hours: a day has 23 or 25 when the clocks change.
        let millis = |date: Date| {
            let start = date.to_zoned(self.zone.clone()).ok()?;
            Some(start.timestamp().as_millisecond())
        };
        self.last = millis(first)
            .zip(millis(next))
            .map(|(start, end)| (start, end, number));
        number
    }

    /// Returns the first day, and the one after the last.
    fn dates(&self, time: i64) -> Option<(Date, Date)> {
        let time = Timestamp::from_millisecond(time).ok()?;
        let day = self.zone.to_datetime(time).date();
        let (first, span) = match self.by {
            By::Month => (day.first_of_month(), jiff::Span::new().months(1)),
            By::Week => {
                let back = day.weekday().to_monday_zero_offset();
                let back = jiff::Span::new().days(back);
                (day.checked_sub(back).ok()?, jiff::Span::new().weeks(1))
            }
            _ => (day, jiff::Span::new().days(1)),
        };
        Some((first, first.checked_add(span).ok()?))
    }
}

/// Returns the time in UTC, as keys show it.
fn utc(millis: i64) -> Key {
    let time = Timestamp::from_millisecond(millis).map(|time| time.to_string());
    time.map_or(Key::None, |time| Key::Text(time.into()))
}

impl Usage<'_> {
    /// Returns the requests that a report is about, and how many are omitted as they have no time.
    fn chosen(&self, report: &Report) -> (Vec<Request<'_>>, u64) {
        let mut without_time = 0;
        let chosen = self.requests.iter().filter(|request| {
            if report.since.is_none() && report.until.is_none() {
                return true;
            }
            let Some(time) = request.time() else {
                // Without a time it cannot be in the range. The report says how many there are, instead of omitting them
                // silently.
                without_time += 1;
                return false;
            };
            let is_late = report.since.is_none_or(|since| time >= since);
            is_late && report.until.is_none_or(|until| time <= until)
        });
        (chosen.collect(), without_time)
    }

    pub(super) fn sum_rows(&self, report: &Report, prices: &Prices) -> (Vec<Row>, Row, u64) {
        let (chosen, without_time) = self.chosen(report);
        let list = PriceList::new(&self.requests, prices);
        let mut keys: Vec<RowKeys> = report.by.iter().map(|_| RowKeys::default()).collect();
        let starts = if report.by.contains(&By::Hour5) {
            block_starts(&chosen)
        } else {
            Vec::new()
        };
        let branches = if report.by.contains(&By::Branch) {
            self.branches(&chosen)
        } else {
            HashMap::new()
        };
        let mut periods: Vec<Period<'_>> = report
            .by
            .iter()
            .map(|by| Period {
                by: *by,
                zone: &report.zone,
                last: None,
            })
            .collect();
        let places = |wanted: By| -> Vec<usize> {
            let by = report.by.iter().enumerate();
            by.filter(|(_, by)| **by == wanted)
                .map(|(place, _)| place)
                .collect()
        };
        // A request has several models with side calls, and several tools: each of them gets a row, so these keys are
        // set in the loops below. All other keys are the same for all parts of a request.
        let (model_at, tool_at) = (places(By::Model), places(By::Tool));
        let mut rows = RowSums::default();
        let mut total = RunningSums::default();
        let mut key = vec![0; report.by.len()];
        let text = |name: NameNumber| match self.requests.names.get(name) {
            Some(name) => Key::Text(name.into()),
            None => Key::None,
        };
        for (at, request) in chosen.iter().copied().enumerate() {
            let calls = list.calls(request);
            let file = &self.files[request.file as usize];
            total.add(request, calls.iter(), EqualShare::ALL);
            total.add_request(request, file.is_deleted);
            for (place, by) in report.by.iter().enumerate() {
                let keys = &mut keys[place];
                key[place] = match by {
                    By::Day | By::Week | By::Month => periods[place].number(request.time(), keys),
                    By::Hour5 => keys.number(starts[at].map_or(Key::None, utc)),
                    By::Root => {
                        let root = || {
                            let name = name_of_folder(&report.roots, file);
                            name.map_or(Key::None, Key::Text)
                        };
                        keys.known(u64::from(request.file), root)
                    }
                    By::Maker => {
                        let maker = || {
                            let name = name_of_folder(&report.makers, file);
                            Key::Text(name.unwrap_or_else(|| OWN_MAKER.into()))
                        };
                        keys.known(u64::from(request.file), maker)
                    }
                    By::Project => {
                        let project = || Key::Text(Arc::clone(&file.project));
                        keys.known(u64::from(file.session_number), project)
                    }
                    By::Session => {
                        let session = || Key::Text(Arc::clone(&file.session));
                        keys.known(u64::from(file.session_number), session)
                    }
                    By::Subagent => keys.number(self.agent(request, file)),
                    By::SubagentType => {
                        keys.known(u64::from(request.file), || self.agent_type(file))
                    }
                    By::Branch => keys.number(self.branch(request, file, &branches)),
                    By::GitBranch => {
                        let branch = request.copy.git_branch;
                        keys.known(u64::from(branch), || text(branch))
                    }
                    By::Compaction => keys.number(self.compaction(request, file)),
                    // Set below.
                    By::Model | By::Tool => 0,
                };
            }
            // Equal parts, so that the rows of tools add up to the total. Without tools the request is one part with the
            // null key.
            let shares = if !tool_at.is_empty() {
                request.copy.calls.len().max(1)
            } else {
                1
            };
            for number in 0..shares {
                for place in &tool_at {
                    let tool = request.copy.calls.get(number).map_or(0, |call| call.tool);
                    key[*place] = keys[*place].known(u64::from(tool), || text(tool));
                }
                let share = EqualShare {
                    number: number as u64,
                    of: shares as u64,
                };
                if model_at.is_empty() {
                    let row = rows.row(&key);
                    row.add(request, calls.iter(), share);
                    if number == 0 {
                        row.add_request(request, file.is_deleted);
                    }
                    continue;
                }
                for (of_request, call) in calls.iter().enumerate() {
                    let model = call.model;
                    for place in &model_at {
                        key[*place] = keys[*place].known(u64::from(model), || text(model));
                    }
                    let row = rows.row(&key);
                    row.add(request, [call].into_iter(), share);
                    // The request itself counts once, in the row of its first part.
                    if number == 0 && of_request == 0 {
                        row.add_request(request, file.is_deleted);
                    }
                }
            }
        }
        let row = |keys: Vec<Key>, sum: RunningSums| {
            let (sums, times) = sum.finish(&self.requests.names);
            Row { keys, sums, times }
        };
        let mut sums = rows.sums;
        let rows = rows.numbers.into_iter().map(|(numbers, at)| {
            let sum = mem::take(&mut sums[at]);
            let keys = numbers.iter().zip(&keys);
            let keys = keys.map(|(number, keys)| keys.all[*number as usize].clone());
            row(keys.collect(), sum)
        });
        let mut rows: Vec<Row> = rows.collect();
        // The map has random order, and the output must not.
        rows.sort_unstable_by(|one, other| one.keys.cmp(&other.keys));
        if report.by.is_empty() {
            rows.clear();
        }
        (rows, row(Vec::new(), total), without_time)
    }

    pub(super) fn sum_blocks(&self, report: &Report, prices: &Prices, now: i64) -> Vec<Block> {
        let (mut chosen, _) = self.chosen(report);
        let list = PriceList::new(&self.requests, prices);
        // A request without a time belongs to no block, so their sum can be less than the total.
        chosen.retain(|request| request.time().is_some());
        let starts = block_starts(&chosen);
        let mut sums: BTreeMap<i64, RunningSums> = BTreeMap::new();
        for (request, start) in chosen.iter().copied().zip(starts) {
            let Some(start) = start else { continue };
            let sum = sums.entry(start).or_default();
            let calls = list.calls(request);
            sum.add(request, calls.iter(), EqualShare::ALL);
            sum.add_request(request, self.files[request.file as usize].is_deleted);
        }
        let blocks = sums.into_iter().filter_map(|(start, sum)| {
            let (sums, times) = sum.finish(&self.requests.names);
            let (times, end) = (times?, start.saturating_add(BLOCK_MILLIS));
            Some(Block {
                start,
                end,
                times,
                is_active: (start..end).contains(&now)
                    && now.saturating_sub(times.1) < BLOCK_MILLIS,
                sums,
            })
        });
        blocks.collect()
    }

    /// Sums up requests that `wants` by model.
    pub(super) fn sum_models(
        &self,
        prices: &Prices,
        wants: impl Fn(Request<'_>) -> bool,
    ) -> (Sums, BTreeMap<Arc<str>, Sums>) {
        let list = PriceList::new(&self.requests, prices);
        let (mut all, mut models) = (
            RunningSums::default(),
            HashMap::<NameNumber, RunningSums>::new(),
        );
        for request in self.requests.iter().filter(|request| wants(*request)) {
            let is_deleted = self.files[request.file as usize].is_deleted;
            let calls = list.calls(request);
            all.add(request, calls.iter(), EqualShare::ALL);
            all.add_request(request, is_deleted);
            for (number, call) in calls.iter().enumerate() {
                let sum = models.entry(call.model).or_default();
                sum.add(request, [call].into_iter(), EqualShare::ALL);
                if number == 0 {
                    sum.add_request(request, is_deleted);
                }
            }
        }
        let models = models.into_iter().map(|(model, sum)| {
            let name = self.requests.names.get(model).unwrap_or(NO_MODEL);
            (Arc::from(name), sum.finish(&self.requests.names).0)
        });
        (all.finish(&self.requests.names).0, models.collect())
    }

    fn agent(&self, request: Request<'_>, file: &OwnerFile) -> Key {
        match (&file.agent, self.requests.names.get(request.copy.agent)) {
            // The file of a subagent decides. `agentId` of a line is for sidechains in the file of a session.
            (Some(agent), _) => Key::Text(Arc::clone(agent)),
            (None, Some(agent)) => Key::Text(agent.into()),
            (None, None) if request.copy.is_sidechain => Key::Text(UNNAMED_SIDECHAIN.into()),
            (None, None) => Key::None,
        }
    }

    fn agent_type(&self, file: &OwnerFile) -> Key {
        file.agent_type(self.catalog).map_or(Key::None, Key::Text)
    }

    /// Returns the number of compactions before a request.
    fn compaction(&self, request: Request<'_>, file: &OwnerFile) -> Key {
        let boundaries = |file: u32| {
            let facts = self.requests.facts.get(file as usize);
            facts.map_or(&[][..], |facts| &facts.boundaries)
        };
        let before = if file.agent.is_none() {
            let before = boundaries(request.file).iter();
            before
                .filter(|(offset, _)| *offset < request.copy.offset)
                .count()
        } else if let (Some(session), Some(time)) = (file.session_file, request.time()) {
            let before = boundaries(session).iter();
            // A subagent has its own file, so only times connect its requests with the boundaries of the session.
            let before = before.filter(|(_, of)| of.is_some_and(|of| of < time));
            before.count()
        } else {
            return Key::None;
        };
        Key::Number(before as u64)
    }

    /// Reads the branches of the files of these requests.
    fn branches(&self, requests: &[Request<'_>]) -> HashMap<u32, Branches> {
        let mut offsets: HashMap<u32, Vec<u64>> = HashMap::new();
        for request in requests {
            let file = &self.files[request.file as usize];
            match (&file.agent, file.session_file) {
                (None, _) => offsets
                    .entry(request.file)
                    .or_default()
                    .push(request.copy.offset),
                (Some(_), Some(session)) => drop(offsets.entry(session).or_default()),
                (Some(_), None) => {}
            }
        }
        let offsets: Vec<(u32, Vec<u64>)> = offsets.into_iter().collect();
        let read = |(file, offsets): &(u32, Vec<u64>)| {
            let path = &self.files[*file as usize].path;
            let source = transcript_reader::Source::open_on(&self.catalog.disk, path);
            // The requests of a file that is gone by now have no branch.
            let branches = source.and_then(|source| Branches::read(&source, offsets.clone()));
            (*file, branches.unwrap_or_default())
        };
        parallel::map(&offsets, None, || read).into_iter().collect()
    }

    fn branch(
        &self,
        request: Request<'_>,
        file: &OwnerFile,
        branches: &HashMap<u32, Branches>,
    ) -> Key {
        let branch = match &file.agent {
            None => branches
                .get(&request.file)
                .map(|of| of.of_line(request.copy.offset)),
            Some(agent) => file
                .session_file
                .and_then(|session| Some(branches.get(&session)?.of_agent(agent))),
        };
        branch.unwrap_or(Key::None)
    }
}

/// Returns the name of the innermost folder of a file that has one.
fn name_of_folder(names: &RootNames, file: &OwnerFile) -> Option<Arc<str>> {
    let mut folders = file.path.ancestors();
    folders.find_map(|folder| names.get(folder)).cloned()
}

/// Returns the start of the block of each request, in their order.
fn block_starts(requests: &[Request<'_>]) -> Vec<Option<i64>> {
    let timed = requests.iter().enumerate();
    let timed = timed.filter_map(|(at, request)| Some((request.time()?, at)));
    let mut timed: Vec<(i64, usize)> = timed.collect();
    timed.sort_unstable();
    let mut starts = vec![None; requests.len()];
    // The start of the block, and the time of its last request so far.
    let mut block: Option<(i64, i64)> = None;
    for (time, at) in timed {
        let is_over = |(start, last): (i64, i64)| {
            time.saturating_sub(start) >= BLOCK_MILLIS || time.saturating_sub(last) >= BLOCK_MILLIS
        };
        let start = match block.filter(|block| !is_over(*block)) {
            Some((start, _)) => start,
            // Full hours in UTC, also for times before 1970.
            None => time - time.rem_euclid(HOUR_MILLIS),
        };
        block = Some((start, time));
        starts[at] = Some(start);
    }
    starts
}
