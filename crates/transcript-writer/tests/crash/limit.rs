//! Writes that are cut short at every byte, by a limit on the size of files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::driver::{AnyWriter, Event, Job, Reporter, Task};
use crate::ledger::Ledger;
use crate::support::{fast_folder, serial, soak};

const SIZES: [usize; 3] = [100, 999, 4_097];

const MAX_ROOM: u64 = 8_192;

#[test]
fn a_write_cut_short_at_any_byte_leaves_nothing_of_the_entry() {
    let _serial = serial();
    for size in SIZES {
        let [cases, failures, appended, damage] = sweep(Task::Limit, size);
        println!(
            "limit, ours, {size} bytes: {cases} cases, {failures} cut short, {appended} appended"
        );
        assert!(failures > 0);
        assert_eq!(damage, 0);
    }
}

#[test]
fn a_naive_writer_leaves_half_lines_when_cut_short() {
    let _serial = serial();
    for size in SIZES {
        let [cases, failures, appended, damage] = sweep(Task::LimitNaive, size);
        println!(
            "limit, naive, {size} bytes: {cases} cases, {failures} cut short, {appended} appended, {damage} damaged or lost"
        );
        assert!(damage > 0);
    }
}

fn sweep(task: Task, size: usize) -> [u64; 4] {
    let folder = fast_folder();
    let mut job = Job::new(task, &folder.path().join("session.jsonl"));
    job.sizes = vec![size];
    // Every byte in a soak run.
    job.count = if soak() == 1 { 13 } else { 1 };
    let (events, status) = job.start().finish();
    assert!(status.success());
    match events.last() {
        Some(Event::Counts(counts)) => counts.as_slice().try_into().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Allows the file to grow by 0, then `count`, then twice `count` … bytes.
pub(crate) fn child(job: &Job, reporter: &Reporter) {
    // As the command does; otherwise the first write beyond the limit ends the process.
    transcript_storage::ignore_file_size_signal();
    let (mut cases, mut failures, mut appended, mut damage) = (0, 0, 0, 0);
    let mut ledger = Ledger::new(&job.path, &job.sizes);
    let appender = AnyWriter::open(job);
    let mut number = 0;
    for room in (0..=MAX_ROOM).step_by(job.count as usize) {
        let mut acks = Vec::new();
        let before = ledger.end();
        limit(Some(before + room));
        // More records than fit, and then two more, which must be written.
        let mut left = 2;
        while left > 0 {
            match appender.append(job, number) {
                Some(ack) => acks.push(ack),
                None => left -= 1,
            }
            number += 1;
        }
        failures += 2;
        damage += usize::from(!ledger.read().is_empty());
        limit(None);
        match appender.append(job, number) {
            Some(ack) => acks.push(ack),
            None => damage += 1,
        }
        number += 1;
        damage += usize::from(!ledger.read().is_empty());
        damage += ledger.lost(&acks);
        cases += 1;
        appended += acks.len();
        assert!(room < 2_000 || acks.len() > 1 || job.sizes[0] > 1_000);
    }
    assert!(matches!(appender, AnyWriter::Naive(_)) || ledger.orphans() == 0);
    damage += ledger.torn + ledger.spliced + ledger.bad + ledger.doubled;
    reporter.report(&format!("counts {cases} {failures} {appended} {damage}"));
}

/// Sets the maximum size of files of this process.
fn limit(bytes: Option<u64>) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Fsize);
    let current = bytes.or(maximum);
    setrlimit(Resource::Fsize, Rlimit { current, maximum }).unwrap();
}
