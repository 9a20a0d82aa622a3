//! Traces of damage in a file, which its JSON alone shows.
//!
//! Some damage leaves nothing: a file without its last line, or with two independent lines exchanged,
//! is one that an undamaged client could have written. The rules here decide that, with plain JSON
//! values and without any code of the other crates: damage is traceable when the file breaks a rule
//! that the session did not break, or breaks it at another place. The rules are those that clients
//! keep (`docs/format.md`): a line is one JSON object, ids are unique, names resolve, calls have
//! results, links have no cycle, a file has one session, and causes precede their effects.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

/// A rule that a file breaks, and where: an id, or the start of a line.
pub type Trace = (&'static str, String);

/// The maximum number of lines between an entry and its later parent, as clients write them.
const MAX_WRITE_DISTANCE: usize = 9;

/// Returns every rule that a file breaks.
#[must_use]
pub fn traces(bytes: &[u8]) -> BTreeSet<Trace> {
    let mut found = BTreeSet::new();
    let mut lines = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        match serde_json::from_slice::<Value>(line) {
            _ if line.trim_ascii().is_empty() => {}
            Ok(value) if value.is_object() => lines.push(value),
            _ => _ = found.insert(("whole lines", String::from_utf8_lossy(line).into_owned())),
        }
    }
    let file = File::new(&lines);
    let mut broken = |rule, id: &str| _ = found.insert((rule, id.to_owned()));
    let mut uuids = HashSet::new();
    let mut sessions = HashSet::new();
    let mut last_answer = "";
    let mut passed_answers: HashSet<&str> = HashSet::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some(uuid) = line["uuid"].as_str() {
            if !uuids.insert(uuid) {
                broken("unique ids", uuid);
            }
            if file.is_in_cycle(uuid) {
                broken("no cycles", uuid);
            }
            if file.is_early(at) {
                broken("causes first", uuid);
            }
            sessions.extend(line["sessionId"].as_str());
        }
        for name in names(line) {
            if !file.place.contains_key(name) {
                broken("names resolve", name);
            }
        }
        let metadata = &line["compactMetadata"];
        let [head, tail] =
            ["headUuid", "tailUuid"].map(|end| metadata["preservedSegment"][end].as_str());
        if let (Some(head), Some(tail), true) =
            (head, tail, metadata["preservedMessages"].is_null())
            && !file.above(tail).any(|uuid| uuid == head)
        {
            broken("names resolve", head);
        }
        if line["type"] == "assistant" && line["isSidechain"] != true {
            let answer = line["message"]["id"].as_str().unwrap_or_default();
            if answer != last_answer {
                passed_answers.insert(last_answer);
                last_answer = answer;
            }
        }
        for call in block_ids(line, "tool_use", "id") {
            if !file.results.contains(call) {
                broken("calls have results", call);
            }
        }
        for call in block_ids(line, "tool_result", "tool_use_id") {
            let answer = file.calls.get(call).copied();
            let is_late = |answer: &str| answer != last_answer && passed_answers.contains(answer);
            match answer {
                None => broken("names resolve", call),
                Some(answer) if line["isSidechain"] != true && is_late(answer) => {
                    broken("causes first", call);
                }
                Some(_) => {}
            }
        }
    }
    if sessions.len() > 1 {
        sessions
            .into_iter()
            .for_each(|id| broken("one session", id));
    }
    found
}

struct File<'v> {
    lines: &'v [Value],
    /// The first line with each uuid.
    place: HashMap<&'v str, usize>,
    /// The ids of the answers that contain the calls.
    calls: HashMap<&'v str, &'v str>,
    results: HashSet<&'v str>,
}

impl<'v> File<'v> {
    fn new(lines: &'v [Value]) -> Self {
        let mut file = Self {
            lines,
            place: HashMap::new(),
            calls: HashMap::new(),
            results: HashSet::new(),
        };
        for (at, line) in lines.iter().enumerate() {
            if let Some(uuid) = line["uuid"].as_str() {
                file.place.entry(uuid).or_insert(at);
            }
            let answer = line["message"]["id"].as_str().unwrap_or_default();
            let calls = block_ids(line, "tool_use", "id");
            file.calls.extend(calls.map(|call| (call, answer)));
            file.results
                .extend(block_ids(line, "tool_result", "tool_use_id"));
        }
        file
    }

    /// Returns a uuid and those above it, at most as many as there are lines.
    fn above(&self, uuid: &'v str) -> impl Iterator<Item = &'v str> + '_ {
        let parent = |uuid: &&str| self.lines[*self.place.get(uuid)?]["parentUuid"].as_str();
        std::iter::successors(Some(uuid), parent).take(self.lines.len() + 1)
    }

    fn is_in_cycle(&self, uuid: &'v str) -> bool {
        self.above(uuid).skip(1).any(|above| above == uuid)
    }

