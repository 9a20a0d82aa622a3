use transcript_testkit::generate;
#[test]
fn dump() {
    for (kind, make) in [
        ("tidy", generate::tidy_session as fn(u64) -> Vec<u8>),
        ("unique", generate::session_of_unique_uuids),
        ("any", generate::session),
    ] { for seed in 0..1000 { std::fs::write(format!("/tmp/w/gen/{kind}-{seed}.jsonl"), make(seed)).unwrap(); } }
}
