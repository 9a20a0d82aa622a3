//! A tombstoned entry does not return under `recover`, and `vendor` ignores the tombstone.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use transcript_messages::lint;
use transcript_reader::{Bodies, EntryNo, Index, Source};
use transcript_resume::request::{Request, RequestOptions};
use transcript_resume::{Branches, Decision, Policy, Tree};
use transcript_testkit::campaign::Healthy;
use transcript_testkit::rng::Rng;
use transcript_testkit::{damage, generate};

// ---------------------------------------------------------------------------------------------
// Sessions by hand
// ---------------------------------------------------------------------------------------------

fn entry(kind: &str, uuid: &str, parent: &str, more: &Value) -> String {
    let parent = (!parent.is_empty()).then_some(parent);
    let mut entry = json!({"parentUuid": parent, "isSidechain": false, "type": kind, "uuid": uuid,
        "timestamp": "2026-11-20T10:00:00.000Z", "sessionId": "s"});
    let members = more.as_object().unwrap().clone();
    entry.as_object_mut().unwrap().extend(members);
    entry.to_string()
}

fn ask(uuid: &str, parent: &str) -> String {
    let message = json!({"role": "user", "content": format!("Ask {uuid}")});
    entry("user", uuid, parent, &json!({"message": message}))
}

fn line(uuid: &str, parent: &str, message: &str, block: &Value) -> String {
    let message = json!({"id": message, "role": "assistant", "model": "m", "content": [block]});
    entry("assistant", uuid, parent, &json!({"message": message}))
}

fn say(uuid: &str, parent: &str, message: &str) -> String {
    let block = json!({"type": "text", "text": format!("Say {uuid}")});
    line(uuid, parent, message, &block)
}

fn call(uuid: &str, parent: &str, message: &str) -> String {
    let block =
        json!({"type": "tool_use", "id": format!("call-{uuid}"), "name": "Read", "input": {}});
    line(uuid, parent, message, &block)
}

fn result(uuid: &str, parent: &str, of: &str) -> String {
    let content = json!([{"type": "tool_result", "tool_use_id": format!("call-{of}"),
        "content": "Done"}]);
    let message = json!({"role": "user", "content": content});
    entry("user", uuid, parent, &json!({"message": message}))
}

fn attachment(uuid: &str, parent: &str) -> String {
    let rendered = json!([{"content": format!("Context {uuid}")}]);
    let more = json!({"attachment": {"type": "hook_additional_context"}, "rendered": rendered});
    entry("attachment", uuid, parent, &more)
}

fn boundary(uuid: &str, anchor: &str, kept: &[&str]) -> String {
    let more = json!({"subtype": "compact_boundary", "content": "Compacted", "compactMetadata":
        {"trigger": "auto", "preservedMessages": {"anchorUuid": anchor, "uuids": kept}}});
    entry("system", uuid, "", &more)
}

fn summary(uuid: &str, parent: &str) -> String {
    let message = json!({"role": "user", "content": "In short"});
    let more = json!({"isCompactSummary": true, "message": message});
    entry("user", uuid, parent, &more)
}

fn pin(leaf: &str, explicit: bool) -> String {
    json!({"type": "last-prompt", "leafUuid": leaf, "explicit": explicit}).to_string()
}

fn tombstone(uuid: &str) -> String {
    json!({"type": "transcriptEngine", "v": 1, "tombstone": uuid, "sessionId": "s"}).to_string()
}

/// A session that was written to disk and read.
struct Session {
    _file: tempfile::NamedTempFile,
    source: Source,
    index: Index,
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

    fn of(lines: &[String]) -> Self {
        Self::new((lines.join("\n") + "\n").as_bytes())
    }

    fn tree(&self, policy: Policy) -> Tree<'_> {
        Tree::new(&self.index, policy)
    }

    fn name(&self, entry: EntryNo) -> String {
        let id = self.index.entry(entry).uuid();
        id.map_or_else(|| format!("#{entry}"), |id| self.index.id_text(id))
    }

    fn path(&self, policy: Policy) -> Vec<String> {
        let path = self.tree(policy).path();
        let entries = path.entries.iter();
        entries.map(|entry| self.name(entry.entry_no())).collect()
    }

    /// The decisions of `recover` but the leaf, as `kind entry`.
    fn decisions(&self) -> String {
        let decisions = self.tree(Policy::Recover).path().decisions;
        let reported = decisions.iter().filter(|one| one.name() != "leaf");
        let reported = reported.map(|one| format!("{} {}", one.name(), self.name(one.entry())));
        reported.collect::<Vec<_>>().join(", ")
    }

    fn request(&self) -> Request {
        let tree = self.tree(Policy::Recover);
        let mut bodies = Bodies::new(&self.source);
        RequestOptions::new().request(&tree, &mut bodies).unwrap()
    }
}

