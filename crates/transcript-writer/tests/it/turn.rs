//! The end of a turn, and the files of subagents.

use std::path::Path;

use serde_json::{Value, json};
use transcript_format::make;
use transcript_testkit::fake_disk::{FakeDisk, Fault, Op};
use transcript_writer::{AgentId, AgentMeta, Draft, Known};

use crate::fake::{PATH, open, options, values};

fn line(entry: &make::NewEntry) -> Draft {
    Draft::try_from(entry).unwrap()
}

fn state() -> Vec<Draft> {
    vec![
        line(&make::custom_title("Tides")),
        line(&make::mode("normal")),
    ]
}

fn lines(disk: &FakeDisk, path: impl AsRef<Path>) -> Vec<Value> {
    let values = values(&disk.bytes(path).unwrap());
    values.into_iter().map(Option::unwrap).collect()
}

#[test]
fn the_end_of_a_turn_writes_what_changed_and_what_left_the_window() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    let prompt = writer.append(Draft::user("How high?")).unwrap();
    assert_eq!(
        writer.end_turn(Some("How high?"), state()).unwrap().len(),
        3
    );
    assert_eq!(
        writer.end_turn(Some("How high?"), state()).unwrap().len(),
        0
    );

    let mut changed = state();
    changed[0] = line(&make::custom_title("Ebb"));
    assert_eq!(
        writer
            .end_turn(Some("How high?"), changed.clone())
            .unwrap()
            .len(),
        1
    );

    // The leaf is another one: the prompt is written again, the others are still to be seen.
    writer.append(Draft::user("And now?")).unwrap();
    assert_eq!(
        writer
            .end_turn(Some("And now?"), changed.clone())
            .unwrap()
            .len(),
        1
    );

    // Whatever the turn was like, all of them stand in the last 64 KiB behind it.
    for len in (60_000..70_000).step_by(97) {
        writer.append(Draft::user(&"x".repeat(len))).unwrap();
        writer.end_turn(Some("And now?"), changed.clone()).unwrap();
        let bytes = disk.bytes(PATH).unwrap();
        let tail = bytes.len().saturating_sub(64 << 10);
        let tail = String::from_utf8(bytes[tail..].to_vec()).unwrap();
        for key in [
            "\n{\"type\":\"last-prompt\"",
            "\n{\"type\":\"custom-title\"",
            "\n{\"type\":\"mode\"",
        ] {
            assert!(tail.contains(key), "{len} {key}");
        }
    }
    let lines = lines(&disk, PATH);
    assert_eq!(lines[1]["leafUuid"], prompt.uuid.unwrap().to_string());
    assert_eq!(lines[1]["explicit"], Value::Null);
}

#[test]
fn the_end_of_a_turn_right_behind_a_rewind_says_that_the_end_was_chosen() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    let target = writer.append(Draft::user("First")).unwrap().uuid.unwrap();
    writer.append(Draft::user("Second")).unwrap();
    writer.rewind(Some(target.clone())).unwrap();
    writer.end_turn(None, Vec::new()).unwrap();
    let last = lines(&disk, PATH).pop().unwrap();
    assert_eq!(last["leafUuid"], target.to_string());
    assert_eq!(last["explicit"], true);
}

#[test]
fn an_end_of_turn_that_fails_is_written_the_next_time() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    writer.append(Draft::user("First")).unwrap();
    disk.set(Fault::error(std::io::ErrorKind::StorageFull).at(Op::Append, 1));
    writer.end_turn(None, state()).unwrap_err();
    assert_eq!(writer.end_turn(None, state()).unwrap().len(), 3);
}

#[test]
fn an_agent_has_a_file_and_a_chain_of_its_own() {
    let disk = FakeDisk::new(1);
    let session = Path::new(PATH);
    let agent = AgentId::new("a1b2").unwrap();
    let open = || {
        options(&disk)
            .open_agent(session, &agent, Known::default())
            .unwrap()
    };
    let writer = open();
    let first = writer.append(Draft::user("Look it up")).unwrap();
    // An entry that says by itself whose it is belongs to the same chain.
    let own = json!({"type": "user", "isSidechain": true, "agentId": "a1b2",
        "message": {"role": "user", "content": "x"}});
    let own = writer
        .append(Draft::entry(&own.to_string()).unwrap())
        .unwrap();
    assert_eq!(own.parent, first.uuid);
    assert_eq!(writer.leaf(), own.uuid);
    let path = session
        .with_extension("")
        .join("subagents/agent-a1b2.jsonl");
    assert_eq!(writer.path(), path);
    for line in lines(&disk, path) {
        assert_eq!(line["isSidechain"], true);
        assert_eq!(line["agentId"], "a1b2");
        assert_eq!(
            line["sessionId"],
            session.file_stem().unwrap().to_str().unwrap()
        );
    }
}

#[test]
fn the_id_of_an_agent_is_safe_in_a_path() {
    let long = "a".repeat(129);
    for id in [
        "", "..", "../x", "a/b", "a\\b", "a.b", "a b", "ä", "a\0", &*long,
    ] {
        assert!(AgentId::new(id).is_err(), "{id:?}");
    }
    for id in ["a", "acompact-1f_0", &long[1..]] {
        assert_eq!(AgentId::new(id).unwrap().as_str(), id);
    }
}

#[test]
fn what_is_said_of_an_agent_is_replaced_whole() {
    let session = Path::new(PATH);
    let agent = AgentId::new("a1b2").unwrap();
    let path = agent.meta_path(session);
    let meta = |text: &str| AgentMeta::new("explore", "toolu_1").description(text);
    let said =
        |text: &str| json!({"agentType": "explore", "toolUseId": "toolu_1", "description": text});
    let read =
        |disk: &FakeDisk| -> Value { serde_json::from_slice(&disk.bytes(&path).unwrap()).unwrap() };
    for seed in 0..20 {
        for operation in 1..4 {
            let disk = FakeDisk::new(seed);
            let options = options(&disk);
            options
                .write_agent_meta(session, &agent, &meta("old"))
                .unwrap();
            disk.set(Fault::kill().at_any(operation));
            let written = options.write_agent_meta(session, &agent, &meta("new"));
            let there = read(&disk);
            assert!(there == said("old") || there == said("new"), "{there}");
            if written.is_ok() {
                assert_eq!(there, said("new"));
            }
            disk.restart();
            let again = crate::fake::options(&disk);
            again
                .write_agent_meta(session, &agent, &meta("last"))
                .unwrap();
            assert_eq!(read(&disk), said("last"));
        }
    }
}

#[cfg(unix)]
#[test]
fn what_is_said_of_an_agent_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let session = folder
        .path()
        .join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    let agent = AgentId::new("a1b2").unwrap();
    let options = transcript_writer::Options::new();
    for text in ["old", "new"] {
        let meta = AgentMeta::new("explore", "toolu_1").description(text);
        options.write_agent_meta(&session, &agent, &meta).unwrap();
    }
    let path = agent.meta_path(&session);
    let folder = path.parent().unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!([mode(&path), mode(folder)], [0o600, 0o700]);
    assert_eq!(folder.read_dir().unwrap().count(), 1, "no other file stays");
}
