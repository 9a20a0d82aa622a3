//! Compactions, rewinds and tombstones as readers see them, also those that a crash cut short.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use transcript_format::kind::SystemKind;
use transcript_format::make::{self, Compaction, Trigger};
use transcript_reader::{EntryRef, Index, Source};
use transcript_resume::{LeafReason, Policy, Tree};
use transcript_testkit::fake_disk::{FakeDisk, Fault, Op};
use transcript_writer::{
    Draft, EntryId, ErrorKind, Repair, ResumePoint, SyncPolicy, Writer, WriterOptions,
};

const PATH: &str = "/sessions/1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl";
const POLICIES: [Policy; 2] = [Policy::Vendor, Policy::Recover];

fn index(bytes: &[u8]) -> Index {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    Index::load(&Source::open(file.path()).unwrap()).unwrap()
}

/// The uuids of the path.
fn path(bytes: &[u8], policy: Policy) -> Vec<String> {
    let index = index(bytes);
    let path = Tree::new(&index, policy).path();
    let entries = path.entries.iter().map(|entry| entry.entry_no());
    let ids = entries.filter_map(|entry| Some(index.id_text(index.entry(entry).uuid()?)));
    ids.collect()
}

fn paths(bytes: &[u8]) -> [Vec<String>; 2] {
    POLICIES.map(|policy| path(bytes, policy))
}

/// The state that a reader passes to a writer.
fn known(bytes: &[u8]) -> ResumePoint {
    let index = index(bytes);
    let id = |entry_ref: EntryRef<'_>| {
        let id = entry_ref.uuid()?;
        Some(EntryId::from(&*index.id_text(id)))
    };
    let mut known = ResumePoint::default();
    known.uuids = index.entries().filter_map(id).collect();
    let tree = Tree::new(&index, Policy::Recover);
    known.leaf = tree.path().leaf.and_then(|leaf| id(index.entry(leaf)));
    known.is_rewound = matches!(tree.leaf(), Some((_, LeafReason::Pinned)));
    known.is_pinned = String::from_utf8_lossy(bytes).contains("\"leafUuid\"");
    known
}

/// Opens the session as the facade does: where the writer cut off what a crash left of a compaction,
/// the conversation may have ended in it, so that it is read once more.
fn open(disk: &FakeDisk) -> Writer {
    let writer = open_once(disk);
    if !matches!(writer.repair(), Some(Repair::Cut { .. })) {
        return writer;
    }
    writer.close().unwrap();
    open_once(disk)
}

fn open_once(disk: &FakeDisk) -> Writer {
    let known = known(&disk.bytes(PATH).unwrap_or_default());
    let options = WriterOptions::new().create().sync(SyncPolicy::None);
    // No two entries have the same time: the client goes by it where a boundary is the last line.
    let ticks = AtomicU64::new(disk.bytes(PATH).map_or(0, |bytes| bytes.len() as u64 * 10));
    let clock = move || {
        let millis = ticks.fetch_add(1, Ordering::Relaxed);
        UNIX_EPOCH + Duration::from_secs(1_700_000_000) + Duration::from_millis(millis)
    };
    let options = options.disk(disk.process()).clock(Arc::new(clock));
    options.open(Path::new(PATH), known).unwrap()
}

fn id(entry: &transcript_writer::Written) -> EntryId {
    entry.uuid.clone().unwrap()
}

fn say(writer: &Writer, text: &str) -> EntryId {
    id(&writer.append(Draft::user(text)).unwrap())
}

fn assistant(writer: &Writer, content: &Value) -> EntryId {
    let id_of_message = format!("msg_{content}").replace(['"', '{', '}'], "");
    let message = json!({"id": id_of_message, "role": "assistant", "model": "m", "type": "message",
        "content": [content], "stop_reason": "end_turn", "usage": {"output_tokens": 1}});
    let drafts = Draft::assistant(&message.to_string()).unwrap();
    id(writer.append_all(drafts).unwrap().last().unwrap())
}

fn call(writer: &Writer, call: &str) -> EntryId {
    let block = json!({"type": "tool_use", "id": call, "name": "Read", "input": {}});
    assistant(writer, &block)
}

fn result(writer: &Writer, call: &str) -> EntryId {
    let block = json!({"type": "tool_result", "tool_use_id": call, "content": "x"});
    let entry = json!({"type": "user", "message": {"role": "user", "content": [block]}});
    id(&writer
        .append(Draft::entry(&entry.to_string()).unwrap())
        .unwrap())
}

