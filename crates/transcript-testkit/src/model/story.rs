//! The messages of a conversation with everything that compactions removed from it, counted in the
//! most obvious way. Only for sound files: every uuid once, no links repaired.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use super::lines::{self, Line};

/// Returns the lines of the user and assistant entries that any path from the root through each
/// compaction to the entry in line `leaf` holds; `None` when a uuid is in the file more than once, or
/// a parent is missing.
#[must_use]
pub fn story_lines(bytes: &[u8], leaf: usize) -> Option<BTreeSet<usize>> {
    let kinds = ["user", "assistant", "system", "attachment", "progress"];
    let is_entry = |line: &Line| kinds.contains(&text(&line.object, "type"));
    let lines: Vec<Line> = lines::parse(bytes).into_iter().filter(is_entry).collect();
    let uuids = lines.iter().enumerate();
    let uuids = uuids.map(|(at, line)| (text(&line.object, "uuid"), at));
    let places: HashMap<&str, usize> = uuids.filter(|(uuid, _)| !uuid.is_empty()).collect();
    let is_linked = |line: &Line| {
        let parent = text(&line.object, "parentUuid");
        parent.is_empty() || places.contains_key(parent)
    };
    if places.len() != lines.len() || !lines.iter().all(is_linked) {
        return None;
    }
    let story = Count {
        lines: &lines,
        places,
    };
    let leaf = lines.iter().position(|line| line.number == leaf)?;
    let leaf = story.across(leaf, lines.len(), lines.len());
    let mut found = story.chain(leaf);
    let boundaries = found.iter().filter(|at| story.is_boundary(**at));
    let kept: Vec<usize> = boundaries.flat_map(|at| story.kept(*at)).collect();
    // A compaction may keep an entry of a subagent, but not the rest of its message.
    let (side, main): (Vec<_>, Vec<_>) = kept.into_iter().partition(|at| story.is_sidechain(*at));
    found.extend(main);
    story.add_siblings(&mut found);
    found.extend(side);
    let messages = found.into_iter().filter(|at| story.is_message(*at));
    Some(messages.map(|at| lines[at].number).collect())
}

struct Count<'l> {
    lines: &'l [Line],
    places: HashMap<&'l str, usize>,
}

