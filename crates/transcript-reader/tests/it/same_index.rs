//! The index does not depend on how it was built: by one thread or by several.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use transcript_format::finding::Code;
use transcript_reader::{Index, LoadOptions, Source};
use transcript_testkit::{damage, generate};

use crate::{Scratch, assert_same, index, load, reported};

/// As in `build.rs`: the buffer size, and the minimum size of a file with several pieces.
const BUFFER: usize = (512 << 10) + (8 << 10);
const MIN_LEN: usize = 4 << 20;

/// Loads with one thread, which reads the file as one piece, and compares with 2, 3 and 8 threads,
/// and with pieces of other sizes.
#[track_caller]
pub(crate) fn check_all_ways(source: &Source, name: &str) -> Index {
    check_all_ways_with(source, &LoadOptions::new(), name)
}

#[track_caller]
fn check_all_ways_with(source: &Source, options: &LoadOptions, name: &str) -> Index {
    let one = load(source, &options.clone().threads(1));
    for threads in [2, 3, 8] {
        let other = load(source, &options.clone().threads(threads));
        assert_same(&one, &other, &format!("{name}: {threads} threads"));
    }
    let len = source.len();
    // A large file has enough borders without a piece for every few bytes.
    let least = len / 2_000;
    let parts = [2, 3, 7].map(|parts| len.div_ceil(parts));
    let pieces = [1, 7, 64, 1_001, 65_536].into_iter().chain(parts);
    for (piece, threads) in pieces.zip([2, 3, 8].into_iter().cycle()) {
        if piece >= least {
            let other = load(source, &options.clone().threads(threads).piece(piece));
            let name = format!("{name}: {threads} threads, pieces of {piece} bytes");
            assert_same(&one, &other, &name);
        }
    }
    one
}

#[track_caller]
fn check_bytes(bytes: &[u8], name: &str) -> Index {
    check_all_ways(&Scratch::new(bytes).open(), name)
}

pub(crate) fn transcripts_under(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry of a folder").path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            transcripts_under(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            found.push(path);
        }
    }
}

/// Returns an entry of exactly `len` bytes, including the newline.
fn line_of(len: usize) -> Vec<u8> {
    let (head, tail) = ("{\"type\":\"tag\",\"tag\":\"", "\"}\n");
    let fill = len.checked_sub(head.len() + tail.len());
    let fill = fill.expect("room for the names");
    [head.as_bytes(), &vec![b'x'; fill], tail.as_bytes()].concat()
}

const SHORTEST_LINE: usize = 32;

// -------------------------------------------------------------------------------------------------
// Pieces of threads
// -------------------------------------------------------------------------------------------------

/// Bytes to put across the border between two pieces.
struct Plug {
    bytes: Vec<u8>,
    /// The index of the first byte in the second piece.
    at: usize,
}

impl Plug {
    fn new(before: &[u8], after: &[u8]) -> Self {
        Self {
            at: before.len(),
            bytes: [before, after].concat(),
        }
    }
}

/// Returns a difficult case for a border, by the number of the border. `span` is a seventh of the
/// size.
fn plug(number: usize, span: usize) -> Plug {
    let entry = line_of(200);
    let (first, second) = entry.split_at(100);
    let odd =
        b"{\"type\":\"user\",\"uuid\":\"u1\",\"parentUuid\":\"u0\",\"sessionId\":\"s-odd\"}\n";
    match number {
        // A line starts at the border.
        0 => Plug::new(&entry, odd),
        // Glued lines, the second one in the second piece.
        1 => Plug::new(&entry[..199], &[odd, first, second].concat()),
        // The second piece starts in the middle of a line longer than a buffer.
        2 => {
            let long = line_of(3 * BUFFER);
            Plug::new(&long[..BUFFER + 17], &long[BUFFER + 17..])
        }
        // NULs end with the first piece, and a complete entry follows them on the line.
        3 => Plug::new(&[0; 4096], &entry),
        // NULs start with the second piece, as a line of their own.
        4 => Plug::new(&entry, &[&[0; 4096][..], b"\n"].concat()),
        5 => Plug::new(&[b'\n'; 1500], &[b'\n'; 1500]),
        // The border separates CR and LF.
        6 => Plug::new(&[&entry[..199], b"\r"].concat(), b"\n\r\n"),
        // No line starts in the following piece, so there is no plug 8.
        _ => {
            let long = line_of(span + 2 * BUFFER);
            Plug::new(&long[..BUFFER], &long[BUFFER..])
        }
    }
}