/// Checks the path under `recover` and the decisions about it; the request has to be accepted by
/// the lint, and `vendor` must not see engine lines.
#[track_caller]
fn check(lines: &[String], path: &str, decisions: &str) {
    let session = Session::of(lines);
    assert_eq!(session.path(Policy::Recover).join(" "), path);
    assert_eq!(session.decisions(), decisions);
    let request = session.request();
    assert_eq!(request.is_resumable(), !path.is_empty());
    if request.is_resumable() {
        assert_eq!(lint(&request.messages).problems, []);
    }
    let is_ours = |line: &&String| line.contains("transcriptEngine");
    let others: Vec<String> = lines
        .iter()
        .filter(|line| !is_ours(line))
        .cloned()
        .collect();
    assert_eq!(
        session.path(Policy::Vendor),
        Session::of(&others).path(Policy::Vendor)
    );
}

/// An answer of three calls; the conversation continues from the result of the second one.
fn parallel() -> Vec<String> {
    vec![
        ask("u1", ""),
        say("a1", "u1", "m1"),
        call("a2", "a1", "m1"),
        call("a3", "a2", "m1"),
        call("a4", "a3", "m1"),
        result("r2", "a2", "a2"),
        attachment("h2", "r2"),
        result("r4", "a4", "a4"),
        attachment("h4", "r4"),
        result("r3", "a3", "a3"),
        say("a5", "r3", "m2"),
    ]
}

fn with(mut lines: Vec<String>, more: &[String]) -> Vec<String> {
    lines.extend_from_slice(more);
    lines
}

#[test]
fn a_line_of_an_answer_that_was_tombstoned_is_not_a_sibling_and_its_result_goes_with_it() {
    check(
        &parallel(),
        "u1 a1 a2 a3 a4 r2 h2 r4 h4 r3 a5",
        "siblings a1",
    );
    check(
        &with(parallel(), &[tombstone("a4")]),
        "u1 a1 a2 a3 r2 h2 r3 a5",
        "siblings a1, tombstoned a4, tombstoned r4, tombstoned h4",
    );
    // The line through which the conversation continues.
    check(
        &with(parallel(), &[tombstone("a3")]),
        "u1 a1 a2 a4 r2 h2 r4 h4 a5",
        "siblings a1, tombstoned a3, tombstoned r3",
    );
    check(
        &with(parallel(), &["a2", "a3", "a4"].map(tombstone)),
        "u1 a1 a5",
        "tombstoned a2, tombstoned a3, tombstoned a4, tombstoned r2, tombstoned h2, \
         tombstoned r4, tombstoned h4, tombstoned r3",
    );
    // The result alone: its call is as one whose result never came.
    check(
        &with(parallel(), &[tombstone("r4")]),
        "u1 a1 a2 a3 a4 r2 h2 r3 a5",
        "siblings a1, tombstoned r4, tombstoned h4",
    );
}

#[test]
fn child_of_a_tombstoned_entry_becomes_a_child_of_its_parent() {
    let lines = || {
        vec![
            ask("u1", ""),
            say("a1", "u1", "m1"),
            ask("u2", "a1"),
            attachment("h1", "u2"),
            say("a2", "h1", "m2"),
            ask("u3", "a2"),
        ]
    };
    check(
        &with(lines(), &[tombstone("a1"), tombstone("u2")]),
        "u1 h1 a2 u3",
        "tombstoned a1, tombstoned u2",
    );
    // A root, and all that there is.
    check(
        &with(lines(), &[tombstone("u1")]),
        "a1 u2 h1 a2 u3",
        "tombstoned u1",
    );
    let all = ["u1", "a1", "u2", "h1", "a2", "u3"].map(tombstone);
    check(&with(lines(), &all), "", "");
    // Progress lines between.
    let progress = entry(
        "progress",
        "p1",
        "a2",
        &json!({"data": {"type": "hook_progress"}}),
    );
    check(
        &with(lines(), &[tombstone("a2"), progress, ask("u4", "p1")]),
        "u1 a1 u2 h1 u4",
        "tombstoned a2",
    );
}

