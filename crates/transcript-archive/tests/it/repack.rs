//! Packs are joined, and nothing is lost by that.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::TempDir;
use transcript_archive::{CaptureOptions, CheckOptions, RestoreOptions};
use transcript_testkit::rng::Rng;

const FOUR: NonZeroUsize = NonZeroUsize::new(4).unwrap();

fn path(root: &Path, session: usize) -> PathBuf {
    root.join(format!(
        "-p/{session:08x}-2222-4333-8444-555555555555.jsonl"
    ))
}

fn lines(rng: &mut Rng, count: usize) -> String {
    let line = |rng: &mut Rng| {
        let text: String = (0..40).map(|_| format!("{:x}", rng.next_u64())).collect();
        format!(
            "{{\"uuid\":\"{:x}\",\"text\":\"{text}\"}}\n",
            rng.next_u64()
        )
    };
    (0..count).map(|_| line(rng)).collect()
}

fn append(path: &Path, text: &str) {
    let old = fs::read_to_string(path).unwrap_or_default();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, old + text).unwrap();
}

fn capture(place: &Path, root: &Path, repack_at: usize) -> Option<SystemTime> {
    let mut archive = super::open_or_create(place).unwrap();
    let many = NonZeroUsize::new(repack_at).unwrap();
    let options = CaptureOptions::new().repack_at(many);
    let captured = archive.capture(root, &options).unwrap();
    assert!(captured.problems.is_empty(), "{:?}", captured.problems);
    captured.time
}

fn packs(place: &Path) -> Vec<PathBuf> {
    let packs = fs::read_dir(place.join("packs")).unwrap();
    packs.map(|pack| pack.unwrap().path()).collect()
}

/// Returns the sessions as they were at a time.
fn restored(place: &Path, as_of: SystemTime) -> Vec<(PathBuf, String)> {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("projects");
    let archive = super::open(place).unwrap();
    assert!(archive.problems().is_empty(), "{:?}", archive.problems());
    let restored = archive
        .restore(&root, &RestoreOptions::new().as_of(as_of))
        .unwrap();
    assert!(restored.problems.is_empty(), "{:?}", restored.problems);
    all(&root)
}

