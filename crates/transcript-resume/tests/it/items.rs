//! A path as a person sees it: one item per block, call groups in order, nothing omitted.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use transcript_format::ids::Uuid;
use transcript_format::kind::EntryKind;
use transcript_reader::{Bodies, EntryNo, EntryRef, Error, Index, Source};
use transcript_resume::items::{
    Cut, Displays, GroupKind, GroupRole, HeldBodies, HeldTexts, Item, ItemKind, ItemList,
    ItemMarks, ItemReader, LoadedItem, Nesting, Speaker, SubagentOrigin, sidechains,
};
use transcript_resume::request::BodySource;
use transcript_resume::{ConversationPath, Decision, Policy, Tree};
use transcript_testkit::rng::Rng;
use transcript_testkit::{damage, generate, oracle, shared};

use crate::transcripts_under;

const POLICIES: [Policy; 2] = [Policy::Vendor, Policy::Recover];

/// A session on disk and its index.
struct File {
    source: Source,
    index: Index,
    _file: tempfile::NamedTempFile,
}

impl File {
    fn new(bytes: &[u8]) -> Self {
        let (_file, source, index) = crate::load(bytes);
        Self {
            _file,
            source,
            index,
        }
    }

    fn bodies(&self) -> Bodies<'_> {
        Bodies::new(&self.source)
    }

    fn display(&self, policy: Policy) -> ItemList {
        let tree = Tree::new(&self.index, policy);
        ItemList::new(&tree, &tree.path(), &mut self.bodies()).unwrap()
    }

    /// The content of each item, in one word each.
    fn reported(&self, display: &ItemList) -> Vec<String> {
        let mut item_reader = ItemReader::new(display, &self.index, self.bodies());
        let places = 0..display.items().len();
        let reported = places.map(|place| {
            let loaded = item_reader.item(place).unwrap();
            let item = loaded.item();
            match item.kind() {
                ItemKind::Text => loaded.text().unwrap().into_owned(),
                kind => format!("{kind:?} {}.{}", self.name(item.entry_no()), item.block()),
            }
        });
        reported.collect()
    }

    fn name(&self, entry_no: EntryNo) -> String {
        let uuid = self.index.entry(entry_no).uuid().unwrap();
        self.index.id_text(uuid)
    }
}

/// A session, line by line; each entry is a child of the one before.
#[derive(Default)]
struct Session {
    lines: String,
    last: Option<String>,
    count: usize,
}

impl Session {
    fn entry(mut self, kind: &str, uuid: &str, members: &Value) -> Self {
        let mut line = json!({
            "type": kind, "uuid": uuid, "parentUuid": self.last,
            "timestamp": format!("2026-01-01T00:00:{:02}.000Z", self.count % 60),
        });
        let line_members = line.as_object_mut().unwrap();
        line_members.extend(members.as_object().unwrap().clone());
        writeln!(self.lines, "{line}").unwrap();
        self.last = Some(uuid.to_owned());
        self.count += 1;
        self
    }

    fn under(mut self, uuid: &str) -> Self {
        self.last = Some(uuid.to_owned());
        self
    }

    fn user(self, uuid: &str, content: Value) -> Self {
        let mut members = json!({"message": {"role": "user"}});
        members["message"]["content"] = content;
        self.entry("user", uuid, &members)
    }

    fn answer(self, uuid: &str, content: Value) -> Self {
        let mut members = json!({"message": {"id": format!("m-{uuid}"), "role": "assistant"}});
        members["message"]["content"] = content;
        self.entry("assistant", uuid, &members)
    }

    fn hook(self, uuid: &str, event: &str, call: &str) -> Self {
        let attachment = json!({"type": "hook_success", "hookEvent": event, "toolUseID": call});
        self.entry("attachment", uuid, &json!({"attachment": attachment}))
    }

    fn file(&self) -> File {
        File::new(self.lines.as_bytes())
    }

    /// The items of policy `recover`, in a word each.
    fn reported(&self) -> Vec<String> {
        let file = self.file();
        file.reported(&file.display(Policy::Recover))
    }

    fn display(&self) -> (File, ItemList) {
        let file = self.file();
        let display = file.display(Policy::Recover);
        (file, display)
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "true"}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "done"})
}

fn marks(display: &ItemList) -> Vec<ItemMarks> {
    display.items().iter().map(Item::marks).collect()
}

#[test]
fn each_block_is_an_item_and_a_string_is_one_block() {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let image = json!({"type": "image", "source": {"type": "base64", "data": ""}});
    let odd = json!({"type": "new_block"});
    let (file, display) = Session::default()
        .user("u1", json!("ask"))
        .answer("a1", json!([thinking, text("say")]))
        .user("u2", json!([image, odd, 7, text("more")]))
        .answer("a2", json!([]))
        .user("u3", json!(7))
        .display();
    let expected = [
        "ask",
        "Thinking a1.0",
        "say",
        "Media u2.0",
        "Block u2.1",
        "Block u2.2",
        "more",
        "Empty a2.0",
        "Empty u3.0",
    ];
    assert_eq!(file.reported(&display), expected);
    let mut item_reader = ItemReader::new(&display, &file.index, file.bodies());
    assert_eq!(item_reader.item(1).unwrap().text().unwrap(), "hm");
    assert_eq!(item_reader.item(5).unwrap().raw().unwrap().text(), "7");
    assert_eq!(
        item_reader
            .item(7)
            .unwrap()
            .raw()
            .map(|raw| raw.text().to_owned()),
        None
    );
}

#[test]
fn a_story_is_call_hooks_progress_result_hooks_and_additions() {
    let progress =
        json!({"data": {"type": "bash_progress"}, "toolUseID": "bash-0", "parentToolUseID": "t1"});
    let skill = json!({"isMeta": true, "sourceToolUseID": "t1",
        "message": {"role": "user", "content": [text("skill"), text("body")]}});
    let reported = Session::default()
        .user("u1", json!("ask"))
        .answer("a1", json!([call("t1")]))
        .hook("post", "PostToolUse", "t1")
        .entry("progress", "p1", &progress)
        .under("post")
        .user("r1", json!([result("t1"), text("beside")]))
        .hook("pre", "PreToolUse", "t1")
        .hook("other", "PostToolUse", "t9")
        .entry("user", "s1", &skill)
        .answer("a2", json!([text("answer")]))
        .reported();
    let expected = [
        "ask",
        "Call a1.0",
        "Attachment pre.0",
        "Progress p1.0",
        "Result r1.0",
        "Attachment post.0",
        "skill",
        "body",
        "beside",
        "Attachment other.0",
        "answer",
    ];
    assert_eq!(reported, expected);
}

#[test]
fn parallel_calls_are_stories_side_by_side_wherever_their_results_stand() {
    let (file, display) = Session::default()
        .user("u1", json!("ask"))
        .answer(
            "a1",
            json!([call("t1"), call("t2"), text("wait"), call("t3")]),
        )
        .user("r3", json!([result("t3"), result("t1")]))
        .user("u2", json!("far"))
        .user("r2", json!([result("t2")]))
        .display();
    let expected = [
        "ask",
        "Call a1.0",
        "Result r3.1",
        "Call a1.1",
        "Result r2.0",
        "wait",
        "Call a1.3",
        "Result r3.0",
        "far",
    ];
    assert_eq!(file.reported(&display), expected);
    let ranges: Vec<_> = display.groups().iter().map(|group| group.items()).collect();
    assert_eq!(ranges, [1..3, 3..5, 6..8]);
    let only = |place: usize| {
        display.items()[place]
            .marks()
            .contains(ItemMarks::ONLY_RESULT)
    };
    assert!(only(4) && !only(2) && !only(7));
}

#[test]
fn calls_without_results_and_results_without_calls_are_marked() {
    let (file, display) = Session::default()
        .user("u1", json!("ask"))
        .answer("a1", json!([call("t1")]))
        .user("r9", json!([result("t9")]))
        .answer("a2", json!([call("t2")]))
        .user("r2", json!([result("t2")]))
        .user("r2b", json!([result("t2")]))
        .display();
    let expected = [
        "ask",
        "Call a1.0",
        "Result r9.0",
        "Call a2.0",
        "Result r2.0",
        "Result r2b.0",
    ];
    assert_eq!(file.reported(&display), expected);
    let all = [
        ItemMarks::UNANSWERED,
        ItemMarks::ORPHAN,
        ItemMarks::REPEATED,
    ];
    let marks: Vec<_> = marks(&display)
        .into_iter()
        .map(|marks| marks & all.into_iter().collect::<ItemMarks>())
        .collect();
    let none = ItemMarks::empty();
    assert_eq!(
        marks,
        [
            none,
            ItemMarks::UNANSWERED,
            ItemMarks::ORPHAN,
            none,
            none,
            ItemMarks::REPEATED
        ]
    );
    assert_eq!(display.items()[2].group(), None);
    assert_eq!(display.items()[5].group(), Some((1, GroupRole::Result)));
}