/// Returns a file of `len` bytes of generated sessions, with a plug over each border between 2, 3
/// and 7 pieces, off by `shift` bytes.
fn bordered(len: usize, shift: isize) -> Vec<u8> {
    let mut borders: Vec<usize> = [2, 3, 7]
        .iter()
        .flat_map(|pieces| (1..*pieces).map(move |i| len.div_ceil(*pieces) * i))
        .collect();
    borders.sort_unstable();
    let filler = roomy_sessions(0..40);
    let filler: Vec<&[u8]> = filler.split_inclusive(|byte| *byte == b'\n').collect();
    let mut lines = filler.iter().cycle();
    let mut out: Vec<u8> = Vec::with_capacity(len);
    let mut fill_to = |out: &mut Vec<u8>, end: usize| {
        while out.len() < end {
            let line = lines.next().expect("a cycle");
            if out.len() + line.len() + SHORTEST_LINE <= end {
                out.extend_from_slice(line);
            } else {
                out.extend_from_slice(&line_of(end - out.len()));
            }
        }
    };
    for (number, border) in borders.into_iter().enumerate() {
        let plug = plug(number, len / 7);
        let start = border
            .checked_add_signed(shift)
            .expect("a place in the file")
            - plug.at;
        // The long line also covers the next border.
        if out.len() + SHORTEST_LINE <= start {
            fill_to(&mut out, start);
            assert_eq!(out.len(), start);
            out.extend_from_slice(&plug.bytes);
        }
    }
    fill_to(&mut out, len);
    out
}

/// Generated sessions with long lines between the others: few lines for many bytes.
pub(crate) fn roomy_sessions(seeds: std::ops::Range<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, line) in seeds
        .flat_map(terminated_session)
        .collect::<Vec<u8>>()
        .split_inclusive(|byte| *byte == b'\n')
        .enumerate()
    {
        bytes.extend_from_slice(line);
        if number % 3 == 0 {
            bytes.extend_from_slice(&line_of(9_000));
        }
        if number % 10 == 0 {
            bytes.extend_from_slice(odd_boundary(number).as_bytes());
        }
    }
    bytes
}

/// A boundary with only odd ids, a few of many: each piece numbers them in its own order.
fn odd_boundary(number: usize) -> String {
    let id = |which: usize| format!("\"odd-{}\"", (number * 7 + which) % 101);
    let kept = if number.is_multiple_of(20) {
        let (anchor, first, second) = (id(1), id(2), id(3));
        format!("\"preservedMessages\":{{\"anchorUuid\":{anchor},\"uuids\":[{first},1,{second}]}}")
    } else {
        let (anchor, head, tail) = (id(1), id(2), id(3));
        format!(
            "\"preservedSegment\":{{\"headUuid\":{head},\"anchorUuid\":{anchor},\"tailUuid\":{tail}}}"
        )
    };
    let logical = id(4);
    format!(
        "{{\"type\":\"system\",\"subtype\":\"compact_boundary\",\"logicalParentUuid\":{logical},\
         \"compactMetadata\":{{{kept}}}}}\n"
    )
}

fn terminated_session(seed: u64) -> Vec<u8> {
    let mut session = generate::session(seed);
    if !session.ends_with(b"\n") {
        session.push(b'\n');
    }
    session
}

#[test]
fn threads_and_directions_agree_wherever_the_borders_between_pieces_fall() {
    let len = 64 * BUFFER + 12_345;
    for shift in [-1, 0, 1] {
        let bytes = bordered(len, shift);
        assert_eq!(bytes.len(), len);
        let index = check_bytes(&bytes, &format!("borders {shift:+}"));
        assert!(index.len() > 5_000 && index.sessions().count() > 30);
        assert!(index.has_repeated_uuids());
        let codes: Vec<Code> = reported(&index)
            .into_iter()
            .map(|finding| finding.0)
            .collect();
        assert!(
            codes.contains(&Code::Nul) && codes.contains(&Code::Glued),
            "{codes:?}"
        );
    }
}

#[test]
fn sessions_are_listed_in_the_order_of_the_file() {
    let line = |session: &str| format!("{{\"type\":\"tag\",\"sessionId\":\"{session}\"}}\n");
    let bytes = ["c", "a", "c", "b", "a", "d"].map(line).concat();
    let index = check_bytes(bytes.as_bytes(), "sessions");
    assert_eq!(index.sessions().collect::<Vec<_>>(), ["c", "a", "b", "d"]);
}

