//! File-system events that arrive late, or never.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use transcript_tail::{EventKind, FollowEvent, FollowOptions, Follower};

use crate::support::{Done, append, appender, drain, folder, line, numbers, often, place};

/// Waits for an event, for a long time.
fn wait(follower: &mut Follower) -> FollowEvent {
    let emitted = follower.next_within(Duration::from_secs(60)).unwrap();
    emitted.expect("nothing came")
}

#[test]
fn file_under_another_name_is_found_without_an_event() {
    let (folder, path) = place();
    fs::create_dir(folder.path().join("other")).unwrap();
    let other = folder.path().join("other/name.jsonl");
    append(&path, line(0, 0).as_bytes());
    let mut follower = Follower::new(&path, &FollowOptions::new());
    drain(&mut follower);
    fs::hard_link(&path, &other).unwrap();
    // Events are trusted after one of them arrived; then one does not arrive.
    for number in (1..often(5, 2)).step_by(2) {
        for (number, path) in [(number, &path), (number + 1, &other)] {
            let writer = thread::spawn({
                let path = path.clone();
                move || append(&path, line(number, 300).as_bytes())
            });
            assert_eq!(numbers([&wait(&mut follower)]), [number]);
            writer.join().unwrap();
        }
    }
}

#[test]
fn a_folder_that_takes_the_place_of_the_watched_one_is_found() {
    let folder = folder();
    let project = folder.path().join("project");
    let path = project.join("s1.jsonl");
    let write = |at: &Path, number| {
        fs::create_dir(at).unwrap();
        append(&at.join("s1.jsonl"), line(number, 99).as_bytes());
    };
    write(&project, 0);
    let mut follower = Follower::new(&path, &FollowOptions::new());
    assert_eq!(drain(&mut follower).len(), 2);
    for number in 1..often(4, 4) {
        let (next, old) = (folder.path().join("next"), folder.path().join("old"));
        write(&next, number);
        fs::rename(&project, &old).unwrap();
        if number % 2 == 0 {
            assert!(matches!(wait(&mut follower).kind, EventKind::Gone { .. }));
        }
        fs::rename(&next, &project).unwrap();
        let emitted = wait(&mut follower);
        assert!(
            matches!(emitted.kind, EventKind::Reset { .. }),
            "{emitted:?}"
        );
        assert_eq!(numbers([&wait(&mut follower)]), [number]);
        fs::remove_dir_all(&old).unwrap();
        // The next events are about the new folder.
        append(&path, line(1_000 + number, 0).as_bytes());
        assert_eq!(numbers([&wait(&mut follower)]), [1_000 + number]);
    }
}

#[test]
fn a_flood_of_events_about_other_files_loses_nothing() {
    let (folder, path) = place();
    let is_over = AtomicBool::new(false);
    let lines = often(2_000, 5_000);
    let mut follower = Follower::new(&path, &FollowOptions::new());
    let mut emitted = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0_u64;
            while !is_over.load(Ordering::Acquire) {
                let other = folder.path().join(format!("{}.tmp", number % 500));
                append(&other, b"x");
                fs::remove_file(other).unwrap();
                number += 1;
            }
        });
        let _done = Done(&is_over);
        scope.spawn(|| {
            use std::io::Write;
            let mut file = appender(&path);
            for number in 0..lines {
                file.write_all(line(number, number % 777).as_bytes())
                    .unwrap();
            }
        });
        while emitted.len() < lines + 1 {
            emitted.push(wait(&mut follower));
        }
    });
    assert_eq!(numbers(&emitted), (0..lines).collect::<Vec<_>>());
    println!("flood: {lines} lines emitted once");
}
