//! Files that are not transcripts are rejected at once; damaged transcripts are read.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use transcript_format::finding::Code;
use transcript_reader::{Bodies, EntryNo, ErrorKind, Index, LoadOptions, Source};

use crate::same_index::{check_all_ways, roomy_sessions};
use crate::{Scratch, assert_same, load, picture, reported};

const ENTRY: &[u8] = b"{\"type\":\"user\",\"uuid\":\"u1\",\"parentUuid\":null}\n";

/// Every way to load, by name.
fn ways() -> Vec<(String, LoadOptions)> {
    [1, 2, 3, 7]
        .map(|threads| {
            (
                format!("{threads} threads"),
                LoadOptions::new().threads(threads),
            )
        })
        .into()
}

#[test]
fn sessions_of_other_agents_are_named_and_words_about_them_are_not() {
    let rollout = "{\"timestamp\":\"2026-11-20T10:00:00.000Z\", \"type\": \"session_meta\", \
        \"payload\": {\"id\":\"t-1\",\"cwd\":\"/w\"}}\n\
        {\"timestamp\":\"2026-11-20T10:00:01.000Z\",\"type\":\"response_item\",\"payload\":{}}\n";
    let gemini = "{\n  \"sessionId\": \"g-1\",\n  \"projectHash\": \"ab\",\n  \
        \"startTime\": \"2026-11-20T10:00:00.000Z\",\n  \"messages\": []\n}\n";
    let lines = "{\"sessionId\":\"g-1\",\"projectHash\":\"ab\",\"startTime\":\"2026-11-20T10:00:00.000Z\"}\n\
        {\"id\":\"m\",\"type\":\"user\",\"content\":\"Q\"}\n";
    let parts = "{\"uuid\":\"q1\",\"parentUuid\":null,\"sessionId\":\"q\",\"type\":\"user\",\
        \"message\":{\"role\":\"user\",\"parts\":[{\"text\":\"Q\"}]}}\n";
    let open = |text: &str| Source::open(&Scratch::new(text.as_bytes()).path).map(|_| ());
    let history = "{\"display\": \"Q\", \"pastedContents\": {\"1\": {\"type\": \"text\"}}, \
        \"timestamp\": 1763632800000, \"project\": \"/w\", \"sessionId\": \"s\"}\n";
    let check = |text: &str| Source::open(&Scratch::new(text.as_bytes()).path)?.check_messages();
    let array =
        "[{\"role\":\"user\",\"content\":\"Q\"},{\"role\":\"assistant\",\"content\":\"A\"}]";
    let object = "{\n  \"title\": \"T\",\n  \"messages\": [\n    {\"role\": \"user\"}\n  ]\n}\n";
    for (text, name) in [
        (history, "the prompt history"),
        (array, "a JSON array"),
        (object, "JSON on several lines, without an entry"),
    ] {
        let error = check(text).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
        check(
            &format!("{{\"uuid\":\"u\",\"type\":\"user\",\"message\":{{\"content\":[{text}]}}}}")
                .replace('\n', ""),
        )
        .unwrap();
    }
    for (text, name) in [
        (rollout, "a Codex rollout"),
        (gemini, "a Gemini"),
        (lines, "a Gemini"),
    ] {
        let error = open(text).unwrap_err().to_string();
        assert!(
            error.contains(name) && error.contains("does not read yet"),
            "{error}"
        );
    }
    let quoted = |text: &str| {
        let text = text.replace('"', "\\\"").replace('\n', "\\n");
        format!("{{\"type\":\"user\",\"message\":{{\"content\":\"{text}\"}},\"uuid\":\"u\"}}\n")
    };
    for text in [rollout, gemini, lines, parts, history] {
        open(&quoted(text)).unwrap();
    }
    // A transcript that contains such a message as data.
    let data = format!(
        "{{\"type\":\"user\",\"uuid\":\"u\",\"toolUseResult\":{},\
        \"message\":{{\"role\":\"user\",\"content\":\"Q\"}}}}\n",
        parts.trim_end()
    );
    let checked = |text: &str| {
        let source = Source::open(&Scratch::new(text.as_bytes()).path).unwrap();
        source.check_messages()
    };
    checked(&data).unwrap();
    checked(&quoted(parts)).unwrap();
    let error = checked(parts).unwrap_err().to_string();
    assert!(error.contains("a Qwen Code session, which"), "{error}");
}