#[test]
fn an_entry_that_was_tombstoned_is_not_a_leaf_whatever_names_it() {
    let branches = || {
        vec![
            ask("u1", ""),
            say("a1", "u1", "m1"),
            ask("u2", "a1"),
            say("a2", "u2", "m2"),
            pin("a1", true),
            ask("u3", "a1"),
            say("a3", "u3", "m3"),
            pin("a3", false),
        ]
    };
    let reported = "tombstoned a3";
    check(&with(branches(), &[tombstone("a3")]), "u1 a1 u3", reported);
    check(
        &with(branches(), &[tombstone("a3"), pin("u3", true)]),
        "u1 a1 u3",
        reported,
    );
    // The write was interrupted after the tombstone: the branch that was abandoned before stays so.
    let torn = [tombstone("a3"), pin("u3", true), tombstone("u3")];
    let session = Session::of(&with(branches(), &torn));
    assert_eq!(session.path(Policy::Recover), ["u1", "a1"]);
    // An attachment at the end that leads on to nothing.
    check(
        &with(branches(), &[attachment("h3", "a3"), tombstone("a3")]),
        "u1 a1 u3",
        "tombstoned a3, tombstoned h3",
    );
    let tree = session.tree(Policy::Recover);
    let id = session.index.id("a3").unwrap();
    assert_eq!(tree.node_with_uuid(id), None);
    assert!(tree.nodes().any(|node| tree.is_removed(node)));
}

#[test]
fn a_lost_parent_is_not_bridged_to_an_entry_that_was_tombstoned() {
    let lines = vec![
        ask("u1", ""),
        say("a1", "u1", "m1"),
        ask("u2", "a1"),
        say("a2", "u2", "m2"),
        tombstone("a2"),
        ask("u3", "lost"),
    ];
    check(&lines, "u1 a1 u2 u3", "bridge u3, tombstoned a2");
    // A child of the removed entry gets the link above that, with its evidence.
    let lines = vec![
        ask("u1", ""),
        say("a1", "u1", "m1"),
        ask("u2", "lost"),
        say("a2", "u2", "m2"),
        tombstone("u2"),
    ];
    check(&lines, "u1 a1 a2", "bridge a2, tombstoned u2");
    let lines = vec![
        ask("u1", "lost"),
        say("a1", "u1", "m1"),
        tombstone("u1"),
        ask("u2", "a1"),
    ];
    check(&lines, "a1 u2", "gap a1, tombstoned u1");
}

#[test]
fn a_compaction_keeps_nothing_that_was_tombstoned() {
    let lines = |kept: &[&str]| {
        vec![
            ask("u1", ""),
            say("a1", "u1", "m1"),
            ask("u2", "a1"),
            say("a2", "u2", "m2"),
            boundary("b", "s", kept),
            summary("s", "b"),
            ask("u3", "s"),
        ]
    };
    check(
        &with(lines(&["u2", "a2"]), &[tombstone("a2")]),
        "b s u2 u3",
        "cut b, tombstoned a2, splice b",
    );
    check(
        &with(lines(&["u2", "a2"]), &[tombstone("u2")]),
        "b s a2 u3",
        "cut b, tombstoned u2, splice b",
    );
    // All of it: compacted entries stay away, also from under preserved ones.
    check(
        &with(lines(&["a2"]), &[tombstone("a2"), ask("u4", "a2")]),
        "b s u4",
        "cut b, tombstoned a2, splice b",
    );
    // The summary; and the compaction as a whole.
    check(
        &with(lines(&["u2", "a2"]), &[tombstone("s")]),
        "b u2 a2 u3",
        "cut b, tombstoned s, splice b",
    );
    let mut undone = lines(&["u2", "a2"]);
    undone.truncate(6);
    let more = [
        tombstone("s"),
        pin("b", true),
        tombstone("b"),
        pin("a2", true),
    ];
    check(&with(undone, &more), "u1 a1 u2 a2", "");
}

