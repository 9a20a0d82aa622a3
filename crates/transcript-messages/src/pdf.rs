//! Finds the reasons for which the API refuses a PDF: missing parts, a password, too many pages.

use std::collections::{HashMap, HashSet};

use memchr::memmem;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_PARSE_ZLIB_HEADER, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

/// Returns whether the start of the bytes is that of a PDF.
pub(super) fn is_pdf(bytes: &[u8]) -> bool {
    const MAX_START_OFFSET: usize = 1 << 10;
    memmem::find(&bytes[..bytes.len().min(MAX_START_OFFSET)], b"%PDF-").is_some()
}

/// Returns whether a PDF has objects and, at its end, says where their table is. The table may be a stream, which is not read.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    let table = memmem::rfind(bytes, b"startxref");
    let has_end = table.is_some_and(|at| memmem::find(&bytes[at..], b"%%EOF").is_some());
    has_end && memmem::find(bytes, b"obj").is_some()
}

/// Returns whether a PDF is encrypted. Its table says so, which is never compressed.
pub(super) fn is_encrypted(bytes: &[u8]) -> bool {
    const NAME: &[u8] = b"/Encrypt";
    memmem::find_iter(bytes, NAME).any(|at| is_reference(&bytes[at + NAME.len()..]))
}

/// Returns whether the value of a name is an object, or a reference to one: other uses of the name are texts.
fn is_reference(rest: &[u8]) -> bool {
    let value = rest.trim_ascii_start();
    value.starts_with(b"<<")
        || (value.len() < rest.len() && value.first().is_some_and(u8::is_ascii_digit))
}

/// Counts the pages of a PDF: as the root of its tree of pages says or, if there is none, the objects that are pages.
///
/// Objects in compressed streams count, as far as these can be decompressed within limits.
pub(super) fn pages(bytes: &[u8]) -> usize {
    let mut objects = PageObjects::default();
    let mut inflater = Inflater::default();
    let starts: Vec<usize> = memmem::find_iter(bytes, b" obj").collect();
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    // Compressed bytes may look like the start of an object.
    let mut end_of_stream = 0;
    for (start, end) in starts.iter().copied().zip(ends) {
        if start < end_of_stream {
            continue;
        }
        let object = &bytes[start..end];
        let text = &object[..memmem::find(object, STREAM_KEYWORD).unwrap_or(object.len())];
        let name = number_before(&bytes[..start]).map_or(Name::At(start), Name::Number);
        if !has_type(text, b"/ObjStm") {
            objects.add(name, text);
        } else if value(text, b"/Filter").is_none() {
            objects.add_stream(text, data_of(&object[text.len()..]));
        } else if value(text, b"/Filter").is_some_and(is_flate) {
            let data = data_of(&bytes[start + text.len()..]);
            if let Some((inflated, len)) = inflater.inflate(data) {
                objects.add_stream(text, inflated);
                end_of_stream = bytes.len() - data.len() + len;
            }
        }
    }
    objects.pages()
}

/// The keyword before the stream of an object.
const STREAM_KEYWORD: &[u8] = b"stream";

/// The name of an object. One that an update of the file replaces has the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Name {
    Number(u32),
    /// Its offset, if it has no number.
    At(usize),
}

/// The objects that say something about pages. Later ones replace those of the same name.
#[derive(Default)]
struct PageObjects {
    pages: HashSet<Name>,
    /// The number of pages below each node of the tree, if it says that itself.
    nodes: HashMap<Name, Option<u32>>,
    root: Option<Name>,
}

impl PageObjects {
    fn add(&mut self, name: Name, text: &[u8]) {
        if has_type(text, b"/Page") {
            self.pages.insert(name);
        }
        if has_type(text, b"/Pages") {
            let count = value(text, b"/Count").filter(|count| !is_other_object(count));
            self.nodes.insert(name, count.and_then(number));
        }
        if has_type(text, b"/Catalog") {
            let root = value(text, b"/Pages").and_then(number);
            self.root = root.map(Name::Number);
        }
    }

    /// Adds the objects of a stream: pairs of a number and a place come first, then the objects.
    fn add_stream(&mut self, dictionary: &[u8], data: &[u8]) {
        let number_of = |key| value(dictionary, key).and_then(number);
        let (Some(count), Some(first)) = (number_of(b"/N"), number_of(b"/First")) else {
            return;
        };
        let Some((head, objects)) = data.split_at_checked(first as usize) else {
            return;
        };
        let numbers = head.split(u8::is_ascii_whitespace);
        let numbers = numbers.filter_map(number);
        let numbers: Vec<u32> = numbers.take((count as usize).saturating_mul(2)).collect();
        let mut pairs = numbers.chunks_exact(2).peekable();
        let mut reached = 0;
        while let Some(pair) = pairs.next() {
            let start = pair[1] as usize;
            let end = pairs.peek().map_or(objects.len(), |next| next[1] as usize);
            // They are in order, so that no byte is read twice.
            if start >= reached
                && let Some(text) = objects.get(start..end)
            {
                self.add(Name::Number(pair[0]), text);
                reached = end;
            }
        }
    }

