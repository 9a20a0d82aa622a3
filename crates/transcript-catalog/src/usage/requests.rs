//! The requests of all files, each once.

use std::collections::HashMap;

use super::part::{Copy, Counted, Counts, Name, Names, Part, Step, known};
use super::tokens::Tokens;

/// One call of the API and its answer.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// The number of the file that owns it.
    pub(super) file: u32,
    /// Of its first line there, in bytes.
    pub(super) offset: u64,
    /// In milliseconds since 1970.
    pub(super) time: Option<i64>,
    pub(super) is_sidechain: bool,
    pub(super) is_incomplete: bool,
    pub(super) tokens: Tokens,
    pub(super) web_fetch: u64,
    pub(super) model: Name,
    pub(super) service_tier: Name,
    pub(super) inference_geo: Name,
    pub(super) speed: Name,
    pub(super) agent: Name,
    pub(super) git_branch: Name,
    /// In nano-dollars.
    pub(super) reported: Option<u64>,
    /// The tools of its calls.
    pub(super) tools: Box<[Name]>,
    /// The counts whose prices make its price; empty if that is the price of its own counts.
    pub(super) steps: Box<[Tokens]>,
    /// The side calls, and their models.
    pub(super) side_calls: Box<[(Name, Tokens)]>,
}

/// What is known of the files apart from requests.
#[derive(Debug, Default)]
pub(super) struct FileFacts {
    /// The offset and the time of the compaction boundaries, in order.
    pub(super) boundaries: Vec<(u64, Option<i64>)>,
    pub(super) counted: Option<Counted>,
    /// The number of requests of which it has a copy that another session owns.
    pub(super) copies: u64,
}

/// The file of a part, as far as the owner depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) file: u32,
    pub(super) session: u32,
    pub(super) is_subagent: bool,
    /// The place of the path among all paths.
    pub(super) rank: u32,
}

/// The requests of all files, each once, and what else is known.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) requests: Vec<Request>,
    pub(super) names: Names,
    /// By the number of the file.
    pub(super) facts: Vec<FileFacts>,
}

/// Collects the copies of requests.
#[derive(Debug, Default)]
pub(super) struct Collector {
    pub(super) names: Names,
    copies: Vec<(Place, Copy)>,
    /// What the results of the client's `WebSearch` say: file, hash of the call, searches.
    searches: Vec<(u32, u64, u64)>,
    pub(super) facts: Vec<FileFacts>,
}

impl Collector {
    /// Starts with no copies of so many files.
    pub(super) fn new(files: usize) -> Self {
        let mut facts = Vec::new();
        facts.resize_with(files, FileFacts::default);
        Self {
            facts,
            ..Self::default()
        }
    }

    /// Adds the next part of a file. The parts of one file come in order.
    pub(super) fn add(&mut self, place: Place, part: Part) {
        let names: Vec<Name> = part
            .names
            .iter()
            .map(|name| self.names.number(name))
            .collect();
        let file = place.file as usize;
        let facts = &mut self.facts[file];
        facts.boundaries.extend(part.boundaries);
        if part.counted.is_some() {
            facts.counted = part.counted;
        }
        let searches = part.searches.into_iter();
        self.searches
            .extend(searches.map(|(call, searches)| (place.file, call, searches)));
        self.copies.extend(part.copies.into_iter().map(|mut copy| {
            copy.for_each_name(|name| {
                let at = (*name as usize).checked_sub(1);
                *name = at.and_then(|at| names.get(at)).copied().unwrap_or(0);
            });
            (place, copy)
        }));
    }

    /// Returns the requests, each once, and the number of searches whose call is not in their file.
    pub(super) fn finish(mut self) -> (Collected, u64) {
        let unmatched = self.add_searches();
        // The first copy of each key, in whatever file, stands for its group.
        let mut first_of = HashMap::with_capacity(self.copies.len());
        let copies = (0u32..).zip(&self.copies);
        let groups = copies.map(|(at, (_, copy))| match copy.id {
            Some(id) => *first_of.entry(id).or_insert(at),
            None => at,
        });
        let mut order: Vec<(u32, u32)> = groups.zip(0..).collect();
        drop(first_of);
        // Nearly sorted, as most copies are the only ones.
        order.sort_unstable();
        let mut copies: Vec<Option<(Place, Copy)>> = self.copies.into_iter().map(Some).collect();
        let facts = &mut self.facts;
        let groups = order.chunk_by(|one, next| one.0 == next.0);
        let requests = groups.filter_map(|group| {
            let group = group
                .iter()
                .filter_map(|(_, at)| copies[*at as usize].take());
            merge(group, facts)
        });
        let collected = Collected {
            requests: requests.collect(),
            names: self.names,
            facts: self.facts,
        };
        (collected, unmatched)
    }