#[test]
fn a_result_belongs_to_the_last_call_with_its_id_before_it() {
    let reported = Session::default()
        .answer("a1", json!([call("t")]))
        .user("r1", json!([result("t")]))
        .answer("a2", json!([call("t")]))
        .user("r2", json!([result("t")]))
        .user("r0", json!([result("late")]))
        .answer("a3", json!([call("late")]))
        .answer("a4", json!([call("late")]))
        .reported();
    let expected = [
        "Call a1.0",
        "Result r1.0",
        "Call a2.0",
        "Result r2.0",
        "Call a3.0",
        "Result r0.0",
        "Call a4.0",
    ];
    assert_eq!(reported, expected);
}

#[test]
fn tools_of_the_api_have_stories_too() {
    let search = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []});
    let (file, display) = Session::default()
        .user("u1", json!("ask"))
        .answer("a1", json!([search, text("between"), found]))
        .display();
    assert_eq!(
        file.reported(&display),
        ["ask", "Call a1.0", "Result a1.2", "between"]
    );
    assert_eq!(display.groups()[0].kind(), GroupKind::ApiCall);
    assert_eq!(display.groups()[0].tool(), "web_search");
}

#[test]
fn the_hooks_at_the_end_of_a_turn_are_after_their_summary() {
    let summary = json!({"subtype": "stop_hook_summary", "toolUseID": "run-1", "hookCount": 1});
    let progress = json!({"data": {"type": "hook_progress"}, "toolUseID": "run-1", "parentToolUseID": "run-1"});
    let (file, display) = Session::default()
        .user("u1", json!("ask"))
        .answer("a1", json!([text("answer")]))
        .hook("stop", "Stop", "run-1")
        .entry("progress", "p1", &progress)
        .under("stop")
        .user("u2", json!("next"))
        .entry("system", "sum", &summary)
        .display();
    let expected = [
        "ask",
        "answer",
        "next",
        "System sum.0",
        "Progress p1.0",
        "Attachment stop.0",
    ];
    assert_eq!(file.reported(&display), expected);
    assert_eq!(display.groups()[0].kind(), GroupKind::Hooks);
    assert!(!display.items()[3].marks().contains(ItemMarks::UNANSWERED));
}

#[test]
fn progress_of_no_call_comes_after_its_parent() {
    let progress = |id: &str| json!({"data": {"type": "hook_progress"}, "toolUseID": id, "parentToolUseID": id});
    let session = Session::default()
        .user("u1", json!("ask"))
        .entry("progress", "p1", &progress("start"))
        .entry("progress", "p2", &progress("start"))
        .answer("a1", json!([text("one"), text("two")]))
        .entry("progress", "p3", &progress("stop"))
        .under("u1")
        .user("branch", json!("rewound"));
    let (file, display) = session.display();
    // The rewind abandons the answer and its descendants.
    let reported = file.reported(&display);
    assert_eq!(
        reported,
        ["ask", "Progress p1.0", "Progress p2.0", "rewound"]
    );
}

#[test]
fn progress_belongs_to_the_last_call_with_its_id_above_it() {
    let progress =
        json!({"data": {"type": "bash_progress"}, "toolUseID": "x", "parentToolUseID": "t"});
    let reported = Session::default()
        .answer("a1", json!([call("t")]))
        .entry("progress", "p1", &progress)
        .under("a1")
        .user("r1", json!([result("t")]))
        .answer("a2", json!([call("t")]))
        .entry("progress", "p2", &progress)
        .under("lost")
        .entry("progress", "p3", &progress)
        .under("a2")
        .user("r2", json!([result("t")]))
        .reported();
    let expected = [
        "Call a1.0",
        "Progress p1.0",
        "Progress p3.0",
        "Result r1.0",
        "Call a2.0",
        "Progress p2.0",
        "Result r2.0",
    ];
    assert_eq!(reported, expected);
}

#[test]
fn progress_names_the_subagent_until_a_result_does() {
    let progress = json!({"data": {"type": "agent_progress", "agentId": "a7f"}, "toolUseID": "agent_msg", "parentToolUseID": "t1"});
    let session = Session::default()
        .answer("a1", json!([call("t1"), call("t2")]))
        .entry("progress", "p1", &progress)
        .under("a1");
    let done = json!({"toolUseResult": {"agentId": "b"}, "message": {"role": "user", "content": [result("t2")]}});
    let (_, display) = session.entry("user", "r2", &done).display();
    let agents: Vec<_> = display.groups().iter().map(|group| group.agent()).collect();
    assert_eq!(agents, [Some("a7f"), Some("b")]);
}

#[test]
fn items_that_a_client_hides_are_present_and_marked() {
    let message = json!({"role": "user", "content": "text"});
    let with = |name: &str, value: Value| json!({name: value, "message": message.clone()});
    let error = json!({"isApiErrorMessage": true,
        "message": {"id": "m", "role": "assistant", "content": [text("API Error: 500")]}});
    let (file, display) = Session::default()
        .entry("user", "meta", &with("isMeta", json!(true)))
        .entry("user", "virtual", &with("isVirtual", json!(true)))
        .entry(
            "user",
            "hidden",
            &with("isVisibleInTranscriptOnly", json!(true)),
        )
        .entry("user", "team", &with("teamName", json!("blue")))
        .entry("assistant", "error", &error)
        .entry("system", "again", &json!({"subtype": "api_error"}))
        .user("stop", json!([text("[Request interrupted by user]")]))
        .user("said", json!("What is [Request interrupted by user]?"))
        .answer("a1", json!([call("t1")]))
        .user(
            "no",
            json!([
                json!({"type": "tool_result", "tool_use_id": "t1", "is_error": true,
            "content": "The user doesn't want to take this action right now. STOP"})
            ]),
        )
        .display();
    assert_eq!(display.items().len(), 10);
    let expected = [
        ("meta", ItemMarks::META, Speaker::Client),
        ("virtual", ItemMarks::VIRTUAL, Speaker::Person),
        ("hidden", ItemMarks::TRANSCRIPT_ONLY, Speaker::Person),
        ("team", ItemMarks::TEAM, Speaker::Person),
        ("error", ItemMarks::API_ERROR, Speaker::Client),
        ("again", ItemMarks::API_ERROR, Speaker::Client),
        ("stop", ItemMarks::SYNTHETIC, Speaker::Client),
        ("said", ItemMarks::empty(), Speaker::Person),
        ("a1", ItemMarks::empty(), Speaker::Agent),
        (
            "no",
            ItemMarks::SYNTHETIC | ItemMarks::FAILED | ItemMarks::ONLY_RESULT,
            Speaker::Tool,
        ),
    ];
    for (item, (name, marks, speaker)) in display.items().iter().zip(expected) {
        assert_eq!(file.name(item.entry_no()), name);
        assert_eq!((item.marks(), item.speaker()), (marks, speaker), "{name}");
    }
    let hidden = display
        .items()
        .iter()
        .filter(|item| item.marks().intersects(ItemMarks::HIDDEN));
    assert_eq!(hidden.count(), 4);
}

#[test]
fn queued_prompt_is_a_prompt_of_the_person() {
    let queued = json!({"attachment": {"type": "queued_command", "prompt": "and this"}});
    let (_, display) = Session::default()
        .user("u1", json!("ask"))
        .entry("attachment", "q", &queued)
        .display();
    assert_eq!(display.items()[1].speaker(), Speaker::Person);
}

