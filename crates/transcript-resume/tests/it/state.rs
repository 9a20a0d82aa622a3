//! The settings and the usage of a session.

use std::io::Write;

use serde_json::{Value, json};
use transcript_reader::{Bodies, Index, Source};
use transcript_resume::request::{Request, RequestOptions};
use transcript_resume::{PathState, Policy, Tree, Usage};

struct Read {
    request: Request,
    state: PathState,
    usage: Vec<Usage>,
}

fn request(lines: &[&str]) -> Read {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "{}", lines.join("\n")).unwrap();
    let source = Source::open(file.path()).unwrap();
    let index = Index::load(&source).unwrap();
    let tree = Tree::new(&index, Policy::Vendor);
    let (request, state, usage) = RequestOptions::new()
        .request_with_state(&tree, &mut Bodies::new(&source))
        .unwrap();
    Read {
        request,
        state,
        usage,
    }
}

fn state(lines: &[&str]) -> PathState {
    request(lines).state
}

const PROMPT: &str = r#"{"type":"user","uuid":"u1","parentUuid":null,"timestamp":"2026-11-01T10:00:00Z","cwd":"/w","gitBranch":"main","version":"2.1.1","permissionMode":"default","message":{"role":"user","content":"hi"}}"#;
const ANSWER: &str = r#"{"type":"assistant","uuid":"a1","parentUuid":"u1","timestamp":"2026-11-01T10:00:01Z","cwd":"/w/sub","gitBranch":"fix","version":"2.1.2","message":{"id":"m1","model":"claude-x","role":"assistant","content":[{"type":"text","text":"one"}],"usage":{"input_tokens":10,"output_tokens":1}}}"#;
const MORE_OF_IT: &str = r#"{"type":"assistant","uuid":"a2","parentUuid":"a1","timestamp":"2026-11-01T10:00:02Z","message":{"id":"m1","model":"claude-x","role":"assistant","content":[{"type":"text","text":"two"}],"usage":{"input_tokens":10,"output_tokens":25,"cache_read_input_tokens":0}}}"#;
const SYNTHETIC: &str = r#"{"type":"assistant","uuid":"a3","parentUuid":"a2","timestamp":"2026-11-01T10:00:03Z","message":{"id":"m2","model":"<synthetic>","role":"assistant","content":[{"type":"text","text":"No response requested."}],"usage":{"input_tokens":0,"output_tokens":0}}}"#;

#[test]
fn the_last_entry_of_the_path_that_says_it_counts() {
    let state = state(&[PROMPT, ANSWER, MORE_OF_IT, SYNTHETIC]);
    let said = |field: &Option<String>| field.clone().unwrap_or_default();
    assert_eq!(said(&state.cwd), "/w/sub");
    assert_eq!(said(&state.git_branch), "fix");
    assert_eq!(said(&state.version), "2.1.2");
    assert_eq!(said(&state.model), "claude-x");
    assert_eq!(said(&state.permission_mode), "default");
    assert_eq!((state.title, state.tag), (None, None));
}

#[test]
fn an_answer_counts_once_with_the_most_it_says_and_synthetic_ones_never() {
    let usage = request(&[PROMPT, ANSWER, MORE_OF_IT, SYNTHETIC]).usage;
    assert_eq!(usage.len(), 1);
    assert_eq!(usage[0].model.as_deref(), Some("claude-x"));
    assert_eq!(usage[0].answers, 1);
    assert_eq!(usage[0].input_tokens, Some(10));
    assert_eq!(usage[0].output_tokens, Some(25));
    assert_eq!(usage[0].cache_read_input_tokens, Some(0));
    assert_eq!(usage[0].cache_creation_input_tokens, None, "nobody said 0");
}