fn answer(writer: &Writer, text: &str) -> EntryId {
    assistant(writer, &json!({"type": "text", "text": text}))
}

fn pin(writer: &Writer) {
    let line = make::last_prompt(Some("A word."), writer.leaf(), false);
    writer.append(Draft::try_from(&line).unwrap()).unwrap();
}

fn compact(writer: &Writer, kept: &[EntryId]) -> Result<EntryId, transcript_writer::Error> {
    let compaction = Compaction::new(Trigger::Auto, 167_000).post_tokens(2_000);
    let done = writer.compact(compaction, "What was said so far.", kept)?;
    Ok(id(&done.summary))
}

/// A conversation with a call and its result; returns its last three entries.
fn talk(writer: &Writer, turn: usize) -> [EntryId; 3] {
    say(writer, &format!("Question {turn}"));
    let name = format!("toolu_{turn}");
    let call = call(writer, &name);
    let result = result(writer, &name);
    [call, result, answer(writer, &format!("Answer {turn}"))]
}

/// Sessions to compact, by name, each with the entries to keep.
type Prepare = fn(&Writer) -> Vec<EntryId>;
const SESSIONS: &[(&str, Prepare)] = &[
    ("plain", |writer| {
        talk(writer, 1);
        Vec::new()
    }),
    ("keeps a tail", |writer| {
        talk(writer, 1);
        talk(writer, 2).into()
    }),
    ("named end", |writer| {
        talk(writer, 1);
        pin(writer);
        Vec::new()
    }),
    ("named end, keeps a tail", |writer| {
        let tail = talk(writer, 1);
        pin(writer);
        tail.into()
    }),
    ("rewound", |writer| {
        let [_, result, _] = talk(writer, 1);
        talk(writer, 2);
        writer.rewind(Some(result)).unwrap();
        Vec::new()
    }),
    ("open call", |writer| {
        talk(writer, 1);
        say(writer, "More");
        vec![call(writer, "toolu_open")]
    }),
    ("second compaction", |writer| {
        let kept = talk(writer, 1);
        compact(writer, &kept).unwrap();
        talk(writer, 2).into()
    }),
    ("second compaction, keeps nothing, named end", |writer| {
        let kept = talk(writer, 1);
        compact(writer, &kept).unwrap();
        talk(writer, 2);
        pin(writer);
        Vec::new()
    }),
];

#[test]
fn a_compaction_cut_at_any_byte_is_all_there_or_not_at_all() {
    let mut cuts: HashMap<&str, usize> = HashMap::new();
    for (name, prepare) in SESSIONS {
        // Ids differ from run to run: the file of the first run is the start of all.
        let disk = FakeDisk::new(1);
        let writer = open(&disk);
        let kept = prepare(&writer);
        writer.close().unwrap();
        let before = disk.bytes(PATH).unwrap();
        let old = paths(&before);
        let writer = open(&disk);
        let summary = compact(&writer, &kept).unwrap();
        assert_eq!(writer.leaf(), Some(summary), "{name}");
        writer.close().unwrap();
        let after = disk.bytes(PATH).unwrap();
        let new = paths(&after);
        assert_eq!(new[0].len(), 2 + kept.len(), "{name}: {new:?}");
        assert_eq!(new[0], new[1], "{name}");

        let had_kept = name.starts_with("second");
        let mut is_new = false;
        for cut in before.len()..=after.len() {
            let torn = &after[..cut];
            for (policy, (old, new)) in POLICIES.iter().zip(old.iter().zip(&new)) {
                // Until the file is opened again, the client ignores what the previous compaction
                // preserved (COMPACT-8); no order of writing avoids that. A boundary without a summary
                // could be intended, so `recover` does the same. A boundary also removes the pin of a
                // rewind, whatever follows it (LEAF-13).
                let forgets = had_kept && (*policy == Policy::Vendor || kept.is_empty())
                    || *name == "rewound";
                if !forgets {
                    let seen = path(torn, *policy);
                    // A boundary without its summary: the client starts with what it keeps.
                    let is_kept = seen
                        .iter()
                        .eq(&kept.iter().map(EntryId::to_string).collect::<Vec<_>>());
                    let starts_with_kept = *policy == Policy::Vendor && is_kept;
                    assert!(
                        &seen == old || &seen == new || starts_with_kept,
                        "{name} {policy:?} {cut}: {seen:?}"
                    );
                }
            }
            let disk = FakeDisk::new(1);
            disk.put(PATH, torn);
            let writer = open(&disk);
            let seen = paths(&disk.bytes(PATH).unwrap());
            assert!(seen == old || seen == new, "{name} {cut}: {seen:?}");
            assert!(!is_new || seen == new, "{name} {cut} is old again");
            is_new = seen == new;
            assert!(is_new || cut < after.len(), "{name} is done and not seen");
            let leaf = writer.leaf();
            let next = writer.append(Draft::user("Go on")).unwrap();
            assert_eq!(next.parent, leaf, "{name} {cut}");
            let went_on = paths(&disk.bytes(PATH).unwrap());
            for (mut seen, went_on) in seen.into_iter().zip(went_on) {
                seen.push(id(&next).to_string());
                assert_eq!(went_on, seen, "{name} {cut}");
            }
            *cuts.entry(name).or_default() += 1;
        }
        assert!(is_new, "{name}");
    }
    println!("cuts: {cuts:?}");
}

