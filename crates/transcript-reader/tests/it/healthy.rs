//! A session without defects is shown the same under both policies, and nothing is repaired.

use transcript_reader::{Decision, LeafReason, Policy, Tree};
use transcript_testkit::campaign::Healthy;
use transcript_testkit::generate;

#[test]
fn a_healthy_session_has_one_path_and_nothing_is_repaired() {
    let (mut sessions, mut odd) = (0, 0);
    for seed in 0..4_000 {
        let bytes = generate::tidy_session(seed);
        // Clients make mistakes of their own: results that never came, names of lost entries.
        if Healthy::new(&bytes).is_none() {
            continue;
        }
        sessions += 1;
        let index = crate::index(&bytes);
        let recover = Tree::new(&index, Policy::Recover).path();
        let vendor = Tree::new(&index, Policy::Vendor).path();
        // The client ends at a pin when a line without a place in the conversation follows it, and
        // goes by time when such a line ends the file.
        let is_by_time_or_pin = vendor.decisions.iter().any(|decision| {
            let Decision::Leaf { reason, .. } = decision else {
                return false;
            };
            matches!(reason, LeafReason::Newest | LeafReason::Pinned)
        });
        if is_by_time_or_pin && recover.leaf != vendor.leaf {
            assert!(recover.entries.len() >= vendor.entries.len(), "seed {seed}");
            odd += 1;
            continue;
        }
        // A rewind past a compaction that removes what is before it: the client goes by time, and
        // `recover` by the links, which are still in the file.
        let is_linked_by_time = vendor.decisions.iter().any(|decision| {
            matches!(
                decision,
                Decision::Relink { .. } | Decision::Truncated { .. }
            )
        });
        if is_linked_by_time && recover.entries.len() > vendor.entries.len() {
            odd += 1;
            continue;
        }
        assert_eq!(recover.entries, vendor.entries, "seed {seed}");
        assert_eq!(recover.leaf, vendor.leaf, "seed {seed}");
        let is_repaired = |decision: &Decision| {
            matches!(
                decision,
                Decision::Bridge { .. } | Decision::Salvage { .. } | Decision::Gap { .. }
            )
        };
        let repaired: Vec<_> = recover.decisions.into_iter().filter(is_repaired).collect();
        assert_eq!(repaired, [], "seed {seed}");
    }
    println!("{sessions} sessions, {odd} of them with another end");
    assert!(odd * 20 < sessions, "{odd} of {sessions}");
    assert!(sessions > 1_000, "{sessions} of 4000 sessions are healthy");
}
