//! Properties of the bytes of any stream and the text of any input. Also used by the fuzz target.

use serde_json::value::RawValue;
use transcript_format::make;
use transcript_format::object::{Object, Raw};
use transcript_format::scan::{ScanErrorKind, Scanner};
use transcript_messages::stream::{Accumulator, Input, Reply, Sse, StreamOutcome};

/// Returns the result of a stream that arrives in these pieces.
pub(crate) fn outcome<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> StreamOutcome {
    let mut sse = Sse::new();
    let mut message = Accumulator::new();
    for piece in pieces {
        sse.push(piece, |_, data| {
            message.event(data);
        });
    }
    end(sse, message)
}

/// Ends a stream here.
pub(crate) fn end(sse: Sse, mut message: Accumulator) -> StreamOutcome {
    sse.finish(|_, data| {
        message.event(data);
    });
    message.finish()
}

/// Any pieces give the same result, and the result can be written to a file.
pub(crate) fn check(bytes: &[u8], cuts: &[usize]) {
    let whole = outcome([bytes]);
    check_outcome(&whole);
    assert_eq!(outcome(bytes.chunks(1)), whole, "one byte at a time");
    for &cut in cuts {
        let (before, after) = bytes.split_at(cut.min(bytes.len()));
        assert_eq!(outcome([before, after]), whole, "cut at {cut}");
        check_outcome(&outcome([before]));
    }
}

pub(crate) fn check_outcome(outcome: &StreamOutcome) {
    if let StreamOutcome::Whole(reply) | StreamOutcome::Partial(reply, _) = outcome {
        check_reply(reply);
    }
}

fn check_reply(reply: &Reply) {
    let message = Object::parse(reply.message()).expect("a message is an object");
    let content = message.array("content").expect("a message has content");
    assert_eq!(content.len(), reply.blocks().len());
    for block in &content {
        let block = block.object().expect("a block is an object");
        let is_text = block.str("type").as_deref() == Some("text");
        assert!(!is_text || block.str("text").is_none_or(|text| !text.is_empty()));
    }
    let entries = make::assistant(&message).expect("a message makes entries");
    assert_eq!(entries.len(), content.len());
    let mut scanner = Scanner::new();
    for entry in entries {
        let line = entry.text();
        assert!(!line.contains(['\n', '\r']));
        if let Err(error) = scanner.scan(line.as_bytes()) {
            assert_eq!(error.kind, ScanErrorKind::Depth, "{error:?}");
        }
    }
}

/// An input is complete exactly when it is JSON; wherever it was cut, its closed form is JSON.
pub(crate) fn check_input(text: &str) {
    let mut grown = Input::new();
    let nested = text.matches(['{', '[']).count();
    for (at, character) in text.char_indices() {
        let end = at + character.len_utf8();
        grown.push(&text[at..end]);
        let here = &text[..end];
        assert_eq!(grown.text(), here);
        let is_json = serde_json::from_str::<&RawValue>(here).is_ok();
        assert!(
            grown.is_complete() == is_json || nested > 123,
            "complete: {here:?}"
        );
        let closed = grown.closed();
        assert!(Raw::parse(&closed).is_ok(), "{here:?} closed: {closed:?}");
        let expected = if is_json && nested <= 123 {
            here.trim_ascii()
        } else {
            &closed
        };
        assert_eq!(closed, expected);
        let mut again = Input::new();
        again.push(&closed);
        assert!(again.is_complete(), "{closed:?}");
    }
    let mut whole = Input::new();
    whole.push(text);
    assert_eq!(whole.closed(), grown.closed());
    assert_eq!(whole.is_complete(), grown.is_complete());
    assert_eq!(whole.is_broken(), grown.is_broken());
}
