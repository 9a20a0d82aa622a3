//! Disks that repeatedly run out of space and get some back.

use std::fs;

use rustix::fs::FallocateFlags;
use transcript_testkit::rng::Rng;

use crate::driver::{AnyWriter, Event, Job, Reporter, Task};
use crate::ledger::Ledger;
use crate::support::{folder, serial, soak, works};

/// Mounts a private file system at `$2`, and runs the rest of the arguments in it.
const MEMORY: &str = r#"mount -t tmpfs -o size="$1" none "$2" && shift 2 && exec "$@""#;
const DISK: &str = r#"truncate -s "$1" "$2.img" && mkfs.ext4 -q -m 0 "$2.img" &&
    mount -o loop "$2.img" "$2" && shift 2 && exec "$@""#;

#[test]
fn a_full_file_system_in_memory_damages_no_line() {
    check(Task::Full, "tmpfs", MEMORY);
}

#[test]
fn a_full_disk_damages_no_line() {
    check(Task::Full, "ext4", DISK);
}

#[test]
fn a_naive_writer_leaves_half_lines_on_a_full_disk() {
    check(Task::FullNaive, "tmpfs", MEMORY);
}

fn check(task: Task, name: &str, script: &str) {
    let _serial = serial();
    let can = works(&["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"])
        && (name == "tmpfs" || works(&["sh", "-c", "command -v mkfs.ext4"]));
    if !can {
        println!("skipped: no root, no unshare or no mkfs.ext4 ({name})");
        return;
    }
    let folder = folder();
    let place = folder.path().join("small");
    fs::create_dir(&place).unwrap();
    let mut job = Job::new(task, &place.join("session.jsonl"));
    job.sizes = vec![999, 4_097, 65_537];
    job.count = 50 * soak() as u64;
    // A cycle adds 70 kB at most.
    let mib = 8 + job.count / 10;
    let size = format!("{mib}M");
    let place = place.to_str().unwrap();
    let prefix = ["unshare", "-m", "sh", "-c", script, "sh", &size, place];
    let (events, status) = job.start_under(&prefix).finish();
    assert!(status.success(), "{events:?}");
    let Some(Event::Counts(counts)) = events.last() else {
        panic!("{events:?}");
    };
    let [cycles, failures, appended, damage] = counts[..] else {
        panic!("{counts:?}");
    };
    println!(
        "full, {task:?}, {name}: {cycles} cycles, {failures} without space, {appended} appended, {damage} damaged or lost"
    );
    assert!(failures > 0);
    assert_eq!(damage > 0, task == Task::FullNaive);
}

/// Leaves little space, appends until there is none, and frees it again.
pub(crate) fn child(job: &Job, reporter: &Reporter) {
    let ballast = job.path.with_file_name("ballast");
    let mut rng = Rng::new(u64::from(std::process::id()));
    let mut ledger = Ledger::new(&job.path, &job.sizes);
    let appender = AnyWriter::open(job);
    let (mut failures, mut appended, mut damage, mut number) = (0, 0, 0, 0);
    for _ in 0..job.count {
        let free = rustix::fs::statvfs(job.path.parent().unwrap()).unwrap();
        let room = rng.below(60_000) as u64;
        let take = (free.f_bavail * free.f_frsize).saturating_sub(room);
        let file = fs::File::create(&ballast).unwrap();
        if take > 0 {
            // A file system may reserve some of the space; then less is left, and the disk is full
            // more often.
            let _ = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, take);
        }
        drop(file);
        let (mut acks, mut left) = (Vec::new(), 2);
        while left > 0 {
            match appender.append(job, number) {
                Some(ack) => acks.push(ack),
                None => left -= 1,
            }
            number += 1;
        }
        failures += 2;
        damage += usize::from(!ledger.read().is_empty());
        fs::remove_file(&ballast).unwrap();
        match appender.append(job, number) {
            Some(ack) => acks.push(ack),
            None => damage += 1,
        }
        number += 1;
        damage += usize::from(!ledger.read().is_empty());
        damage += ledger.lost(&acks);
        appended += acks.len();
    }
    assert!(matches!(appender, AnyWriter::Naive(_)) || ledger.orphans() == 0);
    damage += ledger.torn + ledger.spliced + ledger.bad + ledger.doubled;
    reporter.report(&format!(
        "counts {} {failures} {appended} {damage}",
        job.count
    ));
}
