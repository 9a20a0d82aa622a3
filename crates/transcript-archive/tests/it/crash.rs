//! A capture is whole or not there, whenever the process or the power ends.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use transcript_archive::{
    Archive, ArchiveOptions, CaptureOptions, ErrorKind, Identities, RestoreOptions,
};
use transcript_storage::{Disk, Space};
use transcript_testkit::fake_disk::{FakeDisk, Fault, Op};
use transcript_testkit::rng::Rng;

const ROOT: &str = "/home/projects";
const ARCHIVE: &str = "/archive";

/// The bytes of the files of sessions.
type Files = BTreeMap<PathBuf, Vec<u8>>;

fn session(number: u64) -> PathBuf {
    Path::new(ROOT).join(format!("-p/{number:08x}-2222-4333-8444-555555555555.jsonl"))
}

fn lines(rng: &mut Rng, count: usize) -> Vec<u8> {
    let mut lines = Vec::new();
    for _ in 0..count {
        let number = rng.next_u64();
        let text = "what was said ".repeat(rng.range(1, 40));
        lines.extend(format!("{{\"uuid\":\"{number:x}\",\"text\":\"{text}\"}}\n").bytes());
    }
    if rng.one_in(4) {
        lines.truncate(lines.len() - rng.range(1, lines.len()));
    }
    lines
}

/// Changes the live files.
fn change(disk: &FakeDisk, rng: &mut Rng) {
    for _ in 0..rng.range(1, 4) {
        let path = session(rng.below(5) as u64);
        let more = lines(rng, 6);
        match disk.bytes(&path) {
            Some(old) if !rng.one_in(4) => {
                disk.put(&path, &[old, more].concat());
            }
            Some(old) if rng.one_in(2) => {
                let cut = rng.below(old.len() + 1);
                disk.put(&path, &old[..cut]);
            }
            _ => disk.put(&path, &more),
        }
    }
}

fn live(disk: &FakeDisk) -> Files {
    let names = disk.names().into_iter();
    let names = names.filter(|name| name.starts_with(ROOT));
    names
        .map(|name| (name.clone(), disk.bytes(&name).unwrap()))
        .collect()
}

/// How archives of a seed are opened: every second one is encrypted, and every second of those is written without the
/// key. To read takes it.
pub(crate) fn on(disk: &Arc<dyn Disk>, seed: u64, reads: bool) -> ArchiveOptions {
    static KEY: OnceLock<Identities> = OnceLock::new();
    let options = ArchiveOptions::new().disk(Arc::clone(disk));
    if seed.is_multiple_of(2) {
        return options;
    }
    let key = KEY.get_or_init(Identities::generate);
    let options = options
        .encrypt_to(key.recipients())
        .local_folder(Path::new("/local"));
    if reads || seed % 4 == 1 {
        options.identities(key.clone())
    } else {
        options
    }
}

/// Captures, and returns the time of the capture if something had changed. Three small packs are joined.
fn capture(
    disk: &Arc<dyn Disk>,
    seed: u64,
) -> Result<Option<SystemTime>, transcript_archive::Error> {
    let mut archive = Archive::open_or_create_with(Path::new(ARCHIVE), &on(disk, seed, false))?;
    let (one, three) = (NonZeroUsize::MIN, NonZeroUsize::new(3).unwrap());
    let options = CaptureOptions::new().threads(one).repack_at(three);
    let captured = archive.capture(Path::new(ROOT), &options)?;
    match captured.problems.into_iter().next() {
        Some(problem) => Err(problem),
        None => Ok(captured.time),
    }
}

/// Returns what the archive has, or had at a time, read by another process.
fn archived(disk: &FakeDisk, seed: u64, as_of: Option<SystemTime>) -> Files {
    let disk: Arc<dyn Disk> = disk.process();
    if disk.metadata(Path::new(ARCHIVE)).is_err() {
        return Files::new();
    }
    let archive = match Archive::open_with(Path::new(ARCHIVE), &on(&disk, seed, true)) {
        Ok(archive) => archive,
        Err(error) => panic!("{error}"),
    };
    assert!(archive.problems().is_empty(), "{:?}", archive.problems());
    let target = Path::new("/restored/projects");
    let mut options = RestoreOptions::new();
    if let Some(time) = as_of {
        options = options.as_of(time);
    }
    let restored = archive.restore(target, &options).unwrap();
    assert!(restored.problems.is_empty(), "{:?}", restored.problems);
    let mut files = Files::new();
    for path in restored.sessions {
        let name = Path::new(ROOT).join(path.strip_prefix(target).unwrap());
        files.insert(name, disk.read(&path, usize::MAX >> 1).unwrap());
        disk.remove(&path).unwrap();
    }
    files
}

