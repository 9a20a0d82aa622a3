//! Sessions as files of our own format.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use transcript_import::{Agent, BranchKind, ImportDisk, Policy, home_of_file};
use transcript_storage::{FileKind, ReadDisk, RealDisk};

use crate::support::{Home, lines};

const PI_FILE: &str = "sessions/--w--/now_s1.jsonl";

fn header() -> Value {
    json!({"type": "session", "id": "s1", "timestamp": "2026-01-02T03:04:05.000Z", "cwd": "/w"})
}

/// A message of Pi. Its time is that of its place in the file.
fn message(id: &str, parent: &str, message: Value) -> Value {
    let parent = (!parent.is_empty()).then_some(parent);
    let mut record = json!({"type": "message", "id": id, "parentId": parent});
    record["timestamp"] = format!("2026-01-02T03:04:0{}.000Z", id.len()).into();
    record["message"] = message;
    record
}

fn user(id: &str, parent: &str, text: &str) -> Value {
    message(id, parent, json!({"role": "user", "content": text}))
}

fn assistant(id: &str, parent: &str, parts: Value) -> Value {
    let usage = json!({"input": 10, "output": 2, "cacheRead": 3, "cacheWrite": 1});
    let mut body = json!({"role": "assistant", "model": "m", "usage": usage});
    body["content"] = parts;
    message(id, parent, body)
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

fn session(records: &[Value]) -> Home {
    let home = Home::of(Agent::Pi);
    home.put(PI_FILE, &[&[header()], records].concat());
    home
}

/// Returns the paths of all files below a folder.
fn walk(disk: &ImportDisk, folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in disk.list(folder).expect("it is listed") {
        let entry = entry.expect("it is listed");
        let path = folder.join(&entry.name);
        match entry.kind {
            FileKind::Folder => found.extend(walk(disk, &path)),
            _ => found.push(path),
        }
    }
    found
}

fn bytes(disk: &ImportDisk, path: &Path) -> Vec<u8> {
    disk.read(path, usize::MAX).expect("it is read")
}

/// Returns the lines of the file of a session.
fn entries(home: &Home, path: &str) -> Vec<Value> {
    parsed(&bytes(&home.files(Policy::Recover), Path::new(path)))
}

fn parsed(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).expect("it is UTF-8");
    assert!(text.is_empty() || text.ends_with('\n'));
    let parse = |line: &str| serde_json::from_str(line).expect("a line is one object");
    text.lines().map(parse).collect()
}

/// Returns what a line says, in a word.
fn said(line: &Value) -> String {
    let content = &line["message"]["content"];
    let block = content.as_array().map_or(content, |blocks| &blocks[0]);
    let text = [
        &block["text"],
        &block["thinking"],
        &block["name"],
        &block["content"],
        block,
    ];
    let text = text.into_iter().find_map(Value::as_str);
    text.unwrap_or_else(|| line["subtype"].as_str().unwrap_or_default())
        .to_owned()
}

/// Returns what the chain says that ends with the last line with this text, oldest first.
fn chain(lines: &[Value], last: &str) -> Vec<String> {
    let by_id: BTreeMap<&str, &Value> = lines
        .iter()
        .filter_map(|line| Some((line["uuid"].as_str()?, line)))
        .collect();
    let mut next = lines.iter().rfind(|line| said(line) == last);
    let mut chain = Vec::new();
    while let Some(line) = next {
        chain.push(said(line));
        next = line["parentUuid"].as_str().map(|parent| by_id[parent]);
    }
    chain.reverse();
    chain
}

