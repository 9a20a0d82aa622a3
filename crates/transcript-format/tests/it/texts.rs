//! The texts of clients: what is written is recognized and read again, whatever a person wrote.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;
use transcript_format::tags::{Output, Tag, Tagged};
use transcript_format::texts::{
    self, RejectedBy, Rejection, is_interrupt, is_placeholder_result, is_synthetic, may_start_with,
};
use transcript_testkit::shared;

/// Texts of pieces that a reader may trip over: tags, their escaped forms, entities, line ends.
fn hostile() -> impl Strategy<Value = String> {
    let names: Vec<&str> = Tag::TYPED
        .iter()
        .chain(Tag::PRINTED)
        .chain([&Tag::UserMemoryInput, &Tag::SystemReminder])
        .map(|tag| tag.name())
        .collect();
    let sign = prop_oneof![
        Just("<"),
        Just("</"),
        Just("&lt;"),
        Just("&lt;/"),
        Just("&amp;lt;"),
        Just("&amp;amp;lt;/"),
        Just("&"),
        Just("amp;lt;"),
    ];
    let tag = (
        sign,
        prop::sample::select(names),
        prop_oneof![Just(">"), Just(" a>"), Just("&gt;")],
    );
    let tag = tag.prop_map(|(sign, name, end)| format!("{sign}{name}{end}"));
    let word = prop_oneof![
        Just(" user said:\n"),
        Just(". If you have other tasks that don't depend on this action, continue"),
        Just(" Reason: "),
        Just("[Request interrupted by user]"),
        Just("\n"),
        Just("\r\n"),
        Just(" "),
        Just("\u{2028}"),
        Just("&&"),
        Just("a < b"),
        Just("日本🦉"),
        Just(""),
    ];
    let piece = prop_oneof![3 => tag, 2 => word.prop_map(str::to_owned), 1 => any::<String>()];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn a_text_in_tags_is_read_as_it_was_written(one in hostile(), two in hostile()) {
        let [a, b] = [&*one, &*two].map(std::borrow::Cow::Borrowed);
        let output = Output { stdout: a.clone(), stderr: b.clone() };
        for tagged in [
            Tagged::Command { name: a.clone(), arguments: b },
            Tagged::CommandOutput(output.clone()),
            Tagged::Shell(a.clone()),
            Tagged::ShellOutput(output),
            Tagged::MemoryNote(a),
        ] {
            let text = tagged.to_string();
            prop_assert_eq!(Tagged::read(&text), Some(tagged.clone()), "{}", text);
            // Nothing but the tags of a hostile text is changed.
            if !one.contains(['<', '&']) && !two.contains(['<', '&']) {
                prop_assert!(text.contains(&one), "{}", text);
            }
        }
    }

    #[test]
    fn the_reason_of_a_rejection_is_read_as_it_was_written(reason in hostile()) {
        for by in RejectedBy::ALL {
            for reason in [None, Some(&*reason)] {
                let rejection = Rejection::new(by, reason);
                let text = rejection.to_string();
                prop_assert!(is_synthetic(&text), "{}", text);
                prop_assert!(!is_placeholder_result(&text), "{}", text);
                prop_assert_eq!(Rejection::read(&text), Some(rejection), "{}", text);
            }
        }
    }
}

#[test]
fn every_text_that_is_written_is_recognized() {
    let whole = [
        texts::NO_RESPONSE,
        texts::INTERRUPTED,
        texts::INTERRUPTED_FOR_TOOL_USE,
        texts::CANCELLED,
        texts::START_MISSING,
        texts::ORPHAN_REMOVED,
        texts::CALL_REPEATED,
        texts::TOOL_LOADED,
        texts::TOOL_REFERENCES_REMOVED,
        texts::CONTINUE,
        texts::NO_VISIBLE_OUTPUT,
        texts::ANSWER_CUT,
        texts::OUTPUT_LIMIT_HIT,
    ];
    let lost = [
        texts::CALL_INTERRUPTED,
        texts::CALL_CUT,
        texts::CALL_PENDING,
        texts::RESULT_MISSING,
        texts::NO_CONTENT,
        texts::MEDIA_REJECTED,
        texts::MEDIA_TOO_LARGE,
    ];
    for text in whole.iter().chain(&lost) {
        // Some are the start of a text.
        let written = if text.ends_with(' ') {
            format!("{text}…")
        } else {
            (*text).to_owned()
        };
        assert!(is_synthetic(&written), "{text}");
        assert!(is_synthetic(&format!(" {written}\n")), "{text}");
        assert!(!is_synthetic(&format!("Why {written}?")), "{text}");
        assert!(may_start_with(text.as_bytes()[0]), "{text}");
        let is_lost = is_placeholder_result(&written);
        assert_eq!(is_lost, lost.contains(text), "{text}");
        let is_stop = [texts::INTERRUPTED, texts::INTERRUPTED_FOR_TOOL_USE].contains(text);
        assert_eq!(is_interrupt(&written), is_stop, "{text}");
        assert_eq!(Rejection::read(&written), None, "{text}");
    }
}

