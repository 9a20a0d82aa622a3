//! An encrypted archive is read with a key, and written without.

use std::fs;
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use transcript_archive::{
    Archive, ArchiveDisk, ArchiveOptions, CaptureOptions, Captured, CheckOptions, ErrorKind,
    Identities, PruneOptions, RestoreOptions,
};
use transcript_storage::ReadDisk;
use transcript_testkit::rng::Rng;

const SECRET: &str = "the-words-that-nobody-else-may-read";
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
const PROJECT: &str = "-home-somebody-a-project";

struct Fixture {
    folder: TempDir,
    identities: Identities,
}

impl Fixture {
    fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            identities: Identities::generate(),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn session(&self, number: usize) -> PathBuf {
        let name = format!("{number:08x}-2222-4333-8444-555555555555.jsonl");
        self.at("projects").join(PROJECT).join(name)
    }

    fn append(&self, number: usize, text: &str) {
        let path = self.session(number);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let old = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, old + text).unwrap();
    }

    /// Without a key.
    fn sealed(&self) -> ArchiveOptions {
        ArchiveOptions::new()
            .encrypt_to(self.identities.recipients())
            .local_folder(&self.at("local"))
    }

    fn with_key(&self) -> ArchiveOptions {
        self.sealed().identities(self.identities.clone())
    }

    fn capture(&self, options: &ArchiveOptions) -> Captured {
        let mut archive = Archive::open_or_create_with(&self.at("archive"), options).unwrap();
        let three = NonZeroUsize::new(3).unwrap();
        let captured = archive.capture(
            &self.at("projects"),
            &CaptureOptions::new().repack_at(three),
        );
        let captured = captured.unwrap();
        assert!(captured.problems.is_empty(), "{:?}", captured.problems);
        captured
    }

    /// Asserts that the archive gives back what is there.
    fn assert_complete(&self) {
        let archive = Archive::open_with(&self.at("archive"), &self.with_key()).unwrap();
        assert!(archive.problems().is_empty(), "{:?}", archive.problems());
        let target = TempDir::new().unwrap();
        let root = target.path().join("projects");
        let restored = archive.restore(&root, &RestoreOptions::new()).unwrap();
        assert!(restored.problems.is_empty(), "{:?}", restored.problems);
        let live = fs::read_dir(self.at("projects").join(PROJECT)).unwrap();
        let mut count = 0;
        for entry in live {
            let path = entry.unwrap().path();
            let copy = root.join(PROJECT).join(path.file_name().unwrap());
            assert!(
                fs::read(&path).unwrap() == fs::read(copy).unwrap(),
                "{}",
                path.display()
            );
            count += 1;
        }
        assert_eq!(count, restored.files);
        let check = archive.check(&CheckOptions::new()).unwrap();
        assert!(check.damages.is_empty(), "{:?}", check.damages);
    }
}

fn lines(rng: &mut Rng, count: usize) -> String {
    let line = |rng: &mut Rng| {
        let text: String = (0..20).map(|_| format!("{:x}", rng.next_u64())).collect();
        format!("{{\"text\":\"{SECRET} {text}\"}}\n")
    };
    (0..count).map(|_| line(rng)).collect()
}

/// Returns all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let below = entries.map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path)
        } else {
            vec![path]
        }
    });
    below.flatten().collect()
}

#[test]
fn captures_need_no_key_and_everything_else_does() {
    let place = Fixture::new();
    let mut rng = Rng::new(1);
    // Enough for a dictionary.
    place.append(0, &lines(&mut rng, 4_000));
    place.append(1, "{\"torn\":");
    let first = place.capture(&place.sealed());
    assert_eq!((first.sessions, first.unchanged), (2, 0));
    // A capture stores the appended bytes only.
    for step in 0..5 {
        place.append(step % 2, &lines(&mut rng, 1));
        let next = place.capture(&place.sealed());
        assert_eq!(next.sessions, 1);
        assert!(next.bytes < 1_000, "{} bytes", next.bytes);
    }
    // A file that was cut is another one.
    fs::write(place.session(1), "{}\n").unwrap();
    place.capture(&place.sealed());
    let sealed = Archive::open_with(&place.at("archive"), &place.sealed()).unwrap();
    let encrypted = |error: transcript_archive::Error| *error.kind() == ErrorKind::Encrypted;
    let root = place.at("projects");
    assert!(encrypted(
        sealed.restore(&root, &RestoreOptions::new()).unwrap_err()
    ));
    assert!(encrypted(sealed.check(&CheckOptions::new()).unwrap_err()));
    let disk = ArchiveDisk::with(&place.at("archive"), place.sealed());
    assert!(disk.archive().is_err());
    assert!(disk.list(&disk.projects()).is_err());
    let mut sealed = sealed;
    let all = CaptureOptions::new().compare_all(true);
    assert!(encrypted(sealed.capture(&root, &all).unwrap_err()));
    assert!(encrypted(
        sealed.prune(&root, &PruneOptions::new()).unwrap_err()
    ));
    place.assert_complete();
    // With the key packs are joined.
    let count = || fs::read_dir(place.at("archive/packs")).unwrap().count();
    let before = count();
    place.append(0, &lines(&mut rng, 1));
    place.capture(&place.with_key());
    assert!(count() < before);
    place.assert_complete();
    // Without it the next capture continues the joined pack.
    place.append(0, &lines(&mut rng, 1));
    assert!(place.capture(&place.sealed()).bytes < 1_000);
    place.assert_complete();
}

