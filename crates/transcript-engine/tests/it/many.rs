//! Many sessions and follows of one process take few threads and one subscription to file-system events.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use transcript_engine::follow::{EventKind, Events, FollowOptions, Follower, StartAt};
use transcript_engine::{AsyncSession, Draft, Session, SessionOptions};

const FOLLOWS: usize = 1_000;
const SESSIONS: usize = 400;
/// How many lines each file gets while its follow is being opened, and after that.
const ROUNDS: usize = 2;

/// A wait that takes longer has failed.
const LONG: Duration = Duration::from_secs(60);

/// Returns the number of threads of this process, and of its subscriptions to file-system events.
fn used() -> (usize, usize) {
    let threads = fs::read_dir("/proc/self/task").unwrap().count();
    let files = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    let is_inotify = |to: &PathBuf| to.to_string_lossy().contains("inotify");
    (threads, targets.filter(is_inotify).count())
}

/// Waits until no slow disk keeps more of them. `others` are those of the test.
fn expect_few_threads(when: &str, others: usize) {
    let start = Instant::now();
    while used().0 > others + 8 {
        assert!(start.elapsed() < LONG, "{when}: {} threads", used().0);
        std::thread::yield_now();
    }
    assert_eq!(used().1, 1, "{when}");
}

/// Returns the file with this number. The first ones are those of sessions.
fn path(root: &Path, number: usize) -> PathBuf {
    root.join(format!(
        "-p{}/{number:08x}-ee08-4b08-99d5-2d9a36fd8293.jsonl",
        number % 10
    ))
}

fn append(path: &Path, text: &str) {
    let line = format!(
        "{{\"type\":\"user\",\"uuid\":\"{text}\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
    );
    let file = fs::OpenOptions::new().append(true).create(true).open(path);
    file.unwrap().write_all(line.as_bytes()).unwrap();
}

/// Reads until this many entries have come, and returns their texts.
async fn read(events: &mut Events, count: usize) -> Vec<String> {
    let mut texts = Vec::new();
    while texts.len() < count {
        let event = tokio::time::timeout(LONG, events.next()).await;
        let event = event.expect("a line is told").unwrap().unwrap();
        if let EventKind::Entry(entry) = event.kind {
            let value: serde_json::Value = serde_json::from_str(&entry.text).unwrap();
            texts.extend(value["message"]["content"].as_str().map(str::to_owned));
        }
    }
    texts
}

async fn many(root: &Path, others: usize) {
    let options = SessionOptions::new().cwd("/work").version("1");
    let mut sessions = Vec::new();
    for number in 0..FOLLOWS {
        let path = path(root, number);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if number < SESSIONS {
            let session = Session::create(&path, &options).unwrap();
            session.append(Draft::user("0")).unwrap();
            sessions.push(AsyncSession::from(session));
        } else {
            append(&path, "0");
        }
    }
    // Lines are written while the follows are opened, and before each is read for the first time.
    let mut follows = Vec::new();
    for number in 0..FOLLOWS {
        let start = [StartAt::Beginning, StartAt::Last(1)][number % 2];
        let follower = Follower::new(&path(root, number), &FollowOptions::new().start(start));
        follows.push(Events::from(follower));
        let other = (number * 7) % FOLLOWS;
        if other >= SESSIONS {
            append(&path(root, other), "1");
        } else {
            sessions[other].append(Draft::user("1")).await.unwrap();
        }
    }
    for (number, events) in follows.iter_mut().enumerate() {
        let is_late = number % 2 == 1;
        // A file that is opened later begins with its last line at that time, as it was asked for.
        let mut texts = read(events, 1).await;
        if texts == ["0"] {
            texts.extend(read(events, 1).await);
        } else {
            assert!(is_late, "{number}");
            texts.insert(0, "0".to_owned());
        }
        assert_eq!(texts, ["0", "1"], "{number}");
    }
    expect_few_threads("opened", others);

    for round in 2..2 + ROUNDS {
        let text = round.to_string();
        let mut writing = tokio::task::JoinSet::new();
        for session in &sessions {
            let (session, text) = (session.clone(), text.clone());
            writing.spawn(async move { session.append(Draft::user(&text)).await.map(drop) });
        }
        for number in SESSIONS..FOLLOWS {
            append(&path(root, number), &text);
        }
        while let Some(written) = writing.join_next().await {
            written.unwrap().unwrap();
        }
        for (number, events) in follows.iter_mut().enumerate() {
            assert_eq!(read(events, 1).await, [text.as_str()], "{number}");
        }
        expect_few_threads("written", others);
    }
    for session in &sessions {
        session.sync().await.unwrap();
    }
    expect_few_threads("synced", others);
    for session in sessions {
        session.close().await.unwrap();
    }
    drop(follows);
}

/// The file that the child writes when it has looked at everything.
const DONE: &str = "done";

/// The process that the test below starts.
#[test]
fn child() {
    let Some(root) = std::env::var_os("TRANSCRIPT_MANY") else {
        return;
    };
    let before = used();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .max_blocking_threads(1)
        .thread_keep_alive(Duration::from_millis(1))
        .build();
    runtime
        .unwrap()
        .block_on(many(Path::new(&root), before.0 - 1));
    fs::write(Path::new(&root).join(DONE), "").unwrap();
    // The threads end with the last of them.
    let start = Instant::now();
    while used() != before {
        assert!(start.elapsed() < LONG, "{:?} are left", used());
        std::thread::yield_now();
    }
}

#[test]
fn a_thousand_follows_and_four_hundred_sessions_take_eight_threads_and_one_subscription() {
    let root = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 4000; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "many::child", "--nocapture", "--test-threads=1"])
        .env("TRANSCRIPT_MANY", root.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    assert!(root.path().join(DONE).exists(), "{said}");
}