#[test]
fn rejections_are_read_in_the_forms_of_all_versions() {
    let read = |text: &'static str| {
        let rejection = Rejection::read(text);
        rejection.map(|rejection| (rejection.by.name(), rejection.reason))
    };
    let cases = [
        (
            "The user doesn't want to proceed with this tool use. The tool use was rejected.",
            Some(("person", None)),
        ),
        (
            "Permission for this tool use was denied. The tool use was rejected (eg. …). The user said:\nNo.",
            Some(("subagent", Some("No."))),
        ),
        (
            "Permission for this action has been denied. Reason: Deletes a branch. If you have other tasks that \
             don't depend on this action, continue working on those.",
            Some(("automatic", Some("Deletes a branch"))),
        ),
        (
            "Permission for this action was denied by the Claude Code auto mode classifier. Reason: [Rule]",
            Some(("automatic", Some("[Rule]"))),
        ),
        ("The user wants to proceed.", None),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn tags_of_others_and_attributes_are_no_text_of_a_client() {
    for text in [
        "<bash-input a=\"b\">ls</bash-input>",
        "ls <bash-input>ls</bash-input>",
        "<bash-inputs>ls</bash-inputs>",
        "<command-message>x</command-message>",
        "<note>x</note>",
        "",
    ] {
        assert_eq!(Tagged::read(text), None, "{text}");
    }
    // An end tag may be missing, as in a text that was cut.
    assert_eq!(
        Tagged::read("<bash-input>ls"),
        Some(Tagged::Shell("ls".into()))
    );
    // Text that a client escaped stays escaped: it escapes each sign.
    let escaped =
        "<bash-stdout>a &lt;/bash-stdout&gt; &amp; b</bash-stdout><bash-stderr></bash-stderr>";
    let output = Output {
        stdout: "a &lt;/bash-stdout&gt; &amp; b".into(),
        stderr: "".into(),
    };
    assert_eq!(Tagged::read(escaped), Some(Tagged::ShellOutput(output)));
}

#[test]
fn texts_of_recorded_sessions_are_written_again_as_they_are() {
    let Some(corpus) = shared().map(|shared| shared.join("corpus/files")) else {
        println!("skipped: no shared data");
        return;
    };
    let (mut rejections, mut tagged) = (0, 0);
    let folders = fs::read_dir(&corpus).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    for file in files.map(|file| file.unwrap().path()) {
        let content = fs::read(&file).unwrap();
        for line in String::from_utf8_lossy(&content).lines() {
            let Ok(line) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            for text in all_texts(&line) {
                rejections += usize::from(is_same_rejection(&text));
                tagged += usize::from(is_same_tagged(&text, &file));
            }
        }
    }
    assert!(
        rejections > 10 && tagged > 40,
        "{rejections} rejections, {tagged} texts in tags"
    );
}

/// Returns the texts and results of a line, and the content of a `system` entry.
fn all_texts(line: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    let content = [&line["content"], &line["message"]["content"]];
    let blocks = content
        .iter()
        .filter_map(|content| content.as_array())
        .flatten();
    let inner = blocks.flat_map(|block| [&block["text"], &block["content"]]);
    for value in content.iter().copied().chain(inner) {
        texts.extend(value.as_str().map(str::to_owned));
    }
    texts
}

/// Returns whether a text is a rejection that is written again as it is; later versions add a note.
fn is_same_rejection(text: &str) -> bool {
    let Some(rejection) = Rejection::read(text) else {
        return false;
    };
    let written = rejection.to_string();
    let note = "\n\nNote: The user's next message may contain a correction";
    let automatic = rejection.by == RejectedBy::Automatic;
    assert!(
        text == written
            || automatic && text.starts_with(&written)
            || text.starts_with(&(written + note)),
        "{text}"
    );
    true
}

/// Returns whether a text in tags is written again as it is. The parts of a command may be in another
/// order.
fn is_same_tagged(text: &str, file: &Path) -> bool {
    let Some(tagged) = Tagged::read(text) else {
        return false;
    };
    let is_in_order = text.starts_with("<command-name>") && text.contains("\n            ");
    if is_in_order || !matches!(tagged, Tagged::Command { .. }) {
        assert_eq!(tagged.to_string(), text, "{}", file.display());
    }
    true
}
