//! `docs/operations.json` is the schema of all operations, and what operations return is as it says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Value, json};
use transcript_archive::{Archive, CaptureOptions};
use transcript_ops::Call;
use transcript_ops::schema::document;

use crate::helpers::{Kept, make_store, run};

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
fn every_operation_and_every_option_is_described() {
    let document = document();
    let operations = document["operations"].as_object().unwrap();
    assert!(operations.len() >= 21);
    for (name, operation) in operations {
        assert!(operation["description"].is_string(), "{name}");
        let records = operation["records"].as_array().unwrap();
        assert_eq!(records.is_empty(), operation["returns"] == "none", "{name}");
        let options = operation["options"]["properties"].as_object().unwrap();
        for (option, schema) in options.iter().filter(|(option, _)| *option != "function") {
            assert!(schema["description"].is_string(), "{name}: {option}");
        }
    }
}

/// Runs operations, and checks their records against the schema.
struct Checked {
    document: Value,
    /// The operations that ran, with the types of their records that were written.
    ran: BTreeMap<String, BTreeSet<usize>>,
}

impl Checked {
    fn new() -> Self {
        Self {
            document: document(),
            ran: BTreeMap::new(),
        }
    }

    fn types(&self, name: &str) -> &[Value] {
        let types = &self.document["operations"][name]["records"];
        types.as_array().unwrap()
    }

    /// Runs an operation. Returns the number of its records; `None` if it fails.
    fn run(&mut self, call: &Value) -> Option<usize> {
        let name = call["function"].as_str().unwrap();
        let parsed = Call::parse(&call.to_string()).unwrap();
        let mut kept = Kept::default();
        let context = parsed.place.context().unwrap();
        let result = run(&parsed.operation, &context, &mut kept);
        // A field that no type has is a mistake, too.
        let types = self.types(name).iter().map(|of| {
            let closed = json!({
                "allOf": [of],
                "unevaluatedProperties": false,
                "$defs": self.document["$defs"],
            });
            jsonschema::validator_for(&closed).unwrap()
        });
        let types: Vec<_> = types.collect();
        let mut written: BTreeSet<usize> = BTreeSet::new();
        for record in kept.0.iter().flatten() {
            let of: Vec<_> = (0..types.len())
                .filter(|of| types[*of].is_valid(record))
                .collect();
            let errors = || types.iter().flat_map(|of| of.iter_errors(record));
            let errors = || errors().map(|error| error.to_string()).collect::<Vec<_>>();
            assert!(!of.is_empty(), "{name}: {:?}", errors());
            // A refusal can also be parsed as a report.
            written.extend(of.last());
        }
        let is_ok = result.is_ok();
        match self.document["operations"][name]["returns"]
            .as_str()
            .unwrap()
        {
            "none" => assert_eq!(kept.0.len(), 0, "{name}"),
            "one" => assert_eq!(kept.0.len(), usize::from(is_ok), "{name}"),
            _ => {}
        }
        self.ran.entry(name.to_owned()).or_default().extend(written);
        is_ok.then_some(kept.0.len())
    }
}

#[test]
fn the_records_of_every_operation_have_the_documented_form() {
    let mut checked = Checked::new();
    let mut files = Vec::new();
    add_sessions(&workspace().join("fixtures"), &mut files);
    assert!(files.len() > 20);
    for name in ["entries", "tree", "request", "verify", "repair"] {
        let records = files
            .iter()
            .filter_map(|file| checked.run(&json!({ "function": name, "session": file })));
        // Some fixtures are files of other kinds, which are refused.
        assert!(records.count() * 10 > files.len() * 9, "{name}");
    }
    for file in &files {
        checked
            .run(&json!({ "function": "follow", "session": file, "once": true, "changes": true }));
    }

    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("projects");
    let id = "5e55a1d0-0000-4000-8000-000000000001";
    let torn = "5e55a1d0-0000-4000-8000-000000000002";
    make_store(&root.join("-work-app"), id, torn);
    let page = folder.path().join("page.html");
    let mut count = |name: &str, options: Value| {
        let mut call = options;
        call["function"] = json!(name);
        if name != "redact" {
            call["root"] = json!(root);
        }
        checked.run(&call).unwrap_or_else(|| panic!("{name} fails"))
    };
    assert_eq!(count("listSessions", json!({})), 2);
    let archive = folder.path().join("archive");
    let mut packed = Archive::open_or_create(&archive).unwrap();
    packed.capture(&root, &CaptureOptions::new()).unwrap();
    assert_eq!(count("listArchived", json!({ "archive": archive })), 2);
    assert_eq!(count("list", json!({ "sidechains": true })), 2);
    assert_eq!(count("list", json!({ "limit": 1, "by": "project" })), 1);
    assert_eq!(count("list", json!({ "since": "2026-01-02" })), 0);
    assert_eq!(count("getSessionInfo", json!({ "sessionId": id })), 1);
    assert_eq!(count("getSessionMessages", json!({ "sessionId": id })), 2);
    assert_eq!(count("listSubagents", json!({ "sessionId": id })), 1);
    let agent = json!({ "sessionId": id, "agentId": "a1" });
    assert_eq!(count("getSubagentMessages", agent), 1);
    assert!(count("search", json!({ "query": "mat", "cache": false })) > 1);
    let files = json!({ "query": "mat", "cache": false, "output": "files" });
    assert!(count("search", files) > 1);
    assert_eq!(
        count("usage", json!({ "by": ["model"], "cache": false })),
        2
    );
    let one = json!({ "by": ["model"], "cache": false, "in": [id] });
    assert!(count("usage", one) > 1);
    assert!(count("watch", json!({ "from": "start", "once": true })) > 2);
    assert_eq!(count("export", json!({ "session": id, "out": page })), 1);
    assert_eq!(
        count("repair", json!({ "session": torn, "keepId": true })),
        1
    );
    assert_eq!(count("repair", json!({ "session": torn, "undo": true })), 1);
    assert_eq!(count("forkSession", json!({ "sessionId": id })), 1);
    assert_eq!(count("listSessions", json!({})), 3);
    let fork = json!({ "session": id, "at": "1", "title": "Copy" });
    assert_eq!(count("fork", fork), 1);
    assert_eq!(count("items", json!({ "session": id })), 1);
    let handed = json!({ "session": id, "to": "codex", "targetHome": folder.path() });
    assert_eq!(count("handOver", handed), 1);
    let moved = json!({ "old": "/work/app", "new": "/work/new" });
    assert_eq!(count("move", moved.clone()), 1);
    let undo = json!({ "old": "/work/app", "new": "/work/new", "undo": true });
    assert_eq!(count("move", undo), 1);
    count("renameSession", json!({ "sessionId": id, "title": "Keys" }));
    count("tagSession", json!({ "sessionId": id, "tag": "house" }));
    count("setArchived", json!({ "sessionId": id, "archived": true }));
    count("deleteSession", json!({ "sessionId": id }));
    assert_eq!(count("redact", json!({ "text": "x" })), 1);

    let operations = checked.document["operations"].as_object().unwrap();
    for name in operations.keys() {
        let written = checked.ran.get(name).map(BTreeSet::len);
        let types = checked.types(name).len();
        assert_eq!(
            written,
            Some(types),
            "{name}: types of records that a run writes"
        );
    }
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
