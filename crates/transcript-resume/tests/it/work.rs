//! The work of the model on a path: files that it knows, calls that were denied, commits, its model.

use std::io::Write;

use serde_json::{Value, json};
use transcript_reader::{Bodies, Index, Source};
use transcript_resume::{FileAccess, KnownFile, PathState, Policy, Tree};

/// Builds a session line by line, each entry a child of the one before.
#[derive(Default)]
struct Lines {
    lines: Vec<Value>,
}

impl Lines {
    fn id(&self) -> String {
        format!("e{}", self.lines.len())
    }

    fn last(&self) -> Option<String> {
        let ids = self.lines.iter().rev();
        ids.filter_map(|line| line["uuid"].as_str())
            .map(str::to_owned)
            .next()
    }

    /// Adds an entry; returns its uuid.
    fn add(&mut self, mut entry: Value) -> String {
        let id = self.id();
        let seconds = self.lines.len() % 60;
        for (key, value) in [
            ("uuid", json!(id)),
            (
                "timestamp",
                json!(format!("2026-11-01T10:00:{seconds:02}Z")),
            ),
            ("sessionId", json!("s")),
        ] {
            entry[key] = value;
        }
        if entry.get("parentUuid").is_none() {
            entry["parentUuid"] = json!(self.last());
        }
        self.lines.push(entry);
        id
    }

    fn user(&mut self, text: &str) -> String {
        self.add(json!({"type": "user", "message": {"role": "user", "content": text}}))
    }

    fn call(&mut self, id: &str, tool: &str, input: Value) -> String {
        let mut block = json!({"type": "tool_use", "id": id, "name": tool});
        block["input"] = input;
        let message =
            json!({"id": format!("m-{id}"), "role": "assistant", "model": "m", "content": [block]});
        self.add(json!({"type": "assistant", "message": message}))
    }

    fn result(&mut self, id: &str, output: Value) -> String {
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": "done"});
        let message = json!({"role": "user", "content": [block]});
        let mut entry = json!({"type": "user", "message": message});
        entry["toolUseResult"] = output;
        self.add(entry)
    }

    fn read(&mut self, id: &str, path: &str, lines: (u64, u64, u64)) -> String {
        self.call(id, "Read", json!({"file_path": path}));
        let (start, count, total) = lines;
        self.result(id, json!({"type": "text", "file": {
            "filePath": path, "content": "x", "numLines": count, "startLine": start, "totalLines": total,
        }}))
    }

    fn edit(&mut self, id: &str, path: &str) -> String {
        self.call(id, "Edit", json!({"file_path": path}));
        self.result(id, json!({
            "filePath": path, "oldString": "a", "newString": "b", "originalFile": "a", "structuredPatch": [],
        }))
    }

    fn write(&mut self, id: &str, path: &str, content: &str) -> String {
        self.call(id, "Write", json!({"file_path": path}));
        self.result(
            id,
            json!({
                "type": "create", "filePath": path, "content": content, "structuredPatch": [],
            }),
        )
    }

    fn boundary(&mut self, kept: &[&str]) {
        let logical = self.last();
        let anchor = format!("e{}", self.lines.len() + 1);
        let mut metadata = json!({"trigger": "manual", "preTokens": 1});
        if let (Some(first), Some(last)) = (kept.first(), kept.last()) {
            metadata["preservedSegment"] =
                json!({"headUuid": first, "anchorUuid": anchor, "tailUuid": last});
            metadata["preservedMessages"] =
                json!({"anchorUuid": anchor, "uuids": kept, "allUuids": kept});
        }
        self.add(json!({
            "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
            "parentUuid": null, "logicalParentUuid": logical, "compactMetadata": metadata,
        }));
        self.add(json!({
            "type": "user", "isCompactSummary": true, "isVisibleInTranscriptOnly": true,
            "message": {"role": "user", "content": "the summary"},
        }));
    }