#[test]
fn a_result_goes_only_with_the_one_call_that_it_answers() {
    // Text next to the result; and the same call made by another line.
    let content = json!([
        {"type": "tool_result", "tool_use_id": "call-a2", "content": "Done"},
        {"type": "text", "text": "And one more thing"},
    ]);
    let message = json!({"message": {"role": "user", "content": content}});
    let lines = vec![
        ask("u1", ""),
        call("a2", "u1", "m1"),
        entry("user", "r2", "a2", &message),
        tombstone("a2"),
    ];
    check(&lines, "u1 r2", "tombstoned a2");
    let twice = call("a2", "a2", "m1").replace("\"uuid\":\"a2\"", "\"uuid\":\"a9\"");
    let lines = vec![
        ask("u1", ""),
        call("a2", "u1", "m1"),
        twice,
        result("r2", "a9", "a2"),
        tombstone("a2"),
    ];
    check(&lines, "u1 a9 r2", "tombstoned a2");
    // A call that the provider runs itself, and its result.
    let server =
        json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []});
    let lines = vec![
        ask("u1", ""),
        line("a1", "u1", "m1", &server),
        line("a2", "a1", "m1", &found),
        say("a3", "a2", "m1"),
        tombstone("a1"),
    ];
    check(&lines, "u1 a3", "tombstoned a1, tombstoned a2");
}

#[test]
fn entry_written_again_after_its_tombstone_counts_from_there_on() {
    let lines = vec![
        ask("u1", ""),
        say("a1", "u1", "m1"),
        ask("u2", "a1"),
        tombstone("u2"),
        ask("u3", "a1"),
        ask("u2", "u3"),
        say("a2", "u2", "m2"),
    ];
    check(&lines, "u1 a1 u3 u2 a2", "");
    // And tombstoned again.
    check(
        &with(lines, &[tombstone("u2")]),
        "u1 a1 u3 a2",
        "tombstoned u2",
    );
}

#[test]
fn lines_that_name_nothing_or_say_more_do_no_harm() {
    let own = |more: Value| {
        let mut line = json!({"type": "transcriptEngine"});
        line.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        line.to_string()
    };
    let lines = vec![
        ask("u1", ""),
        say("a1", "u1", "m1"),
        tombstone("nobody"),
        tombstone(""),
        own(json!({"v": 1})),
        own(json!({"v": 1, "tombstone": 7})),
        own(json!({"v": 1, "tombstone": null, "parentUuid": "a1"})),
        // The line of the vendor's is not ours.
        json!({"type": "tombstone", "tombstone": "a1", "message": {"uuid": "a1"}}).to_string(),
        ask("u2", "a1"),
        own(json!({"v": 2, "tombstone": "u2", "why": {"tombstone": "a1"}})),
    ];
    check(&lines, "u1 a1", "tombstoned u2");
    // Before the entry it is about nothing.
    check(&[tombstone("u1"), ask("u1", "")], "u1", "");
}

#[test]
fn a_damaged_tombstone_is_damage_like_any_other() {
    let lines = with(parallel(), &[ask("u2", "a5")]).join("\n");
    let own = tombstone("u2");
    let torn = format!("{lines}\n{}", &own[..own.len() - 12]);
    assert!(
        Session::new(torn.as_bytes())
            .path(Policy::Recover)
            .ends_with(&["u2".to_owned()])
    );
    for hurt in [
        format!("{{\"type\":\"tag\",\"ta{own}"),
        format!("\0\0\0{own}"),
    ] {
        let session = Session::new(format!("{lines}\n{hurt}\n").as_bytes());
        let is_back = session.index.tombstones().count() == 1;
        let path = session.path(Policy::Recover);
        assert_eq!(path.contains(&"u2".to_owned()), !is_back, "{hurt:?}");
        assert!(is_back, "{hurt:?}");
        assert!(session.path(Policy::Vendor).contains(&"u2".to_owned()));
    }
}

#[test]
fn a_long_run_of_entries_that_were_tombstoned_is_passed_over_as_one() {
    let mut lines = vec![ask("e0", "")];
    for number in 1..20_000 {
        let parent = format!("e{}", number - 1);
        lines.push(ask(&format!("e{number}"), &parent));
        lines.push(attachment(&format!("h{number}"), &parent));
    }
    lines.extend((1..19_999).map(|number| tombstone(&format!("e{number}"))));
    let session = Session::of(&lines);
    let path = session.path(Policy::Recover);
    assert_eq!(path, ["e0", "e19999"]);
}

// ---------------------------------------------------------------------------------------------
// Against a file from which the same was really taken out
// ---------------------------------------------------------------------------------------------

