//! One block of a message that is being streamed.

use transcript_format::json::{Json, ObjectBuf};
use transcript_format::object::{JsonKind, Object, Raw, unescape, unit_at};

use super::input::Input;

/// The completeness of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BlockState {
    /// Complete.
    Whole,
    /// Incomplete: the stream ended within it.
    Cut,
    /// A call whose input was cut and then closed. It is incomplete, so the call must not run.
    Repaired,
    /// A call whose input is not JSON; the input is kept as a string.
    NotJson,
}

#[derive(Clone, Debug)]
pub(super) struct Block {
    start: ObjectBuf,
    kind: String,
    text: Option<Text>,
    thinking: Option<Text>,
    signature: Option<Json>,
    citations: Vec<Json>,
    input: Option<(Text, Input)>,
    pub(super) stopped: bool,
    /// An event was lost while it was open.
    pub(super) is_torn: bool,
}

/// The end of a block, as far as the message shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockEnd {
    /// More deltas may arrive unless it stopped.
    Open,
    /// The message is complete, and so is the block.
    OfMessage,
    /// The model was stopped in it, or right after it.
    Early,
}

impl Block {
    pub(super) fn new(start: &Object<'_>) -> Self {
        Self {
            start: start.into(),
            kind: start.str("type").unwrap_or_default().into_owned(),
            text: None,
            thinking: None,
            signature: None,
            citations: Vec::new(),
            input: None,
            stopped: false,
            is_torn: false,
        }
    }

    /// Applies a delta; returns false for unknown ones.
    pub(super) fn apply_delta(&mut self, delta: &Object<'_>) -> bool {
        let string = |key: &str| delta.get(key).and_then(body);
        match delta.str("type").as_deref() {
            Some("text_delta") => grow(&mut self.text, &self.start, "text", string("text")),
            Some("thinking_delta") => {
                let piece = string("thinking");
                grow(&mut self.thinking, &self.start, "thinking", piece)
            }
            // Signatures arrive complete; as in the official libraries, the last one counts.
            Some("signature_delta") => match delta.get("signature") {
                Some(raw) if raw.kind() == JsonKind::String => {
                    self.signature = Some(raw.into());
                    true
                }
                _ => false,
            },
            Some("citations_delta") => {
                let citation = delta.get("citation").map(Json::from);
                let is_there = citation.is_some();
                self.citations.extend(citation);
                is_there
            }
            Some("input_json_delta") => match string("partial_json") {
                Some(piece) => {
                    let (text, input) = self.input.get_or_insert_default();
                    text.push(piece);
                    input.push(&std::mem::take(&mut text.text));
                    true
                }
                None => false,
            },
            _ => false,
        }
    }

    pub(super) fn input(&self) -> Option<&Input> {
        self.input.as_ref().map(|(_, input)| input)
    }

    /// Returns the current block and its state; `None` while it is still empty.
    pub(super) fn now(&self, end: BlockEnd) -> Option<(Json, BlockState)> {
        let is_over = end != BlockEnd::Open || self.stopped;
        let mut block = self.start.clone();
        let mut state = if is_over && !self.is_torn {
            BlockState::Whole
        } else {
            BlockState::Cut
        };
        for (key, text) in [("text", &self.text), ("thinking", &self.thinking)] {
            if let Some(text) = text {
                block.set(key, &*text.now(is_over));
            }
        }
        if let Some(signature) = &self.signature {
            block.set("signature", signature.clone());
        }
        if !self.citations.is_empty() {
            let before = block.get("citations").and_then(elements);
            let all = before.into_iter().flatten();
            block.set("citations", Json::array(all.chain(self.citations.clone())));
        }
        if self.kind.ends_with("tool_use") || self.input.is_some() {
            let (input, input_state) = self.input_now(is_over, end == BlockEnd::Early);
            block.set("input", input);
            state = match input_state {
                BlockState::Whole if self.is_torn => BlockState::Repaired,
                input_state => input_state,
            };
        }
        let has_text = |key| {
            block
                .get(key)
                .is_some_and(|value| !matches!(value.text(), "\"\"" | "null"))
        };
        match &*self.kind {
            "text" if !has_text("text") => None,
            "thinking" if !has_text("thinking") && !has_text("signature") => None,
            _ => Some((block.into(), state)),
        }
    }

