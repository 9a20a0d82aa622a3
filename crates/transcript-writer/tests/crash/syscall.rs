//! `kill -9` before each system call of the writer.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use crate::driver::{Event, Job, Task, acks, fix};
use crate::kill::check_repair;
use crate::ledger::Ledger;
use crate::support::{folder, has_strace, serial, soak};

/// Calls on the session file itself: strace gets its path.
const ON_THE_FILE: [&str; 4] = ["flock", "pread64", "fstat,statx", "fcntl"];

/// Calls on side files and folders too.
const ANYWHERE: [&str; 9] = [
    "write",
    "openat",
    "mkdir",
    "linkat",
    "ftruncate",
    "fdatasync",
    "fsync",
    "close",
    "futex",
];

#[test]
fn a_kill_before_any_system_call_loses_nothing_acknowledged() {
    let _serial = serial();
    if !has_strace() {
        return;
    }
    let folder = folder();
    let template = template(&folder.path().join("template.jsonl"));
    // 200 in a soak run.
    let appends = (8 * soak() as u64).min(200);
    let (mut kills, mut acked, mut torn) = (0, 0, 0);
    let path = folder.path().join("project").join("session.jsonl");
    for (name, template) in [("torn", &template[..]), ("new", &[])] {
        for (calls, on_the_file) in calls() {
            let mut points = 0;
            // Loading the program takes a few dozen calls, and there are several threads.
            for at in 1..appends * 20 + 200 {
                // Removes what the last run saved next to the file.
                let _ = fs::remove_dir_all(path.parent().unwrap());
                if !template.is_empty() {
                    fs::create_dir(path.parent().unwrap()).unwrap();
                    fs::write(&path, template).unwrap();
                }
                let run = kill_at(&path, calls, on_the_file, at, appends);
                acked += run.acked;
                torn += usize::from(run.torn);
                if !run.killed {
                    break;
                }
                points += 1;
            }
            println!("syscalls, {name} file, {calls}: {points} kills");
            kills += points;
        }
    }
    println!("syscalls: {kills} kills, {acked} acknowledged, 0 lost, {torn} torn tails");
    assert!(kills > 50, "the kills did not come: {kills}");
}

fn calls() -> impl Iterator<Item = (&'static str, bool)> {
    let on_the_file = ON_THE_FILE.map(|calls| (calls, true));
    on_the_file
        .into_iter()
        .chain(ANYWHERE.map(|calls| (calls, false)))
}

struct Run {
    killed: bool,
    acked: usize,
    torn: bool,
}

/// Kills a writer at the call number `at`, checks the file, and continues with another writer.
fn kill_at(path: &Path, calls: &str, on_the_file: bool, at: u64, appends: u64) -> Run {
    let mut job = Job::new(Task::Ours, path);
    job.sizes = vec![100, 999, 4_097];
    let mut ledger = Ledger::new(path, &job.sizes);
    let tail = ledger.read();
    (job.first, job.count, job.sync_every) = (10, appends, 4);
    job.leaf = ledger.leaf();
    let (trace, inject) = (
        format!("trace={calls}"),
        format!("inject={calls}:signal=KILL:when={at}"),
    );
    let mut prefix = vec!["strace", "-f", "-qq", "-o", "/dev/null"];
    if on_the_file {
        prefix.extend(["-P", path.to_str().unwrap()]);
    }
    prefix.extend(["-e", &trace, "-e", &inject]);
    let (events, status) = job.start_under(&prefix).finish();
    let killed = status.signal() == Some(9) || status.code() == Some(137);
    assert!(killed || status.success(), "{calls} {at}: {status}");
    let is_done = events.contains(&Event::Closed("ok".to_owned()));
    assert!(killed || is_done, "{calls} {at}: {events:?}");
    check_repair(fix(&events).as_ref(), ledger.end(), &tail);
    let acked = acks(&events);
    let tail = ledger.read();
    assert_eq!(ledger.lost(&acked), 0, "{calls} {at}");

    (job.first, job.count, job.leaf) = (10_000, 2, ledger.leaf());
    let (events, status) = job.start().finish();
    assert!(status.success());
    check_repair(fix(&events).as_ref(), ledger.end(), &tail);
    assert_eq!(ledger.read(), b"");
    let again = acks(&events);
    assert_eq!(again.len(), 2, "{calls} {at}: {events:?}");
    assert_eq!(ledger.lost(&again) + ledger.lost(&acked), 0, "{calls} {at}");
    assert_eq!(ledger.torn + ledger.spliced + ledger.bad, 0, "{calls} {at}");
    assert_eq!(ledger.doubled + ledger.orphans(), 0, "{calls} {at}");
    Run {
        killed,
        acked: acked.len(),
        torn: !tail.is_empty(),
    }
}

/// Returns two entries and the first bytes of a third, so that opening has something to repair.
fn template(path: &Path) -> Vec<u8> {
    let mut job = Job::new(Task::Ours, path);
    (job.sizes, job.count) = (vec![100, 999, 4_097], 3);
    assert!(job.start().finish().1.success());
    let bytes = fs::read(path).unwrap();
    let third = bytes[..bytes.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n');
    bytes[..third.unwrap() + 200].to_vec()
}
