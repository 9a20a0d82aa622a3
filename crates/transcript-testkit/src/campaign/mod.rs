//! The damage campaign: healthy sessions, one kind of damage each, and what a perfect recovery
//! would show.
//!
//! The expected result comes from this module, never from the tested code. It is the path of the
//! slow model ([`vendor_path`](crate::model::vendor_path)) through the session before it was damaged. If lines were
//! destroyed, it is the path through the session without them, with every link past them repaired,
//! which only the generator can do. Entries that the damaged bytes do not prove (see `truth.rs`) are
//! optional: they may be shown or missing.

mod healthy;
mod kind;
mod mutations;
pub mod several;
pub mod traces;
mod truth;

use std::collections::{HashMap, HashSet};

pub use healthy::Healthy;
pub use kind::Kind;

use crate::rng::Rng;

impl Healthy {
    /// Returns the session without any damage as a case.
    #[must_use]
    pub fn undamaged(&self) -> Case {
        let lines = self.lines.iter().map(|line| &line.bytes[..]);
        Case {
            bytes: lines.collect::<Vec<_>>().concat(),
            truth: self.conversation(),
            unproven: HashSet::new(),
            undecided: 0,
            foreign: HashSet::new(),
            known: self.known(),
        }
    }

    /// Does one kind of damage in one to three places. Returns `None` when the session has no place
    /// for it. Equal arguments give equal results.
    #[must_use]
    pub fn damaged(&self, kind: Kind, seed: u64) -> Option<Case> {
        // Mixes the session into the seed, so that one seed damages different places in different
        // sessions.
        let salt = self.lines.iter().fold(kind as u64, |salt, line| {
            salt.wrapping_mul(31).wrapping_add(line.bytes.len() as u64)
        });
        let mut rng = Rng::new(seed ^ salt.rotate_left(20));
        let damage = mutations::mutate(self, kind, &mut rng)?;
        let truth = truth::truth(self, &damage);
        let gone = damage
            .loss
            .gone()
            .filter_map(|line| self.lines[line].uuid.as_ref());
        let gone: HashSet<&String> = gone.collect();
        let shown: HashSet<&String> = truth.uuids.iter().chain(gone).collect();
        let undecided = self.conversation();
        let undecided = undecided
            .iter()
            .filter(|uuid| !shown.contains(uuid))
            .count();
        Some(Case {
            bytes: damage.bytes,
            truth: truth.uuids,
            unproven: truth.unproven,
            undecided,
            foreign: damage.foreign,
            known: self.known(),
        })
    }
}

/// A damaged session and what is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The bytes of the damaged file.
    pub bytes: Vec<u8>,
    /// The messages that a perfect recovery shows, oldest first.
    pub truth: Vec<String>,
    /// Messages that the bytes neither prove nor disprove; a path may show them or not.
    pub unproven: HashSet<String>,
    /// The number of messages that were on the path before, are still in the file, and are not in
    /// the truth.
    pub undecided: usize,
    /// Messages of another session, which must never be shown.
    pub foreign: HashSet<String>,
    /// Every message of the session itself, of all branches and sidechains.
    known: HashSet<String>,
}

/// The result of a comparison of a path with the truth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The number of messages of the truth that the path shows.
    pub truth: usize,
    /// Whether it shows each of them once, in the right order.
    pub in_order: bool,
    /// The number of messages of the other session.
    pub foreign: usize,
    /// The number of messages that are not part of the conversation: of an abandoned branch, of a
    /// subagent, or from before a compaction.
    pub extra: usize,
    /// Messages that the bytes neither prove nor disprove; a path may show them or not.
    pub unproven: usize,
}