#[test]
fn live_messages_are_one_chain_and_branches_hang_on_it() {
    let home = session(&[
        user("a", "", "one"),
        assistant("b", "a", text("two")),
        user("c", "b", "left"),
        assistant("d", "c", text("behind")),
        user("e", "b", "three"),
    ]);
    let lines = entries(&home, "/home/-w/s1.jsonl");
    assert_eq!(chain(&lines, "three"), ["one", "two", "three"]);
    assert_eq!(chain(&lines, "behind"), ["one", "two", "left", "behind"]);
    assert!(said(lines.last().expect("there are lines")) == "three");
    for line in &lines {
        assert_eq!(line["sessionId"], "s1");
        assert_eq!(line["imported"]["agent"], "pi");
    }
    let two = lines.iter().find(|line| said(line) == "two");
    let two = two.expect("it is there");
    assert_eq!(two["timestamp"], "2026-01-02T03:04:01.000Z");
    assert_eq!(two["cwd"], "/w");
    assert_eq!(two["message"]["model"], "m");
    let usage = json!({"input_tokens": 10, "cache_creation_input_tokens": 1, "cache_read_input_tokens": 3,
        "output_tokens": 2});
    assert_eq!(two["message"]["usage"], usage);
    assert_eq!(two["message"]["stop_reason"], "end_turn");
}

#[test]
fn the_origin_of_a_line_is_the_place_of_its_record() {
    let home = session(&[user("a", "", "one"), assistant("b", "a", text("two"))]);
    let source = home.disk().bytes(Path::new("/home").join(PI_FILE));
    let source = source.expect("it is there");
    for line in entries(&home, "/home/-w/s1.jsonl") {
        let Some(offset) = line["imported"]["offset"].as_u64() else {
            continue;
        };
        let len = line["imported"]["length"]
            .as_u64()
            .expect("it has a length");
        let place = offset as usize..(offset + len) as usize;
        let record = std::str::from_utf8(&source[place]).expect("it is UTF-8");
        assert!(record.contains(&said(&line)), "{record}");
        assert!(
            line["imported"]["file"]
                .as_str()
                .is_some_and(|file| file.ends_with(PI_FILE))
        );
    }
}

#[test]
fn a_chain_that_does_not_end_with_the_last_line_is_pinned() {
    let gone = json!({"role": "assistant", "content": text("failed"), "stopReason": "error"});
    let home = session(&[user("a", "", "one"), message("b", "a", gone)]);
    let lines = entries(&home, "/home/-w/s1.jsonl");
    let one = lines
        .iter()
        .find(|line| said(line) == "one")
        .expect("it is there");
    let pin = lines.last().expect("there are lines");
    assert_eq!(pin["type"], "last-prompt");
    assert_eq!(pin["leafUuid"], one["uuid"]);
}

#[test]
fn a_compaction_is_a_boundary_and_its_summary() {
    let compaction = json!({"type": "compaction", "id": "ccc", "parentId": "bb", "summary": "short",
        "timestamp": "2026-01-02T03:04:06.000Z", "firstKeptEntryId": "ccc"});
    let home = session(&[
        user("a", "", "one"),
        assistant("bb", "a", text("two")),
        compaction,
        user("dddd", "ccc", "three"),
    ]);
    let lines = entries(&home, "/home/-w/s1.jsonl");
    assert_eq!(
        chain(&lines, "three"),
        ["compact_boundary", "short", "three"]
    );
    let boundary = lines
        .iter()
        .find(|line| line["subtype"] == "compact_boundary");
    let before = lines
        .iter()
        .find(|line| said(line) == "two")
        .expect("it is there");
    assert_eq!(
        boundary.expect("it is there")["logicalParentUuid"],
        before["uuid"]
    );
    let summary = lines
        .iter()
        .find(|line| said(line) == "short")
        .expect("it is there");
    assert_eq!(summary["isCompactSummary"], true);
}

