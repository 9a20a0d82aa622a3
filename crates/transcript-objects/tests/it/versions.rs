//! Objects that several machines replace.

use std::path::{Path, PathBuf};
use std::thread;

use transcript_objects::ObjectDisk;
use transcript_storage::{Disk, ReadDisk};

use crate::stores;

const MACHINES: usize = 4;
const ROUNDS: usize = 25;

/// Adds a line to an object as long as another machine is faster.
fn add_with_condition(disk: &ObjectDisk, path: &Path, line: &str) {
    loop {
        let known = disk.read_version(path, 1 << 20);
        let (bytes, known) = known.map_or((Vec::new(), None), |(bytes, identity)| {
            (bytes, Some(identity))
        });
        let new = [&bytes[..], line.as_bytes()].concat();
        if disk
            .replace_version(path, known, &new)
            .expect("an answer")
            .is_some()
        {
            return;
        }
    }
}

/// The naive way.
fn add_without_condition(disk: &ObjectDisk, path: &Path, line: &str) {
    let bytes = disk.read(path, 1 << 20).unwrap_or_default();
    let new = [&bytes[..], line.as_bytes()].concat();
    disk.replace(path, Path::new(""), &new).expect("written");
}

/// Returns how many of the lines that some machines add at once are in the object.
fn lines_after(disk: &ObjectDisk, path: &Path, add: fn(&ObjectDisk, &Path, &str)) -> usize {
    thread::scope(|scope| {
        for machine in 0..MACHINES {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    add(disk, path, &format!("{machine}.{round}\n"));
                }
            });
        }
    });
    let text = String::from_utf8(disk.read(path, 1 << 20).expect("the object")).expect("UTF-8");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    lines.len()
}

#[test]
fn nothing_is_lost_that_several_machines_add_at_once() {
    let disk = stores::in_memory();
    let path = PathBuf::from(stores::BUCKET).join("object");
    assert_eq!(
        lines_after(&disk, &path, add_with_condition),
        MACHINES * ROUNDS
    );
    // The test would notice it.
    let other = PathBuf::from(stores::BUCKET).join("other");
    let kept = (0..20).map(|_| lines_after(&disk, &other, add_without_condition));
    assert!(kept.min() < Some(MACHINES * ROUNDS));
}

#[test]
fn nothing_is_lost_that_several_machines_add_at_once_on_a_server() {
    let Some(address) = stores::on_server("versions") else {
        return;
    };
    let disk = ObjectDisk::connect(&address).expect("a bucket");
    let path = address.folder().join("object");
    assert_eq!(
        lines_after(&disk, &path, add_with_condition),
        MACHINES * ROUNDS
    );
}

#[test]
fn a_version_is_replaced_once_and_the_identity_that_is_returned_is_the_next_one() {
    let disk = stores::in_memory();
    let path = PathBuf::from(stores::BUCKET).join("object");
    let replace = |known, bytes: &[u8]| {
        disk.replace_version(&path, known, bytes)
            .expect("an answer")
    };
    let first = replace(None, b"1").expect("a new object");
    assert_eq!(replace(None, b"0"), None);
    let second = replace(Some(first), b"2").expect("the first one was there");
    assert_ne!(first, second);
    assert_eq!(replace(Some(first), b"0"), None);
    assert_eq!(
        disk.read_version(&path, 9).expect("the object"),
        (b"2".to_vec(), second)
    );
    assert_eq!(disk.metadata(&path).expect("the object").identity, second);
    disk.remove(&path).expect("removed");
    assert_eq!(replace(Some(second), b"0"), None);
    assert!(!disk.exists(&path));
}
