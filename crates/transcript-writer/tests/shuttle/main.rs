//! The hand-off between callers, the thread that writes and the one that syncs, under many
//! schedules. The model checker `shuttle` chooses them at random, and detects deadlocks.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p transcript-writer --test shuttle`
#![cfg(shuttle)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod scenario;

use std::io::ErrorKind::{StorageFull, TimedOut};
use std::sync::Arc;
use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread::{JoinHandle, spawn, yield_now};
use transcript_testkit::fake_disk::{Fault, Op};
use transcript_writer::{Draft, ErrorKind, SyncPolicy, Ticket, Writer};

use crate::scenario::{Scenario, check, one_in, pick, turn};

const INTERVAL: SyncPolicy = SyncPolicy::Interval(Duration::from_millis(100));

type Tickets = Vec<(String, Ticket)>;

/// Makes `calls` random calls. Returns the tickets whose results are unknown.
fn write_some(scenario: &Scenario, writer: &Writer, caller: usize, calls: usize) -> Tickets {
    let mut tickets = Tickets::new();
    let mut number = 0;
    let mut next = || {
        number += 1;
        format!("{caller}-{number}")
    };
    for _ in 0..calls {
        match thread_rng().gen_range(0..5) {
            0 => drop(scenario.append(writer, &[next()])),
            1 => drop(scenario.append(writer, &[next(), next()])),
            2 => {
                // After a flush, everything that this caller queued is in the file.
                if writer.flush().is_ok() && !scenario.ledger().had_power_cut {
                    let all = scenario.all();
                    for (text, ticket) in &tickets {
                        let is_lost = matches!(ticket.outcome(), Some(Err(_)));
                        assert!(is_lost || all.contains(text), "{text} was not flushed");
                    }
                }
            }
            _ => {
                let text = next();
                match writer.queue(Draft::user(&text)) {
                    Ok(ticket) => {
                        scenario.ledger().taken.insert(text.clone());
                        tickets.push((text, ticket));
                    }
                    Err(error) => drop(scenario.note(&text, Err(error))),
                }
            }
        }
    }
    tickets
}

/// Waits for the results of queued entries.
fn wait(scenario: &Scenario, tickets: &[(String, Ticket)]) -> Result<(), ErrorKind> {
    let mut result = Ok(());
    for (text, ticket) in tickets {
        let outcome = scenario.note(text, ticket.wait());
        result = result.and(outcome);
    }
    result
}

/// Starts three callers that share the writer.
fn start(
    scenario: &Arc<Scenario>,
    writer: &Arc<Writer>,
    run: impl Fn(&Scenario, Arc<Writer>, usize) + Copy + Send + 'static,
) -> Vec<JoinHandle<()>> {
    let callers = (0..3).map(|caller| {
        let (scenario, writer) = (Arc::clone(scenario), Arc::clone(writer));
        spawn(move || run(&scenario, writer, caller))
    });
    callers.collect()
}

fn join(callers: Vec<JoinHandle<()>>) {
    for caller in callers {
        caller.join().unwrap();
    }
}

fn only(writer: Arc<Writer>) -> Writer {
    Arc::into_inner(writer).unwrap()
}

#[test]
fn entries_of_three_callers_are_in_the_file_once_and_in_order_while_another_syncs() {
    check(1_000, || {
        let scenario = Scenario::new();
        let policy = pick(&[SyncPolicy::None, INTERVAL]);
        let writer = Arc::new(scenario.open(policy));
        let callers = start(&scenario, &writer, |scenario, writer, caller| {
            let tickets = write_some(scenario, &writer, caller, 4);
            wait(scenario, &tickets).unwrap();
        });
        for _ in 0..2 {
            scenario.sync(&writer).unwrap();
        }
        join(callers);
        assert_eq!(writer.stats().unacknowledged, 0);
        if policy == INTERVAL {
            // The sync happens after its interval without a call.
            while !scenario.is_durable() {
                yield_now();
            }
        }
        only(writer).close().unwrap();
        scenario.check_closed();
        assert!(scenario.ledger().refused.is_empty());
    });
}