    fn state(&self) -> PathState {
        let texts = self.lines.iter().map(|line| line.to_string() + "\n");
        state_of(&texts.collect::<String>())
    }

    fn files(&self) -> Vec<KnownFile> {
        self.state().files.unwrap_or_default()
    }
}

fn state_of(text: &str) -> PathState {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let source = Source::open(file.path()).unwrap();
    let index = Index::load(&source).unwrap();
    let states = [Policy::Recover, Policy::Vendor].map(|policy| {
        let tree = Tree::new(&index, policy);
        let mut bodies = Bodies::new(&source);
        PathState::read(&tree, &tree.path(), &mut bodies).unwrap().0
    });
    let [recover, vendor] = states;
    assert_eq!(recover, vendor, "of an undamaged file");
    recover
}

/// Returns path, access, range, whole, in context of each file.
fn told(files: &[KnownFile]) -> Vec<(&str, FileAccess, Option<u64>, bool, bool)> {
    let files = files.iter();
    let told = files.map(|file| {
        (
            file.path.as_str(),
            file.access,
            file.num_lines,
            file.is_whole,
            file.in_context,
        )
    });
    told.collect()
}

use FileAccess::{Read, Write as Wrote};

#[test]
fn each_file_is_known_once_by_its_last_access_in_their_order() {
    let mut lines = Lines::default();
    lines.user("go");
    lines.read("c1", "/w/a", (1, 9, 9));
    lines.read("c2", "/w/b", (5, 3, 90));
    let last = lines.read("c3", "/w/a", (2, 4, 9));
    let files = lines.files();
    assert_eq!(
        told(&files),
        [
            ("/w/b", Read, Some(3), false, true),
            ("/w/a", Read, Some(4), false, true)
        ]
    );
    let expected = json!({
        "path": "/w/a", "access": "read", "call": "c3", "uuid": last, "line": 7,
        "timestamp": "2026-11-01T10:00:06Z", "startLine": 2, "numLines": 4, "totalLines": 9,
        "isWhole": false, "inContext": true,
    });
    assert_eq!(serde_json::to_value(&files[1]).unwrap(), expected);
}

#[test]
fn a_change_keeps_the_known_range_of_a_file_and_a_write_is_all_of_it() {
    let mut lines = Lines::default();
    lines.user("go");
    lines.read("c1", "/w/whole", (1, 9, 9));
    lines.read("c2", "/w/part", (1, 9, 90));
    lines.edit("c3", "/w/whole");
    lines.edit("c4", "/w/part");
    lines.edit("c5", "/w/unread");
    lines.write("c6", "/w/new", "one\ntwo\n");
    lines.call("c7", "NotebookEdit", json!({}));
    lines.result("c7", json!({"new_source": "x", "edit_mode": "replace", "notebook_path": "/w/n.ipynb", "error": ""}));
    let files = lines.files();
    assert_eq!(
        told(&files),
        [
            ("/w/whole", Wrote, Some(9), true, true),
            ("/w/part", Wrote, Some(9), false, true),
            ("/w/unread", Wrote, None, false, true),
            ("/w/new", Wrote, Some(2), true, true),
            ("/w/n.ipynb", Wrote, None, false, true),
        ]
    );
    assert_eq!(files[0].call.as_deref(), Some("c3"));
}

#[test]
fn calls_that_failed_or_are_of_other_tools_give_no_file() {
    let mut lines = Lines::default();
    lines.user("go");
    lines.call("c1", "Read", json!({"file_path": "/w/a"}));
    lines.result("c1", json!("Error: no such file"));
    lines.call("c2", "LSP", json!({}));
    lines.result("c2", json!({"operation": "hover", "filePath": "/w/a"}));
    lines.call("c3", "Write", json!({}));
    let failed =
        json!({"type": "tool_result", "tool_use_id": "c3", "content": "no", "is_error": true});
    lines.add(json!({
        "type": "user", "message": {"role": "user", "content": [failed]},
        "toolUseResult": {"filePath": "/w/a", "content": "", "structuredPatch": []},
    }));
    assert_eq!(lines.state().files, None);
}

