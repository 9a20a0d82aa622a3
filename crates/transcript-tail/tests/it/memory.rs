//! Writer, reader and followers work on one disk in memory, and follow it through every change.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use transcript_reader::{Index, Listing, Source, subagents_on};
use transcript_storage::{Disk, MemoryDisk, ReadDisk, ReadFile};
use transcript_tail::{EventKind, FollowOptions, Follower, Reset, Watcher};
use transcript_testkit::fake_disk::{FakeDisk, Fault, Op};
use transcript_writer::{Draft, ResumePoint, WriterOptions};

const ROOT: &str = "/home/ada/projects";
const FILE: &str = "/home/ada/projects/-src/1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl";
const AGENT: &str =
    "/home/ada/projects/-src/1999463e-ee08-4b08-99d5-2d9a36fd8293/subagents/agent-a1.jsonl";

fn line(uuid: &str) -> String {
    format!("{{\"type\":\"user\",\"uuid\":\"{uuid}\"}}\n")
}

fn options(disk: &Arc<dyn ReadDisk>) -> FollowOptions {
    FollowOptions::new().disk(Arc::clone(disk))
}

/// An event of a follower.
#[derive(Debug, PartialEq)]
enum Event {
    Open(u64),
    Entry(String),
    Reset(Reset, u64),
    Gone(u64, u64),
}

fn event(kind: EventKind) -> Event {
    match kind {
        EventKind::Open { offset } => Event::Open(offset),
        EventKind::Entry(entry) => Event::Entry(entry.text + "\n"),
        EventKind::Reset { reason, offset } => Event::Reset(reason, offset),
        EventKind::Gone { offset, torn } => Event::Gone(offset, torn),
        other => panic!("{other:?}"),
    }
}

/// Returns all events that a follower has now.
fn events(follower: &mut Follower) -> Vec<Event> {
    let next = || follower.try_next().unwrap();
    std::iter::from_fn(next)
        .map(|emitted| event(emitted.kind))
        .collect()
}

/// Appends as another program does.
fn append(disk: &MemoryDisk, text: &str) {
    let file = disk.open(Path::new(FILE), true).unwrap().file;
    file.append(text.as_bytes()).unwrap();
}

fn truncate(disk: &MemoryDisk, len: usize) {
    let file = disk.open(Path::new(FILE), false).unwrap().file;
    file.truncate(len as u64).unwrap();
}

#[test]
fn appended_lines_are_listed_indexed_and_followed_on_the_same_disk() {
    let memory = MemoryDisk::new();
    let disk: Arc<dyn ReadDisk> = Arc::new(memory.clone());
    let mut follower = Follower::new(Path::new(FILE), &options(&disk));
    assert!(events(&mut follower).is_empty());

    let writer = WriterOptions::new()
        .create()
        .cwd("/home/ada/src")
        .disk(Arc::new(memory.clone()))
        .open(Path::new(FILE), ResumePoint::default())
        .unwrap();
    let prompt = writer
        .append(Draft::user("Which years are leap years?"))
        .unwrap();
    let second = writer.append(Draft::user("And 1900?")).unwrap();
    writer.close().unwrap();
    memory.put(AGENT, line("u1"));
    memory.put(
        AGENT.replace(".jsonl", ".meta.json"),
        "{\"agentType\":\"Explore\"}",
    );

    let bytes = memory.bytes(FILE).unwrap();
    let lines: Vec<&str> = std::str::from_utf8(&bytes)
        .unwrap()
        .split_inclusive('\n')
        .collect();
    let entries = lines.iter().map(|line| Event::Entry((*line).to_owned()));
    let expected: Vec<Event> = [Event::Open(0)].into_iter().chain(entries).collect();
    assert_eq!(events(&mut follower), expected);

    let source = Source::open_on(&disk, Path::new(FILE)).unwrap();
    let index = Index::load(&source).unwrap();
    let offsets: Vec<u64> = index.entries().map(|entry| entry.offset()).collect();
    assert_eq!(offsets, [prompt.offset, second.offset]);
    assert!(index.findings().is_empty());

    let listing = Listing::read_on(&disk, Path::new(ROOT)).unwrap();
    assert!(listing.problems.is_empty(), "{:?}", listing.problems);
    let row = &listing.rows[0];
    assert_eq!((listing.rows.len(), row.subagents), (1, 1));
    assert_eq!(row.path, Path::new(FILE));
    assert_eq!(row.bytes, bytes.len() as u64);
    assert_eq!(
        row.first_prompt.as_deref(),
        Some("Which years are leap years?")
    );
    assert_eq!(
        listing.of_project(Path::new("/home/ada/src"), true).len(),
        1
    );

    let agents = subagents_on(&disk, Path::new(FILE)).unwrap();
    assert_eq!(agents[0].path, Path::new(AGENT));
    assert_eq!(
        agents[0].meta().unwrap().agent_type().as_deref(),
        Some("Explore")
    );
    assert!(
        !Path::new(FILE).exists(),
        "nothing is written to this machine"
    );
}

