//! A live file is removed only with a proof that the archive has it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use transcript_archive::{
    Archive, ArchiveOptions, CaptureOptions, KeepReason, PruneOptions, RestoreOptions,
};
use transcript_storage::Disk;
use transcript_testkit::fake_disk::{FakeDisk, Fault};

const ID: &str = "11111111-2222-4333-8444-555555555555";

/// Gives a file the same time, 40 days ago, in each call.
fn old(path: &Path) {
    static TIME: LazyLock<SystemTime> =
        LazyLock::new(|| SystemTime::now() - Duration::from_secs(40 * 86_400));
    fs::File::open(path).unwrap().set_modified(*TIME).unwrap();
}

fn on(disk: Arc<dyn Disk>) -> ArchiveOptions {
    ArchiveOptions::new().disk(disk)
}

/// A session with a subagent, both old, and their archive.
fn place() -> (TempDir, PathBuf, PathBuf, Archive) {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("projects");
    let own = root.join("-p").join(format!("{ID}.jsonl"));
    let agent = root.join("-p").join(ID).join("subagents/agent-a.jsonl");
    fs::create_dir_all(agent.parent().unwrap()).unwrap();
    fs::write(&own, "{\"a\":1}\n".repeat(1000)).unwrap();
    fs::write(&agent, "{\"b\":1}\n".repeat(1000)).unwrap();
    old(&own);
    old(&agent);
    let archive = Archive::open_or_create(&folder.path().join("archive")).unwrap();
    (folder, own, agent, archive)
}

fn now() -> PruneOptions {
    PruneOptions::new().hold(Duration::ZERO).remove(true)
}

/// Prunes, and returns the number of sessions that went, and the reasons for the others.
fn prune(archive: &mut Archive, own: &Path, options: &PruneOptions) -> (usize, Vec<KeepReason>) {
    let root = own.parent().unwrap().parent().unwrap();
    let pruned = archive.prune(root, options).unwrap();
    assert!(pruned.problems.is_empty(), "{:?}", pruned.problems);
    let reasons = pruned.kept.iter().map(|kept| kept.reason);
    (pruned.sessions.len(), reasons.collect())
}

#[test]
fn proved_sessions_are_removed_and_can_be_restored() {
    let (folder, own, agent, mut archive) = place();
    let root = folder.path().join("projects");
    assert_eq!(
        prune(&mut archive, &own, &now()),
        (0, vec![KeepReason::NotArchived])
    );
    archive.capture(&root, &CaptureOptions::new()).unwrap();
    // A dry run, which is the default.
    let dry = PruneOptions::new().hold(Duration::ZERO);
    assert_eq!(prune(&mut archive, &own, &dry), (1, vec![]));
    assert!(own.exists() && agent.exists());
    // It is held for seven days.
    let held = PruneOptions::new().remove(true);
    assert_eq!(
        prune(&mut archive, &own, &held),
        (0, vec![KeepReason::Held])
    );
    // It is not old enough.
    let older = now().older_than(Duration::from_secs(50 * 86_400));
    assert_eq!(prune(&mut archive, &own, &older), (0, vec![]));
    assert!(own.exists() && agent.exists());
    let bytes = fs::read(&own).unwrap();
    assert_eq!(prune(&mut archive, &own, &now()), (1, vec![]));
    assert!(!own.exists() && !agent.exists());
    let left = fs::read_dir(own.parent().unwrap()).unwrap();
    assert!(
        left.flatten()
            .all(|entry| !entry.file_type().unwrap().is_file())
    );
    archive.restore(&root, &RestoreOptions::new()).unwrap();
    assert!(fs::read(&own).unwrap() == bytes && agent.exists());
}

#[test]
fn nothing_is_removed_without_its_proof() {
    let (folder, own, agent, mut archive) = place();
    let root = folder.path().join("projects");
    archive.capture(&root, &CaptureOptions::new()).unwrap();
    let whole = fs::read(&agent).unwrap();
    // Other bytes, with the time and the length of before.
    let mut other = whole.clone();
    other[5000] ^= 1;
    for bytes in [&other[..], &whole[..9], &[&whole[..], b"{}\n"].concat()] {
        fs::write(&agent, bytes).unwrap();
        old(&agent);
        assert_eq!(
            prune(&mut archive, &own, &now()),
            (0, vec![KeepReason::Changed])
        );
        // A dry run says the same.
        let dry = now().remove(false);
        assert_eq!(
            prune(&mut archive, &own, &dry),
            (0, vec![KeepReason::Changed])
        );
        assert!(own.exists() && fs::read(&agent).unwrap() == bytes);
    }
    fs::write(&agent, &whole).unwrap();
    old(&agent);
    // A client has the file open.
    let mut open = fs::OpenOptions::new().append(true).open(&own).unwrap();
    if cfg!(target_os = "linux") {
        assert_eq!(
            prune(&mut archive, &own, &now()),
            (0, vec![KeepReason::Open])
        );
    }
    assert!(own.exists());
    open.write_all(b"").unwrap();
    drop(open);
    // The archive is damaged.
    let packs = folder.path().join("archive/packs");
    let pack = fs::read_dir(packs).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&pack).unwrap();
    bytes[20] ^= 1;
    fs::write(&pack, &bytes).unwrap();
    assert_eq!(
        prune(&mut archive, &own, &now()),
        (0, vec![KeepReason::Unreadable])
    );
    bytes[20] ^= 1;
    fs::write(&pack, &bytes).unwrap();
    fs::remove_file(&pack).unwrap();
    assert_eq!(
        prune(&mut archive, &own, &now()),
        (0, vec![KeepReason::Unreadable])
    );
    assert!(own.exists() && agent.exists());
}