#[test]
fn a_stub_and_media_take_what_the_result_does_not_repeat_from_the_call() {
    let mut lines = Lines::default();
    lines.user("go");
    lines.read("c1", "/w/a", (1, 9, 9));
    lines.call("c2", "Read", json!({"file_path": "/w/a"}));
    lines.result(
        "c2",
        json!({"type": "file_unchanged", "file": {"filePath": "/w/a"}}),
    );
    lines.call("c3", "Read", json!({"file_path": "/w/p.png"}));
    lines.result(
        "c3",
        json!({"type": "image", "file": {"base64": "aGk=", "type": "image/png"}}),
    );
    lines.call("c4", "Read", json!({"file_path": "/w/lost"}));
    lines.result(
        "c4",
        json!({"type": "file_unchanged", "file": {"filePath": "/w/lost"}}),
    );
    let files = lines.files();
    assert_eq!(
        told(&files),
        [
            ("/w/a", Read, Some(9), true, true),
            ("/w/p.png", Read, None, true, true),
            ("/w/lost", Read, None, false, false),
        ]
    );
    assert_eq!(files[0].call.as_deref(), Some("c2"));
}

#[test]
fn attachments_count_as_far_as_they_contain_the_text_of_a_file() {
    let mut lines = Lines::default();
    lines.user("go");
    let attachment = |lines: &mut Lines, attachment: Value| {
        lines.add(json!({"type": "attachment", "attachment": attachment}))
    };
    let text = |total: u64| {
        json!({"type": "text", "file": {
            "filePath": "/w/a", "content": "x", "numLines": 2, "startLine": 1, "totalLines": total,
        }})
    };
    let uuid = attachment(
        &mut lines,
        json!({"type": "file", "filename": "/w/a", "content": text(2)}),
    );
    attachment(
        &mut lines,
        json!({"type": "nested_memory", "path": "/w/CLAUDE.md",
        "content": {"path": "/w/CLAUDE.md", "content": "be brief"}}),
    );
    attachment(
        &mut lines,
        json!({"type": "selected_lines_in_ide", "filename": "/w/s",
        "lineStart": 3, "lineEnd": 5, "content": "x"}),
    );
    attachment(
        &mut lines,
        json!({"type": "compact_file_reference", "filename": "/w/long"}),
    );
    attachment(
        &mut lines,
        json!({"type": "edited_text_file", "filename": "/w/a", "snippet": "x"}),
    );
    attachment(
        &mut lines,
        json!({"type": "opened_file_in_ide", "filename": "/w/open"}),
    );
    lines.user("and?");
    let files = lines.files();
    assert_eq!(
        told(&files),
        [
            ("/w/CLAUDE.md", Read, Some(1), true, true),
            ("/w/s", Read, Some(3), false, true),
            ("/w/long", Read, None, false, false),
            ("/w/a", Read, Some(2), true, true),
        ]
    );
    assert_eq!(files[3].call, None);
    assert_ne!(files[3].uuid, Some(uuid), "the later attachment counts");
}

#[test]
fn only_preserved_files_from_before_a_compaction_are_in_the_context() {
    let mut lines = Lines::default();
    lines.user("go");
    lines.read("c1", "/w/gone", (1, 9, 9));
    lines.read("c2", "/w/edited", (1, 9, 9));
    lines.call("c3", "Read", json!({}));
    let call = lines.last().unwrap();
    let kept = lines.result(
        "c3",
        json!({"type": "text", "file": {
        "filePath": "/w/kept", "numLines": 4, "startLine": 1, "totalLines": 4}}),
    );
    lines.boundary(&[&call, &kept]);
    lines.edit("c4", "/w/edited");
    lines.write("c5", "/w/new", "x");
    assert_eq!(
        told(&lines.files()),
        [
            ("/w/gone", Read, Some(9), true, false),
            ("/w/kept", Read, Some(4), true, true),
            ("/w/edited", Wrote, Some(9), true, false),
            ("/w/new", Wrote, Some(1), true, true),
        ]
    );
    // A second compaction, which preserves nothing.
    lines.boundary(&[]);
    lines.user("and?");
    let files = lines.files();
    assert_eq!(files.len(), 4);
    assert!(files.iter().all(|file| !file.in_context), "{files:?}");
}

