//! Searches files for strings that look like secrets.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::hash::{Hash, Hasher};
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;

use transcript_format::finding::Code;
use transcript_reader::{Error, Index, Source};
use transcript_redact::{Content, Located, Redactor};
use transcript_storage::ReadDisk;

use crate::located_finding::LocatedFinding;
use crate::options::VerifyOptions;

/// The maximum number of places that are reported.
const MAX_FOUND: usize = 1_000;

/// Returns a finding for each secret of a file: at its first place, with the path of the value there
/// and the number of places.
pub(crate) fn findings(
    index: &Index,
    source: &Source,
    places: Vec<Located>,
) -> Result<Vec<LocatedFinding>, Error> {
    let mut entries = index.entries().peekable();
    let mut found: Vec<(LocatedFinding, u32)> = Vec::new();
    let mut known: HashMap<(&str, u64), usize> = HashMap::new();
    let mut line: Option<(u64, JsonPath)> = None;
    for place in places {
        let offset = place.offset;
        // A hash and not the value: no copy of a secret stays in memory.
        match known.entry((place.kind, value_hash(source, &place)?)) {
            Entry::Occupied(at) => found[*at.get()].1 += 1,
            Entry::Vacant(free) => {
                while entries
                    .next_if(|entry| entry.offset() + entry.byte_len() <= offset)
                    .is_some()
                {}
                let here = entries.peek().filter(|entry| entry.offset() <= offset);
                let mut detail = Cow::Borrowed(place.kind);
                if let Some(here) = here {
                    let start = here.offset();
                    // Lines of secrets often have many, so a line is read once for all of its secrets.
                    if line.as_ref().is_none_or(|(at, _)| *at != start) {
                        let mut bytes = vec![0; here.byte_len() as usize];
                        let read = source.read_at(start, &mut bytes)?;
                        bytes.truncate(read);
                        line = Some((start, JsonPath::new(bytes)));
                    }
                    let path = line.as_mut();
                    let path = path.and_then(|(at, path)| path.of((offset - *at) as usize));
                    if let Some(path) = path {
                        detail = format!("{detail} in {path}").into();
                    }
                }
                free.insert(found.len());
                let finding = LocatedFinding {
                    line: here.and_then(|entry| entry.known_line()),
                    offset,
                    len: place.len,
                    ..LocatedFinding::of_file(Code::Secret, detail)
                };
                found.push((finding, 1));
            }
        }
    }
    let counted = found.into_iter().map(|(mut finding, count)| {
        if count > 1 {
            finding.detail = Cow::Owned(format!("{}, {count} times", finding.detail));
        }
        finding
    });
    Ok(counted.collect())
}

/// Finds the paths of strings in a JSON text, such as `message.content[2].input.command`.
struct JsonPath {
    json: Vec<u8>,
    /// The offset up to which `json` was read.
    at: usize,
    /// The objects and lists around `at`.
    around: Vec<Container>,
}

enum Container {
    /// An object, with the place of the key whose value comes next.
    Object(Option<Range<usize>>),
    /// A list, with the number of the element.
    List(usize),
}

impl JsonPath {
    fn new(json: Vec<u8>) -> Self {
        Self {
            json,
            at: 0,
            around: Vec::new(),
        }
    }

