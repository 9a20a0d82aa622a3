//! Real conversations, handed over to each client: what the client sends next is the conversation, but for what the report lists.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use transcript_import::handover::{
    Conversion, Items, LossReport, Options, SourceItem, Target, items_of_trajectory,
    items_of_updates,
};
use transcript_import::{Agent, Policy, Store, dialect};
use transcript_storage::MemoryDisk;

use super::expected::difference;
use super::given::{dot, items_of, list, reference, sessions, shared};
use super::{claude_model, codex_model};

pub(super) const CWD: &str = "/home/dev/proj";

/// 2026-11-28T16:40:00Z
pub(super) const NOW: i64 = 1_795_884_000_000;

pub(super) fn options() -> Options {
    Options {
        cwd: CWD.to_owned(),
        title: Some("A title: with \"quotes\"".to_owned()),
        seed: "source".to_owned(),
        start: NOW,
        ..Options::default()
    }
}

/// Hands items over, and returns the report and the items that the client sends next.
pub(super) fn hand_over(items: &dyn Items, target: Target) -> (LossReport, Vec<Value>) {
    let conversion = Conversion::plan(items, target, &options()).expect("the items are in memory");
    let mut session = Vec::new();
    conversion.write_to(&mut session).expect("it is in memory");
    let session = String::from_utf8(session).expect("it is text");
    let path = conversion.files().main.to_str().expect("it is text");
    let report = conversion.report().clone();
    if report.carried == 0 {
        return (report, Vec::new());
    }
    let sent = match target {
        Target::ClaudeCode => {
            let problems = claude_model::problems(&session);
            assert_eq!(problems, "", "a provider refuses it: {session}");
            claude_model::open(path, &session, CWD).expect("it is found")
        }
        Target::Codex => {
            let opened = codex_model::open(path, &session);
            assert_eq!(opened.refusal, None);
            assert_eq!(opened.model, "mock-model");
            let is_visible = |item: &Value| item["kind"] == "user";
            assert_eq!(opened.is_listed, opened.request.iter().any(is_visible));
            let again = read_back(target, path, &session, &conversion.session_id());
            let (sent, again) = (
                super::converted::compared(&opened.request),
                super::converted::compared(&again),
            );
            assert_eq!(again, sent, "our reader agrees");
            opened.request
        }
        Target::Atif => trajectory(&session),
        Target::Acp => shown(&items_of_updates(&session)),
        _ => read_back(target, path, &session, &conversion.session_id()),
    };
    (report, sent)
}

/// Returns the items of a trajectory.
fn trajectory(document: &str) -> Vec<Value> {
    let parsed: Value = serde_json::from_str(document).expect("it is JSON");
    let numbers = list(&parsed, "steps")
        .iter()
        .map(|step| step["step_id"].as_u64());
    assert!(numbers.eq((1..).map(Some).take(list(&parsed, "steps").len())));
    let items = items_of_trajectory(document).expect("it is a trajectory");
    shown(&items)
}

/// Returns items as they stand in the expectations.
fn shown(items: &[SourceItem]) -> Vec<Value> {
    let items = items.iter().map(|item| {
        let input = item.input.as_ref();
        let input =
            input.map(|input| serde_json::from_str::<Value>(input.text()).expect("it is JSON"));
        serde_json::json!({
            "kind": item.kind.name(), "text": item.text, "name": item.name, "callId": item.call_id,
            "input": input, "output": item.output, "images": item.images.len(),
        })
    });
    items.collect()
}

/// Returns what the dialect of the client sends next.
fn read_back(target: Target, path: &str, session: &str, id: &str) -> Vec<Value> {
    let disk = MemoryDisk::new();
    disk.put(Path::new("/home").join(path), session);
    let store = Store {
        disk: &disk,
        path: Path::new("/home"),
    };
    let agent: Agent = target.name().parse().expect("it is an agent");
    let mut lists = Vec::new();
    for policy in [Policy::Vendor, Policy::Recover] {
        let conversation = dialect(agent).read(store, id, policy).expect("it is read");
        assert_eq!(conversation.refusal, None);
        assert!(
            conversation.damage.is_empty() && conversation.unknown.is_empty(),
            "{:?}",
            conversation.unknown
        );
        let mut items = Vec::new();
        conversation.write_items(&mut items).expect("it is read");
        let items: Value = serde_json::from_slice(&items).expect("items are JSON");
        lists.push(list(&items, "live").to_vec());
    }
    assert_eq!(lists[0], lists[1], "nothing is left to recover");
    lists.pop().unwrap_or_default()
}

/// Returns all conversations that are there: their names, their items and how many of their items are only known as numbers.
fn conversations(shared: &Path) -> Vec<(String, Vec<SourceItem>)> {
    let mut all: Vec<(String, Vec<SourceItem>)> = Vec::new();
    for (name, conversation) in sessions(shared) {
        let items = (0..conversation.count()).map(|at| conversation.item(at).expect("it is read"));
        let mut items: Vec<SourceItem> = items.collect();
        for item in &mut items {
            // Where the data of images is not known, dots stand for them.
            let unknown = std::mem::take(&mut item.unknown_images);
            item.images.extend((0..unknown).map(|_| dot()));
        }
        all.push((name, items));
    }
    for file in ["handoff-to-codex.jsonl.zst", "handoff-to-claude.jsonl.zst"] {
        for case in reference(shared, file) {
            all.push((case.name, items_of(list(&case.record, "items"))));
        }
    }
    all
}

#[test]
fn every_conversation_arrives_at_every_client_but_for_what_its_report_lists() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    let all = conversations(&shared);
    let mut failures = Vec::new();
    for target in Target::ALL.into_iter().chain(Target::FILES) {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut given, mut others) = (0, Vec::new());
        for (name, items) in &all {
            let (report, sent) = hand_over(items, target);
            if let Some(difference) = difference(items, &report, &sent) {
                others.push(format!("{name}: {difference}"));
            }
            given += items.len();
            for (what, count) in &report.counts {
                *counts.entry(what).or_default() += count;
            }
        }
        let count = all.len() - others.len();
        println!(
            "{target}: {count} of {} conversations, {given} items, {counts:?}",
            all.len()
        );
        failures.extend(others.into_iter().map(|other| format!("{target}: {other}")));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(!all.is_empty());
}

#[test]
fn what_the_reference_converter_hands_over_arrives_as_it_did() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    for (file, target) in [
        ("handoff-to-codex.jsonl.zst", Target::Codex),
        ("handoff-to-claude.jsonl.zst", Target::ClaudeCode),
    ] {
        let (mut same, mut others) = (0, Vec::new());
        let cases = reference(&shared, file);
        for case in &cases {
            let items = items_of(list(&case.record, "items"));
            let (_, sent) = hand_over(&items, target);
            let sent = super::converted::compared(&sent);
            if sent == super::converted::compared(list(&case.record, "request")) {
                same += 1;
            } else {
                others.push(&*case.name);
            }
        }
        println!("{file}: {same} of {} the same, not {others:?}", cases.len());
        assert!(same * 100 >= cases.len() * 90);
    }
}
