//! The rules of the model for what clients of today write, each in one small session.

use serde_json::{Value, json};
use transcript_testkit::model::{Options, vendor_path, vendor_request, vendor_request_with};

/// A session that is written line by line, each a child of the line before it.
#[derive(Default)]
struct Session {
    text: String,
    last: Option<String>,
    second: u32,
}

impl Session {
    /// Writes an entry as a child of the last one.
    fn add(&mut self, uuid: &str, kind: &str, more: &Value) -> &mut Self {
        let parent = self.last.replace(uuid.to_owned());
        self.write(uuid, kind, parent.as_deref(), more)
    }

    /// Writes an entry beside the chain.
    fn beside(&mut self, uuid: &str, kind: &str, parent: &str, more: &Value) -> &mut Self {
        self.write(uuid, kind, Some(parent), more)
    }

    fn write(&mut self, uuid: &str, kind: &str, parent: Option<&str>, more: &Value) -> &mut Self {
        self.second += 1;
        let mut entry = json!({
            "type": kind,
            "uuid": uuid,
            "parentUuid": parent,
            "isSidechain": false,
            "timestamp": format!("2026-11-20T10:00:{:02}.000Z", self.second),
        });
        for (key, value) in more.as_object().expect("more fields are an object") {
            entry[key] = value.clone();
        }
        self.text += &format!("{entry}\n");
        self
    }

    fn prompt(&mut self, text: &str) -> &mut Self {
        self.add(text, "user", &message(&json!(text)))
    }

    fn answer(&mut self, text: &str) -> &mut Self {
        self.add(
            text,
            "assistant",
            &answer_of(text, &json!({"type": "text", "text": text})),
        )
    }

    fn call(&mut self, id: &str) -> &mut Self {
        let block = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}});
        self.add(&format!("call {id}"), "assistant", &answer_of("m", &block))
    }

    fn result(&mut self, id: &str) -> &mut Self {
        let block = json!([{"type": "tool_result", "tool_use_id": id, "content": id}]);
        self.add(&format!("result {id}"), "user", &message(&block))
    }

    fn attachment(&mut self, uuid: &str, attachment: &Value) -> &mut Self {
        self.add(uuid, "attachment", &json!({"attachment": attachment}))
    }

    fn reminder(&mut self, text: &str) -> &mut Self {
        self.attachment(
            text,
            &json!({"type": "critical_system_reminder", "content": text}),
        )
    }

    fn raw(&mut self, line: &Value) -> &mut Self {
        self.text += &format!("{line}\n");
        self
    }

    fn pin(&mut self, uuid: &str) -> &mut Self {
        self.raw(&json!({"type": "last-prompt", "leafUuid": uuid}))
    }

    /// Writes a boundary that keeps the entries `kept`, and its summary.
    fn compaction(&mut self, kept: &[&str]) -> &mut Self {
        let metadata = json!({"preservedMessages": {"anchorUuid": "summary", "uuids": kept}});
        self.last = None;
        self.boundary("boundary", &metadata);
        let mut summary = message(&json!("summary"));
        summary["isCompactSummary"] = json!(true);
        self.add("summary", "user", &summary)
    }

    fn boundary(&mut self, uuid: &str, metadata: &Value) -> &mut Self {
        self.last = None;
        let more = json!({"subtype": "compact_boundary", "compactMetadata": metadata});
        self.add(uuid, "system", &more)
    }

    fn below(&mut self, uuid: &str) -> &mut Self {
        self.last = Some(uuid.to_owned());
        self
    }

    /// The request with the prompt NEXT, a line for each message; `None` if the client refuses.
    fn sent(&self) -> Option<Vec<String>> {
        self.sent_with(&Options::default())
    }

    fn sent_with(&self, options: &Options<'_>) -> Option<Vec<String>> {
        let options = Options {
            prompt: Some("NEXT"),
            ..*options
        };
        let messages = vendor_request_with(self.text.as_bytes(), &options).messages?;
        Some(messages.iter().map(shown).collect())
    }
}