/// Archives as a script would: compresses each file to one in the archive, which it writes in place, without a sync.
fn naive_capture(disk: &Arc<dyn Disk>) -> std::io::Result<()> {
    for entry in disk.list(&Path::new(ROOT).join("-p"))? {
        let name = entry?.name;
        let path = Path::new(ROOT).join("-p").join(&name);
        let bytes = disk.read(&path, usize::MAX >> 1)?;
        let target = Path::new(ARCHIVE).join(&name);
        let file = disk.open(&target, true)?.file;
        file.truncate(0)?;
        file.append(&bytes)?;
    }
    Ok(())
}

fn naive_archived(disk: &FakeDisk) -> Files {
    let names = disk.names().into_iter();
    let names = names.filter(|name| name.starts_with(ARCHIVE));
    let live = |name: &Path| Path::new(ROOT).join("-p").join(name.file_name().unwrap());
    names
        .map(|name| (live(&name), disk.bytes(&name).unwrap()))
        .collect()
}

/// The event that ends a capture.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CaptureEnd {
    Kill,
    Power,
    /// The operation fails.
    Error,
    /// The sync fails, and drops the unsynced bytes.
    LostSync,
}

impl CaptureEnd {
    const ALL: [Self; 4] = [Self::Kill, Self::Power, Self::Error, Self::LostSync];

    /// Makes operation `nth` end what runs next.
    pub(crate) fn prepare(self, disk: &FakeDisk, nth: u64) {
        match self {
            Self::Kill | Self::Power => disk.kill_at(nth),
            Self::Error => disk.set(Fault::error(std::io::ErrorKind::Other).at_any(nth)),
            Self::LostSync => disk.set(Fault::lost_sync().at(Op::Sync, nth)),
        }
    }

    /// Lets other processes continue afterwards.
    pub(crate) fn restart(self, disk: &FakeDisk, seed: u64) {
        disk.clear_faults();
        match self {
            Self::Power => drop(disk.cut_power(seed)),
            _ => disk.restart(),
        }
    }
}

/// Runs each end at each operation, and returns the number of runs, and what went wrong.
pub(crate) fn at_each(
    seed: u64,
    run: impl Fn(u64, CaptureEnd) -> (bool, Result<(), String>),
) -> (u64, Vec<String>) {
    let (mut runs, mut faults) = (0, Vec::new());
    for end in CaptureEnd::ALL {
        for nth in 1.. {
            let (came_so_far, result) = run(nth, end);
            if !came_so_far {
                break;
            }
            runs += 1;
            if let Err(fault) = result {
                faults.push(format!("seed {seed}, {end:?} at {nth}: {fault}"));
            }
        }
    }
    (runs, faults)
}

