//! The requests of all files, each once.

use std::collections::HashMap;
use std::mem;
use std::num::NonZeroU128;

use transcript_format::answers::{Above, AnswerCopies, AnswerLines, AnswerMark, LineEnds};

use super::part::{
    ClientCount, Copy, Count, Counts, LineAbove, NameNumber, Names, Part, RequestStep, RunTotal,
    known, no_id,
};
use super::tokens::Tokens;

/// One call of the API and its answer: the copy that owns it, completed with values of the other copies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'r> {
    /// The number of the file that owns it.
    pub(super) file: u32,
    pub(super) copy: &'r Copy,
}

/// The requests of all files, each once, and other values of the files.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// In the order of the files and of offsets.
    parts: Vec<(PartOwner, Vec<Copy>)>,
    pub(super) names: Names,
    /// By the number of the file.
    pub(super) facts: Vec<FileFacts>,
    /// Results of the client's `WebSearch`: file, hash of the call, number of searches.
    searches: Vec<(u32, u64, u64)>,
    /// The files with running totals.
    runs: Vec<PartOwner>,
    /// The number of searches whose call is not in their file.
    pub(super) unmatched_searches: u64,
    /// The lines of the last file.
    lines: FileLines,
    /// The copies that continue an answer of an earlier part of their file, and the first of it.
    later: HashMap<CopyPosition, CopyPosition>,
}

/// The lines of the parts of a file, for answers that are in several.
#[derive(Debug, Default)]
struct FileLines {
    file: u32,
    lines: AnswerLines,
    /// The first copy of each answer.
    answers: Vec<CopyPosition>,
}

/// Values of a file besides its requests.
#[derive(Clone, Debug, Default)]
pub(super) struct FileFacts {
    /// The offset and the time of the compaction boundaries, in order.
    pub(super) boundaries: Vec<(u64, Option<i64>)>,
    pub(super) counted: Option<ClientCount>,
    /// In order, until they are added to the requests.
    run_totals: Vec<RunTotal>,
    /// The number of requests of which it has a copy that another session owns.
    pub(super) copies: u64,
}

/// The file of a part, as far as the owner depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartOwner {
    pub(super) file: u32,
    pub(super) session: u32,
    pub(super) is_subagent: bool,
    /// The place of the path among all paths.
    pub(super) rank: u32,
}

/// The place of a copy: the number of its part, and its own in it.
type CopyPosition = (u32, u32);

impl Requests {
    /// Starts with no requests of this number of files.
    pub(super) fn new(files: usize) -> Self {
        Self {
            facts: vec![FileFacts::default(); files],
            ..Self::default()
        }
    }

