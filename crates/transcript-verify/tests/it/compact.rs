//! Compactions: which lines are moved, that they can be put back, and that the proof sees what a
//! careless one would lose.

use std::path::Path;

use serde_json::{Value, json};
use transcript_format::ids::Uuid;
use transcript_reader::Source;
use transcript_testkit::campaign::several::several;
use transcript_testkit::{generate, shared};
use transcript_verify::repair::{Compaction, Repair, RepairRefusal, resumes_alike};

const PATH: &str = "/nowhere/0b932c9f-9928-4cec-9e82-22c1703d5f54.jsonl";

fn source(bytes: &[u8]) -> Source {
    Source::from_bytes(bytes, Path::new(PATH))
}

fn bytes_of(source: &Source) -> Vec<u8> {
    let mut bytes = vec![0; source.len() as usize];
    source.read_at(0, &mut bytes).unwrap();
    bytes
}

fn compact(bytes: &[u8]) -> Repair {
    let mut last = 0_u128;
    let mut new_id = || {
        last += 1;
        Uuid(0xFEED_0000_0000_4000_8000_0000_0000_0000 + last)
    };
    let mut repair = Repair::new(source(bytes), "2026-11-22T12:00:00.000Z", &mut new_id).unwrap();
    repair.compact().unwrap();
    repair
}

/// Puts the moved lines back into the new file.
fn put_back(new: &[u8], compaction: &Compaction) -> Vec<u8> {
    let base = bytes_of(compaction.base());
    let (mut bytes, mut taken) = (Vec::new(), 0);
    for line in compaction.moved() {
        let range = line.range.start as usize..line.range.end as usize;
        let next = taken + range.start - bytes.len();
        bytes.extend(&new[taken..next]);
        taken = next;
        let text = &base[range];
        assert!(text.ends_with(b"\n") && !text[..text.len() - 1].contains(&b'\n'));
        assert_eq!(bytes.split(|byte| *byte == b'\n').count() as u64, line.line);
        bytes.extend(text);
    }
    bytes.extend(&new[taken..]);
    bytes
}

/// Checks what holds for every compaction. Returns the new file, unless the repair is refused.
fn check(bytes: &[u8]) -> Option<Vec<u8>> {
    let done = compact(bytes);
    assert!(bytes_of(done.original()) == bytes);
    assert_ne!(done.refusal(), Some(RepairRefusal::Compaction));
    if done.refusal().is_some() {
        return None;
    }
    let new = bytes_of(done.repaired());
    if let Some(compaction) = done.compaction() {
        let base = bytes_of(compaction.base());
        assert!(put_back(&new, compaction) == base);
        if done.actions().is_empty() {
            assert!(base == bytes);
        }
        assert!(resumes_alike(source(&base), source(&new)).unwrap());
        let sizes = compaction.sizes();
        let moved: u64 = sizes.iter().map(|size| size.before - size.after).sum();
        assert_eq!(base.len() - new.len(), moved as usize);
        let lines: usize = sizes.iter().map(|size| size.lines).sum();
        assert_eq!(lines, compaction.moved().len());
    }
    let again = compact(&new);
    assert!(
        again.is_empty(),
        "{:?}",
        (again.actions(), again.compaction())
    );
    Some(new)
}

/// Drops every line that is not part of the conversation, as tools do.
fn without_metadata(bytes: &[u8]) -> Vec<u8> {
    let is_entry = |line: &&[u8]| {
        let line: Value = serde_json::from_slice(line).unwrap_or_default();
        ["user", "assistant", "system", "attachment"]
            .map(Value::from)
            .contains(&line["type"])
    };
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.filter(is_entry).flatten().copied().collect()
}

fn message(name: &str, parent: Option<&str>) -> Value {
    let kind = if name.starts_with('a') {
        "assistant"
    } else {
        "user"
    };
    json!({
        "type": kind, "uuid": name, "parentUuid": parent, "sessionId": "s", "isSidechain": false,
        "timestamp": "2026-11-20T10:00:00.000Z", "cwd": "/home/dev/work",
        "message": {"role": kind, "content": [{"type": "text", "text": name}]},
    })
}

fn progress(name: &str, parent: &str) -> Value {
    json!({
        "type": "progress", "uuid": name, "parentUuid": parent, "sessionId": "s",
        "timestamp": "2026-11-20T10:00:00.000Z", "data": {"type": "bash_progress", "output": name},
    })
}

