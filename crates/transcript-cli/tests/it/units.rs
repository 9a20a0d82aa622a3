//! One number reads the same wherever a person reads it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::{stderr, stdout, transcript};

const ID: &str = "0a5e1b2c-1111-4222-8333-444455556666";
/// Two millions, by one rounding of several.
const BYTES: usize = 1_999_999;

/// A session of the given length, with a result of the given length that took 7,499.6 seconds.
fn session(root: &Path) -> String {
    let entry = |uuid: &str, parent: Option<&str>, kind: &str, at: &str, content: Value| {
        let line = json!({"type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false,
            "timestamp": at, "sessionId": ID, "cwd": "/work/maps", "version": "2.1.240",
            "message": {"role": kind, "id": uuid, "model": "m", "content": content}});
        format!("{line}\n")
    };
    let (first, last) = ("2026-03-01T10:00:00.000Z", "2026-03-01T12:04:59.600Z");
    let call =
        json!([{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}]);
    let text = json!([{"type": "tool_result", "tool_use_id": "t1", "content": "x".repeat(BYTES)}]);
    let lines = [
        entry("u1", None, "user", first, json!("Build it")),
        entry("a2", Some("u1"), "assistant", first, call),
        entry("u3", Some("a2"), "user", last, text),
    ];
    let path = root.join("projects/-work-maps").join(format!("{ID}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, lines.concat()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_size_and_a_duration_read_the_same_in_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = session(folder.path());
    let [root, archive, other] = ["projects", "archive", "other/projects"].map(|name| {
        let path = folder.path().join(name);
        path.to_str().unwrap().to_owned()
    });
    let page = folder.path().join("page.html");
    let page = page.to_str().unwrap();
    let keep: [&[&str]; 6] = [
        &["list", "--root", &root],
        &["replay", &path],
        &["export", "--text", "-", &path],
        &["keep", "--root", &root, "--archive", &archive],
        &["verify", "--archive", &archive],
        &["restore", "--all", "--archive", &archive, "--to", &other],
    ];
    for arguments in keep {
        let output = transcript(arguments);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{arguments:?}: {}",
            stderr(&output)
        );
        let text = stdout(&output) + &stderr(&output);
        assert!(text.contains("2.0 MB"), "{arguments:?}: {text}");
    }
    assert!(
        transcript(&["export", "--html", page, &path])
            .status
            .success()
    );
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("2.0 MB"));
    for arguments in [["replay", &path], ["tail", &path]] {
        let text = stdout(&transcript(&arguments));
        assert!(text.contains("2 h 5 min"), "{arguments:?}: {text}");
    }
}

/// Whatever is worded elsewhere is rounded in another way sooner or later.
#[test]
fn sizes_and_durations_are_worded_in_one_place() {
    // Texts of clients, limits of the API, and imitations of them.
    let others = [
        "format/src/units.rs",
        "reminders/files.rs",
        "transcript-messages",
        "transcript-testkit",
    ];
    let forms = [
        " KB\"",
        " MB\"",
        " GB\"",
        "} KB",
        "} MB",
        "} GB",
        "} min ",
        "} h {",
        "\"KB\"",
        "\"MB\"",
        "_bytes}",
        "{elapsed}",
        "{eta}",
    ];
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_str().unwrap().replace('\\', "/");
            if path.is_dir() {
                let is_other = ["/tests", "/benches", "/examples"];
                let is_other = is_other.iter().any(|other| name.ends_with(other));
                folders.extend((!is_other).then_some(path));
            } else if name.ends_with(".rs") && !others.iter().any(|other| name.contains(other)) {
                files += 1;
                let text = fs::read_to_string(&path).unwrap();
                // Tests in a file are its last part.
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                let lines = code
                    .lines()
                    .filter(|line| !line.trim_start().starts_with("//"));
                let lines = lines.filter(|line| forms.iter().any(|form| line.contains(form)));
                found.extend(lines.map(|line| format!("{name}: {line}")));
            }
        }
    }
    assert!(files > 300, "{files}");
    assert!(
        found.is_empty(),
        "use transcript_format::units:\n{}",
        found.join("\n")
    );
}