    /// Adds the next part of a file. The parts of one file come in order.
    pub(super) fn add(&mut self, place: PartOwner, part: Part) {
        let names = part.names.iter();
        let names: Vec<NameNumber> = names.map(|name| self.names.number(name)).collect();
        let facts = &mut self.facts[place.file as usize];
        facts.boundaries.extend(part.boundaries);
        if part.counted.is_some() {
            // The parts come in order, and the last total of a file counts.
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
                // A payload can state a number for which it has no name.
                *name = at.and_then(|at| names.get(at)).copied().unwrap_or(0);
            });
        }
        self.add_lines(place.file, &copies, part.lines, part.lanes);
        if !copies.is_empty() {
            self.parts.push((place, copies));
        }
    }

    /// Finds the copies that continue an answer of an earlier part of the file.
    fn add_lines(
        &mut self,
        file: u32,
        copies: &[Copy],
        lines: Vec<LineAbove>,
        lanes: Vec<LineAbove>,
    ) {
        let of_file = &mut self.lines;
        if of_file.file != file {
            *of_file = FileLines {
                file,
                ..FileLines::default()
            };
        }
        // All ids in this part are unique, so no links are needed.
        if lines.is_empty() && lanes.is_empty() {
            return;
        }
        let part = self.parts.len() as u32;
        let mut numbers = Vec::with_capacity(copies.len());
        let mut added = Vec::new();
        for (place, copy) in (0..).zip(copies) {
            let marks = &copy.marks;
            let known = [marks.first_line, marks.line_before].into_iter();
            let known = known.filter_map(|line| match of_file.lines.find(line) {
                Some(Above::Answer(number)) => Some(number),
                _ => None,
            });
            let mut known = known.filter(|number| {
                let (of, at) = of_file.answers[*number as usize];
                // A link alone is not enough: a gateway's id can be that of the answer above, too.
                !copy.is_unique && self.parts[of as usize].1[at as usize].is_with(copy)
            });
            let number = known.next();
            if let Some(number) = number {
                let (of, at) = of_file.answers[number as usize];
                let first = &mut self.parts[of as usize].1[at as usize];
                if first.marks.request == 0 {
                    first.marks.request = copy.marks.request;
                }
                self.later.insert((part, place), (of, at));
            }
            numbers.push(number.unwrap_or_else(|| {
                added.push((part, place));
                (of_file.answers.len() + added.len() - 1) as u32
            }));
        }
        of_file.answers.append(&mut added);
        let ends = |ends: Vec<LineAbove>| -> Vec<_> {
            ends.into_iter().map(|end| (end.line, end.above)).collect()
        };
        let number = |there: u32| numbers.get(there as usize).copied();
        let (lines, lanes) = (ends(lines), ends(lanes));
        of_file.lines.append(LineEnds { lines, lanes }, number);
    }

    /// Makes one request of all copies of each.
    pub(super) fn merge(&mut self) {
        self.add_searches();
        self.add_run_totals();
        let count = self.parts.iter().map(|(_, copies)| copies.len()).sum();
        let mut first_of: HashMap<NonZeroU128, CopyPosition> = HashMap::with_capacity(count);
        let mut groups: HashMap<NonZeroU128, Vec<CopyPosition>> = HashMap::new();
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
        // It has an entry for each request, and merging needs memory.
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

    /// Divides the copies with one id, which are in the order of their files and offsets, into those of each answer.
    fn answers(&self, group: &[CopyPosition]) -> Vec<Vec<CopyPosition>> {
        let copy = |at: &CopyPosition| &self.parts[at.0 as usize].1[at.1 as usize];
        let has_one_a_file = self.has_one_a_file(group);
        let mut unique = Vec::new();
        let mut others: Vec<Vec<CopyPosition>> = Vec::new();
        let mut numbers: HashMap<CopyPosition, u32> = HashMap::new();
        let mut copies = AnswerCopies::default();
        for at in group {
            if copy(at).is_unique {
                unique.push(*at);
                continue;
            }
            let first = self.later.get(at).unwrap_or(at);
            let number = *numbers.entry(*first).or_insert_with(|| {
                let place = self.parts[first.0 as usize].0;
                let copy = copy(first);
                let mut marks = marks_of(copy);
                // A subagent or a sidechain can replay lines of its parent. The same content shows it.
                if has_one_a_file && copy.marks.content != 0 {
                    let is_side = place.is_subagent || copy.is_sidechain;
                    marks.push(AnswerMark::Replayed(copy.marks.content, is_side));
                }
                copies.add(place.file, &marks)
            });
            let number = number as usize;
            if number == others.len() {
                others.push(Vec::new());
            }
            others[number].push(*at);
        }
        others.push(unique);
        others.retain(|answer| answer.len() > 1);
        others
    }

    /// Returns whether the id of these copies says something: there is one, and no file has several answers with it.
    fn has_one_a_file(&self, group: &[CopyPosition]) -> bool {
        let firsts = group.iter().filter(|at| !self.later.contains_key(at));
        let mut files = firsts.map(|(part, _)| self.parts[*part as usize].0.file);
        let mut last = files.next();
        let has_id = group.first().is_some_and(|(part, number)| {
            let copy = &self.parts[*part as usize].1[*number as usize];
            copy.id != Some(no_id())
        });
        has_id && files.all(|file| last.replace(file) != Some(file))
    }

    fn take(&mut self, (part, number): CopyPosition) -> Copy {
        let copy = &mut self.parts[part as usize].1[number as usize];
        let merged = Copy {
            is_merged: true,
            ..Copy::default()
        };
        mem::replace(copy, merged)
    }

    /// Makes one request of copies, which are in the order of their files and offsets.
    fn merge_group(&mut self, group: &[CopyPosition]) {
        // Lines of one answer in several parts of a file are one copy, not several requests.
        let mut copies: Vec<(CopyPosition, PartOwner, Copy)> = Vec::new();
        for at in group {
            let place = self.parts[at.0 as usize].0;
            let copy = self.take(*at);
            match copies.last_mut().filter(|last| last.1.file == place.file) {
                Some((_, _, first)) => first.follow(copy),
                None => copies.push((*at, place, copy)),
            }
        }
        // The order of docs/usage.md: the earliest transcript owns what others copied.
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
            // Only copies that another session owns are counted.
            if other.session != place.session {
                self.facts[other.file as usize].copies += 1;
            }
            owner.has_stop |= copy.has_stop;
            owner.counts = owner.counts.max(copy.counts);
            // The largest and not the sum: each copy has the results of the same searches.
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
                // A smaller total is that of another process, which started at 0.
                let cost = total.cost.checked_sub(last).unwrap_or(total.cost);
                RunTotal { cost, ..total }
            });
            let mut costs = costs.peekable();
            let of_file = |(other, _): &&mut (PartOwner, Vec<Copy>)| other.file == place.file;
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