#[test]
fn a_write_that_fails_takes_nothing_and_queued_entries_come_later() {
    check(1_000, || {
        let scenario = Scenario::new();
        let writer = Arc::new(scenario.open(pick(&[SyncPolicy::None, INTERVAL, SyncPolicy::Each])));
        for _ in 0..thread_rng().gen_range(1..4) {
            let fault = match thread_rng().gen_range(0..2) {
                0 => Fault::error(StorageFull),
                _ => Fault::torn(thread_rng().gen_range(0..900), TimedOut),
            };
            let nth = thread_rng().gen_range(1..6);
            scenario.disk.set(fault.at(Op::Append, nth));
        }
        if one_in(2) {
            // The rest of the failed write is truncated later.
            scenario
                .disk
                .set(Fault::error(TimedOut).at(Op::Truncate, 1));
        }
        let callers = start(&scenario, &writer, |scenario, writer, caller| {
            let tickets = write_some(scenario, &writer, caller, 4);
            // The thread retries by itself.
            wait(scenario, &tickets).unwrap();
        });
        join(callers);
        scenario.disk.clear_faults();
        only(writer).close().unwrap();
        // This includes truncations: a refused entry does not come back with a power cut.
        scenario.check_closed();
    });
}

#[test]
fn refused_entry_does_not_reappear_after_a_power_cut() {
    check(1_000, || {
        let scenario = Scenario::new();
        let policy = pick(&[SyncPolicy::None, INTERVAL]);
        let writer = Arc::new(scenario.open(policy));
        scenario.append(&writer, &["0-1".to_owned()]).unwrap();
        let syncer = {
            let (scenario, writer) = (Arc::clone(&scenario), Arc::clone(&writer));
            // It may happen between a failed write and its truncation.
            spawn(move || {
                let _ = scenario.sync(&writer);
            })
        };
        let torn = Fault::torn(thread_rng().gen_range(0..700), TimedOut);
        scenario.disk.set(torn.at(Op::Append, 1));
        let is_cut_at_once = one_in(2);
        if !is_cut_at_once {
            let late = Fault::error(TimedOut).at(Op::Truncate, 1);
            scenario.disk.set(late);
        }
        scenario.append(&writer, &["1-1".to_owned()]).unwrap_err();
        join(vec![syncer]);
        if is_cut_at_once && policy == INTERVAL {
            while !scenario.is_durable() {
                yield_now();
            }
        } else {
            scenario.sync(&writer).unwrap();
            assert!(scenario.is_durable());
        }
        only(writer).close().unwrap();
        scenario.check_closed();
    });
}

#[test]
fn entry_acknowledged_with_a_sync_for_each_is_durable_at_once_and_after_a_power_cut() {
    check(1_000, || {
        let scenario = Scenario::new();
        let writer = Arc::new(scenario.open(SyncPolicy::Each));
        let has_power = one_in(2);
        let callers = start(&scenario, &writer, move |scenario, writer, caller| {
            let mut tickets = write_some(scenario, &writer, caller, 3);
            let acked = scenario.ledger().acked.clone();
            scenario.assert_durable(acked.keys());
            // After a power cut they get their result at the end.
            drop(writer);
            if has_power {
                for queued in tickets.drain(..) {
                    wait(scenario, std::slice::from_ref(&queued)).unwrap();
                    scenario.assert_durable([&queued.0]);
                }
            }
            let _ = wait(scenario, &tickets);
        });
        if has_power {
            let _ = scenario.append(&writer, &["9-1".to_owned()]);
            scenario.assert_durable([&"9-1".to_owned()]);
        } else {
            for _ in 0..thread_rng().gen_range(0..80) {
                turn();
            }
            scenario.cut_power();
        }
        drop(writer);
        join(callers);
        scenario.cut_power();
        scenario.assert_durable(scenario.ledger().acked.keys());
    });
}

#[test]
fn tickets_of_a_writer_that_ends_are_notified_and_nothing_acknowledged_is_missing() {
    check(1_000, || {
        let scenario = Scenario::new();
        let writer = Arc::new(scenario.open(pick(&[SyncPolicy::None, INTERVAL, SyncPolicy::Each])));
        if one_in(3) {
            let nth = thread_rng().gen_range(1..6);
            let fault = Fault::error(StorageFull).at(Op::Append, nth);
            scenario.disk.set(fault.lasting());
        }
        let callers = start(&scenario, &writer, |scenario, writer, caller| {
            let tickets = write_some(scenario, &writer, caller, 3);
            // The last caller ends the writer, while others wait.
            if one_in(2) {
                drop(writer);
            } else if let Some(writer) = Arc::into_inner(writer) {
                let result = writer.close();
                assert!(result.is_ok() || scenario.disk.faults_left() > 0);
            }
            match wait(scenario, &tickets) {
                Ok(()) => {}
                Err(kind) => {
                    assert_eq!(kind, ErrorKind::Closed);
                    assert!(scenario.disk.faults_left() > 0);
                }
            }
        });
        drop(writer);
        join(callers);
        scenario.check_promises();
        // The last sync may happen after the drop.
        while scenario.disk.faults_left() == 0 && !scenario.is_durable() {
            yield_now();
        }
    });
}

