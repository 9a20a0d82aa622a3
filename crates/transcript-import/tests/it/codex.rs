//! Codex: chains of files, compactions, lost items.

use serde_json::{Value, json};
use transcript_import::{Agent, BranchKind, DamageKind};

use crate::support::{Home, branch, lines, live};

const FIRST: &str = "10000000-0000-7000-8000-000000000001";
const FORK: &str = "20000000-0000-7000-8000-000000000002";
const REVERT: &str = "30000000-0000-7000-8000-000000000003";
const LATER_REVERT: &str = "40000000-0000-7000-8000-000000000004";

fn path(thread: &str) -> String {
    format!("sessions/2026/01/02/rollout-2026-01-02T03-04-05-{thread}.jsonl")
}

fn reverted(thread: &str, file: &str) -> String {
    path(&format!("{thread}_{file}"))
}

/// A rollout: its records get the ordinals from `start` on.
fn rollout(start: u64, records: Vec<Value>) -> Vec<Value> {
    let numbered = records.into_iter().zip(start..);
    numbered
        .map(|(mut record, ordinal)| {
            record["ordinal"] = ordinal.into();
            record
        })
        .collect()
}

fn record(kind: &str, payload: Value) -> Value {
    let mut record = json!({"timestamp": "2026-01-02T03:04:05.678Z", "type": kind});
    record["payload"] = payload;
    record
}

fn meta(thread: &str) -> Value {
    let payload = json!({"id": thread, "timestamp": "2026-01-02T03:04:05.000Z", "cwd": "/w",
        "originator": "o", "cli_version": "0.169.0", "source": "cli"});
    record("session_meta", payload)
}

fn based(thread: &str, base: &str, end: u64) -> Value {
    let mut record = meta(thread);
    record["payload"]["history_base"] =
        json!({"thread_id": base, "end_ordinal_exclusive": end, "end_byte_offset": 1});
    record
}

fn item(payload: Value) -> Value {
    record("response_item", payload)
}

fn message(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" {
        "output_text"
    } else {
        "input_text"
    };
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
}

fn user(text: &str) -> Value {
    item(message("user", text))
}

fn assistant(text: &str) -> Value {
    item(message("assistant", text))
}

fn shown(kind: &str, text: &str) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    let item = json!({"type": kind, "id": text, "content": content});
    record("event_msg", json!({"type": "item_completed", "item": item}))
}

fn call(id: &str, arguments: &str) -> Value {
    item(
        json!({"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": id}),
    )
}

fn output(id: &str, text: &str) -> Value {
    item(json!({"type": "function_call_output", "call_id": id, "output": text}))
}

#[test]
fn tools_of_the_provider_have_no_results_and_others_do() {
    let home = Home::of(Agent::Codex);
    let local = json!({"type": "local_shell_call", "call_id": "s", "status": "completed",
        "action": {"type": "exec", "command": ["ls"]}});
    let search = json!({"type": "web_search_call", "id": "ws", "status": "completed",
        "action": {"type": "search", "query": "q"}});
    let image = json!({"type": "image_generation_call", "id": "ig", "status": "completed",
        "revised_prompt": "a cat", "result": "AAAA"});
    let tools = json!({"type": "tool_search_call", "call_id": "t", "execution": "client", "arguments": {"query": "q"}});
    let found = json!({"type": "tool_search_output", "call_id": "t", "tools": [{"name": "x"}]});
    let records = vec![
        meta(FIRST),
        user("one"),
        item(local),
        item(search),
        item(image),
        item(tools),
        item(found),
    ];
    home.put(&path(FIRST), &rollout(0, records));
    let conversation = home.read(FIRST);
    let expected = [
        "U one",
        r#"T local_shell {"command":["ls"],"type":"exec"}"#,
        "O aborted",
        r#"T web_search {"query":"q","type":"search"}"#,
        r#"T image_generation "a cat""#,
        r#"T tool_search {"query":"q"}"#,
        r#"O [{"name":"x"}]"#,
    ];
    assert_eq!(live(&conversation), expected);
    assert!(conversation.unknown.is_empty());
    let image = conversation.stored(conversation.live[4]);
    assert_eq!(image.images.len(), 1);
}

