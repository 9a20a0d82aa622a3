//! Restored files are equal to captured ones: bytes, times and modes.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::num::NonZeroUsize;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use transcript_archive::{
    Archive, ArchiveOptions, CaptureOptions, Captured, ErrorKind, Identities, RestoreOptions,
};
use transcript_testkit::changes::Changes;
use transcript_testkit::rng::Rng;
use transcript_testkit::trees::tree;

/// A file: bytes, time of the last change in nanoseconds, and mode.
type FoundFile = (Vec<u8>, i128, u32);

/// Returns the files in a folder that belong to sessions, by their path.
fn files(root: &Path) -> BTreeMap<PathBuf, FoundFile> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let below = path.strip_prefix(root).unwrap().to_owned();
            let parts: Vec<String> = below
                .iter()
                .map(|part| part.to_str().unwrap().to_owned())
                .collect();
            let is_session = parts.len() == 2 && parts[1].ends_with(".jsonl");
            let is_of_session = parts.len() > 2 && parts[1].len() == 36;
            if is_session || is_of_session {
                let found = fs::metadata(&path).unwrap();
                let time =
                    i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
                files.insert(
                    below,
                    (fs::read(&path).unwrap(), time, found.mode() & 0o7777),
                );
            }
        }
    }
    files
}

fn capture(archive: &mut Archive, root: &Path) -> Captured {
    let captured = archive.capture(root, &CaptureOptions::new()).unwrap();
    assert!(captured.problems.is_empty(), "{:?}", captured.problems);
    captured
}

fn restored(archive: &Archive, options: &RestoreOptions) -> BTreeMap<PathBuf, FoundFile> {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("projects");
    let restored = archive.restore(&root, options).unwrap();
    assert!(restored.problems.is_empty(), "{:?}", restored.problems);
    if root.exists() {
        files(&root)
    } else {
        BTreeMap::new()
    }
}

fn assert_same(
    found: &BTreeMap<PathBuf, FoundFile>,
    expected: &BTreeMap<PathBuf, FoundFile>,
    what: &str,
) {
    let names = |files: &BTreeMap<PathBuf, FoundFile>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected), "{what}");
    for (path, (bytes, time, mode)) in expected {
        let (of_bytes, of_time, of_mode) = &found[path];
        assert!(of_bytes == bytes, "{what}: the bytes of {}", path.display());
        assert_eq!(
            (of_time, of_mode),
            (time, mode),
            "{what}: {}",
            path.display()
        );
    }
}

/// The number of generated trees. The environment may ask for more.
fn trees() -> u64 {
    let wanted = std::env::var("TRANSCRIPT_ARCHIVE_TREES");
    let wanted = wanted.ok().and_then(|trees| trees.parse().ok());
    wanted.unwrap_or(60 / super::TREES_DIVISOR)
}

#[test]
fn every_version_of_every_file_can_be_restored_whatever_happens_to_the_files() {
    for seed in 0..trees() {
        let folder = TempDir::new().unwrap();
        let root = folder.path().join("projects");
        let tree = tree(seed);
        tree.write(&root).unwrap();
        let mut rng = Rng::new(seed);
        let mut changes = Changes::default();
        if !rng.one_in(3) {
            changes.age_all(&root, &tree).unwrap();
        }
        let place = folder.path().join("archive");
        let mut opening = super::opening();
        if rng.one_in(3) {
            let key = Identities::generate();
            opening = opening
                .encrypt_to(key.recipients())
                .identities(key)
                .local_folder(&folder.path().join("local"));
        }
        let mut archive = Archive::open_or_create_with(&place, &opening).unwrap();
        let mut known = BTreeMap::new();
        let mut states = Vec::new();
        for step in 0..8 {
            let mut what = format!("seed {seed}, step {step}");
            if step > 0 {
                for _ in 0..rng.range(1, 3) {
                    let change = changes.change(&root, &tree, &mut rng).unwrap();
                    what = format!("{what}, {}", change.what);
                }
            }
            if rng.one_in(4) {
                let now = files(&root);
                let paths: Vec<&PathBuf> = now.keys().collect();
                if !paths.is_empty() {
                    let path = root.join(rng.pick(&paths));
                    let mode = *rng.pick(&[0o600, 0o644, 0o400]);
                    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
                }
            }
            // Another process, as a rule.
            if rng.one_in(2) {
                archive = Archive::open_with(&place, &opening).unwrap();
            }
            let mut options = CaptureOptions::new().compare_all(rng.one_in(4));
            if rng.one_in(2) {
                options = options.pack_len(rng.below(4000) as u64);
            }
            if rng.one_in(2) {
                options = options.repack_at(NonZeroUsize::new(rng.range(2, 5)).unwrap());
            }
            let captured = archive.capture(&root, &options).unwrap();
            assert!(
                captured.problems.is_empty(),
                "{what}: {:?}",
                captured.problems
            );
            let time = captured.time;
            known.extend(files(&root));
            assert_same(&restored(&archive, &RestoreOptions::new()), &known, &what);
            if let Some(time) = time {
                states.push((time, known.clone(), what));
            }
        }
        // From the packs alone, in another process.
        if rng.one_in(2) && place.join("catalogue").exists() {
            fs::remove_file(place.join("catalogue")).unwrap();
        }
        if rng.one_in(2) && folder.path().join("local").exists() {
            fs::remove_dir_all(folder.path().join("local")).unwrap();
        }
        let archive = Archive::open_with(&place, &opening).unwrap();
        for (time, known, what) in states {
            let options = RestoreOptions::new().as_of(time);
            assert_same(
                &restored(&archive, &options),
                &known,
                &format!("{what}, later"),
            );
        }
    }
}