#[test]
fn a_microcompaction_removes_the_texts_of_the_calls_that_it_names() {
    let mut lines = Lines::default();
    lines.user("go");
    lines.read("c1", "/w/a", (1, 9, 9));
    lines.read("c2", "/w/b", (1, 9, 9));
    lines.write("c3", "/w/c", "x");
    lines.add(json!({
        "type": "system", "subtype": "microcompact_boundary", "content": "Context microcompacted",
        "microcompactMetadata": {"compactedToolIds": ["c1"], "clearedAttachmentUUIDs": []},
    }));
    lines.edit("c4", "/w/a");
    lines.read("c5", "/w/b", (1, 9, 9));
    assert_eq!(
        told(&lines.files()),
        [
            ("/w/c", Wrote, Some(1), true, true),
            ("/w/a", Wrote, Some(9), true, false),
            ("/w/b", Read, Some(9), true, true),
        ]
    );
}

#[test]
fn files_of_an_abandoned_branch_are_not_known() {
    let mut lines = Lines::default();
    let start = lines.user("go");
    lines.read("c1", "/w/a", (1, 9, 9));
    lines.add(json!({
        "type": "user", "parentUuid": start, "message": {"role": "user", "content": "again"},
    }));
    lines.read("c2", "/w/b", (1, 9, 9));
    assert_eq!(told(&lines.files()), [("/w/b", Read, Some(9), true, true)]);
}

#[test]
fn results_of_parallel_calls_before_a_compaction_are_found() {
    let mut lines = Lines::default();
    lines.user("go");
    let first = lines.call("c1", "Read", json!({}));
    let second = lines.call("c2", "Read", json!({}));
    let output = |path: &str| {
        json!({"type": "text", "file": {
            "filePath": path, "numLines": 1, "startLine": 1, "totalLines": 1}})
    };
    for (call, path, parent) in [("c1", "/w/a", first), ("c2", "/w/b", second)] {
        let block = json!({"type": "tool_result", "tool_use_id": call, "content": "x"});
        lines.add(json!({
            "type": "user", "parentUuid": parent, "toolUseResult": output(path),
            "message": {"role": "user", "content": [block]},
        }));
    }
    lines.boundary(&[]);
    lines.user("and?");
    let files = lines.files();
    let paths: Vec<_> = files.iter().map(|file| &file.path).collect();
    assert_eq!(paths, ["/w/a", "/w/b"]);
}

