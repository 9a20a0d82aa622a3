//! The files of a hand-over on a disk.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use transcript_format::object::Object;
use transcript_import::handover::{
    Conversion, Home, Items, Options, SourceItem, Target, Written, handover,
};
use transcript_import::{Agent, Error, NodeKind, Policy, Store, dialect};
use transcript_storage::{Disk, MemoryDisk, ReadDisk};
use transcript_testkit::fake_disk::{FakeDisk, Fault};

use super::handed_over::{CWD, NOW, options};

fn items() -> Vec<SourceItem> {
    let item = |kind, text: &str| SourceItem {
        text: text.to_owned(),
        ..SourceItem::new(kind)
    };
    vec![item(NodeKind::User, "U"), item(NodeKind::Assistant, "A")]
}

fn write(
    disk: &dyn Disk,
    items: &dyn Items,
    target: Target,
    options: &Options,
) -> Result<Written, Error> {
    let home = Home {
        disk,
        path: Path::new("/home"),
    };
    handover(items, target, options, home)
}

fn kind_of(error: &Error) -> Option<ErrorKind> {
    match error {
        Error::Io { error, .. } => Some(error.kind()),
        _ => None,
    }
}

#[test]
fn a_session_is_listed_with_its_title_and_folder_and_never_overwritten() {
    for target in Target::ALL {
        let disk = MemoryDisk::new();
        let written = write(&disk, &items(), target, &options()).expect("it is written");
        let first = disk.bytes(&written.files[0]).expect("it is there");
        assert!(first.ends_with(b"\n"), "{target}");
        let mut later = options();
        later.written = Some(NOW + 86_400_000);
        let again = write(&disk, &items(), target, &later);
        let error = again.expect_err("it is there");
        assert_eq!(kind_of(&error), Some(ErrorKind::AlreadyExists), "{target}");
        assert_eq!(disk.bytes(&written.files[0]), Some(first), "{target}");
        let Ok(agent) = target.name().parse::<Agent>() else {
            continue;
        };
        let store = Store {
            disk: &disk,
            path: Path::new("/home"),
        };
        assert!(dialect(agent).has_store(store), "{target}");
        let sessions = dialect(agent).sessions(store).expect("they are listed");
        assert_eq!(sessions.len(), 1, "{target}");
        assert_eq!(sessions[0].id, written.session_id, "{target}");
        let read = dialect(agent).read(store, &written.session_id, Policy::Vendor);
        let metadata = read.expect("it is read").metadata;
        assert_eq!(metadata.cwd.as_deref(), Some(CWD), "{target}");
        if target == Target::Copilot {
            // Its title is read as it is written, with the marks around it.
            assert!(
                metadata
                    .title
                    .is_some_and(|title| title.contains("A title"))
            );
        } else {
            assert_eq!(metadata.title, options().title, "{target}");
        }
    }
}

#[test]
fn nothing_is_left_of_a_conversation_that_cannot_be_read() {
    struct Broken;
    impl Items for Broken {
        fn count(&self) -> usize {
            2
        }

        fn item(&self, at: usize) -> Result<SourceItem, Error> {
            thread_local!(static READS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });
            let reads = READS.get();
            READS.set(reads + 1);
            if reads < 3 {
                return Ok(items()[at].clone());
            }
            READS.set(0);
            Err(Error::Io {
                path: "source".into(),
                error: ErrorKind::UnexpectedEof.into(),
            })
        }
    }
    for target in Target::ALL {
        let disk = MemoryDisk::new();
        let error = write(&disk, &Broken, target, &options()).expect_err("it cannot be read");
        assert_eq!(kind_of(&error), Some(ErrorKind::UnexpectedEof), "{target}");
        assert!(!disk.exists(Path::new("/home")), "{target}");
        let whole = write(&disk, &items(), target, &options()).expect("nothing has the name");
        assert!(disk.is_file(&whole.files[0]), "{target}");
    }
}

/// A disk with files that some clients change for a new session.
fn used_disk() -> FakeDisk {
    let disk = FakeDisk::new(1);
    disk.put("/home/session_index.jsonl", b"{\"id\":\"other\"}\n");
    disk.put("/home/projects.json", b"{\"projects\":{\"/other\":\"x\"}}");
    disk
}

