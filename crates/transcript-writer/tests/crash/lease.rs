//! Opens a session while others open the file too: the check for other writers must disturb neither
//! side.

use std::fs::{self, OpenOptions};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use transcript_writer::OnBusy;

use crate::driver::{Event, Job, Task};
use crate::support::{folder, serial, soak};

#[test]
fn opening_the_file_at_the_same_time_neither_kills_nor_fails_another_opening() {
    let _serial = serial();
    let folder = folder();
    let path = folder.path().join("session.jsonl");
    fs::write(&path, "{\"type\":\"user\",\"uuid\":\"a\"}\n").unwrap();
    let mut job = Job::new(Task::Open, &path);
    job.count = 2_000 * soak() as u64;
    job.on_busy = OnBusy::Share;
    let is_over = AtomicBool::new(false);
    let mut foreign = 0;
    thread::scope(|scope| {
        // Like the real client: opens and closes the file for each line.
        let others = scope.spawn(|| {
            let mut count = 0;
            while !is_over.load(Ordering::Relaxed) {
                drop(OpenOptions::new().append(true).open(&path).unwrap());
                count += 1;
            }
            count
        });
        let lives = [job.start(), job.start()];
        let ends = lives.map(|life| scope.spawn(|| life.finish()));
        let ends = ends.map(|end| end.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        foreign = others.join().unwrap();
        for (events, status) in ends {
            assert!(status.success(), "{status}");
            assert_eq!(events, [Event::Counts(vec![job.count])]);
        }
    });
    println!(
        "lease: {} openings, {foreign} by others at the same time",
        2 * job.count
    );
    assert!(foreign > job.count as i32 / 4);
}