#[test]
fn a_compaction_is_one_write_and_a_kill_in_it_leaves_all_of_it_or_nothing() {
    for taken in (0..2_000).step_by(37) {
        let disk = FakeDisk::new(1);
        let writer = open(&disk);
        let kept = talk(&writer, 1);
        let before = paths(&disk.bytes(PATH).unwrap());
        disk.set(Fault::kill_after(taken).at(Op::Append, 1));
        assert!(compact(&writer, &kept).is_err());
        drop(writer);
        disk.restart();
        let writer = open(&disk);
        let seen = paths(&disk.bytes(PATH).unwrap());
        let is_new = seen.iter().all(|path| path.len() == 2 + kept.len());
        assert!(seen == before || is_new, "{taken}");
        drop(writer);
    }
}

#[test]
fn a_compaction_that_cannot_be_written_changes_nothing() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    let [call, result, answer] = talk(&writer, 1);
    let before = disk.bytes(PATH).unwrap();
    disk.set(Fault::torn(300, std::io::ErrorKind::StorageFull).at(Op::Append, 1));
    let full = compact(&writer, &[call, result]).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::Full);
    let unknown = compact(&writer, &[EntryId::from("nowhere")]).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::UnknownEntry);
    assert_eq!(disk.bytes(PATH).unwrap(), before);
    let next = writer.append(Draft::user("Go on")).unwrap();
    assert_eq!(next.parent, Some(answer));
}

#[test]
fn queued_prompts_are_written_before_the_boundary() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    talk(&writer, 1);
    let queued = writer.queue(Draft::user("Queued")).unwrap();
    let kept = queued.uuid().unwrap().clone();
    let summary = compact(&writer, std::slice::from_ref(&kept)).unwrap();
    let late = say(&writer, "After");
    let boundary = path(&disk.bytes(PATH).unwrap(), Policy::Vendor).remove(0);
    for path in paths(&disk.bytes(PATH).unwrap()) {
        let ids = [&summary, &kept, &late].map(ToString::to_string);
        assert_eq!(path, [std::slice::from_ref(&boundary), &ids[..]].concat());
    }
}

#[test]
fn a_result_that_comes_after_the_compaction_does_not_lead_back() {
    for keep in [false, true] {
        let disk = FakeDisk::new(1);
        let writer = open(&disk);
        talk(&writer, 1);
        let open_call = call(&writer, "toolu_late");
        let kept = if keep {
            vec![open_call.clone()]
        } else {
            Vec::new()
        };
        let summary = compact(&writer, &kept).unwrap();
        let late = result(&writer, "toolu_late");
        let after = say(&writer, "After");
        for path in paths(&disk.bytes(PATH).unwrap()) {
            let mut ids = vec![summary.to_string()];
            ids.extend(kept.iter().map(ToString::to_string));
            ids.extend([late.to_string(), after.to_string()]);
            assert_eq!(path[1..], ids, "{keep}");
        }
    }
}

#[test]
fn a_micro_compaction_is_in_the_chain() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    let [_, _, answer] = talk(&writer, 1);
    let boundary = make::system(SystemKind::MicrocompactBoundary);
    let boundary = writer.append(Draft::try_from(&boundary).unwrap()).unwrap();
    assert_eq!(boundary.parent, Some(answer));
    let next = say(&writer, "Go on");
    for path in paths(&disk.bytes(PATH).unwrap()) {
        assert_eq!(
            path[path.len() - 2..],
            [id(&boundary), next.clone()].map(|id| id.to_string())
        );
        assert_eq!(path.len(), 6);
    }
}