#[test]
fn nothing_is_stored_for_files_that_did_not_change() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("projects");
    let tree = tree(11);
    tree.write(&root).unwrap();
    Changes::default().age_all(&root, &tree).unwrap();
    let mut archive = super::open_or_create(&folder.path().join("archive")).unwrap();
    let first = capture(&mut archive, &root);
    assert!(first.sessions > 0 && first.unchanged == 0);
    // The time of a change of properties was just now, which settles with the second capture at the latest.
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    capture(&mut archive, &root);
    let third = capture(&mut archive, &root);
    assert_eq!(
        (third.files, third.stored, third.unchanged),
        (0, 0, first.sessions)
    );
}

/// Returns how an archive is opened without encryption, with the key, and without it.
fn openings(key: &Identities) -> [ArchiveOptions; 3] {
    let encrypted = || super::opening().encrypt_to(key.recipients());
    [
        super::opening(),
        encrypted().identities(key.clone()),
        encrypted(),
    ]
}

/// With and without `compare_all`, and in archives in which the bytes can be compared or not.
#[test]
fn another_time_or_mode_is_captured_although_the_bytes_are_the_same() {
    let folder = TempDir::new().unwrap();
    let key = Identities::generate();
    let openings = openings(&key);
    let mut places = Vec::new();
    for (number, opening) in openings.iter().enumerate() {
        for compares_all in [true, false] {
            // It is refused without the key.
            if number == 2 && compares_all {
                continue;
            }
            let place = folder.path().join(format!("{number}-{compares_all}"));
            let opening = opening.clone().local_folder(&place.join("local"));
            let root = place.join("projects");
            tree(11).write(&root).unwrap();
            places.push((place, root, opening, compares_all));
        }
    }
    // Then no state of a file is too young to be relied on.
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    for (place, root, opening, compares_all) in places {
        let what = format!("{}", place.display());
        let options = CaptureOptions::new().compare_all(compares_all);
        let mut archive = Archive::open_or_create_with(&place.join("archive"), &opening).unwrap();
        archive.capture(&root, &options).unwrap();
        let again = archive.capture(&root, &options).unwrap();
        assert_eq!((again.files, again.stored), (0, 0), "{what}");
        let before = files(&root);
        let mut paths = before.keys().map(|path| root.join(path));
        let (mode, time, both) = (paths.next(), paths.next(), paths.next());
        for path in [&mode, &both].into_iter().flatten() {
            fs::set_permissions(path, fs::Permissions::from_mode(0o400)).unwrap();
        }
        for path in [&time, &both].into_iter().flatten() {
            let file = fs::File::open(path).unwrap();
            let earlier = file.metadata().unwrap().modified().unwrap();
            let earlier = earlier - std::time::Duration::from_secs(86_400);
            file.set_modified(earlier).unwrap();
        }
        let after = files(&root);
        let changed = before.iter().filter(|(path, old)| after[*path] != **old);
        assert_eq!(changed.count(), 3, "{what}");
        let captured = archive.capture(&root, &options).unwrap();
        assert_eq!((captured.files, captured.bytes), (3, 0), "{what}");
        let readable = super::opening()
            .identities(key.clone())
            .local_folder(&place.join("local"));
        let archive = Archive::open_with(&place.join("archive"), &readable).unwrap();
        assert_same(&restored(&archive, &RestoreOptions::new()), &after, &what);
    }
}