/// Removes the entries that the tombstones of `lines` name, as if somebody had edited the file:
/// children are given the parent of a removed entry, and lists of preserved entries lose its id.
/// `None` when the file cannot express that.
fn edited(lines: &[Value]) -> Option<Vec<Value>> {
    let text = |value: &Value| {
        value
            .as_str()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let uuid = |line: &Value| is_entry(line).then(|| text(&line["uuid"])).flatten();
    let mut lines = lines.to_vec();
    let mut gone: HashSet<String> = HashSet::new();
    for at in 0..lines.len() {
        let Some(named) = text(&lines[at]["tombstone"]) else {
            continue;
        };
        if lines[at..]
            .iter()
            .any(|line| uuid(line).as_ref() == Some(&named))
        {
            for line in &mut lines[..at] {
                if uuid(line).as_ref() == Some(&named) {
                    *line = Value::Null;
                }
            }
        } else {
            gone.insert(named);
        }
    }
    let ids = |line: &Value, kind: &str, key: &str| -> Vec<String> {
        let blocks = line["message"]["content"].as_array();
        let blocks = blocks.into_iter().flatten();
        let blocks = blocks.filter(|block| block["type"] == kind);
        blocks.filter_map(|block| text(&block[key])).collect()
    };
    let is_gone =
        |line: &Value, gone: &HashSet<String>| uuid(line).is_some_and(|id| gone.contains(&id));
    let calls = |is_wanted: &dyn Fn(&Value) -> bool| -> HashSet<String> {
        let lines = lines
            .iter()
            .filter(|line| line["type"] == "assistant" && is_wanted(line));
        lines.flat_map(|line| ids(line, "tool_use", "id")).collect()
    };
    let live = calls(&|line| !is_gone(line, &gone));
    let dead = calls(&|line| is_gone(line, &gone));
    for line in &lines {
        let results = ids(line, "tool_result", "tool_use_id");
        let blocks = line["message"]["content"].as_array().map_or(0, Vec::len);
        if line["type"] == "user"
            && !results.is_empty()
            && results.len() == blocks
            && results
                .iter()
                .all(|call| dead.contains(call) && !live.contains(call))
        {
            gone.extend(uuid(line));
        }
    }
    // Progress lines are none: what is a child of one is a child of what is above it.
    let mut above: HashMap<String, Option<String>> = HashMap::new();
    for line in &lines {
        if let Some(id) = text(&line["uuid"]) {
            above.insert(id, text(&line["parentUuid"]));
        }
    }
    let mut is_progress: HashSet<String> = HashSet::new();
    for line in lines.iter().filter(|line| line["type"] == "progress") {
        is_progress.extend(text(&line["uuid"]));
    }
    let entry_above = |line: &Value| {
        let mut at = text(&line["parentUuid"]);
        while let Some(id) = at.take_if(|id| is_progress.contains(id)) {
            at = above.get(&id).cloned().flatten();
        }
        at
    };
    loop {
        let is_loose = |line: &&Value| {
            let (Some(id), Some(parent)) = (uuid(line), entry_above(line)) else {
                return false;
            };
            let children = lines.iter().filter(|child| {
                is_entry(child)
                    && !is_gone(child, &gone)
                    && entry_above(child).as_ref() == Some(&id)
            });
            line["type"] == "attachment"
                && !gone.contains(&id)
                && children.count() == 0
                && leads_to_gone(&parent, &lines, &gone, &entry_above)
        };
        let Some(loose) = lines.iter().find(is_loose) else {
            break;
        };
        let loose = uuid(loose)?;
        gone.insert(loose);
    }
    let standing = |mut at: Option<String>| {
        for _ in 0..lines.len() {
            match at.take_if(|id| gone.contains(id) || is_progress.contains(id)) {
                Some(id) => at = above.get(&id).cloned().flatten(),
                None => break,
            }
        }
        at
    };
    let boundaries = lines.iter().filter(|line| is_boundary(line));
    let lists = boundaries
        .filter_map(|line| line["compactMetadata"]["preservedMessages"]["uuids"].as_array());
    let listed: HashSet<String> = lists.flatten().filter_map(text).collect();
    let mut out = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if line.is_null() || line["type"] == "transcriptEngine" || is_gone(line, &gone) {
            continue;
        }
        let mut line = line.clone();
        for key in ["parentUuid", "leafUuid"] {
            if let Some(id) = text(&line[key])
                && (gone.contains(&id) || is_progress.contains(&id))
                && (gone.contains(&id) || standing(Some(id.clone())) != above[&id])
            {
                let left = standing(Some(id.clone()));
                // A child of an entry from before a compaction follows the preserved entries, and a
                // child of a preserved one is at its place: without the entry no line can express
                // that.
                let is_child = key == "parentUuid" && lines[..at].iter().any(is_boundary);
                let above_kept = |id: &String| {
                    let mut at = Some(id.clone());
                    std::iter::from_fn(|| {
                        let id = at.take().filter(|id| gone.contains(id))?;
                        at = above.get(&id).cloned().flatten();
                        Some(id)
                    })
                    .any(|id| listed.contains(&id))
                };
                if is_child && (left.is_none() || above_kept(&id)) {
                    return None;
                }
                let nobody = (key == "leafUuid").then(|| "nobody".to_owned());
                line[key] = json!(left.or(nobody));
            }
        }
        if !is_boundary(&line) {
            out.push(line);
            continue;
        }
        let metadata = &mut line["compactMetadata"];
        if let Some(list) = metadata["preservedMessages"].as_object_mut() {
            let is_kept = |id: &Value| text(id).is_none_or(|id| !gone.contains(&id));
            let uuids = list.get_mut("uuids").and_then(Value::as_array_mut)?;
            let before = uuids.len();
            uuids.retain(is_kept);
            if uuids.is_empty() && before > 0 {
                return None;
            }
            list["anchorUuid"] = json!(standing(text(&list["anchorUuid"])));
        } else if let Some(segment) = metadata["preservedSegment"].as_object() {
            let mut ids = segment.values().filter_map(text);
            if ids.any(|id| gone.contains(&id)) {
                return None;
            }
        }
        out.push(line);
    }
    Some(out)
}

