//! Damaged lines: all of them are reported, exactly as the index reports them.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use transcript_format::finding::{Code, Severity};
use transcript_reader::{Index, Source};
use transcript_tail::{EventKind, FollowOptions, Follower};
use transcript_testkit::campaign::{Healthy, Kind};
use transcript_testkit::damage::damage;
use transcript_testkit::generate;

use crate::support::{append, child_of, drain, fast_folder, folder, line, numbers, rng, soak};

#[derive(Debug, Default)]
struct Tally {
    files: usize,
    lines: usize,
    blank: usize,
    entries: usize,
    salvaged: usize,
    findings: usize,
    /// Files in which the index may join lines, which a follower cannot do: they are not compared.
    joined: usize,
    silent: usize,
}

/// Returns whether a reader of single lines can find this damage. Notes about whole entries are not
/// events.
fn is_of_a_line(code: Code) -> bool {
    let name = code.as_str();
    let is_of_a_line = name.starts_with("L-") || name.starts_with("T-") || name == "B-LINE";
    is_of_a_line && code.severity() == Severity::Damage
}

/// Follows a file, and compares the events with the index of the file.
fn compare(path: &Path, bytes: &[u8], tally: &mut Tally) {
    // A line without its newline is not emitted.
    let bytes = [bytes.strip_suffix(b"\n").unwrap_or(bytes), b"\n"].concat();
    fs::write(path, &bytes).unwrap();
    let Ok(source) = Source::open(path) else {
        // The damage made the file look like binary data.
        return;
    };
    let index = Index::load(&source).unwrap();
    let mut follower = Follower::new(path, &FollowOptions::new().poll_only());
    let emitted = drain(&mut follower);
    assert_eq!(
        (follower.offset(), follower.pending_bytes()),
        (bytes.len() as u64, 0)
    );
    let (mut entries, mut findings) = (Vec::new(), Vec::new());
    let mut lines = BTreeSet::new();
    for emitted in &emitted {
        match &emitted.kind {
            EventKind::Entry(entry) => {
                tally.salvaged += usize::from(entry.is_salvaged);
                lines.insert(entry.line.unwrap());
                entries.push((entry.line.unwrap(), entry.offset, entry.len));
            }
            EventKind::Damaged(bad) => {
                lines.insert(bad.line.unwrap());
                if bad.code.severity() == Severity::Damage {
                    findings.push((bad.offset, bad.code, bad.line.unwrap(), bad.len));
                }
            }
            other => assert_eq!(other, &EventKind::Open { offset: 0 }),
        }
    }
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        tally.lines += 1;
        if line.trim_ascii().is_empty() {
            tally.blank += 1;
        } else if !lines.contains(&(number as u64 + 1)) {
            tally.silent += 1;
            println!("{:?}", String::from_utf8_lossy(line));
        }
    }
    tally.files += 1;
    tally.entries += entries.len();
    tally.findings += findings.len();
    let found = index
        .findings()
        .iter()
        .filter(|finding| is_of_a_line(finding.code));
    let found = found.map(|found| (found.offset, found.code, found.line.unwrap(), found.len));
    let mut found: Vec<_> = found.collect();
    let kept = index.entries().map(|entry_ref| {
        let (offset, len) = (entry_ref.offset(), entry_ref.byte_len());
        (entry_ref.line(), offset, len)
    });
    // Joined entries are on consecutive damaged lines.
    let damaged: BTreeSet<u64> = findings.iter().map(|(_, _, line, _)| *line).collect();
    if damaged.iter().any(|line| damaged.contains(&(line + 1))) {
        tally.joined += 1;
        return;
    }
    found.sort();
    findings.sort();
    assert_eq!(findings, found);
    assert_eq!(entries, kept.collect::<Vec<_>>());
}

#[test]
fn each_damaged_line_is_reported_as_the_index_shows_it() {
    let mut rng = rng("damage");
    let folder = fast_folder();
    let path = folder.path().join("s1.jsonl");
    let mut tally = Tally::default();
    for _ in 0..1_000 * soak() {
        let seed = rng.next_u64();
        let session = generate::session(seed);
        let (hurt, _) = damage(&session, seed);
        compare(&path, &hurt, &mut tally);
        let kind = *rng.pick(&Kind::ALL);
        if let Some(case) = Healthy::new(&session).and_then(|healthy| healthy.damaged(kind, seed)) {
            compare(&path, &case.bytes, &mut tally);
        }
    }
    println!("damage: {tally:?}");
    assert_eq!(tally.silent, 0);
    assert!(tally.salvaged > 100 && tally.findings > 500);
    assert!(tally.joined * 10 < tally.files);
}

#[test]
fn lines_that_only_together_are_one_are_reported_one_by_one() {
    let folder = fast_folder();
    let path = folder.path().join("s1.jsonl");
    let (one, mut tally) = (line(1, 200), Tally::default());
    let (start, end) = one.split_at(70);
    compare(
        &path,
        (line(0, 0) + start + "\n" + end + &line(2, 0)).as_bytes(),
        &mut tally,
    );
    assert_eq!((tally.joined, tally.silent, tally.entries), (1, 0, 2));
}

#[test]
fn byte_order_mark_counts_only_at_the_start_of_a_file() {
    let folder = fast_folder();
    let path = folder.path().join("s1.jsonl");
    let marked = format!("\u{feff}{}", line(1, 80));
    let mut tally = Tally::default();
    compare(
        &path,
        (marked.clone() + &line(2, 90)).as_bytes(),
        &mut tally,
    );
    compare(
        &path,
        (line(2, 90) + &marked + &line(3, 90)).as_bytes(),
        &mut tally,
    );
}

#[test]
fn a_line_beyond_the_cap_is_passed_in_constant_memory() {
    let folder = folder();
    let path = folder.path().join("s1.jsonl");
    let len = if soak() == 1 { 256 << 20 } else { 10 << 30 };
    append(&path, line(1, 0).as_bytes());
    let mut file = OpenOptions::new().write(true).open(&path).unwrap();
    let start = file.seek(SeekFrom::End(0)).unwrap();
    file.set_len(start + len).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(("\n".to_owned() + &line(2, 0)).as_bytes())
        .unwrap();
    let words = [path.to_str().unwrap(), &start.to_string(), &len.to_string()];
    let output = child_of(&[], "sparse", &words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!(
        "{}",
        said.lines()
            .find_map(|line| line.find("sparse: ").map(|at| &line[at..]))
            .unwrap_or(&said)
    );
    assert!(output.status.success(), "{said}");
}

/// Follows a file with a hole, and prints how much memory that took.
pub(crate) fn sparse(path: &Path, start: u64, len: u64) {
    let mut follower = Follower::new(path, &FollowOptions::new().poll_only().line_cap(16 << 20));
    let emitted = drain(&mut follower);
    assert_eq!(numbers(&emitted), [1, 2]);
    let EventKind::Damaged(bad) = &emitted[2].kind else {
        panic!("{emitted:?}");
    };
    assert_eq!((bad.code, bad.offset, bad.len), (Code::TooLong, start, len));
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kib: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    println!(
        "sparse: a line of {} MiB, at most {} MiB of memory",
        len >> 20,
        kib >> 10
    );
    assert!(kib < 64 << 10);
}