    fn pages(&self) -> usize {
        let of_root = self.root.and_then(|root| *self.nodes.get(&root)?);
        of_root.map_or(self.pages.len(), |count| count as usize)
    }
}

/// Returns whether a dictionary, or one in it, has this type.
fn has_type(text: &[u8], name: &[u8]) -> bool {
    let types = memmem::find_iter(text, b"/Type");
    types.into_iter().any(|at| {
        let value = text[at + 5..].trim_ascii_start();
        value.strip_prefix(name).is_some_and(is_end_of_name)
    })
}

/// Returns whether a filter, or the first of a list, is the one that is read here.
fn is_flate(filter: &[u8]) -> bool {
    let first = filter.strip_prefix(b"[").unwrap_or(filter);
    first.trim_ascii_start().starts_with(b"/FlateDecode")
}

/// Returns the bytes behind the word that starts a stream.
fn data_of(stream: &[u8]) -> &[u8] {
    let data = stream.strip_prefix(STREAM_KEYWORD).unwrap_or(stream);
    let data = data.strip_prefix(b"\r").unwrap_or(data);
    data.strip_prefix(b"\n").unwrap_or(data)
}

/// Returns whether a value is a reference to an object, such as `12 0 R`.
fn is_other_object(value: &[u8]) -> bool {
    let mut words = value.split(u8::is_ascii_whitespace);
    let is_number =
        |word: Option<&[u8]>| word.is_some_and(|word| word.iter().all(u8::is_ascii_digit));
    is_number(words.next())
        && is_number(words.next())
        && words.next().is_some_and(|word| word.starts_with(b"R"))
}

/// Returns the bytes after a key in a dictionary.
fn value<'t>(text: &'t [u8], key: &[u8]) -> Option<&'t [u8]> {
    let mut places = memmem::find_iter(text, key).map(|at| &text[at + key.len()..]);
    let rest = places.find(|rest| is_end_of_name(rest))?;
    Some(rest.trim_ascii_start())
}

fn is_end_of_name(rest: &[u8]) -> bool {
    !rest.first().is_some_and(u8::is_ascii_alphanumeric)
}

/// Returns the number that a text starts with.
fn number(text: &[u8]) -> Option<u32> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let digits = &text[..digits.count()];
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Returns the number of the object of which ` obj` follows: `12 0` is before it.
fn number_before(bytes: &[u8]) -> Option<u32> {
    const MAX: usize = 32;
    let near = &bytes[bytes.len().saturating_sub(MAX)..];
    let mut words = near.rsplit(|byte| !byte.is_ascii_digit());
    let (_generation, number_text) = (words.next()?, words.next()?);
    number(number_text)
}

/// Decompresses streams within limits, so that no file takes much memory or time.
#[derive(Default)]
struct Inflater {
    state: Box<DecompressorOxide>,
    buffer: Vec<u8>,
    /// The bytes that were read and written. When they are too many no other stream is decompressed.
    work: usize,
}

impl Inflater {
    const MAX_STREAM: usize = 8 << 20;
    const MAX_WORK: usize = 64 << 20;

    /// Returns the content of the stream at the start of the bytes, and its length; `None` if it is damaged or beyond the limits.
    fn inflate(&mut self, data: &[u8]) -> Option<(&[u8], usize)> {
        let data = &data[..data.len().min(Self::MAX_WORK.checked_sub(self.work)?)];
        self.buffer.resize(Self::MAX_STREAM, 0);
        self.state.init();
        let flags = TINFL_FLAG_PARSE_ZLIB_HEADER | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        let (status, read, written) = decompress(&mut self.state, data, &mut self.buffer, 0, flags);
        self.work += read + written;
        (status == TINFLStatus::Done).then(|| (&self.buffer[..written], read))
    }
}

#[cfg(test)]
mod tests {
    use miniz_oxide::deflate::compress_to_vec_zlib;

    use super::*;