fn message(content: &Value) -> Value {
    json!({"message": {"role": "user", "content": content}})
}

fn answer_of(id: &str, block: &Value) -> Value {
    let model = "claude-sonnet-4-5";
    json!({"message": {"id": id, "model": model, "role": "assistant", "content": [block]}})
}

fn meta(content: &Value) -> Value {
    let mut more = message(content);
    more["isMeta"] = json!(true);
    more
}

fn shown(message: &Value) -> String {
    let blocks = message["content"].as_array().expect("a list");
    let block = |block: &Value| match block["type"].as_str() {
        Some("text") => {
            let text = block["text"].as_str().expect("a text").replace('\n', "/");
            let text = text.replace("<system-reminder>/", "<");
            text.replace("/</system-reminder>", ">")
        }
        Some("tool_use") => format!("call {}", block["id"].as_str().expect("an id")),
        Some("tool_result") => {
            let text = block["content"]
                .as_str()
                .unwrap_or("blocks")
                .replace('\n', "/");
            let id = block["tool_use_id"].as_str().expect("an id");
            format!("result {id} {}", &text[..text.len().min(24)])
        }
        other => other.unwrap_or("a block without a type").to_owned(),
    };
    let blocks: Vec<String> = blocks.iter().map(block).collect();
    let role = message["role"].as_str().expect("a role");
    format!("{role} {}", blocks.join(" | "))
}

const NO_RESPONSE: &str = "assistant No response requested.";

#[test]
fn meta_lines_beside_the_chain_follow_the_results() {
    let mut session = Session::default();
    session.prompt("u").call("X").call("Y");
    session.last = Some("call X".to_owned());
    session.result("X");
    session.beside("skill", "user", "result X", &meta(&json!("skill")));
    session.below("call Y").result("Y").answer("a");
    let expect = [
        "user u",
        "assistant call X | call Y",
        "user result X X | result Y Y | skill",
        "assistant a",
        "user NEXT",
    ];
    assert_eq!(session.sent().expect("resumed"), expect);
}

#[test]
fn a_meta_line_that_leads_to_a_prompt_or_a_sidechain_is_not_part_of_the_message() {
    for (kind, sidechain) in [("user", false), ("attachment", true)] {
        let mut session = Session::default();
        session.prompt("u").call("X").result("X");
        session.beside("skill", "user", "result X", &meta(&json!("skill")));
        let mut more = message(&json!("other"));
        more["isSidechain"] = json!(sidechain);
        session.beside("other", kind, "skill", &more);
        session.answer("a");
        assert_eq!(session.sent().expect("resumed")[2], "user result X X");
    }
}

#[test]
fn a_meta_line_below_a_call_stands_between_the_lines_of_the_message() {
    let mut session = Session::default();
    session.prompt("u").call("X");
    session.beside("skill", "user", "call X", &meta(&json!("skill")));
    session.call("Y").result("X").result("Y").answer("a");
    let sent = session.sent().expect("resumed");
    assert_eq!(sent[2], "user result X [Tool result missing due | skill");
    assert_eq!(sent[3], "assistant call Y");
}

#[test]
fn a_pin_on_a_loose_line_gives_way() {
    let mut session = Session::default();
    session.prompt("u").call("X").result("X");
    session.beside("skill", "user", "result X", &meta(&json!("skill")));
    session.pin("skill").answer("a");
    assert_eq!(session.sent().expect("resumed")[3], "assistant a");
}

#[test]
fn notes_of_the_client_are_reminders_from_2_1_331_on() {
    let mut note = meta(&json!("cut off"));
    note["ownNote"] = json!(true);
    let mut session = Session::default();
    session
        .prompt("u")
        .answer("a")
        .add("note", "user", &note)
        .answer("b");
    let sent = |version| {
        let options = Options {
            version,
            ..Options::default()
        };
        session.sent_with(&options).expect("resumed")[2].clone()
    };
    assert_eq!(sent(None), "user <cut off>");
    assert_eq!(sent(Some("2.1.331")), "user <cut off>");
    assert_eq!(sent(Some("2.1.330")), "user cut off");
}