#[test]
fn a_follower_emits_each_change_of_a_file_in_memory() {
    let memory = MemoryDisk::new();
    let disk: Arc<dyn ReadDisk> = Arc::new(memory.clone());
    let (a, b, c) = (line("a"), line("b"), line("c"));
    let (path, other) = (Path::new(FILE), Path::new("/home/ada/other.jsonl"));
    let entry = |line: &String| Event::Entry(line.clone());
    let mut follower = Follower::new(path, &options(&disk));
    let len = a.len() as u64;

    append(&memory, &a);
    assert_eq!(events(&mut follower), [Event::Open(0), entry(&a)]);
    append(&memory, &b[..10]);
    assert!(events(&mut follower).is_empty());
    assert_eq!(follower.pending_bytes(), 10);
    append(&memory, &b[10..]);
    assert_eq!(events(&mut follower), [entry(&b)]);

    truncate(&memory, a.len());
    assert_eq!(
        events(&mut follower),
        [Event::Reset(Reset::Truncated, 2 * len), entry(&a)]
    );

    // Another file takes the name; the old one is read to its end before that.
    append(&memory, &b);
    memory.put(other, c.clone() + &a);
    memory.rename(other, path).unwrap();
    assert_eq!(
        events(&mut follower),
        [
            entry(&b),
            Event::Reset(Reset::Replaced, 2 * len),
            entry(&c),
            entry(&a)
        ]
    );

    // The file moves away, grows there, and comes back.
    memory.rename(path, other).unwrap();
    assert_eq!(events(&mut follower), [Event::Gone(2 * len, 0)]);
    let moved = memory.open(other, false).unwrap().file;
    moved.append(b.as_bytes()).unwrap();
    assert_eq!(events(&mut follower), [entry(&b)]);
    memory.rename(other, path).unwrap();
    assert_eq!(events(&mut follower), [Event::Open(3 * len)]);

    memory.remove(path).unwrap();
    assert_eq!(events(&mut follower), [Event::Gone(3 * len, 0)]);
    append(&memory, &c);
    assert_eq!(
        events(&mut follower),
        [Event::Reset(Reset::Replaced, 3 * len), entry(&c)]
    );
}

/// Follows a file by its length alone.
struct NaiveFollower {
    disk: Arc<dyn ReadDisk>,
    offset: u64,
}

impl NaiveFollower {
    fn new_bytes(&mut self) -> String {
        let file: Arc<dyn ReadFile> = self.disk.open_to_read(Path::new(FILE)).unwrap();
        let len = file.metadata().unwrap().len;
        let mut buffer = vec![0; (len - self.offset) as usize];
        let read = file.read_at(self.offset, &mut buffer).unwrap();
        self.offset += read as u64;
        String::from_utf8(buffer).unwrap()
    }
}

#[test]
fn a_reader_that_trusts_the_length_misses_a_replaced_file_of_the_same_length() {
    let (old, new) = (line("old"), line("new"));
    let replacements: [fn(&MemoryDisk, &str); 2] = [
        |memory, new| memory.put(FILE, new),
        |memory, new| {
            truncate(memory, 0);
            append(memory, new);
        },
    ];
    for replace in replacements {
        let memory = MemoryDisk::new();
        let disk: Arc<dyn ReadDisk> = Arc::new(memory.clone());
        memory.put(FILE, old.as_str());
        let mut follower = Follower::new(Path::new(FILE), &options(&disk));
        let mut naive = NaiveFollower { disk, offset: 0 };
        assert_eq!(events(&mut follower).len(), 2);
        assert_eq!(naive.new_bytes(), old);

        replace(&memory, &new);
        assert_eq!(naive.new_bytes(), "", "it sees no change");
        let expected = [
            Event::Reset(Reset::Replaced, old.len() as u64),
            Event::Entry(new.clone()),
        ];
        assert_eq!(events(&mut follower), expected);
    }
}

