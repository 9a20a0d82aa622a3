//! `transcript keep` and `transcript restore`, and other commands on archived sessions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tempfile::TempDir;

use crate::{command, sessions, stderr, stdout};

/// A projects folder with copies of fixtures, and an archive.
struct Place {
    folder: TempDir,
    id: String,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("home/projects/-home-ada-notes");
        fs::create_dir_all(&project).unwrap();
        let mut ids = Vec::new();
        for entry in fs::read_dir(sessions()).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if path.extension().is_some_and(|end| end == "jsonl") && stem.len() == 36 {
                fs::copy(&path, project.join(path.file_name().unwrap())).unwrap();
                ids.push(stem);
            }
        }
        ids.sort();
        let id = match ids.first() {
            Some(id) => id.clone(),
            None => {
                // Fixtures are named after what they show.
                let id = "1999463e-ee08-4b08-99d5-2d9a36fd8293".to_owned();
                let first = fs::read_dir(sessions()).unwrap();
                let mut paths: Vec<PathBuf> = first.map(|entry| entry.unwrap().path()).collect();
                paths.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
                paths.sort();
                fs::copy(&paths[0], project.join(format!("{id}.jsonl"))).unwrap();
                id
            }
        };
        Self { folder, id }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("home/projects")
    }

    fn file(&self) -> PathBuf {
        let name = format!("-home-ada-notes/{}.jsonl", self.id);
        self.root().join(name)
    }

    fn archive(&self) -> PathBuf {
        self.folder.path().join("archive")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = command(arguments);
        command.arg("--root").arg(self.root());
        command.env("TRANSCRIPT_ARCHIVE", self.archive());
        command.env("XDG_CACHE_HOME", self.folder.path().join("cache"));
        command.output().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| {
            panic!("{error}: {} {}", stdout(&output), stderr(&output));
        })
    }
}

#[test]
fn archived_session_reads_like_a_file_and_can_be_restored() {
    let place = Place::new();
    let id = place.id.as_str();
    let commands: [&[&str]; 6] = [
        &["replay", id],
        &["replay", "--format", "json", id],
        &["tree", id],
        &["resume", id, "--request"],
        &["search", "--no-cache", "--count", "the", "--all"],
        &["usage", "--no-cache", "--json", "--all"],
    ];
    let live: Vec<Output> = commands.iter().map(|command| place.run(command)).collect();
    let list = |option: &str| {
        let output = place.run(&["list", "--json", option]);
        let mut rows: Vec<Value> = stdout(&output)
            .split_terminator('\n')
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        for row in &mut rows {
            row["path"] = Value::Null;
            row["costNanoUsd"] = Value::Null;
        }
        rows
    };
    let listed = list("--all");
    let kept = place.json(&["keep", "--json"]);
    assert_eq!(
        kept["captured"].as_u64(),
        Some(listed.len() as u64),
        "{kept}"
    );
    let again = place.json(&["keep", "--json", "--full"]);
    assert_eq!(again["bytes"].as_u64(), Some(0), "{again}");
    // A session that is both is one.
    assert_eq!(list("--all"), listed);

    let whole = fs::read(place.file()).unwrap();
    let modified = fs::metadata(place.file()).unwrap().modified().unwrap();
    fs::rename(place.root(), place.folder.path().join("gone")).unwrap();
    fs::create_dir_all(place.root()).unwrap();
    for (command, live) in commands.iter().zip(&live) {
        let archived = place.run(command);
        assert_eq!(
            archived.status.code(),
            live.status.code(),
            "{command:?}: {}",
            stderr(&archived)
        );
        let same = |text: String| text.replace(place.root().to_str().unwrap(), "ROOT");
        let shown =
            stdout(&archived).replace(place.archive().join("projects").to_str().unwrap(), "ROOT");
        assert_eq!(shown, same(stdout(live)), "{command:?}");
    }
    for option in ["--all", "--archived"] {
        let mut archived = list(option);
        for row in &mut archived {
            assert_eq!(row["inArchive"], Value::Bool(true));
            row["inArchive"] = Value::Bool(false);
        }
        assert_eq!(archived, listed, "{option}");
    }
    let verified = place.run(&["verify", "--json", id]);
    assert!(
        stdout(&verified).contains("\"verdict\""),
        "{}",
        stderr(&verified)
    );
    // A fork is written to the project, never to the archive.
    let forked = place.run(&["fork", id]);
    let copy = format!("-home-ada-notes/{}.jsonl", stdout(&forked).trim());
    assert!(place.root().join(copy).exists(), "{}", stderr(&forked));

    let restored = place.json(&["restore", &id[..8], "--json"]);
    assert_eq!(restored["files"].as_u64(), Some(1), "{restored}");
    assert!(fs::read(place.file()).unwrap() == whole);
    assert_eq!(
        fs::metadata(place.file()).unwrap().modified().unwrap(),
        modified
    );
    // A file that continues is never changed.
    let longer = [&whole[..], b"{}\n"].concat();
    fs::write(place.file(), &longer).unwrap();
    let refused = place.run(&["restore", id]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("a longer version"),
        "{}",
        stderr(&refused)
    );
    assert!(fs::read(place.file()).unwrap() == longer);
    let all = place.folder.path().join("other/projects");
    let to = place.run(&["restore", "--all", "--to", all.to_str().unwrap()]);
    assert_eq!(to.status.code(), Some(0), "{}", stderr(&to));
    assert_eq!(
        fs::read_dir(all.join("-home-ada-notes")).unwrap().count(),
        listed.len()
    );
}

