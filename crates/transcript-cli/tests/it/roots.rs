//! Several roots: their names, their sessions, their archives.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use transcript_engine::archive::{Archive, CaptureOptions};

use crate::{command, stderr, stdout};

const HOME: &str = "1999463e-ee08-4b08-99d5-2d9a36fd8201";
const WORK: &str = "2999463e-ee08-4b08-99d5-2d9a36fd8202";
const BOTH: &str = "3999463e-ee08-4b08-99d5-2d9a36fd8203";

/// A home folder with two roots: the usual one, and one that a configuration file names `work`.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.write(&place.home(), HOME, "private-owl");
        place.write(&place.work(), WORK, "office-fox");
        place.write(&place.home(), BOTH, "shared-elk");
        place.write(&place.work(), BOTH, "shared-elk");
        place.configure("");
        place
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn home(&self) -> PathBuf {
        self.folder("home/.claude/projects")
    }

    fn work(&self) -> PathBuf {
        self.folder("work/projects")
    }

    /// Writes the configuration file: the name of the root, and these lines before it.
    fn configure(&self, lines: &str) {
        let file = self.folder("config.toml");
        let work = self.work();
        fs::write(
            file,
            format!("{lines}\n[roots]\nwork = '{}'\n", work.display()),
        )
        .unwrap();
    }

    /// Writes a session of the project `/src/PROMPT`.
    fn write(&self, root: &Path, id: &str, prompt: &str) {
        let project = root.join(format!("-src-{prompt}"));
        fs::create_dir_all(&project).unwrap();
        // A session of the same id in another root is another one.
        let name = root.parent().unwrap().file_name().unwrap();
        let name = format!("{id}-{}", name.display());
        let (a, b) = (format!("{name}-a"), format!("{name}-b"));
        let lines = [
            json!({
                "type": "user", "uuid": a, "parentUuid": null, "sessionId": id,
                "timestamp": "2026-01-01T00:00:00.000Z", "cwd": format!("/src/{prompt}"), "version": "2.1.0",
                "message": { "role": "user", "content": prompt },
            }),
            json!({
                "type": "assistant", "uuid": b, "parentUuid": a, "sessionId": id,
                "timestamp": "2026-01-01T00:00:01.000Z", "requestId": format!("req_{name}"),
                "message": {
                    "id": format!("msg_{name}"), "type": "message", "role": "assistant", "model": "claude-opus-4-6",
                    "content": [{ "type": "text", "text": "Yes." }],
                    "usage": { "input_tokens": 10, "output_tokens": 5 },
                },
            }),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(project.join(format!("{id}.jsonl")), text).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = command(arguments);
        fs::create_dir_all(self.folder("data")).unwrap();
        command
            .env("HOME", self.folder("home"))
            .env("XDG_DATA_HOME", self.folder("data"))
            .env("XDG_CACHE_HOME", self.folder("cache"))
            .env("TRANSCRIPT_CONFIG", self.folder("config.toml"))
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("TRANSCRIPT_ARCHIVE")
            .current_dir(self.0.path());
        command.output().unwrap()
    }

    /// Runs a command that must succeed, and returns its records.
    fn records(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        let text = stdout(&output);
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }

    /// Lists sessions: their ids and roots, sorted.
    fn listed(&self, arguments: &[&str]) -> Vec<(String, String)> {
        let records = self.records(&[&["list", "--json"], arguments].concat());
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let rows = records
            .iter()
            .map(|row| (text(&row["sessionId"]), text(&row["root"])));
        let mut rows: Vec<_> = rows.collect();
        rows.sort();
        rows
    }

    /// Removes all live sessions of a root, with their projects.
    fn clear(&self, root: &Path) {
        fs::remove_dir_all(root).unwrap();
        fs::create_dir_all(root).unwrap();
    }
}

fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}

fn pairs(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    let rows = rows.iter();
    rows.map(|(id, root)| ((*id).to_owned(), (*root).to_owned()))
        .collect()
}

const TWO: [&str; 4] = ["--root", "default", "--root", "work"];

/// Captures a root as earlier versions did: nothing says whose the sessions are.
fn capture_as_before(archive: &Path, root: &Path) {
    let options = CaptureOptions::new().summarize(Arc::new(transcript_engine::summarize));
    let mut archive = Archive::open_or_create(archive).unwrap();
    archive.capture(root, &options).unwrap();
}

