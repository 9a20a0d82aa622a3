//! Files and folders that are created later.

use std::fs;
use std::thread;
use std::time::Duration;

use transcript_tail::{EventKind, FollowOptions, Follower, StartAt};

use crate::support::{append, drain, folder, line, numbers};

#[test]
fn a_file_in_folders_that_are_made_later_is_read_from_its_start() {
    for options in [FollowOptions::new(), FollowOptions::new().poll_only()] {
        let folder = folder();
        let path = folder
            .path()
            .join("projects/-home-ada/s1/subagents/agent-1.jsonl");
        let mut follower = Follower::new(&path, &options);
        let writer = thread::spawn({
            let path = path.clone();
            move || {
                let mut folders: Vec<_> = path.ancestors().skip(1).take(4).collect();
                while let Some(folder) = folders.pop() {
                    thread::sleep(Duration::from_millis(7));
                    fs::create_dir(folder).unwrap();
                }
                for number in 0..9 {
                    append(&path, line(number, number * 31).as_bytes());
                    thread::sleep(Duration::from_millis(1));
                }
            }
        });
        let mut emitted = Vec::new();
        while emitted.len() < 10 {
            let next = follower.next_within(Duration::from_secs(60)).unwrap();
            emitted.push(next.expect("nothing came"));
        }
        writer.join().unwrap();
        assert_eq!(emitted[0].kind, EventKind::Open { offset: 0 });
        assert_eq!(numbers(&emitted), (0..9).collect::<Vec<_>>());
    }
}

#[test]
fn file_that_appears_late_is_read_from_its_start() {
    for start in [StartAt::End, StartAt::Last(1), StartAt::Offset(200)] {
        let folder = folder();
        let path = folder.path().join("s1.jsonl");
        let mut follower = Follower::new(&path, &FollowOptions::new().poll_only().start(start));
        assert_eq!(drain(&mut follower), []);
        append(&path, (line(1, 60) + &line(2, 99)).as_bytes());
        let emitted = drain(&mut follower);
        assert_eq!(emitted[0].kind, EventKind::Open { offset: 0 });
        assert_eq!(numbers(&emitted), [1, 2]);
    }
}