/// Runs a capture that is ended at operation `nth`, and returns how it went: whether it came so far, and whether
/// something that was archived before is gone or changed, or something is archived that never was.
fn run(seed: u64, nth: u64, end: CaptureEnd, is_naive: bool) -> (bool, Result<(), String>) {
    let disk = FakeDisk::new(seed);
    let mut rng = Rng::new(seed);
    let capture = |disk: &FakeDisk| -> Result<Option<SystemTime>, String> {
        if is_naive {
            naive_capture(&disk.process())
                .map(|()| None)
                .map_err(|error| error.to_string())
        } else {
            capture(&(disk.process() as _), seed).map_err(|error| error.to_string())
        }
    };
    let archived_at = |disk: &FakeDisk, as_of| {
        if is_naive {
            naive_archived(disk)
        } else {
            archived(disk, seed, as_of)
        }
    };
    let archived = |disk: &FakeDisk| archived_at(disk, None);
    let mut before = Files::new();
    let mut known = Vec::new();
    for _ in 0..rng.range(0, 5) {
        change(&disk, &mut rng);
        let time = capture(&disk).unwrap();
        before.extend(live(&disk));
        known.extend(time.map(|time| (time, before.clone())));
    }
    change(&disk, &mut rng);
    let after: Files = before.clone().into_iter().chain(live(&disk)).collect();
    let first = disk.operations();
    end.prepare(&disk, nth);
    let result = capture(&disk);
    let came_so_far = disk.faults_left() == 0 && disk.operations() >= first;
    end.restart(&disk, seed ^ nth);
    let check = || -> Result<(), String> {
        let found = archived(&disk);
        for (path, bytes) in &found {
            let is_old = before.get(path) == Some(bytes);
            if !is_old && after.get(path) != Some(bytes) {
                return Err(format!("{} is neither old nor new", path.display()));
            }
        }
        if let Some(lost) = before.keys().find(|path| !found.contains_key(*path)) {
            return Err(format!("{} is gone", lost.display()));
        }
        if result.is_ok() && found != after && !matches!(end, CaptureEnd::Kill | CaptureEnd::Power)
        {
            return Err("a capture that succeeded is incomplete".into());
        }
        // A pack is whole or not there, and all of this is in one pack.
        let changed: Vec<&PathBuf> = after
            .keys()
            .filter(|path| before.get(*path) != after.get(*path))
            .collect();
        let new = changed
            .iter()
            .filter(|path| found.get(**path) == after.get(**path))
            .count();
        // A file that an error kept from being read is reported, and the others are captured.
        let is_reported = matches!(end, CaptureEnd::Error) && result.is_err();
        if new != 0 && new != changed.len() && !is_reported {
            return Err("half of a capture is there".into());
        }
        // The next capture completes it.
        capture(&disk)?;
        if archived(&disk) != after {
            return Err("the next capture is incomplete".into());
        }
        for (time, files) in &known {
            if archived_at(&disk, Some(*time)) != *files {
                return Err("an earlier version is gone".into());
            }
        }
        Ok(())
    };
    (came_so_far, check())
}

fn run_all(seed: u64, is_naive: bool) -> (u64, Vec<String>) {
    at_each(seed, |nth, end| run(seed, nth, end, is_naive))
}

/// The number of seeds. The environment may ask for more.
pub(crate) fn seeds() -> u64 {
    let wanted = std::env::var("TRANSCRIPT_ARCHIVE_KILLS");
    wanted
        .ok()
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(12)
}

#[test]
fn nothing_is_lost_when_a_capture_ends_at_any_operation() {
    let mut runs = 0;
    for seed in 0..seeds() {
        let (count, faults) = run_all(seed, false);
        assert!(
            faults.is_empty(),
            "{} of {count} runs: {}",
            faults.len(),
            faults.join("\n")
        );
        runs += count;
    }
    assert!(runs > 500, "only {runs} runs");
    println!("{runs} runs");
}

#[test]
fn the_naive_archiver_fails_this_test() {
    let faults: Vec<String> = (0..3).flat_map(|seed| run_all(seed, true).1).collect();
    for fault in ["neither old nor new", "half of a capture"] {
        assert!(
            faults.iter().any(|found| found.contains(fault)),
            "{fault}: {faults:?}"
        );
    }
}

/// Restores as a script would: writes each file where it belongs.
fn naive_restore(disk: &Arc<dyn Disk>, files: &Files) -> std::io::Result<()> {
    for (path, bytes) in files {
        let name = Path::new(TARGET).join(path.strip_prefix(ROOT).unwrap());
        if disk.metadata(&name).is_err() {
            disk.open(&name, true)?.file.append(bytes)?;
        }
    }
    Ok(())
}

const TARGET: &str = "/back/projects";

