//! The end of a turn, and the files of subagents.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use transcript_format::kind::EntryKind;
use transcript_format::lines::AGENT_META_CAP;
use transcript_format::make;
use transcript_testkit::fake_disk::{FakeDisk, Fault, Op};
use transcript_testkit::rng::Rng;
use transcript_writer::{
    AgentId, AgentMeta, Draft, ErrorKind, OnBusy, ResumePoint, TurnEnd, Writer,
};

use crate::fake::{PATH, known, open, open_with, options, soak, values};

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
        writer
            .end_turn(TurnEnd::new().prompt("How high?").lines(state()))
            .unwrap()
            .len(),
        3
    );
    assert_eq!(
        writer
            .end_turn(TurnEnd::new().prompt("How high?").lines(state()))
            .unwrap()
            .len(),
        0
    );

    let mut changed = state();
    changed[0] = line(&make::custom_title("Ebb"));
    assert_eq!(
        writer
            .end_turn(TurnEnd::new().prompt("How high?").lines(changed.clone()))
            .unwrap()
            .len(),
        1
    );

    // The leaf has changed, so the prompt is written again; the other lines are still visible.
    writer.append(Draft::user("And now?")).unwrap();
    assert_eq!(
        writer
            .end_turn(TurnEnd::new().prompt("And now?").lines(changed.clone()))
            .unwrap()
            .len(),
        1
    );

    // Whatever the length of the turn, all of them are in the last 64 KiB after it.
    for len in (60_000..70_000).step_by(97) {
        writer.append(Draft::user(&"x".repeat(len))).unwrap();
        writer
            .end_turn(TurnEnd::new().prompt("And now?").lines(changed.clone()))
            .unwrap();
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
fn the_end_of_a_turn_right_after_a_rewind_says_that_the_end_was_chosen() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    let target = writer.append(Draft::user("First")).unwrap().uuid.unwrap();
    writer.append(Draft::user("Second")).unwrap();
    writer.rewind(Some(target.clone())).unwrap();
    writer.end_turn(TurnEnd::new()).unwrap();
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
    writer.end_turn(TurnEnd::new().lines(state())).unwrap_err();
    assert_eq!(
        writer
            .end_turn(TurnEnd::new().lines(state()))
            .unwrap()
            .len(),
        3
    );
}

/// The part at the end of a file that other readers look at.
const WINDOW: usize = 64 << 10;

/// Returns the last line of each kind of state at the end of the file, without its session.
fn seen(bytes: &[u8]) -> BTreeMap<String, Value> {
    last_of_each_kind(&bytes[bytes.len().saturating_sub(WINDOW)..])
}

fn last_of_each_kind(bytes: &[u8]) -> BTreeMap<String, Value> {
    let values = values(bytes).into_iter().flatten();
    let state = values.filter_map(|mut value| {
        let kind = value["type"].as_str()?.to_owned();
        value.as_object_mut()?.remove("sessionId");
        EntryKind::from_name(&kind)
            .is_state()
            .then_some((kind, value))
    });
    state.collect()
}

/// Writes a line as another tool does, and ends turns with `len` bytes between.
fn as_other(disk: &FakeDisk, line: &Value) {
    disk.append_as_other(PATH, format!("{line}\n").as_bytes());
}

fn talk(writer: &Writer, len: usize) {
    for _ in 0..len / 5_000 {
        writer.append(Draft::user(&"x".repeat(5_000))).unwrap();
    }
}

fn title(disk: &FakeDisk) -> Value {
    seen(&disk.bytes(PATH).unwrap())
        .get("custom-title")
        .map_or(Value::Null, |line| line["customTitle"].clone())
}

#[test]
fn a_title_that_another_tool_set_355_kb_ago_is_seen_after_the_end_of_a_turn() {
    for is_open in [false, true] {
        let disk = FakeDisk::new(1);
        let writer = open(&disk);
        talk(&writer, 100_000);
        let line = json!({"type": "custom-title", "customTitle": "Ebb \u{e9}", "sessionId": "s-1"});
        as_other(&disk, &line);
        let writer = if is_open {
            writer
        } else {
            writer.close().unwrap();
            open(&disk)
        };
        talk(&writer, 355_000);
        assert_eq!(title(&disk), Value::Null);
        writer.end_turn(TurnEnd::new().prompt("Go on")).unwrap();
        assert_eq!(title(&disk), "Ebb \u{e9}", "{is_open}");
        let text = String::from_utf8(disk.bytes(PATH).unwrap()).unwrap();
        assert_eq!(text.matches(&line.to_string()).count(), 2, "word for word");
        // One turn later it is still visible, and is not written again.
        writer.append(Draft::user("More")).unwrap();
        assert_eq!(
            writer
                .end_turn(TurnEnd::new().prompt("More"))
                .unwrap()
                .len(),
            1
        );
    }
}

