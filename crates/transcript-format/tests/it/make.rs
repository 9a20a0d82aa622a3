//! New entries: the views return the values that were passed in, and every reader accepts the line.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of the tests may panic as the tests do"
)]

use serde_json::{Value, json};
use transcript_format::content::{Block, Content};
use transcript_format::context_refs::{InvalidRegion, Reference, Region};
use transcript_format::entry::{Assistant, Body, Entry, User};
use transcript_format::ids::Uuid;
use transcript_format::json::{Json, ObjectBuf};
use transcript_format::kind::{EntryKind, SystemKind};
use transcript_format::make::{self, Compaction, Level, NO_CONTENT, NewEntry, ToolResult, Trigger};
use transcript_format::metadata::Metadata;
use transcript_format::object::{Object, Raw};
use transcript_format::scan::{Flags, Scanner, ToolRole};
use transcript_format::system::{System, SystemBody};
use transcript_format::tags::{Output, Tag, Tagged};
use transcript_format::texts::{
    CANCELLED, INTERRUPTED, INTERRUPTED_FOR_TOOL_USE, RejectedBy, Rejection,
};
use transcript_format::tool_result::ToolUseResult;

const UUID: &str = "7d253622-9c8e-4ea9-8922-de4809817dcb";
const PARENT: &str = "25d0082e-8a94-42c9-89bc-77cd6ada4466";
const SESSION: &str = "95a1aa84-538a-430f-b8e1-2701ee64f263";
const TIME: &str = "2026-03-02T09:00:20.000Z";

/// All characters that can cause trouble in a string.
const ODD: &str =
    "\"quoted\" back\\slash\n\r\t\u{0}\u{1b}\u{7f}\u{85}\u{2028}\u{2029}\u{feff}é日🌒👩‍🚀</script>";

/// Adds the fields that a writer fills in, checks the line, and returns it.
fn line(entry: NewEntry) -> String {
    let entry = entry
        .uuid(UUID)
        .parent(Some(PARENT))
        .timestamp(TIME)
        .session_id(SESSION);
    check(&entry)
}

/// Checks the properties that every new entry has, and returns its line.
fn check(entry: &NewEntry) -> String {
    let line = entry.text();
    assert_eq!(line, entry.to_string());
    assert!(!line.contains(['\n', '\r', '\0', '\u{85}', '\u{2028}', '\u{2029}']));
    let value: Value = serde_json::from_str(&line).unwrap();
    let parsed = Entry::parse(&line).unwrap();
    assert_eq!(parsed.kind(), entry.kind());
    assert_eq!(parsed.misfits(), [""; 0], "{line}");
    let mut scanner = Scanner::new();
    let envelope = scanner.scan(line.as_bytes()).unwrap();
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let decoded =
        |id: Option<transcript_format::scan::Text<'_>>| id.map(|id| id.decode().into_owned());
    assert_eq!(envelope.kind(), entry.kind());
    assert_eq!(decoded(envelope.uuid()), text("uuid"));
    assert_eq!(decoded(envelope.parent_uuid()), text("parentUuid"));
    assert_eq!(decoded(envelope.timestamp()), text("timestamp"));
    assert_eq!(decoded(envelope.session_id()), text("sessionId"));
    assert!(
        !envelope
            .flags()
            .intersects(Flags::ODD_VALUE | Flags::DUPLICATE_NAME)
    );
    line
}

fn flags(line: &str) -> Flags {
    let mut scanner = Scanner::new();
    scanner.scan(line.as_bytes()).unwrap().flags()
}

fn user(line: &str) -> User<'_> {
    match Entry::parse(line).unwrap().body() {
        Body::User(user) => user,
        other => panic!("{other:?}"),
    }
}

fn assistant(line: &str) -> Assistant<'_> {
    match Entry::parse(line).unwrap().body() {
        Body::Assistant(assistant) => assistant,
        other => panic!("{other:?}"),
    }
}

fn system(line: &str) -> System<'_> {
    match Entry::parse(line).unwrap().body() {
        Body::System(system) => {
            assert_eq!(system.body().misfits(), [""; 0], "{line}");
            system
        }
        other => panic!("{other:?}"),
    }
}

fn metadata(line: &str) -> Metadata<'_> {
    match Entry::parse(line).unwrap().body() {
        Body::Metadata(metadata) => {
            assert_eq!(metadata.misfits(), [""; 0], "{line}");
            metadata
        }
        other => panic!("{other:?}"),
    }
}

