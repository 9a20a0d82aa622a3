//! Homes that somebody made to stop a reader: folders that cannot be read, ids that lead elsewhere, and much of what takes long.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde_json::{Value, json};
use transcript_import::{Agent, BranchKind, ImportDisk, Policy, Store, dialect};
use transcript_storage::{Entries, FileKind, LocalDisk, MemoryDisk, Metadata, ReadDisk, ReadFile};
use transcript_testkit::rng::Rng;

use crate::damage::samples;
use crate::support::{Home, branch, lines, live, read_file};

/// A disk on which one file or folder cannot be read.
#[derive(Debug)]
struct Closed {
    disk: MemoryDisk,
    closed: PathBuf,
}

impl Closed {
    fn refuse(&self, path: &Path) -> io::Result<()> {
        if path == self.closed {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(())
    }
}

impl ReadDisk for Closed {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.refuse(path)?;
        self.disk.open_to_read(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Entries> {
        self.refuse(folder)?;
        self.disk.list(folder)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.disk.metadata(path)
    }

    fn local(&self) -> Option<&dyn LocalDisk> {
        None
    }
}

/// Where a file of each agent lies in its home folder: two folders with a session each.
fn places(agent: Agent) -> [(&'static str, &'static str); 2] {
    match agent {
        Agent::Codex => [
            ("/home/sessions/2026/01/01", "rollout-a.jsonl"),
            ("/home/sessions/2026/01/02", "rollout-b.jsonl"),
        ],
        Agent::Pi => [
            ("/home/sessions/--a--", "x_a.jsonl"),
            ("/home/sessions/--b--", "x_b.jsonl"),
        ],
        Agent::Qwen => [
            ("/home/projects/a/chats", "a.jsonl"),
            ("/home/projects/b/chats", "b.jsonl"),
        ],
        Agent::Gemini => [
            ("/home/tmp/a/chats", "session-a.jsonl"),
            ("/home/tmp/b/chats", "session-b.jsonl"),
        ],
        _ => [
            ("/home/session-state/a", "events.jsonl"),
            ("/home/session-state/b", "events.jsonl"),
        ],
    }
}

/// Returns a disk with two sessions of an agent that have the ids `a` and `b`.
fn two_sessions(agent: Agent, records: &[Value]) -> MemoryDisk {
    let disk = MemoryDisk::new();
    for (id, (folder, name)) in ["a", "b"].into_iter().zip(places(agent)) {
        let text = lines(records);
        let text = text.replace("\"id\":\"t\"", &format!("\"id\":\"{id}\""));
        let text = text.replace("\"sessionId\":\"s\"", &format!("\"sessionId\":\"{id}\""));
        let text = match agent {
            Agent::Pi => text.replacen("\"id\":\"s\"", &format!("\"id\":\"{id}\""), 1),
            _ => text,
        };
        disk.put(Path::new(folder).join(name), text);
    }
    disk
}

/// Returns the paths of all sessions that are shown, and what cannot be listed.
fn walk(disk: &ImportDisk, folder: &Path) -> (Vec<PathBuf>, Vec<String>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    let entries = match disk.list(folder) {
        Ok(entries) => entries,
        Err(error) => return (found, vec![format!("{:?} {error}", error.kind())]),
    };
    for entry in entries {
        let entry = entry.expect("it is listed");
        let path = folder.join(&entry.name);
        if entry.kind == FileKind::Folder {
            let (more, other) = walk(disk, &path);
            found.extend(more);
            problems.extend(other);
        } else {
            found.push(path);
        }
    }
    (found, problems)
}

fn shown(disk: impl ReadDisk + 'static, agent: Agent) -> ImportDisk {
    ImportDisk::new(Arc::new(disk), agent, "/home")
}

#[test]
fn a_folder_that_cannot_be_read_is_named_and_hides_no_other() {
    for (agent, _, records) in samples() {
        let disk = two_sessions(agent, &records);
        let (all, none) = walk(&shown(disk.clone(), agent), Path::new("/home"));
        assert_eq!((all.len(), none.len()), (2, 0), "{agent}");
        let (folder, _) = places(agent)[0];
        let closed = PathBuf::from(folder);
        let (found, problems) = walk(&shown(Closed { disk, closed }, agent), Path::new("/home"));
        assert_eq!(found.len(), 1, "{agent}");
        assert_eq!(problems.len(), 1, "{agent}");
        assert!(problems[0].starts_with("PermissionDenied"), "{problems:?}");
        assert!(problems[0].contains(folder), "{problems:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_hides_no_other() {
    for (agent, _, records) in samples() {
        let disk = two_sessions(agent, &records);
        let (folder, name) = places(agent)[0];
        let closed = Path::new(folder).join(name);
        let disk = shown(
            Closed {
                disk,
                closed: closed.clone(),
            },
            agent,
        );
        let (found, problems) = walk(&disk, Path::new("/home"));
        assert_eq!((found.len(), problems.len()), (2, 0), "{agent}");
        let read: Vec<_> = found.iter().map(|path| disk.open_to_read(path)).collect();
        let failed: Vec<_> = read.iter().filter_map(|read| read.as_ref().err()).collect();
        assert_eq!(failed.len(), 1, "{agent}");
        let message = failed[0].to_string();
        assert!(message.contains(&*closed.to_string_lossy()), "{message}");
    }
}

#[test]
fn a_second_file_of_an_id_is_shown_as_well() {
    for (agent, _, records) in samples() {
        // Codex and Gemini CLI continue a session in other files, so files of one id are one session.
        let is_one = matches!(agent, Agent::Codex | Agent::Gemini);
        let disk = MemoryDisk::new();
        for (folder, name) in places(agent) {
            disk.put(Path::new(folder).join(name), lines(&records));
        }
        let (found, _) = walk(&shown(disk.clone(), agent), Path::new("/home"));
        assert_eq!(found.len(), if is_one { 1 } else { 2 }, "{agent}");
        let files = shown(disk.clone(), agent);
        let texts = found.iter().map(|path| files.read(path, usize::MAX));
        let texts: Vec<_> = texts.map(|text| text.expect("it is read")).collect();
        assert!(texts.iter().all(|text| !text.is_empty()), "{agent}");
        let again = walk(&shown(disk, agent), Path::new("/home"));
        assert_eq!(again.0, found, "{agent}");
    }
}

#[test]
fn subagents_that_started_each_other_are_shown() {
    let disk = MemoryDisk::new();
    for (id, parent) in [("a", "b"), ("b", "a"), ("c", "c"), ("d", "a")] {
        let spawn = json!({"subagent": {"thread_spawn": {"parent_thread_id": parent}}});
        let meta = json!({"id": id, "cwd": "/w", "source": spawn});
        let said = json!({"type": "message", "role": "user", "content": "one"});
        let records = [
            json!({"timestamp": "t", "type": "session_meta", "payload": meta}),
            json!({"timestamp": "t", "type": "response_item", "payload": said}),
        ];
        disk.put(
            format!("/home/sessions/rollout-{id}.jsonl"),
            lines(&records),
        );
    }
    let (found, _) = walk(&shown(disk, Agent::Codex), Path::new("/home"));
    let tops = found.iter().filter(|path| path.components().count() == 4);
    let tops: Vec<_> = tops
        .map(|path| path.file_stem().expect("it has a name"))
        .collect();
    assert_eq!(tops, ["a", "b", "c", "d"]);
}

/// The id of a session is what a file says, and no path.
#[test]
fn an_id_does_not_lead_to_other_folders() {
    for id in ["../../../other", "/other", "..", ".", "a/b", ""] {
        let home = Home::of(Agent::Gemini);
        let header = json!({"sessionId": id, "projectHash": "h"});
        let said =
            |text: &str| json!({"id": text, "timestamp": "t", "type": "user", "content": text});
        home.put("tmp/p/chats/session-1.jsonl", &[header, said("one")]);
        home.disk()
            .put("/other/x.jsonl", lines(&[said("of another")]));
        home.disk()
            .put("/home/tmp/p/chats/a/b/x.jsonl", lines(&[said("below")]));
        let conversation = home.read(id);
        assert_eq!(live(&conversation), ["U one"], "{id:?}");
        assert!(
            branch(&conversation, BranchKind::Subagent).is_empty(),
            "{id:?}"
        );
    }
    let home = Home::of(Agent::OpenCode);
    home.put_bytes("storage/session/p/...json", br#"{"title":"x"}"#);
    home.put_bytes("storage/message/ses_1/msg_1.json", br#"{"role":"user"}"#);
    let store = Store {
        disk: home.disk(),
        path: Path::new("/home"),
    };
    let conversation = dialect(Agent::OpenCode).read(store, "..", Policy::Recover);
    let conversation = conversation.expect("it is read");
    assert_eq!(conversation.sources.len(), 1);
}

#[test]
fn numbers_without_an_end_are_read() {
    let huge = "18446744073709551615";
    for number in [
        huge,
        "-1",
        "1e400",
        "-9223372036854775808",
        "1e18",
        "0.5",
        "\"x\"",
        "[]",
    ] {
        for (agent, name, records) in samples() {
            let text = lines(&records);
            let digits = |c: char| c.is_ascii_digit();
            // Every number of the file, and the times, are this one.
            let text = text.split_inclusive([':', ',', '{', '}']).map(|piece| {
                let value = piece.trim_end_matches([',', '}']);
                if !value.is_empty() && value.chars().all(digits) {
                    piece.replacen(value, number, 1)
                } else {
                    piece.to_owned()
                }
            });
            let text: String = text.collect();
            let text = text.replace("\"2026-01-02T03:04:05.678Z\"", number);
            let usage = format!(
                r#""usage":{{"input":{number},"output":{number}}},"usageMetadata":{{"promptTokenCount":{number}}},"tokens":{{"input":{number}}},"#
            );
            let text = text.replace("\"type\":", &format!("{usage}\"type\":"));
            let disk = MemoryDisk::new();
            disk.put(name, text.clone());
            for policy in [Policy::Recover, Policy::Vendor] {
                read_file(&disk, agent, Path::new(name), policy);
            }
            let files = ImportDisk::new(Arc::new(disk), agent, name);
            let path = files.path_of(Path::new(name)).expect("it is listed");
            let path = path.expect("it is shown");
            let shown = files.read(&path, usize::MAX).expect("it is read");
            for line in String::from_utf8_lossy(&shown).lines() {
                let is_json = serde_json::from_str::<IgnoredAny>(line).is_ok();
                assert!(is_json && line.starts_with('{'), "{line}");
            }
        }
    }
}

/// What a reader takes from a tree with lost parents is what a slow walk takes.
#[test]
fn records_stand_in_for_lost_parents_in_the_order_of_the_file() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let count = 2 + rng.below(40);
        let parents: Vec<Option<usize>> = (0..count)
            .map(|_| Some(rng.below(2 * count)).filter(|_| rng.below(8) > 0))
            .collect();
        let record = |at: usize| {
            let parent = parents[at].map(|parent| format!("r{parent}"));
            let message = json!({"role": "user", "content": at.to_string()});
            json!({"type": "message", "id": format!("r{at}"), "parentId": parent, "message": message})
        };
        let records: Vec<Value> = (0..count).map(record).collect();
        let mut seen = vec![false; count];
        let mut expected = Vec::new();
        let mut next = Some(count - 1);
        while let Some(at) = next {
            seen[at] = true;
            expected.push(format!("U {at}"));
            next = match parents[at] {
                None => None,
                Some(parent) if parent < count && !seen[parent] => Some(parent),
                Some(parent) => {
                    // What stands in for a lost parent was written before the first record that names it.
                    let is_first = |first: &usize| parents[*first] == Some(parent);
                    let first = (0..count).find(is_first).filter(|_| parent >= count);
                    let before = first.unwrap_or(at);
                    (0..before).rev().find(|before| !seen[*before])
                }
            };
        }
        expected.reverse();
        let home = Home::of(Agent::Pi);
        home.put("sessions/s.jsonl", &records);
        assert_eq!(live(&home.read("s")), expected, "{seed}");
    }
}

/// Each of these takes minutes, or the memory of the machine, if the time grows with the square of the records.
#[test]
fn many_records_of_any_kind_are_read_in_linear_time() {
    const COUNT: usize = 40_000;
    // Walks that jump back and forth over a long part that was seen.
    let link = |id: usize, parent: String| json!({"type": "message", "id": format!("r{id}"), "parentId": parent, "message": {"role": "user", "content": "x"}});
    let half = COUNT / 2;
    let mut records: Vec<Value> = (0..half)
        .map(|id| link(id, format!("r{}", COUNT - 1 - id)))
        .collect();
    records.extend((half..COUNT).map(|id| link(id, "lost".to_owned())));
    let home = Home::of(Agent::Pi);
    home.put("sessions/s.jsonl", &records);
    assert_eq!(home.read("s").live.len(), COUNT);
    // Every compaction of Copilot CLI lists all prompts again.
    let event = |at: usize| {
        let (kind, data) = match at {
            0 => ("session.start", json!({"sessionId": "s"})),
            at if at % 2 == 1 => ("user.message", json!({"content": format!("prompt {at}")})),
            _ => (
                "session.compaction_complete",
                json!({"summaryContent": "sum"}),
            ),
        };
        json!({"type": kind, "data": data, "id": at.to_string(), "timestamp": "t"})
    };
    let records: Vec<Value> = (0..COUNT).map(event).collect();
    let home = Home::of(Agent::Copilot);
    home.put("session-state/s/events.jsonl", &records);
    let conversation = home.read("s");
    let last = conversation
        .content(conversation.live[0])
        .expect("it is read");
    let text = last.text.expect("it has a text");
    assert_eq!(text.matches("<user_message>").count(), COUNT / 2 - 1);
    let shown = shown(home.disk().clone(), Agent::Copilot);
    let (paths, _) = walk(&shown, Path::new("/home"));
    let file = shown.read(&paths[0], usize::MAX).expect("it is read");
    assert!(String::from_utf8_lossy(&file).lines().count() > COUNT);
    // Messages of a damaged document have no place of their own.
    let said = |at: usize| json!({"id": at.to_string(), "timestamp": "t", "type": "user", "content": "one"});
    let messages: Vec<Value> = (0..COUNT).map(said).collect();
    let document = json!({"sessionId": "s", "projectHash": "h", "messages": messages}).to_string();
    let mut bytes = document.replace("\"h\"", "\"h?\"").into_bytes();
    let at = bytes
        .iter()
        .position(|byte| *byte == b'?')
        .expect("it is there");
    bytes[at] = 0xff;
    let home = Home::of(Agent::Gemini);
    home.put_bytes("tmp/p/chats/session-s.json", &bytes);
    let files = home.files(Policy::Recover);
    let (paths, _) = walk(&files, Path::new("/home"));
    let file = files.read(&paths[0], usize::MAX).expect("it is read");
    assert!(String::from_utf8_lossy(&file).lines().count() > COUNT);
    // Turns are rolled back though there is no prompt.
    let item = |at: usize| match at {
        0 => json!({"timestamp": "t", "type": "session_meta", "payload": {"id": "t"}}),
        at if at % 2 == 1 => json!({"timestamp": "t", "type": "response_item",
            "payload": {"type": "message", "role": "assistant", "content": at.to_string()}}),
        _ => {
            json!({"timestamp": "t", "type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}})
        }
    };
    let records: Vec<Value> = (0..COUNT).map(item).collect();
    let home = Home::of(Agent::Codex);
    home.put("sessions/rollout-t.jsonl", &records);
    assert_eq!(home.read("t").live.len(), COUNT / 2);
}

/// Forks of forks: each thread continues the one before it.
#[test]
fn a_chain_of_thousands_of_forks_is_read() {
    const COUNT: usize = 3_000;
    let home = Home::of(Agent::Codex);
    let id = |at: usize| format!("{at:036}");
    for at in 0..COUNT {
        let base = at
            .checked_sub(1)
            .map(|base| json!({"thread_id": id(base), "end_ordinal_exclusive": 2}));
        let said = json!({"type": "message", "role": "user", "content": at.to_string()});
        let records = [
            json!({"timestamp": "t", "ordinal": 0, "type": "session_meta", "payload": {"id": id(at), "history_base": base}}),
            json!({"timestamp": "t", "ordinal": 1, "type": "response_item", "payload": said}),
            json!({"timestamp": "t", "ordinal": 2, "type": "response_item", "payload": said}),
        ];
        home.put(&format!("sessions/rollout-x-{}.jsonl", id(at)), &records);
    }
    assert_eq!(home.sessions().len(), COUNT);
    assert_eq!(home.read(&id(COUNT - 1)).live.len(), COUNT + 1);
    let first = home.read(&id(0));
    assert_eq!(first.live.len(), 2);
    let middle = home.read(&id(2));
    assert_eq!(branch(&middle, BranchKind::Forked), ["U 0", "U 1"]);
}

/// Some bytes can stand for any number of zeros.
#[cfg(feature = "zstd")]
#[test]
fn a_compressed_file_is_read_as_far_as_its_length_is_credible() {
    const FRAMES: usize = 1_100;
    let header =
        json!({"timestamp": "t", "ordinal": 0, "type": "session_meta", "payload": {"id": "t"}});
    let mut bytes = zstd::encode_all(lines(&[header]).as_bytes(), 1).expect("it is compressed");
    let zeros = zstd::encode_all(&*vec![0; 1 << 20], 1).expect("it is compressed");
    bytes.extend(zeros.repeat(FRAMES));
    let home = Home::of(Agent::Codex);
    home.put_bytes("sessions/rollout-t.jsonl.zst", &bytes);
    let conversation = home.read("t");
    let kinds: Vec<_> = conversation
        .damage
        .iter()
        .map(|damage| damage.kind)
        .collect();
    assert!(
        kinds.contains(&transcript_import::DamageKind::TornCompression),
        "{kinds:?}"
    );
    assert!(conversation.sources[0].len < (FRAMES as u64) << 20);
}
