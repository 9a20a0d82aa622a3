//! Archives in a bucket: several machines capture at once, and any request may fail.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use transcript_archive::{
    Archive, ArchiveDisk, ArchiveOptions, Buckets, CaptureOptions, CheckOptions, Error,
    RestoreOptions,
};
use transcript_objects::ObjectDisk;
use transcript_storage::{Disk, ReadDisk, RealDisk};
use transcript_testkit::fake_disk::FakeDisk;
use transcript_testkit::rng::Rng;

use crate::stores::{BUCKET, Faulty};

const ROOT: &str = "/home/projects";
const ARCHIVE: &str = "s3://b/archive";
const MACHINES: [&str; 2] = ["desk", "laptop"];

/// The bytes of the files of sessions.
type Files = BTreeMap<PathBuf, Vec<u8>>;

struct OneBucket(ObjectDisk);

impl Buckets for OneBucket {
    fn has(&self, folder: &Path) -> bool {
        folder.starts_with(BUCKET)
    }

    fn open(&self, _: &Path) -> io::Result<Arc<dyn Disk>> {
        Ok(Arc::new(self.0.clone()))
    }
}

/// How one machine opens the archive.
fn on(store: &Arc<Faulty>, disk: &FakeDisk, machine: &str) -> ArchiveOptions {
    let bucket = ObjectDisk::new(Arc::clone(store) as _, Path::new(BUCKET));
    ArchiveOptions::new()
        .disk(disk.process())
        .buckets(Arc::new(OneBucket(bucket)))
        .machine(machine)
        .local_folder(Path::new("/local"))
}

fn capture(options: &ArchiveOptions) -> Result<Option<SystemTime>, Error> {
    let mut archive = Archive::open_or_create_with(Path::new(ARCHIVE), options)?;
    let (one, three) = (NonZeroUsize::MIN, NonZeroUsize::new(3).expect("not zero"));
    let options = CaptureOptions::new().threads(one).repack_at(three);
    let captured = archive.capture(Path::new(ROOT), &options)?;
    match captured.problems.into_iter().next() {
        Some(problem) => Err(problem),
        None => Ok(captured.time),
    }
}

/// Changes files on a machine. Both machines have files of the same names.
fn change(disk: &FakeDisk, rng: &mut Rng) {
    for _ in 0..rng.range(1, 4) {
        let number = rng.below(5);
        let path =
            Path::new(ROOT).join(format!("-p/{number:08x}-2222-4333-8444-555555555555.jsonl"));
        let mut bytes = disk.bytes(&path).unwrap_or_default();
        if rng.one_in(5) {
            bytes.truncate(rng.below(bytes.len() + 1));
        }
        for _ in 0..rng.range(1, 6) {
            let (uuid, text) = (rng.next_u64(), "what was said ".repeat(rng.range(1, 40)));
            bytes.extend(format!("{{\"uuid\":\"{uuid:x}\",\"text\":\"{text}\"}}\n").bytes());
        }
        disk.put(&path, &bytes);
    }
}

fn live(disk: &FakeDisk) -> Files {
    let names = disk
        .names()
        .into_iter()
        .filter(|name| name.starts_with(ROOT));
    names
        .map(|name| (name.clone(), disk.bytes(&name).expect("it is there")))
        .collect()
}

/// Returns what the archive has of a machine, or had at a time, read on a new machine.
fn archived(store: &Arc<Faulty>, machine: &str, as_of: SystemTime) -> Files {
    let disk = FakeDisk::new(0);
    let archive =
        Archive::open_with(Path::new(ARCHIVE), &on(store, &disk, "reader")).expect("an archive");
    assert!(archive.problems().is_empty(), "{:?}", archive.problems());
    let options = RestoreOptions::new().machine(machine).as_of(as_of);
    let restored = archive
        .restore(Path::new(ROOT), &options)
        .expect("restored");
    assert!(restored.problems.is_empty(), "{:?}", restored.problems);
    live(&disk)
}

