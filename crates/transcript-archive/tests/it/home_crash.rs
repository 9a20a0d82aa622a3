//! A capture of a home folder is whole or not there, whenever the process or the power ends: also of a database and its log.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use transcript_archive::{Archive, CaptureOptions, RestoreOptions};
use transcript_storage::Disk;
use transcript_testkit::fake_disk::FakeDisk;
use transcript_testkit::rng::Rng;

use crate::crash::{CaptureEnd, at_each, on, seeds};

const HOME: &str = "/home/opencode";
const ARCHIVE: &str = "/archive";
const DATABASE: &str = "opencode.db";
const LOG: &str = "opencode.db-wal";

/// The bytes of the files of a home folder, by their paths below it.
type Files = BTreeMap<String, Vec<u8>>;

fn live(disk: &FakeDisk) -> Files {
    let names = disk.names().into_iter();
    let names = names.filter(|name| name.starts_with(HOME));
    let below = |name: &PathBuf| {
        name.strip_prefix(HOME)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    names
        .map(|name| (below(&name), disk.bytes(&name).unwrap()))
        .collect()
}

/// Changes the live files as OpenCode and older versions of it do: the log grows, moves into the database or is removed, and
/// messages are written again.
fn change(disk: &FakeDisk, rng: &mut Rng) {
    let path = |name: &str| Path::new(HOME).join(name);
    let text = |rng: &mut Rng| {
        let number = rng.next_u64();
        let long = "what was said ".repeat(rng.range(1, 600));
        format!("{{\"number\":{number},\"text\":\"{long}\"}}")
    };
    let log = disk.bytes(path(LOG)).unwrap_or_default();
    match rng.below(3) {
        0 => disk.put(path(LOG), &[log, text(rng).into_bytes()].concat()),
        1 => {
            let known = disk.bytes(path(DATABASE)).unwrap_or_default();
            disk.put(
                path(DATABASE),
                &[known, log, text(rng).into_bytes()].concat(),
            );
            disk.put(path(LOG), text(rng).as_bytes());
        }
        _ => {
            disk.put(path(DATABASE), text(rng).as_bytes());
            disk.remove(path(LOG));
        }
    }
    if disk.bytes(path(DATABASE)).is_none() {
        disk.put(path(DATABASE), text(rng).as_bytes());
    }
    let message = format!("storage/message/s/m{}.json", rng.below(3));
    let message_text = text(rng);
    disk.put(path(&message), message_text.as_bytes());
}

/// Captures, and returns the time of the capture if something had changed. Three small packs are joined.
fn capture(disk: &Arc<dyn Disk>, seed: u64) -> Result<Option<SystemTime>, String> {
    let archive = Archive::open_or_create_with(Path::new(ARCHIVE), &on(disk, seed, false));
    let mut archive = archive.map_err(|error| error.to_string())?;
    let (one, three) = (NonZeroUsize::MIN, NonZeroUsize::new(3).unwrap());
    let options = CaptureOptions::new().threads(one).repack_at(three);
    let captured = archive.capture_home("opencode", Path::new(HOME), &options);
    let captured = captured.map_err(|error| error.to_string())?;
    match captured.problems.into_iter().next() {
        Some(problem) => Err(problem.to_string()),
        None => Ok(captured.time),
    }
}

/// Returns what the archive has, or had at a time, read by another process.
fn archived(disk: &FakeDisk, seed: u64, as_of: Option<SystemTime>) -> Files {
    let disk: Arc<dyn Disk> = disk.process();
    if disk.metadata(Path::new(ARCHIVE)).is_err() {
        return Files::new();
    }
    let archive = Archive::open_with(Path::new(ARCHIVE), &on(&disk, seed, true)).unwrap();
    assert!(archive.problems().is_empty(), "{:?}", archive.problems());
    let mut options = RestoreOptions::new();
    if let Some(time) = as_of {
        options = options.as_of(time);
    }
    let target = Path::new("/restored");
    let restored = archive.restore_home("opencode", target, &options).unwrap();
    assert!(restored.problems.is_empty(), "{:?}", restored.problems);
    let mut files = Files::new();
    for path in restored.sessions {
        let below = path.strip_prefix(target).unwrap().to_str().unwrap();
        files.insert(below.to_owned(), disk.read(&path, usize::MAX >> 1).unwrap());
        disk.remove(&path).unwrap();
    }
    files
}

/// Archives as a script would: copies one file after the other to the archive, in place and without a sync.
fn naive_capture(disk: &Arc<dyn Disk>, names: &[String]) -> Result<(), String> {
    let copy = |name: &String| -> std::io::Result<()> {
        let bytes = disk.read(&Path::new(HOME).join(name), usize::MAX >> 1)?;
        let file = disk.open(&Path::new(ARCHIVE).join(name), true)?.file;
        file.truncate(0)?;
        file.append(&bytes)?;
        Ok(())
    };
    names
        .iter()
        .try_for_each(copy)
        .map_err(|error| error.to_string())
}

fn naive_archived(disk: &FakeDisk) -> Files {
    let names = disk.names().into_iter();
    let names = names.filter(|name| name.starts_with(ARCHIVE));
    let below = |name: &PathBuf| {
        name.strip_prefix(ARCHIVE)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    names
        .map(|name| (below(&name), disk.bytes(&name).unwrap()))
        .collect()
}

/// The files of which a restore gives something back: a log that is empty or was removed is not there.
fn merged(before: &Files, now: &Files) -> Files {
    let mut all = before.clone();
    all.extend(now.clone());
    if !now.contains_key(LOG) {
        all.remove(LOG);
    }
    all
}

/// Runs a capture that is ended at operation `nth`, and returns whether it came so far, and what is wrong afterwards.
fn run(seed: u64, nth: u64, end: CaptureEnd, is_naive: bool) -> (bool, Result<(), String>) {
    let disk = FakeDisk::new(seed);
    let mut rng = Rng::new(seed);
    let capture = |disk: &FakeDisk| {
        if is_naive {
            let names: Vec<String> = live(disk).into_keys().collect();
            naive_capture(&(disk.process() as _), &names).map(|()| None)
        } else {
            capture(&(disk.process() as _), seed)
        }
    };
    let archived_at = |disk: &FakeDisk, as_of| {
        if is_naive {
            naive_archived(disk)
        } else {
            archived(disk, seed, as_of)
        }
    };
    let mut before = Files::new();
    let mut known = Vec::new();
    for _ in 0..rng.range(1, 5) {
        change(&disk, &mut rng);
        let time = capture(&disk).unwrap();
        before = merged(&before, &live(&disk));
        known.extend(time.map(|time| (time, before.clone())));
    }
    change(&disk, &mut rng);
    let after = merged(&before, &live(&disk));
    let first = disk.operations();
    end.prepare(&disk, nth);
    let result = capture(&disk);
    let came_so_far = disk.faults_left() == 0 && disk.operations() >= first;
    end.restart(&disk, seed ^ nth);
    let check = || -> Result<(), String> {
        let found = archived_at(&disk, None);
        let pair = |files: &Files| (files.get(DATABASE).cloned(), files.get(LOG).cloned());
        if pair(&found) != pair(&before) && pair(&found) != pair(&after) {
            return Err("a database has the log of another moment".into());
        }
        for (name, bytes) in found.iter().filter(|(name, _)| *name != LOG) {
            if before.get(name) != Some(bytes) && after.get(name) != Some(bytes) {
                return Err(format!("{name} is neither old nor new"));
            }
        }
        if let Some(lost) = before
            .keys()
            .find(|name| *name != LOG && !found.contains_key(*name))
        {
            return Err(format!("{lost} is gone"));
        }
        let is_reported = result.is_ok() && !matches!(end, CaptureEnd::Kill | CaptureEnd::Power);
        if is_reported && found != after {
            return Err("a capture that succeeded is incomplete".into());
        }
        capture(&disk)?;
        if archived_at(&disk, None) != after {
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

#[test]
fn nothing_of_a_home_folder_is_lost_when_a_capture_ends_at_any_operation() {
    let mut runs = 0;
    for seed in 0..seeds().div_ceil(2) {
        let (count, faults) = at_each(seed, |nth, end| run(seed, nth, end, false));
        assert!(
            faults.is_empty(),
            "{} of {count} runs: {}",
            faults.len(),
            faults.join("\n")
        );
        runs += count;
    }
    assert!(runs > 300, "only {runs} runs");
}

#[test]
fn the_naive_archiver_of_home_folders_fails_this_test() {
    let faults = (0..3).flat_map(|seed| at_each(seed, |nth, end| run(seed, nth, end, true)).1);
    let faults: Vec<String> = faults.collect();
    for fault in ["the log of another moment", "neither old nor new"] {
        assert!(
            faults.iter().any(|found| found.contains(fault)),
            "{fault}: {faults:?}"
        );
    }
}