fn user_text(line: &str) -> String {
    let content = user(line).message().unwrap().content().unwrap();
    content.as_text().unwrap().to_owned()
}

fn only_text(line: &str) -> String {
    let message = Entry::parse(line).unwrap().message().unwrap();
    match message.content().unwrap().blocks() {
        [Block::Text(text)] => text.text().unwrap().into_owned(),
        other => panic!("{other:?}"),
    }
}

fn keys(line: &str) -> Vec<String> {
    let object = Object::parse(line).unwrap();
    object
        .members()
        .iter()
        .map(|(key, _)| key.to_string())
        .collect()
}

fn raw(text: &str) -> Raw<'_> {
    Raw::parse(text).unwrap()
}

fn object(text: &str) -> Object<'_> {
    Object::parse(text).unwrap()
}

// ---- messages ----------------------------------------------------------------------------------

#[test]
fn every_kind_of_user_entry_reads_back() {
    let prompt = line(make::user(ODD));
    assert_eq!(user_text(&prompt), ODD);
    assert_eq!(flags(&prompt), Flags::HAS_TEXT | Flags::NUL_ESCAPE);

    let meta = line(make::meta(ODD));
    assert_eq!(user_text(&meta), ODD);
    assert!(flags(&meta).contains(Flags::META));

    let summary = line(make::compact_summary(ODD));
    assert_eq!(user_text(&summary), ODD);
    let both = Flags::COMPACT_SUMMARY | Flags::TRANSCRIPT_ONLY;
    assert!(flags(&summary).contains(both));
    assert_eq!(user(&summary).is_compact_summary(), Some(true));

    let image =
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#;
    let blocks = line(make::user_blocks(&[
        raw(image),
        raw(r#"{"type":"text","text":"?"}"#),
    ]));
    let content = user(&blocks).message().unwrap().content().unwrap();
    assert!(matches!(
        content.blocks(),
        [Block::Image(_), Block::Text(_)]
    ));
}

#[test]
fn a_tool_result_has_what_the_model_sees_and_what_the_tool_returned_side_by_side() {
    let output = json!({"stdout": ODD, "stderr": "", "interrupted": false}).to_string();
    let result = ToolResult::text("toolu_01", ODD).output(raw(&output));
    let entry = make::tool_result(result).with("sourceToolAssistantUUID", PARENT);
    let line = line(entry);
    let user = user(&line);
    assert_eq!(user.source_tool_assistant_uuid().unwrap(), PARENT);
    let Some(ToolUseResult::Object(returned)) = user.tool_use_result() else {
        panic!("{line}");
    };
    assert_eq!(returned.str("stdout").unwrap(), ODD);
    let content = user.message().unwrap().content().unwrap();
    let [Block::ToolResult(result)] = content.blocks() else {
        panic!("{line}");
    };
    assert_eq!(result.tool_use_id().unwrap(), "toolu_01");
    assert_eq!(result.content().unwrap().as_text(), Some(ODD));
    assert_eq!(result.is_error(), None);
    let mut scanner = Scanner::new();
    let envelope = scanner.scan(line.as_bytes()).unwrap();
    let tools: Vec<_> = envelope.tools().collect();
    assert_eq!((tools.len(), tools[0].role), (1, ToolRole::Result));

    let text = raw(r#"{"type":"text","text":"a"}"#);
    let failed = make::tool_result(ToolResult::blocks("toolu_02", &[text]).failed());
    let failed = check(&failed);
    let content = self::user(&failed).message().unwrap().content().unwrap();
    let [Block::ToolResult(result)] = content.blocks() else {
        panic!("{failed}");
    };
    assert_eq!(result.is_error(), Some(true));
    assert!(matches!(result.content(), Some(Content::Blocks(blocks)) if blocks.len() == 1));
}

/// Returns the text, the call and the data of a failed result.
fn failed(line: &str) -> (String, String, String) {
    let user = user(line);
    let Some(ToolUseResult::Text(output)) = user.tool_use_result() else {
        panic!("{line}");
    };
    let content = user.message().unwrap().content().unwrap();
    let [Block::ToolResult(result)] = content.blocks() else {
        panic!("{line}");
    };
    assert_eq!(result.is_error(), Some(true));
    let text = result.content().unwrap().as_text().unwrap().to_owned();
    (
        text,
        result.tool_use_id().unwrap().into_owned(),
        output.into_owned(),
    )
}

#[test]
fn actions_of_a_person_have_the_lines_of_clients() {
    for (for_tool_use, text) in [(false, INTERRUPTED), (true, INTERRUPTED_FOR_TOOL_USE)] {
        assert_eq!(only_text(&line(make::interrupt(for_tool_use))), text);
    }

    let bare = Rejection::new(RejectedBy::Person, None);
    let (text, call, output) = failed(&line(make::rejection("toolu_01", bare)));
    assert_eq!(Rejection::read(&text), Some(bare));
    assert_eq!(call, "toolu_01");
    assert_eq!(output, "User rejected tool use");
    for by in RejectedBy::ALL {
        let rejection = Rejection::new(by, Some(ODD));
        let (text, _, output) = failed(&line(make::rejection("toolu_01", rejection)));
        assert_eq!(Rejection::read(&text), Some(rejection));
        assert_eq!(output, format!("Error: {text}"));
    }
    let (text, _, _) = failed(&line(make::cancelled("toolu_01")));
    assert_eq!(text, CANCELLED);

    let caveat = line(make::command_caveat());
    assert!(flags(&caveat).contains(Flags::META));
    assert!(Tag::LocalCommandCaveat.opens(&user_text(&caveat)));
    let output = Output {
        stdout: ODD.into(),
        stderr: "</bash-stdout>".into(),
    };
    let Output { stdout, stderr } = &output;
    let name = "/model".into();
    let arguments = ODD.into();
    for (entry, expected) in [
        (
            make::command("model", ODD),
            Tagged::Command { name, arguments },
        ),
        (
            make::command_output(stdout, stderr),
            Tagged::CommandOutput(output.clone()),
        ),
        (make::shell(ODD), Tagged::Shell(ODD.into())),
        (
            make::shell_output(stdout, stderr),
            Tagged::ShellOutput(output.clone()),
        ),
        (make::memory_note(ODD), Tagged::MemoryNote(ODD.into())),
    ] {
        let line = line(entry);
        assert!(!flags(&line).contains(Flags::META), "{line}");
        assert_eq!(Tagged::read(&user_text(&line)), Some(expected), "{line}");
    }
    let slash = user_text(&line(make::command("/model", "")));
    assert!(
        slash.starts_with(
            "<command-name>/model</command-name>\n            <command-message>model<"
        )
    );

    let references = [Reference::Git { what: "DIFF" }];
    let prompt = line(make::user_with_references(&references, ODD).unwrap());
    let prompt = user_text(&prompt);
    let (region, text) = Region::split(&prompt).unwrap();
    assert!(region.references().eq(references));
    assert_eq!(text, ODD);
    assert_eq!(
        make::user_with_references(&[], ODD),
        Err(InvalidRegion::Empty)
    );
}

#[test]
fn an_answer_becomes_one_entry_a_block_with_the_id_and_usage_of_the_message() {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [
            {"type": "thinking", "thinking": ODD, "signature": "s"},
            {"type": "text", "text": ""},
            {"type": "text", "text": ODD},
            {"type": "tool_use", "id": "toolu_01", "name": "Read", "input": {"path": ODD}},
        ],
        "stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 9},
    })
    .to_string();
    let entries = make::assistant(&object(&message)).unwrap();
    assert_eq!(entries.len(), 3);
    for (index, entry) in (0..).zip(entries) {
        let uuid = Uuid::parse(UUID.as_bytes()).unwrap().child(index);
        let line = check(&entry.uuid(uuid));
        assert!(line.contains(&format!(
            "\"uuid\":\"7d253622-9c8e-4ea9-8922-00000000000{index}\""
        )));
        let message = assistant(&line).message().unwrap();
        assert_eq!(message.id().unwrap(), "msg_1");
        assert_eq!(message.usage().unwrap().output_tokens(), Some(9));
        let content = message.content().unwrap();
        match (index, content.blocks()) {
            (0, [Block::Thinking(block)]) => assert_eq!(block.thinking().unwrap(), ODD),
            (1, [Block::Text(block)]) => assert_eq!(block.text().unwrap(), ODD),
            (2, [Block::ToolUse(block)]) => {
                let input = block.input().unwrap().object().unwrap();
                assert_eq!(input.str("path").unwrap(), ODD);
            }
            other => panic!("{other:?}"),
        }
    }

    let text = line(make::assistant_text(ODD, "msg_2", "some-model"));
    assert_eq!(only_text(&text), ODD);
    let message = assistant(&text).message().unwrap();
    assert_eq!(message.model().unwrap(), "some-model");
    assert_eq!(message.usage().unwrap().input_tokens(), Some(0));

    for (message, reason) in [(r#"{"content":7}"#, "a number"), ("{}", "nothing")] {
        make::assistant(&object(message)).expect_err(reason);
    }
}

#[test]
fn a_synthetic_answer_has_all_that_clients_write_for_one() {
    let text = line(make::synthetic(ODD, "id-1"));
    assert_eq!(only_text(&text), ODD);
    assert!(!flags(&text).contains(Flags::API_ERROR));
    let message = assistant(&text).message().unwrap();
    assert_eq!(message.model().unwrap(), make::SYNTHETIC_MODEL);
    assert_eq!(message.stop_reason().unwrap(), "stop_sequence");
    for key in ["container", "context_management"] {
        assert!(message.object().get(key).unwrap().is_null());
    }
    let usage = message.usage().unwrap();
    assert_eq!(usage.misfits(), [""; 0]);
    let value: Value = serde_json::from_str(usage.object().text()).unwrap();
    let expected = json!({
        "input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0, "output_tokens_details": null,
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
        "service_tier": null, "inference_geo": null, "iterations": null, "speed": null,
        "fallback_credit": null,
    });
    assert_eq!(value, expected);

    let error = make::api_error_message("API Error: 529", "id-2", "server_error")
        .with("errorDetails", ODD)
        .with("apiError", "overloaded")
        .with("apiErrorStatus", 529u64);
    let error = line(error);
    assert!(flags(&error).contains(Flags::API_ERROR));
    let error = assistant(&error);
    assert_eq!(error.misfits(), [""; 0]);
    assert_eq!(error.is_api_error_message(), Some(true));
    assert_eq!(error.error().unwrap(), "server_error");
    assert_eq!(error.error_details().unwrap(), ODD);
    assert_eq!(error.api_error().unwrap(), "overloaded");
    assert_eq!(error.api_error_status(), Some(529));
}

#[test]
fn empty_content_becomes_the_placeholder_and_never_an_empty_block() {
    assert_eq!(user_text(&line(make::user(""))), NO_CONTENT);
    assert_eq!(user_text(&line(make::compact_summary(""))), NO_CONTENT);
    let empty = raw(r#"{"type":"text","text":""}"#);
    for blocks in [&[][..], &[empty]] {
        assert_eq!(only_text(&line(make::user_blocks(blocks))), NO_CONTENT);
        let result = line(make::tool_result(ToolResult::blocks("t", blocks)));
        assert!(result.contains(r#""content":[{"type":"text","text":"(no content)"}]"#));
    }
    let result = line(make::tool_result(ToolResult::text("t", "")));
    assert!(result.contains(r#""content":"(no content)""#));
    assert_eq!(only_text(&line(make::synthetic("", "m"))), NO_CONTENT);
    assert_eq!(
        only_text(&line(make::assistant_text("", "m", "x"))),
        NO_CONTENT
    );
    for content in [r#""""#, "[]", r#"[{"type":"text","text":""}]"#] {
        let message = format!(r#"{{"content":{content}}}"#);
        let entries = make::assistant(&object(&message)).unwrap();
        let [entry] = &entries[..] else {
            panic!("{content}")
        };
        assert_eq!(only_text(&check(entry)), NO_CONTENT);
    }
}

// ---- notices of the client ----------------------------------------------------------------------

#[test]
fn a_boundary_names_what_is_kept_as_a_list_and_as_the_segment_of_that_list() {
    let compaction = Compaction::new(Trigger::Manual, 167_204)
        .duration_ms(42_000)
        .kept_of("s", &["a", "b", "c"], &["a", "x", "b", "c"])
        .post_tokens(2_310)
        .cumulative_dropped_tokens(164_894);
    let boundary = make::compact_boundary(Some("c"), compaction)
        .uuid(UUID)
        .timestamp(TIME);
    let line = check(&boundary);
    let entry = Entry::parse(&line).unwrap();
    assert!(entry.object().get("parentUuid").unwrap().is_null());
    assert_eq!(entry.logical_parent_uuid().unwrap(), "c");
    let system = system(&line);
    assert_eq!(system.level().unwrap(), "info");
    let SystemBody::CompactBoundary(boundary) = system.body() else {
        panic!("{line}");
    };
    let metadata = boundary.compact_metadata().unwrap();
    assert_eq!(metadata.misfits(), [""; 0]);
    assert_eq!(metadata.trigger().unwrap(), "manual");
    assert_eq!(metadata.pre_tokens(), Some(167_204));
    assert_eq!(metadata.post_tokens(), Some(2_310));
    assert_eq!(metadata.duration_ms(), Some(42_000));
    assert_eq!(metadata.cumulative_dropped_tokens(), Some(164_894));
    let segment = metadata.preserved_segment().unwrap();
    assert_eq!(segment.head_uuid().unwrap(), "a");
    assert_eq!(segment.anchor_uuid().unwrap(), "s");
    assert_eq!(segment.tail_uuid().unwrap(), "c");
    let messages = metadata.preserved_messages().unwrap();
    assert_eq!(messages.anchor_uuid().unwrap(), "s");
    assert_eq!(messages.uuids().unwrap(), ["a", "b", "c"]);
    assert_eq!(messages.all_uuids().unwrap(), ["a", "x", "b", "c"]);

    let nothing = Compaction::new(Trigger::Auto, 1).kept("s", &[""; 0]);
    assert_eq!(nothing, Compaction::new(Trigger::Auto, 1));
    let line = check(&make::compact_boundary(None::<&str>, nothing));
    assert_eq!(Entry::parse(&line).unwrap().logical_parent_uuid(), None);
}

#[test]
fn every_subtype_that_clients_write_reads_back() {
    let command = line(make::local_command(ODD));
    assert_eq!(system(&command).content().unwrap(), ODD);
    assert_eq!(system(&command).kind(), SystemKind::LocalCommand);

    let notice = line(make::informational(ODD, Level::Warning));
    assert_eq!(system(&notice).content().unwrap(), ODD);
    assert_eq!(system(&notice).level().unwrap(), "warning");

    let duration = line(make::turn_duration(4_460, 6));
    let SystemBody::TurnDuration(duration) = system(&duration).body() else {
        panic!("{duration}");
    };
    assert_eq!(
        (duration.duration_ms(), duration.message_count()),
        (Some(4_460), Some(6))
    );

    for subtype in SystemKind::ALL {
        let line = line(make::system(*subtype).with("content", ODD));
        assert_eq!(system(&line).kind(), *subtype);
    }
}

#[test]
fn attachments_read_back() {
    let date = object(r#"{"type":"date","date":"2026-03-02"}"#);
    let line_of = line(make::attachment(&date, &[ODD, "b"]));
    let Body::Attachment(attachment) = Entry::parse(&line_of).unwrap().body() else {
        panic!("{line_of}");
    };
    assert_eq!(attachment.attachment().unwrap().text(), date.text());
    assert_eq!(attachment.rendered_role().unwrap(), "system");
    let rendered = attachment.rendered().unwrap();
    assert_eq!(rendered[0].content().unwrap().as_text(), Some(ODD));
    assert_eq!(rendered.len(), 2);
    let bare = line(make::attachment(&date, &[]));
    assert!(!bare.contains("rendered"));
}

// ---- outside the chain --------------------------------------------------------------------------

#[test]
fn state_of_the_session_reads_back() {
    let made = |entry: NewEntry| check(&entry.session_id(SESSION));
    let line = made(make::last_prompt(Some(ODD), Some(UUID), true));
    let mut scanner = Scanner::new();
    let envelope = scanner.scan(line.as_bytes()).unwrap();
    assert_eq!(envelope.leaf_uuid().unwrap().decode(), UUID);
    assert!(envelope.flags().contains(Flags::EXPLICIT));
    let Metadata::LastPrompt(prompt) = metadata(&line) else {
        panic!("{line}");
    };
    assert_eq!(prompt.last_prompt().unwrap(), ODD);
    let line = made(make::last_prompt(None, Some(Uuid::ZERO), false));
    assert_eq!(
        line,
        format!(
            r#"{{"type":"last-prompt","leafUuid":"00000000-0000-0000-0000-000000000000","sessionId":"{SESSION}"}}"#
        )
    );

    let texts = [
        (make::custom_title(ODD), "customTitle"),
        (make::ai_title(ODD), "aiTitle"),
        (make::tag(ODD), "tag"),
        (make::mode(ODD), "mode"),
        (make::permission_mode(ODD), "permissionMode"),
        (make::agent_name(ODD), "agentName"),
        (
            make::metadata(EntryKind::Relocated).with("relocatedCwd", ODD),
            "relocatedCwd",
        ),
    ];
    for (entry, key) in texts {
        let line = made(entry);
        metadata(&line);
        assert_eq!(object(&line).str(key).unwrap(), ODD);
        assert_eq!(keys(&line).last().unwrap(), "sessionId");
    }
}

#[test]
fn engine_fields_and_lines_have_a_version() {
    let fields = ObjectBuf::new().with("repaired", true);
    let line_of = line(make::user("x").engine(&fields));
    let own = Entry::parse(&line_of).unwrap().transcript_engine().unwrap();
    assert_eq!(own.text(), r#"{"v":1,"repaired":true}"#);

    let line = check(&make::tombstone(UUID).session_id(SESSION));
    assert_eq!(
        line,
        format!(
            r#"{{"type":"transcriptEngine","v":1,"tombstone":"{UUID}","sessionId":"{SESSION}"}}"#
        )
    );
    let Metadata::TranscriptEngine(own) = metadata(&line) else {
        panic!("{line}");
    };
    assert_eq!(
        (own.v(), own.tombstone().unwrap().as_ref()),
        (Some(1), UUID)
    );
}

// ---- text --------------------------------------------------------------------------------------

#[test]
fn keys_are_in_the_order_of_the_clients() {
    let envelope = |entry: NewEntry| {
        let entry = entry
            .with("gitBranch", "main")
            .with("version", "2.1.329")
            .with("cwd", "/home/ada")
            .with("userType", "external")
            .with("entrypoint", "sdk-cli")
            .with("isSidechain", false);
        keys(&line(entry)).join(" ")
    };
    let tail = "userType entrypoint cwd sessionId version gitBranch";
    assert_eq!(
        envelope(make::meta("x").with("promptId", "p")),
        format!("parentUuid isSidechain promptId type message isMeta uuid timestamp {tail}")
    );
    let result = ToolResult::text("t", "x").output(raw("{}"));
    let result = make::tool_result(result).with("sourceToolAssistantUUID", PARENT);
    assert_eq!(
        envelope(result),
        format!(
            "parentUuid isSidechain type message uuid timestamp toolUseResult \
             sourceToolAssistantUUID {tail}"
        )
    );
    assert_eq!(
        envelope(make::synthetic("x", "m").with("requestId", "r")),
        format!(
            "parentUuid isSidechain message isApiErrorMessage requestId type uuid timestamp {tail}"
        )
    );
    let date = object(r#"{"type":"date"}"#);
    assert_eq!(
        envelope(make::attachment(&date, &[])),
        format!("parentUuid isSidechain attachment type uuid timestamp {tail}")
    );
    let sidechain = check(&make::user("x").sidechain("a1"));
    assert_eq!(
        keys(&sidechain),
        ["isSidechain", "agentId", "type", "message"]
    );
    assert!(flags(&sidechain).contains(Flags::SIDECHAIN));
}

#[test]
fn values_that_are_passed_in_are_made_fit_for_a_line() {
    let odd = "{\n\r\n \"\u{2028}\\n\" : [ \"\\ud83d\", \"\\ud83d\\ude42\", \"\\\\ud83d\", \"\\ude42\\u0041\" ], \"n\": 1e999 }";
    let json = Json::from(raw(odd));
    assert_eq!(
        json.text(),
        r#"{    "\u2028\n" : [ "\ufffd", "\ud83d\ude42", "\\ud83d", "\ufffd\u0041" ], "n": 1e999 }"#
    );
    assert_eq!(Json::from("\u{2028}\u{85}\\").text(), r#""\u2028\u0085\\""#);
    assert_eq!(Json::from(f64::NAN), Json::null());
    assert_eq!(Json::from(Some("x")).text(), "\"x\"");
    assert_eq!(Json::from(None::<&str>), Json::null());
    let object = ObjectBuf::from(&object("{\"a\":1,\"b\":2,\"\\u0061\":3}"));
    assert_eq!(object.text(), r#"{"a":3,"b":2}"#);
}

#[test]
fn ids_of_parts_keep_the_first_24_characters_and_count_in_the_last_12() {
    let parent = Uuid::parse(UUID.as_bytes()).unwrap();
    assert_eq!(
        parent.child(0).to_string(),
        "7d253622-9c8e-4ea9-8922-000000000000"
    );
    assert_eq!(
        parent.child(0xABC).to_string(),
        "7d253622-9c8e-4ea9-8922-000000000abc"
    );
    assert_eq!(
        parent.child(u64::MAX).to_string(),
        "7d253622-9c8e-4ea9-8922-ffffffffffff"
    );
    assert_eq!(parent.child(7), parent.child(3).child(7));
}
