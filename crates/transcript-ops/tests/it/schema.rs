//! `docs/operations.json` is the schema of all operations, and what operations return is as it says.

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Value, json};
use transcript_ops::Call;
use transcript_ops::schema::document;
use transcript_ops::sink::{Result, Sink};

/// Keeps the records of an operation; `None` for those that a [`Value`] cannot hold.
#[derive(Default)]
struct Kept(Vec<Option<Value>>);

impl Sink for Kept {
    fn json(&mut self, record: &[u8]) -> Result<()> {
        // Valid JSON may have what a `Value` cannot hold: halves of surrogate pairs, numbers out of range.
        self.0.push(serde_json::from_slice(record).ok());
        Ok(())
    }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_documented_schema_is_that_of_the_types() {
    let path = workspace().join("docs/operations.json");
    let text = serde_json::to_string_pretty(&document()).unwrap() + "\n";
    if env::var_os("TRANSCRIPT_WRITE_DOCS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == found,
        "docs/operations.json is not what the types say; \
         TRANSCRIPT_WRITE_DOCS=1 cargo test -p transcript-ops schema writes it"
    );
}

#[test]
fn every_operation_has_options_and_records_in_the_schema() {
    let document = document();
    let operations = document["operations"].as_object().unwrap();
    assert!(operations.len() >= 21);
    let silent = [
        "renameSession",
        "tagSession",
        "deleteSession",
        "setArchived",
    ];
    for (name, operation) in operations {
        assert!(operation["description"].is_string(), "{name}");
        let records = operation["records"].as_array().unwrap();
        assert_eq!(
            records.is_empty(),
            silent.contains(&name.as_str()),
            "{name}"
        );
    }
}

/// Runs an operation, and checks its records against the schema. Returns their number; `None` if it fails.
fn check(call: &Value) -> Option<usize> {
    let document = document();
    let name = call["function"].as_str().unwrap();
    let operation = &document["operations"][name];
    let records = json!({ "anyOf": operation["records"], "$defs": document["$defs"] });
    let records = jsonschema::validator_for(&records).unwrap();
    let call = Call::parse(&call.to_string()).unwrap();
    let mut kept = Kept::default();
    let context = call.place.context().unwrap();
    let ran = call.operation.run(&context, &mut kept);
    for record in kept.0.iter().flatten() {
        let errors: Vec<_> = records
            .iter_errors(record)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
    ran.is_ok().then_some(kept.0.len())
}

#[test]
fn the_records_of_every_operation_have_the_documented_form() {
    let root = workspace().join("fixtures");
    let mut files = Vec::new();
    add_sessions(&root, &mut files);
    assert!(files.len() > 20);
    for name in ["entries", "request", "verify", "repair"] {
        let records = files
            .iter()
            .filter_map(|file| check(&json!({ "function": name, "session": file })));
        // Some fixtures are files of other kinds, which are refused.
        assert!(records.count() * 10 > files.len() * 9, "{name}");
    }
}

#[test]
fn the_records_of_operations_on_a_store_have_the_documented_form() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("projects");
    let project = root.join("-work-app");
    fs::create_dir_all(&project).unwrap();
    let id = "5e55a1d0-0000-4000-8000-000000000001";
    let line = json!({
        "type": "user", "uuid": "a0000000-0000-4000-8000-000000000001", "parentUuid": null,
        "sessionId": id, "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/work/app", "version": "2.1.0",
        "message": { "role": "user", "content": "Where is the key?" },
    });
    let answer = json!({
        "type": "assistant", "uuid": "a0000000-0000-4000-8000-000000000002",
        "parentUuid": "a0000000-0000-4000-8000-000000000001", "sessionId": id,
        "timestamp": "2026-01-01T00:00:01.000Z", "requestId": "req_1",
        "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-6",
            "content": [{ "type": "text", "text": "Under the mat." }],
            "usage": { "input_tokens": 10, "output_tokens": 5 },
        },
    });
    fs::write(
        project.join(format!("{id}.jsonl")),
        format!("{line}\n{answer}\n"),
    )
    .unwrap();

    let with_root = |mut call: Value| {
        call["root"] = json!(root);
        check(&call)
    };
    assert_eq!(with_root(json!({ "function": "listSessions" })), Some(1));
    assert_eq!(
        with_root(json!({ "function": "getSessionInfo", "sessionId": id })),
        Some(1)
    );
    assert_eq!(
        with_root(json!({ "function": "getSessionMessages", "sessionId": id })),
        Some(2)
    );
    assert_eq!(
        with_root(json!({ "function": "search", "query": "mat", "cache": false })),
        Some(2)
    );
    assert_eq!(
        with_root(json!({ "function": "usage", "by": ["model"], "cache": false })),
        Some(2)
    );
    let page = folder.path().join("page.html");
    assert_eq!(
        with_root(json!({ "function": "export", "session": id, "format": "html", "out": page })),
        Some(1)
    );
    assert_eq!(
        with_root(json!({ "function": "forkSession", "sessionId": id })),
        Some(1)
    );
    assert_eq!(with_root(json!({ "function": "listSessions" })), Some(2));
    assert_eq!(
        check(&json!({ "function": "redact", "text": "x" })),
        Some(1)
    );
}

fn add_sessions(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_sessions(&path, files);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            files.push(path);
        }
    }
}
