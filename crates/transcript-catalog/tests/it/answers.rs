//! The hits of queries: which entries match, and the fields of a hit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use transcript_catalog::{Catalog, Field, Hit, Query, Role, SearchError, SearchOptions, Sort};

use crate::store::Store;

fn user(uuid: &str, parent: &str, text: &str) -> String {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"{uuid}\",\"parentUuid\":{},\"sessionId\":\"s\",\"timestamp\":\"2026-03-01T10:00:00.000Z\",\"gitBranch\":\"main\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n",
        match parent {
            "" => "null".to_owned(),
            parent => format!("\"{parent}\""),
        }
    )
}

fn assistant(uuid: &str, parent: &str, blocks: &str) -> String {
    format!(
        "{{\"type\":\"assistant\",\"uuid\":\"{uuid}\",\"parentUuid\":\"{parent}\",\"sessionId\":\"s\",\"timestamp\":\"2026-03-02T10:00:00.000Z\",\"message\":{{\"role\":\"assistant\",\"model\":\"claude-owl-4\",\"id\":\"m{uuid}\",\"content\":[{blocks}]}}}}\n"
    )
}

fn result(uuid: &str, parent: &str, call: &str, text: &str, is_error: bool) -> String {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"{uuid}\",\"parentUuid\":\"{parent}\",\"sessionId\":\"s\",\"timestamp\":\"2026-03-03T10:00:00.000Z\",\"message\":{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"{call}\",\"is_error\":{is_error},\"content\":\"{text}\"}}]}},\"toolUseResult\":\"{text}\"}}\n"
    )
}

/// A prompt, an answer that calls two tools, their results, and a title.
fn session() -> Store {
    let call = |id: &str, name: &str, key: &str, value: &str| {
        format!(
            "{{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"{name}\",\"input\":{{\"{key}\":\"{value}\"}}}}"
        )
    };
    let lines = [
        user("u1", "", "Where does the Owl sleep?"),
        assistant(
            "a1",
            "u1",
            "{\"type\":\"thinking\",\"thinking\":\"owl, hm\"},{\"type\":\"text\",\"text\":\"I will look for the owl.\"}",
        ),
        assistant(
            "a2",
            "a1",
            &[
                call("t1", "Read", "file_path", "/src/owl.rs"),
                call("t2", "Bash", "command", "find owl"),
            ]
            .join(","),
        ),
        result("r1", "a2", "t1", "fn owl() {}", false),
        result("r2", "r1", "t2", "owl: not found", true),
        "{\"type\":\"custom-title\",\"customTitle\":\"The Owl\",\"sessionId\":\"s\"}\n".to_owned(),
    ];
    Store::with("-home-p/s.jsonl", lines.concat())
}

#[test]
fn every_filter_holds_for_what_it_names() {
    let store = session();
    for (query, expected) in [
        (
            "owl",
            &[
                "1 prompt",
                "2 thinking",
                "3 tool_input",
                "4 tool_result",
                "5 tool_result",
                "6 title",
            ][..],
        ),
        ("Owl", &["1 prompt", "6 title"]),
        ("owl in:prompt", &["1 prompt"]),
        ("owl in:text", &["2 text"]),
        ("owl in:text in:title", &["2 text", "6 title"]),
        (
            "owl -in:tool_result -in:tool_input",
            &["1 prompt", "2 thinking", "6 title"],
        ),
        ("owl role:user", &["1 prompt"]),
        ("owl role:tool", &["4 tool_result", "5 tool_result"]),
        ("owl tool:read", &["3 tool_input", "4 tool_result"]),
        ("owl tool:Bash", &["3 tool_input", "5 tool_result"]),
        ("fn path:src/OWL", &["4 tool_result"]),
        ("owl error:true", &["5 tool_result"]),
        ("error:true", &["5 tool_result"]),
        ("owl role:tool error:false", &["4 tool_result"]),
        ("owl model:OWL", &["2 thinking", "3 tool_input"]),
        (
            "owl since:2026-03-02T10:00:00Z until:2026-03-03",
            &["2 thinking", "3 tool_input"],
        ),
        ("owl branch:mai", &["1 prompt"]),
        ("owl agent:none in:title", &["6 title"]),
        ("owl agent:x", &[]),
        ("in:title project:/home/p", &["6 title"]),
        ("in:title project:q", &[]),
        ("in:title session:S", &["6 title"]),
        ("in:title -session:s", &[]),
        ("owl -sleep -fn -/not.found/ -hm -find", &["6 title"]),
        ("\"the owl\"", &["1 prompt", "2 text", "6 title"]),
        ("sleep Where", &["1 prompt"]),
        ("\"Where sleep\"", &[]),
        // Words may be in different blocks of an entry, and not in different entries.
        ("hm look", &["2 thinking"]),
        ("hm sleep", &[]),
        ("/o.l\\.rs$/", &["3 tool_input"]),
        ("/WHERE/i", &["1 prompt"]),
        ("/WHERE/", &[]),
    ] {
        assert_eq!(store.found(query), expected, "{query}");
    }
}