// -------------------------------------------------------------------------------------------------
// Buffers
// -------------------------------------------------------------------------------------------------

/// A line ends one byte before the end of a buffer, at it, and after it.
#[test]
fn lines_may_end_anywhere_around_the_end_of_a_buffer() {
    let ends = [b"\n".to_vec(), b"\r\n".to_vec(), b"\n\n".to_vec()];
    for len in (BUFFER - 3)..=(BUFFER + 3) {
        for end in &ends {
            let mut long = line_of(len);
            long.pop();
            long.extend_from_slice(end);
            let last = line_of(300);
            let bytes = [&long[..], &last, &long].concat();
            let index = check_bytes(&bytes, &format!("{len} bytes, then {end:?}"));
            let offsets: Vec<u64> = index.entries().map(|one| one.offset()).collect();
            let second = long.len() as u64;
            assert_eq!(
                offsets,
                [0, second, second + 300],
                "{len} bytes, then {end:?}"
            );
        }
    }
}

#[test]
fn a_file_may_be_exactly_as_long_as_buffers_are() {
    for (len, lines) in [
        (BUFFER, 1),
        (2 * BUFFER, 2),
        (BUFFER - 1, 3),
        (2 * BUFFER + 1, 5),
    ] {
        let line = len / lines;
        let mut bytes = line_of(line).repeat(lines - 1);
        bytes.extend_from_slice(&line_of(len - bytes.len()));
        for bytes in [&bytes[..], &bytes[..len - 1]] {
            let index = check_bytes(bytes, &format!("{} bytes in {lines} lines", bytes.len()));
            assert_eq!(index.len(), lines);
            let torn = usize::from(bytes.len() < len);
            assert_eq!(
                reported(&index).len(),
                torn,
                "only a missing newline is reported"
            );
        }
    }
}

#[test]
fn a_file_of_only_newlines_has_only_blank_lines() {
    for len in [0, 1, 2, BUFFER - 1, BUFFER, BUFFER + 1, 2 * MIN_LEN + 1] {
        let index = check_bytes(&vec![b'\n'; len], &format!("{len} newlines"));
        assert_eq!((index.len(), index.findings().len()), (0, 0));
        assert_eq!(
            (index.line_count(), index.blank_line_count()),
            (len as u64, len as u64)
        );
    }
}

// -------------------------------------------------------------------------------------------------
// The cap on a line
// -------------------------------------------------------------------------------------------------

#[test]
fn a_line_beyond_the_cap_is_a_finding_and_the_next_line_is_intact() {
    const CAP: usize = 1000;
    let options = LoadOptions::new().line_cap(CAP);
    for (len, is_kept) in [
        (CAP - 1, true),
        (CAP, true),
        (CAP + 1, false),
        (3 * BUFFER, false),
    ] {
        for terminated in [true, false] {
            let mut bytes = [&line_of(100)[..], &line_of(len + 1)].concat();
            if terminated {
                bytes.extend_from_slice(&line_of(100));
            } else {
                bytes.pop();
            }
            let name = format!("{len} bytes, terminated: {terminated}");
            let index = check_all_ways_with(&Scratch::new(&bytes).open(), &options, &name);
            let lines: Vec<u64> = index.entries().map(|one| one.line()).collect();
            let expected: &[u64] = match (is_kept, terminated) {
                (true, true) => &[1, 2, 3],
                (true, false) => &[1, 2],
                (false, true) => &[1, 3],
                (false, false) => &[1],
            };
            assert_eq!(lines, expected, "{name}");
            let findings = match (is_kept, terminated) {
                (true, true) => Vec::new(),
                (true, false) => vec![(Code::Unterminated, Some(2), 100, len as u64)],
                (false, _) => vec![(Code::TooLong, Some(2), 100, len as u64)],
            };
            assert_eq!(reported(&index), findings, "{name}");
        }
    }
}

#[test]
fn lines_beyond_the_cap_may_cover_the_borders_between_pieces() {
    let options = LoadOptions::new().line_cap(BUFFER);
    let bytes = bordered(64 * BUFFER + 12_345, 0);
    let index = check_all_ways_with(&Scratch::new(&bytes).open(), &options, "capped");
    let too_long = reported(&index)
        .into_iter()
        .filter(|one| one.0 == Code::TooLong);
    assert_eq!(too_long.count(), 2);
}