#[test]
fn a_rewind_is_seen_at_once_and_the_next_entry_is_a_child_of_its_target() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    let [_, _, target] = talk(&writer, 1);
    let old = paths(&disk.bytes(PATH).unwrap());
    talk(&writer, 2);
    let before = disk.bytes(PATH).unwrap();
    writer.rewind(Some(target.clone())).unwrap();
    let bytes = disk.bytes(PATH).unwrap();
    assert!(bytes.starts_with(&before), "nothing is cut out");
    assert_eq!(paths(&bytes), old);
    // A fresh process stands there as well.
    drop(writer);
    let writer = open(&disk);
    assert_eq!(writer.leaf(), Some(target.clone()));
    let next = writer.append(Draft::user("Other words")).unwrap();
    assert_eq!(next.parent, Some(target));
    let old = old.map(|mut path| {
        path.push(id(&next).to_string());
        path
    });
    assert_eq!(paths(&disk.bytes(PATH).unwrap()), old);
    let nowhere = writer.rewind(Some(EntryId::from("nowhere"))).unwrap_err();
    assert_eq!(nowhere.kind(), ErrorKind::UnknownEntry);
}

#[test]
fn an_entry_elsewhere_lifts_the_pin_of_a_rewind() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    let first = say(&writer, "First");
    let second = answer(&writer, "Second");
    let third = say(&writer, "Third");
    answer(&writer, "Fourth");
    writer.rewind(Some(third)).unwrap();
    let elsewhere = Draft::user("Elsewhere").parent(second.clone());
    let elsewhere = writer.append(elsewhere).unwrap();
    let ids = [first, second, id(&elsewhere)].map(|id| id.to_string());
    for path in paths(&disk.bytes(PATH).unwrap()) {
        assert_eq!(path, ids);
    }
}

#[test]
fn a_rewind_to_before_the_start_begins_again() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    talk(&writer, 1);
    pin(&writer);
    writer.rewind(None).unwrap();
    let next = writer.append(Draft::user("Anew")).unwrap();
    assert_eq!(next.parent, None);
    for path in paths(&disk.bytes(PATH).unwrap()) {
        assert_eq!(path, [id(&next).to_string()]);
    }
}

#[test]
fn a_tombstoned_entry_is_bypassed_and_named() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    let [_, result, answer] = talk(&writer, 1);
    let inner = writer.tombstone(&result, None).unwrap_err();
    assert_eq!(inner.kind(), ErrorKind::NotTheLeaf);
    writer.tombstone(&answer, Some(result.clone())).unwrap();
    let text = String::from_utf8(disk.bytes(PATH).unwrap()).unwrap();
    let named = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let named: Vec<Value> = named
        .filter(|line| line["type"] == "transcriptEngine")
        .collect();
    assert_eq!(named.len(), 1);
    assert_eq!(named[0]["tombstone"], answer.to_string());
    for path in paths(text.as_bytes()) {
        assert_eq!(path.last(), Some(&result.to_string()));
    }
    let next = writer.append(Draft::user("Instead")).unwrap();
    assert_eq!(next.parent, Some(result));
    for path in paths(&disk.bytes(PATH).unwrap()) {
        assert!(!path.contains(&answer.to_string()));
        assert_eq!(path.last(), Some(&id(&next).to_string()));
    }
}

#[test]
fn a_line_of_an_answer_that_was_tombstoned_stays_out_when_the_conversation_goes_on() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    let question = say(&writer, "Look both up");
    let blocks = ["toolu_a", "toolu_b"]
        .map(|id| json!({"type": "tool_use", "id": id, "name": "Read", "input": {}}));
    let message = json!({"id": "msg_1", "role": "assistant", "model": "m", "content": blocks});
    let drafts = Draft::assistant(&message.to_string()).unwrap();
    let lines = writer.append_all(drafts).unwrap();
    let [kept, dropped] = [id(&lines[0]), id(&lines[1])];
    writer.tombstone(&dropped, Some(kept.clone())).unwrap();
    let found = result(&writer, "toolu_a");
    let answer = answer(&writer, "Here");
    // Another tool may still write the result.
    let late = result(&writer, "toolu_b");
    let bytes = disk.bytes(PATH).unwrap();
    let ids = [&question, &kept, &found, &answer].map(ToString::to_string);
    assert_eq!(path(&bytes, Policy::Recover), ids);
    let vendor = path(&bytes, Policy::Vendor);
    assert!(vendor.contains(&dropped.to_string()) && vendor.contains(&late.to_string()));
}