#[test]
fn a_watcher_finds_the_files_of_a_disk_in_memory() {
    let memory = MemoryDisk::new();
    memory.put(FILE, line("a"));
    let mut watcher = Watcher::new(&options(&(Arc::new(memory.clone()) as Arc<dyn ReadDisk>)));
    watcher.add_folder(Path::new(ROOT));
    let mut next = || {
        let emitted = watcher.next_within(Duration::from_secs(60)).unwrap();
        let emitted = emitted.expect("an event");
        (emitted.path.to_path_buf(), event(emitted.kind))
    };
    assert_eq!(next(), (FILE.into(), Event::Open(0)));
    assert_eq!(next(), (FILE.into(), Event::Entry(line("a"))));
    memory.put(AGENT, line("b"));
    assert_eq!(next(), (AGENT.into(), Event::Open(0)));
    assert_eq!(next(), (AGENT.into(), Event::Entry(line("b"))));
}

#[test]
fn a_follower_reports_a_failing_disk_once_and_goes_on() {
    let fake = FakeDisk::new(1);
    fake.put(FILE, line("a").as_bytes());
    let disk: Arc<dyn ReadDisk> = Arc::new(fake.clone());
    let mut follower = Follower::new(Path::new(FILE), &options(&disk));
    fake.set(Fault::errno(5).at(Op::ReadAt, 1));
    let error = follower.try_next().unwrap_err();
    assert_eq!(error.path(), Path::new(FILE));
    let expected = [Event::Open(0), Event::Entry(line("a"))];
    assert_eq!(events(&mut follower), expected);
    fake.append_as_other(FILE, line("b").as_bytes());
    assert_eq!(events(&mut follower), [Event::Entry(line("b"))]);
}

/// Sends what a source emits until it has emitted this entry; ends early when nothing comes for a minute, which is shorter than
/// the pause between two polls of a disk that reports its changes.
fn send_until(
    last: String,
    mut next: impl FnMut() -> Option<EventKind> + Send + 'static,
) -> mpsc::Receiver<String> {
    let (emitted, received) = mpsc::channel();
    thread::spawn(move || {
        while let Some(event) = next() {
            let EventKind::Entry(entry) = event else {
                continue;
            };
            let is_last = entry.text == last.trim_end();
            if emitted.send(entry.text).is_err() || is_last {
                return;
            }
        }
    });
    received
}

#[test]
fn a_disk_that_reports_its_changes_wakes_its_followers() {
    const QUIET: Duration = Duration::from_secs(60);
    let memory = MemoryDisk::new();
    memory.put(FILE, line("u0"));
    let disk: Arc<dyn ReadDisk> = Arc::new(memory.clone());
    let last = line("u30");
    let mut follower = Follower::new(Path::new(FILE), &options(&disk));
    let next = move || Some(follower.next_within(QUIET).unwrap()?.kind);
    let followed = send_until(last.clone(), next);
    let mut watcher = Watcher::new(&options(&disk));
    watcher.add_folder(Path::new(ROOT));
    let next = move || Some(watcher.next_within(QUIET).unwrap()?.kind);
    let watched = send_until(line("elsewhere"), next);
    for number in 0..=30 {
        let expected = line(&format!("u{number}"));
        for received in [&followed, &watched] {
            assert_eq!(received.recv().unwrap(), expected.trim_end());
        }
        if number < 30 {
            append(&memory, &line(&format!("u{}", number + 1)));
        }
    }
    // A file in a project that did not exist.
    let other = FILE.replace("-src", "-other");
    memory.put(other, line("elsewhere"));
    assert_eq!(watched.recv().unwrap(), line("elsewhere").trim_end());
}
