//! What every disk promises holds on a disk over objects as well.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use transcript_objects::ObjectDisk;
use transcript_storage::{Disk, FileKind, MemoryDisk, ReadDisk, RealDisk};

use crate::stores;

/// Longer than one request may write.
const LONG: usize = 20 << 20;

fn bytes(len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8)
        .collect()
}

fn kind<T>(result: io::Result<T>) -> Option<io::ErrorKind> {
    result.err().map(|error| error.kind())
}

fn names(disk: &dyn Disk, folder: &Path) -> Vec<(String, FileKind, Option<u64>)> {
    let entries = disk.list(folder).expect("a folder");
    let mut names: Vec<_> = entries
        .map(|entry| {
            let entry = entry.expect("an entry");
            let metadata = disk
                .metadata_of(&folder.join(&entry.name), &entry)
                .expect("metadata");
            let len = metadata.is_file().then_some(metadata.len);
            (entry.name.into_string().expect("UTF-8"), entry.kind, len)
        })
        .collect();
    names.sort_by(|one, other| one.0.cmp(&other.0));
    names
}

/// Checks what a disk promises to those who write whole files and read them, in an empty folder.
fn keeps_promises(disk: &dyn Disk, folder: &Path) {
    let file = folder.join("packs/one.zst");
    assert_eq!(kind(disk.metadata(&file)), Some(io::ErrorKind::NotFound));
    assert_eq!(
        kind(disk.open_to_read(&file)),
        Some(io::ErrorKind::NotFound)
    );
    assert_eq!(
        kind(disk.list(&folder.join("packs"))),
        Some(io::ErrorKind::NotFound)
    );
    assert_eq!(disk.identity(&file).expect("no file"), None);
    assert!(!disk.exists(&file) && !disk.has_name(&file));

    disk.write_new(&file, b"one").expect("a new file");
    assert_eq!(
        kind(disk.write_new(&file, b"two")),
        Some(io::ErrorKind::AlreadyExists)
    );
    assert_eq!(disk.read(&file, 10).expect("the file"), b"one");
    assert_eq!(disk.read(&file, 2).expect("its start"), b"on");
    let metadata = disk.metadata(&file).expect("the file");
    assert!(metadata.is_file() && metadata.len == 3 && metadata.modified.is_some());
    assert!(metadata.identity.is_known());
    assert_eq!(
        disk.identity(&file).expect("the file"),
        Some(metadata.identity)
    );
    assert!(disk.is_folder(&folder.join("packs")) && disk.is_file(&file));
    assert!(disk.has_folder(&folder.join("packs")).expect("a folder"));

    disk.write_new(&folder.join("marker"), b"")
        .expect("an empty file");
    assert_eq!(
        disk.read(&folder.join("marker"), 10).expect("the file"),
        b""
    );
    let expected = [
        ("marker".into(), FileKind::File, Some(0)),
        ("packs".into(), FileKind::Folder, None),
    ];
    assert_eq!(names(disk, folder), expected);

    disk.remove(&file).expect("removed");
    assert_eq!(
        kind(disk.open_to_read(&file)),
        Some(io::ErrorKind::NotFound)
    );
    disk.write_new(&file, b"again").expect("the name is free");
    assert_eq!(disk.read(&file, 10).expect("the file"), b"again");
}

