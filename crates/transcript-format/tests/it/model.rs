//! The entry model: text survives, wrong types degrade, values without a view are kept.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of the tests may panic as the tests do"
)]

use std::collections::BTreeSet;
use std::fs;
use std::mem::discriminant;
use std::path::{Path, PathBuf};

use serde_json::Value;
use transcript_format::attachment::{Attachment, AttachmentBody};
use transcript_format::content::{Block, Content, Message};
use transcript_format::entry::{Assistant, Body, Entry, User};
use transcript_format::kind::{AttachmentKind, EntryKind, ProgressKind, SystemKind};
use transcript_format::metadata::Metadata;
use transcript_format::object::{FromRaw, Object, ParseObjectError, Raw, unescape};
use transcript_format::progress::{Progress, ProgressBody};
use transcript_format::schema::Field;
use transcript_format::stream_messages::StreamMessage;
use transcript_format::system::{System, SystemBody};
use transcript_format::tool_result::{ToolOutput, ToolUseResult};
use transcript_format::usage::{ModelUsage, Usage};

const ENTRY_FIXTURES: &[&str] = &[
    "entries/messages.jsonl",
    "entries/system.jsonl",
    "entries/attachments.jsonl",
    "entries/progress.jsonl",
    "entries/metadata.jsonl",
    "entries/wire.jsonl",
    "entries/snake-case.jsonl",
    "entries/tool-results.jsonl",
    "entries/new-keys.jsonl",
];

fn fixture(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/v1")
        .join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.split('\n')
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

fn entry(line: &str) -> Entry<'_> {
    Entry::parse(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

fn user(line: &str) -> User<'_> {
    match entry(line).body() {
        Body::User(user) => user,
        other => panic!("no user: {other:?}"),
    }
}

fn assistant(line: &str) -> Assistant<'_> {
    match entry(line).body() {
        Body::Assistant(assistant) => assistant,
        other => panic!("no assistant: {other:?}"),
    }
}

fn system(line: &str) -> SystemBody<'_> {
    match entry(line).body() {
        Body::System(system) => system.body(),
        other => panic!("no system: {other:?}"),
    }
}

fn block(text: &str) -> Block<'_> {
    Block::from_raw(Raw::parse(text).unwrap()).unwrap()
}

// ---- values ------------------------------------------------------------------------------------

