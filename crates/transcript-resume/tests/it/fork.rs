//! A copy shows what its path showed, under both policies and to readers that know no compactions,
//! and shares no id with its source.

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::fs;
use std::path::Path as FilePath;

use serde_json::{Value, json};
use transcript_format::ids::Uuid;
use transcript_format::json::Json;
use transcript_format::kind::EntryKind;
use transcript_format::object::Raw;
use transcript_messages::builder::text_hash;
use transcript_reader::{Bodies, EntryNo, EntryRef, Error, Index, Source};
use transcript_resume::fork::{ForkOptions, Forked, fork};
use transcript_resume::request::{self, BodySource};
use transcript_resume::{ConversationPath, Policy, Tree};
use transcript_testkit::{damage, generate, shared};

const POLICIES: [Policy; 2] = [Policy::Vendor, Policy::Recover];

const SOURCE: &str = "5e550000-0000-4000-8000-000000000001";
const COPY: &str = "5e550000-0000-4000-8000-000000000002";
const NOW: &str = "2026-12-01T00:00:00.000Z";

fn options() -> ForkOptions {
    ForkOptions {
        home: None,
        source: SOURCE.to_owned(),
        session: COPY.to_owned(),
        title: None,
        now: NOW.to_owned(),
    }
}

/// A session on disk and its index.
struct Session {
    source: Source,
    index: Index,
    _file: tempfile::NamedTempFile,
}

impl Session {
    fn new(bytes: &[u8]) -> Self {
        let (_file, source, index) = crate::load(bytes);
        Self {
            _file,
            source,
            index,
        }
    }

    fn tree(&self, policy: Policy) -> Tree<'_> {
        Tree::new(&self.index, policy)
    }

    /// Returns whether the policy tells answers apart that have the same id.
    fn has_answers_apart(&self, policy: Policy) -> bool {
        let tree = self.tree(policy);
        let mut first = HashMap::new();
        let ids = tree
            .nodes()
            .filter_map(|node| tree.entry(node).message().zip(tree.message(node)));
        ids.into_iter()
            .any(|(id, answer)| *first.entry(id).or_insert(answer) != answer)
    }

    fn request(&self, policy: Policy) -> request::Request {
        request::RequestOptions::new()
            .request(&self.tree(policy), &mut Bodies::new(&self.source))
            .unwrap()
    }

    fn messages(&self, policy: Policy) -> Vec<String> {
        let messages = self.request(policy).messages;
        messages
            .iter()
            .map(transcript_messages::Message::json)
            .collect()
    }

    fn copy(
        &self,
        tree: &Tree<'_>,
        path: &ConversationPath,
        options: &ForkOptions,
        first_id: u128,
    ) -> Copy {
        let mut lines = Vec::new();
        let mut ids = first_id;
        let mut new_id = || {
            ids += 1;
            Uuid(ids)
        };
        let mut write = |line: &str| {
            assert!(!line.contains(['\n', '\r']), "one line each");
            lines.push(line.to_owned());
            Ok::<(), Error>(())
        };
        let mut bodies = Bodies::new(&self.source);
        let forked = fork(tree, path, options, &mut bodies, &mut new_id, &mut write).unwrap();
        Copy { forked, lines }
    }

    /// The copy of the path that the request of `policy` is made of.
    fn fork(&self, policy: Policy) -> Copy {
        let path = self.request(policy).path;
        self.copy(&self.tree(policy), &path, &options(), 0xF0 << 120)
    }
}

struct Copy {
    forked: Forked,
    lines: Vec<String>,
}

impl Copy {
    fn bytes(&self) -> Vec<u8> {
        let lines = self.lines.iter().map(|line| format!("{line}\n"));
        lines.collect::<String>().into_bytes()
    }

    fn session(&self) -> Session {
        Session::new(&self.bytes())
    }

    fn values(&self) -> Vec<Value> {
        // serde_json refuses lone surrogates and numbers beyond the range.
        let value = |line: &String| {
            let line = Json::from(Raw::parse(line).unwrap());
            let line = line
                .text()
                .replace("1e999", "1")
                .replace(&"1".repeat(300), "1");
            serde_json::from_str(&line).unwrap()
        };
        self.lines.iter().map(value).collect()
    }

    fn entries(&self) -> Vec<Value> {
        let mut values = self.values();
        values.truncate(self.forked.entries);
        values
    }

    /// The ids that the entries had, oldest first.
    fn origins(&self) -> Vec<String> {
        let origin = |entry: &Value| {
            entry["forkedFrom"]["messageUuid"]
                .as_str()
                .map(str::to_owned)
        };
        self.entries()
            .iter()
            .map(|entry| origin(entry).unwrap_or_default())
            .collect()
    }

    /// The id that the entry above each one had.
    fn origins_above(&self) -> Vec<Option<String>> {
        let entries = self.entries();
        let names = entries.iter().zip(self.origins());
        let names: HashMap<_, _> = names
            .map(|(entry, origin)| (entry["uuid"].clone(), origin))
            .collect();
        let above = entries.iter().map(|entry| &entry["parentUuid"]);
        above
            .map(|id| (!id.is_null()).then(|| names[id].clone()))
            .collect()
    }
}

/// The id of the entry number `n` in the sessions below.
fn id(n: u32) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

fn above(n: u32) -> Value {
    if n == 0 { Value::Null } else { id(n).into() }
}

/// Puts `more` over the envelope of an entry.
fn entry(n: u32, parent: u32, kind: &str, more: Value) -> String {
    let mut entry = json!({
        "parentUuid": above(parent), "isSidechain": false, "userType": "external", "cwd": "/w",
        "sessionId": SOURCE, "version": "2.1.329", "type": kind, "uuid": id(n),
        "timestamp": format!("2026-11-01T10:00:{n:02}.000Z"),
    });
    if let (Some(members), Value::Object(more)) = (entry.as_object_mut(), more) {
        members.extend(more);
    }
    entry.to_string()
}