#[test]
fn a_session_that_is_opened_again_has_nothing_to_say_that_the_file_does_not() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    writer.append(Draft::user("How high?")).unwrap();
    writer
        .end_turn(TurnEnd::new().prompt("How high?").lines(state()))
        .unwrap();
    writer.close().unwrap();
    let before = disk.bytes(PATH).unwrap();
    for lines in [Vec::new(), state()] {
        // The last prompt is kept, also for a caller who does not know it.
        for prompt in [None, Some("How high?")] {
            let writer = open(&disk);
            let turn = TurnEnd::new().lines(lines.clone());
            let turn = match prompt {
                Some(prompt) => turn.prompt(prompt),
                None => turn,
            };
            assert_eq!(writer.end_turn(turn).unwrap(), []);
            writer.close().unwrap();
        }
    }
    assert_eq!(disk.bytes(PATH).unwrap(), before);

    // The same content with other members around it, in another order, escaped.
    let writer = open(&disk);
    let spelled = r#"{"sessionId":"x","customTitle":"T\u0069des","type":"custom-title"}"#;
    let spelled = Draft::entry(spelled).unwrap();
    assert_eq!(
        writer
            .end_turn(TurnEnd::new().lines(vec![spelled]))
            .unwrap(),
        []
    );
    let other = line(&make::custom_title("Tides").with("uuid", "one more"));
    assert_eq!(
        writer
            .end_turn(TurnEnd::new().lines(vec![other]))
            .unwrap()
            .len(),
        1
    );

    // The next turn ends without a prompt: the previous one is written with the new leaf.
    let next = writer.append(Draft::user("And now?")).unwrap();
    writer.end_turn(TurnEnd::new()).unwrap();
    let last = &seen(&disk.bytes(PATH).unwrap())["last-prompt"];
    assert_eq!(last["lastPrompt"], "How high?");
    assert_eq!(last["leafUuid"], next.uuid.unwrap().to_string());
}

#[test]
fn a_line_that_is_given_takes_the_place_of_the_one_of_its_kind() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    writer.append(Draft::user("How high?")).unwrap();
    // By `append`, by others, and by the end of a turn, of which the last line of a kind counts.
    writer.append(line(&make::tag("sea"))).unwrap();
    writer.append(line(&make::custom_title("Tides"))).unwrap();
    as_other(
        &disk,
        &json!({"type": "custom-title", "customTitle": "Ebb"}),
    );
    talk(&writer, 70_000);
    let two = vec![line(&make::tag("coast")), line(&make::tag("shore"))];
    assert_eq!(writer.end_turn(TurnEnd::new().lines(two)).unwrap().len(), 3);
    let state = seen(&disk.bytes(PATH).unwrap());
    assert_eq!(
        (&state["tag"]["tag"], title(&disk)),
        (&json!("shore"), json!("Ebb"))
    );
    // An empty title clears the title, and stays in force.
    writer.append(line(&make::custom_title(""))).unwrap();
    talk(&writer, 70_000);
    assert_eq!(writer.end_turn(TurnEnd::new()).unwrap().len(), 3);
    assert_eq!(title(&disk), "");
    // Lines that are not state are written each time.
    let link = || {
        vec![line(
            &make::metadata(EntryKind::PrLink).with("prNumber", 7u64),
        )]
    };
    assert_eq!(
        writer.end_turn(TurnEnd::new().lines(link())).unwrap().len(),
        1
    );
    assert_eq!(
        writer.end_turn(TurnEnd::new().lines(link())).unwrap().len(),
        1
    );
}