fn all(root: &Path) -> Vec<(PathBuf, String)> {
    let files = fs::read_dir(root.join("-p")).unwrap();
    let mut files: Vec<_> = files
        .map(|file| {
            let path = file.unwrap().path();
            let below = path.strip_prefix(root).unwrap().to_owned();
            (below, fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn assert_clean(place: &Path) {
    let check = super::open(place)
        .unwrap()
        .check(&CheckOptions::new())
        .unwrap();
    assert!(check.damages.is_empty(), "{:?}", check.damages);
    assert!(check.losses.is_empty(), "{:?}", check.losses);
}

fn copy_files(from: &Path, to: &Path) {
    for folder in ["packs", "dictionaries"] {
        let Ok(files) = fs::read_dir(from.join(folder)) else {
            continue;
        };
        fs::create_dir_all(to.join(folder)).unwrap();
        for file in files {
            let file = file.unwrap();
            fs::copy(file.path(), to.join(folder).join(file.file_name())).unwrap();
        }
    }
    fs::copy(from.join("archive.json"), to.join("archive.json")).unwrap();
}

#[test]
fn many_captures_make_few_packs_and_every_version_stays() {
    let folder = TempDir::new().unwrap();
    let (root, place) = (
        folder.path().join("projects"),
        folder.path().join("archive"),
    );
    let mut rng = Rng::new(8);
    let mut states = Vec::new();
    // The first capture is long enough for a dictionary.
    append(&path(&root, 9), &lines(&mut rng, 2_000));
    let forked = fs::read_to_string(path(&root, 9)).unwrap();
    for step in 0..60 {
        let session = rng.below(5);
        match rng.below(6) {
            // Lines of the first session again, with other ids: a frame with a prefix.
            0 => {
                let copied = forked.lines().skip(step * 20).take(40);
                let copied: String = copied
                    .map(|line| format!("{}\n", line.replace("\"uuid\":\"", "\"uuid\":\"f")))
                    .collect();
                append(&path(&root, session), &copied);
            }
            1 => fs::write(path(&root, session), lines(&mut rng, 3)).unwrap(),
            _ => {
                let count = rng.range(1, 30);
                append(&path(&root, session), &lines(&mut rng, count));
            }
        }
        if let Some(time) = capture(&place, &root, 4) {
            states.push((time, all(&root)));
        }
    }
    let count = packs(&place).len();
    assert!(count < 12, "{count} packs of {} captures", states.len());
    assert!(states.len() > 50);
    for with_catalogue in [true, false] {
        if !with_catalogue {
            fs::remove_file(place.join("catalogue")).unwrap();
        }
        for (time, files) in &states {
            assert!(restored(&place, *time) == *files);
        }
        assert_clean(&place);
    }
}

#[test]
fn a_pack_that_refers_to_packs_that_were_joined_elsewhere_reads() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("projects");
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    let mut rng = Rng::new(2);
    for session in 0..3 {
        append(&path(&root, session), &lines(&mut rng, 900));
        capture(&one, &root, 100);
    }
    // Another machine has the same archive and the same sessions.
    copy_files(&one, &other);
    let there = folder.path().join("there").join("projects");
    for (below, text) in all(&root) {
        append(&there.join(below), &text);
    }
    // Here the packs are joined, twice.
    let mut time = None;
    for _ in 0..8 {
        append(&path(&root, 0), &lines(&mut rng, 2));
        time = capture(&one, &root, 4);
    }
    let here = all(&root);
    // There a session grows, and one is forked: both refer to packs that are gone here.
    append(&path(&there, 1), &lines(&mut rng, 5));
    let fork = fs::read_to_string(path(&there, 2)).unwrap();
    append(
        &path(&there, 7),
        &fork.replace("\"uuid\":\"", "\"uuid\":\"f"),
    );
    // Enough for a dictionary.
    append(&path(&there, 8), &lines(&mut rng, 2_000));
    capture(&other, &there, 100);
    assert!(restored(&one, time.unwrap()) == here);
    // The folders are synced: what is new there comes here, what is gone here stays gone.
    let of_other: Vec<_> = packs(&other);
    let new = of_other
        .iter()
        .max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    let new = new.unwrap();
    fs::copy(new, one.join("packs").join(new.file_name().unwrap())).unwrap();
    fs::create_dir_all(one.join("dictionaries")).unwrap();
    for entry in fs::read_dir(other.join("dictionaries")).unwrap() {
        let entry = entry.unwrap();
        let to = one.join("dictionaries").join(entry.file_name());
        fs::copy(entry.path(), to).unwrap();
    }
    let latest = restored(
        &one,
        SystemTime::now() + std::time::Duration::from_secs(3600),
    );
    let text_of = |session| {
        let name = path(Path::new(""), session);
        let found = latest.iter().find(|(below, _)| *below == name);
        found.unwrap().1.clone()
    };
    assert!(text_of(1) == fs::read_to_string(path(&there, 1)).unwrap());
    assert!(text_of(7) == fs::read_to_string(path(&there, 7)).unwrap());
    assert_clean(&one);
    // Frames that were joined twice are still found.
    for _ in 0..4 {
        append(&path(&root, 0), &lines(&mut rng, 2));
        capture(&one, &root, FOUR.get());
    }
    assert_clean(&one);
    assert!(packs(&one).len() < 5);
}

#[test]
fn packs_are_removed_only_when_the_other_one_has_everything() {
    let folder = TempDir::new().unwrap();
    let (root, place) = (
        folder.path().join("projects"),
        folder.path().join("archive"),
    );
    let mut rng = Rng::new(4);
    let old = folder.path().join("old");
    for step in 0..4 {
        append(&path(&root, step), &lines(&mut rng, 20));
        if step == 3 {
            copy_files(&place, &old);
        }
        capture(&place, &root, 4);
    }
    let joined = packs(&place);
    assert_eq!(joined.len(), 1);
    // The packs come back, and the one that replaces three of them is damaged: they stay.
    copy_files(&old, &place);
    let mut bytes = fs::read(&joined[0]).unwrap();
    let whole = bytes.clone();
    bytes[40] ^= 1;
    fs::write(&joined[0], &bytes).unwrap();
    append(&path(&root, 0), &lines(&mut rng, 1));
    capture(&place, &root, 100);
    assert_eq!(packs(&place).len(), 5);
    fs::write(&joined[0], whole).unwrap();
    append(&path(&root, 0), &lines(&mut rng, 1));
    capture(&place, &root, 100);
    assert_eq!(packs(&place).len(), 3);
    assert_clean(&place);
}