#[test]
fn sessions_that_the_client_deletes_soon_are_named() {
    let place = Place::new();
    let old = SystemTime::now() - Duration::from_secs(27 * 86_400 + 3_600);
    fs::File::open(place.file())
        .unwrap()
        .set_modified(old)
        .unwrap();
    let risk = |arguments: &[&str]| {
        let kept = place.json(&[&["keep", "--json"], arguments].concat());
        kept["atRisk"].to_string()
    };
    assert_eq!(
        risk(&[]),
        format!("[{{\"days\":3,\"sessionId\":\"{}\"}}]", place.id)
    );
    assert_eq!(risk(&["--sweep", "2"]), "[]");
    let settings = place.root().parent().unwrap().join("settings.json");
    fs::write(settings, "{\"cleanupPeriodDays\": 365}").unwrap();
    assert_eq!(risk(&[]), "[]");
}

#[test]
fn nothing_is_pruned_that_was_captured_just_now() {
    let place = Place::new();
    let old = SystemTime::now() - Duration::from_secs(60 * 86_400);
    fs::File::open(place.file())
        .unwrap()
        .set_modified(old)
        .unwrap();
    assert_eq!(place.run(&["keep"]).status.code(), Some(0));
    for arguments in [&["prune", "--json"][..], &["prune", "--json", "--yes"]] {
        let report = place.json(arguments);
        assert_eq!(report["dryRun"].as_bool(), Some(arguments.len() == 2));
        assert_eq!(report["pruned"].to_string(), "[]");
        let reason = &report["kept"][0]["reason"];
        assert_eq!(
            reason.as_str(),
            Some("captured less than seven days ago"),
            "{report}"
        );
    }
    assert!(place.file().exists());
    let text = place.run(&["prune"]);
    assert!(
        stderr(&text).contains("0 sessions would be removed"),
        "{}",
        stderr(&text)
    );
}

