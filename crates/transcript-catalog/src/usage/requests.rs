//! The requests of all files, each once.

use std::collections::HashMap;
use std::mem;
use std::num::NonZeroU128;

use super::part::{Copy, Count, Counted, Counts, Name, Names, Part, RunTotal, Step, Time, known};
use super::tokens::Tokens;

/// One call of the API and its answer: the copy that owns it, with what the others say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'r> {
    /// The number of the file that owns it.
    pub(super) file: u32,
    pub(super) copy: &'r Copy,
}

/// The requests of all files, each once, and what else is known.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// In the order of the files and of offsets.
    parts: Vec<(Place, Vec<Copy>)>,
    pub(super) names: Names,
    /// By the number of the file.
    pub(super) facts: Vec<FileFacts>,
    /// What results of the client's `WebSearch` say: file, hash of the call, searches.
    searches: Vec<(u32, u64, u64)>,
    /// The files with running totals.
    runs: Vec<Place>,
    /// The number of searches whose call is not in their file.
    pub(super) unmatched_searches: u64,
}

/// What is known of a file apart from requests.
#[derive(Clone, Debug, Default)]
pub(super) struct FileFacts {
    /// The offset and the time of the compaction boundaries, in order.
    pub(super) boundaries: Vec<(u64, Option<i64>)>,
    pub(super) counted: Option<Counted>,
    /// In order, until they are added to the requests.
    run_totals: Vec<RunTotal>,
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

/// The place of a copy: the number of its part, and its own in it.
type At = (u32, u32);

impl Requests {
    /// Starts with no requests of this number of files.
    pub(super) fn new(files: usize) -> Self {
        Self {
            facts: vec![FileFacts::default(); files],
            ..Self::default()
        }
    }

    /// Adds the next part of a file. The parts of one file come in order.
    pub(super) fn add(&mut self, place: Place, part: Part) {
        let names = part.names.iter();
        let names: Vec<Name> = names.map(|name| self.names.number(name)).collect();
        let facts = &mut self.facts[place.file as usize];
        facts.boundaries.extend(part.boundaries);
        if part.counted.is_some() {
            facts.counted = part.counted;
        }
        if !part.run_totals.is_empty() && facts.run_totals.is_empty() {
            self.runs.push(place);
        }
        facts.run_totals.extend(part.run_totals);
        let searches = part.searches.into_iter();
        self.searches
            .extend(searches.map(|(call, searches)| (place.file, call, searches)));
        let mut copies = part.copies;
        for copy in &mut copies {
            copy.for_each_name(|name| {
                let at = (*name as usize).checked_sub(1);
                *name = at.and_then(|at| names.get(at)).copied().unwrap_or(0);
            });
        }
        if !copies.is_empty() {
            self.parts.push((place, copies));
        }
    }

    /// Makes one request of all copies of each.
    pub(super) fn merge(&mut self) {
        self.add_searches();
        self.add_run_totals();
        let count = self.parts.iter().map(|(_, copies)| copies.len()).sum();
        let mut first_of: HashMap<NonZeroU128, At> = HashMap::with_capacity(count);
        let mut groups: HashMap<NonZeroU128, Vec<At>> = HashMap::new();
        for (part, (_, copies)) in (0..).zip(&self.parts) {
            for (number, copy) in (0..).zip(copies) {
                let at = (part, number);
                let Some(id) = copy.id else { continue };
                let first = *first_of.entry(id).or_insert(at);
                if first != at {
                    groups.entry(id).or_insert_with(|| vec![first]).push(at);
                }
            }
        }
        drop(first_of);
        for group in groups.into_values() {
            for answer in self.answers(&group) {
                self.merge_group(&answer);
            }
        }
    }

    /// Returns the requests.
    pub(super) fn iter(&self) -> impl Iterator<Item = Request<'_>> {
        let parts = self.parts.iter();
        let all = parts.flat_map(|(place, copies)| {
            let file = place.file;
            copies.iter().map(move |copy| Request { file, copy })
        });
        all.filter(|request| !request.copy.is_merged)
    }