    /// Returns the path of the string that contains the byte `at`; `None` if it is in no string.
    /// Each call has to ask for a later string, or for the same one.
    fn of(&mut self, at: usize) -> Option<String> {
        while let Some(byte) = self.json.get(self.at) {
            let start = self.at;
            if start > at {
                return None;
            }
            self.at += 1;
            match (byte, self.around.last_mut()) {
                (b'{', _) => self.around.push(Container::Object(None)),
                (b'[', _) => self.around.push(Container::List(0)),
                (b'}' | b']', _) => _ = self.around.pop(),
                // The next string in the object is a key.
                (b',', Some(Container::Object(key))) => *key = None,
                (b',', Some(Container::List(number))) => *number += 1,
                (b'"', around) => {
                    let end = string_end(&self.json, start + 1)?;
                    // Not past the string: the next secret can be in the same one.
                    if at < end {
                        self.at = start;
                        return Some(self.text());
                    }
                    self.at = end + 1;
                    if let Some(Container::Object(key @ None)) = around {
                        *key = Some(start + 1..end);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Returns the path of the string at which reading stopped. Keys that are not plain names could
    /// be content, and are not shown.
    fn text(&self) -> String {
        let mut text = String::new();
        for around in &self.around {
            match around {
                Container::List(number) => text.push_str(&format!("[{number}]")),
                Container::Object(key) => {
                    let key = key.clone().map_or(&b"(key)"[..], |key| &self.json[key]);
                    let is_part =
                        |byte: &u8| byte.is_ascii_alphanumeric() || b"_-()".contains(byte);
                    let is_name = (1..=40).contains(&key.len()) && key.iter().all(is_part);
                    let key = std::str::from_utf8(key).ok();
                    let key = key
                        .filter(|key| is_name && Redactor::new().find(key.as_bytes()).is_empty());
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(key.unwrap_or("(other)"));
                }
            }
        }
        text
    }
}

/// Returns the place of the quote that ends a string.
fn string_end(json: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', json.get(at..)?)?;
        if json[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// Searches the whole file, with several threads if it is large.
pub(crate) fn search(source: &Source, options: &VerifyOptions) -> Result<Vec<Located>, Error> {
    let threads = options.is_single.then_some(NonZeroUsize::MIN);
    let read =
        |offset: u64, buffer: &mut [u8]| source.read_at(offset, buffer).map_err(io::Error::other);
    let counter = options.counter.as_deref();
    let scan = Redactor::new().scan(&read, source.len(), Content::Lines, threads, counter);
    let mut found = scan.map_err(|error| match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => Error::io(source.path(), None, error),
    })?;
    // A file of a million secrets would fill the report.
    found.secrets.truncate(MAX_FOUND);
    Ok(found.secrets)
}

/// Returns a finding for each kind of secret in each result that is stored in a file of its own, beside the session at
/// `path`: where its first one is, and the number of places.
pub(crate) fn in_stored_results(
    disk: &dyn ReadDisk,
    path: &Path,
) -> Result<Vec<LocatedFinding>, Error> {
    let redactor = Redactor::new();
    let mut found = Vec::new();
    for path in disk.layout().stored_results(disk, path) {
        let failed = |error| Error::io(&path, None, error);
        let metadata = disk.link_metadata(&path).map_err(failed)?;
        let file = disk.open_to_read(&path).map_err(failed)?;
        let read = |offset: u64, buffer: &mut [u8]| file.fill(offset, buffer);
        let scan = redactor
            .scan(
                &read,
                metadata.len,
                Content::of(&path),
                Some(NonZeroUsize::MIN),
                None,
            )
            .map_err(failed)?;
        let mut kinds: Vec<(&Located, usize)> = Vec::new();
        for secret in &scan.secrets {
            match kinds
                .iter_mut()
                .find(|(first, _)| first.kind == secret.kind)
            {
                Some((_, count)) => *count += 1,
                None => kinds.push((secret, 1)),
            }
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        found.extend(kinds.into_iter().map(|(first, count)| {
            let times = match count {
                1 => String::new(),
                count => format!(", {count} times"),
            };
            let Located { kind, line, .. } = first;
            let folder = disk.layout().results;
            let detail = format!("{kind} in {folder}/{name}, line {line}{times}");
            LocatedFinding::of_file(Code::Secret, detail)
        }));
    }
    found.truncate(MAX_FOUND);
    Ok(found)
}

/// Returns a hash of a secret, or of its start: the same value is reported once.
fn value_hash(source: &Source, secret: &Located) -> Result<u64, Error> {
    const MAX_COMPARED_LEN: u64 = 4 << 10;
    let mut bytes = vec![0; secret.len.min(MAX_COMPARED_LEN) as usize];
    let read = source.read_at(secret.offset, &mut bytes)?;
    let mut hasher = DefaultHasher::new();
    (&bytes[..read], secret.len).hash(&mut hasher);
    Ok(hasher.finish())
}