#[test]
fn values_that_are_spread_over_lines_are_not_entries() {
    let check = |text: &str| Source::open(&Scratch::new(text.as_bytes()).path)?.check_messages();
    let entry = r#"{"type":"user","uuid":"u","parentUuid":null,"isSidechain":false,"message":{}}"#;
    let spread = entry.replace([',', '{'], ",\n").replacen(",\n", "{\n", 1);
    for text in [
        spread.clone(),
        format!("[\n{spread}\n]\n"),
        format!("[{spread},{spread}]"),
        format!("[\n{entry},\n{entry},\n]\n"),
        format!("{{\n  \"entries\": [\n{entry},\n{entry},\n]}}\n"),
    ] {
        let error = check(&text).unwrap_err().to_string();
        assert!(error.contains("without an entry"), "{text}: {error}");
    }
    // A line that was torn after its first byte, and an entry.
    for start in ["{", "["] {
        check(&format!("{start}\n{entry}\n")).unwrap();
    }
}

// -------------------------------------------------------------------------------------------------
// Not a regular file
// -------------------------------------------------------------------------------------------------

/// Opens `path` on another thread, so that a blocking open fails the test but does not block it.
fn kind_of_refusal(path: &Path) -> Option<ErrorKind> {
    let (sender, receiver) = mpsc::channel();
    let owned: PathBuf = path.to_owned();
    thread::spawn(move || {
        let refusal = Source::open(&owned).err();
        if let Some(error) = &refusal {
            assert_eq!(error.path(), owned, "the error names the path");
            let reported = error.to_string();
            assert!(
                reported.starts_with(&owned.display().to_string()),
                "{reported}"
            );
        }
        sender
            .send(refusal.map(|error| error.kind()))
            .expect("the test waits");
    });
    let answer = receiver.recv_timeout(Duration::from_secs(60));
    answer.unwrap_or_else(|_| panic!("opening {} waits", path.display()))
}

#[test]
fn a_folder_and_a_missing_file_are_refused() {
    let scratch = Scratch::new(b"");
    let missing = scratch.folder().join("missing.jsonl");
    assert_eq!(kind_of_refusal(&missing), Some(ErrorKind::NotFound));
    assert_eq!(kind_of_refusal(scratch.folder()), Some(ErrorKind::NotAFile));
    // Not a folder on the way, which is neither "missing" nor "not a file" to the system.
    let below = scratch.path.join("below.jsonl");
    assert!(matches!(
        kind_of_refusal(&below),
        Some(ErrorKind::Io | ErrorKind::NotFound)
    ));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_without_waiting_for_a_writer() {
    let scratch = Scratch::new(b"");
    let pipe = scratch.folder().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped: no mkfifo");
        return;
    }
    assert_eq!(kind_of_refusal(&pipe), Some(ErrorKind::NotAFile));
}

