//! A small damage campaign; `examples/campaign.rs` runs the large one.

use std::collections::BTreeMap;
use std::fs;

use transcript_reader::{Policy, Tree};
use transcript_testkit::campaign::{Case, Healthy, Kind, Shown};
use transcript_testkit::{generate, shared};

fn compare(case: &Case, policy: Policy) -> Shown {
    let index = crate::index(&case.bytes);
    let path = Tree::new(&index, policy).path();
    let entries = path.entries.iter();
    let uuids: Vec<String> = entries
        .filter_map(|entry| index.entry(entry.entry_no()).uuid())
        .map(|id| index.id_text(id))
        .collect();
    case.compare(uuids.iter().map(String::as_str))
}

/// Generated sessions, and those of the corpus where it is.
fn sessions() -> Vec<(String, Healthy)> {
    let generated = (0..170).map(|seed| (format!("seed {seed}"), generate::tidy_session(seed)));
    let mut sessions: Vec<(String, Vec<u8>)> = generated.collect();
    if let Some(shared) = shared() {
        let mut files = Vec::new();
        crate::same_index::transcripts_under(&shared.join("corpus/files"), &mut files);
        files.retain(|file| fs::metadata(file).unwrap().len() < 200_000);
        let read = |file: std::path::PathBuf| (file.display().to_string(), fs::read(file).unwrap());
        sessions.extend(files.into_iter().map(read));
    }
    let healthy = sessions.into_iter();
    healthy
        .filter_map(|(name, bytes)| Some((name, Healthy::new(&bytes)?)))
        .collect()
}

#[test]
fn an_undamaged_session_is_shown_whole_and_in_order() {
    if shared().is_none() {
        println!("skipped: no shared data");
    }
    for (name, healthy) in sessions() {
        let case = healthy.undamaged();
        let whole = Shown {
            truth: case.truth.len(),
            in_order: true,
            ..Shown::default()
        };
        for policy in [Policy::Recover, Policy::Vendor] {
            assert_eq!(compare(&case, policy), whole, "{name}, {}", policy.name());
        }
    }
}

#[test]

fn provable_history_is_recovered_and_nothing_foreign_is_shown() {
    let mut counts: BTreeMap<Kind, (usize, usize)> = BTreeMap::new();
    for (name, healthy) in sessions() {
        for kind in Kind::ALL {
            for seed in 0..2 {
                let Some(case) = healthy.damaged(kind, seed) else {
                    continue;
                };
                let recover = compare(&case, Policy::Recover);
                let vendor = compare(&case, Policy::Vendor);
                let name = format!("{name}, {} {seed}: {recover:?} {vendor:?}", kind.name());
                assert_eq!(recover.foreign, 0, "{name}");
                assert!(recover.truth >= vendor.truth, "{name}");
                let (shown, all) = counts.entry(kind).or_default();
                *shown += recover.truth;
                *all += case.truth.len();
            }
        }
    }
    println!("{counts:?}");
    for kind in Kind::ALL {
        let (shown, all) = counts[&kind];
        let is_enough = shown * 100 >= all * kind.bar_percent();
        assert!(is_enough, "{}: {shown} of {all}", kind.name());
    }
}