#[test]
fn a_surrogate_without_a_partner_reads_as_the_replacement_character() {
    for (body, expect) in [
        (r"a", "a"),
        (r"\ud83d\ude42", "\u{1f642}"),
        (r"\uD83D\uDE42!", "\u{1f642}!"),
        (r"\ud83d", "\u{fffd}"),
        (r"\ude42", "\u{fffd}"),
        (r"\ude42\ud83d", "\u{fffd}\u{fffd}"),
        (r"\ud83d\ud83d\ude42", "\u{fffd}\u{1f642}"),
        (r"\ud83d x", "\u{fffd} x"),
        (r"\ud83d\n", "\u{fffd}\n"),
        (r"\ud83d\u0041", "\u{fffd}A"),
        (r"\ud83d\\ude42", "\u{fffd}\\ude42"),
        (r"end \ud83d", "end \u{fffd}"),
        (r"\\ud83d", r"\ud83d"),
        (
            r#"\"\\\/\b\f\n\r\t\u00e9\u0000"#,
            "\"\\/\u{8}\u{c}\n\r\té\0",
        ),
    ] {
        assert_eq!(unescape(body), expect, "{body}");
        let line = format!(r#"{{"text":"{body}"}}"#);
        assert_eq!(
            Object::parse(&line).unwrap().str("text").as_deref(),
            Some(expect),
            "{body}"
        );
    }
}

#[test]
fn an_escape_is_found_at_every_place_of_texts_of_every_length() {
    // The bytes next to the backslash in ASCII, and bytes with the highest bit.
    for filler in ['[', ']', 'a', '\u{dc}'] {
        for before in 0..48 {
            for after in 0..16 {
                let text = |middle: &str| {
                    let filler = String::from(filler);
                    filler.repeat(before) + middle + &filler.repeat(after)
                };
                assert_eq!(unescape(&text("\\n")), text("\n"));
                assert_eq!(unescape(&text("n")), text("n"));
            }
        }
    }
}

#[test]
fn strings_read_as_serde_json_reads_them() {
    for text in [
        "",
        "plain",
        "\"\\/\u{8}\u{c}\n\r\t",
        "é \u{1f642} \u{7f}\u{2028}",
        "\0\u{1f}",
    ] {
        let json = serde_json::to_string(text).unwrap();
        assert_eq!(Raw::parse(&json).unwrap().str().as_deref(), Some(text));
    }
    // Valid JSON has no invalid escapes, but the function accepts any text.
    for text in [r"\", r"\x", r"\u12", r"\ud83d\u", r"\ué"] {
        assert!(
            unescape(text).contains(char::REPLACEMENT_CHARACTER),
            "{text}"
        );
    }
}

#[test]
fn members_keep_their_order_and_of_duplicate_keys_the_last_wins() {
    let text = r#"{"b":1,"a":{"x":1,"x":2},"b":"2","\u0062":3, "\ud83d" : 4 }"#;
    let object = Object::parse(text).unwrap();
    let keys: Vec<_> = object
        .members()
        .iter()
        .map(|(key, _)| key.as_ref())
        .collect();
    assert_eq!(keys, ["b", "a", "b", "b", "\u{fffd}"]);
    assert_eq!(object.u64("b"), Some(3));
    assert_eq!(object.object("a").unwrap().u64("x"), Some(2));
    assert_eq!(object.text(), text);
    assert_eq!(serde_json::to_string(&object).unwrap(), text);
}

#[test]
fn a_key_is_found_in_snake_case_where_it_is_absent_as_written() {
    let object = Object::parse(
        r#"{"tool_use_id":1,"source_tool_assistant_uuid":2,"pre_tokens":3,"preTokens":4,"ID":5}"#,
    )
    .unwrap();
    assert_eq!(object.u64("toolUseID"), Some(1));
    assert_eq!(object.u64("toolUseId"), Some(1));
    assert_eq!(object.u64("sourceToolAssistantUUID"), Some(2));
    assert_eq!(object.u64("preTokens"), Some(4));
    assert_eq!(object.u64("pre_tokens"), Some(3));
    assert_eq!(object.u64("id"), None);
    assert!(
        object.get("toolUseID").is_none(),
        "get takes the key as it is"
    );
}

#[test]
fn a_number_is_read_only_when_it_fits_and_its_text_stays() {
    let digits = "1".repeat(400);
    let text = format!(
        r#"{{"huge":{digits},"inf":1e999,"neg":-1,"float":1.5,"whole":1.0,"max":18446744073709551615}}"#
    );
    let object = Object::parse(&text).unwrap();
    assert_eq!((object.u64("huge"), object.f64("huge")), (None, None));
    assert_eq!(object.get("huge").unwrap().text(), digits);
    assert_eq!((object.u64("inf"), object.f64("inf")), (None, None));
    assert_eq!((object.u64("neg"), object.i64("neg")), (None, Some(-1)));
    assert_eq!(
        (object.u64("float"), object.f64("float")),
        (None, Some(1.5))
    );
    assert_eq!(
        (object.u64("whole"), object.f64("whole")),
        (None, Some(1.0))
    );
    assert_eq!(object.u64("max"), Some(u64::MAX));
}

#[test]
fn a_list_with_an_odd_element_is_not_a_list_of_that_type() {
    let object = Object::parse(r#"{"all":["a","b"],"odd":["a",1],"none":[]}"#).unwrap();
    assert_eq!(
        object
            .read::<Vec<std::borrow::Cow<'_, str>>>("all")
            .unwrap(),
        ["a", "b"]
    );
    assert!(
        object
            .read::<Vec<std::borrow::Cow<'_, str>>>("odd")
            .is_none()
    );
    assert!(
        object
            .read::<Vec<std::borrow::Cow<'_, str>>>("none")
            .unwrap()
            .is_empty()
    );
    assert_eq!(object.array("odd").unwrap().len(), 2);
}

#[test]
fn deep_nesting_is_skipped_without_a_limit() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let line = format!(r#"{{"type":"user","x":{deep},"uuid":"u"}}"#);
    let entry = entry(&line);
    assert_eq!(entry.uuid().as_deref(), Some("u"));
    assert_eq!(entry.object().get("x").unwrap().text(), deep);
}

#[test]
fn an_error_has_the_position_and_never_the_content() {
    for line in [
        "",
        "{",
        r#"{"secret":}"#,
        r#"{"secret":1}{}"#,
        "{'secret':1}",
        "\u{feff}{}",
    ] {
        let error = Entry::parse(line).unwrap_err();
        assert!(
            matches!(error, ParseObjectError::Syntax { .. }),
            "{line}: {error:?}"
        );
        assert!(!error.to_string().contains("secret"));
    }
    for line in [r#""secret""#, "[1]", "42", "true", "null"] {
        let error = Entry::parse(line).unwrap_err();
        assert!(
            matches!(error, ParseObjectError::Kind(_)),
            "{line}: {error:?}"
        );
        assert!(!error.to_string().contains("secret"));
    }
    assert_eq!(
        entry(" {\"type\":\"user\"} \r").text(),
        r#"{"type":"user"}"#
    );
}

// ---- fixtures ----------------------------------------------------------------------------------

#[test]
fn every_kind_has_a_fixture_that_its_view_fits_or_that_is_kept() {
    let mut entries = BTreeSet::new();
    let mut systems = BTreeSet::new();
    let mut attachments = BTreeSet::new();
    let mut progresses = BTreeSet::new();
    for name in ENTRY_FIXTURES {
        for line in fixture(name) {
            let entry = entry(&line);
            assert_eq!(entry.text(), line);
            assert_eq!(entry.misfits(), [""; 0], "{name}: {line}");
            entries.insert(entry.kind());
            let body = entry.body();
            let (raw, misfits) = match &body {
                Body::User(user) => (user.object().raw(), user.misfits()),
                Body::Assistant(assistant) => (assistant.object().raw(), assistant.misfits()),
                Body::System(system) => {
                    systems.insert(system.kind());
                    (system.body().raw(), system.body().misfits())
                }
                Body::Attachment(attachment) => {
                    attachments.insert(attachment.kind());
                    let inner = attachment.body().unwrap();
                    assert_eq!(inner.raw().text(), attachment.attachment().unwrap().text());
                    assert_eq!(inner.misfits(), [""; 0], "{line}");
                    (attachment.object().raw(), attachment.misfits())
                }
                Body::Progress(progress) => {
                    progresses.insert(progress.kind());
                    let inner = progress.body().unwrap();
                    assert_eq!(inner.raw().text(), progress.data().unwrap().text());
                    assert_eq!(inner.misfits(), [""; 0], "{line}");
                    (progress.object().raw(), progress.misfits())
                }
                Body::Metadata(metadata) => (metadata.raw(), metadata.misfits()),
                Body::Stream(message) => (message.raw(), message.misfits()),
                Body::Other(raw) => (*raw, Vec::new()),
                other => panic!("{name}: no view: {other:?}"),
            };
            assert_eq!(raw.text(), line);
            assert_eq!(misfits, [""; 0], "{name}: {line}");
        }
    }
    assert_eq!(Vec::from_iter(entries), sorted(EntryKind::ALL));
    assert_eq!(Vec::from_iter(systems), sorted(SystemKind::ALL));
    assert_eq!(Vec::from_iter(attachments), sorted(AttachmentKind::ALL));
    assert_eq!(Vec::from_iter(progresses), sorted(ProgressKind::ALL));
}

fn sorted<T: Copy + Ord>(kinds: &[T]) -> Vec<T> {
    let mut kinds = kinds.to_vec();
    kinds.sort();
    kinds
}

#[test]
fn unknown_parts_survive_byte_for_byte() {
    let lines = fixture("entries/kept.jsonl");
    for line in &lines {
        assert_eq!(entry(line).text(), line);
    }

    let first = user(&lines[0]);
    assert_eq!(first.object().get("big").unwrap().text(), "1".repeat(400));
    assert_eq!(
        first.object().get("alpha").unwrap().text(),
        r#"{"b":[1e999,-0.0,1E+2],"a":null}"#
    );
    let message = first.message().unwrap();
    let Some(Content::Blocks(blocks)) = message.content() else {
        panic!()
    };
    assert!(
        matches!(&blocks[0], Block::Text(text) if text.text().unwrap() == "one A\u{1f642} \u{fffd}")
    );
    assert!(blocks[0].raw().text().ends_with(r#"\ud83d","new":true}"#));

    let usage = assistant(&lines[1]).message().unwrap().usage().unwrap();
    assert_eq!((usage.input_tokens(), usage.output_tokens()), (None, None));
    assert_eq!(
        usage.object().get("output_tokens").unwrap().text(),
        "12345678901234567890123"
    );

    assert!(matches!(system(&lines[2]), SystemBody::Other(raw) if raw.text() == lines[2]));
    let Body::Attachment(attachment) = entry(&lines[3]).body() else {
        panic!()
    };
    let Some(AttachmentBody::Other(raw)) = attachment.body() else {
        panic!()
    };
    assert_eq!(raw.text(), r#"{"type":"future_attachment","x":1}"#);
    let Body::Progress(progress) = entry(&lines[4]).body() else {
        panic!()
    };
    assert!(matches!(progress.body(), Some(ProgressBody::Other(_))));
    for line in &lines[5..] {
        assert_eq!(entry(line).kind(), EntryKind::Other);
        assert!(matches!(entry(line).body(), Body::Other(raw) if raw.text() == line));
    }
    assert_eq!(
        entry(&lines[5]).uuid().as_deref(),
        Some("u-7"),
        "the last of two keys wins"
    );
}

#[test]
fn a_field_of_the_wrong_type_is_absent_and_the_rest_stays() {
    let lines = fixture("entries/misfits.jsonl");

    let first = entry(&lines[0]);
    assert_eq!(
        first.misfits(),
        [
            "uuid",
            "parentUuid",
            "timestamp",
            "sessionId",
            "isSidechain"
        ]
    );
    assert_eq!(
        (first.uuid(), first.parent_uuid(), first.is_sidechain()),
        (None, None, None)
    );
    assert_eq!(first.cwd().as_deref(), Some("/home/ada/almanac"));
    let first = user(&lines[0]);
    assert_eq!(first.misfits(), ["toolUseResult", "imagePasteIds", "todos"]);
    let message = first.message().unwrap();
    assert_eq!(message.misfits(), ["role", "content"]);
    assert!(message.content().is_none());

    let second = user(&lines[1]);
    assert_eq!(second.misfits(), ["message", "mcpMeta", "origin"]);
    assert!(second.message().is_none());

    let message = assistant(&lines[2]).message().unwrap();
    assert_eq!(
        (message.id(), message.model().as_deref()),
        (None, Some("m"))
    );
    let content = message.content().unwrap();
    let [text, call, untyped, loose] = content.blocks() else {
        panic!()
    };
    assert!(matches!(text, Block::Text(text) if text.text().is_none()));
    assert!(matches!(call, Block::ToolUse(call) if call.id().is_none() && call.name().is_some()));
    assert!(matches!(untyped, Block::Other(_)));
    assert!(matches!(loose, Block::Other(raw) if raw.str().unwrap() == "loose"));
    let usage = message.usage().unwrap();
    assert_eq!(
        (usage.input_tokens(), usage.output_tokens()),
        (None, Some(9))
    );
    assert_eq!(
        usage.misfits(),
        ["input_tokens", "cache_creation", "iterations"]
    );

    let SystemBody::CompactBoundary(boundary) = system(&lines[3]) else {
        panic!()
    };
    let metadata = boundary.compact_metadata().unwrap();
    assert_eq!(
        metadata.misfits(),
        [
            "trigger",
            "preTokens",
            "postTokens",
            "durationMs",
            "preservedSegment"
        ]
    );
    let preserved = metadata.preserved_messages().unwrap();
    assert_eq!(preserved.anchor_uuid().as_deref(), Some("a"));
    assert!(preserved.uuids().is_none());
    assert_eq!(preserved.all_uuids().unwrap(), ["h"]);

    assert!(matches!(system(&lines[4]), SystemBody::Other(_)));
    let Body::Attachment(attachment) = entry(&lines[5]).body() else {
        panic!()
    };
    assert!(attachment.body().is_none());
    let Body::Attachment(attachment) = entry(&lines[6]).body() else {
        panic!()
    };
    let Some(AttachmentBody::QueuedCommand(queued)) = attachment.body() else {
        panic!()
    };
    assert!(queued.prompt().is_none());
    assert_eq!(queued.command_mode().as_deref(), Some("prompt"));
    let Body::Progress(progress) = entry(&lines[7]).body() else {
        panic!()
    };
    assert!(progress.body().is_none() && progress.misfits().is_empty());
    assert_eq!(entry(&lines[8]).kind(), EntryKind::Other);
    let Body::Metadata(Metadata::CustomTitle(title)) = entry(&lines[9]).body() else {
        panic!()
    };
    assert_eq!(title.misfits(), ["customTitle"]);
}

#[test]
fn wire_forms_read_like_the_forms_on_disk() {
    let lines = fixture("entries/snake-case.jsonl");

    assert_eq!(
        entry(&lines[0]).parent_tool_use_id().as_deref(),
        Some("toolu_00")
    );
    assert!(entry(&lines[0]).session_id().is_some());
    let first = user(&lines[0]);
    assert_eq!(first.is_synthetic(), Some(true));
    let Some(ToolUseResult::Object(result)) = first.tool_use_result() else {
        panic!()
    };
    assert_eq!(result.str("stdout").as_deref(), Some("ok"));
    assert_eq!(assistant(&lines[1]).request_id().as_deref(), Some("req_01"));

    let SystemBody::CompactBoundary(boundary) = system(&lines[2]) else {
        panic!()
    };
    assert_eq!(entry(&lines[2]).logical_parent_uuid().as_deref(), Some("t"));
    let metadata = boundary.compact_metadata().unwrap();
    assert_eq!(metadata.trigger().as_deref(), Some("manual"));
    assert_eq!(
        (metadata.pre_tokens(), metadata.post_tokens()),
        (Some(9000), Some(900))
    );
    assert_eq!(metadata.cumulative_dropped_tokens(), None);
    let segment = metadata.preserved_segment().unwrap();
    assert_eq!(segment.head_uuid().as_deref(), Some("h"));
    assert_eq!(segment.anchor_uuid().as_deref(), Some("a"));
    assert_eq!(segment.tail_uuid().as_deref(), Some("t"));
    let messages = metadata.preserved_messages().unwrap();
    assert_eq!(messages.uuids().unwrap(), ["h", "t"]);
    assert_eq!(messages.all_uuids().unwrap(), ["h", "x", "t"]);

    let SystemBody::MicrocompactBoundary(boundary) = system(&lines[3]) else {
        panic!()
    };
    let metadata = boundary.microcompact_metadata().unwrap();
    assert_eq!(metadata.tokens_saved(), Some(4000));
    assert_eq!(metadata.compacted_tool_ids().unwrap(), ["toolu_01"]);
    assert!(metadata.cleared_attachment_uuids().unwrap().is_empty());
}

#[test]
fn messages_read_as_they_were_written() {
    let lines = fixture("entries/messages.jsonl");
    assert_eq!(
        user(&lines[2])
            .message()
            .unwrap()
            .content()
            .unwrap()
            .as_text(),
        Some("When does the moon rise?")
    );

    let refused = user(&lines[3]);
    assert!(
        matches!(refused.tool_use_result(), Some(ToolUseResult::Text(text)) if text.starts_with("Error"))
    );
    let content = refused.message().unwrap().content().unwrap();
    let [Block::ToolResult(result)] = content.blocks() else {
        panic!()
    };
    assert_eq!(result.tool_use_id().as_deref(), Some("toolu_01"));
    assert_eq!(result.is_error(), Some(true));
    assert!(matches!(
        result.content().unwrap().blocks(),
        [Block::Text(_)]
    ));

    let failed = assistant(&lines[4]);
    assert_eq!(failed.is_api_error_message(), Some(true));
    assert_eq!(failed.api_error_status(), Some(529));
    let usage = failed.message().unwrap().usage().unwrap();
    assert_eq!(usage.input_tokens(), Some(0));
    assert_eq!(usage.cache_read_input_tokens(), None, "absent is not 0");
    assert_eq!(usage.service_tier(), None);

    let usage = assistant(&lines[1]).message().unwrap().usage().unwrap();
    assert!(
        usage
            .cache_creation()
            .unwrap()
            .ephemeral_1h_input_tokens()
            .is_some()
    );
    assert!(
        usage
            .server_tool_use()
            .unwrap()
            .web_search_requests()
            .is_some()
    );
    assert!(
        usage
            .output_tokens_details()
            .unwrap()
            .thinking_tokens()
            .is_some()
    );
    assert!(usage.iterations().unwrap()[0].output_tokens().is_some());
    assert!(
        user(&lines[0])
            .mcp_meta()
            .unwrap()
            .structured_content()
            .is_some()
    );
}

#[test]
fn every_block_with_a_view_has_a_fixture_and_fits_it() {
    let mut seen = BTreeSet::new();
    for line in fixture("blocks/known.jsonl") {
        let block = block(&line);
        assert_eq!(block.raw().text(), line);
        assert_eq!(block.misfits(), [""; 0], "{line}");
        match &block {
            Block::Image(image) => assert_eq!(image.source().unwrap().misfits(), [""; 0]),
            Block::Document(document) => assert_eq!(document.source().unwrap().misfits(), [""; 0]),
            Block::ServerToolResult(result) => {
                assert!(!result.content().unwrap().blocks().is_empty(), "{line}");
            }
            Block::Other(_) => continue,
            _ => {}
        }
        seen.insert(block.name().unwrap().into_owned());
    }
    let names: BTreeSet<_> = Block::NAMES.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(seen, names);
}

#[test]
fn an_unknown_block_is_kept_with_its_name_if_it_has_one() {
    let names: Vec<_> = fixture("blocks/unknown.jsonl")
        .iter()
        .map(|line| {
            let block = block(line);
            assert!(matches!(block, Block::Other(_)), "{line}");
            assert_eq!(block.raw().text(), line);
            block.name().unwrap_or_default().into_owned()
        })
        .collect();
    assert_eq!(
        names,
        [
            "video",
            "audio",
            "guard_content",
            "reasoning",
            "compaction",
            "future_block",
            "guardContent",
            "reasoningContent",
            "cachePoint",
            "video",
            "text",
            "",
            "",
            "",
            "",
        ]
    );
}

#[test]
fn tool_results_read_by_the_name_of_the_tool_and_without_it() {
    let lines = fixture("entries/tool-results.jsonl");
    let mut tools = BTreeSet::new();
    for pair in lines.chunks(2) {
        let content = assistant(&pair[0]).message().unwrap().content().unwrap();
        let [Block::ToolUse(call)] = content.blocks() else {
            panic!()
        };
        let tool = call.name().unwrap();
        let result = user(&pair[1]).tool_use_result().unwrap();
        match (&*tool, &result) {
            ("mcp__almanac__moon", ToolUseResult::Blocks(blocks)) => assert_eq!(blocks.len(), 1),
            (_, ToolUseResult::Text(text)) => assert!(text.starts_with("Error")),
            (tool, _) if !ToolOutput::NAMES.contains(&tool) => {
                assert!(matches!(result.output(tool), Some(ToolOutput::Other(_))));
                assert!(
                    matches!(result.guess(), Some(ToolOutput::Other(_))),
                    "{tool}"
                );
            }
            _ => {
                let output = result.output(&tool).unwrap();
                assert!(!matches!(output, ToolOutput::Other(_)), "{tool}");
                assert_eq!(output.misfits(), [""; 0], "{tool}");
                let guess = result.guess().unwrap();
                let is_same = discriminant(&guess) == discriminant(&output);
                assert!(
                    is_same || matches!(guess, ToolOutput::Other(_)),
                    "{tool}: {guess:?}"
                );
                tools.insert(tool.into_owned());
            }
        }
    }
    let names: BTreeSet<_> = ToolOutput::NAMES
        .iter()
        .map(|&name| name.to_owned())
        .collect();
    assert_eq!(tools, names);
}

// ---- the shared files --------------------------------------------------------------------------

/// Entry types without a view and fields without an accessor that are in the shared files on
/// purpose: from other programs, mistakes in hand-made lines, and markers of the test setup.
const FIELDS_WITHOUT_ACCESSOR: &[&str] = &[
    " (type)",
    "assistant.model",
    "assistant.usageMetadata",
    "attachment/prompt_snapshot.redacted",
    "future-thing (type)",
    "marble-origami-commit (type)",
    "message.contenst",
    "message.parts",
    "toolUseResult.harnessNoteCount",
    "toolUseResult.harnessSectionHash",
    "toolUseResult.harnessTailCount",
    "tool_result (type)",
    "user.timesstamp",
];

/// Block types without a view in the shared files; the first is a string among blocks.
const BLOCKS_WITHOUT_VIEW: &[&str] = &["", "future_block"];

/// Fields with another type in the shared files: both in hand-made lines.
const MISFITS: &[&str] = &["toolUseResult.structuredPatch", "user.message"];

#[derive(Default)]
struct Survey {
    lines: usize,
    compared: usize,
    without_accessor: BTreeSet<String>,
    without_view: BTreeSet<String>,
    misfits: BTreeSet<String>,
}

#[test]
fn the_views_cover_the_shared_files_and_agree_with_serde_json() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if !shared.join("corpus/files").is_dir() {
        println!("skipped: no shared data");
        return;
    }
    let mut files = jsonl_files(&shared.join("corpus/files"));
    assert_eq!(files.len(), 122);
    files.extend(jsonl_files(&shared.join("oracle")));
    let mut survey = Survey::default();
    for file in &files {
        let bytes = fs::read(file).unwrap();
        for line in bytes.split(|&byte| byte == b'\n') {
            let line = String::from_utf8_lossy(line);
            if let Ok(entry) = Entry::parse(&line) {
                survey.lines += 1;
                survey.look_at(&entry);
                if let Ok(value) = serde_json::from_str::<Value>(&line) {
                    survey.compared += 1;
                    compare(&entry, &value);
                }
            }
        }
    }
    assert!(survey.lines > 10_000 && survey.compared > survey.lines - 10);
    let known = |list: &[&str]| {
        list.iter()
            .map(|&name| name.to_owned())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(survey.without_view, known(BLOCKS_WITHOUT_VIEW));
    assert_eq!(survey.misfits, known(MISFITS));
    assert_eq!(survey.without_accessor, known(FIELDS_WITHOUT_ACCESSOR));
}

fn jsonl_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(jsonl_files(&path));
        } else if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            files.push(path);
        }
    }
    files
}

impl Survey {
    fn look_at(&mut self, entry: &Entry<'_>) {
        let body = entry.body();
        let name = entry.type_name().unwrap_or_default();
        self.misfits("entry", &entry.misfits());
        match &body {
            Body::User(user) => {
                self.misfits("user", &user.misfits());
                self.fields("user", entry.object(), &[Entry::FIELDS, User::FIELDS], &[]);
                match user.tool_use_result() {
                    Some(ToolUseResult::Blocks(blocks)) => self.blocks(&blocks),
                    Some(result) => {
                        if let Some(output) = result.guess().filter(|o| !o.fields().is_empty()) {
                            let object = output.raw().object().unwrap();
                            self.misfits("toolUseResult", &output.misfits());
                            self.fields("toolUseResult", &object, &[output.fields()], &[]);
                        }
                    }
                    None => {}
                }
            }
            Body::Assistant(assistant) => {
                self.misfits("assistant", &assistant.misfits());
                self.fields(
                    "assistant",
                    entry.object(),
                    &[Entry::FIELDS, Assistant::FIELDS],
                    &[],
                );
            }
            Body::System(system) => {
                let inner = system.body();
                self.misfits("system", &system.misfits());
                self.misfits("system", &inner.misfits());
                let tables = [Entry::FIELDS, System::FIELDS, inner.fields()];
                self.fields(
                    &format!("system/{}", system.kind().name()),
                    entry.object(),
                    &tables,
                    &[],
                );
            }
            Body::Attachment(attachment) => {
                self.misfits("attachment", &attachment.misfits());
                self.fields(
                    "attachment",
                    entry.object(),
                    &[Entry::FIELDS, Attachment::FIELDS],
                    &[],
                );
                if let (Some(inner), Some(object)) = (attachment.body(), attachment.attachment()) {
                    let name = format!("attachment/{}", attachment.kind().name());
                    self.misfits(&name, &inner.misfits());
                    self.fields(&name, &object, &[inner.fields()], &["type"]);
                }
            }
            Body::Progress(progress) => {
                self.misfits("progress", &progress.misfits());
                self.fields(
                    "progress",
                    entry.object(),
                    &[Entry::FIELDS, Progress::FIELDS],
                    &[],
                );
                if let (Some(inner), Some(object)) = (progress.body(), progress.data()) {
                    let name = format!("progress/{}", progress.kind().name());
                    self.misfits(&name, &inner.misfits());
                    self.fields(&name, &object, &[inner.fields()], &["type"]);
                }
            }
            Body::Stream(message) => {
                self.misfits(&name, &message.misfits());
                self.fields(
                    &name,
                    entry.object(),
                    &[Entry::FIELDS, message.fields()],
                    &[],
                );
            }
            Body::Metadata(metadata) => {
                self.misfits(&name, &metadata.misfits());
                self.fields(
                    &name,
                    entry.object(),
                    &[Entry::FIELDS, metadata.fields()],
                    &[],
                );
            }
            _ => {
                self.without_accessor.insert(format!("{name} (type)"));
            }
        }
        if let Some(message) = entry.message() {
            self.misfits("message", &message.misfits());
            self.fields("message", message.object(), &[Message::FIELDS], &[]);
            if let Some(content) = message.content() {
                self.blocks(content.blocks());
            }
            if let Some(usage) = message.usage() {
                self.misfits("usage", &usage.misfits());
                self.fields("usage", usage.object(), &[Usage::FIELDS], &[]);
            }
        }
    }

    fn blocks(&mut self, blocks: &[Block<'_>]) {
        for block in blocks {
            let name = block.name().unwrap_or_default();
            if let Block::Other(_) = block {
                self.without_view.insert(name.into_owned());
                continue;
            }
            self.misfits(&name, &block.misfits());
            self.fields(
                &name,
                &block.raw().object().unwrap(),
                &[block.fields()],
                &["type"],
            );
            match block {
                Block::ToolResult(result) => {
                    let content = result.content();
                    self.blocks(content.as_ref().map_or(&[], Content::blocks));
                }
                Block::ServerToolResult(result) => {
                    let content = result.content();
                    self.blocks(content.as_ref().map_or(&[], Content::blocks));
                }
                _ => {}
            }
        }
    }

    fn misfits(&mut self, view: &str, keys: &[&str]) {
        self.misfits
            .extend(keys.iter().map(|key| format!("{view}.{key}")));
    }

    /// Notes the keys of `object` that are in none of the tables and are not read otherwise.
    fn fields(&mut self, view: &str, object: &Object<'_>, tables: &[&[Field]], others: &[&str]) {
        let fields = tables.iter().copied().flatten();
        for (key, _) in object.members() {
            let key = key.as_ref();
            let is_known = fields.clone().any(|field| field.keys.contains(&key));
            if !is_known && !others.contains(&key) {
                self.without_accessor.insert(format!("{view}.{key}"));
            }
        }
    }
}

/// Checks that a sample of accessors returns the values of `value`, the same line.
#[track_caller]
fn compare(entry: &Entry<'_>, value: &Value) {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_u64);

    assert_eq!(entry.type_name().as_deref(), text("/type"));
    assert_eq!(entry.uuid().as_deref(), text("/uuid"));
    assert_eq!(entry.parent_uuid().as_deref(), text("/parentUuid"));
    assert_eq!(entry.timestamp().as_deref(), text("/timestamp"));
    assert_eq!(
        entry.session_id().as_deref(),
        text("/sessionId").or(text("/session_id"))
    );
    assert_eq!(
        entry.is_sidechain(),
        value.pointer("/isSidechain").and_then(Value::as_bool)
    );

    if let Some(message) = entry.message() {
        assert_eq!(message.id().as_deref(), text("/message/id"));
        assert_eq!(message.role().as_deref(), text("/message/role"));
        assert_eq!(
            message.stop_reason().as_deref(),
            text("/message/stop_reason")
        );
        let usage = message.usage();
        let usage = usage.as_ref();
        assert_eq!(
            usage.and_then(Usage::input_tokens),
            number("/message/usage/input_tokens")
        );
        assert_eq!(
            usage
                .and_then(Usage::cache_creation)
                .and_then(|it| it.ephemeral_5m_input_tokens()),
            number("/message/usage/cache_creation/ephemeral_5m_input_tokens")
        );
        match (message.content(), &value["message"]["content"]) {
            (Some(Content::Text(content)), Value::String(expect)) => assert_eq!(content, *expect),
            (Some(Content::Blocks(blocks)), Value::Array(expect)) => {
                assert_eq!(blocks.len(), expect.len());
                for (block, expect) in blocks.iter().zip(expect) {
                    compare_block(block, expect);
                }
            }
            (None, Value::Null) => {}
            (content, _) => panic!("content differs: {content:?}"),
        }
    }
    match entry.body() {
        Body::System(system) => {
            assert_eq!(system.subtype().as_deref(), text("/subtype"));
            assert_eq!(system.content().as_deref(), text("/content"));
        }
        Body::Attachment(attachment) => {
            let name = attachment.attachment().and_then(|inner| inner.str("type"));
            assert_eq!(name.as_deref(), text("/attachment/type"));
        }
        Body::Metadata(Metadata::LastPrompt(prompt)) => {
            assert_eq!(prompt.leaf_uuid().as_deref(), text("/leafUuid"));
            assert_eq!(prompt.last_prompt().as_deref(), text("/lastPrompt"));
        }
        Body::User(user) => match (user.tool_use_result(), &value["toolUseResult"]) {
            (Some(ToolUseResult::Text(result)), Value::String(expect)) => {
                assert_eq!(result, *expect);
            }
            (Some(ToolUseResult::Blocks(result)), Value::Array(expect)) => {
                assert_eq!(result.len(), expect.len());
            }
            (Some(ToolUseResult::Object(result)), Value::Object(expect)) => {
                assert_eq!(
                    result.str("stdout").as_deref(),
                    expect.get("stdout").and_then(Value::as_str)
                );
                assert_eq!(
                    result.u64("numFiles"),
                    expect.get("numFiles").and_then(Value::as_u64)
                );
            }
            (None, Value::Null) => {}
            (result, _) => panic!("toolUseResult differs: {result:?}"),
        },
        _ => {}
    }
}

#[track_caller]
fn compare_block(block: &Block<'_>, value: &Value) {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    match block {
        Block::Text(block) => assert_eq!(block.text().as_deref(), text("text")),
        Block::Thinking(block) => assert_eq!(block.signature().as_deref(), text("signature")),
        Block::ToolUse(block) => {
            assert_eq!(block.id().as_deref(), text("id"));
            assert_eq!(block.name().as_deref(), text("name"));
        }
        Block::ToolResult(block) => {
            assert_eq!(block.tool_use_id().as_deref(), text("tool_use_id"));
            assert_eq!(
                block.is_error(),
                value.get("is_error").and_then(Value::as_bool)
            );
            let content = block.content();
            let content = content.as_ref().and_then(Content::as_text);
            assert_eq!(content, text("content"));
        }
        _ => {}
    }
}

#[test]
fn messages_of_the_sdk_have_views() {
    let lines = fixture("entries/wire.jsonl");
    let of_kind = |kind: EntryKind| lines.iter().filter(move |line| entry(line).kind() == kind);
    let message = |line: &String| match Entry::parse(line).unwrap().body() {
        Body::Stream(message) => message.raw().text().to_owned(),
        other => panic!("{other:?}"),
    };
    for line in of_kind(EntryKind::StreamEvent).chain(of_kind(EntryKind::ToolUseSummary)) {
        assert_eq!(message(line), *line);
    }
    let success = of_kind(EntryKind::Result)
        .find(|line| line.contains("\"success\""))
        .unwrap();
    let Body::Stream(StreamMessage::Result(result)) = entry(success).body() else {
        panic!()
    };
    assert_eq!(result.num_turns(), Some(454));
    assert_eq!(
        (result.duration_ms(), result.duration_api_ms()),
        (Some(451), Some(452))
    );
    assert_eq!(result.total_cost_usd(), Some(457.5));
    assert_eq!(result.usage().unwrap().input_tokens(), Some(458));
    assert_eq!(result.permission_denials().unwrap().len(), 1);
    let by_model = result.model_usage().unwrap();
    let usage = ModelUsage::from(by_model.members()[0].1.object().unwrap());
    assert_eq!(
        (usage.cost_usd(), usage.context_window()),
        (Some(481.5), Some(482))
    );
    let summaries = of_kind(EntryKind::ToolUseSummary).map(|line| match entry(line).body() {
        Body::Stream(StreamMessage::ToolUseSummary(summary)) => {
            summary.preceding_tool_use_ids().unwrap().len()
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(summaries.collect::<Vec<_>>(), [2, 2]);
    let tombstone = r#"{"type":"tombstone","message":{"type":"assistant","uuid":"u"}}"#;
    let Body::Stream(StreamMessage::Tombstone(tombstone)) = entry(tombstone).body() else {
        panic!()
    };
    assert_eq!(tombstone.message().unwrap().uuid().as_deref(), Some("u"));

    let init = r#"{"type":"system","subtype":"init","apiKeySource":"none","tools":["Read"],
        "mcp_servers":[{"name":"tides","status":"connected"}],"permissionMode":"plan"}"#;
    let SystemBody::Init(init) = system(init) else {
        panic!()
    };
    assert_eq!(init.api_key_source().as_deref(), Some("none"));
    assert_eq!(init.tools().unwrap(), ["Read"]);
    assert_eq!(
        init.mcp_servers().unwrap()[0].status().as_deref(),
        Some("connected")
    );
    assert_eq!(init.permission_mode().as_deref(), Some("plan"));
    let patch = r#"{"type":"system","subtype":"task_updated","patch":{"status":"failed"}}"#;
    let SystemBody::TaskUpdated(task) = system(patch) else {
        panic!()
    };
    assert_eq!(task.patch().unwrap().status().as_deref(), Some("failed"));
}