    /// Returns the place of the parent of a line if it is later in the file.
    fn later_parent(&self, at: usize) -> Option<usize> {
        let parent = self.lines[at]["parentUuid"].as_str()?;
        self.place
            .get(parent)
            .copied()
            .filter(|parent| *parent > at)
    }

    /// Returns whether a line precedes its parent, and not as clients write it: a result when its
    /// answer is not complete yet, an attachment before its result.
    fn is_early(&self, at: usize) -> bool {
        let Some(parent) = self.later_parent(at) else {
            return false;
        };
        let is_result = |line: &Value| {
            block_ids(line, "tool_result", "tool_use_id")
                .next()
                .is_some()
        };
        let (line, above) = (&self.lines[at], &self.lines[parent]);
        let may_be_between = |place: usize| {
            let between = &self.lines[place];
            match between["type"].as_str() {
                Some("assistant") => {
                    let answer = &between["message"]["id"];
                    answer.is_string() && *answer == above["message"]["id"]
                }
                Some("user") => is_result(between) && self.later_parent(place).is_some(),
                _ => true,
            }
        };
        let is_usual = match line["type"].as_str() {
            Some("attachment") => is_result(above),
            _ => is_result(line) && (at + 1..parent).all(may_be_between),
        };
        parent - at > MAX_WRITE_DISTANCE || !is_usual
    }
}

/// Returns the ids of entries that a line names.
fn names(line: &Value) -> impl Iterator<Item = &str> {
    const ZEROS: &str = "00000000-0000-0000-0000-000000000000";
    let metadata = &line["compactMetadata"];
    let (list, segment) = (
        &metadata["preservedMessages"],
        &metadata["preservedSegment"],
    );
    let leaf = (line["type"] == "last-prompt").then(|| &line["leafUuid"]);
    let listed = list["uuids"].as_array().into_iter().flatten();
    let fields = [
        &line["parentUuid"],
        &line["logicalParentUuid"],
        &line["sourceToolAssistantUUID"],
        &list["anchorUuid"],
        &segment["headUuid"],
        &segment["anchorUuid"],
        &segment["tailUuid"],
    ];
    let names = fields.into_iter().chain(listed).chain(leaf);
    let names = names.filter_map(Value::as_str);
    names.filter(|name| !name.is_empty() && *name != ZEROS)
}

fn block_ids<'v>(
    line: &'v Value,
    block_type: &'static str,
    field: &'static str,
) -> impl Iterator<Item = &'v str> {
    let blocks = line["message"]["content"].as_array().into_iter().flatten();
    let blocks = blocks.filter(move |block| block["type"] == block_type);
    blocks.filter_map(move |block| block[field].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::{Healthy, Kind};
    use crate::generate;

    #[test]
    fn a_session_without_its_last_answer_breaks_no_rule_and_one_without_a_result_does() {
        let line = |uuid: &str, parent: &str, content: &str| {
            format!(
                "{{\"type\":\"user\",\"uuid\":\"{uuid}\",\"parentUuid\":{parent},\"message\":{{\"content\":{content}}}}}\n"
            )
        };
        let call = r#"[{"type":"tool_use","id":"t1"}]"#;
        let result = r#"[{"type":"tool_result","tool_use_id":"t1"}]"#;
        let lines = [
            line("u1", "null", "\"x\""),
            line("a1", "\"u1\"", call),
            line("u2", "\"a1\"", result),
            line("a2", "\"u2\"", "[]"),
        ];
        let broken = |text: String| -> Vec<&str> {
            traces(text.as_bytes())
                .into_iter()
                .map(|(rule, _)| rule)
                .collect()
        };
        assert_eq!(broken(lines.concat()), [""; 0]);
        assert_eq!(broken(lines[..3].concat()), [""; 0]);
        let without_result = [&lines[..2], &lines[3..]].concat().concat();
        assert_eq!(
            broken(without_result),
            ["calls have results", "names resolve"]
        );
        let moved = [&lines[..1], &lines[3..], &lines[1..3]].concat().concat();
        assert_eq!(broken(moved), ["causes first"]);
    }

    #[test]
    fn damage_to_links_and_bytes_always_breaks_a_rule() {
        let sessions = (0..60).filter_map(|seed| Healthy::new(&generate::tidy_session(seed)));
        for (seed, healthy) in sessions.enumerate() {
            let before = traces(&healthy.undamaged().bytes);
            for kind in [Kind::Nul, Kind::Cycle, Kind::BadUtf8, Kind::DanglingPointer] {
                let Some(case) = healthy.damaged(kind, seed as u64) else {
                    continue;
                };
                let after = traces(&case.bytes);
                assert!(
                    after.difference(&before).next().is_some(),
                    "{kind:?} {seed}"
                );
            }
        }
    }
}