    /// Returns the input and its state. `is_early`: whether a call without input may be one that was
    /// only begun.
    fn input_now(&self, is_over: bool, is_early: bool) -> (Json, BlockState) {
        // Some servers send a single empty piece for a call without arguments.
        let arrived = self.input().filter(|input| !input.text().is_empty());
        let Some(input) = arrived else {
            let input = self.start.get("input").filter(|input| !input.is_null());
            let input = input.cloned();
            let is_given = input.as_ref().is_some_and(|input| input.text() != "{}");
            let state = if is_over && (is_given || !is_early) {
                BlockState::Whole
            } else {
                BlockState::Repaired
            };
            return (input.unwrap_or_else(|| ObjectBuf::new().into()), state);
        };
        if let Some(value) = input.value() {
            return (value.into(), BlockState::Whole);
        }
        if input.is_broken() {
            return (input.text().into(), BlockState::NotJson);
        }
        let closed = input.closed();
        match Raw::parse(&closed) {
            Ok(value) => (value.into(), BlockState::Repaired),
            Err(_) => (input.text().into(), BlockState::NotJson),
        }
    }
}

fn grow(text: &mut Option<Text>, start: &ObjectBuf, key: &str, piece: Option<&str>) -> bool {
    let Some(piece) = piece else { return false };
    text.get_or_insert_with(|| {
        let mut text = Text::default();
        if let Some(Ok(before)) = start.get(key).map(|json| Raw::parse(json.text())) {
            text.push(body(before).unwrap_or_default());
        }
        text
    })
    .push(piece);
    true
}

/// Returns the text between the quotes of a string, with its escapes.
fn body(raw: Raw<'_>) -> Option<&str> {
    raw.text().strip_prefix('"')?.strip_suffix('"')
}

fn elements(array: &Json) -> Option<Vec<Json>> {
    let elements = Raw::parse(array.text()).ok()?.array()?;
    Some(elements.into_iter().map(Json::from).collect())
}

/// A text that arrives in pieces, each the content of a JSON string. A surrogate pair may be spread
/// over two pieces; an escape is never split.
#[derive(Clone, Debug, Default)]
struct Text {
    text: String,
    /// The escape of a high surrogate at the end of the last piece, which waits for its partner.
    high: String,
}

impl Text {
    fn push(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        let joined;
        let piece = if self.high.is_empty() {
            piece
        } else {
            joined = std::mem::take(&mut self.high) + piece;
            &joined
        };
        let (whole, high) = piece.split_at(piece.len() - high_at_end(piece));
        self.text.push_str(&unescape(whole));
        self.high.push_str(high);
    }

    fn now(&self, is_over: bool) -> std::borrow::Cow<'_, str> {
        if is_over && !self.high.is_empty() {
            return format!("{}{}", self.text, char::REPLACEMENT_CHARACTER).into();
        }
        self.text.as_str().into()
    }
}

/// Returns the length of the high surrogate escape at the end of `piece`; 0 if there is none.
fn high_at_end(piece: &str) -> usize {
    const LEN: usize = r"\ud800".len();
    let Some(at) = piece.len().checked_sub(LEN) else {
        return 0;
    };
    if !matches!(unit_at(piece, at), Some(0xD800..=0xDBFF)) {
        return 0;
    }
    // The backslash starts an escape unless it is escaped itself.
    let before = piece.as_bytes()[..at].iter().rev();
    match before.take_while(|byte| **byte == b'\\').count() % 2 {
        0 => LEN,
        _ => 0,
    }
}