fn contents(disk: &FakeDisk) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let names = disk.names().into_iter();
    names.map(|name| (name.clone(), disk.bytes(name))).collect()
}

#[test]
fn nothing_of_a_hand_over_stays_whichever_operation_of_the_disk_fails() {
    let disks: [fn() -> FakeDisk; 2] = [used_disk, || FakeDisk::new(1)];
    for (target, new_disk) in Target::ALL
        .into_iter()
        .flat_map(|target| disks.map(|disk| (target, disk)))
    {
        let before = contents(&new_disk());
        let mut failures = 0;
        for nth in 1.. {
            let disk = new_disk();
            disk.set(Fault::error(ErrorKind::StorageFull).at_any(nth));
            let written = write(&*disk.process(), &items(), target, &options());
            if disk.faults_left() > 0 {
                assert!(written.is_ok(), "{target}: {written:?}");
                break;
            }
            if written.is_err() {
                failures += 1;
                assert_eq!(contents(&disk), before, "{target}: operation {nth}");
            }
        }
        assert!(failures > 0, "{target}");
    }
}

#[test]
fn a_kill_leaves_no_listed_session_or_a_whole_one() {
    for target in Target::ALL {
        let Ok(agent) = target.name().parse::<Agent>() else {
            continue;
        };
        let (mut without, mut whole) = (0, 0);
        for nth in 1.. {
            let disk = used_disk();
            disk.kill_at(nth);
            let written = write(&*disk.process(), &items(), target, &options());
            if written.is_ok() {
                break;
            }
            disk.restart();
            let store = Store {
                disk: &disk,
                path: Path::new("/home"),
            };
            let sessions = dialect(agent).sessions(store).expect("they are listed");
            let Some(session) = sessions.first() else {
                without += 1;
                continue;
            };
            whole += 1;
            let read = dialect(agent).read(store, &session.id, Policy::Vendor);
            let read = read.expect("it is read");
            assert_eq!(read.count(), items().len(), "{target}: operation {nth}");
            assert!(read.damage.is_empty(), "{target}: {:?}", read.damage);
        }
        assert!(without > 0, "{target}: {whole} whole");
    }
}

#[test]
fn what_would_be_written_is_what_is_written() {
    for target in Target::ALL {
        let disk = used_disk();
        let before = contents(&disk);
        let home = Home {
            disk: &disk,
            path: Path::new("/home"),
        };
        let (items, options) = (items(), options());
        let planned = Conversion::plan_in(&items, target, &options, home).expect("it is planned");
        let changes = planned.changes_in(home).expect("it is planned");
        assert_eq!(contents(&disk), before, "{target}");
        let written = planned.write_in(home).expect("it is written");
        assert_eq!(written, changes, "{target}");
        for change in &changes {
            let old = before.iter().find(|(path, _)| *path == change.path);
            assert_eq!(change.is_new, old.is_none(), "{target}");
            let old = old
                .and_then(|(_, bytes)| bytes.as_ref())
                .map_or(0, Vec::len);
            let new = disk.bytes(&change.path).expect("it is there").len();
            assert_eq!((new - old) as u64, change.bytes, "{target}: {change:?}");
        }
        let changed = contents(&disk).into_iter();
        let changed = changed.filter(|file| !before.contains(file));
        assert_eq!(changed.count(), changes.len(), "{target}");
    }
}

#[test]
fn the_title_of_a_thread_is_a_line_more_even_behind_a_torn_one() {
    let disk = MemoryDisk::new();
    disk.put("/home/session_index.jsonl", "{\"id\":\"other\",\"thread_na");
    write(&disk, &items(), Target::Codex, &options()).expect("it is written");
    let index = disk
        .bytes("/home/session_index.jsonl")
        .expect("it is there");
    let index = String::from_utf8(index).expect("it is text");
    let lines: Vec<&str> = index.lines().collect();
    assert_eq!(lines.len(), 2);
    let line = Object::parse(lines[1]).expect("it is an object");
    assert_eq!(
        line.str("thread_name").as_deref(),
        options().title.as_deref()
    );
}