#[test]
fn a_hit_says_where_it_is_and_what_matched() {
    let store = session();
    let hits = store.hits("i owl in:text");
    let [hit] = &hits[..] else { panic!("{hits:?}") };
    assert_eq!(
        (hit.uuid.as_deref(), hit.line, hit.block),
        (Some("a1"), Some(2), Some(1))
    );
    assert_eq!((hit.role, hit.field), (Some(Role::Assistant), Field::Text));
    assert_eq!(hit.title(), Some("The Owl"));
    assert_eq!(&*hit.session.id, "s");
    assert_eq!(hit.timestamp.as_deref(), Some("2026-03-02T10:00:00.000Z"));
    assert!(hit.is_live && hit.is_in_context);
    let hits = store.hits("owl tool:Bash role:tool");
    assert_eq!(hits[0].tool.as_deref(), Some("Bash"));
    let options = SearchOptions::new().snippet(12);
    let (hits, _) = store.search_with("look FOR", &options);
    assert!(hits.is_empty());
    let (hits, _) = store.search_with("look the", &options);
    let hit = &hits[0];
    assert_eq!(
        (&*hit.snippet, &hit.matches[..]),
        ("look for the", &[0..4, 9..12][..])
    );
    assert_eq!(hit.is_cut, (true, true));
}

#[test]
fn conversation_comes_before_the_noise_of_tools() {
    let store = session();
    let fields: Vec<_> = store.hits("owl").iter().map(|hit| hit.field).collect();
    assert_eq!(fields[..2], [Field::Title, Field::Prompt]);
    let noise = |field: &Field| matches!(field, Field::ToolInput | Field::ToolResult);
    assert_eq!(fields.len(), 6);
    assert!(fields[3..].iter().all(noise), "{fields:?}");
}

#[test]
fn case_diacritics_and_scripts() {
    let texts = [
        "Café au lait",
        "cafe\\u0301",
        "CAFE",
        "日本語のテキスト",
        "한국어 텍스트",
        "c++ and #4411",
        "\\ud83e\\udd89 owl",
        "a\\nb\\/c",
    ];
    let lines = (0..)
        .zip(texts)
        .map(|(number, text)| user(&format!("u{number}"), "", text));
    let store = Store::with("-p/s.jsonl", lines.collect::<String>());
    for (query, lines) in [
        ("cafe", &[1, 2, 3][..]),
        ("café", &[1, 2]),
        ("cafe\u{301}", &[1, 2]),
        ("Cafe", &[1]),
        ("CAFE", &[3]),
        ("本語", &[4]),
        ("국", &[5]),
        ("c++", &[6]),
        ("#4411", &[6]),
        ("🦉", &[7]),
        ("b/c", &[8]),
        ("\"a\nb\"", &[8]),
    ] {
        let mut found: Vec<_> = store
            .hits(query)
            .iter()
            .filter_map(|hit| hit.line)
            .collect();
        found.sort_unstable();
        assert_eq!(found, lines, "{query}");
    }
    let hits = store.hits("cafe");
    let shown = |hit: &Hit| -> String {
        let range = hit.matches[0].clone();
        hit.snippet
            .chars()
            .skip(range.start)
            .take(range.len())
            .collect()
    };
    let mut shown: Vec<_> = hits.iter().map(shown).collect();
    shown.sort();
    assert_eq!(shown, ["CAFE", "Café", "cafe\u{301}"]);
}

#[test]
fn rewound_entries_are_found_and_marked() {
    let lines = [
        user("u1", "", "first owl"),
        assistant("a1", "u1", "{\"type\":\"text\",\"text\":\"old owl\"}"),
        user("u2", "a1", "rewound owl"),
        assistant("a2", "u2", "{\"type\":\"text\",\"text\":\"lost owl\"}"),
        user("u3", "a1", "new owl"),
        assistant("a3", "u3", "{\"type\":\"text\",\"text\":\"last owl\"}"),
    ];
    let store = Store::with("-p/s.jsonl", lines.concat());
    assert_eq!(store.found("owl live:false"), ["3 prompt", "4 text"]);
    assert_eq!(
        store.found("owl branch:live"),
        ["1 prompt", "2 text", "5 prompt", "6 text"]
    );
    let hits = store.hits("owl");
    assert_eq!(hits.iter().filter(|hit| !hit.is_live).count(), 2);
}