fn user(n: u32, parent: u32, content: impl Into<Value>) -> String {
    let content: Value = content.into();
    let message = json!({"role": "user", "content": content});
    entry(n, parent, "user", json!({ "message": message }))
}

fn answer(n: u32, parent: u32, message: &str, block: &Value) -> String {
    let message = json!({
        "id": message, "type": "message", "role": "assistant", "model": "claude-x", "content": [block],
    });
    entry(n, parent, "assistant", json!({ "message": message }))
}

fn says(n: u32, parent: u32, text: &str) -> String {
    answer(
        n,
        parent,
        &format!("msg_{n}"),
        &json!({"type": "text", "text": text}),
    )
}

fn calls(n: u32, parent: u32, message: &str, call: &str) -> String {
    let call = json!({"type": "tool_use", "id": call, "name": "Bash", "input": {}});
    answer(n, parent, message, &call)
}

fn result(n: u32, parent: u32, call: &str) -> String {
    let result = json!([{"type": "tool_result", "tool_use_id": call, "content": "done"}]);
    let message = json!({"role": "user", "content": result});
    let more = json!({"message": message, "sourceToolAssistantUUID": above(parent), "toolUseResult": {"stdout": "done"}});
    entry(n, parent, "user", more)
}

fn plain() -> Vec<String> {
    vec![
        user(1, 0, "first\nquestion"),
        says(2, 1, "one"),
        user(3, 2, "second"),
        says(4, 3, "two"),
    ]
}

/// Two calls of one message; the conversation continues from the later result.
fn parallel() -> Vec<String> {
    vec![
        user(1, 0, "look"),
        calls(2, 1, "msg_a", "toolu_1"),
        calls(3, 2, "msg_a", "toolu_2"),
        result(4, 2, "toolu_1"),
        result(5, 3, "toolu_2"),
        says(6, 5, "seen"),
    ]
}

fn boundary(n: u32, logical: u32, metadata: &Value) -> String {
    let more = json!({
        "subtype": "compact_boundary", "content": "Conversation compacted",
        "logicalParentUuid": id(logical), "compactMetadata": metadata,
    });
    entry(n, 0, "system", more)
}

fn summary(n: u32, parent: u32) -> String {
    let message = json!({"role": "user", "content": "SUMMARY"});
    entry(
        n,
        parent,
        "user",
        json!({"message": message, "isCompactSummary": true}),
    )
}

/// The lines that the client writes when it preserves `kept` after `anchor`.
fn keeps(anchor: u32, kept: &[u32]) -> Value {
    let uuids: Vec<_> = kept.iter().map(|n| id(*n)).collect();
    let (head, tail) = (uuids.first(), uuids.last());
    json!({
        "trigger": "manual", "preTokens": 9,
        "preservedSegment": {"headUuid": head, "anchorUuid": id(anchor), "tailUuid": tail},
        "preservedMessages": {"anchorUuid": id(anchor), "uuids": uuids, "allUuids": uuids},
    })
}

/// The last question and its answer are kept across a compaction.
fn compacted() -> Vec<String> {
    let mut lines = plain();
    lines.extend([
        boundary(5, 4, &keeps(6, &[3, 4])),
        summary(6, 5),
        user(7, 6, "third"),
        says(8, 7, "three"),
    ]);
    lines
}

/// The second question was asked again.
fn rewound() -> Vec<String> {
    let mut lines = plain();
    lines.extend([user(5, 2, "second, again"), says(6, 5, "another two")]);
    lines
}

fn session(lines: &[String]) -> Session {
    Session::new((lines.join("\n") + "\n").as_bytes())
}

fn ids(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers.into_iter().map(id).collect()
}

#[test]
fn a_copy_has_new_ids_and_all_else_of_a_line_byte_for_byte() {
    let line = r#"{ "uuid" : "00000000-0000-4000-8000-000000000001", "slug":"a-b", "parentUuid":null,"big":1e999,"type":"assistant","message":{"role":"assistant","id":"m","content":[{"type":"text","text":"\ud83d \u00e9"}]},"odd" : [ 1 ,2 ], "teamName":"t","isSidechain":true,"timestamp":"2026-11-01T10:00:00Z","agentName":"n"}"#;
    let session = session(&[line.to_owned()]);
    let copy = session.fork(Policy::Recover);
    let expected = r#"{ "uuid" : "f0000000-0000-0000-0000-000000000001", "parentUuid":null,"big":1e999,"type":"assistant","message":{"role":"assistant","id":"m","content":[{"type":"text","text":"\ud83d \u00e9"}]},"odd" : [ 1 ,2 ],"isSidechain":false,"timestamp":"2026-11-01T10:00:00Z","sessionId":"5e550000-0000-4000-8000-000000000002","forkedFrom":{"sessionId":"5e550000-0000-4000-8000-000000000001","messageUuid":"00000000-0000-4000-8000-000000000001"},"requestSessionId":"5e550000-0000-4000-8000-000000000001"}"#;
    assert_eq!(copy.lines[0], expected);
    assert_eq!(copy.forked.leaf, Some(Uuid((0xF0 << 120) + 1)));
}

/// The line that records a prompt of one section, named after its text.
fn prompt(after: Option<u32>, text: &str, has_text: bool) -> String {
    let hash = text_hash(text);
    let texts = if has_text {
        json!({ &hash: text })
    } else {
        json!({})
    };
    let section = json!({"name": text, "hash": hash, "tokens": 1});
    let line = json!({"type": "transcriptEngine", "v": 1, "after": after.map(id), "texts": texts,
        "prompt": {"hash": hash, "sections": [section]}, "sessionId": SOURCE});
    line.to_string()
}

