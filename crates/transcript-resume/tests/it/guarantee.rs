//! Policy `recover` never sends fewer messages of a file than `vendor`.

use transcript_testkit::campaign::several::several;
use transcript_testkit::generate;

use crate::load;
use crate::sent;

/// Seeds that once sent less: nothing at all after a boundary whose segment is damaged, a history
/// after a line of an unknown kind, repeated lines after a compaction, results whose call is lost,
/// a result whose session is damaged, a pin before a line of another session.
const ONCE_FEWER: [u64; 7] = [
    1_001_010, 1_004_106, 8_848, 1_004_814, 3_004_828, 2_001_994, 3_007_646,
];

#[test]
fn recover_sends_no_fewer_messages_than_vendor() {
    let mut damaged = 0;
    for seed in (0..400).chain(ONCE_FEWER) {
        let (bytes, done) = several(&generate::tidy_session(seed), seed);
        let (_file, source, index) = load(&bytes);
        let [recover, vendor] = sent::both(&source, &index);
        damaged += usize::from(recover.messages.len() > vendor.messages.len());
        assert!(
            recover.messages.len() >= vendor.messages.len(),
            "seed {seed}, {done:?}: {} of {}",
            recover.messages.len(),
            vendor.messages.len()
        );
    }
    assert!(damaged > 50, "the damage does too little: {damaged}");
}