#[test]
fn a_line_names_its_author() {
    let message = json!({"role": "user", "content": "text"});
    let by = |key: &str, value: Value| json!({key: value, "message": message.clone()});
    let queued = |kind: &str| json!({"attachment": {"type": "queued_command", "prompt": "and this", "origin": {"kind": kind}}});
    let task =
        json!({"origin": {"kind": "coordinator"}, "isSidechain": true, "message": message.clone()});
    let (file, display) = Session::default()
        .entry("user", "human", &by("origin", json!({"kind": "human"})))
        .entry("user", "typed", &by("promptSource", json!("typed")))
        .entry("user", "hook", &by("origin", json!({"kind": "hook"})))
        .entry("user", "system", &by("promptSource", json!("system")))
        .entry("user", "sdk", &by("promptSource", json!("sdk")))
        .entry("attachment", "queued", &queued("human"))
        .entry("attachment", "peer", &queued("peer"))
        .display();
    let expected = [
        ("human", true, Speaker::Person),
        ("typed", true, Speaker::Person),
        ("hook", false, Speaker::Client),
        ("system", false, Speaker::Client),
        ("sdk", false, Speaker::Person),
        ("queued", true, Speaker::Person),
        ("peer", false, Speaker::Client),
    ];
    assert_eq!(display.items().len(), expected.len());
    for (item, (name, is_typed, speaker)) in display.items().iter().zip(expected) {
        assert_eq!(file.name(item.entry_no()), name);
        let found = (item.marks().contains(ItemMarks::TYPED), item.speaker());
        assert_eq!(found, (is_typed, speaker), "{name}");
    }
    // The first message of a subagent is its prompt, from any sender.
    let (_, display) = Session::default().entry("user", "task", &task).display();
    assert_eq!(display.items()[0].speaker(), Speaker::Person);
}

fn uuid(number: u128) -> Uuid {
    Uuid(0x0b93_2c9f_9928_4cec_9e82_22c1_703d_5f54 + (number << 64))
}

#[test]
fn once_a_message_is_split_all_later_ids_of_messages_are_derived() {
    let id = |number: u128| uuid(number).to_string();
    let (_, display) = Session::default()
        .user(&id(1), json!("ask"))
        .answer(&id(2), json!([text("one block")]))
        .answer(&id(3), json!([text("two"), text("blocks")]))
        .hook(&id(4), "Stop", "x")
        .user(&id(5), json!("a string"))
        .answer(&id(6), json!([text("one block again")]))
        .user(&id(7), json!("another"))
        .display();
    let ids: Vec<_> = display
        .items()
        .iter()
        .map(|item| item.id().to_string())
        .collect();
    let child = |number: u128, block: u64| uuid(number).child(block).to_string();
    let [one, two, hook] = [1, 2, 4].map(id);
    let [fifth, sixth, seventh] = [5, 6, 7].map(|number| child(number, 0));
    let expected = [
        one,
        two,
        child(3, 0),
        child(3, 1),
        hook,
        fifth,
        sixth,
        seventh,
    ];
    assert_eq!(ids, expected);
    assert!(ids[3].ends_with("-000000000001"));
}

#[test]
fn ids_that_cannot_be_derived_or_are_taken_are_spelled_out() {
    let first = "0b932c9f-9928-4cec-9e82-000000000001";
    let second = "0b932c9f-9928-4cec-9e82-000000000002";
    let (_, display) = Session::default()
        .user("odd", json!([text("one"), text("two")]))
        .answer(first, json!([text("three"), text("four")]))
        .user(second, json!("five"))
        .display();
    let ids: Vec<_> = display
        .items()
        .iter()
        .map(|item| item.id().to_string())
        .collect();
    let expected = [
        "odd:0",
        "odd:1",
        "0b932c9f-9928-4cec-9e82-000000000000",
        "0b932c9f-9928-4cec-9e82-000000000001",
        &format!("{second}:0"),
    ];
    assert_eq!(ids, expected);
}

fn compacted(metadata: &Value) -> Session {
    let boundary = json!({"subtype": "compact_boundary", "parentUuid": null,
        "logicalParentUuid": "a2", "compactMetadata": metadata});
    let summary = json!({"isCompactSummary": true, "isVisibleInTranscriptOnly": true,
        "message": {"role": "user", "content": "summary"}});
    Session::default()
        .user("u1", json!("first"))
        .answer("a1", json!([text("one")]))
        .user("u2", json!("second"))
        .answer("a2", json!([text("two")]))
        .entry("system", "b", &boundary)
        .entry("user", "s", &summary)
        .user("u3", json!("third"))
}

#[test]
fn a_compaction_names_the_preserved_entries() {
    let kept = json!({"anchorUuid": "s", "uuids": ["u2", "a2"], "allUuids": ["u2", "a2"]});
    let metadata = json!({"trigger": "auto", "preTokens": 9000, "postTokens": 700,
        "durationMs": 12, "preservedMessages": kept});
    let (file, display) = compacted(&metadata).display();
    let reported = file.reported(&display);
    assert_eq!(
        reported,
        ["Compaction b.0", "summary", "second", "two", "third"]
    );
    let compaction = display.compaction(&display.items()[0]).unwrap();
    assert_eq!(compaction.trigger.as_deref(), Some("auto"));
    assert_eq!(compaction.pre_tokens, Some(9000));
    assert_eq!(compaction.post_tokens, Some(700));
    assert_eq!(compaction.duration_millis, Some(12));
    assert_eq!(compaction.kept, 2);
    assert!(compaction.hidden.is_some() && !compaction.is_keeping_ignored);
    assert_eq!(file.name(compaction.summary.unwrap()), "s");
    let kept: Vec<_> = marks(&display)
        .iter()
        .map(|marks| marks.contains(ItemMarks::KEPT))
        .collect();
    assert_eq!(kept, [false, false, true, true, false]);
    assert_eq!(display.items()[1].speaker(), Speaker::Summary);
    assert!(
        display.items()[1]
            .marks()
            .contains(ItemMarks::SUMMARY | ItemMarks::TRANSCRIPT_ONLY)
    );
    assert_eq!(display.compaction(&display.items()[1]), None);
}

#[test]
fn a_compaction_that_keeps_nothing_or_names_what_is_lost_says_so() {
    let (_, display) = compacted(&json!({"trigger": "manual"})).display();
    let compaction = &display.compactions()[0];
    assert_eq!((compaction.kept, compaction.hidden), (0, Some(4)));
    assert!(compaction.form.is_none() && !compaction.is_keeping_ignored);

    let kept = json!({"anchorUuid": "s", "uuids": ["never-written"]});
    let file = compacted(&json!({"preservedMessages": kept})).file();
    let display = file.display(Policy::Vendor);
    let compaction = &display.compactions()[0];
    assert!(compaction.is_keeping_ignored && compaction.form.is_some());
    assert_eq!(compaction.pre_tokens, None);
}

#[test]
fn progress_from_before_a_compaction_is_not_read() {
    let kept = json!({"anchorUuid": "s", "uuids": ["u2", "a2"]});
    let progress = json!({"data": {"type": "hook_progress"}, "toolUseID": "x"});
    let (file, _) = compacted(&json!({"preservedMessages": kept}))
        .under("a1")
        .entry("progress", "left-behind", &progress)
        .under("a2")
        .entry("progress", "kept", &progress)
        .under("u3")
        .answer("a3", json!([text("three")]))
        .display();
    let mut bodies = Counting {
        bodies: file.bodies(),
        asked: HashMap::new(),
    };
    let tree = Tree::new(&file.index, Policy::Recover);
    ItemList::new(&tree, &tree.path(), &mut bodies).unwrap();
    let asked = |name: &str| {
        bodies
            .asked
            .keys()
            .any(|entry_ref| file.name(*entry_ref) == name)
    };
    assert!(asked("kept") && !asked("left-behind") && !asked("a1"));
}

#[test]
fn gaps_and_bridges_are_on_the_first_block_with_their_decisions() {
    let lines = Session::default()
        .user("u1", json!("ask"))
        .answer("a1", json!([call("t1")]))
        .under("lost")
        .user("r1", json!([result("t1"), text("and")]))
        .under("r1")
        .answer("a2", json!([text("answer")]));
    let (file, display) = lines.display();
    assert_eq!(
        file.reported(&display),
        ["ask", "Call a1.0", "Result r1.0", "and", "answer"]
    );
    let bridged: Vec<_> = marks(&display)
        .iter()
        .map(|marks| marks.contains(ItemMarks::BRIDGED))
        .collect();
    assert_eq!(bridged, [false, false, true, false, false]);
    let decisions = display.decisions(&display.items()[2]);
    assert!(
        matches!(decisions, [Decision::Bridge { .. }]),
        "{decisions:?}"
    );

    let alone = Session::default()
        .under("lost")
        .user("u1", json!([text("one"), text("two")]));
    let (_, display) = alone.display();
    let gaps: Vec<_> = marks(&display)
        .iter()
        .map(|marks| marks.contains(ItemMarks::GAP))
        .collect();
    assert_eq!(gaps, [true, false]);
}

#[test]
fn recovered_entries_are_marked() {
    let session = Session::default()
        .user("u1", json!("ask"))
        .answer("a1", json!([text("answer")]));
    let torn = session
        .lines
        .replacen("{\"message\"", "{\"torn\":\"x{\"message\"", 1);
    assert_ne!(torn, session.lines);
    let file = File::new(torn.as_bytes());
    let display = file.display(Policy::Recover);
    let salvaged: Vec<_> = marks(&display)
        .iter()
        .map(|marks| marks.contains(ItemMarks::SALVAGED))
        .collect();
    assert_eq!(
        (file.reported(&display), salvaged),
        (
            vec!["ask".to_owned(), "answer".to_owned()],
            vec![true, false]
        )
    );
}

