//! Random damage without an expected result: several kinds at once, on any session.
//!
//! [`Healthy::damaged`](super::Healthy::damaged) knows what a perfect recovery shows, but only for one kind
//! of damage per file. Here only the damage is known, so tests check properties that hold for every
//! file, such as "`recover` shows no less than `vendor`".

use serde_json::{Map, Value};

use super::{Healthy, Kind};
use crate::damage;
use crate::rng::Rng;

/// The kinds of damage that only this module does, by the names that [`several`] reports; the
/// others are those of [`Kind`] and of [`damage::KINDS`].
pub const KINDS: [&str; 8] = [
    "cut span",
    "nul span",
    "garbage",
    "bit flips",
    "lost key",
    "lost boundary",
    "lost summary",
    "lost lines",
];

/// Damages a session in one to four ways. Returns it and the names of the kinds of damage, in order.
///
/// Equal arguments give equal results.
#[must_use]
pub fn several(bytes: &[u8], seed: u64) -> (Vec<u8>, Vec<&'static str>) {
    // The session may have been generated from the same seed; its random numbers must differ.
    let mut rng = Rng::new(seed ^ 0x5EE5_A1D0);
    let mut out = bytes.to_vec();
    let mut done = Vec::new();
    if rng.one_in(3) {
        let kind = *rng.pick(&Kind::ALL);
        let case = Healthy::new(bytes).and_then(|healthy| healthy.damaged(kind, seed));
        if let Some(case) = case {
            out = case.bytes;
            done.push(kind.name());
        }
    }
    let count = rng.range(1, 4);
    while done.len() < count {
        let (kind, damaged) = if rng.one_in(4) {
            let kind = *rng.pick(&damage::KINDS);
            (kind, damage::apply(&out, kind, &mut rng))
        } else {
            let kind = *rng.pick(&KINDS);
            (kind, apply(&out, kind, &mut rng))
        };
        match damaged {
            Some(damaged) => {
                out = damaged;
                done.push(kind);
            }
            // The session has no place for this kind; the next random number picks another.
            None if out.len() < 2 => break,
            None => {}
        }
    }
    (out, done)
}

/// Does one kind of damage at a random place. Returns `None` when the session has no place for it.
fn apply(bytes: &[u8], kind: &str, rng: &mut Rng) -> Option<Vec<u8>> {
    match kind {
        "cut span" => {
            let (from, to) = span(bytes, rng)?;
            Some([&bytes[..from], &bytes[to..]].concat())
        }
        "nul span" => {
            let (from, to) = span(bytes, rng)?;
            let mut out = bytes.to_vec();
            out[from..to].fill(0);
            Some(out)
        }
        "garbage" => {
            let at = rng.below(bytes.len());
            let len = *rng.pick(&[1, 2, 8, 40, 600]);
            let garbage: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
            Some([&bytes[..at], &garbage, &bytes[at..]].concat())
        }
        "bit flips" => {
            let mut out = bytes.to_vec();
            for _ in 0..rng.range(1, 6) {
                let at = rng.below(out.len());
                *out.get_mut(at)? ^= 1 << rng.below(8);
            }
            Some(out)
        }
        "lost key" => lose_key(bytes, rng),
        "lost boundary" => lose_lines(bytes, rng, |line| line["subtype"] == "compact_boundary"),
        "lost summary" => lose_lines(bytes, rng, |line| line["isCompactSummary"] == true),
        _ => lose_run(bytes, rng),
    }
}

/// Returns a range of up to 4,096 bytes, as a rule less than two lines.
fn span(bytes: &[u8], rng: &mut Rng) -> Option<(usize, usize)> {
    let len = *rng.pick(&[1, 3, 16, 64, 200, 512, 1_500, 4_096]);
    let from = rng.below(bytes.len());
    let to = bytes.len().min(from + len);
    (from < to).then_some((from, to))
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

fn object(line: &[u8]) -> Option<Map<String, Value>> {
    match serde_json::from_slice(line) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

/// Removes one key, which links or describes an entry, from up to three lines.
fn lose_key(bytes: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    const KEYS: [&str; 9] = [
        "parentUuid",
        "parentUuid",
        "parentUuid",
        "uuid",
        "type",
        "timestamp",
        "sessionId",
        "isSidechain",
        "message",
    ];
    let key = *rng.pick(&KEYS);
    let mut lines: Vec<Vec<u8>> = lines(bytes).into_iter().map(<[u8]>::to_vec).collect();
    let mut changed = false;
    for _ in 0..rng.range(1, 3) {
        let at = rng.below(lines.len());
        let Some(mut entry) = lines.get(at).and_then(|line| object(line)) else {
            continue;
        };
        if entry.remove(key).is_some() {
            lines[at] = format!("{}\n", Value::Object(entry)).into_bytes();
            changed = true;
        }
    }
    changed.then(|| lines.concat())
}

/// Removes one of the lines that `is_wanted` accepts, as a rule the last one.
fn lose_lines(bytes: &[u8], rng: &mut Rng, is_wanted: impl Fn(&Value) -> bool) -> Option<Vec<u8>> {
    let mut lines = lines(bytes);
    let wanted = lines.iter().enumerate().filter(|(_, line)| {
        let entry = object(line).map(Value::Object);
        entry.is_some_and(|entry| is_wanted(&entry))
    });
    let places: Vec<usize> = wanted.map(|(place, _)| place).collect();
    let last = *places.last()?;
    let place = if rng.one_in(3) {
        *rng.pick(&places)
    } else {
        last
    };
    lines.remove(place);
    Some(lines.concat())
}

/// Removes up to six consecutive lines.
fn lose_run(bytes: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let mut lines = lines(bytes);
    let from = rng.below(lines.len());
    let to = lines.len().min(from + rng.range(1, 6));
    lines.drain(from..to);
    (!lines.is_empty()).then(|| lines.concat())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::generate::tidy_session;

    #[test]
    fn equal_seeds_do_equal_damage_and_every_kind_occurs() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for seed in 0..1_500 {
            let session = tidy_session(seed);
            let (bytes, done) = several(&session, seed);
            assert_eq!(
                (&bytes, &done),
                (&several(&session, seed).0, &several(&session, seed).1)
            );
            assert!((1..=4).contains(&done.len()), "seed {seed}: {done:?}");
            for kind in done {
                *counts.entry(kind).or_default() += 1;
            }
        }
        println!("{counts:?}");
        let all = KINDS.into_iter().chain(damage::KINDS);
        for kind in all.chain(Kind::ALL.map(Kind::name)) {
            assert!(counts.contains_key(kind), "{kind} is too rare");
        }
    }
}