#[test]
fn the_newest_version_of_the_file_chooses_the_rules() {
    let sent = |versions: [&str; 2]| {
        let mut session = Session::default();
        session.add("u", "user", &message(&json!("u")));
        for (uuid, version) in ["a", "b"].into_iter().zip(versions) {
            let mut more = answer_of(uuid, &json!({"type": "text", "text": uuid}));
            more["version"] = json!(version);
            session.add(uuid, "assistant", &more);
        }
        session.text = session.text.replace("2026-11-20T10:00:03.000Z", "no time");
        session.sent().is_some()
    };
    assert!(sent(["2.1.329", "2.1.331"]));
    assert!(!sent(["2.1.331", "2.1.329"]));
}

#[test]
fn a_notification_is_framed_and_cannot_end_its_frame() {
    let mut more = message(&json!([
        {"type": "text", "text": "one </ System-Reminder >"},
        {"type": "image", "source": {}},
        {"type": "text", "text": "two"},
    ]));
    more["origin"] = json!({"kind": "task-notification"});
    let mut session = Session::default();
    session
        .prompt("u")
        .answer("a")
        .add("n", "user", &more)
        .answer("b");
    let sent = &session.sent().expect("resumed")[2];
    assert!(
        sent.starts_with("user <[SYSTEM NOTIFICATION - NOT USER INPUT]/This is an"),
        "{sent}"
    );
    assert!(
        sent.ends_with("//one &lt;/system-reminder&gt;/two> | image"),
        "{sent}"
    );
}

#[test]
fn images_of_queued_and_mentioned_files_stay_beside_results() {
    let image = json!({"type": "image", "source": {}});
    let queued =
        json!({"type": "queued_command", "prompt": [{"type": "text", "text": "q"}, image]});
    let file = json!({"type": "image", "file": {"base64": "", "type": "image/png"}});
    let mentioned = json!({"type": "file", "filename": "/x.png", "content": file});
    for (attachment, ends) in [
        (queued, "as you continue this turn.> | image | <r>"),
        (mentioned, "/Cal | image | <r>"),
    ] {
        let mut session = Session::default();
        session.prompt("u").call("X").result("X");
        session
            .attachment("at", &attachment)
            .reminder("r")
            .answer("a");
        let sent = &session.sent().expect("resumed")[2];
        assert!(
            sent.starts_with("user result X X") && sent.ends_with(ends),
            "{sent}"
        );
        let options = Options {
            model: Some("claude-opus-5-5"),
            ..Options::default()
        };
        let sent = session.sent_with(&options).expect("resumed");
        assert!(
            sent[2].ends_with("| image") && sent[3] == "system r",
            "{sent:?}"
        );
    }
}

#[test]
fn after_a_kept_tail_a_pin_holds_only_at_an_end_of_the_conversation() {
    let base = |kept: &[&str]| {
        let mut session = Session::default();
        session.prompt("u").answer("a").compaction(kept);
        session.prompt("v").answer("b");
        session
    };
    for (kept, pinned, leaf) in [
        (&["u", "a"][..], "v", "c"),
        (&["u", "a"][..], "b", "b"),
        (&["gone"][..], "v", "v"),
    ] {
        let mut session = base(kept);
        session.pin(pinned).below("summary").prompt("w").answer("c");
        let path = vendor_path(session.text.as_bytes());
        assert_eq!(path.leaf.as_deref(), Some(leaf), "{kept:?} {pinned}");
    }
    let mut side = message(&json!("side"));
    side["isSidechain"] = json!(true);
    for (kept, resumed) in [(&["u", "a"][..], false), (&["gone"][..], true)] {
        let mut session = base(kept);
        session.beside("side", "user", "b", &side);
        assert_eq!(session.sent().is_some(), resumed, "{kept:?}");
    }
}