#[test]
fn entries_that_were_tombstoned_are_gone_or_marked() {
    let engine = json!({"type": "transcriptEngine", "v": 1, "tombstone": "a1"});
    let mut session = Session::default()
        .user("u1", json!("ask"))
        .answer("a1", json!([text("taken back")]));
    writeln!(session.lines, "{engine}").unwrap();
    let file = session.file();
    assert_eq!(file.reported(&file.display(Policy::Recover)), ["ask"]);
    let display = file.display(Policy::Vendor);
    assert_eq!(file.reported(&display), ["ask", "taken back"]);
    assert!(!display.items()[0].marks().contains(ItemMarks::TOMBSTONED));
    assert!(display.items()[1].marks().contains(ItemMarks::TOMBSTONED));
}

/// Gives other bodies than the index was made from, as a file that changed does.
struct Changed(&'static str);

impl BodySource for Changed {
    type Error = Error;

    fn body(&mut self, _: &EntryRef<'_>) -> Result<&str, Error> {
        Ok(self.0)
    }
}

#[test]
fn an_entry_whose_body_cannot_be_used_says_so() {
    let (file, _) = Session::default()
        .user("u1", json!("ask"))
        .answer("a1", json!([call("t1"), text("x")]))
        .display();
    let tree = Tree::new(&file.index, Policy::Recover);
    for body in ["", "[]", "{", "{\"type\":\"system\"}"] {
        let display = ItemList::new(&tree, &tree.path(), &mut Changed(body)).unwrap();
        assert_eq!(
            file.reported(&display),
            ["Unusable u1.0", "Unusable a1.0"],
            "{body}"
        );
    }
    // One that lost its message holds no block.
    let body = "{\"type\":\"user\",\"message\":7}";
    let display = ItemList::new(&tree, &tree.path(), &mut Changed(body)).unwrap();
    assert_eq!(file.reported(&display), ["Empty u1.0", "Unusable a1.0"]);
}

#[test]
fn a_file_that_changes_while_it_is_drawn_gives_nothing_and_no_panic() {
    let (file, display) = Session::default()
        .user("u1", json!("grüße"))
        .answer("a1", json!([call("t1"), text("x")]))
        .user("r1", json!([result("t1")]))
        .display();
    for body in [
        "",
        "{}",
        "[]",
        "{\"type\":\"system\"}",
        "ü",
        "üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü",
    ] {
        let mut item_reader = ItemReader::new(&display, &file.index, Changed(body));
        for place in 0..display.items().len() {
            let loaded = item_reader.item(place).unwrap();
            assert!(
                loaded.entry().is_none() && loaded.text().is_none(),
                "{body}"
            );
            assert!(
                loaded.block().is_none() && loaded.tool_use_result().is_none(),
                "{body}"
            );
        }
    }
}

#[test]
fn the_result_in_the_form_of_the_tool_is_at_hand() {
    let done = json!({"toolUseResult": {"stdout": "out", "interrupted": false},
        "message": {"role": "user", "content": [result("t1")]}});
    let both = json!({"toolUseResult": {"stdout": "whose?"},
        "message": {"role": "user", "content": [result("t2"), result("t3")]}});
    let (file, display) = Session::default()
        .answer("a1", json!([call("t1"), call("t2"), call("t3")]))
        .entry("user", "r1", &done)
        .entry("user", "r2", &both)
        .display();
    let mut item_reader = ItemReader::new(&display, &file.index, file.bodies());
    let raw = |item_reader: &mut ItemReader<'_, Bodies<'_>>, place: usize| {
        let loaded = item_reader.item(place).unwrap();
        let (group, _) = loaded.item().group().unwrap();
        let result = loaded.tool_use_result()?;
        let output = result.output(display.groups()[group].tool())?;
        output.raw().object()?.str("stdout").map(String::from)
    };
    assert_eq!(raw(&mut item_reader, 0), None, "a call");
    assert_eq!(raw(&mut item_reader, 1).as_deref(), Some("out"));
    assert_eq!(raw(&mut item_reader, 3), None, "one of two results");
}

/// Counts how often each body is asked for.
struct Counting<'s> {
    bodies: Bodies<'s>,
    asked: HashMap<EntryNo, usize>,
}

impl BodySource for Counting<'_> {
    type Error = Error;

    fn body(&mut self, entry_ref: &EntryRef<'_>) -> Result<&str, Error> {
        *self.asked.entry(entry_ref.number()).or_default() += 1;
        self.bodies.body(entry_ref)
    }
}

#[test]
fn each_body_is_asked_for_once_to_group_and_once_to_draw() {
    for seed in 0..60 {
        let file = File::new(&tangled(seed));
        for policy in POLICIES {
            let mut bodies = Counting {
                bodies: file.bodies(),
                asked: HashMap::new(),
            };
            let tree = Tree::new(&file.index, policy);
            let display = ItemList::new(&tree, &tree.path(), &mut bodies).unwrap();
            assert!(bodies.asked.values().all(|times| *times == 1), "{seed}");
            bodies.asked.clear();
            let mut item_reader = ItemReader::new(&display, &file.index, &mut bodies);
            for place in 0..display.items().len() {
                item_reader.item(place).unwrap();
            }
            assert!(bodies.asked.values().all(|times| *times == 1), "{seed}");
        }
    }
}

#[test]
fn bodies_over_the_cap_that_alternate_are_read_once() {
    // Calls on one line and their results on another, both longer than what is kept of many lines.
    let ids: Vec<String> = (0..4).map(|number| format!("t{number}")).collect();
    let padding = "x".repeat(5 << 20);
    let calls: Value = ids.iter().map(|id| call(id)).collect();
    let results: Value = ids
        .iter()
        .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": padding}))
        .collect();
    let mut calls = calls;
    calls[0]["input"] = json!({"padding": "x".repeat(20 << 20)});
    let session = Session::default();
    let session = session.user("u1", json!("words"));
    let session = session.answer("a1", calls).user("r1", results);
    let file = File::new(session.lines.as_bytes());
    let mut bodies = Counting {
        bodies: file.bodies(),
        asked: HashMap::new(),
    };
    let tree = Tree::new(&file.index, Policy::Recover);
    let display = ItemList::new(&tree, &tree.path(), &mut bodies).unwrap();
    bodies.asked.clear();
    let mut item_reader = ItemReader::new(&display, &file.index, &mut bodies);
    for place in 0..display.items().len() {
        item_reader.item(place).unwrap();
    }
    assert!(display.items().len() >= 9, "{}", display.items().len());
    assert!(
        bodies.asked.values().all(|times| *times == 1),
        "{:?}",
        bodies.asked
    );
}

fn one<'s>(rng: &mut Rng, of: &[&'s str]) -> &'s str {
    of[rng.below(of.len())]
}

/// A session in which everything belongs to anything: few ids, any order.
fn tangled(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut session = Session::default();
    for number in 0..rng.range(1, 40) {
        let uuid = uuid(number as u128 + 1).to_string();
        let ids = ["t1", "t2", "t3", "t4", "run"];
        let id = one(&mut rng, &ids);
        let blocks = |rng: &mut Rng, make: fn(&str) -> Value| {
            let count = rng.range(1, 3);
            let block = |rng: &mut Rng| match rng.below(4) {
                0 => text("words"),
                _ => make(one(rng, &["t1", "t2", "t3", "t4", ""])),
            };
            (0..count).map(|_| block(rng)).collect::<Value>()
        };
        session = match rng.below(10) {
            0 => session.user(&uuid, json!("words")),
            1 | 2 => session.answer(&uuid, blocks(&mut rng, call)),
            3 | 4 => session.user(&uuid, blocks(&mut rng, result)),
            5 => {
                let event = one(&mut rng, &["PreToolUse", "PostToolUse", "Stop"]);
                session.hook(&uuid, event, id)
            }
            6 => {
                let notice = json!({"attachment": {"type": "file", "toolUseID": id}});
                session.entry("attachment", &uuid, &notice)
            }
            7 => {
                let system = one(&mut rng, &["stop_hook_summary", "informational"]);
                let members = json!({"subtype": system, "toolUseID": id});
                session.entry("system", &uuid, &members)
            }
            8 => {
                let content = if rng.one_in(2) {
                    json!("words")
                } else {
                    blocks(&mut rng, result)
                };
                let members = json!({"isMeta": !rng.one_in(4), "sourceToolUseID": id,
                    "message": {"role": "user", "content": content}});
                session.entry("user", &uuid, &members)
            }
            _ => {
                let above = session.last.clone();
                let progress = json!({"data": {"type": "bash_progress"}, "toolUseID": "p",
                    "parentToolUseID": id});
                let mut session = session.entry("progress", &uuid, &progress);
                if rng.one_in(2) {
                    session.last = above;
                }
                session
            }
        };
    }
    session.lines.into_bytes()
}

