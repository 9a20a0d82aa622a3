//! Requests that the oracle folder does not show: the role form, limits, raw blocks, and how a request came
//! about.

use std::collections::HashMap;
use std::io::Write;

use serde_json::{Value, json};
use transcript_messages::{OmissionReason, Role, SyntheticKind};
use transcript_reader::{Bodies, EntryNo, EntryRef, Error, Index, Source};
use transcript_resume::request::recorded::{self, ReplayOutcome};
use transcript_resume::request::{BodySource, Request, RequestOptions};
use transcript_resume::texts::{is_placeholder_result, is_synthetic};
use transcript_resume::{Policy, Refusal, Tree};
use transcript_testkit::model;

// ---------------------------------------------------------------------------------------------
// Sessions in the making
// ---------------------------------------------------------------------------------------------

/// A session of which each line is a child of the one before, a second later.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) text: String,
    lines: u32,
}

impl Session {
    /// Adds a line; `members` is the inside of a JSON object.
    pub(crate) fn line(mut self, kind: &str, members: &str) -> Self {
        let line = self.lines;
        self.lines += 1;
        let parent = line
            .checked_sub(1)
            .map_or("null".to_owned(), |parent| format!("\"e{parent}\""));
        self.text += &format!(
            "{{\"type\":\"{kind}\",\"uuid\":\"e{line}\",\"parentUuid\":{parent},\
             \"isSidechain\":false,\"timestamp\":\"2026-11-20T10:00:{line:02}.000Z\",{members}}}\n"
        );
        self
    }