#[test]
fn without_a_configured_default_only_the_usual_root_is_used_and_has_no_name() {
    let place = Place::new();
    let usual = pairs(&[(HOME, "-"), (BOTH, "-")]);
    assert_eq!(place.listed(&[]), usual);
    fs::remove_file(place.folder("config.toml")).unwrap();
    assert_eq!(place.listed(&[]), usual);
    let text = stdout(&place.run(&["list"]));
    assert!(
        text.lines().all(|line| line.split('\t').count() == 10),
        "{text}"
    );
}

#[test]
fn roots_are_chosen_by_name_by_folder_and_by_the_configuration() {
    let place = Place::new();
    let all = pairs(&[
        (HOME, "default"),
        (WORK, "work"),
        (BOTH, "default"),
        (BOTH, "work"),
    ]);
    let work = pairs(&[(WORK, "-"), (BOTH, "-")]);
    let folder = place.work().display().to_string();
    assert_eq!(place.listed(&TWO), all);
    assert_eq!(place.listed(&["--root", "work"]), work);
    assert_eq!(place.listed(&["--root", &folder]), work);
    // One root is one, however often it is named.
    assert_eq!(place.listed(&["--root", "work", "--root", &folder]), work);
    place.configure("use = ['default', 'work']");
    assert_eq!(place.listed(&[]), all);
    assert_eq!(place.listed(&["--root", "work"]), work);
    // A folder without a name has its path.
    place.write(&place.folder("third"), HOME, "third-yak");
    let third = place.folder("third").display().to_string();
    let rows = place.listed(&["--root", &third, "--root", "work", "--text", "third-yak"]);
    assert_eq!(rows, pairs(&[(HOME, &third)]));
}

#[test]
fn every_list_of_sessions_shows_the_root_of_each() {
    let place = Place::new();
    let text = stdout(&place.run(&[&["list"][..], &TWO].concat()));
    let last = text
        .lines()
        .map(|line| line.split('\t').nth(10).unwrap_or("-"));
    let mut last: Vec<&str> = last.collect();
    last.sort_unstable();
    assert_eq!(
        last,
        ["ROOT", "default", "default", "work", "work"],
        "{text}"
    );

    for output in [&["--json"][..], &["--json", "--files"]] {
        let found = place.records(&[&["search", "fox"], output, &TWO].concat());
        assert_eq!(found[0]["root"], "work", "{found:?}");
    }
    let text = stdout(&place.run(&[&["search", "owl"][..], &TWO].concat()));
    assert!(text.contains(" · default · "), "{text}");
    // An id that two roots have would be refused.
    let text = stdout(&place.run(&[&["search", "elk"][..], &TWO].concat()));
    for root in [place.home(), place.work()] {
        let file = root.join(format!("-src-shared-elk/{BOTH}.jsonl:1"));
        let name = text.split_whitespace().find(|word| {
            word.strip_prefix("~/")
                .is_some_and(|end| file.ends_with(end))
                || Path::new(word) == file
        });
        let name = name.unwrap_or_else(|| panic!("{}: {text}", file.display()));
        assert!(name.contains('/'), "{text}");
    }

    let rows = place.records(&[&["usage", "--by", "root", "--json"][..], &TWO].concat());
    let of = |name: &str| rows.iter().any(|row| row["by"]["root"] == name);
    assert!(of("default") && of("work"), "{rows:?}");
    let kept = place.records(&[&["keep", "--json"][..], &TWO].concat());
    let kept: Vec<_> = kept
        .iter()
        .map(|report| (&report["root"], &report["captured"]))
        .collect();
    assert_eq!(
        kept,
        [(&json!("default"), &json!(2)), (&json!("work"), &json!(2))]
    );
}

