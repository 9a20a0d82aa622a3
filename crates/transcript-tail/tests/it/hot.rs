//! A reader that polls all the time, next to writers that do not wait for it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use transcript_tail::{EventKind, FollowOptions, FollowedEntry, Follower};
use transcript_testkit::naive_writer::NaiveWriter;
use transcript_testkit::rng::Rng;
use transcript_writer::{Draft, ResumePoint, SyncPolicy};

use crate::support::{
    Done, appender, child_of, fast_folder, folder, line, number_of, often, place, rng,
};

/// The counts of a busy reader: lines, and lines with errors.
#[derive(Debug, Default)]
struct Seen {
    lines: usize,
    lost: usize,
    doubled: usize,
    torn: usize,
    resets: usize,
    /// How often the file ended in the middle of a line.
    partial: usize,
    /// How often a poll found nothing new.
    waits: usize,
    /// The offset after the last entry.
    end: u64,
    wrong_offsets: usize,
}

impl Seen {
    fn violations(&self) -> usize {
        self.lost + self.doubled + self.torn + self.wrong_offsets
    }

    /// Checks that the entry has the next number.
    fn take(&mut self, entry: &FollowedEntry) {
        let number = number_of(&entry.text);
        self.lost += number.saturating_sub(self.lines);
        self.doubled += usize::from(number < self.lines);
        self.wrong_offsets += usize::from(entry.offset != self.end);
        self.lines = self.lines.max(number + 1);
        self.end = entry.offset + entry.len + 1;
    }

    fn count(&mut self, event: &EventKind) {
        match event {
            EventKind::Entry(entry) if entry.is_salvaged => self.torn += 1,
            EventKind::Entry(entry) => self.take(entry),
            EventKind::Damaged(_) => self.torn += 1,
            EventKind::Reset { .. } => {
                self.resets += 1;
                self.end = 0;
            }
            _ => {}
        }
    }
}

/// Follows until `lines` lines were emitted, or there was nothing for a long time.
fn read(follower: &mut Follower, lines: usize) -> Seen {
    let mut seen = Seen::default();
    while seen.lines < lines {
        match follower.try_next().unwrap() {
            Some(emitted) => seen.count(&emitted.kind),
            None => {
                seen.partial += usize::from(follower.pending_bytes() > 0);
                seen.waits += 1;
                if seen.waits % 16 > 0 {
                    continue;
                }
                match follower.next_within(Duration::from_secs(30)).unwrap() {
                    Some(emitted) => seen.count(&emitted.kind),
                    None => break,
                }
            }
        }
    }
    seen
}

fn hot(name: &str, lines: usize, write: impl FnOnce(&Path) + Send) {
    let (_folder, path) = place();
    let mut follower = Follower::new(&path, &FollowOptions::new());
    let seen = thread::scope(|scope| {
        scope.spawn(|| write(&path));
        read(&mut follower, lines)
    });
    println!("hot, {name}: {seen:?}");
    assert_eq!((seen.lines, seen.violations(), seen.resets), (lines, 0, 0));
    assert_eq!(fs::metadata(&path).unwrap().len(), seen.end);
}

/// Returns text of odd length: usually short, sometimes longer than a page or than one read.
fn text(number: usize) -> String {
    let len = match number % 10_007 {
        17 => 70_001,
        n if n % 97 == 5 => 4_097,
        n => n * 37 % 119,
    };
    "日a".repeat(len / 4) + &"b".repeat(len % 4)
}

#[test]
fn beside_our_writer_each_line_is_reported_once() {
    let lines = often(120_000, 500_000);
    hot("our writer", lines, |path| {
        let options = transcript_writer::WriterOptions::new()
            .create()
            .sync(SyncPolicy::None);
        let writer = options.open(path, ResumePoint::default()).unwrap();
        let mut number = 0;
        while number < lines {
            // One line, or several at once.
            let count = [1, 1, 1, 7, 61][number % 5].min(lines - number);
            let draft = |number| {
                let text = text(number);
                let json = format!(
                    "{{\"type\":\"user\",\"uuid\":\"u{number}\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}"
                );
                Draft::entry(&json).unwrap()
            };
            let drafts = (number..number + count).map(draft).collect();
            writer.append_all(drafts).unwrap();
            number += count;
        }
        writer.close().unwrap();
    });
}

