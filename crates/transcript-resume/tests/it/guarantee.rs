//! Policy `recover` never sends fewer messages of a file than `vendor`.

use transcript_testkit::campaign::several::several;
use transcript_testkit::generate;

use crate::load;
use crate::sent;

#[test]
fn recover_sends_no_fewer_messages_than_vendor() {
    let mut damaged = 0;
    for seed in 0..400 {
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