fn is_boundary(line: &Value) -> bool {
    line["subtype"] == "compact_boundary"
}

fn is_entry(line: &Value) -> bool {
    let kind = line["type"].as_str().unwrap_or_default();
    matches!(kind, "user" | "assistant" | "system" | "attachment")
}

/// Whether the entry is gone, or an attachment that is a child of one that is.
fn leads_to_gone(
    entry: &str,
    lines: &[Value],
    gone: &HashSet<String>,
    entry_above: &dyn Fn(&Value) -> Option<String>,
) -> bool {
    let mut at = entry.to_owned();
    for _ in 0..lines.len() {
        if gone.contains(&at) {
            return true;
        }
        let line = lines
            .iter()
            .find(|line| is_entry(line) && line["uuid"] == *at);
        match line
            .filter(|line| line["type"] == "attachment")
            .and_then(entry_above)
        {
            Some(above) => at = above,
            None => return false,
        }
    }
    false
}

fn bytes_of(lines: &[Value]) -> Vec<u8> {
    let lines = lines.iter().map(|line| format!("{line}\n"));
    lines.collect::<String>().into_bytes()
}

/// Adds tombstones to a session, and now and then the same entry again after one.
fn take_back(lines: &mut Vec<Value>, rng: &mut Rng) {
    for _ in 0..rng.range(1, 4) {
        let entries: Vec<usize> = (0..lines.len())
            .filter(|at| is_entry(&lines[*at]))
            .collect();
        // Entries near the end are on the path more often.
        let at = *rng.pick(&entries);
        let at = if rng.one_in(2) {
            at
        } else {
            at.max(*rng.pick(&entries))
        };
        let entry = lines[at].clone();
        let own = json!({"type": "transcriptEngine", "v": 1, "tombstone": entry["uuid"]});
        let place = if rng.one_in(2) {
            lines.len()
        } else {
            rng.range(at + 1, lines.len())
        };
        lines.insert(place, own);
        if rng.one_in(10) {
            lines.insert(rng.range(place + 1, lines.len()), entry);
        }
    }
}

