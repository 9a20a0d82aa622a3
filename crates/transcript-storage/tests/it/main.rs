//! Every disk gives the same answers.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use transcript_storage::{
    Disk, ExchangeError, FileKind, MemoryDisk, ReadDisk, Reader, RealDisk, TemporaryFile,
    TemporaryFolder,
};

/// Runs a test on each disk, with a folder that it may use.
fn on_each_disk(test: impl Fn(&dyn Disk, &Path)) {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    test(&RealDisk, &real.join("home"));
    test(&MemoryDisk::new(), Path::new("/home"));
}

fn append(disk: &dyn Disk, path: &Path, bytes: &[u8]) {
    let file = disk.open(path, true).unwrap().file;
    assert_eq!(file.append(bytes).unwrap(), bytes.len());
}

fn bytes(disk: &dyn Disk, path: &Path) -> Vec<u8> {
    disk.read(path, usize::MAX).unwrap()
}

#[test]
fn appended_bytes_are_read_at_their_offset() {
    on_each_disk(|disk, folder| {
        let path = folder.join("a/b.jsonl");
        let error = disk.open(&path, false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let first = disk.open(&path, true).unwrap();
        assert!(first.is_new);
        append(disk, &path, b"one");
        assert_eq!(first.file.append(b"two").unwrap(), 3);
        assert_eq!(first.file.position().unwrap(), 6);
        assert!(!disk.open(&path, true).unwrap().is_new);

        let reader = disk.open_to_read(&path).unwrap();
        for (offset, expected) in [(0, &b"onet"[..]), (4, b"wo"), (6, b""), (1 << 40, b"")] {
            let mut buffer = [0; 4];
            let read = reader.read_at(offset, &mut buffer).unwrap();
            assert_eq!(&buffer[..read], expected, "{disk:?}: {offset}");
            assert_eq!(first.file.read_at(offset, &mut buffer).unwrap(), read);
        }
        assert_eq!(disk.read(&path, 4).unwrap(), b"onet");
        let found = disk.metadata(&path).unwrap();
        assert_eq!((found.kind, found.len), (FileKind::File, 6));
        assert_eq!(reader.metadata().unwrap(), found);
        assert_eq!(first.file.metadata().unwrap(), found);

        first.file.truncate(2).unwrap();
        assert_eq!(bytes(disk, &path), b"on");
        assert_eq!(first.file.status().unwrap().len, 2);
        assert_eq!(reader.metadata().unwrap().len, 2);
    });
}

#[test]
fn an_identity_follows_the_file_and_not_the_name() {
    on_each_disk(|disk, folder| {
        let (a, b) = (folder.join("a"), folder.join("b"));
        append(disk, &a, b"a");
        append(disk, &b, b"b");
        let old = disk.open(&a, false).unwrap().file;
        let reader = disk.open_to_read(&a).unwrap();
        let of = |path: &Path| disk.identity(path).unwrap();
        let (of_a, of_b) = (of(&a), of(&b));
        assert!(of_a.is_some() && of_a != of_b);
        assert_eq!(Some(old.identity().unwrap()), of_a);

        disk.rename(&b, &a).unwrap();
        assert_eq!((of(&a), of(&b)), (of_b, None));
        assert!(!old.status().unwrap().is_linked);
        assert_eq!(bytes(disk, &a), b"b");
        // An open reader of the old file still reads that file.
        assert_eq!(Some(reader.metadata().unwrap().identity), of_a);
        old.append(b"!").unwrap();
        assert_eq!(reader.metadata().unwrap().len, 2);

        disk.remove(&a).unwrap();
        assert_eq!(of(&a), None);
        let missing = [disk.remove(&a), disk.rename(&a, &b)];
        for result in missing {
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::NotFound);
        }
    });
}

#[test]
fn a_new_file_takes_no_name_of_another() {
    on_each_disk(|disk, folder| {
        let path = folder.join("new/a");
        disk.write_new(&path, b"whole").unwrap();
        let error = disk.write_new(&path, b"other").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(bytes(disk, &path), b"whole");
        let below = path.join("b");
        assert!(disk.write_new(&below, b"").is_err());
        assert!(disk.open(&below, true).is_err());
        assert!(disk.open(folder, true).is_err());
    });
}

