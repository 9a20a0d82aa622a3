//! Sessions that the agents wrote, and what they sent after a resume.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use transcript_import::{Agent, Conversation, Policy, Store, dialect};
use transcript_storage::RealDisk;

use crate::support::{check, read_file};

/// Returns the folder of the shared sessions of other agents.
pub(crate) fn shared() -> Option<PathBuf> {
    transcript_testkit::shared().map(|folder| folder.join("import"))
}

/// Returns the cases in a folder, each with what is expected of it.
pub(crate) fn cases(folder: &Path) -> Vec<(PathBuf, Value)> {
    let cases = fs::read_dir(folder).expect("the folder can be listed");
    let mut cases: Vec<PathBuf> = cases
        .map(|case| case.expect("it can be listed").path())
        .collect();
    cases.sort();
    let expected = |case: PathBuf| {
        let text = fs::read_to_string(case.join("expected.json")).expect("it can be read");
        (case, serde_json::from_str(&text).expect("it is JSON"))
    };
    cases.into_iter().map(expected).collect()
}

pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn names(value: &Value, key: &str) -> BTreeSet<String> {
    let names = list(value, key).iter().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

/// Returns the markers in a text: a letter for what it is, and at least two digits.
fn markers(text: &str) -> Vec<String> {
    // An escaped line feed before a marker does not belong to it.
    let text = text
        .replace("\\n", " ")
        .replace("\\t", " ")
        .replace("\\r", " ");
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_marker = |word: &&str| {
        let (kind, digits) = word.split_at(word.len().min(1));
        let digits = digits.trim_end_matches(|c: char| c.is_ascii_lowercase());
        "UATOSR".contains(kind)
            && !kind.is_empty()
            && (2..=4).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    words.filter(is_marker).map(str::to_owned).collect()
}

/// Returns the items that are compared: without context, and without thoughts that the agent does not send again.
fn sent(items: &Value, agent: Agent) -> Vec<Map<String, Value>> {
    let is_silent = matches!(agent, Agent::Gemini | Agent::Copilot);
    let items = items
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_object);
    let items = items
        .filter(|item| item["kind"] != "context" && (item["kind"] != "reasoning" || !is_silent));
    items.map(|item| compared(item, agent)).collect()
}

fn compared(item: &Map<String, Value>, agent: Agent) -> Map<String, Value> {
    let keys = [
        "kind", "text", "name", "callId", "input", "output", "images",
    ];
    let mut compared = Map::new();
    for key in keys {
        let is_of_result = key == "name" && item["kind"] == "tool_result";
        let Some(value) = item.get(key).filter(|_| !is_of_result) else {
            continue;
        };
        let mut value = value.clone();
        if agent == Agent::Gemini && key == "callId" {
            // The stored id has the name of the tool before it.
            let id = value.as_str().and_then(|id| id.rsplit("__").next());
            value = id.into();
        }
        if !value.is_null() && value != "" && value != 0 {
            compared.insert(key.to_owned(), value);
        }
    }
    compared
}

fn items(conversation: &Conversation) -> Value {
    let mut items = Vec::new();
    conversation.write_items(&mut items).expect("it is read");
    serde_json::from_slice(&items).expect("items are JSON")
}

fn read(agent: Agent, store: &Path, id: &str, policy: Policy) -> Option<Conversation> {
    let store = Store {
        disk: &RealDisk,
        path: store,
    };
    let conversation = dialect(agent).read(store, id, policy).ok()?;
    check(&conversation);
    Some(conversation)
}

/// Holds that the sessions of a case are what the agent sends, and that no text that lies in the store is lost. Returns their
/// number. `kept` are the lists of markers of texts that lie there.
fn check_case(agent: Agent, store: &Path, expected: &Value, kept: &[&str]) -> usize {
    let case = &expected["case"];
    let mut held = BTreeSet::new();
    for session in list(expected, "sessions") {
        let id = session["id"].as_str().expect("it has an id");
        for policy in [Policy::Recover, Policy::Vendor] {
            let conversation = read(agent, store, id, policy).expect("it is read");
            let items = items(&conversation);
            held.extend(markers(&items.to_string()));
            if session["live"].is_null() {
                assert!(conversation.refusal.is_some() || policy == Policy::Recover);
                continue;
            }
            assert_eq!(conversation.refusal, None, "{case}");
            assert_eq!(
                sent(&items["live"], agent),
                sent(&session["live"], agent),
                "{case} {policy:?}"
            );
        }
    }
    let lists = kept.iter().map(|list| names(&expected["markers"], list));
    let written: BTreeSet<String> = lists.flatten().collect();
    let lost: Vec<&String> = written.difference(&held).collect();
    assert!(lost.is_empty(), "{case}: {lost:?}");
    list(expected, "sessions").len()
}

#[test]
fn whole_sessions_are_what_the_agents_send_and_keep_every_text() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    // The sessions of OpenCode lie in one database, which has a test of its own; of the desktop program there are none.
    let has_cases = |agent: &Agent| !matches!(agent, Agent::OpenCode | Agent::ClaudeDesktop);
    let agents = Agent::ALL.into_iter().filter(has_cases);
    for agent in agents {
        let sessions = cases(&shared.join(agent.name()))
            .into_iter()
            .map(|(case, expected)| {
                check_case(
                    agent,
                    &case.join("store"),
                    &expected,
                    &["written", "stored"],
                )
            });
        let sessions: usize = sessions.sum();
        println!("{agent}: {sessions} sessions");
        assert!(sessions > 0);
    }
}

