//! Many followers of one process share what the system has few of.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use transcript_storage::crew::{Next, Task, Work};
use transcript_tail::{EventKind, FollowOptions, Follower, Polling, StartAt, Watcher};

use crate::support::{append, child_of, folder, line, number_of};

/// A wait that takes longer has failed. It is shorter than the time after which files are polled nevertheless.
const LONG: Duration = Duration::from_secs(60);

/// Returns the number of threads of this process, and of its subscriptions to file-system events.
fn used() -> (usize, usize) {
    let threads = fs::read_dir("/proc/self/task").unwrap().count();
    let files = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let leads_to = |file: fs::DirEntry| fs::read_link(file.path()).ok();
    let is_inotify = |to: &PathBuf| to.to_string_lossy().contains("inotify");
    (
        threads,
        files.filter_map(leads_to).filter(is_inotify).count(),
    )
}

/// Follows `count` files in ten folders and all of them once more as folders, and says what it took.
pub(crate) fn many(root: &Path, count: usize) {
    let (threads, _) = used();
    let path = |number: usize| root.join(format!("-p{}/s{number}.jsonl", number % 10));
    for number in 0..count {
        fs::create_dir_all(path(number).parent().unwrap()).unwrap();
        append(&path(number), line(0, 60).as_bytes());
    }
    let options = FollowOptions::new().start(StartAt::End);
    let mut followers: Vec<Follower> = (0..count)
        .map(|number| Follower::new(&path(number), &options))
        .collect();
    let mut watchers: Vec<Watcher> = (0..20)
        .map(|number| {
            let mut watcher = Watcher::new(&options);
            match number {
                0 => watcher.add_folder(root),
                number => watcher.add_folder(&root.join(format!("-p{}", number % 10))),
            }
            watcher
        })
        .collect();
    for follower in &mut followers {
        assert!(follower.try_next().unwrap().is_some());
        assert!(follower.try_next().unwrap().is_none());
    }
    for watcher in &mut watchers {
        while watcher.try_next().unwrap().is_some() {}
    }
    let (with, instances) = used();
    println!("threads: {}, instances: {instances}", with - threads);
    assert_eq!((with - threads, instances), (1, 1));

    // A follower that leaves takes nothing away from the others.
    watchers.truncate(1);
    followers.truncate(count / 2);
    for number in 0..count {
        append(&path(number), line(number + 1, 60).as_bytes());
    }
    let next = |event: Option<transcript_tail::FollowEvent>| match event.unwrap().kind {
        EventKind::Entry(entry) => number_of(&entry.text),
        other => panic!("{other:?}"),
    };
    for (number, follower) in followers.iter_mut().enumerate() {
        assert_eq!(next(follower.next_within(LONG).unwrap()), number + 1);
    }
    let mut of_all: Vec<usize> = (0..count)
        .map(|_| next(watchers[0].next_within(LONG).unwrap()))
        .collect();
    of_all.sort_unstable();
    assert!(of_all.into_iter().eq(1..=count));

    drop((followers, watchers));
    // The thread ends by itself.
    while used() != (threads, 0) {
        std::thread::yield_now();
    }
}

#[test]
fn a_thousand_followers_take_one_thread_and_one_subscription() {
    if !Path::new("/proc/self/task").exists() {
        println!("skipped: no /proc");
        return;
    }
    let folder = folder();
    let more_files = ["sh", "-c", "ulimit -n 4000; exec \"$@\"", "sh"];
    let output = child_of(
        &more_files,
        "many",
        &[folder.path().to_str().unwrap(), "1000"],
    )
    .output()
    .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    println!("{said}");
}

#[test]
fn a_line_that_is_written_before_a_task_asks_for_events_is_emitted_at_once() {
    let folder = folder();
    let path = folder.path().join("-p/s1.jsonl");
    fs::create_dir(folder.path().join("-p")).unwrap();
    append(&path, line(1, 60).as_bytes());
    let options = FollowOptions::new().start(StartAt::End);
    let mut follower = Follower::new(&path, &options);
    let mut watcher = Watcher::new(&options);
    watcher.add_folder(folder.path());
    while follower.try_next().unwrap().is_some() {}
    while watcher.try_next().unwrap().is_some() {}
    append(&path, line(2, 60).as_bytes());
    // The system reports the line before there is a task that could be woken.
    std::thread::sleep(Duration::from_millis(300));
    let (sender, emitted) = mpsc::channel();
    let mut tasks = Vec::new();
    let mut ask = |mut poll: Box<dyn FnMut(&Task) -> Polling + Send>| {
        let sender = sender.clone();
        let step = move |task: &Task| match poll(task) {
            Polling::Event(event) => {
                if let EventKind::Entry(entry) = event.kind {
                    sender.send(number_of(&entry.text)).unwrap();
                }
                Next::Again
            }
            Polling::Wait(next) => next,
            _ => Next::End,
        };
        let task = Task::new(Work::Read, step).unwrap();
        task.wake();
        tasks.push(task);
    };
    ask(Box::new(move |task| follower.poll_in(task).unwrap()));
    ask(Box::new(move |task| watcher.poll_in(task).unwrap()));
    for _ in 0..2 {
        assert_eq!(emitted.recv_timeout(LONG).unwrap(), 2);
    }
    tasks.iter().for_each(Task::end);
}

#[test]
fn a_line_that_is_written_before_its_file_is_opened_is_new() {
    let folder = folder();
    let path = |number: usize| folder.path().join(format!("-p/s{number}.jsonl"));
    let count = 300;
    fs::create_dir(folder.path().join("-p")).unwrap();
    for start in [StartAt::End, StartAt::Last(0), StartAt::Last(1)] {
        for number in 0..count {
            // A line is being written when following begins.
            let text = line(number, 60) + &line(1000 + number, 60)[..20];
            fs::write(path(number), text).unwrap();
        }
        let options = FollowOptions::new().start(start);
        let mut watcher = Watcher::new(&options);
        watcher.add_folder(folder.path());
        let mut alone = Follower::new(&path(0), &options);
        // The first file is opened, all others are only found.
        watcher.try_next().unwrap().unwrap();
        for number in 0..count {
            let text = line(1000 + number, 60);
            append(&path(number), &text.as_bytes()[20..]);
            append(&path(number), line(2000 + number, 60).as_bytes());
        }
        let mut numbers = Vec::new();
        while let Some(event) = watcher.try_next().unwrap() {
            if let EventKind::Entry(entry) = event.kind {
                numbers.push(number_of(&entry.text));
            }
        }
        numbers.sort_unstable();
        let old = usize::from(start == StartAt::Last(1)) * count;
        let expected = (0..old).chain(1000..1000 + count).chain(2000..2000 + count);
        assert!(numbers.into_iter().eq(expected), "{start:?}");
        let mut of_one = Vec::new();
        while let Some(event) = alone.try_next().unwrap() {
            if let EventKind::Entry(entry) = event.kind {
                of_one.push(number_of(&entry.text));
            }
        }
        of_one.retain(|number| *number > 0);
        assert_eq!(of_one, [1000, 2000], "{start:?}");
    }
}