#[cfg(unix)]
#[test]
fn devices_and_sockets_are_refused() {
    for device in ["/dev/null", "/dev/zero", "/dev/tty"] {
        let path = Path::new(device);
        // A process without a terminal cannot open /dev/tty; it is a device all the same.
        if path.exists() {
            assert_eq!(kind_of_refusal(path), Some(ErrorKind::NotAFile), "{device}");
        }
    }
    let scratch = Scratch::new(b"");
    let socket = scratch.folder().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert_eq!(kind_of_refusal(&socket), Some(ErrorKind::NotAFile));
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_loops_of_links_refused() {
    use std::os::unix::fs::symlink;
    let scratch = Scratch::new(ENTRY);
    let (link, dangling) = (
        scratch.folder().join("link"),
        scratch.folder().join("dangling"),
    );
    symlink(&scratch.path, &link).unwrap();
    symlink(scratch.folder().join("nothing"), &dangling).unwrap();
    assert_eq!(kind_of_refusal(&link), None);
    assert_eq!(kind_of_refusal(&dangling), Some(ErrorKind::NotFound));
    let (one, other) = (scratch.folder().join("one"), scratch.folder().join("other"));
    symlink(&one, &other).unwrap();
    symlink(&other, &one).unwrap();
    assert_eq!(kind_of_refusal(&one), Some(ErrorKind::Io));
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new(ENTRY);
    fs::set_permissions(&scratch.path, fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(&scratch.path).is_ok() {
        println!("skipped: this user may read everything");
        return;
    }
    assert_eq!(kind_of_refusal(&scratch.path), Some(ErrorKind::NotAllowed));
}

// -------------------------------------------------------------------------------------------------
// Other formats
// -------------------------------------------------------------------------------------------------

fn utf16(text: &str, mark: &[u8], bytes_of: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let units = text.encode_utf16().flat_map(bytes_of);
    mark.iter().copied().chain(units).collect()
}

fn other_formats() -> Vec<(&'static str, Vec<u8>)> {
    let text = String::from_utf8(ENTRY.repeat(3)).expect("the entry is text");
    let gzip = b"\x1F\x8B\x08\x00\x00\x00\x00\x00\x02\x03\xAB\x56\x2A\xA9\x2C\x48\x55\xB2\x52";
    let elf = b"\x7FELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3E\0\x01\0\0\0";
    let sqlite = b"SQLite format 3\0\x10\0\x01\x01\0\x40\x20\x20\0\0\0\x02\0\0\0\x02";
    let counted: Vec<u8> = (0..=255).cycle().take(8192).collect();
    vec![
        ("UTF-16 text", utf16(&text, b"\xFF\xFE", u16::to_le_bytes)),
        ("UTF-16 text", utf16(&text, b"\xFE\xFF", u16::to_be_bytes)),
        ("UTF-16 text", utf16(&text, b"", u16::to_le_bytes)),
        ("UTF-16 text", utf16(&text, b"", u16::to_be_bytes)),
        ("a gzip file", gzip.to_vec()),
        ("a zstd file", b"\x28\xB5\x2F\xFD\x04\x58\x61\x01".to_vec()),
        ("a bzip2 file", b"BZh91AY&SY\x94$|\x0e".to_vec()),
        ("an xz file", b"\xFD7zXZ\0\0\x04\xE6\xD6\xB4F".to_vec()),
        (
            "a zip file",
            b"PK\x03\x04\x14\0\0\0\x08\0session.jsonl".to_vec(),
        ),
        ("a program", elf.to_vec()),
        ("a SQLite database", sqlite.to_vec()),
        (
            "a PDF",
            b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n1 0 obj\n<</Type/Catalog>>\n".to_vec(),
        ),
        ("binary data", counted),
    ]
}

#[test]
fn files_of_other_formats_are_refused_by_name() {
    for (name, head) in other_formats() {
        for len in [head.len(), 5000, 2 << 20] {
            let mut bytes = head.clone();
            bytes.resize(len.max(head.len()), 0xAA);
            let scratch = Scratch::new(&bytes);
            let kind = kind_of_refusal(&scratch.path);
            assert_eq!(
                kind,
                Some(ErrorKind::OtherFormat(name)),
                "{} bytes",
                bytes.len()
            );
            let error = Source::open(&scratch.path).unwrap_err();
            assert!(error.to_string().ends_with(name), "{error}");
            assert!(!error.is_retryable());
        }
    }
}

/// A transcript is read whatever precedes it: a power cut or a failing disk can leave a page of
/// arbitrary bytes.
#[test]
fn a_transcript_after_garbage_is_read() {
    let strange: Vec<u8> = (1..=9).chain(11..=255).collect();
    let page: Vec<u8> = strange.iter().copied().cycle().take(4096).collect();
    let mut heads: Vec<Vec<u8>> = vec![
        vec![0],
        vec![0; 4095],
        vec![0; 4096],
        vec![0; 3 << 20],
        strange.clone(),
        page.clone(),
        [&page[..], &page].concat(),
        b"not json".to_vec(),
        b"\xEF\xBB\xBF".to_vec(),
        b"{\"type\":\"user\",\"uuid\":\"torn".to_vec(),
    ];
    let first_bytes = other_formats().into_iter().map(|(_, head)| head);
    heads.extend(first_bytes.map(|head| head.into_iter().filter(|byte| *byte != b'\n').collect()));
    for head in heads {
        let name = format!("{} bytes: {:?}…", head.len(), &head[..head.len().min(8)]);
        let bytes = [&head[..], b"\n", ENTRY, ENTRY].concat();
        let scratch = Scratch::new(&bytes);
        assert_eq!(kind_of_refusal(&scratch.path), None, "{name}");
        let index = check_all_ways(&scratch.open(), &name);
        let lines: Vec<u64> = index.entries().map(|one| one.line()).collect();
        assert_eq!(lines, [2, 3], "{name}");
        let findings = reported(&index);
        assert_eq!(findings.len(), 1, "{name}: {findings:?}");
        assert_eq!(
            (findings[0].1, findings[0].2, findings[0].3),
            (Some(1), 0, head.len() as u64)
        );
    }
}

#[test]
fn nuls_right_before_an_entry_on_its_line_are_read_as_damage() {
    let bytes = [&[0; 100_000][..], ENTRY, ENTRY].concat();
    let index = check_all_ways(&Scratch::new(&bytes).open(), "NULs");
    let salvaged: Vec<bool> = index.entries().map(|one| one.is_salvaged()).collect();
    assert_eq!(salvaged, [true, false]);
    assert_eq!(index.entry(EntryNo::new(0)).offset(), 100_000);
    assert_eq!(reported(&index), [(Code::Nul, Some(1), 0, 100_000)]);
}

/// The finding for a last line without a newline depends on its content.
#[test]
fn a_last_line_without_a_newline_is_kept_when_its_object_is_complete() {
    let whole = &ENTRY[..ENTRY.len() - 1];
    let lossy = &b"{\"type\":\"user\",\"text\":\"\xFF\"}"[..];
    let glued = [whole, b"{\"type\":"].concat();
    let cases: [(&[u8], usize, Vec<Code>); 5] = [
        (whole, 1, vec![Code::Unterminated]),
        (lossy, 1, vec![Code::Unterminated, Code::Utf8]),
        (&glued, 1, vec![Code::Glued]),
        (&whole[..whole.len() - 1], 0, vec![Code::TornTail]),
        (&lossy[..lossy.len() - 1], 0, vec![Code::TornTail]),
    ];
    for (last, entry_refs, expected) in cases {
        let bytes = [ENTRY, last].concat();
        let name = String::from_utf8_lossy(last).into_owned();
        let index = check_all_ways(&Scratch::new(&bytes).open(), &name);
        assert_eq!(index.len(), 1 + entry_refs, "{name}");
        let codes: Vec<Code> = reported(&index).iter().map(|finding| finding.0).collect();
        assert_eq!(codes, expected, "{name}");
        if entry_refs == 1 {
            let marks = index.entry(EntryNo::new(1)).marks();
            assert!(
                marks.contains(transcript_reader::EntryMarks::UNTERMINATED),
                "{name}"
            );
        }
    }
}

// -------------------------------------------------------------------------------------------------
// Small and empty files
// -------------------------------------------------------------------------------------------------

#[test]
fn an_empty_file_has_an_empty_index() {
    let source = Scratch::new(b"").open();
    assert!(source.is_empty());
    let index = check_all_ways(&source, "empty");
    assert!(index.is_empty());
    assert_eq!(
        (
            index.line_count(),
            index.findings().len(),
            index.byte_count()
        ),
        (0, 0, 0)
    );
}

#[test]
fn every_file_of_one_byte_is_one_line_or_refused() {
    for byte in 0..=255 {
        let scratch = Scratch::new(&[byte]);
        let name = format!("byte {byte}");
        if matches!(byte, 1..=8 | 14..=31) {
            let refusal = Some(ErrorKind::OtherFormat("binary data"));
            assert_eq!(kind_of_refusal(&scratch.path), refusal, "{name}");
            continue;
        }
        let index = check_all_ways(&scratch.open(), &name);
        assert_eq!((index.len(), index.line_count()), (0, 1), "{name}");
        let expected = match byte {
            b'\t' | b'\n' | b'\r' | b' ' => None,
            0 => Some(Code::Nul),
            b'0'..=b'9' => Some(Code::NotObject),
            _ => Some(Code::TornTail),
        };
        let expected: Vec<_> = expected
            .map(|code| (code, Some(1), 0, 1))
            .into_iter()
            .collect();
        assert_eq!(reported(&index), expected, "{name}");
    }
}

#[test]
fn a_million_empty_lines_are_blank_lines_and_nothing_else() {
    for (line, count) in [("\n", 1_000_000), ("\r\n", 500_000), (" \t\n", 300_000)] {
        let index = check_all_ways(&Scratch::new(line.repeat(count).as_bytes()).open(), "blank");
        assert_eq!((index.len(), index.findings().len()), (0, 0));
        assert_eq!(index.line_count(), count as u64);
        assert_eq!(index.blank_line_count(), count as u64);
        assert!(
            index.memory() < 4096,
            "blank lines take {} bytes",
            index.memory()
        );
    }
}

// -------------------------------------------------------------------------------------------------
// Files that change
// -------------------------------------------------------------------------------------------------

#[test]
fn growing_file_is_read_up_to_its_length_at_opening() {
    // The file ends after a line, within one, and after a complete object without its newline.
    for len in [ENTRY.len(), ENTRY.len() - 1, 10] {
        let at_opening = [ENTRY, &ENTRY[..len]].concat();
        let expected = picture(&check_all_ways(
            &Scratch::new(&at_opening).open(),
            "at opening",
        ));
        for (name, options) in ways() {
            let scratch = Scratch::new(&at_opening);
            let source = scratch.open();
            let mut file = OpenOptions::new().append(true).open(&scratch.path).unwrap();
            file.write_all(&[&ENTRY[len..], ENTRY, b"garbage"].concat())
                .unwrap();
            let index = load(&source, &options);
            assert_eq!(
                picture(&index),
                expected,
                "{name}, {len} bytes of the second line"
            );
            assert_eq!(source.len(), at_opening.len() as u64);
            let mut rest = [0; 10];
            assert_eq!(source.read_at(source.len(), &mut rest).unwrap(), 0);
            assert_eq!(source.read_at(source.len() - 3, &mut rest).unwrap(), 3);
        }
    }
}

/// The result is the index of the remaining bytes, and one finding for the lost ones.
#[test]
fn a_file_that_shrinks_before_it_is_read_is_read_up_to_its_new_end() {
    let mut bytes = roomy_sessions(0..120);
    let old = 13 << 20;
    assert!(bytes.len() > old, "three threads have a piece each");
    bytes.truncate(old);
    let newline = bytes[..old / 2]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap();
    let lengths = [
        0,
        1,
        old / 7,
        newline,
        newline + 1,
        old / 2,
        old / 3 - 1,
        old / 3,
        2 * old / 3,
        old - (1 << 20),
        old - 1,
    ];
    for left in lengths {
        let rest = Scratch::new(&bytes[..left]);
        let expected = load(&rest.open(), &LoadOptions::new().threads(1));
        for (name, options) in ways() {
            let scratch = Scratch::new(&bytes);
            let source = scratch.open();
            cut(&scratch.path, left);
            let index = load(&source, &options);
            let name = format!("{left} of {old} bytes are left, {name}");
            check_shrunk(&index, &expected, left, old, &name);
        }
    }
}

fn cut(path: &Path, len: usize) {
    let file = OpenOptions::new()
        .write(true)
        .open(path)
        .expect("the file is there");
    file.set_len(len as u64).expect("files can be cut");
}

fn check_shrunk(index: &Index, expected: &Index, left: usize, old: usize, name: &str) {
    let mut findings = reported(expected);
    findings.push((Code::Shrunk, None, left as u64, (old - left) as u64));
    assert_eq!(reported(index), findings, "{name}");
    // Equal except for that one finding, which is last.
    let (mut one, other) = (picture(index), picture(expected));
    one.pop();
    assert!(
        one == other,
        "{name}: {:?} is not {:?}",
        one.first(),
        other.first()
    );
}

#[test]
fn a_file_that_was_replaced_by_a_shorter_one_gives_no_panic_and_no_wrong_place() {
    let bytes = ENTRY.repeat(50);
    for (name, options) in ways() {
        let scratch = Scratch::new(&bytes);
        let source = scratch.open();
        let index = load(&source, &options);
        fs::write(&scratch.path, "x\n".repeat(40)).unwrap();
        let mut bodies = Bodies::new(&source);
        for entry_ref in index.entries() {
            let text = bodies.get(&entry_ref).unwrap().text;
            let is_there = entry_ref.offset() + entry_ref.byte_len() <= 80;
            assert_eq!(text.is_empty(), !is_there, "{name}: {entry_ref:?}");
        }
        let again = load(&source, &options);
        assert_eq!(again.len(), 0, "{name}");
        let shrunk = reported(&again)
            .into_iter()
            .find(|finding| finding.0 == Code::Shrunk);
        assert_eq!(
            shrunk,
            Some((Code::Shrunk, None, 80, bytes.len() as u64 - 80)),
            "{name}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_is_deleted_after_opening_is_still_read() {
    let scratch = Scratch::new(&ENTRY.repeat(3));
    let source = scratch.open();
    fs::remove_file(&scratch.path).unwrap();
    let index = check_all_ways(&source, "deleted");
    assert_eq!(index.len(), 3);
    let text = Bodies::new(&source)
        .get(&index.entry(EntryNo::new(2)))
        .unwrap()
        .text
        .len();
    assert_eq!(text, ENTRY.len() - 1);
}

// -------------------------------------------------------------------------------------------------
// Deep and long lines
// -------------------------------------------------------------------------------------------------

/// Runs `test` on a thread with 256 KiB of stack.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(256 << 10).spawn(test);
    let outcome = thread.expect("a thread").join();
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

/// An entry that is `depth` levels deep, with `tail` in the middle.
fn nested(head: &str, open: &str, close: &str, depth: usize) -> String {
    let inner = depth - 1;
    format!("{{{head}{}1{}}}", open.repeat(inner), close.repeat(inner))
}

#[test]
fn nesting_costs_no_stack_and_ends_at_127_levels() {
    on_a_small_stack(|| {
        let heads = [
            "\"x\":",
            "\"message\":",
            "\"type\":\"user\",\"uuid\":",
            "\"type\":\"user\",\"message\":{\"content\":2},\"toolUseResult\":",
            "\"type\":\"system\",\"subtype\":\"compact_boundary\",\"compactMetadata\":",
        ];
        for head in heads {
            for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[ ", "\t]")] {
                for depth in [126, 127, 128, 129, 100_000, 1_000_000] {
                    check_depth(&nested(head, open, close, depth), depth);
                }
            }
        }
    });
}

fn check_depth(line: &str, depth: usize) {
    let name = format!("{depth} levels: {}…", &line[..60]);
    let bytes = [line.as_bytes(), b"\n", ENTRY].concat();
    let scratch = Scratch::new(&bytes);
    let source = scratch.open();
    let index = load(&source, &LoadOptions::new().threads(1));
    let is_kept = depth <= 127;
    assert_eq!(index.len(), if is_kept { 2 } else { 1 }, "{name}");
    // Only one of the heads puts a list or an object in the place of a name; it has one more
    // finding.
    let findings: Vec<_> = reported(&index)
        .into_iter()
        .map(|one| (one.0, one.1))
        .filter(|one| one.0 != Code::Shape)
        .collect();
    let expected = if is_kept {
        vec![]
    } else {
        vec![(Code::Depth, Some(1))]
    };
    assert_eq!(findings, expected, "{name}");
    let mut bodies = Bodies::new(&source);
    let body = bodies
        .get(&index.entry(EntryNo::new(0)))
        .expect("the file can be read");
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(body.text)
            .err()
            .map(|_| ()),
        None
    );
}

#[test]
fn brackets_that_never_close_cost_no_stack() {
    on_a_small_stack(|| {
        for open in [
            "[",
            "{\"a\":",
            "{\"message\":",
            "{\"message\":{\"content\":[",
        ] {
            let line = format!("{{\"type\":\"user\",\"x\":{}", open.repeat(500_000));
            let bytes = [line.as_bytes(), b"\n", ENTRY].concat();
            let index = check_all_ways(&Scratch::new(&bytes).open(), open);
            assert_eq!(index.len(), 1);
            assert_eq!(
                reported(&index),
                [(Code::Depth, Some(1), 0, line.len() as u64)],
                "{open}"
            );
        }
    });
}

#[test]
fn a_line_beyond_the_default_cap_is_reported_and_adjacent_lines_are_read() {
    let scratch = Scratch::new(ENTRY);
    let mut file = OpenOptions::new().write(true).open(&scratch.path).unwrap();
    let head = b"{\"type\":\"user\",\"uuid\":\"u2\",\"text\":\"";
    let long = 70 << 20;
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(head).unwrap();
    for _ in 0..70 {
        file.write_all(&vec![b'x'; 1 << 20]).unwrap();
    }
    file.write_all(b"\"}\n").unwrap();
    file.write_all(ENTRY).unwrap();
    let source = scratch.open();
    let one = load(&source, &LoadOptions::new().threads(1));
    let two = load(&source, &LoadOptions::new());
    assert_same(&one, &two, "two threads");
    let lines: Vec<u64> = one.entries().map(|entry_ref| entry_ref.line()).collect();
    assert_eq!(lines, [1, 3]);
    let len = (head.len() + long + 2) as u64;
    assert_eq!(
        reported(&one),
        [(Code::TooLong, Some(2), ENTRY.len() as u64, len)]
    );
    let mut bodies = Bodies::new(&source);
    let body = bodies.get(&one.entry(EntryNo::new(1))).unwrap();
    assert_eq!(body.text.as_bytes(), ENTRY.trim_ascii());
}
