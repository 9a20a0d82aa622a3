//! Reads the parts of JSON values as slices of their text: the members of objects, the elements of
//! arrays, and all parts of the body of an entry that a request needs in one walk.
//!
//! Functions return `None` for what is not one JSON value of the wanted kind, or is larger or nested
//! deeper than the scan reads. They accept nothing that `serde_json` rejects.

use std::cell::RefCell;

use super::cursor::{Cursor, Scratch};
use crate::object::{MAX_PARTS, Object, ParseObjectError, Raw, Str, unescape};
use crate::work;

/// The body of an entry, its message, and the blocks of its content, all read in one walk.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Body<'a> {
    /// The entry.
    pub object: Object<'a>,
    /// Its `message`; `None` if that is not an object.
    pub message: Option<Object<'a>>,
    /// The elements of the `content` of the message, with the members of those that are objects;
    /// `None` if that is not an array.
    pub blocks: Option<Vec<(Raw<'a>, Option<Object<'a>>)>>,
    /// Its `toolUseResult`; `None` if that is not an object.
    pub tool_use_result: Option<Object<'a>>,
    /// Whether a string of the body may hold a surrogate escape without its partner, or `\u0000`.
    pub may_hold_odd_escapes: bool,
}

impl<'a> Body<'a> {
    /// Reads the body of an entry, which must be one JSON object.
    ///
    /// # Errors
    /// [`ParseObjectError`] when `text` is not JSON or another kind of value.
    pub fn parse(text: &'a str) -> Result<Self, ParseObjectError> {
        work::add(text.len());
        match Self::scan(text) {
            Some(body) => Ok(body),
            None => Self::parse_part_by_part(text),
        }
    }

    fn parse_part_by_part(text: &'a str) -> Result<Self, ParseObjectError> {
        let object = Object::parse(text)?;
        let member = |key: &str| object.get(key).and_then(Raw::object);
        let (message, tool_use_result) = (member("message"), member("toolUseResult"));
        let content = message.as_ref().and_then(|message| message.get("content"));
        let blocks = content.and_then(Raw::array).map(|blocks| {
            let blocks = blocks.into_iter();
            blocks.map(|block| (block, block.object())).collect()
        });
        Ok(Self {
            object,
            message,
            blocks,
            tool_use_result,
            may_hold_odd_escapes: true,
        })
    }

    fn scan(text: &'a str) -> Option<Self> {
        walk(text, |walk| {
            let (mut message, mut blocks, mut tool_use_result) = (None, None, None);
            // Of a repeated key the last value counts.
            let object = walk.object(0, |walk, key| match key {
                "message" => {
                    blocks = None;
                    message = walk.object_or_other(1, |walk, key| match key {
                        "content" => {
                            blocks = walk.blocks(2)?;
                            Some(())
                        }
                        _ => walk.skip(2),
                    })?;
                    Some(())
                }
                "toolUseResult" => {
                    tool_use_result = walk.object_or_other(1, |walk, _| walk.skip(2))?;
                    Some(())
                }
                _ => walk.skip(1),
            })?;
            let (surrogate, nul) = walk.cursor.odd_escapes();
            Some(Self {
                object,
                message,
                blocks,
                tool_use_result,
                may_hold_odd_escapes: surrogate || nul,
            })
        })
    }
}

/// Reads one value without the white space around it.
pub(crate) fn value(text: &str) -> Option<Raw<'_>> {
    walk(text, |walk| {
        let start = walk.cursor.pos();
        walk.skip(0)?;
        Some(walk.since(start))
    })
}

/// Reads an object.
pub(crate) fn object(text: &str) -> Option<Object<'_>> {
    walk(text, |walk| walk.object(0, |walk, _| walk.skip(1)))
}

/// Reads the elements of an array.
pub(crate) fn elements(text: &str) -> Option<Vec<Raw<'_>>> {
    walk(text, |walk| {
        walk.array(|walk| {
            let start = walk.cursor.pos();
            walk.skip(1)?;
            Some(walk.since(start))
        })
    })
}

