//! Processes that are stopped, not killed.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use transcript_writer::{Draft, ErrorKind, OnBusy, ResumePoint, WriterOptions};

use crate::driver::{Event, Job, Task, acks};
use crate::ledger::Ledger;
use crate::support::{folder, rng, serial, soak};

const WAIT: Duration = Duration::from_millis(50);

#[test]
fn a_stopped_lock_holder_makes_others_busy_until_it_goes_on() {
    let _serial = serial();
    let folder = folder();
    let path = folder.path().join("session.jsonl");
    let wait = WriterOptions::new()
        .create()
        .on_busy(OnBusy::Share)
        .lock_wait(WAIT);
    let writer = wait.open(&path, ResumePoint::default()).unwrap();
    writer.append(Draft::user("First.")).unwrap();

    let mut holder = Job::new(Task::Hold, &path).start();
    assert_eq!(holder.next(), Some(Event::Held));
    holder.signal(Signal::STOP);
    let before = fs::read(&path).unwrap();
    for _ in 0..3 {
        let error = writer.append(Draft::user("Second.")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.is_retryable());
    }
    let error = wait.open(&path, ResumePoint::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!(fs::read(&path).unwrap(), before);

    // The reports that it wrote in the meantime are still in the pipe.
    holder.release();
    holder.signal(Signal::CONT);
    assert_eq!(holder.finish().0, [Event::Closed("ok".to_owned())]);
    writer.append(Draft::user("Second.")).unwrap();
    let lines = fs::read(&path).unwrap();
    assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), 2);
}

#[test]
fn writer_stopped_anywhere_loses_nothing_and_blocks_others_only_briefly() {
    let _serial = serial();
    let mut rng = rng("stop");
    let folder = folder();
    let path = folder.path().join("session.jsonl");
    let mut job = Job::new(Task::Ours, &path);
    (job.sizes, job.on_busy, job.lock_wait) = (vec![100, 65_537], OnBusy::Share, WAIT);
    let mut stopped = job.start();
    let mut acked = acks(&stopped.until(1));
    job.writer = 1;
    let (stops, mut busy, mut fine) = (20 * soak(), 0, 0);
    for _ in 0..stops {
        acked.extend(acks(&stopped.until(rng.range(1, 20))));
        stopped.signal(Signal::STOP);
        job.count = 2;
        let (events, status) = job.start().finish();
        assert!(status.success(), "{events:?}");
        for event in &events {
            match event {
                Event::Ack(ack) => {
                    fine += 1;
                    job.first = ack.number + 1;
                }
                Event::Failed(kind, _) => {
                    assert_eq!(kind, "busy");
                    busy += 1;
                }
                _ => {}
            }
        }
        acked.extend(acks(&events));
        stopped.signal(Signal::CONT);
    }
    acked.extend(acks(&stopped.kill()));
    let mut ledger = Ledger::new(&path, &job.sizes);
    ledger.read();
    println!(
        "stop: {stops} stops, {} acknowledged, {fine} by others meanwhile, {busy} busy",
        acked.len()
    );
    assert_eq!(ledger.lost(&acked), 0);
    assert_eq!(
        ledger.torn + ledger.spliced + ledger.bad + ledger.doubled,
        0
    );
}