    /// A stream of these objects, as an object.
    fn stream(number: usize, objects: &[(usize, String)], is_compressed: bool) -> Vec<u8> {
        let (mut head, mut texts) = (String::new(), String::new());
        for (number, text) in objects {
            head += &format!("{number} {} ", texts.len());
            texts += &format!("{text} ");
        }
        let text = format!("{head}{texts}").into_bytes();
        let (filter, data) = if is_compressed {
            ("/Filter [/FlateDecode]", compress_to_vec_zlib(&text, 6))
        } else {
            ("", text)
        };
        let dictionary = format!(
            "{number} 0 obj\n<</Type/ObjStm/N {}/First {}{filter}/Length {}>>stream\r\n",
            objects.len(),
            head.len(),
            data.len()
        );
        [dictionary.as_bytes(), &data, b"\nendstream endobj\n"].concat()
    }

    /// The pages from `first` on.
    fn page_objects(first: usize, count: usize) -> Vec<(usize, String)> {
        let page = |number| (number, "<</Parent 2 0 R/Type/Page>>".to_owned());
        (first..first + count).map(page).collect()
    }

    fn tree(count: &str) -> [(usize, String); 2] {
        [
            (
                1,
                "<</Type /Catalog /PageMode /UseNone /Pages 2 0 R>>".to_owned(),
            ),
            (2, format!("<</Type /Pages /Kids [9 0 R] /Count {count}>>")),
        ]
    }

    #[test]
    fn pages_in_compressed_objects_are_counted() {
        for count in [0, 1, 100, 101, 5_000] {
            for is_compressed in [false, true] {
                let objects = page_objects(10, count);
                let parts = objects.chunks(60).enumerate();
                let parts = parts.map(|(at, part)| stream(10_000 + at, part, is_compressed));
                let file = parts.collect::<Vec<_>>().concat();
                assert_eq!(pages(&file), count, "{is_compressed}");
                // The same ones in an update, and one that is not in a stream.
                let update = stream(20_000, &page_objects(10, count), true);
                let one = b"9 0 obj <</Type /Page /Parent 2 0 R>> endobj".to_vec();
                assert_eq!(pages(&[file, update, one].concat()), count + 1);
            }
        }
    }

    #[test]
    fn the_root_of_the_tree_of_pages_says_how_many_there_are() {
        let objects = page_objects(10, 60);
        for (count, expected) in [("101", 101), ("7 0 R", 60), ("", 60)] {
            let with_tree = [&tree(count)[..], &objects].concat();
            assert_eq!(pages(&stream(900, &with_tree, true)), expected, "{count}");
        }
        // An update removed pages, whose objects are still there.
        let before = stream(900, &[&tree("60")[..], &objects].concat(), true);
        let after = stream(901, &tree("2")[1..], true);
        assert_eq!(pages(&[before, after].concat()), 2);
    }

    #[test]
    fn streams_that_are_damaged_or_too_long_are_not_counted() {
        let sound = stream(900, &page_objects(10, 60), true);
        let mut damaged = sound.clone();
        let middle = damaged.len() / 2;
        damaged[middle..middle + 20].fill(0xff);
        assert_eq!(pages(&damaged), 0);
        let other = String::from_utf8_lossy(&sound).replace("/FlateDecode", "/LZWDecode");
        assert_eq!(pages(other.as_bytes()), 0);
        assert_eq!(pages(&sound[..sound.len() / 2]), 0);
        // Its objects are in the wrong order, or beyond its end.
        let odd = b"9 0 obj <</Type/ObjStm/N 3/First 16>>stream\n3 90 4 20 5 900 <</Type/Page>><</Type/Page>>";
        assert!(pages(odd) <= 1);

        let bomb = vec![(9, " ".repeat(Inflater::MAX_STREAM))];
        let bomb = stream(901, &bomb, true);
        assert_eq!(pages(&[bomb, sound].concat()), 60);
        let mut inflater = Inflater::default();
        let most = compress_to_vec_zlib(&vec![0; Inflater::MAX_STREAM], 6);
        let taken = (0..100).take_while(|_| inflater.inflate(&most).is_some());
        assert_eq!(taken.count(), Inflater::MAX_WORK / Inflater::MAX_STREAM);
    }

    #[test]
    fn compressed_bytes_may_look_like_an_object() {
        // Stored, not compressed, so that the text is in the file.
        let text = b"10 0 11 27 <</Type/Page/X(1 0 obj)>>   <</Type/Page>>";
        let data = compress_to_vec_zlib(text, 0);
        let head = b"7 0 obj <</Type/ObjStm/N 2/First 11/Filter/FlateDecode>>stream\n";
        assert_eq!(pages(&[head.as_slice(), &data].concat()), 2);
    }
}
