//! Decides whether a unit is a hit, and how good a hit it is.

use crate::fold::Fold;
use crate::query::{Field, Matcher, Query, Term};
use crate::texts::Text;

/// The maximum number of matches of a term in a text that are considered.
const MAX_MATCHES_PER_TEXT: usize = 64;
/// The unit of age in the recency part of a score, in milliseconds: 6 hours.
const RECENCY_UNIT_MILLIS: f64 = 6.0 * 3_600_000.0;

/// The text that a hit shows, and the score of the hit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BestText {
    /// Its number among the texts of the unit.
    pub(crate) text: usize,
    pub(crate) score: f32,
}

/// Buffers for folded texts.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    texts: [String; 3],
    is_made: [bool; 3],
}

impl Folded {
    fn forget(&mut self) {
        self.is_made = [false; 3];
    }

    fn get<'f>(&'f mut self, fold: Fold, text: &'f str) -> &'f str {
        let at = match (fold.plain, fold.lower) {
            (false, false) => return text,
            (true, false) => 0,
            (false, true) => 1,
            (true, true) => 2,
        };
        if !self.is_made[at] {
            fold.text(text, &mut self.texts[at]);
            self.is_made[at] = true;
        }
        &self.texts[at]
    }
}

impl Term {
    /// Passes the places of the term in a text, and the text in which they are: as it is folded for the
    /// term. Ends when `see` returns false.
    fn for_each_match(
        &self,
        text: &str,
        folded: &mut Folded,
        mut see: impl FnMut(&str, (usize, usize)) -> bool,
    ) {
        match &self.matcher {
            Matcher::Literal { fold, finders } => {
                let text = folded.get(*fold, text);
                let mut all: Vec<_> = finders
                    .iter()
                    .map(|finder| {
                        let len = finder.needle().len();
                        let places = finder.find_iter(text.as_bytes());
                        places.map(move |at| (at, at + len)).peekable()
                    })
                    .collect();
                let mut end = 0;
                // Of places of several forms the first, and none within another.
                while let Some(places) = all
                    .iter_mut()
                    .filter_map(|places| Some((*places.peek()?, places)))
                    .min_by_key(|(place, _)| *place)
                    .map(|(_, places)| places)
                {
                    let Some(place) = places.next() else { return };
                    if place.0 >= end && !see(text, place) {
                        return;
                    }
                    end = end.max(place.1);
                }
            }
            Matcher::Regex(regex) => {
                let mut places = regex.find_iter(text);
                while places
                    .next()
                    .is_some_and(|found| see(text, (found.start(), found.end())))
                {}
            }
        }
    }

    /// Returns the first places of the term in a text.
    fn places_in(&self, text: &str, folded: &mut Folded) -> Vec<(usize, usize)> {
        let mut places = Vec::new();
        self.for_each_match(text, folded, |_, place| {
            places.push(place);
            places.len() < MAX_MATCHES_PER_TEXT
        });
        let Matcher::Literal { fold, .. } = &self.matcher else {
            return places;
        };
        // The ends are sorted as well, since no place is within another.
        let starts: Vec<_> = places.iter().map(|place| place.0).collect();
        let ends: Vec<_> = places.iter().map(|place| place.1).collect();
        let (starts, ends) = (fold.places(text, &starts), fold.places(text, &ends));
        starts.into_iter().zip(ends).collect()
    }
}

impl Query {
    pub(crate) fn positive(&self) -> impl Iterator<Item = &Term> {
        self.terms.iter().filter(|term| !term.is_negative)
    }