#[test]
fn an_id_that_two_roots_have_is_ambiguous_and_the_error_says_how_to_choose() {
    let place = Place::new();
    for command in [
        "replay", "tree", "resume", "verify", "tail", "fork", "repair",
    ] {
        let output = place.run(&[&[command, BOTH][..], &TWO].concat());
        assert_eq!(
            output.status.code(),
            Some(2),
            "{command:?}: {}",
            stdout(&output)
        );
        let error = stderr(&output);
        assert!(
            error.contains("--root default or --root work"),
            "{command:?}: {error}"
        );
        let output = place.run(&[command, BOTH, "--root", "work"]);
        assert_ne!(
            output.status.code(),
            Some(2),
            "{command:?}: {}",
            stderr(&output)
        );
        // Any other id is looked up in both.
        let output = place.run(&[&[command, WORK][..], &TWO].concat());
        assert_ne!(
            output.status.code(),
            Some(2),
            "{command:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_copy_is_written_to_the_root_of_its_session_and_what_has_none_must_name_a_root() {
    let place = Place::new();
    let copy = place.run(&[&["fork", WORK][..], &TWO].concat());
    assert!(copy.status.success(), "{}", stderr(&copy));
    assert_eq!(
        fs::read_dir(place.work().join("-src-office-fox"))
            .unwrap()
            .count(),
        2
    );
    let commands: [&[&str]; 3] = [
        &["move", "/src/office-fox", "/src/fox"],
        &["restore", "--all"],
        &["prune"],
    ];
    assert!(place.run(&[&["keep"][..], &TWO].concat()).status.success());
    for command in commands {
        let output = place.run(&[command, &TWO].concat());
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {error}");
        assert!(error.contains("default, work"), "{command:?}: {error}");
        let output = place.run(&[command, &["--root", "work"][..]].concat());
        assert_ne!(
            output.status.code(),
            Some(2),
            "{command:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn each_root_has_an_archive_of_its_own_and_its_sessions_are_restored_to_it() {
    let place = Place::new();
    assert!(place.run(&[&["keep"][..], &TWO].concat()).status.success());
    // The archive of the usual root is where it always was.
    assert!(is_file(
        &place.folder("data/transcript/archive/archive.json")
    ));
    place.clear(&place.home());
    place.clear(&place.work());
    assert_eq!(
        place.listed(&["--archived"]),
        pairs(&[(HOME, "-"), (BOTH, "-")])
    );
    assert_eq!(
        place.listed(&["--archived", "--root", "work"]),
        pairs(&[(WORK, "-"), (BOTH, "-")])
    );
    let all = pairs(&[
        (HOME, "default"),
        (WORK, "work"),
        (BOTH, "default"),
        (BOTH, "work"),
    ]);
    for option in ["--archived", "--all"] {
        assert_eq!(place.listed(&[&[option][..], &TWO].concat()), all);
    }
    let found = place.records(&[&["search", "fox", "--all", "--json"][..], &TWO].concat());
    assert_eq!(found[0]["root"], "work");
    let rows = place.records(&[&["usage", "--all", "--by", "root", "--json"][..], &TWO].concat());
    assert!(
        rows.iter().any(|row| row["by"]["root"] == "work"),
        "{rows:?}"
    );
    let replayed = place.run(&[&["replay", WORK][..], &TWO].concat());
    assert!(
        stdout(&replayed).contains("office-fox"),
        "{}",
        stderr(&replayed)
    );
    // A path leads into the archive of a root that is not in use.
    let path =
        place.records(&["list", "--archived", "--json", "--root", "work"])[0]["path"].clone();
    assert!(
        place
            .run(&["replay", path.as_str().unwrap()])
            .status
            .success()
    );

    let restored = place.run(&[&["restore", WORK][..], &TWO].concat());
    assert!(restored.status.success(), "{}", stderr(&restored));
    assert!(is_file(
        &place.work().join(format!("-src-office-fox/{WORK}.jsonl"))
    ));
    assert!(!place.home().join("-src-office-fox").exists());
    let restored = place.run(&[&["restore", BOTH][..], &TWO].concat());
    assert_eq!(restored.status.code(), Some(2), "{}", stderr(&restored));
}

#[test]
fn an_archive_that_earlier_versions_wrote_for_all_roots_shows_each_root_its_own() {
    let place = Place::new();
    let archive = place.folder("data/transcript/archive");
    let gone = "4999463e-ee08-4b08-99d5-2d9a36fd8204";
    place.write(&place.work(), gone, "office-fox");
    place.write(
        &place.home(),
        "5999463e-ee08-4b08-99d5-2d9a36fd8205",
        "lost-cat",
    );
    capture_as_before(&archive, &place.home());
    capture_as_before(&archive, &place.work());
    fs::remove_file(place.work().join(format!("-src-office-fox/{gone}.jsonl"))).unwrap();
    fs::remove_dir_all(place.home().join("-src-lost-cat")).unwrap();

    // What is proved to be of another root is not shown, but counted. What no root has a project of is shown.
    let output = place.run(&["list", "--archived"]);
    let error = stderr(&output);
    assert!(
        error.contains("2 archived sessions of other roots"),
        "{error}"
    );
    let home = place.listed(&["--archived"]);
    let ids: Vec<&str> = home.iter().map(|(id, _)| &id[..1]).collect();
    assert_eq!(ids, ["1", "3", "5"]);
    let work = place.listed(&["--archived", "--root", "work"]);
    let ids: Vec<&str> = work.iter().map(|(id, _)| &id[..1]).collect();
    assert_eq!(ids, ["2", "3", "4", "5"]);
    let replayed = place.run(&["replay", gone, "--root", "work"]);
    assert!(
        stdout(&replayed).contains("office-fox"),
        "{}",
        stderr(&replayed)
    );
    assert_eq!(place.run(&["replay", gone]).status.code(), Some(2));

    // A capture of the other root goes to its own archive, and loses nothing of the old one.
    let before = fs::read_dir(archive.join("packs")).unwrap().count();
    let kept = place.run(&["keep", "--root", "work"]);
    assert!(
        stderr(&kept).contains("archive of their own"),
        "{}",
        stderr(&kept)
    );
    assert_eq!(fs::read_dir(archive.join("packs")).unwrap().count(), before);
    let work = place.listed(&["--archived", "--root", "work"]);
    let ids: Vec<&str> = work.iter().map(|(id, _)| &id[..1]).collect();
    assert_eq!(ids, ["2", "3", "4", "5"]);
    // Its archive says whose it is, so the usual root knows of it without the configuration file.
    fs::remove_file(place.folder("config.toml")).unwrap();
    assert_eq!(place.listed(&["--archived"]), home);
    let restored = place.run(&[
        "restore",
        "--all",
        "--root",
        &place.work().display().to_string(),
    ]);
    assert!(restored.status.success(), "{}", stderr(&restored));
    assert!(is_file(
        &place.work().join(format!("-src-office-fox/{gone}.jsonl"))
    ));
    assert!(!place.work().join("-src-private-owl").exists());
}

#[test]
fn an_archive_that_was_asked_for_is_that_of_all_roots_and_knows_whose_a_session_is() {
    let place = Place::new();
    place.configure("use = ['default', 'work']");
    let archive = place.folder("one").display().to_string();
    assert!(place.run(&["keep", "--archive", &archive]).status.success());
    assert!(!place.folder("data/transcript/archive").exists());
    // The projects are gone as well: only the captures say whose they were.
    place.clear(&place.home());
    place.clear(&place.work());
    let listed = |root: &str| place.listed(&["--archived", "--archive", &archive, "--root", root]);
    assert_eq!(listed("default")[0].0, HOME);
    assert_eq!(listed("work")[0].0, WORK);
    let rows = place.listed(&["--archived", "--archive", &archive]);
    assert!(rows.contains(&(HOME.into(), "default".into())), "{rows:?}");
    assert!(rows.contains(&(WORK.into(), "work".into())), "{rows:?}");
    // On a machine without these folders every root has the sessions.
    fs::rename(place.folder("work"), place.folder("moved")).unwrap();
    assert_eq!(listed("default").len(), 3);
}

#[test]
fn a_root_can_have_an_archive_where_the_configuration_says() {
    let place = Place::new();
    let archive = place.folder("disk/work");
    place.configure(&format!("[archives]\nwork = '{}'", archive.display()));
    assert!(place.run(&["keep", "--root", "work"]).status.success());
    assert!(is_file(&archive.join("archive.json")));
    place.clear(&place.work());
    assert_eq!(place.listed(&["--archived", "--root", "work"]).len(), 2);
}

#[test]
fn a_configuration_that_cannot_be_used_is_named_and_files_are_read_all_the_same() {
    let place = Place::new();
    let file = place.folder("config.toml");
    let home = place.home().join(format!("-src-private-owl/{HOME}.jsonl"));
    for (text, expected) in [
        ("roots = 3", "line 1"),
        ("\n[roots]\nwork = ", "line 3"),
        ("[rots]\nwork = '/x'", "rots"),
        ("[roots]\nwork = 'x'", "not an absolute path"),
        ("[roots]\n'a b' = '/x'", "\"a b\""),
        ("[roots]\ndefault = '/x'", "default"),
        ("use = ['home']", "no root is named home"),
        ("[archives]\nhome = '/x'", "no root is named home"),
        (
            "use = ['default']\n[archives]\ndefault = 'x'",
            "not an absolute path",
        ),
    ] {
        fs::write(&file, text).unwrap();
        let output = place.run(&["list"]);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{text}: {error}");
        assert!(
            error.contains(expected) && error.contains("config.toml"),
            "{text}: {error}"
        );
        let output = place.run(&["replay", home.to_str().unwrap()]);
        assert!(output.status.success(), "{text}: {}", stderr(&output));
    }
    fs::write(&file, "[roots]\nbelow = '~/.claude/projects'").unwrap();
    assert_eq!(place.listed(&["--root", "below"]).len(), 2);
    let output = place.run(&["list", "--root", "elsewhere"]);
    let error = stderr(&output);
    assert!(error.contains("no root of this name in"), "{error}");
}

#[cfg(feature = "encryption")]
#[test]
fn a_root_whose_sessions_were_kept_encrypted_gets_an_encrypted_archive() {
    let place = Place::new();
    let key = place.folder("key").display().to_string();
    let common = place
        .folder("data/transcript/archive")
        .display()
        .to_string();
    let kept = place.run(&[
        "keep",
        "--root",
        "work",
        "--archive",
        &common,
        "--encrypt",
        &key,
    ]);
    assert!(kept.status.success(), "{}", stderr(&kept));
    assert!(place.run(&["keep", "--root", "work"]).status.success());
    let folders = fs::read_dir(place.folder("data/transcript")).unwrap();
    let mut own = folders.filter_map(|entry| {
        let entry = entry.unwrap();
        let name = entry.file_name();
        name.to_str()
            .unwrap()
            .starts_with("archive-")
            .then(|| entry.path())
    });
    let marker = fs::read_to_string(own.next().unwrap().join("archive.json")).unwrap();
    assert!(marker.contains("age1"), "{marker}");
}

#[cfg(feature = "encryption")]
#[test]
fn a_key_is_made_only_if_the_archives_of_all_roots_are_new() {
    let place = Place::new();
    let key = place.folder("key").display().to_string();
    let encrypted = [&["keep", "--encrypt", &key][..], &TWO].concat();
    assert!(place.run(&["keep", "--root", "work"]).status.success());
    let refused = place.run(&encrypted);
    let error = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains("the archive exists"), "{error}");
    assert!(!Path::new(&key).exists());
    assert!(!place.folder("data/transcript/archive").exists());

    fs::remove_dir_all(place.folder("data/transcript")).unwrap();
    let kept = place.run(&encrypted);
    let text = stderr(&kept);
    assert!(kept.status.success(), "{text}");
    assert_eq!(text.matches("a new key is in").count(), 1, "{text}");
    let identity = ["list", "--archived", "--json", "--identity", &key];
    assert_eq!(place.records(&[&identity[..], &TWO].concat()).len(), 4);
}

#[test]
fn without_a_session_verify_checks_those_of_all_roots() {
    let place = Place::new();
    let files = |arguments: &[&str]| {
        // Old sessions have findings, so the exit code is not 0.
        let text = stdout(&place.run(&[&["verify", "--json"], arguments].concat()));
        let paths = text.lines().map(|line| {
            let record: Value = serde_json::from_str(line).unwrap();
            PathBuf::from(record["path"].as_str().unwrap())
        });
        let roots = [place.home(), place.work()];
        let paths: Vec<_> = paths.collect();
        roots.map(|root| paths.iter().filter(|path| path.starts_with(&root)).count())
    };
    assert_eq!(files(&[]), [2, 0]);
    assert_eq!(files(&["--root", "work"]), [0, 2]);
    assert_eq!(files(&TWO), [2, 2]);
}

#[test]
fn an_archive_that_is_named_has_the_sessions_of_a_root_that_was_moved() {
    let place = Place::new();
    let archive = place.home().join("../named-archive");
    let archive = archive.to_str().unwrap();
    let kept = place.run(&["keep", "--archive", archive]);
    assert!(kept.status.success(), "{}", stderr(&kept));
    let sessions = place.records(&["list", "--json", "--archived", "--archive", archive]);
    assert!(!sessions.is_empty());
    for session in sessions {
        let id = session["sessionId"].as_str().unwrap();
        let arguments = ["replay", id, "--archive", archive];
        let moved = place.run(&[&arguments[..], &["--root", "gone/projects"]].concat());
        assert!(moved.status.success(), "{}", stderr(&moved));
        assert!(!stdout(&moved).is_empty());
    }
}