#[test]
fn copies_are_one_hit_that_names_the_others() {
    let text = user("u1", "", "owl");
    let store = Store::with("-p/s.jsonl", [&*text, &text].concat());
    store.write("-p/a.jsonl", &text);
    store.write("-q/t.jsonl", user("u2", "", "owl"));
    let titles = "{\"type\":\"ai-title\",\"aiTitle\":\"owl\"}\n".repeat(3);
    store.write("-q/u.jsonl", titles);
    let (hits, end) = store.search_with("owl", &SearchOptions::new());
    assert_eq!((hits.len(), end.hits, end.sessions), (3, 3, 3));
    let hit = hits
        .iter()
        .find(|hit| hit.uuid.as_deref() == Some("u1"))
        .unwrap();
    // The entry names its session, so that is where it is from.
    assert_eq!((&*hit.session.id, hit.line), ("s", Some(1)));
    let also: Vec<_> = hit
        .also
        .iter()
        .map(|copy| (&*copy.session_id, copy.line))
        .collect();
    assert_eq!(also, [("s", Some(2)), ("a", Some(1))]);
    let title = hits.iter().find(|hit| hit.field == Field::Title).unwrap();
    assert_eq!((title.line, title.also.len()), (Some(1), 2));
}

#[test]
fn copies_in_forks_have_the_same_texts_and_an_id_in_common() {
    let fork = |uuid: &str, of: &str, text: &str| {
        let from = format!("\"uuid\":\"{uuid}\",\"forkedFrom\":{{\"messageUuid\":\"{of}\"}}");
        user("u1", "", text).replace("\"uuid\":\"u1\"", &from)
    };
    let store = Store::with("-p/s.jsonl", user("u1", "", "owl"));
    // A fork that keeps the uuid, one with a new one, and a fork of this one.
    store.write("-p/a.jsonl", user("u1", "", "owl"));
    store.write("-p/b.jsonl", fork("u2", "u1", "owl"));
    store.write("-p/c.jsonl", fork("u3", "u2", "owl"));
    // Forks of an entry that is gone.
    store.write("-p/d.jsonl", fork("u4", "u9", "Owl"));
    store.write("-p/e.jsonl", fork("u5", "u9", "Owl"));
    // Altered: the text, the kind of text, the block.
    let altered = [
        user("u1", "", "owl!"),
        user("u1", "", "owl").replace("\"uuid\"", "\"isMeta\":true,\"uuid\""),
        user("u1", "", "owl").replace(
            "\"owl\"",
            r#"[{"type":"image"},{"type":"text","text":"owl"}]"#,
        ),
    ];
    store.write("-p/f.jsonl", altered.concat());
    let mut hits = store.hits("owl");
    hits.sort_by_key(|hit| (hit.path.clone(), hit.line));
    let says = |hit: &Hit| {
        let also = hit.also.iter();
        let also =
            also.map(|copy| format!("{} {}", copy.session_id, copy.uuid.as_deref().unwrap()));
        let also = also.collect::<Vec<_>>().join(", ");
        format!("{}:{} {also}", hit.session.id, hit.line.unwrap())
    };
    let all: Vec<_> = hits.iter().map(says).collect();
    let expected = ["d:1 e u5", "f:1 ", "f:2 ", "f:3 ", "s:1 a u1, b u2, c u3"];
    assert_eq!(all, expected);
    // An entry that links two copies may have another text, but it must be a hit.
    store.write("-p/b.jsonl", fork("u2", "u1", "owl, altered"));
    for (query, also) in [("owl", 2), ("owl -altered", 1)] {
        let hits = store.hits(query);
        let first = hits.iter().find(|hit| hit.session.id == "s").unwrap();
        assert_eq!((hits.len(), first.also.len()), (6, also), "{query}");
    }
}