    /// Adds the searches of the client's `WebSearch` to the copies that made the calls.
    fn add_searches(&mut self) -> u64 {
        // Of a result that is in its file twice, the larger number counts.
        let mut searches: HashMap<(u32, u64), u64> = HashMap::new();
        for (file, call, found) in self.searches.drain(..) {
            let most = searches.entry((file, call)).or_default();
            *most = found.max(*most);
        }
        if searches.is_empty() {
            return 0;
        }
        for (place, copy) in &mut self.copies {
            for (call, _) in &copy.calls {
                if let Some(found) = searches.remove(&(place.file, *call)) {
                    copy.client_searches = copy.client_searches.saturating_add(found);
                }
            }
        }
        searches.values().sum()
    }
}

/// Makes one request of all its copies.
fn merge(
    mut copies: impl Iterator<Item = (Place, Copy)>,
    facts: &mut [FileFacts],
) -> Option<Request> {
    let first = copies.next()?;
    let Some(second) = copies.next() else {
        return Some(Request::of(first.0, first.1));
    };
    let mut all: Vec<(Place, Copy)> = [first, second].into_iter().chain(copies).collect();
    all.sort_by_key(|(place, copy)| (place.file, copy.offset));
    // What several parts of a file say is one copy.
    let mut of_files: Vec<(Place, Copy)> = Vec::new();
    for (place, copy) in all {
        match of_files.last_mut().filter(|last| last.0.file == place.file) {
            Some((_, first)) => first.follow(copy),
            None => of_files.push((place, copy)),
        }
    }
    of_files.sort_by_key(|(place, copy)| {
        let time = copy.first_time.unwrap_or(i64::MAX);
        let odd = (
            copy.is_forked,
            place.is_subagent,
            copy.is_sidechain,
            !copy.is_own,
        );
        (odd, time, place.rank)
    });
    let mut copies = of_files.into_iter();
    let (place, mut owner) = copies.next()?;
    for (other, copy) in copies {
        if other.session != place.session {
            facts[other.file as usize].copies += 1;
        }
        owner.has_stop |= copy.has_stop;
        owner.counts = owner.counts.max(copy.counts);
        owner.client_searches = owner.client_searches.max(copy.client_searches);
        owner.reported = owner.reported.max(copy.reported);
        if owner.model == 0 {
            owner.model = copy.model;
        }
        if copy.calls.len() > owner.calls.len() {
            owner.calls = copy.calls;
        }
        if copy.steps.list.len() > owner.steps.list.len() {
            owner.steps = copy.steps;
        }
    }
    Some(Request::of(place, owner))
}

impl Request {
    fn of(place: Place, copy: Copy) -> Self {
        let mut tokens = tokens(&copy.counts);
        tokens.web_search = tokens.web_search.saturating_add(copy.client_searches);
        let (own, side): (Vec<Step>, Vec<Step>) = copy
            .steps
            .list
            .into_iter()
            .partition(|step| step.is_message && (step.model == 0 || step.model == copy.model));
        let mut own: Vec<Tokens> = own.iter().map(|step| self::tokens(&step.counts)).collect();
        let side = side.into_iter().map(|step| {
            let model = if step.model == 0 {
                copy.model
            } else {
                step.model
            };
            (model, self::tokens(&step.counts))
        });
        let sum = own
            .iter()
            .copied()
            .fold(Tokens::default(), Tokens::saturating_add);
        let is_sum = own.len() > 1
            && [sum.input, sum.output, sum.cache_read]
                == [tokens.input, tokens.output, tokens.cache_read]
            && sum.prompt() == tokens.prompt();
        if let Some(first) = own.first_mut() {
            first.web_search = tokens.web_search;
        }
        let counts = &copy.counts;
        Self {
            file: place.file,
            offset: copy.offset,
            time: copy.time,
            is_sidechain: copy.is_sidechain,
            is_incomplete: !copy.has_stop
                || tokens.prompt() <= 1
                || counts.input.is_none()
                || counts.output.is_none(),
            tokens,
            web_fetch: known(counts.web_fetch),
            model: copy.model,
            service_tier: copy.service_tier,
            inference_geo: copy.inference_geo,
            speed: copy.speed,
            agent: copy.agent,
            git_branch: copy.git_branch,
            reported: copy.reported,
            tools: copy.calls.into_iter().map(|(_, tool)| tool).collect(),
            steps: if is_sum { own.into() } else { Box::default() },
            side_calls: side.collect(),
        }
    }
}

/// Returns the tokens that counts of the file stand for.
pub(super) fn tokens(counts: &Counts) -> Tokens {
    let hour = known(counts.cache_write_1h);
    let minutes = known(counts.cache_write_5m);
    let all = known(counts.cache_write);
    Tokens {
        input: known(counts.input),
        output: known(counts.output),
        // What has no lifetime is of the usual one.
        cache_write_5m: minutes.max(all.saturating_sub(hour)),
        cache_write_1h: hour,
        cache_read: known(counts.cache_read),
        web_search: known(counts.web_search),
    }
}