#[test]
fn denials_say_which_call_how_and_why() {
    let mut lines = Lines::default();
    lines.user("go");
    let deny = |lines: &mut Lines, id: &str, text: &str, kind: Option<&str>| {
        lines.call(id, "Bash", json!({}));
        let block =
            json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": true});
        let mut entry = json!({"type": "user", "message": {"role": "user", "content": [block]}});
        if let Some(kind) = kind {
            entry["toolDenialKind"] = json!(kind);
        }
        lines.add(entry);
    };
    let rejected = "The user doesn't want to proceed with this tool use. The tool use was rejected \
                    (eg. if it was a file edit, the new_string was NOT written to the file).";
    deny(
        &mut lines,
        "c1",
        &format!("{rejected} STOP what you are doing."),
        None,
    );
    deny(
        &mut lines,
        "c2",
        &format!("{rejected} To tell you how to proceed, the user said:\nuse rg"),
        None,
    );
    deny(
        &mut lines,
        "c3",
        "Permission for this action was denied by the Claude Code auto mode classifier. Reason: it \
         publishes. If you have other tasks that don't depend on this action, continue.",
        None,
    );
    deny(&mut lines, "c4", "Blocked", Some("hook-blocked"));
    deny(&mut lines, "c5", "exit code 1", None);
    let denials = lines.state().denials.unwrap();
    let told: Vec<_> = denials
        .iter()
        .map(|denial| {
            (
                denial.call.as_deref().unwrap(),
                denial.kind.as_str(),
                denial.reason.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("c1", "user-rejected", None),
            ("c2", "user-rejected", Some("use rg")),
            ("c3", "auto-mode-denied", Some("it publishes")),
            ("c4", "hook-blocked", None),
        ]
    );
    assert_eq!(denials[0].tool.as_deref(), Some("Bash"));
    assert_eq!(denials[0].line, Some(3));
}

#[test]
fn commits_are_those_that_the_client_recognised() {
    let mut lines = Lines::default();
    lines.user("go");
    for (call, kind) in [
        ("c1", "committed"),
        ("c2", "amended"),
        ("c3", "cherry-picked"),
    ] {
        lines.call(call, "Bash", json!({}));
        let commit = json!({"kind": kind, "sha": "abc"});
        lines.result(
            call,
            json!({"stdout": "", "interrupted": false, "gitOperation": {"commit": commit}}),
        );
    }
    lines.call("c4", "Bash", json!({}));
    lines.result(
        "c4",
        json!({"stdout": "", "gitOperation": {"push": {"branch": "main"}}}),
    );
    assert_eq!(lines.state().commits, Some(2));
    lines.boundary(&[]);
    lines.user("and?");
    assert_eq!(
        lines.state().commits,
        Some(2),
        "also those before a compaction"
    );
}

#[test]
fn the_model_is_what_the_last_command_chose_and_fallbacks_are_told() {
    let choose = |lines: &mut Lines, arguments: &str, output: &str| {
        lines.user(&format!(
            "<command-name>/model</command-name>\n<command-message>model</command-message>\n\
             <command-args>{arguments}</command-args>"
        ));
        lines.user(&format!(
            "<local-command-stdout>{output}</local-command-stdout>"
        ));
    };
    let mut lines = Lines::default();
    lines.user("go");
    assert_eq!(lines.state().model_override, None);
    choose(&mut lines, "", "Set model to \u{1b}[1mOpus 4.6\u{1b}[22m");
    assert_eq!(lines.state().model_override.as_deref(), Some("Opus 4.6"));
    choose(
        &mut lines,
        "haiku",
        "Set model to \u{1b}[1mHaiku 4.5\u{1b}[22m",
    );
    assert_eq!(lines.state().model_override.as_deref(), Some("haiku"));
    choose(&mut lines, "nonsense", "Model 'nonsense' not found");
    assert_eq!(lines.state().model_override.as_deref(), Some("haiku"));
    lines.boundary(&[]);
    lines.user("and?");
    assert_eq!(lines.state().model_override.as_deref(), Some("haiku"));
    choose(
        &mut lines,
        "",
        "Set model to \u{1b}[1mSonnet 4.5 (default)\u{1b}[22m",
    );
    assert_eq!(lines.state().model_override, None);
    assert_eq!(lines.state().model_fallback, None);
    lines.add(json!({
        "type": "system", "subtype": "model_refusal_fallback", "trigger": "refusal",
        "originalModel": "a", "fallbackModel": "b", "content": "Switched",
    }));
    let fallback = lines.state().model_fallback.unwrap();
    assert_eq!(fallback.fallback_model.as_deref(), Some("b"));
    lines.user("thanks");
    assert_eq!(lines.state().model_fallback, Some(fallback));
}