/// A block as the slow model sees it.
#[derive(Debug)]
struct Seen {
    entry_no: EntryNo,
    block: usize,
    opens: Option<String>,
    belongs: Option<(String, usize)>,
}

fn seen_in(entry_no: EntryNo, entry: &Value) -> Vec<Seen> {
    let seen = |block: usize, opens: Option<&str>, belongs: Option<(&str, usize)>| Seen {
        entry_no,
        block,
        opens: opens.map(str::to_owned),
        belongs: belongs
            .filter(|(id, _)| !id.is_empty())
            .map(|(id, part)| (id.to_owned(), part)),
    };
    let kind = entry["type"].as_str().unwrap();
    if kind == "attachment" {
        let attachment = &entry["attachment"];
        let part = match attachment["hookEvent"].as_str() {
            Some("PreToolUse" | "PermissionRequest") => 1,
            Some(_) => 4,
            None => 5,
        };
        let id = attachment["toolUseID"].as_str();
        return vec![seen(0, None, id.map(|id| (id, part)))];
    }
    if kind != "user" && kind != "assistant" {
        let id = entry["toolUseID"]
            .as_str()
            .filter(|_| entry["subtype"] != "compact_boundary");
        let opens = id.filter(|id| !id.is_empty() && entry["subtype"] == "stop_hook_summary");
        return vec![seen(0, opens, id.map(|id| (id, 5)))];
    }
    let added = entry["sourceToolUseID"]
        .as_str()
        .filter(|_| kind == "user" && entry["isMeta"] == true);
    let added = added.map(|id| (id, 5));
    let blocks = entry["message"]["content"].as_array();
    let Some(blocks) = blocks.filter(|blocks| !blocks.is_empty()) else {
        return vec![seen(0, None, added)];
    };
    let of_block = |(place, block): (usize, &Value)| match block["type"].as_str().unwrap_or("") {
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            seen(place, Some(block["id"].as_str().unwrap_or("")), None)
        }
        name if name.ends_with("tool_result") => seen(
            place,
            None,
            Some((block["tool_use_id"].as_str().unwrap_or(""), 3)),
        ),
        _ => seen(place, None, added),
    };
    blocks.iter().enumerate().map(of_block).collect()
}

/// The order of the blocks of a path: quadratic, and by the words of the documentation.
fn slow_order(seen: &[Seen]) -> Vec<(EntryNo, usize)> {
    // The summary of hooks opens a group unless there is one with its id.
    let opens = |at: usize| {
        let block = &seen[at];
        let id = block.opens.as_ref()?;
        let is_hooks = block.belongs.is_some();
        let is_known = seen[..at]
            .iter()
            .any(|other| other.opens.as_ref() == Some(id));
        (!is_hooks || !is_known).then_some(id)
    };
    let owner = |at: usize| {
        let (id, part) = seen[at].belongs.as_ref().filter(|_| opens(at).is_none())?;
        let before = (0..at).rev().find(|other| opens(*other) == Some(id));
        let after = || (at..seen.len()).find(|other| opens(*other) == Some(id));
        Some((before.or_else(after)?, *part))
    };
    let owners: Vec<_> = (0..seen.len()).map(owner).collect();
    let mut order = Vec::new();
    for at in 0..seen.len() {
        if owners[at].is_some() {
            continue;
        }
        order.push(at);
        for part in 1..6 {
            let own = |other: &usize| owners[*other] == Some((at, part));
            order.extend((0..seen.len()).filter(own));
        }
    }
    let named = order
        .into_iter()
        .map(|at| (seen[at].entry_no, seen[at].block));
    named.collect()
}

/// A body as plain values. Where a lone surrogate is in it, all surrogates are gone.
fn value(text: &str) -> Option<Value> {
    let whole = serde_json::from_str(text).ok();
    whole.or_else(|| {
        let text = text.replace("\\uD", "\\ud");
        let mut pieces = text.split("\\ud");
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            text += "\\ufffd";
            text += piece.get(3..).unwrap_or_default();
        }
        serde_json::from_str(&text).ok()
    })
}

/// Checks what holds for the display of any path, against the slow model.
fn check(name: &str, file: &File, policy: Policy) {
    let tree = Tree::new(&file.index, policy);
    let path = tree.path();
    let display = ItemList::new(&tree, &path, &mut file.bodies()).unwrap();
    let mut bodies = file.bodies();
    let mut seen = Vec::new();
    for entry in &path.entries {
        let entry_ref = file.index.entry(entry.entry_no());
        let text = bodies.get(&entry_ref).unwrap().text;
        match value(text) {
            Some(body) => seen.extend(seen_in(entry_ref.number(), &body)),
            None => seen.push(Seen {
                entry_no: entry_ref.number(),
                block: 0,
                opens: None,
                belongs: None,
            }),
        }
    }
    let shown = display
        .items()
        .iter()
        .filter(|item| item.kind() != ItemKind::Progress);
    let shown: Vec<_> = shown.map(|item| (item.entry_no(), item.block())).collect();
    assert_eq!(shown, slow_order(&seen), "{name} under {}", policy.name());

    let ids: HashSet<_> = display.items().iter().map(|item| item.id()).collect();
    assert_eq!(ids.len(), display.items().len(), "{name}: ids are unique");
    check_progress(name, file, &tree, &display);
    check_groups(name, &display);
    check_drawing(name, file, &display);
    check_growth(name, file, &tree, &path, &display);
    for cut in [Cut::AtPrompts, Cut::Anywhere] {
        check_parts(name, file, &tree, &path, &display, cut);
    }
}

/// The lists of all parts are the list of the path.
fn check_parts(
    name: &str,
    file: &File,
    tree: &Tree<'_>,
    path: &ConversationPath,
    display: &ItemList,
    cut: Cut,
) {
    let displays = Displays::new(tree);
    let (mut named, end) = (Vec::new(), path.entries.len());
    for places in [0..end / 2, end / 2..end] {
        let bodies = || file.bodies();
        let added = displays.calls_named(path, places, &mut named, bodies);
        added.unwrap();
    }
    let parts = displays.divide(path, 1..1, &named, cut);
    let mut displays = Displays::new(tree);
    let mut place = 0;
    for part in &parts {
        let texts = HeldTexts::read(&file.index, part, &mut file.bodies()).unwrap();
        let held = HeldBodies::parse(&texts);
        let list = displays.display_held(part, &held, &mut file.bodies());
        let list = list.unwrap();
        let (mut own, mut whole) = (
            ItemReader::new(&list, &file.index, file.bodies()).holding(&held),
            ItemReader::new(display, &file.index, file.bodies()),
        );
        let offset = place;
        for at in 0..list.items().len() {
            let (one, other) = (own.item(at).unwrap(), whole.item(place).unwrap());
            let (one, other) = (facts(&list, &one, 0), facts(display, &other, offset));
            assert_eq!(one, other, "{name}");
            place += 1;
        }
    }
    assert_eq!(place, display.items().len(), "{name}");
    PARTS.fetch_add(parts.len(), Ordering::Relaxed);
}

/// How many parts were compared.
static PARTS: AtomicUsize = AtomicUsize::new(0);

/// All that an item says, except for its id and the numbers of items before `offset`.
fn facts(list: &ItemList, loaded: &LoadedItem<'_>, offset: usize) -> String {
    let item = loaded.item();
    let group = item.group().map(|(group, role)| {
        let group = &list.groups()[group];
        let items = group.items().start - offset..group.items().end - offset;
        let names = (group.id(), group.tool(), group.agent());
        (group.kind(), names, items, role)
    });
    let compaction = list.compaction(item).cloned().map(|mut compaction| {
        compaction.summary = None;
        compaction
    });
    let number = (item.entry_no(), item.block());
    let kinds = (item.kind(), item.speaker());
    let facts = (number, kinds, item.marks(), list.decisions(item));
    format!("{facts:?} {group:?} {:?} {compaction:?}", loaded.raw())
}

