//! Several processes on one session.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use transcript_writer::OnBusy;

use crate::driver::{Ack, Event, Job, Task, acks};
use crate::ledger::Ledger;
use crate::support::{folder, rng, serial, soak};

const SIZES: [usize; 3] = [100, 999, 4_097];
const LONG: [usize; 3] = [100, 999, 65_537];

#[test]
fn eight_processes_take_turns_and_nothing_is_lost() {
    let _serial = serial();
    let count = 2_000 * soak();
    let (ledger, acked) = together(Task::Ours, count);
    assert_eq!(acked.len(), 8 * count);
    assert_eq!(ledger.records.len(), 8 * count);
    assert_eq!(ledger.lost(&acked), 0);
    assert_eq!(damage(&ledger), 0);
    assert!(ledger.is_in_order());
}

#[test]
fn eight_naive_processes_break_the_lines_of_each_other() {
    let _serial = serial();
    // On a single core they rarely interfere.
    let breaks = |_| {
        let (ledger, acked) = together(Task::Naive, 2_000);
        damage(&ledger) + ledger.lost(&acked) > 0
    };
    assert!((0..5).any(breaks));
}

fn together(task: Task, count: usize) -> (Ledger, Vec<Ack>) {
    let folder = folder();
    let path = folder.path().join("session.jsonl");
    let lives: Vec<_> = (0..8)
        .map(|writer| {
            let mut job = shared(task, &path, writer);
            job.count = count as u64;
            job.start()
        })
        .collect();
    let ends: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = lives
            .into_iter()
            .map(|life| scope.spawn(|| life.finish()))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let mut acked = Vec::new();
    let mut busy = 0;
    for (events, status) in ends {
        assert!(status.success());
        busy += events
            .iter()
            .filter(|event| matches!(event, Event::Failed(..)))
            .count();
        acked.extend(acks(&events));
    }
    let mut ledger = Ledger::new(&path, &SIZES);
    assert_eq!(ledger.read(), b"");
    println!(
        "together, {task:?}: {} acknowledged, {busy} busy, {} lines, {} lost, {} doubled, {} spliced, {} torn or bad",
        acked.len(),
        ledger.records.len(),
        ledger.lost(&acked),
        ledger.doubled,
        ledger.spliced,
        ledger.torn + ledger.bad,
    );
    (ledger, acked)
}

fn shared(task: Task, path: &Path, writer: u64) -> Job {
    let mut job = Job::new(task, path);
    job.writer = writer;
    job.sizes = SIZES.to_vec();
    job.on_busy = OnBusy::Share;
    job
}

fn damage(ledger: &Ledger) -> usize {
    ledger.torn + ledger.spliced + ledger.bad + ledger.doubled
}

#[test]
fn the_death_of_one_process_damages_no_line_of_another() {
    let _serial = serial();
    for _ in 0..soak() {
        let (ledger, survivor, others) = survive(Task::Ours, Task::Ours);
        assert_eq!(ledger.spliced + ledger.bad + ledger.doubled, 0);
        // Records of the killed processes were acknowledged too.
        assert_eq!(ledger.lost(&survivor) + ledger.lost(&others), 0);
        assert!(ledger.is_in_order());
    }
}

#[test]
fn the_death_of_a_naive_process_damages_lines_of_another() {
    let _serial = serial();
    let (ledger, survivor, _) = survive(Task::Naive, Task::Naive);
    assert!(ledger.spliced > 0 && ledger.lost(&survivor) > 0);
}

#[test]
fn a_foreign_writer_that_dies_damages_no_line_of_ours() {
    let _serial = serial();
    for _ in 0..soak() {
        let (ledger, ours, _) = survive(Task::Ours, Task::Naive);
        assert_eq!(ledger.lost(&ours), 0);
    }
}

#[test]
fn lines_of_ours_that_were_acknowledged_outlive_us_beside_a_foreign_writer() {
    let _serial = serial();
    for _ in 0..soak() {
        let (ledger, _, ours) = survive(Task::Naive, Task::Ours);
        assert_eq!(ledger.lost(&ours), 0);
    }
}

const KILLS: usize = 100;

/// Lets one process append while others next to it are killed, one after the other. Returns the
/// contents of the file, the acknowledgements of the first process, and those of the others.
fn survive(first: Task, second: Task) -> (Ledger, Vec<Ack>, Vec<Ack>) {
    let folder = folder();
    let path = folder.path().join("session.jsonl");
    let mut rng = rng("survivor");
    let mut survivor = shared(first, &path, 0).start();
    let mut seen = survivor.until(1);
    let stop = AtomicBool::new(false);
    let mut others = Vec::new();
    let mut busy = 0;
    let survivors = thread::scope(|scope| {
        let stop = &stop;
        let thread = scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let events = survivor.until(10);
                // The process never ends by itself.
                assert!(!events.is_empty());
                seen.extend(events);
            }
            seen.extend(survivor.kill());
            seen
        });
        let mut job = shared(second, &path, 1);
        // Long lines are torn more often.
        job.sizes = LONG.to_vec();
        for _ in 0..KILLS {
            let mut life = job.start();
            let mut events = life.until(rng.below(20));
            for _ in 0..rng.below(4_000) {
                std::hint::spin_loop();
            }
            events.extend(life.kill());
            busy += events
                .iter()
                .filter(|event| matches!(event, Event::Failed(..)))
                .count();
            let acked = acks(&events);
            job.first = acked.last().map_or(job.first, |ack| ack.number) + 2;
            others.extend(acked);
        }
        stop.store(true, Ordering::Relaxed);
        thread.join().unwrap()
    });
    busy += survivors
        .iter()
        .filter(|event| matches!(event, Event::Failed(..)))
        .count();
    let survivors = acks(&survivors);
    let mut ledger = Ledger::new(&path, &SIZES).and(&LONG);
    ledger.read();
    println!(
        "survivor {first:?}, killed {second:?}: {KILLS} kills, {} and {} acknowledged, {} and {} lost, \
         {busy} busy, {} doubled, {} spliced, {} torn, {} bad",
        survivors.len(),
        others.len(),
        ledger.lost(&survivors),
        ledger.lost(&others),
        ledger.doubled,
        ledger.spliced,
        ledger.torn,
        ledger.bad,
    );
    for (task, acks) in [(first, &survivors), (second, &others)] {
        if task == Task::Ours {
            print!("{}", ledger.explain(acks));
        }
    }
    (ledger, survivors, others)
}