/// The prompts that a copy records, each with the source of the entry that it follows.
fn prompts_of(copy: &Copy) -> Vec<(String, Option<String>)> {
    let entries = copy.entries();
    let origin = |after: &Value| {
        let entry = entries.iter().find(|entry| entry["uuid"] == *after)?;
        entry["forkedFrom"]["messageUuid"]
            .as_str()
            .map(str::to_owned)
    };
    let lines = copy.values().into_iter();
    let recorded = lines.filter(|line| !line["prompt"].is_null());
    recorded
        .map(|line| {
            assert_eq!(line["sessionId"], COPY);
            let after = origin(&line["after"]);
            assert_eq!(after.is_none(), line["after"].is_null());
            let name = line["prompt"]["sections"][0]["name"].as_str().unwrap();
            (name.to_owned(), after)
        })
        .collect()
}

/// The texts that a copy stores.
fn texts_of(copy: &Copy) -> Vec<String> {
    let mut texts = Vec::new();
    for line in copy.values() {
        let stored = line["texts"].as_object().into_iter().flatten();
        texts.extend(stored.map(|(_, text)| text.as_str().unwrap().to_owned()));
    }
    texts
}

#[test]
fn a_copy_has_the_system_prompts_of_its_path_and_each_text_once() {
    let mut lines = vec![prompt(None, "start", true)];
    lines.extend(rewound());
    let after = [
        prompt(Some(2), "shared", true),
        // The branch that was left.
        prompt(Some(4), "left", true),
        prompt(Some(3), "later", true),
        prompt(Some(5), "later", false),
        // Damage, and the prompt of an entry that is not there.
        prompt(Some(6), "start", false).replace("\"tokens\":1", "\"tokens\":-1"),
        prompt(Some(99), "lost", true),
        prompt(Some(6), "start", false),
    ];
    lines.extend(after);
    let source = session(&lines);
    for policy in POLICIES {
        let copy = source.fork(policy);
        let expected = [
            ("shared", Some(2)),
            ("later", Some(5)),
            ("lost", None),
            ("start", Some(6)),
        ];
        let expected = expected.map(|(text, after)| (text.to_owned(), after.map(id)));
        let mut prompts = prompts_of(&copy);
        // The first one was in force where the copy starts.
        assert_eq!(prompts.remove(0), ("start".to_owned(), None));
        assert_eq!(prompts, expected);
        assert_eq!(texts_of(&copy), ["start", "shared", "later", "lost"]);

        // A copy of the copy is the same.
        let again = copy.session().fork(policy);
        assert_eq!(prompts_of(&again).len(), 5);
        assert_eq!(texts_of(&again), texts_of(&copy));
    }
}

#[test]
fn the_prompt_before_a_compaction_is_in_force_after_it() {
    let mut lines = compacted();
    lines.insert(0, prompt(None, "first", true));
    lines.insert(2, prompt(Some(1), "second", true));
    let source = session(&lines);
    for policy in POLICIES {
        let copy = source.fork(policy);
        assert_eq!(prompts_of(&copy), [("second".to_owned(), None)]);
        assert_eq!(texts_of(&copy), ["second"]);
    }
    lines.push(prompt(Some(7), "first", false));
    let source = session(&lines);
    for policy in POLICIES {
        let copy = source.fork(policy);
        let expected = [("second", None), ("first", Some(id(7)))];
        assert_eq!(
            prompts_of(&copy),
            expected.map(|(name, after)| (name.to_owned(), after))
        );
        assert_eq!(texts_of(&copy), ["first", "second"]);
    }
}

#[test]
fn a_text_that_was_redacted_is_copied_until_it_is_there_as_it_was() {
    let mut lines = plain();
    let redacted = prompt(Some(1), "secret", true).replace(":\"secret\"}", ":\"[redacted]\"}");
    assert!(redacted.contains("[redacted]"));
    lines.extend([redacted, prompt(Some(2), "other", true)]);
    assert_eq!(
        texts_of(&session(&lines).fork(Policy::Recover)),
        ["[redacted]", "other"]
    );
    lines.extend([
        prompt(Some(3), "secret", true),
        prompt(Some(4), "secret", true),
    ]);
    let texts = texts_of(&session(&lines).fork(Policy::Recover));
    assert_eq!(texts, ["[redacted]", "other", "secret"]);
}

#[test]
fn the_copy_of_a_straight_conversation_is_a_straight_one() {
    let copy = session(&plain()).fork(Policy::Vendor);
    assert_eq!(copy.origins(), ids(1..=4));
    let above = [None, Some(id(1)), Some(id(2)), Some(id(3))];
    assert_eq!(copy.origins_above(), above);
    for entry in copy.entries() {
        assert_eq!(entry["sessionId"], COPY);
        assert_eq!(entry["forkedFrom"]["sessionId"], SOURCE);
    }
    let last = copy.entries().pop().unwrap();
    assert_eq!(
        last["timestamp"], "2026-11-01T10:00:04.000Z",
        "nothing new was said"
    );
    let title = copy.values().pop().unwrap();
    let expected = json!({
        "type": "custom-title", "sessionId": COPY, "customTitle": "first question (fork)",
        "uuid": Uuid((0xF0 << 120) + 5).to_string(), "timestamp": NOW,
    });
    assert_eq!(title, expected);
    assert_eq!(copy.lines.len(), 5);
}

#[test]
fn results_of_parallel_calls_stay_under_their_calls() {
    let copy = session(&parallel()).fork(Policy::Vendor);
    assert_eq!(copy.origins(), ids(1..=6));
    let above = [None, Some(1), Some(2), Some(2), Some(3), Some(5)];
    assert_eq!(copy.origins_above(), above.map(|n| n.map(id)));
    let entries = copy.entries();
    assert_eq!(entries[3]["sourceToolAssistantUUID"], entries[1]["uuid"]);
    assert_eq!(entries[4]["sourceToolAssistantUUID"], entries[2]["uuid"]);
}