#[test]
fn no_sync_succeeds_after_a_failed_one_and_every_line_is_durable_or_rescued() {
    check(1_000, || {
        let scenario = Scenario::new();
        let policy = pick(&[SyncPolicy::None, INTERVAL, SyncPolicy::Each]);
        let writer = Arc::new(scenario.open(policy));
        let nth = thread_rng().gen_range(1..5);
        let fault = pick(&[Fault::lost_sync as fn() -> Fault, || Fault::errno(5)]);
        scenario.disk.set(fault().at(Op::Sync, nth));
        if one_in(2) {
            let nth = thread_rng().gen_range(1..6);
            scenario
                .disk
                .set(Fault::torn(300, TimedOut).at(Op::Append, nth));
        }
        let callers = start(&scenario, &writer, |scenario, writer, caller| {
            let mut tickets = write_some(scenario, &writer, caller, 2);
            let first = scenario.sync(&writer);
            // Any call that was writing has finished by now.
            let _ = writer.leaf();
            let all = scenario.all();
            let more = write_some(scenario, &writer, 3 + caller, 1);
            tickets.extend(more);
            let second = scenario.sync(&writer);
            if first == Err(ErrorKind::SyncFailed) {
                assert_eq!(second, first);
                writer.queue(Draft::user("more")).unwrap_err();
                turn();
                assert_eq!(scenario.all(), all, "written after bytes that may be lost");
            }
            let _ = wait(scenario, &tickets);
        });
        join(callers);
        let _ = scenario.sync(&writer);
        let rescue_files = writer.rescue().unwrap_or_default().files;
        let closed = only(writer).close().map_err(|error| error.kind());
        scenario.check_promises();
        if scenario.has_failed_sync() {
            assert_eq!(closed, Err(ErrorKind::SyncFailed));
            let safe = &scenario.durable() | &scenario.texts_in(&rescue_files);
            let ledger = scenario.ledger();
            for text in scenario.all() {
                assert!(safe.contains(&text), "{text} is not safe");
                // Only a caller that waited for a sync may get an error for an entry that is in the
                // file.
                let is_reported = policy == SyncPolicy::Each || !ledger.unsure.contains(&text);
                assert!(is_reported, "{text} is in the file");
            }
            assert_eq!(scenario.disk.names().len(), 1 + rescue_files.len());
        } else {
            closed.unwrap();
            scenario.check_closed();
        }
    });
}