#[test]
fn a_fork_continues_after_the_part_of_its_base() {
    let home = Home::of(Agent::Codex);
    let base = vec![
        meta(FIRST),
        user("one"),
        assistant("two"),
        user("three"),
        assistant("four"),
    ];
    home.put(&path(FIRST), &rollout(0, base));
    let fork = vec![based(FORK, FIRST, 3), user("other")];
    home.put(&path(FORK), &rollout(3, fork));

    let conversation = home.read(FORK);
    assert_eq!(live(&conversation), ["U one", "A two", "U other"]);
    assert_eq!(
        branch(&conversation, BranchKind::Forked),
        ["U three", "A four"]
    );
    let original = home.read(FIRST);
    assert_eq!(live(&original), ["U one", "A two", "U three", "A four"]);
    assert!(original.branches.is_empty());
    assert_eq!(home.sessions(), [FIRST, FORK]);
}

/// A record is reverted only if no thread of the store holds it.
#[test]
fn reverted_records_that_a_fork_holds_are_those_of_the_fork() {
    let home = Home::of(Agent::Codex);
    let first = vec![
        meta(FIRST),
        user("one"),
        assistant("two"),
        user("three"),
        assistant("four"),
    ];
    home.put(&path(FIRST), &rollout(0, first));
    let revert = vec![based(FIRST, FIRST, 2), user("again")];
    home.put(&reverted(FIRST, REVERT), &rollout(2, revert));

    let conversation = home.read(FIRST);
    assert_eq!(live(&conversation), ["U one", "U again"]);
    assert_eq!(
        branch(&conversation, BranchKind::Reverted),
        ["A two", "U three", "A four"]
    );

    // A fork from before the revert still reads the old file.
    home.put(
        &path(FORK),
        &rollout(4, vec![based(FORK, FIRST, 4), user("fork")]),
    );
    let conversation = home.read(FIRST);
    assert_eq!(live(&conversation), ["U one", "U again"]);
    assert_eq!(branch(&conversation, BranchKind::Reverted), ["A four"]);
    assert_eq!(
        branch(&conversation, BranchKind::Forked),
        ["A two", "U three"]
    );
    assert_eq!(
        live(&home.read(FORK)),
        ["U one", "A two", "U three", "U fork"]
    );
}

#[test]
fn a_thread_continues_in_the_file_of_its_newest_revert() {
    let home = Home::of(Agent::Codex);
    home.put(
        &path(FIRST),
        &rollout(0, vec![meta(FIRST), user("one"), user("two")]),
    );
    let newer = vec![based(FIRST, REVERT, 3), user("four")];
    home.put(&reverted(FIRST, LATER_REVERT), &rollout(3, newer));
    let older = vec![based(FIRST, FIRST, 2), user("three"), user("lost")];
    home.put(&reverted(FIRST, REVERT), &rollout(2, older));
    let conversation = home.read(FIRST);
    assert_eq!(live(&conversation), ["U one", "U four"]);
    assert_eq!(
        branch(&conversation, BranchKind::Reverted),
        ["U two", "U three", "U lost"]
    );

    // A fork of a reverted thread names the file and not the thread.
    let fork = vec![based(FORK, REVERT, 4), user("fork")];
    home.put(&path(FORK), &rollout(4, fork));
    assert_eq!(
        live(&home.read(FORK)),
        ["U one", "U three", "U fork"].map(str::to_owned).to_vec()
    );
}

#[test]
fn a_compaction_replaces_the_items_before_it() {
    let home = Home::of(Agent::Codex);
    let history = json!([message("user", "one"), message("user", "the summary")]);
    let compacted = json!({"message": "the summary", "replacement_history": history});
    let with_history = vec![
        meta(FIRST),
        user("one"),
        assistant("two"),
        record("compacted", compacted),
        user("three"),
    ];
    home.put(&path(FIRST), &rollout(0, with_history));
    let conversation = home.read(FIRST);
    assert_eq!(live(&conversation), ["U one", "S the summary", "U three"]);
    assert_eq!(
        branch(&conversation, BranchKind::Compacted),
        ["U one", "A two"]
    );

    // Older versions write no history: the prompts stay.
    let without = vec![
        meta(FORK),
        user("one"),
        assistant("two"),
        record("compacted", json!({"message": "the summary"})),
        user("three"),
    ];
    home.put(&path(FORK), &without);
    let conversation = home.read(FORK);
    assert_eq!(live(&conversation), ["U one", "S the summary", "U three"]);
    assert_eq!(branch(&conversation, BranchKind::Compacted), ["A two"]);
}

