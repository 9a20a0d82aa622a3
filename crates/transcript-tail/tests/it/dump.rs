use transcript_testkit::generate;
use crate::live::with_tombstones;
#[test]
fn dump() {
    for (kind, make) in [
        ("tidy", generate::tidy_session as fn(u64) -> Vec<u8>),
        ("unique", generate::session_of_unique_uuids),
        ("any", generate::session),
        ("tomb", with_tombstones),
    ] { for seed in std::env::var("DUMP").unwrap_or_default().split(",").filter_map(|n| n.parse::<u64>().ok()) { std::fs::write(format!("/tmp/w/gen/{kind}-{seed}.jsonl"), make(seed)).unwrap(); } }
}