/// Copies a folder with its compressed databases unpacked.
#[cfg(all(feature = "sqlite", feature = "zstd"))]
fn unpacked(store: &Path) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).expect("it can be made");
        for entry in fs::read_dir(from).expect("it can be listed") {
            let from = entry.expect("it can be listed").path();
            let name = from
                .file_name()
                .expect("it has a name")
                .to_string_lossy()
                .into_owned();
            if from.is_dir() {
                copy(&from, &to.join(name));
                continue;
            }
            let bytes = fs::read(&from).expect("it can be read");
            match name.strip_suffix(".zst") {
                Some(name) if name.contains(".db") => {
                    let bytes = zstd::decode_all(&bytes[..]).expect("it is whole");
                    fs::write(to.join(name), bytes).expect("it can be written");
                }
                _ => fs::write(to.join(name), bytes).expect("it can be written"),
            }
        }
    }

    let folder = tempfile::tempdir().expect("a folder can be made");
    copy(store, folder.path());
    folder
}

#[test]
#[cfg(all(feature = "sqlite", feature = "zstd"))]
fn databases_keep_every_text_that_the_logs_lost() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    let mut cut = 0;
    for (case, expected) in cases(&shared.join("copilot")) {
        let store = unpacked(&case.join("store"));
        check_case(
            Agent::Copilot,
            store.path(),
            &expected,
            &["written", "stored", "onlyInDatabase"],
        );
        cut += names(&expected["markers"], "onlyInDatabase").len();
    }
    assert!(cut > 0);
    let mut sessions = 0;
    for set in fs::read_dir(shared.join("opencode")).expect("it can be listed") {
        let set = set.expect("it can be listed").path();
        let store = unpacked(&set.join("store"));
        for file in fs::read_dir(&set).expect("it can be listed") {
            let file = file.expect("it can be listed").path();
            if file.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let text = fs::read_to_string(&file).expect("it can be read");
            let expected = serde_json::from_str(&text).expect("it is JSON");
            sessions += check_case(
                Agent::OpenCode,
                store.path(),
                &expected,
                &["written", "inEvents"],
            );
        }
    }
    println!("{}: {sessions} sessions", Agent::OpenCode);
    assert!(sessions > 0);
}

#[test]
fn damaged_codex_stores_are_what_codex_sends_and_at_least_that_recovered() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    let mut lacking = Vec::new();
    for (case, expected) in cases(&shared.join("codex-damage")) {
        if !case.join("store").is_dir() {
            continue;
        }
        for session in list(&expected, "sessions") {
            let id = session["id"].as_str().expect("it has an id");
            let store = case.join("store");
            let Some(vendor) = read(Agent::Codex, &store, id, Policy::Vendor) else {
                lacking.push(id.to_owned());
                continue;
            };
            if session["live"].is_null() {
                assert!(vendor.refusal.is_some(), "{case:?}");
            } else {
                let live = sent(&items(&vendor)["live"], Agent::Codex);
                assert_eq!(live, sent(&session["live"], Agent::Codex), "{case:?}");
            }
            let recovered = read(Agent::Codex, &store, id, Policy::Recover).expect("it is read");
            // What is recovered stands among what Codex sends and changes nothing of it, except that a result that is there
            // takes the place of the one that Codex makes up.
            let recovered = sent(&items(&recovered)["live"], Agent::Codex);
            let mut rest = recovered.iter();
            for item in sent(&session["live"], Agent::Codex) {
                let is_made_up = item.get("output").is_some_and(|output| output == "aborted");
                assert!(
                    is_made_up || rest.any(|other| *other == item),
                    "{case:?}: {item:?}"
                );
            }
        }
    }
    // The file of one thread is missing: nothing of it is left.
    assert_eq!(lacking.len(), 1, "{lacking:?}");
}

/// Damaged files of which Qwen Code shows more than its own rules explain: a record lost its id and its parent.
const UNEXPLAINED: [&str; 1] = ["qwen-nul"];

#[test]
fn damaged_files_are_what_the_agents_show_and_all_that_lies_there_recovered() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    for (case, expected) in cases(&shared.join("other-damage")) {
        let name = expected["client"].as_str().expect("it names the agent");
        let agent: Agent = name.parse().expect("it is known");
        let file = case.join(expected["file"].as_str().expect("it names the file"));
        let live = |policy| {
            let conversation = read_file(&RealDisk, agent, &file, policy);
            let items = items(&conversation);
            let live = sent(&items["live"], agent);
            let live = serde_json::to_string(&live).expect("items are JSON");
            (
                markers(&live).into_iter().collect::<BTreeSet<String>>(),
                items.to_string(),
            )
        };
        let (recovered, all) = live(Policy::Recover);
        let (vendor, _) = live(Policy::Vendor);
        let of_client = names(&expected, "clientMarkers");
        if !UNEXPLAINED.iter().any(|name| case.ends_with(name)) {
            assert_eq!(vendor, of_client, "{case:?}");
        }
        let lost: Vec<&String> = of_client.difference(&recovered).collect();
        assert!(lost.is_empty(), "{case:?}: {lost:?}");
        let bytes = fs::read(&file).expect("it can be read");
        let stored = markers(&String::from_utf8_lossy(&bytes))
            .into_iter()
            .collect::<BTreeSet<_>>();
        let held = markers(&all).into_iter().collect();
        let intact = names(&expected, "intactMarkers");
        let stored: BTreeSet<String> = stored.intersection(&intact).cloned().collect();
        let lost: Vec<&String> = stored.difference(&held).collect();
        assert!(lost.is_empty(), "{case:?}: {lost:?}");
    }
}
