//! The effect of limits on answers, and trees that are made to be slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use transcript_catalog::{Catalog, Hit, Query, SearchOptions, Sort};

use crate::store::Store;

/// A prompt or a title, as the number says, with one to three of the words.
fn line(number: usize) -> String {
    let text = [
        "owl",
        "an owlet",
        "owl and some mouse",
        "mouse, far from an owl",
    ][number % 4];
    match number % 7 {
        0 => format!("{{\"type\":\"custom-title\",\"customTitle\":\"{text} {number}\"}}\n"),
        day => format!(
            "{{\"type\":\"user\",\"uuid\":\"u{number}\",\"timestamp\":\"2026-03-0{day}T10:00:00Z\",\"message\":{{\"content\":\"{text}\"}}}}\n"
        ),
    }
}

fn many() -> Store {
    let store = Store::new();
    for session in 0..20 {
        let lines = (0..15).map(|at| line(session * 31 + at * 7919));
        let path = store.write(
            &format!("-p/s{session:02}.jsonl"),
            lines.collect::<String>(),
        );
        let file = std::fs::File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
    store
}

fn place(hit: &Hit) -> (String, u64) {
    (hit.session.id.clone(), hit.offset)
}

#[test]
fn a_limit_returns_the_first_of_all_hits() {
    let store = many();
    for (query, sort) in [
        ("owl", Sort::Rank),
        ("owl mouse", Sort::Rank),
        ("owl", Sort::Time),
    ] {
        let options = SearchOptions::new().sort(sort);
        let (all, end) = store.search_with(query, &options);
        let all: Vec<_> = all.iter().map(place).collect();
        assert!(all.len() > 60, "{query}");
        for limit in [0, 1, 2, 50, all.len() - 1, all.len(), all.len() + 1] {
            let (some, end_of_some) = store.search_with(query, &options.clone().limit(limit));
            let some: Vec<_> = some.iter().map(place).collect();
            assert_eq!(some, all[..limit.min(all.len())], "{query} {limit}");
            if sort == Sort::Rank {
                assert_eq!(end_of_some, end);
            }
        }
    }
}

#[test]
fn groups_of_hits_are_in_the_order_of_their_first_and_in_order_themselves() {
    let store = many();
    let catalog = Catalog::open(store.root()).unwrap();
    let query: Query = "owl mouse".parse().unwrap();
    let all: Vec<_> = {
        let search = catalog.search(&query, &SearchOptions::new()).unwrap();
        search.map(|hit| place(&hit.unwrap())).collect()
    };
    let mut search = catalog.search(&query, &SearchOptions::new()).unwrap();
    search.group_by_session();
    let grouped: Vec<_> = search.map(|hit| place(&hit.unwrap())).collect();
    let mut wanted = Vec::new();
    for (session, _) in &all {
        if !wanted.iter().any(|(done, _)| done == session) {
            wanted.extend(all.iter().filter(|(of, _)| of == session).cloned());
        }
    }
    assert_ne!(all, wanted);
    assert_eq!(grouped, wanted);
}

#[test]
fn all_bytes_are_counted_whether_they_are_read_or_ruled_out() {
    let store = many();
    store.write("-p/s00/tool-results/r.txt", "an owl");
    let cache = tempfile::tempdir().unwrap();
    let mut read = Vec::new();
    let catalog = Catalog::open(store.root()).unwrap();
    assert!(catalog.bytes() > 1000);
    for text in ["owl", "nothing", "nothing", "-in:tool_result owl"] {
        let done = Arc::new(AtomicU64::new(0));
        let options = SearchOptions::new()
            .cache(cache.path())
            .count_bytes(Arc::clone(&done));
        let query: Query = text.parse().unwrap();
        read.push(catalog.search(&query, &options).unwrap().end().bytes);
        // The stored result cannot match.
        let left_out = if text.starts_with('-') { 6 } else { 0 };
        assert_eq!(done.load(Ordering::Relaxed), catalog.bytes() - left_out);
    }
    assert_eq!(read[0], catalog.bytes());
    assert!(read[2] < 10, "{read:?}");
}

#[test]
fn a_result_owns_the_stored_files_that_its_text_names() {
    let result = |uuid: &str, text: &str| {
        format!(
            "{{\"type\":\"user\",\"uuid\":\"{uuid}\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":\"{text}\"}}]}}}}\n"
        )
    };
    let lines = [
        result("r1", "see tool-results/aé"),
        result("r2", "see tool-results/ and /tool-results/ab.txt"),
        result("r3", "see tool-results/abc.txt"),
    ];
    let store = Store::with("-p/s.jsonl", lines.concat());
    for name in ["a", "ab", "ab.txt", "abc.txt", "abc.txt.old", "aé", "t"] {
        store.write(&format!("-p/s/tool-results/{name}"), "owl");
    }
    let mut owners: Vec<_> = store
        .hits("owl")
        .into_iter()
        .flat_map(|hit| {
            let uuid = hit.uuid.clone().unwrap_or_default();
            hit.stored_result.map(|path| (uuid, path))
        })
        .map(|(uuid, path)| format!("{uuid} {}", path.file_name().unwrap().to_string_lossy()))
        .collect();
    owners.sort();
    // The stored files of one result are one hit, and it is that of the first file.
    assert_eq!(
        owners,
        [
            " a",
            " ab",
            " abc.txt.old",
            "r1 aé",
            "r2 ab.txt",
            "r3 abc.txt"
        ]
    );
}

#[cfg(unix)]
#[test]
fn links_in_circles_and_pipes_are_not_read() {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    let store = Store::with("-p/s.jsonl", line(1));
    store.write("-p/s/subagents/agent-a.jsonl", line(2));
    let at = |path: &str| store.root().join(path);
    symlink("..", at("-p/up")).unwrap();
    symlink(".", at("-p/s/subagents/same")).unwrap();
    symlink("loop.jsonl", at("-p/loop.jsonl")).unwrap();
    symlink("-p", at("again")).unwrap();
    for pipe in [
        "-p/pipe.jsonl",
        "-p/s/tool-results/pipe.txt",
        "-p/s/subagents/agent-b.jsonl",
    ] {
        std::fs::create_dir_all(at(pipe).parent().unwrap()).unwrap();
        assert!(
            Command::new("mkfifo")
                .arg(at(pipe))
                .status()
                .unwrap()
                .success()
        );
    }
    let catalog = Catalog::open(store.root()).unwrap();
    let query: Query = "owl".parse().unwrap();
    let mut search = catalog.search(&query, &SearchOptions::new()).unwrap();
    let hits: Vec<_> = (&mut search).map(|hit| place(&hit.unwrap())).collect();
    assert_eq!(hits.len(), 2, "{hits:?}");
}