#[test]
fn a_result_does_not_name_the_start_of_a_longer_name() {
    for (text, is_its) in [
        ("saved to: /x/tool-results/b1", true),
        ("saved to: /x/tool-results/b1.", true),
        ("see tool-results/b1, owl", true),
        ("saved to: /x/tool-results/b1.txt", false),
        ("saved to: /x/tool-results/b12", false),
        ("tool-results/b1-2 tool-results/b1é", false),
        ("tool-results/b1_ tool-results/b1\\n", true),
    ] {
        let store = Store::with("-p/s.jsonl", result("r1", "u1", "t1", text, false));
        store.write("-p/s/tool-results/b1", "stored");
        let hit = store.hits("stored").pop().unwrap();
        assert_eq!(hit.uuid.is_some(), is_its, "{text}");
    }
}

#[test]
fn subagents_and_stored_results_belong_to_their_session() {
    let preview = "Full output saved to: /x/s/tool-results/b1.txt";
    let lines = [
        user("u1", "", "q"),
        result("r1", "u1", "t1", preview, false),
    ];
    let store = Store::with("-p/s.jsonl", lines.concat());
    store.write("-p/s/tool-results/b1.txt", "one\nowl\n");
    store.write("-p/s/tool-results/t9.txt", "another owl");
    store.write("-p/s/tool-results/lost.txt", "a lost owl");
    let agent = [
        user("x1", "", "owl task").replace(
            "\"uuid\"",
            "\"isSidechain\":true,\"agentId\":\"abc\",\"uuid\"",
        ),
        result("x2", "x1", "t9", "short", true).replace(
            "\"uuid\"",
            "\"isSidechain\":true,\"agentId\":\"abc\",\"uuid\"",
        ),
    ];
    store.write("-p/s/subagents/agent-abc.jsonl", agent.concat());
    store.write(
        "-p/s/subagents/agent-abc.meta.json",
        r#"{"agentType":"Explore"}"#,
    );
    let mut hits = store.hits("owl");
    hits.sort_by_key(|hit| (hit.path.clone(), hit.line));
    let says = |hit: &Hit| {
        let file = hit.path.file_name().unwrap().to_string_lossy().into_owned();
        let stored = hit
            .stored_result
            .as_ref()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
        (
            file,
            hit.line,
            hit.uuid.clone(),
            hit.agent_id.clone(),
            stored,
        )
    };
    let all: Vec<_> = hits.iter().map(says).collect();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        all,
        [
            (
                "agent-abc.jsonl".to_owned(),
                Some(1),
                text("x1"),
                text("abc"),
                None
            ),
            (
                "agent-abc.jsonl".to_owned(),
                Some(2),
                text("x2"),
                text("abc"),
                text("t9.txt")
            ),
            ("lost.txt".to_owned(), None, None, None, text("lost.txt")),
            (
                "s.jsonl".to_owned(),
                Some(2),
                text("r1"),
                None,
                text("b1.txt")
            ),
        ]
    );
    assert!(hits.iter().all(|hit| &*hit.session.id == "s"));
    assert_eq!(store.found("owl agent:ab"), ["1 prompt", "2 tool_result"]);
    assert_eq!(
        store.found("owl agent:explore"),
        ["1 prompt", "2 tool_result"]
    );
    // A result whose entry is lost has no agent either.
    assert_eq!(
        store.found("owl agent:none"),
        ["- tool_result", "2 tool_result"]
    );
    assert_eq!(store.found("owl error:true"), ["2 tool_result"]);
    assert_eq!(
        store.found("owl role:tool since:2026-01-01"),
        ["2 tool_result", "2 tool_result"]
    );
    // The line and the stored file of the same result are one hit.
    let hits = store.hits("/saved|owl/ agent:none since:2026-01-01");
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0].also.len(), 0);
}

#[test]
fn damaged_lines_are_salvaged_or_counted() {
    let whole = user("u1", "", "owl");
    let torn = &whole[..whole.len() / 2];
    let mut nul = user("u2", "", "ow_l").into_bytes();
    let at = nul.iter().position(|byte| *byte == b'_').unwrap();
    nul[at] = 0;
    let mut lossy = user("u5", "", "lossy _ owl").into_bytes();
    let at = lossy.iter().position(|byte| *byte == b'_').unwrap();
    lossy[at] = 0xFF;
    let store = Store::new();
    store.write(
        "-p/glued.jsonl",
        format!("{torn}{}", user("u3", "", "glued owl")),
    );
    store.write("-p/nul.jsonl", &nul);
    store.write(
        "-p/split.jsonl",
        user("u4", "", "an *owl").replace('*', "\n"),
    );
    store.write("-p/lossy.jsonl", &lossy);
    store.write(
        "-p/lost.jsonl",
        format!("{whole}{{\"type\":\"user\",\"x\":owl\n{{\"type\":\"user\"\n"),
    );
    let (hits, end) = store.search_with("owl", &SearchOptions::new());
    let mut uuids: Vec<_> = hits.iter().filter_map(|hit| hit.uuid.as_deref()).collect();
    uuids.sort_unstable();
    assert_eq!(uuids, ["u1", "u2", "u3", "u4", "u5"]);
    assert!(end.unread > 0, "{end:?}");
    let blocks = "1,".repeat(600_000);
    store.write(
        "-p/large.jsonl",
        format!("{{\"type\":\"user\",\"message\":{{\"content\":[{blocks}\"hare\"]}}}}\n"),
    );
    assert_eq!(store.search_with("hare", &SearchOptions::new()).1.unread, 1);
    // A line in which the word cannot be is of no concern.
    assert_eq!(
        store.search_with("zebra", &SearchOptions::new()).1.unread,
        0
    );
}