/// A restore gives back times and modes, too.
#[cfg(unix)]
#[test]
fn files_with_another_time_or_mode_than_their_version_are_not_removed() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, own, agent, mut archive) = place();
    let root = folder.path().join("projects");
    archive.capture(&root, &CaptureOptions::new()).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let time = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let longer_ago = time(&own) - Duration::from_millis(1);
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o400)).unwrap();
    for path in [&agent, &own] {
        assert_eq!(
            prune(&mut archive, &own, &now()),
            (0, vec![KeepReason::Changed])
        );
        assert!(own.exists() && agent.exists());
        archive.capture(&root, &CaptureOptions::new()).unwrap();
        if path == &agent {
            fs::File::open(&own)
                .unwrap()
                .set_modified(longer_ago)
                .unwrap();
        }
    }
    assert_eq!(prune(&mut archive, &own, &now()), (1, vec![]));
    assert!(!own.exists() && !agent.exists());
    archive.restore(&root, &RestoreOptions::new()).unwrap();
    assert_eq!((mode(&agent), time(&own)), (0o400, longer_ago));
}

/// Removes the archived files by their names alone, as a script would.
fn naive_prune(disk: &Arc<dyn Disk>, own: &Path) {
    let _ = disk.remove(own);
}

/// Prunes while another process appends, at operation `nth`. Returns whether it came so far, and whether something
/// is lost.
fn race(nth: u64, is_naive: bool) -> (bool, bool) {
    let disk = FakeDisk::new(nth);
    let root = Path::new("/home/projects");
    let own = root.join("-p").join(format!("{ID}.jsonl"));
    disk.put(&own, b"{\"a\":1}\n");
    let process = disk.process();
    let long_ago = SystemTime::now() - Duration::from_secs(40 * 86_400);
    process.set_properties(&own, Some(long_ago), None).unwrap();
    let mut archive =
        Archive::open_or_create_with(Path::new("/archive"), &on(Arc::clone(&process))).unwrap();
    archive.capture(root, &CaptureOptions::new()).unwrap();
    let target = own.clone();
    disk.set(
        Fault::hook(move |disk| {
            // A client that opens the file by its name; it makes a new one if that is gone.
            match disk.bytes(&target) {
                Some(_) => disk.append_as_other(&target, b"{\"b\":1}\n"),
                None => disk.put(&target, b"{\"b\":1}\n"),
            }
        })
        .at_any(nth),
    );
    if is_naive {
        naive_prune(&process, &own);
    } else {
        let _ = archive.prune(root, &now());
    }
    let came_so_far = disk.faults_left() == 0;
    disk.clear_faults();
    disk.restart();
    // The new line is there, in the file or in one that was put aside.
    let names = disk
        .names()
        .into_iter()
        .filter(|name| name.starts_with(root));
    let has_line = names
        .filter_map(|name| disk.bytes(name))
        .any(|bytes| bytes.windows(7).any(|part| part == b"{\"b\":1}"));
    // And so is the old one, live or archived.
    let archive = Archive::open_with(Path::new("/archive"), &on(disk.process())).unwrap();
    let back = archive
        .restore(Path::new("/back/projects"), &RestoreOptions::new())
        .unwrap();
    (came_so_far, !has_line || back.files != 1)
}

#[test]
fn an_append_during_a_removal_is_not_lost() {
    let mut count = 0;
    for nth in 1.. {
        let (came_so_far, is_lost) = race(nth, false);
        if !came_so_far {
            break;
        }
        assert!(!is_lost, "operation {nth}");
        count += 1;
    }
    assert!(count > 10, "{count}");
    // The naive one loses the line.
    assert!((1..3).any(|nth| race(nth, true).1));
}

#[test]
fn no_failure_of_the_disk_loses_anything() {
    for nth in 1.. {
        for is_kill in [true, false] {
            let disk = FakeDisk::new(nth);
            let root = Path::new("/home/projects");
            let own = root.join("-p").join(format!("{ID}.jsonl"));
            let other = own.with_file_name("22222222-2222-4333-8444-555555555555.jsonl");
            disk.put(&own, b"{\"a\":1}\n");
            disk.put(&other, b"{\"c\":1}\n");
            let process = disk.process();
            let long_ago = SystemTime::now() - Duration::from_secs(40 * 86_400);
            process.set_properties(&own, Some(long_ago), None).unwrap();
            let mut archive =
                Archive::open_or_create_with(Path::new("/archive"), &on(process)).unwrap();
            archive.capture(root, &CaptureOptions::new()).unwrap();
            if is_kill {
                disk.kill_at(nth);
            } else {
                disk.set(Fault::error(std::io::ErrorKind::Other).at_any(nth));
            }
            drop(archive.prune(root, &now()));
            let came_so_far = disk.faults_left() == 0;
            disk.clear_faults();
            disk.restart();
            let mut archive =
                Archive::open_with(Path::new("/archive"), &on(disk.process())).unwrap();
            let back = archive.restore(Path::new("/back/projects"), &RestoreOptions::new());
            assert_eq!(back.unwrap().files, 2, "operation {nth}");
            // A file that was put aside gets its name back.
            archive.capture(root, &CaptureOptions::new()).unwrap();
            let mut names = disk
                .names()
                .into_iter()
                .filter(|name| name.starts_with(root));
            assert!(
                names.all(|name| name == own || name == other),
                "operation {nth}"
            );
            if !came_so_far {
                return;
            }
        }
    }
}
