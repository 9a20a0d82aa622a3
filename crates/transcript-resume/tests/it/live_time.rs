use std::path::Path;
use std::time::Instant;
use transcript_format::lines::Framer;
use transcript_reader::{GrowingIndex, Index, Source};
use transcript_resume::{LiveConversation, Policy, Tree};

#[test]
fn time_it() {
    let Ok(file) = std::env::var("LIVE_FILE") else {
        return;
    };
    let path = Path::new(&file);
    let bytes = std::fs::read(path).unwrap();
    let now = Instant::now();
    let index = transcript_reader::LoadOptions::new()
        .threads(1)
        .load(&Source::from_bytes(bytes.clone(), path))
        .unwrap();
    println!("load {:?} lines {}", now.elapsed(), index.line_count());
    let now = Instant::now();
    let p = Tree::new(&index, Policy::Recover).path();
    println!("tree+path {:?} {}", now.elapsed(), p.entries.len());
    let now = Instant::now();
    let mut g = GrowingIndex::new(path);
    let mut f = Framer::new();
    let mut rest = &bytes[..];
    while let Some(l) = f.next(&mut rest) {
        g.push(l);
    }
    println!(
        "grow {:?} {}",
        now.elapsed(),
        g.memory() as u64 / index.line_count()
    );
    for ask in [false, true] {
        if ask && std::env::var("NO_ASK").is_ok() {
            continue;
        }
        let now = Instant::now();
        let mut live = LiveConversation::new(path);
        let mut f = Framer::new();
        let mut rest = &bytes[..];
        while let Some(l) = f.next(&mut rest) {
            live.push(l);
            if ask {
                live.path();
            }
        }
        live.path();
        println!(
            "live ask {ask} {:?} rebuilds {} memory {} a line",
            now.elapsed(),
            live.full_rebuilds(),
            live.memory() as u64 / index.line_count()
        );
    }
    let _: Option<Index> = None;
}

#[test]
fn mass() {
    use transcript_testkit::{damage, generate};
    let Ok(seeds) = std::env::var("SEEDS") else {
        return;
    };
    let (from, to) = seeds.split_once('-').unwrap();
    for seed in from.parse::<u64>().unwrap()..to.parse().unwrap() {
        let mut count = crate::live::Count::default();
        let tidy = generate::tidy_session(seed);
        for (k, bytes) in [
            ("u", generate::session_of_unique_uuids(seed)),
            ("a", generate::session(seed)),
            ("dt", damage::damage(&tidy, seed).0),
            (
                "du",
                damage::damage(&generate::session_of_unique_uuids(seed), seed + 7).0,
            ),
            ("t", tidy),
        ] {
            crate::live::check(
                &bytes,
                Path::new(&format!("{k}-{seed}.jsonl")),
                1,
                &mut count,
            );
        }
    }
}