/// Runs a restore that is ended at operation `nth`, and returns whether it came so far, and what is wrong afterwards.
fn run_restore(seed: u64, nth: u64, end: CaptureEnd, is_naive: bool) -> (bool, Result<(), String>) {
    let disk = FakeDisk::new(seed);
    let mut rng = Rng::new(seed);
    for _ in 0..3 {
        change(&disk, &mut rng);
        capture(&(disk.process() as _), seed).unwrap();
    }
    let files = archived(&disk, seed, None);
    let restore = |disk: &FakeDisk| -> Result<(), String> {
        let disk: Arc<dyn Disk> = disk.process();
        if is_naive {
            return naive_restore(&disk, &files).map_err(|error| error.to_string());
        }
        let archive = Archive::open_with(Path::new(ARCHIVE), &on(&disk, seed, true))
            .map_err(|error| error.to_string())?;
        let restored = archive.restore(Path::new(TARGET), &RestoreOptions::new());
        let restored = restored.map_err(|error| error.to_string())?;
        match restored.problems.first() {
            Some(problem) => Err(problem.to_string()),
            None => Ok(()),
        }
    };
    end.prepare(&disk, nth);
    let result = restore(&disk);
    let came_so_far = disk.faults_left() == 0;
    end.restart(&disk, seed ^ nth);
    let found = || -> Files {
        let names = disk.names().into_iter();
        let is_session = |name: &PathBuf| {
            name.starts_with(TARGET) && name.extension().is_some_and(|end| end == "jsonl")
        };
        let below = |name: &Path| Path::new(ROOT).join(name.strip_prefix(TARGET).unwrap());
        names
            .filter(is_session)
            .map(|name| (below(&name), disk.bytes(&name).unwrap()))
            .collect()
    };
    let check = || -> Result<(), String> {
        let there = found();
        for (path, bytes) in &there {
            if files.get(path) != Some(bytes) {
                return Err(format!("{} is there in part", path.display()));
            }
        }
        // A restore that reported success survives a power cut.
        if result.is_ok() && there != files {
            return Err("a restore that succeeded is incomplete".into());
        }
        restore(&disk)?;
        if found() == files && archived(&disk, seed, None) == files {
            Ok(())
        } else {
            Err("the next restore is incomplete".into())
        }
    };
    (came_so_far, check())
}

fn restore_all(seed: u64, is_naive: bool) -> (u64, Vec<String>) {
    at_each(seed, |nth, end| run_restore(seed, nth, end, is_naive))
}

#[test]
fn a_restore_that_ends_at_any_operation_leaves_whole_files_or_none() {
    let mut runs = 0;
    for seed in 0..seeds().div_ceil(3) {
        let (count, faults) = restore_all(seed, false);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        runs += count;
    }
    assert!(runs > 200, "only {runs} runs");
    println!("{runs} runs");
}

#[test]
fn the_naive_restore_fails_this_test() {
    let faults: Vec<String> = (0..3).flat_map(|seed| restore_all(seed, true).1).collect();
    let is_found = |fault: &String| fault.contains("is there in part");
    assert!(faults.iter().any(is_found), "{faults:?}");
}

#[test]
fn a_capture_leaves_room_to_others_and_nothing_of_itself_when_it_fails() {
    const MIN_FREE: u64 = 64 << 20;
    // The room of the disk, and what of it is free; encrypted and not.
    for (total, free, seed) in [
        (1 << 30, MIN_FREE + 1000, 0),
        (1 << 30, MIN_FREE + 1000, 1),
        (1 << 40, (1 << 40) / 100 + 1000, 0),
        (8 << 20, 8 << 20, 0),
    ] {
        let fake = FakeDisk::new(seed);
        let disk = fake.process();
        let mut rng = Rng::new(seed);
        for number in 0..5 {
            fake.put(session(number), &lines(&mut rng, 200));
        }
        let mut archive =
            Archive::open_or_create_with(Path::new(ARCHIVE), &on(&disk, seed, true)).unwrap();
        fake.report_space(Some(Space { free, total }));
        let before = fake.names();
        let capture =
            |archive: &mut Archive| archive.capture(Path::new(ROOT), &CaptureOptions::new());
        let error = capture(&mut archive).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::LowSpace { .. }),
            "{error}"
        );
        let mut left = fake.names();
        left.retain(|name| !before.contains(name) && !name.ends_with("lock"));
        assert!(left.is_empty(), "{error}: {left:?}");
        // The same after any other error.
        fake.report_space(None);
        fake.set_space(Some(500));
        capture(&mut archive).unwrap_err();
        let mut left = fake.names();
        left.retain(|name| !before.contains(name) && !name.ends_with("lock"));
        assert!(left.is_empty(), "{left:?}");
        fake.set_space(None);
        assert_eq!(capture(&mut archive).unwrap().files, 5);
    }
}