#[test]
fn each_compaction_is_a_boundary() {
    let compaction = |id: &str, parent: &str, summary: &str| {
        json!({"type": "compaction", "id": id, "parentId": parent, "summary": summary, "firstKeptEntryId": id,
            "timestamp": "2026-01-02T03:04:06.000Z"})
    };
    let home = session(&[
        user("a", "", "one"),
        compaction("b", "a", "short"),
        user("c", "b", "two"),
        compaction("d", "c", "shorter"),
        user("e", "d", "three"),
    ]);
    let lines = entries(&home, "/home/-w/s1.jsonl");
    assert_eq!(
        chain(&lines, "three"),
        ["compact_boundary", "shorter", "three"]
    );
    assert_eq!(chain(&lines, "two"), ["compact_boundary", "short", "two"]);
    let boundaries = lines
        .iter()
        .filter(|line| line["subtype"] == "compact_boundary");
    let above = boundaries.map(|line| {
        let above = lines
            .iter()
            .find(|other| other["uuid"] == line["logicalParentUuid"]);
        said(above.expect("it is in the file"))
    });
    assert_eq!(above.collect::<Vec<_>>(), ["one", "two"]);
}

#[test]
fn results_are_linked_to_calls_and_those_without_a_call_are_text() {
    let call = json!([{"type": "toolCall", "id": "k1", "name": "ls", "arguments": {"path": "."}}]);
    let result = |id: &str, parent: &str, call: &str, text: &str| {
        let body = json!({"role": "toolResult", "toolCallId": call, "toolName": "ls", "isError": true,
            "content": [{"type": "text", "text": text}]});
        message(id, parent, body)
    };
    let home = session(&[
        user("a", "", "one"),
        assistant("b", "a", call),
        result("c", "b", "k1", "listed"),
        result("d", "c", "other", "alone"),
    ]);
    let lines = entries(&home, "/home/-w/s1.jsonl");
    let line = |text: &str| {
        lines
            .iter()
            .find(|line| said(line) == text)
            .expect("it is there")
    };
    let block = &line("listed")["message"]["content"][0];
    assert_eq!(block["type"], "tool_result");
    assert_eq!(block["tool_use_id"], "k1");
    assert_eq!(block["is_error"], true);
    assert_eq!(
        line("ls")["message"]["content"][0]["input"],
        json!({"path": "."})
    );
    assert_eq!(line("alone")["message"]["content"], "alone");
    assert_eq!(line("alone")["isMeta"], true);
}

#[test]
fn a_growing_source_only_appends_lines() {
    let records = [
        user("a", "", "one"),
        assistant("b", "a", text("two")),
        user("c", "b", "left"),
        user("d", "b", "three"),
        assistant("e", "d", text("four")),
    ];
    let home = session(&records[..1]);
    let disk = home.files(Policy::Recover);
    let path = Path::new("/home/-w/s1.jsonl");
    let file = disk.open_to_read(path).expect("it is opened");
    let mut before = bytes(&disk, path);
    let identity = file.metadata().expect("it has properties").identity;
    for end in 2..=records.len() {
        home.put(PI_FILE, &[&[header()], &records[..end]].concat());
        let found = file.metadata().expect("it has properties");
        let mut now = vec![0; found.len as usize];
        assert_eq!(file.fill(0, &mut now).expect("it is read"), now.len());
        assert!(
            now.len() > before.len() && now.starts_with(&before),
            "{end}"
        );
        assert_eq!(
            found.identity.number().is_some(),
            identity.number().is_some()
        );
        before = now;
    }
    home.put(PI_FILE, &[header(), user("z", "", "other")]);
    let rewritten = file.metadata().expect("it has properties");
    assert_ne!(rewritten.identity, identity, "it is not its earlier self");
}

#[test]
fn a_file_can_be_read_at_any_offset() {
    let records: Vec<Value> = (0..40)
        .map(|at| {
            let parent = if at == 0 {
                String::new()
            } else {
                format!("id{}", at - 1)
            };
            user(&format!("id{at}"), &parent, &"word ".repeat(at * 7))
        })
        .collect();
    let home = session(&records);
    let disk = home.files(Policy::Recover);
    let path = Path::new("/home/-w/s1.jsonl");
    let whole = bytes(&disk, path);
    let file = disk.open_to_read(path).expect("it is opened");
    for offset in (0..whole.len() + 2).rev().step_by(97) {
        let mut part = vec![0; 301];
        let read = file.fill(offset as u64, &mut part).expect("it is read");
        let expected = whole.get(offset..).unwrap_or_default();
        assert_eq!(&part[..read], &expected[..expected.len().min(301)]);
    }
}

