//! The rules of the client for files that are not a simple chain of turns, one test each.
//!
//! A session is written one entry a line: what it is, its uuid, its parent (`-` for none), and its
//! content. `call`, `text` and `blocks` are lines of an answer and name its message id first (`-`
//! for none), `result` names its call first. A time in seconds may follow the uuid, as `u1@30`; else
//! entries are a second apart. What is sent is written the same way, one message a line.

use serde_json::{Value, json};
use transcript_reader::{Bodies, Index, Source};
use transcript_resume::request::RequestOptions;
use transcript_resume::{Policy, Tree};

const MODEL: &str = "claude-x-4-5";

fn bytes_of(session: &str) -> Vec<u8> {
    let lines = session
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let lines = lines.enumerate().map(|(number, line)| {
        let line = entry(number, line).to_string();
        line + "\n"
    });
    lines.collect::<String>().into_bytes()
}

fn entry(number: usize, line: &str) -> Value {
    let mut words = line.splitn(4, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (kind, name, parent, rest) = (word(), word(), word(), word());
    if kind == "pin" {
        return json!({"type": "last-prompt", "leafUuid": name});
    }
    let (uuid, second) = match name.split_once('@') {
        Some((uuid, second)) => (uuid, second.parse().unwrap()),
        None => (name, number),
    };
    let (minute, second) = (second / 60, second % 60);
    let mut entry = json!({
        "uuid": uuid,
        "parentUuid": (parent != "-").then_some(parent),
        "isSidechain": false,
        "timestamp": format!("2026-11-20T10:{minute:02}:{second:02}.000Z"),
    });
    if uuid == "-" {
        entry.as_object_mut().unwrap().remove("uuid");
    }
    let (first, content) = rest.split_once(' ').unwrap_or((rest, ""));
    let (type_name, message) = match kind {
        "user" => ("user", json!({"role": "user", "content": rest})),
        "said" => ("user", json!({"role": "user", "content": json_of(rest)})),
        "result" => {
            let content = if content.starts_with('[') || content == "null" {
                json_of(content)
            } else {
                content.into()
            };
            let result = json!({"type": "tool_result", "tool_use_id": first, "content": content});
            ("user", json!({"role": "user", "content": [result]}))
        }
        "failed" => {
            let content = json_of(content);
            let result = json!({"type": "tool_result", "tool_use_id": first, "content": content,
                "is_error": true});
            ("user", json!({"role": "user", "content": [result]}))
        }
        "text" => (
            "assistant",
            answer(first, &json!([{"type": "text", "text": content}])),
        ),
        "call" => (
            "assistant",
            answer(
                first,
                &json!([{"type": "tool_use", "id": content, "name": "Bash", "input": {}}]),
            ),
        ),
        "blocks" => ("assistant", answer(first, &json_of(content))),
        "reminder" | "mention" | "file" => {
            entry["attachment"] = json!({"type": if kind == "file" { "file" } else { "x" }});
            let texts = rest.split(' ').map(
                |text| json!({"content": format!("<system-reminder>\n{text}\n</system-reminder>")}),
            );
            entry["rendered"] = texts.collect();
            entry["renderedRole"] = if kind == "reminder" { "system" } else { "user" }.into();
            ("attachment", Value::Null)
        }
        "system" => {
            entry["subtype"] = first.into();
            if !content.is_empty() {
                entry["compactMetadata"] = json_of(content);
            }
            ("system", Value::Null)
        }
        _ => panic!("{line}"),
    };
    if ["text", "call", "blocks"].contains(&kind) {
        entry["requestId"] = "req".into();
    }
    entry["type"] = type_name.into();
    if !message.is_null() {
        entry["message"] = message;
    }
    entry
}

fn answer(id: &str, content: &Value) -> Value {
    let mut message = json!({"role": "assistant", "model": MODEL, "content": content});
    if id != "-" {
        message["id"] = id.into();
    }
    message
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Returns the request of the session with the prompt `next`.
fn sent(bytes: &[u8], policy: Policy, model: &str) -> String {
    let (_file, source, index): (_, Source, Index) = crate::load(bytes);
    let tree = Tree::new(&index, policy);
    let options = RequestOptions::new().prompt("next").model(model);
    let request = options.request(&tree, &mut Bodies::new(&source)).unwrap();
    if !request.is_resumable() {
        return "refused".to_owned();
    }
    let messages = request.messages.iter();
    let messages = messages.map(|message| rendered(&serde_json::to_value(message).unwrap()));
    messages.collect::<Vec<_>>().join("\n")
}

fn rendered(message: &Value) -> String {
    let role = message["role"].as_str().unwrap();
    let blocks = match &message["content"] {
        Value::String(text) => vec![short(text)],
        blocks => blocks.as_array().unwrap().iter().map(block).collect(),
    };
    format!("{role}: {}", blocks.join(" | "))
}

fn block(block: &Value) -> String {
    match block["type"].as_str().unwrap() {
        "text" => short(block["text"].as_str().unwrap()),
        "tool_use" => format!("call {}", block["id"].as_str().unwrap()),
        "tool_result" => {
            let content = match &block["content"] {
                Value::Array(blocks) => {
                    let blocks: Vec<String> = blocks.iter().map(self::block).collect();
                    format!("[{}]", blocks.join(", "))
                }
                Value::String(text) => short(text),
                other => other.to_string(),
            };
            format!("{} = {content}", block["tool_use_id"].as_str().unwrap())
        }
        "tool_reference" => format!("tool {}", block["tool_name"].as_str().unwrap()),
        other => other.to_owned(),
    }
}

/// A text on one line, with a reminder in braces.
fn short(text: &str) -> String {
    let text = text
        .replace("<system-reminder>\n", "{")
        .replace("\n</system-reminder>", "}");
    let text: String = text.chars().take(48).collect();
    text.replace('\n', "/")
}

fn lines_of(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// Checks what both policies send: a session, and what of it is sent under `vendor`, and under
/// `recover` where that differs.
fn check_for(model: &str, cases: &[(&str, &str, Option<&str>)]) {
    for (session, vendor, recover) in cases {
        let bytes = bytes_of(session);
        assert_eq!(
            sent(&bytes, Policy::Vendor, model),
            lines_of(vendor),
            "vendor: {session}"
        );
        assert_eq!(
            sent(&bytes, Policy::Recover, model),
            lines_of(recover.unwrap_or(vendor)),
            "recover: {session}"
        );
    }
}

fn check(cases: &[(&str, &str, Option<&str>)]) {
    check_for(MODEL, cases);
}

// ---------------------------------------------------------------------------------------------
// Where the conversation ends
// ---------------------------------------------------------------------------------------------

#[test]
fn a_pin_on_a_line_that_is_put_back_gives_way() {
    check(&[
        (
            "user q - Q
            call a q m A
            call b a m B
            pin b
            result rb b B out-b
            result ra a A out-a
            text z ra n done",
            "user: Q
            assistant: call A | call B
            user: B = out-b | A = out-a
            assistant: done
            user: next",
            None,
        ),
        (
            "user q - Q
            call a q m A
            call b a m B
            result ra a A out-a
            result rb b B out-b
            text z rb n done
            pin ra",
            "user: Q
            assistant: call A | call B
            user: A = out-a | B = out-b
            assistant: done
            user: next",
            None,
        ),
    ]);
}

#[test]
fn a_compaction_lifts_the_pins_before_it() {
    for boundary in [
        r"system b - compact_boundary",
        r#"system b - compact_boundary {"trigger":7}"#,
        r"system - - compact_boundary",
    ] {
        let session = format!(
            "user q - Q
            text a q m one
            user q2 a Q2
            text a2 q2 n two
            user q3 a Q3
            text a3 q3 o three
            pin a2
            {boundary}"
        );
        let sent = "user: Q
            assistant: one
            user: Q3
            assistant: three
            user: next";
        check(&[(&session, sent, None)]);
    }
    check(&[(
        "user q - Q
        text a q m one
        pin a
        system b - compact_boundary
        user s b Summary
        user q2 s Q2
        text a2 q2 n two",
        "user: Summary/ | Q2
        assistant: two
        user: next",
        None,
    )]);
}

#[test]
fn last_line_counts_after_a_pin_whatever_it_is() {
    for last in [
        "system s - turn_duration",
        "system s gone turn_duration",
        "reminder s gone R",
    ] {
        let session = format!(
            "user q - Q
            text a q m one
            pin a
            user q2 a Q2
            text a2 q2 n two
            {last}"
        );
        let bytes = bytes_of(&session);
        let vendor = "user: Q
            assistant: one
            user: next";
        assert_eq!(
            sent(&bytes, Policy::Vendor, MODEL),
            lines_of(vendor),
            "{last}"
        );
        // No text is given up for an entry without any.
        assert!(
            sent(&bytes, Policy::Recover, MODEL).contains("two"),
            "{last}"
        );
    }
}

#[test]
fn client_goes_by_time_if_the_last_tip_is_a_boundary() {
    for end in ["", "reminder r b R"] {
        let session = format!(
            "user q@30 - Q
            text a@31 q m one
            user q2@10 - Q2
            text a2@11 q2 n two
            system b@40 - compact_boundary
            {end}"
        );
        let vendor = "user: Q
            assistant: one
            user: next";
        let reported = sent(&bytes_of(&session), Policy::Vendor, MODEL);
        assert_eq!(reported, lines_of(vendor), "{end}");
    }
}

#[test]
fn session_without_messages_continues_from_nothing() {
    check(&[
        ("system b - compact_boundary", "user: next", None),
        (
            "reminder r - R",
            "user: {R}
            assistant: No response requested.
            user: next",
            None,
        ),
        ("pin gone", "refused", None),
    ]);
}

// ---------------------------------------------------------------------------------------------
// Siblings that are put back
// ---------------------------------------------------------------------------------------------

#[test]
fn attachments_beside_the_lines_and_results_of_a_message_are_put_back() {
    let turn = |attachment: &str| {
        format!(
            "user q - Q
            call a q m A
            result r a A out
            text z r n done
            {attachment}
            user q2 z Q2
            text z2 q2 o end"
        )
    };
    let with = "user: Q
        assistant: call A
        user: A = out//{R}
        assistant: done
        user: Q2
        assistant: end
        user: next";
    let without = with.replace("//{R}", "");
    let under_both = ["reminder x a R", "reminder x r R"];
    for attachment in under_both {
        check(&[(&turn(attachment), with, None)]);
        // It leads on to another branch.
        let branch = format!("{attachment}\nuser y x Branch");
        check(&[(&turn(&branch), &without, None)]);
    }
    check(&[(&turn("reminder x z R"), &without, None)]);
    check(&[(
        "user q - Q
        call a q m A
        reminder x a R
        result r a A out
        text z r n done",
        "user: Q
        assistant: call A
        user: A = out | {R}
        assistant: done
        user: next",
        None,
    )]);
}

#[test]
fn lines_of_the_chain_keep_its_order_and_others_are_after_them() {
    let message = "text h q m one
        call a h m A
        call b a m B
        call c b m C";
    let sent = |order: &str| {
        format!(
            "user: Q
            assistant: one | {order}
            user: A = a | B = b | C = c
            assistant: done
            user: next"
        )
    };
    let session = |lines: [usize; 4], leaf: &str| {
        let message: Vec<&str> = message.lines().collect();
        let lines: Vec<&str> = lines.iter().map(|line| message[*line]).collect();
        format!(
            "user q - Q
            {}
            result ra a A a
            result rb b B b
            result rc c C c
            text z {leaf} n done",
            lines.join("\n")
        )
    };
    let cases = [
        ([1, 0, 2, 3], "rc", "call A | call B | call C"),
        ([3, 2, 1, 0], "rb", "call C | call A | call B"),
        ([0, 3, 1, 2], "rb", "call C | call A | call B"),
        ([2, 0, 1, 3], "rb", "call A | call B | call C"),
    ];
    for (lines, leaf, order) in cases {
        check(&[(&session(lines, leaf), &sent(order), None)]);
    }
}

#[test]
fn a_message_id_that_comes_again_is_another_answer_after_a_prompt() {
    check(&[(
        "user q - Q
        call a q m A
        call b a m B
        result rb b B b
        result ra a A a
        text z ra n done
        user q2 z Q2
        call c q2 m C
        result rc c C c
        text z2 rc o end",
        "user: Q
        assistant: call A | call B
        user: B = b | A = a
        assistant: done
        user: Q2
        assistant: call C
        user: C = c
        assistant: end
        user: next",
        None,
    )]);
    // Results, other answers and reminders do not separate it; user text does.
    check(&[
        (
            "user q - Q
            call a q m A
            result r a A a
            text o r n other
            text z o m late
            user q2 z Q2
            text z2 q2 m end",
            "user: Q
            assistant: late | call A
            user: A = a
            assistant: other
            user: Q2
            assistant: end
            user: next",
            None,
        ),
        (
            "user q - Q
            text a q m one
            reminder x a R
            text z x m two",
            "user: Q
            assistant: one | two
            user: {R}/ | next",
            Some(
                "user: Q
                assistant: one | two
                user: {R}/ | next",
            ),
        ),
    ]);
}

#[test]
fn answers_without_an_id_are_merged_as_if_they_had_one() {
    check(&[
        (
            "user q - Q
            call a q - A
            result r a A a
            text z r - late
            user q2 z Q2
            text z2 q2 - end",
            "user: Q
            assistant: late | end | call A
            user: A = a | Q2/ | next",
            // A prompt separates two answers.
            Some(
                "user: Q
                assistant: late | call A
                user: A = a | Q2
                assistant: end
                user: next",
            ),
        ),
        (
            "user q - Q
            text a q - one
            user q2 a Q2
            text z q2 - two",
            "user: Q
            assistant: one
            user: Q2
            assistant: two
            user: next",
            None,
        ),
        // The made-up answer is another one.
        (
            "user q - Q
            text a q - one
            user q2 a Q2",
            "user: Q
            assistant: one
            user: Q2
            assistant: No response requested.
            user: next",
            None,
        ),
    ]);
}

// ---------------------------------------------------------------------------------------------
// Compaction
// ---------------------------------------------------------------------------------------------

#[test]
fn a_list_of_kept_entries_counts_without_its_anchor() {
    let before = "user q - Q
        text a q m one
        user q2 a Q2
        text a2 q2 n two";
    let forms = [
        r#"{"preservedMessages":{"anchorUuid":"s","uuids":["q2","a2"]}}"#,
        r#"{"preservedSegment":{"anchorUuid":"s","headUuid":"q2","tailUuid":"a2"}}"#,
    ];
    for form in forms {
        let session = format!("{before}\nsystem b - compact_boundary {form}");
        let kept = "user: Q2
            assistant: two
            user: next";
        let bytes = bytes_of(&session);
        assert_eq!(
            sent(&bytes, Policy::Vendor, MODEL),
            lines_of(kept),
            "{form}"
        );
        // The compaction was not finished: nothing is hidden.
        let reported = sent(&bytes, Policy::Recover, MODEL);
        assert!(
            reported.contains("one") && reported.contains("two"),
            "{reported}"
        );
    }
    let lost = r#"{"preservedMessages":{"anchorUuid":"s","uuids":["gone","a2"]}}"#;
    let session = format!("{before}\nsystem b - compact_boundary {lost}\nreminder x b R");
    let reported = sent(&bytes_of(&session), Policy::Vendor, MODEL);
    assert!(
        reported.contains("one") && reported.contains("two"),
        "{reported}"
    );
}

// ---------------------------------------------------------------------------------------------
// Blocks
// ---------------------------------------------------------------------------------------------

#[test]
fn calls_go_last_in_an_answer() {
    let call =
        |id: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"Bash","input":{{}}}}"#);
    let text = r#"{"type":"text","text":"one"}"#;
    let thought = r#"{"type":"thinking","thinking":"so","signature":"c2ln"}"#;
    let (a, b) = (call("A"), call("B"));
    let answers = [
        (format!("[{a},{text},{b}]"), "one | call A | call B"),
        (
            format!("[{thought},{a},{text},{b}]"),
            "thinking | one | call A | call B",
        ),
        // A thinking block after another one, ignoring calls, stays in place (MSG-5).
        (
            format!("[{thought},{a},{thought},{b}]"),
            "thinking | call A | thinking | call B",
        ),
        (
            format!("[{thought},{text},{a},{thought},{text},{b}]"),
            "thinking | one | thinking | one | call A | call B",
        ),
    ];
    for (blocks, order) in answers {
        let session = format!(
            "user q - Q
            blocks a q m {blocks}
            result ra a A a
            result rb ra B b
            text z rb n done"
        );
        let sent = format!(
            "user: Q
            assistant: {order}
            user: A = a | B = b
            assistant: done
            user: next"
        );
        check(&[(&session, &sent, None)]);
    }
}

#[test]
fn blank_lines_of_an_answer_are_omitted() {
    check(&[(
        r#"user q - Q
        blocks h q m [{"type":"text","text":"\n\n"}]
        call a h m A
        result r a A a
        text z r n done"#,
        "user: Q
        assistant: call A
        user: A = a
        assistant: done
        user: next",
        None,
    )]);
    // In the client, blank text next to other text in one entry stays.
    check(&[(
        r#"user q - Q
        blocks a q m [{"type":"text","text":"one"},{"type":"text","text":"\n\n"}]
        user q2 a Q2
        text z q2 n done"#,
        "user: Q
        assistant: one | //
        user: Q2
        assistant: done
        user: next",
        Some(
            "user: Q
            assistant: one
            user: Q2
            assistant: done
            user: next",
        ),
    )]);
}

#[test]
fn blank_blocks_of_the_user_are_omitted_and_a_string_stays() {
    let said = |content: &str, next: &str| {
        format!(
            "user q - Q
            text a q m one
            said b a {content}
            {next}
            text z c n done"
        )
    };
    let sent = |user: &str| {
        format!(
            "user: Q
            assistant: one
            user: {user}
            assistant: done
            user: next"
        )
    };
    let session = said(
        r#"[{"type":"text","text":"x"},{"type":"text","text":" "}]"#,
        "user c b Q2",
    );
    check(&[(&session, &sent("x | Q2"), None)]);
    let session = said("\"\"", "user c b Q2");
    check(&[(&session, &sent("Q2"), None)]);
    let alone = |content: &str| said(content, "").replace("z c n", "z b n");
    let bytes = bytes_of(&alone(r#"[{"type":"text","text":" "}]"#));
    let vendor = sent("(no content)");
    assert_eq!(self::sent(&bytes, Policy::Vendor, MODEL), lines_of(&vendor));
    let bytes = bytes_of(&alone("\" \""));
    let reported = self::sent(&bytes, Policy::Vendor, MODEL);
    assert!(reported.contains("user:  \n"), "{reported}");
}

#[test]
fn results_without_content_or_with_finds_take_no_reminders() {
    let session = |result: &str| {
        format!(
            "user q - Q
            call a q m A
            {result}
            reminder x r R
            text z x n done"
        )
    };
    let sent = |user: &str| {
        format!(
            "user: Q
            assistant: call A
            user: {user}
            assistant: done
            user: next"
        )
    };
    let find = r#"{"type":"search_result","source":"s","title":"t","content":[]}"#;
    let text = r#"{"type":"text","text":"t"}"#;
    let cases = [
        (
            format!("result r a A [{find}]"),
            "A = [search_result] | {R}",
        ),
        (
            format!("result r a A [{text},{find}]"),
            "A = [t, search_result] | {R}",
        ),
        (format!("failed r a A [{text},{find}]"), "A = [t] | {R}"),
        (format!("result r a A [{text}]"), "A = [t/, {R}]"),
    ];
    for (result, user) in cases {
        let bytes = bytes_of(&session(&result));
        assert_eq!(
            self::sent(&bytes, Policy::Vendor, MODEL),
            lines_of(&sent(user)),
            "{result}"
        );
    }
    let bytes = bytes_of(&session("result r a A null"));
    let reported = self::sent(&bytes, Policy::Vendor, MODEL);
    assert!(reported.contains("A = null | {R}"), "{reported}");
    // Of a failed one only the texts are sent.
    let bytes = bytes_of(&session(&format!("failed r a A [{find}]")));
    let reported = self::sent(&bytes, Policy::Vendor, MODEL);
    assert!(reported.contains("A = [] | {R}"), "{reported}");
}

#[test]
fn a_reference_to_a_tool_is_followed_by_a_text() {
    let session = |tools: &str| {
        let tools = tools
            .split(' ')
            .map(|tool| format!(r#"{{"type":"tool_reference","tool_name":"{tool}"}}"#));
        let tools: Vec<String> = tools.collect();
        format!(
            "user q - Q
            call a q m A
            result r a A [{}]
            reminder x r R
            text z x n done",
            tools.join(",")
        )
    };
    let cases = [
        ("WebFetch", "A = [tool WebFetch] | Tool loaded. | {R}"),
        ("WebFetch Gone", "A = [tool WebFetch] | Tool loaded. | {R}"),
    ];
    for (tools, user) in cases {
        let reported = sent(&bytes_of(&session(tools)), Policy::Vendor, MODEL);
        assert!(reported.contains(&format!("user: {user}\n")), "{reported}");
    }
    let gone = bytes_of(&session("Gone"));
    let reported = sent(&gone, Policy::Vendor, MODEL);
    assert!(
        reported.contains("A = [[Tool references removed - tools no longer avail"),
        "{reported}"
    );
    // The options that a session was started with are not in its file.
    let reported = sent(&gone, Policy::Recover, MODEL);
    assert!(
        reported.contains("A = [tool Gone] | Tool loaded."),
        "{reported}"
    );

    let (_file, source, index) = crate::load(&gone);
    let tree = Tree::new(&index, Policy::Vendor);
    let options = RequestOptions::new().tools(["Gone"]);
    let request = options.request(&tree, &mut Bodies::new(&source)).unwrap();
    assert_eq!(
        rendered(&serde_json::to_value(&request.messages[2]).unwrap()),
        "user: A = [tool Gone] | Tool loaded. | {R}"
    );
}

#[test]
fn calls_of_servers_without_a_result_are_omitted() {
    let call = r#"{"type":"mcp_tool_use","id":"x","name":"q","server_name":"s","input":{}}"#;
    let result = r#"{"type":"mcp_tool_result","tool_use_id":"x","content":[]}"#;
    let text = r#"{"type":"text","text":"one"}"#;
    let cases = [
        (format!("[{call},{text}]"), "one"),
        (
            format!("[{call},{result},{text}]"),
            "mcp_tool_use | mcp_tool_result | one",
        ),
        (format!("[{call}]"), "[Tool use interrupted]"),
    ];
    for (blocks, expected) in cases {
        let session = format!("user q - Q\nblocks a q m {blocks}\nuser q2 a Q2\ntext z q2 n done");
        let reported = sent(&bytes_of(&session), Policy::Vendor, MODEL);
        assert!(
            reported.contains(&format!("assistant: {expected}\n")),
            "{reported}"
        );
    }
}

#[test]
fn a_command_without_its_output_gets_no_answer() {
    let caveat = "<local-command-caveat>Caveat</local-command-caveat>";
    let cases = [
        (format!("user c a {caveat}"), true),
        (
            format!("user c a {caveat}\nuser d c <command-name>/x</command-name>"),
            true,
        ),
        (
            format!("user c a {caveat}\nuser d c <command-message>x</command-message>"),
            false,
        ),
        (
            format!("user c a {caveat}\nuser d c <bash-input>ls</bash-input>"),
            false,
        ),
        (format!("user c a {caveat}\nuser d c More"), false),
        ("user c a <command-name>/x</command-name>".to_owned(), false),
    ];
    for (end, is_command) in cases {
        let session = format!("user q - Q\ntext a q m one\n{end}");
        let reported = sent(&bytes_of(&session), Policy::Vendor, MODEL);
        assert_eq!(
            !reported.contains("No response requested."),
            is_command,
            "{end}"
        );
    }
}

// ---------------------------------------------------------------------------------------------
// Newer models
// ---------------------------------------------------------------------------------------------

#[test]
fn newer_models_get_files_as_text_of_the_user() {
    let after_result = |attachments: &str| {
        format!(
            "user q - Q
            call a q m A
            result r a A out
            {attachments}
            text z y n done"
        )
    };
    let sent = |user: &str| {
        format!(
            "user: Q
            assistant: call A
            user: {user}
            assistant: done
            user: next"
        )
    };
    let cases = [
        // A `system` reminder in between does not keep another one out of the result.
        ("reminder x r S\nmention y x U", "A = out//{U}\nsystem: S"),
        ("file y r F G", "A = out | {F}/ | {G}"),
        ("reminder x r S\nfile y x F", "A = out | {F}\nsystem: S"),
    ];
    for (attachments, user) in cases {
        check_for(
            "claude-opus-5-5",
            &[(&after_result(attachments), &sent(user), None)],
        );
    }
    check_for(
        "claude-opus-5-5",
        &[
            (
                "user q - Q
                mention x q U
                file y x F
                text a y m one",
                "user: {U}/ | {F}/ | Q
                assistant: one
                user: next",
                None,
            ),
            // One that opens the turn makes a message of each of its texts.
            (
                "user q - Q
                file y q F G
                text a y m one",
                "user: {F}
                user: {G}/ | Q
                assistant: one
                user: next",
                Some(
                    "user: {F} | {G}/ | Q
                    assistant: one
                    user: next",
                ),
            ),
            // The turn contains no user message.
            (
                "user q - Q
                text a q m one
                reminder x a S
                text b x n two",
                "user: Q
                assistant: one
                user: {S}
                assistant: two
                user: next",
                None,
            ),
        ],
    );
}
