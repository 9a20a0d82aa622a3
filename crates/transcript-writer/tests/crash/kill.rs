//! `kill -9` of a process that appends, at any time.

use std::fs;
use std::path::Path;

use transcript_testkit::rng::Rng;

use crate::driver::{Event, Fix, Job, Task, acks, fix};
use crate::ledger::Ledger;
use crate::support::{folder, rng, serial, soak};

/// Text sizes in bytes. None of them divides a page.
const SIZES: [usize; 6] = [1, 100, 999, 4_097, 65_537, 1_000_003];

#[derive(Debug, Default)]
struct Tally {
    kills: usize,
    acked: usize,
    lines: usize,
    torn_tails: usize,
    lost: usize,
    doubled: usize,
    spliced: usize,
    other: usize,
    orphans: usize,
}

impl Tally {
    fn violations(&self) -> usize {
        self.lost + self.doubled + self.spliced + self.other + self.orphans
    }

    fn add(&mut self, other: &Self) {
        self.kills += other.kills;
        self.acked += other.acked;
        self.lines += other.lines;
        self.torn_tails += other.torn_tails;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.spliced += other.spliced;
        self.other += other.other;
        self.orphans += other.orphans;
    }
}

#[test]
fn acknowledged_entries_are_in_the_file_after_a_kill() {
    let _serial = serial();
    let mut rng = rng("kill");
    let mut total = Tally::default();
    for size in SIZES {
        let tally = kill_again_and_again(Task::Ours, size, 50 * soak(), &mut rng);
        println!("kill, ours, {size} bytes: {tally:?}");
        assert_eq!(tally.violations(), 0, "{tally:?}");
        total.add(&tally);
    }
    println!("kill, ours: {total:?}");
}

#[test]
fn a_naive_writer_loses_lines_to_a_kill() {
    let _serial = serial();
    let mut rng = rng("kill, naive");
    let mut total = Tally::default();
    for size in [999, 4_097, 65_537] {
        let tally = kill_again_and_again(Task::Naive, size, 50 * soak(), &mut rng);
        println!("kill, naive, {size} bytes: {tally:?}");
        total.add(&tally);
    }
    println!("kill, naive: {total:?}");
    assert!(total.violations() > 0, "{total:?}");
}

/// Repeatedly kills processes that append to the same file; a naive one until the first damage.
fn kill_again_and_again(task: Task, size: usize, kills: usize, rng: &mut Rng) -> Tally {
    let folder = folder();
    let path = folder.path().join("session.jsonl");
    let mut job = Job::new(task, &path);
    job.sizes = vec![size];
    let mut ledger = Ledger::new(&path, &job.sizes);
    let mut tally = Tally::default();
    // About 2 MB per process.
    let most = (2_000_000 / (size + 300)).clamp(2, 300);
    let mut tail = Vec::new();
    for _ in 0..kills {
        let mut life = job.start();
        let mut events = life.until(rng.below(most));
        if rng.one_in(2) {
            wait_for_growth(&path);
        }
        for _ in 0..rng.below(1_000) {
            std::hint::spin_loop();
        }
        events.extend(life.kill());
        let acks = acks(&events);
        let refused = events
            .iter()
            .find(|event| matches!(event, Event::Failed(..)));
        assert_eq!(refused, None);
        if task == Task::Ours {
            check_repair(fix(&events).as_ref(), ledger.end(), &tail);
        }
        tail = ledger.read();
        tally.kills += 1;
        tally.acked += acks.len();
        tally.torn_tails += usize::from(!tail.is_empty());
        tally.lost += ledger.lost(&acks);
        count(task, &ledger, &mut tally);
        if tally.violations() > 0 {
            return tally;
        }
        // The record after the last acknowledged one may be in the file too.
        job.first = acks.last().map_or(job.first, |ack| ack.number) + 2;
        job.leaf = ledger.leaf();
    }
    job.count = 1;
    let (events, status) = job.start().finish();
    assert!(status.success(), "{events:?}");
    if task == Task::Ours {
        check_repair(fix(&events).as_ref(), ledger.end(), &tail);
    }
    assert_eq!(ledger.read(), b"");
    tally.lost += ledger.lost(&acks(&events));
    count(task, &ledger, &mut tally);
    tally
}

/// Waits until the file grows, so that a kill hits while a line is being written. The wait is
/// limited, because the process may wait for us.
fn wait_for_growth(path: &Path) {
    let len = || fs::metadata(path).map_or(0, |metadata| metadata.len());
    let before = len();
    let mut looks = 0..20_000;
    while len() == before && looks.next().is_some() {}
}

fn count(task: Task, ledger: &Ledger, tally: &mut Tally) {
    tally.lines = ledger.records.len();
    tally.doubled = ledger.doubled;
    tally.spliced = ledger.spliced;
    tally.other = ledger.torn + ledger.bad;
    // The naive writer writes no parents.
    if task == Task::Ours {
        tally.orphans = ledger.orphans();
    }
}

/// Asserts that opening reported the bytes after the last newline, at `offset`, and saved them.
pub(crate) fn check_repair(fix: Option<&Fix>, offset: u64, tail: &[u8]) {
    let is_whole = || serde_json::from_slice::<serde_json::Value>(tail).is_ok();
    match fix {
        // Killed before it could report.
        None => {}
        Some(Fix::None) => assert_eq!(tail.len(), 0, "a torn tail was not reported"),
        Some(Fix::Completed(at)) => {
            assert_eq!(*at, offset);
            assert!(is_whole(), "half a record was completed");
        }
        Some(Fix::Cut(at, len, saved)) => {
            assert_eq!((*at, *len), (offset, tail.len() as u64));
            assert!(!is_whole(), "a whole record was cut");
            assert_eq!(fs::read(saved).unwrap(), tail);
        }
        Some(Fix::Sealed(..)) => panic!("sealed, though nobody else has the file open"),
    }
}
