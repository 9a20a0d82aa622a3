use std::fs::{self, OpenOptions};
use std::time::Duration;

use transcript_tail::{FollowOptions, Follower, StartAt};

use crate::words::{append, line, place, word};

fn drain(follower: &mut Follower) -> Vec<String> {
    let mut words = Vec::new();
    while let Some(emitted) = follower.try_next().expect("it is read") {
        words.push(word(&emitted));
    }
    words
}

#[test]
fn a_line_is_reported_when_its_newline_is_there() {
    let (_folder, path) = place();
    let mut follower = Follower::new(&path, &FollowOptions::new());
    assert_eq!(drain(&mut follower), [""; 0]);
    append(&path, &line(1));
    append(&path, &line(2)[..9]);
    assert_eq!(drain(&mut follower), ["open 0", "u1 0"]);
    assert_eq!(follower.pending_bytes(), 9);
    append(&path, &line(2)[9..]);
    assert_eq!(drain(&mut follower), ["u2 28"]);
    assert_eq!((follower.offset(), follower.pending_bytes()), (56, 0));
}

#[test]
fn bytes_that_a_writer_truncates_are_not_emitted() {
    let (_folder, path) = place();
    let mut follower = Follower::new(&path, &FollowOptions::new());
    append(&path, &line(1));
    append(&path, "{\"type\":\"user\",\"uuid\":\"no");
    assert_eq!(drain(&mut follower), ["open 0", "u1 0"]);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(28).unwrap();
    append(&path, &line(2));
    append(&path, &line(3));
    assert_eq!(drain(&mut follower), ["u2 28", "u3 56"]);
}

#[test]
fn cut_replaced_deleted_and_back() {
    let (folder, path) = place();
    let mut follower = Follower::new(&path, &FollowOptions::new());
    append(&path, &(line(1) + &line(2) + "torn"));
    assert_eq!(drain(&mut follower), ["open 0", "u1 0", "u2 28"]);
    fs::write(&path, line(3)).unwrap();
    assert_eq!(drain(&mut follower), ["truncated 56", "u3 0"]);
    fs::write(&path, line(4) + &line(5)).unwrap();
    assert_eq!(drain(&mut follower), ["replaced 28", "u4 0", "u5 28"]);
    append(&path, "{\"ty");
    let other = folder.path().join("other");
    fs::write(&other, line(6)).unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(
        drain(&mut follower),
        ["L-TORN-TAIL 56 4", "replaced 56", "u6 0"]
    );
    fs::remove_file(&path).unwrap();
    assert_eq!(drain(&mut follower), ["gone 28 0"]);
    append(&path, &line(7));
    assert_eq!(drain(&mut follower), ["replaced 28", "u7 0"]);
}

#[test]
fn following_starts_where_it_is_asked_to() {
    let (_folder, path) = place();
    append(&path, &(line(1) + &line(2) + &line(3) + "{"));
    let emitted = |start| {
        let mut follower = Follower::new(&path, &FollowOptions::new().start(start));
        drain(&mut follower)
    };
    assert_eq!(emitted(StartAt::End), ["open 84"]);
    assert_eq!(emitted(StartAt::Last(2)), ["open 28", "u2 28", "u3 56"]);
    assert_eq!(emitted(StartAt::Last(9)).len(), 4);
    assert_eq!(emitted(StartAt::Offset(28)), ["open 28", "u2 28", "u3 56"]);
    assert_eq!(emitted(StartAt::Offset(29)), ["open 56", "u3 56"]);
    assert_eq!(emitted(StartAt::Offset(84)), ["open 84"]);
    assert_eq!(emitted(StartAt::Offset(85)), ["open 84"]);
    assert_eq!(emitted(StartAt::Offset(86))[0], "truncated 86");
}

#[test]
fn a_waiting_follower_is_woken() {
    let (_folder, path) = place();
    let mut follower = Follower::new(&path, &FollowOptions::new());
    let stopper = follower.stopper();
    let writer = path.clone();
    std::thread::spawn(move || append(&writer, &line(1)));
    let emitted = follower
        .next_within(Duration::from_secs(10))
        .unwrap()
        .unwrap();
    assert_eq!(word(&emitted), "open 0");
    assert_eq!(word(&follower.next().unwrap().unwrap()), "u1 0");
    std::thread::spawn(move || stopper.stop());
    assert!(follower.next().is_none());
}