    /// `content` is JSON.
    pub(crate) fn user(self, content: &str) -> Self {
        self.line(
            "user",
            &format!(r#""message":{{"role":"user","content":{content}}}"#),
        )
    }

    pub(crate) fn assistant(self, id: &str, content: &str) -> Self {
        let message = format!(r#""id":"{id}","model":"claude-x-4-5","content":{content}"#);
        self.line("assistant", &format!(r#""message":{{{message}}}"#))
    }

    pub(crate) fn reminder(self, role: &str, text: &str) -> Self {
        let rendered = format!(
            "\"rendered\":[{{\"content\":\"<system-reminder>\\n{text}\\n</system-reminder>\"}}]"
        );
        self.line(
            "attachment",
            &format!(r#""attachment":{{"type":"x"}},{rendered},"renderedRole":"{role}""#),
        )
    }

    fn write(&self) -> (tempfile::NamedTempFile, Source) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(self.text.as_bytes()).unwrap();
        let source = Source::open(file.path()).unwrap();
        (file, source)
    }

    fn request(&self, options: &RequestOptions) -> Request {
        self.request_under(Policy::Vendor, options)
    }

    pub(crate) fn request_under(&self, policy: Policy, options: &RequestOptions) -> Request {
        let (_file, source) = self.write();
        let index = Index::load(&source).unwrap();
        let tree = Tree::new(&index, policy);
        options.request(&tree, &mut Bodies::new(&source)).unwrap()
    }

    /// The messages as they are sent, without what is between the lines.
    fn sent(&self, options: &RequestOptions) -> Vec<String> {
        let request = self.request(options);
        let messages = request.messages.iter();
        messages
            .map(|message| serde_json::to_string(message).unwrap())
            .collect()
    }
}

pub(crate) const CALL: &str = r#"[{"type":"tool_use","id":"t","name":"Bash","input":{}}]"#;
pub(crate) const RESULT: &str = r#"[{"type":"tool_result","tool_use_id":"t","content":"out"}]"#;

fn newer() -> RequestOptions {
    RequestOptions::new().model("claude-opus-5-5")
}

// ---------------------------------------------------------------------------------------------
// The role form (rig 6)
// ---------------------------------------------------------------------------------------------

#[test]
fn newer_models_get_system_reminders_as_one_message_after_the_turn() {
    let session = Session::default()
        .reminder("system", "one")
        .user(r#""Q""#)
        .reminder("system", "two")
        .assistant("m", r#"[{"type":"text","text":"A"}]"#);
    assert_eq!(
        session.sent(&newer()),
        [
            r#"{"role":"user","content":"Q"}"#,
            r#"{"role":"system","content":"one\n\ntwo"}"#,
            r#"{"role":"assistant","content":[{"type":"text","text":"A"}]}"#,
        ]
    );
}

#[test]
fn user_reminders_stay_in_the_user_message_of_newer_models() {
    let session = Session::default()
        .user(r#""Q""#)
        .reminder("user", "file")
        .reminder("system", "aside")
        .assistant("m", CALL)
        .user(RESULT)
        .reminder("user", "folded")
        .reminder("system", "tokens")
        .reminder("user", "beside")
        .assistant("n", r#"[{"type":"text","text":"A"}]"#);
    let sent = session.sent(&newer());
    let reminder = |text: &str| format!(r"<system-reminder>\n{text}\n</system-reminder>");
    assert_eq!(
        sent[0],
        format!(
            r#"{{"role":"user","content":[{{"type":"text","text":"{}\n"}},{{"type":"text","text":"Q"}}]}}"#,
            reminder("file")
        )
    );
    assert_eq!(sent[1], r#"{"role":"system","content":"aside"}"#);
    // They go into the result before them, and a `system` one in between does not matter.
    assert_eq!(
        sent[3],
        format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":"out\n\n{}\n\n{}"}}]}}"#,
            reminder("folded"),
            reminder("beside")
        )
    );
    assert_eq!(sent[4], r#"{"role":"system","content":"tokens"}"#);
}

#[test]
fn the_form_follows_the_model_of_the_request() {
    let session = Session::default().user(r#""Q""#).reminder("system", "one");
    let roles = |model: &str| {
        let request = session.request(&RequestOptions::new().model(model));
        let roles = request.messages.iter().map(|message| message.role());
        roles.collect::<Vec<_>>()
    };
    for model in [
        "claude-opus-4-8",
        "claude-opus-5-5",
        "claude-sonnet-5-20270101",
    ] {
        assert!(roles(model).contains(&Role::System), "{model}");
    }
    for model in [
        "claude-sonnet-4-5-20250929",
        "claude-opus-4-20250514",
        "claude-3-5-haiku-20241022",
        "<synthetic>",
    ] {
        assert!(!roles(model).contains(&Role::System), "{model}");
    }
}

// ---------------------------------------------------------------------------------------------
// Raw blocks
// ---------------------------------------------------------------------------------------------

#[test]
fn blocks_that_are_only_moved_keep_their_text() {
    let odd = r#"{"z":1e+22,"a":1.5,"n":123456789012345680000,"s":"\u00e9\/\ud83d\ude00","type":"tool_use","id":"t","name":"Bash","input":{"b":-1,"a":[ 1 , 2 ]}}"#;
    let new = r#"{"type":"future_block","x":{"y":1e-7}}"#;
    let result =
        r#"{"content":[{"text":"\u0041","type":"text"}],"tool_use_id":"t","type":"tool_result"}"#;
    let session = Session::default()
        .user(r#""Q \u00e9""#)
        .assistant("m", &format!("[{odd},{new}]"))
        .user(&format!("[{result}]"));
    let sent = session.sent(&RequestOptions::new());
    assert_eq!(sent[0], r#"{"role":"user","content":"Q \u00e9"}"#);
    assert_eq!(
        sent[1],
        format!(r#"{{"role":"assistant","content":[{new},{odd}]}}"#)
    );
    assert_eq!(
        sent[2],
        format!(r#"{{"role":"user","content":[{result}]}}"#)
    );
}

#[test]
fn an_edit_touches_one_field_only() {
    let first = r#"{"x":2.5,"type":"text","text":"Q\u00e9","y":"z"}"#;
    let session = Session::default()
        .user(&format!("[{first}]"))
        .user(r#""R""#)
        .assistant("m", &CALL.replace(r#""Bash""#, r#""Task" ,"big":1.5"#))
        .user(r#"[{"type":"tool_result","tool_use_id":"t","z":3.5,"is_error":false}]"#)
        .reminder("system", "r");
    let sent = session.sent(&RequestOptions::new());
    assert_eq!(
        sent[0],
        r#"{"role":"user","content":[{"x":2.5,"type":"text","text":"Q\u00e9\n","y":"z"},{"type":"text","text":"R"}]}"#
    );
    assert!(
        sent[1].contains(r#""name":"Agent" ,"big":1.5"#),
        "{}",
        sent[1]
    );
    assert_eq!(
        sent[2],
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","z":3.5,"is_error":false,"content":"<system-reminder>\nr\n</system-reminder>"}]}"#
    );
}

#[test]
fn cache_breakpoints_are_dropped_at_both_levels() {
    let result = r#"[{"type":"tool_result","cache_control":{"type":"ephemeral"},"tool_use_id":"t","content":[{"type":"text","text":"\"cache_control\"","cache_control":null}],"k":2.5}]"#;
    let session = Session::default()
        .user(r#"[{"type":"text","text":"Q","cache_control":{"type":"ephemeral"}}]"#)
        .assistant("m", CALL)
        .user(result);
    let sent = session.sent(&RequestOptions::new());
    assert_eq!(
        sent[0],
        r#"{"role":"user","content":[{"type":"text","text":"Q"}]}"#
    );
    assert_eq!(
        sent[2],
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"\"cache_control\""}],"k":2.5}]}"#
    );
}

#[test]
fn lone_surrogates_and_nuls_are_sent_as_replacement_characters() {
    let session = Session::default()
        .user(r#""a\ud83d b\u0000c \ud83d\ude00 \\ud83d \\\u0000 \udc00\ud800""#)
        .assistant("m", CALL)
        .user(r#"[{"type":"tool_result","tool_use_id":"t","content":"\ud83d\u0000"}]"#);
    let sent = session.sent(&RequestOptions::new().prompt("nul \0"));
    assert_eq!(
        sent[0],
        r#"{"role":"user","content":"a\ufffd b\ufffdc \ud83d\ude00 \\ud83d \\\ufffd \ufffd\ufffd"}"#
    );
    assert!(
        sent[2].contains(r#""content":"\ufffd\ufffd""#),
        "{}",
        sent[2]
    );
    assert_eq!(sent[4], "{\"role\":\"user\",\"content\":\"nul \u{fffd}\"}");
}

#[test]
fn content_is_a_list_once_something_was_merged_into_it() {
    let orphan = r#"[{"type":"tool_result","tool_use_id":"gone","content":"x"}]"#;
    let session = Session::default().user(r#""Q""#).user(orphan);
    assert_eq!(
        session.sent(&RequestOptions::new())[0],
        r#"{"role":"user","content":[{"type":"text","text":"Q"}]}"#
    );
}

// ---------------------------------------------------------------------------------------------
// Limits
// ---------------------------------------------------------------------------------------------

/// A block with `bytes` bytes of base64 data, three for four digits.
fn media(kind: &str, media_type: &str, bytes: usize) -> String {
    let source = json!({
        "type": "base64", "media_type": media_type, "data": "A".repeat(bytes / 3 * 4),
    });
    json!({"type": kind, "source": source}).to_string()
}

#[test]
fn media_over_the_limits_of_the_api_are_sent_as_notes() {
    const MB: usize = 1 << 20;
    let text = json!({"type": "text", "media_type": "text/plain", "data": "x".repeat(5 * MB + 1)});
    let text = json!({"type": "document", "source": text}).to_string();
    let shot = media("image", "image/png", 6 * MB);
    let session = Session::default()
        .user(&format!(
            "[{},{},{text}]",
            media("image", "image/jpeg", 5 * MB - 3),
            media("document", "application/pdf", 33 * MB)
        ))
        .assistant("m", CALL)
        .user(&RESULT.replace(
            r#""out""#,
            &format!(r#"[{{"type":"text","text":"T"}},{shot}]"#),
        ));
    let request = session.request(&RequestOptions::new());
    let text_at = |message: usize, block: usize| -> Value {
        let block = &request.messages[message].blocks()[block];
        serde_json::from_str(block.json()).unwrap()
    };
    let note = |what: &str| {
        let text = format!("[media left out: {what} that the API takes]");
        json!({"type": "text", "text": text})
    };
    assert_eq!(text_at(0, 0)["type"], "image");
    assert_eq!(
        text_at(0, 1),
        note("application/pdf, 33.0 MB, more than the 32 MB")
    );
    assert_eq!(
        text_at(0, 2),
        note("text/plain, 5.0 MB, more than the 5 MB")
    );
    assert_eq!(
        text_at(2, 0)["content"],
        json!([{"type": "text", "text": "T"}, note("image/png, 6.0 MB, more than the 5 MB")])
    );
    let notes = request.synthetic.iter();
    let notes = notes.filter(|made_up| made_up.kind == SyntheticKind::MediaNote);
    assert_eq!(
        notes.map(|note| note.origin).collect::<Vec<_>>(),
        [Some(0), Some(0), Some(2)]
    );

    let slow = model::vendor_request(session.text.as_bytes(), None, None).messages;
    let fast: Vec<Value> = session
        .sent(&RequestOptions::new())
        .iter()
        .map(|message| serde_json::from_str(message).unwrap())
        .collect();
    assert_eq!(slow.as_ref(), Some(&fast));
}

// ---------------------------------------------------------------------------------------------
// Synthetic blocks and omissions
// ---------------------------------------------------------------------------------------------

#[test]
fn an_interrupted_call_gets_a_result_and_an_answer_that_can_be_persisted() {
    let session = Session::default().user(r#""Q""#).assistant("m", CALL);
    let request = session.request(&RequestOptions::new().prompt("NEXT"));
    let made_up: Vec<_> = request
        .synthetic
        .iter()
        .map(|made_up| (made_up.kind, made_up.role, made_up.origin))
        .collect();
    assert_eq!(
        made_up,
        [
            (SyntheticKind::InterruptedResult, Role::User, Some(1)),
            (SyntheticKind::NoResponse, Role::Assistant, Some(1)),
        ]
    );
    assert!(
        request
            .synthetic
            .iter()
            .all(|made_up| made_up.kind.is_persisted())
    );
    assert_eq!(request.synthetic[0].block.call_id(), Some("t"));
    assert_eq!(
        request.synthetic[1].block.json(),
        r#"{"type":"text","text":"No response requested."}"#
    );
    assert_eq!(request.messages.len(), 5);
    assert_eq!(request.messages[2].blocks()[0], request.synthetic[0].block);
    assert_eq!(request.messages[4].blocks()[0].origin(), None);
}

#[test]
fn omissions_are_named_with_their_reasons() {
    let two = r#"[{"type":"tool_use","id":"t","name":"B","input":{}},{"type":"tool_use","id":"u","name":"B","input":{}},{"type":"server_tool_use","id":"s"}]"#;
    let session = Session::default()
        .user(r#""Q""#)
        .assistant("k", r#"[{"type":"thinking","thinking":"hm"}]"#)
        .assistant("m", two)
        .user(RESULT)
        .user(RESULT)
        .line("user", r#""isVirtual":true,"message":{"content":"shown"}"#)
        .user("[]")
        .assistant(
            "n",
            r#"[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"A"}]"#,
        )
        .assistant(
            "o",
            r#"[{"type":"tool_use","id":"v","name":"B","input":{}}]"#,
        )
        .user(r#""P""#);
    let request = session.request(&RequestOptions::new().model("another"));
    let mut omissions: Vec<_> = request
        .omissions
        .iter()
        .map(|omission| (omission.origin, omission.reason))
        .collect();
    omissions.sort_by_key(|(entry, _)| *entry);
    assert_eq!(
        omissions,
        [
            (1, OmissionReason::Silent),
            (2, OmissionReason::ServerCall),
            (4, OmissionReason::OrphanResult),
            (5, OmissionReason::Virtual),
            (6, OmissionReason::Empty),
            (7, OmissionReason::ForeignThinking),
            (8, OmissionReason::UnansweredCall),
        ]
    );
    let missing = &request.synthetic[1];
    assert_eq!(missing.kind, SyntheticKind::MissingResult);
    assert_eq!(missing.origin, Some(2));
    assert!(!missing.kind.is_persisted());
}

#[test]
fn a_prompt_that_is_asked_for_comes_last_and_a_leaf_is_obeyed() {
    let session = Session::default()
        .user(r#""Q""#)
        .assistant("m", r#"[{"type":"text","text":"A"}]"#)
        .user(r#""P""#);
    let sent = session.sent(&RequestOptions::new().leaf(EntryNo::new(1)).prompt("NEXT"));
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[2], r#"{"role":"user","content":"NEXT"}"#);
}

// ---------------------------------------------------------------------------------------------
// Bodies that prove unusable
// ---------------------------------------------------------------------------------------------

/// Returns other texts for some entries, as if the file had changed.
struct Changed<'s> {
    bodies: Bodies<'s>,
    texts: HashMap<usize, &'static str>,
}

impl BodySource for Changed<'_> {
    type Error = Error;

    fn body(&mut self, entry_ref: &EntryRef<'_>) -> Result<&str, Error> {
        match self.texts.get(&entry_ref.number().get()) {
            Some(text) => Ok(text),
            None => self.bodies.body(entry_ref),
        }
    }
}

fn changed(session: &Session, texts: &[(usize, &'static str)]) -> Request {
    let (_file, source) = session.write();
    let index = Index::load(&source).unwrap();
    let mut bodies = Changed {
        bodies: Bodies::new(&source),
        texts: texts.iter().copied().collect(),
    };
    let tree = Tree::new(&index, Policy::Vendor);
    RequestOptions::new().request(&tree, &mut bodies).unwrap()
}

#[test]
fn an_entry_with_an_unusable_body_is_taken_as_if_it_were_not_there() {
    let session = Session::default()
        .user(r#""Q""#)
        .assistant("m", r#"[{"type":"text","text":"A"}]"#)
        .user(r#""R""#)
        .assistant("n", r#"[{"type":"text","text":"B"}]"#);
    for text in [
        "",
        "{\"type\":\"assistant\"",
        "[]",
        "{\"type\":\"user\",\"message\":{}}",
    ] {
        let request = changed(&session, &[(1, text)]);
        let path: Vec<_> = request
            .path
            .entries
            .iter()
            .map(|entry| entry.entry_no().get())
            .collect();
        assert_eq!(path, [0, 2, 3], "{text}");
        assert_eq!(request.messages.len(), 2);
        assert_eq!(request.omissions[0].reason, OmissionReason::UnusableBody);
        assert_eq!(request.omissions[0].origin, 1);
    }
    // The new leaf proves unusable in turn.
    let request = changed(&session, &[(3, ""), (2, "")]);
    assert_eq!(request.path.leaf, Some(EntryNo::new(1)));
    assert_eq!(request.omissions.len(), 2);
    let request = changed(&session, &[(0, ""), (1, ""), (2, ""), (3, "")]);
    assert_eq!(request.path.refusal, Some(Refusal::NoConversation));
    assert!(request.messages.is_empty());
}

// ---------------------------------------------------------------------------------------------
// Recorded requests
// ---------------------------------------------------------------------------------------------

#[test]
fn a_recorded_request_that_cannot_be_rebuilt_says_why() {
    let record = |id: &str, more: &str| {
        format!("{{\"type\":\"api-request\",\"id\":\"{id}\",\"keep\":0,{more}}}\n")
    };
    let mut session = Session::default();
    session.text += &record("none", r#""tail":["00"]"#);
    session = session.user(r#""Q""#);
    // The hash of `{"content":[{"text":"Q","type":"text"}],"role":"user"}`.
    let hash = "f308b3410bd71d4164db494f1fcc88175ada108cbf723b07a792396dc201a172";
    session.text += &record("good", &format!(r#""tail":["{hash}"]"#));
    session.text += &record("bad", &format!(r#""base":"good","tail":["{hash}","00"]"#));
    session.text += &record("lost", r#""base":"gone","tail":[]"#);
    session.text += &record("short", r#""base":"good","keep":2,"tail":[]"#);
    let (_file, source) = session.write();
    let index = Index::load(&source).unwrap();
    let checked = recorded::check(&index, &mut Bodies::new(&source)).unwrap();
    let outcomes: Vec<_> = checked.iter().map(|request| request.outcome).collect();
    assert_eq!(
        outcomes,
        [
            ReplayOutcome::NoConversation,
            ReplayOutcome::Reproduced,
            ReplayOutcome::Differs {
                message: 1,
                built: 1
            },
            ReplayOutcome::UnknownBase,
            ReplayOutcome::UnknownBase,
        ]
    );
    assert_eq!(checked[1].messages, Some(1));
}

// ---------------------------------------------------------------------------------------------
// Fixed texts
// ---------------------------------------------------------------------------------------------

#[test]
fn texts_of_the_client_are_told_from_those_of_people_and_tools() {
    let of_clients = [
        "[Request interrupted by user]",
        "[Request interrupted by user for tool use]\n",
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it \
         was a file edit, the new_string was NOT written to the file). To tell you how to proceed, \
         the user said:\nno",
        "The user doesn't want to take this action right now. STOP what you are doing and wait for \
         the user to tell you how to proceed.",
        "Permission for this tool use was denied. The tool use was rejected (eg. …",
        "Permission for this action was denied by the Claude Code auto mode classifier. Reason: x",
        "No response requested.",
        "Continue from where you left off.",
        "(no content)",
        "[Tool use interrupted]",
        "[Tool result missing due to internal error]",
        "[Tool call interrupted: the session ended before this call's result was recorded",
        "[Orphaned tool result removed due to conversation resume]",
    ];
    for text in of_clients {
        assert!(is_synthetic(text), "{text}");
    }
    for text in [
        "",
        "no",
        "Why did it say [Request interrupted by user]?",
        "(no content) here",
    ] {
        assert!(!is_synthetic(text), "{text}");
        assert!(!is_placeholder_result(text), "{text}");
    }
    assert!(is_placeholder_result(of_clients[11]));
    assert!(is_placeholder_result(
        "[Tool result missing due to internal error]"
    ));
    assert!(!is_placeholder_result(of_clients[2]));
}

#[test]
fn diagnostics_are_sent_with_file_place_and_source() {
    let found = |severity: &str| {
        format!(
            r#""attachment":{{"type":"diagnostics","files":[{{"uri":"/w/src/f.txt","diagnostics":[{{"message":"M","severity":"{severity}","range":{{"start":{{"line":0,"character":4}}}},"code":"1","source":"ts"}}]}}]}}"#
        )
    };
    let session = |severity: &str| {
        Session::default()
            .user("\"hi\"")
            .line("attachment", &found(severity))
    };
    let sent = |severity: &str| session(severity).sent(&RequestOptions::new()).join("\n");
    let text = sent("Error");
    assert!(
        text.contains("detected:\\n\\nf.txt:\\n  ✘ [Line 1:5] M [1] (ts)</new-diagnostics>"),
        "{text}"
    );
    // The text is that of the client, so it is not reported as synthetic.
    let made_up = |severity: &str| {
        let request = session(severity).request(&RequestOptions::new());
        let kinds = request.synthetic.iter().map(|one| one.kind);
        kinds
            .filter(|kind| *kind == SyntheticKind::Reminder)
            .count()
    };
    assert!(sent("Hint").contains("★ [Line 1:5]"), "{}", sent("Hint"));
    assert_eq!((made_up("Error"), made_up("Hint")), (0, 0));
}
