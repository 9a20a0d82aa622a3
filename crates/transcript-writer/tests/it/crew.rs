//! Many sessions of one process, whose disks respond or do not.

use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use transcript_testkit::fake_disk::{FakeDisk, Fault, Op};
use transcript_writer::{Draft, Error, ErrorKind, SyncPolicy, Writer};

use crate::fake::{PATH, open_with, options, texts, texts_of, user};

/// A wait that takes longer has failed.
const LONG: Duration = Duration::from_secs(60);

/// A disk waits at it, and counts how many do.
#[derive(Default)]
struct Gate {
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |(_, is_open)| !*is_open));
    }

    fn open(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }

    fn wait_for(&self, count: usize) {
        let state = self.state.lock().unwrap();
        let is_missing = |(there, _): &mut (usize, bool)| *there < count;
        let waited = self.changed.wait_timeout_while(state, LONG, is_missing);
        let (state, waited) = waited.unwrap();
        assert!(!waited.timed_out(), "{} of {count} are there", state.0);
    }
}

#[test]
fn disks_that_do_not_respond_stop_no_session_of_another_disk() {
    // More of each than there are threads.
    const STUCK: usize = 12;
    let (syncs, writes) = (Arc::new(Gate::default()), Arc::new(Gate::default()));
    let mut stuck: Vec<(FakeDisk, Writer)> = Vec::new();
    for number in 0..2 * STUCK {
        let disk = FakeDisk::new(1);
        let soon = SyncPolicy::Interval(Duration::from_millis(1));
        let (gate, op) = match number % 2 {
            0 => (&syncs, Op::Sync),
            _ => (&writes, Op::Append),
        };
        let gate = Arc::clone(gate);
        let writer = open_with(&disk, &options(&disk).sync(soon));
        disk.set(Fault::hook(move |_| gate.pass()).at(op, 1));
        writer.queue(Draft::user("stuck")).unwrap();
        stuck.push((disk, writer));
    }
    // Each waits for its own disk, none for that of another.
    syncs.wait_for(STUCK);
    writes.wait_for(STUCK);

    for policy in [SyncPolicy::Each, SyncPolicy::None] {
        let disk = FakeDisk::new(1);
        let writer = open_with(&disk, &options(&disk).sync(policy));
        writer.append(Draft::user("one")).unwrap();
        let queued = writer.queue(Draft::user("two")).unwrap();
        queued.wait().unwrap();
        writer.sync().unwrap();
        writer.append(Draft::user("three")).unwrap();
        writer.close().unwrap();
        assert_eq!(texts(&disk.durable(PATH).unwrap()), ["one", "two", "three"]);
    }

    syncs.open();
    writes.open();
    for (disk, writer) in stuck {
        writer.close().unwrap();
        assert_eq!(texts(&disk.durable(PATH).unwrap()), ["stuck"]);
    }
}

#[test]
fn hundreds_of_sessions_that_are_written_at_once_lose_nothing_and_sync_by_themselves() {
    const COUNT: usize = 400;
    const EACH: usize = 5;
    let policies = [
        SyncPolicy::Interval(Duration::from_millis(100)),
        SyncPolicy::Each,
        SyncPolicy::Interval(Duration::ZERO),
    ];
    let sessions: Vec<(FakeDisk, Writer)> = (0..COUNT)
        .map(|number| {
            let disk = FakeDisk::new(1);
            let writer = open_with(&disk, &options(&disk).sync(policies[number % 3]));
            (disk, writer)
        })
        .collect();
    let mut tickets = Vec::new();
    for number in 0..EACH {
        for (_, writer) in &sessions {
            tickets.push(writer.queue(user(number)).unwrap());
        }
    }
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    let all = texts_of(0..EACH);
    for (disk, writer) in &sessions {
        assert_eq!(texts(&disk.bytes(PATH).unwrap()), all);
        // The writer counts the bytes as synced after the sync: the count comes last.
        while writer.stats().unsynced_bytes > 0 {
            std::thread::yield_now();
        }
        assert_eq!(disk.durable(PATH), disk.bytes(PATH));
    }
    for (disk, writer) in sessions {
        writer.close().unwrap();
        assert_eq!(texts(&disk.durable(PATH).unwrap()), all);
    }
}

#[test]
fn an_append_that_has_to_be_synced_keeps_no_thread_and_is_acknowledged_after_the_sync() {
    let disk = FakeDisk::new(1);
    let writer = open_with(&disk, &options(&disk).sync(SyncPolicy::Each));
    let gate = Arc::new(Gate::default());
    let theirs = Arc::clone(&gate);
    disk.set(Fault::hook(move |_| theirs.pass()).at(Op::Sync, 1));
    let (sender, acknowledged) = mpsc::channel();
    let append = |number: usize| {
        let sender = sender.clone();
        let then = move |written: Result<Vec<_>, Error>| sender.send((number, written)).unwrap();
        writer.append_all_then(vec![user(number)], then).unwrap();
    };
    // None of these calls waits.
    (0..20).for_each(append);
    gate.wait_for(1);
    assert_eq!(texts(&disk.bytes(PATH).unwrap()), texts_of(0..20));
    assert!(acknowledged.try_recv().is_err());
    gate.open();
    for number in 0..20 {
        let (answered, written) = acknowledged.recv_timeout(LONG).unwrap();
        assert_eq!((answered, written.unwrap().len()), (number, 1));
        let durable = texts(&disk.durable(PATH).unwrap());
        assert!(durable.contains(&texts_of([number])[0]), "{number}");
    }
    // One that cannot be written is not acknowledged, and one that cannot be synced is told.
    disk.set(Fault::error(std::io::ErrorKind::StorageFull).at(Op::Append, 1));
    let refused = writer.append_all_then(vec![user(50)], |_| panic!("it is not written"));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Full);
    disk.set(Fault::lost_sync().at(Op::Sync, 1));
    append(20);
    let (_, written) = acknowledged.recv_timeout(LONG).unwrap();
    assert_eq!(written.unwrap_err().kind(), ErrorKind::SyncFailed);
    assert_eq!(texts(&disk.bytes(PATH).unwrap()), texts_of(0..21));
}
