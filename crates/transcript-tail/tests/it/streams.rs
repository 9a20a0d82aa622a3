//! The streams for tokio.

use std::task::Poll;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use transcript_tail::{Checkpoint, EventKind, Events, FollowOptions, Follower, StartAt, Watcher};

use crate::words::{append, line, place, word};

#[tokio::test]
async fn a_stream_shows_what_the_follower_does_and_ends_when_it_is_cancelled() {
    let (_folder, path) = place();
    append(&path, &(line(1) + &line(2)));
    let token = CancellationToken::new();
    let follower = Follower::new(&path, &FollowOptions::new());
    let mut events = Events::from(follower).until(token.clone());
    let mut words = Vec::new();
    for _ in 0..3 {
        words.push(word(&events.next().await.unwrap().unwrap()));
    }
    assert_eq!(words, ["open 0", "u1 0", "u2 28"]);
    append(&path, &line(3));
    assert_eq!(word(&events.next().await.unwrap().unwrap()), "u3 56");
    token.cancel();
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_future_that_is_dropped_loses_nothing() {
    let (_folder, path) = place();
    append(&path, &(1..=9).map(line).collect::<String>());
    let mut watcher = Watcher::new(&FollowOptions::new());
    watcher.add_file(&path);
    let mut events = Events::from(watcher);
    let mut words = Vec::new();
    while words.len() < 10 {
        // Every second future is dropped after its first poll.
        let first = {
            let mut next = std::pin::pin!(events.next());
            std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await
        };
        let emitted = match first {
            Poll::Ready(emitted) => emitted,
            Poll::Pending => events.next().await,
        };
        words.push(word(&emitted.unwrap().unwrap()));
    }
    let expected: Vec<_> = (1..=9).map(|n| format!("u{n} {}", 28 * (n - 1))).collect();
    assert_eq!(words[0], "open 0");
    assert_eq!(words[1..], expected);
}

#[tokio::test]
async fn each_event_of_a_stream_has_its_own_checkpoint() {
    let (_folder, path) = place();
    append(&path, &(1..=9).map(line).collect::<String>());
    let mut events = Events::from(Follower::new(&path, &FollowOptions::new()));
    events.next().await.unwrap().unwrap();
    for number in 1..=9 {
        let emitted = events.next().await.unwrap().unwrap();
        let checkpoint: Checkpoint = emitted.checkpoint().to_string().parse().unwrap();
        let options = FollowOptions::new().start(StartAt::Checkpoint(checkpoint));
        let mut later = Follower::new(&path, &options);
        let place = format!("open {}", 28 * number);
        assert_eq!(word(&later.try_next().unwrap().unwrap()), place);
        let next = later.try_next().unwrap();
        let next = next.map(|emitted| match emitted.kind {
            EventKind::Entry(entry) => entry.line,
            _ => None,
        });
        assert_eq!(next, (number < 9).then_some(Some(number + 1)));
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn dropping_a_stream_ends_the_following() {
    let (_folder, path) = place();
    let is_open = || {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let mut targets = open.filter_map(|fd| std::fs::read_link(fd.path()).ok());
        targets.any(|target| target == path)
    };
    // Also of one that waits because its events are not read.
    for lines in [1, 20_000] {
        append(&path, &(1..=lines).map(line).collect::<String>());
        let mut events = Events::from(Follower::new(&path, &FollowOptions::new()));
        events.next().await.unwrap().unwrap();
        assert!(is_open());
        drop(events);
        // The task keeps the file open until it ends.
        let mut looks = 0;
        while is_open() {
            looks += 1;
            assert!(looks < 20_000, "the task continues");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