// -------------------------------------------------------------------------------------------------
// Damage
// -------------------------------------------------------------------------------------------------

#[test]
fn damaged_sessions_are_indexed_alike_in_both_directions() {
    let mut salvaged = 0;
    for seed in 0..2_000 {
        let (bytes, done) = damage::damage(&generate::session(seed), seed);
        let scratch = Scratch::new(&bytes);
        // A damaged session of one line may look like a binary file.
        let Ok(source) = Source::open(&scratch.path) else {
            continue;
        };
        let index = check_all_ways(&source, &format!("seed {seed}: {done:?}"));
        salvaged += index.entries().filter(|one| one.is_salvaged()).count();
    }
    assert!(salvaged > 500, "{salvaged}");
}

/// All that can be salvaged, on both sides of the borders between the pieces of threads and with
/// ids, sessions, tools and boundaries that occur nowhere else.
#[test]
fn salvaged_entries_are_indexed_alike_at_any_place() {
    let mut bytes = Vec::new();
    let mut expected = 0;
    for (number, line) in roomy_sessions(0..60)
        .split_inclusive(|byte| *byte == b'\n')
        .enumerate()
    {
        bytes.extend_from_slice(line);
        if !number.is_multiple_of(3) {
            continue;
        }
        let boundary = odd_boundary(number);
        let entry = format!(
            "{{\"type\":\"assistant\",\"uuid\":\"saved-{number}\",\"parentUuid\":\"odd-{}\",\
             \"sessionId\":\"s-{}\",\"agentId\":\"a-{}\",\"message\":{{\"id\":\"m\",\"content\":[\
             {{\"type\":\"tool_use\",\"id\":\"t-{number}\"}},{{\"type\":\"tool_use\",\"id\":\"t\"}}]}}}}",
            number % 101,
            number % 13,
            number % 5,
        );
        expected += match number % 4 {
            0 => {
                bytes.extend_from_slice(format!("\0\0{boundary}").as_bytes());
                1
            }
            1 => {
                bytes.extend_from_slice(format!("{{\"torn\":\"{entry}{{\"to\n").as_bytes());
                1
            }
            2 => {
                let split = entry
                    .replace("saved", "spread")
                    .replace(",\"agent", "\n,\"agent");
                bytes.extend_from_slice(format!("{split}{boundary}").as_bytes());
                2
            }
            _ => {
                bytes.extend_from_slice(format!("{entry}{entry}{boundary}").as_bytes());
                2
            }
        };
    }
    assert!(bytes.len() > 2 * MIN_LEN);
    let index = check_bytes(&bytes, "salvaged");
    let salvaged: Vec<_> = index.entries().filter(|one| one.is_salvaged()).collect();
    assert_eq!(salvaged.len(), expected);
    assert!(
        salvaged
            .iter()
            .any(|one| one.is_boundary() && index.boundary(one.number()).is_some())
    );
    for one in index.entries() {
        assert_eq!(
            one.is_boundary(),
            index.boundary(one.number()).is_some(),
            "{one:?}"
        );
        let is_ours = one
            .uuid()
            .is_some_and(|id| index.id_text(id).starts_with("saved-"));
        assert!(!is_ours || one.tools().len() == 2, "{one:?}");
    }
    let offsets: Vec<u64> = index.entries().map(|one| one.offset()).collect();
    assert!(offsets.is_sorted_by(|one, next| one < next));
}

// -------------------------------------------------------------------------------------------------
// Memory
// -------------------------------------------------------------------------------------------------

/// Returns consecutive sessions with this many lines in total.
fn lines_of_sessions(count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut lines = 0;
    for seed in 0.. {
        for line in terminated_session(seed).split_inclusive(|byte| *byte == b'\n') {
            if lines == count {
                return bytes;
            }
            bytes.extend_from_slice(line);
            lines += 1;
        }
    }
    bytes
}

