//! Sessions that are gathered from other files, because their own is missing or stopped growing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use tempfile::TempDir;
use transcript_format::ids::Uuid;
use transcript_verify::salvage::Salvage;
use transcript_verify::{Report, Verdict, VerifyOptions, verify, verify_source};

use crate::fixtures;

/// 2026-03-09T14:02:00Z, the time of all files.
const WRITTEN: Duration = Duration::from_secs(1_773_064_920);

/// A copy of a fixture, and the path of its session.
fn copy(name: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    copy_folder(&fixtures().join("salvage").join(name), folder.path());
    let entries = fs::read_dir(folder.path()).unwrap();
    let path = entries.map(|entry| entry.unwrap().path()).next().unwrap();
    (folder, path.with_extension("jsonl"))
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).unwrap();
            let file = File::options().append(true).open(&to).unwrap();
            file.set_modified(UNIX_EPOCH + WRITTEN).unwrap();
        }
    }
}

fn salvage(path: &Path) -> Option<Salvage> {
    let mut last = 0_u128;
    let mut new_id = || {
        last += 1;
        Uuid(0xFEED_0000_0000_4000_8000_0000_0000_0000 + last)
    };
    Salvage::new(
        &crate::disk(),
        path,
        "2026-11-22T12:00:00.000Z",
        &mut new_id,
    )
    .unwrap()
}

