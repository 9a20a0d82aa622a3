//! Files that become other files: refilled, swapped, created again with the old inode number.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use transcript_tail::{
    Checkpoint, EventKind, FollowEvent, FollowOptions, Follower, Reset, StartAt,
};

use crate::support::{append, drain, fast_folder, folder, line, numbers, often, place, rng};

/// Returns the reasons of all resets.
fn resets(emitted: &[FollowEvent]) -> Vec<Reset> {
    let resets = emitted.iter().filter_map(|emitted| match emitted.kind {
        EventKind::Reset { reason, .. } => Some(reason),
        _ => None,
    });
    resets.collect()
}

/// Returns a line like a real one: the part that differs is followed by bytes that are the same in
/// each line.
fn usual(number: usize, text: &str) -> String {
    format!(
        "{{\"parentUuid\":null,\"isSidechain\":false,\"type\":\"user\",\"message\":{{\"role\":\"user\",\
         \"content\":\"{text}\"}},\"uuid\":\"u{number:06}\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\
         \"userType\":\"external\",\"cwd\":\"/home/ada/src/calendar\",\"sessionId\":\
         \"1999463e-ee08-4b08-99d5-2d9a36fd8293\",\"version\":\"2.1.0\",\"gitBranch\":\"main\"}}\n"
    )
}

fn refill(path: &Path, bytes: &[u8]) {
    let mut options = OpenOptions::new();
    options.write(true).open(path).unwrap().set_len(0).unwrap();
    append(path, bytes);
}

#[test]
fn a_file_that_is_emptied_and_filled_again_is_another_one() {
    let mut rng = rng("refill");
    let folder = fast_folder();
    let (mut missed, mut kinds) = (0, [0; 6]);
    let cases = often(1_000, 1_000);
    for case in 0..cases {
        let path = folder.path().join(format!("{case}.jsonl"));
        let kind = case % kinds.len();
        kinds[kind] += 1;
        let old: Vec<String> = (0..rng.range(1, 30)).map(|n| usual(n, "Hello.")).collect();
        append(&path, old.concat().as_bytes());
        let mut follower = Follower::new(&path, &FollowOptions::new().poll_only());
        assert_eq!(numbers(&drain(&mut follower)).len(), old.len());
        let emitted = follower.offset();
        let mut new: Vec<String> = match kind {
            // Shorter than the offset, exactly as long, and longer.
            0 => (0..old.len() - 1)
                .map(|n| usual(1_000 + n, "Hello."))
                .collect(),
            1 => (0..old.len()).map(|n| usual(1_000 + n, "Hello.")).collect(),
            2 => (0..old.len() + 9)
                .map(|n| usual(1_000 + n, "Hello."))
                .collect(),
            // The same first line, and the same number of bytes.
            3 => (0..old.len()).map(|n| usual(1_000 * n, "Hello.")).collect(),
            // Only the last line differs, with the same length, as after a rewind.
            4 => old[..old.len() - 1].to_vec(),
            // Lines of other lengths.
            _ => (0..old.len())
                .map(|n| line(1_000 + n, 1 + rng.below(900)))
                .collect(),
        };
        if kind == 4 {
            new.push(usual(1_000, "Hellp."));
        }
        if new.concat().len() as u64 == emitted && old == new {
            // Only one line, and the same one.
            continue;
        }
        refill(&path, new.concat().as_bytes());
        let emitted = drain(&mut follower);
        let all: Vec<usize> = numbers(&emitted);
        let is_right = resets(&emitted).len() == 1 && all.len() == new.len();
        missed += usize::from(!is_right);
    }
    println!("refill: {cases} cases, {kinds:?} of each kind, {missed} missed");
    assert_eq!(missed, 0);
}

#[test]
fn a_file_that_is_filled_with_what_it_held_goes_on() {
    let (_folder, path) = place();
    let old: String = (0..9).map(|number| usual(number, "Hello.")).collect();
    append(&path, old.as_bytes());
    let mut follower = Follower::new(&path, &FollowOptions::new().poll_only());
    drain(&mut follower);
    refill(&path, (old + &usual(9, "More.")).as_bytes());
    let emitted = drain(&mut follower);
    assert_eq!((resets(&emitted).len(), numbers(&emitted)), (0, vec![9]));
}

