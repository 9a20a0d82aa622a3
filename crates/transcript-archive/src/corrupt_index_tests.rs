//! A forged index with a valid checksum must not crash the process.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use transcript_storage::{ReadDisk, RealDisk};
use transcript_testkit::rng::Rng;

use crate::catalogue::Catalogue;
use crate::limits::{MAX_INDEX_LEN, MAX_VERSION_CHAIN};
use crate::record::{
    BaseVersion, Coding, Extent, FileState, Frame, FramePosition, PackId, PackIndex, Replaced,
    Slice, Version, hash,
};
use crate::{Archive, ArchiveDisk, CaptureOptions, CheckOptions, PruneOptions, RestoreOptions};

fn session(root: &Path, number: usize) -> std::path::PathBuf {
    root.join(format!("-p/{number:08x}-2222-4333-8444-555555555555.jsonl"))
}

fn append(path: &Path, rng: &mut Rng, lines: usize) {
    let mut text = fs::read_to_string(path).unwrap_or_default();
    for _ in 0..lines {
        let word = format!("{:x}", rng.next_u64()).repeat(12);
        text.push_str(&format!(
            "{{\"uuid\":\"{:x}\",\"text\":\"{word}\"}}\n",
            rng.next_u64()
        ));
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A number near the one that was there, or at an end of the range.
fn other(rng: &mut Rng, number: u64) -> u64 {
    let ends = [
        0,
        1,
        2,
        u64::from(u32::MAX),
        u64::MAX,
        u64::MAX - 1,
        1 << 40,
    ];
    match rng.below(4) {
        0 => *rng.pick(&ends),
        1 => number.wrapping_add(1),
        2 => number.wrapping_sub(1),
        _ => rng.next_u64() % 64,
    }
}

fn other_u32(rng: &mut Rng, number: u32) -> u32 {
    other(rng, number.into()) as u32
}

/// Changes something in an index.
fn forge(rng: &mut Rng, index: &mut PackIndex, all: &[crate::record::PackId]) {
    let frames = index.frames.len();
    let versions = index.versions.len();
    match rng.below(10) {
        0 if frames > 0 => {
            let frame = &mut index.frames[rng.below(frames)];
            match rng.below(3) {
                0 => frame.at = other(rng, frame.at),
                1 => frame.stored = other_u32(rng, frame.stored),
                _ => frame.len = other_u32(rng, frame.len),
            }
        }
        1 if frames > 0 => {
            let mut slice = || Slice {
                pack: rng.below(3) as u32,
                frame: rng.below(4) as u32,
                start: other_u32(rng, 0),
                len: other_u32(rng, 10),
            };
            let slices = vec![slice(), slice()];
            let frame = &mut index.frames[rng.below(frames)];
            frame.coding = match rng.below(3) {
                0 => Coding::Plain,
                1 => Coding::Dictionary(other_u32(rng, 0)),
                _ => Coding::Prefix(slices),
            };
        }
        2 if versions > 0 => {
            let version = &mut index.versions[rng.below(versions)];
            match rng.below(4) {
                0 => version.len = other(rng, version.len),
                1 => version.partial = other(rng, version.partial),
                2 => version.captured = other(rng, 0) as i64,
                _ => version.summary = (other_u32(rng, 0), other_u32(rng, 10)),
            }
        }
        3 | 4 if versions > 0 => {
            let at = rng.below(versions);
            let before = index.versions[at]
                .before
                .get_or_insert(crate::record::BaseVersion {
                    pack: 0,
                    version: at as u32,
                    keep: 10,
                    lines: 1,
                });
            match rng.below(4) {
                0 => before.pack = other_u32(rng, before.pack),
                1 => before.version = other_u32(rng, before.version),
                2 => before.keep = other(rng, before.keep),
                _ => before.lines = other(rng, before.lines),
            }
        }
        5 if versions > 0 => {
            let version = &mut index.versions[rng.below(versions)];
            if let Some(extent) = version.extents.first_mut() {
                match rng.below(4) {
                    0 => extent.frame = other_u32(rng, extent.frame),
                    1 => extent.start = other_u32(rng, extent.start),
                    2 => extent.len = other_u32(rng, extent.len),
                    _ => extent.lines = other_u32(rng, extent.lines),
                }
            }
        }
        6 if versions > 0 => {
            let names = [
                "projects/../../x.jsonl",
                "/etc/x",
                "projects",
                "",
                "projects//",
                "tasks/a",
            ];
            index.versions[rng.below(versions)].path = (*rng.pick(&names)).into();
        }
        7 => index.features = Some(other_u32(rng, 0)),
        8 => index.summaries = Some(other_u32(rng, 0)),
        _ => {
            let place = FramePosition {
                frame: other_u32(rng, 0),
                start: other_u32(rng, 0),
            };
            let pack = *rng.pick(all);
            index.packs.push(pack);
            index.replaces.push(Replaced {
                pack,
                first_version: other_u32(rng, 0),
                frames: vec![Some(place), None],
            });
        }
    }
}

#[test]
fn forged_indexes_crash_no_process_and_change_no_live_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("home/projects");
    let whole = folder.path().join("whole");
    let mut rng = Rng::new(9);
    for step in 0..5 {
        for number in 0..3 {
            append(&session(&root, number), &mut rng, 12);
        }
        if step == 2 {
            fs::copy(session(&root, 0), session(&root, 7)).unwrap();
        }
        let mut archive = Archive::open_or_create(&whole).unwrap();
        archive.capture(&root, &CaptureOptions::new()).unwrap();
    }
    let live: Vec<Vec<u8>> = [0, 1, 2, 7]
        .map(|number| fs::read(session(&root, number)).unwrap())
        .into();
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let place = folder.path().join("forged");
        fs::remove_dir_all(&place).unwrap_or_default();
        fs::create_dir_all(place.join("packs")).unwrap();
        fs::copy(whole.join("archive.json"), place.join("archive.json")).unwrap();
        for entry in fs::read_dir(whole.join("packs")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), place.join("packs").join(entry.file_name())).unwrap();
        }
        let layout = Archive::open(&place).unwrap().layout;
        let mut catalogue = Catalogue::read(&RealDisk, &RealDisk, &layout).unwrap();
        let all: Vec<_> = catalogue.packs.iter().map(|pack| pack.id).collect();
        for _ in 0..rng.range(1, 4) {
            let pack = rng.below(all.len());
            forge(&mut rng, &mut catalogue.packs[pack].index, &all);
        }
        catalogue.write(&RealDisk, &layout).unwrap();
        let archive = Arc::new(Archive::open(&place).unwrap());
        let disk = ArchiveDisk::of(Arc::clone(&archive));
        for number in [0, 1, 2, 7] {
            let path = session(&disk.projects(), number);
            let Ok(file) = disk.open_to_read(&path) else {
                continue;
            };
            let mut buffer = vec![0; 64 << 10];
            for at in [0, 100, 5_000, u64::MAX - 7] {
                let _ = file.read_at(at, &mut buffer);
            }
            let _ = disk.summary(&path);
        }
        let _ = archive.check(&CheckOptions::new());
        let target = folder.path().join("target");
        let restored = archive.restore(&target.join("projects"), &RestoreOptions::new());
        drop(restored);
        assert!(!folder.path().join("x.jsonl").exists());
        fs::remove_dir_all(&target).unwrap_or_default();
        drop((archive, disk));
        let mut archive = Archive::open(&place).unwrap();
        let _ = archive.prune(&root, &PruneOptions::new().hold(std::time::Duration::ZERO));
        let two = std::num::NonZeroUsize::new(2).unwrap();
        let _ = archive.capture(&root, &CaptureOptions::new().repack_at(two));
        for (number, text) in [0, 1, 2, 7].iter().zip(&live) {
            assert!(
                fs::read(session(&root, *number)).unwrap() == *text,
                "seed {seed}"
            );
        }
    }
}