#[test]
fn beside_a_naive_writer_each_line_is_reported_once() {
    let lines = often(120_000, 500_000);
    hot("a naive writer", lines, |path| {
        let writer = NaiveWriter::open_plain(path).unwrap();
        for number in 0..lines {
            let text = text(number);
            let json = format!("{{\"type\":\"user\",\"uuid\":\"u{number}\",\"text\":\"{text}\"}}");
            writer.append(json.as_bytes()).unwrap();
        }
    });
}

#[test]
fn truncated_line_is_not_reported() {
    let mut rng = rng("truncated");
    let folder = fast_folder();
    let path = folder.path().join("s1.jsonl");
    let lines = often(40_000, 10_000);
    let mut follower = Follower::new(&path, &FollowOptions::new().poll_only());
    let seen = thread::scope(|scope| {
        scope.spawn(|| write_and_take_back(&path, lines, &mut rng));
        read(&mut follower, lines)
    });
    println!("truncated, hot: {seen:?}");
    assert_eq!((seen.lines, seen.violations(), seen.resets), (lines, 0, 0));
}

/// Writes the start of a line, truncates it, and writes another line.
fn write_and_take_back(path: &Path, lines: usize, rng: &mut Rng) {
    let mut file = appender(path);
    let mut end = 0;
    for number in 0..lines {
        let len = match rng.below(50) {
            0 => rng.range(60_000, 200_000),
            1..10 => rng.range(3_000, 20_000),
            _ => rng.below(300),
        };
        let whole = line(number, len);
        for _ in 0..rng.below(3) {
            // Never one that must be emitted.
            let len = *rng.pick(&[whole.len(), whole.len() + 1, 200, 9_000, 70_000]);
            let other = line(900_000_000 + number, len);
            let len = *rng.pick(&[
                other.len() - 1,
                whole.len(),
                rng.clone().range(1, other.len() - 1),
            ]);
            file.write_all(&other.as_bytes()[..len.min(other.len() - 1)])
                .unwrap();
            pause(rng);
            file.set_len(end).unwrap();
            pause(rng);
        }
        file.write_all(whole.as_bytes()).unwrap();
        end += whole.len() as u64;
        pause(rng);
    }
}

fn pause(rng: &mut Rng) {
    for _ in 0..rng.below(400) {
        std::hint::spin_loop();
    }
}

#[test]
fn rolled_back_append_is_invisible() {
    // The limit applies to a whole process.
    let deaf = ["sh", "-c", r#"trap '' XFSZ; exec "$0" "$@""#];
    let folder = fast_folder();
    let path = folder.path().join("s1.jsonl");
    let lines = often(20_000, 25_000).to_string();
    let mut child = child_of(&deaf, "limit", &[path.to_str().unwrap(), &lines]);
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let figures = said.lines().find(|line| line.starts_with("limit"));
    println!("{}", figures.unwrap_or(&said));
    assert!(output.status.success(), "{said}");
}

/// Appends with our writer under a file-size limit that repeatedly cuts writes short, and follows.
pub(crate) fn limited(path: &Path, lines: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Fsize).maximum;
    let limit = |current: Option<u64>| {
        let current = current.or(maximum);
        setrlimit(Resource::Fsize, Rlimit { current, maximum }).unwrap();
    };
    let refused = AtomicUsize::new(0);
    let mut follower = Follower::new(path, &FollowOptions::new().poll_only());
    let seen = thread::scope(|scope| {
        scope.spawn(|| {
            let mut rng = rng("limit");
            let options = transcript_writer::WriterOptions::new().create().sync(SyncPolicy::None);
            let writer = options.open(path, ResumePoint::default()).unwrap();
            let mut end = 0;
            for number in 0..lines {
                let json = |number: usize| {
                    let text = text(number % 900_000_000 * 3);
                    format!("{{\"type\":\"user\",\"uuid\":\"u{number}\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}")
                };
                let draft = |number| Draft::entry(&json(number)).unwrap();
                // The line is longer than this.
                limit(Some(end + rng.below(json(number).len()) as u64));
                if writer.append(draft(900_000_000 + number)).is_err() {
                    refused.fetch_add(1, Ordering::Relaxed);
                    pause(&mut rng);
                    limit(None);
                    let written = writer.append(draft(number)).unwrap();
                    end = written.offset + written.len + 1;
                } else {
                    panic!("it was not cut short");
                }
            }
            limit(None);
            writer.close().unwrap();
        });
        read(&mut follower, lines)
    });
    let refused = refused.load(Ordering::Relaxed);
    println!("limit: {refused} appends cut short and truncated; {seen:?}");
    assert_eq!((seen.lines, seen.violations(), seen.resets), (lines, 0, 0));
}