/// In archives in which the bytes can be compared, and in those in which only their hash is known.
#[test]
fn a_large_file_that_was_changed_in_its_middle_and_grew_is_captured_as_it_is() {
    let folder = TempDir::new().unwrap();
    let key = Identities::generate();
    let openings = openings(&key);
    let line = |number: usize| format!("{{\"uuid\":\"{number:07}\",\"text\":\"as it was\"}}\n");
    let first: String = (0..80_000).map(line).collect();
    for (number, opening) in openings.into_iter().enumerate() {
        let place = folder.path().join(number.to_string());
        let opening = opening.local_folder(&place.join("local"));
        let root = place.join("projects");
        let session = root.join("-p/00000000-1111-4222-8333-444444444444.jsonl");
        fs::create_dir_all(session.parent().unwrap()).unwrap();
        let mut bytes = first.clone().into_bytes();
        fs::write(&session, &bytes).unwrap();
        let path = place.join("archive");
        let mut archive = Archive::open_or_create_with(&path, &opening).unwrap();
        capture(&mut archive, &root);
        for (round, at) in [1, 700_001, 2_000_003].into_iter().enumerate() {
            // The same inode, as a program writes that changes its file in place.
            bytes[at] = b'#';
            bytes.extend_from_slice(line(90_000 + round).as_bytes());
            fs::write(&session, &bytes).unwrap();
            let captured = capture(&mut archive, &root);
            assert_eq!(captured.files, 1, "{number} {at}");
            let readable = super::opening()
                .identities(key.clone())
                .local_folder(&place.join("local"));
            let readable = Archive::open_with(&path, &readable).unwrap();
            let back = restored(&readable, &RestoreOptions::new());
            assert_same(&back, &files(&root), &format!("{number} {at}"));
        }
    }
}

#[test]
fn files_next_to_the_projects_come_along_and_credentials_never() {
    let folder = TempDir::new().unwrap();
    let home = folder.path().join("home");
    let id = "11111111-2222-4333-8444-555555555555";
    let texts = [
        format!("projects/-p/{id}.jsonl"),
        format!("projects/-p/{id}/subagents/agent-a1.jsonl"),
        format!("projects/-p/{id}/tool-results/x.txt"),
        format!("tasks/{id}/1.json"),
        format!("file-history/{id}/0123@v1"),
        format!("todos/{id}-agent-{id}.json"),
    ];
    let others = [
        format!("projects/-p/{id}/.credentials.json"),
        format!("projects/-p/{id}/tool-results/.env"),
        "projects/-p/sessions-index.json".to_owned(),
        "tasks/other/1.json".to_owned(),
        ".credentials.json".to_owned(),
        "settings.json".to_owned(),
    ];
    for name in texts.iter().chain(&others) {
        let path = home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{{\"file\":\"{name}\"}}\n")).unwrap();
    }
    let place = folder.path().join("archive");
    let mut archive = super::open_or_create(&place).unwrap();
    let captured = capture(&mut archive, &home.join("projects"));
    assert_eq!((captured.files, captured.denied), (6, 2));
    let other = folder.path().join("other");
    let restored = archive
        .restore(&other.join("projects"), &RestoreOptions::new())
        .unwrap();
    assert!(restored.problems.is_empty(), "{:?}", restored.problems);
    for name in &texts {
        assert_eq!(
            fs::read(home.join(name)).unwrap(),
            fs::read(other.join(name)).unwrap(),
            "{name}"
        );
    }
    for name in &others {
        assert!(!other.join(name).exists(), "{name}");
    }
    // Below another name there is nothing next to the projects.
    let place = folder.path().join("sub").join("elsewhere");
    let restored = archive.restore(&place, &RestoreOptions::new()).unwrap();
    assert_eq!((restored.files, restored.problems.len()), (3, 0));
    assert_eq!(restored.omitted, 3);
}