/// Checks new files that are written in parts, and reads at any offset.
fn keeps_new_files(disk: &dyn Disk, folder: &Path) {
    disk.create_folder(folder).expect("a folder");
    for len in [0, 1, 70_000, LONG] {
        let (path, bytes) = (folder.join(len.to_string()), bytes(len));
        let new = || {
            let mut file = disk.new_file(&path).expect("a new file");
            for part in bytes.chunks(1 << 20) {
                file.write_all(part).expect("written");
            }
            file
        };
        let file = new();
        assert!(!disk.exists(&path));
        let mut read = vec![0; len];
        assert_eq!(
            file.reader()
                .expect("its bytes")
                .fill(0, &mut read)
                .expect("read"),
            len
        );
        assert!(read == bytes);
        file.keep(&path).expect("kept");
        assert_eq!(kind(new().keep(&path)), Some(io::ErrorKind::AlreadyExists));
        drop(new());
        let file = disk.open_to_read(&path).expect("the file");
        assert_eq!(file.metadata().expect("metadata").len, len as u64);
        for (offset, wanted) in [
            (0, len),
            (0, 9),
            (len / 2, 100_000),
            (len.saturating_sub(9), 9),
            (len / 3, 1),
            (len, 1),
            (len + 9, 5),
        ] {
            let mut read = vec![0; wanted];
            let count = file.fill(offset as u64, &mut read).expect("read");
            let expected = &bytes[offset.min(len)..(offset + wanted).min(len)];
            assert!(
                &read[..count] == expected,
                "{wanted} bytes at {offset} of {len}"
            );
        }
    }
}

fn everywhere(check: fn(&dyn Disk, &Path)) {
    let folder = tempfile::tempdir().expect("a folder");
    check(&RealDisk, &folder.path().join("a"));
    check(&MemoryDisk::new(), Path::new("/a"));
    check(&stores::in_memory(), &Path::new(stores::BUCKET).join("a"));
}

#[test]
fn files_are_written_once_read_listed_and_removed() {
    everywhere(keeps_promises);
}

#[test]
fn new_files_of_any_length_appear_whole_and_are_read_at_any_offset() {
    everywhere(keeps_new_files);
}

#[test]
fn the_same_holds_on_a_server() {
    let Some(address) = stores::on_server("disks") else {
        return;
    };
    let disk = ObjectDisk::connect(&address).expect("a bucket");
    keeps_promises(&disk, &address.folder());
    keeps_new_files(&disk, &address.folder().join("new"));
}

#[test]
fn what_objects_cannot_do_is_refused() {
    let disk = stores::in_memory();
    let at = |name: &str| PathBuf::from(stores::BUCKET).join(name);
    disk.write_new(&at("a"), b"a").expect("written");
    assert_eq!(
        kind(disk.open(&at("a"), false)),
        Some(io::ErrorKind::Unsupported)
    );
    assert_eq!(
        kind(disk.rename(&at("a"), &at("b"))),
        Some(io::ErrorKind::Unsupported)
    );
    assert_eq!(
        kind(disk.rename_new(&at("a"), &at("b"))),
        Some(io::ErrorKind::Unsupported)
    );
    for path in ["/a", "s3://other/a", "s3://b/../a"] {
        assert_eq!(
            kind(disk.open_to_read(Path::new(path))),
            Some(io::ErrorKind::InvalidInput),
            "{path}"
        );
    }
    assert_eq!(disk.read(&at("a"), 9).expect("unchanged"), b"a");
}

#[test]
fn an_object_that_is_replaced_while_it_is_read_is_an_error_and_never_a_mixture() {
    let disk = stores::in_memory();
    let path = Path::new(stores::BUCKET).join("a");
    let write = |byte: u8| {
        disk.replace(&path, Path::new(""), &vec![byte; 1 << 20])
            .expect("written");
    };
    write(1);
    let (read, unread) = (
        disk.open_to_read(&path).expect("a file"),
        disk.open_to_read(&path).expect("a file"),
    );
    let mut buffer = [0; 9];
    assert_eq!(read.fill(0, &mut buffer).expect("read"), 9);
    write(2);
    // At the other end, which was not read ahead.
    assert_eq!(
        kind(read.fill(1_000_000, &mut buffer)),
        Some(io::ErrorKind::ResourceBusy)
    );
    assert_eq!(unread.fill(1_000_000, &mut buffer).expect("the new one"), 9);
    assert_eq!(buffer, [2; 9]);
}
