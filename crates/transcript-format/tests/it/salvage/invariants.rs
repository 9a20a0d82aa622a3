//! Properties of salvage for any bytes. Shared with the fuzz target.

use transcript_format::kind::EntryKind;
use transcript_format::salvage::{end_of_object, objects, repaired_text};
use transcript_format::scan::{ScanErrorKind, Scanner};

/// Checks the entries salvaged from `bytes`.
///
/// # Panics
///
/// When something is salvaged that is not in the bytes, or a complete line is not salvaged.
pub(crate) fn check(bytes: &[u8]) {
    let found = objects(bytes);
    let mut end_of_last = 0;
    for place in &found {
        assert!(end_of_last <= place.start, "{found:?} overlap");
        end_of_last = place.end;
        check_object(&bytes[place.clone()]);
    }

    let text = repaired_text(bytes);
    assert_eq!(
        repaired_text(text.as_bytes()),
        text,
        "repaired text is in order"
    );
    let mut scanner = Scanner::new();
    match scanner.scan(bytes) {
        Ok(envelope) => {
            let is_known = envelope.kind() != EntryKind::Other;
            let start = bytes.iter().position(|byte| *byte == b'{').unwrap_or(0);
            let whole = [start..envelope.end()];
            let expected = if is_known { &whole[..] } else { &[] };
            assert_eq!(found, expected, "a line in order is one object");
            assert_eq!(text.as_bytes(), bytes, "what is in order stays as it is");
            assert_eq!(end_of_object(bytes), Some(whole[0].end));
        }
        Err(error) if error.kind == ScanErrorKind::Trailing => {
            let end = scanner.scan_first(bytes).map(|first| first.end());
            assert_eq!(end_of_object(bytes), end.ok());
        }
        Err(_) => {}
    }
}

fn check_object(bytes: &[u8]) {
    assert!(bytes.starts_with(b"{") && bytes.ends_with(b"}"));
    let text = repaired_text(bytes);
    let mut scanner = Scanner::new();
    let envelope = scanner.scan(text.as_bytes()).expect("repaired text scans");
    assert_ne!(envelope.kind(), EntryKind::Other);
    let uuid = envelope.uuid().map(|uuid| uuid.raw());
    if let Some(uuid) = uuid {
        let mut places = bytes.windows(uuid.len());
        assert!(places.any(|there| there == uuid), "an id that nobody wrote");
    }
    // The scan leaves two things to serde_json: lone surrogates and numbers out of range.
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(value) => assert!(value.is_object()),
        Err(error) => {
            let reported = error.to_string();
            let is_left =
                ["surrogate", "hex escape", "out of range"].map(|what| reported.contains(what));
            assert!(is_left.contains(&true), "{reported}");
        }
    }
    let whole = 0..bytes.len();
    assert_eq!(objects(bytes), [whole], "an object alone is found as well");
}
