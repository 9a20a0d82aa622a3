//! Other files, links or nothing at the path; before and while a session is open.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{chown, symlink};
use std::path::Path;

use transcript_writer::{Draft, ErrorKind, ResumePoint, Writer, WriterOptions};

use crate::driver::{Event, Fix, Job, Task, acks, fix};
use crate::support::{beside, fast_folder, folder, mode, serial, works};

fn open(path: &Path) -> Writer {
    WriterOptions::new()
        .create()
        .open(path, ResumePoint::default())
        .unwrap()
}

/// Asserts that the writer accepts nothing from now on.
fn is_latched(writer: &Writer, kind: ErrorKind) {
    for _ in 0..3 {
        let error = writer.append(Draft::user("Lost?")).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(!error.is_retryable());
    }
}

#[test]
fn a_replaced_file_gets_no_line() {
    let _serial = serial();
    let folder = fast_folder();
    let (path, other) = (folder.path().join("s.jsonl"), folder.path().join("other"));
    let writer = open(&path);
    writer.append(Draft::user("First.")).unwrap();
    let first = fs::read(&path).unwrap();
    let old = fs::File::open(&path).unwrap();
    fs::write(&other, &first).unwrap();
    fs::rename(&other, &path).unwrap();
    is_latched(&writer, ErrorKind::Replaced);
    assert_eq!(fs::read(&path).unwrap(), first);
    assert_eq!(old.metadata().unwrap().len(), first.len() as u64);
}

#[test]
fn a_deleted_file_gets_no_line() {
    let _serial = serial();
    let folder = fast_folder();
    let path = folder.path().join("s.jsonl");
    let writer = open(&path);
    writer.append(Draft::user("First.")).unwrap();
    let old = fs::File::open(&path).unwrap();
    let len = old.metadata().unwrap().len();
    fs::remove_file(&path).unwrap();
    is_latched(&writer, ErrorKind::Replaced);
    assert_eq!(old.metadata().unwrap().len(), len);
    // Another file in its place changes nothing.
    fs::write(&path, "").unwrap();
    is_latched(&writer, ErrorKind::Replaced);
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn a_moved_file_is_noticed() {
    let _serial = serial();
    let folder = fast_folder();
    let (path, away) = (folder.path().join("s.jsonl"), folder.path().join("away"));
    let writer = open(&path);
    writer.append(Draft::user("First.")).unwrap();
    fs::rename(&path, &away).unwrap();
    fs::write(&path, "").unwrap();
    // The name is checked only from time to time.
    let mut before = 0;
    while writer.append(Draft::user("Where to?")).is_ok() {
        before += 1;
    }
    println!("moved: noticed after {before} appends");
    is_latched(&writer, ErrorKind::Replaced);
    assert_eq!(fs::read(&path).unwrap(), b"");
    // All acknowledged entries are in the moved file.
    let lines = fs::read(&away).unwrap();
    assert_eq!(
        lines.iter().filter(|byte| **byte == b'\n').count(),
        before + 1
    );
}

#[test]
fn a_file_that_shrank_gets_no_line() {
    let _serial = serial();
    let folder = fast_folder();
    let path = folder.path().join("s.jsonl");
    let writer = open(&path);
    writer.append(Draft::user("First.")).unwrap();
    let second = writer.append(Draft::user("Second.")).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(second.offset).unwrap();
    drop(file);
    let left = fs::read(&path).unwrap();
    is_latched(&writer, ErrorKind::Shrunk);
    assert_eq!(fs::read(&path).unwrap(), left);
}

#[test]
fn a_dropped_writer_lets_go_of_the_file() {
    let _serial = serial();
    let folder = fast_folder();
    let path = folder.path().join("s.jsonl");
    for _ in 0..1_000 {
        let writer = open(&path);
        let mut known = ResumePoint::default();
        known.leaf = writer.append(Draft::user("Again.")).unwrap().uuid;
        drop(writer);
        // No other process has it open for writing, or opening would fail.
        WriterOptions::new()
            .open(&path, known)
            .unwrap()
            .close()
            .unwrap();
    }
}

#[test]
fn only_a_regular_file_of_ours_with_one_name_is_opened() {
    let _serial = serial();
    let folder = fast_folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("real"), "{\"type\":\"user\",\"uuid\":\"u1\"}\n").unwrap();
    symlink(at("real"), at("link")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("twice"), "").unwrap();
    fs::hard_link(at("twice"), at("hard")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    let mut names = vec!["link", "dangling", "folder", "twice", "hard", "socket"];
    if works(&["mkfifo", at("pipe").to_str().unwrap()]) {
        names.push("pipe");
    } else {
        println!("skipped: no mkfifo");
    }
    fs::write(at("theirs"), "").unwrap();
    if chown(at("theirs"), Some(1), None).is_ok() {
        names.push("theirs");
    } else {
        println!("skipped: no root to give a file away");
    }
    for name in names {
        for options in [WriterOptions::new(), WriterOptions::new().create()] {
            let result = options.open(&at(name), ResumePoint::default());
            let kind = result.and_then(|writer| writer.append(Draft::user("No.")).map(|_| ()));
            assert_eq!(kind.unwrap_err().kind(), ErrorKind::NotAFile, "{name}");
        }
    }
    assert!(!at("nowhere").exists());
    assert_eq!(fs::read(at("twice")).unwrap(), b"");
}

#[test]
fn files_and_folders_are_private_whatever_the_umask() {
    let _serial = serial();
    for umask in ["000", "022", "077", "177", "277", "777"] {
        let folder = folder();
        let path = folder.path().join("a").join("b").join("s.jsonl");
        let mut job = Job::new(Task::Ours, &path);
        job.count = 2;
        let script = format!(r#"umask {umask}; exec "$0" "$@""#);
        let prefix = ["sh", "-c", &script];
        let (events, status) = job.start_under(&prefix).finish();
        assert!(
            status.success() && acks(&events).len() == 2,
            "{umask}: {events:?}"
        );
        assert_eq!(mode(&path), 0o600, "file, umask {umask}");
        for parent in path.ancestors().skip(1).take(2) {
            assert_eq!(mode(parent), 0o700, "folder, umask {umask}");
        }
        // The side file of a torn tail.
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
        let (events, _) = job.start_under(&prefix).finish();
        assert!(
            matches!(fix(&events), Some(Fix::Cut(..))),
            "{umask}: {events:?}"
        );
        assert!(events.contains(&Event::Closed("ok".to_owned())));
        let side = beside(&path);
        assert_eq!(side.len(), 1);
        assert_eq!(mode(&side[0]), 0o600, "side file, umask {umask}");
    }
}
