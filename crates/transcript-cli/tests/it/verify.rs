//! `transcript verify`: what people see, and the exit codes.

use std::fs;

use serde_json::Value;

use crate::{command, fixture, sessions, stderr, stdout, transcript};

fn path(name: &str) -> String {
    let path = sessions().join("..").join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_clean_session_exits_with_0_and_a_lossy_one_with_3() {
    let output = transcript(&["verify", &fixture("linear.jsonl")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).ends_with("linear.jsonl: clean, the client sees all 7 messages\n"));
    let output = transcript(&["verify", &fixture("rewind.jsonl")]);
    assert_eq!(output.status.code(), Some(1));
    let output = transcript(&["verify", &path("pains/03-dangling.jsonl")]);
    assert_eq!(output.status.code(), Some(3));
    let text = stdout(&output);
    let expected = "03-dangling.jsonl: lossy, the client sees 2 of 4 messages, transcript 4\n  \
        G-DANGLING  line 3 at byte 1156, ";
    assert!(text.contains(expected), "{text}");
    assert!(
        text.contains("\n    The client shows only what is below"),
        "{text}"
    );
    let output = transcript(&["verify", "nowhere.jsonl"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_folder_has_a_line_for_each_session_and_the_findings_of_damaged_ones_below() {
    let output = transcript(&["verify", &path("findings")]);
    assert_eq!(output.status.code(), Some(3));
    let text = stdout(&output);
    assert!(
        text.starts_with("VERDICT           SEEN    LINES  SESSION\n"),
        "{text}"
    );
    assert!(
        text.contains("\nclean           4 of 4        4  clean.jsonl\n"),
        "{text}"
    );
    assert!(
        text.contains("\nlossy           1 of 4        4  control.jsonl  T-CONTROL\n"),
        "{text}"
    );
    assert!(
        text.contains("\n\ncontrol.jsonl: lossy, the client sees 1 of 4 messages"),
        "{text}"
    );
}

#[test]
fn standard_input_and_recorded_requests_can_be_verified() {
    let file = fs::File::open(fixture("linear.jsonl")).unwrap();
    let mut command = command(&["verify", "--json", "--requests", "-"]);
    let output = command.stdin(file).output().unwrap();
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["path"], "-");
    assert_eq!(report["verdict"], "clean");
    assert_eq!(report["requests"]["recorded"], 0);
}

#[test]
fn nothing_of_a_hostile_file_reaches_the_terminal() {
    let output = transcript(&["verify", &path("hostile")]);
    let text = stdout(&output);
    assert!(
        !text.contains(|c: char| c.is_control() && c != '\n'),
        "{text:?}"
    );
}