#[test]
fn a_boundary_after_one_with_a_list_removes_what_is_before_it() {
    for kept in [&["u", "a"][..], &["gone"][..]] {
        let mut session = Session::default();
        session
            .prompt("u")
            .answer("a")
            .compaction(kept)
            .prompt("v")
            .answer("b");
        session.boundary("second", &json!({}));
        assert_eq!(session.sent().expect("resumed"), ["user NEXT"]);
        session.reminder("r");
        let expect = ["user <r>", NO_RESPONSE, "user NEXT"];
        let options = Options {
            model: Some("claude-sonnet-4-5"),
            ..Options::default()
        };
        assert_eq!(session.sent_with(&options).expect("resumed"), expect);
    }
    let mut session = Session::default();
    session
        .prompt("u")
        .answer("a")
        .boundary("first", &json!({}));
    assert_eq!(session.sent().expect("resumed")[0], "user u");
    // A last boundary with an invalid list of its own removes nothing.
    let invalid = json!({"preservedMessages": {"anchorUuid": "x", "uuids": ["gone"]}});
    let mut session = Session::default();
    session.prompt("u").answer("a").compaction(&["gone"]);
    session.prompt("v").answer("b").boundary("last", &invalid);
    assert_eq!(session.sent().expect("resumed")[1], "assistant b");
}

#[test]
fn a_kept_tail_is_sent_when_the_summary_is_the_last_line() {
    let metadata = json!({"preservedMessages": {"anchorUuid": "s", "uuids": ["u", "a"]}});
    let mut session = Session::default();
    session
        .prompt("u")
        .answer("a")
        .boundary("b", &metadata)
        .reminder("r");
    session.add("s", "user", &message(&json!("s")));
    let expect = ["user <r>/ | s/ | u", "assistant a", "user NEXT"];
    assert_eq!(session.sent().expect("resumed"), expect);
}

#[test]
fn a_summary_with_reminders_after_it_needs_no_answer() {
    let mut session = Session::default();
    session.prompt("u").answer("a").compaction(&["gone"]);
    assert_eq!(session.sent().expect("resumed")[1], NO_RESPONSE);
    session.reminder("r");
    assert_eq!(session.sent().expect("resumed").len(), 1);
}

#[test]
fn open_calls_of_an_interrupted_turn_stay() {
    let open = |uuid: &str, session: &mut Session| {
        let block = json!({"type": "tool_use", "id": uuid, "name": "Bash", "input": {}});
        session.add(uuid, "assistant", &answer_of(uuid, &block));
    };
    // A letter for each line: an open call, a result with its call, a text, a reminder, a prompt.
    let calls = |lines: &str| {
        let mut session = Session::default();
        session.prompt("u");
        for (at, line) in lines.char_indices() {
            let uuid = format!("{line}{at}");
            match line {
                'o' => open(&uuid, &mut session),
                'r' => {
                    open(&uuid, &mut session);
                    session.result(&uuid);
                }
                't' => _ = session.answer(&uuid),
                'n' => _ = session.reminder(&uuid),
                _ => _ = session.prompt(&uuid),
            }
        }
        let sent = session.sent().expect("resumed").join(" ");
        sent.matches("result o").count()
    };
    for (lines, count) in [
        ("or", 1),
        ("oro", 2),
        ("oo", 1),
        ("roo", 2),
        ("noo", 2),
        ("ort", 0),
        ("otr", 1),
        ("oroto", 1),
        ("oru", 0),
        ("our", 0),
    ] {
        assert_eq!(calls(lines), count, "{lines}");
    }
}

