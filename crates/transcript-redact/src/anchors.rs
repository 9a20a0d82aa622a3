//! Finds the positions of parts of secrets in a text: one pass with an automaton.
//!
//! Each step of an automaton waits for the one before. So a long text is read at several places at once, from a little
//! before each place: behind as many bytes as the longest part has, the state is the same as that of one pass.

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::noncontiguous::NFA;
use aho_corasick::{Anchored, PatternID, dfa};

/// The number of lanes in which a text is read at once, and the minimum length of a text that is read in lanes.
const LANES: usize = 4;
const MIN_LANES_LEN: usize = 512;

/// Finds parts of secrets in any case of their letters.
#[derive(Debug)]
pub(crate) struct Anchors {
    automaton: Kind,
    /// The length of each part, and of the longest one.
    lens: Vec<usize>,
    longest: usize,
}

#[derive(Debug)]
enum Kind {
    Table(dfa::DFA),
    /// The rules of a user may be too many for a table.
    Links(NFA),
    /// The rules of a user are gigabytes.
    None,
}

/// A part in a text: its number, and where it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    pub(crate) part: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Anchors {
    pub(crate) fn new(parts: &[&str]) -> Self {
        let table = dfa::Builder::new()
            .ascii_case_insensitive(true)
            .prefilter(false)
            .build(parts);
        let links = || {
            let mut builder = NFA::builder();
            builder.ascii_case_insensitive(true).prefilter(false);
            builder.build(parts).map_or(Kind::None, Kind::Links)
        };
        let lens: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        Self {
            automaton: table.map_or_else(|_| links(), Kind::Table),
            longest: lens.iter().copied().max().unwrap_or_default(),
            lens,
        }
    }

    /// Finds all parts of a text, in the order of their ends.
    pub(crate) fn find(&self, text: &[u8], found: &mut Vec<Anchor>) {
        found.clear();
        match &self.automaton {
            Kind::Table(table) => self.find_with(table, text, found),
            Kind::Links(links) => self.find_with(links, text, found),
            Kind::None => {}
        }
    }

    fn find_with<A: Automaton>(&self, automaton: &A, text: &[u8], found: &mut Vec<Anchor>) {
        let Ok(start) = automaton.start_state(Anchored::No) else {
            return;
        };
        if text.len() < MIN_LANES_LEN.max(self.longest * LANES) {
            let mut lane = Lane::new(start, 0, 0..text.len());
            lane.run(automaton, text, text.len(), &self.lens);
            found.append(&mut lane.found);
            return;
        }
        let size = text.len() / LANES;
        let mut lanes: [Lane; LANES] = std::array::from_fn(|number| {
            let from = number * size;
            let to = if number + 1 == LANES {
                text.len()
            } else {
                from + size
            };
            Lane::new(start, from.saturating_sub(self.longest), from..to)
        });
        // The first one starts at its own place, and so has the fewest bytes.
        for _ in 0..size {
            for lane in &mut lanes {
                lane.step(automaton, text, &self.lens);
            }
        }
        for lane in &mut lanes {
            lane.run(automaton, text, lane.own.end, &self.lens);
            found.append(&mut lane.found);
        }
    }
}

/// A place at which a text is read.
struct Lane {
    state: StateID,
    at: usize,
    /// The range of the lane: it reports only parts that end here, as the others belong to the next lane.
    own: std::ops::Range<usize>,
    found: Vec<Anchor>,
}

impl Lane {
    fn new(state: StateID, at: usize, own: std::ops::Range<usize>) -> Self {
        Self {
            state,
            at,
            own,
            found: Vec::new(),
        }
    }

    fn run<A: Automaton>(&mut self, automaton: &A, text: &[u8], end: usize, lens: &[usize]) {
        while self.at < end {
            self.step(automaton, text, lens);
        }
    }

    #[inline(always)]
    fn step<A: Automaton>(&mut self, automaton: &A, text: &[u8], lens: &[usize]) {
        self.state = automaton.next_state(Anchored::No, self.state, text[self.at]);
        self.at += 1;
        if automaton.is_special(self.state) {
            self.note(automaton, lens);
        }
    }

    #[cold]
    fn note<A: Automaton>(&mut self, automaton: &A, lens: &[usize]) {
        if !automaton.is_match(self.state) || self.at <= self.own.start && self.own.start > 0 {
            return;
        }
        for number in 0..automaton.match_len(self.state) {
            let part: PatternID = automaton.match_pattern(self.state, number);
            let part = part.as_usize();
            self.found.push(Anchor {
                part,
                start: self.at - lens[part],
                end: self.at,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_read_at_several_places_has_the_parts_that_one_pass_finds() {
        let parts = ["ab", "abcabd", "b", "Cab", "dddddddddddd", "a"];
        let anchors = Anchors::new(&parts);
        let mut number = 7_u64;
        for len in [0, 1, 40, 511, 512, 513, 700, 1_001, 4_096] {
            for _ in 0..50 {
                let text: Vec<u8> = (0..len)
                    .map(|_| {
                        number = number
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1);
                        b"abcdABd"[(number >> 33) as usize % 7]
                    })
                    .collect();
                let mut found = Vec::new();
                anchors.find(&text, &mut found);
                let mut found: Vec<_> = found.iter().map(|one| (one.end, one.part)).collect();
                found.sort_unstable();
                let lower = text.to_ascii_lowercase();
                let mut slow = Vec::new();
                for (part, word) in parts.iter().enumerate() {
                    let word = word.to_ascii_lowercase();
                    let windows = lower.windows(word.len()).enumerate();
                    let places = windows.filter(|(_, here)| *here == word.as_bytes());
                    slow.extend(places.map(|(at, _)| (at + word.len(), part)));
                }
                slow.sort_unstable();
                assert_eq!(found, slow);
            }
        }
    }
}
