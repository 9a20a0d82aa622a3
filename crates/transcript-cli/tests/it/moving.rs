//! `transcript move` and `transcript merge`.

use std::fs;

use crate::{fixture, stderr, stdout, transcript};

const ID: &str = "1999463e-ee08-4b08-99d5-2d9a36fd8293";

#[test]
fn a_moved_session_continues_in_the_new_folder() {
    let place = tempfile::tempdir().unwrap();
    let place = fs::canonicalize(place.path()).unwrap();
    let (root, old, new) = (
        place.join("projects"),
        place.join("old"),
        place.join("it's new"),
    );
    let key = |path: &std::path::Path| transcript_engine::Store::new(&root).project(path);
    let path = key(&old).join(format!("{ID}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::create_dir(&new).unwrap();
    let line = serde_json::json!({"type": "user", "uuid": ID, "parentUuid": null, "sessionId": ID,
        "cwd": old, "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {"role": "user", "content": "Which years have a leap day?"}});
    fs::write(&path, format!("{line}\n")).unwrap();
    let run = |arguments: &[&str]| {
        let root = ["--root", root.to_str().unwrap()];
        transcript(&[arguments, &root].concat())
    };
    let (from, to) = (old.to_str().unwrap(), new.to_str().unwrap());
    let dry = run(&["move", from, to, "--dry-run"]);
    assert_eq!(dry.status.code(), Some(0), "{}", stderr(&dry));
    assert!(path.exists() && stderr(&dry).contains("1 session would move"));
    let moved = run(&["move", from, to]);
    assert_eq!(moved.status.code(), Some(0), "{}", stderr(&moved));
    assert!(stdout(&moved).starts_with(ID) && !path.exists());
    let resume = run(&["resume", ID]);
    let quoted = to.replace('\'', r"'\''");
    let expected = format!("cd '{quoted}' && claude --resume {ID}");
    assert!(stdout(&resume).contains(&expected), "{}", stdout(&resume));
    let list = run(&["list", "--project", to, "--json"]);
    assert!(
        stdout(&list).contains(&format!("\"cwd\":\"{to}\"")),
        "{}",
        stdout(&list)
    );
    // Everything else names the new folder as well, and so does what is made of the session.
    let to_path = key(&new).join(format!("{ID}.jsonl"));
    let replay = run(&["replay", ID]);
    assert!(stdout(&replay).contains(&expected), "{}", stdout(&replay));
    let verified = run(&["verify", key(&new).to_str().unwrap()]);
    assert!(
        !stdout(&verified).contains("F-DIR"),
        "{}",
        stdout(&verified)
    );
    let forked = run(&["fork", ID]);
    let fork = stdout(&forked).trim().to_owned();
    let replay = run(&["replay", &fork]);
    let expected = format!("cd '{quoted}' && claude --resume {fork}");
    assert!(stdout(&replay).contains(&expected), "{}", stdout(&replay));
    let list = stdout(&run(&["list", "--json"]));
    assert!(!list.contains(&format!("\"cwd\":\"{from}\"")), "{list}");
    fs::remove_file(to_path.with_file_name(format!("{fork}.jsonl"))).unwrap();

    // Taken at the old place: refused, exit code 1.
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "{}\n").unwrap();
    let refused = run(&["move", from, to, "--undo"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("exists"), "{}", stderr(&refused));
    fs::remove_file(&path).unwrap();
    assert_eq!(run(&["move", from, to, "--undo"]).status.code(), Some(0));
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{line}\n"));
    assert_eq!(run(&["move", from, from]).status.code(), Some(2));
}

#[test]
fn a_merged_file_is_new_and_private() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("merged.jsonl");
    let session = fixture("linear.jsonl");
    let arguments = ["merge", &session, &session, "--out", out.to_str().unwrap()];
    let merged = transcript(&arguments);
    assert_eq!(merged.status.code(), Some(0), "{}", stderr(&merged));
    assert_eq!(fs::read(&out).unwrap(), fs::read(&session).unwrap());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            fs::metadata(&out).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    let again = transcript(&arguments);
    assert_eq!(again.status.code(), Some(2), "{}", stderr(&again));
}