#[test]
fn tombstones_are_read_alike_at_any_place() {
    let own = |more: &str| format!("{{\"type\":\"transcriptEngine\",\"v\":1{more}}}\n");
    let uuid = "3f2b1c9e-0a4d-4e8b-9c6f-7d5e1a2b3c4d";
    let entry = "{\"type\":\"user\",\"uuid\":\"odd \u{e9}\",\"parentUuid\":\"none\"}\n";
    let lines = [
        own(&format!(",\"tombstone\":\"{uuid}\"")),
        entry.to_owned(),
        own(",\"tombstone\":\"odd \\u00e9\",\"sessionId\":\"s\""),
        // Tombstones without a valid target; their `parentUuid` or `leafUuid` must not be used
        // instead.
        own(",\"tombstone\":\"\",\"parentUuid\":\"none\""),
        own(",\"tombstone\":[\"none\"],\"leafUuid\":\"none\""),
        own(""),
        own(",\"tombstones\":[\"t1\",\"\",\"odd \u{e9}\",\"t2\"]"),
        own(",\"tombstones\":[],\"tombstone\":\"t3\""),
        // The word in another place, or on another line.
        own(",\"why\":{\"tombstone\":\"none\"}"),
        "{\"type\":\"tombstone\",\"tombstone\":\"none\"}\n".to_owned(),
        // Salvaged from damage.
        format!("{{\"type\":\"ta{}", own(",\"v\":7,\"tombstone\":\"none\"")),
    ];
    let lines = lines.concat();
    let filling = line_of(1000).repeat(MIN_LEN * 5 / 2 / 1000);
    for (name, at) in [
        ("start", 0),
        ("middle", filling.len() / 2_000 * 1000),
        ("end", filling.len()),
    ] {
        let (before, after) = filling.split_at(at);
        let bytes = [before, lines.as_bytes(), after].concat();
        let index = check_bytes(&bytes, name);
        let first = at / 1000;
        let named = index
            .tombstones()
            .map(|(line, id)| (line.get() - first, index.id_text(id)));
        let named: Vec<_> = named.collect();
        let wanted = [
            (0, uuid),
            (2, "odd \u{e9}"),
            (6, "t1"),
            (6, "odd \u{e9}"),
            (6, "t2"),
            (7, "t3"),
            (10, "none"),
        ];
        assert_eq!(
            named,
            wanted.map(|(line, id)| (line, id.to_owned())),
            "{name}"
        );
        for entry_ref in index.entries().skip(first).take(9) {
            assert_eq!(entry_ref.leaf_uuid(), None);
            assert_eq!(entry_ref.parent().is_some(), entry_ref.uuid().is_some());
        }
    }
}

#[test]
fn an_index_takes_at_most_96_bytes_a_line() {
    // The table of uuids grows in powers of two: also test just after one of them.
    for lines in [50_000, 64_500] {
        let scratch = Scratch::new(&lines_of_sessions(lines));
        let source = scratch.open();
        let (one, two) = (LoadOptions::new().threads(1), LoadOptions::new().threads(2));
        for options in [one, two] {
            let index = load(&source, &options);
            assert_eq!(index.line_count(), lines as u64);
            let per_line = (index.memory() as f64 - 4096.0) / lines as f64;
            println!("{lines} lines: {per_line:.1} bytes a line, {options:?}");
            assert!(
                per_line <= 96.0,
                "{lines} lines: {per_line:.1} bytes a line, {options:?}"
            );
        }
    }
}

/// An index of `index()` equals one that was loaded otherwise. This checks that the helper on which
/// other tests rely really compares.
#[test]
fn the_comparison_sees_a_difference_in_one_byte() {
    let one = generate::session(3);
    for (from, to) in [
        ("\"isSidechain\":false", "\"isSidechain\":null"),
        ("\n", "\n\n"),
    ] {
        let text = String::from_utf8(one.clone()).unwrap();
        let changed = text.replacen(from, to, 1);
        assert_ne!(text, changed);
        let (one, other) = (index(text.as_bytes()), index(changed.as_bytes()));
        assert_ne!(crate::picture(&one), crate::picture(&other));
    }
}

#[test]
fn a_counter_sees_all_bytes_and_a_buffer_more_at_most_for_each_piece() {
    let bytes = line_of(1000).repeat(9_000);
    let (source, len) = (Scratch::new(&bytes), bytes.len() as u64);
    let source = source.open();
    for options in [LoadOptions::new().threads(1), LoadOptions::new().threads(2)] {
        let counter = Arc::new(AtomicU64::new(0));
        load(&source, &options.count_bytes(Arc::clone(&counter)));
        let read = counter.load(Ordering::Relaxed);
        assert!((len..=len + 2 * BUFFER as u64).contains(&read), "{read}");
    }
}