#[test]
fn a_revert_over_a_compaction_has_the_items_again() {
    let home = Home::of(Agent::Codex);
    let history = json!([message("user", "one"), message("user", "the summary")]);
    let compacted = json!({"message": "the summary", "replacement_history": history});
    let first = vec![
        meta(FIRST),
        user("one"),
        assistant("two"),
        record("compacted", compacted),
    ];
    home.put(&path(FIRST), &rollout(0, first));
    home.put(
        &reverted(FIRST, REVERT),
        &rollout(3, vec![based(FIRST, FIRST, 3), user("again")]),
    );
    assert_eq!(live(&home.read(FIRST)), ["U one", "A two", "U again"]);
}

#[test]
fn a_roll_back_removes_the_last_turns() {
    let home = Home::of(Agent::Codex);
    for (turns, expected) in [(0, 5), (1, 3), (2, 1), (9, 1)] {
        let back = json!({"type": "thread_rolled_back", "num_turns": turns});
        let records = [
            meta(FIRST),
            user("<environment_context>here"),
            user("one"),
            assistant("two"),
            user("three"),
            assistant("four"),
            record("event_msg", back),
        ];
        home.put(&path(FIRST), &records);
        let conversation = home.read(FIRST);
        assert_eq!(live(&conversation).len(), expected, "{turns}");
        assert_eq!(
            branch(&conversation, BranchKind::Rewound).len(),
            5 - expected
        );
    }
}

#[test]
fn each_call_is_sent_with_a_result_and_each_result_with_a_call() {
    let home = Home::of(Agent::Codex);
    let without_id = json!({"type": "function_call_output", "name": "goal", "output": "kept"});
    let records = [
        meta(FIRST),
        call("c1", r#"{"cmd": "ls"}"#),
        output("c1", "a.txt"),
        call("c2", "no JSON"),
        output("c3", "of a lost call"),
        item(without_id),
    ];
    home.put(&path(FIRST), &records);
    let sent = [
        r#"T exec_command {"cmd": "ls"}"#,
        "O a.txt",
        r#"T exec_command "no JSON""#,
        "O aborted",
        "O kept",
    ];
    let conversation = home.vendor(FIRST);
    assert_eq!(live(&conversation), sent);
    assert_eq!(
        branch(&conversation, BranchKind::Unsent),
        ["O of a lost call"]
    );
    assert!(live(&home.read(FIRST)).contains(&"O of a lost call".to_owned()));
}

#[test]
fn text_that_codex_adds_is_context_even_if_people_can_type_the_same() {
    let home = Home::of(Agent::Codex);
    let with_kind = |text: &str, kind: &str| {
        let mut item = message("user", text);
        item["internal_chat_message_metadata_passthrough"] = json!({"content_item_kinds": [kind]});
        record("response_item", item)
    };
    let records = [
        meta(FIRST),
        item(message("developer", "rules")),
        user("# AGENTS.md instructions"),
        user("<user_shell_command>ls</user_shell_command>"),
        with_kind("<environment_context>typed", "user.text"),
        with_kind("no tag", "environments.environment_context"),
        with_kind("<user_shell_command>", "shell.user_command"),
        with_kind("added by a program", "unknown"),
    ];
    home.put(&path(FIRST), &records);
    let expected = [
        "C rules",
        "C # AGENTS.md instructions",
        "U <user_shell_command>ls</user_shell_command>",
        "U <environment_context>typed",
        "C no tag",
        "U <user_shell_command>",
        "U added by a program",
    ];
    assert_eq!(live(&home.read(FIRST)), expected);
}

#[test]
fn reasoning_images_and_custom_tools_are_items() {
    let home = Home::of(Agent::Codex);
    let thought = json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}],
        "content": null, "encrypted_content": "x"});
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,AA=="});
    let prompt = json!({"type": "message", "role": "user",
        "content": [{"type": "input_text", "text": "look"}, image]});
    let patch = json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "c", "input": "*** Begin"});
    let patched = json!({"type": "custom_tool_call_output", "call_id": "c", "output": [image]});
    let spawn = json!({"type": "function_call", "name": "spawn", "namespace": "agents", "arguments": "{}", "call_id": "d"});
    let records = [
        meta(FIRST),
        item(thought),
        item(prompt),
        item(patch),
        item(patched),
        item(spawn),
    ];
    home.put(&path(FIRST), &records);
    let expected = [
        "R hm",
        "U look+image",
        r#"T apply_patch "*** Begin""#,
        "O +image",
        "T agents.spawn {}",
        "O aborted",
    ];
    assert_eq!(live(&home.read(FIRST)), expected);
}

