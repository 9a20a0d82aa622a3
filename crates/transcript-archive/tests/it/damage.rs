//! Files with lost frames are named, and the rest can be read.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use transcript_archive::{ArchiveDisk, CaptureOptions, Check, CheckOptions, ErrorKind};
use transcript_storage::ReadDisk;
use transcript_testkit::rng::Rng;

fn name(number: usize) -> String {
    format!("-p/{number:08x}-2222-4333-8444-555555555555.jsonl")
}

/// Sessions of this number of lines, of which the later ones are forks of the first.
fn archived(folder: &Path, sessions: usize, lines: usize) -> (PathBuf, Vec<Vec<u8>>) {
    let root = folder.join("projects");
    let place = folder.join("archive");
    fs::create_dir_all(root.join("-p")).unwrap();
    let mut rng = Rng::new(5);
    let texts: Vec<String> = (0..lines)
        .map(|_| (0..40).map(|_| format!("{:x}", rng.next_u64())).collect())
        .collect();
    let mut all = Vec::new();
    let mut archive = super::open_or_create(&place).unwrap();
    for number in 0..sessions {
        let mut session = String::new();
        for (line, text) in texts.iter().enumerate() {
            // Every second one has words of its own.
            let own = if number % 2 == 1 {
                format!("{:x}", rng.next_u64()).repeat(30)
            } else {
                text.clone()
            };
            session.push_str(&format!(
                "{{\"uuid\":\"{line}-{number}\",\"text\":\"{own}\"}}\n"
            ));
        }
        fs::write(root.join(name(number)), &session).unwrap();
        all.push(session.into_bytes());
        archive.capture(&root, &CaptureOptions::new()).unwrap();
    }
    (place, all)
}

fn check(place: &Path) -> Check {
    let archive = super::open(place).unwrap();
    archive.check(&CheckOptions::new()).unwrap()
}

fn packs(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.join("packs")).unwrap();
    let mut packs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    packs.sort_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    packs
}