    /// Divides the copies with one id into those of each answer. An id that a file has for several
    /// answers says nothing: what a gateway numbers, or the same text for all of them. Then, and for
    /// an id that may be of a gateway, copies in several files have their lines in common.
    fn answers(&self, group: &[At]) -> Vec<Vec<At>> {
        let mut answers = Answers::default();
        let copy = |at: &At| &self.parts[at.0 as usize].1[at.1 as usize];
        let file = |at: &At| self.parts[at.0 as usize].0.file;
        for at in group {
            let Copy {
                marks, first_time, ..
            } = copy(at);
            let file = u64::from(file(at));
            answers.add([
                Mark::Request(marks.request),
                Mark::Line(marks.first_line),
                Mark::LineOf(file, marks.line_before),
                Mark::LineOf(file, marks.last_line),
                Mark::ContentAt(marks.content, *first_time),
            ]);
        }
        let of_file = |number: usize| (file(&group[number]), answers.find(number));
        let mut last = HashMap::new();
        let is_shared = (0..group.len())
            .map(of_file)
            .any(|(file, answer)| *last.entry(file).or_insert(answer) != answer);
        if !is_shared {
            for (number, at) in group.iter().enumerate() {
                let copy = copy(at);
                let mark = match copy.is_of_api {
                    true => Mark::Id,
                    false => Mark::Content(copy.marks.content),
                };
                answers.mark(number, mark);
            }
        }
        let mut found: Vec<Vec<At>> = vec![Vec::new(); group.len()];
        for (number, at) in group.iter().enumerate() {
            found[answers.find(number)].push(*at);
        }
        found.retain(|answer| answer.len() > 1);
        found
    }

    fn take(&mut self, (part, number): At) -> Copy {
        let copy = &mut self.parts[part as usize].1[number as usize];
        let merged = Copy {
            is_merged: true,
            ..Copy::default()
        };
        mem::replace(copy, merged)
    }

    /// Makes one request of copies, which are in the order of their files and offsets.
    fn merge_group(&mut self, group: &[At]) {
        // What several parts of a file say is one copy.
        let mut copies: Vec<(At, Place, Copy)> = Vec::new();
        for at in group {
            let place = self.parts[at.0 as usize].0;
            let copy = self.take(*at);
            match copies.last_mut().filter(|last| last.1.file == place.file) {
                Some((_, _, first)) => first.follow(copy),
                None => copies.push((*at, place, copy)),
            }
        }
        copies.sort_by_key(|(_, place, copy)| {
            let odd = [
                copy.is_forked,
                place.is_subagent,
                copy.is_sidechain,
                !copy.is_own,
            ];
            (odd, copy.first_time, place.rank)
        });
        let mut copies = copies.into_iter();
        let Some((at, place, mut owner)) = copies.next() else {
            return;
        };
        for (_, other, copy) in copies {
            if other.session != place.session {
                self.facts[other.file as usize].copies += 1;
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
        self.parts[at.0 as usize].1[at.1 as usize] = owner;
    }

    /// Adds the cost that each result reports to the last request before it. The total of a result
    /// is that of its process so far, so its cost is what it is more than the total before; a total
    /// that is smaller is the first of another process.
    fn add_run_totals(&mut self) {
        for place in std::mem::take(&mut self.runs) {
            let totals = mem::take(&mut self.facts[place.file as usize].run_totals);
            let mut before: HashMap<u64, u64> = HashMap::new();
            let costs = totals.into_iter().map(|total| {
                let last = before.insert(total.session, total.cost).unwrap_or(0);
                let cost = total.cost.checked_sub(last).unwrap_or(total.cost);
                RunTotal { cost, ..total }
            });
            let mut costs = costs.peekable();
            let of_file = |(other, _): &&mut (Place, Vec<Copy>)| other.file == place.file;
            let copies = self.parts.iter_mut().filter(of_file);
            let mut copies = copies.flat_map(|(_, copies)| copies).peekable();
            while let Some(copy) = copies.next() {
                let end = copies.peek().map(|next| next.offset);
                let is_before = |total: &RunTotal| end.is_none_or(|end| total.offset < end);
                while let Some(total) = costs.next_if(is_before) {
                    let reported = known(copy.reported).saturating_add(total.cost);
                    copy.reported = Count::new(reported);
                }
            }
            // Without any request.
            let results: Vec<Copy> = costs.map(result_without_request).collect();
            if !results.is_empty() {
                self.parts.push((place, results));
            }
        }
    }

    /// Adds the searches of the client's `WebSearch` to the copies that made the calls.
    fn add_searches(&mut self) {
        // Of a result that is in its file twice, the larger number counts.
        let mut searches: HashMap<(u32, u64), u64> = HashMap::new();
        for (file, call, found) in self.searches.drain(..) {
            let most = searches.entry((file, call)).or_default();
            *most = found.max(*most);
        }
        if searches.is_empty() {
            return;
        }
        for (place, copies) in &mut self.parts {
            for copy in copies {
                for call in &copy.calls {
                    if let Some(found) = searches.remove(&(place.file, call.id)) {
                        copy.client_searches = copy.client_searches.saturating_add(found);
                    }
                }
            }
        }
        self.unmatched_searches = searches
            .values()
            .fold(0, |sum, more| sum.saturating_add(*more));
    }
}

/// What shows that two copies are of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Mark {
    Request(u64),
    /// A line, wherever it was copied to.
    Line(u64),
    /// A line of this file.
    LineOf(u64, u64),
    /// The content of the first line.
    Content(u64),
    ContentAt(u64, Time),
    Id,
}

impl Mark {
    fn is_known(self) -> bool {
        match self {
            Self::Request(mark) | Self::Line(mark) | Self::LineOf(_, mark) => mark != 0,
            Self::Content(mark) => mark != 0,
            Self::ContentAt(mark, time) => mark != 0 && time.get().is_some(),
            Self::Id => true,
        }
    }
}

/// Copies, joined where they have a mark in common.
#[derive(Debug, Default)]
struct Answers {
    /// For each copy the first that it is joined with, or one on the way there.
    above: Vec<usize>,
    first: HashMap<Mark, usize>,
}

impl Answers {
    fn add(&mut self, marks: impl IntoIterator<Item = Mark>) {
        let number = self.above.len();
        self.above.push(number);
        for mark in marks {
            self.mark(number, mark);
        }
    }