#[test]
fn limit_in_time_order_limits_the_sessions_that_are_read() {
    let store = Store::new();
    for number in 0..64u64 {
        let path = store.write(
            &format!("-p/s{number:02}.jsonl"),
            user(&format!("u{number}"), "", "owl"),
        );
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + number);
        std::fs::File::options()
            .append(true)
            .open(path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }
    let options = SearchOptions::new().sort(Sort::Time).limit(3);
    let (hits, end) = store.search_with("owl", &options);
    let ids: Vec<_> = hits.iter().map(|hit| &*hit.session.id).collect();
    assert_eq!(ids, ["s63", "s62", "s61"]);
    assert_eq!(end.scanned, 16);
    let all = store
        .search_with("owl", &SearchOptions::new().sort(Sort::Time))
        .0;
    assert_eq!(all.len(), 64);
    assert_eq!(all[2].session.id, "s61");
}

#[test]
fn a_search_can_be_cancelled() {
    let store = session();
    let catalog = Catalog::open(store.root()).unwrap();
    let query: Query = "owl".parse().unwrap();
    let cancel = Arc::new(AtomicBool::new(false));
    let options = SearchOptions::new().cancel(Arc::clone(&cancel));
    let mut search = catalog.search(&query, &options).unwrap();
    assert!(search.next().unwrap().is_ok());
    cancel.store(true, Ordering::Relaxed);
    assert!(matches!(search.next(), Some(Err(SearchError::Cancelled))));
    assert!(search.next().is_none());
    assert!(matches!(
        catalog.search(&query, &options),
        Err(SearchError::Cancelled)
    ));
}

#[test]
fn a_hit_that_was_overwritten_is_an_error_and_the_others_follow() {
    let store = Store::with("-p/a.jsonl", user("u1", "", "owl"));
    let path = store.write("-p/b.jsonl", user("u2", "", "owl"));
    let catalog = Catalog::open(store.root()).unwrap();
    let query: Query = "owl".parse().unwrap();
    let options = SearchOptions::new();
    let search = catalog.search(&query, &options).unwrap();
    std::fs::write(path, user("u2", "", "cat")).unwrap();
    let hits: Vec<_> = search.collect();
    assert_eq!(hits.len(), 2);
    assert_eq!(hits.iter().filter(|hit| hit.is_ok()).count(), 1);
    let is_changed = |hit: &Result<Hit, SearchError>| matches!(hit, Err(SearchError::Changed(_)));
    assert_eq!(hits.iter().filter(|hit| is_changed(hit)).count(), 1);
}

#[test]
fn a_bad_query_names_its_place() {
    for (query, position) in [
        ("owl \"open", 4),
        ("é \"\"", 2),
        ("\"a\"b", 3),
        ("/(/", 1),
        ("x /a(b/", 4),
        ("role:owl", 5),
        ("in:\"\"", 3),
        ("since:owl", 6),
        ("live:maybe", 5),
        ("", 0),
        ("  ", 2),
        ("-owl", 4),
        ("/a{1000}{1000}{1000}/", 1),
    ] {
        let error = query.parse::<Query>().unwrap_err();
        assert_eq!(error.position(), position, "{query}: {error}");
    }
    for query in [
        "/usr/bin",
        "/usr/bin/",
        "--flag",
        "error:",
        "->",
        "a:b",
        "http://x",
        "-",
        "/",
        "//",
        "c++",
        "x\"y",
        "x/y/",
    ] {
        let query: Query = query.parse().unwrap();
        assert_eq!(query.terms(), 1);
    }
}
