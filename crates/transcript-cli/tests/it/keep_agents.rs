//! `transcript keep` captures the sessions of other agents, and every command reads what they deleted or cut out.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::agents::{Machine, SESSIONS, TIME, records};
use crate::{stderr, stdout};

/// Returns the path of each archived session of an agent, by id.
fn archived(machine: &Machine, id: &str) -> Vec<String> {
    let rows = machine.records(&["list", "--archived", "--json"]);
    let rows = rows.iter().filter(|row| row["sessionId"] == id);
    rows.map(|row| row["path"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the texts of the branches of a session.
fn texts_of_branches(machine: &Machine, session: &str) -> Vec<String> {
    let items = machine.records(&["replay", "--format", "items", session]);
    let branches = items[0]["branches"].as_array().unwrap().iter();
    let texts = branches.flat_map(|branch| branch.as_array().unwrap());
    texts
        .filter_map(|item| item["text"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn all_agents_are_kept_each_in_an_archive_of_its_own() {
    let machine = Machine::new();
    let kept = machine.records(&["keep", "--json"]);
    let agents: Vec<&str> = kept
        .iter()
        .map(|report| report["agent"].as_str().unwrap_or("claude-code"))
        .collect();
    assert_eq!(
        agents,
        ["claude-code", "codex", "pi", "qwen", "gemini", "copilot"]
    );
    for report in &kept {
        assert_eq!(
            (&report["captured"], &report["root"]),
            (&json!(1), &Value::Null)
        );
    }
    let text = machine.text(&["keep"]);
    assert!(text.contains("pi: nothing changed: 1 file in"), "{text}");
    let one = machine.records(&["keep", "--agent", "qwen", "--json"]);
    assert_eq!((one.len(), &one[0]["agent"]), (1, &json!("qwen")));
    let archives = fs::read_dir(machine.path("data/transcript")).unwrap();
    assert_eq!(archives.count(), 6);
    let verdict = machine.text(&["verify", "--archive"]);
    assert_eq!(
        verdict.matches("nothing is damaged").count(),
        6,
        "{verdict}"
    );
}

#[test]
fn a_session_that_its_agent_deleted_is_read_and_restored() {
    let machine = Machine::new();
    let read = |id: &str| {
        let commands: [&[&str]; 3] = [
            &["replay", id],
            &["replay", "--format", "items", id],
            &["resume", "--request", id],
        ];
        commands.map(|command| machine.text(command))
    };
    let before = SESSIONS.map(|(_, file, _)| fs::read(machine.path(file)).unwrap());
    let live = SESSIONS.map(|(_, _, id)| read(id));
    machine.text(&["keep"]);
    for (_, file, _) in SESSIONS {
        fs::remove_file(machine.path(file)).unwrap();
    }
    assert_eq!(machine.listed(&[]).len(), 1);
    let all = machine.listed(&["--all"]);
    for ((agent, file, id), live) in SESSIONS.iter().zip(live) {
        assert_eq!(all.get(*id).map(String::as_str), Some(*agent));
        assert_eq!(read(id), live, "{agent}");
        let query = format!("\"tell {agent}\"");
        assert_eq!(machine.run(&["search", &query]).status.code(), Some(1));
        let hits = machine.records(&["search", "--all", "--json", &query]);
        assert_eq!(hits[0]["sessionId"], *id, "{agent}: {hits:?}");
        let usage = machine.text(&["usage", "--all", "--by", "session", "--json"]);
        assert!(usage.contains(id), "{agent}: {usage}");
        let refused = machine.run(&["append", id]);
        assert!(!refused.status.success(), "{agent}");
        machine.text(&["restore", id]);
        assert!(machine.path(file).exists(), "{agent}");
    }
    let after = SESSIONS.map(|(_, file, _)| fs::read(machine.path(file)).unwrap());
    assert_eq!(after, before);
}

#[test]
fn the_archive_of_an_agent_that_is_gone_is_listed() {
    let machine = Machine::new();
    machine.text(&["keep"]);
    fs::remove_dir_all(machine.path(".pi")).unwrap();
    let all = machine.listed(&["--all"]);
    assert_eq!(all.len(), SESSIONS.len() + 1);
    machine.text(&["keep"]);
    let back = machine.text(&["restore", "--all", "--agent", "pi"]);
    assert!(back.contains(SESSIONS[1].1), "{back}");
    assert!(machine.path(SESSIONS[1].1).exists());
}

/// Events of Copilot after those of [`records`]: a turn with a call.
fn turn_of_copilot(text: &str) -> Vec<Value> {
    let event = |id: &str, kind: &str, data: Value| json!({ "type": kind, "data": data, "id": format!("{id}{text}"), "timestamp": "2026-01-02T03:05:00.000Z", "parentId": null });
    let ask = format!("ask {text}");
    vec![
        event(
            "u",
            "user.message",
            json!({ "content": ask, "transformedContent": ask }),
        ),
        event(
            "a",
            "assistant.message",
            json!({ "content": format!("tell {text}"), "model": "c", "toolRequests":
                [{ "toolCallId": format!("call-{text}"), "name": "bash", "arguments": { "command": format!("run {text}") } }] }),
        ),
        event(
            "r",
            "tool.execution_complete",
            json!({ "toolCallId": format!("call-{text}"), "success": true, "result": { "content": format!("output {text}") } }),
        ),
    ]
}

#[test]
fn what_copilot_rewound_is_a_branch_of_the_archived_session() {
    let machine = Machine::new();
    let (_, file, id) = SESSIONS[4];
    let start = records("copilot", id);
    machine.write(file, &[start.clone(), turn_of_copilot("rewound")].concat());
    machine.text(&["keep"]);
    machine.write(file, &[start, turn_of_copilot("kept")].concat());
    assert!(!machine.text(&["replay", id]).contains("rewound"));
    machine.text(&["keep"]);
    let paths = archived(&machine, id);
    let [path] = &paths[..] else {
        panic!("{paths:?}")
    };
    let branches = texts_of_branches(&machine, path).concat();
    assert!(
        branches.contains("ask rewound") && branches.contains("tell rewound"),
        "{branches}"
    );
    let conversation = machine.text(&["replay", "--json", path]);
    assert!(!conversation.contains("rewound"), "{conversation}");
    let shown = machine.text(&["replay", "--json", "--all-branches", path]);
    for text in ["run rewound", "output rewound", "tell kept", "ask copilot"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let lines = shown.lines();
    let shown_records: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let entries = shown_records
        .iter()
        .filter(|record| record["kind"] == "entry");
    let mut uuids: Vec<&str> = entries
        .map(|entry| entry["uuid"].as_str().unwrap())
        .collect();
    let count = uuids.len();
    uuids.sort_unstable();
    uuids.dedup();
    assert_eq!(uuids.len(), count, "{shown}");
    // The agent itself shows nothing of it.
    let vendor = machine.text(&["resume", "--request", "--policy", "vendor", path]);
    assert!(!vendor.contains("rewound"), "{vendor}");
    let verdict = machine.text(&["verify", path]);
    assert!(verdict.contains("a session of copilot"), "{verdict}");
    // As it was, in another folder.
    fs::remove_file(machine.path(file)).unwrap();
    machine.text(&["restore", id]);
    assert!(
        !fs::read_to_string(machine.path(file))
            .unwrap()
            .contains("rewound")
    );
}

#[test]
fn a_session_that_gemini_wiped_is_in_the_archive_with_its_texts() {
    let machine = Machine::new();
    let (_, file, id) = SESSIONS[3];
    machine.text(&["keep"]);
    let all = records("gemini", id);
    machine.write(file, &all[..1]);
    machine.text(&["keep"]);
    let paths = archived(&machine, id);
    let branches = texts_of_branches(&machine, &paths[0]);
    assert_eq!(branches, ["ask gemini", "tell gemini"]);
}

#[test]
fn a_message_of_gemini_in_an_older_form_that_was_written_over_is_kept() {
    let machine = Machine::new();
    let file = ".gemini/tmp/src/chats/session-2025-01-02T03-04-70000000.json";
    let id = "70000000-0000-4000-8000-000000000006";
    let document = |texts: &[&str]| {
        let messages = texts.iter().enumerate().map(|(number, text)| {
            json!({ "id": format!("m{number}{text}"), "timestamp": TIME, "type": "user", "content": text })
        });
        json!({ "sessionId": id, "projectHash": "h", "startTime": TIME, "lastUpdated": TIME,
            "messages": messages.collect::<Vec<_>>() })
    };
    machine.write(file, &[document(&["one", "two", "three"])]);
    machine.text(&["keep"]);
    machine.write(file, &[document(&["one", "other"])]);
    machine.text(&["keep"]);
    let paths = archived(&machine, id);
    assert_eq!(texts_of_branches(&machine, &paths[0]), ["two", "three"]);
}

#[test]
fn a_rollout_that_codex_moves_is_one_session_with_the_same_text() {
    let machine = Machine::new();
    let (_, file, id) = SESSIONS[0];
    machine.text(&["keep"]);
    let name = Path::new(file).file_name().unwrap().to_str().unwrap();
    let to = machine.path(&format!(".codex/archived_sessions/{name}"));
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(machine.path(file), &to).unwrap();
    let live = machine.text(&["replay", "--json", id]);
    machine.text(&["keep"]);
    fs::remove_file(&to).unwrap();
    let items = machine.records(&["replay", "--format", "items", id]);
    assert_eq!(items[0]["branches"], json!([]), "{items:?}");
    let texts = |text: &str| text.matches("ask codex").count();
    assert_eq!(
        texts(&machine.text(&["replay", "--json", id])),
        texts(&live)
    );
    machine.text(&["restore", id]);
    assert!(to.exists() && !machine.path(file).exists());
}

/// The database of OpenCode, with sessions that each have a prompt.
struct OpenCode(Connection);

impl OpenCode {
    fn on(machine: &Machine) -> Self {
        let home = machine.path("data/opencode");
        fs::create_dir_all(&home).unwrap();
        let connection = Connection::open(home.join("opencode.db")).unwrap();
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
                CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text,
                    directory text NOT NULL, title text NOT NULL, version text NOT NULL, share_url text, revert text,
                    model text, time_created integer NOT NULL, time_updated integer NOT NULL,
                    tokens_input integer DEFAULT 0 NOT NULL, tokens_output integer DEFAULT 0 NOT NULL,
                    tokens_reasoning integer DEFAULT 0 NOT NULL, tokens_cache_read integer DEFAULT 0 NOT NULL,
                    tokens_cache_write integer DEFAULT 0 NOT NULL);
                CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
                    time_updated integer NOT NULL, data text NOT NULL);
                CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
                    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);",
            )
            .unwrap();
        Self(connection)
    }

    fn add_session(&self, session: &str) {
        let insert = "INSERT INTO session (id, project_id, directory, title, version, time_created, time_updated)
            VALUES (?1, 'p', '/src', 'a title', '1', 1, 1)";
        self.0.execute(insert, [session]).unwrap();
    }

    fn add_prompt(&self, session: &str, number: i64, text: &str) {
        let message = format!("msg_{session}{number}");
        let data = json!({ "role": "user", "time": { "created": number } }).to_string();
        let insert = "INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)";
        self.0
            .execute(insert, (&message, session, number, data))
            .unwrap();
        let part = json!({ "type": "text", "text": text }).to_string();
        let insert = "INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?4, ?5)";
        let id = format!("prt_{session}{number}");
        self.0
            .execute(insert, (id, message, session, number, part))
            .unwrap();
    }

    fn delete(&self, session: &str) {
        for table in ["part", "message"] {
            let delete = format!("DELETE FROM {table} WHERE session_id = ?1");
            self.0.execute(&delete, [session]).unwrap();
        }
        self.0
            .execute("DELETE FROM session WHERE id = ?1", [session])
            .unwrap();
    }
}

#[test]
fn rows_that_opencode_deleted_are_read_from_the_version_that_had_them() {
    let machine = Machine::new();
    let opencode = OpenCode::on(&machine);
    for (number, session) in (1..).zip(["ses_one", "ses_two", "ses_three"]) {
        opencode.add_session(session);
        opencode.add_prompt(session, number, &format!("ask {session}"));
    }
    let of_agent =
        |arguments: &[&str]| machine.text(&[arguments, &["--agent", "opencode"]].concat());
    // Found without being named.
    machine.text(&["keep"]);
    opencode.delete("ses_two");
    opencode
        .0
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE);")
        .unwrap();
    machine.text(&["keep"]);
    opencode.delete("ses_three");
    machine.text(&["keep"]);
    let live = of_agent(&["list", "--json"]);
    assert!(
        live.contains("ses_one") && !live.contains("ses_two"),
        "{live}"
    );
    let archived = of_agent(&["list", "--archived", "--json"]);
    for session in ["ses_one", "ses_two", "ses_three"] {
        assert_eq!(
            archived
                .matches(&format!("\"sessionId\":\"{session}\""))
                .count(),
            1,
            "{archived}"
        );
        let text = of_agent(&["replay", session]);
        assert!(text.contains(&format!("ask {session}")), "{text}");
    }
    let found = of_agent(&["search", "--all", "--json", "\"ask ses_two\""]);
    assert!(found.contains("ses_two"), "{found}");
    // The database exists and is another one, so it goes to another folder: as it was last captured with the session.
    opencode.add_session("ses_four");
    let of_versions = [
        ("ses_one", "ses_one"),
        ("ses_two", "ses_one ses_three ses_two"),
        ("ses_three", "ses_one ses_three"),
    ];
    for (session, expected) in of_versions {
        let refused = machine.run(&["restore", session, "--agent", "opencode"]);
        assert!(!refused.status.success(), "{}", stdout(&refused));
        let to = format!("back/{session}");
        of_agent(&["restore", session, "--to", &to]);
        let back = Connection::open(machine.path(&to).join("opencode.db")).unwrap();
        let mut query = back.prepare("SELECT id FROM session ORDER BY id").unwrap();
        let rows = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let ids: Vec<String> = rows.map(Result::unwrap).collect();
        assert_eq!(ids.join(" "), expected);
    }
}

#[test]
fn an_encrypted_archive_shows_agents_only_with_the_key() {
    let machine = Machine::new();
    let opencode = OpenCode::on(&machine);
    opencode.add_session("ses_one");
    opencode.add_prompt("ses_one", 1, "ask ses_one");
    machine.text(&["keep", "--encrypt", "key.txt"]);
    for (_, file, _) in SESSIONS {
        fs::remove_file(machine.path(file)).unwrap();
    }
    let sealed = machine.run(&["list", "--archived", "--json"]);
    assert!(!sealed.status.success(), "{}", stdout(&sealed));
    let all = machine.listed(&["--archived", "--identity", "key.txt"]);
    // With that of Claude Code and that of OpenCode.
    assert_eq!(all.len(), SESSIONS.len() + 2);
    assert_eq!(all.get("ses_one").map(String::as_str), Some("opencode"));
    let id = SESSIONS[1].2;
    let text = machine.text(&["replay", id, "--identity", "key.txt"]);
    assert!(text.contains("tell pi"), "{text}");
    // What is found later is encrypted as well.
    let (agent, file, _) = SESSIONS[2];
    fs::remove_dir_all(machine.path("data/transcript")).unwrap();
    machine.text(&["keep", "--agent", "claude-code", "--encrypt", "other.txt"]);
    machine.write(file, &records(agent, SESSIONS[2].2));
    machine.text(&["keep"]);
    let sealed = machine.run(&["list", "--archived", "--agent", agent]);
    assert!(!sealed.status.success(), "{}", stdout(&sealed));
}

#[test]
fn prune_names_old_sessions_of_an_agent_and_keeps_those_that_were_just_captured() {
    let machine = Machine::new();
    machine.text(&["keep"]);
    let (_, file, _) = SESSIONS[1];
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(40 * 86_400);
    fs::File::open(machine.path(file))
        .unwrap()
        .set_modified(old)
        .unwrap();
    machine.text(&["keep"]);
    let report = machine.records(&["prune", "--agent", "pi", "--yes", "--json"]);
    let kept = report[0]["kept"].as_array().unwrap();
    assert_eq!(kept[0]["reason"], "captured less than seven days ago");
    assert!(kept[0]["path"].as_str().unwrap().ends_with(file));
    assert!(machine.path(file).exists());
    let several = machine.run(&["prune", "--agent", "pi", "--agent", "qwen"]);
    assert_eq!(several.status.code(), Some(2), "{}", stderr(&several));
}

#[test]
fn a_keeper_that_watches_captures_what_agents_write() {
    let machine = Machine::new();
    let mut command = machine.command(&["keep", "--watch", "--every", "1", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut next = || -> Value {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    for _ in 0..=SESSIONS.len() {
        assert_eq!(next()["captured"], 1);
    }
    let (agent, file, id) = SESSIONS[2];
    let mut all = records(agent, id);
    all.push(all[1].clone());
    machine.write(file, &all);
    // A version whose time is not yet certain may be captured again.
    let report = loop {
        let report = next();
        if report["bytes"] != 0 {
            break report;
        }
    };
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(
        (&report["agent"], &report["captured"]),
        (&json!(agent), &json!(1))
    );
}