#[test]
fn a_title_set_by_others_while_the_writer_is_open_is_not_undone() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    writer.append(line(&make::custom_title("Tides"))).unwrap();
    talk(&writer, 70_000);
    // Nothing is appended in between: the end of the turn itself must check the file.
    as_other(
        &disk,
        &json!({"type": "custom-title", "customTitle": "Ebb"}),
    );
    writer.end_turn(TurnEnd::new()).unwrap();
    assert_eq!(title(&disk), "Ebb");
    // Without a newline; and more than is read.
    talk(&writer, 70_000);
    disk.append_as_other(PATH, br#"{"type":"custom-title","customTitle":"Flood"}"#);
    writer.end_turn(TurnEnd::new()).unwrap();
    assert_eq!(title(&disk), "Flood");
    writer.close().unwrap();
    let writer = open_with(&disk, &options(&disk).on_busy(OnBusy::Share));
    as_other(
        &disk,
        &json!({"type": "custom-title", "customTitle": "Neap"}),
    );
    disk.append_as_other(PATH, &b"{}\n".repeat(6 << 20));
    writer.end_turn(TurnEnd::new()).unwrap();
    assert_eq!(title(&disk), Value::Null, "what is not known is not said");
}

#[test]
fn state_that_would_fill_the_window_stays_where_it_is() {
    let disk = FakeDisk::new(1);
    let writer = open(&disk);
    let long = line(&make::custom_title(&"t".repeat(70_000)));
    writer
        .append_all(vec![long, line(&make::tag("sea"))])
        .unwrap();
    for _ in 0..3 {
        talk(&writer, 70_000);
        assert_eq!(writer.end_turn(TurnEnd::new()).unwrap().len(), 2);
        assert_eq!(seen(&disk.bytes(PATH).unwrap())["tag"]["tag"], "sea");
    }
}

/// The state lines of a session, by all writers.
struct Turns {
    rng: Rng,
    disk: FakeDisk,
    writer: Option<Writer>,
    reported: BTreeMap<String, Value>,
    carried: usize,
}

impl Turns {
    fn writer(&self) -> &Writer {
        self.writer.as_ref().unwrap()
    }

    /// Returns a state line with new or previous content.
    fn state(&mut self) -> Value {
        let word = format!("w{}", self.rng.below(4));
        let word = if self.rng.one_in(5) { "" } else { &word };
        let mut line = match self.rng.below(7) {
            0 | 1 => json!({"type": "custom-title", "customTitle": word}),
            2 => json!({"type": "ai-title", "aiTitle": word}),
            3 => json!({"type": "tag", "tag": word}),
            4 => json!({"type": "permission-mode", "permissionMode": word}),
            5 => json!({"type": "agent-name", "agentName": word.repeat(99)}),
            _ => {
                json!({"type": "cost-state", "totalCostUSD": 0.5, "modelUsage": {"m": {"x": word}}})
            }
        };
        self.reported
            .insert(line["type"].as_str().unwrap().to_owned(), line.clone());
        if self.rng.one_in(2) {
            line["sessionId"] = json!("s-1");
        }
        line
    }

    fn step(&mut self) {
        match self.rng.below(12) {
            0..4 => {
                let len = *self.rng.pick(&[10, 500, 9_000, 30_000, 66_000]);
                let text = "x".repeat(self.rng.below(len));
                self.writer().append(Draft::user(&text)).unwrap();
            }
            4 => {
                let line = Draft::entry(&self.state().to_string()).unwrap();
                let prompt = Draft::user("Beside it");
                self.writer().append_all(vec![line, prompt]).unwrap();
            }
            5 => {
                let line = Draft::entry(&self.state().to_string()).unwrap();
                self.writer().queue(line).unwrap();
                self.writer().flush().unwrap();
            }
            6 => {
                let line = self.state();
                as_other(&self.disk, &line);
            }
            7 => {
                self.writer.take().unwrap().close().unwrap();
                self.writer = Some(open(&self.disk));
            }
            8 => {
                let known = known(&self.disk.bytes(PATH).unwrap());
                let ids: Vec<_> = known.leaf.into_iter().collect();
                self.writer().rewind(ids.first().cloned()).unwrap();
            }
            _ => self.end_turn(),
        }
    }