#[test]
fn a_file_that_exists_is_never_changed() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("projects");
    let id = "11111111-2222-4333-8444-555555555555";
    let path = root.join("-p").join(format!("{id}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "{\"a\":1}\n").unwrap();
    let agent = root.join("-p").join(id).join("subagents/agent-a.jsonl");
    fs::create_dir_all(agent.parent().unwrap()).unwrap();
    fs::write(&agent, "{\"b\":1}\n").unwrap();
    let mut archive = super::open_or_create(&folder.path().join("archive")).unwrap();
    capture(&mut archive, &root);
    let all = RestoreOptions::new();
    let same = archive.restore(&root, &all).unwrap();
    assert_eq!((same.files, same.present, same.problems.len()), (0, 2, 0));
    fs::remove_file(&agent).unwrap();
    for live in ["{\"a\":1}\n{\"more\":2}\n", "{\"a\":2}\n", "{"] {
        fs::write(&path, live).unwrap();
        let refused = archive.restore(&root, &all).unwrap();
        assert!(matches!(refused.problems[0].kind(), ErrorKind::Exists(_)));
        assert_eq!(fs::read_to_string(&path).unwrap(), live);
        // Nothing of the session is restored then.
        assert!(!agent.exists());
    }
    fs::remove_file(&path).unwrap();
    // The id is in use elsewhere.
    let moved = root.join("-q").join(format!("{id}.jsonl"));
    fs::create_dir_all(moved.parent().unwrap()).unwrap();
    fs::write(&moved, "{}\n").unwrap();
    let refused = archive.restore(&root, &all).unwrap();
    assert_eq!(
        refused.problems[0].kind(),
        &ErrorKind::IdInUse(moved.clone())
    );
    assert!(!path.exists() && !agent.exists());
    fs::remove_file(&moved).unwrap();
    let restored = archive.restore(&root, &all).unwrap();
    assert_eq!((restored.files, restored.problems.len()), (2, 0));
}

#[test]
fn forks_take_little_space_and_any_zstd_reads_every_line() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("projects").join("-p");
    fs::create_dir_all(&root).unwrap();
    let mut rng = Rng::new(3);
    let words: Vec<String> = (0..4000).map(|_| format!("{:x}", rng.next_u64())).collect();
    let texts: Vec<String> = (0..600)
        .map(|_| {
            (0..60)
                .map(|_| rng.pick(&words).as_str())
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    let session = |number: u64| format!("{number:08x}-2222-4333-8444-555555555555");
    let mut raw = 0;
    for fork in 0..12 {
        let mut lines = String::new();
        for (number, text) in texts.iter().enumerate() {
            lines.push_str(&format!(
                "{{\"sessionId\":\"{}\",\"uuid\":\"{number}-{fork}\",\"message\":{{\"content\":\"{text}\"}}}}\n",
                session(fork)
            ));
        }
        raw += lines.len() as u64;
        fs::write(root.join(format!("{}.jsonl", session(fork))), lines).unwrap();
    }
    let mut archive = super::open_or_create(&folder.path().join("archive")).unwrap();
    let one = {
        let alone = folder.path().join("alone").join("-p");
        fs::create_dir_all(&alone).unwrap();
        let name = format!("{}.jsonl", session(0));
        fs::copy(root.join(&name), alone.join(&name)).unwrap();
        let mut archive = super::open_or_create(&folder.path().join("one")).unwrap();
        capture(&mut archive, alone.parent().unwrap()).stored
    };
    let stored = capture(&mut archive, root.parent().unwrap()).stored;
    assert!(
        stored < one + raw / 40,
        "{stored} bytes, {one} for one of them, {raw} in all"
    );
    // Lines of a pack can be read with zstd and the dictionary alone.
    let of = |folder: &str| {
        let entries = fs::read_dir(archive.folder().join(folder)).unwrap();
        entries.map(|entry| fs::read(entry.unwrap().path()).unwrap())
    };
    let dictionary = of("dictionaries").next().unwrap();
    let mut lines = Vec::new();
    for pack in of("packs") {
        let mut decoder =
            zstd::stream::read::Decoder::with_dictionary(&pack[..], &dictionary).unwrap();
        decoder.read_to_end(&mut lines).unwrap();
    }
    let first = fs::read(root.join(format!("{}.jsonl", session(0)))).unwrap();
    assert!(lines.starts_with(&first));
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        assert!(line.starts_with(b"{") && line.ends_with(b"}\n"));
    }
    assert_same(
        &restored(&archive, &RestoreOptions::new()),
        &files(root.parent().unwrap()),
        "forks",
    );
}
