//! An index that grows line by line equals the one that is loaded, at every prefix.

use std::fs;
use std::path::{Path, PathBuf};

use transcript_format::lines::{DEFAULT_LINE_CAP, Framed, Framer};
use transcript_reader::{EntryNo, GrowingIndex, Index, LoadOptions, Source};
use transcript_testkit::{damage, generate, shared};

use crate::assert_same;
use crate::same_index::transcripts_under;

fn loaded(bytes: &[u8], path: &Path, cap: usize) -> Index {
    let source = Source::from_bytes(bytes, path);
    LoadOptions::new()
        .line_cap(cap)
        .load(&source)
        .expect("memory can be read")
}

#[track_caller]
fn assert_equal(grown: &Index, loaded: &Index, name: &str) {
    assert_same(grown, loaded, name);
    assert_eq!(grown.own_session(), loaded.own_session(), "{name}");
    assert_eq!(grown.byte_count(), loaded.byte_count(), "{name}");
    assert_eq!(
        grown.has_repeated_uuids(),
        loaded.has_repeated_uuids(),
        "{name}"
    );
    for entry in loaded.entries() {
        let Some(id) = entry.uuid() else { continue };
        let own = grown.entry(entry.number()).uuid().expect("the same entry");
        let lines = grown.with_uuid(own);
        assert!(
            lines.eq(loaded.with_uuid(id)),
            "{name}: line {}",
            entry.line()
        );
    }
    let names = |index: &Index| {
        let boundaries = index
            .entries()
            .filter_map(|entry| index.boundary(entry.number()));
        let ids =
            boundaries.flat_map(|boundary| boundary.ends.into_iter().chain([boundary.anchor()]));
        let name = |id| Some((index.id_text(id), index.id_text(index.new_name(id)?)));
        ids.flatten().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(grown), names(loaded), "{name}");
}

/// Pushes the lines one by one, and compares at the end of each and within some.
fn check(bytes: &[u8], path: &Path, cap: usize, step: usize) -> usize {
    let mut grown = GrowingIndex::new(path).line_cap(cap);
    // This one is never asked before the end.
    let mut silent = GrowingIndex::new(path).line_cap(cap);
    let mut framer = Framer::starting_at(0, cap);
    let (mut rest, mut compared, mut number) = (bytes, 0, 0);
    loop {
        let start = bytes.len() - rest.len();
        let Some(framed) = framer.next(&mut rest) else {
            break;
        };
        let name = |what: &str| format!("{}: {what} line {}", path.display(), number + 1);
        let looks = number % step == 0;
        if looks
            && let Framed::Line(line) = framed
            && !line.bytes.is_empty()
        {
            let part = start + line.bytes.len() * (number % 7 + 1) / 7;
            let mut framer = Framer::starting_at(start as u64, cap);
            assert!(framer.next(&mut &bytes[start..part]).is_none());
            if let Some(part) = framer.finish() {
                grown.push(part);
            }
            assert_equal(
                grown.index(),
                &loaded(&bytes[..part], path, cap),
                &name("in"),
            );
            compared += 1;
        }
        grown.push(framed);
        silent.push(framed);
        if looks {
            let end = bytes.len() - rest.len();
            assert_equal(
                grown.index(),
                &loaded(&bytes[..end], path, cap),
                &name("after"),
            );
            compared += 1;
        }
        number += 1;
    }
    if let Some(framed) = framer.finish() {
        grown.push(framed);
        silent.push(framed);
    }
    let whole = loaded(bytes, path, cap);
    assert_equal(grown.index(), &whole, &format!("{}: whole", path.display()));
    assert_equal(
        silent.index(),
        &whole,
        &format!("{}: whole, silent", path.display()),
    );
    compared
}

#[test]
fn an_index_of_generated_and_damaged_sessions_equals_the_load_of_each_prefix() {
    let mut compared = 0;
    for seed in 0..80 {
        let bytes = generate::session(seed);
        compared += check(&bytes, Path::new("any.jsonl"), DEFAULT_LINE_CAP, 1);
        let mut hurt = bytes;
        for round in 0..=seed % 4 {
            hurt = damage::damage(&hurt, seed + 1_000 * round).0;
        }
        compared += check(&hurt, Path::new("hurt.jsonl"), DEFAULT_LINE_CAP, 1);
        // Runs that are longer than the limit are divided.
        compared += check(&hurt, Path::new("hurt.jsonl"), 600, 1);
    }
    println!("{compared} prefixes");
    assert!(compared > 10_000, "{compared}");
}

#[test]
fn an_index_of_the_fixtures_equals_the_load_of_each_prefix() {
    let mut files = Vec::new();
    transcripts_under(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/v1"),
        &mut files,
    );
    assert!(files.len() > 50, "{}", files.len());
    println!("{} prefixes of {} files", check_files(&files), files.len());
}

#[test]
fn an_index_of_shared_sessions_equals_the_load_of_their_prefixes() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    for folder in ["corpus", "oracle", "oracle2", "damage"] {
        let mut files = Vec::new();
        if shared.join(folder).is_dir() {
            transcripts_under(&shared.join(folder), &mut files);
        }
        println!(
            "{folder}: {} prefixes of {} files",
            check_files(&files),
            files.len()
        );
    }
}

/// Compares after each line of short files, and after some lines of long ones.
fn check_files(files: &[PathBuf]) -> usize {
    let check_one = |file: &PathBuf| {
        let bytes = fs::read(file).expect("a file");
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        check(
            &bytes,
            file,
            DEFAULT_LINE_CAP,
            (lines / 30).max(1) + bytes.len() / 4_000_000,
        )
    };
    files.iter().map(check_one).sum()
}

#[test]
fn an_entry_over_damaged_and_blank_lines_is_salvaged_when_its_end_arrives() {
    let bytes = b"{\"type\":\"user\",\"uuid\":\"u1\",\"parentUuid\":null,\"text\":\"one\n\n\ntwo\"}\n{\"type\":\"user\",\"uuid\":\"u2\"}\n";
    check(bytes, Path::new("split.jsonl"), DEFAULT_LINE_CAP, 1);
    let whole = loaded(bytes, Path::new("split.jsonl"), DEFAULT_LINE_CAP);
    assert!(whole.entry(EntryNo::new(0)).is_salvaged() && whole.len() == 2);
}

#[test]
fn a_growing_index_takes_96_bytes_a_line() {
    let mut grown = GrowingIndex::new(Path::new("session.jsonl"));
    let (mut offset, mut most) = (0, 0.0_f64);
    for number in 0..300_000_u64 {
        let line = format!(
            r#"{{"type":"assistant","uuid":"{number:08x}-0000-4000-8000-000000000000","sessionId":"s","message":{{"id":"m{number}","content":[{{"type":"text","text":"Yes"}}]}}}}"#
        );
        let mut framer = Framer::starting_at(offset, DEFAULT_LINE_CAP);
        let text = format!("{line}\n");
        grown.push(framer.next(&mut text.as_bytes()).expect("a line"));
        offset += text.len() as u64;
        if number > 10_000 {
            most = most.max(grown.memory() as f64 / (number + 1) as f64);
        }
    }
    println!("{most:.1} bytes a line at most");
    assert!(most <= 96.0, "{most}");
    assert_eq!(grown.index().len(), 300_000);
}