#[test]
fn an_entry_has_its_amended_usage_exactly_when_the_amendment_was_taken() {
    check(1_000, || {
        let scenario = Scenario::new();
        let writer = Arc::new(scenario.open(pick(&[INTERVAL, SyncPolicy::Each])));
        let callers = start(&scenario, &writer, |scenario, writer, caller| {
            for number in 1..3 {
                let text = format!("{caller}-{number}");
                let message = format!(
                    r#"{{"id":"m{text}","role":"assistant","content":[{{"type":"text","text":"{text}"}}],"usage":{{"output_tokens":1}}}}"#
                );
                let draft = Draft::assistant(&message).unwrap().remove(0);
                let ticket = writer.queue(draft).unwrap();
                let other = ticket.clone();
                let by_other = spawn(move || {
                    other.amend(Some(r#"{"output_tokens":3}"#), Some("\"end_turn\""))
                });
                if one_in(3) {
                    writer.flush().unwrap();
                }
                let by_me = ticket.amend(Some(r#"{"output_tokens":2}"#), None);
                let by_other = by_other.join().unwrap();
                scenario.note(&text, ticket.wait()).unwrap();
                assert!(!ticket.amend(Some("{}"), None), "it is written");
                let usage = scenario.usage(&text);
                let is_right = match (by_me, by_other) {
                    (false, false) => usage == 1,
                    (true, false) => usage == 2,
                    (false, true) => usage == 3,
                    (true, true) => usage == 2 || usage == 3,
                };
                assert!(is_right, "{text} has {usage}: {by_me}, {by_other}");
            }
        });
        join(callers);
        only(writer).close().unwrap();
        scenario.check_closed();
    });
}

#[test]
fn callers_of_a_writer_that_holds_next_to_nothing_wait_and_go_on() {
    check(1_000, || {
        let scenario = Scenario::new();
        let policy = pick(&[SyncPolicy::None, INTERVAL, SyncPolicy::Each]);
        let options = scenario.options().sync(policy);
        let options = options.queue_bytes(pick(&[0, 1, 700, 3_000]));
        let writer = Arc::new(scenario.open_with(&options));
        let callers = start(&scenario, &writer, |scenario, writer, caller| {
            let tickets = write_some(scenario, &writer, caller, 4);
            if one_in(2) {
                scenario.sync(&writer).unwrap();
            }
            wait(scenario, &tickets).unwrap();
        });
        join(callers);
        only(writer).close().unwrap();
        scenario.check_closed();
        assert!(scenario.ledger().refused.is_empty());
    });
}

#[test]
fn sessions_that_share_the_threads_of_the_process_lose_nothing() {
    check(1_000, || {
        let policies = [SyncPolicy::None, INTERVAL, SyncPolicy::Each];
        let sessions: Vec<_> = (0..3)
            .map(|_| {
                let scenario = Scenario::new();
                let writer = Arc::new(scenario.open(pick(&policies)));
                (scenario, writer)
            })
            .collect();
        let fails = one_in(2);
        if fails {
            let fault = Fault::lost_sync();
            sessions[0].0.disk.set(fault.at(Op::Sync, 1));
        }
        let callers = sessions.iter().map(|(scenario, writer)| {
            let (scenario, writer) = (Arc::clone(scenario), Arc::clone(writer));
            spawn(move || {
                let tickets = write_some(&scenario, &writer, 0, 3);
                if one_in(2) {
                    let _ = scenario.sync(&writer);
                }
                let _ = wait(&scenario, &tickets);
            })
        });
        join(callers.collect());
        for (number, (scenario, writer)) in sessions.into_iter().enumerate() {
            let closed = only(writer).close();
            // A failure in one session does not affect the others.
            if number > 0 || !scenario.has_failed_sync() {
                closed.unwrap();
                scenario.check_closed();
                assert!(scenario.ledger().refused.is_empty());
            }
        }
    });
}

#[cfg(feature = "async")]
mod asynchronous {
    use std::future::Future;
    use std::pin::pin;
    use std::task::Poll;

    use shuttle::future::block_on;
    use transcript_writer::asynchronous::AsyncWriter;

    use super::*;

    #[test]
    fn tasks_get_what_became_of_their_entries_until_one_cancels() {
        check(1_000, || {
            let scenario = Scenario::new();
            let policy = pick(&[SyncPolicy::None, INTERVAL, SyncPolicy::Each]);
            let options = scenario.options().sync(policy);
            let has_room = one_in(2);
            let options = options.queue_bytes(if has_room { 16 << 20 } else { pick(&[0, 700]) });
            let writer = AsyncWriter::new(scenario.open_with(&options));
            let tasks = (0..3).map(|caller| {
                let (scenario, writer) = (Arc::clone(&scenario), writer.clone());
                spawn(move || {
                    for number in 1..4 {
                        let text = format!("{caller}-{number}");
                        let draft = Draft::user(&text);
                        if one_in(4) {
                            // Dropping a future cancels nothing.
                            if has_room && !writer.cancellation().is_cancelled() {
                                scenario.ledger().taken.insert(text);
                            }
                            block_on(async {
                                let mut append = pin!(writer.append(draft));
                                std::future::poll_fn(|context| {
                                    let _ = append.as_mut().poll(context);
                                    Poll::Ready(())
                                })
                                .await;
                            });
                            continue;
                        }
                        let outcome = block_on(writer.append(draft));
                        if let Err(kind) = scenario.note(&text, outcome) {
                            assert_eq!(kind, ErrorKind::Closed);
                            assert!(writer.cancellation().is_cancelled());
                        }
                    }
                    drop(block_on(writer.flush()));
                })
            });
            let tasks = tasks.collect();
            if one_in(2) {
                for _ in 0..thread_rng().gen_range(0..40) {
                    turn();
                }
                writer.cancellation().cancel();
            }
            drop(writer);
            join(tasks);
            scenario.check_promises();
            let all = scenario.all();
            for text in &scenario.ledger().taken {
                assert!(all.contains(text), "{text} is lost");
            }
        });
    }
}