#[test]
fn metadata_comes_from_the_chain_and_the_index_of_titles() {
    let home = Home::of(Agent::Codex);
    let usage = |input: u64| {
        let total = json!({"input_tokens": input, "output_tokens": 2, "cached_input_tokens": 1});
        record(
            "event_msg",
            json!({"type": "token_count", "info": {"total_token_usage": total}}),
        )
    };
    let spawned = json!({"subagent": {"thread_spawn": {"parent_thread_id": FORK, "depth": 1}}});
    let mut header = meta(FIRST);
    header["payload"]["source"] = spawned;
    header["payload"]["forked_from_id"] = REVERT.into();
    let model = record("turn_context", json!({"model": "m2"}));
    let records = [
        header,
        user("one"),
        usage(5),
        usage(9),
        model,
        record("new_kind", json!({})),
    ];
    home.put(&path(FIRST), &records);
    let titles = [
        json!({"id": FIRST, "thread_name": "old"}),
        json!({"id": FORK, "thread_name": "another"}),
        json!({"id": FIRST, "thread_name": "new"}),
    ];
    home.put("session_index.jsonl", &titles);
    let conversation = home.read(FIRST);
    let metadata = &conversation.metadata;
    assert_eq!(metadata.title.as_deref(), Some("new"));
    assert_eq!(metadata.cwd.as_deref(), Some("/w"));
    assert_eq!(metadata.model.as_deref(), Some("m2"));
    assert_eq!(metadata.subagent_of.as_deref(), Some(FORK));
    assert_eq!(metadata.forked_from.as_deref(), Some(REVERT));
    let usage = metadata.usage.expect("it is counted");
    assert_eq!((usage.input, usage.output, usage.cache_read), (8, 2, 1));
    assert_eq!(
        conversation.unknown.into_iter().collect::<Vec<_>>(),
        [("new_kind".to_owned(), 1)]
    );
}

#[test]
fn a_missing_or_circular_base_costs_only_its_own_records() {
    let home = Home::of(Agent::Codex);
    home.put(
        &path(FORK),
        &rollout(3, vec![based(FORK, FIRST, 3), user("own")]),
    );
    let check = |home: &Home, own: &[&str]| {
        let conversation = home.read(FORK);
        assert_eq!(live(&conversation), own);
        let kinds = conversation.damage.iter().map(|damage| damage.kind);
        assert!(kinds.collect::<Vec<_>>().contains(&DamageKind::MissingBase));
        let refused = home.vendor(FORK);
        assert!(refused.refusal.is_some() && refused.live.is_empty());
    };
    check(&home, &["U own"]);
    home.put(
        &path(FIRST),
        &rollout(0, vec![based(FIRST, FORK, 3), user("circle")]),
    );
    check(&home, &["U circle", "U own"]);
    home.put(&path(FIRST), &rollout(0, vec![meta(FIRST), user("short")]));
    check(&home, &["U short", "U own"]);
}

#[test]
fn one_damaged_line_costs_codex_the_line_and_a_byte_the_thread() {
    let home = Home::of(Agent::Codex);
    let glued = |between: &str| {
        let (one, two) = (user("one").to_string(), assistant("two").to_string());
        format!(
            "{}{one}{between}{two}\n{}",
            lines(&[meta(FIRST)]),
            lines(&[user("three")])
        )
    };
    let torn = &user("torn").to_string()[..90];
    for between in ["", torn, "\0\0\0"] {
        home.put_bytes(&path(FIRST), glued(between).as_bytes());
        let conversation = home.read(FIRST);
        assert_eq!(
            live(&conversation),
            ["U one", "A two", "U three"],
            "{between:?}"
        );
        assert!(!conversation.damage.is_empty());
        assert_eq!(live(&home.vendor(FIRST)), ["U three"]);
    }
    let text = lines(&[meta(FIRST), user("o?e"), assistant("two")]);
    let bytes: Vec<u8> = text
        .bytes()
        .map(|byte| if byte == b'?' { 0xff } else { byte })
        .collect();
    home.put_bytes(&path(FIRST), &bytes);
    assert_eq!(live(&home.read(FIRST)), ["U o\u{fffd}e", "A two"]);
    assert!(home.vendor(FIRST).refusal.is_some());
}