#[test]
fn every_version_that_two_machines_captured_is_there_whichever_requests_failed() {
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let store = Arc::new(Faulty::new(0, false));
        let machines = MACHINES.map(|name| (name, FakeDisk::new(0)));
        let mut captured: Vec<(&str, SystemTime, Files)> = Vec::new();
        let mut failed = 0;
        for _ in 0..40 {
            let (name, disk) = &machines[rng.below(2)];
            change(disk, &mut rng);
            if rng.one_in(2) {
                store.fail_in(rng.range(1, 12) as u64, rng.one_in(2));
            }
            match capture(&on(&store, disk, name)) {
                Ok(Some(time)) => captured.push((name, time, live(disk))),
                Ok(None) => {}
                Err(error) => {
                    failed += 1;
                    assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
                }
            }
            store.heal();
        }
        assert!(
            failed > 0 && captured.len() > 10,
            "seed {seed}: {failed} failed, {} did not",
            captured.len()
        );
        for (name, time, files) in &captured {
            assert_eq!(archived(&store, name, *time), *files, "seed {seed}, {name}");
        }
        let disk = FakeDisk::new(0);
        let archive = Archive::open_with(Path::new(ARCHIVE), &on(&store, &disk, "reader"))
            .expect("an archive");
        let check = archive.check(&CheckOptions::new()).expect("checked");
        assert!(
            check.damages.is_empty() && check.losses.is_empty(),
            "seed {seed}"
        );
    }
}

#[test]
fn a_capture_without_changes_takes_three_requests() {
    let store = Arc::new(Faulty::new(0, false));
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("projects");
    let session = root.join("-p/00000000-1111-4222-8333-444444444444.jsonl");
    std::fs::create_dir_all(session.parent().expect("a folder")).expect("made");
    std::fs::write(&session, "{\"uuid\":\"1\"}\n").expect("written");
    let options = || {
        on(&store, &FakeDisk::new(0), "desk")
            .disk(Arc::new(RealDisk))
            .local_folder(&folder.path().join("local"))
    };
    let capture = || {
        let mut archive =
            Archive::open_or_create_with(Path::new(ARCHIVE), &options()).expect("opened");
        let summarize = |_: &Path| b"{}".to_vec();
        let options = CaptureOptions::new().summarize(Arc::new(summarize));
        let captured = archive.capture(&root, &options);
        captured.expect("captured").time
    };
    // Then the state of the file is not too young to be relied on.
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    assert!(capture().is_some());
    let before = store.count();
    assert_eq!(capture(), None);
    // The marker, and the list of packs, which is read again after the lock was taken.
    assert_eq!(store.count() - before, 3);
    let before = store.count();
    let archive = Archive::open_with(Path::new(ARCHIVE), &options()).expect("opened");
    let disk = ArchiveDisk::of(Arc::new(archive));
    let projects = disk.all_projects().expect("machines").remove(0);
    let entries = disk.list(&projects.join("-p")).expect("a list");
    for entry in entries {
        let path = projects.join("-p").join(entry.expect("an entry").name);
        assert!(disk.summary(&path).is_some());
    }
    // The marker and the list.
    assert_eq!(store.count() - before, 2);
}

#[test]
fn an_archive_in_a_bucket_keeps_nothing_that_is_incomplete() {
    for fail in 1..20 {
        for is_done_before in [false, true] {
            let store = Arc::new(Faulty::new(0, false));
            let disk = FakeDisk::new(0);
            change(&disk, &mut Rng::new(1));
            store.fail_in(fail, is_done_before);
            let first = capture(&on(&store, &disk, "desk"));
            store.heal();
            let bucket = ObjectDisk::new(Arc::clone(&store) as _, Path::new(BUCKET));
            let packs = bucket.list(&Path::new(ARCHIVE).join("packs"));
            for pack in packs.into_iter().flatten() {
                let name = pack.expect("an entry").name.into_string().expect("UTF-8");
                assert!(
                    name.ends_with(".jsonl.zst") && !name.starts_with('.'),
                    "{name}"
                );
            }
            let second = capture(&on(&store, &disk, "desk")).expect("captured");
            let time = first
                .ok()
                .flatten()
                .or(second)
                .unwrap_or_else(SystemTime::now);
            assert_eq!(
                archived(&store, "desk", time),
                live(&disk),
                "request {fail}"
            );
        }
    }
}