fn agent_progress(name: &str, agent: &str) -> Value {
    let mut line = progress(name, "a1");
    line["data"] = json!({"type": "agent_progress", "agentId": agent});
    line["parentToolUseID"] = "toolu_1".into();
    line
}

fn setting(kind: &str, key: &str, value: &str) -> Value {
    json!({"type": kind, key: value, "sessionId": "s"})
}

fn file(lines: &[Value]) -> Vec<u8> {
    lines
        .iter()
        .flat_map(|line| format!("{line}\n").into_bytes())
        .collect()
}

/// Returns what is moved: line, type and reason.
fn moved(lines: &[Value]) -> Vec<String> {
    let bytes = file(lines);
    check(&bytes).unwrap();
    let done = compact(&bytes);
    let moved = done.compaction().map_or(&[][..], Compaction::moved);
    let short = moved
        .iter()
        .map(|line| format!("{} {} {}", line.line, line.kind.name(), line.why.name()));
    short.collect()
}

#[test]
fn first_and_last_line_of_each_setting_stay() {
    let title = |text| setting("custom-title", "customTitle", text);
    let mode = |text| setting("permission-mode", "permissionMode", text);
    let lines = [
        title("one"),
        mode("default"),
        message("u1", None),
        title("two"),
        mode("plan"),
        message("a1", Some("u1")),
        mode("plan"),
        title("three"),
        mode("default"),
        json!({"type": "custom-title", "customTitle": "other", "sessionId": "t"}),
    ];
    let expected = [
        "4 custom-title superseded",
        "5 permission-mode superseded",
        "7 permission-mode superseded",
    ];
    assert_eq!(moved(&lines), expected);
}

#[test]
fn a_line_that_names_the_leaf_is_not_superseded_by_one_that_names_none() {
    let pin = |leaf: &str| json!({"type": "last-prompt", "lastPrompt": "p", "leafUuid": leaf, "sessionId": "s"});
    let prompt = setting("last-prompt", "lastPrompt", "p");
    let mut lines = vec![message("u1", None), message("a1", Some("u1"))];
    lines.extend([pin("u1"), pin("a1")]);
    lines.extend([
        message("u2", Some("a1")),
        message("a2", Some("u2")),
        pin("a1"),
    ]);
    lines.extend([prompt.clone(), prompt.clone(), prompt]);
    assert_eq!(
        moved(&lines),
        ["4 last-prompt superseded", "9 last-prompt superseded"]
    );
}

#[test]
fn progress_stays_where_a_line_leads_to_it() {
    let lines = [
        progress("p0", "gone"),
        message("u1", None),
        message("a1", Some("u1")),
        progress("p1", "a1"),
        progress("p2", "p1"),
        progress("p3", "p2"),
        message("u2", Some("p2")),
        progress("p4", "u2"),
        agent_progress("p5", "x"),
        agent_progress("p6", "x"),
        agent_progress("p7", "y"),
        message("a2", Some("u2")),
    ];
    assert_eq!(
        moved(&lines),
        [
            "6 progress progress",
            "8 progress progress",
            "10 progress progress"
        ]
    );
}

#[test]
fn copies_of_entries_and_of_references_are_moved() {
    let snapshot = |file: &str| {
        let backups = json!({file: {"backupFileName": "b"}});
        json!({"type": "file-history-snapshot", "messageId": "u1", "isSnapshotUpdate": false,
            "snapshot": {"messageId": "u1", "trackedFileBackups": backups}})
    };
    let queued = json!({"type": "queue-operation", "operation": "enqueue", "content": "c", "sessionId": "s"});
    let lines = [
        message("u1", None),
        message("u1", None),
        snapshot("f"),
        snapshot("f"),
        snapshot("g"),
        snapshot("f"),
        message("a1", Some("u1")),
        message("a1", Some("u1")),
        queued.clone(),
        queued,
    ];
    // Of repeated entries the last one counts, so the first copy is the one that is omitted.
    let expected = [
        "1 user copy",
        "4 file-history-snapshot copy",
        "7 assistant copy",
    ];
    assert_eq!(moved(&lines), expected);
    let done = compact(&file(&lines));
    assert!(bytes_of(done.compaction().unwrap().base()) == file(&lines));
}