#[test]
fn titles_tags_and_modes_are_those_of_the_last_line_of_each_kind() {
    let made = r#"{"type":"ai-title","aiTitle":"Made"}"#;
    let given = r#"{"type":"custom-title","customTitle":"Given"}"#;
    let cleared = r#"{"type":"custom-title","customTitle":""}"#;
    assert_eq!(state(&[PROMPT, given, made]).title.unwrap(), "Given");
    assert_eq!(
        state(&[PROMPT, given, made, cleared]).title.unwrap(),
        "Made"
    );
    let (tag, untag) = (r#"{"type":"tag","tag":"t"}"#, r#"{"type":"tag","tag":""}"#);
    assert_eq!(state(&[PROMPT, tag]).tag.unwrap(), "t");
    assert_eq!(state(&[PROMPT, tag, untag]).tag, None);
    let mode = r#"{"type":"permission-mode","permissionMode":"plan"}"#;
    assert_eq!(state(&[PROMPT, mode]).permission_mode.unwrap(), "plan");
    assert_eq!(state(&[mode, PROMPT]).permission_mode.unwrap(), "default");
    // As the first line of the file, before a conversation that names no mode.
    let silent = PROMPT.replace(r#""permissionMode":"default","#, "");
    assert_ne!(silent, PROMPT);
    assert_eq!(state(&[mode, &silent]).permission_mode.unwrap(), "plan");
    let again = PROMPT.replace("u1", "u2").replace("null", r#""a1""#);
    let before = state(&[PROMPT, ANSWER, mode, &again]);
    assert_eq!(before.permission_mode.unwrap(), "default");
}

#[test]
fn entries_outside_the_path_do_not_count() {
    let branch = PROMPT
        .replace("u1", "u0")
        .replace("/w\"", "/elsewhere\"")
        .replace("default", "plan");
    let state = state(&[&branch, PROMPT, ANSWER]);
    assert_eq!(state.cwd.unwrap(), "/w/sub");
    assert_eq!(state.permission_mode.unwrap(), "default");
}

/// A line outside the chain.
fn metadata_line(kind: &str, fields: &str) -> String {
    format!(r#"{{"type":"{kind}","sessionId":"s"{fields}}}"#)
}

/// Returns the output of `resume --json` for lines that follow a prompt and its answer.
fn printed(lines: &[&str]) -> Value {
    let lines = [&[PROMPT, ANSWER], lines].concat();
    serde_json::to_value(state(&lines)).unwrap()
}

fn tool_result(uuid: &str, parent: &str, result: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"{uuid}","parentUuid":"{parent}","timestamp":"2026-11-01T10:01:00Z","message":{{"role":"user","content":"done"}},"toolUseResult":{result}}}"#
    )
}

#[test]
fn unset_state_is_null() {
    let bare = r#"{"type":"user","uuid":"u1","parentUuid":null,"timestamp":"2026-11-01T10:00:00Z","message":{"role":"user","content":"hi"}}"#;
    let read = request(&[bare]);
    assert_eq!(read.usage, []);
    let Value::Object(mut state) = serde_json::to_value(read.state).unwrap() else {
        panic!("a state is an object");
    };
    assert_eq!(state.len(), 31);
    let last = state.remove("lastInteraction");
    assert_eq!(last, Some(json!("2026-11-01T10:00:00Z")));
    for (key, value) in state {
        assert_eq!(value, Value::Null, "{key}");
    }
}

#[test]
fn wrong_types_leave_null_and_never_panic() {
    let nothing = printed(&[]);
    for wrong in [
        "1", "-1", "true", r#""""#, "[]", "{}", "null", "[[1]]", "1e999",
    ] {
        let field = |key: &str| format!(r#","{key}":{wrong}"#);
        let all: String = [
            "cwd",
            "gitBranch",
            "version",
            "permissionMode",
            "customTitle",
            "aiTitle",
            "summary",
            "tag",
            "mode",
            "agentName",
            "agentColor",
            "agentSetting",
            "relocatedCwd",
            "worktreeSession",
            "prNumber",
            "messageId",
            "snapshotMessageId",
            "trackingPath",
            "operation",
            "totalCostUSD",
            "modelUsage",
            "durationMs",
            "attachment",
        ]
        .map(field)
        .concat();
        let kinds = [
            "custom-title",
            "ai-title",
            "summary",
            "tag",
            "mode",
            "permission-mode",
            "agent-name",
            "agent-color",
            "agent-setting",
            "relocated",
            "pr-link",
            "queue-operation",
            "file-history-delta",
        ];
        let mut lines: Vec<String> = kinds.iter().map(|kind| metadata_line(kind, &all)).collect();
        lines.push(metadata_line(
            "file-history-snapshot",
            &format!(r#","messageId":"u1","snapshot":{wrong}"#),
        ));
        lines.push(format!(
            r#"{{"type":"system","subtype":"turn_duration","uuid":"d1","parentUuid":"a1","timestamp":"2026-11-01T10:00:09Z"{all}}}"#
        ));
        let result = |shape: &str| shape.replace("WRONG", wrong);
        for (place, shape) in [
            "WRONG",
            r#"{"newTodos":WRONG}"#,
            r#"{"task":WRONG}"#,
            r#"{"tasks":WRONG}"#,
            r#"{"taskId":WRONG,"statusChange":{"to":"completed"}}"#,
            r#"{"taskId":"1","statusChange":WRONG}"#,
        ]
        .iter()
        .enumerate()
        {
            let result = result(shape);
            // Even a list of nothing is a list.
            if !wrong.starts_with('[') {
                lines.push(tool_result(&format!("x{place}"), "a1", &result));
            }
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut after = printed(&lines);
        assert_ne!(after["lastInteraction"], Value::Null);
        after["lastInteraction"] = nothing["lastInteraction"].clone();
        let link = json!([{"number": 1, "url": null, "repository": null, "timestamp": null}]);
        if wrong == "1" {
            // These are numbers.
            assert_eq!(after["pullRequests"].take(), link);
            assert_eq!(after["turnDurationMs"].take(), json!(1));
            assert_eq!(after["timedTurns"].take(), json!(1));
        }
        assert_eq!(after, nothing, "{wrong}");

        let broken_answer = ANSWER
            .replace(r#""m1""#, wrong)
            .replace(r#""claude-x""#, wrong)
            .replace(r#"{"input_tokens":10,"output_tokens":1}"#, wrong);
        assert_eq!(request(&[PROMPT, &broken_answer]).state.model, None);
        let costs = metadata_line("cost-state", &all.replace("1e999", "null"));
        let costs = printed(&[&costs])["costs"].clone();
        if wrong != "1" && wrong != "-1" {
            assert_eq!(costs["totalCostUSD"], Value::Null, "{wrong}");
        }
        assert_eq!(costs["linesAdded"], Value::Null);
    }
}

#[test]
fn folders_are_that_of_the_last_entry_the_first_and_the_one_moved_to() {
    let moved = metadata_line("relocated", r#","relocatedCwd":"/moved""#);
    let state = printed(&[&moved]);
    assert_eq!(state["cwd"], "/w/sub");
    assert_eq!(state["originalCwd"], "/w");
    assert_eq!(state["relocatedCwd"], "/moved");
}

#[test]
fn the_first_folder_is_that_of_the_file_also_before_a_boundary() {
    let boundary = r#"{"type":"system","subtype":"compact_boundary","uuid":"b1","parentUuid":null,"logicalParentUuid":"a1","timestamp":"2026-11-01T11:00:00Z","cwd":"/later","content":"Conversation compacted","compactMetadata":{"trigger":"manual","preTokens":1}}"#;
    let summary = r#"{"type":"user","uuid":"u2","parentUuid":"b1","timestamp":"2026-11-01T11:00:01Z","cwd":"/later","isCompactSummary":true,"message":{"role":"user","content":"sum"}}"#;
    let read = request(&[PROMPT, ANSWER, boundary, summary]);
    assert_eq!(read.request.path.entries.len(), 2);
    assert_eq!(read.state.original_cwd.unwrap(), "/w");
    assert_eq!(read.state.cwd.unwrap(), "/later");
    assert_eq!(read.usage, [], "the answer is not on the path");
}

#[test]
fn versions_and_models_are_listed_in_order_each_once() {
    let back = PROMPT
        .replace("u1", "u2")
        .replace("null", r#""a1""#)
        .replace("hi", "again");
    let other = MORE_OF_IT
        .replace("a1", "u2")
        .replace("m1", "m9")
        .replace("claude-x", "claude-y")
        .replace(r#""uuid""#, r#""version":"2.1.9","uuid""#);
    let state = printed(&[&back, &other]);
    assert_eq!(state["versions"], json!(["2.1.1", "2.1.2", "2.1.9"]));
    assert_eq!(state["models"], json!(["claude-x", "claude-y"]));
    assert_eq!(state["model"], "claude-y");
}

#[test]
fn a_title_says_where_it_comes_from() {
    let title = |lines: &[&str]| {
        let state = printed(lines);
        (state["title"].clone(), state["titleSource"].clone())
    };
    let made = metadata_line("ai-title", r#","aiTitle":"Made""#);
    let given = metadata_line("custom-title", r#","customTitle":"Given""#);
    let old = r#"{"type":"summary","summary":"Summed up","leafUuid":"a1"}"#;
    let of_another = r#"{"type":"summary","summary":"Of another","leafUuid":"elsewhere"}"#;
    assert_eq!(
        title(&[&given, &made, old]),
        (json!("Given"), json!("custom"))
    );
    assert_eq!(title(&[&made, old]), (json!("Made"), json!("ai")));
    assert_eq!(
        title(&[old, of_another]),
        (json!("Summed up"), json!("summary"))
    );
    assert_eq!(title(&[of_another]), (Value::Null, Value::Null));
}

#[test]
fn the_last_line_of_each_kind_beside_the_chain_counts() {
    let (mut lines, fields) = (
        Vec::new(),
        [
            ("mode", "mode"),
            ("agent-name", "agentName"),
            ("agent-color", "agentColor"),
            ("agent-setting", "agentSetting"),
        ],
    );
    for value in ["first", "last"] {
        for (kind, key) in fields {
            lines.push(metadata_line(kind, &format!(r#","{key}":"{value}""#)));
        }
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let state = printed(&lines);
    for (_, key) in fields {
        assert_eq!(state[key], "last");
    }
}

#[test]
fn todos_are_those_that_were_written_last() {
    let first = r#"{"oldTodos":[],"newTodos":[{"content":"a","status":"pending","activeForm":"doing a","id":"7"}]}"#;
    let second = r#"{"oldTodos":[{"content":"a"}],"newTodos":[{"content":"a","status":"completed"},4,{"content":"b","status":"in_progress"}]}"#;
    let (one, two) = (
        tool_result("r1", "a1", first),
        tool_result("r2", "r1", second),
    );
    assert_eq!(
        printed(&[&one])["todos"],
        json!([{"id": "7", "content": "a", "status": "pending", "activeForm": "doing a"}])
    );
    let todos = state(&[PROMPT, ANSWER, &one, &two]).todos.unwrap();
    let open: Vec<_> = todos.iter().map(|todo| todo.is_open()).collect();
    assert_eq!(open, [false, true]);
    assert_eq!(todos[1].content.as_deref(), Some("b"));
    let emptied = tool_result("r3", "r2", r#"{"oldTodos":[],"newTodos":[]}"#);
    assert_eq!(printed(&[&one, &two, &emptied])["todos"], json!([]));
}

#[test]
fn tasks_are_added_changed_and_taken_off_one_by_one() {
    let results = [
        r#"{"task":{"id":"1","subject":"one"}}"#,
        r#"{"task":{"id":"2","subject":"two"}}"#,
        r#"{"task":{"task_id":"9","description":"of the shell"}}"#,
        r#"{"success":true,"taskId":"1","updatedFields":["status"],"statusChange":{"from":"pending","to":"completed"}}"#,
        r#"{"success":false,"taskId":"2","error":"no","statusChange":{"from":"pending","to":"completed"}}"#,
        r#"{"success":true,"taskId":"5","updatedFields":["status"],"statusChange":{"from":"pending","to":"in_progress"}}"#,
    ];
    let mut lines = Vec::new();
    let mut parent = "a1".to_owned();
    for (place, result) in results.iter().enumerate() {
        let uuid = format!("r{place}");
        lines.push(tool_result(&uuid, &parent, result));
        parent = uuid;
    }
    let todos = |lines: &[String]| {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let todos = printed(&lines)["todos"].clone();
        let short = |todo: &Value| {
            let said = |key: &str| todo[key].as_str().unwrap_or("-").to_owned();
            [said("id"), said("content"), said("status")].join(" ")
        };
        todos
            .as_array()
            .unwrap()
            .iter()
            .map(short)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        todos(&lines),
        ["1 one completed", "2 two -", "5 - in_progress"]
    );

    let deleted = r#"{"success":true,"taskId":"2","updatedFields":["deleted"],"statusChange":{"from":"pending","to":"deleted"}}"#;
    lines.push(tool_result("r6", "r5", deleted));
    assert_eq!(todos(&lines), ["1 one completed", "5 - in_progress"]);

    let reminder = r#"{"type":"attachment","uuid":"n1","parentUuid":"r6","timestamp":"2026-11-01T10:02:00Z","attachment":{"type":"task_reminder","itemCount":1,"content":[{"id":"5","subject":"five","status":"pending"}]}}"#;
    let answer = MORE_OF_IT.replace("a1", "n1");
    lines.extend([reminder.to_owned(), answer]);
    assert_eq!(todos(&lines), ["5 five pending"]);

    let listed = r#"{"tasks":[{"id":"1","subject":"one","status":"completed"},{"id":"5","subject":"five","status":"pending"}]}"#;
    lines.push(tool_result("r7", "a2", listed));
    assert_eq!(todos(&lines), ["1 one completed", "5 five pending"]);
    let written = r#"{"oldTodos":[],"newTodos":[{"content":"w","status":"pending"}]}"#;
    lines.push(tool_result("r8", "r7", written));
    assert_eq!(todos(&lines), ["- w pending"]);
    lines.push(tool_result("r9", "r8", results[0]));
    assert_eq!(todos(&lines), ["1 one -"], "another list");
}

#[test]
fn files_are_those_of_the_last_snapshot_of_each_prompt_of_the_path() {
    let snapshot = |line: &str, prompt: &str, files: &str| {
        format!(
            r#"{{"type":"file-history-snapshot","messageId":"{line}","isSnapshotUpdate":true,"snapshot":{{"messageId":"{prompt}","timestamp":"T","trackedFileBackups":{{{files}}}}}}}"#
        )
    };
    let empty = snapshot("u1", "u1", "");
    let updated = snapshot(
        "a1",
        "u1",
        r#""b.rs":{"backupFileName":null},"a.rs":{"version":1}"#,
    );
    let of_another = snapshot("zz", "zz", r#""c.rs":{}"#);
    let delta = r#"{"type":"file-history-delta","messageId":"a1","snapshotMessageId":"u1","trackingPath":"d.rs","backup":{}}"#;
    let history = |files: Value| json!([{"messageId": "u1", "timestamp": "T", "files": files}]);
    assert_eq!(printed(&[&empty])["fileHistory"], history(json!([])));
    assert_eq!(
        printed(&[&empty, &updated, &of_another])["fileHistory"],
        history(json!(["a.rs", "b.rs"]))
    );
    assert_eq!(
        printed(&[&updated, delta])["fileHistory"],
        history(json!(["a.rs", "b.rs", "d.rs"]))
    );
    let later = snapshot("a1", "u1", r#""b.rs":{},"e.rs":{}"#);
    assert_eq!(
        printed(&[&updated, &updated, &later])["fileHistory"],
        history(json!(["b.rs", "e.rs"]))
    );
    assert_eq!(printed(&[&of_another])["fileHistory"], Value::Null);
    let branch = PROMPT.replace("u1", "u0");
    let of_branch = snapshot("u0", "u0", r#""c.rs":{}"#);
    let state = state(&[&branch, &of_branch, PROMPT, ANSWER]);
    assert_eq!(state.file_history, None, "not a prompt of the path");
}

#[test]
fn a_worktree_counts_until_it_is_left() {
    let entered = metadata_line(
        "worktree-state",
        r#","worktreeSession":{"originalCwd":"/w","worktreePath":"/t","worktreeName":"n","worktreeBranch":"b","originalBranch":"main","originalHeadCommit":"c0"}"#,
    );
    let left = metadata_line("worktree-state", r#","worktreeSession":null"#);
    assert_eq!(
        printed(&[&left, &entered])["worktree"],
        json!({"name": "n", "path": "/t", "branch": "b", "originalCwd": "/w", "originalBranch": "main", "originalHeadCommit": "c0"})
    );
    assert_eq!(printed(&[&entered, &left])["worktree"], Value::Null);
}

#[test]
fn prompts_that_were_queued_and_never_sent_are_listed() {
    let queued = |content: &str| {
        let fields =
            format!(r#","operation":"enqueue","timestamp":"T{content}","content":"{content}""#);
        metadata_line("queue-operation", &fields)
    };
    let other = |operation: &str| {
        metadata_line(
            "queue-operation",
            &format!(r#","operation":"{operation}","timestamp":"T""#),
        )
    };
    let removed = metadata_line(
        "queue-operation",
        r#","operation":"remove","content":"two","timestamp":"T""#,
    );
    let left = |lines: &[&String]| {
        let lines: Vec<&str> = lines.iter().map(|line| line.as_str()).collect();
        let queue = printed(&lines)["queuedPrompts"].clone();
        let content = |prompt: &Value| prompt["content"].as_str().unwrap_or("-").to_owned();
        queue
            .as_array()
            .map(|queue| queue.iter().map(content).collect::<Vec<_>>().join(" "))
    };
    let [one, two, three] = ["one", "two", "three"].map(queued);
    let [dequeue, remove, pop_all] = ["dequeue", "remove", "popAll"].map(other);
    assert_eq!(left(&[]), None);
    assert_eq!(left(&[&one, &two, &three]).unwrap(), "one two three");
    assert_eq!(
        left(&[&dequeue, &one, &dequeue, &two, &three]).unwrap(),
        "two three"
    );
    assert_eq!(left(&[&one, &two, &remove]).unwrap(), "two", "the oldest");
    assert_eq!(
        left(&[&one, &two, &two, &removed, &three]).unwrap(),
        "one two three"
    );
    assert_eq!(left(&[&one, &removed]).unwrap(), "", "another spelling");
    assert_eq!(left(&[&one, &two, &pop_all, &three]).unwrap(), "three");
    assert_eq!(left(&[&one, &other("unknown")]).unwrap(), "one");
    let picture = other("enqueue");
    assert_eq!(left(&[&picture, &one]).unwrap(), "- one");
    assert_eq!(left(&[&one, &picture, &dequeue]).unwrap(), "-");
    // Which of several was taken shows in what is sent next.
    let sent = tool_result("p1", "a1", "null").replace("done", "two");
    assert_eq!(left(&[&one, &two, &dequeue, &sent]).unwrap(), "one");
    let blocks = sent.replace(
        r#""two""#,
        r#"[{"type":"image"},{"type":"text","text":"two"}]"#,
    );
    assert_eq!(left(&[&one, &two, &dequeue, &blocks]).unwrap(), "one");
    let along = r#"{"type":"attachment","uuid":"q1","parentUuid":"a1","timestamp":"2026-11-01T10:01:00Z","attachment":{"type":"queued_command","prompt":"two"}}"#.to_owned();
    assert_eq!(left(&[&one, &two, &remove, &along]).unwrap(), "one");
    let meta = sent.replace(r#""uuid""#, r#""isMeta":true,"uuid""#);
    assert_eq!(left(&[&one, &two, &dequeue, &meta]).unwrap(), "two");
    assert_eq!(
        left(&[&one, &two, &three, &dequeue, &dequeue, &sent]).unwrap(),
        "three"
    );
    let text = json!([{"content": "one", "timestamp": "Tone"}]);
    assert_eq!(printed(&[&one])["queuedPrompts"], text);
}

#[test]
fn pull_requests_are_listed_once() {
    let link = |number: u64, time: &str| {
        metadata_line(
            "pr-link",
            &format!(
                r#","prNumber":{number},"prUrl":"https://x/{number}","prRepository":"o/r","timestamp":"{time}""#
            ),
        )
    };
    let state = printed(&[&link(2, "T1"), &link(1, "T2"), &link(2, "T3")]);
    assert_eq!(
        state["pullRequests"],
        json!([
            {"number": 2, "url": "https://x/2", "repository": "o/r", "timestamp": "T1"},
            {"number": 1, "url": "https://x/1", "repository": "o/r", "timestamp": "T2"},
        ])
    );
}

#[test]
fn the_last_interaction_is_the_time_of_the_last_message_as_it_is_written() {
    let note = r#"{"type":"attachment","uuid":"n1","parentUuid":"a1","timestamp":"2026-11-09T00:00:00Z","attachment":{"type":"date_change","newDate":"x"}}"#;
    let state = printed(&[note]);
    assert_eq!(state["lastInteraction"], "2026-11-01T10:00:01Z");
}

#[test]
fn turns_of_the_path_are_timed_also_the_one_after_the_leaf() {
    let took = |uuid: &str, parent: &str, time: u64| {
        format!(
            r#"{{"type":"system","subtype":"turn_duration","uuid":"{uuid}","parentUuid":"{parent}","timestamp":"2026-11-01T10:00:09Z","durationMs":{time}}}"#
        )
    };
    let hook = r#"{"type":"system","subtype":"stop_hook_summary","uuid":"h1","parentUuid":"a1","timestamp":"2026-11-01T10:00:08Z"}"#;
    let times = |lines: &[&str]| {
        let state = printed(lines);
        (state["timedTurns"].clone(), state["turnDurationMs"].clone())
    };
    let last = took("d1", "h1", 70);
    assert_eq!(times(&[hook, &last]), (json!(1), json!(70)));
    let again = PROMPT.replace("u1", "u2").replace("null", r#""d1""#);
    let answer = ANSWER.replace("a1", "a9").replace("u1", "u2");
    let second = took("d2", "a9", 5);
    assert_eq!(
        times(&[hook, &last, &again, &answer, &second, &second]),
        (json!(2), json!(75)),
        "a repeated line counts once"
    );
    // A tombstoned turn: its answer is not on the path.
    let beside = ANSWER.replace("a1", "a5").replace("m1", "m5");
    let taken_back = took("d5", "a5", 1000);
    assert_eq!(
        {
            let lines = [PROMPT, &beside, &taken_back, ANSWER, MORE_OF_IT];
            state(&lines).turn_duration_ms
        },
        None
    );
    assert_eq!(times(&[hook]), (Value::Null, Value::Null));
}

#[test]
fn the_client_counts_on_from_its_last_line() {
    let line = |fields: &str| metadata_line("cost-state", fields);
    let first = line(r#","totalCostUSD":9.5"#);
    let last = line(
        r#","totalCostUSD":1.25,"totalAPIDuration":10,"totalAPIDurationWithoutRetries":9,"totalToolDuration":8,"totalDuration":70,"startTime":1790000000000,"totalLinesAdded":3,"totalLinesRemoved":0,"hasUnknownModelCost":false,"modelUsage":{"claude-x":{"inputTokens":1,"outputTokens":2,"thinkingTokens":1,"cacheReadInputTokens":3,"cacheCreationInputTokens":4,"cacheCreationEphemeral5mInputTokens":4,"webSearchRequests":0,"costUSD":1.25},"bad":7}"#,
    );
    assert_eq!(
        printed(&[&first, &last])["costs"],
        json!({
            "totalCostUSD": 1.25, "hasUnknownModelCost": false, "apiDurationMs": 10,
            "apiDurationWithoutRetriesMs": 9, "toolDurationMs": 8, "durationMs": 70,
            "startTime": 1_790_000_000_000_u64, "linesAdded": 3, "linesRemoved": 0,
            "models": [{"model": "claude-x", "inputTokens": 1, "outputTokens": 2,
                "thinkingTokens": 1, "cacheReadInputTokens": 3, "cacheCreationInputTokens": 4,
                "cacheCreationEphemeral5mInputTokens": 4,
                "cacheCreationEphemeral1hInputTokens": null,
                "webSearchRequests": 0, "costUSD": 1.25}],
        })
    );
    let costs = printed(&[&first])["costs"].clone();
    assert_eq!(costs["totalCostUSD"], 9.5);
    assert_eq!(costs["linesAdded"], Value::Null, "nobody said 0");
    assert_eq!(costs["models"], Value::Null);
}

#[test]
fn a_state_can_be_read_without_a_request() {
    let lines = [
        PROMPT,
        ANSWER,
        MORE_OF_IT,
        &metadata_line("mode", r#","mode":"normal""#),
    ];
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "{}", lines.join("\n")).unwrap();
    let source = Source::open(file.path()).unwrap();
    let index = Index::load(&source).unwrap();
    let tree = Tree::new(&index, Policy::Vendor);
    let read = PathState::read(&tree, &tree.path(), &mut Bodies::new(&source)).unwrap();
    let along = request(&lines);
    assert_eq!(read, (along.state, along.usage));
    assert_eq!(read.1[0].output_tokens, Some(25));
}
