//! Bodies for requests that are only checked, not sent.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use transcript_format::kind::EntryKind;
use transcript_format::object::Object;
use transcript_messages::{MAX_REQUEST, abridged_media, may_be_media};
use transcript_reader::{Bodies, EntryNo, EntryRef, Error};
use transcript_resume::ConversationPath;
use transcript_resume::request::BodySource;

/// The minimum length of the start of a string that is kept, in bytes.
const MIN_KEPT_BYTES: usize = 96;
/// The maximum length of a string that is kept as it is, in bytes.
const MAX_WHOLE_BYTES: usize = 2 * MIN_KEPT_BYTES;

/// The bodies of a conversation; with long strings shortened if it is a large one, so that its
/// messages take little memory. What a provider objects to does not depend on the rest of a text.
pub(crate) struct AbridgedBodies<'s> {
    bodies: Bodies<'s>,
    /// From this entry on bodies are whole, as the end of a last answer matters; `None` for all.
    whole_from: Option<EntryNo>,
    abridged: String,
    /// The bytes that were omitted from the message or the attachment of an entry.
    cut: HashMap<EntryNo, OmittedBytes>,
}

/// The number of omitted bytes.
#[derive(Clone, Copy, Debug, Default)]
struct OmittedBytes {
    texts: u64,
    /// Images and documents.
    media: u64,
}

impl<'s> AbridgedBodies<'s> {
    pub(crate) fn new(bodies: Bodies<'s>, whole_from: Option<EntryNo>) -> Self {
        Self {
            bodies,
            whole_from,
            abridged: String::new(),
            cut: HashMap::new(),
        }
    }

    /// Estimates the tokens of the omitted bytes.
    pub(crate) fn cut_tokens(&self) -> u64 {
        const BYTES_PER_TOKEN: u64 = 4;
        self.cut.values().map(|cut| cut.texts).sum::<u64>() / BYTES_PER_TOKEN
    }

    /// Returns the entries whose images and documents give way, the oldest first, for the request to be as small as the API
    /// accepts. `sent` is the number of bytes of its messages, in which the media of the entries `omitted` are not.
    pub(crate) fn beyond_limit(
        &self,
        path: &ConversationPath,
        sent: u64,
        omitted: &HashSet<EntryNo>,
    ) -> Vec<EntryNo> {
        let texts: u64 = self.cut.values().map(|cut| cut.texts).sum();
        let entries = path.entries.iter().map(|entry| entry.entry_no());
        let entries = entries.filter(|entry| !omitted.contains(entry));
        let media = entries.filter_map(|entry| Some((entry, self.cut.get(&entry)?.media)));
        let media: Vec<_> = media.filter(|(_, media)| *media > 0).collect();
        let mut size = sent + texts + media.iter().map(|(_, media)| media).sum::<u64>();
        let media = media.into_iter();
        let beyond = media.take_while(|(_, media)| {
            let is_beyond = size > MAX_REQUEST as u64;
            size = size.saturating_sub(*media);
            is_beyond
        });
        beyond.map(|(entry, _)| entry).collect()
    }
}

impl BodySource for AbridgedBodies<'_> {
    type Error = Error;

    fn body(&mut self, entry: &EntryRef<'_>) -> Result<&str, Error> {
        let text = self.bodies.get(entry)?.text;
        if self.whole_from.is_none_or(|from| entry.number() >= from)
            || text.len() <= MAX_WHOLE_BYTES
        {
            return Ok(text);
        }
        self.abridged.clear();
        let is_attachment = entry.kind() == EntryKind::Attachment;
        let sent = member_in(
            text,
            if is_attachment {
                "attachment"
            } else {
                "message"
            },
        );
        abridge(&text[..sent.start], &mut self.abridged);
        let mut cut = abridge(&text[sent.clone()], &mut self.abridged);
        abridge(&text[sent.end..], &mut self.abridged);
        if is_attachment {
            // Of many only a part of the texts is sent, or nothing.
            cut.texts = 0;
        }
        self.cut.insert(entry.number(), cut);
        Ok(&self.abridged)
    }
}

/// Returns where a member of an entry is in its text; an empty range if it has none.
fn member_in(text: &str, key: &str) -> Range<usize> {
    let object = Object::parse(text).ok();
    let member = object.as_ref().and_then(|object| object.get(key));
    member.map_or(0..0, |member| {
        let start = member.text().as_ptr() as usize - text.as_ptr() as usize;
        start..start + member.text().len()
    })
}