fn text(salvage: &Salvage) -> String {
    let mut bytes = vec![0; salvage.salvaged().len() as usize];
    salvage.salvaged().read_at(0, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn details(salvage: &Salvage) -> Vec<String> {
    let actions = salvage.actions().iter();
    let details = actions.map(|action| {
        assert_eq!(action.line, None);
        let (name, code) = (action.action.name(), action.code.as_str());
        format!("{name} {code} {}", action.detail)
    });
    details.collect()
}

fn value(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

fn codes(report: &Report) -> Vec<&str> {
    let codes = report.findings.iter().map(|finding| finding.code.as_str());
    codes.collect()
}

/// Returns the line without what a salvage adds.
fn without_note(line: &str) -> Value {
    let mut line = value(line);
    let note = line.as_object_mut().unwrap().remove("transcriptEngine");
    let was = note.and_then(|mut note| Some(note["was"].as_object_mut()?.clone()));
    line.as_object_mut()
        .unwrap()
        .extend(was.into_iter().flatten());
    line
}

#[test]
fn the_other_files_of_a_missing_session_are_gathered() {
    let (_folder, path) = copy("absent");
    let salvage = salvage(&path).unwrap();
    assert!(salvage.is_absent());
    let expected = [
        "salvage W-ABSENT subagents/agent-a61.jsonl: 6 entries, a conversation of the session",
        "salvage W-ABSENT subagents/agent-aprompt_suggestion-0c1d2e.jsonl: 2 entries, a conversation of the session",
        "salvage W-ABSENT subagents/agent-b02.jsonl: 2 entries, a conversation of the session",
        "salvage W-ABSENT tool-results/b7kq2.txt: the whole text of a result",
        "salvage W-ABSENT tool-results/toolu_01Tide.txt: the whole text of a result",
        "answer W-ABSENT tool-results/toolu_03Spring.txt: the result of an open call",
        "salvage W-ABSENT tool-results/unknown.txt: only named, as nothing says what it is of",
    ];
    assert_eq!(details(&salvage), expected);

    let text = text(&salvage);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 15);
    let marker = &value(lines[0])["salvaged"];
    assert_eq!(marker["session"], "absent");
    assert_eq!(marker["at"], "2026-11-22T12:00:00.000Z");
    let file =
        json!({"file": "subagents/agent-a61.jsonl", "entries": 6, "toolUseId": "toolu_00Agent"});
    assert_eq!(marker["files"][0], file);
    let file = json!({"file": "tool-results/unknown.txt", "bytes": 15});
    assert_eq!(marker["files"][6], file);

    // The subagents, line by line, the one with the newest entry last.
    let own = path.with_extension("");
    let mut at = 1;
    for agent in ["a61", "aprompt_suggestion-0c1d2e", "b02"] {
        let file = format!("subagents/agent-{agent}.jsonl");
        let original = fs::read_to_string(own.join(&file)).unwrap();
        for (number, line) in original.lines().enumerate() {
            let note = &value(lines[at])["transcriptEngine"];
            assert_eq!(note["v"], 1);
            assert_eq!(note["salvaged"], json!({"file": file, "line": number + 1}));
            assert_eq!(without_note(lines[at]), value(line));
            // A client does not open a session that has sidechains alone.
            assert_eq!(value(lines[at])["isSidechain"], false);
            // Byte for byte, but for the parent that is lost.
            let start = line.strip_suffix('}').unwrap();
            assert_eq!(lines[at].starts_with(start), note.get("was").is_none());
            at += 1;
        }
    }
    let orphan = value(lines[7]);
    assert_eq!(orphan["parentUuid"], Value::Null);
    assert_eq!(
        orphan["transcriptEngine"]["was"]["parentUuid"],
        "00000099-5d1f-4a0e-8b7c-4e529a417c0b"
    );

    // The result of the open call has the text of its file, and nothing else was made.
    let made = value(lines[11]);
    assert_eq!(
        made["message"]["content"][0]["tool_use_id"],
        "toolu_03Spring"
    );
    assert_eq!(made["message"]["content"][0]["content"], "2026-03-20\n");
    assert_eq!(made["parentUuid"], value(lines[10])["uuid"]);
    assert_eq!(made["isSidechain"], false);
    assert_eq!(made["agentId"], "b02");
    assert_eq!(made["timestamp"], "2026-03-09T14:02:00.000Z");
    assert_eq!(made["transcriptEngine"]["made"], "salvaged-result");
    let result = json!({"file": "tool-results/b7kq2.txt", "toolUseId": "toolu_02Moon", "text": "full on the 3rd\n"});
    assert_eq!(value(lines[12])["salvaged"], result);
    assert_eq!(value(lines[13])["salvaged"]["toolUseId"], "toolu_01Tide");
    let title = value(lines[14]);
    assert_eq!(
        title["customTitle"],
        "Session 2b7d9c14, salvaged from 3 subagents"
    );
    assert_eq!(title["sessionId"], "2b7d9c14-6e3f-4a85-9d02-c8f1b5a7e360");

    let report = verify_source(salvage.salvaged(), &VerifyOptions::new()).unwrap();
    assert_eq!(codes(&report), [""; 0]);
    assert_eq!(report.verdict(), Verdict::Clean);
    assert_eq!(report.measure.vendor, report.measure.conversation);
    assert!(report.lint.vendor && report.lint.recover);

    // In its own place it is a session that nothing is missing of.
    fs::write(&path, &text).unwrap();
    assert_eq!(
        codes(&verify(&crate::disk(), &path, &VerifyOptions::new()).unwrap()),
        [""; 0]
    );
    assert!(self::salvage(&path).is_none());
}

#[test]
fn a_session_that_stopped_is_continued_with_what_its_files_have() {
    let (folder, path) = copy("stalled");
    assert_eq!(
        codes(&verify(&crate::disk(), &path, &VerifyOptions::new()).unwrap()),
        ["W-STALLED", "S-ORPHAN", "P-NORESULT"]
    );
    let salvage = salvage(&path).unwrap();
    assert!(!salvage.is_absent());
    let expected = [
        "salvage W-STALLED the session: 3 entries, as they are",
        "salvage W-STALLED subagents/agent-c33.jsonl: 2 entries",
        "answer W-STALLED tool-results/toolu_04Tides.txt: the result of an open call",
    ];
    assert_eq!(details(&salvage), expected);
    assert_eq!(salvage.before().shown.conversation, 2);
    assert_eq!(salvage.after().shown.conversation, 3);

    let original = fs::read_to_string(&path).unwrap();
    let text = text(&salvage);
    assert!(text.starts_with(&original));
    let lines: Vec<&str> = text.lines().skip(3).collect();
    let result = value(lines[0]);
    assert_eq!(
        result["message"]["content"][0]["content"],
        "2026-03-20 04:40\n"
    );
    assert_eq!(result["isSidechain"], false);
    assert_eq!(value(lines[1])["salvaged"]["session"], "stalled");
    assert_eq!(value(lines[2])["isSidechain"], true);
    assert_eq!(value(lines[4])["customTitle"], "Tides (salvaged)");
    assert_eq!(lines.len(), 5);

    let report = verify_source(salvage.salvaged(), &VerifyOptions::new()).unwrap();
    assert_eq!(codes(&report), ["S-MIXED"]);
    assert_eq!(report.verdict(), Verdict::Noted);

    // A last line without a newline, and one that was cut, stay as they are.
    for cut in [1, 40] {
        fs::write(&path, &original[..original.len() - cut]).unwrap();
        let file = File::options().append(true).open(&path).unwrap();
        file.set_modified(UNIX_EPOCH + WRITTEN).unwrap();
        let salvage = self::salvage(&path).unwrap();
        let start = &original[..original.len() - cut];
        let text = self::text(&salvage);
        assert!(text.strip_prefix(start).unwrap().starts_with('\n'), "{cut}");
        let is_answered = details(&salvage)
            .iter()
            .any(|detail| detail.starts_with("answer"));
        assert_eq!(is_answered, cut == 1);
    }
    drop(folder);
}

#[test]
fn a_current_session_and_one_without_other_files_have_nothing_to_salvage() {
    let (_folder, path) = copy("current");
    assert!(salvage(&path).is_none());
    let (_folder, path) = copy("stalled");
    fs::remove_dir_all(path.with_extension("")).unwrap();
    assert!(salvage(&path).is_none());
    fs::remove_file(&path).unwrap();
    assert!(salvage(&path).is_none());
    // A file that nothing names is not a session.
    let (_folder, path) = copy("absent");
    fs::remove_dir_all(path.with_extension("").join("subagents")).unwrap();
    assert!(salvage(&path).is_none());
}

#[test]
fn an_entry_that_several_files_have_is_gathered_once() {
    let (_folder, path) = copy("absent");
    let agents = path.with_extension("").join("subagents");
    let first = fs::read_to_string(agents.join("agent-a61.jsonl")).unwrap();
    let second = fs::read_to_string(agents.join("agent-b02.jsonl")).unwrap();
    // A subagent that was forked from another one starts with its entries.
    fs::write(agents.join("agent-b02.jsonl"), first + &second).unwrap();
    let salvage = salvage(&path).unwrap();
    let detail = "salvage W-ABSENT subagents/agent-b02.jsonl: 2 entries, a conversation of the session, 6 more are there already";
    assert!(
        details(&salvage).iter().any(|other| other == detail),
        "{:?}",
        details(&salvage)
    );
    let report = verify_source(salvage.salvaged(), &VerifyOptions::new()).unwrap();
    assert_eq!(codes(&report), [""; 0]);
}

#[test]
fn damaged_files_are_gathered_as_far_as_they_can_be_read() {
    let (_folder, path) = copy("absent");
    let agents = path.with_extension("").join("subagents");
    let whole = fs::read(agents.join("agent-a61.jsonl")).unwrap();
    for cut in (0..whole.len()).step_by(97) {
        fs::write(agents.join("agent-a61.jsonl"), &whole[..cut]).unwrap();
        let salvage = salvage(&path).unwrap();
        let text = text(&salvage);
        assert!(
            text.lines()
                .all(|line| serde_json::from_str::<Value>(line).is_ok())
        );
        let entries = text
            .lines()
            .filter(|line| line.contains("agent-a61.jsonl\",\"line\""));
        let whole_lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        assert!(entries.count() >= whole_lines);
    }
}