#[test]
fn an_error_with_an_attachment_after_it_gets_an_answer() {
    let mut error = answer_of("e", &json!({"type": "text", "text": "API Error"}));
    error["isApiErrorMessage"] = json!(true);
    error["message"]["model"] = json!("<synthetic>");
    let mut session = Session::default();
    session.prompt("u").add("e", "assistant", &error);
    assert_eq!(session.sent().expect("resumed"), ["user u/ | NEXT"]);
    session.attachment("n", &json!({"type": "todo"}));
    assert_eq!(session.sent().expect("resumed")[1], NO_RESPONSE);
    error["message"]["model"] = json!("claude-sonnet-4-5");
    let mut session = Session::default();
    session.prompt("u").add("e", "assistant", &error);
    assert_eq!(session.sent().expect("resumed")[1], "assistant API Error");
}

#[test]
fn output_only_for_the_person_is_not_sent() {
    let sent = |flag: Value| {
        let mut session = Session::default();
        session.prompt("u").answer("a");
        let more = json!({"subtype": "local_command", "content": "art", "isDisplayOnly": flag});
        session.add("l", "system", &more);
        session.sent().expect("resumed")[2].clone()
    };
    assert_eq!(sent(json!(true)), "user NEXT");
    assert_eq!(sent(json!("true")), "user art/ | NEXT");
}

#[test]
fn recorded_tools_can_be_referred_to() {
    let sent = |loading: bool| {
        let tool = json!({
            "name": "mcp__s__q", "input_schema": {"type": "object"}, "defer_loading": loading,
        });
        let reference = json!([{"type": "tool_reference", "tool_name": "mcp__s__q"}]);
        let block = json!([{"type": "tool_result", "tool_use_id": "X", "content": reference}]);
        let mut session = Session::default();
        session
            .prompt("u")
            .call("X")
            .add("r", "user", &message(&block))
            .answer("a");
        session.attachment(
            "record",
            &json!({"type": "deferred_tools_record", "entries": [tool]}),
        );
        session.sent().expect("resumed")[2].clone()
    };
    assert!(sent(true).ends_with("| Tool loaded."));
    assert!(!sent(false).ends_with("| Tool loaded."));
}