#[test]
fn gemini_keeps_its_names_of_folders_and_gets_one_that_no_other_has() {
    let read = |disk: &MemoryDisk| {
        let text = disk.bytes("/home/projects.json").expect("it is there");
        String::from_utf8(text).expect("it is text")
    };
    let disk = MemoryDisk::new();
    let known = format!("{{\"projects\":{{\"/other\":\"x\",\"{CWD}\":\"mine\"}},\"more\":1}}");
    disk.put("/home/projects.json", known.as_str());
    let written = write(&disk, &items(), Target::Gemini, &options()).expect("it is written");
    assert!(written.files[0].starts_with("/home/tmp/mine/chats"));
    assert_eq!(read(&disk), known);

    let disk = MemoryDisk::new();
    disk.put(
        "/home/projects.json",
        "{\"projects\":{\"/other/proj\":\"proj\"},\"more\":1}",
    );
    let written = write(&disk, &items(), Target::Gemini, &options()).expect("it is written");
    assert!(written.files[0].starts_with("/home/tmp/proj-1/chats"));
    let text = read(&disk);
    let projects = Object::parse(&text).expect("it is an object");
    assert_eq!(projects.u64("more"), Some(1));
    let projects = projects.object("projects").expect("it is an object");
    assert_eq!(projects.str("/other/proj").as_deref(), Some("proj"));
    assert_eq!(projects.str(CWD).as_deref(), Some("proj-1"));
}

#[test]
fn a_session_of_gemini_does_not_begin_in_the_minute_in_which_it_can_be_loaded() {
    let disk = MemoryDisk::new();
    let written = write(&disk, &items(), Target::Gemini, &options()).expect("it is written");
    let name = written.files[0].file_name().expect("it has a name");
    let name = name.to_str().expect("it is text");
    assert!(name.starts_with("session-2026-11-28T16-38-"), "{name}");
    let text = disk.bytes(&written.files[0]).expect("it is there");
    let text = String::from_utf8(text).expect("it is text");
    let header = text
        .lines()
        .next()
        .and_then(|line| Object::parse(line).ok());
    let started = header.as_ref().and_then(|header| header.str("startTime"));
    assert_eq!(started.as_deref(), Some("2026-11-28T16:38:00.000Z"));
}

#[test]
fn an_old_session_is_not_old_for_gemini_which_deletes_those() {
    let mut items = items();
    items[0].time = Some(NOW - 86_400_000 * 90);
    let mut options = options();
    for written in [Some(NOW), None] {
        options.written = written;
        let conversion = Conversion::plan(&items, Target::Gemini, &options).expect("it is planned");
        let mut bytes = Vec::new();
        conversion.write_to(&mut bytes).expect("it is written");
        let text = String::from_utf8(bytes).expect("it is text");
        let header = text.lines().next().expect("it has a header");
        let header = Object::parse(header).expect("it is an object");
        let expected = match written {
            Some(_) => "2026-11-28T16:40:00.000Z",
            None => "2026-08-30T16:38:00.000Z",
        };
        assert_eq!(header.str("lastUpdated").as_deref(), Some(expected));
        let started = header.str("startTime");
        assert_eq!(started.as_deref(), Some("2026-08-30T16:38:00.000Z"));
    }
}

#[test]
fn odd_folders_and_times_are_no_reason_to_fail() {
    for target in Target::ALL {
        for cwd in ["", "/", "relative", "C:\\work\\p", "/ü/../x", "/a/b/"] {
            for start in [i64::MIN, -1, 0, i64::MAX] {
                let options = Options {
                    cwd: cwd.to_owned(),
                    title: Some(" \n".to_owned()),
                    start,
                    written: Some(start),
                    ..Options::default()
                };
                let disk = MemoryDisk::new();
                let written = write(&disk, &items(), target, &options).expect("it is written");
                let within = written.files[0]
                    .strip_prefix("/home")
                    .expect("it is within");
                let is_plain = within
                    .components()
                    .all(|part| matches!(part, std::path::Component::Normal(_)));
                assert!(is_plain, "{within:?}");
            }
        }
    }
}
