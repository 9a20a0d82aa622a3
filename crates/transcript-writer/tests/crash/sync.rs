//! A disk that fails to sync.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use transcript_writer::SyncPolicy;

use crate::driver::{Event, Job, Task};
use crate::ledger::Ledger;
use crate::support::{folder, has_strace, mode, serial};

#[test]
fn nothing_is_called_durable_after_a_failed_sync() {
    let _serial = serial();
    if !has_strace() {
        return;
    }
    let (mut cases, mut failed, mut rescued) = (0, 0, 0);
    for policy in [
        SyncPolicy::None,
        SyncPolicy::Interval(Duration::from_millis(100)),
        SyncPolicy::Each,
    ] {
        for at in 1..=8 {
            cases += 1;
            let folder = folder();
            let path = folder.path().join("session.jsonl");
            let mut job = Job::new(Task::Ours, &path);
            (job.sync, job.count, job.sync_every) = (policy, 24, 3);
            job.sizes = vec![100, 999, 4_097];
            // One failure and then successes, which must not be trusted.
            let inject = format!("inject=fdatasync:error=EIO:when={at}");
            let prefix = [
                "strace",
                "-f",
                "-qq",
                "-o",
                "/dev/null",
                "-e",
                "trace=fdatasync",
                "-e",
                &inject,
            ];
            let (events, status) = job.start_under(&prefix).finish();
            assert!(status.success(), "{policy:?} {at}: {events:?}");

            let is_failure = |event: &Event| match event {
                Event::Failed(kind, _) | Event::Synced(kind) | Event::Closed(kind) => {
                    kind == "sync-failed"
                }
                _ => false,
            };
            let Some(first) = events.iter().position(is_failure) else {
                // Everything was synced before.
                assert!(events.contains(&Event::Closed("ok".to_owned())));
                continue;
            };
            failed += 1;
            let after = &events[first..];
            let is_ok = |event: &Event| match event {
                Event::Synced(kind) | Event::Closed(kind) => kind == "ok",
                Event::Ack(_) => true,
                _ => false,
            };
            assert!(!after.iter().any(is_ok), "{policy:?} {at}: {after:?}");

            let mut in_file = Ledger::new(&path, &job.sizes);
            assert_eq!(in_file.read(), b"");
            let rescue = events.iter().find_map(|event| match event {
                Event::Rescue(path) => Some(path.clone()),
                _ => None,
            });
            // Entries that were acknowledged since the last successful sync may be lost.
            let synced = |event: &Event| *event == Event::Synced("ok".to_owned());
            let last = events[..first].iter().rposition(synced).unwrap_or(0);
            let unsynced: Vec<&str> = events[last..first]
                .iter()
                .filter_map(|event| match event {
                    Event::Ack(ack) => Some(ack.uuid.as_str()),
                    _ => None,
                })
                .collect();
            let held = rescue_uuids(rescue.as_ref(), &job.sizes);
            if policy == SyncPolicy::None {
                assert_eq!(held, unsynced, "{at}");
            }
            for event in &events[..first] {
                if let Event::Ack(ack) = event {
                    let is_somewhere =
                        in_file.lost(std::slice::from_ref(ack)) == 0 || held.contains(&ack.uuid);
                    assert!(is_somewhere, "{policy:?} {at}: {ack:?}");
                }
            }
            rescued += held.len();
        }
    }
    println!("sync: {cases} cases, {failed} failed syncs, {rescued} entries rescued, 0 lost");
    assert!(failed > 15);
}

fn rescue_uuids(rescue: Option<&PathBuf>, sizes: &[usize]) -> Vec<String> {
    let Some(rescue) = rescue else {
        return Vec::new();
    };
    assert_eq!(mode(rescue), 0o600);
    assert!(!fs::read(rescue).unwrap().is_empty());
    let mut ledger = Ledger::new(rescue, sizes);
    assert_eq!(ledger.read(), b"");
    assert_eq!(ledger.torn + ledger.spliced + ledger.bad, 0);
    ledger
        .records
        .into_iter()
        .map(|record| record.uuid)
        .collect()
}