#[test]
fn damage_and_unknown_records_are_lines_at_their_place() {
    let whole = lines(&[header(), user("a", "", "one")]);
    let rest = lines(&[
        json!({"type": "novel", "id": "n", "parentId": "a"}),
        user("b", "n", "two"),
    ]);
    let home = Home::of(Agent::Pi);
    home.put_bytes(PI_FILE, format!("{whole}torn\n{rest}").as_bytes());
    let lines = entries(&home, "/home/-w/s1.jsonl");
    let places = lines.iter().map(|line| {
        let imported = &line["imported"];
        match (imported["damage"].as_str(), &imported["unknown"]) {
            (Some(damage), _) => format!("damage {damage}"),
            (None, Value::Object(types)) => format!("unknown {}", types["novel"]),
            _ => said(line),
        }
    });
    let places: Vec<String> = places.filter(|place| !place.is_empty()).collect();
    assert_eq!(places, ["one", "damage no-record", "unknown 1", "two"]);
    let damage = lines
        .iter()
        .find(|line| line["imported"]["damage"].is_string());
    assert_eq!(
        damage.expect("it is there")["imported"]["offset"],
        whole.len()
    );
}

#[test]
fn what_an_agent_refuses_is_not_a_conversation() {
    let home = session(&[user("a", "", "one")]);
    home.put_bytes(PI_FILE, lines(&[user("a", "", "one")]).as_bytes());
    let disk = home.files(Policy::Vendor);
    let files = walk(&disk, Path::new("/home"));
    let lines = parsed(&bytes(&disk, &files[0]));
    assert!(
        lines
            .iter()
            .any(|line| line["imported"]["refusal"].is_string())
    );
    let said: Vec<&Value> = lines
        .iter()
        .filter(|line| line["message"].is_object())
        .collect();
    assert!(!said.is_empty() && said.iter().all(|line| line["isSidechain"] == true));
}

#[test]
fn subagents_with_a_file_are_below_the_session_that_started_them() {
    let home = Home::of(Agent::Gemini);
    let header = |id: &str| json!({"sessionId": id, "projectHash": "h", "startTime": "2026-01-02T03:04:05.678Z"});
    let message = |id: &str, text: &str| json!({"id": id, "timestamp": "2026-01-02T03:04:05.678Z", "type": "user", "content": [{"text": text}]});
    home.put(
        "tmp/w/chats/session-1-s1.jsonl",
        &[header("s1"), message("a", "main")],
    );
    home.put(
        "tmp/w/chats/s1/sub.jsonl",
        &[header("sub"), message("b", "beneath")],
    );
    home.put_bytes("tmp/w/.project_root", b"/work/of me");
    let disk = home.files(Policy::Recover);
    let main = Path::new("/home/-work-of-me/s1.jsonl");
    let sub = Path::new("/home/-work-of-me/s1/subagents/agent-sub.jsonl");
    let files: BTreeSet<PathBuf> = walk(&disk, Path::new("/home")).into_iter().collect();
    assert_eq!(files, BTreeSet::from([main.to_owned(), sub.to_owned()]));
    let lines = parsed(&bytes(&disk, sub));
    let beneath = lines
        .iter()
        .find(|line| said(line) == "beneath")
        .expect("it is there");
    assert_eq!(
        (&beneath["isSidechain"], &beneath["agentId"]),
        (&json!(true), &json!("sub"))
    );
    assert_eq!(beneath["sessionId"], "s1");
    let own = parsed(&bytes(&disk, main));
    assert!(
        own.iter().all(|line| said(line) != "beneath"),
        "it has a file of its own"
    );
}