#[test]
fn a_file_that_is_started_has_no_name_until_it_is_complete() {
    on_each_disk(|disk, folder| {
        let path = folder.join("a");
        assert!(disk.new_file(&path).is_err());
        disk.create_folder(folder).unwrap();
        let start = || {
            let mut file = disk.new_file(&path).unwrap();
            file.write_all(b"whole").unwrap();
            file
        };
        drop(start());
        assert!(disk.list(folder).unwrap().next().is_none(), "{disk:?}");
        let file = start();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        file.set_properties(Some(time), Some(0o400)).unwrap();
        let mut text = String::new();
        let mut reader = Reader::new(file.reader().unwrap());
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "whole");
        reader.seek(SeekFrom::End(-2)).unwrap();
        let mut first = [0];
        reader.read_exact(&mut first).unwrap();
        assert_eq!(first, *b"l");
        assert!(!disk.has_name(&path));
        file.keep(&path).unwrap();
        assert_eq!(bytes(disk, &path), b"whole");
        assert_eq!(disk.metadata(&path).unwrap().modified, Some(time));

        let error = start().keep(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        let mut other = start();
        other.write_all(b"r").unwrap();
        other.replace(&path).unwrap();
        assert_eq!(bytes(disk, &path), b"wholer");
        disk.remove_stale(folder);
        assert_eq!(disk.list(folder).unwrap().count(), 1);
    });
}

#[test]
fn a_file_of_a_cache_is_made_where_its_folder_is() {
    on_each_disk(|disk, folder| {
        let path = folder.join("a");
        assert!(disk.open_cache(&path).is_err());
        disk.create_folder(folder).unwrap();
        let file = disk.open_cache(&path).unwrap();
        assert!(file.try_lock().unwrap());
        file.append(b"one").unwrap();
        let other = disk.open_cache(&path).unwrap();
        assert!(!other.try_lock().unwrap());
        file.truncate(1).unwrap();
        file.append(b"x").unwrap();
        assert_eq!(bytes(disk, &path), b"ox");
        let error = disk.open_cache(folder).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    });
}

#[test]
fn a_second_name_leads_to_the_same_file_until_one_is_removed() {
    on_each_disk(|disk, folder| {
        let (a, b) = (folder.join("a"), folder.join("b"));
        append(disk, &a, b"one");
        let missing = disk.link(&a, &folder.join("missing/a")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        disk.link(&a, &b).unwrap();
        let taken = disk.link(&a, &b).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(disk.identity(&a).unwrap(), disk.identity(&b).unwrap());
        // A line that is appended to one would be shown in the other.
        let error = disk.open(&a, false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        disk.remove(&a).unwrap();
        disk.sync_folder(folder).unwrap();
        append(disk, &b, b"two");
        assert_eq!(bytes(disk, &b), b"onetwo");
        assert!(
            disk.open(&b, false)
                .unwrap()
                .file
                .status()
                .unwrap()
                .is_linked
        );
    });
}

#[test]
fn a_folder_is_there_until_it_is_removed() {
    on_each_disk(|disk, folder| {
        let (one, two) = (folder.join("one"), folder.join("one/two"));
        let kind = |result: io::Result<()>| result.unwrap_err().kind();
        let missing = disk.create_new_folder(&two, None);
        assert_eq!(kind(missing), io::ErrorKind::NotFound);
        disk.create_folder(folder).unwrap();
        disk.create_new_folder(&one, Some(0o700)).unwrap();
        let again = disk.create_new_folder(&one, None);
        assert_eq!(kind(again), io::ErrorKind::AlreadyExists);
        disk.create_new_folder(&two, None).unwrap();
        append(disk, &two.join("file"), b"");
        let full = disk.remove_folder(&two);
        assert_eq!(kind(full), io::ErrorKind::DirectoryNotEmpty);
        disk.remove(&two.join("file")).unwrap();
        assert!(disk.is_folder(&two) && disk.exists(&two) && !disk.is_file(&two));
        disk.remove_folder(&two).unwrap();
        assert_eq!(kind(disk.remove_folder(&two)), io::ErrorKind::NotFound);
        append(disk, &two.join("three/file"), b"");
        disk.remove_folder_with_content(&one).unwrap();
        assert!(!disk.exists(&one) && disk.list(folder).unwrap().next().is_none());
    });
}

#[test]
fn disk_refuses_replacements_that_it_cannot_make() {
    let (disk, path) = (MemoryDisk::new(), Path::new("/a"));
    disk.put(path, "old");
    disk.finish_replacement(path).unwrap();
    let begun = disk.begin_replacement(path);
    assert!(matches!(begun, Err(ExchangeError::Unsupported)));
    let undone = disk.undo_replacement(path);
    assert!(matches!(undone, Err(ExchangeError::Unsupported)));
}

#[test]
fn a_temporary_folder_is_private_and_goes_with_its_files() {
    let folder = TemporaryFolder::new().unwrap();
    let path = folder.path().to_owned();
    folder.create("a").unwrap().write_all(b"text").unwrap();
    assert_eq!(RealDisk.read(&path.join("a"), 9).unwrap(), b"text");
    if let Some(mode) = RealDisk.metadata(&path).unwrap().mode {
        assert_eq!(mode & 0o777, 0o700);
    }
    drop(folder);
    assert!(!RealDisk.has_name(&path));
}

#[test]
fn a_temporary_file_is_read_as_it_was_written_and_has_no_name() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().join("a"), folder.path().join("missing/a")] {
        let mut file = TemporaryFile::beside(&path).unwrap();
        file.write_all(b"text").unwrap();
        assert!(RealDisk.list(folder.path()).unwrap().next().is_none());
        let mut text = String::new();
        let mut reader = Reader::new(file.into_reader());
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
    }
}