#[test]
fn losses_of_a_damaged_file_are_not_in_the_archive() {
    let lines = [
        message("u1", None),
        setting("mode", "mode", "1"),
        setting("mode", "mode", "2"),
        setting("mode", "mode", "3"),
    ];
    let mut bytes = file(&lines);
    bytes.splice(0..0, *b"{\"type\":\"us\n");
    bytes.pop();
    let done = compact(&bytes);
    check(&bytes).unwrap();
    assert_eq!(done.lost().len(), 1);
    let compaction = done.compaction().unwrap();
    assert!(bytes_of(compaction.base()) == file(&lines));
    assert_eq!(compaction.moved()[0].line, 3);
}

#[test]
fn a_file_without_bloat_stays_as_it_is() {
    let lines = [
        message("u1", None),
        setting("mode", "mode", "1"),
        message("a1", Some("u1")),
    ];
    let done = compact(&file(&lines));
    assert!(done.is_empty() && done.compaction().is_none());
    assert!(bytes_of(done.repaired()) == file(&lines));
}

#[test]
fn the_proof_sees_what_a_careless_compaction_loses() {
    let pin = json!({"type": "last-prompt", "leafUuid": "a1", "explicit": true, "sessionId": "s"});
    let tool = json!({"type": "file-history-snapshot", "messageId": "u1",
        "snapshot": {"messageId": "u1", "trackedFileBackups": {"f": {}}}});
    let lines = [
        message("u1", None),
        message("a1", Some("u1")),
        progress("p1", "a1"),
        message("u2", Some("p1")),
        message("a2", Some("u2")),
        message("r1", Some("a1")),
        setting("custom-title", "customTitle", "t"),
        setting("permission-mode", "permissionMode", "plan"),
        setting("tag", "tag", "t"),
        json!({"type": "queue-operation", "operation": "enqueue", "content": "c", "sessionId": "s"}),
        json!({"type": "content-replacement", "sessionId": "s", "replacements": []}),
        tool,
        pin,
    ];
    let whole = file(&lines);
    let is_alike = |bytes: &[u8]| resumes_alike(source(&whole), source(bytes)).unwrap();
    assert!(is_alike(&whole));
    assert!(!is_alike(&without_metadata(&whole)));
    // Each line matters, except for the replacements, which no policy applies.
    for left_out in 0..lines.len() {
        let mut rest = lines.to_vec();
        let kind = rest.remove(left_out)["type"].take();
        assert_eq!(
            is_alike(&file(&rest)),
            kind == "content-replacement",
            "{kind}"
        );
    }
    // So does each word of a message, also on a branch that was left.
    for changed in [0, 4, 5] {
        let mut other = lines.to_vec();
        other[changed]["message"]["content"][0]["text"] = "x".into();
        assert!(!is_alike(&file(&other)));
    }
}

#[test]
fn generated_and_damaged_sessions_keep_what_they_resume() {
    let (mut compacted, mut caught, mut refused) = (0, 0, 0);
    for seed in 0..300 {
        let whole = match seed % 2 {
            0 => generate::tidy_session(seed),
            _ => generate::session(seed),
        };
        let (damaged, _) = several(&whole, seed);
        for bytes in [whole, damaged] {
            let Some(new) = check(&bytes) else {
                refused += 1;
                continue;
            };
            compacted += usize::from(new.len() < bytes.len());
            let careless = without_metadata(&new);
            let is_alike = resumes_alike(source(&new), source(&careless)).unwrap();
            caught += usize::from(!is_alike);
        }
    }
    assert!(
        compacted > 250 && caught > 350 && refused < 8,
        "{compacted} {caught} {refused}"
    );
}

#[test]
fn fixtures_and_the_corpus_keep_what_they_resume() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut folders = ["v1/pains", "v1/sessions", "client"]
        .map(|name| fixtures.join(name))
        .to_vec();
    folders.extend(shared().map(|shared| shared.join("corpus")));
    let mut compacted = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
                && std::fs::metadata(&path).unwrap().len() < 300_000
            {
                let bytes = std::fs::read(&path).unwrap();
                // A session of another agent is not repaired.
                if source(&bytes).check_messages().is_err() {
                    continue;
                }
                let new = check(&bytes);
                compacted += usize::from(new.is_some_and(|new| new.len() < bytes.len()));
            }
        }
    }
    assert!(compacted > 5, "{compacted}");
}