#[test]
fn a_copy_that_ends_in_a_line_of_the_client_is_one_chain() {
    let mut lines = parallel();
    let message = json!({"role": "user", "content": "caveat"});
    lines.push(entry(
        7,
        6,
        "user",
        json!({"message": message, "isMeta": true}),
    ));
    let copy = session(&lines).fork(Policy::Vendor);
    assert_eq!(copy.origins(), ids(1..=7));
    let above: Vec<_> = (0..7).map(|n| (n > 0).then(|| id(n))).collect();
    assert_eq!(copy.origins_above(), above);
}

#[test]
fn a_result_without_a_message_id_to_find_it_by_is_linked_into_the_chain() {
    let lines: Vec<String> = parallel()
        .into_iter()
        .map(|line| line.replace(r#""id":"msg_a","#, ""))
        .collect();
    let source = session(&lines);
    let copy = source.fork(Policy::Recover);
    assert_eq!(
        copy.session().fork(Policy::Vendor).origins().len(),
        copy.forked.entries
    );
    assert_eq!(
        copy.session().messages(Policy::Recover),
        source.messages(Policy::Recover)
    );
}

#[test]
fn a_boundary_names_the_copies_of_what_it_keeps() {
    for policy in POLICIES {
        let copy = session(&compacted()).fork(policy);
        assert_eq!(copy.origins(), ids([5, 6, 3, 4, 7, 8]));
        let above = [None, Some(5), Some(6), Some(3), Some(4), Some(7)];
        assert_eq!(copy.origins_above(), above.map(|n| n.map(id)));
        let entries = copy.entries();
        let new = |place: usize| entries[place]["uuid"].clone();
        let metadata = &entries[0]["compactMetadata"];
        let messages =
            json!({"anchorUuid": new(1), "uuids": [new(2), new(3)], "allUuids": [new(2), new(3)]});
        assert_eq!(metadata["preservedMessages"], messages);
        let segment = json!({"headUuid": new(2), "anchorUuid": new(1), "tailUuid": new(3)});
        assert_eq!(metadata["preservedSegment"], segment);
        assert_eq!(metadata["preTokens"], 9);
        assert_eq!(
            entries[0]["logicalParentUuid"],
            Value::Null,
            "it would close a cycle"
        );
    }
}

#[test]
fn a_boundary_that_keeps_more_than_is_copied_keeps_nothing() {
    let source = session(&compacted());
    let tree = source.tree(Policy::Vendor);
    let mut path = tree.path();
    let summary = path.entries[1].entry_no();
    assert!(path.cut_after(summary));
    let copy = source.copy(&tree, &path, &options(), 0xF0 << 120);
    assert_eq!(copy.origins(), ids([5, 6]));
    let metadata = copy.entries()[0]["compactMetadata"].clone();
    assert_eq!(metadata, json!({"trigger": "manual", "preTokens": 9}));
}

#[test]
fn a_boundary_that_says_two_things_about_what_it_keeps_keeps_nothing() {
    let mut metadata = keeps(6, &[4]);
    metadata["preservedSegment"]["headUuid"] = id(3).into();
    let mut lines = compacted();
    lines[4] = boundary(5, 4, &metadata);
    let copy = session(&lines).fork(Policy::Vendor);
    assert_eq!(copy.origins(), ids([5, 6, 4, 7, 8]));
    let metadata = copy.entries()[0]["compactMetadata"].clone();
    assert_eq!(metadata, json!({"trigger": "manual", "preTokens": 9}));
}

#[test]
fn the_result_of_a_call_whose_id_another_message_uses_is_in_the_chain() {
    let mut lines = parallel();
    lines.extend([
        user(7, 6, "again"),
        calls(8, 7, "msg_b", "toolu_1"),
        says(9, 8, "again"),
    ]);
    let copy = session(&lines).fork(Policy::Vendor);
    assert_eq!(copy.origins(), ids(1..=9));
    let above = copy.origins_above();
    assert_eq!(above[4], Some(id(4)), "no reader can tell whose it is");
}

#[test]
fn a_result_without_a_time_is_in_the_chain() {
    let lines: Vec<String> = parallel()
        .into_iter()
        .map(|line| line.replace("\"2026-11-01T10:00:04.000Z\"", "4"))
        .collect();
    let copy = session(&lines).fork(Policy::Vendor);
    assert_eq!(copy.origins(), ids(1..=6));
    let above: Vec<_> = (0..6).map(|n| (n > 0).then(|| id(n))).collect();
    assert_eq!(copy.origins_above(), above);
}

#[test]
fn a_path_without_a_message_has_nothing_to_copy() {
    let source = session(&compacted());
    let tree = source.tree(Policy::Vendor);
    let mut path = tree.path();
    let boundary = path.entries[0].entry_no();
    assert!(path.cut_after(boundary));
    let copy = source.copy(&tree, &path, &options(), 1);
    assert_eq!((copy.forked, copy.lines.len()), (Forked::default(), 0));
    let empty = source.copy(&tree, &ConversationPath::default(), &options(), 1);
    assert_eq!((empty.forked, empty.lines.len()), (Forked::default(), 0));
}

#[test]
fn a_compaction_that_was_never_finished_is_omitted() {
    let mut lines = plain();
    let unfinished = boundary(5, 4, &json!({"trigger": "auto"}));
    let real_parent = format!("\"parentUuid\":\"{}\"", id(4));
    lines.push(unfinished.replace("\"parentUuid\":null", &real_parent));
    let copy = session(&lines).fork(Policy::Recover);
    assert_eq!(copy.origins(), ids(1..=4));
}

#[test]
fn a_rewound_conversation_is_copied_without_the_abandoned_branch() {
    let copy = session(&rewound()).fork(Policy::Vendor);
    assert_eq!(copy.origins(), ids([1, 2, 5, 6]));
    assert!(!copy.lines.join("").contains("\"two\""));
}

#[test]
fn a_copy_of_a_copy_names_the_copy() {
    for lines in [plain(), parallel(), compacted(), rewound()] {
        for policy in POLICIES {
            let source = session(&lines);
            let first = source.fork(policy);
            let again = first.session();
            let path = again.request(policy).path;
            let options = ForkOptions {
                source: COPY.to_owned(),
                session: SOURCE.to_owned(),
                ..options()
            };
            let second = again.copy(&again.tree(policy), &path, &options, 0xE0 << 120);
            let of_first = first.entries();
            for (entry, origin) in second.entries().iter().zip(&of_first) {
                let expected = json!({"sessionId": COPY, "messageUuid": origin["uuid"]});
                assert_eq!(entry["forkedFrom"], expected);
            }
            assert_eq!(second.forked.entries, first.forked.entries);
            assert_eq!(second.session().messages(policy), source.messages(policy));
            let title = second.values().pop().unwrap();
            assert!(
                title["customTitle"]
                    .as_str()
                    .unwrap()
                    .ends_with(" (fork) (fork)")
            );
        }
    }
}

#[test]
fn replacements_are_merged_and_titles_taken_from_the_source() {
    let replaced = |session: &str, n: u32| {
        let one =
            json!({"kind": "tool-result", "toolUseId": n.to_string(), "replacement": "short"});
        let line = json!({"type": "content-replacement", "agentId": "a", "sessionId": session, "replacements": [one]});
        line.to_string()
    };
    let mut lines = plain();
    lines.extend([replaced(SOURCE, 1), replaced(COPY, 2), replaced(SOURCE, 3)]);
    lines.push(json!({"type": "ai-title", "aiTitle": "Made"}).to_string());
    let values = session(&lines).fork(Policy::Vendor).values();
    let replacement = &values[4];
    assert_eq!(replacement["type"], "content-replacement");
    assert_eq!(replacement["sessionId"], COPY);
    assert_eq!(replacement["timestamp"], NOW);
    assert_eq!(replacement["agentId"], Value::Null);
    let calls = replacement["replacements"].as_array().unwrap().iter();
    assert_eq!(
        calls.map(|one| &one["toolUseId"]).collect::<Vec<_>>(),
        ["1", "3"]
    );
    assert_eq!(values[5]["customTitle"], "Made (fork)");
    assert_eq!(values.len(), 6);
}

#[test]
fn a_given_title_is_as_it_is_but_for_space_around_it() {
    let source = session(&plain());
    let tree = source.tree(Policy::Vendor);
    let titled = |title: &str| {
        let options = ForkOptions {
            title: Some(title.to_owned()),
            ..options()
        };
        let copy = source.copy(&tree, &tree.path(), &options, 1);
        copy.values().pop().unwrap()["customTitle"].clone()
    };
    assert_eq!(titled("  Mine "), "Mine");
    assert_eq!(titled(" "), "first question (fork)");
}

#[test]
fn a_session_without_a_prompt_has_a_title_all_the_same() {
    let title = |lines: &[String]| {
        session(lines).fork(Policy::Recover).values().pop().unwrap()["customTitle"].clone()
    };
    assert_eq!(title(&[says(1, 0, "hello")]), "Forked session (fork)");
    let long = user(
        1,
        0,
        json!([{"type": "text", "text": "<tick>"}, {"type": "text", "text": "ö".repeat(300)}]),
    );
    assert_eq!(title(&[long]), format!("{}… (fork)", "ö".repeat(200)));
}

#[test]
fn every_name_of_an_entry_is_that_of_its_copy_or_gone() {
    let mut lines = rewound();
    let more = json!({
        "subtype": "informational", "content": id(1),
        "refusedUserMessageUuid": id(5), "retractedMessageUuids": [id(3), id(5), "never-written"],
        "future": {"deep": [[{"basedOn": id(1), "lost": id(4)}]]},
        "toolUseResult": {"said": id(1)}, "message": {"content": id(2)},
        "other": "00000000-0000-4000-8000-00000000ffff",
    });
    lines.push(entry(7, 6, "system", more));
    let copy = session(&lines).fork(Policy::Vendor);
    let entries = copy.entries();
    let (reported, new) = (&entries[4], |place: usize| &entries[place]["uuid"]);
    assert_eq!(&reported["refusedUserMessageUuid"], new(2));
    assert_eq!(
        reported["retractedMessageUuids"],
        json!([new(2), "never-written"])
    );
    assert_eq!(reported["future"], json!({"deep": [[{"basedOn": new(0)}]]}));
    assert_eq!(
        reported["toolUseResult"]["said"],
        id(1),
        "what a tool said is not looked at"
    );
    assert_eq!(reported["message"]["content"], id(2));
    assert_eq!(reported["other"], "00000000-0000-4000-8000-00000000ffff");
}

#[test]
fn deeply_nested_ids_stay_as_they_are() {
    let deep = format!("{}\"{}\"{}", "[".repeat(100), id(1), "]".repeat(100));
    let mut lines = plain();
    lines[3] = lines[3].replacen('{', &format!("{{\"deep\":{deep},"), 1);
    let source = session(&lines);
    let copy = source.fork(Policy::Recover);
    assert_eq!(copy.forked.entries, 4);
    assert!(copy.lines[3].contains(&deep));
}

#[test]
fn an_entry_without_an_id_or_a_time_gets_one() {
    let lines = [
        user(1, 0, "one"),
        user(2, 1, "two")
            .replace(&format!(r#""uuid":"{}","#, id(2)), "")
            .replace(&format!(r#","uuid":"{}""#, id(2)), "")
            .replace("2026-11-01T10:00:02.000Z", "today"),
    ];
    let source = session(&lines);
    assert!(source.index.entry(EntryNo::new(1)).uuid().is_none());
    let copy = source.fork(Policy::Recover);
    let entries = copy.entries();
    assert_eq!(entries[1]["forkedFrom"], json!({"sessionId": SOURCE}));
    assert_eq!(entries[1]["uuid"], Uuid((0xF0 << 120) + 2).to_string());
    assert_eq!(
        entries[1]["timestamp"], NOW,
        "the client resumes no leaf without a time"
    );
    assert!(copy.session().request(Policy::Vendor).is_resumable());
}

#[test]
fn an_entry_that_stood_on_several_lines_is_on_one() {
    let line = plain()[1].clone();
    let (head, tail) = line.split_at(line.find("\"message\"").unwrap());
    let mut lines = plain();
    lines[1] = format!("{head}\n\n{tail}");
    let source = session(&lines);
    let copy = source.fork(Policy::Recover);
    assert_eq!(copy.origins(), ids(1..=4));
    assert_eq!(
        copy.session().messages(Policy::Vendor),
        source.messages(Policy::Recover)
    );
}

/// Loses the bodies of some entries.
struct Losing<'s>(Bodies<'s>, &'static [usize]);

impl BodySource for Losing<'_> {
    type Error = Error;

    fn body(&mut self, entry_ref: &EntryRef<'_>) -> Result<&str, Error> {
        if self.1.contains(&entry_ref.number().get()) {
            Ok("")
        } else {
            self.0.body(entry_ref)
        }
    }
}

#[test]
fn an_entry_whose_body_is_lost_is_omitted_and_the_chain_closed_over_it() {
    let source = session(&plain());
    let tree = source.tree(Policy::Vendor);
    let mut lines = Vec::new();
    let mut next = 0;
    let forked = fork(
        &tree,
        &tree.path(),
        &options(),
        &mut Losing(Bodies::new(&source.source), &[1, 2]),
        &mut || {
            next += 1;
            Uuid(next)
        },
        &mut |line| {
            lines.push(line.to_owned());
            Ok::<(), Error>(())
        },
    );
    let forked = forked.unwrap();
    assert_eq!((forked.entries, forked.leaf), (2, Some(Uuid(4))));
    let copy = Copy { forked, lines };
    assert_eq!(copy.origins_above(), [None, Some(id(1))]);
}

/// The calls and the texts of the model in a request.
#[derive(Debug, PartialEq)]
struct RequestContent {
    calls: BTreeSet<String>,
    results: BTreeSet<String>,
    texts: Vec<String>,
}

fn said(request: &request::Request) -> RequestContent {
    let ids = |kind: transcript_messages::BlockKind| {
        let blocks = request.messages.iter().flat_map(|message| message.blocks());
        let blocks = blocks.filter(|block| block.kind() == kind);
        let ids = blocks.filter_map(|block| block.call_id().map(str::to_owned));
        ids.collect()
    };
    let answers = request
        .messages
        .iter()
        .filter(|message| message.role() == transcript_messages::Role::Assistant);
    let texts = answers.flat_map(|message| message.blocks());
    let texts = texts.filter(|block| block.origin().is_some());
    RequestContent {
        calls: ids(transcript_messages::BlockKind::ToolUse),
        results: ids(transcript_messages::BlockKind::ToolResult),
        texts: texts
            .filter_map(|block| block.text_field().map(Into::into))
            .collect(),
    }
}

/// The texts, calls and results that are sent, in their order.
fn blocks(request: &request::Request) -> Vec<String> {
    use transcript_messages::BlockKind::{Text, ToolResult, ToolUse};
    let blocks = request.messages.iter().flat_map(|message| message.blocks());
    let blocks = blocks.filter(|block| matches!(block.kind(), Text | ToolUse | ToolResult));
    blocks.map(|block| block.json().to_owned()).collect()
}

#[test]
fn a_copy_holds_the_results_that_its_source_lacks() {
    // An earlier call without a result, next to a text and another call that has one.
    let lines = [
        user(1, 0, "Q"),
        says(2, 1, "I look."),
        calls(3, 2, "m", "a"),
        calls(4, 3, "m", "b"),
        result(5, 4, "b"),
        says(6, 5, "So far."),
        user(7, 6, "Go on"),
        calls(8, 7, "n", "c"),
        user(9, 8, "Stop"),
        says(10, 9, "Yes."),
    ];
    let source = session(&lines);
    let recovered = source.request(Policy::Recover);
    let copy = source.fork(Policy::Recover);
    assert_eq!(copy.forked.entries, lines.len() + 2);
    let copied = copy.session();
    assert_eq!(blocks(&copied.request(Policy::Vendor)), blocks(&recovered));
    assert_eq!(blocks(&copied.request(Policy::Recover)), blocks(&recovered));
    // Nothing synthetic is added any more, and a copy of the copy is the same again.
    let made_up = copied.request(Policy::Recover).synthetic;
    assert!(made_up.is_empty(), "{made_up:?}");
    // Under `vendor` the lines are copied as they are.
    assert_eq!(source.fork(Policy::Vendor).forked.entries, lines.len());
}

#[test]
fn an_error_of_the_writer_ends_the_copy() {
    #[derive(Debug, PartialEq)]
    enum Failed {
        Disk,
    }
    impl From<Infallible> for Failed {
        fn from(never: Infallible) -> Self {
            match never {}
        }
    }
    struct Texts(Vec<String>);
    impl BodySource for Texts {
        type Error = Infallible;
        fn body(&mut self, entry_ref: &EntryRef<'_>) -> Result<&str, Infallible> {
            Ok(&self.0[entry_ref.number().get()])
        }
    }
    let source = session(&plain());
    let tree = source.tree(Policy::Vendor);
    let mut written = 0;
    let mut write = |_: &str| {
        written += 1;
        if written == 3 {
            Err(Failed::Disk)
        } else {
            Ok(())
        }
    };
    let mut bodies = Texts(plain());
    let failed = fork(
        &tree,
        &tree.path(),
        &options(),
        &mut bodies,
        &mut || Uuid(7),
        &mut write,
    );
    assert_eq!(failed, Err(Failed::Disk));
    assert_eq!(written, 3);
}

/// Every string of `value` but for those of `forkedFrom`.
fn names(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            found.insert(text.clone());
        }
        Value::Array(values) => values.iter().for_each(|value| names(value, found)),
        Value::Object(members) => {
            let members = members.iter().filter(|(key, _)| *key != "forkedFrom");
            members.for_each(|(_, value)| names(value, found));
        }
        _ => {}
    }
}

fn shares_no_id(name: &str, source: &Session, copy: &Copy) {
    let index = &source.index;
    let ids = index.entries().filter_map(|entry_ref| entry_ref.uuid());
    let ids: BTreeSet<String> = ids
        .map(|id| index.id_text(id))
        .filter(|id| Uuid::parse(id.as_bytes()).is_some())
        .collect();
    let mut named = BTreeSet::new();
    copy.values()
        .iter()
        .for_each(|line| names(line, &mut named));
    let shared: Vec<_> = named.intersection(&ids).collect();
    assert!(shared.is_empty(), "{name}: {shared:?}");
}

/// Returns the entries shown by a reader that uses only `parentUuid`, `message.id` and
/// `tool_use_id`, as the Python SDK does: the last message that is not meta, its ancestors, the
/// lines of the messages on the way and the results of their calls. As places, in file order.
fn shown_by_the_python_sdk(entries: &[Value]) -> BTreeSet<usize> {
    let is_message =
        |place: &usize| matches!(entries[*place]["type"].as_str(), Some("user" | "assistant"));
    let place_of: HashMap<&Value, usize> = entries
        .iter()
        .enumerate()
        .map(|(place, entry)| (&entry["uuid"], place))
        .collect();
    let parent = |place: usize| place_of.get(&entries[place]["parentUuid"]).copied();
    let parents: BTreeSet<usize> = (0..entries.len()).filter_map(parent).collect();
    let up = |place: usize| std::iter::successors(Some(place), |place| parent(*place));
    let terminals = (0..entries.len()).filter(|place| !parents.contains(place));
    let leaves: Vec<usize> = terminals
        .filter_map(|place| up(place).find(is_message))
        .collect();
    let mains = leaves
        .iter()
        .filter(|place| entries[**place]["isMeta"] != true);
    let Some(leaf) = mains.max().or(leaves.iter().max()) else {
        return BTreeSet::new();
    };
    let chain: BTreeSet<usize> = up(*leaf).collect();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let message = |place: usize| {
        let is_answer = entries[place]["type"] == "assistant";
        text(&entries[place]["message"]["id"]).filter(|_| is_answer)
    };
    let on_chain: BTreeSet<String> = chain.iter().filter_map(|place| message(*place)).collect();
    let is_line = |place: &usize| message(*place).is_some_and(|id| on_chain.contains(&id));
    let lines: Vec<usize> = (0..entries.len()).filter(is_line).collect();
    let blocks = |place: usize, kind: &'static str, key: &'static str| {
        let blocks = entries[place]["message"]["content"].as_array().cloned();
        let blocks = blocks
            .unwrap_or_default()
            .into_iter()
            .filter(move |block| block["type"] == kind);
        blocks
            .filter_map(|block| text(&block[key]))
            .collect::<Vec<_>>()
    };
    let calls: BTreeSet<String> = lines
        .iter()
        .flat_map(|line| blocks(*line, "tool_use", "id"))
        .collect();
    let is_result = |place: &usize| {
        let results = blocks(*place, "tool_result", "tool_use_id");
        entries[*place]["type"] == "user" && results.iter().any(|call| calls.contains(call))
    };
    let results = (0..entries.len()).filter(is_result);
    chain
        .iter()
        .copied()
        .chain(lines.iter().copied())
        .chain(results)
        .filter(is_message)
        .collect()
}

/// How often the links of a copy were more than a chain, and its boundary kept something.
#[derive(Debug, Default)]
struct Seen {
    copies: usize,
    trees: usize,
    keeping: usize,
}

fn check(name: &str, bytes: &[u8], seen: &mut Seen) {
    let source = Session::new(bytes);
    for policy in POLICIES {
        let name = &format!("{name}, {}", policy.name());
        let request = source.request(policy);
        let copy = source.fork(policy);
        if copy.forked.entries == 0 {
            let has_message = request
                .path
                .entries
                .iter()
                .any(|entry| source.index.entry(entry.entry_no()).kind().is_message());
            assert!(copy.lines.is_empty() && !has_message, "{name}");
            continue;
        }
        seen.copies += 1;
        shares_no_id(name, &source, &copy);

        let entries = copy.entries();
        let chain = entries
            .windows(2)
            .all(|pair| pair[1]["parentUuid"] == pair[0]["uuid"]);
        seen.trees += usize::from(!chain);
        seen.keeping += usize::from(
            entries[0]["compactMetadata"]
                .to_string()
                .contains("preserved"),
        );
        assert!(entries[0]["parentUuid"].is_null(), "{name}");

        // The path of the copy is all of it, in order, also for readers without splices.
        let unspliced = String::from_utf8(copy.bytes()).unwrap();
        let unspliced = unspliced.replace("\"preserved", "\"-reserved");
        for reading in POLICIES {
            for (form, session) in [
                ("whole", copy.session()),
                ("unspliced", Session::new(unspliced.as_bytes())),
            ] {
                let path = session.tree(reading).path();
                let mut places: Vec<_> =
                    path.entries.iter().map(|entry| entry.entry_no()).collect();
                if reading == Policy::Vendor && source.has_answers_apart(policy) {
                    // The client moves the lines of one id together.
                    places.sort_unstable();
                }
                let all: Vec<_> = (0..copy.forked.entries).map(EntryNo::new).collect();
                assert_eq!(places, all, "{name}, read by {}, {form}", reading.name());
                assert_eq!(path.refusal, None, "{name}, read by {}", reading.name());
            }
        }
        let messages: BTreeSet<_> = (0..entries.len())
            .filter(|place| matches!(entries[*place]["type"].as_str(), Some("user" | "assistant")))
            .collect();
        assert_eq!(shown_by_the_python_sdk(&entries), messages, "{name}");

        if request.is_resumable() {
            let again = copy.session().request(policy);
            let added = entries
                .iter()
                .filter(|entry| entry.get("forkedFrom").is_none())
                .count();
            // The line that proves that a thought was emptied is not on the path, so not in the copy.
            let emptied = transcript_messages::OmissionReason::Refused(
                transcript_messages::Rule::EmptiedThinking,
            );
            let is_emptied = request.omissions.iter().any(|one| one.reason == emptied);
            if added == 0 && !is_emptied {
                let json = |request: &request::Request| -> Vec<_> {
                    request
                        .messages
                        .iter()
                        .map(transcript_messages::Message::json)
                        .collect()
                };
                assert_eq!(json(&again), json(&request), "{name}");
            }
            // Where results were added, reminders may be folded into them.
            assert_eq!(said(&again), said(&request), "{name}");
            // Content that the API refuses is not repaired in the copy.
            let is_repaired = request.omissions.iter().any(|one| {
                matches!(
                    one.reason,
                    transcript_messages::OmissionReason::Refused(_)
                        | transcript_messages::OmissionReason::RepeatedCall
                )
            });
            if policy == Policy::Recover && !is_repaired {
                let client = copy.session().request(Policy::Vendor);
                let (client, request) = (said(&client), said(&request));
                assert!(
                    client.calls.is_superset(&request.calls),
                    "{name}: {client:?} {request:?}"
                );
                assert!(
                    client.results.is_superset(&request.results),
                    "{name}: {client:?} {request:?}"
                );
            }
        }

        // A copy of the copy is linked as the copy is.
        let session = copy.session();
        let path = session.request(policy).path;
        let second = session.copy(&session.tree(policy), &path, &options(), 0xE0 << 120);
        shares_no_id(name, &session, &second);
        let number = |entries: &[Value]| {
            let ids = entries
                .iter()
                .enumerate()
                .map(|(place, entry)| (entry["uuid"].clone(), place));
            let ids: HashMap<_, _> = ids.collect();
            let above = entries
                .iter()
                .map(|entry| ids.get(&entry["parentUuid"]).copied());
            above.collect::<Vec<_>>()
        };
        assert_eq!(number(&second.entries()), number(&entries), "{name}");
    }
}

#[test]
fn copies_of_generated_sessions_show_what_their_paths_showed() {
    let mut seen = Seen::default();
    for seed in 0..600 {
        check(&format!("seed {seed}"), &generate::session(seed), &mut seen);
        check(
            &format!("tidy seed {seed}"),
            &generate::tidy_session(seed),
            &mut seen,
        );
    }
    println!("{seen:?}");
    assert!(seen.trees > 100 && seen.keeping > 20, "{seen:?}");
}

#[test]
fn copies_of_damaged_sessions_show_what_their_paths_showed() {
    let mut seen = Seen::default();
    for seed in 0..600 {
        let (bytes, kinds) = damage::damage(&generate::session(seed), seed);
        check(&format!("seed {seed}, damage {kinds:?}"), &bytes, &mut seen);
    }
    println!("{seen:?}");
}

#[test]
fn copies_of_fixtures_and_shared_files_show_what_their_paths_showed() {
    let mut files = Vec::new();
    let fixtures = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/v1");
    crate::transcripts_under(&fixtures, &mut files);
    match shared() {
        Some(shared) => {
            crate::transcripts_under(&shared.join("corpus/files"), &mut files);
            crate::transcripts_under(&shared.join("oracle"), &mut files);
        }
        None => println!("skipped: no shared data"),
    }
    let mut seen = Seen::default();
    for file in files {
        check(
            &file.display().to_string(),
            &fs::read(&file).unwrap(),
            &mut seen,
        );
    }
    println!("{seen:?}");
    assert!(seen.copies > 60, "{seen:?}");
}

#[test]
fn only_linked_entries_are_copied() {
    // Nothing outside the chain comes along but replacements and a title.
    let mut lines = compacted();
    lines.extend([
        json!({"type": "tag", "tag": "t", "sessionId": SOURCE}).to_string(),
        json!({"type": "last-prompt", "lastPrompt": "third", "leafUuid": id(8), "sessionId": SOURCE}).to_string(),
        json!({"type": "mode", "mode": "normal", "sessionId": SOURCE}).to_string(),
    ]);
    let copy = session(&lines).fork(Policy::Vendor);
    let copy = copy.session();
    let beside = copy.index.entries().filter(|line| !line.kind().is_chain());
    let kinds: Vec<_> = beside.map(|line| line.kind()).collect();
    assert_eq!(kinds, [EntryKind::CustomTitle]);
}