#[test]
fn a_file_of_an_agent_leads_to_its_home_and_its_session() {
    let home = session(&[user("a", "", "one")]);
    let file = Path::new("/home").join(PI_FILE);
    let found = home_of_file(home.disk(), &file).expect("it is read");
    assert_eq!(found, Some((Agent::Pi, PathBuf::from("/home"))));
    let path = home
        .files(Policy::Recover)
        .path_of(&file)
        .expect("it is read");
    assert_eq!(path, Some(PathBuf::from("/home/-w/s1.jsonl")));
    let alone = lines(&[header(), user("a", "", "one")]);
    home.disk().put("/elsewhere/copy.jsonl", alone);
    let copy = Path::new("/elsewhere/copy.jsonl");
    let found = home_of_file(home.disk(), copy).expect("it is read");
    assert_eq!(found, Some((Agent::Pi, copy.to_owned())));
    let disk = ImportDisk::new(Arc::new(home.disk().clone()), Agent::Pi, copy);
    assert_eq!(walk(&disk, copy), [copy.join("-w/s1.jsonl")]);
    home.disk()
        .put("/elsewhere/other.jsonl", "{\"type\":\"user\"}\n");
    let other = home_of_file(home.disk(), Path::new("/elsewhere/other.jsonl"));
    assert_eq!(other.expect("it is read"), None);
}

#[test]
fn nothing_else_is_there() {
    let home = session(&[user("a", "", "one")]);
    let disk = home.files(Policy::Recover);
    for path in [
        "/home/-w/s2.jsonl",
        "/home/other",
        "/outside/s1.jsonl",
        &format!("/home/{PI_FILE}"),
    ] {
        assert!(!disk.exists(Path::new(path)), "{path}");
        assert!(disk.open_to_read(Path::new(path)).is_err(), "{path}");
    }
    assert!(disk.is_folder(Path::new("/home")) && disk.is_folder(Path::new("/home/-w")));
}

/// Holds what every file of ours promises: parents come before their children, ids are there once, and the same source makes the
/// same bytes.
#[test]
fn files_of_real_sessions_are_sound() {
    let Some(shared) = transcript_testkit::shared() else {
        println!("skipped: no shared data");
        return;
    };
    let mut sessions = 0;
    for agent in Agent::ALL {
        let folder = shared.join("import").join(agent.name());
        for case in std::fs::read_dir(folder).into_iter().flatten() {
            let store = case.expect("it is listed").path().join("store");
            if !store.is_dir() {
                continue;
            }
            let disk = || ImportDisk::new(Arc::new(RealDisk), agent, &store);
            let (one, other) = (disk(), disk());
            for path in walk(&one, &store) {
                sessions += 1;
                let whole = bytes(&one, &path);
                assert_eq!(whole, bytes(&other, &path));
                assert_eq!(
                    one.metadata(&path).expect("it is there").len,
                    whole.len() as u64
                );
                let mut seen = BTreeSet::new();
                for line in parsed(&whole) {
                    for parent in [&line["parentUuid"], &line["logicalParentUuid"]] {
                        let is_known = parent.as_str().is_none_or(|parent| seen.contains(parent));
                        assert!(is_known, "{}: {line}", path.display());
                    }
                    if let Some(id) = line["uuid"].as_str() {
                        assert!(seen.insert(id.to_owned()), "{}: {id}", path.display());
                        assert!(
                            line["timestamp"]
                                .as_str()
                                .is_some_and(|time| time.len() == 24)
                        );
                    }
                }
                let conversation = one.conversation(&path).expect("it is there");
                let compacted = conversation.branches.iter();
                let compacted = compacted.filter(|branch| branch.kind == BranchKind::Compacted);
                let boundaries = parsed(&whole).into_iter();
                let boundaries = boundaries.filter(|line| line["subtype"] == "compact_boundary");
                assert!(boundaries.count() <= compacted.count());
            }
        }
    }
    println!("{sessions} sessions");
    assert!(sessions > 0);
}
