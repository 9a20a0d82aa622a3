//! Sessions handed over to other agents, as an operation.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use transcript_ops::hand_over::{AGENTS, FILE_FORMATS, HandOverSettings, convert};
use transcript_ops::sink::Stop;
use transcript_ops::{Call, Failure};

use crate::helpers::{Kept, make_store, run};

const ID: &str = "5e55a1d0-0000-4000-8000-000000000001";
const TORN: &str = "5e55a1d0-0000-4000-8000-000000000002";

/// Runs the operation on a session of a new store, and returns its record.
fn hand_over(folder: &Path, options: &Value) -> Result<Value, Failure> {
    let root = folder.join("projects");
    if !root.exists() {
        make_store(&root.join("-work-app"), ID, TORN);
    }
    let mut call = json!({ "function": "handOver", "session": ID, "root": root });
    for (name, value) in options.as_object().unwrap() {
        call[name] = value.clone();
    }
    let call = Call::parse(&call.to_string())?;
    let mut kept = Kept::default();
    match run(&call.operation, &call.place.context()?, &mut kept) {
        Ok(()) => Ok(kept.0.remove(0).unwrap()),
        Err(Stop::Failed(failure)) => Err(failure),
        Err(Stop::Closed) => unreachable!("the sink takes all records"),
    }
}

#[test]
fn every_target_writes_the_session_into_the_named_folder() {
    for target in AGENTS.into_iter().chain(FILE_FORMATS) {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        fs::create_dir(&home).unwrap();
        let options = json!({ "to": target, "targetHome": home, "write": true });
        let record = hand_over(folder.path(), &options).unwrap();
        assert_eq!(record["sourceAgent"], "claude-code");
        assert_eq!(record["sourceSessionId"], ID);
        assert_eq!(record["cwd"], "/work/app");
        assert_eq!(
            record["report"]["models"],
            json!(["claude-opus-4-6"]),
            "{target}"
        );
        assert_eq!(record["report"]["items"], 2);
        let main = record["files"][0]["path"].as_str().unwrap();
        let text = fs::read_to_string(main).unwrap();
        assert!(
            text.contains("Where is the key?") && text.contains("Under the mat."),
            "{text}"
        );
        assert!(
            !text.contains("claude-opus"),
            "the model is not named: {text}"
        );
    }
}

#[test]
fn a_failure_says_what_is_wrong_and_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let kind = |options: Value| hand_over(folder.path(), &options).unwrap_err().kind;
    assert_eq!(
        kind(json!({ "to": "codex", "targetHome": home, "write": true })),
        "not-found"
    );
    assert!(!home.exists());
    fs::create_dir(&home).unwrap();
    for (to, named) in [("opencode", "OpenCode"), ("other", "\"other\"")] {
        let failure = hand_over(folder.path(), &json!({ "to": to })).unwrap_err();
        assert_eq!(failure.named_option(), Some("to"));
        assert!(failure.message.contains(named), "{failure}");
        assert!(
            failure.message.contains("claude-code, codex, pi"),
            "{failure}"
        );
    }
    let failure = hand_over(folder.path(), &json!({ "to": "atif" })).unwrap_err();
    assert_eq!(failure.named_option(), Some("targetHome"));
    let options = json!({ "to": "codex", "targetHome": home, "leaf": "beef-beef" });
    assert_eq!(kind(options), "unknown-entry");
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
}