/// Each line of progress below the path once: in the group that it names, if there is one.
fn check_progress(name: &str, file: &File, tree: &Tree<'_>, display: &ItemList) {
    let shown = display.items().iter();
    let is_progress = |item: &&Item| item.kind() == ItemKind::Progress;
    let on_path = shown.clone().filter(|item| !is_progress(item));
    let on_path: HashSet<_> = on_path.map(Item::entry_no).collect();
    let story_ids: HashSet<_> = display.groups().iter().map(|group| group.id()).collect();
    let mut expected = Vec::new();
    let mut bodies = file.bodies();
    for line in file.index.entries() {
        let is_salvaged = line.is_salvaged() && tree.policy() == Policy::Vendor;
        if line.kind() != EntryKind::Progress || is_salvaged {
            continue;
        }
        let Some(body) = value(bodies.get(&line).unwrap().text) else {
            continue;
        };
        let names = ["parentToolUseID", "toolUseID"].map(|key| body[key].as_str().unwrap_or(""));
        let group = names
            .into_iter()
            .find(|id| !id.is_empty() && story_ids.contains(id));
        let is_under_path = match entry_above(file, tree, &line) {
            Some(above) => above.is_some_and(|above| on_path.contains(&above)),
            None => group.is_some(),
        };
        if is_under_path {
            expected.push((line.number(), group.map(str::to_owned)));
        }
    }
    let reported = shown.filter(is_progress).map(|item| {
        let group = item.group().map(|(group, part)| {
            assert_eq!(part, GroupRole::Progress, "{name}");
            display.groups()[group].id().to_owned()
        });
        (item.entry_no(), group)
    });
    let mut reported: Vec<_> = reported.collect();
    reported.sort();
    assert_eq!(reported, expected, "{name} under {}", tree.policy().name());
}

/// Returns the parent of a line of progress, past other lines of progress, if it is in the tree;
/// `None` when there is none.
fn entry_above(file: &File, tree: &Tree<'_>, line: &EntryRef<'_>) -> Option<Option<EntryNo>> {
    let mut at = line.parent()?;
    for _ in 0..file.index.len() {
        if let Some(node) = tree.node_with_uuid(at) {
            return Some(Some(tree.entry(node).number()));
        }
        let above = file.index.entry(file.index.with_uuid(at).last()?);
        if above.kind() != EntryKind::Progress {
            return Some(None);
        }
        at = above.parent()?;
    }
    None
}

/// Checks that call groups are runs of items in the order of their roles, and that marks agree with
/// them.
fn check_groups(name: &str, display: &ItemList) {
    let mut in_groups = 0;
    for (number, group) in display.groups().iter().enumerate() {
        let parts: Vec<_> = display.items()[group.items()]
            .iter()
            .map(|item| {
                let (group, part) = item.group().unwrap();
                assert_eq!(group, number, "{name}");
                part
            })
            .collect();
        in_groups += parts.len();
        assert!(parts.is_sorted(), "{name}: {parts:?}");
        let count = |part: GroupRole| parts.iter().filter(|other| **other == part).count();
        assert_eq!(count(GroupRole::Opening), 1, "{name}");
        let own = &display.items()[group.items()];
        let marked = |mark: ItemMarks| {
            own.iter()
                .filter(|item| item.marks().contains(mark))
                .count()
        };
        let is_open = count(GroupRole::Result) == 0 && group.kind() != GroupKind::Hooks;
        assert_eq!(
            marked(ItemMarks::UNANSWERED),
            usize::from(is_open),
            "{name}"
        );
        assert_eq!(
            marked(ItemMarks::REPEATED),
            count(GroupRole::Result).saturating_sub(1),
            "{name}"
        );
    }
    let others = display.items().iter().filter(|item| item.group().is_none());
    for item in others.clone() {
        let is_result = item.kind() == ItemKind::Result;
        assert_eq!(
            item.marks().contains(ItemMarks::ORPHAN),
            is_result,
            "{name}"
        );
        assert_ne!(item.kind(), ItemKind::Call, "{name}");
    }
    assert_eq!(in_groups + others.count(), display.items().len(), "{name}");
}

/// The text shown is the text in the file.
fn check_drawing(name: &str, file: &File, display: &ItemList) {
    let mut bodies = file.bodies();
    let mut item_reader = ItemReader::new(display, &file.index, file.bodies());
    for place in 0..display.items().len() {
        let loaded = item_reader.item(place).unwrap();
        let item = loaded.item();
        let entry_ref = file.index.entry(item.entry_no());
        let body = bodies.get(&entry_ref).unwrap();
        if item.kind() == ItemKind::Unusable {
            assert!(loaded.raw().is_none());
            continue;
        }
        assert_eq!(loaded.entry().unwrap().text(), body.text.trim(), "{name}");
        // Not all that the parser keeps is something that `Value` can hold.
        let Ok(body) = serde_json::from_str::<Value>(body.text) else {
            continue;
        };
        let content = &body["message"]["content"];
        let expected = match content {
            Value::String(_) => Some(content),
            _ => content.get(item.block()),
        };
        let expected = expected.filter(|_| entry_ref.kind().is_message());
        let raw = loaded
            .raw()
            .map(|raw| serde_json::from_str::<Value>(raw.text()).unwrap());
        assert_eq!(raw.as_ref(), expected, "{name}");
        assert_eq!(loaded.text().is_some(), has_text(item, expected), "{name}");
    }
}

fn has_text(item: &Item, block: Option<&Value>) -> bool {
    let field = match item.kind() {
        ItemKind::Text => "text",
        ItemKind::Thinking => "thinking",
        _ => return block.is_some_and(Value::is_string),
    };
    block.is_some_and(|block| block.is_string() || block[field].is_string())
}

/// Ids stay the same when the conversation continues.
fn check_growth(
    name: &str,
    file: &File,
    tree: &Tree<'_>,
    path: &ConversationPath,
    display: &ItemList,
) {
    let Some(middle) = path.entries.get(path.entries.len() / 2) else {
        return;
    };
    let mut before = path.clone();
    assert!(before.cut_after(middle.entry_no()));
    let before = ItemList::new(tree, &before, &mut file.bodies()).unwrap();
    let key = |item: &Item| (item.entry_no(), item.block());
    let later: HashMap<_, _> = display
        .items()
        .iter()
        .map(|item| (key(item), item.id()))
        .collect();
    for item in before.items() {
        assert_eq!(later[&key(item)], item.id(), "{name}");
    }
}

#[test]
fn the_order_of_tangled_stories_is_that_of_the_slow_model() {
    for seed in 0..1500 {
        let file = File::new(&tangled(seed));
        for policy in POLICIES {
            check(&format!("tangled {seed}"), &file, policy);
        }
    }
    assert!(PARTS.load(Ordering::Relaxed) > 2 * 2 * 1500);
}

#[test]
fn displays_of_generated_and_damaged_sessions_leave_nothing_out() {
    for seed in 0..400 {
        let bytes = generate::session(seed);
        let hurt = damage::damage(&bytes, seed);
        for (name, bytes) in [("session", bytes), ("damaged", hurt.0)] {
            let file = File::new(&bytes);
            for policy in POLICIES {
                check(&format!("{name} {seed}"), &file, policy);
            }
        }
    }
}

#[test]
fn displays_of_real_and_oracle_sessions_leave_nothing_out() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    let mut paths = Vec::new();
    transcripts_under(&shared.join("corpus/files"), &mut paths);
    paths.extend(oracle::cases("oracle").into_iter().map(|case| case.input));
    assert!(paths.len() > 400, "{}", paths.len());
    for path in paths {
        let file = File::new(&fs::read(&path).unwrap());
        for policy in POLICIES {
            check(&path.display().to_string(), &file, policy);
        }
        check_sidechains(&file);
    }
}

/// Each entry of a sidechain belongs to one subagent.
fn check_sidechains(file: &File) {
    let tree = Tree::new(&file.index, Policy::Recover);
    let mut entries: Vec<EntryNo> = Vec::new();
    for (_, path) in sidechains(&tree) {
        ItemList::new(&tree, &path, &mut file.bodies()).unwrap();
        entries.extend(path.entries.iter().map(|entry| entry.entry_no()));
    }
    let is_sidechain = |entry_ref: &EntryRef<'_>| {
        let node = tree.node(entry_ref.number());
        let counts = |node| tree.entry(node).number() == entry_ref.number();
        node.is_some_and(|node| tree.is_sidechain(node) && counts(node))
    };
    let expected = file.index.entries().filter(is_sidechain);
    let expected: Vec<EntryNo> = expected.map(|entry_ref| entry_ref.number()).collect();
    entries.sort_unstable();
    assert_eq!(entries, expected);
}

fn task(id: &str, prompt: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Task", "input": {"prompt": prompt}})
}

