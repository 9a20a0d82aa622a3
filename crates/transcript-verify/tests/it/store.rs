//! Findings about the surroundings of a session: names, times and modes of a store.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use transcript_verify::{Report, Verdict, VerifyOptions, verify_folder};

use crate::fixtures;

const ID: &str = "5c1d8a52-0b7e-4c3f-9d21-6a4e8f7b1c20";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A store with one private project, `-home-ada-almanac`.
struct Store(TempDir);

impl Store {
    fn new() -> Self {
        let store = Self(tempfile::tempdir().unwrap());
        store.project("-home-ada-almanac");
        store
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("projects")
    }

    fn project(&self, name: &str) -> PathBuf {
        let project = self.root().join(name);
        fs::create_dir_all(&project).unwrap();
        set_mode(&project, 0o700);
        project
    }

    /// Writes a session whose last entry is as old as the file.
    fn session(&self, project: &str, bytes: &[u8], age: Duration) -> PathBuf {
        let path = self.project(project).join(format!("{ID}.jsonl"));
        fs::write(&path, bytes).unwrap();
        set_mode(&path, 0o600);
        let file = File::options().append(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
        path
    }

    fn reports(&self) -> Vec<Report> {
        let mut reports = Vec::new();
        let mut each = |report: Result<Report, _>| reports.push(report.unwrap());
        verify_folder(
            &crate::disk(),
            &self.root(),
            &VerifyOptions::new(),
            &mut each,
        )
        .unwrap();
        reports
    }

    fn codes(&self) -> String {
        let codes = self.reports().into_iter().map(|report| {
            let codes = report.findings.iter().map(|finding| finding.code.as_str());
            codes.collect::<Vec<_>>().join(" ")
        });
        codes.collect::<Vec<_>>().join(" | ")
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) {}

/// The clean fixture, without the times of its entries, so that its age is that of the file.
fn clean() -> Vec<u8> {
    let text = fs::read_to_string(fixtures().join("findings/clean.jsonl")).unwrap();
    text.replace("\"timestamp\"", "\"slug\"").into_bytes()
}

/// The client refuses to resume without times, so the verdict is not asked for.
#[test]
fn a_private_session_in_its_own_project_has_no_findings() {
    let store = Store::new();
    store.session("-home-ada-almanac", &clean(), DAY);
    assert_eq!(store.codes(), "");
}

#[test]
fn names_copies_and_stubs_are_reported() {
    let store = Store::new();
    store.session("-home-ada-old", &clean(), DAY);
    assert_eq!(store.codes(), "F-DIR");
    store.session("-home-ada-almanac", &clean(), DAY);
    assert_eq!(store.codes(), "F-COPY | F-COPY F-DIR");
    let store = Store::new();
    store.session("-home-ada-almanac", b"", DAY);
    assert_eq!(store.codes(), "F-STUB");
    store.session(
        "-home-ada-almanac",
        b"{\"type\":\"ai-title\",\"aiTitle\":\"Tides\"}\n",
        DAY,
    );
    assert_eq!(store.codes(), "F-STUB");
}

#[test]
fn sessions_that_the_client_deletes_soon_are_reported() {
    let store = Store::new();
    let days = |days: u32| {
        store.session("-home-ada-almanac", &clean(), DAY * days + DAY / 2);
        store.codes()
    };
    assert_eq!(days(22), "");
    assert_eq!(days(23), "R-SWEEP");
    assert_eq!(days(90), "R-SWEEP");
    let settings = store.0.path().join("settings.json");
    fs::write(&settings, r#"{"cleanupPeriodDays":99999}"#).unwrap();
    assert_eq!(days(90), "");
    fs::write(&settings, r#"{"cleanupPeriodDays":91}"#).unwrap();
    assert_eq!(days(90), "R-SWEEP");
    let detail = &store.reports()[0].findings[0].detail;
    assert_eq!(detail, "Claude Code deletes the file tomorrow");
}

#[test]
fn a_time_that_is_not_that_of_the_last_entry_is_reported() {
    let store = Store::new();
    let bytes = fs::read(fixtures().join("findings/clean.jsonl")).unwrap();
    store.session("-home-ada-almanac", &bytes, DAY);
    assert_eq!(store.codes(), "F-PICK");
    assert_eq!(store.reports()[0].verdict(), Verdict::Noted);
}

#[test]
#[cfg(unix)]
fn wide_modes_are_reported() {
    let store = Store::new();
    let path = store.session("-home-ada-almanac", &clean(), DAY);
    set_mode(&path, 0o644);
    assert_eq!(store.codes(), "Z-MODE");
    set_mode(path.parent().unwrap(), 0o755);
    let detail = &store.reports()[0].findings[0].detail;
    assert_eq!(
        detail,
        "other users can access this session (file 0644, folder 0755)"
    );
    // Elsewhere modes do not matter.
    let copy = store.0.path().join("copy");
    fs::create_dir(&copy).unwrap();
    fs::rename(store.root().join("-home-ada-almanac"), copy.join("almanac")).unwrap();
    let mut codes = 0;
    verify_folder(
        &crate::disk(),
        &copy,
        &VerifyOptions::new(),
        &mut |report| {
            codes += report.unwrap().findings.len();
        },
    )
    .unwrap();
    assert_eq!(codes, 0);
}

#[test]
fn many_sessions_are_reported_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = fs::read(fixtures().join("findings/clean.jsonl")).unwrap();
    for number in 0..600 {
        fs::write(folder.path().join(format!("{number:03}.jsonl")), &bytes).unwrap();
    }
    let mut names = Vec::new();
    let mut each = |report: Result<Report, _>| names.push(report.unwrap().path);
    verify_folder(
        &crate::disk(),
        folder.path(),
        &VerifyOptions::new(),
        &mut each,
    )
    .unwrap();
    assert_eq!(names.len(), 600);
    assert!(names.is_sorted());
}

#[test]
fn copies_of_programs_that_sync_folders_are_reported_beside_the_session() {
    let store = Store::new();
    let bytes = fixture_of(ID, "/home/ada/almanac");
    let session = store.session("-home-ada-almanac", &bytes, Duration::ZERO);
    for name in [" (1)", "-LAPTOP", ".sync-conflict-20260814-101112-ABCDEFG"] {
        let copy = session.with_file_name(format!("{ID}{name}.jsonl"));
        assert!(!store.codes().contains("F-COPY"), "{name}");
        fs::write(&copy, [&bytes[..], b"\n"].concat()).unwrap();
        assert_eq!(store.codes().matches("F-COPY").count(), 2, "{name}");
        // Without the session two copies are copies of each other.
        let other = session.with_file_name("other.jsonl");
        fs::rename(&session, &other).unwrap();
        assert_eq!(store.codes().matches("F-COPY").count(), 2, "{name}");
        fs::rename(&other, &session).unwrap();
        fs::remove_file(&copy).unwrap();
    }
    // Another session under a name that is not an id.
    let other = fixture_of("6c1d8a52-0b7e-4c3f-9d21-6a4e8f7b1c20", "/home/ada/almanac");
    fs::write(session.with_file_name("notes.jsonl"), other).unwrap();
    assert!(!store.codes().contains("F-COPY"));
}

#[test]
fn a_session_belongs_to_the_folder_that_it_was_moved_to() {
    let store = Store::new();
    let bytes = fixture_of(ID, "/home/ada/old");
    store.session("-home-ada-almanac", &bytes, Duration::ZERO);
    assert!(store.codes().contains("F-DIR"));
    let moved = |cwd: &str| {
        let line = format!(
            "{{\"type\":\"relocated\",\"relocatedCwd\":\"{cwd}\",\"sessionId\":\"{ID}\"}}\n"
        );
        store.session(
            "-home-ada-almanac",
            &[&bytes[..], line.as_bytes()].concat(),
            Duration::ZERO,
        );
        store.codes()
    };
    assert!(!moved("/home/ada/almanac").contains("F-DIR"));
    assert!(moved("/home/ada/other").contains("F-DIR"));
}

/// A session with one message in a folder.
fn fixture_of(id: &str, cwd: &str) -> Vec<u8> {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"{id}\",\"parentUuid\":null,\"isSidechain\":false,\"sessionId\":\"{id}\",\"cwd\":\"{cwd}\",\"timestamp\":\"2026-02-03T04:05:06.007Z\",\"message\":{{\"role\":\"user\",\"content\":\"When is the next eclipse?\"}}}}\n"
    )
    .into_bytes()
}

#[test]
fn secrets_of_results_that_are_stored_beside_a_session_are_reported() {
    let store = Store::new();
    let path = store.session("-home-ada-almanac", &clean(), DAY);
    let results = path.with_extension("").join("tool-results");
    fs::create_dir_all(&results).unwrap();
    let text = "one\nDB_PASSWORD=\"my long phrase\"\nAPI_SECRET=Zx81k3Lm9q\nDB_PASSWORD=Yx72k4\n";
    fs::write(results.join("b1.txt"), text).unwrap();
    fs::write(results.join("b2.txt"), "nothing\n").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("/dev/zero", results.join("b3.txt")).unwrap();
    let reports = store.reports();
    let findings = reports[0].findings.iter();
    let details: Vec<String> = findings
        .filter(|finding| finding.code.as_str() == "Z-SECRET")
        .map(|finding| finding.detail.to_string())
        .collect();
    assert_eq!(
        details,
        [
            "password in tool-results/b1.txt, line 2, 2 times",
            "secret in tool-results/b1.txt, line 3"
        ]
    );
}
