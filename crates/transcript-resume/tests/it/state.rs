//! What a session was set to, and what it used.

use std::io::Write;

use transcript_reader::{Bodies, Index, Source};
use transcript_resume::api::{Options, Request};
use transcript_resume::{Policy, State, Tree};

fn request(lines: &[&str]) -> Request {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "{}", lines.join("\n")).unwrap();
    let source = Source::open(file.path()).unwrap();
    let index = Index::load(&source).unwrap();
    let tree = Tree::new(&index, Policy::Vendor);
    Options::new()
        .request(&tree, &mut Bodies::new(&source))
        .unwrap()
}

fn state(lines: &[&str]) -> State {
    request(lines).state
}

const PROMPT: &str = r#"{"type":"user","uuid":"u1","parentUuid":null,"timestamp":"2026-11-01T10:00:00Z","cwd":"/w","gitBranch":"main","version":"2.1.1","permissionMode":"default","message":{"role":"user","content":"hi"}}"#;
const ANSWER: &str = r#"{"type":"assistant","uuid":"a1","parentUuid":"u1","timestamp":"2026-11-01T10:00:01Z","cwd":"/w/sub","gitBranch":"fix","version":"2.1.2","message":{"id":"m1","model":"claude-x","role":"assistant","content":[{"type":"text","text":"one"}],"usage":{"input_tokens":10,"output_tokens":1}}}"#;
const MORE_OF_IT: &str = r#"{"type":"assistant","uuid":"a2","parentUuid":"a1","timestamp":"2026-11-01T10:00:02Z","message":{"id":"m1","model":"claude-x","role":"assistant","content":[{"type":"text","text":"two"}],"usage":{"input_tokens":10,"output_tokens":25,"cache_read_input_tokens":0}}}"#;
const SYNTHETIC: &str = r#"{"type":"assistant","uuid":"a3","parentUuid":"a2","timestamp":"2026-11-01T10:00:03Z","message":{"id":"m2","model":"<synthetic>","role":"assistant","content":[{"type":"text","text":"No response requested."}],"usage":{"input_tokens":0,"output_tokens":0}}}"#;

#[test]
fn the_last_entry_of_the_path_that_says_it_counts() {
    let state = state(&[PROMPT, ANSWER, MORE_OF_IT, SYNTHETIC]);
    let said = |field: &Option<String>| field.clone().unwrap_or_default();
    assert_eq!(said(&state.cwd), "/w/sub");
    assert_eq!(said(&state.git_branch), "fix");
    assert_eq!(said(&state.version), "2.1.2");
    assert_eq!(said(&state.model), "claude-x");
    assert_eq!(said(&state.permission_mode), "default");
    assert_eq!((state.title, state.tag), (None, None));
}

#[test]
fn an_answer_counts_once_with_the_most_it_says_and_synthetic_ones_never() {
    let usage = request(&[PROMPT, ANSWER, MORE_OF_IT, SYNTHETIC]).usage;
    assert_eq!(usage.len(), 1);
    assert_eq!(usage[0].model.as_deref(), Some("claude-x"));
    assert_eq!(usage[0].answers, 1);
    assert_eq!(usage[0].input_tokens, Some(10));
    assert_eq!(usage[0].output_tokens, Some(25));
    assert_eq!(usage[0].cache_read_input_tokens, Some(0));
    assert_eq!(usage[0].cache_creation_input_tokens, None, "nobody said 0");
}

#[test]
fn titles_tags_and_modes_are_those_of_the_last_line_of_each_kind() {
    let made = r#"{"type":"ai-title","aiTitle":"Made"}"#;
    let given = r#"{"type":"custom-title","customTitle":"Given"}"#;
    let cleared = r#"{"type":"custom-title","customTitle":""}"#;
    assert_eq!(state(&[PROMPT, given, made]).title.unwrap(), "Given");
    assert_eq!(
        state(&[PROMPT, given, made, cleared]).title.unwrap(),
        "Made"
    );
    let (tag, untag) = (r#"{"type":"tag","tag":"t"}"#, r#"{"type":"tag","tag":""}"#);
    assert_eq!(state(&[PROMPT, tag]).tag.unwrap(), "t");
    assert_eq!(state(&[PROMPT, tag, untag]).tag, None);
    let mode = r#"{"type":"permission-mode","permissionMode":"plan"}"#;
    assert_eq!(state(&[PROMPT, mode]).permission_mode.unwrap(), "plan");
    assert_eq!(state(&[mode, PROMPT]).permission_mode.unwrap(), "default");
}

#[test]
fn what_stands_beside_the_path_does_not_count() {
    let branch = PROMPT
        .replace("u1", "u0")
        .replace("/w\"", "/elsewhere\"")
        .replace("default", "plan");
    let state = state(&[&branch, PROMPT, ANSWER]);
    assert_eq!(state.cwd.unwrap(), "/w/sub");
    assert_eq!(state.permission_mode.unwrap(), "default");
}