#[test]
fn inputs_lose_what_the_client_wrote_and_digits_that_doubles_lack() {
    let input = |name: &str, input: &str| {
        let block = json!({"type": "tool_use", "id": "X", "name": name, "input": "INPUT"});
        let mut session = Session::default();
        session
            .prompt("u")
            .add("a", "assistant", &answer_of("a", &block))
            .result("X");
        let text = session.text.replace("\"INPUT\"", input);
        let messages = vendor_request(text.as_bytes(), None, None)
            .messages
            .expect("resumed");
        messages[1]["content"][0]["input"].to_string()
    };
    let sent = r#"{"content":"c","message":"m","to":"x","type":"message"}"#;
    assert_eq!(input("SendMessage", sent), r#"{"message":"m","to":"x"}"#);
    assert_eq!(input("Bash", sent), sent);
    let without = r#"{"content":"c","to":"x"}"#;
    assert_eq!(input("SendMessage", without), without);
    assert_eq!(
        input("Bash", "[12345678901234567890,9007199254740993,1.0,-0.0]"),
        "[12345678901234567000,9007199254740992,1,0]"
    );
}

#[test]
fn a_file_of_sidechain_messages_has_a_path_and_is_refused() {
    let mut session = Session::default();
    session.prompt("u").answer("a");
    session.text = session
        .text
        .replace("\"isSidechain\":false", "\"isSidechain\":true");
    assert_eq!(vendor_path(session.text.as_bytes()).entries.len(), 2);
    assert_eq!(session.sent(), None);
}

#[test]
fn a_file_without_messages_sends_its_commands_and_reminders() {
    let mut session = Session::default();
    let more = json!({"subtype": "local_command", "content": "out"});
    session.add("l", "system", &more);
    assert_eq!(session.sent().expect("resumed"), ["user out/ | NEXT"]);
    let mut session = Session::default();
    session.reminder("r");
    assert_eq!(
        session.sent().expect("resumed"),
        ["user <r>", NO_RESPONSE, "user NEXT"]
    );
}

#[test]
fn a_system_line_protects_media_from_the_error_after_it() {
    let text = "Image was too large. Try resizing the image or using a different approach.";
    let mut error = answer_of("e", &json!({"type": "text", "text": text}));
    error["isApiErrorMessage"] = json!(true);
    error["message"]["model"] = json!("<synthetic>");
    let image = json!([{"type": "text", "text": "u"}, {"type": "image", "source": {}}]);
    let sent = |between: Option<&Value>| {
        let mut session = Session::default();
        session.add("u", "user", &message(&image));
        if let Some(more) = between {
            session.add("s", "system", more);
        }
        session.add("e", "assistant", &error);
        session.sent().expect("resumed")[0].clone()
    };
    assert_eq!(sent(None), "user u/ | NEXT");
    assert_eq!(
        sent(Some(&json!({"subtype": "informational"}))),
        "user u | image | NEXT"
    );
}

#[test]
fn attachments_without_stored_texts_are_rendered_from_their_fields() {
    for (attachment, expect) in [
        (
            json!({"type": "hook_success", "hookName": "H", "hookEvent": "SessionStart", "content": ""}),
            "",
        ),
        (
            json!({"type": "hook_additional_context", "hookName": "H", "content": []}),
            "",
        ),
        (
            json!({"type": "directory", "path": "/it's", "content": "a\n\n"}),
            "<Called the Bash tool with the following input: {\"command\":\"ls '/it'\\\"'\\\"'s'\",\"description\":\"Lists files in /it's\"}>",
        ),
        (
            json!({"type": "task_status", "taskId": "t", "status": "killed", "description": "d"}),
            "<Task \"d\" (t) was stopped.>/ | u",
        ),
        (
            json!({"type": "token_usage", "used": 1e21, "remaining": 0.5}),
            "<Token usage: 1e+21/undefined; 0.5 remaining>/ | u",
        ),
        (
            json!({"type": "queued_command", "prompt": "q", "isMeta": true}),
            "<[MESSAGE FROM NON-USER SOURCE - NOT USER INPUT]/q>/ | u",
        ),
        (
            json!({"type": "mcp_resource", "server": "s\"", "content": {}}),
            "<<mcp-resource server=\"s&quot;\" uri=\"\">(No content)</mcp-resource>>/ | u",
        ),
        (
            json!({"type": "output_token_usage", "turn": 1_234_567, "session": 999, "budget": null}),
            "<Output tokens — turn: 1.2m · session: 999>/ | u",
        ),
    ] {
        let mut session = Session::default();
        session
            .prompt("u")
            .attachment("at", &attachment)
            .answer("a");
        let expect = if expect.is_empty() { "u" } else { expect };
        let sent = session.sent().expect("resumed");
        assert_eq!(sent[0], format!("user {expect}"));
    }
}

#[test]
fn memories_have_their_age_at_the_time_of_the_request() {
    const DAY: i64 = 86_400_000;
    let memory = json!({"path": "/m", "content": "c", "mtimeMs": 0});
    let attachment = json!({"type": "relevant_memories", "memories": [memory]});
    let mut session = Session::default();
    session
        .prompt("u")
        .attachment("at", &attachment)
        .answer("a");
    let sent = |now| {
        let options = Options {
            now: Some(now),
            ..Options::default()
        };
        session.sent_with(&options).expect("resumed")[0].clone()
    };
    assert!(sent(2 * DAY - 1).contains("user asked.//Memory: /m:"));
    assert!(sent(47 * DAY).contains("This memory is 47 days old. Memories"));
}

#[test]
fn an_attachment_that_the_client_cannot_render_ends_the_resume() {
    let sent = |attachment: &Value, rendered: bool| {
        let mut more = json!({"attachment": attachment});
        if rendered {
            more["rendered"] = json!([{"content": "stored"}]);
        }
        let mut session = Session::default();
        session
            .prompt("u")
            .add("at", "attachment", &more)
            .answer("a");
        session.sent().is_some()
    };
    let broken = json!({"type": "nested_memory", "path": "/m"});
    assert!(!sent(&broken, false) && sent(&broken, true));
}