#[test]
fn damage_of_the_archive_is_named_with_session_and_lines() {
    let place = Place::new();
    assert_eq!(place.run(&["keep"]).status.code(), Some(0));
    let whole = place.run(&["verify", "--archive"]);
    assert_eq!(whole.status.code(), Some(0), "{}", stdout(&whole));
    let pack = fs::read_dir(place.archive().join("packs"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut bytes = fs::read(&pack).unwrap();
    bytes[100] ^= 1;
    fs::write(&pack, bytes).unwrap();
    let damaged = place.run(&["verify", "--archive"]);
    assert_eq!(damaged.status.code(), Some(1));
    assert!(stdout(&damaged).contains("lost: "), "{}", stdout(&damaged));
    let report = place.json(&["verify", "--archive", "--json"]);
    assert!(
        report["losses"][0]["path"]
            .as_str()
            .unwrap()
            .ends_with(".jsonl"),
        "{report}"
    );
    assert_eq!(report["losses"][0]["firstLine"].as_u64(), Some(1));
    // Files that are still on the disk are stored again.
    assert_eq!(place.run(&["keep", "--full"]).status.code(), Some(0));
    let root = place.folder.path().join("back");
    let restored = place.run(&["restore", "--all", "--to", root.to_str().unwrap()]);
    assert_eq!(restored.status.code(), Some(0), "{}", stderr(&restored));
}

#[test]
fn missing_archive_is_an_error_and_is_not_created() {
    let place = Place::new();
    let no = |arguments: &[&str], text: &str| {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            stderr(&output).contains(text),
            "{arguments:?}: {}",
            stderr(&output)
        );
    };
    no(&["restore", "--all"], "no archive");
    no(&["list", "--archived"], "no archive");
    no(&["verify", "--archive"], "no archive");
    assert!(!place.archive().exists());
    // A folder that is named by mistake hides nothing.
    let mut command = command(&["list", "--json"]);
    command.arg("--root").arg(place.root());
    let home = place.folder.path().join("home");
    let listed = command.env("TRANSCRIPT_ARCHIVE", &home).output().unwrap();
    assert!(stdout(&listed).contains(&place.id));
    let path = place.file();
    let mut command = crate::command(&["replay", path.to_str().unwrap()]);
    let replayed = command.env("TRANSCRIPT_ARCHIVE", &home).output().unwrap();
    assert_eq!(replayed.status.code(), Some(0), "{}", stderr(&replayed));
    // Reading makes none.
    no(
        &["replay", "deadbeef-0000-4000-8000-000000000000"],
        "no such file or session",
    );
    assert!(!place.archive().exists());
    assert_eq!(place.run(&["keep"]).status.code(), Some(0));
    no(&["restore", "deadbeef"], "no such archived session");
    fs::create_dir_all(place.folder.path().join("other")).unwrap();
    fs::write(place.folder.path().join("other/notes.txt"), "x").unwrap();
    let other: &Path = &place.folder.path().join("other");
    no(&["keep", "--archive", other.to_str().unwrap()], "not empty");
    let install = place.run(&["keep", "--install"]);
    assert!(
        stdout(&install).contains("SessionEnd"),
        "{}",
        stderr(&install)
    );
}

#[cfg(feature = "encryption")]
#[test]
fn an_encrypted_archive_is_written_without_the_key_and_read_with_it() {
    let place = Place::new();
    let key = place.folder.path().join("key.txt");
    let key = key.to_str().unwrap();
    let data = place.folder.path().join("data");
    let run = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.arg("--root").arg(place.root());
        command.env("TRANSCRIPT_ARCHIVE", place.archive());
        command.env("XDG_DATA_HOME", &data);
        command.output().unwrap()
    };
    let first = run(&["keep", "--encrypt", key]);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    assert!(stderr(&first).contains("keep a copy"), "{}", stderr(&first));
    // The next ones need neither the option nor the key.
    let again = run(&["keep", "--json"]);
    let again: Value = serde_json::from_str(&stdout(&again)).unwrap();
    assert_eq!(
        (&again["captured"], &again["stored"]),
        (&0.into(), &0.into())
    );
    fs::remove_file(place.file()).unwrap();
    for arguments in [
        &["list", "--archived"][..],
        &["verify", "--archive"],
        &["restore", "--all"],
        &["prune"],
        &["replay", &place.id],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = stderr(&output);
        assert!(said.contains("--identity FILE"), "{arguments:?}: {said}");
    }
    let replayed = run(&["replay", &place.id, "--identity", key]);
    assert_eq!(replayed.status.code(), Some(0), "{}", stderr(&replayed));
    let checked = run(&["verify", "--archive", "--identity", key]);
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
    let restored = run(&["restore", &place.id, "--identity", key]);
    assert_eq!(restored.status.code(), Some(0), "{}", stderr(&restored));
    assert!(place.file().exists());
    // Another key is refused, and so is another encryption of the same archive.
    let other = place.folder.path().join("other.txt");
    let other = other.to_str().unwrap();
    let refused = run(&["keep", "--encrypt", other]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("other keys"),
        "{}",
        stderr(&refused)
    );
    // No key is made for it.
    assert!(!Path::new(other).exists());
    let second = place.folder.path().join("second");
    let made = run(&[
        "keep",
        "--archive",
        second.to_str().unwrap(),
        "--encrypt",
        other,
    ]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let refused = run(&["list", "--archived", "--identity", other]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("other keys"),
        "{}",
        stderr(&refused)
    );
    let refused = run(&["keep", "--encrypt", "age1nothing"]);
    assert!(
        stderr(&refused).contains("--encrypt"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn restore_warns_about_sessions_that_the_client_would_delete_again() {
    let place = Place::new();
    let old = SystemTime::now() - Duration::from_secs(60 * 86_400);
    let set = || {
        let file = fs::File::options().append(true).open(place.file());
        file.unwrap().set_modified(old).unwrap();
    };
    set();
    assert_eq!(place.run(&["keep"]).status.code(), Some(0));
    let modified = || fs::metadata(place.file()).unwrap().modified().unwrap();
    let restore = |arguments: &[&str]| {
        fs::remove_file(place.file()).unwrap();
        let restored = place.run(&[&["restore", &place.id], arguments].concat());
        assert_eq!(restored.status.code(), Some(0), "{}", stderr(&restored));
        (stdout(&restored), stderr(&restored))
    };
    let (_, said) = restore(&[]);
    assert!(
        said.contains("will delete 1 session of these again, the first when it is started next"),
        "{said}"
    );
    assert_eq!(modified(), old);
    let (json, _) = restore(&["--json"]);
    assert!(
        json.contains(&format!(
            "\"atRisk\":[{{\"sessionId\":\"{}\",\"days\":0}}]",
            place.id
        )),
        "{json}"
    );
    let (_, said) = restore(&["--renew"]);
    assert!(!said.contains("deletes"), "{said}");
    assert!(modified() > old + Duration::from_secs(59 * 86_400));
    let settings = place.root().parent().unwrap().join("settings.json");
    fs::write(settings, "{\"cleanupPeriodDays\": 365}").unwrap();
    let (_, said) = restore(&["--renew"]);
    assert!(!said.contains("deletes"), "{said}");
    assert_eq!(modified(), old);
}

#[test]
fn a_session_that_was_moved_is_one_session_in_the_archive() {
    let place = Place::new();
    let moved = place.root().join("-home-ada-moved");
    let path = moved.join(format!("{}.jsonl", place.id));
    assert_eq!(place.run(&["keep"]).status.code(), Some(0));
    fs::create_dir(&moved).unwrap();
    let bytes = fs::read(place.file()).unwrap();
    fs::write(
        &path,
        [
            &bytes[..],
            b"{\"type\":\"relocated\",\"relocatedCwd\":\"/home/ada/moved\"}\n",
        ]
        .concat(),
    )
    .unwrap();
    fs::remove_file(place.file()).unwrap();
    let rows = |arguments: &[&str]| {
        let listed = stdout(&place.run(&[&["list", "--json"], arguments].concat()));
        listed
            .lines()
            .filter(|line| line.contains(&place.id))
            .count()
    };
    // Before it was captured there, and after that.
    assert_eq!(rows(&["--all"]), 1);
    assert_eq!(place.run(&["keep"]).status.code(), Some(0));
    assert_eq!((rows(&["--all"]), rows(&["--archived"])), (1, 1));
    fs::remove_dir_all(place.root()).unwrap();
    let replayed = place.run(&["replay", &place.id]);
    assert_eq!(replayed.status.code(), Some(0), "{}", stderr(&replayed));
    fs::create_dir_all(place.root()).unwrap();
    let restored = place.run(&["restore", &place.id]);
    assert_eq!(restored.status.code(), Some(0), "{}", stderr(&restored));
    assert!(path.exists() && !place.file().exists());
}