    /// Returns the best of these texts if all positive terms are in them and no negative one is.
    /// The texts come with their numbers in the unit.
    pub(crate) fn best<'t>(
        &self,
        texts: impl Iterator<Item = (usize, &'t Text<'t>)>,
        folded: &mut Folded,
    ) -> Option<BestText> {
        let all = (1u64 << self.positive().count()) - 1;
        let has_negative = self.terms.iter().any(|term| term.is_negative);
        let mut found = 0;
        let mut best: Option<(u32, BestText)> = None;
        let mut places = Vec::new();
        for (number, text) in texts {
            folded.forget();
            places.clear();
            let (mut here, mut bit, mut words) = (0u64, 1u64, 0.0);
            for term in &self.terms {
                let (mut seen, mut is_whole) = (0, false);
                term.for_each_match(&text.text, folded, |shown, place| {
                    seen += 1;
                    is_whole = is_whole || !term.is_negative && is_word(shown, place);
                    places.push((place, bit));
                    // All matches are needed only for the distance to other terms; of a single term the first whole word is enough.
                    seen < MAX_MATCHES_PER_TEXT && !term.is_negative && (all > 1 || !is_whole)
                });
                if term.is_negative {
                    if seen > 0 {
                        return None;
                    }
                    continue;
                }
                if seen > 0 {
                    here |= bit;
                    words += f32::from(u8::from(is_whole));
                }
                bit <<= 1;
            }
            found |= here;
            let count = here.count_ones();
            if best.as_ref().is_none_or(|(most, _)| count > *most) {
                let mut score = field_weight(text.field);
                if count > 0 {
                    score += words / count as f32;
                }
                if count > 1 {
                    places.sort_unstable();
                    let (start, end) = nearest(&places, here);
                    score += nearness(end - start);
                }
                let text = number;
                best = Some((count, BestText { text, score }));
                if here == all && !has_negative {
                    // No other text has more of them.
                    break;
                }
            }
        }
        let (count, mut best) = best?;
        // Words in one text are nearer than words in several.
        best.score -= 1.5 * (all.count_ones() - count) as f32;
        (found == all).then_some(best)
    }

    /// Returns the places of positive terms in a text that are near each other, in order and not
    /// overlapping.
    pub(crate) fn places(&self, text: &str) -> Vec<(usize, usize)> {
        let mut folded = Folded::default();
        let mut places = Vec::new();
        let mut here = 0;
        for (number, term) in self.positive().enumerate() {
            let of_term = term.places_in(text, &mut folded);
            here |= u64::from(!of_term.is_empty()) << number;
            places.extend(of_term.into_iter().map(|place| (place, 1 << number)));
        }
        places.sort_unstable();
        if places.is_empty() {
            return Vec::new();
        }
        let (start, end) = nearest(&places, here);
        let mut near: Vec<(usize, usize)> = Vec::new();
        for (place, _) in places {
            let is_apart = near.last().is_none_or(|last| last.1 <= place.0);
            if place.0 >= start && place.1 <= end && is_apart {
                near.push(place);
            }
        }
        near
    }
}

/// Returns the shortest range with a place of each of the terms in `all`; of several, the first.
/// The places are sorted.
fn nearest(places: &[((usize, usize), u64)], all: u64) -> (usize, usize) {
    let mut last = [None::<(usize, usize)>; 64];
    let mut best: Option<(usize, usize)> = None;
    let mut seen = 0;
    for (place, bit) in places {
        last[bit.trailing_zeros() as usize] = Some(*place);
        seen |= bit;
        if seen != all {
            continue;
        }
        let range = last.iter().flatten().fold((usize::MAX, 0), |range, place| {
            (range.0.min(place.0), range.1.max(place.1))
        });
        if best.is_none_or(|best| range.1 - range.0 < best.1 - best.0) {
            best = Some(range);
        }
    }
    best.unwrap_or_default()
}

/// Prompts and titles are what people remember; results are mostly noise.
fn field_weight(field: Field) -> f32 {
    match field {
        Field::Title => 5.0,
        Field::Prompt => 4.5,
        Field::Queued => 4.0,
        Field::Summary | Field::Text => 3.5,
        Field::Thinking => 2.5,
        Field::ToolInput => 1.5,
        Field::Attachment | Field::ToolResult => 1.0,
    }
}

/// Returns up to 2 for terms that are within a line, and almost nothing beyond a page.
fn nearness(bytes: usize) -> f32 {
    2.0 / (1.0 + bytes as f32 / 80.0)
}

/// Returns the recency part of the score of a hit, if the newest hit has the time `newest`: 1.5
/// at first, and a quarter less whenever the age doubles.
pub(crate) fn recency(millis: Option<i64>, newest: i64) -> f32 {
    let Some(millis) = millis else { return 0.0 };
    let age = newest.saturating_sub(millis).max(0) as f64 / RECENCY_UNIT_MILLIS;
    (1.5 - 0.25 * (1.0 + age).log2()).max(0.0) as f32
}

fn is_word(text: &str, (start, end): (usize, usize)) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let before = text[..start].chars().next_back();
    let after = text[end..].chars().next();
    !before.is_some_and(is_part) && !after.is_some_and(is_part)
}