#[test]
fn names_that_no_capture_makes_are_reported_and_not_restored() {
    use crate::ErrorKind;

    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("home/projects");
    append(&session(&root, 0), &mut Rng::new(1), 5);
    let place = folder.path().join("archive");
    let mut archive = Archive::open_or_create(&place).unwrap();
    archive.capture(&root, &CaptureOptions::new()).unwrap();
    let id = "00000000-2222-4333-8444-555555555555";
    let forged = [
        "settings.json",
        "CLAUDE.md",
        "hooks/evil.sh",
        "plugins/a/b",
        ".credentials.json",
        &format!("commands/{id}.md"),
        &format!("projects/-p/{id}/id_rsa"),
        &format!("projects/-l/{id}/tool-results/r.txt"),
        "projects/../settings.jsonl",
        "/etc/x.jsonl",
    ]
    .map(str::to_owned);
    for pack in &mut archive.catalogue.packs {
        pack.index.versions[0].state.mode = Some(0o7777);
    }
    let versions = archive.catalogue.files.values().next().unwrap().clone();
    for name in &forged {
        archive
            .catalogue
            .files
            .insert(name.clone(), versions.clone());
    }
    let target = folder.path().join("target");
    let outside = folder.path().join("outside");
    fs::create_dir_all(target.join("projects")).unwrap();
    fs::create_dir(&outside).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&outside, target.join("projects/-l")).unwrap();
    #[cfg(not(unix))]
    fs::write(target.join("projects/-l"), "").unwrap();
    let restored = archive
        .restore(&target.join("projects"), &RestoreOptions::new())
        .unwrap();
    let refused = restored.problems.iter();
    let refused = refused.filter(|problem| matches!(problem.kind(), ErrorKind::RefusedName(_)));
    assert_eq!((refused.count(), restored.files), (forged.len(), 1));
    let mut written = Vec::new();
    let mut folders = vec![target.clone(), outside];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true if path.is_symlink() => {}
                true => folders.push(path),
                false => written.push(path),
            }
        }
    }
    written.retain(|path| !path.ends_with("-l"));
    assert_eq!(written, [session(&target.join("projects"), 0)]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&written[0]).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
    }
}