/// Copies JSON with the end of long strings cut off.
fn abridge(json: &str, out: &mut String) -> OmittedBytes {
    let mut removed = OmittedBytes::default();
    let mut rest = json;
    while let Some(open) = memchr::memchr(b'"', rest.as_bytes()) {
        out.push_str(&rest[..=open]);
        rest = &rest[open + 1..];
        let end = end_of_string(rest);
        let string = &rest[..end];
        // An image that is cut would count as a damaged one. Some writers escape its slashes.
        let is_media = may_be_media(string) || string.starts_with("\\/9j");
        if end > MAX_WHOLE_BYTES && is_media {
            let plain = string.replace("\\/", "/");
            let short = abridged_media(&plain);
            let short = short.as_deref().unwrap_or(string);
            removed.media += (string.len() - short.len()) as u64;
            out.push_str(short);
        } else if end > MAX_WHOLE_BYTES {
            let kept = cut(string);
            out.push_str(&string[..kept]);
            removed.texts += (string.len() - kept) as u64;
        } else {
            out.push_str(string);
        }
        rest = &rest[end..];
        if let Some(after) = rest.strip_prefix('"') {
            out.push('"');
            rest = after;
        }
    }
    out.push_str(rest);
    removed
}

/// Returns the length of a string up to its closing quote, or to the end of the text.
fn end_of_string(text: &str) -> usize {
    let bytes = text.as_bytes();
    // Escapes are more frequent than quotes.
    for quote in memchr::memchr_iter(b'"', bytes) {
        let before = bytes[..quote].iter().rev();
        let backslashes = before.take_while(|byte| **byte == b'\\').count();
        if backslashes % 2 == 0 {
            return quote;
        }
    }
    bytes.len()
}

/// Returns where to cut a long string: not within a character, not near an escape, and not before it
/// says anything.
fn cut(string: &str) -> usize {
    const MAX_ESCAPE_LEN: usize = "\\ud83d\\ude00".len();
    let mut at = MIN_KEPT_BYTES;
    loop {
        while !string.is_char_boundary(at) {
            at -= 1;
        }
        let near = at.saturating_sub(MAX_ESCAPE_LEN);
        match memchr::memchr(b'\\', &string.as_bytes()[near..at]) {
            Some(found) => at = near + found,
            None if string[..at].trim().is_empty() => return string.len(),
            None => return at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abridged(json: &str) -> String {
        let mut out = String::new();
        abridge(json, &mut out);
        out
    }

    #[test]
    fn long_strings_are_cut_between_characters_and_everything_else_is_kept() {
        let short = r#"{"a\"b":["x\\",1.50,{"":null}]}"#;
        assert_eq!(abridged(short), short);
        for filler in [
            "a",
            "é",
            "漢",
            r"\n",
            r"\\",
            r#"\""#,
            r"\u00e9",
            r"\ud83d\ude00",
        ] {
            for before in 0..14 {
                let long = format!("{}{}", "-".repeat(before), filler.repeat(400));
                let json = format!(r#"{{"k":"{long}","n":[1,"{long}"]}}"#);
                let cut: serde_json::Value = serde_json::from_str(&abridged(&json)).unwrap();
                let long: serde_json::Value = serde_json::from_str(&format!("\"{long}\"")).unwrap();
                let cut = cut["n"][1].as_str().unwrap();
                assert!(long.as_str().unwrap().starts_with(cut), "{cut}");
                assert!(
                    !cut.is_empty() && (cut.len() < MAX_WHOLE_BYTES || before == 0),
                    "{cut}"
                );
            }
        }
    }

    #[test]
    fn an_image_that_was_shortened_has_the_faults_of_the_whole_one() {
        use base64::Engine;
        use base64::engine::general_purpose::STANDARD;
        use transcript_format::object::Raw;
        use transcript_messages::{Block, Message, Role, Rule, lint};

        let chunk = |kind: &[u8], data: &[u8]| {
            let chunk = [kind, data].concat();
            let (len, sum) = (data.len() as u32, crc32fast::hash(&chunk));
            [&len.to_be_bytes()[..], &chunk, &sum.to_be_bytes()].concat()
        };
        let png = |width: u32, end: &[u8]| {
            let size = [width.to_be_bytes(), 4_u32.to_be_bytes()].concat();
            let header = chunk(b"IHDR", &[&size[..], b"\x08\x06\0\0\0"].concat());
            let start = b"\x89PNG\r\n\x1a\n".as_slice();
            STANDARD.encode([start, &header, &chunk(b"IDAT", &[7; 0x200]), end].concat())
        };
        let iend = chunk(b"IEND", b"");
        for (data, faults) in [
            (png(300, &iend), vec![]),
            (png(8_001, &iend), vec![Rule::MediaTooLarge]),
            (png(300, b""), vec![Rule::UnusableMedia]),
        ] {
            let json = format!(
                r#"{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}"#
            );
            let short = abridged(&json);
            assert_eq!(short.len() < json.len(), faults.is_empty());
            for json in [json, short] {
                let block = Block::read(Raw::parse(&json).unwrap());
                let problems = lint(&[Message::new(Role::User, vec![block])]).problems;
                let rules: Vec<Rule> = problems.iter().map(|problem| problem.rule).collect();
                assert_eq!(rules, faults, "{json}");
            }
        }
    }
}