    fn end_turn(&mut self) {
        let given: Vec<Value> = (0..self.rng.below(3)).map(|_| self.state()).collect();
        let drafts = || {
            given
                .iter()
                .map(|line| Draft::entry(&line.to_string()).unwrap())
        };
        let before = last_of_each_kind(&self.disk.bytes(PATH).unwrap_or_default());
        let written = self
            .writer()
            .end_turn(TurnEnd::new().prompt("Go on").lines(drafts()));
        let written = written.unwrap();
        let bytes = self.disk.bytes(PATH).unwrap();
        let mut seen = seen(&bytes);
        // All state is visible, with its last content.
        assert_eq!(seen, last_of_each_kind(&bytes));
        assert!(seen.remove("last-prompt").is_some());
        assert_eq!(seen, self.reported);
        for line in &written {
            let from = line.offset as usize;
            let line: Value =
                serde_json::from_slice(&bytes[from..from + line.len as usize]).unwrap();
            let kind = line["type"].as_str().unwrap();
            let is_given = given.iter().any(|given| given["type"] == *kind);
            self.carried +=
                usize::from(kind != "last-prompt" && !is_given && before.contains_key(kind));
        }
        // It is written once.
        assert_eq!(
            self.writer()
                .end_turn(TurnEnd::new().prompt("Go on").lines(drafts()))
                .unwrap(),
            []
        );
    }
}

#[test]
fn state_is_seen_after_every_turn_whichever_process_sets_it() {
    let (mut turns, mut carried) = (0, 0);
    for seed in 0..300 * soak() {
        let disk = FakeDisk::new(seed);
        let writer = open(&disk);
        let mut session = Turns {
            rng: Rng::new(seed),
            disk,
            writer: Some(writer),
            reported: BTreeMap::new(),
            carried: 0,
        };
        session.writer().append(Draft::user("First")).unwrap();
        for _ in 0..session.rng.range(10, 80) {
            session.step();
        }
        session.end_turn();
        turns += 1;
        carried += session.carried;
    }
    assert!(
        carried > 3 * turns,
        "{carried} lines were carried in {turns} sessions"
    );
}

#[test]
fn an_agent_has_a_file_and_a_chain_of_its_own() {
    let disk = FakeDisk::new(1);
    let session = Path::new(PATH);
    let agent = AgentId::new("a1b2").unwrap();
    let open = || {
        options(&disk)
            .open_agent(session, &agent, ResumePoint::default())
            .unwrap()
    };
    let writer = open();
    let first = writer.append(Draft::user("Look it up")).unwrap();
    // An entry that names its agent belongs to the same chain.
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
fn agent_metadata_is_replaced_whole() {
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

#[test]
fn agent_metadata_is_not_longer_than_readers_accept() {
    let disk = FakeDisk::new(1);
    let agent = AgentId::new("a1b2").unwrap();
    let write = |len: usize| {
        let meta = AgentMeta::new("explore", "toolu_1").description(&"x".repeat(len));
        options(&disk).write_agent_meta(Path::new(PATH), &agent, &meta)
    };
    write(0).unwrap();
    let path = agent.meta_path(Path::new(PATH));
    let most = AGENT_META_CAP - disk.bytes(&path).unwrap().len();
    write(most).unwrap();
    let kind = write(most + 1).unwrap_err().kind();
    assert_eq!(kind, ErrorKind::InvalidEntry);
    assert_eq!(disk.bytes(&path).unwrap().len(), AGENT_META_CAP);
    // A failed rename leaves nothing behind.
    disk.set(Fault::error(std::io::ErrorKind::PermissionDenied).at(Op::Rename, 1));
    write(1).unwrap_err();
    assert_eq!(disk.names(), [path]);
}

#[cfg(unix)]
#[test]
fn agent_metadata_is_readable_only_by_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let session = folder
        .path()
        .join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    let agent = AgentId::new("a1b2").unwrap();
    let options = transcript_writer::WriterOptions::new();
    for text in ["old", "new"] {
        let meta = AgentMeta::new("explore", "toolu_1").description(text);
        options.write_agent_meta(&session, &agent, &meta).unwrap();
    }
    let path = agent.meta_path(&session);
    let folder = path.parent().unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode(&path), mode(folder)], [0o600, 0o700]);
    assert_eq!(folder.read_dir().unwrap().count(), 1, "no other file stays");
}