#[test]
fn without_its_first_record_a_thread_has_the_id_in_its_name() {
    let home = Home::of(Agent::Codex);
    home.put(&path(FIRST), &[user("one")]);
    assert_eq!(live(&home.read(FIRST)), ["U one"]);
    assert!(home.vendor(FIRST).refusal.is_some());
}

/// Codex shows the events and sends the items: after damage each can have what the other lost.
#[test]
fn a_lost_item_is_recovered_from_its_event() {
    let home = Home::of(Agent::Codex);
    let command = json!({"type": "CommandExecution", "id": "c1", "command": ["ls"],
        "source": "agent", "aggregated_output": "a.txt"});
    let records = [
        meta(FIRST),
        user("one"),
        shown("UserMessage", "one"),
        shown("AgentMessage", "lost"),
        record(
            "event_msg",
            json!({"type": "item_completed", "item": command}),
        ),
        record(
            "event_msg",
            json!({"type": "agent_message", "message": "two"}),
        ),
        assistant("two"),
    ];
    home.put(&path(FIRST), &records);
    let recovered = [
        "U one",
        "A lost",
        r#"T exec_command ["ls"]"#,
        "O a.txt",
        "A two",
    ];
    assert_eq!(live(&home.read(FIRST)), recovered);
    let vendor = home.vendor(FIRST);
    assert_eq!(live(&vendor), ["U one", "A two"]);
    assert_eq!(branch(&vendor, BranchKind::Unsent), recovered[1..4]);
}

#[cfg(feature = "zstd")]
mod compressed {
    use super::*;

    fn compress(records: &[Value]) -> Vec<u8> {
        zstd::encode_all(lines(records).as_bytes(), 0).expect("it compresses")
    }

    #[test]
    fn a_compressed_base_is_read() {
        let home = Home::of(Agent::Codex);
        let base = rollout(0, vec![meta(FIRST), user("one"), user("two")]);
        home.put_bytes(&format!("{}.zst", path(FIRST)), &compress(&base));
        home.put(
            &path(FORK),
            &rollout(2, vec![based(FORK, FIRST, 2), user("three")]),
        );
        assert_eq!(live(&home.read(FORK)), ["U one", "U three"]);
        assert_eq!(live(&home.vendor(FIRST)), ["U one", "U two"]);
    }

    #[test]
    fn the_longer_one_of_a_compressed_and_a_plain_file_is_live() {
        let home = Home::of(Agent::Codex);
        let all = rollout(0, vec![meta(FIRST), user("one"), user("two")]);
        home.put_bytes(&format!("{}.zst", path(FIRST)), &compress(&all));
        home.put(&path(FIRST), &all[..2]);
        let conversation = home.read(FIRST);
        assert_eq!(live(&conversation), ["U one", "U two"]);
        assert_eq!(branch(&conversation, BranchKind::Superseded), ["U one"]);
        // Codex prefers the plain file.
        assert_eq!(live(&home.vendor(FIRST)), ["U one"]);
    }

    #[test]
    fn a_torn_compressed_file_is_read_up_to_the_tear() {
        let home = Home::of(Agent::Codex);
        let records: Vec<Value> = (0..4000)
            .map(|number| user(&format!("{number:x} {}", number * 7919)))
            .collect();
        let all = compress(&[vec![meta(FIRST)], records].concat());
        home.put_bytes(&format!("{}.zst", path(FIRST)), &all[..all.len() / 2]);
        let conversation = home.read(FIRST);
        assert!(conversation.live.len() > 100, "{}", conversation.live.len());
        let kinds = conversation.damage.iter().map(|damage| damage.kind);
        assert!(
            kinds
                .collect::<Vec<_>>()
                .contains(&DamageKind::TornCompression)
        );
    }
}
