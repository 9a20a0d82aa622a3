//! System prompts in sections.

use serde_json::{Value, json};
use transcript_messages::TokenEstimate;
use transcript_messages::builder::{GitContext, PromptFingerprint, RequestSettings, SystemPrompt};

/// Each section has 10 tokens.
fn section(letter: char) -> String {
    String::from(letter).repeat(40)
}

fn all() -> SystemPrompt {
    let names = ["notes", "tools", "files", "git", "memory", "model", "base"];
    names.iter().fold(SystemPrompt::new(), |prompt, name| {
        prompt.section(name, &section(name.chars().next_back().unwrap()))
    })
}

fn sent(prompt: &SystemPrompt) -> Vec<String> {
    let sections = prompt.assemble().sections;
    sections.into_iter().map(|section| section.name).collect()
}

fn omitted(prompt: &SystemPrompt) -> Vec<(String, u64)> {
    let sections = prompt.assemble().omitted.into_iter();
    sections
        .map(|section| (section.name, section.tokens))
        .collect()
}

#[test]
fn sections_are_sent_in_the_fixed_order_and_others_last() {
    let order = ["base", "model", "memory", "git", "files", "tools", "notes"];
    assert_eq!(sent(&all()), order);
    let two = SystemPrompt::new().section("z", "1").section("a", "2");
    assert_eq!(sent(&two), ["z", "a"]);
}

#[test]
fn a_section_that_is_added_again_replaces_the_first() {
    let prompt = SystemPrompt::new()
        .section("z", "old")
        .section("a", "2")
        .section("z", "new");
    assert_eq!(prompt.separator(" | ").assemble().text, "new | 2");
}

#[test]
fn a_nul_becomes_a_replacement_character() {
    let prompt = SystemPrompt::new().section("a\0", "b\0").section("c", "d");
    let prompt = prompt.separator("\0").assemble();
    assert_eq!(prompt.text, "b\u{fffd}\u{fffd}d");
    assert_eq!(prompt.sections[0].name, "a\u{fffd}");
}

#[test]
fn blank_sections_are_not_sent_and_have_no_separator() {
    let prompt = SystemPrompt::new()
        .section("base", "b")
        .section("git", " \n");
    let prompt = prompt.section("tools", "t").assemble();
    assert_eq!(prompt.text, "b\n\nt");
    assert_eq!(prompt.omitted, []);
    let empty = SystemPrompt::new().limit(0).assemble();
    assert_eq!(
        (empty.text.as_str(), empty.tokens, empty.is_within_limit),
        ("", 0, true)
    );
}

#[test]
fn the_lowest_priorities_are_omitted_first_and_reported() {
    // Seven sections of 10 tokens, and six separators of one.
    assert_eq!(all().assemble().tokens, 76);
    assert_eq!(omitted(&all().limit(76)), []);
    assert_eq!(omitted(&all().limit(75)), [("files".to_owned(), 10)]);
    let order = ["files", "git", "notes", "memory", "tools", "model"];
    for count in 1..=order.len() {
        let limit = 76 - 11 * count as u64;
        let prompt = all().limit(limit);
        let names: Vec<String> = omitted(&prompt).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), count);
        assert!(
            order[..count]
                .iter()
                .all(|name| names.iter().any(|omitted| omitted == name))
        );
        let prompt = prompt.assemble();
        assert_eq!(prompt.tokens, limit);
        assert!(TokenEstimate::of_text(&prompt.text).tokens <= limit);
        assert!(prompt.is_within_limit);
    }
}

#[test]
fn last_section_of_equal_priority_is_omitted_first() {
    let prompt = SystemPrompt::new()
        .section("a", &section('a'))
        .section("b", &section('b'));
    assert_eq!(omitted(&prompt.clone().limit(12)), [("b".to_owned(), 10)]);
    let prompt = prompt.section_with_priority("a", &section('a'), 1);
    assert_eq!(omitted(&prompt.clone().limit(12)), [("a".to_owned(), 10)]);
    let nothing = prompt.limit(0).assemble();
    assert_eq!((nothing.tokens, nothing.is_within_limit), (0, true));
}

#[test]
fn a_section_that_is_never_omitted_may_exceed_the_limit() {
    let prompt = all().limit(9).assemble();
    assert_eq!(prompt.text, section('e'));
    assert_eq!((prompt.tokens, prompt.is_within_limit), (10, false));
    assert_eq!(prompt.omitted.len(), 6);
}

#[test]
fn the_settings_of_a_request_take_the_text() {
    let prompt = SystemPrompt::new().section("base", "say \"x\"").assemble();
    let body = RequestSettings::new("m", 1).system(&prompt).body(&[]);
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["system"], "say \"x\"");
}

#[test]
fn a_fingerprint_has_the_hashes_of_what_is_sent_and_survives_json() {
    let prompt = SystemPrompt::new()
        .section("base", "abc")
        .section("git", &section('g'));
    let fingerprint = prompt.limit(5).fingerprint();
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let json = json!({"hash": abc, "sections": [{"name": "base", "hash": abc, "tokens": 1}]});
    assert_eq!(serde_json::to_value(&fingerprint).unwrap(), json);
    assert_eq!(
        serde_json::from_value::<PromptFingerprint>(json).unwrap(),
        fingerprint
    );
}

#[test]
fn changes_name_the_sections() {
    let old = SystemPrompt::new()
        .section("base", "1")
        .section("memory", "2")
        .section("x", "3");
    let new = SystemPrompt::new()
        .section("base", "1")
        .section("memory", "two")
        .section("git", "4");
    let changes = PromptFingerprint::changes(&old.fingerprint(), &new.fingerprint());
    assert_eq!(changes.added, ["git"]);
    assert_eq!(changes.removed, ["x"]);
    assert_eq!(changes.changed, ["memory"]);
    assert!(!changes.is_rearranged && !changes.is_empty());

    let same = PromptFingerprint::changes(&old.fingerprint(), &old.fingerprint());
    assert!(same.is_empty());
    let apart = old.clone().separator("\n");
    let apart = PromptFingerprint::changes(&old.fingerprint(), &apart.fingerprint());
    assert!(apart.is_rearranged && apart.changed.is_empty() && !apart.is_empty());
}

#[test]
fn a_git_context_says_only_what_is_known() {
    let mut git = GitContext::new();
    assert_eq!(git.text(), "");
    git.status = Some(String::new());
    assert_eq!(git.text(), "status: clean");
    git.branch = Some("main".to_owned());
    git.commits = vec!["a one".to_owned(), "b two".to_owned()];
    git.diff = Some("+x\n".to_owned());
    assert_eq!(
        git.text(),
        "branch: main\nstatus: clean\ncommits:\na one\nb two\ndiff:\n+x"
    );
}
