//! Files that are read once, and last lines without a newline.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use transcript_storage::{Entries, LocalDisk, Metadata, ReadDisk, ReadFile, RealDisk};
use transcript_tail::{Checkpoint, EventKind, FollowOptions, Follower, StartAt, Trailing};

use crate::words::{append, line, place, word};

fn drain(follower: &mut Follower) -> Vec<String> {
    let mut words = Vec::new();
    while let Some(emitted) = follower.try_next().expect("it is read") {
        words.push(word(&emitted));
        assert!(words.len() < 1_000, "it does not end");
    }
    words
}

/// Returns the events of a file with this text, read once.
fn once(text: &str, start: StartAt) -> Vec<String> {
    let (_folder, path) = place();
    fs::write(&path, text).expect("the file is written");
    let options = FollowOptions::new().poll_only().once().start(start);
    drain(&mut Follower::new(&path, &options))
}

#[test]
fn a_last_line_without_a_newline_is_an_entry_or_a_finding() {
    let whole = line(1) + line(2).trim_end();
    assert_eq!(
        once(&whole, StartAt::Beginning),
        ["open 0", "u1 0", "u2 28"]
    );
    assert_eq!(once(&whole, StartAt::Last(1)), ["open 28", "u2 28"]);
    assert_eq!(once(&whole, StartAt::Offset(5)), ["open 28", "u2 28"]);
    let torn = line(1) + &line(2)[..20];
    assert_eq!(
        once(&torn, StartAt::Beginning),
        ["open 0", "u1 0", "L-TORN-TAIL 28 20"]
    );
    assert_eq!(once(&torn, StartAt::Last(1))[..2], ["open 0", "u1 0"]);
    // Two objects on a line are damage with or without a newline.
    let glued = line(1).trim_end().to_owned() + line(2).trim_end();
    let emitted = once(&glued, StartAt::Beginning);
    assert!(emitted.contains(&"u2 27".to_owned()), "{emitted:?}");
    assert_eq!(once("", StartAt::Beginning), ["open 0"]);
}

#[test]
fn appends_after_the_end_are_not_read_and_reading_ends() {
    let (folder, path) = place();
    append(&path, &(line(1) + &line(2)));
    let options = FollowOptions::new().poll_only().once();
    let mut follower = Follower::new(&path, &options);
    let mut emitted = Vec::new();
    for number in 3..200 {
        let Some(next) = follower.try_next().expect("it is read") else {
            break;
        };
        emitted.push(word(&next));
        // Another file repeatedly takes the name.
        let other = folder.path().join("other");
        fs::write(&other, line(number)).expect("the other file is written");
        fs::rename(&other, &path).expect("it takes the name");
    }
    assert_eq!(emitted, ["open 0", "u1 0", "u2 28"]);
    assert_eq!(drain(&mut follower), [""; 0]);

    let mut follower = Follower::new(&path, &options);
    append(&path, &line(4));
    let mut emitted = Vec::new();
    while let Some(next) = follower.try_next().expect("it is read") {
        emitted.push(word(&next));
        append(&path, &line(5));
    }
    assert!(emitted.len() < 10, "{emitted:?}");
}

#[test]
fn a_file_that_is_overwritten_again_and_again_is_read_twice_at_most() {
    let (_folder, path) = place();
    append(&path, &line(1).repeat(5_000));
    let mut follower = Follower::new(&path, &FollowOptions::new().poll_only().once());
    let (mut emitted, mut resets) = (0, 0);
    while let Some(next) = follower.try_next().expect("it is read") {
        emitted += 1;
        if emitted % 500 == 1 {
            let text = line(emitted / 500 % 10).repeat(5_000);
            fs::write(&path, text).expect("the file is written");
        }
        resets += usize::from(matches!(next.kind, EventKind::Reset { .. }));
        assert!(emitted < 20_000, "it does not end");
    }
    assert_eq!(resets, 2);
}