/// The file of a subagent that was asked `prompt` and makes calls, each with a result.
fn agent(prompt: &str, calls: &[Value]) -> (File, ItemList) {
    let mut session = Session::default().user(&format!("p-{prompt}"), json!(prompt));
    for call in calls {
        let id = call["id"].as_str().unwrap();
        session = session
            .answer(&format!("a-{id}"), json!([call]))
            .user(&format!("r-{id}"), json!([result(id)]));
    }
    session.display()
}

fn origin(agent: &str, call: Option<&str>, parent: Option<&str>) -> SubagentOrigin {
    SubagentOrigin {
        agent: Some(agent.to_owned()),
        tool_use_id: call.map(str::to_owned),
        parent_agent: parent.map(str::to_owned),
    }
}

/// Walks all lists: the depth of each item and its content.
fn walked(files: &[(File, ItemList)], origins: &[SubagentOrigin]) -> Vec<String> {
    let displays: Vec<&ItemList> = files.iter().map(|(_, display)| display).collect();
    let nesting = Nesting::new(&displays, origins);
    let reported: Vec<_> = files
        .iter()
        .map(|(file, display)| file.reported(display))
        .collect();
    let steps = nesting.walk(&displays);
    steps
        .map(|step| {
            format!(
                "{}{}",
                "> ".repeat(step.depth),
                reported[step.display][step.item]
            )
        })
        .collect()
}

#[test]
fn subagents_are_under_the_calls_that_metadata_name_at_any_depth() {
    let files = [
        agent("main", &[task("t1", "one"), task("t2", "two")]),
        agent("two", &[]),
        agent("deep", &[]),
        agent("one", &[task("t3", "x")]),
    ];
    let origins = [
        origin("b", Some("t2"), None),
        origin("c", Some("t3"), Some("a")),
        origin("a", Some("t1"), None),
    ];
    let expected = [
        "main",
        "Call a-t1.0",
        "> one",
        "> Call a-t3.0",
        "> > deep",
        "> Result r-t3.0",
        "Result r-t1.0",
        "Call a-t2.0",
        "> two",
        "Result r-t2.0",
    ];
    assert_eq!(walked(&files, &origins), expected);
}

#[test]
fn the_parent_that_metadata_name_decides_between_equal_calls() {
    let files = [
        agent("main", &[task("t", "x")]),
        agent("one", &[task("t", "x")]),
        agent("deep", &[]),
    ];
    let origins = [origin("a", None, None), origin("b", Some("t"), Some("a"))];
    let expected = [
        "main",
        "Call a-t.0",
        "Result r-t.0",
        "> one",
        "> Call a-t.0",
        "> > deep",
        "> Result r-t.0",
    ];
    assert_eq!(walked(&files, &origins), expected);
}

#[test]
fn subagents_without_metadata_are_placed_by_results_and_prompts() {
    let done = json!({"toolUseResult": {"agentId": "a7"},
        "message": {"role": "user", "content": [result("t1")]}});
    let main = Session::default()
        .answer(
            "a1",
            json!([task("t1", "same"), task("t2", "same"), task("t3", "same")]),
        )
        .entry("user", "r1", &done)
        .display();
    let files = [
        main,
        agent("same", &[]),
        agent("same", &[]),
        agent("same", &[]),
        agent("same", &[]),
    ];
    let origins = [
        SubagentOrigin::default(),
        origin("a7", None, None),
        SubagentOrigin::default(),
        SubagentOrigin::default(),
    ];
    let displays: Vec<&ItemList> = files.iter().map(|(_, display)| display).collect();
    let nesting = Nesting::new(&displays, &origins);
    let places: Vec<_> = (0..5).map(|display| nesting.parent(display)).collect();
    let under = |group: usize| Some((0, Some(group)));
    assert_eq!(
        places,
        [None, under(1), under(0), under(2), Some((0, None))]
    );
    assert_eq!(nesting.under(0, Some(1)), [1]);
    assert_eq!(nesting.under(0, None), [4]);
}

#[test]
fn a_call_that_metadata_name_is_not_taken_by_its_prompt() {
    let files = [
        agent("main", &[task("t1", "x"), task("t2", "x")]),
        agent("x", &[]),
        agent("x", &[]),
    ];
    let displays: Vec<&ItemList> = files.iter().map(|(_, display)| display).collect();
    let nesting = Nesting::new(
        &displays,
        &[SubagentOrigin::default(), origin("a", Some("t1"), None)],
    );
    assert_eq!(nesting.parent(2), Some((0, Some(0))));
    assert_eq!(nesting.parent(1), Some((0, Some(1))));
}

#[test]
fn an_open_call_at_the_end_shows_its_subagent_before_those_without_a_call() {
    let main = Session::default()
        .answer("a1", json!([task("t1", "one")]))
        .display();
    let files = [main, agent("lost", &[]), agent("one", &[])];
    let origins = [
        origin("x", Some("gone"), None),
        origin("y", Some("t1"), None),
    ];
    assert_eq!(walked(&files, &origins), ["Call a1.0", "> one", "> lost"]);
}

#[test]
fn circles_of_metadata_end_and_nothing_is_lost() {
    let files = [
        agent("main", &[]),
        agent("one", &[task("t1", "x")]),
        agent("two", &[task("t2", "x")]),
        agent("self", &[task("t3", "x")]),
        agent("below", &[]),
    ];
    let origins = [
        origin("a", Some("t2"), Some("b")),
        origin("b", Some("t1"), Some("a")),
        origin("c", Some("t3"), Some("c")),
        origin("d", None, Some("b")),
    ];
    let reported = walked(&files, &origins);
    let expected = [
        "main",
        "> one",
        "> Call a-t1.0",
        "> > two",
        "> > Call a-t2.0",
        "> > Result r-t2.0",
        "> > > below",
        "> Result r-t1.0",
        "> self",
        "> Call a-t3.0",
        "> Result r-t3.0",
    ];
    assert_eq!(reported, expected);
}

#[test]
fn a_subagent_that_names_a_call_of_its_own_is_at_the_end_of_its_parent() {
    let files = [
        agent("main", &[]),
        agent("one", &[]),
        agent("self", &[task("t", "x")]),
    ];
    let origins = [origin("a", None, None), origin("b", Some("t"), Some("a"))];
    let expected = [
        "main",
        "> one",
        "> > self",
        "> > Call a-t.0",
        "> > Result r-t.0",
    ];
    assert_eq!(walked(&files, &origins), expected);
}

#[test]
fn subagents_are_below_calls_of_branches_too() {
    let files = [
        agent("main", &[task("t1", "one")]),
        agent("two", &[]),
        agent("three", &[task("t4", "four")]),
        agent("four", &[]),
        agent("branch", &[task("t2", "two"), task("t3", "three")]),
        agent("other", &[]),
    ];
    let origins = [
        origin("a", Some("t2"), None),
        origin("b", None, None),
        origin("c", Some("t4"), Some("b")),
    ];
    let displays: Vec<&ItemList> = files.iter().map(|(_, display)| display).collect();
    let nesting = Nesting::new(&displays, &origins);
    let places: Vec<_> = (0..6).map(|display| nesting.parent(display)).collect();
    let under = |display: usize, group: usize| Some((display, Some(group)));
    assert_eq!(
        places,
        [None, under(4, 0), under(4, 1), under(2, 0), None, None]
    );
}

#[test]
fn any_metadata_give_each_display_one_place_and_each_item_once() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let names = ["a", "b", "c", "d", "e", "f"];
        let calls = ["t0", "t1", "t2", "t3"];
        let count = rng.range(0, 6);
        let file = |rng: &mut Rng| {
            let made = (0..rng.below(3)).map(|_| task(one(rng, &calls), one(rng, &names)));
            let made: Vec<Value> = made.collect();
            let mut seen = HashSet::new();
            let made = made
                .into_iter()
                .filter(|call| seen.insert(call["id"].clone()));
            agent(one(rng, &names), &made.collect::<Vec<_>>())
        };
        let branches = rng.range(0, 2);
        let files = (0..=count + branches).map(|_| file(&mut rng));
        let files: Vec<_> = files.collect();
        let maybe = |rng: &mut Rng, of: &[&str]| rng.one_in(2).then(|| one(rng, of).to_owned());
        let origins = (0..count).map(|_| SubagentOrigin {
            agent: maybe(&mut rng, &names),
            tool_use_id: maybe(&mut rng, &calls),
            parent_agent: maybe(&mut rng, &names),
        });
        let origins: Vec<_> = origins.collect();
        let displays: Vec<&ItemList> = files.iter().map(|(_, display)| display).collect();
        let nesting = Nesting::new(&displays, &origins);
        let root = |display: usize| {
            let above = std::iter::successors(Some(display), |display| {
                nesting.parent(*display).map(|(parent, _)| parent)
            });
            above.take(displays.len() + 1).last().unwrap()
        };
        let roots: Vec<_> = (0..displays.len()).map(root).collect();
        let is_subagent = |display: &usize| (1..=count).contains(display);
        assert!(!roots.iter().any(is_subagent), "seed {seed}: {roots:?}");
        let steps: Vec<_> = nesting.walk(&displays).collect();
        let shown: HashSet<_> = steps.iter().map(|step| (step.display, step.item)).collect();
        let of_main = displays.iter().zip(&roots).filter(|(_, root)| **root == 0);
        let all: usize = of_main.map(|(display, _)| display.items().len()).sum();
        assert_eq!((steps.len(), shown.len()), (all, all), "seed {seed}");
        for step in steps {
            let above = std::iter::successors(Some(step.display), |display| {
                nesting.parent(*display).map(|(parent, _)| parent)
            });
            assert_eq!(above.count(), step.depth + 1, "seed {seed}");
        }
    }
}