/// Reads all sessions, and returns for each the numbers of the lines that differ.
fn wrong_lines(place: &Path, all: &[Vec<u8>]) -> Vec<Vec<u64>> {
    let disk: Arc<dyn ReadDisk> = Arc::new(ArchiveDisk::with(place, super::opening()));
    let sessions = all.iter().enumerate().map(|(number, expected)| {
        let path = super::projects(place).join(name(number));
        let found = match disk.read(&path, usize::MAX >> 1) {
            Ok(found) => found,
            Err(error) => panic!("{number}: {error}"),
        };
        assert_eq!(found.len(), expected.len());
        let lines = |bytes: &[u8]| -> Vec<Vec<u8>> {
            bytes
                .split(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect()
        };
        let (found, expected) = (lines(&found), lines(expected));
        assert_eq!(found.len(), expected.len());
        let pairs = (1..).zip(found.iter().zip(&expected));
        pairs
            .filter(|(_, (one, other))| one != other)
            .map(|(line, _)| line)
            .collect()
    });
    sessions.collect()
}

/// Asserts that the lines that are wrong are those that the check names.
fn assert_named(check: &Check, wrong: &[Vec<u64>], what: &str) {
    for (number, wrong) in wrong.iter().enumerate() {
        let losses = check.losses.iter();
        let losses = losses.filter(|loss| loss.path.ends_with(name(number)));
        let named: Vec<(u64, u64)> = losses.map(|loss| loss.lines).collect();
        for line in wrong {
            let is_named = named
                .iter()
                .any(|(first, last)| (first..=last).contains(&line));
            assert!(
                is_named,
                "{what}: line {line} of {number} is wrong, named are {named:?}"
            );
        }
        // The parts that are named are lost: at least their first lines.
        for (first, _) in named {
            assert!(
                wrong.contains(&first),
                "{what}: line {first} of {number} is not wrong"
            );
        }
    }
}

#[test]
fn a_damaged_byte_costs_the_lines_of_its_frame_which_are_named() {
    let folder = TempDir::new().unwrap();
    let (place, all) = archived(folder.path(), 6, 3000);
    let clean = check(&place);
    assert_eq!((clean.damages.len(), clean.losses.len()), (0, 0));
    assert!(clean.frames > 8);
    let mut rng = Rng::new(9);
    let mut frames_hit = 0;
    for round in 0..60 {
        let packs = packs(&place);
        let path = rng.pick(&packs);
        let whole = fs::read(path).unwrap();
        let mut bytes = whole.clone();
        let at = rng.below(bytes.len());
        bytes[at] ^= 1 << rng.below(8);
        fs::write(path, &bytes).unwrap();
        let what = format!("round {round}, byte {at} of {}", bytes.len());
        let found = check(&place);
        let wrong = wrong_lines(&place, &all);
        assert_named(&found, &wrong, &what);
        let lost = wrong.iter().filter(|lines| !lines.is_empty()).count();
        assert!(lost <= 3, "{what}: {lost} sessions");
        frames_hit += usize::from(lost > 0);
        fs::write(path, &whole).unwrap();
    }
    assert!(frames_hit > 40, "only {frames_hit} flips lost something");
}

#[test]
fn without_a_catalogue_or_with_a_damaged_one_everything_reads() {
    let folder = TempDir::new().unwrap();
    let (place, all) = archived(folder.path(), 4, 300);
    let catalogue = super::catalogue(&place);
    let whole = fs::read(&catalogue).unwrap();
    let mut rng = Rng::new(2);
    for round in 0..40 {
        match round {
            0 => fs::remove_file(&catalogue).unwrap(),
            1 => fs::write(&catalogue, "").unwrap(),
            round if round % 2 == 0 => {
                fs::write(&catalogue, &whole[..rng.below(whole.len())]).unwrap();
            }
            _ => {
                let mut bytes = whole.clone();
                let at = rng.below(bytes.len());
                bytes[at] ^= 1 << rng.below(8);
                fs::write(&catalogue, bytes).unwrap();
            }
        }
        let found = check(&place);
        let wrong = wrong_lines(&place, &all);
        assert!(wrong.iter().all(Vec::is_empty), "round {round}");
        assert!(
            found.losses.is_empty() && found.damages.is_empty(),
            "round {round}: {found:?}"
        );
    }
    // The next capture writes it again.
    fs::write(&catalogue, &whole[..whole.len() / 2]).unwrap();
    let root = folder.path().join("projects");
    fs::write(root.join(name(9)), "{}\n").unwrap();
    let mut archive = super::open(&place).unwrap();
    archive.capture(&root, &CaptureOptions::new()).unwrap();
    assert!(fs::read(&catalogue).unwrap().len() > whole.len());
    assert!(wrong_lines(&place, &all).iter().all(Vec::is_empty));
}

#[test]
fn a_lost_dictionary_is_replaced_by_its_copy() {
    let folder = TempDir::new().unwrap();
    let (place, all) = archived(folder.path(), 3, 3000);
    let dictionaries = place.join("dictionaries");
    assert_eq!(fs::read_dir(&dictionaries).unwrap().count(), 1);
    fs::remove_dir_all(&dictionaries).unwrap();
    let found = check(&place);
    assert!(
        found.damages[0].reason.contains("copy"),
        "{:?}",
        found.damages
    );
    assert!(found.losses.is_empty());
    assert!(wrong_lines(&place, &all).iter().all(Vec::is_empty));
}

#[test]
fn start_of_a_truncated_pack_is_read() {
    let folder = TempDir::new().unwrap();
    let (place, all) = archived(folder.path(), 4, 3000);
    let first = &packs(&place)[0];
    let whole = fs::read(first).unwrap();
    fs::write(first, &whole[..whole.len() * 3 / 4]).unwrap();
    let found = check(&place);
    let wrong = wrong_lines(&place, &all);
    assert_named(&found, &wrong, "half a pack");
    assert!(!wrong[0].is_empty() && wrong[0].len() < 3000);
    // Without the catalogue, what the other packs refer to is named.
    fs::remove_file(super::catalogue(&place)).unwrap();
    let found = check(&place);
    assert!(found.damages.iter().any(|damage| damage.path == *first));
    // A missing pack.
    fs::write(first, &whole).unwrap();
    drop(check(&place));
    let root = folder.path().join("projects");
    fs::write(root.join(name(9)), "{}\n").unwrap();
    super::open(&place)
        .unwrap()
        .capture(&root, &CaptureOptions::new())
        .unwrap();
    fs::remove_file(first).unwrap();
    let found = check(&place);
    assert!(
        found
            .damages
            .iter()
            .any(|damage| damage.reason.contains("missing"))
    );
    let wrong = wrong_lines(&place, &all);
    assert_eq!(wrong[0].len(), 3000);
    assert_named(&found, &wrong, "a missing pack");
}

#[test]
fn other_folders_and_newer_archives_are_refused() {
    let folder = TempDir::new().unwrap();
    let kind = |place: &Path| {
        super::open_or_create(place)
            .map(|_| ())
            .unwrap_err()
            .kind()
            .clone()
    };
    fs::write(folder.path().join("notes.txt"), "x").unwrap();
    assert_eq!(kind(folder.path()), ErrorKind::OtherFolder);
    let place = folder.path().join("archive");
    assert_eq!(
        super::open(&place).unwrap_err().kind(),
        &ErrorKind::NoArchive
    );
    drop(super::open_or_create(&place).unwrap());
    fs::write(
        place.join("archive.json"),
        "{\"format\":\"transcript-archive\",\"version\":9}",
    )
    .unwrap();
    assert_eq!(kind(&place), ErrorKind::Newer(9));
}
