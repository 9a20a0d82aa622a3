//! A reader that is killed, and continues from its stored checkpoint.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use transcript_tail::{EventKind, FollowOptions, Follower, StartAt};

use crate::support::{Done, Running, appender, child_of, line, often, place, rng};

/// Follows, and writes each entry together with its checkpoint in one write.
pub(crate) fn follow(path: &Path, output: &Path) {
    let mut options = OpenOptions::new();
    let mut file = options
        .read(true)
        .append(true)
        .create(true)
        .open(output)
        .unwrap();
    // Records are short, so the last complete one is near the end. An incomplete record does not
    // count.
    let len = file.seek(SeekFrom::End(0)).unwrap();
    let near = len.saturating_sub(4096);
    file.seek(SeekFrom::Start(near)).unwrap();
    let mut last = Vec::new();
    file.read_to_end(&mut last).unwrap();
    let end = last
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    file.set_len(near + end as u64).unwrap();
    let last = std::str::from_utf8(&last[..end]).unwrap();
    let checkpoint = last.lines().last().map(|record| {
        let checkpoint = record.split(' ').nth(2).unwrap();
        checkpoint.parse().unwrap()
    });
    let start = checkpoint.map_or(StartAt::Beginning, StartAt::Checkpoint);
    let mut follower = Follower::new(path, &FollowOptions::new().start(start));
    loop {
        let emitted = follower.next().unwrap().unwrap();
        let what = match &emitted.kind {
            EventKind::Entry(entry) => entry.text.split('"').nth(7).unwrap(),
            EventKind::Damaged(_) => "bad",
            _ => continue,
        };
        let (offset, checkpoint) = (emitted.kind.offset(), emitted.checkpoint());
        let record = format!("{offset} {what} {checkpoint}\n");
        file.write_all(record.as_bytes()).unwrap();
    }
}

#[test]
fn a_reader_that_is_killed_again_and_again_writes_each_line_down_once() {
    let mut rng = rng("kill");
    let (folder, path) = place();
    let output = folder.path().join("output");
    let kills = often(50, 500);
    let is_over = AtomicBool::new(false);
    let len = || fs::metadata(&output).map_or(0, |found| found.len());
    let mut due: BTreeMap<(u64, String), usize> = BTreeMap::new();
    let mut own = transcript_testkit::rng::Rng::new(rng.next_u64());
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut file = appender(&path);
            let (mut offset, mut number) = (0, 0);
            while !is_over.load(Ordering::Acquire) {
                let mut bytes = line(number, rng.below(700)).into_bytes();
                *due.entry((offset, format!("u{number}"))).or_default() += 1;
                number += 1;
                if rng.one_in(6) {
                    // Two objects on one line: the line causes more than one event.
                    bytes.pop();
                    let second = offset + bytes.len() as u64;
                    *due.entry((second, format!("u{number}"))).or_default() += 1;
                    bytes.extend(line(number, 0).into_bytes());
                    number += 1;
                }
                let (start, end) = bytes.split_at(rng.below(bytes.len()));
                file.write_all(start).unwrap();
                thread::sleep(Duration::from_micros(rng.below(300) as u64));
                file.write_all(end).unwrap();
                offset += bytes.len() as u64;
            }
            offset
        });
        let start = || {
            let words = [path.to_str().unwrap(), output.to_str().unwrap()];
            Running::start(child_of(&[], "follow", &words))
        };
        let done = Done(&is_over);
        for _ in 0..kills {
            let wanted = len() + own.below(4_000) as u64;
            let child = start();
            let deadline = Instant::now() + Duration::from_secs(60);
            while len() < wanted {
                assert!(Instant::now() < deadline, "nothing is emitted any more");
                thread::sleep(Duration::from_micros(50));
            }
            for _ in 0..own.below(20_000) {
                std::hint::spin_loop();
            }
            drop(child);
        }
        drop(done);
        let end = writer.join().unwrap();
        let _child = start();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !fs::read_to_string(&output)
            .unwrap()
            .contains(&format!(" 1:{end}:"))
        {
            assert!(Instant::now() < deadline, "the end was not emitted");
            thread::sleep(Duration::from_millis(5));
        }
    });
    let mut written: BTreeMap<(u64, String), usize> = BTreeMap::new();
    let output = fs::read_to_string(&output).unwrap();
    let mut damaged = 0;
    for record in output.lines() {
        let mut parts = record.split(' ');
        let offset = parts.next().unwrap().parse().unwrap();
        match parts.next().unwrap() {
            "bad" => damaged += 1,
            uuid => *written.entry((offset, uuid.to_owned())).or_default() += 1,
        }
    }
    let lost = due
        .keys()
        .filter(|line| !written.contains_key(line))
        .count();
    let doubled = written.values().filter(|count| **count > 1).count();
    let lines = due.len();
    println!(
        "kill: {kills} kills, {lines} entries, {damaged} findings, {lost} lost, {doubled} doubled"
    );
    assert_eq!(due, written);
}