#[test]
fn a_text_that_the_agent_wrote_as_a_prompt_and_a_summary_keep_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let line = |number: u32, parent: Option<u32>, more: Value| {
        let uuid = |number| format!("a0000000-0000-4000-8000-00000000000{number}");
        let mut line = json!({
            "uuid": uuid(number), "parentUuid": parent.map(uuid), "sessionId": ID, "cwd": "/work/app",
            "timestamp": format!("2026-01-01T00:00:0{number}.000Z"), "version": "2.1.0",
        });
        for (name, value) in more.as_object().unwrap() {
            line[name] = value.clone();
        }
        line.to_string()
    };
    let text = |role: &str, text: &str| json!({ "role": role, "content": text });
    let prompt = |text_: &str| json!({ "type": "user", "message": text("user", text_) });
    let marked = |text_: &str, mark: &str| {
        let mut prompt = prompt(text_);
        prompt[mark] = json!(true);
        prompt
    };
    let boundary = json!({ "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
        "logicalParentUuid": "a0000000-0000-4000-8000-000000000001", "compactMetadata": { "trigger": "manual", "preTokens": 5 } });
    let lines = [
        line(1, None, prompt("before")),
        line(2, None, boundary),
        line(3, Some(2), marked("the summary", "isCompactSummary")),
        line(4, Some(3), marked("text of a skill", "isMeta")),
        line(5, Some(4), prompt("after")),
    ];
    let project = folder.path().join("projects/-work-app");
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join(format!("{ID}.jsonl")), lines.join("\n") + "\n").unwrap();
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    let options = json!({ "to": "codex", "targetHome": home, "write": true });
    let record = hand_over(folder.path(), &options).unwrap();
    let rollout = fs::read_to_string(record["files"][0]["path"].as_str().unwrap()).unwrap();
    let of = |kind: &str| rollout.lines().filter(|line| line.contains(kind)).count();
    assert_eq!(of("\"compacted\""), 1, "{rollout}");
    assert!(!rollout.contains("before"), "{rollout}");
    let changed = record["report"]["changed"].as_array().unwrap();
    let changes: Vec<_> = changed
        .iter()
        .map(|one| (&one["item"], &one["change"]))
        .collect();
    assert_eq!(changes, [(&json!(1), &json!("promptOfAgent"))], "{record}");
}

#[test]
fn a_session_of_another_agent_ends_at_the_entry_that_is_named_also_on_a_branch() {
    const PI: &str = "10000000-0000-4000-8000-000000000001";
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("pi");
    let sessions = home.join("sessions/--w--");
    fs::create_dir_all(&sessions).unwrap();
    let message = |id: &str, parent: Option<&str>, role: &str, text: &str| {
        json!({ "type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-02T03:04:05.678Z",
            "message": { "role": role, "content": [{ "type": "text", "text": text }] } })
    };
    let lines = [
        json!({ "type": "session", "id": PI, "timestamp": "2026-01-02T03:04:05.678Z", "cwd": "/w" }),
        message("a", None, "user", "U1"),
        message("b", Some("a"), "assistant", "A1"),
        message("c", Some("b"), "user", "U2 rewound"),
        message("d", Some("b"), "user", "U3"),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(sessions.join("now_pi.jsonl"), text).unwrap();
    let call = json!({ "function": "entries", "session": PI, "root": home, "agent": "pi" });
    let call = Call::parse(&call.to_string()).unwrap();
    let context = call.place.context().unwrap();
    let shown = context.find(Path::new(PI), None).unwrap().path;
    let shown = context.read_disk().read(&shown, 1 << 20).unwrap();
    let shown = String::from_utf8(shown).unwrap();
    let line_of = |text: &str| {
        let place = shown.lines().position(|line| line.contains(text)).unwrap();
        (place + 1).to_string()
    };
    let texts = |leaf: Option<String>| {
        let settings = HandOverSettings {
            session: PI.into(),
            to: "acp".to_owned(),
            leaf,
            ..HandOverSettings::default()
        };
        let mut out = Vec::new();
        convert(&settings, &context, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let mut texts = Vec::new();
        for text in ["U1", "A1", "U2", "U3"] {
            texts.extend(out.contains(&format!("\"{text}")).then_some(text));
        }
        texts
    };
    assert_eq!(texts(None), ["U1", "A1", "U3"]);
    assert_eq!(texts(Some(line_of("A1"))), ["U1", "A1"]);
    assert_eq!(texts(Some(line_of("U2 rewound"))), ["U1", "A1", "U2"]);
}