#[test]
fn nothing_of_a_session_is_in_the_clear_in_the_archive() {
    let place = Fixture::new();
    let mut rng = Rng::new(2);
    place.append(0, &lines(&mut rng, 4_000));
    place.capture(&place.sealed());
    // Each is too long to be in random bytes by chance.
    let clear = [SECRET, PROJECT, "00000000-2222-"];
    for path in files(&place.at("archive")) {
        let bytes = fs::read(&path).unwrap();
        let is_in = |text: &&str| memchr::memmem::find(&bytes, text.as_bytes()).is_some();
        assert_eq!(
            clear.iter().find(|text| is_in(text)),
            None,
            "{}",
            path.display()
        );
        assert!(!bytes.starts_with(&ZSTD_MAGIC), "{}", path.display());
    }
    // The same test sees it where it is not encrypted.
    let plain = place.at("plain");
    let mut archive = Archive::open_or_create(&plain).unwrap();
    archive
        .capture(&place.at("projects"), &CaptureOptions::new())
        .unwrap();
    let starts = |path: &PathBuf| fs::read(path).unwrap().starts_with(&ZSTD_MAGIC);
    assert!(files(&plain).iter().any(starts));
}

#[test]
fn archive_and_key_are_enough_without_the_local_folder() {
    let place = Fixture::new();
    let mut rng = Rng::new(3);
    place.append(0, &lines(&mut rng, 4_000));
    place.capture(&place.sealed());
    place.append(0, &lines(&mut rng, 3));
    place.capture(&place.sealed());
    // Another machine: the local folder, which is not encrypted, is not there.
    fs::remove_dir_all(place.at("local")).unwrap();
    place.assert_complete();
    fs::remove_dir_all(place.at("local")).unwrap_or_default();
    // Without the key everything is captured again, and nothing is lost.
    place.append(0, &lines(&mut rng, 1));
    let again = place.capture(&place.sealed());
    assert_eq!(again.bytes, fs::metadata(place.session(0)).unwrap().len());
    place.assert_complete();
}

#[test]
fn other_tools_decrypt_what_is_in_it() {
    let place = Fixture::new();
    let mut rng = Rng::new(4);
    let text = lines(&mut rng, 4_000);
    place.append(0, &text);
    place.capture(&place.sealed());
    let key = place.at("key.txt");
    place.identities.write_new(&key).unwrap();
    assert!(place.identities.write_new(&key).is_err());
    let of_file = age::IdentityFile::from_file(key.to_str().unwrap().into()).unwrap();
    let keys = of_file.into_identities().unwrap();
    let decrypted = |folder: &str| {
        let folder = place.at("archive").join(folder);
        let path = fs::read_dir(folder)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        assert!(path.to_str().unwrap().ends_with(".age"));
        let sealed = fs::File::open(path).unwrap();
        let keys = keys.iter().map(|key| &**key as &dyn age::Identity);
        let mut bytes = Vec::new();
        let decryptor = age::Decryptor::new(sealed).unwrap();
        decryptor
            .decrypt(keys)
            .unwrap()
            .read_to_end(&mut bytes)
            .unwrap();
        bytes
    };
    let (pack, dictionary) = (decrypted("packs"), decrypted("dictionaries"));
    let mut lines = String::new();
    zstd::stream::read::Decoder::with_dictionary(&pack[..], &dictionary)
        .unwrap()
        .read_to_string(&mut lines)
        .unwrap();
    assert!(lines == text);
    assert_eq!(
        Identities::read(&key).unwrap().recipients(),
        place.identities.recipients()
    );
}

#[test]
fn wrong_keys_and_settings_are_refused() {
    let place = Fixture::new();
    place.append(0, "{}\n");
    place.capture(&place.sealed());
    let kind = |options: &ArchiveOptions| {
        let opened = Archive::open_or_create_with(&place.at("archive"), options);
        opened.unwrap_err().kind().clone()
    };
    let other = Identities::generate();
    let wrong = place.sealed().identities(other.clone());
    assert_eq!(kind(&wrong), ErrorKind::WrongKey);
    let others = place.sealed().encrypt_to(other.recipients());
    assert_eq!(kind(&others), ErrorKind::OtherRecipients);
    assert_eq!(kind(&ArchiveOptions::new()), ErrorKind::NoLocalFolder);
    let plain = place.at("plain");
    Archive::open_or_create(&plain).unwrap();
    let refused = Archive::open_or_create_with(&plain, &place.sealed());
    assert_eq!(refused.unwrap_err().kind(), &ErrorKind::OtherRecipients);
    let text = place.at("text");
    fs::write(&text, "no key\n").unwrap();
    let refused = Identities::read(&text).unwrap_err();
    assert_eq!(refused.kind(), &ErrorKind::NotAKey);
    assert!(!refused.to_string().contains("no key"));
    assert!("age1xyz".parse::<transcript_archive::Recipient>().is_err());
}

#[test]
fn damage_costs_the_lines_that_it_is_in() {
    let place = Fixture::new();
    let mut rng = Rng::new(5);
    for session in 0..6 {
        place.append(session, &lines(&mut rng, 2_500));
    }
    place.capture(&place.sealed());
    let pack = files(&place.at("archive/packs")).remove(0);
    let whole = fs::read(&pack).unwrap();
    let check = || {
        let archive = Archive::open_with(&place.at("archive"), &place.with_key()).unwrap();
        archive.check(&CheckOptions::new()).unwrap()
    };
    assert!(check().damages.is_empty());
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    fs::write(&pack, damaged).unwrap();
    let found = check();
    assert!((1..=2).contains(&found.losses.len()), "{:?}", found.losses);
    // Cut in the middle: what is before can be read.
    fs::write(&pack, &whole[..whole.len() / 2]).unwrap();
    let found = check();
    assert!((2..=4).contains(&found.losses.len()), "{:?}", found.losses);
    fs::write(&pack, &whole).unwrap();
    assert!(check().damages.is_empty());
}