/// Returns the marks by which a copy is recognized as one of an answer in another file.
fn marks_of(copy: &Copy) -> Vec<AnswerMark> {
    let Copy {
        marks, first_time, ..
    } = copy;
    let line = |line: u64| (line != 0).then_some(AnswerMark::Line(line));
    let last_line = (marks.last_line != marks.first_line).then_some(marks.last_line);
    let time = first_time.get().filter(|_| marks.content != 0);
    let has_request = marks.content != 0 && marks.request != 0;
    let found = [
        line(marks.first_line),
        last_line.and_then(line),
        time.map(|time| AnswerMark::Content(marks.content, time)),
        has_request.then_some(AnswerMark::Request(marks.content, marks.request)),
    ];
    found.into_iter().flatten().collect()
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
        // Steps are priced only if they explain all tokens of the request; otherwise a part of it would have no price.
        let is_sum = [sum.input, sum.output, sum.cache_read]
            == [all.input, all.output, all.cache_read]
            && sum.prompt() == all.prompt();
        if own.len() < 2 || !is_sum {
            return Vec::new();
        }
        // Steps do not have the searches, whose price does not depend on the prompt.
        own[0].web_search = all.web_search;
        own
    }

    /// Returns the calls of other models within it, each with its model.
    pub(super) fn side_calls(&self) -> impl Iterator<Item = (NameNumber, Tokens)> + use<'r> {
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

    fn is_side_call(&self, step: &RequestStep) -> bool {
        !step.is_message || step.model != 0 && step.model != self.copy.model
    }
}

/// Returns a copy for the result of a run that made no request.
fn result_without_request(total: RunTotal) -> Copy {
    let mut copy = Copy {
        id: NonZeroU128::new(total.line.into()),
        offset: total.offset,
        first_time: total.time,
        time: total.time,
        reported: Count::new(total.cost),
        is_unique: true,
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
        // A cache write without a lifetime has the default one of the API, five minutes.
        cache_write_5m: minutes.max(all.saturating_sub(hour)),
        cache_write_1h: hour,
        cache_read: known(counts.cache_read),
        web_search: known(counts.web_search),
    }
}
