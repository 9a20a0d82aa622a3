//! Keys of message lines that no table has.

use transcript_format::known_keys::KeyPlace;
use transcript_format::scan::Scanner;

/// The unknown keys of a line, as `place name`.
fn unknown(line: &str) -> Vec<String> {
    let mut scanner = Scanner::with_unknown_keys();
    let envelope = scanner
        .scan(line.as_bytes())
        .expect("the line is an object");
    let keys = envelope.unknown_keys();
    keys.map(|(place, name)| format!("{} {}", place.name(), name.decode()))
        .collect()
}

#[test]
fn keys_that_no_table_has_are_found_in_the_entry_its_message_and_its_attachment() {
    let line = |kind: &str, more: &str| format!(r#"{{"parentUuid":null,"type":"{kind}",{more}}}"#);
    let found = |kind: &str, more: &str| unknown(&line(kind, more));
    assert_eq!(
        found("user", r#""moon":1,"rowSource":"local""#),
        ["entry moon"]
    );
    assert_eq!(
        found(
            "assistant",
            r#""message":{"role":"assistant","moon":[{"x":1}],"content":[{"tide":1}]},"sun":{}"#
        ),
        ["message moon", "entry sun"]
    );
    assert_eq!(
        found(
            "system",
            r#""subtype":"local_command","isDisplayOnly":true,"moon":1"#
        ),
        ["entry moon"]
    );
    assert_eq!(
        found(
            "attachment",
            r#""attachment":{"type":"date","date":"x","moon":1},"rendered":[{"sun":1}]"#
        ),
        ["attachment moon"]
    );
    assert_eq!(
        found("attachment", r#""attachment":{"type":"moon","x":1}"#),
        ["attachment-type moon"]
    );
    // Of an attachment whose type has no table nothing is known about its keys.
    assert_eq!(
        found("attachment", r#""attachment":{"type":"todo","x":1}"#),
        [""; 0]
    );
}

#[test]
fn the_type_may_follow_the_keys_and_names_may_have_escapes() {
    assert_eq!(
        unknown(r#"{"moon":1,"r\u006fwSource":"x","t\u0069de":2,"parentUuid":"a","type":"user"}"#),
        ["entry moon", "entry tide"]
    );
    // The key of another kind.
    assert_eq!(
        unknown(r#"{"requestRef":"r","parentUuid":"a","type":"user"}"#),
        ["entry requestRef"]
    );
    assert_eq!(
        unknown(r#"{"requestRef":"r","parentUuid":"a","type":"assistant"}"#),
        [""; 0]
    );
}

#[test]
fn only_the_last_message_and_attachment_of_a_line_count() {
    assert_eq!(
        unknown(r#"{"type":"user","parentUuid":null,"message":{"moon":1},"message":{"sun":1}}"#),
        ["message sun"]
    );
    let line = r#"{"type":"attachment","parentUuid":null,"attachment":{"type":"date","moon":1},"attachment":{"type":"date"}}"#;
    assert_eq!(unknown(line), [""; 0]);
}

#[test]
fn other_lines_and_keys_in_the_form_of_a_stream_are_not_reported() {
    for line in [
        r#"{"type":"last-prompt","parentUuid":null,"moon":1}"#,
        r#"{"type":"progress","parentUuid":null,"moon":1,"data":{"type":"x","moon":1}}"#,
        r#"{"type":"moon","parentUuid":null,"moon":1}"#,
        r#"{"type":"system","subtype":"init","moon":1}"#,
        r#"{"type":"user","parentUuid":null,"row_source":"local","source_tool_use_id":"t"}"#,
    ] {
        assert_eq!(unknown(line), [""; 0], "{line}");
    }
}

#[test]
fn a_scanner_that_was_not_asked_finds_no_keys() {
    let line = br#"{"type":"user","parentUuid":null,"moon":1,"version":"1.0.0"}"#;
    let mut scanner = Scanner::new();
    let envelope = scanner.scan(line).expect("the line is an object");
    assert_eq!(envelope.unknown_keys().count(), 0);
    let mut scanner = Scanner::with_unknown_keys();
    let envelope = scanner.scan(line).expect("the line is an object");
    let version = envelope
        .client_version()
        .map(|version| version.decode().into_owned());
    assert_eq!(version.as_deref(), Some("1.0.0"));
    let keys: Vec<KeyPlace> = envelope.unknown_keys().map(|(place, _)| place).collect();
    assert_eq!(keys, [KeyPlace::Entry]);
    // Nothing is kept for the next line.
    let next = br#"{"type":"user","parentUuid":null}"#;
    let envelope = scanner.scan(next).expect("the line is an object");
    assert_eq!(
        (envelope.unknown_keys().count(), envelope.client_version()),
        (0, None)
    );
}