#[test]
fn a_long_chain_of_subagents_needs_no_deep_stack() {
    let count = 5_000;
    let files: Vec<_> = (0..3).map(|_| agent("x", &[task("t", "y")])).collect();
    let displays: Vec<&ItemList> = (0..=count).map(|number| &files[number % 3].1).collect();
    let name = |number: usize| format!("agent-{number}");
    let origins: Vec<_> = (1..=count)
        .map(|number| {
            let parent = (number > 1).then(|| name(number - 1));
            origin(&name(number), Some("t"), parent.as_deref())
        })
        .collect();
    let nesting = Nesting::new(&displays, &origins);
    let deepest = nesting.walk(&displays).map(|step| step.depth).max();
    assert_eq!(deepest, Some(count));
}

#[test]
fn sidechains_of_an_old_file_are_subagents_under_the_calls_that_asked_them() {
    let side = |content: Value| json!({"isSidechain": true, "message": {"role": "user", "content": content}});
    let answer = |content: Value| {
        json!({"isSidechain": true,
        "message": {"id": "m", "role": "assistant", "content": content}})
    };
    let mut session = Session::default()
        .user("u1", json!("ask"))
        .answer("a1", json!([task("t1", "one"), task("t2", "two")]));
    session.last = None;
    let mut session = session
        .entry("user", "s2", &side(json!("two")))
        .entry(
            "assistant",
            "s2a",
            &answer(json!([call("inner"), call("inner2")])),
        )
        .entry("user", "s2r", &side(json!([result("inner")])))
        .under("s2a")
        .entry("user", "s2r2", &side(json!([result("inner2")])));
    session.last = None;
    let (file, main) = session
        .entry("user", "s1", &side(json!("one")))
        .under("a1")
        .user("r1", json!([result("t1"), result("t2")]))
        .display();
    let tree = Tree::new(&file.index, Policy::Recover);
    let found = sidechains(&tree);
    assert_eq!(found.len(), 2);
    let mut displays = vec![main];
    for (_, path) in &found {
        displays.push(ItemList::new(&tree, path, &mut file.bodies()).unwrap());
    }
    let reported: Vec<_> = displays
        .iter()
        .map(|display| file.reported(display))
        .collect();
    assert!(
        displays[1]
            .items()
            .iter()
            .all(|item| item.marks().contains(ItemMarks::SIDECHAIN))
    );
    let displays: Vec<&ItemList> = displays.iter().collect();
    let origins: Vec<_> = found.into_iter().map(|(origin, _)| origin).collect();
    let nesting = Nesting::new(&displays, &origins);
    let steps = nesting
        .walk(&displays)
        .map(|step| reported[step.display][step.item].clone());
    let expected = [
        "ask",
        "Call a1.0",
        "one",
        "Result r1.0",
        "Call a1.1",
        "two",
        "Call s2a.0",
        "Result s2r.0",
        "Call s2a.1",
        "Result s2r2.0",
        "Result r1.1",
    ];
    assert_eq!(steps.collect::<Vec<_>>(), expected);
}

/// A session whose second entry has that many blocks, between two others.
fn wide(blocks: usize) -> String {
    let list = vec!["0"; blocks].join(",");
    let line = |uuid: &str, parent: &str, content: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"timestamp":"2026-01-01T00:00:00.000Z","message":{{"role":"user","content":{content}}}}}"#
        )
    };
    let lines = [
        line("a", "null", r#""first""#),
        line("b", r#""a""#, &format!("[{list}]")),
        line("c", r#""b""#, r#""last""#),
    ];
    lines.join("\n") + "\n"
}

#[test]
fn an_entry_of_too_many_blocks_stays_on_the_path_and_is_one_item() {
    use transcript_format::finding::Code;
    use transcript_format::object::MAX_PARTS;
    use transcript_messages::OmissionReason;
    use transcript_resume::request::RequestOptions;
    let text = wide(MAX_PARTS + 1);
    let file = File::new(text.as_bytes());
    let findings = file.index.findings();
    let found: Vec<_> = findings.iter().map(|one| (one.code, one.line)).collect();
    assert_eq!(found, [(Code::TooMany, Some(2))]);
    assert_eq!(findings[0].offset, text.find('\n').unwrap() as u64 + 1);
    for policy in POLICIES {
        let display = file.display(policy);
        let kinds: Vec<ItemKind> = display.items().iter().map(Item::kind).collect();
        let text = ItemKind::Text;
        assert_eq!(kinds, [text, ItemKind::TooMany, text], "{policy:?}");
        let tree = Tree::new(&file.index, policy);
        let request = RequestOptions::new()
            .request(&tree, &mut file.bodies())
            .unwrap();
        assert_eq!(request.path.entries.len(), 3);
        let left: Vec<_> = request
            .omissions
            .iter()
            .map(|one| (one.origin, one.reason))
            .collect();
        assert_eq!(left, [(1, OmissionReason::TooMany)]);
    }
}

#[test]
fn all_blocks_up_to_the_limit_of_parts_are_shown() {
    use transcript_format::object::MAX_PARTS;
    let file = File::new(wide(MAX_PARTS).as_bytes());
    assert!(file.index.findings().is_empty());
    let display = file.display(Policy::Recover);
    assert_eq!(display.items().len(), MAX_PARTS + 2);
}

#[test]
fn displays_of_one_tree_read_each_line_of_progress_once() {
    use transcript_resume::items::Displays;
    let mut text = String::from(
        "{\"type\":\"user\",\"uuid\":\"r\",\"parentUuid\":null,\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"message\":{\"role\":\"user\",\"content\":\"go\"}}\n",
    );
    for number in 0..50 {
        writeln!(text, r#"{{"type":"assistant","uuid":"a{number}","parentUuid":"r","timestamp":"2026-01-01T00:00:01.000Z","message":{{"role":"assistant","content":[{{"type":"tool_use","id":"t{number}","name":"Bash","input":{{}}}}]}}}}"#).unwrap();
        writeln!(text, r#"{{"type":"progress","uuid":"p{number}","parentUuid":"a{number}","parentToolUseID":"t{number}","data":{{"type":"hook_progress"}}}}"#).unwrap();
        writeln!(text, r#"{{"type":"progress","uuid":"q{number}","parentUuid":"gone","parentToolUseID":"t{number}","data":{{"type":"hook_progress"}}}}"#).unwrap();
    }
    let file = File::new(text.as_bytes());
    let tree = Tree::new(&file.index, Policy::Recover);
    let mut counted = Counted {
        bodies: file.bodies(),
        asked: HashMap::new(),
    };
    let mut displays = Displays::new(&tree);
    let path = tree.path();
    let mut progress = 0;
    let others = tree
        .branches_off(&path)
        .into_iter()
        .map(|branch| branch.path);
    for path in std::iter::once(path.clone()).chain(others) {
        let display = displays.display(&path, &mut counted).unwrap();
        let items = display.items().iter();
        progress += items
            .filter(|item| item.kind() == ItemKind::Progress)
            .count();
    }
    assert_eq!(progress, 100);
    assert!(counted.asked.values().all(|times| *times == 1));
}

struct Counted<'s> {
    bodies: Bodies<'s>,
    asked: HashMap<EntryNo, u32>,
}

impl BodySource for Counted<'_> {
    type Error = Error;

    fn body(&mut self, entry_ref: &EntryRef<'_>) -> Result<&str, Error> {
        *self.asked.entry(entry_ref.number()).or_default() += 1;
        self.bodies.get(entry_ref).map(|body| body.text)
    }
}