/// Reads the one value that `text` is.
fn walk<'a, T>(text: &'a str, read: impl FnOnce(&mut Walk<'a, '_>) -> Option<T>) -> Option<T> {
    thread_local! {
        static SCRATCH: RefCell<Scratch> = RefCell::default();
    }
    // The cursor keeps offsets in 32 bits.
    u32::try_from(text.len()).ok()?;
    SCRATCH.with_borrow_mut(|scratch| {
        let cursor = Cursor::new(text.as_bytes(), scratch);
        let mut walk = Walk { text, cursor };
        walk.cursor.skip_space();
        let value = read(&mut walk)?;
        walk.cursor.skip_space();
        (walk.cursor.pos() == text.len()).then_some(value)
    })
}

struct Walk<'a, 's> {
    text: &'a str,
    cursor: Cursor<'a, 's>,
}

impl<'a> Walk<'a, '_> {
    /// Returns the text from `start` to here, which must be one value.
    fn since(&self, start: usize) -> Raw<'a> {
        Raw::checked(&self.text[start..self.cursor.pos()])
    }

    /// Skips a value that is inside of `depth` containers.
    fn skip(&mut self, depth: u32) -> Option<()> {
        self.cursor.skip_value(depth).ok()
    }

    /// Reads an object that is inside of `depth` containers; `Some(None)` for another value, which
    /// is skipped. `member` moves past the value of a member.
    fn object_or_other(
        &mut self,
        depth: u32,
        member: impl FnMut(&mut Self, &str) -> Option<()>,
    ) -> Option<Option<Object<'a>>> {
        if self.cursor.peek() == b'{' {
            return self.object(depth, member).map(Some);
        }
        self.skip(depth)?;
        Some(None)
    }

    fn object(
        &mut self,
        depth: u32,
        mut member: impl FnMut(&mut Self, &str) -> Option<()>,
    ) -> Option<Object<'a>> {
        debug_assert!(
            depth < 8,
            "the depth is that of a few levels known in advance"
        );
        let start = self.cursor.pos();
        let mut members: Vec<(Str<'a>, Raw<'a>)> =
            Vec::with_capacity(if depth == 0 { 16 } else { 8 });
        let mut more = self.cursor.open_object().ok()?;
        while more {
            if members.len() == MAX_PARTS {
                return None;
            }
            let name = self.cursor.name().ok()?;
            // The name is a slice of the text, so the distance of the pointers is its offset.
            let start = name.as_ptr() as usize - self.text.as_ptr() as usize;
            let key = unescape(self.text.get(start..start + name.len())?);
            let start = self.cursor.pos();
            member(self, &key)?;
            members.push((key, self.since(start)));
            more = self.cursor.more(b'}').ok()?;
        }
        Some(Object::checked(self.since(start), members))
    }

    fn array<T>(&mut self, mut element: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut elements = Vec::new();
        let mut more = self.cursor.open_array().ok()?;
        while more {
            if elements.len() == MAX_PARTS {
                return None;
            }
            self.cursor.skip_space();
            elements.push(element(self)?);
            more = self.cursor.more(b']').ok()?;
        }
        Some(elements)
    }

    /// Reads the blocks of a content that is inside of `depth` containers; `Some(None)` for a
    /// content of another form, which is skipped.
    #[expect(clippy::type_complexity, reason = "the type of one field")]
    fn blocks(&mut self, depth: u32) -> Option<Option<Vec<(Raw<'a>, Option<Object<'a>>)>>> {
        if self.cursor.peek() != b'[' {
            self.skip(depth)?;
            return Some(None);
        }
        let blocks = self.array(|walk| {
            let start = walk.cursor.pos();
            let object = walk.object_or_other(depth + 1, |walk, _| walk.skip(depth + 2))?;
            Some((walk.since(start), object))
        });
        blocks.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bodies that differ in one place each, whole ones and others.
    fn bodies() -> Vec<String> {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let values = [
            "null",
            "true",
            "01",
            "1e9",
            "-",
            "tru",
            "7x",
            r#""a\"b""#,
            r#""\ud83d""#,
            r#""\u0000""#,
            r#""\ud83d\ude42""#,
            r#""\x""#,
            "\"\n\"",
            "\"\u{7f}é\"",
            "{}",
            "[]",
            "[1 , {}]",
            r#"{"a":1,"a":{"b":[]}}"#,
            r#"{"content":"x"}"#,
            r#"{"content":7,"content":[]}"#,
            r#"{ "content" : [ {"type":"text"} , 7, "s" ,[ ] ] , "id":"m" }"#,
            r#"{"content":[{"a":1}],"content":"last"}"#,
            r#"{"cont\u0065nt":[{"a":"b"}]}"#,
            "[",
            "{",
            "\"",
            r#"{"a"}"#,
            r#"{"a":1,}"#,
            "[1,]",
            "[,1]",
        ];
        let mut values: Vec<String> = values.map(str::to_owned).into();
        values.extend([60, 124, 125, 126, 127, 128, 400].map(deep));
        let bodies = values.iter().flat_map(|value| {
            [
                value.clone(),
                format!(r#"{{"message":{value}}}"#),
                format!(r#" {{"toolUseResult":{value},"message":{{"content":[{value}]}}}}\t"#),
                format!(r#"{{"message":{{"content":[{{"x":{value}}},{value}]}}}}"#),
                format!(r#"{{"message":{{"content":[]}},"message":{value}}}"#),
                format!(r#"{{"message":{value}}} {value}"#),
            ]
        });
        bodies.collect()
    }

    fn texts(body: &Body<'_>) -> Vec<String> {
        let object = |object: &Object<'_>| {
            let members = object.members().iter();
            let members = members.map(|(key, value)| format!("{key}={}", value.text()));
            format!("{} {:?}", object.text(), members.collect::<Vec<_>>())
        };
        let blocks = body.blocks.iter().flatten();
        let blocks =
            blocks.map(|(raw, of)| format!("{} {:?}", raw.text(), of.as_ref().map(object)));
        let others = [&body.message, &body.tool_use_result];
        let others = others.map(|part| format!("{:?}", part.as_ref().map(object)));
        [object(&body.object), format!("{}", body.blocks.is_some())]
            .into_iter()
            .chain(others)
            .chain(blocks)
            .collect()
    }

    /// Reads a body with `serde_json` alone.
    fn slowly(text: &str) -> Option<Body<'_>> {
        fn object(raw: Raw<'_>) -> Option<Object<'_>> {
            Object::parse_slowly(raw.text()).ok()
        }
        let entry = Object::parse_slowly(text).ok()?;
        let message = entry.get("message").and_then(object);
        let content = message.as_ref().and_then(|message| message.get("content"));
        let blocks = content.and_then(Raw::array_slowly).map(|blocks| {
            let blocks = blocks.into_iter();
            blocks.map(|block| (block, object(block))).collect()
        });
        Some(Body {
            tool_use_result: entry.get("toolUseResult").and_then(object),
            object: entry,
            message,
            blocks,
            may_hold_odd_escapes: false,
        })
    }

    #[test]
    fn a_walk_reads_what_serde_json_reads() {
        let mut scanned = 0;
        for text in bodies() {
            let slow = slowly(&text);
            if let Some(body) = Body::scan(&text) {
                scanned += 1;
                assert_eq!(Some(texts(&body)), slow.as_ref().map(texts), "{text}");
                let is_odd = ["\\ud83d\"", "\\u0000"]
                    .iter()
                    .any(|odd| text.contains(odd));
                assert_eq!(body.may_hold_odd_escapes, is_odd, "{text}");
            }
            let value = serde_json::from_str::<&serde_json::value::RawValue>(&text);
            assert_eq!(Body::parse(&text).is_ok(), slow.is_some(), "{text}");
            if let Some(raw) = super::value(&text) {
                assert_eq!(
                    Some(raw.text()),
                    value.as_ref().ok().map(|raw| raw.get()),
                    "{text}"
                );
            } else {
                assert!(value.is_err() || text.contains(&"[".repeat(120)), "{text}");
            }
        }
        assert!(scanned > 60, "{scanned}");
    }

    #[test]
    fn lists_of_more_parts_than_are_read_are_left_to_the_caller() {
        let elements = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
        assert_eq!(
            super::elements(&elements(MAX_PARTS)).map(|all| all.len()),
            Some(MAX_PARTS)
        );
        assert!(super::elements(&elements(MAX_PARTS + 1)).is_none());
        let members = |count: usize| format!("{{{}\"a\":0}}", "\"a\":0,".repeat(count - 1));
        assert!(object(&members(MAX_PARTS)).is_some());
        assert!(object(&members(MAX_PARTS + 1)).is_none());
    }
}