#[test]
fn a_path_with_tombstones_is_that_of_a_file_from_which_the_entries_were_taken_out() {
    let (mut sessions, mut differ, mut reported, mut kept) = (0, 0, 0, 0);
    for seed in 0..2_500 {
        let bytes = generate::tidy_session(seed);
        if Healthy::new(&bytes).is_none() {
            continue;
        }
        let text = String::from_utf8(bytes).unwrap();
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let mut lines: Vec<Value> = lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let plain = Session::new(&bytes_of(&lines));
        take_back(&mut lines, &mut Rng::new(seed));
        let Some(edited) = edited(&lines) else {
            continue;
        };
        let session = Session::new(&bytes_of(&lines));
        let wanted = Session::new(&bytes_of(&edited));
        // The client ignores tombstones, so its path is a lower bound only without them. An answer
        // whose prompt was taken out is taken for one with a missing parent.
        let decisions = wanted.tree(Policy::Recover).path().decisions;
        if decisions
            .iter()
            .any(|one| matches!(one, Decision::Client { .. } | Decision::Bridge { .. }))
        {
            continue;
        }
        let path = session.path(Policy::Recover);
        assert_eq!(path, wanted.path(Policy::Recover), "seed {seed}");
        let problems = lint(&session.request().messages).problems;
        assert_eq!(problems, [], "seed {seed}");

        // No item of it is shown, and `vendor` sees no engine lines.
        let tree = session.tree(Policy::Recover);
        let named: Vec<_> = session.index.tombstones().collect();
        let branches = Branches::new(&tree, &[]);
        for (line, id) in named {
            let mut again = session.index.with_uuid(id);
            if again.all(|other| other < line) {
                let shown = tree.node_with_uuid(id);
                assert_eq!(shown, None, "seed {seed}");
                let mut drawn = (0..branches.len()).flat_map(|branch| branches.entries(branch));
                assert!(
                    drawn.all(|entry| session.index.entry(entry).uuid() != Some(id)),
                    "seed {seed}"
                );
            }
        }
        let others: Vec<Value> = lines
            .into_iter()
            .filter(|line| line["type"] != "transcriptEngine")
            .collect();
        let vendor = session.path(Policy::Vendor);
        assert_eq!(
            vendor,
            Session::new(&bytes_of(&others)).path(Policy::Vendor),
            "seed {seed}"
        );

        sessions += 1;
        differ += usize::from(path != plain.path(Policy::Recover));
        let decisions = tree.path().decisions;
        reported += usize::from(
            decisions
                .iter()
                .any(|one| matches!(one, Decision::Tombstoned { .. })),
        );
        kept += usize::from(
            decisions
                .iter()
                .any(|one| matches!(one, Decision::Splice { .. })),
        );
    }
    println!(
        "{sessions} sessions, {differ} with another path, {reported} reported, {kept} compacted"
    );
    assert!(sessions > 1_000 && differ > 800 && reported > 800 && kept > 80);
}

#[test]
fn tombstoned_entries_are_never_shown_whatever_else_is_wrong_with_a_file() {
    let (mut shown_before, mut requests) = (0, 0);
    for seed in 0..1_500 {
        let mut bytes = damage::damage(&generate::session(seed), seed).0;
        bytes.push(b'\n');
        let before = Session::new(&bytes);
        let mut rng = Rng::new(seed);
        let path = before.path(Policy::Recover);
        let mut named: HashSet<String> = HashSet::new();
        for _ in 0..rng.range(1, 5) {
            if !before.index.is_empty() {
                let entry = EntryNo::new(rng.below(before.index.len()));
                named.insert(before.name(entry));
            }
            if !path.is_empty() {
                named.insert(rng.pick(&path).clone());
            }
        }
        named.retain(|name| !name.starts_with('#'));
        shown_before += path.iter().filter(|name| named.contains(*name)).count();
        let own = named.iter().map(|name| tombstone(name) + "\n");
        bytes.extend(own.collect::<String>().bytes());
        let session = Session::new(&bytes);
        let path = session.path(Policy::Recover);
        assert!(!path.iter().any(|name| named.contains(name)), "seed {seed}");
        let tree = session.tree(Policy::Recover);
        let branches = Branches::new(&tree, &[]);
        let mut drawn = (0..branches.len()).flat_map(|branch| branches.entries(branch));
        assert!(
            !drawn.any(|entry| named.contains(&session.name(entry))),
            "seed {seed}"
        );
        let request = session.request();
        if request.is_resumable() {
            requests += 1;
            assert_eq!(lint(&request.messages).problems, [], "seed {seed}");
        }
        let vendor = session.path(Policy::Vendor);
        assert_eq!(vendor, before.path(Policy::Vendor), "seed {seed}");
    }
    println!("{shown_before} entries were shown before, {requests} requests");
    assert!(shown_before > 3_000 && requests > 1_000);
}