impl Count<'_> {
    fn object(&self, at: usize) -> &Map<String, Value> {
        &self.lines[at].object
    }

    fn named(&self, object: &Map<String, Value>, key: &str) -> Option<usize> {
        self.places.get(text(object, key)).copied()
    }

    fn is_message(&self, at: usize) -> bool {
        ["user", "assistant"].contains(&text(self.object(at), "type"))
    }

    fn is_boundary(&self, at: usize) -> bool {
        text(self.object(at), "subtype") == "compact_boundary"
    }

    fn is_sidechain(&self, at: usize) -> bool {
        let is_side = |at: usize| self.object(at).get("isSidechain") == Some(&Value::Bool(true));
        let mut messages = (0..self.lines.len()).filter(|at| self.is_message(*at));
        is_side(at) && !messages.all(is_side)
    }

    /// The parent past progress lines.
    fn parent(&self, at: usize) -> Option<usize> {
        let mut parent = self.named(self.object(at), "parentUuid")?;
        for _ in 0..self.lines.len() {
            if text(self.object(parent), "type") != "progress" {
                return Some(parent);
            }
            parent = self.named(self.object(parent), "parentUuid")?;
        }
        None
    }

    fn chain(&self, leaf: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let (mut next, mut end) = (Some(leaf), self.lines.len());
        while let Some(at) = next.filter(|at| found.insert(*at)) {
            let above = if self.is_boundary(at) {
                self.before(at)
            } else {
                self.parent(at)
            };
            if self.is_boundary(at) {
                end = at;
            }
            next = above.map(|above| self.across(above, at, end));
        }
        found
    }

    /// The end of the conversation that a boundary ended.
    fn before(&self, boundary: usize) -> Option<usize> {
        let object = self.object(boundary);
        let segment = || metadata(object)?.get("preservedSegment")?.as_object();
        let named = [
            self.parent(boundary),
            self.named(object, "logicalParentUuid"),
            segment().and_then(|segment| self.named(segment, "tailUuid")),
        ];
        let is_before = |at: &usize| *at < boundary && !self.is_sidechain(*at);
        let mut named = named.into_iter().flatten();
        let is_last = |at: &usize| self.is_message(*at) && is_before(at);
        named
            .find(is_before)
            .or_else(|| (0..boundary).rev().find(is_last))
    }

    /// The entry that the one at `at` follows if it names `parent`, in the file up to `end`. If the
    /// last compaction there keeps entries, a link across it leads to it.
    fn across(&self, parent: usize, at: usize, end: usize) -> usize {
        let mut before = (0..end).rev();
        let keeps = before.find_map(|boundary| Some((boundary, self.anchor(boundary)?)));
        let keeps = keeps.filter(|(boundary, _)| *boundary < at);
        match keeps {
            Some((boundary, Some(anchor)))
                if parent < boundary && self.leads_across(boundary, parent) =>
            {
                if anchor < at {
                    anchor
                } else {
                    boundary
                }
            }
            _ => parent,
        }
    }

    /// Whether a link to `parent` leads to the summary of `boundary`: always if the file has all that
    /// is kept, for nothing else is left then, else only if `parent` is kept.
    fn leads_across(&self, boundary: usize, parent: usize) -> bool {
        let list = metadata(self.object(boundary)).and_then(|data| data.get("preservedMessages"));
        let uuids = list.and_then(|list| list.get("uuids")?.as_array());
        let exists = |uuid: &Value| self.places.contains_key(uuid.as_str().unwrap_or(""));
        uuids.is_none_or(|uuids| uuids.iter().all(exists)) || self.kept(boundary).contains(&parent)
    }

    /// Of the boundary of a completed compaction: if it keeps entries, the one that they follow.
    fn anchor(&self, boundary: usize) -> Option<Option<usize>> {
        if !self.is_boundary(boundary) {
            return None;
        }
        let metadata = metadata(self.object(boundary));
        let object = |key: &str| metadata?.get(key)?.as_object();
        let exists = |uuid: &Value| self.places.contains_key(uuid.as_str().unwrap_or(""));
        let (named, keeps) = match (object("preservedMessages"), object("preservedSegment")) {
            (Some(list), _) if list.get("uuids").is_some_and(Value::is_array) => {
                let mut uuids = list
                    .get("uuids")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten();
                (list, uuids.any(exists))
            }
            (_, Some(segment)) => {
                let mut ends = ["headUuid", "tailUuid"].into_iter();
                (segment, ends.all(|end| self.named(segment, end).is_some()))
            }
            _ => return Some(None),
        };
        let anchor = self.named(named, "anchorUuid");
        let mut below = boundary..self.lines.len();
        let has_child = below.clone().any(|at| self.parent(at) == Some(boundary));
        let summary = below.find(|at| {
            let is_summary = self.object(*at).get("isCompactSummary");
            is_summary == Some(&Value::Bool(true)) && self.parent(*at) == Some(boundary)
        });
        let is_finished = anchor.is_some() || has_child;
        let above = match anchor {
            Some(anchor) => Some(anchor).filter(|anchor| *anchor > boundary),
            None => summary,
        };
        is_finished.then(|| keeps.then(|| above.unwrap_or(boundary)))
    }

    /// The entries that a boundary keeps.
    fn kept(&self, boundary: usize) -> Vec<usize> {
        let Some(metadata) = metadata(self.object(boundary)) else {
            return Vec::new();
        };
        let list = metadata.get("preservedMessages").and_then(Value::as_object);
        if let Some(uuids) = list.and_then(|list| list.get("uuids")?.as_array()) {
            let place = |uuid: &Value| self.places.get(uuid.as_str()?).copied();
            return uuids.iter().filter_map(place).collect();
        }
        let segment = metadata.get("preservedSegment").and_then(Value::as_object);
        let end = |key| self.named(segment?, key);
        let (Some(head), Some(tail)) = (end("headUuid"), end("tailUuid")) else {
            return Vec::new();
        };
        let mut kept = vec![tail];
        while kept[kept.len() - 1] != head {
            match self
                .parent(kept[kept.len() - 1])
                .filter(|above| !kept.contains(above))
            {
                Some(above) => kept.push(above),
                None => return Vec::new(),
            }
        }
        kept
    }

    /// Adds the other lines of the messages, and the results of their calls.
    fn add_siblings(&self, found: &mut BTreeSet<usize>) {
        let id = |at: usize| {
            let message = self.object(at).get("message")?.as_object()?;
            (text(self.object(at), "type") == "assistant").then(|| message.get("id")?.as_str())?
        };
        let ids: HashSet<&str> = found.iter().filter_map(|at| id(*at)).collect();
        let all = || 0..self.lines.len();
        let is_line = |at: &usize| id(*at).is_some_and(|id| ids.contains(id));
        found.extend(all().filter(is_line));
        let calls = found
            .iter()
            .flat_map(|at| self.blocks(*at, "tool_use", "id"));
        let calls: HashSet<&str> = calls.collect();
        let answers = |at: &usize| {
            let results = self.blocks(*at, "tool_result", "tool_use_id");
            results.iter().any(|call| calls.contains(call))
        };
        found.extend(all().filter(answers));
        let goes_along = |at: &usize| self.goes_with_message(*at, found);
        let loose: Vec<usize> = all().filter(goes_along).collect();
        found.extend(loose);
    }

    /// Whether the client wrote this line beside a message with calls that is found (CHAIN-9).
    fn goes_with_message(&self, at: usize, found: &BTreeSet<usize>) -> bool {
        if !self.is_loose(at) || found.contains(&at) {
            return false;
        }
        let mut above = self.parent(at);
        for _ in 0..self.lines.len() {
            above = match above {
                Some(owner) if self.is_loose(owner) => self.parent(owner),
                _ => break,
            };
        }
        let Some(owner) = above.filter(|owner| found.contains(owner)) else {
            return false;
        };
        let part = self.message_of(owner);
        part.contains(&owner) && !self.leads_out(at, &part)
    }

    /// An attachment, a system line, or a user line without a result that the client wrote.
    fn is_loose(&self, at: usize) -> bool {
        let is_loose = match text(self.object(at), "type") {
            "attachment" => true,
            "system" => !self.is_boundary(at),
            "user" => {
                self.object(at).get("isMeta") == Some(&Value::Bool(true))
                    && self.blocks(at, "tool_result", "tool_use_id").is_empty()
            }
            _ => false,
        };
        is_loose && !self.is_sidechain(at)
    }

    /// The lines of the message with calls that this is a line or result of, and their results.
    fn message_of(&self, at: usize) -> HashSet<usize> {
        let all = || 0..self.lines.len();
        let answers: HashSet<&str> = self
            .blocks(at, "tool_result", "tool_use_id")
            .into_iter()
            .collect();
        let makes_one = |line: usize| {
            let calls = self.blocks(line, "tool_use", "id");
            calls.iter().any(|call| answers.contains(call))
        };
        let line = all().find(|line| *line == at && answers.is_empty() || makes_one(*line));
        let id = |at: usize| {
            let message = self.object(at).get("message").and_then(Value::as_object);
            message.map_or("", |message| text(message, "id"))
        };
        let Some(line) = line else {
            return HashSet::new();
        };
        let is_line =
            |other: &usize| *other == line || !id(line).is_empty() && id(*other) == id(line);
        let lines: HashSet<usize> = all().filter(is_line).collect();
        let calls: HashSet<&str> = lines
            .iter()
            .flat_map(|line| self.blocks(*line, "tool_use", "id"))
            .collect();
        if calls.is_empty() {
            return HashSet::new();
        }
        let answers = |at: &usize| {
            let results = self.blocks(*at, "tool_result", "tool_use_id");
            results.iter().any(|call| calls.contains(call))
        };
        all().filter(answers).chain(lines.iter().copied()).collect()
    }

    /// Whether a loose line leads to a line that is neither loose nor part of the message.
    fn leads_out(&self, at: usize, part: &HashSet<usize>) -> bool {
        let mut reached = HashSet::from([at]);
        for _ in 0..self.lines.len() {
            let children = (0..self.lines.len()).filter(|child| {
                self.parent(*child)
                    .is_some_and(|parent| reached.contains(&parent))
            });
            let children: Vec<usize> = children.filter(|child| !reached.contains(child)).collect();
            let mut outside = children.iter();
            if outside.any(|child| !self.is_loose(*child) && !part.contains(child)) {
                return true;
            }
            let before = reached.len();
            reached.extend(children.iter().filter(|child| self.is_loose(**child)));
            if reached.len() == before {
                break;
            }
        }
        false
    }

    fn blocks(&self, at: usize, kind: &str, key: &str) -> Vec<&str> {
        let message = self.object(at).get("message").and_then(Value::as_object);
        let content = message.and_then(|message| message.get("content")?.as_array());
        let blocks = content.into_iter().flatten().filter_map(Value::as_object);
        let blocks = blocks.filter(|block| text(block, "type") == kind);
        blocks.map(|block| text(block, key)).collect()
    }
}

fn metadata(object: &Map<String, Value>) -> Option<&Map<String, Value>> {
    object.get("compactMetadata")?.as_object()
}

fn text<'v>(object: &'v Map<String, Value>, key: &str) -> &'v str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}