#[test]
fn the_number_of_a_deleted_file_is_used_again_and_the_new_one_is_known() {
    let folder = folder();
    let path = folder.path().join("s1.jsonl");
    let (mut seen, mut reused) = (HashSet::new(), 0);
    let rounds = often(1_000, 1_000);
    let mut follower = Follower::new(&path, &FollowOptions::new().poll_only());
    for round in 0..rounds {
        append(&path, usual(round, "Hello.").as_bytes());
        reused += usize::from(!seen.insert(fs::metadata(&path).unwrap().ino()));
        let emitted = drain(&mut follower);
        assert_eq!(numbers(&emitted), [round], "{emitted:?}");
        assert_eq!(resets(&emitted).len(), usize::from(round > 0));
        fs::remove_file(&path).unwrap();
        if round % 3 == 0 {
            drain(&mut follower);
        }
    }
    println!("inodes, one follower: {rounds} files, {reused} with a used number, 0 missed");
    let mut again = 0;
    for round in 0..rounds {
        append(&path, usual(round, "Hello.").as_bytes());
        let old = fs::metadata(&path).unwrap().ino();
        let mut follower = Follower::new(&path, &FollowOptions::new().poll_only());
        drain(&mut follower);
        let checkpoint = follower.checkpoint();
        drop(follower);
        fs::remove_file(&path).unwrap();
        append(&path, usual(round + 1, "Hello.").as_bytes());
        again += usize::from(fs::metadata(&path).unwrap().ino() == old);
        let options = FollowOptions::new()
            .poll_only()
            .start(StartAt::Checkpoint(checkpoint));
        let emitted = drain(&mut Follower::new(&path, &options));
        assert_eq!(
            (resets(&emitted), numbers(&emitted)),
            (vec![Reset::Replaced], vec![round + 1])
        );
        fs::remove_file(&path).unwrap();
    }
    println!("inodes, restarts: {rounds} files, {again} with the number of the last, 0 missed");
    if again == 0 {
        println!("skipped: this file system does not use numbers again");
    }
}

#[test]
fn a_checkpoint_is_worth_nothing_for_another_file() {
    let folder = fast_folder();
    let path = folder.path().join("s1.jsonl");
    let lines: Vec<String> = (0..40).map(|number| usual(number, "Hello.")).collect();
    let follow = |checkpoint: Checkpoint| {
        let options = FollowOptions::new()
            .poll_only()
            .start(StartAt::Checkpoint(checkpoint));
        let mut follower = Follower::new(&path, &options);
        // Before anything is read, it is where reading is to continue.
        assert_eq!(follower.checkpoint(), checkpoint);
        assert_eq!(follower.offset(), checkpoint.offset());
        let emitted = drain(&mut follower);
        (resets(&emitted), numbers(&emitted))
    };
    fs::write(&path, lines.concat()).unwrap();
    let mut follower = Follower::new(&path, &FollowOptions::new().poll_only());
    for emitted in drain(&mut follower) {
        let checkpoint: Checkpoint = emitted.checkpoint().to_string().parse().unwrap();
        let passed = numbers([&emitted]).first().map_or(0, |number| number + 1);
        fs::write(&path, lines.concat()).unwrap();
        assert_eq!(follow(checkpoint), (vec![], (passed..40).collect()));
        if passed == 0 {
            continue;
        }
        fs::write(&path, lines[..passed - 1].concat() + &lines[0][..9]).unwrap();
        assert_eq!(
            follow(checkpoint),
            (vec![Reset::Truncated], (0..passed - 1).collect())
        );
        let mut other = lines.clone();
        other[passed - 1] = usual(77, "Hello.");
        fs::write(&path, other.concat()).unwrap();
        assert_eq!(follow(checkpoint).0, [Reset::Replaced]);
        let mut other = lines.clone();
        other[0] = usual(77, "Hello.");
        fs::write(&path, other.concat()).unwrap();
        assert_eq!(follow(checkpoint).0, [Reset::Replaced]);
    }
}

#[test]
fn unfinished_line_of_a_deleted_file_is_reported_but_not_as_a_line() {
    let (_folder, path) = place();
    for len in 1..line(1, 0).len() - 1 {
        append(&path, (line(0, 0) + &line(1, 0)[..len]).as_bytes());
        let mut follower = Follower::new(&path, &FollowOptions::new().poll_only());
        let mut emitted = Vec::new();
        if len % 2 == 0 {
            emitted = drain(&mut follower);
            fs::remove_file(&path).unwrap();
        } else {
            // The file is removed before all of it was emitted.
            emitted.extend(follower.try_next().unwrap());
            fs::remove_file(&path).unwrap();
        }
        emitted.extend(drain(&mut follower));
        assert_eq!(numbers(&emitted), [0]);
        let gone = EventKind::Gone {
            offset: line(0, 0).len() as u64,
            torn: len as u64,
        };
        assert_eq!(emitted.last().unwrap().kind, gone);
    }
}

#[test]
fn a_checkpoint_within_a_damaged_line_goes_on_there() {
    let (_folder, path) = place();
    // Two objects on a line, and one after invalid bytes.
    let glued = line(1, 0).trim_end().to_owned() + &line(2, 0);
    let bytes = [
        line(0, 0),
        glued,
        "\0\0".to_owned() + &line(3, 0),
        line(4, 0),
    ];
    append(&path, bytes.concat().as_bytes());
    let mut follower = Follower::new(&path, &FollowOptions::new().poll_only());
    let all = drain(&mut follower);
    assert_eq!(numbers(&all), [0, 1, 2, 3, 4]);
    for (at, emitted) in all.iter().enumerate() {
        let start = StartAt::Checkpoint(emitted.checkpoint());
        let options = FollowOptions::new().poll_only().start(start);
        let rest = drain(&mut Follower::new(&path, &options));
        let events = |emitted: &[FollowEvent]| {
            emitted
                .iter()
                .map(|emitted| emitted.kind.clone())
                .collect::<Vec<_>>()
        };
        assert!(matches!(rest[0].kind, EventKind::Open { .. }));
        assert_eq!(events(&rest[1..]), events(&all[at + 1..]), "{at}");
    }
}