#[test]
fn a_whole_last_line_is_reported_before_its_newline_when_asked_for_and_once() {
    let (_folder, path) = place();
    let options = FollowOptions::new().poll_only().trailing(Trailing::Whole);
    let mut follower = Follower::new(&path, &options);
    append(&path, &line(1)[..12]);
    assert_eq!(drain(&mut follower), ["open 0"]);
    append(&path, line(1)[12..].trim_end());
    assert_eq!(drain(&mut follower), ["u1 0"]);
    assert_eq!(drain(&mut follower), [""; 0]);
    let early: Checkpoint = follower.checkpoint();
    append(&path, "\n");
    assert_eq!(drain(&mut follower), [""; 0]);
    append(&path, line(2).trim_end());
    assert_eq!(drain(&mut follower), ["u2 28"]);
    append(&path, &("\r\n".to_owned() + line(3).trim_end()));
    assert_eq!(drain(&mut follower), ["u3 57"]);
    // The checkpoint is before a line whose newline was missing.
    assert_eq!(early.offset(), 0);

    // The replacement of a truncated line is emitted, also when it has the same length.
    let file = OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("it opens");
    file.set_len(57).expect("it is cut");
    append(&path, line(4).trim_end());
    assert_eq!(drain(&mut follower), ["u4 57"]);
    file.set_len(57).expect("it is cut");
    append(&path, &(line(5) + &line(6)));
    assert_eq!(drain(&mut follower), ["u5 57", "u6 85"]);
    // Bytes appended to the line make it damaged; the emitted entry is not emitted again.
    append(&path, line(7).trim_end());
    assert_eq!(drain(&mut follower), ["u7 113"]);
    append(&path, &line(8));
    let emitted = drain(&mut follower);
    assert!(emitted.contains(&"u8 140".to_owned()), "{emitted:?}");
    assert!(!emitted.contains(&"u7 113".to_owned()), "{emitted:?}");
}

#[test]
fn nothing_of_a_line_that_was_reported_early_is_torn_when_the_file_goes() {
    for (text, gone) in [
        (line(1).trim_end(), "gone 0 0"),
        (&line(1)[..9], "gone 0 9"),
    ] {
        let (_folder, path) = place();
        let options = FollowOptions::new().poll_only().trailing(Trailing::Whole);
        let mut follower = Follower::new(&path, &options);
        append(&path, text);
        drain(&mut follower);
        fs::remove_file(&path).expect("it goes");
        assert_eq!(drain(&mut follower), [gone]);
    }
}

/// The files of the disk, and how many bytes were read from them.
#[derive(Clone, Debug, Default)]
struct CountingDisk(Arc<AtomicU64>);

#[derive(Debug)]
struct CountedFile(Arc<dyn ReadFile>, CountingDisk);

impl ReadDisk for CountingDisk {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        Ok(Arc::new(CountedFile(
            RealDisk.open_to_read(path)?,
            self.clone(),
        )))
    }

    fn list(&self, folder: &Path) -> io::Result<Entries> {
        RealDisk.list(folder)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        RealDisk.metadata(path)
    }

    fn local(&self) -> Option<&dyn LocalDisk> {
        RealDisk.local()
    }
}

impl ReadFile for CountedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read_at(offset, buffer)?;
        self.1.0.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }
}

#[test]
fn a_long_line_is_read_in_proportion_to_its_length() {
    let (_folder, path) = place();
    let long = "x".repeat(8 << 20);
    for end in ["\n", ""] {
        let text = format!("{{\"type\":\"user\",\"uuid\":\"u1\",\"text\":\"{long}\"}}{end}");
        fs::write(&path, &text).expect("the file is written");
        let disk = CountingDisk::default();
        let options = FollowOptions::new().poll_only().once();
        let mut follower = Follower::new(&path, &options.disk(Arc::new(disk.clone())));
        assert_eq!(drain(&mut follower), ["open 0", "u1 0"]);
        let read = disk.0.load(Ordering::Relaxed);
        assert!(read < 6 * text.len() as u64, "{read} bytes were read");
    }
}