impl Case {
    /// Compares a path with the truth. `path` has the uuids of all its entries; entries that are not
    /// messages are ignored.
    #[must_use]
    pub fn compare<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> Shown {
        let place: HashMap<&str, usize> = self
            .truth
            .iter()
            .enumerate()
            .map(|(at, uuid)| (uuid.as_str(), at))
            .collect();
        let mut shown = Shown {
            in_order: true,
            ..Shown::default()
        };
        let mut last = None;
        let mut seen = HashSet::new();
        for uuid in path {
            if let Some(at) = place.get(uuid) {
                shown.in_order &= last < Some(*at);
                last = last.max(Some(*at));
                shown.truth += usize::from(seen.insert(uuid));
            } else if self.foreign.contains(uuid) {
                shown.foreign += 1;
            } else if self.unproven.contains(uuid) {
                shown.unproven += 1;
            } else if self.known.contains(uuid) {
                shown.extra += 1;
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::generate::tidy_session;
    use crate::model;

    fn sessions() -> impl Iterator<Item = (u64, Healthy)> {
        (0..640).filter_map(|seed| Some((seed, Healthy::new(&tidy_session(seed))?)))
    }

    #[test]
    fn most_tidy_sessions_are_healthy_and_most_others_are_not() {
        let healthy = |bytes: Vec<u8>| usize::from(Healthy::new(&bytes).is_some());
        let tidy: usize = (0..300).map(|seed| healthy(tidy_session(seed))).sum();
        let wild: usize = (0..300)
            .map(|seed| healthy(crate::generate::session(seed)))
            .sum();
        assert!(tidy > 120 && wild < tidy / 2, "{tidy} {wild}");
    }

    #[test]
    fn the_truth_of_an_undamaged_session_is_the_path_of_the_model() {
        for (seed, healthy) in sessions() {
            let case = healthy.undamaged();
            assert!(case.bytes == tidy_session(seed), "seed {seed}");
            let path = model::vendor_path(&case.bytes);
            let shown = case.compare(
                path.entries
                    .iter()
                    .filter_map(|entry| entry.uuid.as_deref()),
            );
            let expected = Shown {
                truth: case.truth.len(),
                in_order: true,
                ..Shown::default()
            };
            assert_eq!(shown, expected, "seed {seed}");
        }
    }

    #[test]
    fn equal_seeds_do_equal_damage_and_every_kind_occurs() {
        let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
        for (seed, healthy) in sessions() {
            for kind in Kind::ALL {
                let (one, two) = (healthy.damaged(kind, seed), healthy.damaged(kind, seed));
                assert!(one == two, "{kind:?} of seed {seed}");
                let Some(case) = one else { continue };
                let is_damaged = case.bytes != healthy.undamaged().bytes;
                assert!(is_damaged, "{kind:?} of seed {seed}");
                *counts.entry(kind).or_default() += 1;
            }
        }
        println!("{counts:?}");
        for kind in Kind::ALL {
            assert!(
                counts.get(&kind).is_some_and(|count| *count >= 20),
                "{kind:?} is too rare"
            );
        }
    }

    #[test]
    fn little_of_the_conversation_is_unproven_and_nothing_of_the_truth() {
        let mut counts: BTreeMap<Kind, (usize, usize)> = BTreeMap::new();
        for (seed, healthy) in sessions() {
            for kind in Kind::ALL {
                let Some(case) = healthy.damaged(kind, seed) else {
                    continue;
                };
                assert!(case.truth.iter().all(|uuid| !case.unproven.contains(uuid)));
                assert!(case.truth.iter().all(|uuid| case.known.contains(uuid)));
                assert!(case.foreign.is_disjoint(&case.known));
                let (truth, all) = counts.entry(kind).or_default();
                *truth += case.truth.len();
                *all += healthy.conversation().len();
            }
        }
        println!("{counts:?}");
        for (kind, (truth, all)) in counts {
            assert!(truth * 100 >= all * 80, "{kind:?}: {truth} of {all}");
        }
    }

    // -----------------------------------------------------------------------------------------
    // Truth by hand
    // -----------------------------------------------------------------------------------------

    /// Builds a session from words: `name`, `name<parent` or `name<parent#message`. The first letter
    /// is the kind: user, assistant, result, boundary, summary. The default parent is the line
    /// before; `-` means no parent.
    fn session(words: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let mut before = None;
        for (at, word) in words.split(' ').enumerate() {
            let (word, message) = word.split_once('#').unwrap_or((word, word));
            let (name, parent) = match word.split_once('<') {
                Some((name, "-")) => (name, None),
                Some((name, parent)) => (name, Some(parent)),
                None => (word, before),
            };
            let entry = json!({
                "uuid": name, "parentUuid": parent, "isSidechain": false, "sessionId": "s",
                "timestamp": format!("2026-11-20T10:{at:02}:00.000Z"),
            });
            let mut entry = entry;
            let text = json!([{"type": "text", "text": name}]);
            match &name[..1] {
                "a" => {
                    entry["type"] = json!("assistant");
                    entry["message"] = json!({"id": message, "content": text});
                }
                "r" => {
                    let block =
                        json!({"type": "tool_result", "tool_use_id": message, "content": ""});
                    entry["type"] = json!("user");
                    entry["message"] = json!({"content": [block]});
                }
                "b" => {
                    entry["type"] = json!("system");
                    entry["subtype"] = json!("compact_boundary");
                }
                _ => {
                    entry["type"] = json!("user");
                    entry["message"] = json!({"content": text});
                    entry["isCompactSummary"] = json!(name.starts_with('s'));
                }
            }
            out.extend_from_slice(format!("{entry}\n").as_bytes());
            before = Some(name);
        }
        out
    }

    /// Returns the entries that must be shown when one line is gone, and those that may be shown.
    fn without(words: &str, gone: &str) -> (String, String) {
        let healthy = Healthy::new(&session(words)).expect("the session is healthy");
        let damage =
            mutations::without(&healthy, vec![healthy.line_of[gone]]).expect("a line to drop");
        let truth = truth::truth(&healthy, &damage);
        let mut unproven: Vec<String> = truth.unproven.into_iter().collect();
        unproven.sort_unstable();
        (truth.uuids.join(" "), unproven.join(" "))
    }

    fn check(words: &str, gone: &str, truth: &str, unproven: &str) {
        let expected = (truth.to_owned(), unproven.to_owned());
        assert_eq!(without(words, gone), expected, "{words} without {gone}");
    }

    #[test]
    fn all_but_the_lost_line_is_true_where_the_file_order_shows_what_stood_above() {
        check("u1<- a1 u2 a2 u3 a3", "u2", "u1 a1 a2 u3 a3", "u2");
        check("u1<- a1 u2 a2 u3 a3", "a3", "u1 a1 u2 a2 u3", "a3");
        check("u1<- a1 u2 a2 u3 a3", "u1", "a1 u2 a2 u3 a3", "u1");
    }

    #[test]
    fn a_prompt_after_a_prompt_may_be_a_rewind() {
        check("u1<- a1 u2 a2 u3 a3", "a2", "u3 a3", "a1 a2 u1 u2");
    }

    #[test]
    fn a_branch_whose_first_line_is_lost_may_follow_the_one_before_it() {
        check(
            "u1<- a1 u2 a2 u3<a1 a3 u4 a4",
            "u3",
            "a3 u4 a4",
            "a1 a2 u1 u2 u3",
        );
        // Further down it is plain again.
        check("u1<- a1 u2 a2 u3<a1 a3 u4 a4", "u4", "u1 a1 u3 a3 a4", "u4");
    }

    #[test]
    fn a_lost_leaf_leaves_what_the_file_shows_without_it() {
        check(
            "u1<- a1 u2 a2 u3 a3 u4<a3 u5<a3",
            "u5",
            "u1 a1 u2 a2 u3 a3 u4",
            "u5",
        );
        check(
            "u1<- a1 u2 a2 u3<a1 a3 u4 a4 u5<a4 u6<a4",
            "u6",
            "u1 a1 u3 a3 u4 a4 u5",
            "u6",
        );
    }

    #[test]
    fn history_before_a_boundary_stays_hidden_when_the_boundary_or_its_summary_is_lost() {
        let words = "u1<- a1 u2 a2 b<- s u3 a3 u4 a4 u5 a5";
        check(words, "b", "s u3 a3 u4 a4 u5 a5", "");
        check(words, "s", "u3 a3 u4 a4 u5 a5", "s");
    }

    #[test]
    fn lines_of_one_message_prove_each_other() {
        check(
            "u1<- a1#m a2#m a3#m u2 a4 u3 a5",
            "a2",
            "u1 a1 a3 u2 a4 u3 a5",
            "a2",
        );
    }
}