    fn mark(&mut self, number: usize, mark: Mark) {
        if !mark.is_known() {
            return;
        }
        let other = *self.first.entry(mark).or_insert(number);
        let (one, other) = (self.find(number), self.find(other));
        self.above[one.max(other)] = one.min(other);
    }

    fn find(&self, number: usize) -> usize {
        let mut at = number;
        while self.above[at] != at {
            at = self.above[at];
        }
        at
    }
}

impl<'r> Request<'r> {
    /// Returns its time in milliseconds since 1970.
    pub(super) fn time(&self) -> Option<i64> {
        self.copy.time.get()
    }

    /// Returns the tokens, without those of side calls.
    pub(super) fn tokens(&self) -> Tokens {
        let mut tokens = tokens(&self.copy.counts);
        tokens.web_search = tokens.web_search.saturating_add(self.copy.client_searches);
        tokens
    }

    pub(super) fn web_fetch(&self) -> u64 {
        known(self.copy.counts.web_fetch)
    }

    /// Returns whether its final counts were never written.
    pub(super) fn is_incomplete(&self) -> bool {
        let Copy {
            counts, has_stop, ..
        } = self.copy;
        let is_unknown = counts.input.is_none() || counts.output.is_none();
        !has_stop || is_unknown || tokens(counts).prompt() <= 1
    }

    /// Returns the counts whose prices make its price; empty if that is the price of its own counts.
    pub(super) fn steps(&self) -> Vec<Tokens> {
        if self.copy.steps.list.len() < 2 {
            return Vec::new();
        }
        let own = self
            .copy
            .steps
            .list
            .iter()
            .filter(|step| !self.is_side_call(step));
        let mut own: Vec<Tokens> = own.map(|step| tokens(&step.counts)).collect();
        let sum = own.iter().copied();
        let sum = sum.fold(Tokens::default(), Tokens::saturating_add);
        let all = self.tokens();
        let is_sum = [sum.input, sum.output, sum.cache_read]
            == [all.input, all.output, all.cache_read]
            && sum.prompt() == all.prompt();
        if own.len() < 2 || !is_sum {
            return Vec::new();
        }
        own[0].web_search = all.web_search;
        own
    }

    /// Returns the calls of other models within it, each with its model.
    pub(super) fn side_calls(&self) -> impl Iterator<Item = (Name, Tokens)> + use<'r> {
        let request = *self;
        let steps = self.copy.steps.list.iter();
        let side = steps.filter(move |step| request.is_side_call(step));
        side.map(move |step| {
            let model = if step.model == 0 {
                request.copy.model
            } else {
                step.model
            };
            (model, tokens(&step.counts))
        })
    }

    fn is_side_call(&self, step: &Step) -> bool {
        !step.is_message || step.model != 0 && step.model != self.copy.model
    }
}

/// Returns what stands for the result of a run that made no request.
fn result_without_request(total: RunTotal) -> Copy {
    let mut copy = Copy {
        id: NonZeroU128::new(total.line.into()),
        offset: total.offset,
        first_time: total.time,
        time: total.time,
        reported: Count::new(total.cost),
        is_result: true,
        ..Copy::default()
    };
    copy.marks.first_line = total.line;
    copy
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