#[test]
fn a_folder_lists_what_is_in_it_and_not_what_is_below() {
    on_each_disk(|disk, folder| {
        for name in ["b", "a.jsonl", "a/c", "a/d", "ab/c/d"] {
            append(disk, &folder.join(name), b"");
        }
        let list = |folder: &Path| -> Vec<(String, FileKind)> {
            let entries = disk.list(folder).unwrap().map(Result::unwrap);
            let entries = entries.map(|entry| (entry.name.into_string().unwrap(), entry.kind));
            let mut entries: Vec<_> = entries.collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            entries
        };
        let (file, below) = (FileKind::File, FileKind::Folder);
        let expected = [("a", below), ("a.jsonl", file), ("ab", below), ("b", file)];
        assert_eq!(
            list(folder),
            expected.map(|(name, kind)| (name.to_owned(), kind))
        );
        assert_eq!(list(&folder.join("ab")), [("c".to_owned(), below)]);
        assert!(disk.is_folder(&folder.join("a")) && !disk.is_folder(&folder.join("b")));
        assert_eq!(disk.real_path(&folder.join("a")).unwrap(), folder.join("a"));

        let missing = folder.join("missing");
        let errors = [
            disk.list(&missing).err(),
            disk.metadata(&missing).err(),
            disk.link_metadata(&missing).err(),
            disk.real_path(&missing).err(),
            disk.open_to_read(&missing).err(),
        ];
        for error in errors {
            assert_eq!(error.unwrap().kind(), io::ErrorKind::NotFound, "{disk:?}");
        }
        assert!(disk.list(&folder.join("b")).is_err());
    });
}

#[test]
fn one_handle_has_the_lock_until_it_is_dropped() {
    on_each_disk(|disk, folder| {
        let path = folder.join("a");
        let open = || disk.open(&path, true).unwrap();
        let (first, second) = (open().file, open().file);
        assert!(first.try_lock().unwrap());
        assert!(!second.try_lock().unwrap());
        first.unlock().unwrap();
        assert!(second.try_lock().unwrap());
        drop(second);
        assert!(first.try_lock().unwrap());
    });
}

#[test]
fn a_disk_in_memory_knows_whether_a_file_is_open_for_writing() {
    let (disk, path) = (MemoryDisk::new(), Path::new("/a"));
    let first = disk.open(path, true).unwrap();
    assert_eq!(first.has_other_writer, Some(false));
    let _reader = disk.open_to_read(path).unwrap();
    assert_eq!(disk.open(path, false).unwrap().has_other_writer, Some(true));
    drop(first);
    assert_eq!(
        disk.open(path, false).unwrap().has_other_writer,
        Some(false)
    );
}

#[test]
fn every_change_of_a_file_in_memory_changes_its_time() {
    let (disk, path) = (MemoryDisk::new(), Path::new("/a"));
    disk.put(path, "one");
    let mut last = disk.metadata(path).unwrap();
    let file = disk.open(path, false).unwrap().file;
    file.truncate(0).unwrap();
    file.append(b"two").unwrap();
    let now = disk.metadata(path).unwrap();
    assert!(now.modified > last.modified);
    (last.modified, last.changed) = (now.modified, now.changed);
    assert_eq!(now, last);
}

#[cfg(unix)]
#[test]
fn links_are_followed_where_the_contract_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let (file, link) = (folder.join("file"), folder.join("link"));
    std::fs::write(&file, "text").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let kinds = RealDisk.list(&folder).unwrap().map(|entry| {
        let entry = entry.unwrap();
        (entry.name == "link", entry.kind)
    });
    let mut kinds: Vec<_> = kinds.collect();
    kinds.sort_by_key(|(is_link, _)| *is_link);
    assert_eq!(kinds, [(false, FileKind::File), (true, FileKind::Link)]);
    assert_eq!(RealDisk.metadata(&link).unwrap().kind, FileKind::File);
    assert_eq!(RealDisk.link_metadata(&link).unwrap().kind, FileKind::Link);
    assert_eq!(RealDisk.real_path(&link).unwrap(), file);
    assert_eq!(RealDisk.read(&link, 2).unwrap(), b"te");
    assert!(RealDisk.open(&link, false).is_err());
}