/// The name of the session of a made pack.
const FORGED_SESSION: &str = "projects/-p/00000001-2222-4333-8444-555555555555.jsonl";

/// Makes an archive of one pack with one frame of these bytes and one version of a file, with an index that was changed.
fn made(folder: &Path, content: &[u8], change: impl FnOnce(&mut PackIndex)) -> std::path::PathBuf {
    drop(Archive::open_or_create(folder).unwrap());
    let mut layout = crate::pack::Layout::default();
    let stored = zstd::bulk::compress(content, 1).unwrap();
    let stored_len = stored.len() as u32;
    let (mut bytes, at) = layout.frame(stored, content.len(), true);
    let len = content.len() as u32;
    let mut index = PackIndex {
        frames: vec![Frame {
            at,
            stored: stored_len,
            len,
            hash: hash(content),
            is_lines: true,
            coding: Coding::Plain,
        }],
        versions: vec![Version {
            path: FORGED_SESSION.to_owned(),
            captured: 1,
            len: len.into(),
            state: FileState::default(),
            before: None,
            extents: vec![Extent {
                frame: 0,
                start: 0,
                len,
                lines: 1,
            }],
            partial: 0,
            fingerprint: None,
            summary: (0, 0),
        }],
        ..PackIndex::default()
    };
    change(&mut index);
    bytes.extend(layout.finish(&index).unwrap().0);
    let name = format!("{}.jsonl.zst", PackId(hash(&bytes)).to_hex());
    fs::create_dir_all(folder.join("packs")).unwrap();
    let path = folder.join("packs").join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// Versions that continue each other, each with nothing new.
fn chain(index: &mut PackIndex, count: usize) {
    for number in 1..count {
        let mut next = index.versions[0].clone();
        next.captured += number as i64;
        next.extents.clear();
        next.before = Some(BaseVersion {
            pack: 0,
            version: number as u32 - 1,
            keep: next.len,
            lines: 1,
        });
        index.versions.push(next);
    }
}

#[test]
fn index_value_beyond_a_limit_is_named_and_everything_else_is_read() {
    type Change = fn(&mut PackIndex);
    let slices = |index: &mut PackIndex| {
        let slice = Slice {
            pack: 0,
            frame: 0,
            start: 0,
            len: 1 << 20,
        };
        index.frames[0].coding = Coding::Prefix(vec![slice; 65]);
    };
    let cases: [(&str, &str, Change); 8] = [
        ("a long frame", "at offset 0 states", |index| {
            index.frames[0].len = (64 << 20) + 1;
        }),
        ("much stored", "at offset 0 states", |index| {
            index.frames[0].stored = u32::MAX;
        }),
        ("a long prefix", "at offset 0 states", slices),
        ("a frame many times", "more than its pack has", |index| {
            let version = &mut index.versions[0];
            version.extents = vec![version.extents[0]; 1000];
            version.len *= 1000;
        }),
        ("a long file", "and its parts have", |index| {
            index.versions[0].len = 1 << 63;
        }),
        ("a long start", "and its parts have", |index| {
            let version = &mut index.versions[0];
            version.before = Some(BaseVersion {
                pack: 0,
                version: 0,
                keep: u64::MAX,
                lines: 0,
            });
        }),
        (
            "more than there was",
            "continues 9000 bytes of one that has",
            |index| {
                chain(index, 2);
                let version = &mut index.versions[1];
                version.len = 9000;
                version.before.as_mut().unwrap().keep = 9000;
            },
        ),
        ("a long chain", "which is the limit", |index| {
            chain(index, MAX_VERSION_CHAIN + 1);
        }),
    ];
    for (what, reason, change) in cases {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("home/projects");
        let place = folder.path().join("archive");
        let pack = made(&place, b"{\"type\":\"user\"}\n", change);
        // Another session of the same archive is not concerned.
        append(&session(&root, 7), &mut Rng::new(1), 20);
        let mut archive = Archive::open(&place).unwrap();
        archive.capture(&root, &CaptureOptions::new()).unwrap();
        let archive = Arc::new(Archive::open(&place).unwrap());
        let disk = ArchiveDisk::of(Arc::clone(&archive));
        let good = disk.open_to_read(&session(&disk.projects(), 7)).unwrap();
        assert_eq!(
            good.metadata().unwrap().len,
            fs::metadata(session(&root, 7)).unwrap().len(),
            "{what}"
        );
        let check = archive.check(&CheckOptions::new()).unwrap();
        let named = check
            .damages
            .iter()
            .any(|damage| damage.reason.contains(reason) && damage.path == pack);
        assert!(named, "{what}: {:?}", check.damages);
        assert!(
            disk.open_to_read(&session(&disk.projects(), 1)).is_err(),
            "{what}"
        );
        let target = folder.path().join("target/projects");
        let restored = archive.restore(&target, &RestoreOptions::new()).unwrap();
        assert_eq!(restored.files, 1, "{what}: {:?}", restored.problems);
    }
}

#[test]
fn index_at_its_limits_is_read_and_a_chain_is_not_continued_beyond_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("home/projects");
    let mut long = vec![b'x'; 64 << 20];
    long[(64 << 20) - 1] = b'\n';
    let place = folder.path().join("long");
    made(&place, &long, |_| {});
    let disk = ArchiveDisk::of(Arc::new(Archive::open(&place).unwrap()));
    let file = disk.open_to_read(&session(&disk.projects(), 1)).unwrap();
    let mut end = [0; 4];
    assert_eq!(file.read_at((64 << 20) - 4, &mut end).unwrap(), 4);
    assert_eq!(end, *b"xxx\n");

    let place = folder.path().join("chain");
    let line = b"{\"type\":\"user\"}\n";
    made(&place, line, |index| chain(index, MAX_VERSION_CHAIN - 1));
    let live = session(&root, 1);
    fs::create_dir_all(live.parent().unwrap()).unwrap();
    let mut text = line.to_vec();
    for round in 0..3 {
        text.extend(format!("{{\"uuid\":\"{round}\"}}\n").bytes());
        fs::write(&live, &text).unwrap();
        let mut archive = Archive::open(&place).unwrap();
        archive.capture(&root, &CaptureOptions::new()).unwrap();
        let newest = archive.catalogue.newest(FORGED_SESSION).unwrap();
        // The first one ends the chain, the next one starts another.
        let is_continued = archive.version(newest).unwrap().before.is_some();
        assert_eq!(is_continued, round != 1, "{round}");
        let target = folder.path().join(format!("target{round}/projects"));
        archive.restore(&target, &RestoreOptions::new()).unwrap();
        assert_eq!(fs::read(session(&target, 1)).unwrap(), text, "{round}");
        assert!(
            archive
                .check(&CheckOptions::new())
                .unwrap()
                .damages
                .is_empty()
        );
    }
}

#[test]
fn an_index_that_states_a_length_beyond_the_limit_is_not_unpacked() {
    let mut section = crate::pack::section(&PackIndex::default()).unwrap();
    for len in [MAX_INDEX_LEN as u64 + 1, u64::MAX] {
        section[8..16].copy_from_slice(&len.to_le_bytes());
        let error = crate::pack::read_section(&section).unwrap_err();
        assert!(error.to_string().contains("the limit is"), "{error}");
    }
}