#[test]
fn files_that_take_the_name_one_after_the_other_lose_nothing() {
    let mut rng = rng("swaps");
    let folder = folder();
    let path = folder.path().join("s1.jsonl");
    let swaps = often(150, 50);
    let (files, is_done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut follower = Follower::new(&path, &FollowOptions::new());
    let mut seen = Seen::default();
    let written = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let _done = Done(&is_done);
            let mut number = 0;
            let mut file = appender(&path);
            for swap in 0..=swaps {
                // Under load, more lines are written until the reader has seen this file.
                let mut left = rng.range(1, 60);
                let first = number;
                while left > 0 || files.load(Ordering::Acquire) <= swap {
                    assert!(number < first + 100_000, "the reader sees no other file");
                    // A writer that is faster than the reader must let it catch up.
                    if number % 500 == 499 {
                        thread::sleep(Duration::from_millis(2));
                    }
                    let line = line(number, rng.below(3_000));
                    let (start, end) = line.as_bytes().split_at(rng.below(line.len()));
                    file.write_all(start).unwrap();
                    file.write_all(end).unwrap();
                    number += 1;
                    left = usize::saturating_sub(left, 1);
                }
                if swap < swaps {
                    let other = path.with_extension("new");
                    file = OpenOptions::new()
                        .append(true)
                        .create_new(true)
                        .open(&other)
                        .unwrap();
                    for _ in 0..rng.below(3) {
                        file.write_all(line(number, 0).as_bytes()).unwrap();
                        number += 1;
                    }
                    fs::rename(&other, &path).unwrap();
                }
            }
            number
        });
        loop {
            let was_done = is_done.load(Ordering::Acquire);
            match follower.next_within(Duration::from_millis(1)).unwrap() {
                Some(emitted) => seen.count(&emitted.kind),
                None if was_done => break,
                None => {}
            }
            let is_open = follower.offset() > 0 || seen.resets > 0;
            files.store(seen.resets + usize::from(is_open), Ordering::Release);
        }
        writer.join().unwrap()
    });
    println!("swaps: {swaps} under load; {seen:?}");
    assert_eq!(
        (seen.lines, seen.violations(), seen.resets),
        (written, 0, swaps)
    );
}

#[test]
fn a_line_that_is_written_just_before_a_swap_is_reported() {
    let folder = fast_folder();
    let path = folder.path().join("s1.jsonl");
    let swaps = often(3_000, 2_500);
    let (emitted, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut follower = Follower::new(&path, &FollowOptions::new().poll_only());
    let mut seen = Seen::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            let other = path.with_extension("new");
            let mut file = appender(&path);
            file.write_all(line(0, 0).as_bytes()).unwrap();
            for swap in 0..swaps {
                let mut next = appender(&other);
                next.write_all(line(swap * 2 + 2, 0).as_bytes()).unwrap();
                // The reader has read everything, and polls.
                while emitted.load(Ordering::Acquire) <= swap * 2
                    && !is_over.load(Ordering::Acquire)
                {
                    thread::yield_now();
                }
                file.write_all(line(swap * 2 + 1, 0).as_bytes()).unwrap();
                fs::rename(&other, &path).unwrap();
                file = next;
            }
        });
        let _over = Done(&is_over);
        let deadline = Instant::now() + Duration::from_secs(120);
        while seen.lines < swaps * 2 + 1 && Instant::now() < deadline {
            if let Some(next) = follower.try_next().unwrap() {
                seen.count(&next.kind);
            }
            emitted.store(seen.lines, Ordering::Release);
        }
    });
    println!("swaps, hot: {seen:?}");
    let lines = swaps * 2 + 1;
    assert_eq!(
        (seen.lines, seen.violations(), seen.resets),
        (lines, 0, swaps)
    );
}
